"""What a check needs to know, whichever front asked for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from sampler_lint.findings import Finding, Grade, Severity
from sampler_lint.gitignore import Gitignore


@dataclass(frozen=True, slots=True)
class Options:
    """What holds for the files of one configuration."""

    plugins: tuple[str, ...] = ()
    """Installed packages whose rules are there to choose, besides ours."""
    select: tuple[str, ...] | None = None
    """Code prefixes (``ALL`` for every rule); None for the default rules."""
    ignore: tuple[str, ...] = ()
    extend_ignore: tuple[str, ...] = ()
    """More of them."""
    exclude: tuple[str, ...] = ()
    """gitignore patterns of files to leave out, besides .gitignore and the usual folders."""
    extend_exclude: tuple[str, ...] = ()
    """More of them."""
    respect_noqa: bool = True
    extend_select: tuple[str, ...] = ()
    """Code prefixes to report besides those of ``select``."""
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Code prefixes to leave out in files that match a gitignore pattern (``!``: that do not)."""
    extend_per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """More of them."""
    fixable: tuple[str, ...] | None = None
    """Code prefixes whose fixes may be applied; None for all."""
    unfixable: tuple[str, ...] = ()
    """Code prefixes whose fixes are only shown."""
    known_samplers: tuple[str, ...] = ()
    """Dotted names of functions and classes that build a ``DistributedSampler``."""
    known_loaders: tuple[str, ...] = ()
    """Dotted names of functions and classes that build a ``DataLoader``."""
    torch_version: str | None = None
    """The oldest torch that the project runs on, or a specifier such as ``>=2.4,<2.10``; None
    where the project's own files say."""
    frameworks: tuple[str, ...] | None = None
    """The training frameworks in use, with their versions where that matters
    (``lightning>=2.2``); None where the imports and the project's own files say."""
    likely: bool = False
    """Whether likely findings are told, too."""
    min_severity: Severity = Severity.WARNING
    """The least severity that is told."""
    baseline: str | None = None
    """A list of findings that are left out; see :mod:`sampler_lint.baseline`."""
    folder: str = ""
    """What patterns and the baseline are relative to; the working directory by default."""
    others: Options | None = None
    """Patterns that hold as well and are relative to another folder."""
    origin: str | None = None
    """The configuration file they are from."""

    @property
    def of_the_model(self) -> dict[str, Any]:
        """What holds for a whole project, since its files are understood together."""
        return {name: getattr(self, name) for name in _OF_THE_MODEL if getattr(self, name)}

    @property
    def ignored(self) -> tuple[str, ...]:
        """The code prefixes to leave out in every file."""
        return self.ignore + self.extend_ignore

    @property
    def exclusions(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Patterns of files to leave out, each group after the folder it is relative to."""
        others = self.others.exclusions if self.others is not None else ()
        return (self.folder, self.exclude + self.extend_exclude), *others

    def leaves_out(self, path: str) -> bool:
        """Whether patterns of the configuration leave out the file ``path``."""
        for folder, patterns in self.exclusions:
            below = os.path.relpath(path, folder or os.curdir).replace(os.sep, "/")
            if patterns and not below.startswith("../") and _matches(patterns, below):
                return True
        return False

    def ignored_in(self, path: str) -> tuple[str, ...]:
        """The code prefixes that ``per_file_ignores`` leaves out in the file ``path``."""
        inherited = self.others.ignored_in(path) if self.others is not None else ()
        patterns = self.per_file_ignores + self.extend_per_file_ignores
        if not patterns:
            return inherited
        below = os.path.relpath(path, self.folder or os.curdir).replace(os.sep, "/")
        if below.startswith("../"):
            return inherited
        prefixes = [*inherited]
        for pattern, codes in patterns:
            others = pattern.startswith("!")
            if _matches((pattern[others:],), below) is not others:
                prefixes += codes
        return tuple(prefixes)

    def why_untold(self, finding: Finding) -> str | None:
        """Why a finding that stands is not told; None if it is. Only here that is decided."""
        order = list(Severity)
        if order.index(finding.severity) < order.index(self.min_severity):
            return f"below the severity {self.min_severity.value}"
        if finding.grade is Grade.LIKELY and not self.likely:
            return "only likely (--likely shows them)"
        return None

    @property
    def of_what_stands(self) -> Options:
        """The same but for what only decides which findings are told."""
        return replace(
            self, likely=DEFAULTS.likely, min_severity=DEFAULTS.min_severity, baseline=None
        )

    def beside(self, own: Options) -> Options:
        """Of these, the patterns that hold beside ``own``, which may say other ones instead."""
        return Options(
            exclude=self.exclude if not own.exclude else (),
            extend_exclude=self.extend_exclude,
            per_file_ignores=self.per_file_ignores if not own.per_file_ignores else (),
            extend_per_file_ignores=self.extend_per_file_ignores,
            folder=self.folder,
            others=self.others and self.others.beside(own),
        )

    def may_fix(self, code: str) -> bool:
        """Whether fixes of findings with this code may be applied."""
        return weight(code, self.unfixable) < (
            0 if self.fixable is None else weight(code, self.fixable)
        )


DEFAULTS = Options()

_OF_THE_MODEL = ("known_samplers", "known_loaders", "torch_version", "frameworks")

#: The options of the files in a folder, given by its absolute path.
OptionsOf = Callable[[str], Options]


def weight(code: str, prefixes: tuple[str, ...]) -> int:
    """How exactly prefixes speak of a code: the length of the longest that begins it, else -1."""
    return max(
        (
            0 if prefix == "ALL" else len(prefix)
            for prefix in prefixes
            if prefix == "ALL" or code.startswith(prefix)
        ),
        default=-1,
    )


@cache
def _compiled(patterns: tuple[str, ...]) -> Gitignore:
    return Gitignore(patterns)


def _matches(patterns: tuple[str, ...], path: str) -> bool:
    """Whether gitignore patterns take the file, or a folder that it lies in."""
    ignore = _compiled(patterns)
    parts = path.split("/")
    return any(
        ignore.decide("/".join(parts[:end]), folder=end < len(parts))
        for end in range(1, len(parts) + 1)
    )
