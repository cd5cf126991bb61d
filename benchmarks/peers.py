"""How much time and memory sampler-lint takes beside its peers, on published packages.

    python benchmarks/peers.py            prints the tables
    python benchmarks/peers.py --write    and records them, and a plot of the growth, in docs/

Each tool gets a clean virtual environment of its own, because flake8 runs every plugin that it
finds installed. The tools take turns on each tree, so that a busy machine is busy for all of
them. CPU time is that of the process and all it started, and the figure that a busy machine
changes least; memory is that of the largest process. Needs the package index. The slow tools
(pylint, fixit, semgrep) run only on the trees up to --slow-lines, unless told otherwise.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from growth import Point, measure_growth, plot

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = REPOSITORY / "docs" / "performance.md"
PLOT = REPOSITORY / "docs" / "growth.svg"
PACKAGES = ("mosaicml==0.20.1", "lightning==2.6.6", "transformers==4.57.6", "torch==2.13.0")

#: One rule of ours as nearly as semgrep can say it, within one file: SMP501.
SEMGREP_RULE = """\
rules:
  - id: sampler-and-shuffle
    languages: [python]
    severity: ERROR
    message: DataLoader takes a sampler or shuffle=True, not both
    pattern: torch.utils.data.DataLoader(..., sampler=$S, ..., shuffle=True, ...)
"""


@dataclass
class Tool:
    """A command in an environment of its own."""

    name: str
    requirements: tuple[str, ...]
    command: tuple[str, ...]
    distribution: str
    """Whose version is told."""
    warm: bool = False
    """Whether it keeps something between runs: the first run on each tree is then not counted."""
    slow: bool = False
    exit_codes: tuple[int, ...] = (0, 1)
    version: str = ""


def tools(folder: Path) -> list[Tool]:
    """Ours first: cold, then warm."""
    ours = str(REPOSITORY)
    check = ("sampler-lint", "--isolated", ".")
    cache = str(folder / "cache")
    rule = folder / "rule.yml"
    rule.write_text(SEMGREP_RULE)
    ruff = ("ruff", "check", "--isolated", "--quiet", "--select", "F")
    flake8 = ("flake8", "--isolated", "--select")
    semgrep = ("semgrep", "scan", "--metrics=off", "--disable-version-check", "--quiet")
    return [
        Tool("sampler-lint, cold", (ours,), (*check, "--no-cache"), "sampler-lint"),
        Tool("sampler-lint, warm", (ours,), (*check, "--cache-dir", cache), "sampler-lint", True),
        Tool("ruff F, cold", ("ruff",), (*ruff, "--no-cache", "."), "ruff"),
        Tool("ruff F, warm", ("ruff",), (*ruff, "--cache-dir", cache, "."), "ruff", True),
        Tool("TorchFix", ("torchfix==0.7.0",), ("torchfix", "."), "torchfix", slow=True),
        Tool("flake8 F", ("flake8",), (*flake8, "F", "."), "flake8", slow=True),
        Tool(
            "flake8 F with our plugin, warm",
            ("flake8", ours),
            (*flake8, "F,SMP", "."),
            "flake8",
            warm=True,
            slow=True,
        ),
        Tool(
            "flake8 with TorchFix",
            ("flake8", "torchfix==0.7.0"),
            (*flake8, "TOR", "."),
            "torchfix",
            slow=True,
        ),
        Tool("fixit", ("fixit",), ("fixit", "--quiet", "lint", "."), "fixit", slow=True,
             exit_codes=(0, 1, 2, 3)),
        Tool("semgrep, one rule", ("semgrep",), (*semgrep, "--config", str(rule), "."),
             "semgrep", slow=True),
        Tool("pylint E", ("pylint",), ("pylint", "--errors-only", "--recursive=y", "."),
             "pylint", slow=True, exit_codes=tuple(range(32))),
    ]  # fmt: skip


def install(tool: Tool, folder: Path) -> Path:
    """A clean environment with the tool; its folder of commands."""
    venv.create(folder, with_pip=True)
    commands = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = [commands / "python", "-m", "pip"]
    subprocess.run([*pip, "install", "--quiet", *tool.requirements], check=True)
    shown = subprocess.run(
        [*pip, "list", "--format", "json"], check=True, capture_output=True, text=True
    )
    versions = {each["name"].lower(): each["version"] for each in json.loads(shown.stdout)}
    tool.version = versions[tool.distribution]
    return commands


@dataclass
class Tree:
    """The Python files of a published package, which are never imported."""

    package: str
    path: Path
    files: int = 0
    lines: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        for path in self.path.rglob("*.py"):
            data = path.read_bytes()
            self.files += 1
            self.lines += data.count(b"\n")
            self.size += len(data)


def unpack(package: str, folder: Path) -> Tree:
    """Download a package and take its Python files."""
    wheels = folder / "wheels"
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(wheels)]
    subprocess.run([*download, package], check=True)
    tree = folder / package.replace("==", "-")
    with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
        for info in wheel.infolist():
            if info.filename.endswith(".py"):
                wheel.extract(info, tree)
    shutil.rmtree(wheels)
    return Tree(package, tree)


@dataclass(frozen=True)
class Run:
    """What one run took: seconds, and megabytes in the largest process."""

    cpu: float
    wall: float
    memory: float


def peak(process: int) -> Iterator[float]:
    """Megabytes that a process and each of its descendants hold now; Linux only."""
    pending = [process]
    while pending:
        each = pending.pop()
        try:
            status = Path(f"/proc/{each}/status").read_text()
            for task in Path(f"/proc/{each}/task").iterdir():
                pending += map(int, (task / "children").read_text().split())
        except OSError:
            continue
        for line in status.splitlines():
            if line.startswith("VmHWM"):
                yield int(line.split()[1]) / 1024


def run(tool: Tool, commands: Path, tree: Tree, home: Path) -> Run:
    """One run of the tool on the tree."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(home), "HOME": str(home)}
    environment["PATH"] = f"{commands}{os.pathsep}{environment['PATH']}"
    environment.pop("PYTHONPATH", None)
    before, started = os.times(), time.perf_counter()
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            [commands / tool.command[0], *tool.command[1:]],
            cwd=tree.path,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
        )
        memory = [0.0]
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.01):
                memory[0] = max([memory[0], *peak(process.pid)])

        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall, after = time.perf_counter() - started, os.times()
        done.set()
        watcher.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in tool.exit_codes:
            complaints.seek(0)
            said = complaints.read().decode("utf-8", "replace")[-2000:]
            raise SystemExit(f"{tool.name} failed ({process.returncode}):\n{said}")
    cpu = after.children_user + after.children_system - before.children_user
    # Before it becomes the tool, the child shows this process's memory as its own.
    return Run(cpu - before.children_system, wall, memory[0] or usage.ru_maxrss / 1024)


@dataclass
class Results:
    """Every counted run, by tree and tool."""

    runs: dict[tuple[str, str], list[Run]] = field(default_factory=dict)

    def median(self, tree: Tree, tool: str, what: str) -> float | None:
        """The median of what the runs of a tool on a tree took; None if there are none."""
        runs = self.runs.get((tree.package, tool))
        return statistics.median(getattr(run, what) for run in runs) if runs else None


def measure(
    trees: Sequence[Tree], measured: Sequence[Tool], folder: Path, rounds: int, slow_lines: int
) -> Results:
    commands = {tool.name: install(tool, folder / f"env{n}") for n, tool in enumerate(measured)}
    results = Results()
    for tree in trees:
        here = [tool for tool in measured if not tool.slow or tree.lines <= slow_lines]
        homes = {tool.name: folder / "homes" / str(n) for n, tool in enumerate(measured)}
        for home in homes.values():
            home.mkdir(parents=True, exist_ok=True)
        for tool in here:
            if tool.warm:
                run(tool, commands[tool.name], tree, homes[tool.name])
        if any(tool.warm for tool in here):
            time.sleep(3)  # files changed a moment ago are read again
            for tool in here:
                if tool.warm:
                    run(tool, commands[tool.name], tree, homes[tool.name])
        for number in range(rounds):
            for tool in here:
                if tool.slow and number >= max(1, rounds // 2):
                    continue
                took = run(tool, commands[tool.name], tree, homes[tool.name])
                results.runs.setdefault((tree.package, tool.name), []).append(took)
                print(
                    f"{tree.package} {number + 1}: {tool.name}: {took.cpu:.2f} CPU s, "
                    f"{took.wall:.2f} s, {took.memory:.0f} MB",
                    file=sys.stderr,
                )
    return results


def table(tree: Tree, measured: Sequence[Tool], results: Results) -> str:
    """A Markdown table of the medians; the first tool is the measure of the others."""
    rows = [
        "| tool | version | CPU s | wall s | memory MB | CPU, ours cold = 1 |",
        "|---|---|--:|--:|--:|--:|",
    ]
    ours = results.median(tree, measured[0].name, "cpu") or 1.0
    for tool in measured:
        cpu = results.median(tree, tool.name, "cpu")
        if cpu is None:
            continue
        wall = results.median(tree, tool.name, "wall")
        memory = results.median(tree, tool.name, "memory")
        count = len(results.runs[tree.package, tool.name])
        version = tool.version + ("" if count > 1 else ", one run")
        figures = f"{cpu:.2f} | {wall:.2f} | {memory:.0f} | {cpu / ours:.2f}"
        rows.append(f"| {tool.name} | {version} | {figures} |")
    return "\n".join(rows)


def bars(trees: Sequence[Tree], results: Results) -> Iterator[tuple[str, str, bool]]:
    """What we want to hold: the bar, how it stands, whether it holds."""

    def of(tree: Tree, tool: str, what: str) -> float | None:
        return results.median(tree, tool, what)

    for tree in trees:
        name = tree.package
        cold, ruff = (of(tree, f"{tool}, cold", "wall") for tool in ("sampler-lint", "ruff F"))
        if cold is not None and ruff is not None:
            yield (
                f"{name}: cold, at most ruff's wall + 0.7 s",
                f"{cold - ruff:+.2f} s",
                (cold <= ruff + 0.7),
            )
        warm, ruff = (of(tree, f"{tool}, warm", "wall") for tool in ("sampler-lint", "ruff F"))
        if warm is not None and ruff is not None:
            text = f"{1000 * (warm - ruff):+.0f} ms"
            yield f"{name}: warm, at most ruff's wall + 60 ms", text, warm <= ruff + 0.06
        plain, plugged = (
            of(tree, "flake8 F", "cpu"),
            of(tree, "flake8 F with our plugin, warm", "cpu"),
        )
        if plain is not None and plugged is not None:
            text = f"{plugged / plain:.3f}"
            yield f"{name}: flake8 with our plugin, at most 1.03", text, plugged <= 1.03 * plain
        memory = of(tree, "sampler-lint, cold", "memory") or 0.0
        yield f"{name}: at most 150 MB", f"{memory:.0f} MB", memory <= 150


def page(
    trees: Sequence[Tree], measured: Sequence[Tool], results: Results, points: Sequence[Point]
) -> str:
    """The whole of docs/performance.md."""
    parts = ["# Performance", "Written by `python benchmarks/peers.py --write`; do not edit."]
    parts.append(
        f"{datetime.date.today().isoformat()}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f} at the end. Medians of interleaved runs; the CPU time is that "
        "of all processes, the memory that of the largest one."
    )
    for tree in trees:
        parts += [
            f"## {tree.package}: {tree.lines} lines in {tree.files} files",
            table(tree, measured, results),
        ]
    parts.append("## Bars")
    rows = [
        f"| {bar} | {'holds' if holds else '**missed**'} | {text} |"
        for bar, text, holds in bars(trees, results)
    ]
    parts.append("\n".join(["| bar | | measured |", "|---|---|--:|", *rows]))
    if points:
        rows = [
            f"| {p.lines} | {p.files} | {p.findings} | {p.cpu:.2f} | "
            f"{1e6 * p.cpu / p.lines:.1f} | {p.memory:.0f} |"
            for p in points
        ]
        head = "| candidate lines | files | findings | CPU s | us a line | memory MB |"
        parts += [
            "## Growth",
            "The fixtures' programs, many times over, each copy a package of its own; cold.",
            "![CPU seconds against candidate lines](growth.svg)",
            "\n".join([head, "|--:|--:|--:|--:|--:|--:|", *rows]),
        ]
    commands = "\n".join(f"    {_shown(tool)}" for tool in measured)
    parts += [
        "## Commands",
        "Each tool in a clean environment. Cold: nothing is kept between runs. Warm: nothing has "
        "changed since the last run. Only rows with results were run; the slow tools not on the "
        "big trees, unless `--slow-lines` says so.",
        commands,
        "semgrep's rule looks for one of the patterns of SMP501, within one file.",
        "`python benchmarks/keystrokes.py` measures an editor, `python benchmarks/monorepo.py` "
        "many programs in one tree, and memory.",
    ]
    return "\n\n".join(parts) + "\n"


def _shown(tool: Tool) -> str:
    return " ".join(Path(word).name if os.path.isabs(word) else word for word in tool.command)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--package", action="append", help=f"default: {', '.join(PACKAGES)}")
    parser.add_argument("--tool", action="append", help="only tools whose name begins so")
    parser.add_argument("--slow-lines", type=int, default=100_000)
    parser.add_argument("--no-growth", action="store_true")
    parser.add_argument("--write", action="store_true", help="record it in docs/")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="sampler-lint-peers-") as temporary:
        folder = Path(temporary)
        measured = [
            tool
            for tool in tools(folder)
            if not arguments.tool or tool.name.startswith(tuple(arguments.tool))
        ]
        trees = [unpack(package, folder) for package in arguments.package or PACKAGES]
        results = measure(trees, measured, folder, arguments.rounds, arguments.slow_lines)
        points = [] if arguments.no_growth else measure_growth(folder)
    text = page(trees, measured, results, points)
    print(text)
    if arguments.write:
        PAGE.write_text(text, encoding="utf-8")
        if points:
            PLOT.write_text(plot(points), encoding="utf-8")
    return int(not all(holds for _, _, holds in bars(trees, results)))


if __name__ == "__main__":
    sys.exit(main())
