"""Findings in the protocol's words: zero-based lines, and columns in the client's units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from lsprotocol import types

from sampler_lint.findings import Applicability, Cell, Edit, Finding, Position
from sampler_lint.fixing import apply_edits
from sampler_lint.language_server.edited import common
from sampler_lint.language_server.notebooks import OpenNotebook
from sampler_lint.reporters import rule_url
from sampler_lint.source import NOTEBOOK, SourceFile
from sampler_lint.suppressions import silence

SOURCE = "sampler-lint"

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Hint,
}

#: How many units of the client (UTF-16 unless it said otherwise) a text takes.
Units = Callable[[str], int]
#: The file at an absolute path as the editor has it; None if it cannot be read.
Files = Callable[[str], "SourceFile | None"]


def place(source: SourceFile, position: Position, units: Units) -> types.Position:
    """A row and column of ours as the client counts them."""
    head = source.line(position.row)[: position.column - 1]
    return types.Position(position.row - 1, units(head))


def span(source: SourceFile, finding: Finding, units: Units) -> types.Range:
    """Where a finding stands, in its cell if that is a notebook's."""
    ends = [place(source, each, units) for each in (finding.start, finding.end)]
    return types.Range(*(in_cell(end, finding.cell) for end in ends))


def in_cell(position: types.Position, cell: Cell | None) -> types.Position:
    """A position in the text of a notebook as one in its cell."""
    above = cell.first_row - 1 if cell else 0
    return types.Position(position.line - above, position.character)


def diagnostic(
    finding: Finding, source: SourceFile, files: Files, units: Units
) -> types.Diagnostic:
    """A finding as a diagnostic; the places it rests on are its related information."""
    return types.Diagnostic(
        range=span(source, finding, units),
        message="\n".join(filter(None, (finding.message, finding.effect, finding.advice))),
        severity=_SEVERITIES[finding.level],
        code=finding.code,
        code_description=types.CodeDescription(url) if (url := rule_url(finding.code)) else None,
        source=SOURCE,
        related_information=list(_related(finding, files, units)),
    )


def _related(
    finding: Finding, files: Files, units: Units
) -> Iterator[types.DiagnosticRelatedInformation]:
    for related in finding.why:
        if isinstance(related.place, str):
            continue
        path, start, cell = related.place
        path = str(Path(path).absolute())
        source, uri = files(path), Path(path).as_uri()
        if source is None:
            continue
        if cell is not None:
            if not isinstance(source, OpenNotebook) or cell.number > len(source.cells):
                continue  # an editor shows cells, and cannot be sent to a line of the file
            uri = source.cells[cell.number - 1]
        at = in_cell(place(source, start, units), cell)
        yield types.DiagnosticRelatedInformation(
            types.Location(uri, types.Range(at, at)), related.text
        )


def text_edits(source: SourceFile, edits: Iterable[Edit], units: Units) -> list[types.TextEdit]:
    """The edits of one file."""

    def at(offset: int) -> types.Position:
        return place(source, source.position(offset), units)

    return [
        types.TextEdit(types.Range(at(edit.start), at(edit.end)), edit.content) for edit in edits
    ]


def cell_edits(
    notebook: OpenNotebook, data: bytes, units: Units
) -> dict[str, list[types.TextEdit]]:
    """The edits, by cell, that make of a notebook the one with the bytes ``data``."""
    return {uri: [replacement(old, new, units)] for uri, old, new in notebook.changed(data)}


def _changes(
    source: SourceFile, uri: str, edits: Iterable[Edit], units: Units
) -> dict[str, list[types.TextEdit]] | None:
    """The edits of one file by document; None if the editor cannot make them."""
    if not isinstance(source, OpenNotebook):
        closed = source.path.endswith(NOTEBOOK)
        return None if closed else {uri: text_edits(source, edits, units)}
    try:
        data = source.encode(apply_edits(source.text, list(edits)))
    except ValueError:  # NotebookError: it joins or parts cells
        return None
    return cell_edits(source, data, units)


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
        changed = _changes(source, Path(path).as_uri(), edits, units)
        if changed is None:
            return None
        changes |= changed
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
    edits = silence(source, [finding])
    changes = _changes(source, uri, edits, units) if edits else None
    if changes is None:
        return None
    return types.CodeAction(
        title=f"{finding.code}: ignore it here",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[shown],
        edit=types.WorkspaceEdit(changes=changes),
    )


def replacement(old: str, new: str, units: Units) -> types.TextEdit:
    """One edit that makes ``new`` of ``old`` and leaves alone what they begin and end with."""
    source = SourceFile("", b"")
    source.text = old
    start = common(old, new)
    end = min(common(old[::-1], new[::-1]), len(old) - start, len(new) - start)
    edit = Edit("", start, len(old) - end, new[start : len(new) - end])
    return text_edits(source, [edit], units)[0]


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
