"""The fixtures as data, found by walking: ``fixtures/<CODE>/<case>/{bad,good,fixed}``.

Nothing is registered. A case is checked as its own small tree, copied out of this repository, so
that paths in findings are relative to it and no other file is part of its model.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sampler_lint import engine
from sampler_lint.engine import FixReport, Options, Report
from sampler_lint.findings import Finding

FIXTURES = Path(__file__).parent.parent / "fixtures"
#: Not by prefix: named whole or by ALL, a rule also reports what it has to assume.
EVERY_RULE = Options(select=("ALL",), likely=True)

#: Contents by path relative to the tree, with ``/`` between folders.
Files = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Case:
    """One fixture folder."""

    code: str
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.code}/{self.folder.name}"

    @property
    def expected(self) -> Path:
        """Where the findings on ``bad`` are written down."""
        return self.folder / "expected.txt"

    def files(self, part: str) -> Files:
        """The Python files of ``bad``, ``good`` or ``fixed``; none if there is no such part."""
        return read_tree(self.folder / part)


def all_cases() -> list[Case]:
    return [
        Case(folder.parent.name, folder)
        for folder in sorted(FIXTURES.glob("*/*"))
        if (folder / "bad").is_dir()
    ]


def read_tree(folder: Path) -> Files:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*.py"))
    }


def write_tree(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write ``files`` as a project of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").touch()
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@contextlib.contextmanager
def working_in(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


#: What each tree that was checked said. A report rests on the content of the files only.
_reports: dict[tuple[Options, frozenset[tuple[str, bytes]]], Report] = {}


def check(folder: Path, options: Options = EVERY_RULE) -> Report:
    """Check the tree in ``folder``, unless the same was checked before.

    Paths are relative to the folder.
    """
    files = (path for path in folder.rglob("*") if path.is_file())
    content = frozenset((path.relative_to(folder).as_posix(), path.read_bytes()) for path in files)
    if (options, content) not in _reports:
        with working_in(folder):
            _reports[options, content] = engine.check(["."], options)
    report = _reports[options, content]
    assert report.errors == []
    return report


def told_and_fixed(
    folder: Path, options: Options = EVERY_RULE, *, unsafe: bool = True
) -> tuple[Report, FixReport]:
    """What a check says of the tree in ``folder``, and what fixing it in place then does.

    The first round of fixing is a check, so the tree is examined once for both.
    """
    told: list[Report] = []

    def tell(report: Report, contents: Mapping[str, bytes]) -> None:
        # What is fixed or left may be told otherwise later.
        told.append(replace(report, findings=[*report.findings]))

    with working_in(folder):
        result = engine.fix(["."], options, unsafe=unsafe, narrow=tell)
    assert [*told[0].errors, *result.errors, *result.report.errors] == []
    return told[0], result


def fix(folder: Path, *, unsafe: bool = True) -> FixReport:
    """Fix the tree in ``folder`` in place."""
    return told_and_fixed(folder, unsafe=unsafe)[1]


def applicability(finding: Finding) -> str:
    return finding.fix.applicability.value if finding.fix else "no-fix"


def announced(findings: list[Finding]) -> list[Finding]:
    """The findings as a check tells them that was not asked what their fixes change."""
    return [
        replace(each, fix=each.fix and replace(each.fix, edits=()), candidates=())
        for each in findings
    ]


def render(findings: list[Finding]) -> str:
    """Findings as they stand in ``expected.txt``."""
    lines = []
    for found in findings:
        start, end = found.start, found.end
        lines.append(
            f"{found.path}:{start.row}:{start.column}-{end.row}:{end.column} "
            f"{found.label} {applicability(found)} {found.message}"
        )
        notes = filter(None, (found.effect, *map(str, found.why)))
        lines += [f"    note: {note}" for note in notes]
        lines += [f"    help: {found.advice}"] if found.advice else []
    return "".join(f"{line}\n" for line in lines)
