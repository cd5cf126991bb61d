"""Sets the epoch of an object in a small world, iterates it, and looks what came of it.

What the class does with the epoch is what its random numbers rest on in one pass and in another.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from sampler_lint.execution.budget import (
    BUDGET,
    FEWEST_MIXED,
    MOST_HANDED_OUT,
    MOST_OPTIONS,
    SMALL_NUMBER,
)
from sampler_lint.execution.chance import Seeding
from sampler_lint.execution.errors import CannotTellError, OverBudgetError, RaisedError
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.execution.passes import SILENT
from sampler_lint.execution.set_up import SetUp
from sampler_lint.execution.state import state
from sampler_lint.execution.trials import guess, welcoming
from sampler_lint.execution.values import Instance, Klass
from sampler_lint.execution.worlds import World
from sampler_lint.parameters import Role
from sampler_lint.syntax.nodes import Class

#: The second is not the first, as in a program, and the others are far from both.
_EPOCHS = (0, 1, 2, 7, 1000)

#: A parameter, and the class that it is given an object of (see :func:`try_epochs`).
Around = tuple[str, Class | None] | None
#: What files say instead, by their paths.
Texts = Mapping[str, str] | None


class Held(NamedTuple):
    """What an object iterates in a pass, or takes items of, and that has an epoch of its own."""

    path: tuple[str, ...]
    """The attributes that lead to it; the last ones may lead to a list that it is in."""
    name: str
    """What its class is called."""
    others: tuple[tuple[str, ...], ...] = ()
    """The other ways that lead to it."""


class Idle(Enum):
    """How it comes that nothing is drawn from a generator after it was seeded with the epoch."""

    APART = auto()
    """The draws are from others."""
    LATE = auto()
    """They are before."""
    UNUSED = auto()
    """There are none."""


class EpochTrial(NamedTuple):
    """What setting the epoch of an object does."""

    uses: bool
    """Whether the first pass of a new object is another for another epoch."""
    changes: bool
    """Whether passes of one object differ, be it by the epoch or because it moves on by itself."""
    draws: bool
    """Whether passes draw random numbers that all rest on known seeds."""
    frozen: bool = False
    """Whether the first pass draws an order, and all others yield the same."""
    built: bool = False
    """Whether that order is drawn by the constructor."""
    idle: Idle | None = None
    """Why a generator that it seeds with the epoch has no say, if so."""
    kept_from: tuple[Held, ...] = ()
    """What it iterates and whose own epoch stays as it was, though it shuffles by it."""
    idle_by_default: bool = False
    """Whether the epoch changes nothing while all seeds are what they are by default."""
    keeps_first: bool = False
    """Whether the first pass draws, by whatever, and all others yield the same without a draw."""
    lumps: bool = False
    """Whether epochs that follow one another are drawn by the same seeds."""
    drifts: bool = False
    """Whether what an epoch gives rests on the passes before it; only told of mixed orders."""
    reorders: bool = False
    """Whether passes of one epoch differ by that alone: each shuffles what the last has left."""
    does_more: bool = False
    """Whether epochs differ by more than the orders that are drawn; only told of level orders."""
    raises: bool = False
    """Whether it stops with an error; that is only told where it is asked."""
    strays: bool = False
    """Whether it may draw by what rests on no known seed."""


_RAISES = EpochTrial(uses=False, changes=False, draws=False, raises=True)


class _Pass(NamedTuple):
    trace: tuple[Any, ...]
    idle: tuple[Seeding, ...]
    draws: int
    yielded: list[Any]
    seeded: bool
    heard: tuple[Any, ...]
    """What was drawn while the epoch was set."""
    walks: list[tuple[Instance, Any]]
    """What was iterated, or had an item taken, and how it was then; None where that cannot be
    told."""
    orders: int

    @property
    def outcome(self) -> tuple[Any, ...]:
        """What tells two passes apart: what they yield, if each draw is an order that is seen."""
        shows = self.draws == self.orders and len({*_parts(self.yielded)}) >= FEWEST_MIXED
        return (self.yielded,) if shows else (self.trace, self.yielded if self.orders else ())


def _parts(yielded: Any) -> Iterator[Any]:
    """What is yielded, as it is or in batches."""
    for each in yielded:
        if isinstance(each, (list, tuple)):
            yield from _parts(each)
        elif isinstance(each, (int, str)):
            yield each


def try_epochs(
    interpreter: Interpreter,
    cls: Class,
    *,
    around_shard: bool = False,
    around: Around = None,
    tells_errors: bool = False,
    mixes: bool = False,
    levels: bool = False,
    seed: int | None = None,
) -> EpochTrial | None:
    """Set several epochs of one object, one after the other; None where it cannot be told.

    A class that has no epoch to set is iterated as often.

    ``around_shard``: the sampler that it takes is a DistributedSampler; ``around``: a parameter
    is an object of that class, or of DistributedSampler where that is None; ``tells_errors``:
    whether to tell what raises from what cannot be run; ``mixes``: whether orders are other ones
    for other seeds, and what the class is given is told the epoch where it has no ``set_epoch``;
    ``levels``: whether they are the same ones for all seeds; ``seed``: one that it is given.
    """
    BUDGET.open()
    interpreter.settles_chance, interpreter.mixes_orders = True, int(mixes or levels)
    interpreter.levels_orders = levels
    try:
        spec = SetUp(interpreter, interpreter.class_of(cls), around_shard=around_shard)
        if around is not None:
            inner = around[1] and interpreter.class_of(around[1])
            inner = inner or interpreter.known_class("DistributedSampler")
            spec.given = around[0], SetUp(interpreter, inner)
        found = _told(_each_option(interpreter, spec, seed))
        if mixes and found is not None and (found.lumps or found.drifts):
            interpreter.mixes_orders = 2  # two orders may be alike by chance, but not twice
            again = _told(_each_option(interpreter, spec, seed))
            lumps = again is not None and found.lumps and again.lumps
            drifts = again is not None and found.drifts and again.drifts
            found = found._replace(lumps=lumps, drifts=drifts)
            interpreter.mixes_orders = -1  # each order is left as it is
            plain = _told(_each_option(interpreter, spec, seed)) if drifts else None
            moves = found.reorders and again is not None and again.reorders
            found = found._replace(reorders=moves and plain is not None and not plain.drifts)
        return found
    except RaisedError as error:
        # What stands for an argument need not have what the argument has.
        is_of_argument = getattr(error.node, "attr", "") == "set_epoch"
        return _RAISES if tells_errors and not is_of_argument else None
    except SILENT:
        return None
    finally:
        interpreter.settles_chance, interpreter.mixes_orders = False, 0
        interpreter.levels_orders = False


def uses_seed(interpreter: Interpreter, cls: Class) -> bool | None:
    """Whether what a class draws rests on the seed that it is given; None where nobody knows."""
    BUDGET.open()
    try:
        spec = SetUp(interpreter, interpreter.class_of(cls))
        world, spec.seeded = welcoming(interpreter, spec)[0], True
        by_seed = partial(_by_seed, interpreter, spec, world._replace(drop_last=spec.drops[0]))
        try:
            by_seed(None)
        except OverBudgetError:
            raise
        except (RaisedError, *SILENT):
            if not guess(spec, lambda: by_seed(None) is not None):
                return None
        options = (None, *itertools.islice(spec.flags(), MOST_OPTIONS))
        found = [by_seed(option) for option in options]
    except (RaisedError, *SILENT):
        return None
    drawn = [same for same in found if same is not None]
    return not all(drawn) if drawn else None


def _by_seed(
    interpreter: Interpreter, spec: SetUp, world: World, option: tuple[str, Any] | None
) -> bool | None:
    """Whether building an object and passing over it is the same with two seeds; None where
    nothing is drawn.

    Raises:
        CannotTellError: not all that is drawn rests on known seeds.
    """
    seen = []
    for spec.seed in (SMALL_NUMBER, SMALL_NUMBER + 1):
        interpreter.guesses = spec.guesses is not None
        interpreter.restart(world.ranks, 0)
        instance = spec.build(world, 0, option)
        built = (*interpreter.chance.trace, *interpreter.chance.said)
        found = _pass(interpreter, instance, 1, ends=False)
        if found.draws and (not found.seeded or None in built):
            raise CannotTellError("what it draws by")
        seen.append((built, found.trace, found.yielded, found.draws))
    return seen[0] == seen[1] if seen[0][-1] else None


def _told(found: Iterator[EpochTrial]) -> EpochTrial | None:
    """What holds whatever is chosen: an option under which the epoch counts is a choice."""
    trials = list(found)
    drawing = [trial for trial in trials if trial.draws or trial.frozen]
    if not trials:
        return None
    kept = set.intersection(*(set(trial.kept_from) for trial in drawing or trials))
    return EpochTrial(
        any(trial.uses for trial in trials),
        any(trial.changes for trial in trials),
        bool(drawing),
        bool(drawing) and all(trial.frozen for trial in drawing),
        bool(drawing) and all(trial.built for trial in drawing),
        _idle({trial.idle for trial in trials}),
        tuple(sorted(kept)),
        any(trial.idle_by_default for trial in trials),
        all(trial.keeps_first for trial in trials),
        bool(drawing) and all(trial.lumps for trial in drawing),
        bool(drawing) and all(trial.drifts for trial in drawing),
        bool(drawing) and all(trial.reorders for trial in drawing),
        any(trial.does_more for trial in trials),
        strays=any(trial.strays for trial in trials),
    )


def _idle(found: set[Idle | None]) -> Idle | None:
    """What holds of an order that is drawn, or of all ways where none is."""
    for each in (Idle.APART, Idle.LATE):
        if each in found:
            return each
    return Idle.UNUSED if found == {Idle.UNUSED} else None


def _each_option(interpreter: Interpreter, spec: SetUp, seed: int | None) -> Iterator[EpochTrial]:
    """The class as it is, and with each of its flags turned."""
    world = welcoming(interpreter, spec)[0]._replace(drop_last=spec.drops[0])
    spec.seed, spec.seeded = SMALL_NUMBER if seed is None else seed, seed is not None
    plainly = partial(_with, interpreter, spec, world)
    try:
        trial = plainly(None)
        yield trial._replace(idle_by_default=trial.uses and _is_idle_by_default(spec, plainly))
    except OverBudgetError:
        raise
    except (RaisedError, *SILENT):
        if not guess(spec, lambda: plainly(None) is not None):
            return
        yield plainly(None)
    for option in itertools.islice(spec.flags(), MOST_OPTIONS):
        with contextlib.suppress(RaisedError):
            yield plainly(option)


def _is_idle_by_default(
    spec: SetUp, plainly: Callable[[tuple[str, Any] | None], EpochTrial]
) -> bool:
    """Whether a class that takes a seed draws by what no epoch changes while that is not given."""
    if Role.SEED not in spec.roles:
        return False
    given, spec.seed = spec.seed, None
    try:
        trial = plainly(None)
    finally:
        spec.seed = given
    return trial.draws and not trial.uses and not trial.changes


def _with(
    interpreter: Interpreter, spec: SetUp, world: World, option: tuple[str, Any] | None
) -> EpochTrial:
    interpreter.guesses = spec.guesses is not None
    interpreter.restart(world.ranks, 0)
    instance = spec.build(world, 0, option)
    drawn_when_built = bool(interpreter.chance.draws) and interpreter.chance.seeds is not None
    passes = [_pass(interpreter, instance, epoch) for epoch in _EPOCHS]
    first, second, *_ = passes
    later = [(p.trace, p.yielded) for p in passes[1:]]
    built = drawn_when_built and not first.draws and not first.trace
    repeats = (
        not any(p.draws or p.trace for p in passes[1:])
        and all(each == later[0] for each in later)
        and second.yielded == first.yielded
    )
    frozen = repeats and (built or (first.draws > 0 and first.seeded))
    changes = (first.trace, first.yielded) != later[0] or any(each != later[0] for each in later)
    draws = all(p.draws and p.seeded for p in passes)
    kept = tuple(_kept_from(interpreter, instance, passes))
    interpreter.restart(world.ranks, 0)
    fresh = spec.build(world, 0, option)
    other = _pass(interpreter, fresh, _EPOCHS[-1])
    uses = (other.trace, other.yielded) != (first.trace, first.yielded)
    drifts = reorders = False
    if interpreter.mixes_orders and draws:
        again, third = (_pass(interpreter, fresh, _EPOCHS[-1]) for _ in range(2))
        alike = [(p.outcome, p.yielded) for p in (other, again, passes[-1])]
        drifts = any(each != alike[0] for each in alike)
        reorders = other.yielded != again.yielded != third.yielded
    idle = None
    seedings = {tuple(each.values for each in p.idle) for p in passes}
    # A world may be too small for a pass that would draw.
    if len(seedings) == len(passes) and all(p.yielded or p.draws for p in passes):
        drawn = Idle.LATE if all(each.is_late for each in first.idle) else Idle.APART
        idle = drawn if all(p.draws for p in passes) else Idle.UNUSED
    held = frozen and built
    trial = EpochTrial(uses, changes and not frozen, draws, frozen, held, idle, kept)
    lumps = draws and any(one.outcome == after.outcome for one, after in pairwise(passes[:3]))
    keeps_first = repeats and first.draws > 0
    does_more = interpreter.levels_orders and any(p.yielded != first.yielded for p in passes)
    strays = any(p.draws and not p.seeded for p in passes)
    trial = trial._replace(keeps_first=keeps_first, does_more=does_more, strays=strays)
    return trial._replace(lumps=lumps, drifts=drifts, reorders=reorders)


def _pass(interpreter: Interpreter, instance: Instance, epoch: int, *, ends: bool = True) -> _Pass:
    """Set the epoch, and what happens from there to the end of the pass.

    Of one that goes on for ever, what happens in more than an epoch, unless it must end.
    """
    setter = interpreter.method(instance, "set_epoch")
    interpreter.chance.begin()
    carry = [instance] if setter is not None or not interpreter.mixes_orders else held(instance)
    for one in carry:
        if (setter := interpreter.method(one, "set_epoch")) is not None:
            interpreter.call(setter, [epoch], {})
    heard = (*interpreter.chance.trace, *interpreter.chance.said)
    walks: list[tuple[Instance, Any]] = []
    interpreter.watch = lambda iterated: walks.append((iterated, _state(iterated)))
    try:
        yielded = [
            state(item) for item in itertools.islice(interpreter.read(instance), MOST_HANDED_OUT)
        ]
    finally:
        interpreter.watch = None
    if ends and len(yielded) == MOST_HANDED_OUT:
        raise CannotTellError("whether it ends")
    chance = interpreter.chance
    told = all(said is not None for said in chance.said)
    trace = (*chance.trace, *chance.said)
    is_seeded = told and chance.seeds is not None
    idle = tuple(chance.idle)
    return _Pass(trace, idle, chance.draws, yielded, is_seeded, heard, walks, chance.orders)


def held(instance: Instance) -> list[Instance]:
    """The objects that an object keeps in attributes of its own."""
    return [each for each in instance.attributes.values() if isinstance(each, Instance)]


def _kept_from(interpreter: Interpreter, instance: Instance, passes: list[_Pass]) -> Iterator[Held]:
    """What each pass iterates as it was before, though its epoch would change what it gives."""
    for inner in dict.fromkeys(walked for walked, _ in passes[0].walks):
        if inner is instance or interpreter.method(inner, "set_epoch") is None:
            continue
        BUDGET.items(sum(len(p.walks) for p in passes))
        states = [[known for each, known in p.walks if each is inner] for p in passes]
        paths = list(_paths(instance, inner))
        if (
            not paths
            or not all(states)
            or any(known is None or known != states[0][0] for each in states for known in each)
        ):
            continue
        with contextlib.suppress(RaisedError, *SILENT):
            alone = [_pass(interpreter, inner, epoch) for epoch in (1, 2, 1)]
            same = alone[0].trace == alone[2].trace
            drawn = all(p.draws and p.seeded for p in alone)
            # What an object has drawn when it was told looks the same by any seed.
            if alone[0].heard and all(each in passes[1].heard for each in alone[0].heard):
                continue
            if drawn and same and alone[0].trace != alone[1].trace:
                yield Held(paths[0], inner.klass.name, tuple(paths[1:]))


def _state(instance: Instance) -> Any:
    try:
        return state(instance)
    except OverBudgetError:
        raise
    except CannotTellError:
        return None


def _paths(owner: Any, inner: Instance, depth: int = 2) -> Iterator[tuple[str, ...]]:
    """The attributes that lead from an object to one that it holds, perhaps in a list."""
    attributes = owner.attributes if isinstance(owner, Instance) else {}
    for name, value in attributes.items():
        parts = value.values() if isinstance(value, dict) else value
        parts = parts if isinstance(value, (list, tuple, dict)) else [value]
        for part in parts:
            if part is inner:
                yield (name,)
            elif depth and isinstance(part, Instance) and isinstance(part.klass, Klass):
                yield from ((name, *rest) for rest in _paths(part, inner, depth - 1))
