"""What batches hold: a few digests, by which the same sample is known again elsewhere."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

#: Batches looked at in a pass over a map-style dataset and an iterable one, and passes of a loader;
#: samples of a batch, elements of a sample, and levels of nesting.
LOOKED_AT, FEW, ELEMENTS, DEPTH = (8, 64, 3), 16, 8, 4


def digests(batch: Any, size: int | None) -> list[list[int]]:
    """Of each of the first samples, a checksum for every part of it.

    ``size`` is the number of samples, where that is known. Draws nothing, and reads nothing from
    a device.
    """
    columns = [*_columns(batch, DEPTH)]
    if size is None:
        size = len(columns[0]) if columns and columns[0].__class__ is not str else 1
    told = [_rows(column) for column in columns if len(column) == size]
    return [list(row) for row in zip(*told, strict=True)]


def checksum(things: Any) -> int:
    """One of what :func:`digests` tells of the samples."""
    rows = [_rows(column) for column in _columns(things, DEPTH)]
    return zlib.crc32(repr(rows).encode("ascii")) if rows else 0


def largest(things: Any) -> int:
    """How many numbers the largest tensor among these holds, on whatever device."""
    if hasattr(things, "numel"):
        return int(things.numel())
    if isinstance(things, dict):
        things = things.values()
    elif not isinstance(things, (list, tuple)):
        return 0
    return max(map(largest, things), default=0)


def _columns(thing: Any, depth: int) -> Iterator[Any]:
    """The parts of a batch that have an entry for each sample."""
    if depth < 0:
        return
    if hasattr(thing, "tolist"):
        if getattr(thing, "ndim", 0) and str(getattr(thing, "device", "cpu")) == "cpu":
            yield thing
    elif isinstance(thing, dict):
        for value in thing.values():
            yield from _columns(value, depth - 1)
    elif isinstance(thing, (list, tuple)):
        if thing and isinstance(thing[0], (str, bytes, int, float)):
            yield thing
        else:
            for value in thing:
                yield from _columns(value, depth - 1)


def _rows(column: Any) -> list[int]:
    if not hasattr(column, "tolist"):
        return [zlib.crc32(repr(one)[:400].encode("utf-8", "replace")) for one in column[:FEW]]
    rows = column[:FEW]
    rows = rows.detach() if hasattr(rows, "detach") else rows
    rows = rows.reshape(len(rows), -1)
    every = max(1, rows.shape[1] // ELEMENTS)
    pairs = zip(rows[:, :ELEMENTS].tolist(), rows[:, ::every].tolist(), strict=True)
    return [zlib.crc32(repr(pair).encode("utf-8", "replace")) for pair in pairs]
