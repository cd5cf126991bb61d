"""Likely findings, and how severe one is: what each front, format and option makes of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sampler_lint import engine
from sampler_lint.cache import Cache
from sampler_lint.cli import main
from sampler_lint.cli.completion import candidates
from sampler_lint.config import Lookup
from sampler_lint.explain import explain
from sampler_lint.findings import Applicability, Finding, Grade, Position, Severity
from sampler_lint.options import DEFAULTS, Options
from sampler_lint.reporters import FORMATS, Outcome, reporter
from sampler_lint.rules import every_rule

FIXTURES = Path(__file__).parent.parent / "fixtures"
CERTAIN = (FIXTURES / "SMP101/torch-batch-sampler/bad/train.py").read_text()
HEAD = "import torch\nfrom torch.utils.data import DataLoader, DistributedSampler\n"
UNSURE = f"""{HEAD}
sampler = DistributedSampler(data, **load())
loader = DataLoader(data, sampler=sampler)
for epoch in range(3):
    for batch in loader:
        model(batch).backward()
        optimizer.step()
"""
ROW = 6
WARNED = f"""{HEAD}
def main(args):
    torch.manual_seed(args.seed)
    return DataLoader(data, sampler=DistributedSampler(data))

main(parse())
"""
LIKELY = Options(likely=True)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a likely finding, which is also the working directory."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    (tmp_path / "unsure.py").write_text(UNSURE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert main(["--no-cache", *arguments]) == code
    return capsys.readouterr().out


def codes(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> list[str]:
    out = told(capsys, "--output-format", "json", *arguments, code=code)
    return [each["code"] for each in json.loads(out)]


# --- the command line


def test_likely_findings_are_counted_and_no_reason_to_fail(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = "All clear: 1 file checked; 1 finding only likely (--likely shows them).\n"
    assert told(capsys) == summary
    assert told(capsys, "-q") == ""
    assert told(capsys, "--likely").startswith(f"unsure.py:{ROW}:1: SMP102 (likely) nothing calls")
    (project / "train.py").write_text(CERTAIN)
    out = told(capsys, code=1)
    assert "Found 1 finding (1 fixable with --fix) in 2 files; 1 finding only likely" in out
    assert codes(capsys, "--likely", code=1) == ["SMP101", "SMP102"]


def test_naming_a_rule_is_not_asking_for_guesses(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for select in ("ALL", "SMP102"):
        assert codes(capsys, "--select", select) == []
        assert codes(capsys, "--select", select, "--likely") == ["SMP102"]


def test_the_configuration_may_ask_for_them(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert codes(capsys, "--config", "likely=true") == ["SMP102"]
    (project / "sampler-lint.toml").write_text("likely = true\n")
    assert codes(capsys) == ["SMP102"]
    assert codes(capsys, "--isolated") == []
    assert codes(capsys, "--config", "likely=false") == []
    shown = told(capsys, "--show-settings")
    assert "\nlikely = true\n" in shown
    assert '\n# min-severity = "warning"\n' in shown
    # Each file has its own configuration.
    (project / "sure").mkdir()
    (project / "sure/sampler-lint.toml").write_text("likely = false\n")
    (project / "sure/unsure.py").write_text(UNSURE)
    assert codes(capsys) == ["SMP102"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("likley = true", "has no key 'likley' (did you mean 'likely'?)"),
        ("likely = 'yes'", "likely must be true or false"),
        ("min-severty = 'error'", "has no key 'min-severty' (did you mean 'min-severity'?)"),
        ("min-severity = 'eror'", "must be one of error, warning (did you mean 'error'?)"),
    ],
)
def test_a_slip_in_the_configuration_is_told(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, complaint: str
) -> None:
    (project / "sampler-lint.toml").write_text(f"{text}\n")
    assert main([]) == 2
    assert complaint in capsys.readouterr().err


def test_shells_complete_the_options() -> None:
    assert candidates(["--lik"]) == ["--likely"]
    assert candidates(["--min-severity", ""]) == ["error", "warning"]


def test_the_least_severity(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "warned.py").write_text(WARNED)
    assert codes(capsys, code=1) == ["SMP201"]
    assert codes(capsys, "--min-severity", "error") == []
    assert codes(capsys, "--min-severity", "error", "--likely") == ["SMP102"]
    summary = told(capsys, "--min-severity", "error")
    assert "1 finding below the severity error" in summary
    assert "1 finding only likely" in summary
    (project / "sampler-lint.toml").write_text("min-severity = 'error'\n")
    assert codes(capsys) == []
    assert codes(capsys, "--min-severity", "warning", code=1) == ["SMP201"]


# --- fixes


def test_no_fix_is_made_of_a_guess(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = engine.check(["."], LIKELY).findings
    assert found.fix is not None
    assert found.fix.applicability is Applicability.UNSAFE
    assert found.fix.unsafe == "the finding is only likely"
    for arguments in (["--fix"], ["--fix", "--likely"], ["--fix", "--unsafe-fixes"]):
        told(capsys, *arguments)
        assert (project / "unsure.py").read_text() == UNSURE
    assert "(unsafe (the finding is only likely): use --unsafe-fixes)" in told(
        capsys, "--fix", "--likely"
    )
    told(capsys, "--fix", "--likely", "--unsafe-fixes")
    assert "    sampler.set_epoch(epoch)\n" in (project / "unsure.py").read_text()


# --- what is put up with


def marked(comment: str) -> str:
    lines = UNSURE.splitlines()
    lines[ROW - 1] += f"  # {comment}"
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("comment", ["noqa: SMP102", "sampler-lint: ignore"])
def test_a_comment_that_silences_a_likely_finding_is_in_use(
    project: Path, capsys: pytest.CaptureFixture[str], comment: str
) -> None:
    (project / "unsure.py").write_text(marked(comment))
    assert told(capsys) == "All clear: 1 file checked.\n"
    assert codes(capsys, "--likely") == []
    assert "SMP102 (likely) (suppressed)" in told(capsys, "--likely", "--show-suppressed")
    assert "SMP102" not in told(capsys, "--show-suppressed")


def test_comments_are_added_for_what_is_told(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, "--add-noqa") == "Suppressed 0 of 0 findings in 0 files.\n"
    assert told(capsys, "--add-noqa", "--likely") == "Suppressed 1 of 1 findings in 1 file.\n"
    assert codes(capsys, "--likely") == []


def test_a_baseline_lists_what_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "--write-baseline", "known.json")
    assert codes(capsys, "--baseline", "known.json", "--likely") == ["SMP102"]
    told(capsys, "--likely", "--write-baseline", "known.json")
    assert codes(capsys, "--baseline", "known.json", "--likely") == []
    assert main(["--no-cache", "--baseline", "known.json"]) == 0
    assert capsys.readouterr().err == ""  # not told is not gone


# --- the cache


def test_one_record_serves_all_who_ask(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(str(tmp_path_factory.mktemp("cache")))
    choices = [DEFAULTS, LIKELY, Options(min_severity=Severity.ERROR)]
    plain = [engine.check(["."], options).findings for options in choices]
    assert [len(each) for each in plain] == [0, 1, 0]
    engine.check(["."], cache=cache)

    def never(*_: object) -> None:
        raise AssertionError("examined again")

    monkeypatch.setattr(engine._Examination, "_made", never)
    assert [engine.check(["."], each, cache=cache).findings for each in choices] == plain
    assert engine.check(["."], LIKELY, session=engine.Session()).findings


# --- formats

WORDS = {
    "error": ("error", "error", "major", "error", "ERROR", "failure"),
    "warning": ("warning", "warning", "minor", "warning", "WARNING", "failure"),
    "note": ("note", "notice", "info", "warning", "INFO", "skipped"),
}


@pytest.mark.parametrize(
    ("grade", "severity", "level"),
    [
        (Grade.CERTAIN, Severity.ERROR, "error"),
        (Grade.CERTAIN, Severity.WARNING, "warning"),
        (Grade.LIKELY, Severity.ERROR, "note"),
        (Grade.LIKELY, Severity.WARNING, "note"),
    ],
)
def test_each_format_has_its_words(grade: Grade, severity: Severity, level: str) -> None:
    place = Position(1, 1), Position(1, 2)
    finding = Finding("SMP101", "It is", "a.py", *place, grade=grade, severity=severity)
    text = {form: reporter(form)(Outcome([finding], files=1)) for form in FORMATS}
    (result,) = json.loads(text["sarif"])["runs"][0]["results"]
    (issue,) = json.loads(text["gitlab"])
    (diagnostic,) = json.loads(text["rdjson"])["diagnostics"]
    suite = ElementTree.fromstring(text["junit"])[0]
    azure = re.search(r"type=(\w+)", text["azure"])
    assert azure is not None
    assert (
        result["level"],
        text["github"].split()[0].strip(":"),
        issue["severity"],
        azure[1],
        diagnostic["severity"],
        suite[0][0].tag,
    ) == WORDS[level]
    both = {"grade": grade.value, "severity": severity.value}
    assert result["properties"] == both
    (record,) = json.loads(text["json"])
    assert {name: record[name] for name in both} == both
    assert suite.get("failures") == ("0" if level == "note" else "1")
    assert suite.get("skipped") == ("1" if level == "note" else "0")
    label = "SMP101 (likely)" if level == "note" else "SMP101"
    for form in ("text", "concise", "grouped", "github", "azure", "gitlab", "junit"):
        assert f"{label}: It is" in text[form] or f"{label} It is" in text[form], form


def test_a_likely_finding_moves_no_fingerprint() -> None:
    from sampler_lint.fingerprints import fingerprints

    place = Position(1, 1), Position(1, 2)
    sure = Finding("SMP101", "It is", "a.py", *place)
    guess = Finding("SMP101", "It is", "a.py", *place, grade=Grade.LIKELY)
    alone = fingerprints([sure], lambda path: None)
    assert fingerprints([guess, sure], lambda path: None)[1:] == alone
    assert len({*fingerprints([guess, sure], lambda path: None)}) == 2


# --- other fronts


def test_explain_says_so(project: Path) -> None:
    assert any(
        line.lstrip().startswith("SMP102 (likely) reported:") for line in explain("unsure.py", ROW)
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["SMP201"]),
        (["--sampler-lint-likely"], ["SMP102 (likely)", "SMP201"]),
        (["--sampler-lint-min-severity", "error"], []),
    ],
)
def test_flake8(project: Path, arguments: list[str], expected: list[str]) -> None:
    pytest.importorskip("flake8")
    (project / "warned.py").write_text(WARNED)
    command = [sys.executable, "-m", "flake8", "--select", "SMP", "."]
    by_option = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    found = re.findall(r": (SMP\d+(?: \(likely\))?) ", by_option.stdout)
    assert (sorted(found), by_option.stderr) == (expected, "")
    if arguments:
        key, value = arguments[0].strip("-"), [*arguments, "true"][1]
        (project / ".flake8").write_text(f"[flake8]\n{key} = {value}\n")
        by_file = subprocess.run(command, capture_output=True, text=True, check=False)
        assert by_file.stdout == by_option.stdout


def test_flake8_refuses_what_is_no_severity(project: Path) -> None:
    pytest.importorskip("flake8")
    command = [sys.executable, "-m", "flake8", "--sampler-lint-min-severity=high", "."]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "sampler-lint-min-severity must be one of error, warning" in run.stdout + run.stderr


@pytest.mark.parametrize(
    ("grade", "severity", "shown"),
    [
        (Grade.CERTAIN, Severity.ERROR, "Error"),
        (Grade.CERTAIN, Severity.WARNING, "Warning"),
        (Grade.LIKELY, Severity.ERROR, "Hint"),
    ],
)
def test_an_editor_shows_them_apart(grade: Grade, severity: Severity, shown: str) -> None:
    pytest.importorskip("pygls", reason="the extra `server` is not installed")
    from lsprotocol import types

    from sampler_lint.language_server import convert
    from sampler_lint.source import SourceFile

    place = Position(1, 1), Position(1, 2)
    finding = Finding("SMP101", "It is", "a.py", *place, grade=grade, severity=severity)
    made = convert.diagnostic(finding, SourceFile("a.py", b"x = 1\n"), lambda path: None, len)
    assert made.severity is types.DiagnosticSeverity[shown]


def test_an_editor_asks_by_the_configuration(project: Path) -> None:
    pytest.importorskip("pygls", reason="the extra `server` is not installed")
    from sampler_lint.language_server.server import Server

    assert Server(Lookup)._check([str(project / "unsure.py")], {}) == []
    (project / "sampler-lint.toml").write_text("likely = true\n")
    (found,) = Server(Lookup)._check([str(project / "unsure.py")], {})
    assert found.grade is Grade.LIKELY


# --- severities


def test_seeds_and_lengths_are_warnings() -> None:
    warned = {rule.code for rule in every_rule() if rule.severity is Severity.WARNING}
    assert warned == {"SMP001", "SMP201", "SMP203", "SMP304", "SMP504", "SMP505"}


def test_what_only_a_choice_brings_up_is_a_warning(project: Path) -> None:
    chosen = UNSURE.replace("**load()", "shuffle=args.shuffle")
    (project / "unsure.py").write_text(f"import argparse\nargs = parse()\n{chosen}")
    (found,) = engine.check(["."], Options(select=("SMP102",))).findings
    assert found.severity is Severity.WARNING
