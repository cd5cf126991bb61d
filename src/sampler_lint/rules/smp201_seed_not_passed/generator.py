"""A generator with a fixed seed, by which a loader or a sampler of torch shuffles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint.analysis.values import Ext, ExtObj, Obj, Value
from sampler_lint.domain.concepts import SAMPLER_ARGUMENTS
from sampler_lint.domain.model import Model
from sampler_lint.domain.samplers import may_shuffle
from sampler_lint.syntax.nodes import Attr, Call, Const, last_name

_MADE = "torch.Generator"
_SEEDED = f"{_MADE}().manual_seed"
#: What else may be done to a generator, that does not change what it draws.
_LOOKS = frozenset({"device", "get_state", "initial_seed"})


class FixedGenerator(NamedTuple):
    """What seeds the generator that a loader or sampler is given, in each run the same."""

    call: Call
    seed: Const


def fixed_generator(model: Model, user: Obj) -> FixedGenerator | None:
    """The generator by which torch's loader or sampler shuffles, if a literal alone seeds it.

    torch draws the order of a pass from the generator it is given (torch/utils/data/sampler.py,
    ``RandomSampler.__iter__``); a loader with a sampler draws no order.
    """
    given = model.argument(user, "generator") if isinstance(user.cls, str) else None
    if given is None or not _orders(model, user):
        return None
    made = {_maker(model, value) for value in model.flow.values(given)}
    site = made.pop() if len(made) == 1 else None
    if site is None:
        return None
    seeders = list(_seeders(model, site))
    literals = [_literal(call) for call in seeders]
    first = literals[0] if literals else None
    if first is None or any(each is None or each.value != first.value for each in literals):
        return None
    return FixedGenerator(seeders[0], first)


def _orders(model: Model, user: Obj) -> bool:
    """Whether it is the generator's draws that the order of a pass rests on."""
    if model.role(user) != "loader":
        return may_shuffle(model, user)
    shuffle = model.argument(user, "shuffle")
    return (
        isinstance(shuffle, Const)
        and shuffle.value is True
        and all(model.argument(user, name) is None for name in SAMPLER_ARGUMENTS)
    )


def _maker(model: Model, value: Value) -> Call | None:
    """The call of ``torch.Generator`` that made a value, which may have been seeded at once."""
    if not isinstance(value, ExtObj):
        return None
    if value.dotted == _MADE:
        return value.site
    if value.dotted != _SEEDED or not isinstance(value.site.func, Attr):
        return None
    inner = value.site.func.value
    return inner if isinstance(inner, Call) else None


def _seeders(model: Model, made: Call) -> Iterator[Call]:
    """Everything in its program that may seed the generator, or put it into another state."""
    for module in model.project.modules_near(made.scope):
        for call in module.facts.all_calls:
            func = call.func
            if not isinstance(func, Attr) or func.name in _LOOKS:
                continue
            if func.value is made:
                yield call
            elif func.name in {"manual_seed", "seed", "set_state"}:
                owners = model.flow.values(func.value)
                if any(
                    _maker(model, owner) is made or not isinstance(owner, (Ext, ExtObj, Obj))
                    for owner in owners
                ):
                    yield call


def _literal(call: Call) -> Const | None:
    """The number that a call of ``manual_seed`` is given, if it is written there."""
    given = call.positional
    is_seeding = last_name(call.func) == "manual_seed" and len(call.args) == 1 == len(given)
    seed = given[0] if is_seeding else None
    return seed if isinstance(seed, Const) and type(seed.value) is int else None
