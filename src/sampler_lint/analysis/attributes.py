"""Attributes of objects, classes and modules, and what objects were built with."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Set
from functools import partial
from operator import eq
from types import EllipsisType
from typing import NamedTuple

from sampler_lint import catalog
from sampler_lint.analysis.arguments import (
    MISSING,
    ORDERS_OF_LOADER,
    given_as,
    given_in_branches,
    passed,
    passed_on,
    tested_parameters,
)
from sampler_lint.analysis.containers import TABLE_METHODS, Containers
from sampler_lint.analysis.fillings import taken_from_dicts
from sampler_lint.analysis.named_stores import NamedStore, fills_dict, may_spell, named_stores
from sampler_lint.analysis.reaching import definitions, may_run_before, surely_runs_before
from sampler_lint.analysis.solver import Var
from sampler_lint.analysis.values import (
    NONE,
    AnyModule,
    ClassRef,
    Ext,
    ExtObj,
    FuncRef,
    Lit,
    ModRef,
    Obj,
    Pack,
    Super,
    Table,
    Unknown,
    Value,
    Why,
)
from sampler_lint.syntax.navigation import stmt_of
from sampler_lint.syntax.nodes import (
    Attr,
    Binding,
    Call,
    Class,
    Comp,
    Const,
    Expr,
    Function,
    Map,
    Name,
    Param,
    Scope,
    Seq,
    Stmt,
    Store,
)
from sampler_lint.workspace.project import Project


class _Handed(NamedTuple):
    """What an ``__init__`` hands its base, and its own parameter that this is."""

    given: Expr | None
    param: Param | None
    init: Function | None
    calls: tuple[Call, ...] = ()
    """By which the classes that derive from its class run it, up to the object's own."""
    is_lost: bool = False
    """Whether it is not seen what is handed."""


_LOST = _Handed(None, None, None, is_lost=True)


DICTS = frozenset({"dict", "collections.OrderedDict", "collections.defaultdict"})


class Attributes(Containers):
    """Follows what objects are built with and what is kept in their attributes."""

    def __init__(self, project: Project) -> None:
        """Begin with nothing known."""
        super().__init__(project)
        self._handed: dict[tuple[Class, str], _Handed | None] = {}
        self._tested: dict[Function, list[Param]] = {}
        self._named: dict[Class, tuple[list[NamedStore], bool]] = {}

    @abstractmethod
    def _member(self, path: str, name: str, var: Var) -> None:
        """Let flow into ``var`` the name ``name`` of the module at ``path``."""

    @abstractmethod
    def _given(self, expr: Expr, made: Obj | None) -> Var:
        """An expression, in the constructors that build an object like ``made``."""

    @abstractmethod
    def _binding(self, binding: Binding, scope: Scope) -> Var:
        """What one way of binding a name in ``scope`` gives it."""

    def _attribute(self, value: Value, name: str, var: Var) -> None:
        if isinstance(value, ModRef):
            self._member(value.path, name, var)
            self._flow(self._set_in_module(value, name), var)
        elif isinstance(value, AnyModule):
            self._member_of_any(value, name, var)
        elif isinstance(value, Ext):
            self._add(var, Ext(catalog.canonical(f"{value.dotted}.{name}")))
        elif isinstance(value, ExtObj):
            self._attribute_of_made(value, name, var)
        elif isinstance(value, Obj):
            self._flow(self.field(value, name), var)
        elif isinstance(value, Super):
            self._super_attribute(value, name, var)
        elif isinstance(value, ClassRef):
            self._flow(self._class_attribute(value.cls, name, value), var)
        elif isinstance(value, Table):
            if name in TABLE_METHODS:
                self._add(var, FuncRef(TABLE_METHODS[name], value))
            else:
                self._table_values(value, name, var)  # attribute-style config dicts
        elif isinstance(value, Pack) and name in value.names:
            self._pick(value, value.names.index(name), var)
        elif isinstance(value, Unknown):
            self._add(var, value)
        elif not isinstance(value, Lit):
            self._add(var, Unknown(f"`.{name}` of something that is not followed"))

    def _set_in_module(self, module: ModRef, name: str) -> Var:
        """What others keep under a name of a module: ``state.loader = …``."""

        def start(var: Var) -> None:
            found = self.project.module_telling(module.path)
            if found is not None:
                self._stored_from_outside(name, found.facts, partial(eq, module), var)

        return self._get(("set-in-module", module, name), start)

    def _attribute_of_made(self, made: ExtObj, name: str, var: Var) -> None:
        """An attribute of what an outside call made: an object that the tree keeps there.

        That is one it stores, or passes by that name. What else it may be is not known: a
        namespace of options has values of its own.
        """
        outside = Ext(made.dotted_attribute(name))
        stores = [
            store
            for store in self.project.outer_stores_near(name, made.site.scope)
            if store.value is not None and store.how == "assign"
        ]
        given = _given_by_name(made.site, name)
        if not stores and given is None:
            self._add(var, outside)
            return

        def start(kept: Var) -> None:
            for store in stores:
                self._keep_objects(store, made, kept)
            if given is not None:
                self._on(self._expr(given), partial(self._keep, kept))

            def nobody() -> None:
                if all(isinstance(value, Lit) for value in kept.values):
                    self._add(kept, outside)

            self._late.append(nobody)

        self._flow(self._get(("made-field", made, name), start), var)

    def _keep_objects(self, store: Store, made: ExtObj, kept: Var) -> None:
        """Let flow on the objects and displays that a store keeps in what was made, and None."""
        assert isinstance(store.target, Attr)
        assert store.value is not None
        source = self._part(self._expr(store.value), store.path)
        keep = partial(self._keep, kept)
        self._on(
            self._expr(store.target.value),
            lambda owner: self._on(source, keep) if owner == made else None,
        )

    def _keep(self, kept: Var, value: Value) -> None:
        if isinstance(value, (ExtObj, Obj, Pack, Table)) or value == NONE:
            self._add(kept, value)

    def field(self, obj: Obj, name: str) -> Var:
        """The attribute ``name`` of an object."""
        if isinstance(obj.cls, str):
            return self._get(
                ("known-field", obj, name), lambda var: self._start_known_field(obj, name, var)
            )
        cls = obj.cls
        key: tuple[object, ...] = ("field", cls, obj.site is None, name)
        is_data = not self._finds_init(cls) and name in self.fields(cls)
        if obj.site is None and is_data:
            return self._get(key, lambda var: self._start_any_data_field(cls, name, var))
        if obj.site is not None and not self._finds_init(cls):
            if is_data:
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
        if (made := self._made_for(obj, name)) is not None:
            self._add(var, made)
        elif any(name in entry.methods for entry in entries):
            self._add(var, Ext(f"{obj.cls}().{name}"))
        else:
            self._add(var, Unknown(f"`.{name}` of {obj.name}", Why.FOREIGN))

    def _made_for(self, obj: Obj, name: str) -> Obj | None:
        """What a known constructor builds for an attribute, as it was given none."""
        assert isinstance(obj.cls, str)
        for entry in catalog.known_mro(obj.cls):
            for attribute, made, own, switch in entry.makes:
                if attribute != name or obj.site is None or self.may_be_passed(obj, name):
                    continue
                given = {each: self.argument(obj, each) for each in own}
                off = given[switch]
                if isinstance(off, Const) and off.value is None:
                    continue
                call = passed_on(obj.site, {k: v for k, v in given.items() if v is not None})
                return Obj(made, call, obj.through)
        return None

    def _start_data_field(self, obj: Obj, name: str, var: Var) -> None:
        assert isinstance(obj.cls, Class)
        assert obj.site is not None
        given = given_as(obj.site, self.fields(obj.cls), name)
        if given is not None and obj.through is not None and isinstance(obj.site.scope, Function):
            self._flow_in_call(given, obj.site.scope, obj.through, var)
        elif given is not None:
            self._flow(self._expr(given), var)
        self._start_field(obj.cls, Obj(obj.cls), name, var)

    def _start_any_data_field(self, cls: Class, name: str, var: Var) -> None:
        """What the calls near a dataclass build its objects with, whichever object it is."""

        def build(given: Expr, value: Value) -> None:
            if isinstance(value, ClassRef) and value.cls is cls:
                self._flow(self._expr(given), var)

        for call in self.project.calls_near(cls.name, cls):
            given = given_as(call, self.fields(cls), name)
            if given is not None:
                self._on(self._expr(call.func), partial(build, given))
        self._start_field(cls, Obj(cls), name, var)

    def _start_field(self, cls: Class, obj: Obj, name: str, var: Var) -> None:
        found = False
        hierarchy = self.family(cls) if obj.site is None else self.mro(cls)
        overridden = False
        for number, base in enumerate(hierarchy):
            if isinstance(base, Class):
                # A subclass may override what the hierarchy above it defines.
                hidden = overridden and number < len(self.mro(cls))
                found |= self._own_attribute(base, name, obj, var, hidden=hidden)
                overridden |= name in base.bindings
                found |= self._set_by_name(base, name, var, found=found)
        relatives = {base for base in hierarchy if isinstance(base, Class)}

        def is_relative(owner: Value) -> bool:
            return isinstance(owner, Obj) and owner.cls in relatives

        self._stored_from_outside(name, cls, is_relative, var)
        if self.project.outer_stores_near(name, cls):
            self._on(self._set_on_class(cls, relatives, name), partial(self._bind, obj, var))
        if not found:
            for base in hierarchy:
                if isinstance(base, str) and catalog.handed_back(f"{base}().{name}"):
                    self._add(var, Ext(f"{base}().{name}"))
                    return
                if isinstance(base, str) and catalog.known(base) is not None:
                    entries = catalog.known_mro(base)
                    if any(name in e.methods or name in e.attributes for e in entries):
                        self._inherited_known(cls, base, obj, name, var)
                        return

            def nobody() -> None:
                # Nothing in the class sets it; somebody outside may.
                if not var.values:
                    unset = f"`.{name}` is set nowhere in {cls.name}"
                    self._add(var, Unknown(unset, self.why_unset(cls)))

            self._late.append(nobody)

    def _set_on_class(self, cls: Class, relatives: Set[Class], name: str) -> Var:
        """What others keep under a name of a class or a relative: ``Trainer.begin = function``."""

        def is_one(owner: Value) -> bool:
            return isinstance(owner, ClassRef) and owner.cls in relatives

        start = partial(self._stored_from_outside, name, cls, is_one)
        return self._get(("set-on-class", frozenset(relatives), name), start)

    def _set_by_name(self, cls: Class, name: str, var: Var, *, found: bool) -> bool:
        """What the code of a class may set the attribute to by its name; whether it may.

        A name of which nothing is written may be any, but is hardly one that is ``found`` set.
        """
        if cls not in self._named:
            self._named[cls] = named_stores(cls), fills_dict(cls) or self._has_items(cls)
        stores, is_filled = self._named[cls]
        is_filled &= not found
        if not stores and not is_filled:
            return False  # most are so
        fitting = [s for s in stores if may_spell(s.name, name) and not (found and s.is_any)]
        for store in fitting:
            if not store.is_any:  # that would be each of many values under each of many names
                self._flow(self._expr(store.value), var)
        if is_filled or any(not isinstance(store.name, Const) for store in fitting):
            self._add(var, Unknown(f"`.{name}` may be set by name in {cls.name}"))
        return is_filled or bool(fitting)

    def _has_items(self, cls: Class) -> bool:
        """Whether attributes are items of a dict, which whoever has an object may fill by keys."""
        return cls.makes_up_attributes and any(
            isinstance(base, str) and base in DICTS for base in self.mro(cls)
        )

    def _stored_from_outside(
        self, name: str, scope: Scope, is_owner: Callable[[Value], bool], var: Var
    ) -> None:
        """``owner.name = value`` outside a method: for the owners that are asked for."""
        for store in self.project.outer_stores_near(name, scope):
            if store.value is not None and store.how == "assign":
                assert isinstance(store.target, Attr)
                source = self._part(self._expr(store.value), store.path)
                self._on(self._expr(store.target.value), partial(self._kept, is_owner, source, var))

    def _kept(self, is_owner: Callable[[Value], bool], source: Var, var: Var, owner: Value) -> None:
        if is_owner(owner):
            self._flow(source, var)

    def _inherited_known(self, cls: Class, base: str, obj: Obj, name: str, var: Var) -> None:
        """An attribute that a torch base sets: what the subclass passed to ``super().__init__``."""
        entry = next((e for e in catalog.known_mro(base) if e.params), None)
        if entry is not None and name in entry.params:
            for owner in self.mro(cls):
                calls = self.base_init_calls(owner) if isinstance(owner, Class) else ()
                found = [given_as(call, entry.params, name) for call in calls]
                for each in filter(None, found):
                    self._flow(self._expr(each), var)
                if any(found):
                    if not all(found):  # of another call the base makes its own
                        self._add(var, Ext(f"{base}().{name}"))
                    return
            if obj.site is not None and not self._finds_init(cls):
                given = given_as(obj.site, entry.params, name)
                if given is not None:
                    self._flow(self._expr(given), var)
                    return
        self._add(var, Ext(f"{base}().{name}"))

    def _own_attribute(self, cls: Class, name: str, obj: Value, var: Var, *, hidden: bool) -> bool:
        """What the class body and its methods' ``self.name = …`` give; whether there was any.

        ``hidden`` leaves out the class body: a class before it in the order defines the name.
        """
        found = False
        for binding in () if hidden else cls.bindings.get(name, ()):
            found = True
            if isinstance(method := binding.payload, Function):
                if method.is_property:
                    self._flow(self._returned(method), var)
                elif method.is_static:
                    self._add(var, FuncRef(method))
                else:
                    self._add(var, FuncRef(method, obj))
            elif binding.how != "opaque":
                self._on(self._binding(binding, cls), partial(self._bind, obj, var))
        for store in self.project.own_stores(name, cls):
            if store.value is not None:
                found = True
                if store.how == "assign":
                    made = obj if isinstance(obj, Obj) and obj.cls is not cls else None
                    self._flow(self._part(self._given(store.value, made), store.path), var)
                elif store.how == "enter":
                    self._flow(self._entered(self._expr(store.value)), var)
                elif store.how != "aug" or not isinstance(store.value, (Seq, Comp, Map)):
                    # What a display is added to is the list or dict that is kept there.
                    self._add(var, Unknown(f"`{name}` is changed in place"))
        return found

    def _bind(self, obj: Value, var: Var, value: Value) -> None:
        """What the body of a class holds, read from an object: a function is a method of it."""
        if isinstance(value, FuncRef) and value.bound is None:
            value = FuncRef(value.function, obj)
        self._add(var, value)

    def _class_attribute(self, cls: Class, name: str, receiver: Value) -> Var:
        def start(var: Var) -> None:
            for base in self.mro(cls):
                if isinstance(base, Class) and base.bindings.get(name):
                    for binding in base.bindings[name]:
                        if isinstance(function := binding.payload, Function):
                            bound = receiver if function.is_classmethod else None
                            self._add(var, FuncRef(function, bound))
                        else:
                            self._flow(self._binding(binding, base), var)
                    return
                if isinstance(base, str):
                    self._add(var, Ext(f"{base}.{name}"))
                    return
            self._add(var, Unknown(f"`.{name}` of class {cls.name}", self.why_unset(cls)))

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
        self._add(var, Unknown(f"`super().{name}`", self.why_unset(value.cls)))

    def argument(self, obj: Obj, name: str) -> Expr | None:
        """The expression passed for parameter ``name`` when ``obj`` was built, or None.

        None also where ``*args`` or ``**kwargs`` may carry it: see :meth:`may_be_passed`.
        """
        if obj.site is None:
            return None
        passes = catalog.passes_on(obj.cls, name)
        if passes is not None:
            is_known = isinstance(obj.cls, str) and catalog.factory(obj.cls) is not None
            given = self._passed_at(obj, name) if is_known else obj.site.keyword(name)
            return given if passes else None
        handed = self._handed_up(obj, name)
        if handed is None:
            return self._passed_at(obj, name)
        if handed.is_lost:
            return None
        return self._passed_at(obj, handed.param.name) if handed.param else handed.given

    def _handed_up(self, obj: Obj, name: str) -> _Handed | None:
        """What the ``__init__`` of a loader's class hands torch for a parameter of torch's.

        None where the class has no say in it: what its call passes is handed on.
        """
        if not isinstance(obj.cls, Class):
            return None
        key = (obj.cls, name)
        if key not in self._handed:
            self._handed[key] = self._hands_up(obj.cls, name)
        handed = self._handed[key]
        if handed is None or handed.param is not None or handed.given is None:
            return handed
        return _LOST if self._is_chosen(obj.site, handed) else handed

    def _is_chosen(self, site: Call | None, handed: _Handed) -> bool:
        """Whether the call that builds an object may say which of several values is handed up.

        Where what is asked of its arguments is not known there either, each of them may be.
        """
        assert handed.given is not None
        assert handed.init is not None
        values = self.ask(handed.given)
        if len(values) == 1 or site is None:
            return False
        built = [each.site for each in values if isinstance(each, Obj)]
        if not all(made is not None and made.scope is handed.init for made in built):
            return True
        if handed.init not in self._tested:
            self._tested[handed.init] = tested_parameters(handed.init)
        for tested in self._tested[handed.init]:
            init, param = handed.init, tested
            for call in (*handed.calls, site):
                given = passed(init, param, call)
                if given is MISSING or isinstance(given, Const):
                    return True
                if not isinstance(call.scope, Function):
                    break
                init, own = call.scope, _own_parameter(call.scope, given)
                if own is None:
                    break
                param = own
        return False

    def _hands_up(self, cls: Class, name: str) -> _Handed | None:
        order = self.mro(cls)
        library = next((base for base in order if isinstance(base, str)), None)
        entries = catalog.known_mro(library) if library is not None else ()
        params = self.params(library) if library is not None else None
        if (
            params is None
            or name not in params
            or not any(entry.kind == "loader" for entry in entries)
            or any(isinstance(base, Unknown) for base in order)
        ):
            return None
        handed: _Handed | None = None
        for base in reversed(order):
            init = base.method("__init__") if isinstance(base, Class) else None
            if init is None or not isinstance(base, Class):
                continue
            handed = self._next_handed(init, self.base_init_calls(base), params, name, handed)
            if handed is None or handed.is_lost:
                return handed
            params = self.params(base) or ()
        return handed

    def _next_handed(
        self,
        init: Function,
        calls: list[Call],
        params: tuple[str, ...],
        name: str,
        above: _Handed | None,
    ) -> _Handed | None:
        """What an ``__init__`` hands up, where ``above`` is what the base hands on."""
        if above is not None and above.param is None:
            return above._replace(calls=(*above.calls, *calls))
        asked = name if above is None or above.param is None else above.param.name
        found = given_in_branches(calls, params, asked) if asked in params else None
        if found is None and (asked in params or len(calls) != 1):
            return _LOST
        call, given = found if found is not None else (calls[0], None)
        if given is None:
            for arg in call.args:
                if arg.stars and (_own_parameter(init, arg.value) is None or above is not None):
                    return _LOST
                if arg.stars:
                    return None
            given = above.param.default if above is not None and above.param else None
        param = _own_parameter(init, given)
        if param is None and isinstance(given, Name) and _may_be_parameter(init, given):
            return _LOST
        return _Handed(given, param, init)

    def _places(self, cls: Class | str) -> tuple[str, ...] | None:
        """The parameters of a constructor that arguments fill by their place.

        Where its ``*args`` take them all, and go on to the base as they are, these of the base.
        """
        own = self.params(cls)
        init = self.method(cls, "__init__") if isinstance(cls, Class) else None
        if own or not isinstance(init, Function) or init.cls is None:
            return own
        calls, bases = self.base_init_calls(init.cls), self.mro(init.cls)[1:]
        first = calls[0].args[0] if len(calls) == 1 and calls[0].args else None
        if first is None or first.stars != 1 or not bases or isinstance(bases[0], Unknown):
            return own
        taken = _own_parameter(init, first.value)
        return self._places(bases[0]) if taken is not None and taken.kind == "vararg" else own

    def _passed_at(self, obj: Obj, name: str) -> Expr | None:
        """What the call that builds an object passes for a parameter of its class."""
        site = obj.site
        if site is None:
            return None
        given = site.keyword(name)
        if given is not None:
            return given
        placed = site.positional
        params = self._places(obj.cls) if placed else None
        if params and name in params:
            index = params.index(name)
            if index < len(placed):
                return placed[index]
        for arg in site.args:
            if arg.stars == 2:
                starred = self._starred(obj, arg.value)
                tables = [v for v in starred if isinstance(v, Table)]
                if len(tables) < len(starred):
                    return None  # another dict may hold something else
                entries = [self.entries(table, name, site) for table in tables]
                shown = [self._shown(obj, table, name) for table in tables]
                if None in entries or ... in shown:
                    return None
                found = {put for each in entries for _, put, _ in each or ()}
                found |= {own for own in shown if isinstance(own, Expr)}
                if len(found) == 1 and all(self._surely_has(obj, t, name) for t in tables):
                    return found.pop()
        return None

    def _starred(self, obj: Obj, given: Expr) -> frozenset[Value]:
        """What ``**given`` of a construction may be, where ``obj.through`` leads to it."""
        scope = obj.site.scope if obj.site is not None else None
        if isinstance(scope, Function) and isinstance(given, Name) and obj.through is not None:
            param = scope.param(given.id)
            own = self._kwargs.get((scope, obj.through))
            if own is not None and param is not None and param.kind == "kwarg":
                return frozenset({own})
        return self.ask(given)

    def _shown(
        self, obj: Obj, table: Table, name: str, within: tuple[Table, ...] = ()
    ) -> Expr | EllipsisType | None:
        """What a dict that a construction unpacks has for a key, or one that is merged into it.

        ``...`` where that is not seen; None where it has no such key.
        """
        found: Expr | EllipsisType | None = None
        for key, value in table.entries:
            if key == name:
                found = value
            elif key is ...:
                merged = self._starred(obj, value) if table.merges(value) else frozenset()
                inner = next(iter(merged)) if len(merged) == 1 else None
                if not isinstance(inner, Table) or inner in (table, *within):
                    found = ...
                    continue
                own = self._shown(obj, inner, name, (table, *within))
                if obj.site is None or self.entries(inner, name, obj.site) != []:
                    own = ...
                found = found if own is None else own
        return found

    def _surely_has(self, obj: Obj, table: Table, name: str) -> bool:
        """Whether a dict has a key at a call, by its display or a statement that runs before."""
        assert obj.site is not None
        if self._is_taken(table, name, obj.site):
            return False
        return isinstance(self._shown(obj, table, name), Expr) or any(
            not path and _is_put_before(stmt_of(owner), table, obj.site.stmt)
            for owner, _, path in self.entries(table, name, obj.site) or ()
        )

    def _is_taken(self, table: Table, key: str, site: Call) -> bool:
        """Whether a key may have been taken out of a dict before a call."""
        facts = table.node.scope.module
        taken = ("taken", facts, key)

        def start(var: Var) -> None:
            self._fill_from(taken, lambda: taken_from_dicts(facts, key), table, var)

        found = self._told(taken, table, lambda: self._get(("taken", table, key), start))
        return found is None or any(
            may_run_before(stmt_of(source), site.stmt) for source, _ in found
        )

    def may_be_passed(self, obj: Obj, name: str) -> bool:
        """Whether the argument could arrive by ``*args`` or ``**kwargs`` that are not followed."""
        if obj.site is None:
            return True
        if catalog.passes_on(obj.cls, name) is not None:
            given = ORDERS_OF_LOADER if name in ORDERS_OF_LOADER else {name}
            return not any(self.argument(obj, each) for each in given)
        if (handed := self._handed_up(obj, name)) is not None and handed.is_lost:
            return True
        if self.argument(obj, name) is not None or not (
            obj.site.has_star or obj.site.has_double_star
        ):
            return False
        if obj.site.has_star:
            params = self._places(obj.cls)
            if params is None or name in params:
                return True
        for arg in obj.site.args:
            if arg.stars == 2:
                tables = self._starred(obj, arg.value)
                if not tables or not all(isinstance(value, Table) for value in tables):
                    return True
                if any(
                    self._shown(obj, value, name) is not None
                    or self.entries(value, name, obj.site) != []
                    for value in tables
                    if isinstance(value, Table)
                ):
                    return True
        return False

    def given(self, obj: Obj, name: str) -> frozenset[Value]:
        """What a construction may get for parameter ``name`` by ``**``; None where it may not.

        Or what the function that builds it makes for that, where it is asked to.
        """
        unknown = Unknown("may be passed by * or **")
        found: set[Value] = self._made_by_factory(obj, name)
        if found:
            return frozenset(found)
        site = obj.site
        for arg in site.args if site is not None else ():
            for value in self._starred(obj, arg.value) if arg.stars == 2 else ():
                assert site is not None
                if not isinstance(value, Table):
                    found.add(unknown)
                    continue
                found |= self._solve_within(partial(self._held, value, name))
                if self._shown(obj, value, name) is ...:
                    found.add(unknown)
                elif not self._surely_has(obj, value, name):
                    found.add(NONE)
        return frozenset(found or {unknown})

    def _made_by_factory(self, obj: Obj, name: str) -> set[Value]:
        made = catalog.factory(obj.cls) if isinstance(obj.cls, str) else None
        if made is None or obj.site is None or name != "sampler":
            return set()
        flags = [self._passed_at(obj, each) for each in made.asked]
        if any(flag is None or (isinstance(flag, Const) and not flag.value) for flag in flags):
            return set()
        given = {name: self._passed_at(obj, name) for name in made.to_sampler}
        call = passed_on(obj.site, {name: expr for name, expr in given.items() if expr is not None})
        chosen = self._passed_at(obj, made.chosen_by) if made.chosen_by else None
        kinds = {Ext(made.sampler)} if chosen is None else self.values(chosen)
        found: set[Value] = {
            Obj(kind.cls if isinstance(kind, ClassRef) else kind.dotted, call, obj.through)
            if isinstance(kind, (ClassRef, Ext))
            else Unknown("chosen elsewhere")
            for kind in kinds
        }
        return found if all(isinstance(flag, Const) for flag in flags) else {*found, NONE}


def _given_by_name(call: Call, name: str) -> Expr | None:
    """What a call passes by a name, as a keyword or in a dict display: ``edict({"loader": …})``."""
    given = [arg.value for arg in call.args if arg.keyword == name]
    for shown in (arg for arg in call.positional if isinstance(arg, Map)):
        given += [item for key, item in shown.items if isinstance(key, Const) and key.value == name]
    return given[0] if given else None


def _own_parameter(init: Function, given: Expr | None) -> Param | None:
    """The parameter of an ``__init__`` that a name certainly is."""
    found = _definitions(init, given)
    return found[0] if len(found) == 1 and isinstance(found[0], Param) else None


def _may_be_parameter(init: Function, given: Expr) -> bool:
    return any(isinstance(each, Param) for each in _definitions(init, given))


def _definitions(init: Function, given: Expr | None) -> list[object]:
    """What a name of an ``__init__`` may be read from."""
    if not isinstance(given, Name) or given.scope is not init or given.id not in init.bindings:
        return []
    return [each.payload for each in definitions(init, given)]


def _is_put_before(put: Stmt | None, table: Table, site: Stmt | None) -> bool:
    """Whether every way to a statement leads through one that puts something into a dict.

    Also where a function does that to the dict that it makes, before it can end.
    """
    made = table.node.scope
    if surely_runs_before(put, site):
        return True
    if put is None or put.scope is not made or (site is not None and site.scope is made):
        return False
    return isinstance(made, Function) and (
        all(surely_runs_before(put, end) for end in made.returns)
        if made.returns
        else put.parent is None
    )
