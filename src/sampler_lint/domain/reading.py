"""Whether what reads the samples of a loader gives each by its number alone."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import FuncRef, Obj
from sampler_lint.domain.copies import COPIED
from sampler_lint.domain.epoch_state import reach
from sampler_lint.domain.model import Model
from sampler_lint.domain.workers import parts
from sampler_lint.remembered import remembered
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import leftmost, owner_of, same, statements, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Class,
    Expr,
    Function,
    Index,
    ModuleFacts,
    Name,
)

#: By which a list or a queue gets one more, or gives one up.
_GROW = frozenset({"append", "appendleft", "extend", "pop", "popleft", "put"})
#: What of a dataset, a transform or a collate function is run for a sample or a batch.
_RUN = ("__getitem__", "__getitems__", "__call__", "forward")


def counts_reads(model: Model, loader: Obj) -> bool:
    """Whether something keeps the samples as they come, or takes what it has by their order.

    What comes first, and when, decides there what a sample is, or what is kept of it. A cache by
    the number of a sample, and a file that is opened once, are no such thing.
    """
    return any(
        _goes_by_turn(model, function)
        for name in COPIED
        for value in model.passed_to(loader, name)
        for part in parts(model, value)
        for function in _run(model, part)
    )


def _run(model: Model, part: Obj | FuncRef) -> Iterator[Function]:
    if isinstance(part, Obj):
        own = reach(model, part.cls, *_RUN).functions if isinstance(part.cls, Class) else ()
    else:
        own = {part.function}
    for each in closure(
        own, lambda one: (f for call in one.calls for f in model.flow.callees(call))
    ):
        if each.name != "__init__":
            yield each


@remembered
def _goes_by_turn(model: Model, function: Function) -> bool:
    for stmt in statements(function.body):
        if isinstance(stmt, (Assign, AugAssign)):
            targets = stmt.targets if isinstance(stmt, Assign) else [stmt.target]
            goes_on = isinstance(stmt, AugAssign)
            for each in targets:
                is_read = any(same(part, each) for part in walk(stmt.value))
                if (goes_on or is_read) and _lasts(each, function):
                    return True
    return any(
        isinstance(call.func, Attr)
        and call.func.name in _GROW
        and _lasts(call.func.value, function)
        for call in function.calls
    )


def _lasts(expr: Expr, function: Function) -> bool:
    """Whether an expression names what outlives a call of a function, and no entry of it."""
    root = leftmost(expr)
    if isinstance(expr, Index) or not isinstance(root, Name):
        return False
    if root.id == function.self_name:
        return isinstance(expr, Attr)
    return isinstance(owner_of(root), (Function, ModuleFacts)) and owner_of(root) is not function
