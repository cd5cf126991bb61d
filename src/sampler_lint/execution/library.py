"""What builtins, the standard library, torch and numpy do, as far as samplers use them.

A function that is not known gives :data:`UNKNOWN` if it cannot change its arguments. Each that
is known says in its table what it costs (:class:`~.budget.Cost`).
"""

from __future__ import annotations

import ast
import builtins
import itertools
import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sampler_lint.execution.arrays import (
    ARRAYS,
    RANDOM,
    RANDOM_STATE,
    TORCH,
    reshaped,
    transposed,
)
from sampler_lint.execution.budget import BUDGET, MOST_DIGITS, Cost, Op
from sampler_lint.execution.errors import CannotTellError, Kind, RaisedError
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
    Bound,
    Data,
    External,
    Fn,
    Given,
    Instance,
    Klass,
    Native,
    Places,
    Queue,
    Record,
    Run,
    Size,
    Source,
    key,
    perform,
    plain,
    weigh,
)

_SILENT = ("builtins.print", "logging.", "warnings.", "loguru.", "gc.")


class Defaults(dict[Any, Any]):
    """A ``defaultdict`` whose factory the interpreter runs."""

    def __init__(self, make: Callable[[], Any]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, key: Any) -> Any:
        self[key] = self.make()
        return self[key]


def has_builtin(name: str) -> bool:
    """Whether Python has such a builtin."""
    return hasattr(builtins, name)


def is_method(kind: type, name: str) -> bool:
    """Whether such values have a method that is known."""
    return name in METHODS[kind.__name__]


def is_silent(callee: Any) -> bool:
    """Whether a call only says something to the user."""
    return isinstance(callee, External) and callee.dotted.startswith(_SILENT)


def is_isinstance(callee: Any) -> bool:
    """Whether it is the builtin function."""
    return isinstance(callee, External) and callee.dotted == "builtins.isinstance"


def item(owner: Any, index: Any) -> Any:
    """``owner[index]``."""
    if isinstance(owner, External):
        raise CannotTellError("an item from outside")
    if isinstance(owner, Array):
        if isinstance(owner, Places) and index == 0:
            return Array(owner.items)
        if isinstance(index, tuple):
            return _inner_item(owner, index)
        if isinstance(index, slice):
            return Array(item(owner.items, index))
        if isinstance(index, (Array, list)):
            keys = index.items if isinstance(index, Array) else index
            BUDGET.items(len(keys))
            if len(keys) == len(owner.items) and all(isinstance(k, bool) for k in keys):
                return Array(list(itertools.compress(owner.items, keys)))
            return Array([item(owner, k) for k in keys])
        if index is UNKNOWN:
            return UNKNOWN
        return owner.items[index]
    if index is UNKNOWN:
        return UNKNOWN
    if isinstance(owner, (list, tuple, str, range)):
        if isinstance(index, Array) and len(index.items) == 1:
            index = index.items[0]
        if isinstance(index, Array) and isinstance(owner, list):
            return item(Array(owner), index)  # the argument may be an array as well
        if isinstance(index, slice):
            if not isinstance(owner, range):
                BUDGET.items(len(range(*index.indices(len(owner)))))
        elif not isinstance(index, int):
            raise CannotTellError("an item")
        return owner[index]
    if isinstance(owner, dict):
        return owner[key(index)]
    raise CannotTellError("an item")


def store(container: Any, index: Any, value: Any) -> None:
    """``container[index] = value``."""
    if index is UNKNOWN:
        raise CannotTellError("which item is set")
    if isinstance(container, Array):
        if isinstance(index, (slice, Array, tuple)):
            _store_several(container, index, value)
            return
        container = container.items
    if isinstance(container, list) and isinstance(index, slice):
        if isinstance(value, Array):
            value = value.items
        if not isinstance(value, (list, tuple, range)):
            raise CannotTellError("items that are set")
        BUDGET.items(len(container))
        value = BUDGET.collect(value)
    if isinstance(container, (list, dict)):
        try:
            container[index if isinstance(container, list) else key(index)] = value
        except (IndexError, TypeError) as error:
            raise CannotTellError("an item that is set") from error
        return
    if container is not UNKNOWN:
        raise CannotTellError("an item that is set")


def _inner_item(owner: Array, index: tuple[Any, ...]) -> Any:
    """``owner[first, rest]``."""
    if not index:
        return owner
    first, *rest = index
    if isinstance(owner, Places) and isinstance(first, slice):
        return item(Array(owner.items), first)
    chosen = item(owner, first)
    if not rest:
        return chosen
    if not isinstance(chosen, Array):
        raise CannotTellError("an item of an array")
    if isinstance(first, int):
        return _inner_item(chosen, tuple(rest))
    return Array([item(row, tuple(rest)) for row in chosen.items])


def _store_several(array: Array, index: Any, value: Any) -> None:
    """``array[index] = value`` of a slice, an array of places or a place in several dimensions."""
    if isinstance(index, tuple):
        first, *rest = index
        if rest and isinstance(first, int):
            inner = array.items[first]
            return store(inner, rest[0] if len(rest) == 1 else tuple(rest), value)
        raise CannotTellError("items that are set")
    if isinstance(index, slice):
        places = BUDGET.collect(range(*index.indices(len(array.items))))
    elif index.items and all(isinstance(place, bool) for place in index.items):
        places = [place for place, chosen in enumerate(index.items) if chosen]
    else:
        places = [plain(place) for place in index.items]
    values = value.items if isinstance(value, Array) else value
    if not isinstance(values, (list, tuple, range)):
        values = [value for _ in places]
    if len(values) != len(places):
        raise CannotTellError("items that are set")
    for place, one in zip(places, values, strict=True):
        array.items[place] = one
    return None


def delete(container: Any, index: Any) -> None:
    """``del container[index]``."""
    if isinstance(container, list):
        BUDGET.items(len(container))
    elif isinstance(container, dict):
        index = key(index)
    else:
        raise CannotTellError("what is deleted")
    del container[index]


def contains(run: Run, container: Any, value: Any) -> bool:
    """``value in container``."""
    value = plain(value)
    if isinstance(container, str) and isinstance(value, str):
        BUDGET.text(len(container) + len(value))
        return value in container
    if isinstance(container, range) and isinstance(value, int):
        return value in container
    listed = [plain(part) for part in run.listed(container)]
    weigh(listed)
    return value in listed


# --------------------------------------------------------------------------- attributes


def external_attribute(owner: External, name: str) -> Any:
    """An attribute of something outside the tree."""
    if owner.dotted in {"math", "numpy", "torch", "np"} and name in {"inf", "pi", "e"}:
        return getattr(math, name)
    if owner.dotted == "sys" and name == "maxsize":
        return 2**63 - 1
    BUDGET.text(len(owner.dotted) + len(name))
    return External(f"{owner.dotted}.{name}")


def attribute(run: Run, owner: Any, name: str) -> Any:
    """An attribute of a plain value."""
    if isinstance(owner, Record) and name in owner.names:
        return owner[owner.names.index(name)]
    if isinstance(owner, Queue) and name == "maxlen":
        return owner.maxlen
    if isinstance(owner, Array) and name in _ARRAY_FACTS:
        return _ARRAY_FACTS[name](owner)
    op = METHODS.get(_kind(owner), {}).get(name)
    if op is not None:
        method = op
        return Native(lambda *args, **kw: perform(method, run, (owner, *args), kw))
    if isinstance(owner, Array):
        raise CannotTellError(f"`{name}` of an array")
    if isinstance(owner, (list, range)) and (name in METHODS["Array"] or name in _ARRAY_FACTS):
        return attribute(run, Array(owner), name)  # the argument may be an array as well
    if isinstance(owner, (int, float)) and name in {"item", "tolist", "long", "int", "float"}:
        return Native(lambda: owner)
    if isinstance(owner, str):
        return Native(lambda *args, **kw: UNKNOWN)
    raise CannotTellError(f"`{name}` of a {type(owner).__name__}")


def _kind(owner: Any) -> str:
    for kind in (dict, list, set, str, Array):
        if isinstance(owner, kind):
            return kind.__name__
    return ""


_ARRAY_FACTS: dict[str, Callable[[Array], Any]] = {
    "shape": lambda array: array.shape,
    # An attribute in numpy, a method in torch.
    "size": lambda array: Size(len(array.items)),
    "ndim": lambda array: len(array.shape),
    "T": lambda array: transposed(array),
    "values": lambda array: array,
    "dtype": lambda array: UNKNOWN,
    "device": lambda array: UNKNOWN,
}


def _same(run: Run, array: Array, *args: Any, **keywords: Any) -> Array:
    kinds = [*args, keywords.get("dtype")]
    names = [k.dotted.rpartition(".")[2] if isinstance(k, External) else k for k in kinds]
    whole = any(isinstance(name, str) and _WHOLE.match(name) for name in names)
    return _whole(run, array) if whole else Array(array.items)


#: Kinds of whole numbers.
_WHOLE = re.compile(r"u?int\d*$|long$")


def _whole(run: Run, array: Array, *args: Any, **keywords: Any) -> Array:
    return array.map(lambda item: _whole(run, item) if isinstance(item, Array) else _int(run, item))


def _reshape(run: Run, array: Array, *shape: Any, **keywords: Any) -> Array:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return reshaped(array, sizes)


def _squeeze(run: Run, array: Array, *axis: Any, **keywords: Any) -> Any:
    sizes = [size for size in array.shape if size != 1]
    return reshaped(array, sizes or [-1])


def _listed_rows(run: Run, array: Any, *args: Any, **keywords: Any) -> Any:
    if not isinstance(array, Array):
        return array
    return BUDGET.collect(_listed_rows(run, row) for row in array.items)


def _of_torch(name: str) -> Op:
    def call(run: Run, array: Array, *args: Any, **keywords: Any) -> Any:
        return external(run, f"torch.{name}", [array, *args], keywords)

    return Op(Cost.BY_ITEM, call)


def _of_array(name: str) -> Op:
    def call(run: Run, array: Array, *args: Any, **keywords: Any) -> Any:
        more = [*args, *(keywords[axis] for axis in ("axis", "dim") if axis in keywords)]
        if (
            keywords.keys() - {"axis", "dim"}
            or any(plain(axis) not in (0, -1) for axis in more)
            or (more and len(array.shape) > 1)
        ):
            raise CannotTellError(f"`{name}` of an array")
        return external(run, f"numpy.{name}", [array], {})

    return Op(Cost.BY_ITEM, call)


def _only(run: Run, array: Array) -> Any:
    if len(array.items) != 1:
        raise CannotTellError("`item` of an array")
    return array.items[0]


def _sort_array(run: Run, array: Array, *args: Any, **keywords: Any) -> Any:
    """In place in numpy; in torch a copy, with the places."""
    both = external(run, "torch.sort", [array], keywords)
    if not (args or keywords):
        array.items[:] = both[0].items
    return both


def _append(run: Run, owner: list[Any], value: Any) -> None:
    owner.append(value)
    if isinstance(owner, Queue) and owner.maxlen is not None and len(owner) > owner.maxlen:
        del owner[0]


def _extend(run: Run, owner: list[Any], values: Any) -> None:
    owner.extend(run.listed(values))


def _pop(run: Run, owner: list[Any], index: Any = -1) -> Any:
    try:
        return owner.pop(plain(index))
    except IndexError as error:
        raise RaisedError("IndexError") from error


def _remove(run: Run, owner: list[Any], value: Any) -> None:
    owner.remove(value)


def _sort(run: Run, owner: list[Any], key: Any = None, reverse: Any = False) -> None:
    owner[:] = _sorted(run, owner, key=key, reverse=reverse)


def _copy(run: Run, owner: Any) -> Any:
    return owner.copy()


def _dict_get(run: Run, owner: dict[Any, Any], name: Any, default: Any = None) -> Any:
    return owner.get(key(name), default)


def _dict_pop(run: Run, owner: dict[Any, Any], name: Any, *default: Any) -> Any:
    try:
        return owner.pop(key(name), *default)
    except KeyError as error:
        raise RaisedError("KeyError") from error


def _dict_set(run: Run, owner: dict[Any, Any], name: Any, default: Any = None) -> Any:
    return owner.setdefault(key(name), default)


def _most_common(run: Run, owner: dict[Any, Any], count: Any = None) -> list[Any]:
    items = run.listed(list(owner.items()))
    places = order([plain(number) for _, number in items], reverse=True)
    return [items[place] for place in places][: None if count is None else plain(count)]


def _dict_update(run: Run, owner: dict[Any, Any], other: Any = (), **more: Any) -> None:
    owner.update(_dict(run, other, **more))


_KEEPS_ARRAY = frozenset(
    {
        "astype", "bool", "clone", "contiguous", "copy", "cpu", "cuda", "detach", "double",
        "float", "int", "long", "numpy", "requires_grad_", "to", "to_numpy", "type",
    }
)  # fmt: skip


def keeps_array(name: str) -> bool:
    """Whether it is a method by which an array, or a number in one, stays what it is."""
    return name in _KEEPS_ARRAY or name in {"item", "lower", "strip", "tolist", "upper"}


#: By the type of their object, which is their first argument.
METHODS: dict[str, dict[str, Op]] = {
    "list": {
        "__getitem__": Op(Cost.FLAT, lambda run, owner, index: item(owner, plain(index))),
        "append": Op(Cost.FLAT, _append),
        "extend": Op(Cost.BY_ITEM, _extend),
        "pop": Op(Cost.SHALLOW, _pop),
        "appendleft": Op(Cost.SHALLOW, lambda run, owner, value: owner.insert(0, value)),
        "popleft": Op(Cost.SHALLOW, lambda run, owner: _pop(run, owner, 0)),
        "remove": Op(Cost.DEEP, _remove),
        "sort": Op(Cost.BY_ITEM, _sort),
        "copy": Op(Cost.SHALLOW, _copy),
        "reverse": Op(Cost.SHALLOW, lambda run, owner: owner.reverse()),
        "clear": Op(Cost.SHALLOW, lambda run, owner: owner.clear()),
        "insert": Op(
            Cost.SHALLOW, lambda run, owner, index, value: owner.insert(plain(index), value)
        ),
        "index": Op(Cost.DEEP, lambda run, owner, value: owner.index(value)),
        "count": Op(Cost.DEEP, lambda run, owner, value: owner.count(value)),
    },
    "dict": {
        "__getitem__": Op(Cost.FLAT, lambda run, owner, name: owner[key(name)]),
        "keys": Op(Cost.SHALLOW, lambda run, owner: list(owner)),
        "values": Op(Cost.SHALLOW, lambda run, owner: list(owner.values())),
        "items": Op(Cost.SHALLOW, lambda run, owner: list(owner.items())),
        "get": Op(Cost.FLAT, _dict_get),
        "pop": Op(Cost.FLAT, _dict_pop),
        "setdefault": Op(Cost.FLAT, _dict_set),
        "most_common": Op(Cost.BY_ITEM, _most_common),
        "update": Op(Cost.BY_ITEM, _dict_update),
        "copy": Op(Cost.SHALLOW, _copy),
        "clear": Op(Cost.SHALLOW, lambda run, owner: owner.clear()),
    },
    "set": {
        "add": Op(Cost.FLAT, lambda run, owner, value: owner.add(key(value))),
        "discard": Op(Cost.FLAT, lambda run, owner, value: owner.discard(key(value))),
        "remove": Op(Cost.FLAT, lambda run, owner, value: owner.remove(key(value))),
        "update": Op(
            Cost.BY_ITEM, lambda run, owner, values: owner.update(map(key, run.listed(values)))
        ),
        "clear": Op(Cost.SHALLOW, lambda run, owner: owner.clear()),
        "copy": Op(Cost.SHALLOW, _copy),
        "union": Op(
            Cost.SHALLOW, lambda run, owner, other: owner | {key(v) for v in run.listed(other)}
        ),
    },
    "str": {
        "lower": Op(Cost.SHALLOW, lambda run, owner: owner.lower()),
        "upper": Op(Cost.SHALLOW, lambda run, owner: owner.upper()),
        "strip": Op(Cost.SHALLOW, lambda run, owner: owner.strip()),
        "startswith": Op(Cost.SHALLOW, lambda run, owner, start: owner.startswith(start)),
        "endswith": Op(Cost.SHALLOW, lambda run, owner, end: owner.endswith(end)),
    },
    "Array": {
        **dict.fromkeys(sorted(_KEEPS_ARRAY), Op(Cost.BY_ITEM, _same)),
        **dict.fromkeys(("int", "long"), Op(Cost.BY_ITEM, _whole)),
        **dict.fromkeys(("view", "reshape"), Op(Cost.BY_ITEM, _reshape)),
        **dict.fromkeys(
            ("flatten", "ravel"), Op(Cost.BY_ITEM, lambda run, array, **kw: Array(array.flat()))
        ),
        **dict.fromkeys(
            ("t", "transpose", "permute"),
            Op(Cost.BY_ITEM, lambda run, array, *axes, **kw: transposed(array)),
        ),
        "squeeze": Op(Cost.BY_ITEM, _squeeze),
        "tolist": Op(Cost.BY_ITEM, _listed_rows),
        **dict.fromkeys(
            ("numel", "nelement"),
            Op(Cost.BY_ITEM, lambda run, array, *args, **kw: sum(1 for _ in array.flat())),
        ),
        "__len__": Op(Cost.FLAT, lambda run, array: len(array.items)),
        "dim": Op(Cost.FLAT, lambda run, array: len(array.shape)),
        "fill": Op(Cost.BY_ITEM, lambda run, array, value: store(array, slice(None), value)),
        **{name: _of_torch(name) for name in ("split", "chunk")},
        "__getitem__": Op(Cost.FLAT, lambda run, array, index: item(array, plain(index))),
        "repeat_interleave": Op(
            Cost.BY_ITEM,
            lambda run, array, times, **kw: external(run, "numpy.repeat", [array, times], {}),
        ),
        "item": Op(Cost.FLAT, _only),
        "sort": Op(Cost.BY_ITEM, _sort_array),
        **{
            name: Op(
                Cost.BY_ITEM,
                lambda run, array, *args, name=name, **kw: external(
                    run, f"numpy.{name}", [array, *args], kw
                ),
            )
            for name in ("argsort", "nonzero", "clip", "clamp", "repeat", "tile")
        },
        **{
            name: _of_array(name)
            for name in (
                "sum",
                "max",
                "min",
                "any",
                "all",
                "cumsum",
                "unique",
                "argmax",
                "argmin",
                "mean",
                "prod",
                "ceil",
                "floor",
                "round",
            )
        },
    },
}


# --------------------------------------------------------------------------- functions


def external(run: Run, dotted: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """A call of something outside the tree."""
    root, _, rest = dotted.partition(".")
    last = dotted.rpartition(".")[2]
    op: Op | None = None
    if root == "builtins":
        op = BUILTINS.get(rest) or DOTTED.get(rest)
    elif root == "math" and rest in MATH:
        op = MATH[rest]
    elif last in RANDOM_STATE and root in {"random", "numpy", "torch"}:
        if args or keywords:
            _seed(run, [*args, *keywords.values()])
        return External(f"{root}.random")
    elif last in {"seed", "manual_seed"} and root in {"random", "numpy", "torch"}:
        _seed(run, args)
    elif root in {"random", "numpy", "torch"} and last in RANDOM and _is_random(dotted):
        run.outside += 1
        if not run.seeds:
            run.seeds = None
        op = RANDOM[last]
    elif root == "torch" and last in TORCH and dotted.count(".") == 1:
        op = TORCH[last]
    elif root in {"numpy", "torch"} and last in ARRAYS and dotted.count(".") == 1:
        op = ARRAYS[last]
    else:
        op = ANYWHERE.get(last) or DOTTED.get(dotted)
    if op is not None:
        return perform(op, run, args, keywords)
    if not _is_pure(dotted, keywords) and any(
        isinstance(a, (list, dict, Array, Instance, set)) for a in [*args, *keywords.values()]
    ):
        raise CannotTellError(f"what {dotted} does")
    if root == "torch" and ".distributed" in dotted:
        raise CannotTellError(f"what {dotted} does")
    run.outside += 1
    for arg in args:
        if isinstance(arg, Given) and root != "torch":
            return arg.made_by(last)
    return UNKNOWN


#: Libraries of which all functions but a few give something new.
_PURE = frozenset(
    {"math", "numpy", "operator", "pandas", "scipy", "sklearn", "statistics", "torch"}
)
#: In names of functions that change what they are given.
_CHANGES = re.compile(r"_$|shuffle|\.(put|copyto|fill|place)|heap|out$")


def _is_pure(dotted: str, keywords: dict[str, Any]) -> bool:
    """Whether a function of a library leaves its arguments as they are."""
    root = dotted.partition(".")[0]
    return (
        root in _PURE
        and ".distributed" not in dotted
        and "out" not in keywords
        and _CHANGES.search(dotted) is None
    )


def _seed(run: Run, values: list[Any]) -> None:
    """Note what all later random numbers depend on."""
    known = values and all(isinstance(value, (int, float, str, Data)) for value in values)
    if not known:
        run.seeds = None
    elif run.seeds is not None:
        run.seeds += [value.key if isinstance(value, Data) else value for value in values]


def _is_random(dotted: str) -> bool:
    return dotted.startswith(("random.", "numpy.random.", "torch.random.")) or (
        dotted.startswith("torch.") and dotted.count(".") == 1
    )


# -- builtins


def _int(run: Run, value: Any = 0, *base: Any) -> Any:
    if value is UNKNOWN:
        return UNKNOWN
    value = plain(value)
    if isinstance(value, Array) and len(value.items) == 1:
        value = value.items[0]
    return int(_readable(value, "int()"))


def _float(run: Run, value: Any = 0) -> Any:
    return UNKNOWN if value is UNKNOWN else float(_readable(plain(value), "float()"))


def _readable(value: Any, what: str) -> int | float | str:
    if not isinstance(value, (int, float, str)):
        raise CannotTellError(what)
    if isinstance(value, str) and len(value) > MOST_DIGITS:
        raise CannotTellError("a large number")
    check_number(value)
    return value


def _getattr(run: Run, owner: Any, name: Any, *default: Any) -> Any:
    if not isinstance(name, str):
        raise CannotTellError("getattr")
    if default and isinstance(owner, Source):
        return owner.attribute(name) if owner.has(name) else default[0]
    if default and isinstance(owner, Given):
        return default[0]  # a configuration need not say it
    if default and isinstance(owner, (Data, External)) and not name == "indices":
        raise CannotTellError(f"whether there is `{name}`")
    try:
        return run.attribute(owner, name)
    except RaisedError as error:
        if default and error.kind == "AttributeError":
            return default[0]
        raise


def _hasattr(run: Run, owner: Any, name: Any) -> bool:
    if isinstance(owner, Source) and isinstance(name, str):
        return owner.has(name)
    if not isinstance(owner, Instance) or not isinstance(name, str):
        raise CannotTellError("hasattr")
    return name in owner.attributes or run.member(owner.klass, name) is not None


def _str(run: Run, value: Any = "", *more: Any) -> Any:
    value = value.number if type(value) is Data else value
    check_number(value)
    return str(value) if isinstance(value, (int, float, str)) else UNKNOWN


_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
    "str": (str,),
    "list": (list,),
    "tuple": (tuple,),
    "dict": (dict,),
    "set": (set,),
    "range": (range,),
    "Integral": (int,),
    "Number": (int, float),
}


def _isinstance(run: Run, value: Any, kinds: Any) -> bool:
    if value is UNKNOWN or isinstance(value, External):
        raise CannotTellError("its type")
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if _is_a(run, value, run.external_class(kind)):
            return True
    # What was made up for an argument would be what is asked for, if it is to be anything.
    run.stands_in = run.stands_in or _is_made_up(value)
    return False


def _is_made_up(value: Any) -> bool:
    return isinstance(value, (Data, Array, list, range)) or (
        isinstance(value, Instance) and value.klass.names.module is None
    )


def _is_a(run: Run, value: Any, kind: Any) -> bool:
    if isinstance(kind, Klass):
        if isinstance(value, Instance):
            return any(base is kind for base in value.klass.mro)
        if isinstance(value, Data) and not isinstance(value, (Source, Given)):
            raise CannotTellError("the type of data")
        return isinstance(value, Source) and kind.name == "Dataset"
    name = kind.dotted.rpartition(".")[2] if isinstance(kind, External) else ""
    is_part = isinstance(value, Data) and not isinstance(value, (Source, Given))
    if name in {"Tensor", "ndarray", "LongTensor"}:
        if is_part:
            raise CannotTellError("the type of data")
        return isinstance(value, Array)
    if name in {"Sized", "Iterable", "Collection", "Sequence"}:
        return not isinstance(value, (int, float)) and value is not None
    if name not in _TYPES:
        if is_part or (isinstance(value, Instance) and value.klass.names.module is not None):
            raise CannotTellError("its type")
        # Data sets and arguments are of no kind that a library has, unless they must be.
        return False
    if isinstance(value, Data) and not isinstance(value, Source):
        if value.length is not None and name in {"list", "tuple"}:
            return True
        if isinstance(value, Given):
            raise value.wanted(_KIND_OF.get(name, Kind.SEQUENCE))
        raise CannotTellError("the type of data")
    return isinstance(value, _TYPES[name])


_KIND_OF = {
    **dict.fromkeys(("int", "float", "Integral", "Number"), Kind.NUMBER),
    "bool": Kind.FLAG,
    "dict": Kind.MAPPING,
}


def _keys(run: Run, listed: list[Any], key: Any) -> list[Any]:
    keys = listed if key is None else [run.call(key, [value], {}) for value in listed]
    if key is not None and any(value is UNKNOWN for value in keys):
        return [0 for _ in keys]  # by chance: any order is as good
    return [plain(value) for value in keys]


def _sorted(run: Run, values: Any, key: Any = None, reverse: Any = False) -> list[Any]:
    listed = run.listed(values)
    places = order(_keys(run, listed, key), reverse=bool(reverse))
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
        return listed[extreme(choose, _keys(run, listed, key))]

    return function


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


def _range(run: Run, *bounds: Any) -> range:
    numbers = [plain(bound) for bound in bounds]
    if not all(isinstance(number, int) for number in numbers):
        raise RaisedError("TypeError")
    if len(numbers) == 3 and numbers[2] == 0:
        raise RaisedError("ValueError")
    return range(*numbers)


def _enumerate(run: Run, values: Any, start: Any = 0) -> Iterator[Any]:
    return enumerate(run.iterate(values), plain(start))


def _zip(run: Run, *values: Any, strict: Any = False) -> Iterator[Any]:
    return zip(*(run.iterate(value) for value in values), strict=bool(strict))


def _map(run: Run, function: Any, *values: Any) -> Iterator[Any]:
    iterators = [run.iterate(value) for value in values]
    return (run.call(function, list(args), {}) for args in zip(*iterators, strict=False))


def _filter(run: Run, function: Any, values: Any) -> Iterator[Any]:
    return (
        value
        for value in run.iterate(values)
        if run.true(value if function is None else run.call(function, [value], {}))
    )


def _iter(run: Run, value: Any, *sentinel: Any) -> Iterator[Any]:
    if sentinel:
        raise CannotTellError("iter() with a sentinel")
    return run.iterate(value)


def _set(run: Run, values: Any = ()) -> set[Any]:
    return {key(value) for value in run.listed(values)}


def _dict(run: Run, values: Any = (), **more: Any) -> dict[Any, Any]:
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


def _any(run: Run, values: Any) -> bool:
    return any(run.true(value) for value in run.iterate(values))


def _all(run: Run, values: Any) -> bool:
    return all(run.true(value) for value in run.iterate(values))


BUILTINS: dict[str, Op] = {
    "len": Op(Cost.FLAT, lambda run, value: run.length(value)),
    "range": Op(Cost.FLAT, _range),
    "int": Op(Cost.FLAT, _int),
    "float": Op(Cost.FLAT, _float),
    "bool": Op(Cost.FLAT, lambda run, value=False: run.true(value)),
    "str": Op(Cost.FLAT, _str),
    "repr": Op(Cost.FLAT, _str),
    "list": Op(Cost.BY_ITEM, lambda run, values=(): run.listed(values)),
    "tuple": Op(Cost.BY_ITEM, lambda run, values=(): tuple(run.listed(values))),
    "set": Op(Cost.BY_ITEM, _set),
    "frozenset": Op(Cost.BY_ITEM, _set),
    "dict": Op(Cost.BY_ITEM, _dict),
    "min": Op(Cost.BY_ITEM, _extreme(min)),
    "max": Op(Cost.BY_ITEM, _extreme(max)),
    "sum": Op(Cost.BY_ITEM, _sum),
    "abs": _number(abs),
    "round": _number(_round),
    "divmod": _number(divmod),
    "sorted": Op(Cost.BY_ITEM, _sorted),
    "reversed": Op(Cost.BY_ITEM, lambda run, values: iter(run.listed(values)[::-1])),
    "enumerate": Op(Cost.BY_ITEM, _enumerate),
    "zip": Op(Cost.BY_ITEM, _zip),
    "map": Op(Cost.BY_ITEM, _map),
    "filter": Op(Cost.BY_ITEM, _filter),
    "iter": Op(Cost.BY_ITEM, _iter),
    "next": Op(Cost.BY_ITEM, _next),
    "any": Op(Cost.BY_ITEM, _any),
    "all": Op(Cost.BY_ITEM, _all),
    "isinstance": Op(Cost.SHALLOW, _isinstance),
    "getattr": Op(Cost.FLAT, _getattr),
    "hasattr": Op(Cost.FLAT, _hasattr),
    "callable": Op(Cost.FLAT, lambda run, value: isinstance(value, (Fn, Bound, Klass))),
    "slice": Op(
        Cost.FLAT, lambda run, *parts: slice(*(None if p is None else plain(p) for p in parts))
    ),
}

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


# -- the rest of the standard library


def _deepcopy(run: Run, value: Any) -> Any:
    if isinstance(value, list):
        return [_deepcopy(run, item) for item in value]
    if isinstance(value, Defaults):
        raise CannotTellError("a copy")
    if isinstance(value, dict):
        return {key: _deepcopy(run, item) for key, item in value.items()}
    if isinstance(value, Array):
        return Array(value.items)
    if isinstance(value, Instance):
        raise CannotTellError("a copy of an object")
    return value


def _shallow(run: Run, value: Any) -> Any:
    if isinstance(value, (list, dict, set)):
        return value.copy()
    return _deepcopy(run, value)


def _defaultdict(run: Run, factory: Any = None, *more: Any) -> Any:
    if more or factory is None:
        raise CannotTellError("defaultdict()")
    return Defaults(lambda: run.call(factory, [], {}))


def _counter(run: Run, values: Any = ()) -> dict[Any, int]:
    out: dict[Any, int] = Defaults(lambda: 0)
    for value in run.listed(values):
        out[key(value)] += 1
    return out


def _deque(run: Run, values: Any = (), maxlen: Any = None) -> Queue:
    queue = Queue(run.listed(values))
    queue.maxlen = None if maxlen is None else plain(maxlen)
    if queue.maxlen is not None:
        del queue[: max(0, len(queue) - queue.maxlen)]
    return queue


def _namedtuple(run: Run, name: Any, fields: Any, **keywords: Any) -> Native:
    if isinstance(fields, str):
        BUDGET.items(len(fields))
        return record(fields.replace(",", " ").split())
    names = run.listed(fields)
    if not all(isinstance(one, str) for one in names):
        raise CannotTellError("the names of a tuple")
    return record(names)


def record(names: list[str]) -> Native:
    """The class of a named tuple."""

    def make(*args: Any, **keywords: Any) -> Record:
        made = Record([*args, *(keywords[name] for name in names[len(args) :])])
        made.names = tuple(names)
        return made

    return Native(make)


def _heappop(run: Run, heap: list[Any]) -> Any:
    if not heap:
        raise RaisedError("IndexError")
    return heap.pop(extreme(min, _keys(run, run.listed(heap), None)))


def _reduce(run: Run, function: Any, values: Any, *start: Any) -> Any:
    listed = [*start, *run.listed(values)]
    if not listed:
        raise RaisedError("TypeError")
    total = listed[0]
    for value in listed[1:]:
        total = run.call(function, [total, value], {})
    return total


def _groupby(run: Run, values: Any, key: Any = None) -> Iterator[Any]:
    listed = run.listed(values)
    keys = _keys(run, listed, key)
    start = 0
    for end in range(1, len(listed) + 1):
        if end == len(listed) or keys[end] != keys[start]:
            yield keys[start], iter(BUDGET.collect(listed[start:end]))
            start = end


def _product(run: Run, *values: Any, repeat: Any = 1) -> Iterator[Any]:
    pools = [run.listed(value) for value in values] * plain(repeat)
    return BUDGET.each(itertools.product(*pools))


def _zip_longest(run: Run, *values: Any, fillvalue: Any = None) -> Iterator[Any]:
    return itertools.zip_longest(*map(run.iterate, values), fillvalue=fillvalue)


def _chain(run: Run, *values: Any) -> Iterator[Any]:
    return (part for value in values for part in run.iterate(value))


def _cycle(run: Run, values: Any) -> Iterator[Any]:
    listed = run.listed(values)
    while listed:
        yield from listed


def _islice(run: Run, values: Any, *bounds: Any) -> Iterator[Any]:
    return itertools.islice(run.iterate(values), *(None if b is None else plain(b) for b in bounds))


def _accumulate(run: Run, values: Any) -> Iterator[Any]:
    return itertools.accumulate(map(plain, run.iterate(values)), partial(binary, ast.Add))


def _repeat_value(run: Run, value: Any, *times: Any) -> Iterator[Any]:
    return itertools.repeat(value, *(plain(count) for count in times))


def _itemgetter(run: Run, *keys: Any) -> Native:
    wanted = [plain(one) for one in keys]
    if len(wanted) == 1:
        return Native(lambda owner: item(owner, wanted[0]))
    return Native(lambda owner: tuple(item(owner, one) for one in BUDGET.each(wanted)))


def _getenv(run: Run, name: Any, default: Any = None) -> Any:
    if not isinstance(name, str):
        raise CannotTellError("which variable is read")
    places = {"WORLD_SIZE": run.world, "RANK": run.rank}
    run.asked_place = run.asked_place or name == "RANK"
    return str(places[name]) if name in places else UNKNOWN


def _place(run: Run) -> tuple[int, int]:
    """Its rank among so many."""
    run.asked_place = True
    return run.rank, run.world


def _bisect(*, right: bool) -> Op:
    return Op(Cost.BY_ITEM, lambda run, a, x: bisected(run.listed(a), plain(x), right=right))


def _fromkeys(run: Run, keys: Any, value: Any = None) -> dict[Any, Any]:
    return dict.fromkeys(map(key, run.listed(keys)), value)


def _constant(value: Any) -> Op:
    return Op(Cost.FLAT, lambda run, *args, **keywords: value)


#: By their full names; also those of the builtins that are made by methods.
DOTTED: dict[str, Op] = {
    "dict.fromkeys": Op(Cost.BY_ITEM, _fromkeys),
    "copy.deepcopy": Op(Cost.DEEP, _deepcopy),
    "copy.copy": Op(Cost.SHALLOW, _shallow),
    "collections.defaultdict": Op(Cost.FLAT, _defaultdict),
    "collections.OrderedDict": Op(Cost.BY_ITEM, _dict),
    "collections.deque": Op(Cost.BY_ITEM, _deque),
    "collections.namedtuple": Op(Cost.BY_ITEM, _namedtuple),
    "heapq.heapify": Op(Cost.FLAT, lambda run, heap: None),
    "heapq.heappush": Op(Cost.FLAT, _append),
    "heapq.heappop": Op(Cost.BY_ITEM, _heappop),
    "functools.reduce": Op(Cost.BY_ITEM, _reduce),
    "functools.partial": Op(
        Cost.FLAT,
        lambda run, function, *first, **kw: Native(
            lambda *args, **more: run.call(function, [*first, *args], {**kw, **more})
        ),
    ),
    "operator.attrgetter": Op(
        Cost.SHALLOW, lambda run, name: Native(lambda owner: _getattr(run, owner, name))
    ),
    "itertools.count": Op(
        Cost.FLAT, lambda run, start=0, step=1: itertools.count(plain(start), plain(step))
    ),
    "itertools.groupby": Op(Cost.BY_ITEM, _groupby),
    "itertools.product": Op(Cost.BY_ITEM, _product),
    "itertools.zip_longest": Op(Cost.BY_ITEM, _zip_longest),
    "collections.Counter": Op(Cost.BY_ITEM, _counter),
    "itertools.chain": Op(Cost.BY_ITEM, _chain),
    "itertools.chain.from_iterable": Op(
        Cost.BY_ITEM,
        lambda run, values: (part for value in run.iterate(values) for part in run.iterate(value)),
    ),
    "itertools.cycle": Op(Cost.BY_ITEM, _cycle),
    "itertools.islice": Op(Cost.BY_ITEM, _islice),
    "itertools.accumulate": Op(Cost.BY_ITEM, _accumulate),
    "itertools.repeat": Op(Cost.BY_ITEM, _repeat_value),
    "operator.itemgetter": Op(Cost.SHALLOW, _itemgetter),
    "operator.floordiv": Op(
        Cost.FLAT, lambda run, left, right: binary(ast.FloorDiv, plain(left), plain(right))
    ),
    "bisect.bisect_left": _bisect(right=False),
    "bisect.bisect_right": _bisect(right=True),
    "bisect.bisect": _bisect(right=True),
    "os.getenv": Op(Cost.FLAT, _getenv),
    "os.environ.get": Op(Cost.FLAT, _getenv),
    "torch.cuda.device_count": Op(Cost.FLAT, lambda run: run.world),
    "torch.cuda.is_available": _constant(True),
    "torch.utils.data.get_worker_info": _constant(None),
    "torch.distributed.is_available": _constant(True),
    "torch.distributed.is_initialized": _constant(True),
    "torch.distributed.barrier": _constant(None),
}

#: By last name, from wherever they are imported.
ANYWHERE: dict[str, Op] = {
    "get_rank": Op(Cost.FLAT, lambda run, *group, **kw: _place(run)[0]),
    "get_world_size": Op(Cost.FLAT, lambda run, *group, **kw: run.world),
    "get_dist_info": Op(Cost.FLAT, lambda run, *group, **kw: _place(run)),
    "tqdm": Op(Cost.FLAT, lambda run, values=(), *more, **kw: values),
    "trange": Op(Cost.FLAT, lambda run, n, **kw: _range(run, n)),
}
