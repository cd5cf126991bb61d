"""Whether a fix changes a program only by taking its bug away, told from the fixed text.

One checker for the fixes of all rules. It is given the edits, makes them in memory, and asks of
the result what any edit has to answer for, whoever planned it: the rest of the program still
means the same; each name that is read is assigned on every way to it; what was put in is reached;
nothing that a moved statement rests on lies between its places; an epoch is an int; a seed is the
same on every process; a new parameter is passed by everybody. What cannot be told is not safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sampler_lint.domain.model import Model
from sampler_lint.edits.safety.callers import new_parameters
from sampler_lint.edits.safety.effects import caught, dropped
from sampler_lint.edits.safety.meaning import (
    TooLongError,
    changed_by,
    original,
    reads,
    rebound,
    restructured,
)
from sampler_lint.edits.safety.orders import relied_on
from sampler_lint.edits.safety.outlines import other_base, other_init, stored_over
from sampler_lint.edits.safety.places import (
    awaited,
    moved,
    other_object,
    other_readers,
    other_uses,
    unreached,
)
from sampler_lint.edits.safety.runs import fails_when_run
from sampler_lint.edits.safety.settings import still_read
from sampler_lint.edits.safety.texts import Changed, gravest, window
from sampler_lint.edits.safety.values import wrong_value
from sampler_lint.findings import Edit
from sampler_lint.workspace.project import Module

#: What is asked of one file's text alone, the cheapest first; and what the model is asked, too.
_OF_TEXT = (
    *(restructured, rebound, reads),
    *(unreached, awaited, other_object, other_readers, other_uses),
)
_OF_MODEL = (
    moved,
    wrong_value,
    still_read,
    other_base,
    caught,
    dropped,
    other_init,
    stored_over,
    relied_on,
)


def _module_at(model: Model, path: str) -> Module | None:
    """The parsed file that is shown by a path."""
    known: dict[str, Module] = model.memo.setdefault(_module_at, {})
    if path not in known:
        known.update((module.display, module) for module in model.project.loaded)
    return known.get(path)


def place_of(model: Model, edits: Sequence[Edit]) -> object:
    """The statements of the top level that have to be looked at for a fix: what to group it by."""
    places: list[object] = []
    for path, listed in _by_path(edits).items():
        module = _module_at(model, path)
        try:
            part = None if module is None else window(original(model, module).tree, listed)
        except (SyntaxError, ValueError, RecursionError):
            part = None
        places.append((path, part))
    return tuple(places)


def are_safe(model: Model, fixes: Sequence[Sequence[Edit]]) -> bool:
    """Whether several fixes are safe, each for itself, as far as that shows if all are made."""
    try:
        return next(_reasons(model, fixes), None) is None
    except Exception:  # whose fault it is shows when each is asked for itself
        return False


def why_unsafe(model: Model, edits: Sequence[Edit]) -> str | None:
    """What speaks against making the edits without a person looking at them; None if nothing.

    A reason that is known to hold goes before those that may.
    """
    return gravest(_reasons(model, [edits]))


def _reasons(model: Model, fixes: Sequence[Sequence[Edit]]) -> Iterator[str]:
    """What each question finds against the fixes, the cheapest first."""
    changes: dict[str, tuple[Module, Changed]] = {}
    try:
        for path, listed in _by_path(edit for fix in fixes for edit in fix).items():
            module = _module_at(model, path)
            if module is None:
                yield f"{path} is not part of the program"
                return
            changes[path] = module, changed_by(original(model, module), listed)
    except TooLongError:
        yield "too much of the file would have to be looked at in one run"
        return
    except (SyntaxError, ValueError, RecursionError):
        yield "the fixed text cannot be read"
        return
    for module, changed in changes.values():
        for check in _OF_TEXT:
            yield from filter(None, [check(changed)])
        for ask in _OF_MODEL:
            yield from filter(None, [ask(model, module, changed)])
    yield from filter(None, [new_parameters(model, changes), fails_when_run(model, changes)])


def _by_path(edits: Iterable[Edit]) -> dict[str, list[Edit]]:
    by_path: dict[str, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    return by_path
