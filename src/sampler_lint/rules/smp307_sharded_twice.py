"""SMP307: a framework divides among the ranks what a sampler has divided already."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.domain.conditions import contradict
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.ranks import is_about_processes
from sampler_lint.domain.shares import Again, divided_again
from sampler_lint.findings import Grade, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import nodes_in, same, walk
from sampler_lint.syntax.nodes import Attr, Call, Choice, Expr, If


class ShardedTwice(Rule):
    """A sampler gives each rank its part of the data, and a framework divides that part again.

    What it does:
        Reports a `DistributedSampler`, or another sampler that gives each rank its own part, in a
        loader that goes through `accelerator.prepare`, which deals out the batches of whatever
        loader it is given. So does transformers' `Trainer` with what `_get_train_sampler` returns,
        and with a loader of an overridden `get_train_dataloader` that calls
        `self.accelerator.prepare`; a loader that such a method returns as it is, is left alone.
        Lightning's Trainer and Fabric's `setup_dataloaders` leave a `DistributedSampler` as it is,
        so there only other samplers that share out are reported, and only where sharding is
        not switched off. Silent where the sampler is told that there is one process, where the
        program goes on with the loader that it gave, and where both cannot happen in one run.
        Only `likely` for transformers' Trainer where its version is not stated: before 4.31 it
        did not shard. Not met in the wild yet.

    Why is this bad?
        With N ranks each gets an N-th of its N-th: an epoch reads one N-th of the data, and ends
        N times too early, with a learning rate schedule made for other lengths. Nothing fails.

    Fix safety:
        No fix is offered: drop the sampler and shuffle in the loader, as the framework shards it;
        what else uses the sampler (`set_epoch`) has to go with it.

    How it is proved:
        Invariant `partitions`: on two gloo ranks half of the samples is read by no rank; without
        the sampler, the ranks share them all.

    References:
        - accelerate/data_loader.py, `prepare_data_loader` and `BatchSamplerShard`
        - lightning/pytorch/trainer/connectors/data_connector.py, `_get_distributed_sampler`
        - https://github.com/huggingface/accelerate/issues/3520
        - https://github.com/huggingface/accelerate/issues/4199
    """

    code = "SMP307"
    name = "sharded-twice"
    symptoms = (
        "an epoch covers only part of the data",
        "some samples are never read",
        "the learning rate schedule ends too early or too late",
    )
    invariant = "partitions"
    fixable = "never"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each sampler whose part a framework divides."""
        told: set[Call] = set()
        for again in divided_again(model):
            site = again.sampler.site
            if site is None or site in told or is_test(model.module_of(site.scope)):
                continue
            if _are_apart(model, again, site):
                continue
            grade = _grade(model, again)
            if grade is None:
                continue
            told.add(site)
            why = (
                []
                if again.loader is None
                else [Related(model.place_of(again.loader), "the loader is built here")]
            )
            place = again.place
            where = place.scope if isinstance(place, Call) else place
            why.append(Related(model.place(where, place), "it is divided again here"))
            title = catalog.framework(again.framework).title
            yield Suspect(
                model.module_of(site.scope),
                site.func,
                f"`{again.sampler.name}` gives each rank its part, and {again.by} divides that "
                f"part among the ranks again",
                effect="with N ranks an epoch reads one N-th of the samples",
                advice=f"leave sharding to {title}, and shuffle with `shuffle=True`",
                why=tuple(why),
                grade=grade,
            )


def _are_apart(model: Model, again: Again, site: Call) -> bool:
    """Whether the sampler is built only where the framework does not get its loader."""
    if not isinstance(again.place, Call):
        return False
    built = (
        [site] if again.loader is None or again.loader.site is None else [site, again.loader.site]
    )
    if contradict(model, built, [again.place]):
        return True
    func = again.place.func
    receiver = func.value if isinstance(func, Attr) else func
    return any(
        any(same(node, receiver) for node in walk(test)) and not is_about_processes(model, test)
        for test in _tests(site)
    )


def _tests(site: Call) -> Iterator[Expr]:
    """What is asked before a sampler is built, each part for itself."""
    if site.stmt is None:
        return
    asked = [stmt.test for stmt in site.stmt.ancestors() if isinstance(stmt, If)]
    asked += [node.test for node in nodes_in([site.stmt]) if isinstance(node, Choice) and node.test]
    for test in asked:
        if isinstance(test, Choice) and test.kind != "if":
            asked += test.options
        else:
            yield test


def _grade(model: Model, again: Again) -> Grade | None:
    """How sure it is that the version of the framework that runs divides what it is given."""
    if isinstance(again.place, Call):
        return Grade.CERTAIN
    module = model.module_of(again.place)
    if not model.contracts(module, again.framework, "wraps"):
        return None
    stated = model.versions(module, again.framework).is_stated
    return Grade.CERTAIN if stated or again.loader is not None else Grade.LIKELY
