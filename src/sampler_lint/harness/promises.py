"""What a sampler promises, judged over the journeys of its ranks.

A judge gets an :class:`Experiment` and says what is wrong in one sentence, or nothing. Whether a
promise applies at all is decided over all experiments, in :mod:`sampler_lint.harness.contract`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sampler_lint.harness.ranks import Item, Journey, Pass, Setting

#: Orders of fewer samples than this are equal by chance too often.
ENOUGH = 7


@dataclass(slots=True)
class Experiment:
    """One setting, and what the ranks of that world did in it."""

    setting: Setting
    ranks: list[Journey]
    apart: list[Journey] = field(default_factory=list)
    """The same with the ranks' global generators in different states."""
    again: list[Journey] = field(default_factory=list)
    """Some of the ranks once more, from the start."""
    jumped: list[Journey] = field(default_factory=list)
    """Some of the ranks, told epoch 1 at once."""
    other_seed: list[Journey] = field(default_factory=list)
    """All ranks in the first epoch, with the next seed."""
    resumed: tuple[list[Item], list[Item]] | None = None
    """What rank 0 had left half-way through epoch 1, and what a sampler with its state read."""
    resume_error: str | None = None
    """What saving or loading the state raised."""
    sharded: bool = True
    """The sampler knows of ranks."""
    batch: int = 1
    """The size of the largest batch that the sampler was ever seen to yield."""

    @property
    def refused(self) -> str | None:
        """What every rank's constructor raised: an honest no, the same for all."""
        return self.ranks[0].refusal if all(one.refusal for one in self.ranks) else None

    @property
    def endless(self) -> bool:
        """The stream never ended."""
        return any(one.endless for rank in self.ranks for one in rank.passes)

    @property
    def stuck(self) -> bool:
        """A rank had to be interrupted."""
        return any(one.stuck for rank in self.ranks for one in rank.passes)

    def epochs(self) -> list[tuple[int, list[Pass]]]:
        """The passes of all ranks, for each epoch that all of them read without an error."""
        found = []
        for number in range(min(len(rank.passes) for rank in self.ranks)):
            passes = [rank.passes[number] for rank in self.ranks]
            if not any(one.error for one in passes):
                found.append((number, passes))
        return found


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong, and in which epoch it is first seen."""

    text: str
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """How the ranks share one epoch's samples."""

    missing: list[int]
    """Samples that no rank reads."""
    repeats: int
    """How many times a sample is read that was read before."""
    padding: int
    """How many of the repeats padding explains."""
    dropped: int
    """How many samples a declared ``drop_last`` may leave out."""
    strange: list[Item]
    """What was yielded and is no index of the dataset."""
    round: int
    """The most samples that one step of all ranks reads."""


def share(experiment: Experiment, passes: Sequence[Pass], journeys: Sequence[Journey]) -> Share:
    """How ``passes``, one of each rank, share the dataset."""
    size = experiment.setting.size
    read = [index for one in passes for index in one.indices]
    try:
        distinct = set(read)
    except TypeError:  # not even hashable
        return Share([], 0, 0, 0, read[:3], 0)
    strange = [i for i in distinct if not isinstance(i, int) or not -size <= i < size]
    missing = sorted(set(range(size)) - distinct)
    batch = max(
        experiment.batch,
        *(int(journey.attributes.get("batch_size") or 0) for journey in journeys),
        experiment.setting.batch_size if "batch_size" in journeys[0].asked else 1,
    )
    around = batch * len(passes)
    drops = any(journey.attributes.get("drop_last") is True for journey in journeys)
    # Padding fills up each rank's last batch, or group; more than that is reading twice.
    most = max(batch, experiment.setting.batch_size) * len(passes)
    padding = min(max(len(read) - size, 0), most)
    return Share(
        missing, len(read) - len(distinct), padding, around - 1 if drops else 0, strange, around
    )


def _numbers(values: Sequence[object], most: int = 4) -> str:
    texts = [str(one) for one in values[:most]]
    return ", ".join(texts) + (", …" if len(values) > most else "")


def _reads(passes: Sequence[Pass]) -> str:
    shown = [one.items[:8] + (["…"] if len(one.items) > 8 else []) for one in passes[:4]]
    return "ranks read " + str(shown).replace("'…'", "…") + (", …" if len(passes) > 4 else "")


# -- the judges


def _coverage(experiment: Experiment) -> Flaw | None:
    for rank in experiment.ranks:
        for epoch, one in enumerate(rank.passes):
            if one.error:
                return Flaw(f"the sampler of rank {rank.rank} {one.error}", epoch)
        if rank.reopened_empty:
            return Flaw("left early and iterated again, the endless sampler yields nothing")
    if experiment.endless or any(rank.refusal for rank in experiment.ranks):
        return None
    for epoch, passes in experiment.epochs():
        seen = share(experiment, passes, experiment.ranks)
        size = experiment.setting.size
        if seen.strange and all(isinstance(one, int) for one in seen.strange):
            return Flaw(f"hands out index {seen.strange[0]} of a dataset of {size}", epoch)
        if len(seen.missing) > seen.dropped and not seen.strange:
            return Flaw(
                f"{len(seen.missing)} of {size} samples are read by no rank "
                f"({_numbers(seen.missing)}); {_reads(passes)}",
                epoch,
            )
    return None


def _disjoint(experiment: Experiment) -> Flaw | None:
    if experiment.endless:
        return None
    for epoch, passes in experiment.epochs():
        seen = share(experiment, passes, experiment.ranks)
        if seen.repeats > seen.padding and not seen.strange:
            return Flaw(
                f"{seen.repeats} samples are read again, of which padding explains "
                f"{seen.padding}; {_reads(passes)}",
                epoch,
            )
    return None


def _equal_steps(experiment: Experiment) -> Flaw | None:
    refusing = [rank.rank for rank in experiment.ranks if rank.refusal]
    if refusing:
        reason = next(rank.refusal for rank in experiment.ranks if rank.refusal)
        return Flaw(f"cannot be built on rank {_numbers(refusing)} alone: {reason}")
    broken = [rank.rank for rank in experiment.ranks if rank.error]
    if broken and len(broken) < len(experiment.ranks):
        return Flaw(f"rank {_numbers(broken)} alone {experiment.ranks[broken[0]].error}")
    for epoch, passes in experiment.epochs():
        steps = [len(one.items) for one in passes]
        if len(set(steps)) > 1:
            return Flaw(f"the ranks take {_numbers(steps, 8)} steps", epoch)
    return None


def _length(experiment: Experiment) -> Flaw | None:
    for rank in experiment.ranks:
        for epoch, one in enumerate(rank.passes):
            if one.length_error:
                return Flaw(f"len() raises {one.length_error}", epoch)
            if one.error:
                break
            if one.claimed is not None and one.endless:
                return Flaw(f"len() is {one.claimed}, but iterating never ends", epoch)
            if one.claimed is not None and one.claimed != len(one.items):
                return Flaw(
                    f"len() is {one.claimed} on rank {rank.rank}, but {len(one.items)} are yielded",
                    epoch,
                )
    return None


def _items(journey: Journey, number: int) -> list[Item] | None:
    """What a rank read in its pass of that number, if it got there without an error."""
    if journey.refusal or number >= len(journey.passes) or journey.passes[number].error:
        return None
    return journey.passes[number].items


def _deterministic(experiment: Experiment) -> Flaw | None:
    for again in experiment.again:
        before = experiment.ranks[again.rank]
        for epoch in range(len(again.passes)):
            first, second = _items(before, epoch), _items(again, epoch)
            if first is not None and second is not None and first != second:
                return Flaw(
                    f"built twice alike, rank {again.rank} reads {_begin(first)} and then "
                    f"{_begin(second)}",
                    epoch,
                )
    for jumped in experiment.jumped:
        before = experiment.ranks[jumped.rank]
        first, second = _items(before, 1), _items(jumped, 0)
        # An endless stream has no epoch to be told.
        if first is not None and second is not None and first != second and not experiment.endless:
            return Flaw(
                f"epoch 1 begins with {_begin(first)} after epoch 0, but with {_begin(second)} "
                "for a fresh sampler after set_epoch(1): a resumed run reads other data",
                1,
            )
    return None


def _begin(items: Sequence[Item]) -> str:
    return str(items[:3])[1:-1] or "nothing"


def _orders(journeys: Sequence[Journey], number: int) -> list[list[Item]] | None:
    """What all ranks read in one pass; None when too little, or with errors."""
    found = [_items(journey, number) for journey in journeys]
    orders = [items for items in found if items is not None]
    whole = bool(orders) and len(orders) == len(journeys)
    return orders if whole and any(orders) else None


def same_order(experiment: Experiment) -> tuple[int, int] | tuple[()] | None:
    """Two epochs that are read in one order, or none; None when that cannot be told."""
    orders = [_orders(experiment.ranks, epoch) for epoch in range(len(experiment.ranks[0].passes))]
    if experiment.setting.size < ENOUGH or len(orders) < 2 or None in orders:
        return None
    for second, order in enumerate(orders):
        if order in orders[:second]:
            return orders.index(order), second
    return ()


def same_for_seeds(experiment: Experiment) -> bool | None:
    """Whether two seeds give the same order; None when that cannot be told."""
    orders = _orders(experiment.ranks, 0), _orders(experiment.other_seed, 0)
    if experiment.setting.size < ENOUGH or None in orders:
        return None
    return orders[0] == orders[1]


def follows_generators(experiment: Experiment) -> bool | None:
    """Whether the order depends on the global generators; None when that cannot be told."""
    pairs = [
        (_items(rank, epoch), _items(apart, epoch))
        for rank, apart in zip(experiment.ranks, experiment.apart, strict=False)
        for epoch in range(min(len(rank.passes), len(apart.passes)))
    ]
    known = [pair for pair in pairs if None not in pair]
    if experiment.setting.size < ENOUGH or not known:
        return None
    return any(left != right for left, right in known)


def _reshuffles(experiment: Experiment) -> Flaw | None:
    pair = same_order(experiment)
    if not pair:
        return None
    order = _orders(experiment.ranks, pair[0]) or [[]]
    route = experiment.ranks[0].route
    reached = {"direct": "it", "none": "nothing"}.get(route, f"its {route}")
    return Flaw(
        f"epochs {pair[0]} and {pair[1]} are in one order (set_epoch reaches {reached}): "
        f"rank 0 begins with {_begin(order[0])}",
        pair[1],
    )


def _seed_matters(experiment: Experiment) -> Flaw | None:
    if same_for_seeds(experiment):
        order = _orders(experiment.ranks, 0) or [[]]
        seeds = experiment.setting.seed, experiment.setting.seed + 1
        return Flaw(
            f"seeds {seeds[0]} and {seeds[1]} give one order: rank 0 begins with {_begin(order[0])}"
        )
    return None


def _ranks_agree(experiment: Experiment) -> Flaw | None:
    if not follows_generators(experiment):
        return None
    if not experiment.sharded:
        first, second = _items(experiment.ranks[0], 0), _items(experiment.apart[0], 0)
        return Flaw(
            "two ranks whose global generators differ read different orders: "
            f"{_begin(first or [])} and {_begin(second or [])}"
        )
    for epoch, passes in experiment.epochs():
        if any(epoch >= len(rank.passes) or rank.passes[epoch].error for rank in experiment.apart):
            return None
        alike = share(experiment, passes, experiment.ranks)
        others = [rank.passes[epoch] for rank in experiment.apart]
        apart = share(experiment, others, experiment.apart)
        if len(apart.missing) > len(alike.missing) and not apart.strange:
            return Flaw(
                "where the ranks' global generators differ, "
                f"{len(apart.missing)} of {experiment.setting.size} samples are read by no rank "
                f"and {apart.repeats} twice; {_reads(others)}",
                epoch,
            )
    return None


def _resumes(experiment: Experiment) -> Flaw | None:
    if experiment.resume_error:
        return Flaw(f"resuming from state_dict() raises {experiment.resume_error}", 1)
    if experiment.resumed is None:
        return None
    left, fresh = experiment.resumed
    whole = next((items for one in experiment.jumped if (items := _items(one, 0))), [])
    if fresh in (left, whole):  # it may go on, or begin the epoch again
        return None
    return Flaw(
        f"resumed from state_dict(), it goes on with {_begin(fresh)} ({len(fresh)} items) in the "
        f"place of {_begin(left)} ({len(left)} items)",
        1,
    )


def _batch_size(experiment: Experiment) -> Flaw | None:
    rank = experiment.ranks[0]
    if not rank.batches:
        return None
    size, drop_last = rank.own.get("batch_size"), rank.own.get("drop_last")
    if isinstance(size, int) and not isinstance(size, bool) and isinstance(drop_last, bool):
        return None
    return Flaw(
        f"yields batches, but batch_size is {size} and drop_last is {drop_last}, "
        "which frameworks read"
    )


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise of the contract, and who judges it."""

    name: str
    text: str
    """What holds, as a sentence without full stop."""
    judge: Callable[[Experiment], Flaw | None]
    by_order: bool = False
    """Judged on datasets large enough that two orders are not equal by chance."""


PROMISES = {
    one.name: one
    for one in (
        Promise(
            "coverage",
            "the ranks together read every sample, up to a declared drop_last",
            _coverage,
        ),
        Promise("disjoint", "no sample is read twice, except for padding", _disjoint),
        Promise("equal-steps", "every rank takes the same number of steps", _equal_steps),
        Promise("length-is-true", "len() is what is yielded", _length),
        Promise(
            "deterministic",
            "the same seed and epoch give the same order, also to a fresh sampler",
            _deterministic,
        ),
        Promise("reshuffles", "epochs differ in order where it shuffles", _reshuffles, True),
        Promise("seed-matters", "seeds differ in order where it shuffles", _seed_matters, True),
        Promise(
            "ranks-agree",
            "all ranks slice one order, whatever state their global generators are in",
            _ranks_agree,
        ),
        Promise("resumes", "a sampler with the state_dict of another goes on with it", _resumes),
        Promise("batch-size", "what yields batches has batch_size and drop_last", _batch_size),
    )
}
