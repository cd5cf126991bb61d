"""Settings: the options of a command line, and what is looked up by a key."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.origins import Hop, origins
from sampler_lint.analysis.values import Ext, ExtObj, Obj
from sampler_lint.domain.concepts import CONFIG, ENVIRONMENT
from sampler_lint.domain.model import Model
from sampler_lint.syntax.navigation import leftmost
from sampler_lint.syntax.nodes import Attr, Call, Const, Expr, Index, Store, last_name


def options(model: Model, program: str, name: str) -> Iterator[Call]:
    """The ``add_argument`` calls of a program whose value is ``args.<name>``."""
    for call in model.project.calls_in(program, "add_argument"):
        if name in destinations(call):
            yield call


def options_of(model: Model, program: str, read: Attr) -> Iterator[Call]:
    """The same for what is read of parsed arguments, also where a file parses them that says no
    more of samplers."""
    known = [*options(model, program, read.name)]
    yield from known or (
        call for call in parsed_beside(model, read.value) if read.name in destinations(call)
    )


def parsed_beside(model: Model, parsed: Expr) -> Iterator[Call]:
    """The ``add_argument`` calls of the files in which what ``parsed`` holds is parsed."""
    for value in model.flow.values(parsed):
        if isinstance(value, ExtObj) and value.dotted.endswith(".parse_args") and value.site:
            for call in model.module_of(value.site.scope).facts.all_calls:
                if last_name(call.func) == "add_argument":
                    yield call


def destinations(call: Call) -> set[str]:
    """What an ``add_argument`` call names its value."""
    dest = call.keyword("dest")
    if isinstance(dest, Const):
        return {str(dest.value)}
    flags = (str(flag.value) for flag in call.positional if isinstance(flag, Const))
    return {flag.lstrip("-").replace("-", "_") for flag in flags}


def shown(model: Model, setting: Attr) -> set[object]:
    """What the tree itself says that a setting is, unless who starts the program says otherwise.

    By the default of an option, or where it is stored at the end of the same path of the same
    object: ``cfg.TEST.SIZE = 1``. Empty where it does not, or not by a literal.
    """
    program = model.project.program_of(model.module_of(setting.scope))
    said = [call.keyword("default") for call in options_of(model, program, setting)]
    said += [
        store.value
        for store in _stores_beside(model, setting)
        if isinstance(store.target, Attr) and _is_one_path(model, store.target, setting)
    ]
    known = [each.value for each in said if isinstance(each, Const)]
    return set(known) if len(known) == len(said) else set()


def _stores_beside(model: Model, setting: Attr) -> Iterator[Store]:
    """What is stored in the program, and in the file that makes what holds the setting."""
    found = dict.fromkeys(model.project.outer_stores_near(setting.name, setting.scope))
    for value in model.flow.values(leftmost(setting)):
        if isinstance(value, (Obj, ExtObj)) and value.site is not None:
            scopes = model.module_of(value.site.scope).facts.scopes
            found |= dict.fromkeys(store for scope in scopes for store in scope.stores)
    yield from found


def _is_one_path(model: Model, one: Attr, other: Attr) -> bool:
    """Whether two attributes are reached by the same names from the same object."""
    first: Expr = one
    second: Expr = other
    while isinstance(first, Attr) and isinstance(second, Attr) and first.name == second.name:
        first, second = first.value, second.value
    made = (Obj, ExtObj)
    values = model.flow.values(first) & model.flow.values(second)
    return any(isinstance(value, made) and value.site is not None for value in values)


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


def is_chosen(model: Model, expr: Expr) -> bool:
    """Whether all that a value comes from is a setting that who starts the program chooses."""
    found = [
        step
        for step in origins(model.flow, expr, Hop.ASSIGNED | Hop.CALLER | Hop.ATTRIBUTE)
        if step.is_end
    ]
    return bool(found) and all(
        isinstance(step.expr, Attr) and holds_options(model, step.expr.value) for step in found
    )
