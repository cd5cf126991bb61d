"""Trace finds the planted bugs in programs that leave their loaders to a framework.

Each program is run with a bug and without; the frameworks' own treatment of a loader (Accelerate
prepares it, Lightning shards it and sets its epoch) must be seen through in both cases.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sampler_lint.harness.diagnosis import diagnose

pytestmark = pytest.mark.frameworks

HEADER = """
import os, sys
import torch
from torch.utils.data import *
from torch.utils.data.distributed import DistributedSampler

bug = sys.argv[1]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
data = TensorDataset(torch.arange(101.0).reshape(-1, 1))

class Buckets(Sampler):
    def __init__(self, seed=0, step=1):
        self.seed, self.step, self.epoch = seed, step, 0
        self.batch_size, self.drop_last = 5, False
    def set_epoch(self, epoch):
        self.epoch = epoch
    def __len__(self):
        return len(range(rank % self.step, 20, self.step))
    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(100, generator=g).tolist()
        batches = [order[i : i + 5] for i in range(0, 100, 5)]
        return iter(batches[rank % self.step :: self.step])
"""

ACCELERATE = """
from accelerate import Accelerator, DataLoaderConfiguration

accelerator = Accelerator(
    cpu=True, dataloader_config=DataLoaderConfiguration(even_batches=bug != "uneven")
)
torch.manual_seed(rank if bug == "unsharded" else 0)
buckets = Buckets(seed=rank if bug == "seed" else 0)
if bug in ("plain", "uneven", "unsharded"):
    loader = DataLoader(data, batch_size=10, shuffle=True)
elif bug == "twice":
    loader = DataLoader(data, sampler=DistributedSampler(data, world, rank), batch_size=10)
else:
    loader = DataLoader(data, batch_sampler=buckets)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
model, optimizer = accelerator.prepare(model, optimizer)
if bug != "unsharded":
    loader = accelerator.prepare(loader)
for epoch in range(3):
    if bug == "wrong object":
        loader.set_epoch(epoch)
    elif bug != "missing":
        buckets.set_epoch(epoch)
    for (x,) in loader:
        accelerator.backward(model(x).sum())
        optimizer.step()
        optimizer.zero_grad()
accelerator.end_training()
"""

LIGHTNING = """
import lightning as L

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
    def training_step(self, batch, index):
        return self.layer(batch[0]).sum()
    def validation_step(self, batch, index):
        return self.layer(batch[0]).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-5)
    def on_train_epoch_start(self):
        if bug == "batches":
            self.trainer.train_dataloader.batch_sampler.set_epoch(self.current_epoch)
        if bug == "wrong object":
            self.unused.set_epoch(self.current_epoch)
    def val_dataloader(self):
        return DataLoader(data, batch_size=10)
    def train_dataloader(self):
        self.unused = DistributedSampler(data, world, rank)
        if bug in ("plain", "unsharded"):
            return DataLoader(data, batch_size=10, shuffle=True)
        if bug in ("shards", "seed"):
            sampler = DistributedSampler(data, world, rank, seed=rank if bug == "seed" else 0)
            return DataLoader(data, batch_size=10, sampler=sampler)
        if bug in ("uneven", "even"):
            share = range(50 * rank, 50 + (40 if bug == "uneven" else 50) * rank)
            return DataLoader(Subset(data, share), batch_size=10)
        return DataLoader(data, batch_sampler=Buckets(step=2))

trainer = L.Trainer(
    max_epochs=3, accelerator="cpu", devices=world, strategy="ddp", logger=False,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    use_distributed_sampler=bug == "plain",
)
trainer.fit(Model())
"""

TRANSFORMERS = """
from transformers import Trainer, TrainingArguments

class Rows(Dataset):
    def __init__(self):
        self.x = torch.arange(101.0).reshape(-1, 1)
    def __len__(self):
        return 101
    def __getitem__(self, index):
        return {"x": self.x[index], "labels": self.x[index]}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
    def forward(self, x, labels):
        return {"loss": ((self.layer(x) - labels) ** 2).mean() * 1e-5}

class Mine(Trainer):
    def get_train_dataloader(self):
        if bug == "unsharded":
            return DataLoader(self.train_dataset, batch_size=10, shuffle=True)
        return super().get_train_dataloader()

arguments = TrainingArguments(
    output_dir=".", num_train_epochs=3, per_device_train_batch_size=10, use_cpu=True,
    report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
)
Mine(Model(), arguments, train_dataset=Rows()).train()
"""

CASES = [
    ("accelerate", ACCELERATE, "plain", None, ""),
    ("accelerate", ACCELERATE, "batches", None, ""),
    ("accelerate", ACCELERATE, "missing", "SMP102", "no `set_epoch` call reached Buckets"),
    ("accelerate", ACCELERATE, "wrong object", "SMP103", "is called on the prepared loader"),
    ("accelerate", ACCELERATE, "seed", "SMP202", "the sampler's seed is 0 on rank 0, 1 on rank 1"),
    ("accelerate", ACCELERATE, "unsharded", "SMP502", "share 100 % of the indices"),
    ("accelerate", ACCELERATE, "twice", "SMP502", "BatchSamplerShard and DistributedSampler both"),
    ("accelerate", ACCELERATE, "uneven", "SMP306", "rank 0 took 6, rank 1 took 5 steps"),
    ("lightning", LIGHTNING, "plain", None, ""),
    ("lightning", LIGHTNING, "shards", None, ""),
    ("lightning", LIGHTNING, "batches", None, ""),
    ("lightning", LIGHTNING, "even", None, ""),
    ("lightning", LIGHTNING, "missing", "SMP102", "no `set_epoch` call reached Buckets"),
    ("lightning", LIGHTNING, "wrong object", "SMP101", "on a DistributedSampler that this loader"),
    ("lightning", LIGHTNING, "seed", "SMP202", "the sampler's seed is 0 on rank 0, 1 on rank 1"),
    ("lightning", LIGHTNING, "unsharded", "SMP502", "share 100 % of the indices"),
    ("lightning", LIGHTNING, "uneven", "SMP306", "rank 0 took 5, rank 1 took 4 steps"),
    ("transformers", TRANSFORMERS, "plain", None, ""),
    ("transformers", TRANSFORMERS, "unsharded", "SMP502", "share 100 % of the indices"),
]


@pytest.mark.parametrize(
    ("framework", "program", "bug", "code", "words"),
    CASES,
    ids=[f"{framework}-{bug}" for framework, _, bug, _, _ in CASES],
)
def test_planted_bug(tmp_path, gloo_session, framework, program, bug, code, words):
    pytest.importorskip(framework)
    script = tmp_path / "train.py"
    script.write_text(HEADER + program)
    run = gloo_session.run(script, [bug], timeout=60)
    found = diagnose(run)
    assert run.finished or bug == "uneven", run.trouble
    assert [one.code for one in found] == ([code] if code else []), found
    assert all(rank.log.failures == [] for rank in run.ranks)
    if code:
        assert words in found[0].message
        assert Path(found[0].path) == script
        assert any("iterated here" in one.text for one in found[0].evidence)
