"""What the fixes of SMP201, SMP202 and SMP305 write where a seed or a length has to come in."""

from __future__ import annotations

import pytest

from cases import read_tree, write_tree
from sampler_lint import engine
from sampler_lint.engine import Options
from test_codemods import TORCH, fixed_by

START = """
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    {}


main()
"""


def test_a_generator_of_the_factory_gets_the_seed_too(tmp_path):
    factory = """\
def make(data{parameter}):
    generator = torch.Generator()
    generator.manual_seed(100{seed} + 7)
    other = torch.Generator()
    other.manual_seed(3)
    sampler = DistributedSampler(data{argument})
    return DataLoader(data, sampler=sampler, generator=generator)


def train(loader):
    for batch in loader:
        batch.backward()

"""
    before = factory.format(parameter="", seed="", argument="")
    after = factory.format(parameter=", seed=0", seed=" + seed", argument=", seed=seed")
    before = before.replace("100 + 7", "100")
    after = after.replace("100 + seed + 7", "100 + seed")
    wanted = after + START.format("train(make([1], seed=args.seed))")
    assert fixed_by(tmp_path / "p", "SMP201", before + START.format("train(make([1]))")) == wanted


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "DistributedSampler(\n        data, shuffle=True\n    )",
            "DistributedSampler(\n        data, shuffle=True, seed=args.seed\n    )",
        ),
        (
            "DistributedSampler(data,\n                   shuffle=True)",
            "DistributedSampler(data,\n                   shuffle=True,\n"
            "                   seed=args.seed)",
        ),
        (
            "DistributedSampler(data, shuffle=(True))",
            "DistributedSampler(data, shuffle=(True), seed=args.seed)",
        ),
        (
            "DistributedSampler(\n        data,\n        shuffle=(True)  # train, not test\n    )",
            "DistributedSampler(\n        data,\n        shuffle=(True),  # train, not test\n"
            "        seed=args.seed\n    )",
        ),
        (
            "DistributedSampler(\n        data,\n        shuffle=True  # train, not test\n"
            "        ,\n    )",
            "DistributedSampler(\n        data,\n        shuffle=True  # train, not test\n"
            "        ,\n        seed=args.seed,\n    )",
        ),
        ("DistributedSampler(data, **more)", "DistributedSampler(data, seed=args.seed, **more)"),
        (
            "DistributedSampler(data_that_has_a_rather_long_name_so_that_it_takes_one_whole_line)",
            "DistributedSampler(\n"
            "        data_that_has_a_rather_long_name_so_that_it_takes_one_whole_line, "
            "seed=args.seed\n    )",
        ),
    ],
)
def test_a_new_argument_stands_as_the_others_do(tmp_path, before, after):
    body = """\
def main(args, data, data_that_has_a_rather_long_name_so_that_it_takes_one_whole_line):
    torch.manual_seed(args.seed)
    more = dict(shuffle=True)
    sampler = {}
    for batch in DataLoader(data, sampler=sampler):
        batch.backward()


main(*read())
"""
    assert fixed_by(tmp_path / "p", "SMP201", body.format(before)) == body.format(after)


DRAW = """\
import numpy as np
import random
from sklearn.model_selection import train_test_split
from torch.utils.data import Dataset, random_split


class Data(Dataset):
    def __init__(self, seed):
        self.order = list(range(100))
        {shuffle}

    def __getitem__(self, index):
        return self.order[index]


def main(args, rank):
    {seeding}(args.seed + rank)
    data = Data(args.seed)
    {split}
    return DataLoader(train, sampler=DistributedSampler(train, seed=args.seed))


main(*read())
"""
PLAIN = "train, rest = data, None"


@pytest.mark.parametrize(
    ("seeding", "before", "after"),
    [
        (
            "torch.manual_seed",
            {"split": "train, rest = random_split(data, [80, 20])"},
            {
                "split": "train, rest = random_split(\n        data, [80, 20], "
                "generator=torch.Generator().manual_seed(args.seed)\n    )"
            },
        ),
        (
            "np.random.seed",
            {"split": "train, rest = train_test_split(data)"},
            {"split": "train, rest = train_test_split(data, random_state=args.seed)"},
        ),
        (
            "np.random.seed",
            {"shuffle": "np.random.shuffle(self.order)"},
            {"shuffle": "np.random.RandomState(seed).shuffle(self.order)"},
        ),
        (
            "random.seed",
            {"shuffle": "random.shuffle(self.order)"},
            {"shuffle": "random.Random(seed).shuffle(self.order)"},
        ),
    ],
)
def test_what_divides_the_data_is_drawn_alike(tmp_path, seeding, before, after):
    rest = {"seeding": seeding, "shuffle": "pass", "split": PLAIN}
    wanted = DRAW.format(**rest | after)
    assert fixed_by(tmp_path / "p", "SMP202", DRAW.format(**rest | before)) == wanted


def test_a_draw_stays_where_no_seed_can_be_named(tmp_path):
    rest = {"seeding": "random.seed", "split": PLAIN, "shuffle": "random.shuffle(self.order)"}
    source = DRAW.format(**rest).replace("seed):", "path):")
    assert fixed_by(tmp_path / "p", "SMP202", source) == source


GROUPED = """\
import numpy as np


class Grouped(BatchSampler):
    def __init__(self, sampler, group_ids, batch_size):
        self.sampler = sampler
        self.groups = np.asarray(group_ids)
        self.batch_size = batch_size
        self.waiting = {group: [] for group in np.unique(self.groups).tolist()}

    def __iter__(self):
        for index in self.sampler:
            batch = self.waiting[self.groups[index]]
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch[:]
                del batch[:]
"""
PLAINLY = """\
class Plain(BatchSampler):
    def __init__(self, sampler, batch_size):
        self.sampler = sampler
        self.batch_size = batch_size

    def __iter__(self):
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
"""
KEEP_LAST = "        if batch:\n            yield batch\n"


@pytest.mark.parametrize(("rest", "drops"), [("", True), (KEEP_LAST, False)])
def test_the_base_is_told_whether_the_last_batch_is_dropped(tmp_path, rest, drops):
    line = f"        super().__init__(sampler=sampler, batch_size=batch_size, drop_last={drops})\n"
    wanted = PLAINLY.replace("batch_size):\n", f"batch_size):\n{line}", 1) + rest
    assert fixed_by(tmp_path / "p", "SMP305", PLAINLY + rest) == wanted


def test_batches_that_nobody_can_count_have_no_length(tmp_path):
    wanted = GROUPED + (
        "\n    def __len__(self):\n"
        '        raise TypeError("the number of batches is not known before they are made")\n'
    )
    assert fixed_by(tmp_path / "p", "SMP305", GROUPED) == wanted
    assert fixed_by(tmp_path / "q", "ALL", GROUPED) == wanted


GUARD = """\
def set_epochs(loader: DataLoader, epoch):
    if isinstance(loader.sampler, {kind}):
        loader.sampler.set_epoch(epoch){more}
"""


@pytest.mark.parametrize(
    ("kind", "more", "asks"),
    [
        ("torch.utils.data.DistributedSampler", "", "hasattr(sampler, "),
        ("DistributedSampler", "", "isinstance(sampler, DistributedSampler)"),
        (
            "torch.utils.data.DistributedSampler",
            "\n        print(loader.sampler.num_replicas)",
            "isinstance(sampler, torch.utils.data.DistributedSampler)",
        ),
    ],
)
def test_the_helper_asks_for_what_is_used(tmp_path, kind, more, asks):
    library = (TORCH + GUARD.format(kind=kind, more=more)).encode()
    files = {"pyproject.toml": b"", "kit/__init__.py": b"", "kit/loops.py": library}
    tree = write_tree(tmp_path / "p", files)
    engine.fix([str(tree)], Options(select=("SMP101",)), unsafe=True)
    assert asks in read_tree(tree)["kit/loops.py"].decode()
