"""Work on the side: a second process, where it pays for itself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def _uninterrupted() -> Iterator[set[int]]:
    """Ctrl-C and a request to end wait until the block is done; gives the mask from before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Aside:
    """A function's result, computed in a process of its own where ``forks``.

    The process starts when the context is entered and ends with it. The result must survive
    JSON. Whatever goes wrong in that process, the function is called in this one.
    """

    def __init__(self, function: Callable[[], Any], *, forks: bool) -> None:
        self._function = function
        self._forks = forks
        self._child: tuple[int, int] | None = None

    def __enter__(self) -> Aside:
        if self._forks and hasattr(os, "fork") and threading.active_count() == 1:
            try:
                with contextlib.suppress(OSError), _uninterrupted() as before:
                    self._child = self._start(before)
            except BaseException:
                # An interrupt that waited until the process was known: nobody calls `__exit__`.
                self.__exit__()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            child, read = self._child
            self._child = None
            os.close(read)
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)

    def _start(self, signals: set[int]) -> tuple[int, int]:
        read, write = os.pipe()
        # What is buffered belongs to this process alone.
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            child = os.fork()
        except OSError:
            os.close(read)
            os.close(write)
            raise
        if child:
            os.close(write)
            return child, read
        status = 1
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, signals)
            os.close(read)
            with open(write, "w", encoding="ascii") as file:
                json.dump(self._function(), file)
            status = 0
        finally:
            # Not sys.exit: the parent's open files and handlers are none of the child's.
            os._exit(status)

    def result(self) -> Any:
        """What the function returns, waited for."""
        if self._child is not None:
            child, read = self._child
            with open(read, encoding="ascii", closefd=False) as file:
                said = file.read()
            self._child = None
            os.close(read)
            _, status = os.waitpid(child, 0)
            if status == 0:
                with contextlib.suppress(ValueError):
                    return json.loads(said)
        return self._function()
