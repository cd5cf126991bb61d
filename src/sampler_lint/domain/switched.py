"""Code that steps an optimizer for some loaders only: one function trains, and evaluates."""

from __future__ import annotations

from sampler_lint.analysis.arguments import passed
from sampler_lint.analysis.asked import tests
from sampler_lint.analysis.origins import LOCAL, Hop, ends, given_by, origins, parameter_of
from sampler_lint.analysis.values import Obj, Table
from sampler_lint.domain.model import Model
from sampler_lint.domain.steps import is_step, steps
from sampler_lint.domain.wrapping import parameter_kept
from sampler_lint.remembered import remembered
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Expr,
    Function,
    Index,
    Name,
    Scope,
    Stmt,
    last_name,
)

#: How a loader is handed on within a function, also through what wraps it.
_HERE = LOCAL | Hop.PART | Hop.ELEMENT


def is_switched_off(
    model: Model, scope: Scope, source: Expr, loader: Obj, within: Stmt | None
) -> bool:
    """Whether the steps in a part of a scope are not made with the batches of this loader.

    By what every call that hands the loader in says beside it (``run(val, training=False)``), by
    what the loader itself was made with (``if loader.training: optimizer.step()``), or by what is
    asked where the loader is chosen (``loader = train if training else val``).
    """
    return (
        _by_calls(model, scope, source, loader, within)
        or _by_loader(model, scope, loader, within)
        or _by_choice(model, scope, source, loader, within)
    )


def _by_calls(model: Model, scope: Scope, source: Expr, loader: Obj, within: Stmt | None) -> bool:
    if not isinstance(scope, Function):
        return False
    if isinstance(source, Name):
        entries = [
            call
            for call in model.flow.callers(scope)
            for each in _parameters(model, source)
            if (given := given_by(model.flow, call, each)) is not None
            and any(map(loader.may_be, model.flow.values(given)))
        ]
    else:
        entries = _asking_for(model, scope, source, loader)
    return bool(entries) and not any(steps(model, scope, within, e) for e in entries)


@remembered
def _parameters(model: Model, source: Expr) -> list[Expr]:
    """The parameters that a loader comes from in its function; else what is gone over itself."""
    return [each for each in ends(model.flow, source, _HERE) if parameter_of(each)] or [source]


def _asking_for(model: Model, scope: Function, source: Expr, loader: Obj) -> list[Call]:
    """The calls whose argument is, or may be, the key of the loader: ``loaders[phase]``."""
    key = source.key if isinstance(source, Index) else None
    param = scope.param(key.id) if isinstance(key, Name) and key.scope is scope else None
    if not isinstance(source, Index) or param is None or len(scope.bindings[param.name]) != 1:
        return []
    keys = {
        key
        for table in model.flow.values(source.value)
        for key, item in (table.entries if isinstance(table, Table) else ())
        if any(map(loader.may_be, model.flow.values(item)))
    }
    given = {call: passed(scope, param, call) for call in model.flow.callers(scope)}
    return [
        call
        for call, expr in given.items()
        if not isinstance(expr, Expr)
        or (literals := model.flow.constants(expr)) is None
        or not keys.isdisjoint(literals)
    ]


def _steps_made(model: Model, scope: Scope, within: Stmt | None) -> list[Call]:
    """The steps in a part of a scope; to drop gradients is one where nothing else is."""
    calls = scope.calls if within is None else scope.calls_in(within)
    made = [call for call in calls if is_step(model, call)]
    return [call for call in made if last_name(call.func) != "zero_grad"] or made


def _by_choice(model: Model, scope: Scope, source: Expr, loader: Obj, within: Stmt | None) -> bool:
    made = _steps_made(model, scope, within)
    choices = _choices(model, scope) if made else {}
    chosen = {
        choices[step.expr]
        for step in (origins(model.flow, source, _HERE) if choices else ())
        if step.expr in choices and any(map(loader.may_be, model.flow.values(step.expr)))
    }
    return bool(chosen) and all(
        _is_asked_otherwise(model, stmt, call) for stmt in chosen for call in made
    )


@remembered
def _choices(model: Model, scope: Scope) -> dict[Expr, Stmt]:
    """What variables are given that are given more than one thing, with where they are."""
    return {
        binding.value: binding.stmt
        for bound in scope.bindings.values()
        if len(bound) > 1
        for binding in bound
        if binding.stmt is not None and isinstance(binding.value, (Attr, Name))
    }


def _is_asked_otherwise(model: Model, one: Stmt, other: Call) -> bool:
    """Whether a parameter that stays what it is decides against one of two places of a function."""
    asked = [
        (test.id, answer)
        for test, answer in tests(one)
        if isinstance(test, Name) and _is_kept(test)
    ]
    return bool(asked) and any(
        isinstance(test, Name) and (test.id, not answer) in asked for test, answer in tests(other)
    )


def _is_kept(test: Name) -> bool:
    found = parameter_of(test)
    return found is not None and len(found[0].bindings[found[1].name]) == 1


def _by_loader(model: Model, scope: Scope, loader: Obj, within: Stmt | None) -> bool:
    if not isinstance(loader.cls, Class):
        return False
    made = _steps_made(model, scope, within)
    return bool(made) and all(_is_asked_of(model, call, loader) for call in made)


def _is_asked_of(model: Model, call: Call, loader: Obj) -> bool:
    """Whether a test on the way to a call asks the loader for what it was made without."""
    return any(
        isinstance(test, Attr)
        and any(map(loader.may_be, model.flow.values(test.value)))
        and (truths := _truths(model, loader, test.name)) != set()
        and all(truth is not answer for truth in truths)
        for test, answer in tests(call)
    )


def _truths(model: Model, loader: Obj, name: str) -> set[bool]:
    """What an attribute of a loader may be, that keeps what its constructor was given."""
    kept = parameter_kept(model, loader.cls, name) if isinstance(loader.cls, Class) else None
    given = model.argument(loader, kept.name) if kept is not None else None
    known = model.flow.constants(given, loader.through) if given is not None else None
    return {bool(each) for each in known or ()}
