"""Every fixture's fix is proved; and what is no proof is not called one."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sampler_lint.dev import docs, pictures
from sampler_lint.harness import verify
from sampler_lint.harness.diagnosis import diagnose
from sampler_lint.harness.invariants import Verdict
from sampler_lint.harness.verify import Proof
from sampler_lint.rules import all_rules

REPOSITORY = Path(__file__).parent.parent
FIXTURES = REPOSITORY / "fixtures"
ALL = verify.find_fixtures([FIXTURES])
PICTURED = docs.pictured(REPOSITORY)
CASE = FIXTURES / "SMP102" / "plain-script"


# `python -m sampler_lint.dev demo`, with which CI begins, proves all fixtures.
@pytest.mark.parametrize("fixture", PICTURED[::3], ids=lambda fixture: fixture.name)
def test_fixture_is_proved_and_its_picture_is_current(fixture, gloo_session):
    programs = verify.run_fixture(fixture, gloo_session)
    proof = verify.judged(fixture, programs)
    assert proof.proved, verify.render_table([proof])
    # The last program is the right twin: `trace` finds nothing in it either.
    assert fixture.has_twin
    assert [diagnose(run) for run in programs[-1]] == [[]] * len(fixture.invariant.runs)
    stored = REPOSITORY / pictures.path_of(fixture.code)
    drawn = pictures.draw(fixture, programs)
    assert stored.read_text("utf-8") == drawn, "run python -m sampler_lint.dev docs"


def test_every_fixture_is_found_and_every_rule_has_some():
    assert {fixture.folder for fixture in ALL} == {
        script.parent.parent for script in FIXTURES.glob("SMP*/*/bad/train.py")
    }
    assert {fixture.code for fixture in ALL} == {rule.code for rule in all_rules()}


@pytest.fixture
def spoiled(tmp_path: Path) -> Path:
    """A copy of a fixture that may be spoiled."""
    folder = tmp_path / "SMP102" / "plain-script"
    shutil.copytree(CASE, folder)
    return folder


def prove(spoiled, world) -> Proof:
    return verify.verify_fixtures([spoiled], world=world)[0]


def test_program_without_the_bug_proves_nothing(spoiled, gloo_session):
    shutil.copytree(spoiled / "fixed", spoiled / "bad", dirs_exist_ok=True)
    proof = prove(spoiled, gloo_session)
    assert proof.before.holds
    assert proof.after.holds
    assert not proof.proved
    assert "NOT PROVED" in verify.render_table([proof])


def test_crash_is_no_witness(spoiled, gloo_session):
    (spoiled / "bad" / "train.py").write_text("import sys\nsys.exit('no')\n")
    proof = prove(spoiled, gloo_session)
    assert not proof.before.holds
    assert not proof.before.broken  # it crashed: that says nothing about the order
    assert not proof.proved
    assert "before: unknown" in verify.render_table([proof])


def test_twin_that_has_the_bug_spoils_the_proof(spoiled, gloo_session):
    shutil.copytree(spoiled / "bad", spoiled / "good", dirs_exist_ok=True)
    proof = prove(spoiled, gloo_session)
    assert proof.before.broken
    assert proof.after.holds
    assert not proof.proved
    assert "right twin: broken" in verify.render_table([proof])


def test_twin_that_is_the_fixed_program_is_not_run_again(spoiled, gloo_session, monkeypatch):
    ran = []
    run = verify._run

    def counted(world, program, *more):
        ran.append(program.name)
        return run(world, program, *more)

    monkeypatch.setattr(verify, "_run", counted)
    shutil.rmtree(spoiled / "good")
    shutil.copytree(spoiled / "fixed", spoiled / "good")
    proof = prove(spoiled, gloo_session)
    assert ran == ["before", "after"]
    assert proof.twin == proof.after
    assert proof.proved


def test_settings_reach_the_run(spoiled, gloo_session):
    (spoiled / "proof.toml").write_text('invariant = "partitions"\nworld_size = 3\n')
    proof = prove(spoiled, gloo_session)
    assert proof.invariant == "partitions"
    assert "the 3 ranks shared out" in proof.before.evidence


def test_fixture_itself_is_left_alone(spoiled, gloo_session):
    def tree() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in spoiled.rglob("*") if path.is_file()}

    before = tree()
    prove(spoiled, gloo_session)
    assert tree() == before


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('invariant = "sorts"', "unknown invariant 'sorts'"),
        ("world_size = true", "world_size cannot be True"),
        ("args = [1]", "args is a list of strings"),
        ("ranks = 2", "unknown key 'ranks'"),
        ("ranks", "proof.toml"),
    ],
)
def test_wrong_settings(spoiled, settings, words):
    (spoiled / "proof.toml").write_text(settings)
    with pytest.raises(verify.FixtureError, match=words):
        verify.find_fixtures([spoiled])


def test_folders_that_hold_no_fixture(tmp_path, spoiled):
    with pytest.raises(verify.FixtureError, match="no such folder"):
        verify.find_fixtures([tmp_path / "nothing"])
    with pytest.raises(verify.FixtureError, match="no fixtures here"):
        verify.find_fixtures([spoiled / "bad"])
    shutil.copytree(spoiled, tmp_path / "SMP999" / "case")
    with pytest.raises(verify.FixtureError, match="there is no rule SMP999"):
        verify.find_fixtures([tmp_path])
    shutil.copytree(spoiled, tmp_path / "cases" / "one")
    with pytest.raises(verify.FixtureError, match="named after a code"):
        verify.find_fixtures([tmp_path / "cases"])
    (spoiled / "bad" / "train.py").unlink()
    with pytest.raises(verify.FixtureError, match=r"bad/train\.py is missing"):
        verify.find_fixtures([spoiled])


def test_verify_fixtures_in_parallel_and_as_json(tmp_path):
    cases = ["SMP305/none-tabs", "SMP102/plain-script"]
    for name in cases:
        shutil.copytree(FIXTURES / name, tmp_path / name)
    proofs = verify.verify_fixtures([tmp_path], jobs=2)
    assert [proof.fixture for proof in proofs] == sorted(cases)
    assert all(proof.proved for proof in proofs)
    assert "2 of 2 fixtures proved." in verify.render_table(proofs)
    rows = json.loads(verify.to_json(proofs))
    assert [list(row) for row in rows] == [
        ["fixture", "code", "invariant", "before", "after", "proved"]
    ] * 2
    assert rows[0]["before"] == {"holds": False, "evidence": proofs[0].before.evidence}
    assert rows[0]["proved"] is True


def test_proof_without_conclusive_break_is_none():
    unseen, kept = Verdict(False, "", conclusive=False), Verdict(True, "")
    assert not Proof("SMP101/x", "SMP101", "runs", unseen, kept).proved
    assert Proof("SMP101/x", "SMP101", "runs", Verdict(False, ""), kept).proved
    assert Proof("SMP101/x", "SMP101", "runs", Verdict(False, ""), kept, unseen).proved


def test_linter_imports_no_torch():
    check = (
        "import sys, sampler_lint.harness.verify, sampler_lint.pytest_plugin;"
        "sys.exit(bool({'torch', 'libcst'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", check], timeout=60, check=False).returncode == 0


def test_missing_torch(spoiled, tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", os.fspath(python))
    with pytest.raises(verify.HarnessError, match=r"pip install 'sampler-lint\[verify\]'"):
        verify.verify_fixtures([spoiled])
