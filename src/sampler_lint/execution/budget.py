"""What trying a class may cost, in steps and bytes, charged before anything is done or made.

The one place of all limits of the interpreter. Nothing here looks at a clock: the same class
is tried, or not, on every machine.

What visits a node of the program, or hands on an item one by one, is a step. What Python does in
one go (a copy, a slice, a comparison) is charged by the items that it touches, before it is
called: :meth:`Budget.items`, :meth:`Budget.text`, :meth:`Budget.collect`. Functions of the
library state their cost in the table that they stand in (:class:`Op`).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sized
from enum import Enum, auto
from functools import partial
from typing import Any, NamedTuple, TypeVar

from sampler_lint.execution.errors import CannotTellError, OverBudgetError

#: Of one process in one world. A sampler of a dozen samples takes hundreds; it leaves room for
#: one that counts to some thousands.
STEPS_A_RUN = 60_000
#: Of all worlds, ranks and options that a class is tried with: a second or two at the worst.
STEPS_A_CLASS = 1_000_000
#: The same for a second look at a class that could not be followed.
STEPS_A_LOOK = 200_000
#: Of one process in one world, whether it keeps them or not.
BYTES_A_RUN = 1 << 25
#: Python copies so many items while the interpreter visits one node, and as many eight bytes.
ITEMS_A_STEP = 16
#: What an item takes at most: a number of its own, and an entry of a half empty set.
BYTES_AN_ITEM = 128
#: What runs leave in circles is thrown away when it may be so much.
BYTES_OF_GARBAGE = 1 << 26
#: Twice as long as any seed or hash. Operators take time by the length of numbers.
LARGEST_NUMBER = 1 << 512
#: A power or shift that stays near :data:`LARGEST_NUMBER`.
LARGEST_EXPONENT = 64
#: Python itself reads no longer ones as a number (``sys.set_int_max_str_digits``).
MOST_DIGITS = 4300
#: From here on numbers of one hash can be made at will, and a dict of them takes quadratic time.
LARGEST_KEY = 2**61 - 1
#: Calls in one another. Each takes a dozen frames of Python, which has a thousand.
DEEPEST_CALL = 40
#: Lists in one another: batches of batches of samples are three.
DEEPEST_VALUE = 8
#: What a sampler yields before it counts as endless: more than any world has samples.
MOST_HANDED_OUT = 400
#: More turns of a ``while`` loop, or steps of training, than an epoch of any world tried has.
MORE_THAN_AN_EPOCH = 40
#: Fewer items may well be in one order by two seeds.
FEWEST_MIXED = 4
#: Optional arguments of a constructor that are tried, one at a time.
MOST_OPTIONS = 8
#: How often a constructor is tried with other arguments until it runs through.
MOST_GUESSES = 100
#: How often one of these tries may run out of what a run is given.
MOST_OVER_BUDGET = 5
#: Trees of so many files are kept from one class to the next.
MOST_FILES = 32

#: Larger numbers are for real data, of which a small world has too little.
LARGE_NUMBER = 64
#: What is tried in the place of such a number: one that many divide. Also a seed that is given,
#: so that nothing is lost where it is multiplied.
SMALL_NUMBER = 24
#: The first number that is too long for a seed of 32 bits.
LONG_SEED = 2**32
#: For what data holds, which is 1 to 5 (see :class:`~.values.Data`): some of it is left out.
SMALL_LIMIT = 3
#: What padding and dropping add up to, in batches a rank: at the end of each of a few groups.
MOST_ROUNDED_BATCHES = 3


class Budget:
    """What is left for the class that is being tried."""

    def __init__(self) -> None:
        self.open()

    def open(self, most: int | None = None) -> None:
        """Begin with another class, for which there are so many steps, or the usual ones."""
        self.most = STEPS_A_CLASS if most is None else most
        self.spent = 0
        """Steps of the runs before this one."""
        self.gone = ""
        """Why nothing is left for the class, if so."""
        self._garbage = 0
        self._grant()

    def restart(self) -> None:
        """Begin with another process of the same class."""
        self.spent = self.steps
        self._garbage += BYTES_A_RUN - max(0, self.room)
        if self._garbage > BYTES_OF_GARBAGE:
            self._garbage = 0
            # Collection is off while checking. The youngest: what has been here the last time
            # is not looked at again.
            gc.collect(0)
        self._grant()

    def again(self, used: int) -> bool:
        """Charge for another process that does all that one did which used so many steps.

        Not where less is left for it.
        """
        if used > min(STEPS_A_RUN, self.most - self.steps):
            return False
        self.restart()
        self.left -= used
        return True

    def _grant(self) -> None:
        self.granted = self.left = min(STEPS_A_RUN, self.most - self.spent)
        self.room = BYTES_A_RUN

    @property
    def steps(self) -> int:
        """What has been charged for the class; what was refused has not."""
        return self.spent + self.granted - max(0, self.left)

    @property
    def used(self) -> int:
        """The steps of this process."""
        return self.steps - self.spent

    def step(self) -> None:
        """Charge for a node of the program."""
        self.left -= 1
        if self.left < 0:
            self.over()

    def items(self, count: int) -> None:
        """Charge for so many items that Python is going to copy, compare or make."""
        self.left -= 1 + count // ITEMS_A_STEP
        self.room -= count * BYTES_AN_ITEM
        if self.left < 0 or self.room < 0:
            self.over()

    def text(self, length: int) -> None:
        """Charge for so many characters that Python is going to copy or read."""
        self.left -= 1 + length // (8 * ITEMS_A_STEP)
        self.room -= 4 * length
        if self.left < 0 or self.room < 0:
            self.over()

    def over(self) -> None:
        """Nothing is left, from now on.

        Raises:
            OverBudgetError: always.
        """
        limit = f"{BYTES_A_RUN >> 20} MB" if self.room < 0 else f"{STEPS_A_RUN:,} steps"
        if self.granted < STEPS_A_RUN and self.room >= 0:
            limit = f"{self.most:,} steps in all"
            self.gone = f"it takes more than {limit}"
        self.left = -1
        raise OverBudgetError(f"it takes more than {limit}")

    def each(self, items: Iterable[Any]) -> Iterator[Any]:
        """The items, charged one by one."""
        for item in items:
            self.left -= 1
            if self.left < 0:
                self.over()
            yield item

    def collect(self, items: Iterable[Any]) -> list[Any]:
        """The items as a list."""
        if isinstance(items, (list, tuple, range, dict, set, str)):
            self.items(size(items))
            return list(items)
        out = list(self.each(items))
        self.items(len(out))
        return out


def size(value: Sized) -> int:
    """``len(value)``, also of a range that Python cannot measure.

    Raises:
        CannotTellError: it is one.
    """
    try:
        return len(value)
    except OverflowError as error:
        raise CannotTellError("something large") from error


#: There is one, for the interpreter tries one class at a time.
BUDGET = Budget()


Function = TypeVar("Function", bound=Callable[..., Any])


class Cost(Enum):
    """What a function of the library costs besides being called."""

    FLAT = auto()
    """Nothing: it takes as long for large arguments as for small ones."""
    BY_ITEM = auto()
    """All that it reads comes from :meth:`Run.iterate` or :meth:`Run.listed`, and what it makes
    goes through :meth:`Budget.collect`: that is charged there."""
    SHALLOW = auto()
    """It copies or moves the items of its arguments."""
    DEEP = auto()
    """It compares, copies or writes out its arguments with all that they hold."""


class Op(NamedTuple):
    """A function of the library, called only by :func:`~.values.perform`."""

    cost: Cost
    call: Callable[..., Any]


class Table(dict[str, Op]):
    """Functions of the library by their names, entered by themselves."""

    def __call__(self, cost: Cost, *names: str) -> Callable[[Function], Function]:
        """Enter a function, under its own name if no other is given."""

        def enter(function: Function) -> Function:
            for name in names or (function.__name__.strip("_"),):
                self[name] = Op(cost, function)
            return function

        return enter

    def own(self, cost: Cost, *names: str) -> None:
        """Enter methods that do what Python's own do."""
        for name in names:
            self[name] = Op(cost, partial(_own, name))


def _own(name: str, _run: Any, owner: Any, *args: Any) -> Any:
    return getattr(owner, name)(*args)
