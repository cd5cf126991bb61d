"""A flag that a caller passes, where a constant stands in for it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.arguments import passed
from sampler_lint.domain.concepts import NAMESPACES
from sampler_lint.domain.datasets import may_be_iterable
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import in_test_function
from sampler_lint.edits.editor import Editor
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.parameters import FLAGS, Role, role_of
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import blocks, nodes_in, self_class, statements, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    Function,
    If,
    Name,
    Param,
    Scope,
    Stmt,
)


def unheeded(model: Model) -> Iterator[Suspect]:
    """``def build(data, shuffle): DataLoader(data, shuffle=False)``, called with ``True``."""
    for obj in model.constructions():
        function = obj.site.scope if obj.site is not None else None
        if (
            obj.site is None
            or not isinstance(function, Function)
            or in_test_function(model, function)
        ):
            continue
        for arg in obj.site.args:
            role = role_of(arg.keyword) if arg.keyword else None
            param = _of_role(function, role) if role in FLAGS else None
            if (
                isinstance(arg.value, Const)
                and param is not None
                and not _is_heeded(model, function, param, obj.site)
                and (
                    (data := model.flow.argument(obj, "dataset")) is None
                    or arg.value.value
                    or not may_be_iterable(model, data)
                )
            ):
                calls = (
                    (call, passed(function, param, call))
                    for call in model.flow.callers(function)
                    if not _is_decided(function, obj.site, call)
                )
                yield from _suspect(model, function, param, arg.value, calls, f"the `{obj.name}`")


def unheeded_by_class(model: Model, cls: Class) -> Iterator[Suspect]:
    """``self.shuffle = True`` in a constructor that takes ``shuffle``."""
    init = cls.method("__init__")
    for store in init.stores if init is not None else ():
        target = store.target
        if init is None or not isinstance(target, Attr) or self_class(target.value) is not cls:
            continue
        param = init.param(target.name)
        if (
            param is not None
            and role_of(param.name) in FLAGS
            and isinstance(store.value, Const)
            and not [*_reads(init, param)]
        ):
            calls = (
                (obj.site, model.flow.argument(obj, param.name))
                for obj in model.built.get(cls, ())
                if obj.site is not None
            )
            yield from _suspect(
                model, init, param, store.value, calls, f"the attribute `{target.name}`"
            )


def _of_role(function: Function, role: Role | None) -> Param | None:
    found = [param for param in function.params if role_of(param.name) is role]
    return found[0] if len(found) == 1 and len(function.bindings[found[0].name]) == 1 else None


def _reads(function: Function, param: Param) -> Iterator[Expr]:
    scopes: list[Scope] = [s for s in function.module.scopes if function in s.outward()]
    for scope in scopes:
        yield from NAMESPACES.calls_in(scope.calls)
        for node in nodes_in(statements(scope.body)):
            if isinstance(node, Name) and node.id == param.name:
                yield node


def _is_heeded(model: Model, function: Function, param: Param, site: Call) -> bool:
    """Whether the parameter may have a say where an object is built: not in another branch."""
    elsewhere = [
        arg.value
        for other in model.constructions()
        if other.site is not None and other.site.scope is function
        for arg in other.site.args
        if _are_apart(site.stmt, other.site.stmt)
    ]
    return any(all(read is not given for given in elsewhere) for read in _reads(function, param))


def _is_decided(function: Function, site: Call, call: Call) -> bool:
    """Whether a call passes constants for what the branches around a place ask."""
    asked = {
        node.id
        for around in (site.stmt.ancestors() if site.stmt is not None else ())
        if isinstance(around, If)
        for node in walk(around.test)
        if isinstance(node, Name)
    }
    given = [passed(function, param, call) for param in function.params if param.name in asked]
    return any(isinstance(each, Const) for each in given)


def _are_apart(one: Stmt | None, other: Stmt | None) -> bool:
    """Whether two statements are in different branches of one ``if``."""
    if one is None or other is None:
        return False
    around = next((each for each in one.ancestors() if each.encloses(other)), None)
    return isinstance(around, If) and not any(
        any(each.encloses(one) for each in block) and any(each.encloses(other) for each in block)
        for block in blocks(around)
    )


def _suspect(
    model: Model,
    function: Function,
    param: Param,
    constant: Const,
    calls: Iterator[tuple[Call, object]],
    what: str,
) -> Iterator[Suspect]:
    """The finding at the constant, if a call certainly asks for something else."""
    for call, given in calls:
        values = model.flow.constants(given) if isinstance(given, Expr) else None
        other = [value for value in values or () if bool(value) is not bool(constant.value)]
        if other and not in_test_function(model, call.scope):
            yield Suspect(
                model.module_of(function),
                constant,
                f"`{function.name}` is called with `{param.name}={other[0]}`, but {what} gets "
                f"{constant.value}",
                why=(Related(model.place(call.scope, call), "called here"),),
                fix=partial(_pass_on, constant, param.name),
                effect=f"`{param.name}` changes nothing here",
                advice=f"pass `{param.name}` on",
            )
            return


def _pass_on(constant: Const, name: str, editor: Editor) -> Fix | None:
    editor.replace(constant, name)
    return editor.fix(f"Pass `{name}` on", Applicability.UNSAFE)
