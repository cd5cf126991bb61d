"""The record of a run that the Transformers ``Trainer`` trains."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sampler_lint.integrations.recording import Recording

if TYPE_CHECKING:
    TrainerCallback = object
else:
    from transformers import TrainerCallback


class TransformersCallback(TrainerCallback):
    """Records what the Trainer's loaders yield, and reports it when ``train`` ends.

    ``fail_on`` and ``keep`` are those of :class:`.Recording`.

    Raises:
        SamplerBugsError: at the end of ``train``, if a bug of ``fail_on`` was found.
    """

    def __init__(
        self, fail_on: str | Collection[str] = (), keep: str | os.PathLike[str] | None = None
    ) -> None:
        self.recording = Recording(fail_on, keep)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Report the run, on rank 0."""
        self.recording.finish()
