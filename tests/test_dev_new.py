"""A new rule is begun by a command, and the suite says what it lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sampler_lint.dev import new

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture
def checkout(tmp_path):
    """As much of the repository as the command and the rules' own tests need."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("src", "tests"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=ignored)
    shutil.copytree(REPOSITORY / "fixtures/SMP402", tmp_path / "fixtures/SMP402", ignore=ignored)
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    return tmp_path


def python(checkout, *arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_suite_says_what_a_begun_rule_lacks(checkout):
    begun = python(checkout, "-m", "sampler_lint.dev", "new", "SMP999", "epoch-goes-backwards")
    assert begun.returncode == 0, begun.stderr
    written = [line.removeprefix("written: ") for line in begun.stdout.splitlines()[:4]]
    assert all((checkout / path).is_file() for path in written)
    listed = python(checkout, "-m", "sampler_lint", "rule", "SMP999")
    assert listed.stdout.startswith("# epoch-goes-backwards (SMP999)\n")
    tests = ("tests/test_fixture_tree.py", "tests/test_rules.py")
    run = python(
        checkout, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *tests, "-k", "SMP999"
    )
    assert run.returncode == 1
    for lack in (
        "the docstring of SMP999 lacks ['a summary of one sentence on one line', 'What it does'",
        "fixtures/SMP999 shows 1 style(s)",
        "SMP999 is silent",
    ):
        assert lack in run.stdout


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        ("smp999", "two-words", "is not a code"),
        ("SMP9", "two-words", "is not a code"),
        ("SMP999", "word", "is not a name"),
        ("SMP999", "Two-Words", "is not a name"),
        ("SMP402", "two-words", "smp402_remainder_of_quotient.py is there already"),
        ("SMP999", "remainder-of-quotient", "smp402_remainder_of_quotient.py is there already"),
    ],
)
def test_what_cannot_be_begun_writes_nothing(checkout, code, name, said):
    before = sorted(checkout.rglob("*"))
    with pytest.raises(new.NewRuleError, match=said):
        new.write(checkout, code, name)
    assert sorted(checkout.rglob("*")) == before


def test_fixtures_without_a_rule_are_not_overwritten(checkout):
    (checkout / "fixtures/SMP999").mkdir()
    with pytest.raises(new.NewRuleError, match="fixtures/SMP999 is there already"):
        new.write(checkout, "SMP999", "two-words")
