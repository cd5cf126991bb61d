"""The rules: a file each, or a package of the findings of one; found by walking this one.

Those of other packages join them where they are asked for (``_plugins``).
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Collection
from inspect import cleandoc

from sampler_lint.options import weight
from sampler_lint.rules import _plugins
from sampler_lint.rules._base import Described, FileRule, Judged, Rule, Suspect, classes_in
from sampler_lint.rules._plugins import PluginError

__all__ = [
    "Described",
    "FileRule",
    "Judged",
    "PluginError",
    "Rule",
    "Suspect",
    "all_rules",
    "codes",
    "every_rule",
    "is_selected",
    "load",
    "names",
    "page",
    "plugin_modules",
    "plugin_prefixes",
    "selected",
    "stamps",
    "summary",
    "use_everywhere",
]


def every_rule(plugins: Collection[str] | None = None) -> tuple[Described, ...]:
    """Everything that has a code and a page: ours by code, then those of other packages.

    Args:
        plugins: the packages whose rules belong to it; None for all that are loaded.

    Raises:
        PluginError: the rules of a package cannot be used.
    """
    packages = _plugins.loaded() if plugins is None else {*plugins, *_plugins.EVERYWHERE}
    more = {id(rule): rule for package in packages for rule in load(package).rules}
    return (*_own_rules(), *sorted(more.values(), key=lambda rule: rule.code))


def load(package: str) -> _plugins.Plugin:
    """The rules of another package, which is imported the first time.

    Raises:
        PluginError: they cannot be used.
    """
    return _plugins.load(package, _own_names())


def use_everywhere(packages: Collection[str]) -> None:
    """Make the rules of packages belong to every project that this process looks at.

    Raises:
        PluginError: they cannot be used.
    """
    for package in packages:
        load(package)
    _plugins.EVERYWHERE.update(packages)


def plugin_prefixes() -> tuple[str, ...]:
    """What the codes of loaded packages begin with."""
    return tuple(prefix for each in _plugins.loaded().values() for prefix in each.prefixes)


def plugin_modules() -> tuple[str, ...]:
    """The modules that the rules of loaded packages are in."""
    return tuple(module for each in _plugins.loaded().values() for module in each.modules)


def stamps(plugins: Collection[str]) -> list[str]:
    """What changes when the rules of packages do."""
    return [load(package).stamp for package in plugins]


@functools.cache
def _own_rules() -> tuple[Described, ...]:
    """Our own, by code.

    Raises:
        TypeError: a rule file does not define exactly one well-formed rule.
    """
    rules: list[Described] = []
    for module_info in pkgutil.iter_modules(__path__):
        if not module_info.name.startswith("smp"):
            continue
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        found = [value for value in classes_in(module) if value.__module__ == module.__name__]
        if len(found) != 1:
            raise TypeError(
                f"{module.__file__}: a rule file defines exactly one Rule, found {len(found)}"
            )
        rule = found[0]()
        stem = f"{rule.code}_{rule.name}".lower().replace("-", "_")
        if module_info.name != stem:
            raise TypeError(f"{module.__file__}: {rule.code} ({rule.name}) belongs in {stem}.py")
        rules.append(rule)
    rules.sort(key=lambda rule: rule.code)
    return tuple(rules)


def names() -> dict[str, str]:
    """The code of each of :func:`every_rule` by its name, nothing imported."""
    loaded = _plugins.loaded().values()
    return _own_names() | {rule.name: rule.code for each in loaded for rule in each.rules}


@functools.cache
def _own_names() -> dict[str, str]:
    files = sorted(module.name for module in pkgutil.iter_modules(__path__))
    parts = (name.partition("_") for name in files if name.startswith("smp"))
    return {name.replace("_", "-"): code.upper() for code, _, name in parts}


def codes() -> list[str]:
    """The codes of :func:`every_rule`, nothing imported."""
    return sorted(names().values())


def all_rules() -> tuple[Rule, ...]:
    """The rules about programs, by code; :func:`every_rule` has those about comments, too."""
    return tuple(rule for rule in every_rule() if isinstance(rule, Rule))


def summary(rule: Described) -> str:
    """The rule's docstring's first line."""
    return cleandoc(type(rule).__doc__ or "").partition("\n")[0]


def page(rule: Described) -> str:
    """The rule's docstring as Markdown: a summary, then a section for each of its titles."""
    summary, *sections = _TITLE.split(cleandoc(type(rule).__doc__ or ""))
    return "\n".join([f"{summary.strip()}\n", *map(_section, sections)])


_TITLE = re.compile(r"^(?=\S.*[:?]$)", re.MULTILINE)


def _section(text: str) -> str:
    """``Title:`` and an indented body as a Markdown section."""
    title, _, body = text.partition("\n")
    body = cleandoc(f"\n{body}").strip()
    return f"## {title.rstrip(':')}\n\n{body}\n"


def selected(
    select: tuple[str, ...] | None,
    ignore: tuple[str, ...],
    extend_select: tuple[str, ...] = (),
    plugins: tuple[str, ...] = (),
) -> tuple[Described, ...]:
    """The rules chosen by code prefixes, as ruff chooses: the longest matching prefix wins.

    ``select`` of None means the default rules; ``ALL`` means every rule. At equal length
    ``ignore`` wins. ``plugins`` are the packages whose rules may be chosen, too.
    """
    rules = every_rule(plugins)
    return tuple(rule for rule in rules if is_selected(rule, select, ignore, extend_select))


def is_selected(
    rule: Described,
    select: tuple[str, ...] | None,
    ignore: tuple[str, ...],
    extend_select: tuple[str, ...] = (),
) -> bool:
    """Whether the prefixes choose the rule (see :func:`selected`)."""
    by_default = 0 if rule.default else -1
    wanted = by_default if select is None else weight(rule.code, select)
    wanted = max(wanted, weight(rule.code, extend_select))
    return wanted >= 0 and wanted > weight(rule.code, ignore)
