"""catalyst 22.4: ``core/`` and ``data/sampler.py``."""

from __future__ import annotations

from sampler_lint.catalog.schema import Contract, Framework, KnownClass, Span, words
from sampler_lint.catalog.torch import TORCH_DATA

_SAMPLER = "catalyst.data.sampler."
_EXPORTED = "catalyst.data."
_NO_SIZE = (
    "catalyst reads `loader.batch_sampler.batch_size` (22.x, core/misc.py), and fails with "
    "AttributeError"
)

FRAMEWORK = Framework(
    "catalyst",
    "catalyst",
    packages=("catalyst",),
    distributions=("catalyst",),
    releases=("20.1", "21.1", "21.6", "21.12", "22.2", "22.4"),
    trainers=words("dl Runner SupervisedRunner IRunner"),
    contracts=(
        Contract(
            "seeds", "process", ("random", "numpy", "torch"),
            when="before the loaders are built, and at each epoch",
            source="catalyst.core.runner:IRunner._setup_loaders",
            code=("set_global_seed(",),
        ),
        Contract(
            "reads", "batch_sampler", ("batch_size",), Span(since="22.2"),
            when="always",
            without=_NO_SIZE,
            source="catalyst.core.misc:get_loader_batch_size",
            code=("batch_size = loader.batch_sampler.batch_size",),
        ),
        Contract(
            "calls", "sampler", ("set_epoch",),
            when="at each epoch, if it is a DistributedSampler",
            source="catalyst.core.runner:IRunner.on_loader_start",
            code=(
                "isinstance(self.loader.sampler, DistributedSampler)",
                "self.loader.sampler.set_epoch(",
            ),
        ),
    ),
    classes=(
        KnownClass(
            _SAMPLER + "BalanceClassSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=("labels", "mode"),
            required=1,
            attributes=words("labels lbl2idx length samples_per_class"),
            methods=words("__iter__ __len__"),
            shuffles=True,
            aliases=(_EXPORTED + "BalanceClassSampler",),
        ),
        KnownClass(
            _SAMPLER + "BatchBalanceClassSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=("labels", "num_classes", "num_samples", "num_batches"),
            required=3,
            attributes=words("_batch_size _labels _num_batches _num_classes _num_samples lbl2idx"),
            methods=words("__iter__ __len__ batch_size batches_in_epoch"),
            shuffles=True,
            aliases=(_EXPORTED + "BatchBalanceClassSampler",),
        ),
        KnownClass(
            _SAMPLER + "DistributedSamplerWrapper",
            "sampler",
            base=TORCH_DATA + "DistributedSampler",
            params=("sampler", "num_replicas", "rank", "shuffle"),
            required=1,
            attributes=words("sampler"),
            methods=words("__iter__"),
            distributed=True,
            shuffles="shuffle",
            aliases=(_EXPORTED + "DistributedSamplerWrapper",),
        ),
    ),
)  # fmt: skip
