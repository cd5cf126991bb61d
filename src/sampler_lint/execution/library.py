"""What builtins, the standard library, torch and numpy do, as far as samplers use them.

A function that is not known gives :data:`UNKNOWN` if it cannot change its arguments. Each that
is known says in its table what it costs (:class:`~.budget.Cost`).
"""

from __future__ import annotations

import math
import re
from enum import Enum, auto
from functools import lru_cache
from typing import Any

from sampler_lint.execution.agreement import agreed
from sampler_lint.execution.arrays import ARRAYS, ORDERS, RANDOM, SEEDS, TORCH
from sampler_lint.execution.budget import BUDGET, Op
from sampler_lint.execution.builtin import BUILTINS, MATH
from sampler_lint.execution.errors import CannotTellError
from sampler_lint.execution.standard import ANYWHERE, DOTTED, place_of
from sampler_lint.execution.values import Array, Data, External, Given, Instance, Run, perform

_SILENT = ("builtins.print", "logging.", "warnings.", "loguru.", "gc.")


@lru_cache(1 << 12)  # asked of each call, as what follows
def is_silent(dotted: str) -> bool:
    """Whether a call only says something to the user."""
    return dotted.startswith(_SILENT)


def is_isinstance(callee: External) -> bool:
    """Whether it is the builtin function."""
    return callee.dotted == "builtins.isinstance"


def is_known(callee: External) -> bool:
    """Whether it is told here what a call does, or how it draws."""
    return _known(callee.dotted) != (None, None)


def external_attribute(owner: External, name: str) -> Any:
    """An attribute of something outside the tree."""
    if owner.dotted in _PURE and isinstance(number := getattr(math, name, None), float):
        return number
    if owner.dotted == "sys" and name == "maxsize":
        return 2**63 - 1
    if owner.dotted == "numpy" and name == "newaxis":
        return None
    if name == "__name__":
        return owner.dotted.rpartition(".")[2]
    BUDGET.text(len(owner.dotted) + len(name))
    return External(f"{owner.dotted}.{name}", owner.stream)


def external(run: Run, callee: External, args: list[Any], keywords: dict[str, Any]) -> Any:
    """A call of something outside the tree."""
    dotted = callee.dotted
    op, does = _known(dotted)
    if does is _Does.SEED:
        args = [callee, *args]
    elif does is not None:
        run.outside += 1
        given = keywords.get("generator")
        source = callee if given is None else given
        stream = run.stream(source) if isinstance(source, External) else None
        run.chance.draw(stream, is_order=does is _Does.ORDER)
    if op is not None:
        return perform(op, run, args, keywords)
    root, _, rest = dotted.partition(".")
    last = dotted.rpartition(".")[2]
    if not _is_pure(dotted, keywords) and any(
        isinstance(a, (list, dict, Array, Instance, set)) for a in [*args, *keywords.values()]
    ):
        raise CannotTellError(f"what {dotted} does")
    if root == "torch" and ".distributed" in dotted:
        raise CannotTellError(f"what {dotted} does")
    run.outside += 1
    for given in [*args, *keywords.values()]:
        if isinstance(given, External) and given.stream is not None:
            run.chance.use(given.stream)
    if root == "random" or rest.startswith("random."):
        run.chance.forget(run.stream(callee))
    if not _is_pure(dotted, keywords):
        run.chance.tell(dotted, [*args, *keywords.values()])
    for arg in args:
        if isinstance(arg, Given) or (Data.traced and isinstance(arg, Data)):
            return arg.made_by(last)
    return agreed(run, last, [*args, *keywords.values()])


#: Libraries that make arrays and random numbers.
_NUMERIC = frozenset({"numpy", "random", "torch"})
#: Libraries of which all functions but a few give something new.
_PURE = frozenset(
    {"math", "numpy", "operator", "pandas", "scipy", "sklearn", "statistics", "torch"}
)
#: In names of functions that change what they are given.
_CHANGES = re.compile(r"_$|shuffle|\.(put|copyto|fill|place)|heap|out$")


def _is_pure(dotted: str, keywords: dict[str, Any]) -> bool:
    """Whether a function of a library leaves its arguments as they are."""
    root = dotted.partition(".")[0]
    return (
        root in _PURE
        and ".distributed" not in dotted
        and "out" not in keywords
        and _CHANGES.search(dotted) is None
    )


class _Does(Enum):
    """What a function does to a generator of random numbers."""

    SEED = auto()
    DRAW = auto()
    ORDER = auto()
    """It draws an order."""


@lru_cache(1 << 12)
def _known(dotted: str) -> tuple[Op | None, _Does | None]:
    """The function of that name, if it is known here."""
    root, _, rest = dotted.partition(".")
    if root == "builtins":
        return BUILTINS.get(rest) or DOTTED.get(rest), None
    if root == "math":
        return MATH.get(rest), None
    last = dotted.rpartition(".")[2]
    op = None
    if root in _NUMERIC:
        if last in SEEDS:
            return SEEDS[last], _Does.SEED
        is_own = last == rest
        if last in RANDOM and ((root != "numpy" and is_own) or rest.startswith("random.")):
            return RANDOM[last], _Does.ORDER if last in ORDERS else _Does.DRAW
        if root != "random" and is_own:
            op = (TORCH.get(last) if root == "torch" else None) or ARRAYS.get(last)
    return op or place_of(last) or ANYWHERE.get(last) or DOTTED.get(dotted), None
