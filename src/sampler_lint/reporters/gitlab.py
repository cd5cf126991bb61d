"""GitLab's Code Quality report, with a fingerprint that lasts while lines move.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
import os

from sampler_lint.fingerprints import fingerprints, relative_to
from sampler_lint.reporters import Outcome


def render(outcome: Outcome) -> str:
    """All findings as one array; paths are relative to the project that CI checked out."""
    root = os.environ.get("CI_PROJECT_DIR", "")
    prints = fingerprints(outcome.findings, outcome.sources, root)
    issues = [
        {
            "check_name": each.code,
            "description": f"{each.code}: {each.message}",
            "fingerprint": fingerprint,
            "location": {
                "path": relative_to(each.path, root),
                "positions": {
                    name: {"line": position.row, "column": position.column}
                    for name, position in zip(("begin", "end"), each.in_file, strict=True)
                },
            },
            "severity": "major",
        }
        for each, fingerprint in zip(outcome.findings, prints, strict=True)
    ]
    return json.dumps(issues, indent=2) + "\n"
