"""Where files are, and which of the tree an import means, by the files' paths alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple, Protocol

from sampler_lint.catalog import FRAMEWORK_PACKAGES
from sampler_lint.roots import upwards

#: Packages that are never taken from the tree: their facts are in the catalog, and a folder of
#: the same name somewhere in a repository is not them.
_ALWAYS_EXTERNAL = frozenset({"torch"})


class ImportPaths:
    """Finds the file of a dotted name; ``files`` are the absolute paths in a tree at ``root``.

    ``links`` are other paths, each with the file that it stands for.
    """

    def __init__(
        self, root: str, files: Mapping[str, object], links: Mapping[str, str] | None = None
    ) -> None:
        self.root = root
        self.files = files
        self.links = links or {}
        self._found: dict[tuple[str, int, str], str | None] = {}
        self._everywhere: dict[str, list[tuple[str, str]]] = {}
        self._roots: dict[tuple[str, str], list[str]] = {}
        self._units: dict[str, str] = {}

    def is_as(self, other: ImportPaths) -> bool:
        """Whether imports mean the same in another, which has seen these files or others."""
        return self.files.keys() == other.files.keys() and self.links == other.links

    def dotted_name(self, path: str) -> str:
        """The import name of a file: its packages (folders with ``__init__.py``) and its stem."""
        folder, file = os.path.split(path)
        parts = [] if file == "__init__.py" else [os.path.splitext(file)[0]]
        while self.is_package(folder):
            folder, name = os.path.split(folder)
            parts.append(name)
        return ".".join(reversed(parts))

    @cached_property
    def _parents(self) -> dict[str, dict[str, None]]:
        """Top-level import name → folders that hold it as a module or package."""
        places: dict[str, dict[str, None]] = {}
        for path in (*self.files, *self.links):
            folder, file = os.path.split(path)
            if file.endswith(".py") and file != "__init__.py":
                places.setdefault(file.removesuffix(".py"), {})[folder] = None
            while len(folder) >= len(self.root) and folder != os.path.dirname(folder):
                folder, name = os.path.split(folder)
                known = places.setdefault(name, {})
                if folder in known:
                    break
                known[folder] = None
        return places

    @cached_property
    def folders(self) -> frozenset[str]:
        """The folders that hold a file of the tree, somewhere inside."""
        folders: set[str] = set()
        for path in (*self.files, *self.links):
            folder = os.path.dirname(path)
            while folder not in folders and len(folder) >= len(self.root):
                folders.add(folder)
                folder = os.path.dirname(folder)
        return frozenset(folders)

    def file_below(self, folder: str, parts: list[str]) -> str | None:
        """The file of dotted ``parts`` below ``folder``; a folder path for a namespace package."""
        base = os.path.join(folder, os.sep.join(parts))
        found = self._file_at(f"{base}{os.sep}__init__.py") or self._file_at(base + ".py")
        return found or (base if base in self.folders else None)

    def _file_at(self, path: str) -> str | None:
        return path if path in self.files else self.links.get(path)

    def find(self, name: str, importer: Importer, level: int = 0) -> str | None:
        """The file (or namespace folder) that ``import name`` means in ``importer``.

        As Python does: relative imports by folder; absolute ones from the import roots, which
        are guessed: the nearest folder around the importer that holds the name, else the only
        one in the tree, else a package around it, as of code that was taken over with its imports.
        """
        if not level and name.partition(".")[0] not in self._parents:
            return None  # most are of packages that are installed
        # What a relative one means, its folder says.
        key = name, level, importer.folder if level else importer.path
        if key not in self._found:
            self._found[key] = self._find(name, importer, level)
        return self._found[key]

    def _find(self, name: str, importer: Importer, level: int) -> str | None:
        parts = name.split(".") if name else []
        if level:
            folder = importer.folder
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            if not parts:
                return self._file_at(os.path.join(folder, "__init__.py")) or folder
            return self.file_below(folder, parts)
        if not parts or parts[0] in _ALWAYS_EXTERNAL:
            return None
        for parent in self._roots_around(parts[0], importer):
            found = self.file_below(parent, parts)
            if found is not None and found != importer.path and not self._is_hidden(found, parts):
                return found
        hits = [hit for hit in self._elsewhere(name, importer) if not self._is_hidden(hit, parts)]
        if len(hits) > 1:
            shared = [len(os.path.commonpath([hit, importer.path])) for hit in hits]
            best = max(shared)
            hits = [hit for hit, length in zip(hits, shared, strict=True) if length == best]
        return hits[0] if len(hits) == 1 else None if hits else self._in_package(parts, importer)

    def _is_hidden(self, found: str, parts: list[str]) -> bool:
        """Whether a folder without ``__init__.py`` has the name of a package that is installed.

        That one is found wherever it is, and a bare folder only if there is no package.
        """
        return parts[0] in FRAMEWORK_PACKAGES and self._file_at(found) is None

    def _in_package(self, parts: list[str], importer: Importer) -> str | None:
        """What a name of several parts means in the nearest package around, which is no root."""
        if len(parts) == 1 or parts[0] in sys.stdlib_module_names:
            return None
        folders = upwards(os.path.dirname(importer.folder))
        around = (each for each in folders if each in self._parents.get(parts[0], ()))
        return next(filter(None, (self.file_below(each, parts) for each in around)), None)

    def _roots_around(self, name: str, importer: Importer) -> list[str]:
        """The folders around the importer from which ``import name`` may start, nearest first.

        A package's own folder is none, except for a script that lies in it.
        """
        # All files of a folder ask the same of it.
        known = self._roots.get((name, importer.folder))
        if known is None:
            known = self._roots[name, importer.folder] = self._new_roots_around(name, importer)
        return known

    def _new_roots_around(self, name: str, importer: Importer) -> list[str]:
        places = self._parents.get(name)
        if not places:
            return []
        own = importer.folder
        around = [own] if own in places else []
        around += [
            folder
            for folder in upwards(os.path.dirname(own))
            if folder in places and self._may_be_root(folder)
        ]
        if self.is_package(own) and around and around[0] == own:
            # Inside a package, "import x" means the top-level x unless only a sibling has it: that
            # beside the package. What is further out is not where such imports start.
            beside = os.path.dirname(self.unit(importer.path))
            nearer = sum(len(each) >= len(beside) for each in around)
            around.insert(nearer, own)
            del around[0]
        if name in sys.stdlib_module_names:
            around = [own] if own in places and not self.is_package(own) else []
        return around

    def _elsewhere(self, name: str, importer: Importer) -> list[str]:
        """What a dotted name means below the tree's other folders; nothing for Python's own."""
        top, *_ = parts = name.split(".")
        if top in sys.stdlib_module_names:
            return []
        known = self._everywhere.get(name)
        if known is None:
            known = self._everywhere[name] = [
                (folder, hit)
                for folder in self._parents.get(top, ())
                if self._may_be_root(folder) and (hit := self.file_below(folder, parts))
            ]
        own = os.path.join(importer.folder, "")
        return [hit for folder, hit in known if not own.startswith(os.path.join(folder, ""))]

    def _may_be_root(self, folder: str) -> bool:
        """Whether imports may start from a folder: no package, or one that installs its own."""
        return not self.is_package(folder) or os.path.join(folder, "setup.py") in self.files

    def is_package(self, folder: str) -> bool:
        """Whether a folder is a package of the tree."""
        return self._file_at(os.path.join(folder, "__init__.py")) is not None

    def is_certain(self, name: str, importer: Importer, level: int) -> bool:
        """Whether an import's target lies around the importer, or is the only one of its name."""
        if level:
            return True
        top = name.partition(".")[0]
        return bool(self._roots_around(top, importer)) or len(self._elsewhere(top, importer)) == 1

    def unit(self, path: str) -> str:
        """The topmost package around a file; its folder for a plain script."""
        unit = folder = path if path in self.folders else os.path.dirname(path)
        known = self._units.get(folder)
        if known is None:
            around = folder
            while self.is_package(around):
                unit = around
                around = os.path.dirname(around)
            known = self._units[folder] = unit
        return known


# Where files are that may not have been parsed.


class Importer(Protocol):
    """What an import is relative to."""

    @property
    def path(self) -> str:
        """Absolute path."""

    @property
    def folder(self) -> str:
        """The folder that it is in."""


class Place(NamedTuple):
    """Where a file is that may not have been parsed."""

    path: str
    folder: str

    @classmethod
    def of(cls, path: str) -> Place:
        """The place of a file."""
        return cls(path, os.path.dirname(path))
