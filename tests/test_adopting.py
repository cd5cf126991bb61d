"""Old findings left alone: baselines, and lines changed since a git revision."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from sampler_lint import engine
from sampler_lint.changed_lines import ChangedLines, GitError
from sampler_lint.cli import main
from sampler_lint.config import Lookup
from sampler_lint.findings import Finding, Position

FIXTURES = Path(__file__).parent.parent / "fixtures"
BAD = (FIXTURES / "SMP101/torch-batch-sampler/bad/train.py").read_text()
ROW = 39
BUILT = 32


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(BAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """Path and row of what the command tells, which it must agree about with its exit code."""
    capsys.readouterr()
    code = main(["--output-format", "json", *arguments])
    records = json.loads(capsys.readouterr().out)
    assert code == bool(records)
    return [f"{os.path.relpath(each['filename'])}:{each['location']['row']}" for each in records]


# --- baselines


def test_a_baseline_takes_what_is_found_and_no_more(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--write-baseline", "known.json"]) == 0
    assert capsys.readouterr() == ("Wrote 1 finding to known.json.\n", "")
    assert found(capsys, "--baseline", "known.json") == []
    (project / "train.py").write_text(f"# more\n\n{BAD}\n# more\n")
    assert found(capsys, "--baseline", "known.json") == []
    (project / "other.py").write_text(BAD)
    assert found(capsys, "--baseline", "known.json") == [f"other.py:{ROW}"]
    assert found(capsys, "--baseline", "known.json", "train.py") == []


def test_a_baseline_does_not_take_a_second_finding_on_an_equal_line(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--write-baseline", "known.json"])
    line = BAD.splitlines(keepends=True)[ROW - 1]
    (project / "train.py").write_text(BAD.replace(line, line * 2))
    assert found(capsys, "--baseline", "known.json") == [f"train.py:{ROW + 1}"]


def test_a_baseline_holds_from_any_folder(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "ci").mkdir()
    assert main(["--write-baseline", "ci/known.json"]) == 0
    monkeypatch.chdir(project / "ci")
    assert found(capsys, "--baseline", "known.json", "..") == []
    assert found(capsys, "--baseline", "known.json", str(project)) == []


def test_what_is_gone_from_a_baseline_is_noted(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "other.py").write_text(BAD)
    main(["--write-baseline", "known.json"])
    (project / "train.py").write_text("x = 1\n")
    capsys.readouterr()
    assert main(["--baseline", "known.json"]) == 0
    assert capsys.readouterr().err == (
        "note: 1 entry is no longer found: --write-baseline known.json would list what is left\n"
    )
    assert main(["--baseline", "known.json", "other.py"]) == 0
    assert capsys.readouterr().err == ""


def test_a_baseline_reads_well_in_a_diff(project: Path) -> None:
    (project / "other.py").write_text(BAD)
    main(["--write-baseline", "known.json"])
    lines = (project / "known.json").read_text().splitlines()
    paths = [json.loads(line.rstrip(","))["path"] for line in lines[1:-1]]
    assert paths == ["other.py", "train.py"]
    (project / "other.py").unlink()
    (project / "train.py").unlink()
    main(["--write-baseline", "known.json"])
    assert json.loads((project / "known.json").read_text()) == {"version": 1, "findings": []}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "known.json: cannot be read: No such file or directory"),
        ("[", "known.json: is not a baseline"),
        ("[]", "known.json: is not a baseline"),
        ('{"version": 2, "findings": []}', "known.json: is of another version: write it again"),
        ('{"version": 1, "findings": [1]}', "known.json: is not a baseline"),
    ],
)
def test_a_baseline_that_is_none(
    project: Path, capsys: pytest.CaptureFixture[str], content: str | None, said: str
) -> None:
    if content is not None:
        (project / "known.json").write_text(content)
    assert main(["--baseline", "known.json"]) == 2
    assert capsys.readouterr() == ("", f"error: {said}\n")


def test_a_baseline_that_cannot_be_written(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--write-baseline", "missing/known.json"]) == 2
    assert "missing/known.json: cannot be written" in capsys.readouterr().err


def test_it_is_said_how_much_is_left_out(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def last(*arguments: str) -> str:
        capsys.readouterr()
        main(["--baseline", "known.json", *arguments])
        return capsys.readouterr().out.splitlines()[-1]

    main(["--write-baseline", "known.json"])
    assert last() == "All clear: 1 file checked; 1 finding in the baseline."
    assert last("--output-format", "grouped") == last()
    assert last("--statistics") == last()
    assert last("--output-format", "json") == "[]"
    (project / "other.py").write_text(BAD)
    assert last() == (
        "Found 1 finding (1 fixable with --fix) in 2 files; 1 finding in the baseline."
    )
    assert last("--fix") == ("Fixed 1 finding in 1 file; none left (1 finding in the baseline).")
    (project / "train.py").unlink()
    assert last() == "All clear: 1 file checked."


def test_a_baseline_that_the_configuration_names(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "ci").mkdir()
    (project / "pyproject.toml").write_text("[tool.sampler-lint]\nbaseline = 'ci/known.json'\n")
    assert main([]) == 2  # it is not there yet
    assert (
        capsys.readouterr().err
        == "error: pyproject.toml: baseline: ci/known.json: cannot be read: "
        "No such file or directory\n"
    )
    assert main(["--write-baseline", "ci/known.json"]) == 0
    assert main(["--write-baseline", "ci/known.json"]) == 0  # of all that is found, again
    monkeypatch.chdir(project / "ci")
    assert main([str(project)]) == 0
    assert "1 finding in the baseline" in capsys.readouterr().out
    assert main(["--isolated", str(project)]) == 1
    (project / "other.py").write_text(BAD)
    assert main([str(project)]) == 1
    lookup = Lookup()
    report = engine.check([str(project)], lambda folder: lookup.at(folder).options)
    assert [finding.path for finding in report.findings] == [str(project / "other.py")]
    (project / "ci/known.json").write_text("[]")
    report = engine.check([str(project)], lambda folder: lookup.at(folder).options)
    assert [str(error) for error in report.errors] == ["known.json: is not a baseline"]


def test_what_is_in_a_baseline_is_not_fixed(project: Path) -> None:
    main(["--write-baseline", "known.json"])
    (project / "other.py").write_text(BAD)
    assert main(["--fix", "--baseline", "known.json"]) == 0
    assert (project / "train.py").read_text() == BAD
    assert (project / "other.py").read_text() != BAD


@pytest.mark.parametrize(
    "arguments",
    [
        ["--write-baseline", "a", "--fix"],
        ["--write-baseline", "a", "--baseline", "b"],
        ["--write-baseline", "a", "--add-noqa"],
        ["--add-noqa", "--diff-base", "HEAD"],
    ],
)
def test_options_that_exclude_each_other(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert (project / "train.py").read_text() == BAD


# --- changed lines


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def repository(project: Path) -> Path:
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "one")
    return project


def edit(path: Path, row: int, text: str | None) -> None:
    lines = path.read_text().splitlines()
    lines[row - 1 : row] = [] if text is None else [text]
    path.write_text("\n".join(lines) + "\n")


def test_nothing_changed(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys, "--diff-base", "HEAD") == []
    edit(repository / "train.py", 1, "import a\nimport b\nimport c")
    assert found(capsys, "--diff-base", "HEAD") == []


@pytest.mark.parametrize("row", [ROW, BUILT])
def test_the_line_changed_or_one_it_rests_on(
    repository: Path, capsys: pytest.CaptureFixture[str], row: int
) -> None:
    line = (repository / "train.py").read_text().splitlines()[row - 1]
    edit(repository / "train.py", row, f"{line}  # changed")
    assert found(capsys, "--diff-base", "HEAD") == [f"train.py:{ROW}"]
    git("commit", "-qam", "two")
    assert found(capsys, "--diff-base", "HEAD") == []
    assert found(capsys, "--diff-base", "HEAD~1") == [f"train.py:{ROW}"]


def test_a_line_beside_deleted_ones_changed(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(repository / "train.py", ROW + 1, None)
    assert found(capsys, "--diff-base", "HEAD") == [f"train.py:{ROW}"]


def test_staged_untracked_ignored_and_renamed_files(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "new.py").write_text(BAD)
    assert found(capsys, "--diff-base", "HEAD") == [f"new.py:{ROW}"]
    git("add", "new.py")
    assert found(capsys, "--diff-base", "HEAD") == [f"new.py:{ROW}"]
    (repository / ".gitignore").write_text("new.py\n")
    git("reset", "-q")
    assert found(capsys, "--diff-base", "HEAD", "new.py") == [f"new.py:{ROW}"]
    (repository / "new.py").unlink()
    git("mv", "train.py", "moved.py")
    assert found(capsys, "--diff-base", "HEAD") == []
    line = BAD.splitlines()[ROW - 1]
    edit(repository / "moved.py", ROW, f"{line}  # changed")
    assert found(capsys, "--diff-base", "HEAD") == [f"moved.py:{ROW}"]


def test_a_branch_is_compared_with_where_it_began(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git("checkout", "-qb", "topic")
    (repository / "topic.py").write_text("x = 1\n")
    git("add", ".")
    git("commit", "-qm", "topic")
    git("checkout", "-q", "main")
    edit(repository / "train.py", ROW, "            pass")
    git("commit", "-qam", "main goes on")
    git("checkout", "-q", "topic")
    assert found(capsys, "--diff-base", "main") == []


@pytest.mark.parametrize("name", ["a b.py", 'q"u\\o.py', "é.py", "-n.py", "tab\t.py"])
def test_names(repository: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (repository / name).write_text(BAD)
    git("add", ".")
    git("commit", "-qm", "two")
    assert found(capsys, "--diff-base", "HEAD") == []
    edit(repository / name, BUILT, BAD.splitlines()[BUILT - 1] + "  # changed")
    assert found(capsys, "--diff-base", "HEAD") == [f"{name}:{ROW}"]


@pytest.mark.parametrize(
    "setting",
    [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.interHunkContext", "50"),
        ("color.ui", "always"),
        ("diff.external", "false"),
        ("diff.relative", "true"),
    ],
)
def test_whatever_git_is_set_to(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    setting: tuple[str, str],
) -> None:  # fmt: skip
    git("config", *setting)
    (repository / ".gitattributes").write_text("*.py binary\n")
    (repository / "sub").mkdir()
    monkeypatch.chdir(repository / "sub")
    edit(repository / "train.py", 1, "# one\n# two")
    assert found(capsys, "--diff-base", "HEAD", "..") == []
    edit(repository / "train.py", BUILT + 1, BAD.splitlines()[BUILT - 1] + "  # changed")
    assert found(capsys, "--diff-base", "HEAD", "..") == [f"../train.py:{ROW + 1}"]


def test_lines_that_look_like_headers(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = repository / "notes.py"
    other.write_text("-- a/x\n@@ -1 +1 @@\n")
    git("add", ".")
    git("commit", "-qm", "two")
    other.write_text(f"++ b/train.py\n@@ -1 +{ROW},5 @@\ndiff --git a/train.py b/train.py\n")
    edit(repository / "train.py", 1, "# changed")
    place = Position(ROW, 1)
    changes = ChangedLines("HEAD", ["."])
    assert not changes.touch(Finding("SMP101", "m", "train.py", place, place))
    first = Position(1, 1)
    assert changes.touch(Finding("SMP101", "m", "train.py", first, first))


def test_in_a_hook_of_another_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere/.git")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert found(capsys, "--diff-base", "HEAD") == []


@pytest.mark.parametrize("revision", ["nowhere", "--help", "-h", "", "HEAD:train.py"])
def test_a_revision_that_is_none(
    repository: Path, capsys: pytest.CaptureFixture[str], revision: str
) -> None:
    (repository / "train.py").write_text("x = 1\n")
    assert main([f"--diff-base={revision}"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"error: --diff-base {revision}: {repository} has no such revision\n"


def test_outside_of_any_repository(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--diff-base", "HEAD"]) == 2
    assert "not a git repository" in capsys.readouterr().err


def test_only_what_changed_is_fixed(repository: Path) -> None:
    (repository / "old.py").write_text(BAD)
    git("add", ".")
    git("commit", "-qm", "two")
    line = BAD.splitlines()[ROW - 1]
    edit(repository / "train.py", ROW, f"{line}  # changed")
    edit(repository / "old.py", 1, "# changed")
    old = (repository / "old.py").read_text()
    assert main(["--fix", "--diff-base", "HEAD"]) == 0
    assert (repository / "old.py").read_text() == old
    assert "batch_sampler.sampler.set_epoch" in (repository / "train.py").read_text()


def test_a_repository_that_goes_away_is_said(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def touch(*_: object) -> bool:
        raise GitError("it is gone")

    monkeypatch.setattr(ChangedLines, "touch", touch)
    assert main(["--diff-base", "HEAD"]) == 2
    assert capsys.readouterr() == ("", "error: --diff-base: it is gone\n")


def test_without_git_it_says_so(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert main(["--diff-base", "HEAD"]) == 2
    assert "git cannot be run: No such file or directory" in capsys.readouterr().err


def test_contents_of_a_file_that_the_revision_has_not(repository: Path) -> None:
    (repository / "new.py").write_text(BAD)
    git("add", ".")
    finding = next(each for each in engine.check(["."]).findings if each.path == "new.py")
    assert ChangedLines("HEAD", ["."]).touch(finding, BAD.encode())


def test_comments_that_would_spoil_a_file_are_not_written(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sampler_lint.fixing.parses", lambda text: False)
    assert main(["--add-noqa"]) == 2
    assert "train.py: would no longer parse with the comments" in capsys.readouterr().err
    assert (project / "train.py").read_text() == BAD


def test_the_rows_of_contents_that_are_not_on_disk(repository: Path) -> None:
    (finding,) = engine.check(["."]).findings
    changes = ChangedLines("HEAD", ["."])
    assert not changes.touch(finding, BAD.encode())
    lines = BAD.splitlines()
    lines[ROW - 1] += "  # changed"
    assert changes.touch(finding, "\n".join(lines).encode())
