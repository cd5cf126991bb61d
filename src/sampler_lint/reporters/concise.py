"""One line a finding, for people and for editors that know ``path:row:column: text``."""

from __future__ import annotations

from sampler_lint.reporters import Outcome
from sampler_lint.reporters.text import Painter, closing, heading


def render(outcome: Outcome) -> str:
    """Every finding, then the summary."""
    paint = Painter(outcome)
    lines = [f"{heading(each, outcome, paint)}\n" for each in outcome.shown]
    return "".join([*lines, closing(outcome)])
