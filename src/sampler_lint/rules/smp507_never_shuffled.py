"""SMP507: a training loader has neither a sampler nor ``shuffle``, or not in one process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint import catalog
from sampler_lint.analysis.arguments import passed
from sampler_lint.analysis.asked import tests
from sampler_lint.analysis.origins import read_parameter
from sampler_lint.analysis.values import FuncRef, Lit, Obj
from sampler_lint.domain.concepts import ORDERS
from sampler_lint.domain.conditions import contradict, excludes
from sampler_lint.domain.copies import changes_of
from sampler_lint.domain.datasets import may_be_iterable, orders_itself, sampled
from sampler_lint.domain.epoch_calls import calls_for, epoch_samplers
from sampler_lint.domain.epochs import (
    feeds_training,
    is_named_after_training,
    loops_over,
    pass_trains,
    trained_with,
)
from sampler_lint.domain.escape import target_of
from sampler_lint.domain.fixed_orders import is_setting_of, looks_up, shuffled_by_processes
from sampler_lint.domain.leaving import leaves_items
from sampler_lint.domain.model import DATA_LOADER, Model
from sampler_lint.domain.passes import passes_near
from sampler_lint.domain.programs import built_outside_tests
from sampler_lint.domain.ranks import built_classes, is_about_processes
from sampler_lint.domain.samplers import is_distributed_sampler, reads_in_turn, shuffles
from sampler_lint.domain.shares import passes_over_shared
from sampler_lint.domain.steps import takes_and_steps
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.loader_fixes import pass_shuffle, shuffle_without
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.remembered import remembered
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import nodes_in, same, unparse, walk
from sampler_lint.syntax.nodes import (
    Call,
    Choice,
    Class,
    Const,
    Expr,
    For,
    Function,
    If,
    Scope,
    dotted,
)

#: What speaks against every fix that is not safe.
_MEANT = "one order of the data may be meant"


class NeverShuffled(Rule):
    """Nothing shuffles a training loader, at least where there is only one process.

    What it does:
        Reports a training loader that gets a shuffling sampler if there are several processes, but
        `sampler=None` if there is one, and no `shuffle=` (or `shuffle=False`), or a
        `SequentialSampler` there. Not reported where the sampler depends on something other than
        processes or devices, such as a flag for evaluation (any other setting is about processes
        where it decides on a `DistributedSampler` that asks how many there are), and for evaluation
        loaders, datasets that order themselves and iterable datasets. Reports a
        `DistributedSampler(..., shuffle=False)` for a training loader, too, where one process gets
        a sampler or loader over the same data that shuffles; and a training loader of one process
        without `shuffle`, where one of the same name has a shuffling sampler for several. Only
        `likely` where the loader or its function is named after training, but no training loop over
        it is found. Reports as `likely` a training loader that has no sampler at all and does not
        shuffle (or one that is told not to), or has `DistributedSampler(..., shuffle=False)` and
        tells it the epoch, over a dataset whose class is known and which looks samples up by index,
        or a part that torch takes of one. Not reported where the function builds a sampler or
        another loader over that dataset that may shuffle: then the choice was deliberate.

    Why is this bad?
        The same script trains differently on one device: every epoch reads the samples in the
        order of the dataset, often sorted by class or by file, in the same batches each time.

    Fix safety:
        `shuffle=sampler is None`, where the sampler is a variable. Safe if every loader that the
        call builds is for training, its function is called once, and the class of the dataset is
        known; torch refuses to shuffle an iterable one. Unsafe where the program changes what the
        dataset holds, puts something where the number of the batch says, hands on from batch to
        batch what it makes of them, or pairs what a pass has listed with other things. No fix where
        the sampler is an expression in the call. `shuffle=True` is unsafe: a program may rely on
        the order.

    How it is proved:
        Invariant `shuffles`: run as one process, all epochs have one order; after the fix each
        has its own.

    References:
        - torch/utils/data/dataloader.py, `DataLoader.__init__`: without a sampler, `shuffle`
          decides between `RandomSampler` and `SequentialSampler`
        - https://github.com/ultralytics/yolov5/issues/5622
        - met in https://github.com/WongKinYiu/yolov7 (utils/datasets.py)
        - met in https://github.com/Spijkervet/SimCLR (main_pl.py)
    """

    code = "SMP507"
    name = "never-shuffled"
    symptoms = ("every epoch has the same order", "training is worse on one GPU than on several")
    invariant = "shuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each loader that trains, and at the ways to it on which it gets no sampler."""
        yield from _in_turn(model)
        yield from _in_several(model)
        yield from _in_one(model)
        for loader in model.loaders:
            data, sampler, shuffle = (
                model.flow.argument(loader, name) for name in ("dataset", "sampler", "shuffle")
            )
            if loader.site is None or data is None or sampler is None:
                continue
            if excludes(model, loader.through, loader.site):
                continue
            if _is_handed_by_class(loader, sampler) or _is_handed_by_class(loader, shuffle):
                continue
            if orders_itself(model, data):
                continue
            built = shuffled_by_processes(model, loader)
            trained = trained_with(model, loader) if built else []
            is_named = not trained and is_named_after_training(loader)
            if built is None or not (any(trained) or is_named):
                continue
            name = dotted(sampler)
            none = any(isinstance(v, Lit) for v in model.passed_to(loader, "sampler"))
            advice = f"pass `shuffle={name} is None`" if name else "pass `shuffle=True` there"
            safe = (
                bool(trained)
                and all(trained)
                and _is_for_training(model, loader, data)
                and not any(changes_of(model, loader))
            )
            yield Suspect(
                model.module_of(loader.site.scope),
                loader.site.func,
                f"nothing shuffles this `{loader.name}` where `{name or 'sampler'}` is "
                f"{'None' if none else 'a `SequentialSampler`'}, as in a single process",
                why=(Related(model.place_of(built), "this sampler shuffles"),),
                fix=partial(
                    shuffle_without,
                    site=loader.site,
                    sampler=sampler,
                    shuffle=shuffle,
                    applicability=Applicability.SAFE if safe else Applicability.UNSAFE,
                    why=_MEANT,
                )
                if none
                else None,
                grade=Grade.CERTAIN if any(trained) else Grade.LIKELY,
                effect="training then reads the samples in one order in every epoch",
                advice=advice if none else "use a `RandomSampler` there",
            )


def _is_handed_by_class(loader: Obj, given: Expr | None) -> bool:
    """Whether a loader gets an argument from the ``__init__`` of its class, as all others do."""
    passed = [arg.value for arg in loader.site.args] if loader.site is not None else []
    return isinstance(loader.cls, Class) and given is not None and given not in passed


def _is_for_training(model: Model, loader: Obj, data: Expr) -> bool:
    """Whether every loader that the call builds trains, over data that can be shuffled.

    A function that is called twice builds one for each call, and the other may evaluate.
    """
    if loader.site is None:
        return False
    scope = loader.site.scope
    return (
        built_classes(model, data) is not None
        and not may_be_iterable(model, data)
        and not (isinstance(scope, Function) and len(model.flow.callers(scope)) > 1)
        and all(
            pass_trains(model, each)
            for each in passes_near(model, scope)
            if loader.may_be(each.loader)
        )
    )


def _in_turn(model: Model) -> Iterator[Suspect]:
    """The loaders that train on their samples in the order of the dataset."""
    for loader, site, module in built_outside_tests(model, model.loaders):
        data = model.flow.argument(loader, "dataset")
        if (
            loader.cls == DATA_LOADER
            and data is not None
            and reads_in_turn(model, loader)
            and not excludes(model, loader.through, site)
            and _is_trained_with_alone(model, loader)
            and looks_up(model, data)
            and not _is_chosen(model, site, data)
            and not _is_told_how(model, site, data)
            and not any(leaves_items(model, loop) for loop in loops_over(model, loader))
        ):
            told = [*model.samplers_of(loader)]
            shuffle = model.flow.argument(loader, "shuffle")
            yield Suspect(
                module,
                site.func,
                f"nothing shuffles this `{loader.name}`, which trains",
                why=tuple(
                    Related(model.place_of(each), "this is told not to shuffle") for each in told
                ),
                fix=None if told else partial(_shuffle, site, shuffle),
                grade=Grade.LIKELY,
                effect=f"every epoch reads the samples of `{unparse(data)}` in their order, in the "
                f"same batches",
                advice="have its sampler shuffle" if told else "pass `shuffle=True`",
            )


def _in_several(model: Model) -> Iterator[Suspect]:
    """The loaders that train, and shuffle nothing in several processes.

    Though they do in one; or they are told their epoch, for nothing.
    """
    for loader, _, _ in built_outside_tests(model, model.loaders):
        if (data := model.flow.argument(loader, "dataset")) is None:
            continue
        for sampler in model.passed_to(loader, "sampler"):
            if not isinstance(sampler, Obj) or sampler.site is None:
                continue
            if not is_distributed_sampler(model, sampler) or shuffles(model, sampler) is not False:
                continue
            alone = _shuffled_alone(model, loader, sampler.site, data)
            if feeds_training(model, loader) is not True:
                continue
            given = sampler.site.keyword("shuffle")
            module, line = model.module_of(sampler.site.scope), sampler.site.func
            fix = partial(_shuffle, sampler.site, given) if given is not None else None
            if alone is not None:
                yield Suspect(
                    module,
                    line,
                    f"nothing shuffles the training data of this `{sampler.name}`, which one "
                    f"process shuffles",
                    why=(Related(model.place_of(alone), "this shuffles them in a single process"),),
                    fix=fix,
                    effect="training on several devices reads the samples in one order in every "
                    "epoch",
                    advice="pass `shuffle=True`",
                )
            elif (
                isinstance(given, Const)
                and all(is_about_processes(model, test) for test, _ in tests(sampler.site))
                and len(model.passed_to(loader, "sampler")) == 1
                and looks_up(model, data)
                and (told := _told_epoch(model, loader, sampler)) is not None
            ):
                yield Suspect(
                    module,
                    line,
                    f"nothing shuffles the training data of this `{sampler.name}`, whose epoch "
                    f"is set",
                    why=(Related(model.place(told.scope, told), "this changes no order"),),
                    fix=fix,
                    grade=Grade.LIKELY,
                    effect="every epoch reads the samples in one order",
                    advice="pass `shuffle=True`",
                )


def _told_epoch(model: Model, loader: Obj, sampler: Obj) -> Call | None:
    """The call by which a loop that trains tells a loader's sampler its epoch."""
    wanted = [each for each in epoch_samplers(model, loader) if each.sampler == sampler]
    return next(
        (
            call
            for loop in (loops_over(model, loader) if wanted else ())
            if pass_trains(model, loop.inner) and not leaves_items(model, loop)
            for call in calls_for(model, loop, wanted).hits
        ),
        None,
    )


def _in_one(model: Model) -> Iterator[Suspect]:
    """The loaders that train in one process without shuffling, beside one for several."""
    for loader, site, module in built_outside_tests(model, model.loaders):
        data = model.flow.argument(loader, "dataset")
        if data is None or not reads_in_turn(model, loader) or orders_itself(model, data):
            continue
        sampler = _shuffled_in_several(model, loader, site, data)
        if sampler is None or feeds_training(model, loader) is not True:
            continue
        is_sampled = any(model.samplers_of(loader))
        yield Suspect(
            module,
            site.func,
            f"nothing shuffles this `{loader.name}`, which trains in a single process",
            why=(Related(model.place_of(sampler), "this shuffles the data in several"),),
            fix=None
            if is_sampled
            else partial(_shuffle, site, model.flow.argument(loader, "shuffle")),
            effect="training then reads the samples in one order in every epoch",
            advice="have its sampler shuffle" if is_sampled else "pass `shuffle=True`",
        )


def _shuffled_in_several(model: Model, loader: Obj, site: Call, data: Expr) -> Obj | None:
    """The sampler by which a loader of that name shuffles that data in the branch for several."""
    here = target_of(loader)
    for other in _by_target(model).get(unparse(here), ()) if here is not None else ():
        over = model.flow.argument(other, "dataset")
        if over is None or not same(over, data):
            continue
        for sampler in model.passed_to(other, "sampler"):
            if (
                isinstance(sampler, Obj)
                and is_distributed_sampler(model, sampler)
                and shuffles(model, sampler)
                and _parted_by_processes(model, site, other, sampler)
            ):
                return sampler
    return None


@remembered
def _by_target(model: Model) -> dict[str, list[Obj]]:
    """The loaders by what each is assigned to."""
    found: dict[str, list[Obj]] = {}
    for loader in model.loaders:
        target = target_of(loader)
        if target is not None:
            found.setdefault(unparse(target), []).append(loader)
    return found


def _parted_by_processes(model: Model, site: Call, other: Obj, sampler: Obj | None = None) -> bool:
    """Whether a question about processes decides which of two calls of a function is run.

    Such is a setting, too, that decides on a sampler which asks how many there are.
    """
    return (
        other.site is not None
        and other.site is not site
        and other.site.scope is site.scope
        and contradict(model, [site], [other.site])
        and any(
            is_about_processes(model, test)
            or (sampler is not None and is_setting_of(model, test, sampler))
            for test in _parting(site, other.site)
        )
    )


def _shuffled_alone(model: Model, loader: Obj, site: Call, data: Expr) -> Obj | None:
    """What shuffles the same data where a question about processes keeps the sampler from it."""
    for other in model.constructions():
        over = sampled(model, other)
        if (
            over is not None
            and same(over, data)
            and _certainly_shuffles(model, other)
            and _parted_by_processes(model, site, other)
            and (model.role(other) == "sampler" or _is_alike(loader, other))
        ):
            return other
    return None


def _is_alike(one: Obj, other: Obj) -> bool:
    """Whether both loaders are assigned to one name, for either to train."""
    here, there = target_of(one), target_of(other)
    return here is not None and there is not None and same(here, there)


def _parting(site: Call, other: Call) -> Iterator[Expr]:
    """The conditions by which a call is not run where another one is.

    That of the statement in two branches of which they stand, or else all around the call.
    """
    if site.stmt is not None:
        around = [outer for outer in site.stmt.ancestors() if isinstance(outer, If)]
        of_both = [each for each in around if other.stmt is not None and each.encloses(other.stmt)]
        yield from (outer.test for outer in of_both[:1] or around)
        yield from (
            node.test
            for node in nodes_in([site.stmt])
            if isinstance(node, Choice) and node.test is not None
        )


def _certainly_shuffles(model: Model, made: Obj) -> bool:
    """Whether it is a sampler of torch that always shuffles, or a loader that is told to."""
    if model.role(made) == "loader":
        shuffle = model.flow.argument(made, "shuffle")
        return isinstance(shuffle, Const) and bool(shuffle.value)
    entry = catalog.known(made.cls) if isinstance(made.cls, str) else None
    return entry is not None and entry.shuffles is True


def _is_trained_with_alone(model: Model, loader: Obj) -> bool:
    """Whether a framework or a loop trains with the loader, and with none that shuffles."""
    if not loops_over(model, loader):
        return bool(feeds_training(model, loader)) or any(
            found.loader == loader and pass_trains(model, found)
            for found in passes_over_shared(model)
        )
    return feeds_training(model, loader) is True and any(
        # A comprehension trains nothing, whatever is around.
        (isinstance(loop.inner.stmt, For) or loop.is_restart)
        and (pass_trains(model, loop.inner) or _hands_on_to_steps(model, loader, loop.inner.scope))
        and all(
            not isinstance(value, Obj) or reads_in_turn(model, value)
            for source in _handing(model, loader, loop.inner.source)
            for value in model.flow.values(source)
        )
        for loop in loops_over(model, loader)
    )


def _hands_on_to_steps(model: Model, loader: Obj, scope: Scope) -> bool:
    """Whether a generator hands a loader's batches on to where an optimizer steps with them."""
    return (
        isinstance(scope, Function)
        and scope.is_generator
        and any(
            takes_and_steps(model, call)
            for call in model.flow.callers(scope)
            if any(
                loader.may_be(value) for arg in call.args for value in model.flow.values(arg.value)
            )
        )
    )


def _handing(model: Model, loader: Obj, source: Expr) -> Iterator[Expr]:
    """What hands a loader on to a pass; other calls of the functions between hand on others."""

    def given(expr: Expr) -> Iterator[Expr]:
        read = read_parameter(expr)
        for call in model.flow.callers(read[0]) if read is not None else ():
            arg = passed(*read, model.flow.as_made(call)) if read is not None else None
            if isinstance(arg, Expr) and any(map(loader.may_be, model.flow.values(arg))):
                yield arg

    return (each for each in closure([source], given) if not any(given(each)))


def _is_chosen(model: Model, site: Call, data: Expr) -> bool:
    """Whether the same function builds what may shuffle the dataset: another loader, a sampler."""
    return any(
        made.site is not None
        and made.site is not site
        and made.site.scope is site.scope
        and (
            model.role(made) == "sampler"
            or (model.role(made) == "loader" and not reads_in_turn(model, made))
        )
        and (over := sampled(model, made)) is not None
        and same(over, data)
        for made in model.constructions()
    )


def _is_told_how(model: Model, site: Call, data: Expr) -> bool:
    """Whether the same function hands the dataset on with a function of the tree, or to one.

    With one it may make its samples, and draw what goes into one: then no order is another. What
    gets it may put it in another order.
    """
    return any(
        any(same(node, data) for arg in call.args for node in walk(arg.value))
        and (
            any(
                isinstance(value, FuncRef) and value.bound is None
                for arg in call.args
                for value in model.flow.values(arg.value)
            )
            or any(any(ORDERS.calls_in(callee.calls)) for callee in model.flow.callees(call))
        )
        for call in site.scope.calls
        if call is not site
    )


def _shuffle(site: Call, shuffle: Expr | None, editor: Editor) -> Fix | None:
    return pass_shuffle(editor, site, shuffle, "True", Applicability.UNSAFE, _MEANT)
