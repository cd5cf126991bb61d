"""SMP405: the arithmetic that splits, pads or groups samples is wrong for some sizes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sampler_lint.domain.concepts import PROCESSES, WORKERS
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.edits.editor import Fixer, replacing
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.findings import Grade, Related, Severity
from sampler_lint.properties import shares
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._trials import (
    MAY_BE_UNEVEN,
    checks_length,
    counts,
    defined_by,
    is_meant,
    is_uneven,
    judged,
    node_of,
    slice_of,
    splitting_place,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Binding,
    Call,
    Class,
    Comp,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Index,
    Name,
    Seq,
    Simple,
    Stmt,
    Unary,
    While,
    expressions,
    last_name,
    same,
    statements,
    unparse,
    walk,
)
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.errors import RaisedError
    from sampler_lint.execution.trials import Trial


class PartitionArithmetic(Rule):
    """The arithmetic with which a sampler splits, pads or groups samples is wrong for some sizes.

    What it does:
        Builds the sampler for a few small worlds in an interpreter of its own (nothing of yours
        is imported or run) and reports, with the numbers: its own check of a length failing, also
        after `load_state_dict()` of what `state_dict()` says in mid-epoch, or later where the class
        counts on that; a `while` loop that never ends; a share of the data that is the same on
        every rank; and shards so unequal that a rank gets two samples less than another, or none.
        Reports as well, in sampler classes: a slice `[:-k]`
        whose `k` is a remainder and so may be 0; a loop `range(len(x) - 1, 0, -1)` that removes
        items but never the first; and a list compared with a batch size. In any function: a
        counter that picks a process's items
        (`i % world_size == rank`) and is only advanced for those.

        Likely, and a warning, is what shows only with hardly more samples than ranks (padding
        cut from the indices once, as torch did before 1.7), which stops no real training, and
        when a checkpoint is loaded by more ranks than saved it.

    Why is this bad?
        Each holds for the sizes it was tried with and breaks for others: an assertion fails
        when the data set, or the number of ranks, changes; `x[:-0]` is empty; with shards of
        `ceil(n / ranks)` samples the last ranks of 8 get none of 9 samples; a list never equals
        an int, so no batch is ever complete.

    Fix safety:
        Safe for what can only mean one thing: `x[: len(x) - k]` for `x[:-k]`, a loop that goes
        down to 0, `len(batch)` compared with the batch size. For the rest there is no fix: what
        to pad, drop or round is the author's choice.

    How it is proved:
        Invariant `partitions` for shards (the ranks share no sample and together read all) and
        `runs` for the rest: the program fails, and its right twin finishes.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__`: padding since torch 1.7
        - https://github.com/pytorch/pytorch/pull/45651
    """

    code = "SMP405"
    name = "partition-arithmetic"
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Try each sampler class; then read the ones whose slips need no numbers."""
        for module, cls in judged(model):
            yield from _tried(model, module, cls)
            for scope in scopes_inside(cls):
                if isinstance(scope, Function):
                    yield from _read(module, scope)
        for module in model.modules:
            for function in module.facts.functions:
                yield from _stuck_counters(module, function)


# --------------------------------------------------------------------------- tried


def _tried(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    trials = model.trials(cls)
    overrun = tuple(t for t in trials.overrun if any((u.length or 0) < 0 for u in t.turns))
    known = trials.usual or trials.guessed
    sure = (*known, *trials.resumed, *overrun)
    certain = len(sure)
    several = (*sure, *trials.resized, *trials.tiny)
    if trials.repeated is not None:
        yield _same_share(model, module, cls, trials.repeated)
    for number, trial in enumerate(several):
        error = trial.raised
        if error is not None and checks_length(error) and _only_sometimes(known, error):
            suspect = _failing_check(model, cls, trial, error)
            if suspect is not None:
                if number >= certain:
                    suspect.grade, suspect.severity = Grade.LIKELY, Severity.WARNING
                yield suspect
                return
    for trial in trials.stuck:
        suspect = _endless(trial)
        if suspect is not None:
            yield suspect
            return
    if trials.repeated is not None:
        return
    if not trials.usual or any(t.from_data for t in trials.usual) or not trials.sharded:
        return
    counted = is_meant(trials.usual) or MAY_BE_UNEVEN.search(cls.name)
    for trial in trials.usual if counted else ():  # the others are SMP306's
        if trial.raised is None and _is_starved(trial):
            yield _starved(model, module, cls, trial)
            return
    if not any(is_uneven(trial) or trial.raised for trial in trials.usual):
        for trial in trials.tiny:
            if is_uneven(trial):
                yield _short_padding(model, module, cls, trial)
                return


def _only_sometimes(usual: tuple[Trial, ...], error: RaisedError) -> bool:
    """Whether the check holds in some world: else the arguments may be what is wrong."""
    return not usual or any(trial.raised is None for trial in usual)


def _failing_check(model: Model, cls: Class, trial: Trial, error: RaisedError) -> Suspect | None:
    names = error.names
    if names is None or names.module is None or error.node is None:
        return None
    what = "assertion" if isinstance(error.node, ast.Assert) else "check"
    overrun = trial in model.trials(cls).overrun
    loaded = _loaded(model, cls, error.node) if overrun else None
    if loaded is not None:
        message = (
            f"with {trial.story}, `{cls.name}` works with a `{loaded.name}`, set here, that its "
            f"indices do not come to: the {what} in `__iter__` fails ({error.kind}); work it out "
            f"from what `__iter__` will hand out"
        )
        where = model.module_of(loaded.scope)
        why = (Related(names.module.place(node_of(error.node)), f"this {what} fails"),)
        return Suspect(where, loaded, message, why=why)
    message = (
        f"with {trial.story}, this {what} fails ({error.kind}): the indices of `{cls.name}` do "
        f"not come to the length it works with; pad by repeating as often as needed, and cut to "
        f"exactly that length"
    )
    return Suspect(names.module, node_of(error.node), message)


def _loaded(model: Model, cls: Class, check: ast.AST) -> Attr | None:
    """Where `load_state_dict` sets the attribute that a failing check compares with."""
    load = defined_by(model, cls, "load_state_dict")
    test = getattr(check, "test", None)
    if load is None or not isinstance(test, ast.Compare):
        return None
    compared = {
        side.attr for side in (test.left, *test.comparators) if isinstance(side, ast.Attribute)
    }
    stores = [s.target for s in load.stores if isinstance(s.target, Attr)]
    return next((target for target in stores if target.name in compared), None)


def _endless(trial: Trial) -> Suspect | None:
    """A loop that a turn leaves as it was."""
    error = trial.raised
    if error is None or not isinstance(error.node, ast.While) or error.names is None:
        return None
    module, test = error.names.module, error.node.test
    if module is None:
        return None
    message = (
        f"with {trial.story}, this loop never ends: a turn of it changes nothing, so "
        f"`{ast.unparse(test)}` stays true and the process hangs; leave the loop when there is "
        f"nothing left that it can do"
    )
    return Suspect(module, node_of(test), message)


def _is_starved(trial: Trial) -> bool:
    if any(turn.in_batches or turn.indices is None for turn in trial.turns):
        return False
    sizes = [turn.count for turn in trial.turns]
    together = next((found for _, _, found in shares(trial.observed)), None)
    return max(sizes) - min(sizes) > 1 and together is not None and together.exact


def _starved(model: Model, module: Module, cls: Class, trial: Trial) -> Suspect:
    sizes = [turn.count for turn in trial.turns]
    message = (
        f"with {trial.story}, the ranks get {_listed(sizes)} samples: `{cls.name}` rounds every "
        f"shard up, so that the last ranks go short or get none; give the first `n % ranks` "
        f"ranks one sample more instead"
    )
    where, node = splitting_place(model, cls) or (module, name_of(module, cls))
    return Suspect(where, node, message)


def _same_share(model: Model, module: Module, cls: Class, trial: Trial) -> Suspect:
    turn = trial.turns[0]
    message = (
        f"with {trial.story}, every rank hands out the same {turn.count}: `{cls.name}` takes a "
        f"share of the data and does not say by the rank which, so that the ranks read the same "
        f"samples and nobody reads the others; let the share begin at the rank"
    )
    iterate = defined_by(model, cls, "__iter__")
    if iterate is None:
        return Suspect(module, name_of(module, cls), message)
    where = model.module_of(iterate)
    return Suspect(where, _strided(where, iterate) or name_of(where, iterate), message)


def _strided(module: Module, function: Function) -> Index | None:
    """The slice that takes every so many samples."""
    for stmt in statements(function.body):
        for expr in expressions(stmt):
            for node in walk(expr):
                key = slice_of(module, node) if isinstance(node, Index) else None
                if key is not None and key.step is not None and isinstance(node, Index):
                    return node
    return None


def _short_padding(model: Model, module: Module, cls: Class, trial: Trial) -> Suspect:
    message = (
        f"with {trial.story}, {counts(trial)}: the padding of `{cls.name}` is cut from the "
        f"indices once, which is too short when there are fewer samples than half the ranks; "
        f"repeat the indices as often as needed"
    )
    where, node = splitting_place(model, cls) or (module, name_of(module, cls))
    return Suspect(where, node, message, grade=Grade.LIKELY, severity=Severity.WARNING)


def _listed(numbers: list[int]) -> str:
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


# --------------------------------------------------------------------------- read


def _read(module: Module, function: Function) -> Iterator[Suspect]:
    for stmt in statements(function.body):
        if isinstance(stmt, For):
            yield from _first_never_removed(module, stmt)
        for expr in expressions(stmt):
            for node in walk(expr):
                if isinstance(node, Index):
                    yield from _minus_zero(module, function, node, stmt)
                elif isinstance(node, Compare):
                    yield from _list_as_number(module, function, node)


def _first_never_removed(module: Module, loop: For) -> Iterator[Suspect]:
    """``for i in range(len(x) - 1, 0, -1)`` that takes ``x[i]`` out."""
    call = loop.iter
    if not (isinstance(call, Call) and last_name(call.func) == "range" and len(call.args) == 3):
        return
    start, stop, step = call.positional
    if not (_is(stop, 0) and _is(step, -1) and isinstance(loop.target, Name)):
        return
    if not (isinstance(start, Bin) and start.op == "Sub" and _is(start.right, 1)):
        return
    size = _assigned(start.left)
    if not (isinstance(size, Call) and last_name(size.func) == "len" and len(size.args) == 1):
        return
    items, index = size.args[0].value, loop.target.id
    if any(_removes(stmt, items, index) for stmt in statements(loop.body)):
        text = unparse(items)
        message = (
            f"this loop stops before index 0, so the first of `{text}` is never taken out, and "
            f"what follows divides by its length or reads nothing; use "
            f"`range(len({text}) - 1, -1, -1)`"
        )
        yield Suspect(module, call, message, fix=_write(stop, "-1"))


def _assigned(expr: Expr) -> Expr:
    """What a local name that is assigned once stands for."""
    if isinstance(expr, Name):
        bindings = expr.scope.bindings.get(expr.id, [])
        value = bindings[0].value if len(bindings) == 1 else None
        if value is not None and bindings[0].how == "assign" and not bindings[0].path:
            return value
    return expr


def _removes(stmt: Stmt, items: Expr, index: str) -> bool:
    if isinstance(stmt, Simple) and stmt.kind == "delete":
        return any(
            isinstance(part, Index) and same(part.value, items) and _is_name(part.key, index)
            for part in stmt.parts
        )
    return any(
        isinstance(node, Call)
        and isinstance(node.func, Attr)
        and node.func.name == "pop"
        and same(node.func.value, items)
        and bool(node.args)
        and _is_name(node.args[0].value, index)
        for expr in expressions(stmt)
        for node in walk(expr)
    )


def _stuck_counters(module: Module, function: Function) -> Iterator[Suspect]:
    """A counter that picks a rank's items (``i % n == rank``) and advances for those alone."""
    for stmt in statements(function.body):
        if not isinstance(stmt, If):
            continue
        tested = _counted(stmt.test)
        loop = stmt.parent
        if tested is None or not isinstance(loop, (For, While)) or stmt not in loop.body:
            continue
        counter, takes = tested
        changes = [binding.stmt for binding in function.bindings.get(counter.id, ())]
        steps = [change for change in changes if isinstance(change, AugAssign)]
        rest = [change for change in changes if not isinstance(change, AugAssign)]
        if (
            not steps
            or any(
                binding.how not in {"assign", "aug"} for binding in function.bindings[counter.id]
            )
            or any(change is None or loop.encloses(change) for change in rest)
        ):
            continue
        if takes:
            stuck = all(any(own.encloses(step) for own in stmt.body) for step in steps)
        else:
            last = stmt.body[-1]
            skips = isinstance(last, Simple) and last.kind == "continue" and not stmt.orelse
            stuck = skips and all(
                loop.encloses(step) and step.order > stmt.last_order for step in steps
            )
        if stuck:
            message = (
                f"`{counter.id}` advances only for the items that this process takes, so from the "
                f"first item of another one on it stands still: one process gets what comes "
                f"before, the rest is read by nobody; advance it for every item"
            )
            yield Suspect(module, stmt.test, message)


def _counted(test: Expr) -> tuple[Name, bool] | None:
    """``i`` of ``i % n == rank``, and whether the item is taken when that holds."""
    takes = True
    while isinstance(test, Unary) and test.op == "Not":
        test, takes = test.operand, not takes
    if not isinstance(test, Compare) or len(test.ops) != 1 or test.ops[0] not in {"Eq", "NotEq"}:
        return None
    sides = (test.left, test.rights[0])
    for side, other in (sides, sides[::-1]):
        if (
            isinstance(side, Bin)
            and side.op == "Mod"
            and isinstance(side.left, Name)
            and (PROCESSES.is_mentioned(other) or WORKERS.is_mentioned(other))
        ):
            return side.left, takes is (test.ops[0] == "Eq")
    return None


def _minus_zero(module: Module, function: Function, node: Index, stmt: Stmt) -> Iterator[Suspect]:
    """``x[:-k]`` where ``k`` is a remainder that may be 0."""
    key = slice_of(module, node)
    if key is None or key.lower is not None or key.step is not None:
        return
    upper = key.upper
    if not (isinstance(upper, ast.UnaryOp) and isinstance(upper.op, ast.USub)):
        return
    count = upper.operand
    if isinstance(count, ast.BinOp) and isinstance(count.op, ast.Mod):
        yield _minus_zero_suspect(module, node, f"({ast.unparse(count)})")
    elif isinstance(count, ast.Name):
        bindings = function.bindings.get(count.id, [])
        if len(bindings) == 1 and _is_remainder(bindings[0]) and not _asks(function, count.id):
            yield _minus_zero_suspect(module, node, count.id)
    elif (
        isinstance(count, ast.Attribute)
        and isinstance(count.value, ast.Name)
        and count.value.id == function.self_name
        and isinstance(function.outer, Class)
    ):
        own = function.outer
        stores = [
            store
            for scope in scopes_inside(own)
            for store in scope.stores
            if isinstance(store.target, Attr) and store.target.name == count.attr
        ]
        if (
            len(stores) == 1
            and stores[0].how == "assign"
            and not stores[0].path
            and isinstance(stores[0].value, Bin)
            and stores[0].value.op == "Mod"
            and not _asks(function, count.attr)
        ):
            yield _minus_zero_suspect(module, node, ast.unparse(count))


def _minus_zero_suspect(module: Module, node: Index, count: str) -> Suspect:
    message = (
        f"`{count}` is a remainder and may be 0, and `[:-0]` is empty: whenever it divides "
        f"evenly nothing at all is handed out; slice up to `len(…) - {count}`"
    )
    if not isinstance(node.value, (Name, Attr)):
        return Suspect(module, node, message)
    items = text_of(module.source, node.value)
    sliced = f"{items}[: len({items}) - {count}]"
    return Suspect(module, node, message, fix=_write(node, sliced))


def _write(node: Expr, code: str) -> Fixer:
    return replacing(node, code, f"Write `{code}`")


def _is_remainder(binding: Binding) -> bool:
    value = binding.value
    return (
        binding.how == "assign"
        and not binding.path
        and isinstance(value, Bin)
        and value.op == "Mod"
    )


def _asks(function: Function, name: str) -> bool:
    """Whether any condition of the function looks at the name."""
    for stmt in statements(function.body):
        test = getattr(stmt, "test", None)
        if test is not None and any(_says(node, name) for node in walk(test)):
            return True
        for expr in expressions(stmt):
            for node in walk(expr):
                choice = getattr(node, "test", None)
                if isinstance(choice, Expr) and any(_says(n, name) for n in walk(choice)):
                    return True
    return False


def _list_as_number(module: Module, function: Function, node: Compare) -> Iterator[Suspect]:
    """``batch == self.batch_size`` for a list."""
    if len(node.ops) != 1 or node.ops[0] not in {"Eq", "GtE", "Gt"}:
        return
    left, right = node.left, node.rights[0]
    if isinstance(left, Name) and _is_size(right) and _is_always_list(function, left.id):
        text, size = unparse(left), unparse(right)
        if node.ops[0] == "Eq":
            result = "a list never equals a number, so no batch is ever complete"
        else:
            result = "comparing a list with a number raises TypeError"
        message = f"`{text}` is a list: {result}; compare `len({text})` with `{size}`"
        yield Suspect(module, node, message, fix=_write(left, f"len({text})"))


_SIZE = re.compile(r"batch_?size$|^_?bsz?$|^_?(num_samples|total_size|num_instances)$")


def _is_size(expr: Expr) -> bool:
    return _SIZE.search(last_name(expr) or "") is not None


def _is_always_list(function: Function, name: str) -> bool:
    bindings = function.bindings.get(name, [])
    return bool(bindings) and all(
        binding.how == "aug" or (binding.how == "assign" and not binding.path and _is_list(binding))
        for binding in bindings
    )


def _is_list(binding: Binding) -> bool:
    value = binding.value
    return (
        (isinstance(value, Seq) and value.kind == "list")
        or (isinstance(value, Comp) and value.kind == "ListComp")
        or (isinstance(value, Call) and isinstance(value.func, Name) and value.func.id == "list")
    ) and isinstance(binding.stmt, Assign)


def _is(expr: Expr, number: int) -> bool:
    return isinstance(expr, Const) and type(expr.value) is int and expr.value == number


def _is_name(expr: Expr, name: str) -> bool:
    return isinstance(expr, Name) and expr.id == name


def _says(expr: Expr, name: str) -> bool:
    return (isinstance(expr, Name) and expr.id == name) or (
        isinstance(expr, Attr) and expr.name == name
    )
