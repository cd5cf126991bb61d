"""The backward slice: each kind of hop, where it stops, and that it always ends."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from sampler_lint.analysis import solver
from sampler_lint.analysis.origins import (
    EVERYWHERE,
    LOCAL,
    Hop,
    Step,
    depends_on,
    ends,
    handed_on,
    only,
    origins,
)
from sampler_lint.analysis.values import TOO_MUCH
from sampler_lint.limits import DEEPEST_SLICE, MOST_REACHING
from sampler_lint.syntax.navigation import unparse
from sampler_lint.syntax.nodes import Attr, Name, last_name
from trees import Tree


def found(folder: Path, source: str, through: Hop = EVERYWHERE & ~Hop.PART) -> list[str]:
    """The ends of the slice of what ``probe_loader("x", …)`` is given, as they are spelled."""
    tree = Tree(folder, {"main.py": source, "other.py": "SEED = 7\n"})
    return sorted({unparse(end) for end in ends(tree.model.flow, tree.asked("x"), through)})


@pytest.mark.parametrize(
    ("hop", "source", "expected"),
    [
        (Hop.ASSIGNED, "a = 1\nb = a\nprobe_loader('x', b)", ["1"]),
        (Hop.ASSIGNED, "a, (b, c) = 1, (2, 3)\nprobe_loader('x', c)", ["3"]),
        (Hop.ASSIGNED, "from other import SEED\nprobe_loader('x', SEED)", ["7"]),
        (Hop.ELEMENT, "for a in given:\n    probe_loader('x', a)", ["given"]),
        (Hop.ELEMENT, "with given as a:\n    probe_loader('x', a)", ["given"]),
        (Hop.ELEMENT, "a, b = given\nprobe_loader('x', a)", ["a", "given"]),
        (Hop.CALLER, "def f(a):\n    probe_loader('x', a)\nf(1)\nf(a=2)", ["1", "2"]),
        (Hop.CALLER, "def f(a, b=3):\n    probe_loader('x', b)\nf(1)", ["3"]),
        (Hop.CALLER, "def f(a):\n    probe_loader('x', a)\nf(**{'a': 4})", ["4"]),
        (Hop.RETURN, "def f():\n    return 1\nprobe_loader('x', f())", ["1"]),
        (
            Hop.ATTRIBUTE,
            "class A:\n    x = 1\n    def __init__(self):\n        self.x = 2\n"
            "    def f(self):\n        probe_loader('x', self.x)",
            ["1", "2"],
        ),
        (
            Hop.RETURN,
            "class A:\n    @property\n    def x(self):\n        return 5\n"
            "    def f(self):\n        probe_loader('x', self.x)",
            ["5"],
        ),
        (Hop.ITEM, "probe_loader('x', {'k': 1, 'l': 2}['l'])", ["2"]),
        (Hop.ITEM, "probe_loader('x', dict(k=1)['k'])", ["1"]),
        (Hop.ITEM, "probe_loader('x', [1, 2][1])", ["2"]),
        (Hop.OPERAND, "probe_loader('x', -a + [b, 1 if c else 2][d])", ["a", "…[d]"]),
        (Hop.OPERAND, "probe_loader('x', (a < b) or c)", ["a", "b", "c"]),
        (Hop.OPERAND | Hop.TEST, "probe_loader('x', a if b else c)", ["a", "b", "c"]),
        (Hop.ARGUMENT, "probe_loader('x', int(max(a, 1)))", ["1", "a"]),
        (Hop.PART, "probe_loader('x', a.b[c].d(e))", ["a", "c", "e"]),
    ],
)
def test_each_kind_of_hop_is_followed_only_if_it_is_asked_for(
    tmp_path: Path, hop: Hop, source: str, expected: list[str]
) -> None:
    assert found(tmp_path, source, hop) == expected
    others = EVERYWHERE & ~Hop.PART & ~hop
    assert found(tmp_path, source, others) != expected or hop is Hop.OPERAND | Hop.TEST


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = 1\na = 2\nprobe_loader('x', a)", ["2"]),
        ("a = 1\nif c:\n    a = 2\nprobe_loader('x', a)", ["1", "2"]),
        ("a = 1\na += 2\nprobe_loader('x', a)", ["1", "2"]),
        ("a = 1\nprobe_loader('x', a)\na = 2", ["1"]),
        ("a = 1\nfor i in c:\n    probe_loader('x', a)\n    a = 2", ["1", "2"]),
    ],
)
def test_only_the_assignments_that_reach_a_read_are_followed(
    tmp_path: Path, source: str, expected: list[str]
) -> None:
    assert found(tmp_path, source) == expected


def test_a_function_is_left_by_the_call_it_was_come_in_by(tmp_path: Path) -> None:
    source = """
        def same(a):
            return a
        def twice(b):
            return same(b)
        probe_loader("x", twice(1))
        same(2)
        twice(3)
    """
    assert found(tmp_path, source) == ["1"]


@pytest.mark.parametrize(
    "source",
    [
        "a = b = 1\nwhile c:\n    a, b = b, a\nprobe_loader('x', a)",
        "def f(a):\n    return f(a) if c else 1\nprobe_loader('x', f(2))",
        "def f(a):\n    probe_loader('x', a)\n    f(a)\nf(1)",
        "class A:\n    def f(self):\n        self.a = self.a or 1\n"
        "        probe_loader('x', self.a)",
        "a = {'k': 1}\nfor c in d:\n    a = {**a, c: 2}\n    probe_loader('x', a['k'])",
    ],
)
def test_cycles_end(tmp_path: Path, source: str) -> None:
    assert "1" in found(tmp_path, source)


def test_what_is_not_seen_is_an_end_besides_what_is(tmp_path: Path) -> None:
    source = "a = 1\ntry:\n    c()\nexcept E as a:\n    pass\nprobe_loader('x', a)"
    assert found(tmp_path, source) == ["1", "a"]
    assert found(tmp_path, "def f(a):\n    probe_loader('x', a)") == ["a"]


def test_too_long_a_way_ends_where_it_is_cut(tmp_path: Path) -> None:
    names = [f"a{number}" for number in range(DEEPEST_SLICE + 3)]
    chain = [f"{new} = {old}" for old, new in pairwise(names)]
    source = "\n".join(["a0 = 1", *chain, f"probe_loader('x', {names[-1]})"])
    assert found(tmp_path, source) == ["a1"]


def test_a_package_that_imports_its_own_module_is_an_end(tmp_path: Path) -> None:
    files = {
        "main.py": "from pkg import data\nprobe_loader('x', data)\n",
        "pkg/__init__.py": "from . import data\n",
        "pkg/data/__init__.py": "",
    }
    tree = Tree(tmp_path, files)
    assert [unparse(end) for end in ends(tree.model.flow, tree.asked("x"))] == ["data"]


def test_a_name_with_too_many_assignments_is_an_end(tmp_path: Path) -> None:
    lines = [f"if c[{number}]:\n    a = {number}" for number in range(MOST_REACHING + 1)]
    assert found(tmp_path, "\n".join([*lines, "probe_loader('x', a)"])) == ["a"]


def test_a_step_tells_how_it_was_come_to(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "def f(a):\n    probe_loader('x', 2 * a + 1)\nf(b - c)")
    expr = tree.asked("x")
    step = depends_on(tree.model.flow, expr, lambda e: isinstance(e, Name) and e.id == "c")
    assert step is not None
    assert [(each.hop, each.op) for each in step.way()] == [
        (Hop.OPERAND, "Sub"),
        (Hop.CALLER, ""),
        (Hop.OPERAND, "Mult"),
        (Hop.OPERAND, "Add"),
        (Hop(0), ""),
    ]
    assert unparse(step.whole) == "b - c"
    assert (step.hops, step.decides, step.scope.name) == (
        1,
        False,
        tree.module("main.py").facts.name,
    )


def test_what_decides_is_told_apart_from_what_is_taken(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "a = load()\nprobe_loader('x', (1 if a else 2) + a)")
    steps = origins(tree.model.flow, tree.asked("x"), LOCAL | Hop.TEST)
    assert {s.decides for s in steps if unparse(s.expr) == "load()"} == {True, False}


def test_a_sanitizer_stops_what_is_behind_it(tmp_path: Path) -> None:
    source = "rank = load()\nprobe_loader('x', broadcast(rank))"
    tree = Tree(tmp_path, source)
    flow, expr = tree.model.flow, tree.asked("x")

    def is_rank(part: object) -> bool:
        return isinstance(part, (Attr, Name)) and last_name(part) == "rank"

    def is_agreed(step: Step) -> bool:
        return unparse(step.expr).startswith("broadcast")

    assert depends_on(flow, expr, is_rank) is not None
    assert depends_on(flow, expr, is_rank, sanitized=is_agreed) is None


def test_one_origin_stands_for_an_expression_several_do_not(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "a = 1\nb = 1 if a else 2\nprobe_loader('x', a)\nprobe_loader('y', b)")
    flow = tree.model.flow
    assert unparse(only(flow, tree.asked("x"), LOCAL)) == "1"
    assert only(flow, tree.asked("y"), LOCAL) is tree.asked("y")


def test_the_slice_tells_where_asking_for_all_values_gave_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = "\n".join(f"x{n + 1} = x{n}" for n in range(30))
    source = f"x0 = {{}}\n{chain}\nprobe_loader('x', x30)"
    known = Tree(tmp_path, {"main.py": source})
    monkeypatch.setattr(solver, "MOST_STEPS", 5)
    tree = Tree(tmp_path, {"main.py": source})
    assert TOO_MUCH in tree.model.flow.values(tree.asked("x"))
    values = [str(value) for value in handed_on(tree.model.flow, tree.asked("x"))]
    assert values == [str(value) for value in handed_on(known.model.flow, known.asked("x"))]
