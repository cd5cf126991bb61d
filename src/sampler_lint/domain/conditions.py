"""What has to be true where a statement or a call stands, as the code around it asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TypeAlias

from sampler_lint import catalog
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import ClassRef, Ext, FuncRef, Obj, Value
from sampler_lint.catalog import TORCH_DATA
from sampler_lint.domain.concepts import PROCESSES
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import leaves, nodes_in, same, unparse, walk
from sampler_lint.syntax.nodes import (
    EQUAL,
    UNEQUAL,
    Attr,
    Call,
    Choice,
    Class,
    Compare,
    Const,
    Expr,
    Function,
    If,
    Name,
    Seq,
    Stmt,
    Unary,
    dotted,
    last_name,
)

#: A question that has one answer in a run, and the answer.
Condition: TypeAlias = "tuple[object, bool]"


def contradict(model: Model, one: Iterable[Stmt | Call], other: Iterable[Stmt | Call]) -> bool:
    """Whether a question that both places rest on is answered yes at one and no at the other.

    The questions are calls without arguments (``is_distributed()``), which give one answer in a
    run, settings that are spelled alike (``args.distributed``), and how either compares
    (``args.local_rank == -1``, ``dist.get_world_size() > 1``).
    """
    there = frozenset().union(*(conditions(model, place) for place in one))
    if not there:
        return False
    here = frozenset().union(*(conditions(model, place) for place in other))
    return any((question, not answer) in there for question, answer in here)


def excludes(model: Model, through: Call | None, place: Call | None) -> bool:
    """Whether what a call of a factory passes excludes the branch in which a place of it stands."""
    return through is not None and place is not None and _excludes(model, through, place)


def _excludes(
    model: Model, through: Call, place: Stmt | Call, parameters_of: Function | None = None
) -> bool:
    """The same, of the tests that ask for nothing but parameters of a function, if one is given."""
    for test, answer in tests(model, place):
        if parameters_of is not None and not _asks_parameters(test, parameters_of):
            continue  # a setting may come from where nobody sees it
        answers = model.flow.constants(test, through)
        if answers is not None and len(answers) == 1 and bool(next(iter(answers))) != answer:
            return True
    return False


def is_left_out(model: Model, place: Stmt | Call, objects: Iterable[Obj] = ()) -> bool:
    """Whether every call of its function, tests aside, excludes the branch a place stands in.

    Of the calls that pass one of some objects, if any does: the others run for other objects.
    """
    scope = _function_asked(model, place)
    if scope is None:
        return False
    callers = [c for c in model.flow.callers(scope) if not is_test(model.module_of(c.scope))]
    passing = [call for call in callers if _passes(model, call, objects)]
    through = passing or callers
    return bool(through) and all(_excludes(model, call, place, scope) for call in through)


@remembered
def _function_asked(model: Model, place: Stmt | Call) -> Function | None:
    """The function of a place, if a test on the way to it asks nothing but its parameters."""
    stmt = place.stmt if isinstance(place, Call) else place
    scope = stmt.scope if stmt is not None else None
    if isinstance(scope, Function) and any(
        _asks_parameters(test, scope) for test, _ in tests(model, place)
    ):
        return scope
    return None


def _asks_parameters(test: Expr, function: Function) -> bool:
    names = {param.name for param in function.params}
    return all(
        not isinstance(node, (Attr, Call)) and (not isinstance(node, Name) or node.id in names)
        for node in walk(test)
    )


def _passes(model: Model, call: Call, objects: Iterable[Obj]) -> bool:
    return any(
        obj.may_be(value)
        for arg in call.args
        for value in model.flow.values(arg.value)
        for obj in objects
    )


def tests(model: Model, place: Stmt | Call) -> Iterator[tuple[Expr, bool]]:
    """The tests that are passed on the way to a place, with the answers that lead there."""
    stmt = place.stmt if isinstance(place, Call) else place
    if isinstance(place, Call):
        yield from _chosen(model, place)
    for each in chain([stmt], stmt.ancestors()) if stmt is not None else ():
        yield from _decided(model, each)


def _chosen(model: Model, place: Call) -> Iterator[tuple[Expr, bool]]:
    """The tests of the conditional expressions that a call stands in."""
    for choice in _choices(model, place.stmt) if place.stmt is not None else ():
        for answer, option in zip((True, False), choice.options, strict=True):
            if choice.test is not None and any(node is place for node in walk(option)):
                yield choice.test, answer


def conditions(model: Model, place: Stmt | Call) -> frozenset[Condition]:
    """What the branches around a place, and those before it that leave, ask."""
    if not isinstance(place, Call):
        return _around(model, place)
    if place.stmt is None:
        return frozenset()
    return _around(model, place.stmt).union(
        *(_asked(model, test, answer) for test, answer in _chosen(model, place))
    )


def is_kept_out(model: Model, place: Call, given: Expr, value: Value) -> bool:
    """Whether a test of its class on the way to a place keeps an object away: ``isinstance(…)``.

    ``given`` is what the object reaches the place by. Of a name that is bound again between the
    two, what it then gets has passed no test.
    """
    return isinstance(value, Obj) and any(
        is_one(model, value.cls, test.positional[1]) is (not answer)
        and not _comes_later(model, test.positional[0], given, value)
        for test, answer in map(_upright, tests(model, place))
        if isinstance(test, Call)
        and last_name(test.func) == "isinstance"
        and len(test.positional) == 2
        and same(test.positional[0], given)
    )


def _upright(asked: tuple[Expr, bool]) -> tuple[Expr, bool]:
    test, answer = asked
    while isinstance(test, Unary) and test.op == "Not":
        test, answer = test.operand, not answer
    return test, answer


def _comes_later(model: Model, tested: Expr, given: Expr, value: Value) -> bool:
    """Whether a name has a value from a binding that its test did not see."""
    if not isinstance(tested, Name) or not isinstance(given, Name):
        return False
    seen = definitions(tested.scope, tested)
    return any(
        binding.value is None or value in model.flow.values(binding.value)
        for binding in definitions(given.scope, given)
        if binding not in seen
    )


def is_one(model: Model, cls: Class | str | None, kinds: Expr) -> bool | None:
    """Whether objects of a class are what ``isinstance`` is asked for; None where nobody knows."""
    options = kinds.items if isinstance(kinds, Seq) else [kinds]
    answers = {
        _derives(model, cls, value)
        for option in options
        for value in model.flow.values(option) or {None}
    }
    return True if True in answers else None if None in answers else False


def _derives(model: Model, cls: Class | str | None, kind: Value | None) -> bool | None:
    if cls is None or not isinstance(kind, (ClassRef, Ext)):
        return None
    if isinstance(kind, Ext):
        is_known = kind.dotted.startswith(TORCH_DATA) or catalog.known(kind.dotted) is not None
        found = model.flow.is_a(cls, catalog.canonical(kind.dotted))
        return found if found or (is_known and _is_followed(model, cls)) else None
    if isinstance(cls, str):
        return False
    return kind.cls in model.flow.mro(cls) or (False if _is_followed(model, cls) else None)


def _is_followed(model: Model, cls: Class | str) -> bool:
    """Whether all that a class derives from is of the tree, or of torch or else known."""
    return isinstance(cls, str) or all(
        isinstance(base, Class)
        or (
            isinstance(base, str)
            and (base.startswith(TORCH_DATA) or catalog.known(base) is not None)
        )
        for base in model.flow.mro(cls)
    )


@remembered
def _choices(model: Model, stmt: Stmt) -> list[Choice]:
    """The conditional expressions of a statement."""
    return [node for node in nodes_in([stmt]) if isinstance(node, Choice) and node.kind == "if"]


def _around(model: Model, stmt: Stmt) -> frozenset[Condition]:
    known: dict[Stmt | None, frozenset[Condition]] = model.memo.setdefault(
        conditions, {None: frozenset()}
    )
    inner: list[Stmt] = []
    for each in chain([stmt], stmt.ancestors()):
        if each in known:
            break
        inner.append(each)
    for each in reversed(inner):
        around = each.parent
        asked = {
            condition
            for test, answer in _decided(model, each)
            for condition in _asked(model, test, answer)
        }
        known[each] = known[around] | asked if asked else known[around]
    return known[stmt]


def _decided(model: Model, stmt: Stmt) -> Iterator[tuple[Expr, bool]]:
    """The test of the ``if`` that a statement is in, and of those before it that may leave."""
    if isinstance(stmt.parent, If):
        yield stmt.parent.test, stmt.block is stmt.parent.body
    known: dict[int, list[If]] = model.memo.setdefault(_decided, {})
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


def _asked(model: Model, test: Expr, answer: bool) -> Iterator[Condition]:
    if isinstance(test, Unary) and test.op == "Not":
        yield from _asked(model, test.operand, not answer)
    elif isinstance(test, Choice) and test.kind != "if":
        if answer == (test.kind == "and"):
            for option in test.options:
                yield from _asked(model, option, answer)
    elif isinstance(test, Compare) and len(test.ops) == 1:
        asked, (kind,), op = _question(model, test.left), test.rights, test.ops[0]
        counts = isinstance(test.left, Call) and not PROCESSES.names(test.left.func)
        if asked is None or counts or not _is_plain(kind):
            return  # what a function counts may be another number the next time
        if op in EQUAL | UNEQUAL:
            yield (asked, unparse(kind)), answer is (op in EQUAL)
        elif op in _ORDERED:
            same, is_yes = _ORDERED[op]
            yield (asked, same, unparse(kind)), answer is is_yes
    elif (asked := _question(model, test)) is not None:
        yield asked, answer


#: Comparisons by the one that they are, or whose opposite they are.
_ORDERED = {"Gt": ("Gt", True), "LtE": ("Gt", False), "Lt": ("Lt", True), "GtE": ("Lt", False)}


def _question(model: Model, expr: Expr) -> object:
    """What has one answer in a run: a setting as it is spelled, a function without arguments."""
    if not isinstance(expr, Call):
        return _setting(expr)
    values = model.flow.values(expr.func) if not expr.args else frozenset()
    value = next(iter(values)) if len(values) == 1 else None
    if isinstance(value, Ext):
        return value.dotted
    return value.function if isinstance(value, FuncRef) else None


def _setting(expr: Expr) -> str | None:
    """How a setting is spelled: ``args.distributed``."""
    if not isinstance(expr, Attr) or (isinstance(expr.value, Name) and expr.value.id == "self"):
        return None
    return dotted(expr)


def _is_plain(expr: Expr) -> bool:
    """Whether it is a number, text, or name of Python itself, as it stands."""
    return isinstance(expr.operand if isinstance(expr, Unary) else expr, Const)
