"""What a check said of a tree, kept for the next one while nothing it rests on has changed.

A tree's findings rest on every file's place and on the content of the files that the model
read. So they hold as long as no file came, went or changed; and also when a file changed that
said nothing about samplers, seeds or draws, still says nothing, and was led to by no import.
Whether a file changed is told by its signature; one that was changed just before it was read
is read again, since a later change might show the same times.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from sampler_lint.cache import Cache, Signature, digest, is_racy, signature
from sampler_lint.findings import FileError, Finding
from sampler_lint.roots import leads_outside
from sampler_lint.source import (
    SourceError,
    is_candidate,
    names_a_rule,
    read_bytes,
    sets_up,
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
        self._table = json.dumps({path: as_json(entry) for path, entry in entries.items()})

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
    return is_candidate(data) or sets_up(data) or names_a_rule(data)


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


def _entries_from(table: object) -> dict[str, _Entry]:
    return {path: from_json(_Entry, row) for path, row in _table(table).items()}


def _report_as_json(report: TreeReport, order: Mapping[str, int]) -> object:
    """The report, each path as its number among the files."""
    return as_json(
        (
            [(order[path], silenced, found) for path, silenced, found in report.findings],
            [(order[path], error) for path, error in report.errors.items()],
            [(order[path], error) for path, error in report.syntax_errors.items()],
            sorted(order[path] for path in report.unparsed),
        )
    )


_Numbered = tuple[tuple[int, FileError], ...]
_Told = tuple[tuple[tuple[int, bool, Finding], ...], _Numbered, _Numbered, tuple[int, ...]]


def _report_from(told: object, paths: Sequence[str]) -> TreeReport:
    findings, errors, syntax_errors, unparsed = from_json(_Told, told)
    return TreeReport(
        [(paths[number], silenced, found) for number, silenced, found in findings],
        {paths[number]: error for number, error in errors},
        {paths[number]: error for number, error in syntax_errors},
        {paths[number] for number in unparsed},
    )


def as_json(value: Any) -> Any:
    """A value as lists, texts and numbers, which :func:`from_json` makes the value of again."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return [as_json(getattr(value, each.name)) for each in fields(value)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(map(as_json, value))
    return value


def from_json(kind: Any, value: Any) -> Any:
    """What of a type :func:`as_json` was given. It trusts nothing: a record may be anybody's.

    Raises:
        TypeError: ``value`` is nothing that it makes of such a type.
        ValueError: likewise.
    """
    parts = get_args(kind)
    if get_origin(kind) in {Union, UnionType}:
        for part in parts:
            with contextlib.suppress(TypeError, ValueError):
                return from_json(part, value)
        raise TypeError(value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    types = parts or (*_types(kind).values(),)
    if not types:
        if type(value) is not kind:
            raise TypeError(value)
        return value
    if not isinstance(value, list):
        raise TypeError(value)
    if types[-1] is ... or get_origin(kind) is Sequence:
        return tuple(from_json(types[0], each) for each in value)
    if len(types) != len(value):
        raise TypeError(value)
    made = [from_json(*pair) for pair in zip(types, value, strict=True)]
    return tuple(made) if parts else kind(*made)


@functools.cache
def _types(kind: type) -> dict[str, Any]:
    """The types of what a dataclass or a named tuple holds; nothing of any other."""
    is_record = is_dataclass(kind) or hasattr(kind, "_fields")
    return get_type_hints(kind) if is_record else {}
