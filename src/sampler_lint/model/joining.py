"""Files without a sampler word that a loader goes through, or whose loops lead to one.

The words of a file decide where to begin (:mod:`.first_look`), values decide where to end: a
progress bar of one's own (``for batch in logger.log_every(loader)``) iterates loaders in a file
that names none, and a script that only calls ``trainer.train_epoch(epoch)`` holds the epoch loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.model.epochs import Pass, encloses_a_pass, passes
from sampler_lint.model.facts import Attr, Function, Name, Scope
from sampler_lint.model.linked import Model
from sampler_lint.source import SourceError

MOST_ROUNDS = 3
"""A file that joins may lead to further ones; each round links the tree anew."""


def files_to_join(model: Model) -> set[str]:
    """The files that should be looked at as if they said a sampler word."""
    if not model.sharding_programs:
        return set()
    known = {module.path for module in model.modules}
    found = {path for path in _taking(model) if path not in known}
    for inner in passes(model):
        found |= _calling(model, inner, known)
    return found


def _taking(model: Model) -> Iterator[str]:
    """The files of the functions that a loader is handed to."""
    for module in model.modules:
        if model.project.program_of(module) not in model.sharding_programs:
            continue
        for call in module.facts.all_calls:
            if any(_is_loader(model, arg.value) for arg in call.args):
                for function in model.flow.callees(call):
                    yield model.module_of(function).path


def _is_loader(model: Model, expr: object) -> bool:
    return isinstance(expr, (Name, Attr)) and any(
        model.role(value) == "loader" for value in model.flow.values(expr)
    )


def _calling(model: Model, inner: Pass, known: set[str]) -> set[str]:
    """The files that may call what makes a pass, where no candidate does so in a loop."""
    scope: Scope | None = inner.scope
    if not isinstance(scope, Function) or encloses_a_pass(model, inner):
        return set()
    return {
        path
        for function in _callers_up(model, scope)
        if not model.flow.callers(function)
        for path in _saying(model, function, known)
    }


def _callers_up(model: Model, function: Function) -> set[Function]:
    found, todo = {function}, [function]
    while todo:
        for call in model.flow.callers(todo.pop()):
            if isinstance(call.scope, Function) and call.scope not in found:
                found.add(call.scope)
                todo.append(call.scope)
    return found


def _saying(model: Model, function: Function, known: set[str]) -> Iterator[str]:
    """Files that import from the function's file and spell its name."""
    project = model.project
    home = model.module_of(function)
    word = function.name.encode()
    for path in project.files:
        if path in known or path == home.path:
            continue
        try:
            data = project.bytes_of(path)
        except SourceError:
            continue
        if word in data and home.path in project.imported_by(path):
            yield path


__all__ = ["MOST_ROUNDS", "files_to_join"]
