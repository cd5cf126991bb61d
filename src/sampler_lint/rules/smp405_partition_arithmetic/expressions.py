"""Slips in a sampler's expressions that need no numbers to be seen."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.analysis.origins import Hop, only
from sampler_lint.domain.batches import is_list
from sampler_lint.domain.concepts import BATCH_SIZE, RANGES, RANK
from sampler_lint.domain.conditions import tests
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model
from sampler_lint.edits.editor import Fixer, replacing
from sampler_lint.edits.names import text_of
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._trials import slice_of
from sampler_lint.syntax.lower import expression
from sampler_lint.syntax.navigation import nodes_in, same, statements, unparse, walk
from sampler_lint.syntax.nodes import (
    ORDERED,
    Attr,
    Bin,
    Call,
    Choice,
    Compare,
    Const,
    Expr,
    For,
    Function,
    Index,
    Name,
    Simple,
    Stmt,
    Try,
    last_name,
)
from sampler_lint.workspace.project import Module


def slips(model: Model, module: Module, function: Function) -> Iterator[Suspect]:
    """What is wrong in a function whatever the numbers are."""
    for stmt in statements(function.body):
        if isinstance(stmt, For):
            yield from _first_never_removed(model, module, function, stmt)
        for node in nodes_in([stmt]):
            yield from _by_rank(model, module, node, stmt)
            if isinstance(node, Index):
                yield from _minus_zero(model, module, function, node, stmt)
            elif isinstance(node, Compare):
                yield from _list_as_number(model, module, node)


def _by_rank(model: Model, module: Module, node: Expr, stmt: Stmt) -> Iterator[Suspect]:
    """``x[first::rank]``, ``range(first, n, rank)``, ``n // rank``: the first rank is 0."""
    match node:
        case Bin(op="Mod" | "FloorDiv" | "Div", right=Name() | Attr() as by):
            name, fails = last_name(by), "ZeroDivisionError"
        case Call(positional=[_, _, Name() | Attr() as by]) if RANGES.is_call(node):
            name, fails = last_name(by), "ValueError"
        case Index() if RANK.is_mentioned(node):
            key = slice_of(module, node)
            step = None if key is None else key.step
            name, fails = getattr(step, "attr", getattr(step, "id", None)), "ValueError"
        case _:
            return
    if not RANK.says(name) or _asks_rank(model, stmt):
        return
    yield Suspect(
        module,
        node,
        f"`{text_of(module.source, node)}` goes by `{name}`, which is 0 on the first rank",
        effect=f"{fails} on rank 0, and other shares than the ranks are to have",
        advice="go by the number of ranks",
    )


def _asks_rank(model: Model, stmt: Stmt) -> bool:
    """Whether something on the way to a statement, or in it, asks for the rank, or takes errors."""
    asked = [test for test, _ in tests(model, stmt)]
    asked += [node.test for node in nodes_in([stmt]) if isinstance(node, Choice) and node.test]
    return any(map(RANK.is_mentioned, asked)) or any(
        isinstance(outer, Try) for outer in stmt.ancestors()
    )


def _first_never_removed(
    model: Model, module: Module, function: Function, loop: For
) -> Iterator[Suspect]:
    """``for i in range(len(x) - 1, 0, -1)`` that takes ``x[i]`` out, and nothing else does."""
    call = loop.iter
    if not (isinstance(call, Call) and last_name(call.func) == "range" and len(call.args) == 3):
        return
    start, stop, step = call.positional
    if not (_is(stop, 0) and _is(step, -1) and isinstance(loop.target, Name)):
        return
    if not (isinstance(start, Bin) and start.op == "Sub" and _is(start.right, 1)):
        return
    size = only(model.flow, start.left, Hop.ASSIGNED)
    if not (isinstance(size, Call) and last_name(size.func) == "len" and len(size.args) == 1):
        return
    items, index = size.args[0].value, loop.target.id
    others = [stmt for stmt in statements(function.body) if not loop.encloses(stmt)]
    if any(_removes(stmt, items) for stmt in others):
        return  # it may be the first item that is taken out there
    if any(_removes(stmt, items, index) for stmt in statements(loop.body)):
        text = unparse(items)
        yield Suspect(
            module,
            call,
            f"this loop stops before index 0, so the first item of `{text}` is never removed",
            fix=_write(stop, "-1"),
            effect="an empty first item stays: later code divides by its length, or reads nothing",
            advice=f"use `range(len({text}) - 1, -1, -1)`",
        )


def _removes(stmt: Stmt, items: Expr, index: str | None = None) -> bool:
    """Whether a statement takes an item out, with ``index`` the one that is called so."""
    if isinstance(stmt, Simple) and stmt.kind == "delete":
        return any(
            isinstance(part, Index)
            and same(part.value, items)
            and (index is None or _is_name(part.key, index))
            for part in stmt.parts
        )
    return any(
        isinstance(node, Call)
        and isinstance(node.func, Attr)
        and node.func.name == "pop"
        and same(node.func.value, items)
        and (index is None or (bool(node.args) and _is_name(node.args[0].value, index)))
        for node in nodes_in([stmt])
    )


def _minus_zero(
    model: Model, module: Module, function: Function, node: Index, stmt: Stmt
) -> Iterator[Suspect]:
    """``x[:-k]`` where ``k`` is a remainder that may be 0."""
    key = slice_of(module, node)
    if key is None or key.lower is not None or key.step is not None:
        return
    upper = key.upper
    if not (isinstance(upper, ast.UnaryOp) and isinstance(upper.op, ast.USub)):
        return
    count = expression(upper.operand, function, stmt)
    value, name = only(model.flow, count, Hop.ASSIGNED | Hop.ATTRIBUTE), last_name(count)
    if isinstance(value, Bin) and value.op == "Mod":
        shown = ast.unparse(upper.operand)
        if name is None:
            yield _minus_zero_suspect(module, node, f"({shown})")
        elif not _asks(function, name):
            yield _minus_zero_suspect(module, node, shown)


def _minus_zero_suspect(module: Module, node: Index, count: str) -> Suspect:
    fix = None
    if isinstance(node.value, (Name, Attr)):
        items = text_of(module.source, node.value)
        fix = _write(node, f"{items}[: len({items}) - {count}]")
    return Suspect(
        module,
        node,
        f"`{count}` is a remainder and may be 0, and `[:-0]` is empty",
        fix=fix,
        effect="whenever it divides evenly, nothing is yielded",
        advice=f"slice up to `len(…) - {count}`",
    )


def _write(node: Expr, code: str) -> Fixer:
    return replacing(node, code, f"Write `{code}`")


def _asks(function: Function, name: str) -> bool:
    """Whether any condition of the function looks at the name."""
    for stmt in statements(function.body):
        test = getattr(stmt, "test", None)
        if test is not None and any(_says(node, name) for node in walk(test)):
            return True
        for node in nodes_in([stmt]):
            choice = getattr(node, "test", None)
            if isinstance(choice, Expr) and any(_says(n, name) for n in walk(choice)):
                return True
    return False


def _list_as_number(model: Model, module: Module, node: Compare) -> Iterator[Suspect]:
    """``batch == self.batch_size`` for a list."""
    if len(node.ops) != 1 or node.ops[0] not in ORDERED | {"Eq"}:
        return
    left, right = node.left, node.rights[0]
    if isinstance(left, Name) and _is_size(right) and is_list(model, left):
        text, size = unparse(left), unparse(right)
        if node.ops[0] == "Eq":
            result = "a list never equals a number, so no batch is ever complete"
        else:
            result = "comparing a list with a number raises TypeError"
        yield Suspect(
            module,
            node,
            f"`{text}` is a list, compared with the number `{size}`",
            fix=_write(left, f"len({text})"),
            effect=result,
            advice=f"compare `len({text})` with `{size}`",
            hides=node.ops[0] != "Eq",
        )


def _is_size(expr: Expr) -> bool:
    known = catalog.known(DISTRIBUTED_SAMPLER)
    assert known is not None
    # What torch's own sampler keeps its counts in.
    counts = known.attributes.difference(known.params)
    return BATCH_SIZE.names(expr) or (last_name(expr) or "").lstrip("_") in counts


def _is(expr: Expr, number: int) -> bool:
    return isinstance(expr, Const) and type(expr.value) is int and expr.value == number


def _is_name(expr: Expr, name: str) -> bool:
    return isinstance(expr, Name) and expr.id == name


def _says(expr: Expr, name: str) -> bool:
    return (isinstance(expr, Name) and expr.id == name) or (
        isinstance(expr, Attr) and expr.name == name
    )
