"""``sampler-lint rule``: what a rule says, from its docstring."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sampler_lint.cli._common import CLEAN, Parser, UsageError, add_output_format, columns_of
from sampler_lint.cli._settings import Settings, add_configuring

if TYPE_CHECKING:
    from sampler_lint.rules import Described


_ITEM = "- "


def main(argv: Sequence[str]) -> int:
    """Print the pages of the rules asked for and return the exit code."""
    arguments = make_parser().parse_args(argv)

    from sampler_lint.rules import every_rule, names

    if arguments.search:
        return _search(arguments.search, Settings(arguments).options(os.curdir).plugins)
    word = arguments.code or ""
    code = names().get(word.lower(), word.upper())
    rules = [each for each in every_rule(()) if each.code == code]
    if not rules:
        found = every_rule(Settings(arguments).options(os.curdir).plugins)
        code = names().get(word.lower(), code)  # those of the packages are known now
        rules = [each for each in found if not code or each.code == code]
    if not rules:
        from sampler_lint.config import nearest

        hint = nearest(word, names()) or "sampler-lint rule lists them, --search finds one"
        raise UsageError(f"no rule has the code or name {word!r} ({hint})")
    if not code and not arguments.all and arguments.output_format == "text":
        print("\n".join(map(_line, rules)))
        return CLEAN
    if arguments.output_format == "json":
        import json

        pages = [_rule_data(each) for each in rules]
        print(json.dumps(pages[0] if code else pages, indent=2))
    else:
        text = "\n\n".join(map(_rule_page, rules))
        width = columns_of(sys.stdout)
        print(text if width is None else "\n".join(_rows(text.splitlines(), width)))
    return CLEAN


def _search(query: Sequence[str], plugins: Collection[str]) -> int:
    """Print a line for each of the rules that most words of the query lead to."""
    from sampler_lint.rules import every_rule, summary

    wanted = _words(" ".join(query))

    def score(text: str) -> int:
        found = _words(text)
        return sum(any(each.startswith(word) for each in found) for word in wanted)

    scored = []
    for rule in every_rule(plugins):
        said = max((*rule.symptoms, summary(rule)), key=score)
        scored.append((max(score(said), score(rule.name)), rule, said))
    best = max(points for points, *_ in scored)
    if not best:
        raise UsageError(f"no rule matches {' '.join(query)!r} (sampler-lint rule lists them)")
    width = max(len(rule.name) for points, rule, _ in scored if points == best)
    for points, rule, said in scored:
        if points == best:
            print(f"{rule.code}  {rule.name:{width}}  {said}")
    return CLEAN


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _rule_data(rule: Described) -> dict[str, Any]:
    from inspect import cleandoc

    from sampler_lint.reporters import rule_url

    explanation = cleandoc(type(rule).__doc__ or "")
    return {
        "code": rule.code,
        "name": rule.name,
        "summary": explanation.partition("\n")[0],
        "symptoms": list(rule.symptoms),
        "fixable": rule.fixable,
        "severity": rule.severity.value,
        "default": rule.default,
        "explanation": explanation,
        "url": rule_url(rule.code),
    }


def _line(rule: Described) -> str:
    return f"{rule.code}  {rule.name}{'' if rule.default else '  (off by default)'}"


def _rows(lines: Iterable[str], width: int) -> Iterator[str]:
    """The lines of a page, in paragraphs that fit a terminal."""
    from sampler_lint.reporters.text import folded

    for (blank, _), paragraph in groupby(_placed(lines), key=lambda placed: placed[0]):
        rows = [line for _, line in paragraph]
        if blank:
            yield from rows
            continue
        margin = len(rows[0]) - len(rows[0].lstrip())
        hanging = margin + (2 if rows[0].lstrip().startswith(_ITEM) else 0)
        text = " ".join(map(str.strip, rows))
        yield " " * margin + folded(text, width, before=margin, hanging=hanging)


def _placed(lines: Iterable[str]) -> Iterator[tuple[tuple[bool, int], str]]:
    """Each line with whether it is blank, and the number of its paragraph or item of a list."""
    number, margin = 0, 0
    for line in lines:
        here = len(line) - len(line.lstrip())
        item = line.lstrip().startswith(_ITEM)
        if item or here != margin:
            number += 1
        margin = here + 2 if item else here
        yield (not line, number), line


def _rule_page(rule: Described) -> str:
    data = _rule_data(rule)
    title = f"# {rule.name} ({rule.code})"
    on = "On" if rule.default else "Off"
    state = f"Fixable: {rule.fixable}. Severity: {rule.severity.value}. {on} by default."
    seen = "".join(f"- {symptom}\n" for symptom in rule.symptoms)
    seen = f"Symptoms:\n\n{seen}".rstrip() if seen else ""
    return "\n\n".join(filter(None, (title, state, seen, data["explanation"], data["url"])))


def make_parser() -> Parser:
    """What the command takes."""
    parser = Parser(prog="sampler-lint rule", description="Explain a rule.")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "code",
        metavar="CODE",
        nargs="?",
        help="a rule's code or name, such as SMP101; without one, all rules are listed",
    )
    which.add_argument("--all", action="store_true", help="print the pages of all rules")
    which.add_argument(
        "--search",
        metavar="WORD",
        nargs="+",
        help="find rules by symptom, as in: --search hangs at the end of an epoch",
    )
    add_output_format(parser)
    add_configuring(parser)
    return parser
