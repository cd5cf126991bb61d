"""Kinds of values for a parameter that does not say what it wants: the contract tries them.

A person who is to call a class of someone else's looks what the annotation allows and what the
code does with the value, and tries. So does this: a kind is not known to be right, but a sampler
that yields nothing but indices of the dataset was given something that it can work with.
"""

from __future__ import annotations

import ast
import builtins
import collections.abc
import contextlib
import inspect
import itertools
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sampler_lint.harness.ranks import Case
from sampler_lint.parameters import Role, role_of

#: Ways to build that are looked at, the likelier first.
TRIED = 400


@dataclass(frozen=True, slots=True)
class Kind:
    """A value that may be meant, and how a note names it."""

    says: str
    """Empty where the parameter's name tells it."""
    make: Callable[[Case], Any]
    place: Role | None = None
    """It is the rank, or how many ranks there are."""


def _literal(value: object) -> Kind:
    return Kind(repr(value), lambda _: value)


def parts(case: Case) -> list[int]:
    """The samples in two uneven parts."""
    return [case.size - case.size // 3, case.size // 3]


def _pools(case: Case) -> list[list[int]]:
    first, _ = parts(case)
    return [[*range(first)], [*range(first, case.size)]]


def _alike(*_: object, **__: object) -> int:
    """What takes anything, and finds all alike."""
    return 1


class Settings:
    """Settings of which each is known by its name; what is not may hold further ones."""

    __iter__ = None  # they have items, and no first one

    def __init__(self, case: Case) -> None:
        self._case = case

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _SETTINGS.get(role_of(name) or Role.COLUMN)
        return Settings(self._case) if made is None else made(self._case)

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str):
            raise TypeError(f"settings have no {name!r}")
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        """As of a mapping."""
        found = self[name]
        return default if isinstance(found, Settings) else found


_SETTINGS: dict[Role, Callable[[Case], Any]] = {
    Role.SHUFFLE: lambda case: case.shuffle,
    Role.WORLD_SIZE: lambda case: case.world_size,
    Role.RANK: lambda case: case.rank,
    Role.SEED: lambda case: case.seed,
    Role.BATCH_SIZE: lambda case: case.batch_size,
    Role.SIZE: lambda case: case.size,
    Role.START: lambda _: 0,
    Role.DROP_LAST: lambda _: False,
    Role.NUMBER: lambda _: 2,
    Role.MOST: lambda _: 32,
}

_NUMBERS = [
    *(_literal(2), _literal(32), _literal(1)),
    Kind("the number of samples", lambda case: case.size),
]
_FRACTIONS = [_literal(1.0), _literal(0.5)]
_FUNCTIONS = [Kind("a function that returns 1", lambda _: _alike)]
_LISTS = [
    Kind("the indices", lambda case: case.indices),
    Kind("a number for each sample", lambda case: case.lengths),
    Kind("a class for each sample", lambda case: case.labels),
    Kind("the sizes of two parts", lambda case: [part for part in parts(case) if part]),
    Kind("4, 8 and 16", lambda _: [4, 8, 16]),
]
_RATIOS = [
    Kind("1.0 for each sample", lambda case: case.weights),
    Kind("0.5 for each of two parts", lambda case: [0.5 for part in parts(case) if part]),
]
_POOLS = [Kind("two lists of indices", _pools)]
_NAMED_POOLS = [
    Kind("two lists of indices by name", lambda case: dict(zip("ab", _pools(case), strict=True)))
]
_SAID = [Kind("settings known by their names", Settings)]
_PLACES = [
    Kind("the number of ranks", lambda case: case.world_size, Role.WORLD_SIZE),
    Kind("the rank", lambda case: case.rank, Role.RANK),
]
_EVERYTHING = [
    *(*_NUMBERS, *_LISTS, *_FUNCTIONS, *_FRACTIONS, *_RATIOS, *_NAMED_POOLS, *_POOLS, *_SAID)
]

_OF_ROLE = {
    Role.MOST: [*reversed(_NUMBERS[:2]), *_NUMBERS[2:]],
    Role.NUMBER: _NUMBERS,
    Role.CLASSES: _NUMBERS,
    Role.FUNCTION: _FUNCTIONS,
    Role.BOUNDARIES: _LISTS[-1:],
}
#: What each type may be, and what a list of it.
_OF_TYPE: dict[Any, tuple[list[Kind], list[Kind]]] = {
    int: (_NUMBERS, _LISTS),
    float: ([*_FRACTIONS, *_NUMBERS], [*_RATIOS, *_LISTS]),
    bool: ([_literal(False), _literal(True)], _LISTS),
    str: ([_literal("")], []),
    Any: (_EVERYTHING, [*_LISTS, *_RATIOS, *_POOLS]),
}


def kinds_of(
    factory: Callable[..., Any], name: str, annotation: Any, written: str, role: Role | None
) -> list[Kind]:
    """What a parameter may want, the likelier first; nothing where its type is not known.

    ``annotation`` is the type that the parameter is ``written`` to have, if that can be told.
    """
    if annotation is None and written:
        return []
    uses = _Uses(factory, name)
    if uses.texts:
        return [*map(_literal, dict.fromkeys(uses.texts))]
    if role in _OF_ROLE and annotation in {None, Any, int}:
        return _OF_ROLE[role]
    if annotation in {None, Any}:
        return [kind for kind in _EVERYTHING if kind in uses.kinds] or _EVERYTHING
    return _of_type(annotation)


def _of_type(annotation: Any) -> list[Kind]:
    """The kinds of values that a type allows."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {typing.Union, types.UnionType}:
        return [kind for one in arguments for kind in _of_type(one)]
    of_what = origin or annotation
    if of_what is collections.abc.Callable:
        return _FUNCTIONS
    if of_what in _OF_TYPE:
        return _OF_TYPE[of_what][0]
    if not isinstance(of_what, type):
        return []
    if issubclass(dict, of_what) and issubclass(of_what, collections.abc.Mapping):
        return [*_NAMED_POOLS, *_SAID]
    if of_what is not object and any(issubclass(one, of_what) for one in (list, tuple, set)):
        item = arguments[0] if arguments else Any
        inner = typing.get_origin(item) or item
        return _OF_TYPE[inner][1] if inner in _OF_TYPE else _POOLS if _of_type(item) else []
    return []


def places(kinds: Sequence[Kind]) -> Sequence[Kind]:
    """The rank and how many there are, where a number is possible."""
    return _PLACES if _NUMBERS[0] in kinds else ()


def likelier_first(kinds: Mapping[str, Sequence[Kind]]) -> Iterator[dict[str, Kind]]:
    """The ways to choose one kind for each; of a place among the ranks, both numbers or none."""
    ways = itertools.product(*(range(len(one)) for one in kinds.values()))
    some = sorted(itertools.islice(ways, TRIED * TRIED), key=sum)
    chosen = (
        {name: of[at] for (name, of), at in zip(kinds.items(), way, strict=True)} for way in some
    )
    whole = (one for one in chosen if _places_in(one) in ([], [Role.RANK, Role.WORLD_SIZE]))
    return itertools.islice(whole, TRIED)


def _places_in(chosen: Mapping[str, Kind]) -> list[Role]:
    return sorted((one.place for one in chosen.values() if one.place), key=lambda role: role.name)


class _Uses:
    """What the code of a class does with the value of a parameter."""

    def __init__(self, factory: Callable[..., Any], name: str) -> None:
        self.texts: list[str] = []
        """What it is compared with, or looked up among."""
        self.kinds: list[Kind] = []
        """What can be used so; nothing where no use tells."""
        self._factory = factory
        nodes: list[ast.AST] = []
        for one in inspect.getmro(factory) if inspect.isclass(factory) else (factory,):
            with contextlib.suppress(OSError, TypeError, SyntaxError):  # not written in Python
                nodes += ast.walk(ast.parse(textwrap.dedent(inspect.getsource(one))))
        self._names = {name}
        for node in nodes:
            if isinstance(node, ast.Assign):
                self._follow(node.targets[0], node.value)
        for node in nodes:
            self._note(node)

    def _follow(self, target: ast.expr, value: ast.expr) -> None:
        """The attribute that a parameter is stored in is another name for it."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, given in zip(target.elts, value.elts, strict=False):
                self._follow(one, given)
        elif isinstance(target, ast.Attribute) and self._is_it(value):
            self._names.add(target.attr)

    def _is_it(self, node: ast.expr | None) -> bool:
        name = node.id if isinstance(node, ast.Name) else None
        return (node.attr if isinstance(node, ast.Attribute) else name) in self._names

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if self._is_it(left):
                self._compare(right)
                if isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
                    self.kinds += [*_NUMBERS, *_FRACTIONS]
            case ast.Match(subject=subject, cases=cases) if self._is_it(subject):
                for one in (part for case in cases for part in ast.walk(case.pattern)):
                    if isinstance(one, ast.MatchValue):
                        self._compare(one.value)
            case ast.Subscript(value=table, slice=key):
                if self._is_it(key):
                    self._compare(table)
                if self._is_it(table):
                    is_text = isinstance(key, ast.Constant) and isinstance(key.value, str)
                    self.kinds += _SAID if is_text else [*_LISTS, *_RATIOS, *_NAMED_POOLS, *_POOLS]
            case ast.Attribute(value=value, attr=attribute) if self._is_it(value):
                of_list, of_dict = hasattr(list, attribute), hasattr(dict, attribute)
                self.kinds += [*_LISTS, *_RATIOS, *_POOLS] if of_list else _SAID
                self.kinds += _NAMED_POOLS if of_dict else ()
            case ast.BinOp(left=left, right=right) if self._is_it(left) or self._is_it(right):
                self.kinds += [*_NUMBERS, *_FRACTIONS]
            case ast.For(iter=over) | ast.comprehension(iter=over) if self._is_it(over):
                self.kinds += [*_LISTS, *_RATIOS, *_POOLS, *_NAMED_POOLS]
            case ast.Call(func=function, args=arguments, keywords=keywords):
                if self._is_it(function) or any(
                    one.arg == "key" and self._is_it(one.value) for one in keywords
                ):
                    self.kinds += _FUNCTIONS
                elif isinstance(function, ast.Name) and any(map(self._is_it, arguments)):
                    self._passed_to(getattr(builtins, function.id, None))

    def _passed_to(self, function: object) -> None:
        """A number or a list, whichever a type of Python's own, or ``len``, takes."""
        call: Any = function
        if isinstance(function, type) or function in {len, sorted}:
            for value, kinds in ((2, _NUMBERS), ([2], [*_LISTS, *_RATIOS, *_POOLS])):
                with contextlib.suppress(Exception):
                    call(value)
                    self.kinds += kinds

    def _compare(self, node: ast.expr) -> None:
        """The constants in a display, or the keys of a table of the class or its module."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = node.id if isinstance(node, ast.Name) else node.attr
            module = sys.modules.get(getattr(self._factory, "__module__", ""))
            table = getattr(self._factory, name, None) or getattr(module, name, None)
            held = [*table] if isinstance(table, (dict, list, tuple, set, frozenset)) else []
        else:
            shown = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [node])
            held = [one.value for one in shown if isinstance(one, ast.Constant)]
        self.texts += [one for one in held if isinstance(one, str)]
