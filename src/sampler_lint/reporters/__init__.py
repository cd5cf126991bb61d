"""How a run is reported: one module per output format, each with a ``render(outcome) -> str``.

A format is added by adding a module; its name, with ``-`` for ``_``, is the format's.
Reporters know findings and source text, and neither the engine nor the command line.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sampler_lint.findings import Applicability, FileError, Finding
from sampler_lint.source import SourceFile, Sources

#: Modules here that are no format.
_OTHERS = frozenset({"diff"})

#: The value of ``--output-format`` and the module that writes it.
FORMATS: Mapping[str, str] = {
    info.name.replace("_", "-"): f"{__name__}.{info.name}"
    for info in pkgutil.iter_modules(__path__)
    if not info.name.startswith("_") and info.name not in _OTHERS
}


#: What a format that must have a name for each problem calls a file that could not be checked.
NOT_CHECKED = "not-checked"

SITE = "https://sampler-lint.readthedocs.io/"


@dataclass(frozen=True, slots=True)
class FixReport:
    """What ``--fix`` did, or what ``--diff`` would do."""

    fixed: Sequence[Finding]
    left: Sequence[tuple[Finding, str]]
    """Each finding that stays, and the reason."""
    files: int
    """How many files changed."""
    written: bool
    """False when the changes were only shown."""
    proofs: Sequence[tuple[Finding, str, str]] = ()
    """Each finding whose fix was tried, the verdict, and what was seen."""


@dataclass(frozen=True, slots=True)
class RuleText:
    """What there is to read about a rule."""

    name: str
    summary: str
    page: str
    """In Markdown."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything there is to report after a run."""

    findings: Sequence[Finding]
    """Those that stand, sorted."""
    files: int
    """How many files were asked for."""
    unparsed: int = 0
    """How many of them were not parsed, since no finding can be in them."""
    errors: Sequence[FileError] = ()
    """The files that could not be checked, sorted; standard error names them, too."""
    sources: Callable[[str], SourceFile | None] = field(default_factory=Sources)
    quiet: bool = False
    """Whether only findings are printed, and no summary."""
    unsafe: bool = False
    """Whether ``--unsafe-fixes`` was given."""
    color: bool = False
    width: int | None = None
    """The columns of the terminal; None if there is none, and lines are as long as they are."""
    hyperlinks: bool = False
    """Whether the terminal follows links (OSC 8)."""
    suppressed: Sequence[Finding] = ()
    """Those that a comment silences, where they are to be shown."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many others there are that nobody wants to hear of, by the reason."""
    rules: Callable[[], Mapping[str, RuleText]] = dict
    """What there is to read about each rule, by code."""
    fix_report: FixReport | None = None

    @property
    def shown(self) -> list[Finding]:
        """Those that stand and those that are silenced, sorted together."""
        both = [*self.findings, *self.suppressed]
        return sorted(both, key=lambda finding: finding.sort_key)

    def applicable(self, finding: Finding) -> bool:
        """Whether ``--fix``, with the other options as given, would apply the finding's fix."""
        return finding.fix is not None and (
            finding.fix.applicability is Applicability.SAFE
            or (self.unsafe and finding.fix.applicability is Applicability.UNSAFE)
        )


def reporter(name: str) -> Callable[[Outcome], str]:
    """The ``render`` of the format ``name``.

    Raises:
        KeyError: there is no such format.
    """
    render: Callable[[Outcome], str] = importlib.import_module(FORMATS[name]).render
    return render


def shows_edits(name: str) -> bool:
    """Whether the format ``name`` shows what a fix changes: its module says ``SHOWS_EDITS``.

    Raises:
        KeyError: there is no such format.
    """
    return getattr(importlib.import_module(FORMATS[name]), "SHOWS_EDITS", False)


def rule_url(code: str) -> str | None:
    """The public page of the rule ``code``; None of another package's."""
    return f"{SITE}rules/{code.lower()}" if code.startswith("SMP") else None
