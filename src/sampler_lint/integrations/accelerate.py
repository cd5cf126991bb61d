"""The record of a run that Accelerate trains."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sampler_lint.integrations.recording import Recording

if TYPE_CHECKING:
    GeneralTracker = object
    Accelerator: Any = None
else:
    from accelerate import Accelerator
    from accelerate.tracking import GeneralTracker


class AccelerateTracker(GeneralTracker):
    """Records what the prepared loaders yield, and reports it in ``Accelerator.end_training``.

    Accelerate itself calls trackers on the main process only (``Accelerator.init_trackers``, as of
    1.15), but a report needs every rank: ``end_training`` is patched, on each. Give one to the
    Accelerator::

        accelerator = Accelerator(log_with=AccelerateTracker(fail_on="any"))

    ``fail_on`` and ``keep`` are those of :class:`.Recording`.

    Raises:
        SamplerBugsError: in ``end_training``, if a bug of ``fail_on`` was found.
    """

    name = "sampler-lint"
    requires_logging_directory = False

    def __init__(
        self, fail_on: str | Collection[str] = (), keep: str | os.PathLike[str] | None = None
    ) -> None:
        super().__init__()
        self.recording = Recording(fail_on, keep)
        if not hasattr(Accelerator.end_training, "__sampler_lint__"):
            Accelerator.end_training = _reporting(Accelerator.end_training)

    @property
    def tracker(self) -> Recording:
        """The recording."""
        return self.recording


def _reporting(end_training: Any) -> Any:
    @functools.wraps(end_training)
    def reported(accelerator: Any) -> None:
        for tracker in accelerator.log_with:
            if isinstance(tracker, AccelerateTracker):
                tracker.recording.finish()
        end_training(accelerator)

    reported.__sampler_lint__ = True  # type: ignore[attr-defined]
    return reported
