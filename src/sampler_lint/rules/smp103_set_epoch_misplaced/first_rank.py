"""Calls that only one rank makes."""

from __future__ import annotations

from functools import partial

from sampler_lint.domain.epochs import EpochLoop
from sampler_lint.domain.model import Model
from sampler_lint.domain.rank_terms import runs_on_one_rank
from sampler_lint.findings import Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp103_set_epoch_misplaced.moving import without_guard
from sampler_lint.syntax.navigation import operands, unparse
from sampler_lint.syntax.nodes import Call, If


def one_rank(model: Model, found: EpochLoop, call: Call) -> Suspect | None:
    """A call that only one rank makes, while the others keep shuffling by epoch 0."""
    inner = call.stmt
    assert inner is not None
    for parent in inner.ancestors():
        if isinstance(parent, If) and inner.block is parent.body:
            for node in operands(parent.test):
                if runs_on_one_rank(model, node, parent.scope):
                    why = (Related(model.place(call.scope, parent), "only one rank gets here"),)
                    return Suspect(
                        model.module_of(call.scope),
                        call,
                        f"`{unparse(call)}` runs on one rank only",
                        why=why,
                        fix=partial(without_guard, parent, node, call, "on every rank"),
                        effect="the other ranks keep the order of epoch 0, so the shards overlap "
                        "and samples are left out",
                        advice="call it on every rank",
                    )
        inner = parent
    return None
