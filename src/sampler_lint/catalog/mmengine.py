"""mmengine 0.10: ``runner/`` and ``dataset/sampler.py``."""

from __future__ import annotations

from sampler_lint.catalog.schema import Contract, Framework, KnownClass, Span, words
from sampler_lint.catalog.torch import TORCH_DATA

_HOOK = "mmengine.hooks.sampler_seed_hook:DistSamplerSeedHook.before_train_epoch"
_SAMPLER = "mmengine.dataset.sampler."

FRAMEWORK = Framework(
    "mmengine",
    "mmengine",
    packages=("mmengine",),
    distributions=("mmengine",),
    releases=(
        "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.10", "0.10.4", "0.10.7",
    ),
    trainers=words("Runner FlexibleRunner"),
    registry="DATA_SAMPLERS",
    contracts=(
        Contract(
            "seeds", "process", ("random", "numpy", "torch"),
            when="when the Runner is built",
            source="mmengine.runner.runner:Runner.__init__",
            code=("self.set_randomness(**randomness)",),
        ),
        Contract(
            "rebuilds", "batch_sampler", ("sampler", "batch_size"),
            when="it is a `dict` in the configuration: built from the registry "
            "`DATA_SAMPLERS`",
            without="mmengine builds it with `sampler=` and `batch_size=`",
            source="mmengine.runner.runner:Runner.build_dataloader",
            code=("dict(sampler=sampler, batch_size=dataloader_cfg.pop('batch_size'))",),
        ),
        Contract(
            "reads", "batch_sampler", ("batch_size",), Span(since="0.8"),
            when="under FlexibleRunner, with DeepSpeed, FSDP and such",
            without="mmengine's FlexibleRunner reads `batch_sampler.batch_size`, and fails with "
            "AttributeError",
            source="mmengine.runner.utils:_get_batch_size",
            code=("return dataloader.batch_sampler.batch_size",),
        ),
        Contract(
            "reads", "batch_sampler", ("sampler",),
            when="at each epoch, unless `loader.sampler` has a `set_epoch`",
            without="AttributeError",
            source=_HOOK,
            code=("hasattr(runner.train_loop.dataloader.batch_sampler.sampler, 'set_epoch')",),
        ),
        Contract(
            "calls", "sampler", ("set_epoch",),
            when="at each epoch",
            source=_HOOK,
            code=("runner.train_loop.dataloader.sampler.set_epoch(runner.epoch)",),
        ),
        Contract(
            "calls", "batch_sampler.sampler", ("set_epoch",),
            when="at each epoch, unless `loader.sampler` has a `set_epoch`",
            source=_HOOK,
            code=("runner.train_loop.dataloader.batch_sampler.sampler.set_epoch(runner.epoch)",),
        ),
    ),
    classes=(
        KnownClass(
            _SAMPLER + "DefaultSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=("dataset", "shuffle", "seed", "round_up"),
            required=1,
            attributes=words(
                "dataset shuffle seed round_up epoch rank world_size num_samples total_size"
            ),
            methods=words("__iter__ __len__ set_epoch"),
            distributed=True,
            shuffles="shuffle",
            aliases=("mmengine.dataset.DefaultSampler",),
        ),
        KnownClass(
            _SAMPLER + "InfiniteSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=("dataset", "shuffle", "seed"),
            required=1,
            attributes=words("dataset shuffle seed rank world_size size indices"),
            methods=words("__iter__ __len__ set_epoch _infinite_indices _indices_of_rank"),
            distributed=True,
            shuffles="shuffle",
            aliases=("mmengine.dataset.InfiniteSampler",),
        ),
    ),
)  # fmt: skip
