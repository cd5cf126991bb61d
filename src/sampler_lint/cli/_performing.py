"""Options about the time a run takes, and how it is reported."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sampler_lint.cli._common import UsageError, positive

if TYPE_CHECKING:
    from sampler_lint.cache import Cache
    from sampler_lint.cli._progress import Progress
    from sampler_lint.timings import Timings, Watch

_SLOWEST = 10
_SOON = 0.5


def add_performing(parser: argparse.ArgumentParser) -> None:
    """Options about the time a run takes."""
    group = parser.add_argument_group("performing")
    group.add_argument(
        "-w",
        "--watch",
        action="store_true",
        help="check again whenever a file changes, until Ctrl-C",
    )
    group.add_argument(
        "-n", "--no-cache", action="store_true", help="do not read or write the cache"
    )
    group.add_argument(
        "--cache-dir",
        metavar="DIR",
        help="the cache's folder (default: sampler-lint in $XDG_CACHE_HOME or ~/.cache)",
    )
    group.add_argument("--clear-cache", action="store_true", help="delete the cache and exit")
    group.add_argument(
        "--jobs", metavar="N", type=positive, help="number of worker processes (default: 2)"
    )
    group.add_argument(
        "--show-traceback",
        action="store_true",
        help="print the traceback if a rule crashes",
    )
    group.add_argument(
        "--timings", action="store_true", help="print where the time went to standard error"
    )


def cache_of(arguments: argparse.Namespace) -> Cache | None:
    """Where to keep findings; None if the run is to keep nothing."""
    from sampler_lint.cache import Cache, default_folder

    if arguments.no_cache:
        return None
    return Cache(os.path.abspath(arguments.cache_dir or default_folder()))


def jobs_of(arguments: argparse.Namespace) -> int:
    """How many processes may work."""
    given: int | None = arguments.jobs
    return given or min(2, os.cpu_count() or 1)


@contextlib.contextmanager
def progress(arguments: argparse.Namespace, total: int = 1) -> Iterator[Progress | None]:
    """A bar for what takes longer than a moment; None if nobody would see it, or wants to."""
    if arguments.quiet or not sys.stderr.isatty():
        yield None
        return
    from sampler_lint.cli._progress import Progress

    with Progress(total, sys.stderr, delay=_SOON) as bar:
        yield bar


@contextlib.contextmanager
def watching(arguments: argparse.Namespace) -> Iterator[Watch | None]:
    """The bar of a check."""
    with progress(arguments) as bar:
        yield bar.watch if bar is not None else None


def clear_cache(arguments: argparse.Namespace) -> str:
    """Delete what is kept between runs; a sentence that says what went.

    Raises:
        UsageError: there is something that cannot be deleted.
    """
    from sampler_lint.cache import Cache, default_folder

    cache = Cache(os.path.abspath(arguments.cache_dir or default_folder()))
    try:
        count = cache.clear()
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be deleted: {error.strerror}") from error
    return f"Deleted {count} records in {cache.folder}."


def tell_timings(timings: Timings, total: float) -> None:
    """Write where the time went to standard error."""
    from sampler_lint.reporters.text import visible

    lines = [f"{total:8.3f} s  in all, without starting Python"]
    lines += [f"{seconds:8.3f} s  {stage}" for stage, seconds in timings.stages.items()]
    for title, seconds_of in (("rules", timings.rules), ("files", timings.files)):
        slowest = sorted(seconds_of.items(), key=lambda item: -item[1])[:_SLOWEST]
        if slowest:
            lines.append(f"slowest {title}:")
            lines += [f"{seconds:8.3f} s  {visible(name)}" for name, seconds in slowest]
    lines += [f"given up: {count} {what}" for what, count in timings.limits.items() if count]
    print("\n".join(lines), file=sys.stderr)
