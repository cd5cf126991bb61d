"""SMP404: a sampler's setting is stored under a name that nothing reads, or is hidden again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.analysis.points_to import Obj
from sampler_lint.domain.concepts import ASKS_BY_NAME, CONFIG, PROTOCOL, SAMPLER_CLASS
from sampler_lint.domain.model import DATA_LOADER, Model, scopes_inside
from sampler_lint.domain.signatures import Construction, base_inits
from sampler_lint.edits.editor import Editor, renaming, replacing
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.limits import SURE_SLIP
from sampler_lint.rules._alike import closest, likeness
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._kept_seed import name_reads, seed_not_read
from sampler_lint.rules._no_effect import no_effect
from sampler_lint.syntax.nodes import (
    SUMS,
    Assign,
    Attr,
    Bin,
    Call,
    Class,
    Const,
    Expr,
    For,
    Function,
    Map,
    Name,
    Raise,
    Scope,
    Store,
    Unary,
    While,
    expressions,
    last_name,
    same,
    self_class,
    statements,
    walk,
)
from sampler_lint.workspace.project import Module

_GETTER = re.compile(r"^(get_)?state(_dict)?$")
_LOADER = re.compile(r"^(load|set)_state(_dict)?$")
#: What `DistributedSampler.__init__` stores when the argument is left out.
_DEFAULTS = {"shuffle": True, "seed": 0, "drop_last": False}
#: What it works out itself, whatever it is given.
_WORKED_OUT = frozenset({"num_samples", "total_size"})


class MisdirectedAssignment(Rule):
    """A sampler's setting is stored under the wrong name, or hidden again at once.

    What it does:
        Reports, on samplers and loaders that are certain:
        an attribute that nothing reads beside a near one that is read (`sampler.epochs = epoch`);
        a local variable that nothing reads, named like an attribute of the sampler (`epoch =
        epoch` in `set_epoch`);
        a setter that assigns nothing (`self.epoch == epoch`, `self.epoch: epoch`);
        an attribute set before `super().__init__(...)`, which stores another value over it;
        a `seed` that the constructor keeps and nothing reads, beside a shuffle with a generator of
        the whole process;
        a `state_dict` that stores its argument into the sampler's own position;
        an abstract method of the first base that hides the real one of a later base.

    Why is this bad?
        Nothing raises. The epoch never changes, the validation sampler shuffles, or the rank
        that saves a checkpoint skips samples that the others read.

    Fix safety:
        Safe where the spelling differs by a letter, where a setter's parameter goes to a local
        of the attribute's name, and for the value passed to `super().__init__`. Unsafe
        otherwise: a near name may be meant otherwise, and the order of bases matters to more
        than one method.

    How it is proved:
        Invariant `reshuffles`: before the fix every epoch has the same order, after it they
        differ.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__init__` and `set_epoch`
        - https://docs.python.org/3/howto/mro.html
    """

    code = "SMP404"
    name = "misdirected-assignment"
    invariant = "reshuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at what is stored on samplers, from inside and outside."""
        reads = _Reads(model)
        yield from _outside(model, reads)
        for module, cls in model.classes():
            if not (
                model.is_sampler_class(cls)
                or (SAMPLER_CLASS.says(cls.name) and cls.method("__iter__"))
            ):
                continue
            yield from _inside(model, module, cls, reads)
            yield from _locals(model, module, cls)
            yield from _overwritten(model, module, cls)
            yield from _state_getter(module, cls)
            yield from _hidden(model, module, cls)
            yield from seed_not_read(model, module, cls)
            yield from no_effect(module, cls)


class _Reads:
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
        for module in project.loaded if stored else ():
            if not project.same_program(module.facts, near):
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


# --------------------------------------------------------------------------- attributes


def _outside(model: Model, reads: _Reads) -> Iterator[Suspect]:
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


def _inside(model: Model, module: Module, cls: Class, reads: _Reads) -> Iterator[Suspect]:
    """``self.epochs = epoch`` in a setter, where ``epoch`` is what the class reads."""
    read = _read_by(model, cls)
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
    message = (
        f"sets `{shown}`, which nothing reads: `{owner}` goes by `{near}`, which stays as it was; "
        f"set `{near}`"
    )
    sure = likeness(target.name, near) >= SURE_SLIP
    applicability = Applicability.SAFE if sure else Applicability.UNSAFE
    fix = renaming(target, target.name, near, f"Set `{near}`", applicability)
    return Suspect(module, target, message, fix=fix)


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


def _read_by(model: Model, cls: Class) -> set[str]:
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


# --------------------------------------------------------------------------- locals


def _locals(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """A local that nothing reads, named like an attribute that the class reads."""
    wanted = _read_by(model, cls) & model.attributes(cls).names
    wanted -= {method.name for method in cls.methods}
    for function in cls.methods:
        if function.self_name is None or function.is_static:
            continue
        for stmt in statements(function.body):
            if not isinstance(stmt, Assign) or len(stmt.targets) != 1:
                continue
            target = stmt.targets[0]
            if (
                isinstance(target, Name)
                and target.id in wanted
                and target.id in function.bindings
                and _is_lost(module, function, stmt, target.id)
            ):
                yield _local(module, cls, function, stmt, target)


def _is_lost(module: Module, function: Function, stmt: Assign, name: str) -> bool:
    """Whether nothing reads the local after it is assigned, and it is no leftover.

    A name that is read earlier may have served its turn, unless what was read went to the
    attribute of that name, which this assignment was to correct.
    """
    inner = module.facts.inside(function)
    reads = [read for scope in (function, *inner) for read in name_reads(scope, name)]
    if not function.called.isdisjoint({"locals", "eval", "exec"}):
        return False
    loops = [outer for outer in stmt.ancestors() if isinstance(outer, (For, While))]
    for read in reads:
        if read is stmt:
            continue
        if read.scope is not function or read.order > stmt.order:
            return False
        if any(loop.encloses(read) for loop in loops):
            return False
        early = any(
            isinstance(store.target, Attr)
            and store.target.name == name
            and isinstance(store.value, Name)
            and store.value.id == name
            and store.stmt.order < stmt.order
            for store in function.stores
        )
        if not early:
            return False
    return not any(
        isinstance(store.target, Attr)
        and store.target.name == name
        and store.stmt.order > stmt.order
        for store in function.stores
    )


def _local(module: Module, cls: Class, function: Function, stmt: Assign, target: Name) -> Suspect:
    receiver = function.self_name
    message = (
        f"`{function.name}` of `{cls.name}` assigns a local `{target.id}`, which nothing reads; "
        f"`{receiver}.{target.id}`, which the sampler reads, stays as it was; assign "
        f"`{receiver}.{target.id}`"
    )
    is_setter = function.name.startswith("set_") and any(
        isinstance(node, Name) and function.param(node.id) for node in walk(stmt.value)
    )
    applicability = Applicability.SAFE if is_setter else Applicability.UNSAFE
    meant = f"{receiver}.{target.id}"
    fix = replacing(target, meant, f"Assign `{meant}`", applicability)
    return Suspect(module, target, message, fix=fix)


# --------------------------------------------------------------------------- super().__init__ last


def _overwritten(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """Attributes set before the base's ``__init__``, which stores something else."""
    init = cls.method("__init__")
    if init is None:
        return
    for made in base_inits(model, cls):
        owner, stmt = made.signature.owner, made.call.stmt
        entry = catalog.known(owner) if isinstance(owner, str) else None
        if entry is None or stmt is None or stmt.parent is not None:
            continue
        if any(arg.stars for arg in made.args):
            continue
        read = _read_by(model, cls)
        for store in init.stores:
            target = store.target
            if (
                isinstance(target, Attr)
                and self_class(target.value) is cls
                and target.name in entry.attributes & read
                and (target.name in entry.params or _is_floored(target.name, store.value))
                and store.stmt.order < stmt.order
                and store.value is not None
                and store.how == "assign"
                and not store.path
                and not _stored_again(init, target, store)
            ):
                given = _given(made, target.name)
                if _differs(target, store.value, given):
                    yield _overwrite(module, cls, made, store, target, store.value, given)
                    break


def _stored_again(init: Function, target: Attr, store: Store) -> bool:
    return any(
        other is not store and isinstance(other.target, Attr) and other.target.name == target.name
        for other in init.stores
    )


def _given(made: Construction, name: str) -> Expr | None:
    for arg in made.args:
        if arg.keyword == name:
            return arg.value
    if name not in made.signature.positional:
        return None
    index = made.signature.positional.index(name)
    return made.positional[index] if index < len(made.positional) else None


def _is_floored(name: str, value: Expr | None) -> bool:
    """Whether it is a count of the class's own, and not rounded up as the base does."""
    return (
        name in _WORKED_OUT
        and isinstance(value, Bin)
        and value.op == "FloorDiv"
        and not any(
            isinstance(node, Unary) or (isinstance(node, Bin) and node.op in SUMS)
            for node in walk(value)
        )
    )


def _differs(target: Attr, stored: Expr, given: Expr | None) -> bool:
    """Whether the base certainly stores another value than the one stored before."""
    if target.name in _WORKED_OUT:
        return True
    if given is None:
        return target.name in _DEFAULTS and not (
            isinstance(stored, Const) and stored.value == _DEFAULTS[target.name]
        )
    if same(stored, given) or same(target, given):
        return False
    # Another spelling may be the same value; a value made from what is passed is not.
    return isinstance(given, Name) and any(
        same(node, given) for node in walk(stored) if node is not stored
    )


def _overwrite(
    module: Module,
    cls: Class,
    made: Construction,
    store: Store,
    target: Attr,
    stored: Expr,
    given: Expr | None,
) -> Suspect:
    shown = text_of(module.source, target)
    base = made.built
    advice = f"pass `{target.name}={shown}`"
    if given is not None:
        what = f"sets it to `{text_of(module.source, given)}`"
    elif target.name in _WORKED_OUT:
        what, advice = "works out its own", "set it after that call"
    else:
        what = f"sets it to its default, {_DEFAULTS[target.name]}"
    message = (
        f"`{shown} = {text_of(module.source, stored)}` is lost: `{base}.__init__`, called after "
        f"it, {what}; {advice}"
    )
    why = (Related(module.place(store.stmt), f"`{shown}` set here"),)
    fix = None if given is None else replacing(given, shown, f"Pass `{shown}`")
    return Suspect(module, made.call, message, why=why, fix=fix)


# --------------------------------------------------------------------------- state_dict


def _state_getter(module: Module, cls: Class) -> Iterator[Suspect]:
    """A getter of state that moves the sampler to where its caller says it is."""
    loads = {
        store.target.name
        for method in cls.methods
        if _LOADER.match(method.name)
        for store in method.stores
        if isinstance(store.target, Attr)
    }
    used = {
        read.name
        for method in cls.methods
        if method.name in {"__iter__", "__len__"}
        for scope in (method, *module.facts.inside(method))
        for read in scope.reads
        if self_class(read.value) is cls
    }
    for method in cls.methods:
        if not _GETTER.match(method.name) or len(method.params) < 2:
            continue
        if not any(isinstance(r.value, (Map, Name, Call)) for r in method.returns):
            continue
        params = {param.name for param in method.params[1:]}
        for store in method.stores:
            target = store.target
            if (
                isinstance(target, Attr)
                and self_class(target.value) is cls
                and target.name in loads & used
                and store.value is not None
                and any(isinstance(n, Name) and n.id in params for n in walk(store.value))
            ):
                yield _moving_getter(module, cls, method, store, target)


def _moving_getter(
    module: Module, cls: Class, method: Function, store: Store, target: Attr
) -> Suspect:
    shown = text_of(module.source, target)
    message = (
        f"`{method.name}` of `{cls.name}` stores its argument in `{shown}`, which `__iter__` or "
        f"`__len__` reads: asking for the state moves the sampler, on the ranks that save only; "
        f"use a local variable"
    )

    def fix(editor: Editor) -> Fix | None:
        reads = [r for r in method.reads if same(r, target)]
        bound = method.bindings.get(target.name, [])
        if any(b.how != "param" for b in bound) or any(r.stmt is None for r in reads):
            return None
        later = [
            node
            for stmt in statements(method.body)
            if stmt.order > store.stmt.order
            for expr in expressions(stmt)
            for node in walk(expr)
            if isinstance(node, Name) and node.id == target.name
        ]
        if (bound and later) or any(r.stmt and r.stmt.order <= store.stmt.order for r in reads):
            return None
        for node in (target, *reads):
            editor.replace(node, target.name)
        return editor.fix(f"Use a local `{target.name}`", Applicability.UNSAFE)

    return Suspect(module, target, message, fix=fix)


# --------------------------------------------------------------------------- order of bases


def _hidden(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
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
            if not isinstance(found, Function) or not _is_abstract(found):
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


def _is_abstract(method: Function) -> bool:
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
        return not _is_abstract(found)
    return isinstance(found, str) and not found.endswith(".Sampler")


def _shadow(
    module: Module, cls: Class, abstract: Function, method: str, first: int, real: int
) -> Suspect:
    source = module.source
    hiding, hidden = text_of(source, cls.bases[first]), text_of(source, cls.bases[real])
    message = (
        f"`{method}` of `{cls.name}` is the abstract one of `{hiding}`, which comes before "
        f"`{hidden}` in the bases: NotImplementedError when the sampler is used; name "
        f"`{hidden}` first"
    )

    def fix(editor: Editor) -> Fix:
        editor.replace(cls.bases[first], hidden).replace(cls.bases[real], hiding)
        return editor.fix(f"Name `{hidden}` first", Applicability.UNSAFE)

    here = Related(module.place(abstract), f"abstract `{method}`")
    why = (here,) if abstract.module is cls.module else ()
    return Suspect(module, name_of(module, cls), message, why=why, fix=fix)
