"""Calls that run before the loop starts."""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from sampler_lint.domain.epoch_calls import Carrier
from sampler_lint.domain.epochs import EpochLoop, loops_over
from sampler_lint.domain.model import Model
from sampler_lint.domain.turns import epoch_expression
from sampler_lint.findings import Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp103_set_epoch_misplaced.moving import move_to_top
from sampler_lint.syntax.navigation import unparse, walk
from sampler_lint.syntax.nodes import Call, For, Name, While


def between(calls: list[Call], first: int, last: int) -> list[Call]:
    """Those of a scope's calls, in reading order, that stand in some of its statements."""

    def order(call: Call) -> int:
        return call.stmt.order if call.stmt is not None else -1

    return calls[bisect_left(calls, first, key=order) : bisect_right(calls, last, key=order)]


def _around(model: Model, found: EpochLoop, carrier: Carrier) -> tuple[Related, ...]:
    return (
        Related(model.place(found.loop.scope, found.loop), "the epoch loop"),
        Related(model.place_of(carrier.sampler), "sampler built here"),
    )


def once(
    model: Model, found: EpochLoop, wanted: list[Carrier], calls: tuple[Call, ...]
) -> Iterator[Suspect]:
    """Calls that run before the loop starts, while nothing in the loop sets the epoch."""
    loop = found.loop
    sites = {carrier.sampler.site.scope for carrier in wanted if carrier.sampler.site is not None}
    for call in calls:
        assert call.stmt is not None
        if call.scope is loop.scope:
            if call.stmt.order > loop.order:
                return
        elif call.scope not in sites:
            return
        around = [stmt for stmt in call.stmt.ancestors() if isinstance(stmt, (For, While))]
        if not all(stmt.encloses(loop) for stmt in around):
            return
        if any(_counts(stmt, call) for stmt in around):
            return  # the loops inside that one may be parts of an epoch
    for call in calls:
        epoch = epoch_expression(loop)
        counter = unparse(epoch) if epoch is not None else "epoch"
        message = f"`{unparse(call)}` runs once, before the epoch loop"
        module = model.module_of(call.scope)

        fix = None
        if len(calls) == 1 and call.scope is loop.scope:
            others = {each.loop: None for each in loops_over(model, found.inner.loader)}
            also = [one for one in others if one is not loop and one.scope is loop.scope]
            fix = functools.partial(move_to_top, found, call, epoch, also=also)
        why = _around(model, found, wanted[0])
        yield Suspect(
            module,
            call,
            message,
            why=why,
            fix=fix,
            effect=f"every epoch repeats one order of `{wanted[0].sampler.name}`",
            advice=f"call `{unparse(call.func)}({counter})` at the start of each epoch",
        )


def _counts(loop: For | While, call: Call) -> bool:
    """Whether a loop gives the call its value anew in each turn."""
    targets = list(walk(loop.target)) if isinstance(loop, For) else []
    names = {node.id for node in targets if isinstance(node, Name)}
    return isinstance(loop, While) or any(
        isinstance(node, Name) and node.id in names for arg in call.args for node in walk(arg.value)
    )
