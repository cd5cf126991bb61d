"""``sampler-lint explain``: what the model knows at a line."""

from __future__ import annotations

from collections.abc import Sequence

from sampler_lint.cli._common import CLEAN, FAILED, Parser, complain
from sampler_lint.cli._settings import Settings, add_configuring


def main(argv: Sequence[str]) -> int:
    """Print what is known about the line asked for and return the exit code."""
    parser = make_parser()
    arguments = parser.parse_args(argv)
    path, _, row = arguments.place.rpartition(":")
    if not path or not row.isdecimal():
        parser.error(f"{arguments.place}: give a file and a line, as in train.py:31")
    from sampler_lint.explain import explain
    from sampler_lint.reporters.text import visible
    from sampler_lint.source import SourceError

    try:
        lines = explain(path, int(row), options=Settings(arguments).options)
    except SourceError as error:
        complain(str(error.error))
        return FAILED
    print("\n".join(map(visible, lines)))
    return CLEAN


def make_parser() -> Parser:
    """What the command takes."""
    parser = Parser(
        prog="sampler-lint explain",
        description="Say what is known about a line, and why each rule spoke or kept silent.",
    )
    parser.add_argument("place", metavar="PATH:LINE")
    add_configuring(parser)
    return parser
