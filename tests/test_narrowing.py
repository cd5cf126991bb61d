"""What is not parsed: in a very big tree, what is not about samplers; programs not asked about."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest

from cases import EVERY_RULE, all_cases, write_tree
from sampler_lint import engine, parallel
from sampler_lint.cache import Cache
from sampler_lint.domain.joining import files_to_join
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import program_files
from sampler_lint.engine import check
from sampler_lint.findings import Finding
from sampler_lint.source import is_about_sampling
from sampler_lint.workspace import first_look
from sampler_lint.workspace import project as model_project
from sampler_lint.workspace.import_scan import without_prose
from sampler_lint.workspace.project import Project

FILES = {
    "main.py": "import torch\nfrom engine import fit\nfit(torch.utils.data.DataLoader([]))",
    "engine/__init__.py": "from .loop import *\nfrom .other import unrelated",
    "engine/loop.py": "from .steps import step\ndef fit(loader):\n    step(loader)",
    "engine/steps.py": "def step(loader):\n    for x in loader: pass",
    "engine/other.py": "unrelated = make_loader()",
    "engine/told.py": '"""What main passes to its DataLoader."""\nimport torch',
    "kernel.py": "import torch\nx = make_loader(1)",
    "sound.py": "self.resampler = Resampler()  # not a Sampler",
    "docs.py": '"""Needs a DataLoader."""',
    "user.py": '"""Takes the DataLoader of main."""\nfrom main import data\nfor x in data: pass',
    "seeded.py": "import torch\ntorch.manual_seed(0)  # before any DataLoader",
}


def written(folder: Path) -> dict[str, str]:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
    return {str(folder / name): name for name in FILES}


def candidates(project: Project) -> set[str]:
    return {module.display for module in project.candidates}


def test_all_count_in_a_tree_of_ordinary_size(tmp_path: Path) -> None:
    project = Project(str(tmp_path), written(tmp_path))
    assert candidates(project) == FILES.keys() - {"engine/__init__.py"}


def test_few_count_in_a_very_big_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_project, "LARGE_TREE", 0)
    project = Project(str(tmp_path), written(tmp_path))
    assert candidates(project) == {
        "main.py",
        "engine/loop.py",  # a loader, used by what builds one, by way of its package
        "engine/steps.py",  # and used by that
        "user.py",  # nothing but a comment, but beside what builds a loader
        "seeded.py",
    }


def test_a_comment_to_us_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_project, "LARGE_TREE", 0)
    (tmp_path / "a.py").write_text("x = 1  # sampler-lint: ignore[SMP101]\n")
    assert [finding.code for finding in check([str(tmp_path)]).findings] == ["SMP001"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (b"for batch in data_loader:", True),
        (b"x = DataLoader(data)", True),
        (b"sampler.set_epoch(1)", True),
        (b"f(batch_sampler=b)", True),
        (b"'sampler': RandomSampler", True),
        (b"x = make_loader()", False),
        (b"self.resampler = PerceiverResampler()", False),
        (b"Conv1dSubsampler(subsampler)", False),
        (b"GridSamplerMode", False),
        (b"coresampler", True),
    ],
)
def test_what_code_is_about_sampling(code: bytes, expected: bool) -> None:
    assert is_about_sampling(code) is expected


def test_prose_is_comments_and_triple_quoted_text() -> None:
    code = b'a = "#x"  # c\nb = """d\n"""\nc = \'e\'\n'
    assert without_prose(code) == b"a = \"#x\"  \nb = \nc = 'e'\n"


def test_an_import_leads_only_to_what_tells_of_ranks_or_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "main.py": "from torch.utils.data import DataLoader\nfrom blocks import Block\n"
        "from ranks import here\nfrom pairs import Pairs\n"
        "DataLoader(Pairs(), shuffle=here() == 0, collate_fn=Block())\n",
        "blocks.py": "class Block: ...\n",
        "ranks.py": "import torch.distributed as dist\ndef here():\n    return dist.get_rank()\n",
        "pairs.py": "from torch.utils.data import Dataset\nclass Pairs(Dataset): ...\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    shown = {str(tmp_path / name): name for name in files}

    def parsed() -> set[str]:
        model = Model(Project(str(tmp_path), shown))
        for module in model.modules:
            for call in module.facts.all_calls:
                model.flow.values(call)
        return {name for path, name in shown.items() if model.project.is_parsed(path)}

    assert parsed() == set(files)
    monkeypatch.setattr(model_project, "LARGE_TREE", 0)
    assert parsed() == set(files) - {"blocks.py"}


@pytest.mark.parametrize("jobs", [1, 2])
def test_two_processes_see_what_one_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    monkeypatch.setattr(first_look, "MANY_FILES", 2)
    # Nothing is forked beside other threads, which other tests may have left.
    monkeypatch.setattr(parallel.threading, "active_count", lambda: 1)
    contents = {
        "a.py": b"x = 1\n",
        "b.py": b"DataLoader(data)\n",
        "c.py": b"random.seed(1)\n",
        "d.py": b"x = 1  # noqa: SMP101\n",
        "e.py": None,
        "f.py": b"sampler = None\n",
    }
    read = []

    def content(path: str) -> bytes | None:
        read.append(path)
        return contents[path]

    digest = bytes.hex
    looks = list(first_look.first_looks(list(contents), content, digest, jobs))
    found = {path: (look, data) for path, look, data in looks}
    assert found.keys() == contents.keys()
    assert [path for path, (look, _) in found.items() if not look.is_readable] == ["e.py"]
    assert {path: data for path, (look, data) in found.items() if look.is_candidate} == {
        path: contents[path] for path in ("b.py", "f.py")
    }
    assert [path for path, (look, _) in found.items() if look.is_seeding] == ["c.py"]
    assert [path for path, (look, _) in found.items() if look.speaks_to_us] == ["d.py"]
    for path, data in contents.items():
        assert found[path][0][:2] == ((len(data), data.hex()) if data else (0, None))
    # The other process has read the other half; what is needed of it is read again.
    assert sorted(read) == (
        sorted(contents) if jobs == 1 else ["a.py", "b.py", "c.py", "e.py", "f.py"]
    )


def linked(folder: Path, files: dict[str, str]) -> Model:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Model(Project(str(folder), {str(folder / name): name for name in files}))


@pytest.mark.parametrize(
    ("loads", "is_parsed"),
    [
        ("import_module(name)", False),
        ("import_module('plugins.one')", False),
        ("import_module(f'plugins.{name}')", True),
        ("import_module(  # one of ours\n    'plugins.' + name)", True),
        ("[import_module(x.name) for x in pkgutil.walk_packages(__path__)]", True),
    ],
)
def test_a_file_that_imports_by_a_computed_name_is_parsed_where_the_name_tells_something(
    tmp_path: Path, loads: str, is_parsed: bool
) -> None:
    files = {
        "main.py": "import plugins\nfrom torch.utils.data import Sampler\n",
        "plugins/__init__.py": "from importlib import import_module\n"
        f"import pkgutil\ndef load(name):\n    return {loads}\n",
        "plugins/one.py": "from torch.utils.data import Sampler\nclass Mine(Sampler): ...\n",
    }
    model = linked(tmp_path, files)
    package, plugin = (str(tmp_path / "plugins" / name) for name in ("__init__.py", "one.py"))
    found = program_files(model)
    assert not model.project.is_parsed(package)  # nobody has asked what leads where
    assert (package in found.leading_to(plugin)) is is_parsed
    assert model.project.is_parsed(package) is is_parsed


@pytest.mark.parametrize(
    ("way", "matters"), [("sampler=sampler", True), ("batch_size=2", True), ("shuffle=True", False)]
)
def test_what_is_handed_to_other_files_matters_where_a_loader_shards_or_shuffles_nothing(
    tmp_path: Path, way: str, matters: bool
) -> None:
    """Else no argument is followed to what it holds, through files that say no sampler word."""
    files = {
        "main.py": "from torch.utils.data import DataLoader, DistributedSampler\n"
        "from steps import run\nfrom things import thing\n"
        "sampler = DistributedSampler(range(8))\n"
        f"loader = DataLoader(range(8), {way})\n"
        "what = thing()\nrun(what)\nrun(loader)\n",
        "steps.py": "def run(over):\n    for each in over: pass\n",
        "things.py": "def thing():\n    return 1\n",
    }
    model = linked(tmp_path, files)
    assert files_to_join(model) == ({str(tmp_path / "steps.py")} if matters else set())
    assert model.project.is_parsed(str(tmp_path / "things.py")) is matters


# --------------------------------------------------------------------------- parts of a tree

BUILDS = """
from torch.utils.data import DataLoader, DistributedSampler


def build(data):
    return DataLoader(data, sampler=DistributedSampler(data))
"""
LOOPS = """
from {package}.loaders import build


def fit(data, model, optimizer):
    loader = build(data)
    for epoch in range(9):
        {sets}
        for batch in loader:
            model(batch).backward()
            optimizer.step()
"""
PROGRAMS = {
    # Two packages, and scripts of both in one folder: with these, one program.
    "first/__init__.py": "",
    "first/loaders.py": BUILDS,
    "second/__init__.py": "",
    "second/loaders.py": BUILDS,
    "scripts/train.py": LOOPS.format(package="first", sets="pass"),
    "scripts/again.py": LOOPS.format(package="second", sets="loader.sampler.set_epoch(epoch)"),
    # Alone; and joined only by a helper without a sampler word.
    "alone/data.py": BUILDS,
    "alone/loop.py": LOOPS.format(package="alone", sets="pass"),
    "tools/steps.py": "def each(items):\n    for item in items:\n        yield item\n",
    "left/train.py": LOOPS.format(package="alone", sets="pass")
    .replace("in loader", "in each(loader)")
    .replace("from alone.loaders", "from tools.steps import each\nfrom alone.data"),
    "right/train.py": "from tools.steps import each\n" + BUILDS,
    "plain.py": "x = 1\n",
}


def of_files(findings: Iterable[Finding], paths: Collection[str]) -> list[Finding]:
    return [each for each in findings if os.path.normpath(each.path) in paths]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small programs, and a few fixtures, in one tree."""
    files = {name: text.encode() for name, text in PROGRAMS.items()}
    for case in all_cases()[::7]:
        folder = f"cases/{case.code}_{case.folder.name}".replace("-", "_")
        files.update((f"{folder}/{name}", data) for name, data in case.files("bad").items())
    monkeypatch.chdir(write_tree(tmp_path, files))
    return tmp_path


def test_a_part_of_a_tree_has_the_findings_of_the_whole(programs: Path) -> None:
    whole = check(["."], EVERY_RULE).findings
    assert {each.path for each in whole} >= {"scripts/train.py", "left/train.py"}
    folders = [path for path in programs.rglob("*") if any(path.glob("*.py"))]
    for folder in folders:
        files = {path.relative_to(programs).as_posix() for path in folder.rglob("*.py")}
        assert check([os.path.relpath(folder)], EVERY_RULE).findings == of_files(whole, files)


def test_other_programs_are_not_parsed(programs: Path) -> None:
    report = check(["alone/data.py"])
    assert report.timings.files.keys() == {
        *("alone/data.py", "alone/loop.py", "left/train.py", "tools/steps.py", "right/train.py")
    }


def test_what_was_said_of_the_whole_is_taken_for_a_part(
    programs: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(str(tmp_path_factory.mktemp("kept")))
    part = check(["scripts"], EVERY_RULE, cache=cache).findings
    whole = check(["."], EVERY_RULE, cache=cache).findings
    assert len(whole) > len(part) > 0
    monkeypatch.delattr(engine, "Tree")  # from here on, nothing is examined
    assert check(["."], EVERY_RULE, cache=cache).findings == whole
    assert check(["scripts"], EVERY_RULE, cache=cache).findings == part
    left = of_files(whole, {"left/train.py"})
    assert check(["left/train.py"], EVERY_RULE, cache=cache).findings == left
