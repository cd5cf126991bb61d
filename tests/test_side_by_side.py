"""What one program does says nothing about another: a tree finds what its programs find alone."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from cases import read_tree, working_in, write_tree
from sampler_lint.engine import check
from test_snippets import ALL

FIXTURES = Path(__file__).parent.parent / "fixtures"
CODES = sorted({path.parent.name for path in FIXTURES.glob("SMP*/*")})

Found = Counter[tuple[str, int, str, str]]


def found_in(folder: Path, files: dict[str, bytes]) -> Found:
    """The findings of a tree; of the text, what names no place."""
    with working_in(write_tree(folder, files)):
        report = check(["."])
    assert report.errors == []
    return Counter(
        (f.path, f.start.row, f.code, re.sub(r"`?\S+\.py(:\d+)?`?", "PLACE", f.message))
        for f in report.findings
    )


#: What each program says alone: several tests compare with it.
_alone: dict[frozenset[tuple[str, bytes]], Found] = {}


def found_alone(folder: Path, files: dict[str, bytes]) -> Found:
    program = frozenset(files.items())
    if program not in _alone:
        _alone[program] = found_in(folder, files)
    return _alone[program]


def moved(found: Found, folder: str) -> Found:
    return Counter({(f"{folder}/{path}", *rest): n for (path, *rest), n in found.items()})


def side_by_side(programs: dict[str, dict[str, bytes]]) -> dict[str, bytes]:
    return {
        f"{folder}/{name}": data
        for folder, files in programs.items()
        for name, data in files.items()
    }


def expected_of(tmp_path: Path, programs: dict[str, dict[str, bytes]]) -> Found:
    alone: Found = Counter()
    for number, (folder, files) in enumerate(programs.items()):
        alone += moved(found_alone(tmp_path / f"alone{number}", files), folder)
    return alone


def fixture_programs(codes: list[str], ways: int | None = None) -> dict[str, dict[str, bytes]]:
    return {
        f"{code}_{way.name}_{part}".replace("-", "_"): read_tree(way / part)
        for code in codes
        for way in sorted((FIXTURES / code).iterdir())[:ways]
        for part in ("bad", "good")
        if (way / part).is_dir()
    }


def test_fixtures_in_one_tree(tmp_path: Path) -> None:
    programs = fixture_programs(CODES, ways=1)
    assert found_in(tmp_path / "all", side_by_side(programs)) == expected_of(tmp_path, programs)


def test_snippets_in_one_tree(tmp_path: Path) -> None:
    # Some of nearly each rule.
    programs = {f"s{number}": snippet.files() for number, (snippet, _) in enumerate(ALL[::24])}
    assert found_in(tmp_path / "all", side_by_side(programs)) == expected_of(tmp_path, programs)


@pytest.mark.parametrize(
    "code",
    [*CODES[::2], *(pytest.param(code, marks=pytest.mark.whole) for code in CODES[1::2])],
)
def test_copies_of_a_fixture(code: str, tmp_path: Path) -> None:
    for number, files in enumerate(fixture_programs([code]).values()):
        programs = {f"copy{k}": files for k in range(3)}
        copies = found_in(tmp_path / f"copies{number}", side_by_side(programs))
        alone = found_alone(tmp_path / f"alone{number}", files)
        assert copies == sum((moved(alone, folder) for folder in programs), Counter())


PACKAGE = {
    "trainer/__init__.py": "from trainer.loop import Trainer\n",
    "trainer/state.py": """
from trainer.data import make_loader


class State:
    def __init__(self, loader=None, optimizers=None):
        self.loader = loader
        self.optimizers = list(optimizers or [])
""",
    "trainer/data.py": """
from torch.utils.data import DataLoader, DistributedSampler


def make_loader(dataset, batch_sampler=None):
    if batch_sampler is not None:
        return DataLoader(dataset, batch_sampler=batch_sampler)
    return DataLoader(dataset, sampler=DistributedSampler(dataset))
""",
    "trainer/loop.py": """
import torch
from torch.utils.data import DistributedSampler

from trainer.state import State


class Trainer:
    def __init__(self, model, loader=None, optimizers=None):
        self.model = model
        self.state = State(loader, optimizers or torch.optim.SGD(model.parameters(), lr=0.1))

    def fit(self, loader=None, epochs=1):
        loader = loader or self.state.loader
        for epoch in range(epochs):
            if isinstance(loader.sampler, DistributedSampler):
                loader.sampler.set_epoch(epoch)
            for batch in loader:
                self.model(batch).backward()
                for optimizer in self.state.optimizers:
                    optimizer.step()
""",
}


@pytest.mark.parametrize("copies", [2, 10])
def test_copies_of_a_package(copies: int, tmp_path: Path) -> None:
    files = {name: text.encode() for name, text in PACKAGE.items()}
    alone = found_in(tmp_path / "alone", files)
    assert [code for _, _, code, _ in alone] == ["SMP101"]
    programs = {f"copy{k}": files for k in range(copies)}
    found = found_in(tmp_path / "all", side_by_side(programs))
    assert found == sum((moved(alone, folder) for folder in programs), Counter())
