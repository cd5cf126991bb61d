"""Samples that a run loses, counts twice or learns from in vain, though the ranks share well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sampler_lint.harness.invariants import observed
from sampler_lint.harness.runs import Run, Stream, relative
from sampler_lint.harness.told import Diagnosis, Evidence, percent, places, spot
from sampler_lint.properties import ENOUGH, Share, numbers, shares

#: A part of the samples as large as this is more than a tail that nobody misses.
_MUCH = 5

#: Epochs of different orders that leave out the same samples; two may do so by chance.
_EPOCHS = 3


def lost(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """Much of the samples that training leaves out, for want of a full batch."""
    loader = job[0].loader
    seen = observed(job)
    every = [found for _, _, found in shares(seen)]
    if loader.chooses or not every or every[0].expected < ENOUGH:
        return
    least = min(len(found.missing) for found in every)
    where, read = spot(loader, job[0].passes), tuple(places(run, job))
    # What is left after the last full batches of all ranks is less than one of them.
    rest = all(len(found.missing) < found.round + len(job) for found in every)
    if loader.drop_last and rest and least * _MUCH >= every[0].expected:
        yield Diagnosis(
            "SMP405",
            f"`drop_last` leaves out {percent(least, every[0].expected)} of the samples in every "
            f"epoch: a rank's share is no multiple of the batch size; make the batches smaller, "
            f"or keep the last one",
            *where,
            read,
        )
    elif loader.elsewhere and all(found.missing == every[0].missing for found in every):
        unread, size = len(every[0].missing), every[0].expected
        if unread >= max(found.round for found in every):
            yield Diagnosis(
                "SMP506",
                f"{unread} of {size} samples are read in no epoch ({numbers(every[0].missing)}): "
                f"the sampler was built over another dataset; build it over the loader's",
                *spot(loader, job[0].passes),
                tuple(places(run, job)),
            )
    elif left := _never_read(job, every):
        yield Diagnosis("SMP405", f"{left}; correct how the sampler counts", *where, read)


def _never_read(job: Sequence[Stream], every: Sequence[Share]) -> str | None:
    """Samples that a sampler of the user's reads in no epoch, whatever the order, though it reads
    as many as there are, or all but a tail of them."""
    passes = [one for one in job[0].passes if one.exhausted]
    own = any(not one["module"].startswith("torch.") for one in job[0].loader.samplers)
    same = all(found.missing == every[0].missing for found in every)
    orders = len({one.checksum for one in passes})
    if not own or not same or min(len(every), orders) < _EPOCHS:
        return None
    missing, size = every[0].missing, every[0].expected
    # All that full batches hold may have been meant to be all.
    is_rest = (size - len(missing)) % every[0].round == 0
    tail = [*range(size)][-len(missing) :]
    if 0 < len(missing) < every[0].round and missing == tail and not is_rest:
        return f"the last {len(missing)} of {size} samples are read in no epoch, whatever its order"
    if len(missing) * _MUCH >= size and all(found.total >= size for found in every):
        return (
            f"as many samples are read in an epoch as there are, but {len(missing)} of {size} in "
            f"none ({numbers(missing)}), and others several times"
        )
    return None


def dropped(run: Run, job: Sequence[Stream]) -> Iterator[Diagnosis]:
    """Gradients of the last batches that are accumulated, and used by no step."""
    for one in job[0].passes:
        unused, steps, ahead = one.dropped or (0, 0, 0)
        learned = one.learned + ahead
        used, steps = learned - unused, steps - one.steps
        each = used // steps if steps > 0 else 0
        if learned == one.yielded and 0 < unused < each and used == each * steps:
            yield Diagnosis(
                "SMP405",
                f"each step takes the gradients of {each} batches, and those of the last {unused} "
                f"of {one.yielded} are computed for nothing: no step follows; step after the last "
                f"batch, too",
                *spot(job[0].loader, [one]),
                tuple(places(run, job)),
            )
            return


def miscounted(run: Run) -> Iterator[Diagnosis]:
    """Evaluation over the ranks together that counts padding, or leaves out other samples each
    time."""
    for job in run.streams():
        loader = job[0].loader
        passes = [one for stream in job for one in stream.passes]
        if loader.iterable or loader.chooses or any(one.learned for one in passes):
            continue
        where, read = spot(loader, job[0].passes), tuple(places(run, job))
        every = [found for _, _, found in shares(observed(job))]
        padded = bool(every) and every[0].repeats > 0 and not every[0].missing
        if padded and not every[0].overlaps and (gathered := _gathered(job)):
            path, line = gathered
            yield Diagnosis(
                "SMP504",
                f"{every[0].repeats} of {every[0].expected} samples are evaluated twice, to make "
                f"the ranks equally long, and what the model makes of them is gathered twice; "
                f"leave the padding out",
                *where,
                (*read, Evidence("gathered here", relative(path, run.root), line)),
            )
            continue
        added = _counted(job)
        shuffled = loader.shuffling and len({one.checksum for one in job[0].passes}) > 1
        if added and len(job) > 1 and padded:
            if every[0].repeats < min(len(job), every[0].expected):
                path, line = added
                yield Diagnosis(
                    "SMP504",
                    f"{every[0].repeats} of {every[0].expected} samples are evaluated twice, to "
                    f"make the ranks equally long, and count twice in what is added up; leave the "
                    f"padding out",
                    *where,
                    (*read, Evidence("added up here", relative(path, run.root), line)),
                )
        elif (
            loader.drop_last
            and every
            # A sampler alone leaves out less than one for each rank, to make them equally long.
            and all(one.missing and (shuffled or len(one.missing) >= len(job)) for one in every)
            and not any(one.grad for one in job[0].passes)
        ):
            left = f"evaluation leaves out {len(every[0].missing)} of {every[0].expected} samples"
            why = ": its loader drops the last batch; leave `drop_last` out"
            if shuffled:
                why = (
                    ", others each time: it is shuffled, and its last batch is dropped; evaluate "
                    "all of them in one order"
                )
            yield Diagnosis("SMP504", left + why, *where, read)


def _counted(job: Sequence[Stream]) -> tuple[str, int] | None:
    """Where the ranks add up how many samples they have read, each all of its own.

    Or gather it, to add it up, unless they gather more than a few numbers each, too: what each
    sample gave, of which padding can still be left out.
    """
    for passes in zip(*(stream.passes for stream in job), strict=False):
        sums = [
            {
                (path, line)
                for path, line, values in (*one.reduced, *_few(one.gathered))
                if one.count in values
            }
            for one in passes
        ]
        if together := set.intersection(*sums):
            return min(together)
    return None


def _gathered(job: Sequence[Stream]) -> tuple[str, int] | None:
    """Where all ranks gather what they make of each sample, of which none is left out."""
    places = [{place for one in stream.passes for place in one.rows} for stream in job]
    return min(set.intersection(*places), default=None) if len(job) > 1 else None


def _few(gathered: list[tuple[str, int, list[float]]]) -> list[tuple[str, int, list[float]]]:
    return gathered if all(values for _, _, values in gathered) else []


def overlapping(run: Run, jobs: Sequence[Sequence[Stream]]) -> Iterator[Diagnosis]:
    """Parts of one dataset to learn from and to evaluate, which share samples."""
    learned = [stream for job in jobs for stream in job]
    told: set[tuple[str, int]] = set()
    for stream in [stream for rank in run.ranks for stream in rank.streams()]:
        loader, where = stream.loader, spot(stream.loader, stream.passes)
        if where in told or not loader.subset or any(one.learned for one in stream.passes):
            continue
        held = set(loader.subset)
        last = max(one.number for one in stream.passes)
        for other in learned:
            if other.passes[0].number > last:
                continue  # what is picked by a look at it, and then learned from
            part = set(other.loader.subset or ())
            shared = held & part
            if (
                other.loader.mark == loader.mark
                and other.loader.dataset_length == loader.dataset_length
                and shared
                and held - part
                and part - held
            ):
                told.add(where)
                yield Diagnosis(
                    "SMP506",
                    f"{len(shared)} of the {len(held)} samples that evaluate are also trained on: "
                    f"the two parts of the dataset overlap ({numbers(sorted(shared))})",
                    *where,
                    tuple(places(run, [stream])),
                )
                break
