"""Options for code that has findings already: baselines, changed lines, comments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from sampler_lint.cli._common import CLEAN, FAILED, FINDINGS, UsageError, complain_of
from sampler_lint.cli._performing import watching

if TYPE_CHECKING:
    from sampler_lint.engine import Narrow, OptionsOf, Report
    from sampler_lint.findings import FileError, Finding


def add_adopting(parser: argparse.ArgumentParser) -> None:
    """Options that leave what is old alone."""
    group = parser.add_argument_group("adopting")
    group.add_argument(
        "--baseline", metavar="FILE", help="do not report the findings listed in FILE"
    )
    group.add_argument(
        "--write-baseline",
        metavar="FILE",
        help="list all findings in FILE instead of reporting them",
    )
    group.add_argument(
        "--diff-base",
        metavar="REV",
        help="report only findings caused by lines changed since the git revision REV",
    )
    group.add_argument(
        "--add-noqa",
        action="store_true",
        help="suppress all findings with comments instead of reporting them",
    )


def narrowing(arguments: argparse.Namespace, paths: Sequence[str]) -> Narrow | None:
    """What leaves only findings on changed lines in a report; None to leave all.

    Raises:
        UsageError: git's revision cannot be used.
    """
    if arguments.diff_base is None:
        return None
    from sampler_lint.changed_lines import ChangedLines, GitError

    try:
        changes = ChangedLines(arguments.diff_base, paths)
    except GitError as error:
        raise UsageError(f"--diff-base {arguments.diff_base}: {error}") from error

    def narrow(report: Report, contents: Mapping[str, bytes]) -> None:
        touch = changes.touch
        try:
            kept = [each for each in report.findings if touch(each, contents.get(each.path))]
        except GitError as error:
            raise UsageError(f"--diff-base: {error}") from error
        still = set(map(id, kept))
        report.left_out["on unchanged lines"] = [
            each for each in report.findings if id(each) not in still
        ]
        report.findings = kept

    return narrow


def note_gone(arguments: argparse.Namespace, report: Report) -> None:
    """Say which baselines list what is no longer found."""
    from sampler_lint.reporters.text import visible

    for path, gone in {} if arguments.quiet else report.gone.items():
        entries = "entry is" if gone == 1 else "entries are"
        print(
            f"note: {gone} {entries} no longer found: --write-baseline {visible(path)} "
            "would list what is left",
            file=sys.stderr,
        )


def put_up_with(arguments: argparse.Namespace, paths: Sequence[str], options: OptionsOf) -> int:
    """Silence or list what is found, as asked, and return the exit code.

    Raises:
        UsageError: both are asked for, only a part is to be taken, or a file cannot be written.
    """
    if arguments.baseline is not None or arguments.diff_base is not None:
        raise UsageError("--add-noqa and --write-baseline take all that is found")
    if not arguments.add_noqa:
        return _write_baseline(arguments, paths, options)
    if arguments.write_baseline is not None:
        raise UsageError("--add-noqa and --write-baseline exclude each other")
    from sampler_lint.cli._adopting import add_noqa

    return add_noqa(arguments, paths, options)


def _write_baseline(arguments: argparse.Namespace, paths: Sequence[str], options: OptionsOf) -> int:
    from dataclasses import replace

    from sampler_lint import baseline, engine
    from sampler_lint.reporters.text import visible
    from sampler_lint.source import Sources

    file: str = arguments.write_baseline
    with watching(arguments) as watch:
        report = engine.check(
            paths, lambda folder: replace(options(folder), baseline=None), watch=watch, edits=False
        )
    try:
        baseline.write(file, report.findings, Sources())
    except baseline.BaselineError as error:
        raise UsageError(f"{error.path}: {error}") from error
    count = len(report.findings)
    if not arguments.quiet:
        print(f"Wrote {count} {'finding' if count == 1 else 'findings'} to {visible(file)}.")
    complain_of(report.errors)
    return FAILED if report.errors else CLEAN


# ``--add-noqa``: silence what is found today, so that what comes tomorrow is seen.


def add_noqa(arguments: argparse.Namespace, paths: Sequence[str], options: OptionsOf) -> int:
    """Write a comment for each finding at and below ``paths`` and return the exit code."""
    from sampler_lint import engine
    from sampler_lint.findings import Grade
    from sampler_lint.suppressions import UNUSED

    with watching(arguments) as watch:
        before = engine.check(paths, options, watch=watch, edits=False)
    errors = list(before.errors)
    files = 0
    findings = [finding for finding in before.findings if finding.code != UNUSED]
    for path, found in groupby(findings, key=lambda finding: finding.path):
        error = _silence(path, list(found))
        files += error is None
        errors += [error] if error else []
    with watching(arguments) as watch:
        checked = engine.check(paths, options, watch=watch, edits=False)
    after = [each for each in checked.findings if each.code != UNUSED]
    if not arguments.quiet:
        print(
            f"Suppressed {len(findings) - len(after)} of {len(findings)} findings "
            f"in {files} {'file' if files == 1 else 'files'}."
        )
    complain_of(errors)
    if errors:
        return FAILED
    return FINDINGS if any(each.grade is Grade.CERTAIN for each in after) else CLEAN


def _silence(path: str, findings: Sequence[Finding]) -> FileError | None:
    """Write the comments of one file; the reason if that cannot be."""
    from sampler_lint.findings import FileError
    from sampler_lint.fixing import apply_edits, parses, write_whole
    from sampler_lint.source import SourceError, SourceFile
    from sampler_lint.suppressions import silence

    try:
        source = SourceFile.read(path)
        text = apply_edits(source.text, silence(source, findings))
        if not parses(text):
            return FileError(path, "would no longer parse with the comments")
        write_whole(path, source.encode(text), expect=source.data)
    except SourceError as error:
        return error.error
    return None
