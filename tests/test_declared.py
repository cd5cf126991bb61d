"""Factories that a project declares: what the rules make of them, and what they do not."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from sampler_lint import engine
from sampler_lint.options import Options

OPTIONS = Options(
    select=("ALL",),
    known_samplers=("ourlib.make_sampler", "ours.data.build", "ours.data.Builder.made"),
    known_loaders=("ourlib.make_loader", "ours.data.Loading"),
)

HEAD = """\
import torch.distributed as dist
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler
import ourlib
"""

LOOP = """\
def main(args):
    dist.init_process_group("nccl")
    dataset = ourlib.Data()
{build}
    model = ourlib.model()
    for epoch in range(args.epochs):
{before}
        for batch in loader:
            loss = model(batch)
            loss.backward()
"""


def found(
    tmp_path: Path,
    build: str,
    before: str = "",
    head: str = HEAD,
    options: Options = OPTIONS,
    **files: str,
) -> set[str]:
    (tmp_path / "pyproject.toml").touch()
    for name, content in files.items():
        path = tmp_path / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(textwrap.dedent(content))
    text = LOOP.format(
        build=textwrap.indent(textwrap.dedent(build), "    "),
        before=textwrap.indent(textwrap.dedent(before), "        ") or "        pass",
    )
    (tmp_path / "train.py").write_text(head + text)
    report = engine.check([str(tmp_path)], options)
    assert report.errors == []
    return {finding.code for finding in report.findings}


SAMPLER = """\
sampler = ourlib.make_sampler(dataset, args)
loader = DataLoader(dataset, sampler=sampler)
"""
LOADER = """\
sampler = DistributedSampler(dataset, seed=args.seed)
loader = ourlib.make_loader(dataset, args, sampler=sampler)
"""


@pytest.mark.parametrize("build", [SAMPLER, LOADER])
def test_an_epoch_that_is_never_set_is_seen(tmp_path: Path, build: str) -> None:
    assert found(tmp_path, build) == {"SMP102"}
    assert found(tmp_path, build, "sampler.set_epoch(epoch)") == set()
    assert found(tmp_path, build, "loader.sampler.set_epoch(epoch)") == set()
    assert found(tmp_path, build, options=Options(select=("ALL",))) == set()


def test_an_epoch_that_is_set_on_the_wrong_object_is_seen(tmp_path: Path) -> None:
    build = """\
        sampler = ourlib.make_sampler(dataset)
        batches = BatchSampler(sampler, args.batch_size, drop_last=True)
        loader = DataLoader(dataset, batch_sampler=batches)
    """
    assert found(tmp_path, build, "loader.sampler.set_epoch(epoch)") == {"SMP101"}
    assert found(tmp_path, build, "loader.batch_sampler.sampler.set_epoch(epoch)") == set()


@pytest.mark.parametrize(
    ("arguments", "spoken"),
    [
        ("dataset", True),
        ("dataset, 4, True", True),
        ("dataset, shuffle=True", True),
        ("dataset, shuffle=False", False),
        ("dataset, shuffle=args.shuffle", True),
        ("dataset, False", False),
        ("dataset, train=False", False),
        ("*args.sampling", False),
        ("dataset, **args.sampling", False),
    ],
)
def test_whether_it_shuffles(tmp_path: Path, arguments: str, spoken: bool) -> None:
    build = f"""\
        sampler = ourlib.make_sampler({arguments})
        loader = DataLoader(dataset, sampler=sampler)
    """
    assert found(tmp_path, build) == ({"SMP102"} if spoken else set())


@pytest.mark.parametrize(
    "build",
    [
        "loader = ourlib.make_loader(dataset)",
        "loader = ourlib.make_loader(dataset, 32, True)",
        "loader = ourlib.make_loader(dataset, shuffle=True, batch_size=32)",
        "loader = ourlib.make_loader(dataset, ourlib.make_sampler(dataset))",
        "loader = ourlib.make_loader(dataset, sampler=ourlib.other(dataset))",
        "loader = ourlib.make_loader(dataset, batch_sampler=ourlib.other(dataset))",
        "loader = ourlib.make_loader(nonsense=1)",
        "loader = ourlib.make_loader(**vars(args))",
        "sampler = ourlib.make_sampler(nonsense=1, shuffle=False)\n"
        "loader = DataLoader(dataset, sampler=sampler)",
    ],
)
def test_what_is_not_known_of_it_is_silence(tmp_path: Path, build: str) -> None:
    assert found(tmp_path, build) == set()


def test_a_loader_that_takes_what_torch_refuses(tmp_path: Path) -> None:
    """Its own function decides what it does with both."""
    build = """\
        sampler = DistributedSampler(dataset, seed=args.seed)
        loader = ourlib.make_loader(dataset, sampler=sampler, shuffle=True, batch_size=4)
    """
    assert found(tmp_path, build, "sampler.set_epoch(epoch)") == set()


FACTORY = """\
    from torch.utils.data import DataLoader, DistributedSampler
    from registry import SAMPLERS

    def _build(dataset, name):
        return SAMPLERS[name](dataset)

    class Builder:
        def made(self, dataset):
            return SAMPLERS["x"](dataset)

    class Loading(SAMPLERS["loading"]):
        pass
"""


@pytest.mark.parametrize(
    ("head", "call"),
    [
        ("from ours.data import build", "build(dataset, 'x')"),
        ("import ours.data", "ours.data.build(dataset, 'x')"),
        ("from ours import data as d", "d.build(dataset, 'x')"),
        ("from ours.factories import _build as b", "b(dataset, 'x')"),
        ("from ours.data import Builder", "Builder().made(dataset)"),
    ],
)
def test_factories_of_the_tree_by_any_name(tmp_path: Path, head: str, call: str) -> None:
    files = {
        "ours__factories": FACTORY,
        "ours__data": "from .factories import _build as build, Builder, Loading  # samplers",
    }
    build = f"sampler = {call}\nloader = DataLoader(dataset, sampler=sampler)"
    assert found(tmp_path, build, head=f"{HEAD}{head}\n", **files) == {"SMP102"}
    set_epoch = "sampler.set_epoch(epoch)"
    assert found(tmp_path, build, set_epoch, head=f"{HEAD}{head}\n", **files) == set()


def test_a_class_of_the_tree_that_loads(tmp_path: Path) -> None:
    files = {
        "ours__factories": FACTORY,
        "ours__data": "from .factories import Loading  # samplers",
    }
    build = """\
        sampler = DistributedSampler(dataset, seed=args.seed)
        loader = Loading(dataset, sampler=sampler)
    """
    head = f"{HEAD}from ours.data import Loading\n"
    assert found(tmp_path, build, head=head, **files) == {"SMP102"}


def test_a_factory_that_could_be_followed_is_not_judged_inside(tmp_path: Path) -> None:
    """What it returns is what was declared, and its own sampler is not one nobody uses."""
    factory = """\
        from torch.utils.data import DistributedSampler

        def build(dataset, seed):
            return DistributedSampler(dataset, seed=seed)
    """
    build = "sampler = build(dataset, args.seed)\nloader = DataLoader(dataset, sampler=sampler)"
    head = f"{HEAD}from ours.data import build\n"
    codes = found(tmp_path, build, "sampler.set_epoch(epoch)", head=head, ours__data=factory)
    assert codes == set()
    assert found(tmp_path, build, head=head, ours__data=factory) == {"SMP102"}


def test_names_that_lead_nowhere(tmp_path: Path) -> None:
    options = Options(select=("ALL",), known_samplers=("train", "train.main.x", "a.b", "ours.x"))
    files = {"ours__loop": "from .loop import x  # sampler", "ours__data": "from .loop import y"}
    assert found(tmp_path, SAMPLER, options=options, **files) == set()
