"""What calls pass to the parameters of functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice

from sampler_lint.analysis.arguments import (
    MISSING,
    collected,
    passed,
    remaining,
)
from sampler_lint.analysis.attributes import Attributes
from sampler_lint.analysis.decorators import is_returned
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.solver import Var
from sampler_lint.analysis.values import (
    ClassRef,
    FuncRef,
    Lit,
    Obj,
    Pack,
    Table,
    Unknown,
    Value,
    Why,
)
from sampler_lint.limits import MOST_CALLERS
from sampler_lint.syntax.navigation import (
    built_by_itself,
    method_around,
    nodes_in,
    statements,
)
from sampler_lint.syntax.nodes import (
    Arg,
    Assign,
    Attr,
    Bin,
    Call,
    Class,
    Expr,
    Function,
    Index,
    Name,
    Param,
    Seq,
    last_name,
)
from sampler_lint.workspace.aliases import called_by
from sampler_lint.workspace.imported_files import ImportedFiles
from sampler_lint.workspace.project import Project

#: Calls that run a function elsewhere: how they name it, and how many arguments they add first.
_SPAWNERS = {
    "spawn": ("fn", 1),
    "start_processes": ("fn", 1),
    "Process": ("target", 0),
    "Thread": ("target", 0),
    "launch": ("main_func", 0),
}


class Passing(Attributes):
    """Follows arguments into parameters."""

    def __init__(self, project: Project) -> None:
        """Begin with no call known."""
        super().__init__(project)
        self._rests: dict[tuple[Function, Call], Pack] = {}
        """What calls fill the ``*args`` of functions with."""
        self._callers: dict[Function, dict[tuple[Call, Value | None, Function], None]] = {}
        self._taken: dict[Function, list[tuple[Param, Obj | None, Var]]] = {}
        """The parameters that are asked for, each with the objects that it is asked of."""
        self._candidates: dict[Function, tuple[Call, ...]] = {}
        self._imported = ImportedFiles(project)

    @abstractmethod
    def _unspelled(self, function: Function) -> Iterable[Call]:
        """The calls near a function that spell nothing it could be called by."""

    def _register(
        self, function: Function, call: Call, bound: Value | None, target: Function
    ) -> None:
        """Note that ``call`` calls ``function``; its arguments flow into the parameters."""
        callers = self._callers.setdefault(function, {})
        key = (call, bound, target)
        if key in callers:
            return
        callers[key] = None
        for param, made, var in self._taken.get(function, ()):
            if made is None or self._may_build(call, bound, made):
                self._pass(function, param, call, bound, var, made)

    def _parameter(self, function: Function, param: Param, made: Obj | None = None) -> Var:
        """What a parameter may be; that of an ``__init__`` where it builds an object like ``made``.

        Classes with one base hand its constructor different things.
        """
        kin = made and (made.cls, made.site is None)
        return self._get(
            ("parameter", function, param.name, kin),
            lambda var: self._start_parameter(function, param, made, var),
        )

    def _may_build(self, call: Call, bound: Value | None, made: Obj) -> bool:
        """Whether a call of an ``__init__`` may be made for an object like ``made``.

        It builds one, or is written in the constructor of a class that the object derives from.
        """
        if isinstance(bound, Obj):
            by, is_whole = bound.cls, bound.site is not None
        elif (method := method_around(call.scope)) is None or method.cls is None:
            return True
        else:
            by, is_whole = method.cls, False
        if not isinstance(by, Class) or not isinstance(made.cls, Class):
            return True
        if made.site is not None:
            return by is made.cls if is_whole else by in self.mro(made.cls)
        return made.cls in self.mro(by) if is_whole else by in self.family(made.cls)

    def _given(self, expr: Expr, made: Obj | None) -> Var:
        if made is not None and isinstance(expr, Name) and isinstance(expr.scope, Function):
            init = expr.scope
            bindings = definitions(init, expr) if expr.id in init.bindings else []
            param = bindings[0].payload if len(bindings) == 1 else None
            if (
                init.name == "__init__"
                and isinstance(param, Param)
                and param.name != init.self_name
            ):
                return self._parameter(init, param, made)
        return self._expr(expr)

    def _overriding(self, cls: Class, function: Function, own: Param) -> list[Class]:
        """The classes below that have something of their own for what a class method reads."""
        below = self.subclasses(cls)
        read = {
            node.name
            for node in (nodes_in(statements(function.body)) if below else ())
            if isinstance(node, Attr) and isinstance(node.value, Name) and node.value.id == own.name
        }
        return [each for each in below if not read.isdisjoint(each.bindings)]

    def _start_parameter(
        self, function: Function, param: Param, made: Obj | None, var: Var
    ) -> None:
        cls = function.cls
        if cls is not None and function.params and param is function.params[0]:
            if function.is_classmethod or function.name in {"__new__", "__init_subclass__"}:
                for own in (cls, *self._overriding(cls, function, param)):
                    self._add(var, ClassRef(own))
                return
            if not function.is_static:
                self._add(var, Obj(cls))
                return
        self._taken.setdefault(function, []).append((param, made, var))
        for call, bound, _ in list(self._callers.get(function, ())):
            if made is None or self._may_build(call, bound, made):
                self._pass(function, param, call, bound, var, made)
        self._start_spawned(function, param, var)
        for call in self.call_candidates(function):
            # Resolving the callee registers the call, if it is one of this function.
            self._expr(call)
        self._unspelled(function)

        def nobody() -> None:
            if not any(
                made is None or self._may_build(call, bound, made)
                for call, bound, _ in self._callers.get(function, ())
            ):
                reason = f"nothing in this tree calls `{function.qualname}`"
                self._add(var, Unknown(reason, Why.CHOSEN, function))
                if param.default is not None:
                    self._flow(self._expr(param.default), var)
            if all(isinstance(value, (Unknown, Lit)) for value in var.values):
                self._start_annotated(param, var)

        self._late.append(nobody)

    def _start_annotated(self, param: Param, var: Var) -> None:
        """What a parameter is annotated with, where nothing else is known: a class of the tree."""
        annotation = param.annotation
        if isinstance(annotation, Index) and last_name(annotation.value) == "Optional":
            annotation = annotation.key
        if isinstance(annotation, Bin) and annotation.op == "BitOr":
            annotation = annotation.left
        if isinstance(annotation, (Name, Attr)):
            self._on(
                self._expr(annotation),
                lambda named: (
                    self._add(var, Obj(named.cls)) if isinstance(named, ClassRef) else None
                ),
            )

    def _start_spawned(self, function: Function, param: Param, var: Var) -> None:
        """What ``mp.spawn(function, args=(…))`` and ``Process(target=function, …)`` pass."""
        for call, target, shift in self.spawned.get(function.name, ()):
            given = call.keyword("args")
            if given is None and shift and len(call.positional) > 1:
                given = call.positional[1]
            index = function.params.index(param) - shift
            if function.is_bound:
                index -= 1
            if index >= 0 and given is None:
                continue
            source = self._component(self._expr(given), index) if given and index >= 0 else None

            def start(value: Value, source: Var | None = source) -> None:
                if not isinstance(value, FuncRef) or value.function is not function:
                    return
                if source is None:
                    self._add(var, Unknown("the number of the process", Why.FOREIGN))
                else:
                    self._flow(source, var)

            self._on(self._expr(target), start)

    @cached_property
    def spawned(self) -> dict[str, list[tuple[Call, Expr, int]]]:
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

    def _pass(
        self,
        function: Function,
        param: Param,
        call: Call,
        bound: Value | None,
        var: Var,
        made: Obj | None,
    ) -> None:
        if param.kind == "kwarg":
            self._add(var, self._collected(function, call))
            return
        if param.kind == "vararg":
            self._add(var, self._rest(function, call, bound))
            return
        given = passed(function, param, call, is_bound=bound is not None)
        if given is MISSING and function.self_name == param.name:
            return  # the object itself: see _start_parameter
        if given is MISSING:
            if bound and not function.cls and param is function.params[0]:
                self._add(var, bound)  # a function that the body of a class made a method
            elif param.default is not None:
                self._flow(self._expr(param.default), var)
            elif not param.is_star:
                self._add(var, Unknown(f"a decorator of `{function.name}` passes `{param.name}`"))
        elif isinstance(given, Expr):
            self._flow(self._given(given, made), var)
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
                    self._pass_by_star(function, param, call, bound, arg, var)

    def _pass_by_star(
        self, function: Function, param: Param, call: Call, bound: Value | None, arg: Arg, var: Var
    ) -> None:
        """What ``*arg`` of a call passes: an element of a tuple whose elements are known."""
        taken = [p for p in function.params if p.is_positional][bound is not None :]
        before = len(call.positional)
        stars = sum(each.stars == 1 for each in call.args)
        after = call.args[call.args.index(arg) + 1 :]
        if param not in taken or stars > 1 or any(not (e.keyword or e.stars) for e in after):
            self._add(var, Unknown("passed by *"))
            return
        index = taken.index(param) - before

        def sink(value: Value) -> None:
            items = value.node if isinstance(value, Pack) else None
            if isinstance(items, Seq) and items.kind == "tuple":
                if index < len(items.items):
                    self._pick(value, index, var)
                elif param.default is not None:
                    self._flow(self._expr(param.default), var)
            else:
                self._add(var, value if isinstance(value, Unknown) else Unknown("passed by *"))

        self._on(self._expr(arg.value), sink)

    def _rest(self, function: Function, call: Call, bound: Value | None) -> Value:
        """What a call fills the ``*args`` of a function with."""
        if call.has_star:
            return Unknown("passed by *")
        known = self._rests.get((function, call))
        if known is None:
            taken = [p for p in function.params if p.is_positional][bound is not None :]
            known = self._rests[function, call] = Pack(remaining(call, len(taken)))
        return known

    def _collected(self, function: Function, call: Call) -> Table:
        """What a call fills the ``**kwargs`` of a function with."""
        made = self._kwargs.get((function, call))
        if made is None:
            made = self._kwargs[function, call] = Table(collected(function, call))
        return made

    def call_candidates(self, function: Function) -> tuple[Call, ...]:
        """The calls whose spelling could mean ``function``."""
        known = self._candidates.get(function)
        if known is None:
            known = self._candidates[function] = tuple(self._spelled_alike(function))
        return known

    def _spelled_alike(self, function: Function) -> Iterator[Call]:
        names = [called_by(function)]
        if function.name == "__next__":
            names.append("next")
        if function.name == "__call__" and function.cls is not None:
            names = self._names_of_made(function.cls, *self.subclasses(function.cls))
        elif isinstance(function.outer, Function) and is_returned(function, function.outer):
            names += self._names_of_made(function.outer)
        if function.name == "__init__" and function.cls is not None:
            derived = self.subclasses(function.cls)
            names = [cls.name for cls in (function.cls, *derived)]
            for cls in derived:
                yield from self.base_init_calls(cls)
            # `cls(…)` in a class method builds an object of the class it is called on.
            family = (*self.mro(function.cls), *derived)
            for owner in (each for each in family if isinstance(each, Class)):
                for method in owner.methods:
                    if method.is_classmethod:
                        yield from (call for call in method.calls if built_by_itself(call))
        names += [alias for name in names for alias in self.project.aliases(name, function)]
        for name in dict.fromkeys(names):
            calls = self.project.calls_near(name, function)
            if len(calls) > MOST_CALLERS:
                meant = (call for call in calls if self._imported.may_mean(call, function))
                calls = [*islice(meant, MOST_CALLERS + 1)]  # one too many says it all
            if len(calls) <= MOST_CALLERS:
                yield from calls

    def _names_of_made(self, *makers: Class | Function) -> list[str]:
        """What the objects that classes build, or that functions return, are assigned to."""
        made = (call for maker in makers for call in self.project.calls_near(maker.name, maker))
        targets = (
            target
            for call in made
            if isinstance(call.stmt, Assign) and call.stmt.value is call
            for target in call.stmt.targets
        )
        return [*dict.fromkeys(name for each in targets if (name := last_name(each)) is not None)]
