"""Whether a turn of an epoch loop sets what it reads beside what another turn has read."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.arguments import passed
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import ASKS_KIND, ITERATES
from sampler_lint.domain.epochs import EpochLoop
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import passes
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import (
    children,
    expressions,
    leftmost,
    nodes_in,
    statements,
    walk,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Comp,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Index,
    Loop,
    Name,
    Scope,
    Seq,
    Stmt,
    Unary,
    Yield,
    dotted,
    last_name,
)

_GROWS = frozenset({"append", "extend", "add", "update", "put", "insert"})
#: What makes one of all items, each at its place.
_JOINS = frozenset(
    {
        *("array", "as_tensor", "asarray", "cat", "concat", "concatenate", "hstack", "stack"),
        *("tensor", "vstack"),
    }
)
_LISTS = frozenset({"list", "tuple"})
_EQUAL = frozenset(
    {
        *("allclose", "array_equal", "assertEqual", "assert_allclose", "assert_array_equal"),
        *("assert_close", "assert_equal", "equal", "isclose"),
    }
)


def sets_beside(model: Model, found: EpochLoop) -> bool:
    """Whether what is read in a turn is asked to be, paired with or added to that of another.

    Or a turn hands out the pass before it is read.
    """
    stmt = found.inner.stmt
    if any(_is_handed_out(each) for whole in expressions(stmt) for each in walk(whole)):
        return True
    loader, loop = found.inner.loader, found.loop
    scopes = {p.scope for p in passes(model) if p.loader is loader} | found.scopes
    return any(
        _Turn(model, loader, scope, loop).sets_beside()
        if scope is loop.scope
        else _sets_beside_in(model, loader, scope)
        for scope in scopes
    )


@remembered
def _sets_beside_in(model: Model, loader: Obj, scope: Scope) -> bool:
    """The same, of a function that a turn calls."""
    return _Turn(model, loader, scope, None).sets_beside()


@remembered
def _going_over(_model: Model, scope: Scope) -> list[tuple[Assign, list[Expr]]]:
    """The assignments of a scope that call or go over something, and over what."""
    return [
        (stmt, [over for node in walk(stmt.value) for over in _gone_over(node)])
        for stmt in statements(scope.body)
        if isinstance(stmt, Assign)
        and any(isinstance(node, (Call, Comp)) for node in walk(stmt.value))
    ]


@remembered
def _gives_items(model: Model, loader: Obj, function: Function) -> bool:
    """Whether a function hands back what it has read of a loader, item by item, in their order."""
    if not any(p.scope is function and p.loader.may_be(loader) for p in passes(model)):
        return False
    turn = _Turn(model, loader, function, None, is_called=True)
    return any(turn.holds_items(stmt.value) for stmt in function.returns if stmt.value is not None)


def _gone_over(node: Expr) -> list[Expr]:
    if isinstance(node, Comp):
        return node.iters
    return node.positional if isinstance(node, Call) and ITERATES.is_call(node) else []


def _is_handed_out(node: Expr) -> bool:
    value = node.value if isinstance(node, Yield) and not node.delegates else None
    return any(
        (isinstance(part, Call) and last_name(part.func) == "iter")
        or (isinstance(part, Comp) and part.kind == "GeneratorExp" and part is value)
        for part in (walk(value) if value is not None else ())
    )


class _Turn:
    """What one scope does with a loader in a turn of a loop, in it or in what a turn calls."""

    def __init__(
        self,
        model: Model,
        loader: Obj,
        scope: Scope,
        loop: Loop | None,
        *,
        is_called: bool = False,
    ) -> None:
        self.is_called = is_called
        """Whether it is asked what the scope hands back, and not what those do that it calls."""
        self.stmts: list[Stmt] = [*statements(scope.body if loop is None else [loop])]
        self.scope, self.model, self.loader = scope, model, loader
        self.sets: dict[str, list[Assign]] = {}
        for stmt in self.stmts:
            for target in stmt.targets if isinstance(stmt, Assign) else ():
                for part in walk(target):
                    if (name := dotted(part)) is not None and isinstance(stmt, Assign):
                        self.sets.setdefault(name, []).append(stmt)
        inside = {*self.stmts}
        self.calls = [call for call in scope.calls if call.stmt in inside]
        self.read: set[str] = set()
        self.since: dict[str, int] = {}
        self.bound = {
            name
            for stmt in self.stmts
            if isinstance(stmt, For) and stmt is not loop
            for part in walk(stmt.target)
            if (name := dotted(part)) is not None
        }
        kept = [
            (name, stmt.value)
            for stmt, taken in (_going_over(model, scope) if loop is not None else ())
            if stmt not in inside and (any(map(self._is_read, taken)) or self._lists(stmt.value))
            for target in stmt.targets
            if (name := dotted(target)) is not None
            and name not in self.sets
            and self.loader not in model.flow.values(target)
        ]
        self.kept = {name for name, _ in kept}
        self._follow(loop)
        self.filled: set[str] = {
            name
            for call in self.calls
            if isinstance(call.func, Attr) and call.func.name in _GROWS and self._is_read(call)
            if (name := dotted(call.func.value)) is not None
        }
        self.filled |= {
            dotted(stmt.target) or ""
            for stmt in self.stmts
            if isinstance(stmt, AugAssign) and self._is_read(stmt.value)
            if any(isinstance(m.value, Seq) for m in self.sets.get(dotted(stmt.target) or "", ()))
        }
        self.grown = self.filled - self.sets.keys()
        self.items, before = {*self.filled}, -1
        """What holds the items of a pass, or all of them in one."""
        while len(self.items) > before:
            before = len(self.items)
            self.items |= {
                name
                for name, made in self.sets.items()
                if any(self.holds_items(each.value) for each in made)
            }
        self.held = {name for name, value in kept if self._lists(value) or self.holds_items(value)}

    def _follow(self, loop: Loop | None) -> None:
        """Find what is made of batches, and from where on."""
        for stmt in self.stmts:
            if isinstance(stmt, For) and stmt is not loop and self._is_read(stmt.iter):
                self._add(stmt, self._names(stmt))
        before = -1
        while len(self.read) > before:
            before = len(self.read)
            for stmt in self.stmts:
                value = stmt.value if isinstance(stmt, (Assign, AugAssign)) else None
                if value is not None and self._is_read(value):
                    self._add(stmt, self._names(stmt))
            for call in self.calls:
                if isinstance(call.func, Attr) and call.func.name in _GROWS and call.stmt:
                    name = dotted(call.func.value)
                    if name is not None and any(self._is_read(arg.value) for arg in call.args):
                        self._add(call.stmt, {name})

    def _add(self, stmt: Stmt, names: set[str]) -> None:
        for name in names:
            self.since[name] = min(stmt.order, self.since.get(name, stmt.order))
        self.read |= names

    def _names(self, stmt: Stmt) -> set[str]:
        targets: list[Expr] = stmt.targets if isinstance(stmt, Assign) else []
        if isinstance(stmt, (For, AugAssign)):
            targets = [stmt.target]
        return {name for each in targets for part in walk(each) if (name := dotted(part))}

    def _is_read(self, expr: Expr) -> bool:
        if dotted(expr) in self.read or self._gives_batches(expr) or self._lists(expr):
            return True
        if isinstance(expr, Call) and (ASKS_KIND.is_call(expr) or last_name(expr.func) == "len"):
            return False
        if isinstance(expr, Attr) and self._gives_batches(expr.value):
            return False  # its data
        return any(map(self._is_read, children(expr)))

    def _lists(self, expr: Expr) -> bool:
        """Whether a call hands back what it has read of the loader, item by item."""
        return (
            isinstance(expr, Call)
            and not self.is_called
            and any(
                callee is not self.scope and _gives_items(self.model, self.loader, callee)
                for callee in self.model.flow.callees(expr)
            )
        )

    def holds_items(self, expr: Expr) -> bool:
        """Whether an expression is a list of what was read, or one of all of it."""
        if isinstance(expr, Seq):
            return any(map(self.holds_items, expr.items))
        if isinstance(expr, Comp):
            return expr.kind != "GeneratorExp" and any(map(self._is_read, expr.iters))
        if isinstance(expr, Call) and last_name(expr.func) in _LISTS:
            return any(map(self.holds_items, expr.positional))
        return dotted(expr) in self.items or self._is_joined(expr)

    def _gives_batches(self, expr: Expr) -> bool:
        is_named = isinstance(expr, (Call, Attr, Name)) and expr is not self.loader.site
        return is_named and self.loader in self.model.flow.values(expr)

    def sets_beside(self) -> bool:
        """Whether something of another turn is set beside something of this one."""
        for stmt in self.stmts:
            for node in nodes_in([stmt]):
                if any(self._is_of_another(each, stmt) for each in _beside(node)):
                    return True
            if self._adds_to_kept(stmt):
                return True
        if any(map(self._hands_to_keeper, self.calls)):
            return True
        listed = {
            dotted(call.func.value)
            for call in self.calls
            if isinstance(call.func, Attr) and call.func.name in _GROWS
            if any(self.holds_items(arg.value) for arg in call.args)
        } & self.grown
        return any(
            dotted(arg.value) in (self.grown if arg.stars == 1 else listed)
            for call in self.scope.calls
            for arg in call.args
            if last_name(call.func) in ({"zip"} if arg.stars == 1 else _JOINS)
        )

    def _adds_to_kept(self, stmt: Stmt) -> bool:
        """Whether all items of a pass are set beside those of another, each at its place."""
        name, terms = None, []
        if isinstance(stmt, (Assign, AugAssign)):
            name = dotted(stmt.targets[0] if isinstance(stmt, Assign) else stmt.target)
            terms = [*_terms(stmt.value)]
        made = self.sets.get(name or "", ())
        goes_on = all(name in map(dotted, _terms(each.value)) for each in made)
        is_sum = isinstance(stmt, AugAssign) or len(terms) > 1
        if is_sum and goes_on and any(map(self._is_joined, terms)):
            return True
        for node in nodes_in([stmt]):
            if isinstance(node, Bin):
                terms = [*_terms(node)]
                if any(dotted(each) in self.held for each in terms) and any(
                    self._is_joined(each) or self._lists(each) for each in terms
                ):
                    return True
            elif isinstance(node, Call) and isinstance(node.func, Attr):
                # torch changes in place what a name with a line at its end says.
                is_kept = dotted(leftmost(node)) not in self.sets and node.func.name.endswith("_")
                if is_kept and any(self._is_joined(arg.value) for arg in node.args):
                    return True
            elif isinstance(node, Compare) and {*node.ops} & {"In", "NotIn"}:
                is_among = dotted(node.rights[0]) in self.grown
                if is_among and self.holds_items(node.left):
                    return True
        return False

    def _hands_to_keeper(self, call: Call) -> bool:
        """Whether a turn gives its items, one by one, to what keeps them for the next turn."""
        given = [arg.value for arg in call.args if self.holds_items(arg.value)]
        return any(
            param.name in map(dotted, _terms(store.value)) and passed(callee, param, call) in given
            for callee in (self.model.flow.callees(call) if given else ())
            for store in callee.stores
            if store.value is not None
            for param in callee.params
        )

    def _is_joined(self, expr: Expr) -> bool:
        """Whether an expression is one of all items that were read, each at its place."""
        if isinstance(expr, Call):
            return last_name(expr.func) in _JOINS and self._is_read(expr)
        made = self.sets.get(dotted(expr) or "", ())
        return any(isinstance(each.value, Call) and self._is_joined(each.value) for each in made)

    def _is_of_another(self, expr: Expr, use: Stmt) -> bool:
        """Whether an expression is what a turn has read, and another one finds."""
        name = dotted(expr)
        if name in self.kept:
            return True
        if name is None or name not in self.read or name in self.bound:
            return False
        made = self.sets.get(name, [])
        parts = (part for each in made for part in walk(each.value))
        if any(isinstance(p, Index) and dotted(p.value) in self.grown for p in parts):
            return True  # what was listed last
        return bool(made) and all(self._is_kept(name, each, use) for each in made)

    def _is_kept(self, name: str, made: Assign, use: Stmt) -> bool:
        if made.order > use.order and not use.encloses(made):
            return True
        if any(self.since.get(dotted(p) or "", -1) >= made.order for p in walk(made.value)):
            return True  # of what a turn before has filled
        for around in made.ancestors():
            if not isinstance(around, If):
                continue
            if any(dotted(part) == name for part in walk(around.test)):
                return True
            if around.encloses(use) and around is not use:
                blocks = (around.body, around.orelse)
                mine = [any(one.encloses(made) for one in block) for block in blocks]
                its = [any(one.encloses(use) for one in block) for block in blocks]
                if mine != its:
                    return True
        return False


def _terms(expr: Expr) -> Iterator[Expr]:
    """What is added, scaled or the like, item by item."""
    if isinstance(expr, Bin):
        yield from _terms(expr.left)
        yield from _terms(expr.right)
    elif isinstance(expr, Unary):
        yield from _terms(expr.operand)
    else:
        yield expr


def _beside(node: Expr) -> Iterator[Expr]:
    """What is asked to be equal to another thing that is read, or is paired with it."""
    if isinstance(node, Compare) and {*node.ops} & {"Eq", "NotEq"}:
        sides = [node.left, *node.rights]
        if not any(isinstance(side, Const) for side in sides):
            yield from sides
    elif isinstance(node, Index) and not isinstance(node.key, (Const, Unary)):
        yield node.value
    elif isinstance(node, Call):
        name = last_name(node.func)
        if name in _EQUAL or name == "zip":
            yield from (arg.value for arg in node.args)
