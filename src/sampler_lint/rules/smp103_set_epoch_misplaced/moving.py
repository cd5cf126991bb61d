"""Fixes: a call moves to where an epoch begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sampler_lint.domain.epochs import EpochLoop
from sampler_lint.domain.turns import epoch_expression
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix
from sampler_lint.syntax.navigation import walk
from sampler_lint.syntax.nodes import Call, Choice, Expr, ExprStmt, If, Loop, Name, Stmt


class _Movable(NamedTuple):
    """What goes from its old place, and what stands in its new one."""

    old: Stmt
    new: Stmt | None
    """The same, with the ``if`` around it; None: the call alone."""


def _movable(found: EpochLoop, call: Call) -> _Movable | None:
    """The call's statement, with the ``if`` around it when it holds no more.

    An ``if`` that chooses a batch of the pass, as the first one, has nothing to choose before it.
    """
    stmt = call.stmt
    if not isinstance(stmt, ExprStmt) or stmt.value is not call:
        return None
    old: Stmt = stmt
    new: Stmt | None = stmt
    for parent in stmt.ancestors():
        if not isinstance(parent, If) or len(old.block) != 1 or parent.orelse:
            break
        if old.block is not parent.body:
            break
        if _is_bound_in(found.inner.stmt, parent.test):
            if old is not stmt:
                return None  # two guards, of which one stays
            old, new = parent, None
            break
        if parent.row == old.row:
            return None
        old = new = parent
    if len(old.block) == 1 and old.parent is not None:
        return None  # nothing would be left of the block
    return _Movable(old, new)


def _is_bound_in(stmt: Stmt, expr: Expr) -> bool:
    """Whether an expression reads a name that a statement binds."""
    return any(
        binding.stmt is not None and (binding.stmt is stmt or stmt.encloses(binding.stmt))
        for name in walk(expr)
        if isinstance(name, Name)
        for binding in name.scope.bindings.get(name.id, ())
    )


def move_to_top(
    found: EpochLoop,
    call: Call,
    epoch: Expr | None,
    editor: Editor,
    *,
    also: Sequence[Loop] = (),
) -> Fix | None:
    """Move the call to the top of the loop (or before the pass), with the loop's counter.

    ``also``: other loops that rest on the call, and need one of their own.
    """
    moved = _movable(found, call)
    if epoch is None or not call.positional or moved is None:
        return None
    for loop in also:
        if (counter := epoch_expression(loop)) is None:
            return None
        editor.insert_first(loop, *_lines(moved, call, text_of(editor.source, counter), editor))
    argument = text_of(editor.source, epoch)
    lines = _lines(moved, call, argument, editor)
    editor.delete(moved.old, with_comments=True)
    if call.scope is found.loop.scope:
        editor.insert_first(found.loop, *lines)
    else:
        editor.insert_before(found.inner.stmt, *lines)
    name = f"{text_of(editor.source, call.func)}({argument})"
    return editor.fix(f"Call `{name}` at the start of the loop", Applicability.SAFE)


def _lines(moved: _Movable, call: Call, argument: str, editor: Editor) -> Sequence[str]:
    """What is moved, with another argument."""
    if moved.new is not None:
        return editor.lines_of(moved.new, call.positional[0], argument)
    return [f"{text_of(editor.source, call.func)}({argument})"]


def without_guard(guard: If, test: Expr, call: Call, where: str, editor: Editor) -> Fix | None:
    """Make the call whatever one of the operands of its ``if`` says.

    Before the branch, which goes if it holds no more; in it, if something else guards it, too.
    """
    stmt = call.stmt
    if not isinstance(stmt, ExprStmt) or stmt.value is not call or stmt.block is not guard.body:
        return None
    message = f"Call `{text_of(editor.source, call)}` {where}"
    if guard.test is not test:
        options = guard.test.options if isinstance(guard.test, Choice) else []
        others = [one for one in options if one is not test]
        if len(options) != 2 or len(others) != 1 or len(guard.body) != 1 or guard.orelse:
            return None
        editor.replace(guard.test, text_of(editor.source, others[0]))
        return editor.fix(message, Applicability.SAFE)
    if _is_bound_in(guard, call):
        return None
    is_elif = isinstance(guard.parent, If) and guard.block is guard.parent.orelse
    if is_elif or (len(guard.body) == 1 and guard.orelse):
        return None
    editor.insert_before(guard, *editor.lines_of(stmt, call, text_of(editor.source, call)))
    if len(guard.body) == 1:
        editor.delete(guard)
    else:
        editor.delete(stmt, with_comments=True)
    return editor.fix(message, Applicability.SAFE)
