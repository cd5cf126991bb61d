"""Fix until quiet: rounds of check, choose, edit in memory, check again.

A round that makes things worse is taken back before anything is written: when a file would no
longer parse or be encodable, when a fix leaves its own finding standing or brings up another
that stays, when fixes undo each other. What is taken back is not tried again, so a second run
finds the same and changes nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from sampler_lint.findings import Applicability, Edit, FileError, Finding, Fix, Grade
from sampler_lint.fixing import (
    apply_edits,
    choose,
    clear_stale,
    edits_of,
    moved,
    parses,
    refusal,
    why_not_writable,
    write_whole,
)
from sampler_lint.source import SourceError, SourceFile, read_bytes
from sampler_lint.unfinished import together

#: To find the fix that does harm, each takes a check.
_MOST_TRIED_ALONE = 16


class Checked(Protocol):
    """What a check returns, as far as the rounds need it."""

    findings: list[Finding]
    errors: list[FileError]
    files: list[str]


CheckedT = TypeVar("CheckedT", bound=Checked)

Decide = Callable[
    [Finding, Mapping[str, bytes], Sequence[Mapping[str, bytes]]], tuple[int | None, str]
]
"""Which of several states, each made by another fix of a finding, is right, and why: given the
finding, the contents before and the contents after each; None when none is proved."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A finding and the offsets between which it stands now; a reason if its fix is blocked."""

    finding: Finding
    start: int
    end: int
    reason: str = ""

    def holds(self, finding: Finding, offset: int) -> bool:
        """Whether ``finding``, at ``offset``, is this one."""
        return _kind(self.finding) == _kind(finding) and self.start <= offset <= self.end

    def after(self, edits: Sequence[Edit]) -> _Place:
        """The same where the edits of a round in its file move it."""
        start, end = moved(self.start, self.end, edits)
        return replace(self, start=start, end=end)


@dataclass(slots=True, eq=False)
class _State(Generic[CheckedT]):
    """The files after a number of rounds."""

    contents: dict[str, bytes]
    """Changed files only."""
    checked: CheckedT
    blocked: list[_Place] = field(default_factory=list)
    chosen: list[Finding] = field(default_factory=list)
    """What is fixed from here to the next state."""
    left: list[tuple[Finding, str]] = field(default_factory=list)


Stamp = tuple[int, int, int]


def stamp(path: str) -> Stamp | None:
    """What changes when a file is written: inode, size, time of the last change; None if missing.

    Taken before a check, it tells whether the check saw what is read afterwards.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


class Rounds(Generic[CheckedT]):
    """One call of ``fix``: its states, and what came of it."""

    def __init__(
        self,
        check: Callable[[Mapping[str, bytes]], CheckedT],
        *,
        overlay: Mapping[str, bytes],
        stamps: Mapping[str, Stamp | None],
        unsafe: bool,
        write: bool,
        decide: Decide | None = None,
    ) -> None:
        """Prepare the rounds.

        Args:
            check: checks the files with the given contents in place of those on disk.
            overlay: contents to start from in place of those on disk.
            stamps: of the files on disk, taken before the first check.
            unsafe: whether unsafe fixes may be applied.
            write: whether files that cannot be written are to be left alone.
            decide: asked before a fix is made; what it does not choose is left.
        """
        self.errors: list[FileError] = []
        self._check = check
        self._overlay = overlay
        self._stamps = stamps
        self._unsafe = unsafe
        self._write = write
        self._decide = decide
        self._decided: dict[int, Finding] = {}  # held, so that no other gets its id
        self._undecided: list[tuple[Finding, list[Finding], str]] = []
        self._sources: dict[str, SourceFile] = {}
        self._originals: dict[str, bytes] = {}
        self._problems: dict[str, str | None] = {}
        self._states: list[_State[CheckedT]] = []

    @property
    def checked(self) -> CheckedT:
        """What the check says of the final state."""
        return self._states[-1].checked

    @property
    def fixed(self) -> list[Finding]:
        """The findings that were fixed, each as it stood when its round began."""
        fixed = (finding for state in self._states for finding in state.chosen)
        return sorted(fixed, key=lambda finding: finding.sort_key)

    @property
    def left(self) -> list[tuple[Finding, str]]:
        """The findings that are still there, and why."""
        return sorted(self._states[-1].left, key=lambda pair: pair[0].sort_key)

    @property
    def changed(self) -> dict[str, tuple[bytes, bytes]]:
        """Old and new content of each changed file."""
        contents = self._states[-1].contents
        return {path: (self._originals[path], contents[path]) for path in sorted(contents)}

    def run(self, max_rounds: int) -> None:
        """Fix in memory until no fix is left, or for ``max_rounds`` checks."""
        self._states = [_State({}, self._check(self._overlay))]
        rounds = 0
        while True:
            state = self._states[-1]
            if not self._choose(state) or rounds == max_rounds:
                self._defer_chosen(state, f"not settled after {max_rounds} rounds")
                if not self._take_back_what_brings_up_others():
                    return
                continue
            contents, broken = self._apply(state, state.chosen)
            if broken:
                self._take_back(state, broken)
                continue
            rounds += 1
            if returned := self._returned(contents):
                earlier, path = returned
                del self._states[self._states.index(earlier) + 1 :]
                culprits = _touching(earlier.chosen, path)
                self._block(earlier, culprits, "reverted: the fixes undo each other")
                continue
            checked = self._check({**self._overlay, **contents})
            if broken := self._newly_unreadable(state, checked):
                self._take_back(state, broken)
            elif failed := self._still_there(state, checked, contents):
                self._block(state, failed, "reverted: the fix does not remove the finding")
            else:
                edits = _by_path(state.chosen)
                blocked = [block.after(edits[block.finding.path]) for block in state.blocked]
                self._states.append(_State(contents, checked, blocked))

    def write(self) -> None:
        """Write the changed files; files that a fix joins are written together or not at all."""
        changed = self.changed
        # Beside a link's target, too: that is where the file was to be written.
        files = {os.path.realpath(p) if os.path.islink(p) else p for p in self.checked.files}
        clear_stale({os.path.dirname(path) or os.curdir for path in files})
        lost: set[str] = set()
        for group in self._joined(changed):
            written: list[str] = []
            with contextlib.ExitStack() as stack:
                try:
                    if len(group) > 1:
                        stack.enter_context(together({path: changed[path] for path in group}))
                    for path in group:
                        old, new = changed[path]
                        write_whole(path, new, expect=old)
                        written.append(path)
                except SourceError as error:
                    self.errors.append(error.error)
                    lost.update(group)
                    self._restore(written, changed)
        if lost:
            self._forget(lost)

    def _choose(self, state: _State[CheckedT]) -> list[Finding]:
        files = set(state.checked.files)
        candidates: list[Finding] = []
        state.left = []
        self._undecided = []
        decided = [self._decision(state, files, found) for found in state.checked.findings]
        told = self._decide_together(state, [finding for finding, why in decided if not why])
        for index, (finding, reason) in enumerate(decided):
            finding, reason = told.get(id(finding), (finding, reason))
            state.checked.findings[index] = finding
            reason = reason or refusal(finding, self._unsafe)
            if reason := reason or self._obstacle(state, files, finding):
                state.left.append((finding, reason))
            else:
                candidates.append(finding)
        state.chosen, deferred = choose(candidates, unsafe=self._unsafe)
        state.left += deferred
        return state.chosen

    def _decision(
        self, state: _State[CheckedT], files: set[str], finding: Finding
    ) -> tuple[Finding, str | None]:
        """The finding with the fix that is proved, or the reason why it has none."""
        if self._decide is None or id(finding) in self._decided:
            return finding, None
        fixes = finding.candidates or ((finding.fix,) if finding.fix else ())
        options = [replace(finding, fix=fix) for fix in fixes]
        if finding.candidates:  # what a run decides is no guess any more
            options = [replace(one, fix=_safe(one.fix)) for one in options]
        options = [one for one in options if not refusal(one, self._unsafe)]
        obstacles = [self._obstacle(state, files, one) for one in options]
        states = []
        for option in options:
            contents, broken = self._apply(state, [option]) if not any(obstacles) else ({}, {})
            if not broken:
                states.append((option, {**self._overlay, **contents}))
        reason = next(filter(None, obstacles), None)
        if states and reason is None:
            before = {**self._overlay, **state.contents}
            number, told = self._decide(finding, before, [after for _, after in states])
            if number is None:
                reason = told
                self._undecided.append((finding, options, reason))
            else:
                finding = states[number][0]
        self._decided[id(finding)] = finding
        return finding, reason

    def _decide_together(
        self, state: _State[CheckedT], proved: Sequence[Finding]
    ) -> dict[int, tuple[Finding, str | None]]:
        """What becomes of findings whose fix is not proved alone: another bug may hide it.

        Each is decided once more where the others of its file are fixed; all have to be proved.
        """
        told: dict[int, tuple[Finding, str | None]] = {}
        for path in sorted({finding.path for finding, _, _ in self._undecided}):
            group = [one for one in self._undecided if one[0].path == path]
            beside = [one for one in proved if one.path == path and id(one) in self._decided]
            chosen = self._proved_beside(state, group, beside)
            for at, (finding, _, reason) in enumerate(group):
                if chosen:
                    told[id(finding)] = chosen[at], None
                    self._decided[id(chosen[at])] = chosen[at]
                else:
                    self._block(state, [finding], reason)
                    told[id(finding)] = finding, reason
        return told

    def _proved_beside(
        self,
        state: _State[CheckedT],
        group: Sequence[tuple[Finding, list[Finding], str]],
        beside: Sequence[Finding],
    ) -> list[Finding]:
        """The findings of a group, each with the fix proved among all the others'; or none."""
        chosen = [options[0] for _, options, _ in group]
        beside = [one for one in beside if not refusal(one, self._unsafe)]
        if self._decide is None or len(chosen) + len(beside) < 2:
            return []
        for at, (finding, options, _) in enumerate(group):
            others = [*beside, *chosen[:at], *chosen[at + 1 :]]
            if any(choose([*others, one], unsafe=self._unsafe)[1] for one in options):
                return []
            before, *afters = (
                self._apply(state, [*others, *one]) for one in ([], *([one] for one in options))
            )
            if before[1] or any(broken for _, broken in afters):
                return []
            contents = [{**self._overlay, **changed} for changed, _ in afters]
            number, _ = self._decide(finding, {**self._overlay, **before[0]}, contents)
            if number is None:
                return []
            chosen[at] = options[number]
        return chosen

    def _defer_chosen(self, state: _State[CheckedT], reason: str) -> None:
        state.left += [(finding, reason) for finding in state.chosen]
        state.chosen = []

    def _obstacle(self, state: _State[CheckedT], files: set[str], finding: Finding) -> str | None:
        """Why the finding's fix, though it may be applied, cannot be in this state."""
        edits = edits_of([finding])
        for path in sorted({finding.path, *(edit.path for edit in edits)}):
            if path not in files:
                return f"its fix edits {path}, which was not among the paths"
            if problem := self._problem(path):
                return problem
        texts = {edit.path: self._source(edit.path, state.contents).text for edit in edits}
        if any(not 0 <= edit.start <= edit.end <= len(texts[edit.path]) for edit in edits):
            return "its edits lie outside the file"
        if all(texts[edit.path][edit.start : edit.end] == edit.content for edit in edits):
            return "its fix changes nothing"
        offset = _offset(finding, self._source(finding.path, state.contents))
        return next((block.reason for block in state.blocked if block.holds(finding, offset)), None)

    def _problem(self, path: str) -> str | None:
        """Why the file cannot be edited at all."""
        if path not in self._problems:
            self._problems[path] = self._find_problem(path)
        return self._problems[path]

    def _find_problem(self, path: str) -> str | None:
        try:
            data = self._overlay[path] if path in self._overlay else read_bytes(path)
            source = SourceFile(path, data)
        except SourceError as error:
            return error.error.reason
        if path not in self._overlay and stamp(path) != self._stamps.get(path):
            return "the file was changed while it was checked"
        try:
            faithful = source.encode(source.text) == data
        except ValueError:  # UnicodeError, NotebookError
            faithful = False
        if not faithful:
            return f"the file's bytes are not plain {source.encoding}, so they could not be kept"
        if not parses(source.text):
            return "the file does not compile"
        if self._write and (reason := why_not_writable(path)):
            return reason
        self._originals[path] = data
        return None

    def _source(self, path: str, contents: Mapping[str, bytes]) -> SourceFile:
        """The editable file's source in a state."""
        data = contents.get(path, self._originals[path])
        source = self._sources.get(path)
        if source is None or source.data != data:
            source = self._sources[path] = SourceFile(path, data)
        return source

    def _apply(
        self, state: _State[CheckedT], fixed: Iterable[Finding]
    ) -> tuple[dict[str, bytes], dict[str, str]]:
        """The contents after these fixes, and the files that would be broken, with why."""
        contents = dict(state.contents)
        broken: dict[str, str] = {}
        for path, edits in _by_path(fixed).items():
            source = self._source(path, state.contents)
            text = apply_edits(source.text, edits)
            try:
                data = source.encode(text)
                kept = SourceFile(path, data).text == text
            except (ValueError, SourceError):
                kept = False
            if not kept:
                broken[path] = f"{path} could no longer be encoded as {source.encoding}"
            elif not parses(text):
                broken[path] = f"{path} would no longer parse"
            elif data == self._originals[path]:
                contents.pop(path, None)
            else:
                contents[path] = data
        return contents, broken

    def _returned(self, contents: Mapping[str, bytes]) -> tuple[_State[CheckedT], str] | None:
        """The state from which fixes have led a file back to its content in that state."""
        for path in _by_path(self._states[-1].chosen):
            for state in reversed(self._states):
                if state.contents.get(path) == contents.get(path) and _touching(state.chosen, path):
                    return state, path
        return None

    def _newly_unreadable(self, state: _State[CheckedT], checked: CheckedT) -> dict[str, str]:
        """The files just edited that the check, unlike before, has an error for."""
        before = {error.path for error in state.checked.errors}
        return {
            error.path: f"{error.path}: {error.reason}"
            for error in checked.errors
            if error.path in _by_path(state.chosen) and error.path not in before
        }

    def _take_back(self, state: _State[CheckedT], broken: Mapping[str, str]) -> None:
        """Block every chosen fix that touches a broken file, and say so."""
        for path, reason in broken.items():
            culprits = _touching(state.chosen, path)
            fixes = ", ".join(f"{f.code} at {f.path}:{f.start.row}" for f in culprits)
            self.errors.append(FileError(path, f"fixes reverted ({fixes}): {reason}"))
            self._block(state, culprits, f"reverted: {reason}")

    def _block(self, state: _State[CheckedT], findings: Iterable[Finding], reason: str) -> None:
        for finding in findings:
            offset = _offset(finding, self._source(finding.path, state.contents))
            state.blocked.append(_Place(finding, offset, offset, reason))

    def _still_there(
        self, state: _State[CheckedT], checked: CheckedT, contents: Mapping[str, bytes]
    ) -> list[Finding]:
        """The chosen findings that are there again after their fix."""
        edits = _by_path(state.chosen)
        chosen = {id(finding) for finding in state.chosen}
        places: defaultdict[tuple[str, str, str, Grade], list[_Place]] = defaultdict(list)
        for finding in state.checked.findings:
            if finding.path in edits or id(finding) in chosen:
                offset = _offset(finding, self._source(finding.path, state.contents))
                place = _Place(finding, offset, offset).after(edits[finding.path])
                places[_kind(finding)].append(place)
        failed: dict[int, Finding] = {}
        for finding in checked.findings:
            if same := places.get(_kind(finding)):
                offset = _offset(finding, self._source(finding.path, contents))
                here = {id(p.finding): p.finding for p in same if p.holds(finding, offset)}
                # A finding that was there beside the fixed ones may stay.
                if here.keys() <= chosen:
                    failed.update(here)
        return list(failed.values())

    def _take_back_what_brings_up_others(self) -> bool:
        """Go back to where findings appeared that still stand, and block what brought them up.

        What was there before, hidden by what is fixed now, was not brought up.
        """
        appeared: defaultdict[int, list[Finding]] = defaultdict(list)
        for finding in self._states[-1].checked.findings:
            now = finding
            for index in range(len(self._states) - 1, 0, -1):
                state, later = self._states[index - 1 : index + 1]
                before = self._before(state, now, later.contents)
                if before is None:
                    appeared[index].append(now)
                    break
                now = before
        for index in sorted(appeared):
            state, later = self._states[index - 1 : index + 1]
            blamed = [
                (now, guilty)
                for now, among in self._bringing_up(appeared[index], state)
                if (
                    guilty := [
                        one
                        for one in among
                        if not one.hides or self._is_written_by(one, now, later.contents)
                    ]
                )
            ]
            if blamed:
                del self._states[index:]
                for now, guilty in blamed:
                    self._block(state, guilty, f"reverted: the fix would cause {now.code}")
                return True
        return False

    def _bringing_up(
        self, findings: Sequence[Finding], state: _State[CheckedT]
    ) -> Iterator[tuple[Finding, list[Finding]]]:
        """For each finding the chosen whose fix alone brings it up; else all in its file, or all.

        One fix of each file is tried at a time: what it brings up elsewhere is not blamed on it.
        """
        suspects = {f.path: _touching(state.chosen, f.path) or state.chosen for f in findings}
        tried = {p: each for p, each in suspects.items() if 1 < len(each) <= _MOST_TRIED_ALONE}
        before = {_kind(one) for one in state.checked.findings}
        alone: dict[tuple[str, int], set[tuple[str, str]]] = {}
        for turn in range(max(map(len, tried.values()), default=0)):
            ours = {path: each[turn] for path, each in tried.items() if turn < len(each)}
            contents, broken = self._apply(state, {id(one): one for one in ours.values()}.values())
            if not broken:
                found = self._check({**self._overlay, **contents}).findings
                # Its words may be others while the other fixes are not made.
                new = {_kind(one)[:2] for one in found if _kind(one) not in before}
                alone.update(((path, turn), new) for path in ours)
        for finding in findings:
            among = suspects[finding.path]
            guilty = [
                one
                for at, one in enumerate(among)
                if _kind(finding)[:2] in alone.get((finding.path, at), ())
            ]
            yield finding, guilty or among

    def _is_written_by(
        self, fixed: Finding, finding: Finding, contents: Mapping[str, bytes]
    ) -> bool:
        """Whether a finding stands in what the fix of another has written."""
        state = next(state for state in self._states if fixed in state.chosen)
        edits = _by_path(state.chosen)[finding.path]
        own = [moved(one.start, one.end, edits) for one in _by_path([fixed])[finding.path]]
        if not own:
            return False
        offset = _offset(finding, self._source(finding.path, contents))
        return any(start <= offset < end for start, end in own)

    def _before(
        self, state: _State[CheckedT], finding: Finding, contents: Mapping[str, bytes]
    ) -> Finding | None:
        """The finding as it was in a state from which the chosen fixes led to ``contents``.

        Its words may have changed, or else its place.
        """
        edits = _by_path(state.chosen)[finding.path]
        same = [f for f in state.checked.findings if _kind(f)[:2] == _kind(finding)[:2]]
        for before in same:
            if before.message == finding.message:
                return before
        if finding.path not in contents and finding.path not in state.contents:
            return next((before for before in same if before.start == finding.start), None)
        offset = _offset(finding, self._source(finding.path, contents))
        for before in same:
            start = _offset(before, self._source(finding.path, state.contents))
            low, high = moved(start, start, edits)
            if low <= offset <= high:
                return before
        return None

    def _joined(self, changed: Mapping[str, object]) -> list[list[str]]:
        """The changed files in groups, those that a fix edits together in one."""
        groups: list[set[str]] = [{path} for path in changed]
        for finding in self.fixed:
            joined = set(finding.fix.paths if finding.fix else ()) & changed.keys()
            touched = [group for group in groups if group & joined]
            groups = [group for group in groups if not group & joined]
            groups += [set().union(*touched)] if touched else []
        return sorted(sorted(group) for group in groups)

    def _restore(self, written: list[str], changed: Mapping[str, tuple[bytes, bytes]]) -> None:
        for path in written:
            old, new = changed[path]
            try:
                write_whole(path, old, expect=new)
            except SourceError as error:
                self.errors.append(error.error)

    def _forget(self, lost: set[str]) -> None:
        """Make the final state one in which the lost files were never edited."""
        final = self._states[-1]
        contents = {path: data for path, data in final.contents.items() if path not in lost}
        for state in self._states:
            state.chosen = [f for f in state.chosen if f.fix and lost.isdisjoint(f.fix.paths)]
        self._problems.update(dict.fromkeys(lost, "not written, see the error for the file"))
        state = _State(contents, self._check({**self._overlay, **contents}), final.blocked)
        self._choose(state)
        self._defer_chosen(state, "appeared when a file could not be written")
        self._states.append(state)


def _safe(fix: Fix | None) -> Fix | None:
    return fix and replace(fix, applicability=Applicability.SAFE)


def _kind(finding: Finding) -> tuple[str, str, str, Grade]:
    """What stays of a finding when its file is edited elsewhere."""
    return finding.path, finding.code, finding.message, finding.grade


def _offset(finding: Finding, source: SourceFile) -> int:
    """The offset of the finding's first character."""
    row = min(finding.start.row, len(source.line_starts))
    return source.line_starts[row - 1] + finding.start.column - 1


def _touching(findings: Iterable[Finding], path: str) -> list[Finding]:
    """Those whose fixes edit the file."""
    return [finding for finding in findings if finding.fix and path in finding.fix.paths]


def _by_path(findings: Iterable[Finding]) -> defaultdict[str, list[Edit]]:
    edits: defaultdict[str, list[Edit]] = defaultdict(list)
    for edit in edits_of(findings):
        edits[edit.path].append(edit)
    return edits
