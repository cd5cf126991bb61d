"""What the rules on sampler classes say about small trees: a line ending in ``# !`` is wrong."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from sampler_lint import engine
from sampler_lint.engine import Options

IMPORTS = """\
import torch
import torch.distributed as dist
from torch.utils.data import (
    BatchSampler, DataLoader, DistributedSampler, IterableDataset, Sampler,
)
"""


def check(
    folder: Path, source: str, code: str, *select: str, imports: str = "", likely: bool = False
) -> tuple[set[int], set[int]]:
    """The lines of the tree's one file that ``code`` reports, and those that it should."""
    (folder / "pyproject.toml").touch()
    text = IMPORTS + imports + textwrap.dedent(source)
    (folder / "main.py").write_text(text, encoding="utf-8")
    wanted = {row for row, line in enumerate(text.splitlines(), 1) if line.endswith("# !")}
    report = engine.check([str(folder)], Options(select=select or None, likely=likely))
    assert not report.errors
    return {one.start.row for one in report.findings if one.code == code}, wanted


# what rests on an assumption

NO_SIZE = """
class Buckets(Sampler):{mark}
    def __init__(self, data, size):
        self.data, self.size = data, size

    def __iter__(self):
        for start in range(0, len(self.data), self.size):
            yield list(range(start, start + self.size))

    def __len__(self):
        return len(self.data) // self.size
"""
USE = "loader = DataLoader(data, batch_sampler=Buckets(data, 4))\n"
SHARDS_BATCHES = """
class Buckets(DistributedSampler):
    def __init__(self, dataset, batch_size, edges):{mark}
        super().__init__(dataset)
        self.batch_size, self.edges = batch_size, edges

    def __iter__(self):
        yield from [list(range(self.rank, len(self.dataset), self.num_replicas))]

    def __len__(self):
        return 1


loader = DataLoader(data, batch_sampler=Buckets(data, 4, edges))
"""


@pytest.mark.parametrize("likely", [False, True])
@pytest.mark.parametrize("select", [(), ("SMP",), ("SMP3",), ("ALL",), ("SMP301",)], ids=str)
def test_assumptions_are_made_when_asked_for(
    tmp_path: Path, select: tuple[str, ...], likely: bool
) -> None:
    text = NO_SIZE.format(mark="  # !" if likely else "")
    found, wanted = check(tmp_path, text, "SMP301", *select, likely=likely)
    assert found == wanted
    assert bool(found) is likely


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("SMP301", NO_SIZE + USE),
        ("SMP301", NO_SIZE.replace("class", "@SAMPLERS.register()\nclass")),
        ("SMP302", SHARDS_BATCHES),
    ],
    ids=["used by the tree's own loop", "handed on by a registry", "rebuilt by nobody"],
)
def test_nothing_is_assumed_of_what_the_tree_itself_uses(
    tmp_path: Path, code: str, text: str
) -> None:
    assert check(tmp_path, text.format(mark=""), code, code, likely=True)[0] == set()


def test_known_framework_needs_no_assumption(tmp_path: Path) -> None:
    text = NO_SIZE.format(mark="  # !") + USE + "\nTrainer(devices=2).fit(model, loader)\n"
    found, wanted = check(tmp_path, text, "SMP301", imports="from lightning import Trainer\n")
    assert found == wanted


# SMP306: what Accelerate deals out

DYNAMIC = """
class Dynamic(Sampler):{mark}
    def __init__(self, data, size, last=False):
        self.data, self.size = data, size
        {also}

    def __iter__(self):
        for start in range(0, len(self.data), self.size):
            yield list(range(start, start + self.size))

    def __len__(self):
        return len(self.data) // self.size


accelerator = Accelerator({settings})
{after}
loader = accelerator.prepare(DataLoader(data, batch_sampler=Dynamic(data, 4)))
"""


@pytest.mark.parametrize(
    ("also", "settings", "after", "speaks"),
    [
        ("", "", "accelerator.even_batches = False", True),
        ("", "even_batches=False", "", True),
        ("", "even_batches=settings.even", "", False),
        ("", "even_batches=True", "", False),
        ("self.drop_last = True", "even_batches=False", "", False),
        ("", "even_batches=False", "accelerator.even_batches = True", False),
        ("self.rank = dist.get_rank()", "even_batches=False", "", False),
    ],
)
def test_last_round_of_batches(
    tmp_path: Path, also: str, settings: str, after: str, speaks: bool
) -> None:
    text = DYNAMIC.format(
        also=also or "pass", settings=settings, after=after, mark="  # !" if speaks else ""
    )
    imports = "from accelerate import Accelerator\n"
    found, wanted = check(tmp_path, text, "SMP306", imports=imports)
    assert found == wanted
    if speaks:  # one finding for one bug
        assert check(tmp_path, text, "SMP301", imports=imports, likely=True)[0] == set()


# SMP306: limits, shards inside, contexts that wait

SHARED = """
class Mine(Sampler):
    def __init__(self, data, size, max_length=None, {option}):
        self.data, self.size, self.max_length = data, size, max_length
        self.{name} = {name}
        self.total = len(data) // dist.get_world_size() * dist.get_world_size()

    def __iter__(self):
        mine = list(range(self.total))[dist.get_rank() :: dist.get_world_size()]{mark}
        if self.{name}{more}:
            mine = [i for i in mine if self.data.length(i) <= {limit}]
        return iter(mine)

    def __len__(self):
        return self.total // dist.get_world_size()


for batch in DataLoader(data, sampler=Mine(data, 4, 9)):
    {around}
"""


@pytest.mark.parametrize(
    ("option", "around", "speaks"),
    [
        ("filter_long=False", "step(batch)", True),
        ("pad_last=False", "step(batch)", False),  # says itself that ranks differ
        ("allow_uneven=False", "step(batch)", False),
        ("filter_long=False", "with model.join(): step(batch)", False),
    ],
)
def test_optional_arguments(tmp_path: Path, option: str, around: str, speaks: bool) -> None:
    name = option.partition("=")[0]
    text = SHARED.format(
        option=option,
        name=name,
        more="",
        limit=3,
        around=around,
        mark="  # !" if speaks else "",
    )
    found, wanted = check(tmp_path, text, "SMP306")
    assert found == wanted


PACKS = """
class Packs(BatchSampler):{mark}
    def __init__(self, sampler, lengths, max_tokens):
        super().__init__(sampler, 1, False)
        self.lengths, self.max_tokens = lengths, max_tokens

    def __iter__(self):
        batch = []
        for index in self.sampler:
            if batch and sum(self.lengths[i] for i in batch) > self.max_tokens:
                yield batch
                batch = []
            batch.append(index)

    def __len__(self):
        return len(self.lengths)


batches = Packs({inner}(data), lengths, 40)
"""


@pytest.mark.parametrize(
    ("inner", "speaks"),
    [("DistributedSampler", True), ("torch.utils.data.RandomSampler", False), ("made", False)],
)
def test_batches_of_a_share(tmp_path: Path, inner: str, speaks: bool) -> None:
    text = PACKS.format(inner=inner, mark="  # !" if speaks else "")
    found, wanted = check(tmp_path, text, "SMP306")
    assert found == wanted


# SMP405: counters

COUNTER = """
class Records(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        rank, world_size = dist.get_rank(), dist.get_world_size()
        number = 0
        for record in self.records:
{body}
"""


@pytest.mark.parametrize(
    "body",
    [
        """
        if number % world_size != rank:  # !
            continue
        yield record
        number += 1
        """,
        """
        if number % world_size == rank:  # !
            yield record
            number += 1
        """,
        """
        if not (number % info.num_workers) == info.id:
            continue
        yield record
        number += 1
        """,
        """
        if not number % info.num_workers == info.worker_id:  # !
            continue
        number += 1
        yield record
        """,
        """
        number += 1
        if number % world_size != rank:
            continue
        yield record
        """,
        """
        if number % world_size == rank:
            yield record
        number += 1
        """,
        """
        if number % world_size != rank:
            number += 1
            continue
        number += 1
        yield record
        """,
        """
        if number % world_size == rank:
            yield record
            number += 1
        else:
            number += 1
        """,
        """
        number = record.number
        if number % world_size != rank:
            continue
        number += 1
        yield record
        """,
        """
        if number % 2 != 0:
            continue
        number += 1
        yield record
        """,
    ],
)
def test_counters_of_own_items(tmp_path: Path, body: str) -> None:
    text = COUNTER.format(body=textwrap.indent(textwrap.dedent(body), " " * 12))
    found, wanted = check(tmp_path, text, "SMP405")
    assert found == wanted


# SMP401: no epoch to set

EPOCHS = """
def build(args, data):
    sampler = None
    if args.distributed:
        sampler = DistributedSampler(data)
    return DataLoader(data, sampler=sampler, shuffle=sampler is None)


def train(args, loader):
    for epoch in range(args.epochs):
{body}
        for batch in loader:
            step(batch)


def main(args):
{call}


main(parse())
"""
RUN = "train(args, build(args, load()))"


@pytest.mark.parametrize(
    ("body", "call"),
    [
        ("loader.sampler.set_epoch(epoch)  # !", RUN),
        ("if args.distributed:\n    loader.sampler.set_epoch(epoch)", RUN),
        ("try:\n    loader.sampler.set_epoch(epoch)\nexcept AttributeError:\n    pass", RUN),
        ("loader.sampler.set_epoch(epoch)", f"if args.distributed:\n    {RUN}"),
        (
            "loader.sampler.set_epoch(epoch)  # !",
            f"if args.distributed:\n    spawn(run)\nelse:\n    {RUN}",
        ),
        ("loader.sampler.set_epoch(epoch)", f"assert args.distributed\n{RUN}"),
        ("loader.sampler.set_epoch(epoch)", "train(args, DataLoader(data, sampler=made()))"),
    ],
)
def test_sampler_without_epoch(tmp_path: Path, body: str, call: str) -> None:
    text = EPOCHS.format(body=textwrap.indent(body, " " * 8), call=textwrap.indent(call, " " * 4))
    found, wanted = check(tmp_path, text, "SMP401")
    assert found == wanted


# SMP404: a seed that is only kept

SHUFFLED = """
import random
import numpy as np


class Groups(DistributedSampler):
    def __init__(self, dataset, num_replicas=None, rank=None, seed=0):
        super().__init__(dataset, num_replicas, rank)
        self.own = list(range(rank, len(dataset), num_replicas))
        {keep}

    def __iter__(self):
        own = list(self.own)
        {draw}
        return iter(own)
"""


@pytest.mark.parametrize(
    ("keep", "draw"),
    [
        ("self.seed = seed  # !", "random.shuffle(own)"),
        ("self.seed = int(seed)", "random.shuffle(own)"),
        ("self.seed = seed  # !", "np.random.shuffle(own)"),
        ("self.seed = seed  # !", "own = [own[i] for i in torch.randperm(len(own))]"),
        ("self.seed = seed", "own = [own[i] for i in torch.randperm(3, generator=self.g)]"),
        ("self.seed = seed", "random.Random(self.seed).shuffle(own)"),
        ("self.seed = seed; random.seed(seed)", "random.shuffle(own)"),
        ("self.seed = seed", "own = own[::-1]"),
        ("self.seed = seed", "own = list(super().__iter__()); random.shuffle(own)"),
    ],
)
def test_seed_that_is_only_kept(tmp_path: Path, keep: str, draw: str) -> None:
    found, wanted = check(tmp_path, SHUFFLED.format(keep=keep, draw=draw), "SMP404")
    assert found == wanted


# SMP405: loops that never end

LOOP = """
import random


class Shares(Sampler):
    def __init__(self, batch_sampler, num_replicas, rank, even=True):
        self.batch_sampler, self.even = batch_sampler, even
        self.num_replicas, self.rank = num_replicas, rank

    def __iter__(self):
        batches = list(self.batch_sampler)
        missing = -len(batches) % self.num_replicas
{body}
        yield from batches[self.rank :: self.num_replicas]
"""


@pytest.mark.parametrize(
    "body",
    [
        """
        while missing > 0:  # !
            for batch in list(batches):
                if missing and len(batch) > 1:
                    batches += [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
                    batches.remove(batch)
                    missing -= 1
        """,
        """
        while missing > 0:
            batches.append(batches[-missing])
            missing -= 1
        """,
        """
        while len(batches) % self.num_replicas:  # !
            batches += batches[len(batches) :]
        """,
        """
        while len(batches) % self.num_replicas and not self.even:  # !
            if len(batches) > 30:
                batches.pop()
        """,
        """
        while len(batches) % self.num_replicas:
            if random.randint(0, 9) == 0:
                batches.append(batches[0])
        """,
        """
        while len(batches) % self.num_replicas and not self.even:
            yield batches[0]
        """,
    ],
)
def test_loops_that_never_end(tmp_path: Path, body: str) -> None:
    text = LOOP.format(body=textwrap.indent(textwrap.dedent(body), " " * 8))
    found, wanted = check(tmp_path, text, "SMP405")
    assert found == wanted


# SMP405: a length from a checkpoint

RESUMED = """
class Elastic(DistributedSampler):
    def __iter__(self):
        indices = list(range(len(self.dataset)))
        indices += indices[: self.total_size - len(indices)]
        indices = indices[self.rank + self.done : self.total_size : self.num_replicas]
        assert len(indices) == self.num_samples{here}
        return iter(indices)

    def __init__(self, dataset, num_replicas, rank):
        super().__init__(dataset, num_replicas, rank)
        self.done = 0

    def state_dict(self, step, batch_size):
        return dict(done=step * batch_size * self.num_replicas)

    def load_state_dict(self, state):
        self.done = state["done"]
{code}
"""


LEFT = "self.num_samples = (self.total_size - self.done) // self.num_replicas"
WRAP = "self.done %= self.total_size"
FLOOR = "self.num_samples = (len(self.dataset) - self.done) // self.num_replicas"


@pytest.mark.parametrize(
    ("code", "here"),
    [
        (LEFT, ""),
        (FLOOR, "  # !"),
        (f"{WRAP}\n{LEFT}", ""),
        (f"{LEFT}  # !\n{WRAP}", ""),
    ],
)
def test_length_from_a_checkpoint(tmp_path: Path, code: str, here: str) -> None:
    text = RESUMED.format(here=here, code=textwrap.indent(code, " " * 8))
    found, wanted = check(tmp_path, text, "SMP405")
    assert found == wanted


# SMP304: nothing left

MIXED = """
class Short(BatchSampler):
    def __init__(self, dataset, batch_size, drop_last):
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last

    def __iter__(self):
        for start in range(0, len(self.dataset) - {less}, self.batch_size):
            yield list(range(start, min(start + self.batch_size, len(self.dataset))))

    def __len__(self):
        return -(-len(self.dataset) // self.batch_size){mark}


class Mixed(BatchSampler):
    def __init__(self, dataset, batch_samplers):
        self.dataset, self.batch_samplers = dataset, batch_samplers

    def __iter__(self):
        inner = [iter(sampler) for sampler in self.batch_samplers]
        turns = [i for i, s in enumerate(self.batch_samplers) for _ in range(len(s))]
        for turn in turns:
{body}

    def __len__(self):
        return sum(len(sampler) for sampler in self.batch_samplers)


parts = [Short(part, 4, False) for part in data.datasets]
loader = DataLoader(data, batch_sampler=Mixed(data, parts))
"""


@pytest.mark.parametrize(
    ("less", "body"),
    [
        (0, "yield next(inner[turn])"),
        (2, "yield next(inner[turn])  # !"),
        (2, "yield list(next(inner[turn]))  # !"),
        (2, "yield next(inner[turn], [])"),
        (2, "try:\n    yield next(inner[turn])\nexcept StopIteration:\n    continue"),
    ],
)
def test_next_with_nothing_left(tmp_path: Path, less: int, body: str) -> None:
    text = MIXED.format(less=less, body=textwrap.indent(body, " " * 12), mark="  # !" * bool(less))
    found, wanted = check(tmp_path, text, "SMP304")
    assert found == wanted


# SMP401: read from outside

OUTSIDE = """
class Own(Sampler):
    def __init__(self, data):
        self.data = data

    def __iter__(self):
        return iter(range(len(self.data)))

    def set_epoch(self, epoch):
        {setter}


def main(data, sharded):
    sampler = {sampler}
    loader = DataLoader(data, sampler=sampler)
    for epoch in range(3):
        {line}
        for batch in loader:
            pass
"""


@pytest.mark.parametrize(
    ("sampler", "line", "setter"),
    [
        ("Own(data)", "sampler.set_epochs(epoch)  # !", "self.epoch = epoch"),
        ("Own(data)", "print(loader.sampler.data_source)  # !", "self.epoch = epoch"),
        ("Own(data)", "print(loader.sampler.data)", "self.epoch = epoch"),
        ("Own(data)", "sampler.extra = 1; print(sampler.extra)", "self.epoch = epoch"),
        ("Own(data)", "if hasattr(sampler, 'size'): print(sampler.size)", "self.epoch = epoch"),
        ("Own(data)", "print(sampler.size if sharded(sampler) else 0)", "self.epoch = epoch"),
        ("DistributedSampler(data)", "print(sampler.world_size)  # !", "self.epoch = epoch"),
        ("DistributedSampler(data)", "print(sampler.total_size)", "self.epoch = epoch"),
        (
            "DistributedSampler(data) if sharded else Own(data)",
            "print(sampler.rank)",
            "self.epoch = epoch",
        ),
        ("Own(data)", "sampler.set_epoch(epoch)", "self.epoch += epoch  # !"),
    ],
)
def test_attributes_from_outside(tmp_path: Path, sampler: str, line: str, setter: str) -> None:
    text = OUTSIDE.format(sampler=sampler, line=line, setter=setter)
    found, wanted = check(tmp_path, text, "SMP401")
    assert found == wanted


# SMP402: who gets one more

PARTS = """
class Parts(Sampler):
    def __init__(self, data, world_size, rank):
        self.data, self.world_size, self.rank = data, world_size, rank
        self.share = {share}
        self.rest = {rest}

    def __iter__(self):
        begin = self.rank * self.share + min(self.rank, self.rest)
        return iter(range(begin, begin + self.share + (self.rank < self.rest)))


def sizes(total, num_shards):
    size = total // num_shards
    out = [size] * num_shards
    for i in range({left}):
        out[i] += 1
    return out
"""


@pytest.mark.parametrize(
    ("share", "rest", "left"),
    [
        ("len(data) // world_size", "self.share % world_size  # !", "total % num_shards"),
        ("len(data) // world_size", "len(data) % world_size", "total % num_shards"),
        ("int(math.floor(len(data) / world_size))", "self.share % world_size  # !", "3"),
    ],
)
def test_remainders_kept_for_later(tmp_path: Path, share: str, rest: str, left: str) -> None:
    text = PARTS.format(share=share, rest=rest, left=left)
    found, wanted = check(tmp_path, text, "SMP402")
    assert found == wanted


def test_remainder_as_a_range(tmp_path: Path) -> None:
    text = PARTS.format(share="1", rest="0", left="size % num_shards").replace(
        "range(size % num_shards):", "range(size % num_shards):  # !"
    )
    found, wanted = check(tmp_path, text, "SMP402")
    assert found == wanted


# SMP403: what is passed


@pytest.mark.parametrize(
    "source",
    [
        "kw = dict(batch_size=4, num_worker=2)  # !\nDataLoader(data, **kw)",
        "kw = {'num_worker': 2}  # !\nDataLoader(data, **kw)",
        "kw = {'num_worker': 2}\nn = kw.pop('num_worker')\nDataLoader(data, **kw)",
        "kw = {'mine': 2}\nDataLoader(data, **kw)",
        "DistributedSampler(data, dist.get_rank(), dist.get_world_size())  # !",
        "DistributedSampler(data, dist.get_world_size(), dist.get_rank())",
        "BatchSampler(data, 4)  # !",
        "BatchSampler(data, 4, drop_last=False)",
        "BatchSampler(*data)",
        "class Own(DataLoader):\n    def __init__(self, data, **kw):\n"
        "        super().__init__(data, num_worker=2, **kw)  # !",
    ],
)
def test_arguments_of_constructors(tmp_path: Path, source: str) -> None:
    found, wanted = check(tmp_path, source, "SMP403")
    assert found == wanted


# SMP404: setters that set nothing

SETTER = """
class Own(Sampler):
    def __init__(self, data):
        self.data, self.epoch = data, 0

    def __iter__(self):
        g = torch.Generator()
        g.manual_seed(self.epoch)
        return iter(torch.randperm(len(self.data), generator=g).tolist())

    def set_epoch(self, epoch):
        {line}
"""


@pytest.mark.parametrize(
    "line",
    [
        "self.epoch == epoch  # !",
        "self.epoch: epoch  # !",
        "self.epoch = self.epoch  # !",
        "self.epoch = epoch",
        "self.epoch: int = epoch",
        "self.epoch = self.epoch if epoch is None else epoch",
        "assert self.epoch == epoch",
        "self.epoch = epoch; self.epoch == epoch",
    ],
)
def test_setters_that_set_nothing(tmp_path: Path, line: str) -> None:
    found, wanted = check(tmp_path, SETTER.format(line=line), "SMP404")
    assert found == wanted


@pytest.mark.parametrize(
    ("count", "mark"),
    [
        ("len(dataset) // num_replicas", "  # !"),
        ("-(-len(dataset) // num_replicas)", ""),
        ("(len(dataset) + num_replicas - 1) // num_replicas", ""),
    ],
)
def test_counts_before_the_base_works_out_its_own(tmp_path: Path, count: str, mark: str) -> None:
    source = f"""
    class Own(DistributedSampler):
        def __init__(self, dataset, num_replicas=None, rank=None):
            self.num_samples = {count}
            super().__init__(dataset, num_replicas, rank){mark}
    """
    found, wanted = check(tmp_path, source, "SMP404")
    assert found == wanted


# SMP304: floats


@pytest.mark.parametrize(
    "value",
    [
        "len(self.data) / self.size  # !",
        "np.ceil(len(self.data) / self.size)  # !",
        "int(np.ceil(len(self.data) / self.size))",
        "-(-len(self.data) // self.size)",
        "math.ceil(len(self.data) / self.size)",
    ],
)
def test_lengths_that_are_floats(tmp_path: Path, value: str) -> None:
    source = f"""
    class Own(Sampler):
        def __init__(self, data, batch_size):
            self.data, self.size = data, batch_size

        def __iter__(self):
            for start in range(0, len(self.data), self.size):
                yield list(range(start, min(start + self.size, len(self.data))))

        def __len__(self):
            return {value}
    """
    found, wanted = check(tmp_path, source, "SMP304", imports="import math\nimport numpy as np\n")
    assert found == wanted


# SMP405: spellings

SPELLED = """
class Own(Sampler):
    def __init__(self, data, bs):
        self.data, self.bs = data, bs
        self.rest = len(data) % bs
        self.buckets = [[i] for i in data]

    def tidy(self):
        count = len(self.buckets)
        for i in range(count - 1, {stop}, -1):{mark}
            if not self.buckets[i]:
                del self.buckets[i]

    def __iter__(self):
        batch = []
        for index in {items}:
            batch.append(index)
            if {full}:
                yield batch
                batch = []
"""


@pytest.mark.parametrize(
    ("stop", "items", "full"),
    [
        ("-1", "range(9)", "len(batch) == self.bs"),
        ("0", "range(9)", "len(batch) == self.bs"),
        ("-1", "range(9)", "batch == self.bs"),
        ("-1", "range(9)", "batch >= self.bs"),
        ("-1", "list(range(9))[: -self.rest]", "len(batch) == self.bs"),
        ("-1", "list(range(9))[: 9 - self.rest]", "len(batch) == self.bs"),
        ("-1", "list(range(9))[: -self.rest or None]", "len(batch) == self.bs"),
    ],
)
def test_spellings_of_wrong_arithmetic(tmp_path: Path, stop: str, items: str, full: str) -> None:
    mark = "  # !" * (stop == "0")
    text = SPELLED.format(stop=stop, mark=mark, items=items, full=full)
    text = text.replace("[: -self.rest]:", "[: -self.rest]:  # !")
    text = text.replace("if batch == self.bs:", "if batch == self.bs:  # !")
    text = text.replace("if batch >= self.bs:", "if batch >= self.bs:  # !")
    found, wanted = check(tmp_path, text, "SMP405")
    assert found == wanted


def test_a_share_is_not_reported_twice(tmp_path: Path) -> None:
    source = """
    class Own(Sampler):
        def __init__(self, dataset, num_replicas, rank):
            share = len(dataset) // num_replicas
            end = len(dataset) if rank == num_replicas - 1 else (rank + 1) * share
            self.own = list(range(rank * share, end))

        def __iter__(self):
            return iter(self.own)
    """
    assert check(tmp_path, source, "SMP405")[0] == set()
    assert check(tmp_path, source, "SMP306")[0]


@pytest.mark.parametrize(
    ("name", "speaks"),
    [("Whole", True), ("Unpadded", False), ("NoPadding", False), ("Sampler_wo_padding", False)],
)
def test_a_name_says_that_ranks_may_differ(tmp_path: Path, name: str, speaks: bool) -> None:
    source = f"""
    class {name}(DistributedSampler):
        def __iter__(self):
            return iter(range(self.rank, len(self.dataset), self.num_replicas))
    """
    assert bool(check(tmp_path, source, "SMP306")[0]) == speaks
