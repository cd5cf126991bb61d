"""How much time sampler-lint takes beside its peers, on a published package.

    python benchmarks/peers.py            prints the table
    python benchmarks/peers.py --write    and records it in docs/performance.md

Each tool gets a clean virtual environment of its own, because flake8 runs every plugin that it
finds installed. The tools take turns, so that a busy machine is busy for all of them. Exit code
1: sampler-lint took more than 1/40 of TorchFix's CPU time. Needs the package index.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = REPOSITORY / "docs" / "performance.md"
PACKAGE = "mosaicml==0.20.1"
#: Ours may take this part of TorchFix's CPU time.
SHARE = 1 / 40


@dataclass
class Tool:
    """A command in an environment of its own, and what its runs took."""

    name: str
    requirements: tuple[str, ...]
    command: tuple[str, ...]
    distribution: str
    """Whose version is told."""
    exit_codes: tuple[int, ...] = (0, 1)
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    version: str = ""


def tools() -> list[Tool]:
    ours = str(REPOSITORY)
    return [
        Tool(
            "sampler-lint", (ours,), ("sampler-lint", "--isolated", "."), "sampler-lint", (1,)
        ),  # 1: it must find something, or it measures nothing
        Tool("torchfix", ("torchfix==0.7.0",), ("torchfix", "."), "torchfix"),
        Tool(
            "ruff, pyflakes rules",
            ("ruff",),
            ("ruff", "check", "--isolated", "--no-cache", "--quiet", "--select", "F", "."),
            "ruff",
        ),
        Tool(
            "flake8, pyflakes rules",
            ("flake8",),
            ("flake8", "--isolated", "--select", "F", "."),
            "flake8",
        ),
        Tool(
            "flake8 with our plugin",
            ("flake8", ours),
            ("flake8", "--isolated", "--select", "F,SMP", "."),
            "flake8",
        ),
    ]


def install(tool: Tool, folder: Path) -> Path:
    """A clean environment with the tool; its folder of commands."""
    venv.create(folder, with_pip=True)
    commands = folder / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run(
        [commands / "python", "-m", "pip", "install", "--quiet", *tool.requirements], check=True
    )
    shown = subprocess.run(
        [commands / "python", "-m", "pip", "list", "--format", "json"],
        check=True,
        capture_output=True,
        text=True,
    )
    versions = {each["name"].lower(): each["version"] for each in json.loads(shown.stdout)}
    tool.version = versions[tool.distribution]
    return commands


def unpack(folder: Path) -> Path:
    """The package's files, which are never imported."""
    wheels = folder / "wheels"
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", wheels, PACKAGE],
        check=True,
    )
    tree = folder / "tree"
    with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
        wheel.extractall(tree)
    return tree


def run(tool: Tool, commands: Path, tree: Path) -> None:
    """One run; CPU time is that of the process and all it started."""
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(
        [commands / tool.command[0], *tool.command[1:]],
        cwd=tree,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    wall, after = time.perf_counter() - started, os.times()
    if done.returncode not in tool.exit_codes:
        raise SystemExit(f"{tool.name} failed ({done.returncode}):\n{done.stderr.decode()[-2000:]}")
    tool.wall.append(wall)
    tool.cpu.append(
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def table(measured: Sequence[Tool]) -> str:
    """A Markdown table of the medians; the first tool is the measure of the others."""
    ours = measured[0]
    rows = ["| tool | version | CPU s | wall s | CPU, ours = 1 |", "|---|---|--:|--:|--:|"]
    for tool in measured:
        cpu, wall = statistics.median(tool.cpu), statistics.median(tool.wall)
        ratio = cpu / statistics.median(ours.cpu)
        rows.append(f"| {tool.name} | {tool.version} | {cpu:.2f} | {wall:.2f} | {ratio:.2f} |")
    return "\n".join(rows)


def page(measured: Sequence[Tool], rounds: int, files: int, lines: int) -> str:
    """The whole of docs/performance.md."""
    commands = "\n".join(f"    {' '.join(tool.command)}" for tool in measured)
    return f"""# Performance

Written by `python benchmarks/peers.py --write`; do not edit.

{table(measured)}

Medians of {rounds} interleaved runs on the files of `{PACKAGE}` ({files} Python files,
{lines} lines), {datetime.date.today().isoformat()}, Python {platform.python_version()},
{platform.system()} {platform.machine()}, {os.cpu_count()} cores. Nothing is cached between
runs. Each tool in a clean environment:

{commands}

TorchFix and flake8 spread files over the cores: their wall time is less than their CPU time.
Each of flake8's processes with our plugin builds the model of the tree anew.

The bar: sampler-lint takes at most 1/{round(1 / SHARE)} of TorchFix's CPU time.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="record it in docs/performance.md")
    arguments = parser.parse_args()

    measured = tools()
    with tempfile.TemporaryDirectory(prefix="sampler-lint-peers-") as temporary:
        folder = Path(temporary)
        tree = unpack(folder)
        commands = [install(tool, folder / str(n)) for n, tool in enumerate(measured)]
        for number in range(arguments.rounds):
            for tool, where in zip(measured, commands, strict=True):
                run(tool, where, tree)
                print(f"round {number + 1}: {tool.name}: {tool.cpu[-1]:.2f} CPU s", file=sys.stderr)
        sources = list(tree.rglob("*.py"))
        lines = sum(path.read_bytes().count(b"\n") for path in sources)

    print(table(measured))
    if arguments.write:
        PAGE.write_text(page(measured, arguments.rounds, len(sources), lines), encoding="utf-8")
    ours, torchfix = (statistics.median(tool.cpu) for tool in measured[:2])
    print(f"\nsampler-lint takes 1/{torchfix / ours:.0f} of TorchFix's CPU time.")
    return int(ours > torchfix * SHARE)


if __name__ == "__main__":
    sys.exit(main())
