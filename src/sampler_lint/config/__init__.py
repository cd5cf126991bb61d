"""What a project asks of the linter: ``[tool.sampler-lint]`` and ``sampler-lint.toml``.

The configuration of a file is the nearest one in its folder or above it, as with ruff; files are
merged only where one says ``extend``. In one folder ``sampler-lint.toml`` comes before
``pyproject.toml``. Patterns are gitignore patterns relative to the folder of their file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sampler_lint.config._habits import COMMANDS, instead_of
from sampler_lint.config._habits import rows as rows_of_habits
from sampler_lint.config._keys import KEYS, Key, RefusedError, known_codes, nearest
from sampler_lint.options import DEFAULTS, Options
from sampler_lint.roots import is_inside, leads_outside
from sampler_lint.source import SourceError, read_bytes

__all__ = [
    "COMMANDS",
    "FILES",
    "KEYS",
    "Config",
    "ConfigError",
    "Key",
    "Lookup",
    "RefusedError",
    "instead_of",
    "known_codes",
    "nearest",
    "parse_override",
    "rows_of_habits",
]

#: The names a configuration goes by, the one that is preferred first.
FILES = (".sampler-lint.toml", "sampler-lint.toml", "pyproject.toml")
#: A slip that would leave the file unread.
_SHARED = FILES[-1]
_MISNAMED = "sampler_lint.toml"
_TABLE = ("tool", "sampler-lint")
_ALIKE = re.compile(rb"sampler[-_. ]?lint", re.IGNORECASE)
_BY_NAME = {key.name: key for key in KEYS}


class ConfigError(Exception):
    """The configuration cannot be used; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Config:
    """What one configuration says; a key's field is here or in ``options``."""

    path: str | None = None
    """The file it is from; None for the defaults."""
    options: Options = DEFAULTS
    unsafe_fixes: bool = False
    output_format: str | None = None
    cache_dir: str | None = None
    extend: str | None = None
    required_version: str | None = None

    def get(self, key: Key) -> Any:
        """What it says for a key, or the key's default."""
        return getattr(self if key.run else self.options, key.field)

    def with_values(self, values: Mapping[Key, Any]) -> Config:
        """The same with other values for some keys."""
        run = {key.field: value for key, value in values.items() if key.run}
        options = {key.field: value for key, value in values.items() if not key.run}
        return replace(self, options=replace(self.options, **options), **run)


class Lookup:
    """Finds the configuration of each file, and reads each configuration once."""

    def __init__(
        self,
        *,
        file: str | None = None,
        isolated: bool = False,
        overrides: Mapping[Key, Any] | None = None,
    ) -> None:
        """Prepare the search.

        Args:
            file: the only configuration to read; its patterns are relative to the working
                directory.
            isolated: read none at all.
            overrides: values that hold instead of what any configuration says.

        Raises:
            ConfigError: ``file`` cannot be used.
        """
        self._overrides = dict(overrides or {})
        self._by_folder: dict[str, Config] = {}
        self._fixed: Config | None = None
        if file is not None:
            found = _read(file)
            here = replace(found.options, folder="")
            self._fixed = self._overridden(replace(found, options=here))
        elif isolated:
            self._fixed = self._overridden(Config())

    def is_told(self, field: str) -> bool:
        """Whether the command line says what holds for a key, and no file that was found."""
        return self._fixed is not None or any(key.field == field for key in self._overrides)

    def at(self, folder: str) -> Config:
        """The configuration of the files in ``folder``.

        Raises:
            ConfigError: it cannot be read, is not TOML, or says something unknown.
        """
        if self._fixed is not None:
            return self._fixed
        folder = os.path.abspath(folder)
        config = self._by_folder.get(folder)
        if config is None:
            config = self._by_folder[folder] = self._find(folder)
        return config

    def _find(self, folder: str) -> Config:
        for name in FILES:
            config = _read_if_ours(os.path.join(folder, name))
            if config is not None:
                return self._overridden(config)
        misnamed = os.path.join(folder, _MISNAMED)
        if os.path.isfile(misnamed):
            raise ConfigError(f"{_shown(misnamed)}: is named {FILES[1]}, with a hyphen")
        parent = os.path.dirname(folder)
        return self.at(parent) if parent != folder else self._overridden(Config())

    def _overridden(self, config: Config) -> Config:
        """The configuration with what the command line says; ``extend-...`` adds to it."""
        values = {
            key: (*config.get(key), *value) if key.name.startswith("extend-") else value
            for key, value in self._overrides.items()
        }
        return config.with_values(values)


def _read_if_ours(path: str) -> Config | None:
    """The configuration in the file, if there is one.

    A ``pyproject.toml`` that never says ``sampler-lint``, or the like, is passed over unread, so a
    parent project's file, or a broken one, is no concern of ours.
    """
    own = os.path.basename(path) != _SHARED
    if not os.path.lexists(path) or os.path.isdir(path):
        return None
    if leads_outside(path):
        if own:
            raise ConfigError(f"{_shown(path)}: leads out of the repository (use --config)")
        return None
    try:
        data = read_bytes(path)
    except SourceError as error:
        raise ConfigError(f"{_shown(path)}: {error.error.reason}") from error
    return _parsed(path, data) if own or _ALIKE.search(data) else None


def _read(path: str, extended_by: tuple[str, ...] = (), *, trusted: bool = True) -> Config:
    """The configuration in a file that was asked for by name."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    config = _parsed(path, data, extended_by, trusted=trusted)
    if config is None:
        raise ConfigError(f"{path}: has no [{'.'.join(_TABLE)}]")
    return config


def _shown(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


def _parsed(
    path: str, data: bytes, extended_by: tuple[str, ...] = (), *, trusted: bool = False
) -> Config | None:
    """What a file says, if it says something.

    Args:
        path: the file.
        data: what it holds.
        extended_by: the files that lead to it by ``extend``.
        trusted: whether a person named it, or the first of those.
    """
    from sampler_lint.config import _toml

    shown = _shown(path)
    try:
        text = data.decode("utf-8")
        document: Any = _toml.parse(text)
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{shown}:{row}: is not UTF-8: {error.reason}") from error
    except _toml.TomlError as error:
        raise ConfigError(f"{shown}:{error.row}: {error}") from error
    where: tuple[str, ...] = () if os.path.basename(path) != _SHARED else _TABLE

    def refuse(reason: str, *keys: str) -> ConfigError:
        return ConfigError(f"{shown}:{_toml.row_of(text, (*where, *keys))}: {reason}")

    for name in document if where else ():
        if _ALIKE.fullmatch(name.encode()):
            where = ()
            raise refuse(f"[{name}] is written [{'.'.join(_TABLE)}]", name)
    for part in where:
        if isinstance(document, dict) and part == _TABLE[-1] and part not in document:
            for name in document:
                if _ALIKE.fullmatch(name.encode()):
                    where = _TABLE[0], name
                    raise refuse(f"[tool.{name}] is written [{'.'.join(_TABLE)}]")
        document = document.get(part) if isinstance(document, dict) else None
    if document is None:
        return None
    table = f"[{'.'.join(where)}] " if where else ""
    if not where and isinstance(document, dict) and _TABLE[0] in document:
        raise refuse(
            f"here the keys belong at the top level, without [{'.'.join(_TABLE)}]", _TABLE[0]
        )
    if not isinstance(document, dict):
        raise refuse(f"{table}is not a table")
    values: dict[Key, Any] = {}

    def take(name: str) -> None:
        key = _BY_NAME.get(name)
        if key is None:
            hint = _hint(name) or f"it has: {', '.join(_BY_NAME)}"
            raise refuse(f"{table}has no key {name!r} ({hint})", name)
        try:
            values[key] = key.read(document[name])
        except RefusedError as error:
            raise refuse(f"{table}{error.about(key)}", name) from error

    # Which codes there are is known only when these are.
    first = [name for name in ("extend", "plugins") if name in document]
    for name in first:
        take(name)
    absolute = os.path.abspath(path)
    folder = os.path.dirname(absolute)

    def refuse_away(name: str, option: str) -> None:
        told = values.get(_BY_NAME[name])
        if told is not None and not trusted and _leads_away(os.path.join(folder, told), folder):
            raise refuse(f"{table}{name} leads out of the repository (use {option})", name)

    refuse_away("extend", "--config")
    base: Config | None = None
    extend = values.get(_BY_NAME["extend"])
    if extend is not None:
        path_of_base = os.path.normpath(os.path.join(folder, extend))
        chain = (*extended_by, absolute)
        if path_of_base in chain:
            circle = " -> ".join(map(_shown, (*chain[chain.index(path_of_base) :], path_of_base)))
            raise refuse(f"{table}extend leads back to where it began: {circle}", "extend")
        if not os.path.isfile(path_of_base):
            raise refuse(f"{table}extend: there is no file {_shown(path_of_base)}", "extend")
        base = _read(path_of_base, chain, trusted=trusted)
    for name in document:
        if name not in first:
            take(name)
    refuse_away("baseline", "--baseline")
    own = Config(absolute, Options(folder=folder, origin=shown)).with_values(values)
    return own if base is None else _extended(base, own, values)


def _leads_away(path: str, folder: str) -> bool:
    """Whether a path is neither in the repository of ``folder`` nor in a folder around it."""
    real = os.path.realpath(path)
    above = os.path.join(os.path.realpath(folder), "").startswith(os.path.dirname(real) + os.sep)
    return not above and not is_inside(path, folder)


def _extended(base: Config, own: Config, values: Mapping[Key, Any]) -> Config:
    """The base with what a file that extends it says instead, or besides (``extend-select``)."""
    inherited, folder = base.options, own.options.folder
    others = inherited.beside(own.options)
    if not os.path.join(folder, "").startswith(os.path.join(inherited.folder, "")):
        # It stands aside, for several to use: its patterns are about the files of each.
        others = replace(others, folder=folder)
    options = replace(
        inherited,
        exclude=(),
        extend_exclude=(),
        per_file_ignores=(),
        extend_per_file_ignores=(),
        baseline=inherited.baseline and os.path.join(inherited.folder, inherited.baseline),
        folder=folder,
        origin=own.options.origin,
        others=others,
    )
    merged = replace(base, path=own.path, options=options).with_values(values)
    extended = replace(
        merged.options,
        extend_select=(*inherited.extend_select, *own.options.extend_select),
        extend_ignore=(*inherited.extend_ignore, *own.options.extend_ignore),
    )
    return replace(merged, options=extended)


def _hint(name: str) -> str:
    """Which key was meant, or what there is instead of it; nothing if neither is known."""
    return instead_of(name) or nearest(name, _BY_NAME)


def parse_override(text: str) -> tuple[Key, Any]:
    """A key and its value from ``KEY=VALUE``.

    The value is TOML; where it is none, a text or a comma-separated list of texts is meant.

    Raises:
        ConfigError: there is no such key, or it takes no such value.
    """
    from sampler_lint.config import _toml

    name, _, written = text.partition("=")
    key = _BY_NAME.get(name.strip())
    if key is not None and key.name == "extend":
        raise ConfigError("extend can only be set in a file (--config FILE reads one)")
    if key is None:
        near = _hint(name.strip())
        hint = f" ({near})" if near else ""
        raise ConfigError(f"there is no key {name.strip()!r}{hint}")
    try:
        document = _toml.parse(f"value = {written}")
    except _toml.TomlError as error:
        if written.strip()[:1] in ("[", "{", '"', "'"):
            raise ConfigError(f"{key.name}: {written.strip()} is not TOML: {error}") from error
        document = {}
    value = document["value"] if document.keys() == {"value"} else written.strip()
    if isinstance(value, str) and key.takes_list:
        value = [each.strip() for each in value.split(",")]
    try:
        return key, key.read(value)
    except RefusedError as error:
        raise ConfigError(error.about(key)) from error
