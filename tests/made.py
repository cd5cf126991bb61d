"""Findings and fixes made by hand, for tests of what is done with them."""

from __future__ import annotations

from pathlib import Path

from sampler_lint.findings import Applicability, Edit, Finding, Fix, Position

SAFE, UNSAFE, DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY


def finding(
    *edits: tuple[int, int, str] | Edit,
    applicability: Applicability = SAFE,
    row: int = 1,
    path: str = "a.py",
    code: str = "SMP101",
) -> Finding:
    """A finding at the begin of a row, whose fix makes the edits."""
    made = tuple(edit if isinstance(edit, Edit) else Edit(path, *edit) for edit in edits)
    place = Position(row, 1)
    return Finding(code, "text", path, place, place, Fix("Change it", applicability, made))


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in folder.iterdir())
