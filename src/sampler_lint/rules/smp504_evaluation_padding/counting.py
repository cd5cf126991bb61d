"""What an evaluation counts, and whether it takes out again what comes twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeGuard

from sampler_lint.analysis.arguments import passed
from sampler_lint.analysis.fillings import put_in_list
from sampler_lint.analysis.origins import Hop, Step, depends_on, only, origins
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import EVALUATES, Concept
from sampler_lint.domain.epochs import pass_evaluates
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import Pass
from sampler_lint.limits import DEEPEST_WRAPPING
from sampler_lint.parameters import Role, role_of
from sampler_lint.remembered import remembered
from sampler_lint.syntax.navigation import nodes_in, same, statements, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Comp,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Index,
    Map,
    Name,
    Other,
    Scope,
    Seq,
    Stmt,
    last_name,
)

COUNTING = frozenset(
    {
        "add_batch", "all_gather", "all_gather_object", "all_reduce", "gather", "gather_object",
        "reduce", "update", "update_metric", "update_metrics",
    }
)  # fmt: skip
_AS_ONE_WORD = frozenset(name.replace("_", "") for name in COUNTING)
#: Of these, what a meter is told by.
_UPDATES = frozenset(name for name in COUNTING if name.startswith("update"))
ADDS = frozenset({"append", "extend", "update"})
_AVERAGES = frozenset({"average", "fmean", "mean", "nanmean", "sum"})
_BY_KEY = frozenset({"items", "keys"})
_DICTS = frozenset({"dict", "defaultdict", "OrderedDict"})
#: How a tokenizer, and a convolution, is told to fill up what it gets.
_OF_TOKENS = "padding"
CORRECTS = Concept(
    spelled=re.compile(
        r"total_size|gather_for_metrics|duplicat|dedup|uniq|drop_last|surplus"
        # What fills up the tokens of one sample says nothing about how often a sample comes.
        r"|padd(?:ed|ing)(?!_(?:idx|mask|side|value|token))",
        re.IGNORECASE,
    )
)
_SAVES = Concept(spelled=re.compile(r"save|write|dump", re.IGNORECASE))
#: What brings together what the ranks have counted.
TOGETHER = Concept(spelled=re.compile(r"reduce|gather|sync|collect|broadcast|merge", re.IGNORECASE))

#: How a score is compared: what asks whether a sample was met before says ``in``.
_ORDERS = frozenset({"Gt", "GtE", "Lt", "LtE"})
_WITH_KEYS = frozenset({"DictComp", "SetComp"})


def is_length(expr: Expr) -> TypeGuard[Call]:
    """Whether it asks how many there are."""
    return isinstance(expr, Call) and last_name(expr.func) == "len"


@remembered
def evaluates(model: Model, scope: Scope, within: Stmt | None) -> bool:
    """Whether code in the scope sums up metrics and takes no sample out again."""
    return sums_up(model, scope, within) and not _corrects(model, scope)


def counts_inline(model: Model, found: Pass) -> bool:
    """Whether a pass that only uses a model, in code named after more, sums up what that gives.

    As ``main`` does that trains for an epoch and then evaluates, and one function for both.
    Nothing may take a sample out again below.
    """
    loop, scope = found.stmt, found.scope
    if not isinstance(loop, For) or EVALUATES.says(getattr(scope, "name", None)):
        return False
    return (
        pass_evaluates(model, found)
        and any(_comes_of_model(model, loop, each) for each in _added(loop))
        and not takes_out(nodes_in(s for s in statements(scope.body) if s.order >= loop.order))
        and not _are_cut(model, scope.calls)
    )


def _adds_up(model: Model, loop: For) -> bool:
    """Whether the turns of a loop add to a sum what is made of the batch."""
    return any(_comes_of_model(model, loop, each) for each in _summed(loop))


def _summed(loop: For) -> Iterator[Expr]:
    """What the turns of a loop add to a sum, or decide by whether to count one more."""
    for stmt in statements(loop.body):
        if not isinstance(stmt, AugAssign) or stmt.op != "Add" or _lengthens(stmt):
            continue
        if not is_of_one_turn(loop, stmt):
            yield stmt.value
            if isinstance(stmt.value, Const):
                yield from (
                    around.test
                    for around in stmt.ancestors()
                    if isinstance(around, If) and loop.encloses(around)
                    if isinstance(around.test, Compare) and _ORDERS.issuperset(around.test.ops)
                )


def _lengthens(stmt: AugAssign) -> bool:
    """Whether a list is made longer, as by ``extend``: ``found += [each for each in batch]``."""
    return isinstance(stmt.value, (Comp, Seq))


def _added(loop: For) -> Iterator[Expr]:
    """What the turns of a loop add to what is counted, or to a list of which that is made below."""
    yield from _summed(loop)
    averaged = {
        node.id
        for call in loop.scope.calls
        if call.stmt and call.stmt.order > loop.last_order and last_name(call.func) in _AVERAGES
        for node in walk(call)
        if isinstance(node, Name)
    }
    for call in loop.scope.calls_in(loop):
        put = put_in_list(call)
        if last_name(call.func) in _UPDATES:
            yield from (arg.value for arg in call.args)
        elif put is not None and isinstance(put[0], Name) and put[0].id in averaged:
            yield put[1]


def _comes_of_model(model: Model, loop: For, added: Expr) -> bool:
    """Whether a number is made of the batch: not its size alone, as a progress bar is told."""
    drawn = names_drawn(loop)
    return (
        not _is_size(added)
        and depends_on(
            model.flow,
            added,
            lambda expr: isinstance(expr, Name) and expr.id in drawn,
            sanitized=lambda step: _is_size(step.expr),
        )
        is not None
    )


def _is_size(expr: Expr) -> bool:
    name = last_name(expr.func if isinstance(expr, Call) else expr)
    return isinstance(expr, (Call, Attr)) and name in {"len", "numel", "shape", "size"}


def sums_up(model: Model, scope: Scope, within: Stmt | None) -> bool:
    """Whether code in the scope, or what it hands a batch to, sums up metrics of an evaluation."""
    if not isinstance(scope, Function) or not EVALUATES.says(scope.name):
        return False
    if _counts(scope) or any(map(partial(_joins, model), scope.calls)):
        return True
    if within is not None and computes(model, scope, within):
        return True
    if isinstance(within, For) and any(_comes_of_model(model, within, e) for e in _added(within)):
        return True
    if any(
        isinstance(stmt, AugAssign)
        and not _lengthens(stmt)
        and (within is None or (within.encloses(stmt) and not is_of_one_turn(within, stmt)))
        for stmt in statements(scope.body)
    ):
        return True
    return isinstance(within, For) and any(
        _counts(callee)
        for call in scope.calls_in(within)
        if any(isinstance(e, Name) and e.id in names_drawn(within) for e in call.positional)
        for callee in model.flow.callees(call)
    )


def computes(model: Model, scope: Scope, within: Stmt) -> bool:
    """Whether an object that each turn of a loop calls is asked for the result: a metric."""
    called = [call.func for call in scope.calls_in(within)]
    told = [*called, *(func.value for func in called if isinstance(func, Attr))]
    return any(
        isinstance(call.func, Attr)
        and any(same(call.func.value, each) for each in told)
        and (call.func.name == "compute" or any(map(_averages, model.flow.callees(call))))
        for call in scope.calls
    )


def _averages(function: Function) -> bool:
    """Whether it brings together what the ranks have kept, and divides that as it is."""
    nodes = [*nodes_in(statements(function.body))]
    by_key = any(isinstance(store.target, Index) for store in function.stores) or any(
        (isinstance(node, Call) and last_name(node.func) in {"dict", "set", "update"})
        or (isinstance(node, Comp) and node.kind in _WITH_KEYS and not _divides(walk(node)))
        for node in nodes
    )
    return _counts(function) and _divides(nodes) and not by_key and not takes_out(nodes)


def _divides(nodes: Iterable[Expr]) -> bool:
    return any(isinstance(node, Bin) and node.op == "Div" for node in nodes)


def _joins(model: Model, call: Call) -> bool:
    """Whether a call that says so brings together, in a function of the tree, what ranks have."""
    return TOGETHER.names(call.func) and any(map(_counts, model.flow.callees(call)))


def _counts(scope: Scope) -> bool:
    """Whether it calls what counts or brings together; MPI and Horovod spell ``allgather``."""
    return not _AS_ONE_WORD.isdisjoint(name.replace("_", "") for name in scope.called)


def is_of_one_turn(loop: Stmt, counting: AugAssign) -> bool:
    """Whether each turn of a loop begins anew with what a statement of it adds to.

    Not where it only begins if there is nothing yet: ``if total is None: total = …``.
    """
    root = counting.target
    while isinstance(root, (Attr, Index)):
        root = root.value
    return isinstance(root, Name) and any(
        isinstance(target, Name)
        and target.id == root.id
        and not any(
            isinstance(node, Name) and node.id == root.id
            for outer in stmt.ancestors()
            if isinstance(outer, If) and loop.encloses(outer)
            for node in walk(outer.test)
        )
        for stmt in statements([loop])
        if isinstance(stmt, Assign)
        for target in stmt.targets
    )


def names_drawn(loop: For) -> set[str]:
    """The names that each turn of a loop binds."""
    return {node.id for node in walk(loop.target) if isinstance(node, Name)}


def keeps_by_key(model: Model, found: Pass) -> bool:
    """Whether the pass keeps what it counts in a dictionary, by what each sample is called.

    And adds nothing up besides, in which what comes twice counts twice.
    """
    if not isinstance(found.stmt, For) or _adds_up(model, found.stmt):
        return False
    drawn = names_drawn(found.stmt)

    def is_drawn(expr: Expr) -> bool:
        return isinstance(expr, Name) and expr.id in drawn

    return (
        any(
            isinstance(target, Index)
            and isinstance(target.value, Name)
            and _is_dict(target.value, found.stmt)
            and depends_on(model.flow, target.key, is_drawn, sanitized=_is_made_by_key) is not None
            and not any(same(node, target.value) for node in walk(stmt.value))
            for stmt in statements([found.stmt])
            if isinstance(stmt, Assign)
            for target in stmt.targets
        )
        or _puts_into_dict(found)
        or _is_keyed(model, found.stmt, is_drawn)
        or _hands_on_records(model, found, is_drawn)
        or _is_kept_elsewhere(model, found, drawn)
        or _only_saves(model, found.stmt, is_drawn)
        or _is_told_once(model, found.stmt)
    )


def _is_told_once(model: Model, loop: For) -> bool:
    """Whether all meters that hear of the batches take out what comes twice from several ranks."""
    told = [
        call
        for call in loop.scope.calls_in(loop)
        if last_name(call.func) in _UPDATES
        and any(_comes_of_model(model, loop, arg.value) for arg in call.args)
    ]
    heard = [[callee.cls for callee in model.flow.callees(call)] for call in told]
    return bool(heard) and all(
        classes
        and all(
            cls is not None and any(_joins_once(model, m) for m in cls.methods) for cls in classes
        )
        for classes in heard
    )


def _joins_once(model: Model, function: Function) -> bool:
    """Whether it takes out samples where it, or a function of the tree, brings the ranks together.

    Not in what only sends: that fills up bytes, and cuts them off again.
    """
    called = (callee for call in function.calls for callee in model.flow.callees(call))
    return any(
        _counts(each) and takes_out(nodes_in(statements(each.body)))
        for each in (function, *called)
        if each.name not in COUNTING
    )


def _only_saves(model: Model, loop: For, is_drawn: Callable[[Expr], bool]) -> bool:
    """Whether results go into files that are called after the samples, and none is counted."""
    calls = loop.scope.calls_in(loop)
    counting = [call for call in calls if last_name(call.func) in COUNTING | ADDS]
    return (
        any(
            _SAVES.names(call.func)
            and any(_is_called_after(model, arg.value, is_drawn) for arg in call.args)
            for call in calls
        )
        and not any(_comes_of_model(model, loop, arg.value) for c in counting for arg in c.args)
        and not any(_counts(callee) for call in calls for callee in model.flow.callees(call))
        and not any(
            isinstance(stmt, AugAssign)
            and any(isinstance(each, If) and loop.encloses(each) for each in stmt.ancestors())
            for stmt in statements(loop.body)
        )
    )


def _is_called_after(model: Model, expr: Expr, is_drawn: Callable[[Expr], bool]) -> bool:
    """Whether a text is made of what a turn binds."""
    made = only(model.flow, expr, Hop.ASSIGNED)
    keys = {node.key for node in walk(made) if isinstance(node, Index)}
    return (
        any(
            isinstance(node, Other) or (isinstance(node, Const) and isinstance(node.value, str))
            for node in walk(made)
            if node not in keys
        )
        and depends_on(model.flow, made, is_drawn) is not None
    )


def _is_dict(name: Name, loop: For) -> bool:
    """Whether a name is bound to a dictionary: a display, or what a call makes before the loop."""
    return any(
        isinstance(made.value, Map)
        or (
            isinstance(made.value, Call)
            and last_name(made.value.func) in _DICTS
            and not (made.stmt and loop.encloses(made.stmt))
        )
        for made in name.scope.bindings.get(name.id, ())
    )


def _hands_on_records(model: Model, found: Pass, is_drawn: Callable[[Expr], bool]) -> bool:
    """Whether all that the pass keeps are records, one for each sample, for somebody else.

    Whether one that comes twice counts twice is for that to say: not where they are taken apart.
    """
    loop, scope = found.stmt, found.scope
    assert isinstance(loop, For)
    fresh = {
        node.id
        for stmt in statements(loop.body)
        if isinstance(stmt, Assign)
        for target in stmt.targets
        for node in walk(target)
        if isinstance(node, Name)
    }
    adds = [
        call
        for call in scope.calls_in(loop)
        if last_name(call.func) in ADDS and isinstance(call.func, Attr) and call.positional
    ]
    records: dict[str | None, list[Map]] = {}
    for call in adds:
        record = call.positional[0]
        if isinstance(record, Map) and _is_of_one_sample(loop, call):
            records.setdefault(_owner(call), []).append(record)
    kept = [call for call in adds if _owner(call) not in fresh]
    if not kept or not all(
        _owner(call) in records or getattr(call.positional[0], "id", "") in records for call in kept
    ):
        return False
    if any(_summed(loop)):
        return False
    items = [item for each in records.values() for record in each for item in record.items]
    keys = {key.value for key, _ in items if isinstance(key, Const)}
    later = [s for s in statements(scope.body) if s.order > loop.order and not loop.encloses(s)]
    return any(depends_on(model.flow, value, is_drawn) for _, value in items) and not any(
        isinstance(node, Index) and isinstance(node.key, Const) and node.key.value in keys
        for node in nodes_in(later)
    )


def _owner(call: Call) -> str | None:
    """The name of what a method is called of."""
    owner = call.func.value if isinstance(call.func, Attr) else None
    return owner.id if isinstance(owner, Name) else None


def _is_of_one_sample(loop: For, call: Call) -> bool:
    """Whether it stands in another loop in the turn of a loop."""
    around = call.stmt.ancestors() if call.stmt is not None else ()
    return any(isinstance(each, For) and loop.encloses(each) for each in around if each is not loop)


def _is_kept_elsewhere(model: Model, found: Pass, drawn: set[str]) -> bool:
    """Whether what a turn calls keeps its results under a text that says which sample's it is."""

    def is_drawn(expr: Expr) -> bool:
        return isinstance(expr, Name) and expr.id in drawn and expr.scope is found.scope

    calls, called = found.scope.calls_in(found.stmt), dict[Function, None]()
    for _ in range(DEEPEST_WRAPPING):
        new = {c: None for call in calls for c in model.flow.callees(call) if c not in called}
        called |= new
        calls = [call for function in new for call in function.calls]
    return any(
        isinstance(target, Index)
        and isinstance(target.value, Attr)
        and not any(same(node, target) for node in walk(stmt.value))
        and _spells_samples(model, target.key, is_drawn)
        and depends_on(model.flow, stmt.value, is_drawn) is not None
        for function in called
        for stmt in statements(function.body)
        if isinstance(stmt, Assign)
        for target in stmt.targets
    )


def _spells_samples(model: Model, key: Expr, is_drawn: Callable[[Expr], bool]) -> bool:
    """Whether a key is a text that spells a sample: a number may be a size, a mask some part."""
    return any(
        isinstance(step.expr, Other)
        and step.towards is not None
        and not isinstance(step.towards.expr, Index)
        and depends_on(model.flow, step.expr, is_drawn, sanitized=_is_of_fields) is not None
        for step in origins(model.flow, key)
    )


def _is_of_fields(step: Step) -> bool:
    """Whether it is what a dictionary goes by, as a batch does by its fields."""
    return isinstance(step.expr, Call) and last_name(step.expr.func) in _BY_KEY


def _is_keyed(model: Model, loop: For, is_drawn: Callable[[Expr], bool]) -> bool:
    """Whether a turn puts its results into a dictionary by what each sample is called."""
    displays = [
        node.table if isinstance(node, Comp) else node
        for node in nodes_in(statements(loop.body))
        if isinstance(node, Map) or (isinstance(node, Comp) and not _goes_by_its_keys(node))
    ]
    return any(
        key is not None
        and not isinstance(key, Const)
        and depends_on(model.flow, key, is_drawn, sanitized=_is_made_by_key) is not None
        for display in displays
        if display is not None
        for key, _ in display.items
    )


def _goes_by_its_keys(comp: Comp) -> bool:
    """Whether a dict is made of another one by its keys: ``{k: losses[k] for k in losses}``.

    What losses are called says nothing of samples.
    """
    return comp.table is not None and any(
        same(part.value, comp.iters[0])
        and any(same(part.key, key) for key, _ in comp.table.items if key)
        for _, value in comp.table.items
        for part in walk(value)
        if isinstance(part, Index)
    )


def _is_made_by_key(step: Step) -> bool:
    """Whether it is what a call made by keys of its own: ``criterion(outputs).items()``."""
    above = step.towards
    return (
        isinstance(step.expr, Call)
        and above is not None
        and isinstance(above.expr, (Name, Attr))
        and any(
            isinstance(each.expr, Call) and last_name(each.expr.func) in _BY_KEY
            for each in above.way()
        )
    )


def _puts_into_dict(found: Pass) -> bool:
    """Whether what the pass counts goes into a dictionary, by ``results.update(…)`` alone."""
    kept = [
        call
        for call in found.scope.calls
        if last_name(call.func) in ADDS
        and call.stmt is not None
        and found.stmt.encloses(call.stmt)
        and isinstance(call.func, Attr)
    ]
    return bool(kept) and all(
        isinstance(call.func, Attr)
        and isinstance(call.func.value, Name)
        and call.func.name == "update"
        and any(
            isinstance(made.value, Map) for made in found.scope.bindings.get(call.func.value.id, ())
        )
        for call in kept
    )


def _corrects(model: Model, scope: Scope) -> bool:
    """Whether code in the scope or around it has to do with repeated samples."""
    while isinstance(scope.outer, Function):
        scope = scope.outer
    assert isinstance(scope, Function)
    for inner in (scope, *scope.module.inside(scope)):
        # What another loader or sampler is given says nothing about the results.
        apart = {n for call in inner.calls if _builds(model, call) for n in walk(call)}
        if any(
            CORRECTS.says(arg.keyword) and arg.keyword != _OF_TOKENS
            for call in inner.calls
            if call not in apart
            for arg in call.args
        ):
            return True
        if takes_out(node for node in nodes_in(statements(inner.body)) if node not in apart):
            return True
        if _are_cut(model, inner.calls):
            return True
    return False


def _are_cut(model: Model, calls: Iterable[Call]) -> bool:
    """Whether a call has results brought together and cut to as many as it says."""
    return any(
        _counts(callee) and any(_cuts_to(callee, param) for param in _given(callee, call))
        for call in calls
        for callee in model.flow.callees(call)
    )


def _given(function: Function, call: Call) -> Iterator[str]:
    """The parameters for which a call passes something, and no number that is written there."""
    for param in function.params:
        value = passed(function, param, call)
        if isinstance(value, Expr) and not isinstance(value, Const):
            yield param.name


def _cuts_to(function: Function, param: str) -> bool:
    """``gathered[:param]``, and nothing before that is left out."""
    return any(
        isinstance(node, Index)
        and isinstance(node.key, Other)
        and [getattr(part, "id", None) for part in walk(node.key) if part is not node.key]
        == [param]
        and any((part.row, part.col) > (node.key.row, node.key.col) for part in walk(node.key))
        for node in nodes_in(statements(function.body))
    )


def _builds(model: Model, call: Call) -> bool:
    """Whether a call certainly builds a loader or a sampler."""
    values = model.flow.values(call)
    return bool(values) and all(isinstance(v, Obj) and model.role(v) is not None for v in values)


def takes_out(nodes: Iterable[Expr]) -> bool:
    """Whether some code has to do with repeated samples, or cuts what it counts.

    What a sum is divided by takes nothing out of it.
    """
    found = list(nodes)
    divisors = {
        part
        for node in found
        if isinstance(node, Bin) and node.op == "Div"
        for part in walk(node.right)
    }
    return any(CORRECTS.names(node) or (node not in divisors and cuts(node)) for node in found)


def cuts(node: Expr) -> bool:
    """``out[:total]``, a check of the number counted, and anything about ``len(dataset)``."""
    if isinstance(node, Compare) and node.ops == ["Eq"]:  # an assertion that nothing comes twice
        sides = [node.left, *node.rights]
        return any(role_of(last_name(side) or "") is Role.SIZE for side in sides)
    if isinstance(node, Index) and isinstance(node.key, Other):
        parts, start = list(walk(node.key)), (node.key.row, node.key.col)
        if any(is_length(part) and (part.row, part.col) > start for part in parts):
            return True  # `out[:len(truths)]`, not `out[len(prompt):]`
        called = {part.func for part in parts if isinstance(part, Call)}  # the batch's own size()
        sizes = (last_name(part) for part in parts if part not in called)
        return any(role_of(size or "") is Role.SIZE for size in sizes)
    if isinstance(node, Call) and isinstance(node.func, Attr) and node.func.name == "__len__":
        return _is_dataset(node.func.value)
    return is_length(node) and any(map(_is_dataset, node.positional))


def _is_dataset(expr: Expr) -> bool:
    """Whether a name says so, or what is assigned to it: ``data = loader.dataset``."""
    named = [expr]
    if isinstance(expr, Name):
        named += [b.value for b in expr.scope.bindings.get(expr.id, ()) if b.value is not None]
    return any((last_name(each) or "").endswith(("dataset", "sampler")) for each in named)
