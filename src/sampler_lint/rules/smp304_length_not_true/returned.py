"""A ``__len__`` that returns no whole number, or never more than one."""

from __future__ import annotations

from sampler_lint.analysis.values import Ext
from sampler_lint.domain.model import Model
from sampler_lint.edits.editor import Editor, replacing
from sampler_lint.edits.names import name_of
from sampler_lint.findings import Applicability, Fix
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._trials import defined_by
from sampler_lint.syntax.navigation import self_class
from sampler_lint.syntax.nodes import (
    Attr,
    Bin,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Name,
    Return,
    Simple,
    Stmt,
)
from sampler_lint.workspace.project import Module


def returns_nothing(module: Module, cls: Class) -> Suspect | None:
    """A ``__len__`` without a value."""
    length = cls.method("__len__")
    if length is None or length.yields or length.decorators:
        return None
    if any(
        stmt.value is not None and not (isinstance(stmt.value, Const) and stmt.value.value is None)
        for stmt in length.returns
    ):
        return None
    if not length.returns and not all(_does_nothing(stmt) for stmt in length.body):
        return None  # it raises
    node = length.returns[0] if length.returns else name_of(module, length)
    return Suspect(
        module,
        node,
        f"`{cls.name}.__len__` returns None",
        effect="`len()` of the sampler and of its loader raises TypeError ('NoneType' object "
        "cannot be interpreted as an integer)",
        advice="count what `__iter__` yields, or leave `__len__` out",
    )


#: Functions that round and give a float all the same.
_ROUNDING = frozenset(Ext(f"numpy.{name}") for name in ("ceil", "floor", "rint", "trunc"))


def returns_a_fraction(model: Model, module: Module, cls: Class) -> Suspect | None:
    """``return n / k``, or ``np.ceil(n / k)``: a float, which ``len()`` refuses."""
    length = cls.method("__len__")
    if length is None or length.decorators or len(length.returns) != 1:
        return None
    value = length.returns[0].value
    if isinstance(value, Bin) and value.op == "Div":
        rounded = False
    elif isinstance(value, Call) and model.flow.values(value.func) & _ROUNDING:
        rounded = True
    else:
        return None

    def fix(editor: Editor) -> Fix:
        return editor.wrap(value, "int(", ")").fix("Make it an int", Applicability.SAFE)

    return Suspect(
        module,
        value,
        f"`{cls.name}.__len__` returns a float",
        fix=fix if rounded else None,
        effect="`len()` of the sampler and of its loader raises TypeError ('float' object cannot "
        "be interpreted as an integer)",
        advice="round it to an int",
    )


def at_most_one(model: Model, cls: Class, *, is_true: bool) -> Suspect | None:
    """``return min(1, …)``, in ``__len__`` or the method it returns.

    ``is_true``: whether the length was true wherever the class could be tried. One may be meant.
    """
    length = defined_by(model, cls, "__len__")
    todo = [] if length is None else [length]
    todo += [
        callee
        for method in todo
        for call in method.calls
        for callee in _own_methods(model, cls, call)
    ]
    for method in todo:
        for returned in method.returns:
            value = returned.value
            if (
                isinstance(value, Call)
                and isinstance(value.func, Name)
                and value.func.id == "min"
                and len(value.args) == 2
                and any(_is_one(arg.value) for arg in value.args)
            ):
                module = model.module_of(method)
                return Suspect(
                    module,
                    value,
                    f"`min(1, …)` makes `len()` of `{cls.name}` at most 1",
                    fix=replacing(
                        value.func,
                        "max",
                        "Make 1 the lower bound",
                        Applicability.UNSAFE if is_true else Applicability.SAFE,
                    ),
                    effect="trainers take the steps per epoch and the learning-rate schedule "
                    "from `len(loader)`",
                    advice="use `max(1, …)` for a lower bound",
                )
    return None


def _own_methods(model: Model, cls: Class, call: Call) -> list[Function]:
    if not (isinstance(call.func, Attr) and self_class(call.func.value) is not None):
        return []
    method = defined_by(model, cls, call.func.name)
    is_returned = method is not None and isinstance(call.stmt, Return)
    return [method] if method is not None and is_returned else []


def _is_one(expr: Expr) -> bool:
    return isinstance(expr, Const) and type(expr.value) is int and expr.value == 1


def _does_nothing(stmt: Stmt) -> bool:
    return isinstance(stmt, Simple) and stmt.kind == "pass"
