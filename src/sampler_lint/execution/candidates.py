"""Tries what a length might have been meant to be, in the small worlds of :mod:`.trials`."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable

from sampler_lint.execution.budget import BUDGET
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.execution.trials import is_as_long_as_it_says
from sampler_lint.syntax.nodes import Class, Expr
from sampler_lint.workspace.project import Module


def first_true(
    interpreter: Interpreter, cls: Class, module: Module, returned: Expr, candidates: Iterable[str]
) -> str | None:
    """The first candidate that, returned instead, is what every rank yields in every world."""
    BUDGET.open()
    tree = interpreter.names_of(module).tree
    stmt = _returns(tree).get((returned.row, returned.col))
    if stmt is None:
        return None
    original = stmt.value
    try:
        for code in candidates:
            stmt.value = ast.parse(code, mode="eval").body
            if is_as_long_as_it_says(interpreter, cls):
                return code
    finally:
        stmt.value = original
    return None


@functools.lru_cache(maxsize=1)
def _returns(tree: ast.Module) -> dict[tuple[int, int], ast.Return]:
    """The ``return`` statements of a file by where their values begin."""
    return {
        (node.value.lineno, node.value.col_offset): node
        for node in ast.walk(tree)
        if isinstance(node, ast.Return) and node.value is not None
    }
