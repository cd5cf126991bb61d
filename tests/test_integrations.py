"""A run recorded from inside: `sampler_lint.integrations`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from programs import AT_ONCE
from sampler_lint.integrations import Recording

PLAIN = (
    """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from sampler_lint.integrations import Recording, SamplerBugsError

dist.init_process_group("gloo")
data = TensorDataset(torch.arange(40.0).reshape(-1, 1))
early = DataLoader(data, batch_size=5, sampler=DistributedSampler(data))
recording = Recording(fail_on={"SMP102"}, keep="kept")
right = DataLoader(data, batch_size=5, sampler=DistributedSampler(data))
model = DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)


def train(loader):
    for (x,) in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()


for epoch in range(3):
    right.sampler.set_epoch(epoch)
    train(right)
print(f"rank {dist.get_rank()} so far {recording.finish()}", flush=True)
for epoch in range(3):
    train(early)
try:
    recording.finish()
except SamplerBugsError as error:
    print(f"rank {dist.get_rank()} then {error.codes}", flush=True)
dist.barrier()
"""
    + AT_ONCE
)

LIGHTNING = """
import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from sampler_lint.integrations import LightningCallback

data = TensorDataset(torch.arange(40.0).reshape(-1, 1))


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, number):
        return self.layer(batch[0]).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-4)

    def train_dataloader(self):
        return DataLoader(data, batch_size=5, shuffle=sys.argv[1] == "good")


trainer = Trainer(
    accelerator="cpu", devices=2, strategy="ddp", max_epochs=3, logger=False,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    use_distributed_sampler=sys.argv[1] == "good",
    callbacks=[LightningCallback(fail_on="any")],
)
trainer.fit(Model())
print("came to its end")
"""

TRANSFORMERS = (
    """
import sys

import torch
from torch.utils.data import Dataset, DistributedSampler
from transformers import Trainer, TrainingArguments

from sampler_lint.integrations import TransformersCallback


class Data(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return {"x": torch.tensor([float(index)])}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x):
        return {"loss": self.layer(x).square().mean()}


class Mine(Trainer):
    def _get_train_sampler(self, *args):
        if sys.argv[1] == "good":
            return super()._get_train_sampler(*args)
        return DistributedSampler(self.train_dataset)


arguments = TrainingArguments(
    "out", num_train_epochs=3, per_device_train_batch_size=5, use_cpu=True, report_to=[],
    save_strategy="no", logging_strategy="no", disable_tqdm=True,
)
callbacks = [TransformersCallback(fail_on="any")]
Mine(model=Model(), args=arguments, train_dataset=Data(), callbacks=callbacks).train()
print("came to its end")
"""
    + AT_ONCE
)

ACCELERATE = """
import sys

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from sampler_lint.integrations import AccelerateTracker

accelerator = Accelerator(cpu=True, log_with=AccelerateTracker(fail_on="any"))
data = TensorDataset(torch.arange(40.0).reshape(-1, 1))
sampler = None if sys.argv[1] == "good" else DistributedSampler(data)
loader = DataLoader(data, batch_size=5, sampler=sampler, shuffle=sampler is None)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(3):
    for (x,) in loader:
        loss = model(x).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        accelerator.log({"loss": loss.item()})
accelerator.end_training()
print("came to its end")
"""

COMPOSER = """
import sys

import torch
from composer import Trainer
from composer.models import ComposerModel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from sampler_lint.integrations import ComposerCallback


class Model(ComposerModel):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, batch):
        return self.layer(batch[0])

    def loss(self, outputs, batch):
        return outputs.square().mean()


data = TensorDataset(torch.arange(40.0).reshape(-1, 1))
torch.distributed.init_process_group("gloo")
seed = 0 if sys.argv[1] == "good" else torch.distributed.get_rank()
loader = DataLoader(data, batch_size=5, sampler=DistributedSampler(data, seed=seed))
model = Model()
Trainer(
    model=model, train_dataloader=loader, max_duration="3ep", device="cpu", progress_bar=False,
    optimizers=torch.optim.SGD(model.parameters(), lr=1e-4),
    callbacks=[ComposerCallback(fail_on="any")],
).fit()
print("came to its end")
"""


def run(folder: Path, program: str, *arguments: str, ranks: int) -> tuple[int, str]:
    """Run a program, on several ranks if it does not start them itself."""
    (folder / "train.py").write_text(program, "utf-8")
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    launcher = ["-m", *torchrun] if ranks > 1 else []
    done = subprocess.run(
        [sys.executable, *launcher, "train.py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    return done.returncode, done.stdout + done.stderr


def test_two_ranks_report_what_they_read(tmp_path: Path) -> None:
    status, said = run(tmp_path, PLAIN, ranks=2)
    assert status == 0, said
    assert said.count("Nothing wrong was seen. Recorded: 2 ranks, 1 loader, 3 epochs") == 1
    assert "rank 0 so far []" in said
    assert "rank 1 so far []" in said
    # Built before the recording began, it is reported where its passes begin.
    line = PLAIN.splitlines().index("    train(early)") + 1
    assert f"train.py:{line}:5: SMP102 epochs 0-2 have one order on both ranks" in said
    assert "rank 0 then ['SMP102']" in said
    assert "rank 1 then ['SMP102']" in said
    assert len(list((tmp_path / "kept").glob("*.jsonl"))) == 2


def test_what_is_no_code_is_refused() -> None:
    with pytest.raises(ValueError, match="fail_on: 'epoch-never-set' is neither a code"):
        Recording(fail_on={"epoch-never-set"})


@pytest.mark.parametrize("fail_on", ["()", "'any'"])
def test_a_report_that_cannot_be_made_ends_no_training(fail_on: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where the records should be kept", "utf-8")
    program = f"""
from sampler_lint.integrations import Recording

recording = Recording(fail_on={fail_on}, keep="taken")
import torch.utils.data as data

for batch in data.DataLoader(range(8), batch_size=2):
    pass
print("codes", recording.finish())
"""
    status, said = run(tmp_path, program, ranks=1)
    assert "sampler-lint: no report of this run: FileExistsError: " in said
    # Who wants a gate must not take what was not looked at for right.
    assert (status, "codes []" in said) == ((0, True) if fail_on == "()" else (1, False)), said


def test_importing_it_imports_no_framework() -> None:
    code = (
        "import sys, sampler_lint.integrations\n"
        "print({'torch', 'lightning', 'transformers', 'libcst'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("program", "ranks", "code"),
    [
        (LIGHTNING, 1, "SMP502"),
        (TRANSFORMERS, 2, "SMP502"),
        (ACCELERATE, 2, "SMP502"),
        (COMPOSER, 2, "SMP202"),
    ],
    ids=["lightning", "transformers", "accelerate", "composer"],
)
def test_frameworks(program: str, ranks: int, code: str, tmp_path: Path) -> None:
    if program is COMPOSER:
        pytest.importorskip("composer", reason="asks for an older torch than our tests have")
    status, said = run(tmp_path, program, "good", ranks=ranks)
    assert status == 0, said
    assert "Nothing wrong was seen. Recorded: 2 ranks, 1 loader, 3 epochs" in said
    status, said = run(tmp_path, program, "bad", ranks=ranks)
    assert status != 0, said
    assert f" {code} " in said
    assert "SamplerBugsError: sampler-lint found" in said
    assert "came to its end" not in said
    assert said.count("Recorded: ") == 1
