"""The data that samplers are tried with where nobody gives any."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

#: Classes among the labels of the samples.
KINDS = 3


class MadeUpSample(int):
    """A sample of the synthetic dataset: its index, and its class in whatever it is unpacked to."""

    asked: set[str]

    def __iter__(self) -> Iterator[int]:
        """As many parts as the caller unpacks, as in ``_, person, camera = dataset[index]``.

        Raises:
            TypeError: it does anything else with them.
        """
        caller = sys._getframe(1)
        parts = _unpacked_to(caller.f_code, caller.f_lasti)
        if parts is None:
            raise TypeError(f"'{type(self).__name__}' object is not iterable")
        self.asked.add("labels")
        return iter([self % KINDS] * parts)


@lru_cache(64)
def _unpacked_to(code: CodeType, offset: int) -> int | None:
    """How many names an instruction fills from one value."""
    for instruction in dis.get_instructions(code):
        if instruction.offset == offset:
            return instruction.arg if instruction.opname == "UNPACK_SEQUENCE" else None
    return None


class SyntheticDataset:
    """A map-style dataset of a given length; an item is its index.

    It also has what samplers commonly read from a dataset: ``targets`` and ``labels``,
    ``lengths`` and ``sizes``. ``asked`` gets the names of those that were read.
    """

    def __init__(self, size: int, asked: set[str] | None = None) -> None:
        self.size = size
        self.asked = set() if asked is None else asked

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> int:
        if not hasattr(index, "__index__"):
            raise TypeError(f"'SyntheticDataset' object has no {index!r}")
        if not -self.size <= index < self.size:
            raise IndexError(index)
        sample = MadeUpSample(index % self.size)
        sample.asked = self.asked
        return sample

    @property
    def labels(self) -> list[int]:
        """A class for each sample, of :data:`KINDS`."""
        self.asked.add("labels")
        return [index % KINDS for index in range(self.size)]

    targets = labels

    @property
    def lengths(self) -> list[int]:
        """A length for each sample, between 1 and 23."""
        return [1 + index * 7 % 23 for index in range(self.size)]

    sizes = lengths
