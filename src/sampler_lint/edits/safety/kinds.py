"""Which values are ints: what a fix hands on as an epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from sampler_lint.analysis.arguments import MISSING, handed_back, passed
from sampler_lint.analysis.origins import part_of
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import ExtObj, Lit, Pack, Table
from sampler_lint.domain.concepts import RANGES, RANK, WORLD_SIZE
from sampler_lint.domain.model import Model
from sampler_lint.edits.safety.callers import is_wrapped
from sampler_lint.edits.safety.meaning import scopes_of
from sampler_lint.edits.safety.texts import FUNCTIONS, Tree
from sampler_lint.limits import DEEPEST_SLICE
from sampler_lint.syntax.navigation import (
    builtin_type,
    makes_iterator,
    owner_of,
    self_class,
    unparse,
)
from sampler_lint.syntax.nodes import (
    Attr,
    AugAssign,
    Bin,
    Binding,
    Call,
    Choice,
    Class,
    Comp,
    Compare,
    Const,
    Expr,
    Function,
    Imported,
    Index,
    Map,
    Name,
    Param,
    Scope,
    Seq,
    Store,
    Text,
    Unary,
    dotted,
    last_name,
)

_INTS = frozenset({"len", "ord", "hash", "id"})
#: What gives a tuple for each item.
_TUPLES = frozenset(
    {"combinations", "enumerate", "pairwise", "permutations", "product", "zip", "zip_longest"}
)
_CHOOSES = frozenset({"max", "min", "abs", "sum"})


def is_int(model: Model, expr: Expr) -> bool | None:
    """Whether a value is an int; None if that is not known."""
    return _Kinds(model).kind(expr, False, 0)


def are_ints(model: Model, items: Expr, path: tuple[int, ...]) -> bool | None:
    """Whether each item of what is iterated over is an int, or the part of it that is unpacked."""
    return _Kinds(model).element(items, path, False, 0)


class _Kinds:
    """One question. What is ``given`` is no None, as the program has asked."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._asked: set[int] = set()
        """The assignments that are being looked at."""

    def kind(self, expr: Expr | None, given: bool, depth: int) -> bool | None:
        """Whether a value is an int; None if that is not known."""
        depth += 1
        if depth > DEEPEST_SLICE:
            return None
        match expr:
            case Const():
                return type(expr.value) is int or (expr.value is None and given)
            case Seq() | Map() | Compare() | Text():
                return False
            case Bin():
                sides = [self.kind(side, given, depth) for side in (expr.left, expr.right)]
                return _all([*sides, expr.op not in {"Div", "MatMult"}])
            case Unary():
                return self.kind(expr.operand, given, depth)
            case Choice():
                # `seed or 0` is no None, whatever `seed` is.
                sure = expr.options[:-1] if expr.kind == "or" else [_not_none(expr)]
                options = expr.options
                return _all(self.kind(one, given or one in sure, depth) for one in options)
            case Call():
                return self._call(expr, given, depth)
            case Name():
                owner = owner_of(expr)
                bindings = definitions(owner, expr) if owner is not None else []
                kinds = [self._made(each, owner, given, depth) for each in bindings]
                if owner is not None and any(one.how == "aug" for one in owner.bindings[expr.id]):
                    # An int is added to it, so that it is a number from the start.
                    kinds = [one for one in kinds if one is not None]
                return _all(kinds) if kinds else None
            case Attr():
                # What others keep there is theirs to answer for; only what is seen can be wrong.
                if any(one is False for one in self._stores(expr, given, depth)):
                    return False
                returns = (
                    one for prop in self._model.properties(expr.name) for one in prop.returns
                )
                return _all([True, *(self.kind(one.value, given, depth) for one in returns)])
            case Index():
                # An entry of a dict that the program writes down.
                held = self._model.flow.values(expr)
                is_other = any(isinstance(one, (Pack, Table)) for one in held) or any(
                    isinstance(one, Lit) and type(one.value) in {str, float} for one in held
                )
                return False if is_other else None
        return None

    def _call(self, call: Call, given: bool, depth: int) -> bool | None:
        name = _python(call.func)
        kind = builtin_type(name)
        if kind is not None:
            return issubclass(kind, int)
        if name in _CHOOSES and call.args:
            return _all(self.kind(one.value, given, depth) for one in call.args)
        made = self._model.flow.values(call)
        if any(isinstance(one, ExtObj) and _is_class(one.dotted) for one in made):
            return False
        is_count = RANK.is_call(call) or WORLD_SIZE.is_call(call)
        return True if name in _INTS or is_count else None

    def _stores(self, attribute: Attr, given: bool, depth: int) -> Iterator[bool | None]:
        """The kinds of what the file puts into attributes of that name, or its class gives it.

        Not what an object of another class stores in itself.
        """
        family = self._family(self_class(attribute.value))
        stores = self._model.module_of(attribute.scope).facts.stores_by_name
        for store in stores.get(attribute.name, ()):
            others = self._family(self_class(store.target.value))
            if not (family and others and family.isdisjoint(others)):
                yield self._made(store, None, given, depth)
        cls = next((one for one in attribute.scope.outward() if isinstance(one, Class)), None)
        for field in cls.bindings.get(attribute.name, ()) if cls is not None else ():
            yield self._made(field, cls, given, depth)

    def _family(self, cls: Class | None) -> set[Class]:
        """A class, its bases and its subclasses."""
        if cls is None:
            return set()
        bases = self._model.flow.own_mro(cls)
        return {*bases, *self._model.flow.subclasses(cls)}

    def _made(
        self, each: Binding | Store, owner: Scope | None, given: bool, depth: int
    ) -> bool | None:
        """Whether what a variable or an attribute is given is an int."""
        if id(each) in self._asked:
            return True  # `n = n + 1` is an int if all else that `n` is given is one
        self._asked.add(id(each))
        try:
            param = each.payload if isinstance(each, Binding) else None
            if isinstance(param, Param) and isinstance(owner, Function):
                return self._parameter(owner, param, given, depth)
            if isinstance(each.stmt, AugAssign) and each.how == "aug":
                target = each.stmt.target
                before = self.kind(target, given, depth) if isinstance(target, Name) else True
                added = self.kind(each.stmt.value, given, depth)
                return _all([before, added, each.stmt.op != "Div"])
            if each.how == "element" and each.value is not None:
                return self.element(each.value, each.path, given, depth)
            is_assigned = each.how == "assign"
            return self.kind(part_of(each.value, each.path), given, depth) if is_assigned else None
        finally:
            self._asked.discard(id(each))

    def _parameter(self, function: Function, param: Param, given: bool, depth: int) -> bool | None:
        told = unparse(param.annotation).strip("'\"") if param.annotation is not None else "int"
        if told != "int" or is_wrapped(self._model, function):
            return None
        values = [passed(function, param, one) for one in self._model.flow.callers(function)]
        if param.default is not None and (not values or MISSING in values or None in values):
            values.append(param.default)
        kinds = (self.kind(one, given, depth) for one in values if isinstance(one, Expr))
        return not any(one is False for one in kinds)

    def element(self, items: Expr, path: tuple[int, ...], given: bool, depth: int) -> bool | None:
        """Whether each item of ``items``, or that part of it, is an int."""
        depth += 1
        if depth > DEEPEST_SLICE:
            return None
        if isinstance(items, Const):
            return False
        if isinstance(items, Name):  # `epochs = trange(3)`
            owner = owner_of(items)
            made = definitions(owner, items) if owner is not None else []
            plain = [one.value for one in made if one.how == "assign" and not one.path]
            kinds = [self.element(one, path, given, depth) for one in plain if one is not None]
            return _all(kinds) if kinds and len(kinds) == len(made) else None
        held: list[Expr | None] | None = None
        if isinstance(items, Seq):
            held = [*items.items]
        elif isinstance(items, Map):
            held = [key for key, _ in items.items]
        elif isinstance(items, Comp) and items.table is None:
            held = [*items.elements]
        if held is not None and not path:
            return _all(self.kind(one, given, depth) for one in held)
        if not isinstance(items, Call) or self._is_of_program(items.func):
            return None
        name, args = last_name(items.func) or "", items.positional
        if name in RANGES.called:
            return not path
        if name == "count":
            kinds = [self.kind(one, given, depth) for one in args]
            return not path and _all(kinds) is not False
        if name in _TUPLES and not path:
            return False
        if name == "zip" and path[0] < len(args):
            return self.element(args[path[0]], path[1:], given, depth)
        if name == "enumerate":
            start = [one for one in (items.keyword("start"), *args[1:2]) if one is not None]
            kinds = [self.kind(one, given, depth) for one in start]
            if path[:1] == (1,) and args:
                return self.element(args[0], path[1:], given, depth)
            return _all(kinds) if path == (0,) else None
        if name == "map" and args and not path:
            kind = builtin_type(_python(args[0]))
            return None if kind is None else issubclass(kind, int)
        handed = handed_back(name, items)
        if handed is None and args and not makes_iterator(name):
            handed = args[0]  # `tqdm(range(3))`
        return self.element(handed, path, given, depth) if handed is not None else None

    def _is_of_program(self, func: Expr) -> bool:
        """Whether the program itself may define what is called."""
        while isinstance(func, Attr):
            func = func.value
        owner = owner_of(func) if isinstance(func, Name) else None
        if not isinstance(func, Name) or owner is None:
            return not isinstance(func, Name)
        find, module = self._model.project.imports.find, self._model.module_of(owner)
        return any(
            not isinstance(one.payload, Imported)
            or find(one.payload.name, module, one.payload.level) is not None
            for one in owner.bindings[func.id]
        )


def _python(func: Expr) -> str | None:
    """The name of a function of Python's own, where nothing else in the file has it."""
    is_bound = isinstance(func, Name) and owner_of(func) is not None
    return None if is_bound else dotted(func)


def _is_class(dotted: str) -> bool:
    """Whether something outside the tree is spelled as a class: ``decimal.Decimal``."""
    return dotted.rpartition(".")[2][:1].isupper()


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


def _not_none(choice: Choice) -> Expr | None:
    """What of ``x if x is not None else y`` is no None."""
    test = choice.test
    if choice.kind != "if" or test is None:
        return None
    wanted = choice.options[0]
    if isinstance(test, Compare):
        right = test.rights[0]
        if len(test.ops) != 1 or not isinstance(right, Const) or right.value is not None:
            return None
        if test.ops[0] in {"Is", "Eq"}:
            wanted = choice.options[1]
        elif test.ops[0] not in {"IsNot", "NotEq"}:
            return None
        test = test.left
    return wanted if dotted(test) is not None and dotted(test) == dotted(wanted) else None


def _all(kinds: Iterable[bool | None]) -> bool | None:
    listed = list(kinds)
    return False if False in listed else None if None in listed else True
