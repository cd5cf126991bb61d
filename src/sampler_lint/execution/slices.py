"""What of a generator decides how often it yields: the rest need not be understood to count."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from functools import lru_cache

from sampler_lint.execution.builtin import BUILTINS
from sampler_lint.syntax.parse import all_nodes

#: What a block is left or stopped by.
_LEAVING = (ast.Yield, ast.YieldFrom, ast.Return, ast.Break, ast.Continue)
_BLOCKS = (ast.For, ast.While, ast.If, ast.With)
_CHECKS = (ast.Assert, ast.Raise)


@lru_cache(32)
def steps_of(node: ast.AST, methods: tuple[ast.AST, ...]) -> ast.FunctionDef | None:
    """The same generator with only what its number of steps rests on, and nothing in them.

    None for what is no generator, and where too much may change what it rests on. ``methods`` are
    those of the object, which it may call.
    """
    if not isinstance(node, ast.FunctionDef):
        return None
    inside = [*_inside(node.body)]
    if not any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in inside):
        return None
    if any(isinstance(each, (ast.Try, ast.FunctionDef, ast.NamedExpr)) for each in inside):
        return None
    changed = {name for method in methods for name in _stored(method)}
    aliases = [*_aliases(inside)]
    needed: set[str] = set()
    while True:
        before = len(needed)
        body = _kept(node.body, needed, changed)
        for name, parts in aliases:
            if needed & parts:
                needed.add(name)  # what is done to it is done to what matters
        if body is None:
            return None
        if len(needed) == before:
            made = copy.copy(node)
            made.body = body
            return made


def _kept(body: list[ast.stmt], needed: set[str], changed: set[str]) -> list[ast.stmt] | None:
    """The statements that matter, to whose names the needed ones are added.

    ``changed`` is what methods of the object may change.
    """
    out: list[ast.stmt] = []
    for stmt in body:
        if isinstance(stmt, _CHECKS):
            continue  # the program is taken to run
        if not any(isinstance(each, _LEAVING) for each in _inside([stmt])):
            if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant):
                continue
            if needed & (_touched(stmt) | (changed if _calls_own(stmt) else set())):
                needed |= _names(stmt)
                out.append(stmt)
            continue
        made = copy.copy(stmt)
        if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Yield):
            made = ast.copy_location(ast.Expr(ast.Yield(None)), stmt)
        elif isinstance(stmt, ast.Return):
            made = ast.copy_location(ast.Return(None), stmt)
        elif isinstance(stmt, _BLOCKS):
            needed |= _names(_header(stmt))
            for name in ("body", "orelse"):
                part = _kept(getattr(stmt, name, []), needed, changed)
                if part is None:
                    return None
                if name == "body" and not part:
                    part = [ast.copy_location(ast.Pass(), stmt)]
                if hasattr(made, name):
                    setattr(made, name, part)
        elif isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.YieldFrom):
            needed |= _names(stmt)
        elif not isinstance(stmt, (ast.Break, ast.Continue)):
            return None
        out.append(made)
    return out


def _aliases(inside: list[ast.AST]) -> Iterator[tuple[str, set[str]]]:
    """The variables that may be changed in their place, each with what it may be a part of."""
    touched: list[ast.expr] = []
    for node in inside:
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            touched.append(node.value)
        elif isinstance(node, ast.AugAssign):
            touched.append(node.target)
        elif isinstance(node, ast.Call) and not _only_reads(node):
            touched += node.args
    changed = {each.id for each in touched if isinstance(each, ast.Name)}
    for node in inside:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.For):
            targets, value = [node.target], node.iter
        else:
            continue
        if not (isinstance(value, ast.Call) and _only_reads(value)):
            for name in changed.intersection(name for each in targets for name in _names(each)):
                yield name, _names(value)


def _header(stmt: ast.stmt) -> ast.expr | None:
    """What a block itself asks."""
    if isinstance(stmt, ast.For):
        return stmt.iter
    return stmt.test if isinstance(stmt, (ast.While, ast.If)) else None


def _touched(stmt: ast.stmt) -> set[str]:
    """What a statement may give another value, or change: also by handing it to a call."""
    out = _stored(stmt)
    for node in all_nodes(stmt):
        if isinstance(node, ast.Call) and not _only_reads(node):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            out |= {name for part in given for name in _names(part)}
            out |= _names(getattr(node.func, "value", None))
    return out


def _only_reads(call: ast.Call) -> bool:
    """Whether it is a builtin that leaves its arguments as they are."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return name in BUILTINS and name != "next"


def _stored(code: ast.AST) -> set[str]:
    """What code gives another value, or an item of it."""
    out: set[str] = set()
    for node in all_nodes(code):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and not isinstance(
            node.ctx, ast.Load
        ):
            out |= _names(node)
    return out


def _calls_own(stmt: ast.stmt) -> bool:
    """Whether a statement calls a method of the object, or hands the object itself on."""
    return any(
        isinstance(part, ast.Name) and part.id == "self"
        for node in all_nodes(stmt)
        if isinstance(node, ast.Call)
        for part in (getattr(node.func, "value", None), *node.args)
    )


def _names(code: ast.AST | None) -> set[str]:
    """The variables and attributes that are mentioned; `self` alone stands for the object."""
    out: set[str] = set()
    for node in all_nodes(code) if code is not None else ():
        if isinstance(node, ast.Attribute):
            out.add(node.attr)
        elif isinstance(node, ast.Name):
            out.add(node.id)
    return out - {"self"}


def _inside(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for stmt in body:
        yield from all_nodes(stmt)
