"""Numbers that begin at 0 in each run, beside a loop that may begin elsewhere."""

from __future__ import annotations

from sampler_lint.analysis.origins import Hop, ends
from sampler_lint.domain.concepts import RANGES
from sampler_lint.domain.counters import Beginning, counted_from_zero
from sampler_lint.domain.epochs import EpochLoop
from sampler_lint.domain.model import Model
from sampler_lint.domain.turns import epoch_expression
from sampler_lint.syntax.navigation import leaves, same, statements, walk
from sampler_lint.syntax.nodes import Attr, Bin, Call, Const, Expr, For, If, Loop, Name


def from_zero(model: Model, found: EpochLoop, call: Call) -> Beginning | None:
    """Where the number that a call gets begins at 0, wherever its loop begins."""
    given = next(iter(call.positional), None)
    if isinstance(given, Bin):
        return _turns_of(model, found, call, given)
    if not isinstance(given, (Name, Attr)) or skips_by(found.loop, given):
        return None
    return counted_from_zero(model, found.loop, given)


def skips_by(loop: Loop, number: Expr) -> bool:
    """Whether turns of a loop are left by a number."""
    return any(
        isinstance(stmt, If)
        and any(same(node, number) for node in walk(stmt.test))
        and any(map(leaves, stmt.body))
        for stmt in statements(loop.body)
    )


def _turns_of(model: Model, found: EpochLoop, call: Call, given: Bin) -> Beginning | None:
    """``epoch - start`` in a loop over ``range(start, …)``: the number of the turn."""
    loop, epoch = found.loop, epoch_expression(found.loop)
    if not isinstance(loop, For) or call.scope is not loop.scope or epoch is None:
        return None
    counts = [node for node in walk(loop.iter) if isinstance(node, Call) and RANGES.is_call(node)]
    if (
        len(counts) != 1
        or not len(counts[0].positional) > 1
        or any(a.stars for a in counts[0].args)
    ):
        return None
    start = counts[0].positional[0]
    if given.op != "Sub" or not (same(given.left, epoch) and same(given.right, start)):
        return None
    is_fixed = all(isinstance(end, Const) for end in ends(model.flow, start, Hop.ASSIGNED))
    return None if is_fixed else Beginning(loop.scope, start)
