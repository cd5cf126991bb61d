"""timm 0.4 and later: ``data/loader.py``. What it shards, it shards by torch's own sampler."""

from __future__ import annotations

from sampler_lint.catalog.schema import Factory, Framework
from sampler_lint.catalog.torch import TORCH_DATA

FRAMEWORK = Framework(
    "timm",
    "timm",
    packages=("timm",),
    distributions=("timm",),
    releases=("0.4.5", "0.4.12", "0.5.4", "0.6.13", "0.8", "0.9", "1.0"),
    factories=(
        Factory(
            ("timm.data.loader.create_loader", "timm.data.create_loader"),
            ("dataset", "input_size", "batch_size", "is_training"),
            sampler=TORCH_DATA + "DistributedSampler",
            asked=("is_training", "distributed"),
        ),
    ),
)
