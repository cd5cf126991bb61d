"""A progress bar, for what takes long."""

from __future__ import annotations

import os
import shutil
from typing import TextIO

_BAR = 20


class Progress:
    """A bar in one line of a terminal, which is gone afterwards."""

    def __init__(self, total: int, stream: TextIO) -> None:
        """Prepare for ``total`` steps; a single one, or no terminal, is not worth a bar."""
        self._stream = stream
        self._total = total
        self._done = 0
        self._shown = total > 1 and stream.isatty() and os.environ.get("TERM") != "dumb"

    def step(self, name: str) -> None:
        """Say that ``name`` is worked on now."""
        from sampler_lint.reporters.text import visible

        if self._shown:
            full = _BAR * self._done // self._total
            line = f"[{'#' * full}{'.' * (_BAR - full)}] {self._done}/{self._total} {visible(name)}"
            self._stream.write(f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K")
            self._stream.flush()
        self._done += 1

    def close(self) -> None:
        """Take the bar away."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
