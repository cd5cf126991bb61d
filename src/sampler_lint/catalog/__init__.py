"""What torch and the frameworks provide and do, as data.

A module of this package is the table of one framework, loaded when a tree names it. Where each
fact comes from stands beside it; ``tests/test_catalog.py`` holds the tables against the installed
torch, ``tests/test_catalog_published.py`` against published packages.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from sampler_lint.catalog import declared
from sampler_lint.catalog.schema import (
    ALL,
    Constructor,
    Contract,
    Factory,
    Fit,
    Framework,
    KnownClass,
    Runner,
    Sharder,
    Span,
    release,
)
from sampler_lint.catalog.torch import TORCH_DATA

#: Import name → the framework, which is also the name of its table.
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
    "mmcv": "mmcv",
}

#: Import name → the table of packages that train nothing: their classes are known.
_LIBRARIES = {
    "torch": "torch",
    "torchdata": "torchdata",
    "torch_geometric": "torch_geometric",
    "colossalai": "colossalai",
    "lhotse": "lhotse",
    "monai": "monai",
    "timm": "timm",
}

#: The seed that a ``torch.Generator()`` begins with (c10/core/GeneratorImpl.h,
#: ``default_rng_seed_val``).
GENERATOR_SEED = 67280421310721

#: What lets several processes train one model together: each computes on samples of its own, and
#: the call averages their gradients, or whatever tensors it is given. By package and name; where
#: a package has moved it about, the modules between are left out.
AVERAGING = {
    "torch.nn.parallel.DistributedDataParallel": "gradients",
    "torch.distributed.FullyShardedDataParallel": "gradients",
    "torch.distributed.fully_shard": "gradients",
    "torch.distributed.replicate": "gradients",
    "torch.distributed.all_reduce": "tensors",
    "torch.distributed.reduce": "tensors",
    "apex.parallel.DistributedDataParallel": "gradients",
    "fairscale.nn.ShardedDataParallel": "gradients",
    "fairscale.nn.FullyShardedDataParallel": "gradients",
    "horovod.torch.DistributedOptimizer": "gradients",
    "horovod.torch.allreduce": "tensors",
    "deepspeed.initialize": "gradients",
}

#: Packages that shard by themselves, or read data in a way of their own. Who imports transformers
#: may only want a model.
SHARDING_PACKAGES = (FRAMEWORK_PACKAGES.keys() - {"transformers"}) | frozenset(
    {
        "colossalai", "detectron2", "fairseq", "fastai", "ffcv", "horovod", "lightly", "litdata",
        "megatron", "mmdet", "monai", "nemo", "nvidia", "oslo", "petastorm",
        "ray", "sagemaker", "smdistributed", "streaming", "torch_xla",
        "torchdata", "torchpack", "torchrec", "webdataset", "wids",
    }
)  # fmt: skip

#: Bases that read no attribute they do not set.
PASSIVE_BASES = ("torch.nn.", "pytorch_lightning.", "lightning.")

#: What makes a generator with the functions that the library's own module has.
GENERATOR_MAKERS = {"numpy": "RandomState", "random": "Random"}

#: The methods that make a shard, or a stream, of what `datasets` opened.
OF_STREAMS = frozenset({"shard", "to_iterable_dataset"})
#: The functions of `datasets` that give a rank its part.
SPLITS_BY_NODE = frozenset(
    f"datasets.{module}split_dataset_by_node" for module in ("", "distributed.")
)

#: The parts of webdataset that list every shard once, those that draw them at random, for ever, and
#: its loaders.
SHARD_LISTS = frozenset({"SimpleShardList", "PytorchShardList"})
DRAWN_SHARDS = frozenset({"ResampledShards", "MultiShardSample", "DirectoryShardList"})
PIPELINE_LOADERS = frozenset({"WebLoader", "DataLoader"})


def averaging(dotted: str) -> str:
    """What a function averages over processes: ``gradients``, ``tensors``, nothing known."""
    package, _, name = dotted.rpartition(".")
    while package:
        if (found := AVERAGING.get(f"{package}.{name}")) is not None:
            return found
        package = package.rpartition(".")[0]
    return ""


def tables() -> tuple[str, ...]:
    """The name of every table."""
    return tuple(dict.fromkeys([*_LIBRARIES.values(), *FRAMEWORK_PACKAGES.values()]))


@cache
def framework(name: str) -> Framework:
    """The table of that name."""
    table = import_module(f"sampler_lint.catalog.{name}").FRAMEWORK
    assert isinstance(table, Framework)
    return table


def contracts(name: str, does: str, part: str | None = None) -> list[Contract]:
    """What the framework does to that part of a loader (to any), in whichever version."""
    return [
        contract
        for contract in framework(name).contracts
        if contract.does == does and part in {None, contract.part}
    ]


@cache
def _names(table: str) -> dict[str, KnownClass]:
    built = [
        KnownClass(
            name, "loader", f"{TORCH_DATA}DataLoader", each.params, open=True, aliases=tuple(others)
        )
        for each in framework(table).factories
        for name, *others in [each.names]
    ]
    return {
        name: entry
        for entry in (*framework(table).classes, *built)
        for name in (entry.name, *entry.aliases)
    }


@cache
def factory(dotted: str) -> Factory | None:
    """The function of that name, if it builds a loader."""
    table = table_of(dotted)
    found = framework(table).factories if table is not None else ()
    return next((each for each in found if dotted in each.names), None)


def passes_on(cls: object, name: str) -> bool | None:
    """Whether a factory hands an argument on; None for what is built by none."""
    if not isinstance(cls, str):
        return None
    made = factory(cls)
    handed = declared.PASSED_ON.get(cls) if made is None else made.hands_on
    return None if handed is None else name in handed


def table_of(dotted: str) -> str | None:
    """The table of the package that a dotted name begins with."""
    package = dotted.partition(".")[0]
    return _LIBRARIES.get(package) or FRAMEWORK_PACKAGES.get(package)


@cache
def handed_back(dotted: str) -> tuple[str, ...]:
    """The parameters that a function gives back, in order, if it is one that does no more."""
    table = table_of(dotted)
    found = framework(table).hands_back if table is not None else ()
    return next((entry.params for entry in found if dotted in entry.names), ())


@cache
def sharders(name: str) -> dict[str, Sharder]:
    """The functions of a framework that shard loaders, by each dotted name of theirs."""
    return {dotted: each for each in framework(name).sharders for dotted in each.names}


@cache
def number(dotted: str) -> str | None:
    """What an attribute of a framework's object tells: ``rank``, ``local rank``, ``world size``."""
    table = table_of(dotted)
    return dict(framework(table).numbers).get(dotted) if table is not None else None


@cache
def runner(dotted: str) -> Runner | None:
    """The method of that name, if it goes over a loader in each epoch."""
    table = table_of(dotted)
    found = framework(table).runners if table is not None else ()
    return next((entry for entry in found if dotted in entry.names), None)


@cache
def fits(dotted: str) -> tuple[Fit, ...]:
    """What the call of that name has a framework train and evaluate with."""
    table = table_of(dotted)
    found = framework(table).fits if table is not None else ()
    return tuple(entry for entry in found if dotted in entry.names)


@cache
def makes_loader(dotted: str) -> bool:
    """Whether a function builds a loader, with torch's sampler where there are several ranks."""
    table = table_of(dotted)
    return table is not None and dotted in framework(table).loader_makers


@cache
def known(dotted: str) -> KnownClass | None:
    """The catalog's entry for a dotted name."""
    if dotted.partition(".")[0] == declared.PACKAGE:
        return declared.CLASSES.get(dotted)
    table = table_of(dotted)
    if table is None:
        return None
    if dotted.startswith(TORCH_DATA):
        # torch exports its classes from wherever they are defined, too.
        dotted = TORCH_DATA + dotted.rpartition(".")[2]
    return _names(table).get(dotted)


def canonical(dotted: str) -> str:
    """The one name used here for a dotted name that torch or a framework exports several times."""
    entry = known(dotted)
    return dotted if entry is None else entry.name


def constructors(dotted: str) -> list[Constructor]:
    """How a class is built, in the newest version first; nothing where it takes any argument."""
    entry = next((each for each in known_mro(dotted) if each.params or each.open), None)
    if entry is None or entry.open:
        return []
    return [Constructor(ALL, entry.params, entry.keywords, entry.required), *entry.earlier]


def known_mro(dotted: str) -> list[KnownClass]:
    """The entry and its known bases, nearest first."""
    out: list[KnownClass] = []
    entry = known(dotted)
    while entry is not None:
        out.append(entry)
        entry = known(entry.base) if entry.base else None
    return out


__all__ = [
    "ALL",
    "FRAMEWORK_PACKAGES",
    "TORCH_DATA",
    "Constructor",
    "Contract",
    "Fit",
    "Framework",
    "KnownClass",
    "Runner",
    "Sharder",
    "Span",
    "canonical",
    "constructors",
    "contracts",
    "framework",
    "handed_back",
    "known",
    "known_mro",
    "release",
    "table_of",
    "tables",
]
