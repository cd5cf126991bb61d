"""gitignore patterns, read as git reads them (https://git-scm.com/docs/gitignore).

Written out rather than taken from ``pathspec``: that library answers for whole paths, parents
included, and (1.1.1) calls a folder ignored under ``*`` followed by ``!*/``, the usual way to
list what is *not* ignored. A walk that prunes folders needs the answer for one entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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


class Gitignore:
    """The patterns of one ``.gitignore`` file, for entries below the folder it stands in."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Read pattern lines; lines that git finds invalid match nothing, as with git."""
        patterns = [parsed for parsed in map(_parse, lines) if parsed]
        self._folders = _runs((negated, regex) for negated, _, regex in patterns)
        self._files = _runs((negated, regex) for negated, only, regex in patterns if not only)

    def decide(self, path: str, *, folder: bool) -> bool | None:
        """Whether the entry is ignored (True), taken back (False) or not spoken of (None).

        Args:
            path: the entry relative to the patterns' folder, with forward slashes. Its parents
                are taken to be not ignored.
            folder: whether the entry is a folder.
        """
        for negated, regex in self._folders if folder else self._files:
            if regex.fullmatch(path):
                return not negated
        return None


def _runs(patterns: Iterable[tuple[bool, str]]) -> list[tuple[bool, re.Pattern[str]]]:
    """Neighbours of the same sign joined into one expression; the last pattern comes first."""
    runs = [
        (negated, re.compile("|".join(regex for _, regex in run), re.DOTALL))
        for negated, run in groupby(patterns, key=lambda pattern: pattern[0])
    ]
    return runs[::-1]


def _parse(line: str) -> tuple[bool, bool, str] | None:
    """``(negated, folders only, regular expression)`` of a line, or None if it is no pattern."""
    line = line.rstrip("\r\n")
    if line.startswith("#"):
        return None
    glob = re.sub(r"(?<!\\)((?:\\\\)*) +$", r"\1", line)
    negated = glob.startswith("!")
    glob = glob[negated:]
    folders_only = glob.endswith("/")
    glob = glob[: len(glob) - folders_only]
    if not glob:
        return None
    anchored = "/" in glob
    try:
        regex = _translate(glob[glob.startswith("/") :])
        re.compile(regex)
    except (ValueError, re.error):
        return None
    return negated, folders_only, regex if anchored else f"(?:.*/)?{regex}"


def _translate(glob: str) -> str:
    """The regular expression of a glob.

    Raises:
        ValueError: the glob ends in a backslash or has an open bracket.
    """
    regex = []
    index = 0
    while index < len(glob):
        char = glob[index]
        after_slash = index == 0 or glob[index - 1] == "/"
        index += 1
        if char == "*":
            stars = len(glob) - len(glob[index:].lstrip("*")) - index + 1
            index += stars - 1
            if stars > 1 and after_slash and index == len(glob):
                regex.append(".+")
            elif stars > 1 and after_slash and glob[index] == "/":
                regex.append("(?:.+/)?")
                index += 1
            else:
                regex.append("[^/]*")
        elif char == "?":
            regex.append("[^/]")
        elif char == "[":
            members, index = _bracket(glob, index)
            regex.append(members)
        elif char == "\\":
            if index == len(glob):
                raise ValueError("trailing backslash")
            regex.append(re.escape(glob[index]))
            index += 1
        else:
            regex.append(re.escape(char))
    return "".join(regex)


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
