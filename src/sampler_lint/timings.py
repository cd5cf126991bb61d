"""Where the time of a run goes, and how far the run is."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

_Item = TypeVar("_Item")

#: Told how far a run is: what it does, how much of that is done, and of how much (0: unknown).
Watch = Callable[[str, int, int], None]


def counted(stage: str, items: Iterable[_Item], total: int, watch: Watch | None) -> Iterable[_Item]:
    """The items; ``watch``, if there is one, hears of each before it is worked on."""
    return items if watch is None else _counted(stage, items, total, watch)


def _counted(stage: str, items: Iterable[_Item], total: int, watch: Watch) -> Iterator[_Item]:
    for done, item in enumerate(items):
        watch(stage, done, total)
        yield item


@dataclass(slots=True)
class Timings:
    """Seconds of wall time, by what they were spent on."""

    stages: dict[str, float] = field(default_factory=dict)
    """In the order in which they began; nested ones count in the outer one, too."""
    rules: dict[str, float] = field(default_factory=dict)
    """The first rule that needs a part of the model pays for all that use it."""
    files: dict[str, float] = field(default_factory=dict)
    """Reading and parsing, by the path shown."""
    limits: dict[str, int] = field(default_factory=dict)
    """How often the analysis met a limit, by what it gave up there: what is not seen for it."""

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time of a ``with`` block under ``name``."""
        self.stages.setdefault(name, 0.0)
        started = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] += time.perf_counter() - started
