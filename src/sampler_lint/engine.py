"""The one place where the stages meet: paths in, findings out.

``check`` is the library's entry point; the command line, the flake8 plugin and the harness
call nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sampler_lint.cache import Cache, build, digest, unfinished_folder
from sampler_lint.findings import Applicability, FileError, Finding, Grade
from sampler_lint.limits import LARGE_TREE
from sampler_lint.memory import Memory, TreeReport
from sampler_lint.options import DEFAULTS, Options, OptionsOf, weight
from sampler_lint.parallel import Aside
from sampler_lint.roots import project_root
from sampler_lint.timings import Timings, Watch, counted
from sampler_lint.trees import Kept, Session, Tree, files_of, find

if TYPE_CHECKING:
    from sampler_lint.rounds import Decide
    from sampler_lint.rules import Described

__all__ = ["FixReport", "Options", "OptionsOf", "Report", "Session", "check", "fix", "parses"]


@dataclass(slots=True)
class Report:
    """What a check found."""

    findings: list[Finding] = field(default_factory=list)
    """Sorted; suppressed ones are not among them."""
    suppressed: list[Finding] = field(default_factory=list)
    left_out: dict[str, list[Finding]] = field(default_factory=dict)
    """Those that are not told, by the reason: the options, or somebody who took them out of
    ``findings`` (see :data:`Narrow`)."""
    errors: list[FileError] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Every file that was asked for (candidate or not)."""
    gone: dict[str, int] = field(default_factory=dict)
    """How many entries of a baseline are no longer found in the files asked for, by its path."""
    unparsed: int = 0
    """How many of them no finding can be in, and were not parsed (see :data:`LARGE_TREE`)."""
    timings: Timings = field(default_factory=Timings)
    """Where the time went."""

    @property
    def fails(self) -> bool:
        """Whether there is a finding that an exit code has to tell of."""
        return any(finding.grade is Grade.CERTAIN for finding in self.findings)


#: Takes findings that are to be left alone out of a report of the given contents.
Narrow = Callable[[Report, Mapping[str, bytes]], None]


@contextlib.contextmanager
def _paused_collection() -> Iterator[None]:
    """No garbage collection: a model is many small objects, none of which is garbage yet.

    Looking for some took a third of the time of a check. What is frozen meanwhile is freed again:
    ``domain/tried.py`` freezes all that is there before the first class is tried.
    """
    enabled = gc.isenabled()
    frozen = gc.get_freeze_count()
    gc.disable()
    try:
        yield
    finally:
        if not frozen:
            gc.unfreeze()
        if enabled:
            gc.enable()


@_paused_collection()
def check(
    paths: Sequence[str],
    options: Options | OptionsOf = DEFAULTS,
    *,
    overlay: Mapping[str, bytes] | None = None,
    session: Session | None = None,
    cache: Cache | None = None,
    jobs: int = 1,
    parse_all: bool = True,
    watch: Watch | None = None,
    kept: dict[str, Kept] | None = None,
    edits: bool = True,
    related: bool = False,
) -> Report:
    """Check the Python files at and below ``paths``.

    The model covers the whole tree the files belong to; only findings in the files asked for
    are reported.

    Args:
        paths: files and folders.
        options: what holds for all files, or a function that says what holds in a folder.
        overlay: content for paths instead of what is on disk (an editor's buffer, standard
            input, a fix not yet written).
        session: keeps models between calls.
        cache: keeps findings between processes; unused with an overlay or a session.
        jobs: how many processes may work.
        parse_all: whether to parse files that no finding can be in, to tell of syntax errors;
            not done in very big trees (:data:`LARGE_TREE`).
        watch: told how far the check is.
        kept: by root, what the last check found out; it is brought up to date, and what has not
            changed is neither parsed nor tried again.
        edits: whether to work out what each fix changes; else it is only said that there is one,
            which is quicker. A session has its own.
        related: whether to report findings in other files of the tree, too, that rest on one asked
            for: the loop of one file over the loader that another builds.

    Never raises for what is in a file: that becomes a :class:`FileError`.

    Raises:
        ValueError: ``torch_version`` or ``frameworks`` of the options cannot be read.
    """
    options_of = _options_of(options)
    contents = {os.path.abspath(path): data for path, data in (overlay or {}).items()}
    report = Report()
    with report.timings.stage("find files"):
        roots = _asked(paths, options_of, contents, report, watch)
    for root, asked in roots.items():
        if session is not None:
            examined = _of_session(session, root, asked, options_of, contents)
        else:
            recorded = cache if not contents else None
            examination = _Examination(
                *(root, asked, options_of, contents, report.timings, watch, kept), edits=edits
            )
            examined = examination.run(recorded, jobs, parse_all=parse_all)
            report.unparsed += len(asked.keys() & examined.unparsed)
        _told(report, root, examined, asked, options_of, related=related)
    report.findings.sort(key=lambda finding: finding.sort_key)
    report.suppressed.sort(key=lambda finding: finding.sort_key)
    _put_up_with(report, options_of, overlay or {})
    report.errors.sort(key=lambda error: (error.path, error.row or 0))
    return report


def parses(path: str, data: bytes) -> bool:
    """Whether a file can be checked with a content, as it will be."""
    from sampler_lint.workspace.readable import can_be_read

    return can_be_read(path, data)


def _asked(
    paths: Sequence[str],
    options_of: OptionsOf,
    contents: Mapping[str, bytes],
    report: Report,
    watch: Watch | None,
) -> dict[str, dict[str, str]]:
    """The files asked for, by the root of their tree: absolute path to path as spelled."""
    asked: dict[str, str] = {}
    roots: dict[str, dict[str, str]] = {}
    for path in paths:
        if os.path.abspath(path) in contents and not os.path.exists(path):
            files = [path]
        else:
            discovery = find([path], options_of, watch)
            report.errors.extend(discovery.errors)
            files = discovery.files
        root = os.path.abspath(project_root(path))
        for file in files:
            absolute = os.path.abspath(file)
            if absolute not in asked:
                asked[absolute] = file
                roots.setdefault(root, {})[absolute] = file
    report.files = list(asked.values())
    return roots


def _options_of(options: Options | OptionsOf) -> OptionsOf:
    return options if callable(options) else lambda folder: options


def _of_session(
    session: Session,
    root: str,
    asked: Mapping[str, str],
    options_of: OptionsOf,
    contents: Mapping[str, bytes],
) -> TreeReport:
    """What a tree that is kept in memory says."""
    tree = session.tree(root, options_of, contents, asked)
    found = _judged(tree, _choices(asked, options_of))
    for path in asked.keys() & found.unparsed:
        found.errors.update((path, error) for error in tree.project.problems({path: asked[path]}))
    return found


_PAYS_FOR_A_PROCESS = 2**19
_SYNTAX = "syntax of other files"


class _Examination:
    """One tree, examined from the cache or from its files."""

    def __init__(
        self,
        root: str,
        asked: Mapping[str, str],
        options_of: OptionsOf,
        contents: Mapping[str, bytes],
        timings: Timings,
        watch: Watch | None,
        kept: dict[str, Kept] | None,
        *,
        edits: bool,
    ) -> None:
        self._edits = edits
        self._kept = None if kept is None else kept.setdefault(root, Kept())
        self._root = root
        self._asked = asked
        self._options_of = options_of
        self._contents = contents
        self._timings = timings
        self._watch = watch
        with timings.stage("find files"):
            self._files, self._links = files_of(root, options_of, asked, watch)
        self._choices = _choices(self._files, options_of)
        self._about = None if asked.keys() >= self._files.keys() else asked.keys()
        self._parses_all = True

    def run(self, cache: Cache | None, jobs: int, *, parse_all: bool) -> TreeReport:
        """What there is to say about the tree, all of it where it is about files asked for."""
        self._parses_all = parse_all and self._size() <= LARGE_TREE
        found = self._made(None, jobs) if cache is None else self._recalled(cache, jobs)
        if self._parses_all:
            found.errors |= found.syntax_errors
        return found

    def _recalled(self, cache: Cache, jobs: int) -> TreeReport:
        key = self._key()
        keys = [key] if self._about is None else [key, repr((key, sorted(self._about)))]
        with self._timings.stage("cache"):
            memory = Memory(cache, keys, self._files)
            found = memory.recall()
        if found is None:
            # Another process may be about to find out the same.
            with cache.alone(key) as waited:
                if waited:
                    memory = Memory(cache, keys, self._files)
                    found = memory.recall()
                if found is None:
                    found = self._made(memory, jobs)
                    with self._timings.stage("cache"):
                        memory.keep(found)
                    return found
        if self._parses_all:
            errors = self._syntax(sorted(self._asked.keys() & found.unparsed)).result()
            self._add(found, errors)
        with self._timings.stage("cache"):
            memory.keep(found)
        return found

    def _size(self) -> int:
        """How many bytes the files asked for hold together."""
        size = 0
        for path in self._asked:
            if path in self._contents:
                size += len(self._contents[path])
            else:
                with contextlib.suppress(OSError):
                    size += os.stat(path).st_size
        return size

    def _key(self) -> str:
        """What the findings rest on besides files."""
        here = os.getcwd()
        own = os.path.join(here, "")
        spelled = {
            path: shown for path, shown in self._asked.items() if shown != path.removeprefix(own)
        }
        options = self._options_of(self._root)
        choices: list[object] = list(dict.fromkeys(self._choices.values()))
        if len(choices) > 1:
            choices += [(path, choices.index(choice)) for path, choice in self._choices.items()]
        made_by: tuple[object, ...] = build(), self._edits, *sorted(self._links.items())
        plugins = dict.fromkeys(name for each, _ in self._choices.values() for name in each.plugins)
        if plugins:
            from sampler_lint.rules import stamps

            made_by += (stamps(plugins),)
        return repr((made_by, here, self._root, spelled, options.of_the_model, choices))

    def _made(self, memory: Memory | None, jobs: int) -> TreeReport:
        """The report of a model made now."""
        timings = self._timings
        with timings.stage("read and parse"):
            tree = Tree(
                self._root,
                self._options_of(self._root),
                self._files,
                self._contents,
                digest if memory is not None else None,
                jobs,
                self._watch,
                self._kept,
                edits=self._edits,
                about=self._about,
                links=self._links,
            )
        project = tree.project
        unparsed = [path for path in self._asked if not project.is_parsed(path)]
        with self._syntax(unparsed if self._parses_all else [], jobs) as syntax:
            with timings.stage("rules"):
                found = _judged(tree, self._choices, None if project.is_whole else self._about)
            with timings.stage(_SYNTAX):
                if self._watch is not None:
                    self._watch(_SYNTAX, 0, 0)
                self._add(found, syntax.result())
        timings.rules.update(tree.seconds)
        timings.files.update((project.files[path], s) for path, s in project.seconds.items())
        timings.limits.update(tree.limits_met)
        if memory is not None:
            consulted = {
                path: None if held is None else digest(held)
                for path, held in project.consulted.items()
            }
            memory.learn(project.digests, tree.rests_on, consulted, is_whole=project.is_whole)
        return found

    def _syntax(self, paths: Sequence[str], jobs: int = 1) -> Aside:
        """The syntax of files: to each path the reason and the row of an error, or nothing."""

        here = os.getpid()

        def check_all() -> dict[str, tuple[str, int | None] | None]:
            if not paths:
                return {}  # nothing to load the model for
            from sampler_lint.workspace.readable import syntax_error

            errors: dict[str, tuple[str, int | None] | None] = {}
            watch = self._watch if os.getpid() == here else None  # one process speaks
            for path in counted(_SYNTAX, paths, len(paths), watch):
                error = syntax_error(path, functools.partial(self._bytes, path))
                errors[path] = (error.reason, error.row) if error is not None else None
            return errors

        size = 0 if jobs == 1 else self._size()
        return Aside(check_all, forks=jobs > 1 and len(paths) > 1 and size > _PAYS_FOR_A_PROCESS)

    def _bytes(self, path: str) -> bytes:
        from sampler_lint.source import read_bytes

        return self._contents[path] if path in self._contents else read_bytes(path)

    def _add(self, found: TreeReport, errors: Mapping[str, tuple[str, int | None] | None]) -> None:
        for path, error in errors.items():
            if path in found.unparsed:
                found.unparsed.discard(path)
                if error is not None:
                    found.syntax_errors[path] = FileError(self._files[path], *error)


#: How the rules for a file are chosen: its options, and the codes left out for it alone.
_Choice = tuple[Options, tuple[str, ...]]


def _choices(files: Iterable[str], options_of: OptionsOf) -> dict[str, _Choice]:
    """How the rules for each file are chosen."""
    by_folder: dict[str, Options] = {}
    choices: dict[str, _Choice] = {}
    for path in files:
        folder = os.path.dirname(path)
        options = by_folder.get(folder)
        if options is None:
            options = by_folder[folder] = options_of(folder).of_what_stands
        choices[path] = options, options.ignored_in(path)
    return choices


@functools.cache
def _rules(options: Options, ignored: tuple[str, ...]) -> tuple[Described, ...]:
    from sampler_lint.rules import selected

    return tuple(
        rule
        for rule in selected(
            options.select, options.ignored, options.extend_select, options.plugins
        )
        if weight(rule.code, ignored) < 0
    )


def _judged(
    tree: Tree, choices: Mapping[str, _Choice], asked: Collection[str] | None = None
) -> TreeReport:
    """What the rules chosen for each file say of it.

    With ``asked``, comments are judged in these files and in those with findings only.
    """
    from sampler_lint.rules import Rule

    rules = {rule for choice in set(choices.values()) for rule in _rules(*choice)}
    by_path = tree.findings(
        sorted((rule for rule in rules if isinstance(rule, Rule)), key=lambda rule: rule.code)
    )
    report = TreeReport()
    for path, (options, ignored) in choices.items():
        if asked is not None and path not in asked and path not in by_path:
            continue
        project = tree.project
        # Which comments name a rule of another package is not known before they are read.
        named = bool(options.plugins) and project.is_parsed(path)
        if path in by_path or named or project.speaks_to_us(path):
            rules_here = _rules(options, ignored)
            codes = {rule.code for rule in rules_here}
            found = [finding for finding in by_path.get(path, ()) if finding.code in codes]
            report.findings += [
                (path, silenced, finding)
                for silenced, finding in _of_file(tree, path, found, options, rules_here)
            ]
    report.failures = [each.told() for each in tree.failures]
    report.errors = dict(tree.project.errors)
    report.unparsed = {path for path in tree.project.files if not tree.project.is_parsed(path)}
    return report


def _of_file(
    tree: Tree,
    path: str,
    findings: Sequence[Finding],
    options: Options,
    rules: Sequence[Described],
) -> list[tuple[bool, Finding]]:
    """The findings of one file, and those about its comments, and whether each is silenced."""
    from sampler_lint.rules import FileRule, Judged, every_rule

    suppressions = tree.suppressions(path) if options.respect_noqa else None
    told: list[tuple[bool, Finding]] = []

    def put(finding: Finding) -> bool:
        if finding.fix is not None and not options.may_fix(finding.code):
            shown = replace(finding.fix, applicability=Applicability.DISPLAY)
            finding = replace(finding, fix=shown)
        silenced = suppressions is not None and suppressions.covers(finding)
        told.append((silenced, finding))
        return silenced

    silenced = [finding for finding in findings if put(finding)]
    if suppressions is not None and (options.plugins or suppressions.speak_to_us):
        asked = frozenset(rule.code for rule in rules)
        known = {rule.code: rule.default for rule in every_rule(options.plugins)}
        judged = Judged(suppressions, silenced, asked, known)
        for rule in rules:
            if isinstance(rule, FileRule):
                for finding in tree.guarded(rule.code, rule.check(judged), path):
                    put(finding)
    return told


def _told(
    report: Report,
    root: str,
    found: TreeReport,
    asked: Mapping[str, str],
    options_of: OptionsOf,
    *,
    related: bool,
) -> None:
    """Report what there is to say about the files asked for, and what rests on them."""
    for path, error in found.errors.items():
        if path in asked:
            report.errors.append(FileError(asked[path], error.reason, error.row))
    report.errors.extend(found.failures)
    folders = {os.path.dirname(path) for path in asked}
    report.errors.extend(_misplaced(root, options_of, {options_of(each) for each in folders}))
    for path, silenced, finding in found.findings:
        if path not in asked and not (
            related and any(os.path.abspath(place.path) in asked for place in finding.places)
        ):
            continue
        untold = options_of(os.path.dirname(path)).why_untold(finding)
        if untold is None:
            (report.suppressed if silenced else report.findings).append(finding)
        elif not silenced:
            report.left_out.setdefault(untold, []).append(finding)


def _put_up_with(report: Report, options_of: OptionsOf, overlay: Mapping[str, bytes]) -> None:
    """Leave out what baselines list, each for the files of its own configurations."""

    def baseline_of(path: str) -> str | None:
        options = options_of(os.path.dirname(os.path.abspath(path)))
        return options.baseline and os.path.join(options.folder, options.baseline)

    by_baseline: dict[str, list[str]] = {}
    for path in report.files:
        if (file := baseline_of(path)) is not None:
            by_baseline.setdefault(file, []).append(path)
    if not by_baseline:
        return
    from sampler_lint.baseline import Baseline, BaselineError
    from sampler_lint.source import Sources

    sources = Sources(overlay)
    standing = [*report.findings, *itertools.chain.from_iterable(report.left_out.values())]
    for file, paths in by_baseline.items():
        try:
            baseline = Baseline.read(file)
        except BaselineError as error:
            report.errors.append(FileError(error.path, str(error)))
            continue
        here = [each for each in standing if baseline_of(each.path) == file]
        if gone := baseline.gone(here, sources, paths):
            report.gone[baseline.path] = gone
        told = [each for each in report.findings if baseline_of(each.path) == file]
        new = set(map(id, baseline.new(told, sources)))
        known = {id(each): each for each in told if id(each) not in new}
        report.left_out.setdefault("in the baseline", []).extend(known.values())
        report.findings = [each for each in report.findings if id(each) not in known]


def _misplaced(root: str, options_of: OptionsOf, inner: Iterable[Options]) -> Iterator[FileError]:
    """What a configuration inside the tree says that can only hold for the whole of it."""
    whole = options_of(root).of_the_model
    for options in inner:
        for name, value in options.of_the_model.items():
            if value != whole.get(name):
                key = name.replace("_", "-")
                reason = f"{key} holds for a whole project: write it for {root}"
                yield FileError(options.origin or root, reason)


def settle(paths: Sequence[str]) -> tuple[list[str], list[FileError]]:
    """Take back what a run that was ended has half fixed in the trees of ``paths``.

    Returns:
        The files written for it, and what could not be.
    """
    try:
        if not os.listdir(unfinished_folder()):
            return [], []
    except OSError:
        return [], []
    from sampler_lint import unfinished

    return unfinished.settle([project_root(path) for path in paths])


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
    decide: Decide | None = None,
    watch: Watch | None = None,
    related: bool = False,
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
        decide: asked before a fix is made, see :data:`sampler_lint.rounds.Decide`.
        watch: told how far each check is.
        related: as for ``check``; what is found in other files is left.

    Never raises for what is in a file or for a file that cannot be written: that becomes
    a :class:`FileError`.
    """
    from sampler_lint.rounds import Rounds, stamp

    overlay = overlay or {}
    unsettled = settle(paths)[1] if write else []
    kept: dict[str, Kept] = {}

    def checked(contents: Mapping[str, bytes]) -> Report:
        report = check(paths, options, overlay=contents, watch=watch, kept=kept, related=related)
        if narrow is not None:
            narrow(report, contents)
        return report

    rounds = Rounds(
        checked,
        overlay=overlay,
        stamps={path: stamp(path) for path in find(paths, _options_of(options)).files},
        unsafe=unsafe,
        write=write,
        decide=decide,
    )
    rounds.run(max_rounds)
    if write:
        rounds.write()
    errors = [*unsettled, *rounds.errors]
    return FixReport(rounds.checked, rounds.fixed, rounds.left, rounds.changed, errors)
