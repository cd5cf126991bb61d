"""``sampler-lint explain``: what the model knows at a line."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from sampler_lint.cli._common import CLEAN, FAILED, Parser, columns_of, complain
from sampler_lint.cli._settings import Settings, add_configuring

#: A place as findings name it; the column is not looked at.
_PLACE = re.compile(
    r"(?P<path>.+?)(:cell (?P<cell>[0-9]+))?:(?P<row>[1-9][0-9]*)(:[0-9]+)?:?", re.DOTALL
)


def main(argv: Sequence[str]) -> int:
    """Print what is known about the line asked for and return the exit code."""
    parser = make_parser()
    arguments = parser.parse_args(argv)
    place = _PLACE.fullmatch(arguments.place)
    if place is None:
        parser.error(f"{arguments.place}: give a file and a line, as in train.py:31")
    cell = None if place["cell"] is None else int(place["cell"])
    from sampler_lint.explain import explain
    from sampler_lint.reporters.text import folded, visible
    from sampler_lint.source import SourceError

    try:
        lines = explain(
            *(place["path"], int(place["row"])), options=Settings(arguments).options, cell=cell
        )
    except SourceError as error:
        complain(str(error.error))
        return FAILED
    width = columns_of(sys.stdout)
    for line in map(visible, lines):
        margin = len(line) - len(line.lstrip())
        print(" " * margin + folded(line.lstrip(), width, before=margin, hanging=margin + 4))
    return CLEAN


def make_parser() -> Parser:
    """What the command takes."""
    parser = Parser(
        prog="sampler-lint explain",
        description="Print what is known about a line, and why each rule did or did not report it.",
    )
    parser.add_argument(
        "place",
        metavar="PATH:LINE",
        help="a place as findings print it: train.py:31, train.py:31:9 or, in a notebook, "
        "'eda.ipynb:cell 3:12'",
    )
    add_configuring(parser)
    return parser
