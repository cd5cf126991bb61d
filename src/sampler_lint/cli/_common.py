"""What the commands share: exit codes, options, and how to speak to a terminal."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from sampler_lint.findings import FileError

CLEAN, FINDINGS, FAILED, INTERRUPTED, PIPE_CLOSED, TERMINATED = 0, 1, 2, 130, 141, 143


class UsageError(Exception):
    """What was asked for cannot be done; the text says why."""


class Parser(argparse.ArgumentParser):
    """A parser whose usage errors name the option that was meant."""

    def __init__(
        self,
        formatter_class: type[argparse.HelpFormatter] = argparse.HelpFormatter,
        **settings: Any,
    ) -> None:
        """Options are given whole: a new one must not change what an abbreviation means."""
        # Adding an argument makes a formatter, which asks for the terminal unless it is told.
        untold = functools.partial(formatter_class, width=80)
        super().__init__(**settings, formatter_class=untold, allow_abbrev=False)
        self._formatter_class = formatter_class

    def format_usage(self) -> str:
        """The usage, as wide as the terminal."""
        self.formatter_class = self._formatter_class
        return super().format_usage()

    def format_help(self) -> str:
        """The help, as wide as the terminal."""
        self.formatter_class = self._formatter_class
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Exit with ``message`` and, of an unknown option, the nearest one that there is."""
        from sampler_lint.config import instead_of, nearest

        given = (word.partition("=")[0] for word in message.split() if word.startswith("-"))
        wrong = next(given, "") if not message.startswith("argument ") else ""
        known = [each for action in self._actions for each in action.option_strings]
        hint = "" if wrong in known else instead_of(wrong) or nearest(wrong, known)
        super().error(f"{message} ({hint})" if hint else message)


def add_output_format(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--output-format",
        choices=("text", "json"),
        default="text",
        help="format of the output (default: text)",
    )


def add_color(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="when to use color (default: auto)",
    )


def output_format(text: str) -> str:
    """A format that findings can be reported in."""
    from sampler_lint.reporters import FORMATS

    if text not in FORMATS:
        choices = ", ".join(FORMATS)
        raise argparse.ArgumentTypeError(f"{text!r} is not a format (choose from {choices})")
    return text


def comma_list(text: str) -> list[str]:
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise argparse.ArgumentTypeError(f"an empty item in {text!r}")
    return items


def reason(error: Exception) -> str:
    """What went wrong, of an error of the system with the file's name first."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return number


def keyword(text: str) -> tuple[str, Any]:
    """``NAME=VALUE``; the value is a Python literal, or else text."""
    import ast

    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def wants_color(choice: str, stream: object) -> bool:
    """``--color``; where that is auto, https://no-color.org, https://force-color.org and whether
    a terminal listens.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    if os.environ.get("TERM") == "dumb":
        return False
    isatty: Callable[[], bool] = getattr(stream, "isatty", lambda: False)
    return isatty()


def columns_of(stream: object) -> int | None:
    """The columns of the terminal behind ``stream``; None if there is none."""
    if not getattr(stream, "isatty", bool)():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def write_bytes(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def complain_of(errors: Sequence[FileError], *, tracebacks: bool = False) -> None:
    """Print errors, each on a line; with ``tracebacks``, where this linter itself failed, too."""
    for error in errors:
        complain(str(error))
        if tracebacks and error.traceback:
            print(error.traceback, end="", file=sys.stderr)


def complain(text: str) -> None:
    from sampler_lint.reporters.text import visible

    print(f"error: {visible(text)}", file=sys.stderr)
