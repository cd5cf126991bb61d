"""Batch samplers in the hands of the real frameworks, on two CPU processes: as written, and fixed.

What a rule says a framework does is shown by that framework: it dies before the fix, and after it
(or with the right twin, where there is no fix) each process reads its own half of the data.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cases import working_in
from sampler_lint import engine
from sampler_lint.harness.world import World

pytestmark = pytest.mark.frameworks

SAMPLES = 24

#: Trains with Lightning's own Trainer and notes what each process reads.
LIGHTNING = """\
import json
from pathlib import Path

import lightning as L
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

from batches import Buckets


class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.seen = []

    def train_dataloader(self):
        dataset = TensorDataset(torch.arange({samples}.0).unsqueeze(1))
        batches = {batches}
        return DataLoader(dataset, batch_sampler=batches)

    def training_step(self, batch, number):
        self.seen += batch[0][:, 0].int().tolist()
        return self.layer(batch[0]).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0)

    def on_train_end(self):
        Path(f"rank{{self.global_rank}}.json").write_text(json.dumps(self.seen))


if __name__ == "__main__":
    L.Trainer(
        devices=2,
        accelerator="cpu",
        strategy="ddp",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    ).fit(Module())
"""

ACCELERATE = """\
import json
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data import DataLoader, SequentialSampler, TensorDataset

from batches import Buckets

if __name__ == "__main__":
    settings = DataLoaderConfiguration(even_batches=False)
    accelerator = Accelerator(cpu=True, dataloader_config=settings)
    dataset = TensorDataset(torch.arange({samples}.0).unsqueeze(1))
    batches = {batches}
    loader = accelerator.prepare(DataLoader(dataset, batch_sampler=batches))
    seen = [batch[0][:, 0].int().tolist() for batch in loader]
    Path(f"rank{{accelerator.process_index}}.json").write_text(json.dumps(seen))
    accelerator.end_training()
"""

BUCKETS = """\
from torch.utils.data import {base}


class Buckets({base}):
    def __init__(self, {params}):
        {kept}
        {size} = batch_size

    def __iter__(self):
        batch = []
        for index in {source}:
            batch.append(index)
            if len(batch) == {size}:
                yield batch
                batch = []

    def __len__(self):
        return len({source}) // {size}
"""


def write(folder: Path, train: str, batches: str, made: str, samples: int = SAMPLES) -> None:
    """A project of two files."""
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(train.format(samples=samples, batches=made))
    (folder / "batches.py").write_text(batches)


def codes(folder: Path) -> set[str]:
    """What the default rules say of the project."""
    with working_in(folder):
        return {found.code for found in engine.check(["."]).findings}


def run(folder: Path, world: World) -> str:
    """Train on two processes; what they said if one of them died."""
    for note in folder.glob("rank*.json"):
        note.unlink()
    done = world.run(folder / "train.py", timeout=120)
    return "" if done.finished else done.trouble + "".join(rank.stderr for rank in done.ranks)


def launched(folder: Path) -> str:
    """As :func:`run`, where Lightning starts the processes itself.

    On a busy machine gloo's own rendezvous is refused at times, before a line of the program under
    test has had a say: once more, then.
    """
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "train.py"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        said = done.stdout + done.stderr if done.returncode else ""
        if "Gloo connectFullMesh failed" not in said:
            break
    return said


def seen(folder: Path) -> list[list[int]]:
    """What each process noted."""
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in (0, 1)]


def assert_halves(folder: Path) -> None:
    """Each process has read a half of the data, and together they have read all of it."""
    first, second = seen(folder)
    assert len(first) == len(second)
    assert sorted(first + second) == list(range(SAMPLES))


def buckets(
    base: str = "Sampler",
    params: str = "sampler, batch_size, drop_last=True",
    kept: str = "self.sampler, self.drop_last = sampler, drop_last",
    size: str = "self.batch_size",
    source: str = "self.sampler",
) -> str:
    return BUCKETS.format(base=base, params=params, kept=kept, size=size, source=source)


def test_lightning_and_a_missing_batch_size(tmp_path: Path, gloo_session: World) -> None:
    made = "Buckets(SequentialSampler(dataset), 4)"
    write(tmp_path, LIGHTNING, buckets(size="self.size"), made)
    assert codes(tmp_path) == {"SMP301"}
    assert "Lightning can't inject a (distributed) sampler" in run(tmp_path, gloo_session)
    with working_in(tmp_path):
        engine.fix(["."])
    assert codes(tmp_path) == set()
    assert run(tmp_path, gloo_session) == ""
    assert_halves(tmp_path)


def test_lightning_and_a_missing_drop_last(tmp_path: Path, gloo_session: World) -> None:
    made = "Buckets(SequentialSampler(dataset), 4)"
    write(tmp_path, LIGHTNING, buckets(kept="self.sampler = sampler"), made)
    assert codes(tmp_path) == {"SMP301"}
    assert "Lightning can't inject a (distributed) sampler" in run(tmp_path, gloo_session)
    with working_in(tmp_path):
        engine.fix(["."])
    assert run(tmp_path, gloo_session) == ""
    assert_halves(tmp_path)


@pytest.mark.parametrize(
    ("params", "kept", "source", "made", "error"),
    [
        (
            "sampler, edges, batch_size, drop_last",
            "self.sampler, self.edges, self.drop_last = sampler, edges, drop_last",
            "self.sampler",
            "Buckets(SequentialSampler(dataset), [8], 4, True)",
            "required positional argument: 'edges'",
        ),
        (
            "sampler, batch_size",
            "self.sampler, self.drop_last = sampler, True",
            "self.sampler",
            "Buckets(SequentialSampler(dataset), 4)",
            "unexpected keyword argument 'drop_last'",
        ),
        (
            "sampler, batch_size, drop_last",
            "self.sampler, self.drop_last = sampler, drop_last",
            "range(len(self.sampler.data_source))",
            "Buckets(SequentialSampler(dataset), 4, True)",
            "has no attribute 'data_source'",
        ),
    ],
    ids=["required", "keyword", "data_source"],
)
def test_lightning_cannot_rebuild(
    tmp_path: Path,
    gloo_session: World,
    params: str,
    kept: str,
    source: str,
    made: str,
    error: str,
) -> None:
    write(tmp_path, LIGHTNING, buckets(params=params, kept=kept, source=source), made)
    assert codes(tmp_path) == {"SMP302"}
    assert error in run(tmp_path, gloo_session)


def test_lightning_rebuilds(tmp_path: Path) -> None:
    write(tmp_path, LIGHTNING, buckets(), "Buckets(SequentialSampler(dataset), 4)")
    assert codes(tmp_path) == set()
    assert launched(tmp_path) == ""
    assert_halves(tmp_path)


def test_lightning_behind_a_check_of_the_base(tmp_path: Path, gloo_session: World) -> None:
    checked = "assert isinstance(batches, BatchSampler)\n        return"
    train = LIGHTNING.replace("return DataLoader", f"{checked} DataLoader")
    write(tmp_path, train, buckets(), "Buckets(SequentialSampler(dataset), 4, True)")
    assert codes(tmp_path) == {"SMP303"}
    assert "AssertionError" in run(tmp_path, gloo_session)
    with working_in(tmp_path):
        engine.fix(["."])
    assert "class Buckets(BatchSampler)" in (tmp_path / "batches.py").read_text()
    assert codes(tmp_path) == set()
    assert run(tmp_path, gloo_session) == ""
    assert_halves(tmp_path)


def test_accelerate_and_the_last_round_of_batches(tmp_path: Path, gloo_session: World) -> None:
    made = "Buckets(SequentialSampler(dataset), 4)"
    bad = buckets(kept="self.sampler = sampler", params="sampler, batch_size")
    write(tmp_path, ACCELERATE, bad, made, samples=20)
    assert codes(tmp_path) == {"SMP306"}
    assert run(tmp_path, gloo_session) == ""
    assert list(map(len, seen(tmp_path))) == [3, 2]  # DDP would wait for ever
    write(tmp_path, ACCELERATE, buckets(), made, samples=20)
    assert codes(tmp_path) == set()
    assert run(tmp_path, gloo_session) == ""
    assert list(map(len, seen(tmp_path))) == [2, 2]


def test_accelerate_counts_a_batch_of_all_ranks(tmp_path: Path, gloo_session: World) -> None:
    train = ACCELERATE.replace("even_batches=False", "").replace(
        "seen = [", "seen = [loader.total_batch_size] + ["
    )
    made = "Buckets(SequentialSampler(dataset), 4)"
    bad = buckets(kept="self.sampler = sampler", size="self.size", params="sampler, batch_size")
    write(tmp_path, train, bad, made)
    assert codes(tmp_path) == {"SMP301"}
    assert "TypeError: unsupported operand type(s) for *: 'NoneType'" in run(tmp_path, gloo_session)
    with working_in(tmp_path):
        engine.fix(["."])
    assert run(tmp_path, gloo_session) == ""
    assert [share[0] for share in seen(tmp_path)] == [8, 8]


SHARE = """\
from torch.utils.data import Sampler


class Share(Sampler):
    def __init__(self, data, rank, world_size):
        self.data, self.rank, self.world_size = data, rank, world_size

    def __iter__(self):
        return iter(range(self.rank, len(self) * self.world_size, self.world_size))

    def __len__(self):
        return len(self.data) // self.world_size
"""


@pytest.mark.parametrize(
    ("train", "sampler"),
    [
        (ACCELERATE, "DistributedSampler(dataset)"),
        (ACCELERATE, "Share(dataset, accelerator.process_index, 2)"),
        (LIGHTNING, "Share(dataset, self.trainer.global_rank, 2)"),
    ],
    ids=["accelerate", "accelerate-own", "lightning-own"],
)
def test_a_part_is_divided_again(
    tmp_path: Path, gloo_session: World, train: str, sampler: str
) -> None:
    train = train.replace("import Buckets", "import Share")
    train = train.replace("SequentialSampler,", "DistributedSampler, SequentialSampler,")
    bad = train.replace("batch_sampler=batches", f"batch_size=4, sampler={sampler}")
    write(tmp_path, bad, SHARE, "None")
    assert codes(tmp_path) == {"SMP307"}
    assert run(tmp_path, gloo_session) == ""
    assert len({str(each) for each in seen(tmp_path)}) == 2
    assert len(indices(seen(tmp_path))) == SAMPLES // 2
    write(tmp_path, train.replace("batch_sampler=batches", "batch_size=4"), SHARE, "None")
    assert codes(tmp_path) == set()
    assert run(tmp_path, gloo_session) == ""
    assert indices(seen(tmp_path)) == set(range(SAMPLES))


def indices(read: list[list[int]]) -> set[int]:
    """The samples of all ranks, batches taken apart."""
    return {
        index
        for part in read
        for one in part
        for index in (one if isinstance(one, list) else [one])
    }
