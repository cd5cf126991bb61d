"""The abstract values that flow: constructions, functions, classes, literals, containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import leftmost, same, walk
from sampler_lint.syntax.nodes import (
    Call,
    Class,
    Comp,
    Const,
    Expr,
    Function,
    Map,
    ModuleFacts,
    Name,
    Scope,
    Seq,
)


class Why(Enum):
    """What kind of reason there is not to know a value."""

    CHOSEN = "chosen by who calls it"
    """Outside the tree: the code must be right for every value."""
    UNDEFINED = "defined nowhere"
    """Every base of the class, or the file, is seen, and none of them sets it."""
    FOREIGN = "of a library"
    """Made or set outside the tree, in a way that the catalog does not tell."""
    LOST = "not followed"
    """The analysis gave up: the program may well say it."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing certain can be said; ``reason`` says why, and ``why`` of which kind that is."""

    reason: str
    why: Why = field(default=Why.LOST, compare=False)
    awaits: Function | None = None
    """The function whose callers nobody sees: who calls it chooses the value."""


#: What is found before a limit is reached depends on what was asked first: it is no answer.
TOO_MANY = Unknown("too many values")
TOO_MUCH = Unknown("too much to follow")


@dataclass(frozen=True, slots=True)
class Lit:
    """A literal (None, bool, int, float, str)."""

    value: Any
    kind: str


NONE = Lit(None, "NoneType")


@dataclass(frozen=True, slots=True)
class Ext:
    """A module, class, function or constant outside the tree, by canonical dotted name."""

    dotted: str


@dataclass(frozen=True, slots=True)
class ExtObj:
    """What calling something outside the tree gave, or an item of that by its key."""

    dotted: str
    site: Call

    def dotted_attribute(self, name: str) -> str:
        """The dotted name of an attribute of it.

        What comes of asking such an attribute for its own like again (a loop over ``x.values()``)
        is the same, or the names would grow for ever and crowd out the values of the tree.
        """
        whole = f"{self.dotted}()."
        at = whole.find(f"().{name}().")
        return f"{self.dotted}().{name}" if at < 0 else f"{self.dotted[:at]}().{name}"


@dataclass(frozen=True, slots=True)
class ModRef:
    """A module (or namespace folder) of the tree."""

    path: str


@dataclass(frozen=True, slots=True)
class AnyModule:
    """A module of the tree that is imported by a computed name: ``f"tasks.{name}"``."""

    package: str
    """The folder or package that the name begins with; empty where nothing of it is written."""
    site: Call


@dataclass(frozen=True, slots=True)
class ClassRef:
    """A class of the tree."""

    cls: Class


@dataclass(frozen=True, slots=True)
class FuncRef:
    """A function of the tree, perhaps bound to the object it was read from."""

    function: Function
    bound: Value | None = None


@dataclass(frozen=True, slots=True)
class Obj:
    """An instance: of a class of the tree, or of one the catalog knows (a dotted name).

    ``site`` is the call that built it; None for the ``self`` of a method, which may be of any
    subclass. ``through`` is the call of the factory that returned it.
    """

    cls: Class | str
    site: Call | None = None
    through: Call | None = None

    @property
    def name(self) -> str:
        """The class's own name, for messages."""
        return self.cls.name if isinstance(self.cls, Class) else self.cls.rpartition(".")[2]

    def may_be(self, other: object) -> bool:
        """Whether both may be one object: one call builds them, not for two calls of a factory."""
        return (
            isinstance(other, Obj)
            and (self.cls, self.site) == (other.cls, other.site)
            and (
                self.through is None
                or other.through is None
                or self.through is other.through
                or not _is_made_anew(self.site, self.through, other.through)
            )
        )


def _is_made_anew(site: Call | None, one: Call, other: Call) -> bool:
    """Whether the function that builds an object keeps nothing, to return it again.

    A decorator may keep it, for a call with the same arguments.
    """
    function = site.scope if site is not None else None
    if not isinstance(function, Function) or site is None or function.declared:
        return False
    if function.stores and _is_stored(function.module, function, site):
        return False
    kept = len(function.decorators) - function.is_classmethod - function.is_static
    return not kept or not same(one, other)


@remembered
def _is_stored(_: ModuleFacts, function: Function, site: Call) -> bool:
    """Whether a function stores what a call of it makes, or what holds that, in something else."""
    made: set[str] = set()

    def holds(expr: Expr | None) -> bool:
        nodes = walk(expr) if expr is not None else ()
        return any(n is site or (isinstance(n, Name) and n.id in made) for n in nodes)

    while more := {
        name
        for name, bindings in function.bindings.items()
        if name not in made and any(holds(binding.value) for binding in bindings)
    }:
        made |= more
    return any(
        (store.value is None or holds(store.value)) and not holds(leftmost(store.target))
        for store in function.stores
    )


@dataclass(frozen=True, slots=True)
class Super:
    """``super()`` in a method: attributes are looked up above ``cls``."""

    cls: Class
    receiver: Value | None


Frame: TypeAlias = "tuple[Function, Call]"
"""A function and the call of it that is looked at."""


@dataclass(frozen=True, slots=True)
class Pack:
    """A tuple, list or set display, or a comprehension.

    ``frames`` are the calls that it was returned through, innermost first; ``names`` those of
    the elements of a named tuple.
    """

    node: Seq | Comp
    frames: tuple[Frame, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def items(self) -> list[Expr]:
        """The expressions of its elements."""
        return self.node.items if isinstance(self.node, Seq) else self.node.elements


@dataclass(frozen=True, slots=True)
class Table:
    """A dict display, or a ``dict(…)`` call; ``frames`` as in :class:`Pack`."""

    node: Map | Call
    frames: tuple[Frame, ...] = ()

    @property
    def entries(self) -> Iterator[tuple[object, Expr]]:
        """Its keys and their values; ``...`` for a key that is no literal, and for ``**``."""
        if isinstance(self.node, Call):
            yield from ((arg.keyword or ..., arg.value) for arg in self.node.args)
        else:
            for key, value in self.node.items:
                yield key.value if isinstance(key, Const) else ..., value

    def merges(self, value: Expr) -> bool:
        """Whether one of its entries is another dict, all of whose keys it takes over."""
        if isinstance(self.node, Call):
            return any(
                arg.value is value and not arg.keyword and arg.stars != 1 for arg in self.node.args
            )
        return any(key is None and held is value for key, held in self.node.items)


@dataclass(frozen=True, slots=True)
class View:
    """``.items()`` or ``.values()`` of a table."""

    table: Table
    items: bool


@dataclass(frozen=True, slots=True)
class Gen:
    """A generator made by calling ``function`` at ``site``."""

    function: Function
    site: Call


@dataclass(frozen=True, slots=True)
class Partial:
    """``functools.partial(…)`` built at ``site``."""

    site: Call


@dataclass(frozen=True, slots=True)
class TupleType:
    """What ``collections.namedtuple`` makes, with the names of its fields."""

    names: tuple[str, ...]


Value: TypeAlias = (
    Unknown
    | Lit
    | Ext
    | ExtObj
    | ModRef
    | AnyModule
    | ClassRef
    | FuncRef
    | Obj
    | Super
    | Pack
    | Table
    | View
    | Gen
    | Partial
    | TupleType
)


class Values(frozenset[Value]):
    """The values of an expression, in the order in which they were found.

    The order of a plain set is that of addresses in memory: what a rule says of the first of
    several must not change from run to run.
    """

    __slots__ = ("_order",)
    _order: tuple[Value, ...]

    def __new__(cls, values: Iterable[Value]) -> Values:
        """Keep ``values`` in their order."""
        order = tuple(values)
        self = super().__new__(cls, order)
        self._order = order
        return self

    def __iter__(self) -> Iterator[Value]:
        return iter(self._order)


Base: TypeAlias = "Class | str | Unknown"
"""An entry of a linearised hierarchy: a class of the tree, a dotted name, or a gap."""


def made_in(value: Value) -> Scope | None:
    """The scope in which an object or a container is made."""
    if isinstance(value, Obj):
        return value.site.scope if value.site is not None else None
    if isinstance(value, (Pack, Table)):
        return value.node.scope
    return None
