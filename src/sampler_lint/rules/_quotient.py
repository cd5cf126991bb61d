"""The remainder-of-a-quotient idiom, shared by SMP401 and SMP402.

Splitting ``n`` things into ``k`` parts takes ``n // k`` each and one more for the first
``n % k`` parts. The remainder belongs to the divided count ``n``; taken of the quotient it says
nothing about the parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sampler_lint.domain.model import scopes_inside
from sampler_lint.syntax.navigation import nodes_in, same, statements, walk
from sampler_lint.syntax.nodes import (
    DIVISIONS,
    ORDERED,
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Class,
    Compare,
    Const,
    Expr,
    For,
    If,
    Name,
    Scope,
    Stmt,
    While,
    With,
    last_name,
)


@dataclass(frozen=True, slots=True)
class Quotient:
    """``target = count // parts`` in a statement."""

    stmt: Assign
    target: Name | Attr
    count: Expr
    parts: Expr


class Remainder(NamedTuple):
    """``operand % parts``, and the statement it stands in."""

    stmt: Stmt
    node: Bin

    @property
    def operand(self) -> Expr:
        """What the remainder is taken of."""
        return self.node.left


def quotients(scope: Scope) -> Iterator[Quotient]:
    """Every ``name = count // parts`` of a scope; ``int(count / parts)`` too."""
    for stmt in statements(scope.body):
        if not isinstance(stmt, Assign) or len(stmt.targets) != 1:
            continue
        target, value = stmt.targets[0], _division(stmt.value)
        if value is not None and isinstance(target, (Name, Attr)):
            yield Quotient(stmt, target, value.left, value.right)


def _division(value: Expr) -> Bin | None:
    if isinstance(value, Bin) and value.op == "FloorDiv":
        return value
    if isinstance(value, Call) and last_name(value.func) in {"int", "floor"}:
        inner = value.positional
        if len(inner) == 1 and isinstance(inner[0], Call):
            return _division(inner[0])
        if len(inner) == 1 and isinstance(inner[0], Bin) and inner[0].op in DIVISIONS:
            return inner[0]
    return None


def remainders(scope: Scope) -> Iterator[Remainder]:
    """Every ``operand % parts`` of a scope."""
    for stmt in statements(scope.body):
        for node in nodes_in([stmt]):
            if isinstance(node, Bin) and node.op == "Mod":
                yield Remainder(stmt, node)


def hands_out_leftovers(scope: Scope, remainder: Remainder, quotient: Quotient) -> bool:
    """Whether the remainder decides who gets one more, as in ``if r > part: size += 1``.

    Digits of a mixed radix (``minutes = seconds // 60; minutes % 60``) are never compared
    with a part's number, so this tells the two apart.
    """
    if _decides(remainder.stmt, remainder.node, quotient):
        return True
    stmt = remainder.stmt
    if isinstance(stmt, Assign) and stmt.value is remainder.node and len(stmt.targets) == 1:
        name = stmt.targets[0]
        kept = isinstance(name, Attr) and isinstance(scope.outer, Class)
        around = scopes_inside(scope.outer) if kept and isinstance(scope.outer, Class) else [scope]
        return any(
            same(node, name) and _decides(user, node, quotient)
            for where in around
            for user in statements(where.body)
            if where is not scope or user.order > stmt.order
            for node in nodes_in([user])
        )
    return False


def _decides(stmt: Stmt, node: Expr, quotient: Quotient) -> bool:
    for outer in nodes_in([stmt]):
        if isinstance(outer, Compare) and len(outer.ops) == 1:
            sides = (outer.left, outer.rights[0])
            if node in sides:
                other = sides[1] if sides[0] is node else sides[0]
                if outer.ops[0] in ORDERED and not isinstance(other, Const):
                    return True
        elif (
            isinstance(outer, Call)
            and last_name(outer.func) == "min"
            and len(outer.positional) == 2
            and node in outer.positional
        ):
            return True
    if isinstance(stmt, For) and _is_range(stmt.iter, node):
        return any(_adds_one(inner) for inner in statements(stmt.body))
    return (
        isinstance(stmt, If)
        and any(part is node for part in walk(stmt.test))
        and any(_raises_quotient(inner, quotient) for inner in statements(stmt.body))
    )


def _is_range(expr: Expr, node: Expr) -> bool:
    return isinstance(expr, Call) and last_name(expr.func) == "range" and expr.positional == [node]


def _adds_one(stmt: Stmt) -> bool:
    """``sizes[i] += 1``."""
    return (
        isinstance(stmt, AugAssign)
        and stmt.op == "Add"
        and isinstance(stmt.value, Const)
        and stmt.value.value == 1
    )


def _raises_quotient(stmt: Stmt, quotient: Quotient) -> bool:
    return isinstance(stmt, AugAssign) and stmt.op == "Add" and same(stmt.target, quotient.target)


def unchanged_between(scope: Scope, quotient: Quotient, stmt: Stmt) -> bool:
    """Whether nothing assigns the quotient, the count or the parts between the two."""
    parts = (quotient.target, quotient.count, quotient.parts)
    return not any(
        same(target, part) for target in _assigned_between(scope, quotient, stmt) for part in parts
    )


def spelled_as_before(scope: Scope, quotient: Quotient, stmt: Stmt) -> bool:
    """Whether the count, written out again, is what it was: all that it is made of stays."""
    assigned = [*_assigned_between(scope, quotient, stmt)]
    return not any(same(target, node) for target in assigned for node in walk(quotient.count))


def _assigned_between(scope: Scope, quotient: Quotient, stmt: Stmt) -> Iterator[Expr]:
    """What is assigned between the two.

    What a loop around the remainder assigns further down comes between them from its second turn.
    """
    again = [
        around
        for around in stmt.ancestors()
        if isinstance(around, (For, While)) and not around.encloses(quotient.stmt)
    ]
    for other in statements(scope.body):
        is_between = quotient.stmt.order < other.order < stmt.order
        if is_between or any(loop.encloses(other) for loop in again):
            targets: list[Expr] = other.targets if isinstance(other, Assign) else []
            if isinstance(other, (AugAssign, For)):
                targets = [other.target]
            elif isinstance(other, With):
                targets = [target for _, target in other.items if target is not None]
            for target in targets:
                yield from walk(target)
