"""Samplers that each turn of a loop builds anew: whether each is like the one before."""

from __future__ import annotations

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.model import Model
from sampler_lint.syntax.navigation import nodes_in, statements
from sampler_lint.syntax.nodes import Attr, Call, Class, Const, Expr, Loop, Name, last_name


def is_alike_in_turns(model: Model, loop: Loop, sampler: Obj) -> bool:
    """Whether each turn has one sampler, or builds torch's over the same data with one seed."""
    site = sampler.site
    if site is None or site.stmt is None or site.scope is not loop.scope:
        return False
    if not loop.encloses(site.stmt):
        return True
    if isinstance(sampler.cls, Class) or model.flow.may_be_passed(sampler, "seed"):
        return False
    data = model.flow.argument(sampler, "dataset")
    seed = model.flow.argument(sampler, "seed")
    return (
        isinstance(data, Name)
        and not _is_bound_in(loop, data)
        and (seed is None or _stays(loop, seed))
        and _is_only_handed_on(model, loop, data)
    )


def _stays(loop: Loop, seed: Expr) -> bool:
    return isinstance(seed, Const) or (isinstance(seed, Name) and not _is_bound_in(loop, seed))


def _is_bound_in(loop: Loop, name: Name) -> bool:
    return any(
        binding.stmt is not None and loop.encloses(binding.stmt)
        for binding in name.scope.bindings.get(name.id, ())
    )


def _is_only_handed_on(model: Model, loop: Loop, data: Name) -> bool:
    """Whether the loop does no more with the data than to build from them, so that they stay."""
    nodes = [n for stmt in (loop, *statements(loop.body)) for n in nodes_in([stmt])]
    calls = [node for node in nodes if isinstance(node, Call)]
    called = {id(call.func) for call in calls}
    harmless = {
        id(arg.value)
        for call in calls
        if last_name(call.func) == "len" or any(map(model.role, model.flow.values(call)))
        for arg in call.args
    }
    harmless |= {id(n.value) for n in nodes if isinstance(n, Attr) and id(n) not in called}
    return all(
        id(node) in harmless
        for node in nodes
        if isinstance(node, Name) and node.id == data.id and node.scope is data.scope
    )
