"""Tries what a length might have been meant to be, in the small worlds of :mod:`.trials`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from sampler_lint.model.facts import Class, Expr
from sampler_lint.model.project import Module
from sampler_lint.model.running.budget import BUDGET
from sampler_lint.model.running.interpreter import Interpreter
from sampler_lint.model.running.trials import is_as_long_as_it_says


def first_true(
    interpreter: Interpreter, cls: Class, module: Module, returned: Expr, candidates: Iterable[str]
) -> str | None:
    """The first candidate that, returned instead, is what every rank hands out in every world."""
    BUDGET.open()
    tree = interpreter.names_of(module).tree
    place = returned.row, returned.col
    stmt = next(
        (
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Return)
            and node.value is not None
            and (node.value.lineno, node.value.col_offset) == place
        ),
        None,
    )
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
