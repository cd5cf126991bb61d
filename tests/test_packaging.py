"""What is published: it builds, it is complete, and it installs by what people install with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cases import FIXTURES
from sampler_lint import __version__

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).parent.parent
BAD = FIXTURES / "SMP101/torch-batch-sampler/bad"


def run(*command: object, **more: object) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, **dict(more)},
    )


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """An environment with the tools of publishing and installing."""
    folder = tmp_path_factory.mktemp("tools")
    run(sys.executable, "-m", "venv", folder)
    done = run(folder / "bin/pip", "install", "-q", "build", "twine", "pipx", "uv")
    assert done.returncode == 0, done.stderr
    return folder / "bin"


@pytest.fixture(scope="module")
def dist(tools, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    done = run(tools / "python", "-m", "build", "--outdir", folder, REPOSITORY)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def first_command(text: str) -> str:
    """The first command of a page that is typed at a prompt."""
    return re.search(r"^\$ (.*?)(?: +#.*)?$", text, re.MULTILINE)[1]


def assert_works(command: Path) -> None:
    version = run(command, "--version")
    assert version.stdout == f"sampler-lint {__version__}\n"
    found = run(command, "--isolated", BAD)
    assert found.returncode == 1, found.stderr
    assert "SMP101" in found.stdout
    name, *arguments = first_command((REPOSITORY / "README.md").read_text(encoding="utf-8")).split()
    assert name == command.name
    typed = subprocess.run([command, *arguments], cwd=BAD, capture_output=True, text=True)
    assert (typed.returncode, "SMP101" in typed.stdout) == (1, True), typed.stderr


@pytest.mark.network
def test_the_distributions_are_well_formed_and_complete(tools, dist):
    checked = run(tools / "twine", "check", "--strict", *dist.iterdir())
    assert checked.returncode == 0, checked.stdout
    (wheel,) = dist.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    source = REPOSITORY / "src"
    shipped = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped <= names
    assert "sampler_lint/py.typed" in names
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        held = {name.partition("/")[2] for name in opened.getnames()}
    assert {"README.md", "LICENSE", "tests/conftest.py", "fixtures/README.md"} <= held


def test_one_version_is_named_everywhere():
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    cited = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    assert f'\nversion = "{__version__}"\n' in project
    assert f"\nversion: {__version__}\n" in cited
    for page in ("README.md", "docs/continuous-integration.md"):
        assert f"    rev: v{__version__}" in (REPOSITORY / page).read_text(encoding="utf-8")


def test_the_conda_recipe_says_what_the_project_says():
    recipe = yaml.safe_load((REPOSITORY / "conda/recipe.yaml").read_text(encoding="utf-8"))
    parsed = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    project = parsed["project"]
    assert recipe["schema_version"] == 1
    assert recipe["context"]["version"] == __version__
    assert recipe["package"] == {"name": project["name"], "version": "${{ version }}"}
    assert (REPOSITORY / "conda" / recipe["source"]["path"]).resolve() == REPOSITORY
    assert (REPOSITORY / recipe["about"]["license_file"]).is_file()
    entry_points = dict(one.split(" = ") for one in recipe["build"]["python"]["entry_points"])
    assert entry_points == project["scripts"]

    python = "python " + project["requires-python"]
    assert needed(recipe["requirements"]["run"]) == needed([*project["dependencies"], python])
    built_with = [*parsed["build-system"]["requires"], python, "pip"]
    assert needed(recipe["requirements"]["host"]) == needed(built_with)


def needed(requirements: list[str]) -> set[tuple[str, str]]:
    """Names and versions, whatever markers say."""
    every = map(Requirement, requirements)
    return {(canonicalize_name(one.name), str(one.specifier)) for one in every}


@pytest.mark.network
def test_the_description_leads_somewhere_from_anywhere(dist):
    """Links of the README that begin at its folder lead nowhere on a package index."""
    (wheel,) = dist.glob("*.whl")
    (name,) = (n for n in zipfile.ZipFile(wheel).namelist() if n.endswith("/METADATA"))
    text = zipfile.ZipFile(wheel).read(name).decode()
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert len(links) > 40
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert "https://raw.githubusercontent.com/sampler-lint/sampler-lint/main/docs/rules/" in text
    assert "Project-URL: Source, https://github.com/sampler-lint/sampler-lint" in text


@pytest.mark.network
def test_the_tests_can_be_collected_from_the_source_distribution(dist, tmp_path):
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    command = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", "--rootdir", tree)
    done = run(*command, tree / "tests", PYTHONPATH=str(tree / "src"))
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.network
def test_pip_installs_it_without_torch(dist, tmp_path):
    (wheel,) = dist.glob("*.whl")
    run(sys.executable, "-m", "venv", tmp_path)
    done = run(tmp_path / "bin/pip", "install", "-q", wheel)
    assert done.returncode == 0, done.stderr
    assert_works(tmp_path / "bin/sampler-lint")
    listed = run(tmp_path / "bin/pip", "list", "--format=freeze").stdout.lower()
    assert not re.search(r"^(torch|flake8|pytest)==", listed, re.MULTILINE)


@pytest.mark.network
@pytest.mark.whole
def test_pipx_installs_it(tools, dist, tmp_path):
    (wheel,) = dist.glob("*.whl")
    home = {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    done = run(tools / "pipx", "install", "--python", sys.executable, wheel, **home)
    assert done.returncode == 0, done.stderr
    assert_works(tmp_path / "bin/sampler-lint")


@pytest.mark.network
def test_uv_installs_it(tools, dist, tmp_path):
    (wheel,) = dist.glob("*.whl")
    home = {
        "UV_TOOL_DIR": str(tmp_path / "home"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "UV_PYTHON_DOWNLOADS": "never",
    }
    done = run(tools / "uv", "tool", "install", "--python", sys.executable, wheel, **home)
    assert done.returncode == 0, done.stderr
    assert_works(tmp_path / "bin/sampler-lint")
