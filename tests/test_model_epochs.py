"""Epoch loops, and the loaders that are read in them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from sampler_lint.domain import epochs
from sampler_lint.syntax.navigation import unparse
from sampler_lint.syntax.nodes import For, While
from trees import TORCH, Tree

#: Only programs in which something is sharded are looked at.
SHARDED = TORCH + "DistributedSampler(everything)\n"


def tree_of(folder: Path, source: str) -> Tree:
    return Tree(folder, {"main.py": SHARDED + textwrap.dedent(source)})


def test_programs_without_shards_are_not_looked_at(tmp_path: Path) -> None:
    source = "loader = DataLoader(a)\nfor epoch in range(3):\n    for batch in loader: pass\n"
    assert found(tmp_path / "with", source)
    assert not loops(Tree(tmp_path / "without", source))


def loops(tree: Tree) -> list[epochs.EpochLoop]:
    return list(epochs.epoch_loops(tree.model))


def found(folder: Path, source: str) -> list[tuple[str, str]]:
    """Each epoch loop by its head, with the loader that its turns read."""
    tree = tree_of(folder, source)
    return [(head(each.loop), tree.words(each.inner.loader)) for each in loops(tree)]


def head(loop: For | While) -> str:
    return unparse(loop.target if isinstance(loop, For) else loop.test)


# which loops repeat


@pytest.mark.parametrize(
    ("line", "repeats", "number"),
    [
        ("for epoch in range(3):", True, "epoch"),
        ("for e in range(args.epochs):", True, "e"),
        ("for e in range(start, n_epochs):", True, "e"),
        ("for epoch in tqdm(range(3)):", True, "epoch"),
        ("for i, epoch in enumerate(range(3)):", True, "epoch"),
        ("for epoch in itertools.count():", True, "epoch"),
        ("for trainer.epoch in range(3):", True, "trainer.epoch"),
        ("for epoch in plan:", True, None),
        ("while epoch < 3:", True, "epoch"),
        ("while self.epoch != n:", True, "self.epoch"),
        ("while 3 > epoch:", True, None),
        ("while epoch < 3 and going:", True, None),
        ("while True:", True, None),
        ("for task in tasks:", False, None),
        ("for name, part in parts.items():", False, None),
    ],
)
def test_loops_that_repeat(tmp_path: Path, line: str, repeats: bool, number: str | None) -> None:
    source = f"loader = DataLoader(a)\n{line}\n    for batch in loader:\n        pass\n"
    tree = Tree(tmp_path, {"main.py": SHARDED + source})
    loop = next(s for s in tree.module("main.py").facts.body if isinstance(s, (For, While)))
    assert epochs.repeats(loop) is repeats
    assert len(loops(tree)) == repeats
    if repeats:
        expression = epochs.epoch_expression(loop)
        assert (expression and unparse(expression)) == number


# how a loader is read


@pytest.mark.parametrize(
    "body",
    [
        "for batch in loader: pass",
        "for i, batch in enumerate(loader): pass",
        "for i, batch in enumerate(tqdm(loader, desc='x')): pass",
        "for batch, other in zip(loader, others): pass",
        "it = iter(loader)",
        "batches = [batch for batch in loader]",
        "total = sum(len(batch) for batch in loader)",
        "if going:\n        for batch in loader: pass",
        "with open(x):\n        for batch in loader: pass",
        "batch = next(iter(loader))",
    ],
)
def test_ways_to_read_a_loader(tmp_path: Path, body: str) -> None:
    source = f"loader = DataLoader(a)\nfor epoch in range(3):\n    {body}\n"
    tree = Tree(tmp_path, {"main.py": SHARDED + source})
    assert [(head(o.loop), tree.words(o.inner.loader)) for o in loops(tree)] == [
        ("epoch", "DataLoader(a)")
    ]


@pytest.mark.parametrize(
    "body",
    ["for x in range(len(loader)): pass", "print(loader)", "n = len(loader)", "loader.close()"],
)
def test_what_does_not_read_a_loader(tmp_path: Path, body: str) -> None:
    source = f"loader = DataLoader(a)\nfor epoch in range(3):\n    {body}\n"
    assert not loops(Tree(tmp_path, {"main.py": SHARDED + source}))


# across functions and files


def test_a_function_called_in_the_loop(tmp_path: Path) -> None:
    source = """
        def train_one(loader):
            for batch in loader: pass
        def main():
            loader = DataLoader(a)
            for epoch in range(3):
                train_one(loader)
    """
    tree = tree_of(tmp_path, source)
    (loop,) = loops(tree)
    assert [tree.text(call) for call in loop.calls] == ["train_one(loader)"]
    assert loop.scopes == {tree.function("main"), tree.function("train_one")}


def test_two_calls_deep(tmp_path: Path) -> None:
    source = """
        def read(loader):
            for batch in loader: pass
        def train_one(loader):
            read(loader)
        loader = DataLoader(a)
        for epoch in range(3):
            train_one(loader)
    """
    tree = tree_of(tmp_path, source)
    (loop,) = loops(tree)
    assert [tree.text(call) for call in loop.calls] == ["train_one(loader)", "read(loader)"]


def test_a_trainer_class(tmp_path: Path) -> None:
    source = """
        class Trainer:
            def __init__(self):
                self.loader = DataLoader(a)
            def one(self):
                for batch in self.loader: pass
            def fit(self):
                for epoch in range(3):
                    self.one()
    """
    assert found(tmp_path, source) == [("epoch", "DataLoader(a)")]


def test_across_files(tmp_path: Path) -> None:
    files = {
        "train.py": "from data import build\nfrom loop import run\n"
        "loader = build()\nfor epoch in range(3):\n    run(loader)\n",
        "data.py": SHARDED + "def build():\n    return DataLoader(a)\n",
        "loop.py": "def run(loader):\n    for batch in loader: pass\n",
    }
    tree = Tree(tmp_path, files)
    assert [(head(o.loop), tree.words(o.inner.loader)) for o in loops(tree)] == [
        ("epoch", "DataLoader(a)")
    ]


def test_recursion_ends(tmp_path: Path) -> None:
    source = """
        def one(loader, n):
            for batch in loader: pass
            one(loader, n - 1)
        loader = DataLoader(a)
        for epoch in range(3):
            one(loader, 2)
    """
    assert found(tmp_path, source) == [("epoch", "DataLoader(a)")]


# what is no epoch loop of a loader


def test_a_loader_built_anew_in_each_turn(tmp_path: Path) -> None:
    source = """
        for epoch in range(3):
            loader = DataLoader(a)
            for batch in loader: pass
    """
    assert found(tmp_path, source) == []


def test_a_factory_called_in_each_turn(tmp_path: Path) -> None:
    source = """
        def build(part):
            loader = DataLoader(part)
            return loader
        for epoch in range(3):
            for batch in build(a): pass
    """
    assert found(tmp_path, source) == []


def test_a_factory_that_returns_at_once_called_in_each_turn(tmp_path: Path) -> None:
    source = """
        def build(part):
            return DataLoader(part)
        for epoch in range(3):
            loader = build(a)
            for batch in loader: pass
    """
    assert found(tmp_path, source) == []


def test_no_loop_around(tmp_path: Path) -> None:
    assert found(tmp_path, "for batch in DataLoader(a): pass\n") == []


def test_the_innermost_epoch_loop_counts(tmp_path: Path) -> None:
    source = """
        loader = DataLoader(a)
        for epochs in plans:
            for epoch in range(3):
                for batch in loader: pass
    """
    assert ("epoch", "DataLoader(a)") in found(tmp_path, source)


# training or not


@pytest.mark.parametrize(
    ("body", "trains"),
    [
        ("loss(batch).backward(); optimizer.step()", True),
        ("train_step(model, batch)", True),
        ("do(batch)", True),
        ("model(batch)", False),
        ("metrics.update(batch)", False),
    ],
)
def test_training(tmp_path: Path, body: str, trains: bool) -> None:
    source = f"""
        def do(batch):
            inner(batch)
        def inner(batch):
            model(batch).backward()
        loader = DataLoader(a)
        for epoch in range(3):
            for batch in loader:
                {body}
    """
    tree = tree_of(tmp_path, source)
    (loop,) = loops(tree)
    assert epochs.trains(tree.model, loop) is trains


def test_a_step_outside_the_pass_is_not_its_training(tmp_path: Path) -> None:
    source = """
        train, test = DataLoader(a), DataLoader(b)
        for epoch in range(3):
            for batch in train:
                model(batch).backward()
            for batch in test:
                model(batch)
    """
    tree = tree_of(tmp_path, source)
    answers = {tree.words(o.inner.loader): epochs.trains(tree.model, o) for o in loops(tree)}
    assert answers == {"DataLoader(a)": True, "DataLoader(b)": False}
