"""SMP101 and SMP102: the kinds of epoch loops that are seen, and the right code beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sampler_lint.engine import Options, check, fix

HEAD = """\
import itertools
import random
from dataclasses import dataclass

import torch
from torch.utils.data import BatchSampler, DataLoader
from torch.utils.data.distributed import DistributedSampler
from tqdm import tqdm


def step(batch, opt):
    batch.sum().backward()
    opt.step()


"""

NEVER_SET = {
    "prefetcher": """
class Prefetcher:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        for batch in self.loader:
            yield batch.cuda()


def main(ds, opt, epochs):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for epoch in range(epochs):
        for batch in Prefetcher(loader):
            step(batch, opt)
""",
    "bar": """
def main(ds, opt, epochs):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for epoch in range(epochs):
        bar = tqdm(enumerate(loader), total=len(loader))
        for i, batch in bar:
            step(batch, opt)
""",
    "bar-if-first": """
def main(ds, opt, epochs, rank):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for epoch in range(epochs):
        batches = enumerate(loader)
        if rank == 0:
            batches = tqdm(batches)
        for i, batch in batches:
            step(batch, opt)
""",
    "generator-for-ever": """
def batches(loader):
    for epoch in itertools.count():
        yield from loader

def main(ds, opt, steps):
    stream = batches(DataLoader(ds, sampler=DistributedSampler(ds)))
    for _ in range(steps):
        step(next(stream), opt)
""",
    "generator-of-epochs": """
def batches(loader, epochs):
    for epoch in range(epochs):
        for batch in loader:
            yield batch.cuda()

def main(ds, opt, epochs):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for batch in batches(loader, epochs):
        step(batch, opt)
""",
    "generator-in-the-loop": """
def on_device(loader):
    for batch in loader:
        yield batch.cuda()

def main(ds, opt, epochs):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for epoch in range(epochs):
        for batch in on_device(loader):
            step(batch, opt)
""",
    "for": """
def main(ds, opt, epochs):
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, sampler=sampler)
    for epoch in range(epochs):
        for batch in loader:
            step(batch, opt)
""",
    "while": """
def main(ds, opt, epochs):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    epoch = 0
    while epoch < epochs:
        for batch in loader:
            step(batch, opt)
        epoch += 1
""",
    "key": """
def main(ds, opt, state):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for state["epoch"] in range(10):
        for batch in loader:
            step(batch, opt)
""",
    "count": """
def main(ds, opt):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for turn in itertools.count():
        for batch in loader:
            step(batch, opt)
""",
    "unnamed": """
def main(ds, opt, epochs):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for _ in range(epochs):
        for batch in loader:
            step(batch, opt)
""",
    "steps": """
def main(ds, opt, steps):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    done = 0
    while done < steps:
        for batch in loader:
            step(batch, opt)
            done += 1
""",
    "generator": """
def forever(loader):
    while True:
        yield from loader


def main(ds, opt, steps):
    batches = forever(DataLoader(ds, sampler=DistributedSampler(ds)))
    for _ in range(steps):
        step(next(batches), opt)
""",
    "callee": """
def run(loader, opt):
    for batch in loader:
        step(batch, opt)


def main(ds, opt, epochs):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for epoch in range(epochs):
        run(loader, opt)
""",
    "method": """
class Trainer:
    def __init__(self, ds, opt):
        self.opt = opt
        self.loader = DataLoader(ds, sampler=DistributedSampler(ds))

    def train_epoch(self):
        for batch in self.loader:
            step(batch, self.opt)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.train_epoch()
""",
    "dict": """
def loaders(ds):
    return {"train": DataLoader(ds, sampler=DistributedSampler(ds)), "val": DataLoader(ds)}


def main(ds, opt, epochs):
    made = loaders(ds)
    for epoch in range(epochs):
        for batch in made["train"]:
            step(batch, opt)
""",
    "own sampler": """
class Shuffled(DistributedSampler):
    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        generator = torch.Generator()
        generator.manual_seed(self.epoch)
        return iter(torch.randperm(self.num_samples, generator=generator).tolist())


def main(ds, opt, epochs):
    loader = DataLoader(ds, sampler=Shuffled(ds))
    for epoch in range(epochs):
        for batch in loader:
            step(batch, opt)
""",
    "inner sampler": """
def main(ds, opt, epochs):
    inner = BatchSampler(DistributedSampler(ds), 4, True)
    loader = DataLoader(ds, batch_sampler=inner)
    for epoch in range(epochs):
        for batch in loader:
            step(batch, opt)
""",
}

RESTARTED = """
def main(ds, opt, steps):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    batches = iter(loader)
    for number in range(steps):
        try:
            batch = next(batches)
        except StopIteration:
            batches = iter(loader)
            batch = next(batches)
        step(batch, opt)
"""

RIGHT = {
    "iterator-that-runs-once": """
def main(ds, opt, epochs):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    batches = enumerate(loader)
    for epoch in range(epochs):
        for i, batch in batches:
            step(batch, opt)
            break
""",
    "generator-that-evaluates": """
def on_device(loader):
    for batch in loader:
        yield batch.cuda()

def main(ds, model, epochs):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for epoch in range(epochs):
        for batch in on_device(loader):
            model(batch)
""",
    "set": """
def main(ds, opt, epochs):
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            step(batch, opt)
""",
    "set through the loader": """
def main(ds, opt, epochs):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for batch in loader:
            step(batch, opt)
""",
    "attribute set": """
def main(ds, opt, epochs):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for epoch in range(epochs):
        loader.sampler.epoch = epoch
        for batch in loader:
            step(batch, opt)
""",
    "no shuffle": """
def main(ds, opt, epochs):
    loader = DataLoader(ds, sampler=DistributedSampler(ds, shuffle=False))
    for epoch in range(epochs):
        for batch in loader:
            step(batch, opt)
""",
    "evaluation": """
def main(ds, model, epochs):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for epoch in range(epochs):
        for batch in loader:
            model(batch)
""",
    "rebuilt": """
def main(ds, opt, epochs):
    for epoch in range(epochs):
        loader = DataLoader(ds, sampler=DistributedSampler(ds, seed=epoch))
        for batch in loader:
            step(batch, opt)
""",
    "over loaders": """
def main(ds, opt):
    loaders = [DataLoader(ds, sampler=DistributedSampler(ds))]
    for loader in loaders:
        for batch in loader:
            step(batch, opt)
""",
    "other loader": """
def main(ds, opt, epochs):
    DataLoader(ds, sampler=DistributedSampler(ds))
    loader = DataLoader(ds, shuffle=True)
    for epoch in range(epochs):
        for batch in loader:
            step(batch, opt)
""",
    "held by a dataclass": """
@dataclass
class Data:
    loader: DataLoader
    sampler: DistributedSampler = None

    def set_epoch(self, epoch):
        if self.sampler is not None:
            self.sampler.set_epoch(epoch)


def main(ds, opt, epochs):
    sampler = DistributedSampler(ds)
    data = {"train": Data(loader=DataLoader(ds, sampler=sampler), sampler=sampler)}
    for epoch in range(epochs):
        data["train"].set_epoch(epoch)
        for batch in data["train"].loader:
            step(batch, opt)
""",
    "other branch": """
def build(ds, distributed):
    if distributed:
        sampler = DistributedSampler(ds)
    else:
        sampler = None
    return DataLoader(ds, sampler=sampler)


def main(ds, opt, epochs):
    loader = build(ds, distributed=False)
    for epoch in range(epochs):
        for batch in loader:
            step(batch, opt)
""",
    "drawn elsewhere": """
def drawn(size):
    return random.sample(range(size), size)


class Shuffled(DistributedSampler):
    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        generator = torch.Generator()
        generator.manual_seed(self.epoch)
        return iter(drawn(self.num_samples))


def main(ds, opt, epochs):
    loader = DataLoader(ds, sampler=Shuffled(ds))
    for epoch in range(epochs):
        for batch in loader:
            step(batch, opt)
""",
    "unknown setter": """
def main(ds, opt, epochs, hook):
    loader = DataLoader(ds, sampler=DistributedSampler(ds))
    for epoch in range(epochs):
        hook(loader).set_epoch(epoch)
        for batch in loader:
            step(batch, opt)
""",
}


def codes(folder: Path, body: str, select: str = "SMP102") -> list[tuple[str, int]]:
    path = folder / "train.py"
    path.write_text(HEAD + body.lstrip("\n"))
    report = check([str(path)], Options(select=(select,)))
    assert not report.errors
    return [(finding.code, finding.start.row) for finding in report.findings]


@pytest.mark.parametrize("name", NEVER_SET)
def test_epoch_loop_is_found_and_fixed(tmp_path: Path, name: str) -> None:
    assert [code for code, _ in codes(tmp_path, NEVER_SET[name])] == ["SMP102"]
    path = tmp_path / "train.py"
    report = fix([str(path)], Options(select=("SMP1",)), unsafe=True)
    assert [finding.code for finding in report.fixed] == ["SMP102"]
    assert not report.report.findings
    text = path.read_text()
    compile(text, str(path), "exec")
    assert text.count(".set_epoch(") == 1


@pytest.mark.parametrize("name", RIGHT)
def test_right_loop_is_left_alone(tmp_path: Path, name: str) -> None:
    assert codes(tmp_path, RIGHT[name]) == []


def test_restart_is_found_where_it_happens(tmp_path: Path) -> None:
    (finding,) = codes(tmp_path, RESTARTED)
    row = (HEAD + RESTARTED.lstrip("\n")).splitlines().index("            batches = iter(loader)")
    assert finding == ("SMP102", row + 1)


def test_epoch_counter_is_named_when_it_was_not(tmp_path: Path) -> None:
    codes(tmp_path, NEVER_SET["unnamed"])
    fix([str(tmp_path / "train.py")], Options(select=("SMP102",)))
    text = (tmp_path / "train.py").read_text()
    assert "    for epoch in range(epochs):\n        loader.sampler.set_epoch(epoch)\n" in text


def test_no_counter_where_a_continue_would_skip_it(tmp_path: Path) -> None:
    body = NEVER_SET["steps"].replace(
        "        for batch", "        if ds is None:\n            continue\n        for batch"
    )
    path = tmp_path / "train.py"
    assert codes(tmp_path, body)
    before = path.read_text()
    assert not fix([str(path)], Options(select=("SMP102",)), unsafe=True).fixed
    assert path.read_text() == before


COLLECTED = """
def set_epoch_everywhere(loader, epoch):
    found = {}
    if (sampler := getattr(loader, "sampler", None)) is not None:
        found[id(sampler)] = sampler
    if (batches := getattr(loader, "batch_sampler", None)) is not None and (
        sampler := getattr(batches, "sampler", None)
    ) is not None:
        found[id(sampler)] = sampler
    for each in found.values():
        setter = getattr(each, "set_epoch", None)
        if callable(setter):
            setter(epoch)
"""


def library(folder: Path, body: str) -> list[str]:
    package = folder / "lib"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "loops.py").write_text(HEAD + body.lstrip("\n"))
    return [f.code for f in check([str(folder)], Options(select=("SMP101",))).findings]


def test_library_that_asks_all_but_the_batch_sampler(tmp_path: Path) -> None:
    assert library(tmp_path, COLLECTED) == ["SMP101"]


def test_library_that_asks_the_batch_sampler_too(tmp_path: Path) -> None:
    asked = "        found[id(batches)] = batches\n    for each"
    assert library(tmp_path, COLLECTED.replace("    for each", asked)) == []


def test_unguarded_call_is_not_silent(tmp_path: Path) -> None:
    body = "def turn(loader, epoch):\n    loader.sampler.set_epoch(epoch)\n"
    assert library(tmp_path, body) == []


WRAPPED = """
class Wrapped:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        return iter(self.loader)

    @property
    def {name}(self):
        return self.loader.batch_sampler.sampler


def build(ds, prefetch):
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, batch_sampler=BatchSampler(sampler, 4, True))
    if prefetch:
        loader = Wrapped(loader)
    return loader


def main(args, ds, opt):
    loader = build(ds, args.prefetch)
    for epoch in range(args.epochs):
        loader.sampler.set_epoch(epoch)
        for batch in loader:
            opt.step()
"""


PREFETCHED = """
class Prefetcher:
    def __init__(self, loader):
        self.loader = loader
        self.passes = 0

    def __iter__(self):{first}
        for batch in self.loader:
            yield batch.cuda()


def main(ds, opt, epochs):
    loader = Prefetcher(DataLoader(ds, sampler=DistributedSampler(ds{more})))
    for epoch in range(epochs):
        for batch in loader:
            step(batch, opt)
"""
COUNTED = """
        self.loader.sampler.set_epoch(self.passes)
        self.passes += 1"""


@pytest.mark.parametrize(
    ("first", "more", "expected"),
    [("", "", ["SMP102"]), ("", ", shuffle=False", []), (COUNTED, "", [])],
)
def test_prefetcher_made_before_the_loop(
    tmp_path: Path, first: str, more: str, expected: list[str]
) -> None:
    found = codes(tmp_path, PREFETCHED.format(first=first, more=more))
    assert [code for code, _ in found] == expected


@pytest.mark.parametrize(("name", "expected"), [("sampler", []), ("inner", ["SMP101"])])
def test_wrapper_says_what_its_sampler_is(tmp_path: Path, name: str, expected: list[str]) -> None:
    found = codes(tmp_path, WRAPPED.format(name=name), "SMP101")
    assert [code for code, _ in found] == expected
