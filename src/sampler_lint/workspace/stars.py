"""What ``from module import *`` brings, through star imports of star imports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sampler_lint.syntax.nodes import Const, ModuleFacts, Seq
from sampler_lint.workspace.project import Project


class _Stars(NamedTuple):
    """The files whose names star imports bring to a file, the last import first."""

    files: list[ModuleFacts]
    named: dict[str, int]
    """The first of the files that brings each name as its own."""
    deeper: list[int]
    """The files that have star imports themselves."""


class StarImports:
    """Finds the file that a name comes from; each file's imports are looked through once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._stars: dict[ModuleFacts, _Stars] = {}
        self._sources: dict[tuple[ModuleFacts, str], ModuleFacts | None] = {}

    def source(self, facts: ModuleFacts, name: str) -> ModuleFacts | None:
        """The file whose variable ``name`` a star import brings; the last import wins."""
        known = self._sources
        seen = {facts}
        found = None
        way = [] if (facts, name) in known else [(facts, self._candidates(facts, name))]
        while way and found is None:
            for other, is_its_own in way[-1][1]:
                found = other if is_its_own else known.get((other, name))
                if found is not None:
                    break
                if other not in seen and (other, name) not in known:
                    seen.add(other)
                    way.append((other, self._candidates(other, name)))
                    break
            else:
                way.pop()
        if (facts, name) not in known:
            # Where nothing is found, nothing is in all that was looked at.
            known.update(((each, name), found) for each in ([e for e, _ in way] or seen))
        return known[facts, name]

    def _candidates(self, facts: ModuleFacts, name: str) -> Iterator[tuple[ModuleFacts, bool]]:
        """The files that may bring a name by a star import, and whether it is their own."""
        stars = self._stars.get(facts)
        if stars is None:
            stars = self._stars[facts] = self._find(facts)
        first = stars.named.get(name)
        for number in stars.deeper:
            if first is not None and number >= first:
                break
            if _is_exported(stars.files[number], name):
                yield stars.files[number], False
        if first is not None:
            yield stars.files[first], True

    def _find(self, facts: ModuleFacts) -> _Stars:
        stars = _Stars([], {}, [])
        module = self._project.module_of(facts)
        for target, level in reversed(facts.star_imports):
            path = self._project.imports.find(target, module, level)
            other = self._project.module_telling(path) if path is not None else None
            if other is None or other.facts is facts:
                continue
            if other.facts.star_imports:
                stars.deeper.append(len(stars.files))
            for name in _exported(other.facts):
                stars.named.setdefault(name, len(stars.files))
            stars.files.append(other.facts)
        return stars


def _is_exported(facts: ModuleFacts, name: str) -> bool:
    """Whether ``from module import *`` may bring the name."""
    for binding in facts.bindings.get("__all__", ()):
        if isinstance(binding.value, Seq):
            return any(isinstance(i, Const) and i.value == name for i in binding.value.items)
        return True
    return not name.startswith("_")


def _exported(facts: ModuleFacts) -> Iterable[str]:
    """The names of a file that ``from module import *`` may bring."""
    for binding in facts.bindings.get("__all__", ()):
        if isinstance(binding.value, Seq):
            said = {item.value for item in binding.value.items if isinstance(item, Const)}
            return said & facts.bindings.keys()
        return facts.bindings
    return [name for name in facts.bindings if not name.startswith("_")]
