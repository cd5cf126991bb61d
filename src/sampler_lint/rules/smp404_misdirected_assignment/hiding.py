"""Attributes that are stored where the class has a property, or a method that it calls."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.syntax.navigation import same, self_class
from sampler_lint.syntax.nodes import (
    Attr,
    Bin,
    Call,
    Class,
    Comp,
    Const,
    Expr,
    Function,
    Map,
    Name,
    Seq,
    Store,
)
from sampler_lint.workspace.project import Module


def hiding(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """``self.x = …`` where ``x`` is a property without a setter, or a method that is called."""
    for scope in cls.methods:
        for store in scope.stores:
            target = store.target
            if (
                not isinstance(target, Attr)
                or self_class(target.value) is not cls
                or store.how != "assign"
                or any(target.name in each.bindings for each in model.flow.subclasses(cls))
                or is_expected(model, target)
            ):
                continue
            found = model.flow.method(cls, target.name)
            if isinstance(found, (Function, str)) and is_read_only(found, target.name):
                yield _read_only(module, cls, target, found)
            elif isinstance(found, Function) and not found.decorators:
                call = _call_of(model, cls, found)
                if call is not None and _is_no_function(scope, store, found):
                    yield _hidden(model, module, cls, target, found, call)


def is_read_only(found: Function | str, name: str) -> bool:
    """Whether the method is a property that refuses to be set."""
    if isinstance(found, str):
        # What the constructor takes and a method gives is kept under another name.
        entry = catalog.known(found)
        return entry is not None and name in entry.methods & set(entry.params)
    return (
        len(found.decorators) == 1
        and isinstance(found.decorators[0], Name)
        and found.decorators[0].id == "property"
        and found.cls is not None
        and len(found.cls.bindings[name]) == 1
        and "__setattr__" not in found.cls.bindings
    )


def _call_of(model: Model, cls: Class, method: Function) -> Call | None:
    """A call of the method of an object of the class, by the class itself or where it is used."""
    own = (call for scope in scopes_inside(cls) for call in scope.calls)
    called = [
        call
        for call in (*own, *model.flow.callers(method))
        if isinstance(call.func, Attr) and call.func.name == method.name
    ]
    for call in called:
        assert isinstance(call.func, Attr)
        values = model.flow.values(call.func.value)
        if self_class(call.func.value) is cls or (
            values and all(isinstance(value, Obj) and value.cls is cls for value in values)
        ):
            return call
    return None


def _is_no_function(method: Function, store: Store, found: Function) -> bool:
    """Whether what is stored certainly cannot be called."""
    value = store.value
    if isinstance(value, Name) and not store.path:
        param = method.param(value.id)
        is_given = param is not None and len(method.bindings[value.id]) == 1
        value = param.default if param is not None and is_given else None
    elif isinstance(value, Call) and same(value.func, store.target) and method.name != "__init__":
        # The next time, what it gave is in its place.
        given = [stmt.value for stmt in found.returns]
        is_always = store.stmt.parent is None
        return is_always and (found.is_generator or (bool(given) and all(map(_is_data, given))))
    return _is_data(value)


def _is_data(value: Expr | None) -> bool:
    is_none = isinstance(value, Const) and value.value is None
    return isinstance(value, (Bin, Comp, Const, Map, Seq)) and not is_none


def _read_only(module: Module, cls: Class, target: Attr, found: Function | str) -> Suspect:
    shown = text_of(module.source, target)
    owner = found.rpartition(".")[2] if isinstance(found, str) else getattr(found.cls, "name", "")
    return Suspect(
        module,
        target,
        f"`{shown}` is assigned, but `{target.name}` is a property of `{owner}` without a setter",
        effect="AttributeError when the line runs",
        advice=f"keep it under another name, or drop the property of `{cls.name}`",
    )


def _hidden(
    model: Model, module: Module, cls: Class, target: Attr, found: Function, call: Call
) -> Suspect:
    shown = text_of(module.source, target)
    why = (
        Related(model.place(found, found), "the method"),
        Related(model.place(call.scope, call), "called here"),
    )
    return Suspect(
        module,
        target,
        f"`{shown}` hides the method `{target.name}` of `{cls.name}`",
        why=why,
        effect=f"`{shown}(…)` raises TypeError: the stored value is not callable",
        advice="keep it under another name",
    )
