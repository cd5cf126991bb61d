"""Names that change no answer, whatever they are spelled like: nobody has read them yet."""

from __future__ import annotations

from typing import Any

from sampler_lint.syntax.nodes import Name

_spelling: Any = vars(Name)["id"]


class _FirstRead:
    """How a name is spelled; whoever asks makes it a name like any other."""

    def __get__(self, name: Name, kind: type) -> str:
        name.__class__ = Name
        return name.id

    def __set__(self, name: Name, spelled: str) -> None:
        _spelling.__set__(name, spelled)


class Unread(Name):
    """A name of which nobody has asked yet how it is spelled."""

    __slots__ = ()
    id: str = _FirstRead()  # type: ignore[assignment]


def word_of(name: Name) -> str:
    """How a name is spelled, for a list of words that nobody goes through.

    Who looks a word up there tells the project (:meth:`~..project.Project.look_up`).
    """
    word: str = _spelling.__get__(name)
    return word
