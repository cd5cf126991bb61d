"""How many bugs are found that were mined from public repositories without the linter.

    python benchmarks/wild/mined.py --mirror DIR [--tool "sampler-lint check"] [--list]

mined.jsonl has one bug a line, written down before the linter was run: from commits, pull requests
and issues that repaired one, or by reading. DIR is as for precision.py, and no code of a repository
is ever run. A finding counts whose code fits, within two lines of the bug or at another place that
its row names.
"""

from __future__ import annotations

import argparse
import json
import shlex
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from precision import UnavailableError, lay_out, lint

MINED = Path(__file__).resolve().parent / "mined.jsonl"
#: The options that bring what is found of a grade, too.
GRADES: dict[str, list[str]] = {"certain": [], "likely": ["--likely"]}


def is_found(bug: dict[str, Any], found: list[tuple[str, int, str]], folder: Path) -> bool:
    """Whether one of the findings (path, line and code) tells of a bug."""
    near = range(bug["line"] - 2, bug["line"] + 3)
    places = {(bug["path"], line) for line in (*near, *bug["alt_lines"])}
    places |= {(path, line) for path, line in bug["alt_places"]}
    return any(
        code in bug["codes"] and (str((folder / path).relative_to(folder)), line) in places
        for path, line, code in found
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", type=Path, required=True)
    parser.add_argument("--tool", default="sampler-lint check")
    parser.add_argument("--list", action="store_true", help="name each bug")
    arguments = parser.parse_args()
    tool = [*shlex.split(arguments.tool), "--select", "ALL"]
    bugs = [json.loads(line) for line in MINED.read_text(encoding="utf-8").splitlines()]
    count: Counter[tuple[str, str]] = Counter()
    for repo, commit in dict.fromkeys((bug["repo"], bug["commit"]) for bug in bugs):
        with tempfile.TemporaryDirectory(prefix="mined-") as name:
            folder = Path(name).resolve()
            try:
                lay_out(arguments.mirror / repo.replace("/", "+") / "repo", commit, folder)
                said = {grade: lint([*tool, *more], folder) for grade, more in GRADES.items()}
            except UnavailableError as error:
                print(f"{repo}: {error}")
                continue
            for bug in bugs:
                if (bug["repo"], bug["commit"]) == (repo, commit):
                    grades = [g for g, found in said.items() if is_found(bug, found, folder)]
                    state = grades[0] if grades else "not found"
                    count.update([(bug["kind"], state), ("all", state)])
                    if arguments.list:
                        print(f"{state}: {bug['id']} {bug['path']}:{bug['line']}")
    for kind in sorted({kind for kind, _ in count}, key=lambda kind: (kind == "all", kind)):
        told = ", ".join(f"{count[kind, state]} {state}" for state in (*GRADES, "not found"))
        print(f"{kind}: {told}")


if __name__ == "__main__":
    main()
