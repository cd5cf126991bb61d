"""The files in which a process leaves its record."""

from __future__ import annotations

import array
import contextlib
import faulthandler
import json
import os
import signal
import socket
import time
from typing import Any

from .sampling import LONGEST_LOG
from .tape import CLOEXEC, TOTALS, Tape

#: Where the log goes; set, it also makes ``sitecustomize`` install the recorder.
DIRECTORY = "SAMPLER_LINT_RECORD"

#: Set to 1, every index is kept.
KEEP_ALL = "SAMPLER_LINT_KEEP_ALL"

#: The optimizer step after which a recorded process is to end, as if it were preempted.
STOP_AT = "SAMPLER_LINT_STOP_AT"

#: Real-time, so that no program has it for something else.
DUMP_SIGNAL = getattr(signal, "SIGRTMIN", 0) and signal.SIGRTMIN + 7

#: Events that are noted even when nothing else is.
_LAST = ("exit", "failed", "full")


def host_name() -> str:
    """This machine's name as it stands in the names of files."""
    return "".join(one if one.isalnum() else "-" for one in socket.gethostname())


def stack_path(directory: str, pid: int | str) -> str:
    """Where a process of this machine writes its stacks."""
    return os.path.join(directory, f"{host_name()}.{pid}.stack")


class Log:
    """What a process writes, and how much of it."""

    def __init__(self) -> None:
        self.directory = ""
        self.keep_all = False
        #: How often gradients were computed, over all processes.
        self.backwards = 0
        self.start()

    def start(self) -> None:
        """Begin a log of this process."""
        self.file: int | None = None
        self._tried = False
        self._stack: int | None = None
        self.tape: Tape | None = None
        #: Where the workers of this process's loaders note their draws.
        self.draws = ""
        self.totals: Any = None
        #: Indices that were kept.
        self.kept = 0
        self._written = 0
        #: So much was written that the rest is only counted.
        self.full = False

    def note(self, event: str, **fields: Any) -> None:
        """Append one line to the log."""
        if self.file is None:
            self._open()
        assert self.file is not None
        if self.full and event not in _LAST:
            return
        line = json.dumps({"event": event, **fields}, separators=(",", ":"))
        self._written += os.write(self.file, line.encode("ascii") + b"\n")
        if self._written > LONGEST_LOG and not self.full:
            self.full = True
            self.note("full")

    def _open(self) -> None:
        if self._tried:
            raise OSError("the log cannot be written")
        self._tried = True
        host = host_name()
        rank = os.environ.get("RANK", "")
        name = f"{host}.rank{rank if rank.isdecimal() else ''}.{os.getpid()}"
        stem = os.path.join(self.directory, name)
        for number in range(1, 100):  # another machine may have the same name
            with contextlib.suppress(FileExistsError):
                self.tape = Tape(f"{stem}.tape")
                break
            stem = os.path.join(self.directory, f"{name}-{number}")
        assert self.tape is not None
        self.draws = f"{stem}.draws"
        self.totals = self.tape.append(TOTALS, array.array("q", [0] * TOTALS))
        self.file = os.open(
            f"{stem}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT | CLOEXEC, 0o600
        )
        self.note(
            "process",
            pid=os.getpid(),
            host=host,
            attempt=int(os.environ.get("TORCHELASTIC_RESTART_COUNT") or 0),
            time=time.time(),
        )
        self.watch_signal()

    def watch_signal(self) -> None:
        """From now on :data:`DUMP_SIGNAL` writes every thread's stack to :func:`stack_path`."""
        if DUMP_SIGNAL and self._stack is None:
            path = stack_path(self.directory, os.getpid())
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | CLOEXEC
            self._stack = os.open(path, flags, 0o600)
            faulthandler.register(DUMP_SIGNAL, file=self._stack, all_threads=True, chain=False)

    def failed(self, error: Exception) -> None:
        """Note what made the recorder fall silent."""
        with contextlib.suppress(Exception):
            self.note("failed", reason=f"{type(error).__name__}: {error}")
