"""The same program written differently: what a rule says must not depend on it."""

from __future__ import annotations

import ast
import codecs
import io
import tokenize
from collections.abc import Iterator

from sampler_lint.source import SourceFile

_DATA = "torch.utils.data"


def with_other_newlines(data: bytes) -> bytes:
    """CRLF for LF, and LF for CRLF."""
    if b"\r\n" in data:
        return data.replace(b"\r\n", b"\n")
    return data.replace(b"\n", b"\r\n")


def with_bom(data: bytes) -> bytes:
    return data if data.startswith(codecs.BOM_UTF8) else codecs.BOM_UTF8 + data


def with_tabs(data: bytes) -> bytes:
    """One tab per level before each statement; lines inside a statement stay as they are."""
    lines = data.decode().split("\n")
    for row, depth in _depths(data):
        lines[row - 1] = "\t" * depth + lines[row - 1].lstrip(" \t")
    return "\n".join(lines).encode()


def _depths(data: bytes) -> Iterator[tuple[int, int]]:
    """The row of each statement and of each comment between statements, with its depth."""
    depth, fresh = 0, True
    comments: list[int] = []
    for token in tokenize.tokenize(io.BytesIO(data).readline):
        if token.type == tokenize.INDENT:
            depth += 1
        elif token.type == tokenize.DEDENT:
            depth -= 1
        elif token.type == tokenize.NEWLINE:
            fresh = True
        elif token.type == tokenize.COMMENT and fresh:
            comments.append(token.start[0])
        elif fresh and token.type not in {tokenize.NL, tokenize.ENCODING}:
            # A comment stands as deep as the statement after it.
            yield from ((row, depth) for row in comments)
            comments.clear()
            if token.type != tokenize.ENDMARKER:
                yield token.start[0], depth
            fresh = False


def with_aliases(data: bytes) -> bytes:
    """``from torch.utils.data import X`` becomes ``… import X as AliasX``, as do the uses."""
    source = SourceFile("", data)
    tree = ast.parse(source.text)
    imported = [
        alias
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_DATA)
        for alias in node.names
        if alias.asname is None and alias.name != "*"
    ]
    names = {alias.name for alias in imported}
    edits = [(_offset(source, a), a.name, f"{a.name} as Alias{a.name}") for a in imported]
    edits += [
        (_offset(source, node), node.id, f"Alias{node.id}")
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in names
    ]
    text = source.text
    for start, old, new in sorted(edits, reverse=True):
        assert text[start : start + len(old)] == old
        text = text[:start] + new + text[start + len(old) :]
    return source.encode(text)


def _offset(source: SourceFile, node: ast.alias | ast.Name) -> int:
    return source.offset(node.lineno, node.col_offset)


def with_comment(data: bytes, row: int, comment: str) -> bytes:
    """The comment at the end of the row (1-based)."""
    lines = data.decode().splitlines(keepends=True)
    body = lines[row - 1].rstrip("\r\n")
    lines[row - 1] = f"{body}  {comment}{lines[row - 1][len(body) :]}"
    return "".join(lines).encode()
