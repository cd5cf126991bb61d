"""What is put into lists and dicts after they are built: ``x.append(a)``, ``d[k] = v``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from sampler_lint.analysis.reaching import definitions
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import same, self_class
from sampler_lint.syntax.nodes import (
    Attr,
    AugAssign,
    Call,
    Const,
    Expr,
    Index,
    Map,
    ModuleFacts,
    Name,
)


class Entry(NamedTuple):
    """What a dict has under a key; under any of them if that is None."""

    key: str | None
    by_index: bool = False
    """Whether it is read as ``value[key]``, which is no entry where the value is a list."""


#: Which part of a value: a place in a tuple, an entry of a dict, or (None) each element.
Part: TypeAlias = "int | Entry | None"

Filling: TypeAlias = "tuple[Expr, Expr, tuple[Part, ...]]"
"""A container, what is put into it, and which part of that it is."""

#: Methods of a list or a set that put one object into it, and where they take that.
PUTS = {"append": 0, "appendleft": 0, "insert": 1, "add": 0}


def put_in_lists(facts: ModuleFacts) -> Iterator[Filling]:
    """What a file puts into lists, whichever they are."""
    yield from filter(None, map(put_in_list, facts.all_calls))
    for stmt in _added_to(facts, "Add"):
        yield stmt.target, stmt.value, (None,)


def put_in_list(call: Call) -> Filling | None:
    """What a call of a method puts into its list, whichever that is."""
    if isinstance(call.func, Attr):
        given = call.positional
        at = PUTS.get(call.func.name)
        if at is not None and at < len(given):
            return call.func.value, given[at], ()
        if call.func.name == "extend" and given:
            return call.func.value, given[0], (None,)
    return None


@remembered
def put_in_dicts(facts: ModuleFacts, key: str | None) -> list[Filling]:
    """What a file puts under a key into dicts, in order; under any key if that is None.

    What ``namespace.key = …`` sets counts for what is asked for by its name.
    """
    by_key = _by_key(facts)
    if key is None:
        found = [entry for entries in by_key.values() for entry in entries]
    else:
        found = [*by_key.get(key, ()), *by_key.get(None, ())]
    found.sort(key=lambda entry: entry[0])
    put: list[Filling] = [] if key is None else [*_set_as_attributes(facts).get(key, ())]
    put += (
        (owner, source, tuple(_under(key, part) for part in path))
        for _, (owner, source, path) in found
    )
    return put


def _under(key: str | None, part: Part) -> Part:
    return part._replace(key=key) if isinstance(part, Entry) and part.key is None else part


@remembered
def put_by(facts: ModuleFacts, key: str) -> dict[Expr, Expr]:
    """The dict that each of :func:`put_in_dicts` is put into, as it is spelled there."""
    return {source: owner for owner, source, _ in put_in_dicts(facts, key)}


@remembered
def _by_key(facts: ModuleFacts) -> dict[str | None, list[tuple[int, Filling]]]:
    known: dict[str | None, list[tuple[int, Filling]]] = {}
    for number, (key, filling) in enumerate(_put(facts)):
        known.setdefault(key, []).append((number, filling))
    return known


@remembered
def _set_as_attributes(facts: ModuleFacts) -> dict[str, list[Filling]]:
    """What a file sets as an attribute of what is no method's ``self``."""
    known: dict[str, list[Filling]] = {}
    for scope in facts.scopes:
        for store in scope.stores:
            target = store.target
            if not isinstance(target, Attr) or store.value is None or store.how != "assign":
                continue
            if self_class(target.value) is None:
                filling = target.value, store.value, store.path
                known.setdefault(target.name, []).append(filling)
    return known


def taken_from_dicts(facts: ModuleFacts, key: str) -> Iterator[Filling]:
    """The dicts that a file takes a key out of, by ``d.pop(key)``; the call stands for it."""
    known: dict[str | None, list[Filling]] | None = facts.memo.get(taken_from_dicts)
    if known is None:
        known = facts.memo[taken_from_dicts] = {}
        for call in facts.all_calls:
            if isinstance(call.func, Attr) and call.func.name == "pop" and call.positional:
                taken = known.setdefault(_key(call.positional[0]), [])
                taken.append((call.func.value, call, ()))
    yield from known.get(key, ())


def _put(facts: ModuleFacts) -> Iterator[tuple[str | None, Filling]]:
    for scope in facts.scopes:
        for store in scope.stores:
            target = store.target
            if isinstance(target, Index) and store.how == "assign" and store.value is not None:
                alike = None if store.path else of_same_key(target.key, store.value)
                if alike is None:
                    yield _key(target.key), (target.value, store.value, store.path)
                else:
                    yield None, (target.value, alike, (Entry(None, by_index=True),))
    for call in facts.all_calls:
        if not isinstance(call.func, Attr):
            continue
        given = call.positional
        if call.func.name == "setdefault" and len(given) > 1:
            yield _key(given[0]), (call.func.value, given[1], ())
        elif call.func.name == "update":
            yield from _updated(call.func.value, call)
    for stmt in _added_to(facts, "BitOr"):
        yield None, (stmt.target, stmt.value, (Entry(None),))


def of_same_key(key: Expr, value: Expr) -> Expr | None:
    """The dict whose own entry is put under its key: ``d[k] = other[k]``, for each ``k``."""
    if not isinstance(key, Name):
        return None
    if isinstance(value, Index):
        return value.value if same(value.key, key) else None
    if not isinstance(value, Name):
        return None
    pair = [definitions(n.scope, n) if n.id in n.scope.bindings else [] for n in (key, value)]
    if any(len(found) != 1 or found[0].how != "element" for found in pair):
        return None
    (of_key,), (of_value,) = pair
    each = of_key.value
    is_pair = each is of_value.value and (of_key.path, of_value.path) == ((0,), (1,))
    if is_pair and isinstance(each, Call) and isinstance(each.func, Attr):
        return each.func.value if each.func.name == "items" and not each.args else None
    return None


def _updated(owner: Expr, call: Call) -> Iterator[tuple[str | None, Filling]]:
    for arg in call.args:
        if isinstance(arg.value, Map) and arg.keyword is None:
            for key, item in arg.value.items:
                part = (Entry(None),) if key is None else ()
                yield _key(key), (owner, item, part)
        else:
            yield arg.keyword, (owner, arg.value, () if arg.keyword else (Entry(None),))


def _key(expr: Expr | None) -> str | None:
    return expr.value if isinstance(expr, Const) and isinstance(expr.value, str) else None


def _added_to(facts: ModuleFacts, op: str) -> Iterator[AugAssign]:
    for scope in facts.scopes:
        for bindings in scope.bindings.values():
            for binding in bindings:
                if isinstance(binding.stmt, AugAssign) and binding.stmt.op == op:
                    yield binding.stmt
        for store in scope.stores:
            if isinstance(store.stmt, AugAssign) and store.stmt.op == op:
                yield store.stmt
