"""Whether the number that a fix has a loop tell as its epoch is the one that the program counts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sampler_lint.analysis.values import Ext, Obj
from sampler_lint.domain.concepts import EPOCH, RESTORES, SETS_EPOCH
from sampler_lint.domain.epoch_calls import epoch_calls
from sampler_lint.domain.epochs import EpochLoop, epoch_loops, loops_over
from sampler_lint.domain.model import Model
from sampler_lint.domain.repeated import runs_again
from sampler_lint.domain.turns import begins_at
from sampler_lint.syntax.navigation import makes_iterator, owner_of, statements, unparse, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Const,
    Expr,
    ExprStmt,
    For,
    Loop,
    Name,
    Stmt,
    Store,
    While,
    last_name,
)


def miscounted(model: Model, stmt: Stmt, told: ast.expr, receiver: Expr) -> str | None:
    """What speaks against a number that a statement of a loop (or the loop itself) tells."""
    for found in epoch_loops(model):
        loop = found.loop
        if loop is stmt or loop.encloses(stmt):
            name = ast.unparse(told)
            reason = (
                _counts_anew(model, found, name)
                or _restores(found)
                or _goes_on(model, found)
                or _begins_elsewhere(model, found, name, receiver)
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
        # It may go on where a run has stopped, but not where two loops begin alike.
        others = [other.loop for other in loops_over(model, found.inner.loader)]
        if not any(_begins_alike(loop, other, given[0]) for other in others):
            return None
        return "another loop counts from the same number"
    if runs_again(model, found):
        return "the program reads the sampler again, and counts from its start"
    return None


def _begins_alike(loop: Loop, other: Loop, first: Expr) -> bool:
    """Whether another loop, before or behind the one, begins at the same number."""
    start = begins_at(other)
    is_beside = other is not loop and other.scope is loop.scope and not loop.encloses(other)
    return start is not None and is_beside and unparse(start) == unparse(first)


def _restores(found: EpochLoop) -> str | None:
    """What each turn puts back as it was before the loop: turns that repeat a run, no epochs."""
    for stmt in found.loop.body:
        call = stmt.value if isinstance(stmt, ExprStmt) else None
        if not isinstance(call, Call) or not RESTORES.says(last_name(call.func) or ""):
            continue
        names = [part for arg in call.args for part in walk(arg.value) if isinstance(part, Name)]
        owners = [(name, owner_of(name)) for name in names]
        made = [each for name, owner in owners if owner for each in owner.bindings[name.id]]
        if made and not any(one.stmt and found.loop.encloses(one.stmt) for one in made):
            return f"each turn begins with what line {stmt.row} puts back"
    return None


def _begins_elsewhere(model: Model, found: EpochLoop, told: str, receiver: Expr) -> str | None:
    """A number that the sampler is told before the loop, with which the loop does not begin."""
    objects = {(v.cls, v.site) for v in model.flow.values(receiver) if isinstance(v, Obj)}
    first = begins_at(found.loop)
    for other in epoch_calls(model).concerning(objects, ()):
        call = other.node
        if not isinstance(call, Call) or SETS_EPOCH.says(call.scope.name) or not call.positional:
            continue
        if call.stmt is None or any(isinstance(s, (For, While)) for s in call.stmt.ancestors()):
            continue
        if call.scope in found.scopes and call.scope is not found.loop.scope:
            continue
        given = call.positional[0]
        is_first = first is not None and unparse(first) == unparse(given)
        is_start = isinstance(given, Const) or model.flow.constants(given) == {0}
        is_counted = last_name(given) == told.rpartition(".")[2]
        if not (is_first or is_start or is_counted):
            return f"the order would no longer depend on `{unparse(given)}`"
    return None


def _goes_on(model: Model, found: EpochLoop) -> str | None:
    """What hands out batches over the turns, so that a pass may end within one of them."""
    stmt = found.inner.stmt
    taken = stmt.iter if isinstance(stmt, For) else found.inner.iterated
    for part in walk(taken):
        given = part.positional if isinstance(part, Call) else []
        is_slice = isinstance(part, Call) and last_name(part.func) == "islice"
        if is_slice and len(given) > 2 and not isinstance(given[1], Const):
            return f"line {stmt.row} begins anywhere in a pass"
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
            is_epoch = EPOCH.is_mentioned(target) or _is_restored(model, target)
            if text != told and is_epoch and _counts_turns(loop, stmt, told):
                yield f"`{text}` may be the epoch that the program counts"
    for call in loop.scope.calls_in(loop):
        for callee in model.flow.callees(call):
            for store in callee.stores if not SETS_EPOCH.says(callee.name) else ():
                if isinstance(store.target, Attr) and _may_count(loop, store, told):
                    yield f"`{last_name(call.func)}` may change `{unparse(store.target)}`"


def _is_restored(model: Model, target: Expr) -> bool:
    """Whether a resumed run gets the number that was reached."""
    return isinstance(target, Attr) and any(
        RESTORES.says(store.scope.name)
        for store in model.project.stores_near(target.name, target.scope)
    )


def _counts_turns(loop: Loop, stmt: Assign | AugAssign, told: str) -> bool:
    """Whether each turn adds a plain number once, or adds something to its own number."""
    if isinstance(stmt, AugAssign):
        inner = next(one for one in stmt.ancestors() if isinstance(one, (For, While)))
        return inner is loop and isinstance(stmt.value, Const)
    return isinstance(stmt.value, Bin) and any(unparse(one) == told for one in walk(stmt.value))


def _may_count(loop: Loop, store: Store, told: str) -> bool:
    """Whether a method stores what is told, or counts epochs beside it.

    Not where it counts the turns of a loop that goes by what is told.
    """
    assert isinstance(store.target, Attr)
    counts = store.how == "aug" and isinstance(store.value, Const)
    if told.endswith(f".{store.target.name}"):
        goes_by = isinstance(loop, While) and any(unparse(p) == told for p in walk(loop.test))
        return not (counts and goes_by)
    return counts and EPOCH.names(store.target)
