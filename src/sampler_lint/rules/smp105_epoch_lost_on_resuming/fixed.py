"""Fixes of what a resumed run counts anew."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from sampler_lint.analysis.origins import LOCAL, depends_on, origins
from sampler_lint.domain.concepts import EPOCH, RANGES
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.options import looked_up
from sampler_lint.domain.resuming import is_loaded
from sampler_lint.edits.editor import Editor, Fixer
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix
from sampler_lint.syntax.navigation import nodes_in, self_class, self_stores, statements, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Bin,
    Call,
    Compare,
    Const,
    Expr,
    For,
    Function,
    Map,
    Name,
    Return,
    Scope,
    Stmt,
    Store,
    dotted,
)


def begin_there(model: Model, loop: For, first: int) -> Fixer | None:
    """The fix that begins a loop at the number that the program takes out of its checkpoint.

    None where no variable at hand keeps it that is ``first``, as the loop begins, in a new run,
    and where the turns reckon with it already.
    """
    [count] = [node for node in walk(loop.iter) if isinstance(node, Call) and RANGES.is_call(node)]
    kept = [
        *_kept_in_names(model, loop, first),
        *_kept_in_attributes(model, loop.scope, first),
    ]
    reckons = [n for n in nodes_in(statements(loop.body)) if isinstance(n, (Bin, Compare))]
    if len(kept) != 1 or any(_reads(walk(each), kept[0]) for each in reckons):
        return None
    begin, *more = count.positional
    is_rest = isinstance(begin, Bin) and begin.op == "Sub" and dotted(begin.right) == kept[0]
    if not more and not is_rest:
        steps = (step.expr for step in origins(model.flow, begin, LOCAL))
        if _reads((node for expr in steps for node in walk(expr)), kept[0]):
            return None
    return partial(_begin_at, count, kept[0])


def _reads(nodes: Iterable[Expr], name: str) -> bool:
    return any(isinstance(node, (Name, Attr)) and dotted(node) == name for node in nodes)


def _begin_at(count: Call, start: str, editor: Editor) -> Fix | None:
    begin, *more = count.positional
    there = editor.at(editor.module)
    if more:
        there.replace(begin, start)
    elif isinstance(begin, Bin) and dotted(begin.right) == start:
        # `range(epochs - start)` has the right number of turns already.
        there.replace(begin, f"{start}, {text_of(editor.source, begin.left)}")
    else:
        there.wrap(begin, f"{start}, ")
    why = f"only you know whether `{start}` is the next epoch, or the last one that was trained"
    return editor.fix(f"Begin the loop at `{start}`", Applicability.UNSAFE, why)


def _kept_in_names(model: Model, loop: For, first: int) -> list[str]:
    """The names of a loop's function that are ``first``, or what a checkpoint gives."""
    return [
        name
        for name, bindings in loop.scope.bindings.items()
        if EPOCH.says(name)
        and any(
            _is_number(each.value, first) and each.stmt is not None and _precedes(each.stmt, loop)
            for each in bindings
        )
        and _may_come_from_checkpoint(model, [(each.how, each.value) for each in bindings], first)
    ]


def _precedes(stmt: Stmt, loop: For) -> bool:
    """Whether a statement stands on every way to a loop."""
    around = (loop, *loop.ancestors())
    return stmt.order < loop.order and any(stmt.block is outer.block for outer in around)


def _kept_in_attributes(model: Model, scope: Scope, first: int) -> list[str]:
    """The attributes of the object that a method is called of, by the same measure."""
    cls = scope.cls if isinstance(scope, Function) else None
    if cls is None or not isinstance(scope, Function) or scope.self_name is None:
        return []
    init = cls.method("__init__")
    stores: dict[str, list[Store]] = {}
    for target, store in self_stores(scopes_inside(cls), cls):
        stores.setdefault(target.name, []).append(store)
    return [
        f"{scope.self_name}.{name}"
        for name, found in stores.items()
        if EPOCH.says(name)
        and any(s.scope is init and _is_number(s.value, first) for s in found)
        and _may_come_from_checkpoint(model, [(s.how, s.value) for s in found], first)
    ]


def _may_come_from_checkpoint(
    model: Model, set_by: list[tuple[str, Expr | None]], first: int
) -> bool:
    """Whether a checkpoint gives one of the values that a variable is set to."""
    return any(
        how == "assign"
        and value is not None
        and not _is_number(value, first)
        and depends_on(model.flow, value, partial(_is_epoch_of_checkpoint, model)) is not None
        for how, value in set_by
    )


def _is_epoch_of_checkpoint(model: Model, expr: Expr) -> bool:
    owner, key = looked_up(expr) or (None, None)
    return (
        owner is not None
        and isinstance(key, str)
        and EPOCH.says(key)
        and depends_on(model.flow, owner, partial(is_loaded, model)) is not None
    )


def _is_number(value: Expr | None, number: int) -> bool:
    return isinstance(value, Const) and type(value.value) is int and value.value == number


def count_on(given: Bin, editor: Editor) -> Fix | None:
    """Give ``set_epoch`` the loop's counter, which goes on, in the place of the turn's number."""
    epoch = text_of(editor.source, given.left)
    why = "the epochs of this run alone may be meant"
    editor.replace(given, epoch)
    return editor.fix(f"Pass `{epoch}`", Applicability.UNSAFE, why)


def make_generator(iterate: Function, editor: Editor) -> Fix | None:
    """Let an ``__iter__`` do nothing before the first item is asked for."""
    last = iterate.body[-1] if iterate.body else None
    if not isinstance(last, Return) or len(iterate.returns) != 1 or last.value is None:
        return None
    value = last.value
    if self_class(value) is not None:
        return None  # it would go over itself
    is_iter = isinstance(value, Call) and dotted(value.func) == "iter" and len(value.args) == 1
    items = value.args[0].value if isinstance(value, Call) and is_iter else value
    editor.replace(last, f"yield from {text_of(editor.source, items)}")
    why = "errors of its first lines come with the first item then"
    return editor.fix("Make `__iter__` a generator", Applicability.UNSAFE, why)


def keep_in_state(gives: Function, restores: Function, name: str, editor: Editor) -> Fix | None:
    """Put an attribute into a state, and take it out again; an older state goes without it."""
    state = gives.returns[0].value if len(gives.returns) == 1 else None
    given = [param for param in restores.params[1:] if not param.is_star]
    if not isinstance(state, Map) or len(given) != 1:
        return None
    key = name.lstrip("_")
    if any(old is None or _says(old, key) for old, _ in state.items):
        return None
    editor.add_entry(state, f'"{key}"', f"{gives.self_name}.{name}")
    kept = f"{restores.self_name}.{name}"
    editor.append(restores, f'{kept} = {given[0].name}.get("{key}", {kept})')
    why = "who reads the state may expect what it holds now"
    return editor.fix(f"Keep `{name}` in the state", Applicability.UNSAFE, why)


def _says(key: Expr, text: str) -> bool:
    return isinstance(key, Const) and key.value == text
