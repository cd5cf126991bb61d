"""Why a value is not known: what ``sampler-lint explain`` tells its user."""

from __future__ import annotations

from pathlib import Path

import pytest

from sampler_lint.analysis import solver
from sampler_lint.analysis.values import Unknown, Values, Why
from trees import TORCH, Tree


def reasons(values: frozenset) -> list[str]:
    return sorted(value.reason for value in values if isinstance(value, Unknown))


def asked(tree: Tree, label: str = "x") -> list[str]:
    """Why not all is known of ``probe_loader("x", …)``."""
    found = tree.model.flow.values(tree.asked(label))
    assert isinstance(found, Values)
    return reasons(found)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        # expressions
        ("x = 1 + 1", "computed"),
        ("x = b''", "a long literal"),
        ("x = -y", "an expression that is not followed"),
        ("x = 1\nx += 1", "`x` is changed in place"),
        ("from elsewhere import *", "`x` comes from a star import"),
        ("from .missing import x", "`x` is imported from outside the tree"),
        ("import lib\nx = lib.gone", "`gone` is not defined in lib.py"),
        # parts
        ("class C: pass\nx, y = C()", "unpacked from an object"),
        ("x, y = undefined", "unpacked"),
        ("x, y = b'', 1", "a long literal"),
        ("for x in undefined: pass", "an element"),
        ("for x in b'': pass", "a long literal"),
        ("x = undefined()[0]", "an item of a container that is not followed"),
        ("x = b''[0]", "a long literal"),
        ("x = {**undefined}['a']", "merged from another dict"),
        ("x = (lambda: 1).name", "`.name` of something that is not followed"),
        ("x = b''.name", "a long literal"),
        # attributes
        ("x = RandomSampler(d).more", "`.more` of RandomSampler"),
        ("class C: pass\nx = C().more", "`.more` is set nowhere in C"),
        ("class C: pass\nx = C.more", "`.more` of class C"),
        ("class C:\n def f(self): return super().more\nx = C().f()", "`super().more`"),
        (
            "class C:\n def f(self):\n  self.a = 1\n  self.a += 1\n  return self.a\nx = C().f()",
            "`a` is changed in place",
        ),
        # calls
        ("x = super().f", "super() outside a method"),
        ("class C: pass\nx = C()()", "calling an instance of C"),
        ("x = (1)()", "a call"),
        ("x = b''()", "a long literal"),
        ("x = getattr(d, name)", "getattr with a computed name"),
        (
            "from collections import namedtuple\nx = namedtuple('T', 'a b')(1)",
            "a named tuple",
        ),
        # parameters
        ("def f(*x):\n global y\n y = x\nf(*b())\nx = y", "passed by *"),
        ("class C:\n def f(self, a): self.a = a\nx = C().a", "nothing in this tree calls `C.f`"),
        ("def f(a):\n global y\n y = a\nf()\nx = y", "a decorator of `f` passes `a`"),
        ("def f(a):\n global y\n y = a\nf(**b())\nx = y", "passed by **"),
        ("def f(a):\n global y\n y = a\nf(*b())\nx = y", "passed by *"),
    ],
)
def test_each_has_its_reason(tmp_path: Path, source: str, reason: str) -> None:
    files = {"main.py": f"{TORCH}{source}\nprobe_loader('x', x)\n", "lib.py": "y = 1\n"}
    assert asked(Tree(tmp_path, files)) == [reason]


@pytest.mark.parametrize(
    ("base", "method", "reason"),
    [
        ("outside.Base", "f", "outside.Base is outside the tree"),
        ("undefined[0]()", "f", "a base class made by a call"),
        ("b''", "f", "a long literal"),
        ("object", "g", "`g` is no plain method"),
    ],
)
def test_why_it_is_not_known_who_defines_a_method(
    tmp_path: Path, base: str, method: str, reason: str
) -> None:
    source = f"import outside\nclass C({base}):\n    g = 1\nprobe_loader('x', C())\n"
    tree = Tree(tmp_path, {"main.py": source})
    assert tree.model.flow.method(tree.cls("C"), method) == Unknown(reason)


def test_bases_and_classes_that_are_not_found(tmp_path: Path) -> None:
    source = """
        class Holder:
            base: type
        class C(Holder().base):
            pass
        probe_loader("x", C())
    """
    tree = Tree(tmp_path, source)
    flow = tree.model.flow
    assert flow.mro(tree.cls("C"))[1:] == (Unknown("a base class that is not found"),)
    assert flow.method("no.such.Class", "f") == Unknown("no.such.Class is not known")
    assert flow.method("torch.utils.data.RandomSampler", "set_epoch") is None


def test_a_partial_of_itself(tmp_path: Path) -> None:
    files = {
        "main.py": f"{TORCH}from lib import again\nprobe_loader('y', again(1))\n",
        "lib.py": f"{TORCH}from functools import partial\nagain = print\n"
        "again = partial(again, 1)\n"
        "def loop():\n    global again\n    again = partial(again, 2)\n",
    }
    tree = Tree(tmp_path, files)
    assert "a partial of itself" in asked(tree, "y")


def test_limits_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = "x = " + " or ".join(f"f({n})" for n in range(30)) + "\nprobe_loader('x', x)\n"
    assert asked(Tree(tmp_path, {"main.py": many})) == ["too many values"]
    monkeypatch.setattr(solver, "MOST_STEPS", 5)
    chain = "\n".join(f"x{n + 1} = x{n}" for n in range(30))
    source = f"{TORCH}x0 = RandomSampler(d)\n{chain}\nprobe_loader('x', x30)\n"
    assert "too much to follow" in asked(Tree(tmp_path, {"main.py": source}))


@pytest.mark.parametrize("key", ["shuffle", "batch_size"])
def test_what_a_dict_holds_stays_unknown_where_it_was_too_much_to_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    source = f"""
        given = {{"batch_size": 4}}
        given["shuffle"] = True
        given.pop("batch_size")
        loader = DataLoader(d, **given)
        probe_loader("x", given["{key}"])
    """
    lost = set()
    for steps in range(12):
        tree = Tree(tmp_path, source)
        flow = tree.model.flow
        (loader,) = tree.model.loaders
        monkeypatch.setattr(solver, "MOST_STEPS", steps)
        flow.values(tree.asked("x"))
        monkeypatch.undo()
        given = flow.argument(loader, key)
        assert given is not None or flow.may_be_passed(loader, key)
        lost.add(given is None)
    assert lost == ({False, True} if key == "shuffle" else {True})


def test_a_hierarchy_too_deep_is_said(tmp_path: Path) -> None:
    classes = "".join(f"class C{n}(C{n - 1}):\n    pass\n" for n in range(1, 80))
    tree = Tree(tmp_path, {"main.py": f"{TORCH}class C0(Sampler):\n    pass\n{classes}"})
    flow = tree.model.flow
    assert flow.method(tree.cls("C79"), "f") == Unknown("a hierarchy too deep to follow")
    assert flow.method(tree.cls("C9"), "f") is None


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def f(a):\n    probe_loader('x', a)", Why.CHOSEN),
        ("class C: pass\nprobe_loader('x', C().more)", Why.UNDEFINED),
        ("class C: pass\nprobe_loader('x', C.more)", Why.UNDEFINED),
        ("import lib\nprobe_loader('x', lib.gone)", Why.UNDEFINED),
        ("import outside\nclass C(outside.B): pass\nprobe_loader('x', C().more)", Why.FOREIGN),
        ("class C(b''): pass\nprobe_loader('x', C().more)", Why.LOST),
        ("class C:\n    def __getattr__(self, name): ...\nprobe_loader('x', C().more)", Why.LOST),
        ("from elsewhere import *\nprobe_loader('x', x)", Why.FOREIGN),
        ("from .missing import x\nprobe_loader('x', x)", Why.FOREIGN),
        ("probe_loader('x', getattr(d, name))", Why.LOST),
    ],
)
def test_each_has_its_kind(tmp_path: Path, source: str, why: Why) -> None:
    tree = Tree(tmp_path, {"main.py": f"{TORCH}{source}\n", "lib.py": "y = 1\n"})
    (value,) = tree.model.flow.values(tree.asked("x"))
    assert isinstance(value, Unknown)
    assert value.why is why
