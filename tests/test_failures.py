"""A rule that fails is reported, and costs its own findings only."""

from __future__ import annotations

import shutil

import pytest

from cases import FIXTURES
from sampler_lint import engine
from sampler_lint.cli import main
from sampler_lint.engine import Options
from sampler_lint.rules import every_rule

RULES = {rule.code: rule for rule in every_rule()}


@pytest.fixture
def project(tmp_path, monkeypatch):
    shutil.copy(FIXTURES / "SMP101/torch-batch-sampler/bad/train.py", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "other.py").write_text(
        "from torch.utils.data import DataLoader\nloader = DataLoader(d, sampler=s, shuffle=True)\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def broken(monkeypatch):
    """SMP501 fails as soon as it looks at a loader."""

    def check(self, model):
        for loader in model.loaders:
            raise KeyError(f"no such thing as {loader.name}\nor two")
        yield from ()

    monkeypatch.setattr(type(RULES["SMP501"]), "check", check)


def test_the_rest_goes_on(project, broken, capsys):
    assert main(["--no-cache"]) == 2
    told = capsys.readouterr()
    assert "train.py:39:13: SMP101" in told.out
    errors = sorted(told.err.splitlines())
    assert len(errors) == 2
    assert errors[0].startswith("error: other.py:2: SMP000 the rule SMP501 failed here")
    assert errors[1].startswith("error: train.py:")
    for error in errors:
        assert "(KeyError: 'no such thing as DataLoader" in error
        assert "at test_failures.py:" in error


def test_a_failure_costs_one_place(project, monkeypatch, capsys):
    """Whatever the rule looked at stands beside others in its file and in other files."""
    (project / "many.py").write_text(
        "from torch.utils.data import DataLoader\n"
        "class Trainer:\n"
        "    def first(self, d, s):\n"
        "        return DataLoader(d, sampler=s, shuffle=True)\n"
        "    def second(self, d, s):\n"
        "        return DataLoader(d, sampler=s, shuffle=True)\n"
        "one = DataLoader(d, sampler=s, shuffle=True)\n"
        "two = DataLoader(d, sampler=s, shuffle=True)\n"
        "trainer = Trainer()\n"
    )
    from sampler_lint.rules import smp501_loader_argument_conflict as rule

    judge = rule._check
    for row in (4, 7):

        def fails(model, module, call, given, pair, row=row):
            if module.display == "many.py" and call.row == row:
                raise RecursionError("too deep")
            return judge(model, module, call, given, pair)

        monkeypatch.setattr(rule, "_check", fails)
        assert main(["--no-cache", "--select", "SMP501", "--output-format", "concise"]) == 2
        told = capsys.readouterr()
        (error,) = told.err.splitlines()
        assert error.startswith(f"error: many.py:{row}: SMP000 the rule SMP501 failed here")
        rows = [line.split(":")[:2] for line in told.out.splitlines() if "SMP501" in line]
        assert rows == [
            *(["many.py", str(other)] for other in (4, 6, 7, 8) if other != row),
            ["other.py", "2"],
        ]


def test_a_rule_that_fails_everywhere_ends(project, monkeypatch, capsys):
    def check(self, model):
        raise ValueError
        yield

    monkeypatch.setattr(type(RULES["SMP501"]), "check", check)
    assert main(["--no-cache"]) == 2
    told = capsys.readouterr()
    assert "train.py:39:13: SMP101" in told.out
    assert len(told.err.splitlines()) == 1


def test_what_several_rules_share_is_told_once(project, monkeypatch, capsys):
    def check(self, model):
        for loader in model.loaders:
            raise KeyError(loader.name)
        yield from ()

    for code in ("SMP501", "SMP502", "SMP103"):
        monkeypatch.setattr(type(RULES[code]), "check", check)
    assert main(["--no-cache"]) == 2
    errors = sorted(capsys.readouterr().err.splitlines())
    assert [error.split(":")[1] for error in errors] == [" other.py", " train.py"]
    for error in errors:
        assert "SMP000 the rules SMP103, SMP501, SMP502 failed here, so their findings" in error


def test_a_model_that_cannot_be_linked_is_told(project, monkeypatch, capsys):
    from sampler_lint.domain.model import Model

    def fails(self, *_):
        raise RecursionError

    monkeypatch.setattr(Model, "__init__", fails)
    assert main(["--no-cache", "--select", "SMP1,SMP5"]) == 2
    assert "RecursionError" in capsys.readouterr().err


def test_the_traceback_is_shown_when_asked_for(project, broken, capsys):
    assert main(["--no-cache", "--show-traceback"]) == 2
    assert "Traceback (most recent call last):" in capsys.readouterr().err


def test_it_is_told_again_though_findings_are_kept(project, broken, tmp_path, capsys):
    for _ in range(2):
        assert main(["--cache-dir", str(tmp_path / "cache")]) == 2
        assert "SMP000" in capsys.readouterr().err


def test_fixing_goes_on_as_well(project, broken):
    assert main(["--fix"]) == 2
    fixed = (FIXTURES / "SMP101/torch-batch-sampler/fixed/train.py").read_bytes()
    assert (project / "train.py").read_bytes() == fixed


def test_a_fix_that_cannot_be_made_is_a_failure_of_its_rule(project, monkeypatch):
    from sampler_lint.rules import _base

    honest = type(RULES["SMP101"]).check

    def check(self, model):
        for suspect in honest(self, model):

            def fix(editor):
                raise RecursionError

            yield _base.Suspect(suspect.module, suspect.start, suspect.message, fix=fix)

    monkeypatch.setattr(type(RULES["SMP101"]), "check", check)
    report = engine.check(["."], Options(select=("SMP1", "SMP5")))
    assert [(f.code, f.fix is None) for f in report.findings] == [
        ("SMP501", False),
        ("SMP101", True),
    ]
    (error,) = report.errors
    assert "RecursionError" in error.reason


def test_a_rule_about_comments_that_fails_names_the_file(project, monkeypatch, capsys):
    (project / "other.py").write_text("x = 1  # noqa: SMP101\n")

    def check(self, file):
        raise ZeroDivisionError(len(file.silenced))
        yield

    monkeypatch.setattr(type(RULES["SMP001"]), "check", check)
    assert main(["--no-cache", "--select", "ALL"]) == 2
    told = capsys.readouterr()
    assert "train.py:39:13: SMP101" in told.out
    (error,) = told.err.splitlines()
    assert error.startswith("error: other.py: SMP000 the rule SMP001 failed here")
