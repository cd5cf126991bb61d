"""How much of an epoch is skipped when a run goes on: in which units, and in how many epochs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from sampler_lint.analysis.arguments import MISSING, passed
from sampler_lint.analysis.origins import LOCAL, Hop, depends_on, only, origins, part_of, scope_of
from sampler_lint.analysis.reaching import may_run_before
from sampler_lint.analysis.values import Ext, Obj
from sampler_lint.domain.batches import is_batch_sampler
from sampler_lint.domain.concepts import BATCH_SIZE, GIVES_STATE, ITERATED, RANGES, RESTORES
from sampler_lint.domain.epoch_calls import runs_in
from sampler_lint.domain.epoch_state import reach
from sampler_lint.domain.epochs import EpochLoop, epoch_loops, loops_with, trains
from sampler_lint.domain.fixed_orders import may_be_drawn_again
from sampler_lint.domain.model import Model, own_scopes
from sampler_lint.domain.options import looked_up
from sampler_lint.domain.passes import Pass
from sampler_lint.domain.programs import is_test, outer_stores_beside
from sampler_lint.domain.ranks import reached
from sampler_lint.domain.resuming import is_loaded
from sampler_lint.domain.stale import has_workers
from sampler_lint.edits.names import quoted
from sampler_lint.findings import Grade, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp105_epoch_lost_on_resuming.fixed import make_generator
from sampler_lint.syntax.navigation import (
    holds,
    leaves,
    nodes_in,
    same,
    self_class,
    self_stores,
    statements,
    unparse,
    walk,
)
from sampler_lint.syntax.nodes import (
    Attr,
    AugAssign,
    Bin,
    Call,
    Choice,
    Class,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Index,
    Loop,
    Name,
    Other,
    Param,
    Scope,
    Simple,
    Stmt,
    Store,
    last_name,
)

_SKIPS = "skip_first_batches"


class _Skip(NamedTuple):
    """A place that leaves out the first batches of a pass."""

    where: Expr
    what: str
    """In words, for messages."""
    number: Expr
    """How many."""
    each_epoch: Loop | None
    """The loop over epochs, if its every turn skips the same."""


def skipped(model: Model) -> Iterator[Suspect]:
    """Places that leave out the first batches of a pass, and leave out too many."""
    places = {skip.where: skip for skip in (*_by_accelerate(model), *_by_number(model))}
    for skip in places.values():
        counted = _counts_samples(model, skip.number)
        if counted is not None:
            by = unparse(skip.number)
            message = f"`{skip.what}` skips by `{by}`, which counts samples, not batches"
            effect = "a resumed epoch skips `batch_size` times too much"
            advice = "divide it by the samples of a step of all processes"
            why = Related(model.place(scope_of(counted), counted), "samples are counted here")
        elif (loop := skip.each_epoch) is not None:
            message = f"`{skip.what}` skips in every epoch, not only in the resumed one"
            effect = "the first batches of each later epoch are never read"
            advice = "skip in the first epoch alone, and read the loader itself in others"
            why = Related(model.place(loop.scope, loop), "each epoch runs this")
        else:
            continue
        yield Suspect(
            model.module_of(scope_of(skip.where)),
            skip.where,
            message,
            effect=effect,
            advice=advice,
            why=(why,),
        )


def _by_accelerate(model: Model) -> Iterator[_Skip]:
    """Calls of Accelerate's ``skip_first_batches``."""
    for module in model.modules:
        if is_test(module) or not model.frameworks(module) & {"accelerate", "transformers"}:
            continue
        for call in module.facts.all_calls:
            if last_name(call.func) != _SKIPS or not _is_of_accelerate(model, call):
                continue
            given = call.keyword("num_batches")
            if given is None and len(call.positional) > 1:
                given = call.positional[1]
            if given is not None:
                is_units = _counts_samples(model, given) is not None
                where = given if is_units else call
                what = _SKIPS if is_units else unparse(call.func)
                yield _Skip(where, what, given, _in_each_epoch(model, call, given))


def _by_number(model: Model) -> Iterator[_Skip]:
    """Passes of training that begin at a number which a checkpoint gives."""
    for found in epoch_loops(model):
        stmt = found.inner.stmt
        if not isinstance(stmt, For) or is_test(model.module_of(stmt.scope)):
            continue
        for where, what, count in _left_out(model, stmt, found.inner):
            loaded = depends_on(model.flow, count, partial(is_loaded, model))
            if loaded is not None and trains(model, found):
                each = found.loop if _is_alike_in_each(model, found, count) else None
                yield _Skip(where, what, count, each)


def _left_out(model: Model, stmt: For, inner: Pass) -> Iterator[tuple[Expr, str, Expr]]:
    """``islice(loader, n, None)``, and ``if number < n: continue`` before all else."""
    read = [(one, only(model.flow, one, Hop.ASSIGNED)) for one in walk(stmt.iter)]
    nodes = [
        node for one, value in read for node in (one, *(walk(value) if value is not one else ()))
    ]
    calls = {last_name(node.func): node for node in nodes if isinstance(node, Call)}
    part = calls.get("islice")
    if part is not None and len(part.positional) > 2 and holds(part.positional[0], inner.source):
        yield part, unparse(part.func), part.positional[1]
    number = next((node for node in walk(stmt.target) if isinstance(node, Name)), None)
    if "enumerate" not in calls or number is None:
        return
    source = model.module_of(stmt.scope).source
    for first in stmt.body:
        if not isinstance(first, If) or first.orelse or not any(map(leaves, first.body)):
            return
        test = first.test
        if isinstance(test, Compare) and len(test.ops) == 1 and _goes_on(first):
            left, op, right = test.left, test.ops[0], test.rights[0]
            if same(left, number) and op.startswith("Lt"):
                yield test, f"if {quoted(source, test)}: continue", right
            elif same(right, number) and op.startswith("Gt"):
                yield test, f"if {quoted(source, test)}: continue", left


def _goes_on(stmt: If) -> bool:
    return any(isinstance(each, Simple) and each.kind == "continue" for each in stmt.body)


def _is_alike_in_each(model: Model, found: EpochLoop, count: Expr) -> bool:
    """Whether a number is what it was before the loop over epochs in its every turn."""
    if any(isinstance(each, If) for each in _between(found)):
        return False
    steps = origins(
        model.flow,
        count,
        Hop.ASSIGNED | Hop.CALLER,
        stop=lambda step: step.scope is found.loop.scope,
    )
    ends = [step.expr for step in steps if step.is_end and step.scope in found.scopes]
    return bool(ends) and all(
        isinstance(end, (Name, Attr)) and not _changes(model, found, end) for end in ends
    )


def _between(found: EpochLoop) -> Iterator[Stmt]:
    """The statements around a pass, and around the calls that lead to it, within its loop."""
    for node in (found.inner.stmt, *(call.stmt for call in found.calls)):
        for stmt in node.ancestors() if node is not None else ():
            if stmt is found.loop:
                break
            yield stmt


def _changes(model: Model, found: EpochLoop, number: Name | Attr) -> bool:
    """Whether a turn of the loop over epochs may give a number another value."""
    if isinstance(number, Name):
        bindings = number.scope.bindings.get(number.id) or []
        return any(each.stmt is not None and found.loop.encloses(each.stmt) for each in bindings)
    calls = found.loop.scope.calls_in(found.loop)
    scopes = {each for c in calls for f in model.flow.callees(c) for each in reached(model, f)}
    within = (store for store in found.loop.scope.stores if found.loop.encloses(store.stmt))
    stores = (*within, *(store for scope in scopes for store in scope.stores))
    return any(last_name(store.target) == number.name for store in stores)


def _is_of_accelerate(model: Model, call: Call) -> bool:
    """Whether a function of Accelerate is called: by value, or as a method of an accelerator."""
    values = model.flow.values(call.func)
    if any(isinstance(v, Ext) and v.dotted.partition(".")[0] == "accelerate" for v in values):
        return True
    owner = call.func.value if isinstance(call.func, Attr) else None
    return owner is not None and last_name(owner) == "accelerator"


def _counts_samples(model: Model, given: Expr) -> Expr | None:
    """Where a number grows by the samples of a batch, if nothing divides it on its way."""
    steps = [*origins(model.flow, given, LOCAL | Hop.ATTRIBUTE)]
    if any(isinstance(s.expr, Bin) and s.expr.op in {"FloorDiv", "Div", "Mod"} for s in steps):
        return None
    names = [step.expr for step in steps if isinstance(step.expr, (Name, Attr))]
    for scope in {name.scope for name in names}:
        for stmt in statements(scope.body):
            if (
                isinstance(stmt, AugAssign)
                and stmt.op == "Add"
                and any(same(stmt.target, name) for name in names)
                and _is_batch_length(stmt.value)
            ):
                return stmt.target
    return None


def _is_batch_length(value: Expr) -> bool:
    """``len(batch)``, ``images.size(0)``, ``images.shape[0]``, or a batch size by its name."""
    for node in walk(value):
        if isinstance(node, (Name, Attr)) and BATCH_SIZE.names(node):
            return True
        if (
            isinstance(node, Call)
            and last_name(node.func) in {"len", "size"}
            and node.positional
            and not ITERATED.is_mentioned(node)
        ):
            return True
        if isinstance(node, Index) and last_name(node.value) == "shape":
            return isinstance(node.key, Const) and node.key.value == 0
    return False


def _in_each_epoch(model: Model, call: Call, given: Expr) -> For | None:
    """The loop over epochs whose every turn skips the same."""
    if call.stmt is None or (isinstance(given, Const) and given.value == 0):
        return None
    if any(
        isinstance(node, Choice) and any(part is call for part in walk(node))
        for node in nodes_in([call.stmt])
    ):
        return None
    read = [given]
    for stmt in call.stmt.ancestors():
        if isinstance(stmt, For):
            return (
                stmt if _is_counted(stmt) and all(_stays_in(stmt, each) for each in read) else None
            )
        if isinstance(stmt, If):
            read.append(stmt.test)
    return _in_each_from_outside(model, call.scope, read)


def _in_each_from_outside(model: Model, method: Scope, read: list[Expr]) -> For | None:
    """The loop over epochs that calls a method in each turn, and sets none of what it reads."""
    kept = [node for each in read for node in walk(each) if isinstance(node, Attr)]
    if not isinstance(method, Function) or not all(isinstance(each, Attr) for each in read):
        return None
    loops = {
        next(stmt.ancestors(), None)
        for caller in model.flow.callers(method)
        if (stmt := caller.stmt) is not None
    }
    loop = loops.pop() if len(loops) == 1 else None
    if not isinstance(loop, For) or not _is_counted(loop):
        return None
    for attribute in kept:
        cls = self_class(attribute.value)
        if cls is None or any(
            runs_in(model, loop, store.scope) is not False
            for store in (
                *model.flow.family_stores(cls, attribute.name),
                *outer_stores_beside(model, attribute.name, cls),
            )
        ):
            return None
    return loop


def _is_counted(loop: For) -> bool:
    return any(isinstance(node, Call) and RANGES.is_call(node) for node in walk(loop.iter))


def _stays_in(loop: For, expr: Expr) -> bool:
    """Whether no turn of a loop sets what an expression reads."""
    parts = [*walk(expr)]
    read = [node for node in parts if isinstance(node, (Name, Attr))]
    is_computed = any(node is not expr and isinstance(node, Call) for node in parts)
    return bool(read) and not is_computed and not any(_is_set_in(loop, node) for node in read)


def _is_set_in(loop: For, name: Name | Attr) -> bool:
    if isinstance(name, Name):
        bindings = name.scope.bindings.get(name.id) or []
        return any(each.stmt is not None and loop.encloses(each.stmt) for each in bindings)
    return any(
        same(store.target, name) and loop.encloses(store.stmt) for store in loop.scope.stores
    )


# Where a pass begins, and who forgets it: an iterator that is made and never read.


def used_up(model: Model) -> Iterator[Suspect]:
    """The batch samplers whose ``__iter__`` sets back at once where it begins.

    A loader with workers calls ``iter()`` of what gives it batches twice before it reads: in
    ``_BaseDataLoaderIter.__init__``, and again in ``_reset``. A generator has done nothing then.
    """
    for module, cls in model.classes():
        iterate = cls.method("__iter__")
        if iterate is None or iterate.yields or is_test(module):
            continue
        for reset in iterate.stores:
            read = _read_before(iterate, reset)
            if read is None or not _is_given(model, cls, reset):
                continue
            loader = model.used_as_batch_sampler.get(cls)
            if loader is None and not is_batch_sampler(model, cls):
                continue
            if loader is not None and not has_workers(model, loader):
                continue
            yield Suspect(
                module,
                reset.stmt,
                f"`{cls.name}.__iter__` resets `{read.name}` when the iterator is created, "
                "before it is read",
                effect="a loader with workers calls `iter()` twice and reads the second: what was "
                "to be skipped is read again",
                advice="make `__iter__` a generator (`yield from`), so that it does so at the "
                "first `next()`",
                why=(Related(model.place(iterate, read), "where the pass begins is read here"),),
                grade=Grade.LIKELY if loader is None else Grade.CERTAIN,
                fix=partial(make_generator, iterate),
            )
            break


def set_back(model: Model) -> Iterator[Suspect]:
    """The samplers whose pass sets back what a checkpoint gave them, before anything reads it."""
    for module, cls in model.classes():
        iterate = cls.method("__iter__")
        if iterate is None or is_test(module) or not model.is_sampler_class(cls):
            continue
        for reset in iterate.stores:
            name = _zeroed(reset)
            given = _given_back(cls, name) if reset.stmt.block is iterate.body and name else None
            if given is None or _may_be_read(model, cls, name, reset):
                continue
            yield Suspect(
                module,
                reset.stmt,
                f"`{cls.name}.__iter__` resets `self.{name}` before it reads what was restored",
                effect="a resumed run begins its epoch anew: samples are read a second time",
                advice="begin the pass there, and reset it when the pass is over",
                why=(Related(model.place(given.scope, given.stmt), "it is restored here"),),
            )
            break


def cut_for_ever(model: Model) -> Iterator[Suspect]:
    """The samplers that begin each epoch where the resumed one began."""
    for module, cls in model.classes():
        load, iterate = (model.flow.method(cls, n) for n in ("load_state_dict", "__iter__"))
        if not (isinstance(load, Function) and isinstance(iterate, Function)):
            continue
        if is_test(module) or not model.is_sampler_class(cls):
            continue
        cut = model.trials(cls).cut_for_ever
        if cut is None:
            continue
        others = {
            target.name
            for base in model.flow.own_family(cls)
            for target, store in self_stores(base.methods)
            if store.scope is not load and store.scope.name != "__init__"
        }
        restored = {t.name: store for t, store in self_stores([load]) if t.name not in others}
        read = next((read for read in iterate.reads if read.name in restored), None)
        if read is None or any(outer_stores_beside(model, read.name, cls)):
            continue  # whoever has it may set it back
        store = restored[read.name]
        yield Suspect(
            model.module_of(iterate),
            read,
            f"`{cls.name}` begins each later epoch at the `{read.name}` it was resumed at, too",
            effect=f"with {cut.story}, rank 0 yields {cut.turns[0].count}, and the samples before "
            "that are not read again",
            advice="begin there once: set it back to 0 when the pass begins or ends",
            why=(Related(model.place(store.scope, store.stmt), "it is restored here"),),
        )


def begun_there_again(model: Model) -> Iterator[Suspect]:
    """Where a resumed run tells an object to begin, which then begins each later epoch there."""
    for module, cls in model.classes():
        if is_test(module) or not isinstance(model.flow.method(cls, "__iter__"), Function):
            continue
        own = [t.name for t, store in self_stores(own_scopes(model, cls)) if not _builds(store)]
        for read in _begins(model, cls):
            stores = [
                store
                for store in outer_stores_beside(model, read.name, cls)
                if any(
                    isinstance(value, Obj) and value.cls is cls
                    for value in model.flow.values(store.target.value)
                )
                and not is_test(model.module_of(store.scope))
            ]
            told = next((store for store in stores if _restores(model, store)), None)
            if told is None or read.name in own or any(map(_is_reset, stores)):
                continue  # somebody sets it back
            loops = [
                found
                for loader in model.loaders
                for held in (*model.passed_to(loader, "dataset"), *model.samplers_of(loader))
                if isinstance(held, Obj) and held.cls is cls
                for found in loops_with(model, loader)
            ]
            if not loops or any(_may_turn(model, f, store) for f in loops for store in stores):
                continue
            yield Suspect(
                model.module_of(told.scope),
                told.target,
                f"each later epoch begins at the `{read.name}` of the resumed one, too",
                grade=Grade.CERTAIN if any(trains(model, f) for f in loops) else Grade.LIKELY,
                effect=f"the samples that `{cls.name}` leaves out before it are not read again",
                advice="set it back to 0 where the epoch ends",
                why=(Related(model.place(read.scope, read), "each pass begins there"),),
            )


def _may_turn(model: Model, found: EpochLoop, store: Store) -> bool:
    """Whether a turn of an epoch loop may come to a store."""
    if store.scope is found.loop.scope:
        return found.loop.encloses(store.stmt)
    return store.scope in found.scopes or runs_in(model, found.loop, store.scope) is not False


def _builds(store: Store) -> bool:
    return store.scope.name == "__init__"


def _is_reset(store: Store) -> bool:
    return isinstance(store.value, Const)


def _restores(model: Model, store: Store) -> bool:
    """Whether a store brings back what a checkpoint holds."""
    return RESTORES.says(getattr(store.scope, "name", None)) or (
        store.value is not None
        and depends_on(model.flow, store.value, partial(is_loaded, model)) is not None
    )


def _begins(model: Model, cls: Class) -> Iterator[Attr]:
    """What of an object a pass begins at: ``order[self.start:]``, ``range(self.start, n)``."""
    for function in reach(model, cls, "__iter__").functions:
        for node in nodes_in(statements(function.body)):
            first: Expr | None = None
            if isinstance(node, Index) and isinstance(node.key, Other) and len(node.key.parts) == 1:
                [first] = node.key.parts
                until = quoted(model.module_of(function).source, node)
                first = first if until.rstrip("] ").endswith(":") else None
            elif isinstance(node, Call) and len(node.positional) > 1:
                at = {"range": 0, "islice": 1}.get(last_name(node.func) or "")
                first = node.positional[at] if at is not None else None
            if isinstance(first, Attr) and self_class(first.value) is not None:
                yield first


def taken_back(model: Model) -> Iterator[Suspect]:
    """The calls of each epoch that leave out the position which a resumed run has told before."""
    for _, cls in model.classes():
        setter = cls.method("set_epoch")
        if setter is None or not model.is_sampler_class(cls):
            continue
        for store in setter.stores:
            name = store.value.id if isinstance(store.value, Name) else ""
            param = setter.param(name)
            if param is None or param.default is None or store.stmt.block is not setter.body:
                continue
            calls = model.flow.callers(setter)
            told = [call for call in calls if _tells_restored(model, setter, param, call)]
            without = [call for call in calls if passed(setter, param, call) is MISSING]
            if told:  # a class beside it may have a loop of its own
                without.sort(key=lambda call: call.scope.module is not told[0].scope.module)
            for call in without if told else ():
                if _takes_back(model, call, told[0]):
                    yield Suspect(
                        model.module_of(call.scope),
                        call,
                        f"`{unparse(call.func)}` takes back the `{name}` that was restored",
                        effect="a resumed run begins its epoch anew: samples are read a second "
                        "time",
                        advice=f"pass `{name}` here in the epoch that is resumed",
                        why=(Related(model.place(told[0].scope, told[0]), "it is restored here"),),
                    )
                    break


def _tells_restored(model: Model, setter: Function, param: Param, call: Call) -> bool:
    """Whether a call, which no loop repeats, passes what a checkpoint holds."""
    given = passed(setter, param, call)
    if not isinstance(given, Expr) or may_be_drawn_again(model, call):
        return False
    return depends_on(model.flow, given, partial(is_loaded, model)) is not None


def _takes_back(model: Model, call: Call, told: Call) -> bool:
    """Whether a call of each epoch runs after another, and asks nothing that the other tells."""
    if call.stmt is None or not may_run_before(told.stmt, call.stmt):
        return False
    if not may_be_drawn_again(model, call) or is_test(model.module_of(call.scope)):
        return False
    numbers = {
        last_name(node)
        for one in (call, told)
        for arg in one.args
        for node in walk(arg.value)
        if isinstance(node, (Name, Attr))
    }
    return not any(
        last_name(node) in numbers
        for stmt in call.stmt.ancestors()
        if isinstance(stmt, If)
        for node in walk(stmt.test)
        if isinstance(node, (Name, Attr)) and self_class(node) is None
    )


def _zeroed(store: Store) -> str | None:
    """The attribute of the object itself that is set to nothing."""
    target, value = store.target, part_of(store.value, store.path)
    is_own = isinstance(target, Attr) and self_class(target.value) is not None
    is_zero = isinstance(value, Const) and value.value in {0, None}  # or False
    return target.name if isinstance(target, Attr) and is_own and is_zero else None


def _given_back(cls: Class, name: str | None) -> Store | None:
    """Where a method that restores an object sets one of its attributes."""
    return next(
        (
            store
            for method in cls.methods
            if RESTORES.says(method.name)
            for store in method.stores
            if isinstance(store.target, Attr)
            and store.target.name == name
            and self_class(store.target.value) is cls
            and not isinstance(store.value, Const)
        ),
        None,
    )


def _may_be_read(model: Model, cls: Class, name: str | None, reset: Store) -> bool:
    """Whether anything but what is saved may read an attribute before the pass has set it back."""
    family = model.flow.own_family(cls)
    program = model.project.program_of(model.module_of(cls))
    return any(
        read.name == name
        and (self_class(read.value) is None or self_class(read.value) in family)
        and not (scope is reset.scope and read.stmt and read.stmt.order > reset.stmt.order)
        for module in model.project.modules_in(program)
        for scope in module.facts.scopes
        if not (isinstance(scope, Function) and GIVES_STATE.says(scope.name))
        for read in scope.reads
    )


def _read_before(iterate: Function, reset: Store) -> Attr | None:
    """The read of an attribute that a literal then takes the place of."""
    name = _zeroed(reset)
    if name is None:
        return None
    swapped = [*walk(reset.value)] if reset.path and reset.value is not None else []
    return next(
        (
            read
            for read in iterate.reads
            if read.name == name
            and self_class(read.value) is not None
            and read.stmt is not None
            and (read.stmt.order < reset.stmt.order or any(n is read for n in swapped))
        ),
        None,
    )


def _is_given(model: Model, cls: Class, reset: Store) -> bool:
    """Whether who builds or restores the object says what the attribute is."""
    assert isinstance(reset.target, Attr)
    return any(
        store.scope is not reset.scope
        and store.value is not None
        and isinstance(store.scope, Function)
        and depends_on(model.flow, store.value, _is_told, LOCAL | Hop.ATTRIBUTE) is not None
        for base in model.flow.own_mro(cls)
        for method in base.methods
        for store in method.stores
        if isinstance(store.target, Attr) and store.target.name == reset.target.name
    )


def _is_told(expr: Expr) -> bool:
    """Whether it is a parameter, or an entry of one (``state["step"]``)."""
    owner, _ = looked_up(expr) or (expr, None)
    if not isinstance(owner, Name) or not isinstance(owner.scope, Function):
        return False
    return owner.scope.param(owner.id) is not None and owner.id != owner.scope.self_name
