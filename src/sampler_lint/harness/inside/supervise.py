"""Watch processes that nobody trusts: drain their output, end them in time, leave no child."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

#: Bytes kept of each stream, at its beginning and at its end.
HEAD = TAIL = 64 * 1024

#: Seconds that processes get to end by themselves once another one has ended, or died.
GRACE = 5.0

#: Seconds between two looks at the processes.
TICK = 0.01

#: What :func:`prctl` is asked for: a signal when the parent dies; the children of dead children.
SET_DEATH_SIGNAL, SET_SUBREAPER = 1, 36

#: Seconds a process gets to write its stacks before it is killed.
DUMP = 0.5


class Sink:
    """The bounded end of a pipe: whatever is written, the beginning and the end are kept."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._head = b""
        self._tail = b""
        self._size = 0

    def read(self) -> bool:
        """Take what is there; False when the pipe has ended."""
        data = os.read(self.descriptor, 1 << 18)
        self._size += len(data)
        room = HEAD - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[max(room, 0) :])[-TAIL:]
        return bool(data)

    @property
    def text(self) -> str:
        """The output, with a note in the place of what was left out."""
        left_out = self._size - len(self._head) - len(self._tail)
        middle = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
        return (self._head + middle + self._tail).decode("utf-8", "replace")


@dataclass(slots=True)
class Child:
    """A process under supervision; it leads a process group of its own."""

    pid: int
    out: Sink
    err: Sink
    status: int | None = None
    """Exit code, or minus the signal; None while it runs."""
    hung: bool = False
    """It was still running when time was up."""
    left_behind: list[int] = field(default_factory=list)
    """Processes it had started that were still there."""


def watch(
    children: list[Child],
    timeout: float,
    *,
    dump: Callable[[Child], None] = lambda child: None,
    abort: int | None = None,
) -> None:
    """Wait for all children, at most ``timeout`` seconds; kill what is left, grandchildren too.

    One that has died gives the others :data:`GRACE` seconds. ``dump`` is called on each hung
    process before it is killed. ``abort`` is a descriptor whose end of file ends it all.
    """
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for child in children:
            for sink in (child.out, child.err):
                selector.register(sink.descriptor, selectors.EVENT_READ, sink)
        if abort is not None:
            selector.register(abort, selectors.EVENT_READ)
        try:
            while any(child.status is None for child in children):
                _drain(selector, TICK)
                for child in children:
                    if child.status is None and _has_ended(child.pid):
                        _end(child)
                        if child.status != 0:
                            deadline = min(deadline, time.monotonic() + GRACE)
                if time.monotonic() >= deadline:
                    break
            hung = [child for child in children if child.status is None]
            for child in hung:
                child.hung = True
                dump(child)
            until = time.monotonic() + DUMP
            while hung and time.monotonic() < until:
                _drain(selector, TICK)
        finally:
            for child in children:
                if child.status is None:
                    _end(child)
        _drain(selector, 0)


def _drain(selector: selectors.BaseSelector, timeout: float) -> None:
    """Take what the pipes hold, waiting at most ``timeout`` seconds for the first of it."""
    until = time.monotonic() + 10 * TICK  # an endless printer must not keep us from the clock
    events = selector.select(timeout)
    if not selector.get_map():
        time.sleep(timeout)
    while events and time.monotonic() < until:
        for key, _ in events:
            if key.data is None:
                raise KeyboardInterrupt("the process that asked for this is gone")
            if not key.data.read():
                selector.unregister(key.fd)
        events = selector.select(0)


def _has_ended(pid: int) -> bool:
    """Whether the process has ended; it stays a zombie, so that its number is not reused."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(child: Child) -> None:
    """Kill the process and all that it started, and take its status."""
    below = descendants(child.pid)
    running = not _has_ended(child.pid)
    if running:
        kill([child.pid])
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    kill(below)
    child.left_behind += below
    child.status = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])


#: Held while somebody begins or ends to adopt, and while it is seen what is left behind.
_ADOPTING = threading.Lock()
_adopters = 0
_before = set[int]()


@contextlib.contextmanager
def adopting() -> Iterator[set[int]]:
    """Be the parent of whatever others leave behind in here (Linux only).

    What is yielded are this process's children from before, which are no orphans. While several
    threads are in here, nobody can tell whose a process is: the last one cleans up.
    """
    global _adopters
    with _ADOPTING:
        _adopters += 1
        prctl(SET_SUBREAPER, 1)
        if _adopters == 1:
            _before.update(pid for pid, _ in children(os.getpid()))
        before = set(_before)
    try:
        yield before
    finally:
        with _ADOPTING:
            _adopters -= 1
            if not _adopters:
                _before.clear()
                prctl(SET_SUBREAPER, 0)


def prctl(option: int, value: int) -> None:
    """Ask the kernel for something that only Linux knows."""
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def orphans(known: Collection[int]) -> list[int]:
    """The running processes below this one's children that are not ``known``.

    The status of such a child that has ended is taken. There are none while another thread runs
    a command, whose processes they may be.
    """
    with _ADOPTING:
        return _orphans(known) if _adopters < 2 else []


def _orphans(known: Collection[int]) -> list[int]:
    found = []
    for pid, zombie in children(os.getpid()):
        if pid in known:
            continue
        if zombie:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        else:
            found += [pid, *descendants(pid)]
    return found


def kill_orphans(known: Collection[int]) -> None:
    """Kill until there are no more :func:`orphans`."""
    while left := orphans(known):
        kill(left)
        time.sleep(TICK / 10)


def kill(pids: Iterable[int]) -> None:
    """Kill processes that may be gone already."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[tuple[int, bool]]:
    """The direct children of ``pid``, each with whether it is a zombie (empty without /proc)."""
    return _children().get(pid, [])


def descendants(pid: int) -> list[int]:
    """Every running process below ``pid``, as far as /proc tells (empty without it)."""
    below = _children()
    found: list[int] = []
    queue = [pid]
    while queue:
        running = [child for child, zombie in below.get(queue.pop(), []) if not zombie]
        found += running
        queue += running
    return found


def _children() -> dict[int, list[tuple[int, bool]]]:
    table: dict[int, list[tuple[int, bool]]] = {}
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return {}
    for name in names:
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{name}/stat", "rb") as file:
                # The command may hold blanks and brackets; the state comes after the last one.
                state, parent = file.read().rpartition(b")")[2].split()[:2]
            table.setdefault(int(parent), []).append((int(name), state == b"Z"))
    return table
