"""Attributes that are set by name: ``setattr(x, "seed", 3)``, ``override(args, seed=3)``.

What is set so is a store like any other. The function that sets what it is given by keyword, or in
a dict, is found by its name and may stand in another file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sampler_lint.syntax.navigation import leftmost, owner_of, same, self_class, statements
from sampler_lint.syntax.nodes import (
    Arg,
    Attr,
    Call,
    Const,
    Expr,
    For,
    Function,
    Imported,
    Map,
    Name,
    Seq,
    Store,
    last_name,
)


class _Setter(NamedTuple):
    """A function that sets attributes of what one parameter is given, as another one says."""

    function: Function
    holder: str
    table: str


def stores_by_name(calls_named: Callable[[str], Sequence[Call]]) -> Iterator[tuple[str, Store]]:
    """The stores by a name that is written down, each with it, but for a method's own instance."""
    known: set[_Setter] = set()
    calls: list[tuple[Call, Expr, Sequence[Arg]]] = [
        (call, call.positional[0], _looped(call))
        for call in calls_named("setattr")
        if len(call.positional) == 3
    ]
    for call in calls_named("update"):
        owner = _owner_of_names(call)
        if owner is not None:
            calls.append((call, owner, call.args))
    while calls:
        call, holder, given = calls.pop()
        for arg in given:
            for name, value in _entries(arg):
                if call.stmt is not None and self_class(holder) is None:
                    target = Attr.at(call)
                    target.value, target.name = holder, name
                    target.scope, target.stmt = call.scope, call.stmt
                    yield name, Store(target, call.stmt, call.scope, "assign", value, ())
            setter = _setter(call, holder, arg)
            if setter is not None and setter not in known:
                known.add(setter)
                calls += _told(setter, calls_named(setter.function.name))


def _looped(call: Call) -> list[Arg]:
    """What ``setattr(x, name, value)`` takes names and values from: the dict of a loop around it.

    Of a written name that is the name and the value.
    """
    _, name, value = call.positional
    if isinstance(name, Const):
        return [Arg(value, name.value, 0)] if isinstance(name.value, str) else []
    return [
        Arg(loop.iter.func.value, None, 2)
        for loop in statements(call.scope.body)
        if isinstance(loop, For)
        and isinstance(loop.iter, Call)
        and isinstance(loop.iter.func, Attr)
        and loop.iter.func.name == "items"
        and isinstance(loop.target, Seq)
        and len(loop.target.items) == 2
        and same(loop.target.items[0], name)
    ]


def _owner_of_names(call: Call) -> Expr | None:
    """The ``x`` of ``vars(x).update(…)`` and ``x.__dict__.update(…)``."""
    table = call.func.value if isinstance(call.func, Attr) else None
    if isinstance(table, Call) and last_name(table.func) == "vars" and len(table.positional) == 1:
        return table.positional[0]
    return table.value if isinstance(table, Attr) and table.name == "__dict__" else None


def _entries(arg: Arg) -> Iterator[tuple[str, Expr]]:
    """The names and values that an argument writes out."""
    if arg.keyword is not None:
        yield arg.keyword, arg.value
    elif isinstance(arg.value, Map):
        for key, value in arg.value.items:
            if isinstance(key, Const) and isinstance(key.value, str):
                yield key.value, value
    elif isinstance(arg.value, Call) and last_name(arg.value.func) == "dict":
        yield from ((each.keyword, each.value) for each in arg.value.args if each.keyword)


def _setter(call: Call, holder: Expr, arg: Arg) -> _Setter | None:
    """The function that a call is in, if both the object and the names are what it is given."""
    function = call.scope
    if not isinstance(function, Function) or function.cls is not None or arg.keyword is not None:
        return None
    if not (_is_param(holder, function) and _is_param(arg.value, function)):
        return None
    return _Setter(function, holder.id, arg.value.id)  # type: ignore[attr-defined]


def _is_param(expr: Expr, function: Function) -> bool:
    return isinstance(expr, Name) and owner_of(expr) is function and bool(function.param(expr.id))


def _told(setter: _Setter, calls: Sequence[Call]) -> Iterator[tuple[Call, Expr, Sequence[Arg]]]:
    """The calls of a function that sets by name: each with the object, and what names are of."""
    function = setter.function
    by_place = [param.name for param in function.params if param.is_positional]
    table = function.param(setter.table)
    for call in calls:
        if not _is_of_function(call):
            continue
        given = dict(zip(by_place, call.positional, strict=False))
        given |= {arg.keyword: arg.value for arg in call.args if arg.keyword}
        holder = given.pop(setter.holder, None)
        if holder is None:
            continue
        if table is not None and table.kind == "kwarg":
            rest = [arg for arg in call.args if arg.stars == 2]
            rest += [arg for arg in call.args if arg.keyword and not function.param(arg.keyword)]
            yield call, holder, rest
        elif setter.table in given:
            yield call, holder, [Arg(given[setter.table], None, 2)]


def _is_of_function(call: Call) -> bool:
    """Whether a call is of a function, by its name or that of its module, and of no method."""
    if isinstance(call.func, Name):
        return True
    start = leftmost(call.func)
    owner = owner_of(start) if isinstance(start, Name) else None
    bound = owner.bindings[start.id] if owner and isinstance(start, Name) else ()
    return any(isinstance(one.payload, Imported) for one in bound)
