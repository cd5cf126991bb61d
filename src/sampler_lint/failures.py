"""A rule that raises is a bug of this linter: it is reported, and the rest of the run goes on."""

from __future__ import annotations

import os
import traceback
from types import TracebackType
from typing import TYPE_CHECKING

from sampler_lint.findings import FileError

if TYPE_CHECKING:
    from sampler_lint.model.project import Project

#: The code under which the linter reports on itself.
CODE = "SMP000"


def failure(
    code: str, error: BaseException, project: Project, path: str | None = None
) -> FileError:
    """What is told when the rule ``code`` has raised ``error``: where it looked, and why it failed.

    The place in the user's code is what the rule was looking at when it failed, as far as the
    variables of its functions show it; else the file ``path``, if it was known to look at one.
    """
    asked = project.files[path] if path is not None else project.root
    place, row = _looked_at(error.__traceback__, project) or (asked, None)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())
    reason = (
        f"{CODE} the rule {code} failed here, so its findings are not complete "
        f"({type(error).__name__}{f': {said[:200]}' if said else ''}, at "
        f"{os.path.basename(frame.filename)}:{frame.lineno}); --show-traceback shows more"
    )
    return FileError(place, reason, row, "".join(traceback.format_exception(error)))


def _looked_at(raised: TracebackType | None, project: Project) -> tuple[str, int | None] | None:
    from sampler_lint.model.facts import ModuleFacts, Node, Scope

    frames: list[TracebackType] = []
    while raised is not None:
        frames.append(raised)
        raised = raised.tb_next
    for frame in reversed(frames):
        for value in reversed(frame.tb_frame.f_locals.values()):
            # A piece of syntax, or what was built at one.
            for node in (value, getattr(value, "site", None)):
                scope = node if isinstance(node, Scope) else getattr(node, "scope", None)
                if isinstance(node, Node) and isinstance(scope, Scope):
                    row = None if isinstance(node, ModuleFacts) else node.row
                    return project.module_of(scope).display, row
    return None
