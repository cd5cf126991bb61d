"""What a sampler (or iterable dataset) takes from another one: the objects that it iterates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sampler_lint.analysis.containers import VIEWS
from sampler_lint.analysis.origins import Hop, ends, parameter_of, part_of
from sampler_lint.analysis.values import (
    TOO_MANY,
    TOO_MUCH,
    Lit,
    Obj,
    Pack,
    Super,
    Table,
    Unknown,
    Value,
    Values,
    View,
)
from sampler_lint.domain.concepts import ITERATES, SAMPLER
from sampler_lint.domain.epoch_state import (
    EpochState,
    Reach,
    gives_order_when_called,
    lookup,
    reach,
)
from sampler_lint.domain.model import BATCH_SAMPLER, DATA_LOADER, Model
from sampler_lint.syntax.navigation import nodes_in, self_class, statements, unparse, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Expr,
    Function,
    Index,
    Name,
    Param,
    Scope,
    last_name,
)

#: Among the values of an attribute of which others are there by mistake.
_LOST = frozenset({TOO_MANY, TOO_MUCH})


class Inner(NamedTuple):
    """Something that a class holds and iterates."""

    owner: Class
    """The class of the hierarchy that puts it there."""
    path: tuple[str, ...]
    """The attributes that lead to it from ``self``."""
    values: frozenset[Value]
    """What it may be; the elements, where a list of them is held."""
    many: bool
    """Whether a list or a dict of them is held."""
    param: Param | None
    """The constructor's parameter it comes from, if that is plain."""

    @property
    def objects(self) -> list[Obj]:
        """The known ones."""
        return [value for value in self.values if isinstance(value, Obj)]

    keyed: bool = False
    """Whether it is a dict."""

    @property
    def open(self) -> bool:
        """Whether it may be something that is not known."""
        return not self.values or any(not isinstance(v, (Obj, Lit)) for v in self.values)


def inners(model: Model, state: EpochState) -> list[Inner]:
    """What a pass over the class iterates, besides itself."""
    known: dict[Class, list[Inner]] = model.memo.setdefault(inners, {})
    if state.cls not in known:
        known[state.cls] = list(_inners(model, state))
    return known[state.cls]


def _inners(model: Model, state: EpochState) -> Iterator[Inner]:
    cls = state.cls
    iterated = iterated_attributes(model, state.iteration) | _asked_for_order(model, state)
    for name in sorted(iterated | _kept_in_runs(model, state)):
        values = model.flow.ask_field(Obj(cls), name)
        if not any(
            isinstance(value, (Obj, Pack, Table)) for value in values
        ):  # a base of torch keeps it
            built = model.built.get(cls, ())
            found = {value: None for obj in built for value in model.flow.ask_field(obj, name)}
            values = Values(found) or values
        keyed = any(isinstance(value, Table) for value in values)
        many = keyed or any(isinstance(value, Pack) for value in values)
        yield Inner(
            _owner(model, cls, name),
            (name,),
            flat(model, values, dicts=True),
            many,
            parameter_kept(model, cls, name),
            keyed,
        )
    for name in sorted({read.name for read in state.iteration.self_reads()}):
        helpers = model.flow.ask_field(Obj(cls), name)
        if not _LOST.isdisjoint(helpers):
            continue
        for helper in helpers:
            if not _is_helper(model, helper):
                continue
            assert isinstance(helper, Obj)
            assert isinstance(helper.cls, Class)
            methods = {method.name for method in helper.cls.methods}
            for inner in sorted(iterated_attributes(model, reach(model, helper.cls, *methods))):
                values = flat(model, model.flow.ask_field(helper, inner))
                kept = _kept_too(helper)
                if kept is not None:
                    values = flat(model, model.flow.ask_field(Obj(cls), kept))
                    param = parameter_kept(model, cls, kept)
                    yield Inner(_owner(model, cls, kept), (kept,), values, many=False, param=param)
                    continue
                param = _passed_on(model, helper)
                yield Inner(
                    _owner(model, cls, name), (name, inner), values, many=False, param=param
                )


def _asked_for_order(model: Model, state: EpochState) -> set[str]:
    """The attributes that hold what a pass gets its order from by calling it."""
    called = {
        held.name
        for call in state.iteration.calls
        if isinstance(call.func, Attr)
        and isinstance(held := call.func.value, Attr)
        and self_class(held.value) is not None
    }
    return {
        name
        for name in called
        for value in model.flow.ask_field(Obj(state.cls), name)
        if isinstance(value, Obj)
        and isinstance(value.cls, Class)
        and gives_order_when_called(model, value.cls)
    }


def _kept_in_runs(model: Model, state: EpochState) -> set[str]:
    """The attributes that lead to what a run iterates and keeps the epoch from."""
    if state.setter is None:
        return set()
    trials = (model.epoch_trial(state.cls, around_shard=given) for given in (False, True))
    return {held.path[0] for trial in trials if trial is not None for held in trial.kept_from}


def iterated_attributes(model: Model, found: Reach) -> set[str]:
    """The ``self`` attributes that the code iterates."""
    names: set[str] = set()
    if (BATCH_SAMPLER, "__iter__") in found.outside:
        names.add("sampler")
    for function in found.functions:
        for source in iterated(function):
            for end in ends(model.flow, source, Hop.ASSIGNED):
                node = _held_in(end)
                if isinstance(node, Attr) and self_class(node.value) is not None:
                    names.add(node.name)
    return names


def _held_in(node: Expr) -> Expr:
    """What holds the values of a dict, or one of them, that is gone through."""
    if isinstance(node, Call) and isinstance(node.func, Attr) and not node.args:
        return node.func.value if node.func.name in VIEWS else node
    return node.value if isinstance(node, Index) else node


def iterated(function: Function) -> Iterator[Expr]:
    """What the code of a function goes over."""
    yield from (source for source, _ in function.iterated)
    for stmt in statements(function.body):
        for node in nodes_in([stmt]):
            if function.name == "__getitem__" and isinstance(node, Index):
                yield node.value
            elif isinstance(node, Call) and ITERATES.is_call(node):
                yield from (arg.value for arg in node.args if not arg.keyword and arg.stars < 2)


def flat(model: Model, values: Iterable[Value], *, dicts: bool = False) -> Values:
    """The values, with those of the elements for a list, and for a dict if that is asked for."""
    out: dict[Value, None] = {}
    for value in values:
        if isinstance(value, View) and dicts:
            value = value.table
        if isinstance(value, Pack) or (dicts and isinstance(value, Table)):
            out.update(dict.fromkeys(model.flow.held_in(value)))
        else:
            out[value] = None
    return Values(out)


def held(value: Value) -> Iterator[Expr]:
    """What a list or a dict holds, as far as it is followed."""
    if isinstance(value, View):
        value = value.table
    if isinstance(value, Pack):
        yield from value.items
    elif isinstance(value, Table):
        yield from (item for _, item in value.entries)


def _owner(model: Model, cls: Class, name: str) -> Class:
    """The class whose code sets ``self.name``; else the one that calls the torch base's init."""
    classes = model.flow.own_mro(cls)
    for base in classes:
        if model.project.own_stores(name, base):
            return base
    return next((base for base in classes if base.method("__init__") is not None), cls)


def parameter_kept(model: Model, cls: Class, name: str) -> Param | None:
    """The constructor's parameter that an attribute holds, if that is plain."""
    for base in model.flow.own_mro(cls):
        for store in model.project.own_stores(name, base):
            return _from_parameter(model, part_of(store.value, store.path))
    return None


def _from_parameter(model: Model, value: Expr | None) -> Param | None:
    """The constructor's parameter that a value is, or is a list of."""
    for end in ends(model.flow, value, Hop.ASSIGNED | Hop.ARGUMENT) if value is not None else ():
        function, param = parameter_of(end) or (None, None)
        if function is not None and function.name == "__init__":
            return param
    return None


def _is_helper(model: Model, value: Value) -> bool:
    """Whether the value is an object of the tree, no sampler, that keeps what it is given."""
    return (
        isinstance(value, Obj)
        and isinstance(value.cls, Class)
        and value.site is not None
        and not model.is_sampler_class(value.cls)
        and lookup(model, value.cls, "set_epoch", None) is None
    )


def _kept_too(helper: Obj) -> str | None:
    """The ``self`` attribute that the helper is built from: the wrapper holds the inner itself."""
    for arg in helper.site.positional if helper.site is not None else ():
        if isinstance(arg, Attr) and self_class(arg.value) is not None:
            return arg.name
    return None


def _passed_on(model: Model, helper: Obj) -> Param | None:
    """The parameter of the wrapper's own constructor that it hands to its helper."""
    if helper.site is None:
        return None
    for arg in helper.site.positional:
        param = _from_parameter(model, arg)
        if param is not None:
            return param
    return None


def says_sampler(param: Param) -> bool:
    """Whether a parameter is for a sampler, by its annotation or its name."""
    annotation = "" if param.annotation is None else unparse(param.annotation)
    if param.annotation is not None:
        annotation += " ".join(
            last_name(node) or ""
            for node in walk(param.annotation)
            if isinstance(node, (Name, Attr))
        )
    return SAMPLER.says(f"{param.name} {annotation}")


class Below(NamedTuple):
    """A loader as one of its methods names it, and the class of that method."""

    me: Expr
    cls: Class


def loader_below(model: Model, scope: Scope, source: Expr) -> Below | None:
    """The loader that goes over itself as torch's does, by what ``super()`` gives."""
    if not (isinstance(source, Call) and last_name(source.func) == "super"):
        return None
    named = (*(store.target for store in scope.stores), *scope.reads)
    mine = (each.value for each in named if isinstance(each, Attr) and self_class(each.value))
    for value in model.flow.values(source):
        if isinstance(value, Super) and model.flow.is_a(value.cls, DATA_LOADER) is True:
            method = lookup(model, value.cls, "__iter__", value.cls)
            is_torchs = not isinstance(method, (Function, Unknown))
            if is_torchs and (me := next(mine, None)) is not None:
                return Below(me, value.cls)
    return None
