"""Whether the findings in published packages full of samplers are right, as judged in their place.

    python benchmarks/wild/wheels.py [--tool sampler-lint] [--keep DIR] [--only NAME ...] [--list]

Each package of judged/wheels.txt is downloaded at its version (or taken from this environment, if
it is installed at that version), unpacked, linted with every rule (nothing of it is run) and
compared with judged/wheels.jsonl. Exit code 1: a finding is judged wrong or is not judged yet;
2: a package is not at hand or could not be linted.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
from precision import JUDGED, UnavailableError, lint, print_table


class Place(NamedTuple):
    """Where a finding stands."""

    package: str
    version: str
    path: str
    line: int
    code: str


def packages() -> list[tuple[str, str]]:
    """Each package that was looked at, with its version."""
    rows = (JUDGED / "wheels.txt").read_text(encoding="utf-8").split("\n")
    return [(name, version) for name, version in (row.split("==") for row in rows if row)]


def judgements() -> dict[Place, str]:
    """The verdict on each judged finding: ``right`` or ``wrong``.

    Raises:
        ValueError: a place is judged twice, or the verdict is another word.
    """
    verdicts: dict[Place, str] = {}
    for line in (JUDGED / "wheels.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        place = Place(*(row[name] for name in Place._fields))
        if place in verdicts or row["verdict"] not in ("right", "wrong") or not row["reason"]:
            raise ValueError(line)
        verdicts[place] = row["verdict"]
    return verdicts


def _is_installed(name: str, version: str) -> bool:
    try:
        return metadata.version(name).partition("+")[0] == version
    except metadata.PackageNotFoundError:
        return False


def lay_out(name: str, version: str, folder: Path) -> None:
    """Write the ``*.py`` files of a package under ``folder``, as a project of its own.

    Raises:
        UnavailableError: it is neither installed nor to be had.
    """
    tree = folder / "tree"
    if _is_installed(name, version):
        for file in metadata.files(name) or ():
            if file.suffix == ".py" and ".." not in file.parts:
                target = tree / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), target)
    else:
        _download(name, version, folder)
    (tree / "pyproject.toml").touch()


def _download(name: str, version: str, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--dest", str(folder), f"{name}=={version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # A source archive is there even where its metadata cannot be made.
    archive = next((path for path in folder.iterdir() if path.suffix in {".whl", ".gz"}), None)
    if archive is None:
        raise UnavailableError(done.stderr[-400:])
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder / "tree")
    else:
        with tarfile.open(archive) as sources:
            sources.extractall(folder, filter="data")
        next(path for path in folder.iterdir() if path.is_dir()).rename(folder / "tree")
    archive.unlink()


def findings(
    tool: Sequence[str], keep: Path, wanted: Sequence[tuple[str, str]]
) -> tuple[set[Place], list[str]]:
    """All findings in the packages, and the complaints about those that are not at hand."""
    found: set[Place] = set()
    complaints = []
    for name, version in wanted:
        folder = keep / f"{name}-{version}"
        tree = (folder / "tree").resolve()
        try:
            if not tree.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                lay_out(name, version, folder)
            for path, line, code in lint([*tool, "--select", "ALL", "--likely"], tree):
                relative = Path(path).relative_to(tree) if Path(path).is_absolute() else Path(path)
                found.add(Place(name, version, relative.as_posix(), line, code))
        except UnavailableError as error:
            complaints.append(f"{name}: {error}")
    return found, complaints


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--tool", default="sampler-lint", help="the command to judge")
    parser.add_argument("--keep", type=Path, help="a folder for what is downloaded")
    parser.add_argument("--only", nargs="*", help="names of packages")
    parser.add_argument("--list", action="store_true", help="print what is wrong, new or gone")
    arguments = parser.parse_args(argv)

    wanted = [each for each in packages() if not arguments.only or each[0] in arguments.only]
    verdicts = {place: v for place, v in judgements().items() if place[:2] in set(wanted)}
    with tempfile.TemporaryDirectory(prefix="wheels-") as temporary:
        keep = arguments.keep or Path(temporary)
        found, complaints = findings(shlex.split(arguments.tool), keep, wanted)
    absent = {complaint.split(":")[0] for complaint in complaints}
    status = {place: verdicts.get(place, "new") for place in found}
    status.update({p: "gone" for p in verdicts if p not in found and p.package not in absent})
    total = print_table({place: (place.code, state) for place, state in status.items()})
    print(f"{total['right']} of {total['findings']} findings in {len(wanted)} packages are right.")
    if arguments.list:
        for place, state in sorted(status.items()):
            if state != "right":
                where = f"{place.package}=={place.version} {place.path}:{place.line}"
                print(f"{state:6}{place.code} {where}")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 2 if complaints else int(total["right"] < total["findings"])


if __name__ == "__main__":
    sys.exit(main())
