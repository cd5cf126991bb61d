"""reviewdog's format: comments on a pull request, with fixes as suggestions.

https://github.com/reviewdog/reviewdog/tree/master/proto/rdf (columns count bytes of UTF-8)
"""

from __future__ import annotations

import json
from typing import Any

from sampler_lint.findings import FileError, Finding, Position
from sampler_lint.fingerprints import relative_to
from sampler_lint.reporters import SITE, Outcome, rule_url
from sampler_lint.source import SourceFile

SHOWS_EDITS = True

_SEVERITIES = {"error": "ERROR", "warning": "WARNING", "note": "INFO"}


def render(outcome: Outcome) -> str:
    """All findings as one document, and the files that could not be checked."""
    document = {
        "source": {"name": "sampler-lint", "url": SITE},
        "diagnostics": [
            *(_diagnostic(each, outcome) for each in outcome.findings),
            *map(_error, outcome.errors),
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _error(error: FileError) -> dict[str, Any]:
    """A file that could not be checked."""
    location: dict[str, Any] = {"path": relative_to(error.path)}
    if error.row:
        location["range"] = {"start": {"line": error.row}}
    return {"message": error.reason, "location": location, "severity": "ERROR"}


def _diagnostic(finding: Finding, outcome: Outcome) -> dict[str, Any]:
    source = outcome.sources(finding.path)
    shown: dict[str, Any] = {
        "message": finding.whole,
        "location": {
            "path": relative_to(finding.path),
            "range": _range(source, *finding.in_file),
        },
        "severity": _SEVERITIES[finding.level],
        "code": {
            "value": finding.code,
            **({"url": url} if (url := rule_url(finding.code)) else {}),
        },
    }
    # A suggestion can only change lines of the same file.
    if (
        source is not None
        and finding.cell is None
        and outcome.applicable(finding)
        and finding.fix is not None
    ):
        edits = finding.fix.edits
        if all(edit.path == finding.path for edit in edits):
            shown["suggestions"] = [
                {
                    "range": _range(source, source.position(e.start), source.position(e.end)),
                    "text": e.content,
                }
                for e in edits
            ]
    return shown


def _range(source: SourceFile | None, start: Position, end: Position) -> dict[str, Any]:
    return {"start": _place(source, start), "end": _place(source, end)}


def _place(source: SourceFile | None, position: Position) -> dict[str, int]:
    before = source.line(position.row)[: position.column - 1] if source else ""
    wider = len(before.encode("utf-8", "surrogatepass")) - len(before)
    return {"line": position.row, "column": position.column + wider}
