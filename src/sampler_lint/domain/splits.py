"""How an iterable dataset divides its samples among the workers of a loader."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from functools import partial

from sampler_lint import catalog
from sampler_lint.analysis.origins import LOCAL, Hop, depends_on, ends, only
from sampler_lint.analysis.values import Ext, ExtObj, FuncRef, Obj, Pack, Unknown, Value
from sampler_lint.domain.concepts import (
    DRAW,
    ITERATES,
    ORDERS,
    PROCESSES,
    RANGES,
    RANK,
    STREAMS,
    WORKERS,
    WORLD_SIZE,
    called_name,
)
from sampler_lint.domain.datasets import is_iterated
from sampler_lint.domain.epoch_state import is_closed, lookup, reach
from sampler_lint.domain.model import Model
from sampler_lint.domain.options import holds_options
from sampler_lint.domain.ranks import keeps_ranks_only, knows_ranks, text_of_scope
from sampler_lint.limits import DEEPEST_WRAPPING, MOST_SEARCHED_FOR_STEP
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import nodes_in, statements, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Choice,
    Class,
    Comp,
    Expr,
    For,
    Function,
    Index,
    Name,
    Other,
    While,
    Yield,
    last_name,
)

#: Modules of Python by which processes talk, so that each gets something else.
_SHARED = frozenset(
    {
        *("asyncio", "concurrent", "http", "multiprocessing", "queue", "select", "selectors"),
        *("socket", "ssl", "subprocess", "sys", "threading", "urllib"),
    }
)
#: Libraries that know nothing of the workers of a loader, so that all get the same of them.
_APART = (sys.stdlib_module_names | {*dir(builtins), "numpy", "pandas"}) - _SHARED
#: What takes one item of what it is given, or never ends.
_NOT_WHOLE = frozenset({"next", "cycle", "count", "repeat"})


def whole_pass(model: Model, dataset: Obj) -> Function | None:
    """The ``__iter__`` by which every worker certainly gives all that there is.

    None where the dataset may ask which worker it is in, draws what it yields or never ends.
    """
    return _pass_that(model, dataset, _gives_all)


def _pass_that(
    model: Model, dataset: Obj, gives: Callable[[Model, Obj, Class, Function], bool]
) -> Function | None:
    """The ``__iter__`` of a dataset of which all is seen, if that gives what is asked for."""
    known: dict[Obj, Function | None] = model.memo.setdefault(gives, {})
    if dataset not in known:
        known[dataset] = None  # of what is made of itself
        cls = dataset.cls
        if isinstance(cls, Class) and is_closed(model, cls):
            method = lookup(model, cls, "__iter__", None)
            if (
                isinstance(method, Function)
                and not any(_is_unseen(model, call) for call in _open_calls(model, cls))
                and gives(model, dataset, cls, method)
            ):
                known[dataset] = method
    return known[dataset]


def _gives_all(model: Model, dataset: Obj, cls: Class, method: Function) -> bool:
    if not knows_no_worker(model, cls):
        return (
            not _open_calls(model, cls)
            and not _leaves_it_to_others(model, cls)
            and model.sharing(cls).repeats_in_workers
            and not _takes_parts(model, dataset, whole_pass)
        )
    sources = list(_sources(model, method, 0))
    return bool(sources) and all(each is not None and _is_whole(model, each) for each in sources)


def _open_calls(model: Model, cls: Class) -> list[Call]:
    """The calls of a pass on another object of which a base is known: it may be of any below."""
    return [
        call
        for call in reach(model, cls, "__iter__", "__next__").calls
        if isinstance(call.func, Attr)
        and any(
            isinstance(value, Obj)
            and value.site is None
            and isinstance(value.cls, Class)
            and cls not in model.flow.mro(value.cls)
            and value.cls not in model.flow.mro(cls)
            for value in model.flow.values(call.func.value)
        )
    ]


def _is_unseen(model: Model, call: Call) -> bool:
    """Whether a file that nobody looked at may define what is called, or nothing does."""
    project = model.project
    definition = f"def {last_name(call.func)}(".encode()
    seen = {module.path for module in project.candidates}
    unseen = (path for path in project.files if path not in seen)
    return not model.flow.callees(call) or any(project.says(path, definition) for path in unseen)


def _takes_parts(
    model: Model, dataset: Obj, whole: Callable[[Model, Obj], Function | None]
) -> bool:
    """Whether a dataset reads another one of the tree, which may divide what it gives.

    A small world that the class was tried in has a plain list in its place.
    """
    cls = dataset.cls
    assert isinstance(cls, Class)
    return any(
        isinstance(value, Obj)
        and value.cls is not cls
        and is_iterated(model, value.cls)
        and whole(model, value) is None
        for name in {read.name for read in reach(model, cls, "__iter__", "__next__").self_reads()}
        for value in model.flow.ask_field(dataset, name)
    )


def same_on_ranks(model: Model, loader: Obj) -> Function | Call | None:
    """What gives every rank all of a loader's iterable data, whoever divides it among workers.

    The ``__iter__`` of a class of the tree, or the call that opens a stream of `datasets`. None
    where the data may hang on the rank, or on a draw that ranks do not share.
    """
    data = model.argument(loader, "dataset")
    if data is None:
        return None
    data = model.flow.chosen(data, loader.through)
    found: Function | Call | None = None
    for value in model.flow.values(data):
        if not isinstance(value, (Obj, ExtObj)):
            return None
        found = _same_pass(model, value) if isinstance(value, Obj) else _stream(model, data)
        if found is None:
            return None
    is_part = any(
        depends_on(model.flow, each, PROCESSES.is_mentioned)
        for each in _heeded(model, loader, data)
    )
    return None if is_part else found


def _heeded(model: Model, loader: Obj, data: Expr) -> list[Expr]:
    """What decides the data of a loader: not the rank that its class is told and never reads."""
    built = model.passed_to(loader, "dataset")
    dataset = next(iter(built)) if len(built) == 1 else None
    if not isinstance(dataset, Obj) or not isinstance(dataset.cls, Class) or dataset.site is None:
        return [data]
    if not keeps_ranks_only(model, dataset.cls):
        return [data]
    return [arg.value for arg in dataset.site.args if not _says_rank(arg.value)]


def _says_rank(given: Expr) -> bool:
    """Whether an argument is a rank, or the number of ranks, by its name."""
    if isinstance(given, Call):
        return RANK.is_call(given) or WORLD_SIZE.is_call(given)
    return RANK.names(given) or WORLD_SIZE.names(given)


def _stream(model: Model, data: Expr) -> Call | None:
    """The call of `datasets` that opens the stream that a loader reads."""
    steps = depends_on(model.flow, data, partial(opens_stream, model))
    return steps.expr if steps is not None and isinstance(steps.expr, Call) else None


def opens_stream(model: Model, expr: Expr) -> bool:
    """Whether a call opens a stream of `datasets`."""
    given = expr.keyword("streaming") if STREAMS.is_call(expr) and isinstance(expr, Call) else None
    return (
        given is not None
        and model.flow.constants(given) == {True}
        and isinstance(expr, Call)
        and STREAMS.is_made(expr, model.flow.values)
    )


def opens_table(model: Model, data: Expr) -> bool:
    """Whether it is what `datasets` opened whole, to be looked up by index, and no shard of it."""
    for value in model.flow.values(data):
        if not isinstance(value, ExtObj):
            return False
        opener, *asked = value.dotted.split("()")
        if opener not in STREAMS.made_by or not catalog.OF_STREAMS.isdisjoint(
            ".".join(asked).split(".")
        ):
            return False
    step = depends_on(model.flow, data, STREAMS.is_call)
    call = step.expr if step is not None else None
    if not isinstance(call, Call) or call.has_double_star:
        return False
    given = call.keyword("streaming")
    return given is None or model.flow.constants(given) == {False}


def _same_pass(model: Model, dataset: Obj) -> Function | None:
    return _pass_that(model, dataset, _gives_the_same)


def _gives_the_same(model: Model, dataset: Obj, cls: Class, method: Function) -> bool:
    if not is_iterated(model, cls):
        return False
    if knows_ranks(model, cls) is not False:
        repeats = not _open_calls(model, cls) and model.sharing(cls).repeats_on_ranks
        return repeats and not _takes_parts(model, dataset, _same_pass)
    found = reach(model, cls, "__iter__", "__next__")
    return not (
        found.opaque
        or found.outside
        or _takes_parts(model, dataset, _same_pass)
        or any(_may_divide(model, source) for source in _sources(model, method, 0))
        or not all(_is_told_nothing(model, call) for call in found.calls)
    )


def _may_divide(model: Model, source: Expr | None, seen: tuple[Expr, ...] = ()) -> bool:
    """Whether a pass goes over what nobody knows, and no setting names: it may ask for its rank.

    A part of what is known is known, too.
    """
    if source is None or source in seen:
        return False
    parts: list[Expr] = []
    for end in ends(model.flow, source, Hop.ASSIGNED | Hop.ATTRIBUTE | Hop.CALLER):
        if isinstance(end, (Choice, Index)):
            parts += end.options if isinstance(end, Choice) else [end.value]
        elif _is_foreign(model, end):
            return True
    return any(_may_divide(model, part, (*seen, source)) for part in parts)


def _is_foreign(model: Model, source: Expr) -> bool:
    if opens_stream(model, source):
        return False
    if not isinstance(source, Call) and any(holds_options(model, part) for part in walk(source)):
        return False
    return any(
        isinstance(value, Unknown)
        or (isinstance(value, ExtObj) and not _is_apart(value, but="torch"))
        for value in model.flow.values(source)
    )


def _is_apart(value: Ext | ExtObj, but: str = "") -> bool:
    """Whether it is of a library that knows nothing of processes, or of the one named."""
    return value.dotted.split(".")[0].removesuffix("()") in _APART | {but}


def _is_told_nothing(model: Model, call: Call) -> bool:
    """Whether a call certainly tells ranks nothing apart: no draw, and nobody's that may ask.

    What is done to one sample does not choose the samples.
    """
    if DRAW.is_call(call) or DRAW.says(called_name(call)) or called_name(call) == "next":
        return False
    if model.flow.callees(call):
        return all(
            not PROCESSES.says(text_of_scope(model, each)) for each in model.flow.callees(call)
        )
    if _is_of_sample(model, call):
        return True
    return all(
        isinstance(value, Ext)
        and not PROCESSES.says(value.dotted)
        and _is_apart(value, but="torch")
        for value in model.flow.values(call.func)
    )


def _is_of_sample(model: Model, call: Call) -> bool:
    """Whether a call is given, or is a method of, what a loop over the data gives."""
    drawn = {
        name.id
        for loop in call.scope.loops
        if isinstance(loop, For)
        for name in walk(loop.target)
        if isinstance(name, Name)
    }
    parts = [arg.value for arg in call.args]
    parts += [call.func.value] if isinstance(call.func, Attr) else []
    return any(
        depends_on(
            model.flow, part, lambda e: isinstance(e, Name) and e.id in drawn, LOCAL | Hop.PART
        )
        is not None
        for part in parts
    )


def knows_no_worker(model: Model, cls: Class) -> bool:
    """Whether nothing that a pass runs may ask for the worker, or draws samples."""
    found = reach(model, cls, "__iter__", "__next__")
    if found.opaque or found.outside or any(WORKERS.names(read) for read in found.self_reads()):
        return False
    return next(_asking(model, cls), None) is None


def _leaves_it_to_others(model: Model, cls: Class) -> bool:
    """Whether a pass asks or draws in methods of objects that it holds.

    A small world that the class was tried in has others in their place.
    """
    own = {*model.flow.mro(cls), None}
    return any(function is None or function.cls not in own for function in _asking(model, cls))


def _asking(model: Model, cls: Class) -> Iterator[Function | None]:
    """The functions that a pass runs and that ask for the worker or draw; None if too many."""
    found = reach(model, cls, "__iter__", "__next__")
    for number, function in enumerate(closure(found.functions, model.flow.called_by)):
        if number == MOST_SEARCHED_FOR_STEP:
            yield None
            return
        if any(
            WORKERS.says(called_name(call)) or (DRAW.is_call(call) and not ORDERS.is_call(call))
            for call in function.calls
        ):
            yield function


def _sources(model: Model, function: Function, depth: int) -> Iterator[Expr | None]:
    """What the loops around each sample that a pass gives go over; None for one without end."""
    if depth > DEEPEST_WRAPPING:
        yield None
        return
    if not function.yields:
        for given in function.returns:
            yield from _returned(model, given.value, depth)
        return
    for stmt in statements(function.body):
        for node in nodes_in([stmt]):
            if isinstance(node, Yield):
                around = (stmt, *stmt.ancestors())
                loops = [each for each in around if isinstance(each, (For, While))]
                outer = loops[-1] if loops else None
                if isinstance(outer, For):
                    yield outer.iter
                elif outer is None and node.delegates:
                    yield from _returned(model, node.value, depth)
                    # What fills a list comes from there.
                    yield from (each.iter for each in function.loops if isinstance(each, For))
                else:
                    yield None


def _returned(model: Model, expr: Expr | None, depth: int) -> Iterator[Expr | None]:
    callees = model.flow.callees(expr) if isinstance(expr, Call) else []
    if not callees:
        yield expr
    for callee in callees:
        yield from _sources(model, callee, depth + 1)


def _is_whole(model: Model, source: Expr, depth: int = 0) -> bool:
    """Whether iterating the expression gives every process the same, and comes to an end."""
    if depth > DEEPEST_WRAPPING:
        return False
    source = only(model.flow, source, Hop.ASSIGNED | Hop.ATTRIBUTE | Hop.CALLER)
    if isinstance(source, Comp):
        return bool(source.iters) and _is_whole(model, source.iters[0], depth)
    if isinstance(source, Index) and isinstance(source.key, Other):
        return _is_whole(model, source.value, depth)
    if isinstance(source, Call):
        if RANGES.is_call(source):
            return True
        if called_name(source) in _NOT_WHOLE:
            return False
        if ITERATES.is_call(source):
            parts = [each for each in source.positional if not _is_function(model, each)]
            if called_name(source) == "islice":
                parts = parts[:1]  # the same part in each worker, whichever it is
            # What `iter(call, end)` calls gives something else each time.
            is_called = called_name(source) == "iter" and len(source.positional) > 1
            whole = (_is_whole(model, each, depth) for each in parts)
            return bool(parts) and not is_called and all(whole)
        if model.flow.callees(source):
            found = [*_returned(model, source, depth)]
            return bool(found) and all(
                each is not None and _is_whole(model, each, depth + 1) for each in found
            )
    values = model.flow.values(source)
    return bool(values) and all(_is_alike(model, value) for value in values)


def _is_function(model: Model, expr: Expr) -> bool:
    return any(isinstance(value, FuncRef) for value in model.flow.values(expr))


def _is_alike(model: Model, value: Value) -> bool:
    """Whether all workers get the same of an object: it is data, and no dataset that divides."""
    if isinstance(value, Obj):
        return isinstance(value.cls, Class) and (
            lookup(model, value.cls, "__iter__", None) is None
            or whole_pass(model, value) is not None
        )
    if isinstance(value, (Ext, ExtObj)):
        return _is_apart(value) and value.dotted.rpartition(".")[2] not in _NOT_WHOLE
    return isinstance(value, Pack)
