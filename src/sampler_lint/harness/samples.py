"""The same sample known again by its content: on another rank, in another epoch or worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sampler_lint.harness.inside.draws import FEW
from sampler_lint.harness.runs import Log, Pass, Stream
from sampler_lint.properties import ENOUGH, Index, listed

#: Digests of the parts of a sample.
Sample = tuple[int, ...]


def hold_the_same(job: Sequence[Stream]) -> bool | None:
    """Whether an index is the same sample on all ranks; None when that was not seen.

    An augmented part differs each time it is read; a part that agrees, such as the label, tells
    that the sample is the same, and one that differs between ranks alone tells the contrary.
    """
    known = [_by_index(stream) for stream in job]
    parts = range(min((len(one) for each in known for one in each.values()), default=0))
    first = known[0]
    told: bool | None = None
    for other in known[1:]:
        shared = [index for index in first if index in other]
        if len(shared) < ENOUGH:
            continue
        steady = [
            part
            for part in parts
            if all(len(one[part]) == 1 for each in (first, other) for one in each.values())
        ]
        if not steady:
            # All of it is random, and perhaps drawn alike. Where nobody shuffles, an index may
            # mean nothing at all.
            if all(first[index] == other[index] for index in shared):
                told = True
            elif job[0].loader.shuffling is False:
                return False
            continue
        agreeing = [
            part for part in steady if all(first[i][part] == other[i][part] for i in shared)
        ]
        if not any(len({min(first[i][part]) for i in shared}) > 1 for part in agreeing):
            return False
        told = True
    return told


def _by_index(stream: Stream) -> dict[Index, list[set[int]]]:
    """For each index, what every part of its sample was, over all passes."""
    found: dict[Index, list[set[int]]] = {}
    subset = stream.loader.subset
    for one in stream.passes:
        for indices, samples in one.contents:
            for index, sample in zip(indices or (), samples, strict=False):
                if subset is not None and isinstance(index, int):
                    index = subset[index]
                known = found.setdefault(index, [set() for _ in sample])
                for values, part in zip(known, sample, strict=False):
                    values.add(part)
    return found


def _stream_of(one: Pass) -> list[Sample]:
    return [sample for _, samples in one.contents for sample in samples]


def divide_batches(job: Sequence[Stream]) -> bool:
    """Whether all ranks read the same batches, and each gives the model its own part of them.

    That may be a part of each batch, or one batch of as many as there are ranks.
    """
    firsts = [stream.passes[0] for stream in job]
    if any(one.contents != firsts[0].contents for one in firsts):
        return False
    if sorted(one.learned_from for one in firsts) == [*range(1, len(job) + 1)]:
        return all(one.learned <= one.yielded // len(job) + 1 for one in firsts)
    for one in firsts:
        most = max(one.sizes, default=0)
        parts = [sum(fed) for size, fed in zip(one.sizes, one.fed, strict=True) if size == most]
        if not parts or any(part * len(job) != most for part in parts):
            return False
    return True


def sorted_by(one: Pass) -> tuple[int, int] | None:
    """How many kinds of samples come one after the other at the beginning of a pass, and of how
    many samples, where a part of them, such as the label, tells kinds apart."""
    samples = _stream_of(one)
    for part in zip(*samples, strict=False):
        kinds = len(set(part))
        runs = 1 + sum(after != before for before, after in pairwise(part))
        if 1 < kinds == runs and kinds * ENOUGH <= len(part):
            return kinds, len(part)
    return None


def stream_faults(job: Sequence[Stream], logs: Sequence[Log]) -> Iterator[tuple[str, str]]:
    """What is wrong with the samples of an iterable dataset: the code and a sentence."""
    yield from _not_split_by_ranks(job, logs)
    yield from _not_split_by_workers(job)
    yield from _one_order(job, logs)


def _not_split_by_ranks(job: Sequence[Stream], logs: Sequence[Log]) -> Iterator[tuple[str, str]]:
    passes = [stream.passes[0] for stream in job]
    reads = [*map(_stream_of, passes)]
    for other in range(1, len(reads)):
        first, second = set(reads[0]), set(reads[other])
        fewest = min(len(first), len(second))
        length = min(len(reads[0]), len(reads[other]))
        if _one_part(passes[0], passes[other], job[0].loader.workers):
            yield (
                "SMP308",
                f"epoch 0: a worker of rank {logs[0].rank} and one of rank {logs[other].rank} read "
                f"the same samples in one order: the parts of the stream overlap; number the "
                f"workers of all ranks from `rank * num_workers + worker_id`",
            )
            return
        # Of endless streams, each rank may draw from all samples in a way of its own.
        both = first & second
        in_order = [[one for one in read if one in both] for read in (reads[0], reads[other])]
        alike = reads[0][:length] == reads[other][:length]
        if passes[0].ended and passes[other].ended:
            # Some of all samples, a rank may draw so, too; all of them, or in one order, not.
            alike = len(both) * 10 >= fewest * 9 or in_order[0] == in_order[1]
        if alike and fewest >= ENOUGH and len(both) * 2 > fewest:
            part = f"{100 * len(both) / fewest:.0f} %"
            yield (
                "SMP308",
                f"epoch 0: ranks {logs[0].rank} and {logs[other].rank} are given the same samples "
                f"({part} of the first {fewest}): nothing splits the stream among the ranks; let "
                f"each rank take its own part",
            )
            return


def random_shares(job: Sequence[Stream]) -> int:
    """How many samples two ranks read both, of which neither reads any twice.

    Some, not all: each has taken its part of them in a way of its own. What is known of a stream
    has to be all of it, for its ranks may only be at different places.
    """
    passes = [stream.passes[0] for stream in job[:2]]
    first, second = (_stream_of(one) for one in passes)
    whole = all(one.ended and len(one.contents) == one.yielded for one in passes)
    if job[0].loader.iterable and not whole:
        return 0
    both = len({*first} & {*second})
    alone = len({*first}) == len(first) and len({*second}) == len(second)
    return both if alone and ENOUGH <= both < min(len(first), len(second)) else 0


def _one_part(one: Pass, other: Pass, workers: int) -> bool:
    """Whether one worker of several reads what a worker of another rank reads, and others not."""
    parts = [_by_worker(each, workers) for each in (one, other)]
    alike = [mine in parts[1] for mine in parts[0] if len(set(mine)) >= ENOUGH]
    return any(alike) and not all(alike)


def _by_worker(one: Pass, workers: int) -> list[list[Sample]]:
    """What each worker reads; their batches come in turn."""
    batches = [samples for _, samples in one.contents]
    return [[each for batch in batches[at::workers] for each in batch] for at in range(workers)]


def _not_split_by_workers(job: Sequence[Stream]) -> Iterator[tuple[str, str]]:
    workers = job[0].loader.workers
    if workers < 2:
        return
    for stream in job:
        reads = [*map(set, _by_worker(stream.passes[0], workers)[:2])]
        fewest = min(map(len, reads))
        if fewest >= ENOUGH and len(reads[0] & reads[1]) * 10 >= fewest * 9:
            yield (
                "SMP308",
                f"epoch 0: the workers read the same samples: each of the {workers} reads the "
                f"whole stream; split it by `get_worker_info()`",
            )
            return


def _one_order(job: Sequence[Stream], logs: Sequence[Log]) -> Iterator[tuple[str, str]]:
    """Epochs that are alike, though the program, or a generator, says that they are not to be."""
    stream, log = job[0], logs[0]
    reads = [_stream_of(one) for one in stream.passes if one.contents]
    carrier = next(filter(None, (one["sampler"] for one in stream.loader.sources)), None)
    once = len(reads) == 1 and _times_over(reads[0])
    if carrier and once:
        yield (
            "SMP102",
            f"the stream gives the same samples {once} times in one order: {carrier}, which "
            f"makes it, is told no other epoch; call its `set_epoch` at the start of every round",
        )
        return
    if stream.loader.shuffles and once:
        yield (
            "SMP106",
            f"the stream gives the same samples {once} times in one order: the dataset draws its "
            f"order from one state each time; seed it with the number of the round, or let it go "
            f"on drawing",
        )
        return
    if len(reads) < 2 or len(set(reads[0])) < ENOUGH or any(one != reads[0] for one in reads):
        return
    number = stream.loader.dataset
    values = [call.value for call in log.set_epochs if call.object == number]
    alike = f"epochs {listed(range(len(reads)))} begin with the same samples in one order"
    told = len(set(map(str, values))) > 1
    if told and (stream.loader.users_dataset or stream.passes[0].random):
        why = "the dataset's epoch was set, but its order does not depend on it"
        if stream.loader.lasting:
            why = (
                "`set_epoch` changes the dataset of this process, but the workers keep the copies "
                "that they began with; set the epoch where they see it, or let no worker persist"
            )
        yield "SMP104", f"{alike}: {why}"
    elif stream.loader.shuffles and not stream.passes[0].random:
        yield (
            "SMP106",
            f"{alike}: the dataset draws its order from one state in every epoch; seed it with the "
            f"epoch, or let it go on drawing",
        )
    elif carrier:
        yield (
            "SMP102",
            f"{alike}: {carrier}, which makes the order, is told no other epoch; call its "
            f"`set_epoch` at the start of every epoch",
        )
    elif stream.passes[0].random:
        yield (
            "SMP102",
            f"{alike}: the generator with which the dataset shuffles sets out from one state; "
            f"call its `set_epoch` at the start of every epoch",
        )


def _times_over(read: Sequence[Sample]) -> int:
    """How many whole times a stream has given its samples in one order; 0 if not twice."""
    period = next((at for at in range(1, len(read)) if read[at] == read[0]), len(read))
    if period < ENOUGH or period * 2 > len(read):
        return 0
    alike = all(before == after for before, after in zip(read, read[period:], strict=False))
    return len(read) // period if alike else 0


def unheard_epochs(stream: Stream) -> str | None:
    """The attribute of a dataset that counts epochs here, while workers keep their copies."""
    if not stream.loader.lasting or not stream.passes[1:]:
        return None
    seen = [one.dataset_values for one in stream.passes]
    for name in seen[0]:
        values = [one.get(name, 0) for one in seen]
        if all(after == before + 1 for before, after in pairwise(values)):
            return name
    return None


def drawn_once(stream: Stream) -> bool:
    """Whether the dataset draws for each sample when it is first read, and no more after that."""
    drew = [one.drew for one in stream.passes if len(one.drew) >= FEW]
    if len(drew) < 2 or not all(drew[0]):
        return False
    return not any(any(later) for later in drew[1:]) or _draws_for_new_ones(stream)


def _draws_for_new_ones(stream: Stream) -> bool:
    """Whether it draws for those batches only in which a sample is new to the process."""
    read: set[Index] = set()
    known = 0
    for one in stream.passes:
        if not one.complete or one.one_in > 1 or stream.loader.workers:
            return False
        for batch, drew in zip(one.batches, one.drew, strict=False):
            if drew == read.issuperset(batch):
                return False
            known += not drew
            read.update(batch)
        read.update(one.indices)
    return known >= FEW


def alike_draws(stream: Stream, log: Log) -> str | None:
    """How the workers of a loader draw the same random numbers, if they do."""
    numbers = {loader.number for loader in stream.loaders}
    drawn = [one for one in log.draws if one["loader"] in numbers]
    for source in sorted({name for one in drawn for name in one["drawn"]}):
        of_source = [one for one in drawn if source in one["drawn"]]
        made = None in [one["drawn"][source][0] for one in of_source]
        if made and len({one["batch"] for one in of_source}) < len(of_source):
            continue  # made for the first sample, and perhaps seeded with what that is
        states = [(one["number"], one["worker"], tuple(one["drawn"][source])) for one in of_source]
        for number in sorted({one[0] for one in states}):
            inside = [state for at, _, state in states if at == number]
            if len(inside) > 1 and len(set(inside)) == 1:
                return (
                    f"all workers draw the same numbers from `{source}`: it sets out from one "
                    f"state in each"
                )
        first = [state for _, worker, state in states if worker == 0]
        if len(first) > 1 and len(set(first)) == 1:
            return (
                f"the workers draw the same numbers from `{source}` in every epoch: it sets out "
                f"from one state each time"
            )
    return None
