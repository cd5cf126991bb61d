"""Where a sampler draws at random, and what its generators are seeded with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint.analysis.values import Ext, ExtObj, ModRef
from sampler_lint.domain.concepts import (
    DRAW,
    ENTROPY,
    GENERATORS,
    GENERATORS_OF_PROCESS,
    ORDERS,
    SEEDS_ALL,
    SEEDS_ONE,
    called_name,
)
from sampler_lint.domain.model import Model, calls_inside
from sampler_lint.syntax.navigation import self_class, unparse, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    Function,
    If,
    Name,
    Scope,
    last_name,
)


class Seeded(NamedTuple):
    """A call that seeds a generator."""

    call: Call
    seed: Expr
    generator: str | None
    """How the generator that it seeds is spelled; None for a library's own one."""


def shuffled_by(call: Call) -> Expr | None:
    """What a call of a ``shuffle`` puts into another order in its place."""
    is_shuffle = called_name(call) == "shuffle"
    return next(iter(call.positional), None) if is_shuffle else None


def shuffles_of(scope: Scope, name: str) -> Iterator[Call]:
    """The calls of a scope that shuffle a variable in its place."""
    for call in ORDERS.calls_in(scope.calls):
        given = shuffled_by(call)
        if isinstance(given, Name) and given.id == name:
            yield call


def draws(scope: Scope) -> bool:
    """Whether the scope itself draws at random."""
    return any(map(DRAW.is_call, scope.calls))


#: The keywords by which a draw is given a generator of its own, or the seed of one.
_OWN_GENERATOR = ("generator", "random", "random_state")


def has_own_generator(call: Call) -> bool:
    """Whether a draw is given a generator of its own, or a seed for one."""
    return any(call.keyword(name) is not None for name in _OWN_GENERATOR)


def global_draw(model: Model, scope: Scope) -> Call | None:
    """A call of the scope that draws from a generator of the whole process."""
    for call in DRAW.calls_in(scope.calls):
        if not has_own_generator(call) and any(
            isinstance(value, Ext) and value.dotted.rpartition(".")[0] in GENERATORS_OF_PROCESS
            for value in model.flow.values(call.func)
        ):
            return call
    return None


def kept_draw(model: Model, scope: Function) -> Call | None:
    """A call of the method that draws from a generator which its object keeps from pass to pass.

    One that the method seeds, or makes, begins anew.
    """
    anew = {store.target.name for store in scope.stores if isinstance(store.target, Attr)}
    anew |= {found.generator for found in seeded(model, scope) if found.generator is not None}
    for call in DRAW.calls_in(scope.calls):
        given = call.keyword("generator")
        if given is None and isinstance(call.func, Attr):
            made = model.flow.values(call.func.value)
            sites = [value.site for value in made if isinstance(value, ExtObj)]
            is_generator = any(GENERATORS.is_made(site, model.flow.values) for site in sites)
            given = call.func.value if is_generator else None
        if isinstance(given, Attr) and self_class(given.value) and given.name not in anew:
            return call
    return None


def is_drawn(expr: Expr) -> bool:
    """Whether a process draws the value for itself, so that no two ranks need agree on it."""
    return any(DRAW.is_call(node) or ENTROPY.is_call(node) for node in walk(expr))


def own_entropy(model: Model, expr: Expr) -> str | None:
    """The call in ``expr`` by which each process gets a value of its own, as it is spelled."""
    for node in walk(expr):
        if isinstance(node, Call) and ENTROPY.is_made(node, model.flow.values):
            return f"{unparse(node.func)}()"
    return None


def is_unseeded(model: Model, call: Call) -> bool:
    """Whether a call makes a generator that begins with the system's entropy."""
    if not GENERATORS.is_made(call, model.flow.values):
        return False
    given = call.positional[0] if call.positional else call.keyword("seed")
    return given is None or (isinstance(given, Const) and given.value is None)


def drawn_before_seeding(model: Model, expr: Expr) -> str | None:
    """The draw that an unseeded process makes for itself, as it is spelled.

    Where the function seeds the process only afterwards, each process has drawn another value.
    """
    draw, library = draw_of_process(model, expr) or (None, "")
    if draw is None or library == "torch":
        return None  # torch, too, may have been seeded before the function is called
    seeders = [call for call in draw.scope.calls if _seeds_process(model, call)]
    is_late = seeders and all((c.row, c.col) > (draw.row, draw.col) for c in seeders)
    return f"{unparse(draw.func)}()" if is_late else None


def draw_of_process(model: Model, expr: Expr) -> tuple[Call, str] | None:
    """A draw from a generator of the process, and whose: it starts from the system's entropy."""
    for node in walk(expr):
        if isinstance(node, Call) and (DRAW.is_call(node) or ENTROPY.is_call(node)):
            values = [v for v in model.flow.values(node.func) if isinstance(v, Ext)]
            owners = {v.dotted.rpartition(".")[0] for v in values} & GENERATORS_OF_PROCESS
            if owners and not has_own_generator(node):
                return node, min(owners)
    return None


def _seeds_process(model: Model, call: Call) -> bool:
    """Whether a call seeds a generator of the process, itself or one function further."""
    if SEEDS_ALL.is_made(call, model.flow.values):
        return True
    return any(
        SEEDS_ALL.is_made(inner, model.flow.values)
        for function in model.flow.callees(call)
        for inner in function.calls
    )


def seeded(model: Model, scope: Scope) -> Iterator[Seeded]:
    """Every call of the scope that seeds a generator, with what it is seeded with."""
    for call in scope.calls:
        given = call.positional[0] if call.positional else call.keyword("seed")
        if given is None:
            continue
        if GENERATORS.is_made(call, model.flow.values):
            yield Seeded(call, given, _assigned_to(call))
        elif SEEDS_ALL.is_made(call, model.flow.values):
            yield Seeded(call, given, None)
        elif SEEDS_ONE.is_call(call) and isinstance(call.func, Attr):
            made = call.func.value
            if isinstance(made, Call):
                yield Seeded(call, given, _assigned_to(call) or _assigned_to(made))
            elif not is_module(model, made):
                yield Seeded(call, given, last_name(made))


def is_module(model: Model, expr: Expr) -> bool:
    """Whether an expression is a module (``random`` in ``random.seed``), not what a call gave."""
    return any(
        isinstance(value, ModRef) or (isinstance(value, Ext) and "()" not in value.dotted)
        for value in model.flow.values(expr)
    )


def _assigned_to(call: Call) -> str | None:
    from sampler_lint.syntax.nodes import Assign

    if isinstance(call.stmt, Assign) and any(node is call for node in walk(call.stmt.value)):
        return last_name(call.stmt.targets[0])
    return None


def bare_generator(cls: Class, init: Function, parameter: str) -> bool:
    """Whether the class draws from a new ``torch.Generator()`` when ``parameter`` is None.

    Such a generator always starts at torch's default seed (67280421310721).
    """
    if not any(last_name(call.func) == "Generator" for call in init.calls):
        return False
    if any(DRAW.is_call(call) or ENTROPY.is_call(call) for call in init.calls):
        return False
    seeders = [
        call
        for call in calls_inside(cls)
        if SEEDS_ONE.is_call(call) or last_name(call.func) == "set_state"
    ]
    return bool(seeders) and all(_only_if_given(call, parameter) for call in seeders)


def _only_if_given(call: Call, parameter: str) -> bool:
    if call.stmt is None:
        return False
    return any(
        isinstance(stmt, If)
        and not stmt.orelse
        and any(
            isinstance(node, (Name, Attr)) and (last_name(node) or "").lstrip("_") == parameter
            for node in walk(stmt.test)
        )
        for stmt in call.stmt.ancestors()
    )
