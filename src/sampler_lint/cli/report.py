"""``sampler-lint report``: a bug that recorded runs show, as a Markdown issue to paste upstream."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sampler_lint.cli._common import CLEAN, FINDINGS, Parser, UsageError, reason

if TYPE_CHECKING:
    from sampler_lint.findings import Finding
    from sampler_lint.harness.runs import Pass, Run

_EPILOG = """\
Exit codes: 0 the issue was written; 1 the record after the fix still shows the
finding; 2 a record cannot be read, or the one before does not show it.

  sampler-lint trace --keep before -- torchrun --nproc-per-node 2 train.py
  sampler-lint trace --keep after -- torchrun --nproc-per-node 2 fixed.py
  sampler-lint report SMP102 --before before --after after > issue.md
"""

#: Lines of a file that are quoted whole, and around each place that matters where it is longer.
_WHOLE, _AROUND = 60, 3

#: Epochs and cells of a picture, and its eight heights: low numbers are low.
_EPOCHS, _CELLS, _HEIGHTS = 4, 48, "▁▂▃▄▅▆▇█"


def main(argv: Sequence[str]) -> int:
    """Write the issue that ``argv`` asks for to standard output and return the exit code."""
    arguments = make_parser().parse_args(argv)

    from sampler_lint.harness import HarnessError
    from sampler_lint.harness.trace import read
    from sampler_lint.rules import names
    from sampler_lint.trace_report import findings

    try:
        before = read([arguments.before])
        after = read([arguments.after]) if arguments.after else None
    except (HarnessError, OSError) as error:
        raise UsageError(reason(error)) from error
    code = names().get(arguments.code.lower(), arguments.code.upper())
    seen = findings(before.run)
    found = [one for one in seen if one.code == code]
    if not found:
        others = ", ".join(sorted({one.code for one in seen}))
        told = f"it shows {others}" if others else "nothing wrong is seen in it"
        raise UsageError(f"the record in {arguments.before} does not show {code}: {told}")
    left = [one for one in findings(after.run) if one.code == code] if after else []
    print("\n".join(_issue(found[0], before.run, after.run if after else None, left)))
    return FINDINGS if left else CLEAN


def make_parser() -> Parser:
    """What the command takes."""
    parser = Parser(
        prog="sampler-lint report",
        description="Write a bug that a recorded run shows as a Markdown issue: what is wrong,\n"
        "the code, the record and a picture of the order.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "code", metavar="CODE", help="the code or name of the finding's rule, such as SMP102"
    )
    parser.add_argument(
        "--before", metavar="DIR", required=True, help="the record that shows it (`trace --keep`)"
    )
    parser.add_argument("--after", metavar="DIR", help="the record of a run with the fix")
    return parser


def _issue(finding: Finding, before: Run, after: Run | None, left: list[Finding]) -> Iterator[str]:
    said = finding.message.partition("; ")[0]
    yield f"# {said[:1].upper()}{said[1:]}"
    yield ""
    yield f"`{finding.path}` line {finding.start.row}: {finding.message}."
    yield ""
    yield "## How to see it"
    yield ""
    yield from ("```console", f"$ {' '.join(before.args) or 'python train.py'}", "```", "")
    yield from _code(finding, before)
    yield "## What was read"
    yield ""
    yield from _record("Before", before)
    for note in finding.why:
        if note.place == "":
            yield f"- {note.text}"
    if after is not None:
        yield ""
        yield from _record("After the fix" if not left else "After (it is still there)", after)
    yield ""
    yield "Each row is one epoch on one rank, from its first sample to its last; the height is the"
    yield "sample's number. Recorded by sampler-lint, which changes nothing in the run."


def _code(finding: Finding, run: Run) -> Iterator[str]:
    """The program, where it is short, or the places in it that matter."""
    from sampler_lint.findings import Place

    places = {(finding.path, finding.start.row)}
    named = [one.place for one in finding.why if isinstance(one.place, Place)]
    places |= {(one.path, one.start.row) for one in named}
    for path in sorted({path for path, _ in places}):
        file = Path(path) if Path(path).is_file() else Path(run.root, path)
        try:
            lines = file.read_text("utf-8", "replace").splitlines()
        except OSError:
            continue
        rows = {row for one, row in places if one == path}
        near = {row + by for row in rows for by in range(-_AROUND, _AROUND + 1)}
        whole = len(lines) <= _WHOLE
        shown = [row for row in range(1, len(lines) + 1) if whole or row in near]
        yield f"`{path}`:"
        yield "```python"
        last = 0
        for row in shown:
            if row > last + 1:
                yield "..."
            mark = "  # <-- here" if row in rows else ""
            yield f"{lines[row - 1]}{mark}"
            last = row
        yield "```"
        yield ""


def _record(title: str, run: Run) -> Iterator[str]:
    from sampler_lint.harness.invariants import epochs_of

    yield f"**{title}**"
    yield ""
    yield "```text"
    for job in run.streams():
        highest = max((_number(i) for s in job for one in s.passes for i in one.indices), default=0)
        for rank, stream in enumerate(job):
            for number, one in epochs_of(stream)[:_EPOCHS]:
                if one.learned and one.indices:
                    begins = ", ".join(map(str, one.begins[:4]))
                    strip = _strip(one, highest)
                    yield f"rank {rank} epoch {number}  {strip}  {one.count} samples: {begins} …"
    yield "```"


def _strip(one: Pass, highest: int) -> str:
    indices = [*map(_number, one.indices)]
    cells = indices[:: -(-len(indices) // _CELLS)]
    return "".join(_HEIGHTS[len(_HEIGHTS) * index // (highest + 1)] for index in cells)


def _number(index: object) -> int:
    return index if isinstance(index, int) and index >= 0 else 0
