"""Which calls have to do with learning: what they give goes into a loss or a step, or they step."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import ExtObj, Obj, Value
from sampler_lint.catalog import handling
from sampler_lint.domain.concepts import FOR_TRAINING
from sampler_lint.domain.model import Model
from sampler_lint.domain.steps import is_step
from sampler_lint.remembered import remembered
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import children, statements, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Call,
    Expr,
    For,
    Function,
    ModuleFacts,
    Name,
    Return,
    Scope,
    With,
    last_name,
)


def learns(model: Model, call: Call) -> bool:
    """Whether a call is one of a model or an optimizer, or makes what a loss is made of."""
    if is_step(model, call) or FOR_TRAINING.names(call.func):
        return True
    if any(_is_module(value) for value in model.flow.values(call.func)):
        return True
    named = {last_name(part) for part in walk(call.func)} - {getattr(call.scope, "self_name", None)}
    return not _learning(model, call.scope.module).isdisjoint(named)


def _is_module(value: Value) -> bool:
    """Whether an object is called itself, and no method of one that torch has not made."""
    if isinstance(value, ExtObj):
        return "()." not in value.dotted or value.dotted.startswith("torch.")
    return isinstance(value, Obj)


@remembered
def _learning(model: Model, module: ModuleFacts) -> frozenset[str | None]:
    """What a file calls its models, and what else makes something that goes into a loss or a step.

    What a function gives back may go there.
    """
    reads = (read for scope in module.scopes for read in scope.reads)
    models = {last_name(read.value) for read in reads if read.name in handling.OF_MODELS}
    into: dict[object, list[Expr]] = {}
    first = [part for scope in module.scopes for part in _taken(model, scope, into)]
    parts = closure(
        first, lambda one: [*children(one), *into.get(_place(one), ())] if one is not None else []
    )
    return frozenset(models | {last_name(part.func) for part in parts if isinstance(part, Call)})


def _taken(model: Model, scope: Scope, into: dict[object, list[Expr]]) -> Iterator[Expr]:
    """What a scope learns of or gives back; ``into`` is told what each variable is made of."""
    for call in scope.calls:
        if is_step(model, call):
            yield call
        elif isinstance(call.func, Attr) and call.func.name in handling.APPENDS | handling.ADDS:
            into.setdefault(_place(call.func.value), []).extend(arg.value for arg in call.args)
    if isinstance(scope, Function):
        yield from scope.yields
    for stmt in statements(scope.body):
        pairs: list[tuple[Expr, Expr]] = []
        if isinstance(stmt, Assign):
            pairs = [(target, stmt.value) for target in stmt.targets]
        elif isinstance(stmt, AugAssign):
            pairs = [(stmt.target, stmt.value)]
        elif isinstance(stmt, For):
            pairs = [(stmt.target, stmt.iter)]
        elif isinstance(stmt, With):
            pairs = [(target, value) for value, target in stmt.items if target is not None]
        elif isinstance(stmt, Return) and stmt.value is not None and isinstance(scope, Function):
            yield stmt.value
        for target, value in pairs:
            for part in walk(target):
                into.setdefault(_place(part), []).append(value)
    into.pop(None, None)


def _place(expr: Expr) -> object:
    """A variable of a scope, or an attribute of whatever."""
    if isinstance(expr, Name):
        return expr.scope, expr.id
    return expr.name if isinstance(expr, Attr) else None
