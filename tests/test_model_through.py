"""Values as one call of a function sees them: constants, and what is handed back."""

from __future__ import annotations

from pathlib import Path

import pytest

from trees import TORCH, Tree


def constants(folder: Path, source: str, label: str = "x") -> set[object] | None:
    """What ``probe_loader("x", …)`` inside of ``build`` may be in the call ``build``."""
    tree = Tree(folder, source)
    return tree.model.flow.constants(tree.asked(label), tree.call("build"))


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("a", {2}),
        ("b", {None}),
        ("not a", {False}),
        ("not other", None),
        ("1 if a else 3", {1}),
        ("1 if b else 3", {3}),
        ("a if unknown else 3", {2, 3}),
        ("a if unknown else other", None),
        ("a or 3", {2}),
        ("b or 3", {3}),
        ("a and 3", {3}),
        ("b and 3", {None}),
        ("unknown or a", None),
        ("b or b or a", {None, 2}),
        ("a == 2", {True}),
        ("a != 2", {False}),
        ("b is None", {True}),
        ("b is not None", {False}),
        ("a == other", None),
        ("other == a", None),
        ("a < 2", None),
        ("a == 2 == 2", None),
        ("local", {2}),
        ("changed", {1, 7}),
        ("first", None),
        ("more", None),
    ],
)
def test_a_parameter_has_the_value_that_this_call_passes(
    tmp_path: Path, expression: str, values: set[object] | None
) -> None:
    source = f"""
        def build(a, b=None, *more):
            local = a
            changed = 1
            if unknown:
                changed = 7
            first, second = a
            probe_loader("x", {expression})
        def also(build_again):
            build_again(5, 5)
        also(build)
        build(2)
    """
    assert constants(tmp_path, source) == values


@pytest.mark.parametrize(
    "source",
    [
        """
        class Maker:
            def build(self, a):
                probe_loader("x", a)
        Maker().build(2)
        """,
        """
        class Maker:
            @staticmethod
            def build(a):
                probe_loader("x", a)
        Maker.build(2)
        """,
        """
        class Maker:
            @classmethod
            def build(cls, a):
                probe_loader("x", a)
        Maker.build(2)
        """,
        """
        def made(a, b):
            probe_loader("x", b)
        from functools import partial
        build = partial(made, 1)
        build(2)
        """,
    ],
)
def test_methods_count_their_arguments_from_the_object(tmp_path: Path, source: str) -> None:
    assert constants(tmp_path, source) == {2}


def test_what_a_call_does_not_show_is_not_known(tmp_path: Path) -> None:
    source = """
        def build(a):
            probe_loader("x", a)
        build(*found)
    """
    assert constants(tmp_path, source) is None


def test_a_call_of_another_function_says_nothing(tmp_path: Path) -> None:
    source = """
        def one(a):
            probe_loader("x", a)
        def build(a):
            pass
        one(1)
        build(2)
    """
    assert constants(tmp_path, source) == {1}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            """
            class Same:
                def same(self, loader):
                    return loader
            probe_loader("x", Same().same(DataLoader(a)))
            probe_loader("y", Same().same(DataLoader(b)))
            """,
            {"x": {"DataLoader(a)"}, "y": {"DataLoader(b)"}},
        ),
        (
            """
            class Same:
                @staticmethod
                def same(loader):
                    return loader
            probe_loader("x", Same.same(DataLoader(a)))
            probe_loader("y", Same().same(loader=DataLoader(b)))
            """,
            {"x": {"DataLoader(a)"}, "y": {"DataLoader(b)"}},
        ),
        (
            """
            loaders = {}
            loaders["a"], loaders["b"] = DataLoader(a), DataLoader(b)
            probe_loader("x", loaders["a"])
            probe_loader("y", loaders["b"])
            """,
            {"x": {"DataLoader(a)"}, "y": {"DataLoader(b)"}},
        ),
        (
            """
            class Mine(DataLoader):
                pass
            probe_loader("x", Mine(a, sampler=RandomSampler(a)).sampler)
            probe_loader("y", Mine(a, 1, False, SequentialSampler(a)).sampler)
            """,
            {"x": {"RandomSampler(a)"}, "y": {"SequentialSampler(a)"}},
        ),
        (
            """
            class Data:
                pass
            data = Data()
            data.loader = DataLoader(a)
            probe_loader("x", getattr(data, "loader", DataLoader(b)))
            """,
            {"x": {"DataLoader(a)", "DataLoader(b)"}},
        ),
        (
            """
            class Base:
                def __init__(self):
                    self.loader = DataLoader(a)
                def mine(self):
                    return self
            class Data(Base):
                def mine(self):
                    return super().mine()
            probe_loader("x", Data().mine().loader)
            """,
            {"x": {"DataLoader(a)"}},
        ),
        (
            """
            def inner(loader):
                return loader, 1
            def outer(loader):
                return inner(loader)
            one, _ = outer(DataLoader(a))
            two, _ = outer(DataLoader(b))
            probe_loader("x", one)
            probe_loader("y", two)
            """,
            {"x": {"DataLoader(a)"}, "y": {"DataLoader(b)"}},
        ),
        (
            """
            class Base:
                def fit(self, loader, other=None):
                    probe_loader("x", loader)
                    probe_loader("y", other)
            class Mine(Base):
                def fit(self, loader):
                    super().fit(loader, DataLoader(b))
            Mine().fit(DataLoader(a))
            """,
            {"x": {"DataLoader(a)"}, "y": {"DataLoader(b)"}},
        ),
        (
            """
            import lib
            loaders = {"train": DataLoader(a)}
            probe_loader("x", lib.build().loader)
            probe_loader("y", loaders.pop("train"))
            class Base:
                def __init_subclass__(cls):
                    probe_loader("z", cls)
            """,
            {"x": {"lib.build().loader"}, "y": {"DataLoader(a)"}, "z": {"class Base"}},
        ),
        (
            """
            import torch.multiprocessing as mp
            def run(loader):
                probe_loader("x", loader)
            class Other:
                def run(self, loader):
                    probe_loader("y", loader)
            def main(loader):
                probe_loader("z", loader)
            mp.Process(name="nobody").start()
            mp.Process(target=run, args=(DataLoader(a),)).start()
            mp.Process(target=Other().run, args=(DataLoader(b),)).start()
            launch(main, 8, args=(DataLoader(c),))
            """,
            {
                "x": {"?", "DataLoader(a)"},
                "y": {"?", "DataLoader(b)"},
                "z": {"?", "DataLoader(c)"},
            },
        ),
    ],
    ids=[
        "method",
        "static",
        "slots",
        "known-base",
        "getattr",
        "super",
        "tuple",
        "super-call",
        "others",
        "processes",
    ],
)
def test_each_gets_its_own(tmp_path: Path, source: str, expected: dict[str, set[str]]) -> None:
    tree = Tree(tmp_path, source)
    assert {label: tree.values(label) for label in expected} == expected


def test_what_is_built_in_a_call_remembers_it_in_containers_too(tmp_path: Path) -> None:
    source = """
        def build():
            return DataLoader(a), {"test": DataLoader(b)}
        def same(pair):
            kept = pair
            return kept
        train, tests = build()
        probe_loader("x", train)
        probe_loader("y", tests["test"])
        outside, _ = same((DataLoader(c), 1))
        probe_loader("z", outside)
    """
    tree = Tree(tmp_path, source)
    assert tree.obj("x").through is tree.obj("y").through is tree.call("build")
    assert tree.obj("z").through is None


def test_names_of_a_module_that_hands_on_all_of_another(tmp_path: Path) -> None:
    files = {
        "main.py": "import lib\nprobe_loader('x', lib.one)\nprobe_loader('y', lib.two)\n",
        "lib.py": "from deep import *\n",
        "deep.py": f"{TORCH}one = DataLoader(a)\ntwo = DataLoader(b)\n",
    }
    tree = Tree(tmp_path, files)
    assert (tree.values("x"), tree.values("y")) == ({"DataLoader(a)"}, {"DataLoader(b)"})


def test_what_a_constructor_takes(tmp_path: Path) -> None:
    source = """
        from elsewhere import Base
        class Own(DataLoader):
            def __init__(self, data, *rest, seed, **more): ...
        class Inheriting(DataLoader): ...
        class Plain: ...
        class Outside(Base): ...
        def run(loader=DataLoader(a)):
            probe_loader("x", loader)
        probe_loader("y", DistributedSampler(a, **{"seed": 1, **read()}))
        probe_loader("z", DistributedSampler(a, **{"seed": 1}))
    """
    tree = Tree(tmp_path, source)
    flow = tree.model.flow
    names = {name: flow.params(tree.cls(name)) for name in ("Own", "Plain", "Outside")}
    assert names == {"Own": ("data",), "Plain": (), "Outside": None}
    assert (flow.params(tree.cls("Inheriting")) or ())[:2] == ("dataset", "batch_size")
    assert tree.values("x") == {"?", "DataLoader(a)"}
    assert flow.may_be_passed(tree.obj("y"), "shuffle")
    assert not flow.may_be_passed(tree.obj("z"), "shuffle")
