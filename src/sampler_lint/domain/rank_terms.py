"""Which values differ between the ranks of a program, and which are the same on all of them.

One backward slice answers both: it follows a value to where it comes from, through assignments,
parameters, attributes and returns. Where it meets the rank, the value differs; where every
source is a literal or the configuration, the value is shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from sampler_lint.analysis.points_to import MISSING, passed
from sampler_lint.domain.concepts import COLLECTIVE, ENVIRONMENT, NUMBER, RANK
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import files_storing
from sampler_lint.domain.seeds import is_seed_name
from sampler_lint.limits import DEEPEST_SLICE
from sampler_lint.syntax.nodes import (
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
    Unary,
    dotted,
    last_name,
    self_class,
    unparse,
    walk,
)
from sampler_lint.workspace.project import Module

#: Sums and the like differ when one operand does; quotients and remainders may not.
_KEEPS = frozenset({"Add", "Sub", "Mult", "BitXor", "BitOr", "LShift"})
#: Builtins that give every process the same for the same (``hash`` of a text does not).
_PURE = frozenset({"int", "abs", "float", "max", "min", "round", "pow", "len", "bool"})


class RankTerm(NamedTuple):
    """Where the rank enters a value."""

    scope: Scope
    term: Expr
    """The rank itself (``dist.get_rank()``)."""
    whole: Expr
    """The expression it enters (``args.seed + dist.get_rank()``)."""
    hops: int
    """How many assignments, parameters and attributes lie between it and the value asked for."""


class Source(NamedTuple):
    """Where a value comes from: the end of one backward way."""

    scope: Scope
    expr: Expr
    whole: Expr
    """The expression it enters."""
    hops: int
    kind: str
    """``rank``, ``literal``, ``setting`` (a command line, a configuration), ``text`` (a variable
    of the environment), ``agreed`` (the ranks talked about it), ``unknown``."""
    is_kept: bool = True
    """Whether the value differs wherever the source does: sums keep that, remainders may not."""


def rank_in(expr: Expr) -> Expr | None:
    """The rank, when ``expr`` is one by its name."""
    if isinstance(expr, (Name, Attr)):
        return expr if RANK.names(expr) else None
    if isinstance(expr, Call):
        if RANK.is_call(expr) and not expr.positional:
            return expr
        if NUMBER.is_call(expr) and len(expr.positional) == 1:
            return rank_in(expr.positional[0])
        if ENVIRONMENT.is_call(expr) and _is_rank_key(next(iter(expr.positional), None)):
            return expr
    if isinstance(expr, Index) and _is_rank_key(expr.key):
        return expr
    return None


def _is_rank_key(expr: Expr | None) -> bool:
    return isinstance(expr, Const) and expr.value in RANK.variables


def differs(model: Model, expr: Expr, scope: Scope) -> RankTerm | None:
    """Where the rank enters ``expr``, if its value certainly differs between ranks.

    For a value that depends on a setting (``seed + rank if args.diff_seed else seed``) that is
    certain under that setting.
    """
    return _first_rank(_Slice(model, whole=False).of(_Way(scope, expr), expr))


def parameter_differs(model: Model, function: Function, param: Param) -> RankTerm | None:
    """The same for what the tree passes for a parameter."""
    return _first_rank(_Slice(model, whole=False).parameter(function, param, 0, is_kept=True))


def _first_rank(sources: Iterator[Source]) -> RankTerm | None:
    found = (each for each in sources if each.kind == "rank" and each.is_kept)
    return next((RankTerm(s.scope, s.expr, s.whole, s.hops) for s in found), None)


def why_not_shared(model: Model, expr: Expr, scope: Scope) -> str | None:
    """Why ``expr`` may differ between processes or be no int; None if it is an int all share.

    A setting whose kind nobody states counts as what the program takes it for.
    """
    for source in _Slice(model, whole=True).of(_Way(scope, expr), expr):
        shown = unparse(source.expr)
        place = model.place(source.scope, source.expr)
        if source.kind == "rank":
            return f"{place}: `{shown}` differs between the ranks"
        if source.kind == "unknown":
            return f"{place}: whether `{shown}` is the same on every process is not known"
        if source.kind == "text" or (source.kind == "literal" and not is_number(source.expr)):
            return f"{place}: `{shown}` is not an int"
    return None


def is_number(expr: Expr) -> bool:
    """Whether a literal is an int."""
    return isinstance(expr, Const) and type(expr.value) is int


class _Way(NamedTuple):
    """How a backward walk came to an expression."""

    scope: Scope
    whole: Expr
    hops: int = 0
    is_kept: bool = True


_StoresByOwner: TypeAlias = "dict[object, list[tuple[int, Store]]]"


class _Slice:
    """One question: a walk backwards from a value to its sources."""

    def __init__(self, model: Model, *, whole: bool) -> None:
        """``whole``: whether all sources are asked for, not only those that a value keeps."""
        self.model = model
        self._whole = whole
        self._seen: set[object] = set()

    def of(self, way: _Way, expr: Expr) -> Iterator[Source]:
        """The sources of an expression."""
        if rank_in(expr) is not None:
            term = rank_in(expr)
            assert term is not None
            yield self._source(way, term, "rank")
            return
        if way.hops > DEEPEST_SLICE:
            yield self._source(way, expr, "unknown")
            return
        if id(expr) in self._seen:
            return
        self._seen.add(id(expr))
        if isinstance(expr, Const):
            yield self._source(way, expr, "literal")
        elif isinstance(expr, Bin):
            kept = way.is_kept and expr.op in _KEEPS
            if kept or self._whole:
                for side in (expr.left, expr.right):
                    yield from self.of(way._replace(is_kept=kept), side)
        elif isinstance(expr, Choice):
            yield from self._choice(way, expr)
        elif isinstance(expr, Unary) and self._whole and expr.op != "Not":
            yield from self.of(way, expr.operand)
        elif isinstance(expr, Name):
            yield from self._name(expr, way)
        elif isinstance(expr, Attr):
            yield from self._attribute(way, expr, expr.value, expr.name)
        elif isinstance(expr, Index) and dotted(expr.value) in ENVIRONMENT.made_by:
            yield self._source(way, expr, "text")
        elif isinstance(expr, Index) and isinstance(expr.key, Const):
            yield from self._attribute(way, expr, expr.value, str(expr.key.value))
        elif isinstance(expr, Call):
            yield from self._call(way, expr)
        else:
            yield self._source(way, expr, "unknown")

    @staticmethod
    def _source(way: _Way, expr: Expr, kind: str) -> Source:
        return Source(way.scope, expr, way.whole, way.hops, kind, way.is_kept)

    def _choice(self, way: _Way, choice: Choice) -> Iterator[Source]:
        for option in choice.options:
            # `seed or 0` is no None, whatever the setting's default is.
            if self._whole and choice.kind == "or" and option is not choice.options[-1]:
                for source in self.of(way, option):
                    falsy = source.kind == "literal" and not getattr(source.expr, "value", True)
                    if not falsy:
                        yield source
                continue
            yield from self.of(way, option)
        if self._whole and choice.test is not None:
            for source in _Slice(self.model, whole=True).of(way, choice.test):
                # What only decides between shared values may be any option of the configuration.
                is_option = source.kind == "unknown" and isinstance(source.expr, Attr)
                if source.kind in {"rank", "unknown"} and not is_option:
                    yield source

    def _name(self, name: Name, way: _Way) -> Iterator[Source]:
        owner: Scope | None = name.scope
        while owner is not None and name.id not in owner.bindings:
            owner = owner.outer
        if owner is None:
            yield self._source(way, name, "unknown")
            return
        bindings = owner.bindings[name.id]
        if owner is name.scope and name.stmt is not None:
            bindings = _before(bindings, name)
        for binding in reversed(bindings):
            yield from self._binding(binding, owner, name, way)

    def _binding(self, binding: Binding, owner: Scope, name: Name, way: _Way) -> Iterator[Source]:
        hops = way.hops + 1
        value = binding.value
        if binding.how == "param" and isinstance(owner, Function):
            yield from self.parameter(owner, binding.payload, hops, is_kept=way.is_kept)
        elif binding.how == "import":
            constants = self.model.flow.constants(name)
            kind = "setting" if constants and all(type(c) is int for c in constants) else "unknown"
            yield self._source(way, name, kind)
        elif value is None or binding.path or binding.how not in {"aug", "assign"}:
            yield self._source(way, name, "unknown")
        else:
            kept = way.is_kept and (
                binding.how == "assign"
                or (isinstance(binding.stmt, AugAssign) and binding.stmt.op in _KEEPS)
            )
            if kept or self._whole:
                yield from self.of(_Way(owner, value, hops, kept), value)

    def parameter(
        self, function: Function, param: Param, hops: int, *, is_kept: bool
    ) -> Iterator[Source]:
        """The sources of what the tree passes for a parameter."""
        key = (function, param.name)
        if hops > DEEPEST_SLICE or key in self._seen:
            return
        self._seen.add(key)
        if self._whole and param.default is not None:
            yield from self.of(_Way(function, param.default, hops, is_kept), param.default)
        for call in self.model.flow.callers(function):
            for given in self._given(function, param, call):
                yield from self.of(_Way(call.scope, given, hops + 1, is_kept), given)

    def _given(self, function: Function, param: Param, call: Call) -> Iterator[Expr]:
        bound = function.cls is not None and not function.is_static
        given = passed(function, param, call, is_bound=bound)
        if isinstance(given, Expr):
            yield given
        elif given is not MISSING:
            for arg in call.args:
                if arg.stars == 2:
                    yield from entries(self.model, arg.value, param.name)

    def _attribute(self, way: _Way, expr: Expr, owner: Expr, name: str) -> Iterator[Source]:
        """``args.seed``: what is stored in an attribute of that name of that thing."""
        here = self.model.module_of(way.scope)
        yield self._source(way, expr, "setting" if is_seed_name(name) else "unknown")
        for module in files_storing(self.model, here, name, self_class(owner)):
            for store in self._stores(module, name, owner):
                yield from self._store(store, way)
        if self._whole:
            yield from self._defaults(way, here, name)

    def _defaults(self, way: _Way, here: Module, name: str) -> Iterator[Source]:
        """What a setting is if nobody sets it: the default of an option, or of a class's field."""
        program = self.model.project.program_of(here)
        given: list[tuple[Scope, Expr]] = []
        for call in self.model.project.calls_in(program, "add_argument"):
            flags = {
                str(f.value).lstrip("-").replace("-", "_")
                for f in call.positional
                if isinstance(f, Const)
            }
            default = call.keyword("default")
            if name not in flags:
                continue
            if default is not None:
                given.append((call.scope, default))
            kind = call.keyword("type")
            if call.keyword("nargs") is not None or (
                kind is not None and last_name(kind) in {"str", "float", "bool"}
            ):
                yield self._source(_Way(call.scope, call), call, "text")
        for module in self.model.project.modules_in(program):
            for cls in module.facts.classes:
                bindings = cls.bindings.get(name, ())
                given += [(cls, each.value) for each in bindings if each.value is not None]
        for scope, value in given:
            if isinstance(value, Call) and last_name(value.func) == "field":
                value = value.keyword("default_factory") or value.keyword("default") or value
                if not isinstance(value, Const):
                    yield self._source(_Way(scope, value), value, "unknown")
                    continue
            yield from self.of(_Way(scope, value, way.hops + 1, way.is_kept), value)

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

    def _store(self, store: Store, way: _Way) -> Iterator[Source]:
        if store.value is None or store.path:
            if self._whole:
                yield self._source(way, store.target, "unknown")
            return
        kept = way.is_kept and (
            store.how != "aug" or (isinstance(store.stmt, AugAssign) and store.stmt.op in _KEEPS)
        )
        if kept or self._whole:
            yield from self.of(_Way(store.scope, store.value, way.hops + 1, kept), store.value)

    def _call(self, way: _Way, call: Call) -> Iterator[Source]:
        name = last_name(call.func) or ""
        if COLLECTIVE.says(name):
            yield self._source(way, call, "agreed")
            return
        if self._whole and dotted(call.func) in _PURE:
            for argument in call.args:
                for source in self.of(way._replace(is_kept=False), argument.value):
                    if source.kind not in {"literal", "text"}:
                        yield source
            return
        if not self._whole and NUMBER.is_call(call) and len(call.positional) == 1:
            yield from self.of(way, call.positional[0])
            return
        if ENVIRONMENT.is_call(call) and call.positional:
            key = call.positional[0]
            if isinstance(key, Const) and isinstance(key.value, str):
                owner = call.func.value if isinstance(call.func, Attr) else None
                if name == "getenv" or dotted(owner) in ENVIRONMENT.made_by:
                    yield self._source(way, call, "text")
                elif owner is not None:
                    yield from self._attribute(way, call, owner, key.value)
                for default in call.positional[1:] if self._whole else ():
                    yield from self.of(way, default)
                return
        is_known = False
        for function in self.model.flow.callees(call):
            if function.name == "__init__":
                continue
            is_known = bool(function.returns)
            if agrees(function):
                yield self._source(way, call, "agreed")
                continue
            for stmt in function.returns:
                if stmt.value is not None:
                    way_in = _Way(function, stmt.value, way.hops + 1, way.is_kept)
                    yield from self.of(way_in, stmt.value)
        if not is_known:
            yield self._source(way, call, "unknown")


def agrees(scope: Scope) -> bool:
    """Whether the function talks to the other ranks, so that they may agree on a value."""
    return any(COLLECTIVE.names(call.func) for call in scope.calls)


def entries(model: Model, expr: Expr, key: str) -> Iterator[Expr]:
    """What ``expr`` (a dict that is followed) holds under ``key``, as expressions."""
    from sampler_lint.analysis.points_to import Table
    from sampler_lint.syntax.nodes import Map

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
