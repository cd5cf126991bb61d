"""What others see of the code that a fix changes: the errors of it, and what it does besides."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from sampler_lint.analysis.values import FuncRef, Obj, Value
from sampler_lint.domain.epoch_calls import epoch_samplers
from sampler_lint.domain.model import Model
from sampler_lint.edits.safety.meaning import original, scope_at, scopes_of
from sampler_lint.edits.safety.names import path
from sampler_lint.edits.safety.receivers import statements_of
from sampler_lint.edits.safety.texts import FUNCTIONS, Changed, Tree
from sampler_lint.syntax.lower import expression
from sampler_lint.syntax.navigation import statements
from sampler_lint.syntax.nodes import Call, Class, ExprStmt, Function
from sampler_lint.workspace.project import Module

_OF_WRONG_CALLS = frozenset({"AssertionError", "AttributeError", "TypeError", "ValueError"})
_OF_ALL = frozenset({"BaseException", "Exception"})


def dropped(model: Model, module: Module, changed: Changed) -> str | None:
    """A property or function that does more than give a value, and that the fix asks no more."""
    kept = {_name(node) for node in changed.new.spans if changed.is_altered(node)}
    for node in changed.old.spans:
        if node in changed.same or _name(node) in kept:
            continue
        found = [*model.properties(node.attr)] if isinstance(node, ast.Attribute) else []
        if isinstance(changed.old.parents.get(node), ast.Call):
            values = _values(model, module, changed.old, node)
            found += [value.function for value in values if isinstance(value, FuncRef)]
        if any(map(_does_more, found)):
            return f"`{ast.unparse(node)}` does more than give a value"
    return None


def _name(node: ast.AST) -> str | None:
    return getattr(node, "attr", getattr(node, "id", None))


def _does_more(function: Function) -> bool:
    """Whether it keeps something, or calls what is not for its result, as ``print(…)``."""
    return bool(function.stores) or any(
        isinstance(stmt, ExprStmt) and isinstance(stmt.value, Call)
        for stmt in statements(function.body)
    )


def caught(model: Model, module: Module, changed: Changed) -> str | None:
    """A place that uses what the fix changes, and is prepared for the error of a wrong call.

    It calls a function or class by its name, or has an object of the class, or a loader that
    iterates over one.
    """
    for new, call in changed.back.items():
        is_other = isinstance(new, ast.Call) and changed.is_altered(new.func)
        if is_other and _is_answered(changed, call):
            return f"line {call.lineno} is prepared for its error"  # type: ignore[attr-defined]
    edited = [
        one
        for one, (start, end) in changed.old.spans.items()
        if isinstance(one, (*FUNCTIONS, ast.ClassDef))
        if any(start <= edit.start <= end for edit in changed.edits)
    ]
    names, classes = {one.name for one in edited}, {scope_at(module, one) for one in edited}
    whole = original(model, module).tree
    for node in whole.catching if names else ():
        if isinstance(node, ast.Try) and not any(map(_awaits_wrong_call, node.handlers)):
            continue
        if isinstance(node, ast.With) and not any(map(_suppresses, node.items)):
            continue
        for one in (part for stmt in node.body for part in ast.walk(stmt)):
            is_called = isinstance(one, ast.Call) and (
                (path(one.func) or "").rpartition(".")[2] in names
            )
            if is_called or any(cls in classes for cls in _used(model, module, whole, one)):
                return f"line {one.lineno} is prepared for its error"  # type: ignore[attr-defined]
    return None


def _is_answered(changed: Changed, call: ast.AST) -> bool:
    """Whether something else is done where a call of the file as it was fails."""
    child = call
    for one in changed.old.around(call):
        if isinstance(one, (*FUNCTIONS, ast.Lambda)):
            return False
        if isinstance(one, ast.Try) and child in one.body:
            return any(
                _awaits_wrong_call(handler)
                and not all(isinstance(stmt, (ast.Pass, ast.Continue)) for stmt in handler.body)
                for handler in one.handlers
            )
        child = one
    return False


def _used(model: Model, module: Module, whole: Tree, node: ast.AST) -> Iterator[object]:
    """The classes of what a name of the file stands for, and of what it iterates over."""
    for value in _values(model, module, whole, node):
        if isinstance(value, Obj):
            for carried in (value, *(one.sampler for one in epoch_samplers(model, value))):
                if isinstance(carried.cls, Class):
                    yield from model.flow.mro(carried.cls)


def _values(model: Model, module: Module, tree: Tree, node: ast.AST) -> Iterable[Value]:
    """What a name of the file as it is stands for."""
    stmt = tree.statement(node)
    scope = scope_at(module, scopes_of(tree).scope(node)) if stmt is not None else None
    if scope is None or stmt is None or not isinstance(node, (ast.Name, ast.Attribute)):
        return ()
    place = statements_of(scope).get((stmt.lineno, stmt.col_offset))
    return model.flow.values(expression(node, scope, place))


def _awaits_wrong_call(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(one, ast.Name) and one.id in _OF_WRONG_CALLS for one in caught)


def _suppresses(item: ast.withitem) -> bool:
    """``suppress(…)`` of such an error, or of every one: what raises then does nothing."""
    call = item.context_expr
    return (
        isinstance(call, ast.Call)
        and (path(call.func) or "").rpartition(".")[2] == "suppress"
        and any(
            isinstance(one, ast.Name) and one.id in {*_OF_WRONG_CALLS, *_OF_ALL}
            for one in call.args
        )
    )
