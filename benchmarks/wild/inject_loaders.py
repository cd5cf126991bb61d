#!/usr/bin/env python3
"""Put one loader bug at a time into public programs, in memory, and count how many are seen.

    python benchmarks/wild/inject_loaders.py TREES [--part read|blind] [--per 2] [--kinds K …]

TREES holds one folder per repository. Nothing of them is executed or written. For each kind at most
``--per`` places a repository are taken, by a digest of their text. One is seen if a finding of the
kind's code is there that was not there before. ``--part`` halves the repositories by a digest of
their names: the misses of ``read`` may be looked at (``--json``), those of ``blind`` never.
"""

from __future__ import annotations

import argparse
import ast
import collections
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from sampler_lint.options import DEFAULTS
from sampler_lint.rules import all_rules
from sampler_lint.trees import Kept, Tree

CODES = {
    "shuffle-dropped": {"SMP507"},
    "loader-zipped-with-itself": {"SMP505"},
    "sampler-of-another-dataset": {"SMP506"},
    "order-drawn-once": {"SMP106"},
    "iterable-not-split": {"SMP308"},
    "workers-seeded-alike": {"SMP601"},
}
#: What is put below a file for a bug that it lacks a class or function for.
_BELOW = {
    "order-drawn-once": """

import torch.utils.data


class DrawnOnce(torch.utils.data.Sampler):
    def __init__(self, data):
        self.order = torch.randperm(len(data)).tolist()

    def __len__(self):
        return len(self.order)

    def __iter__(self):
        return iter(self.order)
""",
    "iterable-not-split": """

import torch.utils.data


class Lines(torch.utils.data.IterableDataset):
    def __init__(self, path):
        self.path = path

    def __iter__(self):
        with open(self.path) as file:
            for line in file:
                yield line.split()
""",
    "workers-seeded-alike": """

import random
import torch.utils.data


class Noisy(torch.utils.data.Dataset):
    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.data[index], random.random()


def start_worker(number):
    random.seed(number)
""",
}
#: A word of a name: ``val_loader``, ``testset``, ``makeEvalLoader``; not the middle of ``device``.
_EVALUATION = re.compile(
    r"(?:(?<![a-zA-Z])|(?<=[a-z])(?=[A-Z]))(?i:val|valid|validation|validate|test|testing|eval"
    r"|evaluation|evaluate|dev)s?(?![a-z])|(?<![a-zA-Z])(?i:val|valid|test|eval|dev)(?=set|data|loader|dl)"
)
_TRAINING = re.compile(r"train", re.IGNORECASE)
#: What a file is called, or a function or a dataset, that uses a model, or only reads the data.
_USES = re.compile(
    r"(?:(?<![a-z])|(?<=[a-z])(?=[A-Z]))(?i:eval|evaluat|test|infer|predict|extract|generat|sampl"
    r"|mean|stat|visuali|calib)"
)
_STEPS = (b"backward(", b".fit(", b"Trainer(", b".step(")
_APART = re.compile(r"(^|/)(tests?|docs?|third_party)/|test_|_test\.py$")


class Edit(NamedTuple):
    """One bug, and the file with it."""

    kind: str
    path: Path
    line: int
    old: str
    new: str
    text: str


class File:
    """A file and the bugs that fit into it."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.raw, self.tree = path, text.encode(), ast.parse(text)
        self.starts = [0]
        for line in self.raw.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.parents = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        first, last = self.span(node)
        return self.raw[first:last].decode()

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends, in bytes."""
        first = self.starts[getattr(node, "lineno", 1) - 1] + getattr(node, "col_offset", 0)
        last = self.starts[getattr(node, "end_lineno", 1) - 1] + getattr(node, "end_col_offset", 0)
        return first, last

    def edit(self, kind: str, node: ast.expr, new: str) -> Edit:
        """The file with ``new`` for a node."""
        return self.edits(kind, [(node, new)])

    def edits(self, kind: str, changes: list[tuple[ast.AST, str]]) -> Edit:
        """The file with new texts for some nodes, the last one first."""
        raw = self.raw
        for node, new in changes:
            first, last = self.span(node)
            raw = raw[:first] + new.encode() + raw[last:]
        node, new = changes[0]
        text = raw.decode() + _BELOW.get(kind, "")
        return Edit(kind, self.path, getattr(node, "lineno", 1), self.source(node), new, text)

    def function(self, node: ast.AST) -> ast.AST:
        """The function around a node, or the file."""
        while node in self.parents and not isinstance(node, ast.FunctionDef):
            node = self.parents[node]
        return node

    def is_evaluation(self, call: ast.Call) -> bool:
        """Whether a loader is for evaluations, by its variable, its key or its dataset."""
        data = call.args[0] if call.args else None
        named = [data, *(word.value for word in call.keywords if word.arg == "dataset")]
        around: ast.AST = call
        while around in self.parents and not isinstance(around, ast.stmt):
            outer = self.parents[around]
            if isinstance(outer, ast.Dict) and around in outer.values:
                named.append(outer.keys[outer.values.index(around)])
                break
            around = outer
        else:
            is_alone = len([n for n in ast.walk(around) if _is_loader(n)]) == 1
            if isinstance(around, ast.Assign) and is_alone:
                named += around.targets
            elif isinstance(around, ast.AnnAssign):
                named.append(around.target)
            elif isinstance(around, ast.Return):
                return bool(_EVALUATION.search(getattr(self.function(call), "name", "")))
        text = " ".join(self.source(each) for each in named if each is not None)
        return bool(_EVALUATION.search(text)) and not _TRAINING.search(text)

    def trains(self, call: ast.Call) -> bool:
        """Whether a loader trains: not one for evaluations, or that a file tries itself by.

        It says so, or the file steps. One that is made anew in a loop has a new order each time.
        """
        if self.is_evaluation(call) or _USES.search(self.path.stem):
            return False
        around: ast.AST = call
        while around in self.parents:
            around = self.parents[around]
            is_main = isinstance(around, ast.If) and "__main__" in self.source(around.test)
            is_loop = isinstance(around, (ast.For, ast.While))
            if is_main and b"backward(" not in self.raw and b".fit(" not in self.raw:
                return False
            if is_loop and re.search("epoch|True", self.source(around).partition("\n")[0]):
                return False
            if isinstance(around, ast.FunctionDef):
                break
        stmt: ast.AST = call
        while stmt in self.parents and not isinstance(stmt, ast.stmt):
            stmt = self.parents[stmt]
        name = getattr(self.function(call), "name", "")
        said = f"{name} {self.source(stmt)}"
        if _TRAINING.search(said):
            return True
        return not _USES.search(name) and any(step in self.raw for step in _STEPS)

    def stops(self, call: ast.Call) -> bool:
        """Whether the file takes only some batches of what is assigned a loader."""
        made = self.parents[call]
        name = _last(made.targets[0]) if isinstance(made, ast.Assign) else ""
        return bool(name) and (
            bool(re.search(rf"next\(iter\((self\.)?{name}\b", self.raw.decode()))
            or any(
                any(isinstance(each, ast.Break) for each in ast.walk(loop))
                for loop in ast.walk(self.tree)
                if isinstance(loop, ast.For) and re.search(rf"\b{name}\b", self.source(loop.iter))
            )
        )

    def bugs(self) -> Iterator[Edit]:
        """Every bug that fits."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and _is_loader(node):
                yield from self._shuffle(node)
                yield from self._other_sampler(node)
                yield from self._of_workers(node)
            if isinstance(node, ast.For):
                yield from self._twice(node)

    def _shuffle(self, call: ast.Call) -> Iterator[Edit]:
        given = {word.arg: word.value for word in call.keywords}
        sampler, shuffle = given.get("sampler"), given.get("shuffle")
        if isinstance(sampler, ast.Name) and shuffle and self.trains(call):
            text = self.source(shuffle).strip("() ")
            is_asked = text in {f"{sampler.id} is None", f"not {sampler.id}"}
            if is_asked and not self._is_made_before(call, sampler.id):
                yield self.edit("shuffle-dropped", shuffle, "False")

    def _is_made_before(self, call: ast.Call, name: str) -> bool:
        """Whether a statement before a call, in its block, builds what a variable holds there.

        Then it is never None, and it comes to the same what is asked of it.
        """
        stmt: ast.AST = call
        while stmt in self.parents and not isinstance(stmt, ast.stmt):
            stmt = self.parents[stmt]
        around = self.parents[stmt]
        blocks = [getattr(around, field, None) for field in ("body", "orelse", "finalbody")]
        block = next((each for each in blocks if isinstance(each, list) and stmt in each), [stmt])
        last = next(
            (
                each
                for each in reversed(block[: block.index(stmt)])
                if any(
                    isinstance(node, ast.Name) and node.id == name and not _is_read(node)
                    for node in ast.walk(each)
                )
            ),
            None,
        )
        return (
            isinstance(last, ast.Assign)
            and isinstance(last.value, ast.Call)
            and _last(last.value.func).endswith("Sampler")
        )

    def _of_workers(self, call: ast.Call) -> Iterator[Edit]:
        """Bugs of a loader that shuffles, or that reads in turn with several workers."""
        given = {word.arg: word.value for word in call.keywords}
        data = call.args[0] if call.args else given.get("dataset")
        if data is None or isinstance(data, ast.Starred) or None in given:
            return
        text, shuffle, workers = self.source(data), given.get("shuffle"), given.get("num_workers")
        is_kept = "persistent_workers" in given or "worker_init_fn" in given
        has_workers = workers is not None and self.source(workers) not in {"0", "1"}
        is_training = self.trains(call)
        if isinstance(shuffle, ast.Constant) and shuffle.value is True and is_training:
            name = next(word for word in call.keywords if word.arg == "shuffle")
            sampler = f"sampler=DrawnOnce({text})"
            yield self.edits("order-drawn-once", [(name, sampler)])
            if has_workers and not is_kept:
                begin = f"{self.source(name)}, worker_init_fn=start_worker"
                changes = [(name, begin), (data, f"Noisy({text})")]
                in_order = sorted(changes, key=lambda change: self.span(change[0]), reverse=True)
                yield self.edits("workers-seeded-alike", in_order)
        if has_workers and not is_kept and not {"shuffle", "sampler", "batch_sampler"} & {*given}:
            yield self.edit("iterable-not-split", data, 'Lines("lines.txt")')

    def _twice(self, loop: ast.For) -> Iterator[Edit]:
        found = loop.iter
        while isinstance(found, ast.Call) and found.args and _last(found.func) != "range":
            found = found.args[0]
        text = self.source(found)
        is_loader = isinstance(found, (ast.Name, ast.Attribute)) and "loader" in text
        is_loader &= b"DistributedSampler(" in self.raw
        if is_loader and not _EVALUATION.search(text) and "backward" in self.source(loop):
            yield self.edit("loader-zipped-with-itself", found, f"zip({text}, {text})")

    def _other_sampler(self, call: ast.Call) -> Iterator[Edit]:
        given = next((word.value for word in call.keywords if word.arg == "sampler"), None)
        others = {
            target.id
            for node in ast.walk(self.function(call))
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            if _last(node.value.func) == "DistributedSampler"
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if isinstance(given, ast.Name) and given.id in others and len(others) == 2:
            (other,) = others - {given.id}
            yield self.edit("sampler-of-another-dataset", given, other)


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _is_loader(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _last(node.func) == "DataLoader"


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def places(
    tree: Path, per: int, kinds: set[str], reader: type[File] = File, word: str = "oader"
) -> list[Edit]:
    """Some places of each kind, by a digest of their text."""
    found: dict[str, list[tuple[str, Edit]]] = collections.defaultdict(list)
    for path in sorted(tree.rglob("*.py")):
        name = path.relative_to(tree).as_posix()
        try:
            text = path.read_bytes().decode()
            if word not in text or "\r" in text or _APART.search(name):
                continue
            bugs = [*reader(path, text).bugs()]
        except (SyntaxError, UnicodeDecodeError, ValueError, RecursionError, OSError):
            continue
        for bug in bugs:
            key = hashlib.sha256(f"{name}:{bug.line}:{bug.old}:{bug.new}".encode()).hexdigest()
            if bug.kind in kinds:
                found[bug.kind].append((key, bug))
    return [bug for kind in sorted(found) for _, bug in sorted(found[kind])[:per]]


def said(tree: Tree, codes: set[str]) -> collections.Counter[tuple[str, str]]:
    """What some rules say, by file, without numbers."""
    rules = [rule for rule in all_rules() if rule.code in codes]
    return collections.Counter(
        (path, re.sub(r"\d+", "", finding.message))
        for path, found in tree.findings(rules).items()
        for finding in found
    )


def main(
    codes: dict[str, set[str]] = CODES,
    find: Callable[[Path, int, set[str]], list[Edit]] = places,
) -> None:
    """Print a table: seen and put in, for each kind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trees", type=Path)
    parser.add_argument("--part", choices=["read", "blind", "all"], default="all")
    parser.add_argument("--per", type=int, default=2)
    parser.add_argument("--kinds", nargs="*", default=sorted(codes))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    for folder in sorted(path for path in args.trees.iterdir() if path.is_dir()):
        is_blind = hashlib.sha256(folder.name.encode()).digest()[0] % 2
        if args.part != "all" and is_blind != (args.part == "blind"):
            continue
        todo = find(folder, args.per, set(args.kinds))
        files = {str(path): str(path.relative_to(folder)) for path in folder.rglob("*.py")}
        base = Tree(str(folder), DEFAULTS, files, {}, edits=False) if todo else None
        before = {kind: said(base, codes[kind]) for kind in {bug.kind for bug in todo} if base}
        for bug in todo:
            changed = {str(bug.path): bug.text.encode()}
            kept = Kept()
            kept.before = base.project.for_the_next if base else None
            tree = Tree(str(folder), DEFAULTS, files, changed, edits=False, kept=kept)
            seen = bool(said(tree, codes[bug.kind]) - before[bug.kind])
            path = bug.path.relative_to(folder).as_posix()
            rows.append((bug.kind, seen, folder.name, f"{path}:{bug.line}", bug.new))
        print(folder.name, len(todo), file=sys.stderr, flush=True)
        if args.json:
            args.json.write_text(json.dumps(rows, indent=1))
    for kind in sorted(codes):
        told = [seen for each, seen, *_ in rows if each == kind]
        print(f"{kind:32} {sum(told):>4}/{len(told):<5} {sum(told) / max(1, len(told)):.0%}")


if __name__ == "__main__":
    main()
