"""Lengths that are set too late, or that skipping makes untrue."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sampler_lint.domain.concepts import DRAW, PROTOCOL
from sampler_lint.domain.model import Model
from sampler_lint.edits.names import name_of
from sampler_lint.findings import Related
from sampler_lint.parameters import OBJECTS, role_of
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._trials import defined_by
from sampler_lint.syntax.navigation import blocks, self_class, statements, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    For,
    Function,
    If,
    Name,
    Simple,
    Stmt,
    While,
    last_name,
)
from sampler_lint.workspace.project import Module


def set_too_late(model: Model, cls: Class) -> Suspect | None:
    """A length that needs an attribute which only a later call sets."""
    error = model.trials(cls).length_raised
    length = defined_by(model, cls, "__len__")
    if error is None or length is None or error.kind != "AttributeError":
        return None
    node = error.node
    if not isinstance(node, ast.Attribute):
        return None
    setters = [
        store.scope
        for store in model.project.stores_near(node.attr, cls)
        if not isinstance(store.target, Attr) or self_class(store.target.value) in (cls, None)
    ]
    if not setters or not all(
        isinstance(scope, Function) and scope.name == "__iter__" and scope.outer is cls
        for scope in setters
    ):
        return None
    read = next(
        (r for r in length.reads if r.name == node.attr and self_class(r.value) is not None), None
    )
    if read is None:
        return None
    why = (Related(model.place(setters[0], setters[0]), "set here"),)
    return Suspect(
        model.module_of(length),
        read,
        f"`len()` of `{cls.name}` reads `self.{node.attr}`, which only `__iter__` sets",
        why=why,
        effect="before the first epoch `len()` of the sampler and of its loader raises "
        "AttributeError; later it is the length of the previous epoch",
        advice="compute it in `__init__`",
    )


def skips_under_inherited(model: Model, module: Module, cls: Class) -> Suspect | None:
    """A length that counts every sample, above an ``__iter__`` that leaves some out."""
    iterate = cls.method("__iter__")
    owner = model.flow.method(cls, "__len__")
    if iterate is None or not isinstance(owner, str) or model.trials(cls).usual:
        return None
    if any(isinstance(call.func, Attr) and call.func.name in PROTOCOL for call in iterate.calls):
        return None
    skip = next(filter(None, map(_skip, (s for s in statements(iterate.body)))), None)
    if skip is None:
        return None
    base = owner.rpartition(".")[2]
    why = (Related(module.place(skip), "samples skipped here"),)
    return Suspect(
        module,
        name_of(module, cls),
        f"`{cls.name}.__iter__` skips samples that its `__len__`, inherited from {base}, counts",
        why=why,
        effect="`len()` is too large, and with it the steps per epoch and the learning-rate "
        "schedule",
        advice="define `__len__` for what is yielded",
    )


def _skip(stmt: Stmt) -> Stmt | None:
    """The ``continue`` under a condition that leaves a sample of the inner sampler out."""
    if not isinstance(stmt, For) or not any(
        isinstance(node, Attr) and role_of(node.name) in OBJECTS for node in walk(stmt.iter)
    ):
        return None
    for inner in _own(stmt.body):
        test = inner.parent
        if (
            isinstance(inner, Simple)
            and inner.kind == "continue"
            and isinstance(test, If)
            and test.body == [inner]
            and not _mentions(test, {"drop_last", "rank"})
        ):
            return inner
    return None


def _own(body: list[Stmt]) -> Iterator[Stmt]:
    """The statements of a loop's body that are not in another loop."""
    for stmt in body:
        yield stmt
        if not isinstance(stmt, (For, While)):
            for block in blocks(stmt):
                yield from _own(block)


def _mentions(test: If, names: set[str]) -> bool:
    return any(
        last_name(node) in names for node in walk(test.test) if isinstance(node, (Name, Attr))
    ) or any(isinstance(node, Call) for node in walk(test.test) if _is_random(node))


def _is_random(node: object) -> bool:
    return isinstance(node, Call) and isinstance(node.func, Attr) and DRAW.names(node.func)
