"""SARIF 2.1.0, which GitHub code scanning and many editors read.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sampler_lint import __version__
from sampler_lint.findings import Edit, FileError, Finding, Position, Related
from sampler_lint.fingerprints import fingerprints
from sampler_lint.reporters import SITE, Outcome, rule_url
from sampler_lint.reporters._links import below, uri

SHOWS_EDITS = True

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT = "%SRCROOT%"


def render(outcome: Outcome) -> str:
    """One run; suppressed findings are in it, marked so, where they are shown.

    What could not be checked is no result, but says that the run is not whole.
    """
    findings = outcome.shown
    codes = sorted({each.code for each in findings})
    prints = fingerprints(findings, outcome.sources)
    run = {
        "tool": {
            "driver": {
                "name": "sampler-lint",
                "informationUri": SITE,
                "semanticVersion": __version__,
                "version": __version__,
                "rules": [_rule(code, outcome) for code in codes],
            }
        },
        "invocations": [_invocation(outcome.errors)],
        "originalUriBaseIds": {_ROOT: {"uri": f"{Path(os.getcwd()).as_uri()}/"}},
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(each, codes.index(each.code), fingerprint, outcome)
            for each, fingerprint in zip(findings, prints, strict=True)
        ],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _invocation(errors: Sequence[FileError]) -> dict[str, Any]:
    """How the run went: a notification for each file that could not be checked."""
    invocation: dict[str, Any] = {"executionSuccessful": not errors}
    if errors:
        invocation["toolExecutionNotifications"] = [
            {
                "level": "error",
                "message": {"text": each.reason},
                "locations": [_location(each.path, {"startLine": each.row} if each.row else None)],
            }
            for each in errors
        ]
    return invocation


def _rule(code: str, outcome: Outcome) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": code}
    if url := rule_url(code):
        shown["helpUri"] = url
    text = outcome.rules().get(code)
    if text is not None:
        shown["name"] = text.name
        shown["shortDescription"] = {"text": text.summary}
        shown["help"] = {"text": text.page, "markdown": text.page}
    return shown


def _result(finding: Finding, index: int, fingerprint: str, outcome: Outcome) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": finding.level,
        "message": {"text": finding.whole},
        "locations": [_location(finding.path, _region(*finding.in_file))],
        "partialFingerprints": {"samplerLint/v1": fingerprint},
        "properties": {"grade": finding.grade.value, "severity": finding.severity.value},
    }
    if finding.why:
        result["relatedLocations"] = [_related(each) for each in finding.why]
    if finding in outcome.suppressed:
        result["suppressions"] = [{"kind": "inSource"}]
    # Its edits are places in the cells of a notebook, not in the file.
    fix = finding.fix and finding.cell is None and _fix(finding, outcome)
    if fix:
        result["fixes"] = [fix]
    return result


def _related(related: Related) -> dict[str, Any]:
    """A place the finding rests on; only a message where no file of the tree holds it."""
    place = related.place
    if isinstance(place, str):
        return {"message": {"text": str(related)}}
    start = place.in_file
    region = {"startLine": start.row, "startColumn": start.column}
    return {**_location(place.path, region), "message": {"text": related.text}}


def _location(path: str, region: dict[str, int] | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _artifact(path)}
    if region is not None:
        place["region"] = region
    return {"physicalLocation": place}


def _artifact(path: str) -> dict[str, str]:
    return {"uri": uri(path)} if below(path) is None else {"uri": uri(path), "uriBaseId": _ROOT}


def _region(start: Position, end: Position) -> dict[str, int]:
    return {
        "startLine": start.row,
        "startColumn": start.column,
        "endLine": end.row,
        "endColumn": end.column,
    }


def _fix(finding: Finding, outcome: Outcome) -> dict[str, Any] | None:
    """The fix whole, or None when a file of it cannot be read any more."""
    assert finding.fix is not None
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in finding.fix.edits:
        replacement = _replacement(edit, outcome)
        if replacement is None:
            return None
        changes.setdefault(edit.path, []).append(replacement)
    return {
        "description": {"text": finding.fix.message},
        "artifactChanges": [
            {"artifactLocation": _artifact(path), "replacements": replacements}
            for path, replacements in changes.items()
        ],
    }


def _replacement(edit: Edit, outcome: Outcome) -> dict[str, Any] | None:
    source = outcome.sources(edit.path)
    if source is None:
        return None
    region = _region(source.position(edit.start), source.position(edit.end))
    return {"deletedRegion": region, "insertedContent": {"text": edit.content}}
