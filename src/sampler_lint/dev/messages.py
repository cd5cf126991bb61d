"""The page with what every rule says, side by side, made from what it says of its fixtures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

PATH = "docs/messages.md"

_INTRODUCTION = """\
# What findings say

A finding says what is wrong in one line. A `note` says what happens at run time, `help` what to do.
Below is what each rule says of its fixtures, every wording once.
"""

_FINDING = re.compile(r"\S+:\d+:\d+-\d+:\d+ (?P<code>SMP\d{3})(?: \(likely\))? \S+ (?P<text>.+)")


def page(comment: str, fixtures: Iterable[Path]) -> str:
    """The page; ``comment`` says what makes it."""
    lines = [f"{comment}\n{_INTRODUCTION}"]
    for code, folders in groupby(sorted(fixtures), key=lambda folder: folder.parent.name):
        said: dict[str, list[str]] = {}
        for folder in folders:
            for block in _blocks((folder / "expected.txt").read_text(encoding="utf-8"), code):
                said.setdefault(re.sub(r"`[^`]*`|\d+", "", block[0]), block)
        lines.append(f"## [{code}](rules/{code.lower()}.md)\n")
        for first, *rest in said.values():
            lines.append("\n".join([f"- {first}", *(f"    - {line}" for line in rest), ""]))
    return "\n".join(lines)


def _blocks(expected: str, code: str) -> Iterator[list[str]]:
    """The code's findings in an ``expected.txt``: what each says, and its notes without places."""
    block: list[str] = []
    for line in expected.splitlines():
        if found := _FINDING.fullmatch(line):
            if block:
                yield block
            block = [found["text"]] if found["code"] == code else []
        elif block and not re.match(r" +note: \S+\.py:\d", line):
            block.append(line.strip())
    if block:
        yield block
