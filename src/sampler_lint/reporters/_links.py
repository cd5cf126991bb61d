"""Paths as other programs want them."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from sampler_lint.fingerprints import relative_to


def below(path: str) -> str | None:
    """``path`` relative to the working directory with forward slashes; None if not below it."""
    relative = relative_to(path)
    return None if relative == ".." or relative.startswith("../") else relative


def uri(path: str) -> str:
    """A reference relative to the working directory, or the ``file:`` address."""
    relative = below(path)
    if relative is None:
        return Path(os.path.abspath(path)).as_uri()
    return quote(os.fsencode(relative))
