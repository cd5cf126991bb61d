"""Data that each process orders or divides by a generator that nothing seeds.

``random`` and numpy begin with the system's entropy (torch begins with one seed, always), so every
rank draws in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sampler_lint.analysis.origins import EVERYWHERE, Step, origins
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import ORDERS
from sampler_lint.domain.datasets import sampled
from sampler_lint.domain.injection import Injection
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test, program_files
from sampler_lint.domain.rank_terms import agrees
from sampler_lint.domain.ranks import is_guarded
from sampler_lint.domain.samplers import is_distributed_sampler
from sampler_lint.domain.seeds import runs_in_worker
from sampler_lint.domain.shards import GlobalDraw, draws, library_drawn_from
from sampler_lint.syntax.nodes import Call, Expr, Function, Name, last_name


def unseeded_draws(model: Model) -> Iterator[tuple[GlobalDraw, bool]]:
    """The draws that decide which samples a rank gets, each in another way.

    With each, whether a sampler is seen to divide the data. A framework divides it as well, in a
    program that may just as well run as one process.
    """
    for program in program_files(model).programs:
        drawn = draws(model, program)
        found = [(draw, True) for draw in drawn if _is_sharded(model, program, draw)]
        found += [(draw, True) for draw in _drawn_on_the_way(model, program)]
        found += [(draw, False) for draw in drawn if _is_given_to_framework(model, program, draw)]
        for draw, certain in found:
            if (
                draw.library != "torch"
                and not is_test(draw.module)
                and not is_guarded(draw.call)
                and not agrees(draw.call.scope)
                and not _may_be_seeded(model, program, draw)
                and not _is_drawn_once(model, program)
            ):
                yield draw, certain


def _drawn_on_the_way(model: Model, program: str) -> Iterator[GlobalDraw]:
    """What orders the samples of a dataset before a sampler divides it."""
    for sampler in _dividing(model, program):
        data = sampled(model, sampler)
        for step in origins(model.flow, data, EVERYWHERE) if data is not None else ():
            for call in _ordering(step):
                what, library = f"`{last_name(call.func)}`", library_drawn_from(model, call)
                if library is not None:
                    yield GlobalDraw(model.module_of(call.scope), call, library, what)


def _ordering(step: Step) -> Iterator[Call]:
    """The call that orders what the step is, or that shuffled it in its place before."""
    if isinstance(step.expr, Call) and ORDERS.is_call(step.expr):
        yield step.expr
    elif isinstance(step.expr, Name):
        until = (step.expr.row, step.expr.col)
        for call in ORDERS.calls_in(step.scope.calls):
            given = call.positional[0] if call.positional else None
            is_it = isinstance(given, Name) and given.id == step.expr.id
            if is_it and last_name(call.func) == "shuffle" and (call.row, call.col) < until:
                yield call


def _is_sharded(model: Model, program: str, draw: GlobalDraw) -> bool:
    """Whether a distributed sampler divides the data that the draw decides on."""
    if draw.of is not None:
        given = (sampled(model, sampler) for sampler in _dividing(model, program))
        return _are_of(model, given, draw)
    files = program_files(model)
    return any(
        files.share_importer(draw.module, model.module_of(sampler.site.scope))
        for sampler in _dividing(model, program)
        if sampler.site is not None
    )


def _is_given_to_framework(model: Model, program: str, draw: GlobalDraw) -> bool:
    """Whether a framework that divides what it is given gets the dataset that is ordered."""
    if draw.of is None:
        return False
    injection = Injection(model)
    given = [
        model.flow.argument(loader, "dataset")
        for loader in model.loaders
        if loader.site is not None
        and {"accelerate", "lightning"} & injection.trainers(model.module_of(loader.site.scope))
    ]
    given += [
        call.keyword("train_dataset")
        for module in model.project.modules_in(program)
        if "transformers" in injection.trainers(module)
        for call in module.facts.all_calls
    ]
    return _are_of(model, given, draw)


def _are_of(model: Model, given: Iterable[Expr | None], draw: GlobalDraw) -> bool:
    return any(
        isinstance(value, Obj) and value.cls is draw.of
        for each in given
        if each is not None
        for value in model.flow.values(each)
    )


def _dividing(model: Model, program: str) -> Iterator[Obj]:
    return (
        obj
        for obj in model.constructions()
        if obj.site is not None
        and model.project.program_of(model.module_of(obj.site.scope)) == program
        and is_distributed_sampler(model, obj)
    )


def _may_be_seeded(model: Model, program: str, draw: GlobalDraw) -> bool:
    """Whether anything in the files that run with the draw seeds more than torch's generators."""
    files = program_files(model)
    return any(
        files.share_importer(draw.module, module)
        and any(_seeds(model, call) for call in module.facts.all_calls)
        for module in files.holding(program, _SEEDING.search)
    )


_SEEDING = re.compile(rb"seed\w{0,40}[ \t]*\(|enable_full_determinism")


def _seeds(model: Model, call: Call) -> bool:
    name = (last_name(call.func) or "").lower()
    return (
        ("seed" in name or name == "enable_full_determinism")
        and "manual_seed" not in name
        and not any(
            isinstance(scope, Function) and runs_in_worker(model, scope)
            for scope in call.scope.outward()
        )
    )


def _is_drawn_once(model: Model, program: str) -> bool:
    """Whether a process that starts the others may draw for all of them."""
    return any(
        model.project.calls_in(program, name) for name in ("spawn", "start_processes", "Process")
    )
