"""Items of containers: read, set, deleted and looked for."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from sampler_lint.execution.budget import BUDGET
from sampler_lint.execution.errors import CannotTellError, Kind, WantedError
from sampler_lint.execution.values import (
    UNKNOWN,
    Array,
    Given,
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
        if index is None or isinstance(index, tuple):
            return _read(_cells(owner, index if isinstance(index, tuple) else (index,)))
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


def ask_for_text(owner: dict[Any, Any], index: Given) -> None:
    """Say so where what is looked up in a dict can only be one of the texts that are its keys.

    Raises:
        WantedError: it is one.
    """
    texts = sorted(each for each in owner if isinstance(each, str))
    if texts and len(texts) == len(owner):
        raise WantedError(index.pattern, Kind.TEXT, texts, index.others)


def store(container: Any, index: Any, value: Any) -> None:
    """``container[index] = value``."""
    index = plain(index) if isinstance(index, Given) else index
    if index is UNKNOWN:
        _store_anywhere(container)
        return
    if isinstance(container, Array):
        if isinstance(index, (slice, Array, tuple, list)):
            _write(_cells(container, index if isinstance(index, tuple) else (index,)), value)
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
    if isinstance(container, Given) and not isinstance(container, Source):
        raise container.wanted(Kind.SEQUENCE if isinstance(index, int) else Kind.MAPPING)
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


class _Cell(NamedTuple):
    """A place in a row of an array."""

    row: list[Any]
    place: int


def _cells(array: Any, index: tuple[Any, ...]) -> Any:
    """Where ``array[index]`` is: a place, the array, or an array of such."""
    if not index:
        return array
    first, *others = index
    rest = tuple(others)
    if first is None:
        return Array([_cells(array, rest)])
    if not isinstance(array, Array):
        raise CannotTellError("an item of an array")
    if first is Ellipsis:
        left = sum(part is not None for part in rest)
        return _cells(array, (slice(None),) * (len(array.shape) - left) + rest)
    if isinstance(array, Places) and isinstance(first, slice):
        return _cells(Array(array.items), (first,))  # the only column
    if isinstance(first, int):
        row = array.items[first]
        if any(part is not None for part in rest):
            return _cells(row, rest)
        cell = _Cell(array.items, first)
        return _cells(cell, rest)
    if isinstance(first, slice):
        places = BUDGET.collect(range(*first.indices(len(array.items))))
    else:
        places = _places(first, len(array.items))
        if rest and isinstance(rest[0], (Array, list)):
            # Places along two dimensions go in pairs.
            inner = _places(rest[0], len(array.items[0].items) if array.items else 0)
            pairs = zip(places, inner, strict=True)
            return Array([_cells(array, (one, other, *rest[1:])) for one, other in pairs])
    return Array([_cells(array, (place, *rest)) for place in places])


def _places(index: Any, length: int) -> list[int]:
    """The places that a list or array of them, or of flags, names."""
    if not isinstance(index, (Array, list, range)):
        raise CannotTellError("which items are chosen")
    keys = index.items if isinstance(index, Array) else index
    BUDGET.items(len(keys))
    if keys and all(isinstance(key, bool) for key in keys):
        return [place for place, chosen in enumerate(keys) if chosen]
    places = [plain(key) for key in keys]
    if not all(isinstance(place, int) and -length <= place < length for place in places):
        raise CannotTellError("which items are chosen")
    return places


def _read(cells: Any) -> Any:
    """What is at the places."""
    if isinstance(cells, _Cell):
        return cells.row[cells.place]
    return Array([_read(cell) for cell in cells.items]) if isinstance(cells, Array) else cells


def _write(cells: Any, value: Any) -> None:
    """Put a value at the places: a smaller one at each."""
    if isinstance(cells, _Cell):
        row = cells.row[cells.place]
        if isinstance(row, Array):
            _write(_cells(row, (slice(None),)), value)
        else:
            is_only = isinstance(value, (Array, list)) and len(_listed(value)) == 1
            cells.row[cells.place] = _listed(value)[0] if is_only else value
        return
    values = _listed(value) if isinstance(value, (Array, list, tuple, range)) else None
    if values is None or _depth(value) < _depth(cells):
        values = [value] * len(cells.items)
    elif len(values) == 1:
        values = [*values] * len(cells.items)
    if len(values) != len(cells.items):
        raise CannotTellError("items that are set")
    for cell, one in zip(cells.items, values, strict=True):
        _write(cell, one)


def _listed(value: Any) -> Any:
    return value.items if isinstance(value, Array) else value


def _depth(value: Any) -> int:
    """How many dimensions there are."""
    if isinstance(value, _Cell):
        return _depth(value.row[value.place])
    if isinstance(value, (Array, list, tuple, range)):
        listed = _listed(value)
        return 1 + (_depth(listed[0]) if listed else 0)
    return 0


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
