"""Which assignments of a local name can reach a place where it is read."""

from __future__ import annotations

from sampler_lint.model.facts import Binding, Class, For, Name, Stmt, While


def reaching(name: Name) -> list[Binding] | None:
    """The bindings of a local name that can reach this read; None if order says nothing."""
    scope, stmt = name.scope, name.stmt
    bindings = scope.bindings.get(name.id)
    if not bindings or stmt is None or isinstance(scope, Class):
        return None
    if stmt.scope is not scope:
        return None
    if len(bindings) == 1:
        return None
    dominating: Binding | None = None
    for binding in bindings:
        if binding.how == "param":
            if dominating is None:
                dominating = binding
            continue
        if binding.stmt is None or binding.stmt.scope is not scope:
            return None
        later = (
            dominating is None
            or dominating.stmt is None
            or binding.stmt.order > dominating.stmt.order
        )
        if later and _before(binding, stmt) and _dominates(binding.stmt, stmt):
            dominating = binding
    first = dominating.stmt.order if dominating is not None and dominating.stmt is not None else 0
    out = []
    for binding in bindings:
        if binding is dominating:
            out.append(binding)
        elif binding.stmt is None:
            if dominating is None:
                out.append(binding)
        elif binding.stmt.order >= first and (
            _before(binding, stmt) or _loops_back(binding.stmt, stmt, dominating)
        ):
            out.append(binding)
    return out


def _before(binding: Binding, stmt: Stmt) -> bool:
    """Whether the binding is made before ``stmt`` is reached in reading order."""
    bound = binding.stmt
    assert bound is not None
    if bound is stmt:
        # `for x in x:` and `x = f(x)` read first; the loop body sees the loop's own binding.
        return False
    return bound.order < stmt.order


def _dominates(bound: Stmt, stmt: Stmt) -> bool:
    """Whether every way to ``stmt`` leads through ``bound`` (an earlier one)."""
    if isinstance(bound, For):
        return bound.encloses(stmt) and any(s is bound for s in stmt.ancestors())
    parent = bound.parent
    if parent is None:
        return True
    if not any(ancestor is parent for ancestor in stmt.ancestors()):
        return False
    inner: Stmt = stmt
    for ancestor in stmt.ancestors():
        if ancestor is parent:
            break
        inner = ancestor
    return inner.block is bound.block


def _loops_back(bound: Stmt, stmt: Stmt, dominating: Binding | None) -> bool:
    """Whether a loop around both brings a later binding to ``stmt``."""
    for ancestor in stmt.ancestors():
        if isinstance(ancestor, (For, While)) and ancestor.encloses(bound):
            if (
                dominating is not None
                and dominating.stmt is not None
                and ancestor.encloses(dominating.stmt)
                and ancestor is not dominating.stmt
            ):
                continue
            return True
    return False
