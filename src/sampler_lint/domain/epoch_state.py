"""What a class does with the epoch: where ``set_epoch`` puts it, what its iteration reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.origins import LOCAL, NUMBERS, Hop, depends_on, ends
from sampler_lint.analysis.values import Obj, Unknown, Why
from sampler_lint.domain.concepts import (
    ASKS_KIND,
    DRAW,
    GENERATORS,
    GIVES_STATE,
    ITERATED,
    ITERATES,
    LOGS,
    LOOKS,
    PROTOCOL,
    RESTORES,
    SAMPLER_CLASS,
    SEEDS_ONE,
    SETS_EPOCH,
)
from sampler_lint.domain.datasets import is_dataset
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model, own_scopes
from sampler_lint.domain.programs import stores_beside
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import (
    method_around,
    nodes_in,
    on_super,
    self_class,
    self_stores,
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
    Function,
    If,
    Name,
    Raise,
    Return,
    Seq,
    Simple,
    Stmt,
    Store,
    last_name,
)


@dataclass(slots=True)
class Reach:
    """The code that runs when a method of a class is called."""

    functions: set[Function] = field(default_factory=set)
    """The methods of the tree, functions inside them too."""
    outside: set[tuple[str, str]] = field(default_factory=set)
    """Methods of known classes: (class, method)."""
    opaque: bool = False
    """Whether something that is not followed may run with the object."""

    @property
    def calls(self) -> Iterator[Call]:
        """Every call in the functions."""
        for function in self.functions:
            yield from function.calls

    def self_reads(self) -> Iterator[Attr]:
        """Every ``self.name`` read in the functions."""
        for function in self.functions:
            for read in function.reads:
                if self_class(read.value) is not None:
                    yield read


@remembered
def reach(model: Model, cls: Class, *names: str) -> Reach:
    """What runs when the methods ``names`` are called on an instance of ``cls``."""
    found = Reach()
    todo: list[tuple[str, Class | None]] = [(name, None) for name in names]
    seen = set()
    while todo:
        item = todo.pop()
        if item in seen:
            continue
        seen.add(item)
        name, above = item
        method = lookup(model, cls, name, above)
        if isinstance(method, Unknown):
            found.opaque = True
        elif isinstance(method, str):
            found.outside.add((method, name))
        elif method is not None:
            for function in (method, *method.module.inside(method)):
                found.functions.add(function)
                todo.extend(_used(function, method))
                found.opaque |= _hands_out_self(function)
    return found


def lookup(
    model: Model, cls: Class, name: str, above: Class | None
) -> Function | str | Unknown | None:
    """Who defines a method for ``cls``, after ``above`` in its hierarchy if given."""
    mro = model.flow.mro(cls)
    if above is not None and above in mro:
        mro = mro[mro.index(above) + 1 :]
    for base in mro:
        if isinstance(base, Class):
            if base.method(name) is not None:
                return base.method(name)
            if base.bindings.get(name):
                return None
        elif isinstance(base, Unknown):
            return base
        elif not is_dataset(base):
            entry = catalog.known(base)
            if entry is None:
                return Unknown(f"{base} is outside the tree", Why.FOREIGN)
            if name in entry.methods:
                return base
    return None


def _used(function: Function, method: Function) -> Iterator[tuple[str, Class | None]]:
    """The names of methods that a function reads off ``self`` or ``super()``."""
    for read in function.reads:
        if self_class(read.value) is not None:
            yield read.name, None
        elif on_super(read):
            yield read.name, method.cls
    for call in function.calls:
        if not call.positional or self_class(call.positional[0]) is None:
            continue
        if isinstance(call.func, Attr):  # Base.method(self, …)
            yield call.func.name, method.cls
        elif (name := f"__{last_name(call.func)}__") in PROTOCOL:  # iter(self), len(self)
            yield name, None


def _hands_out_self(function: Function) -> bool:
    return any(
        self_class(arg.value) is not None
        and not (LOOKS.is_call(call) or ITERATES.is_call(call))
        and not (isinstance(call.func, Attr) and call.positional[:1] == [arg.value])
        for call in function.calls
        for arg in call.args
    )


# --------------------------------------------------------------------------- the setter


class Setter(NamedTuple):
    """What ``set_epoch`` of a class does."""

    functions: tuple[Function, ...]
    """The methods of the tree that run, the first one called first."""
    inherited: str | None
    """The known class whose ``set_epoch`` runs (last), if one does."""
    stored: frozenset[str]
    """The attributes that take the epoch."""
    inert: bool
    """Whether storing (and logging) is all it does."""


def setter_of(model: Model, cls: Class) -> Setter | None:
    """The class's ``set_epoch``; None if it has none or it is not known."""
    functions: list[Function] = []
    stored: set[str] = set()
    inert = True
    inherited: str | None = None
    above: Class | None = None
    while True:
        method = lookup(model, cls, "set_epoch", above)
        if isinstance(method, Unknown):
            return None
        if isinstance(method, str):
            inherited = method
            stored.add("epoch")
            break
        if method is None or method.cls is None or method in functions:
            break
        functions.append(method)
        found, plain, goes_on = _stores_of_setter(method)
        stored |= found
        inert &= plain
        if not goes_on:
            break
        above = method.cls
    if not functions and inherited is None:
        return None
    return Setter(tuple(functions), inherited, frozenset(stored), inert)


def _stores_of_setter(method: Function) -> tuple[set[str], bool, bool]:
    """The attributes that take the epoch; whether that is all; whether the base's runs too."""
    stored: set[str] = set()
    inert, goes_on = True, False
    for stmt in statements(method.body):
        if isinstance(stmt, Assign):
            for target, value in _assigned(stmt):
                if isinstance(target, Attr) and self_class(target.value) is not None:
                    if not isinstance(value, Const):  # a literal resets, and keeps no epoch
                        stored.add(target.name)
                elif not isinstance(target, Name):
                    inert = False
        elif isinstance(stmt, ExprStmt):
            call = stmt.value
            if isinstance(call, Call) and _is_base(call, method):
                goes_on = True
                continue
            if LOGS.is_call(call):
                continue
            inert = False
        elif not isinstance(stmt, (If, Return, Simple, Raise)):
            inert = False
        if not isinstance(stmt, ExprStmt) and any(
            isinstance(node, Call)
            and last_name(node.func) not in NUMBERS
            and not ASKS_KIND.is_call(node)
            for node in nodes_in([stmt])
        ):
            inert = False
    return stored, inert, goes_on


def _assigned(stmt: Assign) -> Iterator[tuple[Expr, Expr]]:
    """Each target of an assignment with what it is given, as of ``a, b = x, y``."""
    for target in stmt.targets:
        if (
            isinstance(target, Seq)
            and isinstance(stmt.value, Seq)
            and len(target.items) == len(stmt.value.items)
        ):
            yield from zip(target.items, stmt.value.items, strict=True)
        else:
            yield target, stmt.value


def _is_base(call: Call, method: Function) -> bool:
    """``super().set_epoch(…)`` or ``Base.set_epoch(self, …)``."""
    if not isinstance(call.func, Attr) or call.func.name != "set_epoch":
        return False
    owner = call.func.value
    if isinstance(owner, Call):
        return last_name(owner.func) == "super"
    return bool(call.positional) and self_class(call.positional[0]) is method.cls


# --------------------------------------------------------------------------- the whole class


@dataclass(frozen=True, slots=True)
class EpochState:
    """A class, the epoch it is given and who reads it."""

    cls: Class
    setter: Setter | None
    iteration: Reach
    """What runs in a pass: ``__iter__`` and ``__next__``, of a dataset ``__getitem__``."""
    construction: Reach

    @property
    def stored(self) -> frozenset[str]:
        """The attributes that ``set_epoch`` fills."""
        return self.setter.stored if self.setter is not None else frozenset()

    def reads(self, within: Reach) -> list[Attr]:
        """The reads of what ``set_epoch`` fills, but for those that a log line shows."""
        return [
            read
            for read in within.self_reads()
            if read.name in self.stored and not _is_logged(read)
        ]


def _is_logged(read: Attr) -> bool:
    stmt = read.stmt
    return (
        isinstance(stmt, ExprStmt)
        and isinstance(stmt.value, Call)
        and LOGS.is_call(stmt.value)
        and any(node is read for arg in stmt.value.args for node in walk(arg.value))
    )


@remembered
def epoch_state(model: Model, cls: Class) -> EpochState:
    """What ``cls`` does with the epoch."""
    passing: tuple[str, ...] = ("__iter__", "__next__")
    if is_map_dataset(model, cls):
        passing = ("__getitem__",)
    elif gives_order_when_called(model, cls):
        passing = tuple(_offered(model, cls))
    return EpochState(
        cls,
        setter_of(model, cls),
        reach(model, cls, *passing),
        reach(model, cls, "__init__"),
    )


def is_closed(model: Model, cls: Class) -> bool:
    """Whether every base is known."""
    return all(
        isinstance(base, Class)
        or is_dataset(base)
        or (isinstance(base, str) and catalog.known(base) is not None)
        for base in model.flow.mro(cls)
    )


def iterates(model: Model, cls: Class) -> bool:
    """Whether the class is a sampler or an iterable dataset, so that its passes give an order."""
    return (
        model.is_meant_as_sampler(cls)
        or gives_order_when_called(model, cls)
        or any(is_dataset(base, iterable=True) for base in model.flow.mro(cls))
    )


def gives_order_when_called(model: Model, cls: Class) -> bool:
    """Whether a sampler with a ``set_epoch`` is asked for its order by methods of its own."""
    return (
        SAMPLER_CLASS.says(cls.name)
        and cls.method("set_epoch") is not None
        and lookup(model, cls, "__iter__", None) is None
    )


def _offered(model: Model, cls: Class) -> Iterator[str]:
    """The methods by which a class may be asked for its order."""
    for base in model.flow.own_mro(cls):
        for name in base.bindings:
            told = SETS_EPOCH.says(name) or GIVES_STATE.says(name) or RESTORES.says(name)
            if name == "__call__" or not (told or name.startswith("_")):
                yield name


def is_map_dataset(model: Model, cls: Class) -> bool:
    """Whether a loader asks the class for samples one by one."""
    mro = model.flow.mro(cls)
    if any(map(is_dataset, mro)):
        return not any(is_dataset(base, iterable=True) for base in mro)
    # One that is no dataset of torch by its bases only: a loader asks for no more.
    asked = (lookup(model, cls, name, None) for name in ("set_epoch", "__len__", "__getitem__"))
    return (
        not SAMPLER_CLASS.says(cls.name)
        and all(isinstance(method, Function) for method in asked)
        and lookup(model, cls, "__iter__", None) is None
    )


def wraps(model: Model, cls: Class) -> bool:
    """Whether the class may yield what another object does."""
    return is_map_dataset(model, cls) or lookup(model, cls, "__iter__", None) is not None


def takes_order_of_torch(model: Model, cls: Class) -> bool:
    """Whether a pass goes over what ``DistributedSampler`` itself draws, perhaps cut or grouped."""
    return (DISTRIBUTED_SAMPLER, "__iter__") in reach(model, cls, "__iter__", "__next__").outside


def uses_epoch(model: Model, cls: Class) -> bool:
    """Whether setting the epoch of an instance certainly changes what a pass gives."""
    state = epoch_state(model, cls)
    if state.setter is None:
        return False
    if state.reads(state.iteration):
        if not is_map_dataset(model, cls) or seedings_of(state.iteration):
            return True
        return bool(seedings_of(reach(model, cls, "set_epoch")))
    return state.setter.inherited == DISTRIBUTED_SAMPLER and takes_order_of_torch(model, cls)


def seeds_by_epoch(model: Model, cls: Class) -> bool:
    """Whether a pass seeds what it draws with an epoch that only ``set_epoch`` moves on."""
    state = epoch_state(model, cls)
    if not state.stored or state.iteration.opaque or advances_itself(state):
        return False
    seeds = filter(None, map(seed_argument, seedings_of(state.iteration)))
    return any(
        depends_on(model.flow, seed, partial(_is_told_epoch, state), LOCAL) is not None
        for seed in seeds
    )


def _is_told_epoch(state: EpochState, expr: Expr) -> bool:
    return (
        isinstance(expr, Attr) and expr.name in state.stored and self_class(expr.value) is not None
    )


def advances_itself(state: EpochState) -> bool:
    """Whether a pass moves the epoch of the object on, so that the next one has another."""
    return any(target.name in state.stored for target, _ in self_stores(state.iteration.functions))


def draws_by_seeds(model: Model, cls: Class) -> bool:
    """Whether a pass draws, and by seeds alone that it sets, wherever it does so."""
    trial = model.epoch_trial(cls, mixes=True)
    return trial is not None and trial.draws and not (trial.strays or trial.drifts)


def draws_by_no_seed(model: Model, cls: Class) -> bool:
    """Whether what a pass draws rests on nothing known: each has another order by itself."""
    trial = model.epoch_trial(cls, mixes=True)
    return trial is not None and trial.strays and not trial.draws


def reorders_itself(model: Model, cls: Class) -> bool:
    """Whether a pass leaves what the next one shuffles anew, so that they differ by themselves."""
    trial = model.epoch_trial(cls, mixes=True)
    return trial is not None and trial.reorders


def read_elsewhere(model: Model, state: EpochState, known: Iterable[Reach]) -> bool:
    """Whether code besides ``known`` may read what ``set_epoch`` fills."""
    covered = {function for found in known for function in found.functions}
    for scope in own_scopes(model, state.cls):
        if not isinstance(scope, Function) or scope in covered:
            continue
        # What is written down or shown says nothing about the order.
        if scope.name in ("set_epoch", "__repr__", "__str__") or GIVES_STATE.says(scope.name):
            continue
        if any(
            read.name in state.stored and self_class(read.value) is not None for read in scope.reads
        ):
            return True
    names = set(model.flow.own_mro(state.cls))
    for module in model.project.modules_near(state.cls):
        for scope in module.facts.scopes:
            for read in scope.reads:
                if read.name not in state.stored or self_class(read.value) in names:
                    continue
                if ITERATED.names(read.value):
                    return True
    return False


# --------------------------------------------------------------------------- random numbers


def draws_of(found: Reach) -> list[Call]:
    """The calls that draw random numbers."""
    return list(DRAW.calls_in(found.calls))


def seedings_of(found: Reach) -> list[Call]:
    """The calls that seed a generator, one's own or the process's, with a value."""
    return [
        call
        for call in found.calls
        if seed_argument(call) is not None
        and (
            SEEDS_ONE.is_call(call)
            or GENERATORS.is_call(call)
            or call.keyword("random_state") is not None
        )
    ]


def seed_argument(call: Call) -> Expr | None:
    """What a seeding call seeds with; ``random_state`` is how pandas and scikit-learn take it."""
    by_keyword = call.keyword("random_state") or call.keyword("seed")
    return by_keyword or (call.positional[0] if call.positional else None)


def is_fixed(model: Model, state: EpochState, expr: Expr) -> bool:
    """Whether a seed is the same in every pass: literals and what only ``__init__`` sets."""
    return all(_stays(model, state, leaf) for leaf in seed_parts(model, expr))


def seed_parts(model: Model, expr: Expr) -> Iterator[Expr]:
    """What a seed of a pass is made of: literals, attributes, and what is not followed."""
    return ends(model.flow, expr, LOCAL | Hop.TEST | Hop.CALLER | Hop.RETURN)


def changed_elsewhere(model: Model, state: EpochState, *more: str) -> bool:
    """Whether code besides a pass and ``set_epoch`` may change what the pass seeds with, or more.

    Or what either of them asks before: from where on a pass is read is another question.
    """
    setting = reach(model, state.cls, "set_epoch")
    ran = state.iteration.functions | setting.functions
    arguments = filter(None, map(seed_argument, seedings_of(state.iteration)))
    parts = [part for argument in arguments for part in seed_parts(model, argument)]
    tests = [
        part
        for function in state.iteration.functions
        for stmt in statements(function.body)
        if isinstance(stmt, If)
        for part in walk(stmt.test)
    ]
    names = {part.name for part in (*parts, *tests) if isinstance(part, Attr)}
    names.update(read.name for read in setting.self_reads())
    names.update(_read_outside(state.iteration), more)
    return any(
        store.scope not in ran and _may_be_of(model, store, state.cls) and not _is_in_init(store)
        for name in names
        for store in stores_beside(model, name, state.cls)
    )


def _read_outside(found: Reach) -> Iterator[str]:
    """The attributes that methods of known classes read."""
    for base, name in found.outside:
        for entry in catalog.known_mro(base):
            yield from (each for method, names in entry.reads if method == name for each in names)


def _stays(model: Model, state: EpochState, leaf: Expr) -> bool:
    if isinstance(leaf, Const):
        return True
    while isinstance(leaf, Attr):
        if any(
            _changes(model, store, state.cls, leaf)
            for store in stores_beside(model, leaf.name, state.cls)
        ):
            return False
        leaf = leaf.value
    return self_class(leaf) is not None


def _changes(model: Model, store: Store, cls: Class, read: Attr) -> bool:
    """Whether a store may change what ``read`` reads of an instance after it was built."""
    assert isinstance(store.target, Attr)
    owner = store.target.value
    if self_class(owner) is None and self_class(read.value) is None:
        return last_name(owner) == last_name(read.value)
    return _may_be_of(model, store, cls) and not _is_in_init(store)


def _may_be_of(model: Model, store: Store, cls: Class) -> bool:
    """Whether a store may be to an instance of a class that is iterated."""
    assert isinstance(store.target, Attr)
    owner = store.target.value
    if self_class(owner) is None:
        return ITERATED.names(owner) or any(
            isinstance(value, Obj)
            and isinstance(value.cls, Class)
            and cls in model.flow.mro(value.cls)
            for value in model.flow.values(owner)
        )
    return is_no_other_self(model, owner, cls) and not _is_overridden(model, store, cls)


def _is_overridden(model: Model, store: Store, cls: Class) -> bool:
    """Whether a base's method stores it for which instances have another, that leaves it out."""
    method = method_around(store.scope)
    if method is None or method.cls is None or method.cls is cls:
        return False
    return all(
        isinstance(own := lookup(model, one, method.name, None), Function)
        and own.cls is not method.cls
        and method not in reach(model, one, *_named(model, one)).functions
        for one in (cls, *model.flow.subclasses(cls))
    )


def _named(model: Model, cls: Class) -> list[str]:
    """The names of all methods that a class has of its own or inherits."""
    return sorted({method.name for base in model.flow.own_mro(cls) for method in base.methods})


def is_no_other_self(model: Model, receiver: Expr, cls: Class) -> bool:
    """Whether a receiver is not the ``self`` of a class whose instances are none of ``cls``."""
    owner = self_class(receiver)
    if owner is None or owner in model.flow.mro(cls) or cls in model.flow.mro(owner):
        return True
    return any(owner in model.flow.mro(below) for below in model.flow.subclasses(cls))


def _is_in_init(store: Store) -> bool:
    """Whether an object sets it when it is built, or when it is put where it was."""
    scope = store.scope
    is_own = isinstance(store.target, Attr) and self_class(store.target.value) is not None
    return (
        is_own
        and isinstance(scope, Function)
        and (scope.name == "__init__" or RESTORES.says(scope.name))
    )


def is_kept_literal(model: Model, cls: Class, name: str) -> bool:
    """Whether an attribute is a literal of the class or its constructor that nothing changes."""
    found = [store for store in stores_beside(model, name, cls) if _may_be_of(model, store, cls)]
    in_class = (
        isinstance(binding.value, Const)
        for base in model.flow.own_mro(cls)
        for binding in base.bindings.get(name, ())
    )
    return (bool(found) or any(in_class)) and all(
        _is_in_init(store) and store.how == "assign" and isinstance(store.value, Const)
        for store in found
    )


def in_stop(stmt: Stmt) -> bool:
    """Whether a statement stands in a block that ends the pass with ``raise StopIteration``."""
    return any(
        isinstance(other, Raise)
        and other.value is not None
        and last_name(other.value.func if isinstance(other.value, Call) else other.value)
        == "StopIteration"
        for other in stmt.block
    )
