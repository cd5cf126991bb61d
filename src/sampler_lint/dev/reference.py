"""The pages to look things up in: the rules by symptom, and the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module

from sampler_lint.rules import Described, every_rule, summary

RULES = "docs/rules/index.md"
COMMANDS = "docs/cli.md"

_RULES = """\
# Rules

Find a rule by what you see. On the command line: `sampler-lint rule --search hangs`.

| symptom | rules |
|---|---|
"""

_EVERY = """
## All rules

| code | name | what is wrong | fix |
|---|---|---|---|
"""

_COMMANDS = """\
# Command line

All commands and their options; `sampler-lint COMMAND --help` prints the same. `sampler-lint PATH`
is short for `sampler-lint check PATH`. Most options can also be set in a
[configuration file](configuration.md).
"""


def rules(comment: str) -> str:
    """The rules by symptom, then all; ``comment`` says what makes the page."""
    rows = sorted(_by_symptom().items(), key=lambda item: (-len(item[1]), item[0]))
    seen = [f"| {_cell(as_text(symptom))} | {', '.join(found)} |\n" for symptom, found in rows]
    return "".join([f"{comment}\n{_RULES}", *seen, _EVERY, *map(_row, every_rule())])


def as_text(symptom: str) -> str:
    """The symptom in Markdown, where ``__init__`` would be printed bold."""
    return symptom.replace("_", r"\_")


def _by_symptom() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for rule in every_rule():
        for symptom in rule.symptoms:
            found.setdefault(symptom, []).append(f"[{rule.name}]({rule.code.lower()}.md)")
    return found


def _row(rule: Described) -> str:
    link = f"[{rule.code}]({rule.code.lower()}.md)"
    return f"| {link} | `{rule.name}` | {_cell(summary(rule))} | {rule.fixable} |\n"


def command_line(comment: str) -> str:
    """Every command with its options; ``comment`` says what makes the page."""
    from sampler_lint import cli

    sections = (line for name in cli.COMMANDS for line in _of(name))
    return "\n".join([f"{comment}\n{_COMMANDS}", *sections])


def _of(name: str) -> Iterator[str]:
    parser: argparse.ArgumentParser = import_module(f"sampler_lint.cli.{name}").make_parser()
    usage = (parser.usage or "").replace("%(prog)s", parser.prog).splitlines()
    yield f"## `sampler-lint {name}`\n\n{parser.description}\n"
    if usage:
        yield "\n".join(["```text", *map(str.strip, usage), "```\n"])
    for group in parser._action_groups:  # what argparse itself prints its help from
        rows = [
            f"| `{_cell(_spelled(action))}` | {_cell(_meaning(action))} |"
            for action in group._group_actions
            if action.help is not argparse.SUPPRESS and action.dest != "help"
        ]
        if rows:
            yield f"| {(group.title or '').removeprefix('positional ')} | |\n|---|---|"
            yield "\n".join([*rows, ""])
    if parser.epilog:
        epilog = parser.epilog.rstrip()
        yield f"```text\n{epilog}\n```\n" if "\n" in epilog else f"{epilog}\n"


def _spelled(action: argparse.Action) -> str:
    value = action.metavar or f"{{{','.join(map(str, action.choices or ()))}}}"
    options = ", ".join(action.option_strings)
    return options if action.nargs == 0 else f"{options} {value}".strip()


def _meaning(action: argparse.Action) -> str:
    return (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
