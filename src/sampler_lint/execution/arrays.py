"""Arrays of one dimension and random numbers, as torch, numpy and ``random`` make them.

Random functions give one result they may give: permutations are the identity, choices the first.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from sampler_lint import catalog
from sampler_lint.execution.budget import BUDGET, LONG_SEED, Cost, Table
from sampler_lint.execution.builtin import without_chance
from sampler_lint.execution.errors import CannotTellError, FractionError, Kind, RaisedError
from sampler_lint.execution.items import item
from sampler_lint.execution.operators import binary, bisected, check_number, extreme, order
from sampler_lint.execution.values import (
    UNKNOWN,
    Array,
    External,
    Given,
    Instance,
    Places,
    Run,
    key,
    plain,
)

RANDOM = Table()
#: Random functions that order what they are given, as :meth:`~.chance.Chance.ordered` does, or
#: take some of it.
ORDERS = frozenset({"choices", "multinomial", "permutation", "randperm", "sample", "shuffle"})
ARRAYS = Table()
#: What torch does otherwise than numpy under the same name.
TORCH = Table()
#: What random numbers depend on.
SEEDS = Table()
#: What takes seeds of 32 bits only.
_OF_32_BITS = frozenset({"numpy.random.seed", "numpy.random.RandomState"})


# -- random


@SEEDS(Cost.DEEP, "seed", "manual_seed")
def _seed(run: Run, owner: External, *values: Any, **keywords: Any) -> Any:
    """Note what all later random numbers of the generator depend on."""
    _check_seeds(owner, values)
    run.outside += 1
    run.chance.seed(run.stream(owner), (*values, *keywords.values()))
    return UNKNOWN if owner.stream is None else replace(owner, dotted="numpy.random")


def _check_seeds(owner: External, values: tuple[Any, ...]) -> None:
    """Refuse what torch and numpy's older generators refuse: too many bits, or a sign."""
    seed = values[0] if values else 0
    first, end = 0, LONG_SEED
    if owner.dotted.endswith(".manual_seed"):
        first, end = -(2**63), 2**64
    elif owner.dotted not in _OF_32_BITS:
        return
    if isinstance(seed, int) and not first <= seed < end:
        raise RaisedError("ValueError")


@SEEDS(Cost.FLAT)
def _initial_seed(run: Run, owner: External) -> Any:
    """What seeded a generator: torch begins each object with one number."""
    run.outside += 1
    known = None if owner.stream is None else owner.stream.seeds
    if known is None:
        return UNKNOWN
    return known[0] if known else catalog.GENERATOR_SEED


@SEEDS(Cost.FLAT, "get_state", "getstate", "get_rng_state")
def _state(run: Run, owner: External, *args: Any, **keywords: Any) -> External:
    """How a generator is now: one like it, that nobody draws from."""
    run.outside += 1
    return External(owner.dotted, run.stream(owner).kept())


@SEEDS(Cost.FLAT, "set_state", "setstate", "set_rng_state")
def _restore(run: Run, owner: External, state: Any, *args: Any, **keywords: Any) -> Any:
    """Let a generator go on from a state that was kept."""
    run.outside += 1
    if isinstance(state, External) and state.stream is not None:
        run.stream(owner).restore(state.stream)
    elif isinstance(state, Instance):
        raise CannotTellError("a state")
    else:
        run.chance.forget(run.stream(owner))
    return UNKNOWN


@SEEDS(Cost.DEEP, "Random", "SystemRandom", "RandomState", "default_rng", "Generator")
def _generator(run: Run, owner: External, *values: Any, **keywords: Any) -> External:
    _check_seeds(owner, values)
    run.outside += 1
    library = owner.dotted.partition(".")[0]
    return External("numpy.random", run.chance.new(library, (*values, *keywords.values())))


@RANDOM(Cost.BY_ITEM, "randperm", "permutation")
def _randperm(run: Run, n: Any, **keywords: Any) -> Array:
    items = BUDGET.collect(range(plain(n))) if isinstance(plain(n), int) else run.listed(n)
    return Array(run.chance.ordered(items))


@RANDOM(Cost.FLAT)
def _shuffle(run: Run, values: Any, *more: Any) -> None:
    if isinstance(values, Given):
        raise values.wanted(Kind.SEQUENCE)
    if not isinstance(values, (list, Array)):
        raise CannotTellError("shuffle()")
    items = values.items if isinstance(values, Array) else values
    if isinstance(items, list):
        items[:] = run.chance.ordered(items)


@RANDOM(Cost.BY_ITEM)
def _sample(run: Run, values: Any, k: Any, **keywords: Any) -> list[Any]:
    listed = run.listed(values)
    if plain(k) > len(listed):
        raise RaisedError("ValueError")
    return run.chance.ordered(listed)[: plain(k)]


@RANDOM(Cost.BY_ITEM)
def _choice(run: Run, values: Any, size: Any = None, replace: Any = True, **keywords: Any) -> Any:
    listed = run.listed(range(values) if isinstance(values, int) else values)
    if not listed:
        raise RaisedError("IndexError")
    if size is None:
        return listed[0]
    count = _count(size)
    if not replace and count > len(listed):
        raise RaisedError("ValueError")
    return Array(_repeated(run.chance.ordered(listed), count))


def _repeated(listed: list[Any], count: int) -> list[Any]:
    """So many, from the beginning on, and again from the beginning."""
    return [listed[index % len(listed)] for index in BUDGET.collect(range(count))]


@RANDOM(Cost.BY_ITEM)
def _choices(run: Run, values: Any, weights: Any = None, *, k: Any = 1, **kw: Any) -> Any:
    return _repeated(run.chance.ordered(run.listed(values)), plain(k))


def _count(size: Any) -> int:
    size = plain(size)
    if isinstance(size, (tuple, list)):
        if len(size) != 1:
            raise CannotTellError("the shape of an array")
        size = plain(size[0])
    if isinstance(size, float):
        raise FractionError
    if not isinstance(size, int):
        raise CannotTellError("the size of an array")
    return size


@RANDOM(Cost.BY_ITEM, "randint", "integers")
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
    numbers = BUDGET.collect(range(_count(size)))
    return Array([low + (run.chance.turn + index) % (high - low) for index in numbers])


@RANDOM(Cost.BY_ITEM)
def _multinomial(
    run: Run, weights: Any, num_samples: Any, replacement: Any = False, **keywords: Any
) -> Array:
    if weights is UNKNOWN:
        return Array([UNKNOWN] * len(BUDGET.collect(range(_count(num_samples)))))
    n = run.length(weights)
    if not n or (not replacement and plain(num_samples) > n):
        raise CannotTellError("multinomial()")
    return Array(_repeated(run.chance.ordered(BUDGET.collect(range(n))), plain(num_samples)))


@RANDOM(Cost.BY_ITEM, "random_sample", "rand", "randn", "random")
def _random_array(run: Run, *size: Any, **keywords: Any) -> Any:
    """Numbers by chance."""
    size = size or tuple(keywords[name] for name in ("size",) if name in keywords)
    drawn = 0.5 if run.chance.settles else UNKNOWN
    return _filled(drawn)(run, *size) if size else drawn


@RANDOM(Cost.BY_ITEM, "uniform", "normal")
def _random_between(run: Run, *bounds: Any, **keywords: Any) -> Any:
    """One number by chance, or as many as the third argument says."""
    return _random_array(run, *bounds[2:], **keywords)


# -- arrays


@ARRAYS(Cost.BY_ITEM, "array", "asarray", "tensor", "as_tensor", "from_numpy")
def _array(run: Run, values: Any = (), *more: Any, **keywords: Any) -> Any:
    if isinstance(values, (int, float)) or values is UNKNOWN:
        return values
    return nested(run.listed(values))


def nested(listed: list[Any]) -> Array:
    """An array of what is listed: rows of one length are another dimension."""
    rows = [part.items if isinstance(part, Array) else part for part in listed]
    if (
        not rows
        or not all(isinstance(row, (list, tuple, range)) for row in rows)
        or len({len(row) for row in rows}) > 1
    ):
        return Array(listed)
    return Array([nested(BUDGET.collect(row)) for row in rows])


@ARRAYS(Cost.BY_ITEM, "Tensor", "LongTensor", "IntTensor", "DoubleTensor", "FloatTensor")
def _tensor(run: Run, *sizes: Any, **keywords: Any) -> Any:
    """``torch.Tensor(values)``, or one of that size with anything in it."""
    if sizes and all(isinstance(size, int) for size in sizes):
        return made(sizes, 0)
    return _array(run, *sizes)


def made(shape: Any, value: Any) -> Any:
    """An array of that shape, filled."""
    sizes = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    if not sizes:
        return UNKNOWN  # a tensor of one number
    sizes = [plain(size) for size in sizes]
    if not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise CannotTellError("the shape of an array")
    places = BUDGET.collect(range(sizes[0]))
    return Array([made(sizes[1:], value) if sizes[1:] else value for _ in places])


def reshaped(array: Array, shape: Any) -> Array:
    """The array with another shape, in which one size may be -1."""
    listed = list(array.flat())
    sizes = [plain(size) for size in shape]
    if sizes.count(-1) == 1:
        others = math.prod(size for size in sizes if size != -1)
        if not others:
            raise CannotTellError("the shape of an array")
        sizes[sizes.index(-1)] = len(listed) // others
    if not sizes or math.prod(sizes) != len(listed):
        raise RaisedError("ValueError")
    for size in reversed(sizes[1:]):
        starts = BUDGET.collect(range(0, len(listed), size)) if size else []
        listed = [Array(listed[start : start + size]) for start in starts]
    return Array(listed)


def transposed(array: Array) -> Array:
    """The array with rows for columns."""
    if len(array.shape) != 2:
        return array
    return Array(
        [Array(column) for column in zip(*(row.items for row in array.items), strict=True)]
    )


@ARRAYS(Cost.BY_ITEM, "broadcast_to")
def broadcast(run: Run, array: Any, shape: Any, **keywords: Any) -> Any:
    """The array repeated until it has that shape; -1 keeps a size."""
    sizes = [_count(size) for size in run.listed(shape)]
    if not sizes:
        return array
    if not isinstance(array, Array) or len(array.shape) < len(sizes):
        rows = [array] * len(BUDGET.collect(range(sizes[0])))
    elif sizes[0] in (-1, len(array.items)):
        rows = array.items
    elif len(array.items) == 1:
        rows = array.items * len(BUDGET.collect(range(sizes[0])))
    else:
        raise RaisedError("ValueError")
    return Array([broadcast(run, row, sizes[1:]) for row in rows])


@ARRAYS(Cost.BY_ITEM, "unsqueeze", "expand_dims")
def _unsqueeze(run: Run, array: Any, *axis: Any, **keywords: Any) -> Any:
    array = array if isinstance(array, Array) else nested(run.listed(array))
    place = axes_of(axis, keywords)[0]
    before = place if place >= 0 else len(array.shape) + 1 + place
    if not 0 <= before <= len(array.shape):
        raise RaisedError("IndexError")
    return item(array, (*[slice(None)] * before, None))


@ARRAYS(Cost.BY_ITEM)
def _arange(run: Run, *bounds: Any, **keywords: Any) -> Array:
    names = ("start", "end", "step") if len(bounds) > 1 else ("end",)
    given = {"start": 0, "step": 1, **keywords, **dict(zip(names, bounds, strict=False))}
    ends = given.get("end", given.get("stop"))
    numbers = [plain(bound) for bound in (given["start"], ends, given["step"])]
    if not all(isinstance(number, int) for number in numbers):
        raise CannotTellError("arange()")
    return Array(run.listed(range(*numbers)))


def _filled(value: Any) -> Callable[..., Array]:
    def function(run: Run, *size: Any, **keywords: Any) -> Any:
        if not size and "size" in keywords:
            size = (keywords["size"],)
        return made(
            size[0] if len(size) == 1 or isinstance(size[0], (tuple, list)) else size, value
        )

    return function


def _filled_like(value: Any) -> Callable[..., Any]:
    def function(run: Run, array: Any, *more: Any, **keywords: Any) -> Any:
        like = array if isinstance(array, Array) else Array(run.listed(array))
        return made(like.shape, more[0] if more else value)

    return function


@ARRAYS(Cost.BY_ITEM)
def _full(run: Run, size: Any, fill_value: Any, **keywords: Any) -> Any:
    return made(size, fill_value)


def axes_of(more: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
    """What is given as the axis, however it is given."""
    return [plain(a) for a in (*more, *(keywords[k] for k in ("axis", "dim") if k in keywords))]


@ARRAYS(Cost.BY_ITEM, "concatenate", "hstack", "cat")
def _concatenate(run: Run, arrays: Any, *more: Any, **keywords: Any) -> Array:
    if axes_of(more, keywords) not in ([], [0], [-1]):
        raise CannotTellError("how arrays are put together")
    return Array(item for array in run.listed(arrays) for item in run.listed(array))


@ARRAYS(Cost.BY_ITEM, "stack", "vstack")
def _stack(run: Run, arrays: Any, *more: Any, **keywords: Any) -> Array:
    axes = axes_of(more, keywords)
    rows = nested([run.listed(array) for array in run.listed(arrays)])
    if axes in ([1], [-1]):
        return transposed(rows)
    if axes not in ([], [0]):
        raise CannotTellError("how arrays are put together")
    return rows


@TORCH(Cost.BY_ITEM)
def _split(run: Run, values: Any, size: Any, *more: Any, **keywords: Any) -> list[Array]:
    """``torch.split``: parts of that size, or of those sizes."""
    listed = run.listed(values)
    if isinstance(size, (list, tuple)):
        return _cut(listed, list(itertools.accumulate(map(_count, size))))
    step = _count(size)
    if step < 1:
        raise CannotTellError("the size of a part")
    return _cut(listed, BUDGET.collect(range(step, len(listed) + step, step)))


def _cut(listed: list[Any], ends: list[int]) -> list[Array]:
    """The parts that end there."""
    return [Array(listed[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


@ARRAYS(Cost.BY_ITEM, "split", "tensor_split")
def _split_at(
    run: Run, values: Any, indices_or_sections: Any, *axis: Any, **keywords: Any
) -> list[Array]:
    """``numpy.split``: so many parts, or parts that begin at those places."""
    if isinstance(plain(indices_or_sections), int):
        return _array_split(run, values, indices_or_sections)
    listed = run.listed(values)
    return _cut(listed, [*map(plain, run.listed(indices_or_sections)), len(listed)])


@TORCH(Cost.BY_ITEM)
def _chunk(run: Run, values: Any, chunks: Any, *more: Any, **keywords: Any) -> list[Array]:
    listed = run.listed(values)
    return _split(run, listed, max(1, -(-len(listed) // max(1, _count(chunks)))))


@ARRAYS(Cost.BY_ITEM, "isin", "in1d")
def _isin(run: Run, values: Any, wanted: Any, **keywords: Any) -> Array:
    found = {key(value) for value in run.listed(wanted)}
    inverted = run.true(keywords.get("invert", False))
    return Array([(key(value) in found) is not inverted for value in run.listed(values)])


def _of_sets(name: str) -> Callable[..., Array]:
    def function(run: Run, left: Any, right: Any, **keywords: Any) -> Array:
        sets = [{key(value) for value in run.listed(side)} for side in (left, right)]
        return _sort(run, getattr(sets[0], name)(sets[1]))

    return function


@ARRAYS(Cost.BY_ITEM, "where", "nonzero")
def _where(run: Run, condition: Any, *more: Any, **keywords: Any) -> Any:
    if not isinstance(condition, Array) or len(condition.shape) != 1:
        raise CannotTellError("where()")
    if len(more) == 2:
        sides = [side.items if isinstance(side, Array) else itertools.repeat(side) for side in more]
        triples = zip(run.listed(condition), *sides, strict=False)
        return Array([left if run.true(value) else right for value, left, right in triples])
    found = Places([i for i, value in enumerate(run.listed(condition)) if run.true(value)])
    return (Array(found.items),) if keywords.get("as_tuple") else found


@ARRAYS(Cost.BY_ITEM, "argwhere", "flatnonzero")
def _flatnonzero(run: Run, values: Any) -> Array:
    return Array(_where(run, Array(run.listed(values))).items)


@ARRAYS(Cost.BY_ITEM)
def _unique(run: Run, values: Any, **keywords: Any) -> Any:
    listed = [key(value) for value in run.listed(values)]
    counts: dict[Any, int] = {}
    first: dict[Any, int] = {}
    for place, value in enumerate(listed):
        counts[value] = counts.get(value, 0) + 1
        first.setdefault(value, place)
    found = _sort(run, counts)
    more: list[Array] = []
    for name in ("return_index", "return_inverse", "return_counts"):
        if run.true(keywords.pop(name, False)):
            places = {value: place for place, value in enumerate(found.items)}
            made_of = {
                "return_index": [first[value] for value in found.items],
                "return_inverse": [places[value] for value in listed],
                "return_counts": [counts[value] for value in found.items],
            }
            more.append(Array(made_of[name]))
    if any(run.true(value) for name, value in keywords.items() if name not in {"dim", "sorted"}):
        raise CannotTellError("unique()")
    return (found, *more) if more else found


@ARRAYS(Cost.BY_ITEM)
def _sort(run: Run, values: Any, *axis: Any, **keywords: Any) -> Array:
    listed = run.listed(values)
    return Array([listed[place] for place in _order(run, listed, keywords)])


@ARRAYS(Cost.BY_ITEM)
def _argsort(run: Run, values: Any, *axis: Any, **keywords: Any) -> Array:
    return Array(_order(run, run.listed(values), keywords))


@ARRAYS(Cost.BY_ITEM)
def _lexsort(run: Run, keys: Any, **keywords: Any) -> Array:
    """The places sorted by the last key, and among equals by those before."""
    rows = [run.listed(each) for each in reversed(run.listed(keys))]
    if len({len(row) for row in rows}) != 1:
        raise CannotTellError("lexsort()")
    return Array(_order(run, [*zip(*rows, strict=True)], keywords))


def _order(run: Run, listed: list[Any], keywords: dict[str, Any]) -> list[int]:
    if any(value is UNKNOWN for value in listed):
        return BUDGET.collect(range(len(listed)))  # as good as any
    listed = without_chance(listed)
    backwards = run.true(keywords.get("descending", False))
    return order([plain(value) for value in listed], reverse=backwards)


@TORCH(Cost.BY_ITEM, "sort")
def _sorted_with_places(run: Run, values: Any, *axis: Any, **keywords: Any) -> tuple[Array, Array]:
    """``torch.sort``."""
    return _sort(run, values, **keywords), _argsort(run, values, **keywords)


def _index_of(choose: Callable[..., Any]) -> Callable[..., Any]:
    def function(run: Run, values: Any) -> Any:
        return extreme(choose, [plain(value) for value in run.listed(values)])

    return function


@ARRAYS(Cost.BY_ITEM)
def _searchsorted(
    run: Run, values: Any, wanted: Any, side: Any = "left", right: Any = False, **keywords: Any
) -> Any:
    listed = [plain(value) for value in run.listed(values)]
    behind = side == "right" or run.true(right)
    if isinstance(wanted, (Array, list)):
        return Array([bisected(listed, plain(one), right=behind) for one in run.listed(wanted)])
    return bisected(listed, plain(wanted), right=behind)


@ARRAYS(Cost.BY_ITEM)
def _digitize(run: Run, values: Any, bins: Any, right: Any = False) -> Any:
    return _searchsorted(run, bins, values, right=not run.true(right))


@ARRAYS(Cost.BY_ITEM)
def _bincount(run: Run, values: Any) -> Array:
    listed = [plain(value) for value in run.listed(values)]
    if not all(type(value) is int and value >= 0 for value in listed):
        raise CannotTellError("bincount()")
    counts = [0 for _ in BUDGET.collect(range(max(listed, default=-1) + 1))]
    for value in listed:
        counts[value] += 1
    return Array(counts)


@ARRAYS(Cost.BY_ITEM)
def _array_split(run: Run, values: Any, sections: Any) -> list[Array]:
    listed, parts = run.listed(values), plain(sections)
    if not isinstance(parts, int) or parts < 1:
        raise CannotTellError("array_split()")
    short, longer = divmod(len(listed), parts)
    sizes = (short + (index < longer) for index in BUDGET.each(range(parts)))
    return _cut(listed, list(itertools.accumulate(sizes)))


@ARRAYS(Cost.BY_ITEM)
def _linspace(run: Run, start: Any, stop: Any = None, num: Any = 50, **keywords: Any) -> Array:
    stop = keywords.get("end", stop)
    first, last, count = plain(start), plain(stop), _count(keywords.get("steps", num))
    if not (isinstance(first, (int, float)) and isinstance(last, (int, float))):
        raise CannotTellError("a number")
    check_number(first, last)
    places = BUDGET.collect(range(count))
    values: list[Any] = [first + (last - first) * i / max(1, count - 1) for i in places]
    if "dtype" in keywords:
        values = [int(value) for value in values]
    return Array(values)


def _elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of numbers, or of each that an array holds."""

    def call(run: Run, value: Any, **keywords: Any) -> Any:
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(value, (list, tuple)):
            value = Array(value)
        if isinstance(value, Array):
            return value.map(lambda item: call(run, item))
        number = plain(value)
        if not isinstance(number, (int, float)):
            raise CannotTellError("a number")
        check_number(number)
        return function(number)

    return call


def _of_two(choose: Callable[..., Any]) -> Callable[..., Any]:
    def call(run: Run, left: Any, right: Any, **keywords: Any) -> Any:
        left, right = (Array(s) if isinstance(s, (list, tuple)) else s for s in (left, right))
        if isinstance(left, Array) and isinstance(right, Array):
            pairs = zip(run.listed(left), run.listed(right), strict=True)
            return Array([call(run, a, b) for a, b in pairs])
        if isinstance(left, Array) or isinstance(right, Array):
            array, other = (left, right) if isinstance(left, Array) else (right, left)
            return array.map(lambda item: call(run, item, other))
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        return choose(plain(left), plain(right))

    return call


@ARRAYS(Cost.BY_ITEM, "clip", "clamp")
def _clip(run: Run, value: Any, *bounds: Any, **keywords: Any) -> Any:
    low, high = [*bounds, None, None][:2]
    low = keywords.get("min", keywords.get("a_min", low))
    high = keywords.get("max", keywords.get("a_max", high))
    value = value if low is None else _of_two(max)(run, value, low)
    return value if high is None else _of_two(min)(run, value, high)


#: What makes one value of many, also along one of two axes.
ALONG = frozenset({"all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "sum"})


def _along(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """Of all that an array holds, or of each of its rows or columns."""

    def function(run: Run, values: Any, *more: Any, **keywords: Any) -> Any:
        axes = [axis for axis in axes_of(more, keywords) if axis is not None]
        if not axes:
            return reduce(run, values)
        array = values if isinstance(values, Array) else nested(run.listed(values))
        depth = len(array.shape)
        if axes[0] not in range(-depth, depth) or depth > 2 or keywords.keys() & _KEEPING:
            raise CannotTellError("along which axis")
        if depth == 1:
            return reduce(run, array)
        rows = array if axes[0] % depth else transposed(array)
        return rows.map(lambda row: reduce(run, row))

    return function


#: Arguments by which what is reduced keeps its number of dimensions.
_KEEPING = frozenset({"keepdim", "keepdims"})


@ARRAYS(Cost.BY_ITEM, "mean")
@_along
def _mean(run: Run, values: Any) -> Any:
    listed = run.listed(values)
    total = run.call(External("builtins.sum"), [listed], {})
    if total is UNKNOWN or not listed:
        return UNKNOWN
    return binary(ast.Div, plain(total), len(listed))


@ARRAYS(Cost.BY_ITEM, "prod")
@_along
def _prod(run: Run, values: Any) -> Any:
    total: Any = 1
    for value in run.iterate(values):
        total = binary(ast.Mult, total, plain(value))
    return total


@ARRAYS(Cost.BY_ITEM)
def _cumsum(run: Run, values: Any, *axis: Any, **keywords: Any) -> Array:
    numbers = (plain(value) for value in run.iterate(values))
    return Array(itertools.accumulate(numbers, partial(binary, ast.Add)))


def _reduced(name: str) -> Callable[..., Any]:
    def function(run: Run, values: Any) -> Any:
        if isinstance(values, (int, float)):
            return values
        listed = list(values.flat()) if isinstance(values, Array) else values
        return run.call(External(f"builtins.{name}"), [listed], {})

    return function


def _extreme_of(name: str, of_two: str) -> Callable[..., Any]:
    """``torch.max``: of all, of two, or along an axis with the places."""

    def function(run: Run, values: Any, *more: Any, **keywords: Any) -> Any:
        if more and isinstance(more[0], Array):
            return ARRAYS[of_two].call(run, values, more[0])
        found = ARRAYS[name].call(run, values, *more, **keywords)
        if not axes_of(more, keywords):
            return found
        return found, ARRAYS[f"arg{name}"].call(run, values, *more, **keywords)

    return function


@ARRAYS(Cost.BY_ITEM)
def _tile(run: Run, values: Any, times: Any) -> Array:
    return Array(binary(ast.Mult, run.listed(values), _count(times)))


@ARRAYS(Cost.BY_ITEM, "repeat", "repeat_interleave")
def _repeat(run: Run, values: Any, repeats: Any, *axis: Any, **keywords: Any) -> Array:
    if isinstance(repeats, (Array, list, tuple)):
        pairs = zip(run.listed(values), run.listed(repeats), strict=True)
        return Array(value for value, n in pairs for _ in BUDGET.collect(range(_count(n))))
    count = _count(repeats)
    return Array(value for value in run.listed(values) for _ in BUDGET.collect(range(count)))


def _operator(kind: type[ast.operator]) -> Callable[..., Any]:
    def call(run: Run, left: Any, right: Any, **keywords: Any) -> Any:
        left, right = (Array(s) if isinstance(s, (list, tuple)) else s for s in (left, right))
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        return binary(kind, plain(left), plain(right))

    return call


#: Operators by name, with and without the ending by which torch changes the array itself.
OPERATORS: dict[str, type[ast.operator]] = {
    "add": ast.Add,
    "div": ast.Div,
    "divide": ast.Div,
    "floor_divide": ast.FloorDiv,
    "mod": ast.Mod,
    "mul": ast.Mult,
    "multiply": ast.Mult,
    "remainder": ast.Mod,
    "sub": ast.Sub,
    "subtract": ast.Sub,
}
for _name, _kind in OPERATORS.items():
    ARRAYS(Cost.BY_ITEM, _name)(_operator(_kind))


@ARRAYS(Cost.BY_ITEM)
def _append(run: Run, values: Any, more: Any, *axis: Any, **keywords: Any) -> Any:
    """``numpy.append``."""
    return _concatenate(run, [values, more if _is_listed(more) else [more]], *axis, **keywords)


def _is_listed(value: Any) -> bool:
    return not isinstance(value, (int, float))


@ARRAYS(Cost.BY_ITEM)
def _take(run: Run, values: Any, places: Any, *axis: Any, **keywords: Any) -> Any:
    return item(Array(run.listed(values)), Array(run.listed(places)))


@ARRAYS(Cost.BY_ITEM)
def _index_select(run: Run, values: Any, dim: Any, index: Any) -> Any:
    if plain(dim) != 0:
        raise CannotTellError("index_select()")
    return _take(run, values, index)


def _without(run: Run, values: Any, places: Any) -> Array:
    """``numpy.delete``."""
    listed = run.listed(values)
    gone = {
        range(len(listed))[_count(p)]
        for p in (run.listed(places) if _is_listed(places) else [places])
    }
    return Array(value for place, value in enumerate(listed) if place not in gone)


@ARRAYS(Cost.BY_ITEM)
def _roll(run: Run, values: Any, shift: Any, *axis: Any, **keywords: Any) -> Array:
    listed = run.listed(values)
    cut = -_count(shift) % max(1, len(listed))
    return Array(listed[cut:] + listed[:cut])


@ARRAYS(Cost.BY_ITEM)
def _diff(run: Run, values: Any) -> Any:
    listed = [plain(value) for value in run.listed(values)]
    return Array(binary(ast.Sub, b, a) for a, b in itertools.pairwise(listed))


ARRAYS(Cost.BY_ITEM, "zeros", "empty")(_filled(0))
ARRAYS(Cost.BY_ITEM, "zeros_like", "empty_like")(_filled_like(0))
ARRAYS(Cost.BY_ITEM, "ones")(_filled(1))
ARRAYS(Cost.BY_ITEM, "ones_like", "full_like")(_filled_like(1))
ARRAYS(Cost.BY_ITEM, "setdiff1d")(_of_sets("difference"))
ARRAYS(Cost.BY_ITEM, "intersect1d")(_of_sets("intersection"))
ARRAYS(Cost.BY_ITEM, "union1d")(_of_sets("union"))
ARRAYS(Cost.BY_ITEM, "reshape")(
    lambda run, array, shape: reshaped(
        nested(run.listed(array)), shape if isinstance(shape, (tuple, list)) else [shape]
    )
)
ARRAYS(Cost.BY_ITEM, "transpose")(lambda run, array: transposed(nested(run.listed(array))))
ARRAYS(Cost.BY_ITEM, "flatten", "ravel")(lambda run, array: Array(nested(run.listed(array)).flat()))
ARRAYS(Cost.BY_ITEM, "minimum")(_of_two(min))
ARRAYS(Cost.BY_ITEM, "maximum")(_of_two(max))
ARRAYS(Cost.BY_ITEM, "bucketize")(
    lambda run, values, bins, **kw: _searchsorted(run, bins, values, **kw)
)
ARRAYS(Cost.BY_ITEM, "abs")(_elementwise(abs))
ARRAYS(Cost.BY_ITEM, "round", "rint")(lambda run, value, *digits: _elementwise(round)(run, value))
ARRAYS(Cost.BY_ITEM, "isnan")(_elementwise(math.isnan))
ARRAYS(Cost.BY_ITEM, "sign")(_elementwise(lambda number: (number > 0) - (number < 0)))
ARRAYS(Cost.BY_ITEM, "logical_not")(_elementwise(lambda number: not number))
ARRAYS(Cost.BY_ITEM, "logical_and")(_of_two(lambda left, right: bool(left and right)))
ARRAYS(Cost.BY_ITEM, "logical_or")(_of_two(lambda left, right: bool(left or right)))
ARRAYS(Cost.BY_ITEM, "argmax")(_along(_index_of(max)))
ARRAYS(Cost.BY_ITEM, "argmin")(_along(_index_of(min)))
ARRAYS(Cost.BY_ITEM, "delete")(lambda run, values, places, *axis: _without(run, values, places))
for _name in ("sum", "max", "min", "any", "all"):
    ARRAYS(Cost.BY_ITEM, _name)(_along(_reduced(_name)))
for _name, _of_both in (("max", "maximum"), ("min", "minimum")):
    TORCH(Cost.BY_ITEM, _name)(_extreme_of(_name, _of_both))
ARRAYS(Cost.BY_ITEM, "ceil")(_elementwise(lambda number: float(math.ceil(number))))
ARRAYS(Cost.BY_ITEM, "floor")(_elementwise(lambda number: float(math.floor(number))))
ARRAYS(Cost.BY_ITEM, "trunc")(_elementwise(lambda number: float(math.trunc(number))))
ARRAYS(Cost.BY_ITEM, "flip")(lambda run, values, *axis, **kw: Array(run.listed(values)[::-1]))
ARRAYS(Cost.BY_ITEM, "int64", "int32")(_reduced("int"))
ARRAYS(Cost.BY_ITEM, "float64", "float32")(_reduced("float"))


@ARRAYS(Cost.FLAT, "is_tensor")
def _is_tensor(run: Run, value: Any) -> bool:
    run.stands_in = True  # what stands for an argument would be one
    return isinstance(value, Array)
