"""What the ranks tell each other, where each runs alone.

Nobody knows what a rank has drawn; but what one of them broadcasts, or all gather, is the same on
each. So the order that rests on it is the same, too.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

from sampler_lint.execution.budget import BUDGET
from sampler_lint.execution.values import UNKNOWN, Data, Run
from sampler_lint.parameters import AGREES


class Agreed(Data):
    """What the ranks have told each other: the same on each, and another each time."""

    place = None

    @property
    def number(self) -> int:
        """A number that is no size of anything."""
        Data.asked += 1
        Data.asked_of_all += 1
        return zlib.crc32(self.key.encode())

    def part(self, what: str) -> Any:
        """An item, such as what the first rank has told."""
        BUDGET.text(len(self.key) + len(what))
        return Agreed(f"{self.key}{what}")


def agreed(run: Run, name: str, values: Iterable[Any]) -> Any:
    """What such a call gives of what each rank has drawn; of anything else nobody knows."""
    told = list(values)
    is_drawn = all(value is UNKNOWN or value is None for value in told)
    if not is_drawn or AGREES.search(name) is None:
        return UNKNOWN
    if UNKNOWN in told:
        run.chance.agree()
    run.agreed += 1
    return Agreed(f"{name}({run.agreed})")
