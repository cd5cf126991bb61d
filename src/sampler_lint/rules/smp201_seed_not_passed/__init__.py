"""SMP201: a distributed sampler keeps a fixed seed although the program's seed can be set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.analysis.origins import Hop, given_by, only, parameter_of, scope_of
from sampler_lint.analysis.values import ClassRef, Ext, Obj
from sampler_lint.domain.concepts import ORDERS, SAMPLER, SEED
from sampler_lint.domain.conditions import is_left_out
from sampler_lint.domain.datasets import refuses_samplers
from sampler_lint.domain.draws import draw_of_process, seeded
from sampler_lint.domain.escape import is_for_nothing
from sampler_lint.domain.evaluated import only_evaluates
from sampler_lint.domain.fixed_orders import is_asked_to_draw, order_of_items
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.samplers import data, ignores_seed, may_shuffle
from sampler_lint.domain.seed_names import KeptSeed, Seed, in_scope, seed_to_keep
from sampler_lint.domain.seeds import (
    constructions,
    epoch_carries_seed,
    seeding,
    setting_of,
    takes_seed,
)
from sampler_lint.domain.shards import orders_globally
from sampler_lint.domain.signatures import refuser
from sampler_lint.edits.editor import Editor, Fixer, replacing
from sampler_lint.edits.loader_fixes import named_in
from sampler_lint.edits.names import text_of
from sampler_lint.edits.seed_fixes import (
    MAY_BE_NO_INT,
    called,
    can_take_seed,
    is_named,
    pass_in,
    pass_seed,
    pass_to_taker,
    seed_generators,
    spelled,
    take_seed,
)
from sampler_lint.findings import Applicability, Fix, Grade, Related, Severity
from sampler_lint.limits import DEEPEST_CHAIN
from sampler_lint.remembered import remembered
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules.smp201_seed_not_passed.fixed import (
    Fixed,
    FixedGenerator,
    Unpassed,
    fixed_generator,
    fixed_seed,
    refusing,
)
from sampler_lint.syntax.navigation import method_around, unparse
from sampler_lint.syntax.nodes import Attr, Call, Choice, Class, Expr, Function, Name, Scope
from sampler_lint.workspace.project import Module

_ONE_ORDER = "every seed reads the data in the same order"


class SeedNotPassed(Rule):
    """A shuffling distributed sampler keeps a fixed seed; the program's seed never reaches it.

    What it does:
        Reports a shuffling `DistributedSampler` (or a subclass that takes `seed`) built with a
        literal seed or none, in a program that seeds its generators from a setting
        (`torch.manual_seed(args.seed)`, `seed_everything(cfg.seed)`...). A sampler defined in the
        repository with a `seed` parameter counts too, and so does a factory whose `seed` cannot
        reach the sampler it builds, or that no call passes, and a `generator=` with a literal seed
        by which a loader or sampler of torch shuffles. Not reported with `shuffle=False`,
        for samplers of validation and test data, in tests, and where the seed is set later, or is
        passed through `set_epoch` or used to shuffle the data (`shuffle_dataset(data,
        args.seed)`), or where the dataset shuffles itself with a generator of the process.

    Why is this bad?
        `DistributedSampler` shuffles with a generator of its own, seeded with `seed + epoch`;
        `torch.manual_seed` does not touch it. Runs that differ in seed all read the same order,
        so a study over seeds measures less than it claims, and another seed does not help against
        a bad order.

    Fix safety:
        Safe where the seed is in scope, is an int and is the same on every rank, and where a
        factory gets a new parameter `seed: int = 0` that every call in the repository passes,
        through the functions in between (it is also added to the literal seed of a generator in
        the same factory). Unsafe where the seed's type is not known, where only some calls have a
        seed to pass, where it is bound by `functools.partial` to the one of several classes
        that takes it, where a number may stand for no seed, where the class does more with its
        seed than draw the order, and where a run of it shows no other draw for another seed, or
        epochs that are alike with one.
        Display-only where none has one, since nothing would change then. No fix
        where the class leaves its seed out of the shuffle (SMP203), for the same reason.

    How it is proved:
        Invariant `seed-matters`: two runs with different seeds give one order before the fix
        and different orders after it.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__`
        - https://github.com/mosaicml/composer/pull/3724
        - https://github.com/Lightning-AI/pytorch-lightning/pull/7024
        - met in https://github.com/HRNet/HRNet-Semantic-Segmentation (tools/train.py)
    """

    code = "SMP201"
    name = "seed-not-passed"
    symptoms = ("changing the seed changes nothing",)
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
            if unheard is not None:
                seen.add(site)
                yield unheard
                continue
            fixed = fixed_seed(model, sampler)
            if fixed is None or not may_shuffle(model, sampler):
                continue
            if isinstance(sampler.cls, Class) and orders_globally(model, sampler.cls):
                continue
            if only_evaluates(model, sampler) or _reads_seeded_order(model, sampler):
                continue
            source = _source(model, module, site, is_passed_on=bool(fixed.unpassed))
            if source is None or _seeded_later(model, module, sampler):
                continue
            if _is_left_over(model, sampler) or is_left_out(model, site):
                continue
            if _is_refused(model, sampler):
                continue
            seen.add(site)
            suspect = _suspect(model, module, sampler, fixed, source)
            if _is_kept_in_unbuilt(model, site):
                suspect.grade = Grade.LIKELY
            yield suspect
        yield from _by_generators(model)


def _by_generators(model: Model) -> Iterator[Suspect]:
    """Loaders and samplers of torch that shuffle by a generator with a literal seed."""
    seen = set()
    for user in constructions(model):
        fixed = fixed_generator(model, user)
        if fixed is None or user.site is None or fixed.seed in seen:
            continue
        module = model.module_of(user.site.scope)
        if is_test(module) or only_evaluates(model, user):
            continue
        source = _source(model, module, user.site, is_passed_on=False)
        if source is None:
            continue
        seen.add(fixed.seed)
        yield _literal_seed(model, user, fixed, source)


def _literal_seed(model: Model, user: Obj, fixed: FixedGenerator, source: _Source) -> Suspect:
    assert user.site is not None
    at = model.module_of(fixed.call.scope)
    seed = in_scope(model, at, fixed.call.scope, fixed.call)
    fix = None
    if seed is not None:
        applicability = Applicability.UNSAFE if seed.is_number is None else Applicability.SAFE
        fix = replacing(fixed.seed, spelled(seed), f"Seed it with `{seed.code}`", applicability)
    return Suspect(
        at,
        fixed.seed,
        f"`{user.name}` shuffles by a generator with the literal seed {fixed.seed.value}, whatever "
        f"`{source.setting}` is",
        why=(source.why, Related(model.place_of(user), "it is given to this one")),
        fix=fix,
        effect=f"{_ONE_ORDER}, for `{source.setting}` does not reach the generator",
        advice="seed the generator with the program's seed",
    )


def _is_left_over(model: Model, sampler: Obj) -> bool:
    """Whether the function reads by another loader only, and nothing by that of the sampler."""
    if sampler.site is None or not is_for_nothing(model, sampler):
        return False
    used: set[Scope] | None = model.memo.get(_is_left_over)
    if used is None:
        sites = (each.site for each in model.loaders if not is_for_nothing(model, each))
        used = model.memo[_is_left_over] = {site.scope for site in sites if site is not None}
    return sampler.site.scope in used


def _is_kept_in_unbuilt(model: Model, site: Call) -> bool:
    """Whether a sampler is built by another one of the tree, which nothing in sight builds."""
    method = method_around(site.scope)
    cls = method.cls if method is not None else None
    if cls is None or cls.decorators or not model.is_sampler_class(cls):
        return False
    kin = (cls, *model.flow.subclasses(cls))
    return not any(made.site is not None for each in kin for made in model.flow.built(each))


def _is_refused(model: Model, sampler: Obj) -> bool:
    """Whether torch refuses to build each loader that gets the sampler."""
    users = _users(model).get(sampler.site, [])
    return bool(users) and all(refuses_samplers(model, loader) for loader in users)


@remembered
def _users(model: Model) -> dict[Call | None, list[Obj]]:
    """The loaders that get what is built in a call, by that."""
    found: dict[Call | None, list[Obj]] = {}
    for loader in model.loaders:
        for given in model.samplers_of(loader):
            found.setdefault(given.site, []).append(loader)
    return found


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
    """The parameter ``seed`` of the function that builds the sampler.

    Where no call passes it, the program's own seed is the one to name, if there is one.
    """
    if not isinstance(function, Function) or function.name == "__init__":
        return None
    if function.param("seed") is None or _is_constant(model, function, "seed", unset=is_seeded):
        return None
    return _Source(
        "seed",
        f"`{function.name}` takes a seed and does not pass it on",
        Related(module.place(function), "the seed is taken here"),
    )


def _is_constant(model: Model, function: Scope, name: str, *, unset: bool) -> bool:
    """Whether the tree only ever passes literals for a parameter: there is no seed to set.

    ``unset``: also where it is never passed.
    """
    param = function.param(name) if isinstance(function, Function) else None
    if not isinstance(function, Function) or param is None:
        return False
    given = [passed(function, param, c) for c in model.flow.callers(function)]
    if not unset and all(expr is MISSING for expr in given):
        return False
    return bool(given) and all(
        (expr is MISSING and param.default is not None)  # or else a decorator passes it
        or (isinstance(expr, Expr) and model.flow.constants(expr) is not None)
        for expr in given
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
    if only_evaluates(model, sampler):
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
    given = model.argument(sampler, "shuffle")
    constants = model.flow.constants(given, sampler.through) if given is not None else {True}
    if constants is not None and not any(constants):
        return None
    message = (
        f"`{function.name}` takes a `seed` that does not reach `{sampler.name}`, which shuffles by "
        f"`{unparse(shuffle.seed)}` alone"
    )
    why = (Related(model.place(shuffle.call.scope, shuffle.call), "the shuffle is seeded here"),)
    return Suspect(
        module,
        site,
        message,
        why=why,
        effect=_ONE_ORDER,
        advice=f"give `{sampler.name}` a `seed` parameter and pass `seed=seed`",
    )


def _reads_seeded_order(model: Model, sampler: Obj) -> bool:
    """Whether the data was made with the program's seed, so that its own order changes with it."""
    assert sampler.site is not None
    return any(
        _is_seeded(model, expr, ()) or _draws_own_order(model, expr) for expr in data(sampler.site)
    )


def _draws_own_order(model: Model, dataset: Expr) -> bool:
    """Whether the data numbers its items by an order that the process's generators give it."""
    values = model.flow.values(dataset)
    return bool(values) and all(
        isinstance(value, Obj)
        and isinstance(value.cls, Class)
        and (order := order_of_items(model, value.cls)) is not None
        and is_asked_to_draw(model, value, order, among_several=True)
        and _is_of_process(model, order.draw)
        for value in values
    )


def _is_of_process(model: Model, draw: Call) -> bool:
    """Whether a draw, or the method of that name, asks a generator that it leaves as it is."""
    inner = model.flow.callees(draw)
    calls = [draw, *(call for function in inner for call in ORDERS.calls_in(function.calls))]
    return any(draw_of_process(model, call) is not None for call in calls) and not any(
        found.generator is None for scope in (draw.scope, *inner) for found in seeded(model, scope)
    )


def _is_seeded(model: Model, expr: Expr, calls: tuple[Call, ...]) -> bool:
    """Whether all who hand in the data, if it is handed in, have made it with a seed."""
    if setting_of(model, expr) is None:
        return False
    function, _ = parameter_of(expr) or (None, None)
    if function is None:
        return True
    handed = [
        (call, given)
        for call in model.flow.callers(function)
        if call not in calls and (given := given_by(model.flow, call, expr)) is not None
    ]
    return len(calls) == DEEPEST_CHAIN or all(
        _is_seeded(model, given, (*calls, call)) for call, given in handed
    )


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


def _suspect(
    model: Model,
    module: Module,
    sampler: Obj,
    fixed: Fixed,
    source: _Source,
) -> Suspect:
    site = sampler.site
    assert site is not None
    keyword = fixed.parameter
    message = f"`{sampler.name}` shuffles with {fixed.value}, whatever `{source.setting}` is"
    seed = in_scope(model, module, site.scope, site) if not fixed.unpassed else None
    fix: Fixer | None = None
    if fixed.unpassed:
        first = fixed.unpassed[0]
        advice = f"pass `{first.parameter}` where `{called(first.function)}` is called"
        fix = partial(pass_where_missing, model, fixed.unpassed)
    elif seed is not None:
        advice = f"pass `{keyword}={seed.code}`"
        other = refuser(model, site.func, keyword)
        if other is None:
            is_idle = _is_constant(model, site.scope, seed.code, unset=True)
            fix = partial(pass_to_sampler, site, fixed, seed, is_idle)
        else:
            advice += f", but not to `{other}`, which takes none"
            fix = partial(bind_seed, model, sampler, fixed, seed)
    else:
        function = site.scope if isinstance(site.scope, Function) else None
        kept = seed_to_keep(model, module, function) if function is not None else None
        holder = source.setting.partition(".")[0]
        is_here = (
            function is not None
            and holder in function.bindings
            and function.param(holder) is None  # which need not be the settings
        )
        if kept is not None:
            code = f"{kept.init.params[0].name}.{kept.attribute}"
            advice = f"keep the seed as `{code}` in `__init__` and pass `{keyword}={code}`"
            fix = partial(keep_seed, site, fixed, kept)
        elif is_here:  # but is not known to be one for all
            advice = f"pass a seed that all ranks share as `{keyword}=`"
        elif function is not None and can_take_seed(model, function):
            advice = f"give `{called(function)}` a `seed` parameter and pass it on"
            fix = partial(add_parameter, model, function, site, fixed)
        else:
            advice = f"pass the program's seed as `{keyword}=`"
    cls = sampler.cls
    if fix is not None and isinstance(cls, Class) and any(ignores_seed(model, cls)):
        fix = None  # what is passed would change nothing
        advice += f", once `{cls.name}` shuffles by its seed"
    refused = refusing(model, module, sampler, keyword)
    if refused == "any version":
        fix = None
        advice = f"set `{keyword}` of what is built, for `{sampler.name}` takes none"
    elif refused and fix is not None:
        fix = partial(_in_others, fix, f"{refused}, `{sampler.name}` takes no `{keyword}`")
    return Suspect(
        module,
        site,
        message,
        why=(source.why,),
        fix=fix,
        effect=f"{source.reason}, so {_ONE_ORDER}",
        advice=advice,
    )


# Fixes: the program's seed is passed to the sampler, through its factories.


def _in_others(fixer: Fixer, why: str, editor: Editor) -> Fix | None:
    """A fix that is right in the versions of a library that take a seed."""
    fix = fixer(editor)
    if fix is None or fix.applicability is Applicability.DISPLAY:
        return fix
    return replace(fix, applicability=Applicability.UNSAFE, unsafe=why)


def pass_to_sampler(site: Call, fixed: Fixed, seed: Seed, is_idle: bool, editor: Editor) -> Fix:
    """Pass the seed in the call that builds the sampler; idle is one that is always the same."""
    value = _as_taken(seed, fixed, seed.code)
    pass_seed(editor, site, fixed.parameter, fixed.given, value)
    applicability = Applicability.UNSAFE if seed.is_number is None else Applicability.SAFE
    if is_idle:
        applicability = Applicability.DISPLAY  # nothing would change
    return editor.fix(f"Pass `{fixed.parameter}={value}`", applicability, MAY_BE_NO_INT)


def bind_seed(model: Model, sampler: Obj, fixed: Fixed, seed: Seed, editor: Editor) -> Fix | None:
    """Bind the seed to the sampler's class, where the program chooses among classes."""
    site = sampler.site
    assert site is not None
    chosen = only(model.flow, site.func, Hop.ASSIGNED)
    options = chosen.options if isinstance(chosen, Choice) else []
    its = {ClassRef(sampler.cls) if isinstance(sampler.cls, Class) else Ext(sampler.cls)}
    taking = [each for each in options if model.flow.values(each) == its]
    if len(taking) != 1 or not isinstance(taking[0], (Name, Attr)) or fixed.given is not None:
        return None
    if scope_of(taking[0]) is not site.scope:
        return None
    partial_ = named_in(editor, "functools", "partial")
    if partial_ is None:
        return None
    value = _as_taken(seed, fixed, seed.code)
    editor.wrap(taking[0], f"{partial_}(", f", {fixed.parameter}={value})")
    why = "what reads the class may not expect a `partial`"
    return editor.fix(f"Bind `{fixed.parameter}={value}`", Applicability.UNSAFE, why)


def keep_seed(site: Call, fixed: Fixed, kept: KeptSeed, editor: Editor) -> Fix:
    """Keep the seed where the constructor can name it, and pass what is kept."""
    code = f"{kept.init.params[0].name}.{kept.attribute}"
    editor.insert_before(kept.before, f"{code} = {kept.seed.code}")
    pass_seed(editor, site, fixed.parameter, fixed.given, _as_taken(kept.seed, fixed, code))
    applicability = Applicability.UNSAFE if kept.seed.is_number is None else Applicability.SAFE
    return editor.fix(f"Keep the seed as `{code}`, and pass it", applicability, MAY_BE_NO_INT)


def _as_taken(seed: Seed, fixed: Fixed, code: str) -> str:
    """The seed's spelling as the sampler takes it: a None only where it has one of its own."""
    return code if fixed.takes_none else spelled(Seed(code, seed.is_number))


def add_parameter(
    model: Model, function: Function, site: Call, fixed: Fixed, editor: Editor
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
        if is_named(model, call, function) and _shuffles_through(model, site, call)
    ]
    return pass_to_taker(model, editor, function, calls)


def pass_where_missing(model: Model, unpassed: Sequence[Unpassed], editor: Editor) -> Fix | None:
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
