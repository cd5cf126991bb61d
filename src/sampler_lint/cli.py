"""The ``sampler-lint`` command.

Only what every call needs is imported here: ``--version`` and usage errors cost little more
than starting Python. Exit codes: 0 nothing to report, 1 findings left (or changes made or
due, where asked to tell), 2 the job could not be done whole, 130 interrupted.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sampler_lint import __version__

if TYPE_CHECKING:
    from sampler_lint.engine import Options
    from sampler_lint.findings import FileError
    from sampler_lint.rules import Rule

CLEAN, FINDINGS, FAILED, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141
_STDIN = "-"


class UsageError(Exception):
    """What was asked for cannot be done; the text says why."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with ``argv`` (default: the process's own) and return its exit code.

    Raises:
        SystemExit: argparse printed help, the version or a usage error.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks is shown escaped instead of ending the run.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    command = _COMMANDS.get(arguments[0]) if arguments else None
    try:
        code = command(arguments[1:]) if command else _check(arguments)
        sys.stdout.flush()
    except UsageError as error:
        _complain(str(error))
        return FAILED
    except BrokenPipeError:
        # The reader (``| head``) has seen enough. What is still buffered must go nowhere, or
        # the interpreter complains about it on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


# --- check --------------------------------------------------------------------------------


def run() -> int:
    """The ``sampler-lint`` command: :func:`main` in a process that ends with it.

    One check makes many small objects and no garbage, and then the process is over: looking
    for garbage among them, at the end too, took a quarter of the time. Fixing checks again and
    again, and needs the memory back.
    """
    if not {"--fix", "--diff"} & set(sys.argv):
        gc.disable()
    status = main()
    gc.freeze()
    return status


def _check_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sampler-lint",
        usage="%(prog)s [check] [options] [PATH ...]",
        description="Find, mend and prove data-sampler bugs in distributed PyTorch training.",
        epilog="Other commands: sampler-lint rule CODE (explain a rule), sampler-lint rule --all, "
        "sampler-lint explain PATH:LINE (what is known there, and why a rule is silent), "
        "sampler-lint verify DIR (run a fixture's script before and after its fix). A path with a "
        "command's name is given as ./rule.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sampler-lint {__version__}")
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="files and folders (default: .); - is standard input",
    )
    fixing = parser.add_argument_group("fixing")
    fixing.add_argument("--fix", action="store_true", help="apply the safe fixes")
    fixing.add_argument(
        "--diff",
        action="store_true",
        help="print what --fix would change as a patch; write nothing",
    )
    fixing.add_argument("--unsafe-fixes", action="store_true", help="take the unsafe fixes too")
    choosing = parser.add_argument_group("choosing")
    for option, text in (
        ("--select", "code prefixes to report (ALL: every rule); replaces the configured choice"),
        ("--ignore", "code prefixes to leave out"),
    ):
        choosing.add_argument(
            option,
            metavar="CODES",
            action="extend",
            type=_comma_list,
            help=f"{text}; comma-separated",
        )
    choosing.add_argument(
        "--exclude",
        metavar="PATTERNS",
        action="extend",
        type=_comma_list,
        help="gitignore patterns of files to leave out; comma-separated",
    )
    choosing.add_argument("--isolated", action="store_true", help="read no configuration")
    choosing.add_argument(
        "--stdin-filename", metavar="NAME", help="the file that standard input (-) stands for"
    )
    telling = parser.add_argument_group("telling")
    _add_output_format(telling)
    telling.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    telling.add_argument(
        "--exit-zero",
        action="store_true",
        help="exit 0 even with findings or files that cannot be read",
    )
    telling.add_argument(
        "--exit-non-zero-on-fix", action="store_true", help="with --fix, exit 1 if a file changed"
    )
    return parser


def _add_output_format(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--output-format", choices=("text", "json"), default="text")


def _comma_list(text: str) -> list[str]:
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise argparse.ArgumentTypeError(f"an empty item in {text!r}")
    return items


def _check(argv: Sequence[str]) -> int:
    arguments = _parsed(argv)
    options = _options(arguments)
    paths, overlay = _inputs(arguments)
    if arguments.fix or arguments.diff:
        return _mend(arguments, options, paths, overlay)

    from sampler_lint import engine
    from sampler_lint.reporters import Outcome, Sources, reporter

    report = engine.check(paths, options, overlay=overlay)
    outcome = Outcome(
        report.findings,
        files=len(report.files),
        errors=len(report.errors),
        sources=Sources(overlay),
        unsafe=arguments.unsafe_fixes,
        color=_wants_color(arguments.color, sys.stdout),
    )
    sys.stdout.write(reporter(arguments.output_format)(outcome))
    _complain_of(report.errors)
    return _exit_code(arguments, report.errors, found=bool(report.findings))


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments; options may stand among paths, and ``--`` ends them."""
    # argparse knows either of the two, so what follows ``--`` is kept from it.
    end = argv.index("--") if "--" in argv else len(argv)
    arguments = _check_parser().parse_intermixed_args(argv[:end])
    arguments.paths += argv[end + 1 :]
    return arguments


def _mend(
    arguments: argparse.Namespace,
    options: Options,
    paths: Sequence[str],
    overlay: Mapping[str, bytes],
) -> int:
    from sampler_lint import engine
    from sampler_lint.reporters import Mended, Outcome, Sources, reporter
    from sampler_lint.reporters.diff import unified_diff
    from sampler_lint.reporters.text import summary

    in_place = arguments.fix and not arguments.diff and not overlay
    result = engine.fix(
        paths, options, unsafe=arguments.unsafe_fixes, write=in_place, overlay=overlay
    )
    errors = [*result.report.errors, *result.errors]
    after = {path: new for path, (_, new) in result.changed.items()}
    # The report owns standard output unless a patch or the fixed source does.
    stream = sys.stdout if in_place else sys.stderr
    outcome = Outcome(
        result.report.findings,
        files=len(result.report.files),
        errors=len(errors),
        sources=Sources({**overlay, **after}),
        unsafe=arguments.unsafe_fixes,
        color=_wants_color(arguments.color, stream),
        mended=Mended(result.fixed, result.left, len(after), written=not arguments.diff),
    )
    if arguments.diff:
        patch = (unified_diff(path, *change) for path, change in sorted(result.changed.items()))
        _write_bytes(b"".join(patch))
        stream.write(summary(outcome) + "\n")
    else:
        for path, source in overlay.items():
            _write_bytes(after.get(path, source))
        stream.write(reporter(arguments.output_format)(outcome))
    _complain_of(errors)
    telling = arguments.diff or arguments.exit_non_zero_on_fix
    found = bool(result.report.findings) or (telling and bool(after))
    return _exit_code(arguments, errors, found=found)


def _options(arguments: argparse.Namespace) -> Options:
    """What the command line says, over what the configuration says.

    ``--select`` replaces the configured choice of rules, its ``ignore`` included: naming a
    rule is asking for it. ``--ignore`` and ``--exclude`` add to the configured ones.
    """
    from pathlib import Path

    from sampler_lint.config import Config, ConfigError, find_config
    from sampler_lint.engine import Options

    try:
        config = Config() if arguments.isolated else find_config(Path.cwd())
    except ConfigError as error:
        raise UsageError(str(error)) from error
    select, ignore = config.select, config.ignore or ()
    if arguments.select is not None:
        select, ignore = tuple(arguments.select), ()
    ignore += tuple(arguments.ignore or ())
    _refuse_unknown_codes((*(select or ()), *ignore))
    exclude = (*(config.exclude or ()), *(arguments.exclude or ()))
    return Options(select=select, ignore=ignore, exclude=exclude)


def _refuse_unknown_codes(prefixes: Sequence[str]) -> None:
    if not prefixes:
        return
    from sampler_lint.rules import all_rules

    codes = [rule.code for rule in all_rules()]
    for prefix in prefixes:
        if prefix != "ALL" and not any(code.startswith(prefix) for code in codes):
            raise UsageError(f"no rule's code begins with {prefix!r} (sampler-lint rule --all)")


def _inputs(arguments: argparse.Namespace) -> tuple[list[str], dict[str, bytes]]:
    """The paths to check, and standard input as the content of one of them."""
    paths = arguments.paths or ["."]
    if _STDIN not in paths:
        if arguments.stdin_filename is not None:
            raise UsageError("--stdin-filename needs the path -")
        if arguments.diff and arguments.output_format != "text":
            raise UsageError("--diff prints a patch; it takes no --output-format")
        return paths, {}
    if len(paths) > 1:
        raise UsageError("standard input (-) goes with no other path")
    name = arguments.stdin_filename or _STDIN
    return [name], {name: sys.stdin.buffer.read()}


def _exit_code(arguments: argparse.Namespace, errors: Sequence[FileError], *, found: bool) -> int:
    """The status; ``--exit-zero`` asks for a report, whatever the files hold (as ruff's does).

    A path that is not there is a wrong call all the same.
    """
    if errors and not (arguments.exit_zero and all(os.path.lexists(e.path) for e in errors)):
        return FAILED
    return FINDINGS if found and not arguments.exit_zero else CLEAN


# --- rule ---------------------------------------------------------------------------------


def _rule(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="sampler-lint rule", description="Explain a rule.", allow_abbrev=False
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("code", metavar="CODE", nargs="?", help="a rule's whole code, e.g. SMP101")
    which.add_argument("--all", action="store_true", help="every rule")
    _add_output_format(parser)
    arguments = parser.parse_args(argv)

    from sampler_lint.rules import all_rules

    rules = [each for each in all_rules() if arguments.all or each.code == arguments.code.upper()]
    if not rules and not arguments.all:
        raise UsageError(f"no rule has the code {arguments.code!r} (sampler-lint rule --all)")
    if arguments.output_format == "json":
        import json

        pages = [_rule_data(each) for each in rules]
        print(json.dumps(pages if arguments.all else pages[0], indent=2))
    else:
        print("\n\n".join(map(_rule_page, rules)))
    return CLEAN


def _rule_data(rule: Rule) -> dict[str, str | bool]:
    from inspect import cleandoc

    from sampler_lint.reporters import rule_url

    explanation = cleandoc(type(rule).__doc__ or "")
    return {
        "code": rule.code,
        "name": rule.name,
        "summary": explanation.partition("\n")[0],
        "fixable": rule.fixable,
        "default": rule.default,
        "explanation": explanation,
        "url": rule_url(rule.code),
    }


def _rule_page(rule: Rule) -> str:
    data = _rule_data(rule)
    title = f"# {rule.name} ({rule.code})"
    state = f"Fixable: {rule.fixable}. {'On' if rule.default else 'Off'} by default."
    return f"{title}\n\n{state}\n\n{data['explanation']}\n\n{data['url']}"


# --- explain ------------------------------------------------------------------------------


def _explain(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="sampler-lint explain",
        description="Say what is known about a line, and why each rule spoke or kept silent.",
        allow_abbrev=False,
    )
    parser.add_argument("place", metavar="PATH:LINE")
    arguments = parser.parse_args(argv)
    path, _, row = arguments.place.rpartition(":")
    if not path or not row.isdecimal():
        parser.error(f"{arguments.place}: give a file and a line, as in train.py:31")
    from sampler_lint.explain import explain
    from sampler_lint.reporters.text import visible
    from sampler_lint.source import SourceError

    try:
        lines = explain(path, int(row))
    except SourceError as error:
        _complain(str(error.error))
        return FAILED
    print("\n".join(map(visible, lines)))
    return CLEAN


# --- verify -------------------------------------------------------------------------------


def _verify(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="sampler-lint verify",
        description="Run fixtures on gloo ranks: before its fix, a program must break the rule's "
        "invariant, after it must keep it. This runs the code it is given.",
        epilog="Exit codes: 0 all are proved, 1 one is not, 2 it could not be tried.",
        allow_abbrev=False,
    )
    parser.add_argument("paths", metavar="DIR", nargs="+", help="fixtures, or folders of them")
    parser.add_argument(
        "--jobs", metavar="N", type=_positive, default=1, help="programs that run at a time"
    )
    parser.add_argument(
        "--world-size", metavar="N", type=_positive, help="ranks, instead of what fixtures ask for"
    )
    _add_output_format(parser)
    arguments = parser.parse_args(argv)

    from sampler_lint.harness import verify
    from sampler_lint.harness.world import HarnessError
    from sampler_lint.reporters.text import visible

    try:
        proofs = verify.verify_fixtures(
            arguments.paths, jobs=arguments.jobs, world_size=arguments.world_size
        )
    except HarnessError as error:
        raise UsageError(str(error)) from error
    if arguments.output_format == "json":
        print(verify.to_json(proofs))
    else:
        print("\n".join(map(visible, verify.render_table(proofs).splitlines())))
    return CLEAN if all(proof.proved for proof in proofs) else FINDINGS


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return number


# --- common -------------------------------------------------------------------------------


def _wants_color(choice: str, stream: object) -> bool:
    """``--color``; where that is auto, https://no-color.org and whether a terminal listens."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    isatty: Callable[[], bool] = getattr(stream, "isatty", lambda: False)
    return isatty()


def _write_bytes(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _complain_of(errors: Sequence[FileError]) -> None:
    for error in errors:
        _complain(str(error))


def _complain(text: str) -> None:
    from sampler_lint.reporters.text import visible

    print(f"error: {visible(text)}", file=sys.stderr)


_COMMANDS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "check": _check,
    "explain": _explain,
    "rule": _rule,
    "verify": _verify,
}
