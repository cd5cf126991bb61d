"""Dicts whose entries a call is given by ``**``."""

from __future__ import annotations

from sampler_lint.syntax.nodes import Attr, Expr, Name


def is_changed(table: Name) -> bool:
    """Whether something is stored in the dict, called on it, or it is passed on whole."""

    def is_it(expr: Expr) -> bool:
        return isinstance(expr, Name) and expr.id == table.id

    scopes = [scope for scope in table.scope.module.scopes if table.scope in scope.outward()]
    return any(is_it(store.target.value) for scope in scopes for store in scope.stores) or any(
        (isinstance(call.func, Attr) and is_it(call.func.value))
        or any(not arg.stars and is_it(arg.value) for arg in call.args)
        for scope in scopes
        for call in scope.calls
    )
