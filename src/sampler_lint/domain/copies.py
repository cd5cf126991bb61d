"""What the main process changes of a dataset after its workers have got their copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint.analysis.origins import Hop, only
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import SETS_EPOCH
from sampler_lint.domain.epoch_calls import runs_in
from sampler_lint.domain.epoch_state import lookup, reach
from sampler_lint.domain.epochs import EpochLoop, loops_over
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.stale import has_workers
from sampler_lint.syntax.navigation import same, self_class
from sampler_lint.syntax.nodes import Attr, Class, Compare, Expr, Function, Scope, Stmt, Store


class Change(NamedTuple):
    """A place that changes what workers read of a dataset, in the main process."""

    scope: Scope
    node: Expr
    """What is assigned to, or the call that assigns."""
    name: str
    read: Attr
    """Where workers read it."""
    dataset: Obj
    loader: Obj


def changes(model: Model) -> Iterator[Change]:
    """Every change of a dataset in an epoch loop over a loader whose workers persist."""
    for loader in model.loaders:
        if not persists(model, loader):
            continue
        for dataset in model.passed_to(loader, "dataset"):
            if isinstance(dataset, Obj) and isinstance(dataset.cls, Class) and dataset.site:
                yield from _changes(model, loader, dataset, dataset.cls)


def persists(model: Model, loader: Obj) -> bool:
    """Whether a loader keeps its workers, if it has any."""
    given = model.flow.argument(loader, "persistent_workers")
    if given is None or loader.site is None or not has_workers(model, loader):
        return False
    workers = model.flow.argument(loader, "num_workers")
    asked = only(model.flow, given, Hop.ASSIGNED)
    if isinstance(asked, Compare) and workers is not None and same(asked.left, workers):
        return asked.ops == ["Gt"]
    return model.flow.constants(given) == {True}


def _changes(model: Model, loader: Obj, dataset: Obj, cls: Class) -> Iterator[Change]:
    loops = loops_over(model, loader)
    if not loops or any(_is_dropped(model, loop) for loop in loops):
        return
    found = reach(model, cls, "__iter__", "__getitem__", "__getitems__")
    reads: dict[str, Attr] = {}
    for read in sorted(found.self_reads(), key=lambda each: (each.row, each.col)):
        reads.setdefault(read.name, read)
    for name, read in reads.items():
        own = [*_own_stores(model, cls, name)]
        if lookup(model, cls, name, None) is not None or any(
            store.scope in found.functions for store in own
        ):
            continue  # a property, or what the workers set themselves
        places: list[tuple[Scope, Expr, Stmt | None, Expr]] = [
            (store.scope, store.target, store.stmt, store.target.value)
            for store in model.project.outer_stores_near(name, cls)
            if isinstance(store.target, Attr) and store.how == "assign"
        ]
        places += [
            (call.scope, call, call.stmt, call.func.value)
            for method in _setters(own)
            for call in model.flow.callers(method)
            if isinstance(call.func, Attr) and self_class(call.func.value) is None
        ]
        for scope, node, stmt, owner in places:
            if _is_it(model, owner, dataset) and any(
                _acts(model, loop, scope, stmt) for loop in loops
            ):
                yield Change(scope, node, name, read, dataset, loader)


def _acts(model: Model, found: EpochLoop, scope: Scope, stmt: Stmt | None) -> bool:
    """Whether a place certainly is run in a turn of the loop."""
    if scope is found.loop.scope:
        return stmt is not None and found.loop.encloses(stmt)
    return scope in found.scopes or runs_in(model, found.loop, scope) is True


def _is_it(model: Model, expr: Expr, dataset: Obj) -> bool:
    """Whether an expression certainly is the dataset."""
    values = model.flow.values(expr)
    return bool(values) and all(
        isinstance(value, Obj) and (value.cls, value.site) == (dataset.cls, dataset.site)
        for value in values
    )


def _own_stores(model: Model, cls: Class, name: str) -> Iterator[Store]:
    """Where the class itself, in whichever file, sets an attribute."""
    for base in model.flow.mro(cls):
        for scope in scopes_inside(base) if isinstance(base, Class) else ():
            for store in scope.stores:
                target = store.target
                if isinstance(target, Attr) and target.name == name and self_class(target.value):
                    yield store


def _setters(own: list[Store]) -> Iterator[Function]:
    """The methods that give an attribute another value: not what is in it, which may be shared."""
    for store in own:
        scope = store.scope
        if (
            store.how == "assign"
            and isinstance(scope, Function)
            and not (scope.name == "__init__" or SETS_EPOCH.says(scope.name))
        ):
            yield scope


def _is_dropped(model: Model, found: EpochLoop) -> bool:
    """Whether the program lets go of a loader's workers."""
    return any(True for _ in model.project.stores_near("_iterator", found.loop.scope))
