"""SMP505: one loop walks the same samples twice at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.origins import is_one_object
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import ITERATES
from sampler_lint.domain.datasets import orders_itself
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import in_test_function
from sampler_lint.domain.samplers import order_giver
from sampler_lint.findings import Related, Severity
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import same, unparse
from sampler_lint.syntax.nodes import Attr, Call, Expr, Index, Name, last_name


class WalkedTwiceAtOnce(Rule):
    """A `zip` reads the same samples twice, from two iterations over one dataset.

    What it does:
        Reports `zip(loader, loader)`, and a `zip` of two loaders that share a sampler over one
        dataset, where both iterations certainly have the same order: because the sampler's order
        is determined by its seed and epoch, as for `DistributedSampler`, or because nothing
        shuffles. Not reported where an iteration draws its own order (`shuffle=True`,
        `RandomSampler`), for datasets that order themselves or are iterable, and for persistent
        workers.

    Why is this bad?
        Each batch is combined with itself: images are mixed with themselves, pairs consist of
        equal samples, and a second stream of unlabelled data adds nothing. Everything is read and
        decoded twice.

    Fix safety:
        No fix is offered: you may want another loader whose sampler has another `seed`, a
        permutation of the same batch, or two views of each sample, which the dataset can make
        with half the reading.

    How it is proved:
        Invariant `runs`: the fixture stops where both halves of a step hold the same samples, as
        they do in each step on two gloo ranks; it finishes with a sampler of another seed.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__`: the generator is seeded
          with `seed + epoch` for each iteration
        - https://github.com/charlesCXK/TorchSemiSeg/issues/78
        - https://github.com/LiheYoung/UniMatch/issues/51
    """

    code = "SMP505"
    name = "walked-twice-at-once"
    symptoms = ("samples are mixed or paired with themselves",)
    severity = Severity.WARNING
    invariant = "runs"
    fixable = "never"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each pair of loaders that are zipped."""
        for module in model.modules:
            for call in module.facts.all_calls:
                if last_name(call.func) != "zip" or in_test_function(call.scope):
                    continue
                for one, other in itertools.combinations(map(_iterated, call.positional), 2):
                    found = _walked_alike(model, one, other)
                    if found is None:
                        continue
                    loader, giver = found
                    what = f"`{unparse(one)}`" if same(one, other) else "one dataset"
                    yield Suspect(
                        module,
                        other,
                        f"this `zip` reads {what} twice at once, in the same order",
                        why=(Related(model.place_of(loader), "the loader is built here"),),
                        effect=f"{giver} gives both the same order: every batch meets itself",
                        advice="take the second one from a sampler with another seed, or permute "
                        "the batch",
                    )
                    break


def _iterated(expr: Expr) -> Expr:
    """What ``iter``, ``cycle``, ``enumerate`` and the like go over."""
    while isinstance(expr, Call) and ITERATES.is_call(expr) and expr.positional:
        expr = expr.positional[0]
    return expr


def _walked_alike(model: Model, one: Expr, other: Expr) -> tuple[Obj, str] | None:
    """The loader that both expressions walk in one order, or walk alike, and what orders it."""
    here, there = (
        [value for value in model.flow.values(expr) if isinstance(value, Obj)]
        for expr in (one, other)
    )
    if same(one, other) and isinstance(one, (Name, Attr, Index)):
        givers = [giver for each in here if (giver := _giver(model, each)) is not None]
        return (here[0], givers[0]) if here and len(givers) == len(here) else None
    if len(here) != 1 or len(there) != 1 or model.role(here[0]) != "loader":
        return None
    data, sampler, size = (
        [model.flow.argument(each, name) for each in (here[0], there[0])]
        for name in ("dataset", "sampler", "batch_size")
    )
    is_it = partial(is_one_object, model.flow)
    is_one = here[0].site is not there[0].site and all(
        x is not None and y is not None and test(x, y)
        for (x, y), test in ((data, is_it), (sampler, is_it), (size, same))
    )
    giver = _giver(model, here[0]) if is_one else None
    return (here[0], giver) if giver is not None else None


def _giver(model: Model, loader: Obj) -> str | None:
    """What gives every walk over a loader one order; None if that is not certain."""
    data = model.flow.argument(loader, "dataset") if model.role(loader) == "loader" else None
    return None if data is None or orders_itself(model, data) else order_giver(model, loader)
