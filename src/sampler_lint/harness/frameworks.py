"""What Lightning and Accelerate make of a loader with the sampler, on simulated ranks.

Lightning replaces the sampler of a loader that no ``DistributedSampler`` feeds, by building the
loader and its batch sampler anew; Accelerate shards the batches of any loader. Either may raise,
and either shards a second time what is sharded already. Their own functions are called, with
the rank and the number of ranks that their trainers would pass.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

from sampler_lint.harness.ranks import Case, key_of, plain

#: Makes the loader that a framework would iterate on one rank; it gets a function that makes the
#: user's loader, the rank and the world size.
Prepare = Callable[[Callable[[], Any], int, int], Any]


def user_loader(
    sampler: Any,
    case: Case,
    *,
    batches: bool,
    objects: bool,
    index: Callable[[Any], Any] = plain,
) -> Any:
    """The loader that a program would build with the sampler; its items are indices.

    Batches that are ``objects`` of their own go to the dataset as they are. ``index`` turns what
    the sampler yields into an index, or a list of them.
    """
    from torch.utils.data import DataLoader, IterableDataset

    if isinstance(sampler, IterableDataset):
        return DataLoader(sampler, batch_size=case.setting.batch_size, collate_fn=_as_it_is)
    if objects:
        data = _Keys(case.setting.size)
        return DataLoader(data, sampler=sampler, batch_size=None, collate_fn=lambda item: item)
    how = {"batch_sampler": sampler} if batches else {"sampler": sampler}
    size = {} if batches else {"batch_size": case.setting.batch_size}
    collate: Callable[[Any], Any] = _as_it_is
    if index is not plain:
        collate = index if batches else lambda items: [index(item) for item in items]
    return DataLoader(_Keys(case.setting.size), collate_fn=collate, **how, **size)


def _as_it_is(items: Any) -> Any:
    return [plain(key_of(item)) for item in items]


class _Keys:
    """A dataset whose items are the keys it is asked for."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, key: Any) -> Any:
        return key


def _lightning_in_hook(make: Callable[[], Any], rank: int, world_size: int) -> Any:
    """As for a loader that ``train_dataloader()`` returns: Lightning sees it being built."""
    from torch.utils.data import BatchSampler, DataLoader

    data: Any = importlib.import_module(f"{_lightning()}.fabric.utilities.data")
    watched = data._replace_dunder_methods
    with watched(DataLoader, "dataset"), watched(BatchSampler):
        loader = make()
    return _lightning_prepared(loader, rank, world_size)


def _lightning_passed(make: Callable[[], Any], rank: int, world_size: int) -> Any:
    """As for a loader that is passed to ``fit()``: Lightning knows only its attributes."""
    return _lightning_prepared(make(), rank, world_size)


def _lightning_prepared(loader: Any, rank: int, world_size: int) -> Any:
    """What ``_DataConnector._prepare_dataloader`` does in training (Lightning 2)."""
    from torch.utils.data import IterableDataset, SequentialSampler
    from torch.utils.data.distributed import DistributedSampler

    if isinstance(loader.sampler, DistributedSampler):
        return loader
    if isinstance(loader.dataset, IterableDataset):
        return loader
    connector: Any = importlib.import_module(_connector())
    sampler = connector._get_distributed_sampler(
        loader,
        not isinstance(loader.sampler, SequentialSampler),
        overfit_batches=0.0,
        num_replicas=world_size,
        rank=rank,
    )
    return connector._update_dataloader(loader, sampler)


def _lightning() -> str:
    return "lightning" if importlib.util.find_spec("lightning") else "pytorch_lightning"


def _connector() -> str:
    name = _lightning()
    package = f"{name}.pytorch" if name == "lightning" else name
    return f"{package}.trainer.connectors.data_connector"


def _accelerate(make: Callable[[], Any], rank: int, world_size: int) -> Any:
    """What ``Accelerator.prepare`` does with a loader."""
    data: Any = importlib.import_module("accelerate.data_loader")
    return data.prepare_data_loader(
        make(),
        num_processes=world_size,
        process_index=rank,
        put_on_device=False,
        dispatch_batches=False,
    )


def load(framework: str) -> None:
    """Import what is asked of a framework, which takes seconds, once."""
    importlib.import_module(_connector() if framework == "lightning" else "accelerate.data_loader")


#: The ways in which each framework prepares a loader.
FRAMEWORKS: dict[str, dict[str, Prepare]] = {
    "lightning": {
        "a loader from train_dataloader()": _lightning_in_hook,
        "a loader passed to fit()": _lightning_passed,
    },
    "accelerate": {"a loader through Accelerator.prepare()": _accelerate},
}


def installed(framework: str) -> bool:
    """Whether the framework can be asked."""
    names = {"lightning": ("lightning", "pytorch_lightning")}.get(framework, (framework,))
    with contextlib.suppress(ImportError, ValueError):
        return any(importlib.util.find_spec(name) for name in names)
    return False
