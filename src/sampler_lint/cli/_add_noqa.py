"""``--add-noqa``: silence what is found today, so that what comes tomorrow is seen."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from sampler_lint.cli._common import CLEAN, FAILED, FINDINGS, complain_of
from sampler_lint.cli._performing import watching

if TYPE_CHECKING:
    from sampler_lint.engine import OptionsOf
    from sampler_lint.findings import FileError, Finding


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
