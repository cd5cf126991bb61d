"""SMP308: every worker, or every rank, gets all samples of iterable data."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.datasets import is_iterated
from sampler_lint.domain.epochs import is_named_after_training, trained_with
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.splits import same_on_ranks, whole_pass
from sampler_lint.domain.undivided import undivided
from sampler_lint.findings import Grade, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.nodes import Call


class IterableNotSplit(Rule):
    """Every worker or rank reads all of an iterable dataset, so its samples are repeated.

    What it does:
        Reports a loader with more than one worker whose iterable dataset, a class in the
        repository, iterates known data (a range, a list, a file) without checking in which worker
        it runs: neither in its `__iter__`, nor in what that calls, nor in a `worker_init_fn`.
        Only `likely` where the number of workers is not known. Not reported for datasets that
        draw samples at random, that never end, or that iterate something unknown, which may
        divide itself.

        Also reports a loader over such a dataset, or over a stream of `datasets.load_dataset(…,
        streaming=True)`, in a program that wraps its model in `DistributedDataParallel` (or
        FSDP), trains it, and nowhere uses its rank or imports a framework that shards by itself.
        Not reported where an iteration draws at random or calls something unknown. Not seen in
        public code yet.

    Why is this bad?
        Each worker has a copy of the dataset and iterates all of it: with `num_workers=4` an
        epoch has every sample four times, and an evaluation counts each four times. With
        `num_workers=0` or 1 there is no problem, so it is noticed late. Ranks that read the same
        samples compute the same gradients: the program learns no more than on one device.

    Fix safety:
        No fix is offered: in each worker, take every `num_workers`-th sample starting at `id`,
        both from `torch.utils.data.get_worker_info()`; do the same for ranks. For a stream use
        `datasets.distributed.split_dataset_by_node`.

    How it is proved:
        Invariant `runs`: the fixture counts the samples of an epoch and stops if there are more
        than in the data; it finishes where the workers share the data.

    References:
        - torch/utils/data/dataset.py, `IterableDataset`: "each replica must be configured
          separately to avoid having duplicate data"
        - https://github.com/pytorch/pytorch/issues/30599
        - https://github.com/huggingface/datasets/issues/5360
        - https://github.com/Smith42/astroPT/pull/64
    """

    code = "SMP308"
    name = "iterable-not-split"
    symptoms = (
        "samples are repeated within an epoch",
        "ranks train on the same samples",
        "metrics change with the number of GPUs",
    )
    invariant = "runs"
    fixable = "never"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each loader over data that is iterated: at its workers, then at the ranks."""
        for loader in model.loaders:
            if loader.site is None or is_test(model.module_of(loader.site.scope)):
                continue
            yield from _by_ranks(model, loader, loader.site)
            for dataset in model.passed_to(loader, "dataset"):
                if not isinstance(dataset, Obj) or not is_iterated(model, dataset.cls):
                    continue
                iterate = whole_pass(model, dataset)
                grade = _grade(model, loader) if iterate is not None else None
                if iterate is None or grade is None:
                    continue
                yield Suspect(
                    model.module_of(loader.site.scope),
                    loader.site.func,
                    f"each worker of this `{loader.name}` iterates all of `{dataset.name}`",
                    why=(
                        Related(model.place(iterate, iterate), "each worker runs all of this"),
                        Related(model.place_of(dataset), "the dataset is built here"),
                    ),
                    grade=grade,
                    effect="the dataset never asks for its worker, so `num_workers` workers give "
                    "every sample as many times",
                    advice="give each worker its part by `get_worker_info()`",
                )
                break


def _by_ranks(model: Model, loader: Obj, site: Call) -> Iterator[Suspect]:
    given = same_on_ranks(model, loader)
    joins = undivided(model, loader) if given is not None else None
    trained = trained_with(model, loader) if joins is not None else []
    if given is None or joins is None or not (any(trained) or is_named_after_training(loader)):
        return
    is_stream = isinstance(given, Call)
    advice = (
        "pass the stream through `datasets.distributed.split_dataset_by_node`"
        if is_stream
        else "let `__iter__` give each rank its part"
    )
    where = given.scope if isinstance(given, Call) else given
    yield Suspect(
        model.module_of(site.scope),
        site.func,
        f"this `{loader.name}` trains in several processes, and each reads all of its iterable "
        f"data",
        effect="every sample comes once for each rank",
        advice=advice,
        why=(
            Related(model.place(where, given), "each rank reads all of this"),
            Related(model.place(joins.scope, joins), "the program runs as several processes"),
        ),
        grade=Grade.CERTAIN if any(trained) else Grade.LIKELY,
    )


def _grade(model: Model, loader: Obj) -> Grade | None:
    """How sure it is that the loader has several workers, to which nothing tells their part."""
    given = model.flow.argument(loader, "num_workers")
    if given is None or model.flow.argument(loader, "worker_init_fn") is not None:
        return None
    if model.flow.may_be_passed(loader, "worker_init_fn"):
        return None
    constants = model.flow.constants(given)
    if constants is None:
        return Grade.LIKELY
    several = any(isinstance(value, int) and value > 1 for value in constants)
    return Grade.CERTAIN if several else None
