"""The record of a run that Lightning trains."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sampler_lint.integrations.recording import Recording, SamplerBugsError

# A Trainer takes the callbacks of its own package: the one that the program has imported.
if TYPE_CHECKING:
    Callback = object
elif "pytorch_lightning" in sys.modules:
    from pytorch_lightning.callbacks import Callback
else:
    from lightning.pytorch.callbacks import Callback


class LightningCallback(Callback):
    """Records what the Trainer's loaders yield, and reports it when ``fit`` ends.

    ``fail_on`` and ``keep`` are those of :class:`.Recording`.

    Raises:
        SamplerBugsError: at the end of ``fit``, if a bug of ``fail_on`` was found.
    """

    def __init__(
        self, fail_on: str | Collection[str] = (), keep: str | os.PathLike[str] | None = None
    ) -> None:
        super().__init__()
        self.recording = Recording(fail_on, keep)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Report the run, on rank 0."""
        self.recording.finish()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Report what rank 0 has read until the exception."""
        if not isinstance(exception, SamplerBugsError):  # which says that all was reported
            Recording(keep=self.recording.keep).finish(together=False)
