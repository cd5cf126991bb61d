"""How torch's loaders may hold what shuffles by the epoch, and which of them some code tells.

What ``DataLoader.__init__`` puts into ``.sampler`` and ``.batch_sampler`` is known for each way of
building one. The guards around the calls of ``set_epoch`` are answered for each of these shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sampler_lint.analysis.asked import is_one, tests
from sampler_lint.analysis.values import Obj, Unknown, Value
from sampler_lint.catalog.torch import SEQUENTIAL_SAMPLER
from sampler_lint.domain.concepts import ASKS_BY_NAME
from sampler_lint.domain.epoch_state import epoch_state
from sampler_lint.domain.model import BATCH_SAMPLER, DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.wrapping import inners
from sampler_lint.rules.smp101_epoch_only_on_sampler.parts import Origin, parts_of_loaders
from sampler_lint.syntax.navigation import same, self_class
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Choice,
    Class,
    Compare,
    Const,
    Expr,
    Unary,
    last_name,
)

_ITSELF: tuple[str, ...] = ()


class Shape(NamedTuple):
    """One way in which a loader is built."""

    how: str
    """What it is given."""
    carrier: tuple[str, ...]
    """How what shuffles by the epoch is reached from the loader."""
    parts: dict[tuple[str, ...], Class | str | None]
    """The class of each part; None for one of somebody's own, with a ``set_epoch``."""

    def has(self, model: Model, path: tuple[str, ...], name: str) -> bool | None:
        """Whether a part of the loader has an attribute; None where nobody knows."""
        if (*path, name) in self.parts:
            return True
        kind = self.parts[path]
        if isinstance(kind, Class):
            attributes = model.attributes(kind)
            return True if name in attributes.names else None if attributes.open else False
        if name == "set_epoch":
            return path != _ITSELF and kind in {None, DISTRIBUTED_SAMPLER}
        if name == "sampler":  # a batch sampler of somebody's own need not have one
            return False
        return None


SHAPES = (
    Shape(
        "`sampler=`",
        ("sampler",),
        {
            _ITSELF: "",
            ("sampler",): DISTRIBUTED_SAMPLER,
            ("batch_sampler",): BATCH_SAMPLER,
            ("batch_sampler", "sampler"): DISTRIBUTED_SAMPLER,
        },
    ),
    Shape(
        "`batch_sampler=BatchSampler(…)`",
        ("batch_sampler", "sampler"),
        {
            _ITSELF: "",
            ("sampler",): SEQUENTIAL_SAMPLER,
            ("batch_sampler",): BATCH_SAMPLER,
            ("batch_sampler", "sampler"): DISTRIBUTED_SAMPLER,
        },
    ),
    Shape(
        "a batch sampler with its own `set_epoch`",
        ("batch_sampler",),
        {_ITSELF: "", ("sampler",): SEQUENTIAL_SAMPLER, ("batch_sampler",): None},
    ),
    Shape(
        "a batch sampler with its own `set_epoch`",
        ("batch_sampler",),
        {
            _ITSELF: "",
            ("sampler",): SEQUENTIAL_SAMPLER,
            ("batch_sampler",): None,
            ("batch_sampler", "sampler"): SEQUENTIAL_SAMPLER,
        },
    ),
)


class Guards:
    """The guards around calls, answered for a loader of one shape."""

    def __init__(self, model: Model, loader: Expr, shape: Shape) -> None:
        self.model = model
        self.loader = loader
        self.shape = shape

    def exclude(self, call: Call) -> bool:
        """Whether a call is certainly not made."""
        if call.stmt is None:
            return False
        passed = tests(call.stmt)
        return any(self._answer(test) is (not answer) for test, answer in passed)

    def _answer(self, test: Expr) -> bool | None:
        if isinstance(test, Unary) and test.op == "Not":
            return _not(self._answer(test.operand))
        if isinstance(test, Choice) and test.kind != "if":
            answers = {self._answer(option) for option in test.options}
            decides = test.kind == "or"
            if decides in answers:
                return decides
            return None if None in answers else not decides
        if isinstance(test, Compare):
            return self._compared(test)
        if isinstance(test, Call):
            asks, given = last_name(test.func), test.positional
            if asks == "isinstance" and len(given) == 2:
                return self._is_one(given[0], given[1])
            if asks == "callable" and len(given) == 1:
                return self._is_there(given[0])
        return self._is_there(test)

    def _compared(self, test: Compare) -> bool | None:
        """``x is None`` and ``x is not None``."""
        if len(test.ops) != 1 or test.ops[0] not in {"Is", "IsNot"}:
            return None
        right = test.rights[0]
        if not isinstance(right, Const) or right.value is not None:
            return None
        there = self._is_there(test.left)
        return there if test.ops[0] == "IsNot" else _not(there)

    def _is_there(self, expr: Expr) -> bool | None:
        """Whether a part, or an attribute of one, is not None; of ``hasattr``, whether it is."""
        if isinstance(expr, Attr):
            asked: tuple[Expr, str] | None = (expr.value, expr.name)
        else:
            asked = _asked_by_name(expr)
        if asked is not None:
            part = self._part(asked[0])
            if part is not None:
                if part.path in self.shape.parts:
                    return self.shape.has(self.model, part.path, asked[1])
                return False if part.by_default else None  # a read of what is not there raises
        part = self._part(expr)
        if part is None:
            return None
        return part.path in self.shape.parts or (False if part.by_default else None)

    def _is_one(self, expr: Expr, classes: Expr) -> bool | None:
        part = self._part(expr)
        if part is None or part.path == _ITSELF:
            return None
        if part.path not in self.shape.parts:
            return False if part.by_default else None
        return is_one(self.model.flow, self.shape.parts[part.path], classes)

    def _part(self, expr: Expr) -> Origin | None:
        """The one part of the loader that an expression is."""
        if same(expr, self.loader):
            return Origin(expr, _ITSELF, expr)
        found = list(parts_of_loaders(self.model, expr))
        return found[0] if len(found) == 1 and same(found[0].loader, self.loader) else None


def _asked_by_name(expr: Expr) -> tuple[Expr, str] | None:
    """``hasattr(x, "name")`` and ``getattr(x, "name", None)``."""
    if not isinstance(expr, Call) or not ASKS_BY_NAME.is_call(expr) or len(expr.positional) < 2:
        return None
    name = expr.positional[1]
    if not isinstance(name, Const) or not isinstance(name.value, str):
        return None
    return expr.positional[0], name.value


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def shapes(model: Model, loader: Expr) -> Iterator[Shape]:
    """The ways in which torch builds a loader, and those in which the tree builds this one."""
    yield from SHAPES
    wrappers = {
        value.cls: None
        for value in _batch_samplers(model, self_class(loader))
        if isinstance(value, Obj) and isinstance(value.cls, Class)
    }
    for wrapper in wrappers:
        if "set_epoch" not in model.attributes(wrapper).names and _wraps_batches(model, wrapper):
            inner = ("batch_sampler", "batch_sampler")
            yield Shape(
                f"`batch_sampler={wrapper.name}(…)`",
                (*inner, "sampler"),
                {
                    _ITSELF: "",
                    ("sampler",): SEQUENTIAL_SAMPLER,
                    ("batch_sampler",): wrapper,
                    inner: BATCH_SAMPLER,
                    (*inner, "sampler"): DISTRIBUTED_SAMPLER,
                },
            )


def _batch_samplers(model: Model, owner: Class | None) -> Iterator[Value]:
    """What the tree's loaders, or those of one class, are given as ``batch_sampler=``."""
    if owner is None:
        for obj in model.loaders:
            yield from model.passed_to(obj, "batch_sampler")
        return
    for call in _built(model, owner):
        given = call.keyword("batch_sampler")
        if given is not None:
            yield from model.flow.values(given)


def _built(model: Model, owner: Class) -> list[Call]:
    """Where the tree builds a class of its own."""
    init = model.flow.method(owner, "__init__")
    calls = model.flow.callers(init)
    return [call for call in calls if last_name(call.func) != "__init__"]


def may_be(model: Model, owner: Class, shape: Shape) -> bool:
    """Whether an object of a loader class may have a shape, as the tree builds them.

    What the tree builds nowhere, its users do as they like.
    """
    calls = _built(model, owner)
    if not calls or any(call.has_double_star for call in calls):
        return True
    if shape.carrier == ("sampler",):
        return any(call.keyword("sampler") is not None for call in calls)
    own = shape.parts["batch_sampler",]
    return any(
        isinstance(value, Unknown) or isinstance(own, Class) or _is_such(model, value, own)
        for value in _batch_samplers(model, owner)
    )


def _is_such(model: Model, value: Value, kind: str | None) -> bool:
    """Whether a batch sampler is torch's own, or one of the tree's with a ``set_epoch``."""
    if not isinstance(value, Obj):
        return False
    if isinstance(value.cls, Class):
        return kind is None and "set_epoch" in model.attributes(value.cls).names
    return value.cls == kind


def _wraps_batches(model: Model, cls: Class) -> bool:
    """Whether a class iterates a batch sampler that it is given."""
    return any(
        inner.path == ("batch_sampler",) and inner.param is not None
        for inner in inners(model, epoch_state(model, cls))
    )


def untold(model: Model, loader: Expr, calls: Iterable[Call]) -> Iterator[Shape]:
    """The shapes of a loader for which none of the calls is made.

    One that is made of a part without the method raises: that is no silent miss.
    """
    for shape in shapes(model, loader):
        guards = Guards(model, loader, shape)
        if all(guards.exclude(call) for call in calls):
            yield shape
