"""Options for code that has findings already: baselines, changed lines, comments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sampler_lint.cli._common import CLEAN, FAILED, UsageError, complain_of
from sampler_lint.cli._performing import watching

if TYPE_CHECKING:
    from sampler_lint.engine import Narrow, OptionsOf, Report


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
    from sampler_lint.cli._add_noqa import add_noqa

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
