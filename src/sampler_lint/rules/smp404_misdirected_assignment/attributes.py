"""Attributes stored on a sampler that nothing reads, beside a near name that is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.analysis.origins import Hop, ends
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import ASKS_BY_NAME, CONFIG, PROTOCOL, SAMPLER_CLASS
from sampler_lint.domain.model import DATA_LOADER, Model, scopes_inside
from sampler_lint.edits.editor import Editor, renaming
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.limits import SURE_SLIP
from sampler_lint.parameters import FLAGS, NUMBERS, role_of
from sampler_lint.rules._alike import likeness, slips
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.syntax.navigation import on_super, same, self_class, unparse
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
    Raise,
    Scope,
    Seq,
    Store,
    last_name,
)
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
        if not function.name.startswith("set_") or _calls_that_of_base(function):
            continue
        stored = {s.target.name for s in function.stores if isinstance(s.target, Attr)}
        for store in function.stores:
            target = store.target
            if (
                not isinstance(target, Attr)
                or target.name in reads.near(cls)
                or self_class(target.value) is not cls
                or _runs_code(model, cls, target.name)
            ):
                continue
            near = _near(target.name, read - stored)
            if near is not None:
                yield _unread(module, target, near, cls.name)


def _calls_that_of_base(function: Function) -> bool:
    """Whether a setter lets its base's one do what it does: what it stores besides is its own."""
    called = (call.func for call in function.calls)
    return any(on_super(func) and last_name(func) == function.name for func in called)


def _runs_code(model: Model, cls: Class, name: str) -> bool:
    """Whether a class has something in the place of an attribute that may hear of each store."""
    bound = (each for one in model.flow.own_family(cls) for each in one.bindings.get(name, ()))
    return any(each.how != "assign" or isinstance(each.value, Call) for each in bound)


def _unread(module: Module, target: Attr, near: str, owner: str) -> Suspect:
    shown = text_of(module.source, target)
    message = f"nothing reads `{shown}`: `{owner}` reads `{near}`"
    sure = likeness(target.name, near) >= SURE_SLIP
    applicability = Applicability.SAFE if sure else Applicability.UNSAFE
    why = "another attribute may be meant"
    fix = renaming(target, target.name, near, f"Set `{near}`", applicability, why)
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
    close = slips(name, own, at_least=0.85)
    return close[0] if len(close) == 1 else None


# Attributes that are stored where the class has a property, or a method that it calls.


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
                call = call_of(model, cls, found)
                if call is not None and (
                    _is_no_function(model, scope, store, found) or _cannot_call(model, cls, found)
                ):
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


def call_of(model: Model, cls: Class, method: Function) -> Call | None:
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
        known = [value.cls for value in values if isinstance(value, Obj)]
        if self_class(call.func.value) is cls or (cls in known and len(known) == len(values)):
            return call
    return None


def _cannot_call(model: Model, cls: Class, found: Function) -> bool:
    """Whether the call of the method finds no function where the class is tried."""
    return any(
        error.kind == "TypeError"
        and isinstance(error.node, ast.Call)
        and isinstance(error.node.func, ast.Attribute)
        and error.node.func.attr == found.name
        and not error.of_float
        for error in model.trials(cls).errors
    )


def _is_no_function(model: Model, method: Function, store: Store, found: Function) -> bool:
    """Whether what is stored certainly cannot be called."""
    value = store.value
    if isinstance(value, Name) and not store.path:
        param = method.param(value.id)
        is_given = param is not None and len(method.bindings[value.id]) == 1
        value = param.default if param is not None and is_given else None
        if param is not None and is_given and value is None:
            note = "" if param.annotation is None else unparse(param.annotation)
            return role_of(param.name, note) in FLAGS | NUMBERS
    elif isinstance(value, Attr) and not store.path:
        kept = [*ends(model.flow, value, Hop.ATTRIBUTE | Hop.ASSIGNED)]
        return bool(kept) and all(map(_is_data, kept))
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


# An abstract method of the first base that hides the real one of a later base.


def hidden_methods(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """``class C(AbstractSampler, torch.…Sampler)``: the abstract ``__iter__`` comes first."""
    if len(cls.bases) < 2:
        return
    heads = [_only_class(model, base) for base in cls.bases]
    for method in PROTOCOL:
        if method in cls.bindings:
            continue
        for index, head in enumerate(heads):
            found = model.flow.method(head, method) if head is not None else None
            if head is None or not (found is None or isinstance(found, (Function, str))):
                break
            if found is None:
                continue
            if not isinstance(found, Function) or not is_abstract(found):
                break
            real = next(
                (
                    later
                    for later in range(index + 1, len(heads))
                    if _implements(model, heads[later], method, found)
                ),
                None,
            )
            if real is not None:
                yield _shadow(module, cls, found, method, index, real)
                return
            break


def _only_class(model: Model, base: Expr) -> Class | str | None:
    """The one class that a base expression means."""
    probe = list(model.flow.values(base))
    if len(probe) != 1:
        return None
    value = probe[0]
    return getattr(value, "cls", None) or getattr(value, "dotted", None)


def is_abstract(method: Function) -> bool:
    """Whether the body does nothing but raise NotImplementedError."""
    if len(method.body) != 1 or not isinstance(method.body[0], Raise):
        return False
    raised = method.body[0].value
    if isinstance(raised, Call):
        raised = raised.func
    return raised is not None and last_name(raised) == "NotImplementedError"


def _implements(model: Model, head: Class | str | None, method: str, abstract: Function) -> bool:
    if head is None:
        return False
    if isinstance(head, Class) and abstract.cls in model.flow.mro(head):
        return False
    found = model.flow.method(head, method)
    if isinstance(found, Function):
        return not is_abstract(found)
    return isinstance(found, str) and not found.endswith(".Sampler")


def _shadow(
    module: Module, cls: Class, abstract: Function, method: str, first: int, real: int
) -> Suspect:
    source = module.source
    hiding, hidden = text_of(source, cls.bases[first]), text_of(source, cls.bases[real])
    message = (
        f"`{cls.name}` inherits the abstract `{method}` of `{hiding}`, which comes before "
        f"`{hidden}` in its bases"
    )

    def fix(editor: Editor) -> Fix:
        editor.replace(cls.bases[first], hidden).replace(cls.bases[real], hiding)
        why = "the order decides about other methods, too"
        return editor.fix(f"Name `{hidden}` first", Applicability.UNSAFE, why)

    here = Related(module.place(abstract), f"abstract `{method}`")
    why = (here,) if abstract.module is cls.module else ()
    return Suspect(
        module,
        name_of(module, cls),
        message,
        why=why,
        fix=fix,
        effect="NotImplementedError when the sampler is used",
        advice=f"name `{hidden}` first",
        hides=True,
    )
