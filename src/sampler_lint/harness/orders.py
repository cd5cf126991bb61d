"""Orders that a run shows to be wrong: epochs that are alike, replayed, begun again, unshuffled."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sampler_lint.harness.inside.passes import FIRST
from sampler_lint.harness.invariants import epochs_of, repeated_orders, some
from sampler_lint.harness.runs import Loader, Log, Pass, Run, SetEpoch, Stream, relative
from sampler_lint.harness.samples import sorted_by
from sampler_lint.harness.told import Diagnosis, Evidence, places, span, spot, who_of
from sampler_lint.properties import ENOUGH, numbers


def orders(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """Epochs of a shuffling loader that have one order."""
    loader = job[0].loader
    if loader.iterable or (loader.shuffling is False and not _chosen_anew(job[0])):
        return
    repeats, _ = repeated_orders(job)
    for alike, ranks in repeats.items():
        rank = ranks[0]
        epochs = [epochs_of(job[rank])[number][1] for number in alike]
        log = run.ranks[rank].log
        if not _meant_random(loader, epochs) or _begun_again(log, epochs):
            continue
        again = _in_turns(log, job[rank])
        if not again and _asked_again(log, job[rank], epochs):
            continue
        if _reread(log, job[rank]) or _refilled(epochs_of(job[rank]), epochs):
            continue
        cause = again or _cause(log, job[rank], epochs)
        message = (
            f"epochs {span(alike)} have one order on {who_of(ranks, len(job))}: {cause.reason}"
        )
        calls = _calls(run, log)
        begins = Evidence(f"rank {rank} begins each of them with {some(epochs[0].begins)}")
        path, line = spot(loader, epochs)
        yield Diagnosis(
            cause.code, message, path, line, (*places(run, job), *calls, begins), cause.also
        )


def rewound(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """Epochs of one order in a pass that never ends, as of a loader that keeps its workers."""
    stream, log = job[0], run.ranks[0].log
    one, loader = stream.passes[0], stream.loader
    length = one.length or 0
    if not (loader.own_iterator and loader.shuffling and one.learned and one.complete and length):
        return
    every = [one.batches[at : at + length] for at in range(0, one.drawn - length + 1, length)]
    alike = len(every) > 1 and all(each == every[0] for each in every)
    if alike and len(one.indices) >= ENOUGH * len(every) and not _calls_of(log, stream):
        cause = _cause(log, stream, [one])
        yield Diagnosis(
            cause.code,
            f"each {length} batches of a pass that never ends have one order: {cause.reason}",
            *spot(loader, [one]),
            tuple(places(run, job)),
            cause.also,
        )


def _chosen_anew(stream: Stream) -> bool:
    """Whether the samples are put in some order, other than the dataset's, before each epoch."""
    subset = stream.loader.subset
    datasets = {one.dataset for one in stream.loaders}
    return bool(subset) and subset != sorted(subset or ()) and len(datasets) > 1


def _meant_random(loader: Loader, epochs: Sequence[Pass]) -> bool:
    """Whether equal orders are certainly neither meant nor chance."""
    first = epochs[0]
    if loader.shuffling is False:
        return True
    if loader.shuffling is None:
        # A sampler that takes the epoch varies with it, unless it counts upwards anyway, and so
        # does one whose code draws an order.
        numbers = [one for one in first.indices if isinstance(one, int)]
        if loader.samplers and loader.samplers[0]["cls"] == "list" and loader.passes[1:]:
            return False  # batches that are read as they were made, once
        if not any(one["set_epoch"] or one["shuffles"] for one in loader.samplers):
            return False
        if numbers == sorted(numbers):
            return False
    inner = loader.samplers[-1]["module"].startswith("torch.") if loader.samplers else False
    return inner or first.drawn >= ENOUGH or len(epochs) > 2


def _asked_again(log: Log, stream: Stream, epochs: Sequence[Pass]) -> bool:
    """Whether the program set one epoch's number anew for each of them, and others for others.

    So it takes an epoch again, after a failure or because it wants to.
    """
    calls = [call for call in _calls_of(log, stream) if call.direct]
    begins = [one.number for one in stream.passes]
    asked = []
    for epoch in epochs:
        before = max((one + 1 for one in begins if one < epoch.number), default=0)
        asked.append([call.value for call in calls if before <= call.passes <= epoch.number][-1:])
    return (
        bool(asked[0])
        and all(values == asked[0] for values in asked)
        and any(call.value != asked[0][0] for call in calls)
    )


def _begun_again(log: Log, epochs: Sequence[Pass]) -> bool:
    """Whether a state was loaded between each of these epochs and the next, so that what is wrong
    is where the run went on."""
    loaded = [sum(begun <= one.number for begun, _ in log.resumed) for one in epochs]
    return all(before < after for before, after in itertools.pairwise(loaded))


def _in_turns(log: Log, stream: Stream) -> _Cause | None:
    """Whether one training is told the same few epochs in turn, or each of them several times."""
    epochs = [one for _, one in epochs_of(stream)]
    calls = _calls_of(log, stream)
    values = [in_force(calls, one, None) for one in epochs]
    if any(epochs[0].number + 1 < begun for begun in log.trainings) or not calls:
        return None  # another training has begun
    kinds = list(dict.fromkeys(values))
    turns = len(values) // len(kinds)
    told = len([call for call in calls if call.direct]) >= len(values)
    if len(kinds) < 2 or turns < 2:
        return None
    if turns > 2 and values[: turns * len(kinds)] == kinds * turns:
        return _Cause(
            "SMP103",
            f"`set_epoch` is called with {numbers(kinds)} again and again; count on over rounds",
        )
    if told and values == [one for one in kinds for _ in range(turns)]:
        return _Cause(
            "SMP103",
            f"`set_epoch` is called with {numbers(values)}: each number serves {turns} epochs; "
            f"count each of them",
        )
    return None


def _reread(log: Log, stream: Stream) -> bool:
    """Whether the program reads each of its epochs several times before it sets the next.

    So do algorithms that learn from one collection of samples in several passes.
    """
    calls = _calls_of(log, stream)
    times = Counter(
        max((at for at, call in enumerate(calls) if call.passes <= one.number), default=-1)
        for _, one in epochs_of(stream)
    )
    values = {str(calls[at].value) for at in times if at >= 0}
    whole = [count for at, count in sorted(times.items())][:-1]
    return -1 not in times and len(times) > 1 < len(values) and min(whole) > 1


def _refilled(every: Sequence[tuple[int, Pass]], alike: Sequence[Pass]) -> bool:
    """Whether the dataset held the same in epochs of one order, and something else in all others.

    So the order is meant to be one for each collection of samples.
    """
    marks = {one.mark for one in alike}
    others = {one.mark for _, one in every if one not in alike}
    return len(marks) == 1 and bool(others) and not marks & others


def _calls(run: Run, log: Log) -> list[Evidence]:
    """Where ``set_epoch`` was called, on what, with which values."""
    calls: dict[tuple[str, int, str], list[str]] = {}
    for call in log.set_epochs:
        calls.setdefault((call.path, call.line, call.cls), []).append(str(call.value))
    return [
        Evidence(
            f"set_epoch of {cls} called here with {numbers(values)}",
            relative(path, run.root),
            line,
        )
        for (path, line, cls), values in list(calls.items())[:4]
    ]


@dataclass(frozen=True, slots=True)
class _Cause:
    """Why epochs are alike: the code, the reason, and the codes that look the same."""

    code: str
    reason: str
    also: tuple[str, ...] = ()


def _cause(log: Log, stream: Stream, epochs: Sequence[Pass]) -> _Cause:
    owners = [_owner(stream, epoch) for epoch in epochs]
    loader = owners[0]
    carriers = [sampler for owner in owners for sampler in owner.samplers if sampler["set_epoch"]]
    objects = {sampler["object"] for sampler in carriers}
    calls = [call for call in log.set_epochs if call.object in objects]
    if not carriers:
        return _carrierless(loader)
    if not calls:
        return _uncalled(log, stream, carriers[-1]["cls"])
    called = {call.object for call in calls}
    reached = next(sampler["cls"] for sampler in carriers if sampler["object"] in called)
    missed = [sampler["cls"] for sampler in carriers if sampler["object"] not in called]
    if _late(calls, epochs):
        return _Cause(
            "SMP103",
            "`set_epoch` is called after the epoch's iterator was made, so its value counts for "
            "the next one; call it before the loop over the loader",
        )
    values = [in_force(calls, epoch) for epoch in epochs]
    if len(set(map(str, values))) == 1:
        return _Cause(
            "SMP103",
            f"`set_epoch` left the value {values[0]} for all of them; call it at the start of "
            f"every epoch with that epoch's number",
        )
    if missed and loader.own_batch_sampler and loader.samplers[0]["cls"] in missed:
        return _Cause(
            "SMP101",
            f"`set_epoch` reaches {reached}, but {missed[0]} carries the epoch; call "
            f"`loader.batch_sampler.set_epoch(epoch)`",
        )
    if missed:
        return _Cause(
            "SMP104",
            f"`set_epoch` of {reached} does not reach {missed[-1]}, which makes the order; "
            f"forward the call",
        )
    return _Cause(
        "SMP104",
        f"`set_epoch` of {reached} was called with the epoch, but the order does not depend on "
        f"it; seed its generator with the seed and the epoch",
        ("SMP203", "SMP404"),
    )


def _carrierless(loader: Loader) -> _Cause:
    inner = loader.samplers[-1]["cls"] if loader.samplers else "the sampler"
    if loader.shuffling is False:
        return _Cause(
            "SMP106",
            "the samples are put in order before each, from one seed; add the epoch to the seed",
            ("SMP102", "SMP203"),
        )
    if inner == "list":
        return _Cause(
            "SMP106",
            "what draws their batches gets the same seed before each; add the epoch to the seed",
            ("SMP102", "SMP203"),
        )
    if loader.samplers and loader.samplers[-1]["module"].startswith("torch."):
        return _Cause(
            "SMP102",
            f"{inner} takes no epoch, and its generator gets the same seed before each; seed "
            f"it once, before the first",
        )
    return _Cause(
        "SMP104",
        f"{inner} has no `set_epoch` and shuffles with one seed, or only once; give it one and "
        f"add the epoch to the seed",
        ("SMP106", "SMP203"),
    )


def _uncalled(log: Log, stream: Stream, cls: str) -> _Cause:
    """No call reached the loader's samplers: perhaps another object got it."""
    loader = stream.loader
    makers = dict.fromkeys(loader.makers, "the prepared loader")
    things = {loader.number: loader.cls, loader.dataset: "the dataset", **makers}
    others = {
        sampler["object"]
        for other in log.loaders
        if other not in stream.loaders and any(one.yielded for one in other.passes)
        for sampler in other.samplers
    }
    strays = [call for call in log.set_epochs if call.direct and call.object not in others]
    on = next((things[call.object] for call in strays if call.object in things), None)
    if on is not None:
        return _Cause(
            "SMP103",
            f"`set_epoch` is called on {on}, which does not pass it to {cls}, which makes the "
            f"order; call it there",
            ("SMP101",),
        )
    if strays:
        where = "`loader.batch_sampler`" if loader.own_batch_sampler else "`loader.sampler`"
        return _Cause(
            "SMP101" if loader.own_batch_sampler else "SMP103",
            f"`set_epoch` is called on a {strays[0].cls} that this loader does not read; call it "
            f"on the {cls} in {where}",
            ("SMP102", "SMP103"),
        )
    where = " in `loader.batch_sampler` (nobody reads `loader.sampler`)"
    return _Cause(
        "SMP102",
        f"no `set_epoch` call reached {cls}, which makes the order; call it at the start of "
        f"every epoch{where if loader.own_batch_sampler else ''}",
        ("SMP101", "SMP103", "SMP104"),
    )


def in_force(calls: Sequence[SetEpoch], epoch: Pass, first: Any = 0) -> Any:
    """The value that the last call before the epoch left; 0 is every sampler's ``first``."""
    before = [call.value for call in calls if call.passes <= epoch.number]
    return before[-1] if before else first


def _late(calls: Sequence[SetEpoch], epochs: Sequence[Pass]) -> bool:
    """Whether each epoch's call came only after the epoch had begun."""
    numbers = [epoch.number for epoch in epochs]
    return (
        not any(call.passes <= numbers[0] for call in calls)
        and any(numbers[0] < call.passes <= numbers[1] for call in calls)
        and len({str(call.value) for call in calls}) > 1
    )


def replayed(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """Batches that were kept and are learned from again, after the loader's end."""
    log, last = run.ranks[0].log, job[0].passes[-1]
    every = [one for loader in log.loaders for one in loader.passes]
    if not (last.ended and log.exit):
        return
    more = log.exit["backwards"] - last.backwards
    loader = job[0].loader
    if last.cycled and last.learned and (loader.shuffling or loader.shuffles):
        if more >= last.yielded > 1:
            yield Diagnosis(
                "SMP102",
                "`itertools.cycle` stores the batches of its first pass, and gives them again in "
                "the same order; iterate the loader in every epoch",
                *spot(loader, [last]),
                tuple(places(run, job)),
            )
        return
    if last is not max(every, key=lambda one: one.number):
        return
    unheard = {str(call.value) for call in _calls_of(log, job[0]) if call.passes > last.number}
    if not last.learned and len(unheard) > 1 and more >= last.yielded and last.count >= ENOUGH:
        yield Diagnosis(
            "SMP102",
            f"`set_epoch` is called with {len(unheard)} epochs after the last pass of the loader: "
            f"its batches are stored, and their order stays; iterate the loader in every epoch",
            *spot(job[0].loader, [last]),
            (*places(run, job), *_calls(run, log)),
        )
    if last.learned == last.yielded and last.count >= ENOUGH and more >= last.yielded:
        yield Diagnosis(
            "SMP102",
            f"gradients were computed {more} times after the loader had ended: its batches are "
            f"stored and read again in the same order; iterate the loader in every epoch",
            *spot(job[0].loader, [last]),
            tuple(places(run, job)),
        )


def unshuffled(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """Training data in the order of the dataset, while what evaluates is shuffled."""
    stream, log = job[0], run.ranks[0].log
    loader = stream.loader
    whole = [one for _, one in epochs_of(stream) if one.exhausted and one.learned]
    if loader.shuffling is not False or len(whole) < 2:
        return
    subset = loader.subset
    if not all(map(_ascends, whole)) or (subset and subset != sorted(subset)):
        return
    evaluating = [
        other for other in log.loaders if other.passes and not any(one.grad for one in other.passes)
    ]
    if any(other.shuffling for other in evaluating):
        why = "and the loader that evaluates is shuffled; shuffle what trains instead"
    elif labels := sorted_by(whole[0]):
        why = (
            f"which is sorted: the first {labels[1]} samples of a rank come as {labels[0]} kinds, "
            f"one after the other; shuffle what trains"
        )
    elif evaluating and len({call.value for call in _calls_of(log, stream) if call.direct}) > 1:
        why = (
            "though `set_epoch` is called for each of them, unlike where it evaluates; it only "
            "counts where the sampler shuffles"
        )
    else:
        return
    yield Diagnosis(
        "SMP507",
        f"every epoch reads the samples in the order of the dataset, {why}",
        *spot(loader, whole),
        tuple(places(run, job)),
    )


def twice_at_once(run: Run) -> Iterator[Diagnosis]:
    """Two passes over one dataset that gave the same batches, one beside the other."""
    alike: dict[object, list[tuple[Loader, Pass]]] = {}
    for loader in run.ranks[0].log.loaders:
        for one in () if loader.iterable else loader.passes:
            # Training took steps, yet none between the beginnings of passes with this key.
            if min(one.learned, one.taken) > 1:
                key = (loader.dataset, one.steps, one.checksum, one.count)
                alike.setdefault(key, []).append((loader, one))
    told: dict[tuple[str, int], Sequence[Loader]] = {}
    for every in alike.values():
        first, *others = (one for _, one in every)
        if any(not one.ended or one.backwards == first.backwards for one in others):
            told.setdefault((first.path, first.line), [loader for loader, _ in every])
    for (path, line), loaders in told.items():
        built = dict.fromkeys((relative(one.path, run.root), one.line) for one in loaders)
        yield Diagnosis(
            "SMP505",
            "iterations that are read beside one another give the same samples in the same order, "
            "so each batch is combined with itself; let each have an order of its own",
            path,
            line,
            tuple(Evidence("a loader is built here", *place) for place in built),
        )


def _calls_of(log: Log, stream: Stream) -> list[SetEpoch]:
    """The calls of ``set_epoch`` on what the stream's indices come from."""
    objects = {one["object"] for loader in stream.loaders for one in loader.samplers}
    return [call for call in log.set_epochs if call.object in objects]


def _ascends(one: Pass) -> bool:
    """Whether the samples come as they lie in the dataset; at the end there may be padding."""
    known = [index for index in one.indices if isinstance(index, int)]
    breaks = [after for before, after in itertools.pairwise(known) if after <= before]
    return len(known) == len(one.indices) and breaks in ([], known[-1:])


def began_again(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """A run that goes on with an optimizer's state, but with the first epoch."""
    stream, log = job[0], run.ranks[0].log
    calls = _calls_of(log, stream)
    for loads, (begun, steps) in enumerate(log.resumed, 1):
        later = [one for one in stream.passes if one.number >= begun and one.learned]
        if not later or _owner(stream, later[0]).passes[0].number < begun:
            continue
        if _is_rest(run, job, later[0]):
            continue
        value = in_force(calls, later[0])
        before = [one for one in _earlier(log, stream.loader) if one.number < begun]
        read = any((a.count, a.checksum) == (later[0].count, later[0].checksum) for a in before)
        length = later[0].length or 0
        done = bool(length) and max(steps, _steps_of_schedules(log, loads)) >= length
        if calls and ((value == 0 and done) or (read and len(before) > 1)):
            yield Diagnosis(
                "SMP103",
                f"the optimizer's state was loaded, yet the first pass after it has the order of "
                f"epoch {value} again; continue with the epoch that was saved",
                *spot(stream.loader, later),
                (*places(run, job), *_calls(run, log)),
            )
            return
        samplers = stream.loader.samplers
        own = bool(samplers) and not samplers[-1]["module"].startswith("torch.")
        if not calls and own and read and before[-1].begins != later[0].begins:
            yield Diagnosis(
                "SMP105",
                f"the optimizer's state was loaded, yet the first pass after it reads again in the "
                f"order of an earlier one: {samplers[-1]['cls']} sets out from its beginning; "
                f"restore how far it was",
                *spot(stream.loader, later),
                tuple(places(run, job)),
            )
            return


def _steps_of_schedules(log: Log, loads: int) -> int:
    """The steps that had been taken when a state was loaded, by how far schedules had come.

    Whether they go on with each step or with each epoch shows between two of their steps, or
    between the start of the process and the first of them.
    """
    found = 0
    for (after, _), told in log.scheduled.items():
        if after == loads:
            (last, taken), between = told[0], told[-1][1] - told[0][1]
            found = max(found, (last - 1) * (between or taken))
    return found


def _owner(stream: Stream, one: Pass) -> Loader:
    """The loader whose pass this is."""
    return next(loader for loader in stream.loaders if one in loader.passes)


def _is_rest(run: Run, job: Sequence[Stream], one: Pass) -> bool:
    """Whether a pass ended before as much was read as is there: what came before is skipped."""
    size = job[0].loader.dataset_length or 0
    batch = max(map(len, one.batches), default=0)
    return one.exhausted and (one.count + batch) * len(run.ranks) < size


def _earlier(log: Log, loader: Loader, known: Mapping[int, int] | None = None) -> list[Pass]:
    """The passes that trained, of this loader and of others that do the same job.

    ``known``: of how many batches some were known to have learned.
    """
    same = [one for other in log.loaders if other.job == loader.job for one in other.passes]
    learned = [one for one in same if one.learned or (known or {}).get(one.number)]
    return sorted(learned, key=lambda one: one.number)


def went_on(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """A run that goes on elsewhere in its data than where an optimizer's state was saved."""
    stream, log = job[0], run.ranks[0].log
    for begun, _ in log.resumed:
        saved = [one for one in log.saved if one.passes <= begun][-1:]
        # What was learned from the last batch shows in a pass only when it goes on.
        every = _earlier(
            log, stream.loader, {n: one for each in saved for n, one in each.learned.items()}
        )
        after = next((one for one in every if one.number >= begun), None)
        if not saved or after is None or after not in stream.passes:
            continue
        others = [one for loader in log.loaders for one in loader.passes if one.learned]
        if any(begun <= one.number < after.number for one in others):
            continue  # the rest of an epoch, read by another loader
        before = [one for one in every if one.number < saved[0].passes][-1:]
        if not before:
            continue
        (left,) = before
        steps = saved[0].steps - left.steps
        # If it was saved after another loader was read, each step is taken for a batch.
        done = saved[0].given if left.number == saved[0].passes - 1 else steps
        each = -(-done // max(steps, 1))
        told = None
        if stream.loader.iterable:
            told = _stream_again(left, after, done) if after.length == left.length else None
        elif left.length is not None and after.length == left.length:
            told = _elsewhere(log, stream.loader, (left, after), (done, each), every)
        elif left.length is not None:
            told = _wrong_part(log, (left, after), done, each)
        if told:
            yield Diagnosis(
                "SMP105",
                f"the optimizer's state was saved {told}; go on where it was saved",
                *spot(stream.loader, [after]),
                (*places(run, job), *_calls(run, log)),
            )
            return


def _elsewhere(
    log: Log,
    loader: Loader,
    passes: tuple[Pass, Pass],
    counts: tuple[int, int],
    every: Sequence[Pass],
) -> str | None:
    """Where the pass in which it was saved was left, and where else the one after it begins.

    ``counts`` are the batches that were read of it, and how many a step takes.
    """
    (left, after), (done, each), values = passes, counts, values_told(log, passes)
    told = _fetched_ahead(left, after, done, values)
    if values[0] == values[1]:
        told = told or _wrong_rest(left, after, done, each)
    if not loader.loaded:
        told = told or _misplaced(left, after, done, each, values)
        return told or _an_earlier_one(left, after, done, every)
    return told or (None if loader.chooses else _another_rest(left, after, done))


def _stream_again(left: Pass, after: Pass, done: int) -> str | None:
    """A stream again from its beginning, of which ``done`` batches were read, and more are left."""
    read = [samples for _, samples in left.contents[:done]]
    again = [samples for _, samples in after.contents[:done]]
    if left.ended or not 1 < done == len(read):
        return None
    if read != again or after.learned_from != 1 or len({*itertools.chain(*read)}) < ENOUGH:
        return None
    return (
        f"after {done} batches of a stream, but the first pass after it was loaded learns from the "
        f"same {done} again, from its beginning"
    )


def _wrong_part(log: Log, passes: tuple[Pass, Pass], done: int, each: int) -> str | None:
    """Where the rest of an epoch begins that a shorter pass reads."""
    (left, after), values = passes, values_told(log, passes)
    told = _wrong_end(log, passes, done, each)
    if _is_a_rest(log, left, after):
        if values[0] == values[1]:
            told = told or _wrong_rest(left, after, done, each)
        told = told or _another_rest(left, after, done)
    return told


def _wrong_end(log: Log, passes: tuple[Pass, Pass], done: int, each: int) -> str | None:
    """Where it begins if a loader of its own reads it, as the end of a list."""
    left = passes[0]
    whole, rest = (
        next(loader.subset for loader in log.loaders if one in loader.passes) for one in passes
    )
    size = max(map(len, left.batches), default=0)
    if not whole or not rest or len(rest) >= len(whole) or whole[-len(rest) :] != rest:
        return None
    begin, place = len(whole) - len(rest), f"after {done} of {left.length} batches of an epoch"
    if left.begins != list(range(min(FIRST, len(whole)))) or not _left(left, done):
        return None  # it is read in another order than the list's
    if begin > done * size:
        return (
            f"{place}, but the first pass after it was loaded begins at sample {begin}: "
            f"{begin - done * size} are read by no pass"
        )
    if begin < (done - each) * size:
        return (
            f"{place}, but the first pass after it was loaded begins at sample {begin}: "
            f"{done * size - begin} are learned from again"
        )
    return None


def _left(one: Pass, done: int) -> bool:
    """Whether a pass was left after ``done`` batches, or some time later, but before its end."""
    return one.yielded <= done + 1 or not one.ended


def _is_a_rest(log: Log, left: Pass, after: Pass) -> bool:
    """Whether a shorter pass is all that is left of an epoch: the next is as long as before."""
    owners = [
        next(loader for loader in log.loaders if one in loader.passes) for one in (left, after)
    ]
    later = [one for one in _earlier(log, owners[1]) if one.number > after.number][:1]
    return owners[0].subset == owners[1].subset and [one.length for one in later] == [left.length]


def _wrong_rest(left: Pass, after: Pass, done: int, each: int) -> str | None:
    """Where the rest of an epoch should begin, of which ``done`` batches were read, and where a
    pass that reads a rest begins.

    ``each`` step takes so many: those since the last one may be read again.
    """
    length, sizes = (
        left.length or 0,
        {len(batch) for one in (left, after) for batch in one.batches[:1]},
    )
    whole = left.complete and after.complete and left.one_in == 1 and len(sizes) == 1
    if not whole or not 1 <= done < length or not _left(left, done) or not after.exhausted:
        return None
    read = [index for batch in left.batches[:done] for index in batch]
    again = len(set(read) & set(after.indices))
    unread = length - done - after.drawn
    place = f"after {done} of {length} batches of an epoch"
    if left.begins == after.begins or len(set(read)) < len(read):
        return None
    if not again and unread > 0:
        return (
            f"{place}, but the first pass after it was loaded is the last {after.drawn} of them: "
            f"{unread} are read by no pass"
        )
    first = read.index(after.indices[0]) if after.indices[0] in read else len(read)
    rest = read[first:] == after.indices[: len(read) - first]
    if first < len(read) - each * max(sizes) and rest:
        return (
            f"{place}, but the first pass after it was loaded begins at sample {first} of "
            f"{len(read)} that were read: the others are learned from again"
        )
    return None


def _another_rest(left: Pass, after: Pass, done: int) -> str | None:
    """The end of another order than the one of which ``done`` batches were read."""
    length, read = left.length or 0, [index for batch in left.batches[:done] for index in batch]
    whole = left.complete and after.complete and left.one_in == 1 and after.exhausted
    if not whole or not 1 <= done < length or after.drawn != length - done:
        return None
    again = set(read) & set(after.indices)
    if not again or len(set(read)) < len(read) or len(set(after.indices)) < len(after.indices):
        return None
    return (
        f"after {done} of {length} batches of an epoch, but the first pass after it was loaded is "
        f"the rest of another order: of its {len(after.indices)} samples {len(again)} are learned "
        f"from again, and as many are read by no pass"
    )


def _an_earlier_one(left: Pass, after: Pass, done: int, every: Sequence[Pass]) -> str | None:
    """An earlier pass again, from its beginning, in the midst of a later one."""
    length = left.length or 0
    if not 1 < done < length - 1 or not _left(left, done):
        return None
    if not any(
        (one.count, one.checksum) == (after.count, after.checksum)
        for one in every
        if one.number < left.number
    ):
        return None
    return (
        f"after {done} of {length} batches of an epoch, but the first pass after it was loaded is "
        f"an earlier epoch again, from its beginning: the rest is never read"
    )


def values_told(log: Log, passes: Sequence[Pass]) -> list[Any]:
    """The epochs that the samplers of these passes had been told."""
    values = []
    for one in passes:
        owner = next(loader for loader in log.loaders if one in loader.passes)
        values.append(in_force(_calls_of(log, Stream([owner])), one))
    return values


def _fetched_ahead(left: Pass, after: Pass, done: int, values: list[Any]) -> str | None:
    """What workers had fetched when a pass was left, and the rest of it does not read."""
    ahead = left.batches[left.yielded :]
    fetched = {index for batch in ahead for index in batch}
    if done != left.yielded or not fetched or not (left.complete and after.complete):
        return None
    whole = after.exhausted and left.drawn + after.drawn == left.length
    if values[0] == values[1] and whole and not fetched & set(after.indices):
        return (
            f"after {done} batches, but the {len(ahead)} that workers had fetched by then count as "
            f"read, and are skipped"
        )
    return None


def skips_again(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """A run that leaves out in every epoch what had been read of the one in which it was saved."""
    stream, log = job[0], run.ranks[0].log
    for begun, _ in log.resumed:
        saved = [one for one in log.saved if one.passes <= begun][-1:]
        before = [one for one in stream.passes if one.learned and one.number < begun][-1:]
        if not saved or not before:
            continue
        (left,), length = before, before[0].length or 0
        done = saved[0].steps - left.steps
        # To skip, frameworks make another loader.
        data = [one for one in log.loaders if one.dataset == stream.loader.dataset]
        later = [each for one in data for each in one.passes if each.number >= begun]
        later = [one for one in later if one.learned and one.exhausted]
        if not (1 < done < length - 1 and _left(left, done) and len(later) > 1):
            continue
        if all(one.taken == length - done for one in later):
            yield Diagnosis(
                "SMP105",
                f"the optimizer's state was saved after {done} of {length} batches of an epoch, "
                f"but that many are skipped in each of the {len(later)} epochs after it was "
                f"loaded; skip them in the first alone",
                *spot(stream.loader, later),
                tuple(places(run, job)),
            )
            return


def _misplaced(left: Pass, after: Pass, done: int, each: int, values: list[Any]) -> str | None:
    """Where a pass should have gone on after ``done`` batches, and where it does.

    ``each`` step takes so many: those since the last one may be read again.
    """
    length = left.length or 0
    again = values[0] == values[1] and left.begins == after.begins
    if 1 < done < length - 1 and _left(left, done):
        if again and after.learned >= min(length, after.yielded) - 1 > done:
            return (
                f"after {done} of {length} batches of epoch {values[0]}, but the first pass after "
                f"it was loaded learns from that epoch from its beginning"
            )
        skipped = after.yielded - after.learned
        every = left.learned >= left.yielded - 1  # it learns from each batch that it does not skip
        right = done - each <= skipped <= done + 1
        if again and every and after.yielded == length and skipped and not right:
            return (
                f"after {done} of {length} batches of epoch {values[0]}, but the first pass after "
                f"it was loaded skips {skipped} of them"
            )
        if skipped and every and after.yielded == length and right and values[0] != values[1]:
            return (
                f"after {done} of {length} batches of epoch {values[0]}, but the first pass after "
                f"it was loaded skips {skipped} batches of epoch {values[1]}"
            )
        if values[1] == _next(values[0]):
            return (
                f"after {done} of {length} batches of epoch {values[0]}, but the first pass after "
                f"it was loaded is epoch {values[1]}: the rest is never read"
            )
    numbers_told = all(isinstance(one, int) for one in values)
    if done >= length and numbers_told and values[1] > values[0] + 1:
        return (
            f"at the end of epoch {values[0]}, but the first pass after it was loaded is epoch "
            f"{values[1]}: the epochs between them are skipped"
        )
    return None


def _next(value: Any) -> Any:
    return value + 1 if isinstance(value, int) else None
