"""What one keystroke costs in an editor, and a line of code that is dense with samplers.

    python benchmarks/keystrokes.py

A keystroke goes the language server's own way: the last text that could be parsed is found, the
open file is looked for among those that the configuration excludes and checked with what the
session kept, and what the check before left is thrown away (told apart, for it happens when the
diagnostics are out). Typed is a statement, letter by letter, and a comment, at places all over the
file. Each state is checked from scratch, too, and has to give the same. Dense code is this
repository itself. All times are CPU seconds of this process, medians; needs the package index.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

from sampler_lint import engine
from sampler_lint.config import Lookup
from sampler_lint.language_server.edited import Readable

REPOSITORY = Path(__file__).resolve().parent.parent
OPENED = {
    "mosaicml==0.20.1": ("composer/trainer/trainer.py", 0.1),
    "transformers==4.57.6": ("transformers/trainer.py", 0.25),
}
#: Most of a line is typed before it can be parsed again.
TYPED = ("count = len(batch)", "# one batch")
DENSE_BAR = 60e-6


def typed_in(text: str, places: int) -> Iterator[tuple[str, str]]:
    """What is typed, and the text as it is after each letter of it, at places all over the text."""
    lines = text.splitlines()
    rows = [row for row, line in enumerate(lines) if line.strip().startswith("if ")]
    for number in range(places):
        row = rows[len(rows) * number // places]
        indent = lines[row][: len(lines[row]) - len(lines[row].lstrip())]
        for typed in TYPED:
            for length in range(1, len(typed) + 1):
                new = [*lines[:row], indent + typed[:length], *lines[row:]]
                yield typed, "\n".join(new) + "\n"


def keystrokes(root: Path, name: str, places: int, compared: int) -> dict[str, float]:
    """The medians of all keystrokes, of those in each thing typed that change what is read, and of
    clearing.

    Every so many states are ``compared`` with a check from scratch.
    """
    os.chdir(root)
    path = str(root / name)
    session, readable = engine.Session(), Readable(engine.parses)
    text = (root / name).read_text(encoding="utf-8")
    session.not_excluded([path], lambda folder: Lookup().at(folder).options)
    engine.check([path], overlay=readable({path: text.encode()}), session=session)
    took: dict[str, list[float]] = {}
    before = b""
    for number, (typed, state) in enumerate(typed_in(text, places)):
        gc.disable()  # as the server does, until the diagnostics are out
        started = time.process_time()
        read = readable({path: state.encode()})
        lookup = Lookup()
        asked = session.not_excluded([path], lambda folder, at=lookup.at: at(folder).options)
        found = engine.check(asked, overlay=read, session=session)
        spent = time.process_time() - started
        took.setdefault("in all", []).append(spent)
        if read[path] != before:
            took.setdefault(f"`{typed}`", []).append(spent)
        before = read[path]
        started = time.process_time()
        gc.collect()
        gc.enable()
        took.setdefault("to clear", []).append(time.process_time() - started)
        if compared and number % compared == 0:
            anew = engine.check([path], overlay=read, session=engine.Session())
            if anew.findings != found.findings:
                sys.exit(f"{name}: another finding from scratch after keystroke {number}")
    return {what: statistics.median(times) for what, times in took.items()}


def dense() -> tuple[float, int]:
    """CPU seconds a line of this repository's Python, and how many lines that is."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", "HEAD", "fixtures", "tests", "src"],
            cwd=REPOSITORY, check=True, capture_output=True,
        ).stdout  # fmt: skip
        subprocess.run(["tar", "x", "-C", folder], input=archive, check=True)
        os.chdir(folder)
        lines = sum(path.read_bytes().count(b"\n") for path in Path(folder).rglob("*.py"))
        started = time.process_time()
        engine.check(["."], parse_all=False, edits=False)
        spent = time.process_time() - started
        os.chdir(REPOSITORY)
        return spent / lines, lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--places", type=int, default=2, help="where something is typed")
    parser.add_argument("--compared", type=int, default=10, help="every so many from scratch, too")
    parser.add_argument("--wheels", type=Path, help="folder with the wheels, to download none")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for package, (name, bar) in OPENED.items():
            wheels = arguments.wheels.absolute() if arguments.wheels else Path(folder, "wheels")
            if not arguments.wheels:
                command = ["pip", "download", "--quiet", "--no-deps", "-d", str(wheels), package]
                subprocess.run([sys.executable, "-m", *command], check=True)
            root = Path(folder, package)
            [wheel] = wheels.glob(f"{package.partition('==')[0]}-*.whl")
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(root)
            medians = keystrokes(root, name, arguments.places, arguments.compared)
            os.chdir(REPOSITORY)
            told = ", ".join(f"{seconds:.3f} s {what}" for what, seconds in medians.items())
            print(f"{package} {name}: {told} (bar {bar} s)", flush=True)
    spent, lines = dense()
    print(f"dense: {spent * 1e6:.0f} us a line over {lines} lines (bar {DENSE_BAR * 1e6:.0f})")


if __name__ == "__main__":
    main()
