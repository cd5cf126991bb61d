"""Fixes that let each worker of a loader, or each rank, read a part of iterable data."""

from __future__ import annotations

from sampler_lint.domain.model import Model
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.loader_fixes import named_in
from sampler_lint.edits.names import fresh_name, imported_module
from sampler_lint.findings import Applicability, Fix
from sampler_lint.syntax.navigation import nodes_in, statements
from sampler_lint.syntax.nodes import Expr, For, Function, Name, Seq, While, Yield


def read_by_worker(iterate: Function, editor: Editor) -> Fix | None:
    """Let an ``__iter__`` go over every so many samples, beginning at the worker's number."""
    asks = named_in(editor, "torch.utils.data", "get_worker_info")
    info, first, step = (fresh_name(iterate, name) for name in ("worker", "first", "step"))
    if asks is None or not _take_part(iterate, first, step, editor):
        return None
    editor.insert_first(
        iterate,
        f"{info} = {asks}()",
        f"{first}, {step} = (0, 1) if {info} is None else ({info}.id, {info}.num_workers)",
    )
    why = "samples that a pass joins may go to different workers"
    return editor.fix("Give each worker its part", Applicability.UNSAFE, why)


def read_by_rank(model: Model, iterate: Function, editor: Editor) -> Fix | None:
    """Let an ``__iter__`` go over every so many samples, beginning at the rank.

    It is asked for where the data is built: a worker that is started anew belongs to no group.
    """
    cls = iterate.cls
    init = cls.method("__init__") if cls is not None else None
    ranks = imported_module(editor.module, "torch.distributed")
    if cls is None or init is None or init.self_name is None or ranks is None:
        return None
    if iterate.self_name is None or {"rank", "world_size"} & model.attributes(cls).names:
        return None
    first, step = f"{iterate.self_name}.rank", f"{iterate.self_name}.world_size"
    if not _take_part(iterate, first, step, editor):
        return None
    editor.store(
        init,
        f"{init.self_name}.rank = {ranks}.get_rank()",
        f"{init.self_name}.world_size = {ranks}.get_world_size()",
    )
    why = "a rank may get one sample more than another"
    return editor.fix("Give each rank its part", Applicability.UNSAFE, why)


def _take_part(iterate: Function, first: str, step: str, editor: Editor) -> bool:
    """Let a method go over every ``step``-th item from ``first`` on, if it can be told how."""
    read = _read_by(iterate)
    takes = named_in(editor, "itertools", "islice")
    if not read or takes is None or any(isinstance(each, Seq) for each in read):
        return False  # a display may stand without parentheses, and is short
    for each in read:
        editor.wrap(each, f"{takes}(", f", {first}, None, {step})")
    return True


def _read_by(iterate: Function) -> list[Expr]:
    """What the loops around each sample that a method gives go over, or what it hands on."""
    if not iterate.yields:
        return [each.value for each in iterate.returns if each.value is not None]
    loops: dict[For | While, None] = {}
    handed_on: list[Expr] = []
    for stmt in statements(iterate.body):
        for node in nodes_in([stmt]):
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
