"""One finding a line, each as in the JSON format, so that a reader can begin at once."""

from __future__ import annotations

import json

from sampler_lint.reporters import Outcome
from sampler_lint.reporters.json import records

SHOWS_EDITS = True


def render(outcome: Outcome) -> str:
    """Every finding as a line of its own; nothing if there is none."""
    return "".join(json.dumps(record) + "\n" for record in records(outcome))
