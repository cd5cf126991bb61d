"""A generator that a sampler makes and seeds, and that nothing draws from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.values import ExtObj
from sampler_lint.domain.concepts import GENERATORS, NAMESPACES, SEEDS_ONE
from sampler_lint.domain.draws import global_draw
from sampler_lint.domain.epoch_state import lookup
from sampler_lint.domain.model import Model
from sampler_lint.domain.ranks import reached
from sampler_lint.edits.seed_fixes import draw_from
from sampler_lint.findings import Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp404_misdirected_assignment.kept_seed import name_reads
from sampler_lint.syntax.navigation import statements, unparse
from sampler_lint.syntax.nodes import Assign, Attr, Call, Class, Function, Name, Stmt


def idle_generators(model: Model, cls: Class, told: set[Stmt]) -> Iterator[Suspect]:
    """``g.manual_seed(seed + epoch)`` where the shuffle is by a module's own generator.

    In what an iteration of the class runs; ``told`` are those that were told of another class.
    """
    iterate = cls.method("__iter__")
    trial = model.epoch_trial(cls) if lookup(model, cls, "set_epoch", None) is not None else None
    if trial is not None and trial.idle:
        return  # SMP104 tells of it
    below = reached(model, iterate) if iterate is not None else ()
    for function in sorted(
        (each for each in below if isinstance(each, Function)),
        key=lambda each: (model.module_of(each).path, each.row, each.col),
    ):
        drawn = global_draw(model, function)
        for stmt in statements(function.body) if drawn is not None else ():
            seeding = _idle(model, function, stmt)
            if drawn is None or seeding is None or stmt in told:
                continue
            told.add(stmt)
            yield Suspect(
                model.module_of(function),
                seeding,
                f"nothing draws from the generator that is seeded here: `{unparse(drawn.func)}` "
                f"draws from the process's",
                effect="neither this seed nor an epoch in it changes the order, and ranks that "
                "have drawn differently before have different orders",
                fix=partial(draw_from, model, seeding, drawn),
                advice="draw from the generator",
                why=(Related(model.place(drawn.scope, drawn), "drawn here"),),
            )


def _idle(model: Model, function: Function, stmt: Stmt) -> Call | None:
    """What seeds the generator that a statement makes, if nothing else is done with it."""
    match stmt:
        case Assign(targets=[Name(id=name)], value=Call() as made):
            pass
        case _:
            return None
    if not _is_generator(model, made) or len(function.bindings[name]) != 1:
        return None
    scopes = (function, *function.module.inside(function))
    if any(NAMESPACES.is_call(call) for scope in scopes for call in scope.calls):
        return None
    seedings = [
        call
        for call in function.calls
        if SEEDS_ONE.is_call(call)
        and isinstance(call.func, Attr)
        and isinstance(call.func.value, Name)
        and call.func.value.id == name
    ]
    if sum(1 for scope in scopes for _ in name_reads(scope, name)) > len(seedings):
        return None
    return seedings[0] if seedings else made if made.args else None


def _is_generator(model: Model, made: Call) -> bool:
    return GENERATORS.is_made(made, model.flow.values) or any(
        isinstance(value, ExtObj) and value.dotted.startswith("torch.Generator")
        for value in model.flow.values(made)
    )
