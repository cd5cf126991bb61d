"""Datasets whose draws hang on an epoch that nothing moves on in the process of the loader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.origins import LOCAL, Hop, depends_on
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import RANK, RESTORES, SETS_EPOCH, WORKERS
from sampler_lint.domain.datasets import is_iterated
from sampler_lint.domain.draws import global_draw
from sampler_lint.domain.epoch_calls import Carrier, epoch_datasets, is_moved_on
from sampler_lint.domain.epoch_state import (
    Reach,
    epoch_state,
    lookup,
    seed_argument,
    seed_parts,
    seedings_of,
)
from sampler_lint.domain.epochs import feeds_training, loops_over
from sampler_lint.domain.model import Model
from sampler_lint.domain.stale import has_workers
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import self_class, self_stores, stmt_of
from sampler_lint.syntax.nodes import Attr, AugAssign, Call, Class, Const, Expr, While


class Forgotten(NamedTuple):
    """A count that each epoch begins anew, although what is drawn is seeded with it."""

    counter: Expr
    """What is added to, or read to add to it."""
    seeded: Call
    loader: Obj
    dataset: Obj
    by_framework: bool
    """Whether no loop is seen that goes over the loader again: a framework does."""


def forgotten(model: Model) -> Iterator[Forgotten]:
    """Every count of a dataset's pass that workers keep which end with each epoch."""
    for loader in model.loaders:
        if (
            loader.site is None
            or model.flow.argument(loader, "num_workers") is None
            or not has_workers(model, loader)
            or model.option(loader, "persistent_workers", False) != {False}
        ):
            continue
        for dataset in model.passed_to(loader, "dataset"):
            if not isinstance(dataset, Obj) or not isinstance(dataset.cls, Class):
                continue
            counted = _counted(model, dataset.cls)
            if counted is None or feeds_training(model, loader) is not True:
                continue
            by_framework = not loops_over(model, loader)
            if not (by_framework and _may_be_told(model, loader, dataset.cls)):
                yield Forgotten(*counted, loader, dataset, by_framework)


def untold(model: Model) -> Iterator[tuple[Obj, Carrier]]:
    """The loaders that a framework trains with whose data draw by an epoch that nobody sets."""
    for loader in model.loaders:
        for reached in epoch_datasets(model, loader):
            cls = reached.sampler.cls
            kept = epoch_state(model, cls).stored if isinstance(cls, Class) else ()
            if (
                isinstance(cls, Class)
                and feeds_training(model, loader) is True
                and not loops_over(model, loader)
                and not _may_be_told(model, loader, cls)
                and not any(_is_set_elsewhere(model, cls, name) for name in kept)
            ):
                yield loader, reached


def _may_be_told(model: Model, loader: Obj, cls: Class) -> bool:
    """Whether a framework may call a ``set_epoch`` of the dataset: not if only of samplers."""
    if lookup(model, cls, "set_epoch", None) is None or loader.site is None:
        return False
    told = {
        contract.part
        for framework in model.frameworks(model.module_of(loader.site.scope))
        for contract in catalog.contracts(framework, "calls")
    }
    return "sampler" not in told or "dataset" in told


@remembered
def _counted(model: Model, cls: Class) -> tuple[Expr, Call] | None:
    """Where a pass moves on what the class alone keeps, and the seeding that depends on it."""
    passing = epoch_state(model, cls).iteration
    if not is_iterated(model, cls) or passing.opaque or not _draws_by_seed(model, passing):
        return None
    for target, store in self_stores(sorted(passing.functions, key=lambda each: each.row)):
        is_it = partial(_is_own, target.name)
        counted = target if isinstance(store.stmt, AugAssign) else _read(model, store.value, is_it)
        if (
            counted is not None
            and (stmt := stmt_of(counted)) is not None
            and not any(isinstance(outer, While) for outer in stmt.ancestors())
            and not _is_set_elsewhere(model, cls, target.name)
        ):
            for call in seedings_of(passing):
                if _read(model, seed_argument(call), is_it) is not None:
                    return counted, call
    return None


_THROUGH = LOCAL | Hop.CALLER


def _is_own(name: str, expr: Expr) -> bool:
    return isinstance(expr, Attr) and expr.name == name and self_class(expr.value) is not None


def _read(model: Model, made: Expr | None, is_it: Callable[[Expr], bool]) -> Expr | None:
    """Where what something is made of is read; None if it is not."""
    step = depends_on(model.flow, made, is_it, _THROUGH) if made is not None else None
    return None if step is None else step.expr


def _draws_by_seed(model: Model, passing: Reach) -> bool:
    """Whether nothing but seeds that can be told differs between two passes."""
    parts = (
        part
        for call in seedings_of(passing)
        if (seed := seed_argument(call)) is not None
        for part in seed_parts(model, seed)
    )
    return not any(global_draw(model, function) for function in passing.functions) and all(
        isinstance(part, Const)
        or (isinstance(part, Attr) and self_class(part.value) is not None)
        or (RANK.names(part) or RANK.is_call(part))
        or (isinstance(part, Attr) and part.name == "id" and WORKERS.is_mentioned(part))
        for part in parts
    )


def _is_set_elsewhere(model: Model, cls: Class, name: str) -> bool:
    """Whether anything else may set it in the process that starts the workers.

    What is restored from a checkpoint is set before the first epoch.
    """
    family = model.flow.own_mro(cls)
    setters = {
        store.scope.name
        for base in family
        for store in model.project.own_stores(name, base)
        if store.scope.name != "__init__" and not RESTORES.says(store.scope.name)
    }
    owners = [
        call.func.value
        for setter in setters
        for call in model.project.calls_near(setter, cls)
        if isinstance(call.func, Attr) and self_class(call.func.value) not in family
    ]
    if any(map(SETS_EPOCH.says, setters)):
        owners += [
            owner
            for scope, _, owner in model.epoch_setters_kept
            if model.project.same_program(scope, cls)
        ]
    return is_moved_on(model, cls, name) or any(
        not values or any(not isinstance(v, Obj) or v.cls in family for v in values)
        for values in map(model.flow.values, owners)
    )
