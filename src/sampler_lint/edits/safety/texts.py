"""A file before and after a fix, as two syntax trees whose nodes are matched by their places."""

from __future__ import annotations

import ast
import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sampler_lint.findings import Edit, Refuted
from sampler_lint.source import LINE_END
from sampler_lint.syntax.parse import all_nodes, child_nodes

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: Contexts and operators are single objects that all nodes share.
_SHARED = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)


def gravest(reasons: Iterable[str | None]) -> str | None:
    """The first reason that is known to hold; the first of those that may, if there is none."""
    first = None
    for reason in filter(None, reasons):
        if isinstance(reason, Refuted):
            return reason
        first = first or reason
    return first


class Tree:
    """The syntax tree of a text, with the place and the parent of each node.

    Of a function or class at the top level that holds none of the places asked for, only the
    header's own place is known: what a file defines elsewhere costs nothing then. The lines and
    offsets of a ``part`` of a text, which begins with a line, are those in the whole text.

    Raises:
        SyntaxError: Python does not read the text.
    """

    def __init__(
        self,
        text: str,
        places: Sequence[tuple[int, int]] | None = None,
        part: tuple[int, int] | None = None,
        root: ast.Module | None = None,
    ) -> None:
        """``root`` is the parsed text, if it has been parsed."""
        self.text = text
        self._is_ascii = text.isascii()
        self._base = self._rows = 0
        """Where the part begins."""
        if part is None:
            self.root = root if root is not None else ast.parse(text)
        else:
            self._base, end = part
            self._rows = len(LINE_END.findall(text, 0, self._base))
            text = text[self._base : end]
            self.root = ast.parse("\n" * self._rows + text)
        self.scopes: object = None
        """What is known of its scopes, where it holds a part of a module."""
        ends = (match.end() + self._base for match in LINE_END.finditer(text))
        self._starts = [self._base, *ends]
        self._places = places
        self.part = part
        self.parents: dict[ast.AST, ast.AST] = {}
        self.spans: dict[ast.AST, tuple[int, int]] = {}
        self.nodes: list[ast.AST] = []
        """Every node, in no order of meaning."""
        self._look(self.root)

    @functools.cached_property
    def catching(self) -> list[ast.Try | ast.With]:
        """The statements that may catch errors."""
        return [node for node in self.nodes if isinstance(node, (ast.Try, ast.With))]

    def is_inside_definitions(self) -> bool:
        """Whether each place asked for lies in a function or class of the top level."""
        spans = [self.spans[one] for one in self.root.body if isinstance(one, DEFINITIONS)]
        return all(
            any(start < first and last <= end for start, end in spans)
            for first, last in self._places or ()
        )

    def _look(self, root: ast.AST) -> None:
        stack = [root]
        while stack:
            node = stack.pop()
            self.nodes.append(node)
            if hasattr(node, "lineno"):
                end = self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
                self.spans[node] = self._offset(node.lineno, node.col_offset), end  # type: ignore[attr-defined]
            if isinstance(node, DEFINITIONS) and self._is_elsewhere(node):
                continue
            for child in child_nodes(node):
                if isinstance(child, _SHARED):
                    continue
                self.parents[child] = node
                if not isinstance(node, ast.JoinedStr):  # their places are not true before 3.12
                    stack.append(child)
                else:
                    for inner in all_nodes(child):
                        if not isinstance(inner, _SHARED):
                            self.nodes.append(inner)
                        for one in child_nodes(inner):
                            self.parents[one] = inner

    def _is_elsewhere(self, node: ast.AST) -> bool:
        if self._places is None or self.parents[node] is not self.root:
            return False
        start, end = self.spans[node]
        return not any(first <= end and start <= last for first, last in self._places)

    def _offset(self, row: int, column: int) -> int:
        row -= self._rows
        start = self._starts[row - 1]
        if self._is_ascii or self.text[start : start + column].isascii():
            return start + column
        end = self._starts[row] if row < len(self._starts) else len(self.text)
        line = self.text[start:end].encode("utf-8", "surrogatepass")
        return start + len(line[:column].decode("utf-8", "ignore"))

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What the node is in, innermost first."""
        current = self.parents.get(node)
        while current is not None:
            yield current
            current = self.parents.get(current)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that the node is, or is in."""
        if isinstance(node, ast.stmt):
            return node
        return next((one for one in self.around(node) if isinstance(one, ast.stmt)), None)

    def block(self, stmt: ast.AST) -> list[ast.stmt]:
        """The statements that it stands among."""
        return next(
            (
                value
                for _, value in ast.iter_fields(self.parents[stmt])
                if isinstance(value, list) and any(one is stmt for one in value)
            ),
            [],
        )


def window(tree: Tree, edits: Sequence[Edit]) -> tuple[int, int] | None:
    """Where the statements of the top level begin and end that hold all edits.

    None if an edit lies between statements. Many fixes of one long file are each looked at in
    their own statements, or the work would grow with the square of the file.
    """
    text = tree.text
    spans = [tree.spans[stmt] for stmt in tree.root.body if stmt in tree.spans]
    starts = [start for start, _ in spans]
    found = []
    for edit in edits:
        at = bisect_right(starts, edit.start) - 1
        if at < 0 or not (edit.start > spans[at][0] and edit.end <= spans[at][1]):
            return None
        found.append(spans[at])
    first, last = min(found)[0], max(end for _, end in found)
    # Decorators stand before their definition, and a line may hold several statements.
    first = max(text.rfind(mark, 0, first) for mark in "\r\n") + 1
    ends = [at for mark in "\r\n" if (at := text.find(mark, last)) >= 0]
    return first, min(ends, default=len(text))


class Changed:
    """One file before and after the edits of a fix.

    Raises:
        SyntaxError: Python does not read one of the texts.
        ValueError: the edits overlap.
    """

    def __init__(self, whole: Tree, edits: Iterable[Edit], part: Tree | None = None) -> None:
        """``whole`` is the file before, ``part`` what is looked at, if not all (:func:`window`)."""
        from sampler_lint.fixing import apply_edits

        self.before: Iterable[str] = ()
        """What the module has assigned before the part that is looked at."""
        self.assigned: dict[ast.AST, Any] = {}
        """What is known of its scopes after the fix."""
        self.edits: Sequence[Edit] = sorted(set(edits))
        self.written: list[tuple[int, int]] = []
        self._grown = [0]
        """By how much the text before each edit grows."""
        for edit in self.edits:
            start = edit.start + self._grown[-1]
            self.written.append((start, start + len(edit.content)))
            self._grown.append(self._grown[-1] + len(edit.content) - (edit.end - edit.start))
        # All are in order and apart: that a file has many costs little for each of its nodes.
        self._starts, self._ends = _columns((edit.start, edit.end) for edit in self.edits)
        self._cuts = [(edit.start, edit.end) for edit in self.edits if edit.start < edit.end]
        self._cut_starts, self._cut_ends = _columns(self._cuts)
        self._written_starts, self._written_ends = _columns(self.written)
        edited = zip(self.edits, self.written, strict=True)
        self._put_at = {start for edit, (start, _) in edited if edit.start == edit.end}
        places = [(edit.start, edit.end) for edit in self.edits]
        text = whole.text
        fixed = apply_edits(text, self.edits)
        if part is not None:
            assert part.part is not None
            first, last = part.part
            self.old = part
            self.new = Tree(fixed, part=(first, last + self._grown[-1]))
        else:
            self.old, self.new = Tree(text, places, root=whole.root), Tree(fixed, self.written)
        if part is None and not (
            self.old.is_inside_definitions() and self.new.is_inside_definitions()
        ):
            # What the module itself binds may be read anywhere.
            self.old, self.new = whole, Tree(fixed, root=self.new.root)
        self.same: dict[ast.AST, ast.AST] = {}
        """The nodes that no edit touches or takes away, and what they are afterwards."""
        self.lost: ast.AST | None = None
        """A node that no edit touches and that is not there afterwards."""
        self._match()
        self.back = {new: old for old, new in self.same.items()}

    def _moved(self, offset: int) -> set[int]:
        """Where a place may be afterwards: before or behind what is put in there."""
        behind = bisect_right(self._ends, offset)
        before = min(behind, bisect_left(self._starts, offset))
        return {offset + self._grown[before], offset + self._grown[behind]}

    def is_touched(self, node: ast.AST) -> bool:
        """Whether an edit replaces the whole of an old node, or cuts it in two."""
        start, end = self.old.spans[node]
        if _has_body(node):  # its last lines may go, it stays
            end = start + 1
        first = bisect_right(self._cut_ends, start)
        last = bisect_left(self._cut_starts, end) - 1
        return first <= last and any(
            cut_start < start < cut_end < end
            or start < cut_start < end < cut_end
            or (cut_start <= start and end <= cut_end)
            for cut_start, cut_end in (self._cuts[first], self._cuts[last])
        )

    def is_written(self, node: ast.AST) -> bool:
        """Whether a new node lies within what an edit writes."""
        span = self.new.spans.get(node)
        if span is None:
            return any(
                self.is_written(one) for one in self.new.around(node) if one in self.new.spans
            )
        at = bisect_right(self._written_starts, span[0]) - 1
        return at >= 0 and span[1] <= self._written_ends[at]

    def is_altered(self, node: ast.AST) -> bool:
        """Whether an edit writes a new node, or a part of it."""
        span = self.new.spans.get(node)
        if span is None:
            return False
        at = bisect_right(self._written_ends, span[0])
        return at < len(self.written) and self._written_starts[at] < span[1]

    def _match(self) -> None:
        there: dict[tuple[type[ast.AST], int], list[ast.AST]] = {}
        for node, span in self.new.spans.items():
            there.setdefault((type(node), span[0]), []).append(node)
        self.same[self.old.root] = self.new.root
        for node, (start, end) in self.old.spans.items():
            if self.is_touched(node) or isinstance(self.old.parents.get(node), ast.JoinedStr):
                continue
            ends = self._moved(end)
            found = [
                one
                for place in self._moved(start)
                for one in there.get((type(node), place), ())
                if _has_body(node) or self.new.spans[one][1] in ends
            ]
            parent = self.same.get(self.old.parents[node])
            found = [one for one in found if not self._wraps(one)]
            fitting = [one for one in found if self._holder(one) is parent]
            if fitting or (found and parent is None):
                self.same[node] = (fitting or found)[0]
                if isinstance(node, ast.JoinedStr) and ast.dump(node) == ast.dump(self.same[node]):
                    inside = zip(all_nodes(node), all_nodes(self.same[node]), strict=True)
                    self.same.update(inside)
            elif self.lost is None and isinstance(node, (ast.stmt, ast.expr)):
                self.lost = node

    def _wraps(self, node: ast.AST) -> bool:
        """Whether a new node is a call that is put around what was there."""
        return (
            isinstance(node, ast.Call)
            and self.is_written(node.func)
            and self.new.spans[node][0] in self._put_at
        )

    def _holder(self, node: ast.AST) -> ast.AST:
        """What a new node stands in, but for a call that is written around it."""
        parent = self.new.parents[node]
        while self._wraps(parent) and node in parent.args:  # type: ignore[attr-defined]
            node, parent = parent, self.new.parents[parent]
        return parent

    @property
    def statements(self) -> Iterator[ast.stmt]:
        """The statements that are written, without those inside them."""
        for node in self.new.spans:
            if isinstance(node, ast.stmt) and self.is_written(node):
                parent = self.new.parents[node]
                if not (isinstance(parent, ast.stmt) and self.is_written(parent)):
                    yield node

    @property
    def removed(self) -> Iterator[ast.stmt]:
        """The statements that are taken away."""
        for node in self.old.spans:
            if isinstance(node, ast.stmt) and self.is_touched(node):
                yield node

    @property
    def appeared(self) -> ast.AST | None:
        """A node that no edit writes and that was not there before: what was a comment is code."""
        for node in self.new.spans:
            is_new = isinstance(node, (ast.stmt, ast.expr)) and node not in self.back
            if is_new and not self.is_written(node) and not self._wraps(node):
                return node
        return None


def _columns(spans: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    listed = list(spans)
    return [start for start, _ in listed], [end for _, end in listed]


def _has_body(node: ast.AST) -> bool:
    return hasattr(node, "body") and isinstance(node, (ast.stmt, ast.ExceptHandler))
