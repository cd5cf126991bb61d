"""SMP001: a comment suppresses nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sampler_lint.findings import Applicability, Edit, Finding, Fix, Severity
from sampler_lint.rules._base import FileRule, Judged
from sampler_lint.source import SourceFile
from sampler_lint.suppressions import UNUSED, Code, Directive

#: Codes about the linting itself, this rule's among them; they are not judged.
_OWN = "SMP0"


class UnusedSuppression(FileRule):
    """A suppression comment suppresses nothing.

    What it does:
        Reports `# noqa: SMP101`, `# sampler-lint: ignore[SMP101]` and their forms for a whole
        file if they suppress no finding, codes and names that no rule has, and `# sampler-lint:`
        followed by words that are not understood. A code counts as unused only if its rule was
        run on the file. A `# noqa` without codes and codes of other linters are never reported,
        since other tools may need them.

    Why is this bad?
        The comment says that there is a bug where there is none, and will hide a bug that comes
        back. A mistyped code looks as if it suppressed something, and does not.

    Fix safety:
        The fix removes the code, or the whole comment if no code is left. It changes no code that
        runs. It is unsafe where it would delete other words of the comment.

    References:
        - https://docs.astral.sh/ruff/rules/unused-noqa
    """

    code = UNUSED
    name = "unused-suppression"
    symptoms = ("a suppression comment does nothing",)
    severity = Severity.WARNING
    fixable = "sometimes"

    def check(self, file: Judged) -> Iterator[Finding]:
        """One finding for each comment that asks for too much."""
        used: set[tuple[int, int]] = set()
        for finding in file.silenced:
            for directive in file.suppressions.speaking_for(finding.start.row):
                for code in directive.covering(finding) or ():
                    used.add((directive.start, code.start if code else -1))
        ours = tuple({code.rstrip("0123456789") for code in file.known})
        for directive in file.suppressions.directives:
            if directive.is_slip:
                yield _misread(file.suppressions.source, directive)
                continue
            if directive.codes is None:
                if (directive.start, -1) not in used and _is_judged(directive, file):
                    yield self._finding(file, directive, ())
                continue
            unused = [
                code
                for code in directive.codes
                if (directive.start, code.start) not in used
                and not code.prefix.startswith(_OWN)
                and (
                    _is_known_to_be_unused(code.prefix, file)
                    if not code.prefix or code.prefix.startswith(ours)
                    else directive.ours
                )
            ]
            if unused or (directive.ours and not directive.codes):
                yield self._finding(file, directive, unused)

    def _finding(self, file: Judged, directive: Directive, unused: Sequence[Code]) -> Finding:
        source = file.suppressions.source
        where = "this file" if directive.rows is None else "this statement"
        effect = ""
        if unused:
            listed = ", ".join(source.text[code.start : code.end] for code in unused)
            if any(known.startswith(code.prefix) for known in file.known for code in unused):
                verb = "is" if len(unused) == 1 else "are"
                what = f"{listed} {verb} not found in {where}"
            else:
                verb = "is not a rule" if len(unused) == 1 else "are not rules"
                what = f"{listed} {verb} of sampler-lint"
        elif directive.codes is None:
            what = f"nothing is found in {where}"
        else:
            what = "it names no code"
        if directive.comment.alone and directive.rows is not None and len(directive.rows) == 1:
            effect = (
                "a comment on a separate line applies to no statement: put it at the end of one, "
                "or write `# sampler-lint: ignore-file[CODE]` for the file"
            )
        fix = _removal(source, directive, unused)
        return Finding(
            self.code,
            f"unused suppression: {what}",
            source.path,
            source.position(directive.start),
            source.position(directive.end),
            fix,
            severity=self.severity,
            cell=source.cell_of(source.position(directive.start).row),
            effect=effect,
        )


def _misread(source: SourceFile, directive: Directive) -> Finding:
    start, end = source.position(directive.start), source.position(directive.end)
    return Finding(
        UNUSED,
        "this comment is not understood, so it suppresses nothing",
        source.path,
        start,
        end,
        severity=UnusedSuppression.severity,
        cell=source.cell_of(start.row),
        advice="write `# sampler-lint: ignore[CODE]` for a statement, "
        "`# sampler-lint: ignore-file[CODE]` for the file",
    )


def _is_judged(directive: Directive, file: Judged) -> bool:
    """Whether every rule that a request without codes may be for was asked."""
    return directive.ours and _were_asked("", file)


def _is_known_to_be_unused(prefix: str, file: Judged) -> bool:
    if prefix in file.known:
        return prefix in file.asked
    return _were_asked(prefix, file)


def _were_asked(prefix: str, file: Judged) -> bool:
    """Whether the default rules with this prefix were asked (of none, all were)."""
    return all(
        code in file.asked
        for code, default in file.known.items()
        if default and code.startswith(prefix)
    )


def _removal(source: SourceFile, directive: Directive, unused: Sequence[Code]) -> Fix:
    left = [code for code in directive.codes or () if code not in unused]
    if left:
        codes = directive.codes or ()
        content = ", ".join(source.text[code.start : code.end] for code in left)
        edit = Edit(source.path, codes[0].start, codes[-1].end, content)
        return Fix("Remove the unused code", Applicability.SAFE, (edit,))
    edit, words = _without(source, directive)
    applicability = Applicability.UNSAFE if words else Applicability.SAFE
    return Fix("Remove the unused suppression", applicability, (edit,))


def _without(source: SourceFile, directive: Directive) -> tuple[Edit, bool]:
    """The edit that takes the request away, and whether words of a person go with it."""
    comment = directive.comment
    before = source.text[comment.start : directive.start]
    after = source.text[directive.end : comment.end]
    words, _, rest = after.partition("#")
    start, end = directive.start, comment.end
    if rest:
        end = directive.end + len(words)
        return Edit(source.path, start, end, ""), bool(words.strip())
    row = source.position(comment.start).row
    if comment.alone and not before.strip():
        start = source.line_starts[row - 1]
        end = start + len(source.line(row))
    else:
        line = source.line_starts[row - 1]
        start = line + len(source.text[line:start].rstrip())
    return Edit(source.path, start, end, ""), bool(words.strip())
