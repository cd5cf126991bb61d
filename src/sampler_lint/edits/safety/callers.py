"""Whether everybody who calls a function passes the parameter that a fix gives it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from sampler_lint.analysis.arguments import passed
from sampler_lint.analysis.values import Ext, Unknown
from sampler_lint.domain.concepts import LOOKS
from sampler_lint.domain.model import Model
from sampler_lint.domain.signatures import refuser
from sampler_lint.edits.safety.meaning import original, scope_at
from sampler_lint.edits.safety.texts import FUNCTIONS, Changed, Tree
from sampler_lint.source import SourceError, SourceFile
from sampler_lint.syntax.nodes import Expr, Function, Param
from sampler_lint.syntax.parse import all_nodes
from sampler_lint.workspace.project import Module


def new_parameters(model: Model, changes: Mapping[str, tuple[Module, Changed]]) -> str | None:
    """What speaks against the parameters that the fix adds."""
    edited = {
        scope_at(module, old)
        for module, changed in changes.values()
        for old, new in changed.same.items()
        if isinstance(old, FUNCTIONS) and isinstance(new, FUNCTIONS)
        if _parameters(old) != _parameters(new)
    }
    for module, changed in changes.values():
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
                function = scope_at(module, old)
                for call in model.flow.callers(function):
                    if other := refuser(model, call.func, name, edited):
                        return f"{model.place(call.scope, call)} may call another `{other}`"
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
        for node in all_nodes(tree.root):
            if _is_stored(tree, node, name):
                return f"`{name}` is replaced in {_place(shown, node)}"
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
            for node in _indirect(tree, name):
                call = tree.parents[node]
                if isinstance(call, ast.Call) and call.func is node:
                    if not _passes(call, parameter):
                        return f"{_place(shown, call)} does not pass `{parameter}`"
                    continue
                is_read = isinstance(call, (ast.Attribute, ast.Compare, ast.FormattedValue))
                if not is_read and not _is_harmless(tree, node):
                    return f"{_place(shown, node)} hands on `{name}`, as to build another"
    return None


def _is_stored(tree: Tree, node: ast.AST, name: str) -> bool:
    """Whether something else gets the name of a function, as an attribute or in its module."""
    if isinstance(node, ast.Name):
        is_global = not any(isinstance(one, FUNCTIONS) for one in tree.around(node))
        return not isinstance(node.ctx, ast.Load) and node.id == name and is_global
    if isinstance(node, ast.Attribute):
        return not isinstance(node.ctx, ast.Load) and node.attr == name
    return isinstance(node, ast.Global) and name in node.names


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


def unseen(model: Model, function: Function, param: Param) -> str | None:
    """A place that may call a function, and pass something else than is known for a parameter."""
    known: dict[tuple[Function, Param], str | None] = model.memo.setdefault(unseen, {})
    if (function, param) not in known:
        known[function, param] = None  # what calls itself is asked once
        known[function, param] = next(_unseen(model, function, param), None)
    return known[function, param]


def unseen_call(model: Model, function: Function, param: Param) -> str | None:
    """A call that may pass something else for a parameter than the known ones, if there is one."""
    found = (reason for reason, is_call in _elsewhere(model, function, param) if is_call)
    return next(found, None)


def handed_on(model: Model, name: str) -> str | None:
    """A place that neither calls a class of that name nor only says what something is."""
    for shown, tree, nodes in _mentions(model, name, name.encode(), ""):
        for node in nodes:
            call = tree.parents.get(node)
            is_called = isinstance(call, ast.Call) and call.func is node
            if isinstance(node, (ast.Name, ast.Attribute)) and not (
                is_called or _is_harmless(tree, node)
            ):
                return _place(shown, node)
    return None


def is_wrapped(model: Model, function: Function) -> bool:
    """Whether a decorator of the program may pass something else than its callers do."""
    return any(
        not isinstance(value, Ext)
        for decorator in function.decorators
        for value in model.flow.values(decorator)
    )


def _unseen(model: Model, function: Function, param: Param) -> Iterator[str]:
    if is_wrapped(model, function):
        yield f"`{function.name}` is decorated"
    yield from (reason for reason, _ in _elsewhere(model, function, param))


def _elsewhere(model: Model, function: Function, param: Param) -> Iterator[tuple[str, bool]]:
    """What speaks against knowing all that is passed, and whether that is a call."""
    is_init = function.name == "__init__" and function.cls is not None
    name = function.cls.name if is_init and function.cls is not None else function.name
    module = model.module_of(function)
    calls = {
        (model.module_of(call.scope).display, call.row, call.col): call
        for call in model.flow.callers(function)
    }
    if not calls:
        return  # it is for others to call: that is known
    file = Path(module.path)
    told = file.parent.name if file.stem == "__init__" else file.stem
    if function.cls is not None:
        told = function.cls.name
    for shown, tree, nodes in _mentions(model, name, told.encode(), module.display):
        for node in nodes:
            call = tree.parents.get(node)
            if not (isinstance(call, ast.Call) and call.func is node):
                if isinstance(node, ast.Name) and not _is_harmless(tree, node):
                    yield (
                        f"`{name}` is not only called, but handed on in {_place(shown, node)}",
                        False,
                    )
                continue
            said = f"what {_place(shown, node)} passes for `{param.name}` is not known"
            seen = calls.get((shown, call.lineno, call.col_offset))
            if seen is not None:
                given = passed(function, param, seen)
                if _unpacks(call) and not isinstance(given, Expr):
                    yield said, True
            elif not (shown != module.display and _is_own(tree, node)) and _may_mean(
                model, function, shown, call
            ):
                yield said, True


def _is_own(tree: Tree, node: ast.AST) -> bool:
    """Whether a file defines what it calls by that name: it may not have been parsed for us."""
    return isinstance(node, ast.Name) and any(
        isinstance(one, (*FUNCTIONS, ast.ClassDef)) and one.name == node.id
        for one in tree.root.body
    )


def _unpacks(call: ast.Call) -> bool:
    return any(isinstance(arg, ast.Starred) for arg in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    )


def _may_mean(model: Model, function: Function, shown: str, call: ast.Call) -> bool:
    """Whether a call that is not known to call a function may do so: its arguments would fit."""
    for other in model.project.calls_named(function.name):
        place = model.module_of(other.scope).display, other.row, other.col
        if place == (shown, call.lineno, call.col_offset):
            values = model.flow.values(other.func)
            if model.flow.callees(other) or not any(isinstance(v, Unknown) for v in values):
                return False
    params = [one for one in function.params if one.name != function.self_name]
    needed = [one for one in params if one.default is None and one.is_positional]
    given = len(call.args) + len(call.keywords)
    names = {keyword.arg for keyword in call.keywords} - {None}
    fits = _unpacks(call) or len(needed) <= given <= len(params)
    return fits and names <= {one.name for one in params}


class _File(NamedTuple):
    """A file as it is, and where it says which name."""

    tree: Tree
    nodes: dict[str, list[ast.AST]]


def _mentions(
    model: Model, name: str, told: bytes, own: str
) -> Iterator[tuple[str, Tree, list[ast.AST]]]:
    """Where the files say a name that also say what it belongs to."""
    known: dict[str, _File | None] = model.memo.setdefault(_mentions, {})
    for path, shown in model.project.files.items():
        try:
            data = model.project.bytes_of(path)
            if name.encode() not in data or (shown != own and told not in data):
                continue
            if shown not in known:
                known[shown] = None
                module = model.project.module_at(path) if model.project.is_parsed(path) else None
                known[shown] = _read(
                    Tree(SourceFile(shown, data).text)
                    if module is None
                    else original(model, module).tree
                )
        except (SourceError, SyntaxError, ValueError, RecursionError):
            continue
        file = known[shown]
        if file is not None:
            yield shown, file.tree, file.nodes.get(name, [])


def _read(tree: Tree) -> _File:
    nodes: dict[str, list[ast.AST]] = {}
    for node in tree.nodes:
        if isinstance(node, ast.Name):
            name: object = node.id
        elif isinstance(node, ast.Attribute):
            name = node.attr
        else:
            name = node.value if isinstance(node, ast.Constant) else None
        if isinstance(name, str) and _names_it(node, name):
            nodes.setdefault(name, []).append(node)
    return _File(tree, nodes)


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


def _indirect(tree: Tree, name: str) -> Iterator[ast.expr]:
    """What builds the class without its name: ``cls``, ``type(self)``, ``super().__init__``."""
    for cls in all_nodes(tree.root):
        if not isinstance(cls, ast.ClassDef):
            continue
        derived = any(_names_it(base, name) for base in cls.bases)
        if not derived and cls.name != name:
            continue
        for node in all_nodes(cls):
            if (
                (isinstance(node, ast.Name) and node.id == "cls")
                or (isinstance(node, ast.Attribute) and node.attr == "__class__")
                or (isinstance(node, ast.Call) and ast.unparse(node.func) == "type")
                or (derived and isinstance(node, ast.Attribute) and node.attr == "__init__")
            ):
                yield node


def _place(shown: str, node: ast.AST) -> str:
    return f"{shown}:{getattr(node, 'lineno', 1)}"
