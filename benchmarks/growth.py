"""How sampler-lint's time grows with what there is to read: trees of known size, and a plot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
COPIES = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Point:
    """One tree, and what checking it took."""

    lines: int
    """Of files that say a sampler word."""
    files: int
    findings: int
    cpu: float
    memory: float


def make_tree(folder: Path, copies: int) -> None:
    """The bad program of every fixture, ``copies`` times, each in a folder of its own."""
    for copy in range(copies):
        for bad in sorted((REPOSITORY / "fixtures").glob("SMP*/*/bad")):
            name = f"{bad.parts[-3]}_{bad.parts[-2]}".lower().replace("-", "_")
            shutil.copytree(bad, folder / f"copy_{copy}" / name)
    (folder / "pyproject.toml").write_text("")


def measure_growth(folder: Path) -> list[Point]:
    """Check trees of growing size, cold, in this interpreter's environment."""
    sys.path.insert(0, str(REPOSITORY / "src"))
    from sampler_lint.source import is_candidate

    points = []
    for copies in COPIES:
        tree = folder / f"growth-{copies}"
        make_tree(tree, copies)
        data = [path.read_bytes() for path in tree.rglob("*.py")]
        lines = sum(each.count(b"\n") for each in data if is_candidate(each))
        took: list[tuple[float, float]] = []
        for _ in range(3):
            process = subprocess.Popen(
                [sys.executable, "-m", "sampler_lint", "--isolated", "--no-cache", "--jobs", "1",
                 "--output-format", "json-lines", "."],
                cwd=tree,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
                stdout=subprocess.PIPE,
            )  # fmt: skip
            assert process.stdout is not None
            findings = process.stdout.read().count(b"\n")
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode in {0, 1}, process.returncode
            took.append((usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))
        cpu, memory = sorted(took)[1]
        points.append(Point(lines, len(data), findings, cpu, memory))
        print(points[-1], file=sys.stderr)
    return points


def plot(points: Sequence[Point]) -> str:
    """CPU seconds against candidate lines, as SVG, with a straight line through both ends."""
    width, height, margin = 640, 360, 60
    most_lines = max(point.lines for point in points)
    most_cpu = max(point.cpu for point in points)

    def place(lines: float, cpu: float) -> tuple[float, float]:
        x = margin + (width - 2 * margin) * lines / most_lines
        return x, height - margin - (height - 2 * margin) * cpu / most_cpu

    first, last = place(points[0].lines, points[0].cpu), place(points[-1].lines, points[-1].cpu)
    text = 'font-family="sans-serif" font-size="12" fill="currentColor"'
    shapes = [
        f'<path d="M{margin} {margin}V{height - margin}H{width - margin}" stroke="currentColor" '
        'fill="none"/>',
        f'<line x1="{first[0]:.0f}" y1="{first[1]:.0f}" x2="{last[0]:.0f}" y2="{last[1]:.0f}" '
        'stroke="gray" stroke-dasharray="4"/>',
    ]
    for point in points:
        x, y = place(point.lines, point.cpu)
        said = f"{point.lines} lines, {point.files} files, {point.findings} findings"
        shapes.append(
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4" fill="#3f51b5">'
            f"<title>{said}: {point.cpu:.2f} s</title></circle>"
            f'<text x="{x:.0f}" y="{y - 10:.0f}" text-anchor="middle" {text}>'
            f"{point.cpu:.1f} s</text>"
            f'<text x="{x:.0f}" y="{height - margin + 18:.0f}" text-anchor="middle" {text}>'
            f"{point.lines // 1000}k</text>"
        )
    shapes.append(
        f'<text x="{width / 2:.0f}" y="{height - 15}" text-anchor="middle" {text}>candidate lines'
        "</text>"
    )
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
    return "\n".join([opening, *shapes, "</svg>", ""])
