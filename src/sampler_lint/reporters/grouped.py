"""The findings of each file under its name."""

from __future__ import annotations

from itertools import groupby

from sampler_lint.reporters import Outcome
from sampler_lint.reporters.text import Painter, marked, summary, visible


def render(outcome: Outcome) -> str:
    """Every file with findings, then the summary."""
    paint = Painter(outcome)
    lines: list[str] = []
    for path, findings in groupby(outcome.shown, key=lambda finding: finding.path):
        lines.append(f"{paint('bold', visible(path))}:")
        for each in findings:
            place = each.place.removeprefix(f"{each.path}:")
            lines.append(f"  {place:>8} {marked(each, outcome, paint)} {visible(each.message)}")
        lines.append("")
    return "\n".join([*lines, summary(outcome)]) + "\n"
