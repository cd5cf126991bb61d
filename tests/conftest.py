"""Options and fixtures that several test modules share."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from cases import Case, all_cases, write_tree
from sampler_lint.harness import contained, prove, verify
from sampler_lint.harness.world import World
from snippet_files import rewrite

# How fast examples are found and tried is the machine's affair.
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-expected",
        action="store_true",
        help="rewrite what fixtures and snippets expect from what the rules say now, for review",
    )
    parser.addoption(
        "--whole",
        action="store_true",
        help="all awkward programs, spellings, shapes that grow and ways to end a run: by default "
        "some of them",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only ``--whole`` asks for.

    And count calls last: where coverage is measured (`.ci/measured.py`), each counts twice as much.

    That is in the first of several processes, which begins with the first of the tests.
    """
    if not config.getoption("--whole"):
        left_out = [item for item in items if item.get_closest_marker("whole") is not None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("whole") is None]
    items.sort(key=lambda item: item.path.name == "test_growth.py")


#: What each snippet says now, by file and title. One process is told of all tests and writes it.
_said: dict[str, dict[str, str]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for key, value in report.user_properties if report.when == "call" else ():
        if key == "said":
            path, title, found = value  # type: ignore[misc]
            _said.setdefault(path, {})[title] = found


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        for path, said in _said.items():
            rewrite(Path(path), said)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes a ``case`` runs on every fixture; one of spellings on one of each rule."""
    if "case" in metafunc.fixturenames:
        cases = all_cases()
        is_spelling = metafunc.definition.get_closest_marker("spelling") is not None
        if is_spelling and not metafunc.config.getoption("--whole"):
            cases = [*{case.code: case for case in cases}.values()]
        metafunc.parametrize("case", cases, ids=[case.name for case in cases], scope="session")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or fills the user's cache, and no program is run as it was a moment ago.

    Bytecode counts as new within the second in which a file of the same size is written again.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def bad(case: Case, tmp_path: Path) -> Path:
    """A copy of the case's ``bad`` as a project of its own."""
    return write_tree(tmp_path / "bad", case.files("bad"))


@pytest.fixture
def shared_torch(gloo_session: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs fork their ranks from the process that those of all tests are forked from."""
    monkeypatch.setattr(verify, "World", lambda: contextlib.nullcontext(gloo_session))


@pytest.fixture
def examined_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes are examined in this process, which has torch already."""

    def examine(request: contained.Request, *, timeout: float, **_: object) -> dict[str, object]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "path", [*sys.path])
            patch.delitem(sys.modules, request.target.partition(":")[0], raising=False)
            importlib.invalidate_caches()
            return contained.report_in(contained.examined(request, timeout))

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for user in (prove, contained):  # the command line looks it up when it is called
        monkeypatch.setattr(user, "examine_class", examine)
