"""Attributes that only ``set_epoch`` sets, or that frameworks ask for and nothing sets."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.domain.concepts import ASKS_BY_NAME
from sampler_lint.domain.model import BATCH_SAMPLER, Model, scopes_inside
from sampler_lint.domain.signatures import base_inits
from sampler_lint.domain.stored_outside import is_stored_outside
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import name_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.rules.smp305_broken_sampler_init.missing_call import is_given_away, stored_in
from sampler_lint.syntax.navigation import nodes_in, self_class, statements
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Function,
    Name,
    Raise,
    Return,
    last_name,
)
from sampler_lint.workspace.project import Module


def set_by_set_epoch_only(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """``set_epoch`` stores what ``__iter__`` reads, and nothing stores it before."""
    setter, iterate, init = (cls.method(name) for name in ("set_epoch", "__iter__", "__init__"))
    if setter is None or iterate is None or init is None:
        return
    if model.attributes(cls).open is not None or is_given_away(model, init):
        return
    params = {param.name for param in setter.params[1:]}
    read = {
        r.name: r
        for r in reversed(iterate.reads)
        if self_class(r.value) is cls and not is_expected(model, r, AttributeError)
    }
    if _runs_itself(model, cls, setter):
        return
    before = _set_before(model, cls, setter) | _asked(model, cls)
    for store in setter.stores:
        target = store.target
        if (
            isinstance(target, Attr)
            and self_class(target.value) is cls
            and isinstance(store.value, Name)
            and store.value.id in params
            and target.name in read
            and target.name not in before
            and not is_stored_outside(model, cls, target.name)
        ):
            yield _unset(module, cls, init, target.name, read[target.name])
            return


def _set_before(model: Model, cls: Class, setter: Function) -> set[str]:
    """The attributes that something else than ``set_epoch`` sets."""
    names: set[str] = set()
    for related in [*model.flow.mro(cls), *model.flow.subclasses(cls)]:
        if isinstance(related, Class):
            names |= related.bindings.keys()
            for scope in scopes_inside(related):
                if scope is not setter and scope.name != "set_epoch":
                    names |= stored_in(scope, related)
        elif isinstance(related, str):
            entry = catalog.known(related)
            names |= entry.attributes | entry.methods if entry is not None else set()
    return names


def _runs_itself(model: Model, cls: Class, setter: Function) -> bool:
    """Whether a method of the class calls its ``set_epoch``: it may be set from the start."""
    return any(
        isinstance(call.func, Attr) and self_class(call.func.value) is related
        for related in [*model.flow.mro(cls), *model.flow.subclasses(cls)]
        if isinstance(related, Class)
        for scope in scopes_inside(related)
        for call in scope.calls
        if last_name(call.func) == setter.name
    )


def _asked(model: Model, cls: Class) -> set[str]:
    """The attributes that the program asks for by name, and does without."""
    return {
        str(arg.value)
        for name in ASKS_BY_NAME.called
        for call in model.project.calls_near(name, cls)
        for arg in call.positional[1:2]
        if isinstance(arg, Const)
    }


def _unset(module: Module, cls: Class, init: Function, name: str, read: Attr) -> Suspect:
    why = (Related(module.place(read), "read here"),)

    def fix(editor: Editor) -> Fix | None:
        if init.body and isinstance(init.body[-1], (Return, Raise)):
            return None
        editor.append(init, f"{init.params[0].name}.{name} = 0")
        return editor.fix(f"Set `{name} = 0` in `__init__`", Applicability.SAFE)

    return Suspect(
        module,
        name_of(module, cls),
        f"`__iter__` of `{cls.name}` reads `{name}`, which only `set_epoch` sets",
        why=why,
        fix=fix,
        effect="a pass before the first `set_epoch` raises AttributeError",
        advice=f"set `{name} = 0` in `__init__`",
        hides=True,
    )


def no_batch_size(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """``batch_size=None`` goes to ``BatchSampler.__init__``, which refuses it."""
    init = cls.method("__init__")
    if init is None:
        return
    for made in base_inits(model, cls):
        if made.signature.owner != BATCH_SAMPLER or made.call.stmt is None:
            continue
        given = made.call.keyword("batch_size") or next(iter(made.positional[1:2]), None)
        param = init.param(given.id) if isinstance(given, Name) else None
        if (
            param is None
            or not isinstance(param.default, Const)
            or param.default.value is not None
            or len(init.bindings.get(param.name, ())) > 1
            or _is_tested(init, made.call, param.name)
        ):
            continue
        yield Suspect(
            module,
            made.call,
            f"`{param.name}` of `{cls.name}` is None unless given, which `BatchSampler.__init__` "
            f"refuses",
            effect="building the sampler without it raises ValueError",
            advice="compute the size before the call",
        )


def _is_tested(init: Function, call: Call, name: str) -> bool:
    """Whether anything looks at the parameter before the call: it may refuse None itself."""
    assert call.stmt is not None
    return any(
        isinstance(node, Name) and node.id == name
        for stmt in statements(init.body)
        if stmt.order < call.stmt.order and not isinstance(stmt, Assign)
        for node in nodes_in([stmt])
    )
