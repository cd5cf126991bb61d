"""DeepSpeed 0.19: ``runtime/dataloader.py``. It never calls ``set_epoch``."""

from __future__ import annotations

from sampler_lint.catalog.schema import Contract, Framework, words

_INIT = "deepspeed.runtime.dataloader:DeepSpeedDataLoader.__init__"

FRAMEWORK = Framework(
    "deepspeed",
    "DeepSpeed",
    packages=("deepspeed",),
    distributions=("deepspeed",),
    releases=(
        "0.3.10", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.10", "0.11", "0.12", "0.13",
        "0.14", "0.15", "0.16", "0.17", "0.18", "0.19",
    ),
    trainers=words("initialize DeepSpeedEngine"),
    own_data="training_data",
    contracts=(
        Contract(
            "replaces", "sampler", ("DistributedSampler",),
            when="`deepspeed.initialize(training_data=...)` makes the loader: its epoch stays 0 "
            "unless the program sets it",
            source=_INIT,
            code=("data_sampler = DistributedSampler(dataset=dataset,",),
        ),
        Contract(
            "reads", "sampler", ("__len__",),
            when="it is passed as `data_sampler`: it yields indices, not batches",
            source=_INIT,
            code=("len(self.data_sampler)",),
        ),
    ),
)  # fmt: skip
