"""Try the linter on programs that nobody would write: mutants of real ones, and random syntax.

``python benchmarks/fuzz.py --minutes 30 --save /tmp/crashes`` takes the fixtures, the tests'
snippets and, where asked for, other trees and the installed packages that speak of samplers; swaps,
drops, doubles, wraps and splices their lines, tokens, syntax and bytes; joins them by imports and
cuts them in two; and shows each to one of the stages in ``fuzzing/stages.py``, which say what must
hold. That is done in a process with a limit of memory, each program with a limit of time. What goes
wrong is saved, made smaller, as a tree from which to make a test; ``--again FOLDER`` tries that.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzzing.mutants import mutant
from fuzzing.programs import Tree, below, installed, own, random_programs
from fuzzing.stages import STAGES, written

SECONDS = 10
"""Of the processor's time, for one program at one stage (some check it a dozen times)."""
MEMORY = 3 << 30
MEGABYTES = 500
BATCH = 25
SMALLER_SECONDS = 120


class TooSlowError(BaseException):
    """A program took longer than it may; no ``except Exception`` is to catch it."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program at a stage."""

    stage: str
    tree: Tree
    luck: int

    def problem(self) -> str:
        """What goes wrong with it; empty if nothing does."""
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            root = Path(folder, "tree")
            (root / "pyproject.toml").parent.mkdir()
            (root / "pyproject.toml").touch()
            written(root, self.tree)
            # Its own seconds, however busy the machine is.
            signal.signal(signal.SIGPROF, _too_slow)
            signal.setitimer(signal.ITIMER_PROF, SECONDS, 0.1)
            try:
                said = STAGES[self.stage][0](root, dict(self.tree), random.Random(self.luck))
            except TooSlowError:
                said = f"took more than {SECONDS} s\n{traceback.format_exc(limit=-6)}"
            except Exception:
                said = traceback.format_exc(limit=-8)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            return said.replace(folder, "")


def _too_slow(*_: object) -> None:
    raise TooSlowError


def case(trees: Sequence[Tree], rng: random.Random, stage: str = "") -> Case:
    """A mutant at some stage."""
    names, weights = zip(*((name, weight) for name, (_, weight) in STAGES.items()), strict=True)
    chosen = stage or rng.choices(names, weights)[0]
    return Case(chosen, mutant(trees, rng), rng.getrandbits(32))


def smaller(case: Case, said: str) -> Case:
    """The case with as many files and lines taken out as can be, still wrong in the same way."""
    kind = _kind(said)

    def is_as_bad(tree: Tree) -> bool:
        return bool(tree) and _kind(Case(case.stage, tree, case.luck).problem()) == kind

    tree = case.tree
    end = time.monotonic() + SMALLER_SECONDS
    for name in sorted(tree):
        rest = {other: data for other, data in tree.items() if other != name}
        tree = rest if is_as_bad(rest) else tree
    for name in sorted(tree):
        size = max(1, len(tree[name].splitlines()) // 2)
        while size:
            at = 0
            while at < len(lines := tree[name].splitlines(keepends=True)):
                if time.monotonic() > end:
                    return Case(case.stage, tree, case.luck)
                shorter = {**tree, name: b"".join(lines[:at] + lines[at + size :])}
                if is_as_bad(shorter):
                    tree = shorter
                else:
                    at += size
            size //= 2
    return Case(case.stage, tree, case.luck)


def _kind(said: str) -> str:
    """What makes two problems the same: the error, and where it was raised."""
    lines = said.strip().splitlines()
    if not lines:
        return ""
    places = [line for line in lines if line.lstrip().startswith("File ")]
    last = lines[-1] if places else lines[0]
    return " | ".join([last.split(":")[0][:60], *places[-1:]])


# -- the run


def _work(seed: int, chosen: Chosen, queue: multiprocessing.Queue[tuple[Case, str] | None]) -> None:
    """A batch of mutants in a process of its own; whatever kills it is a finding, too."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    groups = chosen.groups
    if seed % 10 == 0 and importlib.util.find_spec("hypothesmith") is not None:
        groups = [random_programs(seed, BATCH)]
    for _ in range(BATCH):
        trees = rng.choices(groups, [6, 1, 1][: len(groups)])[0]
        tried = case(trees, rng, chosen.stage)
        queue.put((tried, ""))  # should this process die, the last one tried is known
        before = _megabytes()
        said = tried.problem()
        if not said and _megabytes() > max(MEGABYTES, before + 100):
            said = f"takes memory\n{_megabytes()} MB"
        if said:
            queue.put((tried, said))
    queue.put(None)


def _megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@dataclass(frozen=True, slots=True)
class Chosen:
    """What to mutate, the kind that is taken most often first, and where to try it."""

    groups: list[list[Tree]]
    stage: str = ""


def batch(seed: int, chosen: Chosen) -> Iterator[tuple[Case | None, str]]:
    """Run a batch; yield each case, and again with what went wrong."""
    queue: multiprocessing.Queue[tuple[Case, str] | None] = multiprocessing.Queue()
    process = multiprocessing.Process(target=_work, args=(seed, chosen, queue))
    process.start()
    last: Case | None = None
    while True:
        try:
            said = queue.get(timeout=20 * SECONDS)
        except Exception:
            process.kill()
            yield last, f"the process hung or died with {process.exitcode}"
            break
        if said is None:
            break
        last = said[0]
        yield said
    process.join()


def save(case: Case, said: str, folder: Path) -> None:
    written(folder, {f"tree/{name}": data for name, data in case.tree.items()})
    (folder / "said").write_text(f"{case.stage} {case.luck}\n{said}", "utf-8", "replace")


def saved(folder: Path) -> Case:
    stage, luck = (folder / "said").read_text("utf-8").split("\n", 1)[0].split()
    files = [path for path in (folder / "tree").rglob("*") if path.is_file()]
    tree = {path.relative_to(folder / "tree").as_posix(): path.read_bytes() for path in files}
    return Case(stage, tree, int(luck))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0, help="of the first batch")
    parser.add_argument("--stage", choices=STAGES, default="", help="only this one")
    parser.add_argument("--save", type=Path, help="where trees that go wrong are put")
    parser.add_argument("--again", type=Path, help="try a tree that was put there")
    parser.add_argument("--packages", action="store_true", help="mutate installed packages, too")
    parser.add_argument("--trees", type=Path, help="mutate the programs in this folder, too")
    arguments = parser.parse_args()
    if arguments.again:
        said = saved(arguments.again).problem()
        print(said or "nothing goes wrong")
        return bool(said)
    groups = [own(), installed() if arguments.packages else []]
    groups.append(list(below(arguments.trees)) if arguments.trees else [])
    chosen = Chosen([group for group in groups if group], arguments.stage)
    end = time.monotonic() + 60 * arguments.minutes
    kinds: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    took: defaultdict[str, float] = defaultdict(float)
    seed = arguments.seed
    while time.monotonic() < end:
        started, stage = time.monotonic(), ""
        for one, said in batch(seed, chosen):
            took[stage] += time.monotonic() - started
            started, stage = time.monotonic(), one.stage if one else ""
            if not said:
                tried[stage] += 1
                continue
            kind = f"{stage}: {_kind(said)}"
            kinds[kind] += 1
            if kinds[kind] == 1:
                print(f"seed {seed}, {stage}: {said}", flush=True)
                if arguments.save and one:
                    name = hashlib.sha256(kind.encode()).hexdigest()[:10]
                    save(one, said, arguments.save / name)
                    save(smaller(one, said), said, arguments.save / name)
        took[stage] += time.monotonic() - started
        seed += 1
    for stage, count in sorted(tried.items()):
        print(f"{count:7} programs in {took[stage] / 60:5.1f} minutes: {stage}")
    minutes = f"{arguments.minutes:g} minutes, seeds {arguments.seed} to {seed - 1}"
    print(f"{tried.total()} programs in {minutes}, {len(kinds)} kinds of problems")
    for kind, count in kinds.items():
        print(f"{count:7} times {kind}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
