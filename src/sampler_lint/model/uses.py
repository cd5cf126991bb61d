"""What becomes of an object that was built: whether anything can get hold of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from sampler_lint.model.facts import (
    Assign,
    Attr,
    AugAssign,
    Call,
    Choice,
    Class,
    Compare,
    Declare,
    Expr,
    For,
    Function,
    If,
    Name,
    Scope,
    Stmt,
    Unary,
    While,
    With,
    children,
    expressions,
    last_name,
    statements,
    walk,
)
from sampler_lint.model.flow import Obj, Unknown, self_class
from sampler_lint.model.linked import Model
from sampler_lint.model.project import Module
from sampler_lint.source import is_candidate

#: Calls that look at an object and let go of it again.
_LOOKING = frozenset({"isinstance", "hasattr", "print", "bool", "type", "id"})
#: Methods of a sampler whose call hands nothing out.
_SETTERS = frozenset({"set_epoch"})


def target_of(obj: Obj) -> Name | Attr | None:
    """The one name or ``self.attribute`` that the object is assigned to where it is built.

    None when the construction is used in any other way (as an argument, returned, …).
    """
    stmt = obj.site.stmt if obj.site is not None else None
    if not isinstance(stmt, Assign) or len(stmt.targets) != 1:
        return None
    if not any(option is obj.site for option in _options(stmt.value)):
        return None
    target = stmt.targets[0]
    if isinstance(target, Name):
        return target
    if isinstance(target, Attr) and self_class(target.value) is not None:
        return target
    return None


def _options(value: Expr) -> Iterator[Expr]:
    if isinstance(value, Choice):
        for option in value.options:
            yield from _options(option)
    else:
        yield value


def is_handed_on(model: Model, obj: Obj, target: Name | Attr) -> bool:
    """Whether some read of the name or attribute may hand the object to anything else.

    Looking at it (``is None``, ``isinstance``) or calling ``set_epoch`` is no handing on.
    """
    if isinstance(target, Attr):
        return _attribute_is_handed_on(model, target)
    return _name_is_handed_on(model, obj, target)


def _name_is_handed_on(model: Model, obj: Obj, target: Name) -> bool:
    owner = target.scope
    if isinstance(owner, Class) or target.id in owner.declared:
        return True
    if owner.outer is None and _is_imported(model, owner, target.id):
        return True

    def is_it(expr: Expr) -> bool:
        if not isinstance(expr, Name) or expr.id != target.id:
            return False
        values = model.flow.values(expr)
        return any(
            isinstance(value, Unknown) or (isinstance(value, Obj) and value.site is obj.site)
            for value in values
        )

    return any(
        _escapes_from(scope, is_it, _mentions(model, scope).get(target.id, ()))
        for scope in owner.module.scopes
        if scope is owner or _sees(scope, owner, target.id)
    )


def _mentions(model: Model, scope: Scope) -> dict[str, list[Stmt]]:
    """The statements of the scope by the names in them."""
    known: dict[Scope, dict[str, list[Stmt]]] = model.memo.setdefault(_mentions, {})
    if scope in known:
        return known[scope]
    found = known[scope] = {}
    for stmt in statements(scope.body):
        parts = (node for expr in expressions(stmt) for node in walk(expr))
        for name in {node.id for node in parts if isinstance(node, Name)}:
            found.setdefault(name, []).append(stmt)
    return found


def _is_imported(model: Model, scope: Scope, name: str) -> bool:
    """Whether a file of the program imports the name (or everything) from another."""
    programs: dict[str, frozenset[str]] = model.memo.setdefault(_imported, {})
    program = model.project.program_of(model.module_of(scope))
    known = programs.get(program)
    if known is None:
        known = programs[program] = _imported(model.project.modules_near(scope))
    return known is _EVERYTHING or name in known


#: What stands for all names.
_EVERYTHING = frozenset({"*"})


def _imported(modules: Iterable[Module]) -> frozenset[str]:
    """The names that files import, or read of another."""
    names: set[str] = set()
    for module in modules:
        if module.facts.star_imports:
            return _EVERYTHING
        for scope in module.facts.scopes:
            names.update(read.name for read in scope.reads)
        names.update(binding.payload[1] for _, binding in module.facts.imports)
    return frozenset(names)


def _sees(scope: Scope, owner: Scope, name: str) -> bool:
    """Whether ``name`` in ``scope`` is the variable of ``owner``."""
    current: Scope | None = scope
    while current is not None and current is not owner:
        if name in current.bindings:
            return False
        current = current.outer
    return current is owner


def _attribute_is_handed_on(model: Model, target: Attr) -> bool:
    cls = self_class(target.value)
    if cls is None or not is_candidate(target.name.encode()):
        return True  # files without these words are not looked at
    if any(
        isinstance(base, Unknown) or (isinstance(base, str) and not base.startswith(_PASSIVE))
        for base in model.flow.mro(cls)
    ):
        return True
    spelled = re.compile(rf"['\"]{re.escape(target.name)}['\"]")

    def is_it(expr: Expr) -> bool:
        if not isinstance(expr, Attr) or expr.name != target.name:
            return False
        reader = self_class(expr.value)
        return reader is None or cls in model.flow.mro(reader) or reader in model.flow.mro(cls)

    return any(
        spelled.search(module.source.text)
        or any(
            _escapes_from(scope, is_it, statements(scope.body))
            for scope in module.facts.scopes
            if any(read.name == target.name for read in scope.reads)
        )
        for module in model.project.modules_near(cls)
    )


#: Bases outside the tree that read no attribute they do not set.
_PASSIVE = ("torch.nn.", "pytorch_lightning.", "lightning.")


# --------------------------------------------------------------------------- contexts


def _escapes_from(scope: Scope, is_it: Callable[[Expr], bool], stmts: Iterable[Stmt]) -> bool:
    """Whether it escapes in a default of the scope's parameters, or in some of its statements."""
    defaults = (
        [param.default for param in scope.params if param.default is not None]
        if isinstance(scope, Function)
        else []
    )
    if any(_escapes(default, is_it) for default in defaults):
        return True
    return any(_is_read(stmt, is_it) for stmt in stmts)


def _is_read(stmt: Stmt, is_it: Callable[[Expr], bool]) -> bool:
    targets = _targets(stmt)
    for expr in expressions(stmt):
        if any(expr is target for target in targets):
            if isinstance(stmt, AugAssign) and is_it(expr):
                return True
            if _is_set(expr, is_it):
                continue
            if any(_escapes(part, is_it) for part in children(expr)):
                return True
        elif isinstance(stmt, (If, While)) and expr is stmt.test and is_it(expr):
            continue
        elif _escapes(expr, is_it):
            return True
    return False


def _is_set(target: Expr, is_it: Callable[[Expr], bool]) -> bool:
    """Whether storing there hands nothing on: ``sampler = …`` and ``sampler.epoch = …``."""
    return is_it(target) or (isinstance(target, Attr) and is_it(target.value))


def _targets(stmt: Stmt) -> list[Expr]:
    if isinstance(stmt, Assign):
        return stmt.targets
    if isinstance(stmt, (For, AugAssign, Declare)):
        return [stmt.target]
    if isinstance(stmt, With):
        return [target for _, target in stmt.items if target is not None]
    return []


def _escapes(expr: Expr, is_it: Callable[[Expr], bool]) -> bool:
    """Whether the value of the expression, or something called in it, may get hold of it."""
    if is_it(expr):
        return True
    if isinstance(expr, Call):
        if isinstance(expr.func, Attr) and expr.func.name in _SETTERS and is_it(expr.func.value):
            return any(_escapes(arg.value, is_it) for arg in expr.args)
        if isinstance(expr.func, Name) and last_name(expr.func) in _LOOKING:
            return any(not is_it(arg.value) and _escapes(arg.value, is_it) for arg in expr.args)
        return _escapes(expr.func, is_it) or any(_escapes(arg.value, is_it) for arg in expr.args)
    if isinstance(expr, (Compare, Unary)):
        return any(not is_it(part) and _escapes(part, is_it) for part in children(expr))
    if isinstance(expr, Choice) and expr.kind == "if":
        assert expr.test is not None
        looks = is_it(expr.test) or not _escapes(expr.test, is_it)
        return not looks or any(_escapes(option, is_it) for option in expr.options)
    return any(_escapes(part, is_it) for part in children(expr))


def uses_names_by_string(scope: Scope) -> bool:
    """Whether code in the scope reads variables by name, so that no read can be ruled out."""
    return any(last_name(call.func) in _BY_STRING for call in scope.calls)


_BY_STRING = frozenset({"locals", "globals", "vars", "eval", "exec"})
