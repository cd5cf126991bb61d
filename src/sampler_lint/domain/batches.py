"""Which classes yield batches of indices, as ``DataLoader(batch_sampler=...)`` takes them."""

from __future__ import annotations

import os

from sampler_lint.domain.model import BATCH_SAMPLER, SAMPLER, Model
from sampler_lint.syntax.nodes import (
    Bin,
    Call,
    Class,
    Comp,
    Const,
    Expr,
    Function,
    Map,
    Name,
    Seq,
    expressions,
    last_name,
    statements,
    walk,
)
from sampler_lint.workspace.project import Module


def is_batch_sampler(model: Model, cls: Class) -> bool:
    """Whether the class certainly yields batches: by use, by base, or by what it yields.

    Where none of these tells, its name does; what a loader takes as its ``sampler`` is none.
    """
    if cls in model.used_as_batch_sampler:
        return True
    if cls in model.used_as_sampler or _is_set_as_sampler(model, cls):
        return False
    if model.is_a(cls, BATCH_SAMPLER) is True:
        return True
    if model.is_a(cls, SAMPLER) is not True:
        return False
    iterate = model.flow.method(cls, "__iter__")
    if not isinstance(iterate, Function):
        return False
    named = "Batch" in cls.name and cls.name.endswith("Sampler")
    return yields_lists(iterate) or (named and not _yields_single(model, cls))


def _yields_single(model: Model, cls: Class) -> bool:
    """Whether all that it hands out in a few small worlds are single samples."""
    turns = [turn for trial in model.trials(cls).usual for turn in trial.turns if turn.yielded]
    return bool(turns) and not any(turn.in_batches for turn in turns)


def _is_set_as_sampler(model: Model, cls: Class) -> bool:
    """Whether a configuration names the class as a ``sampler``, and none as a batch sampler.

    Nothing imports a configuration: it lies beside the package, or below the script's folder.
    """
    folder = os.path.join(model.project.home_of(model.module_of(cls)), "")
    known = model.memo.setdefault(_named_as, {})
    if folder not in known:
        beside = [module for module in model.modules if module.path.startswith(folder)]
        known[folder] = tuple(_named_as(beside, key) for key in ("sampler", "batch_sampler"))
    samplers, batch_samplers = known[folder]
    return cls.name in samplers and cls.name not in batch_samplers


def _named_as(modules: list[Module], key: str) -> set[str]:
    """What stands under a key of a dict, as a string in a dict of its own (``type="Mine"``)."""
    found: set[str] = set()
    for module in modules:
        for scope in module.facts.scopes if module.says(key) else ():
            for stmt in statements(scope.body):
                for expr in expressions(stmt):
                    for node in walk(expr):
                        for value in _entries(node, key):
                            found.update(_strings(value))
    return found


def _entries(node: Expr, key: str) -> list[Expr]:
    """What a dict display or a ``dict(…)`` has under a key."""
    if isinstance(node, Map):
        return [v for k, v in node.items if isinstance(k, Const) and k.value == key]
    if isinstance(node, Call) and last_name(node.func) == "dict":
        return [arg.value for arg in node.args if arg.keyword == key]
    return []


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


def yields_lists(function: Function) -> bool:
    """Whether every yield certainly gives a list."""
    values = [y.value for y in function.yields if not y.delegates]
    return (
        bool(values)
        and len(values) == len(function.yields)
        and all(value is not None and _is_list(function, value) for value in values)
    )


def _is_list(function: Function, value: Expr) -> bool:
    if isinstance(value, Seq):
        return value.kind == "list"
    if isinstance(value, Bin) and value.op == "Add":
        return _is_list(function, value.left) or _is_list(function, value.right)
    if isinstance(value, Call):
        return last_name(value.func) in {"list", "tolist"}
    if isinstance(value, Name):
        bindings = function.bindings.get(value.id, [])
        assigned = [b for b in bindings if b.how == "assign" and not b.path and b.value is not None]
        return bool(assigned) and all(_is_list(function, b.value) for b in assigned if b.value)
    return isinstance(value, Comp) and value.kind == "ListComp"
