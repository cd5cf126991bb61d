"""Which samples and passes of a long run are kept: the same ones on every rank."""

from __future__ import annotations

#: Indices kept for one pass, unless all are asked for; of a bigger dataset half as many or more.
KEPT_PER_PASS = 10_000

#: Indices that a process keeps of the passes from its start. Of those after it keeps some.
KEPT_PER_PROCESS = 1_000_000

#: Bytes that a process writes of what happens once a pass or more rarely; then it only counts.
LONGEST_LOG = 64 * 2**20

#: An odd number near 2**32 over the golden ratio. Its multiples lie evenly among the numbers below
#: 2**32, also those of evenly spaced indices (Knuth, The Art of Computer Programming, 6.4).
_MULTIPLIER, _LOW = 0x9E3779B1, 2**32 - 1


def bound(one_in: int) -> int:
    """What the hashes of one sample in ``one_in`` lie below."""
    return 2**32 // one_in


def kept(indices: list[int], below: int) -> list[int]:
    """The indices whose hash lies below a :func:`bound`.

    Chosen by hash, they say as much of a share that is a block or each n-th sample as of one that
    is drawn.
    """
    return [one for one in indices if one * _MULTIPLIER & _LOW < below]


def is_kept(index: int, one_in: int) -> bool:
    """Whether an index is kept where one in ``one_in`` is."""
    return bool(kept([index], bound(one_in)))


def one_in(length: int) -> int:
    """Of how many samples of a dataset one is kept."""
    return 1 if length <= KEPT_PER_PASS else -(-length // (KEPT_PER_PASS // 2))


def is_sampled(number: int) -> bool:
    """Whether a late pass is kept: two in a row, four times before the number has doubled.

    So a run of any length keeps some passes of its beginning, middle and end, and their indices
    grow with the logarithm of its length.
    """
    step = 1 << max(0, number.bit_length() - 3)
    return number % step < 2
