"""The main job on the shipped fixtures, as anyone would type it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: The fixture whose finding, fix and proof are shown, here and in the README.
SHOWN = Path("fixtures", "SMP101", "torch-batch-sampler")


def run(repository: Path) -> int:
    """Show one finding and its fix, then the proofs of all; 1 unless all went as it should."""
    bad = SHOWN.joinpath("bad").as_posix()
    steps = (
        ("A finding:", (bad,), 1),
        ("Its fix:", ("--diff", bad), 1),
        ("The proof of every fix, on gloo ranks (a minute):", ("verify", "fixtures"), 0),
    )
    well = True
    for title, arguments, expected in steps:
        sys.stdout.write(f"\n{title}\n\n$ sampler-lint {' '.join(arguments)}\n")
        sys.stdout.flush()
        well &= command(arguments, cwd=repository).returncode == expected
    return int(not well)


def command(
    arguments: Sequence[str], *, cwd: Path, capture: bool = False
) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, in the environment of a plain terminal."""
    return subprocess.run(
        [sys.executable, "-m", "sampler_lint", *arguments],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE if capture else None,
        stderr=subprocess.PIPE if capture else None,
        encoding="utf-8",
        check=False,
    )
