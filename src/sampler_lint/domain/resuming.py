"""Where a program goes on from a checkpoint: what it restores before it trains."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.origins import depends_on
from sampler_lint.analysis.reaching import may_run_before
from sampler_lint.domain.concepts import EPOCH, LOADS, RESTORES
from sampler_lint.domain.conditions import contradict, is_left_out
from sampler_lint.domain.model import Model
from sampler_lint.domain.ranks import reached
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import nodes_in, statements
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Const,
    Expr,
    Function,
    Index,
    Loop,
    Scope,
    Stmt,
    last_name,
)


@remembered
def restored_before(model: Model, loop: Loop) -> Call | None:
    """Where the optimizer is put back as a checkpoint has it, before a loop begins."""
    around = (scope for scope, _ in _led_to(model, loop))
    if not any(_may_restore(model, s) for s in (*around, _maker(model, loop.scope)) if s):
        return None  # so that no function without checkpoints pays for the search
    return next(
        (
            call
            for call in _calls_before(model, loop)
            if _restores_stepped(model, call, loop)
            and not contradict(model, [call], [loop])
            and not is_left_out(model, call)
        ),
        None,
    )


def led_by(model: Model, loop: Loop, restored: Call) -> list[Call]:
    """The calls in the loop's own function that lead to what is put back before it."""
    if restored.scope is loop.scope:
        return [restored]
    return [
        call
        for call in loop.scope.calls
        if any(restored.scope in reached(model, callee) for callee in model.flow.callees(call))
    ]


@remembered
def _may_restore(model: Model, scope: Scope) -> bool:
    """Whether a scope, or what it may call, calls anything that is named after restoring."""
    return any(RESTORES.says(n) for each in reached(model, scope) for n in each.called if n)


def _maker(model: Model, scope: Scope) -> Function | None:
    """The constructor of the class that a method is of."""
    cls = scope.cls if isinstance(scope, Function) else None
    init = model.flow.method(cls, "__init__") if cls is not None else None
    return init if isinstance(init, Function) else None


def reads_epoch(scope: Scope) -> bool:
    """Whether a function takes an epoch's number out of something by its key."""
    return any(
        isinstance(key, Const) and isinstance(key.value, str) and EPOCH.says(key.value)
        for node in nodes_in(statements(scope.body))
        for key in _keys(node)
    )


def _keys(node: Expr) -> list[Expr]:
    if isinstance(node, Index):
        return [node.key]
    is_get = isinstance(node, Call) and isinstance(node.func, Attr) and node.func.name == "get"
    return node.positional[:1] if isinstance(node, Call) and is_get else []


def _calls_before(model: Model, loop: Loop) -> Iterator[Call]:
    """The calls that run before a loop: in its function and in who calls that, below these, and
    where its owner is built.
    """
    around = [*_led_to(model, loop)]
    before = [
        call
        for scope, stmt in around
        for call in scope.calls
        if call.stmt is not None
        and not stmt.encloses(call.stmt)
        and may_run_before(call.stmt, stmt)
    ]
    yield from before
    inside = {callee for call in before for callee in model.flow.callees(call)}
    if (init := _maker(model, loop.scope)) is not None:
        inside.add(init)
    below = {each for function in inside for each in reached(model, function)}
    below -= {scope for scope, _ in around}
    for each in sorted(below, key=lambda each: (model.module_of(each).path, each.row)):
        yield from each.calls


def _led_to(model: Model, loop: Loop) -> Iterator[tuple[Scope, Stmt]]:
    """The scope of a loop, and that of who calls its function, each with the statement there."""
    yield loop.scope, loop
    calls = model.flow.callers(loop.scope)
    if len(calls) == 1 and calls[0].stmt is not None:
        yield calls[0].scope, calls[0].stmt


def _restores_stepped(model: Model, call: Call, loop: Loop) -> bool:
    """Whether a call gives back its state, from a file, to what a turn of the loop lets step."""
    func = call.func
    if not isinstance(func, Attr) or not RESTORES.says(func.name) or not call.positional:
        return False
    stepped, engines = _stepped(model, loop)
    if func.name == "load_state_dict" and last_name(func.value) in engines:
        return False  # an engine's own state is the model's weights
    return last_name(func.value) in stepped and (
        depends_on(model.flow, call.positional[0], partial(is_loaded, model)) is not None
    )


@remembered
def _stepped(model: Model, loop: Loop) -> tuple[set[str | None], set[str | None]]:
    """The names of what steps in a turn of a loop, or is handed to what lets it step.

    And those of the engines among them, which are a model and its optimizer in one.
    """
    calls = [*loop.scope.calls_in(loop)]
    below = {
        each
        for call in calls
        for callee in model.flow.callees(call)
        for each in reached(model, callee)
    }
    calls += [call for scope in below for call in scope.calls]
    steps = [call for call in calls if last_name(call.func) == "step"]
    stepped = {
        last_name(expr)
        for call in steps
        for expr in (call.func.value if isinstance(call.func, Attr) else call, *call.positional)
    }
    return stepped, {
        last_name(call.func.value)
        for call in calls
        if isinstance(call.func, Attr) and call.func.name == "backward" and call.args
    }


def is_loaded(model: Model, expr: Expr) -> bool:
    """Whether an expression reads a checkpoint."""
    return isinstance(expr, Call) and LOADS.is_made(expr, model.flow.values)
