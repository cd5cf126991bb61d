"""Calls with one value in every turn, or with the number of the batch."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from sampler_lint import catalog
from sampler_lint.analysis.asked import tests
from sampler_lint.analysis.origins import Hop, ends
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import EPOCH, EVALUATES, INFERS, SAMPLER, SETS_EPOCH, TRAINS
from sampler_lint.domain.counters import is_shared
from sampler_lint.domain.epoch_calls import builds, epoch_samplers, runs_in
from sampler_lint.domain.epoch_state import is_kept_literal, uses_epoch
from sampler_lint.domain.epochs import EpochLoop, loops_over, starts_for_ever, steps_in, trains
from sampler_lint.domain.injection import injections
from sampler_lint.domain.model import Model
from sampler_lint.domain.options import holds_options
from sampler_lint.domain.programs import in_test_function, is_test, outer_stores_beside
from sampler_lint.domain.ranks import is_about_processes
from sampler_lint.domain.samplers import shuffles
from sampler_lint.domain.turns import epoch_expression
from sampler_lint.edits.editor import replacing
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.rules.smp103_set_epoch_misplaced.moment import (
    is_of_turns,
    move_to_top,
    without_guard,
)
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import operands, same, self_class, unbound_names, unparse, walk
from sampler_lint.syntax.nodes import (
    Attr,
    AugAssign,
    Call,
    Class,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Loop,
    Name,
    Scope,
    Stmt,
    While,
    last_name,
)


def constant(model: Model, found: EpochLoop, call: Call) -> Suspect | None:
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
            f"`{unparse(call.func)}({unparse(argument)})` gets the number of the batch, "
            f"not of the epoch"
        )
        to_top = functools.partial(move_to_top, found, call, epoch)
        return Suspect(
            model.module_of(call.scope),
            call,
            message,
            fix=to_top,
            effect="the last call of each epoch passes the same number, so every epoch repeats "
            "one order",
            advice="call it with the epoch's number before the loop over the batches",
        )
    if guard := _at_one_value(model, loop, call):
        when, test = guard
        module = model.module_of(call.scope)
        return Suspect(
            module,
            call,
            f"`{unparse(call)}` runs in one epoch only, where `{text_of(module.source, test)}`",
            fix=functools.partial(without_guard, when, test, call, "in every epoch"),
            effect="every later epoch repeats the order of that one",
            advice="call it in every epoch",
        )
    if not _same_in_every_turn(model, loop, argument):
        return None
    is_plain = is_of_turns(loop, argument) or bool(model.flow.constants(argument))
    if epoch is not None and not EPOCH.is_mentioned(argument):
        is_plain = is_plain and not _counts_others(loop, epoch)
    is_plain = is_plain and not _is_evaluated_beside(model, found)
    safe = Applicability.SAFE if is_plain else Applicability.UNSAFE
    return _repeated(model, loop, call, safe)


def _is_evaluated_beside(model: Model, found: EpochLoop) -> bool:
    """Whether a turn makes another pass, which may be meant to read the same samples each time."""
    return any(
        each.loop is found.loop and each.inner != found.inner and not trains(model, each)
        for each in loops_over(model, found.inner.loader)
    )


def last_word(model: Model, found: EpochLoop, calls: list[Call]) -> Call | None:
    """The call that undoes what the others set before a pass, wherever the epoch counts."""
    inner = found.inner
    before = [c for c in calls if c.scope is inner.scope and _precedes(c.stmt, inner.stmt)]
    if len(before) == len(calls) == 1 or not before:
        return None
    called = {*closure([inner.scope], model.flow.called_by)} - {inner.scope}
    if any(call.scope in called for call in calls):
        return None  # it may come later
    last = max(before, key=lambda call: call.stmt.order if call.stmt is not None else -1)
    shared = {*tests(inner.stmt)}
    asked = [test for test, answer in tests(last) if (test, answer) not in shared]
    is_anywhere = all(is_about_processes(model, test) for test in asked)
    return last if is_anywhere or (len(asked) == 1 and _may_lack(model, last)) else None


def _precedes(one: Stmt | None, other: Stmt) -> bool:
    """Whether a statement comes before another, and no loop of its own is around it."""
    return (
        one is not None
        and one.order < other.order
        and not one.encloses(other)
        and all(each.encloses(other) for each in one.ancestors() if isinstance(each, (For, While)))
    )


def _may_lack(model: Model, call: Call) -> bool:
    """Whether a call needs a test, as some loaders have no sampler that can be told an epoch."""
    receiver = call.func.value if isinstance(call.func, Attr) else None
    owners = model.flow.values(receiver.value) if isinstance(receiver, Attr) else ()
    return any(
        isinstance(owner, Obj)
        and model.role(owner) == "loader"
        and not any(epoch_samplers(model, owner))
        for owner in owners
    )


def _counts_others(loop: Loop, epoch: Expr) -> bool:
    """Whether a loop says what it counts, and that this is something else than epochs."""
    counted = [epoch]
    if isinstance(loop, For) and isinstance(loop.iter, Call):
        counted += loop.iter.positional
    named = [one for each in counted for one in walk(each) if isinstance(one, (Name, Attr))]
    is_said = any(last_name(one) != "_" for one in named)
    return is_said and not any(map(EPOCH.is_mentioned, counted))


def _at_one_value(model: Model, loop: Loop, call: Call) -> tuple[If, Expr] | None:
    """The ``if counter == value`` around a call of the loop's counter, whose value stays."""
    epoch = epoch_expression(loop)
    inner = call.stmt
    if inner is None or call.scope is not loop.scope or epoch is None:
        return None
    if not same(call.args[0].value, epoch):
        return None
    for parent in inner.ancestors():
        if parent is loop:
            break
        if isinstance(parent, If) and inner.block is parent.body:
            for test in operands(parent.test):
                sides = [test.left, *test.rights] if isinstance(test, Compare) else []
                others = [one for one in sides if not same(one, epoch)]
                counts = isinstance(test, Compare) and test.ops == ["Eq"] and len(others) == 1
                if counts and _same_in_every_turn(model, loop, others[0]):
                    return parent, test
        inner = parent
    return None


def _repeated(model: Model, loop: Loop | None, call: Call, applicability: Applicability) -> Suspect:
    """The report of a call that gets one value in every turn of the loop."""
    argument = call.args[0].value
    module = model.module_of(call.scope)
    epoch = epoch_expression(loop) if loop is not None and call.scope is loop.scope else None
    message = f"`{unparse(call.func)}({unparse(argument)})` gets the same value in every epoch"
    effect = "every epoch repeats one order"
    if epoch is None:
        return Suspect(module, call, message, effect=effect)
    text = text_of(module.source, epoch)
    why = "one order may be meant for all epochs"
    written = replacing(argument, text, f"Pass `{text}`", applicability, why)
    advice = f"pass `{unparse(epoch)}`"
    return Suspect(module, call, message, fix=written, effect=effect, advice=advice)


def never_moved(model: Model) -> Iterator[Suspect]:
    """Calls with one value for all epochs, where the program itself says what they are for.

    A loop that counts epochs, or a function named for one epoch of training, sets the epoch of a
    sampler: which loader takes the sampler need not be known, unless a framework may set its
    epoch as well.
    """
    injection = injections(model)
    for call in model.epoch_setters:
        assert isinstance(call.func, Attr)
        receiver = call.func.value
        if call.func.name != "set_epoch" or len(call.args) != 1 or call.stmt is None:
            continue
        if not SAMPLER.is_mentioned(receiver) or in_test_function(model, call.scope):
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
        trainers = injection.trainers(model.module_of(call.scope))
        if any(catalog.contracts(name, "calls") for name in trainers):
            continue  # all that frameworks call is `set_epoch`
        trains = loop is None or TRAINS.is_mentioned(receiver) or steps_in(model, loop)
        if trains or (loop is not None and starts_for_ever(loop)):
            yield _repeated(model, loop, call, Applicability.UNSAFE)


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
    through = Hop.OPERAND | Hop.CALLER
    parts = ends(model.flow, argument, through, stop=lambda step: step.scope is loop.scope)
    return all(_stays(model, loop, leaf) for part in parts for leaf in _leaves(model, part))


def _leaves(model: Model, part: Expr) -> Iterator[Expr]:
    return ends(model.flow, part, Hop.OPERAND)


def _stays(model: Model, loop: Loop, part: Expr) -> bool:
    """Whether a part of a value is the same in every turn of a loop."""
    if isinstance(part, Const):
        return True
    if isinstance(part, Name):
        bindings = part.scope.bindings.get(part.id, [])
        return (
            part.scope is loop.scope
            and bool(bindings)
            and not is_shared(part)
            and all(b.is_plain and (b.stmt is None or not loop.encloses(b.stmt)) for b in bindings)
        )
    cls = self_class(part.value) if isinstance(part, Attr) else None
    if isinstance(part, Attr) and cls is not None:
        return _is_kept(model, loop, cls, part.name)
    if isinstance(part, Attr) and isinstance(part.value, (Name, Attr)):
        root = part.value
        if _is_of_one_kept(model, loop, part):
            return True
        # args.epochs, self.cfg.seed: nothing in the program ever sets it.
        changes = (
            [each.stmt for each in root.scope.bindings.get(root.id, ())]
            if isinstance(root, Name)
            else [each.stmt for each in model.project.stores_near(root.name, root.scope)]
        )
        return (
            holds_options(model, root)
            and not model.project.stores_near(part.name, part.scope)
            and not any(stmt is not None and loop.encloses(stmt) for stmt in changes)
        )
    return False


def _is_of_one_kept(model: Model, loop: Loop, part: Attr) -> bool:
    """Whether the objects that are certainly read there keep it."""
    values = model.flow.values(part.value)
    return bool(values) and all(
        isinstance(value, Obj)
        and isinstance(cls := value.cls, Class)
        and value.site is not None
        and value.site.stmt is not None
        and not loop.encloses(value.site.stmt)
        and _is_kept(model, loop, cls, part.name)
        for value in values
    )


def _is_kept(model: Model, loop: Loop, cls: Class, name: str) -> bool:
    """Whether objects of a class certainly have the same in an attribute in each turn."""
    return (
        all(isinstance(base, Class) for base in model.flow.mro(cls))
        and model.attributes(cls).open is None
        and not any(outer_stores_beside(model, name, cls))
        and (is_kept_literal(model, cls, name) or _is_set_apart(model, loop, cls, name))
    )


def _is_set_apart(model: Model, loop: Loop, cls: Class, name: str) -> bool:
    """Whether an attribute is only ever set where no turn of the loop comes by."""
    family = {*model.flow.family(cls)}
    stores = model.flow.family_stores(cls, name)
    return bool(stores) and all(
        not loop.encloses(store.stmt)
        and (builds(model, store.scope, family) or runs_in(model, loop, store.scope) is False)
        for store in stores
    )


# An epoch that no code gives a value: NameError, in the distributed run alone.


def unbound(model: Model) -> Iterator[Suspect]:
    """``set_epoch(epoch)`` where nothing is called ``epoch``."""
    unknown: dict[Scope, list[Name]] = {}
    for call in model.epoch_setters:
        module = model.module_of(call.scope)
        if not call.args or module.facts.star_imports or is_test(module):
            continue
        given = {node for arg in call.args for node in walk(arg.value) if isinstance(node, Name)}
        if given and call.scope not in unknown:
            unknown[call.scope] = [*unbound_names(call.scope)]
        missing = given.intersection(unknown.get(call.scope, ()))
        for name in sorted(missing, key=lambda each: (each.row, each.col)):
            if is_expected(model, name, NameError, by_name=True):
                continue
            counter = counter_around(call.stmt)
            fix = None
            if counter is not None:
                title = f"Pass `{counter}`"
                why = f"`{name.id}` may be another number"
                fix = replacing(name, counter, title, Applicability.UNSAFE, why)
            yield Suspect(
                module,
                name,
                f"`{unparse(call.func)}` is given `{name.id}`, which is not defined",
                fix=fix,
                effect="NameError when it runs",
                hides=True,
                advice="" if counter is None else f"pass `{counter}`, which counts the epochs",
            )


def counter_around(stmt: Stmt | None) -> str | None:
    """What counts the turns of the loop around a statement, by a plain name."""
    for loop in stmt.ancestors() if stmt is not None else ():
        if isinstance(loop, (For, While)):
            epoch = epoch_expression(loop)
            if isinstance(epoch, Name):
                return epoch.id
    return None
