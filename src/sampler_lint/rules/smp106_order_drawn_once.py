"""SMP106: the order is drawn when a sampler or dataset is built, and never again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from sampler_lint.analysis.values import Lit, Obj, Value
from sampler_lint.domain.conditions import told_what_for
from sampler_lint.domain.datasets import is_iterated
from sampler_lint.domain.epoch_state import seed_argument
from sampler_lint.domain.epochs import feeds_training, hooked_samplers, trained_with
from sampler_lint.domain.fixed_orders import (
    FixedOrder,
    is_asked_to_draw,
    may_be_drawn_again,
    may_be_told_not_to,
    order_given,
    order_of_first_pass,
    order_of_items,
    order_of_module,
    order_of_passes,
    order_without_end,
    seeded_in_each_pass,
    shuffled_by_processes,
)
from sampler_lint.domain.kept_batches import kept_passes
from sampler_lint.domain.model import Model
from sampler_lint.domain.pipelines import is_begun_again, readers, workers
from sampler_lint.domain.programs import built_outside_tests
from sampler_lint.domain.rebuilt import seeded_alike
from sampler_lint.domain.repeated import is_read_once
from sampler_lint.domain.samplers import reads_in_turn
from sampler_lint.edits.draw_fixes import count_passes, draw_in_each_pass
from sampler_lint.edits.editor import Editor, Fixer
from sampler_lint.edits.loader_fixes import pass_shuffle, shuffle_without
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.parameters import Role, role_of
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._trials import defined_by
from sampler_lint.syntax.nodes import Call, Class, Function


class OrderDrawnOnce(Rule):
    """The order is drawn once, when a sampler or dataset is built, and every epoch repeats it.

    What it does:
        Reports a permutation or shuffle in the `__init__`

        - of a sampler or batch sampler whose `__iter__`, and everything it calls, draws no random
          number and reads no epoch,
        - of a map-style dataset that numbers its items by it, where the loader neither shuffles
          nor has a sampler, at least in a single process,

        the same of an order that the module of such a class draws when it is imported, of one
        that an `__iter__` draws before it goes over it in a loop without end, of one that the first
        iteration draws and keeps (in a `cached_property`, for example), and of a list of numbers
        that a loader gets as its sampler, and a seed that a sampler, or an iterable dataset,
        without an epoch sets in each iteration, where a simulation on a small dataset shows that
        all iterations are the same; so where each epoch builds a loader with a generator that it
        seeds alike. Also reports `itertools.cycle` over a loader that shuffles,
        where a training loop goes on with it: it keeps the batches of the first pass.

        Reported only where such a loader trains in a loop; `likely` where the loop is not known
        and the loader is named after training, unless its one pass is known. Not reported where
        anything draws the order again, where the object is rebuilt for each epoch, where a part is
        cut off (a split, a subset), in a branch for evaluation, and for samplers that keep a state
        to resume from.

    Why is this bad?
        It looks shuffled, but every epoch reads the samples in the same order and the same
        batches: batch statistics and gradients repeat, and training is worse than with a new
        order in each epoch. No error is raised.

    Fix safety:
        Unsafe: where a dataset has the order, its loader gets `shuffle=True`, or
        `shuffle=sampler is None` where it may have a sampler, and a sampler that knows of no ranks
        draws anew at the start of `__iter__`, with what is global, or with its generator, which it
        keeps; a run may rely on the order. Unsafe, too: one that seeds every pass alike counts its
        passes, and adds their number to the seed, which is the same on all ranks. No other fix is
        offered: draw in `__iter__` (by the epoch, where ranks must agree).

    How it is proved:
        Invariant `shuffles`: all epochs have one order; in the corrected program each has its
        own.

    References:
        - torch/utils/data/sampler.py, `RandomSampler.__iter__`: draws for each pass
        - met in https://github.com/voicepaw/so-vits-svc-fork (so_vits_svc_fork/dataset.py)
    """

    code = "SMP106"
    name = "order-drawn-once"
    symptoms = ("every epoch has the same order",)
    invariant = "shuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Ask of each class that orders a training loader when it draws."""
        for cls, built in _samplers_by_class(model).items():
            order = order_of_passes(model, cls)
            if order is not None:
                yield from _drawn_once(model, cls, built, order, "draw it in `__iter__`")
                continue
            seeding, built = _seeding(model, cls, built)
            if seeding is not None:
                seed, taken = seed_argument(seeding), model.attributes(cls).names
                for suspect in _seeded_alike(model, cls, built, seeding):
                    if seed is not None:
                        suspect.fix = partial(count_passes, model, seeding, seed, taken)
                    yield suspect
                continue
            first = order_of_first_pass(model, cls)
            if first is not None:
                said = f"`{cls.name}` draws its order in the first pass, and keeps it for all"
                asked = [pair for pair in built if not may_be_told_not_to(model, pair[0], first)]
                yield from _suspect(model, first, asked, said, "draw it in each `__iter__`")
                continue
            endless = order_without_end(model, cls)
            if endless is not None:
                said = f"`{cls.name}` draws its order once, and goes over it without end"
                advice = "draw it inside the loop"
                loaders = [loader for _, loader in built]
                is_sure = any(any(trained_with(model, loader)) for loader in loaders)
                yield _told(model, endless, loaders[0], said, advice, is_certain=is_sure)
                continue
            yield from _drawn_by_module(model, cls, built, "draw it in `__iter__`")
        for cls, built in _by_class(model, _datasets).items():
            order = order_of_items(model, cls)
            if order is not None:
                yield from _drawn_once(model, cls, built, order, _SHUFFLE)
                continue
            yield from _drawn_by_module(model, cls, built, _SHUFFLE)
        for cls, built in _by_class(model, _streams).items():
            # What is iterated in workers cannot count its passes: each begins with a copy.
            seeding, built = _seeding(model, cls, built)
            if seeding is not None:
                yield from _seeded_alike(model, cls, built, seeding)
        yield from _begun_in_workers(model)
        for call, loader in seeded_alike(model):
            said = f"each epoch builds this `{loader.name}` anew, with a generator of the same seed"
            advice = "build it before the loop, or seed with the epoch"
            yield _told(model, call, loader, said, advice, is_certain=True)
        for call, loader in kept_passes(model):
            said = "`cycle` keeps the batches of the first pass and gives them again for ever"
            advice = "write a generator that goes over the loader anew (`while True: yield from …`)"
            yield _told(model, call, loader, said, advice, is_certain=True)
        for loader, _, _ in built_outside_tests(model, model.loaders):
            draw = order_given(model, loader)
            if draw is not None and (
                feeds_training(model, loader) or not may_be_drawn_again(model, draw)
            ):
                said = f"the order that this `{loader.name}` is given is drawn once"
                advice = "pass `shuffle=True` to a loader over these samples, and not their order"
                yield from _suspect(model, draw, [(loader, loader)], said, advice)


#: What is advised where the dataset has the order, and a loader reads it from one end.
_SHUFFLE = "pass `shuffle=True` to the loader"


def _shuffle(model: Model, loader: Obj, editor: Editor) -> Fix | None:
    """Let the loader shuffle anew in each pass, at least where it gets no sampler."""
    site, sampler = loader.site, model.flow.argument(loader, "sampler")
    if site is None:
        return None
    shuffle = site.keyword("shuffle")
    if shuffle is None and model.flow.may_be_passed(loader, "shuffle"):
        return None
    why = "a run may rely on the order"
    there = editor.at(model.module_of(site.scope))
    if sampler is not None and shuffled_by_processes(model, loader) is not None:
        if not any(isinstance(value, Lit) for value in model.passed_to(loader, "sampler")):
            return None  # torch's sampler goes through the data in turn there
        return shuffle_without(there, site, sampler, shuffle, Applicability.UNSAFE, why)
    if not reads_in_turn(model, loader) or any(model.samplers_of(loader)):
        return None
    return pass_shuffle(there, site, shuffle, "True", Applicability.UNSAFE, why)


_Part = Callable[[Model, Obj], Iterator[Value]]


def _by_class(model: Model, part: _Part) -> dict[Class, list[tuple[Obj, Obj]]]:
    """The objects of each class of the tree that order a loader, with that; tests aside."""
    found: dict[Class, list[tuple[Obj, Obj]]] = {}
    for loader, _, _ in built_outside_tests(model, model.loaders):
        for value in part(model, loader):
            if isinstance(value, Obj) and isinstance(value.cls, Class):
                found.setdefault(value.cls, []).append((value, loader))
    return found


def _samplers_by_class(model: Model) -> dict[Class, list[tuple[Obj, Obj]]]:
    """Those of samplers, also of one that a framework is given: that stands for its loader."""
    found = _by_class(model, Model.samplers_behind)
    for sampler in hooked_samplers(model):
        if isinstance(sampler.cls, Class):
            found.setdefault(sampler.cls, []).append((sampler, sampler))
    return found


def _datasets(model: Model, loader: Obj) -> Iterator[Value]:
    if reads_in_turn(model, loader) or shuffled_by_processes(model, loader) is not None:
        yield from model.passed_to(loader, "dataset")


def _streams(model: Model, loader: Obj) -> Iterator[Value]:
    for value in model.passed_to(loader, "dataset"):
        if isinstance(value, Obj) and is_iterated(model, value.cls):
            yield value


def _seeding(
    model: Model, cls: Class, built: list[tuple[Obj, Obj]]
) -> tuple[Call | None, list[tuple[Obj, Obj]]]:
    """What seeds each pass alike, with the objects for which it does: all, or those with a seed."""
    if (seeding := seeded_in_each_pass(model, cls)) is not None:
        return seeding, built
    given = [pair for pair in built if _is_given_seed(model, pair[0])]
    seeding = seeded_in_each_pass(model, cls, is_given=True) if given else None
    return seeding, built if seeding is None else given


def _is_given_seed(model: Model, made: Obj) -> bool:
    """Whether an object is certainly built with a seed, and none of None."""
    init = model.flow.method(made.cls, "__init__")
    params = init.params if isinstance(init, Function) else []
    given = (model.argument(made, each.name) for each in params if role_of(each.name) is Role.SEED)
    constants = [model.flow.constants(each) for each in given if each is not None]
    return any(found is not None and found and None not in found for found in constants)


def _seeded_alike(
    model: Model, cls: Class, built: list[tuple[Obj, Obj]], seeding: Call
) -> Iterator[Suspect]:
    said = f"`{cls.name}` seeds its order with the same value in every epoch"
    asked = [
        pair
        for pair in built
        if not may_be_told_not_to(model, pair[0], seeding)
        and is_asked_to_draw(model, pair[0], FixedOrder(seeding, ""))
    ]
    advice = "seed with the epoch"
    if not is_iterated(model, cls):
        advice = "seed once, when it is built, or with the epoch"
    yield from _suspect(model, seeding, asked, said, advice)


def _drawn_once(
    model: Model, cls: Class, built: list[tuple[Obj, Obj]], order: FixedOrder, advice: str
) -> Iterator[Suspect]:
    said = f"`{cls.name}` draws the order in `self.{order.attribute}` once, when it is built"
    asked = [pair for pair in built if is_asked_to_draw(model, pair[0], order)]
    iterate = defined_by(model, cls, "__iter__")
    taken = model.attributes(cls).names
    roles = set(map(role_of, taken))
    fix: Fixer | None = None
    if iterate is not None and advice != _SHUFFLE and not roles & {Role.RANK, Role.WORLD_SIZE}:
        fix = partial(draw_in_each_pass, iterate, order.draw, order.attribute, taken)
    for suspect in _suspect(model, order.draw, asked, said, advice):
        suspect.fix = suspect.fix or fix
        yield suspect


def _begun_in_workers(model: Model) -> Iterator[Suspect]:
    """Shuffles of webdataset that count their epochs in workers which each epoch starts anew."""
    for made, pipeline in readers(model):
        numbers = workers(model, made)
        keeps = made.keyword("persistent_workers")
        is_kept = keeps is not None and model.flow.constants(keeps) != {False}
        if pipeline.counts is None or is_kept or not numbers or 0 in numbers:
            continue
        if is_begun_again(model, made):
            yield Suspect(
                model.module_of(pipeline.counts.scope),
                pipeline.counts,
                "this shuffle counts its epochs in workers, which every epoch starts anew",
                effect="training reads the samples in one order in every epoch",
                advice="pass `persistent_workers=True` to the loader",
                why=(Related(model.place(made.scope, made), "the loader is built here"),),
            )


def _drawn_by_module(
    model: Model, cls: Class, built: list[tuple[Obj, Obj]], advice: str
) -> Iterator[Suspect]:
    draw = order_of_module(model, cls)
    if draw is not None:
        said = f"`{cls.name}` reads in an order that is drawn once, when the file is imported"
        yield from _suspect(model, draw, built, said, advice)


def _suspect(
    model: Model, call: Call, built: list[tuple[Obj, Obj]], said: str, advice: str
) -> Iterator[Suspect]:
    """The finding, if one of the loaders trains."""
    loaders = [
        loader
        for _, loader in built
        if loader.site is None or told_what_for(loader.site) is not False
    ]
    trains = feeds_training(model, *loaders)
    if trains is False or (trains is None and all(is_read_once(model, each) for each in loaders)):
        return
    yield _told(model, call, loaders[0], said, advice, is_certain=bool(trains))


#: What is said of a loader, or of a sampler that a framework puts into one.
_READS = {True: "a loader reads in this order", False: "a framework is given it for a loader"}


def _told(
    model: Model, call: Call, loader: Obj, said: str, advice: str, *, is_certain: bool
) -> Suspect:
    is_sampled = shuffled_by_processes(model, loader) is not None
    alone = " (in a single process, where the loader has no sampler)" if is_sampled else ""
    return Suspect(
        model.module_of(call.scope),
        call,
        said,
        why=(Related(model.place_of(loader), _READS[model.role(loader) == "loader"]),),
        fix=partial(_shuffle, model, loader) if advice == _SHUFFLE else None,
        grade=Grade.CERTAIN if is_certain else Grade.LIKELY,
        effect=f"training reads the samples in one order in every epoch{alone}",
        advice=advice,
    )
