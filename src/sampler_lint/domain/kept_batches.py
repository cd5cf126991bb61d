"""Loaders whose first pass ``itertools.cycle`` keeps, to give its batches again for ever."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import ExtObj, Obj
from sampler_lint.domain.epoch_calls import loops_over_stmt
from sampler_lint.domain.epochs import pass_evaluates, pass_trains
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import Pass, taken_from
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.samplers import always_draws, shuffles
from sampler_lint.limits import DEEPEST_WRAPPING
from sampler_lint.syntax.nodes import Call, Expr, For, Function, Scope, Stmt

_KEEPS = "itertools.cycle"


def kept_passes(model: Model) -> Iterator[tuple[Call, Obj]]:
    """The calls of ``cycle`` that training goes on with, each with the loader it goes over."""
    seen: set[Call] = set()
    for module in model.modules:
        if is_test(module) or not module.says("cycle"):
            continue
        for scope in module.facts.scopes:
            for source, stmt in _gone_over(scope):
                for call in _kept(model, source, 0):
                    if call not in seen and _goes_on(model, call, stmt):
                        found = _training_loader(model, call, scope, stmt, source)
                        if found is not None:
                            seen.add(call)
                            yield call, found


def _gone_over(scope: Scope) -> Iterator[tuple[Expr, Stmt]]:
    """What a scope iterates, also step by step, and where."""
    yield from scope.iterated
    yield from taken_from(scope)


def _kept(model: Model, source: Expr, depth: int) -> Iterator[Call]:
    """The calls of ``cycle`` that iterating an expression goes over, also beside others."""
    for value in model.flow.values(source) if depth < DEEPEST_WRAPPING else ():
        if not isinstance(value, ExtObj):
            continue
        if value.dotted == _KEEPS and len(value.site.positional) == 1:
            yield value.site
        else:
            for given in value.site.positional:
                yield from _kept(model, given, depth + 1)


def _goes_on(model: Model, call: Call, stmt: Stmt) -> bool:
    """Whether what ``cycle`` gave is gone over in a loop that does not make it anew."""
    if call.stmt is None or (isinstance(call.scope, Function) and not _is_called(model, call)):
        return False
    making = set(loops_over_stmt(model, call.stmt))
    using = {*loops_over_stmt(model, stmt), *([stmt] if isinstance(stmt, For) else ())}
    return bool(using) and making.isdisjoint(using)


def _is_called(model: Model, call: Call) -> bool:
    """Whether it is known who runs the function, and so which loops do."""
    return bool(model.flow.callers(call.scope))


def _training_loader(
    model: Model, call: Call, scope: Scope, stmt: Stmt, source: Expr
) -> Obj | None:
    for value in model.flow.values(call.positional[0]):
        if (
            isinstance(value, Obj)
            and model.role(value) == "loader"
            and _orders_anew(model, value)
            and pass_trains(model, taken := Pass(scope, stmt, source, value, source))
            and not pass_evaluates(model, taken)
        ):
            return value
    return None


def _orders_anew(model: Model, loader: Obj) -> bool:
    """Whether each pass of a loader certainly has another order."""
    options = model.option(loader, "shuffle", False)
    return (options is not None and True in options) or any(
        always_draws(model, sampler) or shuffles(model, sampler) is True
        for sampler in model.samplers_of(loader)
    )
