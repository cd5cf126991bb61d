"""The loops that take batches from a generator, or an object that fetches them, seen as passes."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.origins import given_by
from sampler_lint.domain.concepts import RANGES
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import Pass
from sampler_lint.syntax.navigation import holds, makes_iterator, same, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Expr,
    For,
    Function,
    Name,
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


def takes_some(found: Pass) -> bool:
    """Whether a pass stops after a number of batches: ``zip(range(n), loader)``."""
    source = found.stmt.iter if isinstance(found.stmt, For) else None
    return (
        isinstance(source, Call)
        and last_name(source.func) == "zip"
        and any(
            isinstance(beside, Call)
            and RANGES.is_call(beside)
            and not any(isinstance(node, Call) and node is not beside for node in walk(beside))
            for beside in source.positional
        )
    )
