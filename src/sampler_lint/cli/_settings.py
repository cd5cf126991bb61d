"""What the command line and the configuration say together, file by file."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from sampler_lint.cli._common import UsageError, comma_list

if TYPE_CHECKING:
    from sampler_lint.config import Config, Key, Lookup
    from sampler_lint.options import Options


def add_choosing(parser: argparse.ArgumentParser) -> None:
    """Options that choose files and rules."""
    group = parser.add_argument_group("choosing")
    for option, metavar, text in (
        ("--select", "CODES", "rules to check, by code prefix or name (ALL for every rule); "
         "overrides the configuration"),
        ("--extend-select", "CODES", "more rules to check"),
        ("--ignore", "CODES", "rules to skip"),
        ("--fixable", "CODES", "rules whose fixes may be applied; overrides the configuration"),
        ("--unfixable", "CODES", "rules whose fixes are shown but not applied"),
        ("--exclude", "PATTERNS", "files to skip, as gitignore patterns; overrides the "
         "configuration"),
        ("--extend-exclude", "PATTERNS", "more files to skip"),
    ):  # fmt: skip
        group.add_argument(
            *((option, "--extend-ignore") if option == "--ignore" else (option,)),
            metavar=metavar,
            action="extend",
            type=comma_list,
            help=f"{text}; comma-separated",
        )
    for option, text in (
        ("--per-file-ignores", "rules to skip in files that match a gitignore pattern; overrides "
         "the configuration"),
        ("--extend-per-file-ignores", "the same, in addition to the configuration"),
    ):  # fmt: skip
        group.add_argument(
            option,
            metavar="PATTERN:CODE",
            action="extend",
            type=_pattern_and_code,
            help=f"{text}; comma-separated",
        )
    group.add_argument(
        "--likely", action=argparse.BooleanOptionalAction, help="also report likely findings"
    )
    group.add_argument(
        "--min-severity",
        metavar="SEVERITY",
        choices=("warning", "error"),
        help="the lowest severity to report: warning (default) or error",
    )
    group.add_argument(
        "--force-exclude",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="skip excluded files even if they are named on the command line",
    )
    group.add_argument(
        "--related",
        action="store_true",
        help="also report findings in other files of the project that a named file is part of",
    )
    group.add_argument(
        "--stdin-filename", metavar="NAME", help="the file name to use for standard input (-)"
    )


def _pattern_and_code(text: str) -> list[tuple[str, str]]:
    """``tests/:SMP1,train.py:SMP201`` in pairs."""
    pairs = [item.rpartition(":") for item in comma_list(text)]
    if not all(pattern and code for pattern, _, code in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not PATTERN:CODE")
    return [(pattern.strip(), code.strip()) for pattern, _, code in pairs]


def add_configuring(parser: argparse.ArgumentParser) -> None:
    """Options about configuration files."""
    group = parser.add_argument_group("configuration")
    group.add_argument(
        "--config",
        metavar="FILE|KEY=VALUE",
        action="append",
        default=[],
        help="use this configuration file instead of others, or set one key (TOML); repeatable",
    )
    group.add_argument("--isolated", action="store_true", help="ignore all configuration files")


def prepared(arguments: argparse.Namespace) -> Lookup:
    """Finds configurations as ``--config`` and ``--isolated`` say.

    Raises:
        UsageError: they cannot be used.
    """
    from sampler_lint.config import ConfigError, Lookup, parse_override

    files: list[str] = []
    overrides: dict[Key, Any] = {}
    try:
        told = arguments.config
        for item in sorted(told, key=lambda item: not item.startswith("plugins")):
            if "=" in item and not os.path.isfile(item):
                key, value = parse_override(item)
                overrides[key] = value
            else:
                files.append(item)
        if len(files) > 1:
            raise UsageError("--config takes one file")
        if files and arguments.isolated:
            raise UsageError("--config FILE and --isolated exclude each other")
        return Lookup(
            file=files[0] if files else None,
            isolated=arguments.isolated,
            overrides=overrides,
        )
    except ConfigError as error:
        prefix = "" if files else "--config: "
        raise UsageError(f"{prefix}{error}") from error


class Settings:
    """The command line over the configuration of each file.

    ``--select`` replaces the configured choice of rules, its ``ignore`` included: naming a
    rule is asking for it. ``--exclude`` and ``--per-file-ignores`` replace what is configured,
    ``--ignore`` and ``--extend-...`` add to it; ``--config KEY=VALUE`` replaces one key in every
    configuration.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Read ``arguments``.

        Raises:
            UsageError: they cannot be used, or the configuration they name cannot.
        """
        from sampler_lint.config import RefusedError

        self._choices = {**vars(arguments)}
        self._by_config: dict[int, Options] = {}
        self._lookup = prepared(arguments)
        try:
            self._take_codes()
        except RefusedError:
            # Those of packages that a configuration names are known when it is read.
            for path in self._choices.get("paths") or [os.curdir]:
                self.config(path if os.path.isdir(path) else os.path.dirname(path))
            try:
                self._take_codes()
            except RefusedError as error:
                raise UsageError(str(error)) from error

    def _take_codes(self) -> None:
        """Read the codes among the arguments; raises RefusedError."""
        from sampler_lint.config import known_codes

        for option in ("select", "extend_select", "ignore", "fixable", "unfixable"):
            self._choices[option] = known_codes(self._choices.get(option) or ())
        for option in ("per_file_ignores", "extend_per_file_ignores"):
            self._choices[option] = tuple(
                (pattern, known_codes([code])) for pattern, code in self._choices.get(option) or ()
            )

    def config(self, folder: str) -> Config:
        """The configuration of the files in ``folder``.

        Raises:
            UsageError: it cannot be used.
        """
        from sampler_lint.config import ConfigError

        try:
            return self._lookup.at(folder)
        except ConfigError as error:
            raise UsageError(str(error)) from error

    def options(self, folder: str) -> Options:
        """What holds for the files in ``folder``.

        Raises:
            UsageError: the configuration cannot be used.
        """
        config = self.config(folder)
        options = self._by_config.get(id(config))
        if options is None:
            options = self._by_config[id(config)] = self._over(config.options)
        return options

    def _over(self, options: Options) -> Options:
        from dataclasses import replace

        from sampler_lint.findings import Severity
        from sampler_lint.options import DEFAULTS

        chosen = self._choices
        if chosen["select"]:
            options = replace(
                options, select=chosen["select"], ignore=(), extend_ignore=(), extend_select=()
            )
        if chosen["fixable"]:
            options = replace(options, fixable=chosen["fixable"], unfixable=())
        patterns: dict[str, Any] = {
            name: tuple(chosen.get(name) or ())
            for name in ("exclude", "extend_exclude", "per_file_ignores", "extend_per_file_ignores")
        }
        if any(patterns.values()):  # they are relative to the working directory
            here = replace(DEFAULTS, **patterns)
            kept = options.beside(here)
            options = replace(
                options,
                exclude=kept.exclude,
                per_file_ignores=kept.per_file_ignores,
                others=replace(here, others=kept.others),
            )
        if chosen.get("baseline") is not None:
            options = replace(options, baseline=os.path.abspath(chosen["baseline"]))
        if options.baseline is not None and chosen.get("write_baseline") is None:
            from sampler_lint.baseline import Baseline, BaselineError

            try:
                Baseline.read(os.path.join(options.folder, options.baseline))
            except BaselineError as error:
                named = chosen.get("baseline") is not None or options.origin is None
                where = "" if named else f"{options.origin}: baseline: "
                raise UsageError(f"{where}{error.path}: {error}") from error
        return replace(
            options,
            unfixable=(*options.unfixable, *chosen["unfixable"]),
            ignore=(*options.ignore, *chosen["ignore"]),
            extend_select=(*options.extend_select, *chosen["extend_select"]),
            likely=options.likely if chosen.get("likely") is None else chosen["likely"],
            min_severity=Severity(self._choices.get("min_severity") or options.min_severity),
            respect_noqa=not chosen.get("ignore_noqa"),
        )

    def fill_in(self, arguments: argparse.Namespace) -> None:
        """Give ``arguments`` what they leave open, from the working directory's configuration.

        Raises:
            UsageError: records cannot be kept where they are to be.
        """
        config = self.config(os.getcwd())
        told = arguments.cache_dir is not None or self._lookup.is_told("cache_dir")
        arguments.cache_dir = arguments.cache_dir or config.cache_dir
        if arguments.cache_dir is not None:
            try:
                _refuse_folder(arguments.cache_dir, trusted=told)
            except UsageError as error:
                key = "cache-dir" if told else f"{config.path}: cache-dir"
                raise UsageError(f"{key} {_short(arguments.cache_dir)} {error}") from error
        if arguments.unsafe_fixes is None:
            arguments.unsafe_fixes = config.unsafe_fixes
        arguments.output_format = arguments.output_format or config.output_format or "text"


def _refuse_folder(folder: str, *, trusted: bool) -> None:
    """Accept a folder to keep records in.

    One that the tree itself names, and not the user, has to lie in it and be there for nothing
    else: whoever wrote the tree may not have us write or delete anything besides.

    Raises:
        UsageError: it cannot be used; the text says why.
    """
    from sampler_lint.cache import Cache
    from sampler_lint.roots import is_inside

    if not trusted:
        real = os.path.realpath(folder)
        if not is_inside(folder, os.getcwd()) or ".git" in real.split(os.sep):
            raise UsageError("leads out of the repository (use --cache-dir)")
    try:
        ours = Cache(os.path.abspath(folder)).is_ours()
    except PermissionError:
        ours = trusted  # nothing can be kept, which costs nothing but time
    except OSError as error:
        raise UsageError(f"cannot be used: {error.strerror}") from error
    if not (ours or trusted):
        raise UsageError("holds other things than records (use --cache-dir)")


def _short(text: str) -> str:
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")


_MOST_SHOWN = 200
"""Characters of a path in a message."""
