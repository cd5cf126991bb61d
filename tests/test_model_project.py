"""Which file an import means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sampler_lint.engine import Session
from sampler_lint.options import DEFAULTS
from sampler_lint.workspace.project import Project
from trees import Tree

ANY = "# loader\n"
BUILD = "from torch.utils.data import DataLoader\ndef build():\n    return DataLoader([])\n"


def tree(folder: Path, *names: str) -> Tree:
    """Files that all say a sampler word and nothing else."""
    return Tree(folder, dict.fromkeys(names, ANY))


def found(tree: Tree, importer: str, name: str, level: int = 0) -> str | None:
    path = tree.project.imports.find(name, tree.module(importer), level)
    return path and Path(path).relative_to(tree.folder).as_posix()


# dotted names


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("train.py", "train"),
        ("pkg/__init__.py", "pkg"),
        ("pkg/data.py", "pkg.data"),
        ("pkg/sub/__init__.py", "pkg.sub"),
        ("pkg/sub/deep.py", "pkg.sub.deep"),
        ("scripts/run.py", "run"),
    ],
)
def test_dotted_names(tmp_path: Path, path: str, name: str) -> None:
    names = ["train.py", "pkg/__init__.py", "pkg/data.py", "pkg/sub/__init__.py"]
    made = tree(tmp_path, *names, "pkg/sub/deep.py", "scripts/run.py")
    assert made.module(path).name == name


# relative imports


@pytest.mark.parametrize(
    ("name", "level", "path"),
    [
        ("data", 1, "pkg/sub/data.py"),
        ("data", 2, "pkg/data.py"),
        ("other", 2, "pkg/other/__init__.py"),
        ("other.deep", 2, "pkg/other/deep.py"),
        ("", 1, "pkg/sub/__init__.py"),
        ("", 2, "pkg/__init__.py"),
        ("missing", 1, None),
        ("train", 1, None),
    ],
)
def test_relative_imports(tmp_path: Path, name: str, level: int, path: str | None) -> None:
    made = tree(
        tmp_path,
        "train.py",
        "pkg/__init__.py",
        "pkg/data.py",
        "pkg/other/__init__.py",
        "pkg/other/deep.py",
        "pkg/sub/__init__.py",
        "pkg/sub/data.py",
        "pkg/sub/here.py",
    )
    assert found(made, "pkg/sub/here.py", name, level) == path


def test_relative_import_in_a_package_file_starts_at_the_package(tmp_path: Path) -> None:
    made = tree(tmp_path, "pkg/__init__.py", "pkg/data.py", "data.py")
    assert found(made, "pkg/__init__.py", "data", 1) == "pkg/data.py"


# absolute imports


def test_absolute_import_from_the_root(tmp_path: Path) -> None:
    made = tree(tmp_path, "train.py", "pkg/__init__.py", "pkg/data.py", "pkg/sub/x.py")
    assert found(made, "train.py", "pkg.data") == "pkg/data.py"
    assert found(made, "pkg/sub/x.py", "pkg.data") == "pkg/data.py"
    assert found(made, "train.py", "pkg") == "pkg/__init__.py"
    assert found(made, "train.py", "pkg.none") is None
    assert found(made, "train.py", "numpy") is None


def test_src_layout(tmp_path: Path) -> None:
    made = tree(tmp_path, "src/pkg/__init__.py", "src/pkg/data.py", "tests/test_data.py", "run.py")
    for importer in ("src/pkg/__init__.py", "tests/test_data.py", "run.py"):
        assert found(made, importer, "pkg.data") == "src/pkg/data.py"


def test_namespace_package(tmp_path: Path) -> None:
    made = tree(tmp_path, "train.py", "space/data.py")
    assert found(made, "train.py", "space.data") == "space/data.py"
    assert found(made, "train.py", "space") == "space"


def test_scripts_side_by_side_import_their_neighbours(tmp_path: Path) -> None:
    made = tree(tmp_path, "a/train.py", "a/data.py", "b/train.py", "b/data.py", "data.py")
    assert found(made, "a/train.py", "data") == "a/data.py"
    assert found(made, "b/train.py", "data") == "b/data.py"


def test_a_link_beside_a_script_is_the_file_that_it_leads_to(tmp_path: Path) -> None:
    """Recipes side by side often share a file by links, and a link to another stands elsewhere."""
    run = "from data import build\nbuild('loader')\n"
    for name in ("a/data.py", "b/data.py", "c/run.py", "c/pkg/run.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("def build(loader): ...\n" if "data" in name else run)
    (tmp_path / "c/data.py").symlink_to("../b/data.py")
    (tmp_path / "c/pkg/__init__.py").symlink_to("../../b/data.py")
    session = Session()
    tree = session.tree(str(tmp_path), lambda folder: DEFAULTS, {}, {})
    importer = tree.project.module_at(str(tmp_path / "c/run.py"))
    assert importer is not None
    for name in ("data", "pkg"):
        assert tree.project.imports.find(name, importer) == str(tmp_path / "b/data.py")
    assert tree.project.imports.is_package(str(tmp_path / "c/pkg"))
    os.unlink(tmp_path / "c/data.py")
    (tmp_path / "c/data.py").symlink_to("../a/data.py")
    session.outdate()
    again = session.tree(str(tmp_path), lambda folder: DEFAULTS, {}, {})
    assert again.project.imports.find("data", importer) == str(tmp_path / "a/data.py")


def test_several_equally_far_are_none(tmp_path: Path) -> None:
    made = tree(tmp_path, "train.py", "a/data.py", "b/data.py")
    assert found(made, "train.py", "data") is None


def test_the_nearer_of_several_is_taken(tmp_path: Path) -> None:
    made = tree(tmp_path, "one/run/train.py", "one/lib/data.py", "two/lib/data.py")
    assert found(made, "one/run/train.py", "data") == "one/lib/data.py"


def test_a_sibling_in_a_package_does_not_hide_the_top_level(tmp_path: Path) -> None:
    """``import data`` in ``pkg/train.py`` is the top-level module, as it is in Python 3."""
    made = tree(tmp_path, "data.py", "pkg/__init__.py", "pkg/data.py", "pkg/train.py")
    assert found(made, "pkg/train.py", "data") == "data.py"
    alone = tree(tmp_path / "alone", "pkg/__init__.py", "pkg/data.py", "pkg/train.py")
    assert found(alone, "pkg/train.py", "data") == "pkg/data.py"


def test_a_sibling_in_a_package_comes_before_what_is_further_out(tmp_path: Path) -> None:
    """Nobody imports both a package of ``tools`` and what lies beside ``tools``: it is run."""
    files = ("data.py", "tools/pkg/__init__.py", "tools/pkg/data.py", "tools/pkg/train.py")
    assert found(tree(tmp_path, *files), "tools/pkg/train.py", "data") == "tools/pkg/data.py"


def test_a_package_that_installs_what_it_holds_is_a_root(tmp_path: Path) -> None:
    files = ("src/__init__.py", "src/setup.py", "src/pkg/data.py", "src/run/a/train.py")
    made = tree(tmp_path, *files)
    assert found(made, "src/run/a/train.py", "pkg.data") == "src/pkg/data.py"


def test_code_that_was_taken_over_keeps_its_imports(tmp_path: Path) -> None:
    names = "pkg/__init__.py", "pkg/theirs/__init__.py", "pkg/theirs/data/load.py"
    made = tree(tmp_path, *names, "pkg/theirs/run/__init__.py", "pkg/theirs/run/train.py")
    assert found(made, "pkg/theirs/run/train.py", "data.load") == "pkg/theirs/data/load.py"
    assert found(made, "pkg/theirs/run/train.py", "data") is None
    assert found(made, "pkg/theirs/run/train.py", "data.other") is None


def test_a_file_never_imports_itself(tmp_path: Path) -> None:
    made = tree(tmp_path, "pkg/__init__.py", "pkg/accelerate.py", "logging.py")
    assert found(made, "pkg/accelerate.py", "accelerate") is None
    assert found(made, "logging.py", "logging") is None


def test_a_folder_called_torch_is_not_torch(tmp_path: Path) -> None:
    made = tree(tmp_path, "train.py", "torch/__init__.py", "torch/utils/data.py")
    assert found(made, "train.py", "torch.utils.data") is None


# what names in modules are


def one_value(folder: Path, imports: str, files: dict[str, str], expression: str) -> set[str]:
    main = f'{imports}\nprobe_loader("x", {expression})\n'
    return Tree(folder, {"main.py": main, **files}).values()


@pytest.mark.parametrize(
    ("imports", "expression"),
    [
        ("from pkg.data import build", "build()"),
        ("from pkg.data import build as make", "make()"),
        ("import pkg.data", "pkg.data.build()"),
        ("import pkg.data as data", "data.build()"),
        ("from pkg import data", "data.build()"),
        ("from pkg import build", "build()"),
        ("from pkg import exported", "exported()"),
        ("import pkg", "pkg.build()"),
        ("from pkg.data import *", "build()"),
        ("from pkg.stars import *", "build()"),
        ("from pkg.stars import build", "build()"),
    ],
)
def test_ways_to_import(tmp_path: Path, imports: str, expression: str) -> None:
    files = {
        "pkg/__init__.py": "from .data import build\nfrom pkg.data import build as exported\n",
        "pkg/data.py": BUILD,
        "pkg/stars.py": "from .data import *\n",
    }
    assert one_value(tmp_path, imports, files, expression) == {"DataLoader([])"}


def test_import_that_may_fail(tmp_path: Path) -> None:
    imports = "try:\n    from fast import build\nexcept ImportError:\n    from data import build"
    assert one_value(tmp_path, imports, {"data.py": BUILD}, "build()") >= {"DataLoader([])"}


def test_import_inside_a_function(tmp_path: Path) -> None:
    main = 'def main():\n    from data import build\n    probe_loader("x", build())\n'
    assert Tree(tmp_path, {"main.py": main, "data.py": BUILD}).values() == {"DataLoader([])"}


def test_circular_reexports_end(tmp_path: Path) -> None:
    files = {"a.py": "from b import build\n", "b.py": "from a import build\n"}
    assert one_value(tmp_path, "from a import build", files, "build()") <= {"?"}


def test_the_last_star_import_wins(tmp_path: Path) -> None:
    files = {"a.py": BUILD, "b.py": BUILD.replace("[]", "b")}
    stars = "from a import *\nfrom b import *"
    assert one_value(tmp_path, stars, files, "build()") == {"DataLoader(b)"}


def test_a_star_brings_what_all_names(tmp_path: Path) -> None:
    files = {"a.py": BUILD, "b.py": '__all__ = ["other"]\n' + BUILD.replace("[]", "b")}
    stars = "from a import *\nfrom b import *"
    assert one_value(tmp_path, stars, files, "build()") == {"DataLoader([])"}


def test_outside_names_are_kept_dotted(tmp_path: Path) -> None:
    imports = "import numpy as np"
    assert one_value(tmp_path, imports, {}, "np.random.shuffle") == {"numpy.random.shuffle"}


@pytest.mark.parametrize(
    ("imports", "expression"),
    [
        ("from torch.utils.data import DataLoader as DL", "DL([])"),
        ("from torch.utils import data", "data.DataLoader([])"),
        ("import torch.utils.data as tud", "tud.DataLoader([])"),
        ("import torch", "torch.utils.data.DataLoader([])"),
        ("import torch.utils.data", "torch.utils.data.DataLoader([])"),
        ("from torch.utils.data import *", "DataLoader([])"),
        ("from torch.utils.data.dataloader import DataLoader", "DataLoader([])"),
        ("from compat import DataLoader", "DataLoader([])"),
    ],
)
def test_spellings_of_a_torch_class(tmp_path: Path, imports: str, expression: str) -> None:
    main = f'{imports}\nprobe_loader("x", {expression})\n'
    files = {"main.py": main, "compat.py": "from torch.utils.data import DataLoader\n"}
    tree = Tree(tmp_path, files)
    assert tree.model.role(tree.obj()) == "loader"


# programs


def test_files_that_import_one_another_are_one_program(tmp_path: Path) -> None:
    tree = Tree(
        tmp_path,
        {
            "a/train.py": "import lightning\nfrom lib.data import build  # loader\n",
            "b/train.py": "import accelerate  # loader\n",
            "lib/__init__.py": "",
            "lib/data.py": BUILD,
        },
    )
    programs = {
        name: tree.project.program_of(tree.module(name))
        for name in ("a/train.py", "b/train.py", "lib/data.py")
    }
    assert programs["a/train.py"] == programs["lib/data.py"] != programs["b/train.py"]
    assert tree.model.frameworks(tree.module("lib/data.py")) == {"lightning"}
    assert tree.model.frameworks(tree.module("b/train.py")) == {"accelerate"}


# loading


def test_only_files_with_a_sampler_word_are_parsed_up_front(tmp_path: Path) -> None:
    tree = Tree(
        tmp_path,
        {
            "main.py": 'from seed import SEED\nprobe_loader("x", SEED)\n',
            "seed.py": "SEED = 7\n",
            "far.py": "x = 1\n",
        },
    )
    assert [module.name for module in tree.project.loaded] == ["main"]
    assert tree.values() == {"7"}
    assert {module.name for module in tree.project.loaded} == {"main", "seed"}


def test_overlay_replaces_what_is_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "main.py"
    path.write_text("x = 'loader'\n", encoding="utf-8")
    new = b"y = 'loader'\n"
    project = Project(str(tmp_path), {str(path): "main.py"}, {str(path): new})
    assert "y" in project.candidates[0].facts.bindings
    assert project.holds(str(path), new)
    assert not project.holds(str(path), path.read_bytes())


def test_broken_files_are_told_and_do_not_hide_others(tmp_path: Path) -> None:
    for name, data in {"a.py": b"loader = (", "b.py": b"loader = 1\n", "c.py": b"x = ("}.items():
        (tmp_path / name).write_bytes(data)
    files = {str(tmp_path / name): name for name in ("a.py", "b.py", "c.py")}
    project = Project(str(tmp_path), files)
    assert [module.name for module in project.candidates] == ["b"]
    assert [error.path for error in project.problems(files)] == ["a.py", "c.py"]
