"""Attributes stored on a sampler that nothing reads, beside a near name that is read."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import ASKS_BY_NAME, CONFIG, SAMPLER_CLASS
from sampler_lint.domain.model import DATA_LOADER, Model, scopes_inside
from sampler_lint.edits.editor import renaming
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability
from sampler_lint.limits import SURE_SLIP
from sampler_lint.rules._alike import closest, likeness
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import self_class
from sampler_lint.syntax.nodes import Attr, Class, Const, Scope
from sampler_lint.workspace.project import Module


class Reads:
    """The attribute names that each program may read of a sampler, as `.name` or as a string.

    Only those are looked for that one of its files may store on one.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._of_others: dict[Class, bool] = {}
        self._names: dict[str, set[object]] = {}

    def near(self, scope: Scope) -> set[object]:
        """The names that the program of a scope may read."""
        project = self._model.project
        program = project.program_of(project.module_of(scope))
        known = self._names.get(program)
        if known is None:
            known = self._names[program] = self._find(scope)
        return known

    def _find(self, near: Scope) -> set[object]:
        project = self._model.project
        names: set[object] = set()
        stored = {
            target.name
            for module in project.modules_near(near)
            for target in _stored_on_others(module)
        }
        program = project.program_of(project.module_of(near))
        for module in project.loaded if stored else ():
            if program and project.program_of(module) not in {program, ""}:
                continue
            for scope in module.facts.scopes:
                for read in scope.reads:
                    if read.name in stored and not _is_elsewhere(
                        self._model, read, self._of_others
                    ):
                        names.add(read.name)
                        stored.discard(read.name)
                for call in scope.calls:
                    if ASKS_BY_NAME.is_call(call):
                        names.update(arg.value for arg in call.positional if isinstance(arg, Const))
        return names


def _stored_on_others(module: Module) -> Iterator[Attr]:
    """What a file stores on objects, save what is no setter's business in a class itself."""
    for scope in module.facts.scopes:
        for store in scope.stores:
            target = store.target
            if isinstance(target, Attr) and (
                scope.name.startswith("set_") or self_class(target.value) is None
            ):
                yield target


def _is_elsewhere(model: Model, read: Attr, known: dict[Class, bool]) -> bool:
    """Whether the read is of a configuration, or of ``self`` in a class that is no sampler.

    ``known`` keeps which classes are none.
    """
    if CONFIG.names(read.value):
        return True
    cls = self_class(read.value)
    if cls is None:
        return False
    if cls not in known:
        known[cls] = not (
            model.is_sampler_class(cls)
            or model.is_a(cls, DATA_LOADER)
            or SAMPLER_CLASS.says(cls.name)
        )
    return known[cls]


def unread_outside(model: Model, reads: Reads) -> Iterator[Suspect]:
    """``sampler.epochs = e`` where ``epoch`` was meant."""
    for module in model.modules:
        for scope in module.facts.scopes:
            for store in scope.stores:
                target = store.target
                if (
                    not isinstance(target, Attr)
                    or target.name in reads.near(scope)
                    or self_class(target.value) is not None
                    or target.name.startswith("_")  # a private note on a foreign object
                ):
                    continue
                owners = model.flow.values(target.value)
                if not owners or not all(model.role(owner) for owner in owners):
                    continue
                known = [_settings(model, owner) for owner in owners if isinstance(owner, Obj)]
                if any(names is None or target.name in names for names in known):
                    continue
                near = _near(target.name, set.intersection(*[names for names in known if names]))
                if near is not None:
                    owner = next(o for o in owners if isinstance(o, Obj))
                    yield _unread(module, target, near, owner.name)


def unread_inside(model: Model, module: Module, cls: Class, reads: Reads) -> Iterator[Suspect]:
    """``self.epochs = epoch`` in a setter, where ``epoch`` is what the class reads."""
    read = read_by(model, cls)
    for function in cls.methods:
        if not function.name.startswith("set_"):
            continue
        stored = {s.target.name for s in function.stores if isinstance(s.target, Attr)}
        for store in function.stores:
            target = store.target
            if (
                not isinstance(target, Attr)
                or target.name in reads.near(cls)
                or self_class(target.value) is not cls
            ):
                continue
            near = _near(target.name, read - stored)
            if near is not None:
                yield _unread(module, target, near, cls.name)


def _unread(module: Module, target: Attr, near: str, owner: str) -> Suspect:
    shown = text_of(module.source, target)
    message = f"nothing reads `{shown}`: `{owner}` reads `{near}`"
    sure = likeness(target.name, near) >= SURE_SLIP
    applicability = Applicability.SAFE if sure else Applicability.UNSAFE
    fix = renaming(target, target.name, near, f"Set `{near}`", applicability)
    effect = f"`{near}` keeps its old value"
    return Suspect(module, target, message, fix=fix, effect=effect, advice=f"set `{near}`")


def _settings(model: Model, owner: Obj) -> set[str] | None:
    """The attributes of an object that are not methods; None when there may be others."""
    if isinstance(owner.cls, str):
        entries = catalog.known_mro(owner.cls)
        names: set[str] = set()
        for entry in entries:
            names |= entry.attributes | set(entry.params) | entry.keywords
        return names
    attributes = model.attributes(owner.cls)
    if attributes.open is not None or any(
        model.attributes(derived).open for derived in model.flow.subclasses(owner.cls)
    ):
        return None
    return set(attributes.names)


def read_by(model: Model, cls: Class) -> set[str]:
    """The attributes that the class's methods and inherited ones read of ``self``."""
    names: set[str] = set()
    for base in model.flow.mro(cls):
        if isinstance(base, Class):
            for scope in scopes_inside(base):
                names |= {r.name for r in scope.reads if self_class(r.value) is base}
        elif isinstance(base, str):
            for method, read in getattr(catalog.known(base), "reads", ()):
                if model.flow.method(cls, method) == base:
                    names |= read
    return names


def _near(name: str, names: set[str]) -> str | None:
    own = [other for other in names if not other.startswith("__") and other != name]
    bare = name.replace("_", "").lower()
    alike = [other for other in own if other.replace("_", "").lower() == bare]
    close = alike or closest(name, own, most=2, at_least=0.85)
    return close[0] if len(close) == 1 else None
