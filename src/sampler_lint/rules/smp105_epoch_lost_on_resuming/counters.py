"""Counts of epochs that a run begins anew: a sampler's own, a loop's, a framework's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from sampler_lint.analysis.origins import Hop, ends, only
from sampler_lint.analysis.values import ExtObj, Obj, Value
from sampler_lint.domain.concepts import ITERATED, NAMESPACES, RANGES, RESTORES
from sampler_lint.domain.counters import Beginning, counted_from_zero
from sampler_lint.domain.epoch_state import reach, seed_argument, seed_parts, seedings_of
from sampler_lint.domain.epochs import EpochLoop, loops_over
from sampler_lint.domain.model import Model, own_scopes
from sampler_lint.domain.programs import is_test, outer_stores_beside
from sampler_lint.domain.resuming import restored_before
from sampler_lint.domain.shares import given_to_sharders
from sampler_lint.domain.turns import epoch_expression
from sampler_lint.edits.names import name_of
from sampler_lint.findings import Grade, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp105_epoch_lost_on_resuming.fixed import keep_in_state
from sampler_lint.syntax.navigation import (
    leaves,
    same,
    self_class,
    self_stores,
    statements,
    unparse,
    walk,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Bin,
    Call,
    Class,
    Const,
    Expr,
    For,
    Function,
    If,
    Loop,
    Name,
    Scope,
    Seq,
    last_name,
)


def left_out(model: Model) -> Iterator[Suspect]:
    """The classes that keep a state to resume from, without a number that their passes move on."""
    for module, cls in model.classes():
        gives, restores = (cls.method(name) for name in ("state_dict", "load_state_dict"))
        if gives is None or restores is None or cls.method("__iter__") is None or is_test(module):
            continue
        if gives.outer is not cls or _is_of_all(gives) or _is_of_all(restores):
            continue
        kept = _named(model, cls, "state_dict", "load_state_dict")
        for name, where in sorted(_moved(model, cls).items()):
            if name not in kept and not _is_set_outside(model, cls, name):
                yield Suspect(
                    module,
                    name_of(module, gives),
                    f"the state of `{cls.name}` leaves out `{name}`, which its passes count on",
                    effect="a resumed run goes on with the old number, and repeats an order",
                    advice=f"keep `{name}` in the state, and restore it",
                    why=(Related(model.place(where.scope, where), "each pass changes it here"),),
                    fix=partial(keep_in_state, gives, restores, name)
                    if restores.outer is cls
                    else None,
                )
                break


def never_saved(model: Model) -> Iterator[Suspect]:
    """What keeps its place in the data, in programs that restore the optimizer and not that."""
    told: set[Class] = set()
    for loader in model.loaders:
        held = [*model.samplers_of(loader), *model.passed_to(loader, "dataset")]
        for value in held if loader.site is not None else ():
            cls = value.cls if isinstance(value, Obj) else None
            if not isinstance(cls, Class) or cls in told or not _keeps_place(model, cls):
                continue
            if is_test(model.module_of(cls)):
                continue
            for found in loops_over(model, loader):
                restored = restored_before(model, found.loop)
                if restored is None or _is_restored(model, found.loop.scope, cls):
                    continue
                told.add(cls)
                yield Suspect(
                    model.module_of(restored.scope),
                    restored,
                    f"the optimizer is restored, and the place of `{cls.name}` in the data is not",
                    effect="a resumed run reads again what it has read, in the orders of a new run",
                    advice=f"save `{cls.name}.state_dict()` in the checkpoint, and load it again",
                    why=(Related(model.place_of(loader), "the loader is built here"),),
                    grade=Grade.LIKELY,
                )
                break


def _keeps_place(model: Model, cls: Class) -> bool:
    """Whether a class of the tree has a state for its passes, which only they move on."""
    methods = [model.flow.method(cls, name) for name in ("state_dict", "load_state_dict")]
    moved = _moved(model, cls) if all(isinstance(each, Function) for each in methods) else {}
    return any(name in _named(model, cls, "state_dict") for name in moved) and not isinstance(
        model.flow.method(cls, "set_epoch"), Function
    )


def _is_restored(model: Model, scope: Scope, cls: Class) -> bool:
    """Whether any of the program's files may restore an object of the class, or hand it on."""
    program = model.project.program_of(model.module_of(scope))
    for module in model.project.modules_in(program):
        for call in module.facts.all_calls:
            name = last_name(call.func)
            if name == "register_for_checkpointing":
                return True
            if not RESTORES.says(name) or not isinstance(call.func, Attr):
                continue
            values = model.flow.values(call.func.value)
            known = bool(values) and all(isinstance(each, (Obj, ExtObj)) for each in values)
            if any(isinstance(each, Obj) and each.cls is cls for each in values):
                return True
            if not known and ITERATED.names(call.func.value):
                return True
    return False


def _is_of_all(method: Function) -> bool:
    """Whether a method handles every attribute at once, or those of its base."""
    names = NAMESPACES.called | {"super", "setattr", "getattr"}
    return not names.isdisjoint(method.called) or any(
        read.name == "__dict__" for read in method.reads
    )


def _named(model: Model, cls: Class, *methods: str) -> set[str]:
    """The attributes that methods, or what they call of the object, read or set."""
    found = reach(model, cls, *methods)
    return {read.name for read in found.self_reads()} | {
        target.name for target, _ in self_stores(found.functions)
    }


def _moved(model: Model, cls: Class) -> dict[str, Attr]:
    """The attributes that a pass adds to, and whose number decides what it gives."""
    found = reach(model, cls, "__iter__", "__next__")
    if found.opaque:
        return {}
    added: dict[str, Attr] = {}
    for target, store in self_stores(found.functions):
        if store.how == "aug":
            added.setdefault(target.name, target)
    parts = (
        part
        for seed in filter(None, map(seed_argument, seedings_of(found)))
        for part in seed_parts(model, seed)
    )
    seeds = {part.name for part in parts if isinstance(part, Attr) and self_class(part.value)}
    return {name: where for name, where in added.items() if name in seeds}


def _is_set_outside(model: Model, cls: Class, name: str) -> bool:
    """Whether others, or a method that is no pass of its own, give the attribute its value."""
    passing = reach(model, cls, "__iter__", "__next__").functions
    others = (
        scope
        for scope in own_scopes(model, cls)
        if isinstance(scope, Function) and scope.name != "__init__" and scope not in passing
    )
    return any(outer_stores_beside(model, name, cls)) or any(
        target.name == name for target, _ in self_stores(others)
    )


# Numbers that begin at 0 in each run, beside a loop that may begin elsewhere.


def from_zero(model: Model, found: EpochLoop, call: Call) -> Beginning | None:
    """Where the number that a call gets begins at 0, wherever its loop begins."""
    given = next(iter(call.positional), None)
    if isinstance(given, Bin):
        return _turns_of(model, found, call, given)
    if not isinstance(given, (Name, Attr)) or skips_by(found, given):
        return None
    return _enumerated(model, found, given) or counted_from_zero(model, found.loop, given)


def skips_by(found: EpochLoop, number: Expr) -> bool:
    """Whether turns of an epoch loop are left by a number before they train."""
    loop = found.loop
    begun = (found.inner.stmt, *(call.stmt for call in found.calls))
    trains = max((stmt.order for stmt in begun if stmt and loop.encloses(stmt)), default=None)
    return any(
        isinstance(stmt, If)
        and (trains is None or stmt.order < trains)
        and any(same(node, number) for node in walk(stmt.test))
        and any(map(leaves, stmt.body))
        for stmt in statements(loop.body)
    )


def _turns_of(model: Model, found: EpochLoop, call: Call, given: Bin) -> Beginning | None:
    """``epoch - start`` in a loop over ``range(start, …)``: the number of the turn."""
    loop, epoch = found.loop, epoch_expression(found.loop)
    if not isinstance(loop, For) or call.scope is not loop.scope or epoch is None:
        return None
    counts = _counts_in(model, loop.iter)
    if len(counts) != 1 or given.op != "Sub" or (start := _start_of(model, counts[0])) is None:
        return None
    is_turn = same(given.left, epoch) and same(given.right, start)
    return Beginning(loop.scope, start) if is_turn else None


def _enumerated(model: Model, found: EpochLoop, given: Expr) -> Beginning | None:
    """The ``i`` of ``for i, epoch in enumerate(range(start, …))``: the number of the turn."""
    loop = found.loop
    target = loop.target if isinstance(loop, For) else None
    if not isinstance(loop, For) or not isinstance(target, Seq) or len(target.items) != 2:
        return None
    source, (number, epoch) = loop.iter, target.items
    if (
        not isinstance(source, Call)
        or last_name(source.func) != "enumerate"
        or len(source.args) != 1
    ):
        return None
    counts = _counts_in(model, source)
    begins = len(source.args) == len(counts) == 1 and _start_of(model, counts[0]) is not None
    is_it = begins and same(given, number) and not skips_by(found, epoch)
    is_set = is_it and isinstance(given, Name) and len(given.scope.bindings.get(given.id, ())) > 1
    return Beginning(loop.scope, loop) if is_it and not is_set else None


def _counts_in(model: Model, source: Expr) -> list[Call]:
    """The ``range(…)`` that is gone through, perhaps inside a progress bar or kept in a name."""
    return [
        node
        for part in walk(source)
        for node in (only(model.flow, part, Hop.ASSIGNED) if isinstance(part, Name) else part,)
        if isinstance(node, Call) and RANGES.is_call(node)
    ]


def _start_of(model: Model, count: Call) -> Expr | None:
    """Where a ``range`` begins, if that is not the same in each run."""
    if len(count.positional) < 2 or any(arg.stars for arg in count.args):
        return None
    start = count.positional[0]
    is_fixed = all(isinstance(end, Const) for end in ends(model.flow, start, Hop.ASSIGNED))
    return None if is_fixed else start


# Epochs that give way to Accelerate's own count of passes, which begins at 0 in each run.


def overwritten(model: Model, begins_elsewhere: Callable[[Loop], bool]) -> Iterator[Suspect]:
    """What sets the epoch of a sampler whose loader Accelerate has wrapped, in loops that go on."""
    told: set[Call] = set()
    by_scope: dict[Scope, list[Call]] = {}
    for call in model.epoch_setters:
        by_scope.setdefault(call.scope, []).append(call)
    for module in model.modules if model.epoch_setters else ():
        if is_test(module) or "accelerate" not in model.frameworks(module):
            continue
        for wraps, _, loader in given_to_sharders(model, module, "accelerate"):
            parts = [*model.samplers_of(loader), *model.passed_to(loader, "dataset")]
            for loop in filter(begins_elsewhere, _loops_over(wraps)):
                hits = [
                    call
                    for call in by_scope.get(loop.scope, ())
                    if call.stmt and loop.encloses(call.stmt)
                ]
                if any(_is_of_loader(model, call) for call in hits):
                    continue
                for call in hits:
                    if call not in told and _is_of(model, call, parts):
                        told.add(call)
                        yield _suspect(model, call, wraps, loop)


def _suspect(model: Model, call: Call, wraps: Call, loop: Loop) -> Suspect:
    return Suspect(
        model.module_of(call.scope),
        call,
        f"`{unparse(call.func)}` is overruled: Accelerate sets the epoch by its own count",
        effect="the count begins at 0 in each run, so a resumed run repeats the first epochs",
        advice="call `set_epoch` of the loader that `prepare` returned",
        why=(
            Related(model.place(wraps.scope, wraps), "the loader is wrapped here"),
            Related(model.place(loop.scope, loop), "the loop goes on here"),
        ),
    )


def _loops_over(wraps: Call) -> Iterator[Loop]:
    """The loops of the same function that make passes over one of the loaders it gets back."""
    targets = wraps.stmt.targets if isinstance(wraps.stmt, Assign) else []
    names = {node.id for each in targets for node in walk(each) if isinstance(node, Name)}
    for inner in wraps.scope.loops:
        if isinstance(inner, For) and any(
            isinstance(node, Name) and node.id in names for node in walk(inner.iter)
        ):
            yield from (each for each in inner.ancestors() if isinstance(each, For))


def _receivers(model: Model, call: Call) -> frozenset[Value]:
    owner = call.func.value if isinstance(call.func, Attr) else None
    return model.flow.values(owner) if owner is not None else frozenset()


def _is_of_loader(model: Model, call: Call) -> bool:
    """Whether a loader itself is told the epoch, or something that is not known."""
    values = _receivers(model, call)
    return not values or any(
        not isinstance(value, Obj) or model.role(value) == "loader" for value in values
    )


def _is_of(model: Model, call: Call, parts: list[Value]) -> bool:
    """Whether one of the parts of a loader is told the epoch."""
    return any(
        isinstance(value, Obj) and isinstance(part, Obj) and value.may_be(part)
        for value in _receivers(model, call)
        for part in parts
    )
