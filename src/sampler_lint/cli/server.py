"""``sampler-lint server``: the language server, on standard input and output."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sampler_lint.cli._common import CLEAN, FINDINGS, Parser, UsageError
from sampler_lint.cli._settings import add_configuring, prepared

if TYPE_CHECKING:
    import argparse

    from sampler_lint.config import Lookup


def main(argv: Sequence[str]) -> int:
    """Serve an editor until it hangs up and return the exit code.

    That is 0 only after the request ``shutdown``, as the protocol wants it.
    """
    arguments = make_parser().parse_args(argv)
    prepared(arguments)
    try:
        from sampler_lint.language_server.server import make_server
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in {"pygls", "lsprotocol"}:
            raise
        raise UsageError(
            f"the server needs {missing}: pip install 'sampler-lint[server]'"
        ) from error
    gc.enable()  # it checks after each edit, and needs the memory back
    server = make_server(lambda: _lookup(arguments))
    # pygls closes the stream that it writes to; standard output is still flushed at the end.
    with open(os.dup(sys.stdout.fileno()), "wb") as stdout:
        server.start_io(stdout=stdout)
    return CLEAN if server.shut_down else FINDINGS


def _lookup(arguments: argparse.Namespace) -> Lookup:
    """The configurations as they are now: one that breaks while the server runs is told of."""
    from sampler_lint.config import ConfigError

    try:
        return prepared(arguments)
    except UsageError as error:
        raise ConfigError(str(error)) from error


def make_parser() -> Parser:
    """What the command takes."""
    parser = Parser(
        prog="sampler-lint server",
        description="Run the language server: diagnostics, quick fixes and rule pages for editors, "
        "on standard input and output.",
        epilog="Needs pygls: pip install 'sampler-lint[server]'.",
    )
    add_configuring(parser)
    return parser
