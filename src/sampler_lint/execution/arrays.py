"""Arrays of one dimension and random numbers, as torch, numpy and ``random`` make them.

Random functions give one result they may give: permutations are the identity, choices the first.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from sampler_lint.execution.budget import BUDGET, Cost, Op
from sampler_lint.execution.errors import CannotTellError, RaisedError
from sampler_lint.execution.operators import (
    binary,
    bisected,
    check_number,
    extreme,
    order,
)
from sampler_lint.execution.values import (
    UNKNOWN,
    Array,
    External,
    Run,
    key,
    plain,
)

RANDOM_STATE = frozenset({"Random", "SystemRandom", "RandomState", "default_rng", "Generator"})


# -- random


def _randperm(run: Run, n: Any, **keywords: Any) -> Array:
    if isinstance(plain(n), int):
        return Array(range(plain(n)))
    return Array(run.listed(n))


def _shuffle(run: Run, values: Any, *more: Any) -> None:
    if not isinstance(values, (list, Array)):
        raise CannotTellError("shuffle()")


def _sample(run: Run, values: Any, k: Any, **keywords: Any) -> list[Any]:
    listed = run.listed(values)
    if plain(k) > len(listed):
        raise RaisedError("ValueError")
    return listed[: plain(k)]


def _choice(run: Run, values: Any, size: Any = None, replace: Any = True, **keywords: Any) -> Any:
    listed = run.listed(range(values) if isinstance(values, int) else values)
    if not listed:
        raise RaisedError("IndexError")
    if size is None:
        return listed[0]
    count = _count(size)
    if not replace and count > len(listed):
        raise RaisedError("ValueError")
    return Array(_repeated(listed, count))


def _repeated(listed: list[Any], count: int) -> list[Any]:
    """So many, from the beginning on, and again from the beginning."""
    return [listed[index % len(listed)] for index in BUDGET.collect(range(count))]


def _choices(run: Run, values: Any, weights: Any = None, *, k: Any = 1, **kw: Any) -> Any:
    return _repeated(run.listed(values), plain(k))


def _count(size: Any) -> int:
    size = plain(size)
    if isinstance(size, (tuple, list)):
        if len(size) != 1:
            raise CannotTellError("the shape of an array")
        size = plain(size[0])
    if not isinstance(size, int):
        raise CannotTellError("the size of an array")
    return size


def _randint(run: Run, *args: Any, **keywords: Any) -> Any:
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
    check_number(low, high)
    return Array([low + index % (high - low) for index in BUDGET.collect(range(_count(size)))])


def _multinomial(
    run: Run, weights: Any, num_samples: Any, replacement: Any = False, **keywords: Any
) -> Array:
    n = run.length(weights)
    if not n or (not replacement and plain(num_samples) > n):
        raise CannotTellError("multinomial()")
    return Array([index % n for index in BUDGET.collect(range(plain(num_samples)))])


RANDOM: dict[str, Op] = {
    "randperm": Op(Cost.BY_ITEM, _randperm),
    "permutation": Op(Cost.BY_ITEM, _randperm),
    "shuffle": Op(Cost.FLAT, _shuffle),
    "sample": Op(Cost.BY_ITEM, _sample),
    "choice": Op(Cost.BY_ITEM, _choice),
    "choices": Op(Cost.BY_ITEM, _choices),
    "randint": Op(Cost.BY_ITEM, _randint),
    "integers": Op(Cost.BY_ITEM, _randint),
    "multinomial": Op(Cost.BY_ITEM, _multinomial),
}


# -- arrays


def _array(run: Run, values: Any = (), *more: Any, **keywords: Any) -> Any:
    if isinstance(values, (int, float)):
        return values
    listed = run.listed(values)
    if any(isinstance(value, (list, tuple, Array)) for value in listed):
        raise CannotTellError("an array of arrays")
    return Array(listed)


def _arange(run: Run, *bounds: Any, **keywords: Any) -> Array:
    numbers = [plain(bound) for bound in bounds]
    if not all(isinstance(number, int) for number in numbers):
        raise CannotTellError("arange()")
    return Array(run.listed(range(*numbers)))


def _filled(value: Any) -> Callable[..., Array]:
    def function(run: Run, size: Any, *more: Any, **keywords: Any) -> Array:
        if more:
            raise CannotTellError("the shape of an array")
        return Array([value for _ in BUDGET.collect(range(_count(size)))])

    return function


def _concatenate(run: Run, arrays: Any, *more: Any, **keywords: Any) -> Array:
    return Array(item for array in run.listed(arrays) for item in run.listed(array))


def _where(run: Run, condition: Any, *more: Any) -> tuple[Array]:
    if more or not isinstance(condition, Array):
        raise CannotTellError("where()")
    return (Array([i for i, value in enumerate(run.listed(condition)) if run.true(value)]),)


def _unique(run: Run, values: Any, **keywords: Any) -> Array:
    if any(run.true(value) for value in keywords.values()):
        raise CannotTellError("unique()")
    return _sort(run, {key(value) for value in run.listed(values)})


def _sort(run: Run, values: Any) -> Array:
    keys = [plain(value) for value in run.listed(values)]
    return Array([keys[place] for place in order(keys)])


def _argsort(run: Run, values: Any, **keywords: Any) -> Array:
    return Array(order([plain(value) for value in run.listed(values)]))


def _index_of(choose: Callable[..., Any]) -> Callable[..., Any]:
    def function(run: Run, values: Any) -> Any:
        return extreme(choose, [plain(value) for value in run.listed(values)])

    return function


def _searchsorted(run: Run, values: Any, wanted: Any, side: Any = "left") -> Any:
    listed = [plain(value) for value in run.listed(values)]
    if isinstance(wanted, (Array, list)):
        raise CannotTellError("searchsorted()")
    return bisected(listed, plain(wanted), right=side == "right")


def _bincount(run: Run, values: Any) -> Array:
    listed = [plain(value) for value in run.listed(values)]
    if not all(type(value) is int and value >= 0 for value in listed):
        raise CannotTellError("bincount()")
    counts = [0 for _ in BUDGET.collect(range(max(listed, default=-1) + 1))]
    for value in listed:
        counts[value] += 1
    return Array(counts)


def _array_split(run: Run, values: Any, sections: Any) -> list[Array]:
    listed, parts = run.listed(values), plain(sections)
    if not isinstance(parts, int) or parts < 1:
        raise CannotTellError("array_split()")
    short, longer = divmod(len(listed), parts)
    out, start = [], 0
    for index in BUDGET.each(range(parts)):
        stop = start + short + (index < longer)
        out.append(Array(listed[start:stop]))
        start = stop
    return out


def _linspace(run: Run, start: Any, stop: Any, num: Any = 50, **keywords: Any) -> Array:
    first, last, count = plain(start), plain(stop), _count(num)
    if not (isinstance(first, (int, float)) and isinstance(last, (int, float))):
        raise CannotTellError("a number")
    check_number(first, last)
    places = BUDGET.collect(range(count))
    values: list[Any] = [first + (last - first) * i / max(1, count - 1) for i in places]
    if "dtype" in keywords:
        values = [int(value) for value in values]
    return Array(values)


def _cumsum(run: Run, values: Any, *axis: Any, **keywords: Any) -> Array:
    numbers = (plain(value) for value in run.iterate(values))
    return Array(itertools.accumulate(numbers, partial(binary, ast.Add)))


def _reduced(name: str) -> Callable[..., Any]:
    def function(run: Run, values: Any) -> Any:
        if isinstance(values, (int, float)):
            return values
        return run.call(External(f"builtins.{name}"), [values], {})

    return function


def _rounded(function: Callable[[float], int]) -> Callable[..., Any]:
    def call(run: Run, value: Any, **keywords: Any) -> Any:
        if isinstance(value, Array):
            return value.map(lambda item: call(run, item))
        value = plain(value)
        if not isinstance(value, (int, float)):
            raise CannotTellError("a number")
        check_number(value)
        return float(function(value))

    return call


def _tile(run: Run, values: Any, times: Any) -> Array:
    return Array(binary(ast.Mult, run.listed(values), _count(times)))


def _repeat(run: Run, values: Any, repeats: Any, **keywords: Any) -> Array:
    count = _count(repeats)
    return Array(value for value in run.listed(values) for _ in BUDGET.collect(range(count)))


ARRAYS: dict[str, Op] = {
    **dict.fromkeys(
        (
            "array",
            "asarray",
            "tensor",
            "as_tensor",
            "LongTensor",
            "IntTensor",
            "from_numpy",
            "DoubleTensor",
            "FloatTensor",
        ),
        Op(Cost.BY_ITEM, _array),
    ),
    "arange": Op(Cost.BY_ITEM, _arange),
    "zeros": Op(Cost.BY_ITEM, _filled(0)),
    "ones": Op(Cost.BY_ITEM, _filled(1)),
    "concatenate": Op(Cost.BY_ITEM, _concatenate),
    "hstack": Op(Cost.BY_ITEM, _concatenate),
    "cat": Op(Cost.BY_ITEM, _concatenate),
    "where": Op(Cost.BY_ITEM, _where),
    "nonzero": Op(Cost.BY_ITEM, _where),
    "unique": Op(Cost.BY_ITEM, _unique),
    "bincount": Op(Cost.BY_ITEM, _bincount),
    "argsort": Op(Cost.BY_ITEM, _argsort),
    "sort": Op(Cost.BY_ITEM, _sort),
    "argmax": Op(Cost.BY_ITEM, _index_of(max)),
    "argmin": Op(Cost.BY_ITEM, _index_of(min)),
    "searchsorted": Op(Cost.BY_ITEM, _searchsorted),
    "array_split": Op(Cost.BY_ITEM, _array_split),
    "linspace": Op(Cost.BY_ITEM, _linspace),
    "cumsum": Op(Cost.BY_ITEM, _cumsum),
    "sum": Op(Cost.BY_ITEM, _reduced("sum")),
    "max": Op(Cost.BY_ITEM, _reduced("max")),
    "min": Op(Cost.BY_ITEM, _reduced("min")),
    "any": Op(Cost.BY_ITEM, _reduced("any")),
    "all": Op(Cost.BY_ITEM, _reduced("all")),
    "ceil": Op(Cost.BY_ITEM, _rounded(math.ceil)),
    "floor": Op(Cost.BY_ITEM, _rounded(math.floor)),
    "tile": Op(Cost.BY_ITEM, _tile),
    **dict.fromkeys(("repeat", "repeat_interleave"), Op(Cost.BY_ITEM, _repeat)),
    "flip": Op(Cost.BY_ITEM, lambda run, values, *axis, **kw: Array(run.listed(values)[::-1])),
    **dict.fromkeys(("int64", "int32"), Op(Cost.BY_ITEM, _reduced("int"))),
    **dict.fromkeys(("float64", "float32"), Op(Cost.BY_ITEM, _reduced("float"))),
}
