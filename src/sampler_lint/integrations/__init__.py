"""Callbacks that record what a training run reads, and report it when training ends.

They are `sampler-lint trace` from inside: the same record, the same findings. Each is imported
when it is asked for, with its framework::

    from sampler_lint.integrations import LightningCallback

    trainer = Trainer(callbacks=[LightningCallback(fail_on="any")])
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sampler_lint.integrations.accelerate import AccelerateTracker
    from sampler_lint.integrations.composer import ComposerCallback
    from sampler_lint.integrations.lightning import LightningCallback
    from sampler_lint.integrations.recording import Recording, SamplerBugsError
    from sampler_lint.integrations.transformers import TransformersCallback

__all__ = [
    "AccelerateTracker",
    "ComposerCallback",
    "LightningCallback",
    "Recording",
    "SamplerBugsError",
    "TransformersCallback",
]

_HOMES = {
    "AccelerateTracker": "accelerate",
    "ComposerCallback": "composer",
    "LightningCallback": "lightning",
    "Recording": "recording",
    "SamplerBugsError": "recording",
    "TransformersCallback": "transformers",
}


def __getattr__(name: str) -> object:
    """Import a callback, and its framework, when it is first used."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
