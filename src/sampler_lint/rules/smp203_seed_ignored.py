"""SMP203: a sampler's own shuffle is seeded with the epoch, or a number, alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.conditions import is_never_built
from sampler_lint.domain.draws import Seeded
from sampler_lint.domain.epochs import feeds_training
from sampler_lint.domain.evaluated import only_evaluates
from sampler_lint.domain.launches import is_left_over, launches
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.programs import is_imported, is_test
from sampler_lint.domain.samplers import ignores_seed, may_shuffle, own_seed, seeds_constantly
from sampler_lint.domain.seeds import constructions, epoch_carries_seed, seeding, takes_seed
from sampler_lint.domain.shards import orders_globally
from sampler_lint.edits.editor import Editor, Fixer
from sampler_lint.edits.names import text_of
from sampler_lint.edits.seed_fixes import pass_to_taker, summed, take_seed
from sampler_lint.findings import Applicability, Fix, Grade, Related, Severity
from sampler_lint.parameters import Role, role_of
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import unparse
from sampler_lint.syntax.nodes import (
    SUMS,
    Assign,
    Attr,
    Bin,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Name,
    Scope,
    Stmt,
    last_name,
)
from sampler_lint.workspace.project import Module


class SeedIgnored(Rule):
    """A sampler seeds its shuffle with the epoch or a number alone: no seed changes the order.

    What it does:
        Reports `g.manual_seed(self.epoch)`, `random.seed(self.epoch)`,
        `np.random.RandomState(self.epoch)` and the like in a sampler, when the class takes a seed
        that it does not use there, or when the program seeds its generators from a setting
        (`torch.manual_seed(args.seed)`...) and builds the class so that it shuffles. Not reported
        where the seed is passed with the epoch (`sampler.set_epoch(args.seed + epoch)`) or kept in
        it by the class, where the other branch of a test seeds with it, or for what is only
        evaluated; only `likely` where nothing in sight builds a class that takes no seed. Also a
        number (`g.manual_seed(0)`), in a sampler that a loader trains with and that is given no
        generator; the same of the process's own generator that a sampler inside draws from; and a
        class that takes a seed, where a simulation draws the same with another.

    Why is this bad?
        Epoch `k` has the same order in every run, whatever the seed. Runs with different seeds
        differ less than they claim, and another seed does not help against a bad order. torch's
        own `DistributedSampler` seeds with `seed + epoch` since 1.6.

    Fix safety:
        Safe where the class already has a seed: the default seed 0 leaves every order as it was.
        Also safe where the class gets a parameter `seed=0` and every place in the repository that
        builds it can pass the program's seed. Unsafe where only some of them can, or where the
        seed may not be an int. Display-only where none can, since nothing would change then.

    How it is proved:
        Invariant `seed-matters`: two runs with different seeds give one order before the fix
        and different orders after it.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__`
        - https://github.com/open-mmlab/mmpose/pull/493
        - met in https://github.com/hustvl/Vim (vim/samplers.py)
    """

    code = "SMP203"
    name = "seed-ignored"
    symptoms = ("changing the seed changes nothing",)
    severity = Severity.WARNING
    invariant = "seed-matters"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at every generator that a sampler of the tree seeds."""
        for module, cls in model.classes():
            if is_test(module) or not model.is_meant_as_sampler(cls):
                continue
            found = list(ignores_seed(model, cls))
            used = [c for c in (cls, *model.flow.subclasses(cls)) if c in model.built] or [cls]
            if found and (
                epoch_carries_seed(model, module) or all(orders_globally(model, c) for c in used)
            ):
                continue
            if not found and any(
                _is_left_to_itself(model, *each) for each in model.loaded.get(cls, ())
            ):
                found = list(seeds_constantly(model, cls))
            if not found:
                yield from _never_used(model, module, cls)
                continue
            reason = _setting(model, module, cls)
            if reason is None or is_left_over(model, cls) or is_never_built(model, cls):
                continue
            grade = Grade.CERTAIN if takes_seed(model, cls) else _grade_of(model, module, cls)
            if grade is None:
                continue
            for seeded in found:
                is_run = _is_run(model, cls, seeded.call.scope)
                told = grade if is_run else Grade.LIKELY
                yield _suspect(model, module, cls, seeded, *reason, told)


def _is_run(model: Model, cls: Class, scope: Scope) -> bool:
    """Whether something in sight calls a method of a class, or Python and torch do."""
    known = scope.name.startswith("__") or scope.name == "set_epoch"
    return known or bool(model.project.calls_near(scope.name, cls))


def _never_used(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """A seed for the class's own constructor that changes nothing of what it draws by."""
    init = cls.method("__init__")
    params = [] if init is None else [p for p in init.params if role_of(p.name) is Role.SEED]
    if len(params) != 1 or model.uses_seed(cls) is not False:
        return
    yield Suspect(
        module,
        params[0].node,
        f"`{cls.name}` takes a `{params[0].name}`, and draws its order without it",
        effect="every run reads the data in the same order, whatever the seed",
        advice="seed with it what the order is drawn from",
    )


def _is_left_to_itself(model: Model, sampler: Obj, loader: Obj) -> bool:
    """Whether a sampler of a loader that trains is given no generator to draw from."""
    return feeds_training(model, loader) is True and not any(
        model.argument(sampler, name) is not None or model.flow.may_be_passed(sampler, name)
        for name in model.flow.params(sampler.cls) or ()
        if role_of(name) is Role.GENERATOR
    )


def _setting(model: Model, module: Module, cls: Class) -> tuple[str, tuple[Related, ...]] | None:
    """The seed that does not reach the sampler, in words, and the place it stands at."""
    users: list[tuple[Module, Call | Scope]] = [
        (model.module_of(site.scope), site) for site in _sites(model, cls)
    ]
    sources = (seeding(model, *user) for user in users or [(module, cls)])
    source = next(filter(None, sources), None)
    if source is not None:
        seeded = Related(source.module.place(source.call), "the program is seeded here")
        return f"`{source.setting.code}`", (seeded,)
    if takes_seed(model, cls):
        return "the `seed` that it is given", ()
    for sampler in model.built.get(cls, ()):
        site = sampler.site
        if site is not None and _offers_seed(site.scope):
            built = Related(model.place(site.scope, site), "it is built here")
            return f"the `seed` of `{site.scope.name}`", (built,)
    return None


def _sites(model: Model, cls: Class) -> list[Call]:
    """Where the program builds the class, or one derived from it; tests aside."""
    return [
        sampler.site
        for sampler in constructions(model)
        if isinstance(sampler.cls, Class) and cls in model.flow.mro(sampler.cls)
        if sampler.site is not None and not is_test(model.module_of(sampler.site.scope))
    ]


def _grade_of(model: Model, module: Module, cls: Class) -> Grade | None:
    """Whether some program builds the class, or one derived from it, so that it shuffles.

    Only likely, where others may that are not in sight.
    """
    built = [
        sampler
        for sampler in constructions(model)
        if isinstance(sampler.cls, Class) and cls in model.flow.mro(sampler.cls)
    ]
    if built:
        trains = (may_shuffle(model, b) and not only_evaluates(model, b) for b in built)
        return Grade.CERTAIN if any(trains) else None
    init = cls.method("__init__")
    # One that derives from nothing, as Megatron's.
    called = init is not None and any(_is_reached(model, c) for c in model.flow.callers(init))
    if cls.decorators or called:
        return Grade.CERTAIN
    offered = is_imported(model, module, cls.name) and not launches(model).is_idle(cls)
    return Grade.LIKELY if offered else None


def _is_reached(model: Model, call: Call) -> bool:
    """Whether something may start the function that a call stands in."""
    if last_name(call.func) == "__init__":  # Of a derived class, which is looked at by itself.
        return False
    function = call.scope
    if not isinstance(function, Function) or function.cls is not None or function.decorators:
        return True
    module = model.module_of(function)
    return bool(model.flow.callers(function)) or is_imported(model, module, function.name)


def _offers_seed(scope: Scope) -> bool:
    return isinstance(scope, Function) and scope.param("seed") is not None


def _suspect(
    model: Model,
    module: Module,
    cls: Class,
    seeded: Seeded,
    setting: str,
    why: tuple[Related, ...],
    grade: Grade,
) -> Suspect:
    given = unparse(seeded.seed)
    attribute = own_seed(model, cls)
    fix: Fixer | None
    if isinstance(seeded.seed, Const):
        advice, fix = f"give `{cls.name}` a `seed` parameter and seed with it", None
    elif attribute is not None:
        advice = f"seed with `self.{attribute} + {given}`"
        fix = partial(_use_seed, model, seeded, attribute)
    else:
        advice = f"give `{cls.name}` a `seed` parameter and seed with `self.seed + {given}`"
        fix = partial(_take_seed, model, cls, seeded)
    return Suspect(
        module,
        seeded.call,
        f"`{cls.name}` seeds its shuffle with `{given}` alone",
        why=why,
        fix=fix,
        grade=grade,
        effect=f"{setting} never changes the order, so every run reads the data in the same one",
        advice=advice,
    )


# --------------------------------------------------------------------------- fixes


def _use_seed(model: Model, seeded: Seeded, attribute: str, editor: Editor) -> Fix | None:
    if not _add_seed(model, editor, seeded, attribute):
        return None
    return editor.fix(f"Seed with `self.{attribute}` too", Applicability.SAFE)


def _add_seed(model: Model, editor: Editor, seeded: Seeded, attribute: str) -> bool:
    """Add the seed to what a generator is seeded with, if that can be told."""
    scope, seed = seeded.call.scope, seeded.seed
    if not isinstance(scope, Function) or scope.self_name is None:
        return False
    text = text_of(editor.source, seed)
    if isinstance(seed, Bin) and seed.op not in SUMS | {"Mult"}:
        text = f"({text})"
    elif not isinstance(seed, (Name, Attr, Bin, Call)):
        return False
    editor.replace(seed, summed(model, seeded.call, f"{scope.self_name}.{attribute}", text))
    return True


def _take_seed(model: Model, cls: Class, seeded: Seeded, editor: Editor) -> Fix | None:
    """Add ``seed`` to the constructor, keep it, seed with it, and pass it where it is built."""
    init = cls.method("__init__")
    if init is None or init.define is None or "seed" in init.bindings:
        return None
    if cls not in model.built and any(each in model.built for each in model.flow.subclasses(cls)):
        return None  # those that are made of it are built elsewhere, each in its own way
    if not _add_seed(model, editor, seeded, "seed") or not _keep_seed(model, cls, init, editor):
        return None
    take_seed(editor, init, "0")
    calls = [call for call in model.flow.callers(init) if last_name(call.func) != "__init__"]
    return pass_to_taker(model, editor, init, calls)


def _keep_seed(model: Model, cls: Class, init: Function, editor: Editor) -> bool:
    """Keep the parameter, if it can be: hand it to torch's ``__init__``, or set an attribute."""
    base_call = next(iter(model.flow.base_init_calls(cls)), None)
    if base_call is not None and DISTRIBUTED_SAMPLER in model.flow.mro(cls)[1:2]:
        if base_call.has_double_star or base_call.keyword("seed") is not None:
            return False
        editor.add_argument(base_call, "seed", "seed")
        return True
    after = _after(init, base_call)
    if after is None or init.self_name is None:
        return False
    editor.insert_after(after, f"{init.self_name}.seed = seed")
    return True


def _after(init: Function, base_call: Call | None) -> Stmt | None:
    """The statement below which the seed is kept: that of the epoch, or the base's ``__init__``."""
    for stmt in init.body:
        if isinstance(stmt, Assign) and any(_is_epoch(target) for target in stmt.targets):
            return stmt
    if base_call is not None and base_call.stmt in init.body:
        return base_call.stmt
    stores = [stmt for stmt in init.body if isinstance(stmt, Assign)]
    return stores[-1] if stores else None


def _is_epoch(target: Expr) -> bool:
    return isinstance(target, Attr) and target.name == "epoch"
