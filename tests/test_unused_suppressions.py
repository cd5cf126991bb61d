"""SMP001, and the comments that ``--add-noqa`` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sampler_lint import engine
from sampler_lint.cli import main
from sampler_lint.findings import Applicability, Finding, Position
from sampler_lint.options import DEFAULTS, Options
from sampler_lint.source import SourceFile
from sampler_lint.suppressions import UNUSED, Suppressions, silence

FIXTURES = Path(__file__).parent.parent / "fixtures"
BAD = (FIXTURES / "SMP101/torch-batch-sampler/bad/train.py").read_text()
ROW = 39
EVERY = Options(select=("ALL",))
FIX_COMMENTS = ["--fix", "--config", "fixable=SMP001"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def with_comment(comment: str, row: int = ROW) -> str:
    lines = BAD.splitlines()
    lines[row - 1] += f"  {comment}"
    return "\n".join(lines) + "\n"


def unused(project: Path, text: str, options: Options = DEFAULTS) -> list[Finding]:
    (project / "train.py").write_text(text)
    report = engine.check(["."], options)
    assert report.errors == []
    return [finding for finding in report.findings if finding.code == UNUSED]


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# noqa: SMP101",
        "# noqa: SMP1, E501",
        "# sampler-lint: ignore",
        "# sampler-lint: ignore[SMP101]",
        "# noqa: SMP001, SMP101",
    ],
)
def test_a_comment_that_silences_something_is_in_use(project: Path, comment: str) -> None:
    assert unused(project, with_comment(comment)) == []
    assert main([]) == 0


@pytest.mark.parametrize(
    "comment",
    [
        "# sampler-lint: ignre[SMP101]",
        "# sampler-lint: ignore[SMP101",
        "# sampler-lint: ignore: SMP101",
        "# sampler-lint: disable-next=SMP101",
        "# sampler_lint: noqa",
        "# samplerlint: ignore",
        "# sampler lint: disable=SMP101",
        "# sampler-lint ignore[SMP101]",
    ],
)
def test_a_comment_that_is_not_understood_is_told(project: Path, comment: str) -> None:
    (finding,) = unused(project, with_comment(f"{comment}  # why"))
    text = with_comment(comment).splitlines()[ROW - 1]
    assert text[finding.start.column - 1 : finding.end.column - 1] == comment
    assert finding.fix is None
    assert main(["--fix"]) == 1
    assert comment in (project / "train.py").read_text()


def test_a_name_that_no_rule_has_is_told(project: Path) -> None:
    (finding,) = unused(project, with_comment("# sampler-lint: disable=SMP101,epoch-only"))
    assert finding.message.startswith("unused suppression: epoch-only is not a rule of sampler-l")
    assert main(["--fix"]) == 0
    fixed = with_comment("# sampler-lint: disable=SMP101")
    assert (project / "train.py").read_text() == fixed


def test_a_comment_above_a_statement_says_where_it_belongs(project: Path) -> None:
    (finding,) = unused(project, f"# sampler-lint: ignore[SMP101]\n{BAD}")
    assert finding.effect.startswith("a comment on a separate line applies to no statement")
    (finding,) = unused(project, with_comment("# sampler-lint: ignore[SMP102]"))
    assert finding.effect == ""


@pytest.mark.parametrize(
    ("comment", "fixed"),
    [
        ("# noqa: SMP101", ""),
        ("# noqa: SMP101,SMP2", ""),
        ("# noqa: E501, SMP101", "  # noqa: E501"),
        ("# noqa: SMP101, E501", "  # noqa: E501"),
        ("# noqa:SMP202,E501,SMP101,W1 why", "  # noqa:E501, W1 why"),
        ("# noqa: SMP999", ""),
        ("# noqa: smp101", ""),
        ("# sampler-lint: ignore", ""),
        ("# sampler-lint: ignore[SMP101]", ""),
        ("# sampler-lint: ignore[SMP101, SMP999]", ""),
        ("# sampler-lint: ignore[]", ""),
        ("# sampler-lint: ignore[ALL]", ""),
        ("# noqa: SMP101  # type: ignore", "  # type: ignore"),
        ("# type: ignore # noqa: SMP101", "  # type: ignore"),
        ("# a word # noqa: SMP101 # another", "  # a word # another"),
        ("# sampler-lint: ignore # noqa: E501", "  # noqa: E501"),
    ],
)
def test_a_comment_that_silences_nothing_goes(project: Path, comment: str, fixed: str) -> None:
    (finding,) = unused(project, with_comment(comment, row=1))
    assert finding.start.row == 1
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    assert main([*FIX_COMMENTS]) == 1  # the bug is still there
    lines = BAD.splitlines()
    assert (project / "train.py").read_text() == "\n".join([lines[0] + fixed, *lines[1:]]) + "\n"


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# noqa: E501",
        "# noqa: because",
        "# noqa: SMP000",
        "# noqa: SMP001",
        "# noqa: SMP001, SMP101",
        "# sampler-lint: ignore[SMP001, SMP101]",
        "# noqa # sampler-lint: ignore",
        "# nosec SMP101",
    ],
)
def test_comments_that_are_not_judged(project: Path, comment: str) -> None:
    assert unused(project, with_comment(comment, row=1)) == []


def test_words_of_a_person_are_not_deleted_unasked(project: Path) -> None:
    text = with_comment("# noqa: SMP101 since it is so", row=1)
    (finding,) = unused(project, text)
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert main([*FIX_COMMENTS]) == 1
    assert (project / "train.py").read_text() == text
    assert main([*FIX_COMMENTS, "--unsafe-fixes"]) == 1
    assert (project / "train.py").read_text() == BAD


@pytest.mark.parametrize(
    "line",
    [
        "# sampler-lint: ignore-file",
        "# sampler-lint: ignore-file[SMP2]",
        "# flake8: noqa: SMP2",
        "# ruff: noqa: SMP203",
        "    # noqa: SMP2",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_line_of_its_own_goes_whole(project: Path, line: str, newline: str) -> None:
    text = f"{line}\nsampler = 1\n".replace("\n", newline)
    (project / "clean.py").write_bytes(text.encode())
    assert main(["--fix", "clean.py"]) == 0
    assert (project / "clean.py").read_bytes() == f"sampler = 1{newline}".encode()


def test_file_comments_in_use(project: Path) -> None:
    assert unused(project, f"# sampler-lint: ignore-file\n{BAD}") == []
    assert unused(project, f"# ruff: noqa: SMP101\n{BAD}") == []
    (finding,) = unused(project, f"# flake8: noqa: SMP101, SMP2, E501\n{BAD}")
    assert "SMP2 is not found in this file" in finding.message
    assert unused(project, f"# flake8: noqa\n{BAD}") == []


@pytest.mark.parametrize(
    ("options", "comment", "said"),
    [
        (Options(ignore=("SMP101",)), "# noqa: SMP101", False),
        (Options(select=("SMP2", "SMP001")), "# noqa: SMP101", False),
        (Options(select=("SMP101", "SMP001")), "# noqa: SMP101", True),
        (Options(select=("SMP101", "SMP001")), "# noqa: SMP1", False),
        (Options(select=("SMP1", "SMP001")), "# noqa: SMP1", True),
        (Options(select=("SMP1", "SMP001")), "# sampler-lint: ignore", False),
        (Options(select=("SMP1",)), "# noqa: SMP101", False),
        (Options(ignore=("SMP0",)), "# noqa: SMP101", False),
        (Options(per_file_ignores=(("train.py", ("SMP101",)),)), "# noqa: SMP101", False),
        (Options(respect_noqa=False), "# noqa: SMP101", False),
    ],
)
def test_only_what_a_rule_was_asked_about_is_judged(
    project: Path, options: Options, comment: str, said: bool
) -> None:
    assert bool(unused(project, with_comment(comment, row=1), options)) is said


def test_a_file_about_something_else_is_read_too(project: Path) -> None:
    (finding,) = unused(project, "x = 1  # noqa: SMP101\n")
    assert finding.start == Position(1, 8)


def test_a_bug_that_is_fixed_takes_its_comment_with_it(project: Path) -> None:
    """Two rounds: the fix of the bug leaves a comment that silences nothing."""
    (project / "train.py").write_text(BAD)
    assert main(["--add-noqa"]) == 0
    assert "# noqa: SMP101" in (project / "train.py").read_text()
    text = (project / "train.py").read_text().replace(".sampler.set", ".batch_sampler.sampler.set")
    (project / "train.py").write_text(text)
    assert main(["--fix"]) == 0
    assert "noqa" not in (project / "train.py").read_text()


# --- --add-noqa


@pytest.mark.parametrize(
    ("lines", "row", "expected"),
    [
        (["a", "b", "c"], 2, ["a", "b  # noqa: SMP101", "c"]),
        (["b  # why"], 1, ["b  # why  # noqa: SMP101"]),
        (["b  # noqa: E501"], 1, ["b  # noqa: E501, SMP101"]),
        (["b  # noqa:E501 why"], 1, ["b  # noqa:E501, SMP101 why"]),
        (["f(", "    1)", "c"], 1, ["f(  # noqa: SMP101", "    1)", "c"]),
        (["x = '''", "y", "'''", "c"], 1, ["x = '''", "y", "'''  # noqa: SMP101", "c"]),
        (["x = \\", "  1", "c"], 1, ["x = \\", "  1  # noqa: SMP101", "c"]),
        (["f('''", "''',", "  1)"], 1, ["f('''", "''',  # noqa: SMP101", "  1)"]),
        (["for a in b:", "    c"], 1, ["for a in b:  # noqa: SMP101", "    c"]),
        (["a", "b"], 2, ["a", "b  # noqa: SMP101"]),
        (["X", "b"], 1, ["X  # noqa: SMP101", "b"]),
        (["a  ", "b"], 1, ["a    # noqa: SMP101", "b"]),
        (
            ["a  # sampler-lint: ignore[SMP2]"],
            1,
            ["a  # sampler-lint: ignore[SMP2]  # noqa: SMP101"],
        ),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_where_a_comment_goes(
    lines: list[str], row: int, expected: list[str], newline: str
) -> None:
    source = SourceFile("a.py", newline.join(lines).encode())
    finding = Finding("SMP101", "m", "a.py", Position(row, 1), Position(row, 2))
    (edit,) = silence(source, [finding])
    assert edit.path == "a.py"
    text = source.text[: edit.start] + edit.content + source.text[edit.end :]
    assert text == newline.join(expected)
    assert Suppressions(SourceFile("a.py", text.encode())).covers(finding)


def test_two_findings_share_a_comment() -> None:
    source = SourceFile("a.py", b"a\n")
    place = Position(1, 1)
    codes = ("SMP202", "SMP101", "SMP101")
    (edit,) = silence(source, [Finding(code, "m", "a.py", place, place) for code in codes])
    assert edit.content == "  # noqa: SMP101, SMP202"


def test_two_codes_are_added_to_a_comment() -> None:
    place = Position(1, 1)
    codes = ("SMP202", "SMP101")
    source = SourceFile("a.py", b"a  # noqa: E501\n")
    (edit,) = silence(source, [Finding(code, "m", "a.py", place, place) for code in codes])
    assert (edit.start, edit.content) == (15, ", SMP101, SMP202")


@pytest.mark.parametrize("broken", ["'''", "if a:\n    b\n  c"])
def test_no_comment_goes_where_there_are_no_tokens(broken: str) -> None:
    source = SourceFile("a.py", f"a\n{broken}\n".encode())
    places = (Position(1, 1), Position(source.text.count("\n"), 1))
    edits = silence(source, [Finding("SMP101", "m", "a.py", place, place) for place in places])
    assert [(edit.start, edit.content) for edit in edits] == [(1, "  # noqa: SMP101")]


def test_add_noqa_silences_a_fixture_of_each_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the files stay the same programs, and no comment is unused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    copies: dict[str, list[Path]] = {}
    for rule in FIXTURES.glob("SMP*"):
        bad = min(rule.glob("*/bad"))
        for file in bad.rglob("*.py"):
            copy = tmp_path / rule.name / file.relative_to(bad)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
            copies.setdefault(rule.name, []).append(copy)
    assert main(["--add-noqa", "--select", "ALL", "."]) == 0
    assert capsys.readouterr().out.startswith("Suppressed ")
    for rule, files in copies.items():
        assert any(f"noqa: {rule}" in file.read_text() for file in files), rule
    assert main(["--select", "ALL", "."]) == 0


def test_add_noqa_to_a_file_that_cannot_be_written(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "train.py").write_text(BAD)
    (project / "train.py").chmod(0o444)
    assert main(["--add-noqa"]) == 2
    out, err = capsys.readouterr()
    assert out == "Suppressed 0 of 1 findings in 0 files.\n"
    assert err.startswith("error: train.py: cannot be written")


@pytest.mark.parametrize("other", [["--fix"], ["--diff"], ["-"]])
def test_add_noqa_alone(project: Path, other: list[str]) -> None:
    import io
    import sys

    class Empty:
        buffer = io.BytesIO(b"")

    sys_stdin, sys.stdin = sys.stdin, Empty()  # type: ignore[assignment]
    try:
        assert main(["--add-noqa", *other]) == 2
    finally:
        sys.stdin = sys_stdin
