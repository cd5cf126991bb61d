"""The judgements over what a run left: does the program keep this promise?

Nothing recorded proves nothing: without evidence no invariant holds, and none is broken either
(:attr:`Verdict.conclusive`). Only what was seen counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sampler_lint import properties
from sampler_lint.harness.inside import sampling
from sampler_lint.harness.runs import Pass, Run, Stream
from sampler_lint.properties import Index, Observation, Rank, Reading, listed, share, shares

#: Whether something was seen to hold, and what says so.
Told = tuple[bool, str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an invariant holds, and what was seen that says so."""

    holds: bool
    evidence: str
    """A sentence for a person, with places and numbers."""
    conclusive: bool = True
    """False when the runs say neither that it holds nor that it is broken."""

    @property
    def broken(self) -> bool:
        """Whether the invariant was seen to break."""
        return self.conclusive and not self.holds


@dataclass(frozen=True, slots=True)
class Invariant:
    """A promise, the runs it takes to see it kept or broken, and the judge."""

    name: str
    promise: str
    """What holds, as a sentence without full stop."""
    judge: Callable[[Sequence[Run]], Verdict]
    """Judges one run for each of :attr:`runs`, in that order."""
    runs: tuple[tuple[str, ...], ...] = ((),)
    """Arguments added to the program's own, one run each."""


class UnknownInvariantError(ValueError):
    """No invariant has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown invariant {name!r}; known are {', '.join(sorted(INVARIANTS))}")


def get(name: str) -> Invariant:
    """The invariant called ``name``.

    Raises:
        UnknownInvariantError: there is none.
    """
    try:
        return INVARIANTS[name]
    except KeyError:
        raise UnknownInvariantError(name) from None


# -- verdicts


def _unseen(reason: str) -> Verdict:
    return Verdict(False, f"no evidence: {reason}", conclusive=False)


def _verdict(runs: Sequence[Run], told: Iterable[Told], nothing: str) -> Verdict:
    """Broken if anything was seen to break; kept only by programs that ran to their end."""
    evidence: dict[bool, list[str]] = {True: [], False: []}
    for holds, text in told:
        evidence[holds].append(text)
    if evidence[False]:
        return Verdict(False, "; ".join(evidence[False]))
    for run in runs:
        if not run.finished:
            return _unseen(run.trouble)
    if not evidence[True] or not all(run.recorded for run in runs):
        return _unseen(nothing)
    return Verdict(True, "; ".join(evidence[True]))


def _each(
    jobs: Callable[[Run], list[list[Stream]]],
    judge: Callable[[list[Stream]], Iterator[Told]],
    nothing: str,
) -> Callable[[Sequence[Run]], Verdict]:
    """The judge of a run that judges each of its ``jobs``."""

    def judged(runs: Sequence[Run]) -> Verdict:
        (run,) = runs
        told = (
            (holds, f"{run.place(job[0].loader)}: {text}")
            for job in jobs(run)
            for holds, text in judge(job)
        )
        return _verdict(runs, told, nothing)

    return judged


# -- which loader, which passes


def training_jobs(run: Run) -> list[list[Stream]]:
    """The jobs that feed training; all when none is seen to."""
    streams = run.streams()
    for judge in (_learned, _graded):
        learning = [job for job in streams if any(judge(one) for one in job[0].passes)]
        if learning:
            return learning
    return streams


def _learned(one: Pass) -> bool:
    return one.learned > 0


def _graded(one: Pass) -> bool:
    return one.grad


def shuffling_jobs(run: Run) -> list[list[Stream]]:
    """The training jobs whose order is meant to be random, or may be when nothing says so."""
    jobs = _indexed_jobs(run)
    certain = [job for job in jobs if job[0].loader.shuffling]
    return certain or [job for job in jobs if job[0].loader.shuffling is None]


def _indexed_jobs(run: Run) -> list[list[Stream]]:
    """The training jobs over map-style datasets."""
    return [job for job in training_jobs(run) if not job[0].loader.iterable]


def epochs_of(stream: Stream) -> list[tuple[int, Pass]]:
    """Its training passes with their numbers; no peek at a first batch, no evaluation.

    Passes that ended count; of a program that always leaves early, those that got far.
    """
    learning = _learning(stream)
    ended = [one for one in learning if one.exhausted and one.count]
    if len(ended) >= 2 or (ended and len(learning) == 1):
        return list(enumerate(ended))
    far = max((one.count for one in learning), default=0)
    return list(enumerate(one for one in learning if one.count * 2 > far))


def _learning(stream: Stream) -> list[Pass]:
    """Its passes that train; those that may when none is seen to."""
    passes = stream.passes
    return [*filter(_learned, passes)] or [*filter(_graded, passes)] or passes


def side_by_side(job: Sequence[Stream]) -> list[list[tuple[int, Pass]]]:
    """The epochs of each rank, without those that another left early.

    A pass that was left after its first batch may have been a look at it, which a rank alone can
    take; it counts where all ranks have begun as many.
    """
    every = []
    begun = [[one for one in stream.passes if one.drawn] for stream in job]
    even = len({*map(len, begun)}) == 1
    for stream, passes in zip(job, begun, strict=True):
        counted = passes if even else _learning(stream)
        at = {one.number: place for place, one in enumerate(counted)}
        every.append(
            {at[one.number]: (number, one) for number, one in epochs_of(stream) if one.number in at}
        )
    common = set.intersection(*map(set, every)) if every else set()
    return [[epochs[place] for place in sorted(common)] for epochs in every]


def some(indices: Sequence[Index]) -> str:
    """The first few of the indices."""
    return ", ".join(map(str, indices[:3]))


# -- what the properties judge


def observed(job: Sequence[Stream], *, each: bool = False) -> Observation:
    """The epochs of a job, as the properties judge them; ``each``: every rank for itself."""
    epochs = [*map(epochs_of, job)] if each else side_by_side(job)
    loader = job[0].loader
    # A sampler of the user's may have another name for it.
    unknown = any(
        not one["module"].startswith("torch.") and "drop_last" not in one["values"]
        for one in loader.samplers
    )
    return Observation(
        [
            Rank(number, passes=[_reading(stream, *one) for one in ones])
            for number, (stream, ones) in enumerate(zip(job, epochs, strict=True))
        ],
        expected=expected_samples(job),
        groups=None,
        drop_last=bool(loader.drop_last) or (None if unknown else False),
        is_kept=sampling.is_kept,
    )


def _reading(stream: Stream, number: int, one: Pass) -> Reading:
    """An epoch of a rank; its samples are numbered as in the dataset below any ``Subset``."""
    subset = stream.loader.subset
    batches = one.batches
    if subset is not None:
        batches = [[subset[i] if isinstance(i, int) else i for i in batch] for batch in batches]
    return Reading(
        batches,
        number,
        taken=one.drawn,
        count_of=one.count,
        checksum=one.checksum,
        one_in=one.one_in,
        complete=one.complete,
        # A framework that knows the loader's length does not ask for more.
        ended=one.exhausted or one.yielded == one.drawn == one.length,
    )


def steps_taken(job: Sequence[Stream], *, finished: bool = False) -> Observation:
    """The steps of the training passes of a job, the unfinished ones too.

    ``finished``: the program is, and no rank will take more.
    """
    ranks = []
    every = [[*filter(_learned, stream.passes)] or stream.passes for stream in job]
    for number, learning in enumerate(every):
        readings = [
            Reading(
                [],
                epoch,
                taken=one.yielded - _looked_at(one, [each[epoch:][:1] for each in every]),
                ended=finished
                or one.ended
                or (one.exhausted and one.yielded == one.drawn)
                or one.yielded == one.length,
            )
            for epoch, one in enumerate(learning)
        ]
        ranks.append(Rank(number, passes=readings))
    return Observation(ranks)


def _looked_at(one: Pass, others: Sequence[Sequence[Pass]]) -> bool:
    """Whether the last batch of a pass was only looked at when it was left: all ranks took as many
    steps in this epoch, and one had no more batches."""
    passes = [each[0] for each in others if each]
    fewest = min(each.yielded for each in passes)
    even = len(passes) == len(others) and {each.taken for each in passes} == {one.taken}
    return even and one.taken > 0 and not one.ended and one.yielded == fewest + 1


# -- reshuffles, seed-matters


def repeated_orders(
    job: Sequence[Stream],
) -> tuple[dict[tuple[int, ...], list[int]], dict[int, int]]:
    """The epochs that yielded one order, with the ranks where they did.

    For each rank the largest such group counts. The second value is the number of epochs
    that could be compared, for each rank.
    """
    repeats: dict[tuple[int, ...], list[int]] = {}
    judged = {}
    for rank in observed(job, each=True).ranks:
        alike, judged[rank.rank] = properties.repeated(rank)
        if alike:
            repeats.setdefault(tuple(alike), []).append(rank.rank)
    return repeats, judged


def _reshuffles(job: list[Stream]) -> Iterator[Told]:
    repeats, judged = repeated_orders(job)
    for epochs, ranks in repeats.items():
        where = "every rank" if len(ranks) == len(job) else f"rank {listed(ranks)}"
        first = epochs_of(job[ranks[0]])[epochs[0]][1].begins
        yield (
            False,
            f"epochs {listed(epochs)} yielded one order on {where} "
            f"(rank {ranks[0]} begins with {some(first)})",
        )
    rank = max(judged, key=lambda one: judged[one])  # another may have left early
    if not repeats and judged[rank] > 1:
        starts = [some(one.begins) for _, one in epochs_of(job[rank])[:2]]
        yield (
            True,
            f"{judged[rank]} epochs, {judged[rank]} orders "
            f"(rank {rank} begins with {starts[0]}, then with {starts[1]})",
        )


def _seed_matters(runs: Sequence[Run]) -> Verdict:
    told: list[Told] = []
    random = []
    first, other = (" ".join(run.args[-2:]) for run in (runs[0], runs[2]))
    for jobs in zip(*map(shuffling_jobs, runs), strict=False):
        place = runs[0].place(jobs[0][0].loader)
        seen, same, another = map(observed, jobs)
        seen.other_seed = another.ranks
        pairs = [*properties.compared(seen.ranks, another.ranks)]
        if not pairs:
            continue
        again = properties.compared(seen.ranks, same.ranks)
        begins = [some(one.indices) for one in pairs[0]]
        if properties.seed_matters(seen):
            gave = f"{first} and {other} gave the same order (begins with {begins[0]})"
            told.append((False, f"{place}: {gave}"))
        elif any(not properties.same_order(*pair) for pair in again):
            random.append(f"{place}: two runs with {first} gave different orders")
        else:
            gave = f"{first} begins with {begins[0]}, {other} with {begins[1]}"
            told.append((True, f"{place}: {gave}"))
    if random and all(holds for holds, _ in told):
        return _unseen("; ".join(random))
    return _verdict(runs, told, "no shuffling training loader was read")


# -- partitions, coverage


def expected_samples(job: Sequence[Stream]) -> set[Index] | None:
    """The samples that the ranks have to read together; None when that is not known."""
    expected: set[Index] = set()
    for stream in job:
        loader = stream.loader
        if loader.chooses:
            return None
        if loader.subset is not None:
            expected.update(loader.subset)
        elif loader.dataset_length is None or loader.iterable:
            return None
        else:
            expected.update(range(loader.dataset_length))
    return expected


def _partitions(job: list[Stream]) -> Iterator[Told]:
    seen = observed(job)
    judged = [found for _, _, found in shares(seen)]
    if violation := properties.partitions(seen):
        yield False, f"epoch {violation.epoch}: {violation.text}"
    elif judged:
        ranks, size = len(job), judged[0].expected
        yield True, f"in {len(judged)} epochs the {ranks} ranks shared out {size} samples"


def _coverage(job: list[Stream]) -> Iterator[Told]:
    seen = observed(job)
    seen.drop_last = bool(seen.drop_last)  # one sample counts, unless it is said to be dropped
    rounds = _rounds(seen)
    if not seen.expected or not rounds:
        return
    counts = [len(one) // len(job) for one in rounds]
    # The last round may have been cut short by the program's end.
    whole = rounds[:-1] if len(rounds) > 1 and counts[-1] < counts[0] else rounds
    for number, (readings, count) in enumerate(zip(whole, counts, strict=False)):
        found = share(seen, readings)
        if found is not None and found.loses:
            what = "the epoch yields" if count == 1 else f"its {count} sub-epochs yield"
            read = f"{found.expected - len(found.missing)} of {found.expected} samples"
            yield False, f"epoch {number}: {what} {read} (never {some(found.missing)})"
            return
    what = "every epoch yields" if counts[0] == 1 else f"{counts[0]} sub-epochs together yield"
    yield True, f"{what} all {len(seen.expected)} samples"


def _rounds(seen: Observation) -> list[list[Reading]]:
    """Consecutive passes of all ranks that together are one epoch.

    Sub-epochs of one epoch bring new samples; a pass that mostly repeats begins the next epoch.
    """
    rounds: list[list[Reading]] = []
    known: set[Index] = set()
    for _, passes, _ in shares(seen):
        fresh = {index for one in passes for index in one.indices}
        if rounds and len(fresh & known) * 2 <= len(fresh):
            rounds[-1] += passes
            known |= fresh
        else:
            rounds.append([*passes])
            known = fresh
    return rounds


# -- equal-steps, length-is-true, runs


def _equal_steps(runs: Sequence[Run]) -> Verdict:
    (run,) = runs
    told: list[Told] = []
    for job in training_jobs(run):
        place = run.place(job[0].loader)
        seen = steps_taken(job, finished=run.finished)
        steps = [[one.steps for one in rank.passes] for rank in seen.ranks]
        if violation := properties.equal_steps(seen):
            told.append(
                (False, f"{place}: epoch {violation.epoch}: {took(violation.numbers)} steps")
            )
        elif len(set(map(len, steps))) > 1 and run.finished:
            counts = ", ".join(f"rank {rank} {len(one)}" for rank, one in enumerate(steps))
            told.append((False, f"{place}: passes made: {counts}"))
        else:
            same = f"{len(steps[0])} epochs, {listed(sorted(set(steps[0])))} steps on every rank"
            told.append((True, f"{place}: {same}"))
    hung = any(rank.outcome == "hung" for rank in run.ranks)
    broken = not all(holds for holds, _ in told)
    # A rank that ends well while another is still waiting for it took fewer steps.
    if not run.finished and (broken or hung or (run.lost_peer and run.recorded)):
        told.append((False, run.trouble))
    return _verdict(runs, told, "no loader was read")


def took(steps: Sequence[int]) -> str:
    """How many steps each rank took, in words."""
    return ", ".join(f"rank {rank} took {count}" for rank, count in enumerate(steps))


def _length_is_true(job: list[Stream]) -> Iterator[Told]:
    judged = 0
    for rank, stream in enumerate(job):
        for number, one in enumerate(stream.passes):
            if violation := wrong_length(stream, one):
                yield False, f"pass {number} on rank {rank}: {violation}"
                return
            judged += one.length is not None and one.exhausted
    if judged:
        yield True, f"len() was true in all of {judged} passes"


def wrong_length(stream: Stream, one: Pass) -> str | None:
    """What is wrong with the length that the loader, or its sampler, claimed for a pass."""
    loader = stream.loader
    if one.length_error is not None:
        return f"len() raised {one.length_error}"
    if loader.own_iterator and not one.exhausted:
        return None  # it may read one endless pass as many epochs
    batches = Reading([], taken=one.drawn, ended=one.exhausted, claimed=one.length)
    if properties.miscounts(batches):
        return f"len() is {one.length}, but {one.drawn} batches were yielded"
    if one.sampler_length is None:
        return None
    # A plain BatchSampler that drops its tail hides up to a batch of the sampler's indices.
    size = loader.batch_size or loader.samplers[0]["values"].get("batch_size", 0)
    indices = Reading(
        [],
        taken=one.count,
        ended=one.exhausted,
        claimed=one.sampler_length,
        hidden=size - 1 if loader.drop_last and size else 0,
    )
    if properties.miscounts(indices):
        name = loader.samplers[1]["cls"] if len(loader.samplers) > 1 else "the sampler"
        return f"len() of {name} is {one.sampler_length}, but {one.count} indices were yielded"
    return None


def _runs(runs: Sequence[Run]) -> Verdict:
    (run,) = runs
    if not run.finished:
        return Verdict(False, run.trouble)
    batches = [
        sum(one.yielded for loader in rank.log.loaders for one in loader.passes)
        for rank in run.ranks
    ]
    ranks = "the rank" if len(batches) == 1 else f"all {len(batches)} ranks"
    kept = f"{ranks} finished, after {listed(sorted(set(batches)))} batches"
    return _verdict(runs, [(True, kept)], "the program finished without reading any data")


_NO_END = "no pass over a map-style dataset came to its end"

INVARIANTS: dict[str, Invariant] = {
    one.name: one
    for one in (
        Invariant(
            "reshuffles",
            "epochs of a shuffling loader differ in order",
            _each(
                shuffling_jobs,
                _reshuffles,
                "no shuffling training loader was read for two epochs",
            ),
        ),
        Invariant(
            "shuffles",
            "epochs of a training loader differ in order",
            _each(_indexed_jobs, _reshuffles, "no training loader was read for two epochs"),
        ),
        Invariant(
            "seed-matters",
            "the order follows the seed: the same seed gives it again, another gives another",
            _seed_matters,
            runs=(("--seed", "0"), ("--seed", "0"), ("--seed", "1")),
        ),
        Invariant(
            "partitions",
            "the ranks share no sample and together read all, up to padding and drop_last",
            _each(training_jobs, _partitions, _NO_END),
        ),
        Invariant(
            "coverage",
            "the passes of one epoch together yield all samples",
            _each(Run.streams, _coverage, _NO_END),
        ),
        Invariant("equal-steps", "every rank takes the same number of steps", _equal_steps),
        Invariant(
            "length-is-true",
            "len() is what is yielded",
            _each(Run.streams, _length_is_true, "no loader with a length was read to its end"),
        ),
        Invariant("runs", "the program finishes on every rank", _runs),
    )
}
