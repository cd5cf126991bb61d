"""Configuration: where it is found, what it may say, and what it does."""

from __future__ import annotations

import os
import re
from dataclasses import fields
from pathlib import Path

import pytest

from sampler_lint import __version__, engine
from sampler_lint.cli import main
from sampler_lint.config import KEYS, Config, ConfigError, Lookup, parse_override
from sampler_lint.findings import Applicability
from sampler_lint.options import Options
from sampler_lint.rules import every_rule

FIXTURES = Path(__file__).parent.parent / "fixtures"
README = FIXTURES.parent / "README.md"
BAD = (FIXTURES / "SMP101/torch-batch-sampler/bad/train.py").read_bytes()


def plant(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one finding (SMP101), which is also the working directory."""
    plant(tmp_path / "pyproject.toml", "[project]\nname = 'p'\n")
    plant(tmp_path / "train.py", BAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line with which the command refuses to work."""
    assert main(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.removeprefix("error: ").rstrip("\n")


# --- where it is found


def test_the_nearest_configuration_holds_file_by_file(project: Path) -> None:
    plant(project / "pyproject.toml", "[tool.sampler-lint]\nignore = ['SMP1']\n")
    plant(project / "strict/train.py", BAD)
    plant(project / "strict/sampler-lint.toml", "select = ['SMP101']\n")
    plant(project / "strict/deeper/train.py", BAD)
    options = Lookup()
    report = engine.check(["."], lambda folder: options.at(folder).options)
    assert [finding.path for finding in report.findings] == [
        "strict/deeper/train.py",
        "strict/train.py",
    ]
    assert report.errors == []


def test_the_same_from_anywhere(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file's own configuration holds, not that of the working directory."""
    plant(project / "pyproject.toml", "[tool.sampler-lint]\nignore = ['SMP1']\n")
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert main([str(project)]) == 0
    assert main([str(project / "train.py")]) == 0
    assert main(["--isolated", str(project)]) == 1


def test_its_own_file_comes_before_pyproject(project: Path) -> None:
    plant(project / "pyproject.toml", "[tool.sampler-lint]\nignore = ['SMP1']\n")
    assert main([]) == 0
    plant(project / "sampler-lint.toml", "")
    assert main([]) == 1
    plant(project / ".sampler-lint.toml", "extend-ignore = ['smp1']\n")
    assert main([]) == 0


def test_a_folder_by_the_name_of_a_configuration_is_none(project: Path) -> None:
    (project / "sampler-lint.toml").mkdir()
    assert main([]) == 1


def test_one_file_for_all(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(project / "ci/lint.toml", "ignore = ['SMP1']\nexclude = ['/gen/']\n")
    plant(project / "gen/train.py", BAD)
    plant(project / "sampler-lint.toml", "select = ['SMP1']\n")
    assert main(["--config", "ci/lint.toml"]) == 0
    assert main(["--config", "ci/lint.toml", "--select", "SMP1"]) == 1
    assert capsys.readouterr().out.endswith("Found 1 finding (1 fixable with --fix) in 1 file.\n")
    plant(project / "ci/pyproject.toml", "[project]\n")
    assert complaint(capsys, "--config", "ci/pyproject.toml") == (
        "ci/pyproject.toml: has no [tool.sampler-lint]"
    )
    missing = complaint(capsys, "--config", "none.toml")
    assert missing == "none.toml: cannot be read: No such file or directory"
    assert "exclude each other" in complaint(capsys, "--config", "ci/lint.toml", "--isolated")
    assert "one file" in complaint(capsys, "--config", "ci/lint.toml", "--config", "ci/lint.toml")


def test_excluded_by_a_configuration_further_in(project: Path) -> None:
    plant(project / "pyproject.toml", "[tool.sampler-lint]\nexclude = ['/train.py', 'old/']\n")
    plant(project / "sub/train.py", BAD)
    plant(project / "sub/old/train.py", BAD)
    assert main([]) == 1
    plant(project / "sub/sampler-lint.toml", "exclude = ['/train.py']\nextend-exclude = ['old/']")
    assert main([]) == 0
    plant(project / "sub/sampler-lint.toml", "exclude = ['/train.py']\n")
    assert main([]) == 1  # old/ is another configuration's


def test_usual_folders_are_taken_back(project: Path) -> None:
    (project / "train.py").unlink()
    plant(project / "venv/train.py", BAD)
    plant(project / "dist/train.py", BAD)
    assert main([]) == 0
    for folder in ("venv", "dist"):
        plant(project / "sampler-lint.toml", f"exclude = ['!{folder}/']\n")
        assert main([]) == 1


# --- one that begins from another


def test_what_a_file_does_not_say_holds_from_the_one_it_extends(project: Path) -> None:
    plant(
        project / "sampler-lint.toml", "likely = true\nignore = ['SMP2']\nextend-select = ['SMP5']"
    )
    plant(project / "sub/pyproject.toml", "[tool.sampler-lint]\nextend = '../sampler-lint.toml'\n")
    assert Lookup().at("sub").options.likely
    more = "ignore = ['SMP4']\nextend-ignore = ['SMP6']\nextend-select = ['SMP6']\n"
    plant(project / "sub/sampler-lint.toml", f"extend = 'pyproject.toml'\n{more}")
    config = Lookup().at("sub")
    assert config.path == str(project / "sub/sampler-lint.toml")
    assert config.options.ignored == ("SMP4", "SMP6")
    assert config.options.extend_select == ("SMP5", "SMP6")
    assert Lookup(file="sub/sampler-lint.toml").at(".").options.ignore == ("SMP4",)


@pytest.mark.parametrize(
    ("base", "own", "left"),
    [
        ("exclude = ['/a.py']", "", ["sub/a.py", "sub/b.py"]),  # relative to its own file
        ("exclude = ['a.py']", "", ["sub/b.py"]),
        ("exclude = ['/sub/a.py']", "exclude = ['b.py']", ["sub/a.py"]),
        ("extend-exclude = ['/sub/a.py']", "exclude = ['b.py']", []),
        ("per-file-ignores = { 'a.py' = ['SMP1'] }", "", ["sub/b.py"]),
        (
            "per-file-ignores = { 'a.py' = ['SMP1'] }",
            "per-file-ignores = { 'b.py' = ['epoch-only-on-sampler'] }",
            ["sub/a.py"],
        ),
        (
            "per-file-ignores = { 'a.py' = ['SMP1'] }",
            "extend-per-file-ignores = { '/b.py' = ['SMP1'] }",
            [],
        ),
    ],
)
def test_patterns_of_an_extended_file(project: Path, base: str, own: str, left: list[str]) -> None:
    plant(project / "sub/a.py", BAD)
    plant(project / "sub/b.py", BAD)
    plant(project / "sampler-lint.toml", base)
    plant(project / "sub/sampler-lint.toml", f"extend = '../sampler-lint.toml'\n{own}")
    options = Lookup()
    report = engine.check(["sub"], lambda folder: options.at(folder).options)
    assert [finding.path for finding in report.findings] == left


def test_patterns_of_a_file_that_stands_aside_are_about_the_files_of_each(project: Path) -> None:
    plant(project / "shared/base.toml", "exclude = ['/train.py']\n")
    plant(project / "sampler-lint.toml", "extend = 'shared/base.toml'\n")
    assert main([]) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("extend = 'none.toml'", "1: extend: there is no file none.toml"),
        (
            "\nextend = 'sampler-lint.toml'",
            "2: extend leads back to where it began: ",
        ),
        ("extend = 'pyproject.toml'", "pyproject.toml: has no [tool.sampler-lint]"),
        (
            "extend = 'b.toml'",
            " it began: sampler-lint.toml -> b.toml -> sampler-lint",
        ),
        ("extend = '/proc/self/environ'", "1: extend leads out of the repository (use --config)"),
        ("baseline = '/proc/self/environ'", "1: baseline leads out of the repository"),
        (
            "required-version = '>=99'",
            "1: required-version: '>=99' is required, but this",
        ),
        ("required-version = '99'", "'99' is required"),
        ("required-version = 2", "1: required-version must be a version like"),
        ("required-version = 'x'", "1: required-version must be a version like"),
    ],
)
def test_what_cannot_be_begun_from(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    plant(project / "b.toml", "extend = 'sampler-lint.toml'\n")
    plant(project / "sampler-lint.toml", text)
    assert said in complaint(capsys)


def test_a_version_that_is_asked_for(project: Path) -> None:
    for text in (f"required-version = '{__version__}'", "required-version = '>=0.1,<99'"):
        plant(project / "sampler-lint.toml", text)
        assert main([]) == 1


# --- what it may say


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('a = 1\n\n[tool.sampler-lint]\nselct = ["SMP1"]', "4: has no key 'selct' (did you mean"),
        ("[tool.sampler-lint]\nxyzzy = 1", "2: has no key 'xyzzy' (it has: extend, "),
        ("[tool.sampler-lint]\n\nselect = 'SMP1'", "3: select must be a list of strings"),
        ("[tool.sampler-lint]\nignore = [\n'SMP1', 2]", "2: ignore must be a list of strings"),
        ("[tool.sampler-lint]\nselect = []\nignore = ['E501']", "3: ignore: no rule's code begins"),
        ("[tool.sampler-lint]\nunfixable = ['']", "2: unfixable: no rule's code begins with ''"),
        ("[tool.sampler-lint]\nper-file-ignores = ['a']", "2: per-file-ignores must be a table"),
        (
            "[tool.sampler-lint.per-file-ignores]\n'a' = ['SMP1']\n'b' = 'SMP1'",
            "1: per-file-ignores must give a list of codes for 'b'",
        ),
        ("[tool.sampler-lint]\nunsafe-fixes = 1", "2: unsafe-fixes must be true or false"),
        (
            "[tool.sampler-lint]\ntorch-version = 2.4",
            '2: torch-version must be a version like "2.4',
        ),
        ("[tool.sampler-lint]\noutput-format = 'jsn'", "(did you mean 'json'?)"),
        ("[tool.sampler-lint]\nframeworks = ['lightening']", "(did you mean 'lightning'?)"),
        ("[tool.sampler-lint]\nknown-samplers = ['a b']", "2: known-samplers must be a list of do"),
        ("[tool]\nsampler-lint.selct = 1", "2: has no key 'selct'"),
        ("[tool.sampler-lint]\ncache-dir = 3", "2: cache-dir must be a path"),
        (
            "[tool.sampler-lint]\nframeworks = ['lightning>=x']",
            "2: frameworks: '>=x' is no",
        ),
        ("[tool]\nsampler-lint = { selct = 1 }", "2: has no key 'selct'"),
        ("tool.sampler-lint.selct = 1", "1: has no key 'selct'"),
        ('[ tool . "sampler-lint" ]  # ours\nselct = 1', "2: has no key 'selct'"),
        ("[tool]\nsampler-lint = 3", "2: is not a table"),
        ("[other]\nselct = 1\n[tool.sampler-lint]\nselct = 1", "4: has no key"),
        ("[tool.sampler-lint]\na = 1\nb = [", "3: Invalid value"),
        ("[tool.sampler-lint]\na = 1\na = 2\n", "3: Cannot overwrite a value"),
        (b"[tool.sampler-lint]\n\n# \xff", "3: is not UTF-8"),
        ("\n[tool.sampler_lint]", "2: [tool.sampler_lint] is written"),
        ("[tool.SamplerLint]", "1: [tool.SamplerLint] is written"),
        ("a = 1\n[sampler-lint]\nselect = []", "2: [sampler-lint] is written [tool.sampler-lint]"),
        ("[tool.sampler-lint]\npreview = true", "2: has no key 'preview' (here: new rules are off"),
        ("[tool.sampler-lint.lint]\nselect = []", "1: has no key 'lint' (here: its keys belong "),
        ("[tool.sampler-lint]\nforce-exclude = true", "(here: an option of the command"),
        ("[tool.sampler-lint]\nselect = ['seed-not-pased']", "(did you mean 'seed-not-passed'?)"),
    ],
)
def test_what_is_wrong_is_said_with_its_row(
    project: Path, capsys: pytest.CaptureFixture[str], text: str | bytes, said: str
) -> None:
    plant(project / "pyproject.toml", text)
    found = complaint(capsys).replace("[tool.sampler-lint] ", "")
    assert found.startswith("pyproject.toml:")
    assert said in found
    assert main(["--isolated"]) == 1


def test_its_own_file_has_no_table(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(project / "sampler-lint.toml", "\n[tool.sampler-lint]\nselect = []\n")
    said = complaint(capsys)
    assert (
        said
        == "sampler-lint.toml:2: here the keys belong at the top level, without [tool.sampler-lint]"
    )


def test_a_file_by_a_name_that_is_not_read_is_an_error(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(project / "sampler_lint.toml", "select = []\n")
    assert complaint(capsys) == "sampler_lint.toml: is named sampler-lint.toml, with a hyphen"


def test_a_baseline_that_is_not_there_is_told_with_who_names_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(project / "pyproject.toml", "[tool.sampler-lint]\nbaseline = 'known.json'\n")
    said = "known.json: cannot be read: No such file or directory"
    assert complaint(capsys) == f"pyproject.toml: baseline: {said}"
    assert complaint(capsys, "--baseline", "known.json") == said
    assert main(["--write-baseline", "known.json"]) == 0
    assert main([]) == 0


def test_a_wrong_configuration_further_in_is_an_error(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(project / "sub/train.py", BAD)
    plant(project / "sub/sampler-lint.toml", "nonsense = 1\n")
    assert complaint(capsys).startswith("sub/sampler-lint.toml:1: has no key 'nonsense'")


def test_what_holds_for_a_project_is_not_said_for_a_part_of_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(project / "sub/train.py", BAD)
    plant(project / "sub/sampler-lint.toml", "torch-version = '2.4'\n")
    assert main([]) == 2
    assert "torch-version holds for a whole project" in capsys.readouterr().err
    plant(project / "sampler-lint.toml", "torch-version = '2.4'\n")
    assert main([]) == 1


def test_every_key_takes_its_example(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sampler_lint.rules.load", lambda package: None)  # as if it were installed
    plant(project / "sampler-lint.toml", "")
    for key in KEYS:
        plant(project / "sub/sampler-lint.toml", key.example)
        assert Lookup().at("sub").get(key) != Config().get(key), key.name


_DOCS = FIXTURES.parent / "docs"


def test_configurations_in_the_documentation_are_accepted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sampler_lint.rules.load", lambda package: None)  # as if it were installed
    texts = [path.read_text(encoding="utf-8") for path in (*_DOCS.glob("*.md"), README)]
    examples = [
        example
        for text in texts
        for example in re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
        if "[tool.sampler-lint]" in example
    ]
    assert len(examples) >= 3
    plant(project / "sampler-lint.toml", "")
    for example in examples:
        plant(project / "sub/pyproject.toml", example)
        assert Lookup().at("sub").path == str(project / "sub/pyproject.toml")


def test_every_option_is_a_key_or_is_none_of_a_file() -> None:
    known = {key.field for key in KEYS}
    names = {field.name for kind in (Config, Options) for field in fields(kind)}
    own = {"path", "options", "folder", "origin", "respect_noqa", "others"}
    assert names == known | own


# --- what it does


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select = ['SMP1']", 1),
        ("select = ['SMP2']", 0),
        ("select = ['epoch-only-on-sampler']", 1),
        ("ignore = ['epoch-only-on-sampler']", 0),
        ("select = ['SMP2']\nextend-select = ['SMP101']", 1),
        ("select = ['ALL']\nignore = ['SMP10']", 0),
        ("select = ['SMP101']\nignore = ['SMP1']", 1),
        ("per-file-ignores = { '*.py' = ['SMP1'] }", 0),
        ("per-file-ignores = { 'train.py' = ['SMP2'] }", 1),
        ("per-file-ignores = { 'train.py' = ['ALL'] }", 0),
        ("per-file-ignores = { '!/lib/' = ['SMP101'] }", 0),
        ("per-file-ignores = { '!/train.py' = ['SMP101'] }", 1),
    ],
)
def test_which_rules(project: Path, text: str, found: int) -> None:
    plant(project / "sampler-lint.toml", text)
    assert main([]) == found


@pytest.mark.parametrize(
    ("pattern", "path", "taken"),
    [
        ("tests/", "tests/a/b.py", True),
        ("tests/*", "tests/a/b.py", True),
        ("tests/**", "lib/tests/b.py", False),
        ("tests", "lib/tests/b.py", True),
        ("/b.py", "b.py", True),
        ("/b.py", "lib/b.py", False),
        ("b.py", "lib/b.py", True),
        ("*.py", "../b.py", False),
    ],
)
def test_patterns_of_files(project: Path, pattern: str, path: str, taken: bool) -> None:
    options = Options(per_file_ignores=((pattern, ("SMP1",)),), folder=os.getcwd())
    assert options.ignored_in(path) == (("SMP1",) if taken else ())


@pytest.mark.parametrize(
    ("text", "applied"),
    [
        ("", True),
        ("fixable = ['SMP1']", True),
        ("fixable = ['SMP2']", False),
        ("fixable = []", False),
        ("unfixable = ['SMP101']", False),
        ("unfixable = ['ALL']\nfixable = ['SMP101']", True),
        ("fixable = ['ALL']\nunfixable = ['SMP101']", False),
    ],
)
def test_what_may_be_fixed(project: Path, text: str, applied: bool) -> None:
    plant(project / "sampler-lint.toml", text)
    options = Lookup().at(".").options
    (finding,) = engine.check(["."], options).findings
    assert finding.fix is not None
    assert (finding.fix.applicability is Applicability.SAFE) is applied
    assert main(["--fix", "--unsafe-fixes"]) == (not applied)


def test_choices_of_the_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(project / "sampler-lint.toml", "output-format = 'json'\n")
    assert main([]) == 1
    assert capsys.readouterr().out.startswith("[")
    assert main(["--output-format", "text"]) == 1
    assert not capsys.readouterr().out.startswith("[")


# --- on the command line


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ('select=["SMP1"]', "select", ("SMP1",)),
        ("select=SMP1, SMP2", "select", ("SMP1", "SMP2")),
        ("unsafe-fixes = true", "unsafe_fixes", True),
        ("torch-version='2.4'", "torch_version", "2.4"),
        ("torch-version=2.4.1", "torch_version", "2.4.1"),
        ("output-format=json", "output_format", "json"),
        ("per-file-ignores={a=['SMP1']}", "per_file_ignores", (("a", ("SMP1",)),)),
    ],
)
def test_a_key_on_the_command_line(text: str, field: str, value: object) -> None:
    key, read = parse_override(text)
    assert (key.field, read) == (field, value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("selct=[]", "there is no key 'selct' (did you mean 'select'?)"),
        ("=x", "there is no key ''"),
        ("select=3", "select must be a list of strings"),
        ("ignore = [SMP2]", "ignore: [SMP2] is not TOML: "),
        ("unsafe-fixes=yes", "unsafe-fixes must be true or false"),
        ("unsafe-fixes=true\nselect=[]", "unsafe-fixes must be true or false"),
    ],
)
def test_a_key_that_is_none(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    with pytest.raises(ConfigError):
        parse_override(text)
    assert said in complaint(capsys, "--config", text)


def test_a_key_on_the_command_line_holds_in_every_configuration(project: Path) -> None:
    plant(project / "sub/train.py", BAD)
    plant(project / "sub/sampler-lint.toml", "select = ['SMP1']\n")
    assert main(["--config", "select=['SMP2']"]) == 0
    plant(project / "sub/sampler-lint.toml", "extend-ignore = ['SMP1']\n")
    assert main(["--config", "extend-ignore=['SMP2']", "sub"]) == 0  # it adds to that
    assert main(["--config", "select=['SMP2']", "--isolated"]) == 0
    assert main(["--config", "select=['SMP2']", "--extend-select", "SMP101"]) == 1


def test_show_files(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("b.py", "a.ipynb", "notes.txt", "third/c.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("no Python (")
    assert main(["--show-files", "--exclude", "third/"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert {"a.ipynb", "b.py"} <= {*listed}
    assert listed == sorted(listed)
    assert not {"notes.txt", "third/c.py"} & {*listed}
    assert main(["--show-files", "third/c.py", "missing.py"]) == 2
    out, err = capsys.readouterr()
    assert out == "third/c.py\n"
    assert err.startswith("error: missing.py: ")
    assert main(["--show-files", "--force-exclude", "--exclude", "third/", "third/c.py"]) == 0
    assert capsys.readouterr().out == ""


def test_show_settings(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "extend-select = ['SMP405']\nignore = ['SMP2']\nper-file-ignores = { 'a.py' = ['SMP1'] }"
    text += "\ntorch-version = '2.4'\n"
    plant(project / "sampler-lint.toml", text)
    assert main(["--show-settings", "a.py", "--ignore", "SMP201", "--exclude", "x"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"# a.py: {project / 'sampler-lint.toml'}"
    assert 'ignore = ["SMP2", "SMP201"]' in lines
    assert 'per-file-ignores = { "a.py" = ["SMP1"] }' in lines
    assert 'torch-version = "2.4"' in lines
    assert "# output-format is not set" in lines
    assert '# and below .: exclude ["x"]' in lines
    states = {line.split()[1]: line.split(" ", 2)[2] for line in lines if line[:5] == "# SMP"}
    assert states.keys() >= {rule.code for rule in every_rule()}
    assert states["SMP101"].startswith("off by per-file-ignores SMP1 ")
    assert states["SMP201"].startswith("off by ignore SMP201 ")
    assert states["SMP202"].startswith("off by ignore SMP2 ")
    assert states["SMP301"].startswith("on  by default ")
    assert states["SMP405"].startswith("on  by extend-select SMP405 ")
    # What is shown can be pasted as a configuration that says the same.
    plant(project / "sampler-lint.toml", "\n".join(lines))
    assert main(["--show-settings", "a.py"]) == 0
    again = capsys.readouterr().out.splitlines()
    assert [line for line in again if "=" in line] == [line for line in lines if "=" in line]


def test_explain_reads_the_configuration(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(project / "sampler-lint.toml", "nonsense = 1\n")
    assert "has no key 'nonsense'" in complaint(capsys, "explain", "train.py:39")
    assert main(["explain", "train.py:39", "--isolated"]) == 0


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--select", "epoch-only-on-sampler"], 1),
        (["--ignore", "epoch-only-on-sampler"], 0),
        (["--select", "smp1"], 1),
        (["--select", "Epoch_Only_On_Sampler"], 1),
        (["--select", "all", "--ignore", "SMP101"], 0),
        (["--exclude", "train.py"], 0),
        (["--extend-exclude", "train.py"], 0),
        (["--exclude", "x", "sub"], 1),
        (["--extend-exclude", "x", "sub"], 0),
        (["--per-file-ignores", "/train.py:SMP2,train.py:SMP1"], 0),
        (["--per-file-ignores", "*.py:epoch-only-on-sampler"], 0),
        (["--per-file-ignores", "x:SMP1", "sub/own"], 1),
        (["--extend-per-file-ignores", "x:SMP1", "sub/own"], 0),
    ],
)
def test_choosing_as_with_ruff(project: Path, arguments: list[str], found: int) -> None:
    plant(project / "sub/sampler-lint.toml", "exclude = ['/train.py']\n")
    plant(project / "sub/train.py", BAD)
    plant(project / "sub/own/train.py", BAD)
    plant(project / "sub/own/sampler-lint.toml", "per-file-ignores = { '*.py' = ['SMP1'] }\n")
    whole = [] if {"sub", "sub/own"} & {*arguments} else ["train.py", "--force-exclude"]
    assert main([*arguments, *whole]) == found


def test_a_pattern_without_codes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--per-file-ignores", "tests/"])
    assert "'tests/' is not PATTERN:CODE" in capsys.readouterr().err
