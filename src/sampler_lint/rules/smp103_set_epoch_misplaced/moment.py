"""Calls at the wrong moment: after their pass, before the loop, or on one rank only."""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from sampler_lint.analysis.asked import decided
from sampler_lint.analysis.decorators import calls_of_decorated
from sampler_lint.analysis.origins import given_by
from sampler_lint.domain.concepts import RANGES
from sampler_lint.domain.counters import counted_by, counted_from_zero, is_of_turn
from sampler_lint.domain.epoch_calls import Carrier, leading_to
from sampler_lint.domain.epochs import EpochLoop, loops_over
from sampler_lint.domain.model import Model
from sampler_lint.domain.rank_terms import runs_on_one_rank
from sampler_lint.domain.stale import has_workers
from sampler_lint.domain.turns import epoch_expression
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import fresh_name, is_unnamed, means_the_same, text_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.limits import DEEPEST_CHAIN
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import makes_iterator, operands, same, unparse, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Choice,
    Comp,
    Const,
    Expr,
    ExprStmt,
    For,
    Function,
    If,
    Loop,
    Name,
    Stmt,
    While,
    last_name,
)

# Calls that come after the pass they are for.


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
    if _only_makes_iterator(model, anchor):
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
    """A call that the loop comes by after the pass, as in a hook, with the number of its turn."""
    argument, epoch = call.args[0].value, epoch_expression(found.loop)
    anchor = found.calls[0].stmt if found.calls else found.inner.stmt
    if epoch is None or anchor is None or anchor.block is not found.loop.body:
        return None
    ways = leading_to(model, found.loop, call.scope)
    if not ways or not is_of_turn(model, found.loop, epoch, argument):
        return None
    if any(
        stmt.order <= anchor.order
        or anchor.encloses(stmt)
        or not _starts_at_zero(model, found.loop, epoch, stmt)
        for stmt in ways
    ):
        return None
    module = model.module_of(call.scope)
    return Suspect(
        module,
        call,
        f"`{unparse(call.func)}({unparse(argument)})` is called after the loop over the batches",
        why=(Related(model.place(ways[0].scope, ways[0]), "called here, after the pass"),),
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


def _only_makes_iterator(model: Model, anchor: Stmt) -> bool:
    """Whether a statement that makes a pass begins it, and leaves the rest to others."""
    value = anchor.value if isinstance(anchor, Assign) else None
    if not isinstance(value, Call):
        return isinstance(anchor, Assign) and not (
            isinstance(value, Comp) and value.kind != "generator"
        )
    called = model.flow.callees(value)
    if called:
        return any(function.is_generator for function in called)
    return makes_iterator(last_name(value.func))


def _starts_at_zero(model: Model, loop: Loop, epoch: Expr, stmt: Stmt) -> bool:
    """Whether the first number that a statement of the loop reads is (or may be) 0.

    That is what a sampler starts with.
    """
    if isinstance(loop, While):
        begun = counted_from_zero(model, loop, epoch) if isinstance(epoch, (Name, Attr)) else None
        return begun is not None and all(
            moved.block is loop.body and moved.order > stmt.order for moved in begun.moved
        )
    own = loop.scope.bindings.get(epoch.id, ()) if isinstance(epoch, Name) else ()
    if any(each.stmt is not None and loop.order < each.stmt.order < stmt.order for each in own):
        return False  # the body counts on before it
    for node in walk(loop.iter):
        if isinstance(node, Call) and RANGES.is_call(node):
            if len(node.positional) < 2:
                return True
            starts = model.flow.constants(node.positional[0])
            return starts is None or 0 in starts
    return False


# Calls that run before the loop starts.


def between(calls: list[Call], first: int, last: int) -> list[Call]:
    """Those of a scope's calls, in reading order, that stand in some of its statements."""

    def order(call: Call) -> int:
        return call.stmt.order if call.stmt is not None else -1

    return calls[bisect_left(calls, first, key=order) : bisect_right(calls, last, key=order)]


def _around(model: Model, found: EpochLoop, carrier: Carrier) -> tuple[Related, ...]:
    return (
        Related(model.place(found.loop.scope, found.loop), "the epoch loop"),
        Related(model.place_of(carrier.sampler), "sampler built here"),
    )


def once(
    model: Model, found: EpochLoop, wanted: list[Carrier], calls: tuple[Call, ...]
) -> Iterator[Suspect]:
    """Calls that run before the loop starts, while nothing in the loop sets the epoch."""
    loop = found.loop
    sites = {carrier.sampler.site.scope for carrier in wanted if carrier.sampler.site is not None}
    for call in calls:
        assert call.stmt is not None
        if call.scope is loop.scope:
            if call.stmt.order > loop.order:
                return
        elif call.scope not in sites:
            return
        around = [stmt for stmt in call.stmt.ancestors() if isinstance(stmt, (For, While))]
        if not all(stmt.encloses(loop) for stmt in around):
            return
        if any(_counts(stmt, call) for stmt in around):
            return  # the loops inside that one may be parts of an epoch
    for call in calls:
        epoch = epoch_expression(loop)
        counter = unparse(epoch) if epoch is not None else "epoch"
        message = f"`{unparse(call)}` runs once, before the epoch loop"
        module = model.module_of(call.scope)

        fix = None
        if len(calls) == 1 and call.scope is loop.scope:
            others = {each.loop: None for each in loops_over(model, found.inner.loader)}
            also = [one for one in others if one is not loop and one.scope is loop.scope]
            fix = functools.partial(move_to_top, found, call, epoch, also=also)
        why = _around(model, found, wanted[0])
        yield Suspect(
            module,
            call,
            message,
            why=why,
            fix=fix,
            effect=f"every epoch repeats one order of `{wanted[0].sampler.name}`",
            advice=f"call `{unparse(call.func)}({counter})` at the start of each epoch",
        )


def _counts(loop: For | While, call: Call) -> bool:
    """Whether a loop gives the call its value anew in each turn."""
    targets = list(walk(loop.target)) if isinstance(loop, For) else []
    names = {node.id for node in targets if isinstance(node, Name)}
    return isinstance(loop, While) or any(
        isinstance(node, Name) and node.id in names for arg in call.args for node in walk(arg.value)
    )


# Calls that only one rank makes.


def one_rank(model: Model, found: EpochLoop, call: Call) -> Suspect | None:
    """A call that only one rank makes, while the others keep shuffling by epoch 0."""
    way = _guarded_way(model, found, call)
    guard = _guard(model, found, way) if way is not None else None
    if way is None or guard is None:
        return None
    parent, node = guard
    fix = None
    if way is call and parent is not None:
        fix = partial(without_guard, parent, node, call, "on every rank")
    return Suspect(
        model.module_of(call.scope),
        call,
        f"`{unparse(call)}` runs on one rank only",
        why=(Related(model.place(way.scope, parent or node), "only one rank gets here"),),
        fix=fix,
        effect="the other ranks keep the order of epoch 0, so the shards overlap and samples are "
        "left out",
        advice="call it on every rank",
    )


def _guard(model: Model, found: EpochLoop, call: Call) -> tuple[If | None, Expr] | None:
    """The ``if`` around a call, within the loop, that one rank passes; the part that asks so.

    Or what the others leave by before it.
    """
    stmt = call.stmt
    for inner in (stmt, *stmt.ancestors()) if stmt is not None else ():
        if inner is found.loop:
            break
        for test, answer in decided(inner):
            for node in operands(test) if answer else [test]:
                if runs_on_one_rank(model, node, inner.scope, answer=answer):
                    branch = inner.parent if isinstance(inner.parent, If) else None
                    return branch if branch and answer and branch.test is test else None, node
    return None


def _guarded_way(model: Model, found: EpochLoop, call: Call, depth: int = 0) -> Call | None:
    """A call, or one on the way to it, that one rank alone makes, and so on each way there."""
    if _guard(model, found, call):
        return call
    scope = call.scope
    if not isinstance(scope, Function) or scope is found.loop.scope or depth == DEEPEST_CHAIN:
        return None
    for decorator in (each for given in scope.decorators for each in model.flow.values(given)):
        made = list(calls_of_decorated(decorator))
        if made and all(_guard(model, found, each) for each in made):
            return made[0]
    ways = [_guarded_way(model, found, each, depth + 1) for each in model.flow.callers(scope)]
    return ways[0] if ways and all(ways) else None


# Fixes: a call moves to where an epoch begins.


class _Movable(NamedTuple):
    """What goes from its old place, and what stands in its new one."""

    old: Stmt
    new: Stmt | None
    """The same, with the ``if`` around it; None: the call alone."""


def _movable(found: EpochLoop, call: Call) -> _Movable | None:
    """The call's statement, with the ``if`` around it when it holds no more.

    An ``if`` that chooses a batch of the pass, as the first one, has nothing to choose before it.
    """
    stmt = call.stmt
    if not isinstance(stmt, ExprStmt) or stmt.value is not call:
        return None
    old: Stmt = stmt
    new: Stmt | None = stmt
    for parent in stmt.ancestors():
        if not isinstance(parent, If) or len(old.block) != 1 or parent.orelse:
            break
        if old.block is not parent.body:
            break
        if _is_bound_in(found.inner.stmt, parent.test):
            if old is not stmt:
                return None  # two guards, of which one stays
            old, new = parent, None
            break
        if parent.row == old.row:
            return None
        old = new = parent
    if len(old.block) == 1 and old.parent is not None:
        return None  # nothing would be left of the block
    return _Movable(old, new)


def _is_bound_in(stmt: Stmt, expr: Expr) -> bool:
    """Whether an expression reads a name that a statement binds."""
    return any(
        binding.stmt is not None and (binding.stmt is stmt or stmt.encloses(binding.stmt))
        for name in walk(expr)
        if isinstance(name, Name)
        for binding in name.scope.bindings.get(name.id, ())
    )


def binds_between(first: Stmt, last: Stmt, expr: Expr) -> bool:
    """Whether a statement from one to another, which it leaves out, assigns what is read."""
    read = [node for node in walk(expr) if isinstance(node, (Name, Attr))]
    bound = [
        binding.stmt
        for name in read
        if isinstance(name, Name)
        for binding in name.scope.bindings.get(name.id, ())
    ]
    bound += [
        store.stmt for store in first.scope.stores if any(same(store.target, node) for node in read)
    ]
    return any(stmt is not None and first.order <= stmt.order < last.order for stmt in bound)


def move_to_top(
    found: EpochLoop,
    call: Call,
    epoch: Expr | None,
    editor: Editor,
    *,
    also: Sequence[Loop] = (),
) -> Fix | None:
    """Move the call to the top of the loop (or before the pass), with the loop's counter.

    ``also``: other loops that rest on the call, and need one of their own.
    """
    moved = _movable(found, call)
    if epoch is None or not call.positional or moved is None:
        return None
    if call.scope is found.loop.scope and found.loop.encloses(moved.old):
        read = [call.func, *([moved.new.test] if isinstance(moved.new, If) else [])]
        if any(binds_between(found.loop.body[0], moved.old, expr) for expr in read):
            return None
    for loop in also:
        if (counter := epoch_expression(loop)) is None:
            return None
        editor.insert_first(loop, *_lines(moved, call, text_of(editor.source, counter), editor))
    argument = text_of(editor.source, epoch)
    if isinstance(epoch, Name) and is_unnamed(editor.module, epoch):
        argument = fresh_name(epoch.scope, "epoch")
        editor.replace(epoch, argument)
    lines = _lines(moved, call, argument, editor)
    editor.delete(moved.old, with_comments=True)
    if call.scope is found.loop.scope:
        editor.insert_first(found.loop, *lines)
    else:
        editor.insert_before(found.inner.stmt, *lines)
    name = f"{text_of(editor.source, call.func)}({argument})"
    given = call.positional[0]
    guard = moved.new.test if isinstance(moved.new, If) else None
    is_lost = not is_of_turns(found.loop, given) or (
        guard is not None and any(same(node, given) for node in walk(guard))
    )
    safe = Applicability.UNSAFE if is_lost else Applicability.SAFE
    because = f"the order would no longer depend on `{text_of(editor.source, given)}`"
    return editor.fix(f"Call `{name}` at the start of the loop", safe, because)


def is_of_turns(loop: Loop, given: Expr) -> bool:
    """Whether a number is written out, is one of the loop's own, or is set in its turns."""
    own = [loop.target, loop.iter] if isinstance(loop, For) else [loop.test]
    if isinstance(given, Name) and any(
        binding.stmt is not None and loop.encloses(binding.stmt)
        for binding in given.scope.bindings.get(given.id, ())
    ):
        return True
    return isinstance(given, Const) or any(same(node, given) for expr in own for node in walk(expr))


def _lines(moved: _Movable, call: Call, argument: str, editor: Editor) -> Sequence[str]:
    """What is moved, with another argument."""
    if moved.new is not None:
        return editor.lines_of(moved.new, call.positional[0], argument)
    return [f"{text_of(editor.source, call.func)}({argument})"]


def without_guard(guard: If, test: Expr, call: Call, where: str, editor: Editor) -> Fix | None:
    """Make the call whatever one of the operands of its ``if`` says.

    Before the branch, which goes if it holds no more; in it, if something else guards it, too.
    """
    stmt = call.stmt
    if not isinstance(stmt, ExprStmt) or stmt.value is not call or stmt.block is not guard.body:
        return None
    message = f"Call `{text_of(editor.source, call)}` {where}"
    if guard.test is not test:
        options = guard.test.options if isinstance(guard.test, Choice) else []
        others = [one for one in options if one is not test]
        if len(options) != 2 or len(others) != 1 or len(guard.body) != 1 or guard.orelse:
            return None
        editor.replace(guard.test, text_of(editor.source, others[0])).forget(test)
        return editor.fix(message, Applicability.SAFE)
    if _is_bound_in(guard, call):
        return None
    is_elif = isinstance(guard.parent, If) and guard.block is guard.parent.orelse
    if is_elif or (len(guard.body) == 1 and guard.orelse):
        return None
    editor.insert_before(guard, *editor.lines_of(stmt, call, text_of(editor.source, call)))
    if len(guard.body) == 1:
        editor.delete(guard).forget(test)
    else:
        editor.delete(stmt, with_comments=True)
    return editor.fix(message, Applicability.SAFE)
