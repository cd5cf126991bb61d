"""Counters that pick a process's items and advance for those alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.domain.concepts import PROCESSES, WORKERS
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import statements
from sampler_lint.syntax.nodes import (
    EQUAL,
    UNEQUAL,
    AugAssign,
    Bin,
    Compare,
    Expr,
    For,
    Function,
    If,
    Name,
    Simple,
    Unary,
    While,
)
from sampler_lint.workspace.project import Module


def stuck_counters(module: Module, function: Function) -> Iterator[Suspect]:
    """A counter that picks a rank's items (``i % n == rank``) and advances for those alone."""
    for stmt in statements(function.body):
        if not isinstance(stmt, If):
            continue
        tested = _counted(stmt.test)
        loop = stmt.parent
        if tested is None or not isinstance(loop, (For, While)) or stmt not in loop.body:
            continue
        counter, takes = tested
        changes = [binding.stmt for binding in function.bindings.get(counter.id, ())]
        steps = [change for change in changes if isinstance(change, AugAssign)]
        rest = [change for change in changes if not isinstance(change, AugAssign)]
        if (
            not steps
            or any(
                binding.how not in {"assign", "aug"} for binding in function.bindings[counter.id]
            )
            or any(change is None or loop.encloses(change) for change in rest)
        ):
            continue
        if takes:
            stuck = all(any(own.encloses(step) for own in stmt.body) for step in steps)
        else:
            last = stmt.body[-1]
            skips = isinstance(last, Simple) and last.kind == "continue" and not stmt.orelse
            stuck = skips and all(
                loop.encloses(step) and step.order > stmt.last_order for step in steps
            )
        if stuck:
            yield Suspect(
                module,
                stmt.test,
                f"`{counter.id}` is only advanced for the items this process takes",
                effect="it never gets past the first item of another process: the rest is not read",
                fix=partial(_count_all, stmt, steps) if takes else None,
                advice="increment it for every item",
            )


def _count_all(taken: If, steps: list[AugAssign], editor: Editor) -> Fix | None:
    """Advance the counter behind the test; only where nothing reads it after it was advanced."""
    step = steps[0]
    if len(steps) != 1 or taken.orelse or step is not taken.body[-1] or len(taken.body) == 1:
        return None
    if any(isinstance(stmt, Simple) and stmt.kind == "continue" for stmt in statements(taken.body)):
        return None
    editor.delete(step).insert_after(taken, text_of(editor.source, step))
    why = "the ranks read more then"
    return editor.fix("Increment it for every item", Applicability.UNSAFE, why)


def _counted(test: Expr) -> tuple[Name, bool] | None:
    """``i`` of ``i % n == rank``, and whether the item is taken when that holds."""
    takes = True
    while isinstance(test, Unary) and test.op == "Not":
        test, takes = test.operand, not takes
    if not isinstance(test, Compare) or len(test.ops) != 1 or test.ops[0] not in EQUAL | UNEQUAL:
        return None
    sides = (test.left, test.rights[0])
    for side, other in (sides, sides[::-1]):
        if (
            isinstance(side, Bin)
            and side.op == "Mod"
            and isinstance(side.left, Name)
            and (PROCESSES.is_mentioned(other) or WORKERS.is_mentioned(other))
        ):
            return side.left, takes is (test.ops[0] in EQUAL)
    return None
