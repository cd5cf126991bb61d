"""Pictures of a recorded run: what every rank read, epoch by epoch.

For each loader two panels. *Order*: a row for every rank and epoch, from the first sample read
to the last, each coloured by its number; rows that look alike are one order, and one that ends
before the others took fewer steps. *Shares*: the
samples of an epoch from first to last number, and which rank read each; red is read by several,
white by none. The HTML page stands alone; PNG needs Pillow.
"""

from __future__ import annotations

import html
import importlib
import importlib.util
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sampler_lint.harness.invariants import epochs_of, observed
from sampler_lint.harness.runs import Run, Stream
from sampler_lint.harness.zygote import HarnessError

#: Cells of a row, and rows of a panel, that are drawn at most.
WIDTH = 800
ROWS = 64

#: Loaders that are drawn at most.
LOADERS = 8

Color = tuple[int, int, int]

_WHITE: Color = (255, 255, 255)
_BLACK: Color = (0, 0, 0)
_SHARED: Color = (214, 39, 40)
_RANKS: tuple[Color, ...] = ((31, 119, 180), (44, 160, 44), (148, 103, 189), (255, 127, 14))


@dataclass(frozen=True, slots=True)
class Row:
    """A strip of the picture."""

    label: str
    cells: tuple[Color, ...]
    length: float = 1.0
    """How much of the panel's width the cells take."""
    note: str = ""
    """What stands behind them."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Strips that belong together, under a title."""

    title: str
    note: str
    rows: tuple[Row, ...]
    left_out: int = 0
    """Rows that there was no room for."""


def check(path: str) -> None:
    """Whether a picture of this kind can be drawn here.

    Raises:
        HarnessError: PNG is asked for and Pillow is not installed.
    """
    if path.lower().endswith(".png") and importlib.util.find_spec("PIL") is None:
        raise HarnessError(
            "a PNG is drawn by Pillow, which is not installed: pip install 'sampler-lint[plot]', "
            "or give --plot a name that ends in .html"
        )


def save(run: Run, messages: Sequence[str], path: str) -> None:
    """Draw the run into the file ``path``, as its suffix says; ``messages`` go above it."""
    panels = list(draw(run))
    if path.lower().endswith(".png"):
        _save_png(panels, messages, path)
    else:
        Path(path).write_text(to_html(panels, messages, run), "utf-8")


def draw(run: Run) -> Iterator[Panel]:
    """The panels of every loader whose indices are known."""
    jobs = [job for job in run.streams() if any(one.batches for one in job[0].passes)]
    for job in jobs[:LOADERS]:
        yield _order(run, job)
        yield _shares(run, job)


def _order(run: Run, job: Sequence[Stream]) -> Panel:
    highest = max((_highest(stream) for stream in job), default=1)
    epochs = [
        (rank, number, one) for rank, stream in enumerate(job) for number, one in epochs_of(stream)
    ]
    steps = {len(one.batches) for _, _, one in epochs}
    longest = max(steps, default=0) or 1
    rows = []
    for rank, number, one in epochs:
        length = len(one.batches) / longest
        indices = _spread(_numbers(one.indices), max(1, round(WIDTH * length)))
        cells = tuple(hue(index / highest) for index in indices)
        note = f"{len(one.batches)} steps" if len(steps) > 1 else ""
        rows.append(Row(f"rank {rank} epoch {number}", cells, length, note))
    loader = job[0].loader
    chain = " over ".join(sampler["cls"] for sampler in loader.samplers)
    title = f"{run.place(loader)}: {loader.cls} of {loader.dataset_cls}, indices from {chain}"
    note = (
        "Order: each row is one epoch on one rank, from its first step to its last; the colour "
        "is the sample's number. Rows of one rank that look alike are one order; a row that ends "
        "before the others took fewer steps."
    )
    return Panel(title, note, tuple(rows[:ROWS]), max(0, len(rows) - ROWS))


def _shares(run: Run, job: Sequence[Stream]) -> Panel:
    rows = []
    for number, passes in observed(job).epochs():
        reads = [_numbers(one.indices) for one in passes]
        samples = sorted(set(range(0, _length(job), passes[0].stride)).union(*reads))
        sets = [set(read) for read in reads]
        kinds = [
            tuple(rank for rank, one in enumerate(sets) if sample in one) for sample in samples
        ]
        rows.append(Row(f"epoch {number}", tuple(map(owner, _spread(kinds, WIDTH)))))
    note = (
        "Shares: the samples by number, coloured by the rank that read them; red is read by "
        "several ranks, white by none."
    )
    return Panel("", note, tuple(rows[:ROWS]), max(0, len(rows) - ROWS))


def _length(job: Sequence[Stream]) -> int:
    loader = job[0].loader
    return 0 if loader.subset is not None else loader.dataset_length or 0


def _highest(stream: Stream) -> int:
    return max((max(_numbers(one.indices), default=0) for one in stream.passes), default=0) or 1


def _numbers(indices: Sequence[Any]) -> list[int]:
    return [index for index in indices if isinstance(index, int)]


def _spread(values: Sequence[Any], width: int) -> list[Any]:
    """At most ``width`` of the values, evenly."""
    if len(values) <= width:
        return list(values)
    return [values[index * len(values) // width] for index in range(width)]


def owner(ranks: tuple[int, ...]) -> Color:
    """The colour of a sample that these ranks read."""
    if not ranks:
        return _WHITE
    return _SHARED if len(ranks) > 1 else _RANKS[ranks[0] % len(_RANKS)]


def hue(position: float) -> Color:
    """Blue over green and yellow to red, light enough for neighbours to be told apart."""
    stops: tuple[Color, ...] = (
        (48, 18, 130),
        (40, 110, 220),
        (40, 190, 170),
        (120, 220, 70),
        (245, 200, 50),
        (230, 90, 30),
        (130, 10, 10),
    )
    place = min(max(position, 0.0), 1.0) * (len(stops) - 1)
    low = min(int(place), len(stops) - 2)
    part = place - low
    first, second = stops[low], stops[low + 1]
    red, green, blue = (
        round(one + (other - one) * part) for one, other in zip(first, second, strict=True)
    )
    return red, green, blue


# -- HTML

_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>sampler-lint trace</title>
<style>
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 2em; max-width: 1000px; }}
body {{ color: #222; background: #eee; }}
svg {{ background: #fff; }}
h2 {{ font: bold 14px/1.4 ui-monospace, monospace; margin: 2em 0 0; }}
p {{ margin: .3em 0; }} li {{ margin: .3em 0; }}
text {{ font: 11px ui-monospace, monospace; fill: #222; }}
</style></head><body>
<h1>What each rank read</h1>
<p><code>{command}</code></p>
<ul>{messages}</ul>
{panels}
</body></html>
"""

_LABEL, _ROW, _BAR = 120, 16, 12
_NOTE = 80
_GAP = 6


def to_html(panels: Sequence[Panel], messages: Sequence[str], run: Run) -> str:
    """A page that stands alone: pictures as SVG, no script, nothing loaded."""
    listed = "".join(f"<li>{html.escape(one)}</li>" for one in messages)
    return _PAGE.format(
        command=html.escape(" ".join(run.args)),
        messages=listed or "<li>Nothing wrong was seen.</li>",
        panels="\n".join(map(_svg, panels)),
    )


def _svg(panel: Panel) -> str:
    height = _ROW * len(panel.rows)
    parts = [f"<h2>{html.escape(panel.title)}</h2>"] if panel.title else []
    parts.append(f"<p>{html.escape(panel.note)}</p>")
    parts.append(
        f'<svg width="{_LABEL + WIDTH + _NOTE}" height="{height}" role="img" '
        'shape-rendering="crispEdges">'
    )
    for number, row in enumerate(panel.rows):
        top = number * _ROW
        parts.append(f'<text x="0" y="{top + _BAR - 2}">{html.escape(row.label)}</text>')
        for left, width, (red, green, blue) in _runs(row):
            parts.append(
                f'<rect x="{_LABEL + left:g}" y="{top}" width="{width:g}" height="{_BAR}" '
                f'fill="#{red:02x}{green:02x}{blue:02x}"/>'
            )
        if row.note:
            left = _LABEL + WIDTH * row.length + _GAP
            parts.append(f'<text x="{left:g}" y="{top + _BAR - 2}">{html.escape(row.note)}</text>')
    parts.append("</svg>")
    if panel.left_out:
        parts.append(f"<p>{panel.left_out} more rows are left out.</p>")
    return "\n".join(parts)


def _runs(row: Row) -> Iterator[tuple[float, float, Color]]:
    """Left edge, width and colour of each stretch of one colour."""
    if not row.cells:
        return
    cell = WIDTH * row.length / len(row.cells)
    begin = 0
    for index in range(1, len(row.cells) + 1):
        if index == len(row.cells) or row.cells[index] != row.cells[begin]:
            left = round(begin * cell, 2)
            yield left, round(index * cell - left, 2), row.cells[begin]
            begin = index


# -- PNG


def _save_png(panels: Sequence[Panel], messages: Sequence[str], path: str) -> None:
    image_module: Any = importlib.import_module("PIL.Image")
    draw_module: Any = importlib.import_module("PIL.ImageDraw")
    texts = [_wrapped(messages or ["Nothing wrong was seen."])]
    texts += [_wrapped(filter(None, (panel.title, panel.note))) for panel in panels]
    rows = sum(len(lines) + 1 for lines in texts)
    rows += sum(len(panel.rows) + bool(panel.left_out) for panel in panels)
    image = image_module.new("RGB", (10 + _LABEL + WIDTH + _NOTE, _ROW * rows + 10), _WHITE)
    pen = draw_module.Draw(image)
    top = 10

    def write(line: str) -> None:
        nonlocal top
        pen.text((10, top), line, fill=_BLACK)
        top += _ROW

    for lines, panel in zip(texts, [None, *panels], strict=True):
        for line in lines:
            write(line)
        for row in panel.rows if panel else ():
            for left, width, color in _runs(row):
                box = (10 + _LABEL + left, top, 10 + _LABEL + left + width - 1, top + _BAR)
                pen.rectangle(box, fill=color)
            end = 10 + _LABEL + WIDTH * row.length + _GAP
            pen.text((end, top), row.note, fill=_BLACK)
            write(row.label)
        if panel and panel.left_out:
            write(f"{panel.left_out} more rows are left out.")
        top += _ROW
    image.save(path)


def _wrapped(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in textwrap.wrap(text, 140)]
