"""What one comes to step by step: callers of callers, importers of importers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def closure(first: Iterable[T], further: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """These, and what each leads to, and so on: each once, the nearest first."""
    found = dict.fromkeys(first)
    todo = [*found]
    for each in todo:
        yield each
        for one in further(each):
            if one not in found:
                found[one] = None
                todo.append(one)
