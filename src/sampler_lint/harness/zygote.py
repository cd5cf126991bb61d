"""The client's side of the process that has imported torch once, and of those it forks."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import Any

from sampler_lint.harness import supervise

#: Seconds for importing torch in the zygote; a cold disk takes its time.
START_TIMEOUT = 180.0

#: Seconds that a process gets to end by itself when its connection is closed.
END_TIMEOUT = 0.5

_SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_zygote.py")


class HarnessError(Exception):
    """The harness itself cannot work here; the message says what to do."""


class TorchMissingError(HarnessError):
    """torch is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "torch is not installed, and a proof runs real training: "
            "pip install 'sampler-lint[verify]'"
        )


class Launcher:
    """A process that runs one scenario after the other, forked from a zygote."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.pid: int = _line(connection, START_TIMEOUT)["pid"]

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        self._connection.settimeout(0)
        try:
            return not self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        """The answer to ``request``.

        Raises:
            OSError: the process has ended, or is silent for ``timeout`` seconds.
        """
        self._connection.sendall(json.dumps(request).encode("ascii") + b"\n")
        return _line(self._connection, timeout)

    def close(self) -> None:
        """End the process, and every rank with it."""
        try:
            self._connection.shutdown(socket.SHUT_WR)
            _line(self._connection, END_TIMEOUT)
        except TimeoutError:
            supervise.kill([*supervise.descendants(self.pid), self.pid])
        except OSError:
            pass  # it has ended
        self._connection.close()


class Zygote:
    """The process that has imported torch; use as a context manager, or call :meth:`close`.

    Started with the first launcher, and again if it has ended.
    """

    def __init__(self, *, python: str | None = None) -> None:
        """``python`` is the interpreter that has torch; this one by default."""
        self._python = python or sys.executable
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Zygote:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; launchers go on until they are closed."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        control, self._control = self._control, None
        process, self._process = self._process, None
        if control is not None:
            control.close()
        if process is not None:
            try:
                process.wait(timeout=4 * END_TIMEOUT)  # it awaits its launchers
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def launcher(self) -> Launcher:
        """A new launcher.

        Raises:
            TorchMissingError: torch is not installed.
            HarnessError: torch cannot be imported, or this system cannot fork.
        """
        with self._lock:
            control = self._start()
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    socket.send_fds(control, [b"+"], [theirs.fileno()])
                return Launcher(ours)
            except OSError as error:
                ours.close()
                self._close()
                raise HarnessError("the process that has imported torch has ended") from error

    def _start(self) -> socket.socket:
        if self._process is not None and self._process.poll() is None:
            assert self._control is not None
            return self._control
        self._close()
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
                [self._python, _SCRIPT],
                stdin=theirs.fileno(),
                env=environment,
                start_new_session=True,
            )
        try:
            hello = _line(self._control, START_TIMEOUT)
        except OSError as error:
            self._close()
            raise HarnessError(f"{self._python} ended while it imported torch") from error
        if "error" in hello:
            self._close()
            if hello["missing"]:
                raise TorchMissingError
            raise HarnessError(f"torch cannot be imported: {hello['error']}")
        return self._control


def _line(connection: socket.socket, timeout: float) -> dict[str, Any]:
    """The next line from the other side.

    Raises:
        OSError: it has ended, or is silent for ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    data = b""
    while not data.endswith(b"\n"):
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        chunk = connection.recv(1 << 16)
        if not chunk:
            raise ConnectionResetError("it has ended")
        data += chunk
    answer: dict[str, Any] = json.loads(data)
    return answer
