"""What share of the findings in public repositories is right, as judged in their place.

    python benchmarks/wild/precision.py --mirror DIR [--tool sampler-lint] [--list]

DIR holds a clone of each repository of judged/repositories.txt as OWNER+NAME/repo. Each is laid
out at its commit in a temporary folder (nothing of it is run), linted with the default rules and
compared with judged/*.jsonl. Exit code 1: less than 95 % of the judged findings are right;
2: a repository is not at hand or could not be linted.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

JUDGED = Path(__file__).resolve().parent / "judged"
#: The share of right findings that is asked for.
BAR = 0.95


class Place(NamedTuple):
    """Where a finding stands."""

    repo: str
    commit: str
    path: str
    line: int
    code: str


class UnavailableError(Exception):
    """A repository could not be laid out or linted; the text says why."""


def repositories() -> list[tuple[str, str]]:
    """Each repository that was looked at, with its commit."""
    rows = (JUDGED / "repositories.txt").read_text(encoding="utf-8").split("\n")
    return [(name, commit) for name, commit in (row.split() for row in rows if row)]


def judgements() -> dict[Place, str]:
    """The verdict on each judged finding: ``right`` or ``wrong``.

    Raises:
        ValueError: a place is judged twice, or the verdict is another word.
    """
    verdicts: dict[Place, str] = {}
    for file in sorted(JUDGED.glob("smp*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            place = Place(*(row[name] for name in Place._fields))
            if place in verdicts or row["verdict"] not in ("right", "wrong"):
                raise ValueError(f"{file.name}: {line}")
            verdicts[place] = row["verdict"]
    return verdicts


def _python_files(git: Path, commit: str) -> Iterator[tuple[str, str]]:
    """The object and the path of each regular ``*.py`` file of ``commit``."""
    listing = subprocess.run(
        ["git", "-C", git, "ls-tree", "-r", "-z", commit], capture_output=True, check=False
    )
    if listing.returncode:
        raise UnavailableError(f"{git} has no commit {commit}")
    for row in listing.stdout.decode("utf-8", "surrogateescape").split("\0"):
        meta, _, name = row.partition("\t")
        if name.endswith(".py") and meta.startswith("100"):
            yield meta.split()[2], name


def lay_out(git: Path, commit: str, folder: Path) -> None:
    """Write the ``*.py`` files of ``commit`` under ``folder``.

    Raises:
        UnavailableError: the clone or the commit is not there.
    """
    files = list(_python_files(git, commit))
    asked = "".join(f"{blob}\n" for blob, _ in files).encode()
    answer = subprocess.run(
        ["git", "-C", git, "cat-file", "--batch"], input=asked, capture_output=True, check=True
    ).stdout
    at = 0
    for blob, name in files:
        # One answer is "<object> blob <size>\n<content>\n", or "<object> missing\n".
        end = answer.index(b"\n", at)
        head = answer[at:end].split()
        at = end + 1
        if len(head) != 3:
            raise UnavailableError(f"{git} lacks {name} ({blob})")
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(answer[at : at + int(head[2])])
        at += int(head[2]) + 1


def lint(tool: Sequence[str], folder: Path) -> list[tuple[str, int, str]]:
    """Path, line and code of each finding under ``folder``.

    Raises:
        UnavailableError: the tool failed.
    """
    options = ["--isolated", "--exit-zero", "--output-format", "json"]
    run = subprocess.run([*tool, *options, "."], capture_output=True, cwd=folder, check=False)
    if run.returncode:
        raise UnavailableError(f"exit {run.returncode}: {run.stderr.decode()[-400:]}")
    return [
        (Path(item["filename"]).as_posix(), item["location"]["row"], item["code"])
        for item in json.loads(run.stdout)
        if item["code"].startswith("SMP")  # a file that could not be checked
    ]


def findings(tool: Sequence[str], mirror: Path) -> tuple[set[Place], list[str]]:
    """All findings in the repositories at hand, and the complaints about the others."""
    found: set[Place] = set()
    complaints = []
    for repo, commit in repositories():
        with tempfile.TemporaryDirectory(prefix="precision-") as name:
            folder = Path(name).resolve()
            try:
                lay_out(mirror / repo.replace("/", "+") / "repo", commit, folder)
                for path, line, code in lint(tool, folder):
                    relative = Path(path).relative_to(folder) if Path(path).is_absolute() else path
                    found.add(Place(repo, commit, str(relative), line, code))
            except UnavailableError as error:
                complaints.append(f"{repo}: {error}")
    return found, complaints


def print_table(status: Mapping[object, tuple[str, str]]) -> Counter[str]:
    """Count the states of each code, from place to code and state; the line for all of them."""
    columns = ("findings", "right", "wrong", "new", "gone")
    table: dict[str, Counter[str]] = {"ALL": Counter()}
    for found, state in status.values():
        for code in (found, "ALL"):
            table.setdefault(code, Counter())[state] += 1
    print(f"{'code':8}" + "".join(f"{column:>10}" for column in columns))
    for code, count in sorted(table.items(), key=lambda item: (item[0] == "ALL", item[0])):
        count["findings"] = count["right"] + count["wrong"] + count["new"]
        print(f"{code:8}" + "".join(f"{count[column]:>10}" for column in columns))
    return table["ALL"]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--mirror", type=Path, required=True, help="the folder of the clones")
    parser.add_argument("--tool", default="sampler-lint", help="the command to judge")
    parser.add_argument("--list", action="store_true", help="print what is wrong, new or gone")
    arguments = parser.parse_args(argv)

    verdicts = judgements()
    found, complaints = findings(shlex.split(arguments.tool), arguments.mirror)
    absent = {complaint.split(":")[0] for complaint in complaints}
    status = {place: verdicts.get(place, "new") for place in found}
    status.update({p: "gone" for p in verdicts if p not in found and p.repo not in absent})

    total = print_table({place: (place.code, state) for place, state in status.items()})
    judged = total["right"] + total["wrong"]
    share = total["right"] / judged if judged else 1.0
    looked = len(repositories()) - len(absent)
    print(f"{share:.1%} of {judged} judged findings in {looked} repositories are right.")
    if arguments.list:
        for place, state in sorted(status.items()):
            if state != "right":
                print(
                    f"{state:6}{place.code} {place.repo}@{place.commit[:10]} "
                    f"{place.path}:{place.line}"
                )
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 2 if complaints else int(share < BAR)


if __name__ == "__main__":
    sys.exit(main())
