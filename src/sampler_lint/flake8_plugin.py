"""flake8 plugin: the command line's findings, in flake8's words.

flake8 hands over one file at a time and may use several processes; the whole project is the
engine's business. A file that says nothing about samplers, and that no file which does can
import, costs a search through its text.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sampler_lint import __version__
from sampler_lint.findings import FileError
from sampler_lint.options import Options, OptionsOf
from sampler_lint.roots import project_root
from sampler_lint.source import (
    SourceError,
    SourceFile,
    as_declared,
    is_candidate,
    names_a_rule,
    read_bytes,
)

if TYPE_CHECKING:
    import argparse
    import ast

    from flake8.options.manager import OptionManager

    from sampler_lint.config import Key, Lookup
    from sampler_lint.engine import Session
    from sampler_lint.findings import Finding

#: What the codes of ours begin with, as flake8 is told by the name of the entry point.
_PREFIX = "SMP"

#: What flake8 reports where the command line would print an error and exit 2.
_NOT_CHECKED = "SMP000"

#: A comment may name one of our rules for nothing.
_WORD = re.compile(rb"[\w\x80-\xff]+")


#: The keys of our configuration that flake8's own may say, too, and does not have itself.
_KEYS = frozenset(
    {
        "extend-select",
        "known-samplers",
        "known-loaders",
        "torch-version",
        "frameworks",
        "likely",
        "min-severity",
    }
)


def _keys() -> Iterator[Key]:
    from sampler_lint.config import KEYS

    return (key for key in KEYS if key.name in _KEYS)


def _asked_for(options: argparse.Namespace) -> Iterator[str]:
    """What flake8's own ``select`` and ``extend-select`` say about our rules.

    The prefix alone asks for the plugin, as flake8 knows no other way to, and not for each rule.
    """
    for code in (*(options.select or ()), *(options.extend_select or ())):
        if code.startswith(_prefixes()) and code not in _prefixes():
            yield code


def _prefixes() -> tuple[str, ...]:
    """What the codes of all loaded rules begin with."""
    if "sampler_lint.rules" not in sys.modules:  # which takes a while to import
        return (_PREFIX,)
    from sampler_lint.rules import plugin_prefixes

    return _PREFIX, *plugin_prefixes()


def _load_plugins(paths: Sequence[str]) -> None:
    """Read the configurations of the paths that flake8 was given, which may name packages."""
    from sampler_lint.config import ConfigError

    for path in paths:
        with contextlib.suppress(ConfigError):  # told of each file
            _lookup().at(path if os.path.isdir(path) else os.path.dirname(path))


@functools.cache
def _session() -> Session:
    """This process's models, so that each project is read once."""
    from sampler_lint.engine import Session

    return Session(edits=False)


_A_FEW = 3


@functools.cache
def _lookup() -> Lookup:
    from sampler_lint.config import Lookup

    return Lookup()


@dataclass(frozen=True)
class _Told:
    """What our configurations say, under what flake8 was told of ours."""

    values: tuple[tuple[str, Any], ...] = ()
    more: tuple[str, ...] = ()
    """Rules that are on besides."""

    def __call__(self, folder: str) -> Options:
        """What holds for the files in a folder; raises ConfigError."""
        options = _lookup().at(folder).options
        extend_select = (*options.extend_select, *self.more)
        return replace(options, **dict(self.values), extend_select=extend_select)


@functools.cache
def _told_of_tree(root: str, options: OptionsOf) -> dict[str, list[FileError | Finding]]:
    """What the command line says of each file below ``root``, kept for flake8's other processes."""
    from sampler_lint import engine
    from sampler_lint.cache import Cache, default_folder

    cache = Cache(default_folder())
    report = engine.check([root], options, cache=cache, parse_all=False, edits=False)
    told: dict[str, list[FileError | Finding]] = {os.path.abspath(p): [] for p in report.files}
    items: list[FileError | Finding] = [*report.errors, *report.findings]
    for item in items:
        told.setdefault(os.path.abspath(item.path), []).append(item)
    return told


def _is_reached(filename: str) -> bool:
    """Whether a file that says no sampler word may still belong to a sampler, as a helper."""
    return os.path.abspath(filename) in _reached(os.path.abspath(project_root(filename)))


@functools.cache
def _reached(root: str) -> frozenset[str]:
    """The files below ``root`` that an import may lead to from one with a sampler word.

    Judged by names alone, for that is quick: to import a module one has to name it. A
    package's own file is run without being named, so it counts as soon as anything does.
    """
    from sampler_lint.discovery import find_files

    by_name: dict[bytes, list[tuple[str, bytes]]] = {}
    pending: list[bytes] = []
    for path in find_files([root]).files:
        try:
            data = read_bytes(path)
        except SourceError:
            continue
        if is_candidate(data):
            pending.append(data)
        else:
            module = os.path.splitext(os.path.basename(path))[0]
            by_name.setdefault(os.fsencode(module), []).append((os.path.abspath(path), data))
    reached: set[str] = set()
    if pending:
        pending.append(b"__init__")
    while pending:
        words: set[bytes] = set(_WORD.findall(pending.pop()))
        for name in words & by_name.keys():
            for path, data in by_name.pop(name):
                reached.add(path)
                pending.append(data)
    return frozenset(reached)


class Plugin:
    """What flake8 makes for each file. It knows the parameters by their names."""

    name = "sampler-lint"
    version = __version__
    options = _Told()
    asked = 0
    """How many files flake8 has asked this process about."""
    whole = False
    """Whether flake8 was given a folder: then it will get to a file that matters."""
    told: Mapping[str, Sequence[FileError | Finding]] = {}
    """What there is to say of each file in those folders, as flake8 reads it from disk."""

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:
        """Keep what is needed; ``tree`` only says that flake8 could parse the file."""
        self._filename = filename
        self._text = "".join(lines)

    @classmethod
    def add_options(cls, manager: OptionManager) -> None:
        """Register our own keys that flake8 has no word for, with a prefix."""
        for key in _keys():
            how: dict[str, Any] = {"action": "store_true"}
            if not key.is_flag:
                how = {"metavar": "VALUE", "default": ""}
            if key.takes_list:
                how |= {"metavar": "LIST", "comma_separated_list": True}
            manager.add_option(
                f"--{cls.name}-{key.name}", parse_from_config=True, help=key.help, **how
            )

    @classmethod
    def parse_options(cls, options: argparse.Namespace) -> None:
        """Take over our own options and ``--disable-noqa``; our configuration holds under them.

        Otherwise we read ``# noqa`` ourselves before flake8 does: for flake8 it covers a
        physical line, for the command line a whole statement, and the two must agree.

        Raises:
            flake8.exceptions.ExecutionError: an option has a value that it does not take.
        """
        paths = getattr(options, "filenames", None) or [os.curdir]
        _load_plugins(paths)
        # It reports no code that begins with none of these.
        options.extended_default_select = [*options.extended_default_select, *_prefixes()]
        values: dict[str, Any] = {"respect_noqa": not options.disable_noqa}
        for key in _keys():
            given = getattr(options, f"sampler_lint_{key.field}")
            if given:
                from sampler_lint.config import RefusedError

                try:
                    values[key.field] = key.read(given)
                except RefusedError as error:
                    from flake8.exceptions import ExecutionError

                    raise ExecutionError(f"{cls.name}-{error.about(key)}") from error
        more = (*values.pop("extend_select", ()), *_asked_for(options))
        cls.options = _Told(tuple(values.items()), more)
        folders = [path for path in paths if os.path.isdir(path)]
        cls.whole = bool(folders)
        # Found out before flake8 forks, or each of its processes would have to.
        told: dict[str, Sequence[FileError | Finding]] = {}
        from sampler_lint.config import ConfigError

        try:
            for root in dict.fromkeys(map(project_root, folders)):
                told.update(_told_of_tree(root, cls.options))
        except ConfigError as error:
            from flake8.exceptions import ExecutionError

            raise ExecutionError(f"{cls.name}: {error}") from error
        cls.told = {} if "-" in paths else told

    def run(self) -> Iterator[tuple[int, int, str, type[Plugin]]]:
        """Yield row, 0-based column and text of each finding in the file."""
        told = self._told()
        if not told:
            return
        from sampler_lint.reporters.text import visible

        for item in told:
            if isinstance(item, FileError):
                text = f"{_NOT_CHECKED} could not be checked: {visible(item.reason)}"
                yield item.row or 1, 0, text, type(self)
            else:
                text = f"{item.label} {visible(item.message)}"
                yield item.start.row, item.start.column - 1, text, type(self)

    def _told(self) -> Sequence[FileError | Finding]:
        """What there is to say about the file."""
        from sampler_lint.config import ConfigError

        Plugin.asked += 1
        try:
            if self.options(os.path.dirname(self._filename)).leaves_out(self._filename):
                return []
            return self._said()
        except ConfigError as error:
            return [FileError(self._filename, str(error))]

    def _said(self) -> Sequence[FileError | Finding]:
        known = self.told.get(os.path.abspath(self._filename))
        if known is not None:
            return known
        data = self._text.encode("utf-8", "replace")
        speaks = is_candidate(data) or names_a_rule(data)
        # An editor asks about one file; whoever asks about several will get to one that matters.
        whole = speaks or self.whole or Plugin.asked > _A_FEW
        if not whole and not _is_reached(self._filename):
            return []
        on_disk = self._is_on_disk()
        if on_disk:
            told = _told_of_tree(project_root(self._filename), self.options)
            own = told.get(os.path.abspath(self._filename))
            if own is not None:
                return own
        if not speaks and not _is_reached(self._filename):
            return []
        from sampler_lint import engine

        overlay = None if on_disk else {self._filename: as_declared(self._text)}
        report = engine.check([self._filename], self.options, overlay=overlay, session=_session())
        errors = [error for error in report.errors if error.path == self._filename]
        return [*errors, *report.findings]

    def _is_on_disk(self) -> bool:
        """Whether flake8 read the file from disk, rather than standard input in its name."""
        if not os.path.isfile(self._filename):
            return False
        try:
            data = read_bytes(self._filename)
            if data == self._text.encode("utf-8", "surrogatepass"):
                return True
            text = SourceFile(self._filename, data).text
        except SourceError:
            return True  # flake8 guesses an encoding; the engine will say what is wrong
        return text.replace("\r\n", "\n").replace("\r", "\n") == self._text
