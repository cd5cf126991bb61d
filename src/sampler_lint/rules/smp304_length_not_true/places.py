"""Where a wrong length comes from, and what it may be meant to be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sampler_lint.domain.concepts import RANGES
from sampler_lint.domain.model import Model
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.findings import Applicability, Fix
from sampler_lint.limits import MOST_ATTRIBUTES
from sampler_lint.rules._trials import defined_by, slice_of
from sampler_lint.syntax.navigation import nodes_in, self_class, statements
from sampler_lint.syntax.nodes import (
    DIVISIONS,
    Attr,
    Bin,
    Call,
    Choice,
    Class,
    Compare,
    Expr,
    Function,
    Index,
    Node,
    Unary,
    While,
    last_name,
)
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.outcomes import Trial


def place(
    model: Model,
    module: Module,
    cls: Class,
    length: Function | None,
    iterate: Function | None,
    trial: Trial,
) -> tuple[Module, Node]:
    """Where the fault is: the loop that stops early, ``__len__``, or who inherits it."""
    turn = trial.turns[0]
    if length is None:
        size = defined_by(model, cls, "num_samples")
        if size is not None and model.flow.method(cls, "__len__") == _DISTRIBUTED:
            return model.module_of(size), first_return(size) or name_of(module, size)
        return module, name_of(module, cls)
    usual = trial.world.counts(sharded=differ(trial))
    stops_early = turn.length in usual and turn.count not in usual and not trial.from_data
    if stops_early and iterate is not None:
        loop = next((s for s in statements(iterate.body) if isinstance(s, While)), None)
        if loop is not None:
            return model.module_of(iterate), loop.test
    where = model.module_of(length)
    return where, first_return(length) or name_of(where, length)


_DISTRIBUTED = "torch.utils.data.DistributedSampler"


def first_return(function: Function) -> Node | None:
    """What a method returns."""
    return next((stmt.value for stmt in function.returns if stmt.value is not None), None)


def return_count(
    model: Model, module: Module, cls: Class, length: Function | None, editor: Editor
) -> Fix | None:
    """Return what turns out to be the count in every world, if there is such an expression."""
    if length is None or length.outer is not cls or len(length.returns) != 1:
        return None
    returned = length.returns[0].value
    if returned is None or not length.params:
        return None
    candidates = list(_candidates(model, module, cls, length, returned))
    found = model.true_length(cls, returned, candidates)
    if found is None:
        return None
    editor.at(module).replace(returned, found)
    return editor.fix(f"Return `{found}`", Applicability.UNSAFE, "`__iter__` may be what is wrong")


def _candidates(
    model: Model, module: Module, cls: Class, length: Function, returned: Expr
) -> Iterator[str]:
    """Attributes that may hold the length, the other rounding, a rank's share of it."""
    me = length.params[0].name
    init = cls.method("__init__")
    stored = [
        store.target.name
        for store in (() if init is None else init.stores)
        if isinstance(store.target, Attr) and self_class(store.target.value) is cls
    ]
    for name in list(dict.fromkeys(stored))[:MOST_ATTRIBUTES]:
        yield f"{me}.{name}"
        yield f"len({me}.{name})"
    text = text_of(module.source, returned)
    divided = _divided(module, returned)
    if divided is not None:
        count, size = divided
        floor, ceil = f"{count} // {size}", f"-(-{count} // {size})"
        yield from (ceil, floor)
        if "drop_last" in model.attributes(cls).names:
            yield f"{floor} if {me}.drop_last else {ceil}"
    for rank, ranks in dict.fromkeys(_strides(module, cls)):
        yield f"len(range({rank}, {text}, {ranks}))"
        yield f"{text} // {ranks}"
    for call in _ranges(cls):
        yield f"len({text_of(module.source, call)})"


def _ranges(cls: Class) -> Iterator[Call]:
    """What ``__iter__`` goes through in steps: ``range(self.rank, len(self.data), self.ranks)``."""
    iterate = cls.method("__iter__")
    for call in iterate.calls if iterate is not None else ():
        if RANGES.is_call(call) and len(call.positional) == 3:
            yield call


def _divided(module: Module, expr: Expr) -> tuple[str, str] | None:
    """``count`` and ``size`` of a quotient that is rounded, either way."""
    if isinstance(expr, Unary) and expr.op == "USub":
        expr = expr.operand
    if isinstance(expr, Call) and last_name(expr.func) == "ceil" and len(expr.positional) == 1:
        expr = expr.positional[0]
    if not isinstance(expr, Bin) or expr.op not in DIVISIONS:
        return None
    count = expr.left
    if isinstance(count, Unary) and count.op == "USub":
        count = count.operand

    def atom(part: Expr) -> str:
        text = text_of(module.source, part)
        return f"({text})" if isinstance(part, (Bin, Unary, Compare, Choice)) else text

    return atom(count), atom(expr.right)


def _strides(module: Module, cls: Class) -> Iterator[tuple[str, str]]:
    """``self.rank`` and ``self.num_replicas`` of ``x[self.rank :: self.num_replicas]``."""
    for method in cls.methods:
        for node in nodes_in(statements(method.body)):
            key = slice_of(module, node) if isinstance(node, Index) else None
            if key is not None and key.lower is not None and key.step is not None:
                lower, step = ast.unparse(key.lower), ast.unparse(key.step)
                if _is_kept(lower) and _is_kept(step):
                    yield lower, step


def _is_kept(code: str) -> bool:
    return code.startswith("self.") and code.removeprefix("self.").isidentifier()


def differ(trial: Trial) -> bool:
    """Whether the ranks do different things."""
    return len({turn.indices for turn in trial.turns}) > 1
