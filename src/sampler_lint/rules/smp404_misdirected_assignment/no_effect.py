"""Statements of a sampler's setter that look like an assignment and assign nothing."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.edits.editor import replacing
from sampler_lint.edits.names import text_of
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import nodes_in, same, self_class, statements
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Class,
    Compare,
    Declare,
    Expr,
    ExprStmt,
    Function,
    Name,
    Stmt,
)
from sampler_lint.workspace.project import Module


def no_effect(module: Module, cls: Class) -> Iterator[Suspect]:
    """``self.x == value``, ``self.x: value`` and ``self.x = self.x`` in the class's setters."""
    for method in cls.methods:
        if not method.name.startswith("set_"):
            continue
        stored = {s.target.name for s in method.stores if isinstance(s.target, Attr)}
        for stmt in statements(method.body):
            found = _meant(method, stmt)
            if found is None:
                continue
            target, value = found
            if self_class(target.value) is cls and (
                target.name not in stored or isinstance(stmt, Assign)
            ):
                yield _suspect(module, cls, method, stmt, target, value)


def _meant(method: Function, stmt: Stmt) -> tuple[Attr, Expr | str] | None:
    """The attribute and the value that it was to get."""
    if isinstance(stmt, ExprStmt) and isinstance(stmt.value, Compare):
        compare = stmt.value
        if compare.ops == ["Eq"] and isinstance(compare.left, Attr):
            return compare.left, compare.rights[0]
    elif isinstance(stmt, Declare) and isinstance(stmt.target, Attr):
        note = stmt.annotation
        if isinstance(note, Name) and method.param(note.id) is not None:
            return stmt.target, note
    elif isinstance(stmt, Assign) and len(stmt.targets) == 1:
        target, value = stmt.targets[0], stmt.value
        if isinstance(target, Attr) and same(target, value) and _is_idle(method, target.name):
            return target, target.name
    return None


def _is_idle(method: Function, name: str) -> bool:
    """Whether a parameter of that name is given and never read."""
    return method.param(name) is not None and not any(
        isinstance(node, Name) and node.id == name for node in nodes_in(statements(method.body))
    )


def _suspect(
    module: Module, cls: Class, method: Function, stmt: Stmt, target: Attr, value: Expr | str
) -> Suspect:
    source = module.source
    shown = text_of(source, target)
    meant = f"{shown} = {value if isinstance(value, str) else text_of(source, value)}"
    return Suspect(
        module,
        stmt,
        f"this line of `{cls.name}.{method.name}` assigns nothing",
        fix=replacing(stmt, meant, f"Write `{meant}`"),
        effect=f"`{shown}` keeps its old value",
        advice=f"write `{meant}`",
    )
