"""The one place where the stages meet: paths in, findings out.

``check`` is the library's entry point; the command line, the flake8 plugin and the harness
call nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sampler_lint.discovery import Discovery, find_files, project_root
from sampler_lint.findings import Applicability, FileError, Finding
from sampler_lint.options import DEFAULTS, Options, OptionsOf, weight

if TYPE_CHECKING:
    from sampler_lint.model.linked import Model
    from sampler_lint.model.project import Module, Project
    from sampler_lint.rules import Described, Rule, Suspect

__all__ = ["FixReport", "Options", "OptionsOf", "Report", "Session", "check", "fix"]


@dataclass(slots=True)
class Report:
    """What a check found."""

    findings: list[Finding] = field(default_factory=list)
    """Sorted; suppressed ones are not among them."""
    suppressed: list[Finding] = field(default_factory=list)
    errors: list[FileError] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Every file that was asked for (candidate or not)."""


#: Takes findings that are to be left alone out of a report of the given contents.
Narrow = Callable[[Report, Mapping[str, bytes]], None]


class Session:
    """Keeps the model of each tree between checks (flake8 asks file by file).

    A model is reused only while no file of its tree has other content than it was made from.
    """

    def __init__(self) -> None:
        self._trees: dict[tuple[str, Options], _Tree] = {}

    def tree(
        self,
        root: str,
        options_of: OptionsOf,
        overlay: Mapping[str, bytes],
        shown: Mapping[str, str],
    ) -> _Tree:
        """The tree below ``root``, made now if there is none that fits."""
        key = (root, options_of(root))
        tree = self._trees.get(key)
        if tree is None or not tree.fits(overlay, shown):
            tree = self._trees[key] = _Tree(root, options_of, overlay, shown)
        return tree


class _Tree:
    """One project and, once asked for, the findings of each rule in it."""

    def __init__(
        self,
        root: str,
        options_of: OptionsOf,
        overlay: Mapping[str, bytes],
        shown: Mapping[str, str],
    ) -> None:
        from sampler_lint.model.project import Project

        self._overlay = dict(overlay)
        self.options = options_of(root)
        below = _find([root], options_of).files
        files = {os.path.abspath(path): _short(path) for path in below}
        files.update(shown)
        self.project: Project = Project(root, files, overlay)
        self._found: dict[str, list[tuple[str, Finding]]] = {}

    def fits(self, overlay: Mapping[str, bytes], shown: Mapping[str, str]) -> bool:
        """Whether this tree holds the files with the content asked for."""
        return (
            shown.keys() <= self.project.files.keys()
            and not (self._overlay.keys() - overlay.keys())
            and all(
                self._overlay.get(path) == data or self.project.holds(path, data)
                for path, data in overlay.items()
            )
        )

    @cached_property
    def model(self) -> Model:
        """The linked model of the tree."""
        from sampler_lint.model.linked import Model
        from sampler_lint.model.requirements import Requirements

        asked = self.options.torch_version, self.options.frameworks
        return Model(self.project, Requirements(self.project, *asked))

    def findings(self, rules: Sequence[Rule]) -> dict[str, list[Finding]]:
        """The findings of ``rules`` by absolute path."""
        by_path: dict[str, list[Finding]] = {}
        for rule in rules:
            if rule.code not in self._found:
                self._found[rule.code] = list(self._run(rule, self.model))
            for path, finding in self._found[rule.code]:
                by_path.setdefault(path, []).append(finding)
        return by_path

    def _run(self, rule: Rule, model: Model) -> Iterator[tuple[str, Finding]]:
        seen = set()
        for suspect in rule.check(model):
            finding = _finding(rule, suspect)
            key = (suspect.module.path, finding.start, finding.end)
            if key not in seen:
                seen.add(key)
                yield suspect.module.path, finding


def _short(path: str) -> str:
    """A path that nobody spelled: relative to the working directory when it is below it."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


def _finding(rule: Rule, suspect: Suspect) -> Finding:
    from sampler_lint.rules._region import RegionError, offsets

    source = suspect.module.source
    start, end = offsets(source, suspect.start)
    if suspect.end is not None:
        end = offsets(source, suspect.end)[1]
    fix = None
    if suspect.mend is not None and not suspect.assumes:
        try:
            fix = suspect.mend()
        except RegionError:
            fix = None
    return Finding(
        rule.code,
        suspect.message,
        suspect.module.display,
        source.position(start),
        source.position(end),
        fix,
        suspect.why,
        source.cell_of(source.position(start).row),
        suspect.assumes,
    )


@contextlib.contextmanager
def _paused_collection() -> Iterator[None]:
    """No garbage collection: a model is many small objects, none of which is garbage yet.

    Looking for some took a third of the time of a check.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_paused_collection()
def check(
    paths: Sequence[str],
    options: Options | OptionsOf = DEFAULTS,
    *,
    overlay: Mapping[str, bytes] | None = None,
    session: Session | None = None,
) -> Report:
    """Check the Python files at and below ``paths``.

    The model covers the whole tree the files belong to; only findings in the files asked for
    are reported. ``options`` may be a function that says what holds in a folder. ``overlay``
    gives content for paths instead of what is on disk (an editor's buffer, standard input, a
    fix not yet written). ``session`` keeps models between calls.

    Never raises for what is in a file: that becomes a :class:`FileError`.

    Raises:
        ValueError: ``torch_version`` or ``frameworks`` of the options cannot be read.
    """
    session = session or Session()
    options_of = _options_of(options)
    contents = {os.path.abspath(path): data for path, data in (overlay or {}).items()}
    report = Report()
    asked: dict[str, str] = {}
    roots: dict[str, dict[str, str]] = {}
    for path in paths:
        if os.path.abspath(path) in contents and not os.path.exists(path):
            files = [path]
        else:
            discovery = _find([path], options_of)
            report.errors.extend(discovery.errors)
            files = discovery.files
        root = os.path.abspath(project_root(path))
        for file in files:
            absolute = os.path.abspath(file)
            if absolute not in asked:
                asked[absolute] = file
                roots.setdefault(root, {})[absolute] = file
    report.files = list(asked.values())
    for root, files_of_root in roots.items():
        tree = session.tree(root, options_of, contents, files_of_root)
        _judge(report, tree, files_of_root, options_of)
    report.findings.sort(key=lambda finding: finding.sort_key)
    report.suppressed.sort(key=lambda finding: finding.sort_key)
    report.errors.sort(key=lambda error: (error.path, error.row or 0))
    return report


def _options_of(options: Options | OptionsOf) -> OptionsOf:
    return options if callable(options) else lambda folder: options


def _find(paths: Sequence[str], options_of: OptionsOf) -> Discovery:
    return find_files(paths, lambda folder: options_of(folder).exclusions)


def _judge(report: Report, tree: _Tree, files: Mapping[str, str], options_of: OptionsOf) -> None:
    """Put what there is to say about ``files`` of the tree (absolute path to shown) in order."""
    from sampler_lint.rules import Rule

    chosen = {path: _chosen(path, options_of(os.path.dirname(path))) for path in files}
    rules = {rule for _, rules in set(chosen.values()) for rule in rules if isinstance(rule, Rule)}
    by_path = tree.findings(sorted(rules, key=lambda rule: rule.code))
    report.errors.extend(tree.project.problems(files))
    report.errors.extend(_misplaced(tree, {options for options, _ in chosen.values()}))
    for path, (options, rules_here) in chosen.items():
        codes = {rule.code for rule in rules_here}
        found = [finding for finding in by_path.get(path, ()) if finding.code in codes]
        if found or tree.project.speaks_to_us(path):
            _file(report, found, tree.project.module_at(path), options, rules_here)


@functools.cache
def _rules(options: Options, ignored: tuple[str, ...]) -> tuple[Described, ...]:
    from sampler_lint.rules import selected

    return tuple(
        rule
        for rule in selected(options.select, options.ignore, options.extend_select)
        if weight(rule.code, ignored) < 0
    )


def _chosen(path: str, options: Options) -> tuple[Options, tuple[Described, ...]]:
    """The options, and the rules that are to judge the file."""
    return options, _rules(options, options.ignored_in(path))


def _misplaced(tree: _Tree, options: Iterable[Options]) -> Iterator[FileError]:
    """What a configuration inside the tree says that can only hold for the whole of it."""
    whole = tree.options.of_the_model
    for inner in options:
        for name, value in inner.of_the_model.items():
            if value != whole.get(name):
                key = name.replace("_", "-")
                reason = f"{key} holds for a whole project: write it for {tree.project.root}"
                yield FileError(inner.origin or tree.project.root, reason)


def _file(
    report: Report,
    findings: Sequence[Finding],
    module: Module | None,
    options: Options,
    rules: Sequence[Described],
) -> None:
    """Put the findings of one file where they belong, and those about its comments."""
    from sampler_lint.rules import FileRule, Judged, every_rule
    from sampler_lint.suppressions import Suppressions

    suppressions = Suppressions(module.source) if module and options.respect_noqa else None

    def put(finding: Finding) -> bool:
        if finding.fix is not None and not options.may_fix(finding.code):
            shown = replace(finding.fix, applicability=Applicability.DISPLAY)
            finding = replace(finding, fix=shown)
        silenced = suppressions is not None and suppressions.covers(finding)
        (report.suppressed if silenced else report.findings).append(finding)
        return silenced

    silenced = []
    for finding in findings:
        if finding.assumes and not options.names(finding.code):
            # Not told, but a comment may be there for those who ask for it.
            if suppressions is not None and suppressions.covers(finding):
                silenced.append(finding)
        elif put(finding):
            silenced.append(finding)
    if suppressions is not None and suppressions.speak_to_us:
        asked = frozenset(rule.code for rule in rules)
        known = {rule.code: rule.default for rule in every_rule()}
        judged = Judged(suppressions, silenced, asked, known)
        for rule in rules:
            if isinstance(rule, FileRule):
                for finding in rule.check(judged):
                    put(finding)


@dataclass(slots=True)
class FixReport:
    """What ``fix`` did and what it left."""

    report: Report
    """What a check says of the files as they are now (or would be, if nothing was written)."""
    fixed: list[Finding] = field(default_factory=list)
    """What is gone because it was fixed, at the place where it was then."""
    left: list[tuple[Finding, str]] = field(default_factory=list)
    """Every finding of ``report``, with the reason why it was not fixed."""
    changed: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    """Old and new content of the files that were (or would be) changed."""
    errors: list[FileError] = field(default_factory=list)
    """What went wrong with the fixes, besides the errors of ``report``."""


def fix(
    paths: Sequence[str],
    options: Options | OptionsOf = DEFAULTS,
    *,
    unsafe: bool = False,
    write: bool = True,
    max_rounds: int = 10,
    overlay: Mapping[str, bytes] | None = None,
    narrow: Narrow | None = None,
) -> FixReport:
    """Fix what ``check`` finds in the Python files at and below ``paths``.

    Only files that were asked for are edited, bytes outside the edits stay as they are, and
    each file is written whole or not at all. A second run changes nothing.

    Args:
        paths: files and folders, as for ``check``.
        options: as for ``check``.
        unsafe: whether unsafe fixes are applied, too.
        write: whether changed files are written, or only reported.
        max_rounds: how often to check again after fixing, as a fix may make way for another.
        overlay: as for ``check``.
        narrow: takes findings that are to be left alone out of a report of the given contents.

    Never raises for what is in a file or for a file that cannot be written: that becomes
    a :class:`FileError`.
    """
    from sampler_lint.rounds import Rounds, stamp

    overlay = overlay or {}

    def checked(contents: Mapping[str, bytes]) -> Report:
        report = check(paths, options, overlay=contents)
        if narrow is not None:
            narrow(report, contents)
        return report

    rounds = Rounds(
        checked,
        overlay=overlay,
        stamps={path: stamp(path) for path in _find(paths, _options_of(options)).files},
        unsafe=unsafe,
        write=write,
    )
    rounds.run(max_rounds)
    if write:
        rounds.write()
    return FixReport(rounds.checked, rounds.fixed, rounds.left, rounds.changed, rounds.errors)
