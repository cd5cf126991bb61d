"""Calls that only one rank makes."""

from __future__ import annotations

from sampler_lint.analysis.origins import Hop, only
from sampler_lint.domain.concepts import (
    FIRST_RANK,
)
from sampler_lint.domain.epochs import EpochLoop
from sampler_lint.domain.model import Model
from sampler_lint.domain.rank_terms import differs
from sampler_lint.findings import Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp103_set_epoch_misplaced.receiver import operands
from sampler_lint.syntax.navigation import unparse
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Compare,
    Const,
    Expr,
    If,
    Name,
    Scope,
    Unary,
)


def one_rank(model: Model, found: EpochLoop, call: Call) -> Suspect | None:
    """A call that only one rank makes, while the others keep shuffling by epoch 0."""
    inner = call.stmt
    assert inner is not None
    for parent in inner.ancestors():
        if isinstance(parent, If) and inner.block is parent.body:
            for node in operands(parent.test):
                if _is_first_rank(model, node, parent.scope):
                    why = (Related(model.place(call.scope, parent), "only one rank gets here"),)
                    return Suspect(
                        model.module_of(call.scope),
                        call,
                        f"`{unparse(call)}` runs on one rank only",
                        why=why,
                        effect="the other ranks keep the order of epoch 0, so the shards overlap "
                        "and samples are left out",
                        advice="call it on every rank",
                    )
        inner = parent
    return None


def _is_first_rank(model: Model, test: Expr, scope: Scope) -> bool:
    """Whether a test holds on one rank only (of all, or of a node)."""
    value = only(model.flow, test, Hop.ASSIGNED)
    if value is not test and _is_first_rank(model, value, scope):
        return True
    if isinstance(test, (Name, Attr, Call)):
        return FIRST_RANK.names(test.func if isinstance(test, Call) else test)
    if isinstance(test, Unary) and test.op == "Not":
        return differs(model, test.operand, scope) is not None
    if not isinstance(test, Compare) or test.ops != ["Eq"]:
        return False
    sides = (test.left, test.rights[0])
    numbers = [side for side in sides if isinstance(side, Const) and side.value == 0]
    return bool(numbers) and any(differs(model, side, scope) is not None for side in sides)
