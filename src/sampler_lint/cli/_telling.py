"""How a run is reported: options, where the report goes, and what its reader can show."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TextIO

from sampler_lint.cli._common import UsageError, add_color, columns_of, output_format, wants_color

if TYPE_CHECKING:
    from sampler_lint.engine import Report
    from sampler_lint.reporters import Outcome, RuleText


def add_telling(parser: argparse.ArgumentParser) -> None:
    """Options about the report and the exit code."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output-format",
        metavar="FORMAT",
        type=output_format,
        help="text (default), concise, grouped, json, json-lines, sarif, github, gitlab, azure, "
        "junit or rdjson",
    )
    group.add_argument("-o", "--output-file", metavar="FILE", help="write the report to FILE")
    group.add_argument("-q", "--quiet", action="store_true", help="print only findings and errors")
    add_color(group)
    group.add_argument(
        "--statistics",
        action="store_true",
        help="print only the number of findings per rule (as text or json)",
    )
    group.add_argument(
        "--show-fixes",
        action="store_true",
        help="with --fix, list every fix made, in any format and even with --quiet",
    )
    group.add_argument(
        "--ignore-noqa",
        "--disable-noqa",
        action="store_true",
        help="report findings although a comment suppresses them",
    )
    group.add_argument(
        "--show-suppressed",
        action="store_true",
        help="also print suppressed findings, marked as such",
    )
    group.add_argument(
        "--show-settings",
        action="store_true",
        help="print the settings and rules in effect for each PATH, with their origin, and exit",
    )
    group.add_argument(
        "--show-files", action="store_true", help="print the files that would be checked and exit"
    )
    group.add_argument(
        "-e",
        "--exit-zero",
        action="store_true",
        help="exit with 0 even if there are findings or unreadable files",
    )
    group.add_argument(
        "--exit-non-zero-on-fix",
        action="store_true",
        help="with --fix, exit with 1 if a file was changed",
    )


class Printer:
    """Reports one run the way ``arguments`` ask for."""

    def __init__(self, arguments: argparse.Namespace, stream: TextIO) -> None:
        """Prepare to write to ``stream``, unless ``--output-file`` names another place."""
        self._arguments = arguments
        self._stream = stream

    def outcome(self, report: Report, **more: Any) -> Outcome:
        """What there is to say of a report; ``more`` are further fields."""
        from sampler_lint.reporters import Outcome

        arguments = self._arguments
        listener = None if arguments.output_file else self._stream
        color = wants_color(arguments.color, listener)
        more.setdefault("errors", report.errors)
        suppressed = report.suppressed if arguments.show_suppressed else []
        left_out = {**report.left_out, "suppressed": suppressed}
        return Outcome(
            report.findings,
            files=len(report.files),
            unparsed=report.unparsed,
            quiet=arguments.quiet,
            unsafe=arguments.unsafe_fixes,
            color=color,
            width=columns_of(listener),
            hyperlinks=color and follows_links(listener, os.environ),
            suppressed=suppressed,
            left_out={why: len(findings) for why, findings in left_out.items() if findings},
            rules=_rule_texts,
            **more,
        )

    @property
    def shows_edits(self) -> bool:
        """Whether what a fix changes is to be shown."""
        from sampler_lint.reporters import shows_edits

        return not self._arguments.statistics and shows_edits(self._arguments.output_format)

    def tell(self, outcome: Outcome) -> None:
        """Write the report.

        Raises:
            UsageError: its file cannot be written, or the format cannot hold it.
        """
        from sampler_lint.reporters import reporter

        if self._arguments.statistics:
            text = _statistics(outcome, self._arguments.output_format)
        else:
            text = reporter(self._arguments.output_format)(outcome)
        self.say(text)

    def say(self, text: str) -> None:
        """Write ``text`` where the report goes.

        Raises:
            UsageError: its file cannot be written.
        """
        if self._arguments.output_file is None:
            self._stream.write(text)
        else:
            self._write(text, "w")

    def make_sure(self) -> None:
        """Find out whether the report can be written, before anything is changed.

        Raises:
            UsageError: its file cannot be written.
        """
        if self._arguments.output_file is not None:
            self._write("", "a")

    def _write(self, text: str, mode: Literal["w", "a"]) -> None:
        path = self._arguments.output_file
        try:
            with open(
                path, mode, encoding="utf-8", errors="backslashreplace", newline="\n"
            ) as file:
                file.write(text)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def follows_links(stream: object, environment: Mapping[str, str]) -> bool:
    """Whether the terminal behind ``stream`` is one of those known to follow links.

    ``FORCE_HYPERLINK`` decides instead, as elsewhere; the names are those of
    https://github.com/zkat/supports-hyperlinks. Others might print rubbish.
    """
    forced = environment.get("FORCE_HYPERLINK")
    if forced is not None:
        return forced not in {"", "0"}
    if not getattr(stream, "isatty", bool)() or environment.get("CI"):
        return False
    vte = environment.get("VTE_VERSION", "")
    return (
        (vte.isdecimal() and int(vte) >= 5000)
        or bool({"DOMTERM", "WT_SESSION", "KONSOLE_VERSION"} & environment.keys())
        or environment.get("TERM_PROGRAM") in {"Hyper", "iTerm.app", "WezTerm", "vscode", "ghostty"}
        or environment.get("TERM") in {"xterm-kitty", "alacritty", "foot", "xterm-ghostty"}
    )


def _rule_texts() -> dict[str, RuleText]:
    from sampler_lint.reporters import RuleText
    from sampler_lint.rules import every_rule, page, summary

    return {rule.code: RuleText(rule.name, summary(rule), page(rule)) for rule in every_rule()}


def _statistics(outcome: Outcome, form: str) -> str:
    """How many findings each rule has, most first."""
    from collections import Counter

    if form not in {"text", "json"}:
        raise UsageError(f"--statistics is printed as text or json, not as {form}")
    counts = Counter(finding.code for finding in outcome.findings)
    fixable = Counter(each.code for each in outcome.findings if outcome.applicable(each))
    names = {code: text.name for code, text in _rule_texts().items()}
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if form == "json":
        import json

        return (
            json.dumps(
                [
                    {"code": code, "name": names[code], "count": count, "fixable": fixable[code]}
                    for code, count in rows
                ],
                indent=2,
            )
            + "\n"
        )
    from sampler_lint.reporters.text import closing

    lines = [
        f"{count:>5}  {code}  [{'*' if fixable[code] else ' '}] {names[code]}\n"
        for code, count in rows
    ]
    return "".join([*lines, closing(outcome)])
