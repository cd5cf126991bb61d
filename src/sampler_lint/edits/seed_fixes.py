"""Pieces of the codemods that hand the program's seed on."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sampler_lint.domain.draws import seeded
from sampler_lint.domain.model import Model
from sampler_lint.domain.seed_names import Seed, in_scope
from sampler_lint.edits.fixes import (
    add_keyword,
    added_part,
    behind_comment,
    is_library,
    name_of,
)
from sampler_lint.edits.region import Planned, Region, offsets, replacement
from sampler_lint.findings import Edit
from sampler_lint.source import SourceFile
from sampler_lint.syntax.nodes import Bin, Call, Class, Const, Expr, Function, Name, last_name
from sampler_lint.workspace.project import Module


def spelled(seed: Seed) -> str:
    """The seed as an int-valued expression."""
    return f"{seed.code} or 0" if seed.is_number is False else seed.code


def seed_edit(
    module: Module, site: Call, keyword: str, given: Expr | None, value: str
) -> Edit | Planned:
    """The edit that makes the call ``site`` pass ``value``, in place of ``given`` if there is one.

    Raises:
        RegionError: the call cannot be read.
    """
    if given is not None:
        return replacement(module, site.stmt or site.scope, given, value)
    return add_keyword(module, site, keyword, value)


def pass_in(
    model: Model,
    calls: Iterable[Call],
    keyword: str,
    *,
    spelling: str | None = None,
    untyped: bool = False,
    known: dict[Function, list[Edit | Planned] | None] | None = None,
) -> tuple[list[Edit | Planned], bool]:
    """The edits that pass the program's seed in ``calls``, and whether all certainly get an int.

    A function that calls without a seed gets a parameter of its own, if all of its callers in
    turn have a seed to pass. ``untyped``: whether a seed that may be no int is passed, too.
    ``known`` are the functions that were asked before.
    """
    known = {} if known is None else known
    edits: list[Edit | Planned] = []
    everywhere = True
    for call in calls:
        module = model.module_of(call.scope)
        seed = in_scope(model, module, call.scope, call)
        is_wrong = call.has_double_star or (
            spelling is not None and last_name(call.func) != spelling
        )
        if seed is not None and not is_wrong and (untyped or seed.is_number is not None):
            edits.append(seed_edit(module, call, keyword, None, spelled(seed)))
            everywhere = everywhere and seed.is_number is not None
            continue
        through = None
        if seed is None and not is_wrong and isinstance(call.scope, Function):
            through = _through(model, call.scope, known)
        if through is None:
            everywhere = False
        else:
            edits += [seed_edit(module, call, keyword, None, "seed"), *through]
    return edits, everywhere


def _through(
    model: Model, function: Function, known: dict[Function, list[Edit | Planned] | None]
) -> list[Edit | Planned] | None:
    """The edits that give a function the seed that all of its callers have; None if not all do."""
    if function not in known:
        known[function] = None  # what calls itself has no other caller then
        module = model.module_of(function)
        calls = model.flow.callers(function)
        if can_take_seed(function) and calls and not is_library(module, function):
            passed, everywhere = pass_in(
                model, calls, "seed", spelling=called(function), known=known
            )
            if everywhere:
                own = [parameter_edit(module, function, "0"), docstring_edit(module, function)]
                known[function] = [*own, *passed]
    return known[function]


def can_take_seed(function: Function) -> bool:
    """A plain function or a constructor: a method's signature may be somebody else's contract."""
    return (
        (function.cls is None or (function.name == "__init__" and bool(function.params)))
        and function.define is not None
        and function.param("seed") is None
        and "seed" not in function.bindings
        and not function.decorators
    )


def called(function: Function) -> str:
    """The name by which the function is called: of a constructor, the class's."""
    return function.cls.name if function.cls is not None else function.name


def parameter_edit(module: Module, function: Function, default: str) -> Planned:
    """The edit that gives ``function`` a last parameter ``seed``, in the signature's own style."""
    name = name_of(module, function)
    expected = added_part(module.source, offsets(module.source, name)[1], f"seed={default}")
    return Planned(lambda: _parameter_edit(module, function, default), expected)


def _parameter_edit(module: Module, function: Function, default: str) -> Edit:
    import libcst as cst

    assert function.define is not None
    region = Region(module, function.define)
    node = next(
        found for found in region.nodes(cst.FunctionDef) if found.name.value == function.name
    )
    typed = any(param.annotation is not None for param in function.params)
    text = f"seed: int = {default}" if typed else f"seed={default}"
    parameters = node.params
    source = module.source
    if not function.params:
        start = source.text.index("(", region.span(node.name)[1]) + 1
        return Edit(source.path, start, start, text)
    own_line = f",{source.newline}{{}}"
    if isinstance(parameters.star_kwarg, cst.Param):
        stars = source.text.rindex("**", 0, region.span(parameters.star_kwarg.name)[0])
        indent = _alone_on_line(source, stars)
        gap = " " if indent is None else own_line[1:].format(indent)
        return Edit(source.path, stars, stars, f"{text},{gap}")
    slash = parameters.posonly_ind
    if function.params[-1].kind == "positional_only" and isinstance(slash, cst.ParamSlash):
        # What stands before the slash cannot be given by its name.
        start = region.span(slash)[0]
        end, comma = start + 1, slash.comma
    else:
        star = [parameters.star_arg] if isinstance(parameters.star_arg, cst.Param) else []
        last = [*parameters.params, *star, *parameters.kwonly_params][-1]
        part = last.default or last.annotation or last.name
        if isinstance(part, cst.Annotation):
            part = part.annotation
        start, end = region.span(last.name)[0], region.span(part)[1]
        comma = last.comma
    indent = _alone_on_line(source, start)
    if indent is None:
        return Edit(source.path, end, end, f", {text}")
    if isinstance(comma, cst.Comma):
        at = behind_comment(source, region.span(comma)[1])
        return Edit(source.path, at, at, f"{own_line[1:].format(indent)}{text},")
    stop = behind_comment(source, end)
    behind = source.text[end:stop]
    return Edit(source.path, end, stop, f",{behind}{own_line[1:].format(indent)}{text}")


def generator_edits(model: Model, module: Module, function: Function) -> list[Edit]:
    """The edits that add ``seed`` to the literal seed of a loader's generator.

    A loader shuffles with it where it has no sampler, and seeds its workers.
    """
    handed = {
        given.id for call in function.calls if isinstance(given := call.keyword("generator"), Name)
    }
    edits = []
    for found in seeded(model, function):
        seed = found.seed
        terms = [seed.left, seed.right] if isinstance(seed, Bin) and seed.op == "Add" else [seed]
        literals = [term for term in terms if isinstance(term, Const) and type(term.value) is int]
        if found.generator in handed and len(literals) == 1:
            end = offsets(module.source, literals[0])[1]
            edits.append(Edit(module.source.path, end, end, " + seed"))
    return edits


def _alone_on_line(source: SourceFile, offset: int) -> str | None:
    """The white space before ``offset``, if nothing else stands before it in its line."""
    place = source.position(offset)
    before = source.line(place.row)[: place.column - 1]
    return None if before.strip() else before


_ENTRY = r"^([ \t]+){name}( ?\([^)\n]*\))?:"


def docstring_edit(module: Module, function: Function) -> Planned:
    """An entry for ``seed`` below the last parameter's in a Google-style docstring, if any.

    Of a constructor, the docstring may be the class's.
    """
    nothing = Edit(module.source.path, 0, 0, "")
    return Planned(lambda: _docstring_edit(module, function), nothing)


def _docstring_edit(module: Module, function: Function) -> Edit | None:
    if not function.params:
        return None
    own = _entry_edit(module, function, function.params[-1].name)
    if own is None and function.name == "__init__" and function.cls is not None:
        return _entry_edit(module, function.cls, function.params[-1].name)
    return own


def _entry_edit(module: Module, scope: Function | Class, after: str) -> Edit | None:
    import libcst as cst

    if scope.define is None:
        return None
    region = Region(module, scope.define)
    source = module.source
    docstring = next(
        (node for node in region.nodes(cst.SimpleString) if node.quote.startswith(('"""', "'''"))),
        None,
    )
    if docstring is None:
        return None
    start, stop = region.span(docstring)
    first, last = source.position(start).row, source.position(stop).row
    if scope.body and scope.body[0].row < first:
        return None  # a string of the body
    pattern = re.compile(_ENTRY.format(name=re.escape(after)))
    for row in range(first, last):
        match = pattern.match(source.line(row))
        if match is None:
            continue
        end = row + 1
        while end < last and source.line(end).startswith((match[1] + " ", match[1] + "\t")):
            end += 1
        kind = " (int)" if match[2] else ""
        text = f"{match[1]}seed{kind}: The seed of the shuffle, the same on every rank."
        offset = source.line_starts[end - 1]
        return Edit(source.path, offset, offset, text + source.newline)
    return None
