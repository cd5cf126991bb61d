"""An argument that a constructor keeps, and overwrites before anything has read it."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.origins import depends_on
from sampler_lint.domain.model import Model
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Related
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import self_class, walk
from sampler_lint.syntax.nodes import Attr, Class, Expr, Function, Name, Stmt, Store, last_name
from sampler_lint.workspace.project import Module


def overwritten(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """``self.x = x``, and then ``self.x = 0`` with nothing between that reads it."""
    init = cls.method("__init__")
    kept: dict[str, Store] = {}
    for store in init.stores if init is not None else ():
        target = store.target
        if init is None or not isinstance(target, Attr) or self_class(target.value) is not cls:
            continue
        before = kept.get(target.name)
        kept[target.name] = store
        if (
            before is not None
            and before.stmt.block is store.stmt.block
            and before.stmt is not store.stmt
            and store.how == before.how == "assign"
            and not reads(init, target.name, before.stmt, store.stmt)
            and not _hands_on(init, before.stmt, store.stmt)
            and (param := _without_a_say(model, init, before, store)) is not None
        ):
            yield _suspect(module, cls, before, store, param)


def _without_a_say(model: Model, init: Function, before: Store, store: Store) -> str | None:
    """An argument that the one value is made of, and the other is not."""
    if before.value is None or store.value is None:
        return None
    params = [
        node.id
        for node in walk(before.value)
        if isinstance(node, Name) and init.param(node.id) is not None
    ]

    def source(expr: Expr) -> bool:
        return isinstance(expr, Name) and expr.id in params

    return None if not params or depends_on(model.flow, store.value, source) else params[0]


def reads(init: Function, name: str, first: Stmt, second: Stmt) -> bool:
    """Whether the attribute is read from one statement to the other."""
    return any(
        read.name == name and read.stmt is not None and _is_between(first, read.stmt, second)
        for read in init.reads
    )


def _is_between(first: Stmt, stmt: Stmt, second: Stmt) -> bool:
    return first.order < stmt.order <= second.last_order


def _hands_on(init: Function, first: Stmt, second: Stmt) -> bool:
    """Whether other functions may read the object from one statement to the other."""
    return any(
        call.stmt is not None
        and _is_between(first, call.stmt, second)
        and (
            last_name(call.func) == "super"
            or (isinstance(call.func, Attr) and self_class(call.func.value) is not None)
            or any(self_class(arg.value) is not None for arg in call.args)
        )
        for call in init.calls
    )


def _suspect(module: Module, cls: Class, before: Store, store: Store, param: str) -> Suspect:
    shown = text_of(module.source, store.target)
    why = (Related(module.place(before.stmt), f"`{param}` kept here"),)
    return Suspect(
        module,
        store.target,
        f"`{shown}` is overwritten before the `{param}` stored there is read",
        why=why,
        effect=f"the argument `{param}` of `{cls.name}` changes nothing",
        advice="drop one of the two",
    )
