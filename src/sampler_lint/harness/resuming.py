"""What a run shows of going on from a saved state: where it was, and where its data goes on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sampler_lint.harness.inside.passes import FIRST
from sampler_lint.harness.orders import calls_of, in_force, owner, told_calls
from sampler_lint.harness.runs import Loader, Log, Pass, Run, Stream
from sampler_lint.harness.told import Diagnosis, places, spot
from sampler_lint.properties import ENOUGH


def began_again(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """A run that goes on with an optimizer's state, but with the first epoch."""
    stream, log = job[0], run.ranks[0].log
    calls = calls_of(log, stream)
    for loads, (begun, steps) in enumerate(log.resumed, 1):
        later = [one for one in stream.passes if one.number >= begun and one.learned]
        if not later or owner(stream.loaders, later[0]).passes[0].number < begun:
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
                (*places(run, job), *told_calls(run, log)),
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
    for rank, stream in zip(run.ranks, job, strict=True):
        told = _went_on(rank.log, stream)
        if told is not None:
            where = f"on rank {rank.rank} " if rank is not run.ranks[0] else ""
            yield Diagnosis(
                "SMP105",
                f"{where}the optimizer's state was saved {told[0]}; go on where it was saved",
                *spot(stream.loader, [told[1]]),
                (*places(run, [stream]), *told_calls(run, rank.log)),
            )
            return


def _went_on(log: Log, stream: Stream) -> tuple[str, Pass] | None:
    """Where a rank's state was saved, and elsewhere which pass goes on."""
    for begun, _ in log.resumed:
        saved = [one for one in log.saved if one.passes <= begun][-1:]
        # What was learned from the last batch shows in a pass only when it goes on.
        every = _earlier(
            log, stream.loader, {n: one for each in saved for n, one in each.learned.items()}
        )
        after = next((one for one in every if one.number >= begun), None)
        if not saved or after is None or after not in stream.passes:
            continue
        if any(saved[0].passes <= one.number < begun for one in every):
            continue  # rolled back: what was read since then is not read again
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
            return told, after
    return None


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
    if not loader.loads:
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
    whole, rest = (owner(log.loaders, one).subset for one in passes)
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
    owners = [owner(log.loaders, one) for one in (left, after)]
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
        loader = owner(log.loaders, one)
        values.append(in_force(calls_of(log, Stream([loader])), one))
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


def loaded_late(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """A loader's state that is loaded when another epoch's turn has come, which loses a beginning.

    Of a loader that was read before: what a process read that saved the state is not known.
    """
    log, every = run.ranks[0].log, _earlier(run.ranks[0].log, job[0].loader)
    for loader in job[0].loaders:
        for begun in loader.loads:
            after = next((one for one in every if one.number >= begun), None)
            before = [one for one in every if one.number < begun]
            if after not in loader.passes or not any(one in loader.passes for one in before):
                continue
            skipped = (after.length or 0) - after.drawn
            whole = after.complete and after.exhausted and after.count >= ENOUGH
            if skipped < 1 or not whole or len(set(after.indices)) < after.count:
                continue
            read = [{i for batch in one.batches[:skipped] for i in batch} for one in before]
            if all(one & set(after.indices) for one in read):
                yield Diagnosis(
                    "SMP105",
                    f"the loader's state was loaded, and the pass after it begins behind {skipped} "
                    f"of {after.length} batches, which no pass has read: the state is of another "
                    f"epoch; load it before the first",
                    *spot(loader, [after]),
                    (*places(run, job), *told_calls(run, log)),
                )
                return


def _misplaced(left: Pass, after: Pass, done: int, each: int, values: list[Any]) -> str | None:
    """Where a pass should have gone on after ``done`` batches, and where it does.

    ``each`` step takes so many: those since the last one may be read again.
    """
    length = left.length or 0
    again = values[0] == values[1] and left.begins == after.begins
    if 1 < done < length - 1 and _left(left, done):
        if again and after.learned >= min(length, after.yielded) - 1 > each:
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
        whole = after.yielded == length and after.learned >= length - 1
        if values[0] == values[1] and whole and left.begins != after.begins:
            return (
                f"after {done} of {length} batches of an epoch, but the first pass after it was "
                f"loaded is all of another order: the rest is never read"
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
