"""The objects whose epoch a fix sets: whether they are known, last, and can be told it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from sampler_lint.analysis.origins import (
    LOCAL,
    Hop,
    Step,
    given_by,
    is_one_object,
    origins,
    parameter_of,
)
from sampler_lint.analysis.values import (
    ClassRef,
    FuncRef,
    Gen,
    Lit,
    Obj,
    Pack,
    Partial,
    Table,
    Unknown,
    Value,
    View,
)
from sampler_lint.domain.concepts import (
    ASKS_BY_NAME,
    ASKS_KIND,
    PROTOCOL,
    SAMPLER_ARGUMENTS,
)
from sampler_lint.domain.copies import copying
from sampler_lint.domain.epoch_calls import epoch_samplers
from sampler_lint.domain.epochs import EpochLoop, epoch_loops, trains
from sampler_lint.domain.model import Model
from sampler_lint.edits.safety.callers import unseen
from sampler_lint.edits.safety.classes import other_epochs
from sampler_lint.edits.safety.counts import miscounted
from sampler_lint.edits.safety.meaning import scope_at, scopes_of
from sampler_lint.edits.safety.names import path
from sampler_lint.edits.safety.outlines import unread
from sampler_lint.edits.safety.replaced import patched_by_name, replaced, stored_by_name
from sampler_lint.edits.safety.texts import FUNCTIONS, LOOPS, Changed, Tree
from sampler_lint.findings import Refuted
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.lower import expression
from sampler_lint.syntax.navigation import binder_of, same, self_class, statements, unparse, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    Function,
    If,
    Loop,
    Name,
    Raise,
    Return,
    Scope,
    Simple,
    Stmt,
    Store,
    Try,
    dotted,
    last_name,
)
from sampler_lint.workspace.project import Module

#: What has no attribute that leads to a sampler.
_OTHERS = (ClassRef, FuncRef, Gen, Lit, Partial, View)
#: What makes a list or the like of what it is given.
_COLLECTS = frozenset({"list", "tuple", "set", "sorted", "reversed", "iter", "dict", "defaultdict"})
#: What of those keeps it all.
KEEPS = frozenset({"list", "tuple", "sorted"})

#: What leaves a block before its end.
_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
#: Where a receiver may come from.
_FROM = LOCAL | Hop.CALLER | Hop.ATTRIBUTE | Hop.RETURN


def in_model(module: Module, changed: Changed, node: ast.AST) -> tuple[Scope, Stmt | None] | None:
    """The model's scope and statement in which a node of the new text stands."""
    scopes, tree = scopes_of(changed.new), changed.new
    holder = scopes.scope(node)
    while isinstance(holder, ast.expr):
        holder = scopes.scope(holder)
    scope = scope_at(module, changed.back.get(holder))
    if scope is None:
        cls = scope_at(module, changed.back.get(scopes.scope(holder)))
        # A method that is new reads the object as the others do.
        return (cls.methods[0], None) if isinstance(cls, Class) and cls.methods else None
    stmt = tree.statement(node)
    while stmt is not None and stmt not in changed.back:
        block = tree.block(stmt)
        later = block[block.index(stmt) + 1 :]
        following = next((one for one in later if one in changed.back), None)
        outer = tree.parents[stmt]
        if following is None and isinstance(outer, ast.If) and outer not in changed.back:
            following = outer  # a guard that is written, too
        stmt = following
    old = changed.back.get(stmt) if stmt is not None else None
    found = None
    if isinstance(old, ast.stmt):
        found = statements_of(scope).get((old.lineno, old.col_offset))
    return scope, found


def statements_of(scope: Scope) -> dict[tuple[int, int], Stmt]:
    """The statements of a scope by where they begin."""
    known: dict[Scope, dict[tuple[int, int], Stmt]]
    known = scope.module.memo.setdefault(statements_of, {})
    if scope not in known:
        known[scope] = {(stmt.row, stmt.col): stmt for stmt in statements(scope.body)}
    return known[scope]


def receiver(model: Model, module: Module, changed: Changed, call: ast.Call) -> str | None:
    """What speaks against telling the epoch to what a call of ``set_epoch`` names."""
    reason = (
        _made_anew(model, module, changed, call.func)
        or _starts_again(changed, call)
        or _other_branch(changed, call)
        or _still_asked(model, module, changed, call)
        or stored_by_name(model, module)
        or patched_by_name(model, module)
        or _untold(model, module, changed, call)
        or _miscounted(model, module, changed, call)
    )
    reason = reason or replaced(model, module, changed)
    base = call.func.value if isinstance(call.func, ast.Attribute) else None
    while reason is None and isinstance(base, (ast.Attribute, ast.Name, ast.Subscript)):
        reason = _other(model, module, changed, call, base)
        base = base.value if isinstance(base, ast.Attribute) else None
    return reason


def _miscounted(model: Model, module: Module, changed: Changed, call: ast.Call) -> str | None:
    where = in_model(module, changed, call)
    if where is None or where[1] is None or len(call.args) != 1:
        return None
    assert isinstance(call.func, ast.Attribute)
    return miscounted(model, where[1], call.args[0], expression(call.func.value, *where))


def _untold(model: Model, module: Module, changed: Changed, call: ast.Call) -> str | None:
    """A pass of the loop whose sampler may be another one that the same call has built.

    Nothing in the loop tells that the epoch. A sampler that is set in the loop by what the loop
    reads there is told for each pass.
    """
    where = in_model(module, changed, call)
    if where is None or where[1] is None or not isinstance(call.func, ast.Attribute):
        return None
    told = model.flow.values(expression(call.func.value, *where))
    passes = [
        found
        for found in epoch_loops(model)
        if (found.loop is where[1] or found.loop.encloses(where[1])) and trains(model, found)
        for each in epoch_samplers(model, found.inner.loader)
        if any(map(each.sampler.may_be, told))
    ]
    sources: list[Expr] = []
    for found in passes:
        if reason := _kept(model, found) or _copied(model, found, call):
            return reason
        source = _source_in_loop(model, found)
        is_another = not any(source in other.calls for other in passes)
        if is_another and not any(_is_made_of(model, source, one) for one in sources):
            sources = [one for one in sources if not _is_made_of(model, one, source)] + [source]
    if len(sources) < 2:
        return None
    bases = [
        expression(base, *where)
        for other in changed.new.nodes
        if isinstance(other, ast.Call) and getattr(other.func, "attr", "") == "set_epoch"
        for base in ast.walk(other.func)
        if isinstance(base, ast.expr)
    ]
    for source in sources:
        if not any(_is_made_of(model, source, base) for base in bases):
            return f"`{unparse(source)}` may have another sampler, which is not told"
    return None


def _kept(model: Model, found: EpochLoop) -> str | None:
    """What keeps the batches of one pass for all turns of a loop."""
    for expr in dict.fromkeys((found.inner.source, found.inner.iterated)):
        for step in origins(model.flow, expr, _FROM):
            made = step.expr
            in_turn = step.scope is not found.loop.scope and step.scope in found.scopes
            if not isinstance(made, Call) or last_name(made.func) not in KEEPS or in_turn:
                continue
            if made.stmt is None or not found.loop.encloses(made.stmt):
                return f"{model.place(step.scope, made)} keeps what one pass gives"
        for value in model.flow.values(expr):
            cls = value.cls if isinstance(value, Obj) else None
            if not isinstance(cls, Class):
                continue
            for name in model.flow.params(cls) or ():
                trial = model.epoch_trial(cls, around=(name, None), mixes=True)
                if trial is not None and (trial.keeps_first or trial.lumps):
                    return Refuted(f"`{cls.name}` keeps the batches of its first pass")
    return None


def _copied(model: Model, found: EpochLoop, told: ast.Call) -> str | None:
    """A copy of the sampler that the loader was given, where another one is told."""
    if (
        isinstance(told.func, ast.Attribute)
        and getattr(told.func.value, "attr", "") in SAMPLER_ARGUMENTS
    ):
        return None
    for arg in found.inner.loader.site.args if found.inner.loader.site is not None else ():
        if (call := copying(model, arg.value, _FROM)) is not None:
            return f"`{unparse(call)}` is another sampler"
    return None


def _source_in_loop(model: Model, found: EpochLoop) -> Expr:
    """What a pass goes over, as the loop itself names it where one call leads to the pass."""
    source = found.inner.source
    given = given_by(model.flow, found.calls[0], source) if len(found.calls) == 1 else None
    return given or source


def _is_made_of(model: Model, expr: Expr, other: Expr) -> bool:
    """Whether an expression is another one, or is made of it: ``iter(loader)``."""
    return any(
        _is_same(part, other) or same(part, other) or is_one_object(model.flow, part, other)
        for step in origins(model.flow, expr, LOCAL)
        for part in walk(step.expr)
    )


def _other_branch(changed: Changed, call: ast.Call) -> str | None:
    """What else depends on a guard that asks another object than before."""
    for guard, test, others in _deciding(changed.new, call):
        if guard in changed.back and changed.is_altered(test):
            for other in others:
                if not any(one is call for one in ast.walk(other)):
                    return f"line {other.lineno} depends on the condition that it changes"
    return None


def _still_asked(model: Model, module: Module, changed: Changed, call: ast.Call) -> str | None:
    """A test that decides on a call, and goes on asking what the call was made of before."""
    old, where = changed.back.get(call), in_model(module, changed, call)
    told = getattr(getattr(old, "func", None), "value", None)
    if where is None or not isinstance(told, ast.expr):
        return None
    was = expression(told, *where)
    for _, test, _ in _deciding(changed.new, call):
        if changed.is_altered(test):
            continue
        for step in origins(model.flow, expression(test, *where), _FROM | Hop.PART):
            for part in walk(step.expr):
                asks = isinstance(part, Call) and (
                    ASKS_KIND.is_call(part) or ASKS_BY_NAME.is_call(part)
                )
                asked = part.positional[:1] if isinstance(part, Call) and asks else []
                if _is_part_of_same(model, part, was) or any(
                    _may_be_same(model, each, was) for each in asked
                ):
                    return f"line {test.lineno} still asks `{unparse((*asked, part)[0])}`"
    return None


def _is_part_of_same(model: Model, part: Expr, other: Expr) -> bool:
    """Whether both are an attribute of one name, of what may be one object."""
    return (
        isinstance(part, Attr)
        and isinstance(other, Attr)
        and part.name == other.name
        and _may_be_same(model, part.value, other.value)
    )


def _may_be_same(model: Model, one: Expr, other: Expr) -> bool:
    return not {*model.flow.values(one)}.isdisjoint(model.flow.values(other))


def _deciding(
    tree: Tree, node: ast.AST
) -> Iterator[tuple[ast.AST, ast.expr, list[ast.stmt] | list[ast.expr]]]:
    """The branches around a node, and those above it that leave, with the test of each.

    And what else the test decides on, but for that of an operand of ``and``.
    """
    child = node
    for one in tree.around(node):
        if isinstance(one, ast.If) and child is not one.test:
            yield one, one.test, [*one.body, *one.orelse]
        elif isinstance(one, ast.IfExp) and child is not one.test:
            sides = (one.body, one.orelse)
            yield one, one.test, [each for each in sides if not isinstance(each, ast.Constant)]
        elif isinstance(one, ast.While) and child is not one.test:
            yield one, one.test, []
        elif isinstance(one, ast.BoolOp):
            before = one.values[: one.values.index(child)] if child in one.values else []
            yield from ((one, each, []) for each in before)
        if isinstance(child, ast.stmt):
            block = tree.block(child)
            for place, above in enumerate(block[: block.index(child)]):
                if isinstance(above, ast.If) and any(
                    isinstance(s, _JUMPS) for s in ast.walk(above)
                ):
                    others = [*above.body, *above.orelse, *block[place + 1 :]]
                    yield above, above.test, [s for s in others if not isinstance(s, _JUMPS)]
        if isinstance(one, FUNCTIONS):
            return
        child = one


def _other(
    model: Model, module: Module, changed: Changed, call: ast.Call, base: ast.expr
) -> str | None:
    """What else than a sampler, or than what holds one, an expression may be."""
    where = in_model(module, changed, base)
    if where is None:
        return None
    scope, stmt = where
    asked, not_none = _guards(changed, call, base)
    expr = expression(base, scope, stmt)
    if getattr(call.func, "value", None) is base:
        for value in model.flow.values(expr):
            if isinstance(value, Obj) and (reason := _refuses_epoch(model, value)):
                return reason
            cls = value.cls if isinstance(value, Obj) else None
            if not isinstance(cls, Class) or not _takes_epoch(model, value):
                continue
            is_rewritten = rewritten(module, changed).keys() & {*model.flow.mro(cls)}
            if not is_rewritten and (reason := other_epochs(model, cls)):
                return reason
    if asked:
        return None
    loop = _loop_of(changed, call, base)
    if loop is not None:
        items = _Items(model, module, is_told=getattr(call.func, "value", None) is base)
        return items.other(expression(loop.iter, scope, stmt), loop.iter)
    for value in model.flow.values(expr):
        is_none = isinstance(value, Lit) and value.value is None
        if _has_no_sampler(value) and not (is_none and not_none):
            if is_none and stmt is not None and _is_gone_over(model, expr, stmt):
                continue
            return f"`{ast.unparse(base)}` may also be {shown(value)}"
        reader = changed.new.parents[base]
        if isinstance(reader, ast.Attribute) and _lacks(model, value, reader.attr):
            return f"`{ast.unparse(base)}` may also be {shown(value)}, without `{reader.attr}`"
    if isinstance(expr, Attr) and (reason := _stored_unseen(model, expr)):
        return reason
    made = [*origins(model.flow, expr, _FROM, scope=scope), *_stored(model, expr)]
    for step in made:
        if isinstance(step.expr, Call) and last_name(step.expr.func) in _COLLECTS:
            return f"`{ast.unparse(base)}` may also be `{unparse(step.expr)}`"
        found = parameter_of(step.expr)
        if found is None or found[1].name == found[0].self_name:
            continue
        if reason := unseen(model, *found):
            return reason
    return None


def _is_gone_over(model: Model, expr: Expr, stmt: Stmt) -> bool:
    """Whether each turn of the epoch loop around a statement goes over the object or a part of it.

    None would stop the program there, with or without the fix.
    """
    for found in epoch_loops(model):
        if found.loop is not stmt and not found.loop.encloses(stmt):
            continue
        source: Expr | None = found.inner.source
        if not _is_same(expr, source):
            source = _source_in_loop(model, found)
        steps = [*(call.stmt for call in found.calls), found.inner.stmt]
        if (
            source is not None
            and any(_is_same(expr, node) for node in walk(source))
            and all(step is not None and _is_always_run(step, found.loop) for step in steps)
            and not _is_set_on_the_way(model, expr, found)
        ):
            return True
    return False


def _is_set_on_the_way(model: Model, expr: Expr, found: EpochLoop) -> bool:
    """Whether a turn of the loop may set the variable or the attribute before its pass."""
    if isinstance(expr, Attr):
        setters = {store.scope for store in model.project.stores_of(expr.name)}
    else:
        assert isinstance(expr, Name)
        owner = binder_of(expr.scope, expr.id)
        bound = owner.bindings.get(expr.id, ()) if owner is not None else ()
        setters = {binding.stmt.scope for binding in bound if binding.stmt is not None}
    setters.discard(found.loop.scope)

    def above(scope: Scope) -> Iterator[Scope]:
        return (each for each in model.flow.callers_of(scope) if each is not found.loop.scope)

    return any(
        scope in found.scopes
        or any(
            call.stmt is None or found.loop.encloses(call.stmt)
            for call in model.flow.callers(scope)
        )
        for scope in closure(setters, above)
    )


def _is_same(one: Expr, other: Expr | None) -> bool:
    """Whether both are one variable, or an attribute of one name of one kind of object."""
    if isinstance(one, Name) and isinstance(other, Name):
        owner = binder_of(one.scope, one.id)
        return one.id == other.id and owner is binder_of(other.scope, other.id)
    if isinstance(one, Attr) and isinstance(other, Attr) and one.name == other.name:
        cls = self_class(one.value)
        return (cls is not None and cls is self_class(other.value)) or _is_same(
            one.value, other.value
        )
    return False


def _is_always_run(stmt: Stmt, loop: Loop) -> bool:
    """Whether a statement is run in every turn of a loop, or whenever its function is called."""
    return (stmt.parent is loop or stmt.parent is None) and not any(
        isinstance(each, Return) or (isinstance(each, Simple) and each.is_jump)
        for each in statements(stmt.block[: stmt.block.index(stmt)])
    )


def _stored(model: Model, expr: Expr) -> Iterator[Step]:
    """Where the attribute of an object comes from in each class that the object may be of."""
    if not isinstance(expr, Attr):
        return
    for owner in model.flow.values(expr.value):
        if not isinstance(owner, Obj) or not isinstance(owner.cls, Class):
            continue
        for cls in (owner.cls, *model.flow.subclasses(owner.cls)):
            for store in model.project.own_stores(expr.name, cls):
                if store.value is not None and not store.path:
                    yield from origins(model.flow, store.value, _FROM, scope=store.scope)


def _stored_unseen(model: Model, expr: Attr) -> str | None:
    """A place in a file without a word of samplers that may give the attribute another object.

    It stores it from outside, or derives a class from one of those of the object, and that stores
    it or has a method that makes it.
    """
    owners = [v.cls for v in model.flow.values(expr.value) if isinstance(v, Obj)]
    classes = [cls for cls in owners if isinstance(cls, Class)]
    known: dict[str, Store | None] = model.memo.setdefault(_stored_unseen, {})
    if expr.name not in known:
        stores = model.project.stores_of(expr.name)
        known[expr.name] = next((one for one in stores if _may_replace(model, one)), None)
    store = known[expr.name]
    if store is not None:
        return f"{model.place(store.scope, store.target)} may replace `{expr.name}`"
    names = {cls.name: {*_makers(model, cls, expr.name)} for cls in classes}
    words = (f".{expr.name}".encode(), *(name.encode() for name in names))
    for shown, outline in unread(model, *words):
        for row in outline.stores.get(expr.name, ()):
            return f"{shown}:{row} may replace `{expr.name}`"
        for derived, name in outline.deriving(names):
            if names[name] & derived.methods or expr.name in derived.stores:
                return f"{shown}:{derived.row} makes its own `{expr.name}`"
    return None


def _may_replace(model: Model, store: Store) -> bool:
    """Whether what has no sampler is stored in an attribute of an object that is not known."""
    owner = store.target.value if isinstance(store.target, Attr) else None
    return (
        owner is not None
        and self_class(owner) is None
        and all(isinstance(value, Unknown) for value in model.flow.values(owner))
        and store.value is not None
        and any(map(_has_no_sampler, model.flow.values(store.value)))
    )


def _makers(model: Model, cls: Class, attribute: str) -> Iterator[str]:
    """The methods of a class whose results it stores in an attribute."""
    for store in model.project.own_stores(attribute, cls):
        for node in walk(store.value) if store.value is not None else ():
            if (
                isinstance(node, Call)
                and isinstance(node.func, Attr)
                and self_class(node.func.value)
            ):
                yield node.func.name


def _loop_of(changed: Changed, call: ast.Call, base: ast.expr) -> ast.For | None:
    """The loop that a fix writes around the call, to go through several samplers."""
    for one in changed.new.around(call):
        if not isinstance(one, ast.For) or not changed.is_written(one):
            continue
        if ast.unparse(one.target) == ast.unparse(base):
            return one
    return None


class _Items(NamedTuple):
    """What a loop goes through to set the epoch of each."""

    model: Model
    module: Module
    is_told: bool
    """Whether each is a sampler, and not what holds one."""

    def other(self, items: Expr, written: ast.expr) -> str | None:
        """What else the items may be."""
        for value in self.model.flow.values(items):
            if not isinstance(value, Pack):
                return f"`{ast.unparse(written)}` may not be a list of samplers"
            for item in value.items:
                if self._has_other(item):
                    return f"`{unparse(item)}` in `{ast.unparse(written)}` may be no sampler"
        return self._added((path(written) or "").rpartition(".")[2])

    def _added(self, name: str) -> str | None:
        for added in ("append", "extend", "insert", "add"):
            for call in self.model.project.calls_named(added):
                owner = call.func.value if isinstance(call.func, Attr) else None
                if owner is None or last_name(owner) != name:
                    continue
                given = call.positional[-1:]
                is_one = bool(given) and added in {"append", "add"}
                is_ours = self.model.module_of(call.scope) is self.module
                if is_ours and not (is_one and not self._has_other(given[0])):
                    return f"`{unparse(call)}` may add what is no sampler"
        return None

    def _has_other(self, item: Expr) -> bool:
        values = self.model.flow.values(item)
        if not self.is_told:
            return any(map(_has_no_sampler, values))
        return not values or any(not _takes_epoch(self.model, one) for one in values)


def _refuses_epoch(model: Model, value: Obj) -> str | None:
    """Why the ``set_epoch`` of an object fails when it gets a number and nothing else."""
    method = model.flow.method(value.cls, "set_epoch")
    if not isinstance(method, Function):
        return None
    needed = [p for p in method.params if p.default is None and not p.is_star]
    if len(needed) > 2 or any(not p.is_positional for p in needed):
        return Refuted(f"`{value.name}.set_epoch` takes more than an epoch")
    if any(isinstance(stmt, Raise) for stmt in method.body):
        return Refuted(f"`{value.name}.set_epoch` raises an error")
    checks = [s for s in statements(method.body) if getattr(s, "kind", "") == "assert"]
    checks += [s for s in statements(method.body) if isinstance(s, Raise)]
    if method.is_generator:
        return Refuted(f"`{value.name}.set_epoch` is a generator")
    if any(_asks_itself(check, method) for check in checks):
        return f"`{value.name}.set_epoch` does not take every epoch"
    for store in method.stores:
        if not (isinstance(store.value, Const) and isinstance(store.target, Attr)):
            continue
        for other in model.project.stores_near(store.target.name, method):
            scope = other.scope
            is_beside = scope.name not in PROTOCOL and scope.name != "__init__"
            if is_beside and isinstance(scope, Function) and scope.cls is method.cls is not None:
                return f"`{value.name}.set_epoch` undoes what `{scope.name}` sets"
    return None


def rewritten(module: Module, changed: Changed) -> dict[Class, ast.ClassDef]:
    """The classes in which a fix writes something, and what they are afterwards."""
    found = {
        scope_at(module, changed.back[node]): node
        for node in changed.new.spans
        if isinstance(node, ast.ClassDef) and node in changed.back and changed.is_altered(node)
    }
    return {cls: node for cls, node in found.items() if isinstance(cls, Class)}


def _asks_itself(stmt: Stmt, method: Function) -> bool:
    """Whether a statement hangs on what the object has kept."""
    tests = [each.test for each in stmt.ancestors() if isinstance(each, If)]
    tests += stmt.parts if isinstance(stmt, Simple) else []
    return any(dotted(part) == method.self_name for test in tests for part in walk(test))


def _lacks(model: Model, value: Value, name: str) -> bool:
    """Whether an object of the program certainly has no such attribute."""
    if not (isinstance(value, Obj) and isinstance(value.cls, Class) and value.site is not None):
        return False
    known = model.attributes(value.cls)
    return known.open is None and name not in known.names


def _takes_epoch(model: Model, value: Value) -> bool:
    return isinstance(value, Obj) and model.flow.method(value.cls, "set_epoch") is not None


def _has_no_sampler(value: Value) -> bool:
    if isinstance(value, Table):  # a namespace has its entries as attributes
        return not isinstance(value.node, Call) or last_name(value.node.func) in _COLLECTS
    return isinstance(value, _OTHERS) or (isinstance(value, Pack) and not value.names)


def shown(value: Value) -> str:
    """What a value is, in a few words."""
    if isinstance(value, Lit):
        return f"`{value.value!r}`"
    if isinstance(value, Obj):
        return f"a `{value.name}`"
    kinds = {Pack: "a list", Table: "a dict", Gen: "a generator", ClassRef: "a class"}
    return kinds.get(type(value), "a function")


def _guards(changed: Changed, call: ast.Call, base: ast.expr) -> tuple[bool, bool]:
    """Whether the call is made only after asking what the object can do, and whether it is None."""
    wanted = ast.dump(base)
    asked = not_none = False
    for one in changed.new.around(call):
        tests = []
        if isinstance(one, (ast.If, ast.IfExp)):
            tests.append(one.test)
        elif isinstance(one, ast.BoolOp):
            tests += one.values[:-1]
        for node in (part for test in tests for part in ast.walk(test)):
            if isinstance(node, ast.Call) and node.args and ast.dump(node.args[0]) == wanted:
                asked = asked or path(node.func) in {"hasattr", "isinstance"}
            if isinstance(node, ast.Compare) and ast.dump(node.left) == wanted:
                not_none = True
            not_none = not_none or ast.dump(node) == wanted
    return asked, not_none


def asked(changed: Changed, node: ast.Attribute) -> bool:
    """Whether a test decides whether the attribute is read that looks at the object.

    ``set_epoch`` is told to what :func:`receiver` looks at.
    """
    wanted = ast.dump(node.value)
    for one in changed.new.around(node):
        tests: list[ast.AST] = []
        if isinstance(one, (ast.If, ast.IfExp)):
            tests = [one.test]
        elif isinstance(one, ast.BoolOp):
            tests = [*one.values[:-1]]
        elif isinstance(one, ast.Call) and getattr(one.func, "attr", "") == "set_epoch":
            return True
        if any(ast.dump(part) == wanted for test in tests for part in ast.walk(test)):
            return True
    return False


def _made_anew(model: Model, module: Module, changed: Changed, func: ast.expr) -> str | None:
    """What makes another object each time it is read: a call, or a property that calls."""
    for node in ast.walk(func):
        if isinstance(node, ast.Call):
            called = path(node.func)
            if called != "super" and called not in ASKS_BY_NAME.called:
                return _given_by_call(model, module, changed, node)
        name = node.attr if isinstance(node, ast.Attribute) and node is not func else ""
        if reason := worked_out_anew(model, name):
            return reason
    return None


def worked_out_anew(model: Model, name: str) -> str | None:
    """A property of that name that makes something each time it is read."""
    if any(map(_makes, model.properties(name))):
        return f"the property `{name}` may make another object at each access"
    return None


def _given_by_call(model: Model, module: Module, changed: Changed, call: ast.Call) -> str:
    """What speaks against a call that gives the object."""
    shown = f"`{ast.unparse(call)}`"
    where = in_model(module, changed, call)
    values = model.flow.values(expression(call.func, *where)) if where is not None else ()
    called = {value.function for value in values if isinstance(value, FuncRef)}
    is_awaited = isinstance(changed.new.parents.get(call), ast.Await)
    if not is_awaited and any(map(partial(_is_coroutine, model), called)):
        return Refuted(f"{shown} has to be awaited")
    given = model.flow.values(expression(call, *where)) if where is not None else ()
    is_made_there = bool(called) and all(
        isinstance(one, Obj) and one.site is not None and one.site.scope in called for one in given
    )
    if given and is_made_there and all(map(_makes, called)):
        return Refuted(f"{shown} is another object at each call")
    return f"{shown} may be another object at each call"


def _is_coroutine(model: Model, function: Function) -> bool:
    source = model.module_of(function).source
    return source.text.startswith("async", source.offset(function.row, function.col))


def _makes(function: Function) -> bool:
    """Whether a property calls something at each access: it keeps what it makes under a test."""
    if any("cache" in (last_name(one) or "") for one in function.decorators):
        return False
    return any(
        call.stmt is None or not any(isinstance(one, (If, Try)) for one in call.stmt.ancestors())
        for call in function.calls
        if last_name(call.func) not in ASKS_BY_NAME.called
    )


def _starts_again(changed: Changed, call: ast.Call) -> str | None:
    """A loop around that of the epochs, in which the same sampler is told the same ones again."""
    tree, scopes = changed.new, scopes_of(changed.new)
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    counter = call.args[0]
    if not isinstance(counter, ast.Name):
        return None
    counted: ast.AST | None = None
    for loop in tree.around(call):
        if isinstance(loop, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            return None
        if not isinstance(loop, LOOPS):
            continue
        if counted is None:
            bound = loop.target if isinstance(loop, (ast.For, ast.AsyncFor)) else None
            is_counted = bound is not None and any(
                isinstance(one, ast.Name) and one.id == counter.id for one in ast.walk(bound)
            )
            counted = loop if is_counted or isinstance(loop, ast.While) else None
            continue
        inside = [
            one.id
            for one in scopes.names
            if isinstance(one.ctx, ast.Store) and loop in tree.around(one)
        ]
        is_new = isinstance(root, ast.Name) and root.id in inside
        starts = isinstance(counted, (ast.For, ast.AsyncFor)) or counter.id in [
            one.id
            for one in scopes.names
            if isinstance(one.ctx, ast.Store)
            and loop in tree.around(one)
            and counted not in tree.around(one)
        ]
        if starts and not is_new and isinstance(root, ast.Name):
            return f"the epochs start again in each turn of line {loop.lineno}"
    return None
