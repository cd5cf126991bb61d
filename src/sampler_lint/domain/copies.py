"""What the main process changes of a dataset after its workers have got their copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeAlias

from sampler_lint.analysis.origins import HANDED_ON, Hop, only, origins
from sampler_lint.analysis.values import Lit, Obj
from sampler_lint.domain.concepts import SETS_EPOCH
from sampler_lint.domain.epoch_calls import runs_in
from sampler_lint.domain.epoch_state import lookup, reach
from sampler_lint.domain.epochs import EpochLoop, loops_with
from sampler_lint.domain.model import Model
from sampler_lint.domain.options import is_chosen
from sampler_lint.domain.programs import once_a_program, outer_stores_beside
from sampler_lint.domain.stale import has_workers
from sampler_lint.domain.workers import WORKED, parts
from sampler_lint.findings import Grade
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import operands, same, self_class
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Compare,
    Expr,
    Function,
    Loop,
    Name,
    Scope,
    Stmt,
    Store,
    last_name,
)


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


class _Place(NamedTuple):
    """A place that changes what workers read of some object of a class."""

    scope: Scope
    node: Expr
    stmt: Stmt | None
    owner: Expr
    """What names the object."""
    name: str
    read: Attr


#: What of a loader its workers get copies of.
COPIED = ("dataset", "collate_fn")
_COPIES = frozenset({"copy", "deepcopy"})
_Acts: TypeAlias = "Callable[[Scope, Stmt | None], bool]"


def changes(model: Model) -> Iterator[Change]:
    """Every change of what the workers of a loader hold while they keep their copies of it.

    In an epoch loop over a loader whose workers persist, or in a loop that takes its batches from
    one iterator.
    """
    for loader in model.loaders:
        for acts in (*_epochs_of(model, loader), *_steps_of(model, loader)):
            yield from changes_of(model, loader, acts)


def changes_of(
    model: Model, loader: Obj, acts: _Acts = lambda scope, stmt: True
) -> Iterator[Change]:
    """Every place among those asked for that changes what a loader reads of its dataset."""
    for copied in (v for name in COPIED for v in model.passed_to(loader, name)):
        for part in parts(model, copied):
            if isinstance(part, Obj) and isinstance(part.cls, Class):
                for scope, node, stmt, owner, name, read in _places(model, part.cls):
                    if _is_it(model, owner, part) and acts(scope, stmt):
                        yield Change(scope, node, name, read, part, loader)


def _epochs_of(model: Model, loader: Obj) -> Iterator[_Acts]:
    """Whether a place is run in a turn of a loop over a loader that keeps its workers."""
    loops = loops_with(model, loader) if persists(model, loader) else []
    if loops and not any(_is_dropped(model, loop) for loop in loops):
        yield lambda scope, stmt: any(_acts(model, loop, scope, stmt) for loop in loops)


def _steps_of(model: Model, loader: Obj) -> Iterator[_Acts]:
    """The same of a loop that takes all its batches from an iterator that was made before it."""
    if loader.site is None or not has_workers(model, loader):
        return
    for made, loops in _iterators(model, loader.site.scope):
        values = model.flow.values(made.positional[0])
        if any(isinstance(value, Obj) and loader.may_be(value) for value in values):
            yield from (partial(_is_within, loop) for loop in loops)


@once_a_program
def _iterators(model: Model, scope: Scope) -> list[tuple[Call, list[Loop]]]:
    """The iterators of a program that loops take from, which are made once before them."""
    found = ((call, _loops_taking(call)) for call in model.project.calls_near("iter", scope))
    return [(call, loops) for call, loops in found if loops]


def _loops_taking(call: Call) -> list[Loop]:
    made = call.stmt
    name = made.targets[0] if isinstance(made, Assign) and made.value is call else None
    if not isinstance(name, Name) or not call.positional:
        return []
    bindings = call.scope.bindings.get(name.id) or []
    return [
        loop
        for loop in (call.scope.loops if len(bindings) == 1 else ())
        if made is not None
        and not loop.encloses(made)
        and any(
            last_name(step.func) == "next"
            and any(isinstance(each, Name) and each.id == name.id for each in step.positional)
            for step in call.scope.calls_in(loop)
        )
    ]


def _is_within(loop: Loop, scope: Scope, stmt: Stmt | None) -> bool:
    return scope is loop.scope and stmt is not None and loop.encloses(stmt)


def persists(model: Model, loader: Obj) -> Grade | None:
    """How sure it is that a loader keeps its workers, if it has any.

    Likely where who starts the program may choose that.
    """
    given = model.flow.argument(loader, "persistent_workers")
    if loader.site is None or not has_workers(model, loader):
        return None
    if given is None:  # perhaps one of the options that are passed on, if there are workers
        values = model.flow.given(loader, "persistent_workers")
        told = {value.value if isinstance(value, Lit) else ... for value in values}
        return Grade.CERTAIN if True in told and told <= {True, None} else None
    workers = model.flow.argument(loader, "num_workers")
    asked = only(model.flow, given, Hop.ASSIGNED)
    left = [each for each in operands(asked or given) if not _asks_for(each, workers)]
    if not left or model.option(loader, "persistent_workers", False) == {True}:
        return Grade.CERTAIN
    return Grade.LIKELY if all(is_chosen(model, each) for each in left) else None


def _asks_for(test: Expr, workers: Expr | None) -> bool:
    """Whether a test is whether there are workers."""
    return (
        isinstance(test, Compare)
        and workers is not None
        and same(test.left, workers)
        and test.ops == ["Gt"]
    )


@remembered
def _places(model: Model, cls: Class) -> list[_Place]:
    """What changes what workers read of any object of a class."""
    found = reach(model, cls, *WORKED)
    reads: dict[str, Attr] = {}
    for read in sorted(found.self_reads(), key=lambda each: (each.row, each.col)):
        reads.setdefault(read.name, read)
    out: list[_Place] = []
    for name, read in reads.items():
        bases = model.flow.own_mro(cls)
        own = [store for base in bases for store in model.project.own_stores(name, base)]
        if lookup(model, cls, name, None) is not None or any(
            store.scope in found.functions for store in own
        ):
            continue  # a property, or what the workers set themselves
        out += (
            _Place(store.scope, store.target, store.stmt, store.target.value, name, read)
            for store in outer_stores_beside(model, name, cls)
            if store.how == "assign"
        )
        out += (
            _Place(call.scope, call, call.stmt, call.func.value, name, read)
            for method in _setters(own)
            for call in model.flow.callers(method)
            if isinstance(call.func, Attr) and self_class(call.func.value) is None
        )
    return out


def _acts(model: Model, found: EpochLoop, scope: Scope, stmt: Stmt | None) -> bool:
    """Whether a place certainly is run in a turn of the loop."""
    if scope is found.loop.scope:
        return stmt is not None and found.loop.encloses(stmt)
    return scope in found.scopes or runs_in(model, found.loop, scope) is True


def _is_it(model: Model, expr: Expr, dataset: Obj) -> bool:
    """Whether an expression certainly is the dataset, and no copy of it."""
    values = model.flow.values(expr)
    is_made_there = bool(values) and all(
        isinstance(value, Obj) and (value.cls, value.site) == (dataset.cls, dataset.site)
        for value in values
    )
    return is_made_there and copying(model, expr, HANDED_ON) is None


def copying(model: Model, expr: Expr, hops: Hop) -> Call | None:
    """The call that makes what an expression is of another object."""
    steps = (step.expr for step in origins(model.flow, expr, hops))
    calls = (each for each in steps if isinstance(each, Call))
    return next((call for call in calls if last_name(call.func) in _COPIES), None)


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
