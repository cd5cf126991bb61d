"""What the decorators of the tree make of what a function returns."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import ClassRef, FuncRef, Value
from sampler_lint.syntax.navigation import self_class, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Choice,
    Class,
    Comp,
    Expr,
    Function,
    Map,
    Name,
    Seq,
)


def returns_another(decorator: Value) -> bool:
    """Whether what a decorator puts in a function's place makes something else of its result.

    ``return Prefetcher(fn(*args))`` does; ``result = fn(*args)`` that is returned does not.
    """
    return any(
        _is_made_of_it(each, wrapper, decorator)
        for wrapper in _wrappers(decorator)
        for stmt in wrapper.returns
        if stmt.value is not None
        for each in _options(stmt.value)
    )


def calls_of_decorated(decorator: Value) -> Iterator[Call]:
    """The calls of what it decorates that a decorator of the tree puts in its place."""
    for wrapper in _wrappers(decorator):
        yield from (call for call in wrapper.calls if _is_its_call(call, decorator))


def _wrappers(decorator: Value) -> Iterator[Function]:
    """What is called in place of a decorated function."""
    if isinstance(decorator, ClassRef) and isinstance(decorator.cls, Class):
        yield from (one for one in decorator.cls.methods if one.name == "__call__")
    elif isinstance(decorator, FuncRef):
        maker = decorator.function
        inside = (one for one in maker.module.inside(maker) if one.outer is maker)
        yield from (one for one in inside if is_returned(one, maker))


def is_returned(function: Function, outer: Function) -> bool:
    """Whether a function gives back another that is defined in it."""
    return any(
        isinstance(each.value, Name) and each.value.id == function.name for each in outer.returns
    )


def _options(expr: Expr) -> list[Expr]:
    return [*expr.options] if isinstance(expr, Choice) else [expr]


def _is_made_of_it(expr: Expr, wrapper: Function, decorator: Value) -> bool:
    if isinstance(expr, Name):
        made = wrapper.bindings.get(expr.id, ())
        return any(
            each.value is not None
            and each.how == "assign"
            and not isinstance(each.value, Name)
            and _is_made_of_it(each.value, wrapper, decorator)
            for each in made
        )
    if not isinstance(expr, (Call, Seq, Map, Comp)) or _is_its_call(expr, decorator):
        return False
    return any(
        _is_its_call(part, decorator)
        or (
            isinstance(part, Name)
            and any(
                each.value is not None and not each.path and _is_its_call(each.value, decorator)
                for each in wrapper.bindings.get(part.id, ())
            )
        )
        for part in walk(expr)
    )


def _is_its_call(expr: Expr, decorator: Value) -> bool:
    """Whether an expression calls what is decorated: a parameter, or what ``self`` keeps."""
    if not isinstance(expr, Call):
        return False
    if isinstance(decorator, FuncRef):
        params = decorator.function.params
        name = expr.func.id if isinstance(expr.func, Name) else None
        return any(param.name == name for param in params)
    assert isinstance(decorator, ClassRef)
    return isinstance(expr.func, Attr) and self_class(expr.func.value) is decorator.cls
