"""Logging commands, which Azure Pipelines shows in a run's summary.

https://learn.microsoft.com/en-us/azure/devops/pipelines/scripts/logging-commands
"""

from __future__ import annotations

import os

from sampler_lint.reporters import Outcome
from sampler_lint.reporters.text import heading, visible


def render(outcome: Outcome) -> str:
    """A command for each finding."""
    lines = []
    for finding in outcome.findings:
        start, _ = finding.in_file
        properties = {
            "type": "error",
            "sourcepath": os.path.abspath(finding.path),
            "linenumber": str(start.row),
            "columnnumber": str(start.column),
            "code": finding.code,
        }
        listed = "".join(f"{name}={_property(value)};" for name, value in properties.items())
        lines.append(f"##vso[task.logissue {listed}]{_data(heading(finding, outcome))}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return visible(text).replace("%", "%AZP25")


def _property(text: str) -> str:
    return _data(text).replace(";", "%3B").replace("]", "%5D")
