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
from sampler_lint.syntax.nodes import Call, Class, Expr, Function, Name, Scope, last_name
from sampler_lint.workspace.project import Module


def unseeded_draws(model: Model) -> Iterator[tuple[GlobalDraw, bool]]:
    """The draws that decide which samples a rank gets, each in another way.

    With each, whether a sampler is seen to divide the data. A framework divides it as well, in a
    program that may just as well run as one process.
    """
    for program in program_files(model).programs:
        drawn = draws(model, program)
        dividing = _dividing(model, program)
        found = [(draw, True) for draw in _sharded(model, dividing, drawn)]
        found += [(draw, True) for draw in _drawn_on_the_way(model, dividing)]
        if any(draw.of is not None for draw in drawn):
            given = _classes(model, _given_to_framework(model, program))
            found += [(draw, False) for draw in drawn if draw.of in given]
        if not found or _is_drawn_once(model, program):
            continue
        seeding = _seeding(model, program)
        for draw, certain in found:
            if (
                draw.library != "torch"
                and not is_test(draw.module)
                and not is_guarded(draw.call)
                and not agrees(draw.call.scope)
                and not any(
                    program_files(model).share_importer(draw.module, module) for module in seeding
                )
            ):
                yield draw, certain


def _drawn_on_the_way(model: Model, dividing: list[Obj]) -> Iterator[GlobalDraw]:
    """What orders the samples of a dataset before a sampler divides it."""
    shuffled = _Shuffled()
    for sampler in dividing:
        data = sampled(model, sampler)
        for step in origins(model.flow, data, EVERYWHERE) if data is not None else ():
            for call in _ordering(step, shuffled):
                what, library = f"`{last_name(call.func)}`", library_drawn_from(model, call)
                if library is not None:
                    yield GlobalDraw(model.module_of(call.scope), call, library, what)


class _Shuffled(dict[Scope, dict[str, list[Call]]]):
    """The calls of each scope that shuffle a variable in its place, by its name."""

    def __missing__(self, scope: Scope) -> dict[str, list[Call]]:
        found = self[scope] = {}
        for call in ORDERS.calls_in(scope.calls):
            given = call.positional[0] if call.positional else None
            if isinstance(given, Name) and last_name(call.func) == "shuffle":
                found.setdefault(given.id, []).append(call)
        return found


def _ordering(step: Step, shuffled: _Shuffled) -> Iterator[Call]:
    """The call that orders what the step is, or that shuffled it in its place before."""
    if isinstance(step.expr, Call) and ORDERS.is_call(step.expr):
        yield step.expr
    elif isinstance(step.expr, Name):
        until = (step.expr.row, step.expr.col)
        for call in shuffled[step.scope].get(step.expr.id, ()):
            if (call.row, call.col) < until:
                yield call


def _sharded(
    model: Model, dividing: list[Obj], drawn: Iterable[GlobalDraw]
) -> Iterator[GlobalDraw]:
    """The draws that decide on data which a distributed sampler divides."""
    files = program_files(model)
    given = _classes(model, (sampled(model, sampler) for sampler in dividing))
    sites = (sampler.site for sampler in dividing)
    modules = {model.module_of(site.scope) for site in sites if site is not None}
    for draw in drawn:
        if draw.of is not None:
            if draw.of in given:
                yield draw
        elif any(files.share_importer(draw.module, module) for module in modules):
            yield draw


def _given_to_framework(model: Model, program: str) -> Iterator[Expr | None]:
    """The datasets that a framework gets, which divides what it is given."""
    injection = Injection(model)
    for loader in model.loaders:
        if loader.site is not None and {"accelerate", "lightning"} & injection.trainers(
            model.module_of(loader.site.scope)
        ):
            yield model.flow.argument(loader, "dataset")
    for module in model.project.modules_in(program):
        if "transformers" in injection.trainers(module):
            for call in module.facts.all_calls:
                yield call.keyword("train_dataset")


def _classes(model: Model, given: Iterable[Expr | None]) -> set[Class | str]:
    """The classes of what may be given."""
    return {
        value.cls
        for each in given
        if each is not None
        for value in model.flow.values(each)
        if isinstance(value, Obj)
    }


def _dividing(model: Model, program: str) -> list[Obj]:
    """The distributed samplers that a program constructs."""
    return [
        obj
        for obj in model.constructions()
        if obj.site is not None
        and model.project.program_of(model.module_of(obj.site.scope)) == program
        and is_distributed_sampler(model, obj)
    ]


def _seeding(model: Model, program: str) -> list[Module]:
    """The files of a program that seed more than torch's generators."""
    return [
        module
        for module in program_files(model).holding(program, _SEEDING.search)
        if any(_seeds(model, call) for call in module.facts.all_calls)
    ]


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
