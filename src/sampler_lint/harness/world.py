"""Run a program on N ranks over gloo, on this machine, with the recorder in it.

:class:`World` forks the ranks from a process that has imported torch once: a scenario costs
tenths of a second. :func:`run_command` runs any command (``torchrun …``) and records it from
outside, at the price of importing torch in each of its processes.
"""

from __future__ import annotations

import contextlib
import glob
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from sampler_lint.harness import record, supervise
from sampler_lint.harness.runs import (
    Log,
    RankRun,
    Run,
    log_of,
    logs_in,
    main_logs,
    read_log,
    relative,
    waiting_place,
)
from sampler_lint.harness.zygote import START_TIMEOUT, HarnessError, Launcher, Zygote

#: Seconds a scenario may take.
TIMEOUT = 30.0

#: Seconds a collective may wait for the other ranks, unless the scenario's timeout is shorter.
GLOO_TIMEOUT = 10.0

#: How often a scenario is tried again because another process took its port.
RETRIES = 3

_HERE = os.path.dirname(os.path.abspath(__file__))
_SITE = os.path.join(_HERE, "_site")


class World:
    """Ranks on demand; use as a context manager, or call :meth:`close`.

    One scenario at a time; for several at once, use several worlds. The processes behind it are
    started with the first scenario, and again after a scenario that killed them.
    """

    def __init__(self, *, python: str | None = None, zygote: Zygote | None = None) -> None:
        """``python`` is the interpreter that has torch; this one by default.

        Worlds that share a ``zygote`` import torch once; whoever made it closes it.
        """
        self.zygote = zygote or Zygote(python=python)
        self._owns = zygote is None
        self._launcher: Launcher | None = None

    def __enter__(self) -> World:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes behind this world, and every rank with them."""
        launcher, self._launcher = self._launcher, None
        if launcher is not None:
            launcher.close()
        if self._owns:
            self.zygote.close()

    def run(
        self,
        script: str | os.PathLike[str],
        args: Sequence[str] = (),
        *,
        world_size: int = 2,
        timeout: float = TIMEOUT,
        env: Mapping[str, str] | None = None,
    ) -> Run:
        """Run ``script`` with ``args`` as torchrun would, on ``world_size`` ranks.

        Raises:
            TorchMissingError: torch is not installed.
            HarnessError: torch cannot be imported, or the script does not exist.
        """
        path = os.path.abspath(script)
        if not os.path.isfile(path):
            raise HarnessError(f"{os.fspath(script)}: no such file")
        return self._scenario(path, None, list(args), world_size, timeout, env)

    def run_function(
        self,
        function: Callable[..., object],
        args: Sequence[Any] = (),
        *,
        world_size: int = 2,
        timeout: float = TIMEOUT,
        env: Mapping[str, str] | None = None,
    ) -> Run:
        """Call a module-level ``function`` on ``world_size`` ranks; ``args`` must fit JSON.

        Raises:
            HarnessError: as for :meth:`run`, or the function is not at the top of a file.
        """
        path = inspect.getsourcefile(function)
        if path is None or "." in function.__qualname__:
            raise HarnessError(f"{function.__qualname__} is not a function at the top of a file")
        name = function.__name__
        return self._scenario(os.path.abspath(path), name, list(args), world_size, timeout, env)

    def _scenario(
        self,
        path: str,
        function: str | None,
        args: list[Any],
        world_size: int,
        timeout: float,
        env: Mapping[str, str] | None,
    ) -> Run:
        if world_size < 1:
            raise HarnessError(f"a world has at least one rank, not {world_size}")
        request = {
            "script": path,
            "function": function,
            "args": args,
            "world_size": world_size,
            "timeout": timeout,
            "gloo_timeout": min(GLOO_TIMEOUT, timeout / 2),
            "env": dict(env or {}),
        }
        root = os.path.dirname(path)
        for _ in range(RETRIES):
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="sampler-lint-") as directory:
                reply = self._ask({**request, "record": directory}, timeout + START_TIMEOUT)
                ranks = [
                    _rank_run(number, rank, directory, root)
                    for number, rank in enumerate(reply["ranks"])
                ]
            if not any("EADDRINUSE" in rank.stderr for rank in ranks):
                break
        return Run(root, ranks, tuple(map(str, args)), time.monotonic() - started)

    def _ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        launcher = self._launcher
        if launcher is None or launcher.ended:
            launcher = self._launcher = self.zygote.launcher()
        try:
            return launcher.ask(request, timeout)
        except BaseException as error:
            self._launcher = None
            launcher.close()
            if isinstance(error, OSError):
                raise HarnessError(
                    f"the process that runs the ranks ended while it ran {request['script']}"
                ) from error
            raise


def run_command(
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    timeout: float = 120.0,
    env: Mapping[str, str] | None = None,
) -> tuple[int, Run]:
    """Run a command such as ``torchrun …`` and record every rank in it from outside.

    The recorder comes in through ``sitecustomize`` on ``PYTHONPATH``, so a command that runs
    Python with ``-I``, ``-E`` or ``-S`` leaves no record. The ranks are those that left one.

    Returns:
        The command's exit status and what was recorded.

    Raises:
        HarnessError: the command cannot be started.
    """
    root = os.path.abspath(cwd or os.curdir)
    with tempfile.TemporaryDirectory(prefix="sampler-lint-") as directory:
        environment = recorded_environment(directory, {**os.environ, **(env or {})})
        started = time.monotonic()
        with _spawned(argv, root, environment) as child:

            def dump(_: supervise.Child) -> None:
                dump_stacks(directory, {child.pid, *supervise.descendants(child.pid)}, wait=0)

            supervise.watch([child], timeout, dump=dump)
        duration = time.monotonic() - started
        logs = main_logs(map(read_log, logs_in(directory)))
        status = child.status if child.status is not None else 1
        ranks = [_command_rank(logs[rank], child, directory, root) for rank in sorted(logs)]
    return status, Run(root, ranks, tuple(argv), duration)


def supervised(
    argv: Sequence[str], cwd: str, environment: Mapping[str, str], timeout: float
) -> supervise.Child:
    """Run a command to its end, or for ``timeout`` seconds; what became of it.

    Raises:
        HarnessError: the command cannot be started.
    """
    with _spawned(argv, cwd, environment) as child:
        supervise.watch([child], timeout)
    return child


@contextlib.contextmanager
def _spawned(
    argv: Sequence[str], cwd: str, environment: Mapping[str, str]
) -> Iterator[supervise.Child]:
    """The command as a supervised child, in a session of its own; nothing of it stays."""
    with supervise.adopting() as others:
        try:
            with _piped(argv, cwd, environment) as child:
                yield child
        finally:
            supervise.kill_orphans(others)


@contextlib.contextmanager
def _piped(
    argv: Sequence[str], cwd: str, environment: Mapping[str, str]
) -> Iterator[supervise.Child]:
    out, err = os.pipe(), os.pipe()
    try:
        process = subprocess.Popen(
            startable(argv, environment),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out[1],
            stderr=err[1],
            start_new_session=True,
        )
    except OSError as error:
        os.close(out[0])
        os.close(err[0])
        raise HarnessError(f"{argv[0]} cannot be started: {error.strerror or error}") from error
    finally:
        os.close(out[1])
        os.close(err[1])
    child = supervise.Child(process.pid, supervise.Sink(out[0]), supervise.Sink(err[0]))
    try:
        yield child
    finally:
        process.returncode = child.status if child.status is not None else -signal.SIGKILL
        os.close(out[0])
        os.close(err[0])


def startable(argv: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The command, its program beside this interpreter where ``PATH`` has none of that name.

    So ``.venv/bin/sampler-lint trace -- torchrun …`` finds the ``torchrun`` of its environment,
    activated or not.
    """
    program, *rest = argv
    path = environment.get("PATH", os.defpath)
    if not os.path.dirname(program) and shutil.which(program, path=path) is None:
        program = shutil.which(program, path=os.path.dirname(sys.executable)) or program
    return [program, *rest]


def recorded_environment(directory: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment that makes a Python program, and those it starts, record themselves."""
    paths = [_SITE, environment.get("PYTHONPATH", "")]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        record.DIRECTORY: directory,
    }


def dump_stacks(directory: str, pids: Collection[int], *, wait: float = supervise.DUMP) -> set[int]:
    """Make those of the processes that are recorded write down where they are; which they were.

    Others would die of the signal.
    """
    names = glob.glob(record.stack_path(glob.escape(directory), "*"))
    recorded = {int(name.split(".")[-2]) for name in names}
    for pid in recorded & set(pids):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, record.DUMP_SIGNAL)
    if recorded:
        time.sleep(wait)
    return recorded & set(pids)


def hung_rank(directory: str, pid: int, root: str) -> str | None:
    """Where a process waited when :func:`dump_stacks` asked it."""
    stack = Path(record.stack_path(directory, pid))
    return waiting_place(stack.read_text("utf-8", "replace"), root) if stack.exists() else None


def _rank_run(number: int, reply: Mapping[str, Any], directory: str, root: str) -> RankRun:
    """What the zygote says about a rank, together with what the rank left."""
    status = reply["status"]
    path = log_of(directory, reply["pid"])
    log = read_log(path) if path else Log(rank=number)
    rank = RankRun(number, "finished", stdout=reply["stdout"], stderr=reply["stderr"], log=log)
    if reply["hung"]:
        _hung(rank, reply["pid"], directory, root)
    elif status != 0:
        rank.outcome = "died"
        rank.reason = f"signal {-status}" if status < 0 else f"exit status {status}"
        with contextlib.suppress(OSError, ValueError):
            left = json.loads(Path(directory, f"{reply['pid']}.error").read_text("utf-8"))
            rank.reason, rank.place = left["error"], left["place"]
    return rank


def _command_rank(log: Log, child: supervise.Child, directory: str, root: str) -> RankRun:
    rank = RankRun(log.rank, "finished", stdout=child.out.text, stderr=child.err.text, log=log)
    told = re.search(rf"exitcode *: ([1-9]\d*) \(pid: {log.pid}\)", child.err.text)
    if came_to_end(rank, root):
        if told and rank.outcome == "finished":  # torchrun saw it leave by sys.exit
            rank.outcome, rank.reason = "died", f"exit status {told[1]}"
    elif child.hung:
        _hung(rank, log.pid, directory, root)
    elif child.status != 0:
        rank.outcome, rank.reason = "died", f"the command ended with status {child.status}"
    return rank


def came_to_end(rank: RankRun, root: str) -> bool:
    """Whether the rank's program came to its end; the exception, if one ended it, is noted.

    The exit status of a command says less: its launcher has one for all ranks, and torch 2.13
    aborts one short gloo program in seven while the interpreter goes down.
    """
    end = rank.log.exit
    if end is not None and end["error"] is not None:
        rank.outcome, rank.reason = "died", end["error"]
        if end["path"]:
            rank.place = f"{relative(end['path'], root)}:{end['line']}"
    return end is not None


def _hung(rank: RankRun, pid: int, directory: str, root: str) -> None:
    rank.outcome, rank.reason = "hung", "time was up"
    rank.place = hung_rank(directory, pid, root)
