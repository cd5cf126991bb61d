"""SMP306: the ranks of a distributed sampler hand out different numbers of items."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sampler_lint.model.facts import Class
from sampler_lint.model.linked import Model
from sampler_lint.model.project import Module
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._mend import name_of
from sampler_lint.rules._trials import counts, defined_by, is_uneven, judged, splitting_place

if TYPE_CHECKING:
    from sampler_lint.model.running.trials import Trials


#: Evaluation gathers results of any number, and its samplers say so in their names.
_MAY_BE_UNEVEN = re.compile(
    r"[Ee]val|[Ii]nfer|[Tt]est|[Vv]al(id|[A-Z]|$)|[Pp]redict|[Uu]nrepeat|[Uu]neven|[Nn]o(n)?Pad"
    r"|[Nn]oExtend|[Nn]oDup|[Oo]rderedDist|[Uu]npadded"
)


class UnevenRanks(Rule):
    """The ranks of a sampler hand out different numbers of samples or batches.

    What it does:
        Builds the sampler for a few small worlds in an interpreter of its own (nothing of yours
        is imported or run) and counts what each rank hands out. Reports a class whose ranks
        differ although its `__len__` says nothing of it, with the numbers. A sampler whose
        `__len__` is exact on every rank is uneven on purpose and left alone, as are those made
        for evaluation, by their names.

    Why is this bad?
        `DistributedDataParallel` averages gradients in every backward pass. A rank with one
        batch more waits for the others in an all-reduce they never join: training hangs at the
        end of the epoch, or the short ranks slip into their next epoch and the ranks read
        different epochs from then on.

    Fix safety:
        There is no fix: padding, truncating and gathering the least number over the ranks are
        different choices.

    How it is proved:
        Invariant `equal-steps`: each rank's steps are counted; the right twin takes equally many.

    References:
        - https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
          (uneven inputs, `join`)
        - torch/utils/data/distributed.py, `DistributedSampler.__init__`: `total_size`
    """

    code = "SMP306"
    name = "uneven-ranks"
    invariant = "equal-steps"
    fixable = "never"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Compare the ranks of each class that shards."""
        for module, cls in judged(model):
            if not _MAY_BE_UNEVEN.search(cls.name):
                suspect = _uneven(model, module, cls)
                if suspect is not None:
                    yield suspect


def _uneven(model: Model, module: Module, cls: Class) -> Suspect | None:
    trials = model.trials(cls)
    trial = next((trial for trial in trials.usual if is_uneven(trial)), None)
    if trial is None or _is_meant(trials):
        return None
    some = " (for some data)" if trial.from_data else ""
    message = (
        f"with {trial.story}, {counts(trial)}{some}: in distributed training the rank with more "
        f"waits for ever at the end of the epoch; pad or cut what `{cls.name}` splits to a "
        f"multiple of the number of ranks"
    )
    iterate = defined_by(model, cls, "__iter__")
    where, node = splitting_place(model, cls) or (module, name_of(module, cls))
    why = () if iterate is None else (f"{model.place(iterate, iterate)}: handed out here",)
    return Suspect(where, node, message, why=why)


def _is_meant(trials: Trials) -> bool:
    """Whether every rank knows, and says, how many it hands out."""
    turns = [turn for trial in trials.usual if trial.raised is None for turn in trial.turns]
    return all(turn.length == turn.count or turn.later == turn.count for turn in turns)
