"""The ``sampler-lint`` command: a module per subcommand, imported when it is asked for.

Only what every call needs is imported here: ``--version`` and usage errors cost little more
than starting Python. Exit codes: 0 nothing to report, 1 findings left (or changes made or
due, where asked to say so), 2 the job could not be done whole, 130 interrupted, 143 ended.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TextIO

from sampler_lint.cli._common import (
    FAILED,
    INTERRUPTED,
    PIPE_CLOSED,
    TERMINATED,
    UsageError,
    complain,
)

#: Each is a module of this package with ``main(argv) -> int`` and ``make_parser()``; the first
#: needs no name.
COMMANDS = (
    *("check", "completion", "contract", "explain", "report", "rule", "server", "trace"),
    "verify",
)


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
    named = bool(arguments) and arguments[0] in COMMANDS
    command = arguments.pop(0) if named else COMMANDS[0]
    try:
        try:
            code: int = import_module(f"{__name__}.{command}").main(arguments)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
    except UsageError as error:
        complain(str(error))
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if error.filename is not None:
            raise
        if isinstance(error, FileNotFoundError):
            complain("the working directory is not there any more")
            return FAILED
        # Of those that no file is to blame for, what remains is that nobody takes our output.
        _drop_unwritten(sys.stdout)
        if isinstance(error, BrokenPipeError):  # the reader (``| head``) has seen enough
            return PIPE_CLOSED
        with contextlib.suppress(OSError):
            complain(f"the output cannot be written: {error.strerror}")
        _drop_unwritten(sys.stderr)
        return FAILED
    return code


def _drop_unwritten(stream: TextIO) -> None:
    """Send what a stream does not take nowhere, or the interpreter complains when it ends."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def run() -> int:
    """The ``sampler-lint`` command: :func:`main` in a process that ends with it.

    One check makes many small objects and no garbage, and then the process is over: looking
    for garbage among them, at the end too, took a quarter of the time. A command that checks
    again and again switches the collector back on.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started us: an exit code is all they want
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    gc.disable()
    _end_when_asked()
    try:
        status = main()
    except _TerminatedError:
        status = TERMINATED
    except KeyboardInterrupt:
        status = INTERRUPTED
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
    gc.freeze()
    return status


class _TerminatedError(BaseException):
    """Somebody asked this process to end."""


#: How many seconds pass before the end that was asked for is asked for again.
_AGAIN = 0.2


def _end_when_asked() -> None:
    """Unwind at SIGTERM and SIGINT: what runs is ended, and what is half written is deleted.

    An exception that is raised while Python is in a finalizer or a callback of a weak reference
    is printed or dropped there, and the run would go on; so it is raised until it is heard.
    """

    def end(number: int, _: object) -> None:
        error = KeyboardInterrupt if number == signal.SIGINT else _TerminatedError
        if number == signal.SIGTERM:
            signal.signal(number, signal.SIG_IGN)

        def again(*_: object) -> None:
            heard = sys.exc_info()[1]
            while heard is not None:  # it is on its way, and what cleans up is left alone
                if isinstance(heard, error):
                    return
                heard = heard.__context__
            raise error

        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, again)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN, _AGAIN)
        raise error

    if hasattr(signal, "SIGTERM"):
        signal.signal(signal.SIGTERM, end)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)
