"""SMP305: a sampler's constructor leaves the torch sampler under it broken."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint import catalog
from sampler_lint.analysis.points_to import ClassRef, Ext
from sampler_lint.catalog.torch import DEMANDS_DATA_SOURCE, WITHOUT_INIT
from sampler_lint.domain.concepts import ASKS_BY_NAME, PROTOCOL
from sampler_lint.domain.launches import launches
from sampler_lint.domain.model import BATCH_SAMPLER, SAMPLER, Model, scopes_inside
from sampler_lint.domain.signatures import base_inits, of_class
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import name_of
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.nodes import (
    Arg,
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Function,
    Name,
    Raise,
    Return,
    Scope,
    expressions,
    last_name,
    self_class,
    statements,
    unparse,
    walk,
)
from sampler_lint.workspace.project import Module
from sampler_lint.workspace.requirements import Range


class BrokenSamplerInit(Rule):
    """The constructor of a sampler does not set up the torch sampler that it derives from.

    What it does:
        Reports an argument passed to `Sampler.__init__`, in any spelling
        (`super().__init__(x)`, `super(C, self).__init__(x)`, `Sampler.__init__(self, x)`), where
        no base between defines `__init__`; an `__init__` that calls no base's although an
        inherited `__iter__`, `__len__` or `set_epoch` reads what that one sets; an attribute
        that only `set_epoch` sets although `__iter__` reads it; and a `batch_size` that is None
        by default and goes to `BatchSampler.__init__` as it is. Silent about the argument where
        the repository's requirements let in no torch from 2.10 on. Classes that nothing uses,
        in a repository that builds its samplers and loaders itself, are only likely.

    Why is this bad?
        `Sampler.__init__(data_source)` was deprecated in torch 2.1 and removed in torch 2.10:
        the call reaches `object.__init__`, and building the sampler raises `TypeError:
        object.__init__() takes exactly one argument`. The others raise AttributeError when the
        loader is read or `len(loader)` is asked for, and ValueError.

    Fix safety:
        Safe for the argument, which is dropped: torch never stored it, and `super().__init__()`
        works from torch 2.1 on. Where the repository's requirements say that torch 2.0 or older
        will do, too, the fix is unsafe: those demand the argument. So it is if the argument is
        itself a call, which may be wanted for its effect. Safe for `self.epoch = 0`, torch's own
        first value. Unsafe for the missing call, which is made with the arguments of the same
        names, and for a `__len__` that raises TypeError, as for anything without a length: it is
        defined where `BatchSampler.__len__` would miscount the batches that the class makes.

    How it is proved:
        Invariant `runs`: before the fix the script dies with the error on every rank, after it
        the script finishes.

    References:
        - torch/utils/data/sampler.py, classes `Sampler` (2.0, 2.1 and 2.10) and `BatchSampler`
        - https://github.com/pytorch/pytorch/pull/97338
        - https://github.com/pytorch/pytorch/pull/163134
        - https://github.com/facebookresearch/detectron2/issues/186
    """

    code = "SMP305"
    name = "broken-sampler-init"
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at the constructor of every class that is certainly a sampler."""
        for module, cls in model.classes():
            if model.is_a(cls, SAMPLER) is not True:
                continue
            found = list(_findings(model, module, cls))
            dead = bool(found) and launches(model).is_dead(cls)
            for suspect in found:
                if dead:
                    suspect.grade = Grade.LIKELY
                yield suspect


def _findings(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    for call in model.flow.base_init_calls(cls):
        extra = _arguments(call)
        if extra and _reaches_sampler(model, cls, call):
            versions = model.versions(module, "torch")
            if versions.may_be(WITHOUT_INIT):
                yield _suspect(module, cls, call, extra, versions)
    yield from _not_called(model, module, cls)
    yield from _only_by_set_epoch(model, module, cls)
    yield from _no_batch_size(model, module, cls)


# --------------------------------------------------------------------------- the argument


def _arguments(call: Call) -> list[Arg]:
    """What the call passes beside ``self``."""
    assert isinstance(call.func, Attr)
    through_super = isinstance(call.func.value, Call) and last_name(call.func.value.func) == "super"
    if through_super:
        return call.args
    if isinstance(call.func.value, (Name, Attr)):
        return call.args[1:]
    return []


def _reaches_sampler(model: Model, cls: Class, call: Call) -> bool:
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


def _suspect(module: Module, cls: Class, call: Call, extra: list[Arg], versions: Range) -> Suspect:
    given = ", ".join(
        ("*" * arg.stars) + (f"{arg.keyword}=" if arg.keyword else "") + unparse(arg.value)
        for arg in extra
    )
    message = (
        f"`{cls.name}` passes `{given}` to `torch.utils.data.Sampler.__init__`, which torch 2.10 "
        f"removed: building the sampler raises `TypeError: object.__init__() takes exactly one "
        f"argument`; call it without arguments"
    )
    return Suspect(module, call, message, fix=partial(_drop, call, extra, versions))


def _drop(call: Call, extra: list[Arg], versions: Range, editor: Editor) -> Fix:
    """Drop the arguments, keeping ``self`` of an unbound call."""
    effect = any(isinstance(arg.value, Call) for arg in extra)
    # torch 2.0 demands the argument that torch 2.10 refuses.
    demanded = versions.is_stated and versions.may_be(DEMANDS_DATA_SOURCE)
    applicability = Applicability.UNSAFE if effect or demanded else Applicability.SAFE
    editor.drop_arguments(call, len(call.args) - len(extra))
    return editor.fix("Drop the argument", applicability)


# --------------------------------------------------------------------------- the missing call


def _not_called(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """No ``super().__init__()``, and an inherited method reads what it would have set."""
    init = cls.method("__init__")
    if init is None or model.flow.base_init_calls(cls) or _is_given_away(model, init):
        return
    if model.attributes(cls).open is not None or _may_be_completed(model, cls):
        return
    there = _set_without_base_init(model, cls)
    for method in PROTOCOL:
        owner = model.flow.method(cls, method)
        if isinstance(owner, str):
            entry = catalog.known(owner)
            assert entry is not None
            base: Class | str = owner
            read = dict(entry.reads).get(method, frozenset())
            sets = entry.attributes
        elif isinstance(owner, Function) and owner.cls not in {cls, None}:
            assert owner.cls is not None
            base = owner.cls
            read = frozenset(r.name for r in owner.reads if self_class(r.value) is base)
            sets = _set_by_init(base)
        else:
            continue
        missing = sorted(
            name for name in (read & sets) - there if not model.project.outer_stores_near(name, cls)
        )
        if missing:
            yield _missing_call(model, module, cls, init, base, method, missing)
            return


def _is_given_away(model: Model, init: Function) -> bool:
    """Whether a helper gets ``self``, or the attributes are set by name."""
    return any(self_class(arg.value) is not None for call in init.calls for arg in call.args)


def _may_be_completed(model: Model, cls: Class) -> bool:
    """Whether a subclass may set what is missing, or the class is one of several bases."""
    derived = model.flow.subclasses(cls)
    return len(cls.bases) > 1 or any(sub.method("__init__") for sub in derived)


def _set_without_base_init(model: Model, cls: Class) -> set[str]:
    names: set[str] = set()
    for base in model.flow.mro(cls):
        if isinstance(base, Class):
            names |= base.bindings.keys()
            for scope in scopes_inside(base):
                if base is not cls and scope.name == "__init__":
                    continue
                names |= _stored_in(scope, base)
        elif isinstance(base, str):
            entry = catalog.known(base)
            names |= entry.methods if entry is not None else set()
    return names


def _set_by_init(cls: Class) -> frozenset[str]:
    init = cls.method("__init__")
    return frozenset(_stored_in(init, cls)) if init is not None else frozenset()


def _stored_in(scope: Scope, cls: Class) -> set[str]:
    return {
        store.target.name
        for store in scope.stores
        if isinstance(store.target, Attr) and self_class(store.target.value) is cls
    }


def _missing_call(
    model: Model,
    module: Module,
    cls: Class,
    init: Function,
    base: Class | str,
    method: str,
    missing: list[str],
) -> Suspect:
    shown = base.name if isinstance(base, Class) else base.rpartition(".")[2]
    names = ", ".join(f"`{name}`" for name in missing)
    message = (
        f"`{cls.name}.__init__` does not call `{shown}.__init__`, so the inherited `{method}` "
        f"finds no {names}: AttributeError when it runs; call `super().__init__(...)`, or "
        f"override `{method}`"
    )

    def fix(editor: Editor) -> Fix | None:
        given = _base_arguments(model, cls, init, base)
        if given is None:
            return None
        if base == BATCH_SAMPLER and "drop_last" in missing and not init.param("drop_last"):
            drops = _drops_last(model, cls)
            if drops is None:
                return _refuse_length(cls, editor)
            given = given.replace("drop_last=False", f"drop_last={drops}")
        line = f"super().__init__({given})"
        return editor.insert_first(init, line).fix(f"Call `{line}`", Applicability.UNSAFE)

    return Suspect(module, name_of(module, cls), message, fix=fix)


def _drops_last(model: Model, cls: Class) -> bool | None:
    """Whether ``__iter__`` drops the last batch; None if it makes other batches than torch's."""
    trials = model.trials(cls).usual
    if cls.method("__iter__") is None or not trials:
        return False
    found = {False, True}
    for trial in trials:
        size = trial.world.batch_size
        for turn in trial.turns:
            whole, rest = divmod(trial.world.samples, size)
            found &= {drops for drops in found if turn.count == whole + bool(rest and not drops)}
    if any(trial.from_data for trial in trials) or not found:
        return None
    return min(found)


def _refuse_length(cls: Class, editor: Editor) -> Fix:
    """Define a ``__len__`` that raises what callers expect where there is no length."""
    refusal = 'raise TypeError("the number of batches is not known before they are made")'
    editor.insert_after(cls.body[-1], "", "def __len__(self):", editor.source.indent + refusal)
    message = "Define a `__len__` that raises TypeError"
    return editor.fix(message, Applicability.UNSAFE)


def _base_arguments(model: Model, cls: Class, init: Function, base: Class | str) -> str | None:
    """The base's parameters from the constructor's own of the same names."""
    signature = of_class(model, base)
    if signature is None:
        return None
    own = {p.name for p in init.params[1:] if not p.is_star}
    given = []
    for name in [*signature.positional, *sorted(signature.keywords)]:
        if name in own:
            given.append(f"{name}={name}")
        elif name in signature.required:
            if name != "drop_last":
                return None
            given.append("drop_last=False")
    return ", ".join(given)


# --------------------------------------------------------------------------- set_epoch only


def _only_by_set_epoch(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """``set_epoch`` stores what ``__iter__`` reads, and nothing stores it before."""
    setter, iterate, init = (cls.method(name) for name in ("set_epoch", "__iter__", "__init__"))
    if setter is None or iterate is None or init is None:
        return
    if model.attributes(cls).open is not None or _is_given_away(model, init):
        return
    params = {param.name for param in setter.params[1:]}
    read = {r.name: r for r in reversed(iterate.reads) if self_class(r.value) is cls}
    before = _set_before(model, cls, setter) | _asked(cls)
    for store in setter.stores:
        target = store.target
        if (
            isinstance(target, Attr)
            and self_class(target.value) is cls
            and isinstance(store.value, Name)
            and store.value.id in params
            and target.name in read
            and target.name not in before
            and not model.project.outer_stores_near(target.name, cls)
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
                    names |= _stored_in(scope, related)
        elif isinstance(related, str):
            entry = catalog.known(related)
            names |= entry.attributes | entry.methods if entry is not None else set()
    return names


def _asked(cls: Class) -> set[str]:
    return {
        str(arg.value)
        for scope in scopes_inside(cls)
        for call in scope.calls
        if ASKS_BY_NAME.is_call(call)
        for arg in call.positional[1:2]
        if isinstance(arg, Const)
    }


def _unset(module: Module, cls: Class, init: Function, name: str, read: Attr) -> Suspect:
    message = (
        f"`{cls.name}` gets `{name}` from `set_epoch` only, but `__iter__` reads it: reading the "
        f"loader before `set_epoch` raises AttributeError; set `{name} = 0` in `__init__`"
    )
    why = (Related(module.place(read), "read here"),)

    def fix(editor: Editor) -> Fix | None:
        if init.body and isinstance(init.body[-1], (Return, Raise)):
            return None
        editor.append(init, f"{init.params[0].name}.{name} = 0")
        return editor.fix(f"Set `{name} = 0` in `__init__`", Applicability.SAFE)

    return Suspect(module, name_of(module, cls), message, why=why, fix=fix)


# --------------------------------------------------------------------------- batch_size=None


def _no_batch_size(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
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
        message = (
            f"`{param.name}` of `{cls.name}` is None unless given, and `BatchSampler.__init__` "
            f"refuses None: building the sampler without it raises ValueError; work the size out "
            f"before the call"
        )
        yield Suspect(module, made.call, message)


def _is_tested(init: Function, call: Call, name: str) -> bool:
    """Whether anything looks at the parameter before the call: it may refuse None itself."""
    assert call.stmt is not None
    return any(
        isinstance(node, Name) and node.id == name
        for stmt in statements(init.body)
        if stmt.order < call.stmt.order and not isinstance(stmt, Assign)
        for expr in expressions(stmt)
        for node in walk(expr)
    )
