"""``[tool.sampler-lint]`` of the nearest ``pyproject.toml``.

Keys: ``select`` and ``ignore`` (lists of code prefixes), ``exclude`` (gitignore patterns,
relative to the file's folder).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

_TABLE = "sampler-lint"


class ConfigError(Exception):
    """The configuration cannot be used; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Config:
    """What a project's configuration says; a key it lacks is None."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None


def find_config(start: Path) -> Config:
    """The configuration that holds for ``start``: the nearest one in it or above it.

    Its ``exclude`` is turned into patterns relative to ``start``.

    A ``pyproject.toml`` that never says ``sampler-lint`` is passed over unread, so a parent
    project's file, or a broken one, is no concern of ours.

    Raises:
        ConfigError: it cannot be read, is not TOML, or says something unknown.
    """
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
        if _TABLE.encode() in data:
            table = _table(path, data)
            if table is not None:
                config = _parsed(path, table)
                return replace(config, exclude=_seen_from(start, folder, config.exclude))
    return Config()


def _seen_from(
    start: Path, folder: Path, patterns: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """gitignore patterns of ``folder``, as they hold in ``start`` below it."""
    steps = start.relative_to(folder).parts
    if not patterns or not steps:
        return patterns
    return tuple(seen for each in patterns if (seen := _pattern_below(each, steps)) is not None)


def _pattern_below(pattern: str, steps: tuple[str, ...]) -> str | None:
    """``pattern`` as it holds some folders further down; None if it is about another place."""
    negation = "!" if pattern.startswith("!") else ""
    body = pattern.removeprefix("!")
    if "/" not in body.rstrip("/"):
        return pattern  # a bare name holds at any depth
    parts = body.removeprefix("/").split("/")
    for step in steps:
        if parts[:1] == ["**"]:
            break
        if not parts or not fnmatchcase(step, parts.pop(0)):
            return None
    return f"{negation}/{'/'.join(parts)}" if any(parts) else None


def _table(path: Path, data: bytes) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        tool = tomllib.loads(data.decode("utf-8")).get("tool")
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return tool.get(_TABLE) if isinstance(tool, dict) else None


def _parsed(path: Path, table: Any) -> Config:
    place = f"{path}: [tool.{_TABLE}]"
    if not isinstance(table, dict):
        raise ConfigError(f"{place} is not a table")
    known = [each.name for each in fields(Config)]
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"{place} has no key {key!r} (it has: {', '.join(known)})")
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise ConfigError(f"{place} {key} must be a list of strings")
    return Config(**{key: tuple(value) for key, value in table.items()})
