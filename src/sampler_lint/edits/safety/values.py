"""What a fix hands on: epochs that are ints, seeds that all processes share, lasting objects."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sampler_lint.domain.concepts import ASKS_BY_NAME, RANGES
from sampler_lint.domain.model import Model
from sampler_lint.domain.rank_terms import why_not_shared
from sampler_lint.domain.seeds import is_seed_name
from sampler_lint.edits.safety.meaning import scopes_of
from sampler_lint.edits.safety.names import COMPREHENSIONS, Assigned, path
from sampler_lint.edits.safety.texts import FUNCTIONS, Changed
from sampler_lint.limits import DEEPEST_SLICE
from sampler_lint.syntax.lower import expression
from sampler_lint.syntax.navigation import builtin_type, makes_iterator, statements
from sampler_lint.syntax.nodes import (
    Class,
    Function,
    Scope,
    Stmt,
    last_name,
)
from sampler_lint.workspace.project import Module


class Values:
    """The values in one file that a fix changes."""

    def __init__(self, model: Model, module: Module, changed: Changed) -> None:
        self._model = model
        self._module = module
        self._changed = changed
        self._tree = changed.new
        self._scopes = scopes_of(changed.new)

    def wrong(self) -> str | None:
        """A value that is not what the fix takes it for, or may not be."""
        for node in self._tree.spans:
            reason: str | None = None
            if isinstance(node, ast.Call):
                reason = self._call(node)
            elif self._changed.is_written(node) and isinstance(node, ast.Attribute):
                reason = self._attribute(node)
            if reason:
                return reason
        return None

    # -- arguments

    def _call(self, call: ast.Call) -> str | None:
        name = path(call.func) or str(getattr(call.func, "attr", ""))
        written = any(self._changed.is_written(arg) for arg in call.args)
        if name.rpartition(".")[2] == "set_epoch" and written:
            return self._not_int(call.args[0], "the epoch") or self._made_anew(call.func)
        for keyword in call.keywords:
            is_seed = keyword.arg is not None and is_seed_name(keyword.arg)
            reason = self._seed(keyword.value) if is_seed and self._is_new(keyword.value) else None
            if reason:
                return reason
        return None

    def _is_new(self, value: ast.expr) -> bool:
        """Whether the fix writes the value, or a part of it."""
        return any(
            self._changed.is_written(one) for one in ast.walk(value) if one in self._tree.spans
        )

    def _seed(self, value: ast.expr) -> str | None:
        where = self._in_model(value)
        if any(isinstance(one, (ast.Lambda, *COMPREHENSIONS)) for one in ast.walk(value)):
            return "where the seed comes from is not known"
        if isinstance(value, ast.Name) and self._is_new_parameter(value):
            return None  # what is passed for it is looked at where it is passed
        if where is None:
            return (
                None
                if isinstance(value, ast.Constant)
                else "where the seed comes from is not known"
            )
        scope, stmt = where
        return why_not_shared(self._model, expression(value, scope, stmt), scope)

    def _is_new_parameter(self, name: ast.Name) -> bool:
        owner = self._scopes.binder(name.id, self._scopes.scope(name))
        return isinstance(owner, FUNCTIONS) and any(
            isinstance(arg, ast.arg) and arg.arg == name.id and self._changed.is_written(arg)
            for arg in ast.walk(owner.args)
        )

    def _in_model(self, node: ast.AST) -> tuple[Scope, Stmt | None] | None:
        """The model's scope and statement in which a node of the new text stands."""
        holder = self._scopes.scope(node)
        while isinstance(holder, ast.expr):
            holder = self._scopes.scope(holder)
        before = self._changed.back.get(holder)
        scope = self._scope_at(before)
        if scope is None:
            return None
        stmt = self._tree.statement(node)
        while stmt is not None and stmt not in self._changed.back:
            block = self._tree.block(stmt)
            later = block[block.index(stmt) + 1 :]
            stmt = next((one for one in later if one in self._changed.back), None)
        old = self._changed.back.get(stmt) if stmt is not None else None
        found = None
        if isinstance(old, ast.stmt):
            place = old.lineno, old.col_offset
            found = next((s for s in statements(scope.body) if (s.row, s.col) == place), None)
        return scope, found

    def _scope_at(self, node: ast.AST | None) -> Scope | None:
        if isinstance(node, ast.Module):
            return self._module.facts
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            for scope in self._module.facts.scopes:
                if scope.name == node.name and (scope.row, scope.col) == (
                    node.lineno,
                    node.col_offset,
                ):
                    return scope
        return None

    # -- kinds

    def _not_int(self, value: ast.expr, what: str) -> str | None:
        kind = self._kind(value, 0)
        if kind is True:
            return None
        shown = ast.unparse(value)
        said = "is not an int" if kind is False else "is not known to be an int"
        return f"{what} `{shown}` {said}"

    def _kind(self, node: ast.AST | None, depth: int) -> bool | None:
        """Whether a value is an int; None if that is not known."""
        if node is None or depth > DEEPEST_SLICE:
            return None
        if isinstance(node, ast.Constant):
            return type(node.value) is int
        if isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Compare)):
            return False
        if isinstance(node, ast.BinOp):
            sides = [self._kind(side, depth + 1) for side in (node.left, node.right)]
            return _all([*sides, not isinstance(node.op, (ast.Div, ast.MatMult))])
        if isinstance(node, ast.UnaryOp):
            return self._kind(node.operand, depth + 1)
        if isinstance(node, ast.IfExp):
            return _all(self._kind(one, depth + 1) for one in (node.body, node.orelse))
        if isinstance(node, ast.BoolOp):
            return _all(self._kind(one, depth + 1) for one in node.values)
        if isinstance(node, ast.Call):
            name = path(node.func)
            kind = builtin_type(name)
            if kind is not None:
                return issubclass(kind, int)
            if name in {"max", "min", "abs", "sum"} and node.args:
                return _all(self._kind(one, depth + 1) for one in node.args)
            return True if name in {"len", "ord", "hash", "id"} else None
        if isinstance(node, ast.Name):
            return self._name(node, depth + 1)
        if isinstance(node, ast.Attribute):
            stores = [
                self._stored(one, depth + 1)
                for one in self._tree.nodes
                if isinstance(one, ast.Attribute)
                and one.attr == node.attr
                and isinstance(one.ctx, ast.Store)
            ]
            # What others keep there is theirs to answer for; only what is seen can be wrong.
            return False not in stores
        return None

    def _name(self, name: ast.Name, depth: int) -> bool | None:
        owner = self._scopes.binder(name.id, self._scopes.scope(name))
        if owner is None:
            return None
        kinds: list[bool | None] = []
        if isinstance(owner, (*FUNCTIONS, ast.Lambda)):
            kinds += [
                self._parameter(owner, arg, depth)
                for arg in ast.walk(owner.args)
                if isinstance(arg, ast.arg) and arg.arg == name.id
            ]
        for node in self._scopes.names:
            if node.id != name.id or not isinstance(node.ctx, ast.Store):
                continue
            if self._scopes.binder(node.id, self._scopes.scope(node)) is owner:
                kinds.append(self._stored(node, depth))
        if any(kind is None for kind in kinds) and self._is_counted(name.id, owner):
            kinds = [kind for kind in kinds if kind is not None]
        return _all(kinds) if kinds else None

    def _is_counted(self, name: str, owner: ast.AST) -> bool:
        """Whether an int is added to the variable, so that it is a number from the start."""
        return any(
            isinstance(node, ast.AugAssign)
            and isinstance(node.target, ast.Name)
            and node.target.id == name
            and self._scopes.binder(name, self._scopes.scope(node)) is owner
            for node in self._tree.nodes
        )

    def _parameter(self, function: ast.AST, arg: ast.arg, depth: int) -> bool | None:
        if arg.annotation is not None:
            return True if ast.unparse(arg.annotation).strip("'\"") == "int" else None
        scope = self._scope_at(self._changed.back.get(function))
        param = scope.param(arg.arg) if isinstance(scope, Function) else None
        if param is None or not isinstance(scope, Function):
            return True  # new, or nobody's that is known
        from sampler_lint.analysis.arguments import passed

        for call in self._model.flow.callers(scope):
            given = passed(scope, param, call)
            if self._model.module_of(call.scope) is not self._module or not hasattr(given, "row"):
                continue
            for node in self._tree.spans:
                old = self._changed.back.get(node)
                if isinstance(node, ast.expr) and old is not None:
                    place = (old.lineno, old.col_offset, old.end_lineno, old.end_col_offset)  # type: ignore[attr-defined]
                    if place == (given.row, given.col, given.end_row, given.end_col):
                        if self._kind(node, depth + 1) is False:
                            return False
                        break
        return True

    def _stored(self, target: ast.AST, depth: int) -> bool | None:
        """Whether what a target is given is an int."""
        parent = self._tree.parents[target]
        if isinstance(parent, ast.Assign):
            return self._kind(parent.value, depth)
        if isinstance(parent, (ast.AnnAssign, ast.NamedExpr)):
            return self._kind(parent.value, depth)
        if isinstance(parent, ast.AugAssign):
            return _all([self._kind(parent.value, depth), not isinstance(parent.op, ast.Div)])
        if isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)):
            return self._element(parent.iter, (), depth)
        if isinstance(parent, (ast.Tuple, ast.List)):
            outer = self._tree.parents[parent]
            index = next(i for i, one in enumerate(parent.elts) if one is target)
            if isinstance(outer, (ast.For, ast.AsyncFor, ast.comprehension)):
                return self._element(outer.iter, (index,), depth)
            value = outer.value if isinstance(outer, ast.Assign) else None
            if isinstance(value, (ast.Tuple, ast.List)) and index < len(value.elts):
                return self._kind(value.elts[index], depth)
        return None

    def _element(self, items: ast.expr, part: tuple[int, ...], depth: int) -> bool | None:
        """Whether each item of ``items``, or that part of it, is an int."""
        if depth > DEEPEST_SLICE:
            return None
        if isinstance(items, (ast.List, ast.Tuple)) and not part:
            return _all(self._kind(one, depth + 1) for one in items.elts)
        if not isinstance(items, ast.Call):
            return None
        name = (path(items.func) or "").rpartition(".")[2]
        if name in RANGES.called:
            return not part
        if name == "count":
            return not part and _all(self._kind(one, depth + 1) for one in items.args) is not False
        if name == "enumerate":
            start = [k.value for k in items.keywords if k.arg == "start"] + items.args[1:2]
            return _all(self._kind(one, depth + 1) for one in start) if part == (0,) else None
        if makes_iterator(name):
            return False if name == "zip" and not part else None
        if items.args:  # `tqdm(range(3))`, `list(range(3))`
            return self._element(items.args[0], part, depth + 1)
        return None

    # -- objects

    def _made_anew(self, func: ast.expr) -> str | None:
        """What makes another object each time it is read: a call, or a property that calls."""
        for node in ast.walk(func):
            if isinstance(node, ast.Call):
                called = path(node.func)
                if called != "super" and called not in ASKS_BY_NAME.called:
                    return f"`{ast.unparse(node)}` may be another object at each call"
            if isinstance(node, ast.Attribute) and node is not func:
                for prop in self._properties(node.attr):
                    if _makes(prop):
                        return f"the property `{node.attr}` may make another object at each access"
        return None

    def _properties(self, name: str) -> Iterator[Function]:
        for _, cls in self._model.classes():
            method = cls.method(name)
            if method is not None and method.is_property:
                yield method

    # -- attributes of the object itself

    def _attribute(self, node: ast.Attribute) -> str | None:
        """An attribute that the object may not have (yet) where a method reads it."""
        if not isinstance(node.ctx, ast.Load) or not isinstance(node.value, ast.Name):
            return None
        method = self._scopes.scope(node)
        while isinstance(method, ast.expr):
            method = self._scopes.scope(method)
        if not isinstance(method, FUNCTIONS) or not method.args.args:
            return None
        cls = self._tree.parents[method]
        if not isinstance(cls, ast.ClassDef) or method.args.args[0].arg != node.value.id:
            return None
        old = self._changed.back.get(cls)
        scope = self._scope_at(old)
        if not isinstance(scope, Class):
            return None
        where = f"{node.value.id}.{node.attr}"
        stmt = self._tree.statement(node)
        here = Assigned(method).at.get(stmt) if stmt is not None else None
        if here is not None and where in here:
            return None
        if any(node.attr in self._scopes.bound.get(one, ()) for one in (cls,)):
            return None
        if method.name == "__init__":
            if self._from_known_base(scope, node.attr):
                return None
            return f"`{where}` may not be there yet"
        init = next(
            (one for one in cls.body if isinstance(one, FUNCTIONS) and one.name == "__init__"), None
        )
        if init is not None:
            me = init.args.args[0].arg if init.args.args else "self"
            end = Assigned(init).end
            if end is not None and f"{me}.{node.attr}" in end:
                return self._skipped(scope, node.attr)
        attributes = self._model.attributes(scope)
        if self._from_known_base(scope, node.attr):
            return self._skipped(scope, node.attr)
        stored = any(
            one.attr == node.attr
            and isinstance(one.ctx, ast.Store)
            and isinstance(one.value, ast.Name)
            for one in ast.walk(cls)
            if isinstance(one, ast.Attribute)
        )
        if node.attr in attributes.names and not stored:
            return self._skipped(scope, node.attr)
        return f"`{where}` may not be there"

    def _from_known_base(self, cls: Class, name: str) -> bool:
        """Whether a base, and not the class itself, provides the attribute."""
        return any(
            (isinstance(base, str) and name in self._model.attributes(cls).names)
            or (
                isinstance(base, Class)
                and base is not cls
                and name in self._model.attributes(base).names
            )
            for base in self._model.flow.mro(cls)
        )

    def _skipped(self, cls: Class, name: str) -> str | None:
        """A subclass whose constructor does not run the one that stores the attribute."""
        for derived in self._model.flow.subclasses(cls):
            if derived is cls or derived.method("__init__") is None:
                continue
            init = derived.method("__init__")
            stores = (
                any(getattr(store.target, "name", None) == name for store in init.stores)
                if init
                else False
            )
            if not stores and not self._model.flow.base_init_calls(derived):
                return f"`{derived.name}` does not run the `__init__` that stores `{name}`"
        return None


def _makes(function: Function) -> bool:
    """Whether a property calls something for what it returns, and keeps nothing."""
    cached = any("cache" in (last_name(one) or "") for one in function.decorators)
    return not cached and bool(function.calls) and not function.stores


def _all(kinds: object) -> bool | None:
    listed = list(kinds)  # type: ignore[call-overload]
    return False if False in listed else None if None in listed else True
