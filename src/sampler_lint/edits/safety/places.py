"""Where statements were put: whether they are reached, and see what they saw at their old place."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from sampler_lint.domain.concepts import CONFIG, ITERATES, LOOKS, awaits_error
from sampler_lint.domain.model import Model
from sampler_lint.domain.rank_terms import runs_on_one_rank
from sampler_lint.edits.safety.meaning import assigned, scope_at, scopes_of
from sampler_lint.edits.safety.names import bindings, is_builtin, path
from sampler_lint.edits.safety.receivers import statements_of
from sampler_lint.edits.safety.texts import FUNCTIONS, LOOPS, Changed, Tree
from sampler_lint.findings import Refuted
from sampler_lint.syntax.nodes import If
from sampler_lint.workspace.project import Module


def unreached(changed: Changed) -> str | None:
    """A written statement that no execution comes to, or that meets what only comes after it."""
    for stmt in changed.statements:
        if isinstance(stmt, (*FUNCTIONS, ast.ClassDef)):
            if reason := _bound_again(changed, stmt):
                return reason
            continue
        if isinstance(stmt, (ast.Import, ast.ImportFrom)):
            continue
        scope = scopes_of(changed.new).scope(stmt)
        if assigned(changed, scope).at.get(stmt) is None:
            return Refuted("what it inserts is never reached")
        if (row := _left_before(changed, scope, stmt)) is not None:
            return f"line {row} may leave before it"
        if reason := _stale(changed, stmt):
            return reason
    return None


def _left_before(changed: Changed, scope: ast.AST, stmt: ast.stmt) -> int | None:
    """The line where a method may return before what is written, and nothing comes after it.

    A constructor that stores something, or a ``set_epoch`` that hands the epoch on.
    """
    target = getattr(stmt, "targets", [None])[0]
    name = getattr(scope, "name", "")
    if name != "set_epoch" and not (name == "__init__" and isinstance(target, ast.Attribute)):
        return None
    tree = changed.new
    return next(
        (
            one.lineno
            for one in tree.spans
            if isinstance(one, ast.Return) and scopes_of(tree).scope(one) is scope
            if tree.spans[one][0] < tree.spans[stmt][0]
        ),
        None,
    )


def _bound_again(
    changed: Changed, stmt: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
) -> str | None:
    """Something else that has the name of a written definition."""
    scopes = scopes_of(changed.new)
    scope = scopes.scope(stmt)
    for node in changed.new.nodes:
        if node is not stmt and scopes.scope(node) is scope and stmt.name in bindings(node):
            return f"`{stmt.name}` is also bound in line {getattr(node, 'lineno', stmt.lineno)}"
    return None


def awaited(changed: Changed) -> str | None:
    """An edit in a block that has to end in an error: a test fails if there is none."""
    for node, (start, end) in changed.old.spans.items():
        if not isinstance(node, (ast.With, ast.AsyncWith)):
            continue
        if not any(start <= edit.start <= end for edit in changed.edits):
            continue
        for item in node.items:
            call = item.context_expr
            name = path(call.func) if isinstance(call, ast.Call) else None
            if name is not None and awaits_error(name):
                return f"line {node.lineno} expects an error"
    return None


def _stale(changed: Changed, stmt: ast.stmt) -> str | None:
    """An object that the statement uses and that a later turn of its loop replaces."""
    tree = changed.new
    used = _receivers(stmt)
    for loop in tree.around(stmt):
        if isinstance(loop, (*FUNCTIONS, ast.ClassDef, ast.Module)):
            return None
        if not isinstance(loop, LOOPS):
            continue
        passes = dict(_gone_through(tree, loop)) if _tells_epoch(stmt) else {}
        for node in _inside(loop.body):
            if not isinstance(node, (ast.Name, ast.Attribute)):
                continue
            start, where = tree.spans.get(node, (0, 0))[0], path(node)
            if not isinstance(node.ctx, ast.Store) or start <= tree.spans[stmt][1]:
                continue
            if any(_is_part(where, one) for one in used) or start > passes.get(where, start):
                return f"`{where}` is replaced in line {node.lineno}, after its use"
    return None


def _tells_epoch(stmt: ast.stmt) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "set_epoch" for one in ast.walk(stmt))


def _gone_through(tree: Tree, loop: ast.AST | None) -> Iterator[tuple[str | None, int]]:
    """What the loops in a loop go through, as it is or wrapped in a call, and where each ends."""
    for node in _inside(loop.body) if isinstance(loop, LOOPS) else ():
        if isinstance(node, (ast.For, ast.AsyncFor)):
            wrapped = node.iter.args[:1] if isinstance(node.iter, ast.Call) else []
            yield from ((path(one), tree.spans[node][1]) for one in (node.iter, *wrapped))


def other_object(changed: Changed) -> str | None:
    """A name by which written code means what had that name only before."""
    tree = changed.new
    scopes = scopes_of(tree)
    for node in tree.spans:
        if not isinstance(node, ast.Attribute) or not changed.is_written(node):
            continue
        root = node.value
        stmt = tree.statement(node)
        if not isinstance(root, ast.Name) or stmt is None:
            continue
        scope = scopes.scope(node)
        owner = scopes.binder(root.id, scope)
        if owner is not scope:
            if owner is not None and (row := _bound_later(changed, owner, root)):
                return f"`{root.id}` is another object from line {row} on"
            continue
        names = [n for n in scopes.names if n.id == root.id and scopes.scope(n) is scope]
        if any(_is_used_after(changed, n, stmt) for n in names):
            continue
        for store in names:
            if not isinstance(store.ctx, ast.Load) and _is_replaced(changed, names, store, stmt):
                state = "gone" if isinstance(store.ctx, ast.Del) else "another object"
                why = f"`{root.id}` is {state} since line {store.lineno}"
                return Refuted(why) if _is_always_before(tree, store, stmt) else why
    return None


def _is_always_before(tree: Tree, store: ast.Name, stmt: ast.stmt) -> bool:
    """Whether every way to a statement in the same function comes through a store."""
    own = tree.statement(store)
    block = tree.block(own) if own is not None else []
    return any(one in block for one in (stmt, *tree.around(stmt)))


def _bound_later(changed: Changed, owner: ast.AST, root: ast.Name) -> int | None:
    """The line that gives a variable another object, which a function reads when it is called.

    What the function reads of it elsewhere, it has.
    """
    tree, scopes = changed.new, scopes_of(changed.new)
    ours = [n for n in scopes.names if n.id == root.id and n in tree.spans]
    here = scopes.scope(root)
    if any(scopes.scope(n) is here and not changed.is_written(n) for n in ours):
        return None
    stores = [n for n in ours if isinstance(n.ctx, ast.Store) and scopes.scope(n) is owner]
    used = [n for n in ours if isinstance(n.ctx, ast.Load) and scopes.scope(n) is owner]
    for store in stores:
        stmt = tree.statement(store)
        is_made_of_itself = any(tree.statement(n) is stmt for n in used)
        is_first = any(tree.spans[n][0] < tree.spans[store][0] for n in (*stores, *used))
        if is_first and not is_made_of_itself:
            return store.lineno
    return None


def _is_replaced(changed: Changed, names: list[ast.Name], store: ast.Name, stmt: ast.stmt) -> bool:
    """Whether a store before a statement puts another object in the place of one used before."""
    tree = changed.new
    place = tree.spans.get(store, (0, 0))[0]
    if changed.is_written(store) or place >= tree.spans[stmt][0]:
        return False
    own = tree.statement(store)
    reads = [n for n in names if isinstance(n.ctx, ast.Load) and not changed.is_written(n)]
    if any(tree.statement(n) is own for n in reads):
        return False  # made of itself
    return any(tree.spans.get(n, (place, 0))[0] < place for n in reads)


def other_readers(changed: Changed) -> str | None:
    """A variable that is given another attribute of the same object, and read elsewhere, too."""
    scopes = scopes_of(changed.new)
    kinds = (ast.Assign, ast.NamedExpr)
    for old, new in changed.same.items():
        if not isinstance(old, kinds) or not isinstance(new, kinds):
            continue
        was, now = path(old.value), path(new.value)
        if was is None or now is None or was == now or not _is_part(was.rpartition(".")[0], now):
            continue
        targets = new.targets if isinstance(new, ast.Assign) else [new.target]
        for target in (one for one in targets if isinstance(one, ast.Name)):
            owner = scopes.binder(target.id, scopes.scope(target))
            for name in scopes.names:
                if name.id != target.id or not isinstance(name.ctx, ast.Load):
                    continue
                if scopes.binder(name.id, scopes.scope(name)) is owner and not _tells(
                    changed.new, name
                ):
                    return f"`{name.id}` is also read in line {name.lineno}"
    return None


def other_uses(changed: Changed) -> str | None:
    """An attribute that is given a part of its old value, and read in more places than one.

    One of them may be what the rest was for; something else in its place is meant for all.
    """
    for old, new in changed.same.items():
        if not isinstance(old, ast.Assign) or not isinstance(new, ast.Assign):
            continue
        target = new.targets[0]
        if not isinstance(target, ast.Attribute) or ast.dump(old.value) == ast.dump(new.value):
            continue
        if ast.dump(old.targets[0]) != ast.dump(target) or not isinstance(old.value, ast.BinOp):
            continue
        if not _read_in(new.value) <= _read_in(old.value):
            continue
        reads = [
            one
            for one in changed.new.nodes
            if isinstance(one, ast.Attribute) and one.attr == target.attr
            if isinstance(one.ctx, ast.Load) and not CONFIG.says(path(one.value) or "")
        ]
        if len(reads) > 1:
            return f"`{ast.unparse(target)}` is also read in line {reads[0].lineno}"
    return None


def _read_in(value: ast.expr) -> set[str]:
    """The variables and attributes that an expression reads."""
    return {ast.dump(one) for one in ast.walk(value) if isinstance(one, (ast.Name, ast.Attribute))}


def _tells(tree: Tree, name: ast.Name) -> bool:
    """Whether the name is read only to set the epoch, or to ask whether that can be done."""
    parent = tree.parents[name]
    if isinstance(parent, ast.Attribute):
        return parent.attr == "set_epoch"
    if isinstance(parent, ast.Compare):
        return all(isinstance(one, ast.Constant) for one in parent.comparators)
    return isinstance(parent, ast.Call) and path(parent.func) in {
        "isinstance",
        "hasattr",
        "getattr",
    }


def _is_used_after(changed: Changed, name: ast.Name, stmt: ast.stmt) -> bool:
    """Whether what follows iterates over, or hands on, what the name means."""
    tree = changed.new
    if not isinstance(name.ctx, ast.Load) or changed.is_written(name):
        return False
    if tree.spans.get(name, (0, 0))[0] < tree.spans[stmt][1]:
        return False
    child: ast.AST = name
    for parent in tree.around(name):
        if isinstance(parent, (ast.For, ast.AsyncFor)):
            return child is parent.iter
        if isinstance(parent, ast.Call) and child is not parent.func:
            return True
        if isinstance(parent, ast.stmt):
            return False
        child = parent
    return False


def _receivers(stmt: ast.AST) -> set[str]:
    """The objects whose attributes a statement reads, each with those on the way to it."""
    found = set()
    for node in ast.walk(stmt):
        if isinstance(node, ast.Attribute):
            where = path(node.value)
            if where is not None:
                found.add(where)
    return found


def _is_part(stored: str | None, used: str) -> bool:
    """Whether ``used`` is what was stored, or is reached through it."""
    return stored is not None and (used == stored or used.startswith(stored + "."))


def moved(model: Model, module: Module, changed: Changed) -> str | None:
    """What decided whether, and with what, a moved statement ran at its old place."""
    removed = {ast.dump(stmt): stmt for stmt in changed.removed}
    removed_calls = {_called(stmt): stmt for stmt in changed.removed if _called(stmt)}
    for stmt in changed.statements:
        old = removed.get(ast.dump(stmt)) or removed_calls.get(_called(stmt) or "")
        if old is not None and (reason := _between(model, module, changed, old, stmt)):
            return reason
    return None


def _called(stmt: ast.AST) -> str | None:
    if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call):
        func = stmt.value.func
        return func.attr if isinstance(func, ast.Attribute) else path(func)
    return None


def _asks_rank(model: Model, module: Module, tree: Tree, guard: ast.AST) -> bool:
    """Whether it is a branch that only one rank takes."""
    if not isinstance(guard, ast.If):
        return False
    scope = scope_at(module, scopes_of(tree).scope(guard))
    stmt = None if scope is None else statements_of(scope).get((guard.lineno, guard.col_offset))
    return isinstance(stmt, If) and runs_on_one_rank(model, stmt.test, stmt.scope)


def _between(
    model: Model, module: Module, changed: Changed, old: ast.stmt, new: ast.stmt
) -> str | None:
    tree = changed.old
    around = {changed.back.get(one) for one in changed.new.around(new)}
    chain: list[ast.AST] = []
    for one in tree.around(old):
        if one in around:
            break
        chain.append(one)
    for guard in chain:
        if _tells_epoch(new) and _asks_rank(model, module, tree, guard):
            continue  # what all ranks have to be told is told no more to one alone
        if isinstance(guard, (ast.If, ast.Try, ast.Match, ast.ExceptHandler, ast.While)):
            others = [one for one in getattr(guard, "body", []) if one is not old]
            test = getattr(guard, "test", None)
            if others or not (isinstance(test, ast.expr) and _keeps_guard(changed, test, new)):
                return f"it runs only under a condition in line {guard.lineno}"
        if isinstance(guard, (*FUNCTIONS, ast.ClassDef)):
            return "it is moved out of its function"
    for node in ast.walk(new) if _tells_epoch(new) else ():
        is_call = isinstance(node, ast.Call) and getattr(node.func, "attr", "") != "set_epoch"
        if isinstance(node, ast.NamedExpr) or (is_call and not is_builtin(path(node.func) or "")):  # type: ignore[attr-defined]
            return f"`{ast.unparse(node)}` does more than tell a value"
    inside = _place_in_old(changed, new)
    first, last = sorted((inside, tree.spans[old][0]))
    reads = {
        where
        for node in ast.walk(new)
        if isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Load)
        and (where := path(node)) is not None
    }
    scope = scopes_of(tree).scope(old)
    is_later = tree.spans[old][0] == first
    iterated = {where for loop in around for where, _ in _gone_through(tree, loop) if where}
    for node, span in tree.spans.items():
        if not first <= span[0] < last or node is old:
            continue
        if is_later and _tells_epoch(new) and _may_pass(tree, node, iterated):
            return f"line {getattr(node, 'lineno', 0)} may read samples before it"
        if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            if _counts(tree, node, around):
                continue  # the loop it is moved into gives it the value
            where = path(node)
            if where in reads and scopes_of(tree).scope(node) is scope:
                return f"`{where}` is assigned in line {node.lineno}, between its places"
        if _looks_at(tree, node, new):
            return f"line {getattr(node, 'lineno', 0)}, between its places, reads what it sets"
        if isinstance(node, ast.Call) and (name := _replaces(tree, node, reads)):
            return f"line {node.lineno}, between its places, may replace `{name}`"
        is_end = isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue))
        if isinstance(node, ast.stmt) and is_end and scopes_of(tree).scope(node) is scope:
            return f"line {node.lineno} may leave before it"
    return None


def _looks_at(tree: Tree, node: ast.AST, moved_one: ast.stmt) -> bool:
    """Whether a node reads the epoch of what a moved call sets it of, or goes through it."""
    receivers = {
        where
        for one in ast.walk(moved_one)
        if isinstance(one, ast.Attribute) and one.attr == "set_epoch"
        if (where := path(one.value)) is not None
    }
    if path(node) not in receivers:
        return False
    parent = tree.parents[node]
    if isinstance(parent, ast.Call) and node in parent.args:
        return not isinstance(parent.func, ast.Name) or parent.func.id not in LOOKS.called
    return isinstance(parent, ast.Attribute) and parent.attr == "epoch"


def _may_pass(tree: Tree, node: ast.AST, iterated: set[str]) -> bool:
    """Whether samples may be read where a node stands: of any object, or of what is iterated.

    Then a loop, a comprehension or a call like ``list`` goes through it, a function is handed what
    the loop goes through, or the object that holds that does something.
    """
    where, parent = path(node), tree.parents.get(node)
    if where is None:
        return False
    if isinstance(parent, ast.Call) and node is parent.func:
        owner = where.rpartition(".")[0]
        return bool(owner) and owner in {one.rpartition(".")[0] for one in iterated}
    if isinstance(parent, ast.Call):
        return (path(parent.func) or "") in ITERATES.called or (
            where in iterated and (path(parent.func) or "") not in LOOKS.called
        )
    return getattr(parent, "iter", None) is node


def _counts(tree: Tree, target: ast.AST, loops: Container[ast.AST | None]) -> bool:
    """Whether a name is the variable of one of the loops."""
    child = target
    for parent in tree.around(target):
        if isinstance(parent, (ast.For, ast.AsyncFor)):
            return parent.target is child and parent in loops
        if not isinstance(parent, (ast.Tuple, ast.List)):
            return False
        child = parent
    return False


def _keeps_guard(changed: Changed, test: ast.expr, new: ast.stmt) -> bool:
    """Whether the new place stands under the same condition."""
    dump = ast.dump(test)
    return any(
        isinstance(one, ast.If) and ast.dump(one.test) == dump
        for one in (new, *changed.new.around(new))
    )


def _place_in_old(changed: Changed, new: ast.stmt) -> int:
    """The offset in the old text at which the statement was put in."""
    start = changed.new.spans[new][0]
    for edit, (low, high) in zip(changed.edits, changed.written, strict=True):
        if low <= start <= high:
            return edit.start
    return 0


def _replaces(tree: Tree, call: ast.Call, reads: set[str]) -> str | None:
    """An attribute of the object that the called method of the same class stores."""
    where = path(call.func)
    if where is None or where.count(".") > 1:
        return None
    owner, _, name = where.rpartition(".")
    if not owner:
        return _rebinds(tree, name, reads)
    cls = next((one for one in tree.around(call) if isinstance(one, ast.ClassDef)), None)
    for method in cls.body if cls is not None else ():
        if isinstance(method, FUNCTIONS) and method.name == name:
            for node in ast.walk(method):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    stored = path(node) or ""
                    if stored in reads and stored.startswith(f"{owner}."):
                        return stored
    return None


def _rebinds(tree: Tree, function: str, reads: set[str]) -> str | None:
    """A variable that the called function of the file binds for others."""
    for node in tree.nodes:
        if isinstance(node, (ast.Global, ast.Nonlocal)) and not reads.isdisjoint(node.names):
            holder = next((one for one in tree.around(node) if isinstance(one, FUNCTIONS)), None)
            if holder is not None and holder.name == function:
                return next(name for name in node.names if name in reads)
    return None


def _inside(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Every node of a block, those of functions defined in it left out."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            stack.extend(ast.iter_child_nodes(node))
