"""Fixes on programs that nobody wrote for them: arbitrary ones, and what is installed here."""

from __future__ import annotations

import hashlib
import site
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import EVERY_RULE, all_cases
from sampler_lint import engine
from sampler_lint.engine import FixReport

hypothesmith = pytest.importorskip("hypothesmith")

#: Installed files that are looked at by default, each as a project of its own.
SAMPLE = 40
NAME = "program.py"

#: Programs of one file that have a fix, to stand beside arbitrary code.
FIXABLE = [
    files["train.py"]
    for case in all_cases()
    if list(files := case.files("bad")) == ["train.py"] and case.files("fixed")
]
QUICK = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much,
                           HealthCheck.function_scoped_fixture],
)  # fmt: skip


def compiles(data: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(data, NAME, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
    return True


def fixed(data: bytes) -> FixReport:
    """Every fix of one file, in memory."""
    return engine.fix([NAME], EVERY_RULE, unsafe=True, write=False, overlay={NAME: data})


def assert_sound(data: bytes) -> bytes:
    """No change without a finding, what comes compiles, and fixing again changes nothing."""
    report = fixed(data)
    if not report.fixed:
        assert report.changed == {}
        return data
    (change,) = report.changed.values()
    assert change[0] == data
    assert compiles(change[1])
    again = fixed(change[1])
    assert again.changed == {}
    assert again.fixed == []
    return change[1]


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()


#: Made when a test draws from it: Python's grammar takes seconds to prepare.
PROGRAMS = st.deferred(lambda: st.one_of(hypothesmith.from_node(), hypothesmith.from_grammar()))


@QUICK
@given(program=PROGRAMS)
def test_arbitrary_programs_do_no_harm(nowhere, program):
    # The word makes it a candidate: without it nothing would be looked at.
    data = f"{program}\n# sampler\n".encode("utf-8", "replace")
    if compiles(data):
        assert_sound(data)


@QUICK
@given(program=PROGRAMS, fixable=st.sampled_from(FIXABLE), crlf=st.booleans())
def test_arbitrary_code_below_a_fix_keeps_its_bytes(nowhere, program, fixable, crlf):
    below = f"\n\n# below\n{program}\n".encode("utf-8", "replace")
    if crlf:
        fixable = fixable.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    data = fixable.rstrip() + below
    if compiles(data):
        assert assert_sound(data).endswith(below)


def installed() -> list[Path]:
    """The Python files of the installed packages."""
    folders = [Path(each) for each in site.getsitepackages()]
    return sorted(path for folder in folders for path in folder.rglob("*.py") if path.is_file())


def test_some_installed_files_do_no_harm(nowhere):
    """Those that say a word of ours first; which ones depends on their names alone."""
    files = [path for path in installed() if b"ampler" in path.read_bytes()]
    assert files
    files.sort(key=lambda path: hashlib.sha256(path.name.encode()).digest())
    looked_at = 0
    for path in files[:SAMPLE]:
        data = path.read_bytes()
        if compiles(data):
            assert_sound(data)
            looked_at += 1
    assert looked_at


@pytest.mark.slow
@pytest.mark.whole
def test_everything_installed_does_no_harm():
    """All files of all packages, in one project as they lie there; nothing is written."""
    folders = [each for each in site.getsitepackages() if any(Path(each).rglob("*.py"))]
    for folder in folders:
        report = engine.fix([folder], EVERY_RULE, unsafe=True, write=False)
        assert len(report.report.files) > 100
        assert bool(report.changed) == bool(report.fixed)
        for old, new in report.changed.values():
            assert old != new
            assert compiles(new)
        if report.changed:
            overlay = {path: new for path, (_, new) in report.changed.items()}
            again = engine.fix([folder], EVERY_RULE, unsafe=True, write=False, overlay=overlay)
            assert again.changed == {}
        reverted = [error for error in report.errors if "reverted" in error.reason]
        assert reverted == [], "a codemod wrote what does not compile"
