"""What tells one turn of a loop from another."""

from __future__ import annotations

from sampler_lint.analysis.reaching import definitions
from sampler_lint.domain.concepts import COUNTS, EPOCH
from sampler_lint.syntax.navigation import owner_of, walk
from sampler_lint.syntax.nodes import (
    ORDERED,
    UNEQUAL,
    Attr,
    Binding,
    Call,
    Compare,
    Const,
    Expr,
    For,
    Index,
    Loop,
    Name,
    Seq,
    While,
    dotted,
    last_name,
)


def repeats(loop: Loop) -> bool:
    """Whether turns of the loop repeat the same work: it counts, or runs until something.

    A loop over other things (folds, tasks, loaders) may do other work in each turn.
    """
    if isinstance(loop, For):
        counts = EPOCH.is_mentioned(loop.target) or _counts(loop.iter) or _is_repeated(loop.iter)
        return counts and not _is_once(loop.iter)
    return True


def _is_once(source: Expr) -> bool:
    """``range(1)``, also by a variable that is set to 1 and to nothing else."""
    given = source.positional if isinstance(source, Call) and dotted(source.func) == "range" else []
    if len(given) != 1:
        return False
    number = given[0]
    owner = owner_of(number) if isinstance(number, Name) else None
    if isinstance(number, Name) and owner is not None and "exec" not in owner.called:
        match owner.bindings[number.id]:
            case [Binding(how="assign", path=(), value=Const() as number)]:
                pass
    return isinstance(number, Const) and number.value == 1


def _is_repeated(source: Expr) -> bool:
    """``repeat(x)``: one object again and again (a method repeats what it is called on)."""
    return isinstance(source, Call) and dotted(source.func) in {"repeat", "itertools.repeat"}


def epoch_expression(loop: Loop) -> Expr | None:
    """What holds the epoch's number in the loop's body, if that is plain."""
    if isinstance(loop, For):
        targets = [node for node in walk(loop.target) if isinstance(node, Name)]
        if isinstance(loop.target, (Name, Attr, Index)):
            return loop.target if _counts(loop.iter) else None
        named = [name for name in targets if EPOCH.names(name)] or _numbers_enumerated(loop)
        return named[0] if len(named) == 1 else None
    test = loop.test
    if isinstance(test, Compare) and len(test.ops) == 1 and test.ops[0] in ORDERED | UNEQUAL:
        left = _bound_by_test(loop, test.left) or test.left
        if isinstance(left, (Name, Attr, Index)) and EPOCH.is_mentioned(left):
            return left
    return None


def begins_at(loop: Loop) -> Expr | None:
    """What the counter of a loop begins with, where the loop is told it: ``range(first, last)``."""
    if not isinstance(loop, For):
        return epoch_expression(loop)
    for call in walk(loop.iter):
        name = last_name(call.func) if isinstance(call, Call) else None
        if isinstance(call, Call) and (COUNTS.is_call(call) or name == "enumerate"):
            given = [*call.positional, *(a.value for a in call.args if a.keyword == "start")]
            if name == "enumerate":
                return given[1] if len(given) > 1 else None
            return given[0] if len(given) > 1 or (name == "count" and given) else None
    return None


def _numbers_enumerated(loop: For) -> list[Name]:
    """The second of ``for i, n in enumerate(range(3))``: that goes on where a run stopped."""
    source, target = loop.iter, loop.target
    if not isinstance(source, Call) or last_name(source.func) != "enumerate":
        return []
    second = target.items[1:] if isinstance(target, Seq) and len(target.items) == 2 else []
    numbers = source.positional[:1]
    return [each for each in second if isinstance(each, Name)] if any(map(_counts, numbers)) else []


def _bound_by_test(loop: While, value: Expr) -> Name | None:
    """The ``n`` of ``while (n := n + 1) < 3``: the variable that the test sets to the value."""
    for node in walk(value):
        if isinstance(node, Name):
            for binding in node.scope.bindings.get(node.id, ()):
                if binding.stmt is loop and binding.value is value and binding.how == "assign":
                    return node
    return None


def _counts(source: Expr) -> bool:
    """Whether iterating gives numbers that grow: ``range(…)``, also inside a progress bar."""
    return any(map(COUNTS.is_call, walk(source))) or any(
        binding.how in ("assign", "enter") and _goes_over_numbers(binding.value)
        for name in walk(source)
        if isinstance(name, Name) and (owner := owner_of(name)) is not None
        for binding in definitions(owner, name)
    )


def _goes_over_numbers(made: Expr | None) -> bool:
    """Whether it is ``range(…)``, or what goes over that: ``with tqdm(range(3)) as bar``."""
    while isinstance(made, Call) and not COUNTS.is_call(made):
        made = made.positional[0] if made.positional else None
    return made is not None and COUNTS.is_call(made)
