"""Which values reach an expression."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.samplers import epoch_path, shuffles
from sampler_lint.limits import MOST_CALLERS
from trees import TORCH, Tree


def says(folder: Path, source: str) -> set[str]:
    """What the model says of ``probe_loader("x", …)``."""
    return Tree(folder, source).values()


def cases(**sources: str):
    """Each source ends in the answer, after ``# is``."""
    return pytest.mark.parametrize("source", sources.values(), ids=sources.keys())


def answer(source: str) -> set[str]:
    """The comments ``# is …`` of a source, one value each."""
    return {line.partition("# is ")[2].strip() for line in source.splitlines() if "# is " in line}


@cases(
    assignment="""
        loader = DataLoader(a)  # is DataLoader(a)
        probe_loader("x", loader)
    """,
    chain="""
        one = two = DataLoader(a)  # is DataLoader(a)
        probe_loader("x", two)
    """,
    merged_into_itself="""
        options = {"loader": DataLoader(a)}  # is DataLoader(a)
        while more():
            options = {**options, "seed": 1}
        probe_loader("x", options["loader"])
    """,
    early_return="""
        def build():
            if a is None:
                return
            return DataLoader(a)  # is DataLoader(a)
        loader = build()
        probe_loader("x", loader)
    """,
    recursive_factory="""
        def build(deeper):
            if deeper is None:
                return
            if deeper:
                return build(deeper - 1)
            return DataLoader(a)  # is DataLoader(a)
        probe_loader("x", build(3))
    """,
    annotated="""
        loader: DataLoader = DataLoader(a)  # is DataLoader(a)
        probe_loader("x", loader)
    """,
    tuple_slot="""
        train, test = DataLoader(a), DataLoader(b)  # is DataLoader(b)
        probe_loader("x", test)
    """,
    nested_tuple="""
        (one, (two, three)), four = (1, (2, DataLoader(a))), 4  # is DataLoader(a)
        probe_loader("x", three)
    """,
    tuple_index="""
        pair = (DataLoader(a), DataLoader(b))  # is DataLoader(a)
        probe_loader("x", pair[0])
    """,
    tuple_index_from_the_end="""
        pair = (DataLoader(a), DataLoader(b))  # is DataLoader(b)
        probe_loader("x", pair[-1])
    """,
    dict_merged_from_itself="""
        loaders = {"train": DataLoader(a)}  # is DataLoader(a)
        for name in names:
            loaders = {**loaders, name: 1}  # is 1
            loaders = {**loaders, "x": 2}
        probe_loader("x", loaders["train"])
    """,
    named_tuple="""
        from collections import namedtuple
        Loaders = namedtuple("Loaders", ["train", "test"])
        loaders = Loaders(test=DataLoader(b), train=DataLoader(a))  # is DataLoader(a)
        probe_loader("x", loaders.train)
    """,
    named_tuple_taken_apart="""
        import collections
        def build():
            return collections.namedtuple("L", "train, test")(DataLoader(a), DataLoader(b))
        train, test = build()
        # is DataLoader(b)
        probe_loader("x", test)
    """,
    named_tuple_with_a_default="""
        import collections
        Loaders = collections.namedtuple("L", "train test", defaults=(None,))
        # is ?
        probe_loader("x", Loaders(DataLoader(a)).train)
    """,
    dict_display="""
        loaders = {"train": DataLoader(a), "test": DataLoader(b)}  # is DataLoader(a)
        probe_loader("x", loaders["train"])
    """,
    dict_call="""
        loaders = dict(train=DataLoader(a), test=DataLoader(b))  # is DataLoader(b)
        probe_loader("x", loaders["test"])
    """,
    dict_get="""
        loaders = {"train": DataLoader(a), "test": DataLoader(b)}  # is DataLoader(b)
        probe_loader("x", loaders.get("test"))
    """,
    dict_store="""
        loaders = {}
        loaders["train"] = DataLoader(a)  # is DataLoader(a)
        loaders["test"] = DataLoader(b)
        probe_loader("x", loaders["train"])
    """,
    dict_values="""
        loaders = {
            "train": DataLoader(a),  # is DataLoader(a)
            "test": DataLoader(b),  # is DataLoader(b)
        }
        for loader in loaders.values():
            probe_loader("x", loader)
    """,
    dict_items="""
        for name, loader in {"train": DataLoader(a)}.items():  # is DataLoader(a)
            probe_loader("x", loader)
    """,
    list_elements="""
        for loader in [
            DataLoader(a),  # is DataLoader(a)
            DataLoader(b),  # is DataLoader(b)
        ]:
            probe_loader("x", loader)
    """,
    list_append="""
        loaders = []
        loaders.append(DataLoader(a))  # is DataLoader(a)
        for loader in loaders:
            probe_loader("x", loader)
    """,
    comprehension="""
        loaders = [DataLoader(part) for part in parts]  # is DataLoader(part)
        probe_loader("x", loaders[0])
    """,
    ternary="""
        loader = (
            DataLoader(a)  # is DataLoader(a)
            if flag else
            DataLoader(b)  # is DataLoader(b)
        )
        probe_loader("x", loader)
    """,
    or_="""
        def f(loader=None):
            loader = loader or DataLoader(a)  # is DataLoader(a)
            probe_loader("x", loader)  # is None
        f()
    """,
    walrus="""
        if (loader := DataLoader(a)) is not None:  # is DataLoader(a)
            probe_loader("x", loader)
    """,
    with_="""
        with DataLoader(a) as loader:  # is DataLoader(a)
            probe_loader("x", loader)
    """,
    lambda_="""
        build = lambda part: DataLoader(part)  # is DataLoader(part)
        probe_loader("x", build(a))
    """,
    global_read_in_a_function="""
        loader = DataLoader(a)  # is DataLoader(a)
        def main():
            probe_loader("x", loader)
    """,
    global_set_in_a_function="""
        loader = None  # is None
        def setup():
            global loader
            loader = DataLoader(a)  # is DataLoader(a)
        def main():
            probe_loader("x", loader)
    """,
    closure="""
        def main():
            loader = DataLoader(a)  # is DataLoader(a)
            def inner():
                probe_loader("x", loader)
    """,
    nonlocal_="""
        def main():
            loader = DataLoader(a)  # is DataLoader(a)
            def inner():
                nonlocal loader
                loader = DataLoader(b)  # is DataLoader(b)
            inner()
            probe_loader("x", loader)
    """,
    class_alias="""
        Loader = DataLoader
        probe_loader("x", Loader(a))  # is Loader(a)
    """.replace("# is Loader(a)", "#\n        # is Loader(a)"),
    copied="""
        import copy
        loader = copy.deepcopy(DataLoader(a))  # is DataLoader(a)
        probe_loader("x", loader)
    """,
)
def test_expressions(tmp_path: Path, source: str) -> None:
    assert says(tmp_path, source) == answer(source)


@cases(
    own_attribute="""
        class Trainer:
            def __init__(self):
                self.loader = DataLoader(a)  # is DataLoader(a)
            def fit(self):
                probe_loader("x", self.loader)
    """,
    from_outside="""
        class Trainer:
            def __init__(self):
                self.loader = DataLoader(a)  # is DataLoader(a)
        trainer = Trainer()
        probe_loader("x", trainer.loader)
    """,
    stored_from_outside="""
        class Trainer:
            pass
        trainer = Trainer()
        trainer.loader = DataLoader(a)  # is DataLoader(a)
        probe_loader("x", trainer.loader)
    """,
    other_classes_are_kept_apart="""
        class One:
            def __init__(self):
                self.loader = DataLoader(a)  # is DataLoader(a)
        class Two:
            def __init__(self):
                self.loader = DataLoader(b)
        probe_loader("x", One().loader)
    """,
    inherited="""
        class Base:
            def __init__(self):
                self.loader = DataLoader(a)  # is DataLoader(a)
        class Trainer(Base):
            def fit(self):
                probe_loader("x", self.loader)
    """,
    set_in_another_method="""
        class Trainer:
            def setup(self):
                self.loader = DataLoader(a)  # is DataLoader(a)
            def fit(self):
                probe_loader("x", self.loader)
    """,
    property_="""
        class Trainer:
            @property
            def loader(self):
                return DataLoader(a)  # is DataLoader(a)
            def fit(self):
                probe_loader("x", self.loader)
    """,
    class_attribute="""
        class Trainer:
            loader = DataLoader(a)  # is DataLoader(a)
            def fit(self):
                probe_loader("x", self.loader)
    """,
    given_to_the_constructor="""
        class Trainer:
            def __init__(self, loader):
                self.loader = loader
            def fit(self):
                probe_loader("x", self.loader)
        Trainer(DataLoader(a)).fit()  # is DataLoader(a)
    """,
    tuple_of_attributes="""
        class Trainer:
            def __init__(self):
                self.train, self.test = DataLoader(a), DataLoader(b)  # is DataLoader(b)
            def fit(self):
                probe_loader("x", self.test)
    """,
    dict_on_self="""
        class Trainer:
            def __init__(self):
                self.loaders = {"train": DataLoader(a), "test": DataLoader(b)}  # is DataLoader(a)
            def fit(self):
                probe_loader("x", self.loaders["train"])
    """,
    getattr_="""
        class Trainer:
            def __init__(self):
                self.loader = DataLoader(a)  # is DataLoader(a)
        probe_loader("x", getattr(Trainer(), "loader"))
    """,
    loaders_own="""
        loader = DataLoader(a, sampler=DistributedSampler(b))  # is DistributedSampler(b)
        probe_loader("x", loader.sampler)
    """.replace("# is", "\n        # is"),
    batch_samplers_inner="""
        inner = RandomSampler(b)
        # is RandomSampler(b)
        loader = DataLoader(a, batch_sampler=BatchSampler(inner, 4, False))
        probe_loader("x", loader.batch_sampler.sampler)
    """,
    named_tuple="""
        from typing import NamedTuple
        class Loaders(NamedTuple):
            train: DataLoader
            test: DataLoader
        loaders = Loaders(DataLoader(a), test=DataLoader(b))  # is DataLoader(b)
        probe_loader("x", loaders.test)
    """,
    named_tuple_unpacked="""
        from typing import NamedTuple
        class Loaders(NamedTuple):
            train: DataLoader
            test: DataLoader
        train, test = Loaders(DataLoader(a), DataLoader(b))  # is DataLoader(a)
        probe_loader("x", train)
    """,
    dataclass="""
        from dataclasses import dataclass
        @dataclass
        class Loaders:
            train: DataLoader
            test: DataLoader
        loaders = Loaders(train=DataLoader(a), test=DataLoader(b))  # is DataLoader(a)
        probe_loader("x", loaders.train)
    """,
    dataclass_default="""
        from dataclasses import dataclass
        @dataclass
        class Options:
            seed: int = 7  # is 7
        probe_loader("x", Options().seed)
    """,
    dataclass_inherited="""
        from dataclasses import dataclass
        @dataclass
        class Base:
            train: DataLoader
        @dataclass
        class Loaders(Base):
            test: DataLoader
        probe_loader("x", Loaders(DataLoader(a), DataLoader(b)).test)
        # is DataLoader(b)
    """,
)
def test_attributes(tmp_path: Path, source: str) -> None:
    assert says(tmp_path, source) == answer(source)


@cases(
    positional="""
        def fit(model, loader):
            probe_loader("x", loader)
        fit(m, DataLoader(a))  # is DataLoader(a)
    """,
    keyword="""
        def fit(model, loader):
            probe_loader("x", loader)
        fit(loader=DataLoader(a), model=m)  # is DataLoader(a)
    """,
    keyword_only="""
        def fit(*, loader):
            probe_loader("x", loader)
        fit(loader=DataLoader(a))  # is DataLoader(a)
    """,
    default="""
        def fit(seed=7):  # is 7
            probe_loader("x", seed)
        fit()
    """,
    default_overridden_somewhere="""
        def fit(seed=7):  # is 7
            probe_loader("x", seed)
        fit()
        fit(8)  # is 8
    """,
    several_callers="""
        def fit(loader):
            probe_loader("x", loader)
        fit(DataLoader(a))  # is DataLoader(a)
        fit(DataLoader(b))  # is DataLoader(b)
    """,
    method="""
        class Trainer:
            def fit(self, loader):
                probe_loader("x", loader)
        Trainer().fit(DataLoader(a))  # is DataLoader(a)
    """,
    static_method="""
        class Trainer:
            @staticmethod
            def fit(loader):
                probe_loader("x", loader)
        Trainer.fit(DataLoader(a))  # is DataLoader(a)
    """,
    class_method="""
        class Trainer:
            @classmethod
            def fit(cls, loader):
                probe_loader("x", loader)
        Trainer.fit(DataLoader(a))  # is DataLoader(a)
    """,
    unbound_method="""
        class Trainer:
            def fit(self, loader):
                probe_loader("x", loader)
        Trainer.fit(trainer, DataLoader(a))
        # is DataLoader(a)
    """,
    double_star_of_a_literal="""
        def fit(loader, seed):
            probe_loader("x", loader)
        options = {"loader": DataLoader(a), "seed": 1}  # is DataLoader(a)
        fit(**options)
    """,
    double_star_of_a_dict_call="""
        def fit(loader, seed):
            probe_loader("x", loader)
        fit(**dict(loader=DataLoader(a), seed=1))  # is DataLoader(a)
    """,
)
def test_arguments(tmp_path: Path, source: str) -> None:
    assert says(tmp_path, source) == answer(source)


@cases(
    plain="""
        def build():
            return DataLoader(a)  # is DataLoader(a)
        probe_loader("x", build())
    """,
    tuple_="""
        def build():
            return DataLoader(a), DataLoader(b)  # is DataLoader(b)
        train, test = build()
        probe_loader("x", test)
    """,
    tuple_handed_on="""
        def build():
            return DataLoader(a), DataLoader(b)  # is DataLoader(a)
        def setup():
            return build()
        train, test = setup()
        probe_loader("x", train)
    """,
    several="""
        def build(flag):
            if flag:
                return DataLoader(a)  # is DataLoader(a)
            return DataLoader(b)  # is DataLoader(b)
        probe_loader("x", build(flag))
    """,
    dict_="""
        def build():
            return {"train": DataLoader(a), "test": DataLoader(b)}  # is DataLoader(a)
        probe_loader("x", build()["train"])
    """,
    parameter="""
        def same(loader):
            return loader
        probe_loader("x", same(DataLoader(a)))
        # is DataLoader(a)
    """,
    yields="""
        def build():
            yield DataLoader(a)  # is DataLoader(a)
            yield DataLoader(b)  # is DataLoader(b)
        for loader in build():
            probe_loader("x", loader)
    """,
    yield_from="""
        def build():
            yield from [DataLoader(a)]  # is DataLoader(a)
        for loader in build():
            probe_loader("x", loader)
    """,
    context_manager="""
        from contextlib import contextmanager
        @contextmanager
        def opened():
            yield DataLoader(a)  # is DataLoader(a)
        with opened() as loader:
            probe_loader("x", loader)
    """,
    method="""
        class Data:
            def build(self):
                return DataLoader(a)  # is DataLoader(a)
        probe_loader("x", Data().build())
    """,
    inherited_method="""
        class Base:
            def build(self):
                return DataLoader(a)  # is DataLoader(a)
        class Data(Base):
            pass
        probe_loader("x", Data().build())
    """,
    overridden_method="""
        class Base:
            def build(self):
                return DataLoader(a)
        class Data(Base):
            def build(self):
                return DataLoader(b)  # is DataLoader(b)
        probe_loader("x", Data().build())
    """,
    super_method="""
        class Base:
            def build(self):
                return DataLoader(a)  # is DataLoader(a)
        class Data(Base):
            def build(self):
                return super().build()
        probe_loader("x", Data().build())
    """,
    from_self="""
        class Data:
            def build(self):
                return DataLoader(a)  # is DataLoader(a)
            def fit(self):
                loader = self.build()
                probe_loader("x", loader)
    """,
    callable_object="""
        class Build:
            def __call__(self):
                return DataLoader(a)  # is DataLoader(a)
        probe_loader("x", Build()())
    """,
    nothing_returned="""
        def build():
            pass
        probe_loader("x", build())
        # is None
    """,
)
def test_returns(tmp_path: Path, source: str) -> None:
    assert says(tmp_path, source) == answer(source)


@cases(
    overwritten="""
        def main():
            loader = DataLoader(a)
            loader = DataLoader(b)  # is DataLoader(b)
            probe_loader("x", loader)
    """,
    before="""
        def main():
            loader = DataLoader(a)  # is DataLoader(a)
            probe_loader("x", loader)
            loader = DataLoader(b)
    """,
    either_branch="""
        def main(flag):
            if flag:
                loader = DataLoader(a)  # is DataLoader(a)
            else:
                loader = DataLoader(b)  # is DataLoader(b)
            probe_loader("x", loader)
    """,
    overwritten_in_each_branch="""
        def main(flag, other):
            loader = DataLoader(a)
            if flag:
                with other:
                    loader = DataLoader(b)  # is DataLoader(b)
            elif other:
                loader = DataLoader(c)  # is DataLoader(c)
            else:
                return
            probe_loader("x", loader)
    """,
    overwritten_in_each_branch_of_a_turn="""
        def main(flag):
            while True:
                if flag:
                    sampler = RandomSampler(a)  # is RandomSampler(a)
                else:
                    sampler = RandomSampler(b)  # is RandomSampler(b)
                probe_loader("x", sampler)
                sampler = BatchSampler(sampler, 4, True)
    """,
    a_case_may_be_missing="""
        def main(flag):
            loader = DataLoader(a)  # is DataLoader(a)
            match flag:
                case 1:
                    loader = DataLoader(b)  # is DataLoader(b)
                case 2:
                    loader = DataLoader(c)  # is DataLoader(c)
            probe_loader("x", loader)
    """,
    maybe_overwritten="""
        def main(flag):
            loader = DataLoader(a)  # is DataLoader(a)
            if flag:
                loader = DataLoader(b)  # is DataLoader(b)
            probe_loader("x", loader)
    """,
    inside_a_branch="""
        def main(flag):
            if flag:
                loader = DataLoader(a)  # is DataLoader(a)
                probe_loader("x", loader)
            else:
                loader = DataLoader(b)
    """,
    back_around_a_loop="""
        def main():
            loader = DataLoader(a)  # is DataLoader(a)
            for epoch in range(3):
                probe_loader("x", loader)
                loader = DataLoader(b)  # is DataLoader(b)
    """,
    new_in_each_turn="""
        def main():
            loader = DataLoader(a)
            for epoch in range(3):
                loader = DataLoader(b)  # is DataLoader(b)
                probe_loader("x", loader)
    """,
    after_a_loop="""
        def main():
            loader = DataLoader(a)  # is DataLoader(a)
            for epoch in range(3):
                loader = DataLoader(b)  # is DataLoader(b)
            probe_loader("x", loader)
    """,
    wraps_itself="""
        def main():
            sampler = RandomSampler(a)
            sampler = BatchSampler(sampler, 4, True)  # is BatchSampler(sampler, 4, True)
            probe_loader("x", sampler)
    """,
    what_wraps_itself_holds="""
        def main():
            sampler = RandomSampler(a)  # is RandomSampler(a)
            sampler = BatchSampler(sampler, 4, True)
            probe_loader("x", sampler.sampler)
    """,
    parameter_replaced="""
        def main(loader):
            loader = DataLoader(a)  # is DataLoader(a)
            probe_loader("x", loader)
        main(1)
    """,
    parameter_default_none="""
        def main(loader=None):
            if loader is None:
                loader = DataLoader(a)  # is DataLoader(a)
            probe_loader("x", loader)
        main()
    """,
    parameter_default_filled_with_none="""
        def made():
            if distributed:
                return DataLoader(a)  # is DataLoader(a)
            return None  # is None
        def main(loader=None):
            if loader is None:
                loader = made()
            probe_loader("x", loader)
        main()
    """,
    matched_with_none="""
        def main(loader=None):
            match loader:
                case None:
                    probe_loader("x", loader)  # is None
        main()
    """,
    parameter_default_none_or_not="""
        def main(loader=None):
            if verbose:
                loader = DataLoader(a)  # is DataLoader(a)
            probe_loader("x", loader)  # is None
        main()
    """,
    handed_through_a_call="""
        def restored(loader):
            if verbose:
                return loader
            return loader
        def load(loader):
            loader = restored(loader)
            return loader, 1
        def main():
            loader, _ = load(DataLoader(a))  # is DataLoader(a)
            probe_loader("x", loader)
        def other():
            loader, _ = load(DataLoader(b))
    """,
    handed_through_a_named_tuple="""
        from typing import NamedTuple
        class State(NamedTuple):
            step: int
            loader: object
        def load(loader):
            return State(1, loader)
        def main():
            _, loader = load(DataLoader(a))  # is DataLoader(a)
            probe_loader("x", loader)
        def other():
            _, loader = load(DataLoader(b))
    """,
    try_="""
        def main():
            try:
                loader = DataLoader(a)  # is DataLoader(a)
            except OSError:
                loader = DataLoader(b)  # is DataLoader(b)
            probe_loader("x", loader)
    """,
    loop_variable="""
        def main():
            loader = None
            for loader in [DataLoader(a)]:  # is DataLoader(a)
                probe_loader("x", loader)
    """,
)
def test_reaching_definitions(tmp_path: Path, source: str) -> None:
    assert says(tmp_path, source) == answer(source)


# what is not known is said to be


@cases(
    dict_comprehension="""
        loaders = {name: DataLoader(part) for name, part in parts}  # is DataLoader(part)
        probe_loader("x", loaders["train"])
    """,
    namedtuple_call="""
        from collections import namedtuple
        Loaders = namedtuple("Loaders", "train test")
        loaders = Loaders(DataLoader(a), DataLoader(b))  # is DataLoader(a)
        probe_loader("x", loaders.train)
    """,
    kwargs_read="""
        def fit(**options):
            probe_loader("x", options["loader"])
        fit(loader=DataLoader(a))  # is DataLoader(a)
    """,
    kwargs_handed_on="""
        def inner(loader):
            probe_loader("x", loader)
        def fit(**options):
            inner(**options)
        fit(loader=DataLoader(a))  # is DataLoader(a)
    """,
    partial="""
        from functools import partial
        def fit(model, loader):
            probe_loader("x", loader)
        run = partial(fit, loader=DataLoader(a))  # is DataLoader(a)
        run(m)
    """,
    partial_positional="""
        from functools import partial
        def fit(loader, model):
            probe_loader("x", loader)
        run = partial(fit, DataLoader(a))  # is DataLoader(a)
        run(m)
    """,
    alias_of_a_function="""
        def fit(loader):
            probe_loader("x", loader)
        run = fit
        run(DataLoader(a))  # is DataLoader(a)
    """,
    given_through_super="""
        class Base:
            def __init__(self, loader):
                self.loader = loader
        class Trainer(Base):
            def __init__(self, loader):
                super().__init__(loader)
            def fit(self):
                probe_loader("x", self.loader)
        Trainer(DataLoader(a)).fit()  # is DataLoader(a)
    """,
    from_a_registry="""
        BUILDERS = {}
        def register(build):
            BUILDERS[build.__name__] = build
            return build
        @register
        def build():
            return DataLoader(a)  # is DataLoader(a)
        probe_loader("x", BUILDERS[name]())
    """,
    decorated="""
        def logged(function):
            def inner(*args):
                return function(*args)
            return inner
        @logged
        def build():
            return DataLoader(a)  # is DataLoader(a)
        probe_loader("x", build())
    """,
    mapped="""
        def build(part):
            return DataLoader(part)  # is DataLoader(part)
        for loader in map(build, parts):
            probe_loader("x", loader)
    """,
)
def test_hard_cases_are_right_or_unknown(tmp_path: Path, source: str) -> None:
    """How far these are followed is a matter of effort; a wrong answer is none."""
    said = says(tmp_path, source)
    assert said == answer(source) or ("?" in said and said - {"?"} <= answer(source))


@cases(
    in_place="""
        loader = 1
        loader += other
        probe_loader("x", loader)
    """,
    public_parameter="""
        def fit(loader):
            probe_loader("x", loader)
    """,
    star_argument="""
        def fit(loader):
            probe_loader("x", loader)
        fit(*things)
    """,
    double_star_of_a_call="""
        def fit(loader):
            probe_loader("x", loader)
        fit(**read())
    """,
    outside_base="""
        from framework import Base
        class Trainer(Base):
            def fit(self):
                probe_loader("x", self.loader)
    """,
)
def test_unknown_is_said(tmp_path: Path, source: str) -> None:
    assert "?" in says(tmp_path, source)


def test_what_is_outside_is_no_object_of_ours(tmp_path: Path) -> None:
    tree = Tree(tmp_path, 'import lib\nprobe_loader("x", lib.build())\n')
    assert not any(isinstance(v, Obj) for v in tree.model.flow.values(tree.asked("x")))


# the call a factory's object came through


FACTORY = """
    def build(train, shuffle=True):
        sampler = DistributedSampler(data, shuffle=shuffle and train)
        return DataLoader(data, sampler=sampler)
    probe_loader("train", build(True))
    probe_loader("test", build(train=False))
    probe_loader("plain", build(True, shuffle=False))
    probe_loader("default", build(train=True))
"""


def test_loaders_of_one_factory_are_told_apart(tmp_path: Path) -> None:
    tree = Tree(tmp_path, FACTORY)
    train, test = tree.obj("train"), tree.obj("test")
    assert train.site is test.site
    assert train.through is tree.asked("train")
    assert test.through is tree.asked("test")


@pytest.mark.parametrize(
    ("label", "expected"),
    [("train", True), ("test", False), ("plain", False), ("default", True)],
)
def test_whether_a_sampler_shuffles_follows_the_call(
    tmp_path: Path, label: str, expected: bool
) -> None:
    tree = Tree(tmp_path, FACTORY)
    loader = tree.obj(label)
    (sampler,) = tree.model.passed_to(loader, "sampler")
    assert isinstance(sampler, Obj)
    assert shuffles(tree.model, sampler, loader.through) is expected


# constants


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("3", {3}),
        ("None", {None}),
        ("not True", {False}),
        ("1 if True else 2", {1}),
        ("1 if flag else 2", {1, 2}),
        ("False or 5", {5}),
        ("True and 5", {5}),
        ("0 and flag", {0}),
        ("SPLIT == 'train'", {True}),
        ("SPLIT != 'train'", {False}),
        ("SPLIT is None", {False}),
        ("flag", None),
        ("flag or 5", None),
        ("read()", None),
        ("True and 1 and 2", {True, 2}),
        ("0 or SPLIT or 2", {0, "train", 2}),
        ("3 < 4", None),
    ],
)
def test_constants(tmp_path: Path, expression: str, values: set[object] | None) -> None:
    tree = Tree(tmp_path, f'SPLIT = "train"\nprobe_loader("x", {expression})\n')
    assert tree.model.flow.constants(tree.asked("x")) == values


def test_constants_of_one_call(tmp_path: Path) -> None:
    source = """
        def build(data, shuffle, size=4, *more):
            mine = size
            other = shuffle
            probe_loader("size", mine)
            probe_loader("shuffle", other)
            probe_loader("more", more)
        build(d, True)
        build(d, read(), 8)
    """
    tree = Tree(tmp_path, source)
    first, second = tree.model.project.calls_named("build")
    constants = tree.model.flow.constants
    assert constants(None) is None
    assert constants(tree.asked("size")) == {4, 8}
    assert [constants(tree.asked("size"), call) for call in (first, second)] == [{4}, {8}]
    assert [constants(tree.asked("shuffle"), call) for call in (first, second)] == [{True}, None]
    assert constants(tree.asked("more"), first) is None


# classes


def test_what_a_constructor_takes(tmp_path: Path) -> None:
    source = """
        from elsewhere import Thing
        class Plain: pass
        class Named:
            def __init__(self, data, *rest, size=3, **more): pass
        class Inherits(Named): pass
        class Torch(DistributedSampler): pass
        class Far(Thing): pass
        class Made(make_base()): pass
    """
    tree = Tree(tmp_path, source)
    told = {name: tree.model.flow.params(tree.cls(name)) for name in ("Plain", "Named", "Inherits")}
    assert told == {"Plain": (), "Named": ("data",), "Inherits": ("data",)}
    torch = tree.model.flow.params(tree.cls("Torch"))
    assert torch is not None
    assert torch[:3] == ("dataset", "num_replicas", "rank")
    assert tree.model.flow.params(tree.cls("Far")) is None
    assert tree.model.flow.params(tree.cls("Made")) is None


def test_a_hierarchy_may_be_too_deep(tmp_path: Path) -> None:
    source = "".join(f"class C{n}(C{n - 1}): pass\n" for n in range(1, 300))
    tree = Tree(tmp_path, "class C0(Sampler): pass\n" + source)
    assert tree.model.is_a(tree.cls("C299"), "torch.utils.data.Sampler") is None
    assert tree.model.is_a(tree.cls("C9"), "torch.utils.data.Sampler") is True


def test_why_attributes_of_a_class_may_be_others(tmp_path: Path) -> None:
    source = """
        class Made(make_base()): pass
        class Meta(Sampler, metaclass=Registry): pass
        class Abstract(Sampler, metaclass=ABCMeta): pass
        class Loads(Sampler):
            def load(self, state):
                self.__dict__ = state
        class Wrapped(Sampler):
            def __getattr__(self, name):
                return getattr(self.inner, name)
        @traced
        class Decorated(Sampler): pass
    """
    tree = Tree(tmp_path, source)
    reasons = {cls.name: tree.model.attributes(cls).open for _, cls in tree.model.classes()}
    assert reasons.pop("Abstract") is None
    assert reasons.pop("Made") is not None
    assert {name: reason and reason.split(" ", 1)[1] for name, reason in reasons.items()} == {
        "Meta": "has a metaclass",
        "Loads": "uses __dict__",
        "Wrapped": "defines __getattr__",
        "Decorated": "is decorated",
    }


HIERARCHY = """
    import torch.utils.data as tud
    from elsewhere import Thing
    class Plain: pass
    class Mine(tud.Sampler): pass
    class Batches(BatchSampler): pass
    class Both(Mine, DistributedSampler): pass
    class Far(Thing): pass
    class FarSampler(Thing, Mine): pass
    class Made(make_base()): pass
    class Generic(Sampler[int]): pass
    class Deep(Batches): pass
"""


@pytest.mark.parametrize(
    ("name", "is_sampler", "is_batch_sampler"),
    [
        ("Plain", False, False),
        ("Mine", True, False),
        ("Generic", True, False),
        ("Batches", True, True),
        ("Deep", True, True),
        ("Both", True, False),
        ("FarSampler", True, None),
        ("Made", None, None),
    ],
)
def test_is_a(tmp_path: Path, name: str, is_sampler, is_batch_sampler) -> None:
    tree = Tree(tmp_path, HIERARCHY)
    model = tree.model
    assert model.is_a(tree.cls(name), "torch.utils.data.Sampler") is is_sampler
    answer = model.is_a(tree.cls(name), "torch.utils.data.BatchSampler")
    assert answer is is_batch_sampler or (is_batch_sampler is None and answer is False)


def test_linearisation_is_pythons(tmp_path: Path) -> None:
    source = """
        class Root(Sampler): pass
        class Left(Root): pass
        class Right(Root): pass
        class Leaf(Left, Right): pass
    """
    tree = Tree(tmp_path, source)
    names = [getattr(base, "name", base) for base in tree.model.flow.mro(tree.cls("Leaf"))]
    assert names[:4] == ["Leaf", "Left", "Right", "Root"]
    assert names[4] == "torch.utils.data.Sampler"


def test_who_defines_a_method(tmp_path: Path) -> None:
    source = """
        class Mine(DistributedSampler):
            def __iter__(self): ...
        class Plain: pass
    """
    tree = Tree(tmp_path, source)
    method = tree.model.flow.method
    assert method(tree.cls("Mine"), "__iter__") is tree.function("Mine.__iter__")
    assert method(tree.cls("Mine"), "set_epoch") == "torch.utils.data.DistributedSampler"
    assert method(tree.cls("Plain"), "set_epoch") is None


def test_attributes_of_a_class(tmp_path: Path) -> None:
    source = """
        class Base(DistributedSampler):
            window = 4
            def __init__(self, dataset):
                super().__init__(dataset)
                self.dataset_size = len(dataset)
        class Mine(Base):
            def set_window(self, window):
                self.width = window
        class Open(Base):
            def load(self, state):
                self.__dict__.update(state)
    """
    tree = Tree(tmp_path, source)
    found = tree.model.attributes(tree.cls("Mine"))
    assert found.open is None
    assert {"window", "dataset_size", "width", "set_window", "num_samples", "epoch"} <= found.names
    assert "windows" not in found.names
    assert tree.model.attributes(tree.cls("Open")).open is not None


def test_base_attributes_need_the_bases_init(tmp_path: Path) -> None:
    source = """
        class Mine(DistributedSampler):
            def __init__(self, dataset):
                self.dataset = dataset
    """
    tree = Tree(tmp_path, source)
    names = tree.model.attributes(tree.cls("Mine")).names
    assert "dataset" in names
    assert "num_samples" not in names


# constructions


def test_arguments_of_a_construction(tmp_path: Path) -> None:
    source = """
        options = {"shuffle": False}
        probe_loader("x", DistributedSampler(data, 2, rank=1, **options))
        probe_loader("y", DistributedSampler(data, **read()))
        probe_loader("z", DistributedSampler(*args))
    """
    tree = Tree(tmp_path, source)
    flow = tree.model.flow
    x, y, z = tree.obj("x"), tree.obj("y"), tree.obj("z")
    given = {name: flow.argument(x, name) for name in ("num_replicas", "rank", "shuffle", "seed")}
    assert {n: e and flow.constants(e) for n, e in given.items()} == {
        "num_replicas": {2},
        "rank": {1},
        "shuffle": {False},
        "seed": None,
    }
    assert not flow.may_be_passed(x, "seed")
    assert flow.may_be_passed(y, "seed")
    assert flow.may_be_passed(z, "seed")


def test_a_class_chosen_at_run_time_may_be_either(tmp_path: Path) -> None:
    source = """
        cls = RandomSampler if flag else SequentialSampler
        probe_loader("x", cls(a))
    """
    tree = Tree(tmp_path, source)
    found = tree.model.flow.values(tree.asked("x"))
    assert {obj.name for obj in found if isinstance(obj, Obj)} == {
        "RandomSampler",
        "SequentialSampler",
    }


def test_constructions_by_role(tmp_path: Path) -> None:
    source = """
        class Mine(Sampler): pass
        class MyLoader(DataLoader): pass
        a = MyLoader(data, sampler=Mine())
        b = DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 2, True))
        c = dict(sampler=None)
    """
    tree = Tree(tmp_path, source)
    roles = sorted((obj.name, tree.model.role(obj)) for obj in tree.model.constructions())
    assert roles == [
        ("BatchSampler", "batch_sampler"),
        ("DataLoader", "loader"),
        ("Mine", "sampler"),
        ("MyLoader", "loader"),
        ("RandomSampler", "sampler"),
    ]


@pytest.mark.parametrize(
    ("sampler", "path"),
    [
        ("DistributedSampler(d)", ()),
        ("BatchSampler(DistributedSampler(d), 2, True)", ("sampler",)),
        ("BatchSampler(RandomSampler(d), 2, True)", None),
        ("RandomSampler(d)", None),
        ("Mine(d)", ()),
        ("None", None),
    ],
)
def test_how_an_epoch_is_reached(tmp_path: Path, sampler: str, path) -> None:
    source = f"""
        class Mine(BatchSampler):
            def set_epoch(self, epoch): ...
        probe_loader("x", {sampler})
    """
    tree = Tree(tmp_path, source)
    (value,) = tree.model.flow.values(tree.asked("x"))
    assert epoch_path(tree.model, value) == path


def test_callers_and_callees(tmp_path: Path) -> None:
    files = {
        "main.py": TORCH + "from lib import fit, Trainer\nfit(1)\nTrainer(2)\nTrainer(3).step()\n",
        "lib.py": "# loader\ndef fit(n): ...\nclass Trainer:\n    def __init__(self, n): ...\n"
        "    def step(self):\n        fit(4)\n",
        "other.py": "# loader\ndef fit(n): ...\nfit(5)\n",
    }
    tree = Tree(tmp_path, files)
    lib = tree.module("lib.py").facts
    fit = next(function for function in lib.functions if function.name == "fit")
    callers = {tree.text(call) for call in tree.model.flow.callers(fit)}
    assert callers == {"fit(1)", "fit(4)"}
    init = tree.function("Trainer.__init__")
    assert {tree.text(call) for call in tree.model.flow.callers(init)} == {
        "Trainer(2)",
        "Trainer(3)",
    }
    assert tree.model.flow.callees(tree.call("step")) == [tree.function("Trainer.step")]


# statements of every kind


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(
            """
            match kind:
                case "a":
                    sampler = RandomSampler(data)
                case {"x": name, **rest}:
                    sampler = SequentialSampler(data)
                case [first, *others] if first:
                    sampler = None
                case other:
                    sampler = other
            probe_loader("x", sampler)
            """,
            {"x": ["?", "None", "RandomSampler(data)", "SequentialSampler(data)"]},
            id="match",
        ),
        pytest.param(
            """
            a, *b, c = RandomSampler(d), 1, 2, SequentialSampler(d)
            probe_loader("x", a)
            probe_loader("y", c)
            probe_loader("z", b)
            """,
            {"x": ["RandomSampler(d)"], "y": ["SequentialSampler(d)"], "z": ["?"]},
            id="starred",
        ),
        pytest.param(
            """
            *b, [c, d] = RandomSampler(d), (1, SequentialSampler(d))
            probe_loader("x", d)
            probe_loader("y", c)
            """,
            {"x": ["SequentialSampler(d)"], "y": ["1"]},
            id="starred-first",
        ),
        pytest.param(
            """
            async def make():
                return RandomSampler(d)
            async def use():
                probe_loader("x", await make())
                async with make() as y:
                    probe_loader("y", y)
                async for z in [RandomSampler(d)]:
                    probe_loader("z", z)
            """,
            {"x": ["RandomSampler(d)"], "y": ["RandomSampler(d)"], "z": ["RandomSampler(d)"]},
            id="await",
        ),
        pytest.param(
            """
            probe_loader("x", b"abc")
            probe_loader("y", 3j)
            probe_loader("z", -2)
            probe_loader("w", not True)
            probe_loader("v", "a" * 3)
            """,
            {"x": ["?"], "y": ["?"], "z": ["-2"], "w": ["?"], "v": ["?"]},
            id="literals",
        ),
        pytest.param(
            """
            def outer():
                kept = None
                class Inner:
                    global made
                    made = RandomSampler(d)
                    def method(self):
                        nonlocal kept
                        kept = SequentialSampler(d)
                del kept.x, kept[0]
                return kept
            probe_loader("x", made)
            probe_loader("y", outer())
            """,
            {"x": ["RandomSampler(d)"], "y": ["None", "SequentialSampler(d)"]},
            id="global-and-nonlocal",
        ),
        pytest.param(
            """
            class A:
                sampler: Sampler = RandomSampler(d)
                other: Sampler
                def __init__(self):
                    self.more: Sampler = SequentialSampler(d)
                    self.none: Sampler
            probe_loader("x", A().sampler)
            probe_loader("y", A().more)
            probe_loader("z", A().other)
            """,
            {"x": ["RandomSampler(d)"], "y": ["SequentialSampler(d)"], "z": []},
            id="annotated",
        ),
        pytest.param(
            """
            try:
                sampler = RandomSampler(d)
            except* ValueError as error:
                sampler = SequentialSampler(d)
            else:
                pass
            finally:
                pass
            probe_loader("x", sampler)
            """,
            {"x": ["RandomSampler(d)", "SequentialSampler(d)"]},
            id="try",
            marks=pytest.mark.skipif(sys.version_info < (3, 11), reason="`except*`"),
        ),
        pytest.param(
            """
            probe_loader("x", (s := RandomSampler(d)))
            probe_loader("y", s)
            probe_loader("z", [t for t in [SequentialSampler(d)]][0])
            probe_loader("w", (lambda k=RandomSampler(d): k)())
            """,
            {
                "x": ["RandomSampler(d)"],
                "y": ["RandomSampler(d)"],
                "z": ["SequentialSampler(d)"],
                "w": ["RandomSampler(d)"],
            },
            id="walrus",
        ),
        pytest.param(
            """
            probe_loader("x", ...)
            """,
            {"x": ["?"]},
            id="long-literal",
        ),
        pytest.param(
            """
            from elsewhere import *
            probe_loader("x", something)
            probe_loader("y", len)
            """,
            {"x": ["?"], "y": ["len"]},
            id="star-import-of-an-unknown-module",
        ),
        pytest.param(
            """
            from .missing import thing
            probe_loader("x", thing)
            """,
            {"x": ["?"]},
            id="relative-import-out-of-the-tree",
        ),
        pytest.param(
            """
            pair = {"a": RandomSampler(d), "b": SequentialSampler(d)}
            first, second = pair.values()
            probe_loader("x", first)
            for number, one in enumerate([RandomSampler(d)]):
                probe_loader("y", one)
            whole = enumerate([RandomSampler(d)])
            for item in whole:
                probe_loader("z", item[1])
            """,
            {"x": ["?"], "y": ["RandomSampler(d)"], "z": ["?"]},
            id="dict-display-in-a-subscript",
        ),
        pytest.param(
            """
            class Pair:
                pass
            a, b = Pair()
            probe_loader("x", a)
            """,
            {"x": ["?"]},
            id="an-object-that-is-taken-apart",
        ),
        pytest.param(
            """
            class Kept:
                def __enter__(self):
                    return RandomSampler(d)
            with Kept() as one:
                probe_loader("x", one)
            class Holder:
                def __init__(self):
                    with Kept() as self.sampler:
                        pass
            probe_loader("y", Holder().sampler)
            """,
            {"x": ["RandomSampler(d)"], "y": ["RandomSampler(d)"]},
            id="a-context-manager-of-the-tree",
        ),
        pytest.param(
            """
            def make():
                yield
                yield RandomSampler(d)
            for one in make():
                probe_loader("x", one)
            """,
            {"x": ["RandomSampler(d)"]},
            id="a-generator-that-gives-nothing",
        ),
        pytest.param(
            """
            def pick(one, other=SequentialSampler(d)):
                return one if one else other
            probe_loader("x", pick(RandomSampler(d)))
            def through(one):
                return pick(one)
            probe_loader("y", through(RandomSampler(e)))
            def default(one=RandomSampler(f)):
                return one
            probe_loader("z", default())
            class Handing:
                def me(self):
                    return self
            probe_loader("w", Handing().me())
            """,
            {
                "x": ["RandomSampler(d)", "SequentialSampler(d)"],
                "y": ["RandomSampler(e)", "SequentialSampler(d)"],
                "z": ["RandomSampler(f)"],
                "w": ["Handing()"],
            },
            id="a-choice-that-is-handed-back",
        ),
        pytest.param(
            """
            inner = {"a": RandomSampler(d)}
            outer = {**inner, "b": SequentialSampler(d)}
            probe_loader("x", outer["a"])
            probe_loader("y", outer.get("b"))
            probe_loader("z", outer.get("c", RandomSampler(e)))
            """,
            {"x": ["RandomSampler(d)"], "y": ["SequentialSampler(d)"], "z": ["RandomSampler(e)"]},
            id="tables-in-tables",
        ),
        pytest.param(
            """
            class Base:
                kept = RandomSampler(d)
                @classmethod
                def make(cls):
                    return cls()
            class Derived(Base):
                pass
            class Outside(DataLoader):
                pass
            probe_loader("x", Derived.kept)
            probe_loader("y", Outside.collate)
            probe_loader("z", Derived.missing)
            probe_loader("w", Derived.make())
            """,
            {
                "x": ["RandomSampler(d)"],
                "y": ["torch.utils.data.DataLoader.collate"],
                "z": ["?"],
                "w": ["cls()"],
            },
            id="attributes-of-classes",
        ),
        pytest.param(
            """
            class Base:
                def make(self):
                    return RandomSampler(d)
            class Between(Base):
                pass
            class Mine(Between):
                def use(self):
                    probe_loader("x", super().make())
                    probe_loader("y", super().missing())
            class Loader(DataLoader):
                def use(self):
                    probe_loader("z", super().collate())
            """,
            {"x": ["RandomSampler(d)"], "y": ["?"], "z": ["ExtObj"]},
            id="super-of-classes",
        ),
        pytest.param(
            """
            class Mine(make_base()):
                pass
            class Other(missing_module.Base):
                pass
            class Third(3):
                pass
            probe_loader("x", Mine().sampler)
            probe_loader("y", Other().sampler)
            """,
            {"x": ["?"], "y": ["?"]},
            id="bases-that-are-not-found",
        ),
        pytest.param(
            """
            def nothing():
                pass
            def maybe(a):
                if a:
                    return
                return RandomSampler(d)
            probe_loader("x", nothing())
            probe_loader("y", maybe(1))
            """,
            {"x": ["None"], "y": ["RandomSampler(d)"]},
            id="a-function-without-value",
        ),
        pytest.param(
            """
            import torch.multiprocessing as mp
            def worker(rank, loader):
                probe_loader("x", loader)
            mp.spawn(worker, args=(DataLoader(d),), nprocs=2)
            def run(loader):
                probe_loader("y", loader)
            mp.Process(target=run, args=(DataLoader(e),)).start()
            class Trainer:
                def work(self, loader):
                    probe_loader("z", loader)
                def start(self):
                    mp.Process(target=self.work, args=(DataLoader(f),)).start()
            def positional(rank, loader):
                probe_loader("w", loader)
            mp.spawn(positional, (DataLoader(g),))
            """,
            {
                "x": ["?", "DataLoader(d)"],
                "y": ["?", "DataLoader(e)"],
                "z": ["?", "DataLoader(f)"],
                "w": ["?", "DataLoader(g)"],
            },
            id="processes",
        ),
        pytest.param(
            """
            class Maker:
                def __call__(self, data):
                    return RandomSampler(data)
            probe_loader("x", Maker()(d))
            """,
            {"x": ["RandomSampler(data)"]},
            id="called-objects",
        ),
    ],
)
def test_statements(tmp_path: Path, source: str, expected: dict[str, list[str]]) -> None:
    tree = Tree(tmp_path, source)
    assert {label: sorted(tree.values(label)) for label in expected} == expected


def test_an_object_of_a_module_keeps_what_its_known_base_was_given(tmp_path: Path) -> None:
    files = {
        "lib.py": f"{TORCH}class Mine(DistributedSampler):\n    pass\n",
        "main.py": f"{TORCH}import lib\nprobe_loader('x', lib.Mine(d, 4, 1).rank)\n",
    }
    assert Tree(tmp_path, files).values("x") == {"1"}


def many_scripts(script: str) -> dict[str, str]:
    """More files with a call of `train` than are followed."""
    return {f"script_{number}.py": TORCH + script for number in range(MOST_CALLERS + 10)}


def test_who_asks_for_callers_first_changes_no_answer(tmp_path: Path) -> None:
    tree = Tree(
        tmp_path,
        """
        KNOWN = {}

        def register(name):
            def keep(cls):
                KNOWN[name] = cls
                return cls
            return keep

        @register("one")
        class One:
            pass

        def build(name):
            return KNOWN[name]()

        def never():
            pass

        probe_loader("x", build("one"))
        """,
    )
    tree.model.flow.callers(tree.function("never"))
    assert tree.values() == {"KNOWN[name]()"}


def test_calls_of_one_name_in_many_scripts_are_told_apart(tmp_path: Path) -> None:
    own = "import tools\ndef train(loader):\n    pass\n"
    files = many_scripts(f"{own}def main(self):\n    train(DataLoader(b))\n    self.train(c)\n")
    files["main.py"] = f"{TORCH}{own}    probe_loader('x', loader)\ntrain(DataLoader(a))\n"
    files["other.py"] = f"{TORCH}{own}tools.train(RandomSampler(d))\n"
    files["tools.py"] = "def train(loader):\n    pass\n"
    assert Tree(tmp_path, files).values() == {"DataLoader(a)"}


def test_of_too_many_calls_in_files_that_import_the_function_none_is_followed(
    tmp_path: Path,
) -> None:
    files = many_scripts("from helper import train\ntrain(DataLoader(a))\n")
    files["helper.py"] = f"{TORCH}def train(loader):\n    probe_loader('x', loader)\n"
    assert "DataLoader(a)" not in Tree(tmp_path, files).values()


def test_a_package_that_imports_its_own_modules_holds_them(tmp_path: Path) -> None:
    tree = Tree(
        tmp_path,
        {
            "pkg/__init__.py": "from . import data, train\n",
            "pkg/data.py": "from torch.utils.data import DataLoader\n",
            "pkg/train/__init__.py": "from .loop import loop\n",
            "pkg/train/loop.py": "def loop(loader):\n    probe_loader('x', loader)\n",
            "main.py": "import pkg\npkg.train.loop(pkg.data.DataLoader([]))\n",
        },
    )
    assert tree.values() == {"pkg.data.DataLoader([])"}
