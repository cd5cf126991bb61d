"""A list of findings that are known and put up with, so that only new ones are told.

A finding is known again by its rule, its file, its line's text and its place among findings
alike in these (:mod:`.fingerprints`), wherever its line has moved to in the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sampler_lint.fingerprints import fingerprints, relative_to

if TYPE_CHECKING:
    from sampler_lint.findings import Finding
    from sampler_lint.source import SourceFile

    Sources = Callable[[str], SourceFile | None]

_VERSION = 1


class BaselineError(Exception):
    """The baseline at ``path`` cannot be used; the text says why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path


@dataclass(frozen=True, slots=True)
class Baseline:
    """The findings in one file."""

    path: str
    known: dict[str, str]
    """Fingerprint → the finding's file, relative to the baseline's folder."""

    @classmethod
    def read(cls, path: str) -> Baseline:
        """The baseline in the file ``path``.

        Raises:
            BaselineError: it cannot be read, or is none.
        """
        relative = os.path.relpath(path)
        shown = path if relative.startswith(os.pardir) else relative
        try:
            with open(path, "rb") as file:
                document = json.load(file)
            if document["version"] != _VERSION:
                raise BaselineError(shown, "is of another version: write it again")
            known = {str(each["fingerprint"]): str(each["path"]) for each in document["findings"]}
        except OSError as error:
            raise BaselineError(shown, f"cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BaselineError(shown, "is not a baseline") from error
        return cls(shown, known)

    def new(self, findings: Sequence[Finding], sources: Sources) -> list[Finding]:
        """The findings that are not in it."""
        prints = fingerprints(findings, sources, os.path.dirname(self.path))
        pairs = zip(findings, prints, strict=True)
        return [finding for finding, fingerprint in pairs if fingerprint not in self.known]

    def gone(self, findings: Sequence[Finding], sources: Sources, checked: Sequence[str]) -> int:
        """How many of its findings are no longer there, in the files that were ``checked``."""
        folder = os.path.dirname(self.path)
        files = {relative_to(path, folder) for path in checked}
        expected = {print_ for print_, path in self.known.items() if path in files}
        return len(expected - {*fingerprints(findings, sources, folder)})


def write(path: str, findings: Sequence[Finding], sources: Sources) -> None:
    """Make ``path`` a baseline of the findings: one a line, in order, so that its diffs read well.

    Raises:
        BaselineError: it cannot be written.
    """
    folder = os.path.dirname(path)
    prints = fingerprints(findings, sources, folder)
    records = sorted(
        (relative_to(finding.path, folder), finding.sort_key, finding.code, fingerprint)
        for finding, fingerprint in zip(findings, prints, strict=True)
    )
    lines = [
        json.dumps({"path": file, "code": code, "fingerprint": fingerprint})
        for file, _, code, fingerprint in records
    ]
    listed = "\n" + ",\n".join(f"  {line}" for line in lines) + "\n" if lines else ""
    text = f'{{"version": {_VERSION}, "findings": [{listed}]}}\n'
    try:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise BaselineError(path, f"cannot be written: {error.strerror}") from error
