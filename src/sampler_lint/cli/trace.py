"""``sampler-lint trace``: a training command run with the recorder in it, and what it showed."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
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
    positive,
    reason,
    wants_color,
)

if TYPE_CHECKING:
    from sampler_lint.findings import Finding
    from sampler_lint.harness.trace import Trace
    from sampler_lint.reporters import Outcome

_EPILOG = """\
The command's own output passes through; the report follows on standard output.
With --output-format json the command's standard output goes to standard error,
so that standard output holds only the report. After Ctrl-C, the report covers
what was recorded until then.

Exit codes: 0 nothing was found; 1 findings; 2 nothing was recorded, the command
could not be started, or it failed and nothing was found; a record cannot be
read; or the runs of --resume-check cannot be compared.

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
    if argv[:1] == ["merge"]:  # what several nodes have left
        argv = ["--report", *argv[1:]]
    parser = make_parser()
    end = argv.index("--") if "--" in argv else len(argv)
    arguments, rest = parser.parse_known_args(argv[:end])
    if rest and (rest[0].startswith("-") or end < len(argv)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        parser.error(f"write -- before the command: sampler-lint trace -- {' '.join(rest)}")
    command = list(argv[end + 1 :])
    if bool(command) == bool(arguments.report):
        parser.error("give a command after --, or records with --report DIR")
    if arguments.plot and Path(arguments.plot).suffix.lower() not in (".html", ".png"):
        raise UsageError(f"--plot {arguments.plot}: the picture's name ends in .html or .png")
    wrong = _of_another(arguments)
    if wrong:
        parser.error(wrong)

    from sampler_lint.harness import HarnessError, plot
    from sampler_lint.harness.trace import read

    try:
        if arguments.resume_check:
            return _resume_check(arguments, command)
        if arguments.plot:  # fail before the command runs, not after it
            plot.check(arguments.plot)
        traced = read(arguments.report) if arguments.report else _run(arguments, command)
    except (HarnessError, OSError) as error:
        raise UsageError(reason(error)) from error
    return _report(arguments, traced)


def make_parser() -> Parser:
    """What the command takes."""
    parser = Parser(
        prog="sampler-lint trace",
        usage="%(prog)s [options] -- COMMAND ...\n       %(prog)s [options] --report DIR ..."
        "\n       %(prog)s merge DIR ... [options]\n       %(prog)s diff [options] DIR DIR",
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
        help="keep every index; by default 5000, chosen by hash, if there are more than 10000",
    )
    parser.add_argument(
        "--resume-check",
        action="store_true",
        help="run the command, stop it in the middle, start it again, and say whether it then "
        "reads what the run at one go has read",
    )
    parser.add_argument(
        "--resume-with",
        metavar="ARGS",
        type=_words,
        default=[],
        help="arguments added to the command where it goes on, such as '--resume last.pt'",
    )
    parser.add_argument(
        "--stop-at",
        metavar="STEP",
        type=positive,
        help="the optimizer step at which --resume-check stops each rank (default: 2 after the "
        "checkpoint in the middle)",
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


def _words(text: str) -> list[str]:
    import shlex

    try:
        return shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of words: {error}") from None


def _of_another(arguments: argparse.Namespace) -> str:
    """Which option has no meaning beside or without ``--resume-check``, in words."""
    whole, resuming = ("report", "plot", "stall", "all_indices"), ("resume_with", "stop_at")
    others = whole if arguments.resume_check else resuming
    told = "cannot be combined with" if arguments.resume_check else "needs"
    given = (one.replace("_", "-") for one in others if getattr(arguments, one))
    return next((f"--{one} {told} --resume-check" for one in given), "")


@contextlib.contextmanager
def _records(arguments: argparse.Namespace) -> Iterator[str]:
    """The folder of the records: the one to keep, or a temporary one."""
    if arguments.keep:
        os.makedirs(arguments.keep, exist_ok=True)
        yield arguments.keep
        return
    with tempfile.TemporaryDirectory(prefix="sampler-lint-", ignore_cleanup_errors=True) as folder:
        yield folder


def _stdout(arguments: argparse.Namespace) -> int | None:
    """Where the command's own standard output goes."""
    sys.stdout.flush()
    return sys.stderr.fileno() if arguments.output_format == "json" else None


def _teller() -> Callable[[str], object] | None:
    """What tells on the terminal how far a run is; nothing where there is none."""
    if not sys.stderr.isatty():
        return None
    return lambda text: print(f"sampler-lint trace: {text}", file=sys.stderr, flush=True)


def _run(arguments: argparse.Namespace, command: Sequence[str]) -> Trace:
    from sampler_lint.harness.trace import trace

    with _records(arguments) as directory:
        return trace(
            command,
            directory,
            stdout=_stdout(arguments),
            timeout=arguments.timeout,
            stall=arguments.stall,
            keep_all=arguments.all_indices,
            tell=_teller(),
        )


def _resume_check(arguments: argparse.Namespace, command: Sequence[str]) -> int:
    from sampler_lint import trace_report
    from sampler_lint.harness.resume import resume_check
    from sampler_lint.reporters import Outcome, reporter
    from sampler_lint.reporters.text import render_findings

    with _records(arguments) as directory:
        done = resume_check(
            command,
            directory,
            going_on=arguments.resume_with,
            stop_at=arguments.stop_at,
            stdout=_stdout(arguments),
            timeout=arguments.timeout,
            tell=_teller(),
        )
    findings = [trace_report.finding(one, done.resumed.run) for one in done.found]
    outcome = Outcome(findings, files=0, color=wants_color(arguments.color, sys.stdout))
    if arguments.output_format == "json":
        print(reporter("json")(outcome))
    else:
        sys.stdout.write(render_findings(outcome))
        print(done.told)
    return FINDINGS if findings else CLEAN


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

        plot.save(traced.run, [*map(_told, findings)], arguments.plot)
    if not trace_report.batches(traced.run):
        complain(_nothing(traced))
        return FAILED
    if findings:
        return FINDINGS
    failed = traced.status not in (None, 0) and traced.ended_by != _INTERRUPTED
    return FAILED if failed else CLEAN


def _told(finding: Finding) -> str:
    """A finding with its line of code, for the page."""
    from sampler_lint.trace_report import line_of

    line = line_of(finding.path, finding.start.row).strip()
    told = f"{finding.path}:{finding.start.row}: {finding.code} {finding.message}"
    return f"{told}\n    {line}" if line else told


_INTERRUPTED = "it was interrupted"


def _nothing(traced: Trace) -> str:
    from sampler_lint.trace_report import status

    if traced.unrecorded:
        return "nothing was recorded: torch ran without the recorder, see above"
    if traced.status not in (None, 0) and not traced.ended_by:
        return f"the command failed ({status(traced)}) before any loader was read"
    return (
        "nothing was recorded: no process of the command read a torch DataLoader "
        "(a Python run with -I, -E or -S cannot be recorded, nor one whose "
        "PYTHONPATH a shell replaces: append $PYTHONPATH there)"
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
        "repeated": traced.repeated,
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
