"""What the fixes of single rules write in small programs, and that fixes go together."""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases import Case, Files, all_cases, check, fix, read_tree, told_and_fixed, write_tree
from sampler_lint import engine
from sampler_lint.engine import Options
from sampler_lint.findings import Applicability, Finding

TORCH = """\
import argparse

import torch
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, Sampler

"""


def fixed_by(folder: Path, code: str, source: str) -> str:
    """The program after the fixes of one rule."""
    files = {"train.py": (TORCH + textwrap.dedent(source)).encode()}
    tree = write_tree(folder, files)
    engine.fix([str(tree)], Options(select=(code,)), unsafe=True)
    return read_tree(tree)["train.py"].decode().removeprefix(TORCH)


# SMP201: parameters and settings


MAIN = """

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train(make([1, 2], 4))


main()
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def make(data, size):", "def make(data, size, seed=0):"),
        ("def make(data, size: int):", "def make(data, size: int, seed: int = 0):"),
        ("def make(data, size, **more):", "def make(data, size, seed=0, **more):"),
        ("def make(\n    data,\n    size,\n):", "def make(\n    data,\n    size,\n    seed=0,\n):"),
        ("def make(data, size=(4)):", "def make(data, size=(4), seed=0):"),
        ("def make(data, size: (int)):", "def make(data, size: (int), seed: int = 0):"),
        ("def make(data, *size):", "def make(data, *size, seed=0):"),
        (
            "def make(\n    data,\n    *size\n):",
            "def make(\n    data,\n    *size,\n    seed=0\n):",
        ),
        (
            "def make(\n    data,\n    size=(4)  # four, not five\n    ,\n):",
            "def make(\n    data,\n    size=(4)  # four, not five\n    ,\n    seed=0,\n):",
        ),
        ("def make(data,\n         size):", "def make(data,\n         size, seed=0):"),
        (
            "def make(\n    data,\n    size\n):",
            "def make(\n    data,\n    size,\n    seed=0\n):",
        ),
        (
            "def make(\n    data,\n    size,\n    **more,\n):",
            "def make(\n    data,\n    size,\n    seed=0,\n    **more,\n):",
        ),
    ],
)
def test_a_new_parameter_stands_as_the_others_do(tmp_path, before, after):
    if "\n         size" in before:
        after = before.replace("size):", "size,\n         seed=0):")
    body = "\n    return DataLoader(data, size, sampler=DistributedSampler(data{}))\n"
    train = "\n\ndef train(loader):\n    for batch in loader:\n        batch.backward()\n"
    source = before + body.format("") + train + MAIN
    wanted = after + body.format(", seed=seed") + train
    wanted += MAIN.replace("make([1, 2], 4)", "make([1, 2], 4, seed=args.seed)")
    assert fixed_by(tmp_path / "p", "SMP201", source) == wanted


def test_settings_are_not_looked_for_in_star_args(tmp_path):
    source = """
    def make(data, *args):
        return DataLoader(data, sampler=DistributedSampler(data))


    args = argparse.ArgumentParser().parse_args()
    torch.manual_seed(args.seed)
    for batch in make([1, 2]):
        batch.backward()
    """
    assert "DistributedSampler(data, seed=seed)" in fixed_by(tmp_path / "p", "SMP201", source)


def test_a_constructor_takes_the_seed_too(tmp_path):
    source = (
        "class Batches(Sampler):\n"
        "    def __init__(self, data, size):\n"
        "        self.inner = DistributedSampler(data)\n"
        "        self.size = size\n\n"
        "    def __iter__(self):\n"
        "        yield from BatchSampler(self.inner, self.size, False)\n"
        "\n\ndef train(loader):\n    for batch in loader:\n        batch.backward()\n"
        + MAIN.replace("make([1, 2], 4)", "DataLoader([1], batch_sampler=Batches([1], 4))")
    )
    text = fixed_by(tmp_path / "p", "SMP201", source)
    assert "def __init__(self, data, size, seed=0):" in text
    assert "DistributedSampler(data, seed=seed)" in text
    assert "Batches([1], 4, seed=args.seed)" in text


def test_a_line_broken_in_another_file_drops_no_comment(tmp_path):
    call = "loader = data.make([" + ", ".join("1" * 25) + "])"
    main = MAIN.replace("train(make([1, 2], 4))", f"{call}\n    train(loader)")
    files = {
        "data.py": TORCH + "def make(data):\n    sampler = DistributedSampler(data)\n"
        "    return DataLoader(data, sampler=sampler)\n",
        "main.py": "# where it starts\n" + TORCH + "import data\n\n\ndef train(loader):\n"
        "    for batch in loader:\n        batch.backward()\n" + main,
    }
    tree = write_tree(tmp_path, {name: text.encode() for name, text in files.items()})
    (finding,) = engine.check([str(tree)], Options(select=("SMP201",))).findings
    assert finding.fix.applicability is Applicability.SAFE
    engine.fix([str(tree)], Options(select=("SMP201",)))
    after = read_tree(tree)["main.py"].decode()
    assert "# where it starts\n" in after
    assert re.search(r"data\.make\(\n +\[1, .* 1\], seed=args\.seed\n +\)", after)


# comments


def test_a_comment_above_a_moved_call_moves_with_it(tmp_path):
    source = """
    def train(data):
        sampler = DistributedSampler(data)
        loader = DataLoader(data, sampler=sampler)
        # reshuffle
        # in each epoch
        sampler.set_epoch(0)
        for epoch in range(3):
            for batch in loader:
                batch.backward()


    train([1, 2])
    """
    text = fixed_by(tmp_path / "p", "SMP103", source)
    assert (
        "    loader = DataLoader(data, sampler=sampler)\n"
        "    for epoch in range(3):\n"
        "        # reshuffle\n"
        "        # in each epoch\n"
        "        sampler.set_epoch(epoch)\n"
    ) in text


def test_a_call_before_ignite_runs_becomes_a_handler(tmp_path):
    source = """
    from ignite.engine import Engine, Events


    def run(data):
        sampler = DistributedSampler(data)
        loader = DataLoader(data, sampler=sampler)
        trainer = Engine(step)

        # reshuffle
        if isinstance(
            loader.sampler, DistributedSampler
        ):
            # by the epoch
            loader.sampler.set_epoch(trainer.state.epoch - 1)

        trainer.run(loader, max_epochs=3)
    """
    text = fixed_by(tmp_path / "p", "SMP103", source)
    assert (
        """
    # reshuffle
    @trainer.on(Events.EPOCH_STARTED)
    def set_epoch():
        if isinstance(
            loader.sampler, DistributedSampler
        ):
            # by the epoch
            loader.sampler.set_epoch(trainer.state.epoch - 1)

    trainer.run(loader, max_epochs=3)
"""
        in text
    )
    assert fixed_by(tmp_path / "again", "SMP103", textwrap.indent(text, "    ")) == text


# fixes of several rules in the same file


#: In this order the second has nothing left to do: an assignment that the first fixes.
OTHER_FIX = ("SMP404", "SMP102")
#: In this order the first leaves a long line, so that the second one breaks none.
OTHER_LINES = ("SMP501", "SMP507")


def kinds(findings: list[Finding]) -> list[tuple[str, str]]:
    return sorted((finding.code, finding.message) for finding in findings)


def _single_files() -> list[tuple[Case, Files]]:
    """The bad programs that are one file and have a fix."""
    return [
        (case, files)
        for case in all_cases()
        if list(files := case.files("bad")) == ["train.py"] and case.files("fixed")
    ]


def _joined(one: bytes, other: bytes) -> bytes:
    """Both programs in one file: the names of the second differ from those of the first."""
    first, second = (each.decode("utf-8-sig").replace("\r\n", "\n") for each in (one, other))
    own = {
        node.name
        for node in ast.parse(second).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef))
    }
    for name in own:
        second = re.sub(rf"\b{name}\b", f"{name}Two", second)
    # The second program's imports stand where they did: below the first.
    text = first.rstrip("\n") + "\n\n\n" + second
    future = set(re.findall(r"(?m)^from __future__ .*\n", text))
    return ("".join(future) + re.sub(r"(?m)^from __future__ .*\n", "", text)).encode()


def _pairs() -> Iterator[tuple[Case, Case]]:
    """Each rule's first program with a ninth of the others': rules, not fixtures, may clash."""
    first: dict[str, Case] = {}
    for case, _ in _single_files():
        first.setdefault(case.code, case)
    cases = list(first.values())
    for index, one in enumerate(cases):
        for other in cases[index + 1 :: 18]:
            yield one, other


@pytest.mark.parametrize("pair", list(_pairs()), ids=lambda pair: f"{pair[0].code}-{pair[1].code}")
def test_two_rules_in_one_file_are_fixed_as_each_alone(pair, tmp_path):
    one, other = pair
    joined = _joined(one.files("bad")["train.py"], other.files("bad")["train.py"])
    together = write_tree(tmp_path / "together", {"train.py": joined})
    result = fix(together)
    text = read_tree(together)["train.py"]
    compile(text, "train.py", "exec", dont_inherit=True)
    told, again = told_and_fixed(together)
    assert again.changed == {}

    left = kinds(told.findings)
    for order in ((one.code, other.code), (other.code, one.code)):
        tree = write_tree(tmp_path / "-".join(order), {"train.py": joined})
        first, second = (
            functools.partial(engine.fix, [str(tree)], Options(select=(code,)), unsafe=True)
            for code in order
        )
        first(), second()
        if first().changed:  # or the second has nothing left to do, either
            second()
        third = {f.code for f in result.fixed} - set(order)
        if not third:
            assert kinds(check(tree).findings) == left
        if not third and order != OTHER_FIX:
            alone = read_tree(tree)["train.py"]
            assert alone == text or order == OTHER_LINES
            assert ast.dump(ast.parse(alone)) == ast.dump(ast.parse(text))
