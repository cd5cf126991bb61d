"""``sampler-lint check``, the command that is meant when none is named."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sampler_lint import __version__
from sampler_lint.cli._adopting import add_adopting, narrowing, note_gone, put_up_with
from sampler_lint.cli._common import CLEAN, FAILED, FINDINGS, Parser, UsageError, complain_of
from sampler_lint.cli._fixing import add_fixing, asked_to_fix, fix_and_report
from sampler_lint.cli._performing import (
    add_performing,
    cache_of,
    clear_cache,
    jobs_of,
    tell_timings,
    watching,
)
from sampler_lint.cli._settings import Settings, add_choosing, add_configuring
from sampler_lint.cli._telling import Printer, add_telling

if TYPE_CHECKING:
    from sampler_lint.findings import FileError
    from sampler_lint.options import OptionsOf
    from sampler_lint.trees import Kept

_STDIN = "-"


_EPILOG = """\
other commands:
  sampler-lint rule [CODE]             list the rules, or explain one
  sampler-lint explain PATH:LINE       what is known there, and why each rule
                                       did or did not report it
  sampler-lint trace -- COMMAND        record what a training run really reads
  sampler-lint report CODE             write an issue from two recorded runs
  sampler-lint contract MODULE:CLASS   test a sampler class
  sampler-lint verify DIR              run fixtures before and after their fix
  sampler-lint server                  run the language server for editors
  sampler-lint completion SHELL        print a completion script
To check a path that has a command's name, write ./rule.

exit codes: 0 no findings, or none left after --fix; 1 findings; 2 a bad option
or a file that could not be read
"""


def make_parser() -> Parser:
    """What the command takes."""
    parser = Parser(
        prog="sampler-lint",
        usage="%(prog)s [check] [options] [PATH ...]",
        description="Find, fix and prove data-sampler bugs in distributed PyTorch training.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sampler-lint {__version__}")
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="files and folders to check (default: .); - is standard input",
    )
    add_fixing(parser)
    add_adopting(parser)
    add_choosing(parser)
    add_configuring(parser)
    add_telling(parser)
    add_performing(parser)
    return parser


def main(argv: Sequence[str]) -> int:
    """Check or fix the paths of ``argv`` and return the exit code."""
    arguments = _parsed(argv)
    if not arguments.watch:
        return _once(arguments, Settings(arguments))
    from sampler_lint.cli import _watch

    _watch.refuse(arguments)
    arguments.paths = arguments.paths or ["."]
    kept: dict[str, Kept] = {}

    def once() -> OptionsOf:
        settings = Settings(arguments)
        _once(argparse.Namespace(**vars(arguments)), settings, kept)
        return settings.options

    return _watch.watch(arguments, once)


def _once(
    arguments: argparse.Namespace, settings: Settings, kept: dict[str, Kept] | None = None
) -> int:
    """Do what was asked for and return the exit code; ``kept`` is as for ``engine.check``."""
    started = time.perf_counter()
    if arguments.show_settings:
        from sampler_lint.cli._show_settings import show_settings

        print(show_settings(settings, arguments.paths or ["."]))
        return CLEAN
    fixing = asked_to_fix(arguments)
    paths, overlay = _inputs(arguments)
    settings.fill_in(arguments)
    if arguments.clear_cache:
        print(clear_cache(arguments))
        return CLEAN
    options = settings.options
    if arguments.force_exclude and not overlay:
        from sampler_lint.trees import not_excluded

        paths = not_excluded(paths, options)
    if arguments.show_files:
        return _show_files(paths, options)
    if arguments.add_noqa or arguments.write_baseline is not None:
        if fixing or overlay:
            raise UsageError("--add-noqa and --write-baseline neither fix nor read standard input")
        return put_up_with(arguments, paths, options)
    from sampler_lint import engine

    unsettled = [] if overlay else _settle(arguments, paths)
    narrow = narrowing(arguments, paths)
    if fixing:
        errors, found = fix_and_report(arguments, options, paths, overlay, narrow)
        return _exit_code(arguments, [*unsettled, *errors], found=found)

    from sampler_lint.source import Sources

    printer = Printer(arguments, sys.stdout)
    with watching(arguments) as watch:
        report = engine.check(
            *(paths, options),
            overlay=overlay,
            cache=cache_of(arguments),
            jobs=jobs_of(arguments),
            watch=watch,
            kept=kept,
            edits=printer.shows_edits,
            related=arguments.related,
        )
    if narrow is not None:
        narrow(report, overlay)
    note_gone(arguments, report)
    with report.timings.stage("report"):
        printer.tell(printer.outcome(report, sources=Sources(overlay)))
        complain_of(report.errors, tracebacks=arguments.show_traceback)
    if arguments.timings:
        tell_timings(report.timings, time.perf_counter() - started)
    errors = [*unsettled, *report.errors]
    return _exit_code(arguments, errors, found=report.fails)


def _settle(arguments: argparse.Namespace, paths: Sequence[str]) -> list[FileError]:
    """Take back what an earlier run has half fixed, and say so; what could not be."""
    from sampler_lint import engine

    written, errors = engine.settle(paths)
    if written and not arguments.quiet:
        from sampler_lint.reporters.text import visible

        told = ", ".join(map(visible, written))
        note = f"note: a fix of several files had been interrupted; it is undone in {told}"
        print(note, file=sys.stderr)
    complain_of(errors, tracebacks=arguments.show_traceback)
    return errors


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments; options may stand among paths, and ``--`` ends them."""
    # argparse knows either of the two, so what follows ``--`` is kept from it.
    end = argv.index("--") if "--" in argv else len(argv)
    arguments = make_parser().parse_intermixed_args(argv[:end])
    arguments.paths += argv[end + 1 :]
    return arguments


def _inputs(arguments: argparse.Namespace) -> tuple[list[str], dict[str, bytes]]:
    """The paths to check, and standard input as the content of one of them."""
    named = arguments.stdin_filename is not None
    paths = arguments.paths or [_STDIN if named else "."]
    if _STDIN not in paths:
        if named:
            raise UsageError("--stdin-filename goes with no other path than -")
        for path in paths:
            if not os.path.lexists(path) and (hint := _meant(path)):
                raise UsageError(f"{path}: no such file or directory ({hint})")
        if arguments.diff and arguments.output_format not in {None, "text"}:
            raise UsageError("--diff prints a patch; it takes no --output-format")
        return paths, {}
    if len(paths) > 1:
        raise UsageError("standard input (-) goes with no other path")
    name = arguments.stdin_filename or _STDIN
    return [name], {name: sys.stdin.buffer.read()}


def _meant(word: str) -> str:
    """What may have been meant by a path that is not there; nothing if it looks like a path."""
    from sampler_lint import cli, config
    from sampler_lint.rules import codes

    if word in codes():
        return "codes are joined by commas: --select SMP101,SMP102"
    elsewhere = dict(config.COMMANDS)
    if word in elsewhere:
        return f"here: {elsewhere[word]}"
    return config.nearest(word, cli.COMMANDS)


def _show_files(paths: Sequence[str], options: OptionsOf) -> int:
    from sampler_lint.reporters.text import visible
    from sampler_lint.trees import find

    found = find(paths, options)
    for path in sorted(found.files):
        print(visible(path))
    complain_of(found.errors)
    return FAILED if found.errors else CLEAN


def _exit_code(arguments: argparse.Namespace, errors: Sequence[FileError], *, found: bool) -> int:
    """The status; ``--exit-zero`` asks for a report, whatever the files hold (as ruff's does).

    A path that is not there is a wrong call all the same.
    """
    if errors and not (arguments.exit_zero and all(os.path.lexists(e.path) for e in errors)):
        return FAILED
    return FINDINGS if found and not arguments.exit_zero else CLEAN
