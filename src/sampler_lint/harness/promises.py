"""The promises of a sampler, and the experiments in which they are judged.

How each is judged stands in :mod:`sampler_lint.properties`; whether it applies at all is decided
over all experiments, in :mod:`sampler_lint.harness.contract`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sampler_lint import properties
from sampler_lint.harness.ranks import RankTrace, Setting
from sampler_lint.harness.synthetic import KINDS
from sampler_lint.properties import Observation, Violation, begin


@dataclass(slots=True)
class Experiment(Observation):
    """One setting, and what the ranks of that world did in it."""

    ranks: list[RankTrace]
    apart: list[RankTrace] = field(default_factory=list)
    again: list[RankTrace] = field(default_factory=list)
    jumped: list[RankTrace] = field(default_factory=list)
    other_seed: list[RankTrace] = field(default_factory=list)
    setting: Setting = field(kw_only=True)

    @classmethod
    def of(cls, setting: Setting, ranks: list[RankTrace], batch: int = 1) -> Experiment:
        """The experiment, with what the samplers declared of themselves.

        ``batch`` is the size of the largest batch that the sampler was ever seen to yield.
        """
        asked = ranks[0].asked
        declared = [rank.attributes for rank in ranks]
        sizes = [int(one.get("batch_size") or 0) for one in declared]
        totals = [one["total_size"] for one in declared if one.get("total_size")]
        return cls(
            ranks,
            setting=setting,
            expected=range(setting.size),
            batch=max(batch, *sizes, setting.batch_size if "batch_size" in asked else 1),
            fill=setting.batch_size,
            groups=KINDS if "labels" in asked else 1,
            drop_last=any(one.get("drop_last") is True for one in declared),
            total=max(totals, default=None),
        )

    @property
    def refused(self) -> str | None:
        """What every rank's constructor raised: an honest no, the same for all."""
        return self.ranks[0].refusal if all(one.refusal for one in self.ranks) else None

    @property
    def stuck(self) -> bool:
        """A rank had to be interrupted."""
        return any(rank.stuck for rank in self.ranks)


def _coverage(experiment: Experiment) -> Violation | None:
    found = properties.coverage(experiment)
    if any(rank.reopened_empty for rank in experiment.ranks):
        return found or Violation(
            "left early and iterated again, the endless sampler yields nothing"
        )
    return found


def world_order(experiment: Experiment) -> Observation:
    """The ranks as one: the order of a world is that of its ranks together."""
    whole = properties.joined
    return replace(Observation(whole(experiment.ranks)), other_seed=whole(experiment.other_seed))


def _first(experiment: Experiment, epoch: int) -> str:
    return f"rank 0 begins with {begin(experiment.ranks[0].items(epoch) or [])}"


def _reshuffles(experiment: Experiment) -> Violation | None:
    found = properties.reshuffles(world_order(experiment))
    if found is None:
        return None
    route = experiment.ranks[0].route
    reached = {"direct": "it", "none": "nothing"}.get(route, f"its {route}")
    return replace(
        found,
        text=f"{found.text} (set_epoch reaches {reached}): {_first(experiment, found.numbers[0])}",
    )


def _seed_matters(experiment: Experiment) -> Violation | None:
    if properties.seed_matters(world_order(experiment)) is None:
        return None
    seed = experiment.setting.seed
    return Violation(f"seeds {seed} and {seed + 1} give one order: {_first(experiment, 0)}")


def _batch_size(experiment: Experiment) -> Violation | None:
    rank = experiment.ranks[0]
    if not rank.batches:
        return None
    size, drop_last = rank.own.get("batch_size"), rank.own.get("drop_last")
    if isinstance(size, int) and not isinstance(size, bool) and isinstance(drop_last, bool):
        return None
    return Violation(
        f"yields batches, but batch_size is {size} and drop_last is {drop_last}, "
        "which frameworks read"
    )


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise of the contract, and who judges it."""

    name: str
    text: str
    """What holds, as a sentence without full stop."""
    judge: Callable[[Experiment], Violation | None]
    by_order: bool = False
    """Judged on datasets large enough that two orders are not equal by chance."""

    @property
    def of_order(self) -> bool:
        """Whether small datasets say nothing of it."""
        return self.by_order or self.judge is properties.ranks_agree


PROMISES = {
    one.name: one
    for one in (
        Promise(
            "coverage",
            "the ranks together read every sample, up to a declared drop_last",
            _coverage,
        ),
        Promise("disjoint", "no sample is read twice, except for padding", properties.disjoint),
        Promise("equal-steps", "every rank takes the same number of steps", properties.equal_steps),
        Promise("length-is-true", "len() is what is yielded", properties.length_true),
        Promise(
            "deterministic",
            "the same seed and epoch give the same order, also to a fresh sampler",
            properties.deterministic,
        ),
        Promise("reshuffles", "epochs differ in order where it shuffles", _reshuffles, True),
        Promise("seed-matters", "seeds differ in order where it shuffles", _seed_matters, True),
        Promise(
            "ranks-agree",
            "all ranks slice one order, whatever state their global generators are in",
            properties.ranks_agree,
        ),
        Promise(
            "resumes",
            "a sampler with the state_dict of another continues its epoch, or begins it again, and "
            "its next one is as without the break",
            properties.resumable,
        ),
        Promise("batch-size", "what yields batches has batch_size and drop_last", _batch_size),
    )
}
