"""Settings: the options of a command line, and what is looked up by a key."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import Ext, ExtObj
from sampler_lint.domain.concepts import CONFIG, ENVIRONMENT
from sampler_lint.domain.model import Model
from sampler_lint.syntax.nodes import Attr, Call, Const, Expr, Index


def options(model: Model, program: str, name: str) -> Iterator[Call]:
    """The ``add_argument`` calls of a program whose value is ``args.<name>``."""
    for call in model.project.calls_in(program, "add_argument"):
        if name in destinations(call):
            yield call


def destinations(call: Call) -> set[str]:
    """What an ``add_argument`` call names its value."""
    dest = call.keyword("dest")
    if isinstance(dest, Const):
        return {str(dest.value)}
    flags = (str(flag.value) for flag in call.positional if isinstance(flag, Const))
    return {flag.lstrip("-").replace("-", "_") for flag in flags}


def looked_up(expr: Expr) -> tuple[Expr | None, object] | None:
    """What is read by which literal key: ``x["k"]``, ``x.get("k")``, ``getenv("k")`` of None."""
    if isinstance(expr, Index) and isinstance(expr.key, Const):
        return expr.value, expr.key.value
    key = next(iter(expr.positional), None) if isinstance(expr, Call) else None
    if not isinstance(expr, Call) or not isinstance(key, Const) or not ENVIRONMENT.is_call(expr):
        return None
    owner = expr.func.value if isinstance(expr.func, Attr) else None
    return (owner, key.value) if isinstance(key.value, str) else None


def holds_options(model: Model, expr: Expr) -> bool:
    """Whether an expression holds what who starts the program chooses, by name or as parsed."""
    return CONFIG.names(expr) or any(
        isinstance(value, (Ext, ExtObj)) and value.dotted.endswith(".parse_args")
        for value in model.flow.values(expr)
    )
