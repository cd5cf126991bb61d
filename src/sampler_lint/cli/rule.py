"""``sampler-lint rule``: what a rule says, from its docstring."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sampler_lint.cli._common import CLEAN, UsageError, add_output_format

if TYPE_CHECKING:
    from sampler_lint.rules import Described


def main(argv: Sequence[str]) -> int:
    """Print the pages of the rules asked for and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="sampler-lint rule", description="Explain a rule.", allow_abbrev=False
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("code", metavar="CODE", nargs="?", help="a rule's whole code, e.g. SMP101")
    which.add_argument("--all", action="store_true", help="every rule")
    add_output_format(parser)
    arguments = parser.parse_args(argv)

    from sampler_lint.rules import every_rule

    rules = [each for each in every_rule() if arguments.all or each.code == arguments.code.upper()]
    if not rules and not arguments.all:
        raise UsageError(f"no rule has the code {arguments.code!r} (sampler-lint rule --all)")
    if arguments.output_format == "json":
        import json

        pages = [_rule_data(each) for each in rules]
        print(json.dumps(pages if arguments.all else pages[0], indent=2))
    else:
        print("\n\n".join(map(_rule_page, rules)))
    return CLEAN


def _rule_data(rule: Described) -> dict[str, str | bool]:
    from inspect import cleandoc

    from sampler_lint.reporters import rule_url

    explanation = cleandoc(type(rule).__doc__ or "")
    return {
        "code": rule.code,
        "name": rule.name,
        "summary": explanation.partition("\n")[0],
        "fixable": rule.fixable,
        "default": rule.default,
        "explanation": explanation,
        "url": rule_url(rule.code),
    }


def _rule_page(rule: Described) -> str:
    data = _rule_data(rule)
    title = f"# {rule.name} ({rule.code})"
    state = f"Fixable: {rule.fixable}. {'On' if rule.default else 'Off'} by default."
    return f"{title}\n\n{state}\n\n{data['explanation']}\n\n{data['url']}"
