"""What becomes of an object that was built: whether anything can get hold of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeGuard

from sampler_lint import catalog
from sampler_lint.analysis.arguments import passed
from sampler_lint.analysis.reaching import definitions
from sampler_lint.analysis.values import ClassRef, FuncRef, Obj, Unknown
from sampler_lint.domain.concepts import LOOKS, NAMESPACES, SETS_EPOCH
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_imported, once_a_program
from sampler_lint.remembered import remembered
from sampler_lint.source import is_candidate
from sampler_lint.syntax.navigation import (
    alternatives,
    children,
    expressions,
    nodes_in,
    same,
    self_class,
    statements,
    walk,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Call,
    Choice,
    Class,
    Compare,
    Const,
    Declare,
    Expr,
    For,
    Function,
    If,
    Index,
    Map,
    ModuleFacts,
    Name,
    Return,
    Scope,
    Seq,
    Stmt,
    Unary,
    While,
    With,
)
from sampler_lint.syntax.unread import word_of
from sampler_lint.workspace.project import Module


def target_of(obj: Obj) -> Name | Attr | None:
    """The one name or ``self.attribute`` that the object is assigned to where it is built.

    None when the construction is used in any other way (as an argument, returned, …).
    """
    stmt = obj.site.stmt if obj.site is not None else None
    if not isinstance(stmt, Assign) or len(stmt.targets) != 1:
        return None
    if not any(option is obj.site for option in alternatives(stmt.value)):
        return None
    target = stmt.targets[0]
    if isinstance(target, Name):
        return target
    if isinstance(target, Attr) and self_class(target.value) is not None:
        return target
    return None


def is_handed_on(model: Model, obj: Obj, target: Name | Attr, *, returning: bool = True) -> bool:
    """Whether some read of the name or attribute may hand the object to anything else.

    Looking at it (``is None``, ``isinstance``) or calling ``set_epoch`` is no handing on, nor is
    returning it, or an object of the tree that keeps it, if ``returning`` is false.
    """
    if isinstance(target, Attr):
        return _attribute_is_handed_on(model, target)
    return _name_is_handed_on(model, obj, target, returning)


def _name_is_handed_on(model: Model, obj: Obj, target: Name, returning: bool) -> bool:
    owner = target.scope
    if isinstance(owner, Class) or target.id in owner.declared:
        return True
    if owner.outer is None and is_imported(model, model.module_of(owner), target.id):
        return True
    handed_on = _handed_on(model, owner, target.id, returning)
    return not handed_on.isdisjoint({obj.site, None})


def _handed_on(model: Model, owner: Scope, name: str, returning: bool) -> frozenset[Call | None]:
    """What the variable of a scope holds where it is handed on, by the call that builds it.

    None stands for what is not known.
    """
    known: dict[object, frozenset[Call | None]] = model.memo.setdefault(_handed_on, {})
    key = owner, name, returning
    if key not in known:
        known[key] = frozenset({None})  # where a function calls itself with it
        known[key] = frozenset(
            value.site if isinstance(value, Obj) else None
            for scope, read, call in _escaping_as(model, owner.module, name)
            if scope is owner or _sees(scope, owner, name)
            if returning or not (_is_given_back(model, read) or _is_looked_at(model, read, call))
            for value in model.flow.values(read)
            if isinstance(value, Unknown) or (isinstance(value, Obj) and value.site is not None)
        )
    return known[key]


def is_left(model: Model, target: Name) -> bool:
    """Whether nothing ever gets hold of what is assigned to a name there."""
    return _takers(model, target) == []


def is_only_tested(model: Model, read: Name) -> bool:
    """Whether nothing ever gets hold of the parameter that a name of its function reads."""
    owner, name = read.scope, read.id
    return (
        [each.how for each in owner.bindings.get(name, ())] == ["param"]
        and not is_used_by_string(owner, name)
        and not any(
            scope is owner or _sees(scope, owner, name)
            for scope, _, _ in _escaping_as(model, owner.module, name)
        )
    )


def is_for_nothing(model: Model, obj: Obj) -> bool:
    """Whether nothing gets hold of the object but others that are built of it, for nothing."""
    target = target_of(obj)
    takers = _takers(model, target) if isinstance(target, Name) else None
    return takers is not None and all(
        isinstance(value, Obj) and value.site is call and is_for_nothing(model, value)
        for call in takers
        for value in (model.flow.values(call) if call is not None else (None,))
    )


def overwritten_entry(obj: Obj) -> Stmt | None:
    """What puts something else into the entry of a dict, where nothing has read the object yet."""
    site = obj.site
    scope = site.scope if site is not None else None
    put = next((store for store in scope.stores if store.value is site), None) if scope else None
    if scope is None or put is None or put.how != "assign" or not _is_literal(put.target):
        return None
    holder = put.target.value
    if not isinstance(holder, Name) or is_used_by_string(scope, holder.id):
        return None
    if any(_mentions(inner.body, holder.id) for inner in _inside(scope)):
        return None
    for stmt in _afterwards(put.stmt):
        stores = [store for store in scope.stores if store.stmt is stmt]
        ours = [store for store in stores if same(store.target.value, holder)]
        written = [store.target.value for store in ours if _is_literal(store.target)]
        if len(_mentions([stmt], holder.id)) != len(written):
            return None
        if any(same(store.target, put.target) and store.how == "assign" for store in ours):
            return stmt
    return None


def _mentions(stmts: Iterable[Stmt], name: str) -> list[Name]:
    nodes = nodes_in(statements(stmts))
    return [node for node in nodes if isinstance(node, Name) and node.id == name]


def _is_literal(target: Expr) -> TypeGuard[Index]:
    return isinstance(target, Index) and isinstance(target.key, Const)


def _inside(scope: Scope) -> Iterator[Scope]:
    return (each for each in scope.module.scopes if each is not scope and scope in each.outward())


def _afterwards(stmt: Stmt) -> Iterator[Stmt]:
    """The statements that certainly come after one, as they stand, until a loop begins anew."""
    below = stmt
    for up in (*stmt.ancestors(), None):
        yield from below.block[below.block.index(below) + 1 :]
        if not isinstance(up, If):
            return
        below = up


def _takers(model: Model, target: Name) -> list[Call | None] | None:
    """The calls that get what is assigned to a name there, None for any other use.

    None if not all of its uses are seen.
    """
    owner, name = target.scope, target.id
    if isinstance(owner, Class) or name in owner.declared or is_used_by_string(owner, name):
        return None
    if owner.outer is None and is_imported(model, model.module_of(owner), name):
        return None
    return [
        call
        for scope, read, call in _escaping_as(model, owner.module, name)
        if scope is owner or _sees(scope, owner, name)
        if any(each.stmt is target.stmt for each in definitions(owner, read))
    ]


def _sees(scope: Scope, owner: Scope, name: str) -> bool:
    """Whether ``name`` in ``scope`` is the variable of ``owner``."""
    return owner is next((s for s in scope.outward() if s is owner or name in s.bindings), None)


def _attribute_is_handed_on(model: Model, target: Attr) -> bool:
    cls = self_class(target.value)
    if cls is None or not is_candidate(target.name.encode()):
        return True  # files without these words are not looked at
    if any(
        isinstance(base, Unknown)
        or (isinstance(base, str) and not base.startswith(catalog.PASSIVE_BASES))
        for base in model.flow.mro(cls)
    ):
        return True
    if target.name in _quoted(model, cls):
        return True
    readers, above = _readers(model, cls, target.name)
    return None in readers or cls in above or not readers.isdisjoint(model.flow.mro(cls))


@once_a_program
def _quoted(model: Model, scope: Scope) -> frozenset[str]:
    """The names that the files of a scope's program hold in quotes."""
    near = model.project.modules_near(scope)
    return frozenset(name for module in near for name in _quoted_in(module))


def _quoted_in(module: Module) -> set[str]:
    known: set[str] | None = module.facts.memo.get(_quoted_in)
    if known is None:
        text = module.source.stretch(0, len(module.source.text))
        known = module.facts.memo[_quoted_in] = set(_QUOTED.findall(text))
    return known


_QUOTED = re.compile(r"['\"](\w+)(?=['\"])")


def _readers(
    model: Model, scope: Scope, name: str
) -> tuple[frozenset[Class | None], frozenset[object]]:
    """The classes that hand on such an attribute of theirs, and all that these derive from.

    None stands for what is read of anything else than ``self``.
    """
    program = model.project.program_of(model.module_of(scope))
    known: dict[object, tuple[frozenset[Class | None], frozenset[object]]]
    known = model.memo.setdefault(_readers, {})
    if (program, name) not in known:
        readers = frozenset(
            self_class(read.value)
            for module in model.project.modules_near(scope)
            for read in _escaping_from(model, module.facts).attributes.get(name, ())
        )
        classes = (cls for cls in readers if cls is not None)
        above = frozenset(base for cls in classes for base in model.flow.mro(cls))
        known[program, name] = readers, above
    return known[program, name]


# --------------------------------------------------------------------------- contexts


class _Escaping(NamedTuple):
    """The names and attributes of a file whose values something else may get hold of."""

    names: dict[str, list[tuple[Scope, Name, Call | None]]]
    """Each with the call that gets it, if it is an argument."""
    attributes: dict[str, list[Attr]]


def _is_given_back(model: Model, read: Name) -> bool:
    """Whether a name is what a function returns or keeps, perhaps together with other things."""
    stmt = read.stmt
    if isinstance(stmt, Return) and stmt.value is not None:
        return _holds(model, stmt.value, read)
    if not isinstance(stmt, Assign):
        return False
    if stmt.value is read:
        return all(
            isinstance(target, Attr) and not _attribute_is_handed_on(model, target)
            for target in stmt.targets
        )
    # An assigned table may be unpacked into any call.
    return isinstance(stmt.value, Call) and _holds(model, stmt.value, read)


def _is_looked_at(model: Model, read: Name, call: Call | None) -> bool:
    """Whether a name is passed to functions of the tree only, and none of them hands it on."""
    if call is None:
        return False
    functions = model.flow.values(call.func)
    return bool(functions) and all(
        isinstance(value, FuncRef) and _keeps_to_itself(model, value.function, read, call)
        for value in functions
    )


def _keeps_to_itself(model: Model, function: Function, read: Name, call: Call) -> bool:
    is_bound = function.is_bound
    given = (
        param
        for param in function.params
        if passed(function, param, call, is_bound=is_bound) is read
    )
    param = next(given, None)
    return param is not None and not _handed_on(model, function, param.name, returning=False)


def _holds(model: Model, expr: Expr, read: Name) -> bool:
    """Whether an expression only puts the value into a tuple, a dict or an object of the tree."""
    if isinstance(expr, Seq):
        parts = expr.items
    elif isinstance(expr, Map):
        parts = [item for _, item in expr.items]
    elif isinstance(expr, Call):
        values = model.flow.values(expr.func)
        if not values or not all(
            isinstance(value, ClassRef)
            and all(isinstance(base, Class) for base in model.flow.mro(value.cls))
            for value in values
        ):
            return False
        parts = [arg.value for arg in expr.args]
    else:
        return expr is read
    return any(_holds(model, part, read) for part in parts)


def _escaping_as(
    model: Model, facts: ModuleFacts, name: str
) -> Sequence[tuple[Scope, Name, Call | None]]:
    """Where a variable called ``name`` may escape in a file."""
    model.project.look_up((name,))
    return _escaping_from(model, facts).names.get(name, ())


@remembered
def _escaping_from(_: Model, facts: ModuleFacts) -> _Escaping:
    found = _Escaping({}, {})
    for scope in facts.scopes:
        read = {attribute.name for attribute in scope.reads}
        params = scope.params if isinstance(scope, Function) else ()
        parts = [(param.default, True) for param in params if param.default is not None]
        parts += (part for stmt in statements(scope.body) for part in _parts(stmt))
        for expr, call in _escaping(parts):
            if isinstance(expr, Name):
                found.names.setdefault(word_of(expr), []).append((scope, expr, call))
            elif expr.name in read:
                found.attributes.setdefault(expr.name, []).append(expr)
    return found


def _parts(stmt: Stmt) -> Iterator[tuple[Expr, bool]]:
    """The expressions of a statement, each with whether its own value may escape there."""
    targets = _targets(stmt)
    for expr in expressions(stmt):
        if not any(expr is target for target in targets):
            yield expr, not (isinstance(stmt, (If, While)) and expr is stmt.test)
            continue
        if isinstance(stmt, AugAssign) and isinstance(expr, (Name, Attr)):
            yield expr, True
            continue
        # Storing hands nothing on: `sampler = …` and `sampler.epoch = …`.
        for target in _taken_apart(expr):
            for part in children(target):
                yield part, not isinstance(target, Attr)


def _taken_apart(target: Expr) -> Iterator[Expr]:
    if isinstance(target, Seq):
        for item in target.items:
            yield from _taken_apart(item)
    else:
        yield target


def _targets(stmt: Stmt) -> list[Expr]:
    if isinstance(stmt, Assign):
        return stmt.targets
    if isinstance(stmt, (For, AugAssign, Declare)):
        return [stmt.target]
    if isinstance(stmt, With):
        return [target for _, target in stmt.items if target is not None]
    return []


def _escaping(parts: Iterable[tuple[Expr, bool]]) -> Iterator[tuple[Name | Attr, Call | None]]:
    """The names and attributes in expressions that something called there may get hold of.

    Each expression is given with whether its own value may escape, and comes with the call that
    it is an argument of.
    """
    todo: list[tuple[Expr, bool, Call | None]] = [(expr, escapes, None) for expr, escapes in parts]
    while todo:
        expr, escapes, call = todo.pop()
        if escapes and isinstance(expr, (Name, Attr)):
            yield expr, call
        if isinstance(expr, Call):
            looking = isinstance(expr.func, Name) and LOOKS.is_call(expr)
            if isinstance(expr.func, Attr) and SETS_EPOCH.is_call(expr):
                todo.append((expr.func.value, False, None))
            elif not looking:
                todo.append((expr.func, True, None))
            todo += ((arg.value, not looking, expr) for arg in expr.args)
        elif isinstance(expr, Choice) and expr.kind == "if":
            assert expr.test is not None
            todo.append((expr.test, False, None))
            todo += ((option, True, None) for option in expr.options)
        else:
            looking = isinstance(expr, (Compare, Unary))
            todo += ((part, not looking, None) for part in children(expr))


def is_used_by_string(scope: Scope, name: str) -> bool:
    """Whether code in the scope may read its variable ``name`` by a text, or all of them."""
    return not NAMESPACES.called.isdisjoint(scope.called) and any(
        isinstance(call.func, Name) and _may_read(call.func.id, call, scope, name)
        for call in NAMESPACES.calls_in(scope.calls)
    )


def _may_read(function: str, call: Call, scope: Scope, name: str) -> bool:
    if function == "globals":
        return scope.outer is None
    if function == "eval":
        # A text from elsewhere (a setting) knows no variable here.
        texts = [
            node.value
            for arg in call.args
            for node in walk(arg.value)
            if isinstance(node, Const) and (isinstance(node.value, str) or node.value is ...)
        ]
        return any(text is ... or name in text for text in texts)
    return function == "exec" or not call.args
