"""Statements that assign nothing, to nobody, to the wrong name, or in the wrong method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint.analysis.origins import part_of
from sampler_lint.domain.concepts import GIVES_STATE, PROTOCOL, RANK, RESTORES, WORLD_SIZE, Concept
from sampler_lint.domain.model import Model
from sampler_lint.domain.ranks import kinds, kinds_of_part
from sampler_lint.edits.editor import Editor, replacing
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp404_misdirected_assignment.attributes import read_by
from sampler_lint.rules.smp404_misdirected_assignment.draws import name_reads
from sampler_lint.syntax.navigation import (
    alternatives,
    nodes_in,
    same,
    self_class,
    self_stores,
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
    Declare,
    Expr,
    ExprStmt,
    For,
    Function,
    Map,
    Name,
    Node,
    Stmt,
    Store,
    While,
    last_name,
)
from sampler_lint.workspace.project import Module

# Local variables that nothing reads, named like an attribute of the sampler.


def lost_locals(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """A local that nothing reads, named like an attribute that the class reads."""
    wanted = read_by(model, cls) & model.attributes(cls).names
    wanted -= {method.name for method in cls.methods}
    for function in cls.methods:
        if function.self_name is None or function.is_static:
            continue
        for stmt in statements(function.body):
            if not isinstance(stmt, Assign) or len(stmt.targets) != 1:
                continue
            target = stmt.targets[0]
            if (
                isinstance(target, Name)
                and target.id in wanted
                and target.id in function.bindings
                and _is_lost(module, function, stmt, target.id)
            ):
                yield _local(module, cls, function, stmt, target)


def _is_lost(module: Module, function: Function, stmt: Assign, name: str) -> bool:
    """Whether nothing reads the local after it is assigned, and it is no leftover.

    A name that is read earlier may have served its turn, unless what was read went to the
    attribute of that name, which this assignment was to correct.
    """
    inner = module.facts.inside(function)
    reads = [read for scope in (function, *inner) for read in name_reads(scope, name)]
    if not function.called.isdisjoint({"locals", "eval", "exec"}):
        return False
    loops = [outer for outer in stmt.ancestors() if isinstance(outer, (For, While))]
    for read in reads:
        if read is stmt:
            continue
        if read.scope is not function or read.order > stmt.order:
            return False
        if any(loop.encloses(read) for loop in loops):
            return False
        early = any(
            isinstance(store.target, Attr)
            and store.target.name == name
            and isinstance(store.value, Name)
            and store.value.id == name
            and store.stmt.order < stmt.order
            for store in function.stores
        )
        if not early:
            return False
    return not any(
        isinstance(store.target, Attr)
        and store.target.name == name
        and store.stmt.order > stmt.order
        for store in function.stores
    )


def _local(module: Module, cls: Class, function: Function, stmt: Assign, target: Name) -> Suspect:
    receiver = function.self_name
    message = (
        f"`{cls.name}.{function.name}` assigns a local `{target.id}` that nothing reads, not "
        f"`{receiver}.{target.id}`"
    )
    is_setter = function.name.startswith("set_") and any(
        isinstance(node, Name) and function.param(node.id) for node in walk(stmt.value)
    )
    applicability = Applicability.SAFE if is_setter else Applicability.UNSAFE
    meant = f"{receiver}.{target.id}"
    fix = replacing(target, meant, f"Assign `{meant}`", applicability, "a local may be left over")
    effect = f"`{meant}`, which the sampler reads, keeps its old value"
    return Suspect(module, target, message, fix=fix, effect=effect, advice=f"assign `{meant}`")


# Statements of a sampler's setter that look like an assignment and assign nothing.


def no_effect(module: Module, cls: Class) -> Iterator[Suspect]:
    """``self.x == value``, ``self.x: value`` and ``self.x = self.x`` in the class's setters."""
    for method in cls.methods:
        if not method.name.startswith("set_"):
            continue
        stored = {s.target.name for s in method.stores if isinstance(s.target, Attr)}
        for stmt in statements(method.body):
            found = _meant_assignment(method, stmt)
            if found is None:
                continue
            target, value = found
            if self_class(target.value) is cls and (
                target.name not in stored or isinstance(stmt, Assign)
            ):
                yield _assigns_nothing(module, cls, method, stmt, target, value)


def _meant_assignment(method: Function, stmt: Stmt) -> tuple[Attr, Expr | str] | None:
    """The attribute and the value that it was to get."""
    if isinstance(stmt, ExprStmt) and isinstance(stmt.value, Compare):
        compare = stmt.value
        if compare.ops == ["Eq"] and isinstance(compare.left, Attr):
            return compare.left, compare.rights[0]
    elif isinstance(stmt, Declare) and isinstance(stmt.target, Attr):
        note = stmt.annotation
        if isinstance(note, Name) and method.param(note.id) is not None:
            return stmt.target, note
    elif isinstance(stmt, Assign) and len(stmt.targets) == 1:
        target, value = stmt.targets[0], stmt.value
        if isinstance(target, Attr) and same(target, value) and _is_idle(method, target.name):
            return target, target.name
    return None


def _is_idle(method: Function, name: str) -> bool:
    """Whether a parameter of that name is given and never read."""
    return method.param(name) is not None and not any(
        isinstance(node, Name) and node.id == name for node in nodes_in(statements(method.body))
    )


def _assigns_nothing(
    module: Module, cls: Class, method: Function, stmt: Stmt, target: Attr, value: Expr | str
) -> Suspect:
    source = module.source
    shown = text_of(source, target)
    meant = f"{shown} = {value if isinstance(value, str) else text_of(source, value)}"
    return Suspect(
        module,
        stmt,
        f"this line of `{cls.name}.{method.name}` assigns nothing",
        fix=replacing(stmt, meant, f"Write `{meant}`"),
        effect=f"`{shown}` keeps its old value",
        advice=f"write `{meant}`",
    )


# A rank where the number of processes belongs, or the other way round.


class _Kind(NamedTuple):
    """What a name says, and how that is called."""

    concept: Concept
    name: str
    words: str


_RANK = _Kind(RANK, "rank", "the rank of this process")
_SIZE = _Kind(WORLD_SIZE, "world size", "the number of processes")


def confused_places(model: Model) -> Iterator[Suspect]:
    """``rank = get_world_size()`` and ``num_replicas=get_rank()``, where a name says what it is.

    Also by the name of what is given, unless that is known to hold the other one.
    """
    for module in model.modules:
        told: set[Stmt] = set()
        for name, kept in _kept(module):
            if kept.stmt is None or kept.stmt in told or kept.value is None:
                continue
            value = part_of(kept.value, kept.path)
            if value is None:
                found = _unpacked(model, name, kept.value, kept.path)
                shown = kept.value
            else:
                shown, found = next(_given(model, name, value), (value, None))
            if found is not None:
                told.add(kept.stmt)
                yield _confused(module, name, shown, found, kept.stmt)
        for call in module.facts.all_calls:
            for arg in call.args:
                if arg.keyword is not None and _kinds_named(arg.keyword) is not None:
                    for value, found in _given(model, arg.keyword, arg.value):
                        yield _confused(module, arg.keyword, value, found, value)


def _kept(module: Module) -> Iterator[tuple[str, Binding | Store]]:
    """What is kept under a name that says one of both."""
    for scope in module.facts.scopes:
        for name, bindings in scope.bindings.items():
            if _kinds_named(name) is not None:
                yield from ((name, each) for each in bindings if each.how == "assign")
        for store in scope.stores:
            if (
                isinstance(store.target, Attr)
                and store.how == "assign"
                and isinstance(store.stmt, Assign)
                and _kinds_named(store.target.name) is not None
            ):
                yield store.target.name, store


def _kinds_named(name: str) -> tuple[_Kind, _Kind] | None:
    """What a name says that it is, and what it must not be then."""
    is_rank, is_size = RANK.says(name), WORLD_SIZE.says(name)
    if is_rank == is_size:
        return None
    return (_RANK, _SIZE) if is_rank else (_SIZE, _RANK)


def _given(model: Model, name: str, value: Expr) -> Iterator[tuple[Expr, _Kind]]:
    """What is given under a name, of what may be chosen, and is the other one."""
    pair = _kinds_named(name)
    if pair is None:
        return
    means, other = pair
    for each in alternatives(value):
        if isinstance(each, Call) and other.concept.is_call(each):
            yield each, other
        elif means.concept.is_call(each) or not isinstance(each, (Attr, Call, Name)):
            continue
        elif (of := kinds(model, each)) == {other.name}:
            if isinstance(each, Call):  # a name that holds it is told where it is kept
                yield each, other
        elif not isinstance(each, Call) and of.isdisjoint({means.name}):
            said = _kinds_named(last_name(each) or "")
            if said is not None and said[0] is other:
                yield each, other


def _unpacked(model: Model, name: str, value: Expr, path: tuple[int, ...]) -> _Kind | None:
    """What a name is, if it is the other one, of what a call gives in parts."""
    pair = _kinds_named(name)
    if pair is None or kinds_of_part(model, value, path) != {pair[1].name}:
        return None
    return pair[1]


def _confused(module: Module, name: str, value: Expr, found: _Kind, place: Node) -> Suspect:
    shown = text_of(module.source, value)
    return Suspect(
        module,
        place,
        f"`{name}` becomes `{shown}`, which is {found.words}",
        effect="the ranks then read other shards than they should, or it fails",
        advice="ask for the rank" if found is _SIZE else "ask for the number of processes",
    )


# A ``state_dict`` that moves the sampler whose state it is asked for.


def moving_getters(module: Module, cls: Class) -> Iterator[Suspect]:
    """A getter of state that moves the sampler to where its caller says it is."""
    loads = {
        store.target.name
        for method in cls.methods
        if RESTORES.says(method.name)
        for store in method.stores
        if isinstance(store.target, Attr)
    }
    used = {
        read.name
        for method in cls.methods
        if method.name in PROTOCOL
        for scope in (method, *module.facts.inside(method))
        for read in scope.reads
        if self_class(read.value) is cls
    }
    for method in cls.methods:
        if not GIVES_STATE.says(method.name) or len(method.params) < 2:
            continue
        if not any(isinstance(r.value, (Map, Name, Call)) for r in method.returns):
            continue
        params = {param.name for param in method.params[1:]}
        for target, store in self_stores([method], cls):
            if (
                target.name in loads & used
                and store.value is not None
                and any(isinstance(n, Name) and n.id in params for n in walk(store.value))
            ):
                yield _moving_getter(module, cls, method, store, target)


def _moving_getter(
    module: Module, cls: Class, method: Function, store: Store, target: Attr
) -> Suspect:
    shown = text_of(module.source, target)

    def fix(editor: Editor) -> Fix | None:
        reads = [r for r in method.reads if same(r, target)]
        bound = method.bindings.get(target.name, [])
        if any(b.how != "param" for b in bound) or any(r.stmt is None for r in reads):
            return None
        later = [
            node
            for stmt in statements(method.body)
            if stmt.order > store.stmt.order
            for node in nodes_in([stmt])
            if isinstance(node, Name) and node.id == target.name
        ]
        if (bound and later) or any(r.stmt and r.stmt.order <= store.stmt.order for r in reads):
            return None
        for node in (target, *reads):
            editor.replace(node, target.name)
        why = "others may read the attribute"
        return editor.fix(f"Use a local `{target.name}`", Applicability.UNSAFE, why)

    return Suspect(
        module,
        target,
        f"`{cls.name}.{method.name}` changes `{shown}`, which `__iter__` or `__len__` reads",
        fix=fix,
        effect="saving a checkpoint changes what the sampler yields next, on the saving ranks only",
        advice="use a local variable",
    )
