"""Whether the processes of a program train on what one of its loaders gives, all of it each."""

from __future__ import annotations

import re
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.origins import is_one_value
from sampler_lint.analysis.values import Ext, Obj
from sampler_lint.domain.concepts import (
    ITERATED,
    ITERATES,
    PROCESSES,
    SEEDS_ALL,
    SHARDS,
    SHARES,
    TRAINS,
    WORLD_SIZE,
)
from sampler_lint.domain.datasets import sampled
from sampler_lint.domain.epochs import feeds_training, loops_over, trains
from sampler_lint.domain.injection import (
    Injection,
    is_one_device,
    is_told_to_leave_samplers,
    told_by_settings,
)
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import program_files
from sampler_lint.domain.ranks import chains, data_parallel, is_guarded, reached
from sampler_lint.domain.samplers import is_distributed_sampler
from sampler_lint.parameters import Role, role_of
from sampler_lint.syntax.navigation import nodes_in, statements, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Bin,
    Call,
    Class,
    Const,
    Expr,
    Function,
    If,
    Index,
    Name,
    Other,
    Return,
    Scope,
    Stmt,
    last_name,
)
from sampler_lint.workspace.project import Module

#: Packages that shard by themselves, or read data in a way of their own. Who imports transformers
#: may only want a model.
_SHARDING = (catalog.FRAMEWORK_PACKAGES.keys() - {"transformers"}) | frozenset(
    {
        "colossalai", "detectron2", "fairseq", "fastai", "ffcv", "horovod", "lightly", "litdata",
        "megatron", "mmdet", "monai", "nemo", "nvidia", "oslo", "petastorm",
        "ray", "sagemaker", "smdistributed", "streaming", "torch_xla",
        "torchdata", "torchpack", "torchrec", "webdataset", "wids",
    }
)  # fmt: skip


def undivided(model: Model, loader: Obj) -> Call | None:
    """What makes the processes of the program that trains with a loader.

    None where anything of that program may give the processes different samples.
    """
    site = loader.site
    if site is None or is_guarded(site):
        return None
    for entry, calls in chains(model, site.scope):
        if any(is_guarded(call) for call in calls):
            continue
        scopes = reached(model, entry)
        joins = data_parallel(model, scopes)
        if joins is None or not _trains(scopes):
            continue
        modules = {model.module_of(scope) for scope in scopes}
        modules.update(model.module_of(call.scope) for call in calls)
        if _differs_by_rank(scopes, site):
            return None
        if not _is_started(model, joins, model.module_of(entry)):
            return None
        if not _is_sharded_elsewhere(model, modules) or _trains_as_it_is(model, loader, scopes):
            return joins
        return None
    return None


def trained_together(model: Model, site: Call) -> Call | None:
    """What makes the processes of a program that trains with what a call builds.

    Whether anything shares the data out among them is not asked.
    """
    for entry, calls in chains(model, site.scope) if not is_guarded(site) else ():
        if any(is_guarded(call) for call in calls):
            continue
        scopes = reached(model, entry)
        joins = data_parallel(model, scopes)
        if joins is not None and _trains(scopes):
            return joins if _is_started(model, joins, model.module_of(entry)) else None
    return None


def _is_started(model: Model, joins: Call, module: Module) -> bool:
    """Whether a file that runs with the training starts the processes, which torch does not."""
    if all(
        isinstance(value, Ext) and not value.dotted.startswith("torch.")
        for value in model.flow.values(joins.func)
    ):
        return True
    files = program_files(model)
    return any(
        files.share_importer(module, other)
        for other in files.holding(model.project.program_of(module), _STARTS.search)
    )


_STARTS = re.compile(rb"init_process_group|init_distributed|PartialState")


def _trains_as_it_is(model: Model, loader: Obj, scopes: set[Scope]) -> bool:
    """Whether a loop certainly trains with what the constructor made, and nothing divides that.

    Whatever else the program imports or shards then has no part in it.
    """
    modules = {model.module_of(scope) for scope in scopes}
    frameworks = {name for m in modules for name in Injection(model).trainers(m)}
    if any(_may_divide(scopes, name) for name in frameworks):
        return False
    if any(
        SHARES.is_mentioned(node) or _takes_share(node)
        for scope in scopes
        for node in nodes_in(statements(scope.body))
    ):
        return False
    data = model.flow.argument(loader, "dataset")
    if data is None or any(
        is_distributed_sampler(model, made)
        and (over := sampled(model, made)) is not None
        and is_one_value(model.flow, over, data)
        for made in model.constructions()
    ):
        return False  # somebody divides that dataset: SMP503 tells of a sampler that is not passed
    loops = loops_over(model, loader)
    return any(trains(model, loop) for loop in loops) and all(
        isinstance(value, Obj) and loader.may_be(value) and _is_iterated_there(loop.inner.source)
        for loop in loops
        for value in model.flow.values(loop.inner.source)
    )


def _is_iterated_there(source: Expr) -> bool:
    """Whether nothing but what goes through it gets a loader before it is iterated."""
    stmt = source.stmt if isinstance(source, (Name, Attr, Call)) else None
    return stmt is not None and all(
        node is source or ITERATES.is_call(node) or not any(part is source for part in walk(node))
        for node in nodes_in([stmt])
        if isinstance(node, Call)
    )


def _may_divide(scopes: set[Scope], name: str) -> bool:
    """Whether a framework may be given a loader, or makes one of what it is given."""
    own = catalog.framework(name).own_data
    return not own or any(
        arg.stars or arg.keyword == own
        for scope in scopes
        for call in scope.calls
        if last_name(call.func) in catalog.framework(name).trainers
        for arg in call.args
    )


class Left(NamedTuple):
    """What keeps Lightning from dividing a loader."""

    call: Call
    """The Trainer (or LightningCLI, or Fabric) that is told so, or whose set-up is missing."""
    settings: str | None
    """The file of settings that tells it, where the code does not."""


def left_whole(model: Model, loader: Obj) -> Left | None:
    """What keeps Lightning from dividing a loader that it trains with, or never gives it one.

    A Trainer that is told ``use_distributed_sampler=False``, perhaps by a file of settings, or a
    Fabric whose ``setup_dataloaders`` is never called. None where anything may divide it.
    """
    if loader.site is None or is_guarded(loader.site):
        return None
    injection = Injection(model)
    module = model.module_of(loader.site.scope)
    if "lightning" not in injection.trainers(module):
        return None
    files = program_files(model)
    scopes = [
        scope
        for each in model.project.modules_in(injection.program(module))
        if not files.run_apart(module, each)
        for scope in each.facts.scopes
    ]
    made = [call for scope in scopes for call in scope.calls if injection.is_lightning(call)]
    trainers = [call for call in made if last_name(call.func) in {"Trainer", "LightningCLI"}]
    fabrics = [call for call in made if last_name(call.func) == "Fabric"]
    called = {name for scope in scopes for name in scope.called}
    settings = None
    if trainers and not fabrics:
        if not all(map(is_told_to_leave_samplers, trainers)):
            settings = told_by_settings(model, module) if _reads_settings(trainers) else None
            if settings is None:
                return None
        is_left = _is_fitted(model, loader, scopes)
    else:
        is_left = bool(fabrics) and not trainers and "setup_dataloaders" not in called
        is_left = is_left and any(trains(model, loop) for loop in loops_over(model, loader))
    if not is_left or any(map(is_one_device, made)):
        return None
    if settings is None and any(call.has_double_star for call in made):
        return None
    if any(map(_shards_by_itself, scopes)) or _chooses_by_rank(loader.site.scope):
        return None
    return Left((trainers or fabrics)[0], settings)


def _reads_settings(trainers: list[Call]) -> bool:
    """Whether the one Trainer of a program gets its arguments from elsewhere than the code."""
    return len(trainers) == 1 and (
        last_name(trainers[0].func) == "LightningCLI" or trainers[0].has_double_star
    )


def _is_fitted(model: Model, loader: Obj, scopes: list[Scope]) -> bool:
    """Whether Lightning trains with the loader: it is passed to ``fit``, or a hook returns it."""
    given = (
        value
        for scope in scopes
        for call in scope.calls
        if last_name(call.func) == "fit"
        for arg in call.args
        for value in model.flow.values(arg.value)
    )
    return any(isinstance(value, Obj) and loader.may_be(value) for value in given) or bool(
        feeds_training(model, loader)
    )


def _trains(scopes: set[Scope]) -> bool:
    return any(TRAINS.is_call(call) for scope in scopes for call in scope.calls)


def _is_sharded_elsewhere(model: Model, modules: set[Module]) -> bool:
    """Whether anything in the files of the program shards, be it another loader."""
    injection = Injection(model)
    return any(
        model.project.imports_of(m) & _SHARDING or injection.trainers(m) for m in modules
    ) or any(_shards_by_itself(scope) for module in modules for scope in module.facts.scopes)


def _differs_by_rank(scopes: set[Scope], site: Call) -> bool:
    """Whether what is built, or drawn, may be another on each rank."""
    return _chooses_by_rank(site.scope) or any(
        SEEDS_ALL.names(call.func) and any(PROCESSES.is_mentioned(a.value) for a in call.args)
        for scope in scopes
        for call in scope.calls
    )


def _shards_by_itself(scope: Scope) -> bool:
    """Whether a scope uses anything that gives the ranks different samples; imports do not."""
    names = [
        arg.keyword
        for call in scope.calls
        for arg in call.args
        if not (isinstance(arg.value, Const) and arg.value.value is False)
    ]
    names += [param.name for param in scope.params] if isinstance(scope, Function) else []
    bases = scope.bases if isinstance(scope, Class) else []
    return (
        any(map(SHARDS.says, names))
        or any(map(SHARDS.names, bases))
        or any(SHARDS.names(n) or _takes_share(n) for n in nodes_in(statements(scope.body)))
    )


def _takes_share(node: Expr) -> bool:
    """``files[rank::world_size]``, and ``step % world_size``."""
    if isinstance(node, Index):
        return isinstance(node.key, Other) and PROCESSES.is_mentioned(node.key)
    if not isinstance(node, Bin) or node.op != "Mod" or _is_text(node.left):
        return False
    sizes = (role_of(last_name(part) or "") is Role.WORLD_SIZE for part in walk(node.right))
    return WORLD_SIZE.is_mentioned(node.right) or any(sizes)


def _is_text(expr: Expr) -> bool:
    """Whether it is a text, into which ``%`` puts a number."""
    return isinstance(expr, Const) and isinstance(expr.value, str)


def _chooses_by_rank(scope: Scope) -> bool:
    """Whether a condition about ranks in the scope decides on loaders, or on what is returned."""
    return any(
        isinstance(stmt, If)
        and PROCESSES.is_mentioned(stmt.test)
        and any(isinstance(inner, Return) or _builds(inner) for inner in statements([stmt]))
        for stmt in statements(scope.body)
    )


def _builds(stmt: Stmt) -> bool:
    return any(isinstance(node, Call) and ITERATED.names(node.func) for node in nodes_in([stmt]))
