"""Calls that only one rank makes."""

from __future__ import annotations

from functools import partial

from sampler_lint.domain.epochs import EpochLoop
from sampler_lint.domain.model import Model
from sampler_lint.domain.rank_terms import runs_on_one_rank
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import operands, unparse, walk
from sampler_lint.syntax.nodes import (
    Call,
    Expr,
    ExprStmt,
    If,
    Name,
)


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
                        fix=partial(_on_every_rank, parent, node, call),
                        effect="the other ranks keep the order of epoch 0, so the shards overlap "
                        "and samples are left out",
                        advice="call it on every rank",
                    )
        inner = parent
    return None


def _on_every_rank(guard: If, test: Expr, call: Call, editor: Editor) -> Fix | None:
    """Make the call before the branch that only one rank takes, which goes if it holds no more."""
    stmt = call.stmt
    if not isinstance(stmt, ExprStmt) or stmt.value is not call or stmt.block is not guard.body:
        return None
    if guard.test is not test or any(
        binding.stmt is not None and guard.encloses(binding.stmt)
        for name in walk(call)
        if isinstance(name, Name)
        for binding in name.scope.bindings.get(name.id, ())
    ):
        return None
    is_elif = isinstance(guard.parent, If) and guard.block is guard.parent.orelse
    if is_elif or (len(guard.body) == 1 and guard.orelse):
        return None
    editor.insert_before(guard, *editor.lines_of(stmt, call, text_of(editor.source, call)))
    if len(guard.body) == 1:
        editor.delete(guard)
    else:
        editor.delete(stmt, with_comments=True)
    return editor.fix(f"Call `{text_of(editor.source, call)}` on every rank", Applicability.SAFE)
