"""SMP103: ``set_epoch`` is called where, or with what, it cannot change the order of an epoch."""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.analysis.points_to import Obj, passed
from sampler_lint.domain.concepts import (
    CONFIG,
    EPOCH,
    EVALUATES,
    FIRST_RANK,
    INFERS,
    RANGES,
    SAMPLER,
    SETS_EPOCH,
    TRAINS,
)
from sampler_lint.domain.epoch_calls import Carrier, calls_for, carriers, runs_in
from sampler_lint.domain.epoch_state import uses_epoch
from sampler_lint.domain.epochs import EpochLoop, epoch_expression, epoch_loops, steps_in, trains
from sampler_lint.domain.injection import Injection
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import in_test_function
from sampler_lint.domain.rank_terms import differs
from sampler_lint.domain.samplers import shuffles
from sampler_lint.domain.stale import has_workers
from sampler_lint.edits.editor import Editor, replacing
from sampler_lint.edits.names import means_the_same, text_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._epoch_frameworks import framework_calls
from sampler_lint.rules._epoch_receiver import operands, receivers
from sampler_lint.rules._epoch_stale import late
from sampler_lint.syntax.nodes import (
    Attr,
    AugAssign,
    Call,
    Class,
    Compare,
    Const,
    Expr,
    ExprStmt,
    For,
    Function,
    If,
    Loop,
    Name,
    Scope,
    Stmt,
    Unary,
    While,
    last_name,
    same,
    self_class,
    unparse,
    walk,
)


class SetEpochMisplaced(Rule):
    """`set_epoch` is called where, or with what, it cannot change the order of an epoch.

    What it does:
        Reports a `set_epoch` call

        - that runs once before the epoch loop and not in it,
        - that gets the same value in every turn of the loop, or the number of the batch,
        - that comes after the loader was iterated, with the number of the epoch just read,
        - whose receiver, a loader or a torch batch sampler, has no `set_epoch`, or whose guard
          asks for a class that the sampler does not have,
        - that comes too late because the loader keeps one iterator, or the sampler makes its
          next order at the end of the pass before,
        - that changes a dataset in the main process while persistent workers keep their copies,
        - that goes to `loader.batch_sampler` after `accelerator.prepare`, which hides it,
        - that only one rank makes, or that is no call at all (`sampler.set_epoch = epoch`).

        Silent where any other call may set the epoch in the loop, where the loader is made
        anew for each epoch, and for samplers that do not shuffle.

    Why is this bad?
        A sampler reads its epoch when its `__iter__` starts, and only then. What is set later,
        once, or to the same number gives every epoch (or two in a row) one order; a guard that
        is never true gives none at all. Nothing raises.

    Fix safety:
        Safe where the call can be moved to the top of the loop, or given the loop's own
        counter, or pointed at the sampler that carries the epoch. Unsafe where it becomes a
        handler of ignite's `Events.EPOCH_STARTED`: other handlers may count on the order. Without
        a plain counter, and for loaders that keep their iterator, there is no fix.

    How it is proved:
        Invariant `reshuffles`: on two gloo ranks the epochs have one order before the fix and
        different orders after it.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__` and `set_epoch`
        - torch/utils/data/dataloader.py, `_MultiProcessingDataLoaderIter._reset` (prefetches)
        - accelerate/data_loader.py, `BatchSamplerShard` (has no `set_epoch`)
    """

    code = "SMP103"
    name = "set-epoch-misplaced"
    invariant = "reshuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Ask of each epoch loop which calls set its epoch, then of each call what it meets."""
        told: set[object] = set()
        if model.epoch_setters:
            for suspect in (
                *_in_loops(model),
                *_never_moved(model),
                *receivers(model),
                *framework_calls(model),
                *late(model),
            ):
                key = (suspect.module, suspect.start.row, suspect.start.col)
                if key not in told:
                    told.add(key)
                    yield suspect
        else:
            yield from late(model)


def _in_loops(model: Model) -> Iterator[Suspect]:
    for found in epoch_loops(model):
        wanted = list(carriers(model, found.inner.loader))
        if not wanted or not trains(model, found):
            continue
        calls = calls_for(model, found, wanted)
        if calls.unclear or not calls.hits or not calls.are_plain:
            continue
        here = calls.by_scope.get(found.loop.scope, [])
        inside = _between(here, found.loop.order, found.loop.last_order)
        outside = [scope for scope in calls.by_scope if scope is not found.loop.scope]
        if len(inside) < len(here):
            outside.append(found.loop.scope)
        runs = {scope: runs_in(model, found.loop, scope) for scope in outside}
        if None in runs.values():
            continue
        if any(runs.values()):
            within = {*inside}
            inside += [c for c in calls.hits if c not in within and runs.get(c.scope)]
        if not inside:
            yield from _once(model, found, wanted, calls.hits)
            continue
        for judge in (_constant, _late_in_turn, _one_rank):
            suspects = [judge(model, found, call) for call in inside]
            if all(suspect is not None for suspect in suspects):
                yield from (suspect for suspect in suspects if suspect is not None)
                break


def _between(calls: list[Call], first: int, last: int) -> list[Call]:
    """Those of a scope's calls, in reading order, that stand in some of its statements."""

    def order(call: Call) -> int:
        return call.stmt.order if call.stmt is not None else -1

    return calls[bisect_left(calls, first, key=order) : bisect_right(calls, last, key=order)]


def _around(model: Model, found: EpochLoop, carrier: Carrier) -> tuple[Related, ...]:
    return (
        Related(model.place(found.loop.scope, found.loop), "the epoch loop"),
        Related(model.place_of(carrier.sampler), "sampler built here"),
    )


# --------------------------------------------------------------------------- once


def _once(
    model: Model, found: EpochLoop, wanted: list[Carrier], calls: tuple[Call, ...]
) -> Iterator[Suspect]:
    """Calls that run before the loop starts, while nothing in the loop sets the epoch."""
    loop = found.loop
    sites = {carrier.sampler.site.scope for carrier in wanted if carrier.sampler.site is not None}
    for call in calls:
        assert call.stmt is not None
        if call.scope is loop.scope:
            if call.stmt.order > loop.order:
                return
        elif call.scope not in sites:
            return
        around = [stmt for stmt in call.stmt.ancestors() if isinstance(stmt, (For, While))]
        if not all(stmt.encloses(loop) for stmt in around):
            return
        if any(_counts(stmt, call) for stmt in around):
            return  # the loops inside that one may be parts of an epoch
    for call in calls:
        epoch = epoch_expression(loop)
        counter = unparse(epoch) if epoch is not None else "epoch"
        message = (
            f"`{unparse(call)}` runs once, before the epoch loop: every epoch after it repeats "
            f"one order of `{wanted[0].sampler.name}`; call "
            f"`{unparse(call.func)}({counter})` first in the loop"
        )
        module = model.module_of(call.scope)

        fix = None
        if len(calls) == 1 and call.scope is loop.scope:
            fix = functools.partial(_to_top, found, call, epoch)
        why = _around(model, found, wanted[0])
        yield Suspect(module, call, message, why=why, fix=fix)


def _counts(loop: For | While, call: Call) -> bool:
    """Whether a loop gives the call its value anew in each turn."""
    targets = list(walk(loop.target)) if isinstance(loop, For) else []
    names = {node.id for node in targets if isinstance(node, Name)}
    return isinstance(loop, While) or any(
        isinstance(node, Name) and node.id in names for arg in call.args for node in walk(arg.value)
    )


def _movable(call: Call) -> Stmt | None:
    """The statement to move: the call's own, with the ``if`` around it when it holds no more."""
    stmt = call.stmt
    if not isinstance(stmt, ExprStmt) or stmt.value is not call:
        return None
    whole: Stmt = stmt
    for parent in stmt.ancestors():
        if not isinstance(parent, If) or len(whole.block) != 1 or parent.orelse:
            break
        if whole.block is not parent.body:
            break
        if parent.row == whole.row:
            return None
        whole = parent
    if len(whole.block) == 1 and whole.parent is not None:
        return None  # nothing would be left of the block
    return whole


# --------------------------------------------------------------------------- the value


def _constant(model: Model, found: EpochLoop, call: Call) -> Suspect | None:
    """A call in the loop whose value is the same in every turn, or the number of the batch."""
    if len(call.args) != 1:
        return None
    argument = call.args[0].value
    loop = found.loop
    # Another function does not know the loop's counter.
    epoch = epoch_expression(loop) if call.scope is loop.scope else None
    batches = _batch_number(call, argument)
    if batches is not None and batches is not loop:
        message = (
            f"`{unparse(call.func)}({unparse(argument)})` sets the number of the batch while the "
            f"pass is running: every epoch ends with the same number, so the next one repeats "
            f"the order; call it with the epoch's number before the batches"
        )
        to_top = functools.partial(_to_top, found, call, epoch)
        return Suspect(model.module_of(call.scope), call, message, fix=to_top)
    if not _same_in_every_turn(model, loop, argument):
        return None
    return _repeated(model, loop, call, Applicability.SAFE)


def _repeated(model: Model, loop: Loop | None, call: Call, applicability: Applicability) -> Suspect:
    """The report of a call that gets one value in every turn of the loop."""
    argument = call.args[0].value
    module = model.module_of(call.scope)
    epoch = epoch_expression(loop) if loop is not None and call.scope is loop.scope else None
    when = "every epoch" if loop is None else "every turn of the epoch loop"
    message = (
        f"`{unparse(call.func)}({unparse(argument)})` gets the same value in {when}: "
        f"every epoch repeats one order"
    )
    if epoch is None:
        return Suspect(module, call, message)
    message += f"; pass `{unparse(epoch)}`"
    text = text_of(module.source, epoch)
    written = replacing(argument, text, f"Pass `{text}`", applicability)
    return Suspect(module, call, message, fix=written)


def _never_moved(model: Model) -> Iterator[Suspect]:
    """Calls with one value for all epochs, where the program itself says what they are for.

    A loop that counts epochs, or a function named for one epoch of training, sets the epoch of a
    sampler: which loader takes the sampler need not be known, unless a framework may set its
    epoch as well.
    """
    injection = Injection(model)
    for call in model.epoch_setters:
        assert isinstance(call.func, Attr)
        receiver = call.func.value
        if call.func.name != "set_epoch" or len(call.args) != 1 or call.stmt is None:
            continue
        if not SAMPLER.is_mentioned(receiver) or in_test_function(call.scope):
            continue
        if EVALUATES.is_mentioned(receiver) or INFERS.is_mentioned(receiver):
            continue
        loop = _loop_of_epochs(call.stmt)
        if loop is None and not _is_for_one_epoch(call.scope):
            continue
        if not _same_in_every_turn(model, loop, call.args[0].value):
            continue
        if _is_moved_beside(model, loop, call) or not _may_carry(model, receiver):
            continue
        if any(_sets_epochs(name) for name in injection.trainers(model.module_of(call.scope))):
            continue
        if loop is None or TRAINS.is_mentioned(receiver) or steps_in(model, loop):
            yield _repeated(model, loop, call, Applicability.UNSAFE)


def _sets_epochs(framework: str) -> bool:
    """Whether a framework sets the epoch of some part of the loaders that it is given."""
    return any("set_epoch" in contract.names for contract in catalog.contracts(framework, "calls"))


def _loop_of_epochs(stmt: Stmt) -> Loop | None:
    """The innermost loop around a statement that counts epochs by name."""
    for loop in stmt.ancestors():
        if isinstance(loop, (For, While)):
            epoch = epoch_expression(loop)
            if epoch is not None and EPOCH.is_mentioned(epoch):
                return loop
            if isinstance(loop, While) and any(_counts_epochs(each) for each in loop.body):
                return loop
    return None


def _counts_epochs(stmt: Stmt) -> bool:
    return isinstance(stmt, AugAssign) and EPOCH.is_mentioned(stmt.target)


def _is_for_one_epoch(scope: Scope) -> bool:
    """Whether a function is named for an epoch of training: each epoch calls it."""
    return (
        isinstance(scope, Function)
        and EPOCH.says(scope.name)
        and TRAINS.says(scope.name)
        and not (SETS_EPOCH.says(scope.name) or EVALUATES.says(scope.name))
    )


def _is_moved_beside(model: Model, loop: Loop | None, call: Call) -> bool:
    """Whether another call there sets an epoch, perhaps of the same sampler, that moves."""
    return any(
        isinstance(other.func, Attr)
        and SETS_EPOCH.names(other.func)
        and not EVALUATES.is_mentioned(other.func.value)
        and not (other.args and _same_in_every_turn(model, loop, other.args[0].value))
        for other in (call.scope.calls if loop is None else loop.scope.calls_in(loop))
        if other is not call
    )


def _may_carry(model: Model, receiver: Expr) -> bool:
    """Whether nothing that is known to be there goes without the epoch that it is given."""
    return not any(
        isinstance(value, Obj)
        and value.site is not None
        and model.flow.method(value.cls, "set_epoch") is not None
        and (
            shuffles(model, value, value.through) is False
            or (isinstance(value.cls, Class) and not uses_epoch(model, value.cls))
        )
        for value in model.flow.values(receiver)
    )


def _batch_number(call: Call, argument: Expr) -> For | None:
    """The loop over batches whose ``enumerate`` counter is the argument."""
    if call.stmt is None or not isinstance(argument, Name):
        return None
    for stmt in call.stmt.ancestors():
        if (
            isinstance(stmt, For)
            and isinstance(stmt.iter, Call)
            and last_name(stmt.iter.func) == "enumerate"
        ):
            target = stmt.target
            first = next((n for n in walk(target) if isinstance(n, Name)), None)
            if first is not None and first.id == argument.id:
                return stmt
    return None


def _same_in_every_turn(model: Model, loop: Loop | None, argument: Expr) -> bool:
    """Whether the argument is the same in each turn of the loop, or wherever it is asked for."""
    if isinstance(argument, Const) or loop is None:
        return isinstance(argument, Const)
    if isinstance(argument, Name):
        bindings = argument.scope.bindings.get(argument.id, [])
        return (
            argument.scope is loop.scope
            and bool(bindings)
            and not _is_global(argument)
            and all(b.is_plain and (b.stmt is None or not loop.encloses(b.stmt)) for b in bindings)
        )
    if isinstance(argument, Attr) and self_class(argument.value) is not None:
        return _never_moves(model, argument)
    if isinstance(argument, Attr) and isinstance(argument.value, Name):
        root = argument.value
        # args.epochs, cfg.seed: nothing in the program ever sets it.
        return (
            CONFIG.names(root)
            and not model.project.stores_near(argument.name, argument.scope)
            and not any(
                binding.stmt is not None and loop.encloses(binding.stmt)
                for binding in root.scope.bindings.get(root.id, ())
            )
        )
    return False


def _never_moves(model: Model, attribute: Attr) -> bool:
    """Whether ``self.epoch`` is a literal that the constructor sets and nothing changes."""
    cls = self_class(attribute.value)
    if cls is None or not all(isinstance(base, Class) for base in model.flow.mro(cls)):
        return False
    if model.attributes(cls).open is not None:
        return False
    stores = model.project.stores_near(attribute.name, cls)
    own = [s for s in stores if isinstance(s.target, Attr) and self_class(s.target.value) is cls]
    return bool(own) and all(
        store in own
        and isinstance(store.scope, Function)
        and store.scope.name == "__init__"
        and isinstance(store.value, Const)
        for store in stores
    )


def _is_global(name: Name) -> bool:
    """Whether another function may change the name."""
    scope = name.scope
    if isinstance(scope, Function):
        return scope.declared.get(name.id) is scope.module
    return any(name.id in function.declared for function in scope.module.functions)


# --------------------------------------------------------------------------- after the pass


def _late_in_turn(model: Model, found: EpochLoop, call: Call) -> Suspect | None:
    """A call after (or inside) the pass it is for, with the number of that very pass."""
    loop, stmt = found.loop, call.stmt
    turn = _turn(found, call)
    if stmt is None or turn is None or not isinstance(loop, For) or len(call.args) != 1:
        return None
    anchor, epoch = turn
    if not same(call.args[0].value, epoch) or not _starts_at_zero(model, loop):
        return None
    if stmt.order <= anchor.order:
        return None
    if any(isinstance(s, (For, While)) and s is not loop for s in anchor.ancestors()):
        return None
    if _only_makes_iterator(anchor):
        if not has_workers(model, found.inner.loader):
            return None
        when = "after the iterator was made, whose workers already fetch by the epoch before"
    elif anchor.encloses(stmt):
        when = "while the pass is running, whose order is made already"
    else:
        when = "after the pass it is for"
    module = model.module_of(call.scope)
    counter = unparse(epoch)
    message = (
        f"`{unparse(call.func)}({counter})` comes {when}: each epoch is read with the number of "
        f"the one before, so the first two share one order; call it before the batches"
    )
    return Suspect(module, call, message, fix=functools.partial(_to_top, found, call, epoch))


def _turn(found: EpochLoop, call: Call) -> tuple[Stmt, Expr] | None:
    """In the call's own function: the statement that makes the pass, and the epoch's number."""
    loop = found.loop
    epoch = epoch_expression(loop)
    if epoch is None:
        return None
    if call.scope is loop.scope:
        anchor = found.calls[0].stmt if found.calls else found.inner.stmt
        return None if anchor is None else (anchor, epoch)
    function = call.scope
    if function is not found.inner.scope or len(found.calls) != 1:
        return None
    argument = call.args[0].value if call.args else None
    if not isinstance(function, Function) or not isinstance(argument, Name):
        return None
    param = function.param(argument.id)
    if param is None or len(function.bindings[argument.id]) != 1:
        return None
    bound = function.cls is not None and not function.is_static
    given = passed(function, param, found.calls[0], is_bound=bound)
    if not isinstance(given, Expr) or not same(given, epoch):
        return None
    if not means_the_same(given, loop.scope):
        return None
    return found.inner.stmt, argument


def _only_makes_iterator(anchor: Stmt) -> bool:
    return not isinstance(anchor, (For, While)) and not isinstance(anchor, ExprStmt)


def _starts_at_zero(model: Model, loop: For) -> bool:
    """Whether the loop's first number is (or may be) 0, which is what a sampler starts with."""
    for node in walk(loop.iter):
        if isinstance(node, Call) and RANGES.is_call(node):
            if len(node.positional) < 2:
                return True
            starts = model.flow.constants(node.positional[0])
            return starts is None or 0 in starts
    return False


def _to_top(found: EpochLoop, call: Call, epoch: Expr | None, editor: Editor) -> Fix | None:
    """Move the call to the top of the loop (or before the pass), with the loop's counter."""
    whole = _movable(call)
    if epoch is None or not call.positional or whole is None:
        return None
    argument = text_of(editor.source, epoch)
    lines = editor.lines_of(whole, call.positional[0], argument)
    editor.delete(whole, with_comments=True)
    if call.scope is found.loop.scope:
        editor.insert_first(found.loop, *lines)
    else:
        editor.insert_before(found.inner.stmt, *lines)
    name = f"{text_of(editor.source, call.func)}({argument})"
    return editor.fix(f"Call `{name}` first in the loop", Applicability.SAFE)


# --------------------------------------------------------------------------- one rank only


def _one_rank(model: Model, found: EpochLoop, call: Call) -> Suspect | None:
    """A call that only one rank makes, while the others keep shuffling by epoch 0."""
    inner = call.stmt
    assert inner is not None
    for parent in inner.ancestors():
        if isinstance(parent, If) and inner.block is parent.body:
            for node in operands(parent.test):
                if _is_first_rank(model, node, parent.scope):
                    message = (
                        f"`{unparse(call)}` runs on one rank only: the others keep the order of "
                        f"epoch 0, so the ranks' shards overlap and samples are left out; call it "
                        f"on every rank"
                    )
                    why = (Related(model.place(call.scope, parent), "only one rank gets here"),)
                    return Suspect(model.module_of(call.scope), call, message, why=why)
        inner = parent
    return None


def _is_first_rank(model: Model, test: Expr, scope: Scope) -> bool:
    """Whether a test holds on one rank only (of all, or of a node)."""
    if isinstance(test, Name):
        bindings = test.scope.bindings.get(test.id, [])
        value = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
        if value is not None and _is_first_rank(model, value, scope):
            return True
    if isinstance(test, (Name, Attr, Call)):
        return FIRST_RANK.names(test.func if isinstance(test, Call) else test)
    if isinstance(test, Unary) and test.op == "Not":
        return differs(model, test.operand, scope) is not None
    if not isinstance(test, Compare) or test.ops != ["Eq"]:
        return False
    sides = (test.left, test.rights[0])
    numbers = [side for side in sides if isinstance(side, Const) and side.value == 0]
    return bool(numbers) and any(differs(model, side, scope) is not None for side in sides)
