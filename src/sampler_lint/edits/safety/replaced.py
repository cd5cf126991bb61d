"""What a file puts in the place of a variable, or of a ``set_epoch``."""

from __future__ import annotations

import ast

from sampler_lint.domain.concepts import ASKS_BY_NAME, NAMESPACES
from sampler_lint.domain.model import Model
from sampler_lint.edits.safety.meaning import original
from sampler_lint.edits.safety.names import path
from sampler_lint.edits.safety.texts import Changed
from sampler_lint.remembered import remembered
from sampler_lint.workspace.project import Module


@remembered
def stored_by_name(model: Model, module: Module) -> str | None:
    """A place that gives variables other values without naming them."""
    return next(
        (
            f"line {node.lineno} may replace a variable"
            for node in original(model, module).tree.nodes
            if isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Call)
            and path(node.value.func) in NAMESPACES.called
        ),
        None,
    )


@remembered
def patched_by_name(model: Model, module: Module) -> str | None:
    """A call that is told the name of ``set_epoch``, and may put something in its place."""
    for node in original(model, module).tree.nodes:
        asks = isinstance(node, ast.Call) and path(node.func) in ASKS_BY_NAME.called - {"setattr"}
        given = node.args if isinstance(node, ast.Call) and not asks else []
        if any(isinstance(one, ast.Constant) and one.value == "set_epoch" for one in given):
            return f"line {getattr(node, 'lineno', 0)} may replace `set_epoch`"
    return None


def replaced(model: Model, module: Module, changed: Changed) -> str | None:
    """A line that puts something else in the place of a ``set_epoch``, or reads what was put there.

    What the fix itself rewrites is no longer there.
    """
    stores = _replaced_setters(model, module)
    for row, start, end in stores:
        if not any(edit.start < end and start < edit.end for edit in changed.edits):
            return f"line {row} puts something else in the place of `set_epoch`"
    if not stores:
        return None
    tree = original(model, module).tree
    for one in tree.nodes:
        if isinstance(one, ast.Attribute) and one.attr == "set_epoch":
            above = tree.parents[one]
            is_called = isinstance(above, ast.Call) and above.func is one
            if isinstance(one.ctx, ast.Load) and not is_called:
                return f"line {one.lineno} reads what is in the place of `set_epoch`"
    return None


@remembered
def _replaced_setters(model: Model, module: Module) -> list[tuple[int, int, int]]:
    """The statements of a file that assign to a ``set_epoch``: their line, start and end."""
    tree = original(model, module).tree
    stores = (
        (one, tree.statement(one))
        for one in tree.nodes
        if isinstance(one, ast.Attribute) and one.attr == "set_epoch"
        if isinstance(one.ctx, ast.Store)
    )
    return [(one.lineno, *tree.spans[stmt or one]) for one, stmt in stores]
