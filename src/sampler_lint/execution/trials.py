"""Builds a sampler class for a few small worlds, counts what each rank yields and promises.

A class that needs more than a :class:`~.set_up.SetUp` can give it, or does something the
interpreter does not know, is not judged.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sampler_lint.execution.budget import (
    BUDGET,
    MORE_THAN_AN_EPOCH,
    MOST_GUESSES,
    MOST_HANDED_OUT,
    MOST_OPTIONS,
    MOST_OVER_BUDGET,
)
from sampler_lint.execution.errors import (
    CannotTellError,
    EndlessError,
    GoesOnError,
    OverBudgetError,
    RaisedError,
    WantedError,
)
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.execution.outcomes import Trial, Trials
from sampler_lint.execution.overlaps import (
    overlapping,
    reordered,
    repeated,
    torn,
    within_another,
)
from sampler_lint.execution.passes import SILENT, each, length_of, one_trial, turn_of
from sampler_lint.execution.set_up import SetUp, says_uneven
from sampler_lint.execution.stand_ins import is_sequence, stand_ins
from sampler_lint.execution.texts import other_texts
from sampler_lint.execution.values import Data, Fn
from sampler_lint.execution.worlds import World
from sampler_lint.limits import FEWEST_GUESSED
from sampler_lint.parameters import Role
from sampler_lint.properties import shares
from sampler_lint.syntax.nodes import Class
from sampler_lint.syntax.parse import all_nodes

#: The first must run through, else the class is not understood.
_WORLDS = (
    World(8, 2, 4),
    World(7, 2, 2),
    World(9, 2, 2),
    World(13, 2, 4),
    World(11, 3, 2),
    World(16, 2, 4),
    World(24, 2, 4),
    World(21, 4, 4),
)
#: Fewer samples than ranks, or than half a batch.
_TINY = (World(1, 4, 1), World(3, 8, 1), World(9, 8, 1), World(3, 1, 8))


#: Where optional arguments are tried: enough to tell equal shares from others.
_SOME = (World(13, 2, 4), World(11, 3, 2), World(24, 2, 4), World(21, 4, 4))
#: Where something is left that makes no batch, of the whole or of one of two parts.
LEFT_OVER = tuple(World(*numbers, drop_last=True) for numbers in ((7, 2, 4), (7, 2, 2), (13, 2, 4)))
#: Where batches cannot be taken apart.
_SINGLES = (World(8, 3, 1), World(7, 2, 1))


def try_out(interpreter: Interpreter, cls: Class, *, around_shard: bool = False) -> Trials:
    """Try a sampler class in several worlds.

    ``around_shard``: the sampler that it takes is a DistributedSampler, not a plain one.
    """
    BUDGET.open()
    return _tried(interpreter, cls, around_shard=around_shard)


def _tried(interpreter: Interpreter, cls: Class, *, around_shard: bool) -> Trials:
    interpreter.asked_place = False
    try:
        spec = SetUp(interpreter, interpreter.class_of(cls), around_shard=around_shard)
    except (RaisedError, *SILENT) as error:
        return Trials(unknown=_reason(error))
    plain = trials = _plainly(interpreter, spec)
    if BUDGET.gone:
        return Trials(unknown=BUDGET.gone)
    if not trials.usual and not spec.goes_on and Role.SAMPLER in spec.roles and not around_shard:
        spec.gives_batches = True  # what it calls a sampler may hand out batches
        again = _plainly(interpreter, spec)
        if again.usual:
            plain = trials = again
        spec.gives_batches = bool(again.usual)
    if not trials.usual and not spec.goes_on:
        trials = trials._replace(guessed=tuple(_with_guesses(interpreter, spec)))
        if trials.guessed:
            apart = _is_made_apart(interpreter, spec, trials.guessed[0])
            trials = trials._replace(made_apart=apart)
        if trials.guessed and spec.drops == (False, True):
            trials = trials._replace(dropping=tuple(each(interpreter, spec, LEFT_OVER)))
        if not trials.guessed and trials.failing is None and not spec.goes_on:
            trials = trials._replace(failing=_refusing(interpreter, spec))
    if spec.goes_on:
        endless = tuple(each(interpreter, spec, spec.large_worlds))
        trials = trials._replace(endless=endless, repeated=repeated(interpreter, spec))
        if trials.repeated is None:
            trials = trials._replace(torn=overlapping(interpreter, spec, endless))
        trials = trials._replace(reordered=reordered(interpreter, spec, trials))
    elif any(not any(trial.differs for trial in same) for same in _by_arguments(trials)):
        if not all(map(_is_told, trials.usual)):
            _tell_samples(interpreter, spec)
        trials = trials._replace(repeated=repeated(interpreter, spec))
    if trials.sharded and trials.repeated is None and spec.may_leave_rank:
        spec.leaves_place = True
        trials = trials._replace(unplaced=repeated(interpreter, spec))
        spec.leaves_place = spec.numbers_are_ranks = False
    if (trials.usual or trials.guessed) and not spec.goes_on:
        trials = trials._replace(again=tuple(_second_passes(interpreter, spec)))
    if BUDGET.gone:
        return plain
    if trials.sharded and trials.repeated is None and not spec.goes_on:
        trials = trials._replace(reordered=reordered(interpreter, spec, trials))
        tear = torn(interpreter, spec) or within_another(interpreter, spec, trials)
        trials = trials._replace(torn=None if BUDGET.gone else tear)
    return trials


def _by_arguments(trials: Trials) -> Iterator[list[Trial]]:
    """The worlds with the same arguments: of two ways through a class, one may not share."""
    flagged = (trial for trial in trials.varied if trial.is_flagged)
    known = (*trials.usual, *trials.guessed, *flagged)
    for also in dict.fromkeys(trial.also for trial in known):
        yield [trial for trial in known if trial.also == also]


def _plainly(interpreter: Interpreter, spec: SetUp) -> Trials:
    """All worlds, with what no one knows left unknown."""
    usual: list[Trial] = []
    failing = barren = None
    unknown = ""
    try:
        worlds = welcoming(interpreter, spec)
        interpreter.restart(worlds[0].ranks, 0)
        built = spec.build(worlds[0], 0)
    except RaisedError as error:
        return Trials(unknown=_reason(error), unbuilt=error.bare())
    except SILENT as error:
        return Trials(unknown=_reason(error))
    try:
        length_raised = length_of(interpreter, built)[1]
    except SILENT as error:
        return Trials(unknown=_reason(error))
    try:
        try:
            usual += _usual(interpreter, spec, worlds)
        except OverBudgetError:
            if BUDGET.gone:
                raise
            # Nothing may be left of its batches once they are shared out in groups.
            worlds, usual = spec.wide_worlds, []
            usual += _usual(interpreter, spec, worlds)
    except OverBudgetError as error:
        return Trials(unknown=_reason(error), length_raised=length_raised)
    except GoesOnError as error:
        spec.goes_on = True
        return Trials(unknown=_reason(error), length_raised=length_raised)
    except SILENT as error:
        usual.clear()
        unknown = _reason(error)
        failing = _failing([*each(interpreter, spec, worlds)])
    if usual and not any(t.raised or any(turn.count for turn in t.turns) for t in usual):
        barren = _barren(interpreter, spec, usual)
        usual.clear()
        unknown = "it yields nothing of little data"
    tiny = [*each(interpreter, spec, _TINY)]
    if usual:
        with contextlib.suppress(*SILENT):
            usual += _usual(interpreter, spec, spec.filled_worlds)
    if usual and (settled := spec.settled) is not None:
        spec.settled = None
        failing = _failing([*each(interpreter, spec, _WORLDS)])
        spec.settled = settled
    trials = Trials(
        tuple(_with_other_data(interpreter, spec, usual)),
        tuple(tiny),
        failing=failing,
        barren=barren,
        length_raised=length_raised,
        unknown=unknown,
    )
    if usual:
        varied = tuple(_varied(interpreter, spec, sharded=trials.sharded))
        trials = trials._replace(varied=varied)
    if trials.sharded:
        trials = trials._replace(
            resumed=tuple(_resumed(interpreter, spec, 0)),
            resized=tuple(_resumed(interpreter, spec, 1)),
            overrun=tuple(_resumed(interpreter, spec, 0, steps=MORE_THAN_AN_EPOCH)),
        )
    if usual and spec.has_while_loop:
        # Small batches are none of its own where it makes them of several groups.
        some = worlds if worlds is spec.wide_worlds else (*_SOME, *_SINGLES)
        trials = trials._replace(stuck=tuple(_stuck(interpreter, spec, some)))
    return trials


def _failing(every: list[Trial]) -> Trial | None:
    """The first of some worlds, if the same place raises in all that there are.

    Or in those, if enough are left, in which the class lets itself be built.
    """
    if len(every) < len(_WORLDS):
        return None
    built = [trial for trial in every if trial.refused is None]
    asked = built if len(built) >= FEWEST_GUESSED else every
    places = {trial.raised and trial.raised.node for trial in asked}
    return asked[0] if len(places) == 1 and asked[0].raised is not None else None


def _refusing(interpreter: Interpreter, spec: SetUp) -> Trial | None:
    """A world with guesses that were refused, if the same place refuses them in all of them.

    Other guesses must not change that.
    """
    spec.settled, found = None, None
    for fills_none, (_, guesses) in spec.refusals.items():
        spec.fills_none, spec.guesses = fills_none, dict(guesses)
        every = [*each(interpreter, spec, _WORLDS)]
        spec.guesses = spec.otherwise()
        every += each(interpreter, spec, _WORLDS)
        if not BUDGET.gone:
            found = _failing(every) or found
    return found


def _barren(interpreter: Interpreter, spec: SetUp, usual: list[Trial]) -> Trial | None:
    """A world in which no rank yields anything of what it promises, if that is so in all."""
    larger = [*each(interpreter, spec, (*spec.large_worlds, *spec.wide_worlds))]
    found = all(
        trial.raised is None
        and not trial.from_data
        and all(turn.length and turn.later and not turn.count for turn in trial.turns)
        for trial in (*usual, *larger)
    )
    return usual[0] if found and len(larger) >= FEWEST_GUESSED else None


def welcoming(interpreter: Interpreter, spec: SetUp) -> tuple[World, ...]:
    """Worlds in the first of which the class lets itself be built and hands something out.

    Where the usual ones are too small for it, or it wants a flag, other data or less than its
    default, that is found out here.
    """
    unclear, asked = False, Data.asked
    sizes = [_WORLDS, spec.large_worlds, spec.wide_worlds]
    small = [*spec.small_numbers()]
    options = [*spec.settlements(), *small]
    for worlds, dense in itertools.product(sizes, (False, True)):
        if dense and Data.asked == asked:
            continue  # nothing hung on the numbers that the data holds
        spec.dense, asked = dense, Data.asked
        for option in options:
            spec.settled = option
            if unclear and (option not in small or worlds is spec.wide_worlds):
                continue
            world = worlds[0]._replace(drop_last=spec.drops[0])
            try:
                trial = one_trial(interpreter, spec, world)
            except SILENT:
                unclear = True  # only less than it takes by itself may end
                continue
            most = max((turn.count or 0 for turn in trial.turns), default=0)
            largest = max(each.samples / each.ranks for each in worlds)
            if small and most * largest > MOST_HANDED_OUT * world.samples / world.ranks:
                unclear = True  # in a larger one it would seem not to end
            elif trial.raised is None and most:
                return worlds
    spec.settled, spec.dense = None, False
    return _WORLDS


def _with_guesses(interpreter: Interpreter, spec: SetUp) -> Iterator[Trial]:
    """The usual worlds, with something for each argument that is of the kind it is used as."""
    worlds = (_WORLDS, spec.large_worlds)
    settlements = itertools.islice(spec.settlements(), 1 + MOST_OPTIONS)
    small = [*spec.small_numbers()]
    options = (*settlements, *small)
    too_much = False
    refused = spec.refusals = dict[bool, tuple[ast.AST | None, dict[str, Any]]]()
    for option, some, spec.fills_none in itertools.product(options, worlds, (False, True)):
        if option is not None and not (too_much if option in small else refused):
            continue  # no flag lets it in where nothing shuts it out
        attempt = partial(hands_out, interpreter, spec, some[0], option)
        if spec.fills_none in refused and _is_refused(spec, attempt, *refused[spec.fills_none]):
            continue
        try:
            if guess(spec, attempt):
                spec.settled = option
                if spec.goes_on:
                    return
                both = spec.guesses, spec.otherwise()
                same = both[0] == both[1]  # no number is guessed
                sizes = (False, True) if Role.NUMBER in spec.roles else (False,)
                trials: list[Trial] = []
                for spec.guesses, spec.numbers_are_sizes in itertools.product(
                    both[:1] if same else both, sizes
                ):
                    trials += each(interpreter, spec, some)
                spec.guesses, spec.numbers_are_sizes = both[0], False
                trials *= 2 if same else 1
                yield from trials
                handing_out = sum(any(turn.count for turn in trial.turns) for trial in trials)
                if handing_out < FEWEST_GUESSED and some is _WORLDS:
                    yield from each(interpreter, spec, spec.large_worlds)
                return
        except OverBudgetError:
            too_much = True
            if BUDGET.gone or not any(spec.small_numbers()):
                return
        except RaisedError as error:
            refused[spec.fills_none] = error.node, spec.refused


def _is_refused(
    spec: SetUp, attempt: Callable[[], bool], node: ast.AST | None, guesses: dict[str, Any]
) -> bool:
    """Whether what was refused is refused there again, so that nothing else is to be expected."""
    spec.guesses = dict(guesses)
    try:
        attempt()
    except RaisedError as error:
        return error.node is node is not None
    except SILENT:
        pass
    spec.goes_on = False
    return False


def _is_made_apart(interpreter: Interpreter, spec: SetUp, trial: Trial) -> bool:
    """Whether more is yielded once the result of a call is longer, and ``len()`` stays the same.

    Or one of several attributes of the data: they may be the parts that it is made of.
    """
    lists = [key for key, value in (spec.guesses or {}).items() if is_sequence(value)]
    parts = [key for key in lists if key.startswith("dataset.") and not key.endswith(")")]
    for key in lists:
        if key.endswith(")") or (len(parts) > 1 and key in parts):
            spec.longer = key
            longer = [*each(interpreter, spec, (trial.world,))]
            spec.longer = ""
            if not longer or any(
                new.count != old.count and new.length == old.length
                for new, old in zip(longer[0].turns, trial.turns, strict=False)
            ):
                return True
    return False


def guess(spec: SetUp, attempt: Callable[[], bool]) -> bool:
    """Find what may stand for the arguments, so that an attempt succeeds.

    A use that nothing is known of says of what kind an argument is; where that leads nowhere,
    the last one that may be another takes its next value.

    Raises:
        RaisedError: the class does not let itself be built or iterated in this world.
        OverBudgetError: it does too much.
    """
    guesses: dict[str, Any] = {}
    spec.guesses = guesses
    left: list[tuple[str, list[Any], list[object]]] = []
    refused, runs_through = None, False
    too_much: list[OverBudgetError] = []
    for _ in range(MOST_GUESSES):
        outcome: object | None = object()  # unlike any other
        try:
            if attempt():
                return True
            refused, runs_through = None, True
        except RaisedError as error:
            if refused is None or len(guesses) > len(spec.refused):  # it got furthest
                refused, spec.refused = error, dict(guesses)
        except OverBudgetError as error:
            too_much.append(error)
            if BUDGET.gone or not left or len(too_much) == MOST_OVER_BUDGET:
                raise
        except WantedError as error:
            left.append((error.key, stand_ins(error), []))
            outcome = None
        except SILENT as error:
            outcome = type(error), str(error)
        _put_back(guesses, left, outcome)
        if not left and too_much and any(spec.small_numbers()):
            raise too_much[0]  # what fits may only be too large
        if not left and refused is not None and not runs_through:
            raise refused
        if not left and too_much:
            raise too_much[0]
        if not left:
            return False
        key, choices, _ = left[-1]
        guesses[key] = choices.pop(0)
    return False


def _put_back(
    guesses: dict[str, Any], left: list[tuple[str, list[Any], list[object]]], outcome: object | None
) -> None:
    """Take back the guesses that have no other value left.

    Where all values of a later one came out as before, an earlier one makes no difference: its
    other values need not be tried.
    """
    if left and outcome is not None:
        left[-1][2].append(outcome)
    while left and not left[-1][1]:
        key, _, outcomes = left.pop()
        guesses.pop(key, None)
        if left:
            _, choices, above = left[-1]
            above.append(tuple(outcomes))
            if above[-1] in above[:-1]:
                choices.clear()


def hands_out(
    interpreter: Interpreter, spec: SetUp, world: World, option: tuple[str, Any] | None
) -> bool:
    """Whether each rank of a world hands something out.

    Raises:
        RaisedError: the class does not let itself be built or iterated.
    """
    try:
        trial = one_trial(interpreter, spec, world, option)
    except GoesOnError:
        spec.goes_on = True
        return True
    if trial.raised is not None:
        raise trial.raised
    return all(turn.count and turn.indices != () for turn in trial.turns)  # in batches of nothing


def _tell_samples(interpreter: Interpreter, spec: SetUp) -> None:
    """Guess what is left unknown, so that it is known which samples are yielded, if that helps."""

    def tells() -> bool:
        return _is_told(one_trial(interpreter, spec, _WORLDS[0]))

    with contextlib.suppress(RaisedError, OverBudgetError):
        if guess(spec, tells):
            return
    spec.guesses = None


def _is_told(trial: Trial) -> bool:
    """Whether it is known which samples a world yields, if any."""
    return trial.raised is not None or all(turn.indices is not None for turn in trial.turns)


def _reason(error: Exception) -> str:
    """Why a class is not tried, in words."""
    if isinstance(error, RaisedError):
        return f"building it raises {error.kind}"
    if isinstance(error, OverBudgetError):
        return str(error)
    if isinstance(error, CannotTellError):
        return f"cannot tell {error}"
    return f"cannot tell what it does ({type(error).__name__})"


def is_as_long_as_it_says(interpreter: Interpreter, cls: Class) -> bool:
    """Whether in all usual worlds each rank yields as much as ``len()`` says before.

    With any of its options, too. Stops at the first that does not.
    """
    with contextlib.suppress(RaisedError, *SILENT):
        spec = SetUp(interpreter, interpreter.class_of(cls))
        usual = _usual(interpreter, spec, welcoming(interpreter, spec))
        flagged = (t for t in _varied(interpreter, spec, sharded=True) if t.is_flagged)
        return all(
            trial.raised is None and all(turn.length == turn.count for turn in trial.turns)
            for trial in itertools.chain(usual, flagged)
        )
    return False


def shares_out(interpreter: Interpreter, spec: SetUp, worlds: tuple[World, ...]) -> bool:
    """Whether in all of the worlds the ranks read all there is once, as many each as they say.

    What does not divide evenly may be left out, or filled up. Stops at the first world where not.
    """
    with contextlib.suppress(RaisedError, *SILENT):
        return all(_is_shared_out(trial) for trial in _usual(interpreter, spec, worlds))
    return False


def _is_shared_out(trial: Trial) -> bool:
    world, rest = trial.world, 0
    if not world.is_even:
        rest = world.ranks * (world.batch_size if trial.takes_batch_size else 1) - 1
    if trial.raised is not None or trial.from_data or len({t.count for t in trial.turns}) > 1:
        return False
    found = next((found for _, _, found in shares(trial.observed)), None)
    return (
        found is not None
        and not found.strange
        and max(found.repeats, len(found.missing)) <= rest
        and all(turn.length in {None, turn.count} for turn in trial.turns)
    )


def _usual(interpreter: Interpreter, spec: SetUp, worlds: tuple[World, ...]) -> Iterator[Trial]:
    """The usual worlds one by one; raises where the class cannot be tried."""
    for number, world in enumerate(worlds):
        for drop_last in spec.drops:
            trial = one_trial(interpreter, spec, world._replace(drop_last=drop_last))
            if number == 0 and drop_last is spec.drops[0] and trial.raised is not None:
                raise CannotTellError("how it is used")
            yield trial


def _with_other_data(interpreter: Interpreter, spec: SetUp, usual: list[Trial]) -> list[Trial]:
    """The usual worlds, with whether what is dropped hangs on the data in any of them."""
    asked = [trial for trial in usual if trial.from_data and trial.world.drop_last]
    if not asked:
        return usual
    spec.dense = not spec.dense
    others = [*each(interpreter, spec, tuple(trial.world for trial in asked))]
    spec.dense = not spec.dense
    if [trial.counted for trial in others] != [trial.counted for trial in asked]:
        return usual
    return [trial._replace(counts_hold=trial in asked) for trial in usual]


def try_around(
    interpreter: Interpreter, cls: Class, parameter: str, inner: Class
) -> tuple[Trial, ...]:
    """Try a sampler class around objects of another class of the tree."""
    BUDGET.open()
    out: list[Trial] = []
    with contextlib.suppress(RaisedError, *SILENT):
        spec = SetUp(interpreter, interpreter.class_of(cls))
        spec.given = parameter, SetUp(interpreter, interpreter.class_of(inner))
        drops = spec.takes_drop_last or spec.given[1].takes_drop_last
        for world in _SOME:
            for drop_last in (False, True) if drops else (False,):
                trial = one_trial(interpreter, spec, world._replace(drop_last=drop_last))
                words = [] if spec.takes_drop_last or not drops else [f"drop_last={drop_last}"]
                out.append(trial._replace(also=", ".join([f"around `{inner.name}`", *words])))
    return () if BUDGET.gone else tuple(out)


def _varied(interpreter: Interpreter, spec: SetUp, *, sharded: bool) -> Iterator[Trial]:
    """Worlds in which one optional argument is given; none for an option not understood.

    Then those with two flags that go each by itself. A class that knows nothing of ranks does the
    same on each of them.
    """
    worlds = _SOME if sharded else tuple(world._replace(ranks=1) for world in _SOME)
    flags: list[tuple[str, Any]] = []
    for option in itertools.islice(
        itertools.chain(spec.options(), other_texts(spec)), MOST_OPTIONS
    ):
        trials = _given(interpreter, spec, worlds, option)
        if trials and isinstance(option[1], bool):
            flags.append(option)
        yield from trials
    if spec.settled is None:
        for spec.settled, option in itertools.islice(
            itertools.combinations(flags, 2), MOST_OPTIONS
        ):
            yield from _given(interpreter, spec, worlds, option)
        spec.settled = None


def _given(
    interpreter: Interpreter, spec: SetUp, worlds: tuple[World, ...], option: tuple[str, Any]
) -> list[Trial]:
    """Worlds in which an optional argument is given, if it is understood."""
    try:
        trials = [one_trial(interpreter, spec, world, option) for world in worlds]
    except SILENT:
        return []
    # It may refuse what does not go with the option.
    built = [trial for trial in trials if trial.turns or trial.raised is None]
    if len(built) < 2 or any(trial.raised is not None for trial in built):
        return []
    is_flag = isinstance(option[1], (bool, str))
    given = [each for each in (option, spec.settled) if each is not None]
    uneven = any(says_uneven("=".join(map(str, each))) for each in given)
    names = tuple(name for name, _ in given)
    return [t._replace(options=names, is_flagged=is_flag, says_uneven=uneven) for t in built]


def _second_passes(interpreter: Interpreter, spec: SetUp) -> Iterator[Trial]:
    """Two passes over one object, for worlds of one process, some with a rest."""
    for world, drop_last in itertools.product(_SOME[:2], spec.drops):
        alone = world._replace(ranks=1, drop_last=drop_last)
        with contextlib.suppress(RaisedError, *SILENT):
            interpreter.restart(1, 0)
            asked = Data.asked, Data.asked_of_all
            instance = spec.build(alone, 0)
            first = turn_of(interpreter, instance, 0, asked)
            setter = interpreter.method(instance, "set_epoch")
            if setter is not None:
                interpreter.call(setter, [1], {})
            turns = first, turn_of(interpreter, instance, 0, asked)
            takes = spec.takes_batch_size, spec.takes_drop_last
            yield Trial(alone, turns, *takes, also="in the second pass")


def _stuck(interpreter: Interpreter, spec: SetUp, worlds: tuple[World, ...]) -> Iterator[Trial]:
    """The first world for each flag in which some loop never ends."""
    for option in (None, *itertools.islice(spec.flags(), MOST_OPTIONS)):
        for world in worlds:
            try:
                trial = one_trial(interpreter, spec, world, option)
            except SILENT:
                continue
            if isinstance(trial.raised, EndlessError):
                if world in _SINGLES and not spec.takes_batch_size:
                    words = [*filter(None, [trial.also]), "batches of one sample"]
                    trial = trial._replace(also=", ".join(words))
                yield trial
                break


def _resumed(
    interpreter: Interpreter, spec: SetUp, more_ranks: int, *, steps: int = 1
) -> Iterator[Trial]:
    """Worlds in which each rank goes on from a checkpoint, and then into the next epoch."""
    methods = [spec.klass.found(name) for name in ("state_dict", "load_state_dict")]
    if not all(isinstance(method, Fn) for method in methods):
        return
    if steps > 1 and not any(_wraps(method.node) for method in methods):
        return
    for some, drop_last in itertools.product(_SOME, spec.drops):
        before = some._replace(drop_last=drop_last)
        after = before._replace(ranks=before.ranks + more_ranks)
        with contextlib.suppress(RaisedError, *SILENT):
            yield from _from_checkpoint(interpreter, spec, before, after, steps)


def _wraps(node: ast.AST) -> bool:
    """Whether the code takes what was counted modulo something, so that it may be too much."""
    return any(
        isinstance(part, (ast.BinOp, ast.AugAssign)) and isinstance(part.op, ast.Mod)
        for part in all_nodes(node)
    )


def _from_checkpoint(
    interpreter: Interpreter, spec: SetUp, before: World, after: World, steps: int
) -> Iterator[Trial]:
    """The rest of the epoch after one step, and the epoch after that."""
    interpreter.restart(before.ranks, 0)
    saver = spec.build(before, 0)
    method = interpreter.method(saver, "state_dict")
    assert method is not None
    for _ in itertools.islice(interpreter.iterate(saver), before.batch_size):
        pass
    progress = spec.progress(method.function, before, steps)
    if steps > 1 and not progress:
        return  # it counts for itself
    state = interpreter.call(method, [], progress)
    far = "one step" if steps == 1 else f"{steps} steps (more than one epoch)"
    ranks = "" if after.ranks == before.ranks else f" of a run on {before.ranks} ranks"
    rests, nexts = [], []
    for rank in range(after.ranks):
        interpreter.restart(after.ranks, rank)
        asked = Data.asked, Data.asked_of_all
        instance = spec.build(after, rank)
        load = interpreter.method(instance, "load_state_dict")
        assert load is not None
        interpreter.call(load, [dict(state)], {})
        rests.append(turn_of(interpreter, instance, rank, asked))
        if rests[-1].raised is None and steps == 1:
            setter = interpreter.method(instance, "set_epoch")
            if setter is not None:
                interpreter.call(setter, [1], {})
            nexts.append(turn_of(interpreter, instance, rank, asked))
    takes = spec.takes_batch_size, spec.takes_drop_last
    yield Trial(after, tuple(rests), *takes, also=f"resumed after {far}{ranks}")
    if nexts:
        when = f"in the epoch after one resumed after {far}{ranks}"
        yield Trial(after, tuple(nexts), *takes, also=when, follows=True)
