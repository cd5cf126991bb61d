"""What relies on the one order that a sampler has had in all epochs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sampler_lint.analysis.values import Obj, Value
from sampler_lint.domain.concepts import ITERATES, SAMPLER_ARGUMENTS
from sampler_lint.domain.epoch_calls import calls_for, carriers, epoch_samplers
from sampler_lint.domain.epochs import EpochLoop, loops_over
from sampler_lint.domain.leaving import hands_on, leaves_items
from sampler_lint.domain.model import Model
from sampler_lint.domain.seeds import is_seed_name
from sampler_lint.edits.safety.observers import (
    is_looked_at,
    reads_epoch_besides,
    reads_seed_besides,
)
from sampler_lint.edits.safety.receivers import KEEPS, in_model, rewritten
from sampler_lint.edits.safety.texts import Changed
from sampler_lint.edits.safety.values import constructed
from sampler_lint.remembered import remembered
from sampler_lint.syntax.lower import expression
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Expr,
    For,
    Function,
    Scope,
    While,
    last_name,
)
from sampler_lint.workspace.project import Module


def relied_on(model: Model, module: Module, changed: Changed) -> str | None:
    """A place that keeps the order of a sampler which the fix tells an epoch, or goes by it."""
    if (reason := _reordered(model, module, changed)) is not None:
        return reason
    for cls in rewritten(module, changed):
        kept = _kept_classes(model).get(cls) if cls.method("__iter__") is not None else None
        if kept is not None:
            return f"{model.place(*kept)} keeps an order"
    classes = {cls for cls in rewritten(module, changed) if cls.method("set_epoch") is not None}
    for found, samplers in _with_samplers(model) if classes else ():
        own = [each.cls for each in samplers if isinstance(each.cls, Class)]
        is_of_them = any(classes.intersection(model.flow.mro(cls)) for cls in own)
        if is_of_them and _goes_by_order(model, found):
            place = model.place(found.inner.scope, found.inner.stmt)
            return f"{place} goes by the places of batches"
    was_told = any(_tells(node) and node not in changed.same for node in changed.old.nodes)
    for call in changed.new.spans:
        owner = _told(call)
        where = in_model(module, changed, call) if owner is not None else None
        if owner is not None and where is not None and changed.is_altered(call):
            values = model.flow.values(expression(owner, *where))
            reason = _kept(model, module, values) or _gone_by(model, values)
            if reason is None and not was_told and _tells(call):
                reason = reads_epoch_besides(model, values)
            if reason is not None:
                return reason
    return None


def _reordered(model: Model, module: Module, changed: Changed) -> str | None:
    """What goes by the order of a sampler or loader that the fix has built with other arguments."""
    for call in changed.new.spans:
        was = changed.back.get(call)
        if not isinstance(call, ast.Call) or not isinstance(was, ast.Call):
            continue
        written = {one.arg for one in call.keywords if changed.is_altered(one.value)}
        made = constructed(model, module, was) if written else None
        if made is not None and any(is_seed_name(name or "") for name in written):
            if (kept := _kept_anywhere(model).get(made)) is not None:
                return f"{model.place(*kept)} keeps an order"
            names = {name for name in written if name and is_seed_name(name)}
            reason = _gone_by(model, frozenset({made}), has_one_order=True)
            if reason := reason or reads_seed_besides(model, made, names):
                return reason
        elif made is not None and "shuffle" in written:
            for value, where in _kept_beside(model).items():
                if made.may_be(value):
                    return f"{model.place(*where)} keeps an order"
            for found in _loops_of(model).get(made.site, ()):
                if _goes_by_order(model, found) or hands_on(model, found):
                    return (
                        f"{model.place(found.inner.scope, found.inner.stmt)} goes by"
                        " the places of batches"
                    )
    return None


def _told(node: ast.AST) -> ast.expr | None:
    """What a call, or an assignment to its attribute, tells an epoch."""
    if _tells(node):
        return node.func.value  # type: ignore[attr-defined, no-any-return]
    is_stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    return node.value if is_stored and node.attr == "epoch" else None  # type: ignore[attr-defined]


def _tells(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "set_epoch"


@remembered
def _loops_of(model: Model) -> dict[Call | None, list[EpochLoop]]:
    """The loops over epochs by where the loader is built that they go over."""
    found: dict[Call | None, list[EpochLoop]] = {}
    for loop in _loops(model):
        found.setdefault(loop.inner.loader.site, []).append(loop)
    return found


@remembered
def _loops(model: Model) -> list[EpochLoop]:
    """The loops over epochs of all programs, also of those that shard by a sampler of their own."""
    return list(dict.fromkeys(each for one in model.loaders for each in loops_over(model, one)))


@remembered
def _kept_anywhere(model: Model) -> dict[Value, tuple[Scope, Expr]]:
    """What any file goes over, in a loop or not."""
    return {k: v for each in model.modules for k, v in _keeping(model, each, True).items()}


@remembered
def _kept_beside(model: Model) -> dict[Value, tuple[Scope, Expr]]:
    """What any file goes over beside all loops."""
    return {k: v for each in model.modules for k, v in _keeping(model, each, False).items()}


@remembered
def _kept_classes(model: Model) -> dict[Class, tuple[Scope, Expr]]:
    """The classes of the objects that a file goes over beside all loops."""
    found: dict[Class, tuple[Scope, Expr]] = {}
    for value, where in _kept_beside(model).items():
        if isinstance(value, Obj) and isinstance(value.cls, Class):
            for cls in model.flow.own_mro(value.cls):
                found.setdefault(cls, where)
    return found


def _kept(model: Model, module: Module, told: frozenset[Value]) -> str | None:
    """What goes over a sampler beside all loops, for a list or the like: the order of one epoch."""
    keeping = _keeping(model, module, False)
    found = next((keeping[value] for value in told if value in keeping), None)
    return f"{model.place(*found)} keeps an order" if found is not None else None


@remembered
def _keeping(model: Model, module: Module, in_loops: bool) -> dict[Value, tuple[Scope, Expr]]:
    """What a file goes over, beside all loops or anywhere.

    A method may be what gives each pass its order.
    """
    found: dict[Value, tuple[Scope, Expr]] = {}
    for scope in module.facts.scopes:
        if isinstance(scope, Function) and scope.cls is not None:
            continue
        made = (call for call in scope.calls if last_name(call.func) in KEEPS)
        sources = [(each, call.stmt) for call in made for each in call.positional[:1]]
        taken = ((each, stmt) for whole, stmt in scope.iterated for each in _taken(whole))
        for source, stmt in (*taken, *sources):
            around = (stmt, *stmt.ancestors()) if stmt is not None else ()
            if in_loops or not any(isinstance(each, (For, While)) for each in around):
                asked = isinstance(source, Attr) and source.name in SAMPLER_ARGUMENTS
                whole = model.flow.values(source.value) if asked else ()  # type: ignore[attr-defined]
                for value in (*model.flow.values(source), *whole):
                    if isinstance(value, Obj):
                        found.setdefault(value, (scope, source))
    return found


def _taken(source: Expr) -> Iterator[Expr]:
    """What is gone over in the end: ``x`` in ``enumerate(x)``."""
    if isinstance(source, Call) and ITERATES.is_call(source):
        for each in source.positional:
            yield from _taken(each)
    else:
        yield source


def _gone_by(model: Model, told: frozenset[Value], *, has_one_order: bool = False) -> str | None:
    """A pass that takes back what it has put, or what was kept, where the place of a batch says.

    ``has_one_order``: where an epoch is set, too, only one that goes by another in step with it.
    """
    for found, samplers in _with_samplers(model):
        if not any(sampler.may_be(value) for sampler in samplers for value in told):
            continue
        if not _goes_by_order(model, found):
            continue
        if has_one_order and calls_for(model, found, [*carriers(model, found.inner.loader)]).hits:
            continue
        return f"{model.place(found.inner.scope, found.inner.stmt)} goes by the places of batches"
    return None


@remembered
def _with_samplers(model: Model) -> list[tuple[EpochLoop, list[Obj]]]:
    return [
        (found, [each.sampler for each in epoch_samplers(model, found.inner.loader)])
        for found in _loops(model)
    ]


@remembered
def _goes_by_order(model: Model, found: EpochLoop) -> bool:
    return is_looked_at(model, found) or leaves_items(model, found)
