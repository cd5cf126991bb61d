"""How much of an epoch is skipped when a run goes on: in which units, and in how many epochs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.origins import LOCAL, Hop, origins
from sampler_lint.analysis.values import Ext
from sampler_lint.domain.concepts import BATCH_SIZE, ITERATED, RANGES
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.findings import Grade, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import nodes_in, same, statements, unparse, walk
from sampler_lint.syntax.nodes import (
    Attr,
    AugAssign,
    Bin,
    Call,
    Choice,
    Const,
    Expr,
    For,
    If,
    Index,
    Name,
    last_name,
)

_SKIPS = "skip_first_batches"


def skipped(model: Model) -> Iterator[Suspect]:
    """Calls of Accelerate's ``skip_first_batches`` that skip too much."""
    for module in model.modules:
        if is_test(module) or not model.frameworks(module) & {"accelerate", "transformers"}:
            continue
        for call in module.facts.all_calls:
            if last_name(call.func) != _SKIPS or not _is_of_accelerate(model, call):
                continue
            given = call.keyword("num_batches")
            if given is None and len(call.positional) > 1:
                given = call.positional[1]
            if given is None:
                continue
            counted = _counts_samples(model, given)
            if counted is not None:
                yield Suspect(
                    module,
                    given,
                    f"`{_SKIPS}` gets `{unparse(given)}`, which counts samples, not batches",
                    effect="a resumed epoch skips `batch_size` times too much",
                    advice="divide it by the samples of a step of all processes",
                    why=(Related(model.place(call.scope, counted), "samples are counted here"),),
                )
                continue
            loop = _in_each_epoch(call, given)
            if loop is not None:
                yield Suspect(
                    module,
                    call,
                    f"`{unparse(call.func)}` skips in every epoch, not only in the resumed one",
                    effect="the first batches of each later epoch are never read",
                    advice="skip in the first epoch alone, and read the loader itself in others",
                    why=(Related(model.place(loop.scope, loop), "each epoch runs this"),),
                    grade=Grade.CERTAIN,
                )


def _is_of_accelerate(model: Model, call: Call) -> bool:
    """Whether a function of Accelerate is called: by value, or as a method of an accelerator."""
    values = model.flow.values(call.func)
    if any(isinstance(v, Ext) and v.dotted.partition(".")[0] == "accelerate" for v in values):
        return True
    owner = call.func.value if isinstance(call.func, Attr) else None
    return owner is not None and last_name(owner) == "accelerator"


def _counts_samples(model: Model, given: Expr) -> Expr | None:
    """Where a number grows by the samples of a batch, if nothing divides it on its way."""
    steps = [*origins(model.flow, given, LOCAL | Hop.ATTRIBUTE)]
    if any(isinstance(s.expr, Bin) and s.expr.op in {"FloorDiv", "Div", "Mod"} for s in steps):
        return None
    names = [step.expr for step in steps if isinstance(step.expr, (Name, Attr))]
    for scope in {name.scope for name in names}:
        for stmt in statements(scope.body):
            if (
                isinstance(stmt, AugAssign)
                and stmt.op == "Add"
                and any(same(stmt.target, name) for name in names)
                and _is_batch_length(stmt.value)
            ):
                return stmt.target
    return None


def _is_batch_length(value: Expr) -> bool:
    """``len(batch)``, ``images.size(0)``, ``images.shape[0]``, or a batch size by its name."""
    for node in walk(value):
        if isinstance(node, (Name, Attr)) and BATCH_SIZE.names(node):
            return True
        if (
            isinstance(node, Call)
            and last_name(node.func) in {"len", "size"}
            and node.positional
            and not ITERATED.is_mentioned(node)
        ):
            return True
        if isinstance(node, Index) and last_name(node.value) == "shape":
            return isinstance(node.key, Const) and node.key.value == 0
    return False


def _in_each_epoch(call: Call, given: Expr) -> For | None:
    """The loop over epochs whose every turn skips the same."""
    if call.stmt is None or (isinstance(given, Const) and given.value == 0):
        return None
    if any(
        isinstance(node, Choice) and any(part is call for part in walk(node))
        for node in nodes_in([call.stmt])
    ):
        return None
    loop: For | None = None
    for stmt in call.stmt.ancestors():
        if isinstance(stmt, If):
            return None
        if isinstance(stmt, For):
            loop = stmt
            break
    if loop is None or not any(isinstance(n, Call) and RANGES.is_call(n) for n in walk(loop.iter)):
        return None
    if any(node is not given and isinstance(node, Call) for node in walk(given)):
        return None
    read = [node for node in walk(given) if isinstance(node, (Name, Attr))]
    is_set = partial(_is_set_in, loop)
    return None if not read or any(map(is_set, read)) else loop


def _is_set_in(loop: For, name: Name | Attr) -> bool:
    if isinstance(name, Name):
        bindings = name.scope.bindings.get(name.id) or []
        return any(each.stmt is not None and loop.encloses(each.stmt) for each in bindings)
    return any(
        same(store.target, name) and loop.encloses(store.stmt) for store in loop.scope.stores
    )
