"""Attributes that a class sets by name: ``setattr(self, f"{phase}_sampler", sampler)``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import Formatter
from typing import NamedTuple

from sampler_lint.analysis.arguments import literal
from sampler_lint.syntax.navigation import self_class, walk
from sampler_lint.syntax.nodes import Attr, Bin, Call, Class, Const, Expr, Other, last_name


class NamedStore(NamedTuple):
    """A place that sets an attribute of ``self`` by name."""

    name: Expr
    value: Expr

    @property
    def is_any(self) -> bool:
        """Whether nothing of the name is written out."""
        return not any(isinstance(node, Const) for node in walk(self.name))


def named_stores(cls: Class) -> list[NamedStore]:
    """The calls by which the code of a class sets its own attributes by name.

    ``setattr(self, name, value)``, and ``self.__dict__.update(name=value)``.
    """
    found = [
        NamedStore(*call.positional[1:])
        for scope in (cls, *cls.module.inside(cls))
        for call in scope.calls
        if (last_name(call.func) or "").strip("_") == "setattr"
        and len(call.positional) == 1 + len(NamedStore._fields)
        and self_class(call.positional[0]) is cls
    ]
    for call in _fills(cls):
        found += (
            NamedStore(literal(arg.value, arg.keyword), arg.value)
            for arg in call.args
            if arg.keyword is not None
        )
    return found


def fills_dict(cls: Class) -> bool:
    """Whether the code of a class fills its own attributes by ``self.__dict__.update(table)``."""
    return any(arg.keyword is None for call in _fills(cls) for arg in call.args)


def _fills(cls: Class) -> Iterator[Call]:
    for scope in (cls, *cls.module.inside(cls)):
        for call in scope.calls:
            if (
                isinstance(call.func, Attr)
                and call.func.name == "update"
                and _is_dict_of_self(call.func.value, cls)
            ):
                yield call


def _is_dict_of_self(expr: Expr, cls: Class) -> bool:
    if isinstance(expr, Attr):
        return expr.name == "__dict__" and self_class(expr.value) is cls
    return (
        isinstance(expr, Call)
        and last_name(expr.func) == "vars"
        and [self_class(given) for given in expr.positional] == [cls]
    )


def may_spell(computed: Expr, name: str) -> bool:
    """Whether a computed string may be a name, by its parts that are written out."""
    if isinstance(computed, Const):
        return bool(computed.value == name)
    if not isinstance(computed, (Bin, Other, Call)):
        return True
    written = [
        re.escape(part)
        for node in walk(computed)
        if isinstance(node, Const) and isinstance(node.value, str)
        for part in _written_in(node.value)
    ]
    return re.fullmatch(".*".join(["", *written, ""]), name) is not None


def _written_in(template: str) -> list[str]:
    """What a template says besides the places for values: ``{}`` and ``%s``."""
    try:
        parts = [literal for literal, *_ in Formatter().parse(template)]
    except ValueError:
        parts = [template]
    return [
        piece[1:] if number else piece
        for part in parts
        for number, piece in enumerate(part.split("%"))
    ]
