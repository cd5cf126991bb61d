"""Whether the ranks talk about a value, so that it may be the same on each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sampler_lint.domain.concepts import COLLECTIVE
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import owner_of, statements, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Call,
    Expr,
    ExprStmt,
    Imported,
    Name,
    Scope,
    dotted,
)


def agrees(scope: Scope, *about: Expr) -> bool:
    """Whether a function talks to the other ranks about some values, or at all if none is given.

    That is: about what a value is made of there, or about what is made of it.
    """
    if not any(map(COLLECTIVE.says, scope.called)):
        return False
    if not about:
        return True
    talks = [call for call in scope.calls if COLLECTIVE.names(call.func)]
    made = [each for stmt in statements(scope.body) for each in _assigned(stmt)]
    items = [
        (frozenset({name}), each.value)
        for name, bindings in scope.bindings.items()
        for each in bindings
        if each.how == "element" and each.value is not None
    ]
    sources = _sources([*made, *items], about)
    if any(talk in walk(each) for talk in talks for each in sources):
        return True
    concerned = {name for each in sources for name in _names(each)}
    concerned |= _made_of(made, about)
    given = {name for talk in talks for arg in talk.args for name in _names(arg.value)}
    return _meet(concerned, given)


_Made = tuple[frozenset[str], Expr]


def _assigned(stmt: object) -> Iterator[_Made]:
    """The variables and attributes that a statement gives a value."""
    if isinstance(stmt, (Assign, AugAssign)):
        targets = stmt.targets if isinstance(stmt, Assign) else [stmt.target]
        yield frozenset(name for each in targets for name in _names(each)), stmt.value


def _sources(made: list[_Made], about: Iterable[Expr]) -> list[Expr]:
    """The values, and what goes into them."""

    def parts(expr: Expr) -> list[Expr]:
        names = {*_names(expr)}
        return [value for targets, value in made if _meet(targets, names)]

    return [*closure(about, parts)]


def _made_of(made: list[_Made], about: Iterable[Expr]) -> set[str]:
    """The variables that the values, or what they are stored in, go into."""
    exprs = {*about}
    # `shuffle(files)` gives nothing, but changes what it is given.
    alone = (one for one in about if isinstance(one, Call) and isinstance(one.stmt, ExprStmt))
    found = {name for call in alone for name in _names(call)}
    size = -1
    while size != len(found):
        size = len(found)
        for targets, value in made:
            if not exprs.isdisjoint(walk(value)) or _meet(found, _names(value)):
                found |= targets
    return found


def _names(expr: Expr) -> Iterator[str]:
    """The variables and attributes that an expression reads, as they are spelled."""
    inner: set[Expr] = set()
    for node in walk(expr):
        if isinstance(node, Call) and isinstance(node.func, Attr):
            inner.add(node.func)  # its method says nothing
        elif isinstance(node, (Name, Attr)) and node not in inner:
            part = node
            while isinstance(part, Attr):
                inner.add(part.value)
                part = part.value  # type: ignore[assignment]
            name = dotted(node)
            if name is not None and not _is_module(part):
                yield name


def _is_module(expr: Expr) -> bool:
    if not isinstance(expr, Name):
        return False
    owner = owner_of(expr)
    bound = owner.bindings.get(expr.id, ()) if owner is not None else ()
    return any(isinstance(each.payload, Imported) for each in bound)


def _meet(some: Iterable[str], others: Iterable[str]) -> bool:
    """Whether a name is among others, or is of an object that is, or holds it."""
    listed = [*others]
    return any(
        one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")
        for one in some
        for other in listed
    )
