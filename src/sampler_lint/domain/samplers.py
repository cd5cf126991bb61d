"""What a sampler does: whether it shuffles, by which epoch and which seed, and for whom."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import TypeAlias

from sampler_lint.analysis.asked import apart
from sampler_lint.analysis.declared import shuffles as declared_shuffles
from sampler_lint.analysis.origins import LOCAL, ends, part_of
from sampler_lint.analysis.values import NONE, ClassRef, Ext, Lit, Obj, Unknown, Value
from sampler_lint.catalog import KnownClass, factory, known_mro
from sampler_lint.catalog.declared import SAMPLER as DECLARED_SAMPLER
from sampler_lint.domain.concepts import (
    BEFORE_PASS,
    EPOCH,
    SAMPLER,
    SAMPLER_ARGUMENTS,
    SEED,
    SEEDS_ALL,
)
from sampler_lint.domain.conditions import excludes
from sampler_lint.domain.draws import Seeded, draws, global_draw, kept_draw, seeded
from sampler_lint.domain.epoch_state import (
    advances_itself,
    draws_by_no_seed,
    draws_by_seeds,
    epoch_state,
    reach,
    reorders_itself,
    uses_epoch,
)
from sampler_lint.domain.model import (
    BATCH_SAMPLER,
    DISTRIBUTED_SAMPLER,
    Model,
    own_scopes,
    scopes_inside,
)
from sampler_lint.domain.paths import Way, ways, ways_by_caller
from sampler_lint.domain.seeds import is_seed_name
from sampler_lint.domain.wrapping import iterated_attributes, parameter_kept
from sampler_lint.limits import DEEPEST_WRAPPING
from sampler_lint.parameters import Role, role_of
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import nodes_in, self_class, self_stores, statements, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Bin,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Name,
    Other,
    Seq,
    last_name,
)


def ignores_seed(model: Model, cls: Class) -> Iterator[Seeded]:
    """The generators that the class's own methods seed with the epoch and nothing else.

    Not where there is no seed to use, and the other branch seeds the same one otherwise.
    """
    found = list(_seeded_to_draw(model, cls))
    alone = [each for each in found if is_epoch_alone(model, each.seed)]
    others = [each for each in found if each not in alone]
    return (
        each
        for each in alone
        if not any(
            each.generator == other.generator and apart([each.call], [other.call])
            for other in others
        )
    )


def seeds_constantly(model: Model, cls: Class) -> Iterator[Seeded]:
    """The generators that the class's own methods seed with a number, and never otherwise."""
    found = list(_seeded_to_draw(model, cls))
    constant = [each for each in found if _is_number(model, each.seed)]
    others = {each.generator for each in found if each not in constant}
    return (each for each in constant if each.generator not in others)


def _is_number(model: Model, seed: Expr) -> bool:
    return all(
        isinstance(part, Const) and type(part.value) is int
        for part in ends(model.flow, seed, LOCAL)
    )


def _seeded_to_draw(model: Model, cls: Class) -> Iterator[Seeded]:
    """The generators that the class's own methods seed and it, or one made of it, draws from."""
    family = (cls, *model.flow.subclasses(cls))
    is_drawn = any(draws(scope) for each in family for scope in scopes_inside(each))
    if not is_drawn and not _goes_over_draws(model, cls):
        return
    for scope in scopes_inside(cls):
        if not isinstance(scope, Function):
            continue
        within = [scope, *scope.module.inside(scope)]
        for found in seeded(model, scope):
            # One that the method itself makes is drawn from there; one that is kept, anywhere.
            kept = found.generator is None or scope.name in BEFORE_PASS
            drawn = any(map(draws, within)) and any(_draws_from(each, found) for each in within)
            if kept or drawn or _hands_on(scope, found):
                yield found


def _goes_over_draws(model: Model, cls: Class) -> bool:
    """Whether its passes go over a sampler of torch that draws from the process's generator."""
    names = iterated_attributes(model, reach(model, cls, "__iter__"))
    return any(
        isinstance(inner, Obj)
        and isinstance(inner.cls, str)
        and "generator" in (model.flow.params(inner.cls) or ())
        and model.option(inner, "generator", None) == {None}
        for outer in (model.built.get(cls, ()) if names else ())
        for name in names
        for inner in model.flow.ask_field(outer, name)
    )


def is_epoch_alone(model: Model, seed: Expr) -> bool:
    """Whether a seed is made of the epoch and numbers, and of no seed."""
    named = [part for part in ends(model.flow, seed, LOCAL) if not isinstance(part, Const)]
    return (
        bool(named)
        and all(_is_epoch(part) for part in named)
        and not any(_holds_seed(model, part) for part in named)
    )


def _holds_seed(model: Model, part: Expr) -> bool:
    """Whether the class keeps a seed in its epoch (``self.epoch = self.seed * 1000 + epoch``)."""
    cls = self_class(part.value) if isinstance(part, Attr) else None
    return (
        isinstance(part, Attr)
        and cls is not None
        and any(
            (value := part_of(store.value, store.path)) is not None and SEED.is_mentioned(value)
            for each in model.flow.own_mro(cls)
            for store in model.project.own_stores(part.name, each)
        )
    )


def _is_epoch(part: Expr) -> bool:
    if not isinstance(part, (Name, Attr)):
        return False
    words = (last_name(part) or "").lower().split("_")
    return EPOCH.names(part) and not SEED.names(part) and "per" not in words


def _hands_on(scope: Function, found: Seeded) -> bool:
    """Whether the generator is given to another method."""
    return any(
        isinstance(arg.value, (Name, Attr)) and last_name(arg.value) == found.generator
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
    for target, _ in self_stores(own_scopes(model, cls)):
        if is_seed_name(target.name.lstrip("_")):
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
    if orders_nothing(model, sampler):
        return False
    if isinstance(sampler.cls, Class):
        init = model.flow.method(sampler.cls, "__init__")
        own = init.param("shuffle") if isinstance(init, Function) else None
        iterate = model.flow.method(sampler.cls, "__iter__")
        if own is None and isinstance(init, Function) and isinstance(iterate, Function):
            return shuffles(model, sampler) is not False
        default = own.default if own is not None else None
        default_on = not (isinstance(default, Const) and default.value is False)
    else:
        default_on = _shuffles_unasked(sampler)
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
    callers = [call for call in callers if not excludes(model, call, site)]
    led = [item for item in ways_by_caller(model, site, [given]) if item[0] in callers]
    return bool(led) and all(_is_never_true(found) for _, found in led)


def orders_nothing(model: Model, made: Obj) -> bool:
    """Whether no order of what a sampler or loader is over is another.

    It takes no notice of the index, or it is one sample, perhaps many times.
    """
    asked = data(made.site) if made.site is not None else []
    if any(map(_is_of_one, asked)):
        return True
    values = {value for each in asked for value in model.flow.values(each)} - {NONE}
    return bool(values) and all(
        isinstance(value, Obj) and isinstance(value.cls, Class) and _ignores_index(model, value.cls)
        for value in values
    )


def data(call: Call) -> list[Expr]:
    """What a call that builds a sampler or a loader gets as the data."""
    named = [arg.value for arg in call.args if role_of(arg.keyword or "") is Role.DATASET]
    return call.positional[:1] or named


def _is_of_one(expr: Expr) -> bool:
    sides = [expr.left, expr.right] if isinstance(expr, Bin) and expr.op == "Mult" else [expr]
    alone = [side.items[0] for side in sides if isinstance(side, Seq) and len(side.items) == 1]
    return any(not isinstance(item, Other) for item in alone)  # `[*samples]` has any number


def _ignores_index(model: Model, cls: Class) -> bool:
    get = model.flow.method(cls, "__getitem__")
    if not isinstance(get, Function) or len(get.params) != 2 or get.params[1].kind == "vararg":
        return False
    index = get.params[1].name
    inside = [get, *(scope for scope in scopes_inside(cls) if scope.outer is get)]
    is_given = any(isinstance(end.value, Expr) for end in get.returns)
    return is_given and not any(
        isinstance(node, Name) and node.id == index
        for scope in inside
        for node in nodes_in(statements(scope.body))
    )


def _is_anybodys(model: Model, sampler: Obj, given: Expr) -> bool:
    """Whether an argument is what the callers of a library's public function choose."""
    if sampler.site is None or sampler.through is not None or not isinstance(given, Name):
        return False
    scope = sampler.site.scope
    if not isinstance(scope, Function) or scope.name.startswith("_"):
        return False
    return scope.param(given.id) is not None and model.module_of(scope).is_library(scope)


@remembered
def sharding_sites(model: Model) -> list[Call]:
    """Where a distributed sampler is built, or a ``partial`` of one, called who knows where.

    Or a loader with one, by a function that is known.
    """
    sites = [
        obj.site
        for obj in model.constructions()
        if obj.site is not None
        and (is_distributed_sampler(model, obj) or any(_made_with_loader(model, obj)))
    ]
    sites += [
        call
        for call in model.project.calls_named("partial")
        if call.positional and SAMPLER.names(call.positional[0])
        for value in model.flow.values(call.positional[0])
        if (isinstance(value, ClassRef) and model.flow.is_a(value.cls, DISTRIBUTED_SAMPLER))
        or (isinstance(value, Ext) and model.flow.is_a(value.dotted, DISTRIBUTED_SAMPLER))
    ]
    return sites


def _made_with_loader(model: Model, loader: Obj) -> Iterator[Obj]:
    """The samplers that a function of a library builds for the loader that it gives back."""
    if isinstance(loader.cls, str) and factory(loader.cls) is not None:
        for value in model.passed_to(loader, "sampler"):
            if isinstance(value, Obj):
                yield value


@remembered
def sharding_programs(model: Model) -> frozenset[str]:
    """The programs that build a distributed sampler (see ``Project.program_of``)."""
    scopes = (site.scope for site in sharding_sites(model))
    return frozenset(model.project.program_of(model.module_of(scope)) for scope in scopes)


def is_sharded_by(model: Model, sampler: Obj) -> bool:
    """Whether a sampler, or one that it takes batches from, certainly shards by its epoch."""
    return is_distributed_sampler(model, sampler) or any(
        is_distributed_sampler(model, inner) for inner in model.samplers_within(sampler)
    )


_Path: TypeAlias = "tuple[str, ...] | Unknown | None"


@remembered
def epoch_path(model: Model, value: Value) -> _Path:
    """How ``set_epoch`` is reached from a sampler: ``()`` directly, ``("sampler",)`` inside.

    None when nothing in it carries an epoch.
    """
    return _epoch_path(model, value, {}, 0)


def _epoch_path(model: Model, value: Value, seen: dict[Value, _Path], depth: int) -> _Path:
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Lit) or not isinstance(value, Obj):
        return None if isinstance(value, Lit) else Unknown("a sampler that is not followed")
    setter = model.flow.method(value.cls, "set_epoch")
    if isinstance(setter, Unknown):
        return setter
    if setter is not None:
        return ()
    if depth > DEEPEST_WRAPPING or value in seen:
        return seen.get(value)
    # A name that is assigned again may seem to hold the wrapper that is built from it.
    seen[value] = None
    inner = [
        (name, _epoch_path(model, found, seen, depth + 1))
        for name in _goes_over(model, value)
        for found in kept_in(model, value, name)
    ]
    known = {(name, *path) for name, path in inner if isinstance(path, tuple)}
    if len(known) == 1:
        seen[value] = known.pop()
    elif model.is_a(value, BATCH_SAMPLER):
        seen[value] = next((path for _, path in inner if isinstance(path, Unknown)), None)
    return seen[value]


def _goes_over(model: Model, sampler: Obj) -> Collection[str]:
    """The attributes of a sampler in which it keeps what its passes go over."""
    if model.is_a(sampler, BATCH_SAMPLER):
        return ["sampler"]
    return _iterated(model, sampler.cls) if isinstance(sampler.cls, Class) else []


@remembered
def _iterated(model: Model, cls: Class) -> list[str]:
    return sorted(iterated_attributes(model, reach(model, cls, "__iter__")))


def kept_in(model: Model, sampler: Obj, name: str) -> frozenset[Value]:
    """What a sampler keeps in an attribute: what it was built with, where it plainly keeps that."""
    if isinstance(sampler.cls, Class) and not model.is_a(sampler, BATCH_SAMPLER):
        param = parameter_kept(model, sampler.cls, name)
        given = model.argument(sampler, param.name) if param is not None else None
        if given is not None:
            return model.flow.values(given)
    return model.flow.ask_field(sampler, name)


@remembered
def distributed_samplers(model: Model) -> list[Obj]:
    """What is built that certainly is one (see :func:`is_distributed_sampler`)."""
    return [obj for obj in model.constructions() if is_distributed_sampler(model, obj)]


def always_draws(model: Model, sampler: Obj) -> bool:
    """Whether the catalog says of the sampler's class, or a base, that its order is random."""
    hierarchy = [sampler.cls] if isinstance(sampler.cls, str) else model.flow.mro(sampler.cls)
    return any(
        known.shuffles is True
        for base in hierarchy
        if isinstance(base, str)
        for known in known_mro(base)
    )


def is_distributed_sampler(model: Model, obj: Obj) -> bool:
    """Whether the object certainly is a sampler that shuffles one shard by its epoch.

    ``DistributedSampler`` and its subclasses, and a class of the tree that does as it does:
    a torch sampler (or what a loader is given as one) whose ``set_epoch`` stores the epoch
    and whose ``__iter__`` reads what was stored, and does not advance it.
    """
    if model.is_a(obj, DISTRIBUTED_SAMPLER):
        return True
    if isinstance(obj.cls, Class):
        return follows_epoch(model, obj.cls)
    return _known_to_shard(obj.cls) is not None


def _known_to_shard(name: str) -> KnownClass | None:
    """The class of a library of that name, if it shuffles one shard by its epoch."""
    entries = known_mro(name)
    takes_epoch = any("set_epoch" in entry.methods for entry in entries)
    return entries[0] if takes_epoch and entries[0].distributed else None


def follows_epoch(model: Model, cls: Class) -> bool:
    """Whether a sampler class of the tree has one order for each epoch that it is told."""
    iterate = model.flow.method(cls, "__iter__")
    return (
        model.is_sampler_class(cls)
        and isinstance(iterate, Function)
        and uses_epoch(model, cls)
        and not advances_itself(epoch_state(model, cls))
        and not reorders_itself(model, cls)
        and (draws_by_seeds(model, cls) or not _draws_elsewhere(model, iterate, 2))
    )


def _draws_elsewhere(model: Model, function: Function, depth: int) -> bool:
    """Whether it (or what it calls) draws from a generator that it does not seed."""
    if kept_draw(model, function) is not None:
        return True
    if any(SEEDS_ALL.is_made(call, model.flow.values) for call in function.calls):
        return False
    if global_draw(model, function) is not None:
        return True
    return depth > 0 and any(
        _draws_elsewhere(model, callee, depth - 1)
        for call in function.calls
        for callee in model.flow.callees(call)
        if callee is not function
    )


def shuffles(model: Model, sampler: Obj, through: Call | None = None) -> bool | None:
    """Whether a distributed sampler shuffles, for some of its callers or settings.

    A configuration, the command line or a caller may choose what ``shuffle=`` is given: the
    program must be right for each choice (see :func:`shuffle_choice`). None if not known.
    """
    if isinstance(sampler.cls, Class):
        own = model.flow.method(sampler.cls, "__iter__")
        if own != DISTRIBUTED_SAMPLER:
            if not follows_epoch(model, sampler.cls):
                return None
            if "shuffle" not in _parameter_names(model, sampler.cls):
                return True
    elif not is_distributed_sampler(model, sampler):
        return None
    given = model.argument(sampler, "shuffle")
    if given is None:
        if sampler.cls == DECLARED_SAMPLER:
            return declared_shuffles(sampler)
        if model.flow.may_be_passed(sampler, "shuffle"):
            return None
        return _default(model, sampler, "shuffle", default=_shuffles_unasked(sampler))
    constants = model.flow.constants(given, through or sampler.through)
    if constants is None:
        return True if model.flow.values(given) else None
    truths = {bool(value) for value in constants}
    # Several callers, some of which shuffle: the sampler shuffles for those.
    return True in truths


def _shuffles_unasked(sampler: Obj) -> bool:
    known = _known_to_shard(sampler.cls) if isinstance(sampler.cls, str) else None
    return known is None or known.shuffles_unasked


def shuffle_choice(model: Model, sampler: Obj, through: Call | None = None) -> Expr | None:
    """What chooses whether a sampler that :func:`shuffles` does so; None if it always does."""
    given = model.argument(sampler, "shuffle")
    if given is None or model.flow.constants(given, through or sampler.through) is not None:
        return None
    return given


def _parameter_names(model: Model, cls: Class) -> set[str]:
    init = model.flow.method(cls, "__init__")
    if not isinstance(init, Function):
        return set(model.flow.params(cls) or ())
    names = {param.name for param in init.params}
    if any(param.kind == "kwarg" for param in init.params):
        names.add("shuffle")
    return names


def _default(model: Model, obj: Obj, name: str, *, default: bool) -> bool | None:
    """A parameter's own default in a subclass that takes it again."""
    if isinstance(obj.cls, Class):
        init = model.flow.method(obj.cls, "__init__")
        if isinstance(init, Function):
            param = init.param(name)
            if param is not None and isinstance(param.default, Const):
                return bool(param.default.value)
            if param is None:
                for call in model.flow.base_init_calls(obj.cls):
                    given = call.keyword(name)
                    if isinstance(given, Const):
                        return bool(given.value)
                    if given is not None:
                        return None
    return default


def shuffles_by_epoch(model: Model, sampler: Obj, through: Call | None) -> bool:
    """Whether its order certainly changes with the epoch it is given."""
    given = model.argument(sampler, "shuffle")
    if isinstance(sampler.cls, Class):
        constants = None
        if given is not None:
            constants = model.flow.constants(given, through or sampler.through)
        if constants is not None and not any(constants):
            return False
        return uses_epoch(model, sampler.cls) and not draws_by_no_seed(model, sampler.cls)
    return is_distributed_sampler(model, sampler) and (
        shuffles(model, sampler, through) is not False
    )


def order_giver(model: Model, loader: Obj) -> str | None:
    """What certainly gives two walks of a loader in one epoch the same order, in words."""
    if any(map(partial(model.flow.may_be_passed, loader), (*SAMPLER_ARGUMENTS, "shuffle"))):
        return None
    if model.option(loader, "persistent_workers", False) != {False}:
        return None
    for name in SAMPLER_ARGUMENTS:
        for value in model.passed_to(loader, name):
            if isinstance(value, Obj) and (
                is_distributed_sampler(model, value)
                or (value.cls == BATCH_SAMPLER and is_sharded_by(model, value))
            ):
                return f"its `{value.name}`"
    return "a loader that does not shuffle" if reads_in_turn(model, loader) else None


def reads_in_turn(model: Model, loader: Obj) -> bool:
    """Whether a loader certainly does not shuffle, nor does a sampler that it may have."""
    if any(map(partial(model.flow.may_be_passed, loader), SAMPLER_ARGUMENTS)):
        return False
    return model.option(loader, "shuffle", False) == {False} and all(
        value.value is None
        if isinstance(value, Lit)
        else isinstance(value, Obj) and _leaves_order(model, value)
        for name in SAMPLER_ARGUMENTS
        for value in model.passed_to(loader, name)
    )


def _leaves_order(model: Model, sampler: Obj) -> bool:
    """Whether a sampler of the tree draws its order if it is told to, and is told not to."""
    cls = sampler.cls
    if not isinstance(cls, Class) or not model.is_sampler_class(cls):
        return False
    names = [name for name in model.flow.params(cls) or () if role_of(name) is Role.SHUFFLE]
    init = model.flow.method(cls, "__init__")
    return (
        len(names) == 1
        and isinstance(init, Function)
        and (param := init.param(names[0])) is not None
        and model.option(sampler, param.name, getattr(param.default, "value", None)) == {False}
        and any(map(draws, reach(model, cls, "__iter__").functions))
    )
