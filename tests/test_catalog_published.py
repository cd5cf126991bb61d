"""The catalog's tables, held against the sources of installed and of published packages."""

from __future__ import annotations

import importlib.util
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from published import (
    Package,
    class_problems,
    contract_problems,
    download,
    factory_problems,
    problems,
    runner_problems,
    version_of,
)
from sampler_lint import catalog
from sampler_lint.catalog import Factory, KnownClass, Runner, Span, release


def installed(distribution: str, package: str) -> Package:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    return Package(Path(spec.origin).parent.parent, metadata.version(distribution))


# the check itself: what is wrong in a table is found


def test_the_table_of_torch_is_right() -> None:
    assert problems(installed("torch", "torch"), catalog.framework("torch"), newest=True) == []


TORCH = catalog.framework("torch")
DISTRIBUTED = catalog.known("torch.utils.data.DistributedSampler")
SAMPLER = catalog.known("torch.utils.data.Sampler")
assert DISTRIBUTED is not None
assert SAMPLER is not None


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (DISTRIBUTED._replace(name="torch.utils.data.DistributedSimpler"), "is not there"),
        (DISTRIBUTED._replace(aliases=("torch.utils.DistributedSampler",)), "is not there"),
        (DISTRIBUTED._replace(base="torch.utils.data.BatchSampler"), "derives from"),
        (DISTRIBUTED._replace(params=DISTRIBUTED.params[:-1]), "takes"),
        (DISTRIBUTED._replace(params=DISTRIBUTED.params[::-1]), "takes"),
        (DISTRIBUTED._replace(keywords=frozenset({"in_order"})), "takes"),
        (DISTRIBUTED._replace(required=2), "takes"),
        (DISTRIBUTED._replace(open=True), "takes"),
        (DISTRIBUTED._replace(shuffles="mix"), "takes no mix"),
        (DISTRIBUTED._replace(attributes=DISTRIBUTED.attributes - {"epoch"}), "attributes"),
        (DISTRIBUTED._replace(attributes=DISTRIBUTED.attributes | {"epochs"}), "attributes"),
        (DISTRIBUTED._replace(methods=DISTRIBUTED.methods - {"set_epoch"}), "methods"),
        (DISTRIBUTED._replace(methods=DISTRIBUTED.methods | {"state_dict"}), "methods"),
        (DISTRIBUTED._replace(reads=(("__len__", frozenset({"total_size"})),)), "reads"),
        (SAMPLER._replace(params=("data_source",)), "takes"),
    ],
)
def test_a_wrong_class_is_found(entry, said: str) -> None:
    (problem,) = class_problems(installed("torch", "torch"), entry)
    assert said in problem


@pytest.mark.parametrize("contract", TORCH.contracts, ids=lambda each: each.source)
def test_a_wrong_contract_is_found(contract) -> None:
    torch = installed("torch", "torch")
    assert list(contract_problems(torch, contract)) == []
    module, _, function = contract.source.partition(":")
    for wrong in (
        contract._replace(code=("self.batch_sampler.sampler.set_epoch(",)),
        contract._replace(absent=contract.code[:1]),
        contract._replace(source=f"{module}:{function}_it"),
        contract._replace(source=f"torch.utils.no_data:{function}"),
        contract._replace(versions=Span(before="2.0")),
    ):
        assert len(list(contract_problems(torch, wrong))) == 1


def test_a_wrong_runner_is_found(tmp_path: Path) -> None:
    (tmp_path / "kit.py").write_text(
        "class Engine:\n"
        "    def __init__(self, process_function): ...\n"
        "    def run(self, data, max_epochs=1): ...\n",
        "utf-8",
    )
    kit = Package(tmp_path, "1.0")
    runner = Runner(("kit.Engine().run",), ("data", "max_epochs"), step="process_function")
    assert list(runner_problems(kit, runner)) == []
    for wrong in (
        runner._replace(names=("kit.Engines().run",)),
        runner._replace(names=("kit.Engine().go",)),
        runner._replace(params=("loader", "max_epochs")),
        runner._replace(step="step"),
    ):
        assert len(list(runner_problems(kit, wrong))) == 1


def test_a_wrong_factory_is_found(tmp_path: Path) -> None:
    (tmp_path / "kit.py").write_text(
        "def create(data, dataset, batch_size, shared=False):\n"
        "    if shared:\n"
        "        sampler = DistributedSampler(dataset)\n",
        "utf-8",
    )
    kit = Package(tmp_path, "1.0")
    made = Factory(("kit.create",), ("data", "dataset"), "torch.DistributedSampler", ("shared",))
    assert list(factory_problems(kit, made)) == []
    for wrong in (
        made._replace(names=("kit.create", "kit.build")),
        made._replace(params=("dataset", "data")),
        made._replace(asked=("shared", "is_training")),
        made._replace(sampler="torch.RandomSampler"),
    ):
        assert len(list(factory_problems(kit, wrong))) == 1


def test_a_wrong_builder_is_found(tmp_path: Path) -> None:
    (tmp_path / "kit.py").write_text(
        "def shard(data, *, seed=0, shuffle=False):\n"
        "    return DistributedSampler(data, shuffle=shuffle, seed=seed)\n",
        "utf-8",
    )
    kit = Package(tmp_path, "1.0")
    entry = KnownClass(
        "kit.shard",
        "sampler",
        base="torch.utils.data.DistributedSampler",
        params=("data",),
        keywords=frozenset({"seed", "shuffle"}),
        shuffles="shuffle",
        shuffles_unasked=False,
        built_by="kit:shard",
    )
    assert list(class_problems(kit, entry)) == []
    for wrong in (
        entry._replace(built_by="kit:share"),
        entry._replace(base="torch.utils.data.RandomSampler"),
        entry._replace(keywords=frozenset({"shuffle"})),
        entry._replace(shuffles="seed"),
    ):
        assert len(list(class_problems(kit, wrong))) == 1


# what is installed


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("distribution", "package"), [("lightning", "lightning"), ("accelerate", "accelerate")]
)
def test_installed_frameworks_are_as_the_catalog_says(distribution: str, package: str) -> None:
    assert problems(installed(distribution, package), catalog.framework(package), newest=True) == []


class Told:
    """Something with a ``set_epoch`` that remembers whether it was called."""

    def __init__(self, name: str, told: set[str], **parts: object) -> None:
        self.set_epoch = lambda epoch: told.add(name)
        vars(self).update(parts)


def parts_told(framework: str, version: str) -> set[str]:
    """The parts of a loader whose ``set_epoch`` the catalog says is called."""
    return {
        contract.part
        for contract in catalog.contracts(framework, "calls")
        if contract.names == ("set_epoch",) and release(version) in contract.versions
    }


@pytest.mark.frameworks
def test_lightning_tells_the_epoch_to_whom_the_catalog_says() -> None:
    data = pytest.importorskip("lightning.fabric.utilities.data")
    told: set[str] = set()
    inner = Told("batch_sampler.sampler", told)
    loader = SimpleNamespace(
        sampler=Told("sampler", told),
        batch_sampler=Told("batch_sampler", told, sampler=inner),
        dataset=Told("dataset", told),
    )
    data._set_sampler_epoch(loader, 3)
    assert told == parts_told("lightning", metadata.version("lightning"))


@pytest.mark.frameworks
def test_accelerate_tells_the_epoch_to_whom_the_catalog_says() -> None:
    data_loader = pytest.importorskip("accelerate.data_loader")
    told: set[str] = set()
    # As in one process, and as under a BatchSamplerShard: the first has no second one inside.
    for inside in ({}, {"batch_sampler": None}):
        if inside:
            innermost = Told("batch_sampler.batch_sampler.sampler", told)
            inside = {"batch_sampler": SimpleNamespace(sampler=innermost)}
        loader = SimpleNamespace(
            iteration=0,
            sampler=Told("sampler", told),
            dataset=Told("dataset", told),
            batch_sampler=Told(
                "batch_sampler", told, sampler=Told("batch_sampler.sampler", told), **inside
            ),
        )
        data_loader.DataLoaderShard.set_epoch(loader, 3)
    assert told == parts_told("accelerate", metadata.version("accelerate"))


@pytest.mark.frameworks
def test_accelerate_hides_the_batch_sampler_as_the_catalog_says() -> None:
    data_loader = pytest.importorskip("accelerate.data_loader")
    (wraps,) = catalog.contracts("accelerate", "wraps", "batch_sampler")
    wrapper = getattr(data_loader, wraps.names[0])
    assert not hasattr(wrapper, "set_epoch")
    assert not hasattr(wrapper, "__getattr__")


# what is published

#: Each distribution at its newest version, and on both sides of each change.
PUBLISHED = [
    *(
        (table, name, "")
        for table in catalog.tables()
        if table not in {"torch", "mmcv"}  # one is installed; the other is built when downloaded
        for name in dict.fromkeys(catalog.framework(table).distributions)
        if name != "lightning-fabric"  # is part of the other two
    ),
    *(
        ("lightning", "pytorch-lightning", version)
        for version in ("1.6.4", "1.6.5", "1.7.7", "1.9.5", "2.0.2", "2.0.3", "2.1.4", "2.2.5")
    ),
    *(
        ("accelerate", "accelerate", version)
        for version in ("0.13.2", "0.14.0", "0.23.0", "0.24.0", "1.1.1", "1.2.1", "1.6.0", "1.7.0")
    ),
    *(("accelerate", "accelerate", version) for version in ("1.13.0", "1.14.0")),
    *(("transformers", "transformers", version) for version in ("4.57.6", "5.16.0", "5.17.0")),
    *(
        ("composer", "mosaicml", version)
        for version in ("0.17.2", "0.18.1", "0.20.1", "0.21.1", "0.21.2", "0.21.3")
    ),
    *(("lhotse", "lhotse", version) for version in ("1.24.0", "1.25.0", "1.26.0", "1.32.2")),
    *(("ignite", "pytorch-ignite", version) for version in ("0.5.3", "0.5.4")),
    *(("mmengine", "mmengine", version) for version in ("0.7.4", "0.8.0")),
    *(("timm", "timm", version) for version in ("0.4.5", "0.6.13")),
    *(("catalyst", "catalyst", version) for version in ("21.12", "22.2.1")),
]


@pytest.mark.network
@pytest.mark.parametrize(
    ("table", "distribution", "version"),
    [
        pytest.param(
            *one,
            id=f"{one[1]}-{one[2] or 'newest'}",
            # A release never changes: some of them do, and all that are newest.
            marks=[pytest.mark.whole] if one[2] and place % 3 else [],
        )
        for place, one in enumerate(PUBLISHED)
    ],
)
def test_published_packages_are_as_the_catalog_says(
    tmp_path, table: str, distribution: str, version: str
) -> None:
    tree = download(distribution, version, tmp_path)
    package = Package(tree, version or version_of(tree), searched=bool(version))
    assert problems(package, catalog.framework(table), newest=not version) == []
    if not version:
        newest = catalog.framework(table).releases[-1]
        assert package.version >= release(newest), f"the catalog names {newest}"
