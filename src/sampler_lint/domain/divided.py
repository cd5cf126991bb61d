"""What orders, or divides, the data that a distributed sampler then divides among the ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sampler_lint.analysis.origins import EVERYWHERE, LOCAL, Hop, Step, origins, scope_of
from sampler_lint.analysis.values import Ext, Lit, Obj
from sampler_lint.catalog.torch import SPLITS
from sampler_lint.domain.agreement import agrees
from sampler_lint.domain.concepts import GENERATORS, ORDERS, RESTORES, SEEDS_ONE
from sampler_lint.domain.conditions import excludes
from sampler_lint.domain.datasets import sampled
from sampler_lint.domain.draws import is_module, is_unseeded, seeded, shuffled_by
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.programs import is_test, program_files
from sampler_lint.domain.rank_terms import RankTerm, differs, drawn_apart
from sampler_lint.domain.ranks import is_guarded
from sampler_lint.domain.samplers import distributed_samplers
from sampler_lint.domain.shards import (
    GlobalDraw,
    is_shared,
    library_drawn_from,
    orders_own_part,
    shared_by_items,
    shared_while_built,
)
from sampler_lint.parameters import Role, role_of
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import same, self_class, unparse
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Name,
    Scope,
    last_name,
)
from sampler_lint.workspace.project import Module


def dividing_samplers(model: Model, program: str) -> list[Obj]:
    """The distributed samplers that a program constructs."""
    return _dividing_by_program(model).get(program, [])


@remembered
def _dividing_by_program(model: Model) -> dict[str, list[Obj]]:
    known: dict[str, list[Obj]] = {}
    for obj in distributed_samplers(model):
        if obj.site is not None:
            of = model.project.program_of(model.module_of(obj.site.scope))
            known.setdefault(of, []).append(obj)
    return known


def is_drawn_once(model: Model, program: str) -> bool:
    """Whether a process that starts the others may draw for all of them."""
    return any(
        model.project.calls_in(program, name) for name in ("spawn", "start_processes", "Process")
    )


# --------------------------------------------------------------------------- the process's own


@remembered
def ordered_before(model: Model, program: str) -> list[GlobalDraw]:
    """What orders, by a global generator, samples or files before they are divided."""
    shuffled = _Shuffled()
    calls = (call for step in _from_all(model, program) for call in _ordering(step, shuffled))
    return [
        GlobalDraw(model.module_of(call.scope), call, library, f"`{last_name(call.func)}`")
        for call in calls
        if (library := library_drawn_from(model, call)) is not None
    ]


def _from_all(model: Model, program: str) -> Iterator[Step]:
    """Where all data comes from that samplers divide, or datasets take their rank's share of."""
    sampled_by = (sampled(model, each) for each in dividing_samplers(model, program))
    for data in dict.fromkeys((*sampled_by, *_read_in_shares(model).get(program, ()))):
        if data is not None:
            yield from _from(model, data)


def is_divided(model: Model, draw: GlobalDraw, program: str) -> bool | None:
    """Whether what draws its order as it is built comes to a sampler that divides it.

    Yes, too, where no such sampler is known, and something else divides the data; no, where others
    of its class are seen to come to one; None where none is.
    """
    if draw.of is None or not dividing_samplers(model, program):
        return True
    built = {
        made.site: not excludes(model, made.site, draw.call)
        for cls in (draw.of, *model.flow.subclasses(draw.of))
        for made in model.flow.built(cls)
    }
    seen = [
        built[step.expr]
        for step in _from_all(model, program)
        if isinstance(step.expr, Call)
        and step.expr in built
        and not any(excludes(model, call, step.expr) for _, call in step.frames[:1])
    ]
    return any(seen) if seen else None


@remembered
def _from(model: Model, data: Expr) -> list[Step]:
    """Where data comes from, found once: much may divide the same."""
    return [*origins(model.flow, data, EVERYWHERE)]


@remembered
def _read_in_shares(model: Model) -> dict[str, list[Expr]]:
    """What the datasets of loaders take their rank's share of, by program.

    Of what an iterable one keeps, in its passes; of anything, while one is built.
    """
    known: dict[str, list[Expr]] = {}
    for loader in model.loaders:
        if loader.site is None:
            continue
        of = model.project.program_of(model.module_of(loader.site.scope))
        for value in model.passed_to(loader, "dataset"):
            if (
                isinstance(value, Obj)
                and isinstance(value.cls, Class)
                and not _is_whole(model, value)
            ):
                shares = (*shared_by_items(model, value.cls), *shared_while_built(model, value.cls))
                known.setdefault(of, []).extend(shares)
    return known


def _is_whole(model: Model, dataset: Obj) -> bool:
    """Whether a dataset may be told that there is one rank, so that its share is all there is."""
    sizes = [n for n in model.flow.params(dataset.cls) or () if role_of(n) is Role.WORLD_SIZE]
    given = (model.argument(dataset, name) for name in sizes)
    return any(each is not None and Lit(1, "int") in model.flow.values(each) for each in given)


class _Shuffled(dict[Scope, dict[str, list[Call]]]):
    """The calls of each scope that shuffle a variable in its place, by its name."""

    def __missing__(self, scope: Scope) -> dict[str, list[Call]]:
        found = self[scope] = {}
        for call in ORDERS.calls_in(scope.calls):
            given = shuffled_by(call)
            if isinstance(given, Name):
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


# --------------------------------------------------------------------------- own generators


class OwnDraw(NamedTuple):
    """A draw that divides or orders the data of all ranks, by a generator with its own seed."""

    call: Call
    seed: Expr
    """What the generator is seeded with, or the call that makes it without a seed."""
    term: RankTerm | None
    """Where the rank enters the seed."""
    source: str
    """What makes it another on each rank, as it is spelled."""


_SEEDED = LOCAL | Hop.CALLER | Hop.RETURN | Hop.ATTRIBUTE


def own_draws(model: Model) -> Iterator[OwnDraw]:
    """The draws before the data is divided whose own generator certainly differs by rank."""
    seen: set[Call] = set()
    shuffled = _Shuffled()
    for program in program_files(model).programs:
        for step in _from_all(model, program):
            made = [step.expr] if isinstance(step.expr, Call) else []
            for call in (*made, *_ordering(step, shuffled)):
                if call in seen:
                    continue
                seen.add(call)
                if (
                    is_test(model.module_of(call.scope))
                    or is_guarded(call)
                    or agrees(call.scope, call)
                ):
                    continue
                found = next(_apart(model, call, program), None)
                if found is not None:
                    yield found


def shared_own_draws(model: Model, module: Module) -> Iterator[OwnDraw]:
    """The draws of a file that rank after rank takes its share of, by generators kept elsewhere.

    All that may seed such a generator differs by rank.
    """
    program = model.project.program_of(module)
    for scope in module.facts.scopes:
        for call in ORDERS.calls_in(scope.calls) if isinstance(scope, Function) else ():
            given = _generator(model, call)
            seeds = _all_seeds(model, given) if given is not None else []
            if not seeds or is_guarded(call) or agrees(scope, call) or not is_shared(model, call):
                continue
            found = [next(_apart_by(model, call, seed, program), None) for seed in seeds]
            if all(found) and not any(
                own is not None and own.term is not None and orders_own_part(model, call, own.term)
                for own in found
            ):
                yield from filter(None, found[:1])


def _all_seeds(model: Model, generator: Expr) -> list[Expr]:
    """All that may seed a generator, or the calls that make it; empty if not all is known."""
    found = [*_seeds_made(model, generator)]
    for step in origins(model.flow, generator, _SEEDED):
        expr = step.expr
        if isinstance(expr, (Name, Attr)):
            for call in _calls_on(model, expr):
                seed = call.positional[0] if call.positional else None
                if seed is None or not SEEDS_ONE.is_call(call):
                    return []
                found.append(seed)
        is_none = isinstance(expr, Const) and expr.value is None
        if step.is_end and not is_none and not _makes_generator(model, expr):
            return []
    return found


def _calls_on(model: Model, generator: Name | Attr) -> Iterator[Call]:
    """The calls by which code sets what a variable or an attribute of ``self`` will draw."""
    cls = self_class(generator.value) if isinstance(generator, Attr) else None
    if cls is None:
        scopes: Iterable[Scope] = [generator.scope]
    else:
        scopes = [s for each in model.flow.own_family(cls) for s in scopes_inside(each)]
    for scope in scopes:
        for call in scope.calls:
            if (
                isinstance(call.func, Attr)
                and same(call.func.value, generator)
                and (SEEDS_ONE.is_call(call) or RESTORES.says(call.func.name))
            ):
                yield call


def _makes_generator(model: Model, expr: Expr) -> bool:
    return isinstance(expr, Call) and (
        GENERATORS.is_made(expr, model.flow.values)
        or SEEDS_ONE.is_call(expr)
        or last_name(expr.func) == "Generator"
    )


def _apart(model: Model, call: Call, program: str) -> Iterator[OwnDraw]:
    given = _generator(model, call)
    for seed in _seeds(model, given) if given is not None else ():
        yield from _apart_by(model, call, seed, program)


def _apart_by(model: Model, call: Call, seed: Expr, program: str) -> Iterator[OwnDraw]:
    """The draw, if what seeds its generator, or the call that makes it, differs by rank."""
    if isinstance(seed, Call) and GENERATORS.is_made(seed, model.flow.values):
        if not is_drawn_once(model, program):
            yield OwnDraw(call, seed, None, f"{unparse(seed.func)}()")
        return
    term = differs(model, seed, scope_of(seed))
    if term is not None:
        yield OwnDraw(call, seed, term, unparse(term.term))
        return
    apart = drawn_apart(model, seed)
    if apart is not None and not is_drawn_once(model, program):
        yield OwnDraw(call, seed, None, apart[1])


def _generator(model: Model, call: Call) -> Expr | None:
    """What a call that orders or divides draws from, where that is said: a generator, or a seed."""
    for value in model.flow.values(call.func):
        if isinstance(value, Ext) and value.dotted in SPLITS:
            _, keyword, position = SPLITS[value.dotted]
            given = call.keyword(keyword)
            if given is None and len(call.positional) > position:
                given = call.positional[position]
            return given
    if not ORDERS.is_call(call):
        return None
    given = call.keyword("generator")
    if given is None and isinstance(call.func, Attr) and not is_module(model, call.func.value):
        given = call.func.value
    return given


def _seeds(model: Model, generator: Expr) -> Iterator[Expr]:
    """What a generator is seeded with, or the call that makes it if that is nothing.

    The number itself where one stands for the generator.
    """
    found = [*_seeds_made(model, generator)]
    yield from found or [generator]


def _seeds_made(model: Model, generator: Expr) -> Iterator[Expr]:
    for step in origins(model.flow, generator, _SEEDED):
        expr = step.expr
        if not isinstance(expr, Call):
            continue
        given = expr.positional[0] if expr.positional else expr.keyword("seed")
        if GENERATORS.is_made(expr, model.flow.values):
            yield expr if given is None or is_unseeded(model, expr) else given
        elif SEEDS_ONE.is_call(expr) and given is not None:
            yield given
        elif last_name(expr.func) == "Generator" and isinstance(expr.stmt, Assign):
            name = last_name(expr.stmt.targets[0])
            for made in seeded(model, step.scope):
                if made.generator == name and made.call is not expr:
                    yield made.seed
