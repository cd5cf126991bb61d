"""Pipelines and resumed loaders with the real packages: what a rule says happens in them.

Each program prints what it has read. The bad one is reported and shows the bug; its twin, which
differs by a few words, is not reported and does not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cases import working_in
from programs import AT_ONCE
from sampler_lint import engine
from sampler_lint.harness.world import World
from sampler_lint.options import Options

pytestmark = pytest.mark.frameworks

PIPELINE = """\
import io
import json
import tarfile

import webdataset as wds


def shards():
    for shard in range(8):
        with tarfile.open(f"{shard}.tar", "w") as tar:
            for place in range(4):
                entry = tarfile.TarInfo(f"{shard * 4 + place:03d}.txt")
                number = str(shard * 4 + place).encode()
                entry.size = len(number)
                tar.addfile(entry, io.BytesIO(number))


def main():
    urls = [f"{shard}.tar" for shard in range(8)]
    data = wds.DataPipeline(wds.SimpleShardList(urls), STAGES, wds.tarfile_to_samples())
    loader = wds.WebLoader(data, batch_size=None, num_workers=2SETTINGS)
    orders = []
    for epoch in range(2):
        order = []
        for sample in loader:
            order.append(int(sample["txt"]))
        orders.append(order)
    print(json.dumps(orders))


if __name__ == "__main__":
    shards()
    main()
"""

RESUMED = """\
import json

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, Sampler, TensorDataset


class Shuffled(Sampler):
    def __init__(self, data):
        self.data = data
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.data)

    def __iter__(self):
        generator = torch.Generator()
        generator.manual_seed(self.epoch)
        return iter(torch.randperm(len(self.data), generator=generator).tolist())


def run(start_epoch):
    accelerator = Accelerator(cpu=True)
    data = TensorDataset(torch.arange(20))
    sampler = Shuffled(data)
    loader = accelerator.prepare(DataLoader(data, batch_size=4, sampler=sampler))
    orders = []
    for epoch in range(start_epoch, start_epoch + 2):
        TOLD.set_epoch(epoch)
        order = []
        for (numbers,) in loader:
            order += numbers.tolist()
        orders.append(order)
    return orders


if __name__ == "__main__":
    print(json.dumps([run(0), run(2)]))
"""


def orders_of(folder: Path, program: str, code: str, *, is_told: bool) -> list[list[int]]:
    """What the program has read, after it was seen to be reported, or not."""
    (folder / "train.py").write_text(program)
    with working_in(folder):
        report = engine.check(["train.py"], Options(select=(code,)))
    assert bool(report.findings) is is_told
    run = [sys.executable, "train.py"]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=True)
    read: list[list[int]] = json.loads(done.stdout.splitlines()[-1])
    return read


@pytest.mark.parametrize(
    ("stages", "times"), [("wds.shuffle(4)", 2), ("wds.split_by_worker, wds.shuffle(4)", 1)]
)
def test_shards_that_no_worker_leaves_to_another(tmp_path: Path, stages: str, times: int) -> None:
    program = PIPELINE.replace("STAGES", stages).replace("SETTINGS", "")
    first, _ = orders_of(tmp_path, program, "SMP308", is_told=times > 1)
    assert sorted(first) == sorted(list(range(32)) * times)


def test_the_fix_divides_shards_by_worker(tmp_path: Path) -> None:
    program = PIPELINE.replace("STAGES", "wds.shuffle(4)").replace("SETTINGS", "")
    (tmp_path / "train.py").write_text(program)
    with working_in(tmp_path):
        engine.fix(["train.py"], Options(select=("SMP308",)), unsafe=True)
    fixed = (tmp_path / "train.py").read_text()
    first, _ = orders_of(tmp_path, fixed, "SMP308", is_told=False)
    assert sorted(first) == list(range(32))


@pytest.mark.parametrize(
    ("settings", "is_alike"), [("", True), (", persistent_workers=True", False)]
)
def test_a_shuffle_that_counts_in_workers(tmp_path: Path, settings: str, is_alike: bool) -> None:
    stages = "wds.detshuffle(100, seed=1), wds.split_by_worker"
    program = PIPELINE.replace("STAGES", stages).replace("SETTINGS", settings)
    first, second = orders_of(tmp_path, program, "SMP106", is_told=is_alike)
    assert sorted(first) == sorted(second) == list(range(32))
    assert (first == second) is is_alike


@pytest.mark.parametrize(("told", "is_alike"), [("sampler", True), ("loader", False)])
def test_an_epoch_that_accelerate_overrules(tmp_path: Path, told: str, is_alike: bool) -> None:
    program = RESUMED.replace("TOLD", told)
    begun, resumed = orders_of(tmp_path, program, "SMP105", is_told=is_alike)
    assert (begun == resumed) is is_alike


STREAM = (
    """\
import json
import os

import torch
import torch.distributed as dist
from datasets import load_dataset
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    rows = load_dataset("json", data_files="rows.jsonl", split="train", streaming=True)
    read = []
    for batch in DataLoader(rows, batch_size=4):
        read += batch["number"].tolist()
        model(batch["number"].float()[:, None]).sum().backward()
        optimizer.step()
    everything = [None] * dist.get_world_size()
    dist.all_gather_object(everything, read)
    if dist.get_rank() == 0:
        print(json.dumps(everything))
    dist.barrier()


main()
"""
    + AT_ONCE
)


def test_a_stream_that_the_fix_splits_by_rank(tmp_path: Path, gloo_session: World) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"number": {n}}}\n' for n in range(16)))
    (tmp_path / "train.py").write_text(STREAM)
    assert _read_by_two(tmp_path, gloo_session) == [list(range(16))] * 2
    with working_in(tmp_path):
        assert engine.check(["train.py"], Options(select=("SMP308",))).findings
        engine.fix(["train.py"], Options(select=("SMP308",)), unsafe=True)
        assert not engine.check(["train.py"], Options(select=("SMP308",))).findings
    one, other = _read_by_two(tmp_path, gloo_session)
    assert sorted(one + other) == list(range(16))


def _read_by_two(folder: Path, world: World) -> list[list[int]]:
    """What each of two ranks reads."""
    home = {"HF_HOME": str(folder / "home")}
    run = world.run(folder / "train.py", world_size=2, timeout=60.0, env=home)
    assert not run.trouble, [rank.stderr for rank in run.ranks]
    read: list[list[int]] = json.loads(run.ranks[0].stdout.splitlines()[-1])
    return read
