"""Lightning and Fabric 1.5 to 2.6, under each of their package names."""

from __future__ import annotations

from sampler_lint.catalog.schema import Contract, Fit, Framework, KnownClass, Sharder, Span, words
from sampler_lint.catalog.torch import TORCH_DATA

_RESOLVE = "lightning.pytorch.utilities.data:_dataloader_init_kwargs_resolve_sampler"
_SET_EPOCH = "lightning.fabric.utilities.data:_set_sampler_epoch"
_INJECT = "lightning.pytorch.trainer.connectors.data_connector:_get_distributed_sampler"
_SHARDING = (
    "on several devices, unless `loader.sampler` is a DistributedSampler: a custom batch sampler's "
    "`loader.sampler` never is"
)
_NO_SIZE = (
    "Lightning reads both when it shards the loader (1.5 and later) and in its DeepSpeed strategy "
    "(2.2 and later), and fails with AttributeError or refuses to shard it"
)

#: Where ``_set_sampler_epoch`` was changed to look at the batch sampler, and changed again.
_REACHES_BATCH_SAMPLER = Span("1.6.5", "2.0")

#: The strategies by which it runs as one process, or finds out.
ONE_PROCESS = words("auto dp single_device")


def _called(method: str) -> tuple[str, ...]:
    """The dotted names of a method of a Trainer, wherever that is imported from."""
    return tuple(
        f"{module}.{made}().{method}"
        for module in (
            "lightning", "lightning.pytorch", "lightning.pytorch.trainer", "pytorch_lightning",
            "pytorch_lightning.trainer", "pytorch_lightning.trainer.trainer",
        )
        for made in ("Trainer", "Trainer.from_argparse_args")
    )  # fmt: skip


FRAMEWORK = Framework(
    "lightning",
    "Lightning",
    packages=("lightning", "pytorch_lightning", "lightning_fabric"),
    distributions=("lightning", "pytorch-lightning", "lightning-fabric"),
    releases=(
        "1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.6.5", "1.7", "1.8", "1.9", "2.0",
        "2.0.3", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6",
    ),
    trainers=words("Trainer LightningModule LightningDataModule Fabric"),
    train_hooks=words("train_dataloader"),
    evaluation_hooks=words("val_dataloader test_dataloader predict_dataloader"),
    switches=(
        ("use_distributed_sampler", Span(since="2.0")),
        ("replace_sampler_ddp", Span(before="2.0")),
    ),
    # 1.8 and 1.9 were published under both names, and imported by the old one.
    imported_as=(("lightning", Span(since="2.0")),),
    contracts=(
        # -- a batch sampler's attributes
        Contract(
            "reads", "batch_sampler", ("batch_size", "drop_last"), Span(since="1.5"),
            when=_SHARDING + "; since 1.7 not of a torch BatchSampler that is built in a "
            "`*_dataloader` hook",
            without=_NO_SIZE,
            source=_RESOLVE,
            code=("batch_size=batch_sampler.batch_size", "else batch_sampler.drop_last"),
        ),
        Contract(
            "reads", "batch_sampler", ("batch_size",), Span(since="2.2"),
            when="the strategy is DeepSpeed, without `train_micro_batch_size_per_gpu`",
            without=_NO_SIZE,
            source="lightning.pytorch.strategies.deepspeed:DeepSpeedStrategy._auto_select_batch_size",
            code=("batch_size = train_dataloader.batch_sampler.batch_size",),
            absent=("except Exception",),  # which swallowed the error before
        ),
        # -- building it anew
        Contract(
            "rebuilds", "batch_sampler", ("batch_size", "drop_last"), Span(since="1.5"),
            when=_SHARDING,
            without="Lightning calls it as `cls(sampler, batch_size=..., drop_last=...)` on "
            "several devices",
            source=_RESOLVE,
            code=("(sampler, batch_size=batch_sampler.batch_size, drop_last=",),
        ),
        Contract(
            "rebuilds", "batch_sampler", ("sampler",), Span(since="1.7"),
            when="it is a torch BatchSampler built in a `*_dataloader` hook: its own arguments "
            "are passed again, the one called `sampler` replaced",
            without="Lightning passes a DistributedSampler as its argument `sampler`: TypeError on "
            "several devices",
            source=_RESOLVE,
            code=("_replace_value_in_saved_args('sampler', sampler,",),
        ),
        Contract(
            "wraps", "batch_sampler", ("_IndexBatchSamplerWrapper",), Span(since="2.0"),
            when="in `predict`: what is a property or class attribute of it disappears",
            source=_RESOLVE,
            code=("batch_sampler = _IndexBatchSamplerWrapper(batch_sampler",),
        ),
        # -- the sampler
        Contract(
            "wraps", "sampler", ("DistributedSamplerWrapper",), Span("1.7", "2.0.3"),
            when="on several devices",
            source=_INJECT,
            code=("else DistributedSamplerWrapper",),
        ),
        Contract(
            "wraps", "sampler", ("DistributedSamplerWrapper",), Span(since="2.0.3"),
            when="on several devices, any but torch's RandomSampler and SequentialSampler",
            source=_INJECT,
            code=("return DistributedSamplerWrapper(dataloader.sampler,",),
        ),
        Contract(
            "replaces", "sampler", ("DistributedSampler",), Span(since="2.0.3"),
            when="on several devices, torch's RandomSampler and SequentialSampler: their "
            "arguments (`replacement`, `num_samples`) are lost",
            source=_INJECT,
            code=(
                "isinstance(dataloader.sampler, (RandomSampler, SequentialSampler))",
                "return DistributedSampler(dataloader.dataset,",
            ),
        ),
        # -- epochs
        Contract(
            "calls", "sampler", ("set_epoch",), Span("1.5", "1.6.5"),
            when="at each epoch",
            source="pytorch_lightning.loops.fit_loop:FitLoop.on_advance_start",
            code=("self.trainer.train_dataloader.sampler.set_epoch(",),
        ),
        Contract(
            "calls", "sampler", ("set_epoch",), _REACHES_BATCH_SAMPLER,
            when="at each epoch",
            source="pytorch_lightning.loops.utilities:_set_sampler_epoch",
            code=("for sampler_name in ('sampler', 'batch_sampler')", "sampler.set_epoch(epoch)"),
        ),
        Contract(
            "calls", "batch_sampler", ("set_epoch",), _REACHES_BATCH_SAMPLER,
            when="at each epoch",
            source="pytorch_lightning.loops.utilities:_set_sampler_epoch",
            code=("for sampler_name in ('sampler', 'batch_sampler')", "sampler.set_epoch(epoch)"),
        ),
        Contract(
            "calls", "sampler", ("set_epoch",), Span(since="2.0"),
            when="at each epoch; Fabric: at each `iter(loader)`",
            source=_SET_EPOCH,
            code=("getattr(dataloader, 'sampler', None)", "set_epoch(epoch)"),
        ),
        Contract(
            "calls", "batch_sampler.sampler", ("set_epoch",), Span(since="2.0"),
            when="at each epoch; Fabric: at each `iter(loader)`",
            source=_SET_EPOCH,
            code=("getattr(batch_sampler, 'sampler', None)", "set_epoch(epoch)"),
        ),
    ),
    classes=(
        KnownClass(
            "lightning.fabric.utilities.distributed.DistributedSamplerWrapper",
            "sampler",
            base=TORCH_DATA + "DistributedSampler",
            params=("sampler",),
            open=True,
            required=1,
            methods=words("__iter__ set_epoch"),
            distributed=True,
            shuffles="shuffle",
            aliases=("lightning_fabric.utilities.distributed.DistributedSamplerWrapper",),
        ),
        KnownClass(
            "lightning.pytorch.overrides.distributed.UnrepeatedDistributedSampler",
            "sampler",
            base=TORCH_DATA + "DistributedSampler",
            open=True,
            attributes=words("num_samples total_size"),
            methods=words("__iter__"),
            distributed=True,
            shuffles="shuffle",
            aliases=("pytorch_lightning.overrides.distributed.UnrepeatedDistributedSampler",),
        ),
        KnownClass(
            "lightning.pytorch.overrides.distributed.UnrepeatedDistributedSamplerWrapper",
            "sampler",
            base="lightning.pytorch.overrides.distributed.UnrepeatedDistributedSampler",
            params=("sampler",),
            open=True,
            required=1,
            methods=words("__iter__"),
            distributed=True,
            shuffles="shuffle",
            aliases=(
                "pytorch_lightning.overrides.distributed.UnrepeatedDistributedSamplerWrapper",
            ),
        ),
    ),
    fits=(
        Fit(_called("fit"), ("train_dataloaders", "train_dataloader"), place=1),
        Fit(_called("fit"), ("val_dataloaders",), place=2, evaluates=True),
        Fit(
            (*_called("validate"), *_called("test")),
            ("dataloaders", "val_dataloaders", "test_dataloaders"), place=1, evaluates=True,
        ),
    ),
    numbers=tuple(
        (f"{module}.{cls}().{name}", kind)
        for module in (
            "lightning", "lightning.fabric", "lightning.pytorch", "lightning_fabric",
            "pytorch_lightning",
        )
        for cls in ("Fabric", "Trainer")
        for name, kind in (
            ("global_rank", "rank"), ("local_rank", "local rank"), ("world_size", "world size"),
        )
    ),
    sharders=(
        Sharder(
            tuple(
                f"{module}.Fabric().setup_dataloaders"
                for module in (
                    "lightning", "lightning.fabric", "lightning.fabric.fabric", "lightning_fabric",
                )
            ),
            leaves=TORCH_DATA + "DistributedSampler",
            parts=("sampler",),
            switch="use_distributed_sampler",
        ),
    ),
)  # fmt: skip
