"""SMP305: a sampler's constructor leaves the torch sampler under it broken."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint import catalog
from sampler_lint.analysis.values import ClassRef, Ext, Unknown
from sampler_lint.catalog.torch import DEMANDS_DATA_SOURCE, WITHOUT_INIT
from sampler_lint.domain.concepts import ASKS_BY_NAME, PROTOCOL
from sampler_lint.domain.epoch_calls import calls_for, epoch_samplers
from sampler_lint.domain.epochs import epoch_loops
from sampler_lint.domain.model import BATCH_SAMPLER, SAMPLER, Model, calls_inside, scopes_inside
from sampler_lint.domain.passes import passes
from sampler_lint.domain.signatures import base_inits, of_class
from sampler_lint.domain.stored_outside import is_stored_outside
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import name_of
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.rules._trials import graded
from sampler_lint.syntax.navigation import (
    nodes_in,
    on_super,
    self_class,
    self_stores,
    statements,
    unparse,
    walk,
)
from sampler_lint.syntax.nodes import (
    Arg,
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Function,
    Name,
    Stmt,
    last_name,
)
from sampler_lint.workspace.project import Module
from sampler_lint.workspace.requirements import Range


class BrokenSamplerInit(Rule):
    """A sampler's constructor calls the constructor of its torch base wrongly, or not at all.

    What it does:
        Reports an argument passed to `Sampler.__init__`, in any spelling (`super().__init__(x)`,
        `super(C, self).__init__(x)`, `Sampler.__init__(self, x)`), where no class in between
        defines `__init__`; an `__init__` that does not call the base's, although an inherited
        `__iter__`, `__len__` or `set_epoch` reads what that sets; an attribute that only
        `set_epoch` sets although `__iter__` reads it; and a `batch_size` that is None by default
        and is passed on to `BatchSampler.__init__`. The argument is not reported where the
        repository's requirements exclude torch 2.10 and later. Classes that nothing uses, in a
        repository that builds its samplers and loaders itself, are only likely.

    Why is this bad?
        `Sampler.__init__(data_source)` was deprecated in torch 2.1 and removed in torch 2.10: the
        call reaches `object.__init__`, and building the sampler raises `TypeError:
        object.__init__() takes exactly one argument`. The other mistakes raise AttributeError
        when the loader is iterated or `len(loader)` is called, or ValueError.

    Fix safety:
        Safe for the argument, which is dropped, where the repository's requirements say that
        torch is 2.1 or newer: torch never stored it, and 2.0 or older requires it. Otherwise
        unsafe, and also if the argument is itself a call, which may have an effect, if it is all
        that is passed (`*args`), of which too much would no longer be refused, and if a
        derived class lets `super()` reach another `__init__`. Safe for `self.epoch = 0`, torch's
        own first value. Unsafe for the missing call, which gets the arguments of the same names,
        and for a `__len__` that raises TypeError, which is defined where `BatchSampler.__len__`
        would miscount the batches of the class.

    How it is proved:
        Invariant `runs`: before the fix the script fails with the error on every rank, after it
        the script finishes.

    References:
        - torch/utils/data/sampler.py, classes `Sampler` (2.0, 2.1 and 2.10) and `BatchSampler`
        - https://github.com/pytorch/pytorch/pull/97338
        - https://github.com/pytorch/pytorch/pull/163134
        - https://github.com/facebookresearch/detectron2/issues/186
        - met in https://github.com/lhotse-speech/lhotse (lhotse/dataset/sampling/stateless.py)
    """

    code = "SMP305"
    name = "broken-sampler-init"
    symptoms = (
        "TypeError: object.__init__() takes exactly one argument",
        "AttributeError while iterating over a sampler",
    )
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at the constructor of every class that is certainly a sampler."""
        for module, cls in model.classes():
            if model.is_a(cls, SAMPLER) is not True:
                continue
            for suspect in _findings(model, module, cls):
                yield from graded(model, cls, self.code, suspect)


def _findings(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    for call in model.flow.base_init_calls(cls):
        extra = extra_arguments(call)
        if extra and reaches_sampler(model, cls, call):
            versions = model.versions(module, "torch")
            if versions.may_be(WITHOUT_INIT):
                yield not_taken(model, module, cls, call, extra, versions)
    yield from not_called(model, module, cls)
    yield from set_by_set_epoch_only(model, module, cls)
    yield from no_batch_size(model, module, cls)


# ``Sampler.__init__`` is called with arguments that it does not take.


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
    editor.drop_arguments(call, len(call.args) - len(extra))
    why = "torch 2.0 and older ask for it" if demanded else ""
    if any(arg.stars for arg in extra):
        why = "what is passed too much would no longer be refused"
    if effect or is_needed:
        why = "it may have an effect" if effect else "another `__init__` may take it"
    applicability = Applicability.UNSAFE if why else Applicability.SAFE
    return editor.fix("Drop the argument", applicability, why)


# The base's constructor is not called, and something reads what it sets.


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
        names |= {target.name for target, _ in self_stores(scopes_inside(sub), sub)}
    for base in model.flow.mro(cls):
        if isinstance(base, Class):
            names |= base.bindings.keys()
            scopes = (s for s in scopes_inside(base) if base is cls or s.name != "__init__")
            names |= {target.name for target, _ in self_stores(scopes, base)}
        elif isinstance(base, str):
            entry = catalog.known(base)
            names |= entry.methods if entry is not None else set()
    return names


def _set_by_init(cls: Class) -> frozenset[str]:
    init = cls.method("__init__")
    return frozenset(target.name for target, _ in self_stores([] if init is None else [init], cls))


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
    return editor.fix(message, Applicability.UNSAFE, "the length may be known to who writes it")


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


# Attributes that only ``set_epoch`` sets, or that frameworks ask for and nothing sets.


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
            suspect = _unset(module, cls, init, target.name, read[target.name])
            if _is_always_told(model, cls):
                suspect.grade = Grade.LIKELY
            yield suspect


def _is_always_told(model: Model, cls: Class) -> bool:
    """Whether the program is seen to pass over it, and each time in a loop that sets the epoch."""
    told: dict[Stmt, bool] = {}
    for found in epoch_loops(model):
        wanted = [c for c in epoch_samplers(model, found.inner.loader) if c.sampler.cls is cls]
        if wanted:
            stmt = found.inner.stmt
            is_told = bool(calls_for(model, found, wanted).hits)
            told[stmt] = is_told and told.get(stmt, True)
    return bool(told) and all(
        told.get(each.stmt, False)
        for each in passes(model)
        if any(c.sampler.cls is cls for c in epoch_samplers(model, each.loader))
    )


def _set_before(model: Model, cls: Class, setter: Function) -> set[str]:
    """The attributes that something else than ``set_epoch`` sets."""
    names: set[str] = set()
    for related in model.flow.family(cls):
        if isinstance(related, Class):
            names |= related.bindings.keys()
            scopes = [
                s for s in scopes_inside(related) if s is not setter and s.name != "set_epoch"
            ]
            names |= {target.name for target, _ in self_stores(scopes, related)}
        elif isinstance(related, str):
            entry = catalog.known(related)
            names |= entry.attributes | entry.methods if entry is not None else set()
    return names


def _runs_itself(model: Model, cls: Class, setter: Function) -> bool:
    """Whether a method of the class calls its ``set_epoch``: it may be set from the start."""
    return any(
        isinstance(call.func, Attr) and self_class(call.func.value) is related
        for related in model.flow.own_family(cls)
        for call in calls_inside(related)
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

    def fix(editor: Editor) -> Fix:
        editor.store(init, f"{init.params[0].name}.{name} = 0")
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
