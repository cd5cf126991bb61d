"""Calls: what they build and give back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeGuard

from sampler_lint import catalog
from sampler_lint.analysis.arguments import (
    MISSING,
    as_tuple,
    complete,
    decorated,
    field_names,
    handed_back,
    passed,
    takes_parameter,
)
from sampler_lint.analysis.attributes import DICTS
from sampler_lint.analysis.containers import TABLE_METHOD_NAMES, VIEWS
from sampler_lint.analysis.declared import Declared
from sampler_lint.analysis.decorators import returns_another
from sampler_lint.analysis.passing import Passing
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.solver import Var
from sampler_lint.analysis.values import (
    NONE,
    AnyModule,
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
    View,
    Why,
    made_in,
)
from sampler_lint.limits import DEEPEST_CALLS, MOST_PARTIALS
from sampler_lint.syntax.navigation import (
    built_by_itself,
    imported_by_call,
    method_around,
)
from sampler_lint.syntax.nodes import (
    Binding,
    Call,
    Choice,
    Class,
    Const,
    Expr,
    Function,
    Index,
    Map,
    Name,
    Param,
    Scope,
    Seq,
    last_name,
)
from sampler_lint.workspace.project import Project

#: What keeps its keyword arguments, as entries or as attributes.
_KEEPS_KEYWORDS = {"types.SimpleNamespace", "argparse.Namespace"}
#: Which method it calls hangs on its argument.
_NEXT = Ext("next")


class Calls(Passing):
    """Follows what calls build, and what is returned back to them."""

    def __init__(self, project: Project, declared: Declared) -> None:
        super().__init__(project)
        self.declared = declared
        self._completions: dict[tuple[Partial, Call], Call] = {}
        self._partials_within: dict[Call, int] = {}
        self._callees: dict[Call, tuple[frozenset[Value], list[Function]]] = {}
        """What calls may call, each with the values that it was told by: it holds while nothing
        comes to them."""
        self._resolved_unspelled: set[str] = set()
        """The programs whose calls that spell nothing are resolved."""
        self._with_all_callers: set[Function] = set()

    @abstractmethod
    def constants(self, expr: Expr | None, through: Call | None = None) -> set[Any] | None:
        """The literal values of an expression; None when one of them is not known."""

    def _start_call(self, call: Call, var: Var) -> None:
        func = call.func
        if isinstance(func, Name) and func.id == "super":
            self._start_super(call, var)
            return
        self._on(self._called(call), lambda value: self._apply(value, call, var))

    def _called(self, call: Call) -> Var:
        """What a call calls: ``cls(…)`` in a class method that class, or one below it."""
        cls = built_by_itself(call)
        if cls is None:
            return self._expr(call.func)

        def start(var: Var) -> None:
            for own in (cls, *self.subclasses(cls)):
                self._add(var, ClassRef(own))

        return self._get(("own class", cls), start)

    def _start_super(self, call: Call, var: Var) -> None:
        method = method_around(call.scope)
        if method is not None and method.cls is not None:
            self._add(var, Super(method.cls, Obj(method.cls)))
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
        elif dotted == "functools.partial" and call.positional:
            self._add(var, Partial(call))
        elif dotted == "collections.namedtuple":
            names = field_names(call)
            self._add(var, TupleType(names) if names else ExtObj(dotted, call))
        elif dotted in DICTS or (dotted in _KEEPS_KEYWORDS and not call.positional):
            self._add(var, Table(call))
        elif dotted == "dict.fromkeys" and len(call.positional) == 2:
            self._add(var, Table(_with_keys(call)))
        elif dotted == "getattr" and len(call.positional) >= 2:
            self._apply_getattr(call, var)
        elif dotted == "importlib.import_module" and call.positional:
            self._apply_import(call, var)
        elif dotted == "next" and call.positional:
            self._apply_next(value, call, var)
        elif (given := handed_back(dotted, call)) is not None:
            self._flow(self._expr(given), var)
        elif dotted.endswith(".__init__"):
            self._add(var, NONE)
        else:
            self._add(var, ExtObj(dotted, call))

    def _apply_getattr(self, call: Call, var: Var) -> None:
        owner, name, *default = call.positional
        unknown = Unknown("getattr with a computed name")

        def read_any(value: Value) -> None:
            if isinstance(value, ModRef):
                self._any_member(value.path, unknown, var)
            else:
                self._add(var, unknown)

        def read(named: Value) -> None:
            if not (isinstance(named, Lit) and isinstance(named.value, str)):
                self._on(self._expr(owner), read_any)
                return
            attribute = named.value

            def start(found: Var) -> None:
                self._on(self._expr(owner), lambda value: self._attribute(value, attribute, found))

            def known(value: Value) -> None:
                # What nothing sets is the default.
                undefined = isinstance(value, Unknown) and value.why is Why.UNDEFINED
                if not (undefined and default):
                    self._add(var, value)

            self._on(self._get(("getattr", self._expr(owner), attribute), start), known)

        self._on(self._expr(name), read)
        for other in default[:1]:
            self._flow(self._expr(other), var)

    def _apply_import(self, call: Call, var: Var) -> None:
        """``import_module(name)``: the module of that name, or any that its beginning leads to."""
        name = imported_by_call(call)
        if not isinstance(call.positional[0], Const):
            self._add(var, AnyModule(name, call))
            return
        path = self.project.imports.find(name, self.project.module_of(call.scope)) if name else None
        self._add(var, ExtObj("importlib.import_module", call) if path is None else ModRef(path))

    def _apply_next(self, value: Ext, call: Call, var: Var) -> None:
        """``next(it)`` calls the ``__next__`` of an object of the tree."""
        made = ExtObj(value.dotted, call)

        def sink(owner: Value) -> None:
            method = _advances(self, owner)
            if method is None:
                self._add(var, made)
            else:
                self._apply_function(FuncRef(method, owner), call, var)
                for other in call.positional[1:2]:
                    self._flow(self._expr(other), var)

        self._on(self._expr(call.positional[0]), sink)

    def _apply_partial(self, inner: Value, partial: Partial, call: Call, var: Var) -> None:
        if self._partials_within.get(call, 0) == MOST_PARTIALS:
            self._add(var, Unknown("a partial of itself"))
        elif isinstance(inner, (FuncRef, Partial)):
            self._apply(inner, self._completed(partial, call), var)
        elif not call.args:
            self._apply(inner, self._completed(partial, partial.site), var)
        else:
            self._apply(inner, self._completed(partial, call), var)

    def _completed(self, partial: Partial, call: Call) -> Call:
        """A call of a ``partial`` as the call of its function that it makes."""
        made = self._completions.get((partial, call))
        if made is None:
            made = self._completions[partial, call] = complete(partial.site, call)
            self._partials_within[made] = self._partials_within.get(call, 0) + 1
        return made

    def completed(self, call: Call) -> list[Call]:
        """What a call of a ``partial`` calls; empty for other calls.

        And for one of another file: rules speak of a construction as of one place.
        """
        partials = [
            value
            for value in self.values(call.func)
            if isinstance(value, Partial)
            and (not call.args or call.scope.module is value.site.scope.module)
        ]
        return [
            self._completed(partial, site)
            for partial in partials
            for site in ([call] if call.args else [partial.site])
        ]

    def built_at(self, call: Call) -> list[Obj]:
        """The objects that a call itself builds, also as a call of a ``partial``.

        What a function gives back is built elsewhere, and need not be found out for this.
        """
        if not any(
            isinstance(value, (ClassRef, Ext, Partial)) or self.declared.built_by(value)
            for value in self._solve(self._called(call))
        ):
            return []
        sites = (call, *self.completed(call))
        return [
            value for value in self.values(call) if isinstance(value, Obj) and value.site in sites
        ]

    def as_made(self, call: Call) -> Call:
        """``call``, with the arguments that a ``partial`` adds where it is a call of one."""
        partials = [value for value in self.values(call.func) if isinstance(value, Partial)]
        if len(partials) != 1 or self._partials_within.get(call, 0) == MOST_PARTIALS:
            return call
        return self.as_made(self._completed(partials[0], call))

    def _apply_function(self, value: FuncRef, call: Call, var: Var) -> None:
        function = value.function
        table_method = TABLE_METHOD_NAMES.get(id(function))
        if table_method is not None:
            assert isinstance(value.bound, Table)
            self._apply_table_method(value.bound, table_method, call, var)
            return
        self._register(function, call, value.bound, function)
        self._decorate(function, var)
        if function.is_generator:
            self._add(var, Gen(function, call))
            return
        for stmt in function.returns:
            if stmt.value is not None and not self._gives_itself(stmt.value, value, var):
                self._flow_in_call(stmt.value, function, call, var)
        if not any(stmt.value is not None for stmt in function.returns):
            self._add(var, NONE)

    def _decorate(self, function: Function, var: Var) -> None:
        def sink(decorator: Value) -> None:
            if returns_another(decorator):
                made = f"a decorator of `{function.name}` makes something else of what it returns"
                self._add(var, Unknown(made))

        for decorator in function.decorators:
            self._on(self._expr(decorator), sink)

    def _apply_table_method(self, table: Table, name: str, call: Call, var: Var) -> None:
        if name in VIEWS:
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
                self._add(var, NONE)

        return self._get(("returned", function), start)

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
        if isinstance(expr, Index) and (key := _key_in_call(expr, frames)) is not None:
            self._flow_out(self._indexed(self._expr(expr.value), key), frames, var)
            return
        if isinstance(expr, Name) and expr.scope is function:
            bindings = definitions(function, expr) if expr.id in function.bindings else []
            if any(takes_parameter(binding, function) for binding in bindings):
                for binding in bindings:
                    self._bound_in_call(binding, frames, var)
                return
        by_name = isinstance(expr, Call) and not (
            isinstance(expr.func, Name) and expr.func.id == "super"
        )
        if isinstance(expr, Call) and by_name and len(outer) < DEEPEST_CALLS:
            called = self._called(expr)
            if _is_by_key(expr.func, function):
                called = self._get(
                    ("in-call", expr.func, frames),
                    lambda v: self._start_in_call(expr.func, frames, v),
                )
            self._on(called, lambda v: self._call_in_call(v, expr, frames, var))
        else:
            self._flow_out(self._expr(expr), frames, var)

    def _flow_out(self, source: Var, frames: tuple[Frame, ...], var: Var) -> None:
        """Let values leave a function: what was built in it remembers by which call."""
        function, call = frames[0]

        def sink(value: Value) -> None:
            origin = made_in(value)
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
            self._decorate(value.function, var)
            for stmt in value.function.returns:
                if stmt.value is not None and not self._gives_itself(stmt.value, value, var):
                    self._flow_in_call(stmt.value, value.function, call, var, *frames)

    def _gives_itself(self, returned: Expr, method: FuncRef, var: Var) -> bool:
        """Whether ``return self`` gives the very object whose method is called."""
        bound, name = method.bound, method.function.self_name
        if not isinstance(bound, Obj) or not isinstance(returned, Name) or returned.id != name:
            return False
        self._add(var, bound)
        return True

    @staticmethod
    def _is_plain_call(value: Value) -> TypeGuard[FuncRef]:
        return (
            isinstance(value, FuncRef)
            and id(value.function) not in TABLE_METHOD_NAMES
            and not value.function.is_generator
            and any(stmt.value is not None for stmt in value.function.returns)
        )

    def _bound_in_call(self, binding: Binding, frames: tuple[Frame, ...], var: Var) -> None:
        """Let flow what a local name is bound to: a parameter to what this call passes for it."""
        (function, call), *outer = frames
        given = binding.value if takes_parameter(binding, function) else None
        if isinstance(binding.payload, Param):
            given = passed(function, binding.payload, call)
            given = binding.payload.default if given is MISSING else given
        if not isinstance(given, Expr):
            self._flow_out(self._binding(binding, function), frames, var)
            return
        seen = tuple(outer) if isinstance(binding.payload, Param) else frames
        if seen:
            self._flow_in_call(given, *seen[0], var, *seen[1:])
        else:
            self._flow(self._expr(given), var)

    def callers(self, function: object) -> list[Call]:
        """Every call of ``function`` that could be resolved; none of what is no function."""
        if not isinstance(function, Function):
            return []
        if function not in self._with_all_callers:
            for find in (self.call_candidates, self._unspelled):
                for call in find(function):
                    self.values(call)
            if not self._solving:  # else not all are known yet
                self._with_all_callers.add(function)
        return [call for call, _, _ in self._callers.get(function, ())]

    def starters(self, function: object) -> list[Call]:
        """Its callers, and the calls that run it in another process or thread."""
        found = self.callers(function)
        for call, target, _ in self.spawned.get(getattr(function, "name", ""), ()):
            values = self.values(target)
            if any(isinstance(v, FuncRef) and v.function is function for v in values):
                found.append(call)
        return found

    def built(self, cls: Class) -> Iterator[Obj]:
        """What the calls of a class's own constructor build."""
        for call in self.callers(self.method(cls, "__init__")):
            for value in self.values(call):
                if isinstance(value, Obj) and value.cls is cls:
                    yield value

    def callers_of(self, scope: Scope) -> Iterator[Scope]:
        """The scopes that call a function."""
        return (call.scope for call in self.callers(scope))

    def called_by(self, scope: Scope) -> Iterator[Function]:
        """The functions that a scope calls."""
        return (callee for call in scope.calls for callee in self.callees(call))

    def _unspelled(self, function: Function) -> Iterable[Call]:
        """The calls near a function that spell nothing it could be called by; none a second time.

        They call what ``getattr`` gives, or a decorator. Resolving them once registers them all.
        """
        program = self.project.program_of(self.project.module_of(function))
        if program in self._resolved_unspelled:
            return []
        self._resolved_unspelled.add(program)
        found: list[Call] = []
        for module in self.project.modules_near(function):
            found += (call for call in module.facts.all_calls if self._spells_nothing(call))
            found += (call for cls in module.facts.classes for call in decorated(cls))
        for call in found:
            self._expr(call)  # all begin before one is followed: it may ask who calls a function
        return found

    def _spells_nothing(self, call: Call) -> bool:
        """Whether what is called is read from a container, or is what another call gives."""
        if isinstance(call.func, Name):
            return isinstance(_assigned(call.func), Index) or bool(self._asked(call))
        return isinstance(call.func, (Call, Index))

    def calls_by_string(self, scope: Scope) -> list[Call]:
        """The calls in a scope of what ``getattr`` gives there."""
        if "getattr" not in scope.called:
            return []
        return [call for call in scope.calls if self.name_asked_for(call) is not None]

    def name_asked_for(self, call: Call) -> Expr | None:
        """What gives the name of what is called, where that is read by ``getattr(owner, name)``."""
        asked = self._asked(call)
        return asked[1] if len(asked) > 1 else None

    def owner_asked(self, call: Call) -> Expr | None:
        """The ``owner`` of :meth:`name_asked_for`."""
        return next(iter(self._asked(call)), None)

    def _asked(self, call: Call) -> list[Expr]:
        func = _assigned(call.func) if isinstance(call.func, Name) else call.func
        is_read = isinstance(func, Call) and last_name(func.func) == "getattr"
        return func.positional if isinstance(func, Call) and is_read else []

    def callees(self, call: Call, through: Call | None = None) -> list[Function]:
        """The functions of the tree that ``call`` may call (``__init__`` for a class).

        With ``through``, those that the call of the function around it lets it call.
        """
        if through is None:
            told = self.values(call.func)
            known = self._callees.get(call)
            if known is not None and known[0] is told:
                return known[1]
            if not (self._solving or any(isinstance(v, Partial) or v == _NEXT for v in told)):
                known = self._callees[call] = told, self._callees_among(told, call, None)
                return known[1]
        asked = self.name_asked_for(call) if through is not None else None
        names = None if asked is None else self.constants(asked, through)
        return self._callees_among(self.values(self.as_made(call).func), call, names)

    def _callees_among(
        self, told: Iterable[Value], call: Call, names: set[Any] | None
    ) -> list[Function]:
        """The functions of the tree among what a call calls; only those so named, if ``names``."""
        out: dict[Function, None] = {}
        for value in told:
            if isinstance(value, FuncRef) and id(value.function) not in TABLE_METHOD_NAMES:
                if names is None or value.function.name in names:
                    out[value.function] = None
            elif isinstance(value, ClassRef):
                init = self.method(value.cls, "__init__")
                if isinstance(init, Function):
                    out[init] = None
            elif isinstance(value, Obj) and isinstance(value.cls, Class):
                method = self.method(value.cls, "__call__")
                if isinstance(method, Function):
                    out[method] = None
            elif value == _NEXT and call.positional:
                for owner in self.values(call.positional[0]):
                    method = _advances(self, owner)
                    if method is not None:
                        out[method] = None
        return list(out)


def _advances(flow: Calls, value: Value) -> Function | None:
    """The ``__next__`` of an object of the tree."""
    if not isinstance(value, Obj) or not isinstance(value.cls, Class):
        return None
    method = flow.method(value.cls, "__next__")
    return method if isinstance(method, Function) else None


def _assigned(name: Name) -> Expr | None:
    """What a local name is assigned, where that is one thing and the whole of it."""
    bindings = name.scope.bindings.get(name.id, ())
    return bindings[0].value if len(bindings) == 1 and not bindings[0].path else None


def _key_in_call(expr: Index, frames: tuple[Frame, ...]) -> object:
    """The literal key of ``table[name]``, where that is a parameter, as its caller passes it."""
    key: Any = expr.key
    for function, call in frames:
        param = function.param(key.id) if isinstance(key, Name) else None
        if param is None or key.scope is not function or len(definitions(function, key)) > 1:
            break
        key = passed(function, param, call)
        key = param.default if key is MISSING else key
    return key.value if isinstance(key, Const) and key is not expr.key else None


def _is_by_key(func: Expr, function: Function) -> bool:
    """Whether a key that is a parameter says what is called."""
    if isinstance(func, Name) and func.scope is function:
        assigned = _assigned(func) if func.id in function.bindings else None
        func = func if assigned is None else assigned
    key = func.key if isinstance(func, Index) else None
    return isinstance(key, Name) and function.param(key.id) is not None


def _with_keys(call: Call) -> Map:
    """The display that ``dict.fromkeys(keys, value)`` stands for."""
    keys, value = call.positional
    made = Map.at(call)
    made.scope = call.scope
    made.items = [(key, value) for key in (keys.items if isinstance(keys, Seq) else [keys])]
    return made
