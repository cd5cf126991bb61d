"""JUnit's XML, which most build servers show: a suite for each file, a failure for each finding.

https://github.com/testmoapp/junitxml
"""

from __future__ import annotations

from itertools import groupby
from xml.etree import ElementTree

from sampler_lint.findings import Finding
from sampler_lint.reporters import Outcome
from sampler_lint.reporters.text import heading, visible


def render(outcome: Outcome) -> str:
    """One document; a run without findings is one test that passed."""
    count = str(len(outcome.findings))
    root = ElementTree.Element("testsuites", name="sampler-lint", tests=count, failures=count)
    for path, findings in groupby(outcome.findings, key=lambda finding: finding.path):
        suite = _suite(root, path)
        for finding in findings:
            _failure(suite, finding, outcome)
            suite.set("tests", str(len(suite)))
            suite.set("failures", str(len(suite)))
    if not outcome.findings:
        suite = _suite(root, "sampler-lint")
        suite.set("tests", "1")
        suite.set("failures", "0")
        ElementTree.SubElement(suite, "testcase", name="No findings", classname="sampler-lint")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: ElementTree.Element, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        root, "testsuite", name=visible(name), package="sampler-lint", errors="0", skipped="0"
    )


def _failure(suite: ElementTree.Element, finding: Finding, outcome: Outcome) -> None:
    path = visible(finding.path)
    case = ElementTree.SubElement(
        suite,
        "testcase",
        name=f"{finding.code} at line {finding.in_file[0].row}",
        classname=path.removesuffix(".py"),
        file=path,
        line=str(finding.in_file[0].row),
    )
    message = visible(finding.message)
    failure = ElementTree.SubElement(case, "failure", message=message, type=finding.code)
    failure.text = heading(finding, outcome)
