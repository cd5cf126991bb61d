"""What ``from module import *`` brings, through star imports of star imports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sampler_lint.syntax.nodes import Const, ModuleFacts, Seq
from sampler_lint.workspace.project import Project


class _Stars(NamedTuple):
    """The files whose names star imports bring to a file, the last import first."""

    files: list[ModuleFacts]
    named: dict[str, int]
    """The first of the files that brings each name as its own."""
    deeper: list[tuple[int, frozenset[object] | None]]
    """The files that have star imports themselves, and their ``__all__`` (None: not listed)."""


class StarImports:
    """Finds the file that a name comes from; each file's imports are looked through once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._stars: dict[ModuleFacts, _Stars] = {}
        self._sources: dict[tuple[ModuleFacts, str], ModuleFacts | None] = {}

    def source(self, facts: ModuleFacts, name: str) -> ModuleFacts | None:
        """The file whose variable ``name`` a star import brings; the last import wins."""
        known = self._sources
        if (facts, name) in known:
            return known[facts, name]
        is_private = name.startswith("_")
        seen = {facts}
        found = None
        way = [(facts, iter(self._of(facts).deeper))]
        while way and found is None:
            at, deeper = way[-1]
            stars = self._stars[at]
            first = stars.named.get(name)
            for number, exported in deeper:
                if first is not None and number >= first:
                    found = stars.files[first]
                    break
                if is_private if exported is None else name not in exported:
                    continue
                other = stars.files[number]
                found = known.get((other, name))
                if found is not None:
                    break
                if other not in seen and (other, name) not in known:
                    seen.add(other)
                    way.append((other, iter(self._of(other).deeper)))
                    break
            else:
                found = None if first is None else stars.files[first]
                if found is None:
                    way.pop()
        # Where nothing is found, nothing is in all that was looked at.
        known.update(((each, name), found) for each in ([e for e, _ in way] or seen))
        return known[facts, name]

    def _of(self, facts: ModuleFacts) -> _Stars:
        if facts not in self._stars:
            self._stars[facts] = self._find(facts)
        return self._stars[facts]

    def _find(self, facts: ModuleFacts) -> _Stars:
        stars = _Stars([], {}, [])
        module = self._project.module_of(facts)
        for target, level in reversed(facts.star_imports):
            path = self._project.imports.find(target, module, level)
            other = self._project.module_telling(path) if path is not None else None
            if other is None or other.facts is facts:
                continue
            if other.facts.star_imports:
                stars.deeper.append((len(stars.files), _said(other.facts)))
            for name in _exported(other.facts):
                stars.named.setdefault(name, len(stars.files))
            stars.files.append(other.facts)
        return stars


def _said(facts: ModuleFacts) -> frozenset[object] | None:
    """The names in ``__all__``; None if ``import *`` brings all but private ones."""
    for binding in facts.bindings.get("__all__", ()):
        if isinstance(binding.value, Seq):
            return frozenset(i.value for i in binding.value.items if isinstance(i, Const))
        return None
    return None


def _exported(facts: ModuleFacts) -> Iterable[str]:
    """The names of a file that ``from module import *`` may bring."""
    for binding in facts.bindings.get("__all__", ()):
        if isinstance(binding.value, Seq):
            said = {item.value for item in binding.value.items if isinstance(item, Const)}
            return said & facts.bindings.keys()
        return facts.bindings
    return [name for name in facts.bindings if not name.startswith("_")]
