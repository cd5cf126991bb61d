"""A stretch of a file as libcst nodes, with their offsets in the file's own text.

Only the statement asked about is parsed, verbatim: an indented one is put below an ``if 1:``
line, so that rows and columns stay the file's own. libcst is imported on first use: making its
classes takes as long as checking a small repository.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from sampler_lint.source import SourceFile
from sampler_lint.syntax.nodes import Define, Node, Scope, Stmt

if TYPE_CHECKING:
    import libcst as cst
    from libcst.metadata import CodeRange

    from sampler_lint.workspace.project import Module

    NodeT = TypeVar("NodeT", bound=cst.CSTNode)


class EditError(Exception):
    """There is no fix: the place cannot be read, or has no room for what is to be written."""


class Region:
    """The lines of one statement (or definition) of a module."""

    def __init__(self, module: Module, around: Stmt | Scope) -> None:
        """Parse the statement ``around``, or the first one about it that stands on its own lines.

        Raises:
            EditError: libcst cannot read any of them.
        """
        self.module = module
        self.source: SourceFile = module.source
        for first, last in _stretches(around, len(self.source.line_starts)):
            starts = self.source.line_starts
            start = starts[first - 1]
            end = starts[last] if last < len(starts) else len(self.source.text)
            text = self.source.text[start:end]
            nested = text.startswith((" ", "\t", "\f"))
            stretch = _read(f"if 1:{self.source.newline}{text}" if nested else text)
            if stretch is None:
                continue
            self._stretch = stretch
            self._shift = first - (2 if nested else 1)
            self.tree = stretch.tree
            return
        raise EditError(f"{module.display}:{around.row}: libcst cannot read this statement")

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """The node's first and last (exclusive) character in the file."""
        place = self._stretch.positions[node]
        starts = self.source.line_starts
        return (
            starts[place.start.line + self._shift - 1] + place.start.column,
            starts[place.end.line + self._shift - 1] + place.end.column,
        )

    def end(self, node: cst.BaseExpression) -> int:
        """Where an expression ends, with the parentheses around it."""
        closing = node.rpar
        return self.span(closing[-1] if closing else node)[1]

    def whole(self, node: cst.BaseExpression) -> tuple[int, int]:
        """Where an expression stands, with the parentheses around it."""
        return self.span(node.lpar[0] if node.lpar else node)[0], self.end(node)

    def find(self, node: Node, *kinds: type[NodeT]) -> NodeT:
        """The libcst node of one of the ``kinds`` that stands exactly where ``node`` does.

        Raises:
            EditError: there is none.
        """
        wanted = offsets(self.source, node)
        first = self.source.position(wanted[0]).row - self._shift
        for candidate in self._stretch.beginning_in.get(first, ()):
            if isinstance(candidate, kinds) and self.span(candidate) == wanted:
                return candidate
        raise EditError(f"{self.module.display}:{node.row}: no {kinds[0].__name__} here")

    def nodes(self, kind: type[NodeT]) -> Iterator[NodeT]:
        """Every node of type ``kind``, parents first."""
        stack: list[cst.CSTNode] = [self.tree]
        while stack:
            current = stack.pop()
            if isinstance(current, kind):
                yield current
            stack.extend(reversed(current.children))

    def code(self, node: cst.CSTNode) -> str:
        """The node as code."""
        return self.tree.code_for_node(node)


class _Stretch:
    """A text that libcst has read."""

    def __init__(self, tree: cst.Module, positions: Mapping[cst.CSTNode, CodeRange]) -> None:
        self.tree = tree
        self.positions = positions

    @functools.cached_property
    def beginning_in(self) -> dict[int, list[cst.CSTNode]]:
        """The nodes, parents first, by the row that they begin in."""
        found: dict[int, list[cst.CSTNode]] = {}
        stack: list[cst.CSTNode] = [self.tree]
        while stack:
            current = stack.pop()
            place = self.positions.get(current)
            if place is not None:
                found.setdefault(place.start.line, []).append(current)
            stack.extend(reversed(current.children))
        return found


@functools.lru_cache(maxsize=8)  # several findings in one class or dict are fixed one by one
def _read(text: str) -> _Stretch | None:
    """The text as nodes, which nobody changes; None if libcst cannot read it."""
    import libcst as cst
    from libcst.metadata import MetadataWrapper, PositionProvider

    try:
        tree = cst.parse_module(text)
        places = MetadataWrapper(tree, unsafe_skip_copy=True).resolve(PositionProvider)
    except (cst.ParserSyntaxError, RecursionError):  # hundreds of operands, nested one by one
        return None
    return _Stretch(tree, places)


def offsets(source: SourceFile, node: Node) -> tuple[int, int]:
    """A node's first and last (exclusive) character in the file."""
    return source.offset(node.row, node.col), source.offset(node.end_row, node.end_col)


def begins_at(stmt: Stmt) -> tuple[int, int]:
    """The row and column of a statement, or the row of its first decorator."""
    decorators = stmt.decorators if isinstance(stmt, Define) else []
    return min([stmt.row, *(decorator.row for decorator in decorators)]), stmt.col


def beside_others(source: SourceFile, stmt: Stmt) -> tuple[int, int] | None:
    """What to take out for a statement that others of its block share one line with: `a(); b()`.

    None for one that has its lines for itself, and where a colon begins the line.
    """
    row = [each for each in stmt.block if each.row == each.end_row == stmt.row]
    if len(row) < 2 or stmt not in row:
        return None
    first, place = offsets(source, row[0])[0], row.index(stmt)
    if source.text[source.line_starts[stmt.row - 1] : first].strip():
        return None
    if place + 1 < len(row):
        return offsets(source, stmt)[0], offsets(source, row[place + 1])[0]
    return offsets(source, row[place - 1])[1], offsets(source, stmt)[1]


def _stretches(around: Stmt | Scope, last_row: int) -> Iterator[tuple[int, int]]:
    """Row ranges to try: the statement, the ones about it, the file."""
    current: Stmt | Scope | None = around
    while current is not None:
        if isinstance(current, Scope):
            if current.outer is None:
                break
            define = current.define
            if define is None:  # a lambda
                current = current.outer
                continue
            current = define
        first = current.row
        decorators = getattr(current, "decorators", None)
        if decorators:
            first = min(first, *(decorator.row for decorator in decorators))
        yield first, current.end_row
        current = current.parent or current.scope
    yield 1, last_row
