"""SMP602: a dataset is changed in the main process, and persistent workers read their copies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.origins import scope_of
from sampler_lint.domain.copies import Change, changes, persists
from sampler_lint.domain.forgotten import Forgotten, forgotten
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.edits.loader_fixes import start_workers_anew
from sampler_lint.findings import Grade, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import unparse
from sampler_lint.syntax.nodes import Expr
from sampler_lint.workspace.project import Module


class StaleWorkerCopy(Rule):
    """A dataset changes between epochs, but not in the copies that its workers read.

    What it does:
        Reports an attribute of a dataset that is set in an epoch loop (`dataset.epoch = epoch`,
        also by a method, as in `dataset.set_difficulty(level)`), where the code that a worker
        runs for an item reads it, and the loader was built with `persistent_workers=True`. Also
        an attribute of a transform or another object that the dataset holds, of an object that is
        the loader's `collate_fn`, and any of them in a loop that takes all its batches from one
        iterator with workers. `likely` where a setting decides whether the workers persist. For
        `set_epoch` see SMP103. Also a count that an iterable dataset moves on in its own `__iter__`
        (`self.epoch += 1`) and seeds its draws with, where a loader with workers that do not
        persist goes over it for several epochs; only `likely` where a framework does. Not reported
        where the value is in a shared object, where the loader is rebuilt in each iteration, or
        where its iterator is deleted.

    Why is this bad?
        A worker is a process with a copy of the dataset. Persistent workers are started once, and
        never see what the main process sets later: a curriculum stays at its first step, an
        augmentation is never switched off, and a seed that depends on the epoch stays the same.
        Workers that do not persist get a new copy in each epoch, of the dataset in the main
        process: what the last ones counted is gone.

    Fix safety:
        Unsafe: `persistent_workers` is dropped, so that each epoch starts its workers with the
        dataset as it is by then, which takes time. To keep them, keep the value in shared memory
        (`multiprocessing.Value`, or a tensor after `share_memory_()`). No fix is offered for an
        iterator that is kept.

    How it is proved:
        Invariant `runs`: the fixture stops where a batch was made with another epoch than the one
        that was set; it finishes with a shared value.

    References:
        - torch/utils/data/dataloader.py, `_MultiProcessingDataLoaderIter._reset`: the workers
          keep the dataset that they were started with
        - https://github.com/pytorch/pytorch/issues/97326
        - not met in public code yet
    """

    code = "SMP602"
    name = "stale-worker-copy"
    symptoms = (
        "changes made to the dataset between epochs have no effect",
        "every epoch repeats the same augmentations",
    )
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at what changes the datasets of persistent workers."""
        for change in changes(model):
            module = model.module_of(change.scope)
            if not is_test(module):
                yield _suspect(model, change)
        told: set[Expr] = set()
        for found in forgotten(model):
            module = model.module_of(scope_of(found.counter))
            if found.counter not in told and not is_test(module):
                told.add(found.counter)
                yield _lost(model, module, found)


def _lost(model: Model, module: Module, found: Forgotten) -> Suspect:
    name, seeded = unparse(found.counter), found.seeded
    return Suspect(
        module,
        found.counter,
        f"`{name}` counts in a worker's copy of `{found.dataset.name}`: each epoch begins it anew",
        grade=Grade.LIKELY if found.by_framework else Grade.CERTAIN,
        effect=f"the workers of each epoch get the dataset as it was built, and what `{name}` "
        "seeds is the same in all of them",
        advice="count in the main process (`dataset.set_epoch(epoch)` before each pass), or keep "
        "the workers (`persistent_workers=True`)",
        why=(
            Related(model.place(seeded.scope, seeded), "it seeds this"),
            Related(model.place_of(found.loader), "the loader with workers is built here"),
        ),
    )


def _suspect(model: Model, change: Change) -> Suspect:
    is_kept = persists(model, change.loader)
    whose = {
        None: "the workers of an iterator that is kept",
        Grade.CERTAIN: "persistent workers",
        Grade.LIKELY: "workers that a setting keeps",
    }[is_kept]
    keeps = "kept by `persistent_workers=True`" if is_kept else "started by `iter()`"
    return Suspect(
        model.module_of(change.scope),
        change.node,
        f"`{unparse(change.node)}` does not reach the copies of `{change.dataset.name}` in {whose}",
        fix=partial(start_workers_anew, model, change.loader) if is_kept else None,
        grade=is_kept or Grade.CERTAIN,
        effect=f"workers {keeps} read the old `{change.name}` in every epoch",
        advice="keep it in shared memory (`multiprocessing.Value`) or drop `persistent_workers`"
        if is_kept
        else "keep it in shared memory (`multiprocessing.Value`), or make the iterator again",
        why=(
            Related(model.place(change.read.scope, change.read), "the workers read it here"),
            Related(model.place_of(change.loader), "the loader is built here"),
        ),
    )
