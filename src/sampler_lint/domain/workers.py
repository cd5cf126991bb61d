"""What the worker processes of a loader do: what seeds them, and what draws in them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from sampler_lint.analysis.origins import LOCAL, Hop, Step, ends, given_by, origins
from sampler_lint.analysis.points_to import Flow
from sampler_lint.analysis.values import (
    NONE,
    Ext,
    ExtObj,
    FuncRef,
    Obj,
    Pack,
    Partial,
    Value,
    Why,
)
from sampler_lint.catalog.torch import RANDOM_TRANSFORMS, TRANSFORMS
from sampler_lint.domain.concepts import (
    DRAW,
    EPOCH,
    GENERATORS,
    GIVES_STATE,
    RANK,
    RESTORES,
    SEEDS_ALL,
    SEEDS_ONE,
    WORLD_SIZE,
)
from sampler_lint.domain.epoch_state import reach
from sampler_lint.domain.model import Model
from sampler_lint.domain.options import options_of
from sampler_lint.domain.wrapping import parameter_kept
from sampler_lint.findings import Grade
from sampler_lint.limits import DEEPEST_WRAPPING, MOST_SEARCHED_FOR_STEP
from sampler_lint.remembered import remembered
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import owner_of, self_class
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    For,
    Function,
    Name,
    Scope,
    Store,
    While,
    last_name,
)

_MADE = Hop.ASSIGNED | Hop.OPERAND | Hop.TEST | Hop.ARGUMENT
#: What modules that draw have besides: generators of one's own, and the state of theirs.
_NO_DRAWS = GENERATORS.called | SEEDS_ONE.called | {"Generator"}


def several_workers(model: Model, loader: Obj, least: int) -> Grade | None:
    """How sure it is that a loader may have that many workers: likely if that is not written here.

    An option has as many as it has by default. None if it certainly has fewer.
    """
    given = model.argument(loader, "num_workers")
    if given is None:
        return None
    numbers = model.flow.constants(given, loader.through)
    if numbers is None and not _by_default(model, given, least):
        return Grade.LIKELY
    may = numbers is None or any(type(n) is int and n >= least for n in numbers)
    return Grade.CERTAIN if may else None


def _by_default(model: Model, given: Expr, least: int) -> bool:
    """Whether a number is an option that is so high if nobody sets it."""
    return any(
        type(default.value) is int and default.value >= least
        for step in origins(model.flow, given, Hop.ASSIGNED | Hop.CALLER | Hop.ATTRIBUTE)
        if step.is_end and isinstance(step.expr, Attr)
        for call in options_of(
            model, model.project.program_of(model.module_of(step.scope)), step.expr
        )
        if isinstance(default := call.keyword("default"), Const)
    )


def may_be_given(model: Model, loader: Obj, name: str) -> bool:
    """Whether a loader may get something besides None for a parameter, as far as the tree says.

    Where only a caller outside may choose, there is nothing for all who do not.
    """
    if model.flow.may_be_passed(loader, name):
        return True
    values = model.passed_to(loader, name)
    left = {value for value in values if getattr(value, "why", None) is not Why.CHOSEN}
    return bool(values) and left != {NONE}


class Seeding(NamedTuple):
    """Where a worker seeds a generator of its process."""

    call: Call
    seed: Expr
    library: str
    """The module whose generator that is."""


def seedings_alike(model: Model, loader: Obj) -> Iterator[Seeding]:
    """The seedings by ``worker_init_fn`` whose seed is the same in each epoch."""
    for value in model.passed_to(loader, "worker_init_fn"):
        function = _function(model.flow, value)
        if function is None:
            continue
        within: set[Scope] = {function, *function.module.inside(function)}
        for seeding in _seedings(model, function):
            if _stays(model, seeding.seed, within):
                yield seeding


def _seedings(model: Model, function: Function, depth: int = 0) -> Iterator[Seeding]:
    """The calls of a function that seed a generator of the process, or have a helper do so."""
    for call in function.calls:
        library = _library(model, call)
        given = call.positional[0] if call.positional else call.keyword("seed")
        if given is not None and library and SEEDS_ALL.is_made(call, model.flow.values):
            yield Seeding(call, given, library)
            continue
        for helper in model.flow.callees(call) if depth < DEEPEST_WRAPPING else ():
            for seeding in _seedings(model, helper, depth + 1):
                made_of = [*ends(model.flow, seeding.seed, LOCAL)]
                told = {given_by(model.flow, call, each) for each in made_of}
                told -= {each for each in made_of if isinstance(each, Const)} | {None}
                for seed in told if len(told) == 1 else ():
                    assert seed is not None
                    yield Seeding(call, seed, seeding.library)


def _function(flow: Flow, value: Value) -> Function | None:
    """What is called in the worker."""
    if isinstance(value, Partial) and value.site.positional:
        value = next(iter(flow.values(value.site.positional[0])), value)
    if isinstance(value, Obj):
        method = flow.method(value.cls, "__call__")
        return method if isinstance(method, Function) else None
    return value.function if isinstance(value, FuncRef) else None


def _library(model: Model, call: Call) -> str | None:
    """The module whose own generator a function that is called has to do with."""
    for value in model.flow.values(call.func):
        if isinstance(value, Ext) and "()" not in value.dotted:
            library = value.dotted.rpartition(".")[0]
            return "torch" if library == "torch.random" else library
    return None


def _stays(model: Model, seed: Expr, within: set[Scope]) -> bool:
    """Whether a seed certainly is the same in each epoch: of what was there before the workers."""
    for step in origins(model.flow, seed, _MADE):
        expr = step.expr
        if isinstance(expr, (Name, Attr)) and EPOCH.names(expr):
            return False
        if step.is_end and not _is_told(model, step, within):
            return False
        owner = owner_of(expr) if isinstance(expr, Name) else None
        is_own = owner in within  # it is what it was as the call began
        bindings = owner.bindings[expr.id] if isinstance(expr, Name) and owner else ()
        if any(each.how == "aug" for each in bindings) and not is_own:
            return False
        if isinstance(expr, Attr) and any(
            map(_moves, model.project.stores_near(expr.name, step.scope))
        ):
            return False
    return True


def _moves(store: Store) -> bool:
    """Whether a store may bring another value in each epoch."""
    in_loop = any(isinstance(each, (For, While)) for each in store.stmt.ancestors())
    return store.how == "aug" or in_loop


def _is_told(model: Model, end: Step, within: set[Scope]) -> bool:
    """Whether a worker finds the same value in each epoch."""
    expr = end.expr
    if end.scope not in within:
        return True
    if isinstance(expr, Call):
        return RANK.is_call(expr) or WORLD_SIZE.is_call(expr)
    if isinstance(expr, Attr):
        steps = origins(model.flow, expr.value, Hop.ASSIGNED, scope=end.scope)
        return all(
            not isinstance(made.expr, Call)
            # All that it tells is the same in each epoch, but for the seed.
            or (last_name(made.expr.func) == "get_worker_info" and expr.name != "seed")
            for made in steps
            if made.is_end and made.scope in within
        )
    return isinstance(expr, (Const, Name))


# --------------------------------------------------------------------------- what runs in workers


def draw_in_workers(model: Model, dataset: Obj | ExtObj, library: str) -> Call | None:
    """A call that draws an item's numbers from a module's own generator."""

    def called(function: Function) -> list[Function]:
        # An object that is called is one that this dataset holds: see `parts`.
        return [each for each in model.flow.called_by(function) if each.name != "__call__"]

    own = (f for part in parts(model, dataset) for f in _functions_of(model, part))
    for function in islice(closure(own, called), MOST_SEARCHED_FOR_STEP):
        for call in function.calls:
            if _library(model, call) == library and _draws(call, library):
                return call
    transforms = (part for part in _parts(model, dataset) if isinstance(part, ExtObj))
    if library == "torch":
        return next((each.site for each in transforms if _is_random(each.dotted)), None)
    return None


def _is_random(dotted: str) -> bool:
    """Whether it is a transform of torchvision that draws, as all do by torch's generator."""
    name = dotted.rpartition(".")[2]
    return dotted.startswith(TRANSFORMS) and name.startswith(RANDOM_TRANSFORMS)


def draw_of_copies(model: Model, part: Obj) -> Call | None:
    """A draw from a generator that a dataset, or what it holds, keeps: each worker has a copy.

    None where anything that a worker runs may make or seed the generator.
    """
    cls = part.cls
    if not isinstance(cls, Class):
        return None
    found = reach(model, cls, *WORKED)
    if found.opaque or any(SEEDS_ONE.is_call(c) or RESTORES.names(c.func) for c in found.calls):
        return None
    made = {
        store.target.name
        for function in found.functions
        for store in function.stores
        if isinstance(store.target, Attr)
    }
    for function in sorted(found.functions, key=lambda each: (each.row, each.col)):
        for call in function.calls:
            given = call.keyword("generator")
            if given is None and isinstance(call.func, Attr):
                given = call.func.value
            if (
                isinstance(given, Attr)
                and self_class(given.value) is not None
                and _draws(call, "numpy.random")
                and given.name not in made
                and _is_generator(model, given)
            ):
                return call
    return None


def _is_generator(model: Model, expr: Expr) -> bool:
    values = model.flow.values(expr)
    sites = [value.site for value in values if isinstance(value, ExtObj)]
    return (
        bool(values)
        and len(sites) == len(values)
        and all(
            GENERATORS.is_made(site, model.flow.values)
            or any(
                isinstance(value, Ext) and value.dotted.startswith("torch.Generator")
                for value in model.flow.values(site.func)
            )
            for site in sites
        )
    )


def _draws(call: Call, library: str) -> bool:
    """Whether a function of a module that draws does so."""
    if library == "torch":
        return DRAW.is_call(call) or DRAW.says(last_name(call.func))
    name = last_name(call.func)
    return name not in _NO_DRAWS and not (GIVES_STATE.says(name) or RESTORES.says(name))


def parts(model: Model, value: Value) -> Iterator[Obj | FuncRef]:
    """What a worker's copy of a dataset consists of: objects and functions, transforms too."""
    for part in _parts(model, value):
        if isinstance(part, FuncRef) or (isinstance(part, Obj) and isinstance(part.cls, Class)):
            yield part


def _parts(model: Model, value: Value) -> Iterator[Value]:
    """The same, with what libraries and containers put between."""
    todo, seen = [(value, 0)], {value}
    for part, depth in todo:
        yield part
        if depth <= DEEPEST_WRAPPING:
            # A transform in lists of lists is reached by many ways: it is looked at once.
            inside = [each for each in _parts_inside(model, part) if each not in seen]
            seen.update(inside)
            todo += ((each, depth + 1) for each in dict.fromkeys(inside))


@remembered
def _parts_inside(model: Model, value: Value) -> list[Value]:
    """What a value itself is made of."""
    inside: list[Value] = []
    if isinstance(value, Pack):
        inside = [each for item in value.items for each in model.flow.values(item)]
    elif isinstance(value, Obj) and isinstance(value.cls, Class):
        names = {read.name for read in reach(model, value.cls, *WORKED).self_reads()}
        inside = [each for name in sorted(names) for each in held(model, value, value.cls, name)]
    elif isinstance(value, (ExtObj, Obj)) and value.site is not None:
        inside = [each for arg in value.site.args for each in model.flow.values(arg.value)]
    return inside


#: What a worker runs for an item.
WORKED = ("__iter__", "__getitem__", "__getitems__", "__call__", "forward")


def _functions_of(model: Model, part: Obj | FuncRef) -> list[Function]:
    if isinstance(part, FuncRef):
        return [part.function]
    assert isinstance(part.cls, Class)
    found = reach(model, part.cls, *WORKED)
    return sorted(found.functions, key=lambda each: (each.row, each.col))


def held(model: Model, obj: Obj, cls: Class, name: str) -> frozenset[Value]:
    """What an object keeps in an attribute: what it was given, not others of its class."""
    param = parameter_kept(model, cls, name) if obj.site is not None else None
    if param is not None and param.kind == "vararg" and obj.site is not None:
        given_all = obj.site.positional  # those of parameters before it among them: no harm
        return frozenset(value for each in given_all for value in model.flow.values(each))
    given = model.argument(obj, param.name) if param is not None else None
    if param is None or model.flow.may_be_passed(obj, param.name):
        return model.flow.ask_field(obj, name)
    given = given if given is not None else param.default
    return model.flow.values(given) if given is not None else frozenset()
