"""What statements do."""

from __future__ import annotations

import ast
import builtins
import contextlib
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any

from sampler_lint.execution.budget import BUDGET, MORE_THAN_AN_EPOCH
from sampler_lint.execution.errors import (
    CannotTellError,
    EndlessError,
    OverBudgetError,
    RaisedError,
    WantedError,
)
from sampler_lint.execution.expressions import Expressions
from sampler_lint.execution.managers import Manager, is_manager, manager_of
from sampler_lint.execution.state import state
from sampler_lint.execution.values import (
    UNKNOWN,
    Bound,
    Data,
    Fn,
    Frame,
    Given,
    Klass,
    last_name,
)

#: How a statement leaves its block: None where the next one follows, the value in a tuple where it
#: returns.
Leaving = Any
_BREAK, _CONTINUE = object(), object()
#: What a statement yields on its way, and then how it leaves its block.
Steps = Generator[Any, None, Leaving]
#: What makes context managers that are run.
_FOLLOWED = (Bound, Fn, Klass)


class Statements(Expressions):
    """Executes statements: generators of what they yield, which return how they leave."""

    stands_in: bool
    skips: Callable[[ast.stmt, Frame, CannotTellError], bool] | None = None
    """Whether to go on behind a statement that cannot be followed; it never is unless given."""

    def block(self, body: list[ast.stmt], frame: Frame) -> Steps:
        """Execute statements one by one."""
        for stmt in body:
            BUDGET.left -= 1
            if BUDGET.left < 0:
                BUDGET.over()
            kind: type[ast.AST] = type(stmt)
            if type(stmt) is ast.Expr and type(stmt.value) in _COMPOUND:
                kind = type(stmt.value)
            try:
                # Most statements yield nothing, and need no generator of their own.
                if kind in _SIMPLE:
                    left = _SIMPLE[kind](self, stmt, frame)
                elif type(stmt) is ast.If:
                    left = yield from self.block(self._chosen(stmt, frame), frame)
                elif kind in _COMPOUND:
                    left = yield from _COMPOUND[kind](self, stmt, frame)
                else:
                    raise CannotTellError(kind.__name__)
            except CannotTellError as error:
                if self.skips is None or not self.skips(stmt, frame, error):
                    raise
            else:
                if left is not None:
                    return left
        return None

    def execute(self, body: list[ast.stmt], frame: Frame) -> Leaving:
        """The same for statements that yield nothing; how they leave the block."""
        try:
            next(self.block(body, frame))
        except StopIteration as end:
            return end.value
        raise CannotTellError("what it yields")

    def _yield(self, stmt: ast.Expr, frame: Frame) -> Steps:
        assert isinstance(stmt.value, ast.Yield)
        value = stmt.value.value
        yield None if value is None else self.value(value, frame)

    def _yield_from(self, stmt: ast.Expr, frame: Frame) -> Steps:
        assert isinstance(stmt.value, ast.YieldFrom)
        yield from self.iterate(self.value(stmt.value.value, frame))

    def _with(self, stmt: ast.With, frame: Frame) -> Steps:
        return (yield from self._within(stmt.items, stmt.body, frame))

    def _within(self, items: list[ast.withitem], body: list[ast.stmt], frame: Frame) -> Steps:
        """A block within what the first of several context managers does, and so on."""
        if not items:
            return (yield from self.block(body, frame))
        manager, held = self._entered(items[0], frame)
        if items[0].optional_vars is not None:
            self.assign(items[0].optional_vars, held, frame)
        try:
            left = yield from self._within(items[1:], body, frame)
        except EndlessError:
            raise
        except RaisedError as error:
            if manager is None or not manager.swallows(error):
                raise
            return None
        if manager is not None:
            with self._followed_or_not():
                manager.leave()
        return left

    def _entered(self, item: ast.withitem, frame: Frame) -> tuple[Manager | None, Any]:
        """The context manager of an item, entered, and what it binds, as far as they are known."""
        node = item.context_expr
        with self._followed_or_not():
            callee = self.value(node.func, frame) if isinstance(node, ast.Call) else None
            if callee is None or isinstance(callee, _FOLLOWED) or is_manager(callee):
                manager = manager_of(self, self.value(node, frame))
                if manager is not None:
                    return manager, manager.enter()
        return None, UNKNOWN if item.optional_vars is None else self._held(node, frame)

    @contextlib.contextmanager
    def _followed_or_not(self) -> Iterator[None]:
        """What cannot be followed in it is taken to have no effect, as that of a timer or lock."""
        try:
            yield
        except (OverBudgetError, WantedError):
            raise
        except CannotTellError:
            self.outside += 1

    def _chosen(self, stmt: ast.If, frame: Frame) -> list[ast.stmt]:
        """The block that a test leads to."""
        if isinstance(stmt.body[-1], ast.Raise):
            chosen = self._holds(stmt.test, frame, assumed=False)
        else:
            chosen = self.true(self.value(stmt.test, frame))
        return stmt.body if chosen else stmt.orelse

    def _assign(self, stmt: ast.Assign, frame: Frame) -> None:
        value = self.value(stmt.value, frame)
        for target in stmt.targets:
            self.assign(target, value, frame)

    def _annotated(self, stmt: ast.AnnAssign, frame: Frame) -> None:
        if stmt.value is not None:
            self.assign(stmt.target, self.value(stmt.value, frame), frame)

    def _return(self, stmt: ast.Return, frame: Frame) -> Leaving:
        return (None if stmt.value is None else self.value(stmt.value, frame),)

    def _expression(self, stmt: ast.Expr, frame: Frame) -> None:
        if type(stmt.value) is not ast.Constant and not _logs(stmt.value):
            self.value(stmt.value, frame)

    def _raise(self, stmt: ast.Raise, frame: Frame) -> None:
        raise RaisedError(last_name(stmt.exc) or "Exception", stmt, frame.names)

    def _assert(self, stmt: ast.Assert, frame: Frame) -> None:
        if not self._holds(stmt.test, frame, assumed=True):
            raise RaisedError("AssertionError", stmt, frame.names)

    def _def(self, stmt: ast.FunctionDef, frame: Frame) -> None:
        frame.variables[stmt.name] = self.closure(stmt, frame)

    def _import(self, stmt: ast.Import | ast.ImportFrom, frame: Frame) -> None:
        for alias in stmt.names:
            name = alias.asname or alias.name.split(".")[0]
            frame.variables[name] = frame.names.imported(stmt, name)

    def _delete(self, stmt: ast.Delete, frame: Frame) -> None:
        for target in stmt.targets:
            self.delete(target, frame)

    def _global(self, stmt: ast.Global, frame: Frame) -> None:
        frame.outer = frame.outer.union(stmt.names)

    def _held(self, node: ast.expr, frame: Frame) -> Any:
        """What a ``with`` statement binds: what an argument leads to, else nobody knows."""
        value = self.value(node, frame) if isinstance(node, ast.Call) else UNKNOWN
        is_known = isinstance(value, Given) or (Data.traced and isinstance(value, Data))
        return value if is_known else UNKNOWN

    def _holds(self, test: ast.expr, frame: Frame, *, assumed: bool) -> bool:
        """Whether the test of a guard is true: ``assumed`` where that cannot be told.

        A program is taken to be right: what it checks of its arguments holds, so that the type
        of what stands for one is the type asked for.
        """
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return not self._holds(test.operand, frame, assumed=not assumed)
        if isinstance(test, ast.BoolOp):
            decided = isinstance(test.op, ast.Or)
            for part in test.values:
                if self._holds(part, frame, assumed=assumed) is decided:
                    return decided
            return not decided
        before = self.stands_in
        self.stands_in = False
        try:
            found = self.true(self.value(test, frame))
            return assumed if self.stands_in and isinstance(test, ast.Call) else found
        except (OverBudgetError, WantedError):
            raise
        except CannotTellError:
            self.outside += 1
            return assumed
        finally:
            self.stands_in = before

    def _for(self, stmt: ast.For, frame: Frame) -> Steps:
        for item in self.iterate(self.value(stmt.iter, frame)):
            self.assign(stmt.target, item, frame)
            left = yield from self.block(stmt.body, frame)
            if left is not None and left is not _CONTINUE:
                return None if left is _BREAK else left
        return (yield from self.block(stmt.orelse, frame))

    def _while(self, stmt: ast.While, frame: Frame) -> Steps:
        turns = Turns(self, stmt, frame)
        while self.true(self.value(stmt.test, frame)):
            turns.begin()
            left = yield from self._told(self.block(stmt.body, frame))
            if left is not None and left is not _CONTINUE:
                return None if left is _BREAK else left
        return (yield from self.block(stmt.orelse, frame))

    def _told(self, steps: Steps) -> Steps:
        """The same steps: what is yielded tells that the loop goes on."""
        while True:
            try:
                item = next(steps)
            except StopIteration as end:
                return end.value
            self.outside += 1
            yield item

    def state(self, frame: Frame) -> object:
        """All that the next turn of a loop can depend on; None when that is not known."""
        try:
            return self.outside, state(frame.variables)
        except CannotTellError:
            return None

    def _try(self, stmt: ast.Try, frame: Frame) -> Steps:
        try:
            left = yield from self._tried(stmt, frame)
        except EndlessError:
            raise
        except RaisedError:
            left = yield from self.block(stmt.finalbody, frame)
            if left is None:
                raise
            return left
        return (yield from self.block(stmt.finalbody, frame)) or left

    def _tried(self, stmt: ast.Try, frame: Frame) -> Steps:
        """All of the statement but what is done finally."""
        try:
            left = yield from self.block(stmt.body, frame)
        except EndlessError:
            raise
        except RaisedError as error:
            return (yield from self.block(_handling(stmt, frame, error), frame))
        return left or (yield from self.block(stmt.orelse, frame))

    def _augment(self, stmt: ast.AugAssign, frame: Frame) -> None:
        old = self.value(stmt.target, frame)
        new = self.value(stmt.value, frame)
        if isinstance(old, list) and isinstance(stmt.op, ast.Add):
            old.extend(self.listed(new))
            self.assign(stmt.target, old, frame)
        else:
            self.assign(stmt.target, self.binary(stmt.op, old, new, stmt), frame)


class Turns:
    """Counts the turns of a ``while`` loop, and ends one that goes on for ever."""

    def __init__(self, run: Statements, stmt: ast.While, frame: Frame) -> None:
        self._run, self._stmt, self._frame = run, stmt, frame
        self._turns, self._look = 0, MORE_THAN_AN_EPOCH
        self._before: object = None

    def begin(self) -> None:
        """Begin another.

        Raises:
            EndlessError: the one before has left everything as it was.
        """
        BUDGET.step()
        self._turns += 1
        if self._turns > self._look:
            now = self._run.state(self._frame)
            if now is not None and now == self._before:
                raise EndlessError("", self._stmt, self._frame.names)
            self._before = now
            if self._turns == self._look + 2:
                # To look takes longer than a turn: do so ever more rarely.
                self._look, self._before = 2 * self._turns, None


def _handling(stmt: ast.Try, frame: Frame, error: RaisedError) -> list[ast.stmt]:
    """What a statement does about an error.

    Raises:
        RaisedError: that error, if nothing.
    """
    for handler in stmt.handlers:
        if _catches(handler, error.kind):
            if handler.name:
                frame.variables[handler.name] = UNKNOWN
            return handler.body
    raise error


#: What may yield, or has blocks.
_COMPOUND: dict[type[ast.AST], Callable[[Any, Any, Frame], Steps]] = {
    ast.Yield: Statements._yield,
    ast.YieldFrom: Statements._yield_from,
    ast.For: Statements._for,
    ast.While: Statements._while,
    ast.Try: Statements._try,
    ast.With: Statements._with,
}
_SIMPLE: dict[type[ast.AST], Callable[[Any, Any, Frame], Leaving]] = {
    ast.Assign: Statements._assign,
    ast.AnnAssign: Statements._annotated,
    ast.Return: Statements._return,
    ast.Expr: Statements._expression,
    ast.Break: lambda run, stmt, frame: _BREAK,
    ast.Continue: lambda run, stmt, frame: _CONTINUE,
    ast.Pass: lambda run, stmt, frame: None,
    ast.AugAssign: Statements._augment,
    ast.Raise: Statements._raise,
    ast.Assert: Statements._assert,
    ast.FunctionDef: Statements._def,
    ast.Import: Statements._import,
    ast.ImportFrom: Statements._import,
    ast.Delete: Statements._delete,
    ast.Global: Statements._global,
}

_LOGGER = re.compile(r"^_*(rank_?zero_?|module_?)?log(ger|ging)?$", re.IGNORECASE)

_LEVELS = frozenset({"debug", "info", "warning", "warn", "error", "exception", "log"})


def _logs(node: ast.expr) -> bool:
    """Whether a statement writes to a log, whoever made the logger."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    if node.func.attr not in _LEVELS:
        return False
    owner = node.func.value
    name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
    return _LOGGER.match(name) is not None


def _catches(handler: ast.ExceptHandler, kind: str) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {last_name(item) for item in kinds}
    raised = getattr(builtins, kind, Exception)
    return not names.isdisjoint({kind, *(base.__name__ for base in raised.__mro__)})
