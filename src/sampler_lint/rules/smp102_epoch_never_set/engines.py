"""Loaders that the engine of a framework trains with, epoch after epoch."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.engines import Run, made_by_framework, may_be_told, runs
from sampler_lint.domain.epoch_calls import carriers
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model
from sampler_lint.findings import Grade, Place, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import unparse


def run_by_engines(model: Model) -> Iterator[Suspect]:
    """Loaders that a framework's engine trains with for several epochs, and nobody tells those."""
    for run in runs(model):
        made = made_by_framework(model, run.data)
        if made is not None and not may_be_told(model, run, None):
            grade = Grade.CERTAIN if made.is_sharded else Grade.LIKELY
            yield _told_of_run(model, run, model.place(made.call.scope, made.call), grade)
        for loader in model.flow.values(run.data):
            reached = carriers(model, loader) if isinstance(loader, Obj) else ()
            for sampler in (each.sampler for each in reached):
                if sampler.cls == DISTRIBUTED_SAMPLER and not may_be_told(model, run, sampler):
                    yield _told_of_run(model, run, model.place_of(sampler), Grade.CERTAIN)


def _told_of_run(model: Model, run: Run, built: Place | str, grade: Grade) -> Suspect:
    done = unparse(run.call.func)
    return Suspect(
        model.module_of(run.call.scope),
        run.call.func,
        f"nothing calls `set_epoch` on the `DistributedSampler` that `{done}` trains over",
        grade=grade,
        effect="every epoch repeats the order of epoch 0",
        advice="call it in a handler of the start of each epoch",
        why=(Related(built, "sampler built here"),),
    )
