"""``sampler-lint contract``: the contract of a sampler class, tried in a process of its own."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from sampler_lint.cli._common import (
    CLEAN,
    FINDINGS,
    Parser,
    UsageError,
    add_output_format,
    comma_list,
    keyword,
    positive,
)


def main(argv: Sequence[str]) -> int:
    """Examine the class asked for and return the exit code."""
    arguments = make_parser().parse_args(argv)

    from sampler_lint.harness import HarnessError
    from sampler_lint.harness.contained import Request, examine_class
    from sampler_lint.harness.frameworks import FRAMEWORKS, installed
    from sampler_lint.harness.promises import PROMISES
    from sampler_lint.reporters.text import visible

    for one in arguments.allow:
        if one not in {*PROMISES, *FRAMEWORKS}:
            raise UsageError(f"no promise is called {one!r}; known are {', '.join(PROMISES)}")
    for one in arguments.frameworks or ():
        if one in FRAMEWORKS and not installed(one):
            raise UsageError(f"--frameworks {one}: it is not installed")
    options = {
        name: value
        for name in ("sizes", "world_sizes", "seeds", "epochs", "batch_size", "frameworks")
        if (value := getattr(arguments, name)) is not None
    }
    request = Request(arguments.target, dict(arguments.kw), options)
    try:
        report = examine_class(request, timeout=arguments.timeout)
    except HarnessError as error:
        raise UsageError(str(error)) from error
    if arguments.output_format == "json":
        told = {"target": arguments.target, **report.to_dict()}
        print(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        print("\n".join(map(visible, report.render().splitlines())))
    broken = {one.promise for one in report.broken}
    return FINDINGS if broken - {*arguments.allow} else CLEAN


def make_parser() -> Parser:
    """What the command takes."""
    parser = Parser(
        prog="sampler-lint contract",
        description="Test whether a sampler class keeps its contract over many dataset sizes, "
        "world sizes, epochs and seeds. This runs the class.",
        epilog="Exit codes: 0 all promises hold, 1 one is broken, 2 the class could not be tested.",
    )
    parser.add_argument(
        "target", metavar="TARGET", help="package.module:Class or path/to/file.py:Class"
    )
    parser.add_argument(
        "--kw",
        metavar="NAME=VALUE",
        type=keyword,
        action="append",
        default=[],
        help="value of a constructor parameter that cannot be guessed from its name; a Python "
        "literal, else text",
    )
    parser.add_argument(
        "--allow",
        metavar="PROMISES",
        type=comma_list,
        default=[],
        help="promises that the class breaks on purpose",
    )
    for name, what in (
        ("sizes", "dataset sizes to try"),
        ("world-sizes", "world sizes to try (no processes are started)"),
        ("seeds", "seeds to try"),
    ):
        kind = _positive_numbers if name == "world-sizes" else _numbers
        parser.add_argument(f"--{name}", metavar="N,…", type=kind, help=what)
    for name, what in (("epochs", "number of epochs to try"), ("batch-size", "the batch size")):
        parser.add_argument(f"--{name}", metavar="N", type=positive, help=what)
    parser.add_argument(
        "--frameworks",
        metavar="NAMES",
        type=comma_list,
        help="also test the loader as lightning or accelerate prepare it",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=positive,
        default=60,
        help="time limit for trying inputs (default: 60)",
    )
    add_output_format(parser)
    return parser


def _numbers(text: str) -> list[int]:
    parts: list[str] = comma_list(text)
    if not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers")
    return [int(part) for part in parts]


def _positive_numbers(text: str) -> list[int]:
    return [positive(str(number)) for number in _numbers(text)]
