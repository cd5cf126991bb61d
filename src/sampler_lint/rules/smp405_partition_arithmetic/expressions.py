"""Slips in a sampler's expressions that need no numbers to be seen."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from sampler_lint import catalog
from sampler_lint.analysis.asked import tests
from sampler_lint.analysis.origins import LOCAL, Hop, depends_on, only
from sampler_lint.domain.batches import is_list
from sampler_lint.domain.concepts import (
    BATCH_SIZE,
    EPOCH,
    ORDERS,
    PROCESSES,
    RANGES,
    RANK,
    WORKERS,
    WORLD_SIZE,
)
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.programs import is_test
from sampler_lint.edits.editor import Editor, Fixer, replacing
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.parameters import Role, role_of
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._trials import slice_of
from sampler_lint.syntax.lower import expression
from sampler_lint.syntax.navigation import (
    expressions,
    nodes_in,
    owner_of,
    same,
    statements,
    unparse,
    walk,
)
from sampler_lint.syntax.nodes import (
    EQUAL,
    ORDERED,
    UNEQUAL,
    Assign,
    Attr,
    AugAssign,
    Bin,
    Call,
    Choice,
    Comp,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Index,
    Name,
    Other,
    Param,
    Seq,
    Simple,
    Stmt,
    Try,
    Unary,
    While,
    last_name,
)
from sampler_lint.workspace.project import Module


def slips(model: Model, module: Module, function: Function) -> Iterator[Suspect]:
    """What is wrong in a function whatever the numbers are."""
    yield from _counts_by_rank(model, module, function)
    for stmt in statements(function.body):
        if isinstance(stmt, For):
            yield from _first_never_removed(model, module, function, stmt)
        if isinstance(stmt, Assign):
            yield from _one_list_for_all(module, function, stmt)
        for node in nodes_in([stmt]):
            yield from _by_rank(model, module, node, stmt)
            if isinstance(node, Bin):
                yield from _from_itself(module, node)
            if isinstance(node, Index):
                yield from _minus_zero(model, module, function, node, stmt)
            elif isinstance(node, Compare):
                yield from _list_as_number(model, module, node)


def _one_list_for_all(module: Module, function: Function, stmt: Assign) -> Iterator[Suspect]:
    """``parts = [[]] * n``, and then ``parts[i].append(x)``: every entry is the same list."""
    target = stmt.targets[0] if len(stmt.targets) == 1 else None
    match stmt.value:
        case Bin(op="Mult", left=Seq(kind="list", items=[Seq(kind="list") as shared]), right=count):
            pass
        case Bin(op="Mult", left=count, right=Seq(kind="list", items=[Seq(kind="list") as shared])):
            pass
        case _:
            return
    if not isinstance(target, Name) or isinstance(count, Const):
        return
    filled = next(
        (
            call
            for call in function.calls
            if isinstance(call.func, Attr)
            and call.func.name in {"append", "extend"}
            and isinstance(call.func.value, Index)
            and same(call.func.value.value, target)
        ),
        None,
    )
    if filled is None or len(function.bindings[target.id]) > 1:
        return
    code = f"[{text_of(module.source, shared)} for _ in range({text_of(module.source, count)})]"
    yield Suspect(
        module,
        stmt.value,
        f"all entries of `{target.id}` are one list: `{text_of(module.source, stmt.value)}`",
        why=(Related(module.place(filled), "what is put into one is in each"),),
        effect="whoever takes one of them has the samples of all",
        advice=f"write `{code}`",
        fix=replacing(
            stmt.value,
            code,
            "Make a list for each",
            Applicability.UNSAFE,
            "runs read others",
        ),
    )


def _by_rank(model: Model, module: Module, node: Expr, stmt: Stmt) -> Iterator[Suspect]:
    """``x[first::rank]``, ``range(first, n, rank)``, ``n // (k * rank)``: the first rank is 0."""
    match node:
        case Bin(op="Mod" | "FloorDiv" | "Div", right=Name() | Attr() | Bin() as by):
            ranks = filter(RANK.says, map(last_name, _factors(by)))
            name, fails = next(ranks, None), "ZeroDivisionError"
        case Call(positional=[_, _, Name() | Attr() as by]) if RANGES.is_call(node):
            name, fails = last_name(by), "ValueError"
        case Index() if RANK.is_mentioned(node):
            key = slice_of(module, node)
            step = None if key is None else key.step
            name, fails = getattr(step, "attr", getattr(step, "id", None)), "ValueError"
        case _:
            return
    if not RANK.says(name) or _asks_rank(model, stmt):
        return
    yield Suspect(
        module,
        node,
        f"`{text_of(module.source, node)}` goes by `{name}`, which is 0 on the first rank",
        effect=f"{fails} on rank 0, and other shares than the ranks are to have",
        advice="go by the number of ranks",
    )


def _factors(expr: Expr) -> Iterator[Expr]:
    """What a product is made of; anything else by itself."""
    if isinstance(expr, Bin) and expr.op == "Mult":
        yield from _factors(expr.left)
        yield from _factors(expr.right)
    else:
        yield expr


def _is_number_of_processes(expr: Expr) -> bool:
    return isinstance(expr, (Name, Attr)) and any(
        concept.says(last_name(expr)) for concept in (RANK, WORLD_SIZE)
    )


def _from_itself(module: Module, node: Bin) -> Iterator[Suspect]:
    """``rank - rank``, ``world_size % world_size``: one of the two was to be another number."""
    same_number = same(node.left, node.right) and _is_number_of_processes(node.left)
    if node.op in {"Sub", "Mod", "FloorDiv"} and same_number:
        result = 1 if node.op == "FloorDiv" else 0
        yield Suspect(
            module,
            node,
            f"`{text_of(module.source, node)}` is {result} on each rank",
            effect="what a rank takes does not go by how many ranks there are",
            advice="compute with both, the rank and the number of ranks",
        )


def _counts_by_rank(model: Model, module: Module, function: Function) -> Iterator[Suspect]:
    """``self.total_size = self.num_samples * self.rank``: no samples on the first rank."""
    for stmt in statements(function.body):
        if isinstance(stmt, Assign) and any(is_total(target) for target in stmt.targets):
            factors = [*_factors(stmt.value)]
            rank = next((one for one in factors if RANK.says(last_name(one))), None)
            if rank is not None and len(factors) > 1 and not _asks_rank(model, stmt):
                yield Suspect(
                    module,
                    stmt.value,
                    f"`{text_of(module.source, stmt.value)}` samples are none on the first rank",
                    effect="each rank counts others, and the first one counts no samples at all",
                    advice="multiply by the number of ranks",
                )


def _asks_rank(model: Model, stmt: Stmt) -> bool:
    """Whether something on the way to a statement, or in it, asks for the rank, or takes errors."""
    asked = [test for test, _ in tests(stmt)]
    asked += [node.test for node in nodes_in([stmt]) if isinstance(node, Choice) and node.test]
    return any(map(RANK.is_mentioned, asked)) or any(
        isinstance(outer, Try) for outer in stmt.ancestors()
    )


def _first_never_removed(
    model: Model, module: Module, function: Function, loop: For
) -> Iterator[Suspect]:
    """``for i in range(len(x) - 1, 0, -1)`` that takes ``x[i]`` out, and nothing else does."""
    call = loop.iter
    if not (isinstance(call, Call) and last_name(call.func) == "range" and len(call.args) == 3):
        return
    start, stop, step = call.positional
    if not (_is(stop, 0) and _is(step, -1) and isinstance(loop.target, Name)):
        return
    if not (isinstance(start, Bin) and start.op == "Sub" and _is(start.right, 1)):
        return
    size = only(model.flow, start.left, Hop.ASSIGNED)
    if not (isinstance(size, Call) and last_name(size.func) == "len" and len(size.args) == 1):
        return
    items, index = size.args[0].value, loop.target.id
    others = [stmt for stmt in statements(function.body) if not loop.encloses(stmt)]
    if any(_removes(stmt, items) for stmt in others):
        return  # it may be the first item that is taken out there
    body = [*statements(loop.body)]
    taken = [node for node in nodes_in(body) if isinstance(node, Index) and same(node.value, items)]
    if any(not _is_name(one.key, index) for one in taken):
        return  # the item before it is looked at, which the first has not
    methods = function.cls.methods if function.cls is not None else []
    stmts = (stmt for method in methods for stmt in statements(method.body))
    is_passed_over = any(_passes_over_empty(model, stmt) for stmt in stmts)
    if any(_removes(stmt, items, index) for stmt in body) and any(
        _asks_if_empty(node, taken) for node in nodes_in(body)
    ):
        text = unparse(items)
        yield Suspect(
            module,
            call,
            f"this loop stops before index 0, so the first item of `{text}` is never removed",
            fix=None if is_passed_over else _write(stop, "-1"),
            grade=Grade.LIKELY if is_passed_over else Grade.CERTAIN,
            effect="an empty first item stays: later code divides by its length, or reads nothing",
            advice=f"use `range(len({text}) - 1, -1, -1)`",
        )


def _passes_over_empty(model: Model, stmt: Stmt) -> bool:
    """``if len(x) == 0: continue``."""
    if not isinstance(stmt, If) or not isinstance(stmt.body[-1], Simple):
        return False
    test = stmt.test
    if not stmt.body[-1].is_jump or not isinstance(test, Compare) or not _is(test.rights[0], 0):
        return False
    size = only(model.flow, test.left, Hop.ASSIGNED)
    return test.ops[0] in EQUAL and isinstance(size, Call) and last_name(size.func) == "len"


def _asks_if_empty(node: Expr, items: list[Index]) -> bool:
    """Whether an expression is ``len(x[i])`` or ``not x[i]``."""
    if isinstance(node, Unary):
        return node.op == "Not" and any(node.operand is item for item in items)
    is_len = isinstance(node, Call) and last_name(node.func) == "len"
    return (
        isinstance(node, Call)
        and is_len
        and any(given is item for given in node.positional for item in items)
    )


def _removes(stmt: Stmt, items: Expr, index: str | None = None) -> bool:
    """Whether a statement takes an item out, with ``index`` the one that is called so."""
    if isinstance(stmt, Simple) and stmt.kind == "delete":
        return any(
            isinstance(part, Index)
            and same(part.value, items)
            and (index is None or _is_name(part.key, index))
            for part in stmt.parts
        )
    return any(
        isinstance(node, Call)
        and isinstance(node.func, Attr)
        and node.func.name == "pop"
        and same(node.func.value, items)
        and (index is None or (bool(node.args) and _is_name(node.args[0].value, index)))
        for node in nodes_in([stmt])
    )


def _minus_zero(
    model: Model, module: Module, function: Function, node: Index, stmt: Stmt
) -> Iterator[Suspect]:
    """``x[:-k]`` where ``k`` is a remainder that may be 0."""
    key = slice_of(module, node)
    if key is None or key.lower is not None or key.step is not None:
        return
    upper = key.upper
    if not (isinstance(upper, ast.UnaryOp) and isinstance(upper.op, ast.USub)):
        return
    count = expression(upper.operand, function, stmt)
    value, name = only(model.flow, count, Hop.ASSIGNED | Hop.ATTRIBUTE), last_name(count)
    if isinstance(value, Bin) and value.op == "Mod" and not _is_negated(value.right):
        if _asks_remainder(stmt, value.right):
            return  # of what may be as many
        shown = ast.unparse(upper.operand)
        is_less = _counts(model, value.left, node.value)
        rest = [*_rests(module, function, node, upper)]
        if name is None:
            yield _minus_zero_suspect(module, node, f"({shown})", is_less, rest)
        elif not _asks(function, name):
            yield _minus_zero_suspect(module, node, shown, is_less, rest)


def _rests(module: Module, function: Function, node: Index, upper: ast.expr) -> Iterator[Index]:
    """``x[-k:]`` beside ``x[:-k]``: what is left over, which is all of it where ``k`` is 0."""
    for other in nodes_in(statements(function.body)):
        if isinstance(other, Index) and same(other.value, node.value):
            key = slice_of(module, other)
            lower = None if key is None or key.upper or key.step else key.lower
            if lower is not None and ast.dump(lower) == ast.dump(upper):
                yield other


def _asks_remainder(stmt: Stmt, divisor: Expr) -> bool:
    """Whether a statement is only come to by what some number leaves over, divided by the same."""
    return any(
        isinstance(part, Bin) and part.op == "Mod" and same(part.right, divisor)
        for test, _ in tests(stmt)
        for part in walk(test)
    )


def _is_negated(divisor: Expr) -> bool:
    """Whether what is left over is negative, so that the slice begins at the front."""
    return isinstance(divisor, Unary) and divisor.op == "USub"


def _counts(model: Model, size: Expr, items: Expr) -> bool:
    """Whether a number is that of the items: ``len(items)``, the ``n`` of a ``randperm(n)``."""
    made = only(model.flow, items, Hop.ASSIGNED)
    while isinstance(made, Call) and not made.args and isinstance(made.func, Attr):
        made = made.func.value  # `randperm(n).tolist()`
    if isinstance(made, Call) and ORDERS.is_call(made):
        return any(same(given, size) for given in made.positional[:1])
    return any(
        isinstance(each, Call)
        and last_name(each.func) == "len"
        and any(same(given, items) for given in each.positional)
        for each in (size, only(model.flow, size, Hop.ASSIGNED))
    )


def _minus_zero_suspect(
    module: Module, node: Index, count: str, is_less: bool, rest: list[Index]
) -> Suspect:
    """``is_less``: the remainder is of the number of items, so that it is less than that.

    ``rest``: the slices of what is left over, which go with it.
    """

    def fix(editor: Editor) -> Fix | None:
        if not isinstance(node.value, (Name, Attr)):
            return None
        items = text_of(module.source, node.value)
        left = f"len({items}) - {count}" if is_less else f"max(len({items}) - {count}, 0)"
        for other in rest:
            editor.replace(other, f"{items}[{left} :]")
        code = f"{items}[: {left}]"
        return editor.replace(node, code).fix(f"Write `{code}`", Applicability.SAFE)

    return Suspect(
        module,
        node,
        f"`{count}` is a remainder and may be 0, and `[:-0]` is empty",
        fix=fix,
        effect="whenever it divides evenly, nothing is yielded",
        advice=f"slice up to `len(…) - {count}`",
    )


def _write(node: Expr, code: str) -> Fixer:
    return replacing(node, code, f"Write `{code}`")


def _asks(function: Function, name: str) -> bool:
    """Whether any condition of the function looks at the name."""
    for stmt in statements(function.body):
        test = getattr(stmt, "test", None)
        if test is not None and any(_says(node, name) for node in walk(test)):
            return True
        for node in nodes_in([stmt]):
            choice = getattr(node, "test", None)
            if isinstance(choice, Expr) and any(_says(n, name) for n in walk(choice)):
                return True
    return False


def _list_as_number(model: Model, module: Module, node: Compare) -> Iterator[Suspect]:
    """``batch == self.batch_size`` for a list."""
    if len(node.ops) != 1 or node.ops[0] not in ORDERED | {"Eq"}:
        return
    left, right = node.left, node.rights[0]
    if isinstance(left, Name) and is_count(right) and is_list(model, left):
        text, size = unparse(left), unparse(right)
        if node.ops[0] == "Eq":
            result = "a list never equals a number, so no batch is ever complete"
        else:
            result = "comparing a list with a number raises TypeError"
        yield Suspect(
            module,
            node,
            f"`{text}` is a list, compared with the number `{size}`",
            fix=_write(left, f"len({text})"),
            effect=result,
            advice=f"compare `len({text})` with `{size}`",
            hides=node.ops[0] != "Eq",
        )


def is_count(expr: Expr) -> bool:
    """Whether a sampler keeps a count there, by its name."""
    return BATCH_SIZE.names(expr) or is_total(expr)


def is_total(expr: Expr) -> bool:
    """Whether a sampler keeps how many samples there are there, by its name."""
    known = catalog.known(DISTRIBUTED_SAMPLER)
    assert known is not None
    # What torch's own sampler keeps its counts in.
    counts = known.attributes.difference(known.params)
    return not EPOCH.names(expr) and (last_name(expr) or "").lstrip("_") in counts


def _is(expr: Expr, number: int) -> bool:
    return isinstance(expr, Const) and type(expr.value) is int and expr.value == number


def _is_name(expr: Expr, name: str) -> bool:
    return isinstance(expr, Name) and expr.id == name


def _says(expr: Expr, name: str) -> bool:
    return (isinstance(expr, Name) and expr.id == name) or (
        isinstance(expr, Attr) and expr.name == name
    )


# Functions that are told a rank, and take by the number of ranks what is the same on each.


def same_on_each(model: Model, module: Module) -> Iterator[Suspect]:
    """The parts of data that a function gives for a rank, which it never looks at."""
    for function in module.facts.functions if not is_test(module) else ():
        ranks, sizes = (
            [param for param in function.params if role_of(param.name) is role]
            for role in (Role.RANK, Role.WORLD_SIZE)
        )
        if len(ranks) != 1 or len(sizes) != 1 or _uses(function, ranks[0]):
            continue
        for part in _parts(model, function, sizes[0]):
            yield Suspect(
                module,
                part,
                f"this part is the same for every `{ranks[0].name}`",
                effect=f"`{function.name}` takes it by `{sizes[0].name}` alone: all ranks read the "
                f"same samples, and the others are never read",
                advice=f"begin at `{ranks[0].name}`",
            )


def _uses(function: Function, rank: Param) -> bool:
    """Whether anything but a test or an assertion reads the rank."""
    return any(
        isinstance(node, Name) and node.id == rank.name and not _only_asks(stmt, expr)
        for scope in (function, *function.module.inside(function))
        for stmt in statements(scope.body)
        for expr in expressions(stmt)
        for node in walk(expr)
    )


def _only_asks(stmt: Stmt, expr: Expr) -> bool:
    """Whether it is asserted, or asked whether there is a rank, and not which one it is."""
    if isinstance(stmt, If) and expr is stmt.test:
        return all(
            op.startswith("Is")
            for node in walk(expr)
            if isinstance(node, Compare)
            for op in node.ops
        )
    return isinstance(stmt, Simple) and stmt.kind == "assert"


def _parts(model: Model, function: Function, size: Param) -> Iterator[Expr]:
    """What a function returns that it takes of something by the number of ranks."""

    def is_size(expr: Expr) -> bool:
        return isinstance(expr, Name) and expr.id == size.name and owner_of(expr) is function

    def is_part(expr: Expr) -> bool:
        if isinstance(expr, Index) and isinstance(expr.key, Other) and len(expr.key.parts) > 1:
            # It begins where the number of ranks says.
            return depends_on(model.flow, expr.key.parts[0], is_size, LOCAL) is not None
        if not isinstance(expr, Comp) or len(expr.iters) != 1 or len(expr.elements) != 1:
            return False
        taken, steps = expr.elements[0], expr.iters[0]
        return (
            isinstance(taken, Index)
            and isinstance(taken.key, Name)
            and isinstance(steps, Call)
            and RANGES.is_call(steps)
            and len(steps.positional) == 3
            and is_size(steps.positional[2])
        )

    for stmt in function.returns:
        step = depends_on(model.flow, stmt.value, is_part, LOCAL) if stmt.value else None
        if step is not None:
            yield step.expr


# Counters that pick a process's items and advance for those alone.


def stuck_counters(module: Module, function: Function) -> Iterator[Suspect]:
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
            yield Suspect(
                module,
                stmt.test,
                f"`{counter.id}` is only advanced for the items this process takes",
                effect="it never gets past the first item of another process: the rest is not read",
                fix=partial(_count_all, stmt, steps) if takes else None,
                advice="increment it for every item",
            )


def _count_all(taken: If, steps: list[AugAssign], editor: Editor) -> Fix | None:
    """Advance the counter behind the test; only where nothing reads it after it was advanced."""
    step = steps[0]
    if len(steps) != 1 or taken.orelse or step is not taken.body[-1] or len(taken.body) == 1:
        return None
    if any(isinstance(stmt, Simple) and stmt.kind == "continue" for stmt in statements(taken.body)):
        return None
    editor.delete(step).insert_after(taken, text_of(editor.source, step))
    why = "the ranks read more then"
    return editor.fix("Increment it for every item", Applicability.UNSAFE, why)


def _counted(test: Expr) -> tuple[Name, bool] | None:
    """``i`` of ``i % n == rank``, and whether the item is taken when that holds."""
    takes = True
    while isinstance(test, Unary) and test.op == "Not":
        test, takes = test.operand, not takes
    if not isinstance(test, Compare) or len(test.ops) != 1 or test.ops[0] not in EQUAL | UNEQUAL:
        return None
    sides = (test.left, test.rights[0])
    for side, other in (sides, sides[::-1]):
        if (
            isinstance(side, Bin)
            and side.op == "Mod"
            and isinstance(side.left, Name)
            and (PROCESSES.is_mentioned(other) or WORKERS.is_mentioned(other))
        ):
            return side.left, takes is (test.ops[0] in EQUAL)
    return None
