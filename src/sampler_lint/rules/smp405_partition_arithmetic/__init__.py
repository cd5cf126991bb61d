"""SMP405: the arithmetic that splits, pads or groups samples is wrong for some sizes."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._trials import graded, judged
from sampler_lint.rules.smp405_partition_arithmetic.expressions import (
    same_on_each,
    slips,
    stuck_counters,
)
from sampler_lint.rules.smp405_partition_arithmetic.gaps import exchanged, gaps
from sampler_lint.rules.smp405_partition_arithmetic.slices import from_rank
from sampler_lint.rules.smp405_partition_arithmetic.worlds import hands_out_nothing, torn, tried
from sampler_lint.syntax.nodes import Class, Function
from sampler_lint.workspace.project import Module


class PartitionArithmetic(Rule):
    """The arithmetic with which a sampler splits, pads or groups samples is wrong for some sizes.

    What it does:
        Simulates the sampler for a few small datasets and numbers of ranks, in an interpreter built
        into the linter (your code is neither imported nor run). Reports, with the numbers,

        - a length check in the class that fails, also after `load_state_dict()` in the middle of
          an epoch; as likely where arguments had to be guessed and it fails with all guesses,
        - a float in a slice, or given to `range` or to what draws so many,
        - a `while` loop that never ends,
        - a part of the data that is the same on every rank, also where the rank is only left out,
          or begins at the rank's own number and goes on for a share, or by the number of samples,
        - shards so unequal that one rank gets two samples fewer than another, or none,
        - shards that overlap and leave out samples, or by which half of all are read
          twice, although the dataset divides evenly and a single process reads each sample once,
          or a rank that reads nothing but what another one reads,
        - samples that no rank reads, although `drop_last` is False, or there are enough of them for
          one more of each rank,
        - batches that hold one another, such as those of a list that is never emptied, and lists
          for the ranks that are one list (`[[]] * world_size`),
        - a last batch that is handed out again at the beginning of the next pass,
        - an index beyond the data, and a batch of no samples, where the data does not divide
          evenly,
        - a class that works with two ranks, and fails on a lookup with more,
        - tensors of unlike lengths that are added, where one should go behind the other.

        Datasets that divide themselves among ranks or workers are simulated on each of them, and
        compared with what a single process reads; samples at the end that workers lose or repeat
        are only likely. Each worker has a seed of its own there, which torch gives it: what it
        shuffles by that before it takes its part overlaps with the parts of others. Without a
        simulation, it reports

        - in sampler classes, a slice `[:-k]` whose `k` is a remainder and so may be 0,
        - slices in a loop, or by the rank, each of which ends before the next one begins,
        - a loop over `range(len(x) - 1, 0, -1)` that removes items but never the first,
        - a list compared with a batch size,
        - a step or a divisor that is the rank, or a multiple, which is 0 on the first one,
        - a share of which one end goes by the number of ranks in place of the rank, a number of
          samples that is a multiple of the rank, and a number of ranks taken from itself,
        - in any function, a counter that selects the items of a process
          (`i % world_size == rank`) and is only advanced for those,
        - in any function that is told a rank and how many there are, a part of the data that it
          takes by that number, and never by the rank.

        A likely warning is what happens only with hardly more samples than ranks (padding cut
        once from the indices, as torch did before 1.7), which no real training has, or only when
        a checkpoint is loaded by more ranks than saved it.

    Why is this bad?
        Each works for the sizes it was tried with and fails for others: an assertion fails when
        the dataset or the number of ranks changes; `x[:-0]` is empty; with shards of `ceil(n /
        ranks)` samples, three of 8 ranks get none of 9 samples; a list never equals an int, so no
        batch is ever complete.

    Fix safety:
        Safe for what can only mean one thing: `x[: len(x) - k]` for `x[:-k]`, a loop that goes
        down to 0, `len(batch)` compared with the batch size, and a slice that starts at the rank,
        or is the part of its number, where each took the same share, if the class then shares out
        all samples evenly in the simulation; unsafe where that slice began at another place than
        the first sample. Unsafe where a check of the share's length fails: the
        list is cut or padded before, whichever the check holds for in the simulation. Unsafe, too,
        where one number of the class's own, read in the place of another, is all that it takes for
        the ranks to share out all samples in each world. For the rest there is no fix: what to
        pad, drop or round is the author's choice.

    How it is proved:
        Invariant `partitions` for shards (the ranks share no sample and together read all) and
        `runs` for the rest: the program fails, and the corrected one finishes.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__`: padding since torch 1.7
        - https://github.com/pytorch/pytorch/pull/45651
        - met in https://github.com/NVIDIA/NeMo (nemo/collections/tts/data/dataset.py)
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
        told: list[Class] = []
        for module, cls in judged(model):
            for suspect in _in_class(model, module, cls, told):
                yield from graded(model, cls, self.code, suspect)
        for module in model.modules:
            for function in module.facts.functions:
                yield from stuck_counters(module, function)
            yield from same_on_each(model, module)
            yield from from_rank(model, module, told)
        yield from torn(model)


def _in_class(model: Model, module: Module, cls: Class, told: list[Class]) -> Iterator[Suspect]:
    for suspect in tried(model, module, cls):
        told.append(cls)
        yield suspect
    functions = [each for each in scopes_inside(cls) if isinstance(each, Function)]
    slipped = [each for scope in functions for each in slips(model, module, scope)]
    yield from slipped
    if cls not in told and not slipped:
        yield from filter(None, [hands_out_nothing(model, module, cls)])
    for scope in functions:
        yield from gaps(module, scope)
        if cls not in told:
            yield from exchanged(module, scope)
