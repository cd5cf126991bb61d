"""Epochs that give way to Accelerate's own count of passes, which begins at 0 in each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sampler_lint.analysis.values import Obj, Value
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.shares import given_to_sharders
from sampler_lint.findings import Related
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import unparse, walk
from sampler_lint.syntax.nodes import Assign, Attr, Call, For, Loop, Name, Scope


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
