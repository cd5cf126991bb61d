"""What classes did when they were tried, kept from one model of a tree to the next.

A trial reads the text of the class's file and of the files that its names come from, and what the
tree passes for its parameters. While these are the same it comes out the same, and is not run
again.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sampler_lint.syntax.nodes import Class, ModuleFacts
from sampler_lint.workspace.project import Project

if TYPE_CHECKING:
    from sampler_lint.execution.interpreter import Interpreter
    from sampler_lint.execution.values import Passed

T = TypeVar("T")
#: What the tree passes for the parameters of a class, by their names.
PassedFor = Callable[[Class], "Mapping[str, tuple[Passed, ...]]"]


@dataclass(slots=True)
class _Answer:
    result: Any
    read: Mapping[str, ModuleFacts | None]
    """The files that it rests on, with what they said; None for one that could not be parsed."""
    passed: Mapping[Class, Mapping[str, tuple[Passed, ...]]]
    turn: int
    """The last model that it was found to hold for."""


class Tried:
    """Answers of the interpreter, for one tree as it changes."""

    def __init__(self) -> None:
        self._runner: Interpreter | None = None
        self._known: dict[object, _Answer] = {}
        self._project: Project | None = None
        self._passed: PassedFor = lambda cls: {}
        self._turn = 0

    def serve(self, project: Project, passed: PassedFor) -> None:
        """Answer for a new model of the tree, or for a changed tree."""
        before, self._project, self._passed = self._project, project, passed
        self._turn += 1
        if before is not None and before.files.keys() != project.files.keys():
            self._known.clear()  # an import may lead elsewhere
        if before is not project:
            self._known = {
                key: answer
                for key, answer in self._known.items()
                if all(project.kept(path) is facts for path, facts in answer.read.items() if facts)
            }
        if self._runner is not None:
            self._runner.serve(project, passed)

    def ask(
        self, key: tuple[object, ...], classes: tuple[Class, ...], run: Callable[[Interpreter], T]
    ) -> T:
        """What ``run`` says of the classes; ``key`` names the question, classes by themselves."""
        known = self._known.get(key)
        if known is not None and self._holds(known):
            return known.result  # type: ignore[no-any-return]
        interpreter = self._interpreter
        interpreter.forget_files()
        interpreter.told.clear()
        result = run(interpreter)
        read = interpreter.read_for(classes)
        self._known[key] = _Answer(result, read, dict(interpreter.told), self._turn)
        return result

    def rests_on(self, path: str) -> bool:
        """Whether an answer rests on a file."""
        return any(path in answer.read for answer in self._known.values())

    def forget(self, path: str) -> None:
        """Let go of what rests on a file, whose rows are others now."""
        kept = {key: answer for key, answer in self._known.items() if path not in answer.read}
        if len(kept) < len(self._known):
            self._known, self._runner = kept, None

    @property
    def _interpreter(self) -> Interpreter:
        if self._runner is None:
            # Loaded where there is a class to try: most trees have none.
            from sampler_lint.execution.interpreter import Interpreter

            assert self._project is not None
            if not gc.isenabled() and not gc.get_freeze_count():
                gc.freeze()  # what runs leave is garbage, what was there before them is none
            self._runner = Interpreter(self._project, self._passed)
        return self._runner

    def _holds(self, known: _Answer) -> bool:
        if known.turn != self._turn:
            if not all(self._says(path) is facts for path, facts in known.read.items()):
                return False
            if any(self._passed(cls) != told for cls, told in known.passed.items()):
                return False
            known.turn = self._turn
        return True

    def _says(self, path: str) -> ModuleFacts | None:
        assert self._project is not None
        module = self._project.module_at(path)
        return None if module is None else module.facts
