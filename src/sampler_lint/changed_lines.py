"""Which lines have changed since a revision, as git sees it."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sampler_lint.findings import Finding

_HUNK = re.compile(rb"@@ -\d+(?:,(?P<old>\d+))? \+(?P<row>\d+)(?:,(?P<new>\d+))? @@")
_DIFF = (
    *("-c", "diff.relative=false", "diff", "-U0", "--inter-hunk-context=0", "--text", "-M"),
    *("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"),
)

#: What a git hook is told of its repository; ours is that of the files.
_OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")

#: Rows of a file; None for all of them.
Rows = set[int] | None


class GitError(Exception):
    """git cannot tell; the text says why."""


class ChangedLines:
    """What has changed in the working tree since a revision (of another branch: since the fork).

    A file that git does not track has changed whole. Next to deleted lines, the line above and
    the one below count as changed, since they now read otherwise.
    """

    def __init__(self, revision: str, paths: Sequence[str]) -> None:
        """Ask git about the repositories of ``paths``.

        Raises:
            GitError: one is in no repository, or the repository has no such revision.
        """
        self._revision = revision
        self._tops: dict[str, str] = {}
        self._repositories: dict[str, _Repository] = {}
        for path in paths:
            self._repository(path)

    def touch(self, finding: Finding, data: bytes | None = None) -> bool:
        """Whether a line of the finding, or one that it rests on, has changed.

        Args:
            finding: of the working tree.
            data: the content of the finding's file where it is not what is on disk.
        """
        start, end = finding.in_file
        rows = self._rows(finding.path, data)
        if rows is None or not rows.isdisjoint(range(start.row, end.row + 1)):
            return True
        for place in finding.places:
            if os.path.isfile(place.path) and (place.path != finding.path or data is None):
                rows = self._rows(place.path, None)
                if rows is None or place.in_file.row in rows:
                    return True
        return False

    def _rows(self, path: str, data: bytes | None) -> Rows:
        return self._repository(path).rows(os.path.realpath(path), data)

    def _repository(self, path: str) -> _Repository:
        folder = os.path.realpath(path)
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        top = self._tops.get(folder)
        if top is None:
            said = _git(folder, "rev-parse", "--show-toplevel").rstrip(b"\n")
            top = self._tops[folder] = os.path.realpath(os.fsdecode(said))
        if top not in self._repositories:
            self._repositories[top] = _Repository(top, self._revision)
        return self._repositories[top]


class _Repository:
    """One repository, asked once."""

    def __init__(self, top: str, revision: str) -> None:
        self._top = top
        wanted = f"{revision}^{{commit}}"
        try:
            commit = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", wanted)
        except GitError as error:
            raise GitError(f"{top} has no such revision") from error
        self._commit = commit.decode().strip()
        with contextlib.suppress(GitError):  # a shallow clone does not know the fork
            self._commit = _git(top, "merge-base", self._commit, "HEAD").decode().strip()
        files = _git(top, "ls-files", "-z").split(b"\0")
        self._tracked = {os.path.join(top, os.fsdecode(name)) for name in files if name}
        text = _git(top, *_DIFF, self._commit, "--")
        self._changed: dict[str, set[int]] = {}
        self._before: dict[str, str] = {}
        for old, new, rows in _parse(text):
            path = os.path.join(top, new)
            self._changed[path] = rows
            self._before[path] = old

    def rows(self, path: str, data: bytes | None) -> Rows:
        """The changed rows of a file, given by its real path."""
        if path not in self._tracked:
            return None
        if data is None:
            return self._changed.get(path, set())
        name = self._before.get(path) or os.path.relpath(path, self._top).replace(os.sep, "/")
        try:
            before = _git(self._top, "cat-file", "blob", f"{self._commit}:{name}")
        except GitError:
            return None  # there was no such file
        return _compared(before, data)


def _compared(before: bytes, after: bytes) -> set[int]:
    """The changed rows of ``after``, by git's own judgement."""
    with tempfile.TemporaryDirectory(prefix="sampler-lint-") as folder:
        for name, data in (("a", before), ("b", after)):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        text = _git(folder, *_DIFF, "--no-index", "--", "a", "b", fine=(0, 1))
    return next((rows for _, _, rows in _parse(text)), set())


def _parse(text: bytes) -> Iterator[tuple[str, str, set[int]]]:
    """Old name, new name and changed rows of each file that is still there."""
    old = new = ""
    rows: set[int] = set()
    lines = iter(text.split(b"\n"))
    for line in lines:
        if line.startswith(b"diff --git "):
            if new:
                yield old, new, rows
            old, new, rows = "", "", set()
        elif line.startswith(b"--- "):
            old = _name(line[4:])
        elif line.startswith(b"+++ "):
            new = _name(line[4:])
        elif match := _HUNK.match(line):
            removed, added = (int(match[part] or 1) for part in ("old", "new"))
            if match["old"] == b"0":
                removed = 0
            if match["new"] == b"0":
                added = 0
            row = int(match["row"])
            rows.update(range(row, row + added) if added else (row, row + 1))
            # What is in a hunk may look like a header.
            for _ in range(removed + added):
                next(lines)
    if new:
        yield old, new, rows


def _name(written: bytes) -> str:
    """A name as git writes it in a header; empty for a file that is not there."""
    written = written.removesuffix(b"\t")
    if written.startswith(b'"'):
        written = codecs.escape_decode(written[1:-1])[0]
    return "" if written == b"/dev/null" else os.fsdecode(written[2:])


def _git(folder: str, *arguments: str, fine: tuple[int, ...] = (0,)) -> bytes:
    environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    for name in _OF_A_HOOK:
        environment.pop(name, None)
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, env=environment, capture_output=True, check=False
        )
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror}") from error
    if done.returncode not in fine:
        said = done.stderr.decode(errors="backslashreplace").strip().splitlines()
        reason = said[0].removeprefix("fatal: ") if said else f"git {arguments[0]} failed"
        raise GitError(f"{folder}: {reason}")
    return done.stdout
