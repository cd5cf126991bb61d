"""Run a program on N ranks over gloo, on this machine, with the recorder in it.

The ranks are forked from a process that has imported torch once: a scenario costs tenths of a
second.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sampler_lint.harness import HarnessError, TorchMissingError, inside
from sampler_lint.harness.command import came_to_end, hung
from sampler_lint.harness.inside import supervise
from sampler_lint.harness.runs import Log, RankRun, Run, log_of, read_log

#: Seconds a scenario may take.
TIMEOUT = 30.0

#: Seconds a collective may wait for the other ranks, unless the scenario's timeout is shorter.
GLOO_TIMEOUT = 10.0

#: Seconds for importing torch in the fork server; a cold disk takes its time.
START_TIMEOUT = 180.0

#: How often a scenario is tried again because another process took its port.
RETRIES = 3

#: The fork server's program: the folder of neither this file nor the caller is on its path.
_BOOT = (
    "import importlib, importlib.util as u, sys; sys.path.pop(0); "
    "spec = u.spec_from_file_location('_sampler_lint', sys.argv.pop(1)); "
    "package = sys.modules[spec.name] = u.module_from_spec(spec); "
    "spec.loader.exec_module(package); "
    "importlib.import_module('_sampler_lint.fork_server').main()"
)


class World(contextlib.AbstractContextManager["World"]):
    """Ranks on demand, for any number of threads; a context manager, or call :meth:`close`.

    The fork server behind it is started with the first scenario, and again if it has ended.
    """

    def __init__(self, *, python: str | None = None, imports: Sequence[str] = ()) -> None:
        """``python`` is the interpreter that has torch; this one by default.

        Modules named in ``imports`` are imported once, before the ranks are forked, as torch is: a
        training framework takes seconds, in each rank of each scenario.
        """
        self._python = python or sys.executable
        self._imports = tuple(imports)
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._running: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes behind this world, and every rank with them."""
        for connection in [*self._running]:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._end_server()

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
            HarnessError: torch or one of ``imports`` cannot be imported, or there is no script.
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

    # -- the fork server

    def _ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        """What became of the ranks, from a launcher that ends when the connection does."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs, self._lock:
                control = self._server()
                with contextlib.suppress(OSError):  # it has just ended, and the answer with it
                    socket.send_fds(control, [b"+"], [theirs.fileno()])
            self._running.add(ours)
            try:
                ours.sendall(json.dumps(request).encode("ascii") + b"\n")
                return _line(ours, timeout)
            except OSError as error:
                raise HarnessError(
                    f"the process that runs the ranks has ended while it ran {request['script']}"
                ) from error
            finally:
                self._running.discard(ours)

    def _server(self) -> socket.socket:
        """The connection to the fork server, started if need be."""
        if self._process is not None and self._process.poll() is None:
            assert self._control is not None
            return self._control
        self._end_server()
        if not hasattr(os, "fork") or not hasattr(os, "waitid"):
            raise HarnessError(f"proofs fork their ranks, which {sys.platform} cannot; use Linux")
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
        }
        if os.path.exists("/sys/class/net/lo"):
            # Gloo otherwise asks for this machine's name, which need not resolve.
            environment.setdefault("GLOO_SOCKET_IFNAME", "lo")
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [self._python, "-c", _BOOT, inside.__file__, *self._imports],
                stdin=theirs.fileno(),
                env=environment,
                start_new_session=True,
            )
        try:
            hello = _line(self._control, START_TIMEOUT)
        except OSError as error:
            self._end_server()
            raise HarnessError(f"{self._python} ended while it imported torch") from error
        if "error" in hello:
            self._end_server()
            if hello["missing"]:
                raise TorchMissingError
            raise HarnessError(f"{hello['module']} cannot be imported: {hello['error']}")
        return self._control

    def _end_server(self) -> None:
        control, self._control = self._control, None
        process, self._process = self._process, None
        if control is not None:
            control.close()
        if process is not None:
            try:
                process.wait(timeout=supervise.GRACE)  # it awaits its launchers
            except subprocess.TimeoutExpired:
                supervise.kill([*supervise.descendants(process.pid), process.pid])
                process.wait()


def _line(connection: socket.socket, timeout: float) -> dict[str, Any]:
    """The next line from the other side.

    Raises:
        OSError: it has ended, or is silent for ``timeout`` seconds.
    """
    connection.settimeout(timeout)
    with connection.makefile("rb") as file:
        line = file.readline()
    if not line.endswith(b"\n"):
        raise ConnectionResetError("it has ended")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _rank_run(number: int, reply: Mapping[str, Any], directory: str, root: str) -> RankRun:
    """What the launcher says about a rank, together with what the rank left."""
    status = reply["status"]
    path = log_of(directory, reply["pid"])
    log = read_log(path) if path else Log(rank=number)
    rank = RankRun(number, "finished", stdout=reply["stdout"], stderr=reply["stderr"], log=log)
    if reply["hung"]:
        hung(rank, reply["pid"], directory, root)
    elif status != 0:
        rank.outcome = "died"
        rank.reason = f"signal {-status}" if status < 0 else f"exit status {status}"
        came_to_end(rank, root)
    return rank
