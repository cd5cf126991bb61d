"""The hooks through the real pre-commit, which installs this package into its own environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.network

REPOSITORY = Path(__file__).parent.parent
FIXTURE = REPOSITORY / "fixtures/SMP101/torch-batch-sampler"
BAD = (FIXTURE / "bad" / "train.py").read_bytes()
FIXED = (FIXTURE / "fixed" / "train.py").read_bytes()


IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


def git(*arguments, cwd):
    subprocess.run(["git", *IDENTITY, *arguments], cwd=cwd, check=True, capture_output=True)


def head(repository):
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.check_output(command, cwd=repository, text=True).strip()


@pytest.fixture(scope="module")
def hooks(tmp_path_factory):
    """This working tree as a repository, and one home for pre-commit's environments."""
    source = tmp_path_factory.mktemp("hooks") / "repository"
    source.mkdir()
    for name in (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "src", source / "src", ignore=ignore)
    git("init", "-q", cwd=source)
    git("add", ".", cwd=source)
    git("commit", "-qm", "all", cwd=source)
    return source, tmp_path_factory.mktemp("pre-commit")


@pytest.fixture
def project(tmp_path):
    (tmp_path / "train.py").write_bytes(BAD)
    (tmp_path / "clean.py").write_text("x = 1\n")
    (tmp_path / "notes.md").write_text("sampler\n")
    git("init", "-q", cwd=tmp_path)
    git("add", ".", cwd=tmp_path)
    git("commit", "-qm", "all", cwd=tmp_path)
    return tmp_path


def pre_commit(hooks, *arguments, cwd):
    _, home = hooks
    result = subprocess.run(
        [sys.executable, "-m", "pre_commit", *arguments],
        cwd=cwd,
        env={**os.environ, "PRE_COMMIT_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout + result.stderr


def configuration(hooks, *names):
    listed = "".join(f"  - id: {name}\n" for name in names)
    return f"repos:\n- repo: {hooks[0]}\n  rev: {head(hooks[0])}\n  hooks:\n{listed}"


def run_hook(hooks, hook, *files, cwd):
    """Through `pre-commit run`, whose environments are kept; those of `try-repo` are not."""
    (cwd / ".pre-commit-config.yaml").write_text(configuration(hooks, hook))
    return pre_commit(hooks, "run", hook, "--files", *files, cwd=cwd)


def test_report(hooks, project):
    files = ("train.py", "clean.py", "notes.md")
    code, out = pre_commit(
        hooks, "try-repo", hooks[0], "sampler-lint", "--files", *files, cwd=project
    )
    assert code == 1, out
    assert "train.py:39:13: SMP101 [*] " in out
    assert "in 2 files." in out
    assert (project / "train.py").read_bytes() == BAD


def test_a_clean_file_passes(hooks, project):
    code, out = run_hook(hooks, "sampler-lint", "clean.py", cwd=project)
    assert code == 0, out
    assert "Passed" in out


def test_what_the_configuration_excludes_is_left_out(hooks, project):
    (project / "sampler-lint.toml").write_text('exclude = ["train.py"]\n')
    for hook in ("sampler-lint", "sampler-lint-fix"):
        code, out = run_hook(hooks, hook, "train.py", "clean.py", cwd=project)
        assert code == 0, out
    assert (project / "train.py").read_bytes() == BAD


def test_fix(hooks, project):
    code, out = run_hook(hooks, "sampler-lint-fix", "train.py", "clean.py", cwd=project)
    assert code == 1, out
    assert "exit code: 1" in out
    assert "files were modified by this hook" in out
    assert "Fixed 1 finding in 1 file" in out
    assert (project / "train.py").read_bytes() == FIXED
    code, out = run_hook(hooks, "sampler-lint-fix", "train.py", "clean.py", cwd=project)
    assert code == 0, out


@pytest.mark.parametrize("hook", ["sampler-lint", "sampler-lint-fix"])
def test_a_commit_that_breaks_another_file_fails(hooks, tmp_path, hook):
    """A user's repository with the hook installed: files are staged and committed one by one."""
    _, home = hooks
    program = REPOSITORY / "fixtures/SMP102/factory-tuple/bad"
    git("init", "-q", cwd=tmp_path)
    (tmp_path / ".pre-commit-config.yaml").write_text(configuration(hooks, hook))
    environment = {**os.environ, "PRE_COMMIT_HOME": str(home)}
    install = [sys.executable, "-m", "pre_commit", "install"]
    subprocess.run(install, cwd=tmp_path, env=environment, check=True, capture_output=True)

    def commit(name):
        if (program / name).exists():
            shutil.copy(program / name, tmp_path)
        git("add", name, cwd=tmp_path)
        command = ["git", *IDENTITY, "commit", "-m", name]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    assert commit(".pre-commit-config.yaml").returncode == 0
    loop = commit("train.py")
    assert loop.returncode == 0, loop.stdout + loop.stderr
    before = head(tmp_path)
    loader = commit("data.py")
    assert loader.returncode == 1, loader.stdout + loader.stderr
    assert "train.py:32:5: SMP102" in loader.stdout + loader.stderr
    assert head(tmp_path) == before
