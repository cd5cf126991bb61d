"""Parts of expressions and statements that the checker of a turn asks for."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.concepts import LOGS
from sampler_lint.syntax.navigation import statements, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Call,
    Comp,
    Expr,
    Index,
    Name,
    Seq,
    Stmt,
)


def deep(exprs: list[Expr]) -> Iterator[Expr]:
    """All parts of several expressions."""
    for each in exprs:
        yield from walk(each)


def sources(expr: Expr) -> Iterator[Expr]:
    """What an iterator goes over in the end: ``x`` in ``cycle(x)``."""
    if isinstance(expr, (Attr, Name)):
        yield expr
    elif isinstance(expr, Call):
        owner = [expr.func.value] if isinstance(expr.func, Attr) and not expr.args else []
        for each in (*owner, *expr.positional):
            yield from sources(each)
    elif isinstance(expr, Index):
        yield from sources(expr.value)
    elif isinstance(expr, Comp):
        for each in expr.iters:
            yield from sources(each)


def flat(target: Expr) -> Iterator[Expr]:
    """What an assignment gives a value, as ``a, (b, c)`` does."""
    for each in target.items if isinstance(target, Seq) else ():
        yield from flat(each)
    if not isinstance(target, (Index, Seq)):
        yield target


def parts(stmts: list[Stmt]) -> Iterator[Expr]:
    """What statements work out, but for messages."""
    for stmt in statements(stmts):
        for target in (stmt.value,) if isinstance(stmt, (Assign, AugAssign)) else ():
            yield from walk(target)
        value = getattr(stmt, "value", None)
        if isinstance(value, Expr) and not (isinstance(value, Call) and LOGS.is_call(value)):
            yield from walk(value)
