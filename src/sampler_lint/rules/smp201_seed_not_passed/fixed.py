"""The fixed seed that a sampler keeps, and where its default comes from."""

from __future__ import annotations

from typing import NamedTuple

from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.analysis.origins import Hop, only, origins, parameter_of
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.draws import bare_generator, draws, seeded
from sampler_lint.domain.epoch_state import takes_order_of_torch
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model, scopes_inside
from sampler_lint.domain.seeds import is_seed_name
from sampler_lint.edits.seed_fixes import called
from sampler_lint.syntax.navigation import walk
from sampler_lint.syntax.nodes import Call, Class, Const, Expr, Function, Name, Scope, last_name

#: The seed of a new generator (torch: c10/core/GeneratorImpl.h, ``default_rng_seed_val``).
_BARE = "67280421310721 (that of a new `torch.Generator()`)"


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
                or model.module_of(function).is_library(function)
                or _is_handed_on(model, function)
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


def _is_handed_on(model: Model, function: Function) -> bool:
    """Whether a function is passed, in its program, to something that may call it."""
    program = model.project.program_of(model.module_of(function))
    known: dict[str, set[str | None]] = model.memo.setdefault(_is_handed_on, {})
    if program not in known:
        known[program] = {
            last_name(arg.value)
            for module in model.project.modules_near(function)
            for call in module.facts.all_calls
            for arg in call.args
        }
    return called(function) in known[program]


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
    scopes = [scope for scope in _scopes(model, cls) if scope.name != "__init__"]
    return takes_order_of_torch(model, cls) or any(
        is_seed_name(read.name.lstrip("_")) for scope in scopes for read in scope.reads
    )


def _scopes(model: Model, cls: Class) -> list[Scope]:
    """The scopes inside the class and its bases in the tree."""
    bases = [base for base in model.flow.mro(cls) if isinstance(base, Class)]
    return [scope for base in bases for scope in scopes_inside(base)]


def _draws_by_seed(model: Model, cls: Class, init: Function, name: str) -> bool:
    """Whether the class draws by what it is given as the parameter ``name``."""
    if takes_order_of_torch(model, cls):
        return True
    if not any(draws(scope) for scope in _scopes(model, cls)):
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
