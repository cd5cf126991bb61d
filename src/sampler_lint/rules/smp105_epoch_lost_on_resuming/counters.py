"""Counters of a sampler or dataset that its own state leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import ExtObj, Obj
from sampler_lint.domain.concepts import ITERATED, NAMESPACES, RESTORES
from sampler_lint.domain.epoch_state import reach, seed_argument, seed_parts, seedings_of
from sampler_lint.domain.epochs import loops_over
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.resuming import restored_before
from sampler_lint.edits.names import name_of
from sampler_lint.findings import Grade, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import self_class
from sampler_lint.syntax.nodes import Attr, Class, Function, Scope, last_name


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
    names = {read.name for read in found.self_reads()}
    for function in found.functions:
        names |= {
            store.target.name
            for store in function.stores
            if isinstance(store.target, Attr) and self_class(store.target.value) is not None
        }
    return names


def _moved(model: Model, cls: Class) -> dict[str, Attr]:
    """The attributes that a pass adds to, and whose number decides what it gives."""
    found = reach(model, cls, "__iter__", "__next__")
    if found.opaque:
        return {}
    added: dict[str, Attr] = {}
    for function in found.functions:
        for store in function.stores:
            target = store.target
            if store.how == "aug" and isinstance(target, Attr) and self_class(target.value):
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
    return any(model.project.outer_stores_near(name, cls)) or any(
        isinstance(store.target, Attr)
        and store.target.name == name
        and self_class(store.target.value) is not None
        and isinstance(scope, Function)
        and scope.name != "__init__"
        and scope not in passing
        for base in model.flow.mro(cls)
        if isinstance(base, Class)
        for scope in scopes_inside(base)
        for store in scope.stores
    )
