"""``--fix``, ``--diff`` and ``--patch-dir``: one repository after the other."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sampler_lint.cli._adopting import note_gone
from sampler_lint.cli._common import (
    UsageError,
    complain_of,
    keyword,
    positive,
    wants_color,
    write_bytes,
)
from sampler_lint.cli._performing import progress
from sampler_lint.cli._telling import Printer

if TYPE_CHECKING:
    from sampler_lint.engine import FixReport, Narrow, OptionsOf, Report
    from sampler_lint.findings import FileError
    from sampler_lint.harness.prove import Proof, Prover
    from sampler_lint.reporters import Outcome


def add_fixing(parser: argparse.ArgumentParser) -> None:
    """Options about fixes."""
    group = parser.add_argument_group("fixing")
    switch = argparse.BooleanOptionalAction
    group.add_argument("--fix", action=switch, help="apply safe fixes")
    group.add_argument(
        "--diff",
        action="store_true",
        help="print what --fix would change as a patch; change no file",
    )
    group.add_argument(
        "--patch-dir",
        metavar="DIR",
        help="write what --fix would change to DIR, one patch per repository; change no file",
    )
    group.add_argument(
        "--verify",
        action="store_true",
        help="apply only fixes that are proved by iterating over the sampler class before and "
        "after the fix; this runs your code",
    )
    group.add_argument(
        "--verify-command",
        metavar="COMMAND",
        help="prove other fixes by running COMMAND, such as 'torchrun train.py', in copies of the "
        "project before and after the fix; implies --verify",
    )
    group.add_argument(
        "--verify-timeout",
        metavar="SECONDS",
        type=positive,
        default=600,
        help="time limit for each run of the --verify-command (default: 600)",
    )
    group.add_argument(
        "--verify-kw",
        metavar="NAME=VALUE",
        type=keyword,
        action="append",
        default=[],
        help="with --verify: value of a constructor parameter that cannot be guessed from its name",
    )
    group.add_argument("--unsafe-fixes", action=switch, help="also apply or show unsafe fixes")


def asked_to_fix(arguments: argparse.Namespace) -> bool:
    """Whether fixes are to be made or shown.

    Raises:
        UsageError: the options contradict each other.
    """
    if arguments.patch_dir is not None and (arguments.diff or "-" in arguments.paths):
        raise UsageError("--patch-dir goes neither with --diff nor with standard input")
    fixing = bool(arguments.fix or arguments.diff or arguments.patch_dir is not None)
    if arguments.verify_command is not None:
        arguments.verify = True
    if arguments.verify and (not fixing or "-" in arguments.paths):
        raise UsageError("--verify goes with --fix, --diff or --patch-dir, and not with -")
    return fixing


def fix_and_report(
    arguments: argparse.Namespace,
    options: OptionsOf,
    paths: Sequence[str],
    overlay: Mapping[str, bytes],
    narrow: Narrow | None,
) -> tuple[list[FileError], bool]:
    """Fix, and report it; returns what went wrong, and whether there is something to exit 1 for.

    Raises:
        UsageError: a patch or the report cannot be written.
    """
    from sampler_lint.reporters import FixReport
    from sampler_lint.reporters.text import closing
    from sampler_lint.source import Sources

    gc.enable()  # each round leaves a model behind
    told = not arguments.diff and not overlay
    in_place = told and arguments.patch_dir is None
    # The report owns standard output unless a patch or the fixed source does.
    printer = Printer(arguments, sys.stdout if told else sys.stderr)
    printer.make_sure()
    proofs: list[Proof] = []
    result = _fixed(arguments, options, paths, overlay, narrow, write=in_place, proofs=proofs)
    note_gone(arguments, result.report)
    errors = [*result.report.errors, *result.errors]
    after = {path: new for path, (_, new) in result.changed.items()}
    written = in_place or (bool(overlay) and not arguments.diff)
    outcome = printer.outcome(
        result.report,
        errors=errors,
        sources=Sources({**overlay, **after}),
        fix_report=FixReport(
            *(result.fixed, result.left, len(after)),
            written=written,
            proofs=[(one.finding, one.verdict, one.evidence) for one in proofs],
        ),
    )
    if arguments.diff:
        _tell_patch(arguments, result.changed)
        printer.say(closing(outcome))
    else:
        for path, source in overlay.items():
            write_bytes(after.get(path, source))
        printer.tell(outcome)
    if arguments.show_fixes:
        _list_fixes(arguments, outcome, printer)
    complain_of(errors, tracebacks=arguments.show_traceback)
    telling = not (in_place or overlay) or arguments.diff or arguments.exit_non_zero_on_fix
    return errors, result.report.fails or (telling and bool(after))


def _list_fixes(arguments: argparse.Namespace, outcome: Outcome, printer: Printer) -> None:
    """Say each fix that the report itself does not; a format for programs stays as it is."""
    from sampler_lint.reporters.text import fixes

    if arguments.quiet or arguments.output_format not in {"text", "concise", "grouped"}:
        assert outcome.fix_report is not None
        sys.stderr.write("".join(f"{line}\n" for line in fixes(outcome.fix_report)))


def _tell_patch(arguments: argparse.Namespace, changed: Mapping[str, tuple[bytes, bytes]]) -> None:
    """Print a patch: for a program that applies it byte by byte, for people as they may see it.

    Only ``--color always`` says that people will see what does not go to a terminal; CI sets
    ``FORCE_COLOR`` for all programs, and git applies no coloured patch.
    """
    from sampler_lint.reporters.diff import shown, unified_diff

    patches = [unified_diff(path, *change) for path, change in sorted(changed.items())]
    if arguments.color == "always" or sys.stdout.isatty():
        color = wants_color(arguments.color, sys.stdout)
        sys.stdout.write("".join(shown(patch, color=color) for patch in patches))
    else:
        write_bytes(b"".join(patches))


def _fixed(
    arguments: argparse.Namespace,
    options: OptionsOf,
    paths: Sequence[str],
    overlay: Mapping[str, bytes],
    narrow: Narrow | None,
    *,
    write: bool,
    proofs: list[Proof],
) -> FixReport:
    """What came of all repositories together."""
    from sampler_lint import engine

    total = engine.FixReport(engine.Report())
    repositories = _repositories(paths)
    names = _patch_names(repositories)
    patches = 0
    seen: set[str] = set()
    with progress(arguments, len(repositories)) as bar:

        def narrowed(report: Report, contents: Mapping[str, bytes]) -> None:
            if bar is not None:
                bar.close()  # there may be something to note
            if narrow is not None:
                narrow(report, contents)

        for repository, own in repositories.items():
            if bar is not None:
                bar.step(repository)
            prover = _prover(arguments, repository) if arguments.verify else None
            result = engine.fix(
                *(own, options),
                unsafe=arguments.unsafe_fixes,
                write=write,
                overlay=overlay,
                narrow=narrowed,
                decide=prover,
                watch=bar.watch if bar else None,
                related=arguments.related,
            )
            proofs += prover.proofs if prover else []
            for path in [path for path in result.changed if os.path.abspath(path) in seen]:
                del result.changed[path]
            if arguments.patch_dir is not None:
                path = os.path.join(arguments.patch_dir, names[repository])
                patches += _write_patch(path, repository, result.changed)
            _add(total, result, seen)
    if arguments.patch_dir is not None and not arguments.quiet:
        print(f"{patches} of {len(repositories)} repositories: patch in {arguments.patch_dir}",
              file=sys.stderr)  # fmt: skip
    return total


def _prover(arguments: argparse.Namespace, repository: str) -> Prover:
    """Who tries the fixes of one repository.

    Raises:
        UsageError: the command cannot be understood.
    """
    import shlex

    from sampler_lint.harness.prove import Prover

    try:
        command = shlex.split(arguments.verify_command or "")
    except ValueError as error:
        raise UsageError(f"--verify-command: {error}") from error

    def tell(text: str) -> None:
        if not arguments.quiet:
            print(text, file=sys.stderr, flush=True)

    return Prover(
        repository,
        command=command,
        timeout=arguments.verify_timeout,
        kw=dict(arguments.verify_kw),
        progress=tell,
    )


def _repositories(paths: Sequence[str]) -> dict[str, list[str]]:
    """The paths by the git work tree, or else the project, that they lie in."""
    from sampler_lint.roots import project_root

    found: dict[str, list[str]] = {}
    for path in paths:
        absolute = os.path.abspath(path)
        root = folder = absolute
        while not os.path.exists(os.path.join(folder, ".git")):
            if folder == (folder := os.path.dirname(folder)):
                root = os.path.abspath(project_root(path))
                folder = root if os.path.isdir(root) else os.path.dirname(root)
                break
        found.setdefault(folder, []).append(path)
    return found


def _patch_names(repositories: Iterable[str]) -> dict[str, str]:
    """A file name for each: its folder's, with as many folders above as tell them apart."""
    parts = {path: os.path.splitdrive(path)[1].strip(os.sep).split(os.sep) for path in repositories}
    depth = 1
    while True:
        names = {path: "+".join(steps[-depth:]) or "root" for path, steps in parts.items()}
        if len(set(names.values())) == len(names):
            return {path: f"{name}.patch" for path, name in names.items()}
        depth += 1


def _write_patch(path: str, repository: str, changed: Mapping[str, tuple[bytes, bytes]]) -> bool:
    """Write the patch of one repository; without changes, take away that of an earlier run."""
    from sampler_lint.reporters.diff import unified_diff

    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if changed:
            with open(path, "wb") as file:
                file.writelines(
                    unified_diff(name, *change, start=repository)
                    for name, change in sorted(changed.items())
                )
        elif os.path.exists(path):
            os.unlink(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    return bool(changed)


def _add(total: FixReport, result: FixReport, seen: set[str]) -> None:
    """Put what came of one repository to the others.

    ``seen`` are the files of those: a repository may lie in another.
    """
    new = {path for path in result.report.files if os.path.abspath(path) not in seen}
    old = {*result.report.files} - new
    seen.update(map(os.path.abspath, new))
    total.report.files += sorted(new)
    total.report.findings += (each for each in result.report.findings if each.path not in old)
    total.report.suppressed += (each for each in result.report.suppressed if each.path not in old)
    for why, findings in result.report.left_out.items():
        total.report.left_out.setdefault(why, []).extend(
            each for each in findings if each.path not in old
        )
    total.report.errors += (each for each in result.report.errors if each.path not in old)
    for path, gone in result.report.gone.items():
        total.report.gone[path] = total.report.gone.get(path, 0) + gone
    total.fixed += (each for each in result.fixed if each.path not in old)
    total.left += (each for each in result.left if each[0].path not in old)
    total.errors += (each for each in result.errors if each.path not in old)
    total.changed.update(result.changed)
