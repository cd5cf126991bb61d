"""Which assignments of a local name can reach a place where it is read."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from sampler_lint.limits import MOST_REACHING
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import holds, leaves, nodes_in, stands_in, statements, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Binding,
    Call,
    Choice,
    Class,
    ExprStmt,
    For,
    If,
    ModuleFacts,
    Name,
    Node,
    Nth,
    Raise,
    Return,
    Scope,
    Simple,
    Stmt,
    Try,
    While,
    With,
)


def definitions(owner: Scope, name: Name) -> list[Binding]:
    """The bindings in ``owner``, whose variable a name is, that it may be read from."""
    found = reaching(name) if owner is name.scope else None
    return owner.bindings[name.id] if found is None else found


def reaching(name: Name) -> list[Binding] | None:
    """The bindings of a local name that can reach this read; None if order says nothing."""
    bindings = name.scope.bindings.get(name.id)
    if not bindings or len(bindings) == 1:
        return None
    inside = _of_comprehension(name)
    if inside:
        return inside
    return reaching_at(name.scope, name.id, name.stmt)


def _of_comprehension(name: Name) -> list[Binding]:
    """The bindings of the innermost comprehension around a read that binds its name."""
    known: dict[tuple[Scope, str], list[Binding]]
    known = name.scope.module.memo.setdefault(_of_comprehension, {})
    if (name.scope, name.id) not in known:
        bindings = name.scope.bindings[name.id]
        known[name.scope, name.id] = [each for each in bindings if each.within is not None]
    around = [
        binding
        for binding in known[name.scope, name.id]
        if binding.within is not None
        and binding.stmt is name.stmt
        and holds(binding.within, name)
        # The first of what it goes over is computed outside.
        and not holds(binding.within.iters[0], name)
    ]
    innermost = max((_start(b.within) for b in around if b.within is not None), default=None)
    return [b for b in around if b.within is not None and _start(b.within) == innermost]


def _start(node: Node) -> tuple[int, int]:
    return node.row, node.col


def reaching_at(scope: Scope, name: str, stmt: Stmt | None) -> list[Binding] | None:
    """The same where a statement of a scope would read a name of it."""
    bindings = scope.bindings.get(name, [])
    if stmt is None or isinstance(scope, Class) or stmt.scope is not scope:
        return None
    ordered = _ordered(scope.module, scope, name)
    if ordered is None:
        return None
    params, orders, places = ordered
    here = first = bisect_left(orders, stmt.order)
    dominating: Stmt | None = None
    while first > 0:
        binding = bindings[places[first - 1]]
        bound = binding.stmt
        assert bound is not None
        # What a handler or a pattern binds may not have been bound.
        if binding.how != "opaque" and _dominates(bound, stmt):
            first, dominating = bisect_left(orders, orders[first - 1]), bound
            break
        whole = _beside(bound, stmt)
        if (
            whole is not None
            and not whole.encloses(stmt)
            and _always_binds(scope.module, whole, scope, name)
        ):
            first, dominating = bisect_left(orders, whole.order), whole
            break
        first -= 1
        if here - first > MOST_REACHING:
            return None
    chosen = [p for p in places[first:here] if not _is_lost(bindings[p].stmt, stmt)]
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


def may_be_set(scope: Scope, name: str, stmt: Stmt | None) -> bool:
    """Whether a name of a scope is a parameter, or set before a statement in reading order."""
    return any(
        binding.how == "param"
        or (
            stmt is not None
            and binding.stmt is not None
            and binding.stmt.scope is stmt.scope
            and binding.stmt.order < stmt.order
        )
        for binding in scope.bindings.get(name, ())
    )


def may_run_before(one: Stmt | None, other: Stmt | None) -> bool:
    """Whether a statement may have run when another does; one of another scope always may."""
    if one is None or other is None or one.scope is not other.scope:
        return True
    if one.order < other.order:
        return not _returns_first(one, other)
    return any(isinstance(a, (For, While)) and a.encloses(one) for a in other.ancestors())


def _returns_first(one: Stmt, other: Stmt) -> bool:
    """Whether the function ends at the end of a block with ``one`` and without ``other``."""
    for each in (one, *one.ancestors()):
        if isinstance(each.parent, Try) or stands_in(other, each.block):
            return False
        if isinstance(each.block[-1], (Return, Raise)):
            return True
    return False


def _is_lost(bound: Stmt | None, stmt: Stmt) -> bool:
    """Whether no way leads from an earlier statement to another."""
    return bound is not None and (is_apart(bound, stmt) or _returns_first(bound, stmt))


def is_taken_apart_otherwise(call: Call, place: Call) -> bool:
    """Whether a call takes apart what it gets, and no return after a place of what it calls fits.

    ``loader, classes, sampler = make(args)`` comes to no branch that returns two values.
    """
    function, stmt = place.scope, place.stmt
    taken = _first_taken(call)
    if taken is None or stmt is None or stmt.scope is not function:
        return False
    after = [
        each.value
        for each in getattr(function, "returns", ())
        if each.order >= stmt.order and not _is_lost(stmt, each)
    ]
    return bool(after) and not any(taken.may_be_of(value) for value in after)


def _first_taken(call: Call) -> Nth | None:
    """Which of the targets gets the first part of what a call gives, if it is taken apart."""
    if not isinstance(call.stmt, Assign) or call.stmt.value is not call:
        return None
    paths = [b.path for found in call.scope.bindings.values() for b in found if b.value is call]
    paths += [store.path for store in call.scope.stores if store.value is call]
    return next((path[0] for path in paths if path and isinstance(path[0], Nth)), None)


def surely_runs_before(one: Stmt | None, other: Stmt | None) -> bool:
    """Whether every way to a statement leads through another of its scope."""
    if one is None or other is None or one.scope is not other.scope:
        return False
    return one.order < other.order and _dominates(one, other)


def is_surely_set(name: Name, stmt: Stmt) -> bool:
    """Whether a name is set on every way to a statement, and not again from there on."""
    bindings = name.scope.bindings[name.id]
    if any(binding.how == "param" for binding in bindings):
        return True
    is_here = name.scope is stmt.scope
    bound = [b.stmt for b in bindings if b.stmt is not None and b.stmt.scope is name.scope]
    if len(bound) < len(bindings) or (is_here and any(b.order > stmt.order for b in bound)):
        return False
    deleted = _deleted(name.scope.module, name.scope)
    if name.id in deleted or any(_may_pass_over(each, name) for each in bound):
        return False
    if any(each.parent is None or (is_here and _dominates(each, stmt)) for each in bound):
        return True
    # if distributed: sampler = … else: sampler = …
    return len({each.parent for each in bound}) == 1 and len({id(s.block) for s in bound}) > 1


def _may_pass_over(stmt: Stmt, name: Name) -> bool:
    """Whether a statement assigns a name in a part that may not be evaluated."""
    targets = stmt.targets if isinstance(stmt, Assign) else []
    if any(isinstance(n, Name) and n.id == name.id for each in targets for n in walk(each)):
        return False
    return isinstance(stmt, (Assign, ExprStmt)) and any(
        isinstance(node, Choice) for node in nodes_in([stmt])
    )


@remembered
def _deleted(_: ModuleFacts, scope: Scope) -> set[str]:
    return {
        part.id
        for stmt in statements(scope.body)
        if isinstance(stmt, Simple) and stmt.kind == "delete"
        for part in stmt.parts
        if isinstance(part, Name)
    }


@remembered
def _ordered(
    _: ModuleFacts, scope: Scope, name: str
) -> tuple[list[Binding], list[int], list[int]] | None:
    """The parameters of that name; the orders of its other bindings, sorted, and their places.

    None if another scope binds it, too.
    """
    params: list[Binding] = []
    others: list[tuple[int, int]] = []
    is_read = any(binding.within is None for binding in scope.bindings[name])
    for place, binding in enumerate(scope.bindings[name]):
        if binding.within is not None and is_read:
            continue
        if binding.how == "param":
            params.append(binding)
        elif binding.stmt is None or binding.stmt.scope is not scope:
            return None
        else:
            others.append((binding.stmt.order, place))
    others.sort()
    return params, [order for order, _ in others], [place for _, place in others]


def _dominates(bound: Stmt, stmt: Stmt) -> bool:
    """Whether every way to ``stmt`` leads through ``bound`` (an earlier one)."""
    if isinstance(bound, For):
        return bound is not stmt and bound.encloses(stmt)
    return bound.parent is None or (bound.scope is stmt.scope and stands_in(stmt, bound.block))


def _beside(bound: Stmt, stmt: Stmt) -> Stmt | None:
    """The statement around ``bound`` that every way to ``stmt`` leads through, if there is one."""
    return next((each for each in bound.ancestors() if _dominates(each, stmt)), None)


def is_apart(bound: Stmt | None, stmt: Stmt) -> bool:
    """Whether the statements are in two branches of one ``if``, of which no loop runs both."""
    if bound is None:
        return False
    for each in bound.ancestors():
        if each.encloses(stmt):
            return (
                isinstance(each, If)
                and stands_in(bound, each.body) is not stands_in(stmt, each.body)
                and not any(isinstance(outer, (For, While)) for outer in each.ancestors())
            )
    return False


@remembered
def _always_binds(_: ModuleFacts, whole: Stmt, scope: Scope, name: str) -> bool:
    """Whether every way through a statement binds the name, or leads elsewhere."""
    return _binds(whole, {b.stmt for b in scope.bindings[name] if b.how != "opaque"})


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
