"""A stretch of a file as libcst nodes, with edits that are offsets into the file's own text.

Only the statement a rule asks about is parsed, verbatim: an indented one is put below an
``if 1:`` line, so that rows and columns stay the file's own. libcst is imported on first use,
and a :class:`Planned` edit uses it only once somebody wants to see what a fix changes: making
libcst's classes takes as long as checking a small repository.
"""

from __future__ import annotations

import functools
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sampler_lint.findings import Edit
from sampler_lint.source import SourceFile
from sampler_lint.syntax.nodes import Node, Scope, Stmt

if TYPE_CHECKING:
    import libcst as cst
    from libcst.metadata import CodeRange

    from sampler_lint.workspace.project import Module

    NodeT = TypeVar("NodeT", bound=cst.CSTNode)


class RegionError(Exception):
    """libcst cannot read the stretch, or it does not hold the node."""


class Region:
    """The lines of one statement (or definition) of a module."""

    def __init__(self, module: Module, around: Stmt | Scope) -> None:
        """Parse the statement ``around``, or the first one about it that stands on its own lines.

        Raises:
            RegionError: libcst cannot read any of them.
        """
        self.module = module
        self.source: SourceFile = module.source
        for first, last in _stretches(around, len(self.source.line_starts)):
            starts = self.source.line_starts
            start = starts[first - 1]
            end = starts[last] if last < len(starts) else len(self.source.text)
            text = self.source.text[start:end]
            nested = text[:1] in {" ", "\t", "\f"}
            stretch = _read(f"if 1:{self.source.newline}{text}" if nested else text)
            if stretch is None:
                continue
            self._stretch = stretch
            self._shift = first - (2 if nested else 1)
            self.tree = stretch.tree
            return
        raise RegionError(f"{module.display}:{around.row}: libcst cannot read this statement")

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """The node's first and last (exclusive) character in the file."""
        place = self._stretch.positions[node]
        starts = self.source.line_starts
        return (
            starts[place.start.line + self._shift - 1] + place.start.column,
            starts[place.end.line + self._shift - 1] + place.end.column,
        )

    def find(self, node: Node, kind: type[NodeT]) -> NodeT:
        """The libcst node of type ``kind`` that stands exactly where ``node`` does.

        Raises:
            RegionError: there is none.
        """
        wanted = offsets(self.source, node)
        first = self.source.position(wanted[0]).row - self._shift
        for candidate in self._stretch.beginning_in.get(first, ()):
            if isinstance(candidate, kind) and self.span(candidate) == wanted:
                return candidate
        raise RegionError(f"{self.module.display}:{node.row}: no {kind.__name__} here")

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

    def replace(self, node: cst.CSTNode, content: str | cst.CSTNode) -> Edit:
        """The edit that puts ``content`` in the node's place."""
        start, end = self.span(node)
        text = content if isinstance(content, str) else self.code(content)
        return Edit(self.source.path, start, end, text)


class Planned(NamedTuple):
    """An edit that nothing speaks against, worked out when it is asked for."""

    make: Callable[[], Edit | None]
    """Works it out with libcst; None if nothing needs to change after all. Raises
    :class:`RegionError` if libcst cannot read the place: then there is no fix."""
    expected: Edit | None = None
    """An edit that means the same to Python, known without libcst; None if there is none."""


def parts_in(text: str, start: int) -> tuple[list[tuple[int, int]], int]:
    """What stands between the commas of the first pair of parentheses, and where they close.

    Told by Python's own tokens: a comma or a parenthesis in a comment or a string is none.

    Args:
        text: of a file.
        start: before the parenthesis.

    Raises:
        RegionError: there is no such pair.
    """
    starts = [0]
    lines = io.StringIO(text[start:], newline="")

    def line() -> str:
        read = lines.readline()
        starts.append(starts[-1] + len(read))
        return read

    depth = 0
    parts: list[tuple[int, int]] = []
    first: int | None = None
    last = 0
    try:
        for token in tokenize.generate_tokens(line):
            if token.type in _NO_CODE:
                continue
            begin = start + starts[token.start[0] - 1] + token.start[1]
            end = start + starts[token.end[0] - 1] + token.end[1]
            closes = token.string in {")", "]", "}"} and token.type == tokenize.OP
            if depth == 1 and (closes or token.string == ","):
                if first is not None:
                    parts.append((first, last))
                first = None
                if closes:
                    return parts, begin
                continue
            if depth and first is None:
                first = begin
            last = end
            if token.type == tokenize.OP and token.string in {"(", "[", "{"}:
                depth += depth > 0 or token.string == "("
            depth -= closes
    except (tokenize.TokenError, IndentationError):
        pass
    raise RegionError("there are no parentheses here")


_NO_CODE = {
    *(tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENCODING,
}


def replacement(module: Module, around: Stmt | Scope, node: Node, content: str) -> Edit | Planned:
    """The edit that puts ``content`` in the place of an expression in a statement.

    Raises:
        RegionError: the expression cannot be told from Python's own positions, and libcst
            cannot read the statement or finds no node there.
    """

    def make() -> Edit:
        import libcst as cst

        region = Region(module, around)
        return region.replace(region.find(node, cst.BaseExpression), content)  # type: ignore[type-abstract]

    return planned(module, around, node, make, content)


def planned(
    module: Module,
    around: Stmt | Scope,
    node: Node,
    make: Callable[[], Edit],
    content: str | None = None,
    *,
    drops: bool = False,
    expected: Callable[[], Edit] | None = None,
) -> Edit | Planned:
    """The edit that ``make`` works out at a node of a statement, now or when it is asked for.

    Args:
        module: where the statement is.
        around: the statement.
        node: what ``make`` looks for.
        make: as in :class:`Planned`.
        content: what will stand in the node's place, if ``make`` replaces the whole of it.
        drops: whether ``make`` may take something out of the node, and a comment with it.
        expected: an edit that means the same, where ``content`` does not say it.

    Raises:
        RegionError: ``make`` had to be asked now and cannot tell.
    """
    source = module.source
    start, end = offsets(source, node)
    # Before Python 3.12 the positions of what stands in an f-string are not its own.
    if _F_STRING.search(source.text, source.line_starts[max(around.row, 1) - 1], end):
        return make()
    if drops and "#" in source.text[start:end]:
        return make()
    if expected is None:
        if content is None:
            return make()
        return Planned(make, Edit(source.path, start, end, content))
    return Planned(make, expected())


_F_STRING = re.compile(r"""\b[rR]?[fF][rR]?["']""")


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


@functools.lru_cache(maxsize=8)  # several findings in one class or dict are mended one by one
def _read(text: str) -> _Stretch | None:
    """The text as nodes, which nobody changes; None if libcst cannot read it."""
    import libcst as cst
    from libcst.metadata import MetadataWrapper, PositionProvider

    try:
        tree = cst.parse_module(text)
    except cst.ParserSyntaxError:
        return None
    return _Stretch(tree, MetadataWrapper(tree, unsafe_skip_copy=True).resolve(PositionProvider))


def offsets(source: SourceFile, node: Node) -> tuple[int, int]:
    """A node's first and last (exclusive) character in the file."""
    return source.offset(node.row, node.col), source.offset(node.end_row, node.end_col)


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


def line_indent(source: SourceFile, row: int) -> str:
    """The white space a line starts with."""
    line = source.line(row)
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def insert_lines(source: SourceFile, row: int, lines: list[str]) -> Edit:
    """The edit that puts ``lines`` (without line ends) before line ``row``."""
    starts = source.line_starts
    offset = starts[row - 1] if row <= len(starts) else len(source.text)
    newline = source.newline
    text = "".join(line + newline for line in lines)
    if offset == len(source.text) and source.text and not source.text.endswith(("\n", "\r")):
        text = newline + text.removesuffix(newline)
    return Edit(source.path, offset, offset, text)


def delete_lines(source: SourceFile, stmt: Stmt) -> Edit:
    """The edit that takes out the lines of a statement that stands on lines of its own."""
    starts = source.line_starts
    end = starts[stmt.end_row] if stmt.end_row < len(starts) else len(source.text)
    return Edit(source.path, starts[stmt.row - 1], end, "")
