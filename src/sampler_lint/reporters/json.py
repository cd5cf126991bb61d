"""JSON in ruff's shape, so that tools which read ``ruff check --output-format json`` can read it.

Additions: ``grade`` (``certain`` or ``likely``), ``severity`` (``error`` or ``warning``),
``related`` (the places a finding rests on; ``why`` is the same as text), ``filename``
in an edit that changes another file than the finding's and, with ``--verify``, a record with
``proof`` for each fix that was tried. Pure ASCII, so that names which are not valid Unicode
survive any terminal encoding. The shape: https://docs.astral.sh/ruff/settings/#output-format
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from sampler_lint.findings import Edit, FileError, Finding, Position, Related
from sampler_lint.reporters import NOT_CHECKED, Outcome, rule_url

SHOWS_EDITS = True


def render(outcome: Outcome) -> str:
    """All findings as one array."""
    return json.dumps(list(records(outcome)), indent=2) + "\n"


def records(outcome: Outcome) -> Iterator[dict[str, Any]]:
    """Each finding as a JSON object, and each file that could not be checked.

    ``suppressed`` is in it where a comment silences it.
    """
    for each in outcome.shown:
        record = _finding(each, outcome)
        if each in outcome.suppressed:
            record["suppressed"] = True
        yield record
    for each, verdict, evidence in outcome.fix_report.proofs if outcome.fix_report else ():
        record = _finding(each, outcome)
        if each.fix is not None:  # the places of its edits are those of a text that is gone
            applicability = each.fix.applicability.value
            record["fix"] = {
                "applicability": applicability,
                "edits": [],
                "message": each.fix.message,
            }
        yield {**record, "proof": {"verdict": verdict, "evidence": evidence}}
    yield from map(_error, outcome.errors)


def _error(error: FileError) -> dict[str, Any]:
    """A file that could not be checked; ``code`` is a string there too, as in ruff's JSON."""
    place = _location(Position(error.row or 1, 1))
    return {
        "cell": None,
        "code": NOT_CHECKED,
        "end_location": place,
        "filename": os.path.abspath(error.path),
        "fix": None,
        "help": "",
        "location": place,
        "message": error.reason,
        "note": "",
        "noqa_row": None,
        "related": [],
        "url": None,
        "why": [],
    }


def _finding(finding: Finding, outcome: Outcome) -> dict[str, Any]:
    return {
        "cell": each.number if (each := finding.cell) else None,
        "code": finding.code,
        "end_location": _location(finding.shown[1]),
        "filename": os.path.abspath(finding.path),
        "fix": _fix(finding, outcome),
        "grade": finding.grade.value,
        "help": finding.advice,
        "location": _location(finding.shown[0]),
        "message": finding.message,
        "note": finding.effect,
        "noqa_row": finding.shown[0].row,
        "severity": finding.severity.value,
        "url": rule_url(finding.code),
        "related": [_related(each) for each in finding.why],
        "why": list(map(str, finding.why)),
    }


def _related(related: Related) -> dict[str, Any]:
    """A place the finding rests on; without a file where it is in none of the tree."""
    if isinstance(related.place, str):
        return {"message": str(related)}
    return {
        "cell": cell.number if (cell := related.place.cell) else None,
        "filename": os.path.abspath(related.place.path),
        "location": _location(related.place.shown),
        "message": related.text,
    }


def _fix(finding: Finding, outcome: Outcome) -> dict[str, Any] | None:
    if finding.fix is None:
        return None
    edits = [_edit(edit, finding, outcome) for edit in finding.fix.edits]
    if None in edits:
        return None  # all of its edits, or none
    return {
        "applicability": finding.fix.applicability.value,
        "edits": edits,
        "message": finding.fix.message,
        **({"unsafe": finding.fix.unsafe} if finding.fix.unsafe else {}),
    }


def _edit(edit: Edit, finding: Finding, outcome: Outcome) -> dict[str, Any] | None:
    source = outcome.sources(edit.path)
    if source is None:
        return None
    start, end = (source.position(offset) for offset in (edit.start, edit.end))
    cell = source.cell_of(start.row)
    above = cell.first_row - 1 if cell else 0
    shown: dict[str, Any] = {
        "content": edit.content,
        "end_location": _location(Position(end.row - above, end.column)),
        "location": _location(Position(start.row - above, start.column)),
    }
    if cell:
        shown["cell"] = cell.number
    if edit.path != finding.path:
        shown["filename"] = os.path.abspath(edit.path)
    return shown


def _location(position: Position) -> dict[str, int]:
    return {"column": position.column, "row": position.row}
