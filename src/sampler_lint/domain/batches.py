"""Which classes yield batches of indices, as ``DataLoader(batch_sampler=...)`` takes them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sampler_lint.analysis.arguments import table_entry
from sampler_lint.analysis.origins import Hop, Step, origins
from sampler_lint.analysis.values import Obj, Table
from sampler_lint.domain.model import BATCH_SAMPLER, SAMPLER, Model
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import nodes_in, same, statements, walk
from sampler_lint.syntax.nodes import (
    Bin,
    Call,
    Class,
    Comp,
    Const,
    Expr,
    Function,
    Map,
    Seq,
    last_name,
)
from sampler_lint.workspace.project import Module


def is_batch_sampler(model: Model, cls: Class) -> bool:
    """Whether the class certainly yields batches: by use, by base, or by what it yields.

    Where none of these tells, its name does; what a loader takes as its ``sampler`` is none.
    """
    if cls in model.used_as_batch_sampler:
        return True
    if cls in model.used_as_sampler or model.is_a(cls, SAMPLER) is not True:
        return False
    if _is_set_as_sampler(model, cls):
        return False
    if model.is_a(cls, BATCH_SAMPLER) is True:
        return True
    iterate = model.flow.method(cls, "__iter__")
    if not isinstance(iterate, Function):
        return False
    named = "Batch" in cls.name and cls.name.endswith("Sampler")
    return yields_lists(model, iterate) or (named and not _yields_single(model, cls))


def _yields_single(model: Model, cls: Class) -> bool:
    """Whether all that it yields in a few small worlds are single samples."""
    turns = [turn for trial in model.trials(cls).usual for turn in trial.turns if turn.yielded]
    return bool(turns) and not any(turn.in_batches for turn in turns)


def _is_set_as_sampler(model: Model, cls: Class) -> bool:
    """Whether a table has the class as its ``sampler``, and none as a batch sampler.

    The arguments of a loader, or a configuration. Nothing imports that: it lies beside the
    package, or below the script's folder.
    """
    folder = os.path.join(model.project.home_of(model.module_of(cls)), "")
    samplers, batch_samplers = (
        _named_as(model, folder, key) for key in ("sampler", "batch_sampler")
    )
    return cls.name in samplers and cls.name not in batch_samplers


@remembered
def _named_as(model: Model, folder: str, key: str) -> set[str]:
    """The classes under a key of a dict: as a string in a dict of its own, or an object of one."""
    found: set[str] = set()
    for module in (each for each in model.modules if each.path.startswith(folder)):
        for table in _tables(module, key) if module.says(key) else ():
            value = table_entry(Table(table), key)
            if value is not None:
                found.update(_strings(value))
                made = (each for each in model.flow.values(value) if isinstance(each, Obj))
                found.update(each.cls.name for each in made if isinstance(each.cls, Class))
    return found


def _tables(module: Module, key: str) -> Iterator[Map | Call]:
    """The dict displays and ``dict(…)`` calls that may have a key."""
    yield from (call for call in module.facts.all_calls if last_name(call.func) == "dict")
    # Only few files write the key as a string, and to find displays each expression is looked at.
    if not any(module.says(f"{quote}{key}{quote}") for quote in "'\""):
        return
    for scope in module.facts.scopes:
        yield from (n for n in nodes_in(statements(scope.body)) if isinstance(n, Map))


def _strings(value: Expr) -> list[str]:
    """The last parts of the dotted names in the strings of a dict."""
    if not (isinstance(value, Map) or (isinstance(value, Call) and not value.positional)):
        return []
    texts = [node.value for node in walk(value) if isinstance(node, Const)]
    return [text.rpartition(".")[2] for text in texts if isinstance(text, str)]


def is_abstract(cls: Class) -> bool:
    """Whether a method of the class is left to its subclasses."""
    return any(
        last_name(decorator) == "abstractmethod"
        for method in cls.methods
        for decorator in method.decorators
    )


def yields_lists(model: Model, function: Function) -> bool:
    """Whether every yield certainly gives a list."""
    values = [y.value for y in function.yields if not y.delegates]
    return (
        bool(values)
        and len(values) == len(function.yields)
        and all(value is not None and is_list(model, value) for value in values)
    )


def is_list(model: Model, value: Expr, within: frozenset[Expr] = frozenset()) -> bool:
    """Whether an expression certainly is a list; ``within`` is the sums that it is in."""
    steps = origins(model.flow, value, Hop.ASSIGNED, drop=_is_added)
    return all(_makes_list(model, step.expr, within) for step in steps if step.is_end)


def _is_added(step: Step) -> bool:
    """Whether it is what ``x += y`` adds: a list stays one."""
    return bool(step.op) and step.towards is not None and not same(step.expr, step.towards.expr)


def _makes_list(model: Model, expr: Expr, within: frozenset[Expr]) -> bool:
    if isinstance(expr, Bin) and expr.op == "Add":
        sides, inside = (expr.left, expr.right), within | {expr}
        return expr not in within and any(is_list(model, side, inside) for side in sides)
    if isinstance(expr, Call):
        return last_name(expr.func) in {"list", "tolist"}
    return isinstance(expr, (Comp, Seq)) and expr.kind in {"list", "ListComp"}
