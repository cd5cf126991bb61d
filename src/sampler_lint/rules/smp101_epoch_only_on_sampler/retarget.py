"""Fixes: the call, its guards and its local name point at the batch sampler."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.concepts import ASKS_BY_NAME, ASKS_KIND
from sampler_lint.domain.epoch_calls import guards
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import (
    fresh_name,
    future_annotations,
    imported_as,
    reads_within,
    text_of,
)
from sampler_lint.findings import Applicability, Fix
from sampler_lint.rules.smp101_epoch_only_on_sampler.parts import Origin
from sampler_lint.syntax.navigation import leaves, nodes_in, same, statements, walk
from sampler_lint.syntax.nodes import Assign, Attr, Call, Expr, If, Name, Stmt, last_name
from sampler_lint.workspace.project import Module


def _guard(call: Call, receiver: Expr) -> tuple[If, Call] | None:
    """The ``if`` around the call that asks what ``X.sampler`` is, and the asking call in it."""
    asked = [receiver]
    if isinstance(call.func, Attr):
        asked.append(call.func.value)
    for stmt in guards(call):
        for node in walk(stmt.test):
            if (
                isinstance(node, Call)
                and (ASKS_KIND.is_call(node) or ASKS_BY_NAME.is_call(node))
                and node.positional
                and any(same(node.positional[0], expr) for expr in asked)
            ):
                return stmt, node
    return None


def is_guarded(call: Call, origin: Origin) -> bool:
    """Whether the code asks first what the sampler is, so that a wrong answer is silent."""
    return origin.by_default or _guard(call, origin.node) is not None


def retarget(
    call: Call, receiver: Expr, loader: Expr, attributes: str, editor: Editor
) -> Fix | None:
    """Point the call, its guards and its local name at the batch sampler."""
    owner: Stmt | None = call.stmt
    for stmt in guards(call):
        owner = stmt
    if owner is None:
        return None
    place = receiver.stmt if isinstance(receiver, (Attr, Call)) else None
    if place is None:
        return None
    spelled = f"{text_of(editor.source, loader)}.{attributes}"
    for each in (owner, *_leaving_before(owner)):
        for read in reads_within(call.scope, each, loader, "sampler"):
            editor.replace(read, spelled)
    if not owner.encloses(place) or isinstance(receiver, Call):
        editor.replace(receiver, spelled)
    return editor.fix(f"Call `set_epoch` on `{spelled}`", Applicability.SAFE)


def _leaving_before(owner: Stmt) -> Iterator[If]:
    """The tests above a statement, in its block, that leave before it comes to it."""
    for stmt in owner.block[: owner.block.index(owner)]:
        if isinstance(stmt, If) and not stmt.orelse and leaves(stmt.body[-1]):
            yield stmt


#: What speaks against a helper.
_OTHERS = "other loaders than those seen may come here"


def use_helper(call: Call, receiver: Expr, loader: Expr, editor: Editor) -> Fix | None:
    """Ask a helper for the sampler of any loader, where the guard asks about ``.sampler``.

    Also where nothing asks: a loader without such a sampler raises as it did before.
    """
    is_told_at_once = isinstance(call.func, Attr) and call.func.value is receiver
    found = _guard(call, receiver)
    if _is_only_told(call, receiver) or (is_told_at_once and found is None):
        name = _helper(editor, "")
        editor.replace(receiver, f"{name}({text_of(editor.source, loader)})")
        return editor.fix(f"Find the sampler with `{name}`", Applicability.UNSAFE, _OTHERS)
    if found is None or not isinstance(receiver, Attr) or not isinstance(call.func, Attr):
        return None  # what was got by its name stays the method of the sampler that was asked
    stmt, asking = found
    if last_name(asking.func) == "getattr" or not same(asking.positional[0], receiver):
        return None
    source = editor.source
    by_class = last_name(asking.func) == "isinstance"
    if by_class and len(asking.positional) != 2:
        return None
    kind = text_of(source, asking.positional[1]) if by_class else ""
    if by_class and _is_any_as_good(call, stmt, receiver, kind):
        kind = ""
    name = _helper(editor, kind)
    local, line = _alias(stmt, receiver) or (None, None)
    if line is not None:
        editor.delete(line)
    local = local or fresh_name(call.scope, "sampler", "epoch_sampler")
    editor.replace(asking, f"({local} := {name}({text_of(source, loader)})) is not None")
    asked = set(walk(asking))
    for read in reads_within(call.scope, stmt, receiver.value, "sampler"):
        if read not in asked and read.stmt is not line:
            editor.replace(read, local)
    return editor.fix(f"Find the sampler with `{name}`", Applicability.UNSAFE, _OTHERS)


def _helper(editor: Editor, kind: str) -> str:
    """The name of the helper, which the file gets if it has none."""
    name = "_get_distributed_sampler" if kind else "_get_epoch_sampler"
    if name not in editor.module.facts.bindings:
        editor.define(*_helper_lines(editor.module, name, kind))
    return name


def _is_only_told(call: Call, receiver: Expr) -> bool:
    """Whether a variable holds what ``getattr(loader, "sampler", None)`` gives for this call alone.

    It is only asked besides, whether it is None or has a ``set_epoch``.
    """
    stmt = receiver.stmt if isinstance(receiver, Call) else None
    target = stmt.targets[0] if isinstance(stmt, Assign) and stmt.value is receiver else None
    if not isinstance(target, Name) or not isinstance(call.func, Attr):
        return False
    bound = call.scope.bindings.get(target.id, ())
    asked = {node for guard in guards(call) for node in walk(guard.test)}
    return len(bound) == 1 and all(
        node in asked or node is call.func.value
        for node in nodes_in(statements(call.scope.body))
        if isinstance(node, Name) and node.id == target.id and node is not target
    )


def _is_any_as_good(call: Call, guard: If, receiver: Attr, kind: str) -> bool:
    """Whether the guard may ask for ``set_epoch`` itself, as nothing else of the class is used.

    A sampler of one's own need not derive from torch's. An imported class stays: its import
    would be left without a use.
    """
    alias = _alias(guard, receiver)
    uses = {
        read.name
        for read in call.scope.reads
        if read.stmt is not None
        and guard.encloses(read.stmt)
        and (
            same(read.value, receiver)
            or (alias is not None and isinstance(read.value, Name) and read.value.id == alias[0])
        )
    }
    return "." in kind and uses == {"set_epoch"}


def _alias(guard: If, receiver: Attr) -> tuple[str, Assign] | None:
    """``name = X.sampler`` right below the guard: the name can be set in the guard instead."""
    stmt = receiver.stmt
    if isinstance(stmt, Assign) and stmt.value is receiver and stmt.block is guard.body:
        target = stmt.targets[0]
        others = [s for s in guard.body if s is not stmt and s.row <= stmt.row <= s.end_row]
        if len(stmt.targets) == 1 and isinstance(target, Name) and not others:
            return target.id, stmt
    return None


def _helper_lines(module: Module, name: str, kind: str) -> list[str]:
    loader_class = imported_as(module, "DataLoader")
    parameter = f"dataloader: {loader_class}" if loader_class else "dataloader"
    returns = ""
    optional = imported_as(module, "Optional")
    if kind.isidentifier() and loader_class:
        if optional:
            returns = f" -> {optional}[{kind}]"
        elif future_annotations(module):
            returns = f" -> {kind} | None"
    indent, quote = module.source.indent, module.source.quote
    inner = f"getattr(batch_sampler, {quote}sampler{quote}, None)"
    test = f"isinstance(sampler, {kind})" if kind else f"hasattr(sampler, {quote}set_epoch{quote})"
    return [
        f"def {name}({parameter}){returns}:",
        f'{indent}"""The sampler of `dataloader` that carries the epoch, if it has one."""',
        f"{indent}batch_sampler = dataloader.batch_sampler",
        f"{indent}for sampler in (batch_sampler, {inner}, dataloader.sampler):",
        f"{indent * 2}if {test}:",
        f"{indent * 3}return sampler",
        f"{indent}return None",
    ]
