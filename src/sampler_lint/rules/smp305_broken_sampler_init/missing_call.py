"""The base's constructor is not called, and something reads what it sets."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.analysis.values import Unknown
from sampler_lint.domain.concepts import PROTOCOL
from sampler_lint.domain.model import BATCH_SAMPLER, Model, scopes_inside
from sampler_lint.domain.signatures import of_class
from sampler_lint.domain.stored_outside import is_stored_outside
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import name_of
from sampler_lint.findings import Applicability, Fix
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import on_super, self_class
from sampler_lint.syntax.nodes import Attr, Call, Class, Function, Scope, last_name
from sampler_lint.workspace.project import Module


def not_called(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """No ``super().__init__()``, and an inherited method reads what it would have set."""
    init = cls.method("__init__")
    if init is None or model.flow.base_init_calls(cls) or is_given_away(model, init):
        return
    if model.attributes(cls).open is not None or _may_be_completed(model, cls):
        return
    there = _set_without_base_init(model, cls)
    for method in PROTOCOL:
        owner = _run_at_last(model, cls, method)
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
            name for name in (read & sets) - there if not is_stored_outside(model, cls, name)
        )
        if missing:
            yield _missing_call(model, module, cls, init, base, method, missing)
            return


def _run_at_last(model: Model, cls: Class, method: str) -> Function | str | Unknown | None:
    """Who defines the method, or the base's own that it calls by ``super()`` in its place."""
    own = cls.method(method)
    if own is None or not any(_calls_base(call, method) for call in own.calls):
        return model.flow.method(cls, method)
    for base in model.flow.mro(cls)[1:]:
        if isinstance(base, Unknown):
            return base
        found = model.flow.method(base, method)
        if found is not None:
            return found
    return None


def _calls_base(call: Call, method: str) -> bool:
    return last_name(call.func) == method and on_super(call.func)


def is_given_away(model: Model, init: Function) -> bool:
    """Whether a helper gets ``self``, or the attributes are set by name."""
    return any(self_class(arg.value) is not None for call in init.calls for arg in call.args)


def _may_be_completed(model: Model, cls: Class) -> bool:
    """Whether the class is one of several bases, or a subclass does more than to build on it."""
    return len(cls.bases) > 1 or any(
        len(sub.bases) > 1
        or model.attributes(sub).open is not None
        or any(
            self_class(arg.value) is not None
            for call in init.calls
            if last_name(call.func) != "super"
            or [*map(last_name, call.positional[:1])] != [sub.name]
            for arg in call.args
        )
        for sub in model.flow.subclasses(cls)
        if (init := sub.method("__init__")) is not None
    )


def _set_without_base_init(model: Model, cls: Class) -> set[str]:
    names: set[str] = set()
    for sub in model.flow.subclasses(cls):
        names.update(*(stored_in(scope, sub) for scope in scopes_inside(sub)))
    for base in model.flow.mro(cls):
        if isinstance(base, Class):
            names |= base.bindings.keys()
            for scope in scopes_inside(base):
                if base is not cls and scope.name == "__init__":
                    continue
                names |= stored_in(scope, base)
        elif isinstance(base, str):
            entry = catalog.known(base)
            names |= entry.methods if entry is not None else set()
    return names


def _set_by_init(cls: Class) -> frozenset[str]:
    init = cls.method("__init__")
    return frozenset(stored_in(init, cls)) if init is not None else frozenset()


def stored_in(scope: Scope, cls: Class) -> set[str]:
    """The attributes of ``self`` that a scope sets."""
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
    names = ", ".join(f"`{name}`" for name in missing[:3])
    names += f" and {len(missing) - 3} more" if len(missing) > 3 else ""

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
        return editor.insert_first(init, line).fix(
            f"Call `{line}`", Applicability.UNSAFE, "it may set what the class sets otherwise"
        )

    return Suspect(
        module,
        name_of(module, cls),
        f"`{cls.name}.__init__` does not call `{shown}.__init__`, which sets {names}",
        fix=fix,
        effect=f"the inherited `{method}` raises AttributeError",
        advice=f"call `super().__init__(...)`, or override `{method}`",
        hides=True,
    )


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
