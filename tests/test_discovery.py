"""Which files are found, and which tree is theirs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sampler_lint import discovery
from sampler_lint.discovery import find_files
from sampler_lint.roots import project_root


def plant(root: Path, *names: str, **texts: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_text(texts.get(name, ""))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_spells_files_as_the_folder_was_spelled(here: Path) -> None:
    plant(here, "b.py", "a/c.py", "a/d.txt", "a/e.pyi")
    assert find_files(["."]).files == ["a/c.py", "b.py"]
    assert find_files(["./"]).files == ["a/c.py", "b.py"]
    assert find_files(["./a/"]).files == ["./a/c.py"]
    assert find_files(["a"]).files == ["a/c.py"]
    assert find_files(["a/../a"]).files == ["a/../a/c.py"]
    assert find_files([str(here / "a")]).files == [str(here / "a" / "c.py")]


def test_takes_named_files_whatever_they_are(here: Path) -> None:
    plant(here, ".gitignore", "x.txt", "build/b.py", ".venv/c.py")
    (here / ".gitignore").write_text("*\n")
    named = ["x.txt", "./build/b.py", ".venv/c.py"]
    assert find_files(named, ["*"]).files == named


def test_takes_a_named_folder_though_it_is_excluded(here: Path) -> None:
    plant(here, ".git/", "build/a.py", "build/venv/b.py")
    (here / ".gitignore").write_text("build/\n")
    assert find_files(["."]).files == []
    assert find_files(["build"]).files == ["build/a.py"]


def test_each_real_file_once_in_the_order_asked(here: Path) -> None:
    plant(here, "a/x.py", "a/y.py", "b.py")
    assert find_files(["b.py", "a/y.py", ".", "a", str(here / "a/x.py")]).files == [
        "b.py",
        "a/y.py",
        "a/x.py",
    ]


def test_leaves_out_what_is_not_the_projects_own(here: Path) -> None:
    plant(here, "a.py", "dist/__init__.py", "dist/b.py", "env/pyvenv.cfg", "env/lib/c.py")
    for name in (".git", ".venv", "venv", "node_modules", "site-packages", "build", ".tox"):
        plant(here, f"{name}/x.py", f"deep/{name}/x.py")
    assert find_files(["."]).files == ["a.py", "dist/__init__.py", "dist/b.py"]


def test_a_missing_path_does_not_stop_the_rest(here: Path) -> None:
    plant(here, "a.py")
    os.symlink("nowhere", "broken.py")
    found = find_files(["none.py", "a.py", "a.py/b.py", "broken.py", "none/"])
    assert found.files == ["a.py"]
    assert [str(error) for error in found.errors] == [
        "none.py: no such file or directory",
        "a.py/b.py: no such file or directory",
        "broken.py: no such file or directory",
        "none/: no such file or directory",
    ]


def test_an_unreadable_folder_does_not_stop_the_rest(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(here, "a.py", "locked/b.py", "z/c.py")
    scandir = os.scandir

    def locked(path: str) -> object:  # root may read everything, so chmod would prove nothing
        if path == "locked":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(discovery.os, "scandir", locked)
    found = find_files(["."])
    assert found.files == ["a.py", "z/c.py"]
    assert [str(error) for error in found.errors] == ["locked: cannot be read: Permission denied"]


def test_links(here: Path) -> None:
    plant(here, "tree/a/real.py", "outside/far.py", "outside/sub/deep.py", "tree/dir.py/in.py")
    os.symlink("real.py", "tree/a/again.py")
    os.symlink("../../outside/far.py", "tree/a/near.py")
    os.symlink("..", "tree/a/loop")
    os.symlink("../outside", "tree/out")
    os.symlink("gone.py", "tree/broken.py")
    os.symlink("self.py", "tree/self.py")
    os.symlink("tree", "link")
    plant(here, "tree/.git/")
    expected = ["a/real.py", "dir.py/in.py"]  # nothing is read outside of the repository
    assert find_files(["tree"]).files == [f"tree/{name}" for name in expected]
    (here / "tree" / ".git").rename(here / ".git")
    expected.insert(0, "a/near.py")
    assert find_files(["tree"]).files == [f"tree/{name}" for name in expected]
    assert find_files(["link"]).files == [f"link/{name}" for name in expected]
    assert find_files(["tree", "link"]).files == [f"tree/{name}" for name in expected]
    assert find_files(["tree"]).errors == []
    assert find_files(["tree"]).links == {"tree/a/again.py": "tree/a/real.py"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_only_regular_files_below_a_folder(here: Path) -> None:
    plant(here, "a.py")
    os.mkfifo("fifo.py")
    os.symlink("/dev/null", "null.py")
    assert find_files(["."]).files == ["a.py"]


def test_gitignore_files_of_parents_and_below(here: Path) -> None:
    plant(here, ".gitignore", "repo/.git/")
    names = ["keep.py", "drop.py", "sub/drop.py", "sub/back.py", "sub/gen/a.py", "sub/in/top.py"]
    plant(here / "repo", "top.py", *names)
    (here / ".gitignore").write_text("keep.py\n")  # above the git root
    (here / "repo/.gitignore").write_text("drop.py\n/top.py\nback.py\n")
    (here / "repo/sub/.gitignore").write_text("!back.py\ngen/\n")
    expected = ["repo/sub/back.py", "repo/sub/in/top.py"]
    assert find_files(["repo"]).files == ["repo/keep.py", *expected]
    assert find_files(["repo/sub"]).files == expected
    assert find_files(["repo/sub/in", "repo/sub/gen"]).files == [
        "repo/sub/in/top.py",
        "repo/sub/gen/a.py",
    ]


def test_an_inner_repository_has_its_own_rules(here: Path) -> None:
    plant(here, ".git/", "a.py", "inner/.git", "inner/a.py", "inner/b.py")
    (here / ".gitignore").write_text("a.py\n")
    (here / "inner/.gitignore").write_text("b.py\n")
    assert find_files(["."]).files == ["inner/a.py"]
    assert find_files(["."], ["inner/a.py"]).files == []


@pytest.mark.skipif(sys.platform == "win32", reason="says it in other words")
def test_gitignore_counts_without_git_and_need_not_be_utf8(here: Path) -> None:
    plant(here, "sub/a.py", "sub/b.py")
    (here / "sub/.gitignore").write_bytes(b"\xef\xbb\xbfa.py\r\n\xff\n")
    assert find_files(["."]).files == ["sub/b.py"]
    (here / ".gitignore").mkdir()
    found = find_files(["."])
    assert found.files == ["sub/b.py"]
    assert [str(error) for error in found.errors] == [
        f"{here / '.gitignore'}: cannot be read: Is a directory"
    ]


def test_exclude_is_relative_to_the_working_directory_or_the_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(here, "src/a.py", "src/gen/b.py", "gen/c.py")
    assert find_files(["."], ["/src/gen"]).files == ["gen/c.py", "src/a.py"]
    assert find_files(["src"], ["/src/gen"]).files == ["src/a.py"]
    assert find_files(["src"], ["/gen"]).files == ["src/a.py", "src/gen/b.py"]
    assert find_files(["src"], ["/gen"], root="src").files == ["src/a.py"]
    monkeypatch.chdir(here / "gen")
    assert find_files(["../src"], ["/gen", "c.py"]).files == ["../src/a.py"]


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="file names are UTF-8 there")
def test_file_names_need_not_be_utf8(here: Path) -> None:
    plant(here, ".git/")
    (here / ".gitignore").write_bytes(b"\xfe.py\n")
    for name in (b"\xfe.py", b"\xff.py"):
        Path(os.fsdecode(name)).touch()
    assert find_files(["."]).files == [os.fsdecode(b"\xff.py")]


def test_finding_files_reads_none_and_imports_little() -> None:
    program = (
        "import sys, sampler_lint.discovery as d; d.find_files(['.']);"
        "sys.exit(str({'libcst', 'torch', 'tempfile'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stderr.strip() == "set()"


@pytest.fixture
def apart(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that is treated as neither the home nor the temporary folder."""
    monkeypatch.setenv("HOME", str(here / "home"))
    monkeypatch.setenv("TMPDIR", str(here / "tmp"))
    plant(here, "home/", "tmp/", "work/")
    return here


@pytest.mark.parametrize("marker", [".git/", "pyproject.toml", "setup.py", "setup.cfg"])
def test_root_is_the_nearest_marked_folder(apart: Path, marker: str) -> None:
    plant(apart, "work/.git/", f"work/x/{marker}", "work/x/pkg/__init__.py", "work/x/pkg/a.py")
    assert project_root("work/x/pkg/a.py") == "work/x"
    assert project_root("work/x/pkg") == "work/x"
    assert project_root("./work/x") == "work/x"
    assert project_root(str(apart / "work/x/pkg/a.py")) == str(apart / "work/x")
    assert project_root("work/y.py") == "work"


def test_root_is_spelled_from_the_working_directory(
    apart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(apart, "work/.git/", "work/scripts/a.py")
    monkeypatch.chdir(apart / "work/scripts")
    assert project_root("a.py") == ".."
    assert project_root(".") == ".."
    monkeypatch.chdir(apart / "work")
    assert project_root("scripts/a.py") == "."


def test_root_without_a_marker_is_where_the_package_stands(apart: Path) -> None:
    plant(apart, "work/p/__init__.py", "work/p/q/__init__.py", "work/p/q/a.py", "work/s/b.py")
    assert project_root("work/p/q/a.py") == "work"
    assert project_root("work/p/q") == "work"
    assert project_root("work/s/b.py") == "work/s"
    assert project_root("work/s") == "work/s"
    assert project_root("work") == "work"


def test_a_module_named_setup_marks_no_project(apart: Path) -> None:
    plant(apart, "work/pyproject.toml", "work/p/__init__.py", "work/p/setup.py", "work/p/a.py")
    assert project_root("work/p/a.py") == "work"
    (apart / "work/pyproject.toml").unlink()
    assert project_root("work/p/a.py") == "work/p"


@pytest.mark.parametrize("shared", ["home", "tmp"])
def test_a_shared_folder_is_no_project(apart: Path, shared: str) -> None:
    plant(apart, ".git/")
    plant(apart / shared, ".git/", "setup.py", "a.py", "code/sub/b.py", "p/__init__.py", "p/c.py")
    assert project_root(f"{shared}/code/sub/b.py") == f"{shared}/code/sub"
    assert project_root(f"{shared}/code") == f"{shared}/code"
    assert project_root(f"{shared}/p/c.py") == f"{shared}/p"
    assert project_root(f"{shared}/a.py") == f"{shared}/a.py"
    assert project_root(shared) == shared
    assert find_files([project_root(f"{shared}/a.py")]).files == [f"{shared}/a.py"]


def test_what_lies_beside_the_package_one_stands_in_is_another_project(
    apart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(apart, "work/p/__init__.py", "work/p/q/__init__.py", "work/p/q/a.py", "work/other/b.py")
    monkeypatch.chdir(apart / "work/p/q")
    assert project_root(".") == ".."
    assert project_root("a.py") == ".."
    assert project_root(str(apart / "work/p")) == str(apart / "work/p")


def test_the_root_of_the_file_system_is_no_project(monkeypatch: pytest.MonkeyPatch) -> None:
    markers = {"/.git", "/setup.py", "/pyproject.toml"}
    monkeypatch.setattr(discovery.os.path, "exists", markers.__contains__)
    assert project_root("/nowhere/a.py") == "/nowhere"
    assert project_root("/a.py") == "/a.py"
    assert project_root("/") == "/"
