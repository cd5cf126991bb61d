"""``sampler-lint verify``: fixtures proved on gloo ranks."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from sampler_lint.cli._common import (
    CLEAN,
    FINDINGS,
    Parser,
    UsageError,
    add_output_format,
    positive,
)
from sampler_lint.cli._settings import Settings, add_configuring


def main(argv: Sequence[str]) -> int:
    """Prove the fixtures asked for and return the exit code."""
    arguments = make_parser().parse_args(argv)

    from sampler_lint.cli._progress import Progress
    from sampler_lint.harness import HarnessError, verify
    from sampler_lint.reporters.text import visible
    from sampler_lint.rules import use_everywhere

    use_everywhere(Settings(arguments).options(os.curdir).plugins)
    bars: list[Progress] = []

    def progress(name: str, total: int) -> None:
        bars[:] = bars or [Progress(total, sys.stderr)]
        bars[0].step(name)

    try:
        proofs = verify.verify_fixtures(
            arguments.paths,
            jobs=arguments.jobs,
            world_size=arguments.world_size,
            progress=progress,
        )
    except HarnessError as error:
        raise UsageError(str(error)) from error
    finally:
        for bar in bars:
            bar.close()
    if arguments.output_format == "json":
        print(verify.to_json(proofs))
    else:
        print("\n".join(map(visible, verify.render_table(proofs).splitlines())))
    return CLEAN if all(proof.proved for proof in proofs) else FINDINGS


def programs_at_a_time() -> int:
    """How many programs keep this machine busy: half of its time a rank waits for another."""
    return min(8, 2 * (os.cpu_count() or 1))


def make_parser() -> Parser:
    """What the command takes."""
    parser = Parser(
        prog="sampler-lint verify",
        description="Run fixtures on gloo ranks: a program must break the rule's invariant before "
        "the fix and keep it after. This runs the code it is given.",
        epilog="Exit codes: 0 all fixtures proved, 1 one not proved, 2 one could not be run.",
    )
    parser.add_argument(
        "paths", metavar="DIR", nargs="+", help="fixture folders, or folders that hold some"
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=positive,
        default=programs_at_a_time(),
        help="programs to run at a time (default: twice the number of cores)",
    )
    parser.add_argument(
        "--world-size",
        metavar="N",
        type=positive,
        help="number of ranks, instead of what the fixtures ask for",
    )
    add_output_format(parser)
    add_configuring(parser)
    return parser
