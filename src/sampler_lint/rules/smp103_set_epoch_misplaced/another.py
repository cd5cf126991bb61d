"""SMP103: ``set_epoch`` on what is built for that very call, and which no pass reads."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.origins import Hop, ends
from sampler_lint.domain.epoch_calls import carriers
from sampler_lint.domain.epochs import EpochLoop
from sampler_lint.domain.model import Model
from sampler_lint.findings import Related
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import nodes_in, statements, unparse
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Declare,
    Expr,
    Function,
    Name,
)


def on_another(model: Model, found: EpochLoop, call: Call) -> Suspect | None:
    """A call on a part of a loader that is another one each time it is asked for."""
    assert isinstance(call.func, Attr)
    made = next(filter(None, (_made(model, each) for each in _owners(call.func.value))), None)
    if made is None:
        return None
    asked, sites = made
    samplers = [carrier.sampler.site for carrier in carriers(model, found.inner.loader)]
    factories = {site.scope for site in sites}
    if not all(
        site is not None and site.scope in factories and not _is_kept(model, site)
        for site in (*samplers, *sites)
    ):
        return None
    spelled = unparse(asked)
    return Suspect(
        model.module_of(call.scope),
        call,
        f"`{spelled}` builds another loader each time: this `set_epoch` reaches none that is read",
        why=tuple(Related(model.place(one.scope, one), "built anew here") for one in sites[:2]),
        effect="every loader that is read begins with epoch 0, so every epoch repeats one order",
        advice=f"keep `{spelled}` in a variable, and call `set_epoch` and iterate on that",
    )


def _owners(expr: Expr) -> Iterator[Attr | Call]:
    """What an attribute is read of, and so on: as far as it is spelled in one expression."""
    while isinstance(expr, Attr):
        yield expr
        expr = expr.value
    if isinstance(expr, Call):
        yield expr


def _made(model: Model, expr: Attr | Call) -> tuple[Expr, list[Call]] | None:
    """An expression that builds what it gives each time it is evaluated, and where it does."""
    found = [*ends(model.flow, expr, Hop.ASSIGNED | Hop.RETURN)]
    sites = [one for one in found if isinstance(one, Call) and one is not expr]
    if not sites or len(sites) < len(found):
        return None
    if any(model.role(value) != "loader" for one in sites for value in model.flow.values(one)):
        return None
    scopes = [one.scope for one in sites]
    is_there = all(isinstance(each, Function) and not _is_cached(each) for each in scopes)
    return (expr, sites) if is_there and expr.scope not in scopes else None


def _is_cached(function: Function) -> bool:
    plain = {"property", "staticmethod", "classmethod"}
    return any(not isinstance(one, Name) or one.id not in plain for one in function.decorators)


def _is_kept(model: Model, made: Call) -> bool:
    """Whether its function keeps what it has made elsewhere than in its own variables."""
    stmt, scope = made.stmt, made.scope
    if not isinstance(stmt, Assign):
        return isinstance(stmt, Declare)
    names = {target.id for target in stmt.targets if isinstance(target, Name)}
    if len(names) < len(stmt.targets) or not isinstance(scope, Function):
        return True
    for node in nodes_in(statements(scope.body)):
        if not isinstance(node, Call):
            continue
        handed = any(isinstance(arg.value, Name) and arg.value.id in names for arg in node.args)
        if handed and not any(map(model.role, model.flow.values(node))):
            return True
    return any(isinstance(store.value, Name) and store.value.id in names for store in scope.stores)
