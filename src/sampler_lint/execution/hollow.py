"""Lengths of classes that cannot be followed as a whole.

A statement that cannot be followed, and neither yields nor leaves its block, leaves what it may
have stored open: that is taken for whatever it is used as. Where ``__len__`` and ``__iter__`` rest
on the same, the one tells whether it counts what the other yields, whatever that may hold.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from sampler_lint.execution.budget import BUDGET, MOST_HANDED_OUT, STEPS_A_LOOK
from sampler_lint.execution.errors import (
    CannotTellError,
    GoesOnError,
    OverBudgetError,
    RaisedError,
    WantedError,
)
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.execution.passes import EVEN, SILENT
from sampler_lint.execution.set_up import SetUp
from sampler_lint.execution.slices import steps_of
from sampler_lint.execution.stand_ins import ITEM, Made, is_number, is_sequence
from sampler_lint.execution.trials import LEFT_OVER, guess
from sampler_lint.execution.values import Array, Fn, Frame, Instance, Klass, given, last_name
from sampler_lint.execution.worlds import World
from sampler_lint.syntax.nodes import Class
from sampler_lint.syntax.parse import all_nodes

#: What a statement does to those behind it, besides storing something.
_LEAVING = (ast.Yield, ast.YieldFrom, ast.Return, ast.Break, ast.Continue)


class Measured(NamedTuple):
    """What is always wrong with a length."""

    attribute: str
    """What is measured and gone through, and left open; empty where nothing is."""
    more: int
    """How much more ``len()`` says than is yielded."""


class _Heard:
    """What stands for what is left open, with what was asked for."""

    def __init__(self, made: Made) -> None:
        self.made = made
        self.asked: set[str] = set()

    def of(self, pattern: str, key: str) -> Any:
        """As :meth:`~.values.StandIns.of` says."""
        self.asked.add(pattern)
        return self.made.of(pattern, key)


def measured(interpreter: Interpreter, cls: Class) -> Measured | None:
    """How a length is wrong by the same number in all worlds, with all that fits the class."""
    BUDGET.open(STEPS_A_LOOK)
    for follows in (True, False):
        try:
            spec = SetUp(interpreter, interpreter.class_of(cls))
            found = _Hollow(interpreter, spec, follows=follows).judged()
        except (RaisedError, *SILENT):
            continue
        if found is not None or BUDGET.gone:
            return found
    return None


class _Hollow:
    def __init__(self, interpreter: Interpreter, spec: SetUp, *, follows: bool) -> None:
        self.interpreter = interpreter
        self.spec = spec
        self.follows = follows
        """Whether the constructor is followed as far as that goes."""
        self._nodes: dict[ast.AST, list[ast.AST]] = {}

    def _all_in(self, code: ast.AST) -> list[ast.AST]:
        """The nodes of code, which many worlds ask for."""
        nodes = self._nodes.get(code)
        if nodes is None:
            nodes = self._nodes[code] = all_nodes(code)
        return nodes

    def judged(self) -> Measured | None:
        """What is wrong in each world, with each of the values that fit."""
        worlds = [world._replace(ranks=1) for world in (*EVEN, *LEFT_OVER)]
        if not guess(self.spec, lambda: self._counted(worlds[0]) is not None):
            return None
        found = []
        for guesses in self._ways():
            self.spec.guesses = guesses
            for world in worlds:
                try:
                    counted = self._counted(world)
                except (RaisedError, *SILENT):
                    continue
                if counted is None:
                    return None
                found.append(counted)
        sizes = {count for count, _, _ in found}
        wrong = {Measured(attribute, length - count) for count, length, attribute in found}
        only = wrong.pop() if len(wrong) == 1 and len(sizes) > 1 else None
        return only if only is not None and only.more else None

    def _ways(self) -> list[dict[str, Any]]:
        """What was found to fit, with other numbers, and with each flag turned."""
        known = self.spec.guesses or {}
        flags = [key for key, value in known.items() if isinstance(value, bool)]
        turned = [{**known, key: not known[key]} for key in flags]
        return [known, self.spec.otherwise(), *turned]

    def _counted(self, world: World) -> tuple[int, int, str] | None:
        """How many are yielded, what ``len()`` says, and the one sequence that both rest on."""
        length, measured = self._asked(world, self.interpreter.length)
        count, walked = self._asked(world, self._count)
        guesses = self.spec.guesses or {}
        of_items = {key for key in walked if ITEM in key}  # they may say what is not yielded
        if any(is_number(guesses.get(key)) for key in of_items) or not count:
            return None
        numbers, counted = (
            {key for key in asked if is_number(guesses.get(key))} for asked in (measured, walked)
        )
        measured, walked = (
            {key for key in asked if is_sequence(guesses.get(key))} for asked in (measured, walked)
        )
        if numbers - counted or measured != walked or len(measured | numbers) > 1:
            return None
        return count, length, "".join(measured | numbers)

    def _asked(self, world: World, question: Callable[[Instance], int]) -> tuple[int, set[str]]:
        """An answer of a new object, and what it rests on of what is left open."""
        self.interpreter.restart(1, 0)
        self.interpreter.guesses = True
        heard = _Heard(Made(self.spec, world))
        instance = Instance(self.spec.klass, made=heard)
        init = self.interpreter.member(self.spec.klass, "__init__")
        if self.follows and isinstance(init, Fn):
            self._begin(instance, init, world, heard)

        def skips(stmt: ast.stmt, frame: Frame, error: CannotTellError) -> bool:
            may_be = type(error) is CannotTellError and not any(
                isinstance(node, _LEAVING) for node in self._all_in(stmt)
            )
            if may_be:
                self._leave_open(stmt, instance, frame, heard)
            return may_be

        self.interpreter.skips = skips
        try:
            return question(instance), heard.asked
        finally:
            self.interpreter.skips = None

    def _begin(self, instance: Instance, init: Fn, world: World, heard: _Heard) -> None:
        """Run the constructor, statement by statement."""
        args, keywords = self.spec.arguments(world, 0)
        frame = self.interpreter.frame(init, [instance, *args], keywords, instance)
        for stmt in getattr(init.node, "body", ()):
            if self._leaves(stmt, instance, frame, heard):
                return

    def _leaves(self, stmt: ast.stmt, instance: Instance, frame: Frame, heard: _Heard) -> bool:
        """Run a statement; whether it leaves, which one that cannot be followed does not."""
        try:
            return self.interpreter.execute([stmt], frame) is not None
        except (OverBudgetError, WantedError):
            raise
        except (RaisedError, *SILENT):
            self._leave_open(stmt, instance, frame, heard)
            return False

    def _leave_open(self, stmt: ast.stmt, instance: Instance, frame: Frame, heard: _Heard) -> None:
        """Forget what a statement that was not followed may have stored or changed."""
        attributes, variables = instance.attributes, frame.variables
        changed: list[Any] = []
        for code in (stmt, *self._called(stmt, instance, set())):
            for node in self._all_in(code):
                if isinstance(node, ast.Attribute):
                    changed.append(attributes.get(node.attr))
                    if isinstance(node.ctx, ast.Store):
                        attributes.pop(node.attr, None)
                elif isinstance(node, ast.Name) and code is stmt:
                    changed.append(variables.get(node.id))
                    if isinstance(node.ctx, ast.Store):
                        variables[node.id] = given(node.id, heard, node.id)
                elif isinstance(node, ast.Call) and any(
                    isinstance(arg, ast.Name) and variables.get(arg.id) is instance
                    for arg in (*node.args, *(keyword.value for keyword in node.keywords))
                ):
                    attributes.clear()
        ids = {id(value) for value in changed if value is not instance and _can_change(value)}
        for name in [name for name, value in attributes.items() if id(value) in ids]:
            del attributes[name]
        for name in [name for name, value in variables.items() if id(value) in ids]:
            variables[name] = given(name, heard, name)

    def _called(self, code: ast.AST, instance: Instance, seen: set[ast.AST]) -> Iterator[ast.AST]:
        """The methods of the object that code may call, and those that they may call."""
        for node in self._all_in(code):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                for klass in instance.klass.mro:
                    found = klass.members.get(last_name(node)) if isinstance(klass, Klass) else None
                    if isinstance(found, Fn) and found.node not in seen:
                        seen.add(found.node)
                        yield found.node
                        yield from self._called(found.node, instance, seen)

    def _methods(self, instance: Instance) -> tuple[ast.AST, ...]:
        """The methods of an object that may run once it is built."""
        return tuple(
            member.node
            for klass in instance.klass.mro
            if isinstance(klass, Klass)
            for name, member in klass.members.items()
            if isinstance(member, Fn) and name != "__init__"
        )

    def _count(self, instance: Instance) -> int:
        method = self.interpreter.method(instance, "__iter__")
        steps = None if method is None else steps_of(method.function.node, self._methods(instance))
        if method is None or steps is None:
            whole = self.interpreter.iterate(instance)
        else:
            only = replace(method.function, node=steps)
            whole = self.interpreter.iterate(self.interpreter.run(only, [instance], {}, instance))
        handed_out = itertools.islice(whole, MOST_HANDED_OUT)
        count = sum(1 for _ in handed_out)
        if count == MOST_HANDED_OUT:
            raise GoesOnError("whether it ends")
        return count


def _can_change(value: Any) -> bool:
    """Whether a value may be changed by who is handed it."""
    return isinstance(value, (list, dict, set, Array, Instance, Iterator))
