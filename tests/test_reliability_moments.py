"""Whenever a run is ended, it ends at once: files whole, children gone, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sampler_lint import engine
from sampler_lint.harness.inside import supervise
from sampler_lint.parallel import Aside

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals and processes of Unix")

BUG = b"from torch.utils.data import DataLoader\nx = DataLoader(d, sampler=s, shuffle=True)\n"
FIXTURES = Path(__file__).parent.parent / "fixtures"

#: A second; more where the machine does other things besides, or the processes are measured.
QUIET = os.getloadavg()[0] < (os.cpu_count() or 1) and "MEASURED" not in os.environ
SOON = 1.0 if QUIET else 5.0

SIGNALS = pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "term"]
)

#: Where each takes a start of torch.
INTERRUPTS = pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.whole)],
    ids=["ctrl-c", "term"],
)


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """The command, its own cache and temporary files below ``cwd``'s parent."""
    env = {**os.environ, "TMPDIR": str(cwd.parent / "tmp"), "OMP_NUM_THREADS": "1"}
    (cwd.parent / "tmp").mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "sampler_lint", *arguments],
        cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, preexec_fn=_heed_signals,
    )  # fmt: skip


def _heed_signals() -> None:
    """As in a terminal: what a shell starts in the background ignores Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def memory(pid: int) -> int:
    """How many megabytes a process holds."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def wait_for(what: Callable[[], object], run: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 60
    while not what():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)


def end(run: subprocess.Popen[str], number: int, folder: Path) -> str:
    """Send the signal; what it said on the way out."""
    children = supervise.descendants(run.pid)
    started = time.monotonic()
    run.send_signal(number)
    out, err = run.communicate(timeout=30)
    taken = time.monotonic() - started
    assert taken < SOON
    assert "Traceback" not in err
    alive = [pid for pid in children if Path(f"/proc/{pid}/stat").exists()]
    until = time.monotonic() + SOON
    while alive and time.monotonic() < until:
        time.sleep(0.01)
        alive = [pid for pid in alive if is_running(pid)]
    assert not alive
    assert not list((folder.parent / "tmp").glob("sampler-lint-*"))
    return out


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A tree whose check takes seconds."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "pyproject.toml").touch()
    rest = b"".join(b"def f%d(a=[1, 2]):\n    return a[0] + len(a)\n" % i for i in range(4000))
    for number in range(20):
        (tree / f"m{number}.py").write_bytes(BUG + rest)
        (tree / f"plain{number}.py").write_bytes(rest)
    return tree


@SIGNALS
@pytest.mark.parametrize("arguments", [["--jobs", "2"], ["--fix"]], ids=["check", "fix"])
def test_a_check_or_a_fix(many: Path, arguments: list[str], number: int, status: int) -> None:
    before = {path: path.read_bytes() for path in many.iterdir()}
    run = start(*arguments, "--no-cache", ".", cwd=many)
    wait_for(lambda: memory(run.pid) > 80, run)  # it is at work
    assert end(run, number, many) == ""
    assert run.returncode == status
    assert {path: path.read_bytes() for path in many.iterdir()} == before


@SIGNALS
def test_where_python_drops_exceptions(tmp_path: Path, number: int, status: int) -> None:
    """What is raised in a finalizer goes no further, and still the run ends."""
    (tmp_path / "tmp").mkdir()
    program = """
import time
from sampler_lint import cli
class Asleep:
    def __del__(self):
        open("asleep", "w").close()
        time.sleep(1)
def main():
    Asleep()
    time.sleep(1000)
cli.main = main
raise SystemExit(cli.run())
"""
    run = subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_heed_signals,
    )  # fmt: skip
    wait_for((tmp_path / "asleep").exists, run)
    run.send_signal(number)
    out, err = run.communicate(timeout=30)
    assert (out, run.returncode) == ("", status)
    assert "Exception ignored in" in err


@INTERRUPTS
def test_a_proof(tmp_path: Path, number: int, status: int) -> None:
    pytest.importorskip("torch")
    tree = tmp_path / "tree"
    tree.mkdir()
    run = start("verify", str(FIXTURES / "SMP101"), "--jobs", "2", cwd=tree)
    wait_for(lambda: len(supervise.descendants(run.pid)) >= 3, run)  # two worlds and some rank
    assert end(run, number, tree) == ""
    assert run.returncode == status


@INTERRUPTS
@pytest.mark.parametrize("asleep_in", ["import", "pass"])
def test_a_contract(tmp_path: Path, asleep_in: str, number: int, status: int) -> None:
    pytest.importorskip("torch")
    tree = tmp_path / "tree"
    tree.mkdir()
    nap = "open('asleep', 'w').close(); __import__('subprocess').run(['sleep', '1000'])"
    (tree / "mine.py").write_text(
        "from torch.utils.data import Sampler\n"
        f"{nap if asleep_in == 'import' else ''}\n"
        "class Mine(Sampler):\n"
        "    def __init__(self, dataset): self.dataset = dataset\n"
        f"    def __iter__(self): {nap}; return iter([0])\n"
    )
    run = start("contract", "mine:Mine", cwd=tree)
    wait_for((tree / "asleep").exists, run)
    wait_for(lambda: len(supervise.descendants(run.pid)) >= 2, run)
    assert end(run, number, tree) == ""
    assert run.returncode == status


@SIGNALS
def test_a_fix_that_is_proved_by_a_command(tmp_path: Path, number: int, status: int) -> None:
    pytest.importorskip("torch")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "pyproject.toml").touch()
    bad = (FIXTURES / "SMP101" / "torch-batch-sampler" / "bad" / "train.py").read_bytes()
    (tree / "train.py").write_bytes(bad)
    command = f"{sys.executable} -c \"import time; open('{tmp_path}/up', 'w'); time.sleep(999)\""
    run = start("--fix", "--verify-command", command, ".", cwd=tree)
    wait_for((tmp_path / "up").exists, run)
    assert end(run, number, tree) == ""
    assert run.returncode == status
    assert (tree / "train.py").read_bytes() == bad


# -- a worker that dies


def test_a_worker_that_is_killed_costs_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = tmp_path / "tree"
    many.mkdir()
    for number in range(3):
        (many / f"plain{number}.py").write_bytes(b"x = 1\n" * 40_000)
    (many / "broken.py").write_text("def f(:\n")
    (many / "bug.py").write_bytes(BUG)
    expected = engine.check([str(many)])
    killed = []
    parent = os.getpid()
    wait = os.waitpid

    def waitpid(pid: int, options: int) -> tuple[int, int]:
        found = wait(pid, options)
        killed.append(found[1])
        return found

    from sampler_lint.workspace import readable

    check = readable.syntax_error

    def dies(*arguments: object) -> object:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return check(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(readable, "syntax_error", dies)
    monkeypatch.setattr(os, "waitpid", waitpid)
    report = engine.check([str(many)], jobs=2)
    assert killed == [signal.SIGKILL], "no worker was started"
    assert (report.findings, report.errors) == (expected.findings, expected.errors)
    assert len(report.errors) == 1


def test_a_worker_that_is_not_asked_is_ended() -> None:
    before = set(supervise.descendants(os.getpid()))
    with Aside(lambda: time.sleep(1000), forks=True):
        assert set(supervise.descendants(os.getpid())) - before
    assert not set(supervise.descendants(os.getpid())) - before


INTERRUPTED_AT_THE_FORK = """
import os, signal, time
from sampler_lint.parallel import Aside

signal.signal(signal.SIGINT, signal.default_int_handler)
fork = os.fork

def interrupted():
    child = fork()
    if child:
        os.kill(os.getpid(), signal.SIGINT)
    return child

os.fork = interrupted
try:
    with Aside(lambda: time.sleep(1000), forks=True):
        raise SystemExit("the interrupt was lost")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_while_a_worker_starts_leaves_none_behind() -> None:
    command = [sys.executable, "-c", INTERRUPTED_AT_THE_FORK]
    # A worker that is left behind keeps the pipe open, and this runs into the timeout.
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (run.stdout, run.stderr, run.returncode) == ("interrupted\n", "", 0)


def test_a_worker_that_says_nothing_is_not_believed() -> None:
    parent = os.getpid()
    with Aside(lambda: "here" if os.getpid() == parent else os._exit(0), forks=True) as aside:
        assert aside.result() == "here"
