"""Ways through the nodes of a file: what is inside them, around them, and spelled alike."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Choice,
    Class,
    Comp,
    Compare,
    Const,
    Define,
    Expr,
    ExprStmt,
    For,
    Function,
    If,
    Index,
    Lambda,
    Map,
    ModuleFacts,
    Name,
    Other,
    Raise,
    Return,
    Scope,
    Seq,
    Simple,
    Stmt,
    Store,
    Text,
    Try,
    Unary,
    While,
    With,
    Yield,
    last_name,
)

T = TypeVar("T")


def children(node: Expr) -> list[Expr]:
    """The direct sub-expressions."""
    if type(node) is Attr:
        return [node.value]
    if type(node) is Call:
        return [node.func, *[arg.value for arg in node.args]]
    if type(node) is Bin:
        return [node.left, node.right]
    found: list[Expr] = []
    for slot in _CHILD_SLOTS.get(type(node), ()):
        value = getattr(node, slot, None)
        if isinstance(value, Expr):
            found.append(value)
        elif value and isinstance(value, list):
            for item in value:
                if isinstance(item, Expr):
                    found.append(item)
                elif isinstance(item, tuple):
                    found += [part for part in item if isinstance(part, Expr)]
    return found


#: Of the kinds that are not as frequent as those above.
_CHILD_SLOTS: dict[type[Expr], tuple[str, ...]] = {
    Seq: ("items",),
    Map: ("items",),
    Index: ("value", "key"),
    Choice: ("test", "options"),
    Unary: ("operand",),
    Compare: ("left", "rights"),
    Comp: ("elements", "iters", "tests"),
    Yield: ("value",),
    Other: ("parts",),
    Text: ("parts",),
}


_LEAVES = frozenset({Name, Const})


def walk(node: Expr) -> Iterator[Expr]:
    """The expression and everything inside it, parents first."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if type(current) not in _LEAVES:
            stack += reversed(children(current))


def holds(expr: Expr, part: Expr) -> bool:
    """Whether one expression is another, or a part of it."""
    begin, end = (part.row, part.col), (part.end_row, part.end_col)
    todo = [expr]
    while todo:
        node = todo.pop()
        if node is part:
            return True
        todo += [  # by the places: each item of a long list is not walked for all the others
            child
            for child in children(node)
            if (child.end_row, child.end_col) > begin and (child.row, child.col) < end
        ]
    return False


def expressions(stmt: Stmt) -> Iterator[Expr]:
    """The expressions of the statement itself, not of the statements inside it."""
    if isinstance(stmt, Assign):
        yield from stmt.targets
        yield stmt.value
    elif isinstance(stmt, AugAssign):
        yield stmt.target
        yield stmt.value
    elif isinstance(stmt, ExprStmt):
        yield stmt.value
    elif isinstance(stmt, (Return, Raise)):
        if stmt.value is not None:
            yield stmt.value
    elif isinstance(stmt, Simple):
        yield from stmt.parts
    elif isinstance(stmt, For):
        yield stmt.target
        yield stmt.iter
    elif isinstance(stmt, (While, If)):
        yield stmt.test
    elif isinstance(stmt, With):
        for expr, target in stmt.items:
            yield expr
            if target is not None:
                yield target
    elif isinstance(stmt, Try):
        for kind, _ in stmt.handlers:
            if kind is not None:
                yield kind
    elif isinstance(stmt, Define):
        yield from stmt.decorators


def blocks(stmt: Stmt) -> Iterator[list[Stmt]]:
    """The statement lists inside a compound statement, not those of a new scope."""
    if isinstance(stmt, (For, While, If)):
        yield stmt.body
        yield stmt.orelse
    elif isinstance(stmt, With):
        yield stmt.body
    elif isinstance(stmt, Try):
        yield stmt.body
        for _, body in stmt.handlers:
            yield body
        yield stmt.orelse
        yield stmt.final


_COMPOUND = (For, While, If, With, Try)


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement of a body in reading order, inside compounds too, not in new scopes."""
    # No recursion: each `elif` is inside the one before.
    todo = [iter(body)]
    while todo:
        for stmt in todo[-1]:
            yield stmt
            if isinstance(stmt, _COMPOUND):
                todo.append(chain.from_iterable(blocks(stmt)))
                break
        else:
            todo.pop()


def inherited(stmt: Stmt, question: Callable[[T, Stmt], T], start: T) -> T:
    """What a statement gets from the statements around it, in its scope.

    ``question`` says what a statement gets from the one directly around it (its ``parent``) and
    from what that one got. It is asked once of each: the last ``elif`` is inside all others.
    """
    known: dict[Stmt, T] = stmt.scope.module.memo.setdefault(question, {})
    way = []
    while stmt.parent is not None and stmt not in known:
        way.append(stmt)
        stmt = stmt.parent
    value = known.get(stmt, start)
    for inner in reversed(way):
        value = known[inner] = question(value, inner)
    return value


def is_main_guard(choice: If) -> bool:
    """``if __name__ == "__main__":``."""
    return any(isinstance(node, Name) and node.id == "__name__" for node in walk(choice.test))


def stands_in(stmt: Stmt, block: list[Stmt]) -> bool:
    """Whether a statement is one of a block, or inside one of them."""
    return bool(block) and block[0].order <= stmt.order <= block[-1].last_order


def leaves(stmt: Stmt) -> bool:
    """Whether what follows a statement in its block is never reached."""
    return isinstance(stmt, (Return, Raise)) or (isinstance(stmt, Simple) and stmt.is_jump)


def owner_of(name: Name) -> Scope | None:
    """The scope that a name is a variable of; None for builtins."""
    scope: Scope | None = read_in(name)
    while scope is not None and name.id not in scope.bindings:
        scope = scope.outer
    return scope


def read_in(name: Name) -> Scope:
    """The scope where a read begins to look for its variable.

    The body of a class reads from outside what it binds only from there on (``DS = DS``).
    """
    scope, stmt = name.scope, name.stmt
    if not isinstance(scope, Class) or scope.outer is None or stmt is None:
        return scope
    is_bound_later = [
        each.within is None and each.stmt is not None and each.stmt.order >= stmt.order
        for each in scope.bindings.get(name.id, ())
    ]
    return scope.outer if is_bound_later and all(is_bound_later) else scope


def nodes_in(stmts: Iterable[Stmt]) -> Iterator[Expr]:
    """The expressions of the statements themselves, with everything inside each, parents first."""
    for stmt in stmts:
        for expr in expressions(stmt):
            yield from walk(expr)


def unbound_names(scope: Scope) -> Iterator[Name]:
    """The names that a scope's own statements read, and nothing around it or in Python binds."""
    for node in nodes_in(statements(scope.body)):
        if not isinstance(node, Name) or hasattr(builtins, node.id):
            continue
        if node.scope is scope and owner_of(node) is None:
            yield node


def asked_for(facts: ModuleFacts) -> Iterator[tuple[str, int]]:
    """The dotted names that a file imports, or imports from, each with its level; by stars too."""
    yield from ((name, level) for _, (name, _, level) in facts.imports)
    yield from facts.star_imports


def binder_of(scope: Scope, name: str) -> Scope | None:
    """The scope that binds ``name`` as ``scope`` reads it; None for builtins."""
    for owner in scope.outward():
        if name in owner.bindings and (owner is scope or not isinstance(owner, Class)):
            return owner
    return None


def method_around(scope: Scope) -> Function | None:
    """The method that a scope is, or is in."""
    for each in scope.outward():
        if isinstance(each, Function) and each.cls is not None:
            return each
    return None


def on_super(expr: Expr) -> bool:
    """Whether something is asked of ``super()``, as ``super().__iter__`` is."""
    return (
        isinstance(expr, Attr)
        and isinstance(expr.value, Call)
        and last_name(expr.value.func) == "super"
    )


def built_by_itself(call: Call) -> Class | None:
    """The class of which ``cls(…)`` in one of its class methods builds an object."""
    func = call.func
    method = method_around(call.scope) if isinstance(func, Name) else None
    if method is None or not method.is_classmethod or not method.params:
        return None
    return method.cls if isinstance(func, Name) and func.id == method.params[0].name else None


def self_class(expr: Expr) -> Class | None:
    """The class C when ``expr`` is the ``self`` of one of C's methods."""
    if not isinstance(expr, Name):
        return None
    owner = owner_of(expr)
    if isinstance(owner, Function) and owner.self_name == expr.id:
        return owner.cls
    return None


def self_stores(scopes: Iterable[Scope], *classes: Class) -> Iterator[tuple[Attr, Store]]:
    """What scopes store as ``self.<name>`` (of the classes, where some are given), and how."""
    for scope in scopes:
        for store in scope.stores:
            target = store.target
            owner = self_class(target.value) if isinstance(target, Attr) else None
            if isinstance(target, Attr) and owner and (not classes or owner in classes):
                yield target, store


def same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are spelled alike (names, attributes, literals, calls, …)."""
    if type(a) is not type(b) or isinstance(a, (Lambda, Comp, Other)):
        return False
    if _label(a) != _label(b):
        return False
    left, right = children(a), children(b)
    return len(left) == len(right) and all(same(x, y) for x, y in zip(left, right, strict=True))


def _label(expr: Expr) -> object:
    """What an expression says besides its parts."""
    if isinstance(expr, Name):
        return expr.id
    if isinstance(expr, Attr):
        return expr.name
    if isinstance(expr, Const):
        return type(expr.value), expr.value
    if isinstance(expr, (Bin, Unary)):
        return expr.op
    if isinstance(expr, Compare):
        return expr.ops
    if isinstance(expr, (Seq, Choice)):
        return expr.kind
    if isinstance(expr, Call):
        return [(arg.keyword, arg.stars) for arg in expr.args]
    return None


def alternatives(expr: Expr) -> Iterator[Expr]:
    """The values that an expression may have, of one that only chooses."""
    if isinstance(expr, Choice):
        for option in expr.options:
            yield from alternatives(option)
    else:
        yield expr


def operands(test: Expr) -> list[Expr]:
    """What must be true for the test to be: the test, or the parts of its ``and``."""
    if isinstance(test, Choice) and test.kind == "and":
        return [part for option in test.options for part in operands(option)]
    return [test]


def unparse(expr: Expr) -> str:
    """The expression as code, for messages; ``…`` where it is not kept."""
    if isinstance(expr, Name):
        return expr.id
    if isinstance(expr, Attr):
        return f"{unparse(expr.value)}.{expr.name}"
    if isinstance(expr, Const):
        return "…" if expr.value is ... else repr(expr.value)
    if isinstance(expr, Call):
        return f"{unparse(expr.func)}({'…' if expr.args else ''})"
    if isinstance(expr, Index):
        return f"{unparse(expr.value)}[{unparse(expr.key)}]"
    if isinstance(expr, Bin) and expr.op in _OPERATORS:
        return f"{unparse(expr.left)} {_OPERATORS[expr.op]} {unparse(expr.right)}"
    if isinstance(expr, Compare) and len(expr.ops) == 1:
        return f"{unparse(expr.left)} {_OPERATORS[expr.ops[0]]} {unparse(expr.rights[0])}"
    if isinstance(expr, Unary) and expr.op == "Not" and not isinstance(expr.operand, Choice):
        return f"not {unparse(expr.operand)}"
    return "…"


_OPERATORS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**",
    "Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=",
    "Is": "is", "IsNot": "is not", "In": "in", "NotIn": "not in",
}  # fmt: skip


def stmt_of(expr: Expr) -> Stmt | None:
    """The statement that a name, an attribute or a call stands in, if that is known of it."""
    return expr.stmt if isinstance(expr, (Name, Attr, Call)) else None


def builtin_type(name: str | None) -> type | None:
    """The class that Python itself has under a name (``str``, ``list``), if it is one."""
    found = getattr(builtins, name or "", None)
    return found if isinstance(found, type) else None


def makes_iterator(name: str | None) -> bool:
    """Whether a function of Python makes an iterator, which is gone through once.

    By its last name, or as ``itertools.chain.from_iterable``.
    """
    last = (name or "").removeprefix(f"{itertools.__name__}.").partition(".")[0]
    made = getattr(builtins, last, getattr(itertools, last, None))
    return made is iter or hasattr(made, "__next__")


#: Bases that give a class nothing to do with samplers.
NEUTRAL_BASES = frozenset(
    {
        "object",
        "typing.Generic",
        "Generic",
        "abc.ABC",
        "typing.Protocol",
        "typing_extensions.Protocol",
        "typing.NamedTuple",
        "collections.abc.Iterable",
        "collections.abc.Iterator",
        "typing.Iterable",
        "typing.Iterator",
        "collections.abc.Sized",
        "typing.Sized",
    }
)


def leftmost(expr: Expr) -> Expr:
    """How a computed text begins: ``"tasks."`` of ``f"tasks.{name}"`` and ``"tasks." + name``."""
    while parts := children(expr):
        expr = parts[0]
    return expr


def imported_by_call(call: Call) -> str:
    """What ``import_module(…)`` imports: a module, or the package that a computed name begins with.

    Empty where nothing of it is written.
    """
    given = call.positional[0] if call.positional else None
    begin = leftmost(given) if given is not None else None
    written = begin.value if isinstance(begin, Const) else None
    if not isinstance(written, str) or written.startswith("."):
        return ""
    return written if begin is given else written.rpartition(".")[0]
