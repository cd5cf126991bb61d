"""Attributes that other places may set or read: by another name, or in files not looked at."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from sampler_lint.analysis.named_stores import may_spell
from sampler_lint.domain.concepts import ASKS_BY_NAME, CONFIG
from sampler_lint.domain.model import Model
from sampler_lint.domain.seeds import is_seed_name
from sampler_lint.edits.safety.names import path
from sampler_lint.edits.safety.texts import Changed
from sampler_lint.remembered import remembered
from sampler_lint.source import SourceError, SourceFile
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.lower import expression
from sampler_lint.workspace.project import Module

#: What may set an attribute without a plain assignment to it.
_INDIRECT = rb"attr(?:__)?\(|set_defaults|update\(|__dict__|vars\(|\bdel\b"


def set_elsewhere(model: Model, module: Module, value: ast.expr) -> str | None:
    """A place in the program that may set a seed, read by ``value``, to what is not shared."""
    for node in ast.walk(value):
        if isinstance(node, ast.Attribute) and is_seed_name(node.attr):
            owner = _last(node.value)
            for place, store in _stores(model, model.project.program_of(module), node.attr):
                if not _is_shared(store.given) and store.is_of(owner):
                    return f"{place}: `{node.attr}` may be another, or gone"
    return None


class _Store(NamedTuple):
    """What may set an attribute."""

    given: ast.expr | None
    """What it is given; None if it is taken away."""
    only: str | None = None
    """What the object is called, where a name tells nothing of the attribute."""
    followed: str | None = None
    """What an object is called whose attribute the model itself follows."""

    def is_of(self, owner: str) -> bool:
        """Whether it may set the attribute of what is called like that."""
        return self.only in {None, owner} and self.followed not in {owner, "self"}


@remembered
def _stores(model: Model, program: str, name: str) -> list[tuple[str, _Store]]:
    """What sets an attribute of that name: by another name, or where the model does not look."""
    found: list[tuple[str, _Store]] = []
    for shown, root, is_read in _saying(model, program, name):
        tables = _tables(root)
        for node in ast.walk(root):
            stores = _sets(node, name, is_read, tables)
            found += ((f"{shown}:{node.lineno}", one) for one in stores)  # type: ignore[attr-defined]
    return found


def _last(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def _saying(model: Model, program: str, name: str) -> Iterator[tuple[str, ast.Module, bool]]:
    """The files that say the name, and may use it where the model does not see that.

    With each, as it is shown, whether the model looks at it, and not only at one name in it.
    """
    looked_at = {module.path for module in model.project.modules_in(program)}
    stores = re.compile(
        _INDIRECT + rb"|\.%b\b[^=\n]*[=}!:]|\bcase\b.*\b%b *=" % ((name.encode(),) * 2)
    )
    for each in _files(model, program):
        shown = model.project.files[each]
        try:
            data = model.project.bytes_of(each)
            is_read = each in looked_at
            if name.encode() not in data or (is_read and stores.search(data) is None):
                continue
            root = ast.parse(SourceFile(shown, data).text)
        except (SourceError, SyntaxError, ValueError, RecursionError):
            continue
        yield shown, root, is_read


def still_read(model: Model, module: Module, changed: Changed) -> str | None:
    """A place that may read an attribute which the fix gives another name."""
    stored = [
        node.attr
        for node in changed.new.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    ]
    for node in changed.old.spans:
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
            continue
        if node in changed.same and changed.same[node].attr == node.attr:  # type: ignore[attr-defined]
            continue
        if node.attr not in stored and (reason := _reader(model, module, node.attr)):
            return reason
    return None


def _reader(model: Model, module: Module, name: str) -> str | None:
    for shown, root, is_read in _saying(model, model.project.program_of(module), name):
        is_own, nodes = shown == module.display, [*ast.walk(root)]
        is_spelled = any(
            isinstance(one, ast.Constant) and one.value == name for one in ast.walk(root)
        )
        tables = _tables(root)
        for node in nodes:
            may_read = False
            if isinstance(node, ast.Attribute):
                is_option = CONFIG.says(ast.unparse(node.value).rpartition(".")[2])
                may_read = node.attr == name and not is_read and not is_option
            elif isinstance(node, ast.Constant):
                may_read = isinstance(node.value, str) and f".{name}}}" in node.value
            elif isinstance(node, ast.MatchClass):
                may_read = name in node.kwd_attrs
            elif isinstance(node, ast.Subscript):
                may_read = _is_key(node.slice, name) and _is_namespace(node.value, tables)
            elif isinstance(node, ast.Call) and path(node.func) in ASKS_BY_NAME.called:
                may_read = any(
                    (is_spelled or isinstance(one, (ast.BinOp, ast.JoinedStr)))
                    and may_spell(expression(one, module.facts, None), name)
                    for one in node.args[1:2]
                )
            if may_read or (is_own and isinstance(node, ast.expr) and _is_namespace(node, ())):
                return f"{shown}:{node.lineno} may read `{name}`"  # type: ignore[attr-defined]
    return None


def _tables(root: ast.Module) -> set[str]:
    """The variables of a file that are all that an object keeps."""
    return {
        target.id
        for node in ast.walk(root)
        if isinstance(node, ast.Assign) and _is_namespace(node.value, ())
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _is_namespace(node: ast.expr, tables: Collection[str]) -> bool:
    """Whether an expression is all that an object keeps: ``vars(x)``, ``x.__dict__``.

    Or a variable of that: one of ``tables``.
    """
    if isinstance(node, ast.Name):
        return node.id in tables
    if isinstance(node, ast.Call):
        return path(node.func) == "vars"
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def _files(model: Model, program: str) -> list[str]:
    """The files of a program: those that are looked at, and what they import."""
    project = model.project
    own = (module.path for module in project.modules_in(program))
    return [*closure(own, lambda path: sorted(project.imported_by(path) & project.files.keys()))]


def _sets(node: ast.AST, name: str, is_read: bool, tables: Collection[str]) -> Iterator[_Store]:
    """What a statement or a call puts into an attribute of that name."""
    if isinstance(node, ast.Delete):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr == name:
                yield _Store(None)
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Attribute) and target.attr == name:
                yield _Store(node.value, followed=_last(target.value) if is_read else None)
            is_key = isinstance(target, ast.Subscript) and _is_key(target.slice, name)
            if is_key and _is_namespace(target.value, tables):  # type: ignore[attr-defined]
                yield _Store(node.value)
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func).rpartition(".")[2]
        args = node.args
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if called.strip("_") == "setattr" and len(args) >= 2:
            *holder, key, value = args
            is_any = not isinstance(key, ast.Constant)
            if is_any or _is_key(key, name):
                is_drawn = any(isinstance(part, ast.Call) for part in ast.walk(value))
                held_by = [one for one in (*holder, owner) if one is not None and not is_drawn]
                yield _Store(value, only=_last(held_by[0]) if is_any and held_by else None)
        is_popped = called == "pop" and owner is not None and _is_namespace(owner, tables)
        if (is_popped and args and _is_key(args[0], name)) or (
            called == "delattr" and len(args) == 2 and _is_key(args[1], name)
        ):
            yield _Store(None)
        if called in {"set_defaults", "update"}:
            yield from (_Store(keyword.value) for keyword in node.keywords if keyword.arg == name)
            spread = [keyword.value for keyword in node.keywords if keyword.arg is None]
            given = [*args, *spread]
            if called == "set_defaults" or (owner is not None and _is_namespace(owner, tables)):
                yield from (_Store(table) for table in given if not isinstance(table, ast.Dict))
            for table in (one for one in given if isinstance(one, ast.Dict)):
                for each, held in zip(table.keys, table.values, strict=True):
                    if each is not None and _is_key(each, name):
                        yield _Store(held)


def _is_key(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == name


def _is_shared(given: ast.expr | None) -> bool:
    """Whether a value is an int, or the seed by another name."""
    if given is None:
        return False
    if isinstance(given, ast.Constant):
        return type(given.value) is int
    if isinstance(given, ast.Attribute):
        return is_seed_name(given.attr)
    if isinstance(given, ast.Subscript):
        key = given.slice
        return isinstance(key, ast.Constant) and is_seed_name(str(key.value))
    return isinstance(given, ast.Name) and is_seed_name(given.id)
