"""Choosing fixes, making edits, writing files; the rounds are in ``test_rounds``."""

from __future__ import annotations

import os
import signal
import stat
import struct
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import DISPLAY, UNSAFE, finding, names
from sampler_lint.findings import Edit, FileError, Finding, Position
from sampler_lint.fixing import (
    apply_edits,
    choose,
    clear_stale,
    edits_of,
    moved,
    parses,
    write_whole,
)
from sampler_lint.source import SourceError, SourceFile

# choose


def test_only_fixes_that_may_be_applied_are_chosen() -> None:
    place = Position(1, 1)
    safe = finding((0, 1, "x"))
    unsafe = finding((2, 3, "x"), applicability=UNSAFE, row=2)
    display = finding((4, 5, "x"), applicability=DISPLAY, row=3)
    none = Finding("SMP102", "text", "b.py", place, place)
    empty = finding(row=4)
    everything = [none, display, empty, unsafe, safe]
    reasons = {
        id(display): "display-only: needs a decision",
        id(empty): "no fix",
        id(none): "no fix",
    }
    chosen, deferred = choose(everything, unsafe=True)
    assert chosen == [safe, unsafe]
    assert {id(left): reason for left, reason in deferred} == reasons
    chosen, deferred = choose(everything, unsafe=False)
    assert chosen == [safe]
    assert (unsafe, "unsafe: use --unsafe-fixes") in deferred
    assert len(deferred) == 4


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ((0, 4, "x"), (4, 8, "y"), True),
        ((0, 4, "x"), (5, 5, "y"), True),
        ((2, 2, "x"), (3, 3, "x"), True),
        ((2, 2, "x"), (2, 2, "x"), True),
        ((0, 4, "x"), (0, 4, "x"), True),
        ((0, 4, "x"), (0, 4, "y"), False),
        ((0, 4, "x"), (3, 8, "y"), False),
        ((0, 8, "x"), (3, 4, "y"), False),
        ((0, 4, "x"), (2, 2, "y"), False),
        ((0, 4, "x"), (4, 4, "y"), False),
        ((4, 8, "x"), (4, 4, "y"), False),
        ((2, 2, "x"), (2, 2, "y"), False),
    ],
)
def test_fixes_that_touch_wait_for_the_next_round(
    one: tuple[int, int, str], other: tuple[int, int, str], together: bool
) -> None:
    for first, second in ((one, other), (other, one)):
        findings = [finding(first, row=3), finding(second, (90, 91, "z"), row=7)]
        chosen, deferred = choose(reversed(findings), unsafe=False)
        if together:
            assert chosen == findings
        else:
            assert chosen == findings[:1]
            assert deferred == [(findings[1], "overlaps the fix of SMP101 at a.py:3")]


def test_the_same_places_in_two_files_do_not_touch() -> None:
    findings = [finding((0, 4, "x")), finding((0, 4, "y"), path="b.py")]
    assert choose(findings, unsafe=False) == (findings, [])


def test_a_deferred_fix_claims_nothing() -> None:
    first = finding((0, 4, "x"), row=1)
    second = finding((3, 6, "y"), (20, 30, "y"), row=2)
    third = finding((25, 26, "z"), row=3)
    chosen, deferred = choose([first, second, third], unsafe=False)
    assert chosen == [first, third]
    assert [left for left, _ in deferred] == [second]


def test_a_shared_edit_is_made_once() -> None:
    shared = (0, 0, "import random\n")
    findings = [finding(shared, (5, 6, "x"), row=1), finding(shared, (8, 9, "y"), row=2)]
    chosen, _ = choose(findings, unsafe=False)
    assert chosen == findings
    assert apply_edits("0123456789", edits_of(chosen)) == "import random\n01234x67y9"


@pytest.mark.parametrize("edits", [[(0, 4, "x"), (3, 5, "y")], [(1, 1, "x"), (1, 1, "y")]])
def test_a_fix_that_contradicts_itself_is_not_made(edits: list[tuple[int, int, str]]) -> None:
    contradiction = finding(*edits)
    assert choose([contradiction], unsafe=True) == (
        [],
        [(contradiction, "its own edits overlap")],
    )


def test_a_fix_may_insert_beside_what_it_replaces() -> None:
    both = finding((2, 4, "x"), (2, 2, "<"), (4, 4, ">"))
    assert choose([both], unsafe=False)[0] == [both]
    assert apply_edits("012345", edits_of([both])) == "01<x>45"


# apply_edits and moved

TEXTS = st.text(alphabet="ab\u00e9\r\n\t\x0c", max_size=30)


@st.composite
def text_and_findings(draw: st.DrawFn) -> tuple[str, list[Finding]]:
    text = draw(TEXTS)
    offsets = st.integers(0, len(text))
    edit = st.tuples(offsets, offsets, st.sampled_from(["", "X", "XYZ"])).map(
        lambda drawn: Edit("a.py", min(drawn[:2]), max(drawn[:2]), drawn[2])
    )
    fixes = draw(st.lists(st.lists(edit, min_size=1, max_size=3), max_size=8))
    return text, [finding(*edits, row=row) for row, edits in enumerate(fixes, 1)]


@given(text_and_findings())
def test_chosen_edits_do_not_touch_and_nothing_else_changes(
    drawn: tuple[str, list[Finding]],
) -> None:
    text, findings = drawn
    chosen, deferred = choose(findings, unsafe=False)
    assert sorted([*map(id, chosen), *(id(left) for left, _ in deferred)]) == sorted(
        map(id, findings)
    )
    edits = edits_of(chosen)
    touched = [offset for edit in edits for offset in range(edit.start, edit.end)]
    assert len(touched) == len(set(touched))
    # An independent way to the same text: character by character, insertions in between.
    slots = [""] * (len(text) + 1)
    kept = [char if offset not in touched else "" for offset, char in enumerate(text)]
    for edit in edits:
        slots[edit.start] += edit.content
    expected = "".join(slot + char for slot, char in zip(slots, [*kept, ""], strict=True))
    assert apply_edits(text, edits) == expected
    assert apply_edits(text, [*edits, *reversed(edits)]) == expected
    encoded = SourceFile("a.py", b"# coding: latin-1\n" + text.encode("latin-1"))
    assert encoded.encode(encoded.text)[18:] == text.encode("latin-1")


@given(text_and_findings())
def test_first_by_place_is_always_chosen_and_choosing_is_stable(
    drawn: tuple[str, list[Finding]],
) -> None:
    _, findings = drawn
    chosen, deferred = choose(findings, unsafe=False)
    assert choose(reversed(findings), unsafe=False) == (chosen, deferred)
    assert choose(chosen, unsafe=False) == (chosen, [])
    sound = [f for f in findings if (f, "its own edits overlap") not in deferred]
    assert chosen[:1] == sound[:1]


@given(text_and_findings(), st.integers(0, 30))
def test_a_character_outside_the_edits_is_found_again(
    drawn: tuple[str, list[Finding]], offset: int
) -> None:
    text, findings = drawn
    edits = edits_of(choose(findings, unsafe=False)[0])
    if offset < len(text):
        new = apply_edits(text, edits)
        start, end = moved(offset, offset, edits)
        if any(edit.start <= offset < edit.end for edit in edits):
            assert 0 <= start <= end <= len(new)
        else:
            assert new[end] == text[offset]
            inserted = [edit for edit in edits if edit.start == edit.end == offset]
            assert end - start == sum(len(edit.content) for edit in inserted)


@pytest.mark.parametrize(
    ("place", "edits", "now"),
    [
        ((5, 5), [(0, 2, "abc")], (6, 6)),
        ((5, 5), [(3, 5, "x")], (4, 4)),
        ((5, 5), [(7, 9, "x")], (5, 5)),
        ((5, 5), [(5, 7, "")], (5, 5)),
        ((5, 5), [(5, 7, "abc")], (5, 8)),
        ((5, 5), [(3, 8, "abc")], (3, 6)),
        ((5, 5), [(5, 5, "abc")], (5, 8)),
        ((5, 5), [(0, 1, "abc"), (3, 8, "x")], (5, 6)),
        ((4, 8), [(5, 6, "abc")], (4, 10)),
        ((4, 8), [(6, 8, "")], (4, 6)),
        ((4, 8), [(0, 2, ""), (3, 5, ""), (6, 9, "ab")], (1, 4)),
    ],
)
def test_where_a_place_moves_to(
    place: tuple[int, int], edits: list[tuple[int, int, str]], now: tuple[int, int]
) -> None:
    assert moved(*place, [Edit("a.py", *edit) for edit in edits]) == now


@pytest.mark.parametrize(
    "edits", [[(0, 2, ""), (1, 3, "")], [(2, 9, "")], [(3, 1, "")], [(-1, 1, "")]]
)
def test_edits_that_cannot_be_made_are_refused(edits: list[tuple[int, int, str]]) -> None:
    with pytest.raises(ValueError, match="edit"):
        apply_edits("0123", [Edit("a.py", *edit) for edit in edits])


def test_parses_compiles_quietly_and_runs_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parses("x = 1 is 1\ny = '\\d'\n")
        assert parses("raise SystemExit\r\n")
        assert parses("x: (a := 1)\n"), "this module's own __future__ is not the file's"
        for broken in ("x = ", "return 1\n", "def f():\nx", "\0", "(" * 5000):
            assert not parses(broken)


def test_parses_what_a_newer_python_does() -> None:
    newer = 'type X = int\ndef f[T](d: T):\n    return f"{d["a"]}"\n'
    assert parses(newer)
    assert not parses(newer + "x = ")
    assert not parses(newer + "return 1\n")


# write_whole


def acl(*entries: tuple[int, int, int]) -> bytes:
    """An access control list as Linux keeps it: tag, rights and number of each entry."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
ANYBODY = 0xFFFFFFFF


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="Linux has extended attributes")
def test_writes_keep_attributes_and_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, plain = tmp_path / "shared.py", tmp_path / "plain.py"
    for path in (shared, plain):
        path.write_bytes(b"old")
        path.chmod(0o640)
    user = (2, 6, 1234)  # one more may write
    common = [(1, 6, ANYBODY), (4, 4, ANYBODY), (16, 6, ANYBODY), (32, 0, ANYBODY)]
    listed = acl(common[0], user, *common[1:])
    try:
        os.setxattr(shared, "user.origin", b"here")
        os.setxattr(shared, ACCESS, listed)
        os.setxattr(tmp_path, DEFAULT, listed)
    except OSError:
        pytest.skip("no such attributes on this file system")
    for path in (shared, plain):
        write_whole(str(path), b"new", expect=b"old")
    assert os.getxattr(shared, "user.origin") == b"here"
    assert os.getxattr(shared, ACCESS) == listed
    assert ACCESS not in os.listxattr(plain), "that of the folder is for new files"
    assert stat.S_IMODE(plain.stat().st_mode) == 0o640

    def forbidden(*_: object) -> None:
        raise PermissionError

    for name in ("setxattr", "removexattr", "listxattr"):
        monkeypatch.setattr(os, name, forbidden)
        write_whole(str(shared), b"old", expect=None)


def test_writes_keep_mode_and_link_and_leave_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "real.py"
    target.write_bytes(b"old")
    target.chmod(0o750)
    link = tmp_path / "link.py"
    link.symlink_to("real.py")
    owner = target.stat().st_uid
    write_whole(str(link), b"new\r\n", expect=b"old")
    assert target.read_bytes() == b"new\r\n"
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o750
    assert target.stat().st_uid == owner
    assert names(tmp_path) == ["link.py", "real.py"]
    write_whole(str(target), b"newer", expect=None)
    assert target.read_bytes() == b"newer"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_writes_keep_the_owner(tmp_path: Path) -> None:
    target = tmp_path / "a.py"
    target.write_bytes(b"old")
    os.chown(target, 1234, 2345)
    target.chmod(0o4755)
    write_whole(str(target), b"new", expect=b"old")
    status = target.stat()
    assert (status.st_uid, status.st_gid) == (1234, 2345)
    assert stat.S_IMODE(status.st_mode) == 0o4755


def test_refuses_what_it_must_not_write(tmp_path: Path) -> None:
    target = tmp_path / "a.py"
    target.write_bytes(b"old")
    fixed, folder, none = (str(tmp_path / name) for name in ("a.py", ".", "none.py"))
    for mode, path, expect, reason in [
        (0o444, fixed, b"old", "cannot be written: the file is read-only"),
        (0o555, fixed, b"old", "cannot be written: the file is read-only"),
        (0o644, fixed, b"other", "not written: changed by somebody else meanwhile"),
        (0o644, folder, None, "cannot be written: is not a regular file"),
        (0o644, none, None, "cannot be written: No such file or directory"),
    ]:
        target.chmod(mode)
        with pytest.raises(SourceError) as caught:
            write_whole(path, b"new", expect=expect)
        assert caught.value.error == FileError(path, reason)
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.py"]


def test_whoever_may_not_give_a_file_away_may_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*args: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    target = tmp_path / "a.py"
    target.write_bytes(b"old")
    monkeypatch.setattr(os, "chown", forbidden, raising=False)
    write_whole(str(target), b"new", expect=b"old")
    assert target.read_bytes() == b"new"


def test_refuses_what_the_system_forbids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.py"
    target.write_bytes(b"old")
    for forbidden, reason in [
        (target, "cannot be written: the file is read-only"),
        (tmp_path, "cannot be written: its folder is read-only"),
    ]:
        # Root may write everywhere, so the answer of the system is replaced.
        monkeypatch.setattr(os, "access", lambda path, mode, no=forbidden: Path(path) != no)
        with pytest.raises(SourceError) as caught:
            write_whole(str(target), b"new", expect=b"old")
        assert caught.value.error == FileError(str(target), reason)
    assert target.read_bytes() == b"old"


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_a_failed_write_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: OSError, reason: str
) -> None:
    def full(*args: object) -> None:
        raise error

    target = tmp_path / "a.py"
    target.write_bytes(b"old")
    monkeypatch.setattr(os, call, full)
    with pytest.raises(SourceError) as caught:
        write_whole(str(target), b"new", expect=b"old")
    assert caught.value.error == FileError(str(target), f"cannot be written: {reason}")
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.py"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "a.py"
    contents = [letter * 300_000 for letter in (b"a", b"b")]
    target.write_bytes(contents[0])
    program = (
        "import sys; from sampler_lint.fixing import write_whole\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    for letter in (b'b', b'a'):\n"
        "        write_whole(sys.argv[1], letter * 300_000, expect=None)\n"
    )
    seen = set()
    for attempt in range(12):
        writer = subprocess.Popen(
            [sys.executable, "-c", program, str(target)], stdout=subprocess.PIPE
        )
        assert writer.stdout
        writer.stdout.readline()
        time.sleep(0.003 * attempt + 0.005)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        data = target.read_bytes()
        assert data in contents
        seen.add(data)
    assert seen == set(contents), "the writer was never killed after a write"


@pytest.mark.skipif(sys.platform == "win32", reason="needs file locks")
def test_only_temporary_files_of_the_dead_are_cleared_away(tmp_path: Path) -> None:
    ours = tmp_path / ".sampler-lint-abc123_z.tmp"
    for name in (ours.name, ".sampler-lint-a.py", "sampler-lint-abc.tmp", ".sampler-lint-a b.tmp"):
        (tmp_path / name).touch()
    (tmp_path / ".sampler-lint-folder.tmp").mkdir()
    (tmp_path / ".sampler-lint-link.tmp").symlink_to("sampler-lint-abc.tmp")
    kept = sorted(set(names(tmp_path)) - {ours.name})
    clear_stale([str(tmp_path), str(tmp_path / "missing")])
    assert names(tmp_path) == kept


@pytest.mark.skipif(sys.platform == "win32", reason="needs file locks")
def test_a_file_that_is_being_written_is_not_cleared_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.py"
    target.write_bytes(b"old")
    replace = os.replace

    def clearing(source: str, destination: str) -> None:
        clear_stale([str(tmp_path)])
        assert Path(source).read_bytes() == b"new"
        replace(source, destination)

    monkeypatch.setattr(os, "replace", clearing)
    write_whole(str(target), b"new", expect=b"old")
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(sys.platform == "win32", reason="needs file locks")
def test_a_temporary_file_cleared_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    flock, made = fcntl.flock, []

    def late(file: IO[bytes], operation: int) -> None:
        (made_now,) = tmp_path.glob(".sampler-lint-*")
        if not made:
            made_now.unlink()
        made.append(made_now)
        flock(file, operation)

    target = tmp_path / "a.py"
    target.write_bytes(b"old")
    monkeypatch.setattr(fcntl, "flock", late)
    write_whole(str(target), b"new", expect=b"old")
    assert target.read_bytes() == b"new"
    assert len(made) == 2
    assert names(tmp_path) == ["a.py"]


#: Fixes 200 files by a rule of its own, for the linter's check takes longer than the writing.
_FIX_ALL = """\
import sys
from sampler_lint import engine
from sampler_lint.engine import Report
from sampler_lint.findings import Applicability, Edit, Finding, Fix, Position
from sampler_lint.discovery import find_files

def check(paths, options, *, overlay, watch, kept, related):
    report = Report(files=find_files(paths).files)
    for path in report.files:
        data = overlay.get(path) or open(path, "rb").read()
        if data.startswith(b"old"):
            fix = Fix("Change it", Applicability.SAFE, (Edit(path, 0, 3, "new"),))
            report.findings.append(
                Finding("SMP101", "text", path, Position(1, 1), Position(1, 4), fix)
            )
    return report

engine.check = check
result = engine.fix(["."])
print(len(result.fixed), len(result.errors))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and file locks")
def test_a_killed_fix_of_200_files_leaves_whole_files_and_the_next_run_tidies(
    tmp_path: Path,
) -> None:
    rest = b"\n# " + b"x" * 50_000 + b"\n"
    whole = {b"old" + rest, b"new" + rest}
    files = [tmp_path / f"package{number % 7}" / f"m{number}.py" for number in range(200)]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"old" + rest)
    run = [sys.executable, "-c", _FIX_ALL]
    killed = strays = 0
    for attempt in range(10):
        first = next(file for file in sorted(files) if file.read_bytes()[:3] == b"old")
        before = first.stat().st_ino
        with subprocess.Popen(run, cwd=tmp_path, stdout=subprocess.PIPE) as fixer:
            while fixer.poll() is None and first.stat().st_ino == before:
                time.sleep(0.0001)  # the fixer needs the core
            time.sleep(0.0007 * attempt)
            fixer.kill()
        killed += fixer.returncode == -signal.SIGKILL
        assert {file.read_bytes() for file in files} <= whole
        strays += len(list(tmp_path.glob("*/.sampler-lint-*")))
    left = sum(file.read_bytes()[:3] == b"old" for file in files)
    assert 0 < left < 200
    assert killed >= 8
    last = subprocess.run(run, cwd=tmp_path, capture_output=True, check=True)
    assert last.stdout.split() == [str(left).encode(), b"0"]
    assert {file.read_bytes() for file in files} == {b"new" + rest}
    assert sorted(tmp_path.rglob("*.*")) == sorted(files)
