"""CI runs the commands of the README as they stand there, and nothing that fails is lost."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
DEMO, TESTS = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)

_ON_PATH = " (environment on PATH)"

#: Stands for ``python3`` and for all programs of the environments it makes: it tells what it is
#: called with, and whether an environment is on PATH; it fails where ``FAILING`` is in the call.
_PROGRAM = f"""\
#!/bin/sh
case $0 in *.venv/bin/*) me=.venv/bin/${{0##*/}} ;; *) me=${{0##*/}} ;; esac
if [ "$1 $2" = "-m venv" ]; then
  mkdir -p "$3/bin"
  for name in python python3 pip ruff mypy; do cp "$0" "$3/bin/$name"; done
fi
case :$PATH in *venv*|*beside*) on='{_ON_PATH}' ;; esac
echo "$me $*$on" | tee -a "$CALLS"
case "$*" in *pytest*) echo '1 passed in 1s' ;; esac
case "$me $*" in *"$FAILING"*) echo 'what went wrong'; exit 1 ;; esac
"""


@pytest.fixture
def ci(tmp_path, monkeypatch):
    """Run ``.ci/run`` with programs that only tell; what it said, its status and the calls."""
    clone, programs, calls = tmp_path / "clone", tmp_path / "programs", tmp_path / "calls"
    activated = tmp_path / "activated-venv"
    for folder in (clone, programs, activated / "bin"):
        folder.mkdir(parents=True)
    shutil.copytree(REPOSITORY / ".ci", clone / ".ci")
    shutil.copy(REPOSITORY / "README.md", clone)
    named = ("python3", "chromium", "mpirun", "srun")  # else the script fetches what is missing
    for path in (*(programs / name for name in named), activated / "bin" / "python3"):
        path.write_text(_PROGRAM)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{activated}/bin:{programs}:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.setenv("VIRTUAL_ENV", str(activated))

    def run(failing="nothing"):
        done = subprocess.run(
            ["bash", ".ci/run"],
            cwd=clone,
            env={**os.environ, "CI": "true", "CALLS": str(calls), "FAILING": failing},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout, done.returncode, calls.read_text().splitlines()

    return run


@pytest.mark.parametrize("command", [DEMO, TESTS])
def test_the_commands_of_the_readme_are_run_as_they_stand(ci, command):
    told, status, calls = ci()
    assert status == 0, told
    beside = (_ON_PATH, "/beside", "/mypy", "import torch")
    calls = [call for call in calls if not any(name in call for name in beside)]
    steps = [step.replace("'", "") for step in command.split(" && ")]
    assert any(calls[i : i + len(steps)] == steps for i in range(len(calls))), calls
    assert "1 passed in 1s" in told


@pytest.mark.parametrize(
    "failing",
    [
        "dev demo",
        ".venv/bin/python -m pytest",
        "ruff check",
        "mypy",
        "-e .[dev,docs,frameworks]",
        "-m network or slow",
        "-m frameworks",
        "measured.py report",
    ],
)
def test_what_fails_is_shown_and_fails_ci(ci, failing):
    told, status, _ = ci(failing)
    assert status != 0
    assert "what went wrong" in told
