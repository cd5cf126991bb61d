"""``sampler-lint trace``: a training command run with the recorder in it, and what it showed."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sampler_lint.cli._common import (
    CLEAN,
    FAILED,
    FINDINGS,
    Parser,
    UsageError,
    add_color,
    add_output_format,
    complain,
    wants_color,
)

if TYPE_CHECKING:
    from sampler_lint.harness.trace import Trace
    from sampler_lint.reporters import Outcome

_EPILOG = """\
The command's own output passes through; the report follows on standard output.
With --output-format json the command's standard output goes to standard error,
so that standard output holds only the report. After Ctrl-C, the report covers
what was recorded until then.

Exit codes: 0 nothing was found; 1 findings; 2 nothing was recorded, the command
could not be started, or it failed and nothing was found.

  sampler-lint trace -- torchrun --nproc-per-node 2 train.py --epochs 3
  sampler-lint trace --plot order.html -- accelerate launch train.py
  sampler-lint trace --keep /shared/run -- torchrun --nnodes 2 ... (every node)
  sampler-lint trace --report /shared/run
  sampler-lint trace diff kept/monday kept/tuesday
"""


def main(argv: Sequence[str]) -> int:
    """Trace the command in ``argv``, or report on records, and return the exit code."""
    if argv[:1] == ["diff"]:
        from sampler_lint.cli import _trace_diff

        return _trace_diff.main(argv[1:])
    parser = make_parser()
    end = argv.index("--") if "--" in argv else len(argv)
    arguments = parser.parse_args(argv[:end])
    command = list(argv[end + 1 :])
    if bool(command) == bool(arguments.report):
        parser.error("give a command after --, or records with --report DIR")
    if arguments.plot and Path(arguments.plot).suffix.lower() not in (".html", ".png"):
        raise UsageError(f"--plot {arguments.plot}: the picture's name ends in .html or .png")

    from sampler_lint.harness import HarnessError, plot
    from sampler_lint.harness.trace import read

    try:
        if arguments.plot:  # fail before the command runs, not after it
            plot.check(arguments.plot)
        traced = read(arguments.report) if arguments.report else _run(arguments, command)
    except (HarnessError, OSError) as error:
        raise UsageError(str(error)) from error
    return _report(arguments, traced)


def make_parser() -> Parser:
    """What the command takes."""
    parser = Parser(
        prog="sampler-lint trace",
        usage="%(prog)s [options] -- COMMAND ...\n       %(prog)s [options] --report DIR ..."
        "\n       %(prog)s diff [options] DIR DIR",
        description="Run a training command, record which samples each rank's loaders "
        "yield, and\nreport what is wrong. The program's files are not changed.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--report",
        metavar="DIR",
        nargs="+",
        help="report on records written by --keep instead of running a command",
    )
    parser.add_argument("--keep", metavar="DIR", help="keep the records in DIR")
    parser.add_argument("--plot", metavar="FILE", help="plot what each rank read, as .html or .png")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, help="stop the command after this time"
    )
    parser.add_argument(
        "--stall",
        metavar="SECONDS",
        type=_seconds,
        help="stop the command when no rank has read a batch for this time (default: 60, and only "
        "if a rank is waiting for one that took fewer steps)",
    )
    parser.add_argument(
        "--all-indices",
        action="store_true",
        help="keep every index; by default only every n-th one if there are more than 10000",
    )
    add_output_format(parser)
    add_color(parser)
    return parser


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return value


def _run(arguments: argparse.Namespace, command: Sequence[str]) -> Trace:
    from sampler_lint.harness.trace import trace

    as_json = arguments.output_format == "json"
    sys.stdout.flush()
    with contextlib.ExitStack() as stack:
        directory = arguments.keep or stack.enter_context(
            tempfile.TemporaryDirectory(prefix="sampler-lint-", ignore_cleanup_errors=True)
        )
        os.makedirs(directory, exist_ok=True)
        return trace(
            command,
            directory,
            stdout=sys.stderr.fileno() if as_json else None,
            timeout=arguments.timeout,
            stall=arguments.stall,
            keep_all=arguments.all_indices,
        )


# -- the report


def _report(arguments: argparse.Namespace, traced: Trace) -> int:
    from sampler_lint import trace_report
    from sampler_lint.reporters import Outcome
    from sampler_lint.reporters.text import visible

    findings = trace_report.findings(traced.run)
    outcome = Outcome(findings, files=0, color=wants_color(arguments.color, sys.stdout))
    if arguments.output_format == "json":
        print(_json(traced, outcome))
    else:
        from sampler_lint.reporters.text import render_findings

        sys.stdout.write(render_findings(outcome))
        print("\n".join(map(visible, trace_report.summary(traced, len(findings)))))
    if arguments.plot and traced.run.ranks:
        from sampler_lint.harness import plot

        plot.save(traced.run, [one.message for one in findings], arguments.plot)
    if not trace_report.batches(traced.run):
        complain(_nothing(traced))
        return FAILED
    if findings:
        return FINDINGS
    failed = traced.status not in (None, 0) and traced.ended_by != _INTERRUPTED
    return FAILED if failed else CLEAN


_INTERRUPTED = "it was interrupted"


def _nothing(traced: Trace) -> str:
    from sampler_lint.trace_report import status

    if traced.unrecorded:
        return "nothing was recorded: torch ran without the recorder, see above"
    if traced.status not in (None, 0) and not traced.ended_by:
        return f"the command failed ({status(traced)}) before any loader was read"
    return (
        "nothing was recorded: no process of the command read a torch DataLoader "
        "(a Python run with -I, -E or -S cannot be recorded, nor one that a shell gives a "
        "PYTHONPATH of its own: put what it needs before $PYTHONPATH)"
    )


def _json(traced: Trace, outcome: Outcome) -> str:
    import json

    from sampler_lint.reporters import reporter

    run = traced.run
    report: dict[str, Any] = {
        "command": list(run.args),
        "status": traced.status,
        "ended_by": traced.ended_by or None,
        "left_behind": traced.left_behind,
        "world_size": traced.world_size,
        "missing_ranks": traced.missing,
        "recorder_failures": traced.failures,
        "unrecorded": traced.unrecorded,
        "findings": json.loads(reporter("json")(outcome)),
        "ranks": [
            {
                "rank": rank.rank,
                "host": rank.log.host,
                "pid": rank.log.pid,
                "outcome": rank.outcome,
                "reason": rank.reason or None,
                "place": rank.place,
                "loaders": [
                    {
                        "built": run.place(loader),
                        "class": loader.cls,
                        "dataset": loader.dataset_cls,
                        "samples": loader.dataset_length,
                        "samplers": [sampler["cls"] for sampler in loader.samplers],
                        "epochs": [
                            {
                                "batches": one.yielded,
                                "indices": one.count,
                                "order": f"{one.checksum:08x}",
                                "ended": one.ended,
                                "training": one.learned > 0,
                            }
                            for one in loader.passes
                        ],
                    }
                    for loader in rank.log.loaders
                    if loader.passes
                ],
                "set_epoch": [
                    {
                        "on": call.cls,
                        "value": call.value,
                        "time": call.time,
                        "path": call.path,
                        "line": call.line,
                    }
                    for call in rank.log.set_epochs
                ],
            }
            for rank in run.ranks
        ],
    }
    return json.dumps(report, indent=2)
