"""The page with what every rule says, side by side, made from what the tests expect it to say."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

PATH = "docs/messages.md"

_INTRODUCTION = """\
# What findings say

A finding says what is wrong in one line. A `note` says what happens at run time, `help` what to do.
Below is every wording once, from the fixtures and small programs of the tests. Of {count} different
messages half have at most {median:.0f} characters, and the longest has {longest}.
"""

_FINDING = re.compile(r"\S+:\d+:\d+-\d+:\d+ (?P<code>SMP\d{3})(?: \(likely\))? \S+ (?P<text>.+)")
_MORE = re.compile(r" {4}((?:note|help): .+)")
_PLACE = re.compile(r"note: \S+\.(?:py|ipynb)(?:\S* \d+)?:\d")


def page(comment: str, expected: Iterable[Path]) -> str:
    """The page; ``comment`` says what makes it.

    Args:
        comment: The first line.
        expected: Files with expected findings, in the order in which a wording is looked for.
    """
    said: dict[str, dict[str, list[str]]] = defaultdict(dict)
    lengths: dict[str, int] = {}
    for path in expected:
        for code, block in findings(path.read_text(encoding="utf-8")):
            lengths[block[0]] = len(block[0])
            said[code].setdefault(re.sub(r"`[^`]*`|\d+", "", block[0]), block)
    median, longest = statistics.median(lengths.values()), max(lengths.values())
    figures = {"count": len(lengths), "median": median, "longest": longest}
    lines = [f"{comment}\n{_INTRODUCTION.format(**figures)}"]
    for code, blocks in sorted(said.items()):
        lines.append(f"## [{code}](rules/{code.lower()}.md)\n")
        for first, *rest in blocks.values():
            lines.append("\n".join([f"- {first}", *(f"    - {line}" for line in rest), ""]))
    return "\n".join(lines)


def findings(expected: str) -> list[tuple[str, list[str]]]:
    """Code, message and notes (but for those about places) of the findings in a test's text."""
    found: list[tuple[str, list[str]]] = []
    block: list[str] = []
    for line in expected.splitlines():
        if first := _FINDING.fullmatch(line):
            block = [first["text"]]
            found.append((first["code"], block))
        elif more := _MORE.fullmatch(line):
            if block and not _PLACE.match(more[1]):
                block.append(more[1])
        else:
            block = []
    return found
