"""transformers 4.57 to 5.23: ``trainer.py`` and ``trainer_pt_utils.py``."""

from __future__ import annotations

from sampler_lint.catalog.schema import Contract, Framework, KnownClass, Sharder, Span, words
from sampler_lint.catalog.torch import TORCH_DATA

_UTILS = "transformers.trainer_pt_utils."

FRAMEWORK = Framework(
    "transformers",
    "transformers' Trainer",
    packages=("transformers",),
    distributions=("transformers",),
    releases=(
        "4.0", "4.10", "4.20", "4.30", "4.40", "4.50", "4.57", "5.0", "5.5", "5.10", "5.15", "5.17",
        "5.20", "5.23",
    ),
    trainers=words("Trainer Seq2SeqTrainer"),
    train_hooks=words("get_train_dataloader"),
    evaluation_hooks=words("get_eval_dataloader get_test_dataloader"),
    # `_inner_training_loop` takes what `get_train_dataloader` returns, which prepares its own.
    divides_hooked=False,
    sampler_hooks=words("_get_train_sampler"),
    contracts=(
        Contract(
            "seeds", "process", ("random", "numpy", "torch"),
            when="when the Trainer is built",
            source="transformers.trainer:Trainer.__init__",
            code=("set_seed(self.args.seed)",),
        ),
        Contract(
            "wraps", "batch_sampler", ("accelerator.prepare",), Span(since="4.57"),
            when="always: what Accelerate does to a loader, it does to this one",
            source="transformers.trainer:Trainer._get_dataloader",
            code=("self.accelerator.prepare(DataLoader(dataset, **dataloader_params))",),
        ),
        Contract(
            "calls", "batch_sampler.batch_sampler", ("set_epoch",), Span(since="5.17"),
            when="at each epoch, through Accelerate's BatchSamplerShard: the batch sampler that "
            "was passed in",
            source="transformers.trainer:Trainer._run_epoch",
            code=(
                "shard_wrapper = getattr(train_dataloader, 'batch_sampler', None)",
                "underlying_sampler.set_epoch(epoch)",
            ),
        ),
    ),
    classes=(
        KnownClass(
            _UTILS + "DistributedSamplerWithLoop",
            "sampler",
            base=TORCH_DATA + "DistributedSampler",
            params=("dataset", "batch_size"),
            open=True,
            required=2,
            attributes=words("batch_size"),
            methods=words("__iter__"),
            distributed=True,
            shuffles="shuffle",
        ),
        KnownClass(
            _UTILS + "LengthGroupedSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=("batch_size", "dataset", "lengths", "model_input_name", "generator"),
            required=1,
            attributes=words("batch_size lengths generator"),
            methods=words("__iter__ __len__"),
            shuffles=True,
        ),
        KnownClass(
            _UTILS + "DistributedLengthGroupedSampler",
            "sampler",
            base=TORCH_DATA + "DistributedSampler",
            params=(
                "batch_size", "dataset", "num_replicas", "rank", "seed", "drop_last", "lengths",
                "model_input_name",
            ),
            required=1,
            attributes=words(
                "batch_size num_replicas rank seed drop_last lengths epoch num_samples total_size"
            ),
            methods=words("__iter__"),
            distributed=True,
            shuffles=True,
        ),
        KnownClass(
            _UTILS + "BatchRebalanceSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=(
                "lengths", "effective_batch_size", "dp_size", "grad_accum", "shuffle", "seed",
                "rank", "drop_last",
            ),
            required=4,
            attributes=words(
                "QUADRATIC_COST_COEF lengths effective_batch_size dp_size grad_accum shuffle seed "
                "rank drop_last epoch has_tail num_full_batches num_global_batches remainder"
            ),
            methods=words(
                "set_epoch __iter__ __len__ _yield_global_batch _cost _assign _balance_groups "
                "_slot_groups _relieve_and_freeze _groups_costs_from _group_cost"
            ),
            distributed=True,
            shuffles="shuffle",
            versions=Span(since="5.17"),
        ),
        KnownClass(
            _UTILS + "ShardSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=("dataset", "batch_size", "drop_last", "num_processes", "process_index"),
            required=1,
            attributes=words(
                "dataset batch_size drop_last num_processes process_index total_batch_size "
                "total_num_samples"
            ),
            methods=words("__iter__ __len__"),
            distributed=True,
        ),
    ),
    sharders=(
        Sharder(("self.accelerator.prepare", "self.accelerator.prepare_data_loader")),
    ),
)  # fmt: skip
