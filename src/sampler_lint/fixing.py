"""From findings to new text: which fixes go together, their edits made, the file written whole."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import tempfile
import warnings
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from sampler_lint.findings import Applicability, Edit, FileError, Finding, Grade
from sampler_lint.source import SourceError, read_bytes

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

#: How the names of temporary files begin and end.
PREFIX, SUFFIX = ".sampler-lint-", ".tmp"
_TEMPORARY = re.compile(rf"{re.escape(PREFIX)}\w+{re.escape(SUFFIX)}")


def choose(
    findings: Iterable[Finding], *, unsafe: bool
) -> tuple[list[Finding], list[tuple[Finding, str]]]:
    """Which findings' fixes can be made together.

    By place, each fix is taken that may be applied and touches no character, and inserts at no
    place, that a fix before it does; an edit that two fixes share is no conflict. A fix is
    taken with all of its edits or not at all.

    Args:
        findings: of one state of the files.
        unsafe: whether unsafe fixes may be applied.

    Returns:
        The findings to fix, and the others with the reason why not (now).
    """
    chosen: list[Finding] = []
    deferred: list[tuple[Finding, str]] = []
    taken: defaultdict[str, list[Edit]] = defaultdict(list)
    owner: dict[Edit, Finding] = {}
    for finding in sorted(findings, key=lambda finding: finding.sort_key):
        reason = refusal(finding, unsafe) or _overlap(finding, taken, owner)
        if reason:
            deferred.append((finding, reason))
            continue
        chosen.append(finding)
        for edit in edits_of([finding]):
            if edit not in owner:
                owner[edit] = finding
                insort(taken[edit.path], edit)
    return chosen, deferred


def edits_of(findings: Iterable[Finding]) -> list[Edit]:
    """The edits of the findings' fixes, each once, by file and place."""
    return sorted({edit for finding in findings if finding.fix for edit in finding.fix.edits})


def refusal(finding: Finding, unsafe: bool) -> str | None:
    """Why the finding's fix may not be applied, whatever stands beside it; None if it may."""
    if finding.fix is None or not finding.fix.edits:
        return "no fix" if finding.grade is Grade.CERTAIN else "only likely, no fix"
    if finding.fix.applicability is Applicability.DISPLAY:
        return f"display-only: {finding.fix.unsafe or 'needs a decision'}"
    if finding.fix.applicability is Applicability.UNSAFE and not unsafe:
        why = f" ({finding.fix.unsafe})" if finding.fix.unsafe else ""
        return f"unsafe{why}: use --unsafe-fixes"
    edits = edits_of([finding])
    if any(one.path == other.path and _touch(one, other) for one, other in pairwise(edits)):
        return "its own edits overlap"
    return None


def _overlap(
    finding: Finding, taken: dict[str, list[Edit]], owner: dict[Edit, Finding]
) -> str | None:
    """Why the fix cannot be made in the same round as those already taken."""
    for edit in edits_of([finding]):
        if edit in owner:
            continue
        others = taken[edit.path]
        # The edits taken do not touch each other, so only neighbours can touch this one.
        place = bisect_left(others, edit)
        for other in others[max(place - 1, 0) : place + 1]:
            if _touch(edit, other) or _abut(edit, other):
                first = owner[other]
                return f"overlaps the fix of {first.code} at {first.path}:{first.start.row}"
    return None


def _touch(one: Edit, other: Edit) -> bool:
    """Whether two edits change the same characters or insert at the same place."""
    if one.start == one.end == other.start == other.end:
        return True
    return one.start < other.end and other.start < one.end


def _abut(one: Edit, other: Edit) -> bool:
    """Whether one edit inserts where the other begins or ends: which comes first is not known."""
    inserts = one.start == one.end or other.start == other.end
    return inserts and max(one.start, other.start) <= min(one.end, other.end)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """``text`` with the edits of one file made; the same edit twice counts once.

    Raises:
        ValueError: two edits touch the same characters, or one lies outside the text.
    """
    parts: list[str] = []
    done = 0
    for edit in sorted(set(edits)):
        if not done <= edit.start <= edit.end <= len(text):
            raise ValueError(f"edit {edit.start}:{edit.end} overlaps another or leaves the text")
        parts += (text[done : edit.start], edit.content)
        done = edit.end
    return "".join((*parts, text[done:]))


def moved(start: int, end: int, edits: Sequence[Edit]) -> tuple[int, int]:
    """Where the characters from ``start`` to ``end`` (inclusive) are after the edits of a file.

    A place inside of an edit moves to the whole of its new content.
    """
    low, high = start, end
    for edit in edits:
        growth = len(edit.content) - (edit.end - edit.start)
        if edit.end <= start and edit.start < start:
            low += growth
        elif edit.start < start:
            low -= start - edit.start
        if edit.end <= end:
            high += growth
        elif edit.start <= end:
            high += edit.start + len(edit.content) - end
    return low, max(low, high)


def parses(text: str) -> bool:
    """Whether Python compiles ``text``; nothing is run, no warning is shown.

    Syntax that is newer than the running Python is parsed by libcst, and the rest compiled.
    """
    from sampler_lint.syntax.parse import FactsError, parse

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(parse(text), "<fixed>", "exec", dont_inherit=True)
        except (FactsError, SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
            return False
    return True


def why_not_writable(path: str) -> str | None:
    """Why :func:`write_whole` would refuse to replace the file, or None."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return f"cannot be written: {error.strerror}"
    if not stat.S_ISREG(mode):
        return "cannot be written: is not a regular file"
    # The mode tells what its owner wants, even where the user (root) could write all the same.
    if not mode & 0o222 or not os.access(path, os.W_OK):
        return "cannot be written: the file is read-only"
    if not os.access(os.path.dirname(os.path.realpath(path)), os.W_OK):
        return "cannot be written: its folder is read-only"
    return None


def write_whole(path: str, data: bytes, *, expect: bytes | None) -> None:
    """Replace the content of an existing file, so that it is at any moment wholly old or new.

    The file that a link leads to is written, and the link stays. Mode and, if permitted,
    ownership, access control list and extended attributes are kept. Another hard link to the file
    keeps the old content.

    Args:
        path: the file.
        data: its new content.
        expect: its present content, as far as the caller knows; None for whatever it is.

    Raises:
        SourceError: the file is read-only, missing or no regular file, its content is not
            ``expect``, or writing failed. It is unchanged then.
    """
    target = os.path.realpath(path)
    if reason := why_not_writable(target):
        raise SourceError(FileError(path, reason))
    with contextlib.ExitStack() as stack:
        try:
            temporary = stack.enter_context(_temporary(os.path.dirname(target), data))
            _copy_owner_and_mode(target, temporary)
            if expect is not None and read_bytes(target) != expect:
                reason = "not written: changed by somebody else meanwhile"
                raise SourceError(FileError(path, reason))
            os.replace(temporary, target)
        except OSError as error:
            reason = f"cannot be written: {error.strerror or type(error).__name__}"
            raise SourceError(FileError(path, reason)) from error


@contextlib.contextmanager
def _temporary(folder: str, data: bytes) -> Iterator[str]:
    """A new file with ``data``, safely on disk; gone afterwards if it is still there.

    It is locked as long as this process lives and needs it, so that :func:`clear_stale` can
    tell it from what a killed process left.
    """
    while True:
        descriptor, path = tempfile.mkstemp(prefix=PREFIX, suffix=SUFFIX, dir=folder)
        try:
            with open(descriptor, "wb") as file, contextlib.ExitStack() as until_renamed:
                # Windows renames no open file; elsewhere the second descriptor keeps the lock.
                if fcntl is not None:
                    until_renamed.callback(os.close, os.dup(file.fileno()))
                    with contextlib.suppress(OSError):
                        fcntl.flock(file, fcntl.LOCK_EX)
                    if not os.fstat(file.fileno()).st_nlink:
                        continue  # cleared away before it was locked
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                file.close()
                yield path
                return
        finally:
            with contextlib.suppress(OSError):
                os.unlink(path)


def clear_stale(folders: Iterable[str]) -> None:
    """Delete the temporary files that killed processes of ours left in ``folders``.

    Only files are deleted that bear a name as :func:`write_whole` gives and that no process
    holds a lock on. Without file locks (Windows, some network drives) all are left.
    """
    if fcntl is None:
        return
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            stale = [e.path for e in entries if _TEMPORARY.fullmatch(e.name)]
        for path in stale:
            with contextlib.suppress(OSError):
                _unlink_unlocked(path)


def _unlink_unlocked(path: str) -> None:
    """Delete the regular file unless a process holds it.

    Raises:
        OSError: it is held, or cannot be deleted.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
    finally:
        os.close(descriptor)


def _copy_owner_and_mode(source: str, target: str) -> None:
    status = os.stat(source)
    if hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):
            os.chown(target, status.st_uid, status.st_gid)
    _copy_attributes(source, target)
    # After chown, which clears the set-id bits.
    os.chmod(target, stat.S_IMODE(status.st_mode))


def _copy_attributes(source: str, target: str) -> None:
    """Give ``target`` the extended attributes of ``source``, and no others, where that is allowed.

    On Linux the access control list is one of them (acl(5)); a new file has that of its folder.
    """
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        wanted = os.listxattr(source)
        for name in {*wanted, *os.listxattr(target)}:
            with contextlib.suppress(OSError):
                if name in wanted:
                    os.setxattr(target, name, os.getxattr(source, name))
                else:
                    os.removexattr(target, name)
