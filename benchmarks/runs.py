"""What `sampler-lint trace` says of small training programs, right ones and ones with a bug.

The programs are in ``runs/``: after ``header.txt``, each begins with a line ``######## family/name
@ranks: codes``, where any of the codes names its bug, and ``-`` says that it is right. Each is run
on forked gloo ranks, and what the record shows is compared. Printed are the misses, the false
alarms, and the figures of each family.

    python benchmarks/runs.py [--frameworks] [names ...]
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sampler_lint.harness.diagnosis import diagnose
from sampler_lint.harness.world import World

FOLDER = Path(__file__).parent / "runs"
PLAIN = (
    "programs.txt",
    "second.txt",
    "third.txt",
    "fourth.txt",
    "fifth.txt",
    "sixth.txt",
    "seventh.txt",
    "eighth.txt",
    "ninth.txt",
    "tenth.txt",
    "eleventh.txt",
    "twelfth.txt",
    "thirteenth.txt",
    "fourteenth.txt",
    "fifteenth.txt",
    "eighteenth.txt",
    "twentyfirst.txt",
    "twentysecond.txt",
)
FRAMEWORKS = (
    "frameworks.txt",
    "second_frameworks.txt",
    "third_frameworks.txt",
    "fourth_frameworks.txt",
    "fifth_frameworks.txt",
    "ninth_frameworks.txt",
    "fourteenth_frameworks.txt",
    "fifteenth_frameworks.txt",
    "sixteenth_frameworks.txt",
    "seventeenth_frameworks.txt",
    "eighteenth_frameworks.txt",
    "nineteenth_frameworks.txt",
    "twentieth_frameworks.txt",
    "twentysecond_frameworks.txt",
)
#: What those import, so that their ranks need not.
IMPORTS = ("accelerate", "lightning", "torchdata.nodes", "transformers.trainer", "webdataset")


class Program(NamedTuple):
    name: str
    ranks: int
    codes: frozenset[str]
    """Any of them names its bug; none when it is right."""
    text: str


def programs(file: str) -> Iterator[Program]:
    header = (FOLDER / "header.txt").read_text("utf-8")
    titled = re.split(r"^#{8} (.*)\n", (FOLDER / file).read_text("utf-8"), flags=re.MULTILINE)
    for title, body in zip(titled[1::2], titled[2::2], strict=True):
        name, codes = title.split(":")
        name, _, ranks = name.partition(" @")
        told = frozenset(codes.split()) - {"-"}
        yield Program(name, int(ranks or 2), told, header + body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the names of programs; all by default")
    parser.add_argument("--frameworks", action="store_true", help="those that need a framework")
    arguments = parser.parse_args()
    files = [*PLAIN, *(FRAMEWORKS if arguments.frameworks else [])]
    chosen = [
        one
        for file in files
        for one in programs(file)
        if not arguments.names or any(name in one.name for name in arguments.names)
    ]
    tally: dict[str, Counter[str]] = {}
    started = time.monotonic()
    imports = IMPORTS if arguments.frameworks else ()
    with World(imports=imports) as world, tempfile.TemporaryDirectory() as folder:
        for number, program in enumerate(chosen):
            path = Path(folder) / f"train{number}.py"
            path.write_text(program.text, "utf-8")
            run = world.run(path, world_size=program.ranks, timeout=25)
            found = diagnose(run)
            codes = {one.code for one in found}
            family = tally.setdefault(program.name.partition("/")[0], Counter())
            if program.codes:
                family.update(bugs=1, found=bool(codes & program.codes))
                if not codes & program.codes:
                    print(f"missed {program.name}: {' or '.join(sorted(program.codes))}")
            else:
                family.update(right=1, false=bool(codes))
                if run.trouble:
                    print(f"failed {program.name}: {run.trouble}")
                for one in found:
                    print(f"false  {program.name}: {one.code} {one.message}")
    total: Counter[str] = sum(tally.values(), Counter())
    for name, one in [*tally.items(), ("all", total)]:
        counts = f"found {one['found']:3} of {one['bugs']:3}   false {one['false']:3}"
        print(f"{name:12} {counts} of {one['right']:3}")
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
