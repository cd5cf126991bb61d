"""Which ``set_epoch`` calls reach the samplers of a loader, and where they stand in its loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from sampler_lint.model.epoch_state import uses_epoch
from sampler_lint.model.epochs import EpochLoop
from sampler_lint.model.facts import (
    Attr,
    Call,
    Class,
    Expr,
    Function,
    If,
    ModuleFacts,
    Node,
    Scope,
    Stmt,
    last_name,
)
from sampler_lint.model.flow import Lit, Obj, Unknown
from sampler_lint.model.hierarchy import NEUTRAL_BASES
from sampler_lint.model.linked import DISTRIBUTED_SAMPLER, Model, scopes_inside

_DEEPEST = 4


class Carrier(NamedTuple):
    """A sampler that shuffles by its epoch, and the attributes that lead to it from a loader."""

    sampler: Obj
    path: tuple[str, ...]

    def is_one_of(self, values: frozenset[object]) -> bool:
        """Whether the sampler is among the values, however it was reached."""
        wanted = (self.sampler.cls, self.sampler.site)
        return any(isinstance(v, Obj) and (v.cls, v.site) == wanted for v in values)


def carriers(model: Model, loader: Obj) -> Iterator[Carrier]:
    """The samplers of ``loader`` that certainly shuffle by the epoch they are given."""
    for attribute in ("sampler", "batch_sampler"):
        for value in model.passed_to(loader, attribute):
            if not isinstance(value, Obj) or value.site is None:
                continue
            path = model.epoch_path(value)
            if not isinstance(path, tuple):
                continue
            target = value
            for name in path:
                inner = [v for v in model.flow.ask_field(target, name) if isinstance(v, Obj)]
                if len(inner) != 1:
                    break
                target = inner[0]
            else:
                if _shuffles(model, target, loader.through):
                    yield Carrier(target, (attribute, *path))


def _shuffles(model: Model, sampler: Obj, through: Call | None) -> bool:
    given = model.flow.argument(sampler, "shuffle")
    if isinstance(sampler.cls, Class):
        constants = None
        if given is not None:
            constants = model.flow.constants(given, through or sampler.through)
        return uses_epoch(model, sampler.cls) and (constants is None or any(constants))
    if not model.is_a(sampler, DISTRIBUTED_SAMPLER):
        return False
    return model.shuffles(sampler, through) is not False


#: An object, however it was reached: its class, and the call that builds it.
Built: TypeAlias = "tuple[Class | str, Call | None]"


class EpochSet(NamedTuple):
    """A place that sets an epoch."""

    scope: Scope
    node: Node
    receiver: Expr
    """What it is set of."""


class EpochSets:
    """Places that set an epoch, by what they may set it of and by file.

    A tree may hold many programs, and each asks for its own.
    """

    def __init__(self, model: Model, places: Iterable[EpochSet]) -> None:
        self._places = list(places)
        self._of: dict[Built, list[int]] = {}
        self._in: dict[ModuleFacts, list[int]] = {}
        for number, place in enumerate(self._places):
            self._in.setdefault(place.scope.module, []).append(number)
            values = model.flow.values(place.receiver)
            for built in {(v.cls, v.site) for v in values if isinstance(v, Obj)}:
                self._of.setdefault(built, []).append(number)

    def concerning(
        self, objects: Iterable[Built], files: Iterable[ModuleFacts]
    ) -> Iterator[EpochSet]:
        """Those that may set the epoch of one of the objects, and those in the files, in order."""
        numbers = {number for built in objects for number in self._of.get(built, ())}
        numbers.update(number for file in files for number in self._in.get(file, ()))
        return (self._places[number] for number in sorted(numbers))


def epoch_calls(model: Model) -> EpochSets:
    """The ``set_epoch`` calls of the candidate files."""
    known: EpochSets | None = model.memo.get(epoch_calls)
    if known is None:
        known = model.memo[epoch_calls] = EpochSets(model, called_epoch_sets(model))
    return known


def called_epoch_sets(model: Model) -> Iterator[EpochSet]:
    """As :func:`epoch_calls`, one by one."""
    for call in model.epoch_setters:
        assert isinstance(call.func, Attr)
        yield EpochSet(call.scope, call, call.func.value)


@dataclass(slots=True)
class Calls:
    """The ``set_epoch`` calls that concern an epoch loop."""

    hits: list[Call]
    """Those that certainly reach a sampler of the loop."""
    unclear: bool
    """Whether another call near the loop may reach it too."""


def calls_for(model: Model, found: EpochLoop, wanted: list[Carrier]) -> Calls:
    """The ``set_epoch`` calls that reach (or may reach) the samplers ``wanted`` of a loop."""
    hits: list[Call] = []
    unclear = False
    near = {scope.module for scope in found.scopes}
    near.update(c.sampler.site.scope.module for c in wanted if c.sampler.site is not None)
    objects = [(carrier.sampler.cls, carrier.sampler.site) for carrier in wanted]
    for _, call, receiver in epoch_calls(model).concerning(objects, near):
        assert isinstance(call, Call)
        values = model.flow.values(receiver)
        if any(carrier.is_one_of(values) for carrier in wanted):
            hits.append(call)
        elif (
            call.scope.module in near
            and not _forwards(call)
            and may_act_in(model, found, call.scope, call)
        ):
            unclear |= not values or any(
                not isinstance(v, (Obj, Lit)) or (isinstance(v, Obj) and v.site is None)
                for v in values
            )
    classes = {c.sampler.cls for c in wanted} | {found.inner.loader.cls}
    unclear |= any(isinstance(cls, Class) and sets_epoch_itself(cls) for cls in classes)
    return Calls(hits, unclear)


def _forwards(call: Call) -> bool:
    return isinstance(call.scope, Function) and "set_epoch" in call.scope.name


def sets_epoch_itself(cls: Class) -> bool:
    """Whether a loader or sampler moves its own epoch on, outside ``set_epoch``."""
    for scope in scopes_inside(cls):
        if isinstance(scope, Function) and scope.name in {"set_epoch", "__init__"}:
            continue
        if any(isinstance(c.func, Attr) and "set_epoch" in c.func.name for c in scope.calls):
            return True
        if any(isinstance(s.target, Attr) and "epoch" in s.target.name for s in scope.stores):
            return True
    return False


def runs_in(model: Model, found: EpochLoop, scope: Scope) -> bool | None:
    """Whether a turn of the loop may run ``scope``; None if that is not known."""
    loop = found.loop
    todo = [call for call in loop.scope.calls if call.stmt is not None and loop.encloses(call.stmt)]
    seen: set[Scope] = set()
    for _ in range(_DEEPEST):
        next_calls: list[Call] = []
        for call in todo:
            if last_name(call.func) == getattr(scope, "name", None):
                return True
            for callee in model.flow.callees(call):
                if callee is scope:
                    return True
                if callee not in seen:
                    seen.add(callee)
                    next_calls += callee.calls
            if not model.flow.callees(call) and _may_call_back(model, call):
                return None
        todo = next_calls
    return False if not todo else None


def may_act_in(model: Model, found: EpochLoop, scope: Scope, node: Node) -> bool:
    """Whether code at ``node`` may run in a turn of the loop, or for it.

    What another program, a test or a function that nothing on the way calls does has no say.
    """
    stmt = node if isinstance(node, Stmt) else getattr(node, "stmt", None)
    if scope in found.scopes or (stmt is not None and found.loop.encloses(stmt)):
        return True
    if not isinstance(scope, Function):
        return False
    if runs_in(model, found, scope) is not False:
        return True
    # Run by Python itself, by a framework that the class is made for, or by a registry.
    return (
        (scope.cls is not None and scope.name.startswith("__") and scope.name != "__init__")
        or bool(scope.decorators)
        or (not model.flow.callers(scope) and scope.cls is not None and _is_open(model, scope.cls))
    )


def _is_open(model: Model, cls: Class) -> bool:
    """Whether a class has a base outside of the tree, or is registered: others call its methods."""
    return bool(cls.decorators) or any(
        not isinstance(base, Class) and base not in NEUTRAL_BASES for base in model.flow.mro(cls)
    )


def _may_call_back(model: Model, call: Call) -> bool:
    """Whether an unresolved call could be a hook: its callee is some unknown object's method."""
    name = last_name(call.func) or ""
    return ("epoch" in name or "hook" in name or "callback" in name or name == "run") and any(
        isinstance(value, Unknown) for value in model.flow.values(call.func)
    )


def guards(call: Call) -> list[If]:
    """The ``if`` statements around a call, innermost first."""
    return [] if call.stmt is None else [s for s in call.stmt.ancestors() if isinstance(s, If)]
