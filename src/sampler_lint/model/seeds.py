"""The program's own seed: how it is spelled, which scope can name it, whether it may be None."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sampler_lint.model.facts import (
    Assign,
    Attr,
    Call,
    Class,
    Const,
    Declare,
    Expr,
    Function,
    Name,
    Scope,
    dotted,
    last_name,
    walk,
)
from sampler_lint.model.flow import Ext, Lit, ModRef, Obj, Unknown, self_class
from sampler_lint.model.linked import Model
from sampler_lint.model.project import Module

#: A setting by one of these names is the program's seed; ``split_seed`` and the like are not.
_SEED_NAME = re.compile(
    r"^(?:(?:rand(?:om)?|manual|rng|global|base|train|training|data|torch)_?)?seed$", re.IGNORECASE
)
_RANK = re.compile(r"rank|worker|process_index|gpu|device_id", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Seed:
    """A way to name the program's seed in some scope."""

    code: str
    is_number: bool | None
    """Whether it certainly is an int; False if it may be None; None if not known."""


def seeding(model: Model, module: Module) -> tuple[Module, Call, Expr] | None:
    """Where the program of ``module`` seeds its generators with a value it does not fix."""
    program = model.project.program_of(module)
    own = [found for found in model.seeded_by if model.project.program_of(found[0]) == program]
    near = [found for found in own if found[0] is module]
    # torch's own generator is the one a reader thinks of.
    torch_first = sorted(near or own, key=lambda found: last_name(found[1].func) != "manual_seed")
    return next(iter(torch_first), None)


def in_scope(model: Model, module: Module, scope: Scope, site: Call) -> Seed | None:
    """The program's seed as ``scope`` can name it at ``site``, the same on every rank."""
    function: Scope | None = scope
    while isinstance(function, Function):
        for param in function.params:
            if _SEED_NAME.match(param.name) and not _tainted_name(function, param.name):
                default = param.default
                number: bool | None = None
                if isinstance(default, Const):
                    number = isinstance(default.value, int)
                return Seed(param.name, _by_annotation(param.annotation, number))
        function = function.outer
    for code, node in _spellings(model, module):
        if _can_name(model, scope, site, node) and not _tainted_attribute(model, module, node):
            return Seed(code, _is_number(model, module, node))
    return None


def _spellings(model: Model, module: Module) -> Iterator[tuple[str, Attr]]:
    """``args.seed`` and the like, as the program reads them; those that seed it first."""
    program = model.project.program_of(module)
    seen = set()
    seeding_exprs = [
        node
        for other, _, expr in model.seeded_by
        if model.project.program_of(other) == program
        for node in walk(expr)
        if isinstance(node, Attr)
    ]
    own_reads = [read for scope in module.facts.scopes for read in scope.reads]
    for node in [*own_reads, *seeding_exprs]:
        code = dotted(node)
        if code is None or code in seen or not _SEED_NAME.match(node.name):
            continue
        if isinstance(node.value, (Name, Attr)) and not _is_module(model, node):
            seen.add(code)
            yield code, node


def _is_module(model: Model, node: Attr) -> bool:
    """Whether the owner is a module (``random.seed``) or the attribute is called."""
    return any(isinstance(v, (Ext, ModRef)) for v in model.flow.values(node.value))


def _can_name(model: Model, scope: Scope, site: Call, node: Attr) -> bool:
    """Whether ``node``'s spelling means the same where ``site`` stands."""
    root: Expr = node
    while isinstance(root, Attr):
        root = root.value
    assert isinstance(root, Name)
    if root.scope is scope:
        return _set_before(scope, root.id, site)
    cls = self_class(root)
    if cls is not None:
        owner: Scope | None = scope
        while owner is not None and not (isinstance(owner, Function) and owner.cls is not None):
            owner = owner.outer
        if not isinstance(owner, Function) or owner.cls is None or owner.self_name != root.id:
            return False
        return cls is owner.cls or cls in model.flow.mro(owner.cls)
    owner = scope
    while owner is not None:
        bindings = owner.bindings.get(root.id)
        if bindings:
            # A parameter or variable of the same name: the same kind of thing by convention.
            return all(b.how in {"param", "assign"} for b in bindings) and (
                owner is not scope or _set_before(scope, root.id, site)
            )
        owner = owner.outer
    return False


def _set_before(scope: Scope, name: str, site: Call) -> bool:
    bindings = scope.bindings.get(name, [])
    if any(b.how == "param" for b in bindings):
        return True
    if site.stmt is None:
        return False
    return any(b.stmt is not None and b.stmt.order < site.stmt.order for b in bindings)


def _tainted_name(function: Function, name: str) -> bool:
    """Whether a parameter is given a rank's own value before use."""
    return any(
        binding.how != "param" and binding.value is not None and _mentions_rank(binding.value)
        for binding in function.bindings.get(name, ())
    )


def _tainted_attribute(model: Model, module: Module, node: Attr) -> bool:
    """Whether some ``args.seed = args.seed + rank`` makes the attribute differ between ranks."""
    program = model.project.program_of(module)
    return any(
        store.value is not None
        and _mentions_rank(store.value)
        and model.project.program_of(model.module_of(store.scope)) == program
        for store in model.project.stores_of(node.name)
    )


def _mentions_rank(expr: Expr) -> bool:
    return any(
        _RANK.search(node.id if isinstance(node, Name) else node.name)
        for node in walk(expr)
        if isinstance(node, (Name, Attr))
    )


def _by_annotation(annotation: Expr | None, otherwise: bool | None) -> bool | None:
    if annotation is None or otherwise is False:
        return otherwise
    return True if isinstance(annotation, Name) and annotation.id == "int" else otherwise


def _is_number(model: Model, module: Module, node: Attr) -> bool | None:
    """Whether a configured seed is an int: from argparse, a dataclass, or what is assigned."""
    option = _argparse_default(model, module, node.name)
    if option is not None:
        return option
    answers: set[bool | None] = set()
    for value in model.flow.values(node.value):
        if isinstance(value, Obj) and isinstance(value.cls, Class):
            answers.add(_field_is_int(value.cls, node.name))
    for value in model.flow.values(node):
        if isinstance(value, Lit):
            answers.add(isinstance(value.value, int))
        elif isinstance(value, Unknown) and not answers:
            answers.add(None)
    if False in answers:
        return False
    return True if answers == {True} else None


def _field_is_int(cls: Class, name: str) -> bool | None:
    for stmt in cls.body:
        if isinstance(stmt, Declare) and isinstance(stmt.target, Name) and stmt.target.id == name:
            return isinstance(stmt.annotation, Name) and stmt.annotation.id == "int"
        if isinstance(stmt, Assign) and isinstance(stmt.value, Const):
            target = stmt.targets[0]
            if isinstance(target, Name) and target.id == name:
                return isinstance(stmt.value.value, int)
    return None


def _argparse_default(model: Model, module: Module, name: str) -> bool | None:
    """Whether ``add_argument("--seed", …)`` gives an int; False for a default of None."""
    program = model.project.program_of(module)
    for call in model.project.calls_named("add_argument"):
        if model.project.program_of(model.module_of(call.scope)) != program:
            continue
        flags = [
            a.value for a in call.positional if isinstance(a, Const) and isinstance(a.value, str)
        ]
        destination = call.keyword("dest")
        names = {flag.lstrip("-").replace("-", "_") for flag in flags}
        if isinstance(destination, Const):
            names = {str(destination.value)}
        if name not in names:
            continue
        default, required = call.keyword("default"), call.keyword("required")
        if default is None:
            return isinstance(required, Const) and bool(required.value)
        if isinstance(default, Const):
            return isinstance(default.value, int)
        kind = call.keyword("type")
        return True if kind is not None and last_name(kind) == "int" else None
    return None
