"""A file whose text was edited and whose code was not: its nodes go where they stand now.

Most of what is typed in an editor and not yet code, a comment or an empty line, changes no answer.
So it is with a text that has the same syntax tree, whose lines still hold the same nodes, and that
answers alike whatever was asked of the old one (:meth:`~..source.SourceFile.tells`).
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from sampler_lint.findings import Place
from sampler_lint.source import SourceError, SourceFile
from sampler_lint.syntax.lower import extract
from sampler_lint.syntax.nodes import ModuleFacts, Node
from sampler_lint.syntax.parse import FactsError, parse
from sampler_lint.workspace.project import Module


class Reread(NamedTuple):
    """A file of the tree with the text that it has now."""

    module: Module
    source: SourceFile
    facts: ModuleFacts
    tree: ast.Module

    @classmethod
    def of(cls, module: Module, data: bytes) -> Reread | None:
        """Read it; None where it cannot be."""
        try:
            source = SourceFile(module.source.path, data)
            tree = parse(source.text)
            return cls(module, source, extract(tree, lists_nodes=True), tree)
        except (SourceError, FactsError):
            return None

    def move(self) -> Move | None:
        """How its nodes move; None if its code, or what its text told, is another."""
        was, now = self.module.facts.made, self.facts.made
        if not was or len(was) != len(now):
            return None
        rows = {old.row: new.row for old, new in zip(was, now, strict=True)}
        rows |= {old.end_row: new.end_row for old, new in zip(was, now, strict=True)}
        if len(set(rows.values())) < len(rows) or not all(
            new.row == rows[old.row]
            and new.end_row == rows[old.end_row]
            and (new.col, new.end_col) == (old.col, old.end_col)
            for old, new in zip(was, now, strict=True)
        ):
            return None
        if not self.module.source.is_alike(self.source, rows):
            return None
        if not self.module.source.shape:
            self.module.source.shape = _shape(parse(self.module.source.text))
        self.source.shape = _shape(self.tree)
        if self.source.shape != self.module.source.shape:
            return None
        return Move(self.module, self.source, rows)


class Move(NamedTuple):
    """The new text of a file, and the rows of it that the old ones with nodes in them became."""

    module: Module
    source: SourceFile
    rows: dict[int, int]

    def place(self, place: Place) -> Place | None:
        """Where in this file a place of it is now; None if that is not known."""
        row = self.rows.get(place.start.row)
        return None if row is None else place._replace(start=place.start._replace(row=row))

    def make(self) -> None:
        """Let the nodes stand where they do now."""
        facts, rows = self.module.facts, self.rows
        for node in facts.made:
            node.row, node.end_row = rows[node.row], rows[node.end_row]
        facts.memo.clear()
        self.module.source = self.source


def knows(moves: Iterable[Move], node: Node) -> bool:
    """Whether a node moves with its file, and was not made up by who asked."""
    return any(each is node for move in moves for each in move.module.facts.made)


def _shape(tree: ast.Module) -> str:
    """All that a syntax tree says, but not where."""
    return hashlib.blake2b(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()
