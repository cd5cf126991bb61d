"""What the catalog says of torch and the frameworks, held against what is installed."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import textwrap
from pathlib import Path

import pytest

from sampler_lint.model import catalog
from sampler_lint.model.catalog import CLASSES, TORCH_DATA, KnownClass

torch = pytest.importorskip("torch")

TORCH = [entry for entry in CLASSES.values() if entry.name.startswith(TORCH_DATA)]
SAMPLERS = [entry for entry in TORCH if entry.kind != "loader"]

each = pytest.mark.parametrize("entry", TORCH, ids=[entry.name for entry in TORCH])
each_sampler = pytest.mark.parametrize("entry", SAMPLERS, ids=[entry.name for entry in SAMPLERS])


def real(entry: KnownClass) -> type:
    module, _, name = entry.name.rpartition(".")
    found: type = getattr(importlib.import_module(module), name)
    return found


#: Something to pass for each required parameter.
ARGUMENTS = {
    "dataset": list(range(64)),
    "data_source": list(range(64)),
    "indices": list(range(64)),
    "weights": [1.0] * 64,
    "num_samples": 64,
    "sampler": torch.utils.data.SequentialSampler(range(64)),
    "batch_size": 4,
    "drop_last": False,
}


def build(entry: KnownClass, **more):
    """An instance; a distributed one gets its place from here, not from a process group."""
    if entry.distributed:
        more = {"num_replicas": 2, "rank": 0, **more}
    return real(entry)(*(ARGUMENTS[name] for name in entry.params[: entry.required]), **more)


def has_own_init(cls: type) -> bool:
    return "__init__" in vars(cls)


# constructors


def test_sampler_takes_nothing_and_has_no_init_of_its_own() -> None:
    assert not has_own_init(torch.utils.data.Sampler)

    class Old(torch.utils.data.Sampler):
        def __init__(self, data_source):
            super().__init__(data_source)

    with pytest.raises(TypeError, match=r"object\.__init__\(\) takes exactly one argument"):
        Old([])


@each
def test_parameters(entry: KnownClass) -> None:
    cls = real(entry)
    if not has_own_init(cls):
        # Sampler took data_source until 2.9; what the catalog keeps must not be required.
        assert entry.required == 0
        return
    params = list(inspect.signature(cls).parameters.values())
    positional = [p for p in params if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert entry.params == tuple(p.name for p in positional)
    assert entry.keywords == {p.name for p in params if p.kind is p.KEYWORD_ONLY}
    assert entry.required == sum(p.default is p.empty for p in params)


# hierarchy


@each
def test_base(entry: KnownClass) -> None:
    bases = [base for base in real(entry).__mro__[1:] if base.__module__.startswith("torch.")]
    assert [real(known) for known in catalog.known_mro(entry.name)[1:]] == bases
    assert entry.base is None or CLASSES[entry.base].name == entry.base


@each
def test_kind(entry: KnownClass) -> None:
    cls = real(entry)
    assert issubclass(cls, torch.utils.data.DataLoader) == (entry.kind == "loader")
    assert issubclass(cls, torch.utils.data.BatchSampler) == (entry.kind == "batch_sampler")
    assert issubclass(cls, torch.utils.data.Sampler) == (entry.kind != "loader")


def test_every_sampler_of_torch_is_known() -> None:
    exported = {
        name
        for name in torch.utils.data.__all__
        if isinstance(value := getattr(torch.utils.data, name), type)
        and issubclass(value, (torch.utils.data.Sampler, torch.utils.data.DataLoader))
    }
    assert exported == {entry.name.removeprefix(TORCH_DATA) for entry in TORCH}


# what instances have


@each
def test_attributes(entry: KnownClass) -> None:
    """All of a sampler's; of a loader's, those the catalog tells of."""
    instance = build(entry)
    own = {name for name in vars(instance) if not name.startswith(f"_{type(instance).__name__}__")}
    if entry.kind == "loader":
        assert entry.attributes <= own
    else:
        assert entry.attributes == own


@each
def test_methods(entry: KnownClass) -> None:
    """Those defined in the class itself, properties too; a constructor is no method here."""
    own = {
        name
        for name, value in vars(real(entry)).items()
        if inspect.isfunction(value) or isinstance(value, property)
    } - {"__init__"}
    if entry.kind == "loader":
        assert entry.methods <= own
    else:
        assert entry.methods == own


@each_sampler
def test_what_methods_read(entry: KnownClass) -> None:
    cls = real(entry)
    for method, attributes in entry.reads:
        tree = ast.parse(textwrap.dedent(inspect.getsource(getattr(cls, method))))
        read = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Load)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        }
        assert attributes == read, method


@each_sampler
def test_every_method_that_reads_is_told_of(entry: KnownClass) -> None:
    told = {method for method, _ in entry.reads}
    assert told <= entry.methods
    if entry.attributes:
        assert {"__iter__", "__len__"} <= told


# behaviour


@each_sampler
def test_shuffles(entry: KnownClass) -> None:
    if not entry.required:
        assert entry.shuffles is False
        return
    if isinstance(entry.shuffles, str):
        assert entry.shuffles in entry.params
        orders = [list(build(entry, **{entry.shuffles: on})) for on in (True, False)]
        assert orders[0] != orders[1] == sorted(orders[1])
        default = inspect.signature(real(entry)).parameters[entry.shuffles].default
        assert default is True, "Model.shuffles takes it for granted"
    else:
        order = list(build(entry))
        assert (order != sorted(order)) is entry.shuffles


@each_sampler
def test_distributed_samplers_give_each_rank_its_shard(entry: KnownClass) -> None:
    assert entry.distributed == ("rank" in entry.params)
    if entry.distributed:
        shards = [set(build(entry, rank=rank)) for rank in (0, 1)]
        assert shards[0].isdisjoint(shards[1])
        assert sorted(shards[0] | shards[1]) == list(range(64))


# names


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("torch.utils.data.distributed.DistributedSampler", TORCH_DATA + "DistributedSampler"),
        ("torch.utils.data.sampler.BatchSampler", TORCH_DATA + "BatchSampler"),
        ("torch.utils.data.dataloader.DataLoader", TORCH_DATA + "DataLoader"),
        ("torch.utils.data.DataLoader", TORCH_DATA + "DataLoader"),
        ("torch.utils.data.sampler.NoSuchSampler", "torch.utils.data.sampler.NoSuchSampler"),
        ("mylib.DataLoader", "mylib.DataLoader"),
    ],
)
def test_one_name_for_each_class(spelled: str, name: str) -> None:
    assert catalog.canonical(spelled) == name
    assert (catalog.known(spelled) is None) == (name not in CLASSES)


@each
def test_module_of_a_class_is_an_accepted_spelling(entry: KnownClass) -> None:
    cls = real(entry)
    assert catalog.known(f"{cls.__module__}.{cls.__name__}") is entry


def test_entries_stand_under_their_canonical_names() -> None:
    for name, entry in CLASSES.items():
        assert name == entry.name == catalog.canonical(name)


# frameworks


def test_readers_are_known_frameworks() -> None:
    assert catalog.BATCH_SIZE_READERS.keys() <= set(catalog.FRAMEWORK_PACKAGES.values())


def source_of(module: str) -> ast.Module:
    """The syntax of an installed module, which is not imported."""
    package, _, rest = module.partition(".")
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent.joinpath(*rest.split(".")).with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("framework", "module", "wanted"),
    [
        ("lightning", "lightning.pytorch.utilities.data", {"batch_size", "drop_last"}),
        ("lightning", "lightning.pytorch.strategies.deepspeed", {"batch_size"}),
        ("accelerate", "accelerate.data_loader", {"batch_size", "drop_last"}),
    ],
)
def test_frameworks_read_what_the_catalog_says(framework, module, wanted: set[str]) -> None:
    """``batch_sampler.batch_size``, or ``getattr(batch_sampler, "batch_size", …)``."""
    assert framework in catalog.BATCH_SIZE_READERS
    read = set()
    for node in ast.walk(source_of(module)):
        if isinstance(node, ast.Attribute) and "batch_sampler" in ast.unparse(node.value):
            read.add(node.attr)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            owner, name, *_ = node.args
            if "batch_sampler" in ast.unparse(owner) and isinstance(name, ast.Constant):
                read.add(name.value)
    assert wanted <= read
