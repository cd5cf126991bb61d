"""Whether the number that a fix has a loop tell as its epoch is the one that the program counts."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator

from sampler_lint.analysis.reaching import is_apart
from sampler_lint.analysis.values import Ext, FuncRef, Obj
from sampler_lint.domain.concepts import EPOCH, SETS_EPOCH
from sampler_lint.domain.epoch_calls import epoch_samplers, loops_over_stmt
from sampler_lint.domain.epochs import EpochLoop, epoch_loops
from sampler_lint.domain.model import Model
from sampler_lint.syntax.navigation import makes_iterator, owner_of, statements, unparse, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Const,
    For,
    Function,
    Loop,
    Name,
    Scope,
    Stmt,
    Store,
    While,
    last_name,
)


def miscounted(model: Model, stmt: Stmt, told: ast.expr) -> str | None:
    """What speaks against a number that a statement of a loop (or the loop itself) tells."""
    for found in epoch_loops(model):
        loop = found.loop
        if loop is stmt or loop.encloses(stmt):
            name = ast.unparse(told)
            reason = (
                _counts_anew(model, found, name)
                or _goes_on(model, found)
                or next(_other_counts(model, loop, name), None)
            )
            if reason is not None:
                return reason
    return None


def _counts_anew(model: Model, found: EpochLoop, told: str) -> str | None:
    """Whether a program comes to a loop again with the same loader, and begins as it did before."""
    loop = found.loop
    is_new = "." not in told and told not in loop.scope.bindings
    if not isinstance(loop, For) and not is_new:
        return None  # what counts may be kept
    given = loop.iter.positional if isinstance(loop, For) and isinstance(loop.iter, Call) else []
    if len(given) > 1 and not isinstance(given[0], Const):
        return None
    if runs_again(model, found):
        return "the loop runs again with the same loader, and counts from its start"
    return None


def runs_again(model: Model, found: EpochLoop) -> bool:
    """Whether a run of the program may come to the loop more than once with one sampler."""
    loader = found.inner.loader
    kept = [each.sampler for each in epoch_samplers(model, loader)] or [loader]
    built = [call for one in kept for call in (one.site, one.through) if call is not None]
    stmts = [call.stmt for call in built if call.stmt is not None]
    making = {each for stmt in stmts for each in loops_over_stmt(model, stmt)}
    if any(each not in making for each in loops_over_stmt(model, found.loop)):
        return True
    leading: dict[Scope, dict[Call, None]] = {}
    is_repeated = _leads_again(model, found.loop.scope, _running(model, built), [], leading)
    return is_repeated or any(
        not is_apart(one.stmt, other.stmt) and _share(model, one, other)
        for calls in leading.values()
        for one, other in itertools.combinations(_with(model, kept, calls), 2)
        if one.stmt is not None and other.stmt is not None
    )


def _running(model: Model, calls: list[Call]) -> set[Scope]:
    """The scopes that run some calls: of themselves, or by what they call."""
    running: dict[Scope, None] = {call.scope: None for call in calls}
    todo = [*running]
    for scope in todo:
        for call in model.flow.callers(scope) if isinstance(scope, Function) else ():
            if call.scope not in running:
                running[call.scope] = None
                todo.append(call.scope)
    return {*running}


def _leads_again(
    model: Model,
    scope: Scope,
    making: set[Scope],
    behind: list[Scope],
    leading: dict[Scope, dict[Call, None]],
) -> bool:
    """Collect the calls that lead to a scope, by where they stand; whether it may lead to itself.

    No further than to what makes the loader: that makes another when it runs again. A function that
    Python or a library calls may be called again.
    """
    if not isinstance(scope, Function) or scope in making:
        return False
    callers = [*model.flow.callers(scope)]
    for call, target, _ in model.flow.spawned.get(scope.name, ()):
        if any(isinstance(v, FuncRef) and v.function is scope for v in model.flow.values(target)):
            callers.append(call)
    if not callers:
        return scope.name == "<lambda>" or (scope.cls is not None and scope.name.endswith("__"))
    for call in callers:
        if call.scope in (scope, *behind):
            return True
        is_known = call.scope in leading
        leading.setdefault(call.scope, {})[call] = None
        onward = [scope, *behind]
        if not is_known and _leads_again(model, call.scope, making, onward, leading):
            return True
    return False


def _with(model: Model, kept: list[Obj], calls: Iterable[Call]) -> list[Call]:
    """The calls but those that hand over loaders which have another sampler."""
    found: list[Call] = []
    for call in calls:
        given = [value for arg in call.args for value in model.flow.values(arg.value)]
        loaders = [each for each in given if model.role(each) == "loader" and isinstance(each, Obj)]
        held = [one.sampler for each in loaders for one in epoch_samplers(model, each)] or loaders
        if not held or any(one.may_be(other) for one in kept for other in held):
            found.append(call)
    return found


def _share(model: Model, one: Call, other: Call) -> bool:
    """Whether two calls, of methods of known objects, may be of one object."""
    if not (isinstance(one.func, Attr) and isinstance(other.func, Attr)):
        return True
    if unparse(one.func.value) == unparse(other.func.value):
        return True
    values = model.flow.values(other.func.value)
    owners = [each for each in model.flow.values(one.func.value) if isinstance(each, Obj)]
    return any(owner.may_be(value) for owner in owners for value in values)


def _goes_on(model: Model, found: EpochLoop) -> str | None:
    """What hands out batches over the turns, so that a pass may end within one of them."""
    stmt = found.inner.stmt
    taken = stmt.iter if isinstance(stmt, For) else found.inner.iterated
    for name in (one for one in walk(taken) if isinstance(one, Name)):
        owner = owner_of(name)
        for made in owner.bindings.get(name.id, ()) if owner is not None else ():
            call = made.value
            if made.stmt is None or found.loop.encloses(made.stmt) or not isinstance(call, Call):
                continue
            makers = (v for v in model.flow.values(call.func) if isinstance(v, Ext))
            if any(makes_iterator(maker.dotted) for maker in makers):
                return f"`{name.id}` goes on from turn to turn"
    return None


def _other_counts(model: Model, loop: Loop, told: str) -> Iterator[str]:
    """Where a turn counts in another variable, or changes the one that is told."""
    targets = walk(loop.target) if isinstance(loop, For) else ()
    is_own = any(isinstance(one, Name) and one.id == told for one in targets)
    for stmt in statements(loop.body):
        if not isinstance(stmt, (Assign, AugAssign)):
            continue
        for target in stmt.targets if isinstance(stmt, Assign) else [stmt.target]:
            text = unparse(target)
            if text == told and (is_own or isinstance(stmt, Assign)):
                yield f"the loop itself changes `{told}`"
            if text != told and EPOCH.is_mentioned(target) and _counts_turns(loop, stmt, told):
                yield f"`{text}` may be the epoch that the program counts"
    for call in loop.scope.calls_in(loop):
        for callee in model.flow.callees(call):
            for store in callee.stores if not SETS_EPOCH.says(callee.name) else ():
                if isinstance(store.target, Attr) and _may_count(store, told):
                    yield f"`{last_name(call.func)}` may change `{unparse(store.target)}`"


def _counts_turns(loop: Loop, stmt: Assign | AugAssign, told: str) -> bool:
    """Whether each turn adds a plain number once, or adds something to its own number."""
    if isinstance(stmt, AugAssign):
        inner = next(one for one in stmt.ancestors() if isinstance(one, (For, While)))
        return inner is loop and isinstance(stmt.value, Const)
    return isinstance(stmt.value, Bin) and any(unparse(one) == told for one in walk(stmt.value))


def _may_count(store: Store, told: str) -> bool:
    """Whether a method stores what is told, or counts epochs beside it."""
    assert isinstance(store.target, Attr)
    counts = store.how == "aug" and isinstance(store.value, Const) and EPOCH.names(store.target)
    return counts or told.endswith(f".{store.target.name}")
