"""Classes whose objects have slots, and no dict."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")
_OF_UNSLOTTED = frozenset({"__dict__", "__weakref__"})


def slotted(cls: type[T]) -> type[T]:
    """Makes a slot of each attribute that a class declares by its type alone.

    No metaclass does: with one, `isinstance()` takes three times as long, and is asked by millions.
    """
    body = {key: value for key, value in vars(cls).items() if key not in _OF_UNSLOTTED}
    declared = body.get("__annotations__", ())
    body["__slots__"] = [each for each in declared if each not in body]
    return type(cls.__name__, cls.__bases__, body)
