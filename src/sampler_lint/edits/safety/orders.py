"""What relies on the one order that a sampler has had in all epochs."""

from __future__ import annotations

import ast

from sampler_lint.analysis.values import Value
from sampler_lint.domain.epoch_calls import epoch_samplers
from sampler_lint.domain.epochs import epoch_loops
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import goes_by_places
from sampler_lint.edits.safety.receivers import in_model
from sampler_lint.edits.safety.texts import Changed
from sampler_lint.syntax.lower import expression
from sampler_lint.syntax.nodes import For, Function, While, last_name
from sampler_lint.workspace.project import Module

#: What goes over a sampler and keeps its order.
_KEEPS = frozenset({"list", "tuple"})


def relied_on(model: Model, module: Module, changed: Changed) -> str | None:
    """A place that keeps the order of a sampler which the fix tells an epoch, or goes by it."""
    for call in changed.new.spans:
        told = call.func if isinstance(call, ast.Call) and changed.is_altered(call) else None
        where = in_model(module, changed, call)
        if isinstance(told, ast.Attribute) and told.attr == "set_epoch" and where is not None:
            values = model.flow.values(expression(told.value, *where))
            if reason := _kept(model, module, values) or _gone_by(model, values):
                return reason
    return None


def _kept(model: Model, module: Module, told: frozenset[Value]) -> str | None:
    """What goes over a sampler beside all loops, for a list or the like: the order of one epoch.

    A method may be what gives each pass its order.
    """
    for scope in module.facts.scopes:
        if isinstance(scope, Function) and scope.cls is not None:
            continue
        made = (call for call in scope.calls if last_name(call.func) in _KEEPS)
        sources = [(each, call.stmt) for call in made for each in call.positional[:1]]
        for source, stmt in (*scope.iterated, *sources):
            around = (stmt, *stmt.ancestors()) if stmt is not None else ()
            if any(isinstance(each, (For, While)) for each in around):
                continue
            if told & {*model.flow.values(source)}:
                return f"{model.place(scope, source)} keeps an order"
    return None


def _gone_by(model: Model, told: frozenset[Value]) -> str | None:
    """A pass that takes back what it has put where the number of a batch says."""
    for found in epoch_loops(model):
        samplers = [each.sampler for each in epoch_samplers(model, found.inner.loader)]
        is_told = any(sampler.may_be(value) for sampler in samplers for value in told)
        if is_told and goes_by_places(found.inner):
            return (
                f"{model.place(found.inner.scope, found.inner.stmt)} goes by the places of batches"
            )
    return None
