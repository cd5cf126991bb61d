"""What builtins, the standard library, torch and numpy do, as far as samplers use them.

A function that is not known gives :data:`UNKNOWN` if it cannot change its arguments.
"""

from __future__ import annotations

import bisect
import builtins
import itertools
import math
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sampler_lint.model.running.arrays import ARRAYS, LARGEST, RANDOM, RANDOM_STATE
from sampler_lint.model.running.values import (
    UNKNOWN,
    Array,
    Bound,
    CannotTellError,
    Data,
    External,
    Fn,
    Instance,
    Klass,
    Native,
    RaisedError,
    Source,
    plain,
)

if TYPE_CHECKING:
    from sampler_lint.model.running.interpreter import Interpreter

_SILENT = ("builtins.print", "logging.", "warnings.", "loguru.", "gc.")


#: Functions of ``math`` whose result is no larger than their arguments, more or less.
_MATH = frozenset(
    {
        "ceil", "copysign", "fabs", "floor", "fmod", "fsum", "gcd", "isclose", "isfinite",
        "isinf", "isnan", "isqrt", "lcm", "log", "log10", "log2", "sqrt", "trunc",
    }
)  # fmt: skip


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


def is_silent(callee: Any) -> bool:
    """Whether a call only says something to the user."""
    return isinstance(callee, External) and callee.dotted.startswith(_SILENT)


def is_isinstance(callee: Any) -> bool:
    """Whether it is the builtin function."""
    return isinstance(callee, External) and callee.dotted == "builtins.isinstance"


def check_size(op: str, left: Any, right: Any) -> None:
    """Stop before the result of an operator gets too large.

    Raises:
        CannotTellError: it would.
    """
    sizes = [len(value) for value in (left, right) if isinstance(value, (list, tuple, str))]
    numbers = [abs(value) for value in (left, right) if isinstance(value, int)]
    if op == "Mult" and sizes and numbers:
        sizes = [sizes[0] * numbers[0]]
    if sum(sizes) > LARGEST or any(number.bit_length() > 512 for number in numbers):
        raise CannotTellError("something large")
    if op in {"Pow", "LShift"} and isinstance(right, (int, float)) and abs(right) > 64:
        raise CannotTellError("a large number")


def broadcast(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Array:
    """An operator between arrays, or an array and a number."""
    if isinstance(left, (list, tuple)):
        left = Array(left)
    if isinstance(right, (list, tuple)):
        right = Array(right)
    if isinstance(left, Array) and isinstance(right, Array):
        if len(left.items) != len(right.items):
            raise CannotTellError("arrays of different lengths")
        pairs = list(zip(left.items, right.items, strict=True))
    elif isinstance(left, Array):
        pairs = [(item, right) for item in left.items]
    else:
        pairs = [(left, item) for item in right.items]
    if any(UNKNOWN in (a, b) for a, b in pairs):
        raise CannotTellError("what the array holds")
    try:
        return Array(function(plain(a), plain(b)) for a, b in pairs)
    except (ZeroDivisionError, TypeError) as error:
        raise CannotTellError("an operator of arrays") from error


def item(owner: Any, key: Any) -> Any:
    """``owner[key]``."""
    if isinstance(owner, External):
        raise CannotTellError("an item from outside")
    if isinstance(owner, Array):
        if isinstance(key, slice):
            return Array(owner.items[key])
        if isinstance(key, (Array, list)):
            keys = key.items if isinstance(key, Array) else key
            if len(keys) == len(owner.items) and all(isinstance(k, bool) for k in keys):
                return Array(itertools.compress(owner.items, keys))
            return Array(owner.items[k] for k in keys)
        return owner.items[key]
    if key is UNKNOWN:
        return UNKNOWN
    if isinstance(owner, (list, tuple, str, range)):
        if isinstance(key, Array) and len(key.items) == 1:
            key = key.items[0]
        if not isinstance(key, (int, slice)):
            raise CannotTellError("an item")
        return owner[key]
    if isinstance(owner, dict):
        return owner[key]
    raise CannotTellError("an item")


def store(container: Any, key: Any, value: Any) -> None:
    """``container[key] = value``."""
    if key is UNKNOWN:
        raise CannotTellError("which item is set")
    if isinstance(container, Array):
        container = container.items
        if isinstance(key, (slice, Array)):
            raise CannotTellError("items that are set")
    if isinstance(container, list) and isinstance(key, slice):
        if isinstance(value, Array):
            value = value.items
        if not isinstance(value, (list, tuple, range)):
            raise CannotTellError("items that are set")
        check_size("Add", container, list(value))
    if isinstance(container, (list, dict)):
        try:
            container[key] = value
        except (IndexError, TypeError) as error:
            raise CannotTellError("an item that is set") from error
        return
    if container is not UNKNOWN:
        raise CannotTellError("an item that is set")


# --------------------------------------------------------------------------- attributes


def external_attribute(owner: External, name: str) -> Any:
    """An attribute of something outside the tree."""
    if owner.dotted in {"math", "numpy", "torch", "np"} and name in {"inf", "pi", "e"}:
        return getattr(math, name)
    if owner.dotted == "sys" and name == "maxsize":
        return 2**63 - 1
    return External(f"{owner.dotted}.{name}")


def attribute(run: Interpreter, owner: Any, name: str) -> Any:
    """An attribute of a plain value."""
    if isinstance(owner, Array):
        if name in {"shape", "T", "size", "dtype", "device", "ndim"}:
            return _array_facts(owner, name)
        return Native(lambda *args, **kw: _array_method(run, owner, name, args, kw))
    table = _METHODS.get(_kind(owner))
    if table is not None and name in table:
        method = table[name]
        return Native(lambda *args, **kw: method(run, owner, *args, **kw))
    if isinstance(owner, (int, float)) and name in {"item", "tolist", "long", "int", "float"}:
        return Native(lambda: owner)
    if isinstance(owner, str):
        return Native(lambda *args, **kw: UNKNOWN)
    raise CannotTellError(f"`{name}` of a {type(owner).__name__}")


def _kind(owner: Any) -> str:
    for kind in (dict, list, set):
        if isinstance(owner, kind):
            return kind.__name__
    return ""


def _array_facts(array: Array, name: str) -> Any:
    if name == "shape":
        return (len(array.items),)
    if name == "size":
        # An attribute in numpy, a method in torch.
        return Size(len(array.items))
    if name == "ndim":
        return 1
    return UNKNOWN if name != "T" else array


class Size(int):
    """The size of an array: numpy reads it, torch calls it."""


def _array_method(
    run: Interpreter, array: Array, name: str, args: tuple[Any, ...], kw: dict[str, Any]
) -> Any:
    same = {"numpy", "cpu", "long", "int", "to", "cuda", "astype", "flatten", "contiguous", "clone"}
    same |= {"copy", "detach", "view", "reshape", "squeeze", "type", "float"}
    if name in {"view", "reshape"} and [plain(a) for a in args] not in ([-1], [len(array.items)]):
        raise CannotTellError("the shape of an array")
    if name in same:
        return Array(array.items)
    if name == "tolist":
        return list(array.items)
    if name in {"numel", "__len__"}:
        return len(array.items)
    if name == "item" and len(array.items) == 1:
        return array.items[0]
    if name in {
        "sum",
        "max",
        "min",
        "any",
        "all",
        "cumsum",
        "unique",
        "argsort",
        "nonzero",
        "sort",
    }:
        if args or kw:
            raise CannotTellError(f"`{name}` of an array")
        if name == "sort":
            raise CannotTellError("a sorted array")
        return external(run, f"numpy.{name}", [array], {})
    if name == "extend" or name == "append":
        raise CannotTellError(f"`{name}` of an array")
    raise CannotTellError(f"`{name}` of an array")


def _append(run: Interpreter, owner: list[Any], value: Any) -> None:
    owner.append(value)


def _extend(run: Interpreter, owner: list[Any], values: Any) -> None:
    owner.extend(run.listed(values))


def _pop(run: Interpreter, owner: list[Any], index: Any = -1) -> Any:
    try:
        return owner.pop(plain(index))
    except IndexError as error:
        raise RaisedError("IndexError") from error


def _remove(run: Interpreter, owner: list[Any], value: Any) -> None:
    owner.remove(value)


def _sort(run: Interpreter, owner: list[Any], key: Any = None, reverse: Any = False) -> None:
    owner[:] = _sorted(run, owner, key=key, reverse=reverse)


def _copy(run: Interpreter, owner: Any) -> Any:
    return owner.copy()


def _dict_get(run: Interpreter, owner: dict[Any, Any], key: Any, default: Any = None) -> Any:
    return owner.get(plain(key), default)


def _dict_pop(run: Interpreter, owner: dict[Any, Any], key: Any, *default: Any) -> Any:
    try:
        return owner.pop(plain(key), *default)
    except KeyError as error:
        raise RaisedError("KeyError") from error


def _dict_set(run: Interpreter, owner: dict[Any, Any], key: Any, default: Any = None) -> Any:
    return owner.setdefault(plain(key), default)


def _dict_update(run: Interpreter, owner: dict[Any, Any], other: Any = (), **more: Any) -> None:
    owner.update(other, **more)


_METHODS: dict[str, dict[str, Callable[..., Any]]] = {
    "list": {
        "__getitem__": lambda run, owner, key: item(owner, key),
        "append": _append,
        "extend": _extend,
        "pop": _pop,
        "popleft": lambda run, owner: _pop(run, owner, 0),
        "remove": _remove,
        "sort": _sort,
        "copy": _copy,
        "reverse": lambda run, owner: owner.reverse(),
        "clear": lambda run, owner: owner.clear(),
        "insert": lambda run, owner, index, value: owner.insert(plain(index), value),
        "index": lambda run, owner, value: owner.index(value),
        "count": lambda run, owner, value: owner.count(value),
    },
    "dict": {
        "__getitem__": lambda run, owner, key: item(owner, plain(key)),
        "keys": lambda run, owner: list(owner),
        "values": lambda run, owner: list(owner.values()),
        "items": lambda run, owner: list(owner.items()),
        "get": _dict_get,
        "pop": _dict_pop,
        "setdefault": _dict_set,
        "update": _dict_update,
        "copy": _copy,
        "clear": lambda run, owner: owner.clear(),
    },
    "set": {
        "add": lambda run, owner, value: owner.add(plain(value)),
        "discard": lambda run, owner, value: owner.discard(plain(value)),
        "remove": lambda run, owner, value: owner.remove(plain(value)),
        "update": lambda run, owner, values: owner.update(map(plain, run.listed(values))),
        "clear": lambda run, owner: owner.clear(),
        "copy": _copy,
        "union": lambda run, owner, other: owner | {plain(v) for v in run.listed(other)},
    },
}


# --------------------------------------------------------------------------- functions


def external(run: Interpreter, dotted: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """A call of something outside the tree."""
    root, _, rest = dotted.partition(".")
    last = dotted.rpartition(".")[2]
    if root == "builtins":
        builtin = _BUILTINS.get(rest) or _DOTTED.get(rest)
        if builtin is not None:
            return builtin(run, *args, **keywords)
    elif root == "math" and rest in _MATH:
        numbers = [plain(arg) for arg in args]
        if not all(isinstance(number, (int, float)) for number in numbers):
            raise CannotTellError("a number")
        result: Any = getattr(math, rest)(*numbers)
        return result
    elif last in RANDOM_STATE and root in {"random", "numpy", "torch"}:
        return External(f"{root}.random")
    elif root in {"random", "numpy", "torch"} and last in RANDOM and _is_random(dotted):
        run.outside += 1
        return RANDOM[last](run, *args, **keywords)
    elif root in {"numpy", "torch"} and last in ARRAYS and dotted.count(".") == 1:
        return ARRAYS[last](run, *args, **keywords)
    elif last in _ANYWHERE:
        return _ANYWHERE[last](run, *args, **keywords)
    elif dotted in _DOTTED:
        return _DOTTED[dotted](run, *args, **keywords)
    if any(isinstance(a, (list, dict, Array, Instance, set)) for a in [*args, *keywords.values()]):
        raise CannotTellError(f"what {dotted} does")
    if root == "torch" and ".distributed" in dotted:
        raise CannotTellError(f"what {dotted} does")
    run.outside += 1
    return UNKNOWN


def _is_random(dotted: str) -> bool:
    return dotted.startswith(("random.", "numpy.random.", "torch.random.")) or (
        dotted.startswith("torch.") and dotted.count(".") == 1
    )


# -- builtins


def _int(run: Interpreter, value: Any = 0, *base: Any) -> Any:
    if value is UNKNOWN:
        return UNKNOWN
    value = plain(value)
    if isinstance(value, Array) and len(value.items) == 1:
        value = value.items[0]
    if not isinstance(value, (int, float, str)):
        raise CannotTellError("int()")
    return int(value)


def _float(run: Interpreter, value: Any = 0) -> Any:
    return UNKNOWN if value is UNKNOWN else float(plain(value))


def _getattr(run: Interpreter, owner: Any, name: Any, *default: Any) -> Any:
    if not isinstance(name, str):
        raise CannotTellError("getattr")
    if default and isinstance(owner, (Data, External)) and not name == "indices":
        raise CannotTellError(f"whether there is `{name}`")
    try:
        return run.attribute(owner, name)
    except RaisedError as error:
        if default and error.kind == "AttributeError":
            return default[0]
        raise


def _hasattr(run: Interpreter, owner: Any, name: Any) -> bool:
    if not isinstance(owner, Instance) or not isinstance(name, str):
        raise CannotTellError("hasattr")
    return name in owner.attributes or run.member(owner.klass, name) is not None


def _str(run: Interpreter, value: Any = "", *more: Any) -> Any:
    value = value.number if type(value) is Data else value
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


def _isinstance(run: Interpreter, value: Any, kinds: Any) -> bool:
    if value is UNKNOWN or isinstance(value, External):
        raise CannotTellError("its type")
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        kind = run.external_class(kind)
        if isinstance(kind, Klass):
            if isinstance(value, Instance):
                if any(base is kind for base in value.klass.mro):
                    return True
            elif isinstance(value, Source):
                if kind.name == "Dataset":
                    return True
            elif isinstance(value, Data):
                raise CannotTellError("the type of data")
            continue
        name = kind.dotted.rpartition(".")[2] if isinstance(kind, External) else ""
        if name in {"Tensor", "ndarray", "LongTensor"}:
            if isinstance(value, Array):
                return True
            if isinstance(value, Data):
                raise CannotTellError("the type of data")
            continue
        if name in {"Sized", "Iterable", "Collection"} and not isinstance(value, (int, float)):
            return True
        if name in {"ConcatDataset", "Subset", "IterableDataset"} and isinstance(value, Source):
            continue  # a plain data set
        if name not in _TYPES:
            if isinstance(value, (Instance, Data)):
                raise CannotTellError("its type")
            if isinstance(value, (int, float, str, bool)) or value is None:
                continue
            raise CannotTellError("its type")
        if isinstance(value, Data) and not isinstance(value, Source):
            if value.length is not None and name in {"list", "tuple"}:
                return True
            raise CannotTellError("the type of data")
        if isinstance(value, _TYPES[name]):
            return True
    return False


def _sorted(run: Interpreter, values: Any, key: Any = None, reverse: Any = False) -> list[Any]:
    listed = run.listed(values)
    keys = [plain(value if key is None else run.call(key, [value], {})) for value in listed]
    order = sorted(range(len(listed)), key=keys.__getitem__, reverse=bool(reverse))
    return [listed[index] for index in order]


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    def function(run: Interpreter, *values: Any, key: Any = None, **more: Any) -> Any:
        if len(values) > 1:
            if UNKNOWN in values:
                return UNKNOWN
            listed = list(values)
        else:
            listed = run.listed(values[0])
        if not listed:
            if "default" in more:
                return more["default"]
            raise RaisedError("ValueError")
        keys = [plain(value if key is None else run.call(key, [value], {})) for value in listed]
        return listed[choose(range(len(listed)), key=keys.__getitem__)]

    return function


def _sum(run: Interpreter, values: Any, start: Any = 0) -> Any:
    listed = [start, *run.listed(values)]
    if any(isinstance(value, list) for value in listed):
        if not all(isinstance(value, list) for value in listed):
            raise CannotTellError("a sum")
        if sum(map(len, listed)) > LARGEST:
            raise CannotTellError("something large")
        return [item for value in listed for item in value]
    return UNKNOWN if UNKNOWN in listed else sum(plain(value) for value in listed)


def _next(run: Interpreter, iterator: Any, *default: Any) -> Any:
    if not isinstance(iterator, Iterator):
        raise CannotTellError("next()")
    for value in iterator:
        return value
    if default:
        return default[0]
    raise RaisedError("StopIteration")


def _range(run: Interpreter, *bounds: Any) -> range:
    numbers = [plain(bound) for bound in bounds]
    if not all(isinstance(number, int) for number in numbers):
        raise RaisedError("TypeError")
    if len(numbers) == 3 and numbers[2] == 0:
        raise RaisedError("ValueError")
    return range(*numbers)


def _enumerate(run: Interpreter, values: Any, start: Any = 0) -> Iterator[Any]:
    return enumerate(run.iterate(values), plain(start))


def _zip(run: Interpreter, *values: Any, strict: Any = False) -> Iterator[Any]:
    return zip(*(run.iterate(value) for value in values), strict=bool(strict))


def _map(run: Interpreter, function: Any, *values: Any) -> Iterator[Any]:
    iterators = [run.iterate(value) for value in values]
    return (run.call(function, list(args), {}) for args in zip(*iterators, strict=False))


def _filter(run: Interpreter, function: Any, values: Any) -> Iterator[Any]:
    return (
        value
        for value in run.iterate(values)
        if run.true(value if function is None else run.call(function, [value], {}))
    )


def _iter(run: Interpreter, value: Any, *sentinel: Any) -> Iterator[Any]:
    if sentinel:
        raise CannotTellError("iter() with a sentinel")
    return run.iterate(value)


def _set(run: Interpreter, values: Any = ()) -> set[Any]:
    return {plain(value) for value in run.listed(values)}


def _dict(run: Interpreter, values: Any = (), **more: Any) -> dict[Any, Any]:
    if isinstance(values, dict):
        return {**values, **more}
    return {**{plain(k): v for k, v in map(run.listed, run.listed(values))}, **more}


def _number(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(run: Interpreter, *args: Any) -> Any:
        return UNKNOWN if UNKNOWN in args else function(*(plain(arg) for arg in args))

    return call


_BUILTINS: dict[str, Callable[..., Any]] = {
    "len": lambda run, value: run.length(value),
    "range": _range,
    "int": _int,
    "float": _float,
    "bool": lambda run, value=False: run.true(value),
    "str": _str,
    "repr": _str,
    "list": lambda run, values=(): run.listed(values),
    "tuple": lambda run, values=(): tuple(run.listed(values)),
    "set": _set,
    "frozenset": _set,
    "dict": _dict,
    "min": _extreme(min),
    "max": _extreme(max),
    "sum": _sum,
    "abs": _number(abs),
    "round": _number(round),
    "divmod": _number(divmod),
    "sorted": _sorted,
    "reversed": lambda run, values: iter(run.listed(values)[::-1]),
    "enumerate": _enumerate,
    "zip": _zip,
    "map": _map,
    "filter": _filter,
    "iter": _iter,
    "next": _next,
    "any": lambda run, values: any(run.true(value) for value in run.iterate(values)),
    "all": lambda run, values: all(run.true(value) for value in run.iterate(values)),
    "isinstance": _isinstance,
    "getattr": _getattr,
    "hasattr": _hasattr,
    "callable": lambda run, value: isinstance(value, (Fn, Bound, Klass)),
    "slice": lambda run, *parts: slice(*(None if p is None else plain(p) for p in parts)),
}


# -- the rest of the standard library


def _deepcopy(run: Interpreter, value: Any) -> Any:
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


def _shallow(run: Interpreter, value: Any) -> Any:
    if isinstance(value, (list, dict, set)):
        return value.copy()
    return _deepcopy(run, value)


def _defaultdict(run: Interpreter, factory: Any = None, *more: Any) -> Any:
    if more or factory is None:
        raise CannotTellError("defaultdict()")
    return Defaults(lambda: run.call(factory, [], {}))


def _counter(run: Interpreter, values: Any = ()) -> dict[Any, int]:
    out: dict[Any, int] = Defaults(lambda: 0)
    for value in run.listed(values):
        out[plain(value)] += 1
    return out


def _chain(run: Interpreter, *values: Any) -> Iterator[Any]:
    return (item for value in values for item in run.iterate(value))


def _cycle(run: Interpreter, values: Any) -> Iterator[Any]:
    listed = run.listed(values)
    while listed:
        yield from listed


def _islice(run: Interpreter, values: Any, *bounds: Any) -> Iterator[Any]:
    return itertools.islice(run.iterate(values), *(None if b is None else plain(b) for b in bounds))


def _accumulate(run: Interpreter, values: Any) -> Iterator[Any]:
    return itertools.accumulate(plain(value) for value in run.iterate(values))


def _repeat_value(run: Interpreter, value: Any, *times: Any) -> Iterator[Any]:
    return itertools.repeat(value, *(plain(count) for count in times))


def _itemgetter(run: Interpreter, *keys: Any) -> Native:
    if len(keys) == 1:
        return Native(lambda owner: item(owner, keys[0]))
    return Native(lambda owner: tuple(item(owner, key) for key in keys))


def _getenv(run: Interpreter, name: Any, default: Any = None) -> Any:
    places = {"WORLD_SIZE": run.world, "RANK": run.rank}
    return str(places[name]) if name in places else UNKNOWN


_DOTTED: dict[str, Callable[..., Any]] = {
    "dict.fromkeys": lambda run, keys, value=None: dict.fromkeys(
        map(plain, run.listed(keys)), value
    ),
    "copy.deepcopy": _deepcopy,
    "copy.copy": _shallow,
    "collections.defaultdict": _defaultdict,
    "collections.OrderedDict": _dict,
    "collections.deque": lambda run, values=(): run.listed(values),
    "collections.Counter": _counter,
    "itertools.chain": _chain,
    "itertools.chain.from_iterable": lambda run, values: _chain(run, *run.listed(values)),
    "itertools.cycle": _cycle,
    "itertools.islice": _islice,
    "itertools.accumulate": _accumulate,
    "itertools.repeat": _repeat_value,
    "operator.itemgetter": _itemgetter,
    "operator.floordiv": _number(operator.floordiv),
    "bisect.bisect_left": lambda run, a, x: bisect.bisect_left(run.listed(a), plain(x)),
    "bisect.bisect_right": lambda run, a, x: bisect.bisect_right(run.listed(a), plain(x)),
    "bisect.bisect": lambda run, a, x: bisect.bisect_right(run.listed(a), plain(x)),
    "os.getenv": _getenv,
    "os.environ.get": _getenv,
    "torch.cuda.device_count": lambda run: run.world,
    "torch.cuda.is_available": lambda run: True,
    "torch.distributed.is_available": lambda run: True,
    "torch.distributed.is_initialized": lambda run: True,
    "torch.distributed.barrier": lambda run, *args, **kw: None,
}

#: By last name, from wherever they are imported.
_ANYWHERE: dict[str, Callable[..., Any]] = {
    "get_rank": lambda run, *group, **kw: run.rank,
    "get_world_size": lambda run, *group, **kw: run.world,
    "get_dist_info": lambda run, *group, **kw: (run.rank, run.world),
    "tqdm": lambda run, values=(), *more, **kw: values,
    "trange": lambda run, n, **kw: _range(run, n),
}
