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
from sampler_lint.syntax.navigation import on_super, unparse, walk
from sampler_lint.syntax.nodes import Arg, Attr, Call, Class, Name, last_name
from sampler_lint.workspace.project import Module
from sampler_lint.workspace.requirements import Range


def extra_arguments(call: Call) -> list[Arg]:
    """What the call passes beside ``self``."""
    assert isinstance(call.func, Attr)
    if on_super(call.func):
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
    reached = False
    for base in above:
        if isinstance(base, Class):
            if "__init__" in base.bindings:
                return False  # torch's Sampler has none of its own: the next one is called
        elif isinstance(base, str):
            entry = catalog.known(base)
            if not reached and (entry is None or entry.name != SAMPLER):
                return False
            reached = True
        else:
            return False
    return reached


def goes_on(model: Model, cls: Class) -> bool:
    """Whether ``super()`` in the class may mean the ``__init__`` of another base of a subclass."""
    for derived in model.flow.subclasses(cls):
        order = model.flow.mro(derived)
        after = order[order.index(cls) + 1 :] if cls in order else order
        if any(not isinstance(one, str) for one in after if one not in model.flow.mro(cls)):
            return True
    return False


def not_taken(
    model: Model, module: Module, cls: Class, call: Call, extra: list[Arg], versions: Range
) -> Suspect:
    """The report of arguments that ``Sampler.__init__`` does not take."""
    given = ", ".join(
        ("*" * arg.stars) + (f"{arg.keyword}=" if arg.keyword else "") + unparse(arg.value)
        for arg in extra
    )
    return Suspect(
        module,
        call,
        f"`{cls.name}` passes `{given}` to `Sampler.__init__`, which torch 2.10 refuses",
        fix=partial(_drop, call, extra, versions, goes_on(model, cls)),
        effect="building the sampler raises `TypeError: object.__init__() takes exactly one "
        "argument`",
        advice="call it without arguments",
        hides=True,
    )


def _drop(call: Call, extra: list[Arg], versions: Range, is_needed: bool, editor: Editor) -> Fix:
    """Drop the arguments, keeping ``self`` of an unbound call."""
    effect = any(isinstance(node, Call) for arg in extra for node in walk(arg.value))
    # torch 2.0 demands the argument that torch 2.10 refuses.
    demanded = versions.may_be(DEMANDS_DATA_SOURCE)
    applicability = Applicability.UNSAFE if effect or demanded or is_needed else Applicability.SAFE
    editor.drop_arguments(call, len(call.args) - len(extra))
    why = "torch 2.0 and older ask for it"
    if effect or is_needed:
        why = "it may have an effect" if effect else "another `__init__` may take it"
    return editor.fix("Drop the argument", applicability, why)
