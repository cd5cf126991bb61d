"""The values of the interpreter: plain Python ones, and these."""

from __future__ import annotations

import ast
import itertools
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

from sampler_lint.execution.budget import BUDGET, DEEPEST_VALUE, LARGEST_KEY, Cost, Op
from sampler_lint.execution.chance import Chance, Stream
from sampler_lint.execution.errors import CannotTellError, Globals, Kind, WantedError
from sampler_lint.parameters import Role
from sampler_lint.syntax.parse import all_nodes
from sampler_lint.workspace.project import Module, Project


class _Unknown:
    """A value nobody knows: it may be kept and handed on, and nothing may depend on it."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()

#: Attributes of data sets that hold one entry a sample.
PER_SAMPLE = frozenset(
    {
        "data", "data_infos", "data_label", "data_list", "durations", "flag", "flags",
        "group_flags", "img_ids", "imgs", "label", "labels", "length", "lengths", "samples",
        "sizes", "targets",
    }
)  # fmt: skip


#: The only column of a table, or entry of a sample.
COLUMN = "text"


#: Which sample it is, in a key.
PLACE = re.compile(r"[\[(]([0-9]{1,9})[\])]")


class Data:
    """Something read from the data: any positive number, always the same for the same ``key``.

    It is never None: data is taken to be whole.
    """

    #: How often a number was asked for, by anyone: whether a result depends on data.
    asked = 0
    #: How often it was one of all the data, such as how many classes there are, and of no sample.
    asked_of_all = 0
    #: Whether the numbers of samples are those of two classes, one after the other.
    dense = False
    #: Whether it is known again wherever it is handed on: its parts stay parts, and what is made
    #: of it keeps its name.
    traced = False
    #: What says of which kind a part is, while arguments are guessed.
    stand_ins: StandIns | None = None

    def __init__(self, key: str, length: int | None = None) -> None:
        self.key = key
        self.length = length

    @property
    def number(self) -> int:
        """The number that stands for it."""
        Data.asked += 1
        Data.asked_of_all += self.place is None
        BUDGET.text(len(self.key))
        if Data.dense and (place := self.place) is not None:
            return place % 2
        return 1 + zlib.crc32(self.key.encode()) % 5

    @property
    def size_of_part(self) -> int | None:
        """How much a part of a sample holds: as much as its own number says."""
        return None if self.place is None else Data(f"len({self.key})").number

    @property
    def origin(self) -> tuple[str, ...] | None:
        """Which part of the data it is, or is made of: of what, and which item of which item."""
        if self.place is None:
            return None
        return (self.key.partition("[")[0].rpartition("(")[2], *PLACE.findall(self.key))

    @property
    def place(self) -> int | None:
        """Which sample it is, or is of: no number that a method of something made is given."""
        return _place_in(self.key)

    def part(self, what: str) -> Any:
        """An attribute, item or result of it; a sample that is a mapping has one column."""
        BUDGET.text(len(self.key) + len(what))
        owner, _, method = self.key.rpartition(".")
        if what == "()" and owner.startswith("dataset["):
            column = Data(f"{owner}[{COLUMN!r}]")
            views = {"items": [(COLUMN, column)], "keys": [COLUMN], "values": [column]}
            if method in views:
                return views[method]
        return Data(f"{self.key}{what}")

    def items(self) -> list[Any]:
        """Its elements: numbers, until more is asked of them.

        Raises:
            CannotTellError: it is not known to have one entry a sample.
        """
        length = self.size_of_part if self.length is None else self.length
        if length is None:
            raise CannotTellError("how many there are")
        BUDGET.text(length * len(self.key))
        parts = [Data(f"{self.key}[{index}]") for index in range(length)]
        return parts if Data.traced else [Told(part) for part in parts]

    def made_by(self, function: str) -> Any:
        """What a function outside the tree makes of it."""
        BUDGET.text(len(self.key) + len(function))
        return Data(f"{function}({self.key})")


@lru_cache(1 << 12)  # each number that is read of data asks, in each world for the same few
def _place_in(key: str) -> int | None:
    found = (f for f in PLACE.finditer(key) if f[0][0] == "[" or ")" not in key[: f.start()])
    return next((int(each[1]) for each in found), None)


class Told(int):
    """The number that stands for a part of the data."""

    def __new__(cls, data: Data) -> Told:
        """Keep what it stands for."""
        made = super().__new__(cls, data.number)
        made.data = data
        return made

    data: Data


class Called(Data):
    """A function that is given, of which nobody knows what it gives."""


class StandIns(Protocol):
    """What stands for arguments and for parts of them, as far as the program's use has told."""

    def of(self, pattern: str, key: str) -> Any:
        """What stands for the part ``key``; :data:`NOT_MADE` while nothing does.

        ``pattern`` is the key without the places of items, which are all of one kind.
        """


#: What is asked of a column of a table.
_OF_COLUMNS = frozenset({".isin", ".nunique", ".unique", ".value_counts", ".values"})


NOT_MADE = object()


class Given(Data):
    """An argument, or a part of one, of which only the name is known."""

    def __init__(
        self,
        key: str,
        made: StandIns,
        pattern: str | None = None,
        *,
        is_true: bool = False,
        others: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(key)
        self.made = made
        self.others = others
        """The texts that it is not, if it is one."""
        self.is_true = is_true
        """Whether it is known not to be None, 0 or empty."""
        self.pattern = key if pattern is None else pattern

    @property
    def number(self) -> int:
        """It is a number, and nobody knows which.

        Raises:
            WantedError: always.
        """
        raise self.wanted(Kind.NUMBER)

    def wanted(self, kind: Kind) -> WantedError:
        """What to raise where the program uses it as a ``kind``."""
        return WantedError(self.pattern, kind)

    def part(self, what: str) -> Any:
        """An attribute, entry or result of it; an item by number is one of a sequence."""
        BUDGET.text(len(self.key) + len(what))
        self.ask_for_mapping(what)
        if what in _OF_COLUMNS and self.pattern.endswith(("']", '"]')):
            raise self.wanted(Kind.SEQUENCE)
        if what.startswith("[") and not what.startswith(("['", '["')):
            raise self.wanted(Kind.SEQUENCE)
        pattern = f"{self.pattern}{PLACE.sub('[]', what)}"  # the same function, for any sample
        return given(f"{self.key}{what}", self.made, pattern)

    def ask_for_mapping(self, what: str) -> None:
        """Say so where what is read of it shows that it is a mapping.

        Raises:
            WantedError: it is one.
        """
        if what in {".items", ".keys"}:
            raise self.wanted(Kind.MAPPING)
        if what == "()" and self.pattern.endswith(".values"):  # of columns, it is no method
            raise WantedError(self.pattern.removesuffix(".values"), Kind.MAPPING)

    def made_by(self, function: str) -> Any:
        """What a function outside the tree makes of it."""
        BUDGET.text(len(self.key) + len(function))
        return given(f"{function}({self.key})", self.made, f"{function}({self.pattern})")

    def has(self, name: str) -> bool:
        """``hasattr(it, name)``."""
        BUDGET.text(len(self.pattern))
        return said(self.made, f"hasattr({self.pattern}, {name!r})")

    def items(self) -> list[Any]:
        """Its elements.

        Raises:
            WantedError: always.
        """
        raise self.wanted(Kind.SEQUENCE)


def given(key: str, made: StandIns, pattern: str) -> Any:
    """What stands for an argument, or for a part of one; itself while nothing does."""
    found = made.of(pattern, key)
    return Given(key, made, pattern) if found is NOT_MADE else found


def said(made: StandIns, key: str) -> bool:
    """What is taken to be so, or not, of what nobody knows.

    Raises:
        WantedError: nothing, as yet.
    """
    found = made.of(key, key)
    if found is NOT_MADE:
        raise WantedError(key, Kind.ANSWER)
    return bool(found)


class Entry(Given):
    """An attribute of a data set, or a part of one: any number, or what its use tells."""

    number = Data.number

    def part(self, what: str) -> Any:
        """An attribute, item or result of it."""
        BUDGET.text(len(self.key) + len(what))
        self.ask_for_mapping(what)
        if what in _OF_COLUMNS and self.pattern.endswith(("']", '"]')):
            raise self.wanted(Kind.SEQUENCE)
        is_of_sample = what.startswith("[") or ")" not in self.key
        key = f"{self.key}{what}"
        what = PLACE.sub("[]", what) if is_of_sample else what
        return entry(key, self.made, f"{self.pattern}{what}")


def entry(key: str, made: StandIns, pattern: str) -> Any:
    """What stands for an attribute of a data set, or a part of one; itself while nothing does."""
    found = made.of(pattern, key)
    return Entry(key, made, pattern) if found is NOT_MADE else found


class Column(Data):
    """An attribute of a data set with one entry a sample, or by name one for each of its parts."""

    def __init__(self, key: str, length: int, made: StandIns) -> None:
        super().__init__(key, length)
        self.made = made

    def part(self, what: str) -> Any:
        """The entry of a sample, or what it has by a name."""
        if not what.startswith(("['", '["')):
            return super().part(what)
        key = f"{self.key}{what}"
        return entry(key, self.made, key)


#: What tables have (pandas' and those of `datasets`): rows, columns, themselves without a column.
_OF_TABLES: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("iloc", "loc"), lambda table: table),
    **dict.fromkeys(("column_names", "columns", "features"), lambda table: [COLUMN]),
    **dict.fromkeys(
        ("remove_columns", "select_columns", "rename_columns", "with_format"),
        lambda table: Native(lambda *args, **keywords: table),
    ),
}


class Source(Data):
    """A data set of ``length`` samples, of which nothing else is known.

    ``made`` holds what stands for its attributes, as far as their use has told; it is None while
    the use is not asked.
    """

    def __init__(self, length: int, made: StandIns | None = None) -> None:
        super().__init__("dataset", length)
        self.made = made
        self.size = length
        self.changed: dict[str, Any] = {}

    def attribute(self, name: str) -> Any:
        """``dataset.name``."""
        if name in self.changed:
            return self.changed[name]
        if name == "indices":
            return list(range(self.size))
        if name in _OF_TABLES:
            return _OF_TABLES[name](self)
        if name == "datasets":
            return self.parts()
        if name == "cumulative_sizes":
            return list(itertools.accumulate(part.size for part in self.parts()))
        key = f"dataset.{name}"
        if self.made is None:
            return Data(key, self.size if name in PER_SAMPLE else None)
        if name in PER_SAMPLE:
            return Column(key, self.size, self.made)
        return entry(key, self.made, key)

    def has(self, name: str) -> bool:
        """``hasattr(dataset, name)``.

        Raises:
            CannotTellError: nobody knows.
        """
        if name in PER_SAMPLE:
            return True
        if self.made is None:
            raise CannotTellError("hasattr")
        return said(self.made, f"hasattr(dataset, {name!r})")

    def part(self, what: str) -> Any:
        """A sample, a column, or the result of a method."""
        if what.startswith(("['", '["')):
            column = what[2:-2]
            if column in self.changed:
                return self.changed[column]
            return Data(f"{self.key}{what}", self.size)
        return super().part(what)

    def parts(self) -> list[Source]:
        """The data sets it is put together from, if it is a ``ConcatDataset``."""
        half = (self.size + 1) // 2
        return [Source(half, self.made), Source(self.size - half, self.made)]

    def items(self) -> list[Any]:
        """The samples."""
        return [Data(f"dataset[{index}]") for index in range(self.size)]


class Array:
    """A tensor or numpy array; one of more dimensions holds the others."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = BUDGET.collect(items)

    def map(self, function: Callable[[Any], Any]) -> Array:
        """Element by element."""
        BUDGET.items(len(self.items))
        return Array([function(item) for item in self.items])

    @property
    def shape(self) -> tuple[int, ...]:
        """How long it is in each dimension."""
        inner = self.items[0].shape if self.items and isinstance(self.items[0], Array) else ()
        return (len(self.items), *inner)

    def flat(self) -> Iterator[Any]:
        """What it holds in the last dimension."""
        for item in BUDGET.each(self.items):
            if isinstance(item, Array):
                yield from item.flat()
            else:
                yield item


class Places(Array):
    """Where an array is not zero: numpy gives a tuple of arrays, torch rows of one place."""


class Size(int):
    """The size of an array: numpy reads it, torch calls it."""


class Passed(NamedTuple):
    """What one construction passes for a parameter: the first of these that is known."""

    role: Role | None = None
    name: str = ""
    """What its name ends in."""
    value: Any = None
    """The constant; () for a list that is written down."""
    is_always: bool = False
    """Whether each construction passes something, and it is known what."""


@dataclass(eq=False)
class Klass:
    """A class of the tree, or of the prelude."""

    name: str
    node: ast.ClassDef
    names: Globals
    bases: list[Any]
    members: dict[str, Any] = field(default_factory=dict)
    setters: dict[str, Fn] = field(default_factory=dict)
    """What runs when a property is set."""
    constants: dict[str, Instance] = field(default_factory=dict)
    """The members of an enumeration that were read."""
    passed: Mapping[str, tuple[Passed, ...]] = field(default_factory=dict)
    """What the tree passes for the parameters of its constructor."""
    _is_asked: bool = False
    _found: dict[str, Any] = field(default_factory=dict)

    def setter(self, name: str) -> Fn | None:
        """What runs when the property of that name is set."""
        setters = (base.setters.get(name) for base in self.mro if isinstance(base, Klass))
        return next(filter(None, setters), None)

    def found(self, name: str) -> Any:
        """What the classes of the tree among them define as ``name``; None where none does."""
        if name not in self._found:  # of objects, so that all members are known
            members = (base.members.get(name) for base in self.mro if isinstance(base, Klass))
            self._found[name] = next(filter(None, members), None)
        return self._found[name]

    @cached_property
    def numbers(self) -> set[int]:
        """The integers that its own code names."""
        found = (node.value for node in all_nodes(self.node) if isinstance(node, ast.Constant))
        return {value for value in found if type(value) is int}

    @cached_property
    def lent(self) -> set[ast.AST]:
        """The code that it has from torch: what that takes, nobody here may have thought of."""
        of_torch = (k for k in self.mro if isinstance(k, Klass) and k.names.module is None)
        return {node for klass in of_torch for node in all_nodes(klass.node)}

    @cached_property
    def has_while_loop(self) -> bool:
        """Whether its own code has one."""
        return any(isinstance(node, ast.While) for node in all_nodes(self.node))

    @cached_property
    def mro(self) -> list[Any]:
        """The linearised hierarchy; a base outside the tree stays as it is."""
        if self._is_asked:
            raise CannotTellError("a class that takes the place of its base")
        self._is_asked = True
        out: dict[int, Any] = {id(self): self}
        try:
            for base in self.bases:
                for ancestor in base.mro if isinstance(base, Klass) else [base]:
                    out.pop(id(ancestor), None)
                    out[id(ancestor)] = ancestor
        finally:
            self._is_asked = False
        return list(out.values())


class Inner(NamedTuple):
    """A class in a class, by the name that its module keeps it under."""

    name: str


class Record(tuple[Any, ...]):
    """A named tuple."""

    names: tuple[str, ...]


class Queue(list[Any]):
    """A ``deque`` of a bounded length, or a ``queue.Queue``."""

    maxlen: int | None = None
    is_of_threads = False


@dataclass(eq=False)
class Instance:
    """An object of such a class."""

    klass: Klass
    attributes: dict[str, Any] = field(default_factory=dict)
    unread: dict[str, tuple[ast.expr, Any]] = field(default_factory=dict)
    """What its constructor has stored and nothing has read yet, and where."""
    lost: list[Lost] = field(default_factory=list)
    """What its constructor has stored and overwritten before anything read it."""
    made: StandIns | None = None
    """What stands for attributes that nothing has stored, where no constructor has run."""


class Lost(NamedTuple):
    """A value that was stored in an attribute and overwritten before anything read it."""

    target: ast.expr
    value: Any
    by: ast.expr
    """Where it was overwritten."""
    other: Any


@dataclass(eq=False)
class Fn:
    """A function or lambda, with the class it is defined in and the local names around it."""

    node: ast.FunctionDef | ast.Lambda
    names: Globals
    klass: Klass | None = None
    closure: dict[str, Any] | None = None
    defaults: dict[str, Any] = field(default_factory=dict)
    """The local names that the defaults of its parameters are made from."""

    @cached_property
    def decorators(self) -> set[str]:
        """The last names of its decorators."""
        if isinstance(self.node, ast.Lambda):
            return set()
        return set(map(last_name, self.node.decorator_list))

    @property
    def bare(self) -> Fn:
        """The same without its decorators."""
        made = replace(self)
        made.decorators = set()
        return made


@dataclass(eq=False, slots=True)
class Bound:
    """A method and its object."""

    function: Fn
    receiver: Any


@dataclass(eq=False, slots=True)
class Parent:
    """``super()``: members are looked up above ``klass``."""

    klass: Klass
    receiver: Instance


@dataclass(slots=True, unsafe_hash=True)  # nobody changes one; frozen ones take longer to make
class External:
    """A module, class or function outside the tree, by dotted name."""

    dotted: str
    stream: Stream | None = None
    """The generator that it is, or is a method of."""


@dataclass(eq=False, slots=True)
class Native:
    """A function of the interpreter itself, such as ``list.append``."""

    call: Callable[..., Any]


class Frame:
    """The names of one running function."""

    __slots__ = ("klass", "names", "outer", "own", "receiver", "variables")

    def __init__(
        self,
        names: Globals,
        variables: dict[str, Any],
        klass: Klass | None = None,
        receiver: Any = None,
    ) -> None:
        self.names = names
        self.variables = variables
        self.klass = klass
        self.receiver = receiver
        self.outer: frozenset[str] = frozenset()
        """The names that it sets in its module."""
        self.own: frozenset[str] = frozenset()
        """The names that it gives a value anywhere, so that they are never the module's."""

    def inner(self, variables: dict[str, Any]) -> Frame:
        """A frame inside this one (a comprehension)."""
        frame = Frame(self.names, variables, self.klass, self.receiver)
        frame.own = self.own
        return frame


class Run(Protocol):
    """What the library asks of the interpreter."""

    world: int
    rank: int
    outside: int
    agreed: int
    asked_place: bool
    asked_worker: bool
    worker: tuple[int, int] | None
    stands_in: bool
    guesses: bool
    lends: bool
    watch: Callable[[Instance], None] | None
    chance: Chance
    touched: set[Any]
    project: Project

    def value(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression."""

    def call(self, callee: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        """``callee(*args, **keywords)``."""

    def run(self, fn: Fn, args: list[Any], keywords: dict[str, Any], receiver: Any) -> Any:
        """A call of a function of the tree, as a method of ``receiver`` if there is one."""

    def names_of(self, module: Module) -> Any:
        """The globals of a module of the tree."""

    def method(self, instance: Instance, name: str) -> Bound | None:
        """A method of an object."""

    def attribute(self, owner: Any, name: str, node: ast.AST | None = None) -> Any:
        """``owner.name``."""

    def member(self, klass: Klass, name: str, above: Klass | None = None) -> Any:
        """What the hierarchy of ``klass`` (above one of its classes) defines as ``name``."""

    def external_class(self, value: Any) -> Any:
        """torch's classes as the prelude has them."""

    def item(self, owner: Any, key: Any) -> Any:
        """``owner[key]``."""

    def iterate(self, value: Any) -> Iterator[Any]:
        """``iter(value)``, charged item by item."""

    def listed(self, value: Any) -> list[Any]:
        """``list(value)``."""

    def length(self, value: Any) -> int:
        """``len(value)``."""

    def stream(self, of: External) -> Stream:
        """What a generator or its method draws from: the process's own for a function."""

    def true(self, value: Any) -> bool:
        """Whether the value is true."""


def last_name(node: ast.AST | None) -> str:
    """``c`` of ``a.b.c`` and ``a.b.c(…)``; empty for what has no name."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


#: Python 3.11 takes long to look up the members of an enumeration.
_SHALLOW, _DEEP = Cost.SHALLOW, Cost.DEEP


def perform(op: Op, run: Run, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Call a function of the library, which is charged first."""
    cost, call = op
    BUDGET.left -= 1
    if BUDGET.left < 0:
        BUDGET.over()
    if cost is _SHALLOW:
        for value in args:
            if isinstance(value, (list, tuple, dict, set, str, Array)):
                BUDGET.items(len(value.items if isinstance(value, Array) else value))
    elif cost is _DEEP:
        for value in (*args, *keywords.values()):
            weigh(value)
    return call(run, *args, **keywords)


def weigh(value: Any) -> None:
    """Charge for all that a value holds, as often as it can be reached from it.

    What compares, hashes, copies or writes it out goes there as often.

    Raises:
        CannotTellError: it is nested deeper than Python's own functions can bear.
    """
    if not isinstance(value, (int, float, type(None))):
        _weigh(value, 0)


def _weigh(value: Any, depth: int) -> None:
    if isinstance(value, str):
        BUDGET.text(len(value))
        return
    if isinstance(value, Array):
        value = value.items
    if isinstance(value, (list, tuple, set, dict)):
        if depth > DEEPEST_VALUE:
            raise CannotTellError("how deep it is")
        BUDGET.items(len(value))
        for part in value:
            if not isinstance(part, (int, float)):
                _weigh(part, depth + 1)
        if isinstance(value, dict):
            _weigh(list(value.values()), depth)


#: What is its own operand.
_PLAIN = frozenset({bool, int, float, str, list, type(None)})


def plain(value: Any) -> Any:
    """The value as an operand: data becomes its number.

    Raises:
        CannotTellError: it is not known.
    """
    if type(value) in _PLAIN:  # most are these
        return value
    if isinstance(value, Source):
        raise CannotTellError("a data set as a number")
    if isinstance(value, Data):
        return value.number
    if type(value) is Told:
        return int(value)
    if value is UNKNOWN or isinstance(value, External):
        raise CannotTellError("the value")
    if isinstance(value, tuple):
        weigh(value)
        return tuple(plain(item) for item in value)
    return value


def key(value: Any) -> Any:
    """The value as a key of a dict, or an element of a set.

    Raises:
        CannotTellError: it is not known, or a number that may have the hash of many others.
    """
    value = plain(value)
    if isinstance(value, tuple):
        return tuple(key(part) for part in value)
    if isinstance(value, int) and not -LARGEST_KEY < value < LARGEST_KEY:
        raise CannotTellError("a large number")
    return value


def truth(value: Any) -> bool:
    """Whether the value is true.

    Raises:
        CannotTellError: it is not known.
    """
    if value is True or value is False:
        return value
    if value is None or isinstance(value, (bool, int, float, str, list, tuple, dict, set, range)):
        return bool(value)
    if isinstance(value, (Fn, Klass, Bound)):
        return True
    if isinstance(value, Array) and len(value.items) == 1:
        return truth(value.items[0])
    if isinstance(value, Data) and Data.traced and value.origin is not None:
        return True  # data is taken to be whole
    if isinstance(value, Given):
        if value.is_true:
            return True
        raise value.wanted(Kind.FLAG)
    if isinstance(value, Data) and value.place is not None and Data.stand_ins is not None:
        return said(Data.stand_ins, f"bool({PLACE.sub('[]', value.key)})")
    raise CannotTellError("whether it is true")


def elements(value: Any) -> Iterator[Any] | None:
    """The elements of a container, or None if it is none of the plain ones."""
    if isinstance(value, (list, tuple, dict, set, range, str)):
        return iter(value)
    if isinstance(value, Array):
        return iter(value.items)
    if isinstance(value, Data):
        return iter(value.items())
    return value if isinstance(value, Iterator) else None
