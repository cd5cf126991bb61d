"""Names that are joined pair by pair, and who ends up with whom."""

from __future__ import annotations


class Partition(dict[str, str]):
    """Disjoint sets of names (union-find); a name is alone until it is united with another."""

    def find(self, item: str) -> str:
        """The name that stands for the set of ``item``."""
        while self.setdefault(item, item) != item:
            self[item] = self[self[item]]
            item = self[item]
        return item

    def unite(self, one: str, other: str) -> None:
        """Make one set of those of two names; what stood for the other's stands for it."""
        self[self.find(one)] = self.find(other)
