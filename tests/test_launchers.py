"""`sampler-lint trace` under what starts ranks: each tells a rank its number in a way of its own.

A launcher that is not installed is skipped; `.ci/run` installs those that Debian has.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.frameworks

#: Whoever starts the ranks, the data and what is wrong with them is the same.
TRAINING = """
import os, sys
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

def told(*names):
    return int(next(os.environ[name] for name in names if name in os.environ))

def train(how, *meeting):
    gpus = torch.cuda.device_count() if "ON_GPUS" in os.environ else 0
    if not dist.is_initialized():
        meeting = meeting or (
            told("OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "RANK"),
            told("OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "WORLD_SIZE"),
        )
        address = "env://" if "MASTER_ADDR" in os.environ else f"file://{os.path.abspath('meet')}"
        backend = "nccl" if gpus > 1 else "gloo"  # NCCL takes one rank for each GPU
        dist.init_process_group(backend, address, rank=meeting[0], world_size=meeting[1])
    if gpus:
        torch.cuda.set_device(dist.get_rank() % gpus)
    device = "cuda" if gpus else "cpu"
    data = TensorDataset(torch.arange(100.0).reshape(-1, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=10, sampler=sampler)
    model = torch.nn.Linear(1, 1).to(device)
    for epoch in range(3):
        if how == "good":
            sampler.set_epoch(epoch)
        for (x,) in loader:
            model.zero_grad()
            model(x.to(device)).sum().backward()
            for weight in model.parameters():  # torch's own import `torch._dynamo` in each rank
                dist.all_reduce(weight.grad)
                weight.data -= 1e-5 * weight.grad
    if how == "bad" and dist.get_rank() == 1:
        raise ValueError("planted")
    dist.barrier()
    dist.destroy_process_group()
"""

HOW = "sys.argv[-1]"
ITSELF = TRAINING + f"\nif __name__ == '__main__':\n    train({HOW})\n"
SPAWNS = (
    TRAINING
    + f"""
def on(rank, how):
    train(how, rank, 2)

if __name__ == "__main__":
    torch.multiprocessing.spawn(on, ({HOW},), nprocs=2)
"""
)
NOTEBOOK = (
    TRAINING
    + f"""
from accelerate import notebook_launcher
import socket
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = str(probe.getsockname()[1])
notebook_launcher(train, ({HOW},), num_processes=2, use_port=port)
"""
)
DEBUG = (
    TRAINING
    + f"""
from accelerate import debug_launcher
debug_launcher(train, ({HOW},), num_processes=2)
"""
)
#: `deepspeed` starts ranks as torchrun does, but for those options that it gives the program.
LAUNCHERS = {
    "torchrun": ("torchrun --standalone --nproc-per-node 2", ITSELF),
    "run": (f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2", ITSELF),
    "accelerate": ("accelerate launch --multi_gpu --num_processes 2 --main_process_port 0", ITSELF),
    "deepspeed": ("deepspeed --num_gpus 2 --no_ssh_check", ITSELF),
    "mpirun": (f"mpirun --oversubscribe -np 2 {sys.executable}", ITSELF),
    "srun": (f"srun -n 2 {sys.executable}", ITSELF),
    "spawn": (sys.executable, SPAWNS),
    "notebook_launcher": (sys.executable, NOTEBOOK),
    "debug_launcher": (sys.executable, DEBUG),
}
#: A right program is recorded as a wrong one is: it is started from outside and from inside only.
GOOD = {"torchrun", "spawn"}
NEEDS = {"notebook_launcher": "accelerate", "debug_launcher": "accelerate"}

TRACE = [sys.executable, "-m", "sampler_lint", "trace"]
#: A container's user is root, which mpirun has to be told that it may run as.
ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

SLURM = """
ClusterName=one
SlurmctldHost={host}
ProctrackType=proctrack/pgid
TaskPlugin=task/none
ReturnToService=2
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}
SlurmdSpoolDir={folder}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def answers(environment: dict[str, str]) -> bool:
    """Whether two tasks can be started by Slurm."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        asked = ["srun", "-n", "2", "true"]
        done = subprocess.run(asked, env=environment, capture_output=True, timeout=20)
        return done.returncode == 0
    return False


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a Slurm that answers: the machine's, or one of this machine alone."""
    environment = {**os.environ}
    if shutil.which("srun") is None:
        pytest.skip("srun is not installed")
    path = environment["PATH"] + os.pathsep + "/usr/sbin"
    daemons = [shutil.which(name, path=path) for name in ("slurmctld", "slurmd")]
    if "SLURM_CONF" in environment or not all(daemons) or os.geteuid():
        if not answers(environment):
            pytest.skip("no Slurm answers srun, and one can be started by root only")
        yield environment
        return
    munge = shutil.which("munged", path=path)
    if munge and subprocess.run(["munge", "-n"], capture_output=True).returncode:
        runtime = Path("/run/munge")
        runtime.mkdir(exist_ok=True)
        shutil.chown(runtime, "munge", "munge")
        subprocess.run(["runuser", "-u", "munge", "--", munge], capture_output=True)
    folder = tmp_path_factory.mktemp("slurm")
    said = SLURM.format(host=socket.gethostname(), folder=folder, cores=max(2, os.cpu_count() or 2))
    (folder / "slurm.conf").write_text(said)
    environment["SLURM_CONF"] = str(folder / "slurm.conf")
    running = [
        subprocess.Popen([str(one), "-D"], env=environment, stderr=subprocess.DEVNULL)
        for one in daemons
    ]
    until = time.monotonic() + 30
    try:
        while not answers(environment):
            if time.monotonic() > until:
                pytest.skip("the Slurm of one machine does not come up here")
            time.sleep(0.5)
        yield environment
    finally:
        for one in running:
            one.terminate()
            one.wait()


@functools.cache
def why_not(name: str) -> str:
    """Why there are no ranks of this launcher here."""
    command, _ = LAUNCHERS[name]
    program = command.split()[0]
    beside = shutil.which(program, path=os.path.dirname(sys.executable))
    if shutil.which(program) is None and beside is None:
        return f"{program} is not installed"
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    return ""


def run(
    folder: Path, program: str, command: Sequence[str], environment: dict[str, str]
) -> tuple[int, str]:
    (folder / "train.py").write_text(program, "utf-8")
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environment, **ROOT_MAY},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )
    (folder / "meet").unlink(missing_ok=True)
    return done.returncode, done.stdout


RECORDED = "Recorded: 2 ranks, 1 loader, 3 epochs on rank 0, 30 batches."


@pytest.mark.parametrize("name", LAUNCHERS)
def test_ranks_are_recorded(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if why_not(name):
        pytest.skip(why_not(name))
    environment = request.getfixturevalue("slurm") if name == "srun" else {**os.environ}
    command, program = LAUNCHERS[name]
    whole = [*TRACE, "--", *command.split(), "train.py"]
    if name in GOOD:
        status, said = run(tmp_path, program, [*whole, "good"], environment)
        assert (status, f"Nothing wrong was seen. {RECORDED}" in said) == (0, True), said
    status, said = run(tmp_path, program, [*whole, "bad"], environment)
    assert (status, RECORDED in said) == (1, True), said
    assert "SMP102 epochs 0-2 have one order on both ranks" in said
    if program is NOTEBOOK:  # torch tells one error only: this one, or that of the rank it leaves
        assert "Root Cause (first observed failure)" in said
        assert "rank 1 died: it did not come to its end." in said
    else:
        assert "ValueError: planted" in said
    if program is ITSELF:  # torch and accelerate catch what a function raises that they start
        assert "rank 1 died at train.py:" in said


def test_ranks_on_gpus_are_recorded_alike(tmp_path: Path) -> None:
    """The backend and where batches are computed on are the program's business."""
    if not torch.cuda.is_available():
        pytest.skip("no GPU is at hand")
    command, program = LAUNCHERS["torchrun"]
    whole = [*TRACE, "--", *command.split(), "train.py"]
    environment = {**os.environ, "ON_GPUS": ""}
    status, said = run(tmp_path, program, [*whole, "good"], environment)
    assert (status, f"Nothing wrong was seen. {RECORDED}" in said) == (0, True), said
    status, said = run(tmp_path, program, [*whole, "bad"], environment)
    assert (status, RECORDED in said) == (1, True), said
    assert "SMP102 epochs 0-2 have one order on both ranks" in said


@pytest.mark.parametrize("name", ["mpirun", "srun"])
def test_each_task_may_trace_itself(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """What one of them writes does not keep the other from starting; the records are one run."""
    if why_not(name):
        pytest.skip(why_not(name))
    environment = request.getfixturevalue("slurm") if name == "srun" else {**os.environ}
    command, program = LAUNCHERS[name]
    started = command.removesuffix(sys.executable).split()
    traced = [*started, *TRACE, "--keep", "kept", "--", sys.executable, "train.py"]
    status, said = run(tmp_path, program, [*traced, "good"], environment)
    assert status == 0, said
    status, said = run(tmp_path, program, [*TRACE, "merge", "kept"], environment)
    assert (status, f"Nothing wrong was seen. {RECORDED}" in said) == (0, True), said
    shutil.rmtree(tmp_path / "kept")
    status, said = run(tmp_path, program, [*traced, "bad"], environment)
    assert status != 0
    assert "ValueError: planted" in said
