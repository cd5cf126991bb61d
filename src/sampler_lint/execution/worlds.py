"""How small a set-up is that a class is tried in."""

from __future__ import annotations

from typing import NamedTuple


class World(NamedTuple):
    """One set-up: a data set of ``samples``, ``ranks`` processes, and the usual arguments."""

    samples: int
    ranks: int
    batch_size: int
    drop_last: bool = False

    @property
    def is_even(self) -> bool:
        """Whether nothing is left once each rank has its batches."""
        return self.samples % (self.ranks * self.batch_size) == 0

    def counts(self, *, sharded: bool) -> set[int]:
        """What a sampler may yield here: samples or batches, of all or of a rank's share."""
        ranks = self.ranks if sharded else 1
        out = set()
        for share in (self.samples // ranks, -(-self.samples // ranks)):
            out |= {share, share // self.batch_size, -(-share // self.batch_size)}
        return out
