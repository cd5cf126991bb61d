"""What samplers promise, judged of what ranks were seen to read, whoever watched them.

The contract simulates ranks, the recorder watches real ones, the interpreter works a class through:
each makes an :class:`Observation`, and asks the same properties of it. A property names the first
:class:`Violation`, or nothing: also where the observation does not know what it needs. Whether a
property applies to a sampler at all is for who asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

#: What a sampler yields in one step: an index, or a batch of them.
Item = Any
Index = Any

#: Fewer samples than this tell nothing: of so many, 5040 orders are possible, so that two shuffles
#: are hardly ever alike, and a rank's share of fewer is mostly what padding may repeat.
ENOUGH = 7


@dataclass(slots=True)
class Reading:
    """One pass of one rank over a sampler or a loader."""

    items: Sequence[Item]
    """What was yielded step by step, as far as it was kept."""
    number: int = 0
    """The epoch, as a person counts them."""
    taken: int | None = None
    """How many steps there were; None when :attr:`items` are all of them."""
    count_of: int | None = None
    """How many indices there were in them; None when :attr:`items` hold them all."""
    checksum: Hashable = None
    """Equal for passes that yielded the same indices in the same order."""
    one_in: int = 1
    """Of so many samples one was kept."""
    complete: bool = True
    """Every index that was to be kept was kept."""
    ended: bool = True
    """It came to its end."""
    endless: bool = False
    """It was left after many more items than there are samples."""
    claimed: int | None = None
    """``len()`` before the pass; None when there is none, or nobody asked."""
    later: int | None = None
    """``len()`` after it."""
    hidden: int = 0
    """How much less than ``len()`` may be seen without its being wrong."""
    length_error: str | None = None
    """What ``len()`` raised, other than that there is none."""
    error: str | None = None
    """What went wrong: what iterating raised, or that it did not end."""

    @property
    def steps(self) -> int:
        """How many batches were yielded, or indices where there are no batches."""
        return len(self.items) if self.taken is None else self.taken

    @property
    def indices(self) -> list[Index]:
        """The indices that were kept, in order, batches laid open."""
        return list(flat(self.items))

    @property
    def count(self) -> int:
        """How many indices were yielded."""
        return len(self.indices) if self.count_of is None else self.count_of

    @property
    def largest(self) -> int:
        """The size of the largest batch, as far as it was kept; 1 when it yields indices."""
        if self.one_in > 1:  # what was kept of a batch tells little
            return self.count // (max(1, self.steps) * self.one_in) + 1
        return max((len(item) for item in self.items if isinstance(item, list)), default=1)

    @property
    def whole(self) -> bool:
        """It came to its end, and all of it that is kept at all was kept."""
        return self.ended and self.complete and not self.endless and self.error is None


@dataclass(slots=True)
class Rank:
    """What one rank read, epoch after epoch."""

    rank: int
    refusal: str | None = None
    """What the constructor raised."""
    passes: Sequence[Reading] = field(default_factory=list)

    @property
    def error(self) -> str | None:
        """What building or iterating raised first."""
        return self.refusal or next((one.error for one in self.passes if one.error), None)

    def items(self, number: int) -> list[Item] | None:
        """What it read in its pass of that number, if it got there without an error."""
        if self.refusal or number >= len(self.passes) or self.passes[number].error:
            return None
        return list(self.passes[number].items)


def _every(index: int, one_in: int) -> bool:
    return True


@dataclass(slots=True)
class Observation:
    """What all ranks of a world read from one sampler, and what is known of it."""

    ranks: Sequence[Rank]
    expected: Collection[Index] | None = None
    """The samples to be read by the ranks together; None when that is not known, or when the
    sampler chooses among them."""
    batch: int = 1
    """The size of a batch, where the readings may not show a full one."""
    fill: int = 0
    """What each rank may be padded to a multiple of, where that is more than a batch."""
    groups: int | None = 1
    """How many kinds of samples it may keep apart, each padded, or cut, by itself; None when that
    is not known."""
    drop_last: bool | None = False
    """It declares that it may leave out what is less than a step of all ranks; None when that is
    not known, so that it may leave out less than one sample of each rank."""
    total: int | None = None
    """How many samples it declares to read with padding, as ``total_size``."""
    sharded: bool = True
    """It knows of ranks."""
    is_kept: Callable[[int, int], bool] = _every
    """Whether an index is kept where one in so many is."""

    # the same once more, with one thing different
    apart: Sequence[Rank] = ()
    """With the ranks' global generators in different states."""
    again: Sequence[Rank] = ()
    """Some of the ranks, with nothing different."""
    jumped: Sequence[Rank] = ()
    """Some of the ranks, told epoch 1 at once."""
    other_seed: Sequence[Rank] = ()
    """All ranks, with another seed."""
    resumed: Sequence[tuple[list[Item], ...]] = ()
    """What rank 0 had left half-way through epoch 1, and its epoch 2; then what a sampler with
    its state read in their place."""
    resume_error: str | None = None
    """What saving or loading the state raised."""

    @property
    def endless(self) -> bool:
        """The stream never ended."""
        return any(one.endless for rank in self.ranks for one in rank.passes)

    def epochs(self) -> list[tuple[int, list[Reading]]]:
        """The readings of all ranks, for each epoch that all of them read without an error."""
        return _epochs(self.ranks)


def flat(items: Sequence[Item]) -> Iterator[Item]:
    """The indices in items that may be batches, however deep."""
    for item in items:
        if isinstance(item, list):
            yield from flat(item)
        else:
            yield item


def _epochs(ranks: Sequence[Rank]) -> list[tuple[int, list[Reading]]]:
    return [
        (passes[0].number, list(passes))
        for passes in zip(*(rank.passes for rank in ranks), strict=False)
        if not any(one.error for one in passes)
    ]


def joined(ranks: Sequence[Rank]) -> list[Rank]:
    """All ranks as one: a world has one order if each rank of it has."""
    readings = [
        Reading([list(one.items) for one in passes], number, ended=all(one.whole for one in passes))
        for number, passes in _epochs(ranks)
    ]
    return [Rank(0, passes=readings)]


@dataclass(frozen=True, slots=True)
class Violation:
    """What is wrong, and in which epoch it is first seen."""

    text: str
    epoch: int = 0
    numbers: tuple[int, ...] = ()
    """The steps of each rank, or the epochs that are alike."""


# -- words


def numbers(values: Sequence[object], most: int = 4) -> str:
    """The first few: ``0, 1, 2, …``."""
    texts = [str(one) for one in values[:most]]
    return ", ".join(texts) + (", …" if len(values) > most else "")


def listed(numbers: Sequence[object]) -> str:
    """The numbers as a sentence has them: ``0, 1 and 2``."""
    texts = [str(number) for number in numbers]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def begin(items: Sequence[Item]) -> str:
    """The first few items."""
    return str(list(items[:3]))[1:-1] or "nothing"


def _reads(passes: Sequence[Reading]) -> str:
    return f"ranks read [{numbers([f'[{numbers(one.items, 8)}]' for one in passes])}]"


# -- shares


@dataclass(frozen=True, slots=True)
class Share:
    """How the ranks share one epoch's samples."""

    expected: int
    """How many samples there are to read, as far as they would have been kept."""
    total: int
    """How many were read, each as often as it was."""
    missing: list[Index]
    """Samples that no rank reads."""
    repeats: int
    """How many times a sample is read that was read before."""
    padding: int
    """How many of the repeats padding explains."""
    room: int
    """The most that padding could explain."""
    dropped: int
    """How many samples a declared ``drop_last`` may leave out."""
    strange: list[Item]
    """What was yielded and is no index of the dataset."""
    round: int
    """The most samples that one step of all ranks reads."""

    @property
    def loses(self) -> bool:
        """Whether more is left out than may be."""
        return len(self.missing) > self.dropped

    @property
    def exact(self) -> bool:
        """Whether each sample is read once, and nothing else is."""
        return not (self.missing or self.repeats or self.strange)

    @property
    def overlaps(self) -> bool:
        """Whether more is read again than padding explains."""
        return self.repeats > self.padding


def one_round(passes: Sequence[Reading], batch: int = 1) -> int:
    """The most samples that padding or dropping may add to or take from these passes at once."""
    return sum(max(batch, one.largest) for one in passes)


def share(seen: Observation, passes: Sequence[Reading]) -> Share | None:
    """How ``passes``, one of each rank, share the samples; None when that cannot be known.

    Padding fills up each rank's last batch, or group, and no more; what declares its padded size
    may fill up to that. Where nobody knows how many groups are filled, less than all samples once
    more is padding if none is left out. A sampler that pads below a batch sampler that drops may
    lose one sample a rank to a duplicate.
    """
    if seen.expected is None or not all(one.whole for one in passes):
        return None
    one_in = passes[0].one_in
    if any(one.one_in != one_in for one in passes):
        return None
    read = [index for one in passes for index in one.indices]
    try:
        distinct = set(read)
    except TypeError:  # not even hashable
        return None
    expected = set(seen.expected)
    if one_in > 1:
        expected = {one for one in expected if isinstance(one, int) and seen.is_kept(one, one_in)}
    size = len(expected)
    strange = [
        one for one in distinct - expected if not (isinstance(one, int) and -size <= one < 0)
    ]
    around = one_round(passes, seen.batch)
    lost = len(passes) - 1 if seen.drop_last else 0
    most = max(around, seen.fill * len(passes)) * (seen.groups or 1)
    if seen.total is not None:
        most = max(most, seen.total - size)
    if seen.groups is None and expected <= distinct:
        most = max(most, size - 1 - lost)
    dropped = len(seen.ranks) - 1 if seen.drop_last is None else 0
    if seen.drop_last:
        dropped = (around - 1) * (seen.groups or 1) + lost
    return Share(
        size,
        len(read),
        sorted(expected - distinct, key=_by_number),
        len(read) - len(distinct),
        min(max(len(read) - size, 0), most) + lost,
        most,
        dropped,
        strange,
        around,
    )


def _by_number(index: Index) -> tuple[bool, int, str]:
    known = isinstance(index, int)
    return (not known, index if known else 0, str(index))


def shares(seen: Observation) -> Iterator[tuple[int, list[Reading], Share]]:
    """How the ranks share each epoch of which that is known."""
    for epoch, passes in seen.epochs():
        found = share(seen, passes)
        if found is not None:
            yield epoch, passes, found


def coverage(seen: Observation) -> Violation | None:
    """The ranks together read every sample, up to a declared ``drop_last``.

    Needs to know the samples, and passes that came to their end; what raises covers nothing.
    """
    for rank in seen.ranks:
        for epoch, one in enumerate(rank.passes):
            if one.error:
                return Violation(f"the sampler of rank {rank.rank} {one.error}", epoch)
    if any(rank.refusal for rank in seen.ranks):
        return None
    for epoch, passes, found in shares(seen):
        if found.strange and all(isinstance(one, int) for one in found.strange):
            return Violation(
                f"yields index {found.strange[0]} of a dataset of {found.expected}", epoch
            )
        if found.loses and not found.strange:
            return Violation(
                f"{len(found.missing)} of {found.expected} samples are read by no rank "
                f"({numbers(found.missing)}); {_reads(passes)}",
                epoch,
            )
    return None


def disjoint(seen: Observation) -> Violation | None:
    """No sample is read twice, except for padding. Needs to know what :func:`coverage` does."""
    for epoch, passes, found in shares(seen):
        if found.overlaps and not found.strange:
            return Violation(
                f"{found.repeats} samples are read again, of which padding explains "
                f"{found.padding}; {_reads(passes)}",
                epoch,
            )
    return None


def read_alike(passes: Sequence[Reading]) -> bool:
    """Whether several ranks read the same samples in one order."""
    first, others = passes[0], passes[1:]
    return bool(others) and all(same_order(first, one) for one in others)


def partitions(seen: Observation) -> Violation | None:
    """The ranks share no sample and together read all: :func:`coverage` and :func:`disjoint`."""
    for epoch, passes, found in shares(seen):
        if found.loses or found.overlaps:
            parts = []
            times = Counter(index for one in passes for index in set(one.indices))
            by_all = sorted((i for i in times if times[i] == len(passes) > 1), key=_by_number)
            if by_all:
                who = f"all {len(passes)} ranks" if len(passes) > 2 else "both ranks"
                few = ", ".join(map(str, by_all[:3]))
                parts.append(f"{len(by_all)} samples were read by {who} (such as {few})")
            if found.missing:
                lost = f"{len(found.missing)} of {found.expected}"
                parts.append(f"{lost} samples were read by no rank")
            text = " and ".join(parts) or f"{found.total} samples were read of {found.expected}"
            return Violation(text, epoch)
    return None


# -- steps, lengths


def equal_steps(seen: Observation) -> Violation | None:
    """Every rank takes the same number of steps.

    A rank whose pass is not over may take more: only one that has ended is too short.
    """
    refusing = [rank for rank in seen.ranks if rank.refusal]
    if refusing:
        who = numbers([rank.rank for rank in refusing])
        return Violation(f"cannot be built on rank {who} alone: {refusing[0].refusal}")
    broken = [rank for rank in seen.ranks if rank.error]
    if broken and len(broken) < len(seen.ranks):
        return Violation(f"rank {numbers([rank.rank for rank in broken])} alone {broken[0].error}")
    for epoch, passes in seen.epochs():
        steps = [one.steps for one in passes]
        ended = [one.steps for one in passes if one.ended and not one.endless]
        if ended and min(ended) < max(steps):
            return Violation(f"the ranks take {numbers(steps, 8)} steps", epoch, tuple(steps))
    return None


def miscounts(one: Reading) -> bool:
    """Whether ``len()`` of a reading is not what it yielded, neither before nor after."""
    claims = [claim for claim in (one.claimed, one.later) if claim is not None]
    if one.claimed is None or one.error:
        return False
    over = one.ended and not one.endless
    return all(one.steps > claim for claim in claims) or (
        over and not any(claim - one.hidden <= one.steps <= claim for claim in claims)
    )


def length_true(seen: Observation) -> Violation | None:
    """``len()`` is what is yielded. Needs a length, and a pass that went beyond it or ended."""
    for rank in seen.ranks:
        for epoch, one in enumerate(rank.passes):
            if one.length_error:
                return Violation(f"len() raises {one.length_error}", epoch)
            if one.error:
                break
            if one.claimed is not None and one.endless and one.steps > one.claimed:
                return Violation(f"len() is {one.claimed}, but iterating never ends", epoch)
            if miscounts(one):
                return Violation(
                    f"len() is {one.claimed} on rank {rank.rank}, but {one.steps} are yielded",
                    epoch,
                )
    return None


# -- orders


def same_order(one: Reading, other: Reading) -> bool:
    """Whether two passes yielded one order; of passes that did not end, as far as both go."""
    if one.ended and other.ended and not (one.endless or other.endless):
        if one.checksum is not None:
            return (one.count, one.checksum) == (other.count, other.checksum)
        return list(one.items) == list(other.items)
    first, second = one.indices, other.indices
    shared = min(len(first), len(second))
    return shared >= ENOUGH and bool(first[:shared] == second[:shared])


def repeated(rank: Rank) -> tuple[list[int], int]:
    """The largest group of epochs of a rank that have one order, and how many were compared.

    The epochs are told by their places among the rank's passes.
    """
    groups: list[list[int]] = []
    judged = 0
    for place, one in enumerate(rank.passes):
        if one.error or one.count < ENOUGH:
            continue
        judged += 1
        for group in groups:
            if same_order(rank.passes[group[0]], one):
                group.append(place)
                break
        else:
            groups.append([place])
    largest = max(groups, key=len, default=[])
    return largest if len(largest) > 1 else [], judged


def reshuffles(seen: Observation) -> Violation | None:
    """Epochs differ in order. Needs two passes of :data:`ENOUGH` samples."""
    for rank in seen.ranks:
        alike, _ = repeated(rank)
        if alike:
            first, second = (rank.passes[place].number for place in alike[:2])
            return Violation(
                f"epochs {first} and {second} are in one order",
                second,
                tuple(rank.passes[place].number for place in alike),
            )
    return None


def compared(ranks: Sequence[Rank], others: Sequence[Rank]) -> Iterator[tuple[Reading, Reading]]:
    """The passes of the same ranks and epochs in two worlds that tell of orders."""
    for rank, other in zip(ranks, others, strict=False):
        for one, another in zip(rank.passes, other.passes, strict=False):
            if not (one.error or another.error) and one.count >= ENOUGH:
                yield one, another


def seed_matters(seen: Observation) -> Violation | None:
    """Another seed gives another order. Needs :attr:`Observation.other_seed`."""
    for one, other in compared(seen.ranks, seen.other_seed):
        if same_order(one, other):
            return Violation(f"both begin with {begin(one.indices)}", one.number)
    return None


def deterministic(seen: Observation) -> Violation | None:
    """The same seed and epoch give the same order, also to a sampler that was told it at once.

    Needs :attr:`Observation.again` or :attr:`Observation.jumped`.
    """
    before = {rank.rank: rank for rank in seen.ranks}
    for again in seen.again:
        for epoch in range(len(again.passes)):
            first, second = before[again.rank].items(epoch), again.items(epoch)
            if first is not None and second is not None and first != second:
                return Violation(
                    f"built twice with the same arguments, rank {again.rank} reads "
                    f"{begin(first)} and then {begin(second)}",
                    epoch,
                )
    for jumped in seen.jumped:
        first, second = before[jumped.rank].items(1), jumped.items(0)
        # An endless stream has no epoch to be told.
        if first is not None and second is not None and first != second and not seen.endless:
            return Violation(
                f"epoch 1 begins with {begin(first)} after epoch 0, but with {begin(second)} "
                "for a fresh sampler after set_epoch(1): a resumed run reads other data",
                1,
            )
    return None


def follows_generators(seen: Observation) -> bool | None:
    """Whether the order depends on the global generators; None when that cannot be told."""
    pairs = [
        (rank.items(epoch), apart.items(epoch))
        for rank, apart in zip(seen.ranks, seen.apart, strict=False)
        for epoch in range(len(rank.passes))
    ]
    known = [pair for pair in pairs if None not in pair]
    if seen.expected is None or len(seen.expected) < ENOUGH or not known:
        return None
    return any(left != right for left, right in known)


def ranks_agree(seen: Observation) -> Violation | None:
    """All ranks slice one order, whatever state their global generators are in.

    Needs :attr:`Observation.apart`, from which more is missing when each rank draws for itself.
    """
    if not follows_generators(seen):
        return None
    if not seen.sharded:
        first, second = (ranks[0].items(0) or [] for ranks in (seen.ranks, seen.apart))
        return Violation(
            "two ranks whose global generators differ read different orders: "
            f"{begin(first)} and {begin(second)}"
        )
    if any(rank.error for rank in seen.apart):
        return None
    if seen.endless:
        return _begin_apart(seen)
    for (epoch, passes), (_, others) in zip(seen.epochs(), _epochs(seen.apart), strict=False):
        alike, apart = share(seen, passes), share(seen, others)
        if alike is None or apart is None or apart.strange:
            continue
        # By chance more may be left out; what one rank reads for another is read twice, too.
        if len(apart.missing) > len(alike.missing) and apart.repeats > alike.repeats:
            return Violation(
                "where the ranks' global generators differ, "
                f"{len(apart.missing)} of {apart.expected} samples are read by no rank "
                f"and {apart.repeats} twice; {_reads(others)}",
                epoch,
            )
    return None


def _begin_apart(seen: Observation) -> Violation | None:
    """What the ranks of an endless stream begin with is shared out only from one order."""
    each = len(seen.expected or ()) // max(1, len(seen.ranks))
    begun = [[(rank.items(0) or [])[:each] for rank in ranks] for ranks in (seen.ranks, seen.apart)]
    alike, apart = (sum(map(len, reads)) - len(set().union(*reads)) for reads in begun)
    if alike or not apart:
        return None
    return Violation(
        f"where the ranks' global generators differ, {apart} of their first {each} samples each "
        f"are read twice; {begin(begun[1][0])} on rank {seen.apart[0].rank}",
        0,
    )


def resumable(seen: Observation) -> Violation | None:
    """A sampler with the ``state_dict`` of another goes on with it, or begins its epoch again.

    The epoch after that is the one of the run that was not interrupted.
    """
    if seen.resume_error:
        return Violation(f"resuming from state_dict() raises {seen.resume_error}", 1)
    if not seen.resumed:
        return None
    (left, after), (fresh, later) = seen.resumed
    whole = [one.items(0) for one in seen.jumped[:1]] + [one.items(1) for one in seen.ranks[:1]]
    if fresh not in (left, *whole):
        epoch, told, wanted, found = 1, "", left, fresh
    elif later != after:
        epoch, told, wanted, found = 2, "after the epoch in which it was ", after, later
    else:
        return None
    return Violation(
        f"{told}resumed from state_dict(), it continues with {begin(found)} ({len(found)} items) "
        f"instead of {begin(wanted)} ({len(wanted)} items)",
        epoch,
    )
