"""How alike names are. difflib is loaded where somebody asks: most files give no reason to."""

from __future__ import annotations

from collections.abc import Iterable


def closest(name: str, names: Iterable[str], *, most: int, at_least: float) -> list[str]:
    """Up to ``most`` of the names that are ``at_least`` so alike (1 is the same), best first."""
    from difflib import get_close_matches

    return get_close_matches(name, list(names), most, at_least)


def slips(name: str, names: Iterable[str], *, at_least: float) -> list[str]:
    """The names that ``name`` may be a slip of: spelled alike but for underscores, or nearly so."""
    bare = name.replace("_", "").lower()
    alike = [other for other in names if other.replace("_", "").lower() == bare]
    return alike or closest(name, names, most=2, at_least=at_least)


def likeness(one: str, other: str) -> float:
    """How alike two names are, from 0 to 1."""
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one, other).ratio()
