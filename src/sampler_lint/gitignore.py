"""gitignore patterns, read as git reads them (https://git-scm.com/docs/gitignore).

Written out rather than taken from ``pathspec``: that library answers for whole paths, parents
included, and (1.1.1) calls a folder ignored under ``*`` followed by ``!*/``, the usual way to
list what is *not* ignored. A walk that prunes folders needs the answer for one entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import groupby

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


#: A pattern with more wildcards than this is matched without backtracking, which would take
#: longer than anybody waits for ``*a*a*a*a*a*a*b``.
_MOST_WILDCARDS = 3
#: The same of wildcards that match across folders: a name is short, a path is not.
_MOST_ACROSS = 2
_LONGEST = 4096

#: Where the plain text at the front of a pattern ends.
_SPECIAL = re.compile(r"[*?\[\\]")

#: The pieces of our regular expressions that may match more than one character.
_ANY_FOLDERS, _ANYTHING, _IN_NAME = "(?:.*/)?", ".*", "[^/]*"
_WILDCARDS = frozenset({_ANY_FOLDERS, _ANYTHING, _IN_NAME})


class Gitignore:
    """The patterns of one ``.gitignore`` file, for entries below the folder it stands in."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Read pattern lines; lines that git finds invalid match nothing, as with git."""
        patterns = [parsed for parsed in map(_parse, lines) if parsed]
        self._folders = _runs((negated, pieces) for negated, _, pieces in patterns)
        self._files = _runs((negated, pieces) for negated, only, pieces in patterns if not only)

    def decide(self, path: str, *, folder: bool) -> bool | None:
        """Whether the entry is ignored (True), taken back (False) or not spoken of (None).

        Args:
            path: the entry relative to the patterns' folder, with forward slashes. Its parents
                are taken to be not ignored.
            folder: whether the entry is a folder.
        """
        for negated, matches in self._folders if folder else self._files:
            if matches(path):
                return not negated
        return None


_Matcher = Callable[[str], object]


def _runs(patterns: Iterable[tuple[bool, list[str]]]) -> list[tuple[bool, _Matcher]]:
    """Neighbours of the same sign joined into one expression; the last pattern comes first."""

    def kind(pattern: tuple[bool, list[str]]) -> tuple[bool, bool]:
        negated, pieces = pattern
        wildcards = [piece for piece in pieces if piece in _WILDCARDS]
        across = len(wildcards) - wildcards.count(_IN_NAME)
        return negated, len(wildcards) > _MOST_WILDCARDS or across > _MOST_ACROSS

    runs: list[tuple[bool, _Matcher]] = []
    for (negated, wild), run in groupby(patterns, key=kind):
        if wild:
            runs += [(negated, partial(_matches, pieces)) for _, pieces in run]
        else:
            joined = "|".join("".join(pieces) for _, pieces in run)
            runs.append((negated, re.compile(joined, re.DOTALL).fullmatch))
    return runs[::-1]


def _matches(pieces: Sequence[str], path: str) -> bool:
    """Whether the pieces match the whole path: all the ways at once, in steps of one piece."""
    size = len(path)
    reached = {0}  # how many characters the pieces so far may have taken
    for piece in pieces:
        if not reached:
            return False
        first = min(reached)
        if piece == _IN_NAME:
            after = set(reached)
            for end in range(first, size):
                if end in after and path[end] != "/":
                    after.add(end + 1)
        elif piece == _ANYTHING:
            after = set(range(first, size + 1))
        elif piece == _ANY_FOLDERS:
            after = reached | {end + 1 for end in range(first, size) if path[end] == "/"}
        else:
            one = _compiled(piece)
            after = {end + 1 for end in reached if end < size and one(path, end, end + 1)}
        reached = after
    return size in reached


@cache
def _compiled(piece: str) -> Callable[[str, int, int], object]:
    return re.compile(piece, re.DOTALL).fullmatch


def _parse(line: str) -> tuple[bool, bool, list[str]] | None:
    """``(negated, folders only, pieces of an expression)`` of a line; None if it is no pattern."""
    line = line.rstrip("\r\n")
    if line.startswith("#"):
        return None
    glob = line.rstrip(" ")
    if glob != line and (len(glob) - len(glob.rstrip("\\"))) % 2:
        glob += " "  # a backslash keeps the first
    negated = glob.startswith("!")
    glob = glob[negated:]
    folders_only = glob.endswith("/")
    glob = glob[: len(glob) - folders_only]
    if not glob or len(glob) > _LONGEST:
        return None
    anchored = "/" in glob
    try:
        pieces = _translate(glob[glob.startswith("/") :], anchored)
        re.compile("".join(pieces))
    except (ValueError, re.error):
        return None
    return negated, folders_only, pieces if anchored else [_ANY_FOLDERS, *pieces]


def _translate(glob: str, anchored: bool) -> list[str]:
    """The regular expression of a glob, in pieces that are wildcards or match one character.

    Raises:
        ValueError: the glob ends in a backslash or has an open bracket.
    """
    pieces: list[str] = []
    index = 0
    while index < len(glob):
        char = glob[index]
        # git cuts plain text off the front of an anchored pattern, and sees ``a**`` as ``**``.
        at_front = anchored and not _SPECIAL.search(glob, 0, index)
        after_slash = index == 0 or glob[index - 1] == "/" or at_front
        index += 1
        if char == "*":
            stars = len(glob) - len(glob[index:].lstrip("*")) - index + 1
            index += stars - 1
            if stars > 1 and after_slash and index == len(glob):
                pieces.append(_ANYTHING)
            elif stars > 1 and after_slash and glob[index] == "/":
                pieces.append(_ANY_FOLDERS)
                index += 1
            else:
                pieces.append(_IN_NAME)
        elif char == "?":
            pieces.append("[^/]")
        elif char == "[":
            members, index = _bracket(glob, index)
            pieces.append(members)
        elif char == "\\":
            if index == len(glob):
                raise ValueError("trailing backslash")
            pieces.append(re.escape(glob[index]))
            index += 1
        else:
            pieces.append(re.escape(char))
    return pieces


def _bracket(glob: str, index: int) -> tuple[str, int]:
    """The expression for the bracket whose content starts at ``index``, and where it ends."""
    negated = glob[index : index + 1] in {"!", "^"}
    index += negated
    first = index
    members = []
    while True:
        char = glob[index : index + 1]
        if not char:
            raise ValueError("open bracket")
        if char == "]" and index > first:
            break
        if named := re.compile(r"\[:(\w+):\]").match(glob, index):
            if named[1] not in _CLASSES:
                raise ValueError(f"unknown class {named[1]}")
            members.append(_CLASSES[named[1]])
            index = named.end()
            continue
        if char == "-" and index > first and glob[index + 1 : index + 2] not in {"", "]"}:
            members.append("-")
            index += 1
            continue
        if char == "\\":
            index += 1
            char = glob[index : index + 1]
            if not char:
                raise ValueError("open bracket")
        members.append(re.escape(char))
        index += 1
    content = "".join(members)
    return (f"[^/{content}]" if negated else f"(?!/)[{content}]"), index + 1
