"""Methods that are meant to override one of the protocol, and have another name."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import Unknown
from sampler_lint.domain.concepts import EPOCH, PROTOCOL
from sampler_lint.domain.model import Model
from sampler_lint.edits.names import name_of
from sampler_lint.findings import Grade
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp404_misdirected_assignment.attributes import is_abstract
from sampler_lint.syntax.navigation import self_stores
from sampler_lint.syntax.nodes import Class, Const, Function
from sampler_lint.workspace.project import Module


def misspelled(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """``def __len(self)`` or ``def set_epochs(self, epoch)``, which nobody asks for."""
    for method in cls.methods:
        meant = _meant(method)
        if meant is None or method.decorators or not _is_missing(model, cls, method, meant):
            continue
        if _is_asked_for(model, method.name):
            continue
        yield Suspect(
            module,
            name_of(module, method),
            f"nothing calls `{method.name}` of `{cls.name}`; did you mean `{meant}`?",
            grade=Grade.LIKELY if meant == "set_epoch" else Grade.CERTAIN,
            effect=f"loaders and trainers call `{meant}`, which does something else, or is missing",
            advice=f"name it `{meant}`",
        )


def _meant(method: Function) -> str | None:
    """The method of the protocol whose name differs in underscores, or by a plural, from it."""
    bare = method.name.replace("_", "").lower()
    for name in PROTOCOL:
        if method.name != name and bare.removesuffix("s") == name.replace("_", ""):
            takes = [param.name for param in method.params[1:]]
            if name.startswith("_"):
                return name if method.name.startswith("_") and not takes else None
            return name if len(takes) == 1 and EPOCH.says(takes[0]) else None
    return None


def _is_missing(model: Model, cls: Class, method: Function, meant: str) -> bool:
    """Whether neither the class nor what it derives from and is a base of has its own."""
    above = model.flow.mro(cls)
    if any(isinstance(base, Unknown) for base in above):
        return False
    if any(meant in each.bindings for each in (cls, *model.flow.subclasses(cls))):
        return False
    found = model.flow.method(cls, meant)
    if meant == "set_epoch" and isinstance(found, str):
        # The one that it inherits stores the epoch as well.
        return any(target.name != "epoch" for target, _ in self_stores([method], cls))
    return found is None or isinstance(found, str) or _is_left_open(found)


def _is_left_open(found: object) -> bool:
    return isinstance(found, Function) and (bool(found.decorators) or is_abstract(found))


def _is_asked_for(model: Model, name: str) -> bool:
    """Whether any file reads an attribute of that name, or asks for it by a string."""
    return any(
        any(read.name == name for read in scope.reads)
        or any(
            isinstance(arg, Const) and arg.value == name
            for call in scope.calls
            for arg in call.positional
        )
        for module in model.project.loaded
        for scope in module.facts.scopes
    )
