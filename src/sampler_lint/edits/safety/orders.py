"""What relies on the one order that a sampler has had in all epochs."""

from __future__ import annotations

import ast

from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import Obj, Value
from sampler_lint.domain.epoch_calls import epoch_samplers
from sampler_lint.domain.epochs import EpochLoop, epoch_loops
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import goes_by_places
from sampler_lint.edits.safety.receivers import KEEPS, in_model
from sampler_lint.edits.safety.texts import Changed
from sampler_lint.remembered import remembered
from sampler_lint.syntax.lower import expression
from sampler_lint.syntax.navigation import owner_of, walk
from sampler_lint.syntax.nodes import (
    Call,
    Comp,
    Expr,
    For,
    Function,
    Name,
    Scope,
    Seq,
    While,
    last_name,
)
from sampler_lint.workspace.project import Module


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
    """What goes over a sampler beside all loops, for a list or the like: the order of one epoch."""
    keeping = _keeping(model, module)
    found = next((keeping[value] for value in told if value in keeping), None)
    return f"{model.place(*found)} keeps an order" if found is not None else None


@remembered
def _keeping(model: Model, module: Module) -> dict[Value, tuple[Scope, Expr]]:
    """What a file goes over beside all loops; a method may be what gives each pass its order."""
    found: dict[Value, tuple[Scope, Expr]] = {}
    for scope in module.facts.scopes:
        if isinstance(scope, Function) and scope.cls is not None:
            continue
        made = (call for call in scope.calls if last_name(call.func) in KEEPS)
        sources = [(each, call.stmt) for call in made for each in call.positional[:1]]
        for source, stmt in (*scope.iterated, *sources):
            around = (stmt, *stmt.ancestors()) if stmt is not None else ()
            if not any(isinstance(each, (For, While)) for each in around):
                for value in model.flow.values(source):
                    if isinstance(value, Obj):
                        found.setdefault(value, (scope, source))
    return found


def _gone_by(model: Model, told: frozenset[Value]) -> str | None:
    """A pass that takes back what it has put, or what was kept, where the place of a batch says."""
    for found, samplers in _going_by_places(model):
        if any(sampler.may_be(value) for sampler in samplers for value in told):
            return (
                f"{model.place(found.inner.scope, found.inner.stmt)} goes by the places of batches"
            )
    return None


@remembered
def _going_by_places(model: Model) -> list[tuple[EpochLoop, list[Obj]]]:
    return [
        (found, [each.sampler for each in epoch_samplers(model, found.inner.loader)])
        for found in epoch_loops(model)
        if goes_by_places(found.inner) or _goes_beside(model, found)
    ]


def _goes_beside(model: Model, found: EpochLoop) -> bool:
    """Whether a pass takes a batch together with an item of a list made before the epochs."""
    stmt, source = found.inner.stmt, found.inner.source
    for call in walk(stmt.iter) if isinstance(stmt, For) else ():
        if not isinstance(call, Call) or last_name(call.func) != "zip":
            continue
        if not any(part is source for part in walk(call)):
            continue
        for name in (each for each in call.positional if isinstance(each, Name)):
            owner = owner_of(name)
            for made in definitions(owner, name) if owner is not None else ():
                is_kept = isinstance(made.value, (Comp, Seq)) or (
                    isinstance(made.value, Call) and last_name(made.value.func) in KEEPS
                )
                kept = made.stmt if is_kept and not made.path else None
                if kept is not None and not found.loop.encloses(kept):
                    return True
    return False
