"""``Sampler.__init__`` is called with arguments that it does not take."""

from __future__ import annotations

from functools import partial

from sampler_lint import catalog
from sampler_lint.analysis.values import ClassRef, Ext
from sampler_lint.catalog.torch import DEMANDS_DATA_SOURCE
from sampler_lint.domain.model import SAMPLER, Model
from sampler_lint.edits.editor import Editor
from sampler_lint.findings import Applicability, Fix
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import unparse
from sampler_lint.syntax.nodes import Arg, Attr, Call, Class, Name, last_name
from sampler_lint.workspace.project import Module
from sampler_lint.workspace.requirements import Range


def extra_arguments(call: Call) -> list[Arg]:
    """What the call passes beside ``self``."""
    assert isinstance(call.func, Attr)
    through_super = isinstance(call.func.value, Call) and last_name(call.func.value.func) == "super"
    if through_super:
        return call.args
    if isinstance(call.func.value, (Name, Attr)):
        return call.args[1:]
    return []


def reaches_sampler(model: Model, cls: Class, call: Call) -> bool:
    """Whether the called ``__init__`` is torch's ``Sampler``'s own."""
    assert isinstance(call.func, Attr)
    owner = call.func.value
    if isinstance(owner, Call):  # super()
        above = model.flow.mro(cls)[1:]
        start = owner.positional[0] if owner.positional else None
        if start is not None and last_name(start) != cls.name:
            return False
    else:
        values = model.flow.values(owner)
        if len(values) != 1:
            return False
        value = next(iter(values))
        if isinstance(value, Ext):
            return value.dotted == SAMPLER
        if not isinstance(value, ClassRef):
            return False
        above = model.flow.mro(value.cls)
    for base in above:
        if isinstance(base, Class):
            if "__init__" in base.bindings:
                return False
        elif isinstance(base, str):
            entry = catalog.known(base)
            return entry is not None and entry.name == SAMPLER
        else:
            return False
    return False


def not_taken(module: Module, cls: Class, call: Call, extra: list[Arg], versions: Range) -> Suspect:
    """The report of arguments that ``Sampler.__init__`` does not take."""
    given = ", ".join(
        ("*" * arg.stars) + (f"{arg.keyword}=" if arg.keyword else "") + unparse(arg.value)
        for arg in extra
    )
    return Suspect(
        module,
        call,
        f"`{cls.name}` passes `{given}` to `Sampler.__init__`, which torch 2.10 refuses",
        fix=partial(_drop, call, extra, versions),
        effect="building the sampler raises `TypeError: object.__init__() takes exactly one "
        "argument`",
        advice="call it without arguments",
    )


def _drop(call: Call, extra: list[Arg], versions: Range, editor: Editor) -> Fix:
    """Drop the arguments, keeping ``self`` of an unbound call."""
    effect = any(isinstance(arg.value, Call) for arg in extra)
    # torch 2.0 demands the argument that torch 2.10 refuses.
    demanded = versions.is_stated and versions.may_be(DEMANDS_DATA_SOURCE)
    applicability = Applicability.UNSAFE if effect or demanded else Applicability.SAFE
    editor.drop_arguments(call, len(call.args) - len(extra))
    return editor.fix("Drop the argument", applicability)
