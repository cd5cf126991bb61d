"""SMP405: the arithmetic that splits, pads or groups samples is wrong for some sizes."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._trials import (
    judged,
)
from sampler_lint.rules.smp405_partition_arithmetic.counters import stuck_counters
from sampler_lint.rules.smp405_partition_arithmetic.datasets import torn
from sampler_lint.rules.smp405_partition_arithmetic.expressions import slips
from sampler_lint.rules.smp405_partition_arithmetic.worlds import tried
from sampler_lint.syntax.nodes import (
    Function,
)


class PartitionArithmetic(Rule):
    """The arithmetic with which a sampler splits, pads or groups samples is wrong for some sizes.

    What it does:
        Builds the sampler for a few small worlds in an interpreter of its own (nothing of yours
        is imported or run) and reports, with the numbers: its own check of a length failing, also
        after `load_state_dict()` of what `state_dict()` says in mid-epoch, or later where the class
        counts on that; a `while` loop that never ends; a share of the data that is the same on
        every rank; shards so unequal that a rank gets two samples less than another, or none; and
        shares that overlap and leave samples to nobody, although the samples come out even and one
        process alone reads each of them once.
        Datasets that divide themselves among ranks, or among the workers of a loader, are run as
        each of these has them, and what they hand out is compared with what one process alone
        does; a rest that workers lose or repeat is only likely. A class that works with two
        ranks, and that looks up what is not there with more, is reported as well.
        Reports as well, in sampler classes: a slice `[:-k]`
        whose `k` is a remainder and so may be 0; a loop `range(len(x) - 1, 0, -1)` that removes
        items but never the first; and a list compared with a batch size. In any function: a
        counter that picks a process's items
        (`i % world_size == rank`) and is only advanced for those.

        Likely, and a warning, is what shows only with hardly more samples than ranks (padding
        cut from the indices once, as torch did before 1.7), which stops no real training, and
        when a checkpoint is loaded by more ranks than saved it.

    Why is this bad?
        Each holds for the sizes it was tried with and breaks for others: an assertion fails
        when the data set, or the number of ranks, changes; `x[:-0]` is empty; with shards of
        `ceil(n / ranks)` samples the last ranks of 8 get none of 9 samples; a list never equals
        an int, so no batch is ever complete.

    Fix safety:
        Safe for what can only mean one thing: `x[: len(x) - k]` for `x[:-k]`, a loop that goes
        down to 0, `len(batch)` compared with the batch size. For the rest there is no fix: what
        to pad, drop or round is the author's choice.

    How it is proved:
        Invariant `partitions` for shards (the ranks share no sample and together read all) and
        `runs` for the rest: the program fails, and its right twin finishes.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__`: padding since torch 1.7
        - https://github.com/pytorch/pytorch/pull/45651
    """

    code = "SMP405"
    name = "partition-arithmetic"
    symptoms = (
        "some samples are never read",
        "samples are repeated within an epoch",
        "it fails only for some dataset sizes or numbers of GPUs",
        "the job hangs at the end of an epoch",
    )
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Try each sampler class; then read the ones whose slips need no numbers."""
        for module, cls in judged(model):
            yield from tried(model, module, cls)
            for scope in scopes_inside(cls):
                if isinstance(scope, Function):
                    yield from slips(model, module, scope)
        for module in model.modules:
            for function in module.facts.functions:
                yield from stuck_counters(module, function)
        yield from torn(model)
