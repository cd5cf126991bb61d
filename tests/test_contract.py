"""The contract of a sampler: each promise is seen to break, and right samplers keep them all."""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import itertools
import json
import os
import random
import re
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    Dataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

import sampler_lint
from sampler_lint.cli import main
from sampler_lint.harness import TorchMissingError
from sampler_lint.harness import contract as contract_module
from sampler_lint.harness.construct import CannotGuessError, builder, readings
from sampler_lint.harness.contract import (
    CannotBuildError,
    ContractError,
    Report,
    check_sampler,
    examine,
)
from sampler_lint.harness.inside import supervise
from sampler_lint.harness.ranks import Case, Setting, Simulator
from sampler_lint.harness.synthetic import SyntheticDataset

pytest_plugins = ["pytester"]

QUICK: dict[str, Any] = {"sizes": (0, 1, 2, 3, 7, 40), "world_sizes": (1, 2, 3)}


def broken(report: Report) -> set[str]:
    return {one.promise for one in report.broken}


class Sharded(Sampler[int]):
    """A right sampler, for others to spoil."""

    def __init__(self, dataset: Dataset[int], num_replicas: int, rank: int, seed: int = 0) -> None:
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.seed, self.epoch = seed, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def order(self) -> list[int]:
        generator = torch.Generator().manual_seed(self.seed * 1000 + self.epoch)
        return torch.randperm(len(self.dataset), generator=generator).tolist()  # type: ignore[arg-type]

    def padded(self) -> list[int]:
        order = self.order()
        total = -(-len(order) // self.num_replicas) * self.num_replicas
        return [order[i % len(order)] for i in range(total)]

    def __iter__(self) -> Iterator[int]:
        return iter(self.padded()[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return -(-len(self.dataset) // self.num_replicas)  # type: ignore[arg-type]


class Floored(Sharded):
    def padded(self) -> list[int]:
        order = self.order()
        return order[: len(order) // self.num_replicas * self.num_replicas]

    def __len__(self) -> int:
        return len(self.dataset) // self.num_replicas  # type: ignore[arg-type]


class Unpadded(Sharded):
    def padded(self) -> list[int]:
        return self.order()

    def __len__(self) -> int:
        return len(self.padded()[self.rank :: self.num_replicas])


class SeedPerRank(Sharded):
    def order(self) -> list[int]:
        generator = torch.Generator().manual_seed(self.seed + self.rank)
        generator.manual_seed(generator.initial_seed() * 100 + self.epoch)
        return torch.randperm(len(self.dataset), generator=generator).tolist()  # type: ignore[arg-type]


class Unsharded(Sharded):
    def __iter__(self) -> Iterator[int]:
        return iter(self.order())

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]


class ForgetsEpoch(Sharded):
    def set_epoch(self, epoch: int) -> None:
        pass


class IgnoresSeed(Sharded):
    def __init__(self, dataset: Any, num_replicas: int, rank: int, seed: int = 0) -> None:
        super().__init__(dataset, num_replicas, rank)


class GlobalNumpy(Sharded):
    def order(self) -> list[int]:
        return np.random.permutation(len(self.dataset)).tolist()  # type: ignore[arg-type]


class GlobalRandom(Sharded):
    def order(self) -> list[int]:
        order = list(range(len(self.dataset)))  # type: ignore[arg-type]
        random.shuffle(order)
        return order


class OwnCount(Sharded):
    """Its order follows how often it was iterated, and not the epoch that it was told."""

    def __init__(self, dataset: Any, num_replicas: int, rank: int, seed: int = 0) -> None:
        super().__init__(dataset, num_replicas, rank, seed)
        self.generator = torch.Generator().manual_seed(seed)

    def order(self) -> list[int]:
        return torch.randperm(len(self.dataset), generator=self.generator).tolist()  # type: ignore[arg-type]


class WrongLength(Sharded):
    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]


class OffByOne(Sharded):
    def order(self) -> list[int]:
        return [index + 1 for index in super().order()]


class Crashes(Sharded):
    """Pads once only, as so many do."""

    def padded(self) -> list[int]:
        order = self.order()
        total = -(-len(order) // self.num_replicas) * self.num_replicas
        order += order[: total - len(order)]
        assert len(order) == total
        return order


class Resumable(Sharded):
    position = 0

    def __iter__(self) -> Iterator[int]:
        mine = self.padded()[self.rank :: self.num_replicas]
        while self.position < len(mine):
            self.position += 1
            yield mine[self.position - 1]
        self.position = 0

    def state_dict(self) -> dict[str, int]:
        return {"position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.position = state["position"]


class ResumesLate(Resumable):
    def state_dict(self) -> dict[str, int]:
        return {"position": self.position + 1}


class Batches(Sampler[list[int]]):
    """Batches without the attributes of a batch sampler."""

    def __init__(self, sampler: Sampler[int], batch_size: int) -> None:
        self.inner = BatchSampler(sampler, batch_size, drop_last=False)
        self.sampler = sampler

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.inner)

    def __len__(self) -> int:
        return len(self.inner)


@pytest.mark.parametrize("factory", [Sharded, DistributedSampler, Resumable, BatchSampler])
def test_right_samplers_keep_everything(factory: Any) -> None:
    report = check_sampler(factory, **QUICK)
    assert broken(report) == set()
    assert {name for name, one in report.judgements.items() if one.verdict == "kept"} >= {
        *("coverage", "disjoint", "equal-steps", "length-is-true", "deterministic"),
        *("reshuffles", "seed-matters", "ranks-agree"),
    }


@pytest.mark.parametrize(
    ("factory", "promises", "smallest"),
    [
        (Floored, {"coverage"}, (1, 2)),
        (Unpadded, {"equal-steps"}, (1, 2)),
        (SeedPerRank, {"coverage", "disjoint"}, None),
        (Unsharded, {"disjoint"}, (7, 3)),
        (ForgetsEpoch, {"reshuffles"}, (7, 1)),
        (IgnoresSeed, {"seed-matters"}, (7, 1)),
        (GlobalNumpy, {"ranks-agree", "deterministic"}, None),
        (GlobalRandom, {"ranks-agree", "deterministic"}, None),
        (OwnCount, {"deterministic"}, None),
        (WrongLength, {"length-is-true"}, (2, 2)),
        (OffByOne, {"coverage"}, (1, 1)),
        (Crashes, {"coverage"}, (1, 3)),
        (ResumesLate, {"resumes"}, None),
        (Batches, {"batch-size"}, None),
    ],
)
def test_each_bug_breaks_its_promise(
    factory: Callable[..., Any], promises: set[str], smallest: tuple[int, int] | None
) -> None:
    report = examine(factory, **QUICK)
    assert broken(report) == promises, report.render()
    if smallest:
        setting = report.judgements[min(promises)].setting
        assert setting
        assert (setting.size, setting.world_size) == smallest, report.render()


@pytest.mark.parametrize("factory", [Floored, Unsharded, ForgetsEpoch, OwnCount, ResumesLate])
def test_the_line_printed_shows_the_counterexample_again(factory: Any) -> None:
    with pytest.raises(ContractError) as caught:
        check_sampler(factory, **QUICK)
    (line,) = re.findall(r"check_sampler\(.*\)$", str(caught.value), re.MULTILINE)
    with pytest.raises(ContractError) as again:
        eval(line, {"check_sampler": check_sampler, factory.__name__: factory})
    assert broken(caught.value.report) <= broken(again.value.report)


def test_what_is_broken_on_purpose_is_allowed() -> None:
    report = check_sampler(Unpadded, allow=["equal-steps"], **QUICK)
    assert broken(report) == {"equal-steps"}
    with pytest.raises(ValueError, match="no promise is called 'equal-stps'"):
        check_sampler(Unpadded, allow=["equal-stps"])


def test_samplers_that_know_no_ranks() -> None:
    verdicts = examine(SequentialSampler, **QUICK).judgements
    assert verdicts["equal-steps"].reason == "knows no ranks"
    assert verdicts["reshuffles"].reason == "does not shuffle"
    assert not [one for one in verdicts.values() if one.verdict == "broken"]
    assert broken(examine(RandomSampler, **QUICK)) == {"ranks-agree"}


def test_drawing_with_replacement_is_no_loss() -> None:
    report = examine(lambda weights: WeightedRandomSampler(weights, len(weights)), **QUICK)
    assert report.judgements["coverage"].verdict == "n/a"
    assert report.judgements["disjoint"].verdict == "n/a"


def test_drawing_alike_on_all_ranks_reads_the_same() -> None:
    class Drawn(Sampler):
        def __init__(self, weights: Any, num_replicas: int, rank: int, seed: int) -> None:
            self.weights, self.seed, self.epoch = weights, seed, 0
            self.rank, self.num_replicas = rank, num_replicas

        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

        def place(self) -> int:
            return 0

        def __iter__(self) -> Any:
            generator = torch.Generator().manual_seed(1000 * self.seed + self.epoch)
            total, weights = len(self.weights), torch.as_tensor(self.weights, dtype=torch.double)
            drawn = torch.multinomial(weights, total, replacement=True, generator=generator)
            mine = drawn[self.place() :: self.num_replicas].tolist()
            return iter(mine[: total // self.num_replicas])

    class Divided(Drawn):
        def place(self) -> int:
            return self.rank

    sizes = {"sizes": (40,), "world_sizes": (1, 2)}
    alike = examine(Drawn, promises=["disjoint"], **sizes).judgements["disjoint"]
    assert alike.verdict == "broken"
    assert alike.reason == "n=40, world size 2: all ranks read the same samples in one order"
    divided = examine(Divided, promises=["disjoint"], **sizes).judgements["disjoint"]
    assert divided.verdict == "n/a"


def test_refusing_everywhere_alike_is_an_answer() -> None:
    report = examine(RandomSampler, **QUICK)
    assert any("n=0" in text and "num_samples" in text for text in report.refusals)

    def refuses(dataset: Any, rank: int) -> Any:
        if rank == 1 and len(dataset) == 1:
            raise ValueError("too small for me")
        return Sharded(dataset, 2, rank)

    report = examine(refuses, **{**QUICK, "world_sizes": (2,)})
    assert "cannot be built on rank 1 alone" in report.judgements["equal-steps"].reason


def test_a_sampler_that_asks_torch_distributed_is_told_its_rank() -> None:
    def factory(dataset: Any) -> Any:
        return Sharded(dataset, dist.get_world_size(), dist.get_rank())

    before = torch.get_rng_state()
    report = examine(factory, promises=["coverage", "disjoint", "equal-steps"], **QUICK)
    assert {one.verdict for one in report.judgements.values()} == {"kept"}
    assert not dist.is_initialized()
    assert torch.equal(before, torch.get_rng_state())


def test_a_seed_broadcast_by_rank_0_reaches_all() -> None:
    def factory(dataset: Any) -> Any:
        seed = torch.randint(1000, (1,))
        dist.broadcast(seed, src=0)
        return Sharded(dataset, dist.get_world_size(), dist.get_rank(), int(seed))

    report = examine(factory, promises=["coverage", "ranks-agree"], **QUICK)
    assert broken(report) == set(), report.render()


def test_thousands_of_ranks() -> None:
    report = check_sampler(
        Sharded, sizes=[7], world_sizes=[2048], promises=["coverage"], time_limit=600
    )
    assert report.judgements["coverage"].verdict == "kept"
    ranks = Simulator(lambda case: Sharded(case.dataset, case.world_size, case.rank)).world(
        Setting(2049, 2048), 1, ranks=[0, 2047]
    )
    assert [len(rank.passes[0].items) for rank in ranks] == [2, 2]


class Endless(Sharded):
    def __iter__(self) -> Iterator[int]:
        while True:
            yield from super().__iter__()


class EndlessDeaf(Sharded):
    def __iter__(self) -> Iterator[int]:
        return itertools.cycle([*super().__iter__()])


class Stuck(Sharded):
    def __iter__(self) -> Iterator[int]:
        while len(self.dataset) == 1:  # type: ignore[arg-type]
            pass
        return super().__iter__()


def test_what_never_ends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sampler_lint.harness.ranks.STUCK", 0.3)
    report = examine(Endless, **QUICK)
    assert broken(report) == {"length-is-true"}  # each round has the epoch that was set before it
    assert report.judgements["coverage"].reason == "never ends"
    assert broken(examine(EndlessDeaf, **QUICK)) == {"length-is-true", "reshuffles"}
    report = examine(Stuck, **QUICK)
    assert "does not end" in report.judgements["coverage"].reason
    assert report.judgements["coverage"].setting == Setting(1, 1)


class Busy(Sharded):
    def __iter__(self) -> Iterator[int]:
        while True:
            pass


def test_what_is_always_stuck_is_soon_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sampler_lint.harness.ranks.STUCK", 0.05)
    tried: list[Setting] = []
    report = examine(Busy, promises=["coverage"], progress=tried.append, time_limit=1e9)
    assert "does not end" in report.judgements["coverage"].reason
    assert tried == [Setting(4097, 2), Setting(0, 1), Setting(1, 1)]
    assert report.notes == [
        "it was stuck on 2 sizes and on the largest: 73 inputs were not tried "
        "(sizes 2, 3, 7, 8, 13, 65, 100, 101, 4097)"
    ]


class Detached(Sampler):
    """Ranks that take turns in one endless shuffle, which has to be one everywhere."""

    def __init__(self, dataset: Any, num_replicas: int, rank: int, seed: int = 0) -> None:
        self.size, self.num_replicas, self.rank, self.seed = len(dataset), num_replicas, rank, seed

    def order(self) -> Iterator[int]:
        while True:
            yield from torch.randperm(self.size).tolist()

    def __iter__(self) -> Iterator[int]:
        return itertools.islice(self.order(), self.rank, None, self.num_replicas)


class Together(Detached):
    def order(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            yield from torch.randperm(self.size, generator=generator).tolist()


def test_endless_shares_come_from_one_order() -> None:
    tried: list[Setting] = []
    report = examine(Detached, sizes=(0, 8, 100), world_sizes=(1, 2), progress=tried.append)
    assert "samples each are read twice" in report.judgements["ranks-agree"].reason
    assert broken(report) == {"ranks-agree"}
    assert 0 not in {one.size for one in tried}  # there it would look for a sample for ever
    assert broken(examine(Together, sizes=(8, 100), world_sizes=(1, 2))) == set()


def test_an_endless_stream_is_followed_far_only_once() -> None:
    read = 0

    class Counting(Endless):
        def __iter__(self) -> Iterator[int]:
            nonlocal read
            for index in super().__iter__():
                read += 1
                yield index

    examine(Counting, sizes=(7,), world_sizes=(1, 2), epochs=2)
    every, read = read, 0
    Simulator(lambda case: Counting(range(7), 1, 0)).world(Setting(7, 1), 1)
    assert every < 3 * read


def test_a_length_that_is_never_reached_is_not_judged() -> None:
    class Long(Endless):
        def __len__(self) -> int:
            return 100_000

    report = examine(Long, sizes=(7,), world_sizes=(1, 2))
    assert report.judgements["length-is-true"].verdict == "kept"


def test_thousands_of_ranks_are_not_asked_when_a_few_never_end() -> None:
    tried: list[Setting] = []
    examine(Endless, sizes=(7,), world_sizes=(1, 2, 64), epochs=1, progress=tried.append)
    assert {one.world_size for one in tried} == {1, 2}


def test_importing_is_not_computing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The signal that comes when its seconds are up.
    (tmp_path / "slow_to_import.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGPROF)"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def factory(dataset: Any, num_replicas: int, rank: int) -> Any:
        importlib.import_module("slow_to_import")
        return Sharded(dataset, num_replicas, rank)

    report = examine(factory, sizes=(7,), world_sizes=(1, 2), promises=["coverage"])
    assert report.judgements["coverage"].verdict == "kept"


def test_what_surprises_is_noted() -> None:
    class Seeds(Sharded):
        def __iter__(self) -> Iterator[int]:
            torch.manual_seed(self.epoch)
            return super().__iter__()

    class FixedShards(Sharded):
        def __iter__(self) -> Iterator[int]:
            mine = list(range(self.rank, len(self.dataset), self.num_replicas))  # type: ignore[arg-type]
            random.Random(f"{self.seed} {self.epoch}").shuffle(mine)
            return iter(mine)

    assert "seeds the global generator of torch" in examine(Seeds, **QUICK).notes[0]
    sizes = {**QUICK, "sizes": (40,), "world_sizes": (1, 2)}
    assert "same samples in every epoch" in examine(FixedShards, **sizes).notes[0]


class LoadFails(Resumable):
    def load_state_dict(self, state: dict[str, int]) -> None:
        raise KeyError("rng")


class OnceForAll(Sharded):
    """Its order follows how many of it were built."""

    built = 0

    def __init__(self, dataset: Any, num_replicas: int, rank: int, seed: int = 0) -> None:
        super().__init__(dataset, num_replicas, rank, seed)
        OnceForAll.built += 1
        self.turn = OnceForAll.built // 2

    def order(self) -> list[int]:
        order = super().order()
        turn = self.turn % max(1, len(order))
        return order[turn:] + order[:turn]


class OneRankFails(Sharded):
    def __iter__(self) -> Iterator[int]:
        if self.rank == 1:
            raise OSError("no shard")
        return super().__iter__()


class EpochFails(Sharded):
    def set_epoch(self, epoch: int) -> None:
        raise RuntimeError("not prepared")


class Records(Sharded):
    def __iter__(self) -> Iterator[Any]:
        return ({"index": index} for index in super().__iter__())


class LengthFails(Sharded):
    def __len__(self) -> int:
        raise ValueError("not begun")


class OneShot(Endless):
    """A stream that was left is not there again."""

    def __init__(self, dataset: Any, num_replicas: int, rank: int, seed: int = 0) -> None:
        super().__init__(dataset, num_replicas, rank, seed)
        self.left = 1

    def __iter__(self) -> Iterator[int]:
        self.left, left = 0, self.left
        while left and len(self):
            yield from Sharded.__iter__(self)


@pytest.mark.parametrize(
    ("factory", "promise", "reason"),
    [
        (LoadFails, "resumes", "resuming from state_dict() raises KeyError: 'rng'"),
        (OnceForAll, "deterministic", "built twice with the same arguments, rank 0 reads "),
        (OneRankFails, "equal-steps", "rank 1 alone raises OSError: no shard"),
        (EpochFails, "coverage", "the sampler of rank 0 raises RuntimeError: not prepared"),
        (LengthFails, "length-is-true", "len() raises ValueError: not begun"),
        (OneShot, "coverage", "left early and iterated again, the endless sampler yields nothing"),
    ],
)
def test_how_else_a_promise_breaks(factory: Any, promise: str, reason: str) -> None:
    verdict = examine(factory, sizes=(40,), world_sizes=(2,)).judgements[promise]
    assert (verdict.verdict, verdict.reason.partition(": ")[2].startswith(reason)) == (
        "broken",
        True,
    ), verdict


class Resumable(Sharded):
    """Its place in the epoch can be kept."""

    place = 0

    def __iter__(self) -> Iterator[int]:
        order = list(super().__iter__())
        for index in order[self.place :]:
            self.place += 1
            yield index
        self.ended()

    def ended(self) -> None:
        self.place = 0

    def state_dict(self) -> dict[str, Any]:
        return {"place": self.place, "epoch": self.epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class BeginsLate(Resumable):
    """Resumed, it also begins its next epoch at the place where it was left."""

    late = 0

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.late = self.place

    def ended(self) -> None:
        self.place = self.late


def test_the_epoch_after_a_resumed_one_is_compared() -> None:
    options: dict[str, Any] = {"sizes": (40,), "world_sizes": (2,), "promises": ["resumes"]}
    assert examine(Resumable, **options).judgements["resumes"].verdict == "kept"
    found = examine(BeginsLate, **options).judgements["resumes"]
    assert (found.verdict, found.epochs) == ("broken", 3)
    assert "after the epoch in which it was resumed from state_dict(), it continues" in found.reason


class Lengthless(Sharded):
    __len__ = None  # type: ignore[assignment]


class Drawn(Sharded):
    """Each rank draws for itself, with replacement."""

    def padded(self) -> list[int]:
        size = len(self.dataset)  # type: ignore[arg-type]
        return torch.randint(max(1, size), (size,)).tolist()


class Half(Sharded):
    """It takes what is even, by design."""

    def order(self) -> list[int]:
        return [index for index in super().order() if index % 2 == 0]

    def __len__(self) -> int:
        return len(self.padded()) // self.num_replicas


@pytest.mark.parametrize(
    ("factory", "promise", "reason"),
    [
        (Lengthless, "length-is-true", "has no len()"),
        (Drawn, "ranks-agree", "draws with replacement, on each rank for itself"),
        (Drawn, "disjoint", "draws with replacement, with one rank too"),
        (Half, "coverage", "leaves out 20 of 40 samples with one rank too"),
    ],
)
def test_a_promise_that_is_not_given_cannot_be_broken(
    factory: Any, promise: str, reason: str
) -> None:
    verdict = examine(factory, sizes=(40,), world_sizes=(1, 2)).judgements[promise]
    assert (verdict.verdict, verdict.reason) == ("n/a", reason)


class Balanced(Sampler[int]):
    """Repeats the samples of a rare kind; of ranks it knows nothing."""

    def __init__(self, dataset: Any, seed: int = 0) -> None:
        self.size, self.seed, self.epoch = len(dataset), seed, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        rare = [index for index in range(self.size) if index % 20 == 19]
        order = [*range(self.size)] + [rare[i % len(rare)] for i in range(self.size) if rare]
        random.Random(f"{self.seed} {self.epoch}").shuffle(order)
        return iter(order)


class PadsFar(Sharded):
    """Pads each rank to a multiple of 16, and says so as torch's own does."""

    def __init__(self, dataset: Any, num_replicas: int, rank: int, seed: int = 0) -> None:
        super().__init__(dataset, num_replicas, rank, seed)
        unit = 16 * num_replicas if num_replicas > 1 else 1
        self.total_size = -(-len(dataset) // unit) * unit

    def padded(self) -> list[int]:
        order = self.order()
        return [order[i % len(order)] for i in range(self.total_size)]

    def __len__(self) -> int:
        return self.total_size // self.num_replicas


class Grouped(Sharded):
    """Batches of one label each; every label is padded by itself."""

    def __init__(
        self, dataset: Any, num_replicas: int, rank: int, batch_size: int, seed: int = 0
    ) -> None:
        super().__init__(dataset, num_replicas, rank, seed)
        self.batch_size, self.drop_last, self.labels = batch_size, False, dataset.labels

    def groups(self) -> Iterator[list[int]]:
        for label in sorted(set(self.labels)):
            yield [index for index in self.order() if self.labels[index] == label]

    def __iter__(self) -> Iterator[Any]:
        size = self.batch_size
        batches = []
        for group in self.groups():
            total = -(-len(group) // (size * self.num_replicas)) * size * self.num_replicas
            order = [group[i % len(group)] for i in range(total)]
            batches += [order[i : i + size] for i in range(0, total, size)]
        random.Random(f"{self.seed} {self.epoch}").shuffle(batches)
        return iter(batches[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class FiltersAndPads(Grouped):
    """What is even, in whole batches."""

    def groups(self) -> Iterator[list[int]]:
        even = [index for index in self.order() if index % 2 == 0]
        return iter([even] if even else [])


class FiltersToTheFullLength(Sharded):
    """What is even, over and over until there are as many as samples."""

    def padded(self) -> list[int]:
        even = [index for index in self.order() if index % 2 == 0]
        return [even[i % len(even)] for i in range(len(self) * self.num_replicas)]


class DrawsTogether(Sharded):
    """Draws with replacement, one order for all ranks."""

    def order(self) -> list[int]:
        size = len(self.dataset)  # type: ignore[arg-type]
        generator = torch.Generator().manual_seed(self.seed * 1000 + self.epoch)
        return torch.randint(max(1, size), (size,), generator=generator).tolist()


class Nothing(Sharded):
    def padded(self) -> list[int]:
        return []

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("factory", "promise", "verdict", "reason"),
    [
        (Balanced, "disjoint", "n/a", "repeats samples, with one rank too"),
        (Balanced, "coverage", "kept", ""),
        (
            FiltersToTheFullLength,
            "disjoint",
            "n/a",
            "leaves out 21 of 42 samples and repeats others, with one rank too",
        ),
        (PadsFar, "disjoint", "kept", ""),
        (Grouped, "disjoint", "kept", ""),
        (FiltersAndPads, "disjoint", "n/a", "leaves out 21 of 42 samples with one rank too"),
        (Endless, "disjoint", "kept", ""),
    ],
)
def test_what_is_meant_is_not_broken(factory: Any, promise: str, verdict: str, reason: str) -> None:
    found = examine(factory, sizes=(7, 8, 42), world_sizes=(1, 2)).judgements
    assert (found[promise].verdict, found[promise].reason) == (verdict, reason)
    assert found["coverage"].verdict != "broken"


def test_one_rank_is_looked_at_though_nobody_asks_for_it() -> None:
    report = examine(DrawsTogether, sizes=(40,), world_sizes=(2,), promises=["coverage"])
    assert report.judgements["coverage"].reason == "draws with replacement, with one rank too"


def test_reading_nothing_is_no_choice() -> None:
    report = examine(Nothing, **QUICK)
    assert broken(report) == {"coverage"}
    assert "1 of 1 samples are read by no rank" in report.judgements["coverage"].reason


def test_a_declared_order_is_no_broken_shuffle() -> None:
    def factory(dataset: Any, num_replicas: int, rank: int) -> Any:
        return DistributedSampler(dataset, num_replicas, rank, shuffle=False)

    verdict = examine(factory, sizes=(40,), world_sizes=(2,)).judgements["reshuffles"]
    assert (verdict.verdict, verdict.reason) == ("n/a", "does not shuffle")


class OnePass(Sampler):
    """As in SenseTime's code for training by iterations: `total_size` is of the rank."""

    def __init__(self, dataset, total_iter, batch_size, num_replicas, rank):
        self.total_size = total_iter * batch_size
        order = [i % len(dataset) for i in range(self.total_size * num_replicas)]
        random.Random(0).shuffle(order)
        self.indices = order[rank * self.total_size : (rank + 1) * self.total_size]
        self.passes = 0

    def __iter__(self):
        self.passes += 1
        if self.passes > 1:
            raise RuntimeError("not designed to be called more than once")
        return iter(self.indices)

    def __len__(self):
        return self.total_size


class FailsInTheSecondPass(OnePass):
    def __iter__(self):
        self.passes += 1
        return iter(self.indices[:: [1, "step"][self.passes - 1]])


def test_a_second_pass_may_be_refused_but_not_fail() -> None:
    def of_batches(dataset: Any, num_replicas: int, rank: int) -> BatchSampler:
        return BatchSampler(OnePass(dataset, 32, 4, num_replicas, rank), 4, drop_last=True)

    for factory in (functools.partial(OnePass, total_iter=32), of_batches):
        report = examine(factory, **QUICK)
        assert not report.broken, str(report)
        assert report.judgements["reshuffles"].reason == "refuses a second pass"
        assert (
            "it refuses a second pass, so one epoch was judged: "
            "RuntimeError: not designed to be called more than once"
        ) in report.notes
    report = examine(functools.partial(FailsInTheSecondPass, total_iter=32), **QUICK)
    assert "raises TypeError" in report.judgements["coverage"].reason


def test_samples_that_are_no_indices_are_not_judged_as_such() -> None:
    report = examine(Records, sizes=(7,), world_sizes=(2,))
    assert report.judgements["coverage"].verdict == "kept"
    report = examine(Records, sizes=(7,), world_sizes=(2,), index=lambda item: item["index"])
    assert report.judgements["coverage"].verdict == "kept"
    assert broken(report) == set()


def test_batches_of_tensors_and_whatever_is_an_index_are_indices() -> None:
    class Whole:
        def __init__(self, number: int) -> None:
            self.number = number

        def __index__(self) -> int:
            return self.number

    class Odd(Batches):
        def __iter__(self) -> Iterator[Any]:
            return ([torch.tensor(batch[0]), *map(Whole, batch[1:])] for batch in self.inner)

    report = examine(Odd, sizes=(7, 40), world_sizes=(1, 2))
    assert report.judgements["coverage"].verdict == "kept"
    assert broken(report) == {"batch-size"}


def test_an_endless_stream_of_batches_is_cut_into_epochs() -> None:
    class Forever(Batches):
        def __iter__(self) -> Iterator[list[int]]:
            while True:
                yield from self.inner

    (first, second) = (
        Simulator(lambda case: Forever(SequentialSampler(range(8)), 4))
        .world(Setting(8, 1), 2)[0]
        .passes
    )
    assert (first.items, second.items) == ([[0, 1, 2, 3], [4, 5, 6, 7]],) * 2


def test_a_constructor_may_take_all_time_or_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sampler_lint.harness.ranks.STUCK", 0.05)

    def busy(dataset: Any) -> Any:
        while True:
            pass

    def greedy(dataset: Any) -> Any:
        raise MemoryError

    for factory, reason in (
        (busy, "is not built within 0.05 s of computing"),
        (greedy, "takes all memory"),
    ):
        verdict = examine(factory, sizes=(7,), world_sizes=(1,)).judgements["coverage"]
        assert verdict.reason.endswith(f"the sampler of rank 0 {reason}")


def test_collectives_that_nobody_answers_are_noted() -> None:
    def factory(dataset: Any, rank: int) -> Any:
        sizes = [torch.zeros(1)] * dist.get_world_size()
        dist.all_gather(sizes, torch.ones(1))
        seed = [rank]
        dist.broadcast_object_list(seed, src=0)
        assert seed == [0]
        if rank:
            dist.broadcast(torch.ones(1), src=0)  # rank 0 sent nothing here
        return Sharded(dataset, dist.get_world_size(), rank, seed[0])

    report = examine(factory, sizes=(7,), world_sizes=(2,), promises=["coverage"])
    assert report.judgements["coverage"].verdict == "kept"
    assert report.notes == [
        "it calls all_gather, which simulated ranks cannot answer; see gloo_world"
    ]


def test_inputs_for_which_time_was_short_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract_module, "LARGE_WORLD", 2)
    monkeypatch.setattr(contract_module, "TIME_LIMIT", 1e9)
    report = examine(Sharded, sizes=(7,), world_sizes=(1, 10**6), time_limit=30)
    assert report.notes[-1] == "there was no time for 1 input (world size 1000000)"
    with pytest.raises(CannotBuildError, match="there was no time"):
        examine(Sharded, time_limit=0, **QUICK)


def test_a_large_world_is_left_in_the_midst_when_time_is_up() -> None:
    class Slow(Sharded):
        def padded(self) -> list[int]:
            if self.num_replicas > 100:
                time.sleep(0.05)
            return super().padded()

    report = examine(Slow, sizes=(7,), world_sizes=(1, 2, 4096), time_limit=1)
    assert broken(report) == set()
    assert report.notes[-1] == "there was no time for 1 input (world size 4096)"
    assert report.seconds < 20  # a pass on each rank would take minutes


def test_real_ranks_and_simulated_ones_do_not_mix() -> None:
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    try:
        with pytest.raises(RuntimeError, match="destroy the process group first"):
            examine(Sharded, **QUICK)
    finally:
        dist.destroy_process_group()


def test_the_environment_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "7")
    monkeypatch.delenv("WORLD_SIZE", raising=False)

    def factory(dataset: Any) -> Any:
        return Sharded(dataset, int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]))

    assert not broken(examine(factory, sizes=(7,), world_sizes=(2,), promises=["coverage"]))
    assert (os.environ["RANK"], "WORLD_SIZE" in os.environ) == ("7", False)


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TorchMissingError, match=r"sampler-lint\[verify\]"):
        examine(Sharded)


# -- what frameworks make of it


def test_frameworks_are_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no framework is called 'keras'"):
        examine(Sharded, frameworks=["keras"], **QUICK)
    monkeypatch.setattr("sampler_lint.harness.contract.installed", lambda name: False)
    report = examine(Sharded, frameworks=["lightning"], **QUICK)
    assert report.judgements["lightning"].verdict == "unknown"


class OfAKind(BatchSampler):
    """Full batches of samples of one kind; those that find no partners are left out."""

    def __init__(self, dataset: Any, batch_size: int) -> None:
        self.size, self.batch_size, self.drop_last = len(dataset), batch_size, False

    def __iter__(self) -> Iterator[list[int]]:
        for kind in range(3):
            members = list(range(kind, self.size, 3))
            while len(members) >= self.batch_size:
                yield [members.pop() for _ in range(self.batch_size)]

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Cuts:
    """A batch that is no list."""

    def __init__(self, members: list[int]) -> None:
        self.members = members

    def __iter__(self) -> Iterator[int]:
        return iter(self.members)


class WholeBatches(Batches):
    def __iter__(self) -> Any:
        return (Cuts(batch) for batch in super().__iter__())


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("factory", "lightning", "accelerate"),
    [
        (DistributedSampler, "kept", "broken"),  # only Lightning leaves it alone
        (Sharded, "broken", "broken"),  # both shard it again
        (SequentialSampler, "kept", "kept"),
        (RandomSampler, "kept", "kept"),
        (Batches, "broken", "broken"),  # has no batch_size
        (OfAKind, "broken", "kept"),  # leaves out samples by itself; Lightning cannot rebuild it
    ],
)
def test_frameworks_shard_right_or_are_told(factory: Any, lightning: str, accelerate: str) -> None:
    report = examine(factory, frameworks=["lightning", "accelerate"], **QUICK)
    verdicts = {name: one.verdict for name, one in report.judgements.items()}
    assert (verdicts["lightning"], verdicts["accelerate"]) == (lightning, accelerate), report


@pytest.mark.frameworks
def test_a_framework_is_not_asked_for_what_the_sampler_refuses() -> None:
    class Large(SequentialSampler):
        def __init__(self, dataset: Any) -> None:
            if len(dataset) < 50:
                raise ValueError("too small")
            super().__init__(dataset)

    report = examine(Large, frameworks=["accelerate"], sizes=(7, 60), world_sizes=(1, 2))
    assert report.judgements["accelerate"].verdict == "kept"


@pytest.mark.frameworks
def test_batches_that_are_no_lists_need_a_loader_without_batching() -> None:
    report = examine(WholeBatches, frameworks=["accelerate"], index=list, **QUICK)
    verdict = report.judgements["accelerate"]
    assert (verdict.verdict, "'NoneType' object is not iterable" in verdict.reason) == (
        "broken",
        True,
    ), verdict


# -- building from the signature


def test_what_cannot_be_guessed_is_asked_for() -> None:
    class Temperature(Sharded):
        def __init__(
            self, dataset: Any, num_replicas: int, rank: int, temperature: re.Pattern[str]
        ) -> None:
            super().__init__(dataset, num_replicas, rank)

    with pytest.raises(CannotGuessError, match=r"takes as `temperature`.*--kw temperature=…"):
        examine(Temperature)
    report = examine(Temperature, kw={"temperature": 0.5}, promises=["coverage"], **QUICK)
    assert report.judgements["coverage"].verdict == "kept"
    with pytest.raises(TypeError, match="Temperature takes no `temprature`"):
        examine(Temperature, kw={"temprature": 0.5})


def test_parameters_behind_kwargs_are_the_base_class_s() -> None:
    class Passes(Sharded):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)

    assert broken(check_sampler(Passes, **QUICK)) == set()


def test_a_wrapper_gets_a_sampler_to_wrap() -> None:
    class Wrapper(Sharded):
        def __init__(self, sampler: Any, num_replicas: int, rank: int) -> None:
            super().__init__(list(sampler), num_replicas, rank)  # type: ignore[arg-type]
            self.sampler = sampler

        def order(self) -> list[int]:
            self.sampler.set_epoch(self.epoch)
            return list(self.sampler)

    assert broken(check_sampler(Wrapper, **QUICK)) == set()


def test_values_follow_names_and_annotations() -> None:
    def takes(
        inner: Sampler[int],
        order: BatchSampler,
        batch_sampler: Any,
        sampler: BatchSampler,
        parts: Dataset[int],
        noise: torch.Generator,
        generator: np.random.Generator,
        rng: random.Random,
        lengths: Any,
        targets: Any,
        indices: Any,
        n: int,
        kind: Any = len,
    ) -> dict[str, Any]:
        return locals()

    case = Case(Setting(8, 2, seed=3, batch_size=4), 1)
    made = builder(takes, {"kind": int})(case)
    assert made.pop("kind") is int  # a class is no function of the case
    for name in ("inner", "order", "batch_sampler", "sampler"):
        made[name] = list(made[name])
    assert len(made.pop("inner")) == 4  # its share, of two ranks
    assert [type(made.pop(name)[0]) for name in ("order", "batch_sampler", "sampler")] == [list] * 3
    assert [made["parts"][index] for index in (0, 7, -1)] == [0, 7, 7]
    with pytest.raises(IndexError):
        made["parts"][8]
    assert made["parts"].targets == made["targets"] == [0, 1, 2, 0, 1, 2, 0, 1]
    assert made["parts"].sizes == made["lengths"]
    assert (made["n"], made["indices"], case.num_replicas) == (8, [*range(8)], 2)
    assert made["noise"].initial_seed() == 3
    assert made["generator"].integers(99) == np.random.default_rng(3).integers(99)
    assert made["rng"].random() == random.Random(3).random()


def test_what_the_synthetic_dataset_lacks_is_no_broken_promise() -> None:
    class Columns(Sharded):
        def __iter__(self) -> Iterator[int]:
            return iter(sorted(super().__iter__(), key=lambda i: self.dataset[i]["length"]))  # type: ignore[index]

    class Info(Sharded):
        def __init__(self, dataset: Any, num_replicas: int, rank: int) -> None:
            super().__init__(dataset, num_replicas, rank)
            self.lengths = dataset.get_lengths()

    class Named(Sharded):
        def __init__(self, dataset: Any, num_replicas: int, rank: int) -> None:
            super().__init__(dataset, num_replicas, rank)
            self.lengths = dataset["length"]

    for cls, lacks in (
        (Columns, "'MadeUpSample' object is not subscriptable"),
        (Info, "'SyntheticDataset' object has no attribute 'get_lengths'"),
        (Named, "'SyntheticDataset' object has no 'length'"),
    ):
        with pytest.raises(CannotBuildError, match=f"is not enough for it .{lacks}"):
            examine(cls, **QUICK)


def test_what_a_base_class_takes_may_be_refused() -> None:
    class Filled(DistributedSampler[int]):
        def __init__(self, sampler: Any, **kwargs: Any) -> None:
            super().__init__(sampler, shuffle=False, **kwargs)
            self.sampler = sampler

        def __iter__(self) -> Iterator[int]:
            order = list(self.sampler)
            return iter([order[i] for i in super().__iter__()])

        def set_epoch(self, epoch: int) -> None:
            self.sampler.set_epoch(epoch)

    assert broken(examine(Filled, sizes=(7, 8), world_sizes=(1, 2))) == set()


def test_what_a_constructor_refuses_to_do_without_is_given() -> None:
    class Counted(Sharded):
        def __init__(
            self, dataset: Any, num_replicas: int, rank: int, num_samples: int | None = None
        ) -> None:
            if not isinstance(num_samples, int):
                raise ValueError(f"num_samples should be a number, but is {num_samples}")
            super().__init__(dataset, num_replicas, rank)

    report = examine(Counted, promises=["coverage"], **QUICK)
    assert not report.broken
    assert report.guessed == "num_samples = what its name says"
    # What does without it is left as it is.
    assert not examine(RandomSampler, promises=["coverage"], **QUICK).guessed


@pytest.mark.parametrize("flagged", [False, True])
def test_an_index_is_no_flag_that_goes_with_it(flagged: bool) -> None:
    class Mosaic(BatchSampler):
        def __iter__(self) -> Iterator[Any]:
            for batch in super().__iter__():
                yield [(index, True) if flagged else (np.True_, index) for index in batch]

    report = examine(Mosaic, promises=["coverage", "disjoint"], **QUICK)
    assert not report.broken, report
    assert report.judgements["coverage"].verdict == "kept"


def test_samples_are_unpacked_to_their_class() -> None:
    class Persons(Sharded):
        """Of as many samples of each person, as person re-identification learns from."""

        def __init__(self, data_source: Any, num_replicas: int, rank: int, seed: int = 0) -> None:
            super().__init__(data_source, num_replicas, rank, seed)
            self.of: dict[int, list[int]] = {}
            for index, (_, person, _camera) in enumerate(data_source):
                self.of.setdefault(person, []).append(index)

        def order(self) -> list[int]:
            draw = random.Random(self.seed + self.epoch)
            return [i for group in self.of.values() for i in draw.sample(group, len(group))]

    assert broken(check_sampler(Persons, **QUICK)) == set()
    _, person, _ = SyntheticDataset(9)[5]
    assert person == SyntheticDataset(9).labels[5]
    with pytest.raises(TypeError, match="'MadeUpSample' object is not iterable"):
        list(SyntheticDataset(9)[5])


class People(Sampler[list[int]]):
    """Batches of some groups; what its parameters want only shows in what it does with them."""

    batch_size, drop_last = None, True

    def __init__(self, people: Any, p: Any, k: Any, cfg: Any, key: Any, mode: str) -> None:
        self.pools: dict[int, list[int]] = {}
        for index, person in enumerate(people):
            self.pools.setdefault(person, []).append(index)
        self.p, self.k, self.mode, self.seed, self.epoch = p, k, mode, cfg.data.seed, 0
        self.people = sorted(self.pools, key=key)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        draw = random.Random(f"{self.seed}/{self.epoch}")
        people = self.people if self.mode == "sorted" else draw.sample(self.people, len(self))
        for at in range(0, len(people) - self.p + 1, self.p):
            some = people[at : at + self.p]
            yield [i for one in some for i in draw.choices(self.pools[one], k=self.k)]

    def __len__(self) -> int:
        return len(self.people) // self.p


class Parted(Sharded):
    """Its share is told by names that say nothing of ranks."""

    def __init__(self, dataset: Dataset[int], parts: int, part: int, seed: int = 0) -> None:
        super().__init__(dataset, parts, part, seed)


def test_what_no_name_tells_is_tried() -> None:
    report = examine(People, promises=["length-is-true", "reshuffles"], **QUICK)
    assert not report.broken
    assert report.guessed == (
        "people = the indices, p = 1, k = 2, cfg = settings known by their names, "
        "key = a function that returns 1, mode = 'sorted'"
    )
    assert f"tried with {report.guessed}, a guess" in str(ContractError(report))
    parted = examine(Parted, **QUICK)
    assert not parted.broken
    assert parted.judgements["disjoint"].verdict == "kept"
    assert parted.guessed == "parts = the number of ranks, part = the rank"


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (dict[str, list[int]], {"a": [0, 1, 2, 3], "b": [4, 5]}),
        (list[float] | None, [1.0] * 6),
        (list[list[int]], [[0, 1, 2, 3], [4, 5]]),
        (tuple[int, ...], [0, 1, 2, 3, 4, 5]),
        (bool, False),
        (float, 1.0),
        (str, ""),
    ],
)
def test_an_annotation_tells_the_kind(annotation: Any, value: object) -> None:
    def takes(it: Any) -> list[object]:
        seen.append(it)
        return []

    seen: list[object] = []
    takes.__annotations__["it"] = annotation
    next(iter(readings(takes))).build(Case(Setting(6, 1), 0))
    assert seen == [value]


def test_what_raises_alike_whatever_it_is_given_is_broken_itself() -> None:
    class Raises(Sharded):
        def __init__(self, dataset: Any, depth: int) -> None:
            super().__init__(dataset, 1, 0)

        def order(self) -> list[int]:
            raise RuntimeError("no order")

    class Refuses(Raises):
        def __init__(self, dataset: Any, depth: int) -> None:
            raise RuntimeError(depth)

    coverage = examine(Raises, sizes=(8,), world_sizes=(1,)).judgements["coverage"]
    assert (coverage.verdict, "raises RuntimeError: no order" in coverage.reason) == (
        "broken",
        True,
    )
    with pytest.raises(CannotGuessError, match=r"with 2, it raises RuntimeError: 2 when it is bu"):
        examine(Refuses)


def test_one_of_several_is_given() -> None:
    class Chained(Batches):
        def __init__(self, *samplers: Any) -> None:
            super().__init__(BatchSampler(samplers[0], 4, False), 4)

    assert examine(Chained, sizes=(8,), world_sizes=(1, 2)).judgements["coverage"].verdict == "kept"

    class Cuts(Sharded):
        def __init__(self, *cuts: list[int], num_replicas: int, rank: int) -> None:
            super().__init__(cuts[0], num_replicas, rank)

    with pytest.raises(CannotGuessError, match=r"cannot guess what Cuts takes as `\*cuts`"):
        examine(Cuts)


def test_what_a_sampler_that_was_made_up_lacks_is_no_broken_promise() -> None:
    class Asks(Batches):
        def __init__(self, sampler: Any, batch_size: int) -> None:
            super().__init__(sampler, batch_size)

        def __iter__(self) -> Iterator[list[int]]:
            self.sampler.diagnostics.reset()  # type: ignore[attr-defined]
            return super().__iter__()

    with pytest.raises(CannotBuildError, match="no attribute 'diagnostics'"):
        examine(Asks, **QUICK)


def test_an_abstract_class_breaks_no_promise() -> None:
    class Abstract(Sharded):
        def __iter__(self) -> Iterator[int]:
            raise NotImplementedError("a subclass says")

    with pytest.raises(CannotBuildError, match=r"it is abstract .*a subclass says"):
        examine(Abstract, **QUICK)


def test_what_shards_by_itself_wraps_a_sampler_that_does_not() -> None:
    def build(sampler: Any, num_replicas: int, rank: int) -> Any:
        assert not isinstance(sampler, DistributedSampler)
        return [*sampler][rank::num_replicas]

    examine(build, sizes=(8,), world_sizes=(1, 2))


def test_a_sampler_that_cannot_be_built_at_all() -> None:
    def fails(dataset: Any) -> Any:
        raise OSError("no such shard")

    with pytest.raises(CannotBuildError, match="OSError: no such shard"):
        examine(fails, **QUICK)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (os.getcwd, "an object of `str`, which is no sampler"),
        (os.getpid, "an object of `int`, which is no sampler"),
        (lambda: ["a", "b"], "yields 'a' and such, which are no indices"),
    ],
)
def test_what_is_no_sampler_breaks_and_keeps_no_promise(function: Any, why: str) -> None:
    with pytest.raises(CannotBuildError, match=why):
        examine(function, **QUICK)


# -- the fronts


def test_it_is_public() -> None:
    assert sampler_lint.check_sampler is check_sampler
    with pytest.raises(AttributeError, match="no attribute 'check_smapler'"):
        sampler_lint.check_smapler  # noqa: B018


def test_the_fixture_and_its_marker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from torch.utils.data.distributed import DistributedSampler

        class Floored(DistributedSampler):
            def __iter__(self):
                return iter(range(self.rank, len(self), self.num_replicas))

        def test_kept(sampler_contract):
            report = sampler_contract(DistributedSampler, sizes=[7], world_sizes=[1, 2])
            assert report.judgements["coverage"].verdict == "kept"

        @pytest.mark.world_size(3)
        def test_broken(sampler_contract):
            sampler_contract(Floored, sizes=[7])
        """
    )
    # In this process, which has imported torch.
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*coverage*BROKEN*n=2, world size 2*"])


SAMPLERS = """
import os
import time
from torch.utils.data.distributed import DistributedSampler

class Right(DistributedSampler):
    pass

class Stored(DistributedSampler):
    def set_epoch(self, epoch):
        self.epochs = epoch

class Exits(DistributedSampler):
    def __iter__(self):
        if len(self.dataset) == 2:
            os._exit(0)
        return super().__iter__()

class Sleeps(DistributedSampler):
    def __iter__(self):
        if len(self.dataset) == 2:
            time.sleep(1000)
        return super().__iter__()

class Prints(DistributedSampler):
    def __iter__(self):
        if len(self.dataset) == 2:
            if os.fork() == 0:
                time.sleep(1000)
            for _ in range(100):
                print("x" * 100_000)
        return super().__iter__()

class Odd(DistributedSampler):
    def __init__(self, dataset, num_replicas, rank, temperature):
        assert temperature == [0.5]
        super().__init__(dataset, num_replicas, rank)
"""


@pytest.fixture
def contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    (tmp_path / "samplers.py").write_text(SAMPLERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # for classes that are examined in this process

    def call(target: str, *arguments: str) -> tuple[int, str, str]:
        some = ("--sizes", "1,2,7,40", "--world-sizes", "1,2", "--timeout", "30")
        code = main(["contract", target, *some, *arguments])
        return code, *capfd.readouterr()

    return call


def test_the_command(contract: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = contract("samplers:Right")
    assert (code, out.splitlines()[0]) == (0, "Right: 0 promises broken")


@pytest.mark.usefixtures("examined_here")
def test_the_command_tells_what_is_broken(contract: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = contract("samplers.py:Stored", "--output-format", "json")
    report = json.loads(out)
    assert code == 1
    assert report["promises"]["reshuffles"]["verdict"] == "broken"
    assert report["promises"]["coverage"]["verdict"] == "kept"
    assert contract("samplers:Stored", "--allow", "reshuffles")[0] == 0


@pytest.mark.usefixtures("examined_here")
def test_the_command_says_what_it_needs(contract: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = contract("samplers:Odd")
    assert code == 2
    assert "cannot guess what Odd takes as `temperature`" in err
    assert contract("samplers:Odd", "--kw", "temperature=[0.5]", "--allow", "seed-matters")[0] == 0
    with pytest.raises(SystemExit):
        contract("samplers:Right", "--world-sizes", "2,0")
    with mock.patch("importlib.util.find_spec", return_value=None):
        code, _, err = contract("samplers:Right", "--frameworks", "lightning")
    assert code == 2
    assert err.endswith(
        "'0' is not a positive number\nerror: --frameworks lightning: it is not installed\n"
    )
    for target, message in (
        ("samplers:Rihgt", "samplers has no Rihgt; it has"),
        ("smaplers:Right", "importing smaplers raised ModuleNotFoundError"),
        ("samplers", "write package.module:Class or path/to/file.py:Class"),
    ):
        code, _, err = contract(target)
        assert code == 2
        assert message in err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the process is watched on Unix only")
@pytest.mark.parametrize(
    ("name", "promise", "message"),
    [
        ("Exits", "ends", "n=2, world size 1: the process ended with status 0"),
        ("Sleeps", "coverage", "n=2, world size 1: the sampler of rank 0 does not end"),
    ],
)
def test_a_sampler_cannot_hang_or_end_the_command(
    contract: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    promise: str,
    message: str,
) -> None:
    monkeypatch.setattr("sampler_lint.harness.contained.WAKE", 1.0)
    code, out, _ = contract(f"samplers:{name}", "--output-format", "json")
    report = json.loads(out)
    assert code == 1
    assert report["promises"][promise]["reason"].startswith(message)


def test_nothing_is_left_behind(contract: Callable[..., tuple[int, str, str]]) -> None:
    before = set(supervise.descendants(os.getpid()))
    code, out, _ = contract("samplers:Prints")
    assert code == 0
    assert len(out) < 10_000
    assert not set(supervise.descendants(os.getpid())) - before


@pytest.mark.parametrize("ends", ["", "os.kill(os.getpid(), 9)"])
def test_a_daemon_is_not_left_behind(
    contract: Callable[..., tuple[int, str, str]], tmp_path: Path, ends: str
) -> None:
    """One that a process started which has ended, in a session of its own."""
    (tmp_path / "daemons.py").write_text(
        textwrap.dedent(
            f"""
            import os, subprocess, sys
            from samplers import Right
            start = "import subprocess; print(subprocess.Popen(['sleep', '1000'],"
            start += " start_new_session=True, stdout=-3, stderr=-3).pid)"
            started = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True)
            open("daemon", "w").write(started.stdout)
            {ends}
            """
        )
    )
    contract("daemons:Right")
    pid = int((tmp_path / "daemon").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parent.parent / "docs" / "contract.md").read_text(encoding="utf-8")
    fixture, call, mine = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(fixture, "contract.md", "exec"), names)
    names["test_it_keeps_its_contract"](check_sampler)
    exec(compile(call, "contract.md", "exec"), names)
    (tmp_path / "mine.py").write_text(mine)
    monkeypatch.syspath_prepend(tmp_path)
    (shown,) = re.findall(r"\$ sampler-lint contract mine:ShardSampler\n(.*?)```", text, re.DOTALL)
    report = examine(importlib.import_module("mine").ShardSampler, world_sizes=(1, 2, 3))
    assert report.render().splitlines()[:-1] == shown.splitlines()[:-1]


def test_a_framework_is_shown_what_index_makes_of_an_item():
    from sampler_lint.harness.frameworks import user_loader
    from sampler_lint.harness.ranks import Case, Setting

    case = Case(Setting(4, 1, 0, 2), 0)
    sized = [(32, index) for index in (3, 1, 0, 2)]
    loader = user_loader(sized, case, batches=False, objects=False, index=lambda item: item[1])
    assert list(loader) == [[3, 1], [0, 2]]
    assert list(user_loader(sized, case, batches=False, objects=False)) == [[32, 32], [32, 32]]


def test_a_sampler_may_refuse_no_data_when_it_is_read() -> None:
    class Weighted(Sharded):
        def __iter__(self) -> Iterator[int]:
            weights = torch.ones(len(self.dataset))  # type: ignore[arg-type]
            torch.multinomial(weights, 1)
            return super().__iter__()

    report = examine(Weighted, sizes=(0, 7), world_sizes=(2,))
    assert broken(report) == set()
    assert any("n=0" in text for text in report.refusals)


def test_a_slip_over_no_data_is_no_refusal() -> None:
    class Repeated(Sharded):
        def __iter__(self) -> Iterator[int]:
            times = 7 // len(self.dataset)  # type: ignore[arg-type]
            return super().__iter__() if times < 8 else iter(())

    report = examine(Repeated, sizes=(0, 7), world_sizes=(2,))
    assert "coverage" in broken(report)
    assert "ZeroDivisionError" in report.render()


def test_sizes_may_be_of_samples_or_of_parts() -> None:
    """The name tells neither: the meaning with which only indices are yielded is taken."""

    class OfParts(Sharded):
        def __init__(self, sizes: list[int], num_replicas: int, rank: int, seed: int = 0) -> None:
            super().__init__(range(sum(sizes)), num_replicas, rank, seed)

    class OfSamples(Sharded):
        def __init__(self, sizes: list[int], num_replicas: int, rank: int, seed: int = 0) -> None:
            super().__init__(sizes, num_replicas, rank, seed)

    for each in (OfParts, OfSamples):
        assert not examine(each, **QUICK).broken, each


class Kind(enum.Enum):
    PADDED = 1
    CUT = 2


@dataclasses.dataclass
class Settings:
    seed: int = 0
    kind: Kind = Kind.PADDED


def test_types_tell_values_where_names_do_not() -> None:
    class Typed(Sharded):
        def __init__(self, data: ConcatDataset, kind: Kind, how: Literal["in", "out"],
                     settings: Settings, num_replicas: int, rank: int) -> None:  # fmt: skip
            assert data.cumulative_sizes[-1] == len(data)
            assert (kind, how) == (Kind.PADDED, "in")
            super().__init__(data, num_replicas, rank, settings.seed)

    report = examine(Typed, **QUICK)
    assert not report.broken
    assert report.judgements["seed-matters"].verdict == "kept"
