"""What else than the pass that trains sees the epoch that a fix tells a sampler, or its order."""

from __future__ import annotations

from sampler_lint.analysis.values import Ext, Obj, Unknown, Value
from sampler_lint.catalog.handling import ADDS, APPENDS
from sampler_lint.domain.concepts import ASKS_BY_NAME, GIVES_STATE, ITERATES, LOGS, LOOKS, RANGES
from sampler_lint.domain.epoch_state import epoch_state
from sampler_lint.domain.epochs import EpochLoop, pass_trains
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import Pass, passes_near
from sampler_lint.domain.programs import is_test, once_a_program
from sampler_lint.domain.taking import takes_one
from sampler_lint.remembered import remembered
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import expressions, makes_iterator, self_class, statements, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Expr,
    For,
    Function,
    Index,
    Name,
    Return,
    Scope,
    Simple,
    While,
    last_name,
)

#: By which a container keeps what it is given.
_KEEPS = APPENDS | ADDS | {"setdefault"}


def reads_epoch_besides(model: Model, told: frozenset[Value]) -> str | None:
    """A place that goes by the epoch of a sampler for something else than its order.

    Who tells the epoch changes what is read there. What is only written down is of no account.
    What is handed to something that is not known, or read of what may be anything where the sampler
    is kept out of sight, may be read.
    """
    handed = _handed(model)
    for value in told:
        if not isinstance(value, Obj):
            continue
        mine = handed.get(value, [])
        for call in mine:
            if call is not None:
                return f"{model.place(call.scope, call)} may read its epoch"
        for name in sorted(_told_attributes(model, value) | {"__dict__"}):
            for read, owner in _reads(model).get(name, ()):
                if (cls := self_class(owner)) is not None:
                    is_other = _is_besides(model, value, cls, read.scope)
                else:
                    held = model.flow.values(owner)
                    unknown = (Unknown, Ext) if isinstance(owner, Index) else Unknown
                    is_lost = not held or any(isinstance(one, unknown) for one in held)
                    is_other = any(map(value.may_be, held)) or bool(mine and is_lost)
                if is_other:
                    return f"{model.place(read.scope, read)} reads its `{name}`"
    return None


@remembered
def _handed(model: Model) -> dict[Value, list[Call | None]]:
    """The samplers that are given to calls which are not followed.

    None stands for what only keeps a sampler out of sight.
    """
    found: dict[Value, list[Call | None]] = {}
    for module in model.modules:
        for scope in module.facts.scopes if not is_test(module) else ():
            for call in scope.calls:
                given = [
                    value
                    for arg in call.args
                    for value in _samplers(model, arg.value)
                    if not _is_followed(model, call, arg.value)
                ]
                is_kept = isinstance(call.func, Attr) and call.func.name in _KEEPS
                for value in given:
                    found.setdefault(value, []).append(None if is_kept else call)
            for store in scope.stores:
                if isinstance(store.target, Index) and store.value is not None:
                    for value in _samplers(model, store.value):
                        found.setdefault(value, []).append(None)
    return found


def _samplers(model: Model, expr: Expr) -> list[Value]:
    if not isinstance(expr, (Attr, Call, Index, Name)):
        return []
    values = model.flow.values(expr)
    return [value for value in values if model.role(value) in {"sampler", "batch_sampler"}]


def _is_followed(model: Model, call: Call, given: Expr) -> bool:
    """Whether it is seen what a call does with a sampler, or known that it reads no epoch."""
    name = last_name(call.func)
    if name in {"format", "getattr"} and isinstance(call.func, (Attr, Name)):
        asked = call.positional[1:2] if name == "getattr" else []
        return any(isinstance(each, Const) for each in asked)
    if LOGS.is_call(call) or ASKS_BY_NAME.is_call(call) or model.flow.callees(call):
        return True
    if name == "__init__" or (LOOKS.is_call(call) and isinstance(call.func, Name)):
        return True
    if ITERATES.is_call(call):
        makers = model.flow.values(call.func)
        return isinstance(call.func, Name) or any(
            isinstance(value, Ext) and makes_iterator(value.dotted) for value in makers
        )
    return any(isinstance(value, Obj) for value in model.flow.values(call))


def _is_besides(model: Model, sampler: Obj, cls: Class, scope: Scope) -> bool:
    """Whether a method of a sampler's class has to do with something else than its passes."""
    if not isinstance(sampler.cls, Class) or cls not in model.flow.mro(sampler.cls):
        return False
    state = epoch_state(model, sampler.cls)
    covered = state.iteration.functions | state.construction.functions
    name = scope.name
    is_plain = name in {"set_epoch", "__repr__", "__str__"} or GIVES_STATE.says(name)
    return name == "__len__" or (not is_plain and scope not in covered)


def reads_seed_besides(model: Model, made: Obj, names: set[str]) -> str | None:
    """A place that takes the seed of a sampler for something else."""
    for read, owner in (each for name in names for each in _reads(model).get(name, ())):
        cls = self_class(owner)
        is_ours = any(map(made.may_be, model.flow.values(owner)))
        if _is_besides(model, made, cls, read.scope) if cls is not None else is_ours:
            return f"{model.place(read.scope, read)} reads its seed"
    return None


def _told_attributes(model: Model, sampler: Obj) -> frozenset[str]:
    """What ``set_epoch`` of a sampler gives a value."""
    if not isinstance(sampler.cls, Class):
        return frozenset({"epoch"})
    setter = epoch_state(model, sampler.cls).setter
    stores = (one for each in (setter.functions if setter else ()) for one in each.stores)
    own = {one.target.name for one in stores if isinstance(one.target, Attr)}
    return frozenset(own) | (setter.stored if setter is not None else frozenset())


@remembered
def _reads(model: Model) -> dict[str, list[tuple[Attr | Call, Expr]]]:
    """Where attributes are read, by their names, and of what; not for a message alone."""
    found: dict[str, list[tuple[Attr | Call, Expr]]] = {}
    for module in model.modules:
        for scope in module.facts.scopes if not is_test(module) else ():
            shown = {
                id(part)
                for call in scope.calls
                if LOGS.is_call(call)
                for arg in call.args
                for part in walk(arg.value)
            }
            for read in scope.reads:
                if id(read) not in shown:
                    found.setdefault(read.name, []).append((read, read.value))
            for call in ASKS_BY_NAME.calls_in(scope.calls):
                owner, name, *_ = *call.positional, None, None
                if isinstance(name, Const) and owner and last_name(call.func) == "getattr":
                    found.setdefault(str(name.value), []).append((call, owner))
    return found


def is_asked_for(model: Model, cls: Class, name: str) -> bool:
    """Whether the program asks whether an object of a class has an attribute."""
    for asks in ("getattr", "hasattr"):
        for call in model.project.calls_named(asks):
            owner, said, *_ = *call.positional, None, None
            if owner is not None and isinstance(said, Const) and said.value == name:
                held = (v.cls for v in model.flow.values(owner) if isinstance(v, Obj))
                if any(cls in model.flow.mro(each) for each in held):
                    return True
    return False


def is_looked_at(model: Model, found: EpochLoop) -> bool:
    """Whether something takes the first batches of the loader for itself, turn by turn.

    It has had the same ones so far. A look at what comes first, before the loop, is none.
    """
    loader = found.inner.loader
    return any(
        loader.may_be(each.loader)
        and each.stmt is not found.inner.stmt
        and _is_in_turn(model, found, each)
        for each in _looks(model, found.loop.scope)
    )


@once_a_program
def _looks(model: Model, scope: Scope) -> list[Pass]:
    """The passes that may end early, and train nothing."""
    return [
        each
        for each in passes_near(model, scope)
        if not is_test(model.module_of(each.scope))
        and _may_end_early(each)
        and not pass_trains(model, each)
    ]


def _may_end_early(found: Pass) -> bool:
    stmt = found.stmt
    if takes_one(found):
        return True
    calls = [part for whole in expressions(stmt) for part in walk(whole) if isinstance(part, Call)]
    if any(last_name(call.func) == "islice" or _is_beside_range(call) for call in calls):
        return True
    if isinstance(stmt, Assign) and any(last_name(call.func) == "iter" for call in calls):
        return True
    return isinstance(stmt, For) and any(_leaves(each, stmt) for each in statements(stmt.body))


def _is_beside_range(call: Call) -> bool:
    is_zip = last_name(call.func) == "zip"
    return is_zip and any(isinstance(p, Call) and RANGES.is_call(p) for p in call.positional)


def _leaves(stmt: object, loop: For) -> bool:
    """Whether a statement ends the loop around it."""
    if isinstance(stmt, Return):
        return True
    if not isinstance(stmt, Simple) or stmt.kind != "break":
        return False
    return next(one for one in stmt.ancestors() if isinstance(one, (For, While))) is loop


def _is_in_turn(model: Model, found: EpochLoop, look: Pass) -> bool:
    """Whether a turn of the loop may make a pass, or others whom nobody is seen to call."""
    loop = found.loop
    if look.scope is loop.scope:
        return loop.encloses(look.stmt)
    above = {*closure([loop.scope], model.flow.callers_of)}
    sides = set()
    for scope in closure([look.scope], lambda scope: _callers_apart(model, scope, above)):
        calls = model.flow.callers(scope)
        if not calls and isinstance(scope, Function) and scope not in above:
            return True
        for stmt in (call.stmt for call in calls if call.scope is loop.scope):
            if stmt is not None and loop.encloses(stmt):
                return True
            sides.add(stmt is not None and stmt.order > loop.order)
    return len(sides) > 1  # once before the loop, and once behind it


def _callers_apart(model: Model, scope: Scope, above: set[Scope]) -> list[Scope]:
    return [each for each in model.flow.callers_of(scope) if each not in above]
