"""Parts of expressions and statements that are asked for of a turn of a loop over epochs."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import ExtObj, Obj
from sampler_lint.catalog.handling import ZEROS
from sampler_lint.domain.concepts import (
    COUNTS,
    EPOCH,
    GENERATORS,
    LOGS,
    NAMESPACES,
    RANGES,
    SEEDS_ONE,
)
from sampler_lint.domain.model import Model
from sampler_lint.syntax.navigation import same, self_class, statements, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Binding,
    Call,
    Class,
    Comp,
    Const,
    Expr,
    For,
    Function,
    Index,
    Loop,
    Name,
    Seq,
    Stmt,
    dotted,
    last_name,
)


def deep(exprs: list[Expr]) -> Iterator[Expr]:
    """All parts of several expressions."""
    for each in exprs:
        yield from walk(each)


def sources(expr: Expr) -> Iterator[Expr]:
    """What an iterator goes over in the end: ``x`` in ``cycle(x)``."""
    if isinstance(expr, (Attr, Name)):
        yield expr
    elif isinstance(expr, Call):
        owner = [expr.func.value] if isinstance(expr.func, Attr) and not expr.args else []
        for each in (*owner, *expr.positional):
            yield from sources(each)
    elif isinstance(expr, Index):
        yield from sources(expr.value)
    elif isinstance(expr, Comp):
        for each in expr.iters:
            yield from sources(each)


def flat(target: Expr) -> Iterator[Expr]:
    """What an assignment gives a value, as ``a, (b, c)`` does."""
    for each in target.items if isinstance(target, Seq) else ():
        yield from flat(each)
    if not isinstance(target, (Index, Seq)):
        yield target


def parts(stmts: list[Stmt]) -> Iterator[Expr]:
    """What statements work out, but for messages."""
    for stmt in statements(stmts):
        for target in (stmt.value,) if isinstance(stmt, (Assign, AugAssign)) else ():
            yield from walk(target)
        value = getattr(stmt, "value", None)
        if isinstance(value, Expr) and not (isinstance(value, Call) and LOGS.is_call(value)):
            yield from walk(value)


def counts(source: Expr) -> bool:
    """Whether it goes over batches with their numbers."""
    for call in walk(source):
        name = last_name(call.func) if isinstance(call, Call) else None
        first = call.positional[:1] if isinstance(call, Call) else []
        if name == "enumerate":
            return True
        if name == "zip" and first and isinstance(first[0], Call):
            return COUNTS.is_call(first[0])
    return False


def called(model: Model, call: Call) -> list[Function]:
    """The functions of the tree that a call runs, also that by which torch calls a module.

    Or calls the modules that one of a library was made of: ``DistributedDataParallel(net)``.
    """
    values = [*model.flow.values(call.func)]
    for value in values:
        given = value.site.args if isinstance(value, ExtObj) else ()
        values += (v for arg in given for v in model.flow.values(arg.value) if v not in values)
    classes = [v.cls for v in values if isinstance(v, Obj)]
    methods = [model.flow.method(cls, "forward") for cls in classes if isinstance(cls, Class)]
    found = [method for method in methods if isinstance(method, Function)]
    return [*model.flow.callees(call), *found]


def seeds_alike(call: Call, loop: Loop) -> bool:
    """Whether each turn draws the same, batch by batch: it seeds with what is no epoch."""
    seeds = SEEDS_ONE.is_call(call) or (GENERATORS.is_call(call) and call.args)
    if not seeds or call.stmt is None or call.stmt.block is not loop.body:
        return False
    turn = {dotted(p) for p in walk(loop.target)} - {None} if isinstance(loop, For) else set()
    parts = [part for arg in call.args for part in walk(arg.value)]
    return not any(
        dotted(part) in turn or (isinstance(part, (Attr, Name)) and EPOCH.names(part))
        for part in parts
    )


def gives_what_lasts(function: Function) -> bool:
    """Whether a function gives back what it has not made: what lies outside, or in an object."""
    return any(
        name is not None
        and name.partition(".")[0] not in {*function.bindings} - {function.self_name}
        for stmt in function.returns
        for name in ([dotted(stmt.value)] if stmt.value is not None else [])
    )


def begins_sum(expr: Expr) -> bool:
    """Whether it is a number, or a tensor of numbers, to add others to."""
    if isinstance(expr, Call):
        return last_name(expr.func) in ZEROS
    return isinstance(expr, Const) and isinstance(expr.value, (int, float))


#: By which a function gives for a number what it gave for it before.
_REMEMBERS = frozenset({"cache", "lru_cache", "memoize", "memoized", "cached"})


def remembers(function: Function) -> bool:
    """Whether a function gives for the same arguments what it gave for them before."""
    makers = (each.func if isinstance(each, Call) else each for each in function.decorators)
    return any(last_name(each) in _REMEMBERS for each in makers)


def value_of(bound: Binding) -> Expr | None:
    """What a name is bound to, also as one of several: ``2`` for ``b`` in ``a, b = 1, 2``."""
    value = bound.value
    for index in bound.path:
        if isinstance(value, Seq) and index < len(value.items):
            value = value.items[index]
    return value


def counts_up(expr: Expr) -> bool:
    """Whether it gives numbers, one after the other."""
    return isinstance(expr, Call) and (RANGES.is_call(expr) or COUNTS.is_call(expr))


def is_paired(loop: Loop) -> bool:
    """Whether what a loop has listed is paired, place by place, with what it has not listed."""
    calls = loop.scope.calls_in(loop)
    grown = (call.func.value for call in calls if last_name(call.func) in {"append", "extend"})  # type: ignore[attr-defined]
    filled = {*map(dotted, grown)} - {None}
    zips = (c for c in loop.scope.calls if last_name(c.func) == "zip" and c not in calls)
    sides = ([bool({*map(dotted, walk(a.value))} & filled) for a in call.args] for call in zips)
    return any(any(ours) and not all(ours) for ours in sides)


def is_made_of_before(value: Expr, names: set[str | None]) -> bool:
    """Whether a value is made of what its names had, and not by adding to that."""
    sides = [value.left, value.right] if isinstance(value, Bin) and value.op == "Add" else []
    is_total = any(dotted(each) in names for each in sides)
    return not is_total and bool({*map(dotted, walk(value))} & names)


def keeps_for_next(method: Function) -> bool:
    """Whether a method stores what it makes of what it is given, and of what was there before."""
    for store in method.stores:
        target, value = store.target, store.value
        if store.how == "aug" or value is None or self_class(target.value) is None:
            continue
        given = [part.id for part in walk(value) if isinstance(part, Name)]
        if any(each != method.self_name for each in given) and (
            is_made_of_before(value, {dotted(target)})
            or any(same(one, target) and one not in {*walk(value)} for one in method.reads)
        ):
            return True
    return False


def is_part(expr: Expr | None) -> bool:
    """Whether an expression only names something, or a part of it."""
    return isinstance(expr, (Attr, Index, Name))


def asks_scope(expr: Expr | None) -> bool:
    """Whether a call gives the variables of a scope, or the attributes of an object."""
    return isinstance(expr, Call) and NAMESPACES.is_call(expr)
