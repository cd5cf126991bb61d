"""Accelerate 0.13 to 1.15: ``data_loader.py``."""

from __future__ import annotations

from sampler_lint.catalog.schema import (
    Contract,
    Framework,
    HandsBack,
    KnownClass,
    Sharder,
    Span,
    words,
)
from sampler_lint.catalog.torch import TORCH_DATA

_LOADER = "accelerate.data_loader"
_SHARD = f"{_LOADER}:BatchSamplerShard.__init__"
_SET_EPOCH = f"{_LOADER}:DataLoaderShard.set_epoch"
_EACH_EPOCH = "at each `iter(loader)`"
_NO_SIZE = (
    "Accelerate's BatchSamplerShard reads `batch_size` and `drop_last` (0.14 to 1.13 refuse to "
    "shard without), and fails with AttributeError or refuses to shard it"
)

FRAMEWORK = Framework(
    "accelerate",
    "Accelerate",
    packages=("accelerate",),
    distributions=("accelerate",),
    releases=(
        "0.1", "0.5", "0.10", "0.12", "0.13", "0.14", "0.15", "0.20", "0.23", "0.24", "0.24.1",
        "0.25", "0.28", "0.30", "0.33", "0.34", "1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6",
        "1.7", "1.8", "1.9", "1.10", "1.11", "1.12", "1.13", "1.14", "1.15",
    ),
    trainers=words("Accelerator"),
    contracts=(
        Contract(
            "wraps", "batch_sampler", ("BatchSamplerShard",),
            when="with several processes: what it calls to the batch sampler ends at the wrapper, "
            "which has no `set_epoch`, and one that shards by rank is sharded twice",
            source=f"{_LOADER}:prepare_data_loader",
            code=("BatchSamplerShard(",),
        ),
        Contract(
            "reads", "batch_sampler", ("batch_size", "drop_last"), Span(before="0.14"),
            when="with several processes",
            without=_NO_SIZE,
            source=_SHARD,
            code=(
                "self.batch_size = batch_sampler.batch_size",
                "self.drop_last = batch_sampler.drop_last",
            ),
        ),
        Contract(
            "reads", "batch_sampler", ("batch_size", "drop_last"), Span("0.14", "1.14"),
            when="with several processes; without `batch_size` a ValueError unless "
            "`even_batches=False`, without `drop_last` it counts as False",
            without=_NO_SIZE,
            source=_SHARD,
            code=(
                "getattr(batch_sampler, 'batch_size', None)",
                "getattr(batch_sampler, 'drop_last', False)",
                "self.batch_size is None and self.even_batches",
            ),
        ),
        Contract(
            "reads", "batch_sampler", ("batch_size", "drop_last"), Span(since="1.14"),
            when="with several processes; neither is needed, except with `split_batches`",
            source=_SHARD,
            code=(
                "getattr(batch_sampler, 'batch_size', None)",
                "getattr(batch_sampler, 'drop_last', False)",
                "if split_batches and (self.batch_size is None or",
            ),
        ),
        Contract(
            "calls", "batch_sampler.sampler", ("set_epoch",), Span(since="0.24"),
            when=_EACH_EPOCH,
            source=_SET_EPOCH,
            code=("self.batch_sampler.sampler.set_epoch(epoch)",),
        ),
        Contract(
            "calls", "dataset", ("set_epoch",), Span(since="0.24"),
            when=_EACH_EPOCH + ", unless one of its samplers has a `set_epoch`",
            source=_SET_EPOCH,
            code=("self.dataset.set_epoch(epoch)",),
        ),
        Contract(
            "calls", "batch_sampler", ("set_epoch",), Span(since="1.2"),
            when=_EACH_EPOCH + "; with several processes that is the BatchSamplerShard",
            source=_SET_EPOCH,
            code=("self.batch_sampler.set_epoch(epoch)",),
        ),
        Contract(
            "calls", "batch_sampler.batch_sampler.sampler", ("set_epoch",), Span(since="1.7"),
            when=_EACH_EPOCH + ", through the BatchSamplerShard",
            source=_SET_EPOCH,
            code=("self.batch_sampler.batch_sampler.sampler.set_epoch(epoch)",),
        ),
    ),
    classes=(
        KnownClass(
            f"{_LOADER}.SeedableRandomSampler",
            "sampler",
            base=TORCH_DATA + "RandomSampler",
            open=True,
            attributes=words("epoch initial_seed"),
            methods=words("__iter__ set_epoch"),
            shuffles=True,
            versions=Span(since="0.24"),
        ),
        KnownClass(
            f"{_LOADER}.BatchSamplerShard",
            "batch_sampler",
            base=TORCH_DATA + "BatchSampler",
            params=(
                "batch_sampler", "num_processes", "process_index", "split_batches", "even_batches",
            ),
            required=1,
            attributes=words(
                "batch_sampler num_processes process_index split_batches even_batches batch_size "
                "drop_last"
            ),
            methods=words("__iter__ __len__ total_length _iter_with_split _iter_with_no_split"),
            distributed=True,
        ),
        KnownClass(
            f"{_LOADER}.SkipBatchSampler",
            "batch_sampler",
            base=TORCH_DATA + "BatchSampler",
            params=("batch_sampler", "skip_batches"),
            required=1,
            attributes=words("batch_sampler skip_batches"),
            methods=words("__iter__ __len__ total_length"),
        ),
    ),
    hands_back=(
        # A loader that goes on with the same samplers, a few batches later.
        HandsBack(
            (
                "accelerate.Accelerator().skip_first_batches",
                "accelerate.accelerator.Accelerator().skip_first_batches",
                "accelerate.skip_first_batches", f"{_LOADER}.skip_first_batches",
            ),
            ("dataloader",),
        ),
    ),
    numbers=tuple(
        (f"{owner}().{name}", kind)
        for owner in (
            "accelerate.Accelerator", "accelerate.accelerator.Accelerator",
            "accelerate.PartialState", "accelerate.state.PartialState",
            "accelerate.state.AcceleratorState",
        )
        for name, kind in (
            ("process_index", "rank"), ("local_process_index", "local rank"),
            ("num_processes", "world size"),
        )
    ),
    sharders=(
        Sharder(
            (
                "accelerate.Accelerator().prepare", "accelerate.Accelerator().prepare_data_loader",
                "accelerate.accelerator.Accelerator().prepare",
                "accelerate.accelerator.Accelerator().prepare_data_loader",
                f"{_LOADER}.prepare_data_loader",
            ),
        ),
    ),
)  # fmt: skip
