"""Works a dataset that divides itself through as every rank and every worker of a loader has it.

What is handed out is known again by the parts of the data that it is made of: which file, and
which line of it. Nobody needs to know what a part holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sampler_lint.execution.budget import BUDGET, MOST_HANDED_OUT, MOST_OPTIONS
from sampler_lint.execution.errors import CannotTellError, RaisedError
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.execution.passes import EVEN, SILENT
from sampler_lint.execution.set_up import SetUp
from sampler_lint.execution.trials import LEFT_OVER, guess
from sampler_lint.execution.values import Array, Data, Instance, Source
from sampler_lint.execution.worlds import World
from sampler_lint.limits import FEWEST_GUESSED
from sampler_lint.parameters import Role, role_of
from sampler_lint.syntax.nodes import Class


class Tear(NamedTuple):
    """A world in which what the parts hand out is not, together, what one process alone does."""

    samples: int
    ranks: int
    workers: int
    also: str
    """What else is special about it, in words."""
    whole: int
    """How many parts of the data one process alone yields, each once."""
    missing: int = 0
    repeated: int = 0
    alike: bool = False
    """Whether all hand out the same."""
    is_rest: bool = False
    """Whether it comes out right where the samples divide evenly among the workers."""
    by_draws: bool = False
    """Whether it does where all workers draw alike: each has a generator of its own."""

    @property
    def story(self) -> str:
        """The world in words."""
        parts = [f"{self.samples} samples"]
        if self.ranks > 1:
            parts.append(f"{self.ranks} ranks")
        if self.workers:
            parts.append(f"{self.workers} workers" + " each" * (self.ranks > 1))
        return ", ".join([*parts, *filter(None, [self.also])])


@dataclass
class Sharing:
    """What is known of how a dataset divides itself."""

    tear: Tear | None = None
    unknown: str = ""
    """Why nothing is, if so."""
    repeats_in_workers: bool = False
    """Whether each worker of a process yields all that the process does, whatever it is told."""
    repeats_on_ranks: bool = False
    """Whether each rank yields all that one process alone does, whatever it is told."""


class _Parts(NamedTuple):
    """What one worker yields."""

    leaves: tuple[Any, ...]
    in_batches: bool


def try_sharing(interpreter: Interpreter, cls: Class) -> Sharing:
    """Divide a dataset class of the tree in several worlds."""
    BUDGET.open()
    Data.traced = True
    try:
        return _Divided(interpreter, SetUp(interpreter, interpreter.class_of(cls))).judged()
    except (RaisedError, *SILENT) as error:
        return Sharing(unknown=str(error) or type(error).__name__)
    finally:
        Data.traced = False
        interpreter.worker = None


class _Divided:
    def __init__(self, interpreter: Interpreter, spec: SetUp) -> None:
        self.interpreter = interpreter
        self.spec = spec
        self.option: tuple[str, Any] | None = None
        self.alone = 0
        """The fewest workers that a process may have."""
        self.unknown = ""
        self.own_draws = False
        """Whether each worker draws by a seed of its own, as torch gives it one."""

    def judged(self) -> Sharing:
        """The first way through the class in which it tears what it divides."""
        self.interpreter.asked_place = self.interpreter.asked_worker = False
        for self.alone in (0, 1):  # a class may work in workers only
            if guess(self.spec, self._hands_out):
                break
            if not self.interpreter.asked_worker:  # then it does the same in a worker
                return Sharing(unknown=self.unknown)
        else:
            return Sharing(unknown=self.unknown)
        found = Sharing(repeats_in_workers=True, repeats_on_ranks=True)
        for option in self._options():
            self.option = option
            try:
                tear = self._tear()
                world = EVEN[0]
                found.repeats_in_workers &= self._repeats(world._replace(ranks=1), world.ranks)
                found.repeats_on_ranks &= self._repeats(world, self.alone)
            except (RaisedError, *SILENT) as error:
                found.unknown = found.unknown or str(error) or type(error).__name__
                found.repeats_in_workers = found.repeats_on_ranks = False
                continue
            if tear is not None:
                return Sharing(tear)
        return found

    def _hands_out(self) -> bool:
        self.unknown = "what it yields"
        try:
            return self._whole(EVEN[0].samples, EVEN[0].batch_size) is not None
        except (RaisedError, *SILENT) as error:
            self.unknown = str(error) or type(error).__name__
            if isinstance(error, RaisedError):
                return False  # what else is guessed may please it
            raise

    def _options(self) -> Iterator[tuple[str, Any] | None]:
        """Optional arguments that may be another way to divide: flags, and what counts ranks."""
        yield None
        numbers = [
            (param.arg, Role.TOTAL_BATCH)
            for param, default in self.spec.params
            if default is not None and role_of(param.arg) is Role.TOTAL_BATCH
        ]
        yield from [*numbers, *self.spec.flags()][:MOST_OPTIONS]

    def _tear(self) -> Tear | None:
        interpreter = self.interpreter
        interpreter.asked_place = interpreter.asked_worker = False
        for world in EVEN:
            self._whole(world.samples, world.batch_size)
        by_rank, by_worker = interpreter.asked_place, interpreter.asked_worker
        ways = [(by_rank, False), (False, by_worker), (by_rank, by_worker)]
        for ranked, worked in dict.fromkeys(way for way in ways if any(way)):
            tears = [
                self._compared(
                    world._replace(
                        samples=world.samples * (world.ranks if ranked and worked else 1),
                        ranks=world.ranks if ranked else 1,
                    ),
                    world.ranks if worked else self.alone,
                )
                for world in EVEN
            ]
            if all(tears):
                return tears[0]
        if by_worker:
            for world in LEFT_OVER:
                alone = world._replace(ranks=1, drop_last=False)
                tear = self._compared(alone, world.ranks, odd=True)
                if tear is not None:
                    return tear
            return self._drawn_apart()
        return None

    def _drawn_apart(self) -> Tear | None:
        """What workers tear only because each orders all for itself before it takes its part."""
        self.own_draws = True
        try:
            alone = [world._replace(ranks=1) for world in EVEN]
            tears = [
                self._compared(one, world.ranks) for one, world in zip(alone, EVEN, strict=True)
            ]
        except (RaisedError, *SILENT):
            return None
        finally:
            self.own_draws = False
        first = tears[0]
        return first._replace(by_draws=True) if first is not None and all(tears) else None

    def _repeats(self, world: World, workers: int) -> bool:
        """Whether each of them yields all that one process alone does."""
        whole = self._whole(world.samples, world.batch_size)
        return whole is not None and all(
            self._handed_out(world, rank, worker, workers) == whole
            for rank in range(world.ranks)
            for worker in range(workers or 1)
        )

    def _compared(self, world: World, workers: int, *, odd: bool = False) -> Tear | None:
        """What is lost or comes twice in a world, unless all of it does alike."""
        whole = self._whole(world.samples, world.batch_size)
        if whole is None or (odd and whole.in_batches):
            return None
        parts = [
            self._handed_out(world, rank, worker, workers)
            for rank in range(world.ranks)
            for worker in range(workers or 1)
        ]
        together = Counter(leaf for part in parts for leaf in part.leaves)
        if not together or together.keys() - set(whole.leaves):
            raise CannotTellError("whether it yields the same data")
        missing = len(set(whole.leaves) - together.keys())
        repeated = sum(1 for count in together.values() if count > 1)
        if not missing and len(set(together.values())) < 2:
            return None  # each does its part, or each does all
        alike = all(part.leaves == parts[0].leaves for part in parts)
        tear = Tear(world.samples, world.ranks, workers, self._also(world), len(whole.leaves))
        return tear._replace(missing=missing, repeated=repeated, alike=alike, is_rest=odd)

    def _also(self, world: World) -> str:
        return "" if self.option is None else "{}={}".format(*self._given(self.option, world))

    def _given(self, option: tuple[str, Any], world: World) -> tuple[str, Any]:
        name, value = option
        return name, world.batch_size * world.ranks if value is Role.TOTAL_BATCH else value

    def _whole(self, samples: int, batch_size: int) -> _Parts | None:
        """What one process yields, if each part of the data comes once."""
        found = self._handed_out(World(samples, 1, batch_size), 0, 0, self.alone)
        is_whole = len(set(found.leaves)) == len(found.leaves) > FEWEST_GUESSED
        return found if is_whole else None

    def _handed_out(self, world: World, rank: int, worker: int, workers: int) -> _Parts:
        interpreter = self.interpreter
        interpreter.restart(world.ranks, rank)
        interpreter.guesses = True
        interpreter.worker = None
        option = None if self.option is None else self._given(self.option, world)
        instance = self.spec.build(world, rank, option)
        interpreter.worker = (worker, workers) if workers else None
        if self.own_draws and workers:
            interpreter.chance.worker = worker
        leaves: list[Any] = []
        in_batches = False
        setter = interpreter.method(instance, "set_epoch")
        if setter is not None:
            interpreter.call(setter, [0], {})
        for item in interpreter.read(instance):
            found = _leaves(item)
            if not found:
                raise CannotTellError("which samples it yields")
            in_batches = in_batches or len(found) > 1
            leaves += found
            if len(leaves) > MOST_HANDED_OUT:
                raise CannotTellError("whether it ends")
        return _Parts(tuple(leaves), in_batches)


def _leaves(item: Any) -> list[Any]:
    """The parts of the data that an item is made of; plain numbers where it has no other."""
    data: dict[Any, None] = {}
    numbers: dict[Any, None] = {}
    todo = [item]
    while todo:
        BUDGET.step()
        value = todo.pop()
        if isinstance(value, Array):
            value = value.items
        if isinstance(value, dict):
            todo += [*value.values()][::-1]
        elif isinstance(value, (list, tuple)):
            todo += value[::-1]
        elif isinstance(value, Instance):
            todo += [*value.attributes.values()][::-1]
        elif isinstance(value, Data) and not isinstance(value, Source):
            if value.origin is not None:
                data[value.origin] = None
        elif type(value) is int:
            numbers[value] = None
    return [*data] or [*numbers]
