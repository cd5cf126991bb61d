"""Processes of a command that read data unseen: Python programs that the recorder is not in."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator
from itertools import takewhile
from pathlib import Path

from sampler_lint.harness.inside.heirs import SITE, is_recorded

#: A library that every process with torch in it has loaded.
_TORCH = b"/libtorch"

#: Characters of a command that are shown.
_SHOWN = 80


def unrecorded(pids: Collection[int]) -> Iterator[str]:
    """Each of the processes that has torch and not the recorder: its command, and why."""
    for pid in pids:
        folder = Path("/proc", str(pid))
        try:
            argv = [os.fsdecode(one) for one in (folder / "cmdline").read_bytes().split(b"\0")[:-1]]
            pairs = [os.fsdecode(one) for one in (folder / "environ").read_bytes().split(b"\0")]
            why = _why(argv, dict(one.split("=", 1) for one in pairs if "=" in one))
            if why and _TORCH in (folder / "maps").read_bytes():
                yield f"`{shlex.join(argv)[:_SHOWN]}`: {why}"
        except OSError:  # gone, or another user's
            continue


def _why(argv: list[str], environment: dict[str, str]) -> str:
    options = takewhile(lambda one: one[:1] == "-" and one[1:2] not in "cm-", argv[1:])
    isolated = sorted({*"IES"} & set("".join(options)))
    if isolated:
        return f"Python is run with -{isolated[0]}"
    if is_recorded(environment):
        return ""
    paths = environment.get("PYTHONPATH", "")
    if SITE in paths.split(os.pathsep):
        return "it was given a new environment"
    if not paths:
        return "PYTHONPATH was removed from its environment"
    return f"PYTHONPATH was replaced by {paths}; append $PYTHONPATH to it"
