"""Workflow commands, which GitHub shows beside the lines of a pull request.

https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
A line end in a message would begin another command, so it never reaches the output.
"""

from __future__ import annotations

import os

from sampler_lint.findings import Finding
from sampler_lint.reporters import Outcome
from sampler_lint.reporters.text import heading, visible


def render(outcome: Outcome) -> str:
    """A command for each finding; GitHub shows the text after the second pair of colons."""
    return "".join(f"{_command(each, outcome)}\n" for each in outcome.findings)


def _command(finding: Finding, outcome: Outcome) -> str:
    start, end = finding.in_file
    properties = {
        "title": f"sampler-lint ({finding.code})",
        "file": os.path.abspath(finding.path),
        "line": str(start.row),
        "col": str(start.column),
        "endLine": str(end.row),
        "endColumn": str(end.column),
    }
    if start.row != end.row:
        # Columns are for findings within a line; GitHub drops an annotation that mixes them.
        del properties["col"], properties["endColumn"]
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::error {listed}::{_data(heading(finding, outcome))}"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
