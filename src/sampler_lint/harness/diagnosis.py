"""What a recorded run shows to be wrong, by the linter's codes, with the evidence.

The invariants say whether a promise was broken; a verdict on a program that nobody has looked
at needs more: why it broke, and that it was not meant so. What may be meant is passed over:
loaders that do not train, samplers that repeat or choose, ranks that share a shard on purpose
(tensor parallelism), datasets that differ by rank, uneven inputs under ``Join``.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sampler_lint.harness.inside.objects import is_users
from sampler_lint.harness.invariants import (
    epochs_of,
    observed,
    repeated_orders,
    some,
    steps_taken,
    took,
    training_jobs,
    wrong_length,
)
from sampler_lint.harness.runs import Loader, Log, Pass, Run, SetEpoch, Stream, relative
from sampler_lint.harness.samples import (
    alike_draws,
    hold_the_same,
    stream_faults,
    unheard_epochs,
)
from sampler_lint.harness.teams import parted, teams
from sampler_lint.parameters import Role, role_of
from sampler_lint.properties import (
    ENOUGH,
    Observation,
    Reading,
    Share,
    equal_steps,
    listed,
    numbers,
    one_round,
    same_order,
    share,
)


class Evidence(NamedTuple):
    """What an observation rests on."""

    text: str
    """A sentence for a person."""
    path: str = ""
    """Where it was seen, relative to the run's root; empty if nowhere in a file."""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One bug that a run has shown."""

    code: str
    message: str
    """What was seen and what to do, as one sentence."""
    path: str
    line: int
    evidence: tuple[Evidence, ...]
    """Places and numbers."""
    also: tuple[str, ...] = ()
    """Other codes whose bugs look the same from outside."""


def diagnose(run: Run) -> list[Diagnosis]:
    """The bugs that the run has shown, by place and code."""
    jobs = [job for job in training_jobs(run) if _with_gradients(job)]
    found = [one for job in jobs for one in (*_orders(run, job), *_workers(run, job))]
    together = teams(run)
    for team in [range(len(run.ranks))] if together is None else together:
        part = replace(run, ranks=[run.ranks[place] for place in team])
        # Of those that nobody knows to average, each has to read all, or shares with the rest.
        size = run.ranks[0].log.world_size if together is None and run.ranks else len(team)
        for job in filter(_with_gradients, training_jobs(part)):
            found += _streamed(part, job) if learns(run) else ()
            if size > 1:
                found += _shares(part, job, size, known=together is not None)
                found += _steps(part, job) if learns(run) else ()
    for team in parted(run):
        part = replace(run, ranks=[run.ranks[place] for place in team])
        found += [one for job in training_jobs(part) for one in _reads_apart(part, job)]
    found += [one for job in jobs for one in (*_replayed(run, job), *_unshuffled(run, job))]
    found += [one for job in jobs for one in _began_again(run, job)]
    if run.stalled and not any(one.code == "SMP306" for one in found):
        found += _parted_ways(run)
    found += [one for job in run.streams() for one in _lengths(run, job)]
    return sorted(set(found), key=lambda one: (one.path, one.line, one.code))


def learns(run: Run) -> bool:
    """Whether the run computes gradients at all.

    One that does not may evaluate, where every rank may read all of the data, or more than others.
    """
    return any(
        one.learned for rank in run.ranks for loader in rank.log.loaders for one in loader.passes
    )


def _with_gradients(job: Sequence[Stream]) -> bool:
    return any(one.grad for stream in job for one in stream.passes)


# -- places


def _spot(loader: Loader, passes: Sequence[Pass]) -> tuple[str, int]:
    """Where the user meets the loader: where it was built, or else where it is read."""
    if is_users(loader.path) or not passes or not is_users(passes[0].path):
        return loader.path, loader.line
    return passes[0].path, passes[0].line


def _places(run: Run, job: Sequence[Stream]) -> list[Evidence]:
    """Where the job's loader was built and is iterated, and what it is."""
    loader, passes = job[0].loader, job[0].passes
    size = "" if loader.dataset_length is None else f" of {loader.dataset_length} samples"
    data = f"{loader.dataset_cls}{size}"
    if loader.subset is not None:
        data = f"{len(loader.subset)} samples of {loader.dataset_cls}"
    chain = " over ".join(sampler["cls"] for sampler in loader.samplers)
    reads = f", indices from {chain}" if chain else ""
    built = f"{loader.cls} built here over {data}{reads}"
    places = [Evidence(built, relative(loader.path, run.root), loader.line)]
    for path, line in dict.fromkeys((one.path, one.line) for one in passes):
        places.append(Evidence("iterated here", relative(path, run.root), line))
    return places[:5]


def _who(ranks: Sequence[int], size: int) -> str:
    if len(ranks) == size:
        return "both ranks" if size == 2 else "every rank" if size > 1 else "the one rank"
    return f"rank {listed(ranks)}" if len(ranks) == 1 else f"ranks {listed(ranks)}"


def _span(numbers: Sequence[int]) -> str:
    """``0-3`` for consecutive numbers, else a list."""
    if len(numbers) > 2 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return listed(numbers)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %"


# -- one order in several epochs


def _orders(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    loader = job[0].loader
    if loader.iterable or loader.shuffling is False:
        return
    repeats, _ = repeated_orders(job)
    for alike, ranks in repeats.items():
        rank = ranks[0]
        epochs = [epochs_of(job[rank])[number][1] for number in alike]
        log = run.ranks[rank].log
        if not _meant_random(loader, epochs) or _asked_again(log, job[rank], epochs):
            continue
        if _reread(log, job[rank]):
            continue
        cause = _cause(log, job[rank], epochs)
        message = f"epochs {_span(alike)} have one order on {_who(ranks, len(job))}: {cause.reason}"
        calls = _calls(run, log)
        begins = Evidence(f"rank {rank} begins each of them with {some(epochs[0].begins)}")
        path, line = _spot(loader, epochs)
        yield Diagnosis(
            cause.code, message, path, line, (*_places(run, job), *calls, begins), cause.also
        )


def _meant_random(loader: Loader, epochs: Sequence[Pass]) -> bool:
    """Whether equal orders are certainly neither meant nor chance."""
    first = epochs[0]
    if loader.shuffling is None:
        # A sampler that takes the epoch varies with it, unless it counts upwards anyway.
        numbers = [one for one in first.indices if isinstance(one, int)]
        if not any(sampler["set_epoch"] for sampler in loader.samplers):
            return False
        if numbers == sorted(numbers):
            return False
    inner = loader.samplers[-1]["module"].startswith("torch.") if loader.samplers else False
    return inner or first.drawn >= ENOUGH or len(epochs) > 2


def _asked_again(log: Log, stream: Stream, epochs: Sequence[Pass]) -> bool:
    """Whether the program set one epoch's number anew for each of them, and others for others.

    So it takes an epoch again, after a failure or because it wants to.
    """
    objects = {one["object"] for loader in stream.loaders for one in loader.samplers}
    calls = [call for call in log.set_epochs if call.object in objects]
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


def _reread(log: Log, stream: Stream) -> bool:
    """Whether the program reads each of its epochs several times before it sets the next.

    So do algorithms that learn from one collection of samples in several passes.
    """
    objects = {one["object"] for loader in stream.loaders for one in loader.samplers}
    calls = [call for call in log.set_epochs if call.object in objects]
    times = Counter(
        max((at for at, call in enumerate(calls) if call.passes <= one.number), default=-1)
        for _, one in epochs_of(stream)
    )
    values = {str(calls[at].value) for at in times if at >= 0}
    whole = [count for at, count in sorted(times.items())][:-1]
    return -1 not in times and len(times) > 1 < len(values) and min(whole) > 1


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
    owners = [next(one for one in stream.loaders if epoch in one.passes) for epoch in epochs]
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
    values = [_in_force(calls, epoch) for epoch in epochs]
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
    if loader.samplers and loader.samplers[-1]["module"].startswith("torch."):
        return _Cause(
            "SMP102",
            f"{inner} takes no epoch, and its generator is seeded alike before each; seed it "
            f"once, before the first",
        )
    return _Cause(
        "SMP104",
        f"{inner} has no `set_epoch` and shuffles with one seed; give it one and add the epoch "
        f"to the seed",
        ("SMP203",),
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


def _in_force(calls: Sequence[SetEpoch], epoch: Pass) -> Any:
    """The value that the last call before the epoch left; 0 is every sampler's first."""
    before = [call.value for call in calls if call.passes <= epoch.number]
    return before[-1] if before else 0


def _late(calls: Sequence[SetEpoch], epochs: Sequence[Pass]) -> bool:
    """Whether each epoch's call came only after the epoch had begun."""
    numbers = [epoch.number for epoch in epochs]
    return (
        not any(call.passes <= numbers[0] for call in calls)
        and any(numbers[0] < call.passes <= numbers[1] for call in calls)
        and len({str(call.value) for call in calls}) > 1
    )


def _replayed(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """Batches that were kept and are learned from again, after the loader's end."""
    log, last = run.ranks[0].log, job[0].passes[-1]
    every = [one for loader in log.loaders for one in loader.passes]
    if last is not max(every, key=lambda one: one.number) or not (last.ended and log.exit):
        return
    more = log.exit["backwards"] - last.backwards
    if last.learned == last.yielded and last.count >= ENOUGH and more >= last.yielded:
        yield Diagnosis(
            "SMP102",
            f"gradients were computed {more} times after the loader had ended: its batches are "
            f"kept and read again in one order; iterate the loader anew in every epoch",
            *_spot(job[0].loader, [last]),
            tuple(_places(run, job)),
        )


def _unshuffled(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """Training data in the order of the dataset, though the program counts on shuffling.

    It does so if it sets epochs, or shuffles what it evaluates.
    """
    stream, log = job[0], run.ranks[0].log
    loader = stream.loader
    whole = [one for _, one in epochs_of(stream) if one.exhausted and one.learned]
    if loader.shuffling is not False or len(whole) < 2:
        return
    if not all(map(_ascends, whole)):
        return
    objects = {one["object"] for one in loader.samplers}
    values = {str(one.value) for one in log.set_epochs if one.object in objects and one.direct}
    shuffled = [
        other
        for other in log.loaders
        if other.shuffling and other.passes and not any(one.grad for one in other.passes)
    ]
    if len(values) < 2 and not shuffled:
        return
    why = "`set_epoch` is called, but the sampler does not shuffle"
    if shuffled:
        why = "the loader that evaluates is shuffled instead"
    yield Diagnosis(
        "SMP507",
        f"every epoch reads the samples in the order of the dataset: {why}; shuffle what trains",
        *_spot(loader, whole),
        tuple(_places(run, job)),
    )


def _ascends(one: Pass) -> bool:
    """Whether the samples come as they lie in the dataset; at the end there may be padding."""
    known = [index for index in one.indices if isinstance(index, int)]
    breaks = [after for before, after in itertools.pairwise(known) if after <= before]
    return len(known) == len(one.indices) and breaks in ([], known[-1:])


def _began_again(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """A run that goes on with an optimizer's state, but with the first epoch."""
    stream, log = job[0], run.ranks[0].log
    objects = {one["object"] for loader in stream.loaders for one in loader.samplers}
    calls = [call for call in log.set_epochs if call.object in objects]
    for begun, steps in log.resumed:
        later = [one for one in stream.passes if one.number >= begun and one.learned]
        if not later or stream.passes[0].number < begun or not calls:
            continue
        value = _in_force(calls, later[0])
        before = [
            one
            for loader in log.loaders
            if loader.role == stream.loader.role
            for one in loader.passes
            if one.number < begun and one.learned
        ]
        read = any((a.count, a.checksum) == (later[0].count, later[0].checksum) for a in before)
        done = bool(later[0].length) and steps >= (later[0].length or 0)
        if (value == 0 and done) or (read and len(before) > 1):
            yield Diagnosis(
                "SMP103",
                f"the optimizer's state was loaded, yet the first pass after it has the order of "
                f"epoch {value} once more; go on with the epoch that was saved",
                *_spot(stream.loader, later),
                (*_places(run, job), *_calls(run, log)),
            )
            return


# -- what batches hold


def _streamed(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """What is wrong with the samples of iterable data."""
    loader = job[0].loader
    if loader.iterable:
        for code, text in stream_faults(job, [rank.log for rank in run.ranks]):
            yield Diagnosis(code, text, *_spot(loader, job[0].passes), tuple(_places(run, job)))


def _workers(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """Workers that draw alike, or never hear of the epoch."""
    stream = job[0]
    spot, places = _spot(stream.loader, stream.passes), tuple(_places(run, job))
    if not stream.loader.iterable and (text := alike_draws(stream, run.ranks[0].log)):
        text += "; seed it in each worker with `torch.initial_seed()`, or not at all"
        yield Diagnosis("SMP601", text, *spot, places)
    if not stream.loader.iterable and (name := unheard_epochs(stream)):
        yield Diagnosis(
            "SMP104",
            f"`{name}` of the dataset counts the epochs, but the persistent workers keep the "
            f"copies that they began with; let no worker persist, or keep it in shared memory",
            *spot,
            places,
        )


# -- shares of the ranks


def _shares(run: Run, job: Sequence[Stream], size: int, *, known: bool) -> Iterator[Diagnosis]:
    """``size`` ranks have to share out the data; ``known``: they average their gradients."""
    loaders = [stream.loader for stream in job]
    who = [rank.rank for rank in run.ranks]
    seen = observed(job)
    if len(job) < 2 or len(job) != size:
        return
    if known and (alike := _drawn_alike(seen)) and hold_the_same(job) is not False:
        path, line = _spot(loaders[0], job[0].passes)
        if any(loader.chooses for loader in loaders):
            text = (
                f"epochs {_span(alike)}: ranks {listed(who)} draw the same samples in one "
                f"order, and average the same gradients; seed the draws by the rank, or share "
                f"them out"
            )
            yield Diagnosis("SMP502", text, path, line, tuple(_places(run, job)))
    if seen.expected is None:
        return
    if not _share_out(loaders) or not (known or not any(rank.log.groups for rank in run.ranks)):
        return  # in smaller groups of ranks, some may share a shard on purpose
    if hold_the_same(job) is False:
        return  # what a rank calls sample 7 is another one's sample 57
    for number, readings in seen.epochs():
        if min(one.count for one in readings) < ENOUGH:
            continue
        if len({one.stride for one in readings}) > 1:
            return
        around = one_round(readings)
        if any(len(one.indices) - len(set(one.indices)) > around for one in readings):
            return  # it draws with replacement
        violation = _unshared(loaders, readings, share(seen, readings), who)
        if violation and (learns(run) or _sharded(loaders)):
            code, text = violation
            passes = [dict(epochs_of(stream))[number] for stream in job]
            path, line = _spot(loaders[0], passes)
            evidence = [
                Evidence(f"rank {rank} begins with {some(one.begins)}")
                for rank, one in zip(who[:4], passes, strict=False)
            ]
            yield Diagnosis(
                code, f"epoch {number}: {text}", path, line, (*_places(run, job), *evidence)
            )
            return


def _drawn_alike(seen: Observation) -> list[int]:
    """The epochs, if in all of them all ranks read the same samples in one order."""
    epochs = [one for one in seen.epochs() if min(each.count for each in one[1]) >= ENOUGH]
    alike = all(same_order(passes[0], other) for _, passes in epochs for other in passes[1:])
    return [number for number, _ in epochs] if alike else []


def _share_out(loaders: Sequence[Loader]) -> bool:
    """Whether the ranks certainly have to share out one dataset among all of them."""
    if len({loader.mark for loader in loaders}) > 1:
        return False  # each rank has data of its own
    return not any(loader.chooses for loader in loaders)


def _unshared(
    loaders: Sequence[Loader],
    readings: Sequence[Reading],
    found: Share | None,
    who: Sequence[int],
) -> tuple[str, str] | None:
    """The code and the sentence, when the ranks do not share the samples out."""
    size = len(loaders)
    if found is not None and not (found.loses or found.overlaps):
        return None
    reads = [one.indices for one in readings]
    sets = [set(read) for read in reads]
    pairs = [
        (len(sets[one] & sets[other]), one, other)
        for one in range(size)
        for other in range(one + 1, size)
    ]
    most, one, other = max(pairs, key=lambda pair: (pair[0], -pair[1], -pair[2]))
    fewest = max(1, min(len(sets[one]), len(sets[other])))
    few = most <= one_round(readings)
    if few and found is None:
        return None  # as many as padding may repeat
    if found is not None and few and most * 10 <= fewest:
        return _unread(loaders, found)
    shared = f"ranks {who[one]} and {who[other]} share {_percent(most, fewest)} of the indices"
    replicas = _shared_among(loaders[0])
    if not _sharded(loaders):
        return "SMP502", (
            f"{shared}: nothing shards this loader, so every rank reads all of the data; give it "
            f"a DistributedSampler, or let the framework prepare it"
        )
    seeds = [_value(loader, "seed") for loader in loaders]
    if len(set(seeds)) > 1 and None not in seeds:
        told = ", ".join(
            f"{seed} on rank {rank}" for rank, seed in zip(who[:4], seeds, strict=False)
        )
        return "SMP202", (
            f"{shared}: the sampler's seed is {told}, and each rank takes its shard of another "
            f"order; use one seed on all ranks"
        )
    ranks = [_value(loader, "rank") for loader in loaders]
    if len(set(ranks)) < size and None not in ranks:
        return "SMP502", (
            f"{shared}: the sampler's rank is {listed([int(rank) for rank in ranks])} there; pass "
            f"each rank its own"
        )
    if replicas is not None and replicas != size:
        return "SMP502", (
            f"{shared}: the sampler shares out among {replicas}, but there are {size} ranks"
        )
    if most == fewest and all(a == b for a, b in zip(reads[one], reads[other], strict=False)):
        return "SMP502", (
            f"{shared}, in one order: the sampler does not take the rank into account"
        )
    return "SMP202", (
        f"{shared}: each rank shuffles in its own way before it takes its shard; seed the shuffle "
        f"alike on all ranks"
    )


def _unread(loaders: Sequence[Loader], found: Share) -> tuple[str, str] | None:
    """The ranks share nothing, and yet leave samples out.

    That may be meant: limits, sub-epochs, shares cut to one length. Not when two share out, and
    no more is read than what one leaves to the other.
    """
    size = len(loaders)
    told = f"{_percent(len(found.missing), found.expected)} of the samples are read by no rank"
    sharding = _sharding(loaders)
    if len(sharding) > 1 and found.total <= found.expected / size + found.round:
        return "SMP502", f"{told}: {' and '.join(sharding)} both share them out; keep one"
    replicas = _shared_among(loaders[0])
    if replicas is not None and replicas != size:
        return "SMP502", (
            f"{told}: the sampler shares out among {replicas}, but there are {size} ranks"
        )
    return None


def _sharding(loaders: Sequence[Loader]) -> list[str]:
    """The samplers that share out, the outermost first.

    They say so by a name that is known, or keep their rank and the number of ranks under
    whatever names they like.
    """
    size = len(loaders)
    found = []
    for chain in zip(*(loader.samplers for loader in loaders), strict=False):
        values = [sampler["values"] for sampler in chain]
        of_rank = any(
            all(_number(one.get(name)) == rank for rank, one in enumerate(values))
            for name in values[0]
        )
        of_size = any(all(_number(one.get(name)) == size for one in values) for name in values[0])
        asks = all(sampler["asks"] for sampler in chain)
        if _among(chain[0]) is not None or (of_rank and of_size) or asks:
            found.append(chain[0]["cls"])
    parts = [set(loader.subset or ()) for loader in loaders]
    if all(parts) and sum(map(len, parts)) == len(set().union(*parts)) and size > 1:
        found.append("Subset")
    return found


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _among(sampler: dict[str, Any]) -> int | None:
    """Among how many a sampler says it shares out."""
    sizes = (
        _number(value)
        for name, value in sampler["values"].items()
        if role_of(name) is Role.WORLD_SIZE
    )
    return next(filter(None, sizes), None)


def _sharded(loaders: Sequence[Loader]) -> bool:
    """Whether a sampler may share the samples out: torch's own say so, another may."""
    return bool(_sharding(loaders)) or any(
        not sampler["module"].startswith("torch.") for sampler in loaders[0].samplers
    )


def _shared_among(loader: Loader) -> int | None:
    return next(filter(None, map(_among, loader.samplers)), None)


def _value(loader: Loader, name: str) -> Any:
    for sampler in loader.samplers:
        if name in sampler["values"]:
            return sampler["values"][name]
    return None


def _reads_apart(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """Ranks that hold parts of one model, and are given different samples."""
    loaders = [stream.loader for stream in job]
    if len({loader.mark for loader in loaders}) > 1 or any(one.iterable for one in loaders):
        return
    for number, passes in observed(job).epochs():
        apart = [one for one in passes[1:] if not same_order(passes[0], one)]
        if apart and min(one.count for one in passes) >= ENOUGH:
            other = run.ranks[passes.index(apart[0])].rank
            path, line = _spot(loaders[0], job[0].passes)
            yield Diagnosis(
                "SMP502" if _sharded(loaders) else "SMP202",
                f"epoch {number}: ranks {run.ranks[0].rank} and {other} hold parts of one model "
                f"and are given different samples, so that each part learns of others; give all "
                f"ranks that share a model the same ones",
                path,
                line,
                (
                    *_places(run, job),
                    *(
                        Evidence(f"rank {rank.rank} begins with {some(one.indices)}")
                        for rank, one in zip(run.ranks, passes, strict=False)
                    ),
                ),
            )
            return


# -- steps


def _steps(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """A rank whose loader has ended, while another took more steps of the same epoch."""
    if any(rank.log.joins for rank in run.ranks):
        return
    if violation := equal_steps(steps_taken(job, finished=run.stalled)):
        loader = job[0].loader
        waits = [Evidence(str(rank)) for rank in run.ranks if rank.outcome in ("hung", "stopped")]
        path, line = _spot(loader, job[0].passes)
        yield Diagnosis(
            "SMP306",
            f"epoch {violation.epoch}: {took(violation.numbers)} steps: the ranks that took more "
            f"wait for ever in the next collective, or pair with another epoch's; give every rank "
            f"as many batches",
            path,
            line,
            (*_places(run, job), *waits),
        )


def _parted_ways(run: Run) -> Iterator[Diagnosis]:
    """Ranks that wait for each other at different places, after as many batches."""
    waits = [(rank, rank.place) for rank in run.ranks if rank.outcome != "finished"]
    if len({place for _, place in waits}) < 2 or len(waits) < len(run.ranks):
        return
    last = []
    for rank in run.ranks:
        used = [loader for loader in rank.log.loaders if loader.passes]
        last += [max(used, key=lambda loader: loader.passes[-1].number)] if used else []
    loader = next((one for one in last if not one.passes[-1].ended), None)
    if loader is not None:
        places = listed([f"{place} (rank {rank.rank})" for rank, place in waits[:4]])
        yield Diagnosis(
            "SMP306",
            f"the ranks wait for each other at {places}: one leaves the loop over this loader "
            f"early, or reads it alone; let all ranks take the same steps",
            *_spot(loader, loader.passes),
            tuple(Evidence(str(rank)) for rank in run.ranks),
        )


# -- lengths


def _resumed(stream: Stream) -> bool:
    """Whether the first pass is the rest of an epoch, of which the length knows nothing."""
    first, *later = stream.passes
    whole = [one.drawn for one in later if one.exhausted and one.drawn == one.length]
    return stream.loader.loaded or (bool(whole) and first.drawn < min(whole))


def _lengths(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    for rank, stream in enumerate(job):
        if stream.loader.iterable:
            return
        for number, one in enumerate(stream.passes):
            violation = None if one.length_error else wrong_length(stream, one)
            if number == 0 and one.exhausted and _resumed(stream):
                continue
            if violation:
                path, line = _spot(stream.loader, stream.passes)
                yield Diagnosis(
                    "SMP304",
                    f"pass {number} on rank {rank}: {violation}; progress, schedules and resuming "
                    f"count on it",
                    path,
                    line,
                    tuple(_places(run, job)),
                )
                return
