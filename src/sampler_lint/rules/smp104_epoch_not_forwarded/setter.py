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


class Part(NamedTuple):
    """Something that a wrapper holds, and that its ``set_epoch`` has to tell."""

    inner: Inner
    carriers: list[Carrier]
    own: Function | None
    """The ``set_epoch`` that is there; otherwise the class that holds it gets one."""
    each: str
    """What one of them is called, where there are many."""

    @property
    def is_certain(self) -> bool:
        """Whether it is known to be what has a ``set_epoch``."""
        known = self.carriers and not self.inner.open
        known = known and len(self.carriers) == len(self.inner.objects)
        return bool(known) and all(carrier.always for carrier in self.carriers)


def forward(
    state: EpochState, parts: tuple[Part, ...], editor: Editor, *, left: bool
) -> Fix | None:
    """Pass the epoch on, in the setter that is there or in one that is added.

    To all that one setter has to tell: with another epoch each they would read the same samples.
    ``left``: whether something else still keeps its epoch then.
    """
    source, own = editor.source, parts[0].own
    this, param = "self", "epoch"
    if own is not None:
        taken = epoch_parameter(own)
        if taken is None:
            return None
        this, param = taken
    told: list[str] = []
    every: list[str] = []
    for part in parts:
        paths = {carrier.path for carrier in part.carriers}
        if len(paths) > 1:
            return None
        held = f"{this}.{part.inner.path[0]}"
        one = part.each if part.inner.many else held
        path = (one, *next(iter(paths), ()))
        lines = _forwarding(source.indent, path, param, source.quote, part.is_certain)
        if part.inner.many:
            items = f"{held}.values()" if part.inner.keyed else held
            lines = [f"for {one} in {items}:", *(source.indent + line for line in lines)]
        if f"`{held}`" not in told:
            told.append(f"`{held}`")
            every += lines
    if own is not None:
        editor.append(own, *every)
    else:
        if state.setter is not None:
            every.insert(0, f"super().set_epoch({param})")
        add_method(editor, parts[0].inner.owner, every, param)
    unsure = [f"`{this}.{part.inner.path[0]}`" for part in parts if not part.is_certain]
    safe = Applicability.UNSAFE if unsure or left else Applicability.SAFE
    why = f"{unsure[0]} may be something else" if unsure else "not all that it holds is told"
    return editor.fix(f"Pass the epoch on to {' and '.join(told)}", safe, why)


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
