"""SMP502: a distributed program trains from a loader that no one shards, or shards it wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from sampler_lint import catalog
from sampler_lint.analysis.origins import depends_on, scope_of
from sampler_lint.analysis.values import Ext, Obj, Pack
from sampler_lint.catalog.torch import MAP_STYLE
from sampler_lint.domain.concepts import DRAW, FIRST_RANK, PROCESSES, RANK, WORLD_SIZE
from sampler_lint.domain.datasets import is_iterated
from sampler_lint.domain.draws import is_unseeded
from sampler_lint.domain.epochs import feeds_training, hooks_undivided
from sampler_lint.domain.evaluated import evaluated_in_sight
from sampler_lint.domain.fixed_orders import keeps_order
from sampler_lint.domain.model import (
    DATA_LOADER,
    DISTRIBUTED_SAMPLER,
    SAMPLER,
    Model,
    scopes_inside,
)
from sampler_lint.domain.programs import in_test_function, is_test, program_files
from sampler_lint.domain.ranks import (
    built_classes,
    is_guarded,
    joined_before,
    kinds,
    knows_ranks,
    says_where,
    starts,
)
from sampler_lint.domain.shares import numbers, one_rank, shares_out
from sampler_lint.domain.splits import opens_table
from sampler_lint.domain.undivided import (
    Left,
    is_asked_for,
    left_out,
    left_whole,
    taken_as_it_is,
    undivided,
)
from sampler_lint.edits.editor import Fixer
from sampler_lint.edits.loader_fixes import divide
from sampler_lint.edits.names import quoted, text_of
from sampler_lint.findings import Grade, Related
from sampler_lint.parameters import Role, role_of
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import inherited, nodes_in, statements, unparse, walk
from sampler_lint.syntax.nodes import Call, Class, Expr, Function, If, Index, Other, Stmt, last_name
from sampler_lint.workspace.project import Module

#: The arguments that choose what a loader reads.
_CHOOSES = ("sampler", "batch_sampler", "shuffle")


class LoaderNotSharded(Rule):
    """A distributed program trains from a loader that is not sharded, or sharded by a local rank.

    What it does:
        Reports a shuffling loader over a map-style dataset that has no sampler, or one that does
        not depend on the rank, where several processes train one model with it: the model is
        wrapped in `DistributedDataParallel` or FSDP, passed to DeepSpeed, apex or Horovod, or its
        gradients go through `all_reduce`. Not reported if the dataset or the loop depends on the
        rank, if generators are seeded by rank, if the sampler makes one of its own without a seed,
        if the loader is built under a condition about ranks, or if ranks share batches or parts of
        the model on purpose (tensor or pipeline parallelism). Nor if the program shards anything
        else, or imports a package that does, unless a loop certainly trains with exactly the loader
        built here. One that does not shuffle either counts where a loop certainly trains with it
        and an index stands for one sample. With Lightning: a loader that a Trainer with
        `use_distributed_sampler=False` trains with (likely, where a YAML file beside the code says
        so, for LightningCLI or `Trainer(**settings)`), on several
        devices; with Fabric and Accelerate: a loader that a loop trains with as it was built,
        without `setup_dataloaders` or `prepare`; with transformers: a loader that an overridden
        `get_train_dataloader` returns as it was built (likely, where the program knows of ranks).
        Also reports a distributed sampler whose `rank` is the rank within the node (likely, where
        `num_replicas` counts the processes of the node), or one literal or default in every
        process, or whose `num_replicas` is the number of this machine's devices; and a slice that
        begins at the rank within the node and steps over all processes.
        Tests are left out.

    Why is this bad?
        Every process reads the whole dataset: an epoch takes as many steps as on one device,
        and with the same seed all processes train on the same batches. With a local rank the
        nodes read the same shards and never the others.

    Fix safety:
        Unsafe: where torch has joined the processes on every way to it, and all that the call
        builds trains, the loader gets a `DistributedSampler` in the place of a literal
        `shuffle`; an epoch then has fewer steps. The missing `set_epoch` is added with it
        (SMP102). No fix is offered for another sampler, and where a framework should divide the
        loader: only you know how.

    How it is proved:
        Invariant `partitions`: on two gloo ranks both ranks read every sample; with a
        `DistributedSampler` each reads its half.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler`
        - torchrun's environment variables: `RANK`, `LOCAL_RANK`, `WORLD_SIZE`
        - https://github.com/Shark-NLP/DiffuSeq/issues/37
        - https://github.com/clovaai/voxceleb_trainer/issues/98
        - https://github.com/narumiruna/pytorch-distributed-example/issues/5
        - met in https://github.com/clovaai/voxceleb_trainer (DatasetLoader.py)
        - met in https://github.com/XLabs-AI/x-flux (train_flux_deepspeed.py): `prepare` gets a copy
        - met in https://github.com/open-mmlab/Amphion (models/base/base_trainer.py): a local rank
    """

    code = "SMP502"
    name = "loader-not-sharded"
    symptoms = (
        "ranks train on the same samples",
        "an epoch has as many steps on several GPUs as on one",
        "some samples are never read",
    )
    invariant = "partitions"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at the numbers that samplers shard by, and at loaders without such a sampler."""
        for obj in model.constructions():
            if obj.site is not None and model.is_a(obj, SAMPLER) is True:
                yield from _check_numbers(model, obj)
        yield from _slices_by_local_rank(model)
        yield from _with_one_rank(model)
        for loader in model.loaders:
            suspect = _check_loader(model, loader)
            if suspect is not None:
                yield suspect
        for hook, loader in hooks_undivided(model):
            suspect = _taken_as_it_is(model, hook, loader)
            if suspect is not None:
                yield suspect


# --------------------------------------------------------------------------- rank and world size


def _check_numbers(model: Model, sampler: Obj) -> Iterator[Suspect]:
    assert sampler.site is not None
    module = model.module_of(sampler.site.scope)
    told = numbers(model, sampler)
    if told is None:
        return
    rank, size = told.rank, told.size
    given = {
        name: kinds(model, value) if value is not None else {"none"}
        for name, value in (("rank", rank), ("num_replicas", size))
    }
    if not {*given["rank"], *given["num_replicas"]} & {"local rank", "device count"}:
        return
    asks_itself = model.is_a(sampler, DISTRIBUTED_SAMPLER) is True
    if not (asks_itself or shares_out(model, sampler)):
        return
    if any(
        not program_files(model).run_apart(module, model.module_of(call.scope))
        for call in (*_numbered(model, module), *_spawns(model, module))
    ):
        return  # the program numbers its processes itself
    if rank is not None and given["rank"] == {"local rank"}:
        if given["num_replicas"] <= {"none", "world size"}:
            yield Suspect(
                module,
                rank,
                f"`{told.rank_name}={unparse(rank)}` is the rank within the node, and "
                f"`{sampler.name}` shards over all processes",
                effect=_OF_LOCAL_RANK,
                advice="pass the global rank" + (", or leave `rank` out" if asks_itself else ""),
            )
        elif given["num_replicas"] <= {"local size", "device count"}:
            yield Suspect(
                module,
                rank,
                f"`{sampler.name}` shards over the processes of one node: "
                f"`{told.rank_name}={unparse(rank)}`",
                grade=Grade.LIKELY,  # each node may have data of its own
                effect="on several nodes each node reads all samples",
                advice="pass the global rank and the number of all processes, or leave both out",
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


_OF_LOCAL_RANK = "on several nodes the same shards are read once per node and the others never"


def _slices_by_local_rank(model: Model) -> Iterator[Suspect]:
    """``files[local_rank::world_size]``: the shares that the ranks of one node take, on each."""
    for module in model.modules:
        if is_test(module) or not program_files(model).tells(module.path, _MAY_SLICE.search):
            continue
        for scope in module.facts.scopes:
            for node in nodes_in(statements(scope.body)):
                if not isinstance(node, Index) or not isinstance(node.key, Other):
                    continue
                parts = node.key.parts
                if (
                    len(parts) in {2, 3}
                    and kinds(model, parts[0]) == {"local rank"}
                    and kinds(model, parts[-1]) == {"world size"}
                    and (len(parts) == 3 or "::" in text_of(module.source, node))
                ):
                    yield Suspect(
                        module,
                        parts[0],
                        f"`{quoted(module.source, parts[0])}` is the rank within the node, and "
                        "the step of this slice counts all processes",
                        effect=_OF_LOCAL_RANK,
                        advice="begin at the global rank",
                    )


_MAY_SLICE = re.compile(rb"(?i:local)[^\n:]{0,24}:")


def _numbered(model: Model, module: Module) -> Iterator[Call]:
    """The ``init_process_group`` calls that are told other numbers than the environment's own."""
    for call in starts(model, module):
        if any(
            arg.stars
            or (RANK.says(arg.keyword) and kinds(model, arg.value) != {"rank"})
            or (WORLD_SIZE.says(arg.keyword) and kinds(model, arg.value) != {"world size"})
            for arg in call.args
        ):
            yield call


def _spawns(model: Model, module: Module) -> Iterator[Call]:
    program = model.project.program_of(module)
    for name in ("spawn", "start_processes", "Process"):
        for call in model.project.calls_in(program, name):
            values = model.flow.values(call.func)
            if not values or any(
                not isinstance(v, Ext) or "multiprocessing" in v.dotted for v in values
            ):
                yield call


def _is_for_one(call: Call) -> bool:
    """Whether a call stands below a test that tells one rank from others."""
    return call.stmt is not None and inherited(call.stmt, _is_below_rank_test, False)


def _is_below_rank_test(found: bool, stmt: Stmt) -> bool:
    around = stmt.parent
    return found or (
        isinstance(around, If)
        and any(
            RANK.names(node) or RANK.is_call(node) or FIRST_RANK.names(node)
            for node in walk(around.test)
        )
    )


def _with_one_rank(model: Model) -> Iterator[Suspect]:
    """The samplers of loaders that are told one rank in every process, and how many there are."""
    told: set[Expr] = set()
    for loader in model.loaders:
        for sampler in model.samplers_behind(loader):
            site = sampler.site
            if site is None or _is_for_one(site) or is_test(model.module_of(site.scope)):
                continue
            through = sampler.through or loader.through
            found = one_rank(model, sampler, through)
            if found is None or found.rank in told or not shares_out(model, sampler):
                continue
            told.add(found.rank)
            dropped = through if model.flow.argument(sampler, found.name) else None
            call = site if found.is_given or dropped is None else dropped
            said = f"{found.name}{'=' if found.is_given else '` is `'}{found.value}"
            yield Suspect(
                model.module_of(call.scope),
                found.rank if found.is_given else call.func,
                f"`{sampler.name}` takes the share of one rank in every process: `{said}`",
                why=(Related(model.place_of(sampler), "the sampler is built here"),),
                effect="all ranks read the same samples, and the others are never read",
                advice="pass the rank of the process",
            )


# --------------------------------------------------------------------------- no sampler


def _check_loader(model: Model, loader: Obj) -> Suspect | None:
    if loader.site is None or is_guarded(loader.site):
        return None
    if in_test_function(model, loader.site.scope):
        return None
    data = model.passed_to(loader, "dataset")
    if any(isinstance(value, Obj) and is_iterated(model, value.cls) for value in data):
        return None  # it takes no sampler: SMP308 asks whether it divides itself
    grade = _unsharded(model, loader)
    if grade is None:
        return None
    joins = undivided(model, loader)
    if joins is not None:
        return _suspect(model, loader, joins, grade)
    if grade is Grade.LIKELY:
        return None
    keeps = left_whole(model, loader) or left_out(model, loader)
    return _left_by_framework(model, loader, keeps) if keeps is not None else None


def _taken_as_it_is(model: Model, hook: Function, loader: Obj) -> Suspect | None:
    """A loader that a Trainer divides only where it makes it itself."""
    dataset = model.argument(loader, "dataset")
    if loader.site is None or dataset is None or loader.site.has_star:
        return None
    samplers = _samplers(model, loader)
    if not all(_is_blind(model, value) for value in samplers) or not (
        samplers or _may_shuffle(model, loader)
    ):
        return None
    if _is_by_rank(model, dataset):
        return None
    knows = taken_as_it_is(model, hook, loader)
    if knows is None:
        return None
    return Suspect(
        model.module_of(loader.site.scope),
        loader.site.func,
        f"this `{loader.name}` trains as it is: the Trainer divides only the one that it makes",
        why=(
            Related(model.place(hook, hook), "the Trainer asks for it here"),
            Related(model.place(scope_of(knows), knows), "the program knows of several processes"),
        ),
        grade=Grade.LIKELY,
        effect="in several processes, each reads the whole dataset in each epoch",
        advice="return `self.accelerator.prepare(loader)`, or give the Trainer the sampler alone",
    )


def _unsharded(model: Model, loader: Obj) -> Grade | None:
    """Whether the loader reads all of a map-style dataset, and nothing it is given knows ranks.

    One that does not shuffle may be for evaluation: if a loop certainly trains with it.
    """
    assert loader.site is not None
    dataset = model.argument(loader, "dataset")
    if dataset is None or any(model.flow.may_be_passed(loader, name) for name in _CHOOSES):
        return None
    grade = _grade_of_whole(model, loader, dataset)
    if grade is None or evaluated_in_sight(model, loader):
        return None
    samplers = _samplers(model, loader)
    if samplers:
        if not all(_is_blind(model, value) for value in samplers):
            return None
    elif not _may_shuffle(model, loader) and not (
        feeds_training(model, loader) is True and keeps_order(model, dataset)
    ):
        return None
    return None if _is_by_rank(model, dataset) else grade


def _is_by_rank(model: Model, expr: Expr) -> bool:
    """Whether something comes of what tells processes apart, but for where its values lie."""
    return depends_on(model.flow, expr, PROCESSES.names, sanitized=says_where) is not None


def _grade_of_whole(model: Model, loader: Obj, dataset: Expr) -> Grade | None:
    """Whether each process certainly, or likely, has all of a map-style dataset.

    torch shuffles no other than such a one, whoever made it.
    """
    if _is_list(model, dataset) or opens_table(model, dataset):
        return Grade.CERTAIN
    classes = built_classes(model, dataset)
    if classes is not None and all(_is_whole(model, cls) for cls in classes):
        return Grade.CERTAIN
    shuffles = model.option(loader, "shuffle", False) == {True}
    known = [value.cls for value in model.flow.values(dataset) if isinstance(value, Obj)]
    unaware = all(isinstance(cls, str) or knows_ranks(model, cls) is False for cls in known)
    return Grade.LIKELY if shuffles and unaware else None


def _samplers(model: Model, loader: Obj) -> list[Expr]:
    """What a loader is given for samplers, but for what is None where its factory is called."""
    given = (model.argument(loader, name) for name in ("sampler", "batch_sampler"))
    return [
        value
        for value in given
        if value is not None and model.flow.constants(value, loader.through) != {None}
    ]


def _is_list(model: Model, dataset: Expr) -> bool:
    """Whether the samples certainly are a list or tuple."""
    values = model.flow.values(dataset)
    return bool(values) and all(isinstance(value, Pack) for value in values)


def _is_whole(model: Model, cls: Class | str) -> bool:
    """Whether a dataset certainly is map-style and does not know ranks."""
    if isinstance(cls, str):
        return cls.startswith(MAP_STYLE)
    return model.flow.method(cls, "__getitem__") is not None and knows_ranks(model, cls) is False


def _is_blind(model: Model, sampler: Expr) -> bool:
    """Whether a sampler, or one of several, certainly shuffles and does not know ranks.

    One of several, where it is asked for by more than the number of processes.
    """
    classes = built_classes(model, sampler)
    if classes is None:
        return False
    blind = {cls for cls in classes if _knows_no_rank(model, cls)}
    if blind == classes:
        return not _is_by_rank(model, sampler)
    sites = _sites(model, sampler, blind)
    return bool(sites) and not any(
        site is None
        or not is_asked_for(model, site)
        or any(_is_by_rank(model, arg.value) for arg in site.args)
        for site in sites
    )


def _sites(model: Model, expr: Expr, classes: set[Class | str]) -> list[Call | None]:
    """Where objects of some classes that an expression may be are built."""
    values = model.flow.values(expr)
    return [each.site for each in values if isinstance(each, Obj) and each.cls in classes]


def _knows_no_rank(model: Model, cls: Class | str) -> bool:
    """Whether samplers of a class certainly draw, from all samples, alike on each rank."""
    if isinstance(cls, str):
        return _draws_from_all(cls)
    calls = [call for scope in scopes_inside(cls) for call in scope.calls]
    return (
        knows_ranks(model, cls) is False
        and any(DRAW.names(call.func) for call in calls)
        and not any(is_unseeded(model, call) for call in calls)
    )


def _draws_from_all(dotted: str) -> bool:
    """Whether it is a sampler of torch that draws, and not from indices chosen before."""
    entry = catalog.known(dotted)
    chosen = entry is not None and any(role_of(name) is Role.INDICES for name in entry.params)
    return entry is not None and entry.shuffles is True and not chosen


def _may_shuffle(model: Model, loader: Obj) -> bool:
    if model.argument(loader, "shuffle") is None:
        return False
    constants = model.option(loader, "shuffle", False)
    return constants is None or any(constants)


def _suspect(model: Model, loader: Obj, joins: Call, grade: Grade) -> Suspect:
    assert loader.site is not None
    module = model.module_of(loader.site.scope)
    sampler = next(iter(_samplers(model, loader)), None)
    given = (
        f"its sampler `{unparse(sampler)}` does not depend on the rank"
        if sampler
        else "it has no sampler"
    )
    why = [Related(model.place(joins.scope, joins), "the program runs as several processes")]
    classes = (built_classes(model, sampler) or set()) if sampler is not None else set()
    blind = {cls for cls in classes if _knows_no_rank(model, cls)}
    if sampler is not None and blind != classes:
        given = "one of its samplers does not depend on the rank"
        why += [
            Related(model.place(site.scope, site), "this one")
            for site in _sites(model, sampler, blind)
            if site is not None
        ]
    return Suspect(
        module,
        loader.site.func,
        f"this `{loader.name}` trains in several processes and nothing shards it",
        why=tuple(why),
        effect=f"{given}, so every process reads the whole dataset in each epoch",
        fix=_divide(model, loader) if sampler is None and grade is Grade.CERTAIN else None,
        grade=grade,
        advice=_advice(model, sampler),
    )


def _divide(model: Model, loader: Obj) -> Fixer | None:
    """The fix, where the call builds nothing else, and the processes are joined before."""
    site = loader.site
    if site is None or loader.cls != DATA_LOADER or not joined_before(model, site):
        return None
    built = [each for each in model.loaders if each.site is site]
    if not all(feeds_training(model, each) is True and undivided(model, each) for each in built):
        return None
    return partial(divide, model, loader)


def _advice(model: Model, sampler: Expr | None) -> str:
    """What shards the loader and keeps what its sampler is for."""
    classes = built_classes(model, sampler) if sampler is not None else set()
    wanted = {role_of(name) for cls in classes or () for name in (model.flow.params(cls) or ())}
    if Role.WEIGHTS in wanted:
        return (
            "keep the weights: draw `num_samples // world_size` samples on each rank, with a "
            "`generator` seeded by the rank"
        )
    if any(isinstance(cls, Class) for cls in classes or ()):
        return "let it give each rank its part of one order that is the same on all ranks"
    return "give it a `DistributedSampler`"


def _left_by_framework(model: Model, loader: Obj, left: Left) -> Suspect:
    """A loader that Lightning would divide, if it were let to."""
    assert loader.site is not None
    keeps = left.call
    told = (
        f"`{last_name(keeps.func)}` divides only what its `{left.through}` returns"
        if left.through
        else "the Trainer does not replace samplers"
    )
    advice = (
        f"pass it through `{left.through}`"
        if left.through
        else "let the Trainer put in its sampler, or give the loader a `DistributedSampler`"
    )
    why = [Related(model.place(keeps.scope, keeps), told)]
    if left.settings is not None:
        why.append(Related(left.settings, "`use_distributed_sampler` is false here"))
    return Suspect(
        model.module_of(loader.site.scope),
        loader.site.func,
        f"this `{loader.name}` trains in several processes and nothing shards it",
        why=tuple(why),
        grade=Grade.CERTAIN if left.settings is None else Grade.LIKELY,
        effect="every process reads the whole dataset, and an epoch takes as many steps as on one "
        "device",
        advice=advice,
    )
