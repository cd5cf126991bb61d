"""A rank where the number of processes belongs, or the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint.analysis.origins import part_of
from sampler_lint.domain.concepts import RANK, WORLD_SIZE, Concept
from sampler_lint.domain.model import Model
from sampler_lint.domain.ranks import kinds, kinds_of_part
from sampler_lint.edits.names import text_of
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Binding,
    Call,
    Choice,
    Expr,
    Name,
    Node,
    Stmt,
    Store,
    last_name,
)
from sampler_lint.workspace.project import Module


class _Kind(NamedTuple):
    """What a name says, and how that is called."""

    concept: Concept
    name: str
    words: str


_RANK = _Kind(RANK, "rank", "the rank of this process")
_SIZE = _Kind(WORLD_SIZE, "world size", "the number of processes")


def confused_places(model: Model) -> Iterator[Suspect]:
    """``rank = get_world_size()`` and ``num_replicas=get_rank()``, where a name says what it is.

    Also by the name of what is given, unless that is known to hold the other one.
    """
    for module in model.modules:
        told: set[Stmt] = set()
        for name, kept in _kept(module):
            if kept.stmt is None or kept.stmt in told or kept.value is None:
                continue
            value = part_of(kept.value, kept.path)
            if value is None:
                found = _unpacked(model, name, kept.value, kept.path)
                shown = kept.value
            else:
                shown, found = next(_given(model, name, value), (value, None))
            if found is not None:
                told.add(kept.stmt)
                yield _suspect(module, name, shown, found, kept.stmt)
        for call in module.facts.all_calls:
            for arg in call.args:
                if arg.keyword is not None and _meant(arg.keyword) is not None:
                    for value, found in _given(model, arg.keyword, arg.value):
                        yield _suspect(module, arg.keyword, value, found, value)


def _kept(module: Module) -> Iterator[tuple[str, Binding | Store]]:
    """What is kept under a name that says one of both."""
    for scope in module.facts.scopes:
        for name, bindings in scope.bindings.items():
            if _meant(name) is not None:
                yield from ((name, each) for each in bindings if each.how == "assign")
        for store in scope.stores:
            if (
                isinstance(store.target, Attr)
                and store.how == "assign"
                and isinstance(store.stmt, Assign)
                and _meant(store.target.name) is not None
            ):
                yield store.target.name, store


def _meant(name: str) -> tuple[_Kind, _Kind] | None:
    """What a name says that it is, and what it must not be then."""
    is_rank, is_size = RANK.says(name), WORLD_SIZE.says(name)
    if is_rank == is_size:
        return None
    return (_RANK, _SIZE) if is_rank else (_SIZE, _RANK)


def _given(model: Model, name: str, value: Expr) -> Iterator[tuple[Expr, _Kind]]:
    """What is given under a name, of what may be chosen, and is the other one."""
    pair = _meant(name)
    if pair is None:
        return
    means, other = pair
    for each in _chosen(value):
        if isinstance(each, Call) and other.concept.is_call(each):
            yield each, other
        elif means.concept.is_call(each) or not isinstance(each, (Attr, Call, Name)):
            continue
        elif (of := kinds(model, each)) == {other.name}:
            if isinstance(each, Call):  # a name that holds it is told where it is kept
                yield each, other
        elif not isinstance(each, Call) and of.isdisjoint({means.name}):
            said = _meant(last_name(each) or "")
            if said is not None and said[0] is other:
                yield each, other


def _unpacked(model: Model, name: str, value: Expr, path: tuple[int, ...]) -> _Kind | None:
    """What a name is, if it is the other one, of what a call gives in parts."""
    pair = _meant(name)
    if pair is None or kinds_of_part(model, value, path) != {pair[1].name}:
        return None
    return pair[1]


def _chosen(expr: Expr) -> Iterator[Expr]:
    """The values that an expression may have, of one that only chooses."""
    if isinstance(expr, Choice):
        for option in expr.options:
            yield from _chosen(option)
    else:
        yield expr


def _suspect(module: Module, name: str, value: Expr, found: _Kind, place: Node) -> Suspect:
    shown = text_of(module.source, value)
    return Suspect(
        module,
        place,
        f"`{name}` becomes `{shown}`, which is {found.words}",
        effect="the ranks then read other shards than they should, or it fails",
        advice="ask for the rank" if found is _SIZE else "ask for the number of processes",
    )
