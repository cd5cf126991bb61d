"""The judgements over what a run left: does the program keep this promise?

Nothing recorded proves nothing: without evidence no invariant holds, and none is broken either
(:attr:`Verdict.conclusive`). Only what was seen counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sampler_lint.harness.runs import Index, Pass, Run, Stream

#: Fewer samples than this come out in the same order too often by chance.
ENOUGH = 5


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


def _broken(evidence: Iterable[str]) -> Verdict:
    return Verdict(False, "; ".join(evidence))


def _unseen(reason: str) -> Verdict:
    return Verdict(False, f"no evidence: {reason}", conclusive=False)


def _judged(
    runs: Sequence[Run], broken: Sequence[str], kept: Sequence[str], nothing: str
) -> Verdict:
    """Broken if anything was seen to break; kept only by programs that ran to their end."""
    if broken:
        return _broken(broken)
    for run in runs:
        if not run.finished:
            return _unseen(run.trouble)
    if not kept or not all(run.recorded for run in runs):
        return _unseen(nothing)
    return Verdict(True, "; ".join(kept))


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
    jobs = [job for job in training_jobs(run) if not job[0].loader.iterable]
    certain = [job for job in jobs if job[0].loader.shuffling]
    return certain or [job for job in jobs if job[0].loader.shuffling is None]


def epochs_of(stream: Stream) -> list[tuple[int, Pass]]:
    """Its training passes with their numbers; no peek at a first batch, no evaluation.

    Passes that ended count; of a program that always leaves early, those that got far.
    """
    passes = stream.passes
    learning = [*filter(_learned, passes)] or [*filter(_graded, passes)] or passes
    ended = [one for one in learning if one.exhausted and one.count]
    if len(ended) >= 2 or (ended and len(learning) == 1):
        return list(enumerate(ended))
    far = max((one.count for one in learning), default=0)
    return list(enumerate(one for one in learning if one.count * 2 > far))


def _same_order(one: Pass, other: Pass) -> bool:
    if one.exhausted and other.exhausted:
        return (one.count, one.order) == (other.count, other.order)
    first, second = one.indices, other.indices
    shared = min(len(first), len(second))
    return shared >= ENOUGH and first[:shared] == second[:shared]


def listed(numbers: Sequence[int]) -> str:
    """The numbers as a sentence has them: ``0, 1 and 2``."""
    texts = [str(number) for number in numbers]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def some(indices: Sequence[Index]) -> str:
    """The first few of the indices."""
    return ", ".join(map(str, indices[:3]))


# -- reshuffles, seed-matters


def repeated_orders(
    job: Sequence[Stream],
) -> tuple[dict[tuple[int, ...], list[int]], int]:
    """The epochs that handed out one order, with the ranks where they did.

    For each rank the largest such group counts. The second value is the number of epochs
    that could be compared.
    """
    repeats: dict[tuple[int, ...], list[int]] = {}
    judged = 0
    for rank, stream in enumerate(job):
        epochs = [(number, one) for number, one in epochs_of(stream) if one.count >= ENOUGH]
        judged = max(judged, len(epochs))
        groups: list[list[tuple[int, Pass]]] = []
        for number, one in epochs:
            for group in groups:
                if _same_order(group[0][1], one):
                    group.append((number, one))
                    break
            else:
                groups.append([(number, one)])
        repeated = max(groups, key=len, default=[])
        if len(repeated) > 1:
            repeats.setdefault(tuple(number for number, _ in repeated), []).append(rank)
    return repeats, judged


def _reshuffles(runs: Sequence[Run]) -> Verdict:
    (run,) = runs
    broken, kept = [], []
    for job in shuffling_jobs(run):
        place = run.place(job[0].loader)
        repeats, judged = repeated_orders(job)
        for numbers, ranks in repeats.items():
            where = "every rank" if len(ranks) == len(job) else f"rank {listed(ranks)}"
            first = epochs_of(job[ranks[0]])[numbers[0]][1].begins
            broken.append(
                f"{place}: epochs {listed(numbers)} handed out one order on {where} "
                f"(rank {ranks[0]} begins with {some(first)})"
            )
        if not repeats and judged > 1:
            starts = [some(one.begins) for _, one in epochs_of(job[0])[:2]]
            kept.append(
                f"{place}: {judged} epochs, {judged} orders "
                f"(rank 0 begins with {starts[0]}, then with {starts[1]})"
            )
    return _judged(runs, broken, kept, "no shuffling training loader was read for two epochs")


def _seed_matters(runs: Sequence[Run]) -> Verdict:
    first, again, other = runs
    broken, kept, random = [], [], []
    names = [" ".join(run.args[-2:]) for run in (first, other)]
    jobs = zip(shuffling_jobs(first), shuffling_jobs(again), shuffling_jobs(other), strict=False)
    for job, job_again, job_other in jobs:
        place = first.place(job[0].loader)
        triples = [
            (one, same, another)
            for left, middle, right in zip(job, job_again, job_other, strict=True)
            for (_, one), (_, same), (_, another) in zip(
                epochs_of(left), epochs_of(middle), epochs_of(right), strict=False
            )
            if one.count >= ENOUGH
        ]
        if not triples:
            continue
        begins = some(triples[0][0].begins)
        if any(_same_order(one, another) for one, _, another in triples):
            broken.append(
                f"{place}: {names[0]} and {names[1]} gave the same order (begins with {begins})"
            )
        elif not all(_same_order(one, same) for one, same, _ in triples):
            random.append(f"{place}: two runs with {names[0]} gave different orders")
        else:
            kept.append(
                f"{place}: {names[0]} begins with {begins}, {names[1]} with "
                f"{some(triples[0][2].begins)}"
            )
    if random and not broken:
        return _unseen("; ".join(random))
    return _judged(runs, broken, kept, "no shuffling training loader was read")


# -- partitions, coverage


def expected_samples(job: Sequence[Stream]) -> set[Index] | None:
    """The samples that the ranks have to read together; None when that is not known."""
    expected: set[Index] = set()
    for stream in job:
        loader = stream.loader
        if any("Weighted" in one["cls"] or "Subset" in one["cls"] for one in loader.samplers):
            return None  # they choose among the samples on purpose
        if loader.subset is not None:
            expected.update(loader.subset)
        elif loader.dataset_length is None or loader.iterable:
            return None
        else:
            expected.update(range(loader.dataset_length))
    return expected


def samples_read(stream: Stream, one: Pass) -> list[Index]:
    """The samples a pass read, numbered as in the dataset below any ``Subset``."""
    subset = stream.loader.subset
    if subset is None:
        return one.indices
    return [subset[index] if isinstance(index, int) else index for index in one.indices]


def comparable(passes: Sequence[Pass]) -> bool:
    """Whether the passes came to their end and the same samples were kept of them all."""
    return len({one.stride for one in passes}) == 1 and all(
        one.exhausted and one.complete for one in passes
    )


def kept_of(samples: set[Index], stride: int) -> set[Index]:
    """Those of the samples that the recorder kept."""
    if stride == 1:
        return samples
    return {one for one in samples if isinstance(one, int) and one % stride == 0}


def one_round(passes: Sequence[Pass]) -> int:
    """The most samples that padding or dropping may add to or take from these passes at once."""
    return sum(
        max((len(batch) for batch in one.batches), default=0)
        if one.stride == 1
        else one.count // (max(1, one.drawn) * one.stride) + 1
        for one in passes
    )


def _partitions(runs: Sequence[Run]) -> Verdict:
    (run,) = runs
    broken, kept = [], []
    for job in training_jobs(run):
        expected = expected_samples(job)
        if expected is None:
            continue
        place = run.place(job[0].loader)
        judged = 0
        for epoch in zip(*map(epochs_of, job), strict=False):
            passes = [one for _, one in epoch]
            number = epoch[0][0]
            if not comparable(passes):
                continue
            judged += 1
            reads = [samples_read(stream, one) for stream, one in zip(job, passes, strict=True)]
            sampled = kept_of(expected, passes[0].stride)
            flaw = partition_flaw(reads, sampled, one_round(passes), bool(job[0].loader.drop_last))
            if flaw:
                broken.append(f"{place}: epoch {number}: {flaw}")
                break
        else:
            if judged:
                kept.append(
                    f"{place}: in {judged} epochs the {len(job)} ranks shared out "
                    f"{len(expected)} samples"
                )
    return _judged(runs, broken, kept, "no pass over a map-style dataset came to its end")


def partition_flaw(
    reads: Sequence[Sequence[Index]], expected: set[Index], slack: int, drop_last: bool
) -> str | None:
    """What is wrong with the way the ranks share the samples, if anything.

    An honest partition reads as many different samples as it can: all of them when it pads,
    no sample twice when it drops. ``slack`` is one batch of every rank. With ``drop_last`` a
    sampler that pads below a batch sampler that drops may lose one sample a rank to a duplicate.
    """
    total = sum(map(len, reads))
    distinct = len(set().union(*map(set, reads)))
    missing = len(expected) - len(set().union(*map(set, reads)) & expected)
    best = min(total, len(expected))
    lost = len(reads) - 1 if drop_last else 0
    short = len(expected) - total
    if distinct >= best - lost and -slack < short and short < (slack if drop_last else len(reads)):
        return None
    shared = sorted(set(reads[0]).intersection(*map(set, reads[1:])), key=str) if reads[1:] else []
    parts = []
    if shared:
        who = f"all {len(reads)} ranks" if len(reads) > 2 else "both ranks"
        parts.append(f"{len(shared)} samples were read by {who} (such as {some(shared)})")
    if missing:
        parts.append(f"{missing} of {len(expected)} samples were read by no rank")
    return " and ".join(parts) or f"{total} samples were read of {len(expected)}"


def _coverage(runs: Sequence[Run]) -> Verdict:
    (run,) = runs
    broken, kept = [], []
    for job in run.streams():
        expected = expected_samples(job)
        if expected is None or not expected:
            continue
        expected = kept_of(expected, max(one.stride for one in job[0].passes))
        place = run.place(job[0].loader)
        rounds = _rounds(job)
        # The last round may have been cut short by the program's end.
        cut = len(rounds) > 1 and rounds[-1][1] < rounds[0][1]
        whole = rounds[:-1] if cut else rounds
        for number, (seen, count, slack) in enumerate(whole):
            missing = expected - seen
            allowed = count * (slack - 1) if job[0].loader.drop_last else 0
            if len(missing) > allowed:
                what = "the epoch hands" if count == 1 else f"its {count} sub-epochs hand"
                few = some(sorted(missing, key=str))
                broken.append(
                    f"{place}: epoch {number}: {what} out {len(expected) - len(missing)} of "
                    f"{len(expected)} samples (never {few})"
                )
                break
        else:
            if whole:
                count = whole[0][1]
                what = "every epoch hands" if count == 1 else f"{count} sub-epochs together hand"
                kept.append(f"{place}: {what} out all {len(expected)} samples")
    return _judged(runs, broken, kept, "no pass over a map-style dataset came to its end")


def _rounds(job: Sequence[Stream]) -> list[tuple[set[Index], int, int]]:
    """Consecutive passes that together are one epoch: samples seen, passes, one batch of each.

    Sub-epochs of one epoch bring new samples; a pass that mostly repeats begins the next epoch.
    """
    rounds: list[tuple[set[Index], int, int]] = []
    for epoch in zip(*map(epochs_of, job), strict=False):
        passes = [one for _, one in epoch]
        if not comparable(passes):
            continue
        reads = [samples_read(stream, one) for stream, one in zip(job, passes, strict=True)]
        fresh: set[Index] = set().union(*map(set, reads))
        slack = one_round(passes)
        if rounds and len(fresh & rounds[-1][0]) * 2 <= len(fresh):
            seen, count, most = rounds[-1]
            rounds[-1] = (seen | fresh, count + 1, max(most, slack))
        else:
            rounds.append((fresh, 1, slack))
    return rounds


# -- equal-steps, length-is-true, runs


def _equal_steps(runs: Sequence[Run]) -> Verdict:
    (run,) = runs
    broken, kept = [], []
    for job in training_jobs(run):
        place = run.place(job[0].loader)
        steps = [[one.yielded for one in stream.passes] for stream in job]
        # A rank that hangs is behind in its last pass because it hangs, not because of its data.
        for number, taken in enumerate(zip(*steps, strict=False)):
            ended = all(stream.passes[number].exhausted for stream in job)
            if len(set(taken)) > 1 and (run.finished or ended):
                counts = ", ".join(f"rank {rank} took {one}" for rank, one in enumerate(taken))
                broken.append(f"{place}: epoch {number}: {counts} steps")
                break
        else:
            if len(set(map(len, steps))) > 1 and run.finished:
                counts = ", ".join(f"rank {rank} {len(one)}" for rank, one in enumerate(steps))
                broken.append(f"{place}: passes made: {counts}")
            else:
                kept.append(
                    f"{place}: {len(steps[0])} epochs, {listed(sorted(set(steps[0])))} steps "
                    f"on every rank"
                )
    outcomes = {rank.outcome for rank in run.ranks}
    # A rank that ends well while another is still waiting for it took fewer steps.
    if not run.finished and (broken or "hung" in outcomes or (run.lost_peer and run.recorded)):
        broken.append(run.trouble)
    return _judged(runs, broken, kept, "no loader was read")


def _length_is_true(runs: Sequence[Run]) -> Verdict:
    (run,) = runs
    broken, kept = [], []
    for job in run.streams():
        place = run.place(job[0].loader)
        judged = 0
        for rank, stream in enumerate(job):
            flaw = None
            for number, one in enumerate(stream.passes):
                flaw = length_flaw(stream, one)
                if flaw:
                    broken.append(f"{place}: pass {number} on rank {rank}: {flaw}")
                    break
                judged += one.length is not None and one.exhausted
            if flaw:
                break
        else:
            if judged:
                kept.append(f"{place}: len() was true in all of {judged} passes")
    return _judged(runs, broken, kept, "no loader with a length was read to its end")


def length_flaw(stream: Stream, one: Pass) -> str | None:
    """What is wrong with the length that the loader, or its sampler, claimed for a pass."""
    loader = stream.loader
    if one.length_error is not None:
        return f"len() raised {one.length_error}"
    if one.length is not None and (
        one.drawn > one.length or (one.exhausted and one.drawn < one.length)
    ):
        return f"len() is {one.length}, but {one.drawn} batches were handed out"
    claimed = one.sampler_length
    if claimed is None or not one.exhausted:
        return None
    # A plain BatchSampler that drops its tail hides up to a batch of the sampler's indices.
    size = loader.batch_size or loader.samplers[0]["values"].get("batch_size", 0)
    hidden = size - 1 if loader.drop_last and size else 0
    if not claimed - hidden <= one.count <= claimed:
        name = loader.samplers[1]["cls"] if len(loader.samplers) > 1 else "the sampler"
        return f"len() of {name} is {claimed}, but {one.count} indices were handed out"
    return None


def _runs(runs: Sequence[Run]) -> Verdict:
    (run,) = runs
    if not run.finished:
        return _broken([run.trouble])
    batches = [
        sum(one.yielded for loader in rank.log.loaders for one in loader.passes)
        for rank in run.ranks
    ]
    kept = [f"all {len(batches)} ranks finished, after {listed(sorted(set(batches)))} batches"]
    return _judged(runs, [], kept, "the program finished without reading any data")


INVARIANTS: dict[str, Invariant] = {
    one.name: one
    for one in (
        Invariant("reshuffles", "epochs of a shuffling loader differ in order", _reshuffles),
        Invariant(
            "seed-matters",
            "the order follows the seed: the same seed gives it again, another gives another",
            _seed_matters,
            runs=(("--seed", "0"), ("--seed", "0"), ("--seed", "1")),
        ),
        Invariant(
            "partitions",
            "the ranks share no sample and together read all, up to padding and drop_last",
            _partitions,
        ),
        Invariant("coverage", "the passes of one epoch together hand out all samples", _coverage),
        Invariant("equal-steps", "every rank takes the same number of steps", _equal_steps),
        Invariant("length-is-true", "len() is what is handed out", _length_is_true),
        Invariant("runs", "the program finishes on every rank", _runs),
    )
}
