"""Iterators of a loader with a state, which are made before the loader gets its state back."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.model import STATEFUL_LOADER, Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.stale import iterators_before
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Related
from sampler_lint.limits import DEEPEST_CHAIN
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.nodes import Assign, Attr, Call, Function


def made_before(model: Model) -> Iterator[Suspect]:
    """``batches = iter(loader)``, and then ``loader.load_state_dict(…)`` for the same batches."""
    told: set[Assign] = set()
    for call in model.project.calls_named("load_state_dict"):
        owners = model.flow.values(call.func.value) if isinstance(call.func, Attr) else ()
        for loader in owners:
            if isinstance(loader, Obj) and model.is_a(loader, STATEFUL_LOADER) is True:
                for made in _iterators_before(model, loader, call):
                    if made not in told and not is_test(model.module_of(made.scope)):
                        told.add(made)
                        yield _suspect(model, made, call)


def _iterators_before(model: Model, loader: Obj, call: Call) -> Iterator[Assign]:
    """Where an iterator is kept above what leads to a loader's state, and goes on behind it."""
    todo = [(call, 0)]
    for restores, depth in todo:
        found = [
            stmt
            for stmt, iterated in iterators_before(restores)
            if any(map(loader.may_be, model.flow.values(iterated)))
        ]
        yield from found
        if not found and depth < DEEPEST_CHAIN and isinstance(restores.scope, Function):
            todo += [(caller, depth + 1) for caller in model.flow.callers(restores.scope)]


def _suspect(model: Model, made: Assign, restores: Call) -> Suspect:
    module = model.module_of(made.scope)
    return Suspect(
        module,
        made.value,
        f"`{text_of(module.source, made.value)}` is made before its loader gets back its state",
        effect="the iterator that is kept begins at the first batch: only the next one goes on "
        "where the run was left",
        advice="make it after `load_state_dict`",
        why=(Related(model.place(restores.scope, restores), "the state is loaded here"),),
    )
