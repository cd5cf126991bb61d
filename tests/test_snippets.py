"""What rules say about small programs, and what their fixes write: ``tests/snippets/<CODE>.txt``.

A file begins with the lines that stand before each of its programs. Then come the programs: a
title after ``====``, the code (``#### name.py`` begins another file), and after ``----`` what the
rule says and the lines its fixes change. A title that begins with "silent" promises no finding.

``pytest tests/test_snippets.py --update-expected`` writes down what the rules say now.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cases import announced, read_tree, render, working_in, write_tree
from sampler_lint import engine
from sampler_lint.engine import Options

SNIPPETS = Path(__file__).parent / "snippets"


@dataclass(frozen=True, slots=True)
class Snippet:
    path: Path
    title: str
    header: str
    body: str

    @property
    def code(self) -> str:
        return self.path.stem

    def files(self) -> dict[str, bytes]:
        main, *others = re.split(r"^#### (?=.)", self.body, flags=re.MULTILINE)
        named = [other.partition("\n")[::2] for other in others]
        texts = {"main.py": self.header + main, **dict(named)}
        return {name: text.encode() for name, text in texts.items()}


def read(path: Path) -> Iterator[tuple[Snippet, str]]:
    """The programs of a file, each with what is expected of it."""
    header, *parts = re.split(r"^==== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for part in parts:
        title, _, rest = part.partition("\n")
        body, _, expected = rest.partition("----\n")
        yield Snippet(path, title, header, body.strip("\n") + "\n"), expected.strip("\n")


def said(snippet: Snippet, folder: Path) -> str:
    """The findings, then the lines that all fixes together take out and put in."""
    options = Options(select=(snippet.code,), likely=True)
    before = snippet.files()
    with working_in(write_tree(folder, before)):
        report = engine.check(["."], options)
        quick = engine.check(["."], options, edits=False) if report.findings else report
        result = engine.fix(["."], options, unsafe=True)
    assert [*report.errors, *result.errors, *result.report.errors] == []
    assert quick.findings == announced(report.findings)
    after = read_tree(folder)
    changed = []
    for name, data in before.items():
        old, new = data.decode().splitlines(), after.get(name, data).decode().splitlines()
        lines = [*difflib.unified_diff(old, new, n=0, lineterm="")][2:]
        changed += [line for line in lines if not line.startswith("@@")]
    return render(report.findings) + "\n".join(changed)


ALL = [pair for path in sorted(SNIPPETS.glob("*.txt")) for pair in read(path)]


@pytest.mark.parametrize(
    ("snippet", "expected"), ALL, ids=[f"{s.code}-{s.title}".replace(" ", "-") for s, _ in ALL]
)
def test_says_and_mends_as_written_down(
    snippet: Snippet, expected: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found = said(snippet, tmp_path).strip("\n")
    if request.config.getoption("--update-expected"):
        text = snippet.path.read_text(encoding="utf-8")
        before, _, rest = text.partition(f"==== {snippet.title}\n")
        _, mark, others = rest.partition("\n==== ")
        now = f"==== {snippet.title}\n{snippet.body}----\n{found}\n".replace("\n\n\n", "\n\n")
        snippet.path.write_text(before + now + mark + others, encoding="utf-8")
    else:
        assert found == expected
    assert (found == "") is snippet.title.startswith("silent")


def test_titles_tell_programs_apart() -> None:
    titles = [(snippet.code, snippet.title) for snippet, _ in ALL]
    assert len(titles) == len(set(titles))
