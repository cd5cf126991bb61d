"""``--fix --verify``: a fix is made when running the user's code shows that it is right."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cases import FIXTURES, read_tree, write_tree
from sampler_lint.cli import main
from sampler_lint.findings import Applicability, Edit, Finding, Fix, Position
from sampler_lint.harness import command
from sampler_lint.harness.invariants import Verdict
from sampler_lint.harness.prove import OPEN, PROVED, REFUTED, Prover

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="proofs run on Linux only")

SHARDED = b"""import torch
from torch.utils.data import Sampler


class Sharded(Sampler):
    def __init__(self, dataset, num_replicas, rank, seed=0):
        self.dataset, self.num_replicas, self.rank, self.seed = dataset, num_replicas, rank, seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        generator = torch.Generator().manual_seed(1000 * self.seed + self.epoch)
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        order = [order[i % len(order)] for i in range(len(self) * self.num_replicas)]
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self):
        return -(-len(self.dataset) // self.num_replicas)
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(files: Mapping[str, bytes], *arguments: str) -> tuple[int, str, str]:
        write_tree(tmp_path, dict(files))
        monkeypatch.chdir(tmp_path)
        code = main(["--isolated", *arguments, "."])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def fixture(name: str, part: str) -> dict[str, bytes]:
    return read_tree(FIXTURES / name / part)


def test_a_fix_of_a_class_is_proved_by_building_it(tmp_path: Path, run: Run) -> None:
    name = "SMP104/wrapper-keeps-epoch"
    code, out, _ = run(fixture(name, "bad"), "--fix", "--verify")
    assert code == 0
    assert "SMP104 proved: SortedBatchSampler broke `reshuffles` (n=" in out
    fixed = fixture(name, "fixed")
    assert {path: (tmp_path / path).read_bytes() for path in fixed} == fixed


@pytest.mark.whole
def test_typos_of_one_class_do_not_hide_each_other(tmp_path: Path, run: Run) -> None:
    spoilt = SHARDED.replace(b"1000 * self.seed", b"1000 * self.sed")
    spoilt = spoilt.replace(b"self.rank ::", b"self.rnk ::")
    code, out, _ = run({"mine.py": spoilt}, "--fix", "--unsafe-fixes", "--verify")
    assert (tmp_path / "mine.py").read_bytes() == SHARDED, out
    assert (code, out.count("SMP401 proved"), out.count("not provable")) == (0, 2, 0)


def test_what_is_not_proved_is_left_and_said(tmp_path: Path, run: Run) -> None:
    files = fixture("SMP102/plain-script", "bad")
    code, out, _ = run(files, "--fix", "--verify", "--output-format", "json")
    assert code == 1
    assert {path: (tmp_path / path).read_bytes() for path in files} == files
    (proof,) = [one["proof"] for one in json.loads(out) if "proof" in one]
    assert proof["verdict"] == "not provable here"
    assert proof["evidence"] == "the fix is not in a class; --verify-command may prove it"


def test_a_parameter_that_cannot_be_guessed_is_asked_for_and_can_be_given(run: Run) -> None:
    files = fixture("SMP401/remainder-of-sub-epochs", "bad")
    _, out, _ = run(files, "--diff", "--verify", "--unsafe-fixes")
    assert out == ""
    code, out, err = run(files, "--diff", "--verify", "--verify-kw", "sub_epochs=2")
    assert code == 1
    assert "+        if self.num_samples % self.sub_epochs" in out
    assert "SMP401 proved: SubEpochSampler broke `builds`" in err


def test_verify_goes_with_fixing(run: Run) -> None:
    for option in (["--verify"], ["--verify-command", "python train.py"]):
        code, _, err = run({"train.py": b"pass\n"}, *option)
        assert code == 2
        assert "--verify goes with --fix, --diff or --patch-dir" in err
    code, _, err = run({"train.py": b"pass\n"}, "--fix", "--verify-command", "python 'train.py")
    assert code == 2
    assert "--verify-command: No closing quotation" in err


def training() -> dict[str, bytes]:
    """A program that leaves a file behind, for a run of one process."""
    files = fixture("SMP102/plain-script", "bad")
    return {**files, "train.py": files["train.py"] + b'open("left-behind", "w").close()\n'}


def alone(*command: str) -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    rank = ("RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1")
    return shlex.join(["env", *rank, f"MASTER_PORT={port}", sys.executable, *command])


def test_a_command_proves_what_no_class_can(tmp_path: Path, run: Run) -> None:
    os.mkfifo(tmp_path / "pipe")  # not copied
    code, out, err = run(training(), "--fix", "--verify-command", alone("train.py"))
    assert code == 0, out
    assert "train.py: before a fix\n" in err
    assert "SMP102 proved: before: train.py:" in out
    assert "yielded one order" in out
    fixed = fixture("SMP102/plain-script", "fixed")["train.py"]
    assert (tmp_path / "train.py").read_bytes().startswith(fixed)
    assert not (tmp_path / "left-behind").exists()


def test_a_file_outside_the_project_is_not_written(tmp_path: Path, run: Run) -> None:
    outside = tmp_path.with_name(f"{tmp_path.name}-outside.py")
    data = training()["train.py"]
    outside.write_bytes(data)
    (tmp_path / "link.py").symlink_to(outside)
    code, out, _ = run({}, "link.py", "--fix", "--verify-command", "true")
    assert code == 1, out
    assert "in a file outside the project, which is not copied" in out
    assert outside.read_bytes() == data


def test_a_command_that_does_not_show_the_bug_proves_nothing(tmp_path: Path, run: Run) -> None:
    files = training()
    code, out, _ = run(files, "--fix", "--verify-command", alone("-c", "print(1)"))
    assert code == 1
    assert "SMP102 not provable here: the fix is not in a class" in out
    assert "the command left no record (status 0)" in out
    assert (tmp_path / "train.py").read_bytes() == files["train.py"]


# -- the prover alone


quickly = pytest.mark.usefixtures("examined_here")


def decided(
    tmp_path: Path, before: bytes, *afters: bytes, kw: dict[str, object] | None = None
) -> tuple[int | None, str, str]:
    """What the prover says of changes to a module with one class."""
    path = str(tmp_path / "samplers.py")
    Path(path).write_bytes(before)
    fix = Fix("Change it", Applicability.SAFE, (Edit(path, 0, 0, ""),))
    row = before[: before.index(b"class ")].count(b"\n") + 1
    finding = Finding("SMP401", "", path, Position(row, 1), Position(row, 2), fix)
    prover = Prover(tmp_path, kw=kw)
    number, told = prover(finding, {}, [{path: after} for after in afters])
    (proof,) = prover.proofs
    assert told == f"{proof.verdict}: {proof.evidence}"
    return number, proof.verdict, proof.evidence


@quickly
def test_a_fix_that_makes_it_worse_is_refuted(tmp_path: Path) -> None:
    worse = SHARDED.replace(b"self.epoch = epoch", b"pass")
    number, verdict, evidence = decided(tmp_path, SHARDED, worse)
    assert (number, verdict) == (None, REFUTED)
    assert evidence.startswith("the fix makes Sharded break `reshuffles` (n=7")
    number, verdict, evidence = decided(
        tmp_path, SHARDED, SHARDED.replace(b"torch.randp", b"randp")
    )
    assert (number, verdict) == (None, REFUTED)
    assert "NameError" in evidence
    assert decided(tmp_path, worse, SHARDED)[:2] == (0, PROVED)


@quickly
def test_a_fix_that_changes_nothing_to_be_seen_is_not_proved(tmp_path: Path) -> None:
    number, verdict, evidence = decided(tmp_path, SHARDED, SHARDED + b"# more\n")
    assert (number, verdict) == (None, OPEN)
    assert "keeps all promises before the fix, too" in evidence
    floored = SHARDED.replace(b"return -(-len(self.dataset) //", b"return (len(self.dataset) //")
    number, verdict, evidence = decided(tmp_path, floored, floored + b"# more\n")
    assert (number, verdict) == (None, OPEN)
    assert "breaks the same before and after" in evidence


@quickly
def test_the_candidate_that_breaks_least_wins(tmp_path: Path) -> None:
    bad, near, right = (
        SHARDED.replace(b"// self.num_replicas)", b"// self." + name + b")")
        for name in (b"num_replica", b"seed or len(self.dataset) or 1", b"num_replicas")
    )
    assert right == SHARDED
    number, verdict, evidence = decided(tmp_path, bad, near, right)
    assert (number, verdict) == (1, PROVED)
    assert evidence.endswith("after the fix it runs (of 2 candidates)")
    assert decided(tmp_path, bad, near)[2].count("though it breaks") == 1
    number, verdict, evidence = decided(tmp_path, bad, right, right + b"# more\n")
    assert (number, verdict) == (None, OPEN)
    assert evidence.startswith("2 of 2 candidates keep as many promises")


@quickly
def test_candidates_that_are_all_wrong_are_refuted(tmp_path: Path) -> None:
    worse = [
        SHARDED.replace(old, new)
        for old, new in ((b"self.epoch = epoch", b"pass"), (b"1000 * self.seed", b"1000"))
    ]
    number, verdict, evidence = decided(tmp_path, SHARDED, *worse)
    assert (number, verdict) == (None, REFUTED)
    assert evidence.startswith("none of 2 candidates: the fix makes Sharded break `reshuffles`")
    gone = SHARDED.replace(b"class Sharded", b"class Other")
    number, verdict, evidence = decided(tmp_path, SHARDED, gone)
    assert (number, verdict) == (None, REFUTED)
    assert evidence.startswith("after the fix: samplers:Sharded: samplers has no Sharded; it has")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train.ipynb", SHARDED),
        ("gone.py", None),
        ("odd.py", b"# coding: nowhere\n" + SHARDED),
        ("broken.py", b"class Sharded(:\n"),
        ("above.py", b"class First:\n    pass\n\n\nx = 1\n"),
    ],
)
def test_what_is_in_no_class_needs_a_command(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    finding = Finding("SMP102", "", str(path), Position(5, 1), Position(5, 2))
    number, told = Prover(tmp_path)(finding, {}, [{str(path): b""}])
    assert number is None
    assert told == f"{OPEN}: the fix is not in a class; --verify-command may prove it"


HELD = Verdict(True, "kept")
BROKEN = Verdict(False, "spoilt")
UNSEEN = Verdict(False, "unseen", conclusive=False)


@pytest.mark.parametrize(
    ("before", "after", "ended", "verdict", "evidence"),
    [
        (BROKEN, HELD, False, PROVED, "before: spoilt; after: kept"),
        (BROKEN, BROKEN, False, REFUTED, "after the fix the command still shows: spoilt"),
        (BROKEN, BROKEN, True, OPEN, "was not done in 9 seconds (--verify-timeout)"),
        (BROKEN, UNSEEN, False, OPEN, "after the fix the command shows unseen"),
        (HELD, HELD, False, OPEN, "the command does not show the bug: kept"),
    ],
)
def test_what_a_command_shows_before_and_after(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: Verdict,
    after: Verdict,
    ended: bool,
    verdict: str,
    evidence: str,
) -> None:
    path = str(tmp_path / "train.py")
    Path(path).write_bytes(b"x = 1\n")
    runs = []

    def run(prover: Prover, name: str, contents: Mapping[str, bytes]) -> tuple[Verdict, bool]:
        runs.append(contents)
        return (after, ended) if contents else (before, False)

    monkeypatch.setattr(Prover, "_run", run)
    said: list[str] = []
    prover = Prover(tmp_path, command=["train"], timeout=9, progress=said.append)
    finding = Finding("SMP102", "", path, Position(1, 1), Position(1, 2))
    for _ in range(2):  # the second time it is known
        number, told = prover(finding, {}, [{path: b"x = 2\n"}])
        assert (number, verdict in told, told.endswith(evidence)) == (
            0 if verdict == PROVED else None,
            True,
            True,
        ), told
    assert len(runs) == 2
    assert said == ["train: before a fix", "train: after a fix"]
    wide = Finding("SMP201", "", path, Position(1, 1), Position(1, 2))
    assert "one run of the command cannot show what SMP201 is about" in prover(wide, {}, [{}])[1]


def test_a_copy_links_what_is_large_and_read_only_and_leaves_out_what_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "LINKED_ABOVE", 10)
    read_only = {"data", "small"}  # root may write to everything
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name not in read_only)
    source = tmp_path / "source"
    source.mkdir()
    (source / "small").write_bytes(b"x" * 10)
    (source / "data").write_bytes(b"x" * 11)
    (source / "last.pt").write_bytes(b"x" * 11)
    os.mkfifo(source / "pipe")
    command.copy_tree(source, tmp_path / "target")
    copied = {path.name: path.is_symlink() for path in (tmp_path / "target").iterdir()}
    assert copied == {"small": False, "data": True, "last.pt": False}
    (tmp_path / "target" / "last.pt").write_bytes(b"y")
    assert (source / "last.pt").read_bytes() == b"x" * 11


def test_a_copy_does_not_hold_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder for temporary files lies below the one that is copied."""
    project, inside = tmp_path / "project", tmp_path / "project" / "tmp"
    (project / "sampler-lint-examples").mkdir(parents=True)
    inside.mkdir()
    (inside / "kept").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(inside))
    with tempfile.TemporaryDirectory(prefix="sampler-lint-") as scratch:
        command.copy_tree(project, Path(scratch, "copy"))
        copied = {path.relative_to(scratch).as_posix() for path in Path(scratch).rglob("*")}
    assert copied == {"copy", "copy/tmp", "copy/tmp/kept", "copy/sampler-lint-examples"}


@quickly
def test_why_a_class_cannot_be_tried(tmp_path: Path) -> None:
    for source, reason in (
        (b"import nowhere\n" + SHARDED, "ModuleNotFoundError: No module named 'nowhere'"),
        (SHARDED.replace(b"rank, seed=0", b"rank, *depth: 0"), "cannot guess what Sharded takes"),
        (b"class Model:\n    pass\n", "Model is no sampler"),
    ):
        number, verdict, evidence = decided(tmp_path, source, source + b"\n")
        assert (number, verdict) == (None, OPEN)
        assert reason in evidence
    odd = SHARDED.replace(b"rank, seed=0", b"rank, depth").replace(
        b"rank, seed\n", b"rank, depth\n"
    )
    assert decided(tmp_path, odd, odd + b"\n", kw={"depth": 3, "other": 1})[1] == OPEN
    assert "cannot guess" not in decided(tmp_path, odd, odd + b"\n", kw={"depth": 3})[2]


def test_a_class_of_a_package_is_tried_among_its_neighbours(tmp_path: Path) -> None:
    write_tree(tmp_path, {"lib/__init__.py": b"", "lib/base.py": SHARDED})
    path = str(tmp_path / "lib" / "own.py")
    before = (
        b"from .base import Sharded\n\n\nclass Own(Sharded):\n    def set_epoch(self, e):\n        "
    )
    Path(path).write_bytes(before + b"self.epochs = e\n")
    finding = Finding("SMP104", "", path, Position(6, 9), Position(6, 10))
    number, told = Prover(tmp_path)(finding, {}, [{path: before + b"self.epoch = e\n"}])
    assert number == 0, told
