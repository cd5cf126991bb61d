"""The record of a run that Composer trains."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sampler_lint.integrations.recording import Recording

if TYPE_CHECKING:
    Callback = object
else:
    from composer import Callback


class ComposerCallback(Callback):
    """Records what the Trainer's loaders yield, and reports it when ``fit`` ends.

    ``fail_on`` and ``keep`` are those of :class:`.Recording`.

    Raises:
        SamplerBugsError: at the end of ``fit``, if a bug of ``fail_on`` was found.
    """

    def __init__(
        self, fail_on: str | Collection[str] = (), keep: str | os.PathLike[str] | None = None
    ) -> None:
        self.recording = Recording(fail_on, keep)

    def fit_end(self, state: Any, logger: Any) -> None:
        """Report the run, on rank 0."""
        self.recording.finish()
