"""Which files of a very big tree matter, among those that say a sampler word.

Such a tree has hundreds of files with a word of ours: a docstring mentions a ``DataLoader``, a
compiler has loaders of its own. To read them all would take more than all the rest. So a file
without such a word in its code matters only beside one that has some.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Protocol

from sampler_lint.source import is_about_sampling, says_loader, seeds_or_draws
from sampler_lint.workspace.import_scan import without_prose
from sampler_lint.workspace.places import Importer, Place


class Imports(Protocol):
    """What the files of a tree import."""

    @property
    def files(self) -> Mapping[str, str]:
        """Absolute paths, and how they are shown."""

    def find(self, name: str, importer: Importer, level: int = 0) -> str | None:
        """The file that a dotted name means."""

    def imports_told(
        self, path: str, data: bytes | None = None
    ) -> list[tuple[str, str | None, int]] | None:
        """What the text of a file imports."""


def that_matter(project: Imports, contents: Mapping[str, bytes]) -> set[str]:
    """Which of the files (path to content, all with a sampler word) have to be parsed.

    Those whose code speaks of samplers, of ``set_epoch`` or of a data loader, and those that seed
    or draw; those that have a ``loader`` in their code and are joined to them by imports, in
    either direction and over several files; and those that import from one of the first directly.
    What only these import from is read when somebody asks for its names.
    """
    code = functools.cache(lambda path: without_prose(contents[path]))
    sure = {
        path
        for path, data in contents.items()
        # Most of those that speak of it do so in their prose; most others do not at all.
        if seeds_or_draws(data) or (is_about_sampling(data) and is_about_sampling(code(path)))
    }
    links = _Links(project, contents)
    leading_to = {path: links.of(path) for path in contents}
    beside: dict[str, set[str]] = {}
    for path, others in leading_to.items():
        for other in others:
            beside.setdefault(path, set()).add(other)
            beside.setdefault(other, set()).add(path)
    kept, todo = set(sure), list(sure)
    while todo:
        path = todo.pop()
        for other in beside.get(path, set()) - kept:
            if (path in sure and path in leading_to[other]) or says_loader(code(other)):
                kept.add(other)
                todo.append(other)
    return kept


class _Links:
    """What files import, where a package stands for the files that it has the names from."""

    def __init__(self, project: Imports, contents: Mapping[str, bytes]) -> None:
        self._project = project
        self._contents = contents
        self._place = functools.cache(Place.of)

    def of(self, path: str) -> set[str]:
        """The files asked about that ``path`` imports something from."""
        found: set[str] = set()
        seen: set[tuple[str, str | None]] = set()
        todo = [link for each in self._imports_of(path) for link in self._targets(path, each)]
        while todo:
            target, name = link = todo.pop()
            if link in seen or target == path:
                continue
            seen.add(link)
            if target in self._contents and self._may_hold(target, name):
                found.add(target)
            if name is not None and target.endswith("__init__.py"):
                todo += self._given(target, name)
        return found

    def _may_hold(self, path: str, name: str | None) -> bool:
        return name is None or name.encode() in self._contents[path]

    def _given(self, package: str, name: str) -> Iterator[tuple[str, str | None]]:
        """Where a package may have a name from."""
        imports = self._imports_of(package)
        named = [each for each in imports if each[1] == name]
        for module, attribute, level in named or imports:
            if attribute in {name, None}:
                yield from self._targets(package, (module, name, level))

    def _targets(
        self, path: str, imported: tuple[str, str | None, int]
    ) -> Iterator[tuple[str, str | None]]:
        """The files that an import leads to, and the name that is asked of each."""
        name, attribute, level = imported
        project, place = self._project, self._place(path)
        if attribute is not None:
            whole = project.find(f"{name}.{attribute}".lstrip("."), place, level)
            if whole is not None and whole in project.files:
                yield whole, None
                return
        target = project.find(name, place, level)
        if target is not None and target in project.files:
            yield target, attribute

    def _imports_of(self, path: str) -> list[tuple[str, str | None, int]]:
        return self._project.imports_told(path, self._contents.get(path)) or []
