"""A few of the fuzzer's mutants, the same each time; ``benchmarks/fuzz.py`` tries thousands."""

from __future__ import annotations

import importlib
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="counts its seconds so")

STAGES = (
    *("fix", "explain", "remember", "notebook", "silence", "command", "run-classes"),
    *("run-as-python", "flake8", "line-ends"),
)


@pytest.fixture(scope="module")
def fuzz() -> Iterator[ModuleType]:
    pytest.importorskip("resource")
    sys.path.insert(0, str(BENCHMARKS))
    try:
        module = importlib.import_module("fuzz")
        # The first cases load what they try, and CI measures it as it is loaded.
        module.SECONDS = 60  # type: ignore[attr-defined]
        yield module
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize("stage", STAGES)
def test_a_mutant_is_well_at_each_stage(fuzz: ModuleType, stage: str) -> None:
    trees = fuzz.own()
    for seed in range(3):
        assert fuzz.case(trees, random.Random(seed), stage).problem() == ""


def test_each_stage_is_tried(fuzz: ModuleType) -> None:
    assert fuzz.STAGES.keys() == set(STAGES)


def test_the_fuzzer_sees_what_goes_wrong(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("sampler_lint.engine.fix", breaks)
    case = fuzz.Case("fix", {"a.py": b"x = 1\n", "b.py": b"y = 1\n"}, 0)
    said = case.problem()
    assert "ZeroDivisionError" in said
    assert sum(map(len, fuzz.smaller(case, said).tree.values())) < 6


@pytest.mark.parametrize(
    ("stage", "broken", "said"),
    [
        ("remember", "memory.Memory._changed", "the cache tells otherwise"),
        ("run-as-python", "execution.interpreter.Interpreter.binary", "computes otherwise"),
        ("silence", "suppressions.silence", "findings are left"),
        ("flake8", "flake8_plugin.Plugin._told", "flake8 says"),
    ],
)
def test_a_stage_sees_what_goes_wrong(
    fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch, stage: str, broken: str, said: str
) -> None:
    """A stage that could not fail would prove nothing."""
    monkeypatch.setattr(f"sampler_lint.{broken}", lambda *_: [])
    trees = fuzz.own()
    problems = (fuzz.case(trees, random.Random(seed), stage).problem() for seed in range(60))
    assert any(said in problem for problem in problems)


#: What the fuzzer found, made smaller: the stage, the files.
FOUND = {
    "a comment before a lone CR": (
        "line-ends",
        {
            "main.py": b"from torch.utils.data import DataLoader\n"
            b"from torch.utils.data.distributed import DistributedSampler\n"
            b"loader = DataLoader(d, sampler=DistributedSampler(d, shuffle=False))\n"
            b"def validate():\n"
            b"    for images, target in loader:\n"
            b"        top5.update(images)  # measured\n"
            b"    aux = Subset(d, range(len(loader.sampler) * world_size, len(d)))\n"
        },
    ),
    "a jump out of a function": (
        "run-classes",
        {
            "main.py": b"from torch.utils.data import Sampler\n"
            b"class S(Sampler):\n"
            b"    def __init__(self, dataset): self.n = len(dataset)\n"
            b"    def __len__(self): continue\n"
            b"    def __iter__(self):\n"
            b"        yield from range(self.n)\n"
            b"        break\n"
        },
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_well(fuzz: ModuleType, name: str) -> None:
    stage, tree = FOUND[name]
    assert fuzz.Case(stage, tree, 0).problem() == ""
    assert fuzz.Case("fix", tree, 0).problem() == ""
