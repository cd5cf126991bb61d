"""What rules say about small programs, and what their fixes write: ``tests/snippets/<CODE>.txt``.

A file begins with the lines that stand before each of its programs. Then come the programs: a
title after ``====``, the code (``#### name.py`` begins another file), and after ``----`` what the
rule says and the lines its fixes change. A title that begins with "silent" promises no finding.
``<CODE>+<CODE>-subject.txt`` holds programs about which several rules are asked at once.

``pytest tests/test_snippets.py --update-expected`` writes down what the rules say now.
"""

from __future__ import annotations

import difflib
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from cases import announced, read_tree, render, told_and_fixed, working_in, write_tree
from idle import idle
from sampler_lint import engine
from sampler_lint.engine import Options
from sampler_lint.findings import Applicability
from snippet_files import SNIPPETS, Snippet, read, rewrite


def said(snippet: Snippet, folder: Path, *, whole: bool = False) -> str:
    """The findings, then the lines that all fixes together take out and put in.

    That a check without edits says the same is asked of one in four, or of all if ``whole``.
    """
    options = Options(select=snippet.codes, likely=True)
    before = snippet.files()
    quick: engine.Report | None = None
    write_tree(folder, before)
    if whole or snippet.title.startswith("silent") or zlib.crc32(snippet.title.encode()) % 4 == 0:
        with working_in(folder):
            quick = engine.check(["."], options, edits=False)
        assert quick.errors == []
        if not quick.findings:
            return ""  # nothing to fix
    report, result = told_and_fixed(folder, options)
    with working_in(folder):
        assert [*idle(result.changed)] == [], "half a fix: the finding is gone, the bug is not"
    told = announced(report.findings)
    assert quick is None or quick.findings == told
    fixes = [finding.fix for finding in told if finding.fix is not None]
    assert all(fix.unsafe for fix in fixes if fix.applicability is Applicability.UNSAFE), "why?"
    left = [finding.fix for finding, _ in result.left if finding.fix is not None]
    assert not any(fix.applicability is Applicability.SAFE for fix in left), "announced by [*]"
    after = read_tree(folder)
    changed = []
    for name, data in before.items():
        old, new = data.decode().splitlines(), after.get(name, data).decode().splitlines()
        lines = [*difflib.unified_diff(old, new, n=0, lineterm="")][2:]
        changed += [line for line in lines if not line.startswith("@@")]
    return render(report.findings) + "\n".join(changed)


ALL = [pair for path in sorted(SNIPPETS.glob("*.txt")) for pair in read(path)]


@pytest.mark.parametrize(
    ("snippet", "expected"), ALL, ids=[f"{s.path.stem}-{s.title}".replace(" ", "-") for s, _ in ALL]
)
def test_says_and_fixes_as_written_down(
    snippet: Snippet, expected: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found = said(snippet, tmp_path, whole=request.config.getoption("--whole")).strip("\n")
    if request.config.getoption("--update-expected"):
        # Written down at the end, by one process: see conftest.py.
        request.node.user_properties.append(("said", (str(snippet.path), snippet.title, found)))
    else:
        assert found == expected
    assert (found == "") is snippet.title.startswith("silent")


def test_titles_tell_programs_apart() -> None:
    titles = [(snippet.path, snippet.title) for snippet, _ in ALL]
    assert len(titles) == len(set(titles))


def test_what_is_said_now_replaces_what_was_expected_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "SMP101.txt"
    text = "import x\n==== one\na = 1\n----\nold\n\n==== silent: two\nb = 2\n----\n\n\n"
    path.write_text(text + "==== silent: three\nc = 3\n----\n")
    rewrite(path, {"silent: two": "", "silent: three": ""})
    assert path.read_text() == text + "==== silent: three\nc = 3\n----\n"
    rewrite(path, {"one": "new\n-a = 1", "silent: three": "found"})
    assert [expected for _, expected in read(path)] == ["new\n-a = 1", "", "found"]
    rewrite(path, {"one": "old", "silent: three": ""})
    assert path.read_text() == text + "==== silent: three\nc = 3\n----\n"


def test_expectations_are_updated_by_one_process(tmp_path: Path) -> None:
    """However many run the tests: here two, on a copy whose expectations are spoiled."""
    folder = tmp_path / "tests"
    folder.mkdir()
    for name in ("cases.py", "conftest.py", "idle.py", "snippet_files.py", "test_snippets.py"):
        shutil.copy(SNIPPETS.parent / name, folder)
    (folder / "snippets").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    few = "SMP301-plain-torch.txt"
    wanted = SNIPPETS.joinpath(few).read_text(encoding="utf-8")
    spoiled = folder / "snippets" / few
    spoiled.write_text(wanted.replace("SMP301 ", "SMP999 "), encoding="utf-8")
    assert spoiled.read_text(encoding="utf-8") != wanted
    command = [sys.executable, "-m", "pytest", "-q", "-n2", "--update-expected"]
    done = subprocess.run(
        [*command, "-k", "says_and_fixes"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode()
    assert spoiled.read_text(encoding="utf-8") == wanted
