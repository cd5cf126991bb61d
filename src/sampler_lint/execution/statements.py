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
from sampler_lint.execution.expressions import Code, Expressions, prepared, prepared_target
from sampler_lint.execution.state import state
from sampler_lint.execution.values import (
    UNKNOWN,
    Data,
    Frame,
    Given,
    last_name,
)
from sampler_lint.syntax.parse import child_nodes


class Break(Exception):  # noqa: N818 - control flow
    """``break``, on its way to its loop."""


class Continue(Exception):  # noqa: N818 - control flow
    """``continue``, on its way to its loop."""


class Return(Exception):  # noqa: N818 - control flow
    """``return``, on its way to the call."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


#: How a statement leaves its block: None where the next one follows, the value in a tuple where it
#: returns.
Leaving = Any
_BREAK, _CONTINUE = Break(), Continue()


class Statements(Expressions):
    """Executes statements: as a generator of what they yield, or plainly where none can."""

    stands_in: bool
    skips: Callable[[ast.stmt, Frame, CannotTellError], bool] | None = None
    """Whether to go on behind a statement that cannot be followed; it never is unless given."""

    def block(self, body: list[ast.stmt], frame: Frame) -> Iterator[Any]:
        """Execute statements one by one."""
        for stmt in body:
            BUDGET.left -= 1
            if BUDGET.left < 0:
                BUDGET.over()
            code = self.codes.get(stmt)
            if code is None:
                code = self.codes[stmt] = _statement(stmt)
            try:
                # Most statements yield nothing, and need no generator of their own.
                if code is not _yielding:
                    _leave(code(self, frame))
                elif isinstance(stmt, ast.If):
                    yield from self.block(self.chosen(stmt, frame), frame)
                else:
                    yield from self._compound(stmt, frame)
            except CannotTellError as error:
                if self.skips is None or not self.skips(stmt, frame, error):
                    raise

    def execute(self, body: list[ast.stmt], frame: Frame) -> Leaving:
        """The same for statements that yield nothing; how they leave the block."""
        for stmt in body:
            BUDGET.left -= 1
            if BUDGET.left < 0:
                BUDGET.over()
            code = self.codes.get(stmt)
            if code is None:
                code = self.codes[stmt] = _statement(stmt)
            try:
                left = code(self, frame)
            except CannotTellError as error:
                if self.skips is None or not self.skips(stmt, frame, error):
                    raise
            else:
                if left is not None:
                    return left
        return None

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
            self.enter(stmt, frame)
            yield from self.block(stmt.body, frame)

    def enter(self, stmt: ast.With, frame: Frame) -> None:
        """What a ``with`` statement does before its body."""
        for item in stmt.items:
            if item.optional_vars is not None:
                held = self._held(item.context_expr, frame)
                self.assign(item.optional_vars, held, frame)

    def chosen(self, stmt: ast.If, frame: Frame) -> list[ast.stmt]:
        """The block that a test leads to."""
        if isinstance(stmt.body[-1], ast.Raise):
            chosen = self._holds(stmt.test, frame, assumed=False)
        else:
            chosen = self.true(self.value(stmt.test, frame))
        return stmt.body if chosen else stmt.orelse

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
        turns = Turns(self, stmt, frame)
        while self.true(self.value(stmt.test, frame)):
            turns.begin()
            try:
                for item in self.block(stmt.body, frame):
                    self.outside += 1
                    yield item
            except Continue:
                continue
            except Break:
                return
        yield from self.block(stmt.orelse, frame)

    def state(self, frame: Frame) -> object:
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
            yield from self.block(_handling(stmt, frame, error), frame)
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


def _leave(left: Leaving) -> None:
    """Leave a generator as a statement left its block."""
    if left is not None:
        raise Return(left[0]) if type(left) is tuple else type(left)


# -- what statements do


def _statement(stmt: ast.stmt) -> Code:
    """What a statement does, and how it leaves its block; :func:`_yielding` where it may yield."""
    is_yield = isinstance(stmt, ast.Expr) and isinstance(stmt.value, _YIELDS)
    if is_yield or (
        isinstance(stmt, _MAY_YIELD) and any(isinstance(each, _YIELDS) for each in _inside(stmt))
    ):
        return _yielding
    prepare = _STATEMENTS.get(type(stmt))
    if prepare is not None:
        return prepare(stmt)
    simple: Callable[..., Any] = _SIMPLE.get(type(stmt), _unknown)

    def code(run: Any, frame: Frame) -> None:
        simple(run, stmt, frame)

    return code


def _unknown(run: Any, stmt: ast.stmt, frame: Frame) -> None:
    raise CannotTellError(type(stmt).__name__)


def _yielding(run: Any, frame: Frame) -> Leaving:
    """A statement that may yield stands for itself."""
    raise CannotTellError("what it yields")


def _inside(stmt: ast.stmt) -> Iterator[ast.AST]:
    """The statement and what is in it, without the functions that it makes."""
    todo: list[ast.AST] = [stmt]
    while todo:
        node = todo.pop()
        yield node
        todo += (
            child
            for child in child_nodes(node)
            if not isinstance(child, (ast.FunctionDef, ast.Lambda, ast.ClassDef))
        )


def _assign(stmt: ast.Assign) -> Code:
    value_of, targets = prepared(stmt.value), [*map(prepared_target, stmt.targets)]

    def code(run: Any, frame: Frame) -> None:
        value = value_of(run, frame)
        for assign in targets:
            assign(run, value, frame)

    return code


def _annotated(stmt: ast.AnnAssign) -> Code:
    if stmt.value is None:
        return _pass
    value_of, assign = prepared(stmt.value), prepared_target(stmt.target)
    return lambda run, frame: assign(run, value_of(run, frame), frame)


def _return(stmt: ast.Return) -> Code:
    if stmt.value is None:
        return lambda run, frame: (None,)
    value_of = prepared(stmt.value)
    return lambda run, frame: (value_of(run, frame),)


def _expression(stmt: ast.Expr) -> Code:
    if isinstance(stmt.value, ast.Constant) or _logs(stmt.value):
        return _pass
    value_of = prepared(stmt.value)

    def code(run: Any, frame: Frame) -> None:
        value_of(run, frame)

    return code


def _pass(run: Any, frame: Frame) -> None:
    pass


def _if(stmt: ast.If) -> Code:
    if isinstance(stmt.body[-1], ast.Raise):
        return lambda run, frame: run.execute(run.chosen(stmt, frame), frame)
    test, body, orelse = prepared(stmt.test), stmt.body, stmt.orelse
    return lambda run, frame: run.execute(body if run.true(test(run, frame)) else orelse, frame)


def _for(stmt: ast.For) -> Code:
    items_of, assign, body = prepared(stmt.iter), prepared_target(stmt.target), stmt.body

    def code(run: Any, frame: Frame) -> Leaving:
        for item in run.iterate(items_of(run, frame)):
            assign(run, item, frame)
            left = run.execute(body, frame)
            if left is not None and left is not _CONTINUE:
                return None if left is _BREAK else left
        return run.execute(stmt.orelse, frame)

    return code


def _while(stmt: ast.While) -> Code:
    test, body = prepared(stmt.test), stmt.body

    def code(run: Any, frame: Frame) -> Leaving:
        turns = Turns(run, stmt, frame)
        while run.true(test(run, frame)):
            turns.begin()
            left = run.execute(body, frame)
            if left is not None and left is not _CONTINUE:
                return None if left is _BREAK else left
        return run.execute(stmt.orelse, frame)

    return code


def _try(stmt: ast.Try) -> Code:
    def tried(run: Any, frame: Frame) -> Leaving:
        try:
            left = run.execute(stmt.body, frame)
        except EndlessError:
            raise
        except RaisedError as error:
            return run.execute(_handling(stmt, frame, error), frame)
        return left or run.execute(stmt.orelse, frame)

    def code(run: Any, frame: Frame) -> Leaving:
        try:
            left = tried(run, frame)
        except EndlessError:
            raise
        except RaisedError:
            left = run.execute(stmt.finalbody, frame)
            if left is None:
                raise
            return left
        return run.execute(stmt.finalbody, frame) or left

    return code


def _with(stmt: ast.With) -> Code:
    def code(run: Any, frame: Frame) -> Leaving:
        run.enter(stmt, frame)
        return run.execute(stmt.body, frame)

    return code


_YIELDS = (ast.Yield, ast.YieldFrom)
#: Other statements with a ``yield`` in them are not followed.
_MAY_YIELD = (ast.For, ast.While, ast.Try, ast.With, ast.If)
_STATEMENTS: dict[type[ast.stmt], Callable[[Any], Code]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.Return: _return,
    ast.Expr: _expression,
    ast.If: _if,
    ast.For: _for,
    ast.While: _while,
    ast.Try: _try,
    ast.With: _with,
    ast.Break: lambda stmt: lambda run, frame: _BREAK,
    ast.Continue: lambda stmt: lambda run, frame: _CONTINUE,
    ast.Pass: lambda stmt: _pass,
}
_SIMPLE: dict[type[ast.AST], Callable[[Any, Any, Frame], None]] = {
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
