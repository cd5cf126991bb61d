"""Epoch loops and the loaders that are iterated in them, across functions and files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.origins import given_by
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import ExtObj, Lit, Obj
from sampler_lint.domain.concepts import EPOCH, EVALUATES, INFERS, TRAINS
from sampler_lint.domain.conditions import told_what_for
from sampler_lint.domain.engines import run_over
from sampler_lint.domain.escape import target_of
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import Pass, loops_of, passes, passes_near, passes_over
from sampler_lint.domain.samplers import sharding_programs
from sampler_lint.domain.shares import passes_over_shared
from sampler_lint.domain.steps import (
    begins_training,
    evaluates,
    is_without_gradients,
    says_it_trains,
    steps,
    takes_and_steps,
    takes_nothing,
)
from sampler_lint.domain.switched import is_switched_off
from sampler_lint.domain.taking import takes_one
from sampler_lint.domain.turns import epoch_expression, repeats
from sampler_lint.domain.wrapping import flat
from sampler_lint.limits import DEEPEST_CHAIN
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import (
    makes_iterator,
    nodes_in,
    owner_of,
    same,
    self_class,
    statements,
    walk,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Expr,
    ExprStmt,
    For,
    Function,
    Index,
    Loop,
    Name,
    Param,
    Scope,
    Stmt,
    Try,
    While,
    With,
    last_name,
)


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
    def builds_anew(self) -> bool:
        """Whether each turn of the loop builds the loader."""
        loader = self.inner.loader
        return any(
            call is not None and call.stmt is not None and self.loop.encloses(call.stmt)
            for call in (loader.site, loader.through)
        )

    @property
    def scopes(self) -> set[Scope]:
        """The scopes on the way from the loop to the pass."""
        return {self.loop.scope, self.inner.scope, *(call.scope for call in self.calls)}


def epoch_loops(model: Model) -> list[EpochLoop]:
    """Every epoch loop, with each pass that a turn of it makes."""
    return _loops_of_passes(model)[False]


def loops_that_build(model: Model, loader: Obj | None = None) -> Iterator[EpochLoop]:
    """The loops over epochs that build a loader in each turn, for the pass of that turn.

    Or one for each file or part, in a loop within. Of one ``loader``, also where nothing is shared
    out among ranks.
    """
    around: Iterable[EpochLoop] = _loops_of_passes(model)[True] if loader is None else ()
    if loader is not None and loader.site is not None:
        near = (p for p in passes_near(model, loader.site.scope) if loader.may_be(p.loader))
        around = (f for inner in near for f in _loops_around(model, inner) if f.builds_anew)
    for found in around:
        for loop in (found.loop, *_repeating(model, found.loop)):
            epoch = epoch_expression(loop)
            if epoch is not None and EPOCH.is_mentioned(epoch):
                yield found._replace(loop=loop)
                break


@remembered
def _loops_of_passes(model: Model) -> dict[bool, list[EpochLoop]]:
    """The loops around all passes, by whether a turn builds the loader anew."""
    known: dict[bool, list[EpochLoop]] = {False: [], True: []}
    for inner in passes(model):
        for found in _loops_around(model, inner):
            known[found.builds_anew].append(found)
    return known


@remembered
def loops_in_samplers(model: Model) -> list[EpochLoop]:
    """The loops of samplers that go through another one again and again, for as long as asked.

    They count steps, not epochs: one loader that is gone through once gives many passes.
    """
    programs = sharding_programs(model)
    return [
        found
        for module, cls in model.classes()
        if model.project.program_of(module) in programs and model.is_sampler_class(cls)
        for found in _loops_in(model, cls)
    ]


def _loops_in(model: Model, cls: Class) -> Iterator[EpochLoop]:
    scope = cls.method("__iter__")
    for source, stmt in scope.iterated if isinstance(scope, Function) and scope.yields else ():
        loop = next(iter(loops_of(stmt)), None)
        if not isinstance(loop, While) or not hands_over_in(loop):
            continue  # it fills a batch
        for named in source.positional if isinstance(source, Call) else [source]:
            if isinstance(named, Attr) and self_class(named.value):
                for value in model.flow.values(named):
                    if isinstance(value, Obj) and value.site is not None and model.role(value):
                        yield EpochLoop(loop, Pass(loop.scope, stmt, named, value, named), ())


def sampler_around(model: Model, scope: Scope) -> Class | None:
    """The sampler whose pass a function makes: what asks it for samples runs between its turns."""
    cls = scope.cls if isinstance(scope, Function) and scope.name == "__iter__" else None
    return cls if cls is not None and model.is_sampler_class(cls) else None


def _loops_near(model: Model, scope: Scope) -> dict[Loop, list[EpochLoop]]:
    """The epoch loops of the program that a scope is of, also of one that shards nothing.

    Of each loop the passes that a turn of it makes.
    """
    program = model.project.program_of(model.module_of(scope))
    key = "" if program in sharding_programs(model) else program
    by_program: dict[str, dict[Loop, list[EpochLoop]]] = model.memo.setdefault(_loops_near, {})
    known = by_program.get(key)
    if known is None:
        known = by_program[key] = {}
        inner = passes_near(model, scope) if key else []
        others = (
            found for each in inner for found in _loops_around(model, each) if not found.builds_anew
        )
        for found in others if key else epoch_loops(model):
            known.setdefault(found.loop, []).append(found)
    return known


def _loops_around(model: Model, inner: Pass) -> Iterator[EpochLoop]:
    """The loops that make a pass again and again, each with the shortest way from it to the pass.

    A function may be called from many places and on many ways; each call is gone through once.
    """
    todo: deque[tuple[Scope, Stmt, tuple[Call, ...], Expr | None]]
    todo = deque([(inner.scope, inner.stmt, (), inner.iterated)])
    seen: set[tuple[Call, Expr | None]] = set()
    while todo:
        scope, stmt, calls, source = todo.popleft()
        around = _repeating(model, stmt)
        loop = next(
            (loop for loop in around if source is None or not _bound_by(loop, source)), None
        )
        if loop is not None:
            yield EpochLoop(loop, inner, calls)
            continue
        if not isinstance(scope, Function) or len(calls) >= DEEPEST_CHAIN:
            continue
        for call in model.flow.callers(scope):
            if call.stmt is None or call in calls or call.scope is scope:
                continue
            brought = _brought(model, scope, source, call, call.stmt, inner.loader)
            if not isinstance(brought, _Another) and (call, brought) not in seen:
                seen.add((call, brought))
                todo.append((call.scope, call.stmt, (call, *calls), brought))


@remembered
def _repeating(model: Model, stmt: Stmt) -> list[Loop]:
    """The loops around a statement whose turns repeat the same work, inside out."""
    return [
        loop
        for loop in stmt.ancestors()
        if isinstance(loop, (For, While)) and repeats(loop) and not begins_training(model, loop)
    ]


class _Another:
    """The call hands in another loader."""


_ANOTHER = _Another()


def _brought(
    model: Model,
    function: Function,
    source: Expr | None,
    call: Call,
    stmt: Stmt,
    loader: Obj,
) -> Expr | _Another | None:
    """What a call in ``stmt`` hands to a function as the loader that it iterates, also wrapped.

    None if the loader gets there by another way than a parameter.
    """
    if not isinstance(source, Name) or owner_of(source) is not function:
        return None
    read = _before_wrapping(model, function, source, loader)
    given = given_by(model.flow, call, read)
    if given is None:
        return None
    values = model.flow.values(given)
    known: dict[Expr, set[Obj]] = model.memo.setdefault(_brought, {})
    if given not in known:
        known[given] = {p.loader for p in passes_over(model, call.scope, stmt, given, set())}
    brought = known[given]
    if any(loader.may_be(value) for value in (*values, *brought)):
        return given
    kinds = (Obj, Lit, ExtObj) if brought else (Obj, Lit)
    other = bool(values) and all(isinstance(value, kinds) for value in values)
    is_called = not isinstance(call.scope, Function) or bool(model.flow.callers(call.scope))
    if not other and not is_called:
        other = _is_seen_to_get(model, function, read, loader)
    return _ANOTHER if other else None


@remembered
def _is_seen_to_get(model: Model, function: Function, read: Name, loader: Obj) -> bool:
    """Whether a call of a function is seen to hand it the loader; others then hand in their own."""
    given = (given_by(model.flow, call, read) for call in model.flow.callers(function))
    return any(
        any(map(loader.may_be, model.flow.values(each))) for each in given if each is not None
    )


def _before_wrapping(model: Model, function: Function, source: Name, loader: Obj) -> Name:
    """The read of a parameter that a function wraps under its own name: ``data = tqdm(data)``."""
    read = source
    for binding in definitions(function, source):
        wrap = binding.value if not isinstance(binding.payload, Param) else None
        if isinstance(wrap, Call):
            read = next((n for n in wrap.positional if isinstance(n, Name) and same(n, read)), read)
    return read if any(map(loader.may_be, model.flow.values(read))) else source


def _bound_by(loop: Loop, source: Expr) -> bool:
    """Whether the loop's own target is what is iterated (a loop over several loaders)."""
    if not isinstance(loop, For):
        return False
    owners = {id(node.value) for node in walk(loop.target) if isinstance(node, (Attr, Index))}
    targets = [node for node in walk(loop.target) if id(node) not in owners]
    return any(same(node, target) for target in targets for node in walk(source))


def trains(model: Model, found: EpochLoop) -> bool:
    """Whether the pass is one that trains.

    Evidence is sought from the pass outwards along the calls that lead to it: an optimizer that
    steps, or a model that is only tested. Where there is none (an engine that is not known does
    the step), names decide, unless another pass of the loop is seen to train. What is built where
    it is told to be for evaluation is not what a loop over it trains with.
    """
    site = found.inner.loader.site
    if site is not None and told_what_for(site) is False:
        return False
    around = sampler_around(model, found.loop.scope)
    if around is not None:
        return any(
            any(trained_with(model, loader)) or is_named_after_training(loader)
            for loader in model.loaders
            if any(given.cls is around for given in model.samplers_of(loader))
        )
    if takes_nothing(found.inner.stmt) or _only_looks(model, found):
        return False
    seen = _evidence(model, found)
    if seen is not None:
        return seen
    inner, loop = found.inner, found.loop
    if starts_for_ever(loop):
        return not _only_evaluated(model, loop.scope, inner.loader)
    scope = inner.scope
    if isinstance(scope, Function) and scope.yields:
        takers = [call for call in model.flow.callers(scope) if call.stmt is not None]
        if any(takes_and_steps(model, call) for call in takers):
            return True
    return _says_training(model, found) and not any(
        not inner.loader.may_be(other.inner.loader) and _evidence(model, other)
        for other in _passes_of(model, loop)
    )


def _only_looks(model: Model, found: EpochLoop) -> bool:
    """Whether the pass takes one batch, as to know its size, and another of the turn goes on."""
    return takes_one(found.inner) and any(
        found.inner.loader.may_be(other.inner.loader)
        and not takes_one(other.inner)
        and trains(model, other)
        for other in _passes_of(model, found.loop)
    )


def trained_with(model: Model, loader: Obj) -> list[bool]:
    """Whether they train, of the epoch loops over a loader.

    Where none is known, of its passes and of the framework that gets it, if one is seen to.
    """
    loops = loops_with(model, loader)
    if loops:
        return [trains(model, loop) for loop in loops]
    near = passes_near(model, loader.site.scope) if loader.site is not None else []
    found = [pass_trains(model, each) for each in near if loader.may_be(each.loader)]
    found += [True for hooked in _hooked(model) if loader.may_be(hooked)]
    return found if any(found) else []


@remembered
def _hooked(model: Model) -> list[Obj]:
    """What frameworks are given to train with, by a method that they call: loaders, samplers."""
    known: list[Obj] = [
        value for _, cls in model.classes() for value in _given_to_train(model, cls)
    ]
    known += run_over(model)
    known += hooked_samplers(model)
    return known


def hooked_samplers(model: Model) -> list[Obj]:
    """The samplers that frameworks are given for the loaders that they make to train with."""
    return [sampler for _, sampler in _by_hooks(model, lambda table: table.sampler_hooks)]


def _given_to_train(model: Model, cls: Class) -> list[Obj]:
    """The loaders that a framework takes from an object of a class to train with.

    Of several that one function returns for training and for evaluation alike, as it is asked,
    none.
    """
    tables = _tables_of(model, cls)
    found = [_returned(model, cls, name) for each in tables for name in each.train_hooks]
    trained = [loader for loaders in found for loader in loaders]
    if len(trained) < 2:
        return trained
    hooks = [name for each in tables for name in each.evaluation_hooks]
    evaluated = {loader for name in hooks for loader in _returned(model, cls, name)}
    return [loader for loader in trained if loader not in evaluated]


def hooks_undivided(model: Model) -> Iterator[tuple[Function, Obj]]:
    """The methods that give loaders to train with which no framework divides, with the loaders."""
    return _by_hooks(
        model, lambda table: frozenset() if table.divides_hooked else table.train_hooks
    )


def hooked_to_evaluate(model: Model) -> Iterator[tuple[Function, Obj]]:
    """The methods by which frameworks are given loaders to evaluate with, each with its loaders."""
    return _by_hooks(model, lambda table: table.evaluation_hooks)


def _by_hooks(
    model: Model, hooks: Callable[[catalog.Framework], frozenset[str]]
) -> Iterator[tuple[Function, Obj]]:
    for _, cls in model.classes():
        for table in _tables_of(model, cls):
            for name in sorted(hooks(table)):
                if (hook := cls.method(name)) is not None:
                    yield from ((hook, loader) for loader in _returned(model, cls, name))


def _tables_of(model: Model, cls: Class) -> list[catalog.Framework]:
    """The frameworks that a class derives from classes of."""
    packages = {base.partition(".")[0] for base in model.flow.mro(cls) if isinstance(base, str)}
    return [
        catalog.framework(catalog.FRAMEWORK_PACKAGES[name])
        for name in packages & catalog.FRAMEWORK_PACKAGES.keys()
    ]


def _returned(model: Model, cls: Class, method: str) -> list[Obj]:
    """The loaders that are known to be what a method of a class itself returns, or holds."""
    function = cls.method(method)
    return [
        value
        for returned in (function.returns if function is not None else ())
        if returned.value is not None
        for value in flat(model, model.flow.values(returned.value), dicts=True)
        if isinstance(value, Obj) and value.site is not None
    ]


def loops_over(model: Model, loader: Obj) -> list[EpochLoop]:
    """The epoch loops that pass over a loader."""
    if loader.site is None:
        return []
    near = _loops_near(model, loader.site.scope)
    return [f for found in near.values() for f in found if loader.may_be(f.inner.loader)]


def loops_with(model: Model, loader: Obj) -> list[EpochLoop]:
    """The epoch loops that pass over a loader, or over what a framework gives back for it."""
    shared = (f for f in _loops_over_shared(model) if loader.may_be(f.inner.loader))
    return [*loops_over(model, loader), *shared]


@remembered
def _loops_over_shared(model: Model) -> list[EpochLoop]:
    """Those over what frameworks give back for loaders, to give each rank a part of the data."""
    return [
        found
        for inner in passes_over_shared(model)
        for found in _loops_around(model, inner)
        if not found.builds_anew
    ]


def feeds_training(model: Model, *loaders: Obj) -> bool | None:
    """Whether a loop trains with one of the loaders, again and again with the same object.

    So does a framework that asks for one of them. None where no loop over them is known, and one
    is called after training.
    """
    if any(loader.may_be(hooked) for loader in loaders for hooked in _hooked(model)):
        return True
    found = [loop for loader in loaders for loop in loops_with(model, loader)]
    if found:
        return any(not _is_made_on_the_way(loop) and trains(model, loop) for loop in found)
    return None if any(map(is_named_after_training, loaders)) else False


def is_named_after_training(loader: Obj) -> bool:
    """Whether what a loader is assigned to, or the function that returns it, says training."""
    target, scope = target_of(loader), loader.site.scope if loader.site is not None else None
    names = [last_name(target)] if target is not None else []
    names += [scope.name] if isinstance(scope, Function) else []
    return any(map(TRAINS.says, names)) and not any(map(EVALUATES.says, names))


def _is_made_on_the_way(found: EpochLoop) -> bool:
    """Whether the calls from the loop to the pass make the loader anew."""
    between = {found.inner.scope, *(call.scope for call in found.calls)} - {found.loop.scope}
    loader = found.inner.loader
    return any(call is not None and call.scope in between for call in (loader.site, loader.through))


def _passes_of(model: Model, loop: Loop) -> list[EpochLoop]:
    """The passes that a turn of the loop makes."""
    return _loops_near(model, loop.scope).get(loop, [])


def _says_training(model: Model, found: EpochLoop) -> bool:
    """Whether a loader or function on the way to the pass is named after training."""
    said = [found.inner.source, *(call.func for call in found.calls)]
    said += [arg.value for call in found.calls for arg in call.args]
    said += (given for call in found.calls for given in _given_when_made(model, call, found))
    names = {last_name(expr) for expr in said} | {getattr(found.inner.scope, "name", "")}
    return any(map(TRAINS.says, names))


def _given_when_made(model: Model, call: Call, found: EpochLoop) -> Iterator[Expr]:
    """The loader, as the object was given it whose method a call on the way to the pass calls."""
    owners = model.flow.values(call.func.value) if isinstance(call.func, Attr) else frozenset()
    for owner in owners:
        for arg in owner.site.args if isinstance(owner, Obj) and owner.site is not None else ():
            if any(map(found.inner.loader.may_be, model.flow.values(arg.value))):
                yield arg.value


@remembered
def _evidence(model: Model, found: EpochLoop) -> bool | None:
    """Whether an optimizer steps with the batches of the pass, or a model is only tested."""
    places = [(found.inner.scope, found.inner.stmt)]
    places += [(call.scope, call.stmt) for call in reversed(found.calls) if call.stmt is not None]
    if any(is_without_gradients(scope, stmt) for scope, stmt in places):
        return False
    for scope, stmt in places:
        around = [stmt, *stmt.ancestors()]
        loops = [each for each in around if isinstance(each, (For, While))]
        region: Stmt | None = loops[0] if loops else None
        if stmt is found.inner.stmt and isinstance(stmt, ExprStmt):
            region = stmt  # what nothing keeps of the batches has no part in later steps
        if stmt is not found.inner.stmt and (
            _is_of_another(model, found, region)
            or (region is found.loop and _another_steps(model, found))
        ):
            # The loop's steps are of what that one trains.
            return any(says_it_trains(each) for each, _ in places[:-1]) or None
        if steps(model, scope, region):
            if stmt is found.inner.stmt and _is_switched_off(model, found.inner, region):
                return False
            # It may step only where the call that leads to it says so: not for `optimizer=None`.
            entry = found.calls[-1] if found.calls and stmt is found.inner.stmt else None
            return entry is None or steps(model, scope, region, entry)
        if stmt is found.inner.stmt and _is_handed_to_test(model, found.inner):
            return False
        if region is not found.loop:
            # A function of its own may say before its loop that it only tests.
            apart = scope is not found.loop.scope and not steps(model, scope, None)
            if evaluates(scope, stmt, None if apart else region):
                return False
        if region is found.loop:
            break
    return None


def _another_steps(model: Model, found: EpochLoop) -> bool:
    """Whether what the loop calls for a pass over another loader, not for this one, steps."""
    return any(
        steps(model, callee, None)
        for other in _passes_of(model, found.loop)
        if not found.inner.loader.may_be(other.inner.loader)
        for call in other.calls[:1]
        if call not in found.calls
        for callee in model.flow.callees(call)
    )


def _is_of_another(model: Model, found: EpochLoop, region: Stmt | None) -> bool:
    """Whether a loop that calls for the pass goes over the batches of another loader."""
    return any(
        other.inner.stmt is region and not found.inner.loader.may_be(other.inner.loader)
        for other in _passes_of(model, found.loop)
    )


def _only_evaluated(model: Model, generator: Scope, loader: Obj) -> bool:
    """Whether every call that gives the loader to a generator is for testing a model.

    By where it stands, or by what the loader is called there.
    """
    if not isinstance(generator, Function):
        return False
    calls = [
        call
        for call in model.flow.callers(generator)
        if any(loader.may_be(value) for arg in call.args for value in model.flow.values(arg.value))
    ]
    return bool(calls) and all(
        _is_named_after_evaluation(call)
        or (
            not EVALUATES.called.isdisjoint(call.scope.called)
            and not steps(model, call.scope, None)
        )
        for call in calls
    )


def _is_named_after_evaluation(call: Call) -> bool:
    given = [*map(last_name, call.positional)]
    return any(map(EVALUATES.says, given)) and not any(map(TRAINS.says, given))


def hands_over_in(loop: Loop) -> bool:
    """Whether the turns of a loop are those of a generator, and another's code runs in between."""
    scope = loop.scope
    if not isinstance(scope, Function) or not scope.yields:
        return False
    return any(node in scope.yields for node in nodes_in(statements(loop.body)))


def starts_for_ever(loop: Loop) -> bool:
    """Whether a generator starts its loader again for ever, as nobody does to evaluate."""
    if not loop.scope.yields:
        return False
    if isinstance(loop, While):
        return isinstance(loop.test, Const)
    return isinstance(loop.iter, Call) and last_name(loop.iter.func) == "count"


def pass_trains(model: Model, inner: Pass) -> bool:
    """Whether a pass, in whatever loop, steps an optimizer in its body or what that calls."""
    body: Stmt | None = inner.stmt
    if is_without_gradients(inner.scope, inner.stmt):
        return False
    if not isinstance(body, (For, While)):
        # An iterator that is kept is asked for its batches anywhere, not in the loop that makes it.
        body = None if _keeps_iterator(inner.stmt) else next(iter(loops_of(inner.stmt)), inner.stmt)
    return steps(model, inner.scope, body) and not _is_switched_off(model, inner, body)


def _is_switched_off(model: Model, inner: Pass, within: Stmt | None) -> bool:
    return is_switched_off(model, inner.scope, inner.source, inner.loader, within)


def _keeps_iterator(stmt: Stmt) -> bool:
    made = stmt.value if isinstance(stmt, Assign) else None
    return isinstance(made, Call) and makes_iterator(last_name(made.func))


def pass_evaluates(model: Model, inner: Pass) -> bool:
    """Whether a pass certainly is of a model that is only used: without gradients throughout, right
    after the model was put into evaluation, or in code that is named so, steps nothing and puts
    the model into evaluation, or that steps for other loaders alone.
    """
    scope, body = inner.scope, inner.stmt
    if steps(model, scope, body) and _is_switched_off(model, inner, body):
        return True
    turn = body.body if isinstance(body, For) else [body]
    if all(is_without_gradients(scope, _first([each])) for each in turn):
        return True
    used = [body] if isinstance(body, For) else [*_until_training(body)]
    if _follows_eval(body) and not any(steps(model, scope, each) for each in used):
        return True
    if _is_handed_to_test(model, inner) and not steps(model, scope, body):
        return True
    names = (scope.name, model.module_of(scope).name.rpartition(".")[2])
    is_named = any(EVALUATES.says(name) or INFERS.says(name) for name in names)
    return is_named and not steps(model, scope, None) and evaluates(scope, body, None)


def _is_handed_to_test(model: Model, inner: Pass) -> bool:
    """Whether each turn hands its batch to what is named so, and computes no gradients.

    Of a loader that is named so, too, what the function does need not be seen.
    """
    loop = inner.stmt
    if not isinstance(loop, For):
        return False
    handed = [call for call in inner.scope.calls_in(loop) if _gets_batch(call, loop)]
    if EVALUATES.names(inner.source) and any(
        INFERS.says(last_name(call.func)) or EVALUATES.says(last_name(call.func)) for call in handed
    ):
        return True
    return any(
        EVALUATES.says(callee.name) and evaluates(callee, _first(callee.body), None)
        for call in handed
        for callee in model.flow.callees(call)
        if callee.body
    )


def _gets_batch(call: Call, loop: For) -> bool:
    """Whether a call in a loop is handed what the turn draws, or what is made of it."""
    drawn = {node.id for node in walk(loop.target) if isinstance(node, Name)}
    for stmt in loop.body:
        if isinstance(stmt, Assign) and _mentions(stmt.value, drawn):
            drawn |= {n.id for to in stmt.targets for n in walk(to) if isinstance(n, Name)}
    return any(isinstance(arg.value, Name) and arg.value.id in drawn for arg in call.args)


def _mentions(expr: Expr, names: set[str]) -> bool:
    return any(isinstance(node, Name) and node.id in names for node in walk(expr))


def _first(block: list[Stmt]) -> Stmt:
    """The first statement of a block, or of the ``with`` that it begins with."""
    return block[0].body[0] if isinstance(block[0], With) else block[0]


def _follows_eval(stmt: Stmt) -> bool:
    """Whether the last that is said to a model before a pass, in its block, is ``model.eval()``."""
    modes = [mode for each in stmt.block if each.order < stmt.order if (mode := _mode(each))]
    return modes[-1:] == ["eval"]


def _until_training(stmt: Stmt) -> Iterator[Stmt]:
    """A statement and those below it in its block, until ``model.train()``."""
    below = (each for each in stmt.block if each.order >= stmt.order)
    return takewhile(lambda each: _mode(each) != "train", below)


def _mode(stmt: Stmt) -> str | None:
    """What a statement tells a model to do: ``eval`` or ``train``."""
    if not isinstance(stmt, ExprStmt) or not isinstance(stmt.value, Call):
        return None
    name = last_name(stmt.value.func)
    return name if name in {"eval", "train"} else None


def steps_in(model: Model, loop: Loop) -> bool:
    """Whether a turn of the loop steps an optimizer."""
    return steps(model, loop.scope, loop)


def encloses_a_pass(model: Model, inner: Pass) -> bool:
    """Whether some loop is known that makes the pass again and again."""
    return not all(found.builds_anew for found in _loops_around(model, inner))
