"""Loaders that each epoch builds anew, with a generator that has the same seed in all of them."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.origins import LOCAL, Hop, Step, only, origins, scope_of
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import EPOCH, SEEDS_ONE
from sampler_lint.domain.epoch_state import seed_argument
from sampler_lint.domain.epochs import EpochLoop, loops_that_build, trains
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import built_outside_tests
from sampler_lint.syntax.navigation import same
from sampler_lint.syntax.nodes import Attr, Call, Const, Name


def seeded_alike(model: Model) -> Iterator[tuple[Call, Obj]]:
    """What seeds the generator by which a loader shuffles alike in each epoch, with the loader."""
    for loader, _, _ in built_outside_tests(model, model.loaders):
        if model.argument(loader, "generator") is None:
            continue
        for found in loops_that_build(model, loader):
            call = _seeding(model, found)
            if call is not None and trains(model, found):
                yield call, loader
                break


def _seeding(model: Model, found: EpochLoop) -> Call | None:
    """The only call in a turn that seeds the generator of the loader that the turn builds."""
    loader = found.inner.loader
    given, shuffle = (model.argument(loader, name) for name in ("generator", "shuffle"))
    site = loader.site
    if site is None or given is None or scope_of(given) is not site.scope:
        return None
    if not (isinstance(shuffle, Const) and shuffle.value is True) or any(model.samplers_of(loader)):
        return None
    made = only(model.flow, given, Hop.ASSIGNED)
    calls = [
        call
        for call in site.scope.calls
        if SEEDS_ONE.is_call(call) and isinstance(call.func, Attr)
        if call is made or same(call.func.value, given)
    ]
    call = calls[0] if len(calls) == 1 else None
    seed = seed_argument(call) if call is not None else None
    if call is None or call.stmt is None or seed is None:
        return None
    in_turn = site.scope is not found.loop.scope or found.loop.encloses(call.stmt)
    steps = origins(model.flow, seed, LOCAL | Hop.CALLER)
    return call if in_turn and all(_stays(model, found, step) for step in steps) else None


def _stays(model: Model, found: EpochLoop, step: Step) -> bool:
    """Whether a part of a seed is the same in each turn: a number, or what no turn sets."""
    expr = step.expr
    if isinstance(expr, (Name, Attr)) and EPOCH.names(expr):
        return False
    if isinstance(expr, Name):
        bound = [each for scope in found.scopes for each in scope.bindings.get(expr.id, ())]
        return not any(
            each.how == "aug" or (each.stmt is not None and found.loop.encloses(each.stmt))
            for each in bound
        )
    if isinstance(expr, Attr):
        stores = model.project.stores_near(expr.name, step.scope)
        return all(store.scope.name == "__init__" for store in stores)
    return not step.is_end or isinstance(expr, Const)
