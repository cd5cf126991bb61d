"""Choosing fixes, making edits, writing files, and the rounds of ``engine.fix``."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampler_lint import engine, rounds
from sampler_lint.discovery import find_files
from sampler_lint.engine import FixReport, Options, Report
from sampler_lint.findings import Applicability, Edit, FileError, Finding, Fix, Position
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
from sampler_lint.suppressions import Suppressions

SAFE, UNSAFE, DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY


def finding(
    *edits: tuple[int, int, str] | Edit,
    applicability: Applicability = SAFE,
    row: int = 1,
    path: str = "a.py",
    code: str = "SMP101",
) -> Finding:
    made = tuple(edit if isinstance(edit, Edit) else Edit(path, *edit) for edit in edits)
    place = Position(row, 1)
    return Finding(code, "text", path, place, place, Fix("Mend it", applicability, made))


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
        for broken in ("x = ", "return 1\n", "def f():\nx", "\0", "(" * 5000):
            assert not parses(broken)


# write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


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
    target.chmod(0o444)
    for path, expect, reason in [
        (target, b"old", "read-only"),
        (tmp_path, None, "no regular file"),
        (tmp_path / "none.py", None, "No such file"),
    ]:
        with pytest.raises(SourceError, match=reason) as caught:
            write_whole(str(path), b"new", expect=expect)
        assert caught.value.error.path == str(path)
    target.chmod(0o644)
    with pytest.raises(SourceError, match="changed by somebody else"):
        write_whole(str(target), b"new", expect=b"other")
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.py"]


def test_refuses_what_the_system_forbids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.py"
    target.write_bytes(b"old")
    for forbidden, reason in [(target, "the file is read-only"), (tmp_path, "its folder")]:
        # Root may write everywhere, so the answer of the system is replaced.
        monkeypatch.setattr(os, "access", lambda path, mode, no=forbidden: Path(path) != no)
        with pytest.raises(SourceError, match=reason):
            write_whole(str(target), b"new", expect=b"old")
    assert target.read_bytes() == b"old"


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_a_failed_write_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    target = tmp_path / "a.py"
    target.write_bytes(b"old")
    monkeypatch.setattr(os, call, full)
    with pytest.raises(SourceError, match="cannot be written: No space left on device"):
        write_whole(str(target), b"new", expect=b"old")
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

def check(paths, options, *, overlay):
    report = Report(files=find_files(paths).files)
    for path in report.files:
        data = overlay.get(path) or open(path, "rb").read()
        if data.startswith(b"old"):
            fix = Fix("Mend it", Applicability.SAFE, (Edit(path, 0, 3, "new"),))
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
                pass
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


# engine.fix, with a check that knows nothing of samplers

Rule = Callable[[str, str], list[Finding]]


def replacing(pattern: str, content: str, **options: object) -> Rule:
    """A rule by which each match of ``pattern`` is to be replaced by ``content``."""
    code = str(options.get("code", "SMP101"))
    applicability = options.get("applicability", SAFE)
    assert isinstance(applicability, Applicability)

    def rule(path: str, text: str) -> list[Finding]:
        source = SourceFile(path, text.encode("utf-8", "surrogatepass"))
        return [
            Finding(
                code,
                str(options.get("message", f"{match[0]} is wrong")),
                path,
                source.position(match.start()),
                source.position(match.end()),
                Fix(
                    "Mend it",
                    applicability,
                    (Edit(path, match.start(), match.end(), match.expand(content)),),
                ),
            )
            for match in re.finditer(pattern, text)
        ]

    return rule


class Bench:
    """A working directory, rules, and how often they were asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rules: list[Rule] = []
        self.checks = 0
        self.before_return: Callable[[], None] = lambda: None

    def check(
        self,
        paths: Sequence[str],
        options: Options,
        *,
        overlay: Mapping[str, bytes] | None = None,
    ) -> Report:
        self.checks += 1
        report = Report(files=find_files(paths, options.exclude).files)
        for path in report.files:
            data = (overlay or {}).get(path) or Path(path).read_bytes()
            try:
                source = SourceFile(path, data)
            except SourceError as error:
                report.errors.append(error.error)
                continue
            for rule in self.rules:
                for found in rule(path, source.text):
                    silent = Suppressions(source).covers(found)
                    (report.suppressed if silent else report.findings).append(found)
        report.findings.sort(key=lambda found: found.sort_key)
        self.before_return()
        return report

    def fix(self, *paths: str, **options: bool) -> FixReport:
        return engine.fix(paths or ["."], **options)

    def put(self, **files: str | bytes) -> None:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            (self.folder / f"{name}.py").write_bytes(data)

    def get(self, name: str = "a") -> str:
        return (self.folder / f"{name}.py").read_bytes().decode()

    def quiet(self) -> bool:
        """Whether fixing again changes nothing."""
        before = {path: path.read_bytes() for path in self.folder.glob("*.py")}
        again = self.fix()
        after = {path: path.read_bytes() for path in self.folder.glob("*.py")}
        return before == after and not again.changed and not again.fixed


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engine, "check", bench.check)
    return bench


def reasons(report: FixReport) -> list[str]:
    assert [left for left, _ in report.left] == report.report.findings
    return [reason for _, reason in report.left]


def test_fixes_until_quiet_and_says_what_it_did(bench: Bench) -> None:
    bench.rules = [replacing("foo", "bar"), replacing("bar", "baz", code="SMP102")]
    bench.put(a="foo = bar\n", b="x = 1\n")
    report = bench.fix()
    assert bench.get() == "baz = baz\n"
    assert report.changed == {"a.py": (b"foo = bar\n", b"baz = baz\n")}
    assert [found.code for found in report.fixed] == ["SMP101", "SMP102", "SMP102"]
    assert (report.left, report.errors, report.report.findings) == ([], [], [])
    assert bench.checks == 3
    assert bench.quiet()
    assert names(bench.folder) == ["a.py", "b.py"]


def test_without_writing_nothing_is_written(bench: Bench) -> None:
    bench.rules = [replacing("foo", "bar")]
    bench.put(a="foo\n")
    (bench.folder / "a.py").chmod(0o444)
    report = bench.fix(write=False)
    assert report.changed == {"a.py": (b"foo\n", b"bar\n")}
    assert bench.get() == "foo\n"


def test_an_overlay_stands_for_the_file(bench: Bench) -> None:
    bench.rules = [replacing("foo", "bar")]
    bench.put(a="other\n")
    report = engine.fix(["a.py"], overlay={"a.py": b"foo\n"}, write=False)
    assert report.changed == {"a.py": (b"foo\n", b"bar\n")}
    report = engine.fix(["a.py"], overlay={"a.py": b"foo\n"})
    assert report.changed == {}
    assert "changed by somebody else" in report.errors[0].reason
    assert bench.get() == "other\n"


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbffoo = 1\r\n",
        b"foo = 1\r\nif foo:\r\n\tfoo\r\n",
        b"foo = 1\r\nx = 2\nfoo\rfoo",
        b"foo\rfoo\r",
        b"\x0cfoo\n\x0c\nfoo = '\t'  \n\n\n",
        b"# coding: latin-1\nfoo = '\xe9\xff'\n",
        b"# coding: shift-jis\r\nfoo = '"
        + "\u65e5\u672c\u8a9e\uff3c".encode("shift-jis")
        + b"'\r\n",
        "foo = '\U0001f600\u2028'; foo".encode(),
    ],
)
def test_bytes_outside_the_edits_stay(bench: Bench, data: bytes) -> None:
    bench.rules = [replacing("foo", "quux")]
    bench.put(a=data)
    report = bench.fix()
    assert report.errors == []
    assert (bench.folder / "a.py").read_bytes() == data.replace(b"foo", b"quux")
    assert bench.quiet()


def test_bytes_that_would_not_survive_are_left_alone(bench: Bench) -> None:
    data = b"# coding: utf-7\nfoo = '+AGE-'\n"  # utf-7 has two spellings of "a"
    bench.rules = [replacing("foo", "bar")]
    bench.put(a=data)
    assert reasons(bench.fix()) == [
        "the file's bytes are not plain utf-7, so they could not be kept"
    ]
    assert (bench.folder / "a.py").read_bytes() == data


def test_a_fix_that_cannot_be_encoded_is_taken_back(bench: Bench) -> None:
    bench.rules = [replacing("foo", "'\u65e5'"), replacing("eggs", "spam", code="SMP102")]
    bench.put(a=b"# coding: latin-1\nfoo\n", b=b"eggs\n")
    report = bench.fix()
    assert reasons(report) == ["reverted: a.py could no longer be encoded as iso-8859-1"]
    assert [error.path for error in report.errors] == ["a.py"]
    assert bench.get("b") == "spam\n"
    assert bench.quiet()


def test_a_file_that_would_break_is_put_back_whole(bench: Bench) -> None:
    bench.rules = [replacing("foo", "("), replacing("eggs", "spam", code="SMP102")]
    bench.put(a="foo\neggs\n", b="eggs\n")
    report = bench.fix()
    assert bench.get("a") == "foo\neggs\n"
    assert bench.get("b") == "spam\n"
    assert reasons(report) == ["reverted: a.py would no longer parse"] * 2
    assert [str(error) for error in report.errors] == [
        "a.py: fixes reverted (SMP101 at a.py:1, SMP102 at a.py:2): a.py would no longer parse"
    ]
    assert bench.quiet()


def two_files(path: str, text: str) -> list[Finding]:
    """Rename ``old`` to ``new`` in a.py and b.py together."""
    if path != "a.py" or "old" not in text:
        return []
    other = Path("b.py").read_text().index("old")
    here = text.index("old")
    edits = (Edit("a.py", here, here + 3, "new"), Edit("b.py", other, other + 3, "new"))
    place = SourceFile(path, text.encode()).position(here)
    return [Finding("SMP104", "old name", path, place, place, Fix("Rename", SAFE, edits))]


def test_a_fix_of_two_files_is_made_in_both_or_none(bench: Bench) -> None:
    bench.rules = [two_files]
    bench.put(a="old\n", b="x = old\n")
    assert list(bench.fix().changed) == ["a.py", "b.py"]
    assert (bench.get("a"), bench.get("b")) == ("new\n", "x = new\n")

    bench.put(a="old\n", b="x = old; foo\n")
    bench.rules = [two_files, replacing("foo", "(")]
    report = bench.fix()
    assert reasons(report) == ["reverted: b.py would no longer parse"] * 2
    assert (bench.get("a"), bench.get("b")) == ("old\n", "x = old; foo\n")


def test_only_files_that_were_asked_for_are_edited(bench: Bench) -> None:
    bench.rules = [two_files]
    bench.put(a="old\n", b="x = old\n")
    assert reasons(bench.fix("a.py")) == ["its fix edits b.py, which was not asked for"]
    assert (bench.get("a"), bench.get("b")) == ("old\n", "x = old\n")


def test_a_second_file_that_cannot_be_written_undoes_the_first(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(path: str, data: bytes, *, expect: bytes | None) -> None:
        if path == "b.py":
            raise SourceError(FileError(path, "cannot be written: disk full"))
        write_whole(path, data, expect=expect)

    bench.rules = [two_files, replacing("foo", "bar")]
    bench.put(a="old\n", b="x = old\n", c="foo\n")
    monkeypatch.setattr(rounds, "write_whole", failing)
    report = bench.fix()
    assert (bench.get("a"), bench.get("b"), bench.get("c")) == ("old\n", "x = old\n", "bar\n")
    assert list(report.changed) == ["c.py"]
    assert [found.path for found in report.fixed] == ["c.py"]
    assert reasons(report) == ["not written, see the error for the file"]
    assert [str(error) for error in report.errors] == ["b.py: cannot be written: disk full"]


def test_a_read_only_file_is_left_with_all_fixes_that_need_it(bench: Bench) -> None:
    bench.rules = [two_files, replacing("foo", "bar")]
    bench.put(a="old; foo\n", b="x = old\n")
    (bench.folder / "b.py").chmod(0o444)
    report = bench.fix()
    assert reasons(report) == ["cannot be written: the file is read-only"]
    assert (bench.get("a"), bench.get("b")) == ("old; bar\n", "x = old\n")


def test_a_file_saved_while_it_is_checked_is_left_alone(bench: Bench) -> None:
    bench.rules = [replacing("foo", "bar")]
    bench.put(a="x; foo\n")
    bench.before_return = lambda: bench.put(a="foo = 'somebody typed this meanwhile'\n")
    report = bench.fix()
    assert [reason for _, reason in report.left] == ["the file was changed while it was checked"]
    assert bench.get() == "foo = 'somebody typed this meanwhile'\n"


def test_suppressed_findings_are_not_fixed(bench: Bench) -> None:
    bench.rules = [replacing("foo", "bar")]
    bench.put(a="foo  # noqa: SMP101\nfoo\n")
    report = bench.fix()
    assert bench.get() == "foo  # noqa: SMP101\nbar\n"
    assert len(report.report.suppressed) == 1


def test_unsafe_fixes_need_leave(bench: Bench) -> None:
    bench.rules = [replacing("foo", "bar", applicability=UNSAFE)]
    bench.put(a="foo\n")
    assert reasons(bench.fix()) == ["unsafe: use --unsafe-fixes"]
    assert bench.get() == "foo\n"
    assert reasons(bench.fix(unsafe=True)) == []
    assert bench.get() == "bar\n"


def test_overlapping_fixes_are_made_one_after_the_other(bench: Bench) -> None:
    bench.rules = [
        replacing(r"\bf\((.*)\)", r"g(\1)"),
        replacing(r"h\((\w*)\)", r"k(\1)", code="SMP102"),
    ]
    bench.put(a="f(h(x))\n")
    report = bench.fix()
    assert bench.get() == "g(k(x))\n"
    assert len(report.fixed) == 2
    assert bench.quiet()


@pytest.mark.parametrize("content", ["foo ", "x; foo", "foo; foo", "(\nfoo)"])
def test_a_fix_that_leaves_its_finding_is_taken_back(bench: Bench, content: str) -> None:
    bench.rules = [replacing("foo", content), replacing("eggs", "spam", code="SMP102")]
    bench.put(a="eggs; eggs\nfoo\neggs\n")
    report = bench.fix()
    assert bench.get() == "spam; spam\nfoo\nspam\n"
    assert reasons(report) == ["reverted: the fix does not remove the finding"]
    assert len(report.fixed) == 3
    assert bench.quiet()


def test_what_is_taken_back_stays_so_when_later_rounds_move_it(bench: Bench) -> None:
    bench.rules = [
        replacing("foo", "foo "),
        replacing("(?m)^one$", "two", code="SMP102"),
        replacing("(?m)^two$", "three\nthree", code="SMP103"),
    ]
    bench.put(a="one\nfoo\n")
    report = bench.fix()
    assert bench.get() == "three\nthree\nfoo\n"
    assert reasons(report) == ["reverted: the fix does not remove the finding"]
    assert bench.checks == 4
    assert bench.quiet()


def unfixable(word: str, code: str) -> Rule:
    return lambda path, text: [
        replace(each, fix=None) for each in replacing(word, "", code=code)(path, text)
    ]


def test_a_fix_that_brings_up_what_stays_is_taken_back(bench: Bench) -> None:
    bench.rules = [
        replacing("foo", "bar"),
        unfixable("bar", "SMP102"),
        replacing("eggs", "spam", code="SMP103"),
        replacing("spam", "ham", code="SMP104"),
    ]
    bench.put(a="eggs\nfoo\n", b="eggs\n", c="bar\n")
    report = bench.fix()
    assert (bench.get("a"), bench.get("b"), bench.get("c")) == ("ham\nfoo\n", "ham\n", "bar\n")
    assert reasons(report) == ["reverted: the fix would bring up SMP102", "no fix"]
    assert [f.code for f in report.fixed] == ["SMP103", "SMP104"] * 2
    assert bench.quiet()


def test_fixes_that_only_together_bring_something_up_are_taken_back(bench: Bench) -> None:
    bench.rules = [
        replacing("foo", "bar"),
        replacing("eggs", "spam", code="SMP103"),
        unfixable("bar\nspam", "SMP102"),
    ]
    bench.put(a="foo\neggs\n")
    report = bench.fix()
    assert reasons(report) == ["reverted: the fix would bring up SMP102"] * 2
    assert bench.quiet()


def test_a_fix_that_brings_up_something_in_another_file_is_taken_back(bench: Bench) -> None:
    def rule(path: str, text: str) -> list[Finding]:
        """Something in b.py once a.py is fixed, told by the length of a.py in the overlay."""
        place = Position(1, 1)
        return [Finding("SMP102", "new", path, place, place)] if path == "b.py" and seen else []

    seen: list[str] = []

    def watching(path: str, text: str) -> list[Finding]:
        if path == "a.py":
            seen[:] = ["bar"] if "bar" in text else []
        return replacing("foo", "bar")(path, text)

    bench.rules = [watching, rule]
    bench.put(a="foo\n", b="x\n", c="foo\n")
    report = bench.fix("a.py", "b.py")
    assert reasons(report) == ["reverted: the fix would bring up SMP102"]
    assert (bench.get("a"), report.changed) == ("foo\n", {})


def test_a_finding_that_a_fix_moves_or_words_anew_is_not_brought_up(bench: Bench) -> None:
    def wordy(path: str, text: str) -> list[Finding]:
        place = SourceFile(path, text.encode()).position(text.index("eggs"))
        return [Finding("SMP102", f"after {text[:3]}", path, place, place)]

    bench.rules = [replacing("foo", "barbar\nbar"), wordy]
    bench.put(a="foo\neggs\n")
    report = bench.fix()
    assert bench.get() == "barbar\nbar\neggs\n"
    assert reasons(report) == ["no fix"]


def test_one_of_two_like_findings_fixed_does_not_count_as_failed(bench: Bench) -> None:
    bench.rules = [replacing("foo", "bar", message="the same")]
    bench.put(a="foo; foo; foo\n")
    report = bench.fix()
    assert bench.get() == "bar; bar; bar\n"
    assert len(report.fixed) == 3


def test_fixes_that_undo_each_other_are_not_made(bench: Bench) -> None:
    bench.rules = [
        replacing("foo", "bar"),
        replacing("bar", "foo", code="SMP102"),
        replacing("eggs", "spam", code="SMP103"),
    ]
    for text in ("foo\n", "bar\n"):
        bench.put(a=text, b="eggs\n")
        report = bench.fix()
        assert bench.get() == text
        assert "reverted: the fixes undo each other" in reasons(report)
        assert bench.quiet()


def test_a_fix_that_never_settles_ends(bench: Bench) -> None:
    bench.rules = [replacing(r"\bx(\d*)\b", r"x\g<1>0")]
    bench.put(a="x1\n")
    report = bench.fix()
    assert bench.get() == "x1" + "0" * 10 + "\n"
    assert reasons(report) == ["not settled after 10 rounds"]
    assert bench.checks == 11


def test_a_fix_that_changes_nothing_is_not_counted(bench: Bench) -> None:
    bench.rules = [replacing("foo", "foo")]
    bench.put(a="foo\n")
    report = bench.fix()
    assert reasons(report) == ["its fix changes nothing"]
    assert (report.fixed, report.changed) == ([], {})


def test_edits_outside_the_file_are_refused(bench: Bench) -> None:
    bench.rules = [lambda path, text: [finding((3, 99, "x"), path=path)]]
    bench.put(a="foo\n")
    assert reasons(bench.fix()) == ["its edits lie outside the file"]


def test_a_fix_that_spoils_the_encoding_is_taken_back(bench: Bench) -> None:
    bench.rules = [replacing("foo = 1", "# coding: nonsense")]
    bench.put(a="foo = 1\n")
    report = bench.fix()
    assert bench.get() == "foo = 1\n"
    assert reasons(report) == ["reverted: a.py could no longer be encoded as utf-8"]


def test_what_does_not_compile_is_left_alone(bench: Bench) -> None:
    bench.rules = [replacing("foo", "bar")]
    bench.put(a="foo\nreturn 1\n")
    assert reasons(bench.fix()) == ["the file does not compile"]
    assert bench.get() == "foo\nreturn 1\n"


def test_a_file_that_the_check_can_no_longer_read_is_put_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(
        paths: Sequence[str], options: Options, *, overlay: Mapping[str, bytes] | None = None
    ) -> Report:
        report = bench.check(paths, options, overlay=overlay)
        if overlay and b"bar" in overlay.get("a.py", b""):
            report.findings = [found for found in report.findings if found.path != "a.py"]
            report.errors.append(FileError("a.py", "too odd for the parser"))
        return report

    monkeypatch.setattr(engine, "check", check)
    bench.rules = [replacing("foo", "bar")]
    bench.put(a="foo\n", b="foo\n")
    report = bench.fix()
    assert reasons(report) == ["reverted: a.py: too odd for the parser"]
    assert (bench.get("a"), bench.get("b")) == ("foo\n", "bar\n")
    assert [error.path for error in report.errors] == ["a.py"]


def test_a_file_that_vanishes_is_left(bench: Bench) -> None:
    bench.rules = [replacing("foo", "bar")]
    bench.put(a="foo\n")
    bench.before_return = lambda: (bench.folder / "a.py").unlink()
    report = bench.fix()
    assert reasons(report) == ["cannot be read: No such file or directory"]
    assert names(bench.folder) == []


def test_a_file_that_cannot_be_put_back_is_reported(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(path: str, data: bytes, *, expect: bytes | None) -> None:
        if path == "b.py" or data == b"old\n":
            raise SourceError(FileError(path, "cannot be written: disk full"))
        write_whole(path, data, expect=expect)

    bench.rules = [two_files]
    bench.put(a="old\n", b="x = old\n")
    monkeypatch.setattr(rounds, "write_whole", failing)
    assert [error.path for error in bench.fix().errors] == ["b.py", "a.py"]
