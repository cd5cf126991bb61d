"""SMP103: calls that come too late for the pass, reach a copy, or are no calls."""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import partial

from sampler_lint import catalog
from sampler_lint.analysis.origins import part_of
from sampler_lint.analysis.values import Lit, Obj, Unknown
from sampler_lint.domain.concepts import GIVES_STATE, RESTORES, SAMPLER_ARGUMENTS
from sampler_lint.domain.copies import persists
from sampler_lint.domain.epoch_calls import carriers
from sampler_lint.domain.epoch_state import EpochState, advances_itself, epoch_state, reach
from sampler_lint.domain.evaluated import evaluated_in_sight
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import outer_stores_beside
from sampler_lint.domain.stale import (
    has_workers,
    iterators_before,
    kept_iterator,
    made_ahead,
    stores_on,
)
from sampler_lint.edits.editor import Editor, Fixer, replacing
from sampler_lint.edits.loader_fixes import start_workers_anew
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp103_set_epoch_misplaced.moment import binds_between
from sampler_lint.rules.smp103_set_epoch_misplaced.same_value import counter_around
from sampler_lint.syntax.navigation import makes_iterator, same, self_class, unparse
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Expr,
    ExprStmt,
    For,
    Function,
    Node,
    Scope,
    Stmt,
    Store,
    Try,
    last_name,
)


def late(model: Model) -> Iterator[Suspect]:
    """Every call (or assignment) that reaches a sampler too late or not at all."""
    yield from _kept_iterators(model)
    yield from _made_ahead(model)
    yield from _persistent_workers(model)
    yield from _after_iterator(model)
    yield from _never_called(model)


def _kept_iterators(model: Model) -> Iterator[Suspect]:
    kept: dict[Class, Store] = {}
    for _, cls in model.classes():
        store = kept_iterator(model, cls)
        if store is not None:
            kept[cls] = store
    if not kept:
        return
    for call in model.epoch_setters:
        for loader in _loaders_told(model, call, kept):
            store = kept.get(loader.cls) if isinstance(loader.cls, Class) else None
            if store is None or not has_workers(model, loader) or _is_reset(model, call, loader):
                continue
            if evaluated_in_sight(model, loader):
                continue  # in which order that goes over the samples changes nothing
            if next(carriers(model, loader), None) is None:
                continue
            why = (Related(model.place(store.scope, store.stmt), "the iterator is created here"),)
            yield Suspect(
                model.module_of(call.scope),
                call,
                f"`{unparse(call.func)}` takes effect one epoch late: `{loader.name}` keeps one "
                f"iterator, whose workers fetch ahead",
                why=why,
                effect="the first two epochs share one order, and later ones lag behind",
                advice="create the iterator again after the call, or advance the epoch in the "
                "repeating sampler",
            )
            break


def _loaders_told(model: Model, call: Call, kept: Container[object]) -> list[Obj]:
    """The loaders of some classes that a call tells the epoch, by themselves or by a sampler."""
    target = _loader_of(call)
    if target is not None:
        return [value for value in model.flow.values(target) if isinstance(value, Obj)]
    told = model.flow.values(call.func.value) if isinstance(call.func, Attr) else frozenset()
    return [
        loader
        for loader in model.loaders
        if loader.cls in kept and any(each.is_one_of(told) for each in carriers(model, loader))
    ]


def _loader_of(call: Call) -> Expr | None:
    """``L`` in ``L.sampler.set_epoch``, ``L.batch_sampler.set_epoch``, …"""
    func = call.func
    if not isinstance(func, Attr) or func.name != "set_epoch":
        return None
    target = func.value
    if not isinstance(target, Attr):
        return None
    while isinstance(target, Attr) and target.name in SAMPLER_ARGUMENTS:
        target = target.value
    return target if target is not func.value else None


def _is_reset(model: Model, call: Call, loader: Obj) -> bool:
    """Whether the loader is told to start over in the same block, right after the call."""
    if call.stmt is None:
        return False
    return any(
        isinstance(other.func, Attr)
        and other.func.name != "set_epoch"
        and other.stmt is not None
        and other.stmt.block is call.stmt.block
        and any(map(loader.may_be, model.flow.values(other.func.value)))
        for other in call.scope.calls
    )


def _made_ahead(model: Model) -> Iterator[Suspect]:
    for _, cls in model.classes():
        state = made_ahead(model, cls)
        if state is None:
            continue
        read = state.reads(state.iteration)[0]
        why = (Related(model.place(read.scope, read), "the order for the next pass is made here"),)
        for call in model.epoch_setters:
            assert isinstance(call.func, Attr)
            receiver = call.func.value
            if call.func.name != "set_epoch" or self_class(receiver) is not None:
                continue
            if _is_instance(model, receiver, state) or _is_by_use(model, receiver, call, state):
                yield _too_late(model, cls, call.scope, call, unparse(call), why)
        seen = list(stores_on(model, cls, state.stored))
        seen += [s for s in _by_use(model, state) if s not in seen]
        for store in seen:
            code = f"{unparse(store.target)} = …"
            yield _too_late(model, cls, store.scope, store.target, code, why)


def _too_late(
    model: Model, cls: Class, scope: Scope, node: Node, code: str, why: tuple[Related, ...]
) -> Suspect:
    return Suspect(
        model.module_of(scope),
        node,
        f"`{code}` takes effect one epoch late: `{cls.name}` draws its order at the end of the "
        f"previous pass",
        why=why,
        effect="the first two epochs share one order, and later ones lag behind",
        advice="draw the order in `__iter__`",
    )


def _is_instance(model: Model, receiver: Expr, state: EpochState) -> bool:
    return any(isinstance(v, Obj) and v.cls is state.cls for v in model.flow.values(receiver))


def _is_common(name: str) -> bool:
    """Whether any sampler may have it, so that reading it says nothing about which one it is."""
    own = (known.attributes | known.methods for known in catalog.framework("torch").classes)
    kept = GIVES_STATE.says(name) or RESTORES.says(name)
    return kept or name.startswith("_") or any(name in names for names in own)


def _is_by_use(model: Model, receiver: Expr, at: Call | Store, state: EpochState) -> bool:
    """Whether an unresolved receiver is used as only this class (and its bases) can be."""
    if not any(isinstance(v, Unknown) for v in model.flow.values(receiver)):
        return False
    family = model.flow.own_mro(state.cls)
    for read in at.scope.reads:
        if _is_common(read.name) or not same(read.value, receiver):
            continue
        owners = [
            cls
            for module in model.project.modules_near(at.scope)
            for cls in module.facts.classes
            if cls.method(read.name) is not None
        ]
        if owners and all(owner in family for owner in owners):
            return True
    return False


def _by_use(model: Model, state: EpochState) -> Iterator[Store]:
    for name in sorted(state.stored):
        for store in outer_stores_beside(model, name, state.cls):
            target = store.target
            if (
                isinstance(target, Attr)
                and isinstance(target.value, Attr)
                and _is_by_use(model, target.value, store, state)
            ):
                yield store


# --------------------------------------------------------------------------- worker processes


_BY_SETTING = "workers that a setting keeps"


def _persistent_workers(model: Model) -> Iterator[Suspect]:
    """``dataset.set_epoch`` in the main process, while the workers keep their own copies."""
    keeping: dict[tuple[Class, Call | None], tuple[Obj, Grade]] = {}
    for loader in model.loaders:
        grade = persists(model, loader)
        for dataset in model.passed_to(loader, "dataset") if grade is not None else ():
            if isinstance(dataset, Obj) and isinstance(dataset.cls, Class) and grade is not None:
                keeping[dataset.cls, dataset.site] = loader, grade
    for call in model.epoch_setters if keeping else ():
        func = call.func
        if not isinstance(func, Attr) or func.name != "set_epoch":
            continue
        for dataset in model.flow.values(func.value):
            if not isinstance(dataset, Obj) or not isinstance(dataset.cls, Class):
                continue
            kept, grade = keeping.get((dataset.cls, dataset.site)) or (None, None)
            if kept is None or grade is None or not _read_by_workers(model, dataset.cls):
                continue
            whose = "persistent workers" if grade is Grade.CERTAIN else _BY_SETTING
            why = (Related(model.place_of(kept), "loader built here"),)
            yield Suspect(
                model.module_of(call.scope),
                call,
                f"`{unparse(func)}` does not reach the copies of `{dataset.name}` in {whose}",
                why=why,
                fix=partial(start_workers_anew, model, kept),
                grade=grade,
                effect="workers kept by `persistent_workers=True` repeat one order in every epoch",
                advice="share the epoch (`multiprocessing.Value`) or drop `persistent_workers`",
            )
            break


def _read_by_workers(model: Model, cls: Class) -> bool:
    """Whether samples depend on a plain attribute that ``set_epoch`` alone stores."""
    state = epoch_state(model, cls)
    if state.setter is None or not state.setter.inert or not state.setter.functions:
        return False
    found = reach(model, cls, "__iter__", "__getitem__", "__getitems__")
    if not state.reads(found) or advances_itself(state):
        return False
    # A value in shared memory is filled in place, never replaced.
    return all(
        isinstance(part_of(store.value, store.path), Const)
        for store in (s for name in state.stored for s in model.project.stores_near(name, cls))
        if isinstance(store.target, Attr)
        and self_class(store.target.value) in model.flow.mro(cls)
        and isinstance(store.scope, Function)
        and store.scope.name == "__init__"
    )


def _after_iterator(model: Model) -> Iterator[Suspect]:
    """``it = iter(loader)``, and then ``set_epoch`` for the same pass."""
    for call in model.epoch_setters:
        stmt = call.stmt
        if stmt is None or last_name(call.func) != "set_epoch" or not isinstance(stmt, ExprStmt):
            continue
        if any(isinstance(loop, For) for loop in stmt.ancestors()) and not any(
            isinstance(parent, Try) for parent in stmt.ancestors()
        ):
            continue  # epoch loops are looked at as a whole
        made = _iterator_before(model, call)
        if made is None:
            continue
        loader, place = made
        message = f"`{unparse(call)}` is called after `{unparse(place.value)}` created the iterator"
        why = (
            Related(model.place(place.scope, place), "the iterator is created here"),
            Related(model.place_of(loader), "loader built here"),
        )
        yield Suspect(
            model.module_of(call.scope),
            call,
            message,
            why=why,
            fix=partial(_before, place, stmt, call),
            effect="its workers already fetch in the previous epoch's order: the call is in time "
            "for the next pass only",
            advice="call it before the iterator is made",
        )


def _before(place: Stmt, stmt: ExprStmt, call: Call, editor: Editor) -> Fix | None:
    """Move a call above another statement of its block, unless what it reads comes later."""
    if stmt.block is not place.block or binds_between(place, stmt, call):
        return None
    editor.insert_before(place, *editor.lines_of(stmt, call, text_of(editor.source, call)))
    editor.delete(stmt, with_comments=True)
    return editor.fix("Call it before the iterator is created", Applicability.SAFE)


def _iterator_before(model: Model, call: Call) -> tuple[Obj, Assign] | None:
    """The assignment of ``iter(loader)`` above a call that sets the loader's epoch."""
    assert isinstance(call.func, Attr)
    values = frozenset(model.flow.values(call.func.value))
    for stmt, iterated in iterators_before(call):
        if any(
            last_name(other.func) == "set_epoch"
            and other.stmt is not None
            and other.stmt.order < stmt.order
            and not _is_spent(other.stmt, stmt)
            for other in call.scope.calls
        ):
            return None  # the pass has its epoch, and the call is for the next one
        for loader in model.flow.values(iterated):
            if (
                isinstance(loader, Obj)
                and model.role(loader) == "loader"
                and has_workers(model, loader)
                and any(carrier.is_one_of(values) for carrier in carriers(model, loader))
            ):
                return loader, stmt
    return None


def _is_spent(told: Stmt, begun: Stmt) -> bool:
    """Whether an iterator is made right below a call, before another one that is begun later."""
    return begun.block is not told.block and any(
        told.order < each.order < begun.order
        and isinstance(each, Assign)
        and isinstance(each.value, Call)
        and makes_iterator(last_name(each.value.func))
        for each in told.block
    )


# --------------------------------------------------------------------------- not called at all


_NEVER_SET = "the epoch is never set, and every epoch repeats one order"


def _never_called(model: Model) -> Iterator[Suspect]:
    """``sampler.set_epoch`` without a call, and ``sampler.set_epoch = epoch``."""
    for store in model.project.stores_of("set_epoch"):
        target = store.target
        if not isinstance(target, Attr) or store.how != "assign" or store.value is None:
            continue
        if self_class(target.value) is not None or "epoch" not in (last_name(store.value) or ""):
            continue
        if not all(isinstance(v, (Lit, Unknown)) for v in model.flow.values(store.value)):
            continue
        call = f"{unparse(target)}({unparse(store.value)})"
        is_alone = isinstance(store.stmt, Assign) and len(store.stmt.targets) == 1
        yield Suspect(
            model.module_of(store.scope),
            target,
            f"`{unparse(target)} = {unparse(store.value)}` replaces the method",
            fix=_call(store.stmt, call) if is_alone and store.stmt is not None else None,
            effect=_NEVER_SET,
            advice=f"call `{call}`",
        )
    for module in model.modules:
        for scope in module.facts.scopes:
            for read in scope.reads:
                stmt = read.stmt
                if read.name == "set_epoch" and isinstance(stmt, ExprStmt) and stmt.value is read:
                    counter = counter_around(stmt)
                    call = f"{unparse(read)}({counter})"
                    yield Suspect(
                        module,
                        read,
                        f"`{unparse(read)}` is not called here: the parentheses are missing",
                        fix=None if counter is None else _call(stmt, call),
                        effect=_NEVER_SET,
                        advice="call it with the epoch's number" if counter is None else "",
                    )


def _call(stmt: Stmt, call: str) -> Fixer:
    return replacing(stmt, call, f"Call `{call}`")
