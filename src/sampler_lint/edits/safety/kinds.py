"""Which values are ints: what a fix hands on as an epoch."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Iterator, Mapping

from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.domain.concepts import RANGES
from sampler_lint.domain.model import Model
from sampler_lint.edits.safety.callers import is_wrapped
from sampler_lint.edits.safety.meaning import original, scopes_of
from sampler_lint.edits.safety.names import bindings, path
from sampler_lint.edits.safety.texts import FUNCTIONS, Tree
from sampler_lint.findings import Refuted
from sampler_lint.limits import DEEPEST_SLICE
from sampler_lint.syntax.navigation import builtin_type, makes_iterator
from sampler_lint.syntax.nodes import Class, Expr, Function, Imported, Scope
from sampler_lint.workspace.project import Module

_INTS = frozenset({"len", "ord", "hash", "id"})
#: What gives a tuple for each item.
_TUPLES = frozenset(
    {"combinations", "enumerate", "pairwise", "permutations", "product", "zip", "zip_longest"}
)
_CHOOSES = frozenset({"max", "min", "abs", "sum"})


class Kinds:
    """The kinds of the values in one file, before or after a fix."""

    def __init__(
        self,
        model: Model,
        module: Module,
        tree: Tree,
        back: Mapping[ast.AST, ast.AST] | None = None,
    ) -> None:
        """``back`` tells what each node was in the file as the model has read it, if it is new."""
        self._model = model
        self._module = module
        self._tree = tree
        self._scopes = scopes_of(tree)
        self._back = back
        self._places: dict[tuple[int, int, int | None, int | None], ast.expr] | None = None
        self._kinds: dict[tuple[str, bool], list[bool | None]] = {}
        self._asked: set[tuple[ast.AST, str]] = set()
        """The variables that are being looked at."""
        self._known: dict[tuple[ast.AST, str, int, bool], bool | None] = {}
        self._is_given = False
        """Whether what is looked at is no None, as the program has asked."""

    def not_int(self, value: ast.expr, what: str = "") -> str | None:
        """Why a value may be no int."""
        kind = self.kind(value)
        if kind is True:
            return None
        shown = f"{what}`{ast.unparse(value)}`"
        if kind is None:
            return f"{shown} is not known to be an int"
        return Refuted(f"{shown} is not an int")

    def kind(self, node: ast.AST | None, depth: int = 0) -> bool | None:
        """Whether a value is an int; None if that is not known."""
        if node is None or depth > DEEPEST_SLICE:
            return None
        if isinstance(node, ast.Constant):
            return type(node.value) is int or (node.value is None and self._is_given)
        if isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Compare)):
            return False
        if isinstance(node, ast.BinOp):
            sides = [self.kind(side, depth + 1) for side in (node.left, node.right)]
            return _all([*sides, not isinstance(node.op, (ast.Div, ast.MatMult))])
        if isinstance(node, ast.UnaryOp):
            return self.kind(node.operand, depth + 1)
        if isinstance(node, ast.IfExp):
            given = _not_none(node)
            options = (node.body, node.orelse)
            return _all(self._kind(one, depth + 1, one is given) for one in options)
        if isinstance(node, ast.BoolOp):
            # `seed or 0` is no None, whatever `seed` is.
            *firsts, last = node.values
            is_or = isinstance(node.op, ast.Or)
            kinds = [self._kind(one, depth + 1, is_or) for one in firsts]
            return _all([*kinds, self.kind(last, depth + 1)])
        if isinstance(node, ast.Call):
            name = self._python(node.func)
            kind = builtin_type(name)
            if kind is not None:
                return issubclass(kind, int)
            if name in _CHOOSES and node.args:
                return _all(self.kind(one, depth + 1) for one in node.args)
            return True if name in _INTS else None
        if isinstance(node, ast.Name):
            return self._name(node, depth + 1)
        if isinstance(node, ast.Attribute):
            # What others keep there is theirs to answer for; only what is seen can be wrong.
            family = self._family(own_class(self._tree, node))
            stores = self._stores(node.attr, family, depth + 1)
            if False in (*stores, *self._fields(node, depth + 1)):
                return False
            return _all([True, *self._properties(node.attr, depth + 1)])
        return None

    def _kind(self, node: ast.AST | None, depth: int, is_given: bool) -> bool | None:
        """The same, of what is no None if ``is_given``."""
        with self._as(self._is_given or is_given):
            return self.kind(node, depth)

    @contextlib.contextmanager
    def _as(self, is_given: bool) -> Iterator[None]:
        before, self._is_given = self._is_given, is_given
        try:
            yield
        finally:
            self._is_given = before

    def _family(self, cls: ast.ClassDef | None) -> set[Class]:
        """A class, its bases and its subclasses, as the model knows them."""
        before = cls if self._back is None or cls is None else self._back.get(cls)
        scope = scope_at(self._module, before)
        if not isinstance(scope, Class):
            return set()
        bases = (base for base in self._model.flow.mro(scope) if isinstance(base, Class))
        return {*bases, *self._model.flow.subclasses(scope)}

    def _stores(self, name: str, family: set[Class], depth: int) -> list[bool | None]:
        """The kinds of what the file puts into attributes of that name.

        Not what an object of another class than those of ``family``, if any, stores in itself.
        """
        if self._tree.part is not None:
            whole = kinds_of(self._model, self._module)
            if whole is None:
                return []
            with whole._as(self._is_given):
                return whole._stores(name, family, depth)
        return [
            self._stored(one, depth)
            for one in self._tree.nodes
            if isinstance(one, ast.Attribute)
            and one.attr == name
            and isinstance(one.ctx, ast.Store)
            and not (
                family
                and (others := self._family(own_class(self._tree, one)))
                and family.isdisjoint(others)
            )
        ]

    def _fields(self, node: ast.Attribute, depth: int) -> Iterator[bool | None]:
        """The kinds of what the body of its own class gives the attribute."""
        cls = next((one for one in self._tree.around(node) if isinstance(one, ast.ClassDef)), None)
        for stmt in cls.body if cls is not None else ():
            targets = stmt.targets if isinstance(stmt, ast.Assign) else []
            if isinstance(stmt, ast.AnnAssign):
                targets = [stmt.target]
            if any(isinstance(one, ast.Name) and one.id == node.attr for one in targets):
                yield self.kind(getattr(stmt, "value", None), depth)

    def _properties(self, name: str, depth: int) -> Iterator[bool | None]:
        """The kinds of what properties of that name work out."""
        for prop in self._model.properties(name):
            there = kinds_of(self._model, self._model.module_of(prop))
            for one in prop.returns:
                node = there.at(one.value) if there is not None and one.value else None
                yield there._kind(node, depth, self._is_given) if there is not None else None

    def at(self, expr: Expr) -> ast.expr | None:
        """The node of an expression that the model has read in this file."""
        if self._places is None:
            self._places = {
                (one.lineno, one.col_offset, one.end_lineno, one.end_col_offset): one
                for one in self._tree.spans
                if isinstance(one, ast.expr)
            }
        return self._places.get((expr.row, expr.col, expr.end_row, expr.end_col))

    def _python(self, func: ast.expr) -> str | None:
        """The name of a function of Python's own, where nothing else in the file has it."""
        if isinstance(func, ast.Name) and self._is_bound(func):
            return None
        return path(func)

    def _is_bound(self, name: ast.Name) -> bool:
        return self._scopes.binder(name.id, self._scopes.scope(name)) is not None

    def _is_of_program(self, func: ast.expr) -> bool:
        """Whether the program itself may define what is called."""
        while isinstance(func, ast.Attribute):
            func = func.value
        if not isinstance(func, ast.Name):
            return True
        owner = self._scopes.binder(func.id, self._scopes.scope(func))
        if owner is None:
            return False
        imported = [
            one.payload if isinstance(one.payload, Imported) else None
            for one in self._module.facts.bindings.get(func.id, ())
        ]
        if owner is not self._tree.root:
            imported = [
                found
                for node in self._tree.nodes
                if func.id in bindings(node) and self._scopes.scope(node) is owner
                for found in _imports(node, func.id)
            ]
        find = self._model.project.imports.find
        return not imported or any(
            one is None or find(one.name, self._module, one.level) is not None for one in imported
        )

    def _name(self, name: ast.Name, depth: int) -> bool | None:
        owner = self._scopes.binder(name.id, self._scopes.scope(name))
        if owner is None:
            return None
        key = owner, name.id, depth, self._is_given
        if key in self._known:
            return self._known[key]
        if (owner, name.id) in self._asked:
            return True  # `n = n + 1` is an int if all else that `n` is given is one
        self._asked.add((owner, name.id))
        try:
            found = self._held(name, owner, depth)
        finally:
            self._asked.discard((owner, name.id))
        if not self._asked:  # else it holds on the way here alone
            self._known[key] = found
        return found

    def _held(self, name: ast.Name, owner: ast.AST, depth: int) -> bool | None:
        """Whether all that a variable is given is an int."""
        kinds: list[bool | None] = []
        if isinstance(owner, (*FUNCTIONS, ast.Lambda)):
            kinds += [
                self._parameter(owner, arg, depth)
                for arg in ast.walk(owner.args)
                if isinstance(arg, ast.arg) and arg.arg == name.id
            ]
        for node in self._scopes.stored.get(name.id, ()):
            if self._scopes.binder(node.id, self._scopes.scope(node)) is owner:
                kinds.append(self._stored(node, depth))
        if owner is self._tree.root and self._tree.part is not None:
            whole = kinds_of(self._model, self._module)
            if whole is not None:
                with whole._as(self._is_given):
                    kinds += whole._kept(name.id, depth)
        if any(kind is None for kind in kinds) and self._is_counted(name.id, owner):
            kinds = [kind for kind in kinds if kind is not None]
        return _all(kinds) if kinds else None

    def _kept(self, name: str, depth: int) -> list[bool | None]:
        """The kinds of what a variable of the module is given."""
        key = name, self._is_given
        if key in self._kinds:
            return self._kinds[key]
        self._kinds[key] = []  # of what is made of itself
        self._kinds[key] = [
            self._stored(node, depth)
            for node in self._scopes.stored.get(name, ())
            if self._scopes.binder(name, self._scopes.scope(node)) is self._tree.root
        ]
        return self._kinds[key]

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
        if arg.annotation is not None and ast.unparse(arg.annotation).strip("'\"") != "int":
            return None
        before = function if self._back is None else self._back.get(function)
        scope = scope_at(self._module, before)
        param = scope.param(arg.arg) if isinstance(scope, Function) else None
        if param is None or not isinstance(scope, Function):
            return True  # new, or nobody's that is known
        if is_wrapped(self._model, scope):
            return None
        calls = self._model.flow.callers(scope)
        given = [(passed(scope, param, call), call.scope) for call in calls]
        if param.default is not None and (not calls or any(one is MISSING for one, _ in given)):
            given.append((param.default, scope))
        for value, where in given:
            there = kinds_of(self._model, self._model.module_of(where))
            node = there.at(value) if there is not None and isinstance(value, Expr) else None
            if there is None or node is None:
                continue
            if there._kind(node, depth + 1, self._is_given) is False:
                return False
        return True

    def _stored(self, target: ast.AST, depth: int) -> bool | None:
        """Whether what a target is given is an int."""
        parent = self._tree.parents[target]
        if isinstance(parent, ast.Assign):
            return self.kind(parent.value, depth)
        if isinstance(parent, (ast.AnnAssign, ast.NamedExpr)):
            return self.kind(parent.value, depth)
        if isinstance(parent, ast.AugAssign):
            return _all([self.kind(parent.value, depth), not isinstance(parent.op, ast.Div)])
        if isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)):
            return self._element(parent.iter, (), depth)
        if isinstance(parent, (ast.Tuple, ast.List)):
            outer = self._tree.parents[parent]
            index = next(i for i, one in enumerate(parent.elts) if one is target)
            if isinstance(outer, (ast.For, ast.AsyncFor, ast.comprehension)):
                return self._element(outer.iter, (index,), depth)
            value = outer.value if isinstance(outer, ast.Assign) else None
            if isinstance(value, (ast.Tuple, ast.List)) and index < len(value.elts):
                return self.kind(value.elts[index], depth)
        return None

    def _element(self, items: ast.expr, part: tuple[int, ...], depth: int) -> bool | None:
        """Whether each item of ``items``, or that part of it, is an int."""
        if depth > DEEPEST_SLICE:
            return None
        if isinstance(items, ast.Constant):
            return False
        if isinstance(items, (ast.List, ast.Tuple, ast.Set)) and not part:
            return _all(self.kind(one, depth + 1) for one in items.elts)
        if isinstance(items, ast.Dict) and not part:
            return _all(self.kind(one, depth + 1) for one in items.keys)
        if isinstance(items, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) and not part:
            return self.kind(items.elt, depth + 1)
        if not isinstance(items, ast.Call) or self._is_of_program(items.func):
            return None
        name = (path(items.func) or "").rpartition(".")[2]
        if name in RANGES.called:
            return not part
        if name == "count":
            return not part and _all(self.kind(one, depth + 1) for one in items.args) is not False
        if name in _TUPLES and not part:
            return False
        if name == "enumerate":
            start = [k.value for k in items.keywords if k.arg == "start"] + items.args[1:2]
            return _all(self.kind(one, depth + 1) for one in start) if part == (0,) else None
        if name == "map" and items.args and not part:
            kind = builtin_type(self._python(items.args[0]))
            return None if kind is None else issubclass(kind, int)
        if makes_iterator(name):
            return None
        if items.args:  # `tqdm(range(3))`, `list(range(3))`
            return self._element(items.args[0], part, depth + 1)
        return None


def own_class(tree: Tree, node: ast.Attribute) -> ast.ClassDef | None:
    """The class of whose own object a method reads or stores an attribute."""
    scopes = scopes_of(tree)
    method = scopes.scope(node)
    while isinstance(method, ast.expr):
        method = scopes.scope(method)
    if not isinstance(method, FUNCTIONS) or not isinstance(node.value, ast.Name):
        return None
    cls, names = tree.parents[method], method.args.args[:1]
    is_own = isinstance(cls, ast.ClassDef) and [one.arg for one in names] == [node.value.id]
    return cls if is_own and isinstance(cls, ast.ClassDef) else None


def _not_none(node: ast.IfExp) -> ast.expr | None:
    """What of ``x if x is not None else y`` is no None."""
    test, wanted = node.test, node.body
    if isinstance(test, ast.Compare):
        if len(test.ops) != 1 or not _is_none(test.comparators[0]):
            return None
        if isinstance(test.ops[0], (ast.Is, ast.Eq)):
            wanted = node.orelse
        elif not isinstance(test.ops[0], (ast.IsNot, ast.NotEq)):
            return None
        test = test.left
    return wanted if path(test) is not None and path(test) == path(wanted) else None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _imports(node: ast.AST, name: str) -> Iterator[Imported | None]:
    """What an import binds a name to; None for what is no import."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if name in {alias.asname, alias.name.partition(".")[0]}:
                yield Imported(alias.name, None, 0)
    elif isinstance(node, ast.ImportFrom):
        yield Imported(node.module or "", None, node.level)
    else:
        yield None


def kinds_of(model: Model, module: Module) -> Kinds | None:
    """The kinds in a file as it is; None where Python does not read it."""
    known: dict[Module, Kinds | None] = model.memo.setdefault(kinds_of, {})
    if module not in known:
        try:
            known[module] = Kinds(model, module, original(model, module).tree)
        except (SyntaxError, ValueError, RecursionError):
            known[module] = None
    return known[module]


def scope_at(module: Module, node: ast.AST | None) -> Scope | None:
    """The model's scope for a module, function or class of the file as it is."""
    if isinstance(node, ast.Module):
        return module.facts
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        place = node.name, node.lineno, node.col_offset
        known: dict[tuple[str, int, int], Scope] = module.facts.memo.setdefault(scope_at, {})
        if not known:
            known.update(((s.name, s.row, s.col), s) for s in reversed([*module.facts.scopes]))
        return known.get(place)
    return None


def _all(kinds: Iterable[bool | None]) -> bool | None:
    listed = list(kinds)
    return False if False in listed else None if None in listed else True
