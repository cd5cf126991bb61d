"""What the catalog says of torch and the frameworks, held against what is installed."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
import textwrap

import pytest

from sampler_lint import catalog
from sampler_lint.catalog import TORCH_DATA, KnownClass, Span, release

torch = pytest.importorskip("torch")

TORCH = catalog.framework("torch").classes
TABLES = [catalog.framework(name) for name in catalog.tables()]
CLASSES = [entry for table in TABLES for entry in table.classes]
CONTRACTS = [contract for table in TABLES for contract in table.contracts]
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
        assert (entry.params, entry.keywords, entry.required) == ((), frozenset(), 0)
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


@each
def test_kind(entry: KnownClass) -> None:
    cls = real(entry)
    assert issubclass(cls, torch.utils.data.DataLoader) == (entry.kind == "loader")
    assert issubclass(cls, torch.utils.data.BatchSampler) == (entry.kind == "batch_sampler")
    assert issubclass(cls, torch.utils.data.Sampler) == (entry.kind != "loader")


def test_a_new_generator_begins_with_its_seed() -> None:
    torch = importlib.import_module("torch")
    assert torch.Generator().initial_seed() == catalog.GENERATOR_SEED


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
    assert (catalog.known(spelled) is None) == (name not in {entry.name for entry in CLASSES})


@each
def test_module_of_a_class_is_an_accepted_spelling(entry: KnownClass) -> None:
    cls = real(entry)
    assert catalog.known(f"{cls.__module__}.{cls.__name__}") is entry


@pytest.mark.parametrize("entry", CLASSES, ids=[entry.name for entry in CLASSES])
def test_a_class_is_found_by_each_of_its_names(entry: KnownClass) -> None:
    for name in (entry.name, *entry.aliases):
        assert catalog.known(name) is entry
        assert catalog.canonical(name) == entry.name
    if entry.base is not None:
        base = catalog.known(entry.base)
        assert base is not None
        assert base.name == entry.base
        assert entry.base in {above.name for above in catalog.known_mro(entry.name)}


def test_no_name_means_two_classes() -> None:
    names = [name for entry in CLASSES for name in (entry.name, *entry.aliases)]
    assert len(names) == len(set(names))


# versions


@pytest.mark.parametrize(
    ("span", "inside", "outside", "words"),
    [
        (Span(), ("0.1", "9.9"), (), "all versions"),
        (Span(since="2.1"), ("2.1", "2.1.0", "2.10"), ("2.0.9",), "2.1 and later"),
        (Span(before="2.10"), ("2.9.1",), ("2.10", "2.10.0"), "before 2.10"),
        (Span("1.6.5", "2.0"), ("1.6.5", "1.9"), ("1.6.4", "2.0"), "from 1.6.5 to before 2.0"),
    ],
)
def test_spans(span: Span, inside, outside, words: str) -> None:
    assert all(release(version) in span for version in inside)
    assert not any(release(version) in span for version in outside)
    assert str(span) == words


@pytest.mark.parametrize("table", TABLES, ids=catalog.tables())
def test_where_something_changes_is_a_release_that_requirements_are_tried_on(table) -> None:
    spans = [contract.versions for contract in table.contracts]
    spans += [entry.versions for entry in table.classes]
    spans += [earlier.versions for entry in table.classes for earlier in entry.earlier]
    spans += [span for _, span in (*table.switches, *table.imported_as)]
    ends = {end for span in spans for end in (span.since, span.before) if end}
    assert ends <= set(table.releases)
    assert list(table.releases) == sorted(table.releases, key=release)


def test_old_constructors_do_not_overlap() -> None:
    for entry in CLASSES:
        table = next(table for table in TABLES if entry in table.classes)
        for text in table.releases:
            assert sum(release(text) in old.versions for old in entry.earlier) <= 1


# frameworks


@pytest.mark.parametrize("table", TABLES, ids=catalog.tables())
def test_tables_are_complete(table) -> None:
    assert table.name in catalog.tables()
    assert len(table.packages) == len(table.distributions)
    for package in table.packages:
        assert catalog.FRAMEWORK_PACKAGES.get(package, package) == table.name
    for contract in table.contracts:
        assert contract.names
        assert contract.source.count(":") == 1
        assert contract.code
        assert contract.when


def test_tables_are_loaded_when_a_name_asks_for_them() -> None:
    program = (
        "import sys\n"
        "from sampler_lint import catalog\n"
        "tables = 'sampler_lint.catalog.'\n"
        "def there(): return {name for name in sys.modules if name.startswith(tables)}\n"
        "before = there()\n"
        "assert catalog.known('mmengine.dataset.DefaultSampler') is not None\n"
        "assert catalog.known('numpy.ndarray') is None\n"
        "print(sorted(name.rpartition('.')[2] for name in before), '\\n',"
        " sorted(name.rpartition('.')[2] for name in there() - before), sep='')\n"
    )
    said = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert said.splitlines() == ["['declared', 'schema', 'torch']", "['mmengine']"]
