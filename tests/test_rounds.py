"""The rounds of ``engine.fix``, with a check that knows nothing of samplers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from made import SAFE, UNSAFE, finding, names
from sampler_lint import engine, rounds
from sampler_lint.discovery import find_files
from sampler_lint.engine import FixReport, Options, Report
from sampler_lint.findings import Applicability, Edit, FileError, Finding, Fix, Position
from sampler_lint.fixing import write_whole
from sampler_lint.source import SourceError, SourceFile
from sampler_lint.suppressions import Suppressions

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
                    "Change it",
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
        watch: object = None,
        kept: object = None,
        related: bool = False,
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

    def fix(self, *paths: str, **options: Any) -> FixReport:
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
    assert reasons(report) == ["not written, see the error for the file"]
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
    assert reasons(bench.fix("a.py")) == ["its fix edits b.py, which was not among the paths"]
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


@pytest.mark.parametrize(("two", "three"), [("two", "three\nthree"), ("tw", "t")])
def test_what_is_taken_back_stays_so_when_later_rounds_move_it(
    bench: Bench, two: str, three: str
) -> None:
    bench.rules = [
        replacing("foo", "foo "),
        replacing("(?m)^one$", two, code="SMP102"),
        replacing(f"(?m)^{two}$", three, code="SMP103"),
    ]
    bench.put(a="one\nfoo\n")
    report = bench.fix()
    assert bench.get() == f"{three}\nfoo\n"
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
    assert reasons(report) == ["reverted: the fix would cause SMP102", "no fix"]
    assert [f.code for f in report.fixed] == ["SMP103", "SMP104"] * 2
    assert bench.quiet()


def test_many_files_are_taken_back_in_as_many_checks_as_one(bench: Bench) -> None:
    """Each took checks of its own, and what was right was given up after some rounds."""
    bench.rules = [
        replacing("foo", "bar"),
        unfixable("bar", "SMP102"),
        replacing("eggs", "spam", code="SMP103"),
    ]
    bench.put(one="eggs\nfoo\n")
    assert len(bench.fix().fixed) == 1
    alone, bench.checks = bench.checks, 0
    names = [f"m{number}" for number in range(12)]
    bench.put(**dict.fromkeys(names, "eggs\nfoo\n"))
    report = bench.fix()
    assert {bench.get(name) for name in names} == {"spam\nfoo\n"}
    assert [f.code for f in report.fixed] == ["SMP103"] * 12
    assert set(reasons(report)) == {"reverted: the fix would cause SMP102"}
    assert bench.checks == alone
    assert bench.quiet()


def raising(rule: Rule) -> Rule:
    return lambda path, text: [replace(each, hides=True) for each in rule(path, text)]


def test_what_an_error_hid_is_uncovered_not_brought_up(bench: Bench) -> None:
    """The fix of the error stays, and what stands behind it is told."""
    hidden = replacing("(?s)(?<=bar\n)old", "", code="SMP102")
    bench.rules = [
        raising(replacing("foo", "bar")),
        lambda path, text: [replace(each, fix=None) for each in hidden(path, text)],
    ]
    bench.put(a="foo\nold\n")
    report = bench.fix()
    assert bench.get() == "bar\nold\n"
    assert reasons(report) == ["no fix"]
    assert bench.quiet()


def test_what_stands_in_the_fix_of_an_error_is_brought_up(bench: Bench) -> None:
    bench.rules = [raising(replacing("foo", "bar")), unfixable("bar", "SMP102")]
    bench.put(a="foo\n")
    assert reasons(bench.fix()) == ["reverted: the fix would cause SMP102"]
    assert bench.get() == "foo\n"


def test_what_another_fix_causes_behind_an_error_is_taken_back(bench: Bench) -> None:
    bench.rules = [
        raising(replacing("foo", "bar")),
        replacing("eggs", "spam", code="SMP103"),
        unfixable("(?<=bar\n)spam", "SMP102"),
    ]
    bench.put(a="foo\neggs\n")
    report = bench.fix()
    assert reasons(report) == ["reverted: the fix would cause SMP102"]
    assert bench.get() == "bar\neggs\n"


def test_fixes_that_only_together_bring_something_up_are_taken_back(bench: Bench) -> None:
    bench.rules = [
        replacing("foo", "bar"),
        replacing("eggs", "spam", code="SMP103"),
        unfixable("bar\nspam", "SMP102"),
    ]
    bench.put(a="foo\neggs\n", b="eggs\n")
    report = bench.fix()
    assert reasons(report) == ["reverted: the fix would cause SMP102"] * 2
    assert bench.get("b") == "spam\n"
    assert bench.quiet()


@pytest.mark.parametrize(("limit", "left"), [(2, "foo\nspam\n"), (1, "foo\neggs\n")])
def test_which_fix_brings_something_up_is_tried_with_few_only(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, limit: int, left: str
) -> None:
    monkeypatch.setattr(rounds, "_MOST_TRIED_ALONE", limit)
    bench.rules = [
        replacing("foo", "bar"),
        unfixable("bar", "SMP102"),
        replacing("eggs", "spam", code="SMP103"),
    ]
    bench.put(a="foo\neggs\n")
    bench.fix()
    assert bench.get() == left


def test_every_fix_that_alone_brings_something_up_is_taken_back(bench: Bench) -> None:
    bench.rules = [
        replacing("foo", "bar"),
        unfixable("bar", "SMP102"),
        replacing("eggs", "spam", code="SMP103"),
    ]
    bench.put(a="foo\nfoo\neggs\n")
    assert reasons(bench.fix()) == ["reverted: the fix would cause SMP102"] * 2
    assert bench.get() == "foo\nfoo\nspam\n"
    assert bench.quiet()


def test_one_more_finding_of_a_rule_is_brought_up_too(bench: Bench) -> None:
    bench.rules = [replacing("foo", "baz"), unfixable("ba.", "SMP102")]
    bench.put(a="bar\nx\nfoo\n")
    assert reasons(bench.fix()) == ["no fix", "reverted: the fix would cause SMP102"]
    assert bench.get() == "bar\nx\nfoo\n"


def test_what_is_said_anew_of_an_untouched_file_is_not_brought_up(bench: Bench) -> None:
    def wordy(path: str, text: str) -> list[Finding]:
        place = Position(2, 1)
        if path == "a.py":
            seen[:] = [text]
            return []
        return [Finding("SMP102", f"a.py is {seen}", path, place, place)]

    seen: list[str] = []
    bench.rules = [wordy, replacing("foo", "bar")]
    bench.put(a="foo\n", b="x\ny\n")
    assert reasons(bench.fix()) == ["no fix"]
    assert bench.get() == "bar\n"


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
    assert reasons(report) == ["reverted: the fix would cause SMP102"]
    assert (bench.get("a"), report.changed) == ("foo\n", {})
    assert bench.checks == 2


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


def test_fixes_that_lead_back_in_three_rounds_are_not_made(bench: Bench) -> None:
    bench.rules = [
        replacing("foo", "bar"),
        replacing("bar", "baz", code="SMP102"),
        replacing("baz", "foo", code="SMP103"),
    ]
    for number, text in enumerate(("foo\n", "bar\n", "baz\n"), 1):
        bench.put(a=text)
        assert reasons(bench.fix()) == ["reverted: the fixes undo each other"]
        assert bench.get() == text
        assert bench.checks == 3 * number


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


def test_text_can_be_put_in(bench: Bench) -> None:
    bench.rules = [
        lambda path, text: [] if "import" in text else [finding((0, 0, "import x\n"), path=path)]
    ]
    bench.put(a="foo\n")
    assert reasons(bench.fix()) == []
    assert bench.get() == "import x\nfoo\n"


def test_fixes_that_together_change_nothing_are_not_made(bench: Bench) -> None:
    bench.rules = [
        lambda path, text: [
            finding((0, 2, ""), path=path),
            finding((4, 4, "a;"), path=path, row=2),
        ]
    ]
    bench.put(a="a;a;\na\n")
    assert reasons(bench.fix()) == ["reverted: the fixes undo each other"] * 2
    assert bench.get() == "a;a;\na\n"


def test_a_fix_of_another_file_alone_must_remove_its_finding_too(bench: Bench) -> None:
    def rule(path: str, text: str) -> list[Finding]:
        edit = Edit("b.py", 0, 3, "bar")
        return [finding(edit, path=path)] if path == "a.py" else []

    bench.rules = [rule]
    bench.put(a="x\n", b="foo\n")
    assert reasons(bench.fix()) == ["reverted: the fix does not remove the finding"]
    assert bench.get("b") == "foo\n"


def test_a_like_finding_inside_of_a_fixed_one_may_stay(bench: Bench) -> None:
    bench.rules = [
        replacing(r"f\((x)\)", r"g(\1)", message="the same"),
        lambda path, text: [
            replace(each, message="the same") for each in unfixable("x", "SMP101")(path, text)
        ],
    ]
    bench.put(a="f(x)\n")
    assert reasons(bench.fix()) == ["no fix"]
    assert bench.get() == "g(x)\n"


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
    def check(paths: Sequence[str], options: Options, **more: Any) -> Report:
        report = bench.check(paths, options, **more)
        if b"bar" in more["overlay"].get("a.py", b""):
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


def test_another_file_that_can_no_longer_be_read_takes_nothing_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(paths: Sequence[str], options: Options, **more: Any) -> Report:
        report = bench.check(paths, options, **more)
        if bench.checks > 1:
            report.errors.append(FileError("b.py", "too odd for the parser"))
        return report

    monkeypatch.setattr(engine, "check", check)
    bench.rules = [replacing("foo", "bar")]
    bench.put(a="foo\n", b="x\n")
    report = bench.fix()
    assert bench.get() == "bar\n"
    assert (report.errors, len(report.report.errors)) == ([], 1)


def test_a_file_that_appears_meanwhile_is_left_to_the_next_run(bench: Bench) -> None:
    def check(paths: Sequence[str], options: Options, **more: Any) -> Report:
        bench.put(b="foo\n")
        return bench.check(paths, options, **more)

    bench.rules = [replacing("foo", "bar")]
    bench.put(a="foo\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "check", check)
        assert reasons(bench.fix()) == ["the file was changed while it was checked"]
    assert (bench.get("a"), bench.get("b")) == ("bar\n", "foo\n")


def test_what_a_dead_run_left_beside_the_target_of_a_link_goes(bench: Bench) -> None:
    stray = ".sampler-lint-abc123_z.tmp"
    (bench.folder / "far").mkdir()
    (bench.folder / "far" / stray).touch()
    (bench.folder / "far" / "real.txt").write_text("foo\n")
    (bench.folder / "a.py").symlink_to("far/real.txt")
    bench.rules = [replacing("foo", "bar")]
    assert reasons(bench.fix()) == []
    assert names(bench.folder / "far") == ["real.txt"]
    assert bench.get() == "bar\n"


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


def test_a_file_somebody_changed_meanwhile_is_not_put_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(path: str, data: bytes, *, expect: bytes | None) -> None:
        if path == "b.py":
            bench.put(a="new; typed = 'meanwhile'\n")
            raise SourceError(FileError(path, "cannot be written: disk full"))
        write_whole(path, data, expect=expect)

    bench.rules = [two_files]
    bench.put(a="old\n", b="x = old\n")
    monkeypatch.setattr(rounds, "write_whole", failing)
    assert [str(error) for error in bench.fix().errors] == [
        "b.py: cannot be written: disk full",
        "a.py: not written: changed by somebody else meanwhile",
    ]
    assert bench.get() == "new; typed = 'meanwhile'\n"


def test_other_files_keep_all_their_rounds_when_one_cannot_be_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(path: str, data: bytes, *, expect: bytes | None) -> None:
        if path == "a.py":
            appeared.append(path)
            raise SourceError(FileError(path, "cannot be written: disk full"))
        write_whole(path, data, expect=expect)

    def late(path: str, text: str) -> list[Finding]:
        return replacing("late", "", code="SMP105")(path, text) if appeared else []

    appeared: list[str] = []
    bench.rules = [
        replacing("foo", "bar"),
        replacing("bar", "baz", code="SMP102"),
        replacing("ham", "ham ", code="SMP103"),
        late,
    ]
    bench.put(a="foo\n", b="foo\n", c="ham\nlate\n")
    monkeypatch.setattr(rounds, "write_whole", failing)
    report = bench.fix()
    assert report.changed == {"b.py": (b"foo\n", b"baz\n")}
    assert bench.get("b") == "baz\n"
    assert reasons(report) == [
        "not written, see the error for the file",
        "reverted: the fix does not remove the finding",
        "appeared when a file could not be written",
    ]
    assert [(found.path, found.code) for found in report.fixed] == [
        ("b.py", "SMP101"),
        ("b.py", "SMP102"),
    ]


# what a run decides


class Judge:
    """Says which of several states is right, and remembers what it was shown."""

    def __init__(self, wanted: int | None, told: str = "") -> None:
        self.answer = wanted, told
        self.asked: list[tuple[Finding, bytes, list[bytes]]] = []

    def __call__(
        self,
        found: Finding,
        before: Mapping[str, bytes],
        after: Sequence[Mapping[str, bytes]],
    ) -> tuple[int | None, str]:
        self.asked.append((found, before.get("a.py", b""), [each["a.py"] for each in after]))
        return self.answer


def with_candidates(*contents: str, applicability: Applicability = UNSAFE) -> Rule:
    """Each ``foo`` has a fix that removes it and candidates that put something in its place."""

    def rule(path: str, text: str) -> list[Finding]:
        return [
            replace(
                found,
                fix=None,
                candidates=tuple(
                    Fix(f"Write {content}", applicability, (edit._replace(content=content),))
                    for content in contents
                ),
            )
            for found in replacing("foo", "")(path, text)
            if found.fix
            for edit in found.fix.edits
        ]

    return rule


def test_a_fix_is_made_when_a_run_proves_it(bench: Bench) -> None:
    bench.rules = [replacing("foo", "bar")]
    bench.put(a="foo\n")
    judge = Judge(0)
    report = bench.fix(decide=judge)
    ((found, before, after),) = judge.asked
    assert (found.message, before, after) == ("foo is wrong", b"", [b"bar\n"])
    assert [each.fix for each in report.fixed] == [found.fix]
    assert bench.get() == "bar\n"


def test_what_no_run_proves_is_left_and_asked_once(bench: Bench) -> None:
    bench.rules = [replacing("foo", "bar"), replacing("eggs", "spam", code="SMP102")]
    bench.put(a="foo\n", b="eggs\n")

    def judge(found: Finding, before: object, after: object) -> tuple[int | None, str]:
        asked.append(found.code)
        return (None, "nothing shows it") if found.code == "SMP101" else (0, "")

    asked: list[str] = []
    report = bench.fix(decide=judge)
    assert reasons(report) == ["nothing shows it"]
    assert (bench.get("a"), bench.get("b")) == ("foo\n", "spam\n")
    assert asked == ["SMP101", "SMP102"]


@pytest.mark.parametrize("chosen", [0, 1])
def test_the_candidate_that_is_proved_is_made_though_it_was_unsafe(
    bench: Bench, chosen: int
) -> None:
    bench.rules = [with_candidates("bar", "baz")]
    bench.put(a="foo\n")
    judge = Judge(chosen)
    report = bench.fix(decide=judge)
    assert [after for _, _, after in judge.asked] == [[b"bar\n", b"baz\n"]]
    assert bench.get() == ["bar\n", "baz\n"][chosen]
    (fixed,) = report.fixed
    assert fixed.fix is not None
    assert fixed.fix.applicability is SAFE


def test_candidates_that_break_the_file_are_not_shown(bench: Bench) -> None:
    bench.rules = [with_candidates("(", "baz")]
    bench.put(a="foo\n")
    judge = Judge(0)
    bench.fix(decide=judge)
    assert [after for _, _, after in judge.asked] == [[b"baz\n"]]
    assert bench.get() == "baz\n"


def test_without_a_judge_candidates_are_no_fix(bench: Bench) -> None:
    bench.rules = [with_candidates("bar")]
    bench.put(a="foo\n")
    assert reasons(bench.fix()) == ["no fix"]


def test_a_file_that_may_not_be_written_is_not_judged(bench: Bench) -> None:
    bench.rules = [with_candidates("bar", "baz")]
    bench.put(a="foo\n")
    (bench.folder / "a.py").chmod(0o444)
    judge = Judge(0)
    assert reasons(bench.fix(decide=judge)) == ["cannot be written: the file is read-only"]
    assert judge.asked == []


def test_an_unsafe_fix_is_judged_with_leave_only(bench: Bench) -> None:
    bench.rules = [replacing("foo", "bar", applicability=UNSAFE)]
    bench.put(a="foo\n")
    judge = Judge(0)
    assert reasons(bench.fix(decide=judge)) == ["unsafe: use --unsafe-fixes"]
    assert judge.asked == []
    assert reasons(bench.fix(decide=judge, unsafe=True)) == []
    assert len(judge.asked) == 1


def test_what_was_decided_holds_when_a_round_is_made_anew(bench: Bench) -> None:
    bench.rules = [with_candidates("bar", "baz"), replacing("ham", "ham ", code="SMP102")]
    bench.put(a="foo\nham\n")
    judge = Judge(0)
    assert reasons(bench.fix(decide=judge)) == ["reverted: the fix does not remove the finding"]
    assert bench.get() == "bar\nham\n"
    assert [found.code for found, _, _ in judge.asked] == ["SMP101", "SMP102"]


def test_the_judge_sees_what_earlier_rounds_made(bench: Bench) -> None:
    bench.rules = [replacing("foo", "bar"), replacing("bar", "baz", code="SMP102")]
    bench.put(a="foo\n")
    judge = Judge(0)
    engine.fix(["."], overlay={"b.py": b"x\n"}, write=False, decide=judge)
    assert [(before, after) for _, before, after in judge.asked] == [
        (b"", [b"bar\n"]),
        (b"bar\n", [b"baz\n"]),
    ]
