"""Which scope a name belongs to, and which names are certainly assigned where.

Both follow the language reference: "Naming and binding" for scopes, and the order of execution of
each statement for assignment. A name that was read is assigned, too: otherwise the program would
have stopped there.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections import Counter
from collections.abc import Iterable, Iterator

from sampler_lint.edits.safety.texts import FUNCTIONS, Tree
from sampler_lint.syntax.parse import all_nodes, child_nodes

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPES = (ast.Module, ast.ClassDef, ast.Lambda, *FUNCTIONS, *COMPREHENSIONS)
_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__"}

#: The names (and ``self.x``) that are assigned; None where no execution comes.
State = frozenset[str] | None


class Scopes:
    """The scopes of a tree and what each of them binds."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.bound: dict[ast.AST, set[str]] = {tree.root: set()}
        self._elsewhere: dict[ast.AST, dict[str, str]] = {}
        self.names: list[ast.Name] = []
        self.stored: dict[str, list[ast.Name]] = {}
        """Those that are assigned to, by name."""
        self.times_bound: Counter[str] = Counter()
        """How often each name is bound, whatever the scope."""
        self._scope: dict[ast.AST, ast.AST] = {}
        for node in tree.nodes:  # what a node stands in comes before it
            if isinstance(node, SCOPES):
                self.bound.setdefault(node, set())
            self._scope[node] = self._scope_of(node)
        for node in tree.nodes:
            if isinstance(node, ast.Name):
                self.names.append(node)
                if isinstance(node.ctx, ast.Store):
                    self.stored.setdefault(node.id, []).append(node)
            for name in bindings(node):
                scope = self.scope(node)
                while isinstance(node, ast.NamedExpr) and isinstance(scope, COMPREHENSIONS):
                    scope = self.scope(scope)
                if isinstance(node, ast.arg) and isinstance(tree.parents[node], ast.arguments):
                    scope = tree.parents[tree.parents[node]]
                self.bound[scope].add(name)
                self.times_bound[name] += 1
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                kind = type(node).__name__
                told = self._elsewhere.setdefault(self.scope(node), {})
                told.update(dict.fromkeys(node.names, kind))

    @functools.cached_property
    def variables(self) -> list[list[str]]:
        """What the scopes bind, in an order of its own."""
        return sorted(map(sorted, self.bound.values()))

    def scope(self, node: ast.AST) -> ast.AST:
        """The scope that a node stands in; what a header says stands in the one around it."""
        return self._scope.get(node, self.tree.root)

    def _scope_of(self, node: ast.AST) -> ast.AST:
        """The same, where that of its parent is known."""
        parent = self.tree.parents.get(node)
        if parent is None or isinstance(parent, ast.Module):
            return self.tree.root
        if isinstance(parent, (*FUNCTIONS, ast.ClassDef)):
            is_inside = isinstance(node, ast.stmt)
        elif isinstance(parent, ast.Lambda):
            is_inside = node is parent.body
        elif isinstance(parent, ast.comprehension):
            # The first is looked through outside.
            comprehension = self.tree.parents[parent]
            is_first = parent is comprehension.generators[0]  # type: ignore[attr-defined]
            return self._scope[comprehension if is_first and node is parent.iter else parent]
        else:
            is_inside = isinstance(parent, COMPREHENSIONS)
        return parent if is_inside else self._scope[parent]

    def binder(self, name: str, scope: ast.AST) -> ast.AST | None:
        """The scope whose variable ``name`` means in ``scope``; None for a builtin, or nothing."""
        here = True
        current: ast.AST | None = scope
        while current is not None:
            told = self._elsewhere.get(current, {}).get(name)
            if told == "Global":
                return self.tree.root
            is_seen = here or not isinstance(current, ast.ClassDef)
            if told is None and is_seen and name in self.bound[current]:
                return current
            here = here and isinstance(current, COMPREHENSIONS)
            current = None if current is self.tree.root else self.scope(current)
        return None


def bindings(node: ast.AST) -> Iterator[str]:
    """The names that a node itself binds in its scope."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(node, (ast.ExceptHandler, ast.MatchStar, ast.MatchAs)):
        if node.name is not None:
            yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest is not None:
        yield node.rest


def path(node: ast.AST) -> str | None:
    """``a`` and ``a.b.c`` as text."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


class Assigned:
    """What is assigned when execution comes to each statement of one scope, and at its end."""

    def __init__(self, scope: ast.AST, before: Iterable[str] = ()) -> None:
        """``before`` is what a module has assigned before the part of it that is looked at."""
        self.at: dict[ast.AST, State] = {}
        self._breaks: list[list[State]] = []
        self._continues: list[list[State]] = []
        start: State = frozenset(before)
        if isinstance(scope, (*FUNCTIONS, ast.Lambda)):
            start = frozenset(a.arg for a in all_nodes(scope.args) if isinstance(a, ast.arg))
        if isinstance(scope, ast.Lambda):
            self.end = self._see(scope.body, start)
        else:
            self.end = self._block(getattr(scope, "body", []), start)

    def _block(self, body: Iterable[ast.stmt], state: State) -> State:
        for stmt in body:
            known = self.at.get(stmt, state)
            self.at[stmt] = state if stmt not in self.at else _join(known, state)
            state = self._statement(stmt, state)
        return state

    def _statement(self, stmt: ast.stmt, state: State) -> State:
        if state is None:
            for body in _bodies(stmt):
                self._block(body, None)
            return None
        if isinstance(stmt, (*FUNCTIONS, ast.ClassDef)):
            for part in child_nodes(stmt):
                if not isinstance(part, ast.stmt):
                    state = self._see(part, state)
            if isinstance(stmt, ast.ClassDef):
                inner = Assigned(stmt)
                self.at.update((one, _both(state, here)) for one, here in inner.at.items())
            return _add(state, [stmt.name])
        if isinstance(stmt, ast.If):
            state = self._see(stmt.test, state)
            return _join(self._block(stmt.body, state), self._block(stmt.orelse, state))
        if isinstance(stmt, (ast.For, ast.AsyncFor, ast.While)):
            return self._loop(stmt, state)
        if isinstance(stmt, (ast.With, ast.AsyncWith)):
            return self._with(stmt, state)
        if isinstance(stmt, ast.Match):
            return self._match(stmt, state)
        if isinstance(stmt, ast.Try) or type(stmt).__name__ == "TryStar":
            return self._try(stmt, state)
        state = self._see(stmt, state)
        if isinstance(stmt, (ast.Return, ast.Raise)):
            return None
        if isinstance(stmt, (ast.Break, ast.Continue)):
            stack = self._breaks if isinstance(stmt, ast.Break) else self._continues
            if stack:
                stack[-1].append(state)
            return None
        return state

    def _loop(self, stmt: ast.For | ast.AsyncFor | ast.While, state: State) -> State:
        forever = False
        if isinstance(stmt, ast.While):
            forever = isinstance(stmt.test, ast.Constant) and bool(stmt.test.value)
        else:
            state = self._see(stmt.iter, state)
        entry = state
        ended: State = None
        again: State = None
        while again != entry:  # a pass that deletes names may take them from the one after it
            again = entry
            self._breaks.append([])
            self._continues.append([])
            inside = self._see(stmt.test if isinstance(stmt, ast.While) else stmt.target, entry)
            ended = self._block(stmt.body, inside)
            breaks = self._breaks.pop()
            for one in self._continues.pop():
                ended = _join(ended, one)
            entry = _join(state, ended)
        # A `for` may make no pass; the test of a `while` is looked at once more.
        over = None if forever else entry
        if isinstance(stmt, ast.While) and not forever:
            over = self._see(stmt.test, entry)
        over = self._block(stmt.orelse, over) if stmt.orelse or over is None else over
        for one in breaks:
            over = _join(over, one)
        return over

    def _with(self, stmt: ast.With | ast.AsyncWith, state: State) -> State:
        swallows = False
        for item in stmt.items:
            state = self._see(item, state)
            func = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
            swallows |= func is not None and (path(func) or "").split(".")[-1] == "suppress"
        after = self._block(stmt.body, state)
        return _join(after, _without(state, stmt.body)) if swallows else after

    def _match(self, stmt: ast.Match, state: State) -> State:
        state = self._see(stmt.subject, state)
        after: State = None
        complete = False
        for case in stmt.cases:
            inside = _add(state, [n for p in all_nodes(case.pattern) for n in bindings(p)])
            if case.guard is not None:
                inside = self._see(case.guard, inside)
            after = _join(after, self._block(case.body, inside))
            pattern = case.pattern
            complete |= (
                case.guard is None and isinstance(pattern, ast.MatchAs) and pattern.pattern is None
            )
        return after if complete else _join(after, state)

    def _try(self, stmt: ast.AST, state: State) -> State:
        body: list[ast.stmt] = stmt.body  # type: ignore[attr-defined]
        after = self._block(stmt.orelse, self._block(body, state))  # type: ignore[attr-defined]
        thrown = _without(state, body)
        for handler in stmt.handlers:  # type: ignore[attr-defined]
            inside = self._see(handler.type, thrown) if handler.type is not None else thrown
            ended = self._block(handler.body, _add(inside, [handler.name] if handler.name else []))
            if handler.name and ended is not None:
                ended = ended - {handler.name}
            after = _join(after, ended)
        final: list[ast.stmt] = stmt.finalbody  # type: ignore[attr-defined]
        if not final:
            return after
        whatever = self._block(final, thrown)
        if after is None or whatever is None:
            return None
        return after | whatever

    def _see(self, node: ast.AST, state: State) -> State:
        """The state after an expression, or a simple statement, is evaluated."""
        if state is None or isinstance(node, (ast.Lambda, *COMPREHENSIONS)):
            if state is not None and isinstance(node, COMPREHENSIONS):
                return self._see(node.generators[0].iter, state)
            return state
        if isinstance(node, ast.IfExp):
            state = self._see(node.test, state)
            return _join(self._see(node.body, state), self._see(node.orelse, state))
        if isinstance(node, ast.BoolOp):
            return self._see(node.values[0], state)
        if isinstance(node, ast.Compare):
            return self._see(node.comparators[0], self._see(node.left, state))
        if isinstance(node, ast.Assert):
            return self._see(node.test, state)
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return state
        order = child_nodes(node)
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            order = [node.value, *(one for one in order if one is not node.value)]
        for child in order:
            state = self._see(child, state)
        if isinstance(node, (ast.Name, ast.Attribute)):
            where = path(node)
            if where is not None and isinstance(node.ctx, ast.Del):
                return _drop(state, where)
            if where is not None and isinstance(node.ctx, ast.Store):
                return _add(_drop(state, where), [where])
            return _add(state, [where]) if where is not None else state
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return _add(state, bindings(node))
        return state


def _join(one: State, other: State) -> State:
    """What is assigned on both ways."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _both(one: State, other: State) -> State:
    return None if one is None or other is None else one | other


def _add(state: State, names: Iterable[str]) -> State:
    return None if state is None else state | frozenset(names)


def _drop(state: State, where: str) -> State:
    if state is None or where not in state:  # what has parts that were read has been read itself
        return state
    return frozenset(n for n in state if n != where and not n.startswith(where + "."))


def _without(state: State, body: Iterable[ast.stmt]) -> State:
    """The state when an exception may have come anywhere in ``body``."""
    for stmt in body:
        for node in all_nodes(stmt):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Del):
                where = path(node)
                state = _drop(state, where) if where is not None else state
    return state


def _bodies(stmt: ast.AST) -> Iterator[list[ast.stmt]]:
    if isinstance(stmt, (*FUNCTIONS, ast.ClassDef)):
        return
    for _, value in ast.iter_fields(stmt):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value, list):
            for one in value:
                if isinstance(one, (ast.ExceptHandler, ast.match_case)):
                    yield one.body


def is_builtin(name: str) -> bool:
    """Whether Python itself brings the name."""
    return name in _BUILTINS
