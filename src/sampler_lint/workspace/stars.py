"""What ``from module import *`` brings, through star imports of star imports."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable

from sampler_lint.source import SourceError
from sampler_lint.syntax.closure import closure
from sampler_lint.syntax.nodes import Const, Imported, ModuleFacts, Seq
from sampler_lint.workspace.import_paths import Importer, Place
from sampler_lint.workspace.project import Project

_WORD = re.compile(rb"\w+")
#: What a star import brings only where it shadows what Python has.
BUILTINS = frozenset(dir(builtins))


class StarImports:
    """Finds the file that a name comes from.

    A package may hand on hundreds of others, so a file is parsed only if the name is in its text,
    or in that of a file which its own star imports may bring.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._sources: dict[tuple[ModuleFacts, str], ModuleFacts | None] = {}
        self._starred: dict[ModuleFacts, list[str]] = {}
        self._words: dict[str, frozenset[bytes] | None] = {}
        """What the text of each file says that star imports lead to; None: it cannot be told."""
        self._into: dict[str, list[str]] = {}
        """The files that each of them may be brought to."""
        self._leading: dict[str, tuple[int, set[str], set[str]]] = {}
        self._facts: dict[str, ModuleFacts | None] = {}

    def source(self, facts: ModuleFacts, name: str) -> ModuleFacts | None:
        """The file whose variable ``name`` a star import brings; the last import wins."""
        if (facts, name) not in self._sources:
            self._sources[facts, name] = self._find(facts, name)
        return self._sources[facts, name]

    def _find(self, facts: ModuleFacts, name: str) -> ModuleFacts | None:
        if name in BUILTINS:
            return self._shadowing(facts, name)
        seen = {facts}
        way = [iter(self._brought_to(facts))]
        own = self._project.module_of(facts).path
        leading = self._leading_to(name, own)
        while way:
            for path in way[-1] if leading else ():
                other = self._told(path) if path in leading else None
                if other is None or other in seen:
                    continue
                seen.add(other)
                if not _exports(other, name):
                    continue
                if name in other.bindings:
                    return other
                if other.star_imports:
                    way.append(iter(self._brought_to(other)))
                    break
            else:
                way.pop()
        return None

    def _shadowing(self, facts: ModuleFacts, name: str) -> ModuleFacts | None:
        """The file imported from that has a name of Python's own: no others are read for that."""
        for path in self._starred_in(facts):
            other = self._told(path) if self._project.says(path, name.encode()) else None
            if other is not None and name in other.bindings and _exports(other, name):
                return other
        return None

    def _starred_in(self, facts: ModuleFacts) -> list[str]:
        """The files that a file itself imports from by a star, the last first."""
        stars = [Imported(target, None, level) for target, level in reversed(facts.star_imports)]
        return self._found(stars, self._project.module_of(facts))

    def _brought_to(self, facts: ModuleFacts) -> list[str]:
        """The files that star imports bring to a file, the last first."""
        if facts not in self._starred:
            self._starred[facts] = self._starred_in(facts)
            self._look_into(self._starred[facts])
        return self._starred[facts]

    def _told(self, path: str) -> ModuleFacts | None:
        """What is in a file, parsed now if need be."""
        if path not in self._facts:
            module = self._project.module_telling(path)
            self._facts[path] = None if module is None else module.facts
        return self._facts[path]

    def _found(self, imports: Iterable[Imported], importer: Importer) -> list[str]:
        """The files of the tree among what is imported whole."""
        found = [
            self._project.imports.find(each.name, importer, each.level)
            for each in imports
            if each.attribute is None
        ]
        return [path for path in found if path is not None and self._project.may_tell(path)]

    def _look_into(self, paths: Iterable[str]) -> None:
        """Read the words of files, and of those that they may bring."""
        todo = [path for path in paths if path not in self._words]
        while todo:
            path = todo.pop()
            if path in self._words:
                continue
            told = self._project.imports_told(path)
            try:
                words = frozenset(_WORD.findall(self._project.bytes_of(path)))
            except SourceError:
                words = frozenset()
            self._words[path] = None if told is None else words
            for other in self._found(told or (), Place.of(path)):
                self._into.setdefault(other, []).append(path)
                todo.append(other)

    def _leading_to(self, name: str, own: str) -> set[str]:
        """The files looked into that say a name, or may be brought one that does.

        None are, if only the file does that asks for it, in which nothing binds it.
        """
        size, said, leading = self._leading.get(name, (0, set(), set()))
        if size != len(self._words):
            word = name.encode() if name.isascii() else None  # others can be spelled in many ways
            said = {
                path
                for path, words in self._words.items()
                if word is None or words is None or word in words
            }
            leading = set(closure(said, lambda path: self._into.get(path, ())))
            self._leading[name] = len(self._words), said, leading
        return leading if said - {own} else set()


def _exports(facts: ModuleFacts, name: str) -> bool:
    """Whether ``import *`` brings a name of a file: what is in ``__all__``, or what is not private.

    Source: https://docs.python.org/3/reference/simple_stmts.html#the-import-statement
    """
    for binding in facts.bindings.get("__all__", ()):
        if isinstance(binding.value, Seq):
            return any(isinstance(i, Const) and i.value == name for i in binding.value.items)
        break  # made elsewhere: it may list any
    else:
        return not name.startswith("_")
    return True


__all__ = ["BUILTINS", "StarImports"]
