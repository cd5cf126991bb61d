"""Rules of other packages: loaded where a configuration names the package, and never else."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sampler_lint.rules._base import Described, classes_in

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

GROUP = "sampler_lint.rules"
#: What our own codes begin with.
OWN = "SMP"

_PREFIX = re.compile(r"[A-Z]{2,}")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class PluginError(Exception):
    """A package whose rules cannot be used; the text says why in one line."""


class Plugin(NamedTuple):
    """A package whose rules are loaded."""

    prefixes: tuple[str, ...]
    """What its codes begin with."""
    modules: tuple[str, ...]
    rules: tuple[Described, ...]
    stamp: str
    """Changes when its version or a file of it does."""


_LOADED: dict[str, Plugin] = {}
#: Packages whose rules belong to every project, in a process that works for one configuration.
EVERYWHERE: set[str] = set()


def loaded() -> Mapping[str, Plugin]:
    """All that this process has loaded, by the package's name."""
    return _LOADED


def load(package: str, own_names: Collection[str]) -> Plugin:
    """The rules of an installed package; its modules are imported the first time.

    Raises:
        PluginError: it is not installed, has no rules or broken ones, or its codes begin as others.
    """
    name = re.sub(r"[-_.]+", "-", package).lower()
    if name not in _LOADED:
        with _installed_alone():
            _LOADED[name] = _load(package, own_names)
    return _LOADED[name]


@contextlib.contextmanager
def _installed_alone() -> Iterator[None]:
    """Import from what is installed only: ``-m`` puts the working directory first, a stranger's."""
    before = list(sys.path)
    if before and os.path.realpath(before[0]) == os.path.realpath(os.curdir):
        del sys.path[0]
    try:
        yield
    finally:
        sys.path[:] = before


def _load(package: str, own_names: Collection[str]) -> Plugin:
    from importlib.metadata import distributions  # which takes a while to import

    found = next(iter(distributions(name=package)), None) if package else None
    if found is None:
        raise PluginError(f"no package {package!r} is installed where sampler-lint is")
    entries = [entry for entry in found.entry_points if entry.group == GROUP]
    if not entries:
        raise PluginError(f"the package {package!r} has no entry point in {GROUP!r}")
    others = {
        prefix: f"those of {name!r}"
        for name, plugin in _LOADED.items()
        for prefix in plugin.prefixes
    }
    rules: list[Described] = []
    for entry in entries:
        if not _PREFIX.fullmatch(entry.name):
            raise PluginError(f"{package!r}: the entry point {entry.name!r} is not in capitals A-Z")
        for prefix, whose in {OWN: "our own", **others}.items():
            if entry.name.startswith(prefix) or prefix.startswith(entry.name):
                raise PluginError(
                    f"{package!r}: its codes begin with {entry.name!r}, which clashes with "
                    f"{whose} ({prefix!r})"
                )
        rules += _rules(package, entry)
    seen = {*own_names, *(rule.name for each in _LOADED.values() for rule in each.rules)}
    for rule in rules:
        for word in (rule.code, rule.name):
            if word in seen:
                raise PluginError(f"{package!r}: there is another rule {word!r}")
            seen.add(word)
    return Plugin(
        tuple(entry.name for entry in entries),
        tuple(entry.module for entry in entries),
        tuple(sorted(rules, key=lambda rule: rule.code)),
        _stamp(found, entries),
    )


def _rules(package: str, entry: EntryPoint) -> list[Described]:
    """A rule for each class in the module that the entry point names."""
    try:
        module = entry.load()
        rules = [
            value()
            for value in classes_in(module)
            if not value.__module__.startswith("sampler_lint.") and not inspect.isabstract(value)
        ]
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise PluginError(f"{package!r}: {entry.value!r} cannot be loaded: {said}") from error
    if not rules:
        raise PluginError(f"{package!r}: {entry.value!r} holds no rule")
    code = re.compile(rf"{entry.name}[0-9]{{3}}")
    for rule in rules:
        kind = type(rule)
        where = f"{package!r}: the rule {kind.__qualname__}"
        if not code.fullmatch(getattr(rule, "code", "")):
            raise PluginError(f"{where} has no code of {entry.name!r} and three digits")
        if not _NAME.fullmatch(getattr(rule, "name", "")):
            raise PluginError(f"{where} has no name in small letters, with hyphens")
        if not vars(kind).get("__doc__"):
            raise PluginError(f"{where} has no docstring, which is its page")
    return rules


def _stamp(found: Distribution, entries: list[EntryPoint]) -> str:
    """When each file of the packages that hold the rules was written."""
    parts = [found.version]
    for name in sorted({entry.module.partition(".")[0] for entry in entries}):
        module = sys.modules[name]
        top = [*getattr(module, "__path__", [module.__file__ or ""])]
        for path in (each for folder in top for each in _files(folder)):
            with contextlib.suppress(OSError):
                status = os.stat(path)
                parts.append(f"{path} {status.st_mtime_ns} {status.st_size}")
    return "\n".join(parts)


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (os.path.join(folder, name) for name in sorted(names))
