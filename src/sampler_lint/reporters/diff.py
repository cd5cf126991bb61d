"""A change as a unified diff that ``git apply`` and ``patch -p1`` accept, byte for byte.

Made from bytes, not text: a line ends at LF and nowhere else, so CR, form feeds and bytes of
any encoding reach the patch as they are. :func:`shown` is the same for people.
Format: https://git-scm.com/docs/git-diff#generate_patch_text_with_p
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator

from sampler_lint.reporters.text import visible

#: As git paints them, by the first character of a line.
_COLORS = {"@": "36", "-": "31", "+": "32"}
_BOLD = "1"
_NO_NEWLINE = b"\n\\ No newline at end of file\n"


def unified_diff(path: str, old: bytes, new: bytes, *, start: str = os.curdir) -> bytes:
    """The patch that turns ``old`` into ``new``, its paths relative to the folder ``start``.

    For a link it is a patch of the file that it leads to, if that lies below ``start``, too.
    """
    name = os.path.relpath(path, start)
    real = os.path.relpath(os.path.realpath(path), os.path.realpath(start))
    if not real.startswith(os.pardir):
        name = real
    name = name.replace(os.sep, "/")
    patch = difflib.diff_bytes(
        difflib.unified_diff,
        _lines(old),
        _lines(new),
        _header(f"a/{name}"),
        _header(f"b/{name}"),
    )
    return b"".join(line if line.endswith(b"\n") else line + _NO_NEWLINE for line in patch)


def shown(patch: bytes, *, color: bool) -> str:
    """The patch of one file as a terminal may show it: nothing in it commands the terminal.

    It is read, not applied: every unprintable character but the tab is shown as its escape, and
    the CR of a line's end not at all.
    """
    text = patch.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    rows = []
    for number, line in enumerate(text.split("\n")):
        row = "\t".join(map(visible, line.split("\t")))
        style = _BOLD if number < _HEADERS else _COLORS.get(line[:1])
        rows.append(f"\x1b[{style}m{row}\x1b[0m" if color and style and row else row)
    return "\n".join(rows)


_HEADERS = 2
"""Rows before the first hunk; a removed row may look like one of them."""


def _lines(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _header(name: str) -> bytes:
    """The name as git writes it: quoted if it must be, with a tab after it if it has a space."""
    raw = os.fsencode(name)
    if any(byte < 0x20 or byte in b'"\\\x7f' for byte in raw):
        return b'"' + b"".join(_quoted(raw)) + b'"'
    return raw + b"\t" if b" " in raw else raw


def _quoted(raw: bytes) -> Iterator[bytes]:
    for byte in raw:
        if byte in b'"\\':
            yield b"\\" + bytes([byte])
        elif 0x20 <= byte < 0x7F:
            yield bytes([byte])
        else:
            yield b"\\%03o" % byte
