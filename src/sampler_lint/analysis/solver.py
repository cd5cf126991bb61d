"""Variables that take values from one another, until nothing more comes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice

from sampler_lint.analysis.values import TOO_MANY, TOO_MUCH, Value, Values
from sampler_lint.limits import FEW_VALUES, MOST_STEPS, MOST_VALUES


class Var:
    """A growing set of values and what depends on it."""

    __slots__ = ("answer", "sinks", "values")

    def __init__(self) -> None:
        self.values: tuple[Value, ...] | dict[Value, None] = ()
        """In the order in which they came; most variables have one or two."""
        self.sinks: list[Var | Callable[[Value], None]] = []
        """What is told of each value: a variable takes it."""
        self.answer: Values | None = None
        """``values``, if somebody has asked since the last one came."""


class Solver:
    """Finds the values of variables, each of which starts when it is first asked for."""

    def __init__(self) -> None:
        self._vars: dict[object, Var] = {}
        self._queue: deque[tuple[Var, Value]] = deque()
        self._starts: deque[Callable[[], None]] = deque()
        self._late: deque[Callable[[], None]] = deque()
        """What is asked once nothing else is left to do: has anybody called this function?"""
        self._steps = 0
        self._before = 0
        """How many variables earlier questions had made."""
        self._solving = False
        self._nested = 0
        self._given_up = 0

    @property
    def limits_met(self) -> dict[str, int]:
        """How often each limit was met, by what was given up."""
        many = sum(len(var.values) > MOST_VALUES for var in {*self._vars.values()})
        return {
            f"questions of more than {MOST_STEPS} steps": self._given_up,
            f"expressions with more than {MOST_VALUES} values": many,
        }

    def _solve(self, var: Var) -> Values:
        """The variable's values; inside the solver, those found so far."""
        if not self._solving and (self._starts or self._queue or self._late):
            self._solving = True
            self._steps = 0
            self._before = len(self._vars) - 1
            try:
                self._run()
            finally:
                self._solving = False
        return self._answer(var)

    def _solve_within(self, find: Callable[[], Var]) -> Values:
        """The values of the variable found, also inside the solver."""
        if not self._solving:
            return self._solve(find())
        # A nested question: run the work it adds, leaving the outer queue as it is.
        outer = self._starts, self._queue
        self._starts, self._queue = deque(), deque()
        self._nested += 1
        try:
            var = find()
            self._run()
            return self._answer(var)
        finally:
            self._nested -= 1
            inner = self._starts, self._queue
            self._starts, self._queue = outer
            self._starts.extend(inner[0])
            self._queue.extend(inner[1])

    def _answer(self, var: Var) -> Values:
        if var.answer is None:
            var.answer = Values(var.values)
        return var.answer

    def _run(self) -> None:
        while self._starts or self._queue or (self._late and not self._nested):
            if not self._starts and not self._queue:
                self._late.popleft()()
            elif self._queue:
                var, value = self._queue.popleft()
                self._steps += 1
                for sink in tuple(var.sinks):
                    if not isinstance(sink, Var):
                        sink(value)
                    elif len(sink.values) <= MOST_VALUES and value not in sink.values:
                        self._add(sink, value)
            else:
                self._starts.popleft()()
            if self._steps > MOST_STEPS:
                # Give up on this question: what it was still finding out is not all there is.
                self._given_up += 1
                for open_var in islice(self._vars.values(), self._before, None):
                    self._add(open_var, TOO_MUCH)
                self._starts.clear()
                self._queue.clear()
                self._late.clear()
                return

    def _get(self, key: object, start: Callable[[Var], None]) -> Var:
        """The variable of a key; ``start`` gives a new one its first values."""
        var = self._vars.get(key)
        if var is None:
            var = self._vars[key] = Var()
            self._starts.append(partial(start, var))
        return var

    def _add(self, var: Var, value: Value) -> None:
        values = var.values
        if value in values:
            return
        if len(values) >= MOST_VALUES:
            if TOO_MANY in values:
                return
            value = TOO_MANY
        if isinstance(values, dict):
            values[value] = None
        elif len(values) < FEW_VALUES:
            var.values = (*values, value)
        else:
            var.values = dict.fromkeys((*values, value))
        var.answer = None
        if var.sinks:
            self._queue.append((var, value))

    def _on(self, var: Var, sink: Callable[[Value], None]) -> None:
        """Tell ``sink`` each value of a variable, now and later."""
        var.sinks.append(sink)
        for value in tuple(var.values):
            sink(value)

    def _flow(self, source: Var, target: Var) -> None:
        """Let one variable have the values of another, too."""
        if source is not target:
            source.sinks.append(target)
            for value in tuple(source.values):
                self._add(target, value)
