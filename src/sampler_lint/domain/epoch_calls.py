"""Which ``set_epoch`` calls reach the samplers of a loader, and where they stand in its loop."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple, TypeAlias

from sampler_lint.analysis.arguments import may_fill
from sampler_lint.analysis.origins import read_parameter
from sampler_lint.analysis.values import Ext, ExtObj, Lit, Obj, Unknown, Value, Why
from sampler_lint.domain.concepts import BEFORE_PASS, EPOCH, ITERATED, SETS_EPOCH
from sampler_lint.domain.conditions import contradict, is_left_out
from sampler_lint.domain.datasets import refuses_samplers
from sampler_lint.domain.epoch_state import epoch_state, reach, seeds_by_epoch
from sampler_lint.domain.epochs import EpochLoop, hands_over_in, sampler_around
from sampler_lint.domain.model import DATA_LOADER, Model, scopes_inside
from sampler_lint.domain.programs import is_test, program_files
from sampler_lint.domain.samplers import epoch_path, kept_in, shuffles_by_epoch
from sampler_lint.limits import MOST_SEARCHED_FOR_STEP
from sampler_lint.remembered import remembered
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import method_around, self_class, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    For,
    Function,
    If,
    Loop,
    ModuleFacts,
    Node,
    Scope,
    Stmt,
    While,
    last_name,
)


class Carrier(NamedTuple):
    """A sampler (or dataset) with an epoch, and what leads to it from what is iterated."""

    sampler: Obj
    path: tuple[str, ...]
    """The attributes."""

    @property
    def is_data(self) -> bool:
        """Whether it is the dataset."""
        return self.path == ("dataset",)

    def is_one_of(self, values: frozenset[object]) -> bool:
        """Whether the sampler is among the values, however it was reached."""
        return any(map(self.sampler.may_be, values))


def carriers(model: Model, loader: Obj) -> Iterator[Carrier]:
    """The samplers of ``loader`` that certainly shuffle by the epoch they are given."""
    return (
        carrier
        for carrier in epoch_samplers(model, loader)
        if shuffles_by_epoch(model, carrier.sampler, loader.through)
    )


def epoch_samplers(model: Model, loader: Obj) -> Iterator[Carrier]:
    """The samplers with a ``set_epoch`` that stand behind a loader, or behind a sampler itself."""
    if model.role(loader) != "loader":
        yield from _carried(model, loader, (), set())
        return
    for attribute in ("sampler", "batch_sampler"):
        for value in () if refuses_samplers(model, loader) else given_to(model, loader, attribute):
            yield from _carried(model, value, (attribute,), set())


def epoch_datasets(model: Model, loader: Obj) -> Iterator[Carrier]:
    """The datasets behind a loader that draw by an epoch which only ``set_epoch`` moves on.

    Not where anything but a ``set_epoch`` may set it.
    """
    for value in given_to(model, loader, "dataset") if model.role(loader) == "loader" else ():
        if (
            isinstance(value, Obj)
            and isinstance(value.cls, Class)
            and seeds_by_epoch(model, value.cls)
            and not is_moved_on(model, value.cls)
        ):
            yield Carrier(value, ("dataset",))


def is_moved_on(model: Model, cls: Class, *more: str) -> bool:
    """Whether what the class keeps as its epoch is stored but by its constructor and setter.

    Or more of what it keeps, but by a pass, too.
    """
    state = epoch_state(model, cls)
    known = {*state.construction.functions, *(state.setter.functions if state.setter else ())}
    if more:
        known |= state.iteration.functions
    family = model.flow.mro(cls)
    for name in more or state.stored:
        for store in model.project.stores_of(name):
            if not isinstance(store.target, Attr) or store.scope in known:
                continue
            if not model.project.same_program(store.scope, cls):
                continue
            of, owner = store.target.value, self_class(store.target.value)
            if owner in family or (owner is None and ITERATED.is_mentioned(of)):
                return True
            if any(isinstance(v, Obj) and v.cls in family for v in model.flow.values(of)):
                return True
    return False


def given_to(model: Model, loader: Obj, name: str) -> Iterator[Value]:
    """What a loader is given for a parameter.

    What the factory of the loader makes beside it, the same call of the factory makes.
    """
    factory = loader.site.scope if loader.site is not None else None
    for value in model.passed_to(loader, name):
        made = value.site.scope if isinstance(value, Obj) and value.site is not None else None
        if isinstance(value, Obj) and value.through is None and made is factory is not None:
            value = replace(value, through=loader.through)
        yield value


def _carried(
    model: Model, value: Value, path: tuple[str, ...], seen: set[Value]
) -> Iterator[Carrier]:
    if not isinstance(value, Obj) or value.site is None or value in seen:
        return
    seen.add(value)
    further = epoch_path(model, value)
    if further == ():
        yield Carrier(value, path)
    elif isinstance(further, tuple):
        for inner in kept_in(model, value, further[0]):
            yield from _carried(model, inner, (*path, further[0]), seen)


#: An object, however it was reached: its class, and the call that builds it.
Built: TypeAlias = "tuple[Class | str, Call | None]"


class EpochSet(NamedTuple):
    """A place that sets an epoch."""

    scope: Scope
    node: Node
    receiver: Expr
    """What it is set of."""


class EpochSets:
    """Places that set an epoch, by what they may set it of and by file.

    A tree may hold many programs, and each asks for its own.
    """

    def __init__(self, model: Model, places: Iterable[EpochSet]) -> None:
        self._places = list(places)
        self._of: dict[Built, list[int]] = {}
        self._unclear: dict[ModuleFacts, list[int]] = {}
        self._saying: dict[ModuleFacts, list[int]] = {}
        for number, place in enumerate(self._places):
            values = model.flow.values(place.receiver)
            if not _is_clear(model, values):
                self._unclear.setdefault(place.scope.module, []).append(number)
            if _says_batch_sampler(place.receiver):
                self._saying.setdefault(place.scope.module, []).append(number)
            for built in {(v.cls, v.site) for v in values if isinstance(v, Obj)}:
                self._of.setdefault(built, []).append(number)

    def concerning(
        self, objects: Iterable[Built], files: Iterable[ModuleFacts]
    ) -> Iterator[EpochSet]:
        """Those that may set the epoch of one of the objects, in order.

        In the files also those of which it is not clear whose epoch they set.
        """
        return self._either(objects, (self._unclear.get(file, ()) for file in files))

    def unclear(self) -> Iterator[EpochSet]:
        """Those of which it is not clear whose epoch they set, in any file."""
        return self._either((), self._unclear.values())

    def of_batch_sampler(self, objects: Iterable[Built], file: ModuleFacts) -> Iterator[EpochSet]:
        """Those of one of the objects, and those in the file that say ``batch_sampler``."""
        return self._either(objects, [self._saying.get(file, ())])

    def _either(
        self, objects: Iterable[Built], others: Iterable[Iterable[int]]
    ) -> Iterator[EpochSet]:
        numbers = {number for built in objects for number in self._of.get(built, ())}
        numbers.update(*others)
        return (self._places[number] for number in sorted(numbers))


def _is_clear(model: Model, values: frozenset[Value]) -> bool:
    """Whether it is known of which samplers and loaders, and where built, an epoch is set."""
    return bool(values) and all(
        isinstance(value, Lit)
        or (isinstance(value, Obj) and value.site is not None and model.role(value) is not None)
        for value in values
    )


def _says_batch_sampler(receiver: Expr) -> bool:
    return any(isinstance(node, Attr) and node.name == "batch_sampler" for node in walk(receiver))


@remembered
def epoch_calls(model: Model) -> EpochSets:
    """The ``set_epoch`` calls of the candidate files."""
    return EpochSets(model, called_epoch_sets(model))


def called_epoch_sets(model: Model) -> Iterator[EpochSet]:
    """As :func:`epoch_calls`, one by one."""
    for call in model.epoch_setters:
        assert isinstance(call.func, Attr)
        yield EpochSet(call.scope, call, call.func.value)


@dataclass(slots=True)
class Calls:
    """The ``set_epoch`` calls that concern an epoch loop."""

    hits: tuple[Call, ...]
    """Those that certainly reach a sampler of the loop."""
    unclear: bool
    """Whether another call near the loop may reach it too."""
    are_plain: bool = field(init=False)
    """Whether each is a statement's own ``….set_epoch(…)``."""
    by_scope: dict[Scope, list[Call]] = field(init=False)
    """:attr:`hits`, by where they stand."""

    def __post_init__(self) -> None:
        """Sort the calls: loops that share them ask again and again."""
        self.are_plain = all(
            isinstance(call.func, Attr) and call.func.name == "set_epoch" and call.stmt is not None
            for call in self.hits
        )
        self.by_scope = {}
        for call in self.hits:
            self.by_scope.setdefault(call.scope, []).append(call)


def calls_for(model: Model, found: EpochLoop, wanted: list[Carrier]) -> Calls:
    """The ``set_epoch`` calls that reach (or may reach) the samplers ``wanted`` of a loop."""
    near = {scope.module for scope in found.scopes}
    near.update(c.sampler.site.scope.module for c in wanted if c.sampler.site is not None)
    objects = frozenset(carrier.sampler for carrier in wanted)
    hits, doubtful = _calls_for(model, objects, frozenset(near))
    before = {c.sampler.site.scope for c in wanted if c.sampler.site} | {found.loop.scope}
    classes = {found.inner.loader.cls, *(obj.cls for obj in objects)}
    certain = tuple(
        call for call in hits if call.scope in before or may_act_in(model, found, call.scope, call)
    )
    unclear = any(may_act_in(model, found, call.scope, call) for call in doubtful) or any(
        isinstance(cls, Class) and sets_epoch_itself(model, found, cls) for cls in classes
    )
    sorted_: dict[object, Calls] = model.memo.setdefault(Calls, {})
    if (certain, unclear) not in sorted_:
        sorted_[certain, unclear] = Calls(certain, unclear)
    return sorted_[certain, unclear]


@remembered
def _calls_for(
    model: Model, objects: frozenset[Obj], near: frozenset[ModuleFacts]
) -> tuple[list[Call], list[Call]]:
    """The calls that set the epoch of one of the objects, and those near that may do so.

    Found once: many loops may pass over one loader.
    """
    hits: list[Call] = []
    doubtful: list[Call] = []
    built = {(obj.cls, obj.site) for obj in objects}
    for _, call, receiver in epoch_calls(model).concerning(built, near):
        assert isinstance(call, Call)
        values = model.flow.values(receiver)
        if any(obj.may_be(value) for obj in objects for value in as_made(model, receiver, values)):
            hits.append(call)
        elif (
            call.scope.module in near
            and not _forwards(call)
            and not is_nothing(values)
            and (
                not values
                or any(
                    not isinstance(v, (Obj, Lit)) or (isinstance(v, Obj) and v.site is None)
                    for v in values
                )
            )
        ):
            doubtful.append(call)
    return hits, doubtful


def as_made(model: Model, receiver: Expr, values: frozenset[Value]) -> Iterable[Value]:
    """The samplers of loaders that calls of a factory return: each is of the same call."""
    owners = model.flow.values(receiver.value) if isinstance(receiver, Attr) else frozenset()
    made: dict[Scope, list[Obj]] = {}
    for owner in owners:
        if not (isinstance(owner, Obj) and owner.through is not None and owner.site is not None):
            return values
        made.setdefault(owner.site.scope, []).append(owner)
    return [each for value in values for each in _through(value, made)]


def _through(value: Value, made: Mapping[Scope, Sequence[Obj]]) -> Sequence[Value]:
    if not isinstance(value, Obj) or value.site is None or value.through is not None:
        return [value]
    owners = made.get(value.site.scope, ())
    return [replace(value, through=owner.through) for owner in owners] or [value]


def is_nothing(values: frozenset[Value]) -> bool:
    """Whether they are all that an attribute may be that certainly nobody sets.

    Whoever asks before is told so, and passes on.
    """
    return bool(values) and all(
        isinstance(value, Unknown) and value.why is Why.UNDEFINED for value in values
    )


def _forwards(call: Call) -> bool:
    return isinstance(call.scope, Function) and SETS_EPOCH.says(call.scope.name)


def sets_epoch_itself(model: Model, found: EpochLoop, cls: Class) -> bool:
    """Whether a loader or sampler moves its own epoch on, in a pass or in what the loop calls."""
    passing = reach(model, cls, "__iter__", "__next__").functions
    for scope in scopes_inside(cls):
        if isinstance(scope, Function) and scope.name in BEFORE_PASS:
            continue
        moves = any(
            isinstance(call.func, Attr) and SETS_EPOCH.names(call.func) for call in scope.calls
        ) or any(
            isinstance(store.target, Attr)
            and EPOCH.names(store.target)
            and not _is_loaders_own(model, store.target)
            for store in scope.stores
        )
        if moves and (scope in passing or runs_in(model, found.loop, scope) is not False):
            return True
    return False


def _is_loaders_own(model: Model, epoch: Attr) -> bool:
    """Whether it is what a loader of torch's counts for itself: its sampler's is another."""
    cls = self_class(epoch.value)
    return (
        cls is not None
        and model.flow.is_a(cls, DATA_LOADER) is True
        and not any(isinstance(c, Class) and epoch.name in c.bindings for c in model.flow.mro(cls))
    )


def runs_in(model: Model, loop: Loop, scope: Scope) -> bool | None:
    """Whether a turn of the loop may run ``scope``; None if that is not known.

    Sought from the function upwards, along the calls of it and those that are spelled alike.
    """
    leading, is_offered = _leading(model, scope)
    if any(map(loop.encloses, leading.get(loop.scope, ()))):
        return True
    return None if is_offered else False


@remembered
def _leading(model: Model, scope: Scope) -> tuple[dict[Scope, list[Stmt]], bool]:
    """The statements that lead to a scope, by where they are, and whether others may run it.

    Sought once for all loops.
    """
    stmts: dict[Scope, list[Stmt]] = {}
    is_offered = False
    for each in closure([scope], lambda each: _run_by(model, each).scopes):
        run_by = _run_by(model, each)
        for stmt in run_by.stmts:
            stmts.setdefault(stmt.scope, []).append(stmt)
        # What is built by who knows whom in a turn is none of the objects that the loop has.
        is_offered |= run_by.is_offered and getattr(each, "name", "") != "__init__"
    return stmts, is_offered


def begins_in(model: Model, scope: Scope) -> set[str] | None:
    """The files whose own code leads to a scope by calls; None if others may call it, too.

    A function that nothing calls begins in its own file.
    """
    found: set[str] = set()
    for each in closure([scope], lambda each: _run_by(model, each).scopes):
        run_by = _run_by(model, each)
        if run_by.is_offered:
            return None
        if not run_by.scopes:
            found.add(model.module_of(each).path)
    return found


def leading_to(model: Model, loop: Loop, scope: Scope) -> list[Stmt] | None:
    """The statements of a loop's turns that may run a scope; None if others may, too."""
    found: list[Stmt] = []
    own = {loop.scope}
    for each in closure({scope} - own, lambda each: _run_by(model, each).scopes - own):
        run_by = _run_by(model, each)
        if run_by.is_offered:
            return None
        found += (stmt for stmt in run_by.stmts if loop.encloses(stmt))
    return found


def builds(model: Model, scope: Scope, family: Container[object]) -> bool:
    """Whether a method, of one of these classes, runs only while its own object is built."""
    seen, todo = {scope}, [scope]
    while todo:
        function = todo.pop()
        if not isinstance(function, Function) or function.cls not in family:
            return False
        if function.name != "__init__":
            run_by = _run_by(model, function)
            if run_by.is_offered or not run_by.scopes:
                return False
            todo += run_by.scopes - seen
            seen |= run_by.scopes
    return True


class _RunBy(NamedTuple):
    """What may run a function."""

    stmts: tuple[Stmt, ...]
    """The statements of the calls that may mean it."""
    scopes: frozenset[Scope]
    """Where these are, but for tests: what a test calls, it calls for itself."""
    is_offered: bool
    """Whether somebody else may."""


@remembered
def _run_by(model: Model, function: Scope) -> _RunBy:
    """What may run a function; found once, for it is asked on behalf of each loop."""
    if not isinstance(function, Function):
        return _RunBy((), frozenset(), False)
    calls = [
        *(
            made
            for call in model.flow.callers(function)
            if _is_accepted(call, function)
            for made in _naming(model, call, function)
        ),
        *(
            call
            for call in model.flow.call_candidates(function)
            if _may_mean(model, call, function) and not model.flow.callees(call)
        ),
    ]
    by_python = function.cls is not None and function.name.startswith("__")
    if not calls and function.cls is not None and not by_python:
        calls += _computed_reads(model, function)
    return _RunBy(
        tuple(dict.fromkeys(call.stmt for call in calls if call.stmt is not None)),
        frozenset(c.scope for c in calls if not is_test(model.module_of(c.scope))),
        (by_python or not calls) and _is_offered(model, function),
    )


def _naming(model: Model, call: Call, function: Function) -> Iterator[Call]:
    """The calls that run a function by a call of it: those that name it, where that goes by names.

    ``notify("epoch_end")`` runs that hook by ``getattr(hook, event)(…)``, and no other.
    """
    asked = model.flow.name_asked_for(call)
    told = read_parameter(asked) if asked is not None else None
    callers = model.flow.callers(told[0]) if told is not None else []
    if asked is None or not callers:
        yield call
        return
    for each in callers:
        names = model.flow.constants(asked, each)
        if names is None or function.name in names:
            yield each


def _is_accepted(call: Call, function: Function) -> bool:
    """Whether a function would take the arguments of a call that spells its name.

    A registry that holds all classes of a tree lets ``model.train()`` reach any ``train``.
    """
    return last_name(call.func) != function.name or may_fill(call, function)


def _may_mean(model: Model, call: Call, function: Function) -> bool:
    """Whether a call that is not followed is spelled as one of a function: a method's by a dot.

    What a library made has no method of a class of the tree, unless that derives from one. A
    call with other arguments (``model.train()``) is none of a method that is called alike.
    """
    if last_name(call.func) != function.name or not _is_accepted(call, function):
        return False
    cls = function.cls
    if cls is None:
        return not isinstance(call.func, Attr)
    values = model.flow.values(call.func)
    is_foreign = bool(values) and all(isinstance(value, Ext) for value in values)
    return isinstance(call.func, Attr) and not (
        is_foreign and all(isinstance(base, Class) for base in model.flow.mro(cls))
    )


def _computed_reads(model: Model, method: Function) -> Iterator[Call]:
    """Where a method may be read by a computed name to be called: ``getattr(hook, stage)``."""
    for call in model.project.calls_near("getattr", method):
        if len(call.positional) < 2 or isinstance(call.positional[1], Const):
            continue
        values = model.flow.values(call.positional[0])
        if not values or any(
            isinstance(value, Unknown)
            or (isinstance(value, Obj) and model.flow.method(value.cls, method.name) is method)
            for value in values
        ):
            yield call


@remembered
def unknown_hook(model: Model, loop: Loop) -> Call | None:
    """A call by string, in a turn of a loop, that hands a loader to an object that is not known.

    Or hands it what keeps one: its own owner, for example.
    """
    return next(_unknown_hooks(model, loop), None)


def _unknown_hooks(model: Model, loop: Loop) -> Iterator[Call]:
    values = model.flow.values
    todo: list[tuple[Scope, Iterable[Call]]] = [(loop.scope, loop.scope.calls_in(loop))]
    seen: set[Scope] = set()
    for scope, calls in todo:
        by_string = set(model.flow.calls_by_string(scope))
        for call in calls:
            if call in by_string and any(
                _leads_to_loaders(model, value) for arg in call.args for value in values(arg.value)
            ):
                owner = model.flow.owner_asked(call)
                if owner is None or any(map(_is_of_others, values(owner))):
                    yield call
            for callee in model.flow.callees(call):
                if callee not in seen and len(seen) < MOST_SEARCHED_FOR_STEP:
                    seen.add(callee)
                    todo.append((callee, callee.calls))


@remembered
def _leads_to_loaders(model: Model, value: Value) -> bool:
    """Whether it is a loader or a sampler, or an object that keeps one."""
    if not isinstance(value, Obj) or not isinstance(value.cls, Class):
        return isinstance(value, Obj) and model.role(value) is not None
    return model.role(value) is not None or any(
        isinstance(held, Obj) and model.role(held) is not None
        for name in model.attributes(value.cls).names
        for held in model.flow.ask_field(value, name)
    )


def _is_of_others(value: Value) -> bool:
    """Whether it is made elsewhere; a loop is to be right without what its user may hand in."""
    is_lost = isinstance(value, Unknown) and value.why is not Why.CHOSEN
    return is_lost or isinstance(value, ExtObj)


def _is_offered(model: Model, function: Function) -> bool:
    """Whether Python itself, a framework or a registry may call what nothing here calls."""
    cls = function.cls
    return bool(function.decorators) or (
        cls is not None
        and (
            function.name.startswith("__")
            or bool(cls.decorators)
            or not all(isinstance(base, Class) for base in model.flow.mro(cls))
        )
    )


def may_act_in(model: Model, found: EpochLoop, scope: Scope, node: Node) -> bool:
    """Whether code at ``node`` may run in a turn of the loop, or of one that runs the loop again.

    What another program, a test or a function that nothing on the way calls does has no say, nor
    what runs under an answer that the pass does not, or in another loop beside this one.
    """
    if sampler_around(model, found.loop.scope) is not None and not is_test(model.module_of(scope)):
        return model.project.same_program(scope, found.loop.scope)
    if not _is_run_in(model, found, scope, node) or _is_made_apart(model, scope, found):
        return False
    return not isinstance(node, (Call, Stmt)) or not (
        contradict(model, [node], [found.inner.stmt, *found.calls])
        or is_left_out(model, node, [found.inner.loader])
    )


def _is_made_apart(model: Model, scope: Scope, found: EpochLoop) -> bool:
    """Whether only scripts that never run with the loader's make an object that has a method."""
    method, site = method_around(scope), found.inner.loader.site
    init = method and method.cls and model.flow.method(method.cls, "__init__")
    if not isinstance(init, Function) or site is None:
        return False
    return begin_apart(model, [call.scope for call in model.flow.callers(init)], site.scope)


def begin_apart(model: Model, scopes: Sequence[Scope], other: Scope) -> bool:
    """Whether only scripts lead to some scopes that never run with those that lead to another."""
    found = [begins_in(model, scope) for scope in (*scopes, other)]
    known = [each for each in found if each]
    if not scopes or len(known) < len(found):
        return False
    *ones, others = known
    module_at = model.project.module_at
    pairs = product(map(module_at, set().union(*ones)), map(module_at, others))
    return all(one and two and program_files(model).run_apart(one, two) for one, two in pairs)


def _is_run_in(model: Model, found: EpochLoop, scope: Scope, node: Node) -> bool:
    """Whether a turn of the loop, or of one that runs the loop again, comes by a place."""
    stmt = node if isinstance(node, Stmt) else getattr(node, "stmt", None)
    if stmt is not None and found.loop.encloses(stmt):
        return True
    if stmt is not None and hands_over_in(found.loop) and loops_over_stmt(model, stmt):
        # Whoever draws from the generator runs between two of its turns.
        return model.project.same_program(scope, found.loop.scope)
    is_apart = scope is found.loop.scope and stmt is not None and _has_own_loop(stmt, found.loop)
    if scope in found.scopes and not is_apart:
        return True
    if (
        isinstance(scope, Function)
        and not is_apart
        and runs_in(model, found.loop, scope) is not False
    ):
        return True
    return any(
        (stmt is not None and outer.encloses(stmt)) or runs_in(model, outer, scope)
        for outer in loops_over_stmt(model, found.loop)
        # What tries again, or goes over folds, begins all epochs anew.
        if _counts_epochs(outer) or not _counts_epochs(found.loop)
    )


def _counts_epochs(loop: Loop) -> bool:
    return EPOCH.is_mentioned(loop.target if isinstance(loop, For) else loop.test)


def _has_own_loop(stmt: Stmt, loop: Loop) -> bool:
    """Whether a loop around a statement has nothing to do with another: it does not hold that."""
    return any(
        isinstance(each, (For, While)) and not each.encloses(loop) for each in stmt.ancestors()
    )


@remembered
def loops_over_stmt(model: Model, stmt: Stmt) -> list[Loop]:
    """The loops whose turns run a statement again: around it, or around the calls that do."""

    def callers(place: Stmt) -> list[Stmt]:
        calls = model.flow.callers(place.scope)
        return [call.stmt for call in calls if call.stmt is not None]

    around = (outer for place in closure([stmt], callers) for outer in place.ancestors())
    return [outer for outer in around if isinstance(outer, (For, While))]


def guards(call: Call) -> list[If]:
    """The ``if`` statements around a call, innermost first."""
    return [] if call.stmt is None else [s for s in call.stmt.ancestors() if isinstance(s, If)]


def another_arm_sets(call: Call) -> bool:
    """Whether another arm of the ``if``, ``elif`` or ``else`` around it sets an epoch, too."""
    for guard in guards(call):
        for other in call.scope.calls_in(guard):
            if SETS_EPOCH.names(other.func) and _block(guard, other) is not _block(guard, call):
                return True
        if not isinstance(guard.parent, If) or guard.parent.orelse != [guard]:
            return False
    return False


def _block(guard: If, call: Call) -> list[Stmt]:
    """The block of an ``if`` that holds a call in it."""
    is_in = call.stmt is not None and any(stmt.encloses(call.stmt) for stmt in guard.body)
    return guard.body if is_in else guard.orelse
