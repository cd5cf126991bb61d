"""Which values differ between the ranks of a program, and where the rank enters them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from sampler_lint.model.facts import (
    Attr,
    AugAssign,
    Bin,
    Binding,
    Call,
    Choice,
    Const,
    Expr,
    Function,
    Index,
    Name,
    Param,
    Scope,
    Store,
    dotted,
    last_name,
    walk,
)
from sampler_lint.model.flow import MISSING, passed, self_class
from sampler_lint.model.linked import Model
from sampler_lint.model.program_files import files_storing
from sampler_lint.model.project import Module

#: ``rank`` and what is put before it; the ranks of tensor, pipeline or expert parallelism share
#: their data, so they are not meant here.
_RANK_NAME = re.compile(
    r"^_?(?:(?:global|local|world|node|dist|ddp|dp|fsdp|data_parallel|process|proc|gpu|my|cur"
    r"|current|cuda|self|worker|trainer|distributed)_?)*rank(?:_id|_idx)?$"
    r"|^(?:process|proc|replica)_?(?:index|idx|id)$",
    re.IGNORECASE,
)
_RANK_CALLS = frozenset(
    {"get_rank", "get_local_rank", "get_global_rank", "local_rank", "global_rank", "rank"}
)
_RANK_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "SLURM_PROCID", "SLURM_LOCALID"})
#: What makes a value the same on every rank, or may.
_AGREE = re.compile(r"broadcast|all_?reduce|all_?gather|sync|shared|scatter", re.IGNORECASE)
#: Sums and the like differ when one operand does; quotients and remainders may not.
_KEEPS = frozenset({"Add", "Sub", "Mult", "BitXor", "BitOr", "LShift"})
_TRANSPARENT = frozenset({"int", "abs", "str", "float", "hash", "np.uint32", "numpy.uint32"})
_DEEPEST = 10


class RankTerm(NamedTuple):
    """Where the rank enters a value."""

    scope: Scope
    term: Expr
    """The rank itself (``dist.get_rank()``)."""
    whole: Expr
    """The expression it enters (``args.seed + dist.get_rank()``)."""
    hops: int
    """How many assignments, parameters and attributes lie between it and the value asked for."""


def rank_in(expr: Expr) -> Expr | None:
    """The rank, when ``expr`` is one by its name."""
    if isinstance(expr, (Name, Attr)):
        name = expr.id if isinstance(expr, Name) else expr.name
        return expr if _RANK_NAME.match(name) else None
    if isinstance(expr, Call):
        name = last_name(expr.func) or ""
        if name in _RANK_CALLS and not expr.positional:
            return expr
        if name in _TRANSPARENT and len(expr.positional) == 1:
            return rank_in(expr.positional[0])
        if name in {"get", "getenv"} and _is_rank_key(next(iter(expr.positional), None)):
            return expr
    if isinstance(expr, Index) and _is_rank_key(expr.key):
        return expr
    return None


def _is_rank_key(expr: Expr | None) -> bool:
    return isinstance(expr, Const) and expr.value in _RANK_VARIABLES


def differs(model: Model, expr: Expr, scope: Scope) -> RankTerm | None:
    """Where the rank enters ``expr``, if its value certainly differs between ranks.

    For a value that depends on a setting (``seed + rank if args.diff_seed else seed``) that is
    certain under that setting.
    """
    return _Slice(model).of(expr, scope, expr, 0)


def parameter_differs(model: Model, function: Function, param: Param) -> RankTerm | None:
    """The same for what the tree passes for a parameter."""
    return _Slice(model).parameter(function, param, 0)


_StoresByOwner: TypeAlias = "dict[object, list[tuple[int, Store]]]"


class _Slice:
    """One question: a walk backwards from a value to a rank."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._seen: set[object] = set()

    def of(self, expr: Expr, scope: Scope, whole: Expr, hops: int) -> RankTerm | None:
        term = rank_in(expr)
        if term is not None:
            return RankTerm(scope, term, whole, hops)
        if hops > _DEEPEST or id(expr) in self._seen:
            return None
        self._seen.add(id(expr))
        if isinstance(expr, Bin):
            if expr.op not in _KEEPS:
                return None
            return self.of(expr.left, scope, whole, hops) or self.of(expr.right, scope, whole, hops)
        if isinstance(expr, Choice):
            return self._first(self.of(option, scope, whole, hops) for option in expr.options)
        if isinstance(expr, Name):
            return self._name(expr, hops + 1)
        if isinstance(expr, Attr):
            return self._attribute(expr.value, expr.name, scope, hops + 1)
        if isinstance(expr, Index) and isinstance(expr.key, Const):
            return self._attribute(expr.value, str(expr.key.value), scope, hops + 1)
        if isinstance(expr, Call):
            return self._call(expr, scope, whole, hops)
        return None

    @staticmethod
    def _first(found: Iterator[RankTerm | None]) -> RankTerm | None:
        return next((term for term in found if term is not None), None)

    def _name(self, name: Name, hops: int) -> RankTerm | None:
        owner: Scope | None = name.scope
        while owner is not None and name.id not in owner.bindings:
            owner = owner.outer
        if owner is None:
            return None
        bindings = owner.bindings[name.id]
        if owner is name.scope and name.stmt is not None:
            bindings = _before(bindings, name)
        return self._first(self._binding(binding, owner, hops) for binding in reversed(bindings))

    def _binding(self, binding: Binding, owner: Scope, hops: int) -> RankTerm | None:
        if binding.how == "param" and isinstance(owner, Function):
            return self.parameter(owner, binding.payload, hops)
        if binding.value is None or binding.path:
            return None
        if binding.how == "aug":
            if not isinstance(binding.stmt, AugAssign) or binding.stmt.op not in _KEEPS:
                return None
            return self.of(binding.value, owner, binding.value, hops)
        if binding.how == "assign":
            return self.of(binding.value, owner, binding.value, hops)
        return None

    def parameter(self, function: Function, param: Param, hops: int) -> RankTerm | None:
        key = (function, param.name)
        if hops > _DEEPEST or key in self._seen:
            return None
        self._seen.add(key)
        return self._first(
            self.of(given, call.scope, given, hops + 1)
            for call in self.model.flow.callers(function)
            for given in self._given(function, param, call)
        )

    def _given(self, function: Function, param: Param, call: Call) -> Iterator[Expr]:
        bound = function.cls is not None and not function.is_static
        given = passed(function, param, call, is_bound=bound)
        if isinstance(given, Expr):
            yield given
        elif given is not MISSING:
            for arg in call.args:
                if arg.stars == 2:
                    yield from entries(self.model, arg.value, param.name)

    def _attribute(self, owner: Expr, name: str, scope: Scope, hops: int) -> RankTerm | None:
        """``args.seed``: what is stored in an attribute of that name of that thing."""
        here = self.model.module_of(scope)
        return self._first(
            self._store(store, hops)
            for module in files_storing(self.model, here, name, self_class(owner))
            for store in self._stores(module, name, owner)
        )

    def _stores(self, module: Module, name: str, owner: Expr) -> list[Store]:
        """What a file stores in an attribute of that name of that thing, in reading order."""
        by_owner: dict[object, _StoresByOwner] = self.model.memo.setdefault(_Slice, {})
        known = by_owner.get((module, name))
        if known is None:
            # Many classes of a long file may have the attribute: each asks for its own stores.
            known = by_owner[module, name] = {}
            for number, store in enumerate(module.facts.stores_by_name.get(name, ())):
                assert isinstance(store.target, Attr)
                target = store.target.value
                whose = self_class(target) or last_name(target)
                known.setdefault(whose, []).append((number, store))
        cls = self_class(owner)
        if cls is None:
            named = last_name(owner)
            return [store for _, store in known.get(named, ())] if named is not None else []
        found = [entry for base in self.model.flow.mro(cls) for entry in known.get(base, ())]
        return [store for _, store in sorted(found, key=lambda entry: entry[0])]

    def _store(self, store: Store, hops: int) -> RankTerm | None:
        if store.value is None or store.path:
            return None
        if store.how == "aug" and (
            not isinstance(store.stmt, AugAssign) or store.stmt.op not in _KEEPS
        ):
            return None
        return self.of(store.value, store.scope, store.value, hops)

    def _call(self, call: Call, scope: Scope, whole: Expr, hops: int) -> RankTerm | None:
        name = last_name(call.func) or ""
        if _AGREE.search(name):
            return None
        if dotted(call.func) in _TRANSPARENT and len(call.positional) == 1:
            return self.of(call.positional[0], scope, whole, hops)
        if name == "get" and isinstance(call.func, Attr) and call.positional:
            key = call.positional[0]
            if isinstance(key, Const) and isinstance(key.value, str):
                return self._attribute(call.func.value, key.value, scope, hops + 1)
            return None
        for function in self.model.flow.callees(call):
            if function.name == "__init__" or agrees(function):
                continue
            for stmt in function.returns:
                if stmt.value is not None:
                    found = self.of(stmt.value, function, stmt.value, hops + 1)
                    if found is not None:
                        return found
        return None


def agrees(scope: Scope) -> bool:
    """Whether the function talks to the other ranks, so that they may agree on a value."""
    return any(_AGREE.search(last_name(call.func) or "") for call in scope.calls)


def entries(model: Model, expr: Expr, key: str) -> Iterator[Expr]:
    """What ``expr`` (a dict that is followed) holds under ``key``, as expressions."""
    from sampler_lint.model.facts import Map
    from sampler_lint.model.flow import Table

    for value in model.flow.values(expr):
        if not isinstance(value, Table):
            continue
        node = value.node
        if isinstance(node, Map):
            for entry, item in node.items:
                if entry is None:
                    yield from entries(model, item, key)
                elif isinstance(entry, Const) and entry.value == key:
                    yield item
        else:
            given = node.keyword(key)
            if given is not None:
                yield given


def _before(bindings: list[Binding], name: Name) -> list[Binding]:
    """The bindings that can hold where ``name`` is read, in reading order.

    An assignment in the same block (or one around it) hides those before it.
    """
    assert name.stmt is not None
    out: list[Binding] = []
    around = {id(name.stmt.block), *(id(stmt.block) for stmt in name.stmt.ancestors())}
    for binding in bindings:
        if binding.stmt is None:
            out.append(binding)
        elif binding.stmt.order < name.stmt.order:
            reads_itself = binding.value is not None and any(
                isinstance(node, Name) and node.id == name.id for node in walk(binding.value)
            )
            if binding.how == "assign" and id(binding.stmt.block) in around and not reads_itself:
                out.clear()
            out.append(binding)
    return out
