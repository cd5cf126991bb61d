"""What the objects of a program say of themselves, without running any of its code."""

from __future__ import annotations

import contextlib
import dis
import gc
import itertools
import operator
import os
import re
import sys
import weakref
import zlib
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

#: The folder of the recorder's modules, whose frames are not the user's.
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")

#: Where what is installed lies.
_LIBRARY = re.compile(r"[/\\]((site|dist)-packages|lib[/\\]python3\.\d+)[/\\]")


#: What takes a part of things, or keeps one of each; and how code does the latter itself.
_PARTS = {
    *("set", "dict", "unique", "unique_consecutive", "drop_duplicates"),
    *("narrow", "index_select", "masked_select"),
}
_BY_KEY = {"STORE_SUBSCR", "MAP_ADD", "SET_ADD"}

#: How many functions deep it is looked what becomes of a result.
DEEPEST = 2

#: More parts than a pipeline has, and fewer than a list of samples.
STAGES = 64

#: How code asks for its rank and the number of ranks.
_RANK_AND_SIZE = (("get_rank", "get_world_size"), ("RANK", "WORLD_SIZE"))

#: What Python, NumPy and torch call the functions that put samples in a random order.
_SHUFFLES = {
    *("shuffle", "permutation", "permuted", "randperm", "randrange", "multinomial"),
    *("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler"),
}

#: Python's `sample` is a word for much else; it draws where its generator is named beside it.
_SAMPLES = ({"sample", "random"}, {"sample", "Random"})


class Numbers:
    """A number for every object, in the order of first sight; keeps nothing alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[[], Any], int]] = {}
        self._next = 0

    def of(self, thing: Any) -> int:
        """The object's number."""
        reference, number = self._known.get(id(thing), (None, -1))
        if reference is not None and reference() is thing:
            return number
        try:
            reference = weakref.ref(thing)
        except TypeError:  # a list or a tuple; it stays, there are few

            def reference() -> Any:
                return thing

        number = self._next
        self._next += 1
        self._known[id(thing)] = (reference, number)
        return number


def class_name(thing: Any) -> str:
    """What its class is called."""
    return type(thing).__qualname__


def attribute(thing: Any, name: str) -> Any:
    """An attribute's value without running any of the user's code."""
    return getattr(thing, "__dict__", {}).get(name)


def chain(sampler: Any) -> Iterator[Any]:
    """The sampler and those it wraps."""
    for _ in range(8):
        if sampler is None:
            return
        yield sampler
        sampler = _wrapped(sampler)


def _wrapped(sampler: Any) -> Any:
    """What a sampler draws from: by torch's attribute names, or the one sampler that it holds.

    To share a sampler out, wrappers make a dataset of it, of a class of their own module, for the
    ``DistributedSampler`` that they are.
    """
    for name in ("batch_sampler", "sampler"):
        inner = attribute(sampler, name)
        if inner is not None:
            return inner
    held = list(getattr(sampler, "__dict__", {}).values())
    data = attribute(sampler, "dataset")
    if type(data).__module__ == type(sampler).__module__:
        held += getattr(data, "__dict__", {}).values()
    base = sys.modules["torch.utils.data"].Sampler
    return next((value for value in held if isinstance(value, base)), None)


def base_dataset(subset_type: Any, dataset: Any, most: int) -> tuple[Any, list[int] | None]:
    """What is below ``Subset`` layers, and the indices into it (None: all, or too many).

    A dataset of Hugging Face's is such a layer, over a table of its own.
    """
    indices: list[int] | None = None
    while True:
        if type(dataset) is subset_type:
            chosen, below = dataset.indices, dataset.dataset
        elif type(dataset).__module__ == "datasets.arrow_dataset" and dataset._indices is not None:
            chosen, below = dataset._indices.column(0), dataset._data
        else:
            return dataset, indices
        if len(chosen) > most:
            return dataset, None
        layer = [operator.index(one) for one in getattr(chosen, "to_pylist", chosen.__iter__)()]
        indices = layer if indices is None else [layer[one] for one in indices]
        dataset = below


def is_of_another(data: Any, sampler: Any, dataset: Any, most: int) -> bool:
    """Whether a sampler was built over another dataset, not the first part of this one.

    ``data`` is ``torch.utils.data``, ``most`` as of :func:`base_dataset`.
    """
    source = attribute(sampler, "dataset") or attribute(sampler, "data_source")
    if not isinstance(source, data.Dataset) or source is dataset:
        return False
    whole, subset = base_dataset(data.Subset, source, most)
    return whole is not dataset or (subset is not None and subset != [*range(len(subset))])


def mark(dataset: Any) -> int:
    """A checksum of what a dataset holds, as far as a glance at its attributes tells.

    It tells whether index 7 is the same sample on two ranks: a program may give each rank a
    dataset of its own. Runs none of the user's code and reads no sample.
    """
    found: list[str] = []
    with contextlib.suppress(Exception):
        _glance(dataset, found, 4)
    return zlib.crc32("\n".join(found).encode("utf-8", "backslashreplace"))


def _glance(thing: Any, found: list[str], depth: int) -> None:
    kind = type(thing)
    if len(found) > 1000 or depth < 0:
        return
    if thing is None or kind in (bool, int, float, complex):
        found.append(repr(thing))
    elif kind in (str, bytes):
        found.append(repr(thing[:200]))
    elif kind in (list, tuple):
        found.append(str(len(thing)))
        for one in (*thing[:3], *thing[-3:]):
            _glance(one, found, depth - 1)
    elif kind is dict:
        found.append(str(len(thing)))
        for key, value in itertools.islice(thing.items(), 40):
            _glance(key, found, depth - 1)
            _glance(value, found, depth - 1)
    elif kind.__module__ in ("torch", "numpy") and hasattr(thing, "tolist"):
        found.append(f"{kind.__name__} {getattr(thing, 'shape', None)} {thing.dtype}")
        device = getattr(thing, "device", None)
        simple = str(device or "cpu") == "cpu" and "object" not in str(thing.dtype)
        if simple and thing.ndim and len(thing):
            found += [repr(one.reshape(-1)[:8].tolist()) for one in (thing[:1], thing[-1:])]
    elif kind.__module__.startswith(("pandas.", "polars.", "pathlib")):
        found.append(repr(thing)[:2000])
    else:
        found.append(kind.__qualname__)
        for name, value in getattr(thing, "__dict__", {}).items():
            if not callable(value) or hasattr(value, "__dict__"):
                found.append(name)
                _glance(value, found, depth - 1)


def is_users(path: str) -> bool:
    """Whether a file is no library's, as far as its path tells."""
    return not path.startswith("<") and not _LIBRARY.search(path)


def caller() -> FrameType | None:
    """The innermost frame that is not the recorder's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    return frame


def goes_on_to_cut(frame: FrameType) -> bool:
    """Whether a function at work, or one of the user's that it names, takes a part of something
    after the place where it is, or puts things in by their keys, so that none is there twice."""
    return _cuts(frame.f_code, frame.f_lasti, frame.f_globals, type(self_of(frame)), DEEPEST)


def _cuts(code: CodeType, after: int, known: dict[str, Any], owner: type, depth: int) -> bool:
    before: Any = None
    for one in dis.get_instructions(code):
        if one.offset > after:
            by_place = one.opname == "BINARY_SUBSCR" or one.argrepr == "[]"
            by_name = before is not None and type(before.argval) is str
            if "SLICE" in one.opname or one.opname in _BY_KEY or (by_place and not by_name):
                return True
            inner, name = one.argval, one.argval if type(one.argval) is str else ""
            if name in _PARTS:
                return True
            if name:
                methods = (vars(base)[name] for base in owner.__mro__ if name in vars(base))
                function = known[name] if name in known else next(methods, None)
                wrapped = attribute(function, "__wrapped__")
                function = function if wrapped is None else wrapped
                inner = function.__code__ if type(function) is FunctionType else None
            users = type(inner) is CodeType and is_users(inner.co_filename)
            if depth and users and _cuts(inner, -1, known, owner, depth - 1):
                return True
        before = one
    return False


def self_of(frame: FrameType) -> Any:
    """The first argument of the function at work: of a method, its object."""
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    return frame.f_locals.get(names[0]) if names else None


def asks_for_rank(cls: type) -> bool:
    """Whether a method of the class asks which rank it is on, and of how many."""
    return any(names.issuperset(pair) for names in _names_in(cls) for pair in _RANK_AND_SIZE)


def shuffles_itself(thing: Any) -> bool:
    """Whether the user's code of the object, or of a dataset in it, draws an order."""
    for one in layers(thing):
        held = getattr(one, "__dict__", {})
        if any(value is False and "shuffle" in name for name, value in held.items()):
            continue  # it has been told not to
        if any(map(_draws_order, _names_in(type(one), users=True))):
            return True
        if any("shuffle" in name for name in _stages(held)):
            return True
    return False


def epoch_sampler(thing: Any) -> str | None:
    """The torch sampler that takes the epoch, if an object holds one that shuffles, or its code
    makes one and does not say whether it is to."""
    base = sys.modules["torch.utils.data"].DistributedSampler
    for held in getattr(thing, "__dict__", {}).values():
        if isinstance(held, base) and attribute(held, "shuffle") is True:
            return class_name(held)
    codes = [c for one in type(thing).__mro__ for f in [*vars(one).values()] for c in _codes_of(f)]
    told = any(type(each) is tuple and "shuffle" in each for c in codes for each in c.co_consts)
    used = () if told else of_module(type(thing)).values()
    made = (one for one in used if isinstance(one, type) and issubclass(one, base))
    return next((one.__qualname__ for one in made), None)


def _stages(held: dict[str, Any]) -> Iterator[str]:
    """What the parts of a pipeline are called, as webdataset's are: a class, or its function."""
    for parts in [*held.values()]:
        for part in parts[:STAGES] if type(parts) is list else ():
            yield type(part).__name__
            yield getattr(attribute(part, "f"), "__name__", "")


def layers(thing: Any) -> Iterator[Any]:
    """The object and the datasets in it."""
    base = sys.modules["torch.utils.data"].Dataset
    todo, seen = [thing], list[Any]()
    while todo:
        one = todo.pop()
        if not any(one is other for other in seen):
            seen.append(one)
            yield one
            held = getattr(one, "__dict__", {}).values()
            todo += [value for value in held if isinstance(value, base)]


def numbers_in(*named: dict[str, Any]) -> dict[str, int]:
    """What is a number among things that have names."""
    return {
        name: value
        for held in named
        for name, value in held.items()
        if type(value) in (int, bool) and not name.startswith("__")
    }


def is_cycled(iterator: Any) -> bool:
    """Whether an ``itertools.cycle`` reads it, which stores all that it gets, to give it again."""
    return any(type(one) is itertools.cycle for one in gc.get_referrers(iterator))


def draws_an_order(frame: FrameType) -> bool:
    """Whether a function draws an order; the top of a script does too much else."""
    return frame.f_code.co_name != "<module>" and _draws_order({*frame.f_code.co_names})


def _draws_order(names: set[str]) -> bool:
    return bool(names & _SHUFFLES) or any(both <= names for both in _SAMPLES)


def of_module(cls: type) -> dict[str, Any]:
    """What the user's methods of a class mention of the names of their module."""
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        for function in list(vars(base).values()):
            found |= of_code(function)
    return found


def of_code(function: Any) -> dict[str, Any]:
    """What a function of the user's mentions of the names of its module, and of those around it."""
    code = getattr(function, "__code__", None)
    if code is None or not is_users(code.co_filename):
        return {}
    known = function.__globals__
    names = {name for one in _codes(code) for name in one.co_names}
    found = {name: known[name] for name in names if name in known}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        with contextlib.suppress(ValueError):  # empty as yet
            found[name] = cell.cell_contents
    return found


def _names_in(cls: type, *, users: bool = False) -> Iterator[set[str]]:
    """What the methods of the class, and of each of its bases that is not torch's, mention.

    ``users``: only those that no library has.
    """
    for base in cls.__mro__:
        if base.__module__.startswith("torch.") or base is object:
            continue
        names: set[str] = set()
        for function in vars(base).values():
            for code in _codes_of(function):
                if not users or is_users(code.co_filename):
                    names.update(code.co_names)
                    names.update(one for one in code.co_consts if type(one) is str)
        yield names


def _codes_of(function: Any) -> Iterator[CodeType]:
    return _codes(getattr(function, "__code__", None))


def _codes(code: CodeType | None) -> Iterator[CodeType]:
    """The code of a function, and of those within it."""
    if code is not None:
        yield code
        for one in code.co_consts:
            if type(one) is CodeType:
                yield from _codes(one)


def length_of(ask: Callable[[], int]) -> tuple[int | None, str | None]:
    """A length, or the error that asking for it raises; neither if there is none."""
    try:
        return operator.index(ask()), None
    except TypeError as error:
        # torch's own way to say "no length" is a TypeError about len(); others are bugs.
        return None, None if "has no len()" in str(error) else f"TypeError: {error}"
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def plain(value: Any) -> Any:
    """``value`` as JSON can say it: integers stay, anything else becomes a string."""
    if value is None or isinstance(value, bool):
        return value
    try:
        return operator.index(value)
    except TypeError:
        plain = isinstance(value, (str, float, tuple, list))
        return repr(value) if plain else type(value).__qualname__
