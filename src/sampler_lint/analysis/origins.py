"""The backward slice of a value inside a class: through locals, arguments, helpers, properties."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Expr,
    Function,
    Name,
    children,
    dotted,
    last_name,
    self_class,
)


def origins(expr: Expr, methods: Collection[Function]) -> Iterator[Expr]:
    """The leaves that a value is computed from, where ``methods`` are what runs in the class.

    A leaf is a literal, an attribute (the whole chain) or whatever is not followed further. What
    has several assignments or callers has the leaves of all.
    """
    named: dict[str, list[Function]] = {}
    for method in methods:
        named.setdefault(method.name, []).append(method)
    todo, seen = [expr], set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        before = _before(node, methods, named)
        if before is None:
            yield node
        else:
            todo += before


def _before(
    node: Expr, methods: Collection[Function], named: dict[str, list[Function]]
) -> list[Expr] | None:
    if isinstance(node, Name):
        return _assigned(node, methods)
    if isinstance(node, Attr):
        found = named.get(node.name, []) if self_class(node.value) is not None else []
        if any(
            last_name(d) in {"property", "cached_property"} for f in found for d in f.decorators
        ):
            return _returned(found)
        return None
    if isinstance(node, Call):
        func = node.func
        if isinstance(func, Attr) and self_class(func.value) is not None:
            return _returned(named.get(func.name, []))
        if dotted(func) in _OF_ARGUMENTS:
            return [arg.value for arg in node.args]
        return None
    return children(node) or None


#: Builtins that compute from their arguments alone.
_OF_ARGUMENTS = frozenset({"int", "abs", "hash", "sum", "max", "min", "tuple", "list", "str"})


def _returned(found: list[Function]) -> list[Expr] | None:
    values = [r.value for function in found for r in function.returns if r.value is not None]
    return values or None


def _assigned(name: Name, methods: Collection[Function]) -> list[Expr] | None:
    """What the assignments of a name, or the calls within the class, give it."""
    scope = name.scope
    while name.id not in scope.bindings:
        if scope.outer is None:
            return None
        scope = scope.outer
    found: list[Expr] = []
    for binding in scope.bindings[name.id]:
        if binding.how in {"assign", "aug"} and not binding.path and binding.value is not None:
            found.append(binding.value)
        elif binding.how == "param" and isinstance(scope, Function):
            given = _given(scope, name.id, methods)
            if given is None:
                return None
            found += given
        else:
            return None
    return found or None


def _given(function: Function, name: str, methods: Collection[Function]) -> list[Expr] | None:
    """What the methods pass to another of theirs; None where one call is not clear."""
    param = function.param(name)
    if param is None or function.cls is None:
        return None
    found: list[Expr] = []
    for method in methods:
        for call in method.calls:
            if (
                isinstance(call.func, Attr)
                and call.func.name == function.name
                and self_class(call.func.value) is not None
            ):
                value = passed(function, param, call, is_bound=not function.is_static)
                value = param.default if value is MISSING else value
                if not isinstance(value, Expr):
                    return None
                found.append(value)
    return found or None
