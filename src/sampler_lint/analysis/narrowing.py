"""What a test leaves out: that a name is ``None``, or a class of another name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeGuard

from sampler_lint.analysis.reaching import may_run_before, surely_runs_before
from sampler_lint.syntax.navigation import leaves, owner_of, stands_in, statements
from sampler_lint.syntax.nodes import (
    EQUAL,
    UNEQUAL,
    Assign,
    Attr,
    Choice,
    Compare,
    Const,
    Expr,
    If,
    Imported,
    Name,
    Scope,
    Stmt,
    Unary,
    dotted,
    last_name,
)

#: The tests for one name of a scope that tell what it is not, and where it is bound anew.
_Asked = tuple[list[If], list[Stmt]]


def where_not_none(read: Name | Attr) -> list[Expr] | None:
    """What may be None all the same, where a test on the way to a read leaves out that it is.

    It stands around the read, or above it with a block that fills what is None or leaves:
    ``if self.data is None: self.data = load()``, of which that call is left. None without a test.
    """
    stmt, scope = read.stmt, read.scope
    asked = _asked(scope)
    if stmt is None or not asked or stmt.scope is not scope:
        return None
    name = dotted(read)
    if name not in asked:
        return None
    tests, bound = asked[name]
    for test in tests:
        if stands_in(stmt, test.body):
            begins = test.body[0].order if _leaves_out(test.test, name, True) else None
        elif stands_in(stmt, test.orelse):
            begins = test.orelse[0].order if _leaves_out(test.test, name, False) else None
        else:
            is_filled = (
                surely_runs_before(test, stmt)
                and _leaves_out(test.test, name, False)
                and (_fills(test.body, name) or leaves(test.body[-1]))
            )
            begins = test.last_order + 1 if is_filled else None
        if begins is not None and not any(
            begins <= each.order and may_run_before(each, stmt) for each in bound
        ):
            return _fills(test.body, name) if begins > test.last_order else []
    return None


def where_named(read: Name) -> str | None:
    """The name of the class or function that a name is, in a branch of ``cls.__name__ == "A"``.

    Or of ``cls is A``.
    """
    stmt, scope = read.stmt, read.scope
    if stmt is None or stmt.scope is not scope:
        return None
    tests, bound = _asked(scope).get(read.id, ((), ()))
    for test in tests:
        for block, outcome in ((test.body, True), (test.orelse, False)):
            said = _name_said(test.test, read.id, outcome) if stands_in(stmt, block) else None
            if said is not None and not any(
                block[0].order <= each.order and may_run_before(each, stmt) for each in bound
            ):
                return said
    return None


def _name_said(test: Expr, name: str, outcome: bool) -> str | None:
    """What ``name.__name__`` is where a test has that outcome."""
    if isinstance(test, Choice) and test.kind in {"and", "or"}:
        told = (_name_said(option, name, outcome) for option in test.options)
        return next(filter(None, told), None) if (test.kind == "and") is outcome else None
    if isinstance(test, Unary) and test.op == "Not":
        return _name_said(test.operand, name, not outcome)
    if not _compares(test) or (test.ops[0] in EQUAL) is not outcome:
        return None
    kind = test.rights[0]
    if dotted(test.left) == name:
        return _class_named(kind)
    said = kind.value if isinstance(kind, Const) else None
    return said if isinstance(said, str) and dotted(test.left) == f"{name}.__name__" else None


def _compares(test: Expr) -> TypeGuard[Compare]:
    return isinstance(test, Compare) and len(test.ops) == 1 and test.ops[0] in EQUAL | UNEQUAL


def _class_named(expr: Expr) -> str | None:
    """What a class is called where it is made, if something is written as one: ``data.Sampler``."""
    name = last_name(expr) if isinstance(expr, (Name, Attr)) else None
    owner = owner_of(expr) if isinstance(expr, Name) else None
    for binding in owner.bindings[name] if owner is not None and name is not None else ():
        if isinstance(binding.payload, Imported):
            name = binding.payload.attribute
        elif binding.how != "class":
            return None
    return name if name is not None and name[:1].isupper() and not name.isupper() else None


def _asked(scope: Scope) -> dict[str, _Asked]:
    """What of a scope is asked for, by its dotted name."""
    known: dict[Scope, dict[str, _Asked]] = scope.module.memo.setdefault(_asked, {})
    if scope not in known:
        tests: defaultdict[str, list[If]] = defaultdict(list)
        for stmt in statements(scope.body):
            if not isinstance(stmt, If) or _is_of_match(stmt):
                continue
            for name in set(_names_asked(stmt.test)):
                tests[name].append(stmt)
        bound: dict[str, list[Stmt]] = {name: [] for name in tests}
        for store in scope.stores if tests else ():
            bound.get(dotted(store.target) or "", []).append(store.stmt)
        for name in tests:
            for binding in scope.bindings.get(name, ()):
                if binding.stmt is not None:
                    bound[name].append(binding.stmt)
        known[scope] = {name: (found, bound[name]) for name, found in tests.items()}
    return known[scope]


def _is_of_match(stmt: If) -> bool:
    """Whether it stands for a ``match`` or a ``case`` without a guard, whose test is no truth."""
    begins = (stmt.row, stmt.col)
    around = stmt.parent
    return any((inner.row, inner.col) == begins for inner in stmt.body) or (
        isinstance(around, If) and around.test is stmt.test
    )


def _names_asked(test: Expr) -> Iterator[str]:
    if isinstance(test, Choice) and test.kind in {"and", "or"}:
        for option in test.options:
            yield from _names_asked(option)
    elif isinstance(test, Unary) and test.op == "Not":
        yield from _names_asked(test.operand)
    else:
        asked = test.left if _compares(test) else test
        if isinstance(asked, Attr) and asked.name == "__name__":
            asked = asked.value
        name = dotted(asked)
        if name is not None:
            yield name


def _leaves_out(test: Expr, name: str, outcome: bool) -> bool:
    """Whether what is None cannot give a test that outcome."""
    if isinstance(test, Choice) and test.kind in {"and", "or"}:
        return (test.kind == "and") is outcome and any(
            _leaves_out(option, name, outcome) for option in test.options
        )
    if isinstance(test, Unary) and test.op == "Not":
        return _leaves_out(test.operand, name, not outcome)
    if _compares_with_none(test):
        return dotted(test.left) == name and (test.ops[0] in UNEQUAL) is outcome
    return outcome and dotted(test) == name


def _compares_with_none(test: Expr) -> TypeGuard[Compare]:
    return (
        isinstance(test, Compare)
        and len(test.ops) == 1
        and test.ops[0] in EQUAL | UNEQUAL
        and isinstance(test.rights[0], Const)
        and test.rights[0].value is None
    )


def _fills(block: list[Stmt], name: str) -> list[Expr]:
    """What a block sets it to."""
    return [
        stmt.value
        for stmt in block
        if isinstance(stmt, Assign) and any(dotted(target) == name for target in stmt.targets)
    ]
