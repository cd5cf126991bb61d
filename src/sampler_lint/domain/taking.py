"""The loops that take batches from a generator, or an object that fetches them, seen as passes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.asked import tests
from sampler_lint.analysis.origins import depends_on, given_by
from sampler_lint.domain.concepts import RANGES
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import Pass
from sampler_lint.syntax.navigation import holds, makes_iterator, operands, same, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Name,
    Seq,
    Simple,
    While,
    last_name,
)


def as_taken(model: Model, found: Pass) -> Iterator[Pass]:
    """A pass; of one that a generator function makes, the loops over what that yields.

    ``for batch in log.log_every(loader, 10)`` uses the batches, and the generator only hands them
    on. Only of a generator that is given the loader, and where it is this loader that is given.
    """
    if not isinstance(found.scope, Function) or not found.scope.yields:
        yield from [*_taken_from_holder(model, found)] or [found]
        return
    for call in model.flow.callers(found.scope):
        given = given_by(model.flow, call, found.source) if isinstance(found.source, Name) else None
        if (
            given is not None
            and isinstance(call.stmt, For)
            and call.stmt.scope is not found.scope
            and any(map(found.loader.may_be, model.flow.values(given)))
        ):
            taken = Pass(call.stmt.scope, call.stmt, given, found.loader, given)
            yield from as_taken(model, taken)


def _taken_from_holder(model: Model, found: Pass) -> Iterator[Pass]:
    """The loops that ask an object for batches whose constructor began to go over the loader.

    ``fetcher = Prefetcher(loader)``, and then ``while x is not None: x = fetcher.next()``.
    """
    scope = found.scope
    if not isinstance(scope, Function) or scope.name != "__init__":
        return
    for call in model.flow.callers(scope):
        made, given = call.stmt, given_by(model.flow, call, found.source)
        if not isinstance(made, Assign) or made.value is not call or given is None:
            continue
        if not any(map(found.loader.may_be, model.flow.values(given))):
            continue
        for loop in made.block:
            asking = call.scope.calls_in(loop) if isinstance(loop, While) else ()
            if loop.order > made.order and any(_asks(each, made.targets) for each in asking):
                yield Pass(call.scope, loop, given, found.loader, given)


def _asks(call: Call, objects: list[Expr]) -> bool:
    return isinstance(call.func, Attr) and any(same(call.func.value, each) for each in objects)


def takes_one(found: Pass) -> bool:
    """Whether a pass takes the first batch and leaves the rest: ``next(iter(loader))``."""
    return any(
        last_name(call.func) == "next"
        and isinstance(made, Call)
        and makes_iterator(last_name(made.func))
        and holds(made, found.iterated)
        for call in found.scope.calls_in(found.stmt)
        for made in call.positional[:1]
    )


def takes_some(model: Model, found: Pass) -> bool:
    """Whether a pass stops after a number of batches.

    ``zip(range(n), loader)``, or ``if i == n: break`` where ``i`` counts the batches.
    """
    loop = found.stmt
    if not isinstance(loop, For):
        return False
    ranges = _ranges_beside(loop)
    if ranges:
        return any(
            not any(isinstance(node, Call) and node is not beside for node in walk(beside))
            and all(_is_of_no_loader(model, arg.value) for arg in beside.args)
            for beside in ranges
        )
    counts = _counts_of(loop)
    return any(isinstance(stmt, If) and _breaks_at(model, stmt, counts) for stmt in loop.body)


def is_beside_range(found: Pass) -> bool:
    """Whether a pass goes over numbers, too, which may run out first: ``zip(loader, range(n))``."""
    return isinstance(found.stmt, For) and bool(_ranges_beside(found.stmt))


def _ranges_beside(loop: For) -> list[Call]:
    source = loop.iter
    is_zip = isinstance(source, Call) and last_name(source.func) == "zip"
    beside = source.positional if isinstance(source, Call) and is_zip else ()
    return [each for each in beside if isinstance(each, Call) and RANGES.is_call(each)]


def _counts_of(loop: For) -> set[str]:
    """The variables that count the turns of a loop."""
    named: list[Expr] = [
        stmt.target
        for stmt in loop.body
        if isinstance(stmt, AugAssign) and stmt.op == "Add" and isinstance(stmt.value, Const)
    ]
    if isinstance(loop.target, Seq) and any(
        isinstance(node, Call) and last_name(node.func) == "enumerate" for node in walk(loop.iter)
    ):
        named += loop.target.items[:1]
    return {each.id for each in named if isinstance(each, Name)}


def _breaks_at(model: Model, stmt: If, counts: set[str]) -> bool:
    """Whether a loop always ends at a number, which is not one that stands for all batches."""
    test, last = stmt.test, stmt.body[-1]
    if not isinstance(test, Compare) or test.ops[0] not in {"Eq", "GtE", "Gt"}:
        return False
    number, end = test.left, test.rights[0]
    if isinstance(number, Bin) and number.op == "Add" and isinstance(number.right, Const):
        number = number.left
    if (
        not isinstance(number, Name)
        or number.id not in counts
        or not isinstance(last, Simple)
        or last.kind != "break"
    ):
        return False
    known = model.flow.constants(end)
    if known is None:
        # Settings end it early for those who ask for that.
        is_left_open = _is_setting(end) and not _is_asked_for(stmt, end)
        return not is_left_open and _is_of_no_loader(model, end)
    # One of several numbers may stand for all.
    return len(known) == 1 and all(isinstance(each, int) and each >= 0 for each in known)


def _is_setting(end: Expr) -> bool:
    return any(isinstance(node, Attr) for node in walk(end))


def _is_asked_for(stmt: If, end: Expr) -> bool:
    """Whether the loop is only come to where its end was asked for: ``if args.warm_up > 0``."""
    loop = stmt.parent
    return loop is not None and any(
        answer and any(same(node, end) for part in operands(test) for node in walk(part))
        for test, answer in tests(loop)
    )


def _is_of_no_loader(model: Model, end: Expr) -> bool:
    return depends_on(model.flow, end, partial(_counts_batches, model)) is None


def _counts_batches(model: Model, expr: Expr) -> bool:
    """Whether it is how many batches a loader has: an end that may come after them all."""
    return (
        isinstance(expr, Call)
        and last_name(expr.func) == "len"
        and any(
            model.role(value) == "loader"
            for arg in expr.args
            for value in model.flow.values(arg.value)
        )
    )
