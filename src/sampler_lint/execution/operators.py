"""Operators and comparisons on the interpreter's values, charged before they are applied.

Between kinds of values that are not named here an operator is not known: that is so for bytes,
whose ``%`` and ``*`` make as many as they like.
"""

from __future__ import annotations

import ast
import bisect
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sampler_lint.execution.budget import BUDGET, LARGEST_EXPONENT, LARGEST_NUMBER
from sampler_lint.execution.errors import CannotTellError, RaisedError
from sampler_lint.execution.values import UNKNOWN, Array, Size, Told, plain, weigh

_NUMBERS = frozenset({int, float, bool})
_MORE_THAN_NUMBERS = frozenset({Size, Told})
_SCALARS = _NUMBERS | {type(None)}

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: lambda value: not value if isinstance(value, bool) else ~value,
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def check_number(*numbers: Any) -> None:
    """Let no arithmetic be done with numbers of thousands of digits.

    Raises:
        CannotTellError: one is.
    """
    for number in numbers:
        if isinstance(number, int) and not -LARGEST_NUMBER < number < LARGEST_NUMBER:
            raise CannotTellError("a large number")


def binary(kind: type[ast.operator], left: Any, right: Any) -> Any:
    """``left OP right``.

    Raises:
        CannotTellError: it is not known, or too large.
        ZeroDivisionError: as in Python.
        RaisedError: arrays whose sizes do not go together.
    """
    function = _BINARY.get(kind)
    if function is None:
        raise CannotTellError("an operator")
    if type(left) is int and type(right) is int and kind not in _SHIFTS:  # most are these
        if -LARGEST_NUMBER < left < LARGEST_NUMBER and -LARGEST_NUMBER < right < LARGEST_NUMBER:
            return function(left, right)
        raise CannotTellError("a large number")
    if kind in _OF_ARRAYS and (isinstance(left, list) or isinstance(right, list)):
        left, right = _as_array(left, right), _as_array(right, left)
    if isinstance(left, Array) or isinstance(right, Array):
        return _broadcast(lambda a, b: _of_known(kind, a, b), left, right)
    left = int(left) if type(left) in _MORE_THAN_NUMBERS else left
    right = int(right) if type(right) in _MORE_THAN_NUMBERS else right
    if type(left) in _NUMBERS and type(right) in _NUMBERS:
        check_number(left, right)
        if (kind is ast.Pow or kind is ast.LShift) and abs(right) > LARGEST_EXPONENT:
            raise CannotTellError("a large number")
    else:
        _charge(kind, left, right)
    try:
        return function(left, right)
    except ZeroDivisionError:
        raise
    except (TypeError, ArithmeticError, ValueError) as error:
        raise CannotTellError("an operator") from error


#: Operators whose right side is a number of digits, and may not be any.
_SHIFTS = frozenset({ast.Pow, ast.LShift, ast.RShift})
#: Operators that lists have not.
_OF_ARRAYS = frozenset({ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow})
_ORDERS = frozenset({ast.Lt, ast.LtE, ast.Gt, ast.GtE})


def _as_array(value: Any, other: Any) -> Any:
    """A list beside a number: the argument that it stands for may be an array as well."""
    is_array = isinstance(value, list) and isinstance(other, (int, float))
    return Array(value) if is_array else value


def _of_known(kind: type[ast.operator], left: Any, right: Any) -> Any:
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    left, right = plain(left), plain(right)
    if kind is ast.Div and right == 0 and isinstance(left, (int, float)):
        return math.copysign(math.inf, left) if left else math.nan  # arrays divide by 0
    return binary(kind, left, right)


def _charge(kind: type[ast.operator], left: Any, right: Any) -> None:
    """Charge for an operator between containers, before it makes one."""
    if kind is ast.Mult and isinstance(left, int):
        left, right = right, left
    if kind is ast.Mult and isinstance(left, (list, tuple, str)) and isinstance(right, int):
        _make(left, len(left) * max(0, right))
    elif kind is ast.Add and any(
        isinstance(left, sort) and isinstance(right, sort) for sort in (list, tuple, str)
    ):
        _make(left, len(left) + len(right))
    elif isinstance(left, set) and isinstance(right, set):
        weigh(left)
        weigh(right)
    elif isinstance(left, dict) and isinstance(right, dict):
        BUDGET.items(len(left) + len(right))
    else:
        raise CannotTellError("an operator")


def _make(like: Any, length: int) -> None:
    if isinstance(like, str):
        BUDGET.text(length)
    else:
        BUDGET.items(length)


def unary(kind: type[ast.unaryop], value: Any) -> Any:
    """``OP value``, of all but ``not``.

    Raises:
        CannotTellError: it is not known.
    """
    if isinstance(value, Array):
        return value.map(partial(unary, kind))
    if not isinstance(value, (int, float)):
        raise CannotTellError("an operator")
    check_number(value)
    try:
        return _UNARY[kind](value)
    except TypeError as error:
        raise CannotTellError("an operator") from error


def compare(kind: type[ast.cmpop], left: Any, right: Any) -> Any:
    """``left OP right``, for ``==`` and ``<`` and their like.

    Raises:
        CannotTellError: it is not known.
    """
    if kind in _ORDERS and (isinstance(left, list) or isinstance(right, list)):
        left, right = _as_array(left, right), _as_array(right, left)
    if isinstance(left, Array) or isinstance(right, Array):
        return _broadcast(partial(compare, kind), left, right)
    if type(left) not in _SCALARS or type(right) not in _SCALARS:
        weigh(left)
        weigh(right)
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    left, right = plain(left), plain(right)
    try:
        return COMPARISONS[kind](left, right)
    except TypeError as error:
        raise CannotTellError("a comparison") from error


def _broadcast(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Array:
    """An operator between arrays, or an array and a number."""
    if isinstance(left, (list, tuple)):
        left = Array(left)
    if isinstance(right, (list, tuple)):
        right = Array(right)
    both = isinstance(left, Array) and isinstance(right, Array)
    if both and len(left.shape) == len(right.shape):
        longest = max(len(left.items), len(right.items))
        BUDGET.items(longest)
        sides = [
            side.items * longest if len(side.items) == 1 else side.items for side in (left, right)
        ]
        if len(sides[0]) != len(sides[1]):
            raise RaisedError("RuntimeError")
        pairs = list(zip(*sides, strict=True))
    elif both and len(left.shape) < len(right.shape):
        BUDGET.items(len(right.items))
        pairs = [(left, row) for row in right.items]
    elif isinstance(left, Array):
        BUDGET.items(len(left.items))
        pairs = [(item, right) for item in left.items]
    else:
        BUDGET.items(len(right.items))
        pairs = [(left, item) for item in right.items]
    try:
        return Array([function(a, b) for a, b in pairs])
    except (ZeroDivisionError, TypeError) as error:
        raise CannotTellError("an operator of arrays") from error


# -- what compares many


def order(keys: list[Any], *, reverse: bool = False) -> list[int]:
    """The places of the keys, sorted."""
    for _ in range(len(keys).bit_length()):
        weigh(keys)
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)


def extreme(choose: Callable[..., int], keys: list[Any]) -> int:
    """The place of the smallest or largest key."""
    weigh(keys)
    return choose(range(len(keys)), key=keys.__getitem__)


def bisected(keys: Sequence[Any], wanted: Any, *, right: bool = False) -> int:
    """Where ``wanted`` belongs among sorted keys."""
    weigh(list(keys))
    weigh(wanted)
    return (bisect.bisect_right if right else bisect.bisect_left)(keys, wanted)
