"""Each property seen broken, kept, and silent where the observation does not know enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sampler_lint import properties
from sampler_lint.properties import Observation, Rank, Reading


def seen(*ranks: list[list[int]], **known: object) -> Observation:
    """What the ranks read, epoch after epoch."""
    made = [
        Rank(rank, passes=[Reading(items, number) for number, items in enumerate(epochs)])
        for rank, epochs in enumerate(ranks)
    ]
    return Observation(made, **known)  # type: ignore[arg-type]


EVEN, ODD = [0, 2, 4, 6], [1, 3, 5, 7]
WORLD = seen([EVEN], [ODD], expected=range(8))


def changed(**reading: object) -> Observation:
    """The world with other readings on rank 1."""
    (one,) = WORLD.ranks[1].passes
    passes = [replace(one, **reading)]  # type: ignore[arg-type]
    return replace(WORLD, ranks=[WORLD.ranks[0], Rank(1, passes=passes)])


@pytest.mark.parametrize(
    ("observation", "broken"),
    [
        (WORLD, set()),
        (seen([EVEN], [EVEN], expected=range(8)), {"coverage", "disjoint", "partitions"}),
        (seen([EVEN], [EVEN]), set()),  # which samples there are is not known
        (changed(items=[1, 3], ended=False), set()),  # it may go on
        (changed(items=[1, 3, 5]), {"coverage", "partitions", "equal_steps"}),
        (changed(items=ODD, complete=False), set()),
        (changed(items=[*ODD, 0], ended=False), {"equal_steps"}),
        (changed(items=ODD, endless=True), set()),
        (changed(items=ODD, claimed=5), {"length_true"}),
        (changed(items=ODD, claimed=5, later=4), set()),
        (changed(items=ODD, claimed=6, hidden=2), set()),
        (changed(items=ODD, claimed=5, ended=False), set()),
        (changed(items=ODD, claimed=3, ended=False), {"length_true"}),
        (changed(items=ODD, error="raises OSError"), {"coverage", "equal_steps"}),
        # what is declared, or known of the sampler
        (seen([[0, 1, 2]], [[3, 4, 5]], expected=range(7), drop_last=True), set()),
        (seen([[0, 1, 2]], [[3, 4, 5]], expected=range(7), drop_last=None), set()),
        (seen([[0, 1, 2]], [[3, 4, 5]], expected=range(7)), {"coverage", "partitions"}),
        (seen([[0, 1, 2, 0]], [[3, 4, 1, 2]], expected=range(5), total=8), set()),
        (seen([[0, 1, 2, 0]], [[3, 4, 1, 2]], expected=range(5), groups=2), set()),
        (seen([[0, 1, 2, 0]], [[3, 4, 1, 2]], expected=range(5), groups=None), set()),
        (seen([[0, 1, 2, 0]], [[3, 4, 1, 2]], expected=range(5)), {"disjoint", "partitions"}),
        # orders, of which a few samples say nothing
        (seen([[*range(7)], [*range(7)]]), {"reshuffles"}),
        (seen([[*range(6)], [*range(6)]]), set()),
        (seen([[*range(7)], [*range(6), 9]]), set()),
        (replace(seen([[*range(7)]]), other_seed=seen([[*range(7)]]).ranks), {"seed_matters"}),
        (replace(seen([[*range(7)]]), again=seen([[*range(6)]]).ranks), {"deterministic"}),
        # generators that differ: what one rank reads for another, and what chance leaves out
        (replace(WORLD, apart=seen([[0, 2, 4, 1]], [[1, 3, 5, 7]]).ranks), {"ranks_agree"}),
        (replace(WORLD, apart=seen([[0, 2, 4]], [[1, 3, 5]]).ranks), set()),
        (replace(WORLD, resumed=[([4, 6], [1]), ([6], [1])]), {"resumable"}),
        (replace(WORLD, resumed=[([4, 6], [1]), ([4, 6], [1])]), set()),
        (replace(WORLD, resumed=[([4, 6], [1]), ([4, 6], [2])]), {"resumable"}),
        (replace(WORLD, resume_error="KeyError"), {"resumable"}),
    ],
)
def test_what_is_broken(observation: Observation, broken: set[str]) -> None:
    names = (
        *("coverage", "disjoint", "partitions", "equal_steps", "length_true", "reshuffles"),
        *("seed_matters", "deterministic", "ranks_agree", "resumable"),
    )
    assert {name for name in names if getattr(properties, name)(observation)} == broken


def test_ranks_that_draw_for_themselves_do_not_agree() -> None:
    world = seen([EVEN], [ODD], expected=range(8), apart=seen([EVEN], [EVEN]).ranks)
    found = properties.ranks_agree(world)
    assert found is not None
    assert "4 of 8 samples are read by no rank and 4 twice" in found.text
    assert properties.ranks_agree(replace(world, expected=range(6))) is None


def test_only_kept_samples_are_expected() -> None:
    every_third = seen([[0, 6]], [[3, 9]], expected=range(10))
    every_third.is_kept = lambda index, one_in: index % one_in == 0
    for rank in every_third.ranks:
        rank.passes[0].one_in, rank.passes[0].taken, rank.passes[0].count_of = 3, 5, 5
    ((_, _, found),) = properties.shares(every_third)
    assert (found.expected, found.missing, found.repeats) == (4, [], 0)
