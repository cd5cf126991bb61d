"""Whether a turn of an epoch loop leaves more of what it has read than training makes of it.

Asked the other way round than for a list of harms: what a turn reads may go into the model, into
sums, and into what the turn itself makes anew. An item, or a list of items, that outlives the turn
(kept, or written to a file) has a place there which another order gives to another sample; and so
has what lasts and is taken by the number of a batch. All that is not known to be of the former
kind is of the latter.
"""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.analysis.values import Obj
from sampler_lint.catalog import handling
from sampler_lint.domain.batch_values import (
    NUMBERS,
    OF_BATCH,
    Kind,
    Values,
)
from sampler_lint.domain.concepts import (
    EPOCH,
    GENERATORS,
    LOGS,
    SEEDS_ONE,
    WRITES,
)
from sampler_lint.domain.epochs import EpochLoop
from sampler_lint.domain.learning import learns
from sampler_lint.domain.model import Model
from sampler_lint.domain.parts import (
    begins_sum,
    called,
    deep,
    flat,
    is_made_of_before,
    is_paired,
    keeps_for_next,
    parts,
    seeds_alike,
)
from sampler_lint.domain.passes import loops_of
from sampler_lint.domain.reading import counts_reads
from sampler_lint.domain.steps import is_step, steps
from sampler_lint.remembered import remembered
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.navigation import (
    expressions,
    leaves,
    leftmost,
    nodes_in,
    owner_of,
    self_class,
    statements,
    walk,
)
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Class,
    Comp,
    Compare,
    Expr,
    For,
    Function,
    If,
    Index,
    Loop,
    ModuleFacts,
    Name,
    Simple,
    Stmt,
    While,
    Yield,
    dotted,
    last_name,
)


def hands_on(model: Model, found: EpochLoop) -> bool:
    """Whether a pass goes by what the batch before was."""
    return _Turn(model, found.inner.loader, found.inner.scope, {}, 0).hands_on()


def leaves_items(model: Model, found: EpochLoop) -> bool:
    """Whether a turn leaves items to what comes after it, or goes by their numbers."""
    loop, inner = found.loop, found.inner
    if any(seeds_alike(call, loop) for call in loop.scope.calls_in(loop)):
        return True
    if _keeps_what_it_is_given(model, loop.scope.module) or counts_reads(
        model, inner.loader, inner.iterated
    ):
        return True
    if _is_kept_by_callers(model, found) or is_paired(loop):
        return True
    reset = _reset(model, loop)
    return any(
        _Turn(
            *(model, inner.loader, scope, {}, 0),
            loop=loop if scope is loop.scope else None,
            reset=reset,
        ).leaves_any()
        for scope in found.scopes
    )


@remembered
def _reset(model: Model, loop: Loop) -> frozenset[str]:
    """The attributes that a turn of a loop gives a value."""
    first = [each for call in loop.scope.calls_in(loop) for each in called(model, call)]
    run = closure(first, lambda scope: _called_in(model, scope))
    stores = [each for each in loop.scope.stores if loop.encloses(each.stmt)]
    stores += (each for scope in run if scope.name != "__init__" for each in scope.stores)
    own = (each.target for each in stores if each.how != "aug" and isinstance(each.target, Attr))
    return frozenset(each.name for each in own)


@remembered
def _called_in(model: Model, scope: Function) -> list[Function]:
    return [each for call in scope.calls for each in called(model, call)]


@remembered
def _keeps_what_it_is_given(model: Model, module: ModuleFacts) -> bool:
    """Whether a function of a file that nobody in it calls keeps the items it may be given."""
    return any(_Turn(model, None, *each, 0).leaves_any() for each in _handed_over(model, module))


def _handed_over(model: Model, module: ModuleFacts) -> Iterator[tuple[Function, dict[str, Kind]]]:
    """The functions of a file that nobody in it calls: what they are given may be any item."""
    for scope in module.scopes:
        if isinstance(scope, Function) and (scope.name in {"emit", "forward"} or scope.cls is None):
            params = scope.params[1:] if scope.cls is not None else scope.params
            is_plain = all(param.default is None for param in params)
            if is_plain and not scope.loops and not model.flow.callers(scope):
                yield scope, {param.name: Kind.ITEM for param in params}


def _is_kept_by_callers(model: Model, found: EpochLoop) -> bool:
    """Whether those who go over a generator that makes the turns keep what it gives them."""
    scope = found.loop.scope
    if not isinstance(scope, Function) or not scope.yields:
        return False
    is_endless = isinstance(found.loop, While)  # nobody keeps all that it gives
    for call in model.flow.callers(scope):
        stmt = call.stmt
        if isinstance(stmt, For) and call in walk(stmt.iter):
            taken = {name: Kind.ITEM for p in flat(stmt.target) if (name := dotted(p))}
            if _Turn(model, None, call.scope, taken, 0, loop=stmt).leaves_any():
                return True
        elif not is_endless and not (isinstance(stmt, Assign) and stmt.value is call):
            return True
    return False


class _Turn(Values):
    """What one scope does with it, in a turn or in what a turn calls."""

    def leaves_any(self) -> bool:
        """Whether something that was read, and not only a sum of it, outlives the turn."""
        kept: set[Kind | None] = set()
        for call in self.calls:
            self.kind(call)
            kept |= self._kept(call)
            seeds = SEEDS_ONE.is_call(call) or GENERATORS.is_call(call)
            if seeds and any(self.kind(arg.value) is Kind.NUMBER for arg in call.args):
                return True
            if self._writes(call) or self._is_unknown(call) or self._gives_away(call):
                return True
        # Who keeps the samples beside what was made of each relies on no order.
        if Kind.ITEM in kept and Kind.MADE not in kept:
            return True
        for stmt in self.stmts:
            for each in expressions(stmt):
                self.kind(each)
            if isinstance(stmt, (Assign, AugAssign)):
                targets = stmt.targets if isinstance(stmt, Assign) else [stmt.target]
                if any(self._is_kept(each, stmt) for each in targets):
                    return True
            elif isinstance(stmt, If):
                kind = self.kind(stmt.test)
                if kind is Kind.PLACE or self._splits(stmt) or self._takes_part(stmt):
                    return True
            elif self.loop is not None and any(map(self.hands_out, deep([*expressions(stmt)]))):
                return True
        return self.harm or bool(self.carried & self.lists.keys())

    def hands_out(self, part: Expr) -> bool:
        """Whether a turn hands out a list, or a pass before it is read."""
        value = part.value if isinstance(part, Yield) and not part.delegates else None
        return value is not None and (
            self.list_of(value) is not None
            or any(isinstance(one, Call) and last_name(one.func) == "iter" for one in walk(value))
            or (isinstance(value, Comp) and self._over(value.iters) is not None)
        )

    def hands_on(self) -> bool:
        """Whether a pass reads what it has kept of the batch before, or has made of it."""
        for loop in self.stmts:
            if not isinstance(loop, For) or not any(map(self._gives_batches, walk(loop.iter))):
                continue
            for stmt in statements(loop.body):
                if not isinstance(stmt, Assign):
                    continue
                names = {dotted(part) for each in stmt.targets for part in flat(each)} - {None}
                kinds = {self.kind(part) for part in walk(stmt.value)}
                read = nodes_in([each for each in statements(loop.body) if each.order < stmt.order])
                if self.kind(stmt.value) is Kind.ITEM and {*map(dotted, read)} & names:
                    return True
                if Kind.ITEM in kinds and is_made_of_before(stmt.value, names):
                    return True
            calls = self.scope.calls_in(loop)
            if any(keeps_for_next(each) for call in calls for each in called(self.model, call)):
                return True
        return False

    def _is_kept(self, target: Expr, stmt: Assign | AugAssign) -> bool:
        kind = self.kind(stmt.value)
        if isinstance(target, Index):
            if self.kind(target.key) in OF_BATCH:
                return False  # the samples say themselves whose place it is
            is_carried = dotted(target.value) in self.carried
            is_part = kind is Kind.MADE and target in self.scope.module.slices
            return (is_carried or self.lasts(target.value)) and (
                kind is Kind.ITEM or is_part or self.is_of_samples(stmt.value)
            )
        made = last_name(stmt.value.func) if isinstance(stmt.value, Call) else None
        is_left = self.list_of(stmt.value) is not None
        is_left |= kind is Kind.ITEM and made not in {"iter", "next"}
        if isinstance(target, Attr) and self.is_figure(stmt.value) and self.lasts(target.value):
            owners = [v.cls for v in self.model.flow.values(target.value) if isinstance(v, Obj)]
            names = {"__setattr__", target.name}
            if any(isinstance(c, Class) and names & {m.name for m in c.methods} for c in owners):
                return True
        if isinstance(stmt, Assign):
            goes_on = any(dotted(part) == dotted(target) for part in walk(stmt.value))
            is_mean = isinstance(stmt.value, Bin) and goes_on and self.list_of(stmt.value) is None
            return is_left and not is_mean and dotted(target) in self.carried
        return is_left and self.lasts(target) and not self._is_sum(target, stmt)

    def _is_sum(self, target: Expr, stmt: AugAssign) -> bool:
        """Whether it is a number that another one is added to: such come to one in any order."""
        begun = self._begun(target)
        is_number = any(map(begins_sum, begun))
        made = stmt.value
        is_number |= isinstance(made, Call) and last_name(made.func) in handling.NUMBERS
        return stmt.op in {"Add", "Sub"} and is_number and self.list_of(made) is None

    def _begun(self, target: Expr) -> list[Expr]:
        """The values that a name, or an attribute of an object of the program, begins with."""
        if isinstance(target, Name):
            owner = owner_of(target)
            bound = owner.bindings.get(target.id, ()) if owner is not None else ()
            return [each.value for each in bound if each.value is not None and each.how != "aug"]
        name = target.name if isinstance(target, Attr) else None
        own = self_class(target.value) if isinstance(target, Attr) else None
        scopes = own.methods if own is not None else self.scope.module.scopes
        stores = (store for scope in scopes for store in scope.stores if store.how != "aug")
        return [
            store.value
            for store in stores
            if store.value is not None and getattr(store.target, "name", None) == name
        ]

    def _kept(self, call: Call) -> set[Kind | None]:
        """What is given, item by item or as a list of them, to something that lasts."""
        func = call.func
        if not isinstance(func, Attr):
            return set()
        if func.name.endswith("_") and self.lasts(leftmost(call)):
            # torch changes in place what a name with a line at its end says.
            return {Kind.ITEM for arg in call.args if self.is_of_samples(arg.value)}
        if func.name not in handling.APPENDS | handling.ADDS | {"setdefault"}:
            return set()
        if self.model.flow.callees(call) or not self.lasts(func.value):
            return set()
        args = [arg.value for arg in call.args]
        if any(map(self.is_of_samples, args)):
            return {Kind.ITEM}
        if func.name in handling.ADDS and not self._is_in_part(call):
            return set()
        return {*map(self.kind, args)}

    def _gives_away(self, call: Call) -> bool:
        """Whether a number of a batch as it was read, and no batch, is kept by what it is given."""
        given = [arg.value for arg in call.args]
        if not any(map(self.is_figure, given)) or LOGS.is_call(call):
            return False
        func, name = call.func, last_name(call.func)
        owner = func.value if isinstance(func, Attr) else None
        if name in handling.ADDS and owner is not None and self.lasts(owner):
            # Of each sample is of no account, and of each batch as they were made up.
            around = next(iter(loops_of(call.stmt)), None) if call.stmt is not None else None
            is_pass = isinstance(around, For) and any(map(self._gives_batches, walk(around.iter)))
            return name == "add" and is_pass
        if name == "setattr":
            return self.lasts(given[0])
        is_batch = any(self.kind(each) in OF_BATCH and not self.is_figure(each) for each in given)
        return not is_batch and any(each.name == "__init__" for each in called(self.model, call))

    def _is_unknown(self, call: Call) -> bool:
        """Whether something else than what learns is given an item, and nobody knows what it does.

        What is given what was made of the items, too, measures that.
        """
        kinds = {self.kind(arg.value) for arg in call.args}
        if Kind.ITEM not in kinds or Kind.MADE in kinds:
            return False
        if any(each.is_call(call) for each in (LOGS, WRITES)):
            return False
        func, name = call.func, last_name(call.func)
        if name in handling.APPENDS | handling.ADDS | handling.SHOWS or self.is_pure(call):
            return False
        if called(self.model, call) or learns(self.model, call):
            return False
        if not isinstance(func, Attr):
            return True
        if self.kind(func.value) or not self.lasts(func.value):
            return False
        owner = dotted(func.value)
        stepping = (one.func for one in self.calls if is_step(self.model, one))
        return not any(isinstance(each, Attr) and dotted(each.value) == owner for each in stepping)

    def _writes(self, call: Call) -> bool:
        """Whether items are written to a file in each turn, at places of their own."""
        to_file = call.keyword("file") is not None and LOGS.is_call(call)
        if not (to_file or WRITES.is_call(call)) or self._is_in_one_turn(call):
            return False
        args = [arg.value for arg in call.args if arg.keyword != "file"]
        kinds = {self.kind(part) for each in args for part in walk(each)}
        if any(map(self.is_of_samples, args)):
            return True
        return Kind.ITEM in kinds and Kind.MADE not in kinds

    def _is_in_part(self, call: Call) -> bool:
        """Whether not each batch of a pass comes to a call."""
        around = call.stmt.ancestors() if call.stmt is not None else ()
        tests = [each.test for each in around if isinstance(each, If)]
        return any(self.kind(test) not in OF_BATCH for test in tests)

    def _is_in_one_turn(self, call: Call) -> bool:
        around = call.stmt.ancestors() if call.stmt is not None else ()
        return any(EPOCH.is_mentioned(each.test) for each in around if isinstance(each, If))

    def _splits(self, stmt: If) -> bool:
        """Whether the number of a batch says if it is trained on, or used for something else."""
        if self.kind(stmt.test) not in NUMBERS or EPOCH.is_mentioned(stmt.test):
            return False
        around = next(iter(loops_of(stmt)), None)
        is_pass = isinstance(around, For) and any(map(self._gives_batches, walk(around.iter)))
        if not is_pass and not isinstance(around, While):
            return False
        behind = stmt.block[stmt.block.index(stmt) + 1 :]
        other = stmt.orelse or (behind if leaves(stmt.body[-1]) else [])
        sides = [(stmt.body, other), (other, stmt.body)]
        return any(
            any(steps(self.model, self.scope, each) for each in one)
            and not any(steps(self.model, self.scope, each) for each in two)
            and any(self._uses(each) for each in two)
            for one, two in sides
        )

    def _takes_part(self, stmt: If) -> bool:
        """Whether a turn leaves out the batches up to a number that goes by the turns before it.

        Each turn takes the next part of a pass. One that only ends at such a number takes more.
        """
        ends = isinstance(last := stmt.body[-1], Simple) and last.kind == "break"
        for part in walk(stmt.test) if not ends else ():
            sides = [part.left, *part.rights] if isinstance(part, Compare) else []
            ours = [each for each in sides if self.kind(each) is Kind.NUMBER]
            others = {dotted(one) for each in sides if each not in ours for one in walk(each)}
            if ours and others & self.by_turn:
                return True
        return False

    def _uses(self, stmt: Stmt) -> bool:
        return any(self.kind(part) in OF_BATCH for part in parts([stmt]))
