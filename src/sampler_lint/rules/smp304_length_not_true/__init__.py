"""SMP304: ``len()`` of a sampler is not what it yields."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.model import Model
from sampler_lint.findings import Severity
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._trials import judged
from sampler_lint.rules.smp304_length_not_true.late import set_too_late, skips_under_inherited
from sampler_lint.rules.smp304_length_not_true.returned import (
    at_most_one,
    returns_a_fraction,
    returns_nothing,
)
from sampler_lint.rules.smp304_length_not_true.tried import runs_dry, untrue_length


class LengthNotTrue(Rule):
    """A sampler's `__len__` is not the number of items its `__iter__` yields.

    What it does:
        Works through the class by hand, as it were: an interpreter of its own (nothing of yours
        is imported or run) builds the sampler for a few small data sets, ranks and batch sizes,
        counts what `__iter__` yields and compares it with `__len__`. Reports a class whose
        length is wrong in one of them, with those numbers; a `__len__` that reads what only
        `__iter__` sets, or that returns nothing or a float; a `__len__` inherited from torch under
        an `__iter__` that skips samples; and a generator whose `next()` finds nothing left, also
        with the samplers of this repository that it is built around. An argument of which only
        the use is known is given something that the class can use; then only a length that is
        wrong in every world counts. A class the interpreter cannot follow is left alone, and so
        is a `__len__` that says it is an estimate.

    Why is this bad?
        `len(loader)` comes from `len(sampler)`. Trainers take the steps of an epoch and the
        learning-rate schedule from it: too large, and the schedule never ends (Lightning and
        Transformers wait for steps that do not come); too small, and the rest of the data is
        never read. The usual causes: the length of the data set where each rank reads a share,
        a floor where the last batch is kept, samples counted where batches are yielded, and
        an inherited `__len__` under a new `__iter__`.

    Fix safety:
        Safe for `min(1, ...)`, which becomes `max(1, ...)`, and for `np.ceil(...)`, which becomes
        `int(np.ceil(...))`. Unsafe for a `__len__` of one `return`
        for which there is an expression that is what every rank yields in every world it was
        tried in: whether `__len__` or `__iter__` is at fault is for the author to say. No other
        fix is offered.

    How it is proved:
        Invariant `length-is-true`: the recorder counts what a loader of the fixture yields
        and compares it with `len()` before and after the fix, or with the right twin.

    References:
        - torch/utils/data/sampler.py, the notes on `__len__` above `class Sampler`
        - torch/utils/data/dataloader.py, `DataLoader.__len__`
        - https://github.com/huggingface/sentence-transformers/issues/3348
        - https://github.com/lhotse-speech/lhotse/issues/212
    """

    code = "SMP304"
    name = "length-not-true"
    symptoms = (
        "len(loader) does not match the number of batches",
        "the learning rate schedule ends too early or too late",
        "some samples are never read",
    )
    severity = Severity.WARNING
    invariant = "length-is-true"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Try each sampler class, and read what cannot be tried."""
        for module, cls in judged(model):
            suspect = (
                returns_nothing(module, cls)
                or returns_a_fraction(model, module, cls)
                or at_most_one(model, cls)
                or set_too_late(model, cls)
                or untrue_length(model, module, cls)
                or runs_dry(model, cls)
                or skips_under_inherited(model, module, cls)
            )
            if suspect is not None:
                yield suspect
