"""The findings of each file under its name."""

from __future__ import annotations

from itertools import groupby

from sampler_lint.reporters import Outcome
from sampler_lint.reporters.text import Painter, closing, marked, visible


def render(outcome: Outcome) -> str:
    """Every file with findings, then the summary."""
    paint = Painter(outcome)
    lines: list[str] = []
    for path, findings in groupby(outcome.shown, key=lambda finding: finding.path):
        lines.append(f"{paint('bold', visible(path))}:\n")
        for each in findings:
            place = each.place.removeprefix(f"{each.path}:")
            lines.append(f"  {place:>8} {marked(each, outcome, paint)} {visible(each.message)}\n")
        lines.append("\n")
    return "".join([*lines, closing(outcome)])
