"""Whether everybody who calls a function passes the parameter that a fix gives it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from sampler_lint.domain.concepts import LOOKS
from sampler_lint.domain.model import Model
from sampler_lint.edits.safety.texts import FUNCTIONS, Changed, Tree
from sampler_lint.source import SourceError, SourceFile
from sampler_lint.workspace.project import Module


def new_parameters(model: Model, changes: Mapping[str, tuple[Module, Changed]]) -> str | None:
    """What speaks against the parameters that the fix adds."""
    for _, changed in changes.values():
        for old, new in changed.same.items():
            if not isinstance(old, FUNCTIONS) or not isinstance(new, FUNCTIONS):
                continue
            before, after = _parameters(old), _parameters(new)
            added = [name for name in after if name not in before]
            if [name for name in after if name in before] != before:
                return f"`{old.name}` would take its arguments in another order"
            for name in added:
                if reason := _not_passed(model, changes, changed, new, name):
                    return reason
    return None


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Its parameters but ``*args`` and ``**kwargs``, the keyword-only ones last."""
    args = function.args
    return [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]


def _not_passed(
    model: Model,
    changes: Mapping[str, tuple[Module, Changed]],
    changed: Changed,
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    parameter: str,
) -> str | None:
    cls = changed.new.parents[function]
    if function.decorator_list:
        return f"`{function.name}` is decorated"
    name = cls.name if isinstance(cls, ast.ClassDef) else function.name
    if isinstance(cls, ast.ClassDef) and function.name != "__init__":
        return f"`{function.name}` is a method, whose callers are not all known"
    for shown, tree in _trees(model, changes, name):
        for node in ast.walk(tree.root):
            if _names_it(node, name) and not isinstance(node, ast.alias):
                call = tree.parents.get(node)
                if not (isinstance(call, ast.Call) and call.func is node):
                    if _is_harmless(tree, node):
                        continue
                    return f"`{name}` is not only called, but handed on in {_place(shown, node)}"
                if not _passes(call, parameter):
                    return f"{_place(shown, node)} does not pass `{parameter}`"
            if (
                isinstance(node, ast.alias)
                and node.name == name
                and node.asname not in {None, name}
            ):
                return f"`{name}` has another name in {shown}"
        if isinstance(cls, ast.ClassDef):
            for call in _indirect(tree, name):
                if not _passes(call, parameter):
                    return f"{_place(shown, call)} does not pass `{parameter}`"
    return None


def _trees(
    model: Model, changes: Mapping[str, tuple[Module, Changed]], name: str
) -> Iterator[tuple[str, Tree]]:
    """The files that say the name, as the fix leaves them."""
    project = model.project
    for path, shown in project.files.items():
        if shown in changes:
            yield shown, Tree(changes[shown][1].new.text)
            continue
        try:
            data = project.bytes_of(path)
            if name.encode() in data:
                yield shown, Tree(SourceFile(shown, data).text)
        except (SourceError, SyntaxError, ValueError, RecursionError):
            continue


def _names_it(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Attribute):
        return node.attr == name and isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Constant) and node.value == name


def _is_harmless(tree: Tree, node: ast.AST) -> bool:
    """Whether the name only stands in ``__all__``, an annotation, ``isinstance`` or the bases."""
    if isinstance(node, ast.Constant):
        stmt = tree.statement(node)
        targets = getattr(stmt, "targets", [])
        return any(isinstance(one, ast.Name) and one.id == "__all__" for one in targets) or (
            isinstance(stmt, ast.Expr) and stmt.value is node
        )
    child = node
    for parent in tree.around(node):
        if isinstance(parent, (ast.arg, ast.AnnAssign)) and parent.annotation is child:
            return True
        if isinstance(parent, FUNCTIONS) and parent.returns is child:
            return True
        if isinstance(parent, ast.ClassDef) and any(child is base for base in parent.bases):
            return True
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
            return parent.func.id in LOOKS.called
        if isinstance(parent, ast.stmt):
            return False
        child = parent
    return False


def _passes(call: ast.Call, parameter: str) -> bool:
    return any(keyword.arg == parameter for keyword in call.keywords) and not any(
        isinstance(arg, ast.Starred) for arg in call.args
    )


def _indirect(tree: Tree, name: str) -> Iterator[ast.Call]:
    """The calls that build the class without its name: ``cls(…)`` and ``super().__init__(…)``."""
    for cls in ast.walk(tree.root):
        if not isinstance(cls, ast.ClassDef):
            continue
        derived = any(_names_it(base, name) for base in cls.bases)
        if not derived and cls.name != name:
            continue
        for call in ast.walk(cls):
            if not isinstance(call, ast.Call):
                continue
            func = call.func
            if (
                (isinstance(func, ast.Name) and func.id == "cls")
                or (isinstance(func, ast.Attribute) and func.attr == "__class__")
                or (isinstance(func, ast.Call) and ast.unparse(func.func) == "type")
                or (derived and isinstance(func, ast.Attribute) and func.attr == "__init__")
            ):
                yield call


def _place(shown: str, node: ast.AST) -> str:
    return f"{shown}:{getattr(node, 'lineno', 1)}"
