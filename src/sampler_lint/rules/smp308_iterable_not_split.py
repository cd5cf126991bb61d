"""SMP308: every worker of a loader yields all samples of an iterable dataset."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.datasets import is_iterated
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.splits import whole_pass
from sampler_lint.findings import Grade, Related
from sampler_lint.rules._base import Rule, Suspect


class IterableNotSplit(Rule):
    """An `IterableDataset` gives all its samples in each worker, so they come several times.

    What it does:
        Reports a loader with more than one worker whose iterable dataset, a class of the tree,
        goes over known data (a range, a list, a file) and asks nowhere in which worker it is:
        neither its `__iter__`, nor what that calls, nor a `worker_init_fn`. Only `likely` where
        the number of workers is not known. Silent for datasets that draw their samples, that
        never end or that iterate something unknown, which may divide itself. That ranks divide
        the data, too, is not asked. Not met in the wild yet.

    Why is this bad?
        Each worker has a copy of the dataset and iterates all of it: with `num_workers=4` an
        epoch holds every sample four times, and an evaluation counts each four times. With
        `num_workers=0` or 1 all is well, so it is seen late.

    Fix safety:
        No fix is offered: take every `num_workers`-th sample, beginning with `id`, of what
        `torch.utils.data.get_worker_info()` tells.

    How it is proved:
        Invariant `runs`: the fixture counts what an epoch gives and stops where that is more than
        there is; it runs to its end where the workers share the data.

    References:
        - torch/utils/data/dataset.py, `IterableDataset`: "each replica must be configured
          separately to avoid having duplicate data"
        - https://github.com/pytorch/pytorch/issues/30599
    """

    code = "SMP308"
    name = "iterable-not-split"
    invariant = "runs"
    fixable = "never"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each loader with workers over an iterable dataset of the tree."""
        for loader in model.loaders:
            if loader.site is None or is_test(model.module_of(loader.site.scope)):
                continue
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
                    f"each worker of this `{loader.name}` iterates all of `{dataset.name}`, which "
                    f"asks nowhere for its worker: with `num_workers` processes every sample comes "
                    f"as many times; give each its part by `get_worker_info()`",
                    why=(
                        Related(model.place(iterate, iterate), "each worker runs all of this"),
                        Related(model.place_of(dataset), "the dataset is built here"),
                    ),
                    grade=grade,
                )
                break


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
