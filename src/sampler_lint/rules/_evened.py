"""A fix of shares that differ in length: cut or pad what the ranks share out."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.origins import LOCAL, depends_on
from sampler_lint.analysis.reaching import definitions, surely_runs_before
from sampler_lint.domain.concepts import RANK
from sampler_lint.domain.model import Model
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix
from sampler_lint.parameters import Role, role_of
from sampler_lint.rules._trials import defined_by
from sampler_lint.syntax.navigation import nodes_in, statements, walk
from sampler_lint.syntax.nodes import Attr, Call, Class, Expr, Function, Index, Name, Stmt
from sampler_lint.workspace.project import Module


def even_out(model: Model, cls: Class, *, often: bool, editor: Editor) -> Fix | None:
    """Cut or pad the list that the ranks share out, as ``__len__`` says.

    What is right is found in the simulation: with it, all ranks yield as much as they say. Where
    each says a number of its own, ``__len__`` is to say the common one. ``often``: the samples may
    be so few that each has to be repeated several times.
    """
    shared = _list_shared(model, cls)
    worlds = sorted(
        name
        for name in model.attributes(cls).names
        if role_of(name) is Role.WORLD_SIZE and "local" not in name.lower()
    )
    if shared is None or not worlds:
        return None
    name, stmt = shared
    method = stmt.scope
    if not isinstance(method, Function) or method.self_name is None:
        return None
    size = f"{method.self_name}.{worlds[0]}"
    cut = f"{name} = {name}[: len({name}) // {size} * {size}]"
    first = f"({name} * {size})" if often else name
    pad = f"{name} = {name} + {first}[: -len({name}) % {size}]"
    says = _own_length(model, cls)
    returned = says.returns[0].value if says is not None else None
    lengths: list[tuple[str, str]] = []
    if says is not None and returned is not None:
        lengths = [*_lengths(model.module_of(says), returned, f"{says.self_name}.{worlds[0]}")]
    found = model.evened_out(
        cls,
        stmt,
        [(cut, None), (pad, None), *((cut, down) for down, _ in lengths)]
        + [(pad, up) for _, up in lengths],
        returned,
    )
    if found is None:
        return None
    code, length = found
    editor.at(model.module_of(method)).insert_after(stmt, code)
    if length is not None and says is not None and returned is not None:
        editor.at(model.module_of(says)).replace(returned, length)
    what = "Drop what is left over" if code == cut else "Repeat the first samples"
    why = "some samples are left out" if code == cut else "some samples are read twice"
    title = f"{what}, so that all ranks have as many samples"
    return editor.fix(title, Applicability.UNSAFE, why)


def _own_length(model: Model, cls: Class) -> Function | None:
    """The ``__len__`` of the class itself, if it returns one expression."""
    length = defined_by(model, cls, "__len__")
    is_one = length is not None and length.outer is cls and len(length.returns) == 1
    return length if is_one else None


def _lengths(module: Module, returned: Expr, size: str) -> Iterator[tuple[str, str]]:
    """Shares of each count that the expression mentions, rounded down and up."""
    counts = [node for node in walk(returned) if isinstance(node, (Attr, Call))]
    for text in dict.fromkeys(
        text_of(module.source, node) for node in counts if node is not returned
    ):
        if text != size:
            yield f"{text} // {size}", f"-(-{text} // {size})"


def _list_shared(model: Model, cls: Class) -> tuple[str, Stmt] | None:
    """The variable that a rank takes a slice of, and the statement that last sets it before."""
    iterate = defined_by(model, cls, "__iter__")
    for node in nodes_in(statements(iterate.body)) if iterate is not None else ():
        if not isinstance(node, Index) or not isinstance(node.value, Name):
            continue
        taken, stmt = node.value, node.value.stmt
        by_rank = depends_on(model.flow, node.key, RANK.is_mentioned, LOCAL)
        set_by = definitions(taken.scope, taken) if by_rank is not None else []
        last = set_by[0].stmt if len(set_by) == 1 and set_by[0].how == "assign" else None
        if last is not None and stmt is not None and surely_runs_before(last, stmt):
            return taken.id, last
    return None
