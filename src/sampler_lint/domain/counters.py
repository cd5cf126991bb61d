"""Variables that count the turns of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sampler_lint.analysis.origins import HANDED_ON, Step, origins
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.epoch_calls import builds, runs_in
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import outer_stores_beside
from sampler_lint.syntax.navigation import same, self_class
from sampler_lint.syntax.nodes import (
    Attr,
    Class,
    Const,
    Expr,
    Function,
    Loop,
    Name,
    Node,
    Scope,
    Stmt,
    Store,
)


class Beginning(NamedTuple):
    """Where a number begins."""

    scope: Scope
    node: Node
    moved: tuple[Stmt, ...] = ()
    """The statements that move it on, if it is a variable."""


def counted_from_zero(model: Model, loop: Loop, number: Name | Attr) -> Beginning | None:
    """A variable that is set to 0 before the loop, and that only its turns add to."""
    if isinstance(number, Name):
        scope = number.scope
        if scope is not loop.scope or is_shared(number):
            return None
        bindings = scope.bindings.get(number.id, ())
        set_by = [(scope, each.how, each.value, each.stmt) for each in bindings]
    else:
        cls = self_class(number.value)
        stores = _all_stores(model, cls, number.name) if cls is not None else None
        if cls is None or stores is None:
            return None
        family = model.flow.own_family(cls)
        set_by = [(s.scope, s.how, s.value, s.stmt) for s in stores if not s.path]
        begun = [scope for scope, how, _, _ in set_by if how == "assign"]
        if not all(builds(model, scope, {*family}) for scope in begun):
            return None
    return _begun(loop, set_by)


def _begun(
    loop: Loop, set_by: Sequence[tuple[Scope, str, Expr | None, Stmt | None]]
) -> Beginning | None:
    """Where it begins, if it is set to 0 once, outside the loop, and else only added to."""
    zeros = [
        (scope, stmt) for scope, how, value, stmt in set_by if how == "assign" and _is_zero(value)
    ]
    added = [stmt for _, how, _, stmt in set_by if how == "aug" and stmt is not None]
    if len(zeros) != 1 or not added or len(zeros) + len(added) != len(set_by):
        return None
    [(scope, stmt)] = zeros
    return None if stmt is None or loop.encloses(stmt) else Beginning(scope, stmt, tuple(added))


def counted_by(
    model: Model, loop: Loop, function: Function, number: Name | Attr
) -> Beginning | None:
    """A variable that outlives a function: 0 at first, and only its calls in a loop add to it."""
    if isinstance(number, Attr):
        begun = counted_from_zero(model, loop, number)
    else:
        begun = _shared_from_zero(model, loop, number)
    by_it = begun is not None and all(moved.block is function.body for moved in begun.moved)
    return begun if by_it else None


def _shared_from_zero(model: Model, loop: Loop, number: Name) -> Beginning | None:
    """A name that functions declare ``nonlocal`` or ``global``, and which is 0 at first."""
    owner = number.scope.declared.get(number.id) if isinstance(number.scope, Function) else None
    if owner is None or (isinstance(owner, Function) and runs_in(model, loop, owner) is not False):
        return None
    bindings = owner.bindings.get(number.id, ())
    return _begun(loop, [(owner, each.how, each.value, each.stmt) for each in bindings])


def is_of_turn(model: Model, loop: Loop, epoch: Expr, number: Expr) -> bool:
    """Whether a number is what counts the turns, passed on or kept in an object by each of them."""

    def is_it(step: Step) -> bool:
        return same(step.expr, epoch) and step.scope is loop.scope

    steps = [s for s in origins(model.flow, number, HANDED_ON, stop=is_it) if s.is_end]
    if len(steps) == 1 and isinstance(steps[0].expr, Attr) and not is_it(steps[0]):
        return _is_kept(model, loop, epoch, steps[0].expr)
    return any(map(is_it, steps)) and all(is_it(s) or _is_zero(s.expr) for s in steps)


def _is_kept(model: Model, loop: Loop, epoch: Expr, kept: Attr) -> bool:
    """Whether each turn, and nothing else in it, stores its number in an object's attribute."""
    owners = model.flow.values(kept.value)
    classes = [v.cls for v in owners if isinstance(v, Obj) and isinstance(v.cls, Class)]
    stores = [
        store
        for cls in classes
        for store in (
            *model.flow.family_stores(cls, kept.name),
            *outer_stores_beside(model, kept.name, cls),
        )
        if not isinstance(store.target, Attr)
        or self_class(store.target.value) is not None
        or not owners.isdisjoint(model.flow.values(store.target.value))
    ]
    in_turn = [s for s in stores if s.stmt is not None and loop.encloses(s.stmt)]
    return (
        len(classes) == len(owners)
        and bool(in_turn)
        and all(s.value is not None and same(s.value, epoch) for s in in_turn)
        and all(s in in_turn or runs_in(model, loop, s.scope) is False for s in stores)
    )


def is_kept_as_zero(model: Model, number: Attr) -> bool:
    """Whether an attribute of ``self`` is certainly never set to anything but 0."""
    cls = self_class(number.value)
    stores = (_all_stores(model, cls, number.name) if cls is not None else None) or []
    return bool(stores) and all(s.how == "assign" and _is_zero(s.value) for s in stores)


def _all_stores(model: Model, cls: Class, name: str) -> list[Store] | None:
    """Every assignment to an attribute of the objects of a class; None if others may set it."""
    if (
        not all(isinstance(base, Class) for base in model.flow.mro(cls))
        or model.attributes(cls).open is not None
        or any(outer_stores_beside(model, name, cls))
    ):
        return None
    return model.flow.family_stores(cls, name)


def _is_zero(value: Expr | None) -> bool:
    return isinstance(value, Const) and value.value == 0 and value.value is not False


def is_shared(name: Name) -> bool:
    """Whether another function may change the name."""
    scope = name.scope
    if isinstance(scope, Function):
        return scope.declared.get(name.id) is not None
    return any(name.id in function.declared for function in scope.module.functions)
