"""Fixes: a ``set_epoch`` that passes the epoch on."""

from __future__ import annotations

from typing import NamedTuple

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.epoch_state import EpochState
from sampler_lint.domain.wrapping import Inner
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.region import EditError
from sampler_lint.findings import Applicability, Fix
from sampler_lint.syntax.nodes import Class, Function, Scope


class Carrier(NamedTuple):
    """A wrapped object that shuffles by an epoch of its own."""

    obj: Obj
    path: tuple[str, ...]
    """How its ``set_epoch`` is reached from it."""
    always: bool = True
    """Whether there is one whatever it was built with."""


def own_setter(owner: Class, functions: tuple[Function, ...]) -> Function | None:
    """The ``set_epoch`` of the class itself."""
    return next((function for function in functions if function.cls is owner), None)


def forward(
    state: EpochState,
    inner: Inner,
    carriers: list[Carrier],
    own: Function | None,
    each: str,
    editor: Editor,
) -> Fix | None:
    """Pass the epoch on, in the setter that is there or in one that is added."""
    source = editor.source
    name = inner.path[0]
    paths = {carrier.path for carrier in carriers}
    if len(paths) > 1:
        return None
    path = next(iter(paths), ())
    certain = bool(carriers) and not inner.open and len(carriers) == len(inner.objects)
    certain = certain and all(carrier.always for carrier in carriers)
    param = "epoch"
    this = "self"
    if own is not None:
        taken = epoch_parameter(own)
        if taken is None:
            return None
        this, param = taken
    held = f"{this}.{name}"
    one = each if inner.many else held
    lines = _forwarding(source.indent, (one, *path), param, source.quote, certain)
    if inner.many:
        every = f"{held}.values()" if inner.keyed else held
        lines = [f"for {one} in {every}:", *(source.indent + line for line in lines)]
    if own is not None:
        editor.append(own, *lines)
    else:
        if state.setter is not None:
            lines = [f"super().set_epoch({param})", *lines]
        add_method(editor, inner.owner, lines, param)
    safe = Applicability.SAFE if certain else Applicability.UNSAFE
    why = f"`{this}.{name}` may be something else"
    return editor.fix(f"Pass the epoch on to `{this}.{name}`", safe, why)


def epoch_parameter(setter: Function) -> tuple[str, str] | None:
    """What a ``set_epoch`` calls itself and the epoch, where it takes these two."""
    if setter.self_name is None or len(setter.params) < 2:
        return None
    if not setter.params[1].is_positional:
        return None
    return setter.self_name, setter.params[1].name


def _forwarding(
    indent: str, path: tuple[str, ...], param: str, quote: str, certain: bool
) -> list[str]:
    target = ".".join(path)
    lines = [f"{target}.set_epoch({param})"]
    if not certain:
        lines = [f"if hasattr({target}, {quote}set_epoch{quote}):", indent + lines[0]]
    return lines


def add_method(editor: Editor, cls: Class, lines: list[str], param: str) -> None:
    """Write ``set_epoch`` below the constructor (or the class's last method)."""
    methods = cls.methods
    after = cls.method("__init__") or methods[-1]  # whoever iterates has one
    if after.define is None or after.end_row == after.row:
        raise EditError("a class on single lines is left to its author")
    annotated = any(p.annotation is not None for method in methods for p in method.params)
    signature = f"def set_epoch(self, {param}):"
    if annotated:
        signature = f"def set_epoch(self, {param}: int) -> None:"
    body = (editor.source.indent + line for line in lines)
    editor.insert_after(after.define, "", signature, *body)


def self_name(scope: Scope) -> str | None:
    """What a method calls its object; None for other scopes."""
    names = (each.self_name for each in scope.outward() if isinstance(each, Function))
    return next((name for name in names if name is not None), None)
