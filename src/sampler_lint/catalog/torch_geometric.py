"""torch_geometric 2.x: ``loader/``."""

from __future__ import annotations

from sampler_lint.catalog.schema import Framework, KnownClass, words
from sampler_lint.catalog.torch import TORCH_DATA

_LOADER = "torch_geometric.loader."

FRAMEWORK = Framework(
    "torch_geometric",
    "torch_geometric",
    packages=("torch_geometric",),
    distributions=("torch_geometric",),
    releases=("2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8"),
    classes=(
        KnownClass(
            _LOADER + "DataLoader",
            "loader",
            base=TORCH_DATA + "DataLoader",
            params=("dataset", "batch_size", "shuffle", "follow_batch", "exclude_keys"),
            open=True,
            required=1,
            attributes=words("follow_batch exclude_keys"),
            # Its name before 2.0, kept as an alias since.
            aliases=(
                _LOADER + "dataloader.DataLoader",
                "torch_geometric.data.DataLoader",
                "torch_geometric.data.dataloader.DataLoader",
            ),
        ),
        KnownClass(
            _LOADER + "DynamicBatchSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=("dataset", "max_num", "mode", "shuffle", "skip_too_big", "num_steps"),
            required=2,
            attributes=words("dataset max_num mode shuffle skip_too_big num_steps max_steps"),
            methods=words("__iter__ __len__"),
            shuffles="shuffle",
            aliases=(_LOADER + "dynamic_batch_sampler.DynamicBatchSampler",),
        ),
        KnownClass(
            _LOADER + "ImbalancedSampler",
            "sampler",
            base=TORCH_DATA + "WeightedRandomSampler",
            params=("dataset", "input_nodes", "num_samples"),
            required=1,
            shuffles=True,
            aliases=(_LOADER + "imbalanced_sampler.ImbalancedSampler",),
        ),
    ),
)
