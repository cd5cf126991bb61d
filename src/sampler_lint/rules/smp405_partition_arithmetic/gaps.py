"""Slices that are taken one after the other and do not meet: what is between two is in none."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from sampler_lint.domain.concepts import RANK
from sampler_lint.edits.editor import replacing
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import nodes_in, statements
from sampler_lint.syntax.nodes import Function, Index
from sampler_lint.workspace.project import Module

#: A sum of products: how often each is there, by the sorted texts of its factors.
_Sum: TypeAlias = "Mapping[tuple[str, ...], int]"

_ONE = ast.Constant(1)


def gaps(module: Module, function: Function) -> Iterator[Suspect]:
    """``x[i : i + size - 1]`` in a loop by ``size``, ``x[rank * n : (rank + 1) * n - 1]``."""
    places = {
        (node.row, node.col, node.end_row, node.end_col): node
        for node in nodes_in(statements(function.body))
        if isinstance(node, Index)
    }
    tree = _parsed(module, function) if places else None
    if tree is None:
        return
    values, seen = _values(tree), set[Index]()
    for loop, name, step in _loops(tree):
        for cut in ast.walk(loop):
            if not isinstance(cut, ast.Subscript):
                continue
            lost = _lost(cut, name, step, values)
            if lost and not _reads_between(loop, cut):
                # The text begins with a line of its own.
                row = function.body[0].row - 2
                place = cut.lineno + row, cut.col_offset, (cut.end_lineno or 0) + row
                node = places.get((*place, cut.end_col_offset or 0))
                if node is not None and node not in seen:
                    seen.add(node)
                    yield _suspect(module, node, cut, lost)


def _parsed(module: Module, function: Function) -> ast.AST | None:
    """The body of the function as Python has it, with its columns as they are."""
    source, last = module.source, function.body[-1]
    start = source.offset(function.body[0].row, 0)
    text = source.stretch(start, source.offset(last.end_row, last.end_col))
    try:
        return ast.parse(f"if 1:\n{text}")
    except (SyntaxError, ValueError):
        return None


def _values(tree: ast.AST) -> dict[str, ast.expr]:
    """What each variable that is given a value once, in one statement, is given."""
    stored = Counter(
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    )
    return {
        node.targets[0].id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and stored[node.targets[0].id] == 1
    }


def _loops(tree: ast.AST) -> Iterator[tuple[ast.AST, str, ast.expr]]:
    """What runs again and again, by which variable it differs, and by how much that grows.

    Ranks differ by one.
    """
    ranks = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            yield from _by_range(node, node.target, node.iter)
        elif isinstance(node, ast.While):
            for stmt in node.body:
                match stmt:
                    case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=step):
                        yield node, name, step
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            for part in node.generators:
                yield from _by_range(node, part.target, part.iter)
        elif isinstance(node, (ast.Name, ast.Attribute)) and RANK.says(
            node.id if isinstance(node, ast.Name) else node.attr
        ):
            ranks.add(ast.unparse(node))
    for rank in sorted(ranks):
        yield tree, rank, _ONE


def _by_range(
    loop: ast.AST, target: ast.expr, iterated: ast.expr
) -> Iterator[tuple[ast.AST, str, ast.expr]]:
    match target, iterated:
        case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=[_, _, step]):
            yield loop, name, step
        case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=[_] | [_, _]):
            yield loop, name, _ONE


def _lost(cut: ast.Subscript, name: str, step: ast.expr, values: Mapping[str, ast.expr]) -> int:
    """How many items are left out between a slice and the next one; 0 where that is not known."""
    match cut.slice:
        case ast.Slice(lower=ast.expr() as lower, upper=ast.expr() as upper, step=None):
            pass
        case _:
            return 0
    once = {key: value for key, value in values.items() if key != name}
    grown = _sum(step, once, {})
    ends = _sum(_unclipped(upper, name, once), once, {})
    if grown is None or ends is None or not any(name in product for product in ends):
        return 0
    following = _sum(lower, once, {name: _added({(name,): 1}, grown)})
    if following is None or not any(name in product for product in following):
        return 0
    between = _added(following, ends, -1)
    return between[()] if between.keys() == {()} and between[()] > 0 else 0


def _unclipped(upper: ast.expr, name: str, values: Mapping[str, ast.expr]) -> ast.expr:
    """``i + size`` of ``min(i + size, n)``: the last slice says nothing of the others."""
    if isinstance(upper, ast.Name) and upper.id in values:
        upper = values[upper.id]
    if isinstance(upper, ast.Call) and isinstance(upper.func, ast.Name) and upper.func.id == "min":
        of_loop = [arg for arg in upper.args if name in map(ast.unparse, ast.walk(arg))]
        return of_loop[0] if len(of_loop) == 1 else upper
    return upper


def _sum(node: ast.expr, values: Mapping[str, ast.expr], given: Mapping[str, _Sum]) -> _Sum | None:
    """An expression as a sum of products; None where what is given is in none of them."""
    text = ast.unparse(node)
    if text in given:
        return given[text]
    match node:
        case ast.Constant(value=int() as number):
            return {(): number}
        case ast.Name(id=name) if name in values:
            rest = {key: value for key, value in values.items() if key != name}
            return _sum(values[name], rest, given)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
            left, right = _sum(node.left, values, given), _sum(node.right, values, given)
            if left is None or right is None:
                return None
            if not isinstance(node.op, ast.Mult):
                return _added(left, right, 1 if isinstance(node.op, ast.Add) else -1)
            out: Counter[tuple[str, ...]] = Counter()
            for one, many in left.items():
                for other, more in right.items():
                    product = tuple(sorted((*one, *other)))
                    out[product] += many * more
            return _added(out, {})
    inside = {ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.expr)}
    return None if inside & given.keys() else {(text,): 1}


def _added(left: _Sum, right: _Sum, times: int = 1) -> _Sum:
    out = Counter(left)
    for product, many in right.items():
        out[product] += times * many
    return {product: many for product, many in out.items() if many}


def _reads_between(loop: ast.AST, cut: ast.Subscript) -> bool:
    """Whether the loop takes other items of the same list: those that the slices leave out."""
    owner = ast.unparse(cut.value)
    return any(
        isinstance(node, ast.Subscript)
        and node is not cut
        and isinstance(node.ctx, ast.Load)
        and ast.unparse(node.value) == owner
        for node in ast.walk(loop)
    )


def _suspect(module: Module, node: Index, cut: ast.Subscript, lost: int) -> Suspect:
    text = text_of(module.source, node)
    items = "an item" if lost == 1 else f"{lost} items"
    fix = None
    match cut.slice:
        case ast.Slice(
            lower=ast.expr() as lower,
            upper=ast.BinOp(op=ast.Sub(), left=whole, right=ast.Constant(value=number)),
        ) if number == lost:
            owner = text_of(module.source, node.value)
            code = f"{owner}[{ast.unparse(lower)} : {ast.unparse(whole)}]"
            fix = replacing(node, code, f"Write `{code}`", Applicability.UNSAFE)
    return Suspect(
        module,
        node,
        f"`{text}` ends {items} before the next slice begins",
        fix=fix,
        effect="what lies between two slices is in none of them, and so never read",
        advice="end each slice where the next one begins: a slice does not hold its end",
    )
