"""Samplers whose order matters to nobody, since nothing is trained on what they order."""

from __future__ import annotations

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import EVALUATES, INFERRING_SCRIPT, INFERS
from sampler_lint.domain.conditions import told_what_for
from sampler_lint.domain.epochs import feeds_training, pass_evaluates, pass_trains
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import Pass, passes, passes_near
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.samplers import data, orders_nothing
from sampler_lint.domain.taking import as_taken
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import unparse
from sampler_lint.syntax.nodes import Assign, Call, last_name


def only_evaluates(model: Model, sampler: Obj) -> bool:
    """Whether the order matters to nobody: the sampler of a validation or inference pass.

    Names say so only where no pass over the sampler is seen to train. Or its data go by no order.
    """
    site = sampler.site
    if site is None:
        return False
    if told_what_for(site) is False or orders_nothing(model, sampler):
        return True
    loaders = _loaders_by_site(model).get(id(site), [])
    seen = [_passes_of(model).get(loader, []) for loader in loaders]
    if feeds_training(model, *loaders) or any(pass_trains(model, p) for each in seen for p in each):
        return False
    module = model.module_of(site.scope)
    if module.is_script and INFERRING_SCRIPT.says(module.name.rpartition(".")[2]):
        return True
    in_sight = bool(seen) and all(each and all(map(_is_without_gradients, each)) for each in seen)
    if in_sight or _is_named_evaluation(site):
        return True
    function = site.scope
    calls = model.flow.callers(function)
    calls = [call for call in calls if not is_test(model.module_of(call.scope))]
    return bool(calls) and all(_is_named_evaluation(call) for call in calls)


def evaluated_in_sight(model: Model, loader: Obj) -> bool:
    """Whether passes over a loader are seen in its program, and each certainly only evaluates."""
    near = passes_near(model, loader.site.scope) if loader.site is not None else []
    seen = [
        found
        for one in near
        if one.loader == loader
        for found in as_taken(model, one)
        if getattr(found.scope, "cls", None) is not loader.cls
    ]  # what its own class goes over is for somebody else
    return bool(seen) and all(pass_evaluates(model, found) for found in seen)


@remembered
def _loaders_by_site(model: Model) -> dict[int, list[Obj]]:
    """By the call that builds a sampler, the loaders with it; found once."""
    by_site: dict[int, list[Obj]] = {}
    for loader in model.loaders:
        for value in model.passed_to(loader, "sampler"):
            if isinstance(value, Obj):
                by_site.setdefault(id(value.site), []).append(loader)
    return by_site


@remembered
def _passes_of(model: Model) -> dict[Obj, list[Pass]]:
    """The passes over each loader, those by a generator where its batches are used."""
    found: dict[Obj, list[Pass]] = {}
    for each in (each for one in passes(model) for each in as_taken(model, one)):
        found.setdefault(each.loader, []).append(each)
    return found


def _is_without_gradients(found: Pass) -> bool:
    """Whether a pass is made under ``no_grad`` or on a model that was told to evaluate."""
    decorators = (last_name(d) for d in getattr(found.scope, "decorators", ()))
    return not EVALUATES.called.isdisjoint({*found.scope.called, *decorators})


def _is_named_evaluation(call: Call) -> bool:
    """Whether the names around a call say that what it makes is not for training."""
    names = [call.scope.name]
    if isinstance(call.stmt, Assign):
        names += [unparse(target) for target in call.stmt.targets]
    names += [unparse(expr) for expr in data(call)]
    return any(EVALUATES.says(name) or INFERS.says(name) for name in names)
