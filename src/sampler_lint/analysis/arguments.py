"""What a call passes for which parameter."""

from __future__ import annotations

from typing import Any

from sampler_lint.analysis.values import Table
from sampler_lint.syntax.nodes import Attr, Call, Const, Expr, Function, Param, Seq

MISSING = object()
"""A parameter that a call does not fill (its default holds)."""


def passed(function: Function, param: Param, call: Call, *, is_bound: bool) -> Any:
    """What ``call`` passes for ``param``: an expression, :data:`MISSING`, or None if unclear."""
    for arg in call.args:
        if arg.keyword == param.name:
            return arg.value
    positional = [p for p in function.params if p.is_positional]
    if is_bound and positional:
        positional = positional[1:]
    if param in positional:
        index = positional.index(param)
        given = call.positional
        if index < len(given):
            return given[index]
        if call.has_star:
            return None
    if call.has_double_star:
        return None
    return MISSING


def complete(site: Call, call: Call) -> Call:
    """What calling ``partial(function, …)``, built at ``site``, calls: both calls' arguments.

    It stands where ``call`` does, whose keywords replace those of the partial. With ``site`` for
    both it is the call that needs no argument more, where the partial stands.
    """
    function, *given = site.args
    added = [] if call is site else call.args
    keywords = {arg.keyword for arg in added if arg.keyword}
    made = Call()
    made.row, made.col, made.end_row, made.end_col = call.row, call.col, call.end_row, call.end_col
    made.scope, made.stmt = call.scope, call.stmt
    made.func = function.value
    made.args = [arg for arg in given if arg.keyword not in keywords] + added
    return made


def field_names(call: Call) -> tuple[str, ...] | None:
    """The fields that ``namedtuple("Name", …)`` is called with; None if they are not literal."""
    given = call.positional[1] if len(call.positional) > 1 else call.keyword("field_names")
    if isinstance(given, Const) and isinstance(given.value, str):
        return tuple(given.value.replace(",", " ").split())
    if not isinstance(given, Seq):
        return None
    names = [item.value for item in given.items if isinstance(item, Const)]
    if len(names) != len(given.items) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(str(name) for name in names)


def as_tuple(names: tuple[str, ...], call: Call) -> Seq | None:
    """The display of what a named tuple with these fields is built of; None if it is unclear."""
    items = dict(zip(names, call.positional, strict=False))
    items.update({arg.keyword: arg.value for arg in call.args if arg.keyword})
    if call.has_star or call.has_double_star or set(items) != set(names):
        return None
    made = Seq()
    made.row, made.col, made.end_row, made.end_col = call.row, call.col, call.end_row, call.end_col
    made.kind, made.items, made.scope = "tuple", [items[name] for name in names], call.scope
    return made


def given_as(call: Call, params: tuple[str, ...], name: str) -> Expr | None:
    """What ``super().__init__(…)`` or ``Base.__init__(self, …)`` passes for a parameter."""
    given = call.keyword(name)
    if given is not None:
        return given
    positional = call.positional
    if isinstance(call.func, Attr) and not isinstance(call.func.value, Call):
        positional = positional[1:]  # Base.__init__(self, …)
    index = params.index(name)
    return positional[index] if index < len(positional) else None


def table_entry(table: Table, name: str) -> Expr | None:
    """The value that a dict display or ``dict(…)`` has for a key."""
    if isinstance(table.node, Call):
        return table.node.keyword(name)
    for key, value in table.node.items:
        if isinstance(key, Const) and key.value == name:
            return value
    return None


def is_closed(table: Table) -> bool:
    """Whether every key of a dict display or ``dict(…)`` is seen."""
    if isinstance(table.node, Call):
        return not table.node.has_double_star
    return all(isinstance(key, Const) for key, _ in table.node.items)
