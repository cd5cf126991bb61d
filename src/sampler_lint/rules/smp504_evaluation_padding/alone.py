"""Evaluations to which one rank alone comes, with a loader that holds its own share."""

from __future__ import annotations

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.conditions import contradict, tests
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import Pass
from sampler_lint.domain.rank_terms import runs_on_one_rank
from sampler_lint.findings import Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp504_evaluation_padding.counting import counts_inline, sums_up
from sampler_lint.syntax.navigation import operands, unparse
from sampler_lint.syntax.nodes import Call, Function, Scope, Stmt


def alone(model: Model, found: Pass, sampler: Obj) -> Suspect | None:
    """An evaluation that only one rank makes: it sees its own share of the samples, no more."""
    asked = _asked(model, found, sampler)
    if asked is None or not (
        sums_up(model, found.scope, found.stmt) or counts_inline(model, found)
    ):
        return None
    is_here = getattr(found.source, "scope", found.scope) is found.scope
    return Suspect(
        model.module_of(found.scope),
        found.source if is_here else found.iterated,
        f"one rank alone evaluates over `{unparse(found.source)}`, and it has only its own share",
        why=(
            Related(model.place(asked.scope, asked), "only one rank gets here"),
            Related(model.place_of(sampler), "this sampler gives each rank its part"),
        ),
        effect="with N processes, 1/N of the samples are evaluated",
        advice="evaluate on every rank and bring the results together, or without a sampler there",
    )


def _asked(model: Model, found: Pass, sampler: Obj) -> Stmt | None:
    """The statement that only one rank comes to, on each way to the pass."""
    if _is_of_one_rank(model, found.stmt):
        return found.stmt
    ways = [
        call
        for call in ways_with(model, found, sampler) or ()
        if call is not None and _gives(model, call, found.loader)
    ]
    if not ways or not all(_is_of_one_rank(model, call) for call in ways):
        return None
    return ways[0].stmt


def ways_with(model: Model, found: Pass, sampler: Obj) -> list[Call | None]:
    """The calls that lead to a pass in a run that builds the sampler; ``[None]`` if none is known.

    Where one process has no sampler, and it alone comes here, there are none.
    """
    scope = found.scope
    calls = model.flow.callers(scope) if isinstance(scope, Function) else []
    built = [each for each in (sampler.site, sampler.through) if each is not None]
    judged: dict[Scope, bool] = {scope: False}
    left = [call for call in calls if _is_on_way(model, built, call, judged)]
    return [*left] if calls else [None]


def _is_on_way(model: Model, built: list[Call], call: Call, judged: dict[Scope, bool]) -> bool:
    """Whether a run that comes to some calls may come to another, by one of the ways there."""
    if contradict(model, built, [call]):
        return False
    scope = call.scope
    if scope not in judged:
        judged[scope] = False  # a function that calls itself comes from elsewhere too
        calls = model.flow.callers(scope) if isinstance(scope, Function) else []
        judged[scope] = not calls or any(_is_on_way(model, built, c, judged) for c in calls)
    return judged[scope]


def _gives(model: Model, call: Call, loader: Obj) -> bool:
    """Whether a call may hand a loader in, as far as it hands any in."""
    given = [value for arg in call.args for value in model.flow.values(arg.value)]
    loaders = [value for value in given if model.role(value) == "loader"]
    return not loaders or any(map(loader.may_be, loaders))


def _is_of_one_rank(model: Model, place: Stmt | Call) -> bool:
    stmt = place.stmt if isinstance(place, Call) else place
    return stmt is not None and any(
        runs_on_one_rank(model, each, stmt.scope)
        for test, answer in tests(model, place)
        if answer
        for each in operands(test)
    )
