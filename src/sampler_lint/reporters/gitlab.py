"""GitLab's Code Quality report, with a fingerprint that lasts while lines move.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from sampler_lint.findings import FileError
from sampler_lint.fingerprints import fingerprints, relative_to
from sampler_lint.reporters import NOT_CHECKED, Outcome

_SEVERITIES = {"error": "major", "warning": "minor", "note": "info"}


def render(outcome: Outcome) -> str:
    """All findings as one array, and the files that could not be checked.

    Paths are relative to the project that CI checked out.
    """
    root = os.environ.get("CI_PROJECT_DIR", "")
    prints = fingerprints(outcome.findings, outcome.sources, root)
    issues: list[dict[str, Any]] = [
        {
            "check_name": each.code,
            "description": f"{each.label}: {each.whole}",
            "fingerprint": fingerprint,
            "location": {
                "path": relative_to(each.path, root),
                "positions": {
                    name: {"line": position.row, "column": position.column}
                    for name, position in zip(("begin", "end"), each.in_file, strict=True)
                },
            },
            "severity": _SEVERITIES[each.level],
        }
        for each, fingerprint in zip(outcome.findings, prints, strict=True)
    ]
    issues += [_of_error(each, root) for each in outcome.errors]
    return json.dumps(issues, indent=2) + "\n"


def _of_error(error: FileError, root: str) -> dict[str, Any]:
    path = relative_to(error.path, root)
    named = f"{path}\0{error.reason}".encode("utf-8", "surrogatepass")
    return {
        "check_name": NOT_CHECKED,
        "description": f"could not be checked: {error.reason}",
        "fingerprint": hashlib.sha256(named).hexdigest(),
        "location": {"path": path, "lines": {"begin": error.row or 1}},
        "severity": "critical",
    }
