"""Ignite 0.4 and 0.5."""

from __future__ import annotations

from sampler_lint.catalog.schema import Contract, Framework, KnownClass, Runner, Span, words
from sampler_lint.catalog.torch import TORCH_DATA

_DETERMINISTIC = "ignite.engine.deterministic:ReproducibleBatchSampler.__init__"
_NO_SIZE = (
    "Ignite's DeterministicEngine and batch-size schedulers expect a BatchSampler's attributes, "
    "and fail with AttributeError or refuse it"
)

FRAMEWORK = Framework(
    "ignite",
    "Ignite",
    packages=("ignite",),
    distributions=("pytorch-ignite",),
    releases=("0.3", "0.4.1", "0.4.5", "0.4.9", "0.4.13", "0.5", "0.5.3", "0.5.4", "0.5.5"),
    trainers=words("DeterministicEngine BatchSizeScheduler ReproducibleBatchSampler"),
    contracts=(
        Contract(
            "demands", "batch_sampler", ("BatchSampler",),
            when="it is passed to a DeterministicEngine",
            without="Ignite's DeterministicEngine refuses it",
            source=_DETERMINISTIC,
            code=("if not isinstance(batch_sampler, BatchSampler)", "raise TypeError"),
        ),
        Contract(
            "reads", "batch_sampler", ("sampler",),
            when="it is passed to a DeterministicEngine",
            source=_DETERMINISTIC,
            code=("self.sampler = self.batch_sampler.sampler",),
        ),
        Contract(
            "reads", "batch_sampler", ("batch_size",), Span(since="0.5.4"),
            when="a batch-size scheduler drives it",
            without=_NO_SIZE,
            source="ignite.handlers.param_scheduler:BatchSizeScheduler.__init__",
            code=("isinstance(dataloader.batch_sampler, BatchSampler)",),
        ),
        Contract(
            "replaces", "batch_sampler", ("ReproducibleBatchSampler",),
            when="a DeterministicEngine runs it: the replacement has no `batch_size` or "
            "`drop_last`",
            source="ignite.engine.deterministic:DeterministicEngine._setup_engine",
            code=("ReproducibleBatchSampler(batch_sampler)",),
        ),
        Contract(
            "wraps", "sampler", ("DistributedProxySampler",),
            when="in `auto_dataloader` on several ranks, unless it is a DistributedSampler; "
            "a `batch_sampler=` is taken as it is",
            source="ignite.distributed.auto:auto_dataloader",
            code=("DistributedProxySampler(sampler,",),
        ),
    ),
    classes=(
        KnownClass(
            "ignite.distributed.auto.DistributedProxySampler",
            "sampler",
            base=TORCH_DATA + "DistributedSampler",
            params=("sampler", "num_replicas", "rank"),
            required=1,
            attributes=words("sampler"),
            methods=words("__iter__"),
            distributed=True,
            aliases=("ignite.distributed.DistributedProxySampler",),
        ),
        KnownClass(
            "ignite.engine.deterministic.ReproducibleBatchSampler",
            "batch_sampler",
            base=TORCH_DATA + "BatchSampler",
            params=("batch_sampler", "start_iteration"),
            required=1,
            attributes=words("batch_indices batch_sampler start_iteration sampler"),
            methods=words("__iter__ __len__ setup_batch_indices"),
        ),
    ),
    # ignite/engine/engine.py, `Engine._internal_run_as_gen`: it calls no `set_epoch`, which
    # `setup_common_training_handlers(train_sampler=…)` makes a handler of.
    runners=(
        Runner(
            ("ignite.engine.Engine().run", "ignite.engine.engine.Engine().run"),
            ("data", "max_epochs"),
            step="process_function",
        ),
        Runner(
            ("ignite.engine.create_supervised_trainer().run",),
            ("data", "max_epochs"),
        ),
    ),
    loader_makers=("ignite.distributed.auto_dataloader", "ignite.distributed.auto.auto_dataloader"),
)  # fmt: skip
