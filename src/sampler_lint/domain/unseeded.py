"""Data that each process orders or divides by a generator that nothing seeds.

``random``, numpy and torch begin with the system's entropy, so every rank draws in its own way; so
do the workers of its loaders, which torch seeds by a number that it draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sampler_lint import catalog
from sampler_lint.analysis.origins import passed_as
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.agreement import agrees
from sampler_lint.domain.datasets import sampled
from sampler_lint.domain.divided import dividing_samplers, is_drawn_once, ordered_before
from sampler_lint.domain.injection import injections
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test, program_files
from sampler_lint.domain.ranks import is_guarded
from sampler_lint.domain.seeds import seeding_files
from sampler_lint.domain.shards import GlobalDraw, draws, shared_draws
from sampler_lint.syntax.nodes import Class, Expr


def unseeded_draws(model: Model) -> Iterator[tuple[GlobalDraw, bool]]:
    """The draws that decide which samples a rank gets, each in another way.

    With each, whether a sampler is seen to divide the data. A framework divides it as well, in a
    program that may just as well run as one process.
    """
    for program in program_files(model).programs:
        drawn = draws(model, program)
        dividing = dividing_samplers(model, program)
        found = [(draw, True) for draw in _sharded(model, dividing, drawn)]
        found += [(draw, True) for draw in ordered_before(model, program)]
        if any(draw.of is not None for draw in drawn):
            given = _classes(model, _given_to_framework(model, program))
            found += [(draw, False) for draw in drawn if draw.of in given]
        shared = [draw for draw in shared_draws(model, program) if draw.drawn_by(model)]
        found += [(draw, True) for draw in shared]
        if is_drawn_once(model, program):
            # Samplers are drawn from in each pass, by each process.
            found = [(draw, True) for draw in shared if draw.call.scope.name != "__init__"]
        if not found:
            continue
        for draw, certain in found:
            if (
                not is_test(draw.module)
                and not is_guarded(draw.call)
                and not agrees(draw.call.scope, draw.call)
                and not _may_be_seeded(model, program, draw)
            ):
                yield draw, certain


def _may_be_seeded(model: Model, program: str, draw: GlobalDraw) -> bool:
    """Whether anything may seed what a draw comes from."""
    files = program_files(model)
    by_torch = draw.library == "torch" or "worker" in draw.drawn_by(model)
    seeding = seeding_files(model, program, also_torch=by_torch)
    if any(files.share_importer(draw.module, module) for module in seeding):
        return True
    if not by_torch:
        return False
    if not files.has_script(draw.module):
        return True  # who runs it may seed torch
    near = (m for m in model.project.modules_in(program) if files.share_importer(draw.module, m))
    return any(
        catalog.contracts(name, "seeds")
        for module in near
        for name in injections(model).trainers(module)
    )


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
    injection = injections(model)
    for loader in model.loaders:
        if loader.site is not None and {"accelerate", "lightning"} & injection.trainers(
            model.module_of(loader.site.scope)
        ):
            yield model.argument(loader, "dataset")
    for module in model.project.modules_in(program):
        if "transformers" in injection.trainers(module):
            for call in module.facts.all_calls:
                yield from passed_as(model.flow, call, "train_dataset")


def _classes(model: Model, given: Iterable[Expr | None]) -> set[Class | str]:
    """The classes of what may be given."""
    return {
        value.cls
        for each in given
        if each is not None
        for value in model.flow.values(each)
        if isinstance(value, Obj)
    }
