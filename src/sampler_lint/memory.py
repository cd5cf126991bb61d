"""What a check said of a tree, kept for the next one while nothing it rests on has changed.

A tree's findings rest on every file's place and on the content of the files that the model
read. So they hold as long as no file came, went or changed; and also when a file changed that
said nothing about samplers, seeds or draws, still says nothing, and was led to by no import.
Whether a file changed is told by its signature; one that was changed just before it was read
is read again, since a later change might show the same times.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sampler_lint.cache import Cache, Signature, digest, is_racy, signature
from sampler_lint.findings import (
    Applicability,
    Cell,
    Edit,
    FileError,
    Finding,
    Fix,
    Grade,
    Place,
    Position,
    Related,
    Severity,
)
from sampler_lint.roots import leads_outside
from sampler_lint.source import (
    SourceError,
    is_candidate,
    names_a_rule,
    read_bytes,
    seeds_or_draws,
    setting_names,
)

#: Stands in for the state of files that have to be read again.
_RACY = "racy"


@dataclass(slots=True)
class TreeReport:
    """What there is to say about a tree, whoever asks about which of its files."""

    findings: list[tuple[str, bool, Finding]] = field(default_factory=list)
    """The file's absolute path, whether a comment silences the finding, the finding."""
    errors: dict[str, FileError] = field(default_factory=dict)
    """By absolute path, what kept the model from reading a file."""
    syntax_errors: dict[str, FileError] = field(default_factory=dict)
    """The same of files that the model did not need."""
    unparsed: set[str] = field(default_factory=set)
    """The files whose syntax is not known, by absolute path."""
    failures: list[FileError] = field(default_factory=list)
    """Rules that failed. A report with some is not kept."""


@dataclass(slots=True)
class _Entry:
    """A file as it was when it was read."""

    signature: Signature
    digest: str
    inert: bool
    """Whether no finding rests on its content."""
    racy: bool

    def as_json(self) -> list[Any]:
        return [*self.signature, self.digest, self.inert, self.racy]


class Memory:
    """The record of one tree, and how its files look now."""

    def __init__(self, cache: Cache, keys: Sequence[str], files: Iterable[str]) -> None:
        """Look at ``files`` (absolute paths), before anybody reads them.

        The first of the ``keys`` is that of the whole tree, the last that of a part of it.
        """
        self._cache = cache
        self._keys = keys
        self._key = keys[0]
        self._looked_at = time.time_ns()
        self._now = {path: signature(path) for path in sorted(files)}
        self._consulted: Mapping[str, str | None] = {}
        self._table: str | None = None
        """The files as they were when they were read; None if that cannot be told."""
        self._racy = False
        self._written: tuple[frozenset[str], str] | None = None
        """What of the record may have to change: the unparsed files, and the table."""

    def size(self, paths: Iterable[str]) -> int:
        """How many bytes the files hold together."""
        return sum(found[2] for path in paths if (found := self._now.get(path)))

    def recall(self) -> TreeReport | None:
        """What was said of the tree, or of the part of it, if it still holds."""
        for key in self._keys:
            self._key = key
            found = self._recall()
            if found is not None:
                return found
        return None

    def _recall(self) -> TreeReport | None:
        lines = self._cache.read(self._key)
        if lines is None or None in self._now.values():
            return None
        try:
            state, told, consulted, table = lines
            self._consulted = _table(json.loads(consulted))
            if any(consult(path) != found for path, found in self._consulted.items()):
                return None
            report = _report_from(json.loads(told), list(self._now))
            self._written = frozenset(report.unparsed), table
            changed: list[str] | None = []
            if state != self._state():
                entries = _entries_from(json.loads(table))
                changed = self._changed(entries)
                self._take(entries)
            else:
                self._table = table
        except (ValueError, TypeError, KeyError, IndexError, RecursionError):
            return None  # not as we write it
        if changed is None:
            return None
        for path in changed:
            report.syntax_errors.pop(path, None)
            report.unparsed.add(path)
        return report

    def _changed(self, entries: dict[str, _Entry]) -> list[str] | None:
        """The files that changed, none of which matters; None if something else did.

        The entries are brought up to date.
        """
        if entries.keys() != self._now.keys():
            return None
        changed = []
        for path, now in self._now.items():
            entry = entries[path]
            assert now is not None
            if now == entry.signature and not entry.racy:
                continue
            try:
                data = read_bytes(path)
            except SourceError:
                return None
            found = digest(data)
            if found != entry.digest:
                if not entry.inert or _may_matter(data):
                    return None
                changed.append(path)
            entry.signature, entry.digest, entry.racy = now, found, self._is_racy(now)
        return changed

    def learn(
        self,
        digests: Mapping[str, str],
        rests_on: Callable[[str], bool],
        consulted: Mapping[str, str | None],
        *,
        is_whole: bool,
    ) -> None:
        """Take note of what the files held when they were read.

        Args:
            digests: of each file that could be read.
            rests_on: whether a finding may rest on the content of a file.
            consulted: files and folders with what :func:`consult` says of each.
            is_whole: whether all of the tree was looked at.
        """
        self._key = self._keys[0 if is_whole else -1]
        self._consulted = consulted
        self._table = None
        if digests.keys() == self._now.keys():
            self._take(
                {
                    path: _Entry(found, digests[path], not rests_on(path), self._is_racy(found))
                    for path, found in self._now.items()
                    if found is not None
                }
            )

    def _take(self, entries: Mapping[str, _Entry]) -> None:
        self._racy = any(entry.racy for entry in entries.values())
        self._table = json.dumps({path: entry.as_json() for path, entry in entries.items()})

    def _is_racy(self, found: Signature) -> bool:
        return is_racy(found, self._looked_at)

    def keep(self, report: TreeReport) -> None:
        """Write down what is known now, unless it is there already."""
        if self._table is None or None in self._now.values() or report.failures:
            return  # a file could not be read, and nothing here would notice when it can
        if self._written == (frozenset(report.unparsed), self._table):
            return
        order = {path: number for number, path in enumerate(self._now)}
        state = _RACY if self._racy else self._state()
        told = json.dumps(_report_as_json(report, order))
        self._cache.write(self._key, (state, told, json.dumps(self._consulted), self._table))

    def _state(self) -> str:
        """All signatures in one."""
        return digest(repr(self._now).encode("utf-8", "surrogatepass"))


def consult(path: str) -> str | None:
    """The digest of a file besides Python's, or of a folder's names if ``path`` ends in a slash.

    None if the file cannot be read, or leads out of the repository.
    """
    if path.endswith(os.sep):
        folder = path.rstrip(os.sep)
        names = [] if leads_outside(folder) else setting_names(folder)
        return digest("\n".join(names).encode("utf-8", "replace"))
    try:
        return None if leads_outside(path) else digest(read_bytes(path))
    except SourceError:
        return None


def _may_matter(data: bytes) -> bool:
    return is_candidate(data) or seeds_or_draws(data) or names_a_rule(data)


# What follows trusts nothing: a value of another type raises.


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _items(value: object, count: int | None = None) -> list[Any]:
    if not isinstance(value, list) or count not in {None, len(value)}:
        raise TypeError(value)
    return value


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


def _entries_from(table: object) -> dict[str, _Entry]:
    entries = {}
    for path, row in _table(table).items():
        *numbers, found, inert, racy = _items(row, 7)
        modified, status, size, inode = map(_number, numbers)
        when = (modified, status, size, inode)
        entries[path] = _Entry(when, _text(found), _flag(inert), _flag(racy))
    return entries


def _report_as_json(report: TreeReport, order: Mapping[str, int]) -> list[Any]:
    return [
        [
            [order[path], silenced, finding_as_json(finding)]
            for path, silenced, finding in report.findings
        ],
        _errors_as_json(report.errors, order),
        _errors_as_json(report.syntax_errors, order),
        sorted(order[path] for path in report.unparsed),
    ]


def _report_from(told: object, paths: Sequence[str]) -> TreeReport:
    findings, errors, syntax_errors, unparsed = _items(told, 4)
    report = TreeReport()
    for row in _items(findings):
        number, silenced, finding = _items(row, 3)
        path = paths[_number(number)]
        report.findings.append((path, _flag(silenced), finding_from(finding)))
    report.errors = _errors_from(errors, paths)
    report.syntax_errors = _errors_from(syntax_errors, paths)
    report.unparsed = {paths[_number(number)] for number in _items(unparsed)}
    return report


def _errors_as_json(errors: Mapping[str, FileError], order: Mapping[str, int]) -> list[Any]:
    return [[order[path], e.path, e.reason, e.row] for path, e in errors.items()]


def _errors_from(rows: object, paths: Sequence[str]) -> dict[str, FileError]:
    errors = {}
    for row in _items(rows):
        number, shown, reason, line = _items(row, 4)
        error = FileError(_text(shown), _text(reason), None if line is None else _number(line))
        errors[paths[_number(number)]] = error
    return errors


def finding_as_json(finding: Finding) -> list[Any]:
    """The finding as lists, texts and numbers."""
    fix = None if finding.fix is None else _fix_as_json(finding.fix)
    start, end = finding.start, finding.end
    return [
        *(finding.code, finding.message, finding.path),
        *(start.row, start.column, end.row, end.column),
        *(fix, [[_place_as_json(each.place), each.text] for each in finding.why]),
        _cell_as_json(finding.cell),
        *(finding.grade.value, finding.severity.value),
        [_fix_as_json(one) for one in finding.candidates],
        *(finding.effect, finding.advice, finding.hides),
    ]


def _cell_as_json(cell: Cell | None) -> list[int] | None:
    return None if cell is None else list(cell)


def _place_as_json(place: Place | str) -> object:
    return (
        place if isinstance(place, str) else [place.path, *place.start, _cell_as_json(place.cell)]
    )


def _fix_as_json(fix: Fix) -> list[Any]:
    edits = [[e.path, e.start, e.end, e.content] for e in fix.edits]
    return [fix.message, fix.applicability.value, edits, fix.unsafe]


def finding_from(row: object) -> Finding:
    """The finding that :func:`finding_as_json` was given.

    Raises:
        TypeError: ``row`` is nothing that it returns.
        ValueError: likewise.
    """
    *head, fix, why, cell, grade, severity, candidates, effect, advice, hides = _items(row, 16)
    code, message, path, *place = head
    first_row, first_column, last_row, last_column = map(_number, place)
    return Finding(
        _text(code),
        _text(message),
        _text(path),
        Position(first_row, first_column),
        Position(last_row, last_column),
        None if fix is None else _fix_from(fix),
        tuple(map(_related_from, _items(why))),
        _cell_from(cell),
        Grade(_text(grade)),
        Severity(_text(severity)),
        tuple(map(_fix_from, _items(candidates))),
        _text(effect),
        _text(advice),
        _flag(hides),
    )


def _cell_from(row: object) -> Cell | None:
    if row is None:
        return None
    number, first_row, file_row = map(_number, _items(row, 3))
    return Cell(number, first_row, file_row)


def _related_from(row: object) -> Related:
    place, text = _items(row, 2)
    if isinstance(place, str):
        return Related(place, _text(text))
    path, first_row, column, cell = _items(place, 4)
    start = Position(_number(first_row), _number(column))
    return Related(Place(_text(path), start, _cell_from(cell)), _text(text))


def _fix_from(row: object) -> Fix:
    message, applicability, edits, unsafe = _items(row, 4)
    return Fix(
        _text(message),
        Applicability(_text(applicability)),
        tuple(map(_edit_from, _items(edits))),
        _text(unsafe),
    )


def _edit_from(row: object) -> Edit:
    path, start, end, content = _items(row, 4)
    return Edit(_text(path), _number(start), _number(end), _text(content))
