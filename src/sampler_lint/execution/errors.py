"""What ends a run in the interpreter."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Protocol

from sampler_lint.workspace.project import Module


class Globals(Protocol):
    """The global names of a module."""

    tree: ast.Module

    @property
    def module(self) -> Module | None:
        """The module; None for torch's own samplers."""

    @property
    def tests(self) -> Mapping[ast.stmt, ast.expr]:
        """What is asked before each statement that stands right below an ``if``."""

    def get(self, name: str) -> Any:
        """The value of a global name or builtin."""

    def set(self, name: str, value: Any) -> None:
        """Give a global name another value."""

    def imported(self, node: ast.Import | ast.ImportFrom, name: str) -> Any:
        """What an import statement binds to ``name``."""


class CannotTellError(Exception):
    """The program does something that this interpreter does not know, or asks for what no one
    can know before the run."""


class OutsideError(CannotTellError):
    """Only a base outside the tree can say what an object has by that name."""


class OverBudgetError(CannotTellError):
    """The program takes more steps or memory than a class is given (see :mod:`.budget`)."""


class Kind(Enum):
    """What an argument is used as."""

    NUMBER = auto()
    FLAG = auto()
    SEQUENCE = auto()
    MAPPING = auto()
    TEXT = auto()
    ANSWER = auto()
    """Of no argument: what is asked of one, such as whether it has an attribute."""


class GoesOnError(CannotTellError):
    """The program hands out more than any world has samples, and may never end."""


class WantedError(CannotTellError):
    """The program uses the argument ``key``, of which nothing is known yet, as a ``kind``."""

    def __init__(
        self,
        key: str,
        kind: Kind,
        choices: Sequence[str] = (),
        others: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(f"what `{key}` is")
        self.choices = choices
        """Of a text: what the program compares it with."""
        self.others = others
        """Of a text: what it is known not to be."""
        self.key = key
        self.kind = kind


class RaisedError(Exception):
    """The program raises ``kind``; ``node`` is what does, in the module of ``names``."""

    of_float = False
    """Whether it is a float, given to what takes only whole numbers."""

    def __init__(
        self, kind: str, node: ast.AST | None = None, names: Globals | None = None
    ) -> None:
        super().__init__(kind)
        self.kind = kind
        self.node = node
        self.names = names

    @property
    def unset(self) -> tuple[str, int, int] | None:
        """The attribute of a variable's object, or the variable, that is read without a value.

        With the row and column of the read.
        """
        match self.kind, self.node:
            case "AttributeError", ast.Attribute(value=ast.Name(), attr=name) as read:
                return name, read.lineno, read.col_offset
            case "UnboundLocalError", ast.Name(id=name) as read:
                return name, read.lineno, read.col_offset
        return None

    def bare(self) -> RaisedError:
        """The same to keep, without the frames that it came through."""
        return type(self)(self.kind, self.node, self.names)


class FractionError(RaisedError):
    """The program hands a float to what takes only whole numbers."""

    of_float = True

    def __init__(
        self,
        kind: str = "TypeError",
        node: ast.AST | None = None,
        names: Globals | None = None,
    ) -> None:
        super().__init__(kind, node, names)


class EndlessError(RaisedError):
    """The program runs for ever: a turn of the loop ``node`` leaves everything as it was."""
