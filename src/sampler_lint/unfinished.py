"""Files that one fix changes together: all of them are written, or none, whenever it is ended.

Before the first is written, the old and the new content of all are noted in a file of the user's
own cache folder (a tree may not say by a file in it what is to be written). The note goes when all
are written. Where a process ended in between, the next run finds its note and puts them back.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sampler_lint.cache import digest, unfinished_folder
from sampler_lint.findings import FileError
from sampler_lint.fixing import PREFIX, SUFFIX, clear_stale, write_whole
from sampler_lint.source import SourceError, read_bytes

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

_SUFFIX = ".fix"


class Settled(NamedTuple):
    """What became of fixes that were interrupted."""

    written: list[str]
    """The files that were written to make each fix whole or undone."""
    errors: list[FileError]
    """What could not be."""


class _Change(NamedTuple):
    path: str
    """Absolute."""
    old: bytes
    new: bytes


@contextlib.contextmanager
def together(changes: Mapping[str, tuple[bytes, bytes]]) -> Iterator[None]:
    """Note the changes (old and new content by path, in the order of writing) while they are made.

    If not all are made afterwards, for whatever reason, those that are, are taken back.

    Raises:
        SourceError: they cannot be noted, so that none may be made.
    """
    listed = [_Change(os.path.abspath(path), *change) for path, change in changes.items()]
    with contextlib.ExitStack() as stack:
        try:
            note = stack.enter_context(_noted(listed))
        except OSError as error:
            reason = f"not written: no note of it in {unfinished_folder()} ({error.strerror})"
            raise SourceError(FileError(next(iter(changes)), reason)) from error
        try:
            yield
        finally:
            if not any(map(_may_be_done_later, _settle(listed).errors)):
                _remove(note)


def settle(roots: Sequence[str]) -> Settled:
    """Put back what interrupted runs have half fixed in files below ``roots``.

    What a living process is about to write is waited for. A file that was changed since is left
    alone; so are the others of its fix if it is not known which of their contents go with it.
    """
    settled = Settled([], [])
    tops = [os.path.abspath(root) for root in roots]
    for note in _notes():
        with contextlib.suppress(OSError), open(note, "rb") as file:
            if fcntl is not None:
                with contextlib.suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_EX)
                if not os.fstat(file.fileno()).st_nlink:
                    continue
            changes = _read(file.read())
            if changes is None:
                _remove(note)
            elif any(_is_below(change.path, top) for change in changes for top in tops):
                found = _settle(changes)
                settled.written.extend(found.written)
                settled.errors.extend(found.errors)
                if not any(map(_may_be_done_later, found.errors)):
                    _remove(note)
    return settled


def _may_be_done_later(error: FileError) -> bool:
    return error.reason != _CHANGED


_CHANGED = (
    "was changed after a fix of several files was interrupted: whether the others of them fit is "
    "not known"
)


def _settle(changes: Sequence[_Change]) -> Settled:
    """Make all of the changes or none, by writing only what nobody else has changed."""
    settled = Settled([], [])
    states = [_state(change) for change in changes]
    news = [number for number, state in enumerate(states) if state == "new"]
    olds = [number for number, state in enumerate(states) if state == "old"]
    others = [number for number, state in enumerate(states) if state == "other"]
    # They are written in their order: what stands before a new one was new, too.
    were_new = all(any(number < new for new in news) for number in others)
    were_old = all(any(old < number for old in olds) for number in others)
    if others and were_new == were_old:
        settled.errors.extend(FileError(_shown(changes[i].path), _CHANGED) for i in others)
        return settled
    if not others and not (news and olds):
        return settled
    for number in news if were_old else olds:
        change = changes[number]
        before, after = (change.new, change.old) if were_old else (change.old, change.new)
        try:
            write_whole(change.path, after, expect=before)
            settled.written.append(_shown(change.path))
        except SourceError as error:
            reason = f"a fix of several files is half made in it: {error.error.reason}"
            settled.errors.append(FileError(_shown(change.path), reason))
    return settled


def _state(change: _Change) -> str:
    try:
        data = read_bytes(change.path)
    except SourceError:
        return "other"
    return "old" if data == change.old else "new" if data == change.new else "other"


def _shown(path: str) -> str:
    return path.removeprefix(os.path.join(os.getcwd(), ""))


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(os.path.join(top, ""))


# --------------------------------------------------------------------------- notes


def _notes() -> list[str]:
    folder = unfinished_folder()
    clear_stale([folder])
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names if name.endswith(_SUFFIX)]


@contextlib.contextmanager
def _noted(changes: Sequence[_Change]) -> Iterator[str]:
    """A note safely on disk, locked as long as this process writes.

    Raises:
        OSError: it cannot be written.
    """
    folder = unfinished_folder()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=PREFIX, suffix=SUFFIX, dir=folder)
    note = temporary.removesuffix(SUFFIX) + _SUFFIX
    with contextlib.ExitStack() as stack:
        try:
            with open(descriptor, "wb") as file:
                if fcntl is not None:
                    # Windows renames no open file; elsewhere the second descriptor has the lock.
                    stack.callback(os.close, os.dup(file.fileno()))
                    with contextlib.suppress(OSError):
                        fcntl.flock(file, fcntl.LOCK_EX)
                file.write(_written(changes))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, note)
        except BaseException:
            _remove(temporary)
            raise
        _sync(folder)
        yield note


def _written(changes: Sequence[_Change]) -> bytes:
    body = json.dumps(
        [
            [
                os.fsencode(change.path).hex(),
                base64.b64encode(change.old).decode("ascii"),
                base64.b64encode(change.new).decode("ascii"),
            ]
            for change in changes
        ]
    ).encode("ascii")
    return digest(body).encode("ascii") + b"\n" + body


def _read(data: bytes) -> list[_Change] | None:
    """The changes of a note; None if it is not as it was written."""
    head, _, body = data.partition(b"\n")
    if head != digest(body).encode("ascii"):
        return None
    return [
        _Change(os.fsdecode(bytes.fromhex(path)), base64.b64decode(old), base64.b64decode(new))
        for path, old, new in json.loads(body)
    ]


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _sync(folder: str) -> None:
    """Make sure that the folder's names are on disk, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
