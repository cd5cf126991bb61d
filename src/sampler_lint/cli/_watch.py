"""``--watch``: check again whenever a file has changed."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sampler_lint.cli._common import CLEAN, UsageError, complain

if TYPE_CHECKING:
    from sampler_lint.options import OptionsOf

#: Seconds between two looks at the files; longer where a look takes long.
_PAUSE = 0.5
_REST = 10
"""A look may take one part in so many of the time."""

_CLEAR = "\x1b[2J\x1b[H"


def refuse(arguments: argparse.Namespace) -> None:
    """Accept ``--watch`` beside options that only check.

    Raises:
        UsageError: another one is given.
    """
    writes = arguments.fix or arguments.diff or arguments.patch_dir or arguments.add_noqa
    once = arguments.write_baseline or arguments.show_files or arguments.show_settings
    if writes or once or arguments.clear_cache or "-" in arguments.paths:
        raise UsageError("--watch only checks files: it fixes, writes and lists nothing")


def watch(arguments: argparse.Namespace, once: Callable[[], OptionsOf]) -> int:
    """Check, wait for a change, and so on until Ctrl-C; ``once`` checks and says what holds."""
    gc.enable()  # each check leaves a model behind
    options: OptionsOf | None = None
    try:
        while True:
            if sys.stdout.isatty():
                sys.stdout.write(_CLEAR)
            before = _state(arguments.paths, options)
            try:
                options = once()
            except UsageError as error:  # a configuration that is being written
                complain(str(error))
            sys.stdout.flush()
            if not arguments.quiet:
                print("Waiting for changes; press Ctrl-C to stop.", file=sys.stderr, flush=True)
            _wait(arguments.paths, options, before)
    except KeyboardInterrupt:
        return CLEAN


def _wait(paths: Sequence[str], options: OptionsOf | None, before: dict[str, object]) -> None:
    pause = _PAUSE
    while True:
        started = time.perf_counter()
        if _state(paths, options) != before:
            return
        pause = max(_PAUSE, _REST * (time.perf_counter() - started))
        time.sleep(pause)


def _state(paths: Sequence[str], options: OptionsOf | None) -> dict[str, object]:
    """What is seen from outside of each file that a check may read."""
    from sampler_lint.config import FILES
    from sampler_lint.options import DEFAULTS
    from sampler_lint.roots import project_root, upwards
    from sampler_lint.trees import find

    roots = sorted({project_root(path) for path in paths})
    files = {*find(roots, options or (lambda folder: DEFAULTS)).files}
    folders = {os.path.dirname(os.path.abspath(path)) for path in (*files, *paths)}
    above = {each for root in roots for each in upwards(os.path.abspath(root))}
    for folder in folders | above:
        files |= {os.path.join(folder, name) for name in (*FILES, ".gitignore")}
    return {path: _stamp(path) for path in files}


def _stamp(path: str) -> object:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
