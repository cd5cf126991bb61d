"""Where two recorded runs part: the first batch and sample, and what differs around them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sampler_lint.harness.orders import in_force
from sampler_lint.harness.runs import Log, Pass, RankRun, Run, Stream, relative

#: What two loaders of one job are compared by, in words.
_SETTINGS = {
    "cls": "class",
    "dataset_cls": "dataset",
    "dataset_length": "samples",
    "mark": "data",
    "subset": "subset",
    "batch_size": "batch_size",
    "drop_last": "drop_last",
    "workers": "num_workers",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which two runs differ."""

    kind: str
    """``ranks``, ``loaders``, ``settings``, ``epochs``, ``generators``, ``workers``, ``order``,
    ``length``, ``content``, ``gradients`` or ``end``."""
    message: str
    first: Any
    """What the first run had, and the second."""
    second: Any
    rank: int | None = None
    loader: str | None = None
    """Where it was built: ``file:line``."""
    epoch: int | None = None
    """The number of the loader's pass, from 0, as are batch and sample."""
    batch: int | None = None
    sample: int | None = None
    """The place in the batch."""

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side."""

    parting: Difference | None
    """The first batch, sample or pass that differs; None when all that was read is alike."""
    others: tuple[Difference, ...]
    """What differs around it, which may be the cause, and in the passes of other loaders."""
    batches: int
    """How many batches of the first run were compared."""

    @property
    def same(self) -> bool:
        """Nothing differs."""
        return self.parting is None and not self.others


def compare(first: Run, second: Run) -> Comparison:
    """Where two runs of a program part."""
    around: list[Difference] = []
    readings: list[tuple[tuple[int, int, int], Difference]] = []
    numbers = [[rank.rank for rank in run.ranks] for run in (first, second)]
    if numbers[0] != numbers[1]:
        told = [f"{len(one)} ({', '.join(map(str, one))})" for one in numbers]
        message = f"the first run has ranks: {told[0]}; the second: {told[1]}"
        around.append(Difference("ranks", message, numbers[0], numbers[1]))
    batches = 0
    others = {rank.rank: rank for rank in second.ranks}
    for rank in first.ranks:
        if rank.rank not in others:
            continue
        other = others[rank.rank]
        around += _ends(rank, other)
        learned_other = [*_gradients(rank, other)]
        jobs = _paired(rank, first.root, other, second.root)
        for one, its in jobs:
            if one is None or its is None:
                alone = one or its
                assert alone is not None
                which = "first" if one else "second"
                place = _place(alone, first.root if one else second.root)
                message = f"{alone.loader.cls} built at {place} is read in the {which} run only"
                around.append(
                    Difference("loaders", message, bool(one), bool(its), rank.rank, place)
                )
                continue
            place = _place(one, first.root)
            around += _settings(rank.rank, place, one, its)
            around += _epochs(rank.rank, place, (one, rank.log), (its, other.log))
            around += _workers(rank.rank, place, (one, rank.log), (its, other.log))
            batches += sum(each.yielded for each in one.passes)
            parting = next(_partings(rank.rank, place, one.passes, its.passes), None)
            if parting is not None or learned_other:
                until = parting.epoch if parting is not None else None
                around += _generators(rank.rank, place, one.passes, its.passes, until)
            if parting is not None:
                began = one.passes[min(parting.epoch or 0, len(one.passes) - 1)].number
                readings.append(((began, parting.batch or 0, rank.rank), parting))
        around += learned_other
    readings.sort(key=lambda one: one[0])
    partings = [one for _, one in readings]
    around.sort(key=lambda one: one.kind == "gradients")  # they follow from the rest
    return Comparison(next(iter(partings), None), (*around, *partings[1:]), batches)


def _place(stream: Stream, root: str) -> str:
    return f"{relative(stream.loader.path, root)}:{stream.loader.line}"


def _paired(
    one: RankRun, root: str, other: RankRun, other_root: str
) -> list[tuple[Stream | None, Stream | None]]:
    """The jobs of one rank in both runs: those built at one place, then those of one class."""
    left, right = one.streams(), other.streams()
    found: list[tuple[Stream | None, Stream | None]] = []
    for alike in (
        lambda a, b: _place(a, root) == _place(b, other_root),
        lambda a, b: relative(a.loader.path, root) == relative(b.loader.path, other_root),
        lambda a, b: a.loader.dataset_cls == b.loader.dataset_cls,
    ):
        for stream in [*left]:
            its = next((each for each in right if alike(stream, each)), None)
            if its is not None:
                found.append((stream, its))
                left.remove(stream)
                right.remove(its)
    return [*found, *((each, None) for each in left), *((None, each) for each in right)]


# -- what was read


def _partings(
    rank: int, place: str, passes: Sequence[Pass], others: Sequence[Pass]
) -> Iterator[Difference]:
    for number, (one, other) in enumerate(itertools.zip_longest(passes, others)):
        if one is None or other is None:
            counts = len(passes), len(others)
            yield Difference(
                "length",
                f"the loader is read {counts[0]} times in the first run, {counts[1]} in the second",
                *counts,
                rank,
                place,
                number,
            )
            return
        parting = _order(one, other) or _content(one, other)
        if parting is None and one.yielded != other.yielded:
            counts = one.yielded, other.yielded
            message = f"{counts[0]} batches were taken in the first run, {counts[1]} in the second"
            parting = "length", message, *counts, min(counts), None
        if parting is not None:
            kind, message, first, second, batch, sample = parting
            yield Difference(kind, message, first, second, rank, place, number, batch, sample)


_Parting = tuple[str, str, Any, Any, "int | None", "int | None"]


def _order(one: Pass, other: Pass) -> _Parting | None:
    """The first index that differs in what both took of a pass; how much that was is another
    question, for workers draw ahead."""
    if (one.drawn, one.count, one.checksum) == (other.drawn, other.count, other.checksum):
        return None
    common = min(one.yielded, other.yielded)
    pairs = list(zip(one.batches[:common], other.batches[:common], strict=False))
    for batch, (left, right) in enumerate(pairs):
        for sample, (a, b) in enumerate(itertools.zip_longest(left, right)):
            if a != b:
                if one.one_in > 1 or other.one_in > 1:  # of a batch only some indices were kept
                    message = f"among the kept indices: {a} in the first run, {b} in the second"
                    return "order", message, a, b, batch, None
                lengths = len(left), len(right)
                if None in (a, b) and lengths[0] != lengths[1]:
                    message = "the batch has {} samples in the first run, {} in the second"
                    return "order", message.format(*lengths), *lengths, batch, sample
                message = f"sample {a} in the first run, {b} in the second"
                return "order", message, a, b, batch, sample
    whole = one.drawn == one.yielded == other.drawn == other.yielded
    if whole and (one.one_in > 1 or not (one.complete and other.complete)):
        message = "the order differs, at an index that was not kept (trace with --all-indices)"
        return "order", message, one.checksum, other.checksum, None, None
    return None


def _content(one: Pass, other: Pass) -> _Parting | None:
    """The first sample that is another in one of the batches that were looked into."""
    for batch, ((keys, left), (_, right)) in enumerate(
        zip(one.contents, other.contents, strict=False)
    ):
        for sample, (a, b) in enumerate(itertools.zip_longest(left, right)):
            if a != b:
                index = keys[sample] if keys and sample < len(keys) else None
                named = "the sample" if index is None else f"sample {index}"
                message = f"{named} does not hold the same in both runs"
                if _keeps_a_part(one, other):
                    message += ", but a part of it does: it is changed at random"
                return "content", message, a, b, batch, sample
    return None


def _keeps_a_part(one: Pass, other: Pass) -> bool:
    """Whether every sample that was looked into has a part in common with its counterpart.

    A few other samples may have, too: those of the same class.
    """
    looked = zip(one.contents, other.contents, strict=False)
    pairs = [pair for (_, a), (_, b) in looked for pair in zip(a, b, strict=False)]
    return all(len(a) == len(b) and set(a) & set(b) for a, b in pairs)


# -- what differs around it


def _settings(rank: int, place: str, one: Stream, other: Stream) -> Iterator[Difference]:
    for name, word in _SETTINGS.items():
        values = getattr(one.loader, name), getattr(other.loader, name)
        if values[0] != values[1]:
            told = f"{values[0]} in the first run, {values[1]} in the second"
            if name in ("mark", "subset"):
                told = "not the same in both runs"
            yield Difference("settings", f"{word}: {told}", *values, rank, place)
    chains = [[sampler["cls"] for sampler in each.loader.samplers] for each in (one, other)]
    if chains[0] != chains[1]:
        told = " over ".join(chains[0]) or "none"
        message = f"samplers: {told} in the first run, {' over '.join(chains[1]) or 'none'}"
        yield Difference("settings", f"{message} in the second", chains[0], chains[1], rank, place)
        return
    for left, right in zip(one.loader.samplers, other.loader.samplers, strict=True):
        for name in sorted({*left["values"], *right["values"]}):
            a, b = left["values"].get(name), right["values"].get(name)
            if a != b:
                message = f"{left['cls']}.{name}: {a} in the first run, {b} in the second"
                yield Difference("settings", message, a, b, rank, place)


def _epochs(
    rank: int, place: str, one: tuple[Stream, Log], other: tuple[Stream, Log]
) -> Iterator[Difference]:
    values = [_in_force(*each) for each in (one, other)]
    for number, (a, b) in enumerate(zip(*values, strict=False)):
        if a != b:
            told = ["not called" if each is None else each for each in (a, b)]
            message = f"set_epoch: {told[0]} in the first run, {told[1]} in the second"
            yield Difference("epochs", message, a, b, rank, place, number)
            return


def _in_force(stream: Stream, log: Log) -> list[Any]:
    """The epoch that the stream's samplers were told, pass by pass; None where none was told."""
    objects = {one["object"] for loader in stream.loaders for one in loader.samplers}
    calls = [call for call in log.set_epochs if call.object in objects]
    return [in_force(calls, one, None) for one in stream.passes]


def _generators(
    rank: int, place: str, passes: Sequence[Pass], others: Sequence[Pass], until: int | None
) -> Iterator[Difference]:
    """The random generators that a pass sets out from in another state, ``until`` one that differs.

    Where neither what was read nor what was learned differs, nothing came of them.
    """
    told: set[str] = set()
    for number, (one, other) in enumerate(zip(passes, others, strict=False)):
        if until is not None and number > until:
            return
        for name in sorted(one.generators.keys() & other.generators.keys() - told):
            values: tuple[Any, Any] = one.generators[name], other.generators[name]
            if values[0] == values[1]:
                continue
            told.add(name)
            message = f"the generator of `{name}` is in another state in the second run"
            if name == "torch" and one.seed != other.seed:
                values = one.seed, other.seed
                message = f"torch is seeded with {values[0]} in the first run, {values[1]} in the"
                message += " second"
            elif name == "torch":
                message += ", though seeded alike: more was drawn from it in one of them before"
            yield Difference("generators", message, *values, rank, place, number)


def _workers(
    rank: int, place: str, one: tuple[Stream, Log], other: tuple[Stream, Log]
) -> Iterator[Difference]:
    """The first worker that sets out from another state of a random generator."""
    left, right = (_states(*each) for each in (one, other))
    for key in sorted(left.keys() & right.keys()):
        if left[key] != right[key]:
            number, worker, name = key
            message = (
                f"worker {worker} draws from {name}'s generator, which begins in another state "
                f"in the second run"
            )
            yield Difference("workers", message, left[key], right[key], rank, place, number)
            return


def _states(stream: Stream, log: Log) -> dict[tuple[int, int, str], Any]:
    passes = {one.number: place for place, one in enumerate(stream.passes)}
    return {
        (passes[one["number"]], one["worker"], name): states[0]
        for one in log.draws
        if one["number"] in passes
        for name, states in one["drawn"].items()
    }


def _gradients(one: RankRun, other: RankRun) -> Iterator[Difference]:
    """The first step looked at where an optimizer was given something else."""
    left, right = one.log.gradients, other.log.gradients
    for key in sorted(left.keys() & right.keys(), key=lambda each: each[1]):
        if left[key] != right[key]:
            message = (
                f"what the optimizer was given differs at step {key[1]} (of the steps 1, 2, 4, 8 … "
                f"that are looked at)"
            )
            yield Difference("gradients", message, left[key], right[key], one.rank)
            return


def _ends(one: RankRun, other: RankRun) -> Iterator[Difference]:
    ends = [
        "no end was recorded" if log.exit is None else log.exit["error"] or "it came to its end"
        for log in (one.log, other.log)
    ]
    if ends[0] != ends[1]:
        message = f"the first run: {ends[0]}; the second: {ends[1]}"
        yield Difference("end", message, ends[0], ends[1], one.rank)
