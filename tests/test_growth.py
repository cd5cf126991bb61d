"""Work grows with what there is to read, and no faster: calls are counted, not seconds."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from growing import MOST, SHAPES, Shape, calls_of
from sampler_lint.engine import Report, check, fix
from sampler_lint.reporters import FORMATS, Outcome, reporter, shows_edits
from sampler_lint.source import SourceFile
from sampler_lint.suppressions import silence

SMALL = 12
HALF = 8
FEW = 5
#: What one of these takes is much already.
LONG = {"loaders_by_keyword_arguments", "sampler_classes_in_a_chain"}
#: What these take grows faster until a limit is met: from these sizes on it does not.
LIMITED = {
    "ifs_with_loaders_in_a_row": 40,
    "samplers_by_star_imports": 24,
    "seeds": 20,
    "tries_in_a_row": 40,
}
#: Each of these is run in small worlds, which takes as long as a hundred of the others.
TRIED = {
    "sampler_classes",
    "sampler_classes_in_files",
    "sampler_classes_of_one_base",
    "sampler_classes_used",
    "samplers_of_many_star_imports",
    "samplers_without_their_attributes",
    "partitions",
}


def made(folder: Path, shape: Shape, size: int) -> Path:
    """The tree of a shape, written."""
    tree = folder / str(size)
    for name, text in shape(size).items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tree / "pyproject.toml").write_text("")
    return tree


def growth(folder: Path, name: str, work: Callable[[Path], object], small: int) -> float:
    """How many times as many calls it takes to do the work on four times as much."""
    work(made(folder / "first", SHAPES[name], 1))  # what is loaded or built once
    counted = []
    for size in (small, 4 * small):
        tree = made(folder, SHAPES[name], size)
        counted.append(calls_of(lambda tree=tree: work(tree)))
        shutil.rmtree(tree)
    return counted[1] / counted[0]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "shape" in metafunc.fixturenames:
        whole = metafunc.config.getoption("--whole")
        metafunc.parametrize("shape", [*SHAPES] if whole else [*SHAPES][::3])


def test_four_times_as_much_to_read_is_at_most_five_times_the_work(
    shape: str, tmp_path: Path
) -> None:
    small = LIMITED.get(shape) or (FEW if shape in TRIED else HALF if shape in LONG else SMALL)
    assert growth(tmp_path, shape, lambda tree: check([str(tree)]), small) <= MOST


@pytest.mark.parametrize(
    "name",
    [
        *("loaders_and_loops", "files", "cells", "unused_suppressions"),
        *("loops_of_one_function", "loops_of_one_class"),
    ],
)
def test_four_times_as_many_fixes_are_at_most_five_times_the_work(
    name: str, tmp_path: Path
) -> None:
    assert growth(tmp_path, name, lambda tree: fix([str(tree)]), FEW) <= MOST


@pytest.fixture(scope="module")
def found_by_size(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, int, bool], Report]:
    """What is found in the tree of a shape and size: once for all formats."""

    @functools.cache
    def found(name: str, size: int, edits: bool) -> Report:
        return check([str(made(tmp_path_factory.mktemp(name), SHAPES[name], size))], edits=edits)

    return found


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("name", ["loaders_and_loops", "cells"])
def test_four_times_as_many_findings_are_at_most_five_times_the_telling(
    name: str, format_: str, found_by_size: Callable[[str, int, bool], Report]
) -> None:
    counted = []
    for size in (1, FEW, 4 * FEW):
        found = found_by_size(name, size, shows_edits(format_))
        assert len(found.findings) == size
        outcome = Outcome(found.findings, len(found.files), width=80)
        counted.append(calls_of(lambda outcome=outcome: reporter(format_)(outcome)))
    assert counted[2] <= MOST * counted[1]


def test_four_times_as_many_findings_take_at_most_five_times_the_silencing(tmp_path: Path) -> None:
    counted = []
    for size in (1, FEW, 4 * FEW):
        tree = made(tmp_path, SHAPES["loaders_and_loops"], size)
        findings = check([str(tree)]).findings
        source = SourceFile("train.py", (tree / "train.py").read_bytes())
        counted.append(calls_of(lambda source=source, said=findings: silence(source, said)))
    assert counted[2] <= MOST * counted[1]
