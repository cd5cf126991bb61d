"""Try the linter on programs that nobody would write: mutants of real ones, and random syntax.

``python benchmarks/fuzz.py --minutes 30 --save /tmp/crashes`` takes the fixtures and the sources of
installed packages that speak of samplers, swaps, drops, doubles and splices their lines, tokens and
bytes, and runs ``check`` with every rule and ``fix`` with every fix on each mutant, in a process
with a limit of memory, each with a limit of time. What goes wrong is saved, made smaller, as a tree
from which to make a test.

A mutant must not: raise, take longer than the limit, leave a file that does not compile where it
compiled before, change when it is fixed a second time, or change where nothing was found.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import io
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
import tokenize
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sampler_lint import engine
from sampler_lint.engine import Options
from sampler_lint.source import is_candidate

REPOSITORY = Path(__file__).resolve().parents[1]
SECONDS = 20
MEMORY = 3 << 30
BATCH = 25

Tree = dict[str, bytes]


class TooSlowError(Exception):
    """A mutant took longer than a file may."""


# -- where programs come from


def programs(packages: bool) -> list[Tree]:
    """Small trees of real code: the fixtures' programs, and files of installed packages."""
    trees = []
    for part in sorted(REPOSITORY.glob("fixtures/*/*/*/train.py")):
        files = part.parent.rglob("*.py")
        trees.append(
            {path.relative_to(part.parent).as_posix(): path.read_bytes() for path in files}
        )
    if packages:
        for folder in map(Path, sys.path):
            if folder.name == "site-packages":
                small = (each for each in sorted(folder.rglob("*.py")) if _is_small(each))
                trees += [{each.name: each.read_bytes()} for each in small]
    return trees


def _is_small(path: Path) -> bool:
    return path.stat().st_size < 60_000 and is_candidate(path.read_bytes())


def random_programs(seed: int) -> Iterator[Tree]:
    """Random syntax from hypothesmith's grammar, beside a fixture that makes it matter."""
    import libcst._nodes.whitespace  # noqa: F401  hypothesmith forgets it
    import hypothesmith  # isort: skip
    from hypothesis import HealthCheck, given, settings
    from hypothesis import seed as seeded

    made: list[str] = []

    @seeded(seed)
    @settings(max_examples=BATCH, database=None, suppress_health_check=list(HealthCheck))
    @given(hypothesmith.from_node())
    def collect(code: str) -> None:
        made.append(code)

    collect()
    head = "from torch.utils.data import DataLoader, DistributedSampler, Sampler\n"
    for code in made:
        yield {"made.py": (head + code).encode("utf-8", "surrogatepass")}


# -- how they are changed


def mutant(trees: Sequence[Tree], rng: random.Random) -> Tree:
    """One of the trees with a few changes in one of its files."""
    tree = dict(rng.choice(trees))
    name = rng.choice(sorted(tree))
    data = tree[name]
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        data = rng.choice(CHANGES)(data, rng, trees)
    tree[name] = data
    return tree


def _lines(data: bytes, rng: random.Random, trees: Sequence[Tree]) -> bytes:
    """Drop, double, move or indent some lines, or take some of another program."""
    lines = data.splitlines(keepends=True) or [b"\n"]
    at = rng.randrange(len(lines))
    run = lines[at : at + rng.randint(1, 8)]
    rest = lines[:at] + lines[at + len(run) :]
    what = rng.randrange(5)
    if what == 0:
        return b"".join(rest)
    if what == 1:
        other = rng.choice(sorted(rng.choice(trees).items()))[1].splitlines(keepends=True)
        start = rng.randrange(len(other) or 1)
        run = other[start : start + rng.randint(1, 20)]
        rest = lines
    if what == 2:
        run = [b"    " + line for line in run]
    if what == 3:
        run = [line.removeprefix(b"    ") for line in run]
    to = rng.randint(0, len(rest))
    return b"".join([*rest[:to], *run, *rest[to:]])


def _tokens(data: bytes, rng: random.Random, trees: Sequence[Tree]) -> bytes:
    """Put a token of the program, or a keyword, in the place of another."""
    try:
        tokens = [
            token
            for token in tokenize.tokenize(io.BytesIO(data).readline)
            if token.string.strip() and token.start[0] == token.end[0]
        ]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return data
    if len(tokens) < 3:
        return data
    old, new = rng.choice(tokens[1:]), rng.choice(tokens[1:]).string
    if rng.random() < 0.3:
        new = rng.choice(_WORDS)
    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    row, column = old.start
    line = lines[row - 1]
    lines[row - 1] = line[:column] + new + line[column + len(old.string) :]
    return "".join(lines).encode()


_WORDS = (
    *("None", "True", "self", "cls", "lambda: 0", "[]", "{}", "()", "*args", "**kwargs", "..."),
    *("0", "-1", "10**30", "1.5", "''", "yield", "await x", "return", "pass", "del", "global"),
    *("super()", "DistributedSampler", "DataLoader", "set_epoch", "__len__", "__iter__", "rank"),
    *("num_replicas", "batch_sampler", "sampler", "seed", "epoch", "not", "or", "walrus := 1"),
)


def _bytes(data: bytes, rng: random.Random, trees: Sequence[Tree]) -> bytes:
    """Change some bytes into any others."""
    changed = bytearray(data or b" ")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed))
        changed[at : at + rng.randint(0, 2)] = rng.choice(_PIECES)
    return bytes(changed)


_PIECES = (
    *(b"\x00", b"\xff", b"\r", b"\x0c", b"\t", b"\\\n", b'"""', b"'", b"#", b";", b"("),
    *(b")", b"\xef\xbb\xbf", "é𝄞".encode(), b"\xed\xa0\x80", b"\xe2\x80\xa8", b"%", b":"),
)


def _newlines(data: bytes, rng: random.Random, trees: Sequence[Tree]) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n")))


Change = Callable[[bytes, random.Random, Sequence[Tree]], bytes]
CHANGES: tuple[Change, ...] = (*(_lines,) * 6, *(_tokens,) * 6, _bytes, _newlines)


# -- what must hold


def problem(tree: Tree) -> str:
    """What goes wrong with a tree; empty if nothing does."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        root = Path(folder)
        (root / "pyproject.toml").touch()
        for name, data in tree.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        # Its own seconds, however busy the machine is.
        signal.signal(signal.SIGPROF, _too_slow)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            return _judge(root)
        except TooSlowError:
            return f"took more than {SECONDS} s\n{traceback.format_exc(limit=-6)}"
        except Exception:
            return traceback.format_exc(limit=-8)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def _too_slow(*_: object) -> None:
    raise TooSlowError


def _judge(root: Path) -> str:
    options = Options(select=("ALL",))
    found = engine.check([str(root)], options).findings
    first = engine.fix([str(root)], options, unsafe=True, write=False)
    if first.changed and not found:
        return "changed where nothing was found"
    after = {path: new for path, (_, new) in first.changed.items()}
    for path, (old, new) in first.changed.items():
        if _compiles(old) and not _compiles(new):
            return f"{os.path.basename(path)} no longer compiles"
    again = engine.fix([str(root)], options, unsafe=True, write=False, overlay=after)
    if again.changed:
        return "a second fix changes it again"
    return ""


def _compiles(data: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(data, "mutant", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def smaller(tree: Tree, said: str) -> Tree:
    """The tree with as many lines taken out as can be, still wrong in the same way."""
    kind = _kind(said)
    for name in sorted(tree):
        size = max(1, len(tree[name].splitlines()) // 2)
        while size:
            lines, at = tree[name].splitlines(keepends=True), 0
            while at < len(lines):
                shorter = {**tree, name: b"".join(lines[:at] + lines[at + size :])}
                if _kind(problem(shorter)) == kind:
                    tree, lines = shorter, shorter[name].splitlines(keepends=True)
                else:
                    at += size
            size //= 2
    return tree


def _kind(said: str) -> str:
    """What makes two problems the same: the error, and where it was raised."""
    lines = said.strip().splitlines()
    places = [line for line in lines if line.lstrip().startswith("File ")]
    return " | ".join([lines[-1].split(":")[0], *places[-1:]]) if lines else ""


# -- the run


def _work(seed: int, packages: bool, queue: multiprocessing.Queue[tuple[Tree, str] | None]) -> None:
    """A batch of mutants in a process of its own; whatever kills it is a finding, too."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    if seed % 10 == 0 and _has_hypothesmith():
        trees = list(random_programs(seed))
    else:
        known = programs(packages)
        trees = [mutant(known, rng) for _ in range(BATCH)]
    for tree in trees:
        queue.put((tree, ""))  # should this process die, the last one tried is known
        said = problem(tree)
        if said:
            queue.put((tree, said))
    queue.put(None)


def _has_hypothesmith() -> bool:
    return importlib.util.find_spec("hypothesmith") is not None


def batch(seed: int, packages: bool) -> Iterator[tuple[Tree, str]]:
    """Run a batch; yield what went wrong."""
    queue: multiprocessing.Queue[tuple[Tree, str] | None] = multiprocessing.Queue()
    process = multiprocessing.Process(target=_work, args=(seed, packages, queue))
    process.start()
    last: Tree = {}
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
        if said[1]:
            yield said
    process.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0, help="of the first batch")
    parser.add_argument("--save", type=Path, help="where trees that go wrong are put")
    parser.add_argument("--packages", action="store_true", help="mutate installed packages, too")
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    kinds: Counter[str] = Counter()
    seed, tried = arguments.seed, 0
    while time.monotonic() < end:
        for tree, said in batch(seed, arguments.packages):
            kind = _kind(said)
            kinds[kind] += 1
            if kinds[kind] == 1:
                print(f"seed {seed}: {said}", flush=True)
                if arguments.save and tree:
                    tree = smaller(tree, said)
                    name = hashlib.sha256(kind.encode()).hexdigest()[:10]
                    for path, data in tree.items():
                        target = arguments.save / name / path
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.write_bytes(data)
        seed += 1
        tried += BATCH
    print(f"{tried} programs in {arguments.minutes:g} minutes, {len(kinds)} kinds of problems")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
