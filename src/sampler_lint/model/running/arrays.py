"""Arrays of one dimension and random numbers, as torch, numpy and ``random`` make them.

Random functions give one result they may give: permutations are the identity, choices the first.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sampler_lint.model.running.values import (
    UNKNOWN,
    Array,
    CannotTellError,
    External,
    RaisedError,
    plain,
)

if TYPE_CHECKING:
    from sampler_lint.model.running.interpreter import Interpreter

#: More elements than any small world has.
LARGEST = 20_000
RANDOM_STATE = frozenset({"Random", "SystemRandom", "RandomState", "default_rng", "Generator"})


# -- random


def _randperm(run: Interpreter, n: Any, **keywords: Any) -> Array:
    if isinstance(plain(n), int):
        return Array(range(_small(plain(n))))
    return Array(run.listed(n))


def _small(number: int) -> int:
    if number > LARGEST:
        raise CannotTellError("a large list")
    return number


def _shuffle(run: Interpreter, values: Any, *more: Any) -> None:
    if not isinstance(values, (list, Array)):
        raise CannotTellError("shuffle()")


def _sample(run: Interpreter, values: Any, k: Any, **keywords: Any) -> list[Any]:
    listed = run.listed(values)
    if plain(k) > len(listed):
        raise RaisedError("ValueError")
    return listed[: plain(k)]


def _choice(
    run: Interpreter, values: Any, size: Any = None, replace: Any = True, **keywords: Any
) -> Any:
    listed = list(range(values)) if isinstance(values, int) else run.listed(values)
    if not listed:
        raise RaisedError("IndexError")
    if size is None:
        return listed[0]
    count = _count(size)
    if not replace and count > len(listed):
        raise RaisedError("ValueError")
    return Array(listed[index % len(listed)] for index in range(count))


def _choices(run: Interpreter, values: Any, weights: Any = None, *, k: Any = 1, **kw: Any) -> Any:
    listed = run.listed(values)
    return [listed[index % len(listed)] for index in range(_small(plain(k)))]


def _count(size: Any) -> int:
    size = plain(size)
    if isinstance(size, (tuple, list)):
        if len(size) != 1:
            raise CannotTellError("the shape of an array")
        size = plain(size[0])
    if not isinstance(size, int):
        raise CannotTellError("the size of an array")
    return _small(size)


def _randint(run: Interpreter, *args: Any, **keywords: Any) -> Any:
    size = keywords.get("size")
    if size is None and args and isinstance(args[-1], (tuple, list)):
        *args_, size = args
        args = tuple(args_)
    if size is None:
        return UNKNOWN
    bounds = [*args, *(keywords[name] for name in ("low", "high") if name in keywords)]
    numbers = [plain(bound) for bound in bounds]
    low, high = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    if high <= low:
        raise CannotTellError("randint()")
    return Array(low + index % (high - low) for index in range(_count(size)))


def _multinomial(
    run: Interpreter, weights: Any, num_samples: Any, replacement: Any = False, **keywords: Any
) -> Array:
    n = run.length(weights)
    if not n or (not replacement and plain(num_samples) > n):
        raise CannotTellError("multinomial()")
    return Array(index % n for index in range(_small(plain(num_samples))))


RANDOM: dict[str, Callable[..., Any]] = {
    "randperm": _randperm,
    "permutation": _randperm,
    "shuffle": _shuffle,
    "sample": _sample,
    "choice": _choice,
    "choices": _choices,
    "randint": _randint,
    "integers": _randint,
    "multinomial": _multinomial,
}


# -- arrays


def _array(run: Interpreter, values: Any = (), *more: Any, **keywords: Any) -> Any:
    if isinstance(values, (int, float)):
        return values
    listed = run.listed(values)
    if any(isinstance(value, (list, tuple, Array)) for value in listed):
        raise CannotTellError("an array of arrays")
    return Array(listed)


def _arange(run: Interpreter, *bounds: Any, **keywords: Any) -> Array:
    numbers = [plain(bound) for bound in bounds]
    if not all(isinstance(number, int) for number in numbers):
        raise CannotTellError("arange()")
    return Array(run.listed(range(*numbers)))


def _filled(value: Any) -> Callable[..., Array]:
    def function(run: Interpreter, size: Any, *more: Any, **keywords: Any) -> Array:
        if more:
            raise CannotTellError("the shape of an array")
        return Array([value] * _count(size))

    return function


def _concatenate(run: Interpreter, arrays: Any, *more: Any, **keywords: Any) -> Array:
    return Array(item for array in run.listed(arrays) for item in run.listed(array))


def _where(run: Interpreter, condition: Any, *more: Any) -> tuple[Array]:
    if more or not isinstance(condition, Array):
        raise CannotTellError("where()")
    return (Array(i for i, value in enumerate(condition.items) if run.true(value)),)


def _unique(run: Interpreter, values: Any, **keywords: Any) -> Array:
    if any(run.true(value) for value in keywords.values()):
        raise CannotTellError("unique()")
    return Array(sorted({plain(value) for value in run.listed(values)}))


def _argsort(run: Interpreter, values: Any, **keywords: Any) -> Array:
    keys = [plain(value) for value in run.listed(values)]
    return Array(sorted(range(len(keys)), key=keys.__getitem__))


def _index_of(choose: Callable[..., Any]) -> Callable[..., Any]:
    def function(run: Interpreter, values: Any) -> Any:
        keys = [plain(value) for value in run.listed(values)]
        return choose(range(len(keys)), key=keys.__getitem__)

    return function


def _searchsorted(run: Interpreter, values: Any, wanted: Any, side: Any = "left") -> Any:
    listed = [plain(value) for value in run.listed(values)]
    find = bisect.bisect_right if side == "right" else bisect.bisect_left
    if isinstance(wanted, (Array, list)):
        raise CannotTellError("searchsorted()")
    return find(listed, plain(wanted))


def _array_split(run: Interpreter, values: Any, sections: Any) -> list[Array]:
    listed, parts = run.listed(values), plain(sections)
    if not isinstance(parts, int) or parts < 1:
        raise CannotTellError("array_split()")
    short, longer = divmod(len(listed), parts)
    out, start = [], 0
    for index in range(parts):
        stop = start + short + (index < longer)
        out.append(Array(listed[start:stop]))
        start = stop
    return out


def _linspace(run: Interpreter, start: Any, stop: Any, num: Any = 50, **keywords: Any) -> Array:
    first, last, count = plain(start), plain(stop), _count(num)
    values: list[Any] = [first + (last - first) * i / max(1, count - 1) for i in range(count)]
    if "dtype" in keywords:
        values = [int(value) for value in values]
    return Array(values)


def _cumsum(run: Interpreter, values: Any, *axis: Any, **keywords: Any) -> Array:
    return Array(itertools.accumulate(plain(value) for value in run.listed(values)))


def _reduced(name: str) -> Callable[..., Any]:
    def function(run: Interpreter, values: Any) -> Any:
        if isinstance(values, (int, float)):
            return values
        return run.call(External(f"builtins.{name}"), [values], {})

    return function


def _rounded(function: Callable[[float], int]) -> Callable[..., Any]:
    def call(run: Interpreter, value: Any, **keywords: Any) -> Any:
        if isinstance(value, Array):
            return value.map(lambda item: float(function(plain(item))))
        value = plain(value)
        if not isinstance(value, (int, float)):
            raise CannotTellError("a number")
        return float(function(value))

    return call


def _tile(run: Interpreter, values: Any, times: Any) -> Array:
    return Array(run.listed(values) * _count(times))


def _repeat(run: Interpreter, values: Any, repeats: Any, **keywords: Any) -> Array:
    count = _count(repeats)
    return Array(value for value in run.listed(values) for _ in range(count))


ARRAYS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("array", "asarray", "tensor", "as_tensor", "LongTensor", "IntTensor", "from_numpy"),
        _array,
    ),
    "arange": _arange,
    "zeros": _filled(0),
    "ones": _filled(1),
    "concatenate": _concatenate,
    "hstack": _concatenate,
    "cat": _concatenate,
    "where": _where,
    "nonzero": _where,
    "unique": _unique,
    "argsort": _argsort,
    "sort": lambda run, values: Array(sorted(plain(value) for value in run.listed(values))),
    "argmax": _index_of(max),
    "argmin": _index_of(min),
    "searchsorted": _searchsorted,
    "array_split": _array_split,
    "linspace": _linspace,
    "cumsum": _cumsum,
    "sum": _reduced("sum"),
    "max": _reduced("max"),
    "min": _reduced("min"),
    "any": _reduced("any"),
    "all": _reduced("all"),
    "ceil": _rounded(math.ceil),
    "floor": _rounded(math.floor),
    "tile": _tile,
    "repeat": _repeat,
    **dict.fromkeys(("int64", "int32"), _reduced("int")),
    **dict.fromkeys(("float64", "float32"), _reduced("float")),
}
