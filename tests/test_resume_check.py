"""`trace --resume-check`: a run that is stopped and started again reads what is left."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import pytest
import torch

from sampler_lint.cli import main
from sampler_lint.harness import HarnessError
from sampler_lint.harness.inside import learning
from sampler_lint.harness.inside.log import STOP_AT
from sampler_lint.harness.resume import _compared
from sampler_lint.harness.runs import Loader, Log, Pass, RankRun, Run, Saved
from sampler_lint.properties import Index

TRAIN = """
import os, sys, torch
from torch.utils.data import DataLoader, TensorDataset

mode = sys.argv[1]
torch.manual_seed(0)
data = TensorDataset(torch.randn(48, 4))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first = done = 0
if os.path.exists("last.pt"):
    last = torch.load("last.pt")
    optimizer.load_state_dict(last["optimizer"])
    first, done = last["epoch"], last["step"]
    if mode == "begins-again":
        first = done = 0
for epoch in range(first, 4):
    order = torch.Generator().manual_seed(epoch)
    loader = DataLoader(data, 6, shuffle=True, generator=order)
    for step, (x,) in enumerate(loader):
        if epoch == first and step < done:
            continue
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        if step % 3 == 2:
            state = {"optimizer": optimizer.state_dict(), "epoch": epoch, "step": step + 1}
            torch.save(state, "last.pt")
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(TRAIN, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("mode", "status", "words"),
    [
        ("right", 0, "Stopped at step 16 and started again, every rank went on where it was saved"),
        ("begins-again", 1, "train.py:19:5: SMP105 stopped after 16 batches and started again, "
         "rank 0 learns from 14 batches again"),
    ],
)  # fmt: skip
def test_what_a_resumed_run_reads(project: Path, capfd, mode, status, words) -> None:
    command = [sys.executable, "train.py", mode]
    assert main(["trace", "--resume-check", "--", *command]) == status
    told = capfd.readouterr()
    assert words in told.out + told.err
    # The runs were made elsewhere: nothing is left here.
    assert sorted(one.name for one in project.iterdir()) == ["train.py"]


def test_a_run_that_fails_is_not_compared(project: Path, capfd) -> None:
    assert main(["trace", "--resume-check", "--", sys.executable, "-c", "raise SystemExit(3)"]) == 2
    assert "did not train to its end" in capfd.readouterr().err


def test_a_rank_that_left_no_record_is_said() -> None:
    two, one = (Run("", [RankRun(rank, "finished") for rank in range(n)]) for n in (2, 1))
    with pytest.raises(HarnessError, match="rank 1 left a record in only one of the whole and the"):
        _compared(two, two, one)


def _rank(*loaders: list[Pass], saved: Saved | None = None) -> RankRun:
    """A rank whose loaders, each of a line of its own, made these passes."""
    log = Log(saved=[saved] if saved else [])
    log.loaders = [
        Loader(n, "train.py", n, "DataLoader", [], n, "Rows", 9, n, None, False, 2, False, False,
               [], True, passes=passes)
        for n, passes in enumerate(loaders)
    ]  # fmt: skip
    return RankRun(0, "finished", log=log)


def _pass(number: int, indices: str, learned: int, *, begun_at: int, first: int = 1) -> Pass:
    batches: list[list[Index]] = [[int(one)] for one in indices]
    made = Pass(number, batches=batches, learned=learned, learned_from=first, steps=begun_at)
    made.drawn = made.yielded = len(batches)
    made.exhausted = made.ended = True
    return made


WHOLE = _rank([_pass(0, "314025", 6, begun_at=0), _pass(1, "502413", 6, begun_at=6)])
STOPPED = _rank(
    [_pass(0, "31402", 5, begun_at=0)], saved=Saved(passes=1, steps=4, given=4, learned={0: 4})
)


@pytest.mark.parametrize(
    ("first", "saves", "told"),
    [
        (5, True, None),
        (1, True, "learns from 4 batches again, which came before the saved state"),
        (6, True, "skips 1 batches, which come after the saved state"),
        (1, False, "begins with the first batch: nothing was saved"),
    ],
)
def test_the_batches_around_the_saved_state(first: int, saves: bool, told: str | None) -> None:
    again = _pass(0, "314025", 7 - first, begun_at=0, first=first)
    resumed = _rank([again, _pass(1, "502413", 6, begun_at=7 - first)])
    stopped = STOPPED if saves else _rank([_pass(0, "31402", 5, begun_at=0)])
    found, _ = _compared(*(Run("", [rank]) for rank in (WHOLE, stopped, resumed)))
    assert [told in one.message for one in found] == [True] * (told is not None)


def test_data_that_differs_without_a_stop() -> None:
    other = _rank([_pass(0, "02413", 5, begun_at=0)], saved=STOPPED.log.saved[0])
    with pytest.raises(HarnessError, match="reads other data when it is run once more"):
        _compared(*(Run("", [rank]) for rank in (WHOLE, other, other)))


def test_batches_are_counted_not_steps() -> None:
    """Six batches in two steps an epoch, of which one is saved after the fourth batch."""
    whole = _rank([_pass(0, "314025", 6, begun_at=0), _pass(1, "502413", 6, begun_at=2)])
    saved = Saved(passes=1, steps=1, given=4, learned={0: 4})
    stopped = _rank([_pass(0, "31402", 5, begun_at=0)], saved=saved)
    right = _rank([_pass(0, "314025", 2, begun_at=0, first=5), _pass(1, "502413", 6, begun_at=1)])
    wrong = _rank([_pass(0, "314025", 4, begun_at=0, first=3), _pass(1, "502413", 6, begun_at=1)])
    runs = [Run("", [one]) for one in (whole, stopped, right, wrong)]
    assert not _compared(*runs[:3])[0]
    ((found,), _) = _compared(runs[0], runs[1], runs[3])
    assert "learns from 2 batches again" in found.message


def test_loaders_that_are_read_side_by_side_are_compared_each_by_itself() -> None:
    whole = _rank([_pass(0, "3140", 4, begun_at=0)], [_pass(1, "8567", 4, begun_at=0)])
    saved = Saved(passes=2, steps=2, given=2, learned={0: 2, 1: 2})
    stopped = _rank([_pass(0, "314", 3, begun_at=0)], [_pass(1, "856", 3, begun_at=0)], saved=saved)
    first = [_pass(0, "3140", 2, begun_at=0, first=3)]
    right = _rank(first, [_pass(1, "8567", 2, begun_at=0, first=3)])
    wrong = _rank(first, [_pass(1, "8567", 2, begun_at=0)])
    runs = [Run("", [one]) for one in (whole, stopped, right, wrong)]
    assert not _compared(*runs[:3])[0]
    ((found,), _) = _compared(runs[0], runs[1], runs[3])
    assert (found.line, "learns from 2 batches again" in found.message) == (1, True)


def test_a_process_is_told_to_stop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may take some more steps to save; one that ignores it is killed."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(learning.os, "kill", lambda pid, number: sent.append((steps, number)))
    monkeypatch.setenv(STOP_AT, "3")
    seen = learning.Learning(lambda kind, **told: None)
    optimizers = [torch.optim.SGD([torch.zeros(1)]) for _ in range(2)]
    for steps in range(1, 4 + learning.PATIENCE):
        seen.stepped(optimizers[steps % 2], steps)
    assert sent == [(3, signal.SIGTERM), (3 + learning.PATIENCE, signal.SIGKILL)]
    assert seen.taken == 3 + learning.PATIENCE


@pytest.mark.whole
def test_merge_reports_on_records_of_several_nodes(
    project: Path, capfd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, node in enumerate("ab"):
        monkeypatch.setenv("RANK", str(rank))
        command = [sys.executable, "train.py", "saves-nothing"]
        main(["trace", "--keep", f"node-{node}", "--", *command])
    capfd.readouterr()
    main(["trace", "merge", "node-a", "node-b"])
    assert "Recorded: 2 ranks, 4 loaders" in capfd.readouterr().out
    shutil.copytree("node-a", "node-c")
    main(["trace", "merge", "node-a", "node-b", "node-c", "./node-b"])
    told = capfd.readouterr().out
    assert "rank 0 is recorded in node-a and node-c: the one that read most is judged." in told
    assert "rank 1 is recorded" not in told
    assert main(["trace", "merge", "node-a", "nowhere"]) == 2
    assert "nowhere: no records here" in capfd.readouterr().err


EPOCHS = """
import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.arange(32.0).reshape(-1, 1))
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for epoch in range(3):
    torch.manual_seed(SEED)
    for (x,) in DataLoader(data, 8, shuffle=True):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
"""


@pytest.mark.whole
def test_a_bug_is_reported_as_an_issue(project: Path, capfd) -> None:
    for name, seed, found in (("before", "7", 1), ("after", "7 + epoch", 0)):
        Path(f"{name}.py").write_text(EPOCHS.replace("SEED", seed), "utf-8")
        page = ["--plot", f"{name}.html"]
        code = main(["trace", "--keep", name, *page, "--", sys.executable, f"{name}.py"])
        # A command that was killed (a machine without memory) is no record to report from.
        assert code == found, capfd.readouterr()
    capfd.readouterr()
    assert main(["report", "smp102", "--before", "before", "--after", "after"]) == 0
    issue = capfd.readouterr().out
    title, *lines = issue.splitlines()
    assert title.startswith("# Epochs 0-2 have one order on the one rank")
    assert "    torch.manual_seed(7)" in lines
    pictures = [line.split()[4] for line in lines if line.startswith("rank 0 epoch")]
    assert len(pictures) == 6
    assert len(set(pictures[:3])) == 1
    assert len(set(pictures[3:])) == 3
    # The fix is missing: the issue says so.
    assert main(["report", "SMP102", "--before", "before", "--after", "before"]) == 1
    assert "it is still there" in capfd.readouterr().out
    assert main(["report", "SMP202", "--before", "before"]) == 2
    assert "does not show SMP202: it shows SMP102" in capfd.readouterr().err
    page = Path("before.html").read_text("utf-8")
    assert "<th>learned from</th>" in page
    assert "for (x,) in DataLoader(data, 8, shuffle=True):" in page
