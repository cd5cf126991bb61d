"""Which folders belong together: the tree that is one model, and what may be read for it."""

from __future__ import annotations

import os
from collections.abc import Iterator


def project_root(path: str) -> str:
    """The folder whose whole tree is the model of ``path``.

    That is the nearest enclosing folder with ``.git``, ``pyproject.toml``, ``setup.py`` or
    ``setup.cfg``; without one, the folder the topmost enclosing package stands in, if that is
    the working directory or below it, else the package: who stands elsewhere has not asked for
    what lies beside it. Without a package, it is the file's own folder or the folder itself.

    The home directory, the folder for temporary files and the root of the file system hold
    other things than one project, so they are returned only if they are ``path``. A file that
    lies in one of them directly, outside a package, is alone: the file itself is returned.

    Returns:
        A path relative to the working directory if ``path`` is, else an absolute one.
    """
    absolute = os.path.abspath(path)
    is_folder = os.path.isdir(absolute)
    folder = absolute if is_folder else os.path.dirname(absolute)
    root = _marked(folder) or _around_package(folder)
    if _is_shared(root) and root != absolute:
        root = absolute
    return root if os.path.isabs(path) else os.path.relpath(root)


def root_for_question(path: str) -> str:
    """The root by which a check that starts in the working folder models a file there.

    A file elsewhere, or one in a folder that holds things of many projects, has its own
    :func:`project_root`.
    """
    here = os.path.join(os.getcwd(), "")
    inside = os.path.abspath(path).startswith(here) and not _is_shared(here)
    return project_root(os.curdir if inside else path)


def upwards(folder: str) -> Iterator[str]:
    """The folder and its parents, ending below the root of the file system."""
    while (parent := os.path.dirname(folder)) != folder:
        yield folder
        folder = parent


def _has(folder: str, *names: str) -> bool:
    return any(os.path.exists(os.path.join(folder, name)) for name in names)


def _marked(folder: str) -> str | None:
    """The nearest folder upwards that is marked as a project."""
    doubtful = None
    for candidate in upwards(folder):
        if _is_shared(candidate):
            break
        if _has(candidate, ".git", "pyproject.toml"):
            return candidate
        if _has(candidate, "setup.py", "setup.cfg"):
            if not _has(candidate, "__init__.py"):
                return candidate
            # setup.py may be a module of a package; the outermost may still be the project.
            doubtful = candidate
    return doubtful


def _around_package(folder: str) -> str:
    """The folder that the topmost package around ``folder`` stands in, or that package."""
    package = None
    for candidate in upwards(folder):
        if not _has(candidate, "__init__.py"):
            asked = os.path.join(candidate, "").startswith(os.path.join(os.getcwd(), ""))
            return (
                candidate if package is None or (asked and not _is_shared(candidate)) else package
            )
        package = candidate
    return package or folder


def _is_shared(folder: str) -> bool:
    """Whether things of many projects lie in ``folder``, so that a marker there means nothing."""
    real = os.path.realpath(folder)
    if real == os.path.dirname(real):
        return True
    # tempfile.gettempdir() would be exact, but its import takes longer than a whole walk.
    temporary = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    shared = (os.path.expanduser("~"), "/tmp", "/var/tmp", *temporary)
    return any(real == os.path.realpath(other) for other in shared if other)


def leads_outside(path: str) -> bool:
    """Whether ``path`` is by a link a place outside the repository that it stands in.

    What a repository's links lead to out there belongs to somebody else: it is neither read nor
    written for the sake of a file that was found and not named.
    """
    path = os.path.abspath(path)
    return os.path.realpath(path) != path and not is_inside(path, os.path.dirname(path))


def is_inside(path: str, folder: str) -> bool:
    """Whether ``path``, its links followed, is in the repository that ``folder`` belongs to."""
    border = os.path.realpath(_repository(os.path.abspath(folder)))
    return os.path.realpath(path).startswith(os.path.join(border, ""))


def _repository(folder: str) -> str:
    """The git work tree, or else the project, around an absolute folder."""
    for candidate in upwards(folder):
        if _is_shared(candidate):
            break
        if _has(candidate, ".git"):
            return candidate
    return project_root(folder)
