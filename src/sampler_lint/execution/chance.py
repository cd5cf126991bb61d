"""Where random numbers come from: which generator, what seeded it, how often it was drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from sampler_lint.execution.budget import BUDGET, FEWEST_MIXED


@dataclass(eq=False)
class Seeding:
    """One time that a generator was seeded."""

    values: tuple[Any, ...]
    is_late: bool
    """Whether it was drawn from before."""
    counts: bool = False
    """Whether anything may rest on it: a draw, or what nobody knows."""


@dataclass(eq=False)
class Stream:
    """A generator: of the process, or an object."""

    seeds: tuple[Any, ...] | None = None
    """What seeded it; None where nothing known did, empty where torch always does it alike."""
    drawn: int = 0
    """How often it was drawn from since."""
    seeding: Seeding | None = None
    """The last one."""

    def kept(self) -> Stream:
        """How it is now, for :meth:`restore`."""
        return replace(self)

    def restore(self, kept: Stream) -> None:
        """Go on from where it, or another, was."""
        self.seeds, self.drawn, self.seeding = kept.seeds, kept.drawn, kept.seeding


class Chance:
    """What a process does with random numbers."""

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        """The process's own generators, by their library."""
        self._noted: list[Seeding | tuple[Any, ...] | None] = []
        self.draws = 0
        """How many draws there were."""
        self.said: list[Any] = []
        """What functions outside the tree were told that are not followed; None where that is
        not plain."""
        self.worker = 0
        """Which worker of a loader the process is, if its own generators are told apart from those
        of the others: torch seeds each worker's by a seed of its own."""
        self.turn = 0
        """By how many places the order is turned that is drawn next: so far that two workers meet
        whether each then takes the next part or every n-th item."""
        self.settles = False
        """Whether a number that is drawn is one that it may be: of no account where it is only
        asked what draws rest on."""
        self.tries_orders = False
        """Whether an order that the process draws for itself, or by a seed that the first one has
        not, is another one in each process, so that what comes of it is seen. The first kind then
        does not count as what nobody knows."""
        self.counts_draws = False
        """Whether each draw of a generator gives another order than the one before."""
        self.mixes = 0
        """By what number an order is another one for other seeds, so that what comes of it is
        seen; none is by 0."""
        self.levels = False
        """Whether an order is the same one for all seeds, so that what else differs is seen."""
        self.orders = 0
        """How many of the draws have mixed more than a few items."""
        self._source: tuple[Any, ...] | None = None
        """What the draw rests on that was made last, if orders are mixed."""
        self.seeds_of_first: set[tuple[Any, ...]] = set()
        """What the generators were seeded with that the first process has drawn orders from."""

    @property
    def trace(self) -> list[tuple[Any, ...] | None]:
        """Each known seeding that counts, and each draw; None where nobody knows what it rests on.

        Of no account is that of a generator which is not drawn from before it is seeded again, or
        thrown away.
        """
        return [
            each.values if isinstance(each, Seeding) else each
            for each in self._noted
            if not isinstance(each, Seeding) or each.counts
        ]

    @property
    def idle(self) -> list[Seeding]:
        """The seedings after which nothing was drawn."""
        return [e for e in self._noted if isinstance(e, Seeding) and not e.counts]

    @property
    def seeds(self) -> tuple[Any, ...] | None:
        """What all draws rest on; None once some rest on nothing known."""
        trace = self.trace
        known = [each for each in trace if each is not None]
        return tuple(known) if len(known) == len(trace) else None

    def of_process(self, library: str) -> Stream:
        """The generator that a library's functions draw from."""
        return self.streams.setdefault(library, Stream())

    def new(self, library: str, values: Iterable[Any]) -> Stream:
        """Another generator, perhaps seeded."""
        made = Stream(() if library == "torch" else None)
        if library != "torch" and (given := list(values)):
            self.seed(made, given)
        return made

    def seed(self, stream: Stream, values: Iterable[Any]) -> None:
        """What is drawn from now on rests on the values."""
        known = tuple(_plain(values))
        is_late = stream.drawn > 0
        stream.seeds = known if known and None not in known else None
        stream.drawn = 0
        stream.seeding = None
        if stream.seeds is not None:
            # What a process draws from is known to all that it calls.
            stream.seeding = Seeding(stream.seeds, is_late, counts=stream in self.streams.values())
            self._noted.append(stream.seeding)

    def draw(self, stream: Stream | None, *, is_order: bool = False) -> None:
        """A draw, from who knows what for None; perhaps of an order."""
        self.draws += 1
        self._source = None
        is_own = stream is not None and stream.seeds is None and stream in self.streams.values()
        self.turn = self.worker if is_own or self._is_seeded_apart(stream) else 0
        if self.counts_draws and stream is not None:
            self.turn += stream.drawn
        if is_own and is_order and self.tries_orders:
            return
        if stream is None or stream.seeds is None:
            self._noted.append(None)
            return
        stream.drawn += 1
        self.use(stream)
        self._noted.append((*stream.seeds, stream.drawn))
        if self.mixes and is_order:
            rests_on = (self.draws,) if self.levels else (*stream.seeds, stream.drawn)
            self._source = (self.mixes, *rests_on)

    def _is_seeded_apart(self, stream: Stream | None) -> bool:
        """Whether the orders of a generator are tried, and the first process has none like it."""
        if not self.tries_orders or stream is None or stream.seeds is None:
            return False
        if self.worker == 0:
            self.seeds_of_first.add(stream.seeds)
        return stream.seeds not in self.seeds_of_first

    def use(self, stream: Stream) -> None:
        """What the generator was seeded with may count."""
        if stream.seeding is not None:
            stream.seeding.counts = True

    def ordered(self, items: list[Any]) -> list[Any]:
        """The items in the order that was drawn."""
        if self._source is not None and len(items) > 1:
            BUDGET.items(len(items))
            self.orders += len(items) >= FEWEST_MIXED
            return Random(repr(self._source)).sample(items, len(items))
        if not self.turn or not items:
            return items
        BUDGET.items(len(items))
        place = -self.turn % len(items)
        return [*items[place:], *items[:place]]

    def agree(self) -> None:
        """What was drawn last is told to the other ranks: each goes on with the same."""
        if self._noted and self._noted[-1] is None:
            self._noted.pop()

    def forget(self, stream: Stream) -> None:
        """Something else was done to a generator."""
        self.use(stream)
        stream.seeds = None

    def tell(self, name: str, values: Iterable[Any]) -> None:
        """A function that is not followed was called."""
        known = tuple(_plain(values))
        self.said.append(None if None in known else (name, *known))

    def begin(self) -> None:
        """Forget what was done so far; generators stay as they are."""
        self._noted, self.said, self.draws, self.orders = [], [], 0, 0

    def kept(self) -> tuple[dict[str, Stream], int, int]:
        """How things stand, for :meth:`put_back`."""
        return (
            {name: each.kept() for name, each in self.streams.items()},
            len(self._noted),
            self.draws,
        )

    def put_back(self, before: tuple[dict[str, Stream], int, int]) -> None:
        """What was done since then was not done."""
        self.streams, length, self.draws = before
        del self._noted[length:]


def _plain(values: Iterable[Any]) -> Iterator[Any]:
    """The numbers and texts among the values, and in lists of such; None for what is neither."""
    for value in values:
        if isinstance(value, (list, tuple)):
            BUDGET.items(len(value))
            yield "["
            yield from map(_scalar, value)
            yield "]"
        else:
            yield _scalar(value)


def _scalar(value: Any) -> Any:
    key = getattr(value, "key", value)
    return key if isinstance(key, (int, float, str)) else None
