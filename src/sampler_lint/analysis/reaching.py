"""Which assignments of a local name can reach a place where it is read."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from sampler_lint.limits import MOST_REACHING
from sampler_lint.syntax.nodes import (
    Binding,
    Class,
    For,
    If,
    Name,
    Scope,
    Stmt,
    Try,
    While,
    With,
    leaves,
)


def reaching(name: Name) -> list[Binding] | None:
    """The bindings of a local name that can reach this read; None if order says nothing."""
    scope, stmt = name.scope, name.stmt
    bindings = scope.bindings.get(name.id)
    if not bindings or stmt is None or isinstance(scope, Class):
        return None
    if stmt.scope is not scope:
        return None
    if len(bindings) == 1:
        return None
    ordered = _ordered(scope, name.id)
    if ordered is None:
        return None
    params, orders, places = ordered
    here = first = bisect_left(orders, stmt.order)
    dominating: Stmt | None = None
    while first > 0:
        bound = bindings[places[first - 1]].stmt
        assert bound is not None
        if _dominates(bound, stmt):
            first, dominating = bisect_left(orders, orders[first - 1]), bound
            break
        whole = _beside(bound, stmt)
        if whole is not None and _always_binds(whole, name):
            first, dominating = bisect_left(orders, whole.order), whole
            break
        first -= 1
        if here - first > MOST_REACHING:
            return None
    chosen = places[first:here]
    loops = [loop for loop in stmt.ancestors() if isinstance(loop, (For, While))]
    for place in places[here : bisect_right(orders, loops[-1].last_order)] if loops else ():
        bound = bindings[place].stmt
        assert bound is not None
        if _loops_back(bound, loops, dominating):
            chosen.append(place)
            if len(chosen) > MOST_REACHING:
                return None
    start = params if dominating is None else []
    return [*start, *(bindings[place] for place in sorted(chosen))]


def _ordered(scope: Scope, name: str) -> tuple[list[Binding], list[int], list[int]] | None:
    """The parameters of that name; the orders of its other bindings, sorted, and their places.

    None if another scope binds it, too.
    """
    known: dict[object, tuple[list[Binding], list[int], list[int]] | None]
    known = scope.module.memo.setdefault(_ordered, {})
    if (scope, name) not in known:
        params: list[Binding] = []
        others: list[tuple[int, int]] = []
        is_own = True
        for place, binding in enumerate(scope.bindings[name]):
            if binding.how == "param":
                params.append(binding)
            elif binding.stmt is None or binding.stmt.scope is not scope:
                is_own = False
            else:
                others.append((binding.stmt.order, place))
        others.sort()
        orders, places = [order for order, _ in others], [place for _, place in others]
        known[scope, name] = (params, orders, places) if is_own else None
    return known[scope, name]


def _dominates(bound: Stmt, stmt: Stmt) -> bool:
    """Whether every way to ``stmt`` leads through ``bound`` (an earlier one)."""
    if isinstance(bound, For):
        return bound.encloses(stmt) and any(s is bound for s in stmt.ancestors())
    parent = bound.parent
    if parent is None:
        return True
    if not any(ancestor is parent for ancestor in stmt.ancestors()):
        return False
    inner: Stmt = stmt
    for ancestor in stmt.ancestors():
        if ancestor is parent:
            break
        inner = ancestor
    return inner.block is bound.block


def _beside(bound: Stmt, stmt: Stmt) -> Stmt | None:
    """The statement around ``bound`` that every way to ``stmt`` leads through, if there is one."""
    return next((each for each in bound.ancestors() if _dominates(each, stmt)), None)


def _always_binds(whole: Stmt, name: Name) -> bool:
    """Whether every way through a statement binds the name, or leads elsewhere."""
    known: dict[object, bool] = name.scope.module.memo.setdefault(_always_binds, {})
    key = whole, name.id
    if key not in known:
        bound = {binding.stmt for binding in name.scope.bindings[name.id]}
        known[key] = _binds(whole, bound)
    return known[key]


def _binds(stmt: Stmt, bound: set[Stmt | None]) -> bool:
    while isinstance(stmt, If):
        if not _block_binds(stmt.body, bound):
            return False
        match stmt.orelse:
            case [If() as other]:  # `elif`: there may be hundreds
                stmt = other
            case orelse:
                return _block_binds(orelse, bound)
    if isinstance(stmt, With):
        return stmt in bound or _block_binds(stmt.body, bound)
    return stmt in bound and not isinstance(stmt, (For, While, Try))


def _block_binds(block: list[Stmt], bound: set[Stmt | None]) -> bool:
    return any(_binds(stmt, bound) or leaves(stmt) for stmt in block)


def _loops_back(bound: Stmt, loops: list[For | While], dominating: Stmt | None) -> bool:
    """Whether one of the loops around a statement brings a later binding to it."""
    return any(
        loop.encloses(bound)
        and (dominating is None or loop is dominating or not loop.encloses(dominating))
        for loop in loops
    )
