"""Programs that are nested or chained more deeply than anybody writes, with every rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sampler_lint import engine
from sampler_lint.engine import Options

HEAD = """\
import torch
from torch.utils.data import DataLoader, Sampler
from torch.utils.data.distributed import DistributedSampler
"""
#: What stands in another file, where two rules find something.
OTHER = f"""{HEAD}import argparse
args = argparse.ArgumentParser().parse_args()
torch.manual_seed(args.seed)
def build(data):
    return DataLoader(data, sampler=DistributedSampler(data), shuffle=True)
loader = build(data)
"""
ALL = Options(select=("ALL",))
LOADER = "DataLoader(d, sampler=s, shuffle=True)"
SAMPLER = "DistributedSampler(d)"

#: An expression with another in it, and the same again around it.
EXPRESSIONS: dict[str, Callable[[str, int], str]] = {
    "calls": lambda inner, n: inner + ".map(f)" * n,
    "called": lambda inner, n: inner + "()" * n,
    "attributes": lambda inner, n: inner + ".a" * n,
    "entries": lambda inner, n: inner + "[0]" * n,
    "or": lambda inner, n: " or ".join([*(f"a{i}" for i in range(n)), inner]),
    "and": lambda inner, n: " and ".join([inner, *(f"a{i}" for i in range(n))]),
    "sum": lambda inner, n: " + ".join([inner, *(f"a{i}" for i in range(n))]),
    "sum to the right": lambda inner, n: "a + (" * min(n, 60) + inner + ")" * min(n, 60),
    "powers": lambda inner, n: "2 ** " * n + inner,
    "negations": lambda inner, n: f"({'not ' * n}{inner})",
    "comparisons": lambda inner, n: " < ".join([inner, *(f"a{i}" for i in range(n))]),
    "brackets": lambda inner, n: "(" * min(n, 60) + inner + ")" * min(n, 60),
    "arguments": lambda inner, n: "f(" * min(n, 60) + inner + ")" * min(n, 60),
    "lists": lambda inner, n: "[" * min(n, 60) + inner + "]" * min(n, 60),
    "dicts": lambda inner, n: "{1: " * min(n, 60) + inner + "}" * min(n, 60),
    "comprehensions": lambda inner, n: "[" * min(n, 15) + inner + " for x in y]" * min(n, 15),
    "conditions": lambda inner, n: "".join(f"{SAMPLER} if a{i} else " for i in range(n)) + inner,
    "lambdas": lambda inner, n: f"({'lambda: ' * n}{inner})",
    "f-string": lambda inner, n: "f'{" + "a + " * n + "b}' or " + inner,
    "assignments": lambda inner, n: "(a := " * min(n, 60) + inner + ")" * min(n, 60),
}


def _nested(header: str, n: int, inner: str) -> str:
    return "".join(f"{' ' * i}{header.format(i)}\n" for i in range(n)) + " " * n + inner + "\n"


STATEMENTS: dict[str, Callable[[int], str]] = {
    "functions": lambda n: _nested("def f{}(d, s=None):", min(n, 90), f"return {LOADER}"),
    "classes": lambda n: _nested("class C{}(Sampler):", min(n, 90), "x = 1"),
    "ifs": lambda n: _nested("if x{}:", min(n, 90), f"loader = {LOADER}"),
    "loops": lambda n: _nested("for x{} in y:", min(n, 18), f"loader = {LOADER}"),
    "elif": lambda n: (
        f"if a:\n  s = {SAMPLER}\n"
        + "".join(f"elif a{i}:\n  s = None\n" for i in range(n))
        + f"loader = {LOADER}\n"
    ),
    "names": lambda n: (
        f"a0 = {SAMPLER}\n"
        + "".join(f"a{i + 1} = a{i}\n" for i in range(n))
        + f"loader = DataLoader(d, sampler=a{n})\n"
    ),
    "factories": lambda n: (
        "".join(f"def f{i}(d, /):\n  return f{i + 1}(d)\n" for i in range(n))
        + f"def f{n}(d, /):\n  return DataLoader(d, sampler={SAMPLER})\n"
        + "torch.manual_seed(args.seed)\nloader = f0(d)\n"
    ),
    "decorators": lambda n: "@a\n" * n + f"def f(d, s):\n  return {LOADER}\n",
    "methods": lambda n: (
        "class S(Sampler):\n"
        + "".join(f"  def m{i}(self, x):\n    return self.m{i + 1}(x)\n" for i in range(n))
        + f"  def m{n}(self, x):\n    return x // self.k\n"
        + "  def __iter__(self):\n    return iter(range(self.m0(3)))\n"
        + "  def __len__(self):\n    return self.m0(3)\n"
    ),
}

PROGRAMS = {
    **{name: lambda n, make=make: f"x = {make(LOADER, n)}\n" for name, make in EXPRESSIONS.items()},
    **{
        f"{name} for a sampler": lambda n, make=make: (
            f"s = {make(SAMPLER, n)}\nloader = {LOADER}\nfor epoch in range(3):\n"
            "  for batch in loader:\n    pass\n"
        )
        for name, make in EXPRESSIONS.items()
    },
    **{
        f"{name} in a condition": lambda n, make=make: (
            f"if {make('a', n)}:\n  s = {SAMPLER}\nelse:\n  s = None\nloader = {LOADER}\n"
        )
        for name, make in EXPRESSIONS.items()
    },
    **{
        f"{name} in a sampler": lambda n, make=make: (
            "class S(Sampler):\n  def __init__(self, d):\n    self.d = d\n"
            f"  def __iter__(self):\n    return iter({make('self.d', n)})\n"
            f"  def __len__(self):\n    return {make('len(self.d)', n)}\n"
        )
        for name, make in EXPRESSIONS.items()
    },
    **STATEMENTS,
}


def _check(folder: Path, program: str) -> None:
    """No rule fails, and what is wrong in another file is told and fixed."""
    (folder / "pyproject.toml").touch()
    (folder / "a.py").write_text(HEAD + program, encoding="utf-8")
    (folder / "b.py").write_text(OTHER, encoding="utf-8")
    told = engine.fix([str(folder)], ALL, unsafe=True, write=False)
    assert [error.reason for error in (*told.errors, *told.report.errors)] == []
    fixed = {finding.code for finding in told.fixed if finding.path.endswith("b.py")}
    assert fixed == {"SMP201", "SMP501"}


@pytest.mark.parametrize("depth", [pytest.param(100, marks=pytest.mark.whole), 300])
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_rule_fails(tmp_path: Path, name: str, depth: int) -> None:
    _check(tmp_path, PROGRAMS[name](depth))


def test_what_stands_deep_in_an_expression_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(HEAD + "x = " + EXPRESSIONS["calls"](LOADER, 300))
    (finding,) = engine.check([str(tmp_path)], Options(select=("SMP501",))).findings
    assert finding.start.row == 4


def test_a_sampler_in_a_deep_expression_is_handed_on(tmp_path: Path) -> None:
    """What is done with it there is not known: a rule that rests on all uses is silent."""
    program = f"{HEAD}def run(d):\n    s = {SAMPLER}\n    return {{}}\n"
    for text, found in (("1", 1), (EXPRESSIONS["lists"]("s", 60) + ".a" * 40, 0)):
        (tmp_path / "a.py").write_text(program.format(text))
        report = engine.check([str(tmp_path)], Options(select=("SMP503",)))
        assert len(report.findings) == found


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.sampled_from(sorted(EXPRESSIONS)), min_size=2, max_size=4), st.integers(2, 60))
def test_no_rule_fails_on_a_mixture(tmp_path: Path, names: list[str], depth: int) -> None:
    inner = LOADER
    for name in names:
        inner = f"({EXPRESSIONS[name](inner, min(depth, 20))})"
    _check(tmp_path, f"x = {inner}\n")
