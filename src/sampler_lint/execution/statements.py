"""What statements do."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from typing import Any

from sampler_lint.execution.budget import (
    BUDGET,
    MORE_THAN_AN_EPOCH,
)
from sampler_lint.execution.errors import (
    CannotTellError,
    EndlessError,
    OverBudgetError,
    RaisedError,
    WantedError,
)
from sampler_lint.execution.expressions import Expressions
from sampler_lint.execution.state import state
from sampler_lint.execution.values import (
    UNKNOWN,
    Data,
    Frame,
    Given,
    last_name,
)


class Break(Exception):  # noqa: N818 - control flow
    """``break``, on its way to its loop."""


class Continue(Exception):  # noqa: N818 - control flow
    """``continue``, on its way to its loop."""


class Return(Exception):  # noqa: N818 - control flow
    """``return``, on its way to the call."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Statements(Expressions):
    """Executes statements: generators of what they yield."""

    stands_in: bool
    skips: Callable[[ast.stmt, Frame, CannotTellError], bool] | None = None
    """Whether to go on behind a statement that cannot be followed; it never is unless given."""

    def block(self, body: list[ast.stmt], frame: Frame) -> Iterator[Any]:
        """Execute statements one by one."""
        for stmt in body:
            BUDGET.left -= 1
            if BUDGET.left < 0:
                BUDGET.over()
            try:
                # Most statements yield nothing, and need no generator of their own.
                if isinstance(stmt, ast.If):
                    yield from self.block(self._chosen(stmt, frame), frame)
                elif (simple := _SIMPLE.get(type(stmt))) is not None:
                    simple(self, stmt, frame)
                elif isinstance(stmt, ast.Expr) and type(stmt.value) not in _YIELDS:
                    self._expression(stmt.value, frame)
                else:
                    yield from self._compound(stmt, frame)
            except CannotTellError as error:
                if self.skips is None or not self.skips(stmt, frame, error):
                    raise

    def _compound(self, stmt: ast.stmt, frame: Frame) -> Iterator[Any]:
        """A statement that may yield."""
        if isinstance(stmt, ast.Expr):
            if isinstance(stmt.value, ast.Yield):
                value = stmt.value.value
                yield None if value is None else self.value(value, frame)
            elif isinstance(stmt.value, ast.YieldFrom):
                yield from self.iterate(self.value(stmt.value.value, frame))
        elif isinstance(stmt, ast.For):
            yield from self._for(stmt, frame)
        elif isinstance(stmt, ast.While):
            yield from self._while(stmt, frame)
        elif isinstance(stmt, ast.Try):
            yield from self._try(stmt, frame)
        elif isinstance(stmt, ast.With):
            for item in stmt.items:
                if item.optional_vars is not None:
                    held = self._held(item.context_expr, frame)
                    self.assign(item.optional_vars, held, frame)
            yield from self.block(stmt.body, frame)
        else:
            raise CannotTellError(type(stmt).__name__)

    def _chosen(self, stmt: ast.If, frame: Frame) -> list[ast.stmt]:
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

    def _return(self, stmt: ast.Return, frame: Frame) -> None:
        raise Return(None if stmt.value is None else self.value(stmt.value, frame))

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

    def _break(self, stmt: ast.Break, frame: Frame) -> None:
        raise Break

    def _continue(self, stmt: ast.Continue, frame: Frame) -> None:
        raise Continue

    def _global(self, stmt: ast.Global, frame: Frame) -> None:
        frame.outer = frame.outer.union(stmt.names)

    def _pass(self, stmt: ast.Pass, frame: Frame) -> None:
        pass

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

    def _expression(self, node: ast.expr, frame: Frame) -> None:
        if not (isinstance(node, ast.Constant) or _logs(node)):
            self.value(node, frame)

    def _for(self, stmt: ast.For, frame: Frame) -> Iterator[Any]:
        for item in self.iterate(self.value(stmt.iter, frame)):
            self.assign(stmt.target, item, frame)
            try:
                yield from self.block(stmt.body, frame)
            except Continue:
                continue
            except Break:
                return
        yield from self.block(stmt.orelse, frame)

    def _while(self, stmt: ast.While, frame: Frame) -> Iterator[Any]:
        turns, look = 0, MORE_THAN_AN_EPOCH
        before: object = None
        while self.true(self.value(stmt.test, frame)):
            BUDGET.step()
            turns += 1
            if turns > look:
                now = self._state(frame)
                if now is not None and now == before:
                    raise EndlessError("", stmt, frame.names)
                before = now
                if turns == look + 2:  # to look takes longer than a turn: do so ever more rarely
                    look, before = 2 * turns, None
            try:
                for item in self.block(stmt.body, frame):
                    self.outside += 1
                    yield item
            except Continue:
                continue
            except Break:
                return
        yield from self.block(stmt.orelse, frame)

    def _state(self, frame: Frame) -> object:
        """All that the next turn of a loop can depend on; None when that is not known."""
        try:
            return self.outside, state(frame.variables)
        except CannotTellError:
            return None

    def _try(self, stmt: ast.Try, frame: Frame) -> Iterator[Any]:
        try:
            yield from self._tried(stmt, frame)
        except EndlessError:
            raise
        except (RaisedError, Return, Break, Continue):
            yield from self.block(stmt.finalbody, frame)
            raise
        yield from self.block(stmt.finalbody, frame)

    def _tried(self, stmt: ast.Try, frame: Frame) -> Iterator[Any]:
        """All of the statement but what is done finally."""
        try:
            yield from self.block(stmt.body, frame)
        except EndlessError:
            raise
        except RaisedError as error:
            for handler in stmt.handlers:
                if _catches(handler, error.kind):
                    if handler.name:
                        frame.variables[handler.name] = UNKNOWN
                    yield from self.block(handler.body, frame)
                    break
            else:
                raise
        else:
            yield from self.block(stmt.orelse, frame)

    def _augment(self, stmt: ast.AugAssign, frame: Frame) -> None:
        old = self.value(stmt.target, frame)
        new = self.value(stmt.value, frame)
        if isinstance(old, list) and isinstance(stmt.op, ast.Add):
            old.extend(self.listed(new))
            self.assign(stmt.target, old, frame)
        else:
            self.assign(stmt.target, self.binary(stmt.op, old, new, stmt), frame)


_YIELDS = (ast.Yield, ast.YieldFrom)
_SIMPLE: dict[type[ast.AST], Callable[[Any, Any, Frame], None]] = {
    ast.Assign: Statements._assign,
    ast.AnnAssign: Statements._annotated,
    ast.AugAssign: Statements._augment,
    ast.Return: Statements._return,
    ast.Raise: Statements._raise,
    ast.Assert: Statements._assert,
    ast.FunctionDef: Statements._def,
    ast.Import: Statements._import,
    ast.ImportFrom: Statements._import,
    ast.Delete: Statements._delete,
    ast.Break: Statements._break,
    ast.Continue: Statements._continue,
    ast.Global: Statements._global,
    ast.Pass: Statements._pass,
}

_LOGGER = re.compile(r"^_*(rank_?zero_?|module_?)?log(ger|ging)?$", re.IGNORECASE)

_LEVELS = frozenset({"debug", "info", "warning", "warn", "error", "exception", "log"})


def _logs(node: ast.expr) -> bool:
    """Whether a statement writes to a log, whoever made the logger."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    owner = node.func.value
    name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
    return node.func.attr in _LEVELS and _LOGGER.match(name) is not None


def _catches(handler: ast.ExceptHandler, kind: str) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {last_name(item) for item in kinds}
    raised = getattr(builtins, kind, Exception)
    return not names.isdisjoint({kind, *(base.__name__ for base in raised.__mro__)})
