"""The builtins of Python, and its ``math``."""

from __future__ import annotations

import ast
import builtins
import collections.abc
import math
import numbers
from collections.abc import Callable, Iterator
from typing import Any

from sampler_lint.execution.budget import BUDGET, MOST_DIGITS, Cost, Op, Table
from sampler_lint.execution.errors import CannotTellError, FractionError, Kind, RaisedError
from sampler_lint.execution.operators import binary, check_number, extreme, order
from sampler_lint.execution.values import (
    PLACE,
    UNKNOWN,
    Array,
    Bound,
    Called,
    Column,
    Data,
    External,
    Fn,
    Given,
    Instance,
    Klass,
    Native,
    Run,
    Source,
    Told,
    given,
    key,
    plain,
    said,
)

BUILTINS = Table()


def has_builtin(name: str) -> bool:
    """Whether Python has such a builtin."""
    return hasattr(builtins, name)


@BUILTINS(Cost.FLAT, "int")
def integer(run: Run, value: Any = 0, *base: Any) -> Any:
    """``int()``."""
    if value is UNKNOWN:
        return UNKNOWN
    value = plain(value)
    if isinstance(value, Array) and len(value.items) == 1:
        value = value.items[0]
    return int(_readable(value, "int()"))


@BUILTINS(Cost.FLAT)
def _float(run: Run, value: Any = 0) -> Any:
    return UNKNOWN if value is UNKNOWN else float(_readable(plain(value), "float()"))


def _readable(value: Any, what: str) -> int | float | str:
    if not isinstance(value, (int, float, str)):
        raise CannotTellError(what)
    if isinstance(value, str) and len(value) > MOST_DIGITS:
        raise CannotTellError("a large number")
    check_number(value)
    return value


@BUILTINS(Cost.FLAT)
def _getattr(run: Run, owner: Any, name: Any, *default: Any) -> Any:
    if not isinstance(name, str):
        raise CannotTellError("getattr")
    BUDGET.text(len(name))
    if default and isinstance(owner, Source):
        return owner.attribute(name) if owner.has(name) else default[0]
    if default and isinstance(owner, Given):
        told = given(f"{owner.key}.{name}", owner.made, f"{owner.pattern}.{name}")
        # A configuration need not say it; a world says how many processes there are.
        return default[0] if isinstance(told, Given) else told
    if default and type(owner) in _PLAIN and not hasattr(type(owner), name):
        return default[0]
    is_open = default and isinstance(owner, (Data, External)) and name != "indices"
    if is_open and not _has_part(owner, name):
        return default[0]
    try:
        return run.attribute(owner, name)
    except RaisedError as error:
        if default and error.kind == "AttributeError":
            return default[0]
        raise


@BUILTINS(Cost.FLAT)
def _hasattr(run: Run, owner: Any, name: Any) -> bool:
    if not isinstance(name, str):
        raise CannotTellError("hasattr")
    BUDGET.text(len(name))
    if isinstance(owner, (Source, Given)):
        return owner.has(name)
    if isinstance(owner, Data):
        return _has_part(owner, name)
    if type(owner) in _PLAIN:
        return hasattr(type(owner), name)
    if not isinstance(owner, Instance):
        raise CannotTellError("hasattr")
    if name == "__dict__":
        return True
    return name in owner.attributes or run.member(owner.klass, name) is not None


@BUILTINS(Cost.FLAT, "str", "repr")
def _str(run: Run, value: Any = "", *more: Any) -> Any:
    value = value.number if type(value) in {Data, Column} else value
    check_number(value)
    return str(value) if isinstance(value, (int, float, str)) else UNKNOWN


def _has_part(owner: Any, name: str) -> bool:
    """Whether a part of the data has an attribute, as far as the use of others has told.

    Raises:
        CannotTellError: nobody knows.
    """
    if not isinstance(owner, Data) or owner.length is not None or Data.stand_ins is None:
        raise CannotTellError(f"whether there is `{name}`")
    return said(Data.stand_ins, f"hasattr({PLACE.sub('[]', owner.key)}, {name!r})")


def _python_type(name: str) -> type | None:
    """A type of plain values, by its last name."""
    found = getattr(builtins, name, None) or getattr(numbers, name, None)
    return found if isinstance(found, type) else None


@BUILTINS(Cost.SHALLOW)
def _isinstance(run: Run, value: Any, kinds: Any) -> bool:
    if value is UNKNOWN or isinstance(value, External):
        raise CannotTellError("its type")
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if _is_a(run, value, run.external_class(kind)):
            return True
    # What was made up for an argument would be what is asked for, if it is to be anything; and
    # a library may have its own name for the type of a number.
    is_named = isinstance(value, (int, float, str)) and any(
        isinstance(kind, External) and _python_type(kind.dotted.rpartition(".")[2]) is None
        for kind in (kinds if isinstance(kinds, tuple) else (kinds,))
    )
    run.stands_in = run.stands_in or is_named or _is_made_up(value)
    return False


def _is_made_up(value: Any) -> bool:
    """Whether the value may stand for an argument."""
    return isinstance(value, (Data, Array, list, range)) or (
        isinstance(value, Instance) and value.klass.names.module is None
    )


def _is_a(run: Run, value: Any, kind: Any) -> bool:
    if Data.traced and isinstance(value, Data) and value.origin is not None:
        return False  # it is only handed on, whatever it is
    if isinstance(kind, Klass):
        if isinstance(value, Instance):
            return any(base is kind for base in value.klass.mro)
        if isinstance(value, Data) and not isinstance(value, (Source, Given)):
            raise CannotTellError("the type of data")
        return isinstance(value, Source) and kind.name == "Dataset"
    name = kind.dotted.rpartition(".")[2] if isinstance(kind, External) else ""
    is_part = isinstance(value, Data) and not isinstance(value, (Source, Given))
    if is_part and value.length is None and Data.stand_ins is not None:
        return said(Data.stand_ins, f"isinstance({PLACE.sub('[]', value.key)}, {name})")
    if name in _ARRAY_TYPES:
        if is_part:
            raise CannotTellError("the type of data")
        return isinstance(value, Array)
    kinds = getattr(collections.abc, name, type)
    if issubclass(list, kinds):
        return not isinstance(value, (int, float)) and value is not None
    python = _python_type(name)
    if python is None:
        if is_part or (isinstance(value, Instance) and value.klass.names.module is not None):
            raise CannotTellError("its type")
        # Data sets and arguments are of no kind that a library has, unless they must be.
        return False
    if isinstance(value, Data) and not isinstance(value, Source):
        if value.length is not None and python in (list, tuple):
            return True
        if isinstance(value, Given):
            raise value.wanted(_use_of(python))
        raise CannotTellError("the type of data")
    return isinstance(value, python)


@BUILTINS(Cost.FLAT)
def _type(run: Run, value: Any) -> Any:
    if isinstance(value, Instance):
        return value.klass
    value = int(value) if isinstance(value, Told) else value
    run.stands_in = True  # of a number, or of a list, an array may stand there
    if isinstance(value, Array):
        return _ArrayType("an array")
    if type(value) is Source:
        return External("torch.utils.data.Dataset")
    if type(value) not in _PLAIN:
        raise CannotTellError("its type")
    return External(f"builtins.{type(value).__name__}")


class _ArrayType(External):
    """The type of an array, whichever library it is of."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, External) and other.dotted.rpartition(".")[2] in _ARRAY_TYPES

    __hash__ = External.__hash__


_ARRAY_TYPES = frozenset({"LongTensor", "Tensor", "ndarray"})
#: What is here of the type that it is in the program.
_PLAIN = frozenset({bool, dict, float, int, list, set, str, tuple, type(None)})


def _use_of(kind: type) -> Kind:
    """What is a ``kind`` is used as."""
    if kind is bool or issubclass(kind, dict):
        return Kind.FLAG if kind is bool else Kind.MAPPING
    return Kind.NUMBER if issubclass(kind, numbers.Number) else Kind.SEQUENCE


@BUILTINS(Cost.FLAT)
def _callable(run: Run, value: Any) -> bool:
    if value is UNKNOWN:
        raise CannotTellError("its type")
    if isinstance(value, Given):
        return said(value.made, f"callable({value.pattern})")
    run.stands_in = run.stands_in or _is_made_up(value)
    return isinstance(value, (Bound, Called, External, Fn, Klass, Native))


def sort_keys(run: Run, listed: list[Any], key: Any) -> list[Any]:
    """What ``key`` makes of what is listed."""
    keys = listed if key is None else [run.call(key, [value], {}) for value in listed]
    if key is not None and any(value is UNKNOWN for value in keys):
        return [0 for _ in keys]  # by chance: any order is as good
    return [plain(value) for value in (keys if key is None else without_chance(keys))]


def without_chance(keys: list[Any]) -> list[Any]:
    """The keys, without the places of tuples that are not known in each of them."""
    length = len(keys[0]) if keys and isinstance(keys[0], tuple) else 0
    if not length or not all(isinstance(each, tuple) and len(each) == length for each in keys):
        return keys
    BUDGET.items(length * len(keys))
    known = [place for place in range(length) if not any(each[place] is UNKNOWN for each in keys)]
    return (
        keys if len(known) == length else [tuple(each[place] for place in known) for each in keys]
    )


@BUILTINS(Cost.FLAT)
def _hash(run: Run, value: Any) -> Any:
    parts = value if isinstance(value, tuple) else (value,)
    # That of a text is another one in each process.
    return hash(value) if all(type(part) in {bool, int} for part in parts) else UNKNOWN


@BUILTINS(Cost.BY_ITEM, "sorted")
def in_order(run: Run, values: Any, key: Any = None, reverse: Any = False) -> list[Any]:
    """``sorted()``."""
    listed = run.listed(values)
    places = order(sort_keys(run, listed, key), reverse=bool(reverse))
    return [listed[place] for place in places]


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    def function(run: Run, *values: Any, key: Any = None, **more: Any) -> Any:
        if len(values) > 1:
            if any(value is UNKNOWN for value in values):
                return UNKNOWN
            listed = BUDGET.collect(values)
        else:
            listed = run.listed(values[0])
        if not listed:
            if "default" in more:
                return more["default"]
            raise RaisedError("ValueError")
        return listed[extreme(choose, sort_keys(run, listed, key))]

    return function


@BUILTINS(Cost.BY_ITEM)
def _sum(run: Run, values: Any, start: Any = 0) -> Any:
    listed = [start, *run.listed(values)]
    if any(isinstance(value, list) for value in listed):
        if not all(isinstance(value, list) for value in listed):
            raise CannotTellError("a sum")
        return [item for value in listed for item in BUDGET.collect(value)]
    if any(value is UNKNOWN for value in listed):
        return UNKNOWN
    total = plain(start)
    for value in BUDGET.each(listed[1:]):
        total = binary(ast.Add, total, plain(value))
    return total


@BUILTINS(Cost.BY_ITEM)
def _next(run: Run, iterator: Any, *default: Any) -> Any:
    if isinstance(iterator, Instance):
        iterator = run.iterate(iterator)
    if not isinstance(iterator, Iterator):
        raise CannotTellError("next()")
    for value in iterator:
        return value
    if default:
        return default[0]
    raise RaisedError("StopIteration")


@BUILTINS(Cost.FLAT)
def _range(run: Run, *bounds: Any) -> range:
    numbers = [plain(bound) for bound in bounds]
    if any(isinstance(number, float) for number in numbers):
        raise FractionError
    if not all(isinstance(number, int) for number in numbers):
        raise RaisedError("TypeError")
    if len(numbers) == 3 and numbers[2] == 0:
        raise RaisedError("ValueError")
    return range(*numbers)


@BUILTINS(Cost.BY_ITEM)
def _enumerate(run: Run, values: Any, start: Any = 0) -> Iterator[Any]:
    return enumerate(run.iterate(values), plain(start))


@BUILTINS(Cost.BY_ITEM)
def _zip(run: Run, *values: Any, strict: Any = False) -> Iterator[Any]:
    return zip(*(run.iterate(value) for value in values), strict=bool(strict))


@BUILTINS(Cost.BY_ITEM)
def _map(run: Run, function: Any, *values: Any) -> Iterator[Any]:
    iterators = [run.iterate(value) for value in values]
    return (run.call(function, list(args), {}) for args in zip(*iterators, strict=False))


@BUILTINS(Cost.BY_ITEM)
def _filter(run: Run, function: Any, values: Any) -> Iterator[Any]:
    return (
        value
        for value in run.iterate(values)
        if run.true(value if function is None else run.call(function, [value], {}))
    )


@BUILTINS(Cost.BY_ITEM)
def _iter(run: Run, value: Any, *sentinel: Any) -> Iterator[Any]:
    if sentinel:
        raise CannotTellError("iter() with a sentinel")
    return run.iterate(value)


@BUILTINS(Cost.BY_ITEM, "set", "frozenset")
def _set(run: Run, values: Any = ()) -> set[Any]:
    return {key(value) for value in run.listed(values)}


@BUILTINS(Cost.BY_ITEM, "dict")
def mapping(run: Run, values: Any = (), **more: Any) -> dict[Any, Any]:
    """``dict()``."""
    if isinstance(values, dict):
        BUDGET.items(len(values))
        return {**values, **more}
    return {**{key(k): v for k, v in map(run.listed, run.listed(values))}, **more}


def _number(function: Callable[..., Any]) -> Op:
    """A function of numbers that makes none that is longer."""

    def call(run: Run, *args: Any) -> Any:
        if any(arg is UNKNOWN for arg in args):
            return UNKNOWN
        numbers = [plain(arg) for arg in BUDGET.each(args)]
        if not all(isinstance(number, (int, float)) for number in numbers):
            raise CannotTellError("a number")
        check_number(*numbers)
        return function(*numbers)

    return Op(Cost.BY_ITEM, call)


def _round(number: float, digits: int = 0) -> float:
    # Python makes ten to the power of negative ones.
    return round(number, max(-MOST_DIGITS, digits)) if digits else round(number)


def _lcm(*numbers: int) -> int:
    result = 1
    for number in numbers:
        result = math.lcm(result, number)
        check_number(result)
    return result


@BUILTINS(Cost.BY_ITEM)
def _any(run: Run, values: Any) -> bool:
    return any(run.true(value) for value in run.iterate(values))


@BUILTINS(Cost.BY_ITEM)
def _all(run: Run, values: Any) -> bool:
    return all(run.true(value) for value in run.iterate(values))


BUILTINS(Cost.FLAT, "len")(lambda run, value: run.length(value))
BUILTINS(Cost.FLAT, "bool")(lambda run, value=False: run.true(value))
BUILTINS(Cost.BY_ITEM, "list")(lambda run, values=(): run.listed(values))
BUILTINS(Cost.BY_ITEM, "tuple")(lambda run, values=(): tuple(run.listed(values)))
BUILTINS(Cost.BY_ITEM, "min")(_extreme(min))
BUILTINS(Cost.BY_ITEM, "max")(_extreme(max))
BUILTINS["abs"] = _number(abs)
BUILTINS["round"] = _number(_round)
BUILTINS["divmod"] = _number(divmod)
BUILTINS(Cost.BY_ITEM, "reversed")(lambda run, values: iter(run.listed(values)[::-1]))
BUILTINS(Cost.FLAT, "slice")(
    lambda run, *parts: slice(*(None if p is None else plain(p) for p in parts))
)

#: Functions of ``math`` whose result is no larger than their arguments, more or less.
MATH: dict[str, Op] = {
    function.__name__: _number(function)
    for function in (
        *(math.ceil, math.copysign, math.fabs, math.floor, math.fmod, math.gcd, math.isclose),
        *(math.isfinite, math.isinf, math.isnan, math.isqrt, math.log, math.log10),
        *(math.log2, math.sqrt, math.trunc),
    )
}
MATH["lcm"] = _number(_lcm)
