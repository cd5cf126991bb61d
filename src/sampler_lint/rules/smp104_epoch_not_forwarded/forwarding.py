"""A wrapper that keeps the epoch from what it wraps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from sampler_lint.analysis.values import Obj, Pack, Value
from sampler_lint.domain.concepts import ASKS_KIND, EPOCH, SAMPLER, SEEDS_ALL, SETS_EPOCH
from sampler_lint.domain.epoch_state import (
    EpochState,
    advances_itself,
    epoch_state,
    is_map_dataset,
    iterates,
    lookup,
    reach,
    seedings_of,
    uses_epoch,
)
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.samplers import epoch_path
from sampler_lint.domain.workers import held
from sampler_lint.domain.wrapping import Inner, flat, inners, says_sampler
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import name_of
from sampler_lint.findings import Applicability, Fix, Place, Related
from sampler_lint.remembered import remembered
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp104_epoch_not_forwarded.setter import (
    Carrier,
    Part,
    forward,
    own_setter,
)
from sampler_lint.syntax.navigation import holds, on_super, self_class, self_stores, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Choice,
    Class,
    Compare,
    Const,
    Expr,
    Function,
    If,
    Name,
    Return,
    Simple,
    Stmt,
    Store,
)
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.epochs import EpochTrial


def not_forwarded(model: Model, state: EpochState) -> Iterator[Suspect]:
    """A wrapper whose ``set_epoch`` stops at itself."""
    found = list(_each_untold(model, state))
    left = any(part is None for _, part in found)
    for suspect, part in found:
        if part is not None:
            group = [
                each
                for _, each in found
                if each is not None
                and each.own is part.own
                and (part.own is not None or each.inner.owner is part.inner.owner)
            ]
            together = tuple(
                each
                for each in group
                if not any(_is_among(each.inner, other.inner) for other in group)
            )
            suspect.fix = partial(forward, state, together, left=left)
        yield suspect


def _is_among(one: Inner, other: Inner) -> bool:
    """Whether all that is held there is also held in a list, by which it is told."""
    return other.many and not one.many and one.values <= other.values


def _each_untold(model: Model, state: EpochState) -> Iterator[tuple[Suspect, Part | None]]:
    """What each thing that a wrapper holds is reported with, and what a fix has to know of it."""
    setter = state.setter
    if _seeds_process(model, state):
        return
    mentioned, elsewhere = _handed_on(model, state)
    for inner in inners(model, state):
        if inner.path[0] in elsewhere:
            continue
        replaced = _replaced_in_pass(state, inner)
        owner = inner.owner
        module = model.module_of(owner)
        carriers = list(_carriers(model, inner, state.cls))
        left = None if replaced else _left_early(model, state, inner, carriers)
        own = setter.functions if setter is not None and left is not None else ()
        carriers = [c for c in carriers if not _set_directly(model, state, inner, c, own)]
        passed_on = inner.path[0] in mentioned
        if left is not None and carriers:
            yield _first_alone(model, state, inner, carriers, left), None
            continue
        if passed_on or replaced:
            carriers = [c for c in carriers if _stays_as_it_was(model, state, inner, c)]
        if setter is None:
            called = carriers and len(inner.path) == 1 and not passed_on and not replaced
            call = asked(model, state.cls) if called else None
            if call is None:
                continue
            yield unforwarded(model, module, state, inner, carriers, call)
        elif carriers:
            suspect, part = unforwarded(model, module, state, inner, carriers, None)
            yield suspect, None if replaced else part  # there may be none of it yet
        elif (
            not replaced
            and (_stays_around_shard(model, state, inner) if passed_on else setter.inert)
            and inner.open
            and all(_is_of_test(model, obj) for obj in inner.objects)
            and inner.param is not None
            and says_sampler(inner.param)
            and module.is_library(owner)
            and not owner.name.startswith("_")
            and model.is_sampler_class(state.cls)
            and not _reached_by_name(model, inner)
        ):
            yield unforwarded(model, module, state, inner, [], None)


def _left_early(
    model: Model, state: EpochState, inner: Inner, carriers: list[Carrier]
) -> Stmt | None:
    """What leaves the loop of ``set_epoch`` over several carriers after the first that it tells."""
    objects = {carrier.obj for carrier in carriers}
    packs = (held for held in model.flow.ask_field(Obj(state.cls), inner.path[0]))
    if not any(
        isinstance(pack, Pack)
        and sum(not objects.isdisjoint(model.flow.values(item)) for item in pack.items) > 1
        for pack in packs
    ):
        return None
    found: list[Stmt | None] = []
    for function in state.setter.functions if state.setter is not None else ():
        named = [read for read in function.reads if read.name == inner.path[0]]
        loops = [stmt for source, stmt in function.iterated if source in named]
        tells = [c for c in function.calls if EPOCH.names(c.func) and not on_super(c.func)]
        found += [_leaves_after(call.stmt, loops) for call in tells]
        if len(loops) != len(named):
            return None  # it is gone through in another way, too
    return found[0] if len(found) == 1 else None


def _leaves_after(told: Stmt | None, loops: list[Stmt]) -> Stmt | None:
    """What leaves a loop in the turn in which something can be told."""
    if told is None:
        return None
    last, around = told.block[-1], told.parent
    while isinstance(around, If) and _asks_kind(around.test):
        around = around.parent
    is_exit = isinstance(last, Return) or (isinstance(last, Simple) and last.kind == "break")
    return last if is_exit and around in loops else None


def _asks_kind(test: Expr) -> bool:
    """Whether a test only asks what something is, and not which."""
    if isinstance(test, Compare):
        return all(isinstance(each, Const) and each.value is None for each in test.rights)
    if isinstance(test, Choice):
        return all(map(_asks_kind, test.options))
    return isinstance(test, Name) or (isinstance(test, Call) and ASKS_KIND.is_call(test))


def _first_alone(
    model: Model, state: EpochState, inner: Inner, carriers: list[Carrier], left: Stmt
) -> Suspect:
    module = model.module_of(inner.owner)
    suspect, _ = unforwarded(model, module, state, inner, carriers, None)
    held = ".".join(inner.path)
    suspect.message = (
        f"`{state.cls.name}.set_epoch` stops at the first of `self.{held}` that it tells"
    )
    suspect.why = (Related(model.place(left.scope, left), "it stops here"), *suspect.why)
    suspect.effect = "the epoch of the others never changes, so every epoch repeats their order"
    suspect.advice = "tell them all"
    suspect.fix = partial(_go_on, left)
    return suspect


def _go_on(left: Stmt, editor: Editor) -> Fix | None:
    if isinstance(left, Return) and left.value is not None:
        return None
    editor.delete(left)
    return editor.fix("Tell the others, too", Applicability.UNSAFE, "the first may be meant")


def _stays_as_it_was(model: Model, state: EpochState, inner: Inner, carrier: Carrier) -> bool:
    """Whether a run shows that setting the wrapper's epoch leaves that of what it iterates."""
    return _is_kept_from(_trial(model, state, inner, carrier), (*inner.path, *carrier.path))


def _keeps_first(model: Model, state: EpochState, inner: Inner, carrier: Carrier) -> bool:
    """Whether a run shows that the wrapper draws an order from it once, and keeps that."""
    trial = _trial(model, state, inner, carrier)
    return trial is not None and trial.keeps_first


def _trial(model: Model, state: EpochState, inner: Inner, carrier: Carrier) -> EpochTrial | None:
    """What setting the wrapper's epoch does around such a thing."""
    cls = carrier.obj.cls
    name = inner.path[0] if inner.param is None else inner.param.name
    if name not in (model.flow.params(state.cls) or ()):
        return model.epoch_trial(state.cls)
    if isinstance(cls, Class):
        return model.epoch_trial(state.cls, around=(name, cls))
    return model.epoch_trial(state.cls, around_shard=True)


def _stays_around_shard(
    model: Model, state: EpochState, inner: Inner, path: tuple[str, ...] = ()
) -> bool:
    """The same of a DistributedSampler that it is given."""
    trial = model.epoch_trial(state.cls, around_shard=True)
    return _is_kept_from(trial, (*inner.path, *path))


def _is_kept_from(trial: EpochTrial | None, path: tuple[str, ...]) -> bool:
    return trial is not None and any(path in (held.path, *held.others) for held in trial.kept_from)


def _is_of_test(model: Model, obj: Obj) -> bool:
    return obj.site is not None and is_test(model.module_of(obj.site.scope))


def _carriers(model: Model, inner: Inner, wrapper: Class) -> Iterator[Carrier]:
    for obj in _objects(model, inner):
        if _never_shuffles(model, obj):
            continue
        if isinstance(obj.cls, Class):
            if obj.cls is not wrapper and (
                _carries(model, obj, wrapper) or _tells_shard(model, obj)
            ):
                yield Carrier(obj, (), obj in inner.objects)
        elif (carrier := _to_shard(model, obj)) is not None:
            yield carrier


def _objects(model: Model, inner: Inner) -> Iterator[Obj]:
    """What is held; a ``self`` that a method hands over may be of any class below."""
    for obj in inner.objects:
        yield obj
        if obj.site is None and isinstance(obj.cls, Class):
            yield from map(Obj, model.flow.subclasses(obj.cls))


def _to_shard(model: Model, obj: Obj) -> Carrier | None:
    """How a sampler of torch that shuffles by its epoch may be reached from an object of torch."""
    path = _path_of_loader(model, obj) or epoch_path(model, obj)
    if not isinstance(path, tuple):
        return None
    targets: list[Value] = [obj]
    for name in path:
        held = [one for one in targets if isinstance(one, Obj)]
        targets = [value for one in held for value in model.flow.ask_field(one, name)]
    hear = [one for one in targets if isinstance(one, Obj) and epoch_path(model, one) == ()]
    shards = [one for one in hear if not isinstance(one.cls, Class)]
    if any(not _never_shuffles(model, one) for one in shards):
        return Carrier(obj, path, len(hear) == len(targets))
    return None


def _path_of_loader(model: Model, obj: Obj) -> tuple[str, ...] | None:
    """How the epoch of what a loader is given is reached from the loader; None for no loader."""
    if model.role(obj) != "loader":
        return None
    given = {
        (name, *path)
        for name in ("sampler", "batch_sampler")
        for value in model.passed_to(obj, name)
        if isinstance(path := epoch_path(model, value), tuple)
    }
    return given.pop() if len(given) == 1 else None


def _tells_shard(model: Model, obj: Obj) -> bool:
    """Whether it is a loader whose ``set_epoch`` may tell the sampler that torch keeps in it."""
    path = _path_of_loader(model, obj)
    if path is None or not isinstance(obj.cls, Class):
        return False
    state = epoch_state(model, obj.cls)
    tells = state.setter is not None and path[0] in _handed_on(model, state)[0]
    return tells and _to_shard(model, obj) is not None


def _carries(model: Model, carrier: Obj, wrapper: Class) -> bool:
    """Whether an object shuffles by the epoch that its ``set_epoch`` is given (or holds one)."""
    seen, todo = {wrapper}, [carrier]
    for current in todo:
        cls = current.cls
        if not isinstance(cls, Class):
            if not _never_shuffles(model, current) and _to_shard(model, current) is not None:
                return True
            continue
        if cls in seen or (current is not carrier and _never_shuffles(model, current)):
            continue
        seen.add(cls)
        state = epoch_state(model, cls)
        if uses_epoch(model, cls):
            if not advances_itself(state):
                return True
        elif state.setter is not None:
            todo += (
                obj for inner in inners(model, state) for obj in _held_by(model, current, inner)
            )
    return False


def _held_by(model: Model, owner: Obj, inner: Inner) -> list[Obj]:
    """What an object has there, and not others of its class."""
    if owner.site is None or len(inner.path) > 1 or not isinstance(owner.cls, Class):
        return inner.objects
    values = flat(model, held(model, owner, owner.cls, inner.path[0]), dicts=True)
    found = [value for value in values if isinstance(value, Obj)]
    return found if len(found) == len(values) > 0 else inner.objects


def _never_shuffles(model: Model, obj: Obj) -> bool:
    given = model.argument(obj, "shuffle")
    if given is None:
        return False
    constants = model.flow.constants(given, obj.through)
    return constants is not None and not any(constants)


def _handed_on(model: Model, state: EpochState) -> tuple[set[str], set[str]]:
    """The attributes that ``set_epoch`` or a pass may pass the epoch to, and those others may."""
    ran = state.iteration.functions | reach(model, state.cls, "set_epoch", "__init__").functions
    names: set[str] = set()
    others: set[str] = set()
    for cls in model.flow.own_mro(state.cls):
        for scope in scopes_inside(cls):
            if not isinstance(scope, Function):
                continue
            if (
                scope.outer is cls
                and scope not in ran
                and lookup(model, state.cls, scope.name, None) in ran
            ):
                continue  # another one runs in its place
            is_setter = SETS_EPOCH.says(scope.name)
            sets = [c for c in scope.calls if EPOCH.names(c.func)]
            sets = [c for c in sets if not on_super(c.func)]
            stores = [s for s in scope.stores if _stores_epoch(s)]
            tells = [c for c in scope.calls if any(_reads_stored(state, a.value) for a in c.args)]
            if is_setter or sets or stores or tells:
                asks = [call for call in scope.calls if ASKS_KIND.is_call(call)]
                (names if scope in ran else others).update(
                    read.name
                    for read in scope.reads
                    if self_class(read.value) is not None
                    and (is_setter or sets or stores or _within(read, tells))
                    and not any(holds(call, read) for call in asks)
                )
    return names, others


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
        SEEDS_ALL.is_made(call, model.flow.values) for call in seedings_of(state.iteration)
    )


def _replaced_in_pass(state: EpochState, inner: Inner) -> bool:
    return any((target.name,) == inner.path for target, _ in self_stores(state.iteration.functions))


def _set_directly(
    model: Model,
    state: EpochState,
    inner: Inner,
    carrier: Carrier,
    apart_from: tuple[Function, ...],
) -> bool:
    """Whether ``set_epoch`` is called on what carries the epoch, past the wrapper's way to it.

    Outside, or by the wrapper itself, which may keep the sampler beside the loader that has it.
    """
    targets = {(carrier.obj.cls, carrier.obj.site)}
    if carrier.path:
        targets = {
            (value.cls, value.site)
            for value in model.flow.ask_field(carrier.obj, carrier.path[0])
            if isinstance(value, Obj)
        }
    own = set(model.flow.own_mro(state.cls))
    for call in model.epoch_setters:
        assert isinstance(call.func, Attr)
        receiver = call.func.value
        if call.scope in apart_from:
            continue
        if not own.isdisjoint(call.scope.outward()) and any(
            isinstance(node, Attr) and node.name == inner.path[0] for node in walk(receiver)
        ):
            continue
        reached = [value for value in model.flow.values(receiver) if isinstance(value, Obj)]
        if any(value.cls is state.cls for value in reached) and not _is_any_of(receiver):
            continue  # the wrapper where there is one, and what it would wrap where there is none
        if any((value.cls, value.site) in targets for value in reached):
            return True
    return False


def _is_any_of(receiver: Expr) -> bool:
    """Whether a name stands for one thing after another."""
    found = receiver.scope.bindings.get(receiver.id, ()) if isinstance(receiver, Name) else ()
    return any(binding.how == "element" for binding in found)


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


def asked(model: Model, cls: Class) -> Place | None:
    """Where ``set_epoch`` is called, or got by name, of what may be an instance of the class."""
    return _all_asked(model).get(cls)


@remembered
def _all_asked(model: Model) -> dict[Class, Place]:
    known: dict[Class, Place] = {}
    sets = [
        (call.scope, call, call.func.value)
        for call in model.epoch_setters
        if isinstance(call.func, Attr) and call.func.name == "set_epoch"
    ]
    for scope, node, receiver in (*sets, *model.epoch_setters_kept):
        for value in model.flow.values(receiver):
            if isinstance(value, Obj) and isinstance(value.cls, Class) and value.site is not None:
                known.setdefault(value.cls, model.place(scope, node))
    return known


def _of_samplers(model: Model, carriers: list[Carrier]) -> bool:
    """Whether nothing but samplers is wrapped."""
    return not any(
        model.role(carrier.obj) == "loader"
        or (isinstance(carrier.obj.cls, Class) and not iterates(model, carrier.obj.cls))
        for carrier in carriers
    )


def unforwarded(
    model: Model,
    module: Module,
    state: EpochState,
    inner: Inner,
    carriers: list[Carrier],
    call: Place | None,
) -> tuple[Suspect, Part | None]:
    """The report of an epoch that does not reach what is wrapped, and what would be told."""
    owner, setter = inner.owner, state.setter
    functions = setter.functions if setter is not None else ()
    own = own_setter(owner, functions) or next(
        # A class derived from the one that holds it sets the epoch.
        (one for one in functions if one.cls is not None and owner in model.flow.mro(one.cls)),
        None,
    )
    if own is not None and own.cls is not None:
        owner, module = own.cls, model.module_of(own.cls)
    held = "self." + ".".join(inner.path)
    what = " or ".join(sorted({f"`{c.obj.name}`" for c in carriers})[:2])
    if carriers:
        parts = "the samplers in" if _of_samplers(model, carriers) else "what is in"
        who = f"{parts} `{held}` ({what})" if inner.many else f"`{held}` ({what})"
        effect = "its epoch never changes, so every epoch repeats one order"
        if any(isinstance(c.obj.cls, Class) and is_map_dataset(model, c.obj.cls) for c in carriers):
            effect = "its epoch never changes, so every epoch draws the same random numbers"
    else:
        assert inner.param is not None
        who = f"the `{inner.param.name}` it wraps"
        effect = "a wrapped sampler that shuffles by its epoch repeats one order in every epoch"
    if setter is None:
        message = f"`{owner.name}` has no `set_epoch` that passes the epoch on to {who}"
    elif own is not None:
        message = f"`{owner.name}.set_epoch` does not pass the epoch on to {who}"
    else:
        source = setter.functions[0].cls if setter.functions else None
        base = source.name if source is not None else (setter.inherited or "").rpartition(".")[2]
        message = f"`{owner.name}` inherits `set_epoch` from `{base}`, which does not reach {who}"
    built = {  # a row is named once, however many are built in it
        (str(place := model.place_of(c.obj)), c.obj.name): place for c in carriers
    }
    why = [Related(built[key], f"`{key[1]}` built here") for key in sorted(built)[:2]]
    if call is not None:
        why.append(Related(call, "`set_epoch` is called here"))
    start = name_of(module, own if own is not None else owner)
    each = "sampler" if _of_samplers(model, carriers) else "each"
    kept = any(_keeps_first(model, state, inner, carrier) for carrier in carriers)
    advice = "pass the epoch on" if setter is not None else "add a `set_epoch` that does"
    advice += ", and draw from it again in each epoch" if kept else ""
    suspect = Suspect(module, start, message, why=tuple(why), effect=effect, advice=advice)
    return suspect, None if len(inner.path) > 1 or kept else Part(inner, carriers, own, each)
