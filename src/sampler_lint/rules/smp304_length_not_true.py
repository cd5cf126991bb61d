"""SMP304: ``len()`` of a sampler is not what it hands out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from sampler_lint.analysis.points_to import Ext
from sampler_lint.domain.epoch_state import epoch_state
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.wrapping import inners
from sampler_lint.edits.editor import Editor, replacing
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.findings import Applicability, Fix, Related, Severity
from sampler_lint.limits import FEWEST_GUESSED, MOST_ATTRIBUTES
from sampler_lint.properties import miscounts
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._quotient import quotients, remainders
from sampler_lint.rules._trials import defined_by, judged, node_of, slice_of
from sampler_lint.syntax.nodes import (
    Attr,
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
    Name,
    Node,
    Return,
    Simple,
    Stmt,
    Unary,
    While,
    blocks,
    expressions,
    last_name,
    same,
    self_class,
    statements,
    walk,
)
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.trials import Trial


_NO_PROMISE = re.compile(
    r"approx|average|avg_|estimat|at (least|most)|upper|lower|roughly|dummy|placeholder|infinite"
    r"|unknown|not accurate|inaccurate|max_(steps|iter)",
    re.IGNORECASE,
)


class LengthNotTrue(Rule):
    """A sampler's `__len__` is not the number of items its `__iter__` hands out.

    What it does:
        Works through the class by hand, as it were: an interpreter of its own (nothing of yours
        is imported or run) builds the sampler for a few small data sets, ranks and batch sizes,
        counts what `__iter__` yields and compares it with `__len__`. Reports a class whose
        length is wrong in one of them, with those numbers; a `__len__` that reads what only
        `__iter__` sets, or that returns nothing or a float; a `__len__` inherited from torch under
        an `__iter__` that skips samples; and a generator whose `next()` finds nothing left, also
        with the samplers of this repository that it is built around. An argument of which only
        the use is known is given something that the class can use; then only a length that is
        wrong in every world counts. A class the interpreter cannot follow is left alone, and so
        is a `__len__` that says it is an estimate.

    Why is this bad?
        `len(loader)` comes from `len(sampler)`. Trainers take the steps of an epoch and the
        learning-rate schedule from it: too large, and the schedule never ends (Lightning and
        Transformers wait for steps that do not come); too small, and the rest of the data is
        never read. The usual causes: the length of the data set where each rank reads a share,
        a floor where the last batch is kept, samples counted where batches are handed out, and
        an inherited `__len__` under a new `__iter__`.

    Fix safety:
        Safe for `min(1, ...)`, which becomes `max(1, ...)`, and for `np.ceil(...)`, which becomes
        `int(np.ceil(...))`. Unsafe for a `__len__` of one `return`
        for which there is an expression that is what every rank hands out in every world it was
        tried in: whether `__len__` or `__iter__` is at fault is for the author to say. No other
        fix is offered.

    How it is proved:
        Invariant `length-is-true`: the recorder counts what a loader of the fixture hands out
        and compares it with `len()` before and after the fix, or with the right twin.

    References:
        - torch/utils/data/sampler.py, the notes on `__len__` above `class Sampler`
        - torch/utils/data/dataloader.py, `DataLoader.__len__`
    """

    code = "SMP304"
    name = "length-not-true"
    severity = Severity.WARNING
    invariant = "length-is-true"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Try each sampler class, and read what cannot be tried."""
        for module, cls in judged(model):
            suspect = (
                _returns_nothing(module, cls)
                or _returns_a_fraction(model, module, cls)
                or _at_most_one(model, cls)
                or _set_too_late(model, cls)
                or _miscounts(model, module, cls)
                or _runs_dry(model, cls)
                or _skips_under_inherited(model, module, cls)
            )
            if suspect is not None:
                yield suspect


# --------------------------------------------------------------------------- tried


def _miscounts(model: Model, module: Module, cls: Class) -> Suspect | None:
    length = defined_by(model, cls, "__len__")
    iterate = defined_by(model, cls, "__iter__")
    if iterate is None or _promises_nothing(model, length):
        return None
    trials = model.trials(cls)
    trial = next((trial for trial in trials.usual if _is_wrong(trial)), None)
    guessed = [trial for trial in trials.guessed if trial.raised is None]
    if len(guessed) >= FEWEST_GUESSED and all(map(_is_wrong, guessed)):
        trial = guessed[0]
    if trial is None or _takes_wrong_remainder(model, cls):
        return None
    turn = next(turn for turn in trial.turns if miscounts(turn.reading))
    who = f"rank {turn.rank} of " if trial.world.ranks > 1 and _differ(trial) else ""
    story = trial.story if who or trial.world.ranks == 1 else _alone(trial)
    example = f"with {story}, {who}`{cls.name}` hands out {turn.count} and `len()` says "
    example += f"{turn.length}"
    if trial.from_data:
        example += " (for some data)"
    message = (
        f"{example}: trainers take the steps of an epoch and the learning-rate schedule from "
        f"`len(loader)`; make `__len__` count what `__iter__` yields"
    )
    where, node = _place(model, module, cls, length, iterate, trial)
    why = (Related(model.place(iterate, iterate), "handed out here"),)
    fix = partial(_return_count, model, module, cls, length)
    return Suspect(where, node, message, why=why, fix=fix)


def _runs_dry(model: Model, cls: Class) -> Suspect | None:
    """``next()`` in a generator that finds nothing left: RuntimeError since Python 3.7."""
    trials = model.trials(cls)
    if not trials.usual or not _calls_next(model, cls) or _takes_wrong_remainder(model, cls):
        return None
    around: list[tuple[Trial, Class | None]] = [(trial, None) for trial in trials.usual]
    for inner in inners(model, epoch_state(model, cls)):
        if inner.param is not None:
            kinds = {obj.cls: None for obj in inner.objects if isinstance(obj.cls, Class)}
            for kind in kinds:
                if kind is not cls:
                    found = model.trials_around(cls, inner.param.name, kind)
                    around += [(trial, kind) for trial in found]
    if all(trial.raised is not None for trial, _ in around):
        return None
    for trial, inside in around:
        error = trial.raised
        if (
            error is None
            or error.kind != "RuntimeError"
            or error.names is None
            or error.names.module is None
            or not (isinstance(error.node, ast.Call) and ast.unparse(error.node.func) == "next")
        ):
            continue
        some = " (for some data)" if trial.from_data else ""
        cause = ""
        if inside is not None:
            cause = f"; `{inside.name}` hands out fewer than its `len()` says"
        message = (
            f"with {_alone(trial)}{some}, `next()` finds nothing left here: StopIteration in a "
            f"generator becomes RuntimeError, and `{cls.name}` dies in mid-epoch{cause}; catch "
            f"StopIteration, or stop before"
        )
        return Suspect(error.names.module, node_of(error.node), message)
    return None


def _calls_next(model: Model, cls: Class) -> bool:
    return any(
        last_name(call.func) == "next" and len(call.args) == 1
        for base in model.flow.mro(cls)
        if isinstance(base, Class)
        for scope in scopes_inside(base)
        for call in scope.calls
    )


def _takes_wrong_remainder(model: Model, cls: Class) -> bool:
    """Whether the class, or what it calls, has the slip that SMP402 reports as the cause."""
    functions = [m for base in model.flow.mro(cls) if isinstance(base, Class) for m in base.methods]
    functions += [f for m in functions for call in m.calls for f in model.flow.callees(call)]
    return any(
        same(remainder.operand, quotient.target) and same(remainder.node.right, quotient.parts)
        for function in functions
        for quotient in quotients(function)
        for remainder in remainders(function)
    )


def _is_wrong(trial: Trial) -> bool:
    if trial.raised is not None or (trial.from_data and trial.world.drop_last):
        return False
    counts = {turn.count for turn in trial.turns}
    if counts == {0} or (len(counts) > 1 and counts & {turn.length for turn in trial.turns}):
        # Nothing to count; or a true length once the ranks are even, which is another rule's.
        return False
    if _fills_batches(trial):
        return False
    return any(
        turn.length is not None and turn.later is not None and miscounts(turn.reading)
        for turn in trial.turns
    )


def _fills_batches(trial: Trial) -> bool:
    """Whether samples are added only to fill a batch: a loader has as many batches either way."""
    size = trial.world.batch_size
    return trial.takes_batch_size and all(
        turn.length is not None
        and not turn.in_batches
        and turn.count == -(-turn.length // size) * size
        for turn in trial.turns
    )


def _differ(trial: Trial) -> bool:
    """Whether the ranks do different things."""
    return len({turn.indices for turn in trial.turns}) > 1


def _alone(trial: Trial) -> str:
    """The world in words for a class that knows nothing of ranks."""
    return re.sub(r", \d+ ranks", "", trial.story)


def _promises_nothing(model: Model, length: Function | None) -> bool:
    """Whether ``__len__`` says, in words or by a literal, that it is no exact count."""
    if length is None:
        return False
    if any(isinstance(returned.value, Const) for returned in length.returns):
        return True
    source = model.module_of(length).source
    end = max([length.row, *(stmt.end_row for stmt in statements(length.body))])
    return any(_NO_PROMISE.search(source.line(row)) for row in range(length.row, end + 1))


def _place(
    model: Model,
    module: Module,
    cls: Class,
    length: Function | None,
    iterate: Function,
    trial: Trial,
) -> tuple[Module, Node]:
    """Where the fault is: the loop that stops early, ``__len__``, or who inherits it."""
    turn = trial.turns[0]
    if length is None:
        size = defined_by(model, cls, "num_samples")
        if size is not None and model.flow.method(cls, "__len__") == _DISTRIBUTED:
            return model.module_of(size), _first_return(size) or name_of(module, size)
        return module, name_of(module, cls)
    usual = trial.world.counts(sharded=_differ(trial))
    if turn.length in usual and turn.count not in usual and not trial.from_data:
        loop = next((s for s in statements(iterate.body) if isinstance(s, While)), None)
        if loop is not None:
            return model.module_of(iterate), loop.test
    where = model.module_of(length)
    return where, _first_return(length) or name_of(where, length)


_DISTRIBUTED = "torch.utils.data.DistributedSampler"


def _first_return(function: Function) -> Node | None:
    return next((stmt.value for stmt in function.returns if stmt.value is not None), None)


# --------------------------------------------------------------------------- the fix


def _return_count(
    model: Model, module: Module, cls: Class, length: Function | None, editor: Editor
) -> Fix | None:
    """Return what turns out to be the count in every world, if there is such an expression."""
    if length is None or length.outer is not cls or len(length.returns) != 1:
        return None
    returned = length.returns[0].value
    if returned is None or not length.params:
        return None
    candidates = list(_candidates(model, module, cls, length, returned))
    found = model.true_length(cls, returned, candidates)
    if found is None:
        return None
    editor.at(module).replace(returned, found)
    return editor.fix(f"Return `{found}`", Applicability.UNSAFE)


def _candidates(
    model: Model, module: Module, cls: Class, length: Function, returned: Expr
) -> Iterator[str]:
    """Attributes that may hold the length, the other rounding, a rank's share of it."""
    me = length.params[0].name
    init = cls.method("__init__")
    stored = [
        store.target.name
        for store in (() if init is None else init.stores)
        if isinstance(store.target, Attr) and self_class(store.target.value) is cls
    ]
    for name in list(dict.fromkeys(stored))[:MOST_ATTRIBUTES]:
        yield f"{me}.{name}"
        yield f"len({me}.{name})"
    text = text_of(module.source, returned)
    divided = _divided(module, returned)
    if divided is not None:
        count, size = divided
        floor, ceil = f"{count} // {size}", f"-(-{count} // {size})"
        yield from (ceil, floor)
        if "drop_last" in model.attributes(cls).names:
            yield f"{floor} if {me}.drop_last else {ceil}"
    for rank, ranks in dict.fromkeys(_strides(module, cls)):
        yield f"len(range({rank}, {text}, {ranks}))"
        yield f"{text} // {ranks}"


def _divided(module: Module, expr: Expr) -> tuple[str, str] | None:
    """``count`` and ``size`` of a quotient that is rounded, either way."""
    if isinstance(expr, Unary) and expr.op == "USub":
        expr = expr.operand
    if isinstance(expr, Call) and last_name(expr.func) == "ceil" and len(expr.positional) == 1:
        expr = expr.positional[0]
    if not isinstance(expr, Bin) or expr.op not in {"FloorDiv", "Div"}:
        return None
    count = expr.left
    if isinstance(count, Unary) and count.op == "USub":
        count = count.operand

    def atom(part: Expr) -> str:
        text = text_of(module.source, part)
        return f"({text})" if isinstance(part, (Bin, Unary, Compare, Choice)) else text

    return atom(count), atom(expr.right)


def _strides(module: Module, cls: Class) -> Iterator[tuple[str, str]]:
    """``self.rank`` and ``self.num_replicas`` of ``x[self.rank :: self.num_replicas]``."""
    for method in cls.methods:
        for stmt in statements(method.body):
            for expr in expressions(stmt):
                for node in walk(expr):
                    key = slice_of(module, node) if isinstance(node, Index) else None
                    if key is not None and key.lower is not None and key.step is not None:
                        lower, step = ast.unparse(key.lower), ast.unparse(key.step)
                        if _is_kept(lower) and _is_kept(step):
                            yield lower, step


def _is_kept(code: str) -> bool:
    return code.startswith("self.") and code.removeprefix("self.").isidentifier()


# --------------------------------------------------------------------------- read


def _returns_nothing(module: Module, cls: Class) -> Suspect | None:
    length = cls.method("__len__")
    if length is None or length.yields or length.decorators:
        return None
    if any(
        stmt.value is not None and not (isinstance(stmt.value, Const) and stmt.value.value is None)
        for stmt in length.returns
    ):
        return None
    if not length.returns and not all(_does_nothing(stmt) for stmt in length.body):
        return None  # it raises
    message = (
        f"`__len__` of `{cls.name}` returns None, so `len()` of the sampler and of its loader "
        f"raises TypeError ('NoneType' object cannot be interpreted as an integer) although "
        f"both have a length to look at; count what `__iter__` yields, or leave `__len__` out"
    )
    node = length.returns[0] if length.returns else name_of(module, length)
    return Suspect(module, node, message)


#: Functions that round and give a float all the same.
_ROUNDING = frozenset(Ext(f"numpy.{name}") for name in ("ceil", "floor", "rint", "trunc"))


def _returns_a_fraction(model: Model, module: Module, cls: Class) -> Suspect | None:
    """``return n / k``, or ``np.ceil(n / k)``: a float, which ``len()`` refuses."""
    length = cls.method("__len__")
    if length is None or length.decorators or len(length.returns) != 1:
        return None
    value = length.returns[0].value
    if isinstance(value, Bin) and value.op == "Div":
        rounded = False
    elif isinstance(value, Call) and model.flow.values(value.func) & _ROUNDING:
        rounded = True
    else:
        return None
    message = (
        f"`__len__` of `{cls.name}` returns a float, so `len()` of the sampler and of its loader "
        f"raises TypeError ('float' object cannot be interpreted as an integer); round it to an int"
    )

    def fix(editor: Editor) -> Fix:
        return editor.wrap(value, "int(", ")").fix("Make it an int", Applicability.SAFE)

    return Suspect(module, value, message, fix=fix if rounded else None)


def _at_most_one(model: Model, cls: Class) -> Suspect | None:
    """``return min(1, …)``, in ``__len__`` or the method it returns."""
    length = defined_by(model, cls, "__len__")
    todo = [] if length is None else [length]
    todo += [
        callee
        for method in todo
        for call in method.calls
        for callee in _own_methods(model, cls, call)
    ]
    for method in todo:
        for returned in method.returns:
            value = returned.value
            if (
                isinstance(value, Call)
                and isinstance(value.func, Name)
                and value.func.id == "min"
                and len(value.args) == 2
                and any(_is_one(arg.value) for arg in value.args)
            ):
                message = (
                    f"`min(1, …)` is never above 1, so `len()` of `{cls.name}`, and with it the "
                    f"steps of an epoch and the learning-rate schedule, is one batch at most; "
                    f"for a lower bound use `max(1, …)`"
                )
                module = model.module_of(method)
                return Suspect(
                    module,
                    value,
                    message,
                    fix=replacing(value.func, "max", "Make 1 the lower bound"),
                )
    return None


def _own_methods(model: Model, cls: Class, call: Call) -> list[Function]:
    if not (isinstance(call.func, Attr) and self_class(call.func.value) is not None):
        return []
    method = defined_by(model, cls, call.func.name)
    is_returned = method is not None and isinstance(call.stmt, Return)
    return [method] if method is not None and is_returned else []


def _is_one(expr: Expr) -> bool:
    return isinstance(expr, Const) and type(expr.value) is int and expr.value == 1


def _does_nothing(stmt: Stmt) -> bool:
    return isinstance(stmt, Simple) and stmt.kind == "pass"


def _set_too_late(model: Model, cls: Class) -> Suspect | None:
    error = model.trials(cls).length_raised
    length = defined_by(model, cls, "__len__")
    if error is None or length is None or error.kind != "AttributeError":
        return None
    node = error.node
    if not isinstance(node, ast.Attribute):
        return None
    setters = [
        store.scope
        for store in model.project.stores_near(node.attr, cls)
        if not isinstance(store.target, Attr) or self_class(store.target.value) in (cls, None)
    ]
    if not setters or not all(
        isinstance(scope, Function) and scope.name == "__iter__" and scope.outer is cls
        for scope in setters
    ):
        return None
    read = next(
        (r for r in length.reads if r.name == node.attr and self_class(r.value) is not None), None
    )
    if read is None:
        return None
    message = (
        f"only `__iter__` sets `self.{node.attr}`, so `len()` of a new `{cls.name}`, or of its "
        f"loader, raises AttributeError before the first epoch, and later tells the length of "
        f"the epoch before; work it out in `__init__`"
    )
    why = (Related(model.place(setters[0], setters[0]), "set here"),)
    return Suspect(model.module_of(length), read, message, why=why)


def _skips_under_inherited(model: Model, module: Module, cls: Class) -> Suspect | None:
    """A length that counts every sample, above an ``__iter__`` that leaves some out."""
    iterate = cls.method("__iter__")
    owner = model.flow.method(cls, "__len__")
    if iterate is None or not isinstance(owner, str) or model.trials(cls).usual:
        return None
    if any(
        isinstance(call.func, Attr) and call.func.name in {"__iter__", "__len__"}
        for call in iterate.calls
    ):
        return None
    skip = next(filter(None, map(_skip, (s for s in statements(iterate.body)))), None)
    if skip is None:
        return None
    base = owner.rpartition(".")[2]
    message = (
        f"`__iter__` of `{cls.name}` skips samples, and `__len__` is inherited from {base}, which "
        f"counts every sample: `len()` is too large, and with it the steps of an epoch and the "
        f"learning-rate schedule; define `__len__` for what is handed out"
    )
    why = (Related(module.place(skip), "samples skipped here"),)
    return Suspect(module, name_of(module, cls), message, why=why)


def _skip(stmt: Stmt) -> Stmt | None:
    """The ``continue`` under a condition that leaves a sample of the inner sampler out."""
    if not isinstance(stmt, For) or not any(
        isinstance(node, Attr) and node.name in {"sampler", "data_source", "dataset"}
        for node in walk(stmt.iter)
    ):
        return None
    for inner in _own(stmt.body):
        test = inner.parent
        if (
            isinstance(inner, Simple)
            and inner.kind == "continue"
            and isinstance(test, If)
            and test.body == [inner]
            and not _mentions(test, {"drop_last", "rank"})
        ):
            return inner
    return None


def _own(body: list[Stmt]) -> Iterator[Stmt]:
    """The statements of a loop's body that are not in another loop."""
    for stmt in body:
        yield stmt
        if not isinstance(stmt, (For, While)):
            for block in blocks(stmt):
                yield from _own(block)


def _mentions(test: If, names: set[str]) -> bool:
    return any(
        (node.id if isinstance(node, Name) else node.name) in names
        for node in walk(test.test)
        if isinstance(node, (Name, Attr))
    ) or any(isinstance(node, Call) for node in walk(test.test) if _is_random(node))


def _is_random(node: object) -> bool:
    return isinstance(node, Call) and isinstance(node.func, Attr) and "rand" in node.func.name
