"""What the code of a class shows its names to be: counts of ranks, or no numbers at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sampler_lint.execution.values import last_name
from sampler_lint.parameters import Role, role_of


def spoken(nodes: list[ast.AST]) -> tuple[frozenset[str], ...]:
    """The names held against a rank, walked, divided by ranks, and by which sizes are divided."""
    asked = (_sizes_beside_ranks, _walked, _divided_by_ranks, _sizes_of_sizes)
    return tuple(frozenset(names(nodes)) for names in asked)


_WALKS = frozenset(
    {"enumerate", "iter", "len", "list", "reversed", "set", "sorted", "tuple", "zip"}
)


def _sizes_beside_ranks(nodes: list[ast.AST]) -> Iterator[str]:
    """What the class holds a rank against: ``rank < size``, or ``x[rank::size]``."""
    for node in nodes:
        if isinstance(node, ast.Compare) and isinstance(
            node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
        ):
            sides = node.left, node.comparators[0]
        elif isinstance(node, ast.Slice) and node.lower is not None and node.step is not None:
            sides = node.lower, node.step
        else:
            continue
        for rank, size in (sides, sides[::-1]):
            name = last_name(size)
            if role_of(last_name(rank)) is Role.RANK and role_of(name) is not Role.RANK:
                yield name


def _divided_by_ranks(nodes: list[ast.AST]) -> Iterator[str]:
    """What the class divides by the number of ranks: ``step_size // world_size``."""
    return (last_name(whole) for whole, by in _divisions(nodes) if role_of(by) is Role.WORLD_SIZE)


def _sizes_of_sizes(nodes: list[ast.AST]) -> Iterator[str]:
    """The sizes by which the class divides one: ``num_samples // size``."""
    for whole, by in _divisions(nodes):
        parts = map(last_name, ast.walk(whole)) if role_of(by) is Role.SIZE else ()
        if any(part != by and role_of(part) is Role.SIZE for part in parts):
            yield by


def _divisions(nodes: list[ast.AST]) -> Iterator[tuple[ast.expr, str]]:
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)):
            yield node.left, last_name(node.right)


def _walked(nodes: list[ast.AST]) -> Iterator[str]:
    """What the class goes through, or takes items of: that is no number."""
    for node in nodes:
        if isinstance(node, (ast.For, ast.comprehension)):
            yield last_name(node.iter)
        elif isinstance(node, ast.Subscript):
            yield last_name(node.value)
        elif isinstance(node, ast.Call) and last_name(node.func) in _WALKS:
            yield from map(last_name, node.args)
