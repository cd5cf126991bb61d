"""SMP104: ``set_epoch`` of a sampler or wrapper does not reach what makes the order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.origins import origins
from sampler_lint.analysis.points_to import Obj
from sampler_lint.domain.concepts import EPOCH, SAMPLER, SEEDS_ALL, SETS_EPOCH
from sampler_lint.domain.epoch_state import (
    EpochState,
    draws,
    epoch_state,
    is_closed,
    is_fixed,
    iterates,
    own_classes,
    read_elsewhere,
    seed_argument,
    seedings,
    uses_epoch,
)
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model, scopes_inside
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.samplers import epoch_path
from sampler_lint.domain.wrapping import Inner, inners, says_sampler
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.edits.region import EditError
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._epoch_frameworks import unreached_by_lightning
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Name,
    Scope,
    Store,
    last_name,
    self_class,
    unparse,
    walk,
)
from sampler_lint.workspace.project import Module


class EpochNotForwarded(Rule):
    """`set_epoch` of a sampler or wrapper does not reach what makes the order.

    What it does:
        Reports a sampler, batch sampler or iterable dataset whose `set_epoch`

        - keeps the epoch to itself although what it wraps and iterates has a `set_epoch` of
          its own and shuffles by it,
        - stores the epoch where no pass reads it: the generator is seeded without it, the
          order was made in `__init__`, or `__iter__` reads another attribute,
        - is missing, although `__iter__` seeds its generator with an epoch that nothing ever
          changes,
        - belongs to a batch sampler that Lightning's `train_dataloader` hook hands over:
          Lightning 2.0 and later call it on `loader.sampler` and on `loader.batch_sampler.sampler`
          only.

        Silent where the wrapped object's epoch is set directly, where the wrapper hands the
        epoch on in `__iter__` or seeds the process's generator with it, and where the order
        comes from the process's generator, which moves on by itself.

    Why is this bad?
        The training loop does the right thing and calls `set_epoch`, but the call ends in an
        attribute. Every epoch then repeats one order (or, with a generator that runs on,
        resuming at epoch `k` replays epoch 0). Nothing raises.

    Fix safety:
        Safe where everything that the wrapper holds is known and has a `set_epoch`, and where
        one plain seed is extended by the epoch. Unsafe, with a `hasattr` guard, where it may
        be another object, and where a method is added that nobody calls yet.

    How it is proved:
        Invariant `reshuffles`: on two gloo ranks the epochs have one order before the fix and
        different orders after it.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.set_epoch` (stores, no more)
        - https://github.com/Lightning-AI/pytorch-lightning/issues/21454
        - lightning/fabric/utilities/data.py, `_set_sampler_epoch`
    """

    code = "SMP104"
    name = "epoch-not-forwarded"
    invariant = "reshuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at every class of the tree whose passes give an order."""
        yield from unreached_by_lightning(model)
        told = set()
        for module, cls in model.classes():
            if not iterates(model, cls) or not is_closed(model, cls):
                continue
            state = epoch_state(model, cls)
            if state.iteration.opaque or not state.iteration.functions | state.iteration.outside:
                continue
            found = list(_not_forwarded(model, state))
            if not found:
                found = [s for s in (_unread(model, module, state),) if s is not None]
            if not found and state.setter is None:
                found = [s for s in (_missing(model, module, state),) if s is not None]
            for suspect in found:
                place = (suspect.module, suspect.start.row, suspect.start.col)
                if place not in told:
                    told.add(place)
                    yield suspect


# --------------------------------------------------------------------------- wrappers


class _Carrier(NamedTuple):
    """A wrapped object that shuffles by an epoch of its own."""

    obj: Obj
    path: tuple[str, ...]
    """How its ``set_epoch`` is reached from it."""


def _not_forwarded(model: Model, state: EpochState) -> Iterator[Suspect]:
    setter = state.setter
    if _seeds_process(model, state):
        return
    mentioned = _handed_on(model, state)
    for inner in inners(model, state):
        if inner.path[0] in mentioned or _replaced_in_pass(state, inner):
            continue
        owner = inner.owner
        module = model.module_of(owner)
        carriers = list(_carriers(model, inner, frozenset({state.cls})))
        carriers = [c for c in carriers if not _set_directly(model, c)]
        if setter is None:
            call = _asked(model, state.cls) if carriers and len(inner.path) == 1 else None
            if call is None:
                continue
            yield _suspect(model, module, state, inner, carriers, call)
        elif carriers:
            yield _suspect(model, module, state, inner, carriers, None)
        elif (
            setter.inert
            and inner.open
            and all(_is_of_test(model, obj) for obj in inner.objects)
            and inner.param is not None
            and says_sampler(inner.param)
            and module.is_library(owner)
            and not owner.name.startswith("_")
            and model.is_sampler_class(state.cls)
            and not _reached_by_name(model, inner)
        ):
            yield _suspect(model, module, state, inner, [], None)


def _is_of_test(model: Model, obj: Obj) -> bool:
    return obj.site is not None and is_test(model.module_of(obj.site.scope))


def _carriers(model: Model, inner: Inner, seen: frozenset[Class]) -> Iterator[_Carrier]:
    for obj in inner.objects:
        if _never_shuffles(model, obj):
            continue
        if isinstance(obj.cls, Class):
            if obj.cls not in seen and _carries(model, obj.cls, seen | {obj.cls}):
                yield _Carrier(obj, ())
            continue
        path = epoch_path(model, obj)
        if isinstance(path, tuple):
            target = obj
            for name in path:
                known = [v for v in model.flow.ask_field(target, name) if isinstance(v, Obj)]
                if len(known) != 1:
                    break
                target = known[0]
            else:
                if not _never_shuffles(model, target) and not isinstance(target.cls, Class):
                    yield _Carrier(obj, path)


def _carries(model: Model, cls: Class, seen: frozenset[Class]) -> bool:
    """Whether an instance shuffles by the epoch that its ``set_epoch`` is given (or wraps one)."""
    if uses_epoch(model, cls):
        return True
    state = epoch_state(model, cls)
    return state.setter is not None and any(
        next(_carriers(model, inner, seen), None) is not None for inner in inners(model, state)
    )


def _never_shuffles(model: Model, obj: Obj) -> bool:
    given = model.flow.argument(obj, "shuffle")
    if given is None:
        return False
    constants = model.flow.constants(given, obj.through)
    return constants is not None and not any(constants)


def _handed_on(model: Model, state: EpochState) -> set[str]:
    """The attributes that some method of the class may pass the epoch to."""
    names: set[str] = set()
    for cls in own_classes(model, state.cls):
        for scope in scopes_inside(cls):
            if not isinstance(scope, Function):
                continue
            is_setter = SETS_EPOCH.says(scope.name)
            sets = [c for c in scope.calls if EPOCH.names(c.func)]
            sets = [c for c in sets if not _on_super(c)]
            stores = [s for s in scope.stores if _stores_epoch(s)]
            tells = [c for c in scope.calls if any(_reads_stored(state, a.value) for a in c.args)]
            if is_setter or sets or stores or tells:
                names |= {
                    read.name
                    for read in scope.reads
                    if self_class(read.value) is not None
                    and (is_setter or sets or stores or _within(read, tells))
                }
    return names


def _on_super(call: Call) -> bool:
    func = call.func
    return (
        isinstance(func, Attr)
        and isinstance(func.value, Call)
        and last_name(func.value.func) == "super"
    )


def _stores_epoch(store: Store) -> bool:
    target = store.target
    return isinstance(target, Attr) and EPOCH.names(target) and self_class(target.value) is None


def _reads_stored(state: EpochState, expr: Expr) -> bool:
    return any(
        isinstance(node, Attr) and node.name in state.stored and self_class(node.value) is not None
        for node in walk(expr)
    )


def _within(read: Attr, calls: list[Call]) -> bool:
    return any(node is read for call in calls for node in walk(call.func))


def _seeds_process(model: Model, state: EpochState) -> bool:
    """Whether a pass seeds the process's generators, so that what it wraps follows the epoch."""
    return bool(state.reads(state.iteration)) and any(
        SEEDS_ALL.is_made(call, model.flow.values) for call in seedings(state.iteration)
    )


def _replaced_in_pass(state: EpochState, inner: Inner) -> bool:
    return any(
        isinstance(store.target, Attr)
        and store.target.name == inner.path[0]
        and self_class(store.target.value) is not None
        for function in state.iteration.functions
        for store in function.stores
        if len(inner.path) == 1
    )


def _set_directly(model: Model, carrier: _Carrier) -> bool:
    """Whether code outside calls ``set_epoch`` on the wrapped object itself."""
    wanted = (carrier.obj.cls, carrier.obj.site)
    targets = {wanted}
    if carrier.path:
        targets |= {
            (value.cls, value.site)
            for value in model.flow.ask_field(carrier.obj, carrier.path[0])
            if isinstance(value, Obj)
        }
    for call in model.epoch_setters:
        assert isinstance(call.func, Attr)
        for value in model.flow.values(call.func.value):
            if isinstance(value, Obj) and (value.cls, value.site) in targets:
                return True
    return False


def _reached_by_name(model: Model, inner: Inner) -> bool:
    """Whether some code calls ``x_sampler.<attribute>.set_epoch``."""
    for call in model.epoch_setters_near(inner.owner):
        assert isinstance(call.func, Attr)
        target = call.func.value
        if (
            isinstance(target, Attr)
            and target.name == inner.path[-1]
            and SAMPLER.names(target.value)
        ):
            return True
    return False


def _asked(model: Model, cls: Class) -> Call | None:
    """A ``set_epoch`` call whose receiver may be an instance of the class."""
    for call in model.epoch_setters:
        assert isinstance(call.func, Attr)
        values = model.flow.values(call.func.value)
        if call.func.name == "set_epoch" and any(
            isinstance(value, Obj) and value.cls is cls and value.site is not None
            for value in values
        ):
            return call
    return None


def _suspect(
    model: Model,
    module: Module,
    state: EpochState,
    inner: Inner,
    carriers: list[_Carrier],
    call: Call | None,
) -> Suspect:
    owner, setter = inner.owner, state.setter
    own = _own_setter(owner, setter.functions if setter is not None else ())
    held = "self." + ".".join(inner.path)
    what = " or ".join(sorted({f"`{c.obj.name}`" for c in carriers})[:2])
    if carriers:
        who = f"the samplers in `{held}` ({what})" if inner.many else f"`{held}` ({what})"
        result = "whose own epoch stays as it was: every epoch repeats one order of it"
    else:
        assert inner.param is not None
        who = f"the `{inner.param.name}` it wraps"
        result = (
            "which may shuffle by an epoch of its own: that epoch never changes and every epoch "
            "repeats one order"
        )
    if setter is None:
        does = f"`{owner.name}` has no `set_epoch` that passes the epoch on to {who}"
    elif own is not None:
        does = f"`{owner.name}.set_epoch` does not pass the epoch on to {who}"
    else:
        source = setter.functions[0].cls if setter.functions else None
        base = source.name if source is not None else (setter.inherited or "").rpartition(".")[2]
        does = f"`{owner.name}` inherits `set_epoch` from `{base}`, which does not reach {who}"
    advice = "forward it" if setter is not None else "add one"
    message = f"{does}, {result}; {advice}"
    built = {  # a row is named once, however many are built in it
        (str(place := model.place_of(c.obj)), c.obj.name): place for c in carriers
    }
    why = [Related(built[key], f"`{key[1]}` built here") for key in sorted(built)[:2]]
    if call is not None:
        why.append(Related(model.place(call.scope, call), "`set_epoch` is called here"))
    start = name_of(module, own if own is not None else owner)
    fix = partial(_forward, state, inner, carriers, own) if len(inner.path) == 1 else None
    return Suspect(module, start, message, why=tuple(why), fix=fix)


def _own_setter(owner: Class, functions: tuple[Function, ...]) -> Function | None:
    return next((function for function in functions if function.cls is owner), None)


def _forward(
    state: EpochState,
    inner: Inner,
    carriers: list[_Carrier],
    own: Function | None,
    editor: Editor,
) -> Fix | None:
    """Pass the epoch on, in the setter that is there or in one that is added."""
    source = editor.source
    name = inner.path[0]
    paths = {carrier.path for carrier in carriers}
    if len(paths) > 1:
        return None
    path = next(iter(paths), ())
    certain = bool(carriers) and not inner.open and len(carriers) == len(inner.objects)
    param = "epoch"
    this = "self"
    if own is not None:
        taken = _epoch_parameter(own)
        if taken is None:
            return None
        this, param = taken
    lines = _forwarding(source.indent, f"{this}.{name}", path, inner, param, source.quote, certain)
    if own is not None:
        editor.append(own, *lines)
    else:
        if state.setter is not None:
            lines = [f"super().set_epoch({param})", *lines]
        _add_method(editor, inner.owner, lines, param)
    safe = Applicability.SAFE if certain else Applicability.UNSAFE
    return editor.fix(f"Pass the epoch on to `{this}.{name}`", safe)


def _epoch_parameter(setter: Function) -> tuple[str, str] | None:
    """What a ``set_epoch`` calls itself and the epoch, where it takes these two."""
    if setter.self_name is None or len(setter.params) < 2:
        return None
    if not setter.params[1].is_positional:
        return None
    return setter.self_name, setter.params[1].name


def _forwarding(
    indent: str,
    held: str,
    path: tuple[str, ...],
    inner: Inner,
    param: str,
    quote: str,
    certain: bool,
) -> list[str]:
    one = "sampler" if inner.many else held
    target = ".".join((one, *path))
    lines = [f"{target}.set_epoch({param})"]
    if not certain:
        lines = [f"if hasattr({target}, {quote}set_epoch{quote}):", indent + lines[0]]
    if inner.many:
        lines = [f"for sampler in {held}:", *(indent + line for line in lines)]
    return lines


def _add_method(editor: Editor, cls: Class, lines: list[str], param: str) -> None:
    """Write ``set_epoch`` below the constructor (or the class's last method)."""
    methods = cls.methods
    after = cls.method("__init__") or methods[-1]  # whoever iterates has one
    if after.define is None or after.end_row == after.row:
        raise EditError("a class on single lines is left to its author")
    annotated = any(p.annotation is not None for method in methods for p in method.params)
    signature = f"def set_epoch(self, {param}):"
    if annotated:
        signature = f"def set_epoch(self, {param}: int) -> None:"
    body = (editor.source.indent + line for line in lines)
    editor.insert_after(after.define, "", signature, *body)


# --------------------------------------------------------------------------- stored, never read


def _unread(model: Model, module: Module, state: EpochState) -> Suspect | None:
    setter = state.setter
    if setter is None or not setter.inert or state.reads(state.iteration):
        return None
    own = _own_setter(state.cls, setter.functions)
    if own is None and setter.functions and state.cls.method("__iter__") is None:
        return None  # what its base does is told there
    found = seedings(state.iteration)
    bases = [base for base, name in state.iteration.outside if name == "__iter__"]
    if bases and not all(_draws_from_kept(base, found) for base in bases):
        return None if own is None else _hides_base(model, module, state, own)
    if read_elsewhere(model, state, (state.iteration, state.construction)):
        return None
    attributes = ", ".join(f"`self.{name}`" for name in sorted(setter.stored)) or "nothing"
    start = name_of(module, own if own is not None else state.cls)
    stores = (
        f"`{state.cls.name}.set_epoch` only stores {attributes}"
        if own is not None
        else f"`{state.cls.name}` inherits `set_epoch`, which stores {attributes}"
    )
    if not setter.stored:
        stores = f"`{(own or setter.functions[0]).qualname}` keeps no epoch"
    other = _other_attribute(model, state)
    if other is not None and (own is not None or setter.functions):
        message = (
            f"{stores}, but `__iter__` reads `self.{other.name}`, which nothing changes: every "
            f"epoch repeats one order; store `self.{other.name}`"
        )
        fix = partial(_rename_store, own, setter.stored, other)
        return Suspect(module, start, message, fix=fix)
    if found and (bases or draws(state.iteration)):
        arguments = [argument for call in found if (argument := seed_argument(call)) is not None]
        if all(is_fixed(model, state, argument) for argument in arguments):
            spelled = unparse(arguments[0])
            why = tuple(Related(model.place(call.scope, call), "seeded here") for call in found)
            if any(EPOCH.is_mentioned(argument) for argument in arguments):
                message = (
                    f"{stores}, and the pass seeds its generator with `{spelled}`, which nothing "
                    f"changes: every epoch repeats one order; store the epoch there"
                )
                return Suspect(module, start, message, why=why)
            message = (
                f"{stores}, and the pass seeds its generator with `{spelled}` alone: every epoch "
                f"repeats one order; seed it with `{spelled} + self.epoch`"
            )
            why = tuple(Related(model.place(call.scope, call), "seeded here") for call in found)
            seed = partial(_seed_with_epoch, model, state, found)
            return Suspect(module, start, message, why=why, fix=seed)
        return None
    if own is None:
        return None
    if draws(state.iteration):
        if seedings(state.construction) and all(_draws_own(c) for c in draws(state.iteration)):
            message = (
                f"{stores}, which nothing reads: the order depends only on how often the "
                f"generator made in `__init__` has been drawn from, so resuming at a later epoch "
                f"replays the first one; seed it with the epoch in `__iter__`"
            )
            return Suspect(module, start, message)
        return None
    if state.reads(state.construction) and draws(state.construction):
        message = (
            f"{stores}, which only `__init__` reads: the order is made once and every epoch "
            f"repeats it; make it in `__iter__` (or again in `set_epoch`)"
        )
        why = tuple(
            Related(model.place(read.scope, read), "read here, before any `set_epoch`")
            for read in state.reads(state.construction)[:2]
        )
        return Suspect(module, start, message, why=why)
    return None


def _draws_from_kept(base: str, seeded: list[Call]) -> bool:
    """Whether a torch base draws its order from a ``self.generator``, which the class seeds."""
    draws_from = {
        name
        for entry in catalog.known_mro(base)
        for method, names in entry.reads
        if method == "__iter__"
        for name in names
    }
    return "generator" in draws_from and any(
        isinstance(call.func, Attr)
        and isinstance(call.func.value, Attr)
        and call.func.value.name == "generator"
        and self_class(call.func.value.value) is not None
        for call in seeded
    )


def _hides_base(model: Model, module: Module, state: EpochState, own: Function) -> Suspect | None:
    """A ``set_epoch`` that overrides torch's, whose ``__iter__`` reads another attribute."""
    if (DISTRIBUTED_SAMPLER, "__iter__") not in state.iteration.outside or "epoch" in state.stored:
        return None
    family = own_classes(model, state.cls)
    if any("epoch" in cls.bindings for cls in family) or any(
        isinstance(store.target, Attr)
        and (self_class(store.target.value) in family or self_class(store.target.value) is None)
        for store in model.project.stores_near("epoch", state.cls)
    ):
        return None
    taken = _epoch_parameter(own)
    if taken is None:
        return None
    _, param = taken
    message = (
        f"`{state.cls.name}.set_epoch` replaces the one of `DistributedSampler`, whose `__iter__` "
        f"shuffles by `self.epoch`, and never sets that: every epoch repeats one order; call "
        f"`super().set_epoch({param})`"
    )

    def fix(editor: Editor) -> Fix:
        editor.append(own, f"super().set_epoch({param})")
        return editor.fix("Set the base's epoch too", Applicability.SAFE)

    return Suspect(module, name_of(module, own), message, fix=fix)


def _draws_own(call: Call) -> bool:
    """Whether a draw uses a generator that the object holds."""
    generator = call.keyword("generator")
    if generator is not None:
        return isinstance(generator, Attr) and self_class(generator.value) is not None
    owner = call.func.value if isinstance(call.func, Attr) else None
    return isinstance(owner, Attr) and self_class(owner.value) is not None


def _other_attribute(model: Model, state: EpochState) -> Attr | None:
    """An epoch that the pass seeds with and that stays what ``__init__`` made it."""
    for call in seedings(state.iteration):
        argument = seed_argument(call)
        if argument is None:
            continue
        for node in origins(argument, state.iteration.functions):
            if (
                isinstance(node, Attr)
                and EPOCH.names(node)
                and node.name not in state.stored
                and self_class(node.value) is not None
                and _starts_constant(model, state, node.name)
            ):
                return node
    return None


def _starts_constant(model: Model, state: EpochState, name: str) -> bool:
    """Whether the attribute is set to a literal by the constructor and never again."""
    family = own_classes(model, state.cls)
    literal = any(
        binding.how == "assign" and isinstance(binding.value, Const)
        for cls in family
        for binding in cls.bindings.get(name, ())
    )
    for store in model.project.stores_near(name, state.cls):
        target = store.target
        assert isinstance(target, Attr)
        owner = self_class(target.value)
        if owner is None:
            if any(
                word in (last_name(target.value) or "").lower()
                for word in ("sampler", "dataset", "loader", "pipe")
            ):
                return False
        elif owner in family or state.cls in model.flow.mro(owner):
            scope: Scope = store.scope
            if not (
                isinstance(scope, Function)
                and scope.name == "__init__"
                and store.how == "assign"
                and isinstance(store.value, Const)
            ):
                return False
            literal = True
    return literal


def _rename_store(
    setter: Function | None, stored: frozenset[str], other: Attr, editor: Editor
) -> Fix | None:
    """Store the epoch in the attribute that the pass reads."""
    if setter is None:
        return None
    targets = [
        store.target
        for store in setter.stores
        if isinstance(store.target, Attr) and store.target.name in stored
    ]
    if len(targets) != 1:
        return None
    spelled = f"{text_of(editor.source, targets[0].value)}.{other.name}"
    editor.replace(targets[0], spelled)
    return editor.fix(f"Store the epoch in `{spelled}`", Applicability.SAFE)


def _seed_with_epoch(
    model: Model, state: EpochState, found: list[Call], editor: Editor
) -> Fix | None:
    """Add the epoch to the one seed of the pass."""
    setter = state.setter
    if len(found) != 1 or setter is None or len(setter.stored) != 1:
        return None
    argument = seed_argument(found[0])
    if isinstance(argument, Name) and [
        b.how for b in argument.scope.bindings.get(argument.id, [])
    ] != ["assign"]:
        return None
    if not isinstance(argument, (Attr, Name, Const)) or (
        isinstance(argument, Const) and not (isinstance(argument.value, int))
    ):
        return None
    attribute = next(iter(setter.stored))
    if setter.inherited is None and not _starts_constant_or_param(model, state, attribute):
        return None
    function = found[0].scope
    this = _self_name(function)
    if this is None:
        return None
    module = model.module_of(function)
    text = f"{text_of(module.source, argument)} + {this}.{attribute}"
    editor.at(module).replace(argument, text)
    return editor.fix(f"Seed with `{text}`", Applicability.SAFE)


def _starts_constant_or_param(model: Model, state: EpochState, name: str) -> bool:
    """Whether the attribute exists before the first ``set_epoch``."""
    return any(
        name in cls.bindings
        or any(
            isinstance(store.scope, Function) and store.scope.name == "__init__"
            for store in model.project.own_stores(name, cls)
        )
        for cls in own_classes(model, state.cls)
    )


def _self_name(scope: Scope | None) -> str | None:
    while scope is not None:
        if isinstance(scope, Function) and scope.self_name is not None:
            return scope.self_name
        scope = scope.outer
    return None


# --------------------------------------------------------------------------- missing


def _missing(model: Model, module: Module, state: EpochState) -> Suspect | None:
    if any("set_epoch" in cls.bindings for cls in own_classes(model, state.cls)):
        return None  # something else of that name
    read = _other_attribute(model, state)
    if read is None:
        return None
    if any(
        last_name(call.func) == "setattr"
        for cls in own_classes(model, state.cls)
        for scope in scopes_inside(cls)
        for call in scope.calls
    ):
        return None
    if any(derived.method("set_epoch") for derived in model.flow.subclasses(state.cls)):
        return None
    call = _asked(model, state.cls)
    name = read.name
    message = (
        f"`{state.cls.name}` seeds its order with `self.{name}`, which nothing ever changes, and "
        f"has no `set_epoch`: every epoch repeats one order; add "
        f"`set_epoch(epoch)` and call it in each epoch"
    )
    why = [Related(model.place(read.scope, read), "the epoch is read here")]
    if call is not None:
        why.append(Related(model.place(call.scope, call), "`set_epoch` is called here"))

    def fix(editor: Editor) -> Fix:
        _add_method(editor, state.cls, [f"self.{name} = epoch"], "epoch")
        safe = Applicability.SAFE if call is not None else Applicability.UNSAFE
        return editor.fix("Add `set_epoch`", safe)

    return Suspect(module, name_of(module, state.cls), message, why=tuple(why), fix=fix)
