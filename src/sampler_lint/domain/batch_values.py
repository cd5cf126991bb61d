"""What the values of a turn of an epoch loop have to do with the order of its batches."""

from __future__ import annotations

import builtins
from enum import Enum
from typing import NamedTuple

from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.analysis.values import Ext, Lit, Obj
from sampler_lint.catalog import handling
from sampler_lint.domain.concepts import (
    ASKS_KIND,
    ITERATES,
    LOGS,
    LOOKS,
    NAMESPACES,
    SAMPLER_ARGUMENTS,
)
from sampler_lint.domain.learning import learns
from sampler_lint.domain.model import Model
from sampler_lint.domain.parts import (
    asks_scope,
    called,
    counts,
    counts_up,
    deep,
    flat,
    gives_what_lasts,
    is_part,
    remembers,
    sources,
    value_of,
)
from sampler_lint.domain.passes import passes_near
from sampler_lint.domain.programs import once_a_program
from sampler_lint.limits import DEEPEST_CALLS
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import (
    binder_of,
    children,
    expressions,
    nodes_in,
    owner_of,
    self_class,
    statements,
    walk,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Choice,
    Comp,
    Compare,
    Const,
    Expr,
    ExprStmt,
    For,
    Function,
    Index,
    Loop,
    Map,
    Name,
    Scope,
    Seq,
    Stmt,
    While,
    With,
    dotted,
    last_name,
)


class Kind(Enum):
    """What a value has to do with the order in which a turn has read its samples."""

    ITEM = "of a batch as it was read"
    MADE = "made of it by what learns"
    NUMBER = "the number of a batch"
    REST = "the remainder of such a number"
    PLACE = "what lasts, at the place of such a number"


class Given(NamedTuple):
    """What a function gives back for what it is given."""

    kind: Kind | None
    listed: Kind | None
    is_of_samples: bool
    harm: bool
    filled: dict[str, Kind]
    """What it puts into the lists that it is given, by their parameters."""


OF_BATCH = frozenset({Kind.ITEM, Kind.MADE})
NUMBERS = frozenset({Kind.NUMBER, Kind.REST, Kind.PLACE})
_FEWER = handling.FIGURES | handling.SHAPES | handling.SUMS


@once_a_program
def _passing(model: Model, scope: Scope) -> dict[Obj, set[Scope]]:
    """In which functions of a program each loader is gone over."""
    found: dict[Obj, set[Scope]] = {}
    for each in passes_near(model, scope):
        found.setdefault(each.loader, set()).add(each.scope)
    return found


@remembered
def _bound_within(_model: Model, scope: Scope) -> dict[Comp, list[tuple[str, bool]]]:
    """The variables of comprehensions, and whether each is the first of several."""
    found: dict[Comp, list[tuple[str, bool]]] = {}
    for name, bindings in scope.bindings.items():
        for bound in bindings:
            if bound.within is not None:
                found.setdefault(bound.within, []).append((name, bound.path[:1] == (0,)))
    return found


class Values:
    """What one scope does, in a turn or in what a turn calls, with what it is given or reads."""

    def __init__(
        self,
        model: Model,
        loader: Obj | None,
        scope: Scope,
        given: dict[str, Kind],
        depth: int,
        *,
        loop: Loop | None = None,
        lasting: frozenset[str] = frozenset(),
        lists: dict[str, Kind] | None = None,
        turn: frozenset[str] = frozenset(),
        reset: frozenset[str] | None = None,
    ) -> None:
        self.reset = reset
        """The attributes that a turn makes anew, if that is known."""
        self.model, self.loader, self.scope, self.depth = model, loader, scope, depth
        self.loop, self.lasting = loop, lasting
        self.kinds = dict(given)
        """The kinds of the variables."""
        self.lists: dict[str, Kind] = dict(lists or {})
        """Those that hold the items of a pass, one after the other."""
        self.joined: set[str] = {*self.lists}
        """Those of them that are no list of losses or the like: they hold what each sample gave."""
        self.stmts: list[Stmt] = [*statements(scope.body if loop is None else [loop])]
        self.calls = scope.calls if loop is None else scope.calls_in(loop)
        within = _bound_within(model, scope)
        self.comps = [
            part
            for part in (nodes_in(self.stmts) if within else ())
            if isinstance(part, Comp) and part in within
        ]
        self.turn: set[str | None] = {*turn}
        if isinstance(loop, For):
            self.turn |= {dotted(p) for p in walk(loop.target)}
        self._lists: dict[Call, Kind | None] = {}
        self._joins: set[Call] = set()
        self.passing = _passing(model, scope).get(loader, set()) if loader is not None else set()
        self._results: dict[tuple[Call, tuple[tuple[str, Kind], ...]], Kind | None] = {}
        self._aliases: dict[str, list[Expr]] = {}
        for stmt in self.stmts:
            value = stmt.value if isinstance(stmt, Assign) else None
            if isinstance(stmt, Assign) and (is_part(value) or asks_scope(value)):
                for each in filter(None, map(dotted, stmt.targets)):
                    self._aliases.setdefault(each, []).append(stmt.value)
        self.figures: set[str] = set()
        """Those that have a number, or the like, that is worked out of a batch as it was read."""
        self.outputs: set[str | None] = set()
        """Those that have something for each sample: they are set beside the samples."""
        self.harm = False
        self.fresh = self._made_anew()
        self.filled: set[str] = set()
        if loop is None and isinstance(scope, Function):
            self.filled = {param.name for param in scope.params} - {*lasting, *self.lists}
        self.carried = self._read_first() & self.fresh
        """Those of them that still have the value of another turn where they are read."""
        self.by_turn = (
            {
                dotted(each)
                for stmt in self.stmts
                if isinstance(stmt, Assign) and {*map(dotted, walk(stmt.value))} & self.turn
                for each in stmt.targets
            }
            | self.turn
            | self.carried
        )
        """Those whose value goes by the number of the turn, or by the turn before."""
        self.by_turn.discard(None)
        before: tuple[int, ...] = ()
        while before != (now := (len(self.kinds), len(self.lists), len(self.joined))):
            before = now
            self._follow()

    def _made_anew(self) -> set[str]:
        """The names that the turn, or the function, gives a value of its own before it uses it."""
        made: set[str] = set()
        for stmt in self.stmts:
            targets: list[Expr] = stmt.targets if isinstance(stmt, Assign) else []
            if isinstance(stmt, For):
                targets = [stmt.target]
            elif isinstance(stmt, With):
                targets = [each for _, each in stmt.items if each is not None]
            made |= {name for each in targets for p in flat(each) if (name := dotted(p))}
        return made

    def _read_first(self) -> set[str]:
        """The names that a turn finds as another one has left them, and gives another value."""
        first: dict[str, int] = {}
        found: set[str] = set()
        for stmt in self.stmts:
            parts = [stmt.value] if isinstance(stmt, Assign) else [*expressions(stmt)]
            for name in {dotted(part) for each in parts for part in walk(each)}:
                if name is not None and name not in first and self._is_of_before(name):
                    found.add(name)
            for target in stmt.targets if isinstance(stmt, Assign) else ():
                for part in flat(target):
                    first.setdefault(dotted(part) or "", stmt.order)
        return found

    def _is_of_before(self, name: str) -> bool:
        """Whether a variable may have a value when the turn, or the function, begins."""
        if "." in name or self.loop is None:
            return "." in name
        owner = binder_of(self.scope, name)
        bound = owner.bindings.get(name, ()) if owner is not None else ()
        return any(each.stmt is None or not self._is_inside(each.stmt) for each in bound)

    def _is_inside(self, stmt: Stmt) -> bool:
        return self.loop is not None and (stmt is self.loop or self.loop.encloses(stmt))

    # -- what a value is

    def kind(self, expr: Expr) -> Kind | None:
        """What an expression has to do with the order; None if nothing is known to."""
        name = dotted(expr)
        if name is not None and name in self.kinds:
            return self.kinds[name]
        if isinstance(expr, Call):
            return self._of_call(expr)
        if isinstance(expr, Attr):
            return None if expr.name in handling.SHAPES else self.kind(expr.value)
        if isinstance(expr, Index):
            return self._of_entry(expr)
        if isinstance(expr, Comp):
            return self._together([self.kind(each) for each in expr.elements])
        found = [self.kind(each) for each in children(expr)]
        asks_among = isinstance(expr, Compare) and {*expr.ops} & {"In", "NotIn"}
        if asks_among and Kind.NUMBER in found[:1] and self.lasts(children(expr)[1]):
            return Kind.PLACE
        kind = self._together(found)
        if isinstance(expr, Bin) and expr.op == "Mod":
            size = expr.right if isinstance(expr.right, Call) else None
            if size is not None and any(map(self._gives_batches, size.positional)):
                return Kind.NUMBER  # of all steps, what is left by the length of a pass
            if kind is Kind.NUMBER:
                return Kind.REST
        if isinstance(expr, Bin) and expr.op != "Mod":
            self.harm |= {Kind.ITEM, Kind.NUMBER} <= {*found}
        if isinstance(expr, (Bin, Compare)):
            self._set_beside(children(expr))
            self.harm |= Kind.PLACE in found and bool({*found} & OF_BATCH)
            self.harm |= self._is_beside(children(expr))
        return kind

    def _together(self, found: list[Kind | None]) -> Kind | None:
        order = (Kind.MADE, Kind.ITEM, Kind.PLACE, Kind.NUMBER, Kind.REST)
        return next((kind for kind in order if kind in found), None)

    def _over(self, iters: list[Expr]) -> Kind | None:
        """What a comprehension goes over: the loader, or what was read of it."""
        if any(self._gives_batches(part) for each in iters for part in walk(each)):
            return Kind.ITEM
        return self._together([self.kind(each) or self.list_of(each) for each in iters])

    def _gives_batches(self, expr: Expr) -> bool:
        if self.loader is None or expr is self.loader.site:
            return False
        is_named = isinstance(expr, (Call, Attr, Name))
        return is_named and self.loader in self.model.flow.values(expr)

    def _of_entry(self, expr: Index) -> Kind | None:
        key, held = self.kind(expr.key), self.kind(expr.value)
        is_place = key in {Kind.NUMBER, Kind.PLACE}
        names = {dotted(part) for part in walk(expr.key)} - {None}
        if is_place and held is None and not names & self.turn:
            return Kind.PLACE if self.lasts(expr.value) else None
        return held or (Kind.ITEM if key is Kind.ITEM else None)

    def _of_call(self, call: Call) -> Kind | None:
        name = last_name(call.func)
        if name == "next" and self._steps_through(call):
            return Kind.PLACE
        if (
            name in handling.TAKES
            and isinstance(call.func, Attr)
            and self._was_listed(call.func.value)
        ):
            return Kind.PLACE
        args = [self.kind(arg.value) for arg in call.args]
        if Kind.PLACE in [self.list_of(arg.value) for arg in call.args]:
            args.append(Kind.PLACE)
        owner = self.kind(call.func.value) if isinstance(call.func, Attr) else None
        if ASKS_KIND.is_call(call) or name in handling.SHAPES:
            return None
        if name in handling.SUMS and any(self.list_of(arg.value) for arg in call.args):
            return None
        callees = called(self.model, call) if self.depth < DEEPEST_CALLS else []
        if {*args} & OF_BATCH and self.kind(call.func) in NUMBERS:
            self.harm = True  # what is done with a batch hangs on its number
        has_lists = any(self.list_of(arg.value) is not None for arg in call.args)
        if Kind.NUMBER in args and any(map(remembers, callees)):
            return Kind.PLACE
        if callees and (any(args) or has_lists or owner or self.passing.intersection(callees)):
            return self._together([self._result(call, each) for each in callees])
        if any(each.declared for each in callees) and not any(args):
            return Kind.NUMBER  # it counts for itself
        if isinstance(call.func, Attr) and Kind.NUMBER in args and self.lasts(call.func.value):
            is_shown = name in handling.SHOWS or LOGS.is_call(call)
            self.harm |= Kind.ITEM in args and not is_shown and not learns(self.model, call)
            return Kind.PLACE
        if ITERATES.is_call(call) and any(self._gives_batches(arg.value) for arg in call.args):
            return Kind.ITEM
        if owner is not None:
            return self._together([owner, *args])
        kind = self._together(args)
        is_function = self.is_pure(call)
        if not (isinstance(call.stmt, ExprStmt) and call.stmt.value is call):
            self._set_beside([arg.value for arg in call.args])
        self.harm |= Kind.PLACE in args and bool({*args} & OF_BATCH)
        self.harm |= self._is_beside([arg.value for arg in call.args])
        if kind in OF_BATCH and not is_function:
            return Kind.MADE
        return kind if kind in OF_BATCH or is_function else None

    def is_pure(self, call: Call) -> bool:
        """Whether a call makes a value of its arguments as they are, and learns nothing."""
        if isinstance(call.func, Name) and binder_of(self.scope, call.func.id) is None:
            return hasattr(builtins, call.func.id)
        owner = call.func.value if isinstance(call.func, Attr) else None
        if isinstance(owner, Const):
            return True  # a method of a text
        values = self.model.flow.values(call.func)
        return bool(values) and all(
            isinstance(value, Ext) and value.dotted.partition(".")[0] in handling.PURE
            for value in (*values, *(self.model.flow.values(owner) if owner is not None else ()))
        )

    def _set_beside(self, parts: list[Expr]) -> None:
        """Note what was made of samples that is set beside them."""
        kinds = [*map(self.kind, parts)]
        if Kind.ITEM in kinds:
            made = (each for each, kind in zip(parts, kinds, strict=True) if kind is Kind.MADE)
            self.outputs.update(map(dotted, made))
            self.outputs.discard(None)

    def is_output(self, expr: Expr) -> bool:
        """Whether something has a value for each sample: no number, and no sum."""
        while isinstance(expr, (Attr, Call)) and dotted(expr) not in self.outputs:
            inner = expr.func if isinstance(expr, Call) else expr
            if not isinstance(inner, Attr) or inner.name in _FEWER:
                return False
            expr = inner.value
        return dotted(expr) in self.outputs

    def _is_beside(self, parts: list[Expr]) -> bool:
        """Whether what was read in this turn is set beside what is left of another."""
        lists = [each for each in parts if self.list_of(each) is not None]
        items = [each for each in parts if self.kind(each) is Kind.ITEM]
        others = [each for each in parts if each not in lists + items] if lists or items else []
        return any(
            (lists or dotted(part) not in self.fresh) and self._was_listed(part)
            for each in others
            for part in walk(each)
        ) or bool(lists and self.carried & {dotted(part) for each in others for part in walk(each)})

    def _steps_through(self, call: Call) -> bool:
        """Whether a call takes, batch by batch, the next of what lasts and is no loader."""
        taken = dotted(call.positional[0]) if call.positional else None
        begun: list[Expr] = [
            stmt.value
            for stmt in self.stmts
            if isinstance(stmt, Assign) and any(dotted(each) == taken for each in stmt.targets)
        ]
        taking = call.positional[0] if call.positional else None
        if not begun and isinstance(taking, Name) and (owner := owner_of(taking)) is not None:
            if self._was_listed(taking):
                return True
            begun = [*filter(None, map(value_of, owner.bindings.get(taking.id, ())))]
            held = [part for each in begun for part in (*sources(each), *walk(each))]
            lists = [part for part in held if isinstance(part, (Seq, Comp))]
            is_loader = any(map(self._is_loader, held))
            return any(map(counts_up, held)) or (bool(lists) and not is_loader)
        names = [part for each in begun for part in sources(each) if self.lasts(part)]
        return bool(names) and not any(map(self._is_loader, names))

    def _was_listed(self, expr: Expr) -> bool:
        """Whether what lasts was made of a pass over the same loader."""
        owner = owner_of(expr) if isinstance(expr, Name) else None
        return owner is not None and any(
            (isinstance(part, Comp) and any(map(self._gives_batches, deep(part.iters))))
            or (isinstance(part, Call) and self.passing & {*self.model.flow.callees(part)})
            or (
                isinstance(bound.stmt, Assign)
                and ITERATES.is_call(part)
                and any(map(self._gives_batches, walk(part)))
            )
            for bound in owner.bindings[dotted(expr) or ""]
            for part in (walk(bound.value) if bound.value is not None else ())
        )

    def _result(self, call: Call, callee: Function) -> Kind | None:
        """What a function of the program gives for what it is given here; what it does is seen."""
        made = self.model.flow.as_made(call)
        given: dict[str, Kind] = {}
        lasting: set[str] = set()
        turn: set[str] = set()
        lists: dict[str, Kind] = {}
        for param in callee.params:
            value = passed(callee, param, made)
            spread = [a.value for a in made.args if a.stars or param.kind == "vararg"]
            if {*map(self.kind, spread)} & OF_BATCH and (value is None or param.kind == "vararg"):
                given[param.name] = Kind.ITEM
            if isinstance(value, Expr) and {*map(dotted, walk(value))} & self.by_turn:
                turn.add(param.name)
            if value is MISSING and isinstance(param.default, (Map, Seq)):
                lasting.add(param.name)
            elif isinstance(value, Expr):
                if (listed := self.list_of(value)) is not None:
                    lists[param.name] = listed
                elif (kind := self.kind(value)) is not None:
                    given[param.name] = kind
                elif isinstance(value, (Name, Attr)) and self.lasts(value):
                    lasting.add(param.name)
        key = call, tuple((given | lists).items())
        makes_pass = callee in self.passing and callee is not self.scope
        if (given or lists or makes_pass) and key not in self._results:
            self._results[key] = None
            has_loader = any(self._gives_batches(arg.value) for arg in call.args)
            loader = self.loader if makes_pass or has_loader else None
            known: dict[object, Given] = self.model.memo.setdefault(Given, {})
            sets = frozenset(lasting), frozenset(lists), frozenset(turn)
            asked = callee, loader, key[1], *sets, self.reset, self.depth
            if asked not in known:
                known[asked] = Given(None, None, False, False, {})
                inner = type(self)(
                    *(self.model, loader, callee, given, self.depth + 1),
                    lasting=frozenset(lasting),
                    lists=lists,
                    turn=frozenset(turn),
                    reset=self.reset,
                )
                known[asked] = inner.given_back()
            said = known[asked]
            self.harm |= said.harm
            self._results[key] = said.kind
            for param in callee.params if said.filled else ():
                value = passed(callee, param, made)
                if param.name in said.filled and isinstance(value, Expr):
                    self._list(value, said.filled[param.name], is_joined=False)
            if said.listed is not None:
                self._lists[call] = said.listed
                self._joins |= {call} if said.is_of_samples else set()
        return self._results.get(key)

    def given_back(self) -> Given:
        """What a function gives back, and whether it leaves items elsewhere."""
        harm = self.leaves_any()
        returns = self.scope.returns
        values = [each.value for each in returns if each.value is not None]
        lists = [each for each in values if self.list_of(each) is not None]
        return Given(
            self._together([*map(self.kind, values)]),
            self.list_of(lists[0]) if lists else None,
            any(map(self.is_of_samples, lists)),
            harm,
            {name: self.lists[name] for name in self.filled & self.lists.keys()},
        )

    def leaves_any(self) -> bool:
        """Whether something that was read, and not only a sum of it, outlives the turn."""
        raise NotImplementedError

    # -- what holds what

    def list_of(self, expr: Expr) -> Kind | None:
        """What is listed in an expression, item by item, in the order in which it was read."""
        name = dotted(expr)
        if name is not None and name in self.lists:
            return self.lists[name]
        if isinstance(expr, Comp) and expr.kind != "GeneratorExp":
            return self.kind(expr) if self._over(expr.iters) in OF_BATCH else None
        if isinstance(expr, (Bin, Map, Seq)):
            return self._together([self.list_of(each) for each in children(expr)])
        if isinstance(expr, Call):
            if last_name(expr.func) in handling.SUMS | LOOKS.called:
                return None
            self.kind(expr)
            if expr in self._lists:
                return self._lists[expr]
            parts = [expr.func.value] if isinstance(expr.func, Attr) else []
            if self.is_pure(expr):
                parts = [arg.value for arg in expr.args]
            return self._together([self.list_of(each) for each in parts])
        if isinstance(expr, (Attr, Index)) and getattr(expr, "name", "") not in handling.SHAPES:
            return self.list_of(expr.value)
        return None

    def is_of_samples(self, expr: Expr) -> bool:
        """Whether a list has something of each sample, as it was read or as it came out."""
        kind = self.list_of(expr)
        joins = any(
            isinstance(part, Call)
            and (last_name(part.func) in handling.JOINS or part in self._joins)
            for part in walk(expr)
        )
        is_joined = joins or self._is_joined(expr)
        return kind is Kind.ITEM or (kind is not None and is_joined) or self.is_output(expr)

    def _is_joined(self, expr: Expr) -> bool:
        return any(dotted(part) in self.joined for part in walk(expr))

    def lasts(self, expr: Expr) -> bool:
        """Whether what an expression names outlives the turn: nobody makes it anew."""
        if isinstance(expr, Choice):
            return any(map(self.lasts, expr.options))
        while isinstance(expr, Call) or dotted(expr) is None:
            if isinstance(expr, Call) and isinstance(expr.func, Name):
                # A part of what it is given, or what the function itself does not make anew.
                is_builtin = binder_of(self.scope, expr.func.id) is None
                callees = self.model.flow.callees(expr)
                given = [arg.value for arg in expr.args] if is_builtin else []
                return (
                    (not expr.args and NAMESPACES.is_call(expr))
                    or any(map(self.lasts, given))
                    or any(map(gives_what_lasts, callees))
                )
            owner = expr.func if isinstance(expr, Call) else expr
            if not isinstance(owner, (Attr, Index)):
                return False
            expr = owner.value
        name = dotted(expr)
        if name in self.kinds:
            return self.kinds[name] is Kind.PLACE
        if name is None or name in self.lists:
            return False
        if name in self.fresh:
            # Another name of what lasts is nothing new.
            same = self._aliases.pop(name, [])
            found = any(map(self.lasts, same))
            self._aliases[name] = same
            return found
        if isinstance(expr, Attr) and (cls := self_class(expr.value)) is not None:
            others = (each for each in cls.methods if each.name != "__init__")
            stored = (each.target for method in others for each in method.stores)
            if self.reset is not None:
                return expr.name not in self.reset
            return all(getattr(each, "name", None) != expr.name for each in stored)
        root = name.partition(".")[0]
        if self.loop is None and isinstance(self.scope, Function):
            if any(param.name == root for param in self.scope.params):
                return root in self.lasting or name == self.scope.self_name
            return root not in self.scope.bindings
        return True

    # -- what a turn does

    def _follow(self) -> None:
        """Find what is made of what was read."""
        for stmt in self.stmts:
            if isinstance(stmt, For) and stmt is not self.loop:
                self._go_over(stmt)
            elif isinstance(stmt, While) and stmt is not self.loop:
                for each in statements(stmt.body):
                    if isinstance(each, AugAssign) and isinstance(each.value, Const):
                        self._give(each.target, Kind.NUMBER)
            elif isinstance(stmt, Assign):
                for target in stmt.targets:
                    if isinstance(target, Seq) and isinstance(stmt.value, Seq):
                        for part, value in zip(target.items, stmt.value.items, strict=False):
                            self._assign(part, value)
                    else:
                        self._assign(target, stmt.value)
            elif isinstance(stmt, AugAssign) and self._is_list(stmt.target):
                kind = self.kind(stmt.value)
                self._list(stmt.target, kind if kind in OF_BATCH else None, is_joined=True)
        for comp, kind in ((comp, self._over(comp.iters)) for comp in self.comps):
            for name, is_first in _bound_within(self.model, self.scope)[comp] if kind else ():
                is_number = is_first and any(map(counts, comp.iters))
                self.kinds.setdefault(name, Kind.NUMBER if is_number else kind or Kind.ITEM)
        for call in self.calls:
            if any(dotted(arg.value) in self.fresh for arg in call.args):
                self.kind(call)  # it may put something into what it is given
            if isinstance(call.func, Attr) and call.func.name == "update":
                kinds = {self.kind(arg.value) for arg in call.args}
                is_digest = kinds == {Kind.ITEM} and not self.model.flow.callees(call)
                if is_digest and dotted(call.func.value) in self.fresh:
                    self._list(call.func.value, Kind.ITEM, is_joined=True)
            if isinstance(call.func, Attr) and call.func.name in handling.APPENDS | {"add"}:
                for arg in call.args:
                    kind = self.kind(arg.value)
                    kept = kind in OF_BATCH or kind is Kind.PLACE
                    owner = call.func.value
                    is_ours = dotted(owner) in self.fresh | self.filled
                    if kept and is_ours and not self.lasts(owner):
                        is_joined = call.func.name == "extend" or self.is_output(arg.value)
                        self._list(call.func.value, kind, is_joined=is_joined)

    def _go_over(self, loop: For) -> None:
        """Find what a loop gives its variables, and what changes from batch to batch besides."""
        source, target = loop.iter, loop.target
        is_pass = any(map(self._gives_batches, walk(source)))
        kind = Kind.ITEM if is_pass else self.kind(source) or self.list_of(source)
        if kind is None:
            return
        if counts(source) and isinstance(target, Seq):
            self._give(target.items[0], Kind.NUMBER)
            source = source.positional[0] if isinstance(source, Call) else source
            target = target.items[-1]
        if isinstance(source, Call) and last_name(source.func) == "zip" and isinstance(target, Seq):
            for each, part in zip(source.positional, target.items, strict=False):
                is_ours = any(map(self._gives_batches, walk(each))) or self.kind(each) in OF_BATCH
                own = self.kind(each)
                if is_ours or self._is_loader(each) or self.list_of(each):
                    self._give(part, own if own in OF_BATCH else Kind.ITEM)
                elif isinstance(each, (Const, Seq)) or any(map(self.lasts, sources(each))):
                    self._give(part, Kind.PLACE)
        else:
            self._give(target, kind)
        if is_pass:
            changed: dict[str, list[Kind | None]] = {}
            for stmt in statements(loop.body):
                targets = stmt.targets if isinstance(stmt, Assign) else []
                if isinstance(stmt, AugAssign):
                    targets = [stmt.target]
                for part in targets:
                    if (name := dotted(part)) and isinstance(stmt, (Assign, AugAssign)):
                        changed.setdefault(name, []).append(self.kind(stmt.value))
            before = {
                dotted(part)
                for stmt in self.stmts
                if isinstance(stmt, Assign) and not loop.encloses(stmt)
                for part in stmt.targets
            }
            for name, kinds in changed.items():
                if name in before and not any(kinds):
                    self.kinds.setdefault(name, Kind.NUMBER)

    def _is_loader(self, expr: Expr) -> bool:
        """Whether it is another loader, of which it is known what orders it."""
        values = [v for part in walk(expr) for v in self.model.flow.values(part)]
        loaders = [v for v in values if isinstance(v, Obj) and self.model.role(v) == "loader"]
        given = [
            self.model.flow.values(argument)
            for loader in loaders
            for name in SAMPLER_ARGUMENTS
            if (argument := self.model.flow.argument(loader, name)) is not None
        ]
        return bool(loaders) and all(
            values and all(isinstance(value, (Obj, Lit)) for value in values) for values in given
        )

    def _is_list(self, target: Expr) -> bool:
        name = dotted(target)
        return any(
            isinstance(stmt, Assign)
            and (isinstance(stmt.value, Seq) or getattr(stmt.value, "value", None) == "")
            and any(dotted(each) == name for each in stmt.targets)
            for stmt in self.stmts
        )

    def is_figure(self, expr: Expr) -> bool:
        """Whether it is a number or the like of a batch as it was read, and no batch."""
        if dotted(expr) in self.figures:
            return True
        if self.kind(expr) is not Kind.ITEM:
            return False
        if isinstance(expr, Call) and last_name(expr.func) in handling.FIGURES:
            return True
        inner = expr.elements if isinstance(expr, Comp) else children(expr)
        if isinstance(expr, Call):
            inner = [arg.value for arg in expr.args]
            inner += [expr.func.value] if isinstance(expr.func, Attr) else []
        batches = [each for each in inner if self.kind(each) is Kind.ITEM]
        return bool(batches) and all(map(self.is_figure, batches))

    def _assign(self, target: Expr, value: Expr) -> None:
        if (name := dotted(target)) is not None and self.is_figure(value):
            self.figures.add(name)
        if (listed := self.list_of(value)) is not None:
            self._list(target, listed, is_joined=self.is_of_samples(value))
        elif (kind := self.kind(value)) is not None:
            self._give(target, kind)

    def _list(self, target: Expr, kind: Kind | None, *, is_joined: bool) -> None:
        name = dotted(target)
        if name is not None and kind is not None:
            if self.lists.get(name) is not Kind.ITEM:
                self.lists[name] = kind
            if is_joined:
                self.joined.add(name)

    def _give(self, target: Expr, kind: Kind) -> None:
        for part in flat(target):
            if (name := dotted(part)) is not None and name not in self.turn:
                self.kinds.setdefault(name, kind)
