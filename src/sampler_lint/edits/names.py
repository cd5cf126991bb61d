"""How a fix can call things: what a name means at a place, and which names are free."""

from __future__ import annotations

import re
from collections import Counter

from sampler_lint.edits.region import offsets
from sampler_lint.limits import LONGEST_QUOTED
from sampler_lint.source import SourceFile
from sampler_lint.syntax.navigation import binder_of, expressions, same, statements, unparse, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Class,
    Define,
    Expr,
    For,
    Function,
    Imported,
    Name,
    Node,
    Scope,
    Stmt,
)
from sampler_lint.workspace.project import Module


def text_of(source: SourceFile, node: Node) -> str:
    """The node as the file spells it."""
    start, end = offsets(source, node)
    return source.text[start:end]


def quoted(source: SourceFile, expr: Expr) -> str:
    """The expression for a message: as the file spells it, or abbreviated where that is long."""
    text = text_of(source, expr)
    return text if len(text) <= LONGEST_QUOTED and "\n" not in text else unparse(expr)


def name_of(module: Module, scope: Class | Function) -> Node:
    """The name in a ``class`` or ``def`` line, as a node to point at."""
    source = module.source
    line = source.line(scope.row)
    node = Node()
    node.row = node.end_row = scope.row
    match = re.compile(rf"(?:class|def)\s+({re.escape(scope.name)})\b").search(line)
    if match is None:
        node.col, node.end_col = scope.col, scope.col
    else:
        node.col = len(line[: match.start(1)].encode())
        node.end_col = len(line[: match.end(1)].encode())
    return node


def visible(scope: Scope, name: str) -> bool:
    """Whether ``name`` is bound in the scope or one around it."""
    return any(name in each.bindings for each in scope.outward())


def means_the_same(expr: Expr, scope: Scope) -> bool:
    """Whether every name in ``expr`` has its own meaning when written in ``scope``, too."""
    return all(
        binder_of(name.scope, name.id) is binder_of(scope, name.id)
        for name in walk(expr)
        if isinstance(name, Name)
    )


def fresh_name(scope: Scope, *wanted: str) -> str:
    """The first of ``wanted`` that means nothing yet in the scope."""
    for name in wanted:
        if not visible(scope, name):
            return name
    number = 2
    while visible(scope, f"{wanted[-1]}_{number}"):
        number += 1
    return f"{wanted[-1]}_{number}"


def reads_of(module: Module, name: Name) -> int:
    """How often a variable of the scope is read in its file."""
    known: Counter[tuple[Scope | None, str]] | None = module.facts.memo.get(reads_of)
    if known is None:
        known = module.facts.memo[reads_of] = Counter(
            (binder_of(scope, node.id), node.id)
            for scope in module.facts.scopes
            for stmt in statements(scope.body)
            for expr in expressions(stmt)
            if not (isinstance(stmt, (For, Assign)) and expr in {*_targets(stmt)})
            for node in walk(expr)
            if isinstance(node, Name)
        )
    return known[name.scope, name.id]


def is_unnamed(module: Module, name: Name) -> bool:
    """Whether a variable says that nothing reads it, as ``_``, and nothing does."""
    return name.id.startswith("_") and not reads_of(module, name)


def _targets(stmt: For | Assign) -> list[Expr]:
    return [stmt.target] if isinstance(stmt, For) else stmt.targets


def imported_as(module: Module, attribute: str) -> str | None:
    """The module-level name of what was imported as ``from … import attribute``."""
    for name, bindings in module.facts.bindings.items():
        for binding in bindings:
            if isinstance(binding.payload, Imported) and binding.payload.attribute == attribute:
                return name
    return None


def imported_module(module: Module, dotted: str) -> str | None:
    """How the file's top level can spell the module, without another import.

    ``import torch`` brings ``torch.distributed``, too, as torch imports it itself.
    """
    head, _, tail = dotted.rpartition(".")
    for name, bindings in module.facts.bindings.items():
        for binding in bindings:
            is_only = len(bindings) == 1 and name != head
            imported = binding.payload
            if (
                is_only
                and isinstance(imported, Imported)
                and imported[:2] in {(dotted, None), (head, tail)}
            ):
                return name
    if head:
        owner = imported_module(module, head)
        return f"{owner}.{tail}" if owner is not None else None
    return None


def first_definition(module: Module) -> Stmt | None:
    """The first ``def`` or ``class`` at the top level of the file."""
    for stmt in module.facts.body:
        if isinstance(stmt, Define):
            return stmt
    return None


def future_annotations(module: Module) -> bool:
    """Whether annotations of the file are never evaluated."""
    return any(
        isinstance(binding.payload, Imported) and binding.payload.name == "__future__"
        for binding in module.facts.bindings.get("annotations", ())
    )


def reads_within(scope: Scope, owner: Stmt, value: Expr, attribute: str) -> list[Attr]:
    """The reads of ``value.attribute``, spelled like ``value``, in a statement and inside it."""
    return [
        read
        for read in scope.reads
        if read.name == attribute
        and read.stmt is not None
        and owner.encloses(read.stmt)
        and same(read.value, value)
    ]
