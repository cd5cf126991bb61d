"""What a recorded run shows to be wrong, by the linter's codes, with the evidence.

The invariants say whether a promise was broken; a verdict on a program that nobody has looked
at needs more: why it broke, and that it was not meant so. What may be meant is passed over:
loaders that do not train, samplers that repeat or choose, ranks that share a shard on purpose
(tensor parallelism), datasets that differ by rank, uneven inputs under ``Join``.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from sampler_lint.harness.invariants import (
    epochs_of,
    observed,
    side_by_side,
    some,
    steps_taken,
    took,
    training_jobs,
    wrong_length,
)
from sampler_lint.harness.losses import dropped, lost, miscounted, overlapping
from sampler_lint.harness.orders import orders, replayed, rewound, twice_at_once, unshuffled
from sampler_lint.harness.resuming import (
    began_again,
    loaded_late,
    skips_again,
    values_told,
    went_on,
)
from sampler_lint.harness.runs import Loader, Pass, RankRun, Run, Stream, relative
from sampler_lint.harness.samples import (
    alike_draws,
    divide_batches,
    drawn_once,
    hold_the_same,
    random_shares,
    stream_faults,
    unheard_epochs,
)
from sampler_lint.harness.teams import apart, exchange, parted, teams
from sampler_lint.harness.told import Diagnosis, Evidence, percent, places, span, spot
from sampler_lint.parameters import Role, role_of
from sampler_lint.properties import (
    ENOUGH,
    Observation,
    Reading,
    Share,
    equal_steps,
    listed,
    one_round,
    same_order,
    share,
)

#: So many inputs may be alike by chance, or in a warm-up.
FEW_INPUTS = 2


def diagnose(run: Run) -> list[Diagnosis]:
    """The bugs that the run has shown, by place and code."""
    jobs = [job for job in training_jobs(run) if _with_gradients(job)]
    found = [one for job in jobs for one in (*orders(run, job), *_workers(run, job))]
    together = teams(run)
    for team in [range(len(run.ranks))] if together is None else together:
        part = replace(run, ranks=[run.ranks[place] for place in team])
        # Of those that nobody knows to average, each has to read all, or shares with the rest.
        size = run.ranks[0].log.world_size if together is None and run.ranks else len(team)
        divides = False
        for job in filter(_with_gradients, training_jobs(part)):
            every = size > 1 and len(job) == size
            parted_batches = every and divide_batches(job)
            divides |= parted_batches
            divided = parted_batches or (
                every and exchange(part) and bool(_drawn_alike(observed(job)))
            )
            found += _streamed(part, job) if learns(run) and not divided else ()
            found += lost(part, job) if learns(run) and len(job) == size and not divided else ()
            if size > 1:
                known = together is not None
                found += _shares(part, job, size, known=known) if not divided else ()
                found += _steps(part, job) if learns(run) else ()
        # Where each rank learns from all that it reads, that says whether they are.
        told = all(learns(replace(part, ranks=[one])) for one in part.ranks) and not divides
        found += _given_alike(part) if together is not None and not told else ()
    for team in parted(run):
        part = replace(run, ranks=[run.ranks[place] for place in team])
        found += [one for job in training_jobs(part) for one in _reads_apart(part, job)]
    found += [one for job in jobs for one in (*replayed(run, job), *rewound(run, job))]
    found += [one for job in jobs for one in unshuffled(run, job)]
    found += [one for job in jobs for one in (*began_again(run, job), *dropped(run, job))]
    if not any(one.code == "SMP103" for one in found):
        found += [one for job in jobs for one in (*went_on(run, job), *skips_again(run, job))]
    if not any(one.code == "SMP105" for one in found):
        found += [one for job in jobs for one in loaded_late(run, job)]
    if learns(run):
        found += [*miscounted(run), *overlapping(run, jobs), *twice_at_once(run)]
    if run.stalled and not any(one.code == "SMP306" for one in found):
        found += _parted_ways(run)
    found += [one for job in run.streams() for one in _lengths(run, job)]
    # Of loaders that one line makes in turn, what is said alike is said once, of the first.
    said = {(one.path, one.line, one.code, one.message): one for one in reversed(found)}
    return sorted(said.values(), key=lambda one: (one.path, one.line, one.code))


def learns(run: Run) -> bool:
    """Whether the run computes gradients at all.

    One that does not may evaluate, where every rank may read all of the data, or more than others.
    """
    return any(
        one.learned for rank in run.ranks for loader in rank.log.loaders for one in loader.passes
    )


def _with_gradients(job: Sequence[Stream]) -> bool:
    return any(one.grad for stream in job for one in stream.passes)


# -- what batches hold


def _streamed(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """What is wrong with the samples of iterable data."""
    loader = job[0].loader
    if loader.iterable:
        told = [*stream_faults(job, [rank.log for rank in run.ranks])]
        if len(job) > 1 and not any(code == "SMP308" for code, _ in told):
            told += _shared_stream(run, job)
        for code, text in told:
            yield Diagnosis(code, text, *spot(loader, job[0].passes), tuple(places(run, job)))


def _shared_stream(run: Run, job: Sequence[Stream]) -> Iterator[tuple[str, str]]:
    """What is wrong with how the ranks share a stream out."""
    loaders = [stream.loader for stream in job]
    sharing, size = _sharding(loaders), len(job)
    if len(sharing) > 1:
        yield (
            "SMP502",
            f"{' and '.join(sharing)} both share the stream out over the {size} ranks, so that "
            f"most of it is read by none; keep one",
        )
    elif sharing and (reader := _reads_for_all(run, job)) is not None:
        yield (
            "SMP502",
            f"rank {reader} alone reads the stream, for all {size}, but {sharing[0]} gives it the "
            f"share of one: most of it is read by none; let it give all, or each rank read its own",
        )
    elif sharing:
        among = next(filter(None, map(_among, loaders[0].sources)), size)
        if among > size and among != size * loaders[0].workers:
            yield "SMP502", f"the stream is shared out over {among} ranks, but there are {size}"
        elif overlap := random_shares(job):
            yield (
                "SMP202",
                f"epoch 0: ranks {run.ranks[0].rank} and {run.ranks[1].rank} read {overlap} "
                f"samples both, and others not at all: each takes its part of an order of its "
                f"own; shuffle with one seed on all ranks, and then take the parts",
            )


def _reads_for_all(run: Run, job: Sequence[Stream]) -> int | None:
    """The one rank that reads a loader, which all of them have begun."""
    read = [any(one.yielded for one in stream.passes) for stream in job]
    return run.ranks[read.index(True)].rank if sum(read) == 1 and len(job) > 1 else None


def _workers(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """Workers that draw alike, or never hear of the epoch."""
    stream = job[0]
    where, read = spot(stream.loader, stream.passes), tuple(places(run, job))
    if not stream.loader.iterable and (text := alike_draws(stream, run.ranks[0].log)):
        text += "; seed it in each worker with `torch.initial_seed()`, or not at all"
        yield Diagnosis("SMP601", text, *where, read)
    if not stream.loader.iterable and drawn_once(stream):
        yield Diagnosis(
            "SMP106",
            "the samples are drawn at random in the first epoch, and without a random number in "
            "each later one: they are kept with what was drawn; keep them as they are before it",
            *where,
            read,
            ("SMP601", "SMP602"),
        )
    if not stream.loader.iterable and (name := unheard_epochs(stream)):
        yield Diagnosis(
            "SMP104",
            f"`{name}` of the dataset counts the epochs, but the persistent workers keep the "
            f"copies that they began with; let no worker persist, or keep it in shared memory",
            *where,
            read,
        )


def _given_alike(run: Run) -> Iterator[Diagnosis]:
    """Ranks that average gradients, and compute them of the same inputs, whatever they read."""
    logs = [rank.log for rank in run.ranks]
    if len(logs) < 2:
        return
    given = [{one.number: one.digest for one in log.inputs} for log in logs]
    shared = set.intersection(*map(set, given))
    alike = all(one[number] == given[0][number] for one in given for number in shared)
    # A model may be given the same inputs in every step, whatever they are.
    if alike and len({given[0][number] for number in shared}) > FEW_INPUTS:
        first = logs[0].inputs[0]
        yield Diagnosis(
            "SMP502",
            f"ranks {listed([rank.rank for rank in run.ranks])} give the model the same inputs in "
            f"each step, and average the same gradients; seed what they are drawn with by the "
            f"rank, or share them out",
            first.path,
            first.line,
            (Evidence("the model is called here", relative(first.path, run.root), first.line),),
        )


# -- shares of the ranks


def _shares(run: Run, job: Sequence[Stream], size: int, *, known: bool) -> Iterator[Diagnosis]:
    """``size`` ranks have to share out the data; ``known``: they average their gradients."""
    if len(job) != size:
        return
    if known:
        run, job = _one_of_each(run, job)
    loaders = [stream.loader for stream in job]
    who = [rank.rank for rank in run.ranks]
    seen = observed(job)
    if len(job) < 2:
        return
    if (
        known
        and not (_sharded(loaders) and any(loader.repeats for loader in loaders))
        and (alike := _drawn_alike(seen))
        and (any(loader.chooses for loader in loaders) or _draws_again(seen))
        and hold_the_same(job)
    ):
        path, line = spot(loaders[0], job[0].passes)
        text = (
            f"epochs {span(alike)}: ranks {listed(who)} draw the same samples in one "
            f"order, and average the same gradients; seed the draws by the rank, or share "
            f"them out"
        )
        yield Diagnosis("SMP502", text, path, line, tuple(places(run, job)))
        return
    if known and (overlap := _overlapping_parts(loaders)):
        yield Diagnosis(
            "SMP202", overlap, *spot(loaders[0], job[0].passes), tuple(places(run, job))
        )
        return
    if seen.expected is None:
        return
    if any(loader.chooses for loader in loaders):
        return
    if len({loader.mark for loader in loaders}) > 1 or hold_the_same(job) is False:
        # Each rank has data of its own: what it calls sample 7 is another one's sample 57.
        if known and _sharding(loaders) and (both := random_shares(job)):
            yield Diagnosis(
                "SMP202",
                f"epoch 0: ranks {who[0]} and {who[1]} read {both} samples both, under other "
                f"indices, of those that were looked at: each rank has its dataset in an order of "
                f"its own; draw that with one seed on all ranks",
                *spot(loaders[0], job[0].passes),
                tuple(places(run, job)),
            )
        return
    if not known and any(rank.log.groups for rank in run.ranks):
        return  # in smaller groups of ranks, some may share a shard on purpose
    epochs = seen.epochs()
    if _sharding(loaders):
        each = len(seen.expected) // size
        epochs = [(number, _first_shares(readings, each)) for number, readings in epochs]
    if any(_draws_twice(seen, readings) for _, readings in epochs):
        return
    every = side_by_side(job)
    for place, (number, readings) in enumerate(epochs):
        if not _of_one_epoch(run, [[epochs[0][1], epochs[place][1]] for epochs in every]):
            return  # a rank has left one early, and is ahead of the others
        if min(one.count for one in readings) < ENOUGH:
            continue
        if len({one.one_in for one in readings}) > 1:
            return
        violation = _unshared(loaders, readings, share(seen, readings), who)
        if violation and (learns(run) or _sharded(loaders)):
            code, text = violation
            passes = [epochs[place][1] for epochs in every]
            path, line = spot(loaders[0], passes)
            evidence = [
                Evidence(f"rank {rank} begins with {some(one.begins)}")
                for rank, one in zip(who[:4], passes, strict=False)
            ]
            yield Diagnosis(
                code, f"epoch {number}: {text}", path, line, (*places(run, job), *evidence)
            )
            return


def _of_one_epoch(run: Run, pairs: Sequence[Sequence[Pass]]) -> bool:
    """Whether the ranks set one epoch for their later passes, as they did for the first."""
    told = [values_told(rank.log, two) for rank, two in zip(run.ranks, pairs, strict=True)]
    first, now = ({str(values[at]) for values in told} for at in (0, 1))
    return len(now) == 1 or len(first) > 1


def _one_of_each(run: Run, job: Sequence[Stream]) -> tuple[Run, Sequence[Stream]]:
    """One of the ranks that read alike, where as many do something else together.

    So do those that divide each sample among them (context parallelism).
    """
    first = [[one for _, one in epochs_of(stream)[:1]] for stream in job]
    seen = [(one[0].count, one[0].checksum) if one else None for one in first]
    times = set(Counter(seen).values())
    if None in seen or len(times) > 1 or not times <= apart(run):
        return run, job
    some_of = [seen.index(order) for order in dict.fromkeys(seen)]
    return replace(run, ranks=[run.ranks[i] for i in some_of]), [job[i] for i in some_of]


def _drawn_alike(seen: Observation) -> list[int]:
    """The epochs, if in all of them all ranks read the same samples in one order."""
    epochs = [one for one in seen.epochs() if min(each.count for each in one[1]) >= ENOUGH]
    alike = all(same_order(passes[0], other) for _, passes in epochs for other in passes[1:])
    return [number for number, _ in epochs] if alike else []


def _draws_again(seen: Observation) -> bool:
    """Whether a rank alone repeats more samples than padding could: it draws with replacement."""
    return any(
        len(one.indices) - len(set(one.indices)) > one_round([one])
        for _, passes in seen.epochs()
        for one in passes
    )


def _overlapping_parts(loaders: Sequence[Loader]) -> str | None:
    """How the parts of the ranks overlap, which together are as large as the dataset."""
    parts, length = [set(loader.subset or ()) for loader in loaders], loaders[0].dataset_length
    alike = len({(loader.mark, loader.dataset_length) for loader in loaders}) == 1
    every, total = set().union(*parts), sum(map(len, parts))
    if not alike or length is None or not 0 <= length - total < len(loaders):
        return None
    if not all(parts) or total - len(every) < ENOUGH or any(one == parts[0] for one in parts[1:]):
        return None
    return (
        f"the parts of the ranks are as large as the dataset, but {total - len(every)} of {length} "
        f"samples are in several and {length - len(every)} in none: each rank takes its part of an "
        f"order of its own; use the same seed on all ranks"
    )


def _first_shares(readings: list[Reading], each: int) -> list[Reading]:
    """What the ranks read of the first epoch, of a pass that goes on into others."""
    if any(one.ended or one.one_in > 1 or one.count <= each for one in readings):
        return readings
    cut = []
    for one in readings:
        steps = sum(read <= each for read in accumulate(map(len, one.items)))
        cut.append(replace(one, items=one.items[:steps], taken=None, count_of=None, checksum=None))
    return cut


def _draws_twice(seen: Observation, readings: Sequence[Reading]) -> bool:
    """Whether the sampler draws with replacement: a rank repeats samples of its own."""
    padded = sum(one.count for one in readings) > len(seen.expected or ())
    return any(_repeats(one, padded) for one in readings)


def _repeats(one: Reading, padded: bool) -> bool:
    """Whether a rank repeats more than padding does, which needs more samples than there are, or
    stands at the end."""
    last = one_round([one])
    known = one.indices if padded else one.indices[: -last or None]
    return len(known) - len(set(known)) > (last if padded else 0)


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
        return _unread(loaders, found, who)
    shared = f"ranks {who[one]} and {who[other]} share {percent(most, fewest)} of the indices"
    replicas = _shared_among(loaders[0])
    if not _sharded(loaders) and replicas != 1:
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
        return "SMP502", (f"{shared}: {_other_size(replicas, who)}")
    if most == fewest and all(a == b for a, b in zip(reads[one], reads[other], strict=False)):
        return "SMP502", (
            f"{shared}, in one order: the sampler does not take the rank into account"
        )
    return "SMP202", (
        f"{shared}: each rank shuffles differently before it takes its shard; use the same "
        f"seed on all ranks"
    )


def _unread(loaders: Sequence[Loader], found: Share, who: Sequence[int]) -> tuple[str, str] | None:
    """The ranks share nothing, and yet leave samples out.

    That may be meant: limits, sub-epochs, shares cut to one length. Not when two share out, and
    no more is read than what one leaves to the other.
    """
    size = len(loaders)
    told = f"{percent(len(found.missing), found.expected)} of the samples are read by no rank"
    if max(who) >= size:  # there are others, which train another model, or another part of it
        told += f" of {listed(who)}, which average their gradients"
    sharding = _sharding(loaders)
    if len(sharding) > 1 and found.total <= found.expected / size + found.round:
        return "SMP502", f"{told}: {' and '.join(sharding)} both share them out; keep one"
    replicas = _shared_among(loaders[0])
    if replicas is not None and replicas != size:
        return "SMP502", f"{told}: {_other_size(replicas, who)}"
    return None


def _other_size(replicas: int, who: Sequence[int]) -> str:
    size = len(who)
    those = "there" if max(who) < size else "those"
    return f"the sampler shards over {replicas}, but {those} are {size} ranks"


def _sharding(loaders: Sequence[Loader]) -> list[str]:
    """The samplers that share out, the outermost first.

    They say so by a name that is known, or keep their rank and the number of ranks under
    whatever names they like.
    """
    size = len(loaders)
    found = []
    for chain in zip(*(loader.samplers or loader.sources for loader in loaders), strict=False):
        values = [sampler["values"] for sampler in chain]
        of_rank = any(
            all(_number(one.get(name)) == rank for rank, one in enumerate(values))
            for name in values[0]
        )
        of_size = any(all(_number(one.get(name)) == size for one in values) for name in values[0])
        asks = all(sampler["asks"] for sampler in chain)
        if (_among(chain[0]) or 1) > 1 or (of_rank and of_size) or asks:
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
        others = [one for one in passes[1:] if not same_order(passes[0], one)]
        if others and min(one.count for one in passes) >= ENOUGH:
            other = run.ranks[passes.index(others[0])].rank
            path, line = spot(loaders[0], job[0].passes)
            yield Diagnosis(
                "SMP502" if _sharded(loaders) else "SMP202",
                f"epoch {number}: ranks {run.ranks[0].rank} and {other} hold parts of one model "
                f"and are given different samples, so that each part learns of others; give all "
                f"ranks that share a model the same ones",
                path,
                line,
                (
                    *places(run, job),
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
        path, line = spot(loader, job[0].passes)
        yield Diagnosis(
            "SMP306",
            f"epoch {violation.epoch}: {took(violation.numbers)} steps: the ranks that took more "
            f"wait for ever in the next collective, or pair with another epoch's; give every rank "
            f"as many batches",
            path,
            line,
            (*places(run, job), *waits),
        )


def _parted_ways(run: Run) -> Iterator[Diagnosis]:
    """Ranks that wait for each other at different places, or for one that has come to its end."""
    done = [rank for rank in run.ranks if rank.outcome == "finished"]
    waits = [(rank, "its end" if rank in done else f"{rank.place}") for rank in run.ranks]
    if len({place for _, place in waits}) < 2 or any(one.log.full is not None for one in run.ranks):
        return
    read = {
        rank.rank: sum(one.yielded for loader in rank.log.loaders for one in loader.passes)
        for rank in run.ranks
    }
    fewest = min(count for number, count in read.items() if number not in {r.rank for r in done})
    learned = {rank.rank: (rank.log.exit or {}).get("backwards", 0) for rank in run.ranks}
    least = min(count for number, count in learned.items() if number not in {r.rank for r in done})
    even = any(read[one.rank] >= fewest and learned[one.rank] >= least for one in done)
    if even and not all(_waits_among_passes(rank) for rank in run.ranks if rank not in done):
        return  # it was not the loop that it left early
    last = []
    for rank in run.ranks:
        used = [loader for loader in rank.log.loaders if loader.passes]
        last += [max(used, key=lambda loader: loader.passes[-1].number)] if used else []
    loader = next((one for one in last if even or not one.passes[-1].ended), None)
    if loader is not None:
        waiting = listed([f"{place} (rank {rank.rank})" for rank, place in waits[:4]])
        said = f"the ranks wait for each other at {waiting}"
        if done:
            said = f"a rank ends while others wait for it: they are at {waiting}"
        yield Diagnosis(
            "SMP306",
            f"{said}: one leaves the loop over this loader early, or reads it alone; let all ranks "
            f"take the same steps",
            *spot(loader, loader.passes),
            tuple(Evidence(str(rank)) for rank in run.ranks),
        )


def _waits_among_passes(rank: RankRun) -> bool:
    """Whether a rank waits inside a loop in which a loader is iterated, too, as in each epoch."""
    passes = {(one.path, one.line) for loader in rank.log.loaders for one in loader.passes}
    return any(
        loop.lineno < line <= (loop.end_lineno or 0)
        and any(loop.lineno < begun <= (loop.end_lineno or 0) for at, begun in passes if at == path)
        for path, line in rank.within
        for loop in _loops(path)
    )


def _loops(path: str) -> list[ast.For | ast.While]:
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    return [one for one in ast.walk(tree) if isinstance(one, (ast.For, ast.While))]


# -- lengths


def _resumed(stream: Stream, number: int) -> bool:
    """Whether a pass is the rest of an epoch, of which the length knows nothing."""
    passes = stream.passes
    loads = [begun for loader in stream.loaders for begun in loader.loads]
    rests = [next((one for one in passes if one.number >= begun), None) for begun in loads]
    whole = [one.drawn for one in passes[1:] if one.exhausted and one.drawn == one.length]
    first = bool(loads or whole) and passes[0].drawn < min(whole, default=math.inf)
    return passes[number] in rests or (number == 0 and first)


def _lengths(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    for rank, stream in enumerate(job):
        if stream.loader.iterable:
            return
        for number, one in enumerate(stream.passes):
            violation = None if one.length_error else wrong_length(stream, one)
            if violation and not (one.exhausted and _resumed(stream, number)):
                path, line = spot(stream.loader, stream.passes)
                yield Diagnosis(
                    "SMP304",
                    f"pass {number} on rank {rank}: {violation}; progress, schedules and resuming "
                    f"count on it",
                    path,
                    line,
                    tuple(places(run, job)),
                )
                return
