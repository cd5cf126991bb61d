"""The call that is missing: where it goes, and what its loop can name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint.analysis.asked import apart
from sampler_lint.analysis.origins import given_by, is_one_object
from sampler_lint.analysis.reaching import is_apart, is_surely_set
from sampler_lint.analysis.values import NONE, Lit, Obj, Unknown, Value
from sampler_lint.domain.concepts import ITERATED
from sampler_lint.domain.epoch_calls import Built, Carrier
from sampler_lint.domain.epochs import EpochLoop, epoch_loops, pass_trains
from sampler_lint.domain.model import Model
from sampler_lint.domain.turns import epoch_expression
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import fresh_name, imported_as, is_unnamed, means_the_same, text_of
from sampler_lint.rules.smp102_epoch_never_set.setters import keeps_given
from sampler_lint.syntax.navigation import binder_of, expressions, statements, walk
from sampler_lint.syntax.nodes import (
    Attr,
    AugAssign,
    Call,
    Class,
    Const,
    Expr,
    For,
    Function,
    Index,
    Loop,
    Name,
    Scope,
    Simple,
    Stmt,
    While,
    last_name,
)
from sampler_lint.workspace.project import Module


class _Counter(NamedTuple):
    """What counts the turns of a loop: its own variable, that variable named, or a new one."""

    loop: Loop
    code: str
    unnamed: Name | None = None
    new: bool = False
    advanced: AugAssign | None = None
    """Where the body of the loop counts on."""

    @property
    def is_kept(self) -> bool:
        """Whether it still counts the turns further down in the body."""
        return all(
            binding.how == "aug" or binding.stmt is self.loop
            for binding in self.loop.scope.bindings.get(self.code, ())
            if binding.stmt is not None and self.loop.encloses(binding.stmt)
        )

    def is_advanced_before(self, found: EpochLoop) -> bool:
        """Whether the body counts on before it comes to the pass, and so has its number."""
        around = (*(call.stmt for call in found.calls), found.inner.stmt)
        place = next((stmt for stmt in around if stmt and self.loop.encloses(stmt)), None)
        return bool(self.advanced and place and self.advanced.order < place.order)

    def write(self, editor: Editor) -> None:
        """Make the counter exist."""
        if self.unnamed is not None:
            editor.replace(self.unnamed, self.code)
        if self.new:
            editor.insert_before(self.loop, f"{self.code} = 0")
            editor.insert_after(self.loop.body[-1], f"{self.code} += 1")


def goes_on_before(loop: Loop, place: int) -> bool:
    """Whether a ``continue`` would leave out the statement of the loop at a place."""
    for stmt in statements(loop.body[:place]):
        if isinstance(stmt, Simple) and stmt.kind == "continue":
            around = next(s for s in stmt.ancestors() if isinstance(s, (For, While)))
            if around is loop:
                return True
    return False


def goes_over_again(model: Model, found: EpochLoop) -> bool:
    """Whether a turn of the loop makes the same pass once more, by another call or in a chain."""
    near = [other for other in epoch_loops(model) if other.inner.stmt is found.inner.stmt]
    sources = {id(o.inner.source) for o in near if o.inner.loader is found.inner.loader}
    for whole in expressions(found.inner.stmt):
        for call in (part for part in walk(whole) if isinstance(part, Call)):
            if (
                last_name(call.func) == "chain"
                and len({id(arg) for arg in call.positional} & sources) > 1
            ):
                return True
    return any(
        other.loop is found.loop
        and (other.calls != found.calls or other.inner != found.inner)
        and (other.inner == found.inner or _is_another(model, found, other))
        and not apart(found.calls, other.calls)
        for other in epoch_loops(model)
    )


def _is_another(model: Model, found: EpochLoop, other: EpochLoop) -> bool:
    """Whether another pass of a turn trains over the very same loader, and both are made."""
    one, two = found.inner, other.inner
    if one.loader is not two.loader or one.stmt is two.stmt:
        return False
    if not isinstance(one.stmt, For) or not isinstance(two.stmt, For):
        return False  # what hands out an iterator makes no pass of its own
    is_made = one.scope is not two.scope or not is_apart(one.stmt, two.stmt)
    return is_made and pass_trains(model, two)


def counter_of(module: Module, loop: Loop) -> _Counter:
    """What counts the loop's turns."""
    epoch = epoch_expression(loop)
    if isinstance(epoch, Name) and is_unnamed(module, epoch):
        return _Counter(loop, fresh_name(loop.scope, "epoch"), unnamed=epoch)
    if epoch is not None:
        return _Counter(loop, text_of(module.source, epoch))
    for advanced, code in _counted_in(loop):
        return _Counter(loop, code, advanced=advanced)
    return _Counter(loop, fresh_name(loop.scope, "epoch"), new=True)


def _counted_in(loop: Loop) -> Iterator[tuple[AugAssign, str]]:
    """The variables that count the turns: set before the loop, and advanced once in each of them.

    Wherever that is, each turn begins with another number.
    """
    for place, stmt in enumerate(loop.body):
        if not isinstance(stmt, AugAssign) or not isinstance(stmt.target, Name):
            continue
        bindings = loop.scope.bindings.get(stmt.target.id, [])
        others = [each for each in bindings if each.stmt is not stmt]
        first = others[0].stmt if len(others) == 1 and others[0].how == "assign" else None
        around = (loop, *loop.ancestors())
        if first is None or first.order > loop.order:
            continue
        if not any(one.block is first.block for one in around):
            continue  # it may not be set
        if stmt.op != "Add" or not _is_int(stmt.value, 1) or not _is_int(others[0].value):
            continue
        if not goes_on_before(loop, place):
            yield stmt, stmt.target.id


def _is_int(expr: Expr | None, value: int | None = None) -> bool:
    known = expr.value if isinstance(expr, Const) else None
    return type(known) is int and value in (None, known)


class Receiver(NamedTuple):
    """How the loop's body can name the sampler."""

    code: str
    guard: str | None
    certain: bool
    before: Stmt | None = None
    """The statement of the body before which it can be named, if that is not its first."""


def receiver_for(model: Model, found: EpochLoop, reached: Carrier) -> Receiver | None:
    """How the body of the loop can name the sampler."""
    loop = found.loop
    module = model.module_of(loop.scope)
    wanted = (reached.sampler.cls, reached.sampler.site)
    names = [
        name
        for name in _names_of(model, loop, wanted)
        if is_surely_set(name, loop) and any(map(reached.sampler.may_be, model.flow.values(name)))
    ]
    # One call may have built several, and which of them is read here its loader knows.
    is_kept = not any(
        isinstance(n, Name) and _is_replaced(loop, n) for n in walk(found.inner.source)
    )
    if names and is_kept and all(is_one_object(model.flow, names[0], name) for name in names):
        return _guarded(model, module, reached, names[0].id, model.flow.values(names[0]))
    for values, base, code in _loader_expressions(model, found):
        loaders = [v for v in values if isinstance(v, Obj) and model.role(v) == "loader"]
        if not any(map(found.inner.loader.may_be, loaders)):
            continue
        before = None
        if any(isinstance(n, Name) and _bound_inside(loop, n) for n in walk(base)):
            before = _pass_in(found)
            if before is None or not _can_be_said_before(before, base):
                continue
        if not all(keeps_given(model, loader, reached.path[0]) for loader in loaders):
            continue
        reachable: set[Value] = set()
        for loader in loaders:
            given = model.passed_to(loader, reached.path[0])
            reachable |= given or {NONE}
        if reached.path == ("batch_sampler", "sampler"):
            reachable = {
                inner
                for value in reachable
                if isinstance(value, Obj)
                for inner in model.flow.ask_field(value, "sampler")
            }
        code = ".".join((code, *reached.path))
        unknown = {v for v in values if isinstance(v, Unknown)}
        receiver = _guarded(
            model, module, reached, code, frozenset(reachable | unknown), attribute=True
        )
        return receiver._replace(before=before)
    return None


def _pass_in(found: EpochLoop) -> Stmt | None:
    """The statement of the loop's own function that makes the pass, in the loop's body."""
    stmt = found.calls[0].stmt if found.calls else found.inner.stmt
    inside = stmt is not None and stmt.scope is found.loop.scope and found.loop.encloses(stmt)
    return stmt if inside and not isinstance(stmt, While) else None


def _can_be_said_before(stmt: Stmt, base: Expr) -> bool:
    """Whether an expression in a statement is the same, and has no effect, directly before it."""
    parts = list(walk(base))
    return all(isinstance(part, (Attr, Const, Index, Name)) for part in parts) and not any(
        binding.stmt is stmt
        for part in parts
        if isinstance(part, Name)
        for binding in part.scope.bindings.get(part.id, ())
    )


def _guarded(
    model: Model,
    module: Module,
    reached: Carrier,
    code: str,
    values: frozenset[Value],
    *,
    attribute: bool = False,
) -> Receiver:
    """The receiver with the guard it needs: none, against None, or against other samplers."""
    others = [
        v
        for v in values
        if not (isinstance(v, Obj) and model.flow.method(v.cls, "set_epoch") is not None)
    ]
    certain = not any(isinstance(v, Unknown) for v in values)
    if not others:
        return Receiver(code, None, certain)
    only_none = all(isinstance(v, Lit) and v.value is None for v in others)
    if only_none and not attribute:
        return Receiver(code, f"if {code} is not None:", certain)
    # torch puts another sampler where none is given.
    known = imported_as(module, "DistributedSampler")
    if known is not None and known in module.facts.bindings and not reached.is_data:
        return Receiver(code, f"if isinstance({code}, {known}):", certain)
    quote = module.source.quote
    return Receiver(code, f"if hasattr({code}, {quote}set_epoch{quote}):", certain)


def _names_of(model: Model, loop: Loop, wanted: Built) -> Iterator[Name]:
    """Local (and, in a script, global) names that say what they are and may hold the one wanted."""
    known: dict[Scope, dict[Built, list[Name]]] = model.memo.setdefault(_names_of, {})
    current: Scope | None = loop.scope
    while current is not None:
        if isinstance(current, Class) and current is not loop.scope:
            return  # no method sees the names of its class's body
        if current not in known:
            known[current] = {}
            for name in _called_so(current):
                for built in _built(model, name):
                    known[current].setdefault(built, []).append(name)
        for name in known[current].get(wanted, ()):
            here = _read_at(loop, name.id, current) if current is loop.scope else name
            if wanted in _built(model, here):
                yield here
        current = None if isinstance(current, Class) else current.outer


def _built(model: Model, name: Name) -> set[Built]:
    return {(v.cls, v.site) for v in model.flow.values(name) if isinstance(v, Obj)}


def _read_at(stmt: Stmt | None, name: str, scope: Scope) -> Name:
    """A variable of a scope as one of its statements would read it; as any, without one."""
    node = Name()
    node.id, node.scope, node.stmt = name, scope, stmt
    node.row = node.col = node.end_row = node.end_col = 0
    return node


def _called_so(scope: Scope) -> Iterator[Name]:
    for name, bindings in scope.bindings.items():
        if ITERATED.says(name) and any(b.is_plain for b in bindings):
            yield _read_at(None, name, scope)


def _loader_expressions(
    model: Model, found: EpochLoop
) -> Iterator[tuple[frozenset[Value], Expr, str]]:
    """What may hold the loader and can be said in the loop's own body: what it may be.

    Each with the expression in the loop that it begins with, and its code.
    """
    source = model.module_of(found.loop.scope).source
    if not found.calls:
        inner = found.inner.source
        if not means_the_same(inner, found.loop.scope):
            return  # what is iterated here was said in another method, perhaps of another file
        values, code = model.flow.values(inner), text_of(source, inner)
        yield values, inner, code
        for wrapper in values if isinstance(inner, (Name, Attr)) and len(values) == 1 else ():
            if isinstance(wrapper, Obj) and isinstance(wrapper.cls, Class):
                for name in sorted(model.attributes(wrapper.cls).names):
                    if name.startswith("__"):
                        continue  # it has another name outside of its class
                    yield frozenset(model.flow.ask_field(wrapper, name)), inner, f"{code}.{name}"
        return
    shared = found.inner.source
    if found.inner.scope.module is found.loop.scope.module and _is_kept(found, shared):
        yield model.flow.values(shared), shared, text_of(source, shared)
    call = found.calls[0]
    for arg in call.args:
        # A `partial` adds arguments that were written in another scope.
        if isinstance(arg.value, (Name, Attr)) and means_the_same(arg.value, call.scope):
            yield model.flow.values(arg.value), arg.value, text_of(source, arg.value)
    if len(found.calls) == 1:
        names = _attributes(found.inner.source)
        given = _given_for_base(model, found, call)
        if names and isinstance(given, (Name, Attr)) and means_the_same(given, call.scope):
            code = ".".join((text_of(source, given), *names))
            yield model.flow.values(found.inner.source), given, code
    loader = found.inner.loader
    for held in _names_of(model, found.loop, (loader.cls, loader.site)):
        if is_surely_set(held, found.loop):
            yield model.flow.values(held), held, held.id


def _is_kept(found: EpochLoop, expr: Expr) -> bool:
    """Whether a variable that a function reads is one of the loop's, too, and no call sets it."""
    return (
        isinstance(expr, (Name, Attr))
        and means_the_same(expr, found.loop.scope)
        and not any(
            binding.stmt is not None
            and binding.stmt.scope is not found.loop.scope
            and binding.stmt.scope in found.scopes
            for name in walk(expr)
            if isinstance(name, Name)
            for binding in (binder_of(name.scope, name.id) or name.scope).bindings.get(name.id, ())
        )
    )


def _attributes(expr: Expr) -> list[str]:
    """The names ``b``, ``c`` of ``a.b.c``; none for anything else."""
    names: list[str] = []
    while isinstance(expr, Attr):
        names.append(expr.name)
        expr = expr.value
    return names[::-1] if isinstance(expr, Name) else []


def _given_for_base(model: Model, found: EpochLoop, call: Call) -> Expr | None:
    """What the loop's call passes for the ``a`` of ``a.loader`` in the function with the pass."""
    function, base = found.inner.scope, found.inner.source
    while isinstance(base, Attr):
        base = base.value
    if not isinstance(function, Function) or not isinstance(base, Name):
        return None
    if function.self_name == base.id:
        return call.func.value if isinstance(call.func, Attr) else None
    return given_by(model.flow, call, base)


def _bound_inside(loop: Loop, name: Name) -> bool:
    return True in _bound(loop, name)


def _is_replaced(loop: Loop, name: Name) -> bool:
    """Whether a turn may give a variable another value than it had before the loop."""
    return _bound(loop, name) == {True, False}


def _bound(loop: Loop, name: Name) -> set[bool]:
    """Whether the assignments to a variable are inside the loop."""
    return {
        binding.stmt is not None and binding.stmt is not loop and loop.encloses(binding.stmt)
        for binding in name.scope.bindings.get(name.id, ())
    }
