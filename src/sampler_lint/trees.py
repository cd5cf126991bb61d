"""One project tree: its files, its model and what the rules find in it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sampler_lint.discovery import CHECKED, Discovery, find_files
from sampler_lint.findings import (
    Applicability,
    Doubted,
    Edit,
    Finding,
    Fix,
    Grade,
    Place,
    Refuted,
    Related,
)
from sampler_lint.options import Options, OptionsOf
from sampler_lint.roots import project_root
from sampler_lint.timings import Watch, counted

if TYPE_CHECKING:
    from sampler_lint.domain.model import Model
    from sampler_lint.domain.tried import Tried
    from sampler_lint.failures import Failure
    from sampler_lint.rules import Rule, Suspect
    from sampler_lint.suppressions import Suppressions
    from sampler_lint.syntax.nodes import Node
    from sampler_lint.workspace.moving import Move, Reread
    from sampler_lint.workspace.project import Before, Project
    from sampler_lint.workspace.requirements import Requirements

T = TypeVar("T")

#: After each failure of a rule the files are linked again.
_MOST_FAILURES = 8


def find(paths: Sequence[str], options_of: OptionsOf, watch: Watch | None = None) -> Discovery:
    """The Python files at and below ``paths`` that no configuration excludes."""
    return find_files(paths, lambda folder: options_of(folder).exclusions, watch=watch)


def not_excluded(paths: Sequence[str], options_of: OptionsOf) -> list[str]:
    """The paths without files that a walk through their project leaves out."""
    roots = {os.path.abspath(project_root(path)) for path in paths if os.path.isfile(path)}
    kept = {os.path.realpath(path) for path in find(sorted(roots), options_of).files}
    return [path for path in paths if not _is_found(path) or os.path.realpath(path) in kept]


def _is_found(path: str) -> bool:
    """Whether a walk finds the file unless it leaves it out."""
    return os.path.isfile(path) and path.endswith(CHECKED)


def files_of(
    root: str, options_of: OptionsOf, shown: Mapping[str, str], watch: Watch | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """The files of the tree below ``root``, by absolute path, each with the path to show.

    And the links to them that lie there, each with its file.

    Args:
        root: an absolute path.
        options_of: says what is excluded.
        shown: files that somebody spelled, as they spelled them; they belong to the tree though
            they may be excluded.
        watch: told how far it is.
    """
    here = os.path.join(os.getcwd(), "")
    found = find([root], options_of, watch)
    return {path: path.removeprefix(here) for path in found.files} | dict(shown), found.links


def _configured(path: str, options_of: OptionsOf) -> tuple[str, tuple[Options, ...]]:
    """A path, and what the configurations of its project say of the folders above it."""
    root = os.path.abspath(project_root(path))
    folders = [os.path.dirname(os.path.abspath(path))]
    while folders[-1].startswith(os.path.join(root, "")):
        folders.append(os.path.dirname(folders[-1]))
    return path, tuple(dict.fromkeys(map(options_of, folders)))


class Kept:
    """What was found out about a tree that the next check of it need not find out again."""

    before: Before | None = None
    """Of its files."""
    tried: Tried | None = None
    """Of what its classes do."""


class Session:
    """Keeps the model of each tree between checks (flake8 asks file by file).

    A model is reused only while no file of its tree has other content than it was made from; a
    file that has not changed is not parsed again for the next one.
    """

    def __init__(self, *, edits: bool = True) -> None:
        """``edits`` is as for :func:`engine.check`."""
        self._edits = edits
        self._trees: dict[tuple[str, Options], Tree] = {}
        self._kept: dict[str, Kept] = {}
        """By root."""
        self._asked: dict[tuple[str, tuple[Options, ...]], bool] = {}
        """Whether a file is checked, by its path and what the configurations above it say."""

    def outdate(self) -> None:
        """Something on disk has changed: look at it again, and parse what is not as it was."""
        self._trees.clear()
        self._asked.clear()

    def not_excluded(self, paths: Sequence[str], options_of: OptionsOf) -> list[str]:
        """As the function says; a project is walked through once for each configuration."""
        keys = {path: _configured(path, options_of) for path in paths if _is_found(path)}
        new = [path for path, key in keys.items() if key not in self._asked]
        kept = set(not_excluded(new, options_of)) if new else set()
        self._asked.update((keys[path], path in kept) for path in new)
        return [path for path in paths if path not in keys or self._asked[keys[path]]]

    def tree(
        self,
        root: str,
        options_of: OptionsOf,
        overlay: Mapping[str, bytes],
        shown: Mapping[str, str],
    ) -> Tree:
        """The tree below ``root``, made now if there is none that fits."""
        key = (root, options_of(root))
        tree = self._trees.get(key)
        alone = sum(each == root for each, _ in self._trees) == 1
        if tree is None or not (
            tree.fits(overlay, shown) or (alone and tree.moves(overlay, shown))
        ):
            files, links = files_of(root, options_of, shown)
            kept = self._kept.setdefault(root, Kept())
            tree = self._trees[key] = Tree(
                *(root, key[1], files, overlay), kept=kept, edits=self._edits, links=links
            )
        return tree


class _Told(NamedTuple):
    """What a rule told of a suspect."""

    path: str
    """Absolute."""
    finding: Finding
    draft: Sequence[Edit]
    """What the finding's fix comes to, though its edits may not be asked for."""

    def with_fix(self, fix: Fix | None) -> _Told:
        """The same with another fix."""
        return self._replace(finding=replace(self.finding, fix=fix))

    def unsafe(self, reason: str) -> _Told:
        """The same with an unsafe fix, or with one that is only shown where it is refuted."""
        assert self.finding.fix is not None
        is_refuted = isinstance(reason, Refuted)
        kind = Applicability.DISPLAY if is_refuted else Applicability.UNSAFE
        return self.with_fix(replace(self.finding.fix, applicability=kind, unsafe=reason))


class Tree:
    """One project and, once asked for, the findings of each rule in it."""

    def __init__(
        self,
        root: str,
        options: Options,
        files: Mapping[str, str],
        overlay: Mapping[str, bytes],
        digest: Callable[[bytes], str] | None = None,
        jobs: int = 1,
        watch: Watch | None = None,
        kept: Kept | None = None,
        *,
        edits: bool = True,
        about: Collection[str] | None = None,
        links: Mapping[str, str] | None = None,
    ) -> None:
        """Read the ``files`` (absolute path to shown path).

        ``overlay``, ``digest``, ``jobs``, ``watch``, ``about`` and ``links`` are as for
        :class:`~.workspace.project.Project`, ``edits`` is as for :func:`engine.check`. What is
        ``kept`` is used, and brought up to date when the rules have been asked.
        """
        from sampler_lint.workspace.project import Before, Project

        self._kept = kept
        before = None if kept is None else kept.before or Before()
        self._overlay = dict(overlay)
        self._watch = watch
        self._edits = edits
        self.options = options
        self.project: Project = Project(
            *(root, files, overlay, digest, jobs, watch, before, about, links)
        )
        self.seconds: dict[str, float] = {}
        """How long each rule took; the first that needs a part of the model pays for it."""
        self.failures: list[Failure] = []
        """Where rules failed; what several share at a place is one."""
        self._found: dict[str, list[tuple[str, Finding]]] = {}
        self._suspected: list[tuple[Rule, Suspect]] = []
        self._suppressions: dict[str, Suppressions] = {}
        if options.torch_version is not None or options.frameworks is not None:
            _ = self.requirements  # what cannot be read there is the user's error, not a rule's

    @cached_property
    def requirements(self) -> Requirements:
        """The versions of torch and of the frameworks that the tree asks for."""
        from sampler_lint.workspace.requirements import Requirements

        return Requirements(self.project, self.options.torch_version, self.options.frameworks)

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

    def moves(self, overlay: Mapping[str, bytes], shown: Mapping[str, str]) -> bool:
        """Whether this tree could take other content of its files; if so, it did.

        So it can where nothing that it found out would be found out otherwise.
        """
        from sampler_lint.workspace.moving import Reread

        project, moves = self.project, []
        changed = [path for path, data in overlay.items() if not project.holds(path, data)]
        if not (shown.keys() | overlay.keys() <= project.files.keys()) or self.failures:
            return False
        if "model" not in vars(self) or overlay.keys() != self._overlay.keys():
            return False
        for path in changed:
            module = project.parsed_at(path)
            read = None if module is None else Reread.of(module, overlay[path])
            if read is None:
                return False
            move = read.move() if project.would_read_alike(path, overlay[path]) else None
            if move is None or (move.renamed and self.model.tries(move.module)):
                self._keep_facts(read)
                return False
            moves.append(move)
        whys = [self._moved(suspect, moves) for _, suspect in self._suspected]
        if None in whys:
            return False
        for move in moves:
            move.make()
            self.model.forget_places(move.module.path)
            self._suppressions.pop(move.module.path, None)
        project.hold(overlay)
        self._overlay = dict(overlay)
        before, self._found = self._found, {code: [] for code in self._found}
        seen: set[tuple[str, str, object, object]] = set()
        told: dict[str, list[_Told]] = {}
        for (rule, suspect), why in zip(self._suspected, whys, strict=True):
            suspect.why = why or ()
            told.setdefault(rule.code, []).extend(self._told_of(rule, suspect, seen))
        for code, each in told.items():
            stand = self._still_judged(before[code], each, moves)
            self._found[code] = self._judged(each) if stand is None else stand
        return True

    def _still_judged(
        self,
        before: Sequence[tuple[str, Finding]],
        told: Sequence[_Told],
        moves: Sequence[Move],
    ) -> list[tuple[str, Finding]] | None:
        """What a rule tells after some moves, each fix judged as before; None if that may change.

        It cannot where nothing that came or went in the files is spelled in what is looked at.
        """
        edits = [edit for each in told for edit in each.draft]
        if len(before) != len(told) or not all(move.spells_nothing_else(edits) for move in moves):
            return None
        found = []
        for (_, old), new in zip(before, told, strict=True):
            fix = None
            if old.fix is not None and new.finding.fix is not None:
                if any(f"{move.module.display}:" in (old.fix.unsafe or "") for move in moves):
                    return None  # it says a place
                kind, reason = old.fix.applicability, old.fix.unsafe
                fix = replace(new.finding.fix, applicability=kind, unsafe=reason)
            found.append((new.path, replace(new.finding, fix=fix)))
        return found

    def _keep_facts(self, read: Reread) -> None:
        """Let the next project of the tree have what was read of a file."""
        if self._kept is not None and self._kept.before is not None:
            self._kept.before = read.added_to(self._kept.before)

    def _moved(self, suspect: Suspect, moves: Sequence[Move]) -> tuple[Related, ...] | None:
        """What a suspect rests on, where it is now; None if that is not known."""
        why = []
        for move in moves:
            named = f"{move.module.display}:"
            texts = [
                suspect.message,
                suspect.effect,
                suspect.advice,
                *(r.text for r in suspect.why),
            ]
            if any(named in text for text in texts):
                return None
            if suspect.module is move.module and not all(
                move.knows(node) for node in (suspect.start, suspect.end) if node is not None
            ):
                return None
        for related in suspect.why:
            for move in moves:
                if isinstance(related.place, Place) and related.place.path == move.module.display:
                    place = move.place(related.place)
                    if place is None:
                        return None
                    related = related._replace(place=place)
            why.append(related)
        return tuple(why)

    @cached_property
    def model(self) -> Model:
        """The linked model of the tree."""
        return self._linked(())

    @property
    def limits_met(self) -> dict[str, int]:
        """How often the analysis met a limit, by what it gave up there."""
        model: Model | None = self.__dict__.get("model")  # not to be made for this
        return {} if model is None else model.flow.limits_met

    def _linked(self, hidden: Collection[Node]) -> Model:
        from sampler_lint.analysis.declared import Declared
        from sampler_lint.domain.joining import files_to_join
        from sampler_lint.domain.model import Model
        from sampler_lint.domain.tried import Tried

        options = self.options
        tried = (self._kept and self._kept.tried) or Tried()
        if self._kept is not None:
            self._kept.tried = tried

        def linked() -> Model:
            declared = Declared(self.project, options.known_samplers, options.known_loaders)
            return Model(self.project, self.requirements, declared, hidden, tried)

        model = linked()
        changed = self.project.join(files_to_join(model))
        changed |= self.project.narrow()
        return linked() if changed else model

    def findings(self, rules: Sequence[Rule]) -> dict[str, list[Finding]]:
        """The findings of ``rules`` by absolute path."""
        by_path: dict[str, list[Finding]] = {}
        for rule in counted("rules", rules, len(rules), self._watch):
            if rule.code not in self._found:
                started = time.perf_counter()
                self._found[rule.code] = self._judged([*self.guarded(rule.code, self._run(rule))])
                self.seconds[rule.code] = time.perf_counter() - started
            for path, finding in self._found[rule.code]:
                by_path.setdefault(path, []).append(finding)
        if self._kept is not None:
            self._kept.before = self.project.for_the_next
        return by_path

    def suppressions(self, path: str) -> Suppressions | None:
        """The comments in a file that silence findings; None if it cannot be read."""
        from sampler_lint.rules import names
        from sampler_lint.suppressions import Suppressions

        if path not in self._suppressions:
            module = self.project.module_at(path)
            if module is None:
                return None
            self._suppressions[path] = Suppressions(module.source, names())
        return self._suppressions[path]

    def rests_on(self, path: str) -> bool:
        """Whether a finding may rest on the content of a file."""
        project = self.project
        return project.is_parsed(path) or path in project.seeding or path in project.looked_into

    def _run(self, rule: Rule) -> Iterator[_Told]:
        seen: set[tuple[str, str, object, object]] = set()
        for suspect in _certain_first(self._suspects(rule, self.model, set())):
            if self._is_dead(rule.code, suspect):
                continue
            self._suspected.append((rule, suspect))
            yield from self._told_of(rule, suspect, seen)

    def _is_dead(self, code: str, suspect: Suspect) -> bool:
        """Whether nobody meets the place: nothing of its program uses it, or a setting is off."""
        from sampler_lint.domain.launches import is_installable, launches
        from sampler_lint.domain.settled import never_runs
        from sampler_lint.syntax.nodes import Call, Stmt

        module, node = suspect.module, suspect.start
        place = node if isinstance(node, (Call, Stmt)) else getattr(node, "stmt", None)
        reason = None
        if launches(self.model).is_idle_at(module, node.row):
            if is_installable(self.project, module):
                suspect.grade = Grade.LIKELY  # who installs the package may use it
            else:
                reason = "nothing in the program uses what it is in"
        elif place is not None and never_runs(self.model, place):
            reason = "a test above it, or above each call of its function, leaves it out"
        elif launches(self.model).is_beside_library(module):
            suspect.grade = Grade.LIKELY
        if reason is not None:
            self.model.silent(code, module.facts, node, reason)
        return reason is not None

    def _told_of(
        self, rule: Rule, suspect: Suspect, seen: set[tuple[str, str, object, object]]
    ) -> Iterator[_Told]:
        """What is found of a suspect, unless another was ``seen`` in its place."""
        for told in self.guarded(rule.code, self._finding(rule, suspect)):
            key = (rule.code, suspect.module.path, told.finding.start, told.finding.end)
            if key not in seen:
                seen.add(key)
                yield told

    def _suspects(self, rule: Rule, model: Model, hidden: set[Node]) -> Iterator[Suspect]:
        """What the rule suspects; where it fails at a place, it looks at all others once more."""
        try:
            yield from rule.check(model)
        except Exception as error:
            from sampler_lint.failures import avoidable

            place = next((node for node in avoidable(error) if node not in hidden), None)
            if place is None or len(hidden) == _MOST_FAILURES:
                raise
            self._failed(rule.code, error)
            hidden.add(place)
        else:
            return
        # What the failed rule has asked may be half worked out: link the files anew.
        vars(self).pop("model", None)
        yield from self._suspects(rule, self._linked(hidden), hidden)

    def _failed(self, code: str, error: Exception, path: str | None = None) -> None:
        from sampler_lint.failures import failure

        told = failure(code, error, self.project, path)
        here = [other for other in self.failures if other.path == told.path]
        if any(code in other.codes for other in here):
            return
        for other in here:
            if other.cause == told.cause:
                other.codes.append(code)
                return
        self.failures.append(told)

    def guarded(self, code: str, said: Iterator[T], path: str | None = None) -> Iterator[T]:
        """What a rule says, up to where it fails: its own bug costs its findings, not the run.

        ``path`` is the file that it looks at, if it looks at one at a time.
        """
        try:
            yield from said
        except Exception as error:
            self._failed(code, error, path)

    def _finding(self, rule: Rule, suspect: Suspect) -> Iterator[_Told]:
        from sampler_lint.edits.editor import Editor
        from sampler_lint.edits.region import offsets

        source = suspect.module.source
        start, end = offsets(source, suspect.start)
        if suspect.end is not None:
            end = offsets(source, suspect.end)[1]
        fix: Fix | None = None
        draft: Sequence[Edit] = ()
        candidates: tuple[Fix, ...] = ()
        with self._without_a_fix(rule.code, suspect.module.path):
            fix, draft = self._fix(suspect)
        if suspect.candidates and self._edits:
            with self._without_a_fix(rule.code, suspect.module.path):
                written = (write(Editor(suspect.module)) for write in suspect.candidates())
                candidates = tuple(filter(None, written))
        finding = Finding(
            rule.code,
            suspect.message,
            suspect.module.display,
            source.position(start),
            source.position(end),
            fix,
            suspect.why,
            source.cell_of(source.position(start).row),
            suspect.grade,
            suspect.severity or rule.severity,
            candidates,
            suspect.effect,
            suspect.advice,
            suspect.hides,
        )
        yield _Told(suspect.module.path, finding, draft)

    def _fix(self, suspect: Suspect) -> tuple[Fix | None, Sequence[Edit]]:
        """The fix with its edits, or only announced; and those of a draft, which needs no libcst.

        Raises:
            EditError: there is none.
        """
        from sampler_lint.edits.editor import Editor

        draft = Editor(suspect.module, draft=True)
        fix = suspect.fix(draft) if suspect.fix else None
        if not suspect.fix or not fix:
            return None, ()
        final = fix if draft.is_final or not self._edits else suspect.fix(Editor(suspect.module))
        edits = final.edits if final and self._edits else ()
        return replace(fix, edits=edits), fix.edits

    def _judged(self, told: Sequence[_Told]) -> list[tuple[str, Finding]]:
        """The findings of a rule; each fix is unsafe unless the bug is certain and it is proved.

        Fixes of the same statements are looked at together first, as many as are safe together:
        one by one, the work would grow with the square of what a function holds.
        """
        from sampler_lint.edits.safety import are_safe, place_of

        left = [*told]
        groups: dict[object, list[int]] = {}
        for at, (_, finding, draft) in enumerate(told):
            if finding.fix is None or finding.fix.applicability is Applicability.DISPLAY:
                continue
            if finding.fix.applicability is Applicability.UNSAFE:
                if isinstance(finding.fix.unsafe, Doubted):
                    left[at] = self._unless_refuted(told[at])
            elif finding.grade is Grade.CERTAIN:
                groups.setdefault(place_of(self.model, draft), []).append(at)
            else:
                likely = told[at].unsafe("the finding is only likely")
                left[at] = self._unless_refuted(likely)
        for group in groups.values():
            size = len(group)
            while group:
                some = group[:size]
                if len(some) == 1:
                    left[some[0]] = one = self._alone(told[some[0]])
                    is_safe = one is told[some[0]]
                elif is_safe := are_safe(self.model, [told[at].draft for at in some]):
                    pass
                else:
                    size = len(some) // 2
                    continue
                size = 2 * size if is_safe else 1
                group = group[len(some) :]
        return [(path, finding) for path, finding, _ in left]

    def _alone(self, told: _Told) -> _Told:
        """A finding whose fix is judged for itself: the same if it is safe."""
        from sampler_lint.edits.safety import why_unsafe

        judged = told.with_fix(None)
        with self._without_a_fix(told.finding.code, told.path):
            reason = why_unsafe(self.model, told.draft)
            judged = told if reason is None else told.unsafe(reason)
        return judged

    def _unless_refuted(self, told: _Told) -> _Told:
        """A finding whose fix is unsafe: the same, unless it is known to make the program wrong."""
        from sampler_lint.edits.safety import why_unsafe

        judged = told.with_fix(None)
        with self._without_a_fix(told.finding.code, told.path):
            reason = why_unsafe(self.model, told.draft)
            judged = told.unsafe(reason) if isinstance(reason, Refuted) else told
        return judged

    @contextlib.contextmanager
    def _without_a_fix(self, code: str, path: str) -> Iterator[None]:
        """Where a fix cannot be worked out, the finding has none."""
        from sampler_lint.edits.region import EditError

        try:
            yield
        except EditError:
            pass
        except Exception as error:
            self._failed(code, error, path)


def _certain_first(suspects: Iterable[Suspect]) -> Iterator[Suspect]:
    """The suspects, so that of two at one place the certain one is reported."""
    likely = []
    for suspect in suspects:
        if suspect.grade is Grade.LIKELY:
            likely.append(suspect)
        else:
            yield suspect
    yield from likely
