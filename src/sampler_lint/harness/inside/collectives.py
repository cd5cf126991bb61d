"""What the program exchanges over ranks: metrics, and what a model makes of a batch."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from .content import DEPTH
from .objects import HERE, caller, class_name, goes_on_to_cut

#: Exchanges over ranks that are looked at after a loader, and numbers in one of them.
SUMS = 8

#: Collectives that leave the sum on some rank, and those that leave there what each rank has.
_SUMS = ("all_reduce", "reduce")
_GATHERS = ("all_gather", "all_gather_into_tensor", "all_gather_object", "gather", "gather_object")

#: Those that hand something on to one other rank, and what that is there.
_HANDS_ON = {"send": "send", "isend": "send", "recv": "recv", "irecv": "recv"}
#: Of these, what torch knows again by its identity when several go out together.
_KNOWN_AGAIN = ("isend", "irecv")

#: What they call that which this rank puts in.
_GIVEN = ("tensor", "input_tensor", "obj")


def patch_collectives(recorder: Any, module: Any) -> None:
    """Note where the program adds up over ranks what it has not learned from: metrics; and with
    whom it exchanges what a model makes of a batch."""
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    for name in (*_SUMS, *_GATHERS, *_HANDS_ON):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _noting(recorder, original))
        if name in _KNOWN_AGAIN and getattr(c10d, name, None) is original:
            setattr(c10d, name, getattr(module, name))


def _noting(recorder: Any, original: Any) -> Any:
    name = original.__name__

    @functools.wraps(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        if recorder.counting and name in (*_SUMS, *_GATHERS):
            recorder.guarded(_note_metric, recorder, original, args, kwargs)
        if (recorder.looked or recorder.counting) and name in _GATHERS:
            recorder.guarded(_note_rows, recorder, original, args, kwargs)
        if recorder.looked and name not in _GATHERS:
            recorder.guarded(_note_exchanged, recorder, original, args, kwargs)
        return original(*args, **kwargs)

    return collective


def _asked(function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    return dict(_signature(function).bind(*args, **kwargs).arguments)


@functools.cache
def _signature(function: Any) -> Any:
    import inspect  # not before torch does

    return inspect.signature(function)


def _note_metric(recorder: Any, function: Any, args: Any, kwargs: Any) -> None:
    """Note a few numbers that the program itself adds up over the ranks after a loader, or
    gathers from them, and that it gathers more than a few."""
    frame = caller()
    if frame is None or not recorder.is_users(frame.f_code.co_filename):
        return
    asked = _asked(function, args, kwargs)
    operations = [str(one) for one in asked.values() if "RedOp" in class_name(one)]
    if any(not one.endswith("SUM") for one in operations):
        return
    given = next(asked[name] for name in _GIVEN if name in asked)
    gathers = function.__name__ in _GATHERS
    values = [*_numbers(given, DEPTH)] if _size(given) <= SUMS else []
    if not values and not gathers:
        return
    recorder.counting -= 1
    path, line = os.path.abspath(frame.f_code.co_filename), frame.f_lineno
    number = recorder.begun - 1
    recorder.note("reduced", number=number, path=path, line=line, values=values, gathered=gathers)


def _note_rows(recorder: Any, function: Any, args: Any, kwargs: Any) -> None:
    """Note that the program gathers from all ranks what it made of each sample of the batch, or of
    all that it has read, and leaves nothing of it out after that.

    A library does it for the program where it is asked to gather; what else it is asked for may
    leave something out itself.
    """
    last, asked = recorder.last, _asked(function, args, kwargs)
    if last is None or last.has_learned:
        return
    sizes = {*_lengths(next(asked[name] for name in _GIVEN if name in asked), DEPTH)}
    whole = last.count in sizes and last.count > last.rows
    if not (whole or (recorder.looked and last.rows > 1 and last.rows in sizes)):
        return
    last.gathers += 1
    every = [*_frames(recorder)] if last.gathers <= SUMS else []
    users = [frame for frame in every if recorder.is_users(frame.f_code.co_filename)]
    at = every.index(users[0]) if users else 0
    if not users or (at and every[at - 1].f_code.co_name not in (*_GATHERS, "gather")):
        return
    # What is kept of each batch, another part of the program may cut that a framework calls.
    by_framework = users != every[at : at + len(users)]
    if (by_framework and not whole) or any(map(goes_on_to_cut, users)):
        return
    path, line = os.path.abspath(users[0].f_code.co_filename), users[0].f_lineno
    recorder.note("rows", number=last.number, path=path, line=line)


def _lengths(thing: Any, depth: int) -> Iterator[int]:
    """How many entries tensors and lists of numbers have, among things in containers."""
    if getattr(thing, "ndim", 0):
        yield len(thing)
    elif depth and isinstance(thing, (dict, list, tuple)):
        parts = [*thing.values()] if isinstance(thing, dict) else [*thing[:SUMS]]
        if parts and isinstance(thing, list) and isinstance(parts[0], (int, float, str)):
            yield len(thing)
        for one in parts:
            yield from _lengths(one, depth - 1)


def _frames(recorder: Any) -> Iterator[FrameType]:
    """What is at work, the innermost first, but for the recorder, torch and Python's own."""
    frame = caller()
    while frame is not None:
        if not frame.f_code.co_filename.startswith(("<", HERE, *recorder.libraries)):
            yield frame
        frame = frame.f_back


def _size(thing: Any) -> int:
    """How many numbers a tensor holds, or things a container."""
    if hasattr(thing, "numel"):
        return int(thing.numel())
    if isinstance(thing, dict):
        return sum(map(_size, thing.values()))
    return sum(map(_size, thing)) if isinstance(thing, (list, tuple, set)) else 1


def _numbers(thing: Any, depth: int) -> Iterator[float]:
    """The numbers in a tensor or a container."""
    if isinstance(thing, (int, float)):
        yield float(thing)
    elif hasattr(thing, "numel"):
        yield from map(float, thing.detach().reshape(-1).tolist())
    elif depth and isinstance(thing, (dict, list, tuple)):
        for one in thing.values() if isinstance(thing, dict) else thing:
            yield from _numbers(one, depth - 1)


def _note_exchanged(recorder: Any, function: Any, args: Any, kwargs: Any) -> None:
    """Note with whom numbers are exchanged that a model made of the batch's samples."""
    last, how = recorder.last, _HANDS_ON.get(function.__name__, function.__name__)
    asked = _asked(function, args, kwargs)
    tensor, group = asked["tensor"], asked.get("group")
    if last is None or last.has_learned or last.ended_at is not None:
        return
    if last.rows not in tensor.shape or tensor.ndim < 2 or not tensor.is_floating_point():
        return
    if recorder.learning.has_shape(tensor.shape):
        return  # parameters, which local SGD averages
    dist: Any = sys.modules["torch.distributed"]
    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    if how in _HANDS_ON:
        peers = [asked[name] for name in ("dst", "src") if asked.get(name) is not None]
        places = [asked.get(name) for name in ("group_dst", "group_src")]
        within = [ranks[place] for place in places if place is not None]
        if not peers and not within:
            return  # from whoever sends first
        ranks = [dist.get_rank(), *peers, *within]
    recorder.learning.exchanged((last.number, last.given), how, ranks)
