"""Findings in the protocol's words: zero-based lines, and columns in the client's units."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from lsprotocol import types

from sampler_lint.findings import Applicability, Edit, Finding, Position
from sampler_lint.reporters import rule_url
from sampler_lint.source import SourceFile
from sampler_lint.suppressions import silence

SOURCE = "sampler-lint"

#: How many units of the client (UTF-16 unless it said otherwise) a text takes.
Units = Callable[[str], int]
#: The file at an absolute path as the editor has it; None if it cannot be read.
Files = Callable[[str], "SourceFile | None"]

_PLACE = re.compile(r"(?P<path>.+?):(?P<row>\d+): (?P<text>.+)", re.DOTALL)


def place(source: SourceFile, position: Position, units: Units) -> types.Position:
    """A row and column of ours as the client counts them."""
    head = source.line(position.row)[: position.column - 1]
    return types.Position(position.row - 1, units(head))


def span(source: SourceFile, finding: Finding, units: Units) -> types.Range:
    """Where a finding stands."""
    return types.Range(
        place(source, finding.start, units),
        place(source, finding.end, units),
    )


def diagnostic(
    finding: Finding, source: SourceFile, files: Files, units: Units
) -> types.Diagnostic:
    """A finding as a diagnostic; the places it rests on are its related information."""
    return types.Diagnostic(
        range=span(source, finding, units),
        message=finding.message,
        severity=types.DiagnosticSeverity.Warning,
        code=finding.code,
        code_description=types.CodeDescription(rule_url(finding.code)),
        source=SOURCE,
        related_information=list(_related(finding, files)),
    )


def _related(finding: Finding, files: Files) -> Iterator[types.DiagnosticRelatedInformation]:
    for reason in finding.why:
        found = _PLACE.fullmatch(reason)
        if found is None:
            continue
        path = str(Path(found["path"]).absolute())
        if files(path) is not None:
            start = types.Position(int(found["row"]) - 1, 0)
            where = types.Location(Path(path).as_uri(), types.Range(start, start))
            yield types.DiagnosticRelatedInformation(where, found["text"])


def text_edits(source: SourceFile, edits: Iterable[Edit], units: Units) -> list[types.TextEdit]:
    """The edits of one file."""

    def at(offset: int) -> types.Position:
        return place(source, source.position(offset), units)

    return [
        types.TextEdit(types.Range(at(edit.start), at(edit.end)), edit.content) for edit in edits
    ]


def quick_fix(
    finding: Finding, shown: types.Diagnostic, files: Files, units: Units
) -> types.CodeAction | None:
    """The finding's fix as an action; None if there is none that may be applied."""
    fix = finding.fix
    if fix is None or fix.applicability is Applicability.DISPLAY:
        return None
    changes: dict[str, list[types.TextEdit]] = {}
    for name in sorted(fix.paths):
        path = str(Path(name).absolute())
        source = files(path)
        if source is None:
            return None
        edits = [edit for edit in fix.edits if edit.path == name]
        changes[Path(path).as_uri()] = text_edits(source, edits, units)
    safe = fix.applicability is Applicability.SAFE
    return types.CodeAction(
        title=f"{finding.code}: {fix.message}{'' if safe else ' (unsafe: read it first)'}",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[shown],
        is_preferred=safe,
        edit=types.WorkspaceEdit(changes=changes),
    )


def ignore(
    finding: Finding, shown: types.Diagnostic, source: SourceFile, uri: str, units: Units
) -> types.CodeAction | None:
    """The action that silences a finding with a comment; None if no row can take one."""
    edits = text_edits(source, silence(source, [finding]), units)
    if not edits:
        return None
    return types.CodeAction(
        title=f"{finding.code}: ignore it here",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[shown],
        edit=types.WorkspaceEdit(changes={uri: edits}),
    )


def replacement(old: str, new: str, units: Units) -> types.TextEdit:
    """One edit that makes ``new`` of ``old`` and leaves alone what they begin and end with."""
    source = SourceFile("", b"")
    source.text = old
    start = _common(old, new)
    end = min(_common(old[::-1], new[::-1]), len(old) - start, len(new) - start)
    edit = Edit("", start, len(old) - end, new[start : len(new) - end])
    return text_edits(source, [edit], units)[0]


def _common(left: str, right: str) -> int:
    """How many characters two texts begin with together."""
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def within(range_: types.Range, position: types.Position) -> bool:
    """Whether a position is in a range, its end included."""
    return range_.start <= position <= range_.end


def touches(one: types.Range, other: types.Range) -> bool:
    """Whether two ranges share a position."""
    return one.start <= other.end and other.start <= one.end


def by_path(findings: Iterable[Finding]) -> Mapping[str, list[Finding]]:
    """Findings by the absolute path of their file."""
    sorted_out: dict[str, list[Finding]] = {}
    for finding in findings:
        sorted_out.setdefault(str(Path(finding.path).absolute()), []).append(finding)
    return sorted_out
