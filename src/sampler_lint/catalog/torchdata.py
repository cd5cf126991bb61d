"""torchdata 0.11: ``stateful_dataloader/{stateful_dataloader,sampler}.py``."""

from __future__ import annotations

from sampler_lint.catalog.schema import Framework, KnownClass, words
from sampler_lint.catalog.torch import (
    DISTRIBUTED_PARAMS,
    LOADER_KEYWORDS,
    LOADER_PARAMS,
    TORCH_DATA,
)

_STATEFUL = "torchdata.stateful_dataloader."

FRAMEWORK = Framework(
    "torchdata",
    "torchdata",
    packages=("torchdata",),
    distributions=("torchdata",),
    releases=("0.8", "0.9", "0.10", "0.11"),
    classes=(
        KnownClass(
            _STATEFUL + "StatefulDataLoader",
            "loader",
            base=TORCH_DATA + "DataLoader",
            params=LOADER_PARAMS,
            keywords=LOADER_KEYWORDS | {"in_order", "snapshot_every_n_steps"},
            required=1,
            attributes=words("sampler batch_sampler dataset batch_size"),
            aliases=(_STATEFUL + "stateful_dataloader.StatefulDataLoader",),
        ),
        KnownClass(
            _STATEFUL + "sampler.RandomSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=("data_source", "replacement", "num_samples", "generator"),
            required=1,
            attributes=words("data_source replacement generator _num_samples"),
            methods=words("__iter__ __len__ num_samples"),
            shuffles=True,
        ),
        KnownClass(
            _STATEFUL + "sampler.BatchSampler",
            "batch_sampler",
            base=TORCH_DATA + "BatchSampler",
            params=("sampler", "batch_size", "drop_last"),
            required=3,
            methods=words("__iter__"),
        ),
        KnownClass(
            _STATEFUL + "sampler.StatefulDistributedSampler",
            "sampler",
            base=TORCH_DATA + "DistributedSampler",
            params=DISTRIBUTED_PARAMS,
            required=1,
            attributes=words("_YIELDED yielded next_yielded"),
            methods=words("__iter__ state_dict load_state_dict"),
            distributed=True,
            shuffles="shuffle",
        ),
    ),
)
