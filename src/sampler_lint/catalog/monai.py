"""MONAI 1.x: ``data/``. What it shards, it shards by torch's own sampler."""

from __future__ import annotations

from sampler_lint.catalog.schema import Framework, KnownClass, words
from sampler_lint.catalog.torch import TORCH_DATA

_DATA = "monai.data."

FRAMEWORK = Framework(
    "monai",
    "MONAI",
    packages=("monai",),
    distributions=("monai",),
    releases=("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6"),
    classes=(
        KnownClass(
            _DATA + "dataloader.DataLoader",
            "loader",
            base=TORCH_DATA + "DataLoader",
            params=("dataset", "num_workers"),
            open=True,
            required=1,
            aliases=(_DATA + "DataLoader",),
        ),
        KnownClass(
            _DATA + "thread_buffer.ThreadDataLoader",
            "loader",
            base=_DATA + "dataloader.DataLoader",
            params=("dataset", "buffer_size", "buffer_timeout", "repeats", "use_thread_workers"),
            open=True,
            required=1,
            attributes=words("buffer_size buffer_timeout repeats"),
            methods=words("__iter__"),
            aliases=(_DATA + "ThreadDataLoader",),
        ),
        KnownClass(
            _DATA + "samplers.DistributedSampler",
            "sampler",
            base=TORCH_DATA + "DistributedSampler",
            params=("dataset", "even_divisible", "num_replicas", "rank", "shuffle"),
            open=True,
            required=1,
            attributes=words("num_samples total_size"),
            distributed=True,
            shuffles="shuffle",
            aliases=(_DATA + "DistributedSampler",),
        ),
    ),
)
