"""Many programs in one tree beside one run for each, and the memory of big trees and of edits.

    python benchmarks/monorepo.py

The programs are those of the fixtures, again and again. In one tree they are to cost what they cost
one by one, or less, and to have the same findings. The peak is that of one cold run over about
100 000 candidate lines. The edits are an editor's, each checked with what the session kept and
followed by the collection that the language server makes; what the process holds is told as it
goes, and is to stay flat. CPU seconds of this process without start-up; memory in MB.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from growth import REPOSITORY, make_tree

from sampler_lint import engine
from sampler_lint.findings import Finding

#: Of the fixtures' programs, so many times: about 100 000 candidate lines.
COPIES = 16
PEAK_BAR = 300


def programs(folder: Path, count: int) -> list[Path]:
    """So many programs below a folder, each in a folder of its own."""
    bad = sorted((REPOSITORY / "fixtures").glob("SMP*/*/bad"))
    made = [folder / f"program_{number}" for number in range(count)]
    for number, program in enumerate(made):
        shutil.copytree(bad[number % len(bad)], program)
    (folder / "pyproject.toml").write_text("")
    return made


def _found(root: Path, findings: list[Finding]) -> Counter[tuple[str, str, int]]:
    return Counter(
        (os.path.relpath(each.path, root), each.code, each.start.row) for each in findings
    )


def together_and_apart(folder: Path, count: int) -> tuple[float, float, bool]:
    """The seconds of one check of all and of one check of each; whether both find the same."""
    tree = folder / "tree"
    made = programs(tree, count)
    started = time.process_time()
    whole = _found(tree, engine.check([str(tree)], edits=False).findings)
    together = time.process_time() - started
    apart, found = 0.0, Counter[tuple[str, str, int]]()
    for program in made:
        alone = folder / "alone" / program.name
        shutil.copytree(program, alone)
        (alone / "pyproject.toml").touch()
        started = time.process_time()
        found += _found(folder / "alone", engine.check([str(alone)], edits=False).findings)
        apart += time.process_time() - started
        gc.collect()
    return together, apart, found == whole


def peak(folder: Path, copies: int) -> float:
    """The most memory that a cold run over the fixtures' programs takes, so many times over."""
    make_tree(folder, copies)
    command = [sys.executable, "-m", "sampler_lint", "--isolated", "--no-cache", "--jobs", "1", "."]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in {0, 1}, process.returncode
    return usage.ru_maxrss / 1024


def held_after_edits(folder: Path, count: int) -> list[tuple[int, float]]:
    """What the process holds after so many edits of one file."""
    [program, *_] = programs(folder, 10)
    path = next(iter(sorted(program.rglob("*.py"))))
    text = path.read_text(encoding="utf-8")
    session = engine.Session()
    held = []
    for number in range(1, count + 1):
        overlay = {str(path): f"{text}\n\nCOUNT = {number}\n".encode()}
        engine.check([str(path)], overlay=overlay, session=session)
        gc.collect()
        if number % max(1, count // 5) == 0 or number == min(20, count):
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            held.append((number, pages * resource.getpagesize() / 2**20))
    return held


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--copies", type=int, default=COPIES, help="of the fixtures, for the peak")
    parser.add_argument("--edits", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, megabytes in held_after_edits(folder / "edited", arguments.edits):
            print(f"after {number} edits: {megabytes:.0f} MB", flush=True)
        most = peak(folder / "peak", arguments.copies)
        print(f"peak of {arguments.copies} copies: {most:.0f} MB (bar {PEAK_BAR})", flush=True)
        together, apart, same = together_and_apart(folder / "programs", arguments.programs)
        print(
            f"{arguments.programs} programs: {together:.1f} s in one tree, {apart:.1f} s apart; "
            f"{'the same' if same else 'OTHER'} findings"
        )


if __name__ == "__main__":
    main()
