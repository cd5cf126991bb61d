"""Fixes that let each worker of a loader read a part of iterable data."""

from __future__ import annotations

from sampler_lint.edits.editor import Editor
from sampler_lint.edits.loader_fixes import named_in
from sampler_lint.edits.names import fresh_name
from sampler_lint.findings import Applicability, Fix
from sampler_lint.syntax.navigation import expressions, nodes_in, statements, walk
from sampler_lint.syntax.nodes import Expr, For, Function, Name, Seq, While, Yield


def read_by_worker(iterate: Function, editor: Editor) -> Fix | None:
    """Let an ``__iter__`` go over every so many samples, beginning at the worker's number."""
    read = _read_by(iterate)
    asks = named_in(editor, "torch.utils.data", "get_worker_info")
    takes = named_in(editor, "itertools", "islice")
    if not read or asks is None or takes is None:
        return None
    if any(isinstance(each, Seq) for each in read):
        return None  # it may stand without parentheses, and is short
    info, first, step = (fresh_name(iterate, name) for name in ("worker", "first", "step"))
    for each in read:
        editor.wrap(each, f"{takes}(", f", {first}, None, {step})")
    editor.insert_first(
        iterate,
        f"{info} = {asks}()",
        f"{first}, {step} = (0, 1) if {info} is None else ({info}.id, {info}.num_workers)",
    )
    why = "samples that a pass joins may go to different workers"
    return editor.fix("Give each worker its part", Applicability.UNSAFE, why)


def _read_by(iterate: Function) -> list[Expr]:
    """What the loops around each sample that a method gives go over, or what it hands on."""
    if not iterate.yields:
        return [each.value for each in iterate.returns if each.value is not None]
    loops: dict[For | While, None] = {}
    handed_on: list[Expr] = []
    for stmt in statements(iterate.body):
        for node in (inner for expr in expressions(stmt) for inner in walk(expr)):
            if not isinstance(node, Yield):
                continue
            around = [each for each in (stmt, *stmt.ancestors()) if isinstance(each, (For, While))]
            if around:
                loops[around[-1]] = None
            elif node.value is not None:
                handed_on.append(node.value)
    filled = {node.id for node in nodes_in(statements(loops)) if isinstance(node, Name)}
    is_rest = [isinstance(each, Name) and each.id in filled for each in handed_on]
    if not loops:
        return handed_on
    # What a loop over its part leaves in a list is of that part.
    return [each.iter for each in loops if isinstance(each, For)] if all(is_rest) else []
