"""Where values flow: a demand-driven, flow-light points-to analysis over the whole tree.

Andersen style: every expression, variable, field and return value is a set that grows until
nothing changes. Sets are made only when asked for, so the cost follows the question and not
the tree. The abstract values are constructions (of samplers, loaders, or any class of the
tree), functions, classes, literals, containers, and :class:`Unknown` with its reason.

Two refinements keep real code apart:

- a local name that is read sees only the assignments that can reach the read;
- an object returned by a factory remembers the call it came through (:attr:`Obj.through`), so
  that ``build(train=True)`` and ``build(train=False)`` are different loaders.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeAlias, TypeGuard

from sampler_lint import catalog
from sampler_lint.analysis.arguments import (
    MISSING,
    as_tuple,
    complete,
    field_names,
    given_as,
    is_closed,
    passed,
    table_entry,
)
from sampler_lint.analysis.declared import Declared
from sampler_lint.analysis.hierarchy import NEUTRAL_BASES, merge
from sampler_lint.analysis.reaching import reaching
from sampler_lint.analysis.solver import Solver, Var
from sampler_lint.analysis.values import (
    Base,
    ClassRef,
    Ext,
    ExtObj,
    Frame,
    FuncRef,
    Gen,
    Lit,
    ModRef,
    Obj,
    Pack,
    Partial,
    Super,
    Table,
    TupleType,
    Unknown,
    Value,
    Values,
    View,
)
from sampler_lint.catalog.declared import passes_on
from sampler_lint.limits import DEEPEST_CALLS, DEEPEST_HIERARCHY, MOST_CALLERS, MOST_PARTIALS
from sampler_lint.syntax.nodes import (
    EQUAL,
    UNEQUAL,
    Assign,
    Attr,
    Bin,
    Binding,
    Call,
    Choice,
    Class,
    Comp,
    Compare,
    Const,
    Declare,
    Expr,
    Function,
    Index,
    Lambda,
    Map,
    ModuleFacts,
    Name,
    Param,
    Scope,
    Seq,
    Store,
    Unary,
    last_name,
)
from sampler_lint.workspace.project import Project
from sampler_lint.workspace.stars import StarImports

_TRANSPARENT_CALLS = frozenset(
    {
        "cast",
        "typing.cast",
        "copy.copy",
        "copy.deepcopy",
        "typing.assert_type",
        "reversed",
        "sorted",
    }
)
#: Calls that run a function elsewhere: how they name it, and how many arguments they add first.
_SPAWNERS = {
    "spawn": ("fn", 1),
    "start_processes": ("fn", 1),
    "Process": ("target", 0),
    "launch": ("main_func", 0),
}
_TOO_DEEP = Unknown("a hierarchy too deep to follow")


Filling: TypeAlias = "tuple[Expr, Expr, tuple[int, ...]]"
"""A container, what is put into it, and which part of that it is."""


class _Waiting:
    """Those who wait for what is put into one container, and what has been so far."""

    __slots__ = ("found", "takers")

    def __init__(self) -> None:
        self.found: dict[tuple[Expr, tuple[int, ...]], None] = {}
        self.takers: list[Callable[[Expr, tuple[int, ...]], None]] = []

    def take(self, taker: Callable[[Expr, tuple[int, ...]], None]) -> None:
        self.takers.append(taker)
        for source, path in tuple(self.found):
            taker(source, path)

    def tell(self, source: Expr, path: tuple[int, ...]) -> None:
        if (source, path) not in self.found:
            self.found[source, path] = None
            for taker in tuple(self.takers):
                taker(source, path)


class Flow(Solver):
    """Answers where the values of an expression come from."""

    def __init__(self, project: Project, declared: Declared | None = None) -> None:
        super().__init__()
        self.project = project
        self.declared = declared or Declared(project)
        self._mros: dict[Class, tuple[Base, ...]] = {}
        self._resolving: list[Class] = []
        self._completions: dict[tuple[Partial, Call], Call] = {}
        self._partials_within: dict[Call, int] = {}
        self._callers: dict[Function, dict[tuple[Call, Value | None, Function], None]] = {}
        self._waiting: dict[object, dict[Expr, _Waiting]] = {}
        self._stores_by_key: dict[ModuleFacts, dict[object, list[tuple[int, Store]]]] = {}
        self._stars = StarImports(project)

    def values(self, expr: Expr) -> frozenset[Value]:
        """Every value ``expr`` may have; contains :class:`Unknown` where some are not known."""
        return self._solve(self._expr(expr))

    # -- expressions

    def _expr(self, expr: Expr) -> Var:
        return self._vars.get(expr) or self._get(expr, partial(self._start_expr, expr))

    def _start_expr(self, expr: Expr, var: Var) -> None:
        if isinstance(expr, Name):
            self._flow(self._read(expr), var)
        elif isinstance(expr, Const):
            if expr.value is ...:
                self._add(var, Unknown("a long literal"))
            else:
                self._add(var, Lit(expr.value, type(expr.value).__name__))
        elif isinstance(expr, Attr):
            self._on(self._expr(expr.value), lambda value: self._attribute(value, expr.name, var))
        elif isinstance(expr, Call):
            self._start_call(expr, var)
        elif isinstance(expr, (Seq, Comp)):
            self._add(var, Pack(expr))
        elif isinstance(expr, Map):
            self._add(var, Table(expr))
        elif isinstance(expr, Index):
            self._on(self._expr(expr.value), lambda value: self._item(value, expr, var))
        elif isinstance(expr, Choice):
            for option in expr.options:
                self._flow(self._expr(option), var)
        elif isinstance(expr, Lambda):
            self._add(var, FuncRef(expr.function))
        elif isinstance(expr, Bin):
            self._add(var, Unknown("computed"))
        else:
            self._add(var, Unknown("an expression that is not followed"))

    # -- names

    def _read(self, name: Name) -> Var:
        scope = name.scope
        bindings = reaching(name)
        if bindings is None:
            return self._variable(scope, name.id)
        key = ("read", scope, name.id, tuple(id(binding) for binding in bindings))

        def start(var: Var) -> None:
            for binding in bindings:
                self._flow(self._binding(binding, scope), var)

        return self._get(key, start)

    def _variable(self, scope: Scope, name: str) -> Var:
        """The variable ``name`` as seen from ``scope``, whatever the order of statements."""
        owner: Scope | None = scope
        while owner is not None:
            if name in owner.bindings and not (isinstance(owner, Class) and owner is not scope):
                return self._own_variable(owner, name)
            owner = owner.outer
        module = scope.module
        return self._get(
            ("global", module, name), lambda var: self._start_global(module, name, var)
        )

    def _own_variable(self, scope: Scope, name: str) -> Var:
        return self._get(
            ("variable", scope, name), lambda var: self._start_variable(scope, name, var)
        )

    def _start_variable(self, scope: Scope, name: str, var: Var) -> None:
        for binding in scope.bindings[name]:
            self._flow(self._binding(binding, scope), var)

    def _start_global(self, facts: Scope, name: str, var: Var) -> None:
        """A name bound nowhere in its file: from a star import, or a builtin."""
        owner = self._stars.source(facts.module, name)
        if owner is not None:
            self._flow(self._own_variable(owner, name), var)
            return
        module = self.project.module_of(facts)
        for target, level in reversed(facts.module.star_imports):
            if not level and self.project.find(target, module, level) is None:
                star = catalog.canonical(f"{target}.{name}")
                if catalog.known(star) is not None:
                    self._add(var, Ext(star))
                    return
        if facts.module.star_imports and name not in _BUILTINS:
            self._add(var, Unknown(f"`{name}` comes from a star import"))
        else:
            self._add(var, Ext(name))

    def _binding(self, binding: Binding, scope: Scope) -> Var:
        return self._get(binding, partial(self._start_binding, binding, scope))

    def _start_binding(self, binding: Binding, scope: Scope, var: Var) -> None:
        how = binding.how
        if how == "assign" and binding.value is not None:
            self._flow(self._part(self._expr(binding.value), binding.path), var)
        elif how == "element" and binding.value is not None:
            self._flow(self._part(self._elements(self._expr(binding.value)), binding.path), var)
        elif how == "enter" and binding.value is not None:
            self._flow(self._part(self._entered(self._expr(binding.value)), binding.path), var)
        elif how == "def":
            self._add(var, FuncRef(binding.payload))
        elif how == "class":
            self._add(var, ClassRef(binding.payload))
        elif how == "import":
            self._start_import(binding, scope, var)
        elif how == "param":
            assert isinstance(scope, Function)
            self._flow(self._parameter(scope, binding.payload), var)
        else:
            self._add(var, Unknown(f"`{binding.name}` is changed in place"))

    def _start_import(self, binding: Binding, scope: Scope, var: Var) -> None:
        name, attribute, level = binding.payload
        module = self.project.module_of(scope)
        path = self.project.find(name, module, level)
        if path is None:
            dotted = name if attribute is None else f"{name}.{attribute}"
            if level:
                self._add(var, Unknown(f"`{binding.name}` is imported from outside the tree"))
            else:
                self._add(var, Ext(catalog.canonical(dotted)))
        elif attribute is None:
            self._add(var, ModRef(path))
        else:
            self._member(path, attribute, var)

    def _member(self, path: str, name: str, var: Var) -> None:
        """``name`` of the module (or package) at ``path``: a variable, else a submodule."""
        module = self.project.module_telling(path)
        if module is not None and name in module.facts.bindings:
            self._flow(self._variable(module.facts, name), var)
            return
        folder = path if module is None else module.folder if module.is_package else None
        if folder is not None:
            below = self.project._file_below(folder, [name])
            if below is not None:
                self._add(var, ModRef(below))
                return
        if module is not None and module.facts.star_imports:
            facts = module.facts
            self._flow(
                self._get(("global", facts, name), lambda v: self._start_global(facts, name, v)),
                var,
            )
            return
        self._add(var, Unknown(f"`{name}` is not defined in {self._where(path)}"))

    def _where(self, path: str) -> str:
        return self.project.files.get(path, path)

    # -- parts of values

    def _part(self, source: Var, path: tuple[int, ...]) -> Var:
        """The part of a value that ``a, (b, c) = value`` gives by its path."""
        for index in path:
            source = self._component(source, index)
        return source

    def _component(self, source: Var, index: int) -> Var:
        def start(var: Var) -> None:
            self._on(source, lambda value: self._pick(value, index, var))

        return self._get(("part", source, index), start)

    def _pick(self, value: Value, index: int, var: Var) -> None:
        if isinstance(value, Pack) and isinstance(value.node, Seq):
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

    def _appended(self, pack: Pack, var: Var) -> None:
        """What ``list.append`` in the same file adds to a list built there."""
        node = pack.node
        if isinstance(node, Comp) or node.kind != "list":
            return
        facts = node.scope.module
        self._fill_from(
            ("appended", facts),
            lambda: (
                (call.func.value, call.positional[0], ())
                for call in facts.all_calls
                if isinstance(call.func, Attr) and call.func.name == "append" and call.positional
            ),
            pack,
            var,
        )

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

        def sink(source: Expr, path: tuple[int, ...], value: Value) -> None:
            if isinstance(value, (Pack, Table)):
                waiting.setdefault(value.node, _Waiting()).tell(source, path)

        for receiver, source, path in fillings():
            self._on(self._expr(receiver), partial(sink, source, path))

    def _fill(self, held: Pack | Table, var: Var, source: Expr, path: tuple[int, ...]) -> None:
        if path:
            self._flow(self._part(self._expr(source), path), var)
        else:
            self._flow_inside(held, source, var)

    def _flow_inside(self, container: Pack | Table, item: Expr, var: Var) -> None:
        """An item of a container, as seen by the call that returned the container."""
        if container.frames:
            (function, call), *outer = container.frames
            self._flow_in_call(item, function, call, var, *outer)
        else:
            self._flow(self._expr(item), var)

    def _flow_in_call(
        self, expr: Expr, function: Function, call: Call, var: Var, *outer: Frame
    ) -> None:
        """Let flow the values of an expression of ``function``, as one call of it sees them.

        A parameter that is handed straight back is what this call passed (and what that
        caller's own ``outer`` call passed to it), and what is built in the function remembers
        the call it came through.
        """
        frames = ((function, call), *outer)
        self._flow(
            self._get(("in-call", expr, frames), lambda v: self._start_in_call(expr, frames, v)),
            var,
        )

    def _start_in_call(self, expr: Expr, frames: tuple[Frame, ...], var: Var) -> None:
        (function, call), *outer = frames
        if isinstance(expr, Choice):
            for option in expr.options:
                self._flow_in_call(option, function, call, var, *outer)
            return
        if isinstance(expr, Name) and expr.scope is function:
            given = self._handed_in(expr, function, call)
            if given is not None:
                if outer:
                    self._flow_in_call(given, outer[0][0], outer[0][1], var, *outer[1:])
                else:
                    self._flow(self._expr(given), var)
                return
        by_name = isinstance(expr, Call) and not (
            isinstance(expr.func, Name) and expr.func.id == "super"
        )
        if isinstance(expr, Call) and by_name and len(outer) < DEEPEST_CALLS:
            self._on(self._expr(expr.func), lambda v: self._call_in_call(v, expr, frames, var))
        else:
            self._flow_out(self._expr(expr), frames, var)

    def _flow_out(self, source: Var, frames: tuple[Frame, ...], var: Var) -> None:
        """Let values leave a function: what was built in it remembers by which call."""
        function, call = frames[0]

        def sink(value: Value) -> None:
            origin = _origin(value)
            if isinstance(value, Obj) and origin is function and value.through is None:
                value = replace(value, through=call)
            elif isinstance(value, (Pack, Table)) and origin is function and not value.frames:
                value = replace(value, frames=frames)
            self._add(var, value)

        self._on(source, sink)

    def _call_in_call(self, value: Value, call: Call, frames: tuple[Frame, ...], var: Var) -> None:
        if not self._is_plain_call(value) or self.declared.built_by(value):
            applied = self._get(("applied", value, call), lambda v: self._apply(value, call, v))
            self._flow_out(applied, frames, var)
        elif all(function is not value.function for function, _ in frames):
            # A recursive call adds nothing that the outer one does not.
            self._register(value.function, call, value.bound, value.function)
            for stmt in value.function.returns:
                if stmt.value is not None:
                    self._flow_in_call(stmt.value, value.function, call, var, *frames)

    @staticmethod
    def _is_plain_call(value: Value) -> TypeGuard[FuncRef]:
        return (
            isinstance(value, FuncRef)
            and id(value.function) not in _TABLE_METHOD_NAMES
            and not value.function.is_generator
            and any(stmt.value is not None for stmt in value.function.returns)
        )

    @staticmethod
    def _handed_in(name: Name, function: Function, call: Call) -> Expr | None:
        """What ``call`` passes for a parameter that ``function`` never binds again."""
        bindings = function.bindings.get(name.id, [])
        if len(bindings) != 1 or bindings[0].how != "param":
            return None
        param: Param = bindings[0].payload
        is_method = function.cls is not None and not function.is_static
        if is_method and param is function.params[0]:
            return None
        given = passed(function, param, call, is_bound=is_method)
        if given is MISSING:
            given = param.default
        return given if isinstance(given, Expr) else None

    def _item(self, value: Value, expr: Index, var: Var) -> None:
        key = expr.key.value if isinstance(expr.key, Const) else None
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
        else:
            self._add(var, Unknown("an item of a container that is not followed"))

    def _merged(self, value: Value, key: str | None, var: Var) -> None:
        """What ``{**value}`` gives; a dict may be merged into itself, turn by turn of a loop."""
        if isinstance(value, Table):
            own = self._get(("merged", value, key), lambda v: self._table_values(value, key, v))
            self._flow(own, var)
        else:
            self._add(var, Unknown("merged from another dict"))

    def _table_values(self, table: Table, key: str | None, var: Var) -> None:
        """What a table holds for a key, or for any; it may be merged from itself."""
        found = self._get(("held", table, key), lambda v: self._start_held(table, key, v))
        self._flow(found, var)

    def _start_held(self, table: Table, key: str | None, var: Var) -> None:
        node = table.node
        if isinstance(node, Map):
            for item_key, item in node.items:
                if item_key is None:
                    self._on(self._expr(item), lambda value: self._merged(value, key, var))
                    continue
                known = item_key.value if isinstance(item_key, Const) else None
                if key is None or known is None or known == key:
                    self._flow_inside(table, item, var)
        else:
            for arg in node.args:
                if arg.keyword is not None and key in {None, arg.keyword}:
                    self._flow_inside(table, arg.value, var)
        facts = node.scope.module
        self._fill_from(("stored", facts, key), lambda: self._stored(facts, key), table, var)

    def _stored(self, facts: ModuleFacts, key: str | None) -> Iterator[Filling]:
        """What a file stores under a key of anything; under any key if none is given."""
        by_key = self._stores_by_key.get(facts)
        if by_key is None:
            by_key = self._stores_by_key[facts] = {}
            stores = (store for scope in facts.scopes for store in scope.stores)
            for number, store in enumerate(stores):
                if isinstance(store.target, Index) and store.how == "assign":
                    said = store.target.key
                    spelled = said.value if isinstance(said, Const) else None
                    by_key.setdefault(spelled, []).append((number, store))
        if key is None:
            found = [entry for entries in by_key.values() for entry in entries]
        else:
            found = [*by_key.get(key, ()), *by_key.get(None, ())]
        for _, store in sorted(found, key=lambda entry: entry[0]):
            if store.value is not None:
                yield store.target.value, store.value, store.path

    # -- attributes

    def _attribute(self, value: Value, name: str, var: Var) -> None:
        if isinstance(value, ModRef):
            self._member(value.path, name, var)
        elif isinstance(value, Ext):
            self._add(var, Ext(catalog.canonical(f"{value.dotted}.{name}")))
        elif isinstance(value, ExtObj):
            self._add(var, Ext(_attribute_of_made(value.dotted, name)))
        elif isinstance(value, Obj):
            self._flow(self.field(value, name), var)
        elif isinstance(value, Super):
            self._super_attribute(value, name, var)
        elif isinstance(value, ClassRef):
            self._flow(self._class_attribute(value.cls, name, value), var)
        elif isinstance(value, Table):
            if name in {"items", "values", "get", "pop"}:
                self._add(var, FuncRef(_TABLE_METHODS[name], value))
            else:
                self._table_values(value, name, var)  # attribute-style config dicts
        elif isinstance(value, Pack) and name in value.names:
            self._pick(value, value.names.index(name), var)
        elif isinstance(value, Unknown):
            self._add(var, value)
        elif not isinstance(value, Lit):
            self._add(var, Unknown(f"`.{name}` of something that is not followed"))

    def field(self, obj: Obj, name: str) -> Var:
        """The attribute ``name`` of an object."""
        if isinstance(obj.cls, str):
            return self._get(
                ("known-field", obj, name), lambda var: self._start_known_field(obj, name, var)
            )
        cls = obj.cls
        key: tuple[object, ...] = ("field", cls, obj.site is None, name)
        if obj.site is not None and not self._finds_init(cls):
            if name in self.fields(cls):
                return self._get(
                    ("data-field", obj, name), lambda var: self._start_data_field(obj, name, var)
                )
            key = ("field", obj, name)  # a known base sets what this very object was given
        return self._get(key, lambda var: self._start_field(cls, obj, name, var))

    def ask_field(self, obj: Obj, name: str) -> frozenset[Value]:
        """What the attribute ``name`` of an object may hold."""
        return self._solve(self.field(obj, name))

    def _start_known_field(self, obj: Obj, name: str, var: Var) -> None:
        """An attribute of a torch sampler or loader: the argument it was built with."""
        assert isinstance(obj.cls, str)
        entries = catalog.known_mro(obj.cls)
        entry = next((entry for entry in entries if entry.params), None)
        if entry is not None and name in entry.params and obj.site is not None:
            given = self.argument(obj, name)
            if given is not None:
                self._flow(self._expr(given), var)
                return
        if any(name in entry.methods for entry in entries):
            self._add(var, Ext(f"{obj.cls}().{name}"))
        else:
            self._add(var, Unknown(f"`.{name}` of {obj.name}"))

    def _start_data_field(self, obj: Obj, name: str, var: Var) -> None:
        assert isinstance(obj.cls, Class)
        assert obj.site is not None
        names = self.fields(obj.cls)
        given = obj.site.keyword(name)
        if given is None and names.index(name) < len(obj.site.positional):
            given = obj.site.positional[names.index(name)]
        if given is not None:
            self._flow(self._expr(given), var)
        self._start_field(obj.cls, Obj(obj.cls), name, var)

    def fields(self, cls: Class) -> list[str]:
        """The annotated names of a dataclass or named tuple, bases first."""
        names: dict[str, None] = {}
        for base in reversed(self.mro(cls)):
            if isinstance(base, Class):
                for stmt in base.body:
                    target = (
                        stmt.target
                        if isinstance(stmt, Declare)
                        else stmt.targets[0]
                        if isinstance(stmt, Assign)
                        else None
                    )
                    if isinstance(target, Name):
                        names[target.id] = None
        return list(names)

    def _is_named_tuple(self, cls: Class) -> bool:
        return any(last_name(base) == "NamedTuple" for base in cls.bases)

    def _finds_init(self, cls: Class) -> bool:
        return any(
            isinstance(base, Class) and base.method("__init__") is not None
            for base in self.mro(cls)
        )

    def _start_field(self, cls: Class, obj: Obj, name: str, var: Var) -> None:
        found = False
        unset = Unknown(f"`.{name}` is set nowhere in {cls.name}")
        hierarchy: list[Base] = list(self.mro(cls))
        if obj.site is None:
            hierarchy += self.subclasses(cls)
        overridden = False
        for number, base in enumerate(hierarchy):
            if isinstance(base, Class):
                # A subclass may override what the hierarchy above it defines.
                hidden = overridden and number < len(self.mro(cls))
                found |= self._own_attribute(base, name, obj, var, hidden=hidden)
                overridden |= name in base.bindings
        relatives = {base for base in hierarchy if isinstance(base, Class)}
        for store in self.project.outer_stores_near(name, cls):
            if store.value is not None and store.how == "assign":
                self._store_from_outside(store, store.value, relatives, var)
        if not found:
            for base in hierarchy:
                if isinstance(base, str) and catalog.known(base) is not None:
                    entries = catalog.known_mro(base)
                    if any(name in e.methods or name in e.attributes for e in entries):
                        self._inherited_known(cls, base, obj, name, var)
                        return
            # Nothing in the class sets it; somebody outside may.
            self._late.append(lambda: None if var.values else self._add(var, unset))

    def _store_from_outside(self, store: Store, value: Expr, classes: set[Class], var: Var) -> None:
        """``obj.name = value`` outside a method: for objects of the given classes."""
        assert isinstance(store.target, Attr)
        source = self._part(self._expr(value), store.path)
        self._on(
            self._expr(store.target.value),
            lambda owner: (
                self._flow(source, var) if isinstance(owner, Obj) and owner.cls in classes else None
            ),
        )

    def _inherited_known(self, cls: Class, base: str, obj: Obj, name: str, var: Var) -> None:
        """An attribute that a torch base sets: what the subclass passed to ``super().__init__``."""
        entry = next((e for e in catalog.known_mro(base) if e.params), None)
        if entry is not None and name in entry.params:
            for call in self.base_init_calls(cls):
                given = given_as(call, entry.params, name)
                if given is not None:
                    self._flow(self._expr(given), var)
                    return
            if obj.site is not None and not self._finds_init(cls):
                given = given_as(obj.site, entry.params, name)
                if given is not None:
                    self._flow(self._expr(given), var)
                    return
        self._add(var, Ext(f"{base}().{name}"))

    def base_init_calls(self, cls: Class) -> list[Call]:
        """``super().__init__(…)`` and ``Base.__init__(self, …)`` in the class's ``__init__``."""
        init = cls.method("__init__")
        if init is None:
            return []
        return [
            call
            for call in init.calls
            if isinstance(call.func, Attr) and call.func.name == "__init__"
        ]

    def _own_attribute(self, cls: Class, name: str, obj: Value, var: Var, *, hidden: bool) -> bool:
        """What the class body and its methods' ``self.name = …`` give; whether there was any.

        ``hidden`` leaves out the class body: a class before it in the order defines the name.
        """
        found = False
        for binding in () if hidden else cls.bindings.get(name, ()):
            found = True
            if binding.how == "def":
                method: Function = binding.payload
                if method.is_property:
                    self._flow(self._returned(method), var)
                elif method.is_static:
                    self._add(var, FuncRef(method))
                else:
                    self._add(var, FuncRef(method, obj))
            elif binding.how != "opaque":
                self._flow(self._binding(binding, cls), var)
        for store in self.project.own_stores(name, cls):
            if store.value is not None:
                found = True
                if store.how == "assign":
                    self._flow(self._part(self._expr(store.value), store.path), var)
                elif store.how == "enter":
                    self._flow(self._entered(self._expr(store.value)), var)
                else:
                    self._add(var, Unknown(f"`{name}` is changed in place"))
        return found

    def _class_attribute(self, cls: Class, name: str, receiver: Value) -> Var:
        def start(var: Var) -> None:
            for base in self.mro(cls):
                if isinstance(base, Class) and base.bindings.get(name):
                    for binding in base.bindings[name]:
                        if binding.how == "def":
                            function: Function = binding.payload
                            bound = receiver if function.is_classmethod else None
                            self._add(var, FuncRef(function, bound))
                        else:
                            self._flow(self._binding(binding, base), var)
                    return
                if isinstance(base, str):
                    self._add(var, Ext(f"{base}.{name}"))
                    return
            self._add(var, Unknown(f"`.{name}` of class {cls.name}"))

        return self._get(("class-attribute", cls, name), start)

    def _super_attribute(self, value: Super, name: str, var: Var) -> None:
        for base in self.mro(value.cls)[1:]:
            if isinstance(base, Class):
                method = base.method(name)
                if method is not None:
                    self._add(var, FuncRef(method, value.receiver))
                    return
            elif isinstance(base, str):
                self._add(var, Ext(f"{base}.{name}"))
                return
        self._add(var, Unknown(f"`super().{name}`"))

    # -- classes

    def mro(self, cls: Class) -> tuple[Base, ...]:
        """The linearised hierarchy, the class first; a base that is not known is Unknown.

        Python's own order (C3); where that has no answer, depth first, each class once.
        """
        cached = self._mros.get(cls)
        if cached is not None:
            return cached
        if len(self._resolving) > DEEPEST_HIERARCHY:
            return cls, _TOO_DEEP
        self._mros[cls] = (cls,)  # a class among its own bases stops here
        self._resolving.append(cls)
        orders: list[list[Base]] = []
        for expr in cls.bases:
            for base in self._bases(expr):
                if isinstance(base, Class):
                    orders.append(list(self.mro(base)))
                elif isinstance(base, str):
                    known = [entry.name for entry in catalog.known_mro(base)]
                    orders.append(list(known or [base]))
                else:
                    orders.append([base])
        self._resolving.pop()
        orders.append([order[0] for order in orders])
        result = (cls, *merge(orders))
        if len(result) > DEEPEST_HIERARCHY:
            result = (cls, _TOO_DEEP)
        self._mros[cls] = result
        return result

    def _bases(self, expr: Expr) -> Iterator[Base]:
        values = self.ask(expr)
        if not values:
            yield Unknown("a base class that is not found")
        for value in values:
            if isinstance(value, ClassRef):
                yield value.cls
            elif isinstance(value, Ext):
                if value.dotted not in NEUTRAL_BASES:
                    yield value.dotted
            elif isinstance(value, Unknown):
                yield value
            else:
                yield Unknown("a base class made by a call")

    def ask(self, expr: Expr) -> frozenset[Value]:
        """:meth:`values`, also from inside the solver (what it needs is solved first)."""
        return self._solve_within(lambda: self._expr(expr))

    def subclasses(self, cls: Class) -> list[Class]:
        """The classes of the candidate files that derive from ``cls``, at any depth."""
        out: dict[Class, None] = {}
        todo = [cls]
        while todo:
            current = todo.pop()
            for derived in self.project.classes_deriving(current.name):
                if derived not in out and derived is not cls and current in self.mro(derived):
                    out[derived] = None
                    todo.append(derived)
        return list(out)

    def is_a(self, cls: Class | str, name: str) -> bool | None:
        """Whether a class is (derived from) the known class ``name``; None if a base is unknown."""
        if isinstance(cls, str):
            return any(entry.name == name for entry in catalog.known_mro(cls))
        mro = self.mro(cls)
        if name in mro:
            return True
        return None if any(isinstance(base, Unknown) for base in mro) else False

    def method(self, cls: Class | str, name: str) -> Function | str | Unknown | None:
        """Who defines the method for instances of ``cls``: a function, a known class, or nobody."""
        if isinstance(cls, str):
            for entry in catalog.known_mro(cls):
                if name in entry.methods:
                    return entry.name
            return None if catalog.known(cls) else Unknown(f"{cls} is not known")
        for base in self.mro(cls):
            if isinstance(base, Class):
                if base.bindings.get(name):
                    return base.method(name) or Unknown(f"`{name}` is no plain method")
            elif isinstance(base, str):
                entry_ = catalog.known(base)
                if entry_ is None:
                    return Unknown(f"{base} is outside the tree")
                if name in entry_.methods:
                    return base
            else:
                return base
        return None

    # -- calls

    def _start_call(self, call: Call, var: Var) -> None:
        func = call.func
        if isinstance(func, Name) and func.id == "super":
            self._start_super(call, var)
            return
        self._on(self._expr(func), lambda value: self._apply(value, call, var))

    def _start_super(self, call: Call, var: Var) -> None:
        scope: Scope | None = call.scope
        while scope is not None and not (isinstance(scope, Function) and scope.cls is not None):
            scope = scope.outer
        if isinstance(scope, Function) and scope.cls is not None:
            self._add(var, Super(scope.cls, Obj(scope.cls)))
        else:
            self._add(var, Unknown("super() outside a method"))

    def _apply(self, value: Value, call: Call, var: Var) -> None:
        built = self.declared.built_by(value)
        if built is not None:
            self._add(var, Obj(built, call))
            if isinstance(value, FuncRef):
                self._register(value.function, call, value.bound, value.function)
        elif isinstance(value, ClassRef):
            self._instantiate(value.cls, call, var)
        elif isinstance(value, Ext):
            self._apply_external(value, call, var)
        elif isinstance(value, FuncRef):
            self._apply_function(value, call, var)
        elif isinstance(value, TupleType):
            node = as_tuple(value.names, call)
            self._add(var, Pack(node, names=value.names) if node else Unknown("a named tuple"))
        elif isinstance(value, Partial):
            function = self._expr(value.site.positional[0])
            self._on(function, lambda inner: self._apply_partial(inner, value, call, var))
        elif isinstance(value, Obj) and isinstance(value.cls, Class):
            method = self.method(value.cls, "__call__")
            if isinstance(method, Function):
                self._apply_function(FuncRef(method, value), call, var)
            else:
                self._add(var, Unknown(f"calling an instance of {value.name}"))
        else:
            self._add(var, value if isinstance(value, Unknown) else Unknown("a call"))

    def _instantiate(self, cls: Class, call: Call, var: Var) -> None:
        obj = Obj(cls, call)
        self._add(var, obj)
        for base in self.mro(cls):
            if isinstance(base, Class):
                init = base.method("__init__")
                if init is not None:
                    self._register(init, call, obj, init)
                    return

    def _apply_external(self, value: Ext, call: Call, var: Var) -> None:
        dotted = value.dotted
        if catalog.known(dotted) is not None:
            self._add(var, Obj(dotted, call))
        elif dotted in {"functools.partial", "partial"} and call.positional:
            self._add(var, Partial(call))
        elif dotted in {"collections.namedtuple", "namedtuple"}:
            names = field_names(call)
            self._add(var, TupleType(names) if names else ExtObj(dotted, call))
        elif dotted == "dict" and not call.positional:
            self._add(var, Table(call))
        elif dotted in {"list", "tuple", "iter", "set"} and call.positional:
            self._flow(self._expr(call.positional[0]), var)
        elif dotted == "getattr" and len(call.positional) >= 2:
            self._apply_getattr(call, var)
        elif dotted in _TRANSPARENT_CALLS and call.positional:
            self._flow(self._expr(call.positional[-1]), var)
        elif dotted.endswith(".__init__"):
            self._add(var, Lit(None, "NoneType"))
        else:
            self._add(var, ExtObj(dotted, call))

    def _apply_getattr(self, call: Call, var: Var) -> None:
        name = call.positional[1]
        if isinstance(name, Const) and isinstance(name.value, str):
            attribute = name.value
            self._on(
                self._expr(call.positional[0]),
                lambda value: self._attribute(value, attribute, var),
            )
            for default in call.positional[2:3]:
                self._flow(self._expr(default), var)
        else:
            self._add(var, Unknown("getattr with a computed name"))

    def _apply_partial(self, inner: Value, partial: Partial, call: Call, var: Var) -> None:
        if self._partials_within.get(call, 0) == MOST_PARTIALS:
            self._add(var, Unknown("a partial of itself"))
        elif isinstance(inner, (FuncRef, Partial)):
            self._apply(inner, self._completed(partial, call), var)
        elif not call.args:
            self._apply(inner, self._completed(partial, partial.site), var)
        elif call.scope.module is partial.site.scope.module:
            self._apply(inner, self._completed(partial, call), var)
        else:
            # Rules speak of a construction as of one place with its arguments.
            self._add(var, Unknown("a class given to `partial` in another file"))

    def _completed(self, partial: Partial, call: Call) -> Call:
        """A call of a ``partial`` as the call of its function that it makes."""
        made = self._completions.get((partial, call))
        if made is None:
            made = self._completions[partial, call] = complete(partial.site, call)
            self._partials_within[made] = self._partials_within.get(call, 0) + 1
        return made

    def completed(self, call: Call) -> list[Call]:
        """What a call of a ``partial`` calls; empty for other calls."""
        partials = [value for value in self.values(call.func) if isinstance(value, Partial)]
        return [
            self._completed(partial, site)
            for partial in partials
            for site in ([call] if call.args else [partial.site])
        ]

    def as_made(self, call: Call) -> Call:
        """``call``, with the arguments that a ``partial`` adds where it is a call of one."""
        partials = [value for value in self.values(call.func) if isinstance(value, Partial)]
        if len(partials) != 1 or self._partials_within.get(call, 0) == MOST_PARTIALS:
            return call
        return self.as_made(self._completed(partials[0], call))

    def _apply_function(self, value: FuncRef, call: Call, var: Var) -> None:
        function = value.function
        table_method = _TABLE_METHOD_NAMES.get(id(function))
        if table_method is not None:
            assert isinstance(value.bound, Table)
            self._apply_table_method(value.bound, table_method, call, var)
            return
        self._register(function, call, value.bound, function)
        if function.is_generator:
            self._add(var, Gen(function, call))
            return
        for stmt in function.returns:
            if stmt.value is not None:
                self._flow_in_call(stmt.value, function, call, var)
        if not any(stmt.value is not None for stmt in function.returns):
            self._add(var, Lit(None, "NoneType"))

    def _apply_table_method(self, table: Table, name: str, call: Call, var: Var) -> None:
        if name in {"items", "values"}:
            self._add(var, View(table, name == "items"))
            return
        key = call.positional[0] if call.positional else None
        known = key.value if isinstance(key, Const) and isinstance(key.value, str) else None
        self._table_values(table, known, var)
        for default in call.positional[1:2]:
            self._flow(self._expr(default), var)

    def _returned(self, function: Function) -> Var:
        def start(var: Var) -> None:
            for stmt in function.returns:
                if stmt.value is not None:
                    self._flow(self._expr(stmt.value), var)
            if not any(stmt.value is not None for stmt in function.returns):
                self._add(var, Lit(None, "NoneType"))

        return self._get(("returned", function), start)

    # -- parameters

    def _register(
        self, function: Function, call: Call, bound: Value | None, target: Function
    ) -> None:
        """Note that ``call`` calls ``function``; its arguments flow into the parameters."""
        callers = self._callers.setdefault(function, {})
        key = (call, bound, target)
        if key in callers:
            return
        callers[key] = None
        for param in function.params:
            var = self._vars.get(("parameter", function, param.name))
            if var is not None:
                self._pass(function, param, call, bound, var)

    def _parameter(self, function: Function, param: Param) -> Var:
        return self._get(
            ("parameter", function, param.name),
            lambda var: self._start_parameter(function, param, var),
        )

    def _start_parameter(self, function: Function, param: Param, var: Var) -> None:
        cls = function.cls
        if cls is not None and function.params and param is function.params[0]:
            if function.is_classmethod or function.name in {"__new__", "__init_subclass__"}:
                self._add(var, ClassRef(cls))
                return
            if not function.is_static:
                self._add(var, Obj(cls))
                return
        for call, bound, _ in list(self._callers.get(function, ())):
            self._pass(function, param, call, bound, var)
        self._start_spawned(function, param, var)
        for call in self.call_candidates(function):
            # Resolving the callee registers the call, if it is one of this function.
            self._expr(call)
        if param.is_star:
            self._add(var, Unknown(f"`{param.name}` collects any arguments"))

        def nobody() -> None:
            if not self._callers.get(function):
                self._add(
                    var, Unknown(f"nothing in this tree calls `{function.qualname}`", function)
                )
                if param.default is not None:
                    self._flow(self._expr(param.default), var)

        self._late.append(nobody)

    def _start_spawned(self, function: Function, param: Param, var: Var) -> None:
        """What ``mp.spawn(function, args=(…))`` and ``Process(target=function, …)`` pass."""
        for call, target, shift in self._spawned.get(function.name, ()):
            given = call.keyword("args")
            if given is None and shift and len(call.positional) > 1:
                given = call.positional[1]
            index = function.params.index(param) - shift
            if function.cls is not None and not function.is_static:
                index -= 1
            if given is None or index < 0:
                continue
            source = self._component(self._expr(given), index)
            self._on(
                self._expr(target),
                lambda value, source=source: (  # type: ignore[misc]
                    self._flow(source, var)
                    if isinstance(value, FuncRef) and value.function is function
                    else None
                ),
            )

    @cached_property
    def _spawned(self) -> dict[str, list[tuple[Call, Expr, int]]]:
        """The calls that run a function elsewhere, by the name of what they run.

        Each with that, and with how many arguments it adds first.
        """
        by_name: dict[str, list[tuple[Call, Expr, int]]] = {}
        for name, (keyword, shift) in _SPAWNERS.items():
            for call in self.project.calls_named(name):
                target = call.keyword(keyword) or next(iter(call.positional), None)
                spelled = last_name(target) if target is not None else None
                if target is not None and spelled is not None:
                    by_name.setdefault(spelled, []).append((call, target, shift))
        return by_name

    def call_candidates(self, function: Function) -> Iterator[Call]:
        """The calls whose spelling could mean ``function``."""
        names = [function.name, *self.project.aliases(function.name, function)]
        if function.name == "__call__":
            return
        if function.name == "__init__" and function.cls is not None:
            derived = self.subclasses(function.cls)
            names = [cls.name for cls in (function.cls, *derived)]
            for cls in derived:
                yield from self.base_init_calls(cls)
        for name in dict.fromkeys(names):
            calls = self.project.calls_near(name, function)
            if len(calls) <= MOST_CALLERS:
                yield from calls

    def callers(self, function: Function) -> list[Call]:
        """Every call of ``function`` that could be resolved."""
        for call in self.call_candidates(function):
            self.values(call)
        return [call for call, _, _ in self._callers.get(function, ())]

    def callees(self, call: Call) -> list[Function]:
        """The functions of the tree that ``call`` may call (``__init__`` for a class)."""
        out: dict[Function, None] = {}
        for value in self.values(self.as_made(call).func):
            if isinstance(value, FuncRef) and id(value.function) not in _TABLE_METHOD_NAMES:
                out[value.function] = None
            elif isinstance(value, ClassRef):
                init = self.method(value.cls, "__init__")
                if isinstance(init, Function):
                    out[init] = None
            elif isinstance(value, Obj) and isinstance(value.cls, Class):
                method = self.method(value.cls, "__call__")
                if isinstance(method, Function):
                    out[method] = None
        return list(out)

    def _pass(
        self, function: Function, param: Param, call: Call, bound: Value | None, var: Var
    ) -> None:
        given = passed(function, param, call, is_bound=bound is not None)
        if given is MISSING and function.self_name == param.name:
            return  # the object itself: see _start_parameter
        if given is MISSING:
            if param.default is not None:
                self._flow(self._expr(param.default), var)
            elif not param.is_star:
                self._add(var, Unknown(f"a decorator of `{function.name}` passes `{param.name}`"))
        elif isinstance(given, Expr):
            self._flow(self._expr(given), var)
        else:
            for arg in call.args:
                if arg.stars == 2:
                    self._on(
                        self._expr(arg.value),
                        lambda value: (
                            self._table_values(value, param.name, var)
                            if isinstance(value, Table)
                            else self._add(var, Unknown("passed by **"))
                        ),
                    )
                elif arg.stars == 1:
                    self._add(var, Unknown("passed by *"))

    # -- arguments of constructions

    def params(self, cls: Class | str) -> tuple[str, ...] | None:
        """The constructor's parameter names without ``self``; None if they are not known."""
        if isinstance(cls, str):
            entry = next((e for e in catalog.known_mro(cls) if e.params), None)
            return entry.params if entry is not None else None
        init = self.method(cls, "__init__")
        if isinstance(init, Function):
            return tuple(
                p.name for p in init.params[1:] if p.kind not in {"vararg", "kwarg", "keyword_only"}
            )
        for base in self.mro(cls):
            if isinstance(base, Unknown):
                return None
            if isinstance(base, str):
                return self.params(base) if catalog.known(base) else None
        return ()

    def argument(self, obj: Obj, name: str) -> Expr | None:
        """The expression passed for parameter ``name`` when ``obj`` was built, or None.

        None also where ``*args`` or ``**kwargs`` may carry it: see :meth:`may_be_passed`.
        """
        if obj.site is None:
            return None
        if (passed_on := passes_on(obj.cls, name)) is not None:
            return obj.site.keyword(name) if passed_on else None
        site = obj.site
        given = site.keyword(name)
        if given is not None:
            return given
        params = self.params(obj.cls)
        if params and name in params:
            index = params.index(name)
            if index < len(site.positional):
                return site.positional[index]
        for arg in site.args:
            if arg.stars == 2:
                for value in self.ask(arg.value):
                    if isinstance(value, Table):
                        found = table_entry(value, name)
                        if found is not None:
                            return found
        return None

    def may_be_passed(self, obj: Obj, name: str) -> bool:
        """Whether the argument could arrive by ``*args`` or ``**kwargs`` that are not followed."""
        if obj.site is None:
            return True
        if passes_on(obj.cls, name) is not None:
            # Of a sampler and a batch sampler, a loader has one.
            pair = {"sampler", "batch_sampler"}
            given = pair if name in pair else {name}
            return not any(self.argument(obj, each) for each in given)
        if self.argument(obj, name) is not None or not (
            obj.site.has_star or obj.site.has_double_star
        ):
            return False
        if obj.site.has_star:
            params = self.params(obj.cls)
            if params is None or name in params:
                return True
        for arg in obj.site.args:
            if arg.stars == 2:
                tables = self.ask(arg.value)
                if not tables or not all(isinstance(value, Table) for value in tables):
                    return True
                if any(not is_closed(value) for value in tables if isinstance(value, Table)):
                    return True
        return False

    def constants(self, expr: Expr | None, through: Call | None = None) -> set[Any] | None:
        """The literal values ``expr`` can have, or None when one of them is not known.

        With ``through``, a parameter of the function called there has the value passed there.
        """
        if expr is None:
            return None
        if isinstance(expr, Unary) and expr.op == "Not":
            inner = self.constants(expr.operand, through)
            return None if inner is None else {not value for value in inner}
        if isinstance(expr, Choice) and expr.kind == "if":
            test = self.constants(expr.test, through)
            picked = expr.options
            if test is not None and len(test) == 1:
                picked = [expr.options[0] if next(iter(test)) else expr.options[1]]
            return self._join(picked, through)
        if isinstance(expr, Choice):
            first = self.constants(expr.options[0], through)
            if first is not None and len(first) == 1:
                truth = bool(next(iter(first)))
                if truth == (expr.kind == "or"):
                    return first
                if len(expr.options) == 2:
                    return self.constants(expr.options[1], through)
            return self._join(expr.options, through)
        if isinstance(expr, Compare) and len(expr.ops) == 1:
            return self._compare(expr, through)
        if through is not None and isinstance(expr, Name) and isinstance(expr.scope, Function):
            binding = expr.scope.bindings.get(expr.id, [])
            function = expr.scope
            if (
                len(binding) == 1
                and binding[0].how == "param"
                and function in self.callees(through)
            ):
                given = passed(
                    function,
                    binding[0].payload,
                    self.as_made(through),
                    is_bound=function.cls is not None and not function.is_static,
                )
                if given is MISSING:
                    return self.constants(binding[0].payload.default)
                return self.constants(given) if isinstance(given, Expr) else None
            if len(binding) == 1 and binding[0].how == "assign" and not binding[0].path:
                return self.constants(binding[0].value, through)
        out: set[Any] = set()
        values = self.values(expr)
        if not values:
            return None
        for value in values:
            if not isinstance(value, Lit):
                return None
            out.add(value.value)
        return out

    def _join(self, options: Iterable[Expr], through: Call | None) -> set[Any] | None:
        out: set[Any] = set()
        for option in options:
            values = self.constants(option, through)
            if values is None:
                return None
            out |= values
        return out

    def _compare(self, expr: Compare, through: Call | None) -> set[Any] | None:
        left = self.constants(expr.left, through)
        right = self.constants(expr.rights[0], through)
        if left is None or right is None or len(left) != 1 or len(right) != 1:
            return None
        a, b = next(iter(left)), next(iter(right))
        op = expr.ops[0]
        if op in EQUAL:
            return {a == b}
        if op in UNEQUAL:
            return {a != b}
        return None


# --------------------------------------------------------------------------- helpers

_BUILTINS = frozenset(dir(builtins))


def _pseudo(name: str) -> Function:
    function = Function()
    function.name, function.outer = name, None
    return function


_TABLE_METHODS = {name: _pseudo(name) for name in ("items", "values", "get", "pop")}
_TABLE_METHOD_NAMES = {id(function): name for name, function in _TABLE_METHODS.items()}


def _attribute_of_made(dotted: str, name: str) -> str:
    """The dotted name of an attribute of what an outside call made.

    What comes of asking such an attribute for its own like again (a loop over ``x.values()``)
    is the same, or the names would grow for ever and crowd out the values of the tree.
    """
    whole = f"{dotted}()."
    at = whole.find(f"().{name}().")
    return f"{dotted}().{name}" if at < 0 else f"{dotted[:at]}().{name}"


def _origin(value: Value) -> Scope | None:
    """The scope in which an object or a container is made."""
    if isinstance(value, Obj):
        return value.site.scope if value.site is not None else None
    if isinstance(value, (Pack, Table)) and not isinstance(value.node, Comp):
        return value.node.scope
    return None


__all__ = [
    "MISSING",
    "Base",
    "ClassRef",
    "Ext",
    "ExtObj",
    "Flow",
    "Frame",
    "FuncRef",
    "Gen",
    "Lit",
    "ModRef",
    "Obj",
    "Pack",
    "Partial",
    "Super",
    "Table",
    "Unknown",
    "Value",
    "Values",
    "View",
    "passed",
]
