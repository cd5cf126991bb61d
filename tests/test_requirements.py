"""Which versions a tree asks for, and that rules heed them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from cases import write_tree
from sampler_lint import engine
from sampler_lint.catalog import Span, release
from sampler_lint.engine import Options
from sampler_lint.findings import Finding
from sampler_lint.workspace.project import Project
from sampler_lint.workspace.requirements import Range, Requirements


def versions(
    root: Path, framework: str = "torch", folder: str = "", packages: tuple[str, ...] = (), **told
) -> Range:
    requirements = Requirements(Project(str(root), {}), **told)
    return requirements.range(str(root / folder), framework, frozenset(packages))


def written(tmp_path: Path, **files: str) -> Path:
    named = {name.replace("__", "/"): dedent(text).encode() for name, text in files.items()}
    return write_tree(tmp_path / "project", named)


def admits(found: Range, *texts: str) -> list[bool]:
    return [release(text) in found.releases for text in texts]


SETUP = """
    from setuptools import setup

    raise SystemExit("this file is never run")
    REQUIRED = ["numpy", "torch>=2.0,<2.10; python_version >= '3.9'"]
    setup(name="x", install_requires=REQUIRED)
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "numpy\n# torch>=2.11\ntorch>=2.0,<2.10  # until we have moved\n"),
        ("requirements-dev.txt", "-r base.txt\ntorch[opt] >=2.0, <2.10\n"),
        ("requirements/train.txt", "torch>=2.0,<2.10 ; sys_platform == 'linux'\n"),
        ("setup.py", SETUP),
        ("setup.py", 'needs = """\nnumpy\ntorch>=2.0,<2.10\n"""\n'),
        ("setup.cfg", "[options]\ninstall_requires =\n  numpy\n  torch>=2.0,<2.10\n"),
        ("setup.cfg", "[options.extras_require]\ngpu = torch>=2.0,<2.10\n"),
        ("pyproject.toml", '[project]\nname = "x"\ndependencies = ["torch>=2.0,<2.10"]\n'),
        (
            "pyproject.toml",
            '[project.optional-dependencies]\ngpu = ["numpy", "torch >= 2.0, < 2.10"]\n',
        ),
        ("pyproject.toml", '[dependency-groups]\ndev = ["torch>=2.0,<2.10", {a = "b"}]\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = ">=2.0 <2.10"\n'),
        (
            "pyproject.toml",
            '[tool.poetry.group.gpu.dependencies]\nTorch = {version = ">=2.0,<2.10"}\n',
        ),
        ("environment.yml", "dependencies:\n  - pytorch::pytorch>=2.0,<2.10\n"),
        ("environment.yaml", "dependencies:\n  - pip:\n    - torch>=2.0,<2.10\n"),
    ],
)
def test_each_kind_of_file_is_read(tmp_path, name: str, text: str) -> None:
    root = write_tree(tmp_path, {name: dedent(text).encode()})
    found = versions(root)
    assert found.is_stated
    assert admits(found, "1.13", "2.0", "2.9", "2.10", "2.13") == [False, True, True, False, False]
    assert {requirement.place for requirement in found.stated} == {name}


@pytest.mark.parametrize(
    ("poetry", "inside", "outside"),
    [
        ("^2.1", ("2.1", "2.13"), ("2.0", "3.0")),
        ("^2.1.2", ("2.1.2", "2.2"), ("2.1",)),
        ("~2.1", ("2.1",), ("2.0", "2.2")),
        ("~2", ("2.0", "2.13"), ("1.13",)),
        ("2.1.*", ("2.1",), ("2.2",)),
        ("2.1.2", ("2.1.2",), ("2.1", "2.2")),
        ("*", ("1.8", "2.13"), ()),
        (">=1.13,!=2.0", ("1.13", "2.1"), ("2.0",)),
        ("~1.13+cu117", ("1.13",), ("2.0",)),
        (">=2.1+cu118", ("1.8", "2.13"), ()),
    ],
)
def test_versions_as_poetry_writes_them(tmp_path, poetry: str, inside, outside) -> None:
    text = f'[tool.poetry.dependencies]\npython = "^3.10"\ntorch = "{poetry}"\n'
    found = versions(write_tree(tmp_path, {"pyproject.toml": text.encode()}))
    assert all(admits(found, *inside))
    assert not any(admits(found, *outside))


@pytest.mark.parametrize(
    ("line", "inside", "outside"),
    [
        ("torch==2.1.0+cu118", ("2.1",), ("2.2", "2.10")),
        ("torch==2.0.1", ("2.0.1",), ("2.0", "2.1")),
        ("torch~=2.1", ("2.1", "2.13"), ("2.0",)),
        ("torch>=2.99", ("9999",), ("2.13",)),
        ("torch", ("1.8", "2.13", "9999"), ()),
        ("torch @ https://example.org/torch.whl", ("1.8", "2.13"), ()),
    ],
)
def test_versions_as_pip_writes_them(tmp_path, line: str, inside, outside) -> None:
    found = versions(write_tree(tmp_path, {"requirements.txt": line.encode()}))
    assert all(admits(found, *inside))
    assert not any(admits(found, *outside))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "setup.py",
            'setup(name="x", python_requires=">=3.6, <3.9", install_requires=["torch"])\n',
        ),
        ("setup.cfg", "[options]\npython_requires = >=3.6, <3.9\n"),
        ("pyproject.toml", '[project]\nname = "x"\nrequires-python = "~=3.8.0"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = ">=3.7,<3.9"\ntorch = "*"\n'),
        ("environment.yml", "dependencies:\n  - python=3.8\n  - pytorch\n"),
    ],
)
def test_an_old_python_has_no_new_torch(tmp_path, name: str, text: str) -> None:
    root = write_tree(tmp_path, {name: text.encode()})
    assert admits(versions(root), "1.13", "2.0", "2.5", "2.6", "2.10") == [True] * 3 + [False] * 2
    assert admits(versions(root, torch_version=">=2.6"), "2.6", "2.10") == [True, True]


@pytest.mark.parametrize("wanted", [">=3.6", ">=3.8,<4", "three"])
def test_another_python_has_every_torch(tmp_path, wanted: str) -> None:
    text = f'setup(name="x", python_requires="{wanted}")\n'
    found = versions(write_tree(tmp_path, {"setup.py": text.encode()}))
    assert admits(found, "2.5", "2.10", "2.13") == [True, True, True]


def test_conda_pins_with_one_sign(tmp_path) -> None:
    text = (
        "name: x\nchannels:\n  - pytorch\ndependencies:\n"
        "  - python=3.10\n  - pytorch=2.1=py3.10_cuda\n  - pip\n"
    )
    found = versions(write_tree(tmp_path, {"environment.yml": text.encode()}))
    assert admits(found, "2.0", "2.1", "2.2") == [False, True, False]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[project\n"),
        ("pyproject.toml", "[project]\ndependencies = 3\n"),
        ("setup.py", "print 'torch<2'\n"),
        ("setup.cfg", "install_requires = torch<2\n"),
        ("requirements.txt", "torch<>2 what\n"),
        ("requirements.txt", "\xff\xfe"),
    ],
)
def test_a_broken_file_says_nothing(tmp_path, name: str, text: str) -> None:
    root = write_tree(tmp_path, {name: text.encode("latin-1")})
    assert versions(root) == versions(tmp_path / "elsewhere")
    assert not versions(root).stated


def test_the_nearest_folder_that_says_something_counts(tmp_path) -> None:
    root = write_tree(
        tmp_path,
        {
            "requirements.txt": b"torch<2.10\nlightning>=2.2\n",
            "new/requirements.txt": b"torch>=2.10\n",
            "new/src/train.py": b"",
        },
    )
    assert admits(versions(root), "2.9", "2.10") == [True, False]
    assert admits(versions(root, folder="new/src"), "2.9", "2.10") == [False, True]
    assert admits(versions(root, "lightning", folder="new/src"), "2.1", "2.2") == [False, True]


def test_files_side_by_side_count_together(tmp_path) -> None:
    files = {"setup.py": b"x = ['torch<2.1']\n", "requirements.txt": b"torch==2.12.0\n"}
    found = versions(write_tree(tmp_path, files))
    assert admits(found, "2.0", "2.4", "2.12") == [True, False, True]


def test_an_import_says_as_much_as_is_sure(tmp_path) -> None:
    old, new = Span(before="2.0"), Span(since="2.0")
    for packages, may_be_old in (
        (("lightning",), False),
        (("pytorch_lightning",), True),
        (("lightning", "pytorch_lightning"), True),
        ((), True),
    ):
        found = versions(tmp_path, "lightning", packages=packages)
        assert found.may_be(old) is may_be_old
        assert found.may_be(new)


# the user's own word


def test_the_setting_replaces_the_files(tmp_path) -> None:
    root = write_tree(tmp_path, {"requirements.txt": b"torch<2.10\nlightning<2\n"})
    assert admits(versions(root, torch_version=">=2.10"), "2.9", "2.10") == [False, True]
    assert admits(versions(root, torch_version="2.4"), "2.3", "2.4", "2.5") == [False, True, True]
    for spelled in ("lightning>=2.2", "pytorch-lightning >= 2.2", "Lightning>=2.2"):
        found = versions(root, "lightning", frameworks=(spelled,))
        assert admits(found, "1.9", "2.1", "2.2") == [False, False, True]
    told = Requirements(Project(str(root), {}), frameworks=("mosaicml", "accelerate"))
    assert told.frameworks == {"composer", "accelerate"}
    assert Requirements(Project(str(root), {})).frameworks is None


@pytest.mark.parametrize(
    "told",
    [
        {"torch_version": "new"},
        {"torch_version": "=2.4"},
        {"frameworks": ("keras",)},
        {"frameworks": ("lightning>two",)},
        {"frameworks": ("",)},
    ],
)
def test_a_setting_that_says_nothing_is_an_error(tmp_path, told) -> None:
    with pytest.raises(ValueError, match=r"is not a version|names no framework"):
        Requirements(Project(str(tmp_path), {}), **told)
    (tmp_path / "a.py").write_text("import torch.utils.data.sampler\n")
    with pytest.raises(ValueError, match=r"is not a version|names no framework"):
        engine.check([str(tmp_path)], Options(**told))


# rules heed them


def found_in(root: Path, *select: str) -> list[Finding]:
    return engine.check([str(root)], Options(select=select)).findings


OLD_INIT = b"""\
from torch.utils.data import Sampler


class Ordered(Sampler):
    def __init__(self, data):
        super().__init__(data)
        self.data = data

    def __iter__(self):
        return iter(range(len(self.data)))

    def __len__(self):
        return len(self.data)
"""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"", "unsafe"),
        (b"torch\n", "unsafe"),
        (b"torch>=2.1\n", "safe"),
        (b"torch>=1.13\n", "unsafe"),
        (b"torch>=2.1,<2.10\n", None),
        (b"torch==1.13.1\n", None),
    ],
)
def test_the_argument_of_sampler_init(tmp_path, line: bytes, found: str | None) -> None:
    root = write_tree(tmp_path, {"samplers.py": OLD_INIT, "requirements.txt": line})
    findings = found_in(root, "SMP305")
    said = [f.fix.applicability.value for f in findings if f.fix is not None]
    assert said == ([found] if found else [])
    assert len(findings) == len(said)


BATCHES = b"""\
import pytorch_lightning as pl
from torch.utils.data import DataLoader, Sampler


class Batches(Sampler):
    def __init__(self, data, size):
        self.data = data
        self.size = size
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        order = list(range(self.epoch, len(self.data))) + list(range(self.epoch))
        for start in range(0, len(order), self.size):
            yield order[start : start + self.size]

    def __len__(self):
        return -(-len(self.data) // self.size)


class Data(pl.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(self.data, batch_sampler=Batches(self.data, 4))
"""


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        (b"", {"SMP301", "SMP302"}),
        (b"pytorch-lightning>=2.0\n", {"SMP104", "SMP301", "SMP302"}),
        (b"pytorch-lightning==1.9.*\n", {"SMP301", "SMP302"}),
        (b"pytorch-lightning<1.5\n", set()),
    ],
)
def test_what_lightning_does_by_version(tmp_path, line: bytes, codes: set[str]) -> None:
    root = write_tree(tmp_path, {"data.py": BATCHES, "requirements.txt": line})
    findings = found_in(root, "SMP104", "SMP301", "SMP302")
    assert {finding.code for finding in findings} == codes
    said = " ".join(finding.whole for finding in findings)
    assert ("replace_sampler_ddp" in said) == (line == b"pytorch-lightning==1.9.*\n")
