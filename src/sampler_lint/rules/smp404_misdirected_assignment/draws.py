"""Seeds and generators that a sampler keeps or makes, and that nothing draws with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.values import Ext, ExtObj
from sampler_lint.domain.concepts import DRAW, GENERATORS, NAMESPACES, SAMPLER, SEEDS_ALL, SEEDS_ONE
from sampler_lint.domain.draws import global_draw, has_own_generator
from sampler_lint.domain.epoch_state import lookup
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.programs import once_a_program
from sampler_lint.domain.ranks import reached
from sampler_lint.edits.seed_fixes import draw_from
from sampler_lint.findings import Grade, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import (
    expressions,
    on_super,
    self_class,
    statements,
    unparse,
    walk,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Expr,
    Function,
    Name,
    Scope,
    Stmt,
    last_name,
)
from sampler_lint.workspace.project import Module

# A seed that a sampler takes and keeps, and that nothing draws with.


def seed_not_read(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """A ``seed`` for the constructor that no method reads; they draw without it."""
    init = cls.method("__init__")
    iterate = model.flow.method(cls, "__iter__")
    if init is None or init.param("seed") is None or not isinstance(iterate, Function):
        return
    if model.attributes(cls).open is not None or not _is_only_kept(model, cls, init):
        return
    scopes = [s for one in model.flow.own_family(cls) for s in scopes_inside(one)]
    if any(r.name == "seed" for scope in scopes for r in scope.reads) or any(
        last_name(call.func) == "__iter__" and on_super(call.func)
        for scope in scopes
        for call in scope.calls
    ):
        return
    if _reads_seed_of_a_sampler(model, cls):
        return
    drawn = next(
        (
            call
            for method in cls.methods
            if method is iterate or _is_called(iterate, method)
            for call in [global_draw(model, method)]
            if call is not None
        ),
        None,
    )
    if drawn is None:
        return
    store = next(
        (s for s in init.stores if isinstance(s.target, Attr) and s.target.name == "seed"), None
    )
    param = init.param("seed")
    assert param is not None
    effect = "this seed does not change the order"
    if not any(read.name == "epoch" for scope in scopes for read in scope.reads):
        effect = "neither this seed nor `set_epoch` changes the order"
    message = (
        f"nothing reads the `seed` of `{cls.name}`: `{unparse(drawn.func)}` draws from the "
        f"process's generator"
    )
    why = (Related(model.place(drawn.scope, drawn), "drawn here"),)
    yield Suspect(
        module,
        store.target if store is not None else param.node,
        message,
        why=why,
        effect=effect,
        advice="draw from a generator seeded with `self.seed + self.epoch`",
    )


@once_a_program
def _reads_seed_of_a_sampler(model: Model, near: Scope) -> bool:
    """Whether some code of the program reads ``x_sampler.seed``."""
    return any(
        read.name == "seed" and SAMPLER.names(read.value)
        for module in model.project.modules_near(near)
        for scope in module.facts.scopes
        for read in scope.reads
    )


def _is_only_kept(model: Model, cls: Class, init: Function) -> bool:
    """Whether the constructor does no more with its ``seed`` than to keep or pass it on."""
    keeping: set[Stmt | None] = {call.stmt for call in model.flow.base_init_calls(cls)}
    keeping |= {s.stmt for s in init.stores if isinstance(s.value, Name) and s.value.id == "seed"}
    if len(init.bindings.get("seed", ())) > 1:
        return False
    return all(read in keeping for read in name_reads(init, "seed")) and bool(keeping)


def _is_called(caller: Function, method: Function) -> bool:
    return any(
        isinstance(call.func, Attr)
        and call.func.name == method.name
        and self_class(call.func.value) is not None
        for call in caller.calls
    )


def name_reads(scope: Scope, name: str) -> Iterator[Stmt]:
    """The statements of a scope that read a name, once for each read."""
    for stmt in statements(scope.body):
        targets = stmt.targets if isinstance(stmt, Assign) else []
        for expr in expressions(stmt):
            if any(expr is target for target in targets) and isinstance(expr, Name):
                continue
            for node in walk(expr):
                if isinstance(node, Name) and node.id == name:
                    yield stmt
    if isinstance(scope, Function) and scope.define is None:  # a lambda is read where it stands
        yield from (r for r in scope.returns if r.value and _mentions(r.value, name))


def _mentions(expr: Expr, name: str) -> bool:
    return any(isinstance(node, Name) and node.id == name for node in walk(expr))


# A generator that a sampler makes and seeds, and that nothing draws from.


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
