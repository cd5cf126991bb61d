"""What may set the epoch of a sampler."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from sampler_lint.analysis.values import (
    ClassRef,
    Ext,
    ExtObj,
    FuncRef,
    Lit,
    Obj,
    Unknown,
    Value,
    Why,
)
from sampler_lint.catalog import TORCH_DATA
from sampler_lint.domain.concepts import EPOCH, SAMPLER, SETS_EPOCH
from sampler_lint.domain.conditions import is_left_out
from sampler_lint.domain.epoch_calls import (
    Built,
    Carrier,
    EpochSet,
    EpochSets,
    another_arm_sets,
    as_made,
    called_epoch_sets,
    given_to,
    is_nothing,
    may_act_in,
    runs_in,
    sets_epoch_itself,
    unknown_hook,
)
from sampler_lint.domain.epoch_state import epoch_state, reach, wraps
from sampler_lint.domain.epochs import EpochLoop, sampler_around
from sampler_lint.domain.model import (
    BATCH_SAMPLER,
    DATA_LOADER,
    DISTRIBUTED_SAMPLER,
    Model,
    scopes_inside,
)
from sampler_lint.limits import MOST_CALLERS
from sampler_lint.remembered import remembered
from sampler_lint.rules._expected import is_expected
from sampler_lint.syntax.navigation import self_class, unparse, walk
from sampler_lint.syntax.nodes import Assign, Attr, Call, Class, Expr, Function, Name, Node


class _Setter(NamedTuple):
    """What may set the epoch of a sampler."""

    who: str
    misses: bool = False
    """Whether it certainly does not, though it is meant to: another rule tells of it."""


def _may_be_iterated(model: Model, cls: Class) -> bool:
    """Whether it may be a loader, sampler or dataset: a registry gives classes of all kinds."""
    is_known = all(isinstance(base, Class) for base in model.flow.mro(cls))
    return not is_known or wraps(model, cls)


def may_be_set(model: Model, found: EpochLoop, reached: Carrier) -> _Setter | None:
    """What may set the epoch of the sampler."""
    ours = {
        obj
        for obj in (
            reached.sampler,
            found.inner.loader,
            *_given_beside(model, found.inner.loader, reached),
        )
        if isinstance(obj, Obj)
    }
    # What a library reads was there before the sampler, which it has never heard of.
    data = {one for one in given_to(model, found.inner.loader, "dataset") if type(one) is ExtObj}
    for cls in {obj.cls for obj in ours if not _is_instead(model, obj, found, reached)}:
        if not isinstance(cls, Class) or not _may_be_iterated(model, cls):
            continue
        if sets_epoch_itself(model, found, cls):
            return _Setter(f"{cls.name} itself")
    near = {scope.module for scope in found.scopes}
    near.update(obj.site.scope.module for obj in ours if obj.site is not None)
    built = {(obj.cls, obj.site) for obj in ours}
    for scope, node, receiver in _epoch_sets(model).concerning(built, near):
        if not may_act_in(model, found, scope, node):
            continue
        values = model.flow.values(receiver)
        if is_nothing(values) or _raises_unseen(model, node, values):
            continue
        if values and values <= data:
            continue
        values = _but_own(model, receiver, values)
        misses = _replaces(node) or _misses(model, receiver, reached)
        place = _Setter(str(model.place(scope, node)), misses)
        made = as_made(model, receiver, values)
        if any(obj.may_be(value) for obj in ours for value in made):
            return place
        forwards = isinstance(scope, Function) and SETS_EPOCH.says(scope.name)
        if forwards or scope.module not in near:
            continue
        if not values or _may_reach(model, made, ours, data, set()):
            return place
    asked = sampler_around(model, found.loop.scope) is not None
    for scope, node, receiver in _epoch_sets(model).unclear():
        values = model.flow.values(receiver)
        made = as_made(model, receiver, values)
        if values and not _may_reach(model, made, ours, data, set()):
            continue
        forwards = isinstance(scope, Function) and SETS_EPOCH.says(scope.name)
        runs = may_act_in(model, found, scope, node) if asked else runs_in(model, found.loop, scope)
        if not forwards and runs:
            return _Setter(str(model.place(scope, node)))
    hook = unknown_hook(model, found.loop)
    if hook is not None:
        return _Setter(str(model.place(hook.scope, hook)))
    for scope, node, _ in _epoch_sets(model).concerning(_made_by_torch(model, found), ()):
        is_told = isinstance(node, Call) and not another_arm_sets(node)
        if is_told and may_act_in(model, found, scope, node) and not _is_expected(model, node):
            return _Setter(str(model.place(scope, node)), misses=True)
    return None


def _made_by_torch(model: Model, found: EpochLoop) -> Iterator[Built]:
    """The batch sampler around the sampler of a loader, whose ``set_epoch`` SMP103 misses."""
    loader = found.inner.loader
    if not model.passed_to(loader, "batch_sampler"):
        for value in model.flow.ask_field(loader, "batch_sampler"):
            if isinstance(value, Obj) and value.cls == BATCH_SAMPLER:
                yield value.cls, value.site


def _given_beside(model: Model, loader: Obj, reached: Carrier) -> Iterator[Value]:
    """What a loader is given: not data beside a sampler, or the reverse, that hands no epoch on."""
    for name in ("sampler", "batch_sampler", "dataset"):
        for value in given_to(model, loader, name):
            beside = (name == "dataset") is not reached.is_data
            if not (beside and isinstance(value, Obj) and _keeps_to_itself(model, value)):
                yield value


def _keeps_to_itself(model: Model, obj: Obj) -> bool:
    """Whether a ``set_epoch`` only stores the epoch in its own object."""
    if not isinstance(obj.cls, Class):
        return obj.cls == DISTRIBUTED_SAMPLER
    setter = epoch_state(model, obj.cls).setter
    return setter is not None and setter.inert


def _may_reach(
    model: Model, values: Iterable[Value], ours: Set[Obj], data: Set[Value], seen: set[Class]
) -> bool:
    """Whether something that is told the epoch is not known, is ours, or may hand it on to ours."""
    for value in values:
        if isinstance(value, ClassRef) and isinstance(value.cls, Class):
            told = Obj(value.cls, None)
        elif isinstance(value, Obj) and value.site is not None:
            told = value
            if any(obj.may_be(told) for obj in ours):
                return True
        elif isinstance(value, Lit):
            continue
        else:
            return True
        if _forwards(model, told, ours, data, seen):
            return True
    return False


def _but_own(model: Model, receiver: Expr, values: frozenset[Value]) -> frozenset[Value]:
    """The values but for the sampler that a loader of torch's makes for itself."""
    if not isinstance(receiver, Attr):
        return values
    owners = model.flow.values(receiver.value)
    is_told = bool(owners) and all(
        isinstance(owner, Obj)
        and owner.cls == DATA_LOADER
        and owner.site is not None
        and not any(isinstance(v, Unknown) for v in model.passed_to(owner, receiver.name))
        for owner in owners
    )
    own = {v for v in values if is_told and isinstance(v, Unknown) and v.why is Why.FOREIGN}
    return values - own or values


def _is_instead(model: Model, obj: Obj, found: EpochLoop, reached: Carrier) -> bool:
    """Whether it is another sampler that the loader may get, in place of the one reached."""
    return (
        len(reached.path) == 1
        and model.role(obj) in {"sampler", "batch_sampler"}
        and not any(obj.may_be(one) for one in (reached.sampler, found.inner.loader))
        and obj.site is not None
        and not any(
            reached.sampler.may_be(value)
            for arg in obj.site.args
            for value in model.flow.values(arg.value)
        )
    )


def setter_left_out(model: Model, found: EpochLoop) -> Call | None:
    """A call in the loop that would set an epoch, in a branch that the loop's caller leaves out."""
    for place in called_epoch_sets(model):
        call = place.node
        if (
            isinstance(call, Call)
            and call.stmt is not None
            and found.loop.encloses(call.stmt)
            and is_left_out(model, call, [found.inner.loader])
        ):
            return call
    return None


def _replaces(node: Node) -> bool:
    """Whether it assigns to ``set_epoch``, which SMP103 tells of."""
    return isinstance(node, Assign) and any(
        isinstance(target, Attr) and target.name == "set_epoch" for target in node.targets
    )


def _misses(model: Model, receiver: Expr, reached: Carrier) -> bool:
    """Whether it is the ``.sampler`` of a loader with a batch sampler, which nothing reads."""
    return (
        isinstance(receiver, Attr)
        and receiver.name == "sampler"
        and reached.path[:1] == ("batch_sampler",)
        and any(
            isinstance(loader, Obj)
            and model.role(loader) == "loader"
            and any(isinstance(given, Obj) for given in model.passed_to(loader, "batch_sampler"))
            for loader in model.flow.values(receiver.value)
        )
    )


def _raises_unseen(model: Model, node: Node, values: frozenset[Value]) -> bool:
    """Whether nothing that the call is made on has a ``set_epoch``, and its error is caught."""
    return all(
        isinstance(value, Obj)
        and model.role(value) == "loader"
        and model.flow.method(value.cls, "set_epoch") is None
        for value in values
    ) and _is_expected(model, node)


def _is_expected(model: Model, node: Node) -> bool:
    """Whether it is a call of which the program awaits that there is no such method."""
    return isinstance(node, Call) and is_expected(model, node, AttributeError)


def _forwards(model: Model, value: Obj, ours: Set[Obj], data: Set[Value], seen: set[Class]) -> bool:
    """Whether an object is a holder whose own ``set_epoch`` may reach one of these."""
    cls = value.cls
    if not isinstance(cls, Class) or model.role(value) is not None or cls in seen:
        return False
    if not isinstance(model.flow.method(cls, "set_epoch"), Function):
        return False
    seen.add(cls)
    found = reach(model, cls, "set_epoch")
    if found.opaque or found.outside:
        return True
    functions = [*found.functions]
    for function in functions:  # which grows
        receivers = [
            store.target.value
            for store in function.stores
            if isinstance(store.target, Attr) and EPOCH.names(store.target)
            if self_class(store.target.value) is None
        ]
        for call in function.calls:
            if isinstance(call.func, Attr) and SETS_EPOCH.names(call.func):
                receivers.append(call.func.value)
            elif not _only_asks(model, call):
                called = _functions(model, call)
                functions += [one for one in called if one not in functions]
                if not called or len(functions) > MOST_CALLERS:
                    return True
        for receiver in receivers:
            values = model.flow.values(receiver)
            made = {*as_made(model, receiver, values)} - data
            if not values or _may_reach(model, made, ours, data, seen):
                return True
    return False


def _functions(model: Model, call: Call) -> list[Function]:
    """The functions of the tree that a call calls; none where it may call others."""
    values = model.flow.values(call.func)
    known = [value.function for value in values if isinstance(value, FuncRef)]
    return known if len(known) == len(values) else []


def _only_asks(model: Model, call: Call) -> bool:
    """Whether it calls another method of its own, or what sets nothing of its own.

    As do Python's own functions, and those of a library that is handed nothing.
    """
    if isinstance(call.func, Attr) and self_class(call.func.value) is not None:
        return True
    if isinstance(call.func, Name) and call.func.id in vars(builtins):
        return call.func.id != "setattr"
    values = model.flow.values(call.func)
    asked = [call, *(value.site for value in values if isinstance(value, ExtObj))]
    return (
        bool(values)
        and all(isinstance(v, (Ext, ExtObj)) for v in values)
        and not any(
            self_class(part) is not None or any(isinstance(v, Obj) for v in model.flow.values(part))
            for each in asked
            for part in walk(each)
        )
    )


@remembered
def _epoch_sets(model: Model) -> EpochSets:
    """Every ``x.set_epoch`` and every ``x.sampler.epoch = …`` from outside."""
    places = list(called_epoch_sets(model))
    places += (EpochSet(*kept) for kept in model.epoch_setters_kept)
    for store in model.project.stores_of("set_epoch"):
        if isinstance(store.target, Attr) and self_class(store.target.value) is None:
            places.append(EpochSet(store.scope, store.stmt, store.target.value))
    for store in model.project.stores_of("epoch"):
        assert isinstance(store.target, Attr)
        if self_class(store.target.value) is not None:
            continue
        held = model.flow.values(store.target.value)
        told = [one for one in held if not isinstance(one, Lit)]
        if told and all(isinstance(one, Obj) and _reads_no_epoch(model, one) for one in told):
            continue
        if SAMPLER.says(unparse(store.target.value)) or any(map(model.role, held)):
            places.append(EpochSet(store.scope, store.stmt, store.target.value))
    return EpochSets(model, places)


def _reads_no_epoch(model: Model, told: Obj) -> bool:
    """Whether nothing that is known of an object's class reads an ``epoch`` of its own."""
    if not isinstance(told.cls, Class):
        return told.cls == DATA_LOADER
    family = [*model.flow.mro(told.cls), *model.flow.subclasses(told.cls)]
    known = {f"{TORCH_DATA}Sampler", DATA_LOADER}
    if not all(isinstance(base, Class) or base in known for base in family):
        return False
    scopes = (s for base in family if isinstance(base, Class) for s in scopes_inside(base))
    return not any(
        name in {"epoch", "getattr", "vars", "__dict__"}
        for scope in scopes
        for name in (*(read.name for read in scope.reads), *scope.called)
    )


def leads_to(model: Model, source: Expr, reached: Carrier) -> bool:
    """Whether what is iterated is (or may be) a loader whose attributes lead to the sampler.

    A wrapper of the tree has none of them, and one that has them may say something else.
    """
    return not reached.path or all(
        not isinstance(value, Obj)
        or model.role(value) == "batch_sampler"
        or keeps_given(model, value, reached.path[0])
        for value in model.flow.values(source)
    )


def keeps_given(model: Model, loader: Obj, attribute: str) -> bool:
    """Whether it is a loader whose attribute is what it was given."""
    return model.role(loader) == "loader" and not (
        isinstance(loader.cls, Class)
        and any(
            isinstance(base, Class) and attribute in base.bindings
            for base in model.flow.mro(loader.cls)
        )
    )


def tries_to_set(model: Model, found: EpochLoop, reached: Carrier) -> bool:
    """Whether the loop sets a wrong attribute of the sampler, which SMP404 fixes."""
    for store in found.loop.scope.stores_in(found.loop):
        if isinstance(store.target, Attr) and EPOCH.names(store.target):
            held = model.flow.values(store.target.value)
            if any(map(reached.sampler.may_be, held)) and all(map(model.role, held)):
                return True
    return False


def told_holder(model: Model, found: EpochLoop) -> Call | None:
    """A call on the way to the pass that tells the epoch to what does not hand it on.

    It may hold the loader, and be meant to.
    """
    for place in _epoch_sets(model).unclear():
        call = place.node
        if not isinstance(call, Call) or call.stmt is None or place.scope not in found.scopes:
            continue
        if not any(isinstance(value, Obj) for value in model.flow.values(place.receiver)):
            continue
        if call.scope is not found.loop.scope or found.loop.encloses(call.stmt):
            return call
    return None
