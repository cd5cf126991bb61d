"""Whether the processes of a program train on what one of its loaders gives, all of it each."""

from __future__ import annotations

from sampler_lint import catalog
from sampler_lint.domain.concepts import (
    ITERATED,
    PROCESSES,
    SEEDS_ALL,
    SHARDS,
    TRAINS,
    WORLD_SIZE,
)
from sampler_lint.domain.injection import Injection
from sampler_lint.domain.model import Model
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
    names = [arg.keyword for call in scope.calls for arg in call.args]
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
