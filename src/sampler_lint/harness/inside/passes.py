"""One pass of a loader, noted batch by batch; what runs for every batch is here."""

from __future__ import annotations

import array
import contextlib
import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from .content import digests, largest
from .log import Log
from .objects import is_cycled, plain
from .sampling import KEPT_PER_PASS, bound, kept
from .tape import (
    BACKWARDS,
    BATCHES,
    BEGAN,
    COUNT,
    ENDS,
    LEARNED,
    LOADER_ENDED,
    ORDER,
    SAMPLER_ENDED,
    STATE,
    YIELDED,
)

#: Indices at the beginning of a pass that are kept whatever its size.
FIRST = 8

#: Numbers in the first record of a pass's indices, in each that follows, and at most.
_CHUNKS = (256, 4096, 100_000)


class Pass:
    """One run of a loader from its start."""

    def __init__(
        self,
        log: Log,
        number: int,
        loader: Any,
        one_in: int,
        keep: bool,
        at_once: bool,
        counted_only: bool,
        looked_at: int = 0,
    ) -> None:
        import inspect  # not before torch does, in a process that may never read a loader

        assert log.tape is not None
        self.number = number
        self._log = log
        self._tape = log.tape
        self._totals = log.totals
        self._batched = loader.batch_sampler is not None
        # torch draws placeholders for an iterable dataset: only the batches mean something.
        self._counted_only = counted_only
        self._below = bound(one_in)
        #: Every index is kept, or one in so many.
        self._every = one_in == 1
        #: Indices are kept.
        self._keep = keep
        #: A batch that is drawn is yielded, unless fetching it fails.
        self._at_once = at_once
        #: The order is made when the first batch is drawn, not when the pass begins.
        self._lazy = inspect.isgeneratorfunction(type(loader._index_sampler).__iter__)
        #: The record where indices are kept, its bytes, its length, and how much is written.
        self._chunk: Any = ()
        self._bytes: Any = b""
        self._room = self._at = 0
        self._size = -1
        self._pack: Any = None
        self._backwards = log.backwards
        #: Whether it is one of its loader's first, which are looked into.
        self._examined = looked_at > 0
        #: How many batches are still to be looked into, and the indices of those drawn.
        self.looks = looked_at
        self._awaited: list[list[Any] | None] = []
        self._looked_into = 0
        #: How often the program gathered what it made of samples, as far as that was looked at.
        self.gathers = 0
        #: How many samples the batch holds that was looked into last.
        self.rows = 0
        state = array.array("q", [0] * STATE)
        if at_once:
            state[YIELDED] = -1
        self._state: Any = state if log.full else log.tape.append(-1 - number, state)

    def drawn(self, index: Any) -> None:
        """Note what the index sampler gave for one batch."""
        if self._log.tape is not self._tape:
            return  # a process forked during the pass; it is not the rank
        try:
            state = self._state
            state[BATCHES] += 1
            if self._at_once:
                self._totals[1] += 1
                if self._log.backwards != self._backwards:
                    self._learned(state[BATCHES])
            if self._counted_only:
                return
            if type(index) is not list:
                index = self._listed(index)
            if self.looks > len(self._awaited):
                self._awaited.append(index)
            size = len(index)
            if size != self._size:
                self._size, self._pack = size, struct.Struct(f"{size}q").pack
            try:
                data = self._pack(*index)
            except (struct.error, TypeError):
                self._drawn_keys(index)
                return
            state[ORDER] = zlib.crc32(data, state[ORDER])
            if not self._every:
                if state[BATCHES] == 1:
                    first = array.array("q", data[: 8 * FIRST]).tolist()
                    self._log.note("first", number=self.number, indices=first)
                sampled = kept(index, self._below)
                size, data = len(sampled), array.array("q", sampled).tobytes()
            if self._keep:
                at = self._at
                if at + 1 + size > self._room:
                    at = self._extend(1 + size)
                if self._keep:
                    self._at = at + 1 + size
                    self._bytes[8 * at + 8 : 8 * self._at] = data
                    self._chunk[at] = size + 1
            state[COUNT] += len(index)
        except Exception as error:
            self._log.failed(error)

    def _extend(self, needed: int) -> int:
        """Make room for more indices, unless enough were kept; where it begins."""
        log = self._log
        first, more, most = _CHUNKS
        kept_so_far = self._state[COUNT] if self._every else 0
        self._keep = needed <= most and (log.keep_all or kept_so_far < KEPT_PER_PASS)
        if self._keep:
            size = max(needed, more if self._room else first)
            log.kept += size
            self._chunk = self._tape.append(self.number + 1, array.array("q", bytes(8 * size)))
            self._bytes, self._room = self._chunk.cast("B"), size
        return 0

    def _drawn_keys(self, index: list[Any]) -> None:
        """The same for indices that are no integers."""
        keys = [plain(one) for one in index]
        text = json.dumps(keys, separators=(",", ":"))
        self._state[ORDER] = zlib.crc32(text.encode("ascii"), self._state[ORDER])
        self._state[COUNT] += len(keys)
        if self._keep and self._state[COUNT] <= KEPT_PER_PASS:
            self._log.kept += len(keys)
            self._log.note("draw", number=self.number, indices=keys)

    def _listed(self, index: Any) -> list[Any]:
        """What was drawn as a list; never consumes what it is given."""
        if hasattr(index, "tolist"):  # a tensor or an array
            index = index.tolist()
        # Without batching a list is a batch all the same, a tuple is one index.
        batch = Sequence if self._batched else list
        if isinstance(index, batch) and not isinstance(index, (str, bytes)):
            return list(index)
        return [index]

    def yielded(self) -> None:
        """Note that the program was given one batch."""
        if self._log.tape is not self._tape:
            return
        self._state[YIELDED] += 1
        self._totals[1] += 1
        if self._log.backwards != self._backwards:
            self._learned(self._state[YIELDED])

    def look(self, batch: Any) -> None:
        """Note by digests which samples a batch holds."""
        self.looks -= 1
        with contextlib.suppress(Exception):  # it may be anything
            index = self._awaited.pop(0) if self._awaited else None
            if self._log.tape is self._tape and (index is not None or self._counted_only):
                told = digests(batch, None if index is None else len(index))
                keys = None if index is None else [plain(one) for one in index[: len(told)]]
                size, self.rows = largest(batch), len(index or told)
                self._log.note("content", number=self.number, indices=keys, samples=told, size=size)
                self._looked_into = self.given

    def _learned(self, batches: int) -> None:
        """Note that gradients were computed since the last batch, which is training.

        Not those from before the first of ``batches``.
        """
        state = self._state
        if batches > 1 or state[ENDS] & LOADER_ENDED:
            state[BEGAN] = state[BEGAN] or (batches - 1 if batches else self.given)
            state[LEARNED] += 1
        self._backwards = self._log.backwards

    def ended(self, by: int, iterator: Any = None) -> None:
        """Note that the index sampler has ended, or the loader, whose ``iterator`` is given."""
        if self._log.tape is self._tape:
            self._state[ENDS] |= by
            if by == LOADER_ENDED:
                self._totals[2] += 1
                self._state[BACKWARDS] = self._log.backwards
                if self._log.backwards != self._backwards:
                    self._learned(0)
                with contextlib.suppress(OSError):
                    if self._examined and is_cycled(iterator):
                        self._log.note("cycled", number=self.number)

    @property
    def given(self) -> int:
        """How many batches the program was given."""
        return int(self._state[BATCHES] if self._at_once else self._state[YIELDED])

    @property
    def count(self) -> int:
        """How many indices were drawn."""
        return int(self._state[COUNT])

    @property
    def learned(self) -> int:
        """After how many of its batches gradients were computed, so far."""
        return int(self._state[LEARNED]) + (self.has_learned and self.given > 0)

    @property
    def has_learned(self) -> bool:
        """Whether gradients were computed since it gave a batch."""
        return bool(self._log.backwards != self._backwards)

    @property
    def looked(self) -> bool:
        """Whether the batch that it was given last was looked into."""
        return 0 < self._looked_into == self.given

    @property
    def waits(self) -> bool:
        """Whether its order is still to be made."""
        return self._lazy and not self._state[BATCHES]

    @property
    def ended_at(self) -> int | None:
        """How often gradients had been computed when the loader ended, if it did."""
        return self._state[BACKWARDS] if self._state[ENDS] & LOADER_ENDED else None

    def stopped(self, error: BaseException, iterator: Any) -> None:
        """Note that there is no batch, where each that is drawn is yielded at once."""
        if isinstance(error, StopIteration):
            self.ended(LOADER_ENDED, iterator)
        if self._log.tape is self._tape and not self._state[ENDS] & SAMPLER_ENDED:
            self._state[YIELDED] -= 1
