"""A rule that raises is a bug of this linter: it is reported, and the rest of the run goes on."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from sampler_lint.findings import FileError

if TYPE_CHECKING:
    from sampler_lint.syntax.nodes import Node, Scope
    from sampler_lint.workspace.project import Project

#: The code under which the linter reports on itself.
CODE = "SMP000"


@dataclass
class Failure:
    """What went wrong at one place of a file, for all rules that it went wrong for."""

    path: str
    row: int | None
    cause: str
    traceback: str
    codes: list[str]

    def told(self) -> FileError:
        """The line for it."""
        rules = f"the rule{'s' if len(self.codes) > 1 else ''} {', '.join(sorted(self.codes))}"
        findings = "their findings" if len(self.codes) > 1 else "its findings"
        reason = (
            f"{CODE} {rules} failed here, so {findings} are not complete ({self.cause}); "
            "--show-traceback shows more"
        )
        return FileError(self.path, reason, self.row, self.traceback)


def failure(code: str, error: BaseException, project: Project, path: str | None = None) -> Failure:
    """What is told when the rule ``code`` has raised ``error``: where it looked, and why it failed.

    The place in the user's code is what the rule was looking at when it failed, as far as the
    variables of its functions show it; else the file ``path``, if it was known to look at one.
    """
    asked = project.files[path] if path is not None else project.root
    place, row = _looked_at(error.__traceback__, project) or (asked, None)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())
    cause = (
        f"{type(error).__name__}{f': {said[:200]}' if said else ''}, at "
        f"{os.path.basename(frame.filename)}:{frame.lineno}"
    )
    return Failure(place, row, cause, "".join(traceback.format_exception(error)), [code])


def _looked_at(raised: TracebackType | None, project: Project) -> tuple[str, int | None] | None:
    from sampler_lint.syntax.nodes import ModuleFacts

    for node, scope in _places(reversed(_frames(raised))):
        row = None if isinstance(node, ModuleFacts) else node.row
        return project.module_of(scope).display, row
    return None


def avoidable(error: BaseException) -> Iterator[Node]:
    """What may be hidden from a rule so that it does not fail again, the least first.

    That is the call, the function or class around it and the file that the rule itself looked
    at, then those that what it asked looked at.
    """
    from sampler_lint.syntax.nodes import Call, Class, Function

    for frame in _frames(error.__traceback__):
        for node, scope in _places([frame]):
            if isinstance(node, Call):
                yield node
            if isinstance(scope, (Function, Class)):
                yield scope
            yield scope.module


def _frames(raised: TracebackType | None) -> list[TracebackType]:
    """The frames, the outermost first."""
    frames: list[TracebackType] = []
    while raised is not None:
        frames.append(raised)
        raised = raised.tb_next
    return frames


def _places(frames: Iterable[TracebackType]) -> Iterator[tuple[Node, Scope]]:
    """The pieces of syntax in the variables of functions, each with the scope it is in."""
    from sampler_lint.syntax.nodes import Node, Scope

    for frame in frames:
        for value in reversed(frame.tb_frame.f_locals.values()):
            # A piece of syntax, or what was built at one, or a class of the tree.
            for node in (value, getattr(value, "site", None), getattr(value, "cls", None)):
                scope = node if isinstance(node, Scope) else getattr(node, "scope", None)
                if isinstance(node, Node) and isinstance(scope, Scope) and hasattr(scope, "module"):
                    yield node, scope
