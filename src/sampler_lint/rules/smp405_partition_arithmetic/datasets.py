"""What shows when a dataset that divides itself is run as every rank and every worker has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import RANK, WORKERS
from sampler_lint.domain.datasets import is_dataset
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.programs import is_test
from sampler_lint.edits.names import name_of
from sampler_lint.findings import Grade
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._trials import defined_by, splitting_place
from sampler_lint.syntax.navigation import nodes_in, statements
from sampler_lint.syntax.nodes import Class, Node
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.sharing import Tear


def torn(model: Model) -> Iterator[Suspect]:
    """Datasets whose parts do not fit together."""
    for module, cls in model.classes():
        if is_test(module) or not _divides(model, cls):
            continue
        tear = model.sharing(cls).tear
        if tear is not None and not (tear.by_draws and _may_seed_workers(model, cls)):
            yield _suspect(model, module, cls, tear)


def _divides(model: Model, cls: Class) -> bool:
    """Whether the class is a dataset of torch that says ranks or workers anywhere."""
    bases = list(model.flow.mro(cls))
    return any(map(is_dataset, bases)) and any(
        any(concept.names(node) or concept.is_call(node) for concept in (RANK, WORKERS))
        for base in bases
        if isinstance(base, Class)
        for scope in scopes_inside(base)
        for node in nodes_in(statements(scope.body))
    )


def _may_seed_workers(model: Model, cls: Class) -> bool:
    """Whether a loader of such a dataset may give its workers another seed than torch does."""
    return any(
        model.argument(loader, "worker_init_fn") is not None
        or model.flow.may_be_passed(loader, "worker_init_fn")
        for loader in model.loaders
        if any(
            isinstance(value, Obj)
            and isinstance(value.cls, Class)
            and cls in model.flow.mro(value.cls)
            for value in model.passed_to(loader, "dataset")
        )
    )


def _suspect(model: Model, module: Module, cls: Class, tear: Tear) -> Suspect:
    who = "worker" if tear.workers else "rank"
    if tear.by_draws:
        wrong = (
            "each worker shuffles by a seed of its own before it takes its part, so that some "
            "samples are read twice and others never"
        )
    elif tear.alike:
        wrong = (
            f"every {who} yields the same; {tear.missing} of {tear.whole} samples are never read"
        )
    else:
        found = ((tear.missing, "never read"), (tear.repeated, "read more than once"))
        wrong = " and ".join(
            f"{count} of {tear.whole} samples {'is' if count == 1 else 'are'} {when}"
            for count, when in found
            if count
        )
    if tear.by_draws:
        advice = "shuffle by a generator that every worker seeds alike, with the epoch"
    elif tear.is_rest:
        advice = "give the first `n % workers` workers one extra sample instead"
    else:
        wrong += ", although the data divides evenly"
        advice = (
            f"give each {who} the next contiguous part, or every n-th sample from its number on"
        )
    where, node = (
        splitting_place(model, cls)
        or _dividing(model, cls)
        or (
            module,
            name_of(module, cls),
        )
    )
    return Suspect(
        where,
        node,
        f"the parts of the {who}s in `{cls.name}` overlap or leave samples out",
        grade=Grade.LIKELY if tear.is_rest else Grade.CERTAIN,
        effect=f"with {tear.story}, {wrong}",
        advice=advice,
    )


def _dividing(model: Model, cls: Class) -> tuple[Module, Node] | None:
    """Where the class is read."""
    methods = (defined_by(model, cls, name) for name in ("__iter__", "__getitem__"))
    method = next(filter(None, methods), None)
    if method is None:
        return None
    module = model.module_of(method)
    return module, name_of(module, method)
