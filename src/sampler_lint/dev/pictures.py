"""The proof of a rule as a picture: what its program reads before the fix, and after it.

One SVG beside each rule's page, drawn from the record of real runs. Every cell is a sample,
coloured by its number, and gaps part the steps; shares are drawn where shares are judged. What
was seen stands in the picture's ``<desc>``, from where the page takes it.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from sampler_lint.harness import invariants, plot, verify
from sampler_lint.harness.runs import Pass, Run, Stream
from sampler_lint.harness.verify import Fixture
from sampler_lint.harness.world import World
from sampler_lint.harness.zygote import Zygote

#: Of the whole picture, of the labels left of the cells and of the notes right of them.
WIDTH, LABEL, NOTE = 760, 150, 125

_ROW, _BAR, _TEXT = 15, 12, 20

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


@dataclass(frozen=True, slots=True)
class Row:
    """A strip of cells, as long as what it shows."""

    label: str
    cells: tuple[plot.Color, ...]
    steps: tuple[int, ...] = ()
    """After how many cells a step ends."""
    note: str = ""


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
        zygote = stack.enter_context(Zygote())
        worlds = [stack.enter_context(World(zygote=zygote)) for _ in range(jobs)]

        def share(number: int) -> list[tuple[str, str]]:
            return [
                (path_of(one.code), draw(one, verify.run_fixture(one, worlds[number])))
                for one in fixtures[number::jobs]
            ]

        return dict(sorted(pair for pairs in pool.map(share, range(jobs)) for pair in pairs))


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
        parts.append(_text(0, top, f"{name}: {fixture.invariant.name} {word}", bold=True))
        top += _TEXT // 2
        for rows in _panels(fixture.invariant.name, runs):
            parts += _strips(rows, top)
            top += _ROW * len(rows) + _TEXT // 2
        if not _whole(runs):
            for line in textwrap.wrap(said, _COLUMNS):
                parts.append(_text(0, top + _BAR, line))
                top += _ROW
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


def _panels(judged: str, runs: Sequence[Run]) -> Iterator[list[Row]]:
    """The rows of each panel."""
    if judged == "runs" and not _whole(runs):
        return
    if judged == _BY_RUN:
        yield [row for run in runs for row in _orders(run, judged)]
        return
    for run in runs:
        yield list(_orders(run, judged))
        if judged in _BY_SHARE:
            yield [row for job in _jobs(run, judged) for row in _shares(job)]


def _jobs(run: Run, judged: str) -> list[list[Stream]]:
    if judged in ("reshuffles", _BY_RUN):
        return invariants.shuffling_jobs(run)
    return run.streams()


def _orders(run: Run, judged: str) -> Iterator[Row]:
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
                yield Row(
                    label,
                    tuple(_color(index, highest) for index in one.indices),
                    tuple(_sums(map(len, one.batches))),
                    _steps(one, judged),
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


def _sums(sizes: Iterable[int]) -> Iterator[int]:
    total = 0
    for size in sizes:
        total += size
        yield total


def _color(index: object, highest: int) -> plot.Color:
    number = index if isinstance(index, int) else 0
    return plot.hue(round(number / highest * _HUES) / _HUES)


def _shares(job: Sequence[Stream]) -> Iterator[Row]:
    """A row for every epoch: the samples by number, coloured by the rank that read them."""
    for number, epoch in invariants.observed(job).epochs():
        reads = [set(one.indices) for one in epoch]
        cells = [
            plot.owner(tuple(rank for rank, read in enumerate(reads) if sample in read))
            for sample in range(job[0].loader.dataset_length or 0)
        ]
        yield Row(f"{_SHARES} {number}", tuple(cells))


# -- SVG


def _strips(rows: Sequence[Row], top: int) -> Iterator[str]:
    """The rows of a panel to one scale; cells of a colour are one path, to keep the file small."""
    longest = max((len(row.cells) for row in rows), default=0) or 1
    scale = (WIDTH - LABEL - NOTE) / longest
    for number, row in enumerate(rows):
        base = top + number * _ROW + _BAR - 2
        yield _text(0, base, row.label)
        if row.note:
            yield _text(round(LABEL + scale * len(row.cells)) + 8, base, row.note)
    yield (
        f'<g transform="translate({LABEL} {top + _BAR // 2}) scale({scale:.6g} {_ROW})" '
        f'fill="none" stroke-width="{_BAR / _ROW:g}" shape-rendering="crispEdges">\n'
    )
    paths: dict[plot.Color, list[str]] = {}
    gaps: list[str] = []
    for number, row in enumerate(rows):
        begin = 0
        for end in range(1, len(row.cells) + 1):
            if end == len(row.cells) or row.cells[end] != row.cells[begin]:
                cells = paths.setdefault(row.cells[begin], [])
                cells.append(f"M{begin} {number}h{end - begin}")
                begin = end
        gaps += [f"M{at} {number - 0.5:g}v1" for at in row.steps[:-1]]
    for (red, green, blue), cells in sorted(paths.items()):
        yield f'<path stroke="#{red:02x}{green:02x}{blue:02x}" d="{"".join(cells)}"/>\n'
    if gaps:
        yield f'<path stroke="#fff" stroke-width="{1.5 / scale:.3g}" d="{"".join(gaps)}"/>\n'
    yield "</g>\n"


def _text(left: int, base: int, text: str, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{left}" y="{base}"{weight}>{html.escape(text, quote=False)}</text>\n'
