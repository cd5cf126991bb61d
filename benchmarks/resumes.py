"""What `sampler-lint trace --resume-check` says of small programs that are stopped and go on.

The programs are in ``runs/resumes.txt``, as those of :mod:`runs`: ``-`` says that it goes on right,
``error`` that it cannot be judged. Each runs three times, as a command, on one rank or under
torchrun; those of the family ``frameworks`` need Accelerate, Lightning, Transformers and torchdata.

    python benchmarks/resumes.py [names ...]
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEADER = """\
import copy, itertools, json, math, os, random, sys, time
import numpy as np, torch, torch.nn.functional as F
from torch import nn
from torch.utils.data import *
torch.set_num_threads(1)
random.seed(0); np.random.seed(0); torch.manual_seed(0)
g0 = torch.Generator().manual_seed(7)
features = torch.randn(100, 8, generator=g0); labels = (features.sum(1) > 0).long()
data = TensorDataset(features, labels); val = TensorDataset(features[:20], labels[:20])
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
"""
RANKS = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler
dist.init_process_group("gloo"); rank, world = dist.get_rank(), dist.get_world_size()
model = DDP(model)
"""
STEP = """\
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
def step(x, y):
    loss = F.cross_entropy(model(x), y); opt.zero_grad(); loss.backward(); opt.step()
"""
SAYS = {0: "-", 1: "SMP105"}


def said(text: str, ranks: int) -> tuple[str, str]:
    """What the command says of a program, and its output."""
    code = HEADER + (RANKS if ranks > 1 else "") + STEP + text
    code += "dist.destroy_process_group()\n" if ranks > 1 else ""
    command = [sys.executable, "train.py"]
    if ranks > 1:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        command[1:1] = launcher
    check = [sys.executable, "-m", "sampler_lint", "trace", "--resume-check", "--timeout", "120"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(code, "utf-8")
        done = subprocess.run([*check, "--", *command], cwd=folder, capture_output=True, text=True)
    return SAYS.get(done.returncode, "error"), done.stdout + done.stderr


def main() -> None:
    """Run those that are asked for; print what is told wrongly, and the figures."""
    text = (Path(__file__).parent / "runs" / "resumes.txt").read_text("utf-8")
    titled = re.split(r"^#{8} (.*)\n", text, flags=re.MULTILINE)
    right = count = 0
    started = time.monotonic()
    for title, body in zip(titled[1::2], titled[2::2], strict=True):
        name, expected = title.split(": ")
        name, _, ranks = name.partition(" @")
        if sys.argv[1:] and not any(one in name for one in sys.argv[1:]):
            continue
        told, output = said(body, int(ranks or 1))
        count, right = count + 1, right + (told == expected)
        if told != expected:
            print(f"{name}: expected {expected}, told {told}\n{output[-2000:]}", flush=True)
    print(f"{right} of {count} in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
