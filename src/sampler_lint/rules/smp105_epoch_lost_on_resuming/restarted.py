"""Numbers that begin at 0 in each run, beside a loop that may begin elsewhere."""

from __future__ import annotations

from typing import NamedTuple

from sampler_lint.analysis.origins import Hop, ends
from sampler_lint.domain.concepts import RANGES
from sampler_lint.domain.epoch_calls import builds
from sampler_lint.domain.epochs import EpochLoop, epoch_expression
from sampler_lint.domain.model import Model
from sampler_lint.syntax.navigation import leaves, same, self_class, statements, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Bin,
    Call,
    Class,
    Const,
    Expr,
    For,
    Function,
    If,
    Loop,
    Name,
    Node,
    Scope,
)


class Beginning(NamedTuple):
    """Where a number begins."""

    scope: Scope
    node: Node


def from_zero(model: Model, found: EpochLoop, call: Call) -> Beginning | None:
    """Where the number that a call gets begins at 0, wherever its loop begins."""
    given = next(iter(call.positional), None)
    if isinstance(given, Bin):
        return _turns_of(model, found, call, given)
    if not isinstance(given, (Name, Attr)) or skips_by(found.loop, given):
        return None
    return _own_counter(model, found.loop, given)


def skips_by(loop: Loop, number: Expr) -> bool:
    """Whether turns of a loop are left by a number."""
    return any(
        isinstance(stmt, If)
        and any(same(node, number) for node in walk(stmt.test))
        and any(map(leaves, stmt.body))
        for stmt in statements(loop.body)
    )


def _turns_of(model: Model, found: EpochLoop, call: Call, given: Bin) -> Beginning | None:
    """``epoch - start`` in a loop over ``range(start, …)``: the number of the turn."""
    loop, epoch = found.loop, epoch_expression(found.loop)
    if not isinstance(loop, For) or call.scope is not loop.scope or epoch is None:
        return None
    counts = [node for node in walk(loop.iter) if isinstance(node, Call) and RANGES.is_call(node)]
    if (
        len(counts) != 1
        or not len(counts[0].positional) > 1
        or any(a.stars for a in counts[0].args)
    ):
        return None
    start = counts[0].positional[0]
    if given.op != "Sub" or not (same(given.left, epoch) and same(given.right, start)):
        return None
    is_fixed = all(isinstance(end, Const) for end in ends(model.flow, start, Hop.ASSIGNED))
    return None if is_fixed else Beginning(loop.scope, start)


def _own_counter(model: Model, loop: Loop, number: Name | Attr) -> Beginning | None:
    """A variable that is set to 0 before the loop, and that only its turns add to."""
    if isinstance(number, Name):
        scope = number.scope
        if scope is not loop.scope or _is_shared(number):
            return None
        bindings = scope.bindings.get(number.id, ())
        set_by = [(scope, each.how, each.value, each.stmt) for each in bindings]
    else:
        cls = self_class(number.value)
        if (
            cls is None
            or not all(isinstance(base, Class) for base in model.flow.mro(cls))
            or model.attributes(cls).open is not None
            or model.project.outer_stores_near(number.name, cls)
        ):
            return None
        family = [*model.flow.mro(cls), *model.flow.subclasses(cls)]
        set_by = [
            (store.scope, store.how, store.value, store.stmt)
            for each in family
            if isinstance(each, Class)
            for store in model.project.own_stores(number.name, each)
            if not store.path
        ]
        begun = [scope for scope, how, _, _ in set_by if how == "assign"]
        if not all(builds(model, scope, {*family}) for scope in begun):
            return None
    zeros = [
        (scope, stmt) for scope, how, value, stmt in set_by if how == "assign" and _is_zero(value)
    ]
    added = [stmt for _, how, _, stmt in set_by if how == "aug"]
    if len(zeros) != 1 or not added or len(zeros) + len(added) != len(set_by):
        return None
    [(scope, stmt)] = zeros
    return None if stmt is None or loop.encloses(stmt) else Beginning(scope, stmt)


def _is_zero(value: Expr | None) -> bool:
    return isinstance(value, Const) and value.value == 0 and value.value is not False


def _is_shared(name: Name) -> bool:
    """Whether another function may change the name."""
    scope = name.scope
    if isinstance(scope, Function):
        return scope.declared.get(name.id) is not None
    return any(name.id in function.declared for function in scope.module.functions)
