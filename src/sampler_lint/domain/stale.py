"""Orders that are made before ``set_epoch`` can be called for the pass they are for."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.reaching import surely_runs_before
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import SAMPLER
from sampler_lint.domain.epoch_state import EpochState, epoch_state, in_stop, reach
from sampler_lint.domain.model import DATA_LOADER, Model
from sampler_lint.domain.programs import outer_stores_beside
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import nodes_in, same, self_class, self_stores, statements
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Expr,
    For,
    Function,
    ModuleFacts,
    Scope,
    Stmt,
    Store,
    While,
    Yield,
    last_name,
)


def kept_iterator(model: Model, cls: Class) -> Store | None:
    """Where a loader class makes the one iterator that all its passes draw from.

    None unless ``__init__`` makes it, ``__iter__`` takes from it, and no pass makes it anew.
    """
    if model.flow.is_a(cls, DATA_LOADER) is not True:
        return None
    init, iteration = cls.method("__init__"), cls.method("__iter__")
    if init is None or iteration is None:
        return None
    for target, store in self_stores([init], cls):
        if _iterated(store.value) is None:
            continue
        found = reach(model, cls, "__iter__")
        if any(read.name == target.name for read in found.self_reads()) and not any(
            (isinstance(other.target, Attr) and other.target.name == target.name)
            or _iterated(other.value) is not None
            for function in found.functions
            for other in function.stores
        ):
            return store
    return None


def _iterated(value: Expr | None) -> Expr | None:
    """``x`` of ``iter(x)`` and of ``x.__iter__()``."""
    if not isinstance(value, Call):
        return None
    if isinstance(value.func, Attr) and value.func.name == "__iter__":
        return value.func.value
    return value.positional[0] if last_name(value.func) == "iter" and value.positional else None


def iterators_before(call: Call) -> Iterator[tuple[Assign, Expr]]:
    """Where iterators are made before a call that go on to be read after it, and of what.

    Not above a loop around the call: they may be at their end whenever its turn comes to the call.
    """
    above = call.stmt.ancestors() if call.stmt is not None else ()
    loops = {stmt for stmt in above if isinstance(stmt, (For, While))}
    for stmt, iterated in _iterators_in(call.scope.module, call.scope):
        if (
            loops.issubset(stmt.ancestors())
            and surely_runs_before(stmt, call.stmt)
            and _goes_on(stmt, call)
        ):
            yield stmt, iterated


@remembered
def _iterators_in(_: ModuleFacts, scope: Scope) -> list[tuple[Assign, Expr]]:
    """Where a scope keeps iterators, and of what."""
    return [
        (stmt, iterated)
        for stmt in statements(scope.body)
        if isinstance(stmt, Assign) and len(stmt.targets) == 1
        if (iterated := _iterated(stmt.value)) is not None
    ]


def _goes_on(made: Assign, call: Call) -> bool:
    """Whether what an iterator is assigned to is read after a call before it is assigned anew.

    An attribute is read by whoever calls the next method.
    """
    [target] = made.targets
    assert call.stmt is not None
    last = call.stmt.order
    for stmt in sorted(statements(made.scope.body), key=lambda each: each.order):
        is_anew = isinstance(stmt, Assign) and any(same(one, target) for one in stmt.targets)
        if is_anew and stmt.order > made.order:
            return False
        if stmt.order > last and any(same(node, target) for node in nodes_in([stmt])):
            return True
    return isinstance(target, Attr)


def has_workers(model: Model, loader: Obj) -> bool:
    """Whether a loader may fetch ahead in worker processes."""
    return model.option(loader, "num_workers", 0) != {0}


def made_ahead(model: Model, cls: Class) -> EpochState | None:
    """A sampler class that reads its epoch only while built and at the end of the pass before."""
    stepping, passing = cls.method("__next__"), cls.method("__iter__")
    if passing is None:
        return None
    state = epoch_state(model, cls)
    if state.setter is None or state.iteration.opaque or not state.reads(state.iteration):
        return None
    if not state.reads(state.construction):
        return None
    read_in = {read.scope for read in state.reads(state.iteration)}
    if stepping in read_in or passing in read_in:
        return None
    if any(read.scope in read_in for read in state.reads(reach(model, cls, "set_epoch"))):
        return None  # the order is made anew when the epoch is set
    ends = {stepping: in_stop, passing: _after_yields}
    for method, ends_pass in ends.items():
        for call in method.calls if method is not None else ():
            if not isinstance(call.func, Attr) or self_class(call.func.value) is None:
                continue
            below = reach(model, cls, call.func.name)
            if state.reads(below) and (call.stmt is None or not ends_pass(call.stmt)):
                return None
    # A method of another name may make the order again when it is asked to.
    makers = {f.name for f in read_in if isinstance(f, Function)} | {"reset"}
    program = model.project.program_of(model.module_of(cls))
    for name in makers:
        for call in model.project.calls_in(program, name):
            owner = call.func.value if isinstance(call.func, Attr) else None
            if owner is not None and self_class(owner) is None and SAMPLER.names(owner):
                return None
    return state


def _after_yields(stmt: Stmt) -> bool:
    """Whether a statement of a generator runs when everything has been yielded."""
    yields = [
        other
        for other in statements(stmt.scope.body)
        if any(isinstance(node, Yield) for node in nodes_in([other]))
    ]
    return bool(yields) and all(
        stmt.order > other.last_order
        and not any(
            isinstance(loop, (For, While)) and loop.encloses(stmt) for loop in other.ancestors()
        )
        for other in yields
    )


def stores_on(model: Model, cls: Class, names: frozenset[str]) -> Iterator[Store]:
    """Every ``obj.name = value`` from outside, for instances of the class."""
    for name in sorted(names):
        for store in outer_stores_beside(model, name, cls):
            target = store.target
            assert isinstance(target, Attr)
            if store.value is None or isinstance(store.value, Const):
                continue
            if any(isinstance(v, Obj) and v.cls is cls for v in model.flow.values(target.value)):
                yield store
