"""What torch and the frameworks provide and read, as data.

Sources: torch 2.0-2.13 ``torch/utils/data/{sampler,distributed,dataloader}.py`` and the
published packages named at each entry. ``tests/test_catalog.py`` holds the entries against the
installed packages.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

TORCH_DATA = "torch.utils.data."


@dataclass(frozen=True, slots=True)
class KnownClass:
    """A class outside the tree whose behaviour is known."""

    name: str
    """Canonical dotted name."""
    kind: str
    """``sampler``, ``batch_sampler`` or ``loader``."""
    base: str | None = None
    """Canonical name of its base, when that is known too."""
    params: tuple[str, ...] = ()
    """Constructor parameters in positional order."""
    keywords: frozenset[str] = frozenset()
    """Keyword-only constructor parameters."""
    required: int = 0
    """How many of them must be given."""
    attributes: frozenset[str] = frozenset()
    """What ``__init__`` or the class body sets."""
    methods: frozenset[str] = frozenset()
    reads: tuple[tuple[str, frozenset[str]], ...] = ()
    """For a method, the attributes of ``self`` it reads."""
    distributed: bool = False
    """Whether it hands each rank its own shard."""
    shuffles: str | bool = False
    """Whether its order is random: always, never, or by the parameter of that name."""


def _known(*classes: KnownClass) -> dict[str, KnownClass]:
    return {known.name: known for known in classes}


_DISTRIBUTED = ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last")

CLASSES = _known(
    KnownClass(
        TORCH_DATA + "Sampler",
        "sampler",
        params=("data_source",),
        methods=frozenset({"__iter__"}),
    ),
    KnownClass(
        TORCH_DATA + "SequentialSampler",
        "sampler",
        base=TORCH_DATA + "Sampler",
        params=("data_source",),
        required=1,
        attributes=frozenset({"data_source"}),
        methods=frozenset({"__iter__", "__len__"}),
        reads=(
            ("__iter__", frozenset({"data_source"})),
            ("__len__", frozenset({"data_source"})),
        ),
    ),
    KnownClass(
        TORCH_DATA + "RandomSampler",
        "sampler",
        base=TORCH_DATA + "Sampler",
        params=("data_source", "replacement", "num_samples", "generator"),
        required=1,
        attributes=frozenset({"data_source", "replacement", "generator", "_num_samples"}),
        methods=frozenset({"__iter__", "__len__", "num_samples"}),
        reads=(
            ("__iter__", frozenset({"data_source", "replacement", "generator", "num_samples"})),
            ("__len__", frozenset({"num_samples"})),
        ),
        shuffles=True,
    ),
    KnownClass(
        TORCH_DATA + "SubsetRandomSampler",
        "sampler",
        base=TORCH_DATA + "Sampler",
        params=("indices", "generator"),
        required=1,
        attributes=frozenset({"indices", "generator"}),
        methods=frozenset({"__iter__", "__len__"}),
        reads=(
            ("__iter__", frozenset({"indices", "generator"})),
            ("__len__", frozenset({"indices"})),
        ),
        shuffles=True,
    ),
    KnownClass(
        TORCH_DATA + "WeightedRandomSampler",
        "sampler",
        base=TORCH_DATA + "Sampler",
        params=("weights", "num_samples", "replacement", "generator"),
        required=2,
        attributes=frozenset({"weights", "num_samples", "replacement", "generator"}),
        methods=frozenset({"__iter__", "__len__"}),
        reads=(
            ("__iter__", frozenset({"weights", "num_samples", "replacement", "generator"})),
            ("__len__", frozenset({"num_samples"})),
        ),
        shuffles=True,
    ),
    KnownClass(
        TORCH_DATA + "BatchSampler",
        "batch_sampler",
        base=TORCH_DATA + "Sampler",
        params=("sampler", "batch_size", "drop_last"),
        required=3,
        attributes=frozenset({"sampler", "batch_size", "drop_last"}),
        methods=frozenset({"__iter__", "__len__"}),
        reads=(
            ("__iter__", frozenset({"sampler", "batch_size", "drop_last"})),
            ("__len__", frozenset({"sampler", "batch_size", "drop_last"})),
        ),
    ),
    KnownClass(
        TORCH_DATA + "DistributedSampler",
        "sampler",
        base=TORCH_DATA + "Sampler",
        params=_DISTRIBUTED,
        required=1,
        attributes=frozenset(
            {*_DISTRIBUTED, "epoch", "num_samples", "total_size"},
        ),
        methods=frozenset({"__iter__", "__len__", "set_epoch"}),
        reads=(
            (
                "__iter__",
                frozenset({*_DISTRIBUTED, "epoch", "num_samples", "total_size"}),
            ),
            ("__len__", frozenset({"num_samples"})),
        ),
        distributed=True,
        shuffles="shuffle",
    ),
    KnownClass(
        TORCH_DATA + "DataLoader",
        "loader",
        params=(
            "dataset",
            "batch_size",
            "shuffle",
            "sampler",
            "batch_sampler",
            "num_workers",
            "collate_fn",
            "pin_memory",
            "drop_last",
            "timeout",
            "worker_init_fn",
            "multiprocessing_context",
            "generator",
        ),
        keywords=frozenset(
            {"prefetch_factor", "persistent_workers", "pin_memory_device", "in_order"}
        ),
        required=1,
        attributes=frozenset({"sampler", "batch_sampler", "dataset", "batch_size", "drop_last"}),
        methods=frozenset({"__iter__", "__len__"}),
    ),
    # torchdata 0.11: stateful_dataloader/{stateful_dataloader,sampler}.py
    KnownClass(
        "torchdata.stateful_dataloader.StatefulDataLoader",
        "loader",
        base=TORCH_DATA + "DataLoader",
    ),
    KnownClass(
        "torchdata.stateful_dataloader.sampler.StatefulDistributedSampler",
        "sampler",
        base=TORCH_DATA + "DistributedSampler",
        params=_DISTRIBUTED,
        required=1,
        distributed=True,
        shuffles="shuffle",
    ),
    # torch_geometric 2.x: loader/dataloader.py
    KnownClass(
        "torch_geometric.loader.DataLoader",
        "loader",
        base=TORCH_DATA + "DataLoader",
        params=("dataset", "batch_size", "shuffle", "follow_batch", "exclude_keys"),
        required=1,
    ),
)

_TORCH_DATA_NAMES = frozenset(
    name.removeprefix(TORCH_DATA) for name in CLASSES if name.startswith(TORCH_DATA)
)

#: Import names that mean the same framework.
FRAMEWORK_PACKAGES = {
    "lightning": "lightning",
    "pytorch_lightning": "lightning",
    "lightning_fabric": "lightning",
    "accelerate": "accelerate",
    "transformers": "transformers",
    "composer": "composer",
    "catalyst": "catalyst",
    "deepspeed": "deepspeed",
    "ignite": "ignite",
    "mmengine": "mmengine",
}

#: Who reads ``batch_sampler.batch_size`` (and ``drop_last``), where, and what happens without.
BATCH_SIZE_READERS = {
    "lightning": (
        "Lightning reads `batch_sampler.batch_size` and `.drop_last` when it shards the loader "
        "(1.5 and later) and in its DeepSpeed strategy (2.2 and later)"
    ),
    "accelerate": (
        "Accelerate's BatchSamplerShard reads `batch_size` and `drop_last` "
        "(0.14 to 1.13 refuse to shard without)"
    ),
    "catalyst": "catalyst reads `loader.batch_sampler.batch_size` (22.x, core/misc.py)",
    "mmengine": "mmengine's FlexibleRunner reads `batch_sampler.batch_size`",
    "ignite": (
        "Ignite's DeterministicEngine and batch-size schedulers expect a BatchSampler's attributes"
    ),
}


@cache
def canonical(dotted: str) -> str:
    """The one name used here for a dotted name that torch or a framework exports several times."""
    if dotted.startswith("torch.utils.data."):
        last = dotted.rpartition(".")[2]
        if last in _TORCH_DATA_NAMES:
            return TORCH_DATA + last
    if dotted.startswith("torchdata.stateful_dataloader."):
        last = dotted.rpartition(".")[2]
        if last == "StatefulDataLoader":
            return "torchdata.stateful_dataloader.StatefulDataLoader"
    return dotted


def known(dotted: str) -> KnownClass | None:
    """The catalog's entry for a dotted name."""
    return CLASSES.get(canonical(dotted))


def known_mro(dotted: str) -> list[KnownClass]:
    """The entry and its known bases, nearest first."""
    out: list[KnownClass] = []
    entry = known(dotted)
    while entry is not None:
        out.append(entry)
        entry = known(entry.base) if entry.base else None
    return out
