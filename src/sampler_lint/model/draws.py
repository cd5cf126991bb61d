"""Where a sampler draws at random, and what its generators are seeded with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint.model.facts import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    Function,
    If,
    Name,
    Scope,
    children,
    last_name,
    unparse,
    walk,
)
from sampler_lint.model.flow import Ext, FuncRef
from sampler_lint.model.linked import Model, scopes_inside

_DRAWS = frozenset(
    {
        "randperm", "shuffle", "permutation", "permuted", "multinomial", "randint", "randrange",
        "sample", "choice", "choices", "random_", "rand",
    }
)  # fmt: skip
#: What draws a seed instead of taking one.
_ENTROPY = frozenset({"seed", "initial_seed", "random_", "urandom", "time", "getrandbits"})
#: What differs between processes that were started alike, whatever they seeded.
_OWN = frozenset(
    {
        "os.getpid", "os.urandom", "secrets.randbelow", "secrets.randbits", "time.monotonic",
        "time.perf_counter", "time.time", "time.time_ns", "torch.seed", "uuid.uuid4",
    }
)  # fmt: skip
_GENERATORS = frozenset(
    {
        "random.Random",
        "numpy.random.RandomState",
        "numpy.random.default_rng",
        "numpy.random.Generator",
        "numpy.random.PCG64",
        "numpy.random.SeedSequence",
    }
)
_GLOBAL_SEEDERS = frozenset(
    {"random.seed", "numpy.random.seed", "torch.manual_seed", "torch.random.manual_seed"}
)
#: The modules whose own functions draw from a generator of the process.
_GLOBAL = frozenset({"random", "numpy.random", "torch"})
_LOCAL_SEEDERS = frozenset({"manual_seed", "seed"})
_PLAIN_CALLS = frozenset({"int", "abs", "hash", "str", "float"})


class Seeded(NamedTuple):
    """A call that seeds a generator."""

    call: Call
    seed: Expr
    generator: str | None
    """How the generator that it seeds is spelled; None for a library's own one."""


def draws(scope: Scope) -> bool:
    """Whether the scope itself draws at random."""
    return not _DRAWS.isdisjoint(scope.called)


def global_draw(model: Model, scope: Scope) -> Call | None:
    """A call of the scope that draws from a generator of the whole process."""
    for call in scope.calls:
        if last_name(call.func) not in _DRAWS or call.keyword("generator") is not None:
            continue
        for value in model.flow.values(call.func):
            if isinstance(value, Ext) and value.dotted.rpartition(".")[0] in _GLOBAL:
                return call
    return None


def is_drawn(expr: Expr) -> bool:
    """Whether a process draws the value for itself, so that no two ranks need agree on it."""
    return any(
        isinstance(node, Call) and last_name(node.func) in _DRAWS | _ENTROPY for node in walk(expr)
    )


def own_entropy(model: Model, expr: Expr) -> str | None:
    """The call in ``expr`` by which each process gets a value of its own, as it is spelled."""
    for node in walk(expr):
        if isinstance(node, Call) and any(_names(model, node.func, _OWN)):
            return f"{unparse(node.func)}()"
    return None


def drawn_before_seeding(model: Model, expr: Expr) -> str | None:
    """The draw that an unseeded process makes for itself, as it is spelled.

    ``random`` and numpy start from the system's entropy (torch does not); where the function seeds
    the process only afterwards, each process has drawn another value.
    """
    for node in walk(expr):
        if not isinstance(node, Call) or last_name(node.func) not in _DRAWS | _ENTROPY:
            continue
        values = [v for v in model.flow.values(node.func) if isinstance(v, Ext)]
        if not any(v.dotted.rpartition(".")[0] in {"random", "numpy.random"} for v in values):
            continue
        seeders = [call for call in node.scope.calls if _seeds_process(model, call)]
        if seeders and all((c.row, c.col) > (node.row, node.col) for c in seeders):
            return f"{unparse(node.func)}()"
    return None


def _seeds_process(model: Model, call: Call) -> bool:
    """Whether a call seeds a generator of the process, itself or one function further."""
    if any(_names(model, call.func, _GLOBAL_SEEDERS)):
        return True
    return any(
        any(_names(model, inner.func, _GLOBAL_SEEDERS))
        for value in model.flow.values(call.func)
        if isinstance(value, FuncRef)
        for inner in value.function.calls
    )


def assigned(expr: Expr) -> Iterator[Expr]:
    """What a local name may hold by the assignments of its function; else the expression."""
    bindings = expr.scope.bindings.get(expr.id, []) if isinstance(expr, Name) else []
    values = [b.value for b in bindings if b.how == "assign" and not b.path and b.value is not None]
    yield from values or [expr]


def seeded(model: Model, scope: Scope) -> Iterator[Seeded]:
    """Every call of the scope that seeds a generator, with what it is seeded with."""
    for call in scope.calls:
        given = call.positional[0] if call.positional else call.keyword("seed")
        if given is None:
            continue
        if any(_names(model, call.func, _GENERATORS)):
            yield Seeded(call, given, _assigned_to(call))
        elif any(_names(model, call.func, _GLOBAL_SEEDERS)):
            yield Seeded(call, given, None)
        elif last_name(call.func) in _LOCAL_SEEDERS and isinstance(call.func, Attr):
            made = call.func.value
            if isinstance(made, Call):
                yield Seeded(call, given, _assigned_to(call) or _assigned_to(made))
            elif not any(isinstance(v, Ext) and "()" not in v.dotted for v in _values(model, made)):
                yield Seeded(call, given, last_name(made))


def _values(model: Model, expr: Expr) -> frozenset[object]:
    return frozenset(model.flow.values(expr))


def _names(model: Model, func: Expr, wanted: frozenset[str]) -> Iterator[str]:
    if last_name(func) in {name.rpartition(".")[2] for name in wanted}:
        for value in model.flow.values(func):
            if isinstance(value, Ext) and value.dotted in wanted:
                yield value.dotted


def _assigned_to(call: Call) -> str | None:
    from sampler_lint.model.facts import Assign

    if isinstance(call.stmt, Assign) and any(node is call for node in walk(call.stmt.value)):
        return last_name(call.stmt.targets[0])
    return None


def ingredients(expr: Expr, depth: int = 0) -> Iterator[Expr]:
    """The names, attributes and other leaves that arithmetic on a seed is made of.

    A local name that is assigned once stands for what it is assigned.
    """
    if isinstance(expr, Name) and isinstance(expr.scope, Function) and depth < 4:
        bindings = expr.scope.bindings.get(expr.id, [])
        if len(bindings) == 1 and bindings[0].how == "assign" and not bindings[0].path:
            value = bindings[0].value
            if value is not None:
                yield from ingredients(value, depth + 1)
                return
    if isinstance(expr, Call) and last_name(expr.func) in _PLAIN_CALLS and expr.positional:
        for arg in expr.positional:
            yield from ingredients(arg, depth)
        return
    if isinstance(expr, (Name, Attr, Const, Call)):
        yield expr
        return
    below = children(expr)
    if not below:
        yield expr
    for child in below:
        yield from ingredients(child, depth)


def bare_generator(cls: Class, init: Function, parameter: str) -> bool:
    """Whether the class draws from a new ``torch.Generator()`` when ``parameter`` is None.

    Such a generator always starts at torch's default seed (67280421310721).
    """
    if not any(last_name(call.func) == "Generator" for call in init.calls):
        return False
    if any(last_name(call.func) in _ENTROPY | _DRAWS for call in init.calls):
        return False
    seeders = [
        call
        for scope in scopes_inside(cls)
        for call in scope.calls
        if last_name(call.func) in {"manual_seed", "set_state"}
    ]
    return bool(seeders) and all(_only_if_given(call, parameter) for call in seeders)


def _only_if_given(call: Call, parameter: str) -> bool:
    if call.stmt is None:
        return False
    return any(
        isinstance(stmt, If)
        and not stmt.orelse
        and any(
            isinstance(node, (Name, Attr))
            and (node.id if isinstance(node, Name) else node.name).lstrip("_") == parameter
            for node in walk(stmt.test)
        )
        for stmt in call.stmt.ancestors()
    )
