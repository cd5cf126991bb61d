"""What classes did when they were tried, kept from one model of a tree to the next.

A trial reads the text of the class's file and of the files that its names come from, and what the
tree passes for its parameters. While these are the same it comes out the same, and is not run
again. Nor is it where another class has the same text, or the same class stood elsewhere, and all
that its words name is the same, too.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from sampler_lint.limits import MOST_TEXTS_TRIED
from sampler_lint.syntax.nodes import Class, Expr, ModuleFacts
from sampler_lint.workspace.project import Project
from sampler_lint.workspace.texts import texts_of

if TYPE_CHECKING:
    from sampler_lint.execution.interpreter import Interpreter
    from sampler_lint.execution.values import Passed

T = TypeVar("T")
#: What the tree passes for the parameters of a class, by their names.
PassedFor = Callable[[Class], "Mapping[str, tuple[Passed, ...]]"]

#: Results that tell no place, by what was asked of which texts, of all trees that this process has
#: checked; the last ones that were asked for stand at the end.
_BY_TEXT: dict[object, Any] = {}


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
        assert self._project is not None
        texts = texts_of(self._project, classes)
        passed = {cls: self._passed(cls) for cls in classes} if texts is not None else {}
        asked = None
        if texts is not None and not any(isinstance(each, Expr) for each in key):
            asked = (_without_classes(key), repr([*passed.values()]), texts.parts)
        if texts is not None and asked in _BY_TEXT:
            result: T = _BY_TEXT.pop(asked)
            self._known[key] = _Answer(result, texts.files, passed, self._turn)
        else:
            interpreter = self._interpreter
            interpreter.forget_files()
            interpreter.told.clear()
            result = run(interpreter)
            read = interpreter.read_for(classes)
            self._known[key] = _Answer(result, read, dict(interpreter.told), self._turn)
            if not (asked and tells_no_place(result)):
                return result
        _BY_TEXT[asked] = result
        if len(_BY_TEXT) > MOST_TEXTS_TRIED:
            del _BY_TEXT[next(iter(_BY_TEXT))]
        return result

    def ask_of(self, texts: Mapping[str, str], run: Callable[[Interpreter], T]) -> T:
        """What ``run`` says while files, by their paths, say something else; it is not kept."""
        from sampler_lint.execution.interpreter import Interpreter

        assert self._project is not None
        return run(Interpreter(self._project, self._passed, texts))

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


def _without_classes(key: object) -> object:
    """A question, whichever classes it is asked of."""
    if isinstance(key, tuple):
        return tuple(map(_without_classes, key))
    return Class if isinstance(key, Class) else key


def tells_no_place(result: Any) -> bool:
    """Whether a result is numbers and words alone, which hold for any class of the same text."""
    from sampler_lint.execution.errors import RaisedError
    from sampler_lint.execution.values import Array, Data, Source

    todo = [result]
    seen: dict[int, Any] = {}
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue  # a list may be in itself
        seen[id(each)] = each
        if isinstance(each, (tuple, list, set, frozenset)):
            todo += each
        elif isinstance(each, dict):
            todo += (*each, *each.values())
        elif isinstance(each, RaisedError):
            if each.node is not None or each.names is not None:
                return False
        elif isinstance(each, Array):
            todo.append(each.items)
        elif is_dataclass(each) and type(each).__module__ != Data.__module__:
            todo += (getattr(each, one.name) for one in fields(each))
        elif not (
            each is None
            or isinstance(each, (bool, int, float, str, bytes, range, Enum))
            or (isinstance(each, Data) and not isinstance(each, Source))
        ):
            return False
    return True
