"""Trace finds planted bugs in programs that know nothing of it, and ends whatever it is given."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from programs import HEADER
from sampler_lint.harness.judge import judge
from sampler_lint.harness.runs import Run


@pytest.fixture
def observed(tmp_path: Path, gloo_session):
    """Run a program that begins with ``HEADER``; what is seen of it, and the run."""

    def run(body: str, world_size: int = 2, timeout: float = 20.0):
        script = tmp_path / "train.py"
        script.write_text(HEADER + textwrap.dedent(body))
        done: Run = gloo_session.run(script, world_size=world_size, timeout=timeout)
        return judge(done), done

    return run


# Each: the program, the code (None: it is right), words of the message.
BUGS = {
    "set_epoch is never called": (
        "s = shard(); read(DataLoader(data, sampler=s, batch_size=9))",
        "SMP102",
        "epochs 0-2 have one order on both ranks: no `set_epoch` call reached DistributedSampler",
    ),
    "set_epoch is called": (
        "s = shard(); read(DataLoader(data, sampler=s, batch_size=9), 3, s)",
        None,
        "",
    ),
    "set_epoch is called with one value": (
        """
        s = shard(); l = DataLoader(data, sampler=s, batch_size=9)
        for epoch in range(3):
            s.set_epoch(4)
            read(l, 1)
        """,
        "SMP103",
        "`set_epoch` left the value 4 for all of them",
    ),
    "set_epoch comes after the iterator": (
        """
        s = shard(); l = DataLoader(data, sampler=s, batch_size=9)
        for epoch in range(4):
            for step, batch in enumerate(l):
                if not step: s.set_epoch(epoch)
        """,
        "SMP103",
        "epochs 0 and 1 have one order on both ranks: `set_epoch` is called after",
    ),
    "set_epoch of the dataset": (
        """
        class Data(TensorDataset):
            def set_epoch(self, epoch): pass
        data = Data(torch.arange(101))
        s = shard()
        read(DataLoader(data, sampler=s, batch_size=9), 3, data)
        """,
        "SMP103",
        "`set_epoch` is called on the dataset",
    ),
    "set_epoch of a sampler that the batch sampler does not read": (
        """
        s = shard()
        read(DataLoader(data, batch_sampler=BatchSampler(shard(), 9, False)), 3, s)
        """,
        "SMP101",
        "that this loader does not read; call it on the DistributedSampler in "
        "`loader.batch_sampler`",
    ),
    "set_epoch of the inner sampler, the batch sampler has the epoch": (
        """
        class Buckets(Sampler):
            epoch = 0
            def __init__(self, sampler): self.sampler = sampler
            def set_epoch(self, epoch): self.epoch = epoch
            def __len__(self): return 10
            def __iter__(self):
                g = torch.Generator().manual_seed(self.epoch)
                batches = [list(range(i, 101, 20)) for i in range(rank, 20, 2)]
                return iter([batches[i] for i in torch.randperm(10, generator=g)])
        s = shard()
        read(DataLoader(data, batch_sampler=Buckets(s)), 3, s)
        """,
        "SMP101",
        "`set_epoch` reaches DistributedSampler, but Buckets carries the epoch",
    ),
    "set_epoch of the inner sampler, which makes the order": (
        """
        s = shard()
        read(DataLoader(data, batch_sampler=BatchSampler(s, 9, False)), 3, s)
        """,
        None,
        "",
    ),
    "set_epoch of a wrapper that keeps it": (
        """
        class Wrapper(Sampler):
            def __init__(self, sampler): self.sampler = sampler
            def set_epoch(self, epoch): pass
            def __iter__(self): return iter(self.sampler)
            def __len__(self): return len(self.sampler)
        w = Wrapper(shard())
        read(DataLoader(data, sampler=w, batch_size=9), 3, w)
        """,
        "SMP104",
        "`set_epoch` of Wrapper does not reach DistributedSampler",
    ),
    "set_epoch stored and never read": (
        """
        class Mine(DistributedSampler):
            def __iter__(self):
                g = torch.Generator().manual_seed(self.seed)
                return iter(torch.randperm(101, generator=g).tolist()[rank::world])
            def __len__(self): return len(range(rank, 101, world))
        s = Mine(data, world, rank)
        read(DataLoader(data, sampler=s, batch_size=9), 3, s)
        """,
        "SMP104",
        "the order does not depend on it",
    ),
    "a sampler with one order and no set_epoch": (
        """
        class Mine(Sampler):
            shuffle = True
            def __init__(self): self.shuffle = True
            def __iter__(self):
                g = torch.Generator().manual_seed(0)
                return iter(torch.randperm(101, generator=g).tolist()[rank::world])
            def __len__(self): return len(range(rank, 101, world))
        read(DataLoader(data, sampler=Mine(), batch_size=9))
        """,
        "SMP104",
        "Mine has no `set_epoch`",
    ),
    "a sampler that sorts on purpose": (
        """
        class ByLength(Sampler):
            def __iter__(self): return iter(sorted(range(rank, 101, world), key=lambda i: i % 7))
            def __len__(self): return len(range(rank, 101, world))
        read(DataLoader(data, sampler=ByLength(), batch_size=9))
        """,
        None,
        "",
    ),
    "evaluation keeps its order": (
        """
        s = shard(); val = shard()
        l = DataLoader(data, sampler=s, batch_size=9)
        w = torch.ones(1, requires_grad=True)
        for epoch in range(3):
            s.set_epoch(epoch)
            for (x,) in l: (w * x.sum()).sum().backward()
            for (x,) in DataLoader(data, sampler=val): w * x
            for (x,) in DataLoader(data): w * x
        """,
        None,
        "",
    ),
    "seeds differ by rank": (
        "s = shard(seed=rank + 5); read(DataLoader(data, sampler=s, batch_size=9), 3, s)",
        "SMP202",
        "of the indices: the sampler's seed is 5 on rank 0, 6 on rank 1",
    ),
    "a generator differs by rank": (
        """
        class Mine(Sampler):
            def __init__(self): self.g = torch.Generator().manual_seed(rank)
            def __iter__(self):
                return iter(torch.randperm(101, generator=self.g).tolist()[rank::world])
            def __len__(self): return len(range(rank, 101, world))
        read(DataLoader(data, sampler=Mine(), batch_size=9))
        """,
        "SMP202",
        "each rank shuffles in its own way",
    ),
    "nothing shards": (
        "torch.manual_seed(rank); read(DataLoader(data, shuffle=True, batch_size=9))",
        "SMP502",
        "ranks 0 and 1 share 100 % of the indices: nothing shards this loader",
    ),
    "nothing shards, and the program stops early": (
        """
        torch.manual_seed(0)
        for step, batch in enumerate(DataLoader(data, shuffle=True, batch_size=9)):
            if step == 5: break
        """,
        "SMP502",
        "nothing shards this loader",
    ),
    "one rank for all": (
        "s = shard(rank=0); read(DataLoader(data, sampler=s, batch_size=9), 3, s)",
        "SMP502",
        "the sampler's rank is 0 and 0 there",
    ),
    "too many replicas": (
        "s = shard(num_replicas=4); read(DataLoader(data, sampler=s, batch_size=9), 3, s)",
        "SMP502",
        "the sampler shares out among 4, but there are 2 ranks",
    ),
    "floor where ceil is needed": (
        """
        class Mine(Sampler):
            def __iter__(self): return iter(range(rank * 33, rank * 33 + 33))
            def __len__(self): return 33
        read(DataLoader(data, sampler=Mine(), batch_size=3))
        """,
        "SMP405",
        "35 % of the samples are read by no rank",
    ),
    "big data, nothing shards": (
        """
        data = TensorDataset(torch.arange(60_000))
        torch.manual_seed(rank); read(DataLoader(data, shuffle=True, batch_size=5000))
        """,
        "SMP502",
        "ranks 0 and 1 share 100 % of the indices",
    ),
    "big data, seeds differ by rank": (
        """
        data = TensorDataset(torch.arange(60_000))
        s = shard(seed=rank); read(DataLoader(data, sampler=s, batch_size=5000), 2, s)
        """,
        "SMP202",
        "of the indices",
    ),
    "big data, one order": (
        """
        data = TensorDataset(torch.arange(60_000))
        s = shard(); read(DataLoader(data, sampler=s, batch_size=5000), 2)
        """,
        "SMP102",
        "epochs 0 and 1",
    ),
    "big data, right": (
        """
        data = TensorDataset(torch.arange(60_001))
        s = shard(); read(DataLoader(data, sampler=s, batch_size=5000), 2, s)
        """,
        None,
        "",
    ),
    "each rank has data of its own": (
        "data = TensorDataset(torch.arange(101) + 101 * rank); read(DataLoader(data, 9, True))",
        None,
        "",
    ),
    "samples are drawn with replacement": (
        "read(DataLoader(data, sampler=RandomSampler(data, True, 101), batch_size=9))",
        None,
        "",
    ),
    "samples are repeated on purpose": (
        """
        class Augmented(Sampler):
            def __init__(self): self.num_repeats = 3
            def __iter__(self):
                g = torch.Generator().manual_seed(torch.initial_seed() % 7)
                order = torch.randperm(101, generator=g).repeat_interleave(3).tolist()
                return iter(order[rank::world])
            def __len__(self): return len(range(rank, 303, world))
        torch.manual_seed(1)
        read(DataLoader(data, sampler=Augmented(), batch_size=9), 1)
        """,
        None,
        "",
    ),
    "two ranks share a shard as they have to": (
        """
        dist.init_process_group("gloo")
        pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        s = shard(num_replicas=2, rank=rank // 2)
        read(DataLoader(data, sampler=s, batch_size=9), 2, s)
        dist.destroy_process_group()
        """,
        None,
        "",
    ),
    "a rank has one batch less": (
        "read(DataLoader(Subset(data, range(50 * rank, 50 + 40 * rank)), batch_size=10))",
        "SMP306",
        "epoch 0: rank 0 took 5, rank 1 took 4 steps",
    ),
    "a rank stops first in an iterable dataset": (
        """
        class Stream(IterableDataset):
            def __iter__(self): return iter(range(50 - 10 * rank))
        read(DataLoader(Stream(), batch_size=10), 1)
        """,
        "SMP306",
        "rank 0 took 5, rank 1 took 4 steps",
    ),
    "uneven inputs under Join": (
        """
        from torch.distributed.algorithms.join import Join
        dist.init_process_group("gloo")
        with Join([torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))]):
            read(DataLoader(Subset(data, range(50 * rank, 50 + 40 * rank)), batch_size=10), 1)
        dist.destroy_process_group()
        """,
        None,
        "",
    ),
    "a length that is not true": (
        """
        class Mine(DistributedSampler):
            def __len__(self): return 101
        s = Mine(data, world, rank)
        read(DataLoader(data, sampler=s, batch_size=9), 2, s)
        """,
        "SMP304",
        "len() is 12, but 6 batches were handed out",
    ),
}


@pytest.mark.parametrize(("body", "code", "words"), BUGS.values(), ids=BUGS)
def test_observed(observed, body, code, words):
    found, run = observed(body, world_size=4 if "pairs" in body else 2)
    assert run.finished, run.trouble
    assert [one.code for one in found] == ([code] if code else []), found
    if code:
        assert words in found[0].message
        assert Path(found[0].path).name == "train.py"
        assert any("built here" in one for one in found[0].evidence)
        assert any("iterated here" in one for one in found[0].evidence)
