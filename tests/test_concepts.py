"""All rules mean the same by a rank, a draw, a seeding and a step of training, however spelled.

Each table is one concept, with its spellings; each spelling is put into a program for every rule
that asks for the concept. A new spelling belongs here, so that no rule alone learns it.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import sampler_lint
from cases import check, write_tree

HEAD = """\
import os
import random

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, Sampler, random_split
"""


def codes(tmp_path: Path, *parts: str) -> set[str]:
    """What is found in a program of these parts."""
    program = HEAD + "".join(map(textwrap.dedent, parts))
    ast.parse(program)
    return {f.code for f in check(write_tree(tmp_path, {"train.py": program.encode()})).findings}


# --------------------------------------------------------------------------- ranks

#: How the rank is got in the body of a function, and what it then is.
RANKS = {
    "a call": ("", "dist.get_rank()"),
    "a name of it": ("rank = dist.get_rank()", "rank"),
    "any name": ("r = dist.get_rank()", "r"),
    "two names": ("a = dist.get_rank()\nb = a", "b"),
    "an import by another name": ("from torch.distributed import get_rank as who", "who()"),
    "if there is one": ("r = dist.get_rank() if dist.is_initialized() else 0", "r"),
    "a function": ("", "whoami()"),
    "an entry of the environment": ("r = int(os.environ['RANK'])", "r"),
    "an entry with a default": ("r = int(os.environ.get('LOCAL_RANK', 0))", "r"),
    "a variable": ("r = int(os.getenv('RANK', '0'))", "r"),
    "an option": ("", "args.local_rank"),
    "an attribute": ("", "accelerator.process_index"),
}
OF_RANK: dict[str, Callable[[str], tuple[str, str]]] = {
    "SMP103": lambda rank: ("", f"if {rank} == 0:\n            "),
    "SMP202": lambda rank: (f", seed=7 + {rank}", ""),
}


@pytest.mark.parametrize("code", OF_RANK)
@pytest.mark.parametrize("spelling", RANKS)
def test_a_rank_is_one_however_it_is_spelled(tmp_path: Path, code: str, spelling: str) -> None:
    before, rank = RANKS[spelling]
    seed, guard = OF_RANK[code](rank)
    body = f"""
def whoami():
    return dist.get_rank()


def main(data, epochs, optimizer, args, accelerator):
{textwrap.indent(before, "    ")}
    sampler = DistributedSampler(data{seed})
    loader = DataLoader(data, sampler=sampler)
    for epoch in range(epochs):
        {guard}sampler.set_epoch(epoch)
        for batch in loader:
            batch.sum().backward()
            optimizer.step()
"""
    assert codes(tmp_path, body) == {code}


NO_RANKS = {
    "a number": ("n = len(data)", "n"),
    "what the ranks agree on": ("r = int(dist.broadcast_object(dist.get_rank()))", "r"),
    "the epoch": ("", "epoch % 2"),
}


@pytest.mark.parametrize("spelling", NO_RANKS)
def test_what_is_no_rank_is_none_for_any_rule(tmp_path: Path, spelling: str) -> None:
    before, value = NO_RANKS[spelling]
    body = f"""
def main(data, epochs, optimizer):
{textwrap.indent(before, "    ")}
    sampler = DistributedSampler(data)
    loader = DataLoader(data, sampler=sampler)
    for epoch in range(epochs):
        if {value} == 0:
            sampler.set_epoch(epoch)
        for batch in loader:
            batch.sum().backward()
            optimizer.step()
"""
    assert not codes(tmp_path, body) & set(OF_RANK)


FIRST_RANKS = {
    "zero": ("", "dist.get_rank() == 0"),
    "zero first": ("", "0 == dist.get_rank()"),
    "not": ("", "not dist.get_rank()"),
    "a name": ("main = dist.get_rank() == 0", "main"),
    "a function": ("", "is_main_process()"),
    "an attribute": ("", "accelerator.is_local_main_process"),
    "Lightning's": ("", "accelerator.is_global_zero"),
}


@pytest.mark.parametrize("spelling", FIRST_RANKS)
def test_the_first_rank_is_one_however_it_is_spelled(tmp_path: Path, spelling: str) -> None:
    before, test = FIRST_RANKS[spelling]
    body = f"""
def main(data, epochs, optimizer, accelerator):
{textwrap.indent(before, "    ")}
    sampler = DistributedSampler(data)
    loader = DataLoader(data, sampler=sampler)
    for epoch in range(epochs):
        if {test}:
            sampler.set_epoch(epoch)
        for batch in loader:
            batch.sum().backward()
            optimizer.step()
"""
    assert codes(tmp_path, body) == {"SMP103"}


WORLD_SIZES = {
    "a call": "dist.get_world_size()",
    "an import by another name": "how_many()",
    "an entry of the environment": "int(os.environ['WORLD_SIZE'])",
    "a variable": "int(os.getenv('WORLD_SIZE', '1'))",
    "the sampler's own": "None",
}
LOCAL_RANKS = {
    "torch's": "dist.get_node_local_rank()",
    "an entry of the environment": "int(os.environ['LOCAL_RANK'])",
    "a variable": "int(os.getenv('LOCAL_RANK', '0'))",
    "an entry with a default": "int(os.environ.get('LOCAL_RANK', 0))",
}


@pytest.mark.parametrize("rank", LOCAL_RANKS)
@pytest.mark.parametrize("size", WORLD_SIZES)
def test_a_local_rank_of_the_world(tmp_path: Path, size: str, rank: str) -> None:
    """SMP502: the rank within the node, where all processes share the samples."""
    body = f"""
from torch.distributed import get_world_size as how_many


def main(data, epochs, optimizer):
    dist.init_process_group("nccl")
    n, r = {WORLD_SIZES[size]}, {LOCAL_RANKS[rank]}
    sampler = DistributedSampler(data, num_replicas=n, rank=r)
    loader = DataLoader(data, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            batch.sum().backward()
            optimizer.step()
"""
    assert codes(tmp_path, body) == {"SMP502"}


# --------------------------------------------------------------------------- epochs

EPOCHS = {
    "a range": "for epoch in range(epochs):",
    "a range by another name": "for e in range(1, epochs + 1):",
    "a bar": "for epoch in tqdm(range(epochs)):",
    "a count": "for epoch in itertools.count():",
    "a while": "while state.epoch < epochs:",
    "for ever": "while True:",
}


@pytest.mark.parametrize("code", ["SMP102", "SMP103"])
@pytest.mark.parametrize("spelling", EPOCHS)
def test_an_epoch_loop_is_one_however_it_counts(tmp_path: Path, code: str, spelling: str) -> None:
    body = f"""
import itertools

from tqdm import tqdm


def main(data, epochs, optimizer, state):
    sampler = DistributedSampler(data)
    loader = DataLoader(data, sampler=sampler)
    {EPOCHS[spelling]}
        {"sampler.set_epoch(0)" if code == "SMP103" else "pass"}
        for batch in loader:
            batch.sum().backward()
            optimizer.step()
        state.epoch += 1
"""
    assert codes(tmp_path, body) == {code}


# --------------------------------------------------------------------------- draws

#: How a generator is made of a seed, and how it draws one index or an order.
DRAWS = {
    "torch randperm": ("torch.Generator().manual_seed(SEED)", "torch.randperm(n, generator=g)"),
    "torch randint": ("torch.Generator().manual_seed(SEED)", "torch.randint(n, (n,), generator=g)"),
    "torch rand": ("torch.Generator().manual_seed(SEED)", "torch.rand(n, generator=g).argsort()"),
    "torch multinomial": (
        "torch.Generator().manual_seed(SEED)",
        "torch.multinomial(torch.ones(n), n, generator=g)",
    ),
    "random sample": ("random.Random(SEED)", "g.sample(range(n), n)"),
    "random choices": ("random.Random(SEED)", "g.choices(range(n), k=n)"),
    "random randrange": ("random.Random(SEED)", "[g.randrange(n) for _ in range(n)]"),
    "random randint": ("random.Random(SEED)", "[g.randint(0, n - 1) for _ in range(n)]"),
    "random random": ("random.Random(SEED)", "sorted(range(n), key=lambda i: g.random())"),
    "numpy permutation": ("np.random.default_rng(SEED)", "g.permutation(n)"),
    "numpy permuted": ("np.random.default_rng(SEED)", "g.permuted(np.arange(n))"),
    "numpy integers": ("np.random.default_rng(SEED)", "g.integers(n, size=n)"),
    "numpy choice": ("np.random.RandomState(SEED)", "g.choice(n, n)"),
}
OF_DRAW = {"SMP203": "self.epoch", "SMP104": "self.seed"}


@pytest.mark.parametrize("code", OF_DRAW)
@pytest.mark.parametrize("spelling", DRAWS)
def test_a_draw_is_one_however_it_is_spelled(tmp_path: Path, code: str, spelling: str) -> None:
    made, drawn = DRAWS[spelling]
    body = f"""
class Shuffled(Sampler):
    def __init__(self, data, seed=0):
        self.data, self.seed, self.epoch = data, seed, 0

    def __len__(self):
        return len(self.data)

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        n = len(self.data)
        g = {made.replace("SEED", OF_DRAW[code])}
        return iter({drawn})


def main(data, epochs, args):
    torch.manual_seed(args.seed)
    sampler = Shuffled(data, seed=args.seed)
    loader = DataLoader(data, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            batch.sum().backward()
"""
    assert codes(tmp_path, body) == {code}


@pytest.mark.parametrize("spelling", DRAWS)
def test_a_generator_of_its_own_follows_the_epoch(tmp_path: Path, spelling: str) -> None:
    """A sampler that draws by ``seed + epoch`` shuffles: its epoch has to be set."""
    made, drawn = DRAWS[spelling]
    body = f"""
class Shuffled(Sampler):
    def __init__(self, data, seed=0):
        self.data, self.seed, self.epoch = data, seed, 0

    def __len__(self):
        return len(self.data)

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        n = len(self.data)
        g = {made.replace("SEED", "self.seed + self.epoch")}
        return iter({drawn})


def main(data, epochs, args, optimizer):
    torch.manual_seed(args.seed)
    loader = DataLoader(data, sampler=Shuffled(data, seed=args.seed))
    for epoch in range(epochs):
        for batch in loader:
            batch.sum().backward()
            optimizer.step()
"""
    assert codes(tmp_path, body) == {"SMP102"}


# --------------------------------------------------------------------------- seeds

SEEDERS = {
    "torch": "torch.manual_seed({0})",
    "torch.random": "torch.random.manual_seed({0})",
    "numpy": "np.random.seed({0})",
    "random": "random.seed({0})",
    "a helper": "set_seed({0})",
    "a helper of another name": "fix_random_seeds({0})",
    "Lightning's": "seed_everything({0})",
}


@pytest.mark.parametrize("code", ["SMP201", "SMP202"])
@pytest.mark.parametrize("spelling", SEEDERS)
def test_a_seeding_is_one_however_it_is_spelled(tmp_path: Path, code: str, spelling: str) -> None:
    libraries = {"numpy", "random"}
    if code == "SMP202" and spelling in libraries:
        pytest.skip("`random_split` draws from torch's generator")
    value = "args.seed" if code == "SMP201" else "args.seed + dist.get_rank()"
    given = "" if code == "SMP201" else ", seed=args.seed"
    body = f"""
def main(data, epochs, args, optimizer):
    {SEEDERS[spelling].format(value)}
    train, _ = {"data, 0" if code == "SMP201" else "random_split(data, [0.9, 0.1])"}
    sampler = DistributedSampler(train{given})
    loader = DataLoader(train, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            batch.sum().backward()
            optimizer.step()
"""
    assert codes(tmp_path, body) == {code}


# --------------------------------------------------------------------------- training

STEPS = {
    "an optimizer": "optimizer.step()",
    "a loss": "batch.sum().backward()",
    "gradients": "optimizer.zero_grad()",
    "a step of one's own": "model.training_step(batch)",
    "a function": "learn(batch, optimizer)",
}
NO_STEPS = {
    "without gradients": "with torch.no_grad():\n                total += model(batch)",
    "inference": "with torch.inference_mode():\n                total += model(batch)",
}


@pytest.mark.parametrize("spelling", STEPS | NO_STEPS)
def test_training_is_what_trains(tmp_path: Path, spelling: str) -> None:
    """SMP102 wants the epoch set where it trains; SMP504 looks at what only evaluates."""
    trains = spelling in STEPS
    body = f"""
def learn(batch, optimizer):
    batch.sum().backward()


def run(data, epochs, optimizer, model):
    loader = DataLoader(data, sampler=DistributedSampler(data, shuffle={trains}))
    for epoch in range(epochs):
        evaluate(loader, optimizer, model)


def evaluate(loader, optimizer, model):
    total = 0
    for batch in loader:
        if True:
            {(STEPS | NO_STEPS)[spelling]}
            total += 1
    return total
"""
    found = codes(tmp_path, body)
    assert ("SMP102" in found, "SMP504" in found) == (trains, not trains)


# --------------------------------------------------------------------------- the vocabulary


@pytest.mark.parametrize("floor", ["syntax", "workspace", "analysis", "domain", "edits", "rules"])
def test_every_limit_of_the_analysis_stands_in_one_file(floor: str) -> None:
    """What samplers may take when they are worked through stands with that budget."""
    files = list((Path(sampler_lint.__file__).parent / floor).rglob("*.py"))
    assert files
    for path in files:
        for stmt in ast.parse(path.read_text("utf-8")).body:
            value = stmt.value if isinstance(stmt, (ast.Assign, ast.AnnAssign)) else None
            number = isinstance(value, ast.Constant) and type(value.value) in {int, float}
            assert not number, f"{path.name}:{stmt.lineno}: a limit belongs in limits.py"
