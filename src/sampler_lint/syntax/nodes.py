"""Facts of one file: a small, typed copy of its syntax, with scopes and what each binds.

Made from the standard library's ``ast`` (so that flake8's own tree can be used) and smaller
than it by more than half in memory: docstrings, long strings and formatting are dropped, and
spellings that mean the same become one node (``x if c else y`` and ``c and x or y`` are both a
:class:`Choice`). Positions are those of ``ast``: 1-based rows, 0-based columns in UTF-8 bytes.

No rule is known here, and no other file is read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from sampler_lint.syntax.slotted import slotted

_AnyNode = TypeVar("_AnyNode", bound="Node")


@slotted
class Node:
    """Anything with a place in the file."""

    row: int
    col: int
    end_row: int
    end_col: int
    children: tuple[str, ...] = ()

    @classmethod
    def at(cls: type[_AnyNode], other: Node) -> _AnyNode:
        """A new one that stands where another does."""
        made = cls()
        made.row, made.col = other.row, other.col
        made.end_row, made.end_col = other.end_row, other.end_col
        return made

    def __repr__(self) -> str:
        names = sorted({*vars(type(self))["__slots__"]} - {"scope", "stmt", "parent"})
        inner = ", ".join(f"{name}={getattr(self, name, None)!r}" for name in names)
        return f"{type(self).__name__}({inner})"


# --------------------------------------------------------------------------- expressions


@slotted
class Expr(Node):
    """An expression."""


@slotted
class Name(Expr):
    """A name that is read; ``stmt`` and ``scope`` say where."""

    id: str
    scope: Scope
    stmt: Stmt | None


@slotted
class Attr(Expr):
    """``value.name``."""

    value: Expr
    name: str
    scope: Scope
    stmt: Stmt | None


@dataclass(slots=True, eq=False, repr=False)
class Arg:
    """One argument of a call: positional, ``name=``, ``*value`` or ``**value``."""

    value: Expr
    keyword: str | None
    stars: int


@slotted
class Call(Expr):
    """``func(args)``, with the statement and scope it stands in."""

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
        return positional(self.args)

    @property
    def has_star(self) -> bool:
        """Whether ``*args`` is passed."""
        return any(arg.stars == 1 for arg in self.args)

    @property
    def has_double_star(self) -> bool:
        """Whether ``**kwargs`` is passed."""
        return any(arg.stars == 2 for arg in self.args)


@slotted
class Const(Expr):
    """A literal. Strings over a length that no name has, and bytes, have ``...`` as value."""

    value: Any


@slotted
class Seq(Expr):
    """A tuple, list or set display."""

    kind: str
    items: list[Expr]
    scope: Scope


class Nth(int):
    """Which of several targets, counted from the back after a starred one.

    ``a, b = value`` takes no tuple apart that has three parts.
    """

    targets: int
    starred: bool

    def __new__(cls, place: int, targets: int, starred: bool) -> Nth:  # noqa: D102 - as of int
        nth = super().__new__(cls, place)
        nth.targets, nth.starred = targets, starred
        return nth

    def may_be_of(self, value: object) -> bool:
        """Whether the value may have as many parts as there are targets."""
        if not isinstance(value, Seq) or value.kind != "tuple":
            return True
        size = len(value.items)
        if any(isinstance(item, Other) for item in value.items):  # starred, perhaps
            return True
        return size >= self.targets - 1 if self.starred else size == self.targets


@slotted
class Map(Expr):
    """A dict display; a key of None stands for ``**value``."""

    items: list[tuple[Expr | None, Expr]]
    scope: Scope


@slotted
class Index(Expr):
    """``value[key]``."""

    value: Expr
    key: Expr


@slotted
class Choice(Expr):
    """One of several values: ``if`` (a ternary, with its test), ``or``, ``and``."""

    kind: str
    test: Expr | None
    options: list[Expr]


@slotted
class Bin(Expr):
    """``left op right``; ``op`` is the ``ast`` class name (``FloorDiv``)."""

    op: str
    left: Expr
    right: Expr


@slotted
class Unary(Expr):
    """``op operand``."""

    op: str
    operand: Expr


@slotted
class Compare(Expr):
    """``left op right …``."""

    left: Expr
    ops: list[str]
    rights: list[Expr]


@slotted
class Comp(Expr):
    """A comprehension; its variables are bound in the enclosing scope, ``within`` it."""

    kind: str
    elements: list[Expr]
    iters: list[Expr]
    tests: list[Expr]
    table: Map | None
    """Of a dict: the display of one of its entries."""
    scope: Scope


@slotted
class Yield(Expr):
    """``yield value`` or ``yield from value``."""

    value: Expr | None
    delegates: bool


@slotted
class Lambda(Expr):
    """A lambda; ``function`` has its parameters and its body as one return."""

    function: Function


@slotted
class Other(Expr):
    """Any expression that carries no sampler: slices, awaits, …"""

    parts: list[Expr]


@slotted
class Text(Other):
    """An f-string."""


# --------------------------------------------------------------------------- statements


@slotted
class Stmt(Node):
    """A statement; ``order``/``last_order`` number it and its inside in reading order."""

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


@slotted
class Assign(Stmt):
    """``targets = value``; an annotated assignment too."""

    targets: list[Expr]
    value: Expr


@slotted
class Declare(Stmt):
    """``target: annotation`` without a value."""

    target: Expr
    annotation: Expr


@slotted
class AugAssign(Stmt):
    """``target op= value``."""

    target: Expr
    op: str
    value: Expr


@slotted
class ExprStmt(Stmt):
    """An expression as a statement."""

    value: Expr


@slotted
class Return(Stmt):
    """``return value``."""

    value: Expr | None


@slotted
class Raise(Stmt):
    """``raise value``."""

    value: Expr | None


@slotted
class Simple(Stmt):
    """``pass``, ``break``, ``continue``, ``global``, ``nonlocal``, ``del``, ``assert``."""

    kind: str
    names: list[str]
    parts: list[Expr]

    @property
    def is_jump(self) -> bool:
        """Whether what follows it in its block is not reached."""
        return self.kind in {"break", "continue"}


@slotted
class For(Stmt):
    """A ``for`` loop."""

    target: Expr
    iter: Expr
    body: list[Stmt]
    orelse: list[Stmt]


@slotted
class While(Stmt):
    """A ``while`` loop."""

    test: Expr
    body: list[Stmt]
    orelse: list[Stmt]


@slotted
class If(Stmt):
    """An ``if``; ``elif`` is an ``If`` in ``orelse``. ``match`` is one with several bodies."""

    test: Expr
    body: list[Stmt]
    orelse: list[Stmt]


@slotted
class With(Stmt):
    """A ``with`` block."""

    items: list[tuple[Expr, Expr | None]]
    body: list[Stmt]


@slotted
class Try(Stmt):
    """A ``try``; handlers are (exception type, body)."""

    body: list[Stmt]
    handlers: list[tuple[Expr | None, list[Stmt]]]
    orelse: list[Stmt]
    final: list[Stmt]


@slotted
class Import(Stmt):
    """``import`` and ``from … import``; each bound name is in the scope's bindings."""

    stars: list[tuple[str, int]]


@slotted
class Define(Stmt):
    """``def`` or ``class``; ``what`` is the new scope."""

    what: Function | Class
    decorators: list[Expr]


Loop: TypeAlias = "For | While"

# --------------------------------------------------------------------------- scopes


class Imported(NamedTuple):
    """What an import names: ``from name import attribute``, or ``import name``."""

    name: str
    attribute: str | None
    """None for a whole module, and for ``*``."""
    level: int
    """The dots before the name."""

    @property
    def whole(self) -> str:
        """The dotted name, if what is imported is a module."""
        return ".".join(part for part in (self.name, self.attribute) if part)


How: TypeAlias = Literal[
    "assign", "element", "enter", "param", "def", "class", "import", "aug", "opaque"
]
Payload: TypeAlias = "Param | Function | Class | Imported | None"


@dataclass(slots=True, eq=False, repr=False)
class Binding:
    """One way a name gets a value in a scope.

    ``how``: ``assign`` (from ``value``), ``element`` (an item of iterating ``value``),
    ``enter`` (``with value as name``), ``param``, ``def``, ``class``, ``import``, ``aug``,
    ``opaque`` (``del``, ``except … as``, a pattern).
    ``path`` says which part of the value: ``(0, 1)`` is ``(_, name), … = value``. ``payload`` is
    what is bound; ``within`` the comprehension whose variable it is: nothing outside reads that.
    """

    name: str
    how: How
    stmt: Stmt | None
    value: Expr | None = None
    path: tuple[int, ...] = ()
    payload: Payload = None
    within: Comp | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the name is a parameter, or is assigned."""
        return self.how in {"assign", "param"}


@dataclass(slots=True, eq=False, repr=False)
class Store:
    """``target.attr = value`` or ``target[key] = value``."""

    target: Attr | Index
    stmt: Stmt
    scope: Scope
    how: How
    value: Expr | None
    path: tuple[int, ...]


@slotted
class Scope(Node):
    """A module, class or function body."""

    kind = "scope"
    name: str
    outer: Scope | None
    module: ModuleFacts
    define: Define | None
    body: list[Stmt]
    bindings: dict[str, list[Binding]]
    declared: dict[str, Scope]
    """Names that ``global`` and ``nonlocal`` give to another scope."""
    stores: list[Store]
    calls: list[Call]
    reads: list[Attr]
    """Attribute reads, in reading order."""
    returns: list[Return]
    yields: list[Yield]
    loops: list[Loop]
    iterated: list[tuple[Expr, Stmt]]
    """What ``for``, comprehensions, ``yield from`` and ``iter()`` iterate over, and where."""
    _called: frozenset[str]
    _calls_by_order: list[tuple[int, int]]
    _stores_by_order: list[tuple[int, int]]

    @property
    def called(self) -> frozenset[str]:
        """The last names of what the scope itself calls."""
        known: frozenset[str] | None = getattr(self, "_called", None)
        if known is None:
            names = (last_name(call.func) for call in self.calls)
            known = self._called = frozenset(name for name in names if name is not None)
        return known

    def calls_in(self, stmt: Stmt) -> list[Call]:
        """The scope's own calls in a statement and in those inside it."""
        known: list[tuple[int, int]] | None = getattr(self, "_calls_by_order", None)
        if known is None:
            known = self._calls_by_order = self._by_order(call.stmt for call in self.calls)
        return [self.calls[index] for index in self._enclosed(known, stmt)]

    def stores_in(self, stmt: Stmt) -> list[Store]:
        """The scope's own stores in a statement and in those inside it."""
        known: list[tuple[int, int]] | None = getattr(self, "_stores_by_order", None)
        if known is None:
            known = self._stores_by_order = self._by_order(store.stmt for store in self.stores)
        return [self.stores[index] for index in self._enclosed(known, stmt)]

    def _by_order(self, stmts: Iterable[Stmt | None]) -> list[tuple[int, int]]:
        """The orders of the scope's own statements among some, each with its place there."""
        return sorted(
            (stmt.order, index)
            for index, stmt in enumerate(stmts)
            if stmt is not None and stmt.scope is self
        )

    def _enclosed(self, by_order: list[tuple[int, int]], stmt: Stmt) -> list[int]:
        """The places of those that ``stmt`` encloses."""
        if stmt.scope is not self:
            return []
        first = bisect_left(by_order, (stmt.order, -1))
        last = bisect_left(by_order, (stmt.last_order + 1, -1))
        return sorted(index for _, index in by_order[first:last])

    def outward(self) -> Iterator[Scope]:
        """The scope and those around it, innermost first, the module last."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    @property
    def qualname(self) -> str:
        """Dotted name within the module."""
        return ".".join(reversed([scope.name for scope in self.outward() if scope.outer]))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.qualname or '<module>'}>"


@dataclass(slots=True, eq=False, repr=False)
class Param:
    """A parameter.

    ``kind`` is ``positional_only``, ``positional``, ``vararg``, ``keyword_only`` or ``kwarg``.
    """

    name: str
    kind: str
    default: Expr | None
    annotation: Expr | None
    node: Node

    @property
    def is_positional(self) -> bool:
        """Whether one argument may be given for it by place."""
        return self.kind in {"positional", "positional_only"}

    @property
    def is_star(self) -> bool:
        """Whether it takes any number of arguments."""
        return self.kind in {"vararg", "kwarg"}


@slotted
class Function(Scope):
    """A function, method or lambda."""

    kind = "function"
    params: list[Param]
    decorators: list[Expr]
    _self_name: str | None

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
    def is_bound(self) -> bool:
        """Whether calling it passes its first parameter (the instance or the class) by itself."""
        return self.cls is not None and not self.is_static

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
        try:
            return self._self_name
        except AttributeError:  # asked of each name that a method reads
            is_made = self.cls is None or self.is_static or self.is_classmethod
            first = None if is_made or not self.params else self.params[0]
            self._self_name = first.name if first and first.is_positional else None
            return self._self_name


@slotted
class Class(Scope):
    """A class."""

    kind = "class"
    bases: list[Expr]
    keywords: list[Arg]
    decorators: list[Expr]

    def method(self, name: str) -> Function | None:
        """The method ``name`` defined in this class body: the last one that is no setter."""
        for binding in reversed(self.bindings.get(name, ())):
            found = binding.payload
            if isinstance(found, Function) and "setter" not in map(last_name, found.decorators):
                return found
        return None

    @property
    def makes_up_attributes(self) -> bool:
        """Whether it has an answer for attributes that nothing sets."""
        return not self.bindings.keys().isdisjoint(("__getattr__", "__getattribute__"))

    @property
    def methods(self) -> list[Function]:
        """Every function defined in this class body."""
        return [
            binding.payload
            for bindings in self.bindings.values()
            for binding in bindings
            if isinstance(binding.payload, Function)
        ]


@slotted
class ModuleFacts(Scope):
    """The facts of one file."""

    kind = "module"
    functions: list[Function]
    """Every function and method, nested ones too, in reading order."""
    classes: list[Class]
    all_calls: list[Call]
    slices: list[Index]
    """Every ``x[first:…]``, in no order."""
    _inside: dict[Scope, list[Function]]
    _imports: list[tuple[str, Imported]]
    _stores_by_name: dict[str, list[Store]]
    star_imports: list[tuple[str, int]]
    """``from X import *``: dotted name and level."""
    memo: dict[object, Any]
    """Answers about this file alone that query modules keep."""
    made: list[Node]
    """All nodes, in the order in which they were made; empty where nobody asked for that."""

    @property
    def scopes(self) -> Iterator[Scope]:
        """The module, its functions and its classes."""
        yield self
        yield from self.functions
        yield from self.classes

    @property
    def imports(self) -> list[tuple[str, Imported]]:
        """What is imported by name in any scope, and the name that it has there."""
        known: list[tuple[str, Imported]] | None = getattr(self, "_imports", None)
        if known is None:
            # Several questions are asked of them, and few of a file's names are imported.
            known = self._imports = [
                (name, binding.payload)
                for scope in self.scopes
                for name, bindings in scope.bindings.items()
                for binding in bindings
                if isinstance(binding.payload, Imported)
            ]
        return known

    def inside(self, scope: Class | Function) -> list[Function]:
        """The functions in a class or function of this file, nested ones too, in reading order."""
        by_scope: dict[Scope, list[Function]] | None = getattr(self, "_inside", None)
        if by_scope is None:
            # One pass for all scopes: a pass for each would be quadratic in a long file.
            by_scope = self._inside = {}
            for function in self.functions:
                for outer in islice(function.outward(), 1, None):
                    by_scope.setdefault(outer, []).append(function)
        return by_scope.get(scope, [])

    @property
    def stores_by_name(self) -> dict[str, list[Store]]:
        """What is stored in attributes in any scope, by the attribute's name."""
        known: dict[str, list[Store]] | None = getattr(self, "_stores_by_name", None)
        if known is None:
            known = self._stores_by_name = {}
            for scope in self.scopes:
                for store in scope.stores:
                    if isinstance(store.target, Attr):
                        known.setdefault(store.target.name, []).append(store)
        return known


@slotted
class PartOfFacts(ModuleFacts):
    """The facts of one file with fewer functions, classes and calls."""

    whole: ModuleFacts

    def __init__(
        self,
        whole: ModuleFacts,
        functions: list[Function],
        classes: list[Class],
        calls: list[Call],
        slices: list[Index],
    ) -> None:
        for cls in type(whole).__mro__:
            for slot in getattr(cls, "__slots__", ()):
                if hasattr(whole, slot) and not slot.startswith("_"):
                    setattr(self, slot, getattr(whole, slot))
        self.whole, self.memo = whole, {}
        self.functions, self.classes, self.all_calls = functions, classes, calls
        self.slices = slices

    @property
    def scopes(self) -> Iterator[Scope]:
        """The module itself, of which it is a part, and what is left in it."""
        yield self.whole
        yield from self.functions
        yield from self.classes


# --------------------------------------------------------------------------- spelling


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


def positional(args: Sequence[Arg]) -> list[Expr]:
    """The positional ones of arguments, before the first ``*star``."""
    found: list[Expr] = []
    for arg in args:
        if arg.stars == 1:
            break
        if arg.keyword is None and not arg.stars:
            found.append(arg.value)
    return found


def last_name(expr: Expr) -> str | None:
    """The last name of what is called or derived from: ``C`` in ``C``, ``a.C``, ``a.C[int]``."""
    if isinstance(expr, Name):
        return expr.id
    if isinstance(expr, Attr):
        return expr.name
    return last_name(expr.value) if isinstance(expr, Index) and _is_named(expr.value) else None


def _is_named(expr: Expr) -> bool:
    return isinstance(expr, (Name, Attr))


#: Operators that add up their operands, or divide them, and comparisons that ask which is greater,
#: or whether both are one value, or not.
SUMS = frozenset({"Add", "Sub"})
DIVISIONS = frozenset({"Div", "FloorDiv"})
ORDERED = frozenset({"Lt", "LtE", "Gt", "GtE"})
EQUAL = frozenset({"Eq", "Is"})
UNEQUAL = frozenset({"NotEq", "IsNot"})
