"""The one place where the stages meet: paths in, findings out.

``check`` is the library's entry point; the command line, the flake8 plugin and the harness
call nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sampler_lint.findings import FileError, Finding


@dataclass(frozen=True, slots=True)
class Options:
    """What a check needs to know, whichever front asked for it."""

    select: tuple[str, ...] | None = None
    """Code prefixes (``ALL`` for every rule); None for the default rules."""
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """gitignore patterns of files to leave out, besides .gitignore and the usual folders."""
    respect_noqa: bool = True


@dataclass(slots=True)
class Report:
    """What a check found."""

    findings: list[Finding] = field(default_factory=list)
    """Sorted; suppressed ones are not among them."""
    suppressed: list[Finding] = field(default_factory=list)
    errors: list[FileError] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Every file that was asked for (candidate or not)."""


def check(
    paths: Sequence[str],
    options: Options = Options(),  # noqa: B008  # frozen
    *,
    overlay: Mapping[str, bytes] | None = None,
) -> Report:
    """Check the Python files at and below ``paths``.

    The model covers the whole tree the files belong to; only findings in the files asked for
    are reported. ``overlay`` gives content for paths instead of what is on disk (an editor's
    buffer, standard input, a fix not yet written).

    Never raises for what is in a file: that becomes a :class:`FileError`.
    """
    raise NotImplementedError
