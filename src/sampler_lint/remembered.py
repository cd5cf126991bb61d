"""Questions that are answered once, however many rules ask them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar


class _Remembers(Protocol):
    """What keeps answers for as long as they hold: a model, or the facts of a file."""

    memo: dict[object, Any]


MemoryT = TypeVar("MemoryT", bound=_Remembers)
P = ParamSpec("P")
T = TypeVar("T")


def remembered(
    answer: Callable[Concatenate[MemoryT, P], T],
) -> Callable[Concatenate[MemoryT, P], T]:
    """Have a function of a model (or of a file's facts) called once for the same arguments.

    What else it is asked about has to be hashable, and nobody may change what it returns. A
    question that comes to itself again has no answer yet: it has to end by other means.
    """

    @functools.wraps(answer)
    def remembering(memory: MemoryT, /, *about: P.args, **options: P.kwargs) -> T:
        known: dict[object, T] = memory.memo.setdefault(answer, {})
        key = (about, *options.items()) if options else about
        if key not in known:
            known[key] = answer(memory, *about, **options)
        return known[key]

    return remembering
