"""Which classes yield batches of indices, as ``DataLoader(batch_sampler=...)`` takes them."""

from __future__ import annotations

from sampler_lint.model.facts import Bin, Call, Class, Comp, Expr, Function, Name, Seq, last_name
from sampler_lint.model.linked import BATCH_SAMPLER, SAMPLER, Model


def is_batch_sampler(model: Model, cls: Class) -> bool:
    """Whether the class certainly yields batches: by use, by base, or by what it yields."""
    if cls in model.used_as_batch_sampler or model.is_a(cls, BATCH_SAMPLER) is True:
        return True
    if model.is_a(cls, SAMPLER) is not True:
        return False
    iterate = model.flow.method(cls, "__iter__")
    return isinstance(iterate, Function) and (
        ("Batch" in cls.name and cls.name.endswith("Sampler")) or yields_lists(iterate)
    )


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
