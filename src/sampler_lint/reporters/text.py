"""Text for people: each finding with its source lines, the way to it, its fix, and a summary.

What comes from a file (names, paths, source lines) is shown with every unprintable character
escaped, so that no file can send a command to the terminal that shows it.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator

from sampler_lint.findings import Applicability, Finding
from sampler_lint.reporters import FixReport, Outcome, rule_url
from sampler_lint.source import SourceFile

_TAB = 4
_WIDTH = 110
"""Terminal cells of one source line that are shown at most."""
_ROWS = 5
"""Rows of one finding that are shown."""
_LEAST = 40
"""The same in a very narrow terminal."""
_INDENT = 4
"""Spaces before the further rows of a text that is too long for one."""
_CUT = "..."
_LEFT = 20
"""When more is left, the summary counts by reason; where it is, is said above."""

_STYLES = {"bold": "1", "red": "1;31", "blue": "34", "cyan": "36"}
_HELP = {
    Applicability.SAFE: "fix available: {}",
    Applicability.UNSAFE: "fix available: {} (unsafe: needs --unsafe-fixes)",
    Applicability.DISPLAY: "suggestion: {}",
}


class Painter:
    """Colours and links, where there is a terminal that shows them."""

    def __init__(self, outcome: Outcome | None = None) -> None:
        self._color = outcome is not None and outcome.color
        self._links = outcome is not None and outcome.hyperlinks

    def __call__(self, style: str, text: str) -> str:
        """``text`` in a style."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self._color else text

    def link(self, address: str | None, text: str) -> str:
        """``text`` as a link (https://gist.github.com/egmontkob/eb114294efbcd5adb1944c9f3cb5feda)."""
        return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\" if self._links and address else text


def render(outcome: Outcome) -> str:
    """Every finding, then the summary."""
    return "\n".join(filter(None, (render_findings(outcome), closing(outcome))))


def render_findings(outcome: Outcome) -> str:
    """Every finding with what belongs to it, a blank line between two."""
    paint = Painter(outcome)
    return "\n".join("\n".join(_finding(each, outcome, paint)) + "\n" for each in outcome.shown)


def closing(outcome: Outcome) -> str:
    """The summary as the last lines of a report; nothing where only findings are printed."""
    return "" if outcome.quiet else f"{summary(outcome)}\n"


def summary(outcome: Outcome) -> str:
    """One sentence with the honest counts; after fixes also what was left, and why."""
    report = outcome.fix_report
    if report is not None and (report.fixed or report.left or report.proofs):
        proofs = [
            f"{visible(each.place)}: {each.code} {verdict}: {visible(evidence)}\n"
            for each, verdict, evidence in report.proofs
        ]
        return "".join([*proofs, _of_fixes(report, _left_out(outcome, " ({})"))])
    files = _count(outcome.files, "file")
    left_out = _left_out(outcome, "; {}")
    if outcome.findings:
        fixable = _fixable(outcome)
        return f"Found {_count(len(outcome.findings), 'finding')}{fixable} in {files}{left_out}."
    if outcome.errors:
        errors = _count(len(outcome.errors), "error")
        return f"No findings in {files}, but {errors}: not all was checked{left_out}."
    if not outcome.files:
        return "No Python files found."
    if outcome.unparsed:
        searched = f"{outcome.unparsed} of them searched for sampler words only, not parsed"
        return f"All clear: {files} checked, {searched}{left_out}."
    return f"All clear: {files} checked{left_out}."


def folded(text: str, width: int | None, *, before: int = 0, hanging: int = _INDENT) -> str:
    """``text`` in rows of at most ``width`` characters, broken between words.

    ``before`` characters stand before the first row already, ``hanging`` spaces go before others.
    """
    if width is None:
        return text
    rows = textwrap.wrap(
        text,
        width,
        initial_indent=" " * before,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(rows).removeprefix(" " * before)


def visible(text: str) -> str:
    """``text`` with every unprintable character as its escape."""
    if text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _left_out(outcome: Outcome, template: str) -> str:
    """``3 findings in the baseline``, in a template; nothing if there are none."""
    counts = [f"{_count(number, 'finding')} {why}" for why, number in outcome.left_out.items()]
    return template.format(", ".join(counts)) if counts else ""


def _fixable(outcome: Outcome) -> str:
    now = sum(map(outcome.applicable, outcome.findings))
    unsafe = 0
    if not outcome.unsafe:
        unsafe = sum(
            each.fix is not None and each.fix.applicability is Applicability.UNSAFE
            for each in outcome.findings
        )
    if now and unsafe:
        return f" ({now} fixable with --fix, {unsafe} more with --unsafe-fixes)"
    if now:
        return f" ({now} fixable with --fix)"
    if unsafe:
        return f" ({unsafe} fixable with --fix --unsafe-fixes)"
    return ""


def _of_fixes(report: FixReport, left_out: str) -> str:
    verb = "Fixed" if report.written else "Would fix"
    lines = "".join(f"{line}\n" for line in fixes(report))
    fixed = _count(len(report.fixed), "finding")
    head = f"{lines}{verb} {fixed} in {_count(report.files, 'file')}"
    if not report.left:
        return f"{head}; none left{left_out}."
    left = [f"{visible(each.place)}: {each.code} ({visible(why)})" for each, why in report.left]
    if len(left) == 1:
        return f"{head}; 1 left{left_out}: {left[0]}"
    if len(left) > _LEFT:
        left = _by_reason(report.left)
    return "\n  ".join([f"{head}; {len(report.left)} left{left_out}:", *left])


def fixes(report: FixReport) -> list[str]:
    """Each fix in a line: the place, the code, what was done."""
    return [_made(each, "fixed" if report.written else "would be fixed") for each in report.fixed]


def _made(finding: Finding, done: str) -> str:
    """What a fix did, and in which files besides the finding's own."""
    assert finding.fix is not None
    others = ", ".join(path for path in finding.fix.paths if path != finding.path)
    also = f" (in {others}, too)" if others else ""
    return visible(f"{finding.place}: {finding.code} {done}: {finding.fix.message}{also}")


def _by_reason(left: Iterable[tuple[Finding, str]]) -> list[str]:
    """Why so many are left, most frequent reason first."""
    reasons: dict[str, Counter[str]] = {}
    for finding, why in left:
        reasons.setdefault(visible(why), Counter())[finding.code] += 1
    return [
        f"{counts.total()} {why} ({_codes(counts)})"
        for why, counts in sorted(reasons.items(), key=lambda item: -item[1].total())
    ]


def _codes(counts: Counter[str]) -> str:
    """``SMP102, 2 SMP201``."""
    return ", ".join(code if n == 1 else f"{n} {code}" for code, n in sorted(counts.items()))


def heading(
    finding: Finding, outcome: Outcome, paint: Painter | None = None, *, whole: bool = False
) -> str:
    """The finding in one line; ``whole`` also says what comes of it and what to do."""
    paint = paint or Painter()
    place = paint("bold", visible(finding.place))
    text = finding.whole if whole else finding.message
    return f"{place}: {marked(finding, outcome, paint)} {visible(text)}"


def marked(finding: Finding, outcome: Outcome, paint: Painter) -> str:
    """The finding's code, with a star if its fix would be applied, and whether it is silenced."""
    code = paint.link(rule_url(finding.code), paint("red", finding.label))
    if finding in outcome.suppressed:
        return f"{code} (suppressed)"
    return f"{code} [{paint('cyan', '*')}]" if outcome.applicable(finding) else code


def _finding(finding: Finding, outcome: Outcome, paint: Painter) -> Iterator[str]:
    width = outcome.width
    message = visible(finding.message)
    place = heading(finding, outcome, paint).removesuffix(message)
    before = len(heading(finding, outcome)) - len(message)
    yield place + folded(message, width, before=before)
    source = outcome.sources(finding.path)
    if source is not None:
        yield from _snippet(finding, source, paint, width)
    for text in filter(None, (finding.effect, *map(str, finding.why))):
        note = folded(visible(text), width, before=len("    note: "))
        yield f"    {paint('blue', 'note:')} {note}"
    if finding.fix is None and finding.advice:
        advice = folded(visible(finding.advice), width, before=len("    help: "))
        yield f"    {paint('cyan', 'help:')} {advice}"
    if finding.fix is not None:
        fix = _HELP[finding.fix.applicability].format(visible(finding.fix.message))
        if finding.fix.unsafe:
            is_unsafe = finding.fix.applicability is Applicability.UNSAFE
            head = f"{fix.removesuffix(')')}: " if is_unsafe else f"{fix} (not applied: "
            fix = f"{head}{visible(finding.fix.unsafe)})"
        fix = folded(fix, width, before=len("    help: "))
        yield f"    {paint('cyan', 'help:')} {fix}"


def _snippet(
    finding: Finding, source: SourceFile, paint: Painter, width: int | None
) -> Iterator[str]:
    """The finding's rows with a numbered margin, each underlined where the finding is."""
    first, last = finding.start.row, finding.end.row
    rows = list(range(first, min(last, len(source.line_starts)) + 1))
    above = first - finding.shown[0].row
    margin = len(str(last - above))
    bar = paint("blue", "|")
    room = _WIDTH if width is None else max(_LEAST, min(_WIDTH, width - margin - len(" | ......")))
    if rows:
        yield f"{'':{margin}} {bar}"
    for row in rows:
        if len(rows) > _ROWS and _ROWS - 2 <= row - first < len(rows) - 1:
            if row - first == _ROWS - 2:
                yield _CUT
            continue
        line = source.line(row).rstrip("\r\n")
        body = len(line) - len(line.lstrip())
        start = finding.start.column - 1 if row == first else body
        end = finding.end.column - 1 if row == last else len(line.rstrip())
        shown, mark = _underlined(line, start, end, room)
        number = paint("blue", f"{row - above:{margin}}")
        yield f"{number} {bar} {shown}".rstrip()
        yield f"{'':{margin}} {bar} {mark[0]}{paint('red', mark[1])}"


def _underlined(line: str, start: int, end: int, room: int) -> tuple[str, tuple[str, str]]:
    """``line`` as shown in ``room`` cells, and the padding and carets that go beneath characters
    start to end.
    """
    shown: list[str] = []
    edges = [0]
    for character in line:
        if character == "\t":
            shown.append(" " * (_TAB - edges[-1] % _TAB))
        else:
            shown.append(_visible(character))
        edges.append(edges[-1] + _cells(shown[-1]))
    start = min(start, len(line))
    end = max(start, min(end, len(line)))

    low, high = 0, len(line)
    if edges[-1] > room:
        # Keep some of what stands before the finding, and the finding's beginning.
        left = min(max(0, edges[start] - room // 3), edges[-1] - room)
        low = next(index for index, edge in enumerate(edges) if edge >= left)
        high = max(index for index, edge in enumerate(edges) if edge <= left + room)
    before, after = _CUT if low else "", _CUT if high < len(line) else ""
    end = max(start, min(end, high))
    padding = len(before) + edges[start] - edges[low]
    carets = max(1, edges[end] - edges[start])
    text = before + "".join(shown[low:high]) + after
    return text, (" " * padding, "^" * carets)


def _cells(shown: str) -> int:
    """How many terminal cells ``shown`` takes."""
    if shown.isascii():
        return len(shown)
    return sum(_cell(character) for character in shown)


def _cell(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Me":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
