"""Calls that only one rank makes."""

from __future__ import annotations

from functools import partial

from sampler_lint.domain.epochs import EpochLoop
from sampler_lint.domain.model import Model
from sampler_lint.domain.rank_terms import runs_on_one_rank
from sampler_lint.findings import Related
from sampler_lint.limits import DEEPEST_CHAIN
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp103_set_epoch_misplaced.moving import without_guard
from sampler_lint.syntax.navigation import operands, unparse
from sampler_lint.syntax.nodes import Call, Expr, Function, If


def one_rank(model: Model, found: EpochLoop, call: Call) -> Suspect | None:
    """A call that only one rank makes, while the others keep shuffling by epoch 0."""
    guard = _guard(model, found, call)
    way = call if guard is not None else _guarded_way(model, found, call)
    guard = guard or (_guard(model, found, way) if way is not None else None)
    if way is None or guard is None:
        return None
    parent, node = guard
    return Suspect(
        model.module_of(call.scope),
        call,
        f"`{unparse(call)}` runs on one rank only",
        why=(Related(model.place(way.scope, parent), "only one rank gets here"),),
        fix=partial(without_guard, parent, node, call, "on every rank") if way is call else None,
        effect="the other ranks keep the order of epoch 0, so the shards overlap and samples are "
        "left out",
        advice="call it on every rank",
    )


def _guard(model: Model, found: EpochLoop, call: Call) -> tuple[If, Expr] | None:
    """The ``if`` around a call, within the loop, that one rank passes; the part that asks so."""
    inner = call.stmt
    for parent in inner.ancestors() if inner is not None else ():
        if parent is found.loop:
            break
        if isinstance(parent, If) and inner is not None and inner.block is parent.body:
            for node in operands(parent.test):
                if runs_on_one_rank(model, node, parent.scope):
                    return parent, node
        inner = parent
    return None


def _guarded_way(model: Model, found: EpochLoop, call: Call, depth: int = 0) -> Call | None:
    """A call on the way to one, if one rank alone makes the calls on each way there."""
    scope = call.scope
    if scope is found.loop.scope or not isinstance(scope, Function) or depth == DEEPEST_CHAIN:
        return None
    ways = [
        each if _guard(model, found, each) else _guarded_way(model, found, each, depth + 1)
        for each in model.flow.callers(scope)
    ]
    return ways[0] if ways and all(ways) else None
