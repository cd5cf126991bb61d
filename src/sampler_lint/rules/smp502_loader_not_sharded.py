"""SMP502: a distributed program trains from a loader that no one shards, or shards it wrongly."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.analysis.origins import depends_on
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import (
    DRAW,
    PROCESSES,
    RANK,
    WORLD_SIZE,
)
from sampler_lint.domain.datasets import MAP_STYLE
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model, scopes_inside
from sampler_lint.domain.ranks import (
    built_classes,
    is_guarded,
    kinds,
    knows_ranks,
    starts,
)
from sampler_lint.domain.undivided import left_whole, undivided
from sampler_lint.findings import Related
from sampler_lint.parameters import Role, role_of
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import unparse
from sampler_lint.syntax.nodes import (
    Call,
    Class,
    Expr,
    last_name,
)
from sampler_lint.workspace.project import Module


class LoaderNotSharded(Rule):
    """A distributed program trains from a loader that is not sharded, or sharded by a local rank.

    What it does:
        Reports a shuffling loader over a map-style dataset that has no sampler, or one that does
        not depend on the rank, where several processes train one model with it: the model is
        wrapped in `DistributedDataParallel` or FSDP, passed to DeepSpeed, apex or Horovod, or its
        gradients go through `all_reduce`. Not reported if the dataset or the loop depends on the
        rank, if generators are seeded by rank, if the loader is built under a condition about
        ranks, or if ranks share batches or parts of the model on purpose (tensor or pipeline
        parallelism). Nor if the program shards anything else, or imports a package that does,
        unless a loop certainly trains with exactly the loader built here. With Lightning: a
        loader that a Trainer with `use_distributed_sampler=False` trains with, or a Fabric whose
        `setup_dataloaders` is never called, on several devices. Also reports a distributed
        sampler whose `rank` is the rank within the node, or whose `num_replicas` is the number of
        this machine's devices.

    Why is this bad?
        Every process reads the whole dataset: an epoch takes as many steps as on one device,
        and with the same seed all processes train on the same batches. With a local rank the
        nodes read the same shards and never the others.

    Fix safety:
        No fix is offered: only you know whether the program should be distributed, and on how
        many nodes.

    How it is proved:
        Invariant `partitions`: on two gloo ranks both ranks read every sample; with a
        `DistributedSampler` each reads its half.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler`
        - torchrun's environment variables: `RANK`, `LOCAL_RANK`, `WORLD_SIZE`
        - https://github.com/Shark-NLP/DiffuSeq/issues/37
        - https://github.com/clovaai/voxceleb_trainer/issues/98
        - https://github.com/narumiruna/pytorch-distributed-example/issues/5
    """

    code = "SMP502"
    name = "loader-not-sharded"
    symptoms = (
        "ranks train on the same samples",
        "an epoch has as many steps on several GPUs as on one",
        "some samples are never read",
    )
    invariant = "partitions"
    fixable = "never"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at the numbers that samplers shard by, and at loaders without such a sampler."""
        for obj in model.constructions():
            if obj.site is not None and model.is_a(obj, DISTRIBUTED_SAMPLER) is True:
                yield from _check_numbers(model, obj)
        for loader in model.loaders:
            suspect = _check_loader(model, loader)
            if suspect is not None:
                yield suspect


# --------------------------------------------------------------------------- rank and world size


def _check_numbers(model: Model, sampler: Obj) -> Iterator[Suspect]:
    assert sampler.site is not None
    module = model.module_of(sampler.site.scope)
    rank, size = (model.flow.argument(sampler, name) for name in ("rank", "num_replicas"))
    given = {
        name: kinds(model, value) if value is not None else {"none"}
        for name, value in (("rank", rank), ("num_replicas", size))
    }
    if any(model.flow.may_be_passed(sampler, name) for name in given):
        return
    joins = list(starts(model, module))
    if any(_tells(call) for call in joins) or _spawns(model, module):
        return  # the program numbers its processes itself
    if rank is not None and given["rank"] == {"local rank"}:
        if given["num_replicas"] <= {"none", "world size"}:
            yield Suspect(
                module,
                rank,
                f"`rank={unparse(rank)}` is the rank within the node, and `{sampler.name}` shards "
                f"over all processes",
                effect="on several nodes the same shards are read once per node and the others "
                "never",
                advice="pass the global rank, or leave `rank` out",
            )
    elif (
        size is not None
        and given["num_replicas"] == {"device count"}
        and given["rank"] <= {"none", "rank"}
    ):
        yield Suspect(
            module,
            size,
            f"`num_replicas={unparse(size)}` counts this machine's devices, not the processes",
            effect=f"with fewer processes some samples are never read, with more `{sampler.name}` "
            f"raises `ValueError`",
            advice="pass `dist.get_world_size()`, or leave `num_replicas` out",
        )


def _tells(call: Call) -> bool:
    """Whether ``init_process_group`` is told its numbers instead of reading the environment."""
    return any(
        arg.stars or RANK.says(arg.keyword) or WORLD_SIZE.says(arg.keyword) for arg in call.args
    )


def _spawns(model: Model, module: Module) -> bool:
    program = model.project.program_of(module)
    return any(
        model.project.calls_in(program, name) for name in ("spawn", "start_processes", "Process")
    )


# --------------------------------------------------------------------------- no sampler


def _check_loader(model: Model, loader: Obj) -> Suspect | None:
    if loader.site is None or is_guarded(loader.site) or not _is_unsharded(model, loader):
        return None
    joins = undivided(model, loader)
    if joins is not None:
        return _suspect(model, loader, joins)
    keeps = left_whole(model, loader)
    return _left_by_framework(model, loader, keeps) if keeps is not None else None


def _is_unsharded(model: Model, loader: Obj) -> bool:
    """Whether the loader shuffles a map-style dataset, and nothing it is given knows ranks."""
    assert loader.site is not None
    dataset = model.flow.argument(loader, "dataset")
    if dataset is None or loader.site.has_star or loader.site.has_double_star:
        return False
    classes = built_classes(model, dataset)
    if classes is None or not all(_is_whole(model, cls) for cls in classes):
        return False
    samplers = [
        value
        for name in ("sampler", "batch_sampler")
        if (value := model.flow.argument(loader, name)) is not None
    ]
    if samplers:
        if not all(_is_blind(model, value) for value in samplers):
            return False
    elif not _may_shuffle(model, loader):
        return False
    return depends_on(model.flow, dataset, PROCESSES.names) is None


def _is_whole(model: Model, cls: Class | str) -> bool:
    """Whether a dataset certainly is map-style and does not know ranks."""
    if isinstance(cls, str):
        return cls.startswith(MAP_STYLE)
    return model.flow.method(cls, "__getitem__") is not None and knows_ranks(model, cls) is False


def _is_blind(model: Model, sampler: Expr) -> bool:
    """Whether a sampler certainly is one that shuffles and does not know ranks."""
    classes = built_classes(model, sampler)
    if classes is None:
        return False
    return (
        all(
            knows_ranks(model, cls) is False
            and any(DRAW.names(c.func) for scope in scopes_inside(cls) for c in scope.calls)
            if isinstance(cls, Class)
            else _draws_from_all(cls)
            for cls in classes
        )
        and depends_on(model.flow, sampler, PROCESSES.names) is None
    )


def _draws_from_all(dotted: str) -> bool:
    """Whether it is a sampler of torch that draws, and not from indices chosen before."""
    entry = catalog.known(dotted)
    chosen = entry is not None and any(role_of(name) is Role.INDICES for name in entry.params)
    return entry is not None and entry.shuffles is True and not chosen


def _may_shuffle(model: Model, loader: Obj) -> bool:
    shuffle = model.flow.argument(loader, "shuffle")
    if shuffle is None:
        return False
    constants = model.flow.constants(shuffle, loader.through)
    return constants is None or any(constants)


def _suspect(model: Model, loader: Obj, joins: Call) -> Suspect:
    assert loader.site is not None
    module = model.module_of(loader.site.scope)
    sampler = next(
        (
            value
            for name in ("sampler", "batch_sampler")
            if (value := model.flow.argument(loader, name)) is not None
        ),
        None,
    )
    given = (
        f"its sampler `{unparse(sampler)}` does not depend on the rank"
        if sampler
        else "it has no sampler"
    )
    why = (Related(model.place(joins.scope, joins), "the program runs as several processes"),)
    return Suspect(
        module,
        loader.site.func,
        f"this `{loader.name}` trains in several processes and nothing shards it",
        why=why,
        effect=f"{given}, so every process reads the whole dataset in each epoch",
        advice="give it a `DistributedSampler`",
    )


def _left_by_framework(model: Model, loader: Obj, keeps: Call) -> Suspect:
    """A loader that Lightning would divide, if it were let to."""
    assert loader.site is not None
    is_fabric = last_name(keeps.func) == "Fabric"
    told = (
        "Fabric divides only what `setup_dataloaders` returns"
        if is_fabric
        else ("the Trainer does not replace samplers")
    )
    advice = (
        "pass it through `setup_dataloaders`"
        if is_fabric
        else ("let the Trainer put in its sampler, or give the loader a `DistributedSampler`")
    )
    return Suspect(
        model.module_of(loader.site.scope),
        loader.site.func,
        f"this `{loader.name}` trains in several processes and nothing shards it",
        why=(Related(model.place(keeps.scope, keeps), told),),
        effect="every process reads the whole dataset, and an epoch takes as many steps as on one "
        "device",
        advice=advice,
    )
