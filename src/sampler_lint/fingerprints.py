"""What stays of a finding when lines are added or removed elsewhere in its file."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sampler_lint.findings import Finding, Grade

if TYPE_CHECKING:
    from sampler_lint.source import SourceFile


def fingerprints(
    findings: Sequence[Finding], sources: Callable[[str], SourceFile | None], folder: str = ""
) -> list[str]:
    """One fingerprint for each finding, all of them different.

    Made of the rule's code, the file relative to ``folder``, the text of the line without its
    white space, that it is likely if it is, and, among findings alike in these, the place in the
    order of lines.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    out = [""] * len(findings)
    for index in sorted(range(len(findings)), key=lambda index: findings[index].sort_key):
        finding = findings[index]
        source = sources(finding.path)
        line = "" if source is None else "".join(source.line(finding.start.row).split())
        kind: tuple[str, ...] = (finding.code, relative_to(finding.path, folder), line)
        if finding.grade is not Grade.CERTAIN:  # whether they are told moves no other's place
            kind = (*kind, finding.grade.value)
        seen[kind] += 1
        text = "\0".join((*kind, str(seen[kind])))
        out[index] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return out


def relative_to(path: str, folder: str = "") -> str:
    """``path`` relative to ``folder`` (default: the working directory), with forward slashes."""
    return os.path.relpath(path, folder or os.curdir).replace(os.sep, "/")
