"""Which values several expressions have together at a call, way by way through its function.

``sampler`` is ``None`` or a ``DistributedSampler``, ``shuffle`` is ``True`` or ``False``: what a
loader is given depends on which of them meet. So the statements before the call are run
abstractly, one branch after another. Values are known to be ``None`` or not, true or not; what
is not known keeps a name, so that the same condition spelled twice is decided once.

Loops run at most once, and a name that one assigns has an unknown value where it starts. Calls
are not followed, except that a function's parameters can be seeded by one of its callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.analysis.values import Ext, ExtObj, Lit, Pack, Table, Unknown, Value, View
from sampler_lint.domain.model import Model
from sampler_lint.limits import MOST_CALLERS_OF_WAYS, MOST_STATES
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import children, expressions, holds, statements, walk
from sampler_lint.syntax.nodes import (
    EQUAL,
    UNEQUAL,
    Assign,
    Attr,
    Bin,
    Call,
    Choice,
    Compare,
    Const,
    Declare,
    Define,
    Expr,
    For,
    Function,
    If,
    Import,
    Index,
    Name,
    Raise,
    Return,
    Scope,
    Seq,
    Simple,
    Stmt,
    Try,
    Unary,
    While,
    With,
    dotted,
    last_name,
)


@dataclass(frozen=True, slots=True)
class Sym:
    """What is known of a value on one way."""

    key: str
    """Two values with one key are the same value."""
    none: bool | None = None
    truth: bool | None = None
    literal: tuple[Any, ...] = ()
    """The value itself, as a one-tuple, if it is a literal."""
    origin: Expr | None = None
    """The expression that made the value."""
    param: str | None = None
    """The parameter, or the name from outside of the tree, that it still is."""


#: The calls whose argument decides what they give.
_LOOKED_INTO = ("bool", "isinstance")

#: Whether a value is None, whether it is true, and the literal it is.
_Known = tuple[bool | None, bool | None, tuple[Any, ...]]
_UNKNOWN: _Known = (None, None, ())


@dataclass(slots=True)
class State:
    """What is known on one way."""

    values: dict[str, Sym] = field(default_factory=dict)
    nones: dict[str, bool] = field(default_factory=dict)
    truths: dict[str, bool] = field(default_factory=dict)
    decided: dict[Expr, bool] = field(default_factory=dict)
    """The tests that were passed, and their answers."""

    def fork(self) -> State:
        """A copy that can learn something else."""
        return State(dict(self.values), dict(self.nones), dict(self.truths), dict(self.decided))

    def refined(self, sym: Sym) -> Sym:
        """``sym`` with what this way has learnt about it."""
        none = self.nones.get(sym.key) if sym.none is None else sym.none
        truth = self.truths.get(sym.key) if sym.truth is None else sym.truth
        if none is None and truth:
            none = False
        if truth is None and none:
            truth = False
        if none is sym.none and truth is sym.truth:
            return sym
        return replace(sym, none=none, truth=truth)


class _TooManyError(Exception):
    """There are more ways than are looked at."""


@dataclass(frozen=True, slots=True)
class Way:
    """The values of the expressions asked for, on one way to the call."""

    values: tuple[Sym, ...]
    through: Call | None = None
    """The call of the function that this way begins with."""
    decided: frozenset[tuple[Expr, bool]] = frozenset()
    """The tests on the way and their answers."""

    def apart(self, other: Way) -> set[Expr]:
        """The tests that both ways decide, and not alike.

        Of a variable that holds the answer, the variable: its name says what is asked.
        """
        found = {test for test, answer in self.decided if (test, not answer) in other.decided}
        held = [
            binding.value
            for test in found
            if isinstance(test, Name)
            for binding in test.scope.bindings.get(test.id, ())
            if binding.value is not None
        ]
        return {test for test in found if not any(holds(value, test) for value in held)}


def ways(
    model: Model, call: Call, exprs: Sequence[Expr], *, settled: bool = True
) -> list[Way] | None:
    """Every way to ``call``, whoever calls its function; None if there are too many.

    Args:
        model: the linked model.
        call: where the ways end.
        exprs: what is asked for there.
        settled: whether a literal that is kept elsewhere (a constant, an attribute's default)
            counts as the value; else somebody may set another before the program runs.
    """
    return _Run(model, call, exprs, settled=settled).ways({}, None)


def ways_by_caller(
    model: Model, call: Call, exprs: Sequence[Expr]
) -> Iterator[tuple[Call, list[Way]]]:
    """The ways to ``call`` for each known call of the function it stands in."""
    function = call.scope
    if not isinstance(function, Function):
        return
    callers = model.flow.callers(function)
    if len(callers) > MOST_CALLERS_OF_WAYS:
        return
    run = _Run(model, call, exprs)
    wanted = [param for param in function.params if param.name in run.relevant]
    for caller in callers:
        given = {param.name: passed(function, param, caller) for param in wanted}
        asked = {name: value for name, value in given.items() if isinstance(value, Expr)}
        found = ways(model, caller, list(asked.values())) or []
        out: list[Way] = []
        for way in found[:MOST_STATES]:
            seeds = dict(zip(asked, way.values, strict=True))
            for param in wanted:
                if given[param.name] is MISSING and isinstance(param.default, Const):
                    seeds[param.name] = literal(param.default)
            out += run.ways(seeds, caller) or []
        if out:
            yield caller, out


def literal(const: Const) -> Sym:
    """The value of a literal."""
    value = const.value
    if value is ...:
        return Sym("…", none=False, truth=None, origin=const)
    return Sym(repr(value), value is None, bool(value), (value,), const)


class _Run:
    """The abstract run of one function up to one call."""

    def __init__(
        self, model: Model, call: Call, exprs: Sequence[Expr], *, settled: bool = True
    ) -> None:
        self.model = model
        self.settled = settled
        self.call = call
        self.exprs = exprs
        self.scope: Scope = call.scope
        self.target = call.stmt if call.stmt is not None and call.stmt.scope is call.scope else None
        self.index = _index(model, self.scope)
        self.relevant = self.index.relevant(exprs)
        self.tracked = self.index.relevant(exprs, in_calls=True) | self.index.tested
        """The names of which anything may be asked on the way."""
        if self.target is not None:
            self.tracked = self.tracked.union(*map(self.index.named, expressions(self.target)))
        self.hits: list[State] = []
        self.left: list[State] = []
        """The states in which the innermost loop's body was left early."""
        self.steps = 0

    def ways(self, seeds: Mapping[str, Sym], through: Call | None) -> list[Way] | None:
        self.hits, self.steps = [], 0
        start = State(dict(seeds))
        try:
            if self.target is None:
                self.hits.append(start)
            else:
                for _ in self._block(self.index.steps(self.tracked, self.target), start):
                    pass
            out = []
            for state in self.hits:
                for after, values in self._all(self.exprs, state):
                    refined = tuple(after.refined(value) for value in values)
                    out.append(Way(refined, through, frozenset(after.decided.items())))
            return out
        except (_TooManyError, RecursionError):
            return None

    def _all(self, exprs: Sequence[Expr], state: State) -> Iterator[tuple[State, list[Sym]]]:
        if not exprs:
            yield state, []
            return
        for first_state, first in self._value(exprs[0], state):
            for rest_state, rest in self._all(exprs[1:], first_state):
                yield rest_state, [first, *rest]

    # -- statements

    def _block(self, body: Sequence[Stmt], state: State) -> Iterator[State]:
        """The states in which the block is left at its end."""
        states = [state]
        assert self.target is not None
        for stmt in body:
            if stmt.order > self.target.last_order:
                break  # nothing leads back
            following: list[State] = []
            for current in states:
                following += self._statement(stmt, current)
            states = following
            self.steps += len(states)
            if len(states) + len(self.hits) > MOST_STATES or self.steps > 40 * MOST_STATES:
                raise _TooManyError
        yield from states

    def _statement(self, stmt: Stmt, state: State) -> Iterator[State]:
        if stmt is self.target:
            self._hit(stmt, state)
            if not isinstance(stmt, (If, While, For, With)):
                return
        if isinstance(stmt, Assign):
            yield from self._assign(stmt, state)
        elif isinstance(stmt, If):
            yield from self._if(stmt, state)
        elif isinstance(stmt, (For, While)):
            yield from self._loop(stmt, state)
        elif isinstance(stmt, With):
            self._forget(stmt, state, inside=False)
            yield from self._block(stmt.body, state)
        elif isinstance(stmt, Try):
            yield from self._try(stmt, state)
        elif isinstance(stmt, (Return, Raise)):
            return
        elif isinstance(stmt, Simple) and stmt.is_jump:
            self.left.append(state)
        elif isinstance(stmt, Simple) and stmt.kind == "assert" and stmt.parts:
            yield from self._assume(stmt.parts[0], True, state)
        else:
            self._forget(stmt, state)
            yield state

    def _hit(self, stmt: Stmt, state: State) -> None:
        for expr in expressions(stmt):
            if holds(expr, self.call):
                self.hits += self._reach(expr, state)
                return
        self.hits.append(state)  # it stands so deep that it is an expression of its own

    def _reach(self, expr: Expr, state: State) -> Iterator[State]:
        """The states in which the call inside ``expr`` is evaluated."""
        if expr is self.call:
            yield state
            return
        for position, child in enumerate(_parts(expr)):
            if not holds(child, self.call):
                continue
            if isinstance(expr, Choice) and expr.kind == "if" and child is not expr.test:
                assert expr.test is not None
                for after in self._assume(expr.test, child is expr.options[0], state):
                    yield from self._reach(child, after)
            elif isinstance(expr, Choice) and expr.kind != "if" and position:
                goes_on = expr.kind == "and"
                before = expr.options[:position]
                for after in self._assume_all(before, goes_on, goes_on, state):
                    yield from self._reach(child, after)
            else:
                yield from self._reach(child, state)
            return

    def _assign(self, stmt: Assign, state: State) -> Iterator[State]:
        pairs = _pairs(stmt)
        if pairs and not self.index.assigned[stmt].isdisjoint(self.relevant):
            for after, values in self._all([value for _, value in pairs], state):
                new = after.fork()
                for (bound, _), value in zip(pairs, values, strict=True):
                    self.index.drop(new, bound)
                    new.values[bound] = _kept(value, stmt)
                yield new
            return
        names = [dotted(target) for target in stmt.targets]
        if not any(name in self.relevant for name in names):
            self._forget(stmt, state)
            for target in stmt.targets:
                self._forget_target(target, stmt, state)
            yield state
            return
        for after, value in self._value(stmt.value, state):
            new = after.fork()
            kept = _kept(value, stmt)
            for name, target in zip(names, stmt.targets, strict=True):
                if name is not None:
                    self.index.drop(new, name)
                    new.values[name] = kept
                else:
                    self._forget_target(target, stmt, new)
            yield new

    def _if(self, stmt: If, state: State) -> Iterator[State]:
        if not self._matters(stmt):
            self._forget(stmt, state)
            yield state
            return
        ends: list[State] = []
        for truth, body in ((True, stmt.body), (False, stmt.orelse)):
            for after in self._assume(stmt.test, truth, state):
                ends += self._block(body, after)
        unless = self._assume(stmt.test, False, State())
        if not ends and isinstance(stmt.body[-1], Raise) and next(iter(unless), None) is None:
            ends.append(state)  # what is kept elsewhere lets no run pass: somebody sets another
        yield from ends

    def _matters(self, stmt: Stmt) -> bool:
        """Whether running the inside can change what is asked."""
        tests = {
            name
            for inner in statements([stmt])
            if isinstance(inner, If)
            for node in walk(inner.test)
            if (name := dotted(node)) is not None
        }
        for inner in statements([stmt]):
            if inner is self.target:
                return True
            if not self.index.assigned[inner].isdisjoint(self.relevant):
                return True
            leaves = isinstance(inner, (Return, Raise)) or (
                isinstance(inner, Simple) and inner.is_jump
            )
            if leaves and tests & self.relevant:
                return True
        return False

    def _loop(self, stmt: For | While, state: State) -> Iterator[State]:
        around = state.fork()
        self._forget(stmt, around)
        if not self._matters(stmt):
            yield around
            return
        outer, self.left = self.left, []
        ends = list(self._block(stmt.body, around.fork()))
        ends += self.left
        self.left = outer
        yield from ends
        yield from self._block(stmt.orelse, around)

    def _try(self, stmt: Try, state: State) -> Iterator[State]:
        caught = state.fork()
        for inner in statements(stmt.body):
            self._forget(inner, caught, inside=False)
        ends: list[State] = []
        for after in self._block(stmt.body, state.fork()):
            ends += self._block(stmt.orelse, after)
        for _, body in stmt.handlers:
            ends += self._block(body, caught.fork())
        for end in ends:
            yield from self._block(stmt.final, end)

    def _forget(self, stmt: Stmt, state: State, *, inside: bool = True) -> None:
        """Whatever the statement assigns has an unknown value from here on."""
        for inner in statements([stmt]) if inside else [stmt]:
            for name in self.index.assigned[inner] & self.tracked:
                self.index.drop(state, name)
                state.values[name] = Sym(f"{name}@{inner.order}")

    def _forget_target(self, target: Expr, stmt: Stmt, state: State) -> None:
        for node in walk(target):
            name = dotted(node)
            if name is not None and name in self.tracked:
                self.index.drop(state, name)
                key = f"{name}@{stmt.order}"
                state.values[name] = Sym(key, *self._unpacked(name, stmt))

    def _unpacked(self, name: str, stmt: Stmt) -> _Known:
        """What is known of a name that gets a part of a value, where all that it may get agree."""
        kinds = {
            _known_of(value)
            for binding in self.scope.bindings.get(name, ())
            if binding.stmt is stmt
            for value in self.model.flow.bound(binding, self.scope)
        }
        return next(iter(kinds)) if len(kinds) == 1 else _UNKNOWN

    # -- expressions

    def _value(self, expr: Expr, state: State) -> Iterator[tuple[State, Sym]]:
        """The values an expression may have, each with what is then known."""
        if isinstance(expr, Const):
            yield state, literal(expr)
        elif isinstance(expr, Choice) and expr.kind == "if":
            assert expr.test is not None
            for truth, option in zip((True, False), expr.options, strict=True):
                for after in self._assume(expr.test, truth, state):
                    yield from self._value(option, after)
        elif isinstance(expr, Choice):
            yield from self._any_of(expr.options, expr.kind == "or", state)
        elif _is_test(expr):
            for truth in (True, False):
                for after in self._assume(expr, truth, state):
                    yield after, Sym(repr(truth), False, truth, (truth,), expr)
        elif isinstance(expr, Unary) and expr.op == "Invert":
            for after, value in self._value(expr.operand, state):
                # Of an answer it is no other answer, but a number that is true: -1 or -2.
                answer = value.literal if {*value.literal} <= {True, False} else ()
                known = (False, True, (~int(answer[0]),)) if answer else _UNKNOWN
                yield after, Sym(self._key(expr, after), *known, expr)
        else:
            name = dotted(expr)
            if name is not None and name in state.values:
                yield state, state.refined(state.values[name])
                return
            found = self._outside(expr, state)
            for sym in found:
                chosen = state
                if len(found) > 1 and name is not None:
                    chosen = state.fork()
                    chosen.values[name] = sym
                yield chosen, chosen.refined(sym)

    def _any_of(
        self, options: Sequence[Expr], stops_at: bool, state: State
    ) -> Iterator[tuple[State, Sym]]:
        """``a or b`` (which stops at a true value) and ``a and b``."""
        if len(options) == 1:
            yield from self._value(options[0], state)
            return
        for after, first in self._value(options[0], state):
            for truth in (True, False):
                for known in _learn(first, truth, after):
                    if truth == stops_at:
                        yield known, known.refined(first)
                    else:
                        yield from self._any_of(options[1:], stops_at, known)

    def _outside(self, expr: Expr, state: State) -> list[Sym]:
        """What the whole program says about a value that is made elsewhere."""
        key = self._key(expr, state)
        if isinstance(expr, Name) and isinstance(self.scope, Function):
            param = self.scope.param(expr.id)
            if param is not None:
                return [Sym(key, origin=expr, param=expr.id)]
        values = self.model.flow.values(expr)
        if values and all(isinstance(value, Ext) for value in values):
            return [Sym(key, origin=expr, param=dotted(expr))]
        kinds: dict[_Known, None] = {}
        for value in values:
            is_open = isinstance(value, Lit) and not self.settled
            kinds[_UNKNOWN if is_open else _known_of(value)] = None
        if _UNKNOWN in kinds:
            # Beside what is not known, None is but what there is without it: `get(key, None)`.
            kinds = {kind: None for kind in kinds if kind[0] is not True}
        if not kinds:
            kinds[_UNKNOWN] = None
        is_told = isinstance(expr, Call) and _is_told(expr)
        if len(kinds) > 1 and (is_told or isinstance(expr, Index)):
            # A factory decides by what it is told; an entry may hang on the tests that are asked.
            return [Sym(key, origin=expr)]
        if len(kinds) == 1:
            none, truth, given = next(iter(kinds))
            return [Sym(key, none, truth, given, expr)]
        return [
            Sym(f"{key}#{number}", none, truth, given, expr)
            for number, (none, truth, given) in enumerate(kinds)
        ]

    def _key(self, expr: Expr, state: State) -> str:
        """The expression with what its names hold, so that equal keys mean equal values."""
        name = dotted(expr)
        if name is not None:
            if name in state.values:
                return state.values[name].key
            root = name.partition(".")[0]
            return f"{state.values[root].key}.{name}" if root in state.values else name
        if isinstance(expr, Const):
            return repr(expr.value)
        if isinstance(expr, Attr):
            return f"{self._key(expr.value, state)}.{expr.name}"
        inner = ",".join(self._key(child, state) for child in _parts(expr))
        label = {Compare: "ops", Bin: "op", Unary: "op"}.get(type(expr))
        what = getattr(expr, label) if label else type(expr).__name__
        if isinstance(expr, Call):
            what = [(arg.keyword, arg.stars) for arg in expr.args]
        elif not isinstance(expr, (Compare, Bin, Unary, Index, Choice)):
            what = f"{type(expr).__name__}{id(expr)}"
        return f"{what}({inner})"

    # -- conditions

    def _assume(self, test: Expr, truth: bool, state: State) -> Iterator[State]:
        """The ways on which ``test`` has this truth."""
        if isinstance(test, Unary) and test.op == "Not":
            yield from self._assume(test.operand, not truth, state)
        elif isinstance(test, Choice) and test.kind != "if":
            yield from self._assume_all(test.options, test.kind == "and", truth, state)
        elif isinstance(test, Call) and last_name(test.func) == "bool" and test.positional:
            yield from self._assume(test.positional[0], truth, state)
        else:
            for after in self._assume_one(test, truth, state):
                known = after.fork()
                known.decided[test] = truth
                yield known

    def _assume_one(self, test: Expr, truth: bool, state: State) -> Iterator[State]:
        if isinstance(test, Compare) and len(test.ops) == 1:
            yield from self._assume_compared(test, truth, state)
        elif isinstance(test, Call) and last_name(test.func) == "isinstance" and test.positional:
            for after, value in self._value(test.positional[0], state):
                if value.none and truth:
                    continue
                for known in _learn(Sym(self._key(test, after)), truth, after):
                    if truth:
                        known.nones[value.key] = False
                    yield known
        else:
            for after, value in self._value(test, state):
                yield from _learn(value, truth, after)

    def _assume_all(
        self, options: Sequence[Expr], is_and: bool, truth: bool, state: State
    ) -> Iterator[State]:
        if len(options) == 1:
            yield from self._assume(options[0], truth, state)
        elif truth == is_and:
            for after in self._assume(options[0], truth, state):
                yield from self._assume_all(options[1:], is_and, truth, after)
        else:
            yield from self._assume(options[0], truth, state)
            for after in self._assume(options[0], not truth, state):
                yield from self._assume_all(options[1:], is_and, truth, after)

    def _assume_compared(self, test: Compare, truth: bool, state: State) -> Iterator[State]:
        op, right = test.ops[0], test.rights[0]
        if op not in EQUAL | UNEQUAL:
            yield from _learn(Sym(self._key(test, state)), truth, state)
            return
        equal = truth == (op in EQUAL)
        for after, value in self._value(test.left, state):
            for later, other in self._value(right, after):
                if other.none:
                    if value.none is None:
                        known = later.fork()
                        known.nones[value.key] = equal
                        yield known
                    elif value.none == equal:
                        yield later
                elif value.literal and other.literal:
                    if (value.literal == other.literal) == equal:
                        yield later
                elif (value.none and other.none is False) or value.key == other.key:
                    if (value.key == other.key) == equal:
                        yield later
                else:
                    same = Sym(f"{value.key}=={other.key}")
                    yield from _learn(same, equal, later)


# --------------------------------------------------------------------------- helpers


def _learn(sym: Sym, truth: bool, state: State) -> Iterator[State]:
    """The way with a value known to be true (or not); nothing if it is known otherwise."""
    refined = state.refined(sym)
    if refined.truth is None:
        known = state.fork()
        known.truths[sym.key] = truth
        yield known
    elif refined.truth is truth:
        yield state


def _known_of(value: Value) -> _Known:
    """Whether a value is None, whether it is true, and the literal it is."""
    if isinstance(value, Lit):
        return value.value is None, bool(value.value), (value.value,)
    if isinstance(value, ExtObj):
        # What a class builds is an object; what a function gives may be anything.
        made = value.dotted.rpartition(".")[2][:1].isupper()
        return (False if made else None), (True if made else None), ()
    if isinstance(value, (Unknown, Ext)):
        # What a name outside of the tree holds is chosen there, or by who starts the program.
        return None, None, ()
    return False, (None if isinstance(value, (Pack, Table, View)) else True), ()


def _is_told(call: Call) -> bool:
    """Whether a call passes literals that may choose what is returned, or arguments unseen."""
    return any(
        arg.stars or (isinstance(arg.value, Const) and not isinstance(arg.value.value, str))
        for arg in call.args
    )


def _is_test(expr: Expr) -> bool:
    if isinstance(expr, Call):
        return last_name(expr.func) == "bool" and bool(expr.positional)
    return len(expr.ops) == 1 if isinstance(expr, Compare) else getattr(expr, "op", "") == "Not"


def _parts(expr: Expr) -> list[Expr]:
    if isinstance(expr, Call):
        return [expr.func, *(arg.value for arg in expr.args)]
    if isinstance(expr, Choice):
        # The options first, so that positions are theirs.
        return [*expr.options, *([expr.test] if expr.test is not None else [])]
    return children(expr)


def _pairs(stmt: Assign) -> list[tuple[str, Expr]]:
    """The names and values of ``a, b = x, y``; nothing for any other assignment."""
    target = stmt.targets[0]
    if not (len(stmt.targets) == 1 and isinstance(target, Seq) and isinstance(stmt.value, Seq)):
        return []
    names = [dotted(item) for item in target.items]
    if len(names) != len(stmt.value.items) or len({*names}) != len(names):
        return []
    pairs = [(name, value) for name, value in zip(names, stmt.value.items, strict=True) if name]
    return pairs if len(pairs) == len(names) else []


def _kept(value: Sym, stmt: Assign) -> Sym:
    """The value under a key of its own, where nothing is known that would make it equal."""
    if value.none is None and value.truth is None and not value.param:
        return replace(value, key=f"{value.key}@{stmt.order}")
    return value


class _Index:
    """The statements of a scope by the names they bind, for all the calls in it."""

    def __init__(self, scope: Scope) -> None:
        self._names: dict[Expr, set[str]] = {}
        self._valued_names: dict[Expr, set[str]] = {}
        by_stmt: dict[Stmt, set[str]] = {}
        for name, bindings in scope.bindings.items():
            for binding in bindings:
                if binding.stmt is not None:
                    by_stmt.setdefault(binding.stmt, set()).add(name)
        self.assigned: dict[Stmt, frozenset[str]] = {}
        """The names (dotted ones too) that each statement itself binds."""
        self.tested: set[str] = set()
        """The names in conditions."""
        self._assigners: dict[str, list[Stmt]] = {}
        self._below: dict[str, set[str]] = {}
        self._always = [stmt for stmt in scope.body if not _is_plain(stmt)]
        for stmt in statements(scope.body):
            if isinstance(stmt, (Define, Import)):
                assigned = frozenset(by_stmt.get(stmt, ()))
            else:
                assigned = frozenset(_assigned(stmt))
            self.assigned[stmt] = assigned
            for name in assigned:
                self._assigners.setdefault(name, []).append(stmt)
            names = set(assigned).union(*map(self.named, expressions(stmt)))
            if not _is_plain(stmt):
                self.tested |= names
            for name in names:
                above = name.rpartition(".")[0]
                while above:
                    self._below.setdefault(above, set()).add(name)
                    above = above.rpartition(".")[0]

    def named(self, expr: Expr) -> set[str]:
        """The names (dotted ones too) in an expression."""
        known = self._names.get(expr)
        if known is None:
            names = {name for node in walk(expr) if (name := dotted(node)) is not None}
            known = self._names[expr] = names
        return known

    def _valued(self, expr: Expr) -> set[str]:
        """Those of :meth:`named` that are no arguments of a call: calls are not followed."""
        known = self._valued_names.get(expr)
        if known is None:
            known = self._valued_names[expr] = set()
            todo = [expr]
            while todo:
                node = todo.pop()
                if (name := dotted(node)) is not None:
                    known.add(name)
                if isinstance(node, Call) and last_name(node.func) not in _LOOKED_INTO:
                    todo.append(node.func)
                else:
                    todo += children(node)
        return known

    def relevant(self, exprs: Iterable[Expr], *, in_calls: bool = False) -> set[str]:
        """The names whose values can change what the expressions are worth.

        ``in_calls``: also those that only tell one call from another, as its arguments.
        """
        named = self.named if in_calls else self._valued
        out: set[str] = set()
        pending = {name for expr in exprs for name in named(expr)}
        while pending:
            out |= pending
            found: set[str] = set()
            for name in pending:
                for stmt in self._assigners.get(name, ()):
                    found.update(*map(named, expressions(stmt)))
                    for around in stmt.ancestors():
                        if isinstance(around, If):
                            found |= named(around.test)
            pending = found - out
        return out

    def steps(self, names: Iterable[str], target: Stmt) -> list[Stmt]:
        """The scope's own statements without those that bind none of the names and lead nowhere."""
        chosen = {*self._always, _outermost(target)}
        for name in names:
            chosen.update(map(_outermost, self._assigners.get(name, ())))
        return sorted(chosen, key=lambda stmt: stmt.order)

    def drop(self, state: State, name: str) -> None:
        """Forget ``name`` and what hangs on it."""
        state.values.pop(name, None)
        for below in self._below.get(name, ()):
            state.values.pop(below, None)


@remembered
def _index(model: Model, scope: Scope) -> _Index:
    return _Index(scope)


def _outermost(stmt: Stmt) -> Stmt:
    return next((around for around in [*stmt.ancestors()][::-1]), stmt)


def _is_plain(stmt: Stmt) -> bool:
    """Whether the statement can do no more than bind names."""
    if isinstance(stmt, Simple):
        return not (stmt.is_jump or stmt.kind == "assert")
    return not isinstance(stmt, (If, While, For, With, Try, Return, Raise))


def _assigned(stmt: Stmt) -> set[str]:
    """The names (dotted ones too) that the statement itself binds, if it is no definition."""
    out: set[str] = set()
    targets: list[Expr] = []
    if isinstance(stmt, Assign):
        targets = [*stmt.targets]
    elif isinstance(stmt, For):
        targets = [stmt.target]
    elif isinstance(stmt, With):
        targets = [target for _, target in stmt.items if target is not None]
    elif hasattr(stmt, "target") and not isinstance(stmt, Declare):
        targets = [stmt.target]
    while targets:
        target = targets.pop()
        if isinstance(target, (Name, Attr)):
            # What is stored in an attribute leaves the object that has it what it is.
            out.update(filter(None, [dotted(target)]))
        else:
            targets += children(target)
    if isinstance(stmt, Simple) and stmt.kind == "delete":
        out.update(deleted for part in stmt.parts if (deleted := dotted(part)) is not None)
    return out
