"""One file's bytes and text, with nothing translated: newlines, BOM and encoding stay as they are."""

from __future__ import annotations

import bisect
import codecs
import io
import re
import tokenize
from functools import cached_property

from sampler_lint.findings import FileError, Position

#: A file without any of these byte strings cannot build, hold or drive a sampler, so it is
#: neither decoded nor parsed unless another file's names lead to it.
WORDS = re.compile(rb"[Ss]ampler|[Ll]oader|set_epoch")

_LINE_END = re.compile(r"\r\n|\r|\n")


class SourceError(Exception):
    """The file cannot be used; ``error`` says which and why."""

    def __init__(self, error: FileError) -> None:
        super().__init__(str(error))
        self.error = error


def is_candidate(data: bytes) -> bool:
    """Whether ``data`` says one of the words that this linter is about."""
    return WORDS.search(data) is not None


def read_bytes(path: str) -> bytes:
    """The regular file's bytes.

    Raises:
        SourceError: the file cannot be opened or read, or is no regular file.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SourceError(FileError(path, f"cannot be read: {reason}")) from error


class SourceFile:
    """A decoded Python file.

    ``text`` is the decoded content without BOM and with its newlines untouched; ``encode``
    turns changed text back into bytes in the same encoding, BOM included.
    """

    def __init__(self, path: str, data: bytes) -> None:
        """Decode ``data`` as Python would.

        Raises:
            SourceError: the encoding cookie is unknown, or the bytes are not in that encoding.
        """
        self.path = path
        self.data = data
        self.bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        try:
            self.encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
            if self.bom:
                self.encoding = "utf-8"
            self.text = data[len(self.bom) :].decode(self.encoding)
        except SyntaxError as error:
            raise SourceError(FileError(path, f"cannot be decoded: {error.msg}")) from error
        except UnicodeDecodeError as error:
            row = data.count(b"\n", 0, error.start) + 1
            reason = f"cannot be decoded as {self.encoding}: {error.reason}"
            raise SourceError(FileError(path, reason, row)) from error
        except (LookupError, UnicodeError) as error:
            raise SourceError(FileError(path, f"cannot be decoded: {error}")) from error

    @classmethod
    def read(cls, path: str) -> SourceFile:
        """Read and decode the file at ``path``.

        Raises:
            SourceError: it cannot be read or decoded.
        """
        return cls(path, read_bytes(path))

    def encode(self, text: str) -> bytes:
        """``text`` as this file's bytes.

        Raises:
            UnicodeEncodeError: the file's encoding has no such character.
        """
        return self.bom + text.encode(self.encoding)

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of each line (lines end in LF, CRLF or CR)."""
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    def line(self, row: int) -> str:
        """Line ``row`` (1-based) with its line end; empty beyond the last."""
        starts = self.line_starts
        if not 1 <= row <= len(starts):
            return ""
        end = starts[row] if row < len(starts) else len(self.text)
        return self.text[starts[row - 1] : end]

    def offset(self, row: int, utf8_column: int) -> int:
        """Character offset of an ``ast`` position (1-based row, 0-based column in UTF-8 bytes)."""
        start = self.line_starts[row - 1]
        head = self.text[start : start + utf8_column]
        if head.isascii():
            return start + utf8_column
        line = self.line(row)
        return start + len(line.encode("utf-8", "surrogatepass")[:utf8_column].decode("utf-8", "ignore"))

    def position(self, offset: int) -> Position:
        """The row and column of a character offset."""
        row = bisect.bisect_right(self.line_starts, offset)
        return Position(row, offset - self.line_starts[row - 1] + 1)

    @cached_property
    def newline(self) -> str:
        """The line end that most lines use; LF in a file without any."""
        ends = _LINE_END.findall(self.text)
        return max(("\n", "\r\n", "\r"), key=ends.count) if ends else "\n"

    @cached_property
    def indent(self) -> str:
        """One level of the file's own indentation: a tab, or its smallest run of spaces."""
        runs = re.findall(r"(?:^|[\r\n])([ \t]+)(?=[^\s#])", self.text)
        if any(run.startswith("\t") for run in runs[:200]):
            return "\t"
        widths = [len(run) for run in runs if len(run) > 1]
        return " " * min(widths, default=4)
