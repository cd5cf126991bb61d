"""A file whose text was edited so that no answer changes: its nodes go where they stand now.

Most of what is typed in an editor changes no answer. So it is with a text that has the same syntax
tree, whose lines still hold the same nodes, and that answers alike whatever was asked of the old
one (:meth:`~..source.SourceFile.tells`): a comment, an empty line. And so it is with a name that is
spelled otherwise, if nobody has read how it was spelled (:class:`~..syntax.unread.Unread`).

Only the statement that was edited is compared: around it stands the same text, which Python reads
alike, because the old statement is whole by itself, too.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from sampler_lint.findings import Edit, Place
from sampler_lint.source import SourceError, SourceFile
from sampler_lint.syntax.lower import extract, is_idle
from sampler_lint.syntax.nodes import Name, Node
from sampler_lint.syntax.parse import FactsError, parse
from sampler_lint.syntax.unread import Unread, word_of
from sampler_lint.workspace.project import Before, Module

_WORD = re.compile(r"\w+")
#: Where a node begins and ends: row, column, and again.
_Span: TypeAlias = tuple[int, int, int, int]


class Reread(NamedTuple):
    """A file of the tree with the text that it has now."""

    module: Module
    source: SourceFile
    tree: ast.Module

    @classmethod
    def of(cls, module: Module, data: bytes) -> Reread | None:
        """Read it; None where it cannot be."""
        try:
            source = SourceFile(module.source.path, data)
            return cls(module, source, parse(source.text))
        except (SourceError, FactsError):
            return None

    def added_to(self, before: Before) -> Before:
        """What the next project has, with what it says now.

        It will be noted who reads the names in the lines that were edited.
        """
        try:
            facts = extract(self.tree, lists_nodes=True)
        except FactsError:
            return before
        edit = _Edit(_lines(self.module.source), _lines(self.source))
        for node in facts.made:
            if type(node) is Name and edit.first <= node.row <= edit.last:
                node.__class__ = Unread
        return before.with_file(self.module.path, self.source, facts)

    def move(self) -> Move | None:
        """How its nodes move; None if its code, or what its text told, is another."""
        made = self.module.facts.made
        changed = _Changed.between(self.module.source, self.source, self.tree) if made else None
        if changed is None:
            return None
        rows: dict[int, int] = {}
        spans: list[tuple[Node, _Span]] = []
        for node in made:
            old = node.row, node.col, node.end_row, node.end_col
            new = changed.spans.get(old) or changed.moved(old)
            if new is None:
                return None
            if rows.setdefault(node.row, new[0]) != new[0]:
                return None
            if rows.setdefault(node.end_row, new[2]) != new[2]:
                return None
            if new != old:
                spans.append((node, new))
        if len(set(rows.values())) < len(rows):
            return None
        renamed: list[tuple[Name, str]] = []
        if changed.renamed:
            found, matters = set(), self.module.project.may_matter
            for node in made:
                span = node.row, node.col, node.end_row, node.end_col
                if isinstance(node, Name) and span in changed.renamed:
                    spelled = changed.renamed[span]
                    if type(node) is not Unread or any(map(matters, (word_of(node), spelled))):
                        return None
                    found.add(span)
                    renamed.append((node, spelled))
            if found != changed.renamed.keys():
                return None
        if not self.module.source.is_alike(self.source, rows):
            return None
        words = {*changed.idle, *changed.renamed.values(), *(word_of(name) for name, _ in renamed)}
        return Move(self.module, self.source, rows, changed.edit, spans, renamed, words)


class Move(NamedTuple):
    """The new text of a file, and where its nodes stand in it."""

    module: Module
    source: SourceFile
    rows: dict[int, int]
    """The rows of it that the old ones with nodes in them became."""
    edit: _Edit
    spans: list[tuple[Node, _Span]]
    renamed: list[tuple[Name, str]]
    """The names that nobody has read, with how they are spelled now."""
    words: set[str]
    """The names that came or went."""

    def spells_nothing_else(self, edits: Iterable[Edit]) -> bool:
        """Whether no other line of the file, nor a fix, says a name that came or went.

        And whether no edit of a fix is in the lines that were edited.
        """
        edit, first = self.edit, self.edit.first - 1
        begin, end = (len("".join(edit.new[:row])) for row in (first, max(edit.last, first)))
        texts = ["".join(edit.new[:first]), "".join(edit.new[edit.last :])]
        for each in edits:
            texts.append(each.content)
            if each.path == self.module.display and begin <= each.end and each.start <= end:
                return False
        return not any(self.words.intersection(_WORD.findall(text)) for text in texts if self.words)

    def place(self, place: Place) -> Place | None:
        """Where in this file a place of it is now; None if that is not known."""
        row = self.rows.get(place.start.row)
        if row is None or self.edit.first <= row <= self.edit.last:
            return None
        return place._replace(start=place.start._replace(row=row))

    def knows(self, node: Node) -> bool:
        """Whether a node moves with its file, and was not made up by who asked."""
        return any(each is node for each in self.module.facts.made)

    def make(self) -> None:
        """Let the nodes stand where they do now."""
        for node, span in self.spans:
            node.row, node.col, node.end_row, node.end_col = span
        for name, spelled in self.renamed:
            name.id = spelled
        self.module.facts.memo.clear()
        self.module.source = self.source


class _Edit:
    """The lines that two texts do not share: all but those at both ends."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        most = min(len(old), len(new))
        head = next((i for i in range(most) if old[i] != new[i]), most)
        tail = next((i for i in range(most - head) if old[-1 - i] != new[-1 - i]), most - head)
        self.old, self.new = old, new
        self.first = head + 1
        self.last = len(new) - tail
        """In the new text; one before the first if lines were only deleted."""
        self.old_last = len(old) - tail
        self.shift = len(new) - len(old)


class _Changed(NamedTuple):
    """How the one statement that was edited became another."""

    edit: _Edit
    old: _Span | None
    """Where it stood; None if no statement was edited."""
    new: _Span | None
    spans: dict[_Span, _Span]
    """Where what is in it stood, and stands."""
    renamed: dict[_Span, str]
    """Where a name stood that is spelled otherwise."""
    idle: set[str]
    """The names in lines that do nothing, of the old ones and of the new."""

    @classmethod
    def between(cls, old: SourceFile, new: SourceFile, tree: ast.Module) -> _Changed | None:
        """What was edited; None if it is more than names, or than no code."""
        edit = _Edit(_lines(old), _lines(new))
        stmt = _statement(tree, edit)
        if stmt is None:
            return None
        both = edit.old[edit.first - 1 : edit.old_last], edit.new[edit.first - 1 : edit.last]
        idle = {name for lines in both for line in lines for name in _names_alone(line)}
        if isinstance(stmt, ast.Module):
            goes_on = edit.first > 1 and edit.new[edit.first - 2].rstrip("\r\n").endswith("\\")
            says_nothing = not goes_on and all(map(_do_nothing, both))
            return cls(edit, None, None, {}, {}, idle) if says_nothing else None
        first, last = _rows(stmt)
        before = _alone(edit.old[first - 1 : last - edit.shift], first)
        if before is None or before.col_offset != stmt.col_offset:
            return None
        compared = _Compared()
        if not compared.are_alike(before, stmt):
            return None
        return cls(edit, _span(before), _span(stmt), compared.spans, compared.renamed, idle)

    def moved(self, span: _Span) -> _Span | None:
        """Where something outside of the statement stands now."""
        row, col, end_row, end_col = span
        if self.old is None or self.new is None:
            shift = self.edit.shift
            behind = self.edit.old_last
            return (
                row + shift if row > behind else row,
                col,
                end_row + shift if end_row > behind else end_row,
                end_col,
            )
        first, last = self.old[0], self.old[2]
        shift = self.new[2] - last
        if end_row < first:
            return span
        if row > last:
            return row + shift, col, end_row + shift, end_col
        if row >= first:
            return None
        if (end_row, end_col) == self.old[2:]:
            return row, col, *self.new[2:]
        return (row, col, end_row + shift, end_col) if end_row > last else None


class _Compared:
    """Two syntax trees, beside one another."""

    def __init__(self) -> None:
        self.spans: dict[_Span, _Span] = {}
        self.renamed: dict[_Span, str] = {}

    def are_alike(self, old: ast.AST, new: ast.AST) -> bool:
        """Whether they are the same but for the spelling of names, and what does nothing."""
        todo: list[tuple[Any, Any]] = [(old, new)]
        while todo:
            one, other = todo.pop()
            if type(one) is not type(other):
                return False
            if isinstance(one, ast.AST):
                if hasattr(one, "lineno"):
                    here = _span(other)
                    if self.spans.setdefault(_span(one), here) != here:
                        return False
                if isinstance(one, ast.Name) and one.id != other.id:
                    if not isinstance(one.ctx, ast.Load) or {one.id, other.id} & _LOWERED:
                        return False
                    self.renamed[_span(one)] = other.id
                    todo.append((one.ctx, other.ctx))
                else:
                    todo += [(getattr(one, f, None), getattr(other, f, None)) for f in one._fields]
            elif isinstance(one, list):
                one, other = ([e for e in each if not is_idle(e)] for each in (one, other))
                if len(one) != len(other):
                    return False
                todo += zip(one, other, strict=True)
            elif repr(one) != repr(other):
                return False
        return True


#: Names that tell :mod:`..syntax.lower` what a call is.
_LOWERED = {"iter"}


def _lines(source: SourceFile) -> list[str]:
    starts = [*source.line_starts, len(source.text)]
    return [source.text[a:b] for a, b in itertools.pairwise(starts)]


def _span(node: Any) -> _Span:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _rows(stmt: Any) -> tuple[int, int]:
    """The first and last row of a statement, with its decorators."""
    above = getattr(stmt, "decorator_list", ())
    return min([stmt.lineno, *(each.lineno for each in above)]), stmt.end_lineno


def _statement(tree: ast.Module, edit: _Edit) -> Any:
    """The smallest statement around the lines edited that has its own lines.

    The whole tree if they are outside of all; None if they are in several.
    """
    is_cut = edit.last < edit.first
    first, last = edit.first - is_cut, max(edit.first, edit.last)
    around: Any = tree
    while True:
        touched = [
            (block, place)
            for block in _blocks(around)
            for place, stmt in enumerate(block)
            if _rows(stmt)[0] <= last and first <= _rows(stmt)[1] and not is_idle(stmt)
        ]
        if len(touched) == 1:
            [(block, place)] = touched
            inner = block[place]
            begin, end = _rows(inner)
            beside = [*block[max(place - 1, 0) : place], *block[place + 1 : place + 2]]
            if (
                begin <= edit.first
                and edit.last <= end
                and not edit.new[begin - 1][: inner.col_offset].strip()
                and not any(_rows(each)[0] <= end and begin <= _rows(each)[1] for each in beside)
            ):
                around = inner
                continue
        is_between = not touched or (is_cut and len(touched) == 2)
        return around if is_between or around is not tree else None


def _blocks(node: Any) -> Iterator[list[Any]]:
    """The lists of statements in a statement."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for name in ("handlers", "cases"):
        for part in getattr(node, name, []):
            yield part.body


def _names_alone(line: str) -> list[str]:
    """The names in a line of which each stands alone."""
    try:
        found: list[Any] = parse(line.strip()).body
    except FactsError:
        return []
    return [each.value.id for each in found if is_idle(each) and isinstance(each.value, ast.Name)]


def _do_nothing(lines: list[str]) -> bool:
    """Whether some lines of a file, outside of its statements, hold nothing that does anything."""
    try:
        return all(map(is_idle, parse("".join(lines)).body))
    except FactsError:
        return False


def _alone(lines: list[str], first: int) -> Any:
    """The one statement that some lines are, which begin in a row of the file; or None."""
    text = "".join(lines)
    is_nested = text[:1] in {" ", "\t"}
    try:
        body: list[Any] = parse(f"if 1:\n{text}" if is_nested else text).body
    except FactsError:
        return None
    if is_nested:
        if len(body) != 1 or body[0].orelse:
            return None
        body = body[0].body
    if len(body) != 1:
        return None
    ast.increment_lineno(body[0], first - 1 - is_nested)
    return body[0]
