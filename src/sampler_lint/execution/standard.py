"""The rest of the standard library, and what a process asks of torch about itself."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from sampler_lint.execution.arrays import ARRAYS, nested, transposed
from sampler_lint.execution.budget import BUDGET, Cost, Op, Table
from sampler_lint.execution.builtin import BUILTINS, mapping, sort_keys
from sampler_lint.execution.errors import CannotTellError, RaisedError
from sampler_lint.execution.operators import binary, bisected, extreme
from sampler_lint.execution.values import (
    UNKNOWN,
    Array,
    External,
    Instance,
    Native,
    Queue,
    Record,
    Run,
    elements,
    key,
    perform,
    plain,
)
from sampler_lint.parameters import Role, is_of_model, role_of

#: By their full names; also those of the builtins that are made by methods.
DOTTED = Table()
#: By last name, from wherever they are imported.
ANYWHERE = Table()
#: Functions that give the place of the process among the others, whoever wraps them.
_PLACES = Table()


class Defaults(dict[Any, Any]):
    """A ``defaultdict`` whose factory the interpreter runs."""

    def __init__(self, make: Callable[[], Any]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, key: Any) -> Any:
        self[key] = self.make()
        return self[key]


def lends(owner: Any) -> bool:
    """Whether an item of it, nobody knows which, may be one that a method changes."""
    if isinstance(owner, Defaults) and not owner:
        return isinstance(owner.make(), _CHANGEABLE)
    parts = owner.values() if isinstance(owner, dict) else elements(owner)
    return any(isinstance(part, _CHANGEABLE) for part in parts or ())


_CHANGEABLE = (Array, Instance, dict, list, set)


@DOTTED(Cost.FLAT, "typing.cast")
def _cast(run: Run, of: Any, value: Any) -> Any:
    return value


@DOTTED(Cost.DEEP, "copy.deepcopy")
def _deepcopy(run: Run, value: Any) -> Any:
    return _copied(run, value, {})


def _copied(run: Run, value: Any, known: dict[int, Any]) -> Any:
    """The value and what it holds again; ``known`` has what was copied before, as lists do."""
    BUDGET.step()
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, (Iterator, Queue, Record)):
        raise CannotTellError("a copy")
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(run, item, known) for item in value)
    if isinstance(value, dict):
        made = _shallow(run, value)
        made.update((key, _copied(run, item, known)) for key, item in value.items())
        return made
    if isinstance(value, Array):
        return Array(_copied(run, item, known) for item in value.items)
    if isinstance(value, Instance):
        made = known[id(value)] = _shallow(run, value)
        made.attributes = _copied(run, value.attributes, known)
        return made
    return value.copy() if isinstance(value, set) else value


@DOTTED(Cost.SHALLOW, "copy.copy")
def _shallow(run: Run, value: Any) -> Any:
    if isinstance(value, Defaults):
        made = Defaults(value.make)
        made.update(value)
        return made
    if isinstance(value, Instance):
        own = run.member(value.klass, "__copy__") or run.member(value.klass, "__deepcopy__")
        if own is not None or run.member(value.klass, "__getstate__") is not None:
            raise CannotTellError("a copy of an object")
        return Instance(value.klass, dict(value.attributes))
    if isinstance(value, (list, dict, set)):
        return value.copy()
    return Array(value.items) if isinstance(value, Array) else value


@DOTTED(Cost.FLAT, "collections.defaultdict")
def _defaultdict(run: Run, factory: Any = None, *more: Any) -> Any:
    if more or factory is None:
        raise CannotTellError("defaultdict()")
    return Defaults(lambda: run.call(factory, [], {}))


@DOTTED(Cost.BY_ITEM, "collections.Counter")
def _counter(run: Run, values: Any = ()) -> dict[Any, int]:
    out: dict[Any, int] = Defaults(lambda: 0)
    for value in run.listed(values):
        out[key(value)] += 1
    return out


@DOTTED(Cost.BY_ITEM, "collections.deque")
def _deque(run: Run, values: Any = (), maxlen: Any = None) -> Queue:
    queue = Queue(run.listed(values))
    queue.maxlen = None if maxlen is None else plain(maxlen)
    if queue.maxlen is not None:
        del queue[: max(0, len(queue) - queue.maxlen)]
    return queue


@DOTTED(Cost.FLAT, "queue.Queue")
def _queue(run: Run, maxsize: Any = 0) -> Queue:
    queue = Queue()
    queue.is_of_threads = True
    return queue


@DOTTED(Cost.BY_ITEM, "collections.namedtuple")
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


@DOTTED(Cost.BY_ITEM, "heapq.heappop")
def _heappop(run: Run, heap: list[Any]) -> Any:
    if not heap:
        raise RaisedError("IndexError")
    return heap.pop(extreme(min, sort_keys(run, run.listed(heap), None)))


@DOTTED(Cost.BY_ITEM, "heapq.heapreplace")
def _heapreplace(run: Run, heap: list[Any], value: Any) -> Any:
    least = _heappop(run, heap)
    heap.append(value)
    return least


@DOTTED(Cost.BY_ITEM, "heapq.heappushpop")
def _heappushpop(run: Run, heap: list[Any], value: Any) -> Any:
    heap.append(value)
    return _heappop(run, heap)


@DOTTED(Cost.BY_ITEM, "functools.reduce")
def _reduce(run: Run, function: Any, values: Any, *start: Any) -> Any:
    listed = [*start, *run.listed(values)]
    if not listed:
        raise RaisedError("TypeError")
    total = listed[0]
    for value in listed[1:]:
        total = run.call(function, [total, value], {})
    return total


@DOTTED(Cost.BY_ITEM, "itertools.groupby")
def _groupby(run: Run, values: Any, key: Any = None) -> Iterator[Any]:
    listed = run.listed(values)
    keys = sort_keys(run, listed, key)
    start = 0
    for end in range(1, len(listed) + 1):
        if end == len(listed) or keys[end] != keys[start]:
            yield keys[start], iter(BUDGET.collect(listed[start:end]))
            start = end


@DOTTED(Cost.BY_ITEM, "itertools.product")
def _product(run: Run, *values: Any, repeat: Any = 1) -> Iterator[Any]:
    pools = [run.listed(value) for value in values] * plain(repeat)
    return BUDGET.each(itertools.product(*pools))


@DOTTED(Cost.BY_ITEM, "itertools.combinations")
def _combinations(run: Run, values: Any, count: Any) -> Iterator[Any]:
    pool, size = run.listed(values), plain(count)
    # Of more than there are, there is none: Python makes room for as many first.
    return BUDGET.each(itertools.combinations(pool, size) if size <= len(pool) else ())


@DOTTED(Cost.BY_ITEM, "cytoolz.partition_all", "toolz.partition_all")
def _partition_all(run: Run, count: Any, values: Any) -> Iterator[Any]:
    listed, size = run.listed(values), plain(count)
    return (tuple(listed[start : start + size]) for start in range(0, len(listed), size))


@DOTTED(Cost.BY_ITEM, "itertools.zip_longest")
def _zip_longest(run: Run, *values: Any, fillvalue: Any = None) -> Iterator[Any]:
    return itertools.zip_longest(*map(run.iterate, values), fillvalue=fillvalue)


@DOTTED(Cost.BY_ITEM, "itertools.chain")
def _chain(run: Run, *values: Any) -> Iterator[Any]:
    return (part for value in values for part in run.iterate(value))


@DOTTED(Cost.BY_ITEM, "itertools.cycle")
def _cycle(run: Run, values: Any) -> Iterator[Any]:
    listed = run.listed(values)
    while listed:
        yield from listed


@DOTTED(Cost.BY_ITEM, "itertools.islice")
def _islice(run: Run, values: Any, *bounds: Any) -> Iterator[Any]:
    return itertools.islice(run.iterate(values), *(None if b is None else plain(b) for b in bounds))


@DOTTED(Cost.BY_ITEM, "itertools.accumulate")
def _accumulate(
    run: Run, values: Any, function: Any = None, *, initial: Any = None
) -> Iterator[Any]:
    def joined(left: Any, right: Any) -> Any:
        if function is None:
            return binary(ast.Add, left, right)
        return plain(run.call(function, [left, right], {}))

    return itertools.accumulate(map(plain, run.iterate(values)), joined, initial=initial)


@DOTTED(Cost.BY_ITEM, "itertools.repeat")
def _repeat_value(run: Run, value: Any, *times: Any) -> Iterator[Any]:
    return itertools.repeat(value, *(plain(count) for count in times))


@DOTTED(Cost.SHALLOW, "operator.itemgetter")
def _itemgetter(run: Run, *keys: Any) -> Native:
    wanted = [plain(one) for one in keys]
    if len(wanted) == 1:
        return Native(lambda owner: run.item(owner, wanted[0]))
    return Native(lambda owner: tuple(run.item(owner, one) for one in BUDGET.each(wanted)))


@DOTTED(Cost.FLAT, "os.getenv", "os.environ.get", "os.environ.__getitem__")
def _getenv(run: Run, name: Any, default: Any = None) -> Any:
    """What a launcher sets on one node; of what says nothing of processes, the default."""
    if not isinstance(name, str):
        raise CannotTellError("which variable is read")
    if not _OF_NODES.search(name):
        role = role_of(name)
        if role is Role.RANK:
            return str(_place(run)[0])
        if role is Role.WORLD_SIZE:
            return str(run.world)
    return UNKNOWN if default is None or _OF_PROCESSES.search(name) else default


@DOTTED(Cost.FLAT, "os.environ.__contains__")
def _is_set(run: Run, name: Any) -> bool:
    """Whether there is such a variable: those of torch's launcher there are."""
    if not isinstance(name, str) or name not in _LAUNCHED:
        raise CannotTellError("whether a variable is set")
    return True


_LAUNCHED = frozenset({"LOCAL_RANK", "LOCAL_WORLD_SIZE", "RANK", "WORLD_SIZE"})
#: In names of variables that say which node this is, or how many there are.
_OF_NODES = re.compile("node|group|host", re.IGNORECASE)
#: In names of those that say anything of processes.
_OF_PROCESSES = re.compile("rank|size|proc|task|world|local|num|id|node|host", re.IGNORECASE)


def _place(run: Run) -> tuple[int, int]:
    """Its rank among so many."""
    run.asked_place = True
    return run.rank, run.world


@lru_cache(1 << 12)  # asked of each call
def place_of(name: str) -> Op | None:
    """What a function gives of the place of the process among the others, by its name.

    It is set by who launches the program, so nothing that it is taken from is looked at:
    ``get_data_parallel_rank()``, and ``context.get_world_size(ParallelMode.DATA)``.
    """
    what = name.removeprefix("get_")
    if name in _PLACES or what == name or _OF_NODES.search(what):
        return _PLACES.get(name)
    if not what.endswith(("rank", "world_size")):
        return None
    if is_of_model(what):
        return _FIRST if what.endswith("rank") else _ALONE
    role = role_of(what)
    if role is Role.RANK:
        return _PLACES["get_rank"]
    return _PLACES["get_world_size"] if role is Role.WORLD_SIZE else None


_FIRST, _ALONE = (Op(Cost.FLAT, lambda run, *group, n=n, **kw: n) for n in (0, 1))


def _is_shared(group: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether the ranks of a group hold parts of one model: all of them count as the first."""
    return any(
        is_of_model(each if isinstance(each, str) else each.dotted.rpartition(".")[2])
        for each in (*group, *keywords.values())
        if isinstance(each, (str, External))
    )


@ANYWHERE(Cost.FLAT, "get_worker_info")
def _worker_info(run: Run) -> Any:
    run.asked_worker = True
    if run.worker is None:
        return None
    return record(["id", "num_workers", "seed", "dataset"]).call(*run.worker, 0, UNKNOWN)


def _bisect(*, right: bool) -> Op:
    return Op(Cost.BY_ITEM, lambda run, a, x: bisected(run.listed(a), plain(x), right=right))


@DOTTED(Cost.BY_ITEM, "dict.fromkeys")
def _fromkeys(run: Run, keys: Any, value: Any = None) -> dict[Any, Any]:
    return dict.fromkeys(map(key, run.listed(keys)), value)


DOTTED(Cost.FLAT, "numpy.iinfo", "torch.iinfo")(
    lambda run, kind=None: record(["min", "max"]).call(-(2**31), 2**31 - 1)
)
DOTTED(Cost.BY_ITEM, "numpy.c_.__getitem__")(
    lambda run, columns: transposed(nested([run.listed(column) for column in columns]))
)
DOTTED(Cost.BY_ITEM, "numpy.r_.__getitem__")(
    lambda run, parts: perform(ARRAYS["concatenate"], run, [parts], {})
)
DOTTED(Cost.FLAT, "array.array")(lambda run, kind, values=(): run.listed(values))
DOTTED(Cost.FLAT, "heapq.heapify")(lambda run, heap: None)
DOTTED(Cost.FLAT, "functools.partial")(
    lambda run, function, *first, **kw: Native(
        lambda *args, **more: run.call(function, [*first, *args], {**kw, **more})
    )
)
DOTTED(Cost.SHALLOW, "operator.attrgetter")(
    lambda run, name: Native(lambda owner: perform(BUILTINS["getattr"], run, (owner, name), {}))
)
DOTTED(Cost.FLAT, "itertools.count")(
    lambda run, start=0, step=1: itertools.count(plain(start), plain(step))
)
DOTTED(Cost.BY_ITEM, "itertools.chain.from_iterable")(
    lambda run, values: (part for value in run.iterate(values) for part in run.iterate(value))
)
DOTTED(Cost.FLAT, "operator.floordiv")(
    lambda run, left, right: binary(ast.FloorDiv, plain(left), plain(right))
)
DOTTED(Cost.BY_ITEM, "collections.OrderedDict")(mapping)
DOTTED["numba.typed.List"] = BUILTINS["list"]
DOTTED(Cost.FLAT, "numba.typed.List.empty_list")(lambda run, *kind, **kw: [])
DOTTED(Cost.FLAT, "heapq.heappush")(lambda run, heap, value: heap.append(value))
DOTTED["bisect.bisect_left"] = _bisect(right=False)
DOTTED["bisect.bisect_right"] = _bisect(right=True)
DOTTED["bisect.bisect"] = _bisect(right=True)
DOTTED(Cost.FLAT, "torch.cuda.device_count")(lambda run: run.world)

DOTTED(
    Cost.FLAT,
    *("torch.cuda.is_available", "torch.distributed.is_available"),
    "torch.distributed.is_initialized",
)(lambda run, *args, **kw: True)
DOTTED(Cost.FLAT, "torch.distributed.barrier")(lambda run, *args, **kw: None)
_PLACES(Cost.FLAT, "get_rank")(
    lambda run, *group, **kw: 0 if _is_shared(group, kw) else _place(run)[0]
)
_PLACES(Cost.FLAT, "get_world_size")(
    lambda run, *group, **kw: 1 if _is_shared(group, kw) else run.world
)
_PLACES(Cost.FLAT, "get_dist_info")(lambda run, *group, **kw: _place(run))
ANYWHERE(Cost.FLAT, "tqdm")(lambda run, values=(), *more, **kw: values)
ANYWHERE(Cost.FLAT, "trange")(lambda run, n, **kw: perform(BUILTINS["range"], run, [n], {}))
