"""Whether code steps an optimizer, or is marked as code that only evaluates."""

from __future__ import annotations

from sampler_lint.analysis.origins import parameter_of
from sampler_lint.analysis.values import ExtObj
from sampler_lint.domain.concepts import EVALUATES, STEPS, TRAINS, WITHOUT_GRADIENTS
from sampler_lint.domain.conditions import excludes
from sampler_lint.domain.model import Model
from sampler_lint.domain.wrapping import flat
from sampler_lint.limits import DEEPEST_CHAIN, MOST_SEARCHED_FOR_STEP
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import (
    expressions,
    leftmost,
    nodes_in,
    same,
    statements,
    walk,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Call,
    Const,
    ExprStmt,
    For,
    Function,
    Loop,
    Name,
    Scope,
    Simple,
    Stmt,
    With,
    last_name,
)

_OPTIMIZERS = "torch.optim."
_SCHEDULERS = "torch.optim.lr_scheduler."


def is_without_gradients(scope: Scope, stmt: Stmt) -> bool:
    """Whether a statement stands in a block, or a function, without gradients.

    Or below a ``torch.set_grad_enabled(False)`` that nothing takes back on the way.
    """
    return not _marks(scope, stmt).isdisjoint(WITHOUT_GRADIENTS) or _follows_switch(scope, stmt)


def _follows_switch(scope: Scope, stmt: Stmt) -> bool:
    if "set_grad_enabled" not in scope.called:
        return False
    around = [stmt, *stmt.ancestors()]
    said = [
        call
        for call in scope.calls
        if last_name(call.func) == "set_grad_enabled"
        and isinstance(call.stmt, ExprStmt)
        and call.stmt.order < stmt.order
        and any(call.stmt in each.block for each in around)
    ]
    mode = said[-1].positional[0] if said and said[-1].positional else None
    return isinstance(mode, Const) and mode.value is False


def evaluates(scope: Scope, stmt: Stmt, region: Stmt | None) -> bool:
    """Whether the code around a pass is marked as one that computes no gradients."""
    names = _marks(scope, stmt)
    names.update(last_name(call.func) for call in scope.calls if _is_within(call, region))
    return not names.isdisjoint(EVALUATES.called)


def _marks(scope: Scope, stmt: Stmt) -> set[str | None]:
    """The names of the decorators and context managers around a statement."""
    marks = list(scope.decorators) if isinstance(scope, Function) else []
    marks += [
        expr
        for around in stmt.ancestors()
        if isinstance(around, With)
        for expr in expressions(around)
    ]
    return {
        last_name(node.func if isinstance(node, Call) else node)
        for mark in marks
        for node in walk(mark)
    }


def _is_within(call: Call, region: Stmt | None) -> bool:
    return region is None or (call.stmt is not None and region.encloses(call.stmt))


def says_it_trains(scope: Scope) -> bool:
    """Whether code puts a model into training: ``model.train()``."""
    return any(last_name(call.func) == "train" and not call.args for call in scope.calls)


def takes_nothing(stmt: Stmt) -> bool:
    """Whether a loop leaves what it iterates as it comes: it draws an order, or times loading."""
    return isinstance(stmt, For) and all(
        isinstance(each, Simple) and (each.is_jump or each.kind == "pass") for each in stmt.body
    )


def takes_and_steps(model: Model, call: Call) -> bool:
    """Whether a loop over what a generator function yields steps an optimizer."""
    stmt = call.stmt
    if isinstance(stmt, For):
        return steps(model, call.scope, stmt)
    names = {t.id for t in getattr(stmt, "targets", ()) if isinstance(t, Name)}
    return any(
        steps(model, call.scope, loop)
        for loop in call.scope.loops
        if any(
            isinstance(node, Name) and node.id in names
            for inner in (loop, *statements(loop.body))
            for node in nodes_in([inner])
        )
    )


@remembered
def steps(
    model: Model, scope: Scope, within: Stmt | None = None, through: Call | None = None
) -> bool:
    """Whether the code, or what it calls, steps an optimizer, where ``through`` calls it.

    Found once: each loop over a loader of a big trainer leads to all that the trainer calls.
    """
    return _steps(model, scope, within, set(), () if through is None else (through,))


def _steps(
    model: Model,
    scope: Scope,
    within: Stmt | None,
    seen: set[tuple[Scope, tuple[Call, ...]]],
    through: tuple[Call, ...],
) -> bool:
    every = scope.calls if within is None else scope.calls_in(within)
    calls = every
    if through:
        last, *around = through
        calls = [call for call in every if not excludes(model, last, call, *around)]
    if any(is_step(model, call) for call in calls):
        return True
    seen.add((scope, through))
    return len(seen) < MOST_SEARCHED_FOR_STEP and any(
        _steps(model, callee, None, seen, by)
        for call in calls
        for callee in model.flow.callees(call, *through[:1])
        # What a function calls by name, or whether it trains, its caller may say.
        for by in [_telling(call, through, bool(model.flow.calls_by_string(callee)))]
        if (callee, by) not in seen
    )


def _telling(call: Call, through: tuple[Call, ...], calls_by_name: bool) -> tuple[Call, ...]:
    """A call that says yes, no or none to something, below those that have told it what to say.

    ``update(batch, training=False)``, or ``training=training`` in a function that was told.
    """
    if (
        through
        and call not in through
        and len(through) < DEEPEST_CHAIN
        and any(parameter_of(arg.value) for arg in call.args)
    ):
        return (call, *through)
    return (call,) if calls_by_name or _switches(call) else ()


@remembered
def begins_training(model: Model, loop: Loop) -> bool:
    """Whether each turn of a loop trains from the beginning, and so is a run and no epoch.

    It resets the model's parameters, or makes the model and an optimizer for it.
    """
    return any(
        call.stmt is not None
        and call.stmt.block is loop.body
        and (last_name(call.func) == "reset_parameters" or _is_for_new_model(model, call, loop))
        for call in loop.scope.calls_in(loop)
    )


def _is_for_new_model(model: Model, call: Call, loop: Loop) -> bool:
    """Whether a call makes an optimizer for what a statement of the loop's body makes."""
    first = call.positional[0] if call.positional else call
    bound = [
        {binding.stmt for binding in node.scope.bindings.get(node.id, ())}
        for node in walk(first)
        if isinstance(node, Name)
    ]
    return any(made and all(s and s.block is loop.body for s in made) for made in bound) and any(
        isinstance(value, ExtObj)
        and value.dotted.startswith(_OPTIMIZERS)
        and not value.dotted.startswith(_SCHEDULERS)
        for value in model.flow.values(call)
    )


@remembered
def is_step(model: Model, call: Call) -> bool:
    """Whether a call itself steps an optimizer; found once, for every pass leads to many calls."""
    return (
        (
            TRAINS.is_call(call)
            and not _only_clears(call)
            and not _is_of_no_optimizer(call)
            and not _only_measures(call)
        )
        or _is_handed_optimizer(model, call)
        or _is_named_so(model, call)
    )


def _only_clears(call: Call) -> bool:
    """Whether it drops gradients in code that puts a model into evaluation, and steps nothing."""
    return last_name(call.func) == "zero_grad" and not EVALUATES.called.isdisjoint(
        call.scope.called
    )


def _only_measures(call: Call) -> bool:
    """Whether gradients are made to be kept: ``importance += weight.grad.abs()``, and no step is.

    A parameter that is given its own gradient is stepped by hand: ``weight.data -= weight.grad``.
    """
    if last_name(call.func) not in {"backward", "zero_grad"} or "step" in call.scope.called:
        return False
    kept = [
        _is_kept(read, read.stmt)
        for read in call.scope.reads
        if read.name == "grad"
        and isinstance(read.stmt, (Assign, AugAssign, ExprStmt))
        and not _is_cleared(read, read.stmt)
    ]
    return bool(kept) and all(kept)


def _is_cleared(gradient: Attr, stmt: Stmt) -> bool:
    """Whether a statement calls a method of a gradient: ``weight.grad.zero_()``."""
    call = stmt.value if isinstance(stmt, ExprStmt) else None
    return isinstance(call, Call) and any(node is gradient for node in walk(call.func))


def _is_kept(gradient: Attr, stmt: Assign | AugAssign | ExprStmt) -> bool:
    """Whether a statement keeps a gradient elsewhere than in the parameter that has it."""
    targets = stmt.targets if isinstance(stmt, Assign) else []
    if isinstance(stmt, AugAssign):
        targets = [stmt.target]
    owner = leftmost(gradient)
    return bool(targets) and not any(same(leftmost(target), owner) for target in targets)


def _is_of_no_optimizer(call: Call) -> bool:
    """Whether it stands where there are no gradients: the scheduler of a diffusion steps there."""
    return call.stmt is not None and is_without_gradients(call.scope, call.stmt)


def _switches(call: Call) -> bool:
    """Whether a call says yes, no or none to something: ``update(batch, training=False)``."""
    return any(
        isinstance(arg.value, Const) and arg.value.value in (None, True, False) for arg in call.args
    )


def _is_named_so(model: Model, call: Call) -> bool:
    """Whether a call that is not followed is named after a step: ``optimize_parameters()``."""
    return STEPS.names(call.func) and not model.flow.callees(call)


def _is_handed_optimizer(model: Model, call: Call) -> bool:
    """Whether a call that is not followed gets the optimizer: ``scaler(loss, optimizer)``.

    Or all optimizers of the program, in a list or a dict, each perhaps beside its scheduler.
    """
    return (
        len(call.args) > 1
        and not model.flow.callees(call)
        and any(
            _is_optimizer(model, arg.value)
            for arg in call.args[1:]
            if isinstance(arg.value, (Name, Attr))
        )
    )


def _is_optimizer(model: Model, expr: Name | Attr) -> bool:
    """Whether it is one of torch, or read for the groups of parameters that only these have."""
    return any(
        isinstance(value, ExtObj) and value.dotted.startswith(_OPTIMIZERS)
        for value in flat(model, flat(model, model.flow.values(expr), dicts=True))
    ) or any(read.name == "param_groups" and same(read.value, expr) for read in expr.scope.reads)
