"""Where files are that may not have been parsed."""

from __future__ import annotations

import os
from typing import NamedTuple, Protocol


class Importer(Protocol):
    """What an import is relative to."""

    @property
    def path(self) -> str:
        """Absolute path."""

    @property
    def folder(self) -> str:
        """The folder that it is in."""


class Place(NamedTuple):
    """Where a file is that may not have been parsed."""

    path: str
    folder: str

    @classmethod
    def of(cls, path: str) -> Place:
        """The place of a file."""
        return cls(path, os.path.dirname(path))
