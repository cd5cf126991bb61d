"""torch: ``torch/utils/data/{sampler,distributed,dataloader}.py`` of 2.0 to 2.13."""

from __future__ import annotations

from sampler_lint.catalog.schema import (
    Constructor,
    Contract,
    Framework,
    HandsBack,
    KnownClass,
    Span,
    words,
)

TORCH_DATA = "torch.utils.data."

DISTRIBUTED_PARAMS = ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last")
LOADER_PARAMS = (
    "dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn",
    "pin_memory", "drop_last", "timeout", "worker_init_fn", "multiprocessing_context", "generator",
)  # fmt: skip
LOADER_KEYWORDS = words("prefetch_factor persistent_workers pin_memory_device")

#: ``Sampler.__init__`` took (and never kept) a data source until here.
WITHOUT_INIT = Span(since="2.10")
#: ``Sampler.__init__`` demanded it: ``super().__init__()`` is a TypeError there.
DEMANDS_DATA_SOURCE = Span(before="2.1")

#: Datasets that hold nothing but what a class derived from them keeps.
BARE_DATASETS = frozenset({TORCH_DATA + "Dataset", TORCH_DATA + "IterableDataset"})

SEQUENTIAL_SAMPLER = TORCH_DATA + "SequentialSampler"

#: Datasets that look samples up by their index.
MAP_STYLE = ("torchvision.datasets.", TORCH_DATA + "TensorDataset")

#: Where torchvision has its transforms, and how those are called that draw.
TRANSFORMS = "torchvision.transforms."
RANDOM_TRANSFORMS = ("Rand", "ColorJitter", "AutoAugment", "TrivialAugment", "AugMix")

#: Functions that divide data with their global generator, and how to give them one.
SPLITS = {
    TORCH_DATA + "random_split": ("torch", "generator", 2),
    TORCH_DATA + "dataset.random_split": ("torch", "generator", 2),
    "sklearn.model_selection.train_test_split": ("numpy", "random_state", 99),
}

#: What the constructors of samplers store where they are not told.
DEFAULTS = {"shuffle": True, "seed": 0, "drop_last": False, "generator": None}

#: The methods of a module that return the module.
MODULE_ITSELF = (
    "apply", "bfloat16", "cpu", "cuda", "double", "eval", "float", "half", "ipu", "mtia",
    "requires_grad_", "share_memory", "to", "to_empty", "train", "type", "xpu",
)  # fmt: skip

FRAMEWORK = Framework(
    "torch",
    "torch",
    packages=("torch",),
    distributions=("torch",),
    releases=(
        "1.8", "1.9", "1.10", "1.11", "1.12", "1.13", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5",
        "2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "2.12", "2.13", "2.14", "2.15",
    ),
    pythons=(("3.8", Span("2.0", "2.6")), ("3.9", Span("2.6", "2.9")), ("3.10", Span("2.9"))),
    hands_back=(
        HandsBack(tuple(f"torch.nn.Module().{name}" for name in MODULE_ITSELF), ("self",)),
    ),
    contracts=(
        Contract(
            "reads", "batch_sampler", ("__iter__",),
            when="always: nothing else, and no class is tested",
            source="torch.utils.data.dataloader:DataLoader._index_sampler",
            code=("return self.batch_sampler",),
        ),
        Contract(
            "reads", "batch_sampler", ("__len__",),
            when="`len(loader)` is asked for",
            source="torch.utils.data.dataloader:DataLoader.__len__",
            code=("len(self._index_sampler)",),
        ),
        Contract(
            "replaces", "sampler", ("SequentialSampler",),
            when="`batch_sampler=` is given: `loader.sampler` is one that nothing reads",
            source="torch.utils.data.dataloader:DataLoader.__init__",
            code=("sampler = SequentialSampler(dataset)",),
        ),
    ),
    classes=(
        KnownClass(
            TORCH_DATA + "Sampler",
            "sampler",
            methods=words("__iter__"),
            earlier=(
                Constructor(Span("2.1", "2.10"), params=("data_source",)),
                Constructor(Span(before="2.1"), params=("data_source",), required=1),
            ),
        ),
        KnownClass(
            SEQUENTIAL_SAMPLER,
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=("data_source",),
            required=1,
            attributes=words("data_source"),
            methods=words("__iter__ __len__"),
            reads=(
                ("__iter__", words("data_source")),
                ("__len__", words("data_source")),
            ),
        ),
        KnownClass(
            TORCH_DATA + "RandomSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=("data_source", "replacement", "num_samples", "generator"),
            required=1,
            attributes=words("data_source replacement generator _num_samples"),
            methods=words("__iter__ __len__ num_samples"),
            reads=(
                ("__iter__", words("data_source replacement generator num_samples")),
                ("__len__", words("num_samples")),
            ),
            shuffles=True,
        ),
        KnownClass(
            TORCH_DATA + "SubsetRandomSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=("indices", "generator"),
            required=1,
            attributes=words("indices generator"),
            methods=words("__iter__ __len__"),
            reads=(
                ("__iter__", words("indices generator")),
                ("__len__", words("indices")),
            ),
            shuffles=True,
        ),
        KnownClass(
            TORCH_DATA + "WeightedRandomSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=("weights", "num_samples", "replacement", "generator"),
            required=2,
            attributes=words("weights num_samples replacement generator"),
            methods=words("__iter__ __len__"),
            reads=(
                ("__iter__", words("weights num_samples replacement generator")),
                ("__len__", words("num_samples")),
            ),
            shuffles=True,
        ),
        KnownClass(
            TORCH_DATA + "BatchSampler",
            "batch_sampler",
            base=TORCH_DATA + "Sampler",
            params=("sampler", "batch_size", "drop_last"),
            required=3,
            attributes=words("sampler batch_size drop_last"),
            methods=words("__iter__ __len__"),
            reads=(
                ("__iter__", words("sampler batch_size drop_last")),
                ("__len__", words("sampler batch_size drop_last")),
            ),
        ),
        KnownClass(
            TORCH_DATA + "DistributedSampler",
            "sampler",
            base=TORCH_DATA + "Sampler",
            params=DISTRIBUTED_PARAMS,
            required=1,
            attributes=frozenset({*DISTRIBUTED_PARAMS, "epoch", "num_samples", "total_size"}),
            methods=words("__iter__ __len__ set_epoch"),
            reads=(
                (
                    "__iter__",
                    frozenset({*DISTRIBUTED_PARAMS, "epoch", "num_samples", "total_size"}),
                ),
                ("__len__", words("num_samples")),
            ),
            distributed=True,
            shuffles="shuffle",
        ),
        KnownClass(
            TORCH_DATA + "DataLoader",
            "loader",
            params=LOADER_PARAMS,
            keywords=LOADER_KEYWORDS | {"in_order"},
            required=1,
            attributes=words(
                "sampler batch_sampler dataset batch_size drop_last _iterator _dataset_kind "
                "_IterableDataset_len_called"
            ),
            methods=words(
                "__iter__ __len__ _auto_collation _index_sampler _get_iterator "
                "check_worker_number_rationality"
            ),
            makes=(
                (
                    "batch_sampler",
                    TORCH_DATA + "BatchSampler",
                    ("sampler", "batch_size", "drop_last"),
                    "batch_size",
                ),
            ),
            earlier=(
                Constructor(
                    Span(before="2.6"),
                    params=LOADER_PARAMS,
                    keywords=LOADER_KEYWORDS,
                    required=1,
                ),
            ),
        ),
    ),
)  # fmt: skip
