"""What has to be true where a statement or a call stands, as the code around it asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from sampler_lint.model.facts import (
    Attr,
    Call,
    Choice,
    Expr,
    If,
    Name,
    Raise,
    Return,
    Simple,
    Stmt,
    Unary,
    dotted,
    expressions,
    walk,
)
from sampler_lint.model.flow import Ext, FuncRef
from sampler_lint.model.linked import Model

#: A question that has one answer in a run, and the answer.
Condition: TypeAlias = "tuple[object, bool]"


def contradict(model: Model, one: Iterable[Stmt | Call], other: Iterable[Stmt | Call]) -> bool:
    """Whether a question that both places rest on is answered yes at one and no at the other.

    The questions are calls without arguments (``is_distributed()``), which give one answer in a
    run, and settings that are spelled alike (``args.distributed``).
    """
    there = {condition for place in one for condition in conditions(model, place)}
    here = {condition for place in other for condition in conditions(model, place)}
    return any((question, not answer) in there for question, answer in here)


def conditions(model: Model, place: Stmt | Call) -> Iterator[Condition]:
    """What the branches around a place, and those before it that leave, ask."""
    stmt = place.stmt if isinstance(place, Call) else place
    if isinstance(place, Call) and stmt is not None:
        for expr in expressions(stmt):
            for choice in walk(expr):
                if isinstance(choice, Choice) and choice.kind == "if" and choice.test is not None:
                    for truth, option in zip((True, False), choice.options, strict=True):
                        if any(node is place for node in walk(option)):
                            yield from _asked(model, choice.test, truth)
    while stmt is not None:
        for before in stmt.block:
            if before is stmt:
                break
            if isinstance(before, If) and _leaves(before.body) and not before.orelse:
                yield from _asked(model, before.test, answer=False)
        around = stmt.parent
        if isinstance(around, If):
            yield from _asked(model, around.test, answer=stmt.block is around.body)
        stmt = around


def _leaves(block: list[Stmt]) -> bool:
    last = block[-1]
    return isinstance(last, (Return, Raise)) or (isinstance(last, Simple) and last.is_jump)


def _asked(model: Model, test: Expr, answer: bool) -> Iterator[Condition]:
    if isinstance(test, Unary) and test.op == "Not":
        yield from _asked(model, test.operand, not answer)
    elif isinstance(test, Choice) and test.kind in {"and", "or"}:
        if answer == (test.kind == "and"):
            for option in test.options:
                yield from _asked(model, option, answer)
    elif isinstance(test, Call) and not test.args:
        values = model.flow.values(test.func)
        if len(values) == 1 and isinstance(value := next(iter(values)), (Ext, FuncRef)):
            yield (value.dotted if isinstance(value, Ext) else value.function), answer
    elif isinstance(test, Attr) and not (isinstance(test.value, Name) and test.value.id == "self"):
        name = dotted(test)
        if name is not None:
            yield name, answer
