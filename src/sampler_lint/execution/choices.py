"""What a class does when one choice that its constructor offers is made otherwise.

A class is written and tried with its defaults. Another flag, another of the texts that it compares
an argument with, or its place asked of torch instead of given, takes other branches of it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from sampler_lint.execution.budget import BUDGET, MOST_OPTIONS, STEPS_A_LOOK
from sampler_lint.execution.errors import RaisedError
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.execution.passes import SILENT, one_trial
from sampler_lint.execution.set_up import SetUp
from sampler_lint.execution.texts import other_texts
from sampler_lint.execution.trials import guess, hands_out, welcoming
from sampler_lint.execution.worlds import World
from sampler_lint.parameters import FLAGS, Role, role_of
from sampler_lint.syntax.nodes import Class


class Choice(NamedTuple):
    """One argument with another value than the usual one."""

    name: str
    value: Any

    @property
    def story(self) -> str:
        """In words."""
        return f"{self.name}={self.value!r}"


class Unset(NamedTuple):
    """A read of what has no value after some choice, though it has one without it."""

    name: str
    """The attribute of the object, or the local variable."""
    row: int
    col: int
    choice: Choice


def unset(interpreter: Interpreter, cls: Class) -> tuple[Unset, ...]:
    """What a class that works reads before anything has set it, by the choice that leads there."""
    BUDGET.open(STEPS_A_LOOK)
    try:
        spec = SetUp(interpreter, interpreter.class_of(cls))
        worlds = welcoming(interpreter, spec)[1:3]
        works = _works(interpreter, spec, worlds)
        if not works:
            guess(spec, partial(hands_out, interpreter, spec, worlds[0], None))
            works = _works(interpreter, spec, worlds)
    except (RaisedError, *SILENT):
        return ()
    out = []
    for choice in itertools.islice(_choices(spec), MOST_OPTIONS) if works else ():
        found = [*_failing(interpreter, spec, worlds, choice)]
        if len(found) == len(worlds) and len({each[:3] for each in found}) == 1:
            out.append(found[0])
    return () if BUDGET.gone else tuple(out)


def _works(interpreter: Interpreter, spec: SetUp, worlds: tuple[World, ...]) -> bool:
    for world in worlds:
        try:
            trial = one_trial(interpreter, spec, world)
        except SILENT:
            return False
        if trial.raised is not None:
            return False
    return True


def _failing(
    interpreter: Interpreter, spec: SetUp, worlds: tuple[World, ...], choice: Choice
) -> Iterator[Unset]:
    for world in worlds:
        try:
            trial = one_trial(interpreter, spec, world, choice)
        except SILENT:
            return
        unmeasured = (turn.length_raised for turn in trial.turns)
        error = trial.raised or next(filter(None, unmeasured), None)
        read = None if error is None else error.unset
        if read is None:
            return
        yield Unset(*read, choice)


def _choices(spec: SetUp) -> Iterator[Choice]:
    """Every argument that is a flag, or one of a few texts, with another value."""
    for param, default in spec.params:
        value = default.value if isinstance(default, ast.Constant) else None
        role = role_of(param.arg)
        if spec.settled is not None and spec.settled[0] == param.arg and role in FLAGS:
            yield Choice(param.arg, not spec.settled[1])  # it works with the other one only
        elif isinstance(value, bool):
            yield Choice(param.arg, not value)
        elif default is None and role in FLAGS:
            yield Choice(param.arg, role is Role.DROP_LAST)
    yield from (Choice(*other) for other in other_texts(spec))
