"""Where the time of a run goes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Timings:
    """Seconds of wall time, by what they were spent on."""

    stages: dict[str, float] = field(default_factory=dict)
    """In the order in which they began; nested ones count in the outer one, too."""
    rules: dict[str, float] = field(default_factory=dict)
    """The first rule that needs a part of the model pays for all that use it."""
    files: dict[str, float] = field(default_factory=dict)
    """Reading and parsing, by the path shown."""

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time of a ``with`` block under ``name``."""
        self.stages.setdefault(name, 0.0)
        started = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] += time.perf_counter() - started
