"""How a scope can name the program's seed, and whether that may be None."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from sampler_lint.analysis.arguments import passed
from sampler_lint.analysis.origins import Hop, is_one_value, origins
from sampler_lint.analysis.reaching import may_be_set
from sampler_lint.analysis.values import ClassRef, Lit, Obj
from sampler_lint.domain.concepts import DEVICES, PROCESSES, WORKERS
from sampler_lint.domain.draws import is_drawn
from sampler_lint.domain.model import Model
from sampler_lint.domain.options import destinations, options, options_of, parsed_beside
from sampler_lint.domain.programs import is_test, program_files
from sampler_lint.domain.rank_terms import parameter_differs
from sampler_lint.domain.seeds import is_file, is_seed_name, spelled_reads, spelled_seedings
from sampler_lint.remembered import remembered
from sampler_lint.source import NOTEBOOK, says_between
from sampler_lint.syntax.navigation import (
    binder_of,
    method_around,
    nodes_in,
    same,
    self_class,
    statements,
    walk,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Binding,
    Call,
    Class,
    Compare,
    Const,
    Declare,
    Expr,
    Function,
    Index,
    Name,
    Param,
    Scope,
    Stmt,
    dotted,
    last_name,
)
from sampler_lint.workspace.project import Module


class Seed(NamedTuple):
    """A way to name the program's seed in some scope."""

    code: str
    is_number: bool | None
    """Whether it certainly is an int; False if it may be None; None if not known."""


def in_scope(model: Model, module: Module, scope: Scope, site: Call) -> Seed | None:
    """The program's seed as ``scope`` can name it at ``site``, the same on every rank."""
    function: Scope | None = scope
    while isinstance(function, Function):
        for param in function.params:
            seed = _by_parameter(model, function, param)
            if seed is not None:
                return seed
        function = function.outer
    for code, node in _spellings(model, module, scope):
        if _can_name(model, scope, site, node) and not _is_tainted(model, module, node):
            return Seed(code, is_number(model, module, node))
    return next(_handed_over(model, module, scope), None)


def _by_parameter(model: Model, function: Function, param: Param) -> Seed | None:
    """The parameter itself, if it is a seed that all ranks share."""
    if (
        not is_seed_name(param.name)
        or _tainted_name(function, param.name)
        or parameter_differs(model, function, param) is not None
    ):
        return None
    number: bool | None = None
    if isinstance(param.default, Const):
        number = isinstance(param.default.value, int)
    return Seed(param.name, _by_annotation(param.annotation, number))


class KeptSeed(NamedTuple):
    """A seed that the constructor of a class can name, to be kept for the methods."""

    init: Function
    seed: Seed
    attribute: str
    before: Stmt
    """The statement of ``__init__`` before which it can be kept."""


def seed_to_keep(model: Model, module: Module, method: Function) -> KeptSeed | None:
    """What the constructor of the method's class would have to keep of the program's seed."""
    cls = method.cls
    init = cls.method("__init__") if cls is not None else None
    if cls is None or init is None or method is init or method.self_name is None:
        return None
    first = next((s.stmt for s in init.stores if s.stmt.parent is None), None)
    if first is None or first.row == init.row or not init.params:
        return None
    for _, node in _read_as_seed(model, _reads(model, module), set()):
        root = _root(node)
        code = dotted(node)
        if (
            root is None
            or code is None
            or root.scope is not init
            or init.param(root.id) is None
            or len(init.bindings[root.id]) != 1
            or self_class(root) is not None
            or _is_tainted(model, module, node)
        ):
            continue
        family = [cls, *model.flow.subclasses(cls)]
        if any(node.name in model.attributes(each).names for each in family):
            return None
        number = is_number(model, module, node)
        read = node.stmt
        if read is not None and read.parent is None and not _calls_own(init, read):
            first = read
        return KeptSeed(init, Seed(code, number), node.name, first)
    return None


def _calls_own(init: Function, before: Stmt) -> bool:
    """Whether the constructor calls a method of its object before the statement."""
    return any(
        isinstance(call.func, Attr)
        and self_class(call.func.value) is not None
        and call.stmt is not None
        and call.stmt.order < before.order
        for call in init.calls
    )


def _spellings(model: Model, module: Module, scope: Scope) -> Iterator[tuple[str, Attr | Index]]:
    """``args.seed`` and the like: what the file seeds with, what it reads, what others seed with.

    What begins with a name that means nothing in ``scope`` may be left out.
    """
    program = model.project.program_of(module)
    files = program_files(model)
    seen: set[str] = set()
    own = spelled_reads(model, program, module.path.__eq__)
    yield from _read_as_seed(model, chain(own, _reads(model, module)), seen)
    tellers: dict[Scope, Callable[[str, bytes], bool]] = model.memo.setdefault(_may_name, {})
    may_name = tellers.get(scope) or tellers.setdefault(scope, _may_name(model, module, scope))
    given = spelled_reads(model, program, lambda path: may_name(path, _AS_ATTRIBUTE))
    yield from _read_as_seed(model, given, seen)
    if not any(may_name(path, _AS_ENTRY) for path in files.saying_seed(program)):
        return
    for item in spelled_seedings(model, program):
        entry = item.setting.entry
        root = _root(entry) if entry is not None else None
        if entry is None or root is None or entry.row != entry.end_row:
            continue
        source = model.module_of(root.scope).source
        start = source.offset(entry.row, entry.col)
        code = source.stretch(start, source.offset(entry.end_row, entry.end_col))
        if code not in seen:
            seen.add(code)
            yield code, entry


#: What may stand between a name and ``seed`` where that is an attribute, or an entry, of it.
_AS_ATTRIBUTE = rb"[\w.\s\[\]\"'/-]{0,78}\.\s{0,9}\w{0,40}\Z"
_AS_ENTRY = rb"[\w.\s\[\]\"'/-]{0,78}\[\s{0,9}[rbu]?[\"'][\w./-]{0,40}\Z"


def _may_name(model: Model, module: Module, scope: Scope) -> Callable[[str, bytes], bool]:
    """Tells whether a file may spell a seed by a name of the scope.

    Its second argument is what may stand between the name and ``seed``.
    """
    names = sorted(re.escape(name.lower().encode()) for name in _settings_in(scope))
    named = rb"(?<![\w.])(?:%b)" % b"|".join(names) if names else b"(?!)"
    own = {module.path}
    owner = method_around(scope)
    if owner is not None and owner.cls is not None:
        classes = (cls for cls in model.flow.mro(owner.cls) if isinstance(cls, Class))
        own |= {model.module_of(cls).path for cls in classes}
    tells = program_files(model).tells

    def may_name(path: str, between: bytes) -> bool:
        if path.endswith(NOTEBOOK):
            return True
        begins = rb"\w" if path in own else named
        return tells(path, _names_seed, begins + between)

    return may_name


def _names_seed(data: bytes, before: bytes) -> bool:
    return says_between(data.lower(), b"seed", re.compile(before))


def _settings_in(scope: Scope) -> set[str]:
    """The parameters and variables that mean the same in a scope, whichever file says them."""
    found: set[str] = set()
    hidden: set[str] = set()
    for owner in scope.outward():
        for name, bindings in owner.bindings.items():
            is_own = owner is scope or owner.outer is not None
            if (is_own or any(_scope_of(b) is scope for b in bindings)) and name not in hidden:
                found.add(name)
        hidden |= owner.bindings.keys()
    return found


def _read_as_seed(
    model: Model, nodes: Iterable[Attr], seen: set[str]
) -> Iterator[tuple[str, Attr]]:
    """The reads of settings with a seed's name, each spelling once."""
    for node in nodes:
        code = dotted(node)
        if code is None or code in seen or not is_seed_name(node.name):
            continue
        if _is_called(model, node) or is_file(model, node.value):
            continue
        if isinstance(node.value, (Name, Attr)):
            seen.add(code)
            yield code, node


@remembered
def _reads(model: Model, module: Module) -> list[Attr]:
    """What the file reads by a seed's name."""
    reads = (read for scope in module.facts.scopes for read in scope.reads)
    return [read for read in reads if is_seed_name(read.name)]


def _is_called(model: Model, node: Attr) -> bool:
    """Whether it is a method that is called (``generator.manual_seed(0)``), not a setting."""
    if node.stmt is None:
        return False
    called: dict[Scope, set[Expr]] = model.memo.setdefault(_is_called, {})
    scope = node.stmt.scope
    if scope not in called:
        called[scope] = {call.func for call in scope.calls}
    return node in called[scope]


def _root(node: Expr) -> Name | None:
    """``cfg`` of ``cfg.train["seed"]``."""
    while isinstance(node, (Attr, Index)):
        node = node.value
    return node if isinstance(node, Name) else None


def _can_name(model: Model, scope: Scope, site: Call, node: Attr | Index) -> bool:
    """Whether ``node``'s spelling means the same where ``site`` stands."""
    root = _root(node)
    assert root is not None
    if _holds_order(model, scope, root.id):
        return False
    if root.scope is scope and root.id in scope.bindings:
        return may_be_set(scope, root.id, site.stmt)
    cls = self_class(root)
    if cls is not None:
        method = method_around(scope)
        if method is None or method.cls is None or method.self_name != root.id:
            return False
        return cls is method.cls or cls in model.flow.mro(method.cls)
    for owner in scope.outward():
        bindings = owner.bindings.get(root.id)
        if bindings:
            # A parameter or variable of the same name: the same kind of thing by convention.
            # A function's `global` may set it later than the file's own lines run.
            here = owner is scope or any(_scope_of(b) is scope for b in bindings)
            if not here and _is_set_elsewhere(scope, owner, root, bindings):
                return False
            return (
                all(b.is_plain for b in bindings)
                and not _collects(owner, root.id)
                and not _lacks(model, owner, root.id, node)
                and not _is_read_otherwise(model, owner, root, node)
                and not _has_other_options(model, owner, root, node)
                and not _parses_others(model, owner, root, node)
                and (not here or may_be_set(owner, root.id, site.stmt))
            )
    return False


def _holds_order(model: Model, scope: Scope, name: str) -> bool:
    """Whether the name may be a sampler or a loader there, whose seed is what is looked for."""
    owner = binder_of(scope, name)
    return owner is not None and any(
        model.role(value)
        for binding in owner.bindings[name]
        if binding.value is not None and binding.is_plain
        for value in model.flow.values(binding.value)
    )


def _is_set_elsewhere(scope: Scope, owner: Scope, root: Name, bindings: list[Binding]) -> bool:
    """Whether a global is the settings of another program, or may not be there at all."""
    if owner.outer is not None:
        return False
    if root.scope.module is not scope.module:
        return True  # another file's settings; this one's may have no seed
    uses = root.id in {found.id for read in scope.reads if (found := _root(read)) is not None}
    return not uses and all(b.stmt is None or b.stmt.parent is not None for b in bindings)


def _has_other_options(model: Model, scope: Scope, root: Name, node: Attr | Index) -> bool:
    """Whether a caller in another file has a command line of its own, without that option."""
    if not isinstance(scope, Function) or not isinstance(node, Attr):
        return False
    for call in model.flow.callers(scope):
        module = model.module_of(call.scope)
        if module.facts is root.scope.module or is_test(module):
            continue
        declared = [c for c in module.facts.all_calls if last_name(c.func) == "add_argument"]
        flags = set().union(*map(destinations, declared))
        reads = {read.name for inner in module.facts.scopes for read in inner.reads}
        if declared and node.name not in flags | reads:
            return True
    return False


def _parses_others(model: Model, scope: Scope, root: Name, node: Attr | Index) -> bool:
    """Whether another variable of that name holds a command line without that option."""
    if not isinstance(node, Attr) or binder_of(root.scope, root.id) is scope:
        return False
    program = model.project.program_of(model.module_of(scope))
    held = [b.value for b in scope.bindings.get(root.id, ()) if b.value is not None]
    flags = [destinations(call) for value in held for call in parsed_beside(model, value)]
    is_declared = any(node.name in each for each in flags) or any(
        options(model, program, node.name)
    )
    return bool(flags) and not is_declared


def _lacks(model: Model, scope: Scope, name: str, node: Attr | Index) -> bool:
    """Whether the parameter of that name is declared to be something without what is read."""
    param = scope.param(name) if isinstance(scope, Function) else None
    cls = _annotated(model, param.annotation) if param is not None else None
    if cls is None:
        return False
    first = _first_read(node)
    attributes = model.attributes(cls)
    return isinstance(first, Attr) and (
        attributes.open is None and first.name not in attributes.names
    )


def _is_read_otherwise(model: Model, scope: Scope, root: Name, node: Attr | Index) -> bool:
    """Whether another variable of that name is read by entries, and no attributes; or reversed."""
    known: dict[tuple[Scope, str], set[type[Expr]]]
    known = model.memo.setdefault(_is_read_otherwise, {})
    if binder_of(root.scope, root.id) is scope:
        return False
    if (scope, root.id) not in known:
        known[scope, root.id] = {
            Index if isinstance(each, Attr) and hasattr(dict, each.name) else type(each)
            for each in nodes_in(statements(scope.body))
            if isinstance(each, (Attr, Index)) and isinstance(each.value, Name)
            if each.value.id == root.id
        }
    ways = known[scope, root.id]
    return bool(ways) and type(_first_read(node)) not in ways


def _first_read(node: Attr | Index) -> Expr:
    """What is read of the name itself: ``cfg.train`` of ``cfg.train["seed"]``."""
    first: Expr = node
    while isinstance(first, (Attr, Index)) and not isinstance(first.value, Name):
        first = first.value
    return first


def _collects(scope: Scope, name: str) -> bool:
    """Whether the name is a function's ``*args`` or ``**kwargs``, which have no settings."""
    return isinstance(scope, Function) and any(
        param.name == name and param.is_star for param in scope.params
    )


def _scope_of(binding: Binding) -> Scope | None:
    return binding.stmt.scope if binding.stmt is not None else None


def _tainted_name(function: Function, name: str) -> bool:
    """Whether a parameter is given a rank's own value before use."""
    return any(
        binding.how != "param" and binding.value is not None and _is_ranks_own(binding.value)
        for binding in function.bindings.get(name, ())
    )


def _is_tainted(model: Model, module: Module, node: Attr | Index) -> bool:
    """Whether some ``args.seed = args.seed + rank`` makes the setting differ between ranks."""
    program = model.project.program_of(module)
    if isinstance(node, Attr):
        stores = model.project.stores_near(node.name, node.scope)
    else:
        stores = [
            store
            for scope in module.facts.scopes
            for store in scope.stores
            if isinstance(store.target, Index) and same(store.target.key, node.key)
        ]
    return any(
        store.value is not None
        and _is_ranks_own(store.value)
        and model.project.program_of(model.module_of(store.scope)) == program
        for store in stores
    )


def _is_ranks_own(expr: Expr) -> bool:
    return is_drawn(expr) or any(
        concept.is_mentioned(expr) for concept in (PROCESSES, DEVICES, WORKERS)
    )


def _by_annotation(annotation: Expr | None, otherwise: bool | None) -> bool | None:
    if annotation is None or otherwise is False:
        return otherwise
    return True if isinstance(annotation, Name) and annotation.id == "int" else otherwise


def is_number(model: Model, module: Module, node: Attr | Index) -> bool | None:
    """Whether a configured seed is an int: from argparse, a dataclass, or what is assigned."""
    if isinstance(node, Attr) and not _owners(model, node):
        option = _argparse_default(model, module, node)
        if option is not None:
            return option
    if _is_compared_with_none(model, node):
        return False
    return _is_declared_number(model, node) if isinstance(node, Attr) else None


def _is_compared_with_none(model: Model, node: Attr | Index) -> bool:
    """Whether the file asks somewhere whether the setting is None."""
    root = _root(node)
    return root is not None and any(
        isinstance(part, Compare)
        and any(same(operand, node) for operand in (part.left, *part.rights))
        and any(isinstance(o, Const) and o.value is None for o in (part.left, *part.rights))
        for scope in model.module_of(root.scope).facts.scopes
        for part in nodes_in(statements(scope.body))
    )


def _owners(model: Model, node: Attr) -> set[Class | None]:
    """The classes of the tree whose attribute is read; None among them for one not known."""
    holders = model.flow.values(node.value)
    found: set[Class | None] = {
        one.cls if isinstance(one, Obj) and isinstance(one.cls, Class) else None for one in holders
    }
    declared = _class_of(model, node.value)
    if declared is not None:
        return found - {None} or {declared}
    return found if found != {None} else set()


def _is_declared_number(model: Model, node: Attr) -> bool | None:
    # What a class does not declare, its values tell.
    declared = {
        None if one is None else _field_is_int(one, node.name) for one in _owners(model, node)
    }
    answers = declared - {None}
    for value in model.flow.values(node):
        if isinstance(value, Lit):
            answers.add(_is_int(value.value))
        elif not declared or None in declared:
            answers.add(None)
    return None if None in answers or not answers else False not in answers


def _field_is_int(cls: Class, name: str) -> bool | None:
    for stmt in cls.body:
        if isinstance(stmt, Declare) and isinstance(stmt.target, Name) and stmt.target.id == name:
            named = {one.id for one in walk(stmt.annotation) if isinstance(one, Name)}
            return named == {"int"} or (False if "int" in named else None)
        if isinstance(stmt, Assign) and isinstance(stmt.value, Const):
            target = stmt.targets[0]
            if isinstance(target, Name) and target.id == name:
                return _is_int(stmt.value.value)
    return None


def _is_int(value: object) -> bool | None:
    """Whether a literal is an int; None if it is something else that no seed can be."""
    return type(value) is int if value is None or type(value) is int else None


def _argparse_default(model: Model, module: Module, read: Attr) -> bool | None:
    """Whether ``add_argument("--seed", …)`` gives an int; False for a default of None."""
    program = model.project.program_of(module)
    for call in options_of(model, program, read):
        default, required = call.keyword("default"), call.keyword("required")
        if default is None:
            return isinstance(required, Const) and bool(required.value)
        if isinstance(default, Const):
            return isinstance(default.value, int)
        kind = call.keyword("type")
        return True if kind is not None and last_name(kind) == "int" else None
    return None


# --------------------------------------------------------------------------- handed over


class _Held(NamedTuple):
    """A parameter, or what the constructor keeps of one, as a scope can name it."""

    code: str
    function: Function
    param: Param


def _handed_over(model: Model, module: Module, scope: Scope) -> Iterator[Seed]:
    """The seed in a configuration that the scope was given under a name of its own."""
    program = model.project.program_of(module)
    # Only now are the files parsed that seed.
    holders = [held for held in _held(scope) if _may_hold(model, held)]
    if not holders:
        return
    read = [
        node
        for item in spelled_seedings(model, program)
        for arg in item.call.args
        for step in origins(model.flow, arg.value, Hop.ASSIGNED)
        for node in walk(step.expr)
        if isinstance(node, Attr) and is_seed_name(node.name) and dotted(node) is not None
    ]
    read = [node for node in read if not _is_tainted(model, module, node)]
    for held in holders if read else ():
        found: dict[str, set[bool | None]] = {}
        for node in read:
            tail = _declared_tail(model, held.param, node)
            if tail is None and _is_given(model, held, node):
                tail = node.name
            if tail is not None:
                found.setdefault(tail, set()).add(is_number(model, module, node))
        for tail, numbers in found.items():
            number = False if False in numbers else None if None in numbers else True
            yield Seed(f"{held.code}.{tail}", number)


def _held(scope: Scope) -> Iterator[_Held]:
    owner: Scope | None = scope
    while isinstance(owner, Function):
        for param in owner.params:
            if not param.is_star and len(owner.bindings[param.name]) == 1:
                yield _Held(param.name, owner, param)
        init = owner.cls.method("__init__") if owner.cls is not None else None
        if init is not None and init is not owner and owner.self_name is not None:
            yield from _kept(init, owner.self_name)
        owner = owner.outer


def _kept(init: Function, me: str) -> Iterator[_Held]:
    """The parameters that the constructor keeps as they are."""
    for store in init.stores:
        target, value = store.target, store.value
        if (
            isinstance(target, Attr)
            and self_class(target.value) is not None
            and isinstance(value, Name)
            and len(init.bindings.get(value.id, ())) == 1
        ):
            param = init.param(value.id)
            if param is not None and not param.is_star:
                yield _Held(f"{me}.{target.name}", init, param)


def _declared_tail(model: Model, param: Param, node: Attr) -> str | None:
    """How to get at what ``node`` reads from a parameter that is declared to be its owner."""
    wanted = _annotated(model, param.annotation)
    if wanted is None:
        return None
    tail = node.name
    owner = node.value
    while True:
        cls = _class_of(model, owner)
        if cls is not None and (
            cls is wanted or wanted in model.flow.mro(cls) or cls in model.flow.mro(wanted)
        ):
            return tail
        if not isinstance(owner, Attr):
            return None
        tail = f"{owner.name}.{tail}"
        owner = owner.value


def _class_of(model: Model, expr: Expr) -> Class | None:
    """The class of the tree that the expression is declared to be an object of."""
    if isinstance(expr, Attr):
        cls = _class_of(model, expr.value)
        return _field_class(model, cls, expr.name) if cls is not None else None
    if not isinstance(expr, Name):
        return None
    function = expr.scope
    param = function.param(expr.id) if isinstance(function, Function) else None
    if param is not None:
        return _annotated(model, param.annotation)
    classes = {v.cls for v in model.flow.values(expr) if isinstance(v, Obj)}
    found = next(iter(classes), None)
    return found if len(classes) == 1 and isinstance(found, Class) else None


def _field_class(model: Model, cls: Class, name: str) -> Class | None:
    """The class of a field, as the class body declares or makes it."""
    for base in model.flow.mro(cls):
        for stmt in base.body if isinstance(base, Class) else ():
            if isinstance(stmt, Declare):
                target, says = stmt.target, stmt.annotation
            elif isinstance(stmt, Assign) and isinstance(stmt.value, Call):
                target = stmt.targets[0]
                says = stmt.value.keyword("default_factory") or stmt.value.func
            else:
                continue
            if isinstance(target, Name) and target.id == name:
                return _annotated(model, says)
    return None


def _annotated(model: Model, annotation: Expr | None) -> Class | None:
    """The one class of the tree in an annotation (``Config``, ``Config | None``)."""
    if annotation is None:
        return None
    classes = {
        value.cls
        for node in walk(annotation)
        if isinstance(node, (Name, Attr))
        for value in model.flow.values(node)
        if isinstance(value, ClassRef)
    }
    return next(iter(classes)) if len(classes) == 1 else None


def _may_hold(model: Model, held: _Held) -> bool:
    """Whether enough is known of a parameter to tell that the seed is in it."""
    return _annotated(model, held.param.annotation) is not None or bool(_given(model, held))


def _given(model: Model, held: _Held) -> list[tuple[Call, Name | Attr]]:
    """What each caller hands over by a name; nothing if one of them does not."""
    found = []
    for call in model.flow.callers(held.function):
        if is_test(model.module_of(call.scope)):
            continue
        given = passed(held.function, held.param, call)
        if not isinstance(given, (Name, Attr)) or dotted(given) is None:
            return []
        found.append((call, given))
    return found


def _is_given(model: Model, held: _Held, node: Attr) -> bool:
    """Whether every caller hands over the very thing that ``node`` reads the seed of."""
    found = _given(model, held)
    return bool(found) and all(is_one_value(model.flow, one, node.value) for _, one in found)
