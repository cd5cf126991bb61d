"""Whether a run of a program comes to a loop again with the sampler that it has read before."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from sampler_lint.analysis.reaching import is_apart
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import SETS_EPOCH
from sampler_lint.domain.epoch_calls import epoch_samplers, loops_over_stmt
from sampler_lint.domain.epochs import EpochLoop, epoch_loops, trains
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import passes_near
from sampler_lint.domain.programs import is_test
from sampler_lint.remembered import remembered
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import unparse
from sampler_lint.syntax.nodes import Attr, Call, Class, Function, Scope


def runs_again(model: Model, found: EpochLoop) -> bool:
    """Whether a run of the program may come to the loop more than once with one sampler."""
    loader = found.inner.loader
    kept = [each.sampler for each in epoch_samplers(model, loader)] or [loader]
    built = [call for one in kept for call in (one.site, one.through) if call is not None]
    stmts = [call.stmt for call in built if call.stmt is not None]
    making = {each for stmt in stmts for each in loops_over_stmt(model, stmt)}
    if any(each not in making for each in loops_over_stmt(model, found.loop)):
        return True
    beside = (each for one in kept for each in _over(model).get((found.loop.scope, one.site), ()))
    if any(_is_before_or_behind(model, found, other) for other in beside):
        return True
    leading: dict[Scope, dict[Call, None]] = {}
    is_repeated = _leads_again(model, found.loop.scope, _running(model, built), [], leading)
    of_class = any(isinstance(one.site.scope, Class) for one in kept if one.site is not None)
    return is_repeated or any(
        not is_apart(one.stmt, other.stmt) and (of_class or _share(model, one, other))
        for calls in leading.values()
        for one, other in itertools.combinations(_with(model, kept, calls), 2)
        if one.stmt is not None and other.stmt is not None
    )


def is_read_once(model: Model, loader: Obj) -> bool:
    """Whether passes over a loader without a known loop are seen, with all that leads to them."""
    near = passes_near(model, loader.site.scope) if loader.site is not None else []
    found = [each.scope for each in near if loader.may_be(each.loader)]
    leading = closure(found, model.flow.callers_of)
    return bool(found) and not any(
        isinstance(scope, Function) and not model.flow.callers(scope) for scope in leading
    )


@remembered
def _over(model: Model) -> dict[tuple[Scope, Call | None], list[EpochLoop]]:
    """The loops over epochs by their function and where the sampler that they read is built."""
    found: dict[tuple[Scope, Call | None], list[EpochLoop]] = {}
    for loop in epoch_loops(model):
        for each in epoch_samplers(model, loop.inner.loader):
            found.setdefault((loop.loop.scope, each.sampler.site), []).append(loop)
    return found


def _is_before_or_behind(model: Model, found: EpochLoop, other: EpochLoop) -> bool:
    """Whether another loop of the same function trains over the sampler, too: a warm-up, say."""
    loop = other.loop
    if loop is found.loop or is_apart(loop, found.loop):
        return False
    if loop.encloses(found.loop) or found.loop.encloses(loop) or not trains(model, other):
        return False
    # Where the other is told the epoch, the program counts anew in each.
    return not any(SETS_EPOCH.calls_in(loop.scope.calls_in(loop)))


def _running(model: Model, calls: list[Call]) -> set[Scope]:
    """The scopes that run some calls: of themselves, or by what they call."""
    return {*closure((call.scope for call in calls), model.flow.callers_of)}


def _leads_again(
    model: Model,
    scope: Scope,
    making: set[Scope],
    behind: list[Scope],
    leading: dict[Scope, dict[Call, None]],
) -> bool:
    """Collect the calls that lead to a scope, by where they stand; whether it may lead to itself.

    No further than to what makes the loader: that makes another when it runs again. A function that
    Python or a library calls may be called again.
    """
    if not isinstance(scope, Function) or scope in making:
        return False
    callers = model.flow.starters(scope)
    if not callers:
        return scope.name == "<lambda>" or (scope.cls is not None and scope.name.endswith("__"))
    for call in callers:
        if is_test(model.module_of(call.scope)):
            continue
        if call.scope in (scope, *behind):
            return True
        is_known = call.scope in leading
        leading.setdefault(call.scope, {})[call] = None
        onward = [scope, *behind]
        if not is_known and _leads_again(model, call.scope, making, onward, leading):
            return True
    return False


def _with(model: Model, kept: list[Obj], calls: Iterable[Call]) -> list[Call]:
    """The calls but those that hand over loaders which have another sampler."""
    found: list[Call] = []
    for call in calls:
        given = [value for arg in call.args for value in model.flow.values(arg.value)]
        loaders = [each for each in given if model.role(each) == "loader" and isinstance(each, Obj)]
        held = [one.sampler for each in loaders for one in epoch_samplers(model, each)] or loaders
        if not held or any(one.may_be(other) for one in kept for other in held):
            found.append(call)
    return found


def _share(model: Model, one: Call, other: Call) -> bool:
    """Whether two calls, of methods of known objects, may be of one object."""
    if not (isinstance(one.func, Attr) and isinstance(other.func, Attr)):
        return True
    if unparse(one.func.value) == unparse(other.func.value):
        return True
    values = model.flow.values(other.func.value)
    owners = [each for each in model.flow.values(one.func.value) if isinstance(each, Obj)]
    return any(owner.may_be(value) for owner in owners for value in values)
