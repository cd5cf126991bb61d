"""Which other names a function or class of a program is given to."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Choice,
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


def aliases_in(files: list[ModuleFacts]) -> dict[str, set[str]]:
    """Name of a function or class → names that it is given to in the files.

    Given as it is, as a ``partial``, or as one of several in a display or choice.
    """
    # By a function's name and an argument's position: what the parameter may be called.
    functions: dict[str, dict[int, set[str]]] = {}
    for facts in files:
        for function in facts.functions:
            taken = functions.setdefault(function.name, {})
            bound = function.is_bound
            for position, param in enumerate(function.params[bound:]):
                taken.setdefault(position, set()).add(param.name)
    aliases: dict[str, set[str]] = {}

    def note(value: Expr | None, name: str) -> None:
        # Mostly a plain name, or none at all.
        for meant in (value.id,) if isinstance(value, Name) else names_meant(value):
            if meant != name and (meant in functions or meant.lstrip("_")[:1].isupper()):
                aliases.setdefault(meant, set()).add(name)
        if isinstance(value, Lambda):
            aliases.setdefault(called_by(value.function), set()).add(name)

    for facts in files:
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
            takers = functions.get(last_name(call.func) or "") if call.args else None
            for index, arg in enumerate(call.args):
                if arg.keyword is not None:
                    note(arg.value, arg.keyword)
                elif takers is not None and isinstance(arg.value, (Name, Attr, Call, Lambda)):
                    for taker in takers.get(index, ()):
                        note(arg.value, taker)
    return aliases
