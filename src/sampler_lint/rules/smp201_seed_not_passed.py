"""SMP201: a distributed sampler keeps a fixed seed although the program's seed can be set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.analysis.points_to import Obj
from sampler_lint.domain.concepts import EVALUATES, INFERRING_SCRIPT, INFERS, SAMPLER, SEED
from sampler_lint.domain.draws import bare_generator, draws, seeded
from sampler_lint.domain.epochs import Pass, pass_trains, passes
from sampler_lint.domain.launches import launches
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model, scopes_inside
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.samplers import ignores_seed, may_shuffle
from sampler_lint.domain.seed_names import KeptSeed, Seed, in_scope, seed_to_keep
from sampler_lint.domain.seeds import (
    constructions,
    epoch_carries_seed,
    is_seed_name,
    seeding,
    setting_of,
    takes_seed,
)
from sampler_lint.edits.editor import Editor, Fixer
from sampler_lint.edits.names import text_of
from sampler_lint.edits.seed_fixes import (
    called,
    can_take_seed,
    pass_in,
    pass_seed,
    seed_generators,
    spelled,
    take_seed,
)
from sampler_lint.findings import Applicability, Fix, Related, Severity
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Name,
    Param,
    Scope,
    last_name,
    unparse,
    walk,
)
from sampler_lint.workspace.project import Module

#: The seed of a new generator (torch: c10/core/GeneratorImpl.h, ``default_rng_seed_val``).
_BARE = "67280421310721 (that of a new `torch.Generator()`)"


class SeedNotPassed(Rule):
    """A shuffling distributed sampler keeps a fixed seed; the program's seed never reaches it.

    What it does:
        Reports a shuffling `DistributedSampler` (or a subclass that takes `seed`) built with a
        literal seed or none, in a program that seeds its generators from a setting
        (`torch.manual_seed(args.seed)`, `seed_everything(cfg.seed)`...). A sampler of the tree
        with a `seed` parameter of its own counts too, and a factory whose `seed` cannot reach
        the sampler it builds, or that no call passes. Silent with `shuffle=False`, for samplers
        of validation and test data, in tests, and where the seed is set later or enters through
        `set_epoch` or through the data (`shuffle_dataset(data, args.seed)`).

    Why is this bad?
        `DistributedSampler` shuffles with a generator of its own, seeded with `seed + epoch`;
        `torch.manual_seed` does not touch it. Runs that differ in seed all read the same order,
        so a study over seeds measures less than it claims, and a bad order cannot be escaped.

    Fix safety:
        Safe where the seed is in scope, is an int and is the same on every rank, and where a
        factory gets a new parameter `seed: int = 0` that every call in the tree passes, through
        the functions between (a generator of the same factory, with a literal seed, gets it
        added). Unsafe where the seed's type is not known, and where only some calls have a seed
        to pass. Only shown where none has: nothing would change then.

    How it is proved:
        Invariant `seed-matters`: two runs with different seeds give one order before the fix
        and different orders after it.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__`
        - https://github.com/mosaicml/composer/pull/3724
        - https://github.com/Lightning-AI/pytorch-lightning/pull/7024
    """

    code = "SMP201"
    name = "seed-not-passed"
    severity = Severity.WARNING
    invariant = "seed-matters"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at every sampler with a seed that is built in a program with a seed."""
        seen = set()
        for sampler in constructions(model):
            site = sampler.site
            if site is None or site in seen or model.role(sampler) == "loader":
                continue
            module = model.module_of(site.scope)
            if is_test(module):
                continue
            unheard = _unheard(model, sampler)
            if unheard is not None and not launches(model).is_dead(site.scope):
                seen.add(site)
                yield unheard
                continue
            fixed = _fixed_seed(model, sampler)
            if fixed is None or not may_shuffle(model, sampler):
                continue
            if _evaluates(model, sampler, module) or _reads_seeded_order(model, sampler):
                continue
            source = _source(model, module, site, is_passed_on=bool(fixed.unpassed))
            if source is None or _seeded_later(model, module, sampler):
                continue
            if launches(model).is_dead(site.scope):
                continue
            seen.add(site)
            yield _suspect(model, module, sampler, fixed, source)


class _Source(NamedTuple):
    """The seed that does not reach the sampler."""

    setting: str
    reason: str
    """Why it does not."""
    why: Related


def _source(model: Model, module: Module, site: Call, *, is_passed_on: bool) -> _Source | None:
    """What seeds the program; the ``seed`` of the factory itself stands nearer than other files.

    Unless the factory passes it on.
    """
    source = seeding(model, module, site)
    if not is_passed_on and (source is None or source.module is not module):
        own = _own_seed(model, module, site.scope, is_seeded=source is not None)
        if own is not None:
            return own
    if source is None:
        return None
    return _Source(
        source.setting.code,
        f"`{unparse(source.call.func)}` does not reach the sampler's own generator",
        Related(source.module.place(source.call), "the program is seeded here"),
    )


def _own_seed(model: Model, module: Module, function: Scope, *, is_seeded: bool) -> _Source | None:
    """The parameter ``seed`` of the function that builds the sampler."""
    if not isinstance(function, Function) or function.name == "__init__":
        return None
    param = function.param("seed")
    if param is None or (not is_seeded and _is_constant(model, function, param)):
        return None
    return _Source(
        param.name,
        f"`{function.name}` takes a seed and does not pass it on",
        Related(module.place(function), "the seed is taken here"),
    )


def _is_constant(model: Model, function: Function, param: Param) -> bool:
    """Whether the tree only ever passes literals for the seed: there is none to set."""
    bound = function.cls is not None and not function.is_static
    given = [passed(function, param, c, is_bound=bound) for c in model.flow.callers(function)]
    chosen = [expr for expr in given if expr is not MISSING]
    return bool(chosen) and all(
        isinstance(expr, Expr) and model.flow.constants(expr) is not None for expr in chosen
    )


def _unheard(model: Model, sampler: Obj) -> Suspect | None:
    """A factory with a ``seed`` builds a sampler that takes none and shuffles by the epoch."""
    site = sampler.site
    assert site is not None
    function = site.scope
    if not isinstance(sampler.cls, Class) or not isinstance(function, Function):
        return None
    if function.cls is not None or function.param("seed") is None:
        return None
    module = model.module_of(function)
    if _evaluates(model, sampler, module):
        return None
    init = model.flow.method(sampler.cls, "__init__")
    if (
        not isinstance(init, Function)
        or init.cls is not sampler.cls
        or takes_seed(model, sampler.cls)
    ):
        return None
    shuffle = next(ignores_seed(model, sampler.cls), None)
    if shuffle is None or epoch_carries_seed(model, module):
        return None
    given = model.flow.argument(sampler, "shuffle")
    constants = model.flow.constants(given, sampler.through) if given is not None else {True}
    if constants is not None and not any(constants):
        return None
    message = (
        f"`{function.name}` takes a `seed` that does not reach `{sampler.name}`: its shuffle is "
        f"seeded with `{unparse(shuffle.seed)}` alone, so every seed reads the same order; give "
        f"`{sampler.name}` a `seed` parameter and pass `seed=seed`"
    )
    why = (Related(model.place(shuffle.call.scope, shuffle.call), "the shuffle is seeded here"),)
    return Suspect(module, site, message, why=why)


class _Unpassed(NamedTuple):
    """A function of the tree with a seed, and its calls, none of which passes one."""

    function: Function
    parameter: str
    default: int
    calls: tuple[Call, ...]


class _Fixed(NamedTuple):
    """The seed a sampler keeps: the parameter it takes it by, and the literal it gets."""

    parameter: str
    given: Expr | None
    value: str
    takes_none: bool = False
    """Whether None is the parameter's own default."""
    unpassed: tuple[_Unpassed, ...] = ()
    """The factories whose default it is, as no call in the tree passes another."""


def _fixed_seed(model: Model, sampler: Obj) -> _Fixed | None:
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
        return _Fixed(parameter, None, f"seed {default}", none) if default else None
    if isinstance(given, Const) and isinstance(given.value, int):
        return _Fixed(parameter, given, f"the literal seed {given.value}")
    value = _constant(given)
    if value is not None:
        return _Fixed(parameter, given, f"the constant seed {value}")
    unpassed = _unpassed(model, given, frozenset())
    if unpassed:
        told = f"the default seed {unpassed[0].default}"
        return _Fixed(parameter, given, told, unpassed=tuple(unpassed))
    return None


def _unpassed(model: Model, given: Expr, asked: frozenset[Function]) -> list[_Unpassed]:
    """Where the value comes from, if it is only ever the default of parameters."""
    if not isinstance(given, Name) or not isinstance(given.scope, Function):
        return []
    function, name = given.scope, given.id
    param = function.param(name)
    callers = model.flow.callers(function)
    if (
        param is None
        or function in asked
        or len(function.bindings[name]) > 1
        or not callers
        or function.decorators
        or model.module_of(function).is_library(function)
        or _is_handed_on(model, function)
    ):
        return []
    bound = function.cls is not None and not function.is_static
    found: list[_Unpassed] = []
    missing: list[Call] = []
    for caller in callers:
        value = passed(function, param, caller, is_bound=bound)
        if value is MISSING:
            missing.append(caller)
            continue
        above = _unpassed(model, value, asked | {function}) if isinstance(value, Expr) else []
        if not above:
            return []
        found += above
    if missing:
        default = param.default.value if isinstance(param.default, Const) else None
        if not isinstance(default, int) or isinstance(default, bool):
            return []
        found.append(_Unpassed(function, name, default, tuple(missing)))
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


def _constant(expr: Expr) -> int | None:
    """The number that a name of the file stands for, if nothing but that is assigned to it."""
    if not isinstance(expr, Name):
        return None
    if expr.scope is not expr.scope.module and expr.id in expr.scope.bindings:
        return None
    bindings = expr.scope.module.bindings.get(expr.id, ())
    values = [b.value for b in bindings if b.how == "assign" and not b.path]
    if len(values) != 1 or len(bindings) != 1 or not isinstance(values[0], Const):
        return None
    return values[0].value if isinstance(values[0].value, int) else None


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
    if model.flow.method(cls, "__iter__") == DISTRIBUTED_SAMPLER:
        return True
    scopes = [scope for scope in _scopes(model, cls) if scope.name != "__init__"]
    return any(
        is_seed_name(read.name.lstrip("_")) or read.name == "__iter__"
        for scope in scopes
        for read in scope.reads
    )


def _scopes(model: Model, cls: Class) -> list[Scope]:
    """The scopes inside the class and its bases in the tree."""
    bases = [base for base in model.flow.mro(cls) if isinstance(base, Class)]
    return [scope for base in bases for scope in scopes_inside(base)]


def _draws_by_seed(model: Model, cls: Class, init: Function, name: str) -> bool:
    """Whether the class draws by what it is given as the parameter ``name``."""
    if model.flow.method(cls, "__iter__") == DISTRIBUTED_SAMPLER:
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
    bound = function.cls is not None and not function.is_static
    return bool(calls) and all(
        call.keyword(parameter) is None
        and not call.has_star
        and not call.has_double_star
        and len(call.positional) + bound <= len(takes)
        for call in calls
    )


def _evaluates(model: Model, sampler: Obj, module: Module) -> bool:
    """Whether the order matters to nobody: the sampler of a validation or inference pass."""
    site = sampler.site
    assert site is not None
    if module.is_script and INFERRING_SCRIPT.says(module.name.rpartition(".")[2]):
        return True
    if _is_named_evaluation(site) or _is_seen_to_evaluate(model, sampler):
        return True
    function = site.scope
    calls = model.flow.callers(function) if isinstance(function, Function) else []
    calls = [call for call in calls if not is_test(model.module_of(call.scope))]
    return bool(calls) and all(_is_named_evaluation(call) for call in calls)


def _is_seen_to_evaluate(model: Model, sampler: Obj) -> bool:
    """Whether the loaders of the sampler are iterated in sight, and every pass evaluates."""
    own = _passes_by_site(model).get(id(sampler.site), {}).values()
    return bool(own) and all(
        _is_without_gradients(found) and not pass_trains(model, found) for found in own
    )


def _passes_by_site(model: Model) -> dict[int, dict[int, Pass]]:
    """By the call that builds a sampler, the passes over loaders with it; found once."""
    by_site: dict[int, dict[int, Pass]] | None = model.memo.get(_passes_by_site)
    if by_site is None:
        by_site = model.memo[_passes_by_site] = {}
        for found in passes(model):
            for value in model.passed_to(found.loader, "sampler"):
                if isinstance(value, Obj):
                    by_site.setdefault(id(value.site), {})[id(found)] = found
    return by_site


def _is_without_gradients(found: Pass) -> bool:
    """Whether a pass is made under ``no_grad`` or on a model that was told to evaluate."""
    decorators = (last_name(d) for d in getattr(found.scope, "decorators", ()))
    return not EVALUATES.called.isdisjoint({*found.scope.called, *decorators})


def _is_named_evaluation(call: Call) -> bool:
    """Whether the names around a call say that what it makes is not for training."""
    names = [call.scope.name]
    if isinstance(call.stmt, Assign):
        names += [unparse(target) for target in call.stmt.targets]
    names += [unparse(expr) for expr in _data(call)]
    return any(EVALUATES.says(name) or INFERS.says(name) for name in names)


def _data(call: Call) -> list[Expr]:
    """What a call that builds a sampler gets as the data."""
    named = [arg.value for arg in call.args if arg.keyword and "data" in arg.keyword]
    return call.positional[:1] or named


def _reads_seeded_order(model: Model, sampler: Obj) -> bool:
    """Whether the data was made with the program's seed, so that its own order changes with it."""
    assert sampler.site is not None
    return any(setting_of(model, expr) is not None for expr in _data(sampler.site))


def _seeded_later(model: Model, module: Module, sampler: Obj) -> bool:
    """Whether something else may give the sampler its seed."""
    program = model.project.program_of(module)

    def is_ours(receiver: Expr) -> bool:
        values = model.flow.values(receiver)
        return any(
            not isinstance(v, Obj) or (v.cls, v.site) == (sampler.cls, sampler.site) for v in values
        )

    for store in model.project.stores_near("seed", module.facts):
        target = store.target
        named = isinstance(target, Attr) and SAMPLER.says(unparse(target.value))
        if named and is_ours(target.value):
            return True
    for name in ("set_seed", "set_epoch"):
        for call in model.project.calls_in(program, name):
            if not isinstance(call.func, Attr):
                continue
            mentions = any(SEED.is_mentioned(arg.value) for arg in call.args)
            by_seed = name == "set_seed" and SAMPLER.says(unparse(call.func.value))
            if (mentions if name == "set_epoch" else by_seed) and is_ours(call.func.value):
                return True
    return False


# --------------------------------------------------------------------------- finding


def _suspect(
    model: Model,
    module: Module,
    sampler: Obj,
    fixed: _Fixed,
    source: _Source,
) -> Suspect:
    site = sampler.site
    assert site is not None
    keyword = fixed.parameter
    message = (
        f"`{sampler.name}` shuffles with {fixed.value} whatever `{source.setting}` is: "
        f"{source.reason}, so every seed reads the same order"
    )
    seed = in_scope(model, module, site.scope, site) if not fixed.unpassed else None
    fix: Fixer | None = None
    if fixed.unpassed:
        first = fixed.unpassed[0]
        message += f"; no call of `{called(first.function)}` passes `{first.parameter}`: pass it"
        fix = partial(_pass_where_missing, model, fixed.unpassed)
    elif seed is not None:
        message += f"; pass `{keyword}={seed.code}`"
        fix = partial(_pass_seed, site, fixed, seed)
    else:
        function = site.scope if isinstance(site.scope, Function) else None
        kept = seed_to_keep(model, module, function) if function is not None else None
        if kept is not None:
            code = f"{kept.init.params[0].name}.{kept.attribute}"
            message += f"; keep the seed as `{code}` in `__init__` and pass `{keyword}={code}`"
            fix = partial(_keep_seed, site, fixed, kept)
        elif function is not None and can_take_seed(function):
            message += f"; give `{called(function)}` a `seed` parameter and pass it on"
            fix = partial(_add_parameter, model, function, site, fixed)
        else:
            message += f"; pass the program's seed as `{keyword}=`"
    return Suspect(module, site, message, why=(source.why,), fix=fix)


# --------------------------------------------------------------------------- fixes


def _pass_seed(site: Call, fixed: _Fixed, seed: Seed, editor: Editor) -> Fix:
    value = _as_taken(seed, fixed, seed.code)
    pass_seed(editor, site, fixed.parameter, fixed.given, value)
    applicability = Applicability.UNSAFE if seed.is_number is None else Applicability.SAFE
    return editor.fix(f"Pass `{fixed.parameter}={value}`", applicability)


def _keep_seed(site: Call, fixed: _Fixed, kept: KeptSeed, editor: Editor) -> Fix:
    """Keep the seed where the constructor can name it, and pass what is kept."""
    code = f"{kept.init.params[0].name}.{kept.attribute}"
    editor.insert_before(kept.before, f"{code} = {kept.seed.code}")
    pass_seed(editor, site, fixed.parameter, fixed.given, _as_taken(kept.seed, fixed, code))
    applicability = Applicability.UNSAFE if kept.seed.is_number is None else Applicability.SAFE
    return editor.fix(f"Keep the seed as `{code}`, and pass it", applicability)


def _as_taken(seed: Seed, fixed: _Fixed, code: str) -> str:
    """The seed's spelling as the sampler takes it: a None only where it has one of its own."""
    return code if fixed.takes_none else spelled(Seed(code, seed.is_number))


def _add_parameter(
    model: Model, function: Function, site: Call, fixed: _Fixed, editor: Editor
) -> Fix:
    """Add ``seed`` to the factory, use it, document it, and pass it in every call of the tree."""
    default = "0" if fixed.given is None else text_of(editor.source, fixed.given)
    pass_seed(editor, site, fixed.parameter, fixed.given, "seed")
    take_seed(editor, function, default)
    if default == "0":
        seed_generators(model, editor, function)
    calls = [
        call
        for call in model.flow.callers(function)
        if last_name(call.func) == called(function) and _shuffles_through(model, site, call)
    ]
    passed, everywhere = pass_in(model, editor, calls, "seed", untyped=True)
    if not passed:
        applicability = Applicability.DISPLAY  # as long as nobody passes it, nothing changes
    elif everywhere and not editor.module.is_library(function):
        applicability = Applicability.SAFE
    else:
        applicability = Applicability.UNSAFE
    return editor.fix(f"Give `{called(function)}` a `seed` parameter", applicability)


def _pass_where_missing(model: Model, unpassed: Sequence[_Unpassed], editor: Editor) -> Fix | None:
    """Pass the program's seed in every call of factories that take one."""
    anywhere, everywhere = False, True
    for one in unpassed:
        some, every = pass_in(model, editor, one.calls, one.parameter, untyped=True)
        anywhere, everywhere = anywhere or some, everywhere and every
    if not anywhere:
        return None
    applicability = Applicability.SAFE if everywhere else Applicability.UNSAFE
    names = ", ".join(f"`{called(one.function)}`" for one in unpassed)
    return editor.fix(f"Pass the seed to {names}", applicability)


def _shuffles_through(model: Model, site: Call, call: Call) -> bool:
    """Whether the sampler built at ``site`` may shuffle when its factory is called by ``call``."""
    given = site.keyword("shuffle")
    constants = {True} if given is None else model.flow.constants(given, call)
    return constants is None or any(constants)
