"""What goes into tuples, lists and dicts, and comes out of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable
from functools import partial

from sampler_lint import catalog
from sampler_lint.analysis.fillings import (
    Entry,
    Filling,
    Part,
    of_same_key,
    put_by,
    put_in_dicts,
    put_in_lists,
)
from sampler_lint.analysis.hierarchy import Hierarchy
from sampler_lint.analysis.reaching import may_run_before
from sampler_lint.analysis.solver import Var
from sampler_lint.analysis.values import (
    TOO_MUCH,
    AnyModule,
    ClassRef,
    Ext,
    ExtObj,
    Frame,
    Gen,
    Lit,
    Obj,
    Pack,
    Table,
    Unknown,
    Value,
    Values,
    View,
)
from sampler_lint.syntax.navigation import stmt_of
from sampler_lint.syntax.nodes import (
    Call,
    Class,
    Comp,
    Const,
    Expr,
    Function,
    Map,
    Nth,
    Seq,
    last_name,
)
from sampler_lint.workspace.project import Project


class _Waiting:
    """Those who wait for what is put into one container, and what has been so far."""

    __slots__ = ("found", "takers")

    def __init__(self) -> None:
        self.found: dict[tuple[Expr, tuple[Part, ...]], None] = {}
        self.takers: list[Callable[[Expr, tuple[Part, ...]], None]] = []

    def take(self, taker: Callable[[Expr, tuple[Part, ...]], None]) -> None:
        self.takers.append(taker)
        for source, path in tuple(self.found):
            taker(source, path)

    def tell(self, source: Expr, path: tuple[Part, ...]) -> None:
        if (source, path) not in self.found:
            self.found[source, path] = None
            for taker in tuple(self.takers):
                taker(source, path)


def _pseudo(name: str) -> Function:
    function = Function()
    function.name, function.outer = name, None
    function.calls, function.params, function.returns, function.yields = [], [], [], []
    function.body, function.stores, function.reads, function.decorators = [], [], [], []
    function.bindings = {}
    return function


#: The methods of a dict that give all that it holds.
VIEWS = ("items", "values")
_READS_TABLE = (*VIEWS, "get", "pop", "setdefault")
TABLE_METHODS = {name: _pseudo(name) for name in _READS_TABLE}
TABLE_METHOD_NAMES = {id(function): name for name, function in TABLE_METHODS.items()}


class Containers(Hierarchy):
    """Follows what is put into tuples, lists and dicts, and taken out again."""

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        self._waiting: dict[object, dict[Expr, _Waiting]] = {}
        self._kwargs: dict[tuple[Function, Call], Table] = {}
        """What calls fill the ``**kwargs`` of functions with."""

    @abstractmethod
    def _attribute(self, value: Value, name: str, var: Var) -> None:
        """Let flow into ``var`` the attribute ``name`` of a value."""

    @abstractmethod
    def _member_of_any(self, value: AnyModule, name: str, var: Var) -> None:
        """Let flow into ``var`` what a module that is imported by a computed name may hold."""

    @abstractmethod
    def _any_member(self, path: str, unknown: Unknown, var: Var) -> None:
        """Let flow into ``var`` each function and class that a module has, or ``unknown``."""

    @abstractmethod
    def _returned(self, function: Function) -> Var:
        """What a function returns, whoever calls it."""

    @abstractmethod
    def _flow_in_call(
        self, expr: Expr, function: Function, call: Call, var: Var, *outer: Frame
    ) -> None:
        """Let flow the values of an expression of ``function``, as one call of it sees them."""

    def _part(self, source: Var, path: tuple[Part, ...]) -> Var:
        """The part of a value that ``a, (b, c) = value`` gives by its path."""
        for step in path:
            if step is None:
                source = self._elements(source)
            elif isinstance(step, Entry):
                source = (self._indexed if step.by_index else self._entry)(source, step.key)
            else:
                source = self._component(source, step)
        return source

    def _entry(self, source: Var, key: str | None) -> Var:
        """What a dict holds under a key."""

        def start(var: Var) -> None:
            self._on(source, lambda value: self._merged(value, key, var))

        return self._get(("entry", source, key), start)

    def _indexed(self, source: Var, key: object) -> Var:
        """What ``value[key]`` gives; by any key if that is None."""

        def start(var: Var) -> None:
            self._on(source, lambda value: self._item(value, key, var))

        return self._get(("item", source, key), start)

    def _component(self, source: Var, index: int) -> Var:
        def start(var: Var) -> None:
            self._on(source, lambda value: self._pick(value, index, var))

        targets = (index.targets, index.starred) if isinstance(index, Nth) else None
        return self._get(("part", source, index, targets), start)

    def _pick(self, value: Value, index: int, var: Var) -> None:
        if isinstance(value, Pack) and isinstance(value.node, Seq):
            if isinstance(index, Nth) and not index.may_be_of(value.node):
                return  # it comes from another branch: taking this one apart would fail
            if -len(value.node.items) <= index < len(value.node.items):
                self._flow_inside(value, value.node.items[index], var)
            else:
                self._appended(value, var)
        elif isinstance(value, Pack):
            for element in value.items:
                self._flow_inside(value, element, var)
        elif isinstance(value, ExtObj) and value.dotted == "enumerate" and index == 1:
            for arg in value.site.positional[:1]:
                self._flow(self._elements(self._expr(arg)), var)
        elif isinstance(value, ExtObj) and value.dotted == "zip":
            if 0 <= index < len(value.site.positional):
                self._flow(self._elements(self._expr(value.site.positional[index])), var)
        elif isinstance(value, ExtObj) and (params := catalog.handed_back(value.dotted)):
            self._pick_handed_back(value.site, params, index, var)
        elif isinstance(value, View) and value.items and index == 1:
            self._table_values(value.table, None, var)
        elif isinstance(value, Obj) and isinstance(value.cls, Class):
            names = self.fields(value.cls)
            if 0 <= index < len(names) and self._is_named_tuple(value.cls):
                self._attribute(value, names[index], var)
            else:
                self._add(var, Unknown("unpacked from an object"))
        elif not isinstance(value, Lit):
            self._add(var, value if isinstance(value, Unknown) else Unknown("unpacked"))

    def _pick_handed_back(self, call: Call, params: tuple[str, ...], index: int, var: Var) -> None:
        given = call.keyword(params[index]) if -len(params) <= index < len(params) else None
        if given is None and 0 <= index < len(call.positional) and not call.has_star:
            given = call.positional[index]
        if given is not None:
            self._flow(self._expr(given), var)
        else:
            self._add(var, Unknown("unpacked"))

    def _elements(self, source: Var) -> Var:
        """What iterating over a value gives."""

        def start(var: Var) -> None:
            self._on(source, lambda value: self._iterate(value, var))

        return self._get(("elements", source), start)

    def _entered(self, source: Var) -> Var:
        """What ``with value as name`` binds: what ``__enter__`` returns, or a generator yields."""

        def sink(value: Value, var: Var) -> None:
            if isinstance(value, Gen):
                self._iterate(value, var)
                return
            enter = None
            if isinstance(value, Obj) and isinstance(value.cls, Class):
                enter = self.method(value.cls, "__enter__")
            if isinstance(enter, Function):
                self._flow(self._returned(enter), var)
            else:
                self._add(var, value)

        return self._get(
            ("entered", source), lambda var: self._on(source, lambda value: sink(value, var))
        )

    def _iterate(self, value: Value, var: Var) -> None:
        if isinstance(value, Pack):
            for item in value.items:
                self._flow_inside(value, item, var)
            self._appended(value, var)
        elif isinstance(value, ExtObj) and value.dotted in {"enumerate", "zip"}:
            self._add(var, value)
        elif isinstance(value, View):
            if value.items:
                self._add(var, value)
            else:
                self._table_values(value.table, None, var)
        elif isinstance(value, Gen):
            for produced in value.function.yields:
                if produced.value is None:
                    continue
                source = self._expr(produced.value)
                self._flow(self._elements(source) if produced.delegates else source, var)
        else:
            self._add(var, value if isinstance(value, Unknown) else Unknown("an element"))

    def _item(self, value: Value, key: object, var: Var) -> None:
        if isinstance(value, (Ext, ClassRef)):
            self._add(var, value)  # Generic[int]
        elif isinstance(value, Pack):
            if isinstance(key, int) and isinstance(value.node, Seq):
                self._pick(value, key, var)
                self._appended(value, var)
            else:
                self._iterate(value, var)
        elif isinstance(value, Table):
            self._table_values(value, key if isinstance(key, str) else None, var)
        elif isinstance(value, Unknown):
            self._add(var, value)
        elif isinstance(value, Obj) and isinstance(
            getter := self.method(value.cls, "__getitem__"), Function
        ):
            self._flow(self._returned(getter), var)
        elif isinstance(value, ExtObj) and isinstance(key, str) and key.isidentifier():
            self._add(var, ExtObj(value.dotted_attribute(key), value.site))
        else:
            self._add(var, Unknown("an item of a container that is not followed"))

    def _appended(self, pack: Pack, var: Var) -> None:
        """What the same file adds to a list built there."""
        node = pack.node
        if isinstance(node, Comp) or node.kind != "list":
            return
        facts = node.scope.module
        self._fill_from(("appended", facts), lambda: put_in_lists(facts), pack, var)

    def _table_values(self, table: Table, key: str | None, var: Var) -> None:
        """What a table holds for a key, or for any; it may be merged from itself."""
        self._flow(self._held(table, key), var)

    def _held(self, table: Table, key: str | None) -> Var:
        return self._get(("held", table, key), partial(self._hold, table, key))

    def _hold(self, table: Table, key: str | None, var: Var) -> None:
        node = table.node
        if isinstance(node, Map):
            for item_key, item in node.items:
                if item_key is None:
                    self._on(self._expr(item), lambda value: self._merged(value, key, var))
                    continue
                alike = of_same_key(item_key, item)
                if alike is not None:
                    self._fill(table, var, alike, (Entry(key, by_index=True),))
                    continue
                known = item_key.value if isinstance(item_key, Const) else None
                if key is None or known is None or known == key:
                    self._flow_inside(table, item, var)
        else:
            # The first argument of a `defaultdict` makes what is missing.
            for arg in node.args[last_name(node.func) == "defaultdict" :]:
                if arg.keyword is not None and key in {None, arg.keyword}:
                    self._flow_inside(table, arg.value, var)
                elif arg.keyword is None and arg.stars != 1:
                    self._on(self._expr(arg.value), lambda value: self._merged(value, key, var))
        facts = node.scope.module
        self._fill_from(("stored", facts, key), lambda: put_in_dicts(facts, key), table, var)

    def _merged(self, value: Value, key: str | None, var: Var) -> None:
        """What ``{**value}`` gives; a dict may be merged into itself, turn by turn of a loop."""
        if isinstance(value, Table):
            own = self._get(("merged", value, key), lambda v: self._table_values(value, key, v))
            self._flow(own, var)
        elif isinstance(value, (Pack, ExtObj, View)):  # `dict(pairs)`
            pairs = self._get(("pairs", value), lambda v: self._iterate(value, v))
            self._flow(self._component(pairs, 1), var)
        else:
            self._add(var, Unknown("merged from another dict"))

    def part(self, expr: Expr, path: tuple[int, ...]) -> Values:
        """What one of several names gets of a value that is taken apart."""
        return self._solve_within(lambda: self._part(self._expr(expr), path))

    def held_in(self, container: Pack | Table) -> Values:
        """What a list or a dict may hold, be it put into it where it is made or later."""
        if isinstance(container, Table):
            return self._solve_within(partial(self._held, container, None))
        return self._solve_within(
            lambda: self._get(("held", container), partial(self._iterate, container))
        )

    def entries(self, table: Table, key: str, site: Call | None = None) -> list[Filling] | None:
        """What is put into a dict under a key and may be there at a call; None if not known.

        All that ever is, where no call is named.
        """
        facts = table.node.scope.module
        found = self._told(("stored", facts, key), table, partial(self._held, table, key))
        if found is None:
            return None
        owners = put_by(facts, key)
        fillings = ((owners[source], source, path) for source, path in found)
        return [
            put
            for put in fillings
            if (site is None or may_run_before(stmt_of(put[0]), site.stmt))
            and self._may_put(*put[1:])
        ]

    def _may_put(self, source: Expr, path: tuple[Part, ...]) -> bool:
        """Whether a dict may get it: not from another dict that has no such key."""
        return not path or bool(self._solve_within(lambda: self._part(self._expr(source), path)))

    def _told(
        self, key: object, table: Table, find: Callable[[], Var]
    ) -> Collection[tuple[Expr, tuple[Part, ...]]] | None:
        """What a table waits for and was told; None where there was too much to follow."""
        values = self._solve_within(find)
        waiting = self._waiting.get(key, {}).get(table.node)
        return None if waiting is None or TOO_MUCH in values else waiting.found

    def _fill_from(
        self, key: object, fillings: Callable[[], Iterable[Filling]], held: Pack | Table, var: Var
    ) -> None:
        """Let flow into ``var`` what is put into the container ``held``.

        ``fillings`` are asked for once for each key: each is told what its receiver holds, and
        finds by that who waits for what is put into it.
        """
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.setdefault(held.node, _Waiting()).take(partial(self._fill, held, var))
            return
        waiting = self._waiting[key] = {held.node: _Waiting()}
        waiting[held.node].take(partial(self._fill, held, var))

        def sink(source: Expr, path: tuple[Part, ...], value: Value) -> None:
            if isinstance(value, (Pack, Table)):
                waiting.setdefault(value.node, _Waiting()).tell(source, path)

        for receiver, source, path in fillings():
            self._on(self._expr(receiver), partial(sink, source, path))

    def _fill(self, held: Pack | Table, var: Var, source: Expr, path: tuple[Part, ...]) -> None:
        if path:
            whole = self._expr(source)
            if held.frames:
                whole = self._get(
                    ("inside", held, source), partial(self._flow_inside, held, source)
                )
            self._flow(self._part(whole, path), var)
        else:
            self._flow_inside(held, source, var)

    def _flow_inside(self, container: Pack | Table, item: Expr, var: Var) -> None:
        """An item of a container, as seen by the call that returned the container."""
        if container.frames:
            (function, call), *outer = container.frames
            self._flow_in_call(item, function, call, var, *outer)
        else:
            self._flow(self._expr(item), var)
