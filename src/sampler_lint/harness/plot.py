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

from sampler_lint.harness import HarnessError
from sampler_lint.harness.inside import sampling
from sampler_lint.harness.invariants import epochs_of, observed
from sampler_lint.harness.runs import Run, Stream

#: Cells of a row, and rows of a panel, that are drawn at most.
WIDTH = 800
ROWS = 64

#: Loaders that are drawn at most.
LOADERS = 8

#: ``#rrggbb``.
Color = str

_WHITE, _BLACK, _SHARED = "#ffffff", "#000000", "#d62728"
_RANKS = ("#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e")


@dataclass(frozen=True, slots=True)
class Row:
    """A strip of cells."""

    label: str
    cells: tuple[Color, ...]
    note: str = ""
    """What stands behind them."""
    length: float | None = None
    """How much of the panel's width they take; by their number if that is not said."""
    steps: tuple[int, ...] = ()
    """After how many cells a step ends."""

    def width(self, longest: int) -> float:
        """The width of a cell in a panel that is as wide as its ``longest`` row has cells."""
        return self.length * longest / (len(self.cells) or 1) if self.length else 1

    def stretches(self, longest: int) -> Iterator[tuple[float, float, Color]]:
        """Left edge, right edge and colour of each stretch of one colour."""
        cell, begin = self.width(longest), 0
        for end in range(1, len(self.cells) + 1):
            if end == len(self.cells) or self.cells[end] != self.cells[begin]:
                yield begin * cell, end * cell, self.cells[begin]
                begin = end


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
        HarnessError: PNG is asked for and Pillow is not installed, or there is no such folder.
    """
    folder = Path(path).absolute().parent
    if not folder.is_dir() or Path(path).is_dir():
        what = "is a folder" if folder.is_dir() else f"there is no folder {folder}"
        raise HarnessError(f"{path}: cannot be written: {what}")
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
        yield _shares(job)


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
        rows.append(Row(f"rank {rank} epoch {number}", cells, note, length))
    loader = job[0].loader
    chain = " over ".join(sampler["cls"] for sampler in loader.samplers)
    title = f"{run.place(loader)}: {loader.cls} of {loader.dataset_cls}, indices from {chain}"
    note = (
        "Order: each row is one epoch on one rank, from its first step to its last; the colour "
        "is the sample's number. Equal rows of one rank are the same order; a row that ends "
        "before the others took fewer steps."
    )
    return Panel(title, note, tuple(rows[:ROWS]), max(0, len(rows) - ROWS))


def _shares(job: Sequence[Stream]) -> Panel:
    loader = job[0].loader
    length = 0 if loader.subset is not None else loader.dataset_length or 0
    rows = tuple(share_rows(job, "epoch", length))
    note = (
        "Shares: the samples by number, coloured by the rank that read them; red is read by "
        "several ranks, white by none."
    )
    return Panel("", note, rows[:ROWS], max(0, len(rows) - ROWS))


def share_rows(job: Sequence[Stream], label: str, length: int) -> Iterator[Row]:
    """A row for every epoch: the samples by number, coloured by the rank that read them.

    The first ``length`` samples are in it even if nobody read them.
    """
    for number, passes in observed(job).epochs():
        reads = [set(_numbers(one.indices)) for one in passes]
        kept = {one for one in range(length) if sampling.is_kept(one, passes[0].one_in)}
        samples = sorted(kept.union(*reads))
        owners = [_owner([rank for rank, one in enumerate(reads) if i in one]) for i in samples]
        yield Row(f"{label} {number}", tuple(_spread(owners, WIDTH)))


def _highest(stream: Stream) -> int:
    return max((max(_numbers(one.indices), default=0) for one in stream.passes), default=0) or 1


def _numbers(indices: Sequence[Any]) -> list[int]:
    return [index for index in indices if isinstance(index, int)]


def _spread(values: Sequence[Any], width: int) -> list[Any]:
    """At most ``width`` of the values, evenly."""
    if len(values) <= width:
        return list(values)
    return [values[index * len(values) // width] for index in range(width)]


def _owner(ranks: Sequence[int]) -> Color:
    """The colour of a sample that these ranks read."""
    if not ranks:
        return _WHITE
    return _SHARED if len(ranks) > 1 else _RANKS[ranks[0] % len(_RANKS)]


def hue(position: float) -> Color:
    """Blue over green and yellow to red, light enough for neighbours to be told apart."""
    place = min(max(position, 0.0), 1.0) * (len(_STOPS) - 1)
    low = min(int(place), len(_STOPS) - 2)
    pairs = zip(bytes.fromhex(_STOPS[low]), bytes.fromhex(_STOPS[low + 1]), strict=True)
    return "#" + bytes(round(a + (b - a) * (place - low)) for a, b in pairs).hex()


_STOPS = ["301282", "286edc", "28beaa", "78dc46", "f5c832", "e65a1e", "820a0a"]


# -- HTML

_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>sampler-lint trace</title>
<style>
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 2em; max-width: 1000px; }}
body {{ color: #222; background: #eee; }}
svg {{ background: #fff; }}
h2 {{ font: bold 14px/1.4 ui-monospace, monospace; margin: 2em 0 0; }}
p {{ margin: .3em 0; }} li {{ margin: .3em 0; white-space: pre-wrap; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .1em .8em; text-align: right; }}
td:first-child, th:first-child {{ text-align: left; font-family: ui-monospace, monospace; }}
</style></head><body>
<h1>What each rank read</h1>
<p><code>{command}</code></p>
<ul>{messages}</ul>
{table}
{panels}
</body></html>
"""

#: The labels left of the cells and the notes behind them; rows, the strips in them, the gap.
_LABEL, _NOTE = 120, 80
ROW, BAR, _GAP = 15, 12, 8


def to_html(panels: Sequence[Panel], messages: Sequence[str], run: Run) -> str:
    """A page that stands alone: pictures as SVG, no script, nothing loaded."""
    listed = "".join(f"<li>{html.escape(one)}</li>" for one in messages)
    return _PAGE.format(
        command=html.escape(" ".join(run.args)),
        messages=listed or "<li>Nothing wrong was seen.</li>",
        table=_table(run),
        panels="\n".join(map(_svg, panels)),
    )


def _table(run: Run) -> str:
    """What each rank has read of each loader, in numbers."""
    lines = [
        (
            run.place(loader),
            rank.rank,
            loader.dataset_cls,
            loader.dataset_length,
            len(loader.passes),
            sum(one.yielded for one in loader.passes),
            sum(one.count for one in loader.passes),
            sum(one.learned for one in loader.passes),
        )
        for rank in run.ranks
        for loader in rank.log.loaders
        if loader.passes
    ]
    head = ("loader", "rank", "dataset", "samples", "passes", "batches", "indices", "learned from")
    rows = "".join(
        f"<tr>{''.join(f'<td>{html.escape(str(one))}</td>' for one in line)}</tr>\n"
        for line in lines[:ROWS]
    )
    titles = "".join(f"<th>{one}</th>" for one in head)
    return f"<table>\n<tr>{titles}</tr>\n{rows}</table>" if lines else ""


def _svg(panel: Panel) -> str:
    size = f'width="{_LABEL + WIDTH + _NOTE}" height="{ROW * len(panel.rows)}"'
    return "".join(
        [
            f"<h2>{html.escape(panel.title)}</h2>\n" if panel.title else "",
            f"<p>{html.escape(panel.note)}</p>\n",
            f'<svg {size} role="img" font-family="monospace" font-size="11">\n',
            *strips(panel.rows, 0, _LABEL, WIDTH),
            "</svg>\n",
            f"<p>{panel.left_out} more rows are left out.</p>\n" if panel.left_out else "",
        ]
    )


def strips(rows: Sequence[Row], top: int, label: int, width: int) -> Iterator[str]:
    """The rows of a panel to one scale; cells of a colour are one path, to keep the file small."""
    longest = max((len(row.cells) for row in rows), default=0) or 1
    scale = width / longest
    paths: dict[Color, list[str]] = {}
    gaps: list[str] = []
    for number, row in enumerate(rows):
        base = top + number * ROW + BAR - 2
        yield svg_text(0, base, row.label)
        if row.note:
            end = scale * len(row.cells) * row.width(longest)
            yield svg_text(round(label + end) + _GAP, base, row.note)
        for left, right, color in row.stretches(longest):
            cells = paths.setdefault(color, [])
            cells.append(f"M{left:g} {number}h{right - left:g}")
        gaps += [f"M{at} {number - 0.5:g}v1" for at in row.steps[:-1]]
    yield (
        f'<g transform="translate({label} {top + BAR // 2}) scale({scale:.6g} {ROW})" '
        f'fill="none" stroke-width="{BAR / ROW:g}" shape-rendering="crispEdges">\n'
    )
    for color, cells in sorted(paths.items()):
        yield f'<path stroke="{color}" d="{"".join(cells)}"/>\n'
    if gaps:
        yield f'<path stroke="#fff" stroke-width="{1.5 / scale:.3g}" d="{"".join(gaps)}"/>\n'
    yield "</g>\n"


def svg_text(left: int, base: int, text: str, bold: bool = False) -> str:
    """A line of text in a picture."""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{left}" y="{base}"{weight}>{html.escape(text, quote=False)}</text>\n'


# -- PNG


def _save_png(panels: Sequence[Panel], messages: Sequence[str], path: str) -> None:
    image_module: Any = importlib.import_module("PIL.Image")
    draw_module: Any = importlib.import_module("PIL.ImageDraw")
    texts = [_wrapped(messages or ["Nothing wrong was seen."])]
    texts += [_wrapped(filter(None, (panel.title, panel.note))) for panel in panels]
    count = sum(len(lines) + 1 for lines in texts)
    count += sum(len(panel.rows) + bool(panel.left_out) for panel in panels)
    image = image_module.new("RGB", (10 + _LABEL + WIDTH + _NOTE, ROW * count + 10), _WHITE)
    pen = draw_module.Draw(image)
    top = 10

    def write(line: str) -> None:
        nonlocal top
        pen.text((10, top), line, fill=_BLACK)
        top += ROW

    for lines, panel in zip(texts, [None, *panels], strict=True):
        for line in lines:
            write(line)
        rows = panel.rows if panel else ()
        longest = max((len(row.cells) for row in rows), default=0) or 1
        for row in rows:
            end = 0.0
            for left, right, color in row.stretches(longest):
                begin, end = (10 + _LABEL + WIDTH * at / longest for at in (left, right))
                pen.rectangle((begin, top, end - 1, top + BAR), fill=color)
            pen.text((end + _GAP, top), row.note, fill=_BLACK)
            write(row.label)
        if panel and panel.left_out:
            write(f"{panel.left_out} more rows are left out.")
        top += ROW
    image.save(path)


def _wrapped(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in textwrap.wrap(text, 140)]
