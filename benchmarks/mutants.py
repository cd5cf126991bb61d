"""How many broken samplers the linter tells from right ones.

    python benchmarks/mutants.py --each 3 --seed 5

``mutants.txt`` holds right samplers in many styles, each with a loop that trains on it. Of each,
small slips are made, one at a time: another attribute, no ``self.``, another operator, a part of a
slice or a statement left out, two statements swapped. What a slip breaks is found by running the
sampler with torch, in worlds of several sizes and ranks: what held of the right one and does not
hold of the slip. So nobody has to judge it, and the linter's own interpreter has no part in it.

A slip that fails in all worlds is loud: whoever trains sees it. One that leaves worlds without an
error is silent, which the linter is for. Of one after which all holds (``same``) nothing need be
said; what is said may be true of worlds that were not tried.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import itertools
import json
import os
import pickle
import random
import re
import resource
import sys
import tempfile
import types
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sampler_lint.cli import main as sampler_lint

PROGRAMS = Path(__file__).with_suffix(".txt")
SIZES = (5, 7, 8, 12, 13, 20, 24, 48)
RANKS = (1, 2, 3, 4)
#: More than any sampler here yields.
ENDLESS = 600
SECONDS = 40
OPERATORS = {"//": "%*", "+": "-*", "-": "+", "*": "+", "%": "*", "/": "*"}
COMPARISONS = {"<": ("<=", ">"), ">": (">=",), ">=": (">",), "==": ("!=", ">"), "<=": ("<",)}
#: Seeds are another matter: all programs here leave them at their default.
IGNORED = "SMP201,SMP203"

Slip = tuple[str, int, int, str]
World = tuple[int, int]


def programs() -> dict[str, str]:
    """The right samplers, by name."""
    parts = re.split(r"^==== ", PROGRAMS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}


# -- slips


class Slips:
    """The slips that can be made in the classes of a program."""

    def __init__(self, text: str, draw: random.Random) -> None:
        self.text, self.draw = text, draw
        self.lines = text.splitlines(keepends=True)

    def found(self) -> Iterator[Slip]:
        for cls in ast.parse(self.text).body:
            if isinstance(cls, ast.ClassDef):
                attributes = sorted({n.attr for n in ast.walk(cls) if self._is_own(n)})
                for method in cls.body:
                    if isinstance(method, ast.FunctionDef):
                        yield from self._in(method, attributes)

    def _in(self, method: ast.FunctionDef, attributes: list[str]) -> Iterator[Slip]:
        names = {n.id for n in ast.walk(method) if isinstance(n, ast.Name) and _is_stored(n)}
        local = sorted(names | {a.arg for a in method.args.args} - {"self"})
        for node in ast.walk(method):
            if self._is_own(node):
                yield from self._attribute(node, attributes, local)
            elif isinstance(node, ast.Name) and node.id in local and not _is_stored(node):
                for other in self._some(local, node.id, 1):
                    yield self._slip("another local", node, other)
                for other in self._some(attributes, "", 1):
                    yield self._slip("attribute for a local", node, f"self.{other}")
            elif isinstance(node, ast.BinOp):
                yield from self._between("operator", node.left, node.right, OPERATORS)
            elif isinstance(node, ast.Compare) and len(node.ops) == 1:
                yield from self._between("compare", node.left, node.comparators[0], COMPARISONS)
            elif isinstance(node, ast.Constant) and type(node.value) is int:
                yield self._slip("constant", node, str(node.value + 1))
            elif isinstance(node, ast.Slice):
                for part in filter(None, (node.lower, node.upper)):
                    yield self._slip("part of a slice", part, "")
                if node.step is not None:
                    start, end = self._span(node.step)
                    yield "part of a slice", self.text.rindex(":", 0, start), end, ""
            elif isinstance(node, ast.Call):
                yield from self._call(node)
            yield from self._statements(node)

    def _attribute(self, node: Any, attributes: list[str], local: list[str]) -> Iterator[Slip]:
        if _is_stored(node):
            yield self._slip("stored in a local", node, node.attr)
            for other in self._some(attributes, node.attr, 2):
                yield self._slip("stored elsewhere", node, f"self.{other}")
            return
        yield self._slip("self left out", node, node.attr)
        for other in self._some(attributes, node.attr, 3):
            yield self._slip("another attribute", node, f"self.{other}")
        for other in self._some(local, "", 1):
            yield self._slip("local for an attribute", node, other)

    def _call(self, node: ast.Call) -> Iterator[Slip]:
        if len(node.args) > 1 and not any(isinstance(arg, ast.Starred) for arg in node.args):
            yield self._swapped("arguments", node.args[0], node.args[1])
        if ast.unparse(node.func) == "math.ceil":
            yield self._slip("rounding", node.func, "math.floor")
        for keyword in node.keywords:
            if keyword.arg == "generator":
                start, end = self._span(keyword)
                yield "generator left out", self.text.rindex(",", 0, start), end, ""

    def _statements(self, node: ast.AST) -> Iterator[Slip]:
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if not isinstance(block, list):
                continue
            plain = [s for s in block if not _is_docstring(s)]
            for statement in plain:
                if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr, ast.If)):
                    yield self._slip("statement left out", statement, "pass")
            for first, second in itertools.pairwise(plain):
                yield self._swapped("order", first, second)

    def _between(self, kind: str, left: ast.expr, right: ast.expr, table: Any) -> Iterator[Slip]:
        start, end = self._span(left)[1], self._span(right)[0]
        spelled = self.text[start:end]
        for other in table.get(spelled.strip(" ()"), ()):
            yield kind, start, end, spelled.replace(spelled.strip(" ()"), other)

    def _slip(self, kind: str, node: Any, text: str) -> Slip:
        return (kind, *self._span(node), text)

    def _swapped(self, kind: str, first: Any, second: Any) -> Slip:
        (start, middle), (after, end) = self._span(first), self._span(second)
        text = self.text
        return kind, start, end, text[after:end] + text[middle:after] + text[start:middle]

    def _some(self, names: list[str], but: str, count: int) -> list[str]:
        others = [name for name in names if name != but]
        return self.draw.sample(others, min(count, len(others)))

    def _span(self, node: Any) -> tuple[int, int]:
        def offset(row: int, column: int) -> int:
            before = self.lines[row - 1].encode()[:column].decode()
            return sum(map(len, self.lines[: row - 1])) + len(before)

        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    @staticmethod
    def _is_own(node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        )


def _is_stored(node: Any) -> bool:
    return isinstance(node.ctx, ast.Store)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def mutants(text: str, each: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """The kind of a slip, its place and the program with it, so many of each kind."""
    draw = random.Random(seed)
    kinds: dict[str, list[Slip]] = defaultdict(list)
    for slip in Slips(text, draw).found():
        kinds[slip[0]].append(slip)
    for kind, slips in sorted(kinds.items()):
        draw.shuffle(slips)
        made = 0
        for _, start, end, new in slips:
            changed = text[:start] + new + text[end:]
            with contextlib.suppress(SyntaxError):
                compile(changed, "mutant", "exec")
                if changed != text and made < each:
                    made += 1
                    row = text.count("\n", 0, start) + 1
                    yield kind, f"{row}: {text[start:end]!r} -> {new!r}", changed


# -- what holds of a sampler


def behaviour(text: str) -> dict[World, dict[str, Any]]:
    """What holds of the sampler that a program builds, in each world."""
    module = types.ModuleType("mutant")
    sys.modules["mutant"] = module  # a dataclass looks itself up there
    exec(compile(text, "mutant", "exec"), module.__dict__)
    inner = "sampler.sampler.set_epoch" in text
    return {
        (size, ranks): _in_world(module.build, size, ranks, inner=inner)
        for size in SIZES
        for ranks in RANKS
    }


def _in_world(build: Callable[..., Any], size: int, ranks: int, *, inner: bool) -> dict[str, Any]:
    try:
        passes = [
            _passes(build, size, rank, ranks, (0, 1, 2), inner=inner) for rank in range(ranks)
        ]
        again = [_passes(build, size, rank, ranks, (1,), inner=inner)[0] for rank in range(ranks)]
    except Exception as error:
        return {"crash": type(error).__name__}
    every = [one for rank in passes for one in rank]
    epochs = [[_flat(rank[epoch][1]) for rank in passes] for epoch in range(3)]
    read = [Counter(i for part in parts for i in part) for parts in epochs]
    return {
        "crash": "",
        "ends": all(len(items) < ENDLESS for _, items in every),
        "length": all(said == len(items) for said, items in every),
        "even": all(len({len(rank[epoch][1]) for rank in passes}) == 1 for epoch in range(3)),
        "range": all(isinstance(i, (int, np.integer)) and 0 <= i < size for c in read for i in c),
        "something": all(items for _, items in every),
        "determined": all(one[1] == rank[1][1] for one, rank in zip(again, passes, strict=True)),
        "shuffles": size < 12 or all(_changes(rank) for rank in passes),
        "twice": max(sum(times.values()) - len(times) for times in read),
        "read": min(map(len, read)),
        "sizes": [
            sorted(Counter(_size(i) for r in passes for i in r[e][1]).items()) for e in range(3)
        ],
    }


def _passes(
    build: Callable[..., Any],
    size: int,
    rank: int,
    ranks: int,
    epochs: tuple[int, ...],
    *,
    inner: bool,
) -> list[tuple[Any, list[Any]]]:
    """What ``len()`` says and what is yielded, in each epoch, of one rank.

    The generators of the process are elsewhere on each rank and in each run.
    """
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(1000 * len(epochs) + 10 * size + rank)
    sampler = build(range(size), rank, ranks)
    found = []
    for epoch in epochs:
        (sampler.sampler if inner else sampler).set_epoch(epoch)
        found.append((len(sampler), list(itertools.islice(iter(sampler), ENDLESS))))
    return found


def _flat(items: list[Any]) -> list[Any]:
    return [i for each in items for i in (each if isinstance(each, (list, tuple)) else [each])]


def _size(item: Any) -> int:
    return len(item) if isinstance(item, (list, tuple)) else 0


def _changes(passes: list[tuple[Any, list[Any]]]) -> bool:
    return any(one[1] != passes[0][1] for one in passes[1:])


def broken(right: dict[World, dict[str, Any]], slip: Any) -> tuple[set[str], bool]:
    """What holds of the right sampler and not of the slip, and whether a world shows no error."""
    if not isinstance(slip, dict):
        return {slip}, slip == "endless"
    bad, silent = set(), False
    for world, known in right.items():
        found = slip[world]
        if found["crash"]:
            bad.add("crash")
            continue
        lost = {name for name, value in known.items() if value is True and found[name] is not True}
        if found["twice"] > known["twice"]:
            lost.add("read twice")
        if found["read"] < known["read"]:
            lost.add("not read")
        if found["sizes"] != known["sizes"]:
            lost.add("sizes")
        bad |= lost
        silent = silent or bool(lost)
    return bad, silent


# -- what the linter says


def told(text: str) -> set[tuple[str, str]]:
    """The findings, without their places."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("pyproject.toml").touch()
        Path("train.py").write_text(text, encoding="utf-8")
        said = io.StringIO()
        options = ["--isolated", "--select", "ALL", "--ignore", IGNORED, "--likely", "--no-cache"]
        with contextlib.redirect_stdout(said):
            sampler_lint([*options, "--exit-zero", "--output-format", "json", "train.py"])
        os.chdir("/")
    return {(found["code"], found["message"]) for found in json.loads(said.getvalue())}


def apart(work: Callable[[str], Any], text: str) -> Any:
    """What ``work`` makes of a program, in a process of its own, with limits."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        try:
            answer = work(text)
        except BaseException as error:
            answer = type(error).__name__
        with os.fdopen(writer, "wb") as stream:
            stream.write(pickle.dumps(answer))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else "endless"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--each", type=int, default=3, help="slips of each kind in each program")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--only", default="", help="programs whose name holds this")
    parser.add_argument("--list", action="store_true", help="name what was not told")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    table: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
    for name, text in programs().items():
        if arguments.only not in name:
            continue
        right, before = apart(behaviour, text), apart(told, text)
        for kind, place, changed in mutants(text, arguments.each, arguments.seed):
            bad, silent = broken(right, apart(behaviour, changed))
            said = apart(told, changed)
            new = said - before if isinstance(said, set) else {(said, "the linter failed")}
            state = ("silent" if silent else "loud") if bad else "same"
            for key in (kind, "all"):
                table[key][state, bool(new)] += 1
            if arguments.list and (state == "same" if new else state == "silent"):
                print(f"{name}: {kind}: {place}: {', '.join(sorted(bad)) or sorted(new)}")
    for kind, counts in sorted(table.items()):
        parts = [
            f"{state} {counts[state, True]:4}/{counts[state, True] + counts[state, False]:4}"
            for state in ("silent", "loud", "same")
        ]
        print(f"{kind:24}", *parts)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
