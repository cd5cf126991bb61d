"""Attributes and methods of lists, dicts, sets, texts and arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sampler_lint.execution.arrays import (
    ALONG,
    ARRAYS,
    OPERATORS,
    TORCH,
    axes_of,
    broadcast,
    reshaped,
    transposed,
)
from sampler_lint.execution.budget import BUDGET, Cost, Table
from sampler_lint.execution.builtin import in_order, integer, mapping
from sampler_lint.execution.errors import CannotTellError, RaisedError
from sampler_lint.execution.items import item, store
from sampler_lint.execution.operators import order
from sampler_lint.execution.values import (
    UNKNOWN,
    Array,
    External,
    Native,
    Queue,
    Record,
    Run,
    Size,
    key,
    perform,
    plain,
)

LIST, DICT, SET, STR, ARRAY = Table(), Table(), Table(), Table(), Table()
#: Of a queue between threads.
QUEUE = Table()
#: By the type of their object, which is their first argument.
METHODS = {dict: DICT, list: LIST, set: SET, str: STR, Array: ARRAY}
#: Methods that change their object.
CHANGING = frozenset(
    {
        "add", "append", "appendleft", "clear", "discard", "extend", "fill", "insert", "pop",
        "popitem", "popleft", "remove", "reverse", "setdefault", "sort", "update",
    }
)  # fmt: skip
#: Attributes of arrays.
FACTS = Table()

_KEEPS_ARRAY = frozenset(
    {
        "astype", "bool", "clone", "contiguous", "copy", "cpu", "cuda", "detach", "double",
        "float", "int", "long", "numpy", "requires_grad_", "to", "to_numpy", "type",
    }
)  # fmt: skip


def methods_of(value: Any) -> Table:
    """What is known of the methods that such a value has."""
    known = METHODS.get(type(value))  # most are no subclasses
    if known is not None:
        return known
    return next((table for kind, table in METHODS.items() if isinstance(value, kind)), Table())


def _function(table: Table, name: str) -> Callable[..., Any]:
    """A method that does what the function of that name does."""
    return lambda run, array, *args, **kw: perform(table[name], run, [array, *args], kw)


def _in_place(table: Table, name: str) -> Callable[..., Any]:
    """A method that puts into its array what the function of that name makes."""
    change = _function(table, name)
    return lambda run, array, *args, **kw: _replaced(array, change(run, array, *args, **kw).items)


def _replaced(array: Array, items: list[Any]) -> Array:
    array.items[:] = items
    return array


def attribute(run: Run, owner: Any, name: str) -> Any:
    """An attribute of a plain value."""
    if isinstance(owner, Record) and name in owner.names:
        return owner[owner.names.index(name)]
    if isinstance(owner, Queue) and name == "maxlen":
        return owner.maxlen
    if isinstance(owner, slice) and name in {"start", "stop", "step"}:
        return getattr(owner, name)
    if isinstance(owner, Array) and name in FACTS:
        return perform(FACTS[name], run, (owner,), {})
    queued = isinstance(owner, Queue) and owner.is_of_threads
    method = QUEUE.get(name) if queued else methods_of(owner).get(name)
    if method is not None:
        return Native(lambda *args, **kw: perform(method, run, (owner, *args), kw))
    if isinstance(owner, Array) and name == "index":
        return attribute(run, owner.items, name)  # the argument may be a list as well
    if isinstance(owner, Array):
        raise CannotTellError(f"`{name}` of an array")
    if isinstance(owner, (list, range)) and (name in ARRAY or name in FACTS):
        return attribute(run, Array(owner), name)  # the argument may be an array as well
    if isinstance(owner, (int, float)) and keeps_array(name):
        return Native(lambda: owner)
    if isinstance(owner, str):
        return Native(lambda *args, **kw: UNKNOWN)
    raise CannotTellError(f"`{name}` of a {type(owner).__name__}")


FACTS(Cost.BY_ITEM, "shape")(lambda run, array: array.shape)
#: An attribute in numpy, a method in torch.
FACTS(Cost.FLAT, "size")(lambda run, array: Size(len(array.items)))
FACTS(Cost.BY_ITEM, "ndim")(lambda run, array: len(array.shape))
FACTS(Cost.BY_ITEM, "T")(lambda run, array: transposed(array))
FACTS(Cost.FLAT, "values")(lambda run, array: array)
FACTS(Cost.FLAT, "dtype", "device")(lambda run, array: UNKNOWN)


@ARRAY(Cost.BY_ITEM, *sorted(_KEEPS_ARRAY))
def _same(run: Run, array: Array, *args: Any, **keywords: Any) -> Array:
    kinds = [*args, keywords.get("dtype")]
    names = [k.dotted.rpartition(".")[2] if isinstance(k, External) else k for k in kinds]
    whole = any(isinstance(name, str) and _WHOLE.match(name) for name in names)
    return _whole(run, array) if whole else Array(array.items)


#: Kinds of whole numbers.
_WHOLE = re.compile(r"u?int\d*$|long$")


@ARRAY(Cost.BY_ITEM, "int", "long")
def _whole(run: Run, array: Array, *args: Any, **keywords: Any) -> Array:
    return array.map(
        lambda item: _whole(run, item) if isinstance(item, Array) else integer(run, item)
    )


@ARRAY(Cost.BY_ITEM, "fill", "fill_")
def _fill(run: Run, array: Array, value: Any) -> Array:
    store(array, slice(None), value)
    return array


@ARRAY(Cost.BY_ITEM)
def _narrow(run: Run, array: Array, dim: Any, start: Any, length: Any) -> Array:
    first = plain(start)
    places: Any = slice(first, first + plain(length))
    found: Array = item(array, (*[slice(None)] * plain(dim), places))
    return found


@ARRAY(Cost.BY_ITEM, "view", "reshape")
def _reshape(run: Run, array: Array, *shape: Any, **keywords: Any) -> Array:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return reshaped(array, sizes)


@ARRAY(Cost.BY_ITEM)
def _squeeze(run: Run, array: Array, *axis: Any, **keywords: Any) -> Any:
    sizes = [size for size in array.shape if size != 1]
    return reshaped(array, sizes or [-1])


@ARRAY(Cost.BY_ITEM, "tolist")
def _listed_rows(run: Run, array: Any, *args: Any, **keywords: Any) -> Any:
    if not isinstance(array, Array):
        return array
    return BUDGET.collect(_listed_rows(run, row) for row in array.items)


def _of_array(name: str) -> Callable[..., Any]:
    def call(run: Run, array: Array, *args: Any, **keywords: Any) -> Any:
        more = axes_of(args, keywords)
        if keywords.keys() - {"axis", "dim"}:
            raise CannotTellError(f"`{name}` of an array")
        if len(array.shape) == 1 and all(axis in (0, -1) for axis in more):
            return perform(ARRAYS[name], run, [array], {})
        is_torch_or_numpy = name in TORCH and "axis" not in keywords  # they give other things
        if len(array.shape) == 1 or name not in ALONG or is_torch_or_numpy:
            raise CannotTellError(f"`{name}` of an array")
        return perform(ARRAYS[name], run, [array, *args], keywords)

    return call


@ARRAY(Cost.FLAT, "item")
def _only(run: Run, array: Array) -> Any:
    if len(array.items) != 1:
        raise CannotTellError("`item` of an array")
    return array.items[0]


@ARRAY(Cost.BY_ITEM, "sort")
def _sort_array(run: Run, array: Array, *args: Any, **keywords: Any) -> Any:
    """In place in numpy; in torch a copy, with the places."""
    both = perform(TORCH["sort"], run, [array], keywords)
    if not (args or keywords):
        array.items[:] = both[0].items
    return both


@LIST(Cost.FLAT)
def _append(run: Run, owner: list[Any], value: Any) -> None:
    owner.append(value)
    if isinstance(owner, Queue) and owner.maxlen is not None and len(owner) > owner.maxlen:
        del owner[0]


@LIST(Cost.BY_ITEM)
def _extend(run: Run, owner: list[Any], values: Any) -> None:
    owner.extend(run.listed(values))


@LIST(Cost.SHALLOW)
def _pop(run: Run, owner: list[Any], index: Any = -1) -> Any:
    try:
        return owner.pop(plain(index))
    except IndexError as error:
        raise RaisedError("IndexError") from error


@QUEUE(Cost.SHALLOW, "get", "get_nowait")
def _take(run: Run, owner: Queue, *more: Any, **keywords: Any) -> Any:
    if not owner:
        raise CannotTellError("how long it waits")
    return owner.pop(0)


@LIST(Cost.BY_ITEM)
def _sort(run: Run, owner: list[Any], key: Any = None, reverse: Any = False) -> None:
    owner[:] = in_order(run, owner, key=key, reverse=reverse)


@DICT(Cost.FLAT, "get")
def _dict_get(run: Run, owner: dict[Any, Any], name: Any, default: Any = None) -> Any:
    return owner.get(key(name), default)


@DICT(Cost.FLAT, "pop")
def _dict_pop(run: Run, owner: dict[Any, Any], name: Any, *default: Any) -> Any:
    try:
        return owner.pop(key(name), *default)
    except KeyError as error:
        raise RaisedError("KeyError") from error


@DICT(Cost.FLAT, "setdefault")
def _dict_set(run: Run, owner: dict[Any, Any], name: Any, default: Any = None) -> Any:
    return owner.setdefault(key(name), default)


@DICT(Cost.BY_ITEM)
def _most_common(run: Run, owner: dict[Any, Any], count: Any = None) -> list[Any]:
    items = run.listed(list(owner.items()))
    places = order([plain(number) for _, number in items], reverse=True)
    return [items[place] for place in places][: None if count is None else plain(count)]


@DICT(Cost.BY_ITEM, "update")
def _dict_update(run: Run, owner: dict[Any, Any], other: Any = (), **more: Any) -> None:
    owner.update(mapping(run, other, **more))


def _of_sets(name: str) -> Callable[..., Any]:
    return lambda run, owner, other: getattr(owner, name)({key(v) for v in run.listed(other)})


def keeps_array(name: str) -> bool:
    """Whether it is a method by which an array, or a number in one, stays what it is."""
    return name in _KEEPS_ARRAY or name in {"item", "lower", "strip", "tolist", "upper"}


LIST(Cost.FLAT, "__getitem__")(lambda run, owner, index: item(owner, plain(index)))
LIST(Cost.SHALLOW, "appendleft")(lambda run, owner, value: owner.insert(0, value))
LIST(Cost.SHALLOW, "popleft")(lambda run, owner: _pop(run, owner, 0))
QUEUE(Cost.FLAT, "put", "put_nowait")(lambda run, owner, value, *more, **kw: owner.append(value))
QUEUE(Cost.FLAT, "qsize")(lambda run, owner: len(owner))
QUEUE(Cost.FLAT, "empty")(lambda run, owner: not owner)
LIST.own(Cost.SHALLOW, "reverse", "clear", "copy")
LIST(Cost.SHALLOW, "insert")(lambda run, owner, index, value: owner.insert(plain(index), value))
LIST.own(Cost.DEEP, "index", "count", "remove")
DICT(Cost.FLAT, "__getitem__")(lambda run, owner, name: owner[key(name)])
DICT(Cost.SHALLOW, "keys")(lambda run, owner: list(owner))
DICT(Cost.SHALLOW, "values")(lambda run, owner: list(owner.values()))
DICT(Cost.SHALLOW, "items")(lambda run, owner: list(owner.items()))
DICT.own(Cost.SHALLOW, "clear", "copy")
SET(Cost.FLAT, "add")(lambda run, owner, value: owner.add(key(value)))
SET(Cost.FLAT, "discard")(lambda run, owner, value: owner.discard(key(value)))
SET(Cost.FLAT, "remove")(lambda run, owner, value: owner.remove(key(value)))
SET(Cost.BY_ITEM, "update")(lambda run, owner, values: owner.update(map(key, run.listed(values))))
SET.own(Cost.SHALLOW, "clear", "copy")
for _name in ("union", "intersection", "difference", "issubset", "issuperset", "isdisjoint"):
    SET(Cost.SHALLOW, _name)(_of_sets(_name))
STR.own(Cost.SHALLOW, "lower", "upper", "strip", "lstrip", "rstrip", "startswith", "endswith")
STR.own(Cost.SHALLOW, "isdigit", "split")
ARRAY(Cost.BY_ITEM, "flatten", "ravel")(lambda run, array, **kw: Array(array.flat()))
ARRAY(Cost.BY_ITEM, "t", "transpose", "permute")(lambda run, array, *axes, **kw: transposed(array))
ARRAY(Cost.BY_ITEM, "numel", "nelement")(
    lambda run, array, *args, **kw: sum(1 for _ in array.flat())
)
for _name in OPERATORS:
    ARRAY(Cost.BY_ITEM, f"{_name}_")(_in_place(ARRAYS, _name))
ARRAY(Cost.BY_ITEM, "random_", "uniform_", "normal_")(
    lambda run, array, *bounds, **kw: _replaced(array, [UNKNOWN for _ in array.items])
)
ARRAY(Cost.BY_ITEM, "new_zeros")(lambda run, array, *size: perform(ARRAYS["zeros"], run, size, {}))
ARRAY(Cost.FLAT, "__len__")(lambda run, array: len(array.items))
ARRAY(Cost.FLAT, "dim")(lambda run, array: len(array.shape))
ARRAY(Cost.BY_ITEM, "zero_")(lambda run, array: _fill(run, array, 0))
for _name in ("split", "chunk"):
    ARRAY(Cost.BY_ITEM, _name)(_function(TORCH, _name))
ARRAY(Cost.FLAT, "__getitem__")(lambda run, array, index: item(array, plain(index)))
ARRAY(Cost.BY_ITEM, "repeat_interleave")(_function(ARRAYS, "repeat"))
ARRAY(Cost.BY_ITEM, "unsqueeze")(_function(ARRAYS, "unsqueeze"))
ARRAY(Cost.BY_ITEM, "expand")(
    lambda run, array, *shape: broadcast(
        run, array, shape[0] if isinstance(shape[0], (tuple, list)) else shape
    )
)
for _name in (
    "argsort",
    "nonzero",
    "clip",
    "clamp",
    "repeat",
    "tile",
    "take",
    "index_select",
    *("bincount", "isin", "searchsorted", "flip", "roll", "diff", "abs", "sign", "isnan"),
    *("logical_not", "logical_and", "logical_or", "minimum", "maximum", "flatnonzero", "argwhere"),
    *OPERATORS,
):
    ARRAY(Cost.BY_ITEM, _name)(_function(ARRAYS, _name))
for _name in (
    *("sum", "max", "min", "any", "all", "cumsum", "unique", "argmax", "argmin", "mean", "prod"),
    *("ceil", "floor", "round", "trunc"),
):
    ARRAY(Cost.BY_ITEM, _name)(_of_array(_name))
