"""Which files of a very big tree matter, among those that say a sampler word.

Such a tree has hundreds of files with a word of ours: a docstring mentions a ``DataLoader``, a
compiler has loaders of its own. To read them all would take more than all the rest. So a file
without such a word in its code matters only beside one that has some.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from sampler_lint.source import is_about_sampling, says_loader, seeds_or_draws
from sampler_lint.syntax.nodes import Imported
from sampler_lint.workspace.import_paths import ImportPaths, Place
from sampler_lint.workspace.import_scan import imports_in, without_prose

Told: TypeAlias = "Callable[[str, bytes | None], list[Imported] | None]"
"""Says what a file imports, by its path and its content where that was read."""


_TEST_PATH = re.compile(r"(?:^|/)(?:tests?/|testing/|test_[^/]*$|conftest\.py$|[^/]*_test\.py$)")


def is_of_tests(shown: str) -> bool:
    """Whether a file, by its path as findings show it, holds tests."""
    return _TEST_PATH.search(shown.replace("\\", "/")) is not None


class Mattering(NamedTuple):
    """Which files matter, and what that rests on."""

    found: set[str]
    files: Collection[str]
    """The files of the tree."""
    contents: Mapping[str, bytes]
    names: Mapping[str, set[bytes]]
    """By file, the names that it was asked for."""

    def still(self, files: Collection[str], contents: Mapping[str, bytes]) -> bool:
        """Whether it holds for these, if no other file of the tree has changed."""
        return (
            files == self.files
            and contents.keys() == self.contents.keys()
            and all(
                data == self.contents[path]
                or self._signs(path, data) == self._signs(path, self.contents[path])
                for path, data in contents.items()
            )
        )

    def _signs(self, path: str, data: bytes) -> object:
        """All that is asked of a file."""
        code = without_prose(data)
        names = [name in data for name in sorted(self.names.get(path, ()))]
        return _is_sure(data, lambda: code), says_loader(code), imports_in(data), names


def _is_sure(data: bytes, code: Callable[[], bytes]) -> bool:
    # Most of those that speak of it do so in their prose; most others do not at all.
    return seeds_or_draws(data) or (is_about_sampling(data) and is_about_sampling(code()))


def that_matter(paths: ImportPaths, told: Told, contents: Mapping[str, bytes]) -> Mattering:
    """Which of the files (path to content, all with a sampler word) have to be parsed.

    Those whose code speaks of samplers, of ``set_epoch`` or of a data loader, and those that seed
    or draw; those that have a ``loader`` in their code and are joined to them by imports, in
    either direction and over several files; and those that import from one of the first directly.
    What only these import from is read when somebody asks for its names.
    """
    code = functools.cache(lambda path: without_prose(contents[path]))
    sure = {p for p, data in contents.items() if _is_sure(data, functools.partial(code, p))}
    links = _Links(paths, told, contents)
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
    return Mattering(kept, set(paths.files), contents, links.names)


class _Links:
    """What files import, where a package stands for the files that it has the names from."""

    def __init__(self, paths: ImportPaths, told: Told, contents: Mapping[str, bytes]) -> None:
        self._paths = paths
        self._told = told
        self._contents = contents
        self._place = functools.cache(Place.of)
        self.names: dict[str, set[bytes]] = {}
        """By file, the names that it was asked for."""

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
        if name is None:
            return True
        self.names.setdefault(path, set()).add(name.encode())
        return name.encode() in self._contents[path]

    def _given(self, package: str, name: str) -> Iterator[tuple[str, str | None]]:
        """Where a package may have a name from."""
        imports = self._imports_of(package)
        named = [each for each in imports if each[1] == name]
        for module, attribute, level in named or imports:
            if attribute in {name, None}:
                yield from self._targets(package, Imported(module, name, level))

    def _targets(self, path: str, imported: Imported) -> Iterator[tuple[str, str | None]]:
        """The files that an import leads to, and the name that is asked of each."""
        name, attribute, level = imported
        paths, place = self._paths, self._place(path)
        if attribute is not None:
            whole = paths.find(f"{name}.{attribute}".lstrip("."), place, level)
            if whole is not None and whole in paths.files:
                yield whole, None
                return
        target = paths.find(name, place, level)
        if target is not None and target in paths.files:
            yield target, attribute

    def _imports_of(self, path: str) -> list[Imported]:
        return self._told(path, self._contents.get(path)) or []
