"""Where findings stand after the text that they were found in was edited."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from sampler_lint.findings import Cell, Finding, Place, Position, Related
from sampler_lint.source import SourceError, SourceFile


def common(left: str, right: str) -> int:
    """How many characters two texts begin with together."""
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


class Typed:
    """What was typed to make of one text of a file the other."""

    def __init__(self, old: SourceFile, new: SourceFile) -> None:
        self._old, self._new = old, new
        self._edits: list[tuple[int, int, int]] = []
        """In order: from and to which character of the old text, and how many stand there now."""
        was, now = (text.splitlines(keepends=True) for text in (old.text, new.text))
        start = 0
        for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, was, now).get_opcodes():
            before, after = "".join(was[i1:i2]), "".join(now[j1:j2])
            if tag != "equal":
                head = common(before, after)
                tail = common(before[head:][::-1], after[head:][::-1])
                kept = head + tail
                self._edits.append((start + head, start + len(before) - tail, len(after) - kept))
            start += len(before)

    def span(self, start: Position, end: Position) -> tuple[Position, Position, Cell | None] | None:
        """Where a stretch of the old text stands in the new one; None if it was deleted."""
        first, last = (
            self._old.line_starts[each.row - 1] + each.column - 1 for each in (start, end)
        )
        left = right = 0
        for begin, stop, length in self._edits:
            if begin <= first and last <= stop and begin < stop:
                return None
            if stop <= first:
                left += length - (stop - begin)
            elif begin < first:
                left += begin - first
            if stop <= last and begin < last:
                right += length - (stop - begin)
            elif begin < last:
                right += begin + length - last
        here = self._new.position(first + left)
        try:
            return here, self._new.position(last + right), self._new.cell_of(here.row)
        except LookupError:  # its cell is gone
            return None


def moved(finding: Finding, typed: Mapping[str, Typed]) -> Finding | None:
    """The finding where its text stands now, by the absolute paths of files that were edited.

    None if its text is gone. A fix that touches such a file is left out: its edits are places
    in the old text.
    """
    if not typed:
        return finding
    fix = finding.fix
    if fix is not None and any(os.path.abspath(path) in typed for path in fix.paths):
        fix = None
    why = tuple(filter(None, (_moved(related, typed) for related in finding.why)))
    own = typed.get(os.path.abspath(finding.path))
    if own is None:
        return replace(finding, why=why, fix=fix)
    span = own.span(finding.start, finding.end)
    if span is None:
        return None
    start, end, cell = span
    return replace(finding, start=start, end=end, cell=cell, why=why, fix=fix)


def _moved(related: Related, typed: Mapping[str, Typed]) -> Related | None:
    place = related.place
    own = None if isinstance(place, str) else typed.get(os.path.abspath(place.path))
    if own is None or isinstance(place, str):
        return related
    span = own.span(place.start, Position(place.start.row, place.start.column + 1))
    if span is None:
        return None
    return Related(Place(place.path, span[0], span[2]), related.text)


class Readable:
    """The last content of each open file that could be parsed."""

    def __init__(self, parses: Callable[[str, bytes], bool]) -> None:
        self._parses = parses
        self._last: dict[str, bytes] = {}

    def __call__(self, contents: Mapping[str, bytes]) -> dict[str, bytes]:
        """``contents``, but as it was where somebody is in the middle of a word."""
        for path in self._last.keys() - contents.keys():
            del self._last[path]
        for path, data in contents.items():
            if self._last.get(path) != data and self._parses(path, data):
                self._last[path] = data
        return {path: self._last.get(path, data) for path, data in contents.items()}


def typed_since(read: Mapping[str, bytes], now: Mapping[str, bytes]) -> dict[str, Typed]:
    """What was typed in each file whose content is not what was read, but where none can tell."""
    typed = {}
    for path, data in now.items():
        if read[path] != data:
            with contextlib.suppress(SourceError):
                typed[path] = Typed(SourceFile(path, read[path]), SourceFile(path, data))
    return typed
