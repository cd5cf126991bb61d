"""A generator with a fixed seed, by which a loader or a sampler of torch shuffles."""

from __future__ import annotations

from typing import NamedTuple

from sampler_lint.analysis.values import Ext, ExtObj, Obj, Value
from sampler_lint.domain.concepts import RESTORES, SAMPLER_ARGUMENTS, SEEDS_ONE
from sampler_lint.domain.model import Model
from sampler_lint.domain.samplers import may_shuffle
from sampler_lint.syntax.nodes import Attr, Call, Const, last_name

_MADE = "torch.Generator"
_SEEDED = f"{_MADE}().manual_seed"


class FixedGenerator(NamedTuple):
    """What seeds the generator that a loader or sampler is given, in each run the same."""

    call: Call
    seed: Const


def fixed_generator(model: Model, user: Obj) -> FixedGenerator | None:
    """The generator by which torch's loader or sampler shuffles, if one literal alone seeds it.

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
    seeders = _seeders(model, site)
    call = seeders[0] if len(seeders) == 1 else None
    literal = _literal(call) if call is not None else None
    return FixedGenerator(call, literal) if call is not None and literal is not None else None


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


def _seeders(model: Model, made: Call) -> list[Call | None]:
    """What in its program may seed the generator, or put it into another state.

    None where a call does so to what is not known.
    """
    known: dict[str, dict[Call | None, list[Call | None]]] = model.memo.setdefault(_seeders, {})
    program = model.project.program_of(model.module_of(made.scope))
    if program not in known:
        found = known[program] = {}
        for module in model.project.modules_near(made.scope):
            for call in module.facts.all_calls:
                func = call.func
                if not isinstance(func, Attr):
                    continue
                if SEEDS_ONE.is_call(call) or RESTORES.names(func):
                    for owner in model.flow.values(func.value):
                        if (maker := _maker(model, owner)) is not None:
                            found.setdefault(maker, []).append(call)
                        elif not isinstance(owner, (Ext, ExtObj, Obj)):
                            found.setdefault(None, []).append(None)
    return [*known[program].get(made, ()), *known[program].get(None, ())]


def _literal(call: Call) -> Const | None:
    """The number that a call of ``manual_seed`` is given, if it is written there."""
    given = call.positional
    is_seeding = last_name(call.func) == "manual_seed" and len(call.args) == 1 == len(given)
    seed = given[0] if is_seeding else None
    return seed if isinstance(seed, Const) and type(seed.value) is int else None
