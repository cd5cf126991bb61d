"""Whether what reads the samples of a loader gives each by its number alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sampler_lint.analysis.values import Ext, FuncRef, Obj
from sampler_lint.catalog.handling import APPENDS, TAKES
from sampler_lint.domain.copies import COPIED
from sampler_lint.domain.epoch_state import reach
from sampler_lint.domain.model import Model
from sampler_lint.domain.workers import WORKED, parts
from sampler_lint.remembered import remembered
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import leftmost, owner_of, same, statements, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Index,
    ModuleFacts,
    Name,
    dotted,
    last_name,
)


def counts_reads(model: Model, loader: Obj, iterated: Expr) -> bool:
    """Whether something keeps the samples as they come, or takes what it has by their order.

    What comes first, and when, decides there what a sample is, or what is kept of it. A cache by
    the number of a sample, and a file that is opened once, are no such thing.
    """
    around = (v.cls for v in (loader, *model.flow.values(iterated)) if isinstance(v, Obj))
    for cls in around:
        for function in reach(model, cls, "__iter__").functions if isinstance(cls, Class) else ():
            if any(_grows(model, call, function, APPENDS) for call in function.calls):
                return True
    return any(
        _goes_by_turn(model, function)
        for name in COPIED
        for value in model.passed_to(loader, name)
        for part in parts(model, value)
        for function in _run(model, part)
    )


def _run(model: Model, part: Obj | FuncRef) -> Iterator[Function]:
    if isinstance(part, Obj):
        own = reach(model, part.cls, *WORKED).functions if isinstance(part.cls, Class) else ()
    else:
        own = {part.function}
    for each in closure(
        own, lambda one: (f for call in one.calls for f in model.flow.callees(call))
    ):
        if each.name != "__init__":
            yield each


@remembered
def _goes_by_turn(model: Model, function: Function) -> bool:
    given = {param.name for param in function.params} - {function.self_name}
    for stmt in statements(function.body):
        if isinstance(stmt, (Assign, AugAssign)):
            targets = stmt.targets if isinstance(stmt, Assign) else [stmt.target]
            goes_on = isinstance(stmt, AugAssign)
            is_given = bool({*map(dotted, walk(stmt.value))} & given)
            for each in targets:
                reads = [*walk(stmt.value), *(function.reads if is_given else ())]
                if isinstance(each, Index) and is_given and _lasts(each, function):
                    return True
                is_read = any(same(part, each) for part in reads if part is not each)
                if (goes_on or is_read) and _lasts(each, function):
                    return True
    return any(
        _grows(model, call, function, APPENDS | TAKES) or _goes_on(call) for call in function.calls
    )


def _goes_on(call: Call) -> bool:
    """Whether a call opens a file to write behind what is in it."""
    modes = [arg.value.value for arg in call.args if isinstance(arg.value, Const)]
    return last_name(call.func) == "open" and not {"a", "ab", "a+", "at"}.isdisjoint(modes)


def _grows(model: Model, call: Call, function: Function, how: Collection[str]) -> bool:
    """Whether a call changes, or goes on with, what outlives the call of a function around it."""
    if last_name(call.func) == "next":
        return "pop" in how and any(_lasts(each, function) for each in call.positional[:1])
    func = call.func
    if not isinstance(func, Attr) or func.name not in how or not _lasts(func.value, function):
        return False
    return not any(isinstance(value, Ext) for value in model.flow.values(func.value))  # `np.append`


def _lasts(expr: Expr, function: Function) -> bool:
    """Whether an expression names what outlives a call of a function, and no entry by number."""
    given = {param.name for param in function.params} - {function.self_name}
    if isinstance(expr, Index) and {*map(dotted, walk(expr.key))} & _made_of(given, function):
        return False
    root = leftmost(expr)
    inner = expr.value if isinstance(expr, (Attr, Index)) else None
    if isinstance(inner, Call) and isinstance(inner.func, Name) and inner.positional:
        return _lasts(inner.positional[0], function)  # `type(self)`
    if not isinstance(root, Name) or root.id in given:
        return False
    if root.id == function.self_name:
        return True
    return isinstance(owner_of(root), (Function, ModuleFacts)) and owner_of(root) is not function


def _made_of(given: set[str], function: Function) -> set[str]:
    """Names, and those that a function works out of them: ``key`` in ``key = f"{x.dtype}"``."""

    def makes(name: str) -> Iterator[str]:
        for other, bound in function.bindings.items():
            values = [each.value for each in bound]
            if all(v is not None and name in map(dotted, walk(v)) for v in values):
                yield other

    return {*closure(given, makes)}
