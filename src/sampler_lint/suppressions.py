"""Comments that silence findings.

On any line of the logical statement a finding starts in (of its header, for a compound one):
``# noqa``, ``# noqa: SMP101,E501``, ``# sampler-lint: ignore``, ``# sampler-lint: ignore[SMP1]``.
For the file: ``# sampler-lint: ignore-file`` with or without codes, and on a line of its own
``# flake8: noqa`` or ``# ruff: noqa``, with or without ``: SMP101``. Codes are prefixes. As in
flake8, ``# noqa:`` followed by anything else than codes silences all.
"""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from functools import cached_property

from sampler_lint.findings import Finding
from sampler_lint.source import SourceFile

_MENTION = re.compile(r"noqa|sampler-lint", re.IGNORECASE)
_CODES = r"(?:\s*:\s*(?P<codes>(?:[A-Z]+[0-9]+[,\s]*)+))?"
_NOQA = re.compile(rf"#\s*noqa\b{_CODES}", re.IGNORECASE)
_FILE_NOQA = re.compile(rf"#\s*(?:flake8|ruff)[:=]\s*noqa\b{_CODES}", re.IGNORECASE)
#: A bracket that is not closed, or another word after ``ignore``, is a slip: it silences nothing.
_OWN = re.compile(
    r"#\s*sampler-lint\s*:\s*ignore(?P<file>-file)?(?:\s*\[(?P<codes>[^\]]*)\]|(?=\s*(?:\#|$)|\s+[^\s\[]))",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Z]+[0-9]*", re.IGNORECASE)

#: Tokens that stand between statements.
_BETWEEN = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


class Suppressions:
    """Which findings of a file its author has silenced. Nothing is parsed before it is asked."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source

    def covers(self, finding: Finding) -> bool:
        """Whether a comment silences ``finding``, which is in this file."""
        if not self._mentioned:
            return False
        everywhere, by_row = self._prefixes
        prefixes = everywhere | by_row.get(finding.start.row, set())
        return finding.code.upper().startswith(tuple(prefixes))

    @cached_property
    def _mentioned(self) -> bool:
        return _MENTION.search(self._source.text) is not None

    @cached_property
    def _prefixes(self) -> tuple[set[str], dict[int, set[str]]]:
        """Silenced code prefixes, for the file and by row; the empty prefix silences all."""
        everywhere: set[str] = set()
        by_row: dict[int, set[str]] = {}
        for first, last, comment, alone in _comments(self._source):
            for match in _OWN.finditer(comment):
                if match["file"]:
                    everywhere |= _split(match["codes"])
            if alone and (match_file := _FILE_NOQA.match(comment)):
                everywhere |= _split(match_file["codes"])
            prefixes: set[str] = set()
            for match in (*_NOQA.finditer(comment), *_OWN.finditer(comment)):
                if not match.groupdict().get("file"):
                    prefixes |= _split(match["codes"])
            if prefixes:
                for row in range(first, last + 1):
                    by_row.setdefault(row, set()).update(prefixes)
        return everywhere, by_row


def _split(codes: str | None) -> set[str]:
    return {""} if codes is None else {code.upper() for code in _CODE.findall(codes)}


def _comments(source: SourceFile) -> Iterator[tuple[int, int, str, bool]]:
    """Each comment with the first and last row it speaks for, and whether it has a line alone.

    Where the file cannot be tokenized, from there on each line speaks for itself.
    """
    rows = range(1, len(source.line_starts) + 1)
    lines = (source.line(row).rstrip("\r\n") + "\n" for row in rows)
    statement: int | None = None
    held: list[tuple[str, bool]] = []
    done = 0
    try:
        for token in tokenize.generate_tokens(lambda: next(lines, "")):
            row = token.start[0]
            if token.type == tokenize.COMMENT:
                alone = not token.line[: token.start[1]].strip()
                if statement is None:
                    yield row, row, token.string, alone
                    done = row
                else:
                    held.append((token.string, alone))
            elif token.type == tokenize.NEWLINE:
                for comment, alone in held:
                    yield statement or row, row, comment, alone
                statement, done = None, row
                held.clear()
            elif statement is None and token.type not in _BETWEEN:
                statement = row
    except (tokenize.TokenError, SyntaxError):
        for row in rows[done:]:
            line = source.line(row)
            start = line.find("#")
            if start >= 0:
                yield row, row, line[start:].rstrip("\r\n"), not line[:start].strip()
