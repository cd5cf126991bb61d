"""SMP103: ``set_epoch`` on an object that has none, or behind a guard that it never passes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.asked import is_one, tests
from sampler_lint.analysis.values import Lit, Obj
from sampler_lint.domain.concepts import ASKS_KIND
from sampler_lint.domain.conditions import contradict
from sampler_lint.domain.epoch_calls import another_arm_sets, carriers, guards
from sampler_lint.domain.epoch_state import is_closed, lookup, uses_epoch
from sampler_lint.domain.injection import injections
from sampler_lint.domain.model import DATA_LOADER, Model
from sampler_lint.domain.ranks import is_about_processes
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.syntax.navigation import inherited, operands, same, unparse
from sampler_lint.syntax.nodes import Attr, Call, Class, Expr, If, Stmt, last_name


def receivers(model: Model) -> Iterator[Suspect]:
    """Every call whose receiver certainly has no ``set_epoch``, or whose guard is never true."""
    for call in model.epoch_setters:
        assert isinstance(call.func, Attr)
        if call.func.name != "set_epoch" or is_expected(model, call, AttributeError):
            continue
        suspect = _on_loader(model, call) or _on_default(model, call) or _never_guarded(model, call)
        if suspect is not None:
            yield suspect


def _on_loader(model: Model, call: Call) -> Suspect | None:
    """``loader.set_epoch`` or ``batch_sampler.set_epoch`` where ``.sampler`` has the epoch."""
    assert isinstance(call.func, Attr)
    receiver = call.func.value
    loader, attribute = receiver, ""
    if isinstance(receiver, Attr) and receiver.name in {"batch_sampler", "dataset"}:
        loader, attribute = receiver.value, receiver.name
    loaders = _holders(model, loader, "loader")
    if loaders is None and not attribute:
        loaders = _holders(model, loader, "batch_sampler")
        attribute = "batch_sampler" if loaders is not None else ""
    if loaders is None:
        return None
    paths: set[tuple[str, ...]] = set()
    for obj in loaders:
        if _has_set_epoch(model, obj, attribute) is not False:
            return None
        found = {carrier.path for carrier in carriers(model, obj)}
        if not found:
            return None
        paths |= found
    guard = _asks(call, receiver)
    if guard and another_arm_sets(call):
        return None
    path = min(paths, key=lambda each: (len(each), each))
    held = [v for v in model.flow.values(loader) if not isinstance(v, Lit)]
    # What a wrapper has by that name, its class says, or does not.
    is_there = len(paths) == 1 and len(held) == len(loaders)
    what = {"": "a loader", "batch_sampler": "torch's BatchSampler", "dataset": "this dataset"}
    module = model.module_of(call.scope)
    built = "loader" if model.role(loaders[0]) == "loader" else "batch sampler"
    why = tuple(Related(model.place_of(obj), f"{built} built here") for obj in loaders[:2])
    return Suspect(
        module,
        call,
        f"`{unparse(call.func)}`: {what[attribute]} has no `set_epoch`",
        why=why,
        fix=partial(_point_at, call, receiver, loader, path) if is_there else None,
        effect="the guard is never true, and every epoch repeats one order"
        if guard
        else "the call raises AttributeError",
        advice=f"call `{'.'.join((unparse(loader), *path))}.set_epoch()`",
        hides=not guard,
    )


def _on_default(model: Model, call: Call) -> Suspect | None:
    """``loader.sampler.set_epoch`` of loaders that are given no sampler: torch's own has none."""
    receiver = call.func.value if isinstance(call.func, Attr) else None
    if not isinstance(receiver, Attr) or receiver.name != "sampler":
        return None
    loaders = _holders(model, receiver.value, "loader") or []
    module = model.module_of(call.scope)
    if (
        not loaders
        or not all(_is_given_none(model, each) for each in loaders)
        or any(each.site is None or contradict(model, [each.site], [call]) for each in loaders)
        or not all(is_about_processes(model, test) for test, _ in tests(call))
        or injections(model).trainers(module)
    ):
        return None
    return Suspect(
        module,
        call,
        f"`{unparse(call.func)}`: the loader is given no sampler, and torch's own has no "
        f"`set_epoch`",
        why=tuple(Related(model.place_of(each), "loader built here") for each in loaders[:2]),
        effect="the call raises AttributeError",
        advice="give the loader a `DistributedSampler`",
        hides=True,
    )


def _is_given_none(model: Model, loader: Obj) -> bool:
    """Whether a loader of torch certainly makes its sampler itself."""
    return loader.cls == DATA_LOADER and not any(
        model.argument(loader, name) is not None or model.flow.may_be_passed(loader, name)
        for name in ("sampler", "batch_sampler")
    )


def _holders(model: Model, expr: Expr, role: str) -> list[Obj] | None:
    """The objects of a role an expression holds; None unless it certainly holds nothing else.

    But for what wraps a loader and has no ``set_epoch`` either.
    """
    values = [v for v in model.flow.values(expr) if not isinstance(v, Lit)]
    built = [v for v in values if isinstance(v, Obj) and v.site is not None]
    found = [v for v in built if model.role(v) == role]
    lacking = (
        isinstance(v.cls, Class)
        and is_closed(model, v.cls)
        and lookup(model, v.cls, "set_epoch", None) is None
        for v in built
        if v not in found
    )
    return found if found and len(built) == len(values) and all(lacking) else None


def _has_set_epoch(model: Model, loader: Obj, attribute: str) -> bool | None:
    """Whether the loader (or its part) has the method; None if that is not known.

    What a class of the tree batches by is SMP104's to tell.
    """
    if model.role(loader) == "batch_sampler":
        return None if isinstance(loader.cls, Class) else False
    if isinstance(loader.cls, Class) and attribute != "dataset":
        if attribute or not is_closed(model, loader.cls):
            return None
        return lookup(model, loader.cls, "set_epoch", None) is not None
    if not attribute:
        return False
    given = model.passed_to(loader, attribute)
    if attribute == "batch_sampler":
        # None is passed: torch makes its own from `sampler`.
        return None if any(not isinstance(v, Lit) for v in given) else False
    if not given:
        return None
    for value in given:
        if not isinstance(value, Obj) or not isinstance(value.cls, Class):
            return None
        if not is_closed(model, value.cls):
            return None
        if lookup(model, value.cls, "set_epoch", None) is not None:
            return True
        if any(
            lookup(model, value.cls, name, None) for name in ("__getattr__", "__getattribute__")
        ):
            return None
    return False


def _asks(call: Call, receiver: Expr) -> list[Call]:
    """The ``hasattr`` and ``isinstance`` calls around the call that ask about the receiver."""
    return [
        node
        for guard in guards(call)
        for node in operands(guard.test)
        if isinstance(node, Call)
        and ASKS_KIND.is_call(node)
        and node.positional
        and same(node.positional[0], receiver)
    ]


def _point_at(
    call: Call, receiver: Expr, loader: Expr, path: tuple[str, ...], editor: Editor
) -> Fix | None:
    if call.stmt is None:
        return None
    spelled = ".".join((text_of(editor.source, loader), *path))
    for expr in (receiver, *(node.positional[0] for node in _asks(call, receiver))):
        editor.replace(expr, spelled)
    return editor.fix(f"Call `{spelled}.set_epoch`", Applicability.SAFE)


# --------------------------------------------------------------------------- guards


def _never_guarded(model: Model, call: Call) -> Suspect | None:
    """``if isinstance(x, C)`` around the call, where ``x`` is certainly no ``C``."""
    if another_arm_sets(call):
        return None
    nothing: tuple[If, ...] = ()
    for guard in inherited(call.stmt, _asked_of, nothing) if call.stmt is not None else nothing:
        for node in _isinstance_calls(guard):
            found = _not_instances(model, node.positional[0], node.positional[1])
            if found is None:
                continue
            subject, wanted = unparse(node.positional[0]), unparse(node.positional[1])
            obj = found[0]
            message = (
                f"`isinstance({subject}, {wanted})` is never true: `{subject}` is a `{obj.name}`"
            )
            why = (Related(model.place_of(obj), f"`{obj.name}` built here"),)
            module = model.module_of(call.scope)
            return Suspect(
                module,
                call,
                message,
                why=why,
                effect=f"`{unparse(call.func)}` is never called, and every epoch repeats one order",
                advice="test for the class it has, or for `set_epoch` itself",
            )
    return None


def _asked_of(around: tuple[If, ...], stmt: Stmt) -> tuple[If, ...]:
    """The ``if isinstance(…)`` whose body, not whose ``else``, holds the statement."""
    parent = stmt.parent
    if isinstance(parent, If) and stmt.block is parent.body and _isinstance_calls(parent):
        return (parent, *around)
    return around


def _isinstance_calls(guard: If) -> list[Call]:
    return [
        node
        for node in operands(guard.test)
        if isinstance(node, Call)
        and last_name(node.func) == "isinstance"
        and len(node.positional) == 2
    ]


def _not_instances(model: Model, subject: Expr, wanted: Expr) -> list[Obj] | None:
    """What the subject holds, if none of it is an instance of ``wanted`` and some has an epoch."""
    values = model.flow.values(subject)
    objects = [v for v in values if isinstance(v, Obj) and v.site is not None]
    if not objects or any(not isinstance(v, Lit) and v not in objects for v in values):
        return None
    carry = False
    for obj in objects:
        if is_one(model.flow, obj.cls, wanted) is not False:
            return None
        if model.role(obj) == "loader":
            carry |= any(True for _ in carriers(model, obj))
        elif isinstance(obj.cls, Class):
            carry |= uses_epoch(model, obj.cls)
    return objects if carry else None
