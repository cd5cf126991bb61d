"""A generator that a sampler makes and seeds, and that nothing draws from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.values import Ext, ExtObj
from sampler_lint.domain.concepts import DRAW, GENERATORS, NAMESPACES, SEEDS_ALL, SEEDS_ONE
from sampler_lint.domain.draws import global_draw, has_own_generator
from sampler_lint.domain.epoch_state import lookup
from sampler_lint.domain.model import Model
from sampler_lint.domain.ranks import reached
from sampler_lint.edits.seed_fixes import draw_from
from sampler_lint.findings import Grade, Related
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
            if drawn is None or stmt in told:
                continue
            seeding = _idle(model, function, stmt)
            if seeding is None:
                if (left_out := _left_out(model, function, stmt)) is not None:
                    told.add(stmt)
                    yield _beside(model, cls, *left_out)
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


def _left_out(model: Model, function: Function, stmt: Stmt) -> tuple[Call, Call, str] | None:
    """Seeding, a draw of torch behind it that leaves the generator out, and the generator.

    Where another draw of the function takes it.
    """
    name, _ = _made(model, function, stmt)
    seedings = [] if name is None else _seedings(function, name)
    if (
        name is None
        or len(seedings) != 1
        or any(SEEDS_ALL.is_made(call, model.flow.values) for call in function.calls)
    ):
        return None
    given = [
        call
        for call in DRAW.calls_in(function.calls)
        if isinstance(value := call.keyword("generator"), Name) and value.id == name
    ]
    for call in DRAW.calls_in(function.calls) if given else ():
        values = model.flow.values(call.func)
        if (
            (call.row, call.col) > (seedings[0].row, seedings[0].col)
            and not has_own_generator(call)
            and any(isinstance(v, Ext) and v.dotted.rpartition(".")[0] == "torch" for v in values)
        ):
            return seedings[0], call, name
    return None


def _beside(model: Model, cls: Class, seeding: Call, draw: Call, name: str) -> Suspect:
    is_shared = model.trials(cls).sharded
    return Suspect(
        model.module_of(draw.scope),
        draw,
        f"`{unparse(draw.func)}` draws from the process's generator, beside a draw from `{name}`",
        grade=Grade.CERTAIN if is_shared else Grade.LIKELY,
        effect="the seed does not fix the order, and ranks that have drawn differently before "
        "have different orders",
        fix=partial(draw_from, model, seeding, draw) if is_shared else None,
        advice=f"pass `generator={name}`",
        why=(Related(model.place(seeding.scope, seeding), "seeded here"),),
    )


def _made(model: Model, function: Function, stmt: Stmt) -> tuple[str | None, Call | None]:
    """The variable that alone holds the generator which a statement makes, and its making."""
    match stmt:
        case Assign(targets=[Name(id=name)], value=Call() as made):
            if _is_generator(model, made) and len(function.bindings[name]) == 1:
                return name, made
    return None, None


def _seedings(function: Function, name: str) -> list[Call]:
    return [
        call
        for call in function.calls
        if SEEDS_ONE.is_call(call)
        and isinstance(call.func, Attr)
        and isinstance(call.func.value, Name)
        and call.func.value.id == name
    ]


def _idle(model: Model, function: Function, stmt: Stmt) -> Call | None:
    """What seeds the generator that a statement makes, if nothing else is done with it."""
    name, made = _made(model, function, stmt)
    if name is None or made is None:
        return None
    scopes = (function, *function.module.inside(function))
    if any(NAMESPACES.is_call(call) for scope in scopes for call in scope.calls):
        return None
    seedings = _seedings(function, name)
    if sum(1 for scope in scopes for _ in name_reads(scope, name)) > len(seedings):
        return None
    return seedings[0] if seedings else made if made.args else None


def _is_generator(model: Model, made: Call) -> bool:
    return GENERATORS.is_made(made, model.flow.values) or any(
        isinstance(value, ExtObj) and value.dotted.startswith("torch.Generator")
        for value in model.flow.values(made)
    )
