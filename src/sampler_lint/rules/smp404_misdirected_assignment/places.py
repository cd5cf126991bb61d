"""A rank where the number of processes belongs, or the other way round."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.concepts import RANK, WORLD_SIZE
from sampler_lint.domain.model import Model
from sampler_lint.edits.names import text_of
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.nodes import Assign, Attr, Call, Choice, Expr, Name, Node, last_name
from sampler_lint.workspace.project import Module

#: What a name says, what must not be its value, and how both are called.
_KINDS = (
    (RANK, WORLD_SIZE, "the number of processes"),
    (WORLD_SIZE, RANK, "the rank of this process"),
)


def confused_places(model: Model) -> Iterator[Suspect]:
    """``rank = get_world_size()`` and ``num_replicas=get_rank()``, where a name says what it is."""
    for module in model.modules:
        for call in module.facts.all_calls:
            if RANK.is_call(call) or WORLD_SIZE.is_call(call):
                yield from _assigned(module, call)
            for arg in call.args:
                if arg.keyword is not None:
                    for value in _chosen(arg.value):
                        yield from _told(module, arg.keyword, value, value)


def _assigned(module: Module, call: Call) -> Iterator[Suspect]:
    stmt = call.stmt
    if isinstance(stmt, Assign) and any(value is call for value in _chosen(stmt.value)):
        for target in stmt.targets:
            if isinstance(target, (Name, Attr)):
                yield from _told(module, last_name(target), call, stmt)


def _chosen(expr: Expr) -> Iterator[Expr]:
    """The values that an expression may have, of one that only chooses."""
    if isinstance(expr, Choice):
        for option in expr.options:
            yield from _chosen(option)
    else:
        yield expr


def _told(module: Module, name: str | None, value: Expr, place: Node) -> Iterator[Suspect]:
    for means, given, what in _KINDS:
        if means.says(name) and not given.says(name) and given.is_call(value):
            shown = text_of(module.source, value)
            yield Suspect(
                module,
                place,
                f"`{name}` becomes `{shown}`, which is {what}",
                effect="the ranks then read other shards than they should, or it fails",
                advice="ask for the rank" if means is RANK else "ask for the number of processes",
            )
