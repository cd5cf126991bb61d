"""What the reporters make of findings."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import unicodedata

import pytest

from sampler_lint.findings import (
    Applicability,
    Cell,
    Edit,
    FileError,
    Finding,
    Fix,
    Place,
    Position,
    Related,
)
from sampler_lint.reporters import FORMATS, FixReport, Outcome, reporter
from sampler_lint.reporters.text import visible
from sampler_lint.source import Sources

PATH = "train.py"


def finding(start=(1, 1), end=(1, 2), applicability=None, **more):
    fix = None
    if applicability is not None:
        fix = Fix("Call it", applicability, (Edit(PATH, 0, 1, "y"),))
    return Finding("SMP101", "It is wrong", PATH, Position(*start), Position(*end), fix, **more)


def outcome(*findings, source="x = 1\n", **more):
    more.setdefault("files", 1)
    data = source if isinstance(source, bytes) else source.encode()
    return Outcome(findings, sources=Sources({PATH: data}), **more)


def text(*findings, **more):
    return reporter("text")(outcome(*findings, **more))


def cells(line):
    """How wide a terminal shows the line."""
    widths = {"W": 2, "F": 2}
    return sum(
        0 if unicodedata.combining(c) else widths.get(unicodedata.east_asian_width(c), 1)
        for c in line
    )


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_tells_nothing_and_something(name):
    render = reporter(name)
    nothing = render(outcome())
    assert nothing.endswith("\n") or (nothing == "" and name in {"azure", "github", "json-lines"})
    assert "SMP101" in render(outcome(finding()))


def test_why_a_fix_is_unsafe_is_told() -> None:
    fix = Fix("Call it", Applicability.UNSAFE, (Edit(PATH, 0, 1, "y"),), "`x` may not be assigned")
    found = dataclasses.replace(finding(), fix=fix)
    help_line = (
        "help: fix available: Call it (unsafe: needs --unsafe-fixes: `x` may not be assigned)"
    )
    assert help_line in text(found)
    assert json.loads(reporter("json")(outcome(found)))[0]["fix"]["unsafe"] == fix.unsafe
    plain = dataclasses.replace(found, fix=dataclasses.replace(fix, unsafe=""))
    assert "unsafe" not in json.loads(reporter("json")(outcome(plain)))[0]["fix"]


# --- text ---------------------------------------------------------------------------------


def test_whole_finding():
    why = (
        Related(Place("data.py", Position(4, 7)), "loader built here"),
        Related("DataLoader", "returned by it"),
    )
    assert text(finding((2, 5), (2, 8), Applicability.SAFE, why=why), source="a\n    foo()\n") == (
        "train.py:2:5: SMP101 [*] It is wrong\n"
        "  |\n"
        "2 |     foo()\n"
        "  |     ^^^\n"
        "    note: data.py:4: loader built here\n"
        "    note: DataLoader: returned by it\n"
        "    help: fix available: Call it\n"
        "\n"
        "Found 1 finding (1 fixable with --fix) in 1 file.\n"
    )


@pytest.mark.parametrize(
    ("applicability", "unsafe", "mark", "line"),
    [
        (Applicability.SAFE, False, True, "help: fix available: Call it\n"),
        (Applicability.UNSAFE, False, False, "Call it (unsafe: needs --unsafe-fixes)\n"),
        (Applicability.UNSAFE, True, True, "Call it (unsafe: needs --unsafe-fixes)\n"),
        (Applicability.DISPLAY, True, False, "help: suggestion: Call it\n"),
        (None, True, False, "It is wrong\n"),
    ],
)
def test_applicability(applicability, unsafe, mark, line):
    out = text(finding(applicability=applicability), unsafe=unsafe)
    assert ("[*]" in out) is mark
    assert line in out
    assert ("help:" in out) is (applicability is not None)


SAFE = finding(applicability=Applicability.SAFE)
UNSAFE = finding(applicability=Applicability.UNSAFE)
DISPLAY = finding(applicability=Applicability.DISPLAY)


@pytest.mark.parametrize(
    ("findings", "more", "last"),
    [
        ([], {"files": 41}, "All clear: 41 files checked."),
        ([], {"files": 0}, "No Python files found."),
        (
            [],
            {"files": 3, "errors": [FileError("a.py", "bad")]},
            "No findings in 3 files, but 1 error: not all was checked.",
        ),
        ([finding()], {}, "Found 1 finding in 1 file."),
        ([DISPLAY, SAFE], {"files": 2}, "Found 2 findings (1 fixable with --fix) in 2 files."),
        ([UNSAFE], {}, "Found 1 finding (1 fixable with --fix --unsafe-fixes) in 1 file."),
        ([UNSAFE], {"unsafe": True}, "Found 1 finding (1 fixable with --fix) in 1 file."),
        (
            [SAFE, SAFE, UNSAFE],
            {"files": 41},
            "Found 3 findings (2 fixable with --fix, 1 more with --unsafe-fixes) in 41 files.",
        ),
    ],
)
def test_summary(findings, more, last):
    assert text(*findings, **more).splitlines()[-1] == last


def test_summary_of_fixes():
    two = FixReport([SAFE], [(UNSAFE, "unsafe: use --unsafe-fixes"), (DISPLAY, "no fix")], 1, True)
    assert text(fix_report=two).endswith(
        "train.py:1:1: SMP101 fixed: Call it\n"
        "Fixed 1 finding in 1 file; 2 left:\n"
        "  train.py:1:1: SMP101 (unsafe: use --unsafe-fixes)\n"
        "  train.py:1:1: SMP101 (no fix)\n"
    )
    edits = (*SAFE.fix.edits, Edit("data.py", 0, 0, "x"))
    wide = dataclasses.replace(SAFE, fix=dataclasses.replace(SAFE.fix, edits=edits))
    one = FixReport([SAFE, wide], [(DISPLAY, "no fix")], 2, False)
    assert text(fix_report=one) == (
        "train.py:1:1: SMP101 would be fixed: Call it\n"
        "train.py:1:1: SMP101 would be fixed: Call it (in data.py, too)\n"
        "Would fix 2 findings in 2 files; 1 left: train.py:1:1: SMP101 (no fix)\n"
    )


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("width", [50, 80])
def test_a_terminal_gets_whole_words(width, color):
    told = {
        "why": (Related("data.py:4", f"{'loader built here and ' * 9}kept"),),
        "applicability": Applicability.SAFE,
    }
    one = dataclasses.replace(finding((1, 150), (1, 152), **told), message="It is wrong, " * 20)
    source = f"{'x' * 149}foo{'y' * 99}\n"
    wide = text(one, source=source, color=color)
    narrow = text(one, source=source, color=color, width=width)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", narrow).splitlines()
    assert max(map(len, lines)) <= width
    assert sum(line.startswith("    ") and "wrong" in line for line in lines) >= 2
    assert lines[-1] == wide.splitlines()[-1]
    shown, carets = next(
        (lines[number - 1], line) for number, line in enumerate(lines) if "^" in line
    )
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "fo"
    assert "..." in shown
    without_source = [
        " ".join(each.split())
        for each in (text(one, source=b"\xff"), text(one, source=b"\xff", width=width))
    ]
    assert without_source[0] == without_source[1]


@pytest.mark.parametrize(
    "line",
    [
        "\tx\t= {}",
        "a\t\tb {}",
        "名前 = '変数' {}",
        "e\u0301 = {}",
        "s = '\x1b[31m' {}",
        "s = '\u202e' {}",
        "x = {}",
    ],
    ids=["tabs", "tab stops", "wide", "combining", "escape", "bidi", "plain"],
)
def test_the_carets_stand_beneath_the_finding(line):
    before = line.index("{}")
    source = line.format("HERE")
    out = text(finding((1, before + 1), (1, before + 5)), source=source).splitlines()
    shown, carets = out[2], out[3]
    assert carets.strip().lstrip("| ") == "^^^^"
    assert cells(shown[: shown.index("HERE")]) == carets.index("^")
    assert "\t" not in shown


@pytest.mark.parametrize("place", [0, 60, 200, 395])
def test_long_lines_are_clipped_around_the_finding(place):
    source = "x" * place + "HERE" + "x" * (400 - place)
    out = text(finding((1, place + 1), (1, place + 5)), source=source).splitlines()
    shown, carets = out[2], out[3]
    assert len(shown) < 125
    assert shown[carets.index("^") :].startswith("HERE")
    assert carets.count("^") == 4


def test_a_long_finding_is_clipped_too():
    out = text(finding((1, 1), (1, 401)), source="x" * 400).splitlines()
    assert out[2].endswith("...")
    assert out[3].count("^") == out[2].count("x")


def test_a_finding_of_some_rows():
    source = "a = f(\r\n    1,\r\n)  # end\r\n"
    assert text(finding((1, 5), (3, 2)), source=source).splitlines()[1:8] == [
        "  |",
        "1 | a = f(",
        "  |     ^^",
        "2 |     1,",
        "  |     ^^",
        "3 | )  # end",
        "  | ^",
    ]


def test_a_finding_of_many_rows():
    source = "f(\n" + "    1,\n" * 20 + ")\n"
    lines = text(finding((1, 1), (22, 2)), source=source).splitlines()
    assert "..." in lines
    assert " 3 |     1," in lines
    assert "22 | )" in lines
    assert len(lines) < 15


@pytest.mark.parametrize(
    ("start", "end"), [((1, 3), (1, 3)), ((1, 99), (1, 120)), ((9, 1), (9, 2)), ((2, 1), (2, 1))]
)
def test_a_position_that_the_text_does_not_have(start, end):
    """The file may have changed since it was checked."""
    assert "Found 1 finding" in text(finding(start, end), source="x = 1\n")


def test_a_file_that_is_gone():
    out = reporter("text")(Outcome([finding(applicability=Applicability.SAFE)], files=1))
    assert out.startswith("train.py:1:1: SMP101 [*] It is wrong\n    help: ")


def test_nothing_in_a_file_reaches_the_terminal_raw():
    raw = "\x1b]0;x\x07\r\n\x9b\u202e\u2028\udcff"
    bad = Finding(
        "SMP101",
        raw,
        raw,
        Position(1, 1),
        Position(1, 2),
        Fix(raw, Applicability.SAFE, ()),
        (raw,),
    )
    sources = Sources({raw: "x\x1b\u202e".encode()})
    report = FixReport([], [(bad, raw)], 0, True)
    out = reporter("text")(Outcome([bad], files=1, sources=sources, fix_report=report))
    assert all(line.isprintable() for line in out.split("\n"))
    assert out.count(visible(raw)) == 6


def test_color_changes_nothing_but_color():
    import re

    plain = text(SAFE, UNSAFE)
    colored = text(SAFE, UNSAFE, color=True)
    assert colored != plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


# --- json ---------------------------------------------------------------------------------


def parsed(*findings, **more):
    out = reporter("json")(outcome(*findings, **more))
    assert out.isascii()
    return json.loads(out)


def test_json_of_nothing():
    assert parsed() == []


def test_json_keys_are_ruff_s_and_why():
    here = Related(Place("a.py", Position(1, 3)), "here")
    there = Related(Place("b.ipynb", Position(9, 3), Cell(4, 8, 99)), "there")
    (found,) = parsed(
        finding((1, 1), (1, 3), Applicability.SAFE, why=(here, there, Related("", "because")))
    )
    assert sorted(found) == [
        "cell",
        "code",
        "end_location",
        "filename",
        "fix",
        "grade",
        "help",
        "location",
        "message",
        "noqa_row",
        "note",
        "related",
        "severity",
        "url",
        "why",
    ]
    assert found["cell"] is None
    assert found["location"] == {"row": 1, "column": 1}
    assert found["end_location"] == {"row": 1, "column": 3}
    assert found["fix"]["applicability"] == "safe"
    assert found["why"] == ["a.py:1: here", "b.ipynb: cell 4, line 2: there", "because"]
    assert found["related"] == [
        {
            "cell": None,
            "filename": os.path.abspath("a.py"),
            "location": {"row": 1, "column": 3},
            "message": "here",
        },
        {
            "cell": 4,
            "filename": os.path.abspath("b.ipynb"),
            "location": {"row": 2, "column": 3},
            "message": "there",
        },
        {"message": "because"},
    ]


@pytest.mark.parametrize("source", ["é = 1\r\nxy\r\n", "\ufeffé = 1\r\nxy\r\n", "é = 1\rxy\r"])
def test_json_edits_are_rows_and_columns_of_the_text(source):
    offset = source.lstrip("\ufeff").index("y")
    fix = Fix("Call it", Applicability.SAFE, (Edit(PATH, offset, offset + 1, "é"),))
    bad = Finding("SMP101", "m", PATH, Position(1, 1), Position(1, 2), fix)
    (found,) = parsed(bad, source=source)
    assert found["fix"]["edits"] == [
        {
            "content": "é",
            "location": {"row": 2, "column": 2},
            "end_location": {"row": 2, "column": 3},
        }
    ]


def test_json_of_a_fix_in_a_file_that_is_gone():
    fix = Fix("m", Applicability.SAFE, (Edit(PATH, 0, 0, "a"), Edit("gone.py", 0, 0, "b")))
    (found,) = parsed(Finding("SMP101", "m", PATH, Position(1, 1), Position(1, 2), fix))
    assert found["fix"] is None


def test_json_survives_names_that_are_not_text():
    bad = Finding("SMP101", "caf\udce9", "caf\udce9.py", Position(1, 1), Position(1, 2))
    (found,) = parsed(bad)
    assert found["message"] == "caf\udce9"
    assert found["filename"].endswith("caf\udce9.py")
