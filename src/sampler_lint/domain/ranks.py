"""Ranks and processes: which numbers are local to a node, and which programs run as several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

from sampler_lint import catalog
from sampler_lint.analysis.origins import LOCAL, Hop, Step, depends_on, part_of
from sampler_lint.analysis.reaching import surely_runs_before
from sampler_lint.analysis.values import Ext, ExtObj, Lit, Obj, Value
from sampler_lint.catalog.torch import MODULE_ITSELF
from sampler_lint.domain.concepts import (
    DEVICES,
    ENVIRONMENT,
    LOCAL_RANK,
    LOCAL_SIZE,
    PROCESSES,
    RANK,
    WORLD_SIZE,
)
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.options import looked_up, options
from sampler_lint.limits import DEEPEST_CHAIN, MOST_REACHED
from sampler_lint.remembered import remembered
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import inherited, nodes_in, self_stores, statements, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Compare,
    Const,
    Expr,
    Function,
    If,
    Scope,
    Stmt,
    last_name,
)
from sampler_lint.workspace.project import Module

_AVERAGING = frozenset(name.rpartition(".")[2] for name in catalog.AVERAGING)


def says_where(step: Step) -> bool:
    """Whether it only says where values lie, never which: ``data.to(device)``, ``device=``."""
    call = step.towards.expr if step.towards is not None else None
    return isinstance(call, Call) and any(
        arg.value is step.expr
        and (
            arg.keyword in {"device", "map_location"}
            or (isinstance(call.func, Attr) and call.func.name in MODULE_ITSELF)
        )
        for arg in call.args
    )


def kinds(model: Model, expr: Expr) -> set[str]:
    """What kinds of number an expression may be.

    ``local rank``, ``local size``, ``rank``, ``world size``, ``device count``, ``none`` or
    ``unknown``. The number that stands for it in a run of one process says nothing beside it.
    """
    if isinstance(expr, Attr) and expr.name == "local_rank" and _is_launcher_option(model, expr):
        return {"local rank"}
    return _kinds(model, model.flow.values(expr))


def kinds_of_part(model: Model, expr: Expr, path: tuple[int, ...]) -> set[str]:
    """The same of the part of a value that ``a, b = value`` gives to one of the names."""
    return _kinds(model, model.flow.part(expr, path))


def _kinds(model: Model, values: Iterable[Value]) -> set[str]:
    return {_kind(model, value) for value in values} - {"one process"} or {"unknown"}


def _kind(model: Model, value: Value) -> str:
    if isinstance(value, Lit):
        is_number = type(value.value) is int and value.value in {-1, 0, 1}
        return "none" if value.value is None else "one process" if is_number else "unknown"
    if isinstance(value, Ext):
        return catalog.number(value.dotted) or "unknown"
    if not isinstance(value, ExtObj):
        return "unknown"
    if value.dotted == "int" and value.site.positional:
        return _environment_kind(model, value.site.positional[0])
    if value.dotted in LOCAL_RANK.made_by:
        return "local rank"
    if value.dotted == "torch.cuda.device_count":
        return "device count"
    # With a group, the answer is about the group.
    if not value.site.args:
        return next((name for name, kind in _KINDS if value.dotted in kind.made_by), "unknown")
    return "unknown"


_KINDS = (
    *(("local rank", LOCAL_RANK), ("local size", LOCAL_SIZE)),
    *(("rank", RANK), ("world size", WORLD_SIZE)),
)


def _environment_kind(model: Model, expr: Expr) -> str:
    """The kind of ``os.environ["LOCAL_RANK"]`` and its other spellings."""
    owner, key = looked_up(expr) or (None, None)
    reader = expr.func if isinstance(expr, Call) else owner
    values = model.flow.values(reader) if reader is not None else ()
    if values and all(isinstance(v, Ext) and v.dotted in ENVIRONMENT.made_by for v in values):
        return next((name for name, kind in _KINDS if key in kind.variables), "unknown")
    return "unknown"


def _is_launcher_option(model: Model, expr: Attr) -> bool:
    """Whether ``args.local_rank`` is the option that torch's launcher fills, and nothing else."""
    known: dict[Attr, bool] = model.memo.setdefault(_is_launcher_option, {})
    if expr not in known:
        known[expr] = True  # what is stored from itself says nothing else
        program = model.project.program_of(model.module_of(expr.scope))
        known[expr] = any(options(model, program, "local_rank")) and all(
            store.value is not None and kinds(model, store.value) == {"local rank"}
            for store in model.project.stores_near("local_rank", expr.scope)
        )
    return known[expr]


def starts(model: Model, module: Module) -> Iterator[Call]:
    """The ``init_process_group`` calls of the program of ``module``."""
    yield from model.project.calls_in(model.project.program_of(module), "init_process_group")


def joined_before(model: Model, call: Call, depth: int = 0) -> bool:
    """Whether torch has certainly joined the processes wherever a call is made."""
    if any(
        surely_runs_before(other.stmt, call.stmt) and _joins(model, other, depth)
        for other in call.scope.calls
    ):
        return True
    callers = model.flow.callers(call.scope)
    return (
        depth < DEEPEST_CHAIN
        and bool(callers)
        and all(joined_before(model, caller, depth + 1) for caller in callers)
    )


def _joins(model: Model, call: Call, depth: int) -> bool:
    """Whether a call joins the processes, or calls a function of the tree that always does."""
    if last_name(call.func) == "init_process_group":
        return True
    callees = model.flow.callees(call) if depth < DEEPEST_CHAIN else ()
    return bool(callees) and all(
        any(
            inner.stmt is not None
            and (inner.stmt is callee.body[-1] or surely_runs_before(inner.stmt, callee.body[-1]))
            and _joins(model, inner, depth + 1)
            for inner in callee.calls
        )
        for callee in callees
        if callee.body
    )


# --------------------------------------------------------------------------- reaching


@remembered
def reached(model: Model, scope: Scope) -> frozenset[Scope]:
    """The scope and every function of the tree that running it may call."""
    return frozenset(islice(closure([scope], model.flow.called_by), MOST_REACHED))


def reached_on(model: Model, entry: Scope, calls: Iterable[Call], end: Scope) -> frozenset[Scope]:
    """The scope and every function that running it may call in a run that comes to another.

    A call that chooses among functions calls the one that leads there, unless it is made again: in
    a loop, or since its own function is called at several places.
    """
    left_out: dict[Scope, set[Function]] = {}
    way = [*calls]
    for call, onward in zip(way, [*(each.scope for each in way), end][1:], strict=True):
        callees = {*model.flow.callees(call)}
        again = any(loop.encloses(call.stmt) for loop in call.scope.loops if call.stmt) or (
            isinstance(call.scope, Function) and len({*model.flow.callers(call.scope)}) > 1
        )
        if isinstance(onward, Function) and onward in callees and not again:
            elsewhere = (each for each in call.scope.calls if each is not call)
            callees -= {onward, *(f for each in elsewhere for f in model.flow.callees(each))}
            others = (f for f in callees if f.cls is None or f.cls is not onward.cls)
            left_out.setdefault(call.scope, set()).update(others)
    if not any(left_out.values()):
        return reached(model, entry)
    found = closure(
        [entry],
        lambda scope: (f for f in model.flow.called_by(scope) if f not in left_out.get(scope, ())),
    )
    return frozenset(islice(found, MOST_REACHED))


def chains(
    model: Model, scope: Scope, may: Callable[[Call, tuple[Call, ...]], bool] | None = None
) -> Iterator[tuple[Scope, tuple[Call, ...]]]:
    """Every scope that leads to ``scope``, nearest first, with the calls that lead there.

    Where ``may`` is given, over those that may be made in a run that comes to the calls after them.
    """
    seen = {scope}
    todo: list[tuple[Scope, tuple[Call, ...]]] = [(scope, ())]
    while todo:
        current, calls = todo.pop(0)
        yield current, calls
        if isinstance(current, Function) and len(calls) < DEEPEST_CHAIN:
            for call in model.flow.callers(current):
                if call.scope not in seen and (may is None or may(call, calls)):
                    seen.add(call.scope)
                    todo.append((call.scope, (call, *calls)))


@remembered
def data_parallel(model: Model, scopes: frozenset[Scope]) -> list[Call]:
    """The calls that let several processes train one model, on different data, in reading order.

    They wrap the model or the optimizer, or add up gradients over the processes.
    """
    spelled: dict[Module, set[str]] = {}
    calls = []
    for scope in scopes:
        module = model.module_of(scope)
        if module not in spelled:
            imports = module.facts.imports
            spelled[module] = {n for n, imported in imports if imported.attribute in _AVERAGING}
        for call in scope.calls:
            name = last_name(call.func)
            if name in _AVERAGING or name in spelled[module]:
                values = model.flow.values(call.func)
                found = {catalog.averaging(v.dotted) if isinstance(v, Ext) else "" for v in values}
                if found == {"gradients"} or (
                    found == {"tensors"} and _is_of_gradients(model, call.positional[:1])
                ):
                    calls.append(call)
    return sorted(calls, key=lambda call: (model.module_of(call.scope).path, call.row, call.col))


def _is_of_gradients(model: Model, given: list[Expr]) -> bool:
    hops = LOCAL | Hop.ELEMENT | Hop.PART
    return any(depends_on(model.flow, each, _is_gradient, hops) is not None for each in given)


def _is_gradient(expr: Expr) -> bool:
    return isinstance(expr, Attr) and expr.name == "grad"


def is_about_processes(model: Model, test: Expr) -> bool:
    """Whether a test asks for processes or devices, or whether there is more than one of something.

    Also by a name that is made of that, or a setting that is looked up by its key.
    """
    return depends_on(model.flow, test, partial(_asks_for_processes, model), LOCAL) is not None


def _asks_for_processes(model: Model, expr: Expr) -> bool:
    if isinstance(expr, Compare) and expr.ops == ["Gt"] and isinstance(expr.rights[0], Const):
        return bool(expr.rights[0].value == 1)
    return PROCESSES.is_mentioned(expr) or any(
        (isinstance(node, Const) and PROCESSES.says(str(node.value)))
        or (
            isinstance(node, Call)
            and any(
                isinstance(value, Ext) and value.dotted.startswith("torch.distributed.")
                for value in model.flow.values(node.func)
            )
        )
        or _counts_devices(node)
        for node in walk(expr)
    )


def is_guarded(call: Call) -> bool:
    """Whether the call stands below a condition about ranks or processes."""
    return call.stmt is not None and inherited(call.stmt, _is_below_guard, False)


def _is_below_guard(found: bool, stmt: Stmt) -> bool:
    around = stmt.parent
    return found or (
        isinstance(around, If)
        and (PROCESSES.is_mentioned(around.test) or _counts_devices(around.test))
    )


def _counts_devices(test: Expr) -> bool:
    """Whether a condition compares a number of devices (``ngpus > 1``)."""
    return isinstance(test, Compare) and DEVICES.is_mentioned(test)


def text_of_scope(model: Model, scope: Scope) -> str:
    """The lines a class or function stands on."""
    source = model.module_of(scope).source
    starts_ = source.line_starts
    end = starts_[scope.end_row] if scope.end_row < len(starts_) else len(source.text)
    return source.stretch(starts_[scope.row - 1], end)


def knows_ranks(model: Model, cls: Class) -> bool | None:
    """Whether a class of the tree mentions ranks, in itself or a base; None if one is unknown.

    Not where it only keeps what it is given of them, and reads that nowhere.
    """
    answer: bool | None = False
    for base in model.flow.mro(cls):
        if isinstance(base, Class):
            if PROCESSES.says(text_of_scope(model, base)) and not keeps_ranks_only(model, base):
                return True
        elif not (isinstance(base, str) and base.startswith("torch.")):
            answer = None
    return answer


def keeps_ranks_only(model: Model, cls: Class) -> bool:
    """Whether all that a class says of ranks is what it takes and stores."""
    kept = False
    for scope in scopes_inside(cls):
        stores = [store for _, store in self_stores([scope])]
        stored = {n for one in stores for n in (one.target, part_of(one.value, one.path))}
        for node in nodes_in(statements(scope.body)):
            said = str(node.value) if isinstance(node, Const) else last_name(node) or ""
            if isinstance(node, Expr) and PROCESSES.says(said):
                if node not in stored:
                    return False
                kept = True
    return kept and not any(
        PROCESSES.says(read.name)
        for below in model.flow.subclasses(cls)
        for scope in scopes_inside(below)
        for read in scope.reads
    )


def built_classes(model: Model, expr: Expr) -> set[Class | str] | None:
    """The classes of the objects an expression may be; None if it may be anything else."""
    out: set[Class | str] = set()
    for value in model.flow.values(expr):
        if isinstance(value, Obj):
            out.add(value.cls)
        elif isinstance(value, ExtObj) and value.dotted.rpartition(".")[2][:1].isupper():
            out.add(value.dotted)
        else:
            return None
    return out or None
