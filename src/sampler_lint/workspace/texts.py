"""All text that what a class does may rest on: its own, and that of what its words name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sampler_lint.limits import MOST_FILES_OF_CLASS
from sampler_lint.syntax.nodes import Class, ModuleFacts, Stmt
from sampler_lint.workspace.project import Module, Project

_WORD = re.compile(r"\w+")


class Texts(NamedTuple):
    """The same texts do the same, in whatever files they stand."""

    parts: tuple[str, ...]
    files: Mapping[str, ModuleFacts]
    """The files they stand in, and what these say."""


def texts_of(project: Project, classes: Iterable[Class]) -> Texts | None:
    """The texts that some classes rest on; None if they may rest on others.

    A file that nobody has parsed yet is not parsed for it.
    """
    reader = _Reader(project)
    for cls in classes:
        module = project.module_of(cls)
        if not reader.is_alone(module, cls) or not reader.take(module, {cls.name}):
            return None
    while reader.todo:
        if not reader.take(*reader.todo.pop()):
            return None
    return Texts(tuple(reader.parts), reader.files)


class _Reader:
    """Goes from words to the statements that bind them, and on by the words in these."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.parts: list[str] = []
        self.files: dict[str, ModuleFacts] = {}
        self.todo: list[tuple[Module, set[str]]] = []
        self._words: dict[str, set[str]] = {}
        self._statements: set[Stmt] = set()

    def is_alone(self, module: Module, cls: Class) -> bool:
        """Whether the class is the one thing of its name in its file."""
        bound = module.facts.bindings.get(cls.name, ())
        return [each.payload for each in bound] == [cls]

    def take(self, module: Module, words: set[str]) -> bool:
        """Read what the words name in a file; whether all of that can be told."""
        facts = self.files[module.path] = module.facts
        known = self._words.setdefault(module.path, set())
        todo = sorted(words - known)
        if len(self.files) > MOST_FILES_OF_CLASS:
            return False
        known.update(todo)
        while todo:
            for binding in facts.bindings.get(todo.pop(), ()):
                stmt = binding.stmt
                if stmt is None or stmt.scope is not facts:
                    return False
                stmt = [stmt, *stmt.ancestors()][-1]
                if stmt not in self._statements:
                    self._statements.add(stmt)
                    self.parts.append(text := _text(module, stmt))
                    new = sorted(set(_WORD.findall(text)) - known)
                    known.update(new)
                    todo += new
        return self._follow_imports(module, known)

    def _follow_imports(self, module: Module, words: set[str]) -> bool:
        project = self.project
        imports = [(name, *imported) for name, imported in module.facts.imports if name in words]
        imports += [("*", name, "*", level) for name, level in module.facts.star_imports]
        for local, name, attribute, level in imports:
            whole = name if attribute in {None, "*"} else ".".join(filter(None, (name, attribute)))
            for dotted in dict.fromkeys((whole, name)):
                path = project.imports.find(dotted, module, level)
                self.parts.append(f"{local} {attribute} {path is None}")
                if path is None or path not in project.files:
                    continue
                target = project.parsed_at(path)
                if target is None:
                    return False
                bound = target.facts.bindings
                given = words if attribute == "*" else {attribute} if attribute else set(bound)
                if not given <= self._words.get(path, set()):
                    self.todo.append((target, given))
        return True


def _text(module: Module, stmt: Stmt) -> str:
    """The lines of a statement; those of its decorators are above a definition."""
    rows = [stmt.row, *(each.row for each in getattr(stmt, "decorators", ()))]
    starts = [*module.source.line_starts, len(module.source.text)]
    return module.source.text[starts[min(rows) - 1] : starts[stmt.end_row]]
