"""Options and fixtures that several test modules share."""

from __future__ import annotations

from pathlib import Path

import pytest

from cases import Case, all_cases, write_tree


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-expected",
        action="store_true",
        help="rewrite fixtures/*/*/{expected.txt,fixed} from what the rules say now, for review",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes a ``case`` runs on every fixture."""
    if "case" in metafunc.fixturenames:
        cases = all_cases()
        metafunc.parametrize("case", cases, ids=[case.name for case in cases], scope="session")


@pytest.fixture
def bad(case: Case, tmp_path: Path) -> Path:
    """A copy of the case's ``bad`` as a project of its own."""
    return write_tree(tmp_path / "bad", case.files("bad"))
