"""Every rule on every fixture: what it says, where, what its fix writes, and through which front.

``pytest tests/test_rules.py --update-expected`` writes down what the rules say now.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from cases import (
    EVERY_RULE,
    Case,
    Files,
    all_cases,
    announced,
    applicability,
    check,
    fix,
    read_tree,
    render,
    told_and_fixed,
    working_in,
    write_tree,
)
from sampler_lint import engine
from sampler_lint.engine import FixReport, Options, Report
from sampler_lint.findings import Edit, Finding
from sampler_lint.rules import all_rules
from sampler_lint.source import SourceFile
from variants import (
    with_aliases,
    with_bom,
    with_comment,
    with_other_newlines,
    with_tabs,
)

RULES = {rule.code: rule for rule in all_rules()}

#: Real code with findings: composer as PyPI has it.
WHEEL = "mosaicml==0.20.1"


def each(data: Callable[[bytes], bytes], files: Files) -> Files:
    return {name: data(content) for name, content in files.items()}


def kinds(findings: list[Finding]) -> list[tuple[str, int, str]]:
    """What stays of findings when columns and names change."""
    return sorted((found.path, found.start.row, found.code) for found in findings)


def assert_fixed(tree: Path, result: FixReport) -> None:
    """Everything compiles, and nothing is found any more."""
    for name, data in read_tree(tree).items():
        with warnings.catch_warnings():
            warnings.simplefilter("error", SyntaxWarning)
            compile(data, name, "exec", dont_inherit=True)
    assert result.report.findings == []


# what is found


def test_findings_are_the_expected_ones(case: Case, bad: Path, request) -> None:
    report = check(bad)
    found = render(report.findings)
    if request.config.getoption("--update-expected"):
        case.expected.write_bytes(found.encode())
    assert found == case.expected.read_bytes().decode()
    assert case.code in {finding.code for finding in report.findings}, f"{case.code} is silent"
    assert report.suppressed == []


def test_what_is_announced_can_be_done(bad: Path) -> None:
    with working_in(bad):
        quick = engine.check(["."], EVERY_RULE, edits=False)
    assert quick.findings == announced(check(bad).findings)


def test_findings_have_a_place_in_their_file(bad: Path) -> None:
    for found in check(bad).findings:
        source = SourceFile.read(str(bad / found.path))
        assert found.start < found.end
        for place in (found.start, found.end):
            line = source.line(place.row).rstrip("\r\n")
            assert 1 <= place.column <= len(line) + 1
        start = source.line(found.start.row)[found.start.column - 1 :]
        assert start == start.lstrip()


def test_reasons_lead_to_lines_of_the_tree(bad: Path) -> None:
    for found in check(bad).findings:
        assert len(found.places) == len(found.why)
        for path, start, _ in found.places:
            line = SourceFile.read(str(bad / path)).line(start.row)
            assert line[start.column - 1 :].strip()
            assert line[start.column - 1 :] == line[start.column - 1 :].lstrip()


def test_messages_are_one_plain_sentence(bad: Path) -> None:
    for found in check(bad).findings:
        assert len(found.message) <= 160
        texts = [found.message, *map(str, found.why), *([found.fix.message] if found.fix else [])]
        texts += filter(None, (found.effect, found.advice))
        for text in texts:
            assert text == text.strip()
            assert "\n" not in text
            assert not text.endswith(".")
            assert text.count("`") % 2 == 0


@pytest.mark.parametrize("part", ["good", "fixed"])
def test_right_programs_are_left_alone(case: Case, part: str, tmp_path: Path) -> None:
    files = case.files(part)
    if not files:
        assert part == "fixed", "each fixture has a good twin"
        pytest.skip("this rule's finding comes without a fix here")
    tree = write_tree(tmp_path / part, files)
    told, result = told_and_fixed(tree)
    assert render(told.findings) == ""
    assert result.changed == {}
    assert read_tree(tree) == files


# what is fixed


def test_fix_gives_the_fixed_program(case: Case, bad: Path, request) -> None:
    checked = check(bad)
    told, result = told_and_fixed(bad)
    assert (told.findings, told.suppressed) == (checked.findings, checked.suppressed)
    fixed = read_tree(bad)
    if fixed == case.files("bad"):
        assert not (case.folder / "fixed").exists()
        assert all(applicability(f) in {"display-only", "no-fix"} for f, _ in result.left)
        return
    if request.config.getoption("--update-expected") and fixed != case.files("fixed"):
        shutil.rmtree(case.folder / "fixed", ignore_errors=True)
        write_tree(case.folder / "fixed", fixed)
        (case.folder / "fixed" / "pyproject.toml").unlink()
    assert fixed == case.files("fixed")
    assert result.left == []
    assert_fixed(bad, result)


def test_safe_run_applies_the_safe_fixes_only(bad: Path) -> None:
    before = read_tree(bad)
    found = check(bad).findings
    safe = [finding for finding in found if applicability(finding) == "safe"]
    result = fix(bad, unsafe=False)
    assert kinds(result.fixed) == kinds(safe)
    left = Counter(f.code for f, _ in result.left)
    # One safe fix may cure what another finding says, too; nothing is left untold.
    assert left == Counter(finding.code for finding in check(bad).findings)
    assert left <= Counter(finding.code for finding in found if finding not in safe)
    touched = {edit.path for finding in safe if finding.fix for edit in finding.fix.edits}
    after = read_tree(bad)
    assert {name for name in before if before[name] != after[name]} == touched


@pytest.mark.spelling
def test_bytes_outside_the_edits_stay(case: Case, bad: Path) -> None:
    before = read_tree(bad)
    edits: dict[str, list[Edit]] = {name: [] for name in before}
    found = check(bad).findings
    if {finding.code for finding in told_and_fixed(bad)[1].fixed} - {f.code for f in found}:
        pytest.skip("a fix uncovers what the next round fixes, where these edits are made already")
    for finding in found:
        for edit in finding.fix.edits if finding.fix else ():
            edits[edit.path].append(edit)
    # What a fix writes: `test_fix_gives_the_fixed_program`.
    for name, data in (case.files("fixed") or before).items():
        for kept in _kept(SourceFile(name, before[name]), edits[name]):
            at = data.find(kept)
            assert at >= 0, kept
            data = data[at + len(kept) :]
        assert edits[name] or data == b""


def _kept(source: SourceFile, edits: list[Edit]) -> list[bytes]:
    """The file's bytes between the edits."""
    pieces, last = [], 0
    for edit in sorted(edits):
        pieces.append(source.text[last : edit.start])
        last = max(last, edit.end)
    pieces.append(source.text[last:])
    return [piece.encode(source.encoding) for piece in pieces]


def test_rule_is_as_fixable_as_it_says(case: Case, bad: Path) -> None:
    declared = RULES[case.code].fixable
    allowed = {"always": {True}, "never": {False}, "sometimes": {True, False}}[declared]
    own = [finding for finding in check(bad).findings if finding.code == case.code]
    assert {finding.fix is not None for finding in own} <= allowed


# the same program, written differently


@pytest.mark.spelling
@pytest.mark.parametrize("variant", [with_other_newlines, with_bom])
def test_bytes_that_mean_nothing_change_nothing(
    case: Case, variant: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    tree = write_tree(tmp_path / "bad", each(variant, case.files("bad")))
    told, _ = told_and_fixed(tree)
    assert render(told.findings) == case.expected.read_text(encoding="utf-8")
    wanted = case.files("fixed") or case.files("bad")
    assert read_tree(tree) == each(variant, wanted)


@pytest.mark.spelling
def test_tabs_for_indentation(case: Case, tmp_path: Path) -> None:
    files = case.files("bad")
    if each(with_tabs, files) == files:
        pytest.skip("has tabs already")
    plain = check(write_tree(tmp_path / "plain", files)).findings
    tree = write_tree(tmp_path / "bad", each(with_tabs, files))
    told, result = told_and_fixed(tree)
    found = told.findings
    assert kinds(found) == kinds(plain)
    assert [f.message for f in found] == [f.message for f in plain]
    assert [applicability(f) for f in found] == [applicability(f) for f in plain]
    if wanted := case.files("fixed"):
        assert_fixed(tree, result)
        assert {n: ast.dump(ast.parse(d)) for n, d in read_tree(tree).items()} == {
            n: ast.dump(ast.parse(d)) for n, d in each(with_tabs, wanted).items()
        }


@pytest.mark.spelling
def test_aliased_imports(case: Case, tmp_path: Path) -> None:
    files = case.files("bad")
    plain = check(write_tree(tmp_path / "plain", files)).findings
    renamed = each(with_aliases, files)
    if renamed == files:
        pytest.skip("imports nothing by name from torch.utils.data")
    tree = write_tree(tmp_path / "bad", renamed)
    told, result = told_and_fixed(tree)
    found = told.findings
    assert kinds(found) == kinds(plain)
    assert [applicability(f) for f in found] == [applicability(f) for f in plain]
    if case.files("fixed"):
        assert_fixed(tree, result)


# suppressions


def _commented(case: Case, comment: str, tmp_path: Path) -> tuple[Path, Report]:
    """The bad program with the comment on each finding's first line, and the plain report.

    ``{code}`` in the comment stands for the finding's own.
    """
    files = case.files("bad")
    report = check(write_tree(tmp_path / "plain", files))
    for found in report.findings:
        text = comment.format(code=found.code)
        files[found.path] = with_comment(files[found.path], found.start.row, text)
    return write_tree(tmp_path / "commented", files), report


@pytest.mark.spelling
def test_noqa_silences_and_keeps_from_fixing(case: Case, tmp_path: Path) -> None:
    tree, plain = _commented(case, "# noqa: {code}", tmp_path)
    before = read_tree(tree)
    report, result = told_and_fixed(tree)
    assert report.findings == []
    assert kinds(report.suppressed) == kinds(plain.findings)
    assert result.changed == {}
    assert read_tree(tree) == before


@pytest.mark.spelling
def test_noqa_of_another_code_silences_nothing(case: Case, tmp_path: Path) -> None:
    tree, plain = _commented(case, "# noqa: SMP999", tmp_path)
    report = check(tree)
    comments = [finding for finding in report.findings if finding.code == "SMP001"]
    others = [finding for finding in report.findings if finding.code != "SMP001"]
    assert kinds(others) == kinds(plain.findings)
    assert len(comments) == len({(f.path, f.start.row) for f in plain.findings})
    assert report.suppressed == []


# through every front

Said = tuple[str, int, int, str, str]


def said_by_library(report: Report, base: Path) -> list[Said]:
    return sorted(
        (os.path.relpath(f.path, base), f.start.row, f.start.column, f.code, f.message)
        for f in report.findings
    )


def run_json(folders: list[str], cwd: Path, *options: str) -> list[dict]:
    result = subprocess.run(
        [sys.executable, "-m", "sampler_lint", "--output-format", "json", *options, *folders],
        capture_output=True,
        cwd=cwd,
        check=False,
    )
    assert result.stderr == b"", result.stderr.decode()
    found = json.loads(result.stdout)
    assert result.returncode == bool(found)
    return found


def run_flake8(folders: list[str], cwd: Path) -> list[Said]:
    template = "%(path)s\t%(row)d\t%(col)d\t%(code)s\t%(text)s"
    command = [sys.executable, "-m", "flake8", "--isolated", "--select", "SMP"]
    result = subprocess.run(
        [*command, "--jobs", "2", "--format", template, *folders],
        capture_output=True,
        cwd=cwd,
        check=False,
    )
    assert result.stderr == b"", result.stderr.decode()
    said = []
    for line in result.stdout.decode().splitlines():
        path, row, column, code, text = line.split("\t")
        said.append((os.path.normpath(path), int(row), int(column), code, text))
    assert result.returncode == bool(said)
    return sorted(said)


def as_json(finding: Finding, base: Path) -> dict:
    """What the JSON must say of a finding, positions of edits aside."""
    return {
        "path": os.path.relpath(finding.path, base),
        "code": finding.code,
        "message": finding.message,
        "start": (finding.start.row, finding.start.column),
        "end": (finding.end.row, finding.end.column),
        "why": list(map(str, finding.why)),
        "fix": finding.fix
        and (finding.fix.message, applicability(finding), [e.content for e in finding.fix.edits]),
    }


def from_json(found: dict, base: Path) -> dict:
    fixed = found["fix"]
    place, end = found["location"], found["end_location"]
    return {
        "path": os.path.relpath(found["filename"], base),
        "code": found["code"],
        "message": found["message"],
        "start": (place["row"], place["column"]),
        "end": (end["row"], end["column"]),
        "why": found["why"],
        "fix": fixed
        and (fixed["message"], fixed["applicability"], [e["content"] for e in fixed["edits"]]),
    }


@pytest.fixture(scope="module")
def every_bad(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A bad program of each rule below one folder, each a project of its own, and their folders."""
    base = tmp_path_factory.mktemp("fronts").resolve()
    for code, case in {case.code: case for case in all_cases()}.items():
        write_tree(base / code, case.files("bad"))
    return base, sorted(RULES)


def test_library_and_command_line_agree(every_bad: tuple[Path, list[str]]) -> None:
    base, folders = every_bad
    with working_in(base):
        report = engine.check(folders, EVERY_RULE)
        ours = [as_json(finding, base) for finding in report.findings]
    theirs = [from_json(found, base) for found in run_json(folders, base, "--select", "ALL")]
    assert theirs == ours
    assert {Path(found["path"]).parts[0] for found in theirs} == set(RULES)


def test_library_and_flake8_agree(every_bad: tuple[Path, list[str]]) -> None:
    base, folders = every_bad
    with working_in(base):
        ours = said_by_library(engine.check(folders), base)
    assert ours
    assert run_flake8(folders, base) == ours


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published package's code, unpacked and never imported."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    subprocess.run(
        [*command, str(folder / "dl"), "--only-binary", ":all:", WHEEL], check=True, timeout=300
    )
    (archive,) = (folder / "dl").glob("*.whl")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder / "code")
    return (folder / "code").resolve()


@pytest.mark.network
def test_all_fronts_agree_on_a_published_package(wheel: Path) -> None:
    with working_in(wheel):
        report = engine.check(["."], Options())
        ours = said_by_library(report, wheel)
        full = [as_json(finding, wheel) for finding in report.findings]
    assert "SMP101" in {code for _, _, _, code, _ in ours}
    assert [from_json(found, wheel) for found in run_json(["."], wheel)] == full
    assert run_flake8(["."], wheel) == ours
