"""Logging commands, which Azure Pipelines shows in a run's summary.

https://learn.microsoft.com/en-us/azure/devops/pipelines/scripts/logging-commands
"""

from __future__ import annotations

import os

from sampler_lint.reporters import Outcome
from sampler_lint.reporters.text import heading, visible


def render(outcome: Outcome) -> str:
    """A command for each finding, and for each file that could not be checked."""
    lines = []
    for finding in outcome.findings:
        start, _ = finding.in_file
        more = {
            "linenumber": str(start.row),
            "columnnumber": str(start.column),
            "code": finding.code,
        }
        # It knows no third level.
        level = "error" if finding.level == "error" else "warning"
        lines.append(_command(finding.path, more, heading(finding, outcome, whole=True), level))
    for error in outcome.errors:
        more = {"linenumber": str(error.row)} if error.row else {}
        lines.append(_command(error.path, more, str(error)))
    return "".join(lines)


def _command(path: str, more: dict[str, str], text: str, level: str = "error") -> str:
    properties = {"type": level, "sourcepath": os.path.abspath(path), **more}
    listed = "".join(f"{name}={_property(value)};" for name, value in properties.items())
    return f"##vso[task.logissue {listed}]{_data(text)}\n"


def _data(text: str) -> str:
    return visible(text).replace("%", "%AZP25")


def _property(text: str) -> str:
    return _data(text).replace(";", "%3B").replace("]", "%5D")
