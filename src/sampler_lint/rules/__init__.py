"""The rules: one file each, found by walking this package."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from inspect import cleandoc

from sampler_lint.options import weight
from sampler_lint.rules._base import Rule, Suspect

__all__ = [
    "Rule",
    "Suspect",
    "all_rules",
    "every_rule",
    "is_selected",
    "page",
    "selected",
    "summary",
]


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by code.

    Raises:
        TypeError: a rule file does not define exactly one well-formed rule.
    """
    rules: list[Rule] = []
    for module_info in pkgutil.iter_modules(__path__):
        if not module_info.name.startswith("smp"):
            continue
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        found = [
            value
            for value in vars(module).values()
            if isinstance(value, type)
            and issubclass(value, Rule)
            and value.__module__ == module.__name__
        ]
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


def summary(rule: Rule) -> str:
    """The rule's docstring's first line."""
    return cleandoc(type(rule).__doc__ or "").partition("\n")[0]


def page(rule: Rule) -> str:
    """The rule's docstring as Markdown: a summary, then a section for each of its titles."""
    summary, *sections = _TITLE.split(cleandoc(type(rule).__doc__ or ""))
    return "\n".join([f"{summary.strip()}\n", *map(_section, sections)])


_TITLE = re.compile(r"^(?=\S.*[:?]$)", re.MULTILINE)


def _section(text: str) -> str:
    """``Title:`` and an indented body as a Markdown section."""
    title, _, body = text.partition("\n")
    body = cleandoc(f"\n{body}").strip()
    return f"## {title.rstrip(':')}\n\n{body}\n"


def every_rule() -> tuple[Rule, ...]:
    """Everything that has a code and a page, by code."""
    return all_rules()


def selected(
    select: tuple[str, ...] | None,
    ignore: tuple[str, ...],
    extend_select: tuple[str, ...] = (),
) -> tuple[Rule, ...]:
    """The rules chosen by code prefixes, as ruff chooses: the longest matching prefix wins.

    ``select`` of None means the default rules; ``ALL`` means every rule. At equal length
    ``ignore`` wins.
    """
    return tuple(rule for rule in all_rules() if is_selected(rule, select, ignore, extend_select))


def is_selected(
    rule: Rule,
    select: tuple[str, ...] | None,
    ignore: tuple[str, ...],
    extend_select: tuple[str, ...] = (),
) -> bool:
    """Whether the prefixes choose the rule (see :func:`selected`)."""
    by_default = 0 if rule.default else -1
    wanted = by_default if select is None else weight(rule.code, select)
    wanted = max(wanted, weight(rule.code, extend_select))
    return wanted >= 0 and wanted > weight(rule.code, ignore)
