"""The GitHub action: its own steps, run by the shell that GitHub runs them with; its syntax.

The other files that services read, and the snippets of the documentation, are held to the
services' published schemas as well.
"""

from __future__ import annotations

import json
import os
import re
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


# what services read, by their own schemas

GUIDE = (REPOSITORY / "docs/continuous-integration.md").read_text(encoding="utf-8")
SNIPPETS = {
    next(iter(yaml.safe_load(text))): text
    for text in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """What check-jsonschema, which brings the services' schemas, says of some files."""
    folder = tmp_path_factory.mktemp("schemas")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/pip", "install", "-q", "check-jsonschema"], check=True)

    def check(schema: str, *paths: Path) -> str:
        done = subprocess.run(
            [folder / "bin/check-jsonschema", "--builtin-schema", f"vendor.{schema}", *paths],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout + done.stderr
        return "" if done.returncode == 0 else done.stdout + done.stderr

    return check


@pytest.mark.network
def test_what_services_read_is_valid_by_their_schemas(complaints, tmp_path):
    assert complaints("github-actions", REPOSITORY / "action.yml") == ""
    workflows = sorted((REPOSITORY / ".github/workflows").glob("*.yml"))
    assert complaints("github-workflows", *workflows) == ""
    assert complaints("readthedocs", REPOSITORY / ".readthedocs.yaml") == ""
    # The schemas do refuse what is wrong.
    wrong = tmp_path / "action.yml"
    wrong.write_text((REPOSITORY / "action.yml").read_text().replace("shell: bash", "shel: bash"))
    assert "action.yml" in complaints("github-actions", wrong)


@pytest.mark.network
@pytest.mark.parametrize(
    ("snippet", "schema", "more"),
    [("jobs", "github-workflows", "on: pull_request\n"), ("sampler-lint", "gitlab-ci", "")],
)
def test_the_jobs_of_the_guide_are_valid_by_the_schemas(
    complaints, tmp_path, snippet, schema, more
):
    path = tmp_path / "job.yml"
    path.write_text(more + SNIPPETS[snippet])
    assert complaints(schema, path) == ""


def test_the_job_of_the_guide_uses_inputs_of_the_action():
    (job,) = yaml.safe_load(SNIPPETS["jobs"])["jobs"].values()
    (step,) = (step for step in job["steps"] if step["uses"].startswith("sampler-lint/"))
    assert step["with"].keys() <= ACTION["inputs"].keys()


def test_the_hooks_of_the_guide_are_offered():
    (repository,) = yaml.safe_load(SNIPPETS["repos"])["repos"]
    offered = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert {hook["id"] for hook in repository["hooks"]} <= {hook["id"] for hook in offered}
