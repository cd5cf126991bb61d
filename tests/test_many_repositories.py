"""The recipe of docs/many-repositories.md, run by the real all-repos on local repositories."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.network

REPOSITORY = Path(__file__).parent.parent
FIXTURE = REPOSITORY / "fixtures/SMP101/torch-batch-sampler"
BAD = (FIXTURE / "bad" / "train.py").read_bytes()
FIXED = (FIXTURE / "fixed" / "train.py").read_bytes()


def git(*arguments: str | Path, cwd: Path) -> bytes:
    return subprocess.run(
        ["git", *arguments], cwd=cwd, check=True, capture_output=True, timeout=60
    ).stdout


@pytest.fixture
def all_repos(tmp_path, monkeypatch) -> Path:
    """all-repos in an environment of its own, in which ``sampler-lint`` is this tree."""
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=True)
    binaries = environment / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([binaries / "pip", "install", "-q", "all-repos"], check=True, timeout=300)
    command = binaries / "sampler-lint"
    command.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path[:0] = [{str(REPOSITORY / 'src')!r}]\n"
        "from sampler_lint.cli import run\nsys.exit(run())\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{binaries}{os.pathsep}{os.environ['PATH']}")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "t")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@example.org")
    return binaries


@pytest.fixture
def remotes(tmp_path) -> dict[str, Path]:
    """What would be at a forge: a repository with the bug, one without, one about other things."""
    found = {}
    for name, data in (("bad", BAD), ("good", FIXED), ("other", b"x = 1\n")):
        work, bare = tmp_path / f"{name}-work", tmp_path / f"{name}.git"
        git("init", "-q", "-b", "main", work, cwd=tmp_path)
        (work / "train.py").write_bytes(data)
        git("add", ".", cwd=work)
        git("commit", "-qm", "begin", cwd=work)
        git("clone", "-q", "--bare", work, bare, cwd=tmp_path)
        found[name] = bare
    return found


@pytest.mark.skipif(os.name == "nt", reason="the command is a script")
def test_all_repos_fixes_what_has_the_bug(all_repos, remotes, tmp_path):
    page = (REPOSITORY / "docs" / "many-repositories.md").read_text(encoding="utf-8")
    script = tmp_path / "sampler_lint_autofix.py"
    script.write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    config = tmp_path / "all-repos.json"
    listing = tmp_path / "listing.json"
    listing.write_text(json.dumps({name: str(bare) for name, bare in remotes.items()}))
    config.write_text(
        json.dumps(
            {
                "output_dir": "clones",
                "source": "all_repos.source.json_file",
                "source_settings": {"filename": str(listing)},
                "push": "all_repos.push.merge_to_master",
                "push_settings": {"fast_forward": True},
            }
        )
    )
    config.chmod(0o600)
    subprocess.run([all_repos / "all-repos-clone"], cwd=tmp_path, check=True, timeout=120)
    before = {name: git("rev-parse", "main", cwd=bare) for name, bare in remotes.items()}

    run = [all_repos / "python", script]
    subprocess.run([*run, "--dry-run"], cwd=tmp_path, check=True, timeout=120)
    assert {name: git("rev-parse", "main", cwd=bare) for name, bare in remotes.items()} == before
    done = subprocess.run(run, cwd=tmp_path, check=True, timeout=120, capture_output=True)
    assert b"Errored" not in done.stdout
    after = {name: git("rev-parse", "main", cwd=bare) for name, bare in remotes.items()}
    assert {name for name in remotes if after[name] != before[name]} == {"bad"}
    assert git("show", "main:train.py", cwd=remotes["bad"]) == FIXED
    assert git("log", "--format=%s", "main", cwd=remotes["bad"]).splitlines() == [
        b"Fix data samplers (sampler-lint)",
        b"begin",
    ]
