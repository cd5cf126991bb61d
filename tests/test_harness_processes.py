"""Both ends of the harness without torch: its processes when they fail, its records when cut."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sampler_lint.harness import HarnessError, TorchMissingError, command, trace, world
from sampler_lint.harness.inside import supervise, tape
from sampler_lint.harness.runs import Log, RankRun, main_logs, read_log
from sampler_lint.harness.world import World

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="proofs run on Linux only")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


# -- the fork server


def python(folder: Path, script: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("script", "error", "reason"),
    [
        ("exit 1", HarnessError, "ended while it imported torch"),
        (
            """printf '{"missing": false, "module": "torch", "error": "OSError: no"}\\n' >&0""",
            HarnessError,
            "torch cannot be imported: OSError: no",
        ),
        ("""printf '{"missing": true, "error": ""}\\n' >&0""", TorchMissingError, "verify"),
        # It says that it is ready, and goes.
        ("""printf '{"torch": "2"}\\n' >&0""", HarnessError, "has ended while it ran"),
    ],
)
def test_what_is_wrong_with_the_process_that_imports_torch_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    error: type[Exception],
    reason: str,
) -> None:
    monkeypatch.setattr(os.path, "exists", lambda path: False)  # no loopback to name, either
    with World(python=python(tmp_path, script)) as one, pytest.raises(error, match=reason):
        one.run(__file__)
    assert one._process is None
    assert one._control is None


def test_a_module_that_cannot_be_imported_for_the_ranks_is_named() -> None:
    with World(imports=["json", "no_such_framework"]) as one, pytest.raises(HarnessError) as said:
        one.run(__file__)
    assert str(said.value).startswith("no_such_framework cannot be imported: ModuleNotFoundError")


def test_a_fork_server_that_does_not_end_is_killed(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.supervise, "GRACE", 0.01)
    one = World()
    one._process = sleeper
    one.close()
    assert sleeper.returncode == -signal.SIGKILL


def test_a_system_that_cannot_fork_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "waitid")
    with pytest.raises(HarnessError, match="proofs fork their ranks"):
        World().run(__file__)


# -- worlds


def test_a_world_takes_whole_functions_and_a_rank_at_least() -> None:
    one = World()
    with pytest.raises(HarnessError, match="is not a function at the top of a file"):
        one.run_function(World.close)
    with pytest.raises(HarnessError, match="at least one rank, not 0"):
        one.run(__file__, world_size=0)


def test_a_port_that_is_taken_is_left_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def ask(self: World, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        asked.append(request)
        taken = "EADDRINUSE" if len(asked) < 2 or request["args"] else ""
        told = {"pid": 1, "status": 0, "hung": False, "stdout": "", "stderr": taken}
        return {"ranks": [told] * request["world_size"]}

    monkeypatch.setattr(World, "_ask", ask)
    one = World()
    assert one.run(__file__).finished
    assert len(asked) == 2
    asked.clear()
    assert "EADDRINUSE" in one.run(__file__, ["always"]).ranks[0].stderr
    assert len(asked) == world.RETRIES


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_whoever_runs_the_ranks_hears_that_nobody_waits(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    launchers: list[socket.socket] = []
    control, server = socket.socketpair()
    one = World()
    monkeypatch.setattr(one, "_server", lambda: control)

    def answer(connection: socket.socket, timeout: float) -> dict[str, Any]:
        assert connection in one._running
        launchers.append(socket.socket(fileno=socket.recv_fds(server, 1, 1)[1][0]))
        raise error

    monkeypatch.setattr(world, "_line", answer)
    with pytest.raises(HarnessError if error is TimeoutError else error):
        one.run(__file__)
    assert json.loads(launchers[0].makefile("rb").readline())["script"] == __file__
    assert launchers[0].recv(1) == b""
    assert not one._running
    for connection in (control, server, *launchers):
        connection.close()


def test_a_world_that_is_closed_ends_what_runs() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, World() as one:
        one._running.add(ours)
        one.close()
        assert theirs.recv(1) == b""


@pytest.mark.parametrize(
    ("end", "status", "stderr", "outcome", "reason"),
    [
        (None, 3, "", "died", "the command ended with status 3"),
        (None, 0, "", "finished", ""),
        ({"error": None, "path": None, "line": 0}, 0, "", "finished", ""),
        (
            {"error": None, "path": None, "line": 0},
            1,
            "exitcode  : 7 (pid: 42)",
            "died",
            "exit status 7",
        ),
        (
            {"error": "ValueError: x", "path": None, "line": 0, "within": []},
            1,
            "",
            "died",
            "ValueError: x",
        ),
    ],
)
def test_what_became_of_a_rank_of_a_command(
    tmp_path: Path, end: dict[str, Any] | None, status: int, stderr: str, outcome: str, reason: str
) -> None:
    read, write = os.pipe()
    os.write(write, stderr.encode())
    os.close(write)
    child = supervise.Child(42, supervise.Sink(read), supervise.Sink(read), status)
    while child.err.read():
        pass
    os.close(read)
    rank = RankRun(0, "finished", log=Log(pid=42, exit=end))
    command._judge_end(rank, child, str(tmp_path), str(tmp_path))
    assert (rank.outcome, rank.reason, rank.place) == (outcome, reason, None)


def test_whoever_asked_for_the_ranks_may_go() -> None:
    asker, abort = socket.socketpair()
    out = os.pipe(), os.pipe()
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        child = supervise.Child(process.pid, *(supervise.Sink(read) for read, _ in out))
        asker.close()
        with pytest.raises(KeyboardInterrupt, match="is gone"):
            supervise.watch([child], 60, abort=abort.fileno())
        assert child.status == -signal.SIGKILL
        process.returncode = child.status
    for descriptor in (*out[0], *out[1]):
        os.close(descriptor)


def test_without_proc_no_descendants_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def listdir(path: str) -> list[str]:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "listdir", listdir)
    assert supervise.descendants(1) == []


# -- records


def test_a_log_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    events = [
        {"event": "process", "pid": 7, "host": "here", "attempt": 1},
        {"event": "failed", "reason": "no space left"},
        {"event": "unheard of"},
    ]
    text = "".join(json.dumps(event) + "\n" for event in events)
    path = tmp_path / "here.rank0.7.jsonl"
    path.write_text(text + '{"event": "join')
    log = read_log(str(path))
    assert (log.pid, log.attempt, log.failures, log.joins) == (7, 1, ["no space left"], False)


def test_what_the_tape_says_of_passes_that_the_log_has_not_is_left_out(tmp_path: Path) -> None:
    totals = [1, tape.TOTALS, *[0] * tape.TOTALS]
    cut = [*totals, 5, 1, 3, -5, 2, 3, 4]
    (tmp_path / "here.tape").write_bytes(struct.pack(f"{len(cut)}q", *cut))
    (tmp_path / "here.jsonl").write_text("")
    assert read_log(str(tmp_path / "here.jsonl")).loaders == []


def test_of_several_logs_of_a_rank_the_last_start_of_the_largest_world_counts() -> None:
    logs = [
        Log(pid=1, rank=0, world_size=2),
        Log(pid=2, rank=0, world_size=2, attempt=1),
        Log(pid=3, rank=0, world_size=2),
        Log(pid=4, rank=0, world_size=1, attempt=5),
        Log(pid=5, rank=1, world_size=2),
    ]
    assert {rank: log.pid for rank, log in main_logs(logs).items()} == {0: 2, 1: 5}
    assert main_logs([]) == {}


def test_a_rank_is_told_in_words() -> None:
    assert str(RankRun(1, "finished")) == "rank 1 finished"
    assert str(RankRun(1, "stopped", "it was ended")) == "rank 1 was at work when it was ended"
    hung = RankRun(1, "hung", place="train.py:3")
    assert str(hung) == "rank 1 waited for ever at train.py:3"


@pytest.mark.parametrize(
    ("reason", "status", "end", "told"),
    [
        ("its 3 seconds were up", 0, None, ("stopped", "its 3 seconds were up")),
        ("", 1, None, ("died", "it did not come to its end")),
        ("", 0, None, ("finished", "")),
        ("it was interrupted", 0, {"error": None, "path": None, "line": 0}, ("finished", "")),
    ],
)
def test_what_became_of_a_rank_that_was_traced(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reason: str,
    status: int,
    end: dict[str, Any] | None,
    told: tuple[str, str],
) -> None:
    (tmp_path / "here.rank0.7.jsonl").write_text(
        json.dumps({"event": "process", "pid": 7, "host": "here", "attempt": 0})
        + "\n"
        + (json.dumps({"event": "exit", **end}) + "\n" if end else "")
    )
    watch = trace._Watch(str(tmp_path), str(tmp_path), None, None, reason=reason)
    (rank,) = trace._collected(str(tmp_path), str(tmp_path), watch, status).ranks
    assert (rank.outcome, rank.reason, rank.place) == (*told, None)


def test_a_stall_that_is_no_wait_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    totals = [1, tape.TOTALS, 1, *[0] * (tape.TOTALS - 1)]
    (tmp_path / "here.tape").write_bytes(struct.pack(f"{len(totals)}q", *totals))
    watch = trace._Watch(str(tmp_path), str(tmp_path), None, None)
    now = time.monotonic()
    watch._look(now)
    watch._look(now + 10 * trace.STALL)  # nothing moves, and no rank is seen to wait
    assert watch.outcome == "stopped"


def test_commands_of_several_threads_do_not_end_each_other(tmp_path: Path) -> None:
    (tmp_path / "sleeps.py").write_text("import sys, time\ntime.sleep(float(sys.argv[1]))\n")

    def status(seconds: float) -> int:
        return command.run_command([sys.executable, "sleeps.py", str(seconds)], cwd=tmp_path)[0]

    with ThreadPoolExecutor(3) as pool:
        assert [*pool.map(status, (0.2, 1.2, 0.1, 0.4, 0.1))] == [0, 0, 0, 0, 0]
