"""Functions that are told a rank, and take by the number of ranks what is the same on each."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.origins import LOCAL, depends_on
from sampler_lint.domain.concepts import RANGES
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.parameters import Role, role_of
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import expressions, owner_of, statements, walk
from sampler_lint.syntax.nodes import (
    Call,
    Comp,
    Compare,
    Expr,
    Function,
    If,
    Index,
    Name,
    Other,
    Param,
    Simple,
    Stmt,
)
from sampler_lint.workspace.project import Module


def same_on_each(model: Model, module: Module) -> Iterator[Suspect]:
    """The parts of data that a function gives for a rank, which it never looks at."""
    for function in module.facts.functions if not is_test(module) else ():
        ranks, sizes = (
            [param for param in function.params if role_of(param.name) is role]
            for role in (Role.RANK, Role.WORLD_SIZE)
        )
        if len(ranks) != 1 or len(sizes) != 1 or _uses(function, ranks[0]):
            continue
        for part in _parts(model, function, sizes[0]):
            yield Suspect(
                module,
                part,
                f"this part is the same for every `{ranks[0].name}`",
                effect=f"`{function.name}` takes it by `{sizes[0].name}` alone: all ranks read the "
                f"same samples, and the others are never read",
                advice=f"begin at `{ranks[0].name}`",
            )


def _uses(function: Function, rank: Param) -> bool:
    """Whether anything but a test or an assertion reads the rank."""
    return any(
        isinstance(node, Name) and node.id == rank.name and not _only_asks(stmt, expr)
        for scope in (function, *function.module.inside(function))
        for stmt in statements(scope.body)
        for expr in expressions(stmt)
        for node in walk(expr)
    )


def _only_asks(stmt: Stmt, expr: Expr) -> bool:
    """Whether it is asserted, or asked whether there is a rank, and not which one it is."""
    if isinstance(stmt, If) and expr is stmt.test:
        return all(
            op.startswith("Is")
            for node in walk(expr)
            if isinstance(node, Compare)
            for op in node.ops
        )
    return isinstance(stmt, Simple) and stmt.kind == "assert"


def _parts(model: Model, function: Function, size: Param) -> Iterator[Expr]:
    """What a function returns that it takes of something by the number of ranks."""

    def is_size(expr: Expr) -> bool:
        return isinstance(expr, Name) and expr.id == size.name and owner_of(expr) is function

    def is_part(expr: Expr) -> bool:
        if isinstance(expr, Index) and isinstance(expr.key, Other) and len(expr.key.parts) > 1:
            # It begins where the number of ranks says.
            return depends_on(model.flow, expr.key.parts[0], is_size, LOCAL) is not None
        if not isinstance(expr, Comp) or len(expr.iters) != 1 or len(expr.elements) != 1:
            return False
        taken, steps = expr.elements[0], expr.iters[0]
        return (
            isinstance(taken, Index)
            and isinstance(taken.key, Name)
            and isinstance(steps, Call)
            and RANGES.is_call(steps)
            and len(steps.positional) == 3
            and is_size(steps.positional[2])
        )

    for stmt in function.returns:
        step = depends_on(model.flow, stmt.value, is_part, LOCAL) if stmt.value else None
        if step is not None:
            yield step.expr
