"""A few of the fuzzer's mutants, the same each time; ``benchmarks/fuzz.py`` tries thousands."""

from __future__ import annotations

import importlib.util
import random
import signal
import sys
from pathlib import Path
from types import ModuleType

import pytest

FUZZER = Path(__file__).parent.parent / "benchmarks" / "fuzz.py"

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="counts its seconds so")


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    pytest.importorskip("resource")
    spec = importlib.util.spec_from_file_location("fuzz", FUZZER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", range(12))
def test_a_mutant_is_checked_and_mended(fuzz: ModuleType, seed: int) -> None:
    tree = fuzz.mutant(fuzz.programs(packages=False), random.Random(seed))
    assert fuzz.problem(tree) == ""


def test_the_fuzzer_sees_what_goes_wrong(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(fuzz.engine, "fix", breaks)
    assert "ZeroDivisionError" in fuzz.problem({"a.py": b"x = 1\n"})
