"""Options for code that has findings already: baselines, changed lines, comments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from sampler_lint.cli._common import CLEAN, FAILED, UsageError, complain_of
from sampler_lint.cli._performing import watching

if TYPE_CHECKING:
    from sampler_lint.baseline import Baseline
    from sampler_lint.changed_lines import ChangedLines
    from sampler_lint.engine import Narrow, OptionsOf, Report
    from sampler_lint.findings import Finding


def add_adopting(parser: argparse.ArgumentParser) -> None:
    """Options that leave what is old alone."""
    group = parser.add_argument_group("adopting")
    group.add_argument(
        "--baseline", metavar="FILE", help="leave out the findings that are listed in FILE"
    )
    group.add_argument(
        "--write-baseline",
        metavar="FILE",
        help="list what is found in FILE instead of reporting it",
    )
    group.add_argument(
        "--diff-base",
        metavar="REV",
        help="only findings on lines changed since the git revision REV, or that rest on such",
    )
    group.add_argument(
        "--add-noqa",
        action="store_true",
        help="silence what is found with comments instead of reporting it",
    )


def narrowing(arguments: argparse.Namespace, paths: Sequence[str]) -> Narrow | None:
    """What takes old findings out of a report; None to leave all.

    Raises:
        UsageError: the baseline or git's revision cannot be used.
    """
    if arguments.baseline is None and arguments.diff_base is None:
        return None
    from sampler_lint.baseline import Baseline, BaselineError
    from sampler_lint.changed_lines import ChangedLines, GitError

    baseline: Baseline | None = None
    changes: ChangedLines | None = None
    try:
        if arguments.baseline is not None:
            baseline = Baseline.read(arguments.baseline)
        if arguments.diff_base is not None:
            changes = ChangedLines(arguments.diff_base, paths)
    except BaselineError as error:
        raise UsageError(str(error)) from error
    except GitError as error:
        raise UsageError(f"--diff-base {arguments.diff_base}: {error}") from error
    return _Narrowing(baseline, changes, quiet=arguments.quiet)


class _Narrowing:
    def __init__(
        self, baseline: Baseline | None, changes: ChangedLines | None, *, quiet: bool
    ) -> None:
        self._baseline = baseline
        self._changes = changes
        self._quiet = quiet
        self._noted: set[tuple[str, ...]] = set()

    def __call__(self, report: Report, contents: Mapping[str, bytes]) -> None:
        from sampler_lint.changed_lines import GitError
        from sampler_lint.reporters import Sources

        if self._baseline is not None:
            sources = Sources(contents)
            standing = [*report.findings, *chain.from_iterable(report.left_out.values())]
            gone = self._baseline.gone(standing, sources, report.files)
            files = tuple(report.files)
            if gone and not self._quiet and files not in self._noted:
                entries = "entry is" if gone == 1 else "entries are"
                print(
                    f"note: {gone} {entries} no longer found: --write-baseline "
                    f"{self._baseline.path} would list what is left",
                    file=sys.stderr,
                )
            self._noted.add(files)  # fixing checks them again and again
            _keep(report, self._baseline.new(report.findings, sources), "in the baseline")
        if self._changes is not None:
            touch = self._changes.touch
            try:
                changed = [each for each in report.findings if touch(each, contents.get(each.path))]
            except GitError as error:
                raise UsageError(f"--diff-base: {error}") from error
            _keep(report, changed, "on unchanged lines")


def _keep(report: Report, findings: list[Finding], reason: str) -> None:
    """Leave only these in the report, and the reason for the others."""
    kept = set(map(id, findings))
    report.left_out[reason] = [each for each in report.findings if id(each) not in kept]
    report.findings = findings


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
    from sampler_lint import baseline, engine
    from sampler_lint.reporters import Sources
    from sampler_lint.reporters.text import visible

    file: str = arguments.write_baseline
    with watching(arguments) as watch:
        report = engine.check(paths, options, watch=watch, edits=False)
    try:
        baseline.write(file, report.findings, Sources())
    except baseline.BaselineError as error:
        raise UsageError(str(error)) from error
    count = len(report.findings)
    if not arguments.quiet:
        print(f"Wrote {count} {'finding' if count == 1 else 'findings'} to {visible(file)}.")
    complain_of(report.errors)
    return FAILED if report.errors else CLEAN
