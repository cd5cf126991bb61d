"""Whether the ranks of small worlds share out what one process alone reads, or read it again."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from sampler_lint.execution.budget import MOST_OPTIONS, MOST_ROUNDED_BATCHES
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.execution.outcomes import Trial, Trials
from sampler_lint.execution.passes import EVEN, each
from sampler_lint.execution.set_up import SetUp
from sampler_lint.limits import FEWEST_GUESSED
from sampler_lint.properties import Observation, Violation, partitions, shares

T = TypeVar("T")


def repeated(interpreter: Interpreter, spec: SetUp) -> Trial | None:
    """A world in which the ranks yield the same share, if they do in all of them.

    Where what is drawn is left to chance, the flags are tried: one may turn it off.
    """
    if not (spec.takes_rank or interpreter.asked_place):
        return None
    worlds = spec.large_worlds
    single = tuple(world._replace(ranks=1) for world in worlds)
    options = (None, *itertools.islice(spec.flags(), MOST_OPTIONS))
    guesses = spec.guesses
    for option in _guessing(spec, options):
        if spec.guesses is not guesses and spec.guesses == guesses:
            break  # no number is guessed: it would be the same again
        found = [*_feeding(interpreter, spec, option)]
        reordered = bool(found) and found[0].turns[0].seeds is None
        if reordered:  # it may be only the order in which each takes what it has: that is tried
            interpreter.tries_orders = True
            try:
                found = [*_feeding(interpreter, spec, option)]
            finally:
                interpreter.tries_orders = False
        if sum(_reads_alike(trial, reordered=reordered) for trial in found) <= 2:
            continue  # what one process alone reads has no say
        alone = {trial.world.samples: trial for trial in each(interpreter, spec, single, option)}
        found = [trial for trial in found if trial.world.samples in alone]
        if option is not None and any(map(_repeats_samples, alone.values())):
            continue  # a flag may have ranks augment the same samples
        if len(found) > 2 and all(
            _is_same_share(trial, alone[trial.world.samples], reordered=reordered)
            for trial in found
        ):
            # Ranks may also take what each has drawn in its turn.
            interpreter.counts_draws = True
            try:
                in_turn = [*each(interpreter, spec, worlds, option)]
            finally:
                interpreter.counts_draws = False
            spec.numbers_are_ranks = True
            others = list(each(interpreter, spec, worlds, option))
            is_apart = any(trial.differs for trial in in_turn) or any(map(_is_apart, others))
            return None if is_apart else found[0]
    return None


def _guessing(spec: SetUp, tried: Sequence[T]) -> Iterator[T]:
    """What is to be tried, and again with other guesses where there are any."""
    first = spec.guesses
    try:
        for guesses in [first] if first is None else [first, spec.otherwise()]:
            spec.guesses = guesses
            yield from tried
    finally:
        spec.guesses = first


def _feeding(
    interpreter: Interpreter, spec: SetUp, option: tuple[str, Any] | None
) -> Iterator[Trial]:
    """Large worlds that it runs through, and in which each rank has something to read."""
    for trial in each(interpreter, spec, spec.large_worlds, option):
        if trial.raised is None and _feeds_all(trial) and any(turn.count for turn in trial.turns):
            yield trial


def torn(interpreter: Interpreter, spec: SetUp) -> tuple[Trial, Violation] | None:
    """A world in which the ranks do not share out what one process alone yields.

    The flags are tried one by one: each may be another way to share.
    """
    for option in (None, *itertools.islice(spec.flags(), MOST_OPTIONS)):
        found = [*_shared_evenly(interpreter, spec, option)]
        tears = [(trial, tear) for trial, seen in found if (tear := _tear(spec, seen)) is not None]
        if len(found) == len(tears) > 1:
            return tears[0]
    return None


def within_another(
    interpreter: Interpreter, spec: SetUp, trials: Trials
) -> tuple[Trial, Violation] | None:
    """A world in which all that a rank reads is read by another one, which reads more, if there
    is such a rank in all of them, although one process alone reads no sample twice.
    """
    # A number that is guessed may be one with which ranks are to read the same.
    told = trials.usual or [trial for trial in trials.guessed if not trial.also]
    known = [trial for trial in told if trial.world.ranks > 1]
    found = [trial for trial in known if any(turn.count for turn in trial.turns)]
    if len(found) < FEWEST_GUESSED or any(_rank_within(trial) is None for trial in found):
        return None
    alone = [*each(interpreter, spec, tuple({t.world._replace(ranks=1): 0 for t in found}))]
    read = [trial.turns[0].indices or () for trial in alone if trial.raised is None]
    if len(read) < FEWEST_GUESSED or any(len(set(part)) < len(part) for part in read):
        return None
    inner, outer = _rank_within(found[0]) or (0, 0)
    return found[0], Violation(f"all that rank {inner} reads is read by rank {outer}, too")


def reordered(interpreter: Interpreter, spec: SetUp, trials: Trials) -> Trial | None:
    """A world in which ranks read the same, as each draws the order that it takes its part of by a
    seed of its own, if that is so in most of them. A rank may order its own part as it likes.
    """
    told = trials.usual or trials.endless or [t for t in trials.guessed if not t.also]
    apart = [trial for trial in told if trial.raised is None and _is_seeded_apart(trial)]
    if len(apart) < FEWEST_GUESSED or not all(map(_shares_nothing, apart)):
        return None
    interpreter.tries_orders = True
    try:
        found = [*each(interpreter, spec, tuple(dict.fromkeys(trial.world for trial in apart)))]
    finally:
        interpreter.tries_orders = False
    # Of one other order, what two ranks take may be apart by chance.
    alike = [trial for trial in found if trial.raised is None and not _shares_nothing(trial)]
    return alike[0] if 2 * len(alike) >= len(found) >= FEWEST_GUESSED else None


def _is_seeded_apart(trial: Trial) -> bool:
    """Whether it is known what ranks that yield something draw by, and it differs."""
    seeds = {turn.seeds for turn in trial.turns}
    return len(seeds) > 1 and None not in seeds and all(turn.count for turn in trial.turns)


def _shares_nothing(trial: Trial) -> bool:
    """Whether no sample is read by two ranks."""
    parts = [set(turn.indices or ()) for turn in trial.turns]
    return all(parts) and sum(map(len, parts)) == len(set().union(*parts))


def _rank_within(trial: Trial) -> tuple[int, int] | None:
    """A rank that reads only what another one reads, which reads more, by one order for both."""
    shares = [(turn.rank, turn.seeds, {*(turn.indices or ())}) for turn in trial.turns]
    pairs = (
        (one[0], other[0])
        for one, other in itertools.permutations(shares, 2)
        if one[2] and one[2] < other[2] and one[1] is not None and one[1] == other[1]
    )
    return next(pairs, None)


def overlapping(
    interpreter: Interpreter, spec: SetUp, endless: tuple[Trial, ...]
) -> tuple[Trial, Violation] | None:
    """A world in which ranks read again, within the first epoch, what others read, if they do in
    all of them, of one order that each of them draws.
    """
    if len(endless) <= 2 or not all(map(_overlaps, endless)):
        return None
    spec.numbers_are_ranks = True
    if any(map(_is_apart, each(interpreter, spec, spec.large_worlds))):
        return None
    seen = endless[0].observed
    seen.expected = tuple({index for turn in endless[0].turns for index in turn.indices or ()})
    violation = partitions(seen)
    return None if violation is None else (endless[0], violation)


def _overlaps(trial: Trial) -> bool:
    """Whether ranks that draw one order read the same, although each reads nothing twice."""
    if trial.raised is not None or not trial.differs:
        return False
    parts = [turn.indices or () for turn in trial.turns]
    times = Counter(index for part in parts for index in part)
    return (
        all(len(set(part)) == len(part) > 1 for part in parts)
        and all(
            turn.seeds is not None and turn.seeds == trial.turns[0].seeds for turn in trial.turns
        )
        and max(times.values()) > 1
    )


def _shared_evenly(
    interpreter: Interpreter, spec: SetUp, option: tuple[str, Any] | None
) -> Iterator[tuple[Trial, Observation]]:
    """Worlds without a rest, as such whose ranks are to read what one process reads.

    They end with the first in which the ranks do.
    """
    sizes = itertools.product((*EVEN, *spec.large_worlds), spec.drops)
    for world, drop_last in _guessing(spec, tuple(sizes)):
        here = world._replace(drop_last=drop_last)
        trials = [*each(interpreter, spec, (here, here._replace(ranks=1)), option)]
        if len(trials) == 2 and _is_even(*trials):
            trial, alone = trials
            seen = trial.observed
            seen.expected, seen.batch = alone.turns[0].indices, world.batch_size
            yield trial, seen
            if _tear(spec, seen) is None:
                return


def _tear(spec: SetUp, seen: Observation) -> Violation | None:
    """What ranks lose while they read other samples twice, or half of all; or read again.

    Less than half of all may be what is left of groups of a size that nobody knows, or what fills
    such groups up.
    """
    found = next((found for _, _, found in shares(seen)), None)
    if found is None:
        return None
    if not found.missing:
        is_most = spec.guesses is None and 2 * found.repeats >= found.expected
        return Violation(f"{found.repeats} samples were read again") if is_most else None
    is_most = spec.guesses is None and 2 * len(found.missing) >= found.expected
    return partitions(seen) if found.repeats or is_most else None


def _is_even(trial: Trial, alone: Trial) -> bool:
    """Whether what one process reads, each sample once, can be shared without a rest."""
    whole = alone.turns[0].indices if alone.raised is None and alone.turns else None
    world = trial.world
    return (
        bool(whole)
        and whole is not None
        and len(set(whole)) == len(whole)
        and len(whole) % (world.ranks * world.batch_size) == 0
        and trial.raised is None
        and trial.differs
        and any(len(turn.indices or ()) < len(whole) for turn in trial.turns)
        and all(
            turn.count == trial.turns[0].count
            and bool(turn.indices) >= bool(turn.count)  # else batches are too small to be shared
            and set(turn.indices or ()) <= set(whole)
            for turn in trial.turns
        )
    )


def _repeats_samples(trial: Trial) -> bool:
    """Whether a rank reads a sample more than once."""
    return any(len(set(turn.indices or ())) < len(turn.indices or ()) for turn in trial.turns)


def _feeds_all(trial: Trial) -> bool:
    """Whether a batch that is to be shared has a sample for each rank."""
    is_in_batches = any(turn.in_batches for turn in trial.turns)
    return not is_in_batches or trial.world.batch_size >= trial.world.ranks


def _is_apart(trial: Trial) -> bool:
    """Whether the ranks mostly read what others do not."""
    if trial.raised is not None or not trial.differs:
        return False
    first, *others = (set(turn.indices or ()) for turn in trial.turns)
    return all(2 * len(first & other) <= len(first) for other in others)


def _reads_alike(trial: Trial, *, reordered: bool) -> bool:
    """Whether each rank draws by the same seeds, and reads the same, perhaps in another order."""
    if trial.raised is not None:
        return False
    seeds = trial.turns[0].seeds
    if seeds is None or any(turn.seeds != seeds for turn in trial.turns):
        return False
    read = [sorted(turn.indices or ()) if reordered else turn.indices for turn in trial.turns]
    return all(each == read[0] for each in read)


def _is_same_share(trial: Trial, alone: Trial, *, reordered: bool) -> bool:
    """Whether each rank reads the same part of what one process alone reads.

    ``reordered``: each in an order of its own.
    """
    if alone.raised is not None or not _reads_alike(trial, reordered=reordered):
        return False
    first = trial.turns[0]
    together, share = alone.turns[0].indices or (), first.indices or ()
    ranks, batch = trial.world.ranks, trial.world.batch_size
    as_many = len(share) == len(together)  # the more ranks, the more they are to read
    if first.goes_on or (as_many and len(set(together)) == len(together)):
        whole = alone.turns[0].yielded or ()
        return share != together[: len(share)] and any(
            _begin_alike(some, every[begin::ranks])
            for begin in range(ranks)
            for some, every in ((share, together), (first.yielded or (), whole))
        )
    return any(
        len(part) < len(whole)
        and abs(len(part) * ranks - len(whole)) <= MOST_ROUNDED_BATCHES * ranks * batch
        for part, whole in ((share, together), (set(share), set(together)))
    )


def _begin_alike(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two sequences are the same as far as both go."""
    most = min(len(one), len(other))
    return most > 1 and one[:most] == other[:most]
