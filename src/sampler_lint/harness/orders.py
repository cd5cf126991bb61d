"""Orders that a run shows to be wrong: epochs that are alike, replayed, begun again, unshuffled."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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
        calls = told_calls(run, log)
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
    if alike and len(one.indices) >= ENOUGH * len(every) and not calls_of(log, stream):
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
    calls = [call for call in calls_of(log, stream) if call.direct]
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
    calls = calls_of(log, stream)
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
    calls = calls_of(log, stream)
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


def told_calls(run: Run, log: Log) -> list[Evidence]:
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
    owners = [owner(stream.loaders, epoch) for epoch in epochs]
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
    unheard = {str(call.value) for call in calls_of(log, job[0]) if call.passes > last.number}
    if not last.learned and len(unheard) > 1 and more >= last.yielded and last.count >= ENOUGH:
        yield Diagnosis(
            "SMP102",
            f"`set_epoch` is called with {len(unheard)} epochs after the last pass of the loader: "
            f"its batches are stored, and their order stays; iterate the loader in every epoch",
            *spot(job[0].loader, [last]),
            (*places(run, job), *told_calls(run, log)),
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
    elif evaluating and len({call.value for call in calls_of(log, stream) if call.direct}) > 1:
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


def owner(loaders: Sequence[Loader], one: Pass) -> Loader:
    """The loader whose pass this is."""
    return next(loader for loader in loaders if one in loader.passes)


def calls_of(log: Log, stream: Stream) -> list[SetEpoch]:
    """The calls of ``set_epoch`` on what the stream's indices come from."""
    objects = {one["object"] for loader in stream.loaders for one in loader.samplers}
    return [call for call in log.set_epochs if call.object in objects]


def _ascends(one: Pass) -> bool:
    """Whether the samples come as they lie in the dataset; at the end there may be padding."""
    known = [index for index in one.indices if isinstance(index, int)]
    breaks = [after for before, after in itertools.pairwise(known) if after <= before]
    return len(known) == len(one.indices) and breaks in ([], known[-1:])
