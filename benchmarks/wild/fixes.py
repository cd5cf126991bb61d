"""What the fixes do to public repositories that have labelled bugs.

    python benchmarks/wild/fixes.py --cases CASES.jsonl --mirror DIR [--jobs N] [--patches DIR]
    python benchmarks/wild/fixes.py --trees DIR [--jobs N] [--patches DIR]

Each line of CASES.jsonl names a repository (``repo``) and a commit (``before``); the folder of
--mirror holds a clone of each as OWNER+NAME/repo. Every distinct revision, or each folder of
--trees, is laid out in a temporary folder and fixed with every rule and its unsafe fixes. Nothing
of it is ever run. Then

* every changed file parses and compiles, and has lost none of its comments,
* a second run changes nothing,
* what was reported fixed is no longer found, and nothing is found that was not there before,
* what was put in is used: no finding ends by a parameter that nobody passes, a function that nobody
  calls or an attribute that nobody reads (``tests/idle.py``).

--patches keeps one patch a revision, to be read beside what the projects did themselves.
fixes.jsonl says what came of that reading for each labelled case that is found by a rule with
fixes: `same`, `better`, `worse`, or `none` where the finding comes without a fix. Exit code 1: one
of these does not hold, or less than 90 % of the fixes are as good as upstream's; 2: a repository is
not at hand.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import shutil
import sys
import tempfile
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from precision import UnavailableError, lay_out

from sampler_lint import engine
from sampler_lint.engine import Options
from sampler_lint.findings import Finding
from sampler_lint.reporters.diff import unified_diff

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
from idle import idle

VERDICTS = Path(__file__).resolve().parent / "fixes.jsonl"
#: The share of the fixes that upstream made too that are to be as good as upstream's.
BAR = 0.9

EVERY_RULE = Options(select=("ALL",))
Kind = tuple[str, str, str]


@dataclass
class Outcome:
    """What came of one revision."""

    name: str
    unavailable: str = ""
    fixed: Counter[str] = field(default_factory=Counter)
    """Findings by code."""
    left: Counter[str] = field(default_factory=Counter)
    """Findings by the reason why they were not fixed."""
    files: int = 0
    complaints: list[str] = field(default_factory=list)


def kinds(findings: Iterable[Finding]) -> Counter[Kind]:
    """Findings as they can be told apart when lines have moved: without line numbers."""
    return Counter(
        (finding.path, finding.code, re.sub(r":\d+|line \d+", ":N", finding.message))
        for finding in findings
    )


def comments(data: bytes) -> Counter[str]:
    """The comments of a file."""
    return Counter(
        token.string
        for token in tokenize.tokenize(io.BytesIO(data).readline)
        if token.type == tokenize.COMMENT
    )


def broken(path: str, old: bytes, new: bytes) -> Iterator[str]:
    """What is wrong with a changed file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(ast.parse(new), path, "exec", dont_inherit=True)
        lost = comments(old) - comments(new)
    except (SyntaxError, ValueError) as error:
        yield f"{path} is broken: {error}"
    else:
        if lost:
            yield f"{path} has lost {sorted(lost)}"
    if Path(path).read_bytes() != new:
        yield f"{path} does not hold what was reported"


def try_out(source: Path, patches: Path | None, unsafe: bool, revision: tuple[str, str]) -> Outcome:
    """Fix one revision of a repository, or a tree as it is, in a folder of its own."""
    repo, commit = revision
    outcome = Outcome(f"{repo}@{commit[:12]}" if commit else repo)
    with tempfile.TemporaryDirectory(prefix="fixes-") as name:
        folder = Path(name).resolve()
        try:
            if commit:
                lay_out(source / repo.replace("/", "+") / "repo", commit, folder)
            else:
                shutil.copytree(source / repo, folder, dirs_exist_ok=True, symlinks=True)
        except UnavailableError as error:
            outcome.unavailable = str(error)
            return outcome
        os.chdir(folder)
        try:
            _fix(outcome, patches, unsafe)
        finally:
            os.chdir("/")
    return outcome


def _fix(outcome: Outcome, patches: Path | None, unsafe: bool) -> None:
    before = engine.check(["."], EVERY_RULE)
    result = engine.fix(["."], EVERY_RULE, unsafe=unsafe)
    outcome.fixed.update(finding.code for finding in result.fixed)
    outcome.left.update(f"{finding.code} {reason}" for finding, reason in result.left)
    outcome.files = len(result.changed)
    outcome.complaints += [str(error) for error in result.errors]
    for path, (old, new) in result.changed.items():
        outcome.complaints += broken(path, old, new)
    outcome.complaints += idle(result.changed)
    after = result.report
    if result.changed:
        again = engine.fix(["."], EVERY_RULE, unsafe=unsafe)
        outcome.complaints += [f"{path} changes again" for path in again.changed]
        after = again.report
    expected = kinds(before.findings) - kinds(result.fixed)
    for path, code, message in (kinds(after.findings) - expected).elements():
        outcome.complaints.append(f"found after fixing: {path}: {code} {message}")
    if patches is not None and result.changed:
        patch = b"".join(unified_diff(path, *change) for path, change in result.changed.items())
        name = outcome.name.replace("/", "+")
        (patches / f"{name}.patch").write_bytes(patch)


def verdicts() -> Counter[str]:
    """How the fixes of labelled bugs compare with what the projects did."""
    rows = (json.loads(line) for line in VERDICTS.read_text(encoding="utf-8").splitlines())
    return Counter(row["verdict"] for row in rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Print what came of each revision and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--cases", type=Path, help="the labelled cases")
    parser.add_argument("--mirror", type=Path, help="the folder of the clones")
    parser.add_argument("--trees", type=Path, help="a folder of trees, instead of both")
    parser.add_argument("--safe", action="store_true", help="make no unsafe fixes")
    parser.add_argument("--only", nargs="*", help="repositories (owner/name) to look at")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--patches", type=Path, help="a folder for the patches")
    arguments = parser.parse_args(argv)

    if arguments.trees is None and (arguments.cases is None or arguments.mirror is None):
        parser.error("--cases and --mirror are needed, or --trees")
    if arguments.trees is not None:
        revisions = sorted((each.name, "") for each in arguments.trees.iterdir() if each.is_dir())
    else:
        lines = arguments.cases.read_text(encoding="utf-8").splitlines()
        revisions = sorted({(row["repo"], row["before"]) for row in map(json.loads, lines)})
    if arguments.only:
        revisions = [each for each in revisions if each[0] in arguments.only]
    patches = arguments.patches and arguments.patches.resolve()
    if patches:
        patches.mkdir(parents=True, exist_ok=True)
    source = (arguments.trees or arguments.mirror).resolve()
    work = partial(try_out, source, patches, not arguments.safe)
    fixed: Counter[str] = Counter()
    left: Counter[str] = Counter()
    complaints = files = 0
    absent = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for outcome in pool.map(work, revisions):
            if outcome.unavailable:
                absent.append(f"{outcome.name}: {outcome.unavailable}")
                continue
            fixed += outcome.fixed
            left += outcome.left
            files += outcome.files
            complaints += len(outcome.complaints)
            for complaint in outcome.complaints:
                print(f"{outcome.name}: {complaint}", flush=True)
    print(f"{len(revisions) - len(absent)} revisions, {files} files changed")
    print(f"fixed: {fixed.total()}  {dict(sorted(fixed.items()))}")
    print(f"left: {left.total()}")
    for reason, count in left.most_common():
        print(f"  {count:4} {reason}")
    print(f"complaints: {complaints}")
    read = verdicts()
    good = read["same"] + read["better"]
    fixed_too = good + read["worse"]
    print(f"{good} of {fixed_too} fixes of bugs that the projects fixed are as good or better "
          f"({good / fixed_too:.0%}); {read['none']} findings have no fix")  # fmt: skip
    for line in absent:
        print(line, file=sys.stderr)
    if absent:
        return 2
    return int(complaints > 0 or good < BAR * fixed_too)


if __name__ == "__main__":
    sys.exit(main())
