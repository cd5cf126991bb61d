"""Facts of one file: a small, typed copy of its syntax, with scopes and what each binds.

Made from the standard library's ``ast`` (so that flake8's own tree can be used) and smaller
than it by a factor of five in memory: docstrings, long strings and formatting are dropped, and
spellings that mean the same become one node (``x if c else y`` and ``c and x or y`` are both a
:class:`Choice`). Positions are those of ``ast``: 1-based rows, 0-based columns in UTF-8 bytes.

No rule is known here, and no other file is read.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

_LONGEST_STRING = 120


class Node:
    """Anything with a place in the file."""

    __slots__ = ("col", "end_col", "end_row", "row")
    row: int
    col: int
    end_row: int
    end_col: int
    children: tuple[str, ...] = ()

    def __repr__(self) -> str:
        names = [name for name in type(self).__slots__ if name not in {"scope", "stmt", "parent"}]
        inner = ", ".join(f"{name}={getattr(self, name, None)!r}" for name in names)
        return f"{type(self).__name__}({inner})"


# --------------------------------------------------------------------------- expressions


class Expr(Node):
    """An expression."""

    __slots__ = ()


class Name(Expr):
    """A name that is read; ``stmt`` and ``scope`` say where."""

    __slots__ = ("id", "scope", "stmt")
    id: str
    scope: Scope
    stmt: Stmt | None


class Attr(Expr):
    """``value.name``."""

    __slots__ = ("name", "scope", "stmt", "value")
    value: Expr
    name: str
    scope: Scope
    stmt: Stmt | None


class Arg:
    """One argument of a call: positional, ``name=``, ``*value`` or ``**value``."""

    __slots__ = ("keyword", "stars", "value")

    def __init__(self, value: Expr, keyword: str | None, stars: int) -> None:
        self.value = value
        self.keyword = keyword
        self.stars = stars


class Call(Expr):
    """``func(args)``, with the statement and scope it stands in."""

    __slots__ = ("args", "func", "scope", "stmt")
    func: Expr
    args: list[Arg]
    scope: Scope
    stmt: Stmt | None

    def keyword(self, name: str) -> Expr | None:
        """The value given as ``name=``."""
        for arg in self.args:
            if arg.keyword == name:
                return arg.value
        return None

    @property
    def positional(self) -> list[Expr]:
        """The positional arguments before the first ``*star``."""
        out: list[Expr] = []
        for arg in self.args:
            if arg.stars == 1:
                break
            if arg.keyword is None and not arg.stars:
                out.append(arg.value)
        return out

    @property
    def has_star(self) -> bool:
        """Whether ``*args`` is passed."""
        return any(arg.stars == 1 for arg in self.args)

    @property
    def has_double_star(self) -> bool:
        """Whether ``**kwargs`` is passed."""
        return any(arg.stars == 2 for arg in self.args)


class Const(Expr):
    """A literal. Strings over a length that no name has, and bytes, have ``...`` as value."""

    __slots__ = ("value",)
    value: Any


class Seq(Expr):
    """A tuple, list or set display."""

    __slots__ = ("items", "kind", "scope")
    kind: str
    items: list[Expr]
    scope: Scope


class Map(Expr):
    """A dict display; a key of None stands for ``**value``."""

    __slots__ = ("items", "scope")
    items: list[tuple[Expr | None, Expr]]
    scope: Scope


class Index(Expr):
    """``value[key]``."""

    __slots__ = ("key", "value")
    value: Expr
    key: Expr


class Choice(Expr):
    """One of several values: ``if`` (a ternary, with its test), ``or``, ``and``."""

    __slots__ = ("kind", "options", "test")
    kind: str
    test: Expr | None
    options: list[Expr]


class Bin(Expr):
    """``left op right``; ``op`` is the ``ast`` class name (``FloorDiv``)."""

    __slots__ = ("left", "op", "right")
    op: str
    left: Expr
    right: Expr


class Unary(Expr):
    """``op operand``."""

    __slots__ = ("op", "operand")
    op: str
    operand: Expr


class Compare(Expr):
    """``left op right …``."""

    __slots__ = ("left", "ops", "rights")
    left: Expr
    ops: list[str]
    rights: list[Expr]


class Comp(Expr):
    """A comprehension; its variables are bound in the enclosing scope (close enough here)."""

    __slots__ = ("elements", "iters", "kind", "tests")
    kind: str
    elements: list[Expr]
    iters: list[Expr]
    tests: list[Expr]


class Yield(Expr):
    """``yield value`` or ``yield from value``."""

    __slots__ = ("delegates", "value")
    value: Expr | None
    delegates: bool


class Lambda(Expr):
    """A lambda; ``function`` has its parameters and its body as one return."""

    __slots__ = ("function",)
    function: Function


class Other(Expr):
    """Any expression that carries no sampler: f-strings, slices, awaits, …"""

    __slots__ = ("parts",)
    parts: list[Expr]


# --------------------------------------------------------------------------- statements


class Stmt(Node):
    """A statement; ``order``/``last_order`` number it and its inside in reading order."""

    __slots__ = ("block", "last_order", "order", "parent", "scope")
    parent: Stmt | None
    """The compound statement around it, within the same scope."""
    block: list[Stmt]
    """The list of statements it stands in."""
    scope: Scope
    order: int
    last_order: int

    def ancestors(self) -> Iterator[Stmt]:
        """The compound statements around it, innermost first, within its scope."""
        stmt = self.parent
        while stmt is not None:
            yield stmt
            stmt = stmt.parent

    def encloses(self, other: Stmt) -> bool:
        """Whether ``other`` is this statement or inside it (same scope)."""
        return self.scope is other.scope and self.order <= other.order <= self.last_order


class Assign(Stmt):
    """``targets = value``; an annotated assignment too."""

    __slots__ = ("targets", "value")
    targets: list[Expr]
    value: Expr


class Declare(Stmt):
    """``target: annotation`` without a value."""

    __slots__ = ("annotation", "target")
    target: Expr
    annotation: Expr


class AugAssign(Stmt):
    """``target op= value``."""

    __slots__ = ("op", "target", "value")
    target: Expr
    op: str
    value: Expr


class ExprStmt(Stmt):
    """An expression as a statement."""

    __slots__ = ("value",)
    value: Expr


class Return(Stmt):
    """``return value``."""

    __slots__ = ("value",)
    value: Expr | None


class Raise(Stmt):
    """``raise value``."""

    __slots__ = ("value",)
    value: Expr | None


class Simple(Stmt):
    """``pass``, ``break``, ``continue``, ``global``, ``nonlocal``, ``del``, ``assert``."""

    __slots__ = ("kind", "names", "parts")
    kind: str
    names: list[str]
    parts: list[Expr]


class For(Stmt):
    """A ``for`` loop."""

    __slots__ = ("body", "iter", "orelse", "target")
    target: Expr
    iter: Expr
    body: list[Stmt]
    orelse: list[Stmt]


class While(Stmt):
    """A ``while`` loop."""

    __slots__ = ("body", "orelse", "test")
    test: Expr
    body: list[Stmt]
    orelse: list[Stmt]


class If(Stmt):
    """An ``if``; ``elif`` is an ``If`` in ``orelse``. ``match`` is one with several bodies."""

    __slots__ = ("body", "orelse", "test")
    test: Expr
    body: list[Stmt]
    orelse: list[Stmt]


class With(Stmt):
    """A ``with`` block."""

    __slots__ = ("body", "items")
    items: list[tuple[Expr, Expr | None]]
    body: list[Stmt]


class Try(Stmt):
    """A ``try``; handlers are (exception type, body)."""

    __slots__ = ("body", "final", "handlers", "orelse")
    body: list[Stmt]
    handlers: list[tuple[Expr | None, list[Stmt]]]
    orelse: list[Stmt]
    final: list[Stmt]


class Import(Stmt):
    """``import`` and ``from … import``; each bound name is in the scope's bindings."""

    __slots__ = ("stars",)
    stars: list[tuple[str, int]]


class Define(Stmt):
    """``def`` or ``class``; ``what`` is the new scope."""

    __slots__ = ("decorators", "what")
    what: Function | Class
    decorators: list[Expr]


Loop: TypeAlias = "For | While"

# --------------------------------------------------------------------------- scopes


class Binding:
    """One way a name gets a value in a scope.

    ``how``: ``assign`` (from ``value``), ``element`` (an item of iterating ``value``),
    ``enter`` (``with value as name``), ``param``, ``def``, ``class``, ``import``, ``aug``,
    ``opaque`` (``del``, ``except … as``, a pattern).
    ``path`` says which part of the value: ``(0, 1)`` is ``(_, name), … = value``.
    """

    __slots__ = ("how", "name", "path", "payload", "stmt", "value")

    def __init__(
        self,
        name: str,
        how: str,
        stmt: Stmt | None,
        value: Expr | None = None,
        path: tuple[int, ...] = (),
        payload: Any = None,
    ) -> None:
        self.name = name
        self.how = how
        self.stmt = stmt
        self.value = value
        self.path = path
        self.payload = payload


class Store:
    """``target.attr = value`` or ``target[key] = value``."""

    __slots__ = ("how", "path", "scope", "stmt", "target", "value")

    def __init__(
        self,
        target: Attr | Index,
        stmt: Stmt,
        scope: Scope,
        how: str,
        value: Expr | None,
        path: tuple[int, ...],
    ) -> None:
        self.target = target
        self.stmt = stmt
        self.scope = scope
        self.how = how
        self.value = value
        self.path = path


class Scope(Node):
    """A module, class or function body."""

    __slots__ = (
        "bindings",
        "body",
        "calls",
        "declared_global",
        "define",
        "loops",
        "module",
        "name",
        "outer",
        "reads",
        "returns",
        "stores",
        "yields",
    )
    kind = "scope"
    name: str
    outer: Scope | None
    module: ModuleFacts
    define: Define | None
    body: list[Stmt]
    bindings: dict[str, list[Binding]]
    declared_global: set[str]
    stores: list[Store]
    calls: list[Call]
    reads: list[Attr]
    """Attribute reads, in reading order."""
    returns: list[Return]
    yields: list[Yield]
    loops: list[Loop]

    @property
    def qualname(self) -> str:
        """Dotted name within the module."""
        parts: list[str] = []
        scope: Scope | None = self
        while scope is not None and scope.outer is not None:
            parts.append(scope.name)
            scope = scope.outer
        return ".".join(reversed(parts))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.qualname or '<module>'}>"


class Param:
    """A parameter; ``kind``: ``positional_only``, ``positional``, ``vararg``, ``keyword_only``, ``kwarg``."""

    __slots__ = ("annotation", "default", "kind", "name", "node")

    def __init__(
        self, name: str, kind: str, default: Expr | None, annotation: Expr | None, node: Node
    ) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.annotation = annotation
        self.node = node


class Function(Scope):
    """A function, method or lambda."""

    __slots__ = ("decorators", "is_async", "params")
    kind = "function"
    params: list[Param]
    decorators: list[Expr]
    is_async: bool

    @property
    def cls(self) -> Class | None:
        """The class whose method this is."""
        return self.outer if isinstance(self.outer, Class) else None

    def param(self, name: str) -> Param | None:
        """The parameter called ``name``."""
        for param in self.params:
            if param.name == name:
                return param
        return None

    @property
    def is_static(self) -> bool:
        """Whether it is a static method."""
        return any(isinstance(d, Name) and d.id == "staticmethod" for d in self.decorators)

    @property
    def is_classmethod(self) -> bool:
        """Whether it is a class method."""
        return any(isinstance(d, Name) and d.id == "classmethod" for d in self.decorators)

    @property
    def is_property(self) -> bool:
        """Whether reading it calls it (``property``, ``cached_property``)."""
        for decorator in self.decorators:
            name = decorator.name if isinstance(decorator, Attr) else getattr(decorator, "id", "")
            if name.endswith("property"):
                return True
        return False

    @property
    def is_generator(self) -> bool:
        """Whether calling it gives a generator."""
        return bool(self.yields)

    @property
    def self_name(self) -> str | None:
        """The name of its instance parameter, for a method that has one."""
        if self.cls is None or self.is_static or self.is_classmethod or not self.params:
            return None
        first = self.params[0]
        return first.name if first.kind in {"positional", "positional_only"} else None


class Class(Scope):
    """A class."""

    __slots__ = ("bases", "decorators", "keywords")
    kind = "class"
    bases: list[Expr]
    keywords: list[Arg]
    decorators: list[Expr]

    def method(self, name: str) -> Function | None:
        """The method ``name`` defined in this class body (the last one, as Python has it)."""
        for binding in reversed(self.bindings.get(name, ())):
            if binding.how == "def":
                function: Function = binding.payload
                return function
        return None

    @property
    def methods(self) -> list[Function]:
        """Every function defined in this class body."""
        return [
            binding.payload
            for bindings in self.bindings.values()
            for binding in bindings
            if binding.how == "def"
        ]


class ModuleFacts(Scope):
    """The facts of one file."""

    __slots__ = ("all_calls", "classes", "functions", "star_imports")
    kind = "module"
    functions: list[Function]
    """Every function and method, nested ones too, in reading order."""
    classes: list[Class]
    all_calls: list[Call]
    star_imports: list[tuple[str, int]]
    """``from X import *``: dotted name and level."""

    @property
    def scopes(self) -> Iterator[Scope]:
        """The module, its functions and its classes."""
        yield self
        yield from self.functions
        yield from self.classes


# --------------------------------------------------------------------------- walking


def children(node: Expr) -> Iterator[Expr]:
    """The direct sub-expressions."""
    for value in (getattr(node, slot, None) for slot in _CHILD_SLOTS.get(type(node), ())):
        if isinstance(value, Expr):
            yield value
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Expr):
                    yield item
                elif isinstance(item, Arg):
                    yield item.value
                elif isinstance(item, tuple):
                    yield from (part for part in item if isinstance(part, Expr))


_CHILD_SLOTS: dict[type[Expr], tuple[str, ...]] = {
    Attr: ("value",),
    Call: ("func", "args"),
    Seq: ("items",),
    Map: ("items",),
    Index: ("value", "key"),
    Choice: ("test", "options"),
    Bin: ("left", "right"),
    Unary: ("operand",),
    Compare: ("left", "rights"),
    Comp: ("elements", "iters", "tests"),
    Yield: ("value",),
    Other: ("parts",),
}


def walk(node: Expr) -> Iterator[Expr]:
    """The expression and everything inside it, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(children(current))))


def expressions(stmt: Stmt) -> Iterator[Expr]:
    """The expressions of the statement itself, not of the statements inside it."""
    if isinstance(stmt, Assign):
        yield from stmt.targets
        yield stmt.value
    elif isinstance(stmt, AugAssign):
        yield stmt.target
        yield stmt.value
    elif isinstance(stmt, ExprStmt):
        yield stmt.value
    elif isinstance(stmt, (Return, Raise)):
        if stmt.value is not None:
            yield stmt.value
    elif isinstance(stmt, Simple):
        yield from stmt.parts
    elif isinstance(stmt, For):
        yield stmt.target
        yield stmt.iter
    elif isinstance(stmt, (While, If)):
        yield stmt.test
    elif isinstance(stmt, With):
        for expr, target in stmt.items:
            yield expr
            if target is not None:
                yield target
    elif isinstance(stmt, Try):
        for kind, _ in stmt.handlers:
            if kind is not None:
                yield kind
    elif isinstance(stmt, Define):
        yield from stmt.decorators


def blocks(stmt: Stmt) -> Iterator[list[Stmt]]:
    """The statement lists inside a compound statement, not those of a new scope."""
    if isinstance(stmt, (For, While, If)):
        yield stmt.body
        yield stmt.orelse
    elif isinstance(stmt, With):
        yield stmt.body
    elif isinstance(stmt, Try):
        yield stmt.body
        for _, body in stmt.handlers:
            yield body
        yield stmt.orelse
        yield stmt.final


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement of a body in reading order, inside compounds too, not in new scopes."""
    for stmt in body:
        yield stmt
        for block in blocks(stmt):
            yield from statements(block)


def dotted(expr: Expr | None) -> str | None:
    """``a.b.c`` as written, or None if the expression is anything else."""
    parts: list[str] = []
    while isinstance(expr, Attr):
        parts.append(expr.name)
        expr = expr.value
    if not isinstance(expr, Name):
        return None
    parts.append(expr.id)
    return ".".join(reversed(parts))


def last_name(expr: Expr) -> str | None:
    """The last name of what is called or derived from: ``C`` in ``C``, ``a.C``, ``a.C[int]``."""
    if isinstance(expr, Index):
        expr = expr.value
    if isinstance(expr, Attr):
        return expr.name
    return expr.id if isinstance(expr, Name) else None


def same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are spelled alike (names, attributes, literals, calls, …)."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Name):
        return a.id == b.id  # type: ignore[attr-defined]
    if isinstance(a, Attr) and a.name != b.name:  # type: ignore[attr-defined]
        return False
    if isinstance(a, Const):
        return type(a.value) is type(b.value) and a.value == b.value  # type: ignore[attr-defined]
    if isinstance(a, (Bin, Unary)) and a.op != b.op:  # type: ignore[union-attr]
        return False
    if isinstance(a, Call):
        shape = [(arg.keyword, arg.stars) for arg in a.args]
        if shape != [(arg.keyword, arg.stars) for arg in b.args]:  # type: ignore[attr-defined]
            return False
    left, right = list(children(a)), list(children(b))
    if isinstance(a, (Lambda, Comp, Other)):
        return False
    return len(left) == len(right) and all(same(x, y) for x, y in zip(left, right, strict=True))


def unparse(expr: Expr) -> str:
    """The expression as code, for messages; ``…`` where it is not kept."""
    if isinstance(expr, Name):
        return expr.id
    if isinstance(expr, Attr):
        return f"{unparse(expr.value)}.{expr.name}"
    if isinstance(expr, Const):
        return "…" if expr.value is ... else repr(expr.value)
    if isinstance(expr, Call):
        return f"{unparse(expr.func)}({'…' if expr.args else ''})"
    if isinstance(expr, Index):
        return f"{unparse(expr.value)}[{unparse(expr.key)}]"
    if isinstance(expr, Bin) and expr.op in _OPERATORS:
        return f"{unparse(expr.left)} {_OPERATORS[expr.op]} {unparse(expr.right)}"
    return "…"


_OPERATORS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**",
}  # fmt: skip

# --------------------------------------------------------------------------- extraction


class FactsError(Exception):
    """The file is no Python this interpreter can read; ``row`` says where."""

    def __init__(self, reason: str, row: int | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row


def parse(text: str) -> ast.Module:
    """Parse ``text``.

    Raises:
        FactsError: it is no valid Python, or nested too deeply to be read.
    """
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise FactsError(f"is no valid Python: {error.msg}", error.lineno) from None
    except (RecursionError, MemoryError):
        raise FactsError("is nested too deeply to be parsed", None) from None
    except ValueError as error:
        raise FactsError(f"is no valid Python: {error}", None) from None


def extract(tree: ast.Module) -> ModuleFacts:
    """The facts of a parsed file.

    Raises:
        FactsError: it is nested too deeply to be walked.
    """
    try:
        return _Extractor().module(tree)
    except RecursionError:
        raise FactsError("is nested too deeply to be analysed", None) from None


class _Extractor:
    """Walks an ``ast`` once, building nodes and scopes."""

    def __init__(self) -> None:
        self.scope: Scope
        self.facts: ModuleFacts
        self.stmt: Stmt | None = None
        self.order = 0

    # -- scopes

    def module(self, tree: ast.Module) -> ModuleFacts:
        facts = ModuleFacts()
        facts.row, facts.col, facts.end_row, facts.end_col = 1, 0, 1, 0
        facts.functions, facts.classes, facts.all_calls = [], [], []
        facts.star_imports = []
        self.facts = facts
        self._open(facts, "", None)
        self.scope = facts
        facts.body = self.block(tree.body, None)
        return facts

    def _open(self, scope: Scope, name: str, outer: Scope | None) -> None:
        scope.name, scope.outer, scope.module = name, outer, self.facts
        scope.define = None
        scope.bindings, scope.declared_global = {}, set()
        scope.stores, scope.calls, scope.reads = [], [], []
        scope.returns, scope.yields, scope.loops = [], [], []
        scope.body = []

    def _inside(self, scope: Scope, body: Callable[[], None]) -> None:
        saved = self.scope, self.stmt
        self.scope, self.stmt = scope, None
        body()
        self.scope, self.stmt = saved

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Function:
        function = _at(Function(), node)
        name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        self._open(function, name, self.scope)
        function.is_async = isinstance(node, ast.AsyncFunctionDef)
        function.decorators = []
        function.params = self.params(node.args)
        self.facts.functions.append(function)

        def body() -> None:
            for param in function.params:
                self.bind(Binding(param.name, "param", None, payload=param))
            if isinstance(node, ast.Lambda):
                result = _at(Return(), node.body)
                self._place(result, function.body, None)
                self.stmt = result
                result.value = self.expr(node.body)
                result.last_order = self.order
                function.body.append(result)
                function.returns.append(result)
            else:
                function.body = self.block(node.body, None)

        self._inside(function, body)
        return function

    def params(self, args: ast.arguments) -> list[Param]:
        out: list[Param] = []
        positional = [(a, "positional_only") for a in args.posonlyargs]
        positional += [(a, "positional") for a in args.args]
        missing = len(positional) - len(args.defaults)
        for number, (arg, kind) in enumerate(positional):
            default = args.defaults[number - missing] if number >= missing else None
            out.append(self.param(arg, kind, default))
        if args.vararg:
            out.append(self.param(args.vararg, "vararg", None))
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            out.append(self.param(arg, "keyword_only", default))
        if args.kwarg:
            out.append(self.param(args.kwarg, "kwarg", None))
        return out

    def param(self, arg: ast.arg, kind: str, default: ast.expr | None) -> Param:
        return Param(
            arg.arg,
            kind,
            self.expr(default) if default is not None else None,
            self.expr(arg.annotation) if arg.annotation is not None else None,
            _at(Node(), arg),
        )

    def class_(self, node: ast.ClassDef) -> Class:
        cls = _at(Class(), node)
        self._open(cls, node.name, self.scope)
        cls.bases = [self.expr(base) for base in node.bases]
        cls.keywords = [Arg(self.expr(k.value), k.arg, 0 if k.arg else 2) for k in node.keywords]
        cls.decorators = []
        self.facts.classes.append(cls)

        def body() -> None:
            cls.body = self.block(node.body, None)

        self._inside(cls, body)
        return cls

    def bind(self, binding: Binding) -> None:
        scope: Scope = self.scope
        if binding.name in scope.declared_global:
            scope = self.facts
        scope.bindings.setdefault(binding.name, []).append(binding)

    # -- statements

    def block(self, body: list[ast.stmt], parent: Stmt | None) -> list[Stmt]:
        out: list[Stmt] = []
        for node in body:
            handler = _STATEMENTS.get(type(node))
            if handler is None:
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            stmt = handler(self, node, out, parent)
            stmt.last_order = self.order
        return out

    def _place(self, stmt: Stmt, block: list[Stmt], parent: Stmt | None) -> None:
        self.order += 1
        stmt.order = stmt.last_order = self.order
        stmt.scope, stmt.block, stmt.parent = self.scope, block, parent

    def _new(self, kind: type[Any], node: ast.stmt, block: list[Stmt], parent: Stmt | None) -> Any:
        stmt = _at(kind(), node)
        self._place(stmt, block, parent)
        block.append(stmt)
        self.stmt = stmt
        return stmt

    def assign(self, node: ast.Assign, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: Assign = self._new(Assign, node, block, parent)
        stmt.value = self.expr(node.value)
        stmt.targets = [self.target(target, stmt.value, "assign") for target in node.targets]
        return stmt

    def ann_assign(self, node: ast.AnnAssign, block: list[Stmt], parent: Stmt | None) -> Stmt:
        if node.value is None:
            declare: Declare = self._new(Declare, node, block, parent)
            declare.annotation = self.expr(node.annotation)
            declare.target = self.expr(node.target)
            if isinstance(declare.target, Name) and isinstance(self.scope, Class):
                self.bind(Binding(declare.target.id, "opaque", declare))
            return declare
        stmt: Assign = self._new(Assign, node, block, parent)
        stmt.value = self.expr(node.value)
        stmt.targets = [self.target(node.target, stmt.value, "assign")]
        return stmt

    def aug_assign(self, node: ast.AugAssign, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: AugAssign = self._new(AugAssign, node, block, parent)
        stmt.value = self.expr(node.value)
        stmt.op = type(node.op).__name__
        stmt.target = self.target(node.target, stmt.value, "aug")
        return stmt

    def target(
        self, node: ast.expr, value: Expr | None, how: str, path: tuple[int, ...] = ()
    ) -> Expr:
        assert self.stmt is not None
        if isinstance(node, ast.Name):
            self.bind(Binding(node.id, how, self.stmt, value, path))
            return self.expr(node)
        if isinstance(node, (ast.Tuple, ast.List)):
            seq = _at(Seq(), node)
            seq.kind, seq.scope = "tuple", self.scope
            seq.items = []
            starred = False
            for number, item in enumerate(node.elts):
                if isinstance(item, ast.Starred):
                    starred = True
                    seq.items.append(self.target(item.value, None, "opaque"))
                elif starred:
                    back = number - len(node.elts)
                    seq.items.append(self.target(item, value, how, (*path, back)))
                else:
                    seq.items.append(self.target(item, value, how, (*path, number)))
            return seq
        expr = self.expr(node, store=True)
        if isinstance(expr, (Attr, Index)):
            self.scope.stores.append(Store(expr, self.stmt, self.scope, how, value, path))
        return expr

    def expr_stmt(self, node: ast.Expr, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: ExprStmt = self._new(ExprStmt, node, block, parent)
        stmt.value = self.expr(node.value)
        return stmt

    def return_(self, node: ast.Return, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: Return = self._new(Return, node, block, parent)
        stmt.value = self.expr(node.value) if node.value is not None else None
        self.scope.returns.append(stmt)
        return stmt

    def raise_(self, node: ast.Raise, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: Raise = self._new(Raise, node, block, parent)
        stmt.value = self.expr(node.exc) if node.exc is not None else None
        return stmt

    def simple(self, node: ast.stmt, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: Simple = self._new(Simple, node, block, parent)
        stmt.kind = type(node).__name__.lower()
        stmt.names = list(getattr(node, "names", ()))
        stmt.parts = []
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            if isinstance(node, ast.Global):
                self.scope.declared_global.update(node.names)
        elif isinstance(node, ast.Delete):
            stmt.parts = [self.expr(target, store=True) for target in node.targets]
        elif isinstance(node, ast.Assert):
            stmt.parts = [self.expr(node.test)]
        return stmt

    def for_(self, node: ast.For | ast.AsyncFor, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: For = self._new(For, node, block, parent)
        stmt.iter = self.expr(node.iter)
        stmt.target = self.target(node.target, stmt.iter, "element")
        self.scope.loops.append(stmt)
        stmt.body = self.block(node.body, stmt)
        stmt.orelse = self.block(node.orelse, stmt)
        return stmt

    def while_(self, node: ast.While, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: While = self._new(While, node, block, parent)
        stmt.test = self.expr(node.test)
        self.scope.loops.append(stmt)
        stmt.body = self.block(node.body, stmt)
        stmt.orelse = self.block(node.orelse, stmt)
        return stmt

    def if_(self, node: ast.If, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: If = self._new(If, node, block, parent)
        stmt.test = self.expr(node.test)
        stmt.body = self.block(node.body, stmt)
        stmt.orelse = self.block(node.orelse, stmt)
        return stmt

    def match(self, node: Any, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: If = self._new(If, node, block, parent)
        stmt.test = self.expr(node.subject)
        stmt.body, stmt.orelse = [], []
        for case in node.cases:
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self.stmt = stmt
                    self.bind(Binding(name, "opaque", stmt))
            inner: If = _at(If(), node)
            inner.end_row, inner.end_col = stmt.end_row, stmt.end_col
            self._place(inner, stmt.body, stmt)
            self.stmt = inner
            inner.test = self.expr(case.guard) if case.guard is not None else stmt.test
            inner.orelse = []
            inner.body = self.block(case.body, inner)
            inner.last_order = self.order
            stmt.body.append(inner)
        return stmt

    def with_(self, node: ast.With | ast.AsyncWith, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: With = self._new(With, node, block, parent)
        stmt.items = []
        for item in node.items:
            context = self.expr(item.context_expr)
            target = None
            if item.optional_vars is not None:
                target = self.target(item.optional_vars, context, "enter")
            stmt.items.append((context, target))
        stmt.body = self.block(node.body, stmt)
        return stmt

    def try_(self, node: Any, block: list[Stmt], parent: Stmt | None) -> Stmt:
        stmt: Try = self._new(Try, node, block, parent)
        stmt.body = self.block(node.body, stmt)
        stmt.handlers = []
        for handler in node.handlers:
            self.stmt = stmt
            kind = self.expr(handler.type) if handler.type is not None else None
            if handler.name:
                self.bind(Binding(handler.name, "opaque", stmt))
            stmt.handlers.append((kind, self.block(handler.body, stmt)))
        stmt.orelse = self.block(node.orelse, stmt)
        stmt.final = self.block(node.finalbody, stmt)
        return stmt

    def import_(
        self, node: ast.Import | ast.ImportFrom, block: list[Stmt], parent: Stmt | None
    ) -> Stmt:
        stmt: Import = self._new(Import, node, block, parent)
        stmt.stars = []
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    payload = (alias.name, None, 0)
                    self.bind(Binding(alias.asname, "import", stmt, payload=payload))
                else:
                    top = alias.name.split(".")[0]
                    self.bind(Binding(top, "import", stmt, payload=(top, None, 0)))
            return stmt
        for alias in node.names:
            if alias.name == "*":
                stmt.stars.append((node.module or "", node.level))
                self.facts.star_imports.append((node.module or "", node.level))
            else:
                payload3 = (node.module or "", alias.name, node.level)
                self.bind(Binding(alias.asname or alias.name, "import", stmt, payload=payload3))
        return stmt

    def def_(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
        block: list[Stmt],
        parent: Stmt | None,
    ) -> Stmt:
        stmt: Define = self._new(Define, node, block, parent)
        stmt.decorators = [self.expr(decorator) for decorator in node.decorator_list]
        if isinstance(node, ast.ClassDef):
            stmt.what = self.class_(node)
            how = "class"
        else:
            stmt.what = self.function(node)
            how = "def"
        stmt.what.decorators = stmt.decorators
        stmt.what.define = stmt
        self.stmt = stmt
        self.bind(Binding(node.name, how, stmt, payload=stmt.what))
        return stmt

    # -- expressions

    def expr(self, node: ast.expr, *, store: bool = False) -> Expr:
        kind = type(node)
        if kind is ast.Name:
            name = _at(Name(), node)
            name.id = node.id  # type: ignore[attr-defined]
            name.scope, name.stmt = self.scope, self.stmt
            return name
        if kind is ast.Constant:
            const = _at(Const(), node)
            value = node.value  # type: ignore[attr-defined]
            if isinstance(value, (bytes, complex)) or (
                isinstance(value, str) and len(value) > _LONGEST_STRING
            ):
                value = ...
            const.value = value
            return const
        if kind is ast.Attribute:
            attr = _at(Attr(), node)
            attr.value = self.expr(node.value)  # type: ignore[attr-defined]
            attr.name = node.attr  # type: ignore[attr-defined]
            attr.scope, attr.stmt = self.scope, self.stmt
            if not store:
                self.scope.reads.append(attr)
            return attr
        handler = _EXPRESSIONS.get(kind)
        if handler is not None:
            result: Expr = handler(self, node)
            return result
        other = _at(Other(), node)
        other.parts = [
            self.expr(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
        ]
        return other

    def call(self, node: ast.Call) -> Expr:
        call = _at(Call(), node)
        call.scope, call.stmt = self.scope, self.stmt
        self.scope.calls.append(call)
        self.facts.all_calls.append(call)
        call.func = self.expr(node.func)
        call.args = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                call.args.append(Arg(self.expr(arg.value), None, 1))
            else:
                call.args.append(Arg(self.expr(arg), None, 0))
        for keyword in node.keywords:
            stars = 0 if keyword.arg else 2
            call.args.append(Arg(self.expr(keyword.value), keyword.arg, stars))
        return call

    def seq(self, node: ast.Tuple | ast.List | ast.Set) -> Expr:
        seq = _at(Seq(), node)
        seq.kind, seq.scope = type(node).__name__.lower(), self.scope
        seq.items = [self.expr(item) for item in node.elts]
        return seq

    def map(self, node: ast.Dict) -> Expr:
        mapping = _at(Map(), node)
        mapping.scope = self.scope
        mapping.items = [
            (self.expr(key) if key is not None else None, self.expr(value))
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return mapping

    def index(self, node: ast.Subscript) -> Expr:
        index = _at(Index(), node)
        index.value = self.expr(node.value)
        index.key = self.expr(node.slice)
        return index

    def ternary(self, node: ast.IfExp) -> Expr:
        choice = _at(Choice(), node)
        choice.kind = "if"
        choice.test = self.expr(node.test)
        choice.options = [self.expr(node.body), self.expr(node.orelse)]
        return choice

    def bool_op(self, node: ast.BoolOp) -> Expr:
        choice = _at(Choice(), node)
        choice.kind = "or" if isinstance(node.op, ast.Or) else "and"
        choice.test = None
        choice.options = [self.expr(value) for value in node.values]
        return choice

    def bin_op(self, node: ast.BinOp) -> Expr:
        # A long chain "a + b + …" leans to the left; walk it without recursion.
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        left = self.expr(chain[-1].left)
        for part in reversed(chain):
            bin_op = _at(Bin(), part)
            bin_op.op = type(part.op).__name__
            bin_op.left = left
            bin_op.right = self.expr(part.right)
            left = bin_op
        return left

    def unary(self, node: ast.UnaryOp) -> Expr:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            if isinstance(value, (int, float)):
                const = _at(Const(), node)
                const.value = -value
                return const
        unary = _at(Unary(), node)
        unary.op = type(node.op).__name__
        unary.operand = self.expr(node.operand)
        return unary

    def compare(self, node: ast.Compare) -> Expr:
        compare = _at(Compare(), node)
        compare.left = self.expr(node.left)
        compare.ops = [type(op).__name__ for op in node.ops]
        compare.rights = [self.expr(right) for right in node.comparators]
        return compare

    def comp(self, node: Any) -> Expr:
        comp = _at(Comp(), node)
        comp.kind = type(node).__name__
        comp.iters, comp.tests = [], []
        for generator in node.generators:
            source = self.expr(generator.iter)
            comp.iters.append(source)
            if self.stmt is not None:
                self.target(generator.target, source, "element")
            comp.tests.extend(self.expr(test) for test in generator.ifs)
        if isinstance(node, ast.DictComp):
            comp.elements = [self.expr(node.key), self.expr(node.value)]
        else:
            comp.elements = [self.expr(node.elt)]
        return comp

    def yield_(self, node: ast.Yield | ast.YieldFrom) -> Expr:
        out = _at(Yield(), node)
        out.value = self.expr(node.value) if node.value is not None else None
        out.delegates = isinstance(node, ast.YieldFrom)
        self.scope.yields.append(out)
        return out

    def lambda_(self, node: ast.Lambda) -> Expr:
        out = _at(Lambda(), node)
        out.function = self.function(node)
        return out

    def walrus(self, node: ast.NamedExpr) -> Expr:
        value = self.expr(node.value)
        if self.stmt is not None:
            self.target(node.target, value, "assign")
        return value

    def through(self, node: ast.Await | ast.Starred) -> Expr:
        if isinstance(node, ast.Await):
            return self.expr(node.value)
        other = _at(Other(), node)
        other.parts = [self.expr(node.value)]
        return other


def _at(new: Any, node: Any) -> Any:
    new.row, new.col = node.lineno, node.col_offset
    new.end_row, new.end_col = node.end_lineno, node.end_col_offset
    return new


_STATEMENTS: dict[type[ast.stmt], Callable[..., Stmt]] = {
    ast.Assign: _Extractor.assign,
    ast.AnnAssign: _Extractor.ann_assign,
    ast.AugAssign: _Extractor.aug_assign,
    ast.Expr: _Extractor.expr_stmt,
    ast.Return: _Extractor.return_,
    ast.Raise: _Extractor.raise_,
    ast.For: _Extractor.for_,
    ast.AsyncFor: _Extractor.for_,
    ast.While: _Extractor.while_,
    ast.If: _Extractor.if_,
    ast.With: _Extractor.with_,
    ast.AsyncWith: _Extractor.with_,
    ast.Try: _Extractor.try_,
    ast.Import: _Extractor.import_,
    ast.ImportFrom: _Extractor.import_,
    ast.FunctionDef: _Extractor.def_,
    ast.AsyncFunctionDef: _Extractor.def_,
    ast.ClassDef: _Extractor.def_,
    ast.Pass: _Extractor.simple,
    ast.Break: _Extractor.simple,
    ast.Continue: _Extractor.simple,
    ast.Global: _Extractor.simple,
    ast.Nonlocal: _Extractor.simple,
    ast.Delete: _Extractor.simple,
    ast.Assert: _Extractor.simple,
    ast.Match: _Extractor.match,
}
if hasattr(ast, "TryStar"):
    _STATEMENTS[ast.TryStar] = _Extractor.try_

_EXPRESSIONS: dict[type[ast.expr], Callable[..., Expr]] = {
    ast.Call: _Extractor.call,
    ast.Tuple: _Extractor.seq,
    ast.List: _Extractor.seq,
    ast.Set: _Extractor.seq,
    ast.Dict: _Extractor.map,
    ast.Subscript: _Extractor.index,
    ast.IfExp: _Extractor.ternary,
    ast.BoolOp: _Extractor.bool_op,
    ast.BinOp: _Extractor.bin_op,
    ast.UnaryOp: _Extractor.unary,
    ast.Compare: _Extractor.compare,
    ast.ListComp: _Extractor.comp,
    ast.SetComp: _Extractor.comp,
    ast.DictComp: _Extractor.comp,
    ast.GeneratorExp: _Extractor.comp,
    ast.Yield: _Extractor.yield_,
    ast.YieldFrom: _Extractor.yield_,
    ast.Lambda: _Extractor.lambda_,
    ast.NamedExpr: _Extractor.walrus,
    ast.Await: _Extractor.through,
    ast.Starred: _Extractor.through,
}
