"""What fixes put in and nothing uses: a finding that ends by that is silenced, not fixed."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

Brought = tuple[str, str, int, str]
"""What a file brings: the kind, its owner's name, its place among the parameters, its name."""


def brought(root: ast.AST, owner: str = "") -> Iterator[Brought]:
    """The functions, attributes and parameters that a file brings.

    Not its methods: a library may call them.
    """
    for node in ast.iter_child_nodes(root):
        inner = node.name if isinstance(node, ast.ClassDef) else ""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            called = owner if owner and node.name == "__init__" else node.name
            listed = [*node.args.posonlyargs, *node.args.args]
            yield from (("parameter", called, at, one.arg) for at, one in enumerate(listed))
            yield from (("parameter", called, 99, one.arg) for one in node.args.kwonlyargs)
            if not owner:
                yield "function", "", 0, node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield "attribute", "", 0, node.attr
        yield from brought(node, inner)


def is_used(one: Brought, nodes: Sequence[ast.AST]) -> bool:
    """Whether any file of a tree passes a parameter, or names a function or an attribute."""
    kind, owner, place, name = one
    for node in nodes:
        if kind == "parameter":
            if not isinstance(node, ast.Call) or not _calls(node, owner):
                continue
            keywords = {each.arg for each in node.keywords}
            if name in keywords or None in keywords or len(node.args) >= place:
                return True
        elif name == _named(node):
            return True
    return False


def _named(node: ast.AST) -> object:
    """What a part of a file reads by its name, or names in a text or an import."""
    if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        return None
    kinds = {ast.Name: "id", ast.Attribute: "attr", ast.Constant: "value", ast.alias: "name"}
    return getattr(node, kinds.get(type(node), ""), None)


def _calls(call: ast.Call, owner: str) -> bool:
    """Whether a call may be one of a function or class, by its name; or of what stands for it."""
    names = {owner, "cls", "__init__", "partial", "__class__"}
    func = call.func
    return getattr(func, "attr", getattr(func, "id", "")) in names


def idle(changed: Mapping[str, tuple[bytes, bytes]]) -> Iterator[str]:
    """What the fixes put into the files here that changes nothing when they run.

    Of new functions only whether somebody names them; an attribute may be what torch reads.
    """
    roots = []
    for path in Path().rglob("*.py"):
        with contextlib.suppress(SyntaxError, ValueError, OSError):
            roots.append(ast.parse(path.read_bytes()))
    nodes = [node for root in roots for node in ast.walk(root)]
    for path, (old, new) in changed.items():
        was = {(kind, owner, name) for kind, owner, _, name in brought(ast.parse(old))}
        owners = {owner for _, owner, _ in was}
        for one in dict.fromkeys(brought(ast.parse(new))):
            kind, owner, _, name = one
            if (kind, owner, name) in was or (kind == "parameter" and owner not in owners):
                continue
            if not is_used(one, nodes) and not (kind == "attribute" and name in read_by_torch()):
                yield f"{path}: nothing uses the new {kind} `{name}`"


@functools.cache
def read_by_torch() -> frozenset[str]:
    """The attributes that torch reads of loaders, samplers and datasets."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    files = (Path(spec.origin).parent / "utils/data").glob("*.py")
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_bytes())))
    return frozenset(
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    )
