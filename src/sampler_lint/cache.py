"""A folder of records that may be lost, broken or poisoned at any time, and cost nothing then.

A record is lines of JSON below a header with the format, and a checksum over the key and the
lines, so that neither a torn write nor another key's record is taken for this one. It is
written whole or not at all, and the folder is kept below a size. What a record says is plain
data: its reader has to check its shape. Nothing in it is ever executed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence

from sampler_lint import __version__

_MAGIC = "sampler-lint-cache 1"
_SUFFIX = ".record"
_OURS = re.compile(r"[0-9a-f]{32}\.record(?:\.lock|\.[0-9]+\.tmp)?")
_MOST_BYTES = 64 * 2**20
_README = {
    ".gitignore": "*\n",
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# https://bford.info/cachedir/\n",
}

Signature = tuple[int, int, int, int]
"""Times of the last change of content and of status, size, inode."""

#: A file changed this short a time before it was looked at may change again without another
#: time stamp, on the coarsest file systems in use.
_RACY_NS = 2 * 10**9


def default_folder() -> str:
    """Where records are kept unless the user says otherwise."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "sampler-lint")


def unfinished_folder() -> str:
    """Where it is noted what a fix of several files is about to write."""
    return os.path.join(default_folder(), "unfinished")


def digest(*parts: bytes) -> str:
    """A hash that tells contents apart."""
    try:
        from _blake2 import blake2b  # hashlib loads OpenSSL, too: as long as a hundred files
    except ImportError:  # not every Python has its parts under CPython's names
        from hashlib import blake2b

    total = blake2b(digest_size=16)
    for part in parts:
        total.update(b"%d:" % len(part))
        total.update(part)
    return total.hexdigest()


def signature(path: str) -> Signature | None:
    """What changes when a file does; None if it is no regular file that can be looked at.

    The time of the status change cannot be set back, so it gives away an edit that keeps size
    and modification time.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def is_racy(found: Signature, looked_at: int) -> bool:
    """Whether a file may have changed after ``looked_at`` (ns) and show the same signature."""
    # On Windows st_ctime is when the file was made, which no edit changes.
    return os.name == "nt" or max(found[0], found[1]) >= looked_at - _RACY_NS


def build() -> str:
    """What tells this program from one that may find something else."""
    package = os.path.dirname(os.path.abspath(__file__))
    parts = [__version__, sys.version, sys.platform]
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            found = signature(os.path.join(folder, name))
            parts.append(f"{folder}/{name} {found and (found[0], found[2])}")
    return digest("\n".join(parts).encode("utf-8", "surrogateescape"))


class Cache:
    """The records in one folder, which is made when there is something to keep."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, digest(_encoded(key)) + _SUFFIX)

    def read(self, key: str) -> list[str] | None:
        """The lines kept under ``key``; None if there are none, or they are not as written."""
        try:
            with open(self._path(key), "rb", opener=_open_no_link) as file:
                header, _, body = file.read(_MOST_BYTES).partition(b"\n")
        except OSError:
            return None
        if header != _header(key, body):
            return None
        return body.decode("ascii").split("\n")

    def write(self, key: str, lines: Sequence[str]) -> None:
        """Keep ASCII lines under ``key`` if there is room and the folder can be written."""
        body = "\n".join(lines).encode("ascii")
        if len(body) > _MOST_BYTES // 4:
            return
        with contextlib.suppress(OSError):
            self._prepare()
            path = self._path(key)
            temporary = f"{path}.{os.getpid()}.tmp"
            try:
                with open(temporary, "xb") as file:
                    file.write(_header(key, body) + b"\n" + body)
                os.replace(temporary, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
            self._shrink()

    @contextlib.contextmanager
    def alone(self, key: str) -> Iterator[bool]:
        """Keep other processes out that ask for the same; whether one had to be waited for.

        Where the system cannot, nobody is kept out: then two do the same work.
        """
        waited = False
        try:
            import fcntl

            self._prepare()
            lock = self._path(key) + ".lock"
            file = open(lock, "ab", opener=_open_no_link)  # noqa: SIM115
        except (ImportError, OSError):
            yield waited
            return
        with file:
            with contextlib.suppress(OSError):
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    waited = True
                    fcntl.flock(file, fcntl.LOCK_EX)
            yield waited

    def _prepare(self) -> None:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        paths = {os.path.join(self.folder, name): text for name, text in _README.items()}
        missing = [path for path in paths if not os.path.lexists(path)]
        if missing and self.is_ours():
            for path in missing:
                with open(path, "x", encoding="ascii") as file:
                    file.write(paths[path])

    def is_ours(self) -> bool:
        """Whether the folder, if there is one, holds nothing that is not of a cache of ours.

        Raises:
            OSError: it cannot be looked at, or is none.
        """
        try:
            with os.scandir(self.folder) as entries:
                return all(_is_record(entry) or _is_readme(entry) for entry in entries)
        except FileNotFoundError:
            return True

    def _records(self) -> Iterator[os.DirEntry[str]]:
        with os.scandir(self.folder) as entries:
            yield from filter(_is_record, entries)

    def _shrink(self) -> None:
        """Drop what was written longest ago until a quarter of the room is free again."""
        records = [(entry.stat(), entry.path) for entry in self._records()]
        total = sum(status.st_size for status, _ in records)
        if total <= _MOST_BYTES:
            return
        for status, path in sorted(records, key=lambda item: item[0].st_mtime_ns):
            os.unlink(path)
            total -= status.st_size
            if total <= _MOST_BYTES * 3 // 4:
                return

    def clear(self) -> int:
        """Delete every record, and the folder if nothing else is in it; how many there were.

        Raises:
            OSError: a record cannot be deleted.
        """
        try:
            paths = [entry.path for entry in self._records()]
        except (FileNotFoundError, NotADirectoryError):
            return 0
        for path in paths:
            os.unlink(path)
        with contextlib.suppress(OSError):
            with os.scandir(self.folder) as entries:
                readmes = [entry.path for entry in entries if _is_readme(entry)]
            if len(readmes) == len(_README):  # one alone may be anybody's
                for path in readmes:
                    os.unlink(path)
            os.rmdir(self.folder)
        return sum(path.endswith(_SUFFIX) for path in paths)


def _open_no_link(path: str, flags: int) -> int:
    """Open what is no link, and wait for nobody where it is a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)


def _is_record(entry: os.DirEntry[str]) -> bool:
    return bool(_OURS.fullmatch(entry.name)) and entry.is_file(follow_symlinks=False)


def _is_readme(entry: os.DirEntry[str]) -> bool:
    text = _README.get(entry.name)
    if text is None or not entry.is_file(follow_symlinks=False):
        return False
    with open(entry.path, "rb") as file:
        return file.read(len(text) + 1) == text.encode("ascii")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _header(key: str, body: bytes) -> bytes:
    return f"{_MAGIC} {digest(_encoded(key), body)}".encode("ascii")
