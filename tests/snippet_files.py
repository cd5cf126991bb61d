"""The files in which snippets stand: read, and written anew (see test_snippets.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SNIPPETS = Path(__file__).parent / "snippets"


@dataclass(frozen=True, slots=True)
class Snippet:
    path: Path
    title: str
    header: str
    body: str

    @property
    def codes(self) -> tuple[str, ...]:
        """The rules that are asked, from the file's name."""
        return tuple(self.path.stem.partition("-")[0].split("+"))

    def files(self) -> dict[str, bytes]:
        main, *others = re.split(r"^#### (?=.)", self.body, flags=re.MULTILINE)
        named = [other.partition("\n")[::2] for other in others]
        texts = {"main.py": self.header + main, **dict(named)}
        return {name: text.encode() for name, text in texts.items()}


def read(path: Path) -> Iterator[tuple[Snippet, str]]:
    """The programs of a file, each with what is expected of it."""
    header, *parts = _parts(path)
    for part in parts:
        title, _, rest = part.partition("\n")
        body, _, expected = rest.partition("----\n")
        yield Snippet(path, title, header, body.strip("\n") + "\n"), expected.strip("\n")


def _parts(path: Path) -> list[str]:
    """What stands before the first program, and each program from its title on."""
    return re.split(r"^==== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)


def rewrite(path: Path, said: Mapping[str, str]) -> None:
    """Put what is said now, by title, in the place of what was expected; all else stays."""
    header, *parts = _parts(path)
    for number, (snippet, expected) in enumerate(read(path)):
        found = said.get(snippet.title, expected)
        if found != expected:
            last = number == len(parts) - 1
            whole = f"{snippet.title}\n{snippet.body}----\n{found}".rstrip("\n")
            parts[number] = whole + ("\n" if last else "\n\n")
    path.write_text("==== ".join([header, *parts]), encoding="utf-8")
