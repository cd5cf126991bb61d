"""Composer (``mosaicml`` 0.32): ``core/data_spec.py`` and ``trainer/trainer.py``."""

from __future__ import annotations

from sampler_lint.catalog.schema import (
    Constructor,
    Contract,
    Fit,
    Framework,
    KnownClass,
    Span,
    words,
)
from sampler_lint.catalog.torch import TORCH_DATA

_TRAINER = "composer.trainer.trainer"
_FIND = f"{_TRAINER}:_get_distributed_sampler"
_EPOCH = Span(since="0.21.2")

FRAMEWORK = Framework(
    "composer",
    "Composer",
    packages=("composer",),
    distributions=("mosaicml",),
    releases=(
        "0.4", "0.8", "0.12", "0.16", "0.18.1", "0.19", "0.20", "0.21.2", "0.21.3", "0.22",
        "0.24", "0.26", "0.28", "0.30", "0.32",
    ),
    trainers=words("Trainer DataSpec"),
    classes=(
        KnownClass(
            "composer.utils.dist.get_sampler",
            "sampler",
            base=TORCH_DATA + "DistributedSampler",
            params=("dataset",),
            keywords=words("drop_last shuffle num_replicas rank seed"),
            required=1,
            distributed=True,
            shuffles="shuffle",
            shuffles_unasked=False,
            built_by="composer.utils.dist:get_sampler",
            earlier=(
                Constructor(
                    Span(before="0.28"),
                    ("dataset",),
                    words("drop_last shuffle num_replicas rank"),
                    required=1,
                ),
            ),
        ),
    ),
    contracts=(
        Contract(
            "seeds", "process", ("random", "numpy", "torch"),
            when="when the Trainer is built",
            source=f"{_TRAINER}:Trainer.__init__",
            code=("reproducibility.seed_all(seed)",),
        ),
        Contract(
            "demands", "batch_sampler", ("DistributedSampler",), Span(since="0.21.3"),
            when="on several ranks over a map-style dataset, unless `loader.sampler` is one",
            without="Composer raises ValueError",
            source="composer.core.data_spec:DataSpec.__init__",
            code=(
                "is_sampler_distributed = isinstance(dataloader.sampler, DistributedSampler)",
                "not is_sampler_distributed and (not is_batch_sampler_distributed)",
            ),
        ),
        Contract(
            "demands", "sampler", ("DistributedSampler",), Span("0.18.1", "0.21.3"),
            when="on several ranks over a map-style dataset: a batch sampler does not count",
            without="Composer raises ValueError",
            source="composer.core.data_spec:DataSpec.__init__",
            code=("dataloader.sampler and isinstance(dataloader.sampler, DistributedSampler)",),
        ),
        Contract(
            "calls", "batch_sampler", ("set_epoch",), _EPOCH,
            when="at each epoch, if it is a DistributedSampler",
            source=_FIND,
            code=(
                "isinstance(dataloader.batch_sampler, DistributedSampler)",
                "return dataloader.batch_sampler",
            ),
        ),
        Contract(
            "calls", "sampler", ("set_epoch",), _EPOCH,
            when="at each epoch, if it is a DistributedSampler and the batch sampler is none",
            source=_FIND,
            code=("isinstance(dataloader.sampler, DistributedSampler)",),
        ),
        Contract(
            "calls", "sampler", ("set_epoch",), Span(before="0.21.2"),
            when="at each epoch, if it is a DistributedSampler; never on a batch sampler",
            source=f"{_TRAINER}:Trainer._train_loop",
            code=("dataloader.sampler.set_epoch(int(self.state.timestamp.epoch))",),
        ),
    ),
    fits=(
        Fit(
            (
                "composer.Trainer", "composer.trainer.Trainer", "composer.Trainer().fit",
                "composer.trainer.Trainer().fit",
            ),
            ("train_dataloader",),
        ),
        Fit(
            ("composer.Trainer", "composer.trainer.Trainer"), ("eval_dataloader",), evaluates=True
        ),
    ),
)  # fmt: skip
