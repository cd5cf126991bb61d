"""JUnit's XML, which most build servers show: a suite for each file, a failure for each finding.

A likely finding is a test that was skipped, with what it says; a file that could not be checked
is an error.
https://github.com/testmoapp/junitxml
"""

from __future__ import annotations

from xml.etree import ElementTree

from sampler_lint.findings import FileError, Finding
from sampler_lint.reporters import NOT_CHECKED, Outcome
from sampler_lint.reporters.text import heading, visible

_COUNTS = (
    ("skipped", "skipped"),
    ("tests", "testcase"),
    ("failures", "failure"),
    ("errors", "error"),
)


def render(outcome: Outcome) -> str:
    """One document; a run with nothing to say is one test that passed."""
    root = ElementTree.Element("testsuites", name="sampler-lint")
    by_path: dict[str, list[Finding | FileError]] = {}
    every: list[Finding | FileError] = [*outcome.findings, *outcome.errors]
    for item in every:
        by_path.setdefault(visible(item.path), []).append(item)
    for path, items in by_path.items():
        suite = _suite(root, path)
        for item in items:
            if isinstance(item, FileError):
                case = _case(suite, path, "could not be checked", item.row)
                _problem(case, "error", item.reason, NOT_CHECKED, visible(str(item)))
            else:
                row = item.in_file[0].row
                case = _case(suite, path, f"{item.code} at line {row}", row)
                tag = "skipped" if item.level == "note" else "failure"
                _problem(case, tag, item.message, item.code, heading(item, outcome, whole=True))
    if not by_path:
        suite = _suite(root, "sampler-lint")
        ElementTree.SubElement(suite, "testcase", name="No findings", classname="sampler-lint")
    for element in (root, *root):
        for count, tag in _COUNTS:
            element.set(count, str(len(element.findall(f".//{tag}"))))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: ElementTree.Element, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(root, "testsuite", name=name, package="sampler-lint")


def _case(suite: ElementTree.Element, path: str, name: str, row: int | None) -> ElementTree.Element:
    case = ElementTree.SubElement(suite, "testcase", name=name, file=path)
    case.set("classname", path.removesuffix(".py"))
    if row:
        case.set("line", str(row))
    return case


def _problem(case: ElementTree.Element, tag: str, message: str, kind: str, text: str) -> None:
    ElementTree.SubElement(case, tag, message=visible(message), type=kind).text = text
