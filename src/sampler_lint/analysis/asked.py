"""Which tests are passed on the way to a place, and what of some class they keep away from it."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.calls import Calls
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import ClassRef, Ext, Obj, Value
from sampler_lint.catalog import TORCH_DATA
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import children, expressions, leaves, same
from sampler_lint.syntax.nodes import (
    EQUAL,
    UNEQUAL,
    Attr,
    Call,
    Choice,
    Class,
    Compare,
    Expr,
    If,
    ModuleFacts,
    Name,
    Raise,
    Seq,
    Stmt,
    Unary,
    last_name,
)


def tests(place: Stmt | Call) -> Iterator[tuple[Expr, bool]]:
    """The tests that are passed on the way to a place, with the answers that lead there."""
    stmt = place.stmt if isinstance(place, Call) else place
    if isinstance(place, Call):
        yield from chosen(place)
    for each in chain([stmt], stmt.ancestors()) if stmt is not None else ():
        yield from decided(each)


def chosen(place: Call) -> Iterator[tuple[Expr, bool]]:
    """The tests of the conditional expressions that a call stands in, the innermost first."""
    stmt = place.stmt
    asked = _choices(stmt.scope.module, stmt).get(place) if stmt is not None else None
    while asked is not None:
        yield asked.test, asked.answer
        asked = asked.outer


class _Asked(NamedTuple):
    """A test that decides whether an expression is evaluated, and the one around it."""

    test: Expr
    answer: bool
    outer: _Asked | None


@remembered
def _choices(_: ModuleFacts, stmt: Stmt) -> dict[Call, _Asked]:
    """The calls of a statement that stand in conditional expressions: hundreds may be nested."""
    found: dict[Call, _Asked] = {}
    todo: list[tuple[Expr, _Asked | None]] = [(expr, None) for expr in expressions(stmt)]
    while todo:
        expr, asked = todo.pop()
        if isinstance(expr, Call) and asked is not None:
            found[expr] = asked
        if isinstance(expr, Choice) and expr.kind == "if" and expr.test is not None:
            todo.append((expr.test, asked))
            for answer, option in zip((True, False), expr.options, strict=True):
                todo.append((option, _Asked(expr.test, answer, asked)))
        else:
            todo += ((part, asked) for part in children(expr))
    return found


def decided(stmt: Stmt) -> Iterator[tuple[Expr, bool]]:
    """The test of the ``if`` that a statement is in, and of those before it that may leave."""
    if isinstance(stmt.parent, If):
        yield stmt.parent.test, stmt.block is stmt.parent.body
    known: dict[int, list[If]] = stmt.scope.module.memo.setdefault(decided, {})
    if id(stmt.block) not in known:
        known[id(stmt.block)] = [
            each
            for each in stmt.block
            if isinstance(each, If) and leaves(each.body[-1]) and not each.orelse
        ]
    for each in known[id(stmt.block)]:
        if each.order >= stmt.order:
            return
        yield each.test, False


def apart(one: Iterable[Stmt | Call], other: Iterable[Stmt | Call]) -> bool:
    """Whether some places and some others stand in branches of which a run takes one."""
    there = {asked for place in other for asked in tests(place)}
    return any((test, not answer) in there for place in one for test, answer in tests(place))


def is_kept_out(flow: Calls, place: Stmt | Call, given: Expr, value: Value) -> bool:
    """Whether a test of its class on the way to a place keeps an object away: ``isinstance(…)``.

    Or ``type(…) == …``. ``given`` is what the object reaches the place by. Of a name that is bound
    again between the two, what it then gets has passed no test. What is refused with an error was
    meant to come.
    """
    if not isinstance(value, Obj):
        return False
    for test, answer in map(upright, tests(place)):
        asked = _asks_class(test)
        if asked is None or not same(tested := asked.call.positional[0], given):
            continue
        is_one_of = is_one(flow, value.cls, asked.kinds)
        if asked.is_exact and is_one_of is not False:  # it may be of a subclass
            is_one_of = False if _is_plain(flow, asked.kinds) else None
        if (
            is_one_of is (answer is not asked.is_yes)
            and not _comes_later(flow, tested, given, value)
            and not refuses(asked.call)
        ):
            return True
    return False


class _Asking(NamedTuple):
    """A test for a class."""

    call: Call
    """What is called with the object."""
    kinds: Expr
    is_yes: bool = True
    """Whether the test is true of one of the kinds."""
    is_exact: bool = False


def _asks_class(test: Expr) -> _Asking | None:
    """``isinstance(x, A)``, ``type(x) is A``, ``type(x) != A``."""
    if isinstance(test, Call):
        is_it = last_name(test.func) == "isinstance" and len(test.positional) == 2
        return _Asking(test, test.positional[1]) if is_it else None
    if not isinstance(test, Compare) or len(test.ops) > 1 or test.ops[0] not in EQUAL | UNEQUAL:
        return None
    asked = test.left
    if isinstance(asked, Call) and last_name(asked.func) == "type" and len(asked.positional) == 1:
        return _Asking(asked, test.rights[0], test.ops[0] in EQUAL, is_exact=True)
    return None


def _is_plain(flow: Calls, kind: Expr) -> bool:
    """Whether it is a type of Python's own, which no sampler or loader is of."""
    values = flow.values(kind)
    return bool(values) and all(
        isinstance(value, Ext) and hasattr(builtins, value.dotted) for value in values
    )


def upright(asked: tuple[Expr, bool]) -> tuple[Expr, bool]:
    """A test and its answer without ``not``."""
    test, answer = asked
    while isinstance(test, Unary) and test.op == "Not":
        test, answer = test.operand, not answer
    return test, answer


def refuses(asked: Call | Attr | Name) -> bool:
    """Whether an ``if`` that ends with an error asks it: something else was meant to come."""
    stmt = asked.stmt
    return isinstance(stmt, If) and isinstance(stmt.body[-1], Raise)


def _comes_later(flow: Calls, tested: Expr, given: Expr, value: Value) -> bool:
    """Whether a name has a value from a binding that its test did not see."""
    if not isinstance(tested, Name) or not isinstance(given, Name):
        return False
    seen = definitions(tested.scope, tested)
    return any(
        binding.value is None or value in flow.values(binding.value)
        for binding in definitions(given.scope, given)
        if binding not in seen
    )


def is_one(flow: Calls, cls: Class | str | None, kinds: Expr) -> bool | None:
    """Whether objects of a class are what ``isinstance`` is asked for; None where nobody knows."""
    options = kinds.items if isinstance(kinds, Seq) else [kinds]
    answers = {
        _derives(flow, cls, value) for option in options for value in flow.values(option) or {None}
    }
    return True if True in answers else None if None in answers else False


def _derives(flow: Calls, cls: Class | str | None, kind: Value | None) -> bool | None:
    if cls is None or not isinstance(kind, (ClassRef, Ext)):
        return None
    if isinstance(kind, Ext):
        is_known = kind.dotted.startswith(TORCH_DATA) or catalog.known(kind.dotted) is not None
        found = flow.is_a(cls, catalog.canonical(kind.dotted))
        return found if found or (is_known and _is_followed(flow, cls)) else None
    if isinstance(cls, str):
        return False
    return kind.cls in flow.mro(cls) or (False if _is_followed(flow, cls) else None)


def _is_followed(flow: Calls, cls: Class | str) -> bool:
    """Whether all that a class derives from is of the tree, or of torch or else known."""
    return isinstance(cls, str) or all(
        isinstance(base, Class)
        or (
            isinstance(base, str)
            and (base.startswith(TORCH_DATA) or catalog.known(base) is not None)
        )
        for base in flow.mro(cls)
    )
