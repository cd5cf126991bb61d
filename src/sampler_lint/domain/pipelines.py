"""How the pipelines of webdataset, and streams of `datasets`, divide and order what they read.

Source: webdataset 0.2 and 1.0 (``pipeline.py``, ``shardlists.py``, ``compat.py``, ``filters.py``),
datasets 2.8 to 4.4 (``iterable_dataset.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.origins import EVERYWHERE, Hop, depends_on, only
from sampler_lint.analysis.values import Ext, ExtObj, FuncRef, Obj, Pack, Value
from sampler_lint.domain.concepts import RANGES, RANK, SETS_EPOCH, WORKERS, WORLD_SIZE
from sampler_lint.domain.injection import injections
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.splits import opens_stream
from sampler_lint.domain.turns import repeats
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import nodes_in, statements
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    ExprStmt,
    For,
    Function,
    Name,
    Return,
    While,
    Yield,
    last_name,
)

_PACKAGE = "webdataset"


#: What goes over and over what it keeps, so that no pass is begun again.
_REPEAT = frozenset({"cycle", "repeat"})


class Pipeline(NamedTuple):
    """A pipeline of webdataset that reads each shard once, and who divides its shards."""

    made: Call
    by_node: bool
    by_worker: bool
    counts: Call | None
    """The shuffle that counts its passes in the process that it runs in, if there is one."""


class Reader(NamedTuple):
    """A loader of a pipeline."""

    made: Call
    pipeline: Pipeline


@remembered
def readers(model: Model) -> list[Reader]:
    """The loaders of pipelines that are known from end to end."""
    return [*_readers(model)]


def _readers(model: Model) -> Iterator[Reader]:
    for module in model.modules:
        if is_test(module) or _PACKAGE not in model.project.imports_of(module):
            continue
        for made in module.facts.all_calls:
            if last_name(made.func) not in catalog.PIPELINE_LOADERS or made.has_double_star:
                continue
            data = made.positional[0] if made.positional else made.keyword("dataset")
            step = (
                depends_on(model.flow, data, lambda expr: _pipeline(model, expr) is not None)
                if data is not None
                else None
            )
            pipeline = _pipeline(model, step.expr) if step is not None else None
            if data is None or pipeline is None or _is_shared_out(model, data):
                continue
            yield Reader(made, pipeline)


def _is_shared_out(model: Model, data: Expr) -> bool:
    """Whether anything on the way to a loader's data may be another on each rank."""
    return depends_on(model.flow, data, _tells_ranks_apart, EVERYWHERE) is not None


def _tells_ranks_apart(expr: Expr) -> bool:
    return RANK.is_mentioned(expr) or RANK.is_call(expr)


@remembered
def _pipeline(model: Model, expr: Expr) -> Pipeline | None:
    part = _part(model, expr.func) if isinstance(expr, Call) else None
    if isinstance(expr, Call) and part == "DataPipeline":
        return _of_stages(model, expr)
    return _of_dataset(model, expr) if isinstance(expr, Call) and part == "WebDataset" else None


def _part(model: Model, expr: Expr) -> str | None:
    """The name of a part of webdataset that an expression is, or calls."""
    func = expr.func if isinstance(expr, Call) else expr
    for value in model.flow.values(func):
        if isinstance(value, Ext) and value.dotted.partition(".")[0] == _PACKAGE:
            return value.dotted.rpartition(".")[2]
    return None


def _of_stages(model: Model, call: Call) -> Pipeline | None:
    if any(arg.keyword or arg.stars == 2 for arg in call.args):
        return None
    stages: set[Value] = set()
    for arg in call.args:
        found = _put_in(model, arg.value) if arg.stars else model.flow.values(arg.value)
        if not found:
            return None
        stages |= found
    names = {_stage_name(value): value for value in stages}
    if catalog.SHARD_LISTS.isdisjoint(names) or not catalog.DRAWN_SHARDS.isdisjoint(names):
        return None
    if any(_stage_name(each) is None and not _is_blind(model, each) for each in stages):
        return None
    counting = names.get("detshuffle")
    counts = counting.site if isinstance(counting, ExtObj) else None
    return Pipeline(call, "split_by_node" in names, "split_by_worker" in names, counts)


def _put_in(model: Model, given: Expr) -> set[Value]:
    """What a list holds, be it put in later, or what a function yields: nothing if not known."""
    found: set[Value] = set()
    for value in model.flow.values(given):
        if not isinstance(value, Pack):
            return {*_yielded(model, given)}
        found |= model.flow.held_in(value)
    return found


def _yielded(model: Model, given: Expr) -> Iterator[Value]:
    """What a function yields one after the other, and nothing else, for ``*function()``."""
    call = only(model.flow, given, Hop.ASSIGNED)
    callees = model.flow.callees(call) if isinstance(call, Call) else []
    steps = callees[0].body if len(callees) == 1 else []
    values = [step.value for step in steps if isinstance(step, ExprStmt)]
    yields = [each for each in values if isinstance(each, Yield) and not each.delegates]
    found = [each.value for each in yields if each.value is not None]
    if len(found) == len(steps):
        yield from (value for each in found for value in model.flow.values(each))


def _stage_name(value: Value) -> str | None:
    """The name of a part of webdataset that a value is, or was made by."""
    package, _, name = value.dotted.partition(".") if isinstance(value, Ext | ExtObj) else ("",) * 3
    return name.rpartition(".")[2] if package == _PACKAGE else None


def _is_blind(model: Model, stage: Value) -> bool:
    """Whether a stage of the tree's own certainly asks for no rank and no worker."""
    bases: list[object] = []
    if isinstance(stage, FuncRef):
        bases = [stage.function]
    elif isinstance(stage, Obj) and isinstance(stage.cls, Class):
        mro = model.flow.mro(stage.cls)
        bases = [each for each in mro if not str(each).startswith(f"{_PACKAGE}.")]
    scopes = [each for each in bases if isinstance(each, (Function, Class))]
    return len(scopes) == len(bases) > 0 and not any(map(_asks_for_part, scopes))


def _asks_for_part(scope: Function | Class) -> bool:
    """Whether any name in the code is one of a rank or a worker, or of how many there are."""
    functions = [scope] if isinstance(scope, Function) else scope.methods
    return any(
        RANK.is_call(node) or any(of.names(node) for of in (RANK, WORLD_SIZE, WORKERS))
        for function in functions
        for node in nodes_in(statements(function.body))
    )


#: The arguments of ``WebDataset`` by which it is told to divide, by webdataset's own splitters.
SPLITTERS = {"split_by_node": "nodesplitter", "split_by_worker": "workersplitter"}


def _of_dataset(model: Model, call: Call) -> Pipeline | None:
    """``WebDataset(urls, …)``: it divides among workers by default, and refuses several nodes."""
    if call.has_star or call.has_double_star or call.keyword("resampled") is not None:
        return None
    given = [call.keyword(name) for name in SPLITTERS.values()]
    by_node, by_worker = (each is None or not _keeps_all(model, each) for each in given)
    ordered = call.keyword("detshuffle")
    counts = call if ordered is not None and model.flow.constants(ordered) == {True} else None
    return Pipeline(call, by_node, by_worker, counts)


def _keeps_all(model: Model, splitter: Expr) -> bool:
    """Whether a splitter is None, or a function of the tree that gives back what it is given."""
    if isinstance(splitter, Const):
        return splitter.value is None
    values = model.flow.values(splitter)
    functions = [value.function for value in values if isinstance(value, FuncRef)]
    return len(functions) == len(values) > 0 and all(map(_gives_back, functions))


def _gives_back(function: Function) -> bool:
    body = [*statements(function.body)]
    first = function.params[0].name if function.params else None
    value = body[0].value if len(body) == 1 and isinstance(body[0], Return) else None
    return isinstance(value, Name) and value.id == first


def workers(model: Model, made: Call) -> set[object] | None:
    """The numbers of workers that a loader may have; None if they are not known."""
    given = made.keyword("num_workers")
    return {0} if given is None else model.flow.constants(given)


def is_begun_again(model: Model, made: Call) -> bool:
    """Whether a loop makes a pass in each turn over what a call made before."""
    return next(_repeated(model, made), None) is not None


def _repeated(model: Model, made: Call) -> Iterator[For]:
    """The passes over what a call made that a loop makes in each of its turns."""
    for inner in _passes(model, made):
        if any(
            isinstance(loop, (For, While))
            and repeats(loop)
            and not (made.stmt and loop.encloses(made.stmt))
            for loop in inner.ancestors()
        ):
            yield inner


def _passes(model: Model, made: Call) -> Iterator[For]:
    for scope in made.scope.module.scopes:
        for loop in scope.loops:
            if isinstance(loop, For) and not RANGES.is_call(loop.iter):
                step = depends_on(model.flow, loop.iter, lambda e: e is made)
                if step is not None:
                    yield loop


def unmoved_streams(model: Model) -> Iterator[tuple[Call, For]]:
    """The shuffles of streams whose epoch nobody sets, with the loop that is repeated over each."""
    for module in model.modules:
        if "datasets" not in model.project.imports_of(module) or is_test(module):
            continue
        shuffles = [
            call
            for call in module.facts.all_calls
            if isinstance(call.func, Attr) and call.func.name == "shuffle"
        ]
        if not shuffles:
            continue
        program = model.project.modules_in(model.project.program_of(module))
        if any(injections(model).trainers(each) for each in program) or any(
            SETS_EPOCH.says(name) or name in _REPEAT
            for each in program
            for scope in each.facts.scopes
            for name in scope.called
            if name
        ):
            continue
        for call in shuffles:
            assert isinstance(call.func, Attr)
            owner = call.func.value
            if depends_on(model.flow, owner, lambda e: opens_stream(model, e)) is None:
                continue
            loop = next(_repeated(model, call), None)
            if loop is not None:
                yield call, loop
