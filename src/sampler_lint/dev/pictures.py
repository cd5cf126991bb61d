"""The proof of a rule as a picture: what its program reads before the fix, and after it.

One SVG beside each rule's page, drawn from the record of real runs. Every cell is a sample,
coloured by its number, and gaps part the steps; shares are drawn where shares are judged. What
was seen stands in the picture's ``<desc>``, from where the page takes it.
"""

from __future__ import annotations

import html
import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from sampler_lint.harness import invariants, plot, verify
from sampler_lint.harness.runs import Pass, Run, Stream
from sampler_lint.harness.verify import Fixture
from sampler_lint.harness.world import World

#: Of the whole picture, of the labels left of the cells and of the notes right of them.
WIDTH, LABEL, NOTE = 760, 150, 125

_TEXT = 20

#: Characters that fit into a line of text.
_COLUMNS = 110

#: Colours that samples are told apart by.
_HUES = 24

_TOLD = re.compile(r"<title>(?P<title>.*?)</title>\n<desc>(?P<desc>.*?)</desc>", re.DOTALL)

_SHARES = "shares, epoch"

#: Programs whose rows belong side by side: their runs differ by an argument.
_BY_RUN = "seed-matters"
_BY_SHARE = ("partitions", "coverage")
_BY_LENGTH = "length-is-true"


def path_of(code: str) -> str:
    """Where the picture of a rule's proof is, in the repository."""
    return f"docs/rules/{code.lower()}.svg"


def draw_all(fixtures: Sequence[Fixture], jobs: int = 2) -> dict[str, str]:
    """The picture of each fixture's proof by its path; runs the fixtures, ``jobs`` at a time.

    Raises:
        HarnessError: torch is not there, or a program could not be run.
    """
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        world = stack.enter_context(World())

        def drawn(one: Fixture) -> tuple[str, str]:
            return path_of(one.code), draw(one, verify.run_fixture(one, world))

        return dict(sorted(pool.map(drawn, fixtures)))


def title(picture: str) -> str:
    """What a picture shows, for those who cannot see it."""
    return _told_in(picture)["title"]


def description(picture: str) -> str:
    """What was seen in the runs that a picture shows, a line for each program."""
    return html.unescape(_told_in(picture)["desc"])


def legend(picture: str) -> str:
    """How to read a picture."""
    shares = (
        " In the rows of shares the samples stand by number, coloured by the rank that read them: "
        "red was read by both ranks, white by none."
    )
    return (
        "Each cell is a sample, in the order it was read and coloured by its number; gaps part the "
        f"steps.{shares if _SHARES in picture else ''}"
    )


def _told_in(picture: str) -> re.Match[str]:
    told = _TOLD.search(picture)
    assert told is not None
    return told


def draw(fixture: Fixture, programs: Sequence[Sequence[Run]]) -> str:
    """The SVG of a proof.

    Args:
        fixture: whose proof it is.
        programs: the runs of its programs, as :func:`verify.run_fixture` returns them.
    """
    names = (
        ("before the fix", "after it") if fixture.has_fix else ("with the bug", "in the right twin")
    )
    parts: list[str] = []
    seen: list[str] = []
    top = 0
    for name, runs in zip(names, programs, strict=False):
        verdict = fixture.invariant.judge(runs)
        word = "holds" if verdict.holds else "broken"
        said = _lasting(verdict.evidence, all(run.finished for run in runs))
        seen.append(f"{name}: {word} - {said}")
        top += _TEXT
        parts.append(plot.svg_text(0, top, f"{name}: {fixture.invariant.name} {word}", bold=True))
        top += _TEXT // 2
        for rows in _panels(fixture.invariant.name, runs):
            parts += plot.strips(rows, top, LABEL, WIDTH - LABEL - NOTE)
            top += plot.ROW * len(rows) + _TEXT // 2
        if not _whole(runs):
            for line in textwrap.wrap(said, _COLUMNS):
                parts.append(plot.svg_text(0, top + plot.BAR, line))
                top += plot.ROW
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" '
            f'width="{WIDTH}" height="{top}" font-family="monospace" font-size="11">\n',
            f"<title>What each rank reads, {names[0]} and {names[1]}</title>\n",
            f"<desc>{html.escape(chr(10).join(seen), quote=False)}</desc>\n",
            f'<rect width="{WIDTH}" height="{top}" fill="#fff"/>\n',
            *parts,
            "</svg>\n",
        ]
    )


def _lasting(evidence: str, finished: bool) -> str:
    """The evidence without what depends on which rank the system let run first, or on Python."""
    if finished:
        return evidence
    first = evidence.partition("; ")[0]
    # Python 3.13 says what may have been meant.
    first = re.sub(r"\. Did you mean '\w+'\?$", "", first)
    return re.sub(r"^(rank \d+|every rank) died", "the program died", first)


# -- what is drawn


def _whole(runs: Iterable[Run]) -> bool:
    """Whether no rank was cut short, so that what all read is no matter of timing."""
    return all(
        rank.outcome == "finished" or rank.reason.startswith("exit status")
        for run in runs
        for rank in run.ranks
    )


def _panels(judged: str, runs: Sequence[Run]) -> Iterator[list[plot.Row]]:
    """The rows of each panel."""
    if judged == "runs" and not _whole(runs):
        return
    if judged == _BY_RUN:
        yield [row for run in runs for row in _orders(run, judged)]
        return
    for run in runs:
        yield list(_orders(run, judged))
        if judged in _BY_SHARE:
            yield [
                row
                for job in _jobs(run, judged)
                for row in plot.share_rows(job, _SHARES, job[0].loader.dataset_length or 0)
            ]


def _jobs(run: Run, judged: str) -> list[list[Stream]]:
    if judged in ("reshuffles", _BY_RUN):
        return invariants.shuffling_jobs(run)
    return run.streams()


def _orders(run: Run, judged: str) -> Iterator[plot.Row]:
    """A row for every rank and epoch: its samples in order."""
    jobs = _jobs(run, judged)
    for job in jobs:
        highest = max((job[0].loader.dataset_length or 1) - 1, 1)
        place = f"{run.place(job[0].loader)} " if len(jobs) > 1 else ""
        for rank, stream in enumerate(job):
            for number, one in _passes(stream, judged, whole=_whole([run])):
                label = f"{place}rank {rank} epoch {number}"
                if judged == _BY_RUN:
                    label = f"{' '.join(run.args)} rank {rank}"
                yield plot.Row(
                    label,
                    tuple(_color(index, highest) for index in one.indices),
                    _steps(one, judged),
                    steps=tuple(itertools.accumulate(map(len, one.batches))),
                )


def _passes(stream: Stream, judged: str, whole: bool) -> list[tuple[int, Pass]]:
    if judged == _BY_LENGTH:
        return list(enumerate(stream.passes))
    epochs = invariants.epochs_of(stream)
    # Of a run that was cut short the first epoch counts; of several runs it says enough.
    return epochs if whole and judged != _BY_RUN else epochs[:1]


def _steps(one: Pass, judged: str) -> str:
    steps = f"{one.drawn} step{'s' * (one.drawn != 1)}"
    return f"len() {one.length}, {steps}" if judged == _BY_LENGTH else steps


def _color(index: object, highest: int) -> plot.Color:
    number = index if isinstance(index, int) else 0
    return plot.hue(round(number / highest * _HUES) / _HUES)
