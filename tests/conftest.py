"""Options and fixtures that several test modules share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from cases import Case, all_cases, write_tree

# How fast examples are found and tried is the machine's affair.
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-expected",
        action="store_true",
        help="rewrite what fixtures and snippets expect from what the rules say now, for review",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes a ``case`` runs on every fixture."""
    if "case" in metafunc.fixturenames:
        cases = all_cases()
        metafunc.parametrize("case", cases, ids=[case.name for case in cases], scope="session")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or fills the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def bad(case: Case, tmp_path: Path) -> Path:
    """A copy of the case's ``bad`` as a project of its own."""
    return write_tree(tmp_path / "bad", case.files("bad"))


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that the test starts open no file of their own for a measurement of coverage."""
    for name in ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"):
        monkeypatch.delenv(name, raising=False)
