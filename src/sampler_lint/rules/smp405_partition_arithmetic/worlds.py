"""What shows when the class is run in a few small worlds."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sampler_lint.analysis.origins import Hop, only
from sampler_lint.analysis.values import Obj
from sampler_lint.domain import concepts
from sampler_lint.domain.concepts import RANK, WORKERS
from sampler_lint.domain.datasets import is_dataset
from sampler_lint.domain.model import Model, scopes_inside
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.workers import may_be_given
from sampler_lint.edits.editor import Editor, Fixer
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.findings import Applicability, Fix, Grade, Related, Severity
from sampler_lint.limits import FEWEST_GUESSED
from sampler_lint.parameters import Role, role_of
from sampler_lint.properties import Violation, listed, shares
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._evened import even_out
from sampler_lint.rules._trials import (
    checks_length,
    counts,
    defined_by,
    is_meant,
    is_uneven,
    may_be_uneven,
    node_of,
    read_other,
    slice_of,
    splitting_place,
)
from sampler_lint.rules.smp405_partition_arithmetic.gaps import left_out
from sampler_lint.syntax.lower import expression
from sampler_lint.syntax.navigation import nodes_in, statements, stmt_of, walk
from sampler_lint.syntax.nodes import Attr, Class, Function, Index, Node, Seq
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.errors import RaisedError
    from sampler_lint.execution.outcomes import Trial
    from sampler_lint.execution.sharing import Tear


def tried(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """What goes wrong in the worlds in which the class is run."""
    trials = model.trials(cls)
    overrun = tuple(t for t in trials.overrun if any((u.length or 0) < 0 for u in t.turns))
    known = trials.usual or trials.guessed
    sure = (*known, *trials.resumed, *overrun)
    certain = len(sure)
    # No training has fewer samples than ranks, and its assertion would stop such a one at once.
    few = (trial for trial in trials.tiny if trial.world.samples >= trial.world.ranks)
    several = (*sure, *trials.resized, *few)
    if trials.repeated is not None:
        yield _same_share(model, module, cls, trials.repeated)
    if trials.unplaced is not None:
        yield _unplaced(model, module, cls, trials.unplaced)
    if trials.torn is not None:
        yield _torn(model, module, cls, *trials.torn)
    fraction = next(filter(_is_fraction, trials.errors), None)
    if fraction is not None:
        yield _of_fraction(module, cls, fraction)
        return
    always = trials.failing
    if always is not None and always.refused is None and always.raised is not None:
        suspect = _failing_check(model, cls, always, always.raised)
        if suspect is not None and checks_length(always.raised):
            if always.also or always.parts_guessed or always.walks_guess:
                suspect.grade, suspect.severity = Grade.LIKELY, Severity.WARNING
            yield suspect
            return
    for number, trial in enumerate(several):
        error = trial.raised
        if error is not None and checks_length(error) and _only_sometimes(known, error):
            suspect = _failing_check(model, cls, trial, error)
            if suspect is not None:
                is_made_up = not trials.usual and (trial.parts_guessed or trial.from_data)
                if number >= certain or is_made_up:
                    suspect.grade, suspect.severity = Grade.LIKELY, Severity.WARNING
                yield suspect
                return
    broken = _breaks_with_more(known)
    if broken is not None:
        yield _missing_entry(module, cls, broken)
        return
    added = next(filter(_adds_unlike, known), None)
    if added is not None and any(trial.raised is None for trial in known):
        yield _added(module, cls, added)
        return
    for trial in trials.stuck:
        suspect = _endless(trial)
        if suspect is not None:
            yield suspect
            return
    nested = _nested((*known, *trials.again, *trials.endless))
    if nested is not None:
        yield _never_emptied(model, module, cls, nested)
        return
    carried = next(filter(_is_carried_over, trials.again), None)
    if carried is not None:
        yield _carried_over(model, module, cls, carried)
    if trials.repeated is not None or trials.torn is not None:
        return
    outside = _outside(trials.usual)
    if outside is not None:
        yield _out_of_range(model, module, cls, outside)
        return
    empties = [trial for trial in trials.usual if _has_empty_batch(trial)]
    empty = next((trial for trial in empties if not trial.from_data), None)
    if empty is None and len(empties) == len([*filter(_feeds_all, trials.usual)]) > 1:
        empty = empties[0]  # whatever the data holds
    if empty is not None:
        if not _is_given_others(model, cls) and not _is_given_nothing(model, cls):
            yield _empty_batch(model, module, cls, empty)
        return
    if not trials.usual or any(t.from_data for t in trials.usual) or not trials.sharded:
        return
    counted = is_meant(trials.usual) or may_be_uneven(cls)
    for trial in trials.usual if counted else ():  # the others are SMP306's
        if trial.raised is None and _is_starved(trial):
            suspect = _starved(model, module, cls, trial)
            if may_be_uneven(cls):  # an evaluation goes on when the others are done
                suspect.grade = Grade.LIKELY
            yield suspect
            return
    found = left_out(model, module, cls)
    if found is not None:
        yield found
        return
    if not any(is_uneven(trial) or trial.raised for trial in trials.usual):
        for trial in trials.tiny:
            if is_uneven(trial):
                yield _short_padding(model, module, cls, trial)
                return


def _is_fraction(error: RaisedError) -> bool:
    """Whether it is a float where only a whole number will do, but for a length: SMP304's."""
    return error.of_float and not isinstance(error.node, ast.FunctionDef)


def _of_fraction(module: Module, cls: Class, error: RaisedError) -> Suspect:
    node, where = error.node, None if error.names is None else error.names.module
    if where is None or node is None:
        where, node, taken = module, None, "what takes only ints"
    elif isinstance(node, ast.Call):
        taken = f"`{ast.unparse(node.func)}(…)`"
    else:
        taken = f"the slice `[{ast.unparse(node)}]`"
    return Suspect(
        where,
        name_of(module, cls) if node is None else node_of(node),
        f"`{cls.name}` hands a float to {taken}",
        effect="TypeError: a float cannot be interpreted as an integer",
        advice="divide by `//`, or round it to an int",
    )


def _breaks_with_more(known: tuple[Trial, ...]) -> Trial | None:
    """A world of more than two ranks, if the class looks up what is not there in each of them."""
    few = [trial for trial in known if trial.world.ranks == 2]
    # What stands for a list that is given has as many parts as nobody said.
    many = [trial for trial in known if trial.world.ranks > 2 and not trial.walks_guess]
    fails = {_failed_lookup(trial) for trial in many}
    same = len(fails) == 1 and None not in fails
    is_told = len(few) > 1 and len(many) > 1 and not any(trial.raised for trial in few)
    return many[0] if same and is_told else None


def _nested(known: tuple[Trial, ...]) -> Trial | None:
    """A world in which most batches hold another one and more, if that is so in all."""
    several = [trial for trial in known if trial.raised is None and _batches(trial)]
    found = len(several) >= FEWEST_GUESSED and all(
        _is_nested(batches) for trial in several for batches in _batches(trial)
    )
    return several[0] if found else None


def _is_nested(batches: list[list[Any]]) -> bool:
    """Whether more than half of the batches hold all of another one, and more."""
    counted = [Counter(batch) for batch in batches]
    holding = sum(any(other and other < batch for other in counted) for batch in counted)
    return 2 * holding > len(batches)


def _only_grow(batches: list[list[Any]]) -> bool:
    return all(following[: len(batch)] == batch for batch, following in pairwise(batches))


def _batches(trial: Trial) -> list[list[Any]]:
    """The batches of each rank that yields more than two."""
    return [
        list(turn.reading.items)
        for turn in trial.turns
        if turn.count > 2 and turn.in_batches and turn.indices is not None
    ]


def _never_emptied(model: Model, module: Module, cls: Class, trial: Trial) -> Suspect:
    where, node = _reading(model, module, cls)
    batches = _batches(trial)[0]
    grows = _only_grow(batches)
    wrong = (
        "never empties its batch: each one begins with all that were before"
        if grows
        else "yields batches that hold one another"
    )
    return Suspect(
        where,
        node,
        f"`{cls.name}` {wrong}",
        effect=f"with {trial.story}, a rank gets batches of {listed([*map(len, batches)])} samples",
        advice="begin a new list once a batch has been yielded"
        if grows
        else "cut each batch off where the next one begins",
    )


def _outside(usual: tuple[Trial, ...]) -> Trial | None:
    """A world with an index beyond the data, if all that divide evenly end with the last sample.

    Indices that do not go with the size of the data are of something else.
    """
    beyond = [trial for trial in usual if _last_index(trial) >= trial.world.samples]
    even = [trial for trial in usual if trial.world.is_even]
    goes_with_size = all(_last_index(trial) == trial.world.samples - 1 for trial in even)
    is_told = goes_with_size and not any(trial.from_data or trial.raised for trial in usual)
    return beyond[0] if beyond and even and is_told else None


def _last_index(trial: Trial) -> int:
    return max((index for turn in trial.turns for index in turn.indices or ()), default=-1)


def _out_of_range(model: Model, module: Module, cls: Class, trial: Trial) -> Suspect:
    where, node = splitting_place(model, cls) or _reading(model, module, cls)
    return Suspect(
        where,
        node,
        f"`{cls.name}` yields index {_last_index(trial)} of a dataset of {trial.world.samples}",
        fix=partial(read_other, model, cls),
        effect=f"with {trial.story}; IndexError, or a dataset that wraps around",
        advice="end with the last sample, or fill up with samples that there are",
    )


def hands_out_nothing(model: Model, module: Module, cls: Class) -> Suspect | None:
    """A class of which no rank gets anything where the samples divide, as of ``x[:-0]``."""
    usual = model.trials(cls).usual
    empty = [t for t in usual if t.turns and all(u.indices == () and u.length for u in t.turns)]
    others = [trial for trial in usual if trial not in empty]
    if not empty or not others or any(t.from_data or not t.world.is_even for t in empty):
        return None
    if not all(turn.indices for trial in others for turn in trial.turns):
        return None
    return Suspect(
        module,
        name_of(module, defined_by(model, cls, "__iter__") or cls),
        f"`{cls.name}` yields nothing where its samples divide evenly",
        effect=f"with {empty[0].story}, no rank gets any of them",
        advice="a slice `[:-k]` is empty where `k` is 0: say where it ends",
    )


def _has_empty_batch(trial: Trial) -> bool:
    """Whether a rank gets a batch of nothing, although a batch has a sample for each rank."""
    return _feeds_all(trial) and any(
        turn.in_batches and [] in turn.reading.items for turn in trial.turns
    )


def _feeds_all(trial: Trial) -> bool:
    return trial.raised is None and trial.world.batch_size >= trial.world.ranks


def _is_given_others(model: Model, cls: Class) -> bool:
    """Whether it goes over samplers of the tree, whose batches may all be whole."""
    values = {
        value
        for made in model.flow.built(cls)
        for name in model.flow.params(cls) or ()
        if role_of(name) in {Role.SAMPLER, Role.BATCH_SAMPLER}
        for value in model.passed_to(made, name)
    }
    return bool(values) and all(
        isinstance(value, Obj) and isinstance(value.cls, Class) for value in values
    )


def _is_given_nothing(model: Model, cls: Class) -> bool:
    """Whether it is given a batch of no samples: ``fill=[]``."""
    return any(
        isinstance(arg.value, Seq) and not arg.value.items
        for made in model.built.get(cls, ())
        if made.site is not None
        for arg in made.site.args
    )


def _empty_batch(model: Model, module: Module, cls: Class, trial: Trial) -> Suspect:
    where, node = splitting_place(model, cls) or _reading(model, module, cls)
    rank = next(turn.rank for turn in trial.turns if [] in turn.reading.items)
    who = f"rank {rank}" if trial.differs else "the loader"
    return Suspect(
        where,
        node,
        f"`{cls.name}` yields a batch of no samples",
        effect=f"with {trial.story}, {who} gets an empty list, which collating refuses",
        advice="leave an incomplete last batch out, or fill it up for all ranks",
    )


def _is_carried_over(trial: Trial) -> bool:
    """Whether a pass hands out again what the one before, which read all once, ended with."""
    first, second = (turn.indices or () for turn in trial.turns)
    every = range(trial.world.samples)
    is_whole = len(first) == len(every) and {*first} == {*every}
    is_known = trial.raised is None and not trial.from_data and trial.turns[0].in_batches
    return is_known and is_whole and {*second} == {*every} and len(second) > len(first)


def _carried_over(model: Model, module: Module, cls: Class, trial: Trial) -> Suspect:
    where, node = _reading(model, module, cls)
    more = len(trial.turns[1].indices or ()) - trial.world.samples
    return Suspect(
        where,
        node,
        f"`{cls.name}` does not empty its last batch: the next pass begins with it",
        effect=f"with {trial.story}, {more} samples are read twice",
        advice="begin each pass with an empty batch",
    )


def _reading(model: Model, module: Module, cls: Class) -> tuple[Module, Node]:
    """The method that yields, or the class."""
    iterate = defined_by(model, cls, "__iter__")
    where = module if iterate is None else model.module_of(iterate)
    return where, name_of(where, cls if iterate is None else iterate)


def _failed_lookup(trial: Trial) -> ast.AST | None:
    """The look-up that finds nothing, and stops the class."""
    error = trial.raised
    kind = "" if error is None else error.kind
    is_lookup = issubclass(getattr(builtins, kind, Exception), LookupError)
    return error.node if error is not None and is_lookup else None


def _missing_entry(module: Module, cls: Class, trial: Trial) -> Suspect:
    error = trial.raised
    assert error is not None
    inside = error.node is not None and cls.row <= getattr(error.node, "lineno", 0) <= cls.end_row
    where = node_of(error.node) if inside and error.node is not None else name_of(module, cls)
    return Suspect(
        module,
        where,
        f"`{cls.name}` works with two ranks, and fails with more ({error.kind})",
        effect=f"so with {trial.story}",
        advice="make an entry for each rank",
    )


def _adds_unlike(trial: Trial) -> bool:
    """Whether arrays of different lengths are added, which is by item: a list would be extended."""
    error = trial.raised
    return (
        error is not None
        and error.kind == "RuntimeError"
        and isinstance(error.node, (ast.BinOp, ast.AugAssign))
        and isinstance(error.node.op, ast.Add)
    )


def _added(module: Module, cls: Class, trial: Trial) -> Suspect:
    node = trial.raised.node if trial.raised is not None else None
    is_own = node is not None and cls.row <= getattr(node, "lineno", 0) <= cls.end_row
    return Suspect(
        module,
        node_of(node) if is_own and node is not None else name_of(module, cls),
        f"`{cls.name}` adds two arrays of different lengths item by item",
        grade=Grade.LIKELY if trial.from_data or trial.parts_guessed else Grade.CERTAIN,
        effect=f"with {trial.story}, RuntimeError: `+` extends a list, but no array",
        advice="join them by `torch.cat`, or add lists (`.tolist()`)",
    )


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
        where = model.module_of(loaded.scope)
        why = (Related(names.module.place(node_of(error.node)), f"this {what} fails"),)
        return Suspect(
            where,
            loaded,
            f"`{loaded.name}` of `{cls.name}` is not the number of indices it yields",
            why=why,
            effect=f"with {trial.story}, the {what} in `__iter__` fails ({error.kind})",
            advice="compute it from what `__iter__` will yield",
        )
    # Said apart, so that a baseline with the one does not hide the other.
    is_for_few = trial in model.trials(cls).tiny
    when = "fails with few samples" if is_for_few else "fails"
    return Suspect(
        names.module,
        node_of(error.node),
        f"this {what} {when}: `{cls.name}` does not have as many indices as it expects",
        fix=partial(_repeat, model, cls, is_for_few),
        effect=f"with {trial.story}, {error.kind}",
        advice="repeat the indices as often as needed, then truncate to exactly that length",
    )


def _repeat(model: Model, cls: Class, is_for_few: bool, editor: Editor) -> Fix | None:
    evened = even_out(model, cls, often=True, editor=editor)
    # What is read for more samples is right.
    return evened if evened is not None or is_for_few else read_other(model, cls, editor)


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
    return Suspect(
        module,
        node_of(test),
        f"this loop never ends: `{ast.unparse(test)}` stays true",
        effect=f"with {trial.story}, an iteration changes nothing: the process hangs",
        advice="break out of the loop when nothing is left to do",
    )


def _is_starved(trial: Trial) -> bool:
    if any(turn.in_batches or turn.indices is None for turn in trial.turns):
        return False
    sizes = [turn.count for turn in trial.turns]
    together = next((found for _, _, found in shares(trial.observed)), None)
    return max(sizes) - min(sizes) > 1 and together is not None and together.exact


def _starved(model: Model, module: Module, cls: Class, trial: Trial) -> Suspect:
    sizes = [turn.count for turn in trial.turns]
    where, node = splitting_place(model, cls) or (module, name_of(module, cls))
    return Suspect(
        where,
        node,
        f"`{cls.name}` rounds every shard up: the ranks get {listed(sizes)} samples",
        effect=f"with {trial.story}, the last ranks get fewer samples, or none",
        advice="give the first `n % ranks` ranks one extra sample instead",
    )


def _same_share(model: Model, module: Module, cls: Class, trial: Trial) -> Suspect:
    turn = trial.turns[0]
    is_all = len(set(turn.indices or ())) == trial.world.samples
    iterate = defined_by(model, cls, "__iter__")
    where = module if iterate is None else model.module_of(iterate)
    node: Node = name_of(module, cls)
    fix: Fixer = partial(read_other, model, cls)
    trials = model.trials(cls)
    flags = {flagged.also for flagged in trials.varied if flagged.is_flagged}
    if iterate is not None:
        slices = [*_slices_of_all(where, iterate)]
        strided = (one for one in slices if getattr(slice_of(where, one), "step", None))
        node = next(strided, None) or name_of(where, iterate)
        if slices and iterate.outer is cls:
            fix = partial(_start_at_rank, model, where, cls, iterate, slices)
    is_cut = isinstance(node, Index) and any(map(RANK.names, walk(node.key)))
    rest = " at the same time" if is_all else ", and the others are never read"
    count = f"{turn.count} sample{'s' * (turn.count != 1)}"
    if turn.goes_on:
        count, rest = "samples", " at the same time"
    return Suspect(
        where,
        node,
        f"every rank of `{cls.name}` reads the same {count}",
        fix=fix,
        # Where the class shares out by itself, a flag may be meant to have it not do so.
        grade=Grade.LIKELY if trials.sharded and trial.also in flags else Grade.CERTAIN,
        effect=f"with {trial.story}, the ranks read the same samples{rest}",
        advice="yield what stands at these places" if is_cut else "start the slice at the rank",
    )


def _unplaced(model: Model, module: Module, cls: Class, trial: Trial) -> Suspect:
    maker = defined_by(model, cls, "__init__")
    where = module if maker is None else model.module_of(maker)
    count = trial.turns[0].count
    return Suspect(
        where,
        name_of(where, maker or cls),
        f"every rank of `{cls.name}` reads the same {count} samples, unless it is given its rank",
        effect=f"with {trial.story}, the ranks read the same samples, and the others are never "
        f"read",
        advice="ask `torch.distributed.get_rank()` where no rank is given",
    )


def _start_at_rank(
    model: Model,
    module: Module,
    cls: Class,
    iterate: Function,
    slices: list[Index],
    editor: Editor,
) -> Fix | None:
    """Start a slice at the rank that the class keeps, if the ranks then share everything out."""
    for sliced in slices:
        found = _by_rank(model, module, cls, iterate, sliced)
        if found is not None:
            code, title, unsafe = found
            grade = Applicability.UNSAFE if unsafe else Applicability.SAFE
            return editor.at(module).replace(sliced, code).fix(title, grade, unsafe)
    return None


def _by_rank(
    model: Model, module: Module, cls: Class, iterate: Function, sliced: Index
) -> tuple[str, str, str] | None:
    """A slice that starts at the rank, what that is, and what speaks against it.

    Of the first so many, and of so many from some place on, the rank's part.
    """
    text = text_of(module.source, sliced)
    parsed = ast.parse(text, mode="eval").body if "\n" not in text else None
    if not isinstance(parsed, ast.Subscript) or not isinstance(parsed.slice, ast.Slice):
        return None
    share, encoded = parsed.slice, text.encode()

    def code(part: ast.expr | None) -> str:
        return "" if part is None else encoded[part.col_offset : part.end_col_offset].decode()

    size, unsafe = _size_from(share), ""
    if not iterate.params or (size is None and not _is_zero(share.lower)):
        return None
    if size is not None and share.lower is not None:
        begun = expression(share.lower, iterate, stmt_of(sliced))
        is_first = getattr(only(model.flow, begun, Hop.ASSIGNED), "value", None) == 0
        unsafe = "" if is_first else f"`{code(share.lower)}` may be where it is to begin"
    ranks = [
        f"{iterate.params[0].name}.{name}"
        for name in sorted(model.attributes(cls).names)
        if role_of(name) is Role.RANK and name.upper() not in concepts.LOCAL_RANK.variables
    ]
    begin = encoded.index(b":", parsed.value.end_col_offset)
    start = begin if share.lower is None else share.lower.col_offset
    rest = begin if share.lower is None else share.lower.end_col_offset
    upper, slices = code(size or share.upper), dict[str, str]()
    end = parsed.end_col_offset
    assert end is not None
    for rank in ranks:
        if size is None:
            slices[f"{rank}{encoded[rest : end - 1].decode()}"] = f"Start the slice at `{rank}`"
        if share.step is None:
            is_plain = isinstance(size or share.upper, (ast.Attribute, ast.Name))
            part = upper if is_plain else f"({upper})"
            slices[f"{rank} * {part} : ({rank} + 1) * {part}"] = f"Take part `{rank}`"
    found = model.start_of_share(cls, sliced, list(slices))
    if found is None:
        return None
    return f"{encoded[:start].decode()}{found}]", slices[found], unsafe


def _is_zero(lower: ast.expr | None) -> bool:
    return lower is None or ast.unparse(lower) == "0"


def _size_from(share: ast.Slice) -> ast.expr | None:
    """How many a slice takes from some place on: ``n`` of ``x[begin : begin + n]``."""
    lower, upper = share.lower, share.upper
    if share.step is not None or lower is None or not isinstance(upper, ast.BinOp):
        return None
    sides = [side for side in (upper.left, upper.right) if ast.dump(side) != ast.dump(lower)]
    return sides[0] if isinstance(upper.op, ast.Add) and len(sides) == 1 else None


def _torn(model: Model, module: Module, cls: Class, trial: Trial, violation: Violation) -> Suspect:
    where, node = splitting_place(model, cls) or (module, name_of(module, cls))
    though = ", although the data divides evenly" if trial.world.is_even else ""
    though = ", before an epoch is over" if trial.turns[0].goes_on else though
    return Suspect(
        where,
        node,
        f"the shards of `{cls.name}` overlap or leave samples out",
        fix=partial(read_other, model, cls),
        effect=f"with {trial.story}, {violation.text}{though}",
        advice="give each rank the next contiguous part, or `indices[rank::num_replicas]`",
    )


def _slices_of_all(module: Module, function: Function) -> Iterator[Index]:
    """The slices that take every so many samples, and those that take the first so many."""
    found = [
        (node, key)
        for node in nodes_in(statements(function.body))
        if isinstance(node, Index) and (key := slice_of(module, node)) is not None
    ]
    yield from (node for node, key in found if key.step is not None)
    yield from (node for node, key in found if key.step is None and key.upper is not None)


def _short_padding(model: Model, module: Module, cls: Class, trial: Trial) -> Suspect:
    where, node = splitting_place(model, cls) or (module, name_of(module, cls))
    return Suspect(
        where,
        node,
        f"the padding of `{cls.name}` is too short with fewer samples than half the ranks",
        grade=Grade.LIKELY,
        severity=Severity.WARNING,
        effect=f"with {trial.story}, {counts(trial)}",
        advice="repeat the indices as often as needed",
    )


# What shows when a dataset that divides itself is run as every rank and every worker has it.


def torn(model: Model) -> Iterator[Suspect]:
    """Datasets whose parts do not fit together."""
    for module, cls in model.classes():
        if is_test(module) or not _divides(model, cls):
            continue
        tear = model.sharing(cls).tear
        if tear is not None and not (tear.by_draws and _may_seed_workers(model, cls)):
            yield _suspect(model, module, cls, tear)


def _divides(model: Model, cls: Class) -> bool:
    """Whether the class is a dataset of torch that says ranks or workers anywhere."""
    bases = list(model.flow.mro(cls))
    return any(map(is_dataset, bases)) and any(
        any(concept.names(node) or concept.is_call(node) for concept in (RANK, WORKERS))
        for base in bases
        if isinstance(base, Class)
        for scope in scopes_inside(base)
        for node in nodes_in(statements(scope.body))
    )


def _may_seed_workers(model: Model, cls: Class) -> bool:
    """Whether a loader of such a dataset may give its workers another seed than torch does."""
    return any(
        may_be_given(model, loader, "worker_init_fn")
        for loader in model.loaders
        if any(
            isinstance(value, Obj)
            and isinstance(value.cls, Class)
            and cls in model.flow.mro(value.cls)
            for value in model.passed_to(loader, "dataset")
        )
    )


def _suspect(model: Model, module: Module, cls: Class, tear: Tear) -> Suspect:
    who = "worker" if tear.workers else "rank"
    if tear.by_draws:
        wrong = (
            "each worker shuffles by a seed of its own before it takes its part, so that some "
            "samples are read twice and others never"
        )
    elif tear.alike:
        wrong = (
            f"every {who} yields the same; {tear.missing} of {tear.whole} samples are never read"
        )
    else:
        found = ((tear.missing, "never read"), (tear.repeated, "read more than once"))
        wrong = " and ".join(
            f"{count} of {tear.whole} samples {'is' if count == 1 else 'are'} {when}"
            for count, when in found
            if count
        )
    if tear.by_draws:
        advice = "shuffle by a generator that every worker seeds alike, with the epoch"
    elif tear.is_rest:
        advice = "give the first `n % workers` workers one extra sample instead"
    else:
        wrong += ", although the data divides evenly"
        advice = (
            f"give each {who} the next contiguous part, or every n-th sample from its number on"
        )
    where, node = (
        splitting_place(model, cls)
        or _dividing(model, cls)
        or (
            module,
            name_of(module, cls),
        )
    )
    return Suspect(
        where,
        node,
        f"the parts of the {who}s in `{cls.name}` overlap or leave samples out",
        grade=Grade.LIKELY if tear.is_rest else Grade.CERTAIN,
        effect=f"with {tear.story}, {wrong}",
        advice=advice,
    )


def _dividing(model: Model, cls: Class) -> tuple[Module, Node] | None:
    """Where the class is read."""
    methods = (defined_by(model, cls, name) for name in ("__iter__", "__getitem__"))
    method = next(filter(None, methods), None)
    if method is None:
        return None
    module = model.module_of(method)
    return module, name_of(module, method)
