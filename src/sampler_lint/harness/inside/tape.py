"""The counts of every pass and the indices drawn, written through memory without a system call."""

from __future__ import annotations

import array
import errno
import mmap
import os
import struct
import threading
from collections.abc import Iterator
from typing import Any

#: The tape grows by as many bytes; a record lies within one such segment.
SEGMENT = 1 << 20

#: What the numbers of a pass mean. ``ORDER`` is the checksum of the indices. ``YIELDED`` is below
#: 0 where every batch drawn is yielded at once: -1, and less by one for each that was not.
#: ``BACKWARDS`` is how often the process had computed gradients when the loader ended. ``BEGAN`` is
#: the number, from 1, of the first batch that was learned from; 0 where none was.
BATCHES, COUNT, ORDER, YIELDED, ENDS, LEARNED, BACKWARDS, BEGAN, STATE = range(9)

#: Bits of ``ENDS``: the index sampler has ended, the loader has.
SAMPLER_ENDED, LOADER_ENDED = 1, 2

#: The first record of a tape: passes begun, batches yielded, passes ended.
TOTALS = 3

CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)


class Tape:
    """An append-only file of 64-bit integers.

    A record is a head, a length and as many numbers. The head is -(n + 1) for the numbers of
    pass n, n + 1 for indices that it drew, each batch after its size plus one; 0 ends a segment,
    and the batches of a record.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | CLOEXEC, 0o600)
        self._size = 0
        self._lock = threading.Lock()
        self._extend()

    def _extend(self) -> None:
        # The blocks are taken now: a disk that fills up must not end the program by SIGBUS.
        try:
            os.posix_fallocate(self._file, self._size, SEGMENT)
        except (AttributeError, OSError) as error:
            if getattr(error, "errno", None) == errno.ENOSPC:
                raise
            os.ftruncate(self._file, self._size + SEGMENT)  # not every file system can
        memory = mmap.mmap(self._file, SEGMENT, offset=self._size)
        self._view = memoryview(memory).cast("q")
        self._size += SEGMENT
        self._next = 0

    def append(self, head: int, values: array.array[int]) -> memoryview[int]:
        """Write a record; where its numbers lie, to be changed in place."""
        count = len(values)
        with self._lock:
            if self._next + count + 2 > len(self._view):
                self._extend()
            begin = self._next + 2
            self._next = end = begin + count
            view = self._view
        view[begin:end] = values
        view[begin - 1] = count
        view[begin - 2] = head  # last: a record without its head is not there
        return view[begin:end]


def batches_in(chunk: Any) -> Iterator[Any]:
    """The batches of a record, each as the part of ``chunk`` that it takes."""
    at = 0
    while at < len(chunk) and chunk[at]:
        end = at + chunk[at]
        yield chunk[at + 1 : end]
        at = end


def records(path: str) -> Iterator[tuple[int, array.array[int]]]:
    """The records of a tape after the first, which are its totals."""
    first = True
    with open(path, "rb") as file:
        while data := file.read(SEGMENT):
            segment = array.array("q", data[: len(data) // 8 * 8])
            at = 0
            while at + 2 <= len(segment) and segment[at]:
                end = at + 2 + segment[at + 1]
                if not first:
                    yield segment[at], segment[at + 2 : end]
                first, at = False, end


def totals(path: str) -> tuple[int, ...]:
    """Passes begun, batches taken and passes ended so far, from a tape being written."""
    with open(path, "rb") as file:
        data = file.read(8 * (2 + TOTALS))
    return struct.unpack(f"{len(data) // 8}q", data)[2:]
