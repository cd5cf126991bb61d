"""What the bytes of a file tell before it is parsed, by two processes where there are many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sampler_lint.limits import MANY_FILES
from sampler_lint.parallel import Aside
from sampler_lint.source import is_candidate, names_a_rule, sets_up
from sampler_lint.workspace.import_scan import without_prose


class Look(NamedTuple):
    """What a file's bytes tell."""

    size: int
    digest: str | None = None
    is_candidate: bool = False
    """Whether it says a sampler word; if so, the next two are not asked for."""
    is_seeding: bool = False
    """Whether it seeds, splits, draws or starts a training."""
    speaks_to_us: bool = False
    """Whether a comment in it may name the linter or one of its rules."""
    is_readable: bool = True


def kinds(data: bytes, *, is_candidate: bool) -> tuple[bool, bool]:
    """Whether a file that is not parsed sets a training up, and whether it speaks to us."""
    seeds = sets_up(data) and sets_up(without_prose(data))
    return seeds, names_a_rule(data, is_candidate=is_candidate)


def first_looks(
    paths: Sequence[str],
    read: Callable[[str], bytes | None],
    digest: Callable[[bytes], str] | None,
    jobs: int,
) -> Iterator[tuple[str, Look, bytes]]:
    """Each path with what it tells, and a candidate's content.

    ``read`` gives None for a file that cannot be read, of which it keeps the reason itself.
    """

    def look(path: str) -> tuple[Look, bytes]:
        data = read(path)
        if data is None:
            return Look(0, is_readable=False), b""
        told = digest(data) if digest is not None else None
        if is_candidate(data):
            return Look(len(data), told, True), data
        return Look(len(data), told, False, *kinds(data, is_candidate=False)), b""

    shared = jobs > 1 and len(paths) >= MANY_FILES
    # Every other file: the big ones lie together.
    own, others = (paths[::2], paths[1::2]) if shared else (paths, [])
    with Aside(lambda: [look(path)[0] for path in others], forks=shared) as aside:
        for path in own:
            yield path, *look(path)
        for path, told in zip(others, aside.result(), strict=True):
            one = Look(*told)
            # Content, and the reason of a failure, are in the other process.
            yield path, *(look(path) if one.is_candidate or not one.is_readable else (one, b""))
