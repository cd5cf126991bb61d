"""Who asks how long a loader is."""

from __future__ import annotations

from sampler_lint import catalog
from sampler_lint.analysis.origins import Hop, only
from sampler_lint.analysis.values import Ext, ExtObj, Obj, Pack, Unknown, Why
from sampler_lint.domain.concepts import LOGS, MEASURED, PROGRESS
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import passes_near
from sampler_lint.domain.programs import program_files
from sampler_lint.syntax.navigation import children, holds, nodes_in, statements
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Bin,
    Call,
    Class,
    Compare,
    Const,
    Expr,
    Function,
    Name,
    Text,
    last_name,
)


def is_asked_for(model: Model, cls: Class, *, is_refused: bool) -> bool | None:
    """Whether somebody asks how long it is: it is for others, or a framework gets its loader.

    Or the program itself asks the loader, the sampler, or something that is called so and not
    followed. It has to be for more than a text, which misleads a reader and nothing else, but
    where Python itself refuses the length. None where nobody is seen to, nor to go over a loader.
    """
    pairs = model.loaded.get(cls, ())
    if not pairs or any(loader.site is None or _is_hooked(model, loader) for _, loader in pairs):
        return True
    held = {each for pair in pairs for each in pair}
    files, own = program_files(model), model.module_of(cls)
    for module in model.project.modules_near(cls):
        for call in module.facts.all_calls if files.share_importer(own, module) else ():
            asks = last_name(call.func) == "len" and (is_refused or not _is_shown(call))
            for arg in call.args if asks or _is_of_framework(model, call) else ():
                values = model.flow.values(arg.value)
                known = [value for value in values if isinstance(value, Obj)]
                if any(value.may_be(each) for value in known for each in held):
                    return True
                is_seen = any(isinstance(value, (Obj, Pack)) for value in values)
                is_seen &= not any(isinstance(v, Unknown) and v.why is Why.LOST for v in values)
                if asks and not is_seen and MEASURED.names(arg.value):
                    return True
    sites = [loader.site for _, loader in pairs if loader.site is not None]
    near = (found for site in sites for found in passes_near(model, site.scope))
    is_gone_over = any(found.loader.may_be(each) for found in near for each in held)
    return False if is_gone_over else None


def is_held_to_number(model: Model, cls: Class) -> bool:
    """Whether the program compares its length, or that of its loader, with a number."""
    held = {each for pair in model.loaded.get(cls, ()) for each in pair}
    for module in model.project.modules_near(cls):
        for scope in module.facts.scopes:
            for node in nodes_in(statements(scope.body)):
                sides = children(node) if isinstance(node, Compare) else []
                if any(isinstance(each, Const) for each in sides):
                    made = (only(model.flow, each, Hop.ASSIGNED) for each in sides)
                    if any(_is_length(model, each, held) for each in made):
                        return True
    return False


def _is_length(model: Model, expr: Expr | None, held: set[Obj]) -> bool:
    if not isinstance(expr, Call) or last_name(expr.func) not in {"len", "__len__"}:
        return False
    asked = expr.func.value if isinstance(expr.func, Attr) else next(iter(expr.positional), expr)
    return not held.isdisjoint(model.flow.values(asked))


def _is_shown(asked: Call | Name) -> bool:
    """Whether a length goes into a text or a progress bar, and into nothing else.

    By itself, or by the variable that keeps it.
    """
    stmt = asked.stmt
    if stmt is None:
        return False
    if any(holds(shown, asked) for node in nodes_in([stmt]) for shown in _shown(node)):
        return True
    kept = stmt.targets[0] if isinstance(stmt, Assign) and isinstance(asked, Call) else None
    if not isinstance(kept, Name) or not isinstance(kept.scope, Function):
        return False
    reads = [
        node
        for scope in (kept.scope, *kept.scope.module.inside(kept.scope))
        for node in nodes_in(statements(scope.body))
        if isinstance(node, Name) and node.id == kept.id and node is not kept
    ]
    return bool(reads) and all(map(_is_shown, reads))


def _shown(node: Expr) -> list[Expr]:
    """The parts of which it makes a text, or that it shows to a reader."""
    if isinstance(node, Call) and PROGRESS.is_call(node):
        return [arg.value for arg in node.args if arg.keyword == "total"]
    if isinstance(node, Bin):
        is_text = node.op == "Mod" and isinstance(getattr(node.left, "value", None), str)
    elif isinstance(node, Call):
        is_text = last_name(node.func) == "format" or LOGS.is_call(node)
    else:
        is_text = isinstance(node, Text)
    return children(node) if is_text else []


def _is_hooked(model: Model, loader: Obj) -> bool:
    """Whether a method makes a loader that a framework which the program uses calls by name."""
    scope = loader.site.scope if loader.site is not None else None
    return isinstance(scope, Function) and any(
        scope.name in (table.train_hooks | table.evaluation_hooks)
        for table in map(catalog.framework, model.frameworks(model.module_of(scope)))
    )


def _is_of_framework(model: Model, call: Call) -> bool:
    return any(
        value.dotted.partition(".")[0] in catalog.FRAMEWORK_PACKAGES
        for value in model.flow.values(call.func)
        if isinstance(value, (Ext, ExtObj))
    )
