"""SMP102: an epoch loop over a shuffling distributed sampler never calls ``set_epoch``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint.analysis.arguments import passed
from sampler_lint.analysis.points_to import Lit, Obj, Unknown, Value
from sampler_lint.domain.concepts import EPOCH, SAMPLER, SETS_EPOCH
from sampler_lint.domain.conditions import contradict
from sampler_lint.domain.epoch_calls import (
    Built,
    Carrier,
    EpochSet,
    EpochSets,
    called_epoch_sets,
    epoch_samplers,
    may_act_in,
    runs_in,
    sets_epoch_itself,
)
from sampler_lint.domain.epochs import (
    EpochLoop,
    epoch_expression,
    epoch_loops,
    trains,
)
from sampler_lint.domain.model import Model
from sampler_lint.domain.samplers import (
    is_distributed_sampler,
    shuffle_choice,
    shuffles,
    shuffles_by_epoch,
)
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import fresh_name, imported_as, means_the_same, text_of
from sampler_lint.findings import Applicability, Fix, Grade, Related, Severity
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.nodes import (
    Attr,
    Call,
    Class,
    Expr,
    For,
    Function,
    If,
    Loop,
    Name,
    Scope,
    Simple,
    Stmt,
    While,
    self_class,
    statements,
    unparse,
    walk,
)
from sampler_lint.workspace.project import Module


class EpochNeverSet(Rule):
    """An epoch loop trains over a shuffling `DistributedSampler` whose `set_epoch` is never called.

    What it does:
        Follows each loader built with a shuffling `DistributedSampler` to the loops that
        iterate it, through functions, attributes and files, and reports an epoch loop on whose
        way nothing calls `set_epoch` on that sampler. Silent with `shuffle=False`, where the
        loader is rebuilt each epoch, where a wrapper or framework sets the epoch, and where a
        `set_epoch` call might reach the sampler. Likely where only whether it shuffles is not
        known; a warning where a setting chooses.

    Why is this bad?
        `DistributedSampler` seeds its shuffle with `seed + epoch`, and `epoch` stays 0: every
        epoch hands every rank the same samples in the same order. Training goes on, only worse.

    Fix safety:
        Safe: `set_epoch(epoch)` is inserted as the first statement of the loop, on the sampler
        variable in scope or through the loader, guarded where the sampler may be `None` or
        another one. A loop that does not count its turns gets a counter. Unsafe where the
        loader may also be one that is not known. No fix where a loop over steps starts the
        loader again, where a `continue` would skip the counter, or where the loop sets a wrong
        attribute of the sampler: that is SMP404's to fix.

    How it is proved:
        Invariant `reshuffles`: on two gloo ranks the epochs have one order before the fix and
        different orders after it.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__` and `set_epoch`
        - https://github.com/pytorch/pytorch/issues/31771
    """

    code = "SMP102"
    name = "epoch-never-set"
    invariant = "reshuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each epoch loop once for every sampler that it iterates."""
        if not any(is_distributed_sampler(model, obj) for obj in model.constructions()):
            return
        seen = set()
        for found in epoch_loops(model):
            for reached in epoch_samplers(model, found.inner.loader):
                if not is_distributed_sampler(model, reached.sampler):
                    continue
                key = (found.loop, reached.sampler.site)
                if key in seen or _is_left_out(model, found, reached.sampler):
                    continue
                veto = _veto(model, found, reached)
                if veto is not None and not veto.beside:
                    model.silent(self.code, found.loop.scope, found.loop, veto.reason)
                    model.silent(self.code, found.inner.scope, found.inner.stmt, veto.reason)
                    continue
                if veto is None:
                    seen.add(key)
                yield _suspect(model, found, reached, veto)


def _is_left_out(model: Model, found: EpochLoop, sampler: Obj) -> bool:
    """Whether this sampler is built in a branch that is not taken in a run with this loop.

    The loader's own factory call takes another, or the loop stands in one that excludes it.
    """
    through = found.inner.loader.through
    site = sampler.site
    built = [call for call in (site, found.inner.loader.site, through) if call is not None]
    if contradict(model, built, [found.loop, found.inner.stmt, *found.calls]):
        return True
    if through is None or site is None or site.stmt is None:
        return False
    inner = site.stmt
    for stmt in site.stmt.ancestors():
        if isinstance(stmt, If):
            answers = model.flow.constants(stmt.test, through)
            if answers is not None and len(answers) == 1:
                taken = stmt.body if next(iter(answers)) else stmt.orelse
                if not any(part.encloses(inner) for part in taken):
                    return True
    return False


# --------------------------------------------------------------------------- who sets the epoch


class _Veto(NamedTuple):
    """Why a loop is, or may be, right."""

    reason: str
    beside: bool = False
    """Whether it says only that something beside the loop is not known: the bug is likely."""


def _veto(model: Model, found: EpochLoop, reached: Carrier) -> _Veto | None:
    """Why the loop is (or may be) right; None when it certainly is not."""
    sampler = f"the {reached.sampler.name} of {model.place_of(reached.sampler)}"
    does = shuffles(model, reached.sampler, found.inner.loader.through)
    if does is False:
        return _Veto(f"{sampler} does not shuffle")
    if not trains(model, found):
        return _Veto("no optimizer step is seen in this pass: it may only evaluate")
    setter = _may_be_set(model, found, reached)
    if setter is not None and setter.misses:
        who = f"{setter.who} tries to set the epoch"
        return _Veto(f"{who}, and does not reach {sampler} (see there)")
    if setter is not None:
        return _Veto(f"{setter.who} sets (or may set) the epoch of {sampler}")
    if does is None:
        beside = shuffles_by_epoch(model, reached.sampler, found.inner.loader.through)
        return _Veto(f"whether {sampler} shuffles is not known", beside)
    return None


class _Setter(NamedTuple):
    """What may set the epoch of a sampler."""

    who: str
    misses: bool = False
    """Whether it certainly does not, though it is meant to: another rule tells of it."""


def _may_be_set(model: Model, found: EpochLoop, reached: Carrier) -> _Setter | None:
    """What may set the epoch of the sampler."""
    ours = {
        obj
        for obj in (
            reached.sampler,
            found.inner.loader,
            *model.passed_to(found.inner.loader, "sampler"),
            *model.passed_to(found.inner.loader, "batch_sampler"),
            *model.passed_to(found.inner.loader, "dataset"),
        )
        if isinstance(obj, Obj)
    }
    for cls in {obj.cls for obj in ours}:
        if isinstance(cls, Class) and sets_epoch_itself(model, found, cls):
            return _Setter(f"{cls.name} itself")
    near = {scope.module for scope in found.scopes}
    near.update(obj.site.scope.module for obj in ours if obj.site is not None)
    built = {(obj.cls, obj.site) for obj in ours}
    for scope, node, receiver in _epoch_sets(model).concerning(built, near):
        if not may_act_in(model, found, scope, node):
            continue
        values = model.flow.values(receiver)
        place = _Setter(str(model.place(scope, node)), _misses(model, receiver, reached))
        if any(obj.may_be(value) for obj in ours for value in values):
            return place
        forwards = isinstance(scope, Function) and SETS_EPOCH.says(scope.name)
        if not forwards and scope.module in near:
            if any(isinstance(v, Obj) and _forwards(model, v) for v in values):
                return place
            if not values or any(not isinstance(v, (Obj, Lit)) for v in values):
                return place
            if any(isinstance(v, Obj) and v.site is None for v in values):
                return place
    for scope, node, _ in _epoch_sets(model).unclear():
        forwards = isinstance(scope, Function) and "set_epoch" in scope.name
        if not forwards and runs_in(model, found.loop, scope):
            return _Setter(str(model.place(scope, node)))
    return None


def _misses(model: Model, receiver: Expr, reached: Carrier) -> bool:
    """Whether it is the ``.sampler`` of a loader with a batch sampler, which nothing reads."""
    return (
        isinstance(receiver, Attr)
        and receiver.name == "sampler"
        and reached.path[:1] == ("batch_sampler",)
        and any(
            isinstance(loader, Obj)
            and model.role(loader) == "loader"
            and any(isinstance(given, Obj) for given in model.passed_to(loader, "batch_sampler"))
            for loader in model.flow.values(receiver.value)
        )
    )


def _forwards(model: Model, value: Obj) -> bool:
    """Whether an object is a holder whose own ``set_epoch`` may reach any sampler."""
    return (
        isinstance(value.cls, Class)
        and model.role(value) is None
        and isinstance(model.flow.method(value.cls, "set_epoch"), Function)
    )


def _epoch_sets(model: Model) -> EpochSets:
    """Every ``x.set_epoch`` and every ``x.sampler.epoch = …`` from outside."""
    known: EpochSets | None = model.memo.get(_epoch_sets)
    if known is None:
        places = list(called_epoch_sets(model))
        places += (EpochSet(*kept) for kept in model.epoch_setters_kept)
        for store in model.project.stores_of("epoch"):
            assert isinstance(store.target, Attr)
            if self_class(store.target.value) is not None:
                continue
            if SAMPLER.says(unparse(store.target.value)):
                places.append(EpochSet(store.scope, store.stmt, store.target.value))
        known = model.memo[_epoch_sets] = EpochSets(model, places)
    return known


# --------------------------------------------------------------------------- finding and fix


def _suspect(model: Model, found: EpochLoop, reached: Carrier, doubt: _Veto | None) -> Suspect:
    suspect = _told(model, found, reached)
    if doubt is not None:
        suspect.grade = Grade.LIKELY
        suspect.message += f" (but {doubt.reason})"
    return suspect


def _told(model: Model, found: EpochLoop, reached: Carrier) -> Suspect:
    module = model.module_of(found.loop.scope)
    loop = found.loop
    receiver = _receiver(model, found, reached)
    counter = _counter(module, loop)
    where = "the sampler itself"
    if _leads_to(model, found.inner.source, reached):
        where = f"`{'.'.join((unparse(found.inner.source), *reached.path))}`"
    if found.is_restart:
        message = (
            f"the loader is started again here with its shuffling `{reached.sampler.name}` still "
            f"at epoch 0: every pass repeats one order; count the passes and call `set_epoch` on "
            f"{where} before this line"
        )
        built = Related(model.place_of(reached.sampler), "sampler built here")
        inner = found.inner
        return Suspect(model.module_of(inner.scope), inner.stmt, message, why=(built,))
    message = (
        f"this loop trains over a shuffling `{reached.sampler.name}` and nothing calls its "
        f"`set_epoch`: every epoch repeats the order of epoch 0"
    )
    choice = shuffle_choice(model, reached.sampler, found.inner.loader.through)
    if choice is not None:
        message += f" (when `{unparse(choice)}` is true)"
    if receiver is not None:
        message += f"; call `{receiver.code}.set_epoch({counter.code})` first in each turn"
        if receiver.guard is not None and not receiver.guard.endswith("is not None:"):
            message += ", where it has one"
    else:
        message += f"; call `set_epoch` on {where} in each epoch"
    why = [Related(model.place_of(reached.sampler), "sampler built here")]
    if reached.path:
        what = "loader" if model.role(found.inner.loader) == "loader" else "batch sampler"
        why.append(Related(model.place_of(found.inner.loader), f"handed to this {what}"))
    if found.calls:
        why.append(Related(model.place(found.inner.scope, found.inner.stmt), "iterated here"))

    def fix(editor: Editor) -> Fix | None:
        if receiver is None or (counter.new and _skips_its_end(loop)):
            return None
        if _tries_to_set(loop, receiver.code):
            return None
        line = f"{receiver.code}.set_epoch({counter.code})"
        guard = receiver.guard
        lines = [line] if guard is None else [guard, editor.source.indent + line]
        counter.write(editor.insert_first(loop, *lines))
        safe = Applicability.SAFE if receiver.certain else Applicability.UNSAFE
        return editor.fix(f"Call `{line}` in the loop", safe)

    header_end = loop.iter if isinstance(loop, For) else loop.test
    suspect = Suspect(module, loop, message, end=header_end, why=tuple(why), fix=fix)
    if choice is not None:
        suspect.severity = Severity.WARNING
    return suspect


def _leads_to(model: Model, source: Expr, reached: Carrier) -> bool:
    """Whether what is iterated is (or may be) a loader whose attributes lead to the sampler.

    A wrapper of the tree has none of them, and one that has them may say something else.
    """
    return not reached.path or all(
        not isinstance(value, Obj)
        or model.role(value) == "batch_sampler"
        or _keeps_given(model, value, reached.path[0])
        for value in model.flow.values(source)
    )


def _keeps_given(model: Model, loader: Obj, attribute: str) -> bool:
    """Whether it is a loader whose attribute is what it was given."""
    return model.role(loader) == "loader" and not (
        isinstance(loader.cls, Class)
        and any(
            isinstance(base, Class) and attribute in base.bindings
            for base in model.flow.mro(loader.cls)
        )
    )


def _tries_to_set(loop: Loop, sampler: str) -> bool:
    """Whether the loop sets a wrong attribute of the sampler, which SMP404 fixes."""
    return any(
        isinstance(store.target, Attr)
        and EPOCH.names(store.target)
        and unparse(store.target.value) == sampler
        for store in loop.scope.stores_in(loop)
    )


class _Counter(NamedTuple):
    """What counts the turns of a loop: its own variable, that variable named, or a new one."""

    loop: Loop
    code: str
    unnamed: Name | None = None
    new: bool = False

    def write(self, editor: Editor) -> None:
        """Make the counter exist."""
        if self.unnamed is not None:
            editor.replace(self.unnamed, self.code)
        if self.new:
            editor.insert_before(self.loop, f"{self.code} = 0")
            editor.insert_after(self.loop.body[-1], f"{self.code} += 1")


def _skips_its_end(loop: Loop) -> bool:
    """Whether a ``continue`` would leave out what stands last in the loop."""
    for stmt in statements(loop.body):
        if isinstance(stmt, Simple) and stmt.kind == "continue":
            around = next(s for s in stmt.ancestors() if isinstance(s, (For, While)))
            if around is loop:
                return True
    return False


def _counter(module: Module, loop: Loop) -> _Counter:
    epoch = epoch_expression(loop)
    if isinstance(epoch, Name) and epoch.id.startswith("_"):
        return _Counter(loop, fresh_name(loop.scope, "epoch"), unnamed=epoch)
    if epoch is not None:
        return _Counter(loop, text_of(module.source, epoch))
    return _Counter(loop, fresh_name(loop.scope, "epoch"), new=True)


class _Receiver(NamedTuple):
    """How the loop's body can name the sampler."""

    code: str
    guard: str | None
    certain: bool


def _receiver(model: Model, found: EpochLoop, reached: Carrier) -> _Receiver | None:
    loop = found.loop
    module = model.module_of(loop.scope)
    wanted = (reached.sampler.cls, reached.sampler.site)
    for name in _sampler_names(model, loop, wanted):
        if _set_before(loop.scope, name, loop):
            values = model.flow.values(name)
            return _guarded(model, module, loop.scope, name.id, values)
    for expr, base, code in _loader_expressions(model, found):
        values = model.flow.values(expr)
        loaders = [v for v in values if isinstance(v, Obj) and model.role(v) == "loader"]
        if not any(
            (v.cls, v.site) == (found.inner.loader.cls, found.inner.loader.site) for v in loaders
        ):
            continue
        if any(isinstance(n, Name) and _bound_inside(loop, n) for n in walk(base)):
            continue
        if not all(_keeps_given(model, loader, reached.path[0]) for loader in loaders):
            continue
        reachable: set[Value] = set()
        for loader in loaders:
            for attribute in ("sampler", "batch_sampler"):
                if attribute == reached.path[0]:
                    given = model.passed_to(loader, attribute)
                    reachable |= given or {Lit(None, "NoneType")}
        if reached.path == ("batch_sampler", "sampler"):
            reachable = {
                inner
                for value in reachable
                if isinstance(value, Obj)
                for inner in model.flow.ask_field(value, "sampler")
            }
        code = ".".join((code, *reached.path))
        unknown = {v for v in values if isinstance(v, Unknown)}
        return _guarded(
            model, module, loop.scope, code, frozenset(reachable | unknown), attribute=True
        )
    return None


def _guarded(
    model: Model,
    module: Module,
    scope: Scope,
    code: str,
    values: frozenset[Value],
    *,
    attribute: bool = False,
) -> _Receiver:
    """The receiver with the guard it needs: none, against None, or against other samplers."""
    others = [
        v
        for v in values
        if not (isinstance(v, Obj) and model.flow.method(v.cls, "set_epoch") is not None)
    ]
    certain = not any(isinstance(v, Unknown) for v in values)
    if not others:
        return _Receiver(code, None, certain)
    only_none = all(isinstance(v, Lit) and v.value is None for v in others)
    if only_none and not attribute:
        return _Receiver(code, f"if {code} is not None:", certain)
    # torch puts another sampler where none is given.
    known = imported_as(module, "DistributedSampler")
    if known is not None and known in module.facts.bindings:
        return _Receiver(code, f"if isinstance({code}, {known}):", certain)
    quote = module.source.quote
    return _Receiver(code, f"if hasattr({code}, {quote}set_epoch{quote}):", certain)


def _sampler_names(model: Model, loop: Loop, wanted: Built) -> Iterator[Name]:
    """Local (and, in a script, global) names called a sampler that may hold the one wanted."""
    known: dict[Scope, dict[Built, list[Name]]] = model.memo.setdefault(_sampler_names, {})
    current: Scope | None = loop.scope
    while current is not None:
        if current not in known:
            known[current] = {}
            for name in _called_samplers(current):
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


def _called_samplers(scope: Scope) -> Iterator[Name]:
    for name, bindings in scope.bindings.items():
        if SAMPLER.says(name) and any(b.is_plain for b in bindings):
            yield _read_at(None, name, scope)


def _set_before(scope: Scope, name: Name, loop: Loop) -> bool:
    """Whether the name is certainly set when the loop starts."""
    for binding in name.scope.bindings[name.id]:
        if binding.how == "param":
            return True
        if binding.stmt is None or binding.stmt.scope is not name.scope:
            return False
        if name.scope is scope and binding.stmt.order > loop.order:
            return False
    blocks = [b.stmt for b in name.scope.bindings[name.id] if b.stmt is not None]
    if any(stmt.parent is None for stmt in blocks):
        return True
    # if distributed: sampler = … else: sampler = …
    parents = {id(stmt.parent) for stmt in blocks}
    return len(parents) == 1 and len({id(stmt.block) for stmt in blocks}) > 1


def _loader_expressions(model: Model, found: EpochLoop) -> Iterator[tuple[Expr, Expr, str]]:
    """What may hold the loader and can be said in the loop's own body.

    Each with the expression in the loop that it begins with, and its code.
    """
    source = model.module_of(found.loop.scope).source
    if not found.calls:
        inner = found.inner.source
        yield inner, inner, text_of(source, inner)
        return
    call = found.calls[0]
    for arg in call.args:
        # A `partial` adds arguments that were written in another scope.
        if isinstance(arg.value, (Name, Attr)) and means_the_same(arg.value, call.scope):
            yield arg.value, arg.value, text_of(source, arg.value)
    if len(found.calls) == 1:
        names = _attributes(found.inner.source)
        given = _given_for_base(model, found, call)
        if names and isinstance(given, (Name, Attr)) and means_the_same(given, call.scope):
            yield found.inner.source, given, ".".join((text_of(source, given), *names))


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
    bindings = function.bindings.get(base.id, ())
    if len(bindings) != 1 or bindings[0].how != "param":
        return None
    is_method = function.cls is not None and not function.is_static
    if function.self_name == base.id:
        return call.func.value if isinstance(call.func, Attr) else None
    given = passed(function, bindings[0].payload, model.flow.as_made(call), is_bound=is_method)
    return given if isinstance(given, Expr) else None


def _bound_inside(loop: Loop, name: Name) -> bool:
    return any(
        binding.stmt is not None and binding.stmt is not loop and loop.encloses(binding.stmt)
        for binding in name.scope.bindings.get(name.id, ())
    )
