"""Slices that begin at the rank's own number, and go on as no share does."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from sampler_lint.analysis.origins import LOCAL, Hop, depends_on, only, origins, scope_of
from sampler_lint.domain.concepts import WORLD_SIZE
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.rank_terms import is_rank
from sampler_lint.domain.ranks import kinds
from sampler_lint.edits.editor import replacing
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability
from sampler_lint.parameters import Role, role_of
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._trials import slice_of
from sampler_lint.rules.smp405_partition_arithmetic.expressions import is_count
from sampler_lint.syntax.navigation import nodes_in, same, stmt_of, walk
from sampler_lint.syntax.nodes import (
    DIVISIONS,
    Attr,
    Bin,
    Call,
    Class,
    Expr,
    Index,
    Name,
    Other,
    last_name,
)
from sampler_lint.workspace.project import Module

_STORED = LOCAL | Hop.ATTRIBUTE


class _Part(NamedTuple):
    """``x[first : end : step]``."""

    node: Index
    first: Expr
    end: Expr | None
    step: Expr | None


def from_rank(model: Model, module: Module, told: Collection[Class]) -> Iterator[Suspect]:
    """``x[rank : rank + len(x) // world_size]`` and ``x[rank :: len(x)]``.

    Not in the classes of which something was told that went wrong when they were run.
    """
    for node in module.facts.slices if not is_test(module) else ():
        part = _part(module, node)
        if part is None or _is_scaled(model, part.first) or _is_only_counted(part):
            continue
        if any(scope in told for scope in scope_of(part.first).outward()):
            continue
        if part.step is not None:
            if _is_size_of(model, part.step, node.value):
                yield _one_each(module, part)
        elif part.end is not None:
            size = _taken(model, part.first, part.end)
            if size is not None and _is_divided(model, size):
                yield _neighbours(module, part, size)


def _part(module: Module, node: Index) -> _Part | None:
    """A slice that begins at the rank, by its name."""
    if not isinstance(node.key, Other) or not node.key.parts or not is_rank(node.key.parts[0]):
        return None
    key, (first, *rest) = slice_of(module, node), node.key.parts
    if key is None or len(rest) != (key.upper is not None) + (key.step is not None):
        return None
    return _Part(
        node,
        first,
        rest[0] if key.upper is not None else None,
        rest[-1] if key.step is not None else None,
    )


def _is_scaled(model: Model, rank: Expr) -> bool:
    """Whether what is called the rank is a multiple of it: where its part begins."""
    steps = origins(model.flow, rank, _STORED)
    return any(isinstance(step.expr, Bin) and step.expr.op == "Mult" for step in steps)


def _is_only_counted(part: _Part) -> bool:
    """Whether only the number of what is taken is asked for."""
    stmt = stmt_of(part.first)
    return stmt is not None and any(
        isinstance(node, Call)
        and last_name(node.func) == "len"
        and any(arg.value is part.node for arg in node.args)
        for node in nodes_in([stmt])
    )


def _taken(model: Model, first: Expr, end: Expr) -> Expr | None:
    """How many are taken from ``first`` on: ``n`` of ``first + n``."""
    whole = only(model.flow, end, Hop.ASSIGNED)
    if not isinstance(whole, Bin) or whole.op != "Add":
        return None
    rest = [side for side in (whole.left, whole.right) if not same(side, first)]
    return rest[0] if len(rest) == 1 else None


def _is_divided(model: Model, size: Expr) -> bool:
    """Whether a number is something divided by the number of ranks, by name or by value."""

    def divides_by_ranks(expr: Expr) -> bool:
        return (
            isinstance(expr, Bin)
            and expr.op in DIVISIONS
            and any(
                _is_world_size(part) or "world size" in kinds(model, part)
                for part in walk(expr.right)
            )
        )

    return depends_on(model.flow, size, divides_by_ranks, _STORED) is not None


def _is_world_size(expr: Expr) -> bool:
    named = last_name(expr.func if isinstance(expr, Call) else expr)
    return WORLD_SIZE.says(named) or role_of(named or "") is Role.WORLD_SIZE


def _is_size_of(model: Model, step: Expr, items: Expr) -> bool:
    """Whether a step is as long as what is sliced, or as long as the share of a rank."""
    size = only(model.flow, step, Hop.ASSIGNED | Hop.ATTRIBUTE)
    if _is_world_size(step) or _is_world_size(size):
        return False
    return is_count(step) or (
        isinstance(size, Call)
        and last_name(size.func) == "len"
        and len(size.args) == 1
        and same(size.args[0].value, items)
    )


def _one_each(module: Module, part: _Part) -> Suspect:
    assert part.step is not None
    step = text_of(module.source, part.step)
    return Suspect(
        module,
        part.node,
        f"each rank takes hardly any items: the step `{step}` is no number of ranks",
        effect=f"from its own number on, a rank takes one of every `{step}` items: the others "
        f"are read by none",
        advice="step by the number of ranks",
    )


def _neighbours(module: Module, part: _Part, size: Expr) -> Suspect:
    owner, rank = text_of(module.source, part.node.value), text_of(module.source, part.first)
    count = text_of(module.source, size)
    times = count if isinstance(size, (Name, Attr)) else f"({count})"
    code = f"{owner}[{rank} * {times} : ({rank} + 1) * {times}]"
    return Suspect(
        module,
        part.node,
        "the parts of the ranks overlap: each begins one item after the one before",
        fix=replacing(
            part.node,
            code,
            f"Write `{code}`",
            Applicability.UNSAFE,
            "other samples are read, and what is left over by the division is still not",
        ),
        effect=f"each rank takes `{count}` items from its own number on: most "
        f"are read by several ranks, and those behind the last part by none",
        advice=f"begin at `{rank} * {times}`",
    )
