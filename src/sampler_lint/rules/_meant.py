"""What an attribute that nothing defines was meant to be, as far as the class itself tells."""

from __future__ import annotations

import re

from sampler_lint.analysis.origins import COMPUTES
from sampler_lint.domain.concepts import LOGS, LOOKS
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import text_of
from sampler_lint.edits.region import Region
from sampler_lint.findings import Applicability, Fix
from sampler_lint.rules._alike import likeness
from sampler_lint.rules._quotient import quotients, remainders
from sampler_lint.syntax.navigation import same, self_class, self_stores, walk
from sampler_lint.syntax.nodes import Attr, Call, Class, ExprStmt, Function, Scope, Stmt, last_name

_SPECIFIED = re.compile(r"\{[^{}]*[:!][^{}]*\}")


def divided_count(cls: Class, scope: Scope, read: Attr) -> Attr | None:
    """``self.n`` for the operand of ``… % self.k`` after ``self.q = self.n // self.k``."""
    for remainder in remainders(scope):
        if remainder.operand is not read:
            continue
        found = [
            quotient.count
            for method in scopes_inside(cls)
            for quotient in quotients(method)
            if same(quotient.parts, remainder.node.right)
            and isinstance(quotient.count, Attr)
            and isinstance(quotient.target, Attr)
            and self_class(quotient.count.value) is cls
            and _alike(read.name, quotient.target.name, quotient.count.name)
        ]
        if found and all(same(count, found[0]) for count in found):
            return found[0]
    return None


def _alike(name: str, *others: str) -> bool:
    return any(likeness(name, other) >= 0.6 for other in others)


# --------------------------------------------------------------------------- never read


def left_over(model: Model, cls: Class, name: str) -> str | None:
    """The one attribute that the class sets and nothing reads, if it says nearly the same.

    Nearly: all words of the name but one, and two at least (``rows_per_shard`` and
    ``rows_per_machine``).
    """
    words = name.strip("_").split("_")
    found = [
        other
        for other in dict.fromkeys(_stored(cls))
        if _differ_by_one_word(words, other.strip("_").split("_"))
        and not _is_read(model, cls, other)
    ]
    return found[0] if len(found) == 1 else None


def _stored(cls: Class) -> list[str]:
    return [target.name for target, _ in self_stores(scopes_inside(cls), cls)]


def _differ_by_one_word(one: list[str], other: list[str]) -> bool:
    return (
        len(one) == len(other) >= 3
        and sum(mine != theirs for mine, theirs in zip(one, other, strict=True)) == 1
    )


def _is_read(model: Model, cls: Class, name: str) -> bool:
    """Whether the class, one above or below it, or anything from outside reads the attribute."""
    family = {None, *model.flow.family(cls)}
    return any(
        read.name == name and self_class(read.value) in family
        for module in model.project.loaded
        for scope in module.facts.scopes
        for read in scope.reads
    )


# --------------------------------------------------------------------------- never stored


def forgotten(cls: Class, name: str) -> Function | None:
    """The constructor that takes the attribute as a parameter and does not keep it."""
    init = cls.method("__init__")
    if init is None or not init.params or len(init.bindings.get(name, ())) != 1:
        return None
    param = init.param(name)
    return init if param is not None and not param.is_star else None


def keep_parameter(cls: Class, init: Function, name: str, editor: Editor) -> Fix | None:
    """Store the parameter beside what the constructor stores already."""
    first = next(
        (
            store.stmt
            for _, store in self_stores(scopes_inside(cls), cls)
            if store.scope is init and store.stmt.parent is None
        ),
        None,
    )
    if first is None:
        return None
    editor.insert_before(first, f"{init.params[0].name}.{name} = {name}")
    why = "another value may be meant"
    return editor.fix(f"Keep `{name}` in `__init__`", Applicability.UNSAFE, why)


# --------------------------------------------------------------------------- became two


def halves(model: Model, cls: Class, name: str) -> tuple[str, str] | None:
    """The two attributes that the name became (``low_edge`` and ``high_edge`` for ``edge``)."""
    bases = [base for base in reversed(model.flow.mro(cls)) if isinstance(base, Class)]
    names = dict.fromkeys(other for base in bases for other in _stored(base))
    for longer in (f"[a-z]+_{re.escape(name)}", f"{re.escape(name)}_[a-z]+"):
        found = [other for other in names if re.fullmatch(longer, other)]
        if len(found) == 2:
            return found[0], found[1]
    return None


def tell_both(scope: Scope, read: Attr, both: tuple[str, str], editor: Editor) -> Fix | None:
    """Put both where the one is only formatted as text, which takes anything."""
    import libcst as cst

    region = Region(editor.module, read.stmt or scope)
    if not _is_formatted(region, region.find(read, cst.Attribute)):
        return None
    owner = text_of(editor.source, read.value)
    editor.replace(read, "({})".format(", ".join(f"{owner}.{name}" for name in both)))
    why = "another attribute may be meant"
    return editor.fix(f"Show `{both[0]}` and `{both[1]}`", Applicability.UNSAFE, why)


def _is_formatted(region: Region, node: object) -> bool:
    """Whether the node is what a plain field of a format string or an f-string shows."""
    import libcst as cst

    for shown in region.nodes(cst.FormattedStringExpression):
        if shown.expression is node:
            return shown.format_spec is None
    return any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "format"
        and isinstance(call.func.value, (cst.SimpleString, cst.ConcatenatedString))
        and any(arg.value is node and not arg.star for arg in call.args)
        and not _SPECIFIED.search(region.code(call.func.value))
        for call in region.nodes(cst.Call)
    )


# --------------------------------------------------------------------------- told only


def only_tells(stmt: Stmt | None) -> bool:
    """Whether the statement only prints or logs, so that what raises in it has no other use."""
    if not isinstance(stmt, ExprStmt) or not isinstance(stmt.value, Call):
        return False
    call = stmt.value
    # Calls inside only make what is told.
    return LOGS.is_call(call) and all(
        LOOKS.is_call(inner) or last_name(inner.func) in COMPUTES | {"join"}
        for inner in walk(call)
        if isinstance(inner, Call) and inner is not call
    )


def drop_telling(stmt: Stmt, editor: Editor) -> Fix | None:
    """Take out the statement, which never printed a line."""
    if len(stmt.block) < 2:
        return None
    message = "Drop the message, which can only raise"
    return editor.delete(stmt).fix(message, Applicability.UNSAFE, "something may expect the error")
