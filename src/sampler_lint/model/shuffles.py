"""How a sampler of the tree seeds its own shuffle."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.model.concepts import BEFORE_PASS, EPOCH, SEED
from sampler_lint.model.draws import Seeded, draws, ingredients, seeded
from sampler_lint.model.facts import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Name,
    expressions,
    last_name,
    statements,
    walk,
)
from sampler_lint.model.flow import Obj, self_class
from sampler_lint.model.linked import DISTRIBUTED_SAMPLER, Model, scopes_inside
from sampler_lint.model.paths import Way, ways, ways_by_caller
from sampler_lint.model.seeds import is_seed_name


def ignores_seed(model: Model, cls: Class) -> Iterator[Seeded]:
    """The generators that the class's own methods seed with the epoch and nothing else."""
    if not any(draws(scope) for scope in scopes_inside(cls)):
        return
    for scope in scopes_inside(cls):
        if not isinstance(scope, Function):
            continue
        within = [scope, *scope.module.inside(scope)]
        for found in seeded(model, scope):
            if not is_epoch_alone(found.seed):
                continue
            # One that the method itself makes is drawn from there; one that is kept, anywhere.
            kept = found.generator is None or scope.name in BEFORE_PASS
            drawn = any(map(draws, within)) and any(_draws_from(each, found) for each in within)
            if kept or drawn or _hands_on(scope, found):
                yield found


def is_epoch_alone(seed: Expr) -> bool:
    """Whether a seed is made of the epoch and numbers, and of no seed."""
    parts = list(ingredients(seed))
    named = [part for part in parts if not isinstance(part, Const)]
    return bool(named) and all(_is_epoch(part) for part in named)


def _is_epoch(part: Expr) -> bool:
    if not isinstance(part, (Name, Attr)):
        return False
    words = (last_name(part) or "").lower().split("_")
    return EPOCH.names(part) and not SEED.names(part) and "per" not in words


def _hands_on(scope: Function, found: Seeded) -> bool:
    """Whether the generator is given to another method."""
    return any(
        isinstance(arg.value, (Name, Attr))
        and (arg.value.id if isinstance(arg.value, Name) else arg.value.name) == found.generator
        for call in scope.calls
        if isinstance(call, Call)
        for arg in call.args
    )


def _draws_from(scope: Function, found: Seeded) -> bool:
    """Whether the scope calls a method of the generator; one that nothing draws from is no use."""
    return any(
        isinstance(call.func, Attr)
        and call is not found.call
        and (
            last_name(call.func.value) == found.generator
            or any(node is found.call for node in walk(call.func))
        )
        for call in scope.calls
    )


def own_seed(model: Model, cls: Class) -> str | None:
    """The attribute in which instances keep a seed, if they certainly have one that can be set."""
    for base in model.flow.mro(cls):
        if not isinstance(base, Class):
            continue
        for scope in scopes_inside(base):
            for store in scope.stores:
                target = store.target
                if (
                    isinstance(target, Attr)
                    and is_seed_name(target.name.lstrip("_"))
                    and self_class(target.value) is base
                ):
                    return target.name
    if DISTRIBUTED_SAMPLER not in model.flow.mro(cls):
        return None
    init = model.flow.method(cls, "__init__")
    if init is None:
        return "seed"
    if isinstance(init, Function) and (
        init.param("seed") is not None or any(param.kind == "kwarg" for param in init.params)
    ):
        passes = any(
            call.keyword("seed") is not None or call.has_double_star
            for call in (model.flow.base_init_calls(init.cls) if init.cls is not None else ())
        )
        return "seed" if passes else None
    return None


def may_shuffle(model: Model, sampler: Obj) -> bool:
    """Whether it shuffles, or does under a setting that is not known here.

    Where all samples are alike no order is another.
    """
    if _are_alike(model, sampler):
        return False
    if isinstance(sampler.cls, Class):
        init = model.flow.method(sampler.cls, "__init__")
        own = init.param("shuffle") if isinstance(init, Function) else None
        iterate = model.flow.method(sampler.cls, "__iter__")
        if own is None and isinstance(init, Function) and isinstance(iterate, Function):
            return model.shuffles(sampler) is not False
        default = own.default if own is not None else None
        default_on = not (isinstance(default, Const) and default.value is False)
    else:
        default_on = True
    given = model.flow.argument(sampler, "shuffle")
    if given is None:
        return default_on
    site = sampler.site
    if site is not None and _is_never_true(ways(model, site, [given])):
        return False
    if _is_anybodys(model, sampler, given):
        return True
    constants = model.flow.constants(given, sampler.through)
    if constants is not None and not any(constants):
        return False
    return not _is_left_false(model, sampler, given)


def _is_never_true(found: list[Way] | None) -> bool:
    """Whether a sampler is built, and on no way with what it is asked for true."""
    return bool(found) and all(way.values[0].truth is False for way in found or ())


def _is_left_false(model: Model, sampler: Obj, given: Expr) -> bool:
    """Whether each caller of the function leads to the sampler with a false value only."""
    site = sampler.site
    if site is None or not isinstance(site.scope, Function):
        return False
    callers = model.flow.callers(site.scope)
    if sampler.through is not None and sampler.through in callers:
        callers = [sampler.through]
    led = [item for item in ways_by_caller(model, site, [given]) if item[0] in callers]
    return bool(led) and all(_is_never_true(found) for _, found in led)


def _are_alike(model: Model, sampler: Obj) -> bool:
    """Whether the data certainly takes no notice of the index: made up, to measure speed with."""
    data = model.flow.argument(sampler, "dataset")
    values = model.flow.values(data) if data is not None else frozenset()
    return bool(values) and all(
        isinstance(value, Obj) and isinstance(value.cls, Class) and _ignores_index(model, value.cls)
        for value in values
    )


def _ignores_index(model: Model, cls: Class) -> bool:
    get = model.flow.method(cls, "__getitem__")
    if not isinstance(get, Function) or len(get.params) != 2 or get.params[1].kind == "vararg":
        return False
    index = get.params[1].name
    inside = [get, *(scope for scope in scopes_inside(cls) if scope.outer is get)]
    return len(get.bindings[index]) == 1 and not any(
        isinstance(node, Name) and node.id == index
        for scope in inside
        for stmt in statements(scope.body)
        for expr in expressions(stmt)
        for node in walk(expr)
    )


def _is_anybodys(model: Model, sampler: Obj, given: Expr) -> bool:
    """Whether an argument is what the callers of a library's public function choose."""
    if sampler.site is None or sampler.through is not None or not isinstance(given, Name):
        return False
    scope = sampler.site.scope
    if not isinstance(scope, Function) or scope.name.startswith("_"):
        return False
    return scope.param(given.id) is not None and model.module_of(scope).is_library(scope)
