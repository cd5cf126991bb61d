"""Jupyter notebooks as Python source and back, with every byte outside the edits kept.

The code cells of a notebook become one Python file: a line that marks the cell, then the cell,
with IPython's own syntax (``%magic``, ``!command``, ``name?``) behind a comment on its line. What
a fix makes of that file is cut at the marks again, and only the JSON strings of cells that
changed are written anew; outputs, metadata and layout stay as they are.

The format is nbformat 4 (https://nbformat.readthedocs.io/en/latest/format_description.html).
"""

from __future__ import annotations

import ast
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

_MARK = "# %% [sampler-lint: cell {}]"
_MARKED = re.compile(r"^# %% \[sampler-lint: cell (\d+)\]$")
#: Stands where a line of IPython stood, which follows it.
_KEPT = "pass  # %ipython% "
#: A line that only IPython understands: a magic, a command, help, or the result of one.
_IPYTHON = re.compile(
    r"[ \t]*(?![ \t])(?:[%!?]|[\w.,\t \[\]\"']+=[ \t]*[%!]|[%\w.*]+\?{1,2}[ \t]*$|/\w|,\w|;\w)"
)
#: Cell magics after which the rest of the cell is still Python.
_PYTHON_CELLS = frozenset({"%%time", "%%timeit", "%%capture", "%%prun", "%%python", "%%python3"})
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]', re.DOTALL)


class NotebookError(ValueError):
    """The notebook cannot be read, or changed so; the text says why."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One code cell."""

    number: int
    """Its place among all cells of the notebook, from 1."""
    text: str
    """What its author typed."""
    python: str
    """The same lines with IPython's own syntax out of the way."""


@dataclass(frozen=True, slots=True)
class _Lines:
    """Where a cell's source stands in the notebook's text: JSON strings, in a list or alone."""

    spans: tuple[tuple[int, int], ...]
    listed: bool


class Notebook:
    """A notebook, and the Python file that stands for it."""

    def __init__(self, data: bytes) -> None:
        """Read the bytes of a notebook.

        Raises:
            NotebookError: it is not UTF-8, not JSON, or no notebook of format 4.
        """
        try:
            self._raw = data.decode("utf-8")
            content = json.loads(self._raw)
        except UnicodeDecodeError as error:
            raise NotebookError("is no notebook: not in UTF-8") from error
        except (ValueError, RecursionError) as error:
            raise NotebookError(f"is no notebook: {error}") from error
        if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
            raise NotebookError("is no notebook of format 4: it has no list of cells")
        self.cells: list[Cell] = list(_cells(content)) if _is_python(content) else []

    @cached_property
    def source(self) -> bytes:
        """The Python file that stands for the notebook; empty if it is in another language."""
        lines = []
        for cell in self.cells:
            lines += [_MARK.format(cell.number), cell.python]
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")

    def place(self, row: int) -> tuple[int, int]:
        """The cell's number, and the row in it, of a row of :attr:`source`.

        Raises:
            LookupError: no cell has that row.
        """
        index = bisect_right(self._rows, row, key=lambda entry: entry[1].start) - 1
        if index < 0 or row not in self._rows[index][1]:
            raise LookupError(row)
        cell, rows = self._rows[index]
        return cell.number, row - rows.start + 1

    def row(self, number: int, inner: int) -> int:
        """The row of :attr:`source` that :meth:`place` says is ``inner`` of the cell ``number``.

        Raises:
            LookupError: there is no such cell, or it has no such row.
        """
        index = bisect_left(self._rows, number, key=lambda entry: entry[0].number)
        cell, rows = self._rows[index] if index < len(self._rows) else (None, range(0))
        if cell is None or cell.number != number or not 1 <= inner <= len(rows):
            raise LookupError(number, inner)
        return rows[inner - 1]

    @cached_property
    def _rows(self) -> list[tuple[Cell, range]]:
        """Each cell and its rows in :attr:`source`."""
        rows = []
        start = 2
        for cell in self.cells:
            end = start + cell.python.count("\n") + 1
            rows.append((cell, range(start, end)))
            start = end + 1
        return rows

    def file_row(self, row: int) -> int:
        """The row of the notebook's JSON that holds a row of :attr:`source`, from 1.

        Raises:
            LookupError: no cell has that row.
        """
        number, inner = self.place(row)
        spans = self._spans[number]
        start, _ = spans[min(inner, len(spans)) - 1]
        return bisect_left(self._line_ends, start) + 1

    @cached_property
    def _spans(self) -> dict[int, tuple[tuple[int, int], ...]]:
        """Where each cell's lines stand in the notebook's text, by its number."""
        return {
            cell.number: where.spans for cell, where in zip(self.cells, self._lines, strict=True)
        }

    @cached_property
    def _line_ends(self) -> list[int]:
        return [found.start() for found in re.finditer("\n", self._raw)]

    def with_source(self, source: bytes) -> bytes:
        """The notebook's bytes when its code is that of a changed :attr:`source`.

        Raises:
            NotebookError: the lines that mark the cells are not all there, in order.
        """
        texts = self._cut(source.decode("utf-8", "surrogatepass"))
        pieces, end = [], 0
        for cell, where in zip(self.cells, self._lines, strict=True):
            text = texts[cell.number]
            if text == cell.text:
                continue
            pieces += [self._raw[end : where.spans[0][0]], self._written(where, text)]
            end = where.spans[-1][1]
        return "".join([*pieces, self._raw[end:]]).encode()

    def _cut(self, source: str) -> dict[int, str]:
        """What the cells hold, by number."""
        cells: dict[int, list[str]] = {}
        for line in source.removesuffix("\n").split("\n") if source else ():
            mark = _MARKED.match(line)
            if mark:
                cells[int(mark[1])] = []
            elif not cells:
                raise NotebookError("a fix wrote above the first cell")
            else:
                cells[next(reversed(cells))].append(_restored(line))
        if list(cells) != [cell.number for cell in self.cells]:
            raise NotebookError("a fix joined or parted cells")
        return {number: "\n".join(lines) for number, lines in cells.items()}

    def _written(self, where: _Lines, text: str) -> str:
        """``text`` as the JSON that takes the place of a cell's source."""
        if not where.listed:
            return self._quoted(text)
        old = [self._raw[start:end] for start, end in where.spans]
        as_typed = {json.loads(literal): literal for literal in old}
        first, end = where.spans[0]
        if len(where.spans) > 1:
            between = self._raw[end : where.spans[1][0]]
        else:
            between = f",{self._raw[self._raw.rindex('[', 0, first) + 1 : first]}"
        lines = text.splitlines(keepends=True) or [""]
        return between.join(as_typed.get(line) or self._quoted(line) for line in lines)

    def _quoted(self, text: str) -> str:
        """A JSON string in the notebook's own manner."""
        return json.dumps(text, ensure_ascii=self._raw.isascii())

    @cached_property
    def _lines(self) -> list[_Lines]:
        """Where the sources of :attr:`cells` stand."""
        by_index = dict(_source_spans(self._raw))
        return [by_index[cell.number - 1] for cell in self.cells]


def _is_python(content: dict[str, object]) -> bool:
    metadata = content.get("metadata")
    if not isinstance(metadata, dict):
        return True
    for key, name in (("kernelspec", "language"), ("language_info", "name")):
        info = metadata.get(key)
        if isinstance(info, dict) and isinstance(info.get(name), str):
            return bool(info[name] == "python")
    return True


def _cells(content: dict[str, object]) -> Iterator[Cell]:
    cells = content["cells"]
    assert isinstance(cells, list)
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict):
            raise NotebookError(f"cell {number} is no object")
        if cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        lines = source if isinstance(source, list) else [source]
        if not all(isinstance(line, str) for line in lines):
            raise NotebookError(f"the source of cell {number} is no text")
        text = "".join(lines)
        # Other line ends would be taken for line ends by Python and not by JSON's reader.
        if text and not re.search(r"[\r\f\v\x1c-\x1e\x85\u2028\u2029]|" + re.escape(_KEPT), text):
            python = _python(text)
            if python is not None:
                yield Cell(number, text, python)


def _python(text: str) -> str | None:
    """The cell with its line count kept and IPython's lines behind comments; None: no Python."""
    if _parses(text):
        return text
    head = text.lstrip().split(None, 1)[0] if text.strip() else ""
    if head.startswith("%%") and head not in _PYTHON_CELLS:
        return None
    lines, indent, continued = [], "", False
    for line in text.split("\n"):
        if continued or _IPYTHON.match(line):
            # A command goes on after a backslash, in whatever column.
            indent = indent if continued else line[: len(line) - len(line.lstrip(" \t"))]
            continued = line.endswith("\\")
            lines.append(f"{indent}{_KEPT}{line}")
        else:
            lines.append(line)
    return "\n".join(lines)


def _restored(line: str) -> str:
    indent, kept, rest = line.partition(_KEPT)
    return rest if kept and not indent.strip(" \t") else line


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _source_spans(raw: str) -> Iterator[tuple[int, _Lines]]:
    """For each cell that has a source: its index, and where the strings of the source stand."""
    path: list[str | int] = []  # a key, or an index, for each open object or list
    kinds: list[str] = []
    spans: list[tuple[int, int]] = []
    expects_key = False
    for token in _TOKEN.finditer(raw):
        kind = token[0][0]
        if kind in "{[":
            kinds.append(kind)
            path.append(0 if kind == "[" else "")
            expects_key = kind == "{"
        elif kind in "}]":
            kinds.pop()
            path.pop()
            if _is_source(path) and spans:
                yield _index(path), _Lines(tuple(spans), listed=True)
                spans = []
            expects_key = False
        elif kind == ",":
            last = path[-1]
            if isinstance(last, int):
                path[-1] = last + 1
            expects_key = kinds[-1] == "{"
        elif kind == ":":
            expects_key = False
        elif expects_key:
            path[-1] = json.loads(token[0])
        elif _is_source(path):
            yield _index(path), _Lines((token.span(),), listed=False)
        elif _is_source(path[:-1]):
            spans.append(token.span())


def _is_source(path: list[str | int]) -> bool:
    return len(path) == 3 and path[0] == "cells" and path[2] == "source"


def _index(path: list[str | int]) -> int:
    index = path[1]
    assert isinstance(index, int)
    return index
