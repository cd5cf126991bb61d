"""Lengths that differ from what a pass gives, in a few small worlds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from sampler_lint.analysis.origins import LOCAL, Hop, origins
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import RANGES
from sampler_lint.domain.epoch_state import epoch_state, reach
from sampler_lint.domain.epochs import EpochLoop, feeds_training, loops_over
from sampler_lint.domain.model import Model, calls_inside, own_scopes
from sampler_lint.domain.programs import outer_stores_beside
from sampler_lint.domain.ranks import reached
from sampler_lint.domain.wrapping import inners
from sampler_lint.edits.editor import Editor, Fixer
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.limits import FEWEST_GUESSED, MOST_ATTRIBUTES
from sampler_lint.properties import miscounts
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._quotient import quotients, remainders
from sampler_lint.rules._trials import (
    defined_by,
    is_never_told,
    is_uneven,
    may_be_uneven,
    node_of,
    read_other,
    slice_of,
)
from sampler_lint.syntax.navigation import nodes_in, same, self_class, self_stores, statements
from sampler_lint.syntax.nodes import (
    DIVISIONS,
    Attr,
    Bin,
    Call,
    Choice,
    Class,
    Compare,
    Const,
    Expr,
    Function,
    Index,
    Node,
    Other,
    Scope,
    Unary,
    While,
    last_name,
)
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.outcomes import Trial
    from sampler_lint.execution.worlds import World

_NO_PROMISE = re.compile(
    r"approx|average|avg_|estimat|at (least|most)|upper|lower|roughly|dummy|placeholder|infinite"
    r"|unknown|not accurate|inaccurate|max_(steps|iter)",
    re.IGNORECASE,
)


_STEPS = "trainers take the steps per epoch and the learning-rate schedule from `len(loader)`"


def untrue_length(model: Model, module: Module, cls: Class) -> Suspect | None:
    """A length that differs from the number of items in some world."""
    length = defined_by(model, cls, "__len__")
    iterate = defined_by(model, cls, "__iter__")
    if (length is None and iterate is None) or _promises_nothing(model, length):
        return None
    trials = model.trials(cls)
    flagged = [trial for trial in trials.varied if trial.is_flagged]
    is_wrong = _is_wrong_apart if may_be_uneven(cls) else _is_wrong
    trial = next(filter(is_wrong, (*trials.told, *flagged)), None)
    guessed = [trial for trial in trials.guessed if trial.raised is None and not _is_idle(trial)]
    guessed = [trial for trial in guessed if _is_true(trial) or not _fills_batches(trial)]
    grade = Grade.CERTAIN
    if trial is None and (trial := _wrong_with_number(trials.varied)) is not None:
        grade = Grade.LIKELY
    if len(guessed) >= FEWEST_GUESSED and all(map(_is_wrong, guessed)):
        trial = guessed[0]
        if all(map(_says_the_size, guessed)):
            grade = Grade.LIKELY
        elif any(t.from_data for t in guessed) and not _goes_with(guessed):
            return None
    elif len(guessed) >= FEWEST_GUESSED and all(map(_is_true, guessed)):
        # The guesses fit the class: what is wrong with another flag is no fault of theirs.
        trial = next(filter(_is_wrong, trials.dropping), None)
    elif trial is None and (trial := _wrong_though_fitting(guessed)) is not None:
        grade = Grade.LIKELY
    if trial is None or _takes_wrong_remainder(model, cls):
        return None
    if trial in guessed and trials.made_apart:
        return None
    if (trial in guessed or trial.from_data) and _asks_what_length_is_made_of(model, cls):
        return None  # the guess is of two numbers that are not any two
    if trial in flagged and is_never_told(model, cls, trial):
        grade = Grade.LIKELY
    turn = next(turn for turn in trial.turns if miscounts(turn.reading))
    who = f"on rank {turn.rank}, " if trial.world.ranks > 1 and differ(trial) else ""
    story = trial.story if who or trial.world.ranks == 1 else _alone(trial)
    some = " (for some data)" if trial.from_data and not trial.counts_hold else ""
    where, node = place(model, module, cls, length, iterate, trial)
    why = () if iterate is None else (Related(model.place(iterate, iterate), "yielded here"),)
    fix: Fixer | None = partial(_corrected, model, module, cls, length)
    if not may_be_uneven(cls) and any(map(is_uneven, trials.told)):
        fix = None  # a length of its own for each rank would say that uneven ranks are meant
    return Suspect(
        where,
        node,
        f"{who}`len()` of `{cls.name}` says {turn.length}, but it yields {turn.count}",
        why=why,
        fix=fix,
        grade=grade,
        effect=f"with {story}{some}; {_STEPS}",
        advice="make `__len__` count what `__iter__` yields",
    )


def _corrected(
    model: Model, module: Module, cls: Class, length: Function | None, editor: Editor
) -> Fix | None:
    """Read another attribute where that makes all right; else return what is the count."""
    return read_other(model, cls, editor) or return_count(model, module, cls, length, editor)


def _asks_what_length_is_made_of(model: Model, cls: Class) -> bool:
    """Whether it reads, of data that it holds, an attribute that the data's own length is made of.

    A sampler over ``len(data) // data.groups`` is right for data of ``groups * n`` samples. To look
    a single one up, ``data.ids[i]``, is not to ask how many there are.
    """
    return any(
        isinstance(value, Obj) and _is_length_made_of(model, value, read.name)
        for scope in own_scopes(model, cls)
        for read in _counted_reads(scope)
        if self_class(read.value) is None
        for value in model.flow.values(read.value)
    )


def _counted_reads(scope: Scope) -> list[Attr]:
    """The attributes read there, but for those of which one item is looked up."""
    looked_in = {
        id(node.value)
        for node in nodes_in(statements(scope.body))
        if isinstance(node, Index) and not isinstance(node.key, Other)  # no slice
    }
    return [read for read in scope.reads if id(read) not in looked_in]


def _is_length_made_of(model: Model, data: Obj, name: str) -> bool:
    length = model.flow.method(data.cls, "__len__")
    return isinstance(length, Function) and any(
        read.name == name and self_class(read.value) is not None for read in length.reads
    )


def holds(model: Model, cls: Class) -> bool:
    """Whether the length is true in each world that could be tried."""
    trials = model.trials(cls)
    tried = [trial for trial in (*trials.usual, *trials.guessed) if trial.raised is None]
    return any(map(_fits, tried)) and not any(map(_is_wrong, tried))


def one_too_many(model: Model, cls: Class) -> Suspect | None:
    """A length of what never ends that is one more than any number of what there is."""
    length = defined_by(model, cls, "__len__")
    trials = model.trials(cls).endless
    # Elsewhere it may be rounded.
    even = [t for t in trials if t.world.is_even]
    if length is None or len(even) < FEWEST_GUESSED or _promises_nothing(model, length):
        return None
    if not all(map(_is_one_more, even)):
        return None
    first = even[0]
    where = model.module_of(length)
    return Suspect(
        where,
        first_return(length) or name_of(where, length),
        f"`len()` of `{cls.name}` says {first.turns[0].length}, one more than an epoch has",
        effect=f"with {first.story}; {_STEPS}",
        advice="make `__len__` count what goes through the data once",
    )


def _is_one_more(trial: Trial) -> bool:
    """Whether a length is no number of what there is, and the one before it is."""
    said = trial.turns[0].length if trial.turns else None
    counts = trial.world.counts(sharded=True) | trial.world.counts(sharded=False)
    return said is not None and said not in counts and said - 1 in counts


def yields_nothing(model: Model, module: Module, cls: Class) -> Suspect | None:
    """A length above zero, and a pass that ends before its first item, in all worlds."""
    trial = model.trials(cls).barren
    iterate = defined_by(model, cls, "__iter__")
    if trial is None or iterate is None or _is_filled_elsewhere(model, cls):
        return None
    return Suspect(
        model.module_of(iterate),
        name_of(model.module_of(iterate), iterate),
        f"`{cls.name}` yields nothing, although its `len()` says {trial.turns[0].length}",
        effect=f"with {trial.story}, and with more; {_STEPS}, and no batch is read",
        advice="make `__iter__` yield what `__len__` counts",
    )


def true_once(model: Model, cls: Class) -> Suspect | None:
    """A length that is true of the first pass, and of no other, in all worlds."""
    trials = model.trials(cls).again
    length, iterate = (defined_by(model, cls, name) for name in ("__len__", "__iter__"))
    if iterate is None or len(trials) < 2 or _promises_nothing(model, length):
        return None
    if not all(map(_is_true_once, trials)):
        return None
    is_used_up = not any(trial.turns[1].count for trial in trials)
    if is_used_up and (_is_filled_elsewhere(model, cls) or _is_for_one_pass(model, cls)):
        return None
    if not is_used_up and any(trial.from_data for trial in trials):
        return None
    trial = trials[0]
    first, second = trial.turns
    where = model.module_of(iterate)
    yields = "nothing" if is_used_up else second.count
    return Suspect(
        where,
        name_of(where, iterate),
        f"`{cls.name}` yields {first.count} in its first pass, and {yields} in the second",
        effect=f"with {trial.story}, although `len()` says {second.length} in both; {_STEPS}"
        if first.length == second.length
        else f"with {trial.story}, where `len()` says {second.length}; {_STEPS}",
        advice="begin anew in `__iter__`"
        if is_used_up
        else "make `__len__` count what the next pass yields",
    )


def _is_for_one_pass(model: Model, cls: Class) -> bool:
    """Whether it is an iterator, as which it is used up by nature, and no loop begins it again."""
    loaders = [loader for _, loader in model.loaded.get(cls, ())]
    return defined_by(model, cls, "__next__") is not None and not any(
        feeds_training(model, loader)
        and not any(_makes_it(model, found) for found in loops_over(model, loader))
        for loader in loaders
    )


def _makes_it(model: Model, found: EpochLoop) -> bool:
    """Whether each turn asks something that makes the loader for what its pass goes over."""
    site = found.inner.loader.site
    return site is not None and any(
        isinstance(step.expr, Call)
        and step.expr.stmt is not None
        and (step.scope is not found.loop.scope or found.loop.encloses(step.expr.stmt))
        and any(site.scope in reached(model, each) for each in model.flow.callees(step.expr))
        for step in origins(model.flow, found.inner.source, LOCAL | Hop.PART)
    )


def _is_true_once(trial: Trial) -> bool:
    first, second = trial.turns
    return (
        trial.raised is None
        and first.count in {first.length, first.later}
        and first.count > 0
        and second.length is not None
        and second.count not in {second.length, second.later}
    )


def size_at_first(model: Model, module: Module, cls: Class) -> Suspect | None:
    """A length that is the data's own until a pass sets it to what it yields."""
    trials = model.trials(cls).again
    length, iterate = (defined_by(model, cls, name) for name in ("__len__", "__iter__"))
    if iterate is None or not trials or not all(map(_says_the_size_first, trials)):
        return None
    first = trials[0].turns[0]
    where, node = place(model, module, cls, length, iterate, trials[0])
    return Suspect(
        where,
        node,
        f"`len()` of `{cls.name}` says {first.length} before its first pass, which yields "
        f"{first.count}",
        grade=Grade.LIKELY if trials[0].from_data else Grade.CERTAIN,
        effect=f"only then it says what comes; {_STEPS}",
        advice="compute it in `__init__`, too",
    )


def _says_the_size_first(trial: Trial) -> bool:
    first = trial.turns[0]
    return (
        trial.raised is None
        and first.length == trial.world.samples != first.count
        and first.later == first.count
    )


def _is_filled_elsewhere(model: Model, cls: Class) -> bool:
    """Whether what there is to yield may be stored by another method, or from outside."""
    run = reach(model, cls, "__init__", "__iter__", "__len__", "set_epoch")
    others = [
        method
        for base in model.flow.own_mro(cls)
        for method in base.methods
        if method not in run.functions
    ]
    read = {read.name for read in run.self_reads()}
    return any(
        isinstance(store.target, Attr) and self_class(store.target.value) is not None
        for method in others
        for store in method.stores
    ) or any(True for name in read for _ in outer_stores_beside(model, name, cls))


def always_off(model: Model, cls: Class) -> Suspect | None:
    """A length that differs from what it measures by a number, whatever the constructor does."""
    length = defined_by(model, cls, "__len__")
    iterate = defined_by(model, cls, "__iter__")
    if length is None or iterate is None or _promises_nothing(model, length):
        return None
    trials = model.trials(cls)
    if trials.usual or trials.endless or any(map(_fits, trials.guessed)):
        return None
    found = model.measured(cls)
    if found is None:
        return None
    where = model.module_of(length)
    of_what = f"`{found.attribute}`" if found.attribute else "the data"
    compared = f"{abs(found.more)} {'more' if found.more > 0 else 'less'}"
    return Suspect(
        where,
        first_return(length) or name_of(where, length),
        f"`len()` of `{cls.name}` says {compared} than it yields",
        why=(Related(model.place(iterate, iterate), "yielded here"),),
        effect=f"however many {of_what} holds; {_STEPS}",
        advice="make `__len__` count what `__iter__` yields",
    )


def runs_dry(model: Model, cls: Class) -> Suspect | None:
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
        some = " (for some data)" if trial.from_data and not trial.counts_hold else ""
        cause = ""
        if inside is not None:
            cause = f"; `{inside.name}` yields fewer than its `len()` says"
        return Suspect(
            error.names.module,
            node_of(error.node),
            f"`{cls.name}` raises RuntimeError in mid-epoch: `next()` on an exhausted iterator",
            effect=f"with {_alone(trial)}{some}; StopIteration in a generator becomes "
            f"RuntimeError{cause}",
            advice="catch StopIteration, or stop before",
        )
    return None


def _calls_next(model: Model, cls: Class) -> bool:
    return any(
        last_name(call.func) == "next" and len(call.args) == 1
        for base in model.flow.own_mro(cls)
        for call in calls_inside(base)
    )


def _takes_wrong_remainder(model: Model, cls: Class) -> bool:
    """Whether the class, or what it calls, has the slip that SMP402 reports as the cause."""
    functions = [m for base in model.flow.own_mro(cls) for m in base.methods]
    functions += [f for m in functions for call in m.calls for f in model.flow.callees(call)]
    return any(
        same(remainder.operand, quotient.target) and same(remainder.node.right, quotient.parts)
        for function in functions
        for quotient in quotients(function)
        for remainder in remainders(function)
    )


def _is_wrong(trial: Trial) -> bool:
    counts = {turn.count for turn in trial.turns}
    is_uneven_meant = trial.says_uneven
    if len(counts) > 1 and counts & {t.length for t in trial.turns} and not is_uneven_meant:
        return False  # a true length once the ranks are even, which is another rule's
    return _is_wrong_apart(trial)


def _is_wrong_apart(trial: Trial) -> bool:
    """Whether the length is wrong on a rank, which may have another number than the others."""
    drops_by_data = trial.from_data and trial.world.drop_last and not trial.counts_hold
    if trial.raised is not None or drops_by_data:
        return False
    if any(turn.from_apart for turn in trial.turns):
        return False
    if not any(turn.count for turn in trial.turns) or _fills_batches(trial):
        return False
    return any(
        turn.length is not None and turn.later is not None and miscounts(turn.reading)
        for turn in trial.turns
    )


def _wrong_with_number(varied: tuple[Trial, ...]) -> Trial | None:
    """A world in which one optional number is given, if the length is then wrong in all of them."""
    for _, group in groupby(varied, key=lambda trial: (trial.is_flagged, trial.also)):
        same = [*group]
        if not same[0].is_flagged and all(map(_is_wrong, same)):
            return same[0]
    return None


def _wrong_though_fitting(guessed: list[Trial]) -> Trial | None:
    """A world with a wrong length, where with the same guesses it is true of other worlds.

    If that is so with whatever is guessed, the guesses are of the kind that the class takes. How a
    batch size, or what the data holds, goes with them is for the caller to say.
    """
    alike: list[dict[World, Trial]] = []
    for trial in guessed:
        if not alike or trial.world in alike[-1]:
            alike.append({})
        alike[-1][trial.world] = trial
    wrong = [trial for trial in guessed if _is_wrong(trial)]
    if (
        len(wrong) < FEWEST_GUESSED
        or any(trial.takes_batch_size or trial.from_data for trial in guessed)
        or not all(
            {*map(_is_true, said)} == {False, True} for said in map(_yielding, alike) if said
        )
    ):
        return None
    return wrong[0]


def _yielding(alike: dict[World, Trial]) -> list[Trial]:
    """The trials in which anything comes: where nothing does, a length of 0 says nothing."""
    return [trial for trial in alike.values() if any(turn.count for turn in trial.turns)]


def _is_true(trial: Trial) -> bool:
    return all(turn.length == turn.count for turn in trial.turns)


def _fits(trial: Trial) -> bool:
    """Whether a guess shows that the length is true in some world."""
    return trial.raised is None and _is_true(trial) and not _is_idle(trial)


def _says_the_size(trial: Trial) -> bool:
    """Whether it promises as many as the data has, of which a part is made up.

    The data of the tree may have just the length that this part comes to.
    """
    return trial.parts_guessed and all(turn.length == trial.world.samples for turn in trial.turns)


def _goes_with(trials: list[Trial]) -> bool:
    """Whether what is promised goes up and down with what is yielded, however wrong it is.

    Where it does not, both may come from parts of the data that were made up apart.
    """
    pairs: dict[int, set[tuple[int, int]]] = {}
    for trial in trials:
        found = {(turn.count, turn.length or 0) for turn in trial.turns if turn.count}
        pairs.setdefault(trial.world.ranks, set()).update(found)
    lengths = [[length for _, length in sorted(some)] for some in pairs.values()]
    return any(len({*some}) > 1 for some in lengths) and all(
        some == sorted(some) for some in lengths
    )


def _is_idle(trial: Trial) -> bool:
    """Whether nothing is yielded where something is promised: the guess may be what is wrong."""
    return not any(turn.count for turn in trial.turns) and any(t.length for t in trial.turns)


def _fills_batches(trial: Trial) -> bool:
    """Whether samples are added only to fill a batch: a loader has as many batches either way."""
    size = trial.world.batch_size
    return trial.takes_batch_size and all(
        turn.length is not None
        and not turn.in_batches
        and turn.count == -(-turn.length // size) * size
        for turn in trial.turns
    )


def _alone(trial: Trial) -> str:
    """The world in words for a class that knows nothing of ranks."""
    return re.sub(r", \d+ ranks", "", trial.story)


def _promises_nothing(model: Model, length: Function | None) -> bool:
    """Whether ``__len__``, or what gives its count, says that it is no exact one.

    In words, or by a literal; beside another count, 0 is that of nothing.
    """
    if length is None:
        return False
    literals = [r.value.value for r in length.returns if isinstance(r.value, Const)]
    if any(literals) or len(literals) == len(length.returns) > 0:
        return True
    given = [r.value for r in length.returns if isinstance(r.value, Call)]
    asked = (callee for call in given for callee in model.flow.callees(call))
    return any(_says_so(model, function) for function in (length, *asked))


def _says_so(model: Model, function: Function) -> bool:
    source = model.module_of(function).source
    end = max([function.row, *(stmt.end_row for stmt in statements(function.body))])
    return source.tells_in(function.row, end, _NO_PROMISE.search)


# Where a wrong length comes from, and what it may be meant to be.


def place(
    model: Model,
    module: Module,
    cls: Class,
    length: Function | None,
    iterate: Function | None,
    trial: Trial,
) -> tuple[Module, Node]:
    """Where the fault is: the loop that stops early, ``__len__``, or who inherits it."""
    turn = trial.turns[0]
    if length is None:
        size = defined_by(model, cls, "num_samples")
        if size is not None and model.flow.method(cls, "__len__") == _DISTRIBUTED:
            return model.module_of(size), first_return(size) or name_of(module, size)
        return module, name_of(module, cls)
    usual = trial.world.counts(sharded=differ(trial))
    stops_early = turn.length in usual and turn.count not in usual and not trial.from_data
    if stops_early and iterate is not None:
        loop = next((s for s in statements(iterate.body) if isinstance(s, While)), None)
        if loop is not None:
            return model.module_of(iterate), loop.test
    where = model.module_of(length)
    return where, first_return(length) or name_of(where, length)


_DISTRIBUTED = "torch.utils.data.DistributedSampler"


def first_return(function: Function) -> Node | None:
    """What a method returns."""
    return next((stmt.value for stmt in function.returns if stmt.value is not None), None)


def return_count(
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
    return editor.fix(f"Return `{found}`", Applicability.UNSAFE, "`__iter__` may be what is wrong")


def _candidates(
    model: Model, module: Module, cls: Class, length: Function, returned: Expr
) -> Iterator[str]:
    """Attributes that may hold the length, the other rounding, a rank's share of it."""
    me = length.params[0].name
    init = cls.method("__init__")
    stored = self_stores([] if init is None else [init], cls)
    for name in list(dict.fromkeys(target.name for target, _ in stored))[:MOST_ATTRIBUTES]:
        yield f"{me}.{name}"
        yield f"len({me}.{name})"
    text = text_of(module.source, returned)
    divided = _divided(module, returned)
    if divided is not None:
        count, size = divided
        floor, ceil = f"{count} // {size}", f"-(-{count} // {size})"
        if "drop_last" in model.attributes(cls).names:  # also where the program tells it always one
            yield f"{floor} if {me}.drop_last else {ceil}"
        yield from (ceil, floor)
    for rank, ranks in dict.fromkeys(_strides(module, cls)):
        yield f"len(range({rank}, {text}, {ranks}))"
        yield f"{text} // {ranks}"
    for call in _ranges(cls):
        yield f"len({text_of(module.source, call)})"


def _ranges(cls: Class) -> Iterator[Call]:
    """What ``__iter__`` goes through in steps: ``range(self.rank, len(self.data), self.ranks)``."""
    iterate = cls.method("__iter__")
    for call in iterate.calls if iterate is not None else ():
        if RANGES.is_call(call) and len(call.positional) == 3:
            yield call


def _divided(module: Module, expr: Expr) -> tuple[str, str] | None:
    """``count`` and ``size`` of a quotient that is rounded, either way."""
    if isinstance(expr, Unary) and expr.op == "USub":
        expr = expr.operand
    if isinstance(expr, Call) and last_name(expr.func) == "ceil" and len(expr.positional) == 1:
        expr = expr.positional[0]
    if not isinstance(expr, Bin) or expr.op not in DIVISIONS:
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
        for node in nodes_in(statements(method.body)):
            key = slice_of(module, node) if isinstance(node, Index) else None
            if key is not None and key.lower is not None and key.step is not None:
                lower, step = ast.unparse(key.lower), ast.unparse(key.step)
                if _is_kept(lower) and _is_kept(step):
                    yield lower, step


def _is_kept(code: str) -> bool:
    return code.startswith("self.") and code.removeprefix("self.").isidentifier()


def differ(trial: Trial) -> bool:
    """Whether the ranks do different things."""
    return len({turn.indices for turn in trial.turns}) > 1
