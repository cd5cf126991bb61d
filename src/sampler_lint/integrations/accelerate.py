"""The record of a run that Accelerate spreads over processes."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sampler_lint.integrations.recording import Recording

if TYPE_CHECKING:
    GeneralTracker = object
else:
    from accelerate.tracking import GeneralTracker


class AccelerateTracker(GeneralTracker):
    """Records what loaders yield, and reports it at ``accelerator.end_training()``.

    ``Accelerator(log_with=[AccelerateTracker()])``, and ``accelerator.init_trackers(...)`` as for
    any tracker. ``fail_on`` and ``keep`` are those of :class:`.Recording`.

    Raises:
        SamplerBugsError: at ``end_training()``, if a bug of ``fail_on`` was found.
    """

    name = "sampler_lint"
    requires_logging_directory = False
    main_process_only = False

    def __init__(
        self, fail_on: str | Collection[str] = (), keep: str | os.PathLike[str] | None = None
    ) -> None:
        super().__init__()
        self.recording = Recording(fail_on, keep)

    @property
    def tracker(self) -> Recording:
        """The recording."""
        return self.recording

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """Nothing: the configuration is not recorded."""

    def log(self, values: dict[str, Any], step: int | None = None, **kwargs: Any) -> None:
        """Nothing: what is logged is not recorded."""

    def finish(self) -> None:
        """Report the run, on rank 0."""
        self.recording.finish()
