"""What relies on the one order that a sampler has had in all epochs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sampler_lint.analysis.values import Obj, Value
from sampler_lint.domain.concepts import ITERATES
from sampler_lint.domain.epoch_calls import epoch_samplers
from sampler_lint.domain.epochs import EpochLoop, epoch_loops
from sampler_lint.domain.model import Model
from sampler_lint.domain.places import goes_by_places
from sampler_lint.domain.seeds import is_seed_name
from sampler_lint.edits.safety.leaving import hands_on, leaves_items
from sampler_lint.edits.safety.observers import is_looked_at, reads_epoch_besides
from sampler_lint.edits.safety.receivers import KEEPS, in_model, rewritten
from sampler_lint.edits.safety.texts import Changed
from sampler_lint.edits.safety.turns import sets_beside
from sampler_lint.edits.safety.values import constructed
from sampler_lint.remembered import remembered
from sampler_lint.syntax.lower import expression
from sampler_lint.syntax.navigation import nodes_in, statements, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Comp,
    Const,
    Expr,
    For,
    Function,
    Index,
    Scope,
    Unary,
    While,
    dotted,
    last_name,
)
from sampler_lint.workspace.project import Module

#: By which the items of a list are taken one after the other.
_STEPS = frozenset({"pop", "popleft", "rotate"})


def relied_on(model: Model, module: Module, changed: Changed) -> str | None:
    """A place that keeps the order of a sampler which the fix tells an epoch, or goes by it."""
    if (reason := _reordered(model, module, changed)) is not None:
        return reason
    classes = {cls for cls in rewritten(module, changed) if cls.method("set_epoch") is not None}
    for found, samplers in _going_by_places(model) if classes else ():
        own = [each.cls for each in samplers if isinstance(each.cls, Class)]
        if any(classes.intersection(model.flow.mro(cls)) for cls in own):
            place = model.place(found.inner.scope, found.inner.stmt)
            return f"{place} goes by the places of batches"
    was_told = any(_tells(node) and node not in changed.same for node in changed.old.nodes)
    for call in changed.new.spans:
        where = in_model(module, changed, call) if _tells(call) else None
        if where is not None and isinstance(call, ast.Call) and changed.is_altered(call):
            assert isinstance(call.func, ast.Attribute)
            values = model.flow.values(expression(call.func.value, *where))
            reason = _kept(model, module, values) or _gone_by(model, values)
            if reason is None and not was_told:
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
            for other in model.modules:
                if reason := _kept(model, other, frozenset({made}), in_loops=True):
                    return reason
        elif made is not None and "shuffle" in written:
            for found in epoch_loops(model):
                if not found.inner.loader.may_be(made):
                    continue
                if _goes_by_order(model, found) or hands_on(model, found):
                    return (
                        f"{model.place(found.inner.scope, found.inner.stmt)} goes by"
                        " the places of batches"
                    )
    return None


def _tells(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "set_epoch"


def _kept(
    model: Model, module: Module, told: frozenset[Value], *, in_loops: bool = False
) -> str | None:
    """What goes over a sampler beside all loops, for a list or the like: the order of one epoch."""
    keeping = _keeping(model, module, in_loops)
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
                for value in model.flow.values(source):
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
        if _goes_by_order(model, found)
    ]


def _goes_by_order(model: Model, found: EpochLoop) -> bool:
    return (
        goes_by_places(model, found.inner, found.loop)
        or _goes_beside(model, found)
        or sets_beside(model, found)
        or is_looked_at(model, found)
        or leaves_items(model, found)
    )


def _goes_beside(model: Model, found: EpochLoop) -> bool:
    """Whether a turn takes up, item by item, what a pass before the epochs has listed."""
    kept = _listed_before(model, found)
    taken: list[Expr] = []
    for scope in found.scopes if kept else ():
        for call in scope.calls:
            if not _is_in(found, call):
                continue
            if last_name(call.func) in {"next", "zip"}:
                taken += call.positional
            elif isinstance(call.func, Attr) and call.func.name in _STEPS:
                taken.append(call.func.value)
        body = [found.loop] if scope is found.loop.scope else scope.body
        taken += [
            node.value
            for node in nodes_in(statements(body))
            if isinstance(node, Index) and not isinstance(node.key, (Const, Unary))
        ]
    return any(dotted(each) in kept for each in taken)


def _is_in(found: EpochLoop, call: Call) -> bool:
    return call.scope is not found.loop.scope or (
        call.stmt is not None and (found.loop is call.stmt or found.loop.encloses(call.stmt))
    )


def _lists(expr: Expr) -> bool:
    """Whether an expression holds all that it goes over, and is no iterator."""
    if isinstance(expr, Comp):
        return expr.kind != "GeneratorExp"
    return isinstance(expr, Call) and last_name(expr.func) in KEEPS


def _listed_before(model: Model, found: EpochLoop) -> set[str]:
    """What holds the items of a pass over the same loader that the loop does not make.

    The variables that a loop appends to, or that a comprehension or the like is given to, and
    those that are made of such ones.
    """
    scope, loop = found.loop.scope, found.loop
    filled: set[str | None] = set()
    for source, stmt in scope.iterated:
        is_before = stmt is not None and not loop.encloses(stmt) and loop is not stmt
        if not is_before or not any(
            found.inner.loader in model.flow.values(part) for part in walk(source)
        ):
            continue
        if isinstance(stmt, For):
            filled |= {
                dotted(call.func.value)
                for call in scope.calls_in(stmt)
                if isinstance(call.func, Attr) and call.func.name in {"append", "extend"}
            }
        elif isinstance(stmt, Assign) and any(map(_lists, walk(stmt.value))):
            filled |= {dotted(target) for target in stmt.targets}
    filled.discard(None)
    for stmt in statements(scope.body) if filled else ():
        if not isinstance(stmt, Assign) or loop.encloses(stmt):
            continue
        if any(dotted(part) in filled for part in walk(stmt.value)):
            filled |= {dotted(target) for target in stmt.targets} - {None}
    return {each for each in filled if each is not None}
