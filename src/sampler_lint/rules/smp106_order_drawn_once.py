"""SMP106: the order is drawn when a sampler or dataset is built, and never again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sampler_lint.analysis.values import Obj, Value
from sampler_lint.domain.epochs import feeds_training
from sampler_lint.domain.fixed_orders import (
    FixedOrder,
    is_asked_to_draw,
    order_of_items,
    order_of_passes,
)
from sampler_lint.domain.model import BATCH_SAMPLER, Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.samplers import reads_in_turn
from sampler_lint.findings import Grade, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.nodes import Class


class OrderDrawnOnce(Rule):
    """An order is drawn when a sampler or a dataset is built, and each epoch repeats it.

    What it does:
        Reports a permutation or shuffle in the `__init__`

        - of a sampler or batch sampler whose `__iter__`, with everything that it calls, draws
          nothing and reads no epoch,
        - of a map-style dataset that numbers its items by it, where the loader neither shuffles
          nor has a sampler.

        Only where such a loader trains in a loop; `likely` where the loop is not known and the
        loader is called after training. Silent where anything draws the order again, where the
        object is built anew for each epoch, where a part is cut off (a split, a subset), below a
        test for evaluation, and for samplers that keep a state to resume from.

    Why is this bad?
        It looks shuffled, but every epoch reads the samples in the same order and the same
        batches: batch statistics and gradients repeat, and training is worse than with an order
        of its own for each epoch. Nothing raises.

    Fix safety:
        No fix is offered: draw in `__iter__` (by the epoch, where ranks must agree), or pass
        `shuffle=True` and let the dataset keep its order.

    How it is proved:
        Invariant `shuffles`: the epochs hand out one order; in the right twin each has its own.

    References:
        - torch/utils/data/sampler.py, `RandomSampler.__iter__`: draws for each pass
        - https://github.com/voicepaw/so-vits-svc-fork (so_vits_svc_fork/dataset.py)
    """

    code = "SMP106"
    name = "order-drawn-once"
    invariant = "shuffles"
    fixable = "never"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Ask of each class that orders a training loader when it draws."""
        for cls, built in _by_class(model, _samplers).items():
            advice = "draw it in `__iter__`"
            yield from _suspects(model, cls, built, order_of_passes(model, cls), advice)
        for cls, built in _by_class(model, _datasets).items():
            advice = "pass `shuffle=True` to the loader"
            yield from _suspects(model, cls, built, order_of_items(model, cls), advice)


_Part = Callable[[Model, Obj], Iterator[Value]]


def _by_class(model: Model, part: _Part) -> dict[Class, list[tuple[Obj, Obj]]]:
    """The objects of each class of the tree that order a loader, with that; tests aside."""
    found: dict[Class, list[tuple[Obj, Obj]]] = {}
    for loader in model.loaders:
        if loader.site is None or is_test(model.module_of(loader.site.scope)):
            continue
        for value in part(model, loader):
            if isinstance(value, Obj) and isinstance(value.cls, Class):
                found.setdefault(value.cls, []).append((value, loader))
    return found


def _samplers(model: Model, loader: Obj) -> Iterator[Value]:
    for sampler in model.samplers_of(loader):
        yield sampler
        if sampler.cls == BATCH_SAMPLER:
            yield from model.flow.ask_field(sampler, "sampler")


def _datasets(model: Model, loader: Obj) -> Iterator[Value]:
    if reads_in_turn(model, loader):
        yield from model.passed_to(loader, "dataset")


def _suspects(
    model: Model,
    cls: Class,
    built: list[tuple[Obj, Obj]],
    order: FixedOrder | None,
    advice: str,
) -> Iterator[Suspect]:
    if order is None:
        return
    loaders = [loader for obj, loader in built if is_asked_to_draw(model, obj, order)]
    trains = feeds_training(model, *loaders)
    if trains is False:
        return
    yield Suspect(
        model.module_of(order.draw.scope),
        order.draw,
        f"`{cls.name}` draws the order in `self.{order.attribute}` once, when it is built: "
        f"training then reads the samples in one order in every epoch; {advice}",
        why=(Related(model.place_of(loaders[0]), "a loader reads in this order"),),
        grade=Grade.CERTAIN if trains else Grade.LIKELY,
    )
