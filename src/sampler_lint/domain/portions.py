"""Data that a rank has taken its share of already, and what divides that among the ranks again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.origins import LOCAL, Hop, Step, depends_on, only, origins
from sampler_lint.analysis.values import Ext, Obj
from sampler_lint.catalog import SPLITS_BY_NODE
from sampler_lint.domain.datasets import is_iterated, is_subset, sampled
from sampler_lint.domain.epoch_state import reach
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.ranks import kinds
from sampler_lint.domain.shares import given_to_sharders
from sampler_lint.parameters import Role, role_of
from sampler_lint.syntax.nodes import Attr, Call, Class, Expr, Index, Other, last_name

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
    is_certain: bool
    """Whether it certainly is the share of one rank."""


def divided_portions(model: Model) -> Iterator[Twice]:
    """Torch's distributed samplers, and frameworks that make their own, over one rank's data."""
    for by, data in _dividers(model):
        found = _shares(model, data)
        if found:
            share, taken = found[0]
            whole = taken.value if isinstance(taken, Index) else _parted(taken)
            is_certain = not isinstance(share, Call) or not _is_asked_inside(model, share)
            yield Twice(by, share, taken, whole, len(found) == 1, is_certain)


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
            for call, sharder, loader in given_to_sharders(model, module, name):
                data = model.flow.argument(loader, "dataset")
                if data is not None and not sharder.leaves:
                    yield call, data


def _parted(taken: Expr) -> Expr | None:
    """What a subset is of."""
    if not isinstance(taken, Call):
        return None
    if isinstance(taken.func, Attr) and last_name(taken.func) == "shard":
        return taken.func.value
    return taken.keyword("dataset") or next(iter(taken.positional), None)


def _shares(model: Model, data: Expr) -> list[tuple[Expr, Expr]]:
    """What takes the rank's share of data, and the share, on each way that it comes from.

    None where a way gives something else.
    """

    def stops(step: Step) -> bool:
        return _taken(model, step.expr) is not None

    ways = [step for step in origins(model.flow, data, _MADE, stop=stops) if step.is_end]
    found = [share for step in ways if (share := _taken(model, step.expr))]
    return found if len(found) == len(ways) else []


def _taken(model: Model, expr: Expr) -> tuple[Expr, Expr] | None:
    """What tells the rank's share in an expression that certainly is no more, and the share."""
    if _is_strided(model, expr):
        return expr, expr
    if not isinstance(expr, Call):
        return None
    if not is_subset(model, expr):
        given = _shared_out(model, expr) or _shared_inside(model, expr)
        return (given, given) if given is not None else None
    chosen = expr.keyword("indices") or next(iter(expr.positional[1:]), None)
    if chosen is None:
        return None
    step = depends_on(model.flow, chosen, lambda e: _is_strided(model, e), LOCAL)
    return (step.expr, expr) if step is not None else None


def _shared_out(model: Model, made: Expr) -> Call | None:
    """The call by which `datasets` gives a rank its part, if something is made of that alone."""
    while isinstance(made, Call):
        if last_name(made.func) == "shard":
            told = _given(made, "index", 1), _given(made, "num_shards", 0)
        elif _splits_by_node(model, made):
            told = _given(made, "rank", 1), _given(made, "world_size", 2)
        else:
            told = None, None
        rank, size = told
        if rank is not None and size is not None and _are_of_ranks(model, rank, size):
            return made
        if not isinstance(made.func, Attr):
            return None
        made = only(model.flow, made.func.value, Hop.ASSIGNED)
    return None


def _shared_inside(model: Model, made: Call) -> Call | None:
    """The call by which the passes over a stream of the tree, which asks for its rank, share it."""
    streams = [v for v in model.flow.values(made) if isinstance(v, Obj)]
    if len(streams) != 1 or not is_iterated(model, streams[0].cls):
        return None
    roles = {Role.RANK, Role.WORLD_SIZE}
    if any(role_of(arg.keyword or "") in roles for arg in made.args):
        return None
    found = reach(model, streams[0].cls, "__iter__") if isinstance(streams[0].cls, Class) else None
    return next(
        (
            call
            for call in (found.calls if found is not None else ())
            if _splits_by_node(model, call) and _given(call, "rank", 1) is not None
        ),
        None,
    )


def _is_asked_inside(model: Model, share: Call) -> bool:
    rank, size = _given(share, "rank", 1), _given(share, "world_size", 2)
    return _splits_by_node(model, share) and (
        rank is None or size is None or not _are_of_ranks(model, rank, size)
    )


def _splits_by_node(model: Model, call: Call) -> bool:
    return any(
        isinstance(value, Ext) and value.dotted in SPLITS_BY_NODE
        for value in model.flow.values(call.func)
    )


def _given(call: Call, name: str, place: int) -> Expr | None:
    return call.keyword(name) or next(iter(call.positional[place : place + 1]), None)


def _are_of_ranks(model: Model, rank: Expr, size: Expr) -> bool:
    return kinds(model, rank) == {"rank"} and kinds(model, size) == {"world size"}


def _is_strided(model: Model, expr: Expr) -> bool:
    """``x[rank::world_size]``, or ``range(rank, end, world_size)``."""
    if isinstance(expr, Index) and isinstance(expr.key, Other) and len(expr.key.parts) > 1:
        first, last = expr.key.parts[0], expr.key.parts[-1]
    elif isinstance(expr, Call) and last_name(expr.func) == "range" and len(expr.positional) == 3:
        first, last = expr.positional[0], expr.positional[2]
    else:
        return False
    return _are_of_ranks(model, first, last)
