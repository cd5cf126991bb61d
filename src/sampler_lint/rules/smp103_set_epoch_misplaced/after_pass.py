"""Calls that come after the pass they are for."""

from __future__ import annotations

import functools

from sampler_lint.analysis.origins import given_by
from sampler_lint.domain.concepts import RANGES
from sampler_lint.domain.counters import counted_by, counted_from_zero
from sampler_lint.domain.epochs import EpochLoop
from sampler_lint.domain.model import Model
from sampler_lint.domain.stale import has_workers
from sampler_lint.domain.turns import epoch_expression
from sampler_lint.edits.names import means_the_same
from sampler_lint.findings import Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp103_set_epoch_misplaced.moving import move_to_top
from sampler_lint.syntax.navigation import same, unparse, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Expr,
    ExprStmt,
    For,
    Function,
    Loop,
    Name,
    Stmt,
    While,
)


def late_in_turn(model: Model, found: EpochLoop, call: Call) -> Suspect | None:
    """A call after (or inside) the pass it is for, with the number of that very pass."""
    loop, stmt = found.loop, call.stmt
    if stmt is None or len(call.args) != 1:
        return None
    turn = _turn(model, found, call)
    if turn is not None:
        anchor, epoch = turn
        if not same(call.args[0].value, epoch) or not _starts_at_zero(model, loop, epoch, stmt):
            return None
    elif _counts_own_calls(model, found, call):
        anchor, epoch = found.inner.stmt, call.args[0].value
    else:
        return _in_later_hook(model, found, call)
    if stmt.order <= anchor.order:
        return None
    if any(isinstance(s, (For, While)) and s is not loop for s in anchor.ancestors()):
        return None
    if _only_makes_iterator(anchor):
        if not has_workers(model, found.inner.loader):
            return None
        when = "after the iterator was created, when its workers already fetch"
    elif anchor.encloses(stmt):
        when = "inside the loop over the batches, when the order is already drawn"
    else:
        when = "after the loop over the batches"
    module = model.module_of(call.scope)
    counter = unparse(epoch)
    return Suspect(
        module,
        call,
        f"`{unparse(call.func)}({counter})` is called {when}",
        fix=functools.partial(move_to_top, found, call, epoch),
        effect="each epoch uses the previous epoch's order, and the first two share one",
        advice="call it before the loop over the batches",
    )


def _in_later_hook(model: Model, found: EpochLoop, call: Call) -> Suspect | None:
    """A call in a function that the loop hands the epoch's number to after the pass."""
    function, argument, epoch = call.scope, call.args[0].value, epoch_expression(found.loop)
    if not isinstance(function, Function) or not isinstance(argument, Name) or epoch is None:
        return None
    callers = model.flow.callers(function)
    anchor = found.calls[0].stmt if found.calls else found.inner.stmt
    if len(callers) != 1 or callers[0].scope is not found.loop.scope or anchor is None:
        return None
    stmt, given = callers[0].stmt, given_by(model.flow, callers[0], argument)
    if stmt is None or given is None or not same(given, epoch):
        return None
    if stmt.block is not found.loop.body or anchor.block is not found.loop.body:
        return None
    if stmt.order <= anchor.order or not _starts_at_zero(model, found.loop, epoch, stmt):
        return None
    module = model.module_of(call.scope)
    return Suspect(
        module,
        call,
        f"`{unparse(call.func)}({unparse(argument)})` is called after the loop over the batches",
        why=(Related(model.place(callers[0].scope, callers[0]), "called here, after the pass"),),
        effect="each epoch uses the previous epoch's order, and the first two share one",
        advice="call it before the loop over the batches",
    )


def _counts_own_calls(model: Model, found: EpochLoop, call: Call) -> bool:
    """Whether the function that makes the pass counts its own calls from 0, after the pass."""
    function, number = call.scope, call.args[0].value
    if not isinstance(function, Function) or function is found.loop.scope:
        return False
    if function is not found.inner.scope or not isinstance(number, (Name, Attr)):
        return False
    begun = counted_by(model, found.loop, function, number)
    if begun is None or call.stmt is None or len(begun.moved) != 1:
        return False
    [moved] = begun.moved
    return moved.order > max(call.stmt.order, found.inner.stmt.order)


def _turn(model: Model, found: EpochLoop, call: Call) -> tuple[Stmt, Expr] | None:
    """In the call's own function: the statement that makes the pass, and the epoch's number."""
    loop = found.loop
    epoch = epoch_expression(loop)
    if epoch is None and isinstance(loop, While) and call.scope is loop.scope and call.args:
        epoch = call.args[0].value  # if the turns count it, it is their number
    if epoch is None:
        return None
    if call.scope is loop.scope:
        anchor = found.calls[0].stmt if found.calls else found.inner.stmt
        return None if anchor is None else (anchor, epoch)
    function = call.scope
    if function is not found.inner.scope or len(found.calls) != 1:
        return None
    argument = call.args[0].value if call.args else None
    if not isinstance(function, Function) or not isinstance(argument, Name):
        return None
    given = given_by(model.flow, found.calls[0], argument)
    if given is None or not same(given, epoch):
        return None
    if not means_the_same(given, loop.scope):
        return None
    return found.inner.stmt, argument


def _only_makes_iterator(anchor: Stmt) -> bool:
    return not isinstance(anchor, (For, While)) and not isinstance(anchor, ExprStmt)


def _starts_at_zero(model: Model, loop: Loop, epoch: Expr, stmt: Stmt) -> bool:
    """Whether the first number that a statement of the loop reads is (or may be) 0.

    That is what a sampler starts with.
    """
    if isinstance(loop, While):
        begun = counted_from_zero(model, loop, epoch) if isinstance(epoch, (Name, Attr)) else None
        return begun is not None and all(
            moved.block is loop.body and moved.order > stmt.order for moved in begun.moved
        )
    for node in walk(loop.iter):
        if isinstance(node, Call) and RANGES.is_call(node):
            if len(node.positional) < 2:
                return True
            starts = model.flow.constants(node.positional[0])
            return starts is None or 0 in starts
    return False
