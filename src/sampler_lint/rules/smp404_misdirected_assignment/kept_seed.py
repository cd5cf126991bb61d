"""A seed that a sampler takes and keeps, and that nothing draws with."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.concepts import SAMPLER
from sampler_lint.domain.draws import global_draw
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.findings import Related
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
    Class,
    Expr,
    Function,
    Name,
    Scope,
    Stmt,
    last_name,
)
from sampler_lint.workspace.project import Module


def seed_not_read(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """A ``seed`` for the constructor that no method reads; they draw without it."""
    init = cls.method("__init__")
    iterate = model.flow.method(cls, "__iter__")
    if init is None or init.param("seed") is None or not isinstance(iterate, Function):
        return
    if model.attributes(cls).open is not None or not _is_only_kept(model, cls, init):
        return
    family = [*model.flow.mro(cls), *model.flow.subclasses(cls)]
    scopes = [s for one in family if isinstance(one, Class) for s in scopes_inside(one)]
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


def _reads_seed_of_a_sampler(model: Model, near: Class) -> bool:
    """Whether some code of the program reads ``x_sampler.seed``."""
    programs: dict[str, bool] = model.memo.setdefault(_reads_seed_of_a_sampler, {})
    program = model.project.program_of(model.module_of(near))
    known = programs.get(program)
    if known is None:
        known = programs[program] = any(
            read.name == "seed" and SAMPLER.names(read.value)
            for module in model.project.modules_near(near)
            for scope in module.facts.scopes
            for read in scope.reads
        )
    return known


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
