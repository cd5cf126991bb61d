"""Which part of which loader a ``set_epoch`` call reaches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from sampler_lint.analysis.origins import Hop, ends
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import SAMPLER_ARGUMENTS
from sampler_lint.domain.model import Model
from sampler_lint.limits import DEEPEST_SLICE
from sampler_lint.syntax.navigation import owner_of, same, unparse
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Name,
    Scope,
    last_name,
)

_ASIDE = re.compile(r"tests?$|test_|examples?|benchmarks?$|docs?$|tutorials?$")


class Origin(NamedTuple):
    """``loader.<path>`` as a function gets hold of it; ``node`` is where it does."""

    loader: Expr
    path: tuple[str, ...]
    node: Expr
    by_default: bool = False
    """Whether it came by ``getattr`` with a default, which is a guard of its own."""


def _receiver_of(model: Model, call: Call) -> Expr | None:
    """The object of ``x.set_epoch(…)``, also by ``f = getattr(x, "set_epoch", …); f(…)``."""
    for func in ends(model.flow, call.func, Hop.ASSIGNED):
        got = _attribute_of(func)
        if got is not None and got[1] == "set_epoch":
            return got[0]
    return None


def _attribute_of(expr: Expr) -> tuple[Expr, str] | None:
    """What an attribute is read of, by a dot or by ``getattr``, and its name."""
    if isinstance(expr, Attr):
        return expr.value, expr.name
    if isinstance(expr, Call) and last_name(expr.func) == "getattr" and len(expr.positional) > 1:
        name = expr.positional[1]
        if isinstance(name, Const) and isinstance(name.value, str):
            return expr.positional[0], name.value
    return None


class Reached:
    """What the ``set_epoch`` calls of a scope reach of which loader."""

    def __init__(self, model: Model, scope: Scope) -> None:
        self._paths: dict[str, list[tuple[Expr, set[tuple[str, ...]]]]] = {}
        """By how a loader is spelled: the loaders, as :func:`.same` tells them apart."""
        self._of_receiver: dict[object, Origin | None] = {}
        self._loaders_of: dict[object, list[Expr]] = {}
        self.calls: dict[Call, object] = {}
        """The calls, each with what its receiver is known by."""
        self.others: list[Expr] = []
        """The receivers that are no part of a loader."""
        for call in scope.calls:
            receiver = _receiver_of(model, call)
            if receiver is None:
                continue
            key = self.calls[call] = _variable(receiver) or receiver
            if key not in self._of_receiver:
                found = [*parts_of_loaders(model, receiver)]
                own = (origin for origin in found if origin.path == ("sampler",))
                self._of_receiver[key] = next(own, None)
                self._loaders_of[key] = [origin.loader for origin in found]
                if not found:
                    self.others.append(receiver)
                for origin in found:
                    self._paths_for(origin.loader).add(origin.path)

    def _paths_for(self, loader: Expr) -> set[tuple[str, ...]]:
        alike = self._paths.setdefault(unparse(loader), [])
        for other, paths in alike:
            if same(other, loader):
                return paths
        alike.append((loader, set()))
        return alike[-1][1]

    def loaders(self) -> Iterator[tuple[Expr, list[Call]]]:
        """Every loader of which a part is told the epoch, with the calls that tell it."""
        for loader, _ in chain.from_iterable(self._paths.values()):
            calls = [
                call
                for call, key in self.calls.items()
                if any(same(each, loader) for each in self._loaders_of[key])
            ]
            yield loader, calls

    def sampler_of_loader(self, call: Call) -> Origin | None:
        """The ``loader.sampler`` that the call is made of, if it is."""
        return self._of_receiver[self.calls[call]]

    def paths_of(self, loader: Expr) -> set[tuple[str, ...]]:
        """What the scope's calls reach of a loader."""
        return self._paths_for(loader)


def _variable(expr: Expr) -> tuple[object, ...] | None:
    if not isinstance(expr, Name):
        return None
    owner = owner_of(expr)
    return (expr.scope, expr.id, *(definitions(owner, expr) if owner is not None else ()))


def parts_of_loaders(
    model: Model, expr: Expr, within: frozenset[Expr] = frozenset()
) -> Iterator[Origin]:
    """The parts of a loader that ``expr`` may be, followed up to what a function is given.

    ``within`` is the reads of parts that it is the object of.
    """
    hops = Hop.ASSIGNED | Hop.ELEMENT | Hop.OPERAND | Hop.RETURN | Hop.ATTRIBUTE
    for found in ends(model.flow, expr, hops):
        got = _attribute_of(found)
        if got is None or got[1] not in SAMPLER_ARGUMENTS or found in within:
            continue
        base, name = got
        default = isinstance(found, Call) and len(found.positional) > 2
        reads = within | {found}
        inner = list(parts_of_loaders(model, base, reads)) if len(reads) < DEEPEST_SLICE else []
        inner = [each for each in inner if each.path[-1] == "batch_sampler"]
        for each in inner or [Origin(base, (), found)]:
            yield Origin(each.loader, (*each.path, name), found, default)


def is_handed_in(loader: Expr, loaders: list[Obj]) -> bool:
    """Whether other files build the loader and hand it to this function: others may too."""
    root: Expr = loader
    while isinstance(root, Attr):
        root = root.value
    if not isinstance(root, Name) or not isinstance(root.scope, Function):
        return False
    facts = root.scope.module
    return root.scope.param(root.id) is not None and all(
        obj.site is not None and obj.site.scope.module is not facts for obj in loaders
    )


def in_tests(model: Model, loader: Obj) -> bool:
    """Whether the tree's own tests or examples build the loader: its users' may be others."""
    if loader.site is None:
        return False
    folders = model.folders_of(model.module_of(loader.site.scope))
    return any(_ASIDE.match(folder) for folder in folders)


def answers_itself(model: Model, value: Obj) -> bool:
    """Whether a class of the tree says what its ``.sampler`` is, as wrappers of loaders do.

    One that hands on the ``.sampler`` of the loaders inside and nothing else is as good as none.
    """
    if not isinstance(value.cls, Class):
        return False
    for base in model.flow.own_mro(value.cls):
        if "sampler" in base.bindings:
            method = base.method("sampler")
            return method is None or not _hands_on_samplers(method)
    return False


def _hands_on_samplers(method: Function) -> bool:
    names = [read.name for read in method.reads]
    names += [
        str(arg.value.value)
        for call in method.calls
        for arg in call.args
        if isinstance(arg.value, Const)
    ]
    return "sampler" in names and "batch_sampler" not in names
