"""TOML with the rows that its keys stand in, which no parser of the standard library tells."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_HEADER = re.compile(r"\s*\[\[?(?P<name>[^\[\]]+)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*(?P<key>(?:[\w-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*[\w"'-]+)*)\s*=""")
_PLACE = re.compile(r" \(at (?:line (?P<row>\d+), column \d+|end of document)\)$")


class TomlError(Exception):
    """The text is no TOML; ``row`` is where."""

    def __init__(self, text: str, row: int) -> None:
        super().__init__(text)
        self.row = row


def parse(text: str) -> dict[str, Any]:
    """The document as a dict.

    Raises:
        TomlError: it is none.
    """
    try:
        document: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        last = len(text.splitlines()) or 1
        row = int(place["row"] or last) if place else last
        raise TomlError(_PLACE.sub("", str(error)), min(row, last)) from error
    except (ValueError, RecursionError) as error:  # a number of 5000 digits, 1000 brackets
        raise TomlError(f"cannot be read: {error}", 1) from error
    return document


def row_of(text: str, path: Sequence[str]) -> int:
    """The row of the key ``path`` (``tool``, ``sampler-lint``, ``select``), or of its table.

    Found by the look of lines, so a key inside an inline table is said to be where that begins.
    """
    best, row = 0, 1
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _parts(header["name"])
            here = table
        elif key := _KEY.match(line):
            here = [*table, *_parts(key["key"])]
        else:
            continue
        shared = min(len(here), len(path))
        if shared > best and here[:shared] == list(path[:shared]):
            best, row = shared, number
    return row


def _parts(dotted: str) -> list[str]:
    """The parts of a dotted key, without their quotes."""
    found = re.findall(r""""([^"]*)"|'([^']*)'|([\w-]+)""", dotted)
    return ["".join(groups) for groups in found]
