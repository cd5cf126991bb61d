"""Is a fix of the user's own code right? Decided by running the code before and after it.

A fix inside a sampler class is tried on that class alone, built from its signature on synthetic
data (:mod:`sampler_lint.harness.contract`). Any fix can be tried by a command of the user's, run
in copies of the tree with the recorder in it. Of several candidates the one wins that breaks the
fewest promises.
"""

from __future__ import annotations

import ast
import contextlib
import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sampler_lint.findings import Finding
from sampler_lint.harness import HarnessError, invariants
from sampler_lint.harness.command import copy_tree, run_command
from sampler_lint.harness.contained import Request, UnbuildableError, examine_class
from sampler_lint.harness.contract import TIME_LIMIT
from sampler_lint.source import SourceError, SourceFile

#: What a run of the command shows, and whether it had to be ended.
_Judged = tuple[invariants.Verdict, bool]

PROVED, REFUTED, OPEN = "proved", "refuted", "not provable here"

#: What a class is tried on: small inputs, and one large enough to shuffle.
OPTIONS: Mapping[str, Any] = {"sizes": (0, 1, 2, 3, 7, 8, 40), "world_sizes": (1, 2, 3, 4)}

#: Seconds that a run of the user's command may take, where nobody says how many.
COMMAND_TIMEOUT = 600.0

#: What a sampler that begins to run may still break.
CORE = {"coverage", "disjoint", "equal-steps", "length-is-true", "ends"}

#: The promise that stands for "it can be built and read".
BUILDS = "builds"


@dataclass(frozen=True, slots=True)
class Proof:
    """What became of one fix."""

    finding: Finding
    verdict: str
    """``proved``, ``refuted`` or ``not provable here``."""
    evidence: str


@dataclass(frozen=True, slots=True)
class _Trial:
    """What was seen of one state of a class: the broken promises, with their reasons."""

    broken: Mapping[str, str] = field(default_factory=dict)
    judged: frozenset[str] = frozenset()
    """The promises that were kept or broken."""
    crashes: bool = False
    """It cannot be built or read at all, so what it kept, it kept by doing nothing."""
    unknown: str = ""
    """Why the class says nothing about itself."""


class Prover:
    """Decides which fix of a finding, if any, may be made."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        command: Sequence[str] = (),
        timeout: float = COMMAND_TIMEOUT,
        kw: Mapping[str, Any] | None = None,
        python: str | None = None,
        progress: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Prepare for the project at ``root``.

        ``command`` runs a training program of it, for ``timeout`` seconds at most; ``progress``
        hears of each run of it. ``kw`` are values for parameters of its samplers that cannot be
        guessed.
        """
        self._progress = progress
        self._proofs: list[tuple[Proof, frozenset[tuple[str, bytes]]]] = []
        self._root = os.path.realpath(root)
        self._command = tuple(command)
        self._timeout = timeout
        self._python = python
        self._kw = dict(kw or {})
        self._trials: dict[tuple[str, str, frozenset[tuple[str, bytes]]], _Trial] = {}
        self._runs: dict[tuple[str, frozenset[tuple[str, bytes]]], _Judged] = {}

    @property
    def proofs(self) -> list[Proof]:
        """What became of each fix; of one that was tried again where others are made, the last."""
        return [proof for proof, _ in self._proofs]

    def __call__(
        self,
        finding: Finding,
        before: Mapping[str, bytes],
        afters: Sequence[Mapping[str, bytes]],
    ) -> tuple[int | None, str]:
        """Which of the states ``afters``, each made by another fix, is proved to be right.

        ``before`` and each of ``afters`` are the contents of the files that differ from those on
        disk.

        Returns:
            The number of the state, or None; and the evidence.
        """
        verdict, number, evidence = self._by_class(finding, before, afters)
        if verdict == OPEN and self._command:
            verdict, number, told = self._by_command(finding, before, afters)
            evidence = told if verdict != OPEN else f"{evidence}; {told}"
        elif verdict == OPEN:
            evidence += "; --verify-command may prove it"
        state = frozenset(before.items())
        earlier = ((one, at) for one, at in self._proofs if one.finding is finding and at != state)
        for one in [*earlier]:
            self._proofs.remove(one)
        self._proofs.append((Proof(finding, verdict, evidence), state))
        return (number if verdict == PROVED else None), f"{verdict}: {evidence}"

    # -- the class alone

    def _by_class(
        self, finding: Finding, before: Mapping[str, bytes], afters: Sequence[Mapping[str, bytes]]
    ) -> tuple[str, int, str]:
        name = self._class_of(finding, before)
        if name is None:
            return OPEN, 0, "the fix is not in a class"
        first = self._trial(finding.path, name, before)
        if first.unknown:
            return OPEN, 0, first.unknown
        tried = [self._trial(finding.path, name, after) for after in afters]
        verdicts = [_compared(name, first, second) for second in tried]
        right = [number for number, (verdict, _) in enumerate(verdicts) if verdict == PROVED]
        if len(right) > 1:
            fewest = min(len(tried[number].broken) for number in right)
            right = [number for number in right if len(tried[number].broken) == fewest]
            if len(right) > 1:
                return OPEN, 0, f"{len(right)} of {len(afters)} candidates keep as many promises"
        if right:
            of = f" (of {len(afters)} candidates)" if len(afters) > 1 else ""
            return PROVED, right[0], verdicts[right[0]][1] + of
        if len(afters) > 1 and all(verdict == REFUTED for verdict, _ in verdicts):
            return REFUTED, 0, f"none of {len(afters)} candidates: {verdicts[0][1]}"
        return (verdicts[0][0], 0, verdicts[0][1])

    def _class_of(self, finding: Finding, contents: Mapping[str, bytes]) -> str | None:
        """The dotted name of the class that the finding stands in."""
        if not finding.path.endswith(".py"):
            return None
        try:
            source = SourceFile(finding.path, self._bytes(finding.path, contents))
            tree = ast.parse(source.text)
        except (SourceError, OSError, SyntaxError, ValueError):
            return None
        rows = {finding.start.row}
        for fix in (finding.fix, *finding.candidates):
            if fix is not None:
                own = (edit for edit in fix.edits if edit.path == finding.path)
                rows |= {source.position(edit.start).row for edit in own}
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                if any(first <= row <= (node.end_lineno or first) for row in rows):
                    return node.name
        return None

    def _trial(self, path: str, name: str, contents: Mapping[str, bytes]) -> _Trial:
        key = (path, name, frozenset(contents.items()))
        if key not in self._trials:
            self._trials[key] = self._tried(path, name, contents)
        return self._trials[key]

    def _tried(self, path: str, name: str, contents: Mapping[str, bytes]) -> _Trial:
        with self._mirror(contents) as root:
            inside = os.path.join(root, self._relative(path))
            folder, module = _module_of(inside)
            request = Request(
                f"{module}:{name}", self._kw, OPTIONS, (folder, root), sampler_only=True
            )
            try:
                report = examine_class(request, timeout=TIME_LIMIT, cwd=folder, python=self._python)
            except UnbuildableError as error:
                return _Trial({BUILDS: str(error)}, frozenset({BUILDS}), crashes=True)
            except HarnessError as error:
                return _Trial(unknown=str(error).replace(root + os.sep, ""))
        verdicts = {name: one.verdict for name, one in report.judgements.items()}
        broken = {one.promise: one.reason for one in report.broken}
        judged = {name for name, verdict in verdicts.items() if verdict == "kept"} | {*broken}
        crashes = verdicts.get("reshuffles") == "unknown" and "coverage" in broken
        return _Trial(broken, frozenset(judged | {BUILDS}), crashes)

    # -- the user's command

    def _by_command(
        self, finding: Finding, before: Mapping[str, bytes], afters: Sequence[Mapping[str, bytes]]
    ) -> tuple[str, int, str]:
        name = _invariant_of(finding.code)
        if not name or len(invariants.get(name).runs) > 1:
            return OPEN, 0, f"one run of the command cannot show what {finding.code} is about"
        paths = {path for contents in (before, *afters) for path in contents}
        if any(self._relative(path).startswith(os.pardir) for path in paths):
            return OPEN, 0, "the fix is in a file outside the project, which is not copied"
        first, first_ended = self._judged(name, before, "before")
        verdicts = [self._judged(name, after, "after") for after in afters]
        for number, (second, _) in enumerate(verdicts):
            if first.broken and second.holds:
                return PROVED, number, f"before: {first.evidence}; after: {second.evidence}"
        second, ended = verdicts[0]
        if ended or first_ended:
            when = "after" if ended else "before"
            return (
                OPEN,
                0,
                (
                    f"{when} the fix the command was not done in {self._timeout:g} seconds "
                    f"(--verify-timeout)"
                ),
            )
        if second.broken:
            return REFUTED, 0, f"after the fix the command still shows: {second.evidence}"
        if not first.broken:
            return OPEN, 0, f"the command does not show the bug: {first.evidence}"
        return OPEN, 0, f"after the fix the command shows {second.evidence}"

    def _judged(self, name: str, contents: Mapping[str, bytes], when: str) -> _Judged:
        key = (name, frozenset(contents.items()))
        if key not in self._runs:
            self._progress(f"{shlex.join(self._command)}: {when} a fix")
            self._runs[key] = self._run(name, contents)
        return self._runs[key]

    def _run(self, name: str, contents: Mapping[str, bytes]) -> _Judged:
        with tempfile.TemporaryDirectory(prefix="sampler-lint-") as folder:
            # Under its own name: programs look for it in their path.
            root = os.path.join(folder, os.path.basename(self._root) or "root")
            copy_tree(self._root, root)
            for path, data in contents.items():
                with open(os.path.join(root, self._relative(path)), "wb") as file:
                    file.write(data)
            here = os.path.relpath(os.path.realpath(os.curdir), self._root)
            cwd = root if here.startswith(os.pardir) else os.path.join(root, here)
            # The copy goes before an installed, editable original.
            paths = [root, os.path.join(root, "src"), os.environ.get("PYTHONPATH", "")]
            env = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
            status, run = run_command(self._command, cwd=cwd, timeout=self._timeout, env=env)
        ended = run.duration >= self._timeout
        if not run.ranks:
            told = f"the command left no record (status {status})"
            return invariants.Verdict(False, told, conclusive=False), ended
        return invariants.get(name).judge([run]), ended

    # -- files

    def _relative(self, path: str) -> str:
        return os.path.relpath(os.path.realpath(path), self._root)

    def _bytes(self, path: str, contents: Mapping[str, bytes]) -> bytes:
        if path in contents:
            return contents[path]
        with open(path, "rb") as file:
            return file.read()

    @contextlib.contextmanager
    def _mirror(self, contents: Mapping[str, bytes]) -> Iterator[str]:
        """A tree of links to the project's files, in which these have other contents."""
        changed = {self._relative(path): data for path, data in contents.items()}
        with tempfile.TemporaryDirectory(prefix="sampler-lint-") as folder:
            root = os.path.join(folder, os.path.basename(self._root) or "root")
            self._link("", root, changed)
            yield root

    def _link(self, inside: str, root: str, changed: Mapping[str, bytes]) -> None:
        """Make the folder ``inside`` of the mirror; folders without a changed file are links."""
        os.makedirs(os.path.join(root, inside))
        for entry in os.scandir(os.path.join(self._root, inside)):
            name = os.path.join(inside, entry.name)
            target = os.path.join(root, name)
            if name in changed:
                with open(target, "wb") as file:
                    file.write(changed[name])
            elif any(path.startswith(name + os.sep) for path in changed):
                self._link(name, root, changed)
            elif entry.name != "__pycache__":
                os.symlink(entry.path, target)


def _compared(name: str, before: _Trial, after: _Trial) -> tuple[str, str]:
    """What the class before and after the fix says of the fix."""
    if after.unknown:
        return (REFUTED, f"after the fix: {after.unknown}")
    repaired = [one for one in before.broken if one in after.judged and one not in after.broken]
    worse = [one for one in after.broken if one in before.judged and one not in before.broken]
    if before.crashes and not after.crashes:
        left = [one for one in after.broken if one in CORE]
        still = f", though it breaks {_told(after, left)}" if left else ""
        return PROVED, f"{name} broke {_told(before, repaired)}; after the fix it runs{still}"
    if worse:
        return REFUTED, f"the fix makes {name} break {_told(after, worse)}"
    if repaired:
        return PROVED, f"{name} broke {_told(before, repaired)}; after the fix it is kept"
    if before.broken:
        return OPEN, f"{name}, built on synthetic data, breaks the same before and after the fix"
    return OPEN, f"{name}, built on synthetic data, keeps all promises before the fix, too"


def _told(trial: _Trial, promises: Sequence[str]) -> str:
    return " and ".join(f"`{one}` ({trial.broken[one]})" for one in promises)


def _module_of(path: str) -> tuple[str, str]:
    """The folder to import from and the dotted name of the module at ``path``."""
    folder, name = os.path.split(os.path.splitext(path)[0])
    parts = [] if name == "__init__" else [name]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    return folder, ".".join(parts)


def _invariant_of(code: str) -> str | None:
    from sampler_lint.rules import all_rules

    return next((rule.invariant for rule in all_rules() if rule.code == code), None)
