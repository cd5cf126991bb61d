"""Comments that silence findings.

On any line of the logical statement a finding starts in (of its header, for a compound one):
``# noqa``, ``# noqa: SMP101,E501``, ``# sampler-lint: ignore``, ``# sampler-lint: ignore[SMP1]``.
For the file: ``# sampler-lint: ignore-file`` with or without codes, and on a line of its own
``# flake8: noqa`` or ``# ruff: noqa``, with or without ``: SMP101``. Codes are prefixes. As in
flake8, ``# noqa:`` followed by anything else than codes silences all. Ours takes rules' names, too,
and pylint's words: ``# sampler-lint: disable=SMP101``.
"""

from __future__ import annotations

import bisect
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from sampler_lint.findings import Edit, Finding
from sampler_lint.source import SourceFile, names_a_rule

#: How every request begins; what only looks like one may stand in a string.
_MENTION = re.compile(r"#\s*(?:(?:flake8|ruff)[:=]\s*)?(?:noqa|sampler[-_ ]?lint)", re.IGNORECASE)
_CODES = r"(?:\s*:\s*(?P<codes>(?:[A-Z]+[0-9]+[,\s]*)+))?"
_NOQA = re.compile(rf"#\s*noqa\b{_CODES}", re.IGNORECASE)
_FILE_NOQA = re.compile(rf"#\s*(?:flake8|ruff)[:=]\s*noqa\b{_CODES}", re.IGNORECASE)
#: A bracket that is not closed, or another word after ``ignore``, is a slip: it silences nothing.
#: So is our name without its hyphen or its colon.
_OWN = re.compile(
    r"#\s*(?:sampler[-_]lint\s*:\s*(?:(?P<known>(?:ignore|disable)(?P<file>-file)?)"
    r"(?:\s*\[(?P<codes>[^\[\]#]*)\]"
    r"|(?:\s*=\s*(?=\w)|\s+(?=(?-i:[A-Z]{3,}[0-9])))(?P<listed>[\w-]+(?:\s*,\s*[\w-]+)*)"
    r"|(?=\s*(?:\#|$)|\s+[^\s\[=]))|(?P<slip>[^#\s](?:[^#]*[^#\s])?))"
    r"|sampler[-_ ]?lint(?:\s*:)?\s*(?P<unheard>(?:ignore|disable|noqa)\b(?:[^#]*[^#\s])?))",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Z]+[0-9]*", re.IGNORECASE)
_WORD = re.compile(r"\w[\w-]*")

#: The rule about these comments. A comment that silences everything of ours does not silence
#: what is said about itself; one must name the rule, or ask every linter to be quiet.
UNUSED = "SMP001"

#: Tokens that stand between statements.
_BETWEEN = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


class Code(NamedTuple):
    """A code as it is written in a comment; ``start`` and ``end`` are offsets in the text."""

    prefix: str
    start: int
    end: int


class Comment(NamedTuple):
    """A comment and the rows that it speaks for."""

    first: int
    last: int
    start: int
    """Offset in the text."""
    text: str
    alone: bool
    """Whether it has its line for itself."""

    @property
    def end(self) -> int:
        """Offset of what follows the comment."""
        return self.start + len(self.text)


class Directive(NamedTuple):
    """One request to be silent."""

    comment: Comment
    start: int
    """Offset in the text."""
    end: int
    rows: range | None
    """The rows it speaks for; None for the whole file."""
    codes: tuple[Code, ...] | None
    """The codes it names; None silences all."""
    ours: bool
    """Whether it speaks to us alone, not to other linters, too."""
    is_slip: bool = False
    """Whether it speaks to us in words that we do not know, and so silences nothing."""

    def covering(self, finding: Finding) -> list[Code | None] | None:
        """What in it silences the finding: codes, or None for "all"; no list if nothing does."""
        if self.rows is not None and finding.start.row not in self.rows:
            return None
        if self.codes is None:
            return None if finding.code == UNUSED and self.ours else [None]
        least = UNUSED[:4] if finding.code == UNUSED else ""
        prefixes = [
            code
            for code in self.codes
            if finding.code.startswith(code.prefix) and code.prefix.startswith(least)
        ]
        return list(prefixes) or None


class Suppressions:
    """Which findings of a file its author has silenced. Nothing is parsed before it is asked."""

    def __init__(self, source: SourceFile, names: Mapping[str, str] | None = None) -> None:
        """Look at a file; ``names`` has the code of each rule by its name."""
        self.source = source
        self._names = names or {}

    def covers(self, finding: Finding) -> bool:
        """Whether a comment silences ``finding``, which is in this file."""
        return any(each.covering(finding) for each in self.speaking_for(finding.start.row))

    def speaking_for(self, row: int) -> list[Directive]:
        """The requests that hold in a row."""
        whole, by_rows = self._by_rows
        place = bisect.bisect_right(by_rows, row, key=lambda pair: pair[0].start) - 1
        rows, there = by_rows[place] if place >= 0 else (range(0), [])
        return [*whole, *there] if row in rows else whole

    @cached_property
    def _by_rows(self) -> tuple[list[Directive], list[tuple[range, list[Directive]]]]:
        """The requests for the whole file, and the others by statement."""
        whole: list[Directive] = []
        by_rows: dict[range, list[Directive]] = {}
        for each in self.directives:
            (whole if each.rows is None else by_rows.setdefault(each.rows, [])).append(each)
        return whole, sorted(by_rows.items(), key=lambda pair: pair[0].start)

    @cached_property
    def speak_to_us(self) -> bool:
        """Whether a comment may name us or one of our rules; cheap."""
        return names_a_rule(self.source.text.lower().encode("utf-8", "surrogatepass"))

    @cached_property
    def directives(self) -> list[Directive]:
        """Every request in the file, in its order."""
        if _MENTION.search(self.source.text) is None:
            return []
        comments = _comments(self.source)
        return [each for comment in comments for each in _directives(comment, self._names)]


def _directives(comment: Comment, names: Mapping[str, str]) -> Iterator[Directive]:
    rows = range(comment.first, comment.last + 1)
    if comment.alone and (match := _FILE_NOQA.match(comment.text)):
        yield _directive(comment, match, None)
    for match in _NOQA.finditer(comment.text):
        yield _directive(comment, match, rows)
    for match in _OWN.finditer(comment.text):
        group = "listed" if match["listed"] is not None else "codes"
        codes = tuple(
            Code(_code_of(word[0], names), *word.span())
            for word in _WORD.finditer(match[group] or "")
        )
        start = comment.start + match.start(group)
        is_slip = match["known"] is None
        yield Directive(
            comment,
            comment.start + match.start(),
            comment.start + match.end(),
            None if match["file"] else rows,
            tuple(Code(each.prefix, start + each.start, start + each.end) for each in codes)
            if match[group] is not None or is_slip
            else None,
            ours=True,
            is_slip=is_slip,
        )


def _code_of(word: str, names: Mapping[str, str]) -> str:
    """The prefix of codes that a word stands for; that of ``all`` begins every code."""
    if word.lower() == "all":
        return ""
    return names.get(word.lower().replace("_", "-"), word.upper())


def _directive(comment: Comment, match: re.Match[str], rows: range | None) -> Directive:
    """What ``noqa`` asks for."""
    codes = None
    if match["codes"] is not None:
        first = comment.start + match.start("codes")
        codes = tuple(
            Code(code[0].upper(), first + code.start(), first + code.end())
            for code in _CODE.finditer(match["codes"])
        )
    start, end = comment.start + match.start(), comment.start + match.end()
    return Directive(comment, start, end, rows, codes, ours=False)


def _comments(source: SourceFile) -> Iterator[Comment]:
    """Every comment of the file.

    Where the file cannot be tokenized, from there on each line speaks for itself.
    """
    rows = range(1, len(source.line_starts) + 1)
    statement: int | None = None
    held: list[tuple[int, str, bool]] = []
    done = 0
    try:
        for token in _tokens(source):
            row = token.start[0]
            if token.type == tokenize.COMMENT:
                alone = not token.line[: token.start[1]].strip()
                start = source.line_starts[row - 1] + token.start[1]
                if statement is None:
                    yield Comment(row, row, start, token.string, alone)
                    done = row
                else:
                    held.append((start, token.string, alone))
            elif token.type == tokenize.NEWLINE:
                for start, text, alone in held:
                    yield Comment(statement or row, row, start, text, alone)
                statement, done = None, row
                held.clear()
            elif statement is None and token.type not in _BETWEEN:
                statement = row
    except (tokenize.TokenError, SyntaxError):
        for row in rows[done:]:
            line = source.line(row)
            start = line.find("#")
            if start >= 0:
                text = line[start:].rstrip("\r\n")
                alone = not line[:start].strip()
                yield Comment(row, row, source.line_starts[row - 1] + start, text, alone)


def _tokens(source: SourceFile) -> Iterator[tokenize.TokenInfo]:
    """The tokens, whatever ends the file's lines.

    Raises:
        tokenize.TokenError, SyntaxError: the file is no Python from some place on.
    """
    rows = range(1, len(source.line_starts) + 1)
    lines = (source.line(row).rstrip("\r\n") + "\n" for row in rows)
    return tokenize.generate_tokens(lines.__next__)


def silence(source: SourceFile, findings: Sequence[Finding]) -> list[Edit]:
    """Edits that put ``# noqa: CODE`` where it silences each of the findings, all of one file.

    The comment goes to the end of the finding's first row, or of the next row of the statement
    that can end in a comment; where a ``noqa`` with codes stands, the code is added to it.
    """
    ends = list(_rows_that_take_a_comment(source))
    by_row: dict[int, set[str]] = {}
    for finding in findings:
        place = bisect.bisect_left(ends, finding.start.row)
        if place < len(ends):
            by_row.setdefault(ends[place], set()).add(finding.code)
    listed = {
        source.position(each.start).row: each
        for each in Suppressions(source).directives
        if each.rows is not None and each.codes and not each.ours
    }
    edits = []
    for row, codes in sorted(by_row.items()):
        if row in listed:
            at = (listed[row].codes or ())[-1].end
            content = "".join(f", {code}" for code in sorted(codes))
        else:
            line = source.line(row).rstrip("\r\n")
            at = source.line_starts[row - 1] + len(line)
            content = f"  # noqa: {', '.join(sorted(codes))}"
        edits.append(Edit(source.path, at, at, content))
    return edits


def _rows_that_take_a_comment(source: SourceFile) -> Iterator[int]:
    """The rows that end neither in a string nor in a backslash."""
    with suppress(tokenize.TokenError, SyntaxError):
        for token in _tokens(source):
            if token.type in {tokenize.NEWLINE, tokenize.NL}:
                yield token.start[0]
