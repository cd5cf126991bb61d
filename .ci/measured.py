"""Branch coverage of the tests, by SlipCover, which leaves code alone that it has seen run.

    python .ci/measured.py install           # each Python of this environment asks from now on
    MEASURED=folder python -m pytest         # and is measured where a folder is named
    python .ci/measured.py report folder

Of the processes that pytest-xdist shares the tests among, the first is measured: measuring takes
half as long again, and what a half of the tests runs is nearly what all of them do. So the report
is of what runs at least. All of ``src`` is measured in that process and in what it forks. What a
test starts as a program of its own is measured in ``harness`` only, much of which runs nowhere
else, and each sixth one: to prepare a module for measuring takes longer than most programs run.
"""

from __future__ import annotations

import functools
import os
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from importlib.abc import Loader

    from slipcover import Slipcover

SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
HARNESS = os.path.join(SOURCE, "sampler_lint", "harness")
#: What the processes begin with that pytest-xdist shares the tests among; pip has others with `-c`.
_EXECNET = "import sys;exec(eval(sys.stdin.readline()))"


def install() -> None:
    """Let each Python that is started in this environment import this module, if it is measured."""
    import sysconfig

    here = os.path.dirname(os.path.abspath(__file__))
    line = f"import os, sys; sys.path.append({here!r}); import measured; measured.start()"
    with open(os.path.join(sysconfig.get_path("purelib"), "measured.pth"), "w") as file:
        file.write(f"import os; 'MEASURED' in os.environ and exec({line!r})\n")


@functools.cache  # a folder with this in it may be looked through twice
def start() -> None:
    """Measure this process and what is forked from it."""
    # Set by pytest-xdist for what its processes start, and for themselves only when they run.
    is_started_by_a_test = "PYTEST_XDIST_WORKER" in os.environ
    if not is_started_by_a_test and _EXECNET in sys.orig_argv and not _is_first():
        del os.environ["MEASURED"]  # for what its tests start, too
        return
    if is_started_by_a_test and os.getpid() % 6:
        return
    measured = HARNESS if is_started_by_a_test else SOURCE

    def finder(folder: str) -> FileFinder:
        if f"{folder}/".startswith(f"{measured}/"):
            return FileFinder(folder, (_loader, [".py"]))
        raise ImportError(folder)

    # Not among the finders, where pytest's own comes first and SlipCover leaves branches to it.
    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.clear()


def _is_first() -> bool:
    """Whether no other process that runs tests has asked before."""
    try:
        os.close(os.open(os.path.join(os.environ["MEASURED"], "first"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _loader(name: str, path: str) -> Loader:
    from slipcover.importer import SlipcoverLoader

    return SlipcoverLoader(_measuring(), SourceFileLoader(name, path), path)


@functools.cache
def _measuring() -> Slipcover:
    """What measures: it leaves a file in the folder that ``MEASURED`` names."""
    import atexit
    import json
    import time

    import slipcover

    # At once: else it looks through all functions, now and then, for those that have run.
    measuring = slipcover.Slipcover(branch=True, immediate=True, exclude_lines=[])
    folder, leave, first = os.environ["MEASURED"], os._exit, os.getpid()
    named: dict[int, str] = {}

    def save() -> None:
        process = os.getpid()  # a number that another may have had before
        path = named.setdefault(process, f"{folder}/{process}-{time.time_ns()}.json")
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            # Lines are numbers, and branches pairs; what is forked knows of few others.
            all_there = (measuring.code_lines, measuring.code_branches)
            parts = (measuring.newly_seen, *(all_there if process == first else ()))
            json.dump([{name: [*some] for name, some in part.items()} for part in parts], file)
        os.replace(file.name, path)  # whole, also where a test kills the process meanwhile

    def save_and_leave(status: int) -> NoReturn:
        try:
            save()
        finally:
            leave(status)

    atexit.register(save)
    os._exit = save_and_leave
    return measuring


def report(folder: str) -> None:
    """Print what was run by no process, of each file of the source."""
    import json
    from pathlib import Path

    import slipcover

    found = slipcover.Slipcover(branch=True, source=[SOURCE], exclude_lines=[])
    tables = (found.newly_seen, found.code_lines, found.code_branches)
    for path in Path(folder).glob("*.json"):
        parts = json.loads(path.read_text("utf-8"))  # of what was forked, the first one
        for into, part in zip(tables, parts, strict=False):
            for name, some in part.items():
                into[name].update(tuple(each) if isinstance(each, list) else each for each in some)
    slipcover.print_coverage(found.get_coverage(), skip_covered=True, missing_width=80)


if __name__ == "__main__":
    {"install": install, "report": report}[sys.argv[1]](*sys.argv[2:])
