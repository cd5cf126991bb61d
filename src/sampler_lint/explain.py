"""What the model knows about one line: the tool's own debugger, and its users'."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from sampler_lint.analysis.values import AnyModule, Ext, ExtObj, FuncRef, Lit, Obj, Unknown, Value
from sampler_lint.asked import last_questions
from sampler_lint.domain.model import Model
from sampler_lint.engine import Session
from sampler_lint.findings import FileError, Finding
from sampler_lint.options import DEFAULTS, Options, OptionsOf
from sampler_lint.roots import root_for_question
from sampler_lint.rules import Rule
from sampler_lint.source import SourceError
from sampler_lint.syntax.navigation import nodes_in, statements, unparse
from sampler_lint.syntax.nodes import Attr, Call, Class, Expr, For, Name, Node, Scope, Stmt, While
from sampler_lint.workspace.project import Module


def explain(
    path: str,
    row: int,
    overlay: Mapping[str, bytes] | None = None,
    options: Options | OptionsOf = DEFAULTS,
    cell: int | None = None,
) -> list[str]:
    """Lines of text that say what is known at ``path:row`` and what each rule made of it.

    In a notebook, ``row`` is that of the ``cell`` with the given number.

    Raises:
        SourceError: the file cannot be read or parsed, or has no such line.
    """
    contents = {os.path.abspath(name): data for name, data in (overlay or {}).items()}
    root = os.path.abspath(root_for_question(path))
    absolute = os.path.abspath(path)
    options_of = options if callable(options) else lambda folder: options
    session = Session()
    tree = session.tree(root, options_of, contents, {absolute: path})
    module = tree.project.module_at(absolute)
    if module is None:
        errors = tree.project.problems({absolute: path})
        raise SourceError(errors[0] if errors else FileError(path, "no such file or directory"))
    shown = f"{path}:{row}" if cell is None else f"{path}:cell {cell}:{row}"
    row = module.source.row_in(cell, row)
    model = tree.model
    model.silences = []
    from sampler_lint.rules import every_rule

    plugins = options_of(os.path.dirname(absolute)).plugins
    rules = tuple(rule for rule in every_rule(plugins) if isinstance(rule, Rule))
    found = tree.findings(rules).get(absolute, [])
    comments = tree.suppressions(absolute)
    silenced = [each for each in found if comments is not None and comments.covers(each)]
    out = [f"{shown}: {module.source.line(row).strip()}"]
    if not session.not_excluded([path], options_of):
        out.append(
            "  a check of the project leaves this file out: a `.gitignore` or configuration does"
        )
    here = list(_statements_at(module, row))
    out += _names(model, here, row)
    out += _loops(model, here)
    out += _simulated(model, module, here, row)
    told = _rules(model, module, here, row, found, silenced)
    mute = [rule for rule in rules if rule.code not in told]
    told |= _asked(model, module, here, row, mute)
    lines = [line for each in told.values() for line in each]
    return out + (lines or ["  no rule has anything to say here"])


def _statements_at(module: Module, row: int) -> Iterator[Stmt]:
    for scope in module.facts.scopes:
        for stmt in statements(scope.body):
            if stmt.row <= row <= stmt.end_row:
                yield stmt


def _names(model: Model, here: list[Stmt], row: int) -> list[str]:
    """What each name, attribute and call on the line may be."""
    said: dict[str, str] = {}
    for stmt in here:
        for node in nodes_in([stmt]):
            if isinstance(node, (Name, Attr, Call)) and node.row == row:
                spelled = unparse(node)
                if "…" not in spelled.split("(")[0] and spelled not in said:
                    said[spelled] = describe(model, node)
    width = max((len(spelled) for spelled in said), default=0)
    return [f"  {spelled:{width}}  {what}" for spelled, what in said.items()]


def describe(model: Model, expr: Expr) -> str:
    """The values of an expression in words; what is not known comes last, with its reason."""
    values = sorted(model.flow.values(expr), key=lambda v: (isinstance(v, Unknown), str(type(v))))
    if not values:
        return "nothing reaches it"
    return "; or ".join(dict.fromkeys(_value(model, value) for value in values))


def _value(model: Model, value: Value) -> str:
    if isinstance(value, Unknown):
        return f"not known ({value.why.value}): {value.reason}"
    if isinstance(value, Obj):
        text = value.name
        if value.site is None:
            return f"{text} (or a subclass), the object itself"
        text += f" built at {model.place_of(value)}"
        parts = [
            f"{name}={inner.name} built at {model.place_of(inner)}"
            for name in ("sampler", "batch_sampler")
            if model.role(value)
            for inner in sorted(model.passed_to(value, name), key=str)
            if isinstance(inner, Obj)
        ]
        if parts:
            text += f" with {', '.join(parts)}"
        if value.through is not None:
            text += f", returned to {model.place(value.through.scope, value.through)}"
        return text
    if isinstance(value, Lit):
        return repr(value.value)
    if isinstance(value, (Ext, ExtObj)):
        made = "made by " if isinstance(value, ExtObj) else ""
        return f"{made}{value.dotted}, outside the tree"
    if isinstance(value, AnyModule):
        return f"a module of {value.package or 'the program'}, by a computed name"
    if isinstance(value, FuncRef):
        function = value.function
        if function.outer is None:
            return f"the dict method {function.name}"
        return f"function {function.qualname} at {model.place(function, function)}"
    cls = getattr(value, "cls", None)
    if isinstance(cls, Class):
        return f"class {cls.name} at {model.place(cls, cls)}"
    return {"Pack": "a tuple or list", "Table": "a dict", "Gen": "a generator"}.get(
        type(value).__name__, type(value).__name__.lower()
    )


def _loops(model: Model, here: list[Stmt]) -> list[str]:
    """The epoch loops around the line."""
    from sampler_lint.domain.epochs import epoch_loops, loops_in_samplers

    around = {
        ancestor
        for stmt in here
        for ancestor in (stmt, *stmt.ancestors())
        if isinstance(ancestor, (For, While))
    }
    out: dict[str, None] = {}
    for found in (*epoch_loops(model), *loops_in_samplers(model)):
        if found.loop in around or any(found.inner.stmt is stmt for stmt in here):
            loader = found.inner.loader
            out[
                f"  epoch loop at {model.place(found.loop.scope, found.loop)}: each epoch iterates "
                f"the {loader.name} of {model.place_of(loader)} at "
                f"{model.place(found.inner.scope, found.inner.stmt)}"
            ] = None
    return list(out)


def _simulated(model: Model, module: Module, here: list[Stmt], row: int) -> list[str]:
    """What came of running the sampler classes around the line, or why they could not be run."""
    around: dict[Scope, None] = {}
    for stmt in here:
        around.update(dict.fromkeys(stmt.scope.outward()))
    return [
        f"  {model.trials(cls).story} (class {cls.name})"
        for cls in module.facts.classes
        if (cls in around or cls.row == row) and model.is_sampler_class(cls)
    ]


def _rules(
    model: Model,
    module: Module,
    here: list[Stmt],
    row: int,
    found: list[Finding],
    silenced: list[Finding],
) -> dict[str, list[str]]:
    """Who spoke here, and who kept silent for a reason worth saying: lines by code."""
    told = {}
    spoke = {f.code: f for f in found if f.start.row <= row <= f.end.row}
    for code, finding in sorted(spoke.items()):
        reasons = [f"    because of {why}" for why in finding.why]
        how = "silenced by a comment" if finding in silenced else "reported"
        told[code] = [f"  {finding.label} {how}: {finding.message}", *reasons]
    scopes: set[Scope] = {stmt.scope for stmt in here}
    rows = {r for stmt in here for r in (stmt.row, row)}
    for silence in model.silences or ():
        if silence.scope.module is not module.facts or silence.code in spoke:
            continue
        if silence.node.row in rows or (silence.node in scopes):
            line = f"  {silence.code} not reported: {silence.reason}"
            if line not in told.setdefault(silence.code, []):
                told[silence.code].append(line)
    return told


def _asked(
    model: Model, module: Module, here: list[Stmt], row: int, rules: list[Rule]
) -> dict[str, list[str]]:
    """What the rules that said nothing of the line wanted to know of it last, by code."""
    nodes: set[Node] = {stmt for stmt in here if stmt.row == row}
    nodes.update(node for node in nodes_in(here) if node.row == row)
    around = (scope for stmt in here for scope in stmt.scope.outward())
    nodes.update(scope for scope in around if isinstance(scope, Class))
    scopes = (*module.facts.classes, *module.facts.functions)
    nodes.update(scope for scope in scopes if scope.row == row)
    told = {}
    for rule, question in last_questions(rules, model, nodes):
        head, *rest = question.lines(model)
        told[rule.code] = [f"  {rule.code} not reported. The last question was {head}"]
        told[rule.code] += [f"    which asked {line}" for line in rest]
    return told


__all__ = ["describe", "explain"]
