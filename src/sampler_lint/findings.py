"""What the rules say: findings, and the fixes that go with them.

Positions follow ruff: rows and columns are 1-based and columns count characters. Edits are
character offsets into :attr:`sampler_lint.source.SourceFile.text`, which keeps every newline
as it stands in the file, so nothing outside an edit can change.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Applicability(enum.Enum):
    """How far a fix may be trusted (the words are ruff's)."""

    SAFE = "safe"
    """The program's meaning changes only by losing the bug; ``--fix`` applies it."""
    UNSAFE = "unsafe"
    """Right in most programs, but needs a person's eye; ``--unsafe-fixes`` applies it."""
    DISPLAY = "display-only"
    """Shown, never applied."""


class Grade(enum.Enum):
    """How sure a finding is."""

    CERTAIN = "certain"
    """Nothing that it rests on is unknown."""
    LIKELY = "likely"
    """Something beside what it rests on is unknown: told on request, no reason to fail."""


class Severity(enum.Enum):
    """What a bug costs, the least first."""

    WARNING = "warning"
    """The right data is read; an option, a count or a later run is not what it seems."""
    ERROR = "error"
    """A run stops, or reads other data than it should, or in another order."""


class Position(NamedTuple):
    """A place in a file: 1-based row, 1-based column in characters."""

    row: int
    column: int


class Cell(NamedTuple):
    """The cell of a notebook that a place is in."""

    number: int
    """Its place among all cells, from 1."""
    first_row: int
    """The row of its first line in the Python text that stands for the notebook."""
    file_row: int
    """The row of the notebook's own JSON that holds the place's line."""


class Place(NamedTuple):
    """Where something stands, in any file."""

    path: str
    """The file, spelled as in :attr:`Finding.path`."""
    start: Position
    cell: Cell | None = None
    """Where the file is a notebook; ``start`` is in the text made of it."""

    @property
    def shown(self) -> Position:
        """``start``, counted from the first row of its cell in a notebook."""
        above = self.cell.first_row - 1 if self.cell else 0
        return Position(self.start.row - above, self.start.column)

    @property
    def in_file(self) -> Position:
        """``start`` in the file as it is on disk; the whole line in a notebook."""
        return Position(self.cell.file_row, 1) if self.cell else self.start

    def __str__(self) -> str:
        """For people: ``data.py:40``; in a notebook the cell and its line."""
        if self.cell is None:
            return f"{self.path}:{self.start.row}"
        return f"{self.path}: cell {self.cell.number}, line {self.shown.row}"


class Related(NamedTuple):
    """A place that a finding rests on."""

    place: Place | str
    """The name of a library's class, where no file of the tree holds it; empty for none."""
    text: str
    """What is there, e.g. ``loader built here``."""

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


class Edit(NamedTuple):
    """Replace characters ``start`` to ``end`` (exclusive) of the file ``path`` by ``content``."""

    path: str
    start: int
    end: int
    content: str


class Refuted(str):
    """A reason against a fix that is known and not only possible: with it, the program is wrong.

    Such a fix is shown with its reason, and never applied.
    """

    __slots__ = ()


class Doubted(str):
    """A rule's own reason against a fix, of which the fixed text may tell that it holds."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that removes the bug: all of its edits are made, or none."""

    message: str
    """What the fix does, as an imperative sentence without full stop."""
    applicability: Applicability
    edits: Sequence[Edit]
    """By file and place. Empty where they were not asked for (see :func:`engine.check`)."""
    unsafe: str = ""
    """What speaks against making it without a look at it, or at all, as far as that was told."""

    @property
    def paths(self) -> frozenset[str]:
        """The files the fix touches."""
        return frozenset(edit.path for edit in self.edits)


@dataclass(frozen=True, slots=True)
class Finding:
    """One bug at one place."""

    code: str
    message: str
    """What is wrong, in one line, with the user's own names."""
    path: str
    """The file, spelled as the user gave it (or relative to what they gave)."""
    start: Position
    end: Position
    fix: Fix | None = None
    why: tuple[Related, ...] = ()
    """The chain of places the finding rests on."""
    cell: Cell | None = None
    """Where the file is a notebook; ``start`` and ``end`` are rows of the text made of it."""
    grade: Grade = Grade.CERTAIN
    severity: Severity = Severity.ERROR
    candidates: tuple[Fix, ...] = ()
    """Other changes that may be meant; only a run can tell which one."""
    effect: str = ""
    """What happens at run time; empty where the message says it."""
    advice: str = ""
    """What to do, as an imperative sentence without full stop."""
    hides: bool = False
    """Whether others may not be found while it stands, see :class:`.rules.Suspect`."""

    @property
    def whole(self) -> str:
        """All that is said of it in one line, for formats that have only one text."""
        said = f"{self.message}: {self.effect}" if self.effect else self.message
        return f"{said}; {self.advice}" if self.advice else said

    @property
    def place(self) -> str:
        """Where it begins, for people: path, the cell in a notebook, row, column."""
        start, _ = self.shown
        cell = f"cell {self.cell.number}:" if self.cell else ""
        return f"{self.path}:{cell}{start.row}:{start.column}"

    @property
    def shown(self) -> tuple[Position, Position]:
        """Where it begins and ends, counted from the first row of its cell in a notebook."""
        above = self.cell.first_row - 1 if self.cell else 0
        return (
            Position(self.start.row - above, self.start.column),
            Position(self.end.row - above, self.end.column),
        )

    @property
    def in_file(self) -> tuple[Position, Position]:
        """Where it begins and ends in the file as it is on disk; whole lines in a notebook."""
        if self.cell is None:
            return self.start, self.end
        last = self.cell.file_row + self.end.row - self.start.row
        return Position(self.cell.file_row, 1), Position(last, 1)

    @property
    def places(self) -> list[Place]:
        """The places in the tree that it rests on; see ``why``."""
        return [each.place for each in self.why if isinstance(each.place, Place)]

    @property
    def label(self) -> str:
        """The code, for people: it says so where the finding is only likely."""
        return self.code if self.grade is Grade.CERTAIN else f"{self.code} ({self.grade.value})"

    @property
    def level(self) -> str:
        """For formats with one scale: its severity, or ``note`` where it is only likely."""
        return "note" if self.grade is Grade.LIKELY else self.severity.value

    @property
    def sort_key(self) -> tuple[str, Position, str, str]:
        """Findings are reported by file, place, code."""
        return (self.path, self.start, self.code, self.message)


@dataclass(frozen=True, slots=True)
class FileError:
    """A file that could not be read, decoded, parsed, written or checked: one line, exit 2."""

    path: str
    reason: str
    row: int | None = None
    traceback: str = field(default="", compare=False, repr=False)
    """Where this linter failed, if it is the linter's own fault."""

    def __str__(self) -> str:
        place = f"{self.path}:{self.row}" if self.row else self.path
        return f"{place}: {self.reason}"
