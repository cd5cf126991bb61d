"""What programs that run on gloo ranks in tests begin with."""

from __future__ import annotations

#: The end of a program whose process a thread of gloo's may still abort: torch 2.13 under load, in
#: some of a thousand runs, also after `destroy_process_group`.
AT_ONCE = """
import os, sys
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)
"""

HEADER = """
import os, random, sys, time
import torch
import torch.distributed as dist
from torch.utils.data import *
from torch.utils.data.distributed import DistributedSampler

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
data = TensorDataset(torch.arange(101))

def shard(**arguments):
    return DistributedSampler(data, **{"num_replicas": world, "rank": rank, **arguments})

def read(loader, epochs=3, sampler=None):
    for epoch in range(epochs):
        if sampler is not None:
            sampler.set_epoch(epoch)
        for batch in loader:
            if torch.is_grad_enabled():
                torch.ones(1, requires_grad=True).backward()
"""
