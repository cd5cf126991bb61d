"""The GitHub action's own steps, run by the shell that GitHub runs them with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cases import FIXTURES

REPOSITORY = Path(__file__).parent.parent
ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs bash")


@pytest.fixture
def job(tmp_path):
    """Run the step that checks, in a job with a bad program in `a file.py`."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "pyproject.toml").touch()
    shutil.copy(FIXTURES / "SMP101/torch-batch-sampler/bad/train.py", work / "a file.py")
    command = tmp_path / "sampler-lint/bin/sampler-lint"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sampler_lint "$@"\n')
    command.chmod(0o755)

    def check(**inputs: str) -> tuple[str, str, Path]:
        output = tmp_path / "output"
        output.write_text("")
        step = STEPS["Check"]
        values = {name: given["default"] for name, given in ACTION["inputs"].items()} | inputs
        environment = {
            name: values[text.removeprefix("${{ inputs.").removesuffix(" }}")]
            for name, text in step["env"].items()
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=work,
            env={
                **os.environ,
                **environment,
                "RUNNER_TEMP": str(tmp_path),
                "GITHUB_OUTPUT": str(output),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, output.read_text(), work / values["sarif-file"]

    return check


def test_findings_are_annotated_and_uploaded(job):
    shown, output, sarif = job()
    assert shown.startswith("::error title=sampler-lint (SMP101),file=")
    assert output == "exit-code=1\n"
    (run,) = json.loads(sarif.read_text())["runs"]
    assert [each["ruleId"] for each in run["results"]] == ["SMP101"]


def test_options_and_paths_are_one_a_line_and_never_shell(job):
    shown, output, _ = job(paths="a file.py\n", args="--select=SMP2\n\n--isolated")
    assert (shown, output) == ("", "exit-code=0\n")
    shown, output, sarif = job(paths="$(touch pwned)")
    assert output == "exit-code=2\n"
    assert not (sarif.parent / "pwned").exists()


def test_no_script_pastes_an_input():
    assert not [name for name, step in STEPS.items() if "${{" in step.get("run", "")]
