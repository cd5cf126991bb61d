"""A progress bar, for what takes long."""

from __future__ import annotations

import os
import shutil
import time
from typing import TextIO

from sampler_lint.reporters.text import visible

_BAR = 20
_PAUSE = 0.1
"""Seconds from one drawing to the next, where nothing but a number changes."""


class Progress:
    """A bar in one line of a terminal, which is gone afterwards; without a terminal, nothing."""

    def __init__(self, total: int, stream: TextIO, *, delay: float = 0.0) -> None:
        """Prepare for ``total`` steps, to be shown when ``delay`` seconds are over."""
        self._stream = stream
        self._total = total
        self._done = -1
        self._name = ""
        self._stage = ""
        self._first = self._next = time.monotonic() + delay
        self._drawn = False
        self._listens = stream.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def step(self, name: str) -> None:
        """Say that ``name`` is worked on now; a single step is not worth a bar."""
        self._done += 1
        self._name = name
        if self._total > 1:
            self._show(name, self._done, self._total)

    def watch(self, stage: str, done: int, total: int) -> None:
        """Say how far a stage of this step is (:data:`sampler_lint.timings.Watch`)."""
        if stage == self._stage and time.monotonic() < self._next:
            return
        self._stage = stage
        if self._total == 1:
            self._show(stage, done, total)
        else:
            part = f"{_numbers(done, total)}{stage} in {self._name}"
            self._show(part, self._done, self._total)

    def close(self) -> None:
        """Take the bar away; whatever is printed afterwards brings it back."""
        if self._drawn:
            self._drawn = False
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _show(self, text: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._listens or now < self._first:
            return
        full = _BAR * done // total if total else 0
        line = f"[{'#' * full}{'.' * (_BAR - full)}] {_numbers(done, total)}{visible(text)}"
        self._stream.write(f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K")
        self._stream.flush()
        self._drawn = True
        self._next = now + _PAUSE


def _numbers(done: int, total: int) -> str:
    if total:
        return f"{done}/{total} "
    return f"{done} " if done else ""
