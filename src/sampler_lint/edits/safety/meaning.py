"""What the fixed text means: the same as before around the edits, and something within them."""

from __future__ import annotations

import ast
import functools
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from sampler_lint.domain.concepts import NAMESPACES
from sampler_lint.domain.model import Model
from sampler_lint.edits.safety.names import Assigned, Scopes, bindings, is_builtin, path
from sampler_lint.edits.safety.texts import FUNCTIONS, LOOPS, Changed, Tree, window
from sampler_lint.findings import Edit, Refuted
from sampler_lint.limits import LONGEST_QUOTED, MOST_LOOKS
from sampler_lint.remembered import remembered
from sampler_lint.syntax.nodes import Scope
from sampler_lint.workspace.project import Module


def scopes_of(tree: Tree) -> Scopes:
    """The scopes of a tree, worked out once."""
    if tree.scopes is None:
        tree.scopes = Scopes(tree)
    assert isinstance(tree.scopes, Scopes)
    return tree.scopes


def assigned(changed: Changed, scope: ast.AST) -> Assigned:
    """What is assigned where in a scope of the fixed text, worked out once."""
    known: dict[ast.AST, Assigned] = changed.assigned
    if scope not in known:
        known[scope] = Assigned(scope, changed.before if scope is changed.new.root else ())
    return known[scope]


class TooLongError(Exception):
    """More would have to be looked at than :data:`.limits.MOST_LOOKS` allows."""


class Original:
    """A file before its fixes, and how much of it may still be looked at for them, in nodes.

    Fixes are each looked at in their own statements where that is enough. Where it is not, or where
    those are most of the file (a table of hundreds of loaders), the work would grow with its
    square.

    Raises:
        SyntaxError: Python does not read the text.
    """

    def __init__(self, text: str) -> None:
        self.tree = Tree(text)
        self.assigned = functools.cache(lambda: Assigned(self.tree.root))
        self.part = functools.cache(lambda start, end: Tree(self.tree.text, part=(start, end)))
        self._starts = [self.tree.spans[one][0] for one in self.tree.root.body]
        self._left = MOST_LOOKS * len(self.tree.nodes)

    def statements_from(self, start: int) -> int:
        """How many statements of the module begin at an offset or after it."""
        return len(self._starts) - bisect_left(self._starts, start)

    def take(self, nodes: int) -> None:
        """Count what is looked at.

        Raises:
            TooLongError: it is more than is left.
        """
        self._left -= nodes
        if self._left < 0:
            raise TooLongError


@remembered
def original(model: Model, module: Module) -> Original:
    """A file as the model has read it, parsed once."""
    return Original(module.source.text)


def changed_by(file: Original, edits: Sequence[Edit]) -> Changed:
    """A file before and after some edits; only the statements that they touch, if that is enough.

    Raises:
        SyntaxError: Python does not read the fixed text.
        ValueError: the edits overlap.
        TooLongError: too much of the file has been looked at.
    """
    whole = file.tree
    part = window(whole, edits)
    if part is not None:
        file.take(file.statements_from(part[0]))
        changed = Changed(whole, edits, file.part(*part))
        file.take(len(changed.old.nodes))
        if _stands_alone(changed, file, part[0]):
            return changed
    file.take(len(whole.nodes))
    return Changed(whole, edits)


def _stands_alone(changed: Changed, file: Original, start: int) -> bool:
    """Whether the rest of the file has no say in what the edits come to.

    It has none where no statement goes and no variable comes or goes, and where what the written
    code reads of the module has been assigned before the part looked at begins, once.
    """
    old, new = scopes_of(changed.old), scopes_of(changed.new)
    if (
        any(True for _ in changed.removed)
        or old.variables != new.variables
        or any(
            isinstance(one, (ast.Assign, ast.AnnAssign)) and old.scope(one) is changed.old.root
            for one in changed.old.root.body
        )
    ):
        return False
    whole = file.tree
    scopes = scopes_of(whole)
    names = scopes.bound[whole.root]
    first = next(stmt for stmt in whole.root.body if whole.spans[stmt][0] >= start)
    before = file.assigned().at.get(first)
    if before is None:
        return False
    for one in (old, new):
        one.bound[one.tree.root] |= names
    changed.before = before
    return all(
        _is_settled(changed, name, before, scopes)
        for name in scopes_of(changed.new).names
        if name not in changed.back and isinstance(name.ctx, ast.Load)
    )


def _is_settled(changed: Changed, name: ast.Name, before: frozenset[str], whole: Scopes) -> bool:
    """Whether what a name means where it is read is told by the part looked at."""
    tree, scopes = changed.new, scopes_of(changed.new)
    if scopes.binder(name.id, scopes.scope(name)) is not tree.root:
        return True
    counted = any(
        isinstance(loop, (ast.For, ast.AsyncFor))
        and any(isinstance(n, ast.Name) and n.id == name.id for n in ast.walk(loop.target))
        for loop in tree.around(name)
    )
    if counted and not isinstance(tree.parents[name], ast.Attribute):
        return True
    return name.id in before and whole.times_bound[name.id] <= 1


def restructured(changed: Changed) -> str | None:
    """An expression or statement outside the edits that is read in another way afterwards."""
    other = changed.lost or changed.appeared
    return f"`{_shown(other)}` would be read in another way" if other is not None else None


def rebound(changed: Changed) -> str | None:
    """A name outside the edits that means another variable afterwards, or another value."""
    old, new = scopes_of(changed.old), scopes_of(changed.new)
    stored = [
        n
        for n in new.names
        if isinstance(n.ctx, ast.Store) and n in changed.new.spans
        if changed.is_written(n) or _gets_another(changed, n)
    ]
    lost = [n for n in old.names if not isinstance(n.ctx, ast.Load) and n not in changed.same]
    if lost and old.variables != new.variables:
        for node in changed.old.nodes:
            if isinstance(node, ast.Call) and path(node.func) in NAMESPACES.called:
                return f"line {node.lineno} may read `{lost[0].id}` without its name"
    for name in old.names:
        if not isinstance(name.ctx, ast.Load) or name not in changed.same:
            continue
        now = changed.same[name]
        assert isinstance(now, ast.Name)
        was = old.binder(name.id, old.scope(name))
        means = new.binder(now.id, new.scope(now))
        if (changed.same.get(was) if was is not None else None) is not means:
            return f"`{name.id}` would mean something else in line {name.lineno}"
        is_gone = any(
            n.id == name.id
            and old.binder(n.id, old.scope(n)) is was
            and _can_reach(changed.old, old, n, name)
            for n in lost
        )
        is_put = any(
            n.id == now.id
            and new.binder(n.id, new.scope(n)) is means
            and _can_reach(changed.new, new, n, now)
            for n in stored
        )
        if is_gone and not is_put:
            return f"`{name.id}` is still read in line {name.lineno}"
        if is_put and not is_gone:
            return f"`{name.id}` has another value in line {name.lineno}"
    return None


def _gets_another(changed: Changed, name: ast.Name) -> bool:
    """Whether the fix alters what a name is given inside of an expression."""
    walrus = changed.new.parents.get(name)
    return isinstance(walrus, ast.NamedExpr) and changed.is_altered(walrus.value)


def _can_reach(tree: Tree, scopes: Scopes, store: ast.Name, read: ast.Name) -> bool:
    """Whether what a store puts into a variable may be what a place reads."""
    if scopes.scope(store) is not scopes.scope(read):
        return True
    stmt = tree.statement(store)
    if stmt is None or isinstance(tree.parents.get(store), ast.NamedExpr):
        return True
    begin = tree.spans[store if hasattr(stmt, "body") else stmt][1]
    if tree.spans.get(read, (begin, begin))[0] >= begin:
        return True
    inside = set(tree.around(read))
    return any(isinstance(loop, LOOPS) and loop in inside for loop in tree.around(store))


def reads(changed: Changed) -> str | None:
    """A name, or an attribute of the object itself, that may not be there where it is read."""
    scopes = scopes_of(changed.new)
    before = functools.cache(functools.partial(_read_before, changed))
    for name in scopes.names:
        # Where an f-string is edited, the places in it are not known: all of it may be new.
        is_new = changed.is_written(name) if name in changed.new.spans else name not in changed.back
        if is_new and isinstance(name.ctx, ast.Load):
            reason = _unassigned(changed, scopes, name, before)
            if reason:
                return reason
    return None


def _unassigned(
    changed: Changed,
    scopes: Scopes,
    node: ast.Name,
    read_before: Callable[[ast.stmt | None], set[str]],
) -> str | None:
    here = scopes.scope(node)
    owner = scopes.binder(node.id, here)
    before = read_before(changed.new.statement(node))
    called = changed.new.parents[node]
    is_called = isinstance(called, ast.Call) and called.func is node
    if is_called and owner is not None and is_builtin(node.id):
        return f"`{node.id}` is not Python's own in the file"
    if node.id in before:
        return None
    if owner is None:
        # What no scope of the file binds comes from a star import, or is a builtin.
        return None if is_builtin(node.id) else f"`{node.id}` is not assigned in the file"
    if owner is not here and isinstance(owner, (*FUNCTIONS, ast.Lambda)):
        place: ast.AST | None = _inner(scopes, here, owner)
    elif owner is here:
        place = node
    else:
        place = None
    if isinstance(owner, ast.expr) and not changed.is_written(owner):
        # A parameter of a lambda, the variable of a comprehension: the fix means another.
        return f"`{node.id}` is another in line {node.lineno}"
    if isinstance(here, ast.expr) and owner is here:
        return None
    ways = assigned(changed, owner)
    if place is None:  # the module's own variable, read in a function
        if _before(changed, here, node):
            return None
        if node.id not in (ways.end or ()):
            return f"`{node.id}` may not be assigned"
        early = _runs_before(changed.new, ways, here, node.id)
        why = f"`{node.id}` is not assigned yet in line {early.lineno}" if early else ""
        return Refuted(why) if why else None
    stmt = changed.new.statement(place)
    if stmt is None or stmt not in ways.at:
        return f"whether `{node.id}` is assigned is not known"
    if node.id in (ways.at[stmt] or ()) or node.id in _next_reads(changed, stmt):
        return None
    return f"`{node.id}` may not be assigned in line {node.lineno}"


def _runs_before(tree: Tree, ways: Assigned, here: ast.AST, name: str) -> ast.stmt | None:
    """What the module does, before it assigns ``name``, that may run a function of it."""
    around = [here, *tree.around(here)]
    top = around[-2] if len(around) > 1 else here
    leads_there: set[str] = set(bindings(top))
    passed = False
    for stmt, state in ways.at.items():
        if stmt is top:
            passed = True
        if (
            not passed
            or stmt is top
            or stmt in around
            or scopes_of(tree).scope(stmt) is not tree.root
        ):
            continue
        if state is None or name in state:
            continue
        defines = isinstance(stmt, (*FUNCTIONS, ast.ClassDef))
        parts = list(ast.walk(stmt) if defines else always(stmt))
        if leads_there & {n.id for n in parts if isinstance(n, ast.Name)}:
            if not defines and any(isinstance(n, ast.Call) for n in parts):
                return stmt if isinstance(stmt, ast.stmt) else None
            leads_there |= {bound for n in parts for bound in bindings(n)}
    return None


def _before(changed: Changed, here: ast.AST, node: ast.Name) -> bool:
    """Whether the function itself has read the name before."""
    tree = changed.new
    while isinstance(here, ast.expr):
        here = next(one for one in tree.around(here) if isinstance(one, (ast.stmt, ast.Module)))
    if not isinstance(here, FUNCTIONS):
        return False
    stmt = tree.statement(node)
    ways = assigned(changed, here)
    return stmt in ways.at and node.id in (ways.at[stmt] or ())


def _inner(scopes: Scopes, here: ast.AST, owner: ast.AST) -> ast.AST:
    """What stands in ``owner`` and holds the scope ``here``: there the closure is made."""
    while scopes.scope(here) is not owner:
        here = scopes.scope(here)
    return here


def _read_before(changed: Changed, stmt: ast.stmt | None) -> set[str]:
    """What a statement read in any case before an edit changed a part of it."""
    old = changed.back.get(stmt) if stmt is not None else None
    if old is None:
        return set()
    return {n.id for n in always(old) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _next_reads(changed: Changed, stmt: ast.stmt) -> set[str]:
    """What the program reads right after a written statement, or as part of it, in any case."""
    tree = changed.new
    found: set[str] = set()
    if not changed.is_written(stmt):
        return found
    block = tree.block(stmt)
    for following in block[block.index(stmt) + 1 :]:
        if changed.is_written(following):
            continue  # what is written cannot vouch for itself
        found |= {
            n.id
            for n in always(following)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
        }
        if isinstance(following, (ast.stmt,)) and hasattr(following, "body"):
            break
        if isinstance(following, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
            break
    return found


def always(stmt: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement that are evaluated whatever happens."""
    stack: list[ast.AST] = [stmt]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (ast.Lambda, ast.BoolOp, ast.IfExp)):
            if isinstance(node, ast.BoolOp):
                stack.append(node.values[0])
            if isinstance(node, ast.IfExp):
                stack.append(node.test)
            continue
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            stack.append(node.generators[0].iter)
            continue
        blocks = (ast.stmt, ast.ExceptHandler, ast.match_case)
        stack += [one for one in ast.iter_child_nodes(node) if not isinstance(one, blocks)]


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node).partition("\n")[0]
    return text if len(text) <= LONGEST_QUOTED else text[: LONGEST_QUOTED - 3] + "..."


__all__ = ["always", "changed_by", "original", "reads", "rebound", "restructured", "scopes_of"]


def scope_at(module: Module, node: ast.AST | None) -> Scope | None:
    """The model's scope for a module, function or class of the file as it is."""
    if isinstance(node, ast.Module):
        return module.facts
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        place = node.name, node.lineno, node.col_offset
        known: dict[tuple[str, int, int], Scope] = module.facts.memo.setdefault(scope_at, {})
        if not known:
            known.update(((s.name, s.row, s.col), s) for s in reversed([*module.facts.scopes]))
        return known.get(place)
    return None
