"""Formats for machines, each held to its own specification."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from sampler_lint.cli import main
from sampler_lint.cli._common import wants_color
from sampler_lint.cli._telling import follows_links
from sampler_lint.findings import (
    Applicability,
    Edit,
    FileError,
    Finding,
    Fix,
    Place,
    Position,
    Related,
)
from sampler_lint.fingerprints import fingerprints
from sampler_lint.reporters import FORMATS, Outcome, RuleText, reporter, shows_edits
from sampler_lint.reporters.text import visible
from sampler_lint.source import SourceFile, Sources

FIXTURES = Path(__file__).parent.parent / "fixtures"
BAD = (FIXTURES / "SMP101/torch-batch-sampler/bad/train.py").read_bytes()
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
SCHEMA_PACKAGE = "@microsoft/jest-sarif@1.0.0-beta.0"

#: What a hostile file may be called, or say: commands to a terminal, a workflow, an XML reader.
HOSTILE = [
    "\x1b[2J\x1b]0;title\x07",
    "a\n::error::forged\r::set-output name=x::y",
    "%0A::error::forged",
    "]]><failure/>&amp;<!--\x00\x0b\ufffe",
    "\u202eabc\u2028\u2029\x85\x9b",
    "\udcff\ud800",
    "a:b,c;d%25",
    '"}]\\u001b',
]


def named(text: str) -> str:
    """``text`` as a file's name; some characters cannot be in one."""
    return text.replace("\x00", "").replace("\ud800", "")


def finding(path: str = "train.py", message: str = "It is wrong", **more: object) -> Finding:
    place = {"start": Position(2, 3), "end": Position(2, 4), **more}
    return Finding("SMP101", message, path, **place)  # type: ignore[arg-type]


def outcome(*findings: Finding, **more: object) -> Outcome:
    texts = {each.path: "x = 1\ny = 'é'\n" for each in findings}
    sources = Sources({path: text.encode() for path, text in texts.items()})
    return Outcome(findings, files=1, sources=sources, **more)  # type: ignore[arg-type]


def at(path: str, text: str) -> Related:
    return Related(Place(path, Position(3, 1)), text)


def told(form: str, *findings: Finding, **more: object) -> str:
    return reporter(form)(outcome(*findings, **more))


def fixed(applicability: Applicability, *edits: Edit) -> Finding:
    return finding(fix=Fix("Change it", applicability, edits or (Edit("train.py", 11, 12, "z"),)))


def test_a_fix_in_a_file_that_is_gone_is_left_out() -> None:
    lost = fixed(Applicability.SAFE, Edit("train.py", 11, 12, "z"), Edit("gone.py", 0, 1, "z"))
    (result,) = json.loads(told("sarif", lost))["runs"][0]["results"]
    assert "fixes" not in result
    (record,) = json.loads(told("json", lost))
    assert record["fix"] is None


def test_the_formats_are_those_that_help_names(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    names = re.search(
        r"--output-format FORMAT text \(default\), (.*?) -o FILE, --output-file", text
    )
    assert names is not None
    assert {"text", *re.split(r", | or ", names[1])} == set(FORMATS)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_reaches_a_terminal_or_a_workflow_raw(form: str, hostile: str) -> None:
    path = named(hostile)
    bad = finding(
        path,
        hostile,
        fix=Fix(hostile, Applicability.SAFE, (Edit(path, 0, 1, hostile),)),
        why=(at(path, hostile),),
    )
    text = told(form, bad, suppressed=[finding(path + "2", hostile)])
    assert all(character.isprintable() or character == "\n" for character in text)
    text.encode("utf-8")
    if form in {"json", "gitlab", "rdjson", "sarif"}:
        json.loads(text)
    elif form == "json-lines":
        assert all(json.loads(line) for line in text.splitlines())
    elif form == "junit":
        ElementTree.fromstring(text)
    elif form == "azure":
        (line,) = text.splitlines()
        command = re.fullmatch(r"##vso\[task\.logissue ((?:\w+=[^;\]]*;)+)\](.*)", line)
        assert command is not None
        values = [each.partition("=")[0] for each in command[1].split(";")]
        assert values == ["type", "sourcepath", "linenumber", "columnnumber", "code", ""]
    elif form == "github":
        (line,) = text.splitlines()
        assert line.startswith("::error title=sampler-lint (SMP101),file=")
        assert "::set-output" not in re.split(r"(?<!^)::", line)[0]


#: What a program finds of a file that could not be checked: its name, line and the reason.
FAILED_IN = {
    "json": lambda text: [
        (os.path.relpath(each["filename"]), each["location"]["row"], each["message"])
        for each in json.loads(text)
        if each["code"] == "not-checked"
    ],
    "json-lines": lambda text: [
        (os.path.relpath(each["filename"]), each["location"]["row"], each["message"])
        for each in map(json.loads, text.splitlines())
        if each["code"] == "not-checked"
    ],
    "gitlab": lambda text: [
        (each["location"]["path"], each["location"]["lines"]["begin"], each["description"])
        for each in json.loads(text)
        if each["check_name"] == "not-checked"
    ],
    "rdjson": lambda text: [
        (
            each["location"]["path"],
            each["location"].get("range", {"start": {"line": 1}})["start"]["line"],
            each["message"],
        )
        for each in json.loads(text)["diagnostics"]
        if "code" not in each
    ],
    "sarif": lambda text: [
        (
            each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            each["locations"][0]["physicalLocation"].get("region", {"startLine": 1})["startLine"],
            each["message"]["text"],
        )
        for each in json.loads(text)["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    ],
    "junit": lambda text: [
        (case.get("file"), int(case.get("line", "1")), problem.get("message"))
        for case in ElementTree.fromstring(text).iter("testcase")
        for problem in case.findall("error")
    ],
    "github": lambda text: [
        (os.path.relpath(match[1]), int(match[2] or 1), match[3])
        for match in re.finditer(
            r"^::error title=sampler-lint,file=([^,:]+)(?:,line=(\d+))?::(.*)$", text, re.MULTILINE
        )
    ],
    "azure": lambda text: [
        (os.path.relpath(match[1]), int(match[2] or 1), match[3])
        for match in re.finditer(
            r"^##vso\[task\.logissue type=error;sourcepath=([^;]+);(?:linenumber=(\d+);)?\](.*)$",
            text,
            re.MULTILINE,
        )
    ],
}


@pytest.mark.parametrize("form", sorted(set(FORMATS) - {"text", "concise", "grouped"}))
@pytest.mark.parametrize("beside", [(), (finding("ok.py"),)])
def test_a_program_sees_which_files_could_not_be_checked(
    form: str, beside: tuple[Finding, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI_PROJECT_DIR", raising=False)
    bad = [FileError("bad.py", "cannot be parsed", 4), FileError("gone.py", "cannot be read")]
    text = told(form, *beside, errors=bad)
    first, second = FAILED_IN[form](text)
    assert (first[:2], second[:2]) == (("bad.py", 4), ("gone.py", 1))
    assert "cannot be parsed" in first[2]
    assert "cannot be read" in second[2]
    assert "No findings" not in text
    assert text.count("SMP101") >= len(beside)
    hostile = FileError(named(HOSTILE[0]), HOSTILE[0])
    text = told(form, errors=[hostile])
    assert all(character.isprintable() or character == "\n" for character in text)


def test_junit_counts_errors_apart() -> None:
    root = ElementTree.fromstring(told("junit", finding(), errors=[FileError("train.py", "bad")]))
    for element in (root, root[0]):
        counts = [element.get(name) for name in ("tests", "failures", "errors")]
        assert counts == ["2", "1", "1"]


def test_text_names_files_whose_text_is_hostile_too(tmp_path: Path) -> None:
    for form in ("text", "concise", "grouped"):
        source = Sources({"train.py": b"x = 1\ny = '\x1b[2J\xc2\x9b'\n"})
        out = reporter(form)(Outcome([finding()], files=1, sources=source))
        assert "\x1b" not in out + "\x9b".strip("\x9b")
        assert "\x9b" not in out


# --- each format


def test_concise() -> None:
    text = told("concise", fixed(Applicability.SAFE), suppressed=[finding("other.py")])
    assert text == (
        "other.py:2:3: SMP101 (suppressed) It is wrong\n"
        "train.py:2:3: SMP101 [*] It is wrong\n"
        "Found 1 finding (1 fixable with --fix) in 1 file.\n"
    )


def test_grouped() -> None:
    assert told("grouped", finding(), finding(message="Again"), finding("other.py")) == (
        "other.py:\n"
        "       2:3 SMP101 It is wrong\n"
        "\n"
        "train.py:\n"
        "       2:3 SMP101 Again\n"
        "       2:3 SMP101 It is wrong\n"
        "\n"
        "Found 3 findings in 1 file.\n"
    )


def test_json_lines_are_the_records_of_json() -> None:
    findings = [fixed(Applicability.SAFE), finding("other.py")]
    lines = [json.loads(line) for line in told("json-lines", *findings).splitlines()]
    assert lines == json.loads(told("json", *findings))
    assert told("json-lines") == ""


def test_json_tells_what_is_suppressed() -> None:
    first, second = json.loads(told("json", finding(), suppressed=[finding("other.py")]))
    assert first["suppressed"] is True
    assert "suppressed" not in second


def test_github() -> None:
    (line,) = told("github", finding("a,b:c.py", "100% wrong")).splitlines()
    path = visible(os.path.abspath("a,b:c.py")).replace(":", "%3A").replace(",", "%2C")
    assert line == (
        f"::error title=sampler-lint (SMP101),file={path},line=2,col=3,endLine=2,endColumn=4"
        "::a,b:c.py:2:3: SMP101 100%25 wrong"
    )
    (line,) = told("github", finding(end=Position(4, 2))).splitlines()
    assert ",line=2,endLine=4::" in line


def test_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    path = os.path.abspath("a;b].py").replace(";", "%3B").replace("]", "%5D")
    assert told("azure", finding("a;b].py", "100 % wrong; ]")) == (
        f"##vso[task.logissue type=error;sourcepath={path};linenumber=2;columnnumber=3;"
        "code=SMP101;]a;b].py:2:3: SMP101 100 %AZP25 wrong; ]\n"
    )


def test_gitlab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI_PROJECT_DIR", raising=False)
    first, second = json.loads(told("gitlab", finding(), finding(message="Again")))
    assert first.pop("fingerprint") != second.pop("fingerprint")
    assert first == {
        "check_name": "SMP101",
        "description": "SMP101: It is wrong",
        "location": {
            "path": "train.py",
            "positions": {"begin": {"line": 2, "column": 3}, "end": {"line": 2, "column": 4}},
        },
        "severity": "major",
    }
    monkeypatch.setenv("CI_PROJECT_DIR", os.path.dirname(os.getcwd()))
    (found,) = json.loads(told("gitlab", finding()))
    assert found["location"]["path"] == f"{os.path.basename(os.getcwd())}/train.py"


def test_junit() -> None:
    root = ElementTree.fromstring(told("junit", finding(), finding("b.py"), finding("b.py")))
    assert (root.get("tests"), root.get("failures")) == ("3", "3")
    assert [(s.get("name"), s.get("tests")) for s in root] == [("train.py", "1"), ("b.py", "2")]
    (case,) = root[0]
    assert (case.get("name"), case.get("line")) == ("SMP101 at line 2", "2")
    assert case[0].text == "train.py:2:3: SMP101 It is wrong"
    (suite,) = ElementTree.fromstring(told("junit"))
    assert (suite.get("failures"), len(suite), len(suite[0])) == ("0", 1, 0)


def test_rdjson_counts_bytes() -> None:
    bad = fixed(Applicability.SAFE, Edit("train.py", 11, 12, "z"))
    bad = finding(fix=bad.fix, start=Position(2, 6), end=Position(2, 7))
    (found,) = json.loads(told("rdjson", bad))["diagnostics"]
    range_ = {"start": {"line": 2, "column": 6}, "end": {"line": 2, "column": 8}}
    assert found == {
        "code": {"url": "https://sampler-lint.readthedocs.io/rules/smp101", "value": "SMP101"},
        "location": {"path": "train.py", "range": range_},
        "message": "It is wrong",
        "severity": "ERROR",
        "suggestions": [{"range": range_, "text": "z"}],
    }


def test_rdjson_suggests_only_what_fix_would_do_here() -> None:
    here, there = Edit("train.py", 0, 1, "z"), Edit("other.py", 0, 1, "z")
    for bad in (fixed(Applicability.UNSAFE), fixed(Applicability.SAFE, here, there)):
        (found,) = json.loads(told("rdjson", bad))["diagnostics"]
        assert "suggestions" not in found


# --- SARIF


def sarif(*findings: Finding, **more: object) -> dict:
    (run,) = json.loads(told("sarif", *findings, **more))["runs"]
    return run


def test_sarif() -> None:
    text = RuleText("a-name", "A summary.", "A summary.\n\n## More\n")
    bad = finding(
        "a b#é.py",
        fix=Fix("Change it", Applicability.UNSAFE, (Edit("a b#é.py", 10, 11, "z"),)),
        why=(
            Related(Place("data.py", Position(4, 5)), "loader built here"),
            Related("", "because"),
        ),
    )
    run = sarif(bad, rules=lambda: {"SMP101": text}, suppressed=[finding("b.py")])
    (rule,) = run["tool"]["driver"]["rules"]
    assert (rule["id"], rule["name"], rule["shortDescription"]["text"]) == (
        "SMP101",
        "a-name",
        "A summary.",
    )
    first, second = run["results"]
    location = first["locations"][0]["physicalLocation"]
    assert unquote(location["artifactLocation"]["uri"]) == "a b#é.py"
    assert "#" not in location["artifactLocation"]["uri"]
    assert location["region"] == {"startLine": 2, "startColumn": 3, "endLine": 2, "endColumn": 4}
    related, reason = first["relatedLocations"]
    assert related["physicalLocation"]["region"] == {"startLine": 4, "startColumn": 5}
    assert reason == {"message": {"text": "because"}}
    (change,) = first["fixes"][0]["artifactChanges"]
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 2, "startColumn": 5, "endLine": 2, "endColumn": 6},
            "insertedContent": {"text": "z"},
        }
    ]
    assert "suppressions" not in first
    assert second["suppressions"] == [{"kind": "inSource"}]
    assert run["invocations"] == [{"executionSuccessful": True}]
    (invocation,) = sarif(errors=[FileError("a.py", "bad", 4), FileError("b.py", "worse")])[
        "invocations"
    ]
    assert invocation["executionSuccessful"] is False
    told_ = invocation["toolExecutionNotifications"]
    assert [(each["level"], each["message"]["text"]) for each in told_] == [
        ("error", "bad"),
        ("error", "worse"),
    ]
    first, second = (each["locations"][0]["physicalLocation"] for each in told_)
    assert first["artifactLocation"]["uri"] == "a.py"
    assert first["region"] == {"startLine": 4}
    assert "region" not in second


def test_sarif_of_a_file_elsewhere(tmp_path: Path) -> None:
    (result,) = sarif(finding(str(tmp_path / "a b.py")))["results"]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": (tmp_path / "a b.py").as_uri()}


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """The published schema, from a package of its editors; without npm from its public address."""
    npm = shutil.which("npm")
    if npm is not None:
        folder = tmp_path_factory.mktemp("npm")
        done = subprocess.run(
            [npm, "pack", "--silent", SCHEMA_PACKAGE],
            capture_output=True, text=True, check=False, cwd=folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        with tarfile.open(folder / done.stdout.strip()) as package:
            held = package.extractfile("package/lib/schemas/sarif-2.1.0-rtm.5.json")
            assert held is not None
            return json.load(held)
    try:
        with urllib.request.urlopen(SCHEMA, timeout=60) as answer:
            return json.load(answer)
    except OSError as error:
        pytest.skip(f"there is no npm, and {SCHEMA} cannot be read: {error}")


@pytest.mark.network
def test_sarif_is_valid_by_the_published_schema(schema: dict) -> None:
    from jsonschema.validators import validator_for

    validator = validator_for(schema)(schema)
    one_of_each = {bad.parent.parent: bad for bad in sorted(FIXTURES.glob("SMP*/*/bad"))}.values()
    everything = subprocess.run(
        [sys.executable, "-m", "sampler_lint", "--output-format", "sarif", "--show-suppressed",
         "--select", "ALL", "--isolated", *one_of_each],
        capture_output=True, check=False, cwd=FIXTURES.parent,
    )  # fmt: skip
    documents = [
        json.loads(everything.stdout),
        *(json.loads(told("sarif", finding(named(text), text, why=(at(named(text), text),))))
          for text in HOSTILE),
        json.loads(told("sarif")),
        json.loads(told("sarif", errors=[FileError("a.py", "bad", 4), FileError("b.py", "worse")])),
    ]  # fmt: skip
    results = documents[0]["runs"][0]["results"]
    assert len(results) > 30
    # Those of one rule are alike, and the validator takes long for each.
    documents[0]["runs"][0]["results"] = [*{each["ruleId"]: each for each in results}.values()]
    assert len({rule["id"] for rule in documents[0]["runs"][0]["tool"]["driver"]["rules"]}) > 15
    for document in documents:
        assert [error.message for error in validator.iter_errors(document)] == []
    # The schema does refuse what is wrong.
    documents[0]["runs"][0]["results"][0]["level"] = "fatal"
    assert list(validator.iter_errors(documents[0]))


# --- fingerprints


def prints(text: str, *rows: int, path: str = "a.py") -> list[str]:
    source = SourceFile(path, text.encode())
    findings = [finding(path, start=Position(row, 1), end=Position(row, 2)) for row in rows]
    return fingerprints(findings, lambda _: source)


def test_fingerprints_last_while_lines_move() -> None:
    text = "a(1)\nb(2)\nb(2)\n"
    before = prints(text, 1, 2, 3)
    assert len(set(before)) == 3
    assert prints("\n\nimport x\n" + text, 4, 5, 6) == before
    assert prints(text.replace("b", "    b").replace("(2)", "( 2 )"), 1, 2, 3) == before
    assert prints(text, 3, 2, 1) == [before[2], before[1], before[0]]
    assert not set(prints(text.replace("2", "3"), 2, 3)) & set(before)
    assert not set(prints(text, 1, 2, 3, path="b.py")) & set(before)


@pytest.mark.parametrize("form", FORMATS)
def test_a_format_that_shows_edits_says_so(form: str) -> None:
    whole = fixed(Applicability.SAFE)
    quick = replace(whole, fix=replace(whole.fix, edits=()))
    assert (told(form, whole) == told(form, quick)) is not shows_edits(form)


# --- where it goes


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_bytes(BAD)
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "FORCE_HYPERLINK"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize("form", FORMATS)
def test_output_file(project: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    assert main(["--output-format", form]) == 1
    shown = capsys.readouterr().out
    assert main(["--output-format", form, "--output-file", "report"]) == 1
    assert capsys.readouterr() == ("", "")
    assert (project / "report").read_text(encoding="utf-8") == shown


def test_output_file_that_cannot_be_written(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--output-file", "missing/report"]) == 2
    error = "error: missing/report: cannot be written: No such file or directory\n"
    assert capsys.readouterr() == ("", error)


def test_statistics(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "two.py").write_bytes(BAD)
    assert main(["--statistics"]) == 1
    assert capsys.readouterr().out == (
        "    2  SMP101  [*] epoch-only-on-sampler\n"
        "Found 2 findings (2 fixable with --fix) in 2 files.\n"
    )
    assert main(["--statistics", "--output-format", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == [
        {"code": "SMP101", "count": 2, "fixable": 2, "name": "epoch-only-on-sampler"}
    ]
    assert main(["--statistics", "--output-format", "sarif"]) == 2
    assert main(["--statistics", "--isolated", "--ignore", "SMP1"]) == 0


def test_show_suppressed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "train.py").write_bytes(b"# sampler-lint: ignore-file[SMP101]\n" + BAD)
    assert main(["--show-suppressed", "--output-format", "concise"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("train.py:40:13: SMP101 (suppressed) ")
    assert out.endswith("All clear: 1 file checked; 1 finding suppressed.\n")


class Terminal:
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "on_a_terminal", "elsewhere"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
    ],
)
def test_colours(
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    on_a_terminal: bool,
    elsewhere: bool,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_color("auto", Terminal()) is on_a_terminal
    assert wants_color("auto", None) is elsewhere


@pytest.mark.parametrize(
    ("environment", "follows"),
    [
        ({}, False),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM_PROGRAM": "vscode"}, True),
        ({"TERM_PROGRAM": "vscode", "CI": "true"}, False),
        ({"VTE_VERSION": "6800"}, True),
        ({"VTE_VERSION": "4602"}, False),
        ({"VTE_VERSION": "6800", "FORCE_HYPERLINK": "0"}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"FORCE_HYPERLINK": "1"}, True),
    ],
)
def test_links(environment: dict[str, str], follows: bool) -> None:
    assert follows_links(Terminal(), environment) is follows
    assert follows_links(None, environment) is (environment.get("FORCE_HYPERLINK") == "1")


def test_a_link_leads_to_the_rule() -> None:
    out = told("concise", finding(), hyperlinks=True)
    address = "https://sampler-lint.readthedocs.io/rules/smp101"
    assert f"\x1b]8;;{address}\x1b\\SMP101\x1b]8;;\x1b\\ It is wrong" in out
