"""Which files a run is about. No file's content is read but that of ``.gitignore``."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sampler_lint.findings import FileError
from sampler_lint.gitignore import Gitignore
from sampler_lint.roots import leads_outside, upwards

if TYPE_CHECKING:
    from sampler_lint.timings import Watch

#: Folders without a project's own code: ruff's defaults
#: (https://docs.astral.sh/ruff/settings/#exclude) and Python's caches.
_SKIPPED = frozenset(
    {
        ".bzr",
        ".direnv",
        ".eggs",
        ".git",
        ".git-rewrite",
        ".hg",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".nox",
        ".pants.d",
        ".pyenv",
        ".pytest_cache",
        ".pytype",
        ".ruff_cache",
        ".svn",
        ".tox",
        ".venv",
        ".vscode",
        "__pycache__",
        "__pypackages__",
        "buck-out",
        "node_modules",
        "site-packages",
        "venv",
    }
)
#: ruff skips these too, but as packages they are somebody's code (``mmengine/dist``).
_SKIPPED_UNLESS_PACKAGE = frozenset({"_build", "build", "dist"})

#: How the names of checked files end.
CHECKED = (".py", ".ipynb")
_MISSING = "no such file or directory"


@dataclass(slots=True)
class Discovery:
    """The files found, and the paths that could not be looked at."""

    files: list[str] = field(default_factory=list)
    """In the order of the paths given, sorted below each; each real file once."""
    errors: list[FileError] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    """Links to files found below the same folder, which are not taken once more, each with its
    file: an import may mean them."""


#: For a folder, groups of patterns, each after the folder it is relative to ("": see ``root``).
ExclusionsOf = Callable[[str], Sequence[tuple[str, Sequence[str]]]]

#: Files that may change what is excluded in their folder and below.
_CONFIGURATIONS = frozenset({".sampler-lint.toml", "sampler-lint.toml", "pyproject.toml"})


def find_files(
    paths: Sequence[str],
    exclude: Sequence[str] | ExclusionsOf = (),
    *,
    root: str | None = None,
    watch: Watch | None = None,
) -> Discovery:
    """The Python files at and below ``paths``, spelled as the paths are.

    A file that is named is taken whatever its name. Below a folder, ``*.py`` files are taken
    that are regular files (or links to one), unless they or a folder on the way are among the
    usual exclusions, in a virtual environment, ignored by a ``.gitignore`` (of a parent up to
    the git root, too) or by ``exclude``. A pattern with ``!`` takes one of the usual exclusions
    back. Links to folders are not followed.

    Args:
        paths: files and folders.
        exclude: gitignore patterns; or a function that is asked for those of each folder with
            a configuration file in it.
        root: the folder ``exclude`` is relative to; by default the working directory. For
            a folder outside of it, the patterns are relative to that folder.
        watch: told how many folders have been looked through.
    """
    here = root or os.curdir
    walk = _Walk(exclude if callable(exclude) else lambda folder: ((here, exclude),), watch)
    for path in paths:
        walk.add(path)
    return walk.found


class _Walk:
    """One call of :func:`find_files`."""

    def __init__(self, exclude: ExclusionsOf, watch: Watch | None) -> None:
        self.found = Discovery()
        self._exclude = exclude
        self._watch = watch
        self._folders = 0
        self._seen: set[str] = set()

    def add(self, path: str) -> None:
        """Take the file ``path``, or the files below the folder ``path``."""
        try:
            is_folder = stat.S_ISDIR(os.stat(path).st_mode)
        except OSError as error:
            self._fail(path, error)
            return
        if is_folder:
            self._add_tree(path)
        else:
            self._take([(path, os.path.realpath(path))])

    def _take(self, files: list[tuple[str, str]]) -> None:
        """Report files, given as displayed and as real paths, that were not seen before."""
        for shown, real in files:
            if real not in self._seen:
                self._seen.add(real)
                self.found.files.append(shown)

    def _fail(self, path: str, error: OSError) -> None:
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            reason = _MISSING
        else:
            reason = f"cannot be read: {error.strerror or type(error).__name__}"
        self.found.errors.append(FileError(path, reason))

    def _add_tree(self, path: str) -> None:
        real = os.path.realpath(path)
        shown = "" if os.path.normpath(path) == os.curdir else path.rstrip(os.sep) or os.sep
        files: list[tuple[str, str]] = []
        links: list[tuple[str, str]] = []
        pending = [(shown, real, self._inherited(real), self._exclusions(real, real), False)]
        while pending:
            folder, real_folder, ignores, excluded, wanted = pending.pop()
            if self._watch is not None:
                self._watch("finding files", self._folders, 0)
                self._folders += 1
            try:
                with os.scandir(folder or os.curdir) as scan:
                    entries = list(scan)
                names = {entry.name for entry in entries}
                if real_folder != real and not wanted and _is_foreign(real_folder, names):
                    continue
                if ".git" in names and real_folder != real:
                    ignores = ()
                if real_folder != real and not names.isdisjoint(_CONFIGURATIONS):
                    excluded = self._exclusions(real_folder, real)
                if ".gitignore" in names:
                    ignores = (*ignores, *self._gitignore(real_folder))
                for entry in entries:
                    name = entry.name
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if not is_folder and not name.endswith(CHECKED):
                        continue
                    below = os.path.join(folder, name)
                    real_below = os.path.join(real_folder, name)
                    decision = _decision(excluded, real_below, is_folder)
                    if decision is None and is_folder:
                        decision = name in _SKIPPED or None
                    if decision or _decision(ignores, real_below, is_folder):
                        continue
                    if is_folder:
                        wanted = decision is False
                        pending.append((below, real_below, ignores, excluded, wanted))
                    elif entry.is_symlink():
                        links.append((below, real_below))
                    elif entry.is_file(follow_symlinks=False):
                        files.append((below, real_below))
            except OSError as error:
                self._fail(folder or os.curdir, error)
        # A link is taken only where the file itself is not below this folder.
        own = {real_file: file for file, real_file in files}
        for link, real_link in links:
            target = os.path.realpath(real_link)
            if target in own:
                self.found.links[link] = own[target]
            elif os.path.isfile(target) and not leads_outside(real_link):
                files.append((link, target))
        self._take(sorted(files))

    def _exclusions(self, folder: str, tree: str) -> _Ignores:
        """The caller's patterns for ``folder``, relative to their base or, outside it, ``tree``."""
        found: list[tuple[str, Gitignore]] = []
        for base, patterns in self._exclude(folder):
            if patterns:
                base = os.path.realpath(base or os.curdir)
                inside = os.path.join(folder, "").startswith(os.path.join(base, ""))
                found.append((base if inside else tree, Gitignore(patterns)))
        return tuple(found)

    def _inherited(self, tree: str) -> _Ignores:
        """What holds in ``tree`` before its own ``.gitignore``: parents' files, outermost first."""
        parents: list[str] = []
        for folder in upwards(tree):
            if os.path.exists(os.path.join(folder, ".git")):
                break
            parents.append(os.path.dirname(folder))
        else:
            parents = []
        ignores: _Ignores = ()
        for parent in reversed(parents):
            if os.path.exists(os.path.join(parent, ".gitignore")):
                ignores = (*ignores, *self._gitignore(parent))
        return ignores

    def _gitignore(self, folder: str) -> _Ignores:
        path = os.path.join(folder, ".gitignore")
        try:
            mode = os.lstat(path).st_mode
            # A FIFO would be waited for; a link git does not follow either.
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                return ()
            with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
                return ((folder, Gitignore(file)),)
        except OSError as error:
            self._fail(path, error)
            return ()


#: Folders with their patterns, the one that decides first last.
_Ignores = tuple[tuple[str, Gitignore], ...]


def _decision(ignores: _Ignores, path: str, folder: bool) -> bool | None:
    """Whether the entry is left out (True), taken back (False) or not spoken of (None)."""
    for base, patterns in reversed(ignores):
        below = path[len(os.path.join(base, "")) :].replace(os.sep, "/")
        decision = patterns.decide(below, folder=folder)
        if decision is not None:
            return decision
    return None


def _is_foreign(folder: str, names: set[str]) -> bool:
    """Whether a folder with these entries holds built or installed code."""
    if os.path.basename(folder) in _SKIPPED_UNLESS_PACKAGE:
        return "__init__.py" not in names
    return "pyvenv.cfg" in names
