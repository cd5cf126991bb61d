"""Data that a rank has taken its share of already, and what divides that among the ranks again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.origins import LOCAL, Hop, Step, depends_on, origins
from sampler_lint.domain.datasets import is_subset, sampled
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.ranks import kinds
from sampler_lint.syntax.nodes import Call, Expr, Index, Other, last_name

_MADE = Hop.ASSIGNED | Hop.CALLER | Hop.RETURN | Hop.ATTRIBUTE


class Twice(NamedTuple):
    """Data of one rank that is divided among all."""

    by: Call
    """What divides it."""
    share: Expr
    """What takes the rank's share of it before."""
    taken: Expr
    """The expression that is the share."""
    whole: Expr | None
    """What that takes it of."""
    is_only: bool
    """Whether the data comes from nowhere else."""


def divided_portions(model: Model) -> Iterator[Twice]:
    """Torch's distributed samplers, and frameworks that make their own, over one rank's data."""
    for by, data in _dividers(model):
        found = _shares(model, data)
        if found:
            share, taken = found[0]
            whole = taken.value if isinstance(taken, Index) else _parted(taken)
            yield Twice(by, share, taken, whole, len(found) == 1)


def _dividers(model: Model) -> Iterator[tuple[Call, Expr]]:
    for sampler in model.constructions():
        if sampler.site is None or sampler.cls != DISTRIBUTED_SAMPLER:
            continue
        data, size = sampled(model, sampler), model.argument(sampler, "num_replicas")
        is_of_all = size is None or kinds(model, size) <= {"none", "world size"}
        if data is not None and is_of_all and not is_test(model.module_of(sampler.site.scope)):
            yield sampler.site, data
    for module in model.modules:
        for name in sorted(model.frameworks(module)) if not is_test(module) else ():
            table = catalog.framework(name)
            for call in module.facts.all_calls if table.own_data else ():
                data = call.keyword(table.own_data)
                if data is not None and last_name(call.func) in table.trainers:
                    yield call, data


def _parted(taken: Expr) -> Expr | None:
    """What a subset is of."""
    if not isinstance(taken, Call):
        return None
    return taken.keyword("dataset") or next(iter(taken.positional), None)


def _shares(model: Model, data: Expr) -> list[tuple[Expr, Expr]]:
    """What takes the rank's share of data, and the share, on each way that it comes from.

    None where a way gives something else.
    """

    def stops(step: Step) -> bool:
        return _taken(model, step.expr) is not None

    ways = [step for step in origins(model.flow, data, _MADE, stop=stops) if step.is_end]
    found = [(share, step.expr) for step in ways if (share := _taken(model, step.expr))]
    return found if len(found) == len(ways) else []


def _taken(model: Model, expr: Expr) -> Expr | None:
    """What tells the rank's share in an expression that certainly is no more than that."""
    if _is_strided(model, expr):
        return expr
    if not isinstance(expr, Call):
        return None
    if not is_subset(model, expr):
        return None
    chosen = expr.keyword("indices") or next(iter(expr.positional[1:]), None)
    if chosen is None:
        return None
    step = depends_on(model.flow, chosen, lambda e: _is_strided(model, e), LOCAL)
    return step.expr if step is not None else None


def _is_strided(model: Model, expr: Expr) -> bool:
    """``x[rank::world_size]``, or ``range(rank, end, world_size)``."""
    if isinstance(expr, Index) and isinstance(expr.key, Other) and len(expr.key.parts) > 1:
        first, last = expr.key.parts[0], expr.key.parts[-1]
    elif isinstance(expr, Call) and last_name(expr.func) == "range" and len(expr.positional) == 3:
        first, last = expr.positional[0], expr.positional[2]
    else:
        return False
    return kinds(model, first) == {"rank"} and kinds(model, last) == {"world size"}
