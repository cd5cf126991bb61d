"""What else changes when a class derives from another base."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sampler_lint.domain.model import Model
from sampler_lint.edits.safety.kinds import scope_at
from sampler_lint.edits.safety.outlines import unread
from sampler_lint.edits.safety.texts import Changed
from sampler_lint.syntax.lower import expression
from sampler_lint.syntax.nodes import Call, Class, Expr, If, Raise, Simple, last_name
from sampler_lint.workspace.project import Module


def other_base(model: Model, module: Module, changed: Changed) -> str | None:
    """A place that treats a class in another way because of the base that a fix gives it."""
    for old, new in changed.same.items():
        if not isinstance(old, ast.ClassDef) or not isinstance(new, ast.ClassDef):
            continue
        if [*map(ast.dump, old.bases)] == [*map(ast.dump, new.bases)]:
            continue
        cls = scope_at(module, old)
        if not isinstance(cls, Class):
            return f"what derives from `{old.name}` is not known"
        for derived in model.flow.subclasses(cls):
            for call in _supers(derived):
                if last_name(call.positional[0]) == cls.name:
                    place = model.place(call.scope, call)
                    return f"{place} skips `{cls.name}`"
        for base in new.bases:
            values = model.flow.values(expression(base, module.facts, None))
            for call in model.project.calls_named("isinstance"):
                given = call.positional
                if len(given) == 2 and not _refuses(call) and _asks(model, given[1], values):
                    return f"{model.place(call.scope, call)} asks what the class derives from"
    return None


def other_init(model: Model, changed: Changed) -> str | None:
    """A class of a file that is not looked at, whose other bases a changed call may reach."""
    for old, call in changed.same.items():
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr != "__init__" or ast.dump(old) == ast.dump(call):
            continue
        around = changed.new.around(call)
        cls = next((one for one in around if isinstance(one, ast.ClassDef)), None)
        if cls is None:
            continue
        for shown, outline in unread(model, cls.name.encode()):
            for derived, _ in outline.deriving({cls.name}):
                if len(derived.bases) > 1:
                    return f"{shown}:{derived.row} has other bases, too"
    return None


def _supers(cls: Class) -> Iterator[Call]:
    for method in cls.methods:
        yield from (c for c in method.calls if last_name(c.func) == "super" and c.positional)


def _asks(model: Model, kinds: Expr, values: frozenset[object]) -> bool:
    named = getattr(kinds, "items", None) or [kinds]
    return any(values & model.flow.values(one) for one in named)


def _refuses(call: Call) -> bool:
    """Whether the test only stops what is of another class."""
    stmt = call.stmt
    if isinstance(stmt, Simple):
        return stmt.kind == "assert"
    return isinstance(stmt, If) and bool(stmt.body) and isinstance(stmt.body[-1], Raise)
