"""A fix of several files is made in all of them or in none, wherever its process is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sampler_lint import engine, unfinished
from sampler_lint.cache import unfinished_folder
from sampler_lint.cli import main
from sampler_lint.fixing import write_whole
from sampler_lint.source import SourceError
from sampler_lint.unfinished import settle, together

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and file locks")

NAMES = ("a.py", "b.py", "c.py")
OLD = {name: f"old = {name!r}\n".encode() for name in NAMES}
NEW = {name: f"new = {name!r}\n".encode() for name in NAMES}

#: Writes all files of a fix, and is ended before (or after) the step of writing with that number.
_WRITE = """\
import os, signal, sys
from sampler_lint import fixing, unfinished

number, how = int(sys.argv[1]), sys.argv[2]
steps = 0

def counted(function):
    def step(*arguments, **more):
        global steps
        steps += 1
        if steps == number:
            try:
                if how == "after":
                    return function(*arguments, **more)
            finally:
                os.kill(os.getpid(), getattr(signal, sys.argv[3]))
        return function(*arguments, **more)
    return step

for name in ("replace", "fsync", "unlink", "chmod"):
    setattr(os, name, counted(getattr(os, name)))

from sampler_lint.cli import _end_when_asked
_end_when_asked()
names = ("a.py", "b.py", "c.py")
changes = {name: (f"old = {name!r}\\n".encode(), f"new = {name!r}\\n".encode()) for name in names}
with unfinished.together(changes):
    for name, (old, new) in changes.items():
        fixing.write_whole(name, new, expect=old)
print(steps)
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    monkeypatch.chdir(folder)
    put(OLD)
    return folder


def put(contents: dict[str, bytes]) -> None:
    for name, data in contents.items():
        Path(name).write_bytes(data)


def held() -> dict[str, bytes]:
    return {name: Path(name).read_bytes() for name in NAMES}


def notes() -> list[str]:
    return os.listdir(unfinished_folder()) if os.path.exists(unfinished_folder()) else []


def write(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _WRITE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize(
    "number", ["SIGKILL", "SIGINT", pytest.param("SIGTERM", marks=pytest.mark.whole)]
)
def test_wherever_it_is_ended_the_next_run_finds_all_or_none(
    tree: Path, how: str, number: str
) -> None:
    mixed = 0
    for step in range(1, 40):
        put(OLD)
        run = write(step, how, number)
        if run.returncode == 0:
            break
        assert number != "SIGKILL" or run.returncode == -signal.SIGKILL
        if number != "SIGKILL":
            assert held() in (OLD, NEW)  # at once
        mixed += held() not in (OLD, NEW)
        assert main(["--select", "SMP501", "--quiet"]) == 0
        assert held() in (OLD, NEW)
        assert notes() == []
    assert run.stdout.split() == [str(step - 1)]
    assert step > 10
    assert held() == NEW
    assert (mixed > 3) == (number == "SIGKILL")


def half_made(made: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process leaves that is killed after so many files."""
    with monkeypatch.context() as patch:
        patch.setattr(unfinished, "_settle", lambda _: unfinished.Settled([], []))
        patch.setattr(unfinished, "_remove", lambda _: None)
        with together({name: (OLD[name], NEW[name]) for name in NAMES}):
            for name in NAMES[:made]:
                write_whole(name, NEW[name], expect=OLD[name])


def test_what_is_taken_back_is_told(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    half_made(2, monkeypatch)
    assert main(["--no-cache", "."]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "note: a fix of several files had been interrupted; it is undone in a.py, b.py"
    ]
    assert held() == OLD
    assert main(["--no-cache", "."]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        # Its new content was written before that of the next: the fix is finished.
        ("a.py", {"b.py": NEW["b.py"], "c.py": NEW["c.py"]}),
        # Whether it had been written is not known.
        ("b.py", {"a.py": NEW["a.py"], "c.py": OLD["c.py"]}),
        # Not yet written: the fix is taken back.
        ("c.py", {"a.py": NEW["a.py"], "b.py": NEW["b.py"]}),
    ],
)
def test_a_file_that_was_changed_since_is_left(
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changed: str,
    expected: dict[str, bytes],
) -> None:
    half_made(1 if changed == "b.py" else 2, monkeypatch)
    Path(changed).write_bytes(b"mine = 1\n")
    known = changed == "a.py"
    assert main(["--no-cache"]) == (0 if known else 2)
    assert held() == {**expected, changed: b"mine = 1\n"}
    told = capsys.readouterr().err
    assert ("was changed after a fix of several files was interrupted" in told) is not known
    assert main(["--no-cache"]) == 0  # told once


def test_a_change_before_the_first_written_is_of_the_old(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file after one that is old was not written yet."""
    half_made(1, monkeypatch)
    Path("c.py").write_bytes(b"mine = 1\n")
    assert settle(["."]) == (["a.py"], [])
    assert held() == {**OLD, "c.py": b"mine = 1\n"}


def test_a_missing_file_is_one_that_was_changed(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half_made(1, monkeypatch)
    Path("c.py").unlink()
    assert settle(["."]) == (["a.py"], [])
    assert not Path("c.py").exists()


def test_what_cannot_be_put_back_is_tried_again(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half_made(2, monkeypatch)
    Path("b.py").chmod(0o444)
    (error,) = settle(["."]).errors
    assert str(error) == (
        "b.py: a fix of several files is half made in it: cannot be written: the file is read-only"
    )
    Path("b.py").chmod(0o644)
    assert settle(["."]) == (["b.py"], [])
    assert held() == OLD


def test_another_tree_is_left_to_its_own_runs(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half_made(1, monkeypatch)
    assert settle([str(tmp_path / "tre")]) == ([], [])
    assert settle([str(tree)])[0] == ["a.py"]


def test_a_living_process_is_waited_for(tree: Path) -> None:
    script = _WRITE.replace("    for name, (old", "    import time; print(1, flush=True); "
                            "time.sleep(0.5)\n    for name, (old")  # fmt: skip
    run = [sys.executable, "-c", script, "0", "before", "SIGKILL"]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        assert settle(["."]) == ([], [])
        assert held() == NEW
        writer.stdout.read()  # to its end: who writes to a closed pipe fails
    assert writer.returncode == 0


def test_a_torn_or_strange_note_is_dropped(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half_made(1, monkeypatch)
    (note,) = Path(unfinished_folder()).iterdir()
    note.write_bytes(note.read_bytes()[:-9])
    assert settle(["."]) == ([], [])
    assert not note.exists()


def test_without_a_note_nothing_is_written(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    with (
        pytest.raises(SourceError, match=r"a\.py: not written: no note of it in"),
        together({name: (OLD[name], NEW[name]) for name in NAMES}),
    ):
        pytest.fail("it may not be made")


def test_a_fix_of_several_files_is_noted_and_one_of_a_single_file_is_not(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--fix`` of a seed that is handed through two files, and of an argument in a third."""
    for name in NAMES:
        Path(name).unlink()
    Path("loaders.py").write_text(
        "from torch.utils.data import DataLoader, DistributedSampler\n"
        "def build(data):\n    return DataLoader(data, sampler=DistributedSampler(data))\n"
    )
    Path("train.py").write_text(
        "import torch\nfrom loaders import build\n"
        "import argparse\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--seed', type=int, default=0)\nargs = parser.parse_args()\n"
        "torch.manual_seed(args.seed)\nbuild(data)\n"
    )
    Path("other.py").write_text(
        "from torch.utils.data import DataLoader, DistributedSampler\n"
        "def build(d):\n    return DataLoader(d, sampler=DistributedSampler(d), shuffle=True)\n"
    )
    from sampler_lint import rounds

    noted: list[list[str]] = []

    def spy(changes: dict[str, tuple[bytes, bytes]]) -> object:
        noted.append(sorted(changes))
        return together(changes)

    monkeypatch.setattr(rounds, "together", spy)
    assert engine.fix(["."]).errors == []
    assert noted == [["loaders.py", "train.py"]]
    assert "seed=seed" in Path("loaders.py").read_text()
    assert "shuffle" not in Path("other.py").read_text()
    assert notes() == []
