"""Workflow commands, which GitHub shows beside the lines of a pull request.

https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
A line end in a message would begin another command, so it never reaches the output.
"""

from __future__ import annotations

import os

from sampler_lint.findings import FileError, Finding
from sampler_lint.reporters import Outcome
from sampler_lint.reporters.text import heading, visible


def render(outcome: Outcome) -> str:
    """A command for each finding, and for each file that could not be checked.

    GitHub shows the text after the second pair of colons.
    """
    lines = [_of_finding(each, outcome) for each in outcome.findings]
    lines += map(_of_error, outcome.errors)
    return "".join(f"{line}\n" for line in lines)


def _of_error(error: FileError) -> str:
    properties = {"title": "sampler-lint", "file": os.path.abspath(error.path)}
    if error.row:
        properties["line"] = str(error.row)
    return _command(properties, str(error))


def _of_finding(finding: Finding, outcome: Outcome) -> str:
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
    level = "notice" if finding.level == "note" else finding.level
    return _command(properties, heading(finding, outcome, whole=True), level)


def _command(properties: dict[str, str], text: str, level: str = "error") -> str:
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {listed}::{_data(text)}"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
