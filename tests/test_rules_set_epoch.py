"""SMP103 and SMP104: the spellings of the bug that are found, and the right code beside them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from sampler_lint.domain.model import Model
from sampler_lint.rules import Rule
from sampler_lint.rules.smp103_set_epoch_misplaced import SetEpochMisplaced
from sampler_lint.rules.smp104_epoch_not_forwarded import EpochNotForwarded
from trees import TORCH, Tree

HEAD = (
    "import random\n\nimport numpy as np\nimport torch\n"
    + "from torch.utils.data import IterableDataset\n"
    + TORCH
    + textwrap.dedent(
        """
        def step(batch, opt):
            opt.zero_grad()
            batch.sum().backward()
            opt.step()
        """
    )
)

MISPLACED = {
    "once-before-the-loop": """
        def main(args, ds, opt):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler)
            sampler.set_epoch(0)
            for epoch in range(args.epochs):
                for b in loader:
                    step(b, opt)
    """,
    "once-in-a-factory": """
        def build(args, ds):
            sampler = DistributedSampler(ds)
            if args.distributed:
                sampler.set_epoch(args.start_epoch)
            return DataLoader(ds, sampler=sampler)
        def train_one(loader, opt):
            for b in loader:
                step(b, opt)
        def main(args, ds, opt):
            loader = build(args, ds)
            for epoch in range(args.epochs):
                train_one(loader, opt)
    """,
    "option": """
        def main(args, ds, opt):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler)
            for epoch in range(args.epochs):
                sampler.set_epoch(args.epochs)
                for b in loader:
                    step(b, opt)
    """,
    "variable-from-outside": """
        def main(args, ds, opt):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler)
            start = args.start
            for ep in range(start, args.epochs):
                if args.distributed:
                    loader.sampler.set_epoch(start)
                for b in loader:
                    step(b, opt)
    """,
    "literal-in-a-helper": """
        def train_epoch(loader, opt):
            loader.sampler.set_epoch(0)
            for b in loader:
                step(b, opt)
        def main(args, ds, opt):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler)
            for epoch in range(args.epochs):
                train_epoch(loader, opt)
    """,
    "after-the-pass": """
        def main(args, ds, opt):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler)
            for epoch in range(args.epochs):
                for b in loader:
                    step(b, opt)
                sampler.set_epoch(epoch)
    """,
    "during-the-pass": """
        def main(args, ds, opt):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler)
            for epoch in range(args.epochs):
                for i, b in enumerate(loader):
                    sampler.set_epoch(epoch)
                    step(b, opt)
    """,
    "number-of-the-batch": """
        def main(args, ds, opt):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler)
            for epoch in range(args.epochs):
                for i, b in enumerate(loader):
                    sampler.set_epoch(i)
                    step(b, opt)
    """,
    "after-iter": """
        def main(args, ds, opt):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler, num_workers=4)
            for epoch in range(args.epochs):
                it = iter(loader)
                sampler.set_epoch(epoch)
                for i in range(len(loader)):
                    step(next(it), opt)
    """,
    "loader-has-none": """
        def main(args, ds, opt):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler)
            for epoch in range(args.epochs):
                if hasattr(loader, "set_epoch"):
                    loader.set_epoch(epoch)
                for b in loader:
                    step(b, opt)
    """,
    "torch-batch-sampler-has-none": """
        def main(args, ds, opt):
            loader = DataLoader(ds, sampler=DistributedSampler(ds))
            for epoch in range(args.epochs):
                loader.batch_sampler.set_epoch(epoch)
                for b in loader:
                    step(b, opt)
    """,
    "guard-asks-the-loader": """
        def main(args, ds, opt):
            loader = DataLoader(ds, sampler=DistributedSampler(ds))
            for epoch in range(args.epochs):
                if isinstance(loader, DistributedSampler):
                    loader.sampler.set_epoch(epoch)
                for b in loader:
                    step(b, opt)
    """,
    "guard-asks-for-torch": """
        class My(Sampler):
            def __init__(self, ds):
                self.ds = ds
                self.epoch = 0
            def set_epoch(self, e):
                self.epoch = e
            def __iter__(self):
                g = torch.Generator()
                g.manual_seed(self.epoch)
                return iter(torch.randperm(len(self.ds), generator=g).tolist())
        def main(args, ds, opt):
            loader = DataLoader(ds, sampler=My(ds))
            for epoch in range(args.epochs):
                if args.dist and isinstance(loader.sampler, DistributedSampler):
                    loader.sampler.set_epoch(epoch)
                for b in loader:
                    step(b, opt)
    """,
    "after-the-pass-in-a-helper": """
        def train_epoch(loader, sampler, epoch, opt):
            for b in loader:
                step(b, opt)
            sampler.set_epoch(epoch)
        def main(args, ds, opt):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler)
            for epoch in range(args.epochs):
                train_epoch(loader, sampler, epoch, opt)
    """,
    "one-rank": """
        def main(args, ds, opt, rank):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler)
            for epoch in range(args.epochs):
                if rank == 0:
                    sampler.set_epoch(epoch)
                    print(epoch)
                for b in loader:
                    step(b, opt)
    """,
    "persistent-workers": """
        class D(IterableDataset):
            def __init__(self, n):
                self.n = n
                self.epoch = 0
            def set_epoch(self, epoch):
                self.epoch = epoch
            def __iter__(self):
                r = random.Random(self.epoch)
                x = list(range(self.n))
                r.shuffle(x)
                return iter(x)
        def main(args, opt):
            ds = D(10)
            loader = DataLoader(ds, num_workers=2, persistent_workers=True)
            for epoch in range(args.epochs):
                ds.set_epoch(epoch)
                for b in loader:
                    step(b, opt)
    """,
    "iter-then-set": """
        def main(args, ds, opt):
            loader = DataLoader(ds, sampler=DistributedSampler(ds), num_workers=args.w)
            it = iter(loader)
            epoch = 0
            for i in range(args.steps):
                try:
                    b = next(it)
                except StopIteration:
                    epoch += 1
                    it = iter(loader)
                    loader.sampler.set_epoch(epoch)
                    b = next(it)
                step(b, opt)
    """,
    "assigned": """
        def main(args, ds, opt):
            loader = DataLoader(ds, sampler=DistributedSampler(ds))
            for epoch in range(args.epochs):
                loader.sampler.set_epoch = epoch
                for b in loader:
                    step(b, opt)
    """,
    "attribute-that-stands-still": """
        class T:
            def __init__(self, ds):
                self.epoch = 0
                self.sampler = DistributedSampler(ds)
                self.loader = DataLoader(ds, sampler=self.sampler)
            def fit(self, args, opt):
                for ep in range(args.epochs):
                    self.sampler.set_epoch(self.epoch)
                    for b in self.loader:
                        step(b, opt)
    """,
    "order-made-ahead": """
        class S(DistributedSampler):
            def __init__(self, ds):
                super().__init__(ds)
                self.make()
            def make(self):
                g = torch.Generator()
                g.manual_seed(self.seed + self.epoch)
                self.idx = torch.randperm(len(self.dataset), generator=g).tolist()
            def __iter__(self):
                for i in self.idx:
                    yield i
                self.make()
        def main(args, ds, opt):
            s = S(ds)
            loader = DataLoader(ds, sampler=s)
            for epoch in range(args.epochs):
                s.set_epoch(epoch)
                for b in loader:
                    step(b, opt)
    """,
}

PLACED = {
    "once-per-loader": """
        def build(args, ds, epoch):
            sampler = DistributedSampler(ds)
            sampler.set_epoch(epoch)
            return DataLoader(ds, sampler=sampler)
        def main(args, ds, opt):
            for epoch in range(args.epochs):
                loader = build(args, ds, epoch)
                for b in loader:
                    step(b, opt)
    """,
    "before-and-in-the-loop": """
        def main(args, ds, opt):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler)
            sampler.set_epoch(args.start)
            for epoch in range(args.epochs):
                loader.sampler.set_epoch(epoch)
                for b in loader:
                    step(b, opt)
    """,
    "in-a-hook": """
        class T:
            def __init__(self, ds):
                self.sampler = DistributedSampler(ds)
                self.loader = DataLoader(ds, sampler=self.sampler)
                self.hooks = []
            def before_epoch(self, epoch):
                self.sampler.set_epoch(epoch)
            def fit(self, args, opt):
                for epoch in range(args.epochs):
                    for name in ("before_epoch",):
                        getattr(self, name)(epoch)
                    for b in self.loader:
                        step(b, opt)
    """,
    "after-the-pass-for-the-next": """
        def main(args, ds, opt):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler)
            for epoch in range(args.epochs):
                for b in loader:
                    step(b, opt)
                sampler.set_epoch(epoch + 1)
    """,
    "evaluation": """
        def main(args, ds, opt, model):
            loader = DataLoader(ds, sampler=DistributedSampler(ds))
            for epoch in range(args.epochs):
                loader.sampler.set_epoch(0)
                with torch.no_grad():
                    for b in loader:
                        model(b)
    """,
    "own-counter": """
        class T:
            def __init__(self, ds):
                self.epoch = 0
                self.sampler = DistributedSampler(ds)
                self.loader = DataLoader(ds, sampler=self.sampler)
            def fit(self, args, opt):
                n = 0
                for epoch in range(args.epochs):
                    self.sampler.set_epoch(self.epoch)
                    for b in self.loader:
                        step(b, opt)
                    self.epoch += 1
    """,
    "counter-of-batches": """
        def main(args, ds, opt):
            loader = DataLoader(ds, sampler=DistributedSampler(ds))
            n = 0
            for epoch in range(args.epochs):
                loader.sampler.set_epoch(n)
                for b in loader:
                    step(b, opt)
                    n += 1
    """,
    "in-a-helper": """
        def train_epoch(loader, sampler, epoch, opt):
            sampler.set_epoch(epoch)
            for b in loader:
                step(b, opt)
        def main(args, ds, opt):
            sampler = DistributedSampler(ds)
            loader = DataLoader(ds, sampler=sampler)
            for epoch in range(args.epochs):
                train_epoch(loader, sampler, epoch, opt)
    """,
    "fresh-workers": """
        class D(IterableDataset):
            def __init__(self, n):
                self.n = n
                self.epoch = 0
            def set_epoch(self, epoch):
                self.epoch = epoch
            def __iter__(self):
                r = random.Random(self.epoch)
                x = list(range(self.n))
                r.shuffle(x)
                return iter(x)
        def main(args, opt):
            ds = D(10)
            loader = DataLoader(ds, num_workers=2)
            for epoch in range(args.epochs):
                ds.set_epoch(epoch)
                for b in loader:
                    step(b, opt)
    """,
    "set-then-iter": """
        def main(args, ds, opt):
            loader = DataLoader(ds, sampler=DistributedSampler(ds), num_workers=args.w)
            it = iter(loader)
            epoch = 0
            for i in range(args.steps):
                try:
                    b = next(it)
                except StopIteration:
                    epoch += 1
                    loader.sampler.set_epoch(epoch)
                    it = iter(loader)
                    b = next(it)
                step(b, opt)
    """,
    "order-made-in-time": """
        class S(DistributedSampler):
            def __init__(self, ds):
                super().__init__(ds)
                self.make()
            def make(self):
                g = torch.Generator()
                g.manual_seed(self.seed + self.epoch)
                self.idx = torch.randperm(len(self.dataset), generator=g).tolist()
            def __iter__(self):
                self.make()
                for i in self.idx:
                    yield i
        def main(args, ds, opt):
            s = S(ds)
            loader = DataLoader(ds, sampler=s)
            for epoch in range(args.epochs):
                s.set_epoch(epoch)
                for b in loader:
                    step(b, opt)
    """,
}

KEPT = {
    "lightning-does-not-call-it": """
        import lightning as L
        class Shuffled(BatchSampler):
            def __init__(self, ds):
                self.ds = ds
                self.batch_size = 1
                self.drop_last = False
                self.epoch = 0
            def set_epoch(self, epoch):
                self.epoch = epoch
            def __iter__(self):
                g = torch.Generator()
                g.manual_seed(self.epoch)
                for i in torch.randperm(len(self.ds), generator=g).tolist():
                    yield [i]
        class Data(L.LightningDataModule):
            def train_dataloader(self):
                return DataLoader(self.ds, batch_sampler=Shuffled(self.ds))
    """,
    "kept": """
        class W(BatchSampler):
            def __init__(self, sampler, batch_size, drop_last):
                super().__init__(sampler, batch_size, drop_last)
                self.epoch = 0
            def set_epoch(self, epoch):
                self.epoch = epoch
            def __iter__(self):
                for b in super().__iter__():
                    yield b
        def main(ds):
            s = DistributedSampler(ds)
            return DataLoader(ds, batch_sampler=W(s, 4, False))
    """,
    "one-of-two": """
        class Two(Sampler):
            def __init__(self, a, b):
                self.a = a
                self.b = b
            def set_epoch(self, epoch):
                self.a.set_epoch(epoch)
            def __iter__(self):
                for x, y in zip(self.a, self.b):
                    yield [x, y]
            def __len__(self):
                return len(self.a)
        def main(ds, d2):
            return DataLoader(ds, batch_sampler=Two(DistributedSampler(ds), DistributedSampler(d2)))
    """,
    "seed-alone": """
        class S(Sampler):
            def __init__(self, ds, seed=0):
                self.ds = ds
                self.seed = seed
                self.epoch = 0
            def set_epoch(self, epoch):
                self.epoch = epoch
            def __iter__(self):
                g = torch.Generator()
                g.manual_seed(self.seed)
                return iter(torch.randperm(len(self.ds), generator=g).tolist())
    """,
    "inherited-seed-alone": """
        class S(DistributedSampler):
            def __iter__(self):
                g = torch.Generator()
                g.manual_seed(self.seed)
                idx = torch.randperm(len(self.dataset), generator=g).tolist()
                return iter(idx[self.rank:self.total_size:self.num_replicas])
    """,
    "another-attribute": """
        class S(Sampler):
            def __init__(self, ds, seed=0):
                self.ds = ds
                self.seed = seed
                self.epoch = 0
            def set_epoch(self, epoch):
                self._epoch = epoch
            def __iter__(self):
                g = torch.Generator()
                g.manual_seed(self.seed + self.epoch)
                return iter(torch.randperm(len(self.ds), generator=g).tolist())
    """,
    "made-in-init": """
        class S(BatchSampler):
            def __init__(self, ds, bs, seed=0):
                self.ds = ds
                self.bs = bs
                self.seed = seed
                self.epoch = 0
                self.batches = self._make()
            def _make(self):
                rng = random.Random(self.seed + self.epoch)
                idx = list(range(len(self.ds)))
                rng.shuffle(idx)
                return [idx[i:i+self.bs] for i in range(0, len(idx), self.bs)]
            def set_epoch(self, epoch):
                self.epoch = epoch
            def __iter__(self):
                return iter(self.batches)
            def __len__(self):
                return len(self.batches)
    """,
    "none": """
        class S(Sampler):
            def __init__(self, ds, seed=0):
                self.ds = ds
                self.seed = seed
                self.epoch = 0
            def __iter__(self):
                rng = np.random.RandomState(self.seed + self.epoch)
                return iter(rng.permutation(len(self.ds)).tolist())
    """,
    "list": """
        class Concat(Sampler):
            def __init__(self, datasets):
                self.samplers = [DistributedSampler(d) for d in datasets]
                self.epoch = 0
            def set_epoch(self, epoch):
                self.epoch = epoch
            def __iter__(self):
                for s in self.samplers:
                    yield from s
    """,
    "none-in-a-wrapper": """
        class W(Sampler):
            def __init__(self, sampler):
                self.inner = sampler
            def __iter__(self):
                return iter(self.inner)
            def __len__(self):
                return len(self.inner)
        def main(args, ds, opt):
            loader = DataLoader(ds, sampler=W(DistributedSampler(ds)))
            for epoch in range(args.epochs):
                if hasattr(loader.sampler, "set_epoch"):
                    loader.sampler.set_epoch(epoch)
                for b in loader:
                    step(b, opt)
    """,
    "hides-the-base": """
        class S(DistributedSampler):
            def __init__(self, ds):
                super().__init__(ds)
                self.sub = 0
            def set_epoch(self, epoch):
                self.sub = epoch
    """,
}

PASSED_ON = {
    "called-in-a-lightning-hook": """
        import lightning as L
        class Shuffled(BatchSampler):
            def __init__(self, ds):
                self.ds = ds
                self.epoch = 0
            def set_epoch(self, epoch):
                self.epoch = epoch
            def __iter__(self):
                g = torch.Generator()
                g.manual_seed(self.epoch)
                for i in torch.randperm(len(self.ds), generator=g).tolist():
                    yield [i]
        class Data(L.LightningDataModule):
            def train_dataloader(self):
                return DataLoader(self.ds, batch_sampler=Shuffled(self.ds))
        class Hook(L.Callback):
            def on_train_epoch_start(self, trainer, module):
                trainer.train_dataloader.batch_sampler.set_epoch(trainer.current_epoch)
    """,
    "forwarded": """
        class W(BatchSampler):
            def __init__(self, sampler, batch_size, drop_last):
                super().__init__(sampler, batch_size, drop_last)
            def set_epoch(self, epoch):
                self.sampler.set_epoch(epoch)
        def main(ds):
            s = DistributedSampler(ds)
            return DataLoader(ds, batch_sampler=W(s, 4, False))
    """,
    "wraps-no-epoch": """
        class W(Sampler):
            def __init__(self, sampler):
                self.sampler = sampler
                self.epoch = 0
            def set_epoch(self, epoch):
                self.epoch = epoch
            def __iter__(self):
                return iter(self.sampler)
        def main(ds):
            return DataLoader(ds, sampler=W(RandomSampler(ds)))
    """,
    "made-in-set-epoch": """
        class S(BatchSampler):
            def __init__(self, ds, bs, seed=0):
                self.ds = ds
                self.bs = bs
                self.seed = seed
                self.epoch = 0
                self.batches = self._make()
            def _make(self):
                rng = random.Random(self.seed + self.epoch)
                idx = list(range(len(self.ds)))
                rng.shuffle(idx)
                return [idx[i:i+self.bs] for i in range(0, len(idx), self.bs)]
            def set_epoch(self, epoch):
                self.epoch = epoch
                self.batches = self._make()
            def __iter__(self):
                return iter(self.batches)
    """,
    "moves-on-by-itself": """
        class S(Sampler):
            def __init__(self, ds, seed=0):
                self.ds = ds
                self.seed = seed
                self.epoch = 0
            def __iter__(self):
                rng = np.random.RandomState(self.seed + self.epoch)
                self.epoch += 1
                return iter(rng.permutation(len(self.ds)).tolist())
    """,
    "no-shuffle": """
        class S(Sampler):
            def __init__(self, ds):
                self.ds = ds
                self.epoch = 0
            def set_epoch(self, epoch):
                self.epoch = epoch
            def __iter__(self):
                return iter(range(len(self.ds)))
    """,
    "process-generator": """
        class S(Sampler):
            def __init__(self, idx):
                self.idx = idx
                self.epoch = 0
            def set_epoch(self, epoch):
                self.epoch = epoch
            def __iter__(self):
                return (self.idx[i] for i in torch.randperm(len(self.idx)))
    """,
    "calls-the-base": """
        class S(DistributedSampler):
            def set_epoch(self, epoch):
                self.sub = epoch
                super().set_epoch(epoch)
    """,
}


def findings(folder: Path, rule: Rule, source: str) -> int:
    model: Model = Tree(folder, {"main.py": HEAD + textwrap.dedent(source)}).model
    return len(list(rule.check(model)))


@pytest.mark.parametrize("name", MISPLACED)
def test_calls_that_cannot_change_the_order(name: str, tmp_path: Path) -> None:
    assert findings(tmp_path, SetEpochMisplaced(), MISPLACED[name]) == 1


@pytest.mark.parametrize("name", [*PLACED, *PASSED_ON])
def test_calls_that_do(name: str, tmp_path: Path) -> None:
    assert findings(tmp_path, SetEpochMisplaced(), (PLACED | PASSED_ON)[name]) == 0


@pytest.mark.parametrize("name", KEPT)
def test_setters_that_keep_the_epoch_to_themselves(name: str, tmp_path: Path) -> None:
    assert findings(tmp_path, EpochNotForwarded(), KEPT[name]) == 1


@pytest.mark.parametrize("name", [*PLACED, *PASSED_ON])
def test_setters_that_pass_it_on(name: str, tmp_path: Path) -> None:
    assert findings(tmp_path, EpochNotForwarded(), (PLACED | PASSED_ON)[name]) == 0
