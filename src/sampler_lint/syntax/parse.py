"""From source text to Python's own syntax tree, whichever version the text was written for."""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING

from sampler_lint.limits import MOST_LINES

if TYPE_CHECKING:
    from libcst.metadata import CodePosition


class FactsError(Exception):
    """The file is no Python this interpreter can read; ``row`` says where."""

    def __init__(self, reason: str, row: int | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row


#: What was parsed to see whether it can be, for who parses the same text next.
_ahead: tuple[str, ast.Module] | None = None


def parse_ahead(text: str) -> None:
    """:func:`parse` a text that will be asked for next.

    Raises:
        FactsError: as there.
    """
    global _ahead
    _ahead = None
    _ahead = text, parse(text)


def parse(text: str) -> ast.Module:
    """Parse ``text``, also where it uses syntax that is newer than the running Python.

    Raises:
        FactsError: it is not valid Python, or nested too deeply to be read.
    """
    global _ahead
    if _ahead is not None and _ahead[0] == text:
        tree, _ahead = _ahead[1], None
        return tree
    try:
        return _parse(text)
    except SyntaxError as error:
        older = _in_older_syntax(text)
        if older is not None:
            try:
                return _parse(older)
            except (SyntaxError, ValueError):
                pass
        raise FactsError(f"is not valid Python: {error.msg}", error.lineno) from None
    except (RecursionError, MemoryError):
        raise FactsError("is nested too deeply to be parsed", None) from None
    except ValueError as error:
        raise FactsError(f"is not valid Python: {error}", None) from None


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """What ``ast.iter_child_nodes`` yields."""
    found: list[ast.AST] = []
    for name in _HOLDING[type(node)]:
        value = getattr(node, name, None)
        if type(value) is list:
            found += [each for each in value if isinstance(each, ast.AST)]
        elif value is not None and isinstance(value, ast.AST):
            found.append(value)
    return found


class _Holding(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each kind of node that may hold others."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        found = tuple(name for name in kind._fields if name not in _PLAIN_FIELDS)
        self[kind] = found = () if kind is ast.Constant else found
        return found


#: Fields that hold texts and numbers, in whichever kind of node.
_PLAIN_FIELDS = frozenset(
    {"asname", "attr", "conversion", "id", "is_async", "kind", "level", "module", "simple",
     "type_comment"}
)  # fmt: skip
_HOLDING = _Holding()


def all_nodes(root: ast.AST) -> list[ast.AST]:
    """What ``ast.walk`` yields, in half its time: much of a file is walked for a trial or a fix."""
    found = [root]
    for node in found:
        found += child_nodes(node)
    return found


def check_syntax(text: str) -> None:
    """Raise what :func:`parse` would, in two thirds of its time: no tree is built.

    Raises:
        FactsError: it is not valid Python, or nested too deeply to be read.
    """
    import symtable

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            symtable.symtable(text, "<file>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        parse(text)  # the symbol table has errors of its own, which are none here


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _in_older_syntax(text: str) -> str | None:
    """``text`` with newer syntax blanked out in place, so that every position stays.

    Type parameters (``def f[T](x)``, 3.12) become spaces, ``type X = …`` loses its keyword, and
    f-strings that only 3.12 can split (PEP 701) become plain strings: none of them says
    anything about samplers. None if libcst cannot read the text either.
    """
    if text.count("\n") > MOST_LINES or not _NEWER.search(text):
        return None
    import libcst as cst
    from libcst.metadata import MetadataWrapper, PositionProvider

    try:
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        positions = wrapper.resolve(PositionProvider)
    except (cst.ParserSyntaxError, RecursionError):
        return None
    lines = text.splitlines(keepends=True)
    stack: list[cst.CSTNode] = [wrapper.module]
    while stack:
        node = stack.pop()
        if isinstance(node, (cst.TypeParameters, cst.FormattedString)):
            place = positions[node]
            fill = " " if isinstance(node, cst.TypeParameters) else "'"
            _blank(lines, place.start, place.end, fill)
            continue
        if isinstance(node, cst.TypeAlias):
            start = positions[node].start
            _blank(lines, start, positions[node.name].start, " ")
            row = start.line - 1
            name = node.name.value
            at = positions[node.name].start.column
            line = lines[row]
            lines[row] = (
                line[: start.column] + name + " " * (at - start.column) + line[at + len(name) :]
            )
        stack.extend(node.children)
    return "".join(lines)


_NEWER = re.compile(r"\b(?:def|class)\s+\w+\s*\[|^[ \t]*type[ \t]+\w+|[fF][rR]?[\"']", re.MULTILINE)


def _blank(lines: list[str], start: CodePosition, end: CodePosition, fill: str) -> None:
    """Overwrite a stretch; with a quote as ``fill``, by an empty string literal of its width."""
    for row in range(start.line - 1, end.line):
        line = lines[row]
        body = line.rstrip("\r\n")
        first = start.column if row == start.line - 1 else 0
        last = end.column if row == end.line - 1 else len(body)
        lines[row] = line[:first] + " " * (last - first) + line[last:]
    if fill == " ":
        return
    row = start.line - 1
    line = lines[row]
    if start.line == end.line:
        inside = " " * (end.column - start.column - 2)
        lines[row] = f"{line[: start.column]}{fill}{inside}{fill}{line[end.column :]}"
    else:
        # A triple-quoted string keeps its rows.
        lines[row] = line[: start.column] + fill * 3 + line[start.column + 3 :]
        row = end.line - 1
        line = lines[row]
        lines[row] = line[: end.column - 3] + fill * 3 + line[end.column :]
