"""Classes and their objects as their syntax shows them: orders of bases, and what ``self`` is."""

from __future__ import annotations

from sampler_lint.analysis.values import Base

#: Bases that give a class nothing to do with samplers.
NEUTRAL_BASES = frozenset(
    {
        "object",
        "typing.Generic",
        "Generic",
        "abc.ABC",
        "typing.Protocol",
        "typing_extensions.Protocol",
        "typing.NamedTuple",
        "collections.abc.Iterable",
        "collections.abc.Iterator",
        "typing.Iterable",
        "typing.Iterator",
        "collections.abc.Sized",
    }
)


def merge(orders: list[list[Base]]) -> list[Base]:
    """C3: the first head that is in no other's tail, again and again."""
    out: list[Base] = []
    orders = [order for order in orders if order]
    while orders:
        head = next(
            (order[0] for order in orders if not any(order[0] in other[1:] for other in orders)),
            orders[0][0],
        )
        out.append(head)
        rest = ([base for base in order if base != head] for order in orders)
        orders = [order for order in rest if order]
    return out
