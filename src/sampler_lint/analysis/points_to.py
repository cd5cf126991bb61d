"""Where values flow: a demand-driven, flow-light points-to analysis over the whole tree.

Andersen style: every expression, variable, field and return value is a set that grows until
nothing changes. Sets are made only when asked for, so the cost follows the question and not
the tree. The abstract values are constructions (of samplers, loaders, or any class of the
tree), functions, classes, literals, containers, and :class:`Unknown` with its reason.

Two refinements keep real code apart:

- a local name that is read sees only the assignments that can reach the read;
- an object returned by a factory remembers the call it came through (:attr:`Obj.through`), so
  that ``build(train=True)`` and ``build(train=False)`` are different loaders.

Each kind of arrow has its module, and each class builds on the one before: class hierarchies
(``hierarchy``), tuples, lists and dicts (``containers``), attributes and what objects are built
with (``attributes``), arguments (``passing``), returns (``calls``), and here names and expressions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from sampler_lint import catalog
from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.analysis.asked import tests, upright
from sampler_lint.analysis.calls import Calls
from sampler_lint.analysis.declared import Declared
from sampler_lint.analysis.narrowing import where_named, where_not_none
from sampler_lint.analysis.reaching import reaching
from sampler_lint.analysis.solver import Var
from sampler_lint.analysis.values import (
    NONE,
    AnyModule,
    ClassRef,
    Ext,
    FuncRef,
    Lit,
    ModRef,
    Pack,
    Table,
    Unknown,
    Value,
    Why,
)
from sampler_lint.limits import MOST_VALUES
from sampler_lint.syntax.navigation import binder_of, read_in
from sampler_lint.syntax.nodes import (
    EQUAL,
    UNEQUAL,
    Attr,
    AugAssign,
    Bin,
    Binding,
    Call,
    Choice,
    Class,
    Comp,
    Compare,
    Const,
    Expr,
    Function,
    If,
    Imported,
    Index,
    Lambda,
    Map,
    Name,
    Param,
    Scope,
    Seq,
    Unary,
)
from sampler_lint.workspace.project import Project
from sampler_lint.workspace.stars import BUILTINS, StarImports

#: How a name gets a value, or a part of one.
_BINDS = frozenset({"assign", "element", "enter"})


class Flow(Calls):
    """Answers where the values of an expression come from."""

    def __init__(self, project: Project, declared: Declared | None = None) -> None:
        super().__init__(project, declared or Declared(project))
        self._stars = StarImports(project)
        self._being_asked: set[Expr] = set()

    def _expr(self, expr: Expr) -> Var:
        var = self._vars.get(expr)
        if var is None and isinstance(expr, Name):
            var = self._read(expr)  # what the variable holds, and no more
            if (filled := where_not_none(expr)) is not None:
                var = self._but_none(var, filled)
            if (said := where_named(expr)) is not None:
                var = self._called_so(var, said)
            self._vars[expr] = var
        return var or self._get(expr, partial(self._start_expr, expr))

    def _start_expr(self, expr: Expr, var: Var) -> None:
        if isinstance(expr, Const):
            if expr.value is ...:
                self._add(var, Unknown("a long literal"))
            else:
                self._add(var, Lit(expr.value, type(expr.value).__name__))
        elif isinstance(expr, Attr):
            filled = where_not_none(expr)
            kept = var if filled is None else self._get(("asked for", expr), lambda _: None)
            self._on(self._expr(expr.value), lambda value: self._attribute(value, expr.name, kept))
            if filled is not None:
                self._flow(self._but_none(kept, filled), var)
        elif isinstance(expr, Call):
            self._start_call(expr, var)
        elif isinstance(expr, Comp) and expr.table is not None:
            self._add(var, Table(expr.table))
        elif isinstance(expr, (Seq, Comp)):
            self._add(var, Pack(expr))
        elif isinstance(expr, Map):
            self._add(var, Table(expr))
        elif isinstance(expr, Index):
            key = expr.key.value if isinstance(expr.key, Const) else None
            self._on(self._expr(expr.value), lambda value: self._item(value, key, var))
        elif isinstance(expr, Choice):
            for option in expr.options:
                self._flow(self._expr(option), var)
        elif isinstance(expr, Lambda):
            self._add(var, FuncRef(expr.function))
        elif isinstance(expr, Bin):
            self._start_computed(expr, var)
        else:
            self._add(var, Unknown("an expression that is not followed"))

    def _start_computed(self, expr: Bin, var: Var) -> None:
        """Of texts names are put together, which may say what is read; and ``|`` merges dicts."""
        unknown = Unknown("computed")
        if expr.op == "BitOr":
            merged = Map.at(expr)
            merged.items = [(None, expr.left), (None, expr.right)]

            def merge(left: Value) -> None:
                if isinstance(left, Table):
                    merged.scope = left.node.scope
                self._add(var, Table(merged) if isinstance(left, Table) else unknown)

            self._on(self._expr(expr.left), merge)
            return
        sides = (expr.left, expr.right)
        lists = [side for side in sides if isinstance(side, (Seq, Comp))]
        if expr.op != "Add" or not (lists or any(map(_is_text, sides))):
            self._add(var, unknown)
            return
        joined = Comp.at(expr)
        joined.kind, joined.elements = "list", [_any_of(side) for side in sides]
        joined.iters, joined.tests, joined.table = [], [], None
        for side in lists:
            joined.scope = side.scope

        def add(left: Value, right: Value) -> None:
            texts = [side.value for side in (left, right) if isinstance(side, Lit)]
            known = len(texts) == 2 and all(isinstance(text, str) for text in texts)
            both = Lit("".join(texts), "str") if known else unknown
            are_lists = bool(lists) and isinstance(left, Pack) and isinstance(right, Pack)
            self._add(var, Pack(joined) if are_lists else both)

        self._on(
            self._expr(expr.left),
            lambda left: self._on(self._expr(expr.right), lambda right: add(left, right)),
        )

    def _read(self, name: Name) -> Var:
        scope = name.scope
        bindings = reaching(name)
        if bindings is None:
            return self._variable(read_in(name), name.id)
        key = ("read", scope, name.id, tuple(id(binding) for binding in bindings))

        def start(var: Var) -> None:
            for binding in bindings:
                self._flow(self._binding(binding, scope), var)

        return self._get(key, start)

    def _but_none(self, source: Var, filled: list[Expr]) -> Var:
        """What a variable holds where it is not None, but for what it was set to if it was."""

        def start(var: Var) -> None:
            self._on(source, lambda value: None if value == NONE else self._add(var, value))
            for expr in filled:
                self._flow(self._expr(expr), var)

        return self._get(("but None", source, *filled), start)

    def _called_so(self, source: Var, said: str) -> Var:
        """What a variable holds where its ``__name__`` is known."""

        def start(var: Var) -> None:
            self._on(source, lambda value: self._add(var, value) if _may_be(value, said) else None)

        return self._get(("named", source, said), start)

    def _variable(self, scope: Scope, name: str) -> Var:
        """The variable ``name`` as seen from ``scope``, whatever the order of statements."""
        owner = binder_of(scope, name)
        if owner is not None:
            return self._own_variable(owner, name)
        module = scope.module
        return self._get(
            ("global", module, name), lambda var: self._start_global(module, name, var)
        )

    def _own_variable(self, scope: Scope, name: str) -> Var:
        first, *others = scope.bindings[name]
        if not others and not isinstance(first.value, Name):  # which may be the same variable
            return self._binding(first, scope)
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
            if not level and self.project.imports.find(target, module, level) is None:
                star = catalog.canonical(f"{target}.{name}")
                if catalog.known(star) is not None:
                    self._add(var, Ext(star))
                    return
        if facts.module.star_imports and name not in BUILTINS:
            self._add(var, Unknown(f"`{name}` comes from a star import", Why.FOREIGN))
        else:
            self._add(var, Ext(name))

    def bound(self, binding: Binding, scope: Scope) -> frozenset[Value]:
        """Every value that a name gets in one place, as :meth:`values` says of an expression."""
        return self._solve(self._binding(binding, scope))

    def _binding(self, binding: Binding, scope: Scope) -> Var:
        if binding.value is not None and binding.how in _BINDS:
            source = self._expr(binding.value)
            if binding.how == "element":
                source = self._elements(source)
            elif binding.how == "enter":
                source = self._entered(source)
            return self._part(source, binding.path)
        if isinstance(binding.payload, Param) and isinstance(scope, Function):
            return self._parameter(scope, binding.payload)
        return self._get(binding, partial(self._start_binding, binding, scope))

    def _start_binding(self, binding: Binding, scope: Scope, var: Var) -> None:
        if isinstance(binding.payload, Function):
            self._add(var, FuncRef(binding.payload))
        elif isinstance(binding.payload, Class):
            self._add(var, ClassRef(binding.payload))
        elif isinstance(binding.payload, Imported):
            self._start_import(binding.name, binding.payload, scope, var)
        elif isinstance(binding.stmt, AugAssign) and isinstance(binding.stmt.target, Name):
            self._changed(self._read(binding.stmt.target), binding.name, var)
        else:
            self._add(var, Unknown(f"`{binding.name}` is changed in place"))

    def _changed(self, before: Var, name: str, var: Var) -> None:
        """What ``name += …`` leaves: the same list or dict; of another value it is not known."""
        unknown = Unknown(f"`{name}` is changed in place")

        def sink(value: Value) -> None:
            is_list = isinstance(value, Pack) and getattr(value.node, "kind", None) == "list"
            self._add(var, value if is_list or isinstance(value, Table) else unknown)

        self._on(before, sink)

    def _start_import(self, bound: str, imported: Imported, scope: Scope, var: Var) -> None:
        name, attribute, level = imported
        module = self.project.module_of(scope)
        path = self.project.imports.find(name, module, level)
        if path is None:
            if level:
                reason = f"`{bound}` is imported from outside the tree"
                self._add(var, Unknown(reason, Why.FOREIGN))
            else:
                self._add(var, Ext(catalog.canonical(imported.whole)))
        elif attribute is None:
            self._add(var, ModRef(path))
        elif module.path != path or not self._submodule(path, attribute, var):
            self._member(path, attribute, var)

    def _member(self, path: str, name: str, var: Var) -> None:
        """``name`` of the module (or package) at ``path``: a variable, else a submodule."""
        module = self.project.module_telling(path)
        if module is not None and name in module.facts.bindings:
            self._flow(self._variable(module.facts, name), var)
            return
        if self._submodule(path, name, var):
            return
        if module is not None and module.facts.star_imports:
            facts = module.facts
            self._flow(
                self._get(("global", facts, name), lambda v: self._start_global(facts, name, v)),
                var,
            )
            return
        is_seen = module is not None and "__getattr__" not in module.facts.bindings
        why = Why.UNDEFINED if is_seen else Why.LOST
        self._add(var, Unknown(f"`{name}` is not defined in {self._where(path)}", why))

    def _submodule(self, path: str, name: str, var: Var) -> bool:
        """Whether the package at ``path`` has a module of that name, which then flows.

        Of a package that imports its own modules (``from . import train``) no variable is meant.
        """
        module = self.project.module_telling(path)
        folder = path if module is None else module.folder if module.is_package else None
        below = None if folder is None else self.project.imports.file_below(folder, [name])
        if below is not None:
            self._add(var, ModRef(below))
        return below is not None

    def _member_of_any(self, value: AnyModule, name: str, var: Var) -> None:
        paths = self.project.modules_that_say(value.package, name, value.site.scope)
        found = False
        for path in paths if len(paths) <= MOST_VALUES else ():
            module = self.project.module_at(path)
            if module is not None and name in module.facts.bindings:
                found = True
                self._flow(self._variable(module.facts, name), var)
        if not found or not value.package:
            self._add(var, Unknown(f"`{name}` of a module with a computed name"))

    def _any_member(self, path: str, unknown: Unknown, var: Var) -> None:
        module = self.project.module_telling(path)
        names = [
            name
            for name, bindings in (module.facts.bindings.items() if module is not None else ())
            if not name.startswith("_")
            and any(self._is_definition(binding, path) for binding in bindings)
        ]
        if module is None or not 0 < len(names) <= MOST_VALUES:
            self._add(var, unknown)
            return
        for name in names:
            self._flow(self._variable(module.facts, name), var)

    def _is_definition(self, binding: Binding, path: str) -> bool:
        """Whether a name is that of a function or class of the tree, or is imported from it."""
        payload = binding.payload
        if isinstance(payload, Imported) and payload.attribute is not None:
            module = self.project.module_at(path)
            found = module and self.project.imports.find(payload.name, module, payload.level)
            return bool(found)
        return isinstance(payload, (Function, Class))

    def _where(self, path: str) -> str:
        return self.project.files.get(path, path)

    def constants(
        self, expr: Expr | None, through: Call | None = None, *around: Call
    ) -> set[Any] | None:
        """The literal values ``expr`` can have, or None when one of them is not known.

        With ``through``, a parameter of the function called there has the value passed there, where
        it has not been given another; so have those of the functions that this call and those
        ``around`` it stand in, by the next call.
        """
        match expr:
            case None:
                return None
            case Unary(op="Not", operand=operand):
                found = self.constants(operand, through, *around)
                return None if found is None else {not value for value in found}
            case Choice(kind="if"):
                option = self.chosen(expr, through, *around)
                if option is not expr:
                    return self.constants(option, through, *around)
                return self._any_of(expr.options, through, *around)
            case Choice(kind=kind, options=[first, *rest]):
                found = self.constants(first, through, *around)
                if found is not None and len(found) == 1:
                    if all(found) is (kind == "or"):
                        return found
                    if len(rest) == 1:
                        return self.constants(rest[0], through, *around)
                return self._any_of(expr.options, through, *around)
            case Compare(ops=["In" | "NotIn" as op], left=left, rights=[right]):
                said = self.constants(left, through, *around)
                places = self._looked_in(right, through, *around)
                if said is None or places is None or not all(isinstance(s, str) for s in said):
                    return None
                return {(one in place) is (op == "In") for one in said for place in places}
            case Compare(ops=[op], left=left, rights=[right]):
                a, b = (self.constants(side, through, *around) for side in (left, right))
                if a is None or b is None or op not in EQUAL | UNEQUAL:
                    return None
                return {(one == other) is (op in EQUAL) for one in a for other in b}
            case Name(id=name, scope=Function() as function) if through is not None:
                bound = reaching(expr) or function.bindings.get(name, [])
                run = self._run_in(function, bound, through, *around)
                if len(run) == 1 or len(run) < len(bound):
                    told = [self._bound_to(each, function, through, *around) for each in run]
                    known = [each for each in told if each is not None]
                    if len(known) == len(told):
                        return set().union(*known)
                    is_param = len(run) == 1 and isinstance(run[0].payload, Param)
                    if is_param and function in self.callees(through):
                        return None
            case Call(func=Attr(name="get" | "pop", value=Name(scope=Function()) as rest)):
                if through is not None and rest.scope in self.callees(through):
                    return self._read_of_rest(expr, rest, through)
        values = self.values(expr)
        literals = {value.value for value in values if isinstance(value, Lit)}
        is_known = values and all(isinstance(value, Lit) for value in values)
        return literals if is_known else None

    def _looked_in(self, expr: Expr, through: Call | None, *around: Call) -> list[Any] | None:
        """The texts, or the list of what is written there, in which a text is looked for."""
        if isinstance(expr, Seq):
            written = [item.value for item in expr.items if isinstance(item, Const)]
            return [written] if len(written) == len(expr.items) else None
        found = [*(self.constants(expr, through, *around) or ())]
        return found if found and all(isinstance(each, str) for each in found) else None

    def _bound_to(
        self, binding: Binding, function: Function, through: Call, *around: Call
    ) -> set[Any] | None:
        """The literals that an assignment of a function gives its name in one call."""
        match binding:
            case Binding(payload=Param() as param) if function in self.callees(through):
                given = passed(function, param, self.as_made(through))
                if given is MISSING:
                    return self.constants(param.default)
                return self.constants(given, *around)
            case Binding(how="assign", path=(), value=value):
                return self.constants(value, through, *around)
            case Binding(how="assign", path=(at,), value=Seq(items=items)) if at < len(items):
                return self.constants(items[at], through, *around)
        return None

    def _run_in(
        self, function: Function, bound: list[Binding], through: Call, *around: Call
    ) -> list[Binding]:
        """Those of some assignments that one call may come to, by the tests that it answers.

        One that it certainly comes to leaves nothing of those before.
        """
        if len(bound) < 2 or function not in self.callees(through):
            return bound
        left: list[Binding] = []
        for binding in bound:
            stmt = binding.stmt
            asked = list(tests(stmt)) if stmt is not None else []
            if any(test in self._being_asked for test, _ in asked):
                return bound  # a test of what is assigned below it
            self._being_asked.update(test for test, _ in asked)
            is_left_out = any(self.is_never(*each, through, *around) for each in asked)
            is_sure = all(self.is_never(test, not a, through, *around) for test, a in asked)
            self._being_asked.difference_update(test for test, _ in asked)
            if is_left_out:
                continue
            if is_sure and (stmt is None or all(isinstance(s, If) for s in stmt.ancestors())):
                left = []
            left.append(binding)
        return left or bound

    def is_never(self, test: Expr, answer: bool, *through: Call) -> bool:
        """Whether a test is never answered so where a call, or whatever runs it, passes that."""
        test, answer = upright((test, answer))
        if isinstance(test, Choice) and test.kind == ("and" if answer else "or"):
            return any(self.is_never(option, answer, *through) for option in test.options)
        answers = self.constants(test, *through)
        return answers is not None and len(answers) == 1 and bool(next(iter(answers))) != answer

    def _read_of_rest(self, read: Call, rest: Name, through: Call) -> set[Any] | None:
        """What ``kwargs.get("name", default)`` gives, of what a call passes by name."""
        param = rest.scope.param(rest.id) if isinstance(rest.scope, Function) else None
        made = self.as_made(through)
        match read.positional:
            case [Const(value=str() as name), *default] if (
                param is not None
                and param.kind == "kwarg"
                and len(rest.scope.bindings.get(rest.id, ())) == 1
                and not made.has_double_star
            ):
                given = made.keyword(name) or next(iter(default), None)
                return {None} if given is None else self.constants(given)
        return None

    def chosen(self, expr: Expr, through: Call | None, *around: Call) -> Expr:
        """What a conditional expression gives in the function called there, where that is known."""
        while isinstance(expr, Choice) and expr.kind == "if" and expr.test is not None:
            found = self.constants(expr.test, through, *around)
            if found is None or len(found) != 1:
                break
            expr = expr.options[0 if found.pop() else 1]
        return expr

    def _any_of(self, options: list[Expr], through: Call | None, *around: Call) -> set[Any] | None:
        found = [self.constants(option, through, *around) for option in options]
        known = [each for each in found if each is not None]
        return set().union(*known) if len(known) == len(found) else None


def _any_of(source: Expr) -> Index:
    """An item of what may be a list, whichever that is."""
    item = Index.at(source)
    item.value, item.key = source, source
    return item


def _may_be(value: Value, said: str) -> bool:
    """Whether the ``__name__`` of a class or function may be that."""
    if isinstance(value, ClassRef):
        return value.cls.name == said
    return not isinstance(value, Ext) or value.dotted.rpartition(".")[2] == said


def _is_text(expr: Expr) -> bool:
    return isinstance(expr, Const) and isinstance(expr.value, str)
