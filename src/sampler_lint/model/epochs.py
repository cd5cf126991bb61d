"""Epoch loops and the loaders that are iterated in them, across functions and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sampler_lint.model.facts import (
    Attr,
    Call,
    Class,
    Compare,
    Const,
    Expr,
    For,
    Function,
    Index,
    Loop,
    Name,
    Scope,
    Stmt,
    Try,
    While,
    expressions,
    last_name,
    statements,
    walk,
)
from sampler_lint.model.flow import Ext, ExtObj, Obj, Unknown
from sampler_lint.model.linked import Model

_DEEPEST = 6
#: What hands on the batches of a loader, one by one.
_WRAPPERS = frozenset({"tqdm", "enumerate", "zip", "islice"})
_TRAINING_CALLS = frozenset({"backward", "step", "zero_grad", "training_step", "train_step"})
#: What says that a model is only tested here.
EVALUATING = frozenset({"no_grad", "inference_mode", "eval"})


class Pass(NamedTuple):
    """One place where a loader is iterated."""

    scope: Scope
    stmt: Stmt
    source: Expr
    """The expression that gives the loader (``loader`` in ``enumerate(loader)``)."""
    loader: Obj


class EpochLoop(NamedTuple):
    """A loop whose every turn makes a pass over the same loader."""

    loop: Loop
    """The epoch loop itself."""
    inner: Pass
    calls: tuple[Call, ...]
    """The calls that lead from the loop's body to the pass, outermost first."""

    @property
    def is_restart(self) -> bool:
        """Whether the pass starts the loader again when it has run out, in a loop over steps."""
        inner: Stmt = self.inner.stmt
        for stmt in inner.ancestors():
            if isinstance(stmt, Try):
                return not any(part.encloses(inner) for part in stmt.body)
            if isinstance(stmt, (For, While)):
                break
        return False

    @property
    def scopes(self) -> set[Scope]:
        """The scopes on the way from the loop to the pass."""
        return {self.loop.scope, self.inner.scope, *(call.scope for call in self.calls)}


def passes(model: Model) -> list[Pass]:
    """Every place where a known loader is iterated, in programs that shard by an epoch."""
    kept: list[Pass] | None = model.memo.get(passes)
    if kept is None:
        kept = model.memo[passes] = list(dict.fromkeys(_passes(model)))
    return kept


def _passes(model: Model) -> Iterator[Pass]:
    for module in model.modules:
        if model.project.program_of(module) not in model.sharding_programs:
            continue
        for scope in module.facts.scopes:
            for source, stmt in scope.iterated:
                yield from _passes_over(model, scope, stmt, source, 0)


def _passes_over(
    model: Model, scope: Scope, stmt: Stmt, source: Expr, depth: int
) -> Iterator[Pass]:
    if isinstance(source, Const) or depth > 4:
        return
    if isinstance(source, Call):
        if last_name(source.func) in {"range", "items", "keys", "values"}:
            return
        outside = all(
            isinstance(value, (Ext, ExtObj, Unknown)) for value in model.flow.values(source.func)
        )
        if outside and last_name(source.func) != "prepare":
            # enumerate, zip, tqdm, islice and the like hand on what they are given.
            for arg in source.positional:
                yield from _passes_over(model, scope, stmt, arg, depth + 1)
            return
    if isinstance(source, Name):
        for wrapped in _wrapped_before(source, stmt):
            yield from _passes_over(model, scope, stmt, wrapped, depth + 1)
    for value in model.flow.values(source):
        if isinstance(value, Obj) and model.role(value) == "loader" and value.site is not None:
            yield Pass(scope, stmt, source, value)
        elif isinstance(value, Obj) and isinstance(value.cls, Class):
            for loader, given in _handed_on(model, value):
                named = isinstance(given, (Name, Attr)) and given.scope is scope
                yield Pass(scope, stmt, given if named else source, loader)


def _handed_on(model: Model, wrapper: Obj) -> Iterator[tuple[Obj, Expr]]:
    """The loaders that an object (a prefetcher) is made around and whose batches it yields."""
    iterate = model.flow.method(wrapper.cls, "__iter__")
    if wrapper.site is None or not isinstance(iterate, Function) or not iterate.yields:
        return
    inner = {value for passed, _ in iterate.iterated for value in model.flow.values(passed)}
    for arg in wrapper.site.args:
        for value in model.flow.values(arg.value):
            if isinstance(value, Obj) and value in inner and model.role(value) == "loader":
                yield value, arg.value


def _wrapped_before(name: Name, stmt: Stmt) -> Iterator[Call]:
    """The ``tqdm(loader)`` that a local name was assigned before ``stmt`` passes over it."""
    for binding in name.scope.bindings.get(name.id, ()):
        call, assigned = binding.value, binding.stmt
        if binding.how != "assign" or binding.path or assigned is None or assigned is stmt:
            continue
        wrapper = last_name(call.func) if isinstance(call, Call) else None
        # An iterator runs once: made outside of a loop, it is not started again in it.
        again = wrapper == "tqdm" or _loops_of(assigned) == _loops_of(stmt)
        if isinstance(call, Call) and wrapper in _WRAPPERS and again:
            yield call


def _loops_of(stmt: Stmt) -> list[Stmt]:
    return [outer for outer in stmt.ancestors() if isinstance(outer, (For, While))]


def epoch_loops(model: Model) -> list[EpochLoop]:
    """Every epoch loop, with each pass that a turn of it makes."""
    kept: list[EpochLoop] | None = model.memo.get(epoch_loops)
    if kept is None:
        kept = model.memo[epoch_loops] = [
            found
            for inner in passes(model)
            for found in _loops_around(model, inner, inner.scope, inner.stmt, (), 0)
        ]
    return kept


def _loops_around(
    model: Model, inner: Pass, scope: Scope, stmt: Stmt, calls: tuple[Call, ...], depth: int
) -> Iterator[EpochLoop]:
    source = inner.source if not calls else None
    for loop in stmt.ancestors():
        if not isinstance(loop, (For, While)) or not repeats(loop):
            continue
        if source is not None and _bound_by(loop, source):
            continue
        if not _rebuilt_in(loop, inner.loader):
            yield EpochLoop(loop, inner, calls)
        return
    if not isinstance(scope, Function) or depth >= _DEEPEST:
        return
    for call in model.flow.callers(scope):
        if call.stmt is not None and call not in calls and call.scope is not scope:
            yield from _loops_around(model, inner, call.scope, call.stmt, (call, *calls), depth + 1)


def repeats(loop: Loop) -> bool:
    """Whether turns of the loop repeat the same work: it counts, or runs until something.

    A loop over other things (folds, tasks, loaders) may do other work in each turn.
    """
    if isinstance(loop, For):
        return _says_epoch(loop.target) or _counts(loop.iter)
    return True


def epoch_expression(loop: Loop) -> Expr | None:
    """What holds the epoch's number in the loop's body, if that is plain."""
    if isinstance(loop, For):
        targets = [node for node in walk(loop.target) if isinstance(node, Name)]
        if isinstance(loop.target, (Name, Attr, Index)):
            return loop.target if _counts(loop.iter) else None
        named = [name for name in targets if "epoch" in name.id.lower()]
        return named[0] if len(named) == 1 else None
    test = loop.test
    if isinstance(test, Compare) and len(test.ops) == 1 and test.ops[0] in {"Lt", "LtE", "NotEq"}:
        left = test.left
        if isinstance(left, (Name, Attr, Index)) and _says_epoch(left):
            return left
    return None


def _counts(source: Expr) -> bool:
    """Whether iterating gives numbers that grow: ``range(…)``, also inside a progress bar."""
    return any(
        isinstance(node, Call) and last_name(node.func) in {"range", "trange", "count"}
        for node in walk(source)
    )


def _says_epoch(expr: Expr) -> bool:
    """Whether a name, an attribute or a key (``state["epoch"]``) says epoch."""
    for node in walk(expr):
        said = node.id if isinstance(node, Name) else node.name if isinstance(node, Attr) else ""
        if isinstance(node, Index) and isinstance(node.key, Const):
            said = str(node.key.value)
        if "epoch" in said.lower():
            return True
    return False


def _bound_by(loop: Loop, source: Expr) -> bool:
    """Whether the loop's own target is what is iterated (a loop over several loaders)."""
    if not isinstance(loop, For):
        return False
    targets = {node.id for node in walk(loop.target) if isinstance(node, Name)}
    return any(isinstance(node, Name) and node.id in targets for node in walk(source))


def _rebuilt_in(loop: Loop, loader: Obj) -> bool:
    """Whether each turn of the loop builds the loader anew."""
    return any(
        call is not None and call.stmt is not None and loop.encloses(call.stmt)
        for call in (loader.site, loader.through)
    )


def trains(model: Model, found: EpochLoop) -> bool:
    """Whether the pass is one that trains: its body or a function it calls steps an optimizer."""
    inner = found.inner
    loop = found.loop
    if loop.scope.yields and _is_endless(loop):
        # A generator that starts the loader again for ever.
        return not _only_evaluated(model, loop.scope, inner.loader)
    if pass_trains(model, inner):
        return True
    scope = inner.scope
    return (
        isinstance(scope, Function)
        and bool(scope.yields)
        and any(_takes_and_steps(model, call) for call in model.flow.callers(scope))
    )


def _only_evaluated(model: Model, generator: Scope, loader: Obj) -> bool:
    """Whether every call that gives the loader to a generator stands where models are tested."""
    if not isinstance(generator, Function):
        return False
    calls = [
        call
        for call in model.flow.callers(generator)
        if any(
            isinstance(value, Obj) and (value.cls, value.site) == (loader.cls, loader.site)
            for arg in call.args
            for value in model.flow.values(arg.value)
        )
    ]
    return bool(calls) and all(
        not EVALUATING.isdisjoint(call.scope.called) and not _steps(model, call.scope, None, 0)
        for call in calls
    )


def _is_endless(loop: Loop) -> bool:
    if isinstance(loop, While):
        return isinstance(loop.test, Const)
    return isinstance(loop.iter, Call) and last_name(loop.iter.func) == "count"


def _takes_and_steps(model: Model, call: Call) -> bool:
    """Whether a loop over what a generator function yields steps an optimizer."""
    stmt = call.stmt
    if isinstance(stmt, For):
        return _steps(model, call.scope, stmt, 0)
    names = {t.id for t in getattr(stmt, "targets", ()) if isinstance(t, Name)}
    return any(
        _steps(model, call.scope, loop, 0)
        for loop in call.scope.loops
        if any(
            isinstance(node, Name) and node.id in names
            for inner in (loop, *statements(loop.body))
            for expr in expressions(inner)
            for node in walk(expr)
        )
    )


def pass_trains(model: Model, inner: Pass) -> bool:
    """Whether a pass, in whatever loop, steps an optimizer in its body or what that calls."""
    body: Stmt = inner.stmt
    if not isinstance(body, (For, While)):
        enclosing = [s for s in body.ancestors() if isinstance(s, (For, While))]
        body = enclosing[0] if enclosing else body
    return _steps(model, inner.scope, body, 0)


def _steps(model: Model, scope: Scope, within: Stmt | None, depth: int) -> bool:
    if within is None:
        calls = scope.calls
        names: Iterable[str | None] = scope.called
    else:
        calls = scope.calls_in(within)
        names = (last_name(call.func) for call in calls)
    if not _TRAINING_CALLS.isdisjoint(names):
        return True
    if depth >= 3:
        return False
    return any(
        _steps(model, callee, None, depth + 1)
        for call in calls
        for callee in model.flow.callees(call)
        if callee is not scope
    )
