"""What may stand for arguments of which only the use tells something."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from sampler_lint.execution.budget import BUDGET
from sampler_lint.execution.errors import Kind, WantedError
from sampler_lint.execution.standard import place_of
from sampler_lint.execution.values import NOT_MADE, PLACE, UNKNOWN, Data, Given, Source, given
from sampler_lint.execution.worlds import World

#: Ways to stand for a sequence, of which the first three are of numbers.
_SEQUENCES: dict[str, Callable[[World], Any]] = {
    "samples": lambda world: list(range(world.samples)),
    "sizes": lambda world: [part.size for part in Source(world.samples).parts()],
    "groups": lambda world: _groups(world),
    "a table": lambda world: Source(world.samples),
    "parts": lambda world: list(Source(world.samples).parts()),
    "fractions": lambda world: [1 / world.ranks] * world.ranks,
}
#: What may stand for an argument, by what the program first does with it: what changes nothing
#: (an offset of 0, a flag that is not set) before what does. A text is a way to make it.
STAND_INS: dict[Kind, tuple[Any, ...]] = {
    Kind.NUMBER: (0, 2, 1, "size"),
    Kind.FLAG: (False, True, "something", *_SEQUENCES),
    Kind.ANSWER: (False, True),
    Kind.SEQUENCE: (*_SEQUENCES, "each", "both", "mapped groups"),
    Kind.MAPPING: ("mapped groups", "each mapped", "both mapped"),
}
#: The same for an item of a sequence, or a part of one: items differ.
ITEM_STAND_INS: dict[Kind, tuple[Any, ...]] = {
    **STAND_INS,
    Kind.NUMBER: ("its group", "its place"),
    Kind.SEQUENCE: ("its share", "both"),
}


def is_number(guess: Any) -> bool:
    """Whether what stands for an argument, or for an item of one, is a number."""
    if type(guess) is not str:  # texts that the program compares with are of another type
        return type(guess) is int
    return guess in (*STAND_INS[Kind.NUMBER], *ITEM_STAND_INS[Kind.NUMBER])


def is_sequence(guess: Any) -> bool:
    """Whether what stands for an argument is something to go through."""
    return type(guess) is str and guess != "something" and not is_number(guess)


class _Text(str):
    """A text that the program compares an argument with."""

    __slots__ = ()


class _OtherText(NamedTuple):
    """A text that is none of these."""

    others: frozenset[str]


def stand_ins(error: WantedError) -> list[Any]:
    """What may stand for what the program asked for."""
    if error.choices:
        other = _OtherText(error.others.union(error.choices))
        return [*map(_Text, error.choices), other]
    table = ITEM_STAND_INS if ITEM in error.key else STAND_INS
    ways = list(table[error.kind])
    if Data.traced and "each" in ways:
        ways.insert(0, "each")  # files, of which nothing else is known
    return ways


_LAST_PART = re.compile(r"(?:\.|\[')(\w+)(?:'\])?$")
#: In patterns, the place of an item.
ITEM = "[]"


def other(guess: Any) -> Any:
    """Another value for the same argument."""
    if isinstance(guess, int):
        return not guess if isinstance(guess, bool) else 3
    item_numbers = ITEM_STAND_INS[Kind.NUMBER]
    return item_numbers[item_numbers.index(guess) - 1] if guess in item_numbers else guess


class Setting(Protocol):
    """What is known of the arguments beside what stands for them."""

    guesses: dict[str, Any] | None
    place: int
    """The rank of the process."""
    numbers_are_ranks: bool
    longer: str
    """What is gone through twice as long."""

    def placed(self, name: str, world: World, rank: int) -> Any:
        """What the world says of a name."""


class Made:
    """What stands for arguments in one world."""

    def __init__(self, spec: Setting, world: World) -> None:
        self.spec = spec
        self.guesses = spec.guesses or {}
        self.world = world
        self.place = spec.place
        self.rank = self.place if spec.numbers_are_ranks else None
        """What each argument is that is a number, unless None."""

    def of(self, pattern: str, key: str) -> Any:
        """As :meth:`~.values.StandIns.of` says."""
        guess = self.guesses.get(pattern)
        if guess is None:
            # `args.world_size` is what `world_size` would be.
            part = _LAST_PART.search(pattern)
            is_value = part is not None and place_of(part[1]) is None  # and no `get_rank`
            value = UNKNOWN
            if part is not None and is_value:
                value = self.spec.placed(part[1], self.world, self.place)
            return NOT_MADE if value is UNKNOWN else value
        if isinstance(guess, _Text):
            return str(guess)
        if isinstance(guess, _OtherText):
            return Given(key, self, pattern, is_true=True, others=guess.others)
        if isinstance(guess, int):
            is_rank = self.rank is not None and not isinstance(guess, bool)
            return self.rank if is_rank else guess
        if guess == "size":
            return self.world.samples
        if guess == "something":
            return Given(key, self, pattern, is_true=True)
        if guess in _SEQUENCES:
            made = _SEQUENCES[guess](self.world)
            return made * 2 if pattern == self.spec.longer and isinstance(made, list) else made
        if guess.startswith("its "):
            place = int(found[-1]) if (found := PLACE.findall(key)) else 0
            if guess == "its share":
                return list(range(place % 2, self.world.samples, 2))
            return place % 2 if guess == "its group" else place
        if guess == "mapped groups":
            return dict(enumerate(_groups(self.world)))
        count = self.world.samples if guess.startswith("each") else 2
        items = [
            Data(f"{key}[{place}]")
            if Data.traced
            else given(f"{key}[{place}]", self, f"{pattern}{ITEM}")
            for place in BUDGET.each(range(count))
        ]
        return dict(enumerate(items)) if guess.endswith("mapped") else items


def _groups(world: World) -> list[list[int]]:
    return [list(range(first, world.samples, 2)) for first in range(2)]
