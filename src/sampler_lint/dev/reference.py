"""The pages to look things up in: the rules by what one sees, and the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module

from sampler_lint.rules import Described, by_symptom, every_rule, summary

RULES = "docs/rules/index.md"
COMMANDS = "docs/cli.md"

_RULES = """\
# Rules

What do you see? The same search on the command line: `sampler-lint rule --search hang`.

| what you see | rules |
|---|---|
"""

_COMMANDS = """\
# Command line

Every command with its options. `sampler-lint COMMAND --help` prints the same. Without a command,
`check` is meant. Most choices can stand in a [configuration](configuration.md) instead.
"""


def rules(comment: str) -> str:
    """The rules by symptom, then all; ``comment`` says what makes the page."""
    seen = [
        f"| {_cell(symptom)} | {', '.join(map(_link, found))} |"
        for symptom, found in by_symptom(every_rule()).items()
    ]
    every = [f"| {_link(rule)} | `{rule.name}` | {_cell(summary(rule))} |" for rule in every_rule()]
    head = "## All rules\n\n| code | name | what is wrong |\n|---|---|---|"
    return "\n".join([f"{comment}\n{_RULES}{seen[0]}", *seen[1:], "", head, *every, ""])


def _link(rule: Described) -> str:
    return f"[{rule.code}]({rule.code.lower()}.md)"


def command_line(comment: str) -> str:
    """Every command with its options; ``comment`` says what makes the page."""
    from sampler_lint import cli

    sections = (line for name in cli.COMMANDS for line in _of(name))
    return "\n".join([f"{comment}\n{_COMMANDS}", *sections])


def _of(name: str) -> Iterator[str]:
    module = import_module(f"sampler_lint.cli.{name}")
    parser: argparse.ArgumentParser = module.make_parser()
    yield f"## `{name}`\n"
    yield f"{parser.description}\n"
    for group in parser._action_groups:  # what argparse itself prints its help from
        actions = [each for each in group._group_actions if each.help is not argparse.SUPPRESS]
        if not actions:
            continue
        if group.title not in {"positional arguments", "options", "optional arguments"}:
            yield f"### {name}: {group.title}\n"
        yield "| option | meaning |\n|---|---|"
        for action in actions:
            yield f"| `{_cell(_spelled(action))}` | {_cell(_meaning(action))} |"
        yield ""


def _spelled(action: argparse.Action) -> str:
    if action.metavar is not None:
        value = str(action.metavar)
    elif action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    else:
        value = action.dest.upper()
    if not action.option_strings:
        return value
    options = ", ".join(action.option_strings)
    return options if action.nargs == 0 else f"{options} {value}"


def _meaning(action: argparse.Action) -> str:
    text = action.help or ""
    if action.choices is not None and action.option_strings:
        choices = ", ".join(map(str, action.choices))
        text = text if choices in text else f"{text} ({choices})".strip()
    return text.replace("%(default)s", str(action.default)).replace("%%", "%")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
