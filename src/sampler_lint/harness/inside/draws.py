"""Random draws in a loader's worker processes: from which state each source of them sets out."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from .content import DEPTH
from .objects import of_code, of_module
from .sampling import LONGEST_LOG
from .tape import CLOEXEC

#: Where the generators of Python, NumPy and torch keep their state.
_STATES = {"random": "getstate", "numpy": "bit_generator", "torch": "get_state"}


#: Fewer fetches may draw, or not, for another reason: to set something up.
FEW = 3


def watch(fetcher: Any, path: str, about: dict[str, Any]) -> None:
    """Append to ``path`` each generator from which a worker's first fetch has drawn: its states
    before it and after it, and whether it and the next have drawn at all.

    One that is seeded for every sample has a state of its own after it.
    """
    before = dict(_states(fetcher))
    fetch = fetcher.fetch

    def append(**noted: Any) -> None:
        line = json.dumps({**about, **noted}) + "\n"
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | CLOEXEC, 0o600)
        if os.fstat(file).st_size < LONGEST_LOG:
            os.write(file, line.encode("ascii"))
        os.close(file)

    def first(*args: Any) -> Any:
        fetcher.fetch = fetch
        batch = fetch(*args)
        with contextlib.suppress(Exception):
            after = dict(_states(fetcher))
            drawn = {
                name: (before.get(name), one)
                for name, one in after.items()
                if before.get(name) != one
            }
            if drawn:
                append(drawn=drawn, batch=_digest(args))
            append(drew=bool(drawn))
            watch_fetches(fetcher, FEW - 1, lambda drew: append(drew=drew))
        return batch

    fetcher.fetch = first


def watch_fetches(fetcher: Any, times: int, tell: Callable[[bool], None]) -> None:
    """Tell of each of the first fetches in this process whether it has drawn at random."""
    fetch, left = fetcher.fetch, times

    def watched(*args: Any) -> Any:
        nonlocal left
        left -= 1
        if not left:
            del fetcher.fetch
        before = _known(fetcher)
        batch = fetch(*args)
        tell(before != _known(fetcher))
        return batch

    fetcher.fetch = watched


def _known(fetcher: Any) -> list[Any]:
    """What :func:`_states` tells of, as bytes, but of this process, which has to be quick."""
    numpy: Any = sys.modules.get("numpy.random")
    states = [random.getstate(), sys.modules["torch"].get_rng_state().numpy().tobytes()]
    if numpy is not None:
        _, keys, *rest = numpy.get_state()
        states += [keys.tobytes(), rest]
    with contextlib.suppress(Exception):
        states += [
            _listed(state() if callable(state) else state.state) for _, state in _held(fetcher)
        ]
    return states


def _states(fetcher: Any) -> Iterator[tuple[str, int]]:
    """The global generators, those that the dataset and the collate function hold, and those of
    their modules that they use, each with a checksum."""
    yield from global_states()
    collate = fetcher.collate_fn
    used = of_module(type(fetcher.dataset)) | of_module(type(collate)) | of_code(collate)
    for name, state in (*_held(fetcher), *generators(used)):
        yield name, _digest(_listed(state() if callable(state) else state.state))


def global_states() -> Iterator[tuple[str, int]]:
    """The generators of Python, NumPy and torch of this process, each with a checksum."""
    yield from unseeded_states()
    yield "torch", _digest(sys.modules["torch"].get_rng_state().tolist())


def unseeded_states() -> Iterator[tuple[str, int]]:
    """The same of those that every process has in a state of its own, unless it seeds them."""
    yield "random", _digest(random.getstate())
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None:
        yield "numpy.random", _digest(_listed(numpy.get_state()))


def held_states(thing: Any) -> Iterator[tuple[str, int]]:
    """The generators among an object's own attributes, each with a checksum."""
    for name, state in held(thing, depth=0):
        yield name, _digest(_listed(state() if callable(state) else state.state))


def _held(fetcher: Any) -> Iterator[tuple[str, Any]]:
    yield from held(fetcher.dataset)
    yield from held(fetcher.collate_fn, "collate_fn.")


def held(thing: Any, prefix: str = "", depth: int = DEPTH) -> Iterator[tuple[str, Any]]:
    """What tells the states of the generators among an object's attributes, with their paths."""
    return generators(getattr(thing, "__dict__", {}), prefix, depth)


def generators(
    named: dict[str, Any], prefix: str = "", depth: int = DEPTH
) -> Iterator[tuple[str, Any]]:
    """What tells the states of the generators among things that have names, and in them."""
    for name, value in list(named.items()):
        if isinstance(value, (type, ModuleType, FunctionType)):
            continue
        kept = _STATES.get(type(value).__module__.partition(".")[0])
        if kept is not None and hasattr(value, kept):
            yield f"{prefix}{name}", getattr(value, kept)
        elif depth and hasattr(value, "__dict__"):
            yield from held(value, f"{prefix}{name}.", depth - 1)


def _listed(state: Any) -> Any:
    if isinstance(state, dict):
        return {name: _listed(one) for name, one in state.items()}
    if isinstance(state, tuple):
        return [_listed(one) for one in state]
    return state.tolist() if hasattr(state, "tolist") else state


def _digest(state: Any) -> int:
    return zlib.crc32(repr(state).encode("utf-8", "replace"))
