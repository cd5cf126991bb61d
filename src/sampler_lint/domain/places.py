"""What a pass puts where the number of the batch says, and what another pass finds there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeGuard

from sampler_lint.analysis.arguments import passed
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import COUNTS, EPOCH, SAMPLER_ARGUMENTS
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import Pass, loops_of
from sampler_lint.limits import DEEPEST_CALLS
from sampler_lint.syntax.navigation import (
    children,
    expressions,
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
    AugAssign,
    Bin,
    Call,
    Choice,
    Class,
    Comp,
    Compare,
    Expr,
    For,
    Function,
    If,
    Index,
    Loop,
    Name,
    Scope,
    Seq,
    Simple,
    Stmt,
    dotted,
    last_name,
)

#: What takes something out of a container by a key, puts it in, or changes what it finds there.
_TAKES = frozenset({"get", "pop"})
_PUTS = frozenset({"add", "insert"})
_CHANGES = frozenset({"append", "extend", "add", "update", "add_", "copy_", "setdefault"})
#: By which a function gives for a number what it gave for it before.
_REMEMBERS = frozenset({"cache", "lru_cache", "memoize", "memoized", "cached"})


class _Use(NamedTuple):
    """What is done to a container at the place that a number says."""

    container: object
    puts: bool
    takes: bool
    grows: bool = False
    """Whether it gets one more at its end: the place is that of the batch, but nobody said so."""


def keeps_places(model: Model, found: Pass) -> bool:
    """Whether a pass puts something where the number of the batch says."""
    return any(use.puts for use in _uses(model, found, None))


def goes_by_places(model: Model, found: Pass, loop: Loop | None = None) -> bool:
    """Whether a pass finds what another has put, or adds to it, where the number of a batch says.

    ``loop`` is the one whose turns make the passes, the outermost around it if not said.
    """
    uses = list(_uses(model, found, loop))
    put = {use.container for use in uses if use.puts or use.grows}
    is_kept = any(use.takes and use.container in put for use in uses)
    return is_kept or _goes_on_by_number(model, found, loop)


def _goes_on_by_number(model: Model, found: Pass, loop: Loop | None) -> bool:
    """Whether a turn leaves out the batches up to a number that the turns before it have counted.

    Each turn takes the next part of a pass. One that only ends at such a number takes more.
    """
    if loop is None or not isinstance(found.stmt, For):
        return False
    varying = _counted_by_turns(loop, found.stmt)
    if loop.scope is not (function := found.scope):
        given = [
            (param.name, passed(function, param, call))
            for call in model.flow.callers(function)
            for param in (function.params if isinstance(function, Function) else ())
            if isinstance(function, Function) and call.scope is loop.scope
        ]
        said = ((name, walk(value)) for name, value in given if isinstance(value, Expr))
        varying = {name for name, parts in said if {*map(dotted, parts)} & varying}
    for _, numbers in _numbered(found):
        for stmt in statements(found.stmt.body) if numbers else ():
            if not isinstance(stmt, If):
                continue
            ends = isinstance(last := stmt.body[-1], Simple) and last.kind == "break"
            for part in walk(stmt.test) if not ends else ():
                read = [part.left, *part.rights] if isinstance(part, Compare) else []
                sides = [{*map(dotted, walk(each))} for each in read]
                ours = [side for side in sides if side & numbers]
                if ours and any(side & varying for side in sides if side not in ours):
                    return True
    return False


def _counted_by_turns(loop: Loop, inner: Stmt) -> set[str | None]:
    """The variables of a turn that depend on its number, or on what they were in the last one."""
    varying = {dotted(each) for each in walk(loop.target)} if isinstance(loop, For) else set()
    for stmt in statements(loop.body):
        if isinstance(stmt, (Assign, AugAssign)) and not inner.encloses(stmt):
            targets = stmt.targets if isinstance(stmt, Assign) else [stmt.target]
            kept = {dotted(part) for target in targets for part in walk(target)}
            read = {dotted(part) for part in walk(stmt.value)}
            if isinstance(stmt, AugAssign) or read & (varying | kept):
                varying |= kept
    return varying - {None}


def _uses(model: Model, found: Pass, loop: Loop | None) -> Iterator[_Use]:
    scope = found.scope
    loop = loop or next((one for one in reversed(loops_of(found.stmt)) if _is_loop(one)), None)
    for part, numbers in _numbered(found):
        numbers = {each for each in numbers if loop is None or _is_begun(scope, each, loop)}
        if numbers:
            yield from _Reader(model, loop).uses(scope, part, numbers, 0)


def _is_loop(stmt: Stmt) -> TypeGuard[Loop]:
    return hasattr(stmt, "orelse")


def _numbered(found: Pass) -> Iterator[tuple[list[Expr], set[str]]]:
    """The parts of a pass in which some names are the number of a batch, or of a sample."""
    loop = found.stmt
    if isinstance(loop, For):
        counted = [s.target for s in statements(loop.body) if isinstance(s, AugAssign)]
        numbers = {dotted(each) for each in counted} - {None}
        if counts(loop.iter) and isinstance(loop.target, Seq):
            numbers |= {dotted(each) for each in loop.target.items[:1]} - {None}
        for each in statements(loop.body):
            if isinstance(each, Assign) and isinstance(each.value, Call):
                made = last_name(each.value.func)
                is_slice = made == "slice" and any(dotted(p) in numbers for p in walk(each.value))
                if is_slice or made == "next":
                    numbers |= {*map(dotted, each.targets)} - {None}
        yield list(nodes_in(statements([loop]))), {each for each in numbers if each}
    for comp in (part for whole in expressions(loop) for part in walk(whole)):
        if isinstance(comp, Comp) and any(map(counts, comp.iters)):
            bound = found.scope.bindings.items()
            own = {
                name
                for name, made in bound
                for b in made
                if b.within is comp and b.path[:1] == (0,)
            }
            yield list(walk(comp)), own


def counts(source: Expr) -> bool:
    """Whether it goes over batches with their numbers."""
    for call in walk(source):
        name = last_name(call.func) if isinstance(call, Call) else None
        first = call.positional[:1] if isinstance(call, Call) else []
        if name == "enumerate":
            return True
        if name == "zip" and first and isinstance(first[0], Call):
            return COUNTS.is_call(first[0])
    return False


def _is_begun(scope: Scope, number: str, loop: Loop) -> bool:
    """Whether each turn begins to count anew: it is no number of all steps."""
    if loop.scope is not scope or "." in number:
        return True
    return any(
        b.how != "aug" and b.stmt is not None and b.stmt is not loop and loop.encloses(b.stmt)
        for b in scope.bindings.get(number, ())
    )


class _Reader(NamedTuple):
    model: Model
    loop: Loop | None

    def uses(
        self, scope: Scope, part: Iterable[Expr], numbers: set[str], depth: int
    ) -> Iterator[_Use]:
        nodes = list(part)
        stored = {s.target: s.how for s in scope.stores if isinstance(s.target, Index)}
        for node in nodes:
            if isinstance(node, Index) and self._is_key(node.key, numbers):
                how = stored.get(node)
                changed = how == "aug" or any(_changes(call, node) for call in scope.calls)
                yield from self._use(scope, node.value, how or changed, changed or not how)
            elif isinstance(node, Compare) and {"In", "NotIn"} & {*node.ops}:
                if self._is_key(node.left, numbers):
                    yield from self._use(scope, node.rights[0], False, True)
            elif isinstance(node, Call) and any(self._is_key(a.value, numbers) for a in node.args):
                yield from self._call(scope, node, numbers, depth)
            elif isinstance(node, Call) and last_name(node.func) == "append":
                for use in self._use(scope, children(node.func)[0], False, False):
                    yield use._replace(grows=True)

    def _call(self, scope: Scope, call: Call, numbers: set[str], depth: int) -> Iterator[_Use]:
        name = last_name(call.func)
        if isinstance(call.func, Attr) and self._is_key(call.positional[0:1], numbers):
            puts, takes = name in _PUTS | {"setdefault"}, name in _TAKES | {"setdefault"}
            if puts or takes:
                yield from self._use(scope, call.func.value, puts, takes)
        if name == "load":  # what lies in files was put there by another pass
            yield _Use(name, True, True)
        for callee in self.model.flow.callees(call) if depth < DEEPEST_CALLS else ():
            given = {
                param.name
                for param in callee.params
                if isinstance(value := passed(callee, param, call), Expr)
                and self._is_key(value, numbers)
            }
            if given and any(last_name(_maker(d)) in _REMEMBERS for d in callee.decorators):
                yield _Use(callee, True, True)
            elif given:
                part = nodes_in(statements(callee.body))
                yield from self.uses(callee, part, given, depth + 1)

    def _is_key(self, key: Expr | list[Expr], numbers: set[str]) -> bool:
        """Whether a key is made of the number, and of no epoch beside it."""
        parts = [p for each in (key if isinstance(key, list) else [key]) for p in walk(each)]
        if any(isinstance(p, (Name, Attr)) and EPOCH.names(p) for p in parts):
            return False
        turn = self.loop.target if isinstance(self.loop, For) else None
        of_turn = {dotted(each) for each in walk(turn)} - {None} if turn is not None else set()
        names = {dotted(p) for p in parts}
        # A remainder (`step % 10`) is the place of nothing.
        is_remainder = any(isinstance(p, Bin) and p.op == "Mod" for p in parts)
        return bool(names & numbers) and not names & of_turn and not is_remainder

    def _use(self, scope: Scope, container: Expr, puts: object, takes: object) -> Iterator[_Use]:
        if isinstance(container, Attr) and (cls := self_class(container.value)) is not None:
            if not any(
                isinstance(s.target, Attr) and s.target.name == container.name
                for method in cls.methods
                for s in method.stores
                if method.name != "__init__"
            ):
                yield _Use((cls, container.name), bool(puts), bool(takes))
        elif (name := dotted(container)) is not None:
            root = container
            while isinstance(root, Attr):
                root = root.value
            owner = owner_of(root) if isinstance(root, Name) else None
            assert isinstance(root, Name)
            if not self._is_fresh(scope, owner, root.id):
                yield _Use((owner, name), bool(puts), bool(takes))

    def _is_fresh(self, scope: Scope, owner: Scope | None, name: str) -> bool:
        """Whether each turn begins with another one: a variable of the turn."""
        loop = self.loop
        if owner is None:
            return True
        made = [b for b in owner.bindings.get(name, ()) if b.how not in {"aug", "param"}]
        if loop is not None and owner is loop.scope:
            return any(b.stmt is not None and loop.encloses(b.stmt) for b in made)
        return bool(made) and owner is scope and isinstance(owner, Function)


def _maker(decorator: Expr) -> Expr:
    return decorator.func if isinstance(decorator, Call) else decorator


def _changes(call: Call, place: Index) -> bool:
    func = call.func
    return isinstance(func, Attr) and func.value is place and func.name in _CHANGES


def rests_on_order(model: Model, found: Pass) -> bool:
    """Whether what a pass makes means another thing if the samples come in another order.

    The order is asked for beside it, it goes by the number of the batch, hands on from batch to
    batch what it makes of one and of what was before, or what it has listed is paired with what
    it has not read.
    """
    listed = any(
        isinstance(source, Attr)
        and source.name in SAMPLER_ARGUMENTS
        and found.loader in model.flow.values(source.value)
        for source, _ in found.scope.iterated
    )
    return (
        listed or keeps_places(model, found) or _hands_on_state(model, found) or _is_paired(found)
    )


def _hands_on_state(model: Model, found: Pass) -> bool:
    """Whether a turn makes something of its batch and of what the turn before has made of its."""
    loop = found.stmt
    read = {dotted(each) for each in walk(loop.target)} - {None} if isinstance(loop, For) else set()
    made = set(read)
    for stmt in statements(loop.body) if isinstance(loop, For) else ():
        if isinstance(stmt, Assign):
            kept = {dotted(part) for target in stmt.targets for part in walk(target)} - {None}
            said = {dotted(part) for part in walk(stmt.value)} - made
            values = stmt.value.options if isinstance(stmt.value, Choice) else [stmt.value]
            sides = [side for each in values if _is_sum(each) for side in (each.left, each.right)]
            is_total = any(dotted(side) in kept for side in sides)
            of_batch = any(dotted(part) in read for part in walk(stmt.value))
            if kept & said and of_batch and not is_total:
                return True
            made |= kept
    calls = found.scope.calls_in(loop) if isinstance(loop, For) else []
    return any(_keeps_for_next(callee) for call in calls for callee in called(model, call))


def called(model: Model, call: Call) -> list[Function]:
    """The functions of the tree that a call runs, also that by which torch calls a module."""
    classes = [v.cls for v in model.flow.values(call.func) if isinstance(v, Obj)]
    methods = [model.flow.method(cls, "forward") for cls in classes if isinstance(cls, Class)]
    found = [method for method in methods if isinstance(method, Function)]
    return [*model.flow.callees(call), *found]


def _keeps_for_next(method: Function) -> bool:
    """Whether a method stores what it makes of what it is given, and of what was there before."""
    for store in method.stores:
        target = store.target
        if store.how == "aug" or not isinstance(target, Attr) or self_class(target.value) is None:
            continue
        given = [p for p in (walk(store.value) if store.value else ()) if isinstance(p, Name)]
        is_given = any(each.id != method.self_name for each in given)
        read = [each for each in method.reads if same(each, target) and each is not target]
        inside = {id(part) for part in (walk(store.value) if store.value else ())}
        is_total = _is_sum(store.value) if store.value is not None else False
        if is_given and any(not is_total or id(each) not in inside for each in read):
            return True
    return False


def _is_sum(expr: Expr) -> TypeGuard[Bin]:
    return isinstance(expr, Bin) and expr.op == "Add"


def _is_paired(found: Pass) -> bool:
    loop = found.stmt
    if not isinstance(loop, For):
        return False
    filled = {dotted(s.target) for s in statements(loop.body) if isinstance(s, AugAssign)}
    filled |= {
        dotted(call.func.value)
        for call in loop.scope.calls_in(loop)
        if isinstance(call.func, Attr) and call.func.name in {"append", "extend"}
    }
    for call in loop.scope.calls:
        if last_name(call.func) == "zip":
            ours = [
                any(dotted(part) in filled - {None} for part in walk(a.value)) for a in call.args
            ]
            if any(ours) and not all(ours):
                return True
    return False
