"""Whether the processes of a program train on what one of its loaders gives, all of it each."""

from __future__ import annotations

from sampler_lint import catalog
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import (
    ITERATED,
    PROCESSES,
    SEEDS_ALL,
    SHARDS,
    TRAINS,
    WORLD_SIZE,
)
from sampler_lint.domain.epochs import feeds_training, loops_over, trains
from sampler_lint.domain.injection import Injection, is_one_device, is_told_to_leave_samplers
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import program_files
from sampler_lint.domain.ranks import chains, data_parallel, is_guarded, reached
from sampler_lint.parameters import Role, role_of
from sampler_lint.syntax.navigation import nodes_in, statements, walk
from sampler_lint.syntax.nodes import (
    Bin,
    Call,
    Class,
    Const,
    Expr,
    Function,
    If,
    Index,
    Other,
    Return,
    Scope,
    Stmt,
    last_name,
)

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


def undivided(model: Model, site: Call) -> Call | None:
    """What makes the processes of the program that trains with what is built at a place.

    None where anything of that program may give the processes different samples.
    """
    if is_guarded(site):
        return None
    for entry, calls in chains(model, site.scope):
        if any(is_guarded(call) for call in calls):
            continue
        scopes = reached(model, entry)
        joins = data_parallel(model, scopes)
        if joins is None or not _trains(scopes):
            continue
        return None if _is_sharded_elsewhere(model, scopes, calls, site) else joins
    return None


def left_whole(model: Model, loader: Obj) -> Call | None:
    """What keeps Lightning from dividing a loader that it trains with, or never gives it one.

    A Trainer that is told ``use_distributed_sampler=False``, or a Fabric whose
    ``setup_dataloaders`` is never called. None where anything of the program may divide it.
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
    trainers = [call for call in made if last_name(call.func) == "Trainer"]
    fabrics = [call for call in made if last_name(call.func) == "Fabric"]
    called = {name for scope in scopes for name in scope.called}
    if trainers and not fabrics:
        is_left = all(map(is_told_to_leave_samplers, trainers)) and _is_fitted(
            model, loader, scopes
        )
    else:
        is_left = bool(fabrics) and not trainers and "setup_dataloaders" not in called
        is_left = is_left and any(trains(model, loop) for loop in loops_over(model, loader))
    if not is_left or any(is_one_device(call) or call.has_double_star for call in made):
        return None
    if any(map(_shards_by_itself, scopes)) or _chooses_by_rank(loader.site.scope):
        return None
    return (trainers or fabrics)[0]


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


def _is_sharded_elsewhere(
    model: Model, scopes: set[Scope], calls: tuple[Call, ...], site: Call
) -> bool:
    """Whether anything the program does may give the ranks different samples."""
    modules = {model.module_of(scope) for scope in scopes}
    modules.update(model.module_of(call.scope) for call in calls)
    injection = Injection(model)
    if any(model.project.imports_of(m) & _SHARDING or injection.trainers(m) for m in modules):
        return True
    if any(_shards_by_itself(scope) for module in modules for scope in module.facts.scopes):
        return True
    if _chooses_by_rank(site.scope):
        return True
    return any(
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
