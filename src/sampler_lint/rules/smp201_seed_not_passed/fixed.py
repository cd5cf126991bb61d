"""The fixed seed that a sampler or a generator keeps, where it is from, and where it matters."""

from __future__ import annotations

from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.analysis.origins import Hop, only, origins, parameter_of
from sampler_lint.analysis.values import Ext, ExtObj, Obj, Value
from sampler_lint.domain.concepts import (
    RESTORES,
    SAMPLER_ARGUMENTS,
    SEEDS_ONE,
)
from sampler_lint.domain.draws import bare_generator, draws, seeded
from sampler_lint.domain.epoch_state import takes_order_of_torch
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model, own_scopes
from sampler_lint.domain.programs import is_test, once_a_program
from sampler_lint.domain.samplers import may_shuffle
from sampler_lint.domain.seeds import is_seed_name
from sampler_lint.edits.seed_fixes import called
from sampler_lint.syntax.navigation import walk
from sampler_lint.syntax.nodes import (
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

_BARE = f"{catalog.GENERATOR_SEED} (that of a new `torch.Generator()`)"


class Unpassed(NamedTuple):
    """A function of the tree with a seed, and its calls, none of which passes one."""

    function: Function
    parameter: str
    default: int
    calls: tuple[Call, ...]


class Fixed(NamedTuple):
    """The seed a sampler keeps: the parameter it takes it by, and the literal it gets."""

    parameter: str
    given: Expr | None
    value: str
    takes_none: bool = False
    """Whether None is the parameter's own default."""
    unpassed: tuple[Unpassed, ...] = ()
    """The factories whose default it is, as no call in the tree passes another."""


def fixed_seed(model: Model, sampler: Obj) -> Fixed | None:
    """The fixed seed that a sampler is certainly built with, if it is."""
    if isinstance(sampler.cls, str):
        if model.is_a(sampler, DISTRIBUTED_SAMPLER) is not True:
            return None
        parameter, default = "seed", "0"
    else:
        taken = _seed_parameter(model, sampler.cls)
        if taken is None:
            return None
        parameter, default = taken
    given = model.flow.argument(sampler, parameter)
    if given is None:
        if model.flow.may_be_passed(sampler, parameter) and not _never_passed(
            model, sampler, parameter
        ):
            return None
        none = default == _BARE
        return Fixed(parameter, None, f"seed {default}", none) if default else None
    if isinstance(given, Const) and isinstance(given.value, int):
        return Fixed(parameter, given, f"the literal seed {given.value}")
    constant = only(model.flow, given, Hop.ASSIGNED)
    if isinstance(constant, Const) and isinstance(constant.value, int):
        return Fixed(parameter, given, f"the constant seed {constant.value}")
    unpassed = _unpassed(model, given)
    if unpassed:
        told = f"the default seed {unpassed[0].default}"
        return Fixed(parameter, given, told, unpassed=tuple(unpassed))
    return None


def _unpassed(model: Model, given: Expr) -> list[Unpassed]:
    """Where the value comes from, if it is only ever the default of parameters."""
    found: list[Unpassed] = []
    for step in origins(model.flow, given, Hop.CALLER):
        taken = parameter_of(step.expr)
        if taken is not None and not step.is_end:
            function, param = taken
            if (
                len(function.bindings[param.name]) > 1
                or function.decorators
                or _is_for_others(model, function)
                or called(function) in _handed_on(model, function)
            ):
                return []
            continue
        filled = parameter_of(step.towards.expr) if step.towards is not None else None
        value = step.expr.value if isinstance(step.expr, Const) else None
        if filled is None or step.expr is not filled[1].default or type(value) is not int:
            return []
        function, param = filled
        calls = model.flow.callers(function)
        missing = tuple(call for call in calls if passed(function, param, call) is MISSING)
        found.append(Unpassed(function, param.name, value, missing))
    return found


def _is_for_others(model: Model, function: Function) -> bool:
    """Whether a function of a library has no caller in the tree, tests aside."""
    return model.module_of(function).is_library(function) and all(
        is_test(model.module_of(call.scope)) for call in model.flow.callers(function)
    )


@once_a_program
def _handed_on(model: Model, near: Scope) -> set[str | None]:
    """The names of what is passed, in a program, to something that may call it."""
    return {
        last_name(arg.value)
        for module in model.project.modules_near(near)
        for call in module.facts.all_calls
        for arg in call.args
    }


def _seed_parameter(model: Model, cls: Class) -> tuple[str, str] | None:
    """The parameter by which a class takes the seed of its shuffle, and its default."""
    init = model.flow.method(cls, "__init__")
    distributed = model.is_a(cls, DISTRIBUTED_SAMPLER) is True
    if init is None:
        return ("seed", "0") if distributed and _shuffles_by_seed(model, cls) else None
    if not isinstance(init, Function):
        return None
    param = next((param for param in init.params if is_seed_name(param.name)), None)
    if param is None:
        hands_on = any(param.kind == "kwarg" for param in init.params) and not any(
            call.keyword("seed") is not None for call in init.calls
        )
        takes = distributed and hands_on and _shuffles_by_seed(model, cls)
        return ("seed", "0") if takes else None
    if not _draws_by_seed(model, cls, init, param.name):
        return None
    if isinstance(param.default, Const) and isinstance(param.default.value, int):
        return param.name, str(param.default.value)
    if isinstance(param.default, Const) and param.default.value is None:
        return param.name, _BARE if bare_generator(cls, init, param.name) else ""
    return param.name, ""


def _shuffles_by_seed(model: Model, cls: Class) -> bool:
    """Whether the class's own methods read a seed, or leave the shuffle to torch's."""
    scopes = [scope for scope in own_scopes(model, cls) if scope.name != "__init__"]
    return takes_order_of_torch(model, cls) or any(
        is_seed_name(read.name.lstrip("_")) for scope in scopes for read in scope.reads
    )


def _draws_by_seed(model: Model, cls: Class, init: Function, name: str) -> bool:
    """Whether the class draws by what it is given as the parameter ``name``."""
    if takes_order_of_torch(model, cls):
        return True
    if not any(draws(scope) for scope in own_scopes(model, cls)):
        return False
    seeded_at_once = any(
        isinstance(node, Name) and node.id == name
        for found in seeded(model, init)
        for node in walk(found.seed)
    )
    return seeded_at_once or _shuffles_by_seed(model, cls)


def _never_passed(model: Model, sampler: Obj, parameter: str) -> bool:
    """Whether ``*args``/``**kwargs`` of a factory bring no seed from any call of the tree."""
    site = sampler.site
    assert site is not None
    function = site.scope
    if not isinstance(function, Function):
        return False
    own = {param.name: param for param in function.params}
    for arg in site.args:
        if arg.stars:
            kind = "vararg" if arg.stars == 1 else "kwarg"
            if not isinstance(arg.value, Name) or arg.value.id not in own:
                return False
            if own[arg.value.id].kind != kind or len(function.bindings[arg.value.id]) != 1:
                return False
    calls = model.flow.callers(function)
    takes = [p for p in function.params if p.is_positional]
    bound = function.is_bound
    return bool(calls) and all(
        call.keyword(parameter) is None
        and not call.has_star
        and not call.has_double_star
        and len(call.positional) + bound <= len(takes)
        for call in calls
    )


# A generator with a fixed seed, by which a loader or a sampler of torch shuffles.


_MADE = "torch.Generator"
_SEEDED = f"{_MADE}().manual_seed"


def refusing(model: Model, module: Module, sampler: Obj, parameter: str) -> str:
    """The versions of a library, of those a file may run with, whose class takes no such argument.

    ``any version`` where it never does, empty where it always does.
    """
    if not isinstance(sampler.cls, str) or (table := catalog.table_of(sampler.cls)) is None:
        return ""
    known = catalog.constructors(sampler.cls)
    if known and parameter not in {*known[0].params, *known[0].keywords}:
        return "any version"
    versions = model.versions(module, table, sampler.cls.partition(".")[0])
    lacking = (each for each in known[1:] if parameter not in {*each.params, *each.keywords})
    return next((str(each.versions) for each in lacking if versions.may_be(each.versions)), "")


class FixedGenerator(NamedTuple):
    """What seeds the generator that a loader or sampler is given, in each run the same."""

    call: Call
    seed: Const


def fixed_generator(model: Model, user: Obj) -> FixedGenerator | None:
    """The generator by which torch's loader or sampler shuffles, if one literal alone seeds it.

    torch draws the order of a pass from the generator it is given (torch/utils/data/sampler.py,
    ``RandomSampler.__iter__``); a loader with a sampler draws no order.
    """
    given = model.argument(user, "generator") if isinstance(user.cls, str) else None
    if given is None or not _orders(model, user):
        return None
    made = {_maker(model, value) for value in model.flow.values(given)}
    site = made.pop() if len(made) == 1 else None
    if site is None:
        return None
    found = _seeders(model, site.scope)
    seeders = [*found.get(site, ()), *found.get(None, ())]
    call = seeders[0] if len(seeders) == 1 else None
    literal = _literal(call) if call is not None else None
    return FixedGenerator(call, literal) if call is not None and literal is not None else None


def _orders(model: Model, user: Obj) -> bool:
    """Whether it is the generator's draws that the order of a pass rests on."""
    if model.role(user) != "loader":
        return may_shuffle(model, user)
    shuffle = model.argument(user, "shuffle")
    return (
        isinstance(shuffle, Const)
        and shuffle.value is True
        and all(model.argument(user, name) is None for name in SAMPLER_ARGUMENTS)
    )


def _maker(model: Model, value: Value) -> Call | None:
    """The call of ``torch.Generator`` that made a value, which may have been seeded at once."""
    if not isinstance(value, ExtObj):
        return None
    if value.dotted == _MADE:
        return value.site
    if value.dotted != _SEEDED or not isinstance(value.site.func, Attr):
        return None
    inner = value.site.func.value
    return inner if isinstance(inner, Call) else None


@once_a_program
def _seeders(model: Model, near: Scope) -> dict[Call | None, list[Call | None]]:
    """What may seed a generator, or put it into another state, by the call that makes it.

    None where a call does so to what is not known.
    """
    found: dict[Call | None, list[Call | None]] = {}
    for module in model.project.modules_near(near):
        for call in module.facts.all_calls:
            func = call.func
            if not isinstance(func, Attr):
                continue
            if SEEDS_ONE.is_call(call) or RESTORES.names(func):
                for owner in model.flow.values(func.value):
                    if (maker := _maker(model, owner)) is not None:
                        found.setdefault(maker, []).append(call)
                    elif not isinstance(owner, (Ext, ExtObj, Obj)):
                        found.setdefault(None, []).append(None)
    return found


def _literal(call: Call) -> Const | None:
    """The number that a call of ``manual_seed`` is given, if it is written there."""
    given = call.positional
    is_seeding = last_name(call.func) == "manual_seed" and len(call.args) == 1 == len(given)
    seed = given[0] if is_seeding else None
    return seed if isinstance(seed, Const) and type(seed.value) is int else None


# Samplers whose order matters to nobody.
