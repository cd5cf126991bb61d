"""SMP307: a framework divides among the ranks what a sampler has divided already."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint import catalog
from sampler_lint.analysis.origins import scope_of
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.conditions import contradict
from sampler_lint.domain.model import Model
from sampler_lint.domain.portions import Twice, divided_portions
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.ranks import is_about_processes
from sampler_lint.domain.shares import Again, divided_again, parameters
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.parameters import Role, role_of
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import nodes_in, same, unparse, walk
from sampler_lint.syntax.nodes import Attr, Call, Choice, Expr, If, Name


class ShardedTwice(Rule):
    """A sampler shards the data over the ranks, and a framework shards it again.

    What it does:
        Reports a `DistributedSampler`, or another sampler that gives each rank its own part, in a
        loader that goes through `accelerator.prepare`, which distributes the batches of every
        loader over the ranks. transformers' `Trainer` does the same with what
        `_get_train_sampler` returns, and with the loader of an overridden `get_train_dataloader`
        that calls `self.accelerator.prepare`, but not with a loader that such a method returns
        directly. Also data of which a rank has taken its share (`Subset(data, range(rank, n,
        world_size))`, or `split_dataset_by_node` and `shard` of `datasets`) under a
        `DistributedSampler`, in a loader that goes through `accelerator.prepare`, or as the
        `training_data` of DeepSpeed; as likely an iterable dataset that takes the share itself.
        Lightning's Trainer and Fabric's `setup_dataloaders` keep a
        `DistributedSampler`, so there only other sharding samplers are reported, and only if
        sharding is not switched off. Not reported where the sampler is built for one process,
        where the program uses the unprepared loader, and where both cannot happen in one run.
        Only `likely` for transformers' Trainer if its version is not stated: before 4.31 it did
        not shard.

    Why is this bad?
        With N ranks, an epoch reads only one N-th of the data and ends N times too early, so the
        learning-rate schedule does not fit. Nothing fails.

    Fix safety:
        Unsafe: data of which a rank takes its share is left whole, for all that reads it. A
        sampler is told that there is one process (`num_replicas=1, rank=0`), so that the framework
        divides all samples, in an order that still follows `set_epoch`; its `len()` counts all
        samples then. Where nothing else uses the sampler, it can go: the loader shuffles, and the
        framework shards it.

    How it is proved:
        Invariant `partitions`: on two gloo ranks half of the samples are read by no rank; without
        the sampler, the ranks read them all.

    References:
        - accelerate/data_loader.py, `prepare_data_loader` and `BatchSamplerShard`
        - lightning/pytorch/trainer/connectors/data_connector.py, `_get_distributed_sampler`
        - https://github.com/huggingface/accelerate/issues/3520
        - https://github.com/huggingface/accelerate/issues/4199
        - met in https://github.com/ZhengPeng7/BiRefNet (train.py)
    """

    code = "SMP307"
    name = "sharded-twice"
    symptoms = (
        "an epoch covers only part of the data",
        "some samples are never read",
        "the learning rate schedule ends too early or too late",
    )
    invariant = "partitions"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each sampler whose part a framework divides, and at data that is a part."""
        for twice in divided_portions(model):
            yield Suspect(
                model.module_of(twice.by.scope),
                twice.by.func,
                f"`{unparse(twice.by.func)}` divides among the ranks what is one rank's share "
                "already",
                fix=partial(_take_all, model, twice),
                grade=Grade.CERTAIN if twice.is_certain else Grade.LIKELY,
                effect="with N ranks, an epoch reads only 1/N of the samples",
                advice="give it all of the data",
                why=(
                    Related(
                        model.place(scope_of(twice.share), twice.share), "the share is taken here"
                    ),
                ),
            )
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
            why.append(Related(model.place(where, place), "it is sharded again here"))
            title = catalog.framework(again.framework).title
            yield Suspect(
                model.module_of(site.scope),
                site.func,
                f"`{again.sampler.name}` already shards the data over the ranks, and {again.by} "
                "shards it again",
                effect="with N ranks, an epoch reads only 1/N of the samples",
                advice=f"leave sharding to {title}, and shuffle with `shuffle=True`",
                why=tuple(why),
                grade=grade,
                fix=partial(_leave_whole, model, again.sampler),
            )


def _leave_whole(model: Model, sampler: Obj, editor: Editor) -> Fix | None:
    """Tell the sampler of one process: the framework then divides all samples, in its order."""
    site = sampler.site
    if site is None or site.has_star or site.has_double_star:
        return None
    there = editor.at(model.module_of(site.scope))
    roles = {name: role_of(name) for name in parameters(model, sampler)}
    missing = []
    for role, value in ((Role.WORLD_SIZE, "1"), (Role.RANK, "0")):
        names = [name for name, wanted in roles.items() if wanted is role]
        if len(names) != 1:
            return None
        given = model.flow.argument(sampler, names[0])
        if given is None:
            missing.append(f"{names[0]}={value}")
        elif any(given is arg.value for arg in site.args):
            there.replace(given, value)
        else:
            return None
    if missing:
        first, _, rest = ", ".join(missing).partition("=")
        there.add_argument(site, first, rest)
    why = "`len()` of it counts the samples of all ranks then"
    return editor.fix("Tell it of one process", Applicability.UNSAFE, why)


def _take_all(model: Model, twice: Twice, editor: Editor) -> Fix | None:
    """Leave the data whole of which the rank's share is taken."""
    if not twice.is_only or not isinstance(twice.whole, (Attr, Name, Call)):
        return None
    there = editor.at(model.module_of(scope_of(twice.taken)))
    there.replace(twice.taken, text_of(there.source, twice.whole))
    why = "whatever else reads it then gets all of the data, too"
    return editor.fix("Leave the data whole", Applicability.UNSAFE, why)


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
