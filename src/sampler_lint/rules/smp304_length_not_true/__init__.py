"""SMP304: ``len()`` of a sampler is not what it yields."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.model import Model
from sampler_lint.findings import Grade, Severity
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._trials import for_others, graded, judged
from sampler_lint.rules.smp304_length_not_true.asked import is_asked_for
from sampler_lint.rules.smp304_length_not_true.returned import (
    at_most_one,
    empty_at_first,
    length_missing,
    returns_a_fraction,
    returns_nothing,
    set_too_late,
    skips_under_inherited,
)
from sampler_lint.rules.smp304_length_not_true.tried import (
    always_off,
    holds,
    one_too_many,
    runs_dry,
    size_at_first,
    true_once,
    untrue_length,
    yields_nothing,
)
from sampler_lint.syntax.nodes import Class
from sampler_lint.workspace.project import Module


class LengthNotTrue(Rule):
    """A sampler's `__len__` is not the number of items its `__iter__` yields.

    What it does:
        Simulates the class: an interpreter built into the linter (your code is neither imported nor
        run) builds the sampler for a few small datasets, ranks and batch sizes, counts what
        `__iter__` yields and compares it with `__len__`. Reports a class whose length is wrong for
        one of them, or with another flag or text that its constructor offers, or two flags, with
        the numbers, and as `likely` one whose length is wrong once an optional number is given; a
        `__len__` that reads what only `__iter__` sets, that is 0 until a pass fills a list, or that
        returns nothing or a float; a `__len__` inherited from torch under an `__iter__` that skips
        samples; and a generator whose `next()` finds nothing left, also around other samplers in
        this repository. Arguments whose type is not known get a value that the class can use; then
        a length counts that is wrong in every case, or, where other values change nothing, in those
        in which something is left over; as `likely` also one that is wrong in some cases and, with
        the same values, true in others. Also reports a class that yields nothing in any case,
        although its length is not 0, or whose second pass is not as long, and `len(...)` of a
        sampler that has no `__len__` or of a loader that is given it. Where a class cannot be
        followed, a length is wrong that always differs by the same number from what is yielded of
        the same attribute; of a sampler that never ends, one that is always one more than an epoch
        has; and one that is the data's own until a pass sets it. Not reported for a class that
        the interpreter cannot follow otherwise, for a `__len__` that says it is an estimate, and
        where a program goes over the loader and never asks how long it is, or all that goes by it
        is a text; only `likely` there in a package that others install, and where no program is
        seen to go over it.

    Why is this bad?
        `len(loader)` comes from `len(sampler)`. Trainers take the steps of an epoch and the
        learning-rate schedule from it: too large, and the schedule never ends (Lightning and
        Transformers wait for steps that do not come); too small, and the rest of the data is
        never read. The usual causes: the length of the dataset where each rank reads a part, a
        floor where the last batch is kept, samples counted where batches are yielded, and an
        inherited `__len__` under a new `__iter__`.

    Fix safety:
        Safe for `min(1, ...)`, which becomes `max(1, ...)`, unless the length is true wherever the
        class was simulated, and for `np.ceil(...)`, which becomes `int(np.ceil(...))`. Unsafe for a
        `__len__` of one `return`, if an expression is found that equals what every rank yields in
        every simulated case: only the author knows whether `__len__` or `__iter__` is wrong.
        Unsafe, and before that, where one number of the class's own, read in the place of another,
        makes lengths and shares right in every case. No other fix is offered, and none where ranks
        yield different numbers.

    How it is proved:
        Invariant `length-is-true`: the recorder counts what a loader of the fixture yields and
        compares it with `len()` before and after the fix, or with the corrected program.

    References:
        - torch/utils/data/sampler.py, the notes on `__len__` above `class Sampler`
        - torch/utils/data/dataloader.py, `DataLoader.__len__`
        - https://github.com/huggingface/sentence-transformers/issues/3348
        - https://github.com/lhotse-speech/lhotse/issues/212
        - met in https://github.com/labomics/midas (src/scmidas/data.py)
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
            suspect, is_refused = next(
                (each for each in _untrue(model, module, cls) if each[0] is not None),
                (None, None),
            )
            for found in graded(model, cls, self.code, suspect):
                is_met = is_refused is None or is_asked_for(model, cls, is_refused=is_refused)
                if is_met is False:
                    yield from for_others(model, cls, self.code, found, "nobody goes by its length")
                    continue
                if is_met is None:
                    found.grade = Grade.LIKELY  # who has the loader may ask
                yield found
        yield from length_missing(model)


def _untrue(
    model: Model, module: Module, cls: Class
) -> Iterator[tuple[Suspect | None, bool | None]]:
    """What is wrong with a class, gravest first, and whether Python refuses to say that length.

    None where any pass meets it, whoever asks for the length.
    """
    yield returns_nothing(module, cls) or returns_a_fraction(model, module, cls), True
    yield at_most_one(model, cls, is_true=holds(model, cls)), False
    yield set_too_late(model, cls), True
    yield untrue_length(model, module, cls), False
    yield yields_nothing(model, module, cls) or true_once(model, cls), None
    yield size_at_first(model, module, cls) or one_too_many(model, cls), False
    yield always_off(model, cls), False
    yield runs_dry(model, cls) or empty_at_first(model, cls), None
    yield skips_under_inherited(model, module, cls), False
