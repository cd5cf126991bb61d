"""Which other names a function or class of a program is given to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Choice,
    Const,
    Expr,
    Function,
    Index,
    Lambda,
    Map,
    ModuleFacts,
    Name,
    Seq,
    last_name,
)
from sampler_lint.syntax.unread import word_of


def called_by(function: Function) -> str:
    """The name of a function as calls spell it; one that has none gets one of its own."""
    if function.name != "<lambda>":
        return function.name
    return f"<lambda>{id(function)}"


def names_meant(value: Expr | None) -> Iterator[str]:
    """The names of the functions or classes that an expression may be, or be a ``partial`` of."""
    if isinstance(value, (Name, Attr)):
        yield last_name(value) or ""
    elif isinstance(value, Index):
        yield from names_meant(value.value)
    elif isinstance(value, Choice):
        for option in value.options:
            yield from names_meant(option)
    elif isinstance(value, Seq):
        for element in value.items:
            yield from names_meant(element)
    elif isinstance(value, Map):
        for _, item in value.items:
            yield from names_meant(item)
    elif isinstance(value, Call) and last_name(value.func) == "partial" and value.positional:
        yield from names_meant(value.positional[0])
    elif isinstance(value, Call) and last_name(value.func) == "dict":
        for arg in value.args:
            yield from names_meant(arg.value)


class _Given(NamedTuple):
    """What a file gives names to; the same whatever is asked of it, so it is kept with its facts.

    Whether a name is that of a function or class may be for another file to say.
    """

    named: dict[str, set[str]]
    """Names with the variables, attributes and keywords that they are given to."""
    handed: dict[str, set[tuple[int, str]]]
    """By the name of what is called: the argument's position, and the name."""


def _given_in(facts: ModuleFacts) -> _Given:
    known: _Given | None = facts.memo.get(_given_in)
    if known is not None:
        return known
    known = facts.memo[_given_in] = _Given({}, {})
    named, handed = known

    def note(value: Expr | None, name: str) -> None:
        # Mostly a plain name, or none at all.
        for meant in (word_of(value),) if isinstance(value, Name) else _meant(value):
            named.setdefault(meant, set()).add(name)

    for scope in facts.scopes:
        for name, bindings in scope.bindings.items():
            for binding in bindings:
                is_listed = binding.how == "element" and isinstance(binding.value, Seq)
                if is_listed or (binding.how == "assign" and not binding.path):
                    note(binding.value, name)
        for store in scope.stores:
            if isinstance(store.target, Attr) and not store.path:
                note(store.value, store.target.name)
    for call in facts.all_calls:
        called = last_name(call.func) if call.args else None
        if called == "setattr" and len(call.positional) == 3:
            attribute = call.positional[1]
            if isinstance(attribute, Const) and isinstance(attribute.value, str):
                note(call.positional[2], attribute.value)
        for index, arg in enumerate(call.args):
            if arg.keyword is not None:
                note(arg.value, arg.keyword)
            elif called and isinstance(arg.value, (Name, Attr, Call, Lambda)):
                for meant in _meant(arg.value):
                    handed.setdefault(called, set()).add((index, meant))
    return known


def _meant(value: Expr | None) -> Iterator[str]:
    """The names that may be a function's or a class's; of a lambda, the one that it is called."""
    return iter((called_by(value.function),)) if isinstance(value, Lambda) else names_meant(value)


def may_be_class(name: str) -> bool:
    """Whether a name is spelled as classes are."""
    return name.lstrip("_")[:1].isupper()


def aliases_in(files: list[ModuleFacts]) -> dict[str, set[str]]:
    """Name of a function or class → names that it is given to in the files.

    Given as it is, as a ``partial``, or as one of several in a display or choice.
    """
    functions: dict[str, list[Function]] = {}
    for facts in files:
        for function in facts.functions:
            functions.setdefault(function.name, []).append(function)
    aliases: dict[str, set[str]] = {}
    # By a function's name: by an argument's position, what the parameter may be called.
    taken: dict[str, dict[int, set[str]]] = {}

    def is_one(name: str) -> bool:
        return name in functions or name[:1] == "<" or may_be_class(name)

    for facts in files:
        named, handed = _given_in(facts)
        for meant, names in named.items():
            if is_one(meant) and (others := names - {meant}):
                aliases.setdefault(meant, set()).update(others)
        for called in handed.keys() & functions.keys():
            if called not in taken:
                taken[called] = _taken_by(functions[called])
            for index, meant in handed[called]:
                if is_one(meant) and (others := taken[called].get(index, set()) - {meant}):
                    aliases.setdefault(meant, set()).update(others)
    return aliases


def _taken_by(functions: list[Function]) -> dict[int, set[str]]:
    """The names of the parameters at each position."""
    taken: dict[int, set[str]] = {}
    for function in functions:
        for position, param in enumerate(function.params[function.is_bound :]):
            taken.setdefault(position, set()).add(param.name)
    return taken
