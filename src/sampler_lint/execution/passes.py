"""Builds a class on each rank of a small world, passes over it, and notes what comes of it."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sampler_lint.execution.budget import BUDGET, MOST_HANDED_OUT
from sampler_lint.execution.errors import CannotTellError, GoesOnError, OverBudgetError, RaisedError
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.execution.outcomes import Trial, Turn
from sampler_lint.execution.set_up import SetUp
from sampler_lint.execution.stand_ins import is_sequence
from sampler_lint.execution.values import Bound, Data, Fn, Instance, Lost
from sampler_lint.execution.worlds import World

#: What the interpreter raises for a program it cannot follow, or that fails in its own hands.
SILENT = (
    CannotTellError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,  # RecursionError too
    TypeError,
    ValueError,
)

#: Worlds that divide evenly.
EVEN = (World(16, 2, 4), World(24, 3, 2), World(24, 2, 4))


def each(
    interpreter: Interpreter,
    spec: SetUp,
    worlds: tuple[World, ...],
    option: tuple[str, Any] | None = None,
) -> Iterator[Trial]:
    """The worlds that it can be tried in."""
    for world in worlds:
        with contextlib.suppress(*SILENT):
            yield one_trial(interpreter, spec, world, option)


def one_trial(
    interpreter: Interpreter, spec: SetUp, world: World, option: tuple[str, Any] | None = None
) -> Trial:
    """What each rank of a world does, with one optional argument given or none."""
    try:
        return _of_all_ranks(interpreter, spec, world, option)
    except RecursionError:
        # As with too many steps: what gets so deep in one world gets there in the others.
        raise OverBudgetError("it nests calls too deeply") from None


def _of_all_ranks(
    interpreter: Interpreter, spec: SetUp, world: World, option: tuple[str, Any] | None
) -> Trial:
    turns: list[Turn] = []
    lost: list[Lost] = []
    refused, told = None, (0, 0)
    interpreter.guesses = spec.guesses is not None
    before, interpreter.asked_place = interpreter.asked_place, False
    try:
        for rank in range(world.ranks):
            has_own = spec.tells_rank or interpreter.tries_orders
            is_alike = rank and not (interpreter.asked_place or has_own)
            if is_alike and BUDGET.again(BUDGET.used):
                # No rank can do anything else than the one before.
                Data.asked, Data.asked_of_all = Data.asked + told[0], Data.asked_of_all + told[1]
                turns.append(replace(turns[0], rank=rank))
                lost += lost[: len(lost) // rank]
                continue
            interpreter.restart(world.ranks, rank)
            asked = Data.asked, Data.asked_of_all
            try:
                instance = spec.build(world, rank, option)
            except RaisedError as error:
                refused = error.bare()
                break
            lost += filter(spec.is_taken_over, instance.lost)
            most = spec.shortened(world)
            turns.append(turn_of(interpreter, instance, rank, asked, most))
            told = Data.asked - asked[0], Data.asked_of_all - asked[1]
    finally:
        interpreter.asked_place = interpreter.asked_place or before
    both = [spec.settled] if option == spec.settled else [spec.settled, option]
    given = [part for part in both if part is not None and part[0] != "drop_last"]
    also = [*(f"{name}={value}" for name, value in given), *spec.guessed]
    if spec.around_shard:
        also.insert(0, "around a DistributedSampler")
    story = ", ".join(also)
    has_batch_size = spec.takes_batch_size and not any(value is None for _, value in given)
    takes = has_batch_size, spec.takes_drop_last
    parts_guessed = any("." in name for name in spec.guesses or ())
    walked = any(map(is_sequence, (spec.guesses or {}).values()))
    return Trial(world, tuple(turns), *takes, refused, story, tuple(lost), parts_guessed, walked)


def turn_of(
    interpreter: Interpreter,
    instance: Instance,
    rank: int,
    asked: tuple[int, int],
    most: int | None = None,
) -> Turn:
    """What an object on a rank says and yields; of one that goes on, the first so many."""
    length, length_raised = length_of(interpreter, instance)
    yielded, raised = _pass(interpreter, instance, most)
    setter = instance.klass.found("set_epoch")
    if raised is not None and isinstance(setter, Fn) and not yielded and _refuses(raised):
        with contextlib.suppress(RaisedError):
            interpreter.call(Bound(setter, instance), [0], {})  # as its loop does
            length, _ = length_of(interpreter, instance)
            yielded, raised = _pass(interpreter, instance, most)
    later, _ = length_of(interpreter, instance)
    outcome = None if raised else tuple(yielded)
    seeds = interpreter.chance.seeds
    goes_on = most is not None and len(yielded) == most
    of_all = Data.asked_of_all - asked[1]
    of_samples = Data.asked - asked[0] - of_all
    from_data = of_all + of_samples > 0, of_all > 0 and of_samples > 0
    numbers = tuple((k, v) for k, v in instance.attributes.items() if type(v) is int)
    how = (*from_data, seeds, goes_on, length_raised, numbers)
    return Turn(rank, outcome, length, later, raised, *how)


def _pass(
    interpreter: Interpreter, instance: Instance, most: int | None
) -> tuple[list[Any], RaisedError | None]:
    """What the object yields, up to so many, and what ends that before its end."""
    yielded: list[Any] = []
    try:
        for item in interpreter.iterate(instance):
            # A batch may be cleared by who yielded it.
            yielded.append(list(item) if isinstance(item, list) else item)
            if len(yielded) > MOST_HANDED_OUT:
                raise GoesOnError("whether it ends")
            if len(yielded) == most:
                break
    except RaisedError as error:
        return yielded, error.bare()
    return yielded, None


def _refuses(error: RaisedError) -> bool:
    """Whether it checks how it is used, or reads what is set first by who uses it."""
    return isinstance(error.node, (ast.Assert, ast.Raise)) or error.kind == "AttributeError"


def length_of(
    interpreter: Interpreter, instance: Instance
) -> tuple[int | None, RaisedError | None]:
    """What ``len()`` says, or what it raises."""
    if instance.klass.found("__len__") is None:
        return None, None  # what a base outside the tree says, nobody knows
    try:
        return interpreter.length(instance), None
    except RaisedError as error:
        return None, error.bare()
