"""SMP201: a distributed sampler keeps a fixed seed although the program's seed can be set."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sampler_lint.findings import Applicability, Edit, Fix
from sampler_lint.model.facts import (
    Attr,
    Call,
    Class,
    Const,
    Expr,
    Function,
    Name,
    last_name,
    unparse,
    walk,
)
from sampler_lint.model.flow import Obj
from sampler_lint.model.linked import DISTRIBUTED_SAMPLER, Model, scopes_inside
from sampler_lint.model.project import Module
from sampler_lint.model.seeds import Seed, in_scope, seeding
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._mend import add_keyword, fix, is_library, text_of
from sampler_lint.rules._region import Region, line_indent


class SeedNotPassed(Rule):
    """A shuffling distributed sampler keeps a fixed seed; the program's seed never reaches it.

    What it does:
        Reports a shuffling `DistributedSampler` (or a subclass that takes `seed`) built with a
        literal seed or none, in a program that seeds its generators from a setting
        (`torch.manual_seed(args.seed)`, `seed_everything(cfg.seed)`...). Silent with
        `shuffle=False`, and where the seed is set later or enters through `set_epoch`.

    Why is this bad?
        `DistributedSampler` shuffles with a generator of its own, seeded with `seed + epoch`;
        `torch.manual_seed` does not touch it. Runs that differ in seed all read the same order,
        so a study over seeds measures less than it claims, and a bad order cannot be escaped.

    Fix safety:
        Safe where the seed is in scope, is an int and is the same on every rank, and where a
        factory gets a new parameter `seed: int = 0` that every call in the tree passes. Unsafe
        where the seed's type is not known, and in library code, where the new parameter only
        makes the seed settable.

    How it is proved:
        Invariant `seed-matters`: two runs with different seeds give one order before the fix
        and different orders after it.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__`
        - https://github.com/mosaicml/composer/pull/3724
        - https://github.com/Lightning-AI/pytorch-lightning/pull/7024
    """

    code = "SMP201"
    name = "seed-not-passed"
    invariant = "seed-matters"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at every distributed sampler that is built in a program with a seed."""
        for sampler in model.constructions():
            site = sampler.site
            if site is None or model.is_a(sampler, DISTRIBUTED_SAMPLER) is not True:
                continue
            module = model.module_of(site.scope)
            given = model.flow.argument(sampler, "seed")
            if given is None and model.flow.may_be_passed(sampler, "seed"):
                continue
            if given is not None and not (isinstance(given, Const) and given.value is not None):
                continue
            if not _takes_seed(model, sampler) or not _may_shuffle(model, module, sampler):
                continue
            source = seeding(model, module)
            if source is None or _seeded_later(model, module, sampler):
                continue
            yield _suspect(model, module, sampler, given, source)


def _takes_seed(model: Model, sampler: Obj) -> bool:
    """Whether the class has a ``seed`` parameter and uses it to shuffle."""
    if isinstance(sampler.cls, str):
        return True
    init = model.flow.method(sampler.cls, "__init__")
    if isinstance(init, Function) and init.param("seed") is None:
        return any(param.kind == "kwarg" for param in init.params) and not any(
            call.keyword("seed") is not None for call in init.calls
        )
    iterate = model.flow.method(sampler.cls, "__iter__")
    if not isinstance(iterate, Function):
        return True
    reads = {
        read.name
        for base in model.flow.mro(sampler.cls)
        if isinstance(base, Class)
        for scope in scopes_inside(base)
        if scope.name != "__init__"
        for read in scope.reads
    }
    return "seed" in reads or any("generator" in name for name in reads)


def _may_shuffle(model: Model, module: Module, sampler: Obj) -> bool:
    """Whether it shuffles for some caller: one in the tree, or anyone in a library."""
    shuffles = model.shuffles(sampler)
    if shuffles:
        return True
    assert sampler.site is not None
    given = model.flow.argument(sampler, "shuffle")
    scope = sampler.site.scope
    if isinstance(given, Name) and isinstance(scope, Function) and scope.param(given.id):
        return is_library(module, scope) and not scope.name.startswith("_")
    if isinstance(sampler.cls, Class) and shuffles is None:
        own = model.flow.method(sampler.cls, "__iter__")
        literal = given is None or (isinstance(given, Const) and given.value is True)
        return (
            isinstance(own, Function)
            and literal
            and not model.flow.may_be_passed(sampler, "shuffle")
        )
    return False


def _seeded_later(model: Model, module: Module, sampler: Obj) -> bool:
    """Whether something else may give the sampler its seed."""
    program = model.project.program_of(module)

    def is_ours(receiver: Expr) -> bool:
        values = model.flow.values(receiver)
        return any(
            not isinstance(v, Obj) or (v.cls, v.site) == (sampler.cls, sampler.site) for v in values
        )

    for store in model.project.stores_of("seed"):
        target = store.target
        named = isinstance(target, Attr) and "sampler" in unparse(target.value).lower()
        if named and is_ours(target.value):
            return True
    for name in ("set_seed", "set_epoch"):
        for call in model.project.calls_named(name):
            if model.project.program_of(model.module_of(call.scope)) != program:
                continue
            if not isinstance(call.func, Attr):
                continue
            mentions = any(
                "seed" in (node.id if isinstance(node, Name) else node.name).lower()
                for arg in call.args
                for node in walk(arg.value)
                if isinstance(node, (Name, Attr))
            )
            by_seed = name == "set_seed" and "sampler" in unparse(call.func.value).lower()
            if (mentions if name == "set_epoch" else by_seed) and is_ours(call.func.value):
                return True
    return False


# --------------------------------------------------------------------------- finding


def _suspect(
    model: Model,
    module: Module,
    sampler: Obj,
    given: Expr | None,
    source: tuple[Module, Call, Expr],
) -> Suspect:
    site = sampler.site
    assert site is not None
    seeded_in, seeded_call, seed_expr = source
    fixed = "seed 0" if given is None else f"the literal seed {text_of(module.source, given)}"
    message = (
        f"`{sampler.name}` shuffles with {fixed} whatever `{unparse(seed_expr)}` is: "
        f"`{unparse(seeded_call.func)}` does not reach the sampler's own generator, so every seed "
        f"reads the same order"
    )
    seed = in_scope(model, module, site.scope, site)
    if seed is not None:
        message += f"; pass `seed={seed.code}`"
        mend = lambda: _pass_seed(module, site, given, seed)  # noqa: E731
    else:
        function = site.scope if isinstance(site.scope, Function) else None
        if function is not None and _can_take_parameter(function):
            message += f"; give `{function.name}` a `seed` parameter and pass it on"
            mend = lambda: _add_parameter(model, module, function, site, given)  # noqa: E731
        else:
            message += "; pass the program's seed as `seed=`"
            mend = lambda: None  # noqa: E731
    why = (f"{seeded_in.display}:{seeded_call.row}: the program is seeded here",)
    return Suspect(module, site, message, why=why, mend=mend)


# --------------------------------------------------------------------------- fixes


def _value(seed: Seed) -> str:
    return f"{seed.code} or 0" if seed.is_number is False else seed.code


def _pass_seed(module: Module, site: Call, given: Expr | None, seed: Seed) -> Fix | None:
    edit = _seed_edit(module, site, given, _value(seed))
    applicability = Applicability.UNSAFE if seed.is_number is None else Applicability.SAFE
    return fix(f"Pass `seed={_value(seed)}`", applicability, [edit], module.source)


def _seed_edit(module: Module, site: Call, given: Expr | None, value: str) -> Edit:
    import libcst as cst

    region = Region(module, site.stmt or site.scope)
    if given is not None:
        return region.replace(region.find(given, cst.BaseExpression), value)  # type: ignore[type-abstract]
    return add_keyword(region, site, "seed", value)


def _can_take_parameter(function: Function) -> bool:
    """A plain function: the signature of a method may be somebody else's contract."""
    return (
        function.cls is None
        and function.define is not None
        and function.param("seed") is None
        and "seed" not in function.bindings
        and not function.decorators
    )


def _add_parameter(
    model: Model, module: Module, function: Function, site: Call, given: Expr | None
) -> Fix | None:
    """Add ``seed`` to the factory, use it, document it, and pass it in every call of the tree."""
    source = module.source
    default = "0" if given is None else text_of(source, given)
    edits = [_seed_edit(module, site, given, "seed"), _parameter_edit(module, function, default)]
    documented = _docstring_edit(module, function)
    if documented is not None:
        edits.append(documented)
    calls = [
        call
        for call in model.flow.callers(function)
        if last_name(call.func) == function.name and _shuffles_through(model, site, call)
    ]
    everywhere = bool(calls) and not is_library(module, function)
    for call in calls:
        caller = model.module_of(call.scope)
        seed = in_scope(model, caller, call.scope, call)
        if seed is None or call.has_double_star or seed.is_number is None:
            everywhere = False
            continue
        region = Region(caller, call.stmt or call.scope)
        edits.append(add_keyword(region, call, "seed", _value(seed)))
    applicability = Applicability.SAFE if everywhere else Applicability.UNSAFE
    return fix(f"Give `{function.name}` a `seed` parameter", applicability, edits, source)


def _shuffles_through(model: Model, site: Call, call: Call) -> bool:
    """Whether the sampler built at ``site`` may shuffle when its factory is called by ``call``."""
    given = site.keyword("shuffle")
    constants = {True} if given is None else model.flow.constants(given, call)
    return constants is None or any(constants)


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
    if isinstance(parameters.star_kwarg, cst.Param):
        stars = source.text.rindex("**", 0, region.span(parameters.star_kwarg.name)[0])
        return Edit(source.path, stars, stars, f"{text}, ")
    last = function.params[-1]
    last_node = next(
        param
        for param in (*parameters.params, *parameters.kwonly_params, parameters.star_arg)
        if isinstance(param, cst.Param) and param.name.value == last.name
    )
    part = last_node.default or last_node.annotation or last_node.name
    end = region.span(part)[1]
    if isinstance(part, cst.Annotation):
        end = region.span(part.annotation)[1]
    comma = isinstance(last_node.comma, cst.Comma)
    last_row = source.position(region.span(last_node.name)[0]).row
    if last_row != function.define.row and line_indent(source, last_row) and comma:
        at = source.text.index(",", end) + 1
        added = f"{source.newline}{line_indent(source, last_row)}{text},"
        return Edit(source.path, at, at, added)
    return Edit(source.path, end, end, f", {text}")


_ENTRY = r"^([ \t]+){name}( ?\([^)\n]*\))?:"


def _docstring_edit(module: Module, function: Function) -> Edit | None:
    """An entry for ``seed`` below the last parameter's in a Google-style docstring."""
    import libcst as cst

    assert function.define is not None
    if not function.params:
        return None
    region = Region(module, function.define)
    source = module.source
    docstring = next(
        (node for node in region.nodes(cst.SimpleString) if node.quote.startswith(('"""', "'''"))),
        None,
    )
    if docstring is None:
        return None
    start, stop = region.span(docstring)
    first, last = source.position(start).row, source.position(stop).row
    if function.body and function.body[0].row < first:
        return None  # a string of the body
    pattern = re.compile(_ENTRY.format(name=re.escape(function.params[-1].name)))
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
