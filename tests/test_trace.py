"""Trace finds planted bugs in programs that know nothing of it, and ends whatever it is given."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from programs import HEADER
from sampler_lint.cli import main
from sampler_lint.cli import trace as cli_trace
from sampler_lint.harness import HarnessError, plot
from sampler_lint.harness.command import startable
from sampler_lint.harness.diagnosis import diagnose
from sampler_lint.harness.differences import compare
from sampler_lint.harness.runs import Run
from sampler_lint.harness.trace import trace as run_trace

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture
def observed(tmp_path: Path, gloo_session):
    """Run a program that begins with ``HEADER``; what is seen of it, and the run."""

    def run(body: str, world_size: int = 2, timeout: float = 20.0):
        script = tmp_path / "train.py"
        script.write_text(HEADER + textwrap.dedent(body))
        done: Run = gloo_session.run(script, world_size=world_size, timeout=timeout)
        return diagnose(done), done

    return run


# As Lightning wraps a sampler: in a dataset of its own for the DistributedSampler that it is.
SHARED_TWICE = """
    class Mine(Sampler):
        def __init__(self): self.me, self.all, self.epoch = rank, world, 0
        def set_epoch(self, epoch): self.epoch = epoch
        def __iter__(self):
            g = torch.Generator().manual_seed(self.epoch)
            return iter(torch.randperm(100, generator=g).tolist()[self.me :: self.all])
        def __len__(self): return sum(1 for _ in self)
    class Listed(Dataset):
        def __init__(self, sampler): self._sampler = sampler
        def __len__(self): return len(self._sampler)
    class Wrapper(DistributedSampler):
        def __init__(self, sampler): super().__init__(Listed(sampler), world, rank, shuffle=False)
        def set_epoch(self, epoch): self.dataset._sampler.set_epoch(epoch)
        def __iter__(self):
            order = list(self.dataset._sampler)
            return (order[index] for index in super(Wrapper, self).__iter__())
    s = Wrapper(Mine())
    read(DataLoader(TensorDataset(torch.arange(100)), sampler=s, batch_size=5), 2, s)
"""

# Each: the program, the code (None: it is right), words of the message.
BUGS = {
    "set_epoch is never called": (
        "s = shard(); read(DataLoader(data, sampler=s, batch_size=9))",
        "SMP102",
        "epochs 0-2 have one order on both ranks: no `set_epoch` call reached DistributedSampler",
    ),
    "set_epoch is called": (
        "s = shard(); read(DataLoader(data, sampler=s, batch_size=9), 3, s)",
        None,
        "",
    ),
    "set_epoch is called with one value": (
        """
        s = shard(); l = DataLoader(data, sampler=s, batch_size=9)
        for epoch in range(3):
            s.set_epoch(4)
            read(l, 1)
        """,
        "SMP103",
        "`set_epoch` left the value 4 for all of them",
    ),
    "set_epoch comes after the iterator": (
        """
        s = shard(); l = DataLoader(data, sampler=s, batch_size=9)
        for epoch in range(4):
            for step, batch in enumerate(l):
                if not step: s.set_epoch(epoch)
        """,
        "SMP103",
        "epochs 0 and 1 have one order on both ranks: `set_epoch` is called after",
    ),
    "set_epoch of the dataset": (
        """
        class Data(TensorDataset):
            def set_epoch(self, epoch): pass
        data = Data(torch.arange(101))
        s = shard()
        read(DataLoader(data, sampler=s, batch_size=9), 3, data)
        """,
        "SMP103",
        "`set_epoch` is called on the dataset",
    ),
    "set_epoch of a sampler that the batch sampler does not read": (
        """
        s = shard()
        read(DataLoader(data, batch_sampler=BatchSampler(shard(), 9, False)), 3, s)
        """,
        "SMP101",
        "that this loader does not read; call it on the DistributedSampler in "
        "`loader.batch_sampler`",
    ),
    "set_epoch of the inner sampler, the batch sampler has the epoch": (
        """
        class Buckets(Sampler):
            epoch = 0
            def __init__(self, sampler): self.sampler = sampler
            def set_epoch(self, epoch): self.epoch = epoch
            def __len__(self): return 10
            def __iter__(self):
                g = torch.Generator().manual_seed(self.epoch)
                batches = [list(range(i, 101, 20)) for i in range(rank, 20, 2)]
                return iter([batches[i] for i in torch.randperm(10, generator=g)])
        s = shard()
        read(DataLoader(data, batch_sampler=Buckets(s)), 3, s)
        """,
        "SMP101",
        "`set_epoch` reaches DistributedSampler, but Buckets carries the epoch",
    ),
    "set_epoch of the inner sampler, which makes the order": (
        """
        s = shard()
        read(DataLoader(data, batch_sampler=BatchSampler(s, 9, False)), 3, s)
        """,
        None,
        "",
    ),
    "set_epoch of a wrapper that keeps it": (
        """
        class Wrapper(Sampler):
            def __init__(self, sampler): self.sampler = sampler
            def set_epoch(self, epoch): pass
            def __iter__(self): return iter(self.sampler)
            def __len__(self): return len(self.sampler)
        w = Wrapper(shard())
        read(DataLoader(data, sampler=w, batch_size=9), 3, w)
        """,
        "SMP104",
        "`set_epoch` of Wrapper does not reach DistributedSampler",
    ),
    "set_epoch stored and never read": (
        """
        class Mine(DistributedSampler):
            def __iter__(self):
                g = torch.Generator().manual_seed(self.seed)
                return iter(torch.randperm(101, generator=g).tolist()[rank::world])
            def __len__(self): return len(range(rank, 101, world))
        s = Mine(data, world, rank)
        read(DataLoader(data, sampler=s, batch_size=9), 3, s)
        """,
        "SMP104",
        "the order does not depend on it",
    ),
    "a sampler with one order and no set_epoch": (
        """
        class Mine(Sampler):
            shuffle = True
            def __init__(self): self.shuffle = True
            def __iter__(self):
                g = torch.Generator().manual_seed(0)
                return iter(torch.randperm(101, generator=g).tolist()[rank::world])
            def __len__(self): return len(range(rank, 101, world))
        read(DataLoader(data, sampler=Mine(), batch_size=9))
        """,
        "SMP104",
        "Mine has no `set_epoch`",
    ),
    "a sampler that sorts on purpose": (
        """
        class ByLength(Sampler):
            def __iter__(self): return iter(sorted(range(rank, 101, world), key=lambda i: i % 7))
            def __len__(self): return len(range(rank, 101, world))
        read(DataLoader(data, sampler=ByLength(), batch_size=9))
        """,
        None,
        "",
    ),
    "evaluation keeps its order": (
        """
        s = shard(); val = shard()
        l = DataLoader(data, sampler=s, batch_size=9)
        w = torch.ones(1, requires_grad=True)
        for epoch in range(3):
            s.set_epoch(epoch)
            for (x,) in l: (w * x.sum()).sum().backward()
            for (x,) in DataLoader(data, sampler=val): w * x
            for (x,) in DataLoader(data): w * x
        """,
        None,
        "",
    ),
    "seeds differ by rank": (
        "s = shard(seed=rank + 5); read(DataLoader(data, sampler=s, batch_size=9), 3, s)",
        "SMP202",
        "of the indices: the sampler's seed is 5 on rank 0, 6 on rank 1",
    ),
    "a generator differs by rank": (
        """
        class Mine(Sampler):
            def __init__(self): self.g = torch.Generator().manual_seed(rank)
            def __iter__(self):
                return iter(torch.randperm(101, generator=self.g).tolist()[rank::world])
            def __len__(self): return len(range(rank, 101, world))
        read(DataLoader(data, sampler=Mine(), batch_size=9))
        """,
        "SMP202",
        "each rank shuffles differently",
    ),
    "nothing shards": (
        "torch.manual_seed(rank); read(DataLoader(data, shuffle=True, batch_size=9))",
        "SMP502",
        "ranks 0 and 1 share 100 % of the indices: nothing shards this loader",
    ),
    "nothing shards, which is right in evaluation": (
        "for epoch in range(2):\n    for batch in DataLoader(data, batch_size=9): pass",
        None,
        "",
    ),
    "a rank has less to evaluate": (
        "for batch in DataLoader(Subset(data, range(50 * rank, 50 + 40 * rank)), 10): pass",
        None,
        "",
    ),
    "nothing shards, and the program stops early": (
        """
        torch.manual_seed(0)
        for step, batch in enumerate(DataLoader(data, shuffle=True, batch_size=9)):
            torch.ones(1, requires_grad=True).backward()
            if step == 5: break
        """,
        "SMP502",
        "nothing shards this loader",
    ),
    "one rank for all": (
        "s = shard(rank=0); read(DataLoader(data, sampler=s, batch_size=9), 3, s)",
        "SMP502",
        "the sampler's rank is 0 and 0 there",
    ),
    "too many replicas": (
        "s = shard(num_replicas=4); read(DataLoader(data, sampler=s, batch_size=9), 3, s)",
        "SMP502",
        "the sampler shards over 4, but there are 2 ranks",
    ),
    "the ranks leave samples out, perhaps on purpose": (
        """
        class Mine(Sampler):
            def __iter__(self): return iter(range(rank * 33, rank * 33 + 33))
            def __len__(self): return 33
        read(DataLoader(data, sampler=Mine(), batch_size=3))
        """,
        None,
        "",
    ),
    "big data, nothing shards": (
        """
        data = TensorDataset(torch.arange(60_000))
        torch.manual_seed(rank); read(DataLoader(data, shuffle=True, batch_size=5000))
        """,
        "SMP502",
        "ranks 0 and 1 share 100 % of the indices",
    ),
    "big data, seeds differ by rank": (
        """
        data = TensorDataset(torch.arange(60_000))
        s = shard(seed=rank); read(DataLoader(data, sampler=s, batch_size=5000), 2, s)
        """,
        "SMP202",
        "of the indices",
    ),
    "big data, one order": (
        """
        data = TensorDataset(torch.arange(60_000))
        s = shard(); read(DataLoader(data, sampler=s, batch_size=5000), 2)
        """,
        "SMP102",
        "epochs 0 and 1",
    ),
    "big data, right": (
        """
        data = TensorDataset(torch.arange(60_001))
        s = shard(); read(DataLoader(data, sampler=s, batch_size=5000), 2, s)
        """,
        None,
        "",
    ),
    "each rank has data of its own": (
        "data = TensorDataset(torch.arange(101) + 101 * rank); read(DataLoader(data, 9, True))",
        None,
        "",
    ),
    "samples are drawn with replacement": (
        "read(DataLoader(data, sampler=RandomSampler(data, True, 101), batch_size=9))",
        None,
        "",
    ),
    "samples are repeated on purpose": (
        """
        class Augmented(Sampler):
            def __init__(self): self.num_repeats = 3
            def __iter__(self):
                g = torch.Generator().manual_seed(torch.initial_seed() % 7)
                order = torch.randperm(101, generator=g).repeat_interleave(3).tolist()
                return iter(order[rank::world])
            def __len__(self): return len(range(rank, 303, world))
        torch.manual_seed(1)
        read(DataLoader(data, sampler=Augmented(), batch_size=9), 1)
        """,
        None,
        "",
    ),
    "each group is padded by itself": (
        """
        class Grouped(Sampler):
            def __iter__(self):
                groups = [list(range(first, 101, 20)) for first in range(20)]
                order = [i for one in groups for i in (one + one[: -len(one) % 4])]
                return iter(order[rank::world])
            def __len__(self): return 80
        read(DataLoader(data, sampler=Grouped(), batch_size=4), 1)
        """,
        None,
        "",
    ),
    "two ranks share a shard as they have to": (
        """
        dist.init_process_group("gloo")
        pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        dist.barrier()  # a rank that leaves while others still connect breaks their connection
        s = shard(num_replicas=2, rank=rank // 2)
        read(DataLoader(data, sampler=s, batch_size=9), 2, s)
        dist.destroy_process_group()
        """,
        None,
        "",
    ),
    "a rank has one batch less": (
        "read(DataLoader(Subset(data, range(50 * rank, 50 + 40 * rank)), batch_size=10))",
        "SMP306",
        "epoch 0: rank 0 took 5, rank 1 took 4 steps",
    ),
    "a rank stops first in an iterable dataset": (
        """
        class Stream(IterableDataset):
            def __iter__(self): return iter(range(100 * rank, 90 * rank + 50))
        read(DataLoader(Stream(), batch_size=10), 1)
        """,
        "SMP306",
        "rank 0 took 5, rank 1 took 4 steps",
    ),
    "uneven inputs under Join": (
        """
        from torch.distributed.algorithms.join import Join
        dist.init_process_group("gloo")
        with Join([torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))]):
            read(DataLoader(Subset(data, range(50 * rank, 50 + 40 * rank)), batch_size=10), 1)
        dist.destroy_process_group()
        """,
        None,
        "",
    ),
    "a batch sampler that drops its last batch": (
        """
        s = shard()
        read(DataLoader(data, batch_sampler=BatchSampler(s, 9, True)), 2, s)
        """,
        None,
        "",
    ),
    "an epoch that is taken again": (
        """
        s = shard(); l = DataLoader(data, sampler=s, batch_size=9)
        for epoch in (0, 1, 1, 2):
            s.set_epoch(epoch)
            read(l, 1)
        """,
        None,
        "",
    ),
    "several passes under one epoch": (
        """
        s = shard(); l = DataLoader(data, sampler=s, batch_size=9)
        for epoch in range(2):
            s.set_epoch(epoch)
            read(l, 2)
        """,
        None,
        "",
    ),
    "a sampler that shares out among too many": (
        "s = shard(num_replicas=4); read(DataLoader(data, sampler=s, batch_size=9), 3, s)",
        "SMP502",
        "50 % of the samples are read by no rank: the sampler shards over 4, but there are 2",
    ),
    "a sampler of its own that shares out among too many": (
        """
        class Mine(Sampler):
            def __init__(self): self.num_replicas, self.epoch = 3, 0
            def set_epoch(self, epoch): self.epoch = epoch
            def __len__(self): return 101
            def __iter__(self):
                g = torch.Generator().manual_seed(9 * self.epoch + rank)
                return iter(torch.randperm(101, generator=g).tolist())
        s = Mine()
        read(DataLoader(data, sampler=s, batch_size=9), 3, s)
        """,
        "SMP502",
        "ranks 0 and 1 share 100 % of the indices: the sampler shards over 3, but there are",
    ),
    "a sampler that shares out by itself, below a wrapper that shares out": (
        SHARED_TWICE,
        "SMP502",
        "50 % of the samples are read by no rank: Wrapper and Mine both share them out; keep one",
    ),
    "the same, read by what asks for no more than the loader's length": (
        SHARED_TWICE.replace(
            "read(DataLoader(TensorDataset(torch.arange(100)), sampler=s, batch_size=5), 2, s)",
            """
    l = DataLoader(TensorDataset(torch.arange(100)), sampler=s, batch_size=5)
    w = torch.ones(1, requires_grad=True)
    for epoch in range(2):
        s.set_epoch(epoch)
        for _, (x,) in zip(range(len(l)), l): (w * x.sum()).sum().backward()
            """,
        ),
        "SMP502",
        "50 % of the samples are read by no rank: Wrapper and Mine both share them out; keep one",
    ),
    "the same wrapper around a sampler that shares nothing out": (
        SHARED_TWICE.replace("[self.me :: self.all]", ""),
        None,
        "",
    ),
    "torch's own order, seeded anew before every epoch": (
        """
        mine, g = Subset(data, range(rank, 101, 2)), torch.Generator()
        l = DataLoader(mine, sampler=RandomSampler(mine, generator=g), batch_size=3)
        for epoch in range(3):
            g.manual_seed(0)
            read(l, 1)
        """,
        "SMP102",
        "RandomSampler takes no epoch, and its generator gets the same seed before each",
    ),
    "too few samples to tell": (
        "read(DataLoader(TensorDataset(torch.arange(5)), sampler=SequentialSampler(range(5))))",
        None,
        "",
    ),
    "a length that is not true": (
        """
        class Mine(DistributedSampler):
            def __len__(self): return 101
        s = Mine(data, world, rank)
        read(DataLoader(data, sampler=s, batch_size=9), 2, s)
        """,
        "SMP304",
        "len() is 12, but 6 batches were yielded",
    ),
}


@pytest.mark.parametrize(("body", "code", "words"), BUGS.values(), ids=BUGS)
def test_observed(observed, body, code, words):
    found, run = observed(body, world_size=4 if "pairs" in body else 2)
    assert run.finished, run.trouble
    assert [one.code for one in found] == ([code] if code else []), found
    if code:
        assert words in found[0].message
        assert Path(found[0].path).name == "train.py"
        assert any("built here" in one.text for one in found[0].evidence)
        assert any("iterated here" in one.text for one in found[0].evidence)


def test_ranks_that_are_concerned_are_named(observed):
    body = """
    s = shard(); l = DataLoader(data, sampler=s, batch_size=9)
    for epoch in range(3):
        if rank == 0: s.set_epoch(epoch)
        read(l, 1)
    """
    (order,) = [one for one in observed(body)[0] if one.code == "SMP102"]
    assert order.message.startswith("epochs 0-2 have one order on rank 1: no `set_epoch` call")
    body = body.replace("rank == 0", "rank in (0, 3)")
    (order,) = [one for one in observed(body, world_size=4)[0] if one.code == "SMP102"]
    assert order.message.startswith("epochs 0-2 have one order on ranks 1 and 2: no `set_epoch`")


def test_loaders_that_one_line_makes_in_turn_are_told_once(observed):
    body = """
    for part in range(3):
        l = DataLoader(data, batch_size=9, shuffle=True)
        read(l, 2)
    """
    assert [one.code for one in observed(body)[0]].count("SMP502") == 1


# -- the command


def trace(*arguments: str | Path, cwd: Path, status: int, seconds: float = 60) -> str:
    """What ``sampler-lint trace`` prints; it ends in time, with this exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "sampler_lint", "trace", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status != 2 else done.stdout + done.stderr


def gone(pid: int) -> bool:
    """Whether a process ends within a moment."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


#: Starts two ranks that share one import of torch, which torchrun would do twice.
LAUNCHER = """
import os, socket, sys, torch
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
children = []
for rank in range(2):
    child = os.fork()
    if not child:
        os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1")
        os.environ.update(MASTER_PORT=str(port))
        with open("train.py") as file:
            exec(compile(file.read(), os.path.abspath("train.py"), "exec"))
        sys.exit()
    children.append(child)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@pytest.fixture
def project(tmp_path: Path):
    """Put a program beside a launcher that runs it on two ranks."""

    def write(body: str) -> Path:
        (tmp_path / "launch.py").write_text(LAUNCHER)
        (tmp_path / "train.py").write_text(HEADER + textwrap.dedent(body))
        return tmp_path

    return write


READS = """
import torch
from torch.utils.data import DataLoader
for batch in DataLoader(range(20), batch_size=4): pass
"""

STARTS = """
import os, subprocess, sys
given = {"PATH": os.environ["PATH"], "PYTHONPATH": "mine"}
how, command = sys.argv[1], [sys.executable, "reads.py"]
if how == "run": subprocess.run(command, env=given, check=True)
if how == "spawn": os.waitpid(os.posix_spawn(sys.executable, command, given), 0)
if how == "execve": os.execve(sys.executable, command, given)
os.environ.pop("PYTHONPATH")
if how == "call": subprocess.call(command)
if how == "execv": os.execv(sys.executable, command)
"""


def test_it_is_told_how_far_a_run_is(project, tmp_path, monkeypatch):
    monkeypatch.setattr("sampler_lint.harness.trace.FIRST_TOLD", 0.1)
    root = project(
        """
        for batch in DataLoader(data, batch_size=10):
            time.sleep(0.3)
        """
    )
    kept, told = tmp_path / "kept", []
    kept.mkdir()
    run_trace([sys.executable, "launch.py"], kept, cwd=root, timeout=60, tell=told.append)
    both = r"\d+ s: rank 0: pass 1, \d+ batches, rank 1: pass 1, \d+ batches"
    assert any(re.fullmatch(both, one) for one in told), told
    counts = [int(one) for one in re.findall(r"rank 0: pass 1, (\d+)", " ".join(told))]
    assert counts == sorted(counts)


def test_progress_is_told_on_terminals_only(monkeypatch, capsys):
    assert cli_trace._teller() is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    cli_trace._teller()("10 s: rank 0: pass 1, 5 batches")
    assert capsys.readouterr().err == "sampler-lint trace: 10 s: rank 0: pass 1, 5 batches\n"


OTHER_WAYS = ("execve", "spawn", "call", "execv")


@pytest.mark.parametrize(
    "how", ["run", *(pytest.param(how, marks=pytest.mark.whole) for how in OTHER_WAYS)]
)
def test_a_program_given_a_path_of_its_own_is_recorded(tmp_path, how):
    (tmp_path / "reads.py").write_text(READS)
    (tmp_path / "starts.py").write_text(STARTS)
    kept = tmp_path / "kept"
    kept.mkdir()
    done = run_trace([sys.executable, "starts.py", how], kept, cwd=tmp_path, timeout=60)
    (rank,) = done.run.ranks
    assert (done.status, rank.log.loaders[0].passes[0].yielded) == (0, 5)
    assert done.unrecorded == []


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="nobody else can be looked at")
@pytest.mark.parametrize(
    ("start", "why"),
    [
        ("PYTHONPATH=mine exec {}", "PYTHONPATH was replaced by mine; append"),
        pytest.param(
            *("unset PYTHONPATH; exec {}", "PYTHONPATH was removed from its environment"),
            marks=pytest.mark.whole,
        ),
        ("exec {} -I", "Python is run with -I"),
    ],
)
def test_a_program_that_cannot_be_recorded_is_named(tmp_path, capfd, monkeypatch, start, why):
    monkeypatch.chdir(tmp_path)
    # It stays until it has been looked at.
    (tmp_path / "reads.py").write_text(READS + "import time; time.sleep(1.5)\n")
    shell = start.format(sys.executable) + " reads.py"
    assert main(["trace", "--", "sh", "-c", shell]) == 2
    out, err = capfd.readouterr()
    assert "Not recorded: `" in out
    assert why in out
    assert "nothing was recorded: torch ran without the recorder, see above" in err


def test_a_program_beside_the_interpreter_is_found(tmp_path, monkeypatch):
    """As in ``.venv/bin/sampler-lint trace -- torchrun …``; what is on ``PATH`` goes first."""
    ours, first = tmp_path / "ours", tmp_path / "first"
    for folder in (ours, first):
        folder.mkdir()
        for name in ("launcher", "other")[: 1 + (folder == ours)]:
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(ours / "python"))
    found = {"PATH": str(first)}
    assert startable(["launcher", "x"], found) == ["launcher", "x"]
    assert startable(["other", "x"], found) == [str(ours / "other"), "x"]
    assert startable(["nowhere"], found) == ["nowhere"]
    assert startable(["./other"], found) == ["./other"]
    assert startable(["launcher"], {}) == [str(ours / "launcher")]


@pytest.mark.whole  # `test_launchers.py` runs torchrun, too
def test_guide_shows_what_torchrun_gives(tmp_path):
    """The script and the transcript of the guide, which is an unmodified training script."""
    guide = (DOCS / "trace.md").read_text("utf-8")
    script, transcript, *_ = re.findall(r"```(?:python|console)\n(.*?)```", guide, re.DOTALL)
    (tmp_path / "train.py").write_text(script, "utf-8")
    shown, _, expected = transcript.partition("\n")
    command = shown.removeprefix("$ sampler-lint trace ").split()
    picture, kept = tmp_path / "order.html", tmp_path / "kept"
    out = trace("--keep", kept, *command, cwd=tmp_path, status=1)
    # One short gloo program in seven is aborted by torch 2.13 while Python goes down.
    said = out.replace("The command failed: exit status 1.\n", "")
    assert said == expected
    # The page stands alone: nothing is loaded.
    page = picture.read_text("utf-8")
    assert page.count("<svg") == 2
    assert "rank 1 epoch 3" in page
    assert "http" not in page
    assert "<script" not in page
    # Every rank left its own record, and the report can be had again.
    assert {path.name.split(".")[1] for path in kept.glob("*.jsonl")} == {"rank0", "rank1"}
    again = trace("--report", kept, cwd=tmp_path, status=1)
    assert again == said[said.index("train.py:19:1") :]
    words = trace("--keep", kept, "--", "true", cwd=tmp_path, status=2)
    assert "holds the records of another run" in words
    # Records of two nodes are merged, wherever they lie.
    for rank in range(2):
        node = tmp_path / f"node{rank}"
        node.mkdir()
        for path in kept.glob(f"*.rank{rank}.*"):
            shutil.copy(path, node)
    nodes = [tmp_path / "node0", tmp_path / "node1"]
    assert "one order on both ranks" in trace("--report", *nodes, cwd=tmp_path, status=1)
    assert "No record of rank 1 of 2." in trace("--report", nodes[0], cwd=tmp_path, status=1)


def test_picture_as_png(observed, tmp_path):
    pytest.importorskip("PIL")
    found, run = observed("s = shard(); read(DataLoader(data, sampler=s, batch_size=9))")
    plot.save(run, [one.message for one in found], str(tmp_path / "order.png"))
    assert (tmp_path / "order.png").read_bytes().startswith(b"\x89PNG")


def test_picture_shows_repeated_orders_and_shares(observed):
    _, run = observed("s = shard(seed=rank); read(DataLoader(data, sampler=s, batch_size=9), 2)")
    order, shares = plot.draw(run)
    cells = {row.label: row.cells for row in order.rows}
    assert cells["rank 0 epoch 0"] == cells["rank 0 epoch 1"] != cells["rank 1 epoch 0"]
    reads = [set(rank.log.loaders[0].passes[0].indices) for rank in run.ranks]
    kinds = [sum(index in read for read in reads) for index in range(101)]
    drawn = [2 if cell == "#d62728" else int(cell != "#ffffff") for cell in shares.rows[0].cells]
    assert drawn == kinds
    assert {0, 1, 2} == set(kinds)


def test_picture_shows_who_took_fewer_steps(observed, tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    _, run = observed("read(DataLoader(data, sampler=range(61 - rank), batch_size=5), 1)")
    order, _ = plot.draw(run)
    assert [row.note for row in order.rows] == ["13 steps", "12 steps"]
    assert [row.length for row in order.rows] == [1, 12 / 13]
    page = plot.to_html([order], [], run)
    (scale,) = re.findall(r"scale\(([\d.]+) ", page)
    ends = {0: 0.0, 1: 0.0}
    for left, number, width in re.findall(r"M([\d.]+) (\d+)h([\d.]+)", page):
        end = float(scale) * (float(left) + float(width))
        ends[int(number)] = max(ends[int(number)], end)
    assert ends == pytest.approx({0: 800, 1: 800 * 12 / 13}, abs=0.1)

    plot.save(run, [], str(tmp_path / "order.png"))
    with pillow.open(tmp_path / "order.png") as picture:

        def bars_at(left: int) -> int:
            pixels = [picture.getpixel((left, top)) for top in range(picture.height)]
            colored = [len(set(pixel)) > 1 for pixel in pixels]
            return sum(one for one, _ in itertools.groupby(colored))

        assert (bars_at(140), bars_at(920)) == (3, 1), "ranks and shares; one rank"


def test_missing_pillow_is_said_before_the_run(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HarnessError, match=r"pip install 'sampler-lint\[plot\]'"):
        plot.check("order.png")
    plot.check("order.html")


def test_json_stands_alone_and_says_all(project):
    folder = project(
        """
        print("training")
        s = shard()
        read(DataLoader(data, sampler=s, batch_size=9), 2, s)
        """
    )
    command = ("--output-format", "json", "--", sys.executable, "launch.py")
    report = json.loads(trace(*command, cwd=folder, status=0))
    assert report["findings"] == []
    assert (report["status"], report["ended_by"], report["world_size"]) == (0, None, 2)
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1]
    (loader,) = report["ranks"][1]["loaders"]
    assert loader["samplers"] == ["BatchSampler", "DistributedSampler"]
    assert [one["batches"] for one in loader["epochs"]] == [6, 6]
    assert loader["epochs"][0]["order"] != loader["epochs"][1]["order"]
    assert [call["value"] for call in report["ranks"][0]["set_epoch"]] == [0, 1]
    assert report["ranks"][0]["set_epoch"][0]["time"] > 1.7e9


UNEVEN = """
    dist.init_process_group("gloo")
    for batch in DataLoader(Subset(data, range(50 * rank, 50 + 40 * rank)), batch_size=10):
        torch.ones(1, requires_grad=True).backward()
        dist.all_reduce(torch.ones(1))
    if rank:
        time.sleep(1000)  # it has taken its steps
"""


CUT_BY_HAND = """
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    whole = TensorDataset(torch.arange(96.0).reshape(-1, 1))
    for (x,) in DataLoader(whole, batch_size=8):
        optimizer.zero_grad()
        model(PART).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("part", "codes"),
    [pytest.param("x.chunk(2)[rank]", set(), marks=pytest.mark.whole), ("x", {"SMP502"})],
)
def test_what_a_model_is_given_is_recorded_as_torch_is_imported(project, tmp_path, part, codes):
    kept = tmp_path / "kept"
    kept.mkdir()
    folder = project(CUT_BY_HAND.replace("PART", part))
    done = run_trace([sys.executable, "launch.py"], kept, cwd=folder, timeout=60)
    assert {one.code for one in diagnose(done.run)} == codes


def test_rank_that_waits_for_ever_is_named(project):
    folder = project(UNEVEN)
    out = trace("--stall", "2", "--", sys.executable, "launch.py", cwd=folder, status=1)
    assert "SMP306 epoch 0: rank 0 took 5, rank 1 took 4 steps" in out
    assert "The command was ended: no rank read anything for 2 seconds." in out
    waits = len(HEADER.splitlines()) + 5
    assert f"rank 0 waited for ever at train.py:{waits}." in out
    assert f"rank 1 waited for ever at train.py:{waits + 2}." in out


def test_certain_wait_is_ended_unasked(project, tmp_path, monkeypatch):
    monkeypatch.setattr("sampler_lint.harness.trace.STALL", 2.0)
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    kept = tmp_path / "kept"
    kept.mkdir()
    folder = project(UNEVEN)
    done = run_trace([sys.executable, "launch.py"], kept, cwd=folder, timeout=40)
    assert done.ended_by == "a rank waits for ever for one that took fewer steps"
    assert [rank.outcome for rank in done.run.ranks] == ["hung", "hung"]


def test_timeout_is_no_finding(project):
    folder = project("read(DataLoader(data, sampler=shard()), 1); time.sleep(1000)")
    out = trace("--timeout", "15", "--", sys.executable, "launch.py", cwd=folder, status=2)
    assert "The command was ended: its 15 seconds were up." in out
    assert f"rank 0 was at train.py:{len(HEADER.splitlines()) + 1} when its 15 seconds" in out
    assert "Nothing wrong was seen." in out


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.whole)]
)
def test_interrupt_ends_the_command_and_reports(project, number):
    folder = project(
        """
        read(DataLoader(data, sampler=shard(), batch_size=9), 2)
        open(f"{rank}.ready", "w").write(str(os.getpid()))
        time.sleep(1000)
        """
    )
    tool = subprocess.Popen(
        [sys.executable, "-m", "sampler_lint", "trace", "--", sys.executable, "launch.py"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    files = [folder / "0.ready", folder / "1.ready"]
    until = time.monotonic() + 40
    while not all(file.exists() and file.read_text() for file in files):
        assert time.monotonic() < until
        time.sleep(0.05)
    tool.send_signal(number)
    out, _ = tool.communicate(timeout=30)
    assert tool.returncode == 1, out
    assert "SMP102 epochs 0 and 1 have one order on both ranks" in out
    assert "The command was ended: it was interrupted." in out
    assert all(gone(int(file.read_text())) for file in files)


def test_crash_keeps_what_was_seen(project):
    folder = project(
        """
        read(DataLoader(data, sampler=shard(), batch_size=9), 2)
        data.nothing
        """
    )
    out = trace("--", sys.executable, "launch.py", cwd=folder, status=1)
    assert "SMP102" in out
    assert "The command failed: exit status 1." in out
    place = len(HEADER.splitlines()) + 3
    assert f"rank 1 died at train.py:{place}: AttributeError: 'TensorDataset' object" in out


def test_exit_behind_pythons_back_and_kill_keep_what_was_seen(project):
    folder = project(
        """
        for epoch in range(3):
            for batch in DataLoader(data, sampler=shard(shuffle=False), batch_size=9):
                if epoch == 2 and rank: os._exit(3)
                if epoch == 2: os.kill(os.getpid(), 9)
        """
    )
    command = ("--output-format", "json", "--", sys.executable, "launch.py")
    report = json.loads(trace(*command, cwd=folder, status=2))
    for rank in report["ranks"]:
        epochs = [one["batches"] for loader in rank["loaders"] for one in loader["epochs"]]
        assert epochs == [6, 6, 1]


# What a program can do to a tool that runs it; none of these needs torch.
HOSTILE = {
    "hangs": ("import time; print('on', flush=True); time.sleep(1000)", 2),
    "ignores signals": (
        "import signal, time\n"
        "for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):\n"
        "    signal.signal(one, signal.SIG_IGN)\n"
        "time.sleep(1000)",
        2,
    ),
    "forks": ("import os, time\nfor _ in range(3): os.fork()\ntime.sleep(1000)", 2),
    "leaves through os._exit": ("import os; os._exit(0)", 2),
    "stops itself": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", 2),
    "prints a gigabyte": (
        "import sys\nblock = 'x' * (1 << 20)\nfor _ in range(1024): sys.stdout.write(block)",
        2,
    ),
}


@pytest.mark.parametrize(("program", "status"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_program_is_ended(tmp_path, program, status):
    mark = f"hostile-{os.getpid()}"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sampler_lint", "trace", "--timeout", "2", "--"),
            *(sys.executable, "-c", program, mark),
        ],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=40,
        check=False,
    )
    assert done.returncode == status
    assert "nothing was recorded" in done.stderr
    commands = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
    assert not [line for line in commands if mark.encode() in line]


@pytest.mark.parametrize("detached", [False, True])
def test_child_left_behind_is_killed(tmp_path, detached):
    program = (
        "import subprocess; child = subprocess.Popen(['sleep', '1000'], "
        f"start_new_session={detached}); open('child', 'w').write(str(child.pid))"
    )
    out = trace("--", sys.executable, "-c", program, cwd=tmp_path, status=2)
    assert "1 process left behind by it had to be killed." in out
    assert gone(int((tmp_path / "child").read_text()))


def test_other_children_of_the_caller_are_left_alone(tmp_path):
    with subprocess.Popen(["sleep", "1000"]) as other:
        done = run_trace([sys.executable, "-c", "pass"], tmp_path, cwd=tmp_path)
        assert done.status == 0
        assert done.left_behind == 0
        assert other.poll() is None
        other.kill()


def test_a_rank_that_ends_while_another_waits_for_it_is_named(observed):
    found, run = observed(
        """
        s = shard()
        loader = DataLoader(data, sampler=s, batch_size=9)
        dist.init_process_group("gloo")
        for epoch in range(3):
            if rank and epoch == 2: sys.exit(0)
            s.set_epoch(epoch)
            for batch in loader:
                torch.ones(1, requires_grad=True).backward()
                dist.all_reduce(torch.ones(1))
        """
    )
    assert [rank.outcome for rank in run.ranks] == ["died", "finished"]
    (one,) = [one for one in found if one.code == "SMP306"]
    assert "a rank ends while others wait for it: they are at train.py:" in one.message
    assert "and its end (rank 1)" in one.message


@pytest.mark.parametrize("name", ["SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK"])
def test_tasks_of_a_launcher_share_a_folder(tmp_path, name):
    quick = [sys.executable, "-c", ""]
    for number in ("0", "1"):
        environment = {name: number}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(name, number)
            assert run_trace(quick, tmp_path, env=environment).status == 0


def test_wrong_calls(tmp_path):
    cases = [
        (("--", "no-such-command"), "no-such-command cannot be started"),
        ((), "give a command after --"),
        (("--report", tmp_path), "no records here"),
        (("--plot", "a.gif", "--", "true"), "ends in .html or .png"),
        (("--timeout", "0", "--", "true"), "not a positive number of seconds"),
        (("--", "true"), "nothing was recorded"),
        (("--", "false"), "failed (exit status 1) before any loader was read"),
        (("--resume-check", "--report", tmp_path), "--report cannot be combined with --resume"),
        (("--resume-check", "--stall", "9", "--", "true"), "--stall cannot be combined with"),
        (("--resume-check", "--all-indices", "--", "true"), "--all-indices cannot be combined"),
        (("--resume-check", "--plot", "a.html", "--", "true"), "--plot cannot be combined with"),
        (("--resume-check", "--resume-with", "'a", "--", "true"), "is no list of words: No clos"),
        (("--resume-check", "--stop-at", "0", "--", "true"), "'0' is not a positive number"),
        (("--stop-at", "3", "--", "true"), "--stop-at needs --resume-check"),
    ]
    for arguments, words in cases:
        told = trace(*arguments, cwd=tmp_path, status=2)
        assert words in told
        assert "Nothing wrong was seen" not in told


@pytest.mark.parametrize("line", ["{}", "[]", '{"event": "pass", "loader": 7}', "nonsense"])
def test_a_record_that_cannot_be_read_is_said(tmp_path, capsys, line):
    (tmp_path / "here.rank0.7.jsonl").write_text(f"{line}\n")
    for argv in (["trace", "--report"], ["report", "SMP102", "--before"], ["trace", "diff", "."]):
        if argv[1:] == ["diff", "."]:
            argv[-1] = str(tmp_path)
        assert main([*argv, str(tmp_path)]) == 2
        told = capsys.readouterr().err
        assert "a record cannot be read; it is damaged, or of another version" in told
        assert len(told.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--plot", "nowhere/x.html", "--", "true"],
            "nowhere/x.html: cannot be written: there is ",
        ),
        (["--plot", "folder.html", "--", "true"], "folder.html: cannot be written: is a folder"),
        (["--keep", "file", "--", "true"], "file: File exists"),
        (["true", "x"], "write -- before the command: sampler-lint trace -- true x"),
        (["--nothing", "--", "true"], "unrecognized arguments: --nothing"),
    ],
)
def test_what_cannot_be_is_said_before_the_command_runs(
    tmp_path, monkeypatch, capsys, arguments, told
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").touch()
    try:
        status = main(["trace", *arguments])
    except SystemExit as error:
        status = error.code
    assert status == 2
    assert told in capsys.readouterr().err


def test_two_runs_are_compared(project, tmp_path, capsys):
    """From the command on: alike, then with another seed, then with one epoch more."""
    folder = project("""
        seed = int(sys.argv[1])
        s = shard(seed=seed if seed < 2 else 0)
        read(DataLoader(data, sampler=s, batch_size=9), 2 + (seed == 3), s)
    """)
    for name, seed in (("a", 0), ("b", 0), ("c", 1), ("e", 3)):
        command = ["--keep", tmp_path / name, "--", sys.executable, "launch.py", seed]
        trace(*command, cwd=folder, status=0)
    assert main(["trace", "diff", f"{tmp_path}/a", f"{tmp_path}/b"]) == 0
    assert "Both runs read the same (24 batches), and nothing else" in capsys.readouterr().out
    assert main(["trace", "diff", f"{tmp_path}/a", f"{tmp_path}/c"]) == 1
    told = capsys.readouterr().out
    assert "rank 0, epoch 0, batch 0, place 0: sample" in told.splitlines()[0]
    assert "DistributedSampler.seed: 0 in the first run, 1 in the second" in told
    argv = ["trace", "diff", f"{tmp_path}/a", f"{tmp_path}/e", "--output-format", "json"]
    assert main(argv) == 1
    parting = json.loads(capsys.readouterr().out)["parting"]
    assert (parting["kind"], parting["epoch"], parting["first"], parting["second"]) == (
        *("length", 2, 2, 3),
    )
    assert main(["trace", "diff", f"{tmp_path}/a", f"{tmp_path}/nowhere"]) == 2
    assert "no records here" in capsys.readouterr().err


def test_the_first_difference_is_found(observed):
    """Of what the batches hold, of one index in the middle, of the epochs that were set."""
    body = """
        class Noisy(TensorDataset):
            def __getitem__(self, index): return index, random.random()
        random.seed(0)
        s = shard(); read(DataLoader(Noisy(torch.arange(101)), sampler=s, batch_size=9), 2, s)
    """
    _, first = observed(body)
    _, second = observed(body.replace("seed(0)", "seed(rank)"))
    parting = compare(first, second).parting
    assert (parting.kind, parting.rank, parting.epoch, parting.batch) == ("content", 1, 0, 0)
    assert "it is changed at random" in parting.message
    body = """
        random.seed(SEED); torch.manual_seed(0); torch.rand(SEED)
        rows = random.choices(range(9), k=30)
        labelled = TensorDataset(torch.arange(9)[rows], torch.arange(9)[rows] % 2)
        read(DataLoader(labelled, shuffle=True, batch_size=4), 2)
    """
    runs = [observed(body.replace("SEED", str(one)))[1] for one in (1, 4)]
    found = compare(*runs)
    told = [one.message for one in found.others if one.kind == "generators"]
    assert {
        "the generator of `random` is in another state in the second run",
        "the generator of `torch` is in another state in the second run, though seeded alike: more "
        "was drawn from it in one of them before",
    } <= {*told}
    body = """
        order = list(range(30)); order[POSITION] = 5
        read(DataLoader(data, sampler=order, batch_size=4), 2)
    """
    runs = [observed(body.replace("POSITION", str(one)))[1] for one in (5, 22)]
    parting = compare(*runs).parting
    assert (parting.batch, parting.sample, parting.first, parting.second) == (5, 2, 22, 5)
    body = """
        s = shard()
        for epoch in (0, EPOCH):
            s.set_epoch(epoch)
            read(DataLoader(data, sampler=s, batch_size=9), 1)
    """
    runs = [observed(body.replace("EPOCH", str(one)))[1] for one in (1, 4)]
    found = compare(*runs)
    assert (found.parting.kind, found.parting.epoch) == ("order", 1)
    (told,) = [one for one in found.others if one.kind == "epochs" and one.rank == 0]
    assert told.message == "set_epoch: 1 in the first run, 4 in the second"
