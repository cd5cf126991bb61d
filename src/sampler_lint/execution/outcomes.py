"""What a sampler class did in the small worlds that it was tried in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from sampler_lint.execution.errors import RaisedError
from sampler_lint.execution.values import Array, Data, Lost, Told
from sampler_lint.execution.worlds import World
from sampler_lint.properties import (
    Observation,
    Rank,
    Reading,
    Violation,
    equal_steps,
    miscounts,
    partitions,
)

_NUMBERS = frozenset({int, Told})


@dataclass(frozen=True, slots=True)
class Turn:
    """What one rank does in a world."""

    rank: int
    yielded: tuple[Any, ...] | None
    """What it yields; None when ``__iter__`` raises."""
    length: int | None
    """What ``len()`` says before the first iteration; None without ``__len__``."""
    later: int | None
    """What ``len()`` says after it."""
    raised: RaisedError | None = None
    """What ``__iter__`` raises."""
    from_data: bool = False
    """Whether anything hung on what the data holds."""
    from_apart: bool = False
    """Whether it hung on single samples and on all of them: made up apart, these may not agree."""
    seeds: tuple[Any, ...] | None = ()
    """What its random numbers were seeded with; None when some were not, or with who knows what."""
    goes_on: bool = False
    """Whether it would have yielded more, for ever perhaps."""
    length_raised: RaisedError | None = None
    """What ``len()`` raises."""
    numbers: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    """The whole numbers that the object keeps, after the pass."""

    @property
    def count(self) -> int:
        """How many it yields."""
        return len(self.yielded or ())

    @property
    def in_batches(self) -> bool:
        """Whether it yields lists of samples."""
        return any(isinstance(item, (list, tuple, Array)) for item in self.yielded or ())

    @property
    def indices(self) -> tuple[int, ...] | None:
        """The sample numbers, batches taken apart; None where they are not known."""
        out: list[int] = []
        items = self.reading.items
        is_mixed = len({isinstance(item, list) for item in items}) > 1
        for item in items:
            parts = item if isinstance(item, list) else [item]
            if is_mixed or not _NUMBERS.issuperset(map(type, parts)):
                return None
            out += map(int, parts)
        return tuple(out)

    @property
    def reading(self) -> Reading:
        """What it read, as the properties judge it."""
        items = [self._plain(item) for item in self.yielded or ()]
        error = None if self.raised is None else f"raises {self.raised.kind}"
        return Reading(items, claimed=self.length, later=self.later, error=error)

    @staticmethod
    def _plain(item: Any) -> Any:
        parts = item.items if isinstance(item, Array) else item
        return [*map(_known, parts)] if isinstance(parts, (list, tuple)) else _known(parts)


def _known(item: Any) -> Any:
    """A sample that is yielded itself is known by its place: the data may be a list of indices."""
    is_sample = type(item) is Data and item.key == f"dataset[{item.place}]"
    return item.place if is_sample else item


class Trial(NamedTuple):
    """A world and what each of its ranks does."""

    world: World
    turns: tuple[Turn, ...]
    takes_batch_size: bool
    takes_drop_last: bool
    refused: RaisedError | None = None
    """What building the sampler raises; the turns then end with the rank before."""
    also: str = ""
    """What else is special about it, in words."""
    lost: tuple[Lost, ...] = ()
    """What the class's own constructor stored, and that of a base overwrote with something else."""
    parts_guessed: bool = False
    """Whether something stands for a part of an argument, such as an attribute of the data."""
    walks_guess: bool = False
    """Whether something that may be gone through stands for an argument."""
    options: tuple[str, ...] = ()
    """The optional arguments that are given another value than their default."""
    is_flagged: bool = False
    """Whether the one optional argument that is given is a flag or a text, not a number."""
    says_uneven: bool = False
    """Whether that argument says itself that ranks may differ."""
    follows: bool = False
    """Whether it is the epoch after a resumed one."""
    counts_hold: bool = False
    """Whether as many are yielded of other data, where the outcome hangs on it."""

    @property
    def raised(self) -> RaisedError | None:
        """What the sampler raises first, when built or when iterated."""
        return next((turn.raised for turn in self.turns if turn.raised), self.refused)

    @property
    def observed(self) -> Observation:
        """The world, as the properties judge it."""
        ranks = [Rank(turn.rank, passes=[turn.reading]) for turn in self.turns]
        return Observation(ranks, expected=range(self.world.samples))

    @property
    def from_data(self) -> bool:
        """Whether the outcome hangs on what the data holds."""
        return any(turn.from_data for turn in self.turns)

    @property
    def differs(self) -> bool:
        """Whether ranks differ in what they yield."""
        whole = self.turns[0].yielded if self.turns else None
        # What is one object is the same: most ranks are not asked twice.
        others = [t for t in self.turns if t.yielded is not None and t.yielded is not whole]
        first = self.turns[0].indices if others else None
        return any(turn.indices != first for turn in others)

    @property
    def counted(self) -> tuple[Any, ...]:
        """How many each rank yields and promises, or what it raises."""
        return tuple((t.count, t.length, t.raised and t.raised.kind) for t in self.turns)

    @property
    def fits(self) -> bool:
        """Whether every rank yields something, as much as each other one and as it promises."""
        counts = {turn.count for turn in self.turns}
        return (
            self.raised is None
            and len(counts) == 1
            and 0 not in counts
            and all(turn.length in {None, turn.count} for turn in self.turns)
        )

    @property
    def divides(self) -> bool:
        """Whether the ranks share out all samples, so that each has its own part."""
        return self.differs and partitions(self.observed) is None

    @property
    def story(self) -> str:
        """The world in words."""
        world = self.world
        parts = [f"{world.samples} sample{'s' * (world.samples != 1)}"]
        if world.ranks > 1:
            parts.append(f"{world.ranks} ranks")
        if self.takes_batch_size:
            parts.append(f"batch_size={world.batch_size}")
        if self.takes_drop_last:
            parts.append(f"drop_last={world.drop_last}")
        if self.also:
            parts.append(self.also)
        return ", ".join(parts)


class Trials(NamedTuple):
    """Every world that a class could be tried in."""

    usual: tuple[Trial, ...] = ()
    """Empty when the class is not understood."""
    tiny: tuple[Trial, ...] = ()
    """Worlds with hardly more samples than ranks, as far as the class could be tried there."""
    varied: tuple[Trial, ...] = ()
    """Some of the usual worlds, each with one optional argument given."""
    again: tuple[Trial, ...] = ()
    """Worlds of one process, with its first two passes in place of ranks."""
    resumed: tuple[Trial, ...] = ()
    """What comes after ``load_state_dict()`` of what ``state_dict()`` said in mid-epoch."""
    resized: tuple[Trial, ...] = ()
    """The same, with another number of ranks than the state was saved by."""
    overrun: tuple[Trial, ...] = ()
    """What comes after loading with more steps behind than an epoch has, where a class wraps."""
    stuck: tuple[Trial, ...] = ()
    """Worlds in which a loop of the class never ends, with one flag given or none."""
    guessed: tuple[Trial, ...] = ()
    """Where there are no usual ones: worlds with arguments of which only their
    use is known. What is wrong in one of them may be the arguments' fault, in all the class's."""
    made_apart: bool = False
    """Whether what is gone through in the guesses stands for the result of a call that ``len()``
    does not rest on: how these two go together, nobody knows."""
    dropping: tuple[Trial, ...] = ()
    """The guesses again, with ``drop_last``."""
    endless: tuple[Trial, ...] = ()
    """The first that is handed out in worlds where that goes on for ever, of which
    nothing else is known."""
    repeated: Trial | None = None
    """A world in which every rank yields the same part of the data, if that is so in all."""
    unplaced: Trial | None = None
    """The same, where the class is built without the rank that it may be given."""
    reordered: Trial | None = None
    """A world in which ranks that share out what they order draw other orders, by seeds that differ
    between them, so that they read the same samples, if that is so in most of them."""
    failing: Trial | None = None
    """The first world, where the class raises the same in all of them: with its defaults, or with
    guesses where it lets none pass."""
    torn: tuple[Trial, Violation] | None = None
    """A world that divides evenly, and in which the ranks lose samples all the same, or read half
    of all again, if that is so in all of them."""
    barren: Trial | None = None
    """A world in which no rank yields anything, whatever ``len()`` says, if that is so in all."""
    length_raised: RaisedError | None = None
    """What ``len()`` of a new object raises, whatever else is understood."""
    unbuilt: RaisedError | None = None
    """What building it raises, with arguments of which all is known."""
    unknown: str = ""
    """Why there are no usual ones."""

    @property
    def errors(self) -> Iterator[RaisedError]:
        """What building it, measuring it and passing over it raised."""
        known = (*self.usual, *self.guessed, *filter(None, [self.failing]))
        lengths = (turn.length_raised for trial in known for turn in trial.turns)
        raised = (trial.raised for trial in known)
        yield from filter(None, (self.unbuilt, self.length_raised, *raised, *lengths))

    @property
    def sharded(self) -> bool:
        """Whether ranks differ in what they yield."""
        return any(trial.differs for trial in (*self.usual, *self.guessed))

    @property
    def cut_for_ever(self) -> Trial | None:
        """An epoch after a resumed one that is as short as that, if it is so in all worlds."""
        whole = {trial.world: trial for trial in self.usual if trial.raised is None}
        pairs = [
            (rest, after)
            for rest, after in pairwise(self.resumed)
            if after.follows and not rest.follows and after.world in whole
        ]
        are_cut = all(
            after.raised is None
            and all(
                0 < again.count == rest.count < every.count and not again.from_data
                for rest, again, every in zip(
                    rest.turns, after.turns, whole[after.world].turns, strict=True
                )
            )
            for rest, after in pairs
        )
        return pairs[0][1] if pairs and are_cut else None

    @property
    def told(self) -> tuple[Trial, ...]:
        """Worlds that tell of the class and not of guesses: the usual ones, or the guessed ones.

        Of those, where other guesses change nothing that is counted, and where all comes out right
        with data that divides evenly.
        """
        if self.usual:
            return self.usual
        counted: dict[World, set[Any]] = {}
        for trial in self.guessed:
            counted.setdefault(trial.world, set()).add(trial.counted)
        even = [trial for trial in self.guessed if trial.world.is_even]
        is_free = all(len(found) == 1 for found in counted.values())
        return self.guessed if is_free and even and all(t.fits for t in even) else ()

    @property
    def story(self) -> str:
        """What came of it, in words."""
        tried = [trial for trial in self.usual or self.guessed if trial.raised is None]
        if not tried:
            return f"not tried: {self.unknown}"
        guessed = "" if self.usual else ", with arguments guessed from their use"
        off = sum(any(miscounts(turn.reading) for turn in trial.turns) for trial in tried)
        uneven = sum(equal_steps(trial.observed) is not None for trial in tried)
        return (
            f"tried in {len(tried)} small worlds{guessed}: `len()` is wrong in {off or 'none'}, "
            f"ranks differ in number in {uneven or 'none'}"
        )
