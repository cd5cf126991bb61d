"""Items of containers: read, set, deleted and looked for."""

from __future__ import annotations

import itertools
from typing import Any

from sampler_lint.execution.budget import BUDGET
from sampler_lint.execution.errors import CannotTellError
from sampler_lint.execution.values import (
    UNKNOWN,
    Array,
    Places,
    Run,
    Source,
    key,
    plain,
    weigh,
)


def item(owner: Any, index: Any) -> Any:
    """``owner[index]``."""
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
            if len(keys) == len(owner.items) and any(k is UNKNOWN for k in keys):
                raise CannotTellError("which items are chosen")
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
        _store_anywhere(container)
        return
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
    if isinstance(container, Source) and isinstance(index, str):
        container.changed[index] = value  # a column of a table
    elif container is not UNKNOWN:
        raise CannotTellError("an item that is set")


def _store_anywhere(container: Any) -> None:
    """``container[…] = value``, nobody knows where: now each item may be another."""
    if not isinstance(container, (list, Array)):
        raise CannotTellError("which item is set")
    listed = container.items if isinstance(container, Array) else container
    BUDGET.items(len(listed))
    listed[:] = [UNKNOWN] * len(listed)


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
