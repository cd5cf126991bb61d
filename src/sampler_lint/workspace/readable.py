"""Whether files can be read and parsed, where nobody needs what is in them."""

from __future__ import annotations

from collections.abc import Callable

from sampler_lint.findings import FileError
from sampler_lint.source import SourceError, SourceFile
from sampler_lint.syntax.parse import FactsError, check_syntax, parse_ahead


def can_be_read(path: str, data: bytes) -> bool:
    """Whether a file that will be read next can be."""
    return syntax_error(path, lambda: data, parse_ahead) is None


def syntax_error(
    display: str,
    read: Callable[[], bytes],
    check: Callable[[str], None] = check_syntax,
) -> FileError | None:
    """What keeps a file from being parsed, which is thrown away again."""
    try:
        source = SourceFile(display, read())
        check(source.text)
    except SourceError as error:
        return error.error
    except FactsError as error:
        return source.error(error.reason, error.row)
    return None
