"""The command: what it prints where, its exit codes, and what it must not import."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sampler_lint import __version__, engine
from sampler_lint.cache import Cache
from sampler_lint.cli import COMMANDS, main
from sampler_lint.cli._common import keyword
from sampler_lint.config._habits import COMMANDS as COMMANDS_ELSEWHERE
from sampler_lint.config._habits import NAMES
from sampler_lint.findings import Applicability, Edit, Finding, Fix, Place, Position, Related
from sampler_lint.harness import verify
from sampler_lint.harness.invariants import Verdict
from sampler_lint.reporters.diff import unified_diff
from sampler_lint.rules import every_rule

FIXTURES = Path(__file__).parent.parent / "fixtures"
FIXTURE = FIXTURES / "SMP101" / "torch-batch-sampler"
BAD = (FIXTURE / "bad" / "train.py").read_bytes()
FIXED = (FIXTURE / "fixed" / "train.py").read_bytes()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty project that is also the working directory."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return tmp_path


@pytest.fixture
def buggy(project):
    (project / "train.py").write_bytes(BAD)
    return project


def run(*arguments, data=None, cwd=None):
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "sampler_lint", *arguments],
        input=data,
        capture_output=True,
        cwd=cwd,
        check=False,
    )


# --- exit codes and streams ---------------------------------------------------------------


def test_clean_tree(project, capsys):
    (project / "a.py").write_text("x = 1\n")
    assert main([]) == 0
    assert capsys.readouterr() == ("All clear: 1 file checked.\n", "")


def test_empty_tree(project, capsys):
    assert main([]) == 0
    assert capsys.readouterr() == ("No Python files found.\n", "")


@pytest.mark.parametrize("arguments", [[], ["check"], ["."], ["check", "train.py"]])
def test_findings(buggy, capsys, arguments):
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert "train.py:39:13: SMP101 [*] " in out
    assert out.endswith("Found 1 finding (1 fixable with --fix) in 1 file.\n")
    assert err == ""
    assert (buggy / "train.py").read_bytes() == BAD


@pytest.mark.parametrize("form", ["text", "concise", "grouped"])
def test_quiet_leaves_the_findings(buggy, capsys, form):
    assert main(["--output-format", form]) == 1
    told = capsys.readouterr().out
    assert main(["-q", "--output-format", form]) == 1
    out, err = capsys.readouterr()
    assert "Found 1 finding" in told.removeprefix(out)
    assert told.startswith(out)
    assert "SMP101" in out
    assert err == ""


def test_quiet_where_nothing_is_left(buggy, capsys):
    assert main(["--quiet", "--statistics"]) == 1
    assert capsys.readouterr().out == "    1  SMP101  [*] epoch-only-on-sampler\n"
    assert main(["--quiet", "--diff"]) == 1
    assert "Would fix" not in capsys.readouterr().err
    assert main(["--quiet", "--patch-dir", "patches"]) == 1
    assert main(["--quiet", "--write-baseline", "known.json"]) == 0
    assert main(["--quiet", "--fix"]) == 0
    assert main(["--quiet", "--baseline", "known.json"]) == 0
    assert main(["--quiet", "--add-noqa"]) == 0
    assert capsys.readouterr() == ("", "")


def test_exit_zero(buggy):
    assert main(["--exit-zero"]) == 0


def test_exit_zero_covers_files_that_cannot_be_read(buggy, capsys):
    buggy.joinpath("broken.py").write_text("def f(:\n")
    assert main(["--exit-zero", "."]) == 0
    assert "broken.py:1: is not valid Python" in capsys.readouterr().err


def test_exit_zero_does_not_hide_a_missing_path(buggy):
    assert main(["--exit-zero", "missing.py"]) == 2


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("broken.py", b"x = (\n", b"error: broken.py:1: "),
        ("latin.py", b"1\n2\nsampler = '\xe9'\n", b"error: latin.py:3: cannot be decoded as utf-8"),
        ("cookie.py", b"# coding: nope\nsampler = 1\n", b"error: cookie.py: cannot be decoded"),
    ],
)
def test_a_bad_file_is_one_line_and_the_others_are_still_checked(buggy, name, content, line):
    (buggy / name).write_bytes(content)
    result = run(cwd=buggy)
    assert result.returncode == 2
    assert b"train.py:39:13: SMP101" in result.stdout
    assert result.stderr.startswith(line)
    assert result.stderr.count(b"\n") == 1


@pytest.mark.skipif(
    not os.path.exists("/proc/self/mem"), reason="needs a file that fails to be read"
)
def test_unreadable_file(buggy):
    result = run("/proc/self/mem", "train.py", cwd=buggy)
    assert result.returncode == 2
    assert result.stderr.startswith(b"error: /proc/self/mem: cannot be read: ")
    assert result.stderr.count(b"\n") == 1
    assert b"train.py:39:13: SMP101" in result.stdout


def test_missing_file(buggy, capsys):
    assert main(["missing.py", "train.py"]) == 2
    out, err = capsys.readouterr()
    assert "SMP101" in out
    assert err == "error: missing.py: no such file or directory\n"


def test_only_errors_is_not_all_clear(project, capsys):
    (project / "broken.py").write_text("sampler = (\n")
    assert main([]) == 2
    assert "All clear" not in capsys.readouterr().out


# --- choosing rules -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--select", "SMP101"], 1),
        (["--select", "SMP1,SMP101"], 1),
        (["--select", "ALL"], 1),
        (["--select", "ALL", "--ignore", "SMP101"], 0),
        (["--ignore", "SMP1"], 0),
        (["--ignore", "SMP1", "--select", "SMP101"], 1),
    ],
)
def test_select_and_ignore(buggy, arguments, code):
    assert main(arguments) == code


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_an_unknown_code_is_an_error(buggy, capsys, option):
    assert main([option, "SMP101,XYZ1"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: no rule's code begins with 'XYZ1' (sampler-lint rule lists them)\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--select", "SMP101,"],
        ["--nonsense"],
        ["--output-format", "xml"],
        ["--sel", "SMP101"],
        ["rule", "SMP101", "SMP102"],
        ["rule", "--all", "SMP101"],
    ],
)
def test_bad_arguments(project, arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    "arguments",
    [["--stdin-filename", "x.py", "."], ["-", "x.py"], ["--diff", "--output-format", "json"]],
)
def test_arguments_that_exclude_each_other(project, capsys, arguments):
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_options_may_stand_among_paths(buggy):
    (buggy / "clean.py").write_text("x = 1\n")
    assert main(["clean.py", "--ignore", "SMP101", "train.py"]) == 0
    assert main(["clean.py", "--select", "SMP101", "train.py"]) == 1


@pytest.mark.parametrize("before", [[], ["check"], ["--select", "SMP1"], ["clean.py"]])
def test_paths_that_look_like_options(project, capsys, before):
    (project / "clean.py").write_text("x = 1\n")
    (project / "-weird.py").write_bytes(BAD)
    assert main([*before, "--", "-weird.py"]) == 1
    assert "-weird.py:39:13: SMP101" in capsys.readouterr().out


def test_a_file_with_a_command_s_name(project):
    (project / "rule").write_bytes(BAD)
    assert main(["./rule"]) == 1


CROSS_FILE = Path(__file__).parent.parent / "fixtures/SMP102/factory-tuple/bad"


@pytest.mark.parametrize("named", ["data.py", "./data.py"])
def test_a_named_file_breaks_another(project, capsys, named):
    """The sampler is built in data.py, and the loop that never sets its epoch is in train.py."""
    for file in CROSS_FILE.glob("*.py"):
        (project / file.name).write_bytes(file.read_bytes())
    before = (project / "train.py").read_bytes()
    assert main([named]) == 0
    for _ in range(2):  # the second one from the cache
        assert main(["--related", named]) == 1
    capsys.readouterr()
    assert main(["--related", "--fix", named]) == 1
    assert "its fix edits train.py, which was not among the paths" in capsys.readouterr().out
    assert (project / "train.py").read_bytes() == before
    (project / "other.py").write_text("from torch.utils.data import DataLoader\n")
    assert main(["--related", "other.py"]) == 0  # nothing rests on it


@pytest.mark.parametrize("paths", [["train.py"], ["./train.py", "clean.py"]])
def test_what_is_excluded_is_left_out_though_it_is_named(buggy, capsys, paths):
    (buggy / "clean.py").write_text("x = 1\n")
    (buggy / "script").write_bytes(BAD)
    (buggy / "sampler-lint.toml").write_text("exclude = ['train.py']\n")
    assert main(paths) == 1  # naming a file is asking for it
    assert main(["--force-exclude", *paths]) == 0
    assert main(["--force-exclude", "--ignore", "SMP101", "--diff", *paths]) == 0
    (buggy / "sampler-lint.toml").write_text("")
    assert main(["--force-exclude", *paths]) == 1
    (buggy / ".git").mkdir()
    (buggy / ".gitignore").write_text("train.py\n")
    assert main(["--force-exclude", *paths]) == 0
    assert main(["--force-exclude", "script"]) == 1  # no walk meets it, so none leaves it out
    assert main(["--force-exclude", "nothing.py"]) == 2


def test_exclude(buggy):
    assert main(["--exclude", "docs,train.py"]) == 0


# --- configuration ------------------------------------------------------------------------


def configure(folder, text):
    (folder / "pyproject.toml").write_text(f"[tool.sampler-lint]\n{text}\n")


def test_configuration_of_the_nearest_project(buggy, monkeypatch):
    configure(buggy, 'ignore = ["SMP101"]')
    assert main([]) == 0
    assert main(["--isolated"]) == 1
    below = buggy / "below"
    below.mkdir()
    (below / "pyproject.toml").write_text("[project]\nname = 'another'\n")
    (below / "train.py").write_bytes(BAD)
    monkeypatch.chdir(below)
    assert main([]) == 0


def test_select_on_the_command_line_outdoes_the_configuration(buggy):
    configure(buggy, 'ignore = ["SMP101"]')
    assert main(["--select", "SMP101"]) == 1


def test_ignore_and_extend_exclude_add_to_the_configuration(buggy):
    (buggy / "other.py").write_bytes(BAD)
    configure(buggy, 'exclude = ["other.py"]\nselect = ["SMP101"]')
    assert main(["--extend-exclude", "train.py"]) == 0
    assert main(["--ignore", "SMP101"]) == 0
    assert main([]) == 1


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("src/gen/", False),
        ("/src/gen/train.py", False),
        ("*/gen/*.py", False),
        ("**/gen/train.py", False),
        ("src/**/train.py", False),
        ("train.py", False),
        ("gen/", False),
        ("/gen/", True),
        ("docs/gen/", True),
        ("/train.py", True),
        ("src/gen/other.py", True),
    ],
)
def test_configured_patterns_are_relative_to_the_configuration(
    project, monkeypatch, pattern, found
):
    configure(project, f'exclude = ["{pattern}"]')
    (project / "src" / "gen").mkdir(parents=True)
    (project / "src" / "gen" / "train.py").write_bytes(BAD)
    assert main([]) == found
    monkeypatch.chdir("src")
    assert main([]) == found


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('selct = ["SMP1"]', "has no key 'selct'"),
        ('select = "SMP1"', "select must be a list of strings"),
        ("select = [1]", "select must be a list of strings"),
        ('select = ["NOPE"]', "no rule's code begins with 'NOPE'"),
        ("select = [", "pyproject.toml:2: "),
    ],
)
def test_a_wrong_configuration_is_an_error(buggy, capsys, text, complaint):
    configure(buggy, text)
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err
    assert err.count("\n") == 1
    assert main(["--isolated"]) == 1


def test_a_broken_configuration_that_is_not_ours_is_not_read(buggy):
    (buggy / "pyproject.toml").write_text("[[[\n")
    assert main([]) == 1


def test_tool_may_be_anything(buggy):
    (buggy / "pyproject.toml").write_text("tool = 'sampler-lint'\n")
    assert main([]) == 1


# --- fixing -------------------------------------------------------------------------------


def test_fix(buggy, capsys):
    assert main(["--fix"]) == 0
    assert capsys.readouterr() == (
        "train.py:39:13: SMP101 fixed: Call `set_epoch` on "
        "`train_loader.batch_sampler.sampler`\n"
        "Fixed 1 finding in 1 file; none left.\n",
        "",
    )
    assert (buggy / "train.py").read_bytes() == FIXED
    assert main(["--fix"]) == 0
    assert capsys.readouterr().out == "All clear: 1 file checked.\n"


def test_exit_non_zero_on_fix(buggy):
    assert main(["--fix", "--exit-non-zero-on-fix"]) == 1
    assert (buggy / "train.py").read_bytes() == FIXED
    assert main(["--fix", "--exit-non-zero-on-fix"]) == 0


def test_json_of_what_is_left_after_fixes(buggy, capsys):
    assert main(["--fix", "--output-format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_fix_that_cannot_be_written(buggy, capsys):
    (buggy / "train.py").chmod(0o444)
    assert main(["--fix"]) != 0
    assert (buggy / "train.py").read_bytes() == BAD
    assert "1 left: train.py:39:13: SMP101 (cannot be written" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.rstrip(b"\n"),
        lambda data: b"# coding: latin-1\n# \xe9\x0c\n" + data,
    ],
    ids=["plain", "crlf", "bom", "no-newline-at-end", "latin-1-form-feed"],
)
def test_diff_is_what_fix_does(project, change, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as CI does for all programs
    patches(project / "train.py", change)


@pytest.mark.parametrize("name", ["a b.py", 'q"\\ü.py'])
def test_diff_names_the_file_for_git(project, name):
    patches(project / name, lambda data: data)


def patches(path, change):
    """What ``--diff`` prints for git is what ``--fix`` does."""
    before = change(BAD)
    path.write_bytes(before)
    subprocess.run(["git", "init", "-q"], check=True)
    result = run("--diff", path.name)
    assert result.returncode == 1
    line, summary = result.stderr.splitlines()
    assert b":13: SMP101 would be fixed: Call `set_epoch` on" in line
    assert summary == b"Would fix 1 finding in 1 file; none left."
    assert path.read_bytes() == before

    apply = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(apply, input=result.stdout, check=True)
    patched = path.read_bytes()
    assert patched == change(FIXED)

    path.write_bytes(before)
    assert run("--fix", path.name).returncode == 0
    assert path.read_bytes() == patched


COLORED = re.compile("\x1b\\[(?:1|31|32|36)m(.*)\x1b\\[0m")


@pytest.mark.parametrize(
    ("on_terminal", "arguments", "environment", "colored"),
    [
        (True, [], {}, True),
        (True, ["--color", "never"], {}, False),
        (True, [], {"NO_COLOR": "1"}, False),
        (False, ["--color", "always"], {}, True),
    ],
)
def test_diff_for_people(buggy, monkeypatch, on_terminal, arguments, environment, colored):
    """It has the colours of git, and no source line commands the terminal."""
    evil = BAD.replace(
        b"        model.train()", b"        model.train()\t# \x1b]0;title\x07 \r# \xff"
    )
    (buggy / "train.py").write_bytes(b"# coding: latin-1\n" + evil.replace(b"\n", b"\r\n"))
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stdout = Terminal() if on_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stdout", stdout)
    main(["--diff", *arguments])
    lines = stdout.getvalue().splitlines()
    assert all(COLORED.fullmatch(line) for line in lines if line[0] != " ") is colored
    plain = [COLORED.sub(r"\1", line) for line in lines]
    assert plain[:2] == ["--- a/train.py", "+++ b/train.py"]
    assert "+            train_loader.batch_sampler.sampler.set_epoch(epoch)" in plain
    assert "         model.train()\t# \\x1b]0;title\\x07 \\r# \\xff" in plain
    assert not set("\x1b\x07\r") & set("".join(plain))


def test_diff_of_the_last_line(project):
    """The marker for a missing newline at the end stands where git wants it."""
    path = project / "train.py"
    before, after = b"a = 1\nb = 2", b"a = 1\nb = 3\r"
    path.write_bytes(before)
    patch = unified_diff("train.py", before, after)
    assert patch.count(b"\\ No newline at end of file\n") == 2
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "apply", "-"], input=patch, check=True)
    assert path.read_bytes() == after


def test_diff_of_a_clean_tree(project, capsys):
    (project / "a.py").write_text("x = 1\n")
    assert main(["--diff"]) == 0
    assert capsys.readouterr().out == ""


def test_diff_wins_over_fix(buggy):
    assert main(["--fix", "--diff"]) == 1
    assert (buggy / "train.py").read_bytes() == BAD


def test_unsafe_fixes_are_passed_on(buggy, monkeypatch):
    seen = []

    def fix(paths, options, *, unsafe, write, **_):
        seen.append((unsafe, write))
        return engine.FixReport(engine.Report())

    monkeypatch.setattr(engine, "fix", fix)
    main(["--fix"])
    main(["--fix", "--unsafe-fixes"])
    main(["--diff", "--unsafe-fixes"])
    assert seen == [(False, True), (True, True), (True, False)]


# --- standard input -----------------------------------------------------------------------


def test_stdin(project):
    result = run("-", "--stdin-filename", "pkg/train.py", data=BAD, cwd=project)
    assert result.returncode == 1
    assert b"pkg/train.py:39:13: SMP101" in result.stdout


def test_stdin_without_a_name(project):
    result = run("--stdin-filename", "train.py", data=BAD, cwd=project)
    assert b"train.py:39:13: SMP101" in result.stdout
    result = run("-", data=BAD, cwd=project)
    assert result.returncode == 1
    assert b"-:39:13: SMP101" in result.stdout


def test_stdin_stands_for_the_file_on_disk(buggy):
    result = run("-", "--stdin-filename", "train.py", data=FIXED, cwd=buggy)
    assert (result.returncode, result.stdout) == (0, b"All clear: 1 file checked.\n")


def test_stdin_fix_prints_the_source_and_tells_the_rest_elsewhere(buggy):
    data = BAD.replace(b"\n", b"\r\n")
    result = run("-", "--fix", "--stdin-filename", "train.py", data=data, cwd=buggy)
    assert result.returncode == 0
    assert result.stdout == FIXED.replace(b"\n", b"\r\n")
    assert result.stderr.endswith(b"Fixed 1 finding in 1 file; none left.\n")
    assert (buggy / "train.py").read_bytes() == BAD


def test_stdin_fix_hands_back_what_it_cannot_parse(project):
    """An editor that replaces its buffer by the output must not lose the buffer."""
    data = b"sampler = (\r\n"
    result = run("-", "--fix", data=data, cwd=project)
    assert (result.returncode, result.stdout) == (2, data)
    assert b"error: -:" in result.stderr


# --- robustness ---------------------------------------------------------------------------


def test_a_file_name_that_is_not_text(project):
    name = os.fsdecode(b"caf\xe9.py")
    try:
        Path(name).write_bytes(BAD)
    except OSError:
        pytest.skip("this file system takes no such name")
    assert rb"caf\udce9.py:39:13: SMP101" in run().stdout
    found = json.loads(run("--output-format", "json").stdout)
    assert os.path.basename(found[0]["filename"]) == name


def test_a_file_name_that_commands_the_terminal(project, capsys):
    Path("a\x1b[2Jb.py").write_bytes(BAD)
    Path("c\x1b[2Jd.py").write_bytes(b"(")
    assert main(["--color", "never"]) == 2
    out, err = capsys.readouterr()
    assert "a\\x1b[2Jb.py:39:13" in out
    assert "c\\x1b[2Jd.py:1" in err
    assert "\x1b" not in out + err


def test_a_terminal_that_knows_only_ascii(project):
    (project / "é.py").write_bytes(BAD)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(
        [sys.executable, "-m", "sampler_lint"], capture_output=True, env=environment, check=False
    )
    assert result.returncode == 1
    assert rb"\xe9.py:39:13" in result.stdout


@pytest.mark.skipif(os.name != "posix", reason="descriptors are closed otherwise there")
@pytest.mark.parametrize(("source", "status"), [(BAD, 1), (b"x = 1\n", 0)])
def test_streams_that_were_closed_beforehand(project, source, status):
    (project / "train.py").write_bytes(source)
    closed = ["/bin/sh", "-c", 'exec "$0" -m sampler_lint >&- 2>&-']
    assert subprocess.run([*closed, sys.executable], check=False).returncode == status


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has such a device")
@pytest.mark.parametrize(
    "arguments", [[], ["--diff"], ["--output-format", "json"], ["rule"], ["--show-settings"]]
)
def test_output_that_cannot_be_written(project, arguments):
    for number in range(20):
        (project / f"train{number}.py").write_bytes(BAD)
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "sampler_lint", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
        assert done.stderr == b"error: the output cannot be written: No space left on device\n"
        assert done.returncode == 2
        assert subprocess.run(command, stdout=full, stderr=full, check=False).returncode == 2


@pytest.mark.skipif(os.name != "posix", reason="a folder that is in use stays there")
def test_a_working_directory_that_is_gone(tmp_path, monkeypatch, capsys):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main([]) == 2
    assert capsys.readouterr().err == "error: the working directory is not there any more\n"


@pytest.mark.skipif(os.name != "posix", reason="pipes work otherwise there")
def test_a_reader_that_stops_early(project):
    for number in range(60):
        (project / f"train{number}.py").write_bytes(BAD)
    with subprocess.Popen(
        [sys.executable, "-m", "sampler_lint"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_ctrl_c(project, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "check", interrupted)
    assert main([]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "environment", "colored"),
    [
        ([], {}, False),
        (["--color", "always"], {}, True),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {}, False),
    ],
)
def test_color_without_a_terminal(buggy, monkeypatch, capsys, arguments, environment, colored):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    main(arguments)
    assert ("\x1b[" in capsys.readouterr().out) is colored


@pytest.mark.parametrize(
    ("environment", "colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_color_on_a_terminal(buggy, monkeypatch, environment, colored):
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    main([])
    assert ("\x1b[" in terminal.getvalue()) is colored


def test_json_of_a_fix_in_another_file(buggy, monkeypatch, capsys):
    (buggy / "data.py").write_text("a = 1\nb = 2\n")
    edits = (Edit("data.py", 6, 7, "c"), Edit("train.py", 0, 0, "x = 1\n"))
    fix = Fix("Move it", Applicability.UNSAFE, edits)
    why = (Related(Place("data.py", Position(2, 1)), "here"),)
    finding = Finding("SMP201", "m", "train.py", Position(1, 1), Position(1, 2), fix, why)
    monkeypatch.setattr(engine, "check", lambda *_, **__: engine.Report([finding]))
    assert main(["--output-format", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert found["fix"] == {
        "applicability": "unsafe",
        "message": "Move it",
        "edits": [
            {
                "content": "c",
                "location": {"row": 2, "column": 1},
                "end_location": {"row": 2, "column": 2},
                "filename": str(buggy / "data.py"),
            },
            {
                "content": "x = 1\n",
                "location": {"row": 1, "column": 1},
                "end_location": {"row": 1, "column": 1},
            },
        ],
    }


# --- rule ---------------------------------------------------------------------------------


def test_rule_page(capsys):
    assert main(["rule", "smp101"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# epoch-only-on-sampler (SMP101)\n\nFixable: ")
    assert "On by default." in out
    assert "Why is this bad?" in out
    assert out.endswith("https://sampler-lint.readthedocs.io/rules/smp101\n")


def test_all_rules(capsys):
    assert main(["rule", "--all", "--output-format", "json"]) == 0
    pages = json.loads(capsys.readouterr().out)
    assert [page["code"] for page in pages] == [rule.code for rule in every_rule()]
    assert all(page["summary"] and page["summary"] in page["explanation"] for page in pages)


def test_rules_are_listed(capsys):
    assert main(["rule"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(every_rule())
    assert "SMP101  epoch-only-on-sampler" in lines


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["--slect", "SMP1"], "--select"),
        (["--exit-non-zero"], "--exit-non-zero-on-fix"),
        (["--output_format=json"], "--output-format"),
        (["--nofix"], "--no-fix"),
        (["rule", "--output-fromat", "json"], "--output-format"),
        (["verify", "x", "--world-sizes", "2"], "--world-size"),
        (["contract", "--world-size", "2", "a:B"], "--world-sizes"),
    ],
)
def test_a_misspelt_option_names_the_one_that_was_meant(arguments, meant, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f" (did you mean {meant!r}?)\n")


def test_other_usage_errors_name_no_option(capsys):
    opposites = (
        ["--no-diff"],
        ["--max-severity=error"],
        ["--include=x"],
        ["--unselect"],
        ["--fix-only"],
        ["--noqa"],
    )
    for arguments in (["--jobs", "x"], ["--xyzzy"], ["rule", "a", "b"], *opposites):
        with pytest.raises(SystemExit):
            main(arguments)
        assert "did you mean" not in capsys.readouterr().err


def test_every_option_of_another_tool_is_answered_and_is_none_of_ours(project, capsys):
    for words, told in NAMES:
        for word in (word for word in words.split(", ") if word.startswith("-")):
            with pytest.raises(SystemExit):
                main([word])
            said = f"unrecognized arguments: {word} (here: {told})\n"
            assert capsys.readouterr().err.endswith(said)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        *((word, f"here: {told}") for word, told in COMMANDS_ELSEWHERE),
        ("ruel", "did you mean 'rule'?"),
        ("expalin", "did you mean 'explain'?"),
        ("SMP102", "codes are joined by commas: --select SMP101,SMP102"),
    ],
)
def test_a_path_that_is_a_command_or_a_code_is_told(project, word, hint, capsys):
    assert main(["--select", "SMP101", word]) == 2
    assert capsys.readouterr().err == f"error: {word}: no such file or directory ({hint})\n"


def test_options_by_the_names_of_other_tools(buggy, tmp_path, capsys):
    assert main(["--extend-ignore", "SMP101"]) == 0
    assert main(["--select", "smp101", "-e", "-n"]) == 0
    assert main(["-o", str(tmp_path / "report")]) == 1
    assert "SMP101" in (tmp_path / "report").read_text()
    text = (buggy / "train.py").read_text().replace("set_epoch(epoch)", "set_epoch(epoch)  # noqa")
    (buggy / "train.py").write_text(text)
    assert main([]) == 0
    for option in ("--ignore-noqa", "--disable-noqa"):
        assert main([option]) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["explain", "train.py"], "train.py: give a file and a line, as in train.py:31"),
        (["explain", "train.py:x"], "train.py:x: give a file and a line, as in train.py:31"),
        (["contract", "a:B", "--kw", "3=4"], "'3=4' is not NAME=VALUE"),
        (["contract", "a:B", "--kw", "size"], "'size' is not NAME=VALUE"),
        (["contract", "a:B", "--sizes", "2,x"], "'2,x' is not a list of numbers"),
        (["trace", "--timeout", "soon", "true"], "'soon' is not a positive number of seconds"),
        (["trace", "--timeout", "inf", "true"], "'inf' is not a positive number of seconds"),
    ],
)
def test_values_that_are_none(arguments, said, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_a_value_on_the_command_line_is_a_literal_or_else_text():
    texts = ("n=4", "names=['a']", "path=a b", "sign==")
    assert [keyword(text)[1] for text in texts] == [4, ["a"], "a b", "="]


def test_a_promise_that_is_none_is_named(capsys):
    assert main(["contract", "a:B", "--allow", "covrage"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: no promise is called 'covrage'; known are ")
    assert "coverage" in err


def test_a_cache_that_cannot_be_deleted_is_named(monkeypatch, capsys):
    def clear(cache):
        raise PermissionError(13, "Permission denied", "/kept")

    monkeypatch.setattr(Cache, "clear", clear)
    assert main(["--clear-cache"]) == 2
    assert capsys.readouterr().err == "error: /kept: cannot be deleted: Permission denied\n"


def test_what_the_server_lacks_is_named_only_if_it_is_its_own(monkeypatch):
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    monkeypatch.delitem(sys.modules, "sampler_lint.language_server.server", raising=False)
    monkeypatch.delitem(sys.modules, "sampler_lint.language_server.convert", raising=False)
    assert main(["server"]) == 2
    monkeypatch.setitem(sys.modules, "sampler_lint.language_server.server", None)
    with pytest.raises(ModuleNotFoundError):
        main(["server"])


def test_explain_takes_a_place_with_its_column(buggy, capsys):
    assert main(["explain", "train.py:39"]) == 0
    told = capsys.readouterr().out
    assert main(["explain", "train.py:39:13"]) == 0
    assert capsys.readouterr().out == told
    assert "SMP101 reported" in told


def test_explain_names_a_line_that_is_not_there(buggy, capsys):
    assert main(["explain", "train.py:9999"]) == 2
    err = capsys.readouterr().err
    assert re.fullmatch(r"error: train.py: there is no line 9999; the last is \d+\n", err)


def test_help_names_every_command_and_fits_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    for command in COMMANDS:
        with pytest.raises(SystemExit) as caught:
            main([command, "--help"])
        assert caught.value.code == 0
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= 80, command
        if command == "check":
            named = set(re.findall(r"^  sampler-lint (\w+)", text, re.MULTILINE))
            assert named == {*COMMANDS} - {"check"}


def test_rule_json(capsys):
    assert main(["rule", "SMP101", "--output-format", "json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert (page["code"], page["default"], page["name"]) == (
        "SMP101",
        True,
        "epoch-only-on-sampler",
    )


@pytest.mark.parametrize("arguments", [["rule", "--all"], ["explain", "train.py:39"]])
def test_what_is_explained_fits_a_terminal(buggy, monkeypatch, capsys, arguments):
    assert main(arguments) == 0
    told = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert main(arguments) == 0
    shown = sys.stdout.getvalue()
    assert shown.split() == told.split()
    assert max(map(len, told.splitlines())) > 80
    assert not [line for line in shown.splitlines() if len(line) > 80 and " " in line.strip()]
    assert shown.count("\n\n") == told.count("\n\n")
    items = [line for line in told.splitlines() if line.startswith("    - ")]
    assert sum(line.startswith("    - ") for line in shown.splitlines()) == len(items)


def test_unknown_rule(capsys):
    assert main(["rule", "SMP1"]) == 2
    assert capsys.readouterr().err == (
        "error: no rule has the code or name 'SMP1' "
        "(sampler-lint rule lists them, --search finds one)\n"
    )


# --- verify -------------------------------------------------------------------------------


@pytest.fixture
def proofs(monkeypatch):
    """What verify is asked for; it answers with one proof, or one more that failed."""
    broken, holds = Verdict(False, "same order \x1b[2J"), Verdict(True, "two orders")
    proved = verify.Proof("SMP101/a", "SMP101", "reshuffles", broken, holds)
    failed = verify.Proof("SMP101/b", "SMP101", "reshuffles", broken, broken)
    asked = []

    def verify_fixtures(paths, *, jobs, world_size, progress):
        for name in ("SMP101/a", "SMP101/b"):
            progress(name, 2)
        asked.append((paths, jobs, world_size))
        return [proved, failed] if "failing" in paths else [proved]

    monkeypatch.setattr(verify, "verify_fixtures", verify_fixtures)
    return asked


def test_verify(proofs, capsys):
    assert main(["verify", "fixtures"]) == 0
    assert "same order \\x1b[2J" in capsys.readouterr().out
    usual = min(8, 2 * os.cpu_count())
    assert main(["verify", "--jobs", "2", "--world-size", "3", "fixtures", "failing"]) == 1
    assert "1 of 2" in capsys.readouterr().out
    assert proofs == [(["fixtures"], usual, None), (["fixtures", "failing"], 2, 3)]


def test_verify_shows_how_far_it_is(proofs, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", Terminal())
    assert main(["verify", "fixtures"]) == 0
    assert "] 1/2 SMP101/b" in sys.stderr.getvalue()
    assert sys.stderr.getvalue().endswith("\r\x1b[K")


def test_verify_json(proofs, capsys):
    assert main(["verify", "failing", "--output-format", "json"]) == 1
    assert [proof["proved"] for proof in json.loads(capsys.readouterr().out)] == [True, False]


def test_verify_without_fixtures(project, capsys):
    assert main(["verify", "."]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: .: no fixtures here")


@pytest.mark.parametrize("arguments", [[], ["--jobs", "0", "x"], ["--world-size", "two", "x"]])
def test_verify_with_bad_arguments(arguments):
    with pytest.raises(SystemExit) as caught:
        main(["verify", *arguments])
    assert caught.value.code == 2


@pytest.mark.usefixtures("shared_torch")
def test_verify_really_runs(capsys):
    pytest.importorskip("torch")
    assert main(["verify", str(FIXTURE)]) == 0
    assert "1 of 1" in capsys.readouterr().out


# --- start-up -----------------------------------------------------------------------------


def imported_by(arguments, cwd):
    """The modules that the command has imported when it ends (coverage may have some before)."""
    script = (
        "import sys, atexit\n"
        "before = set(sys.modules)\n"
        "atexit.register(lambda: print(*set(sys.modules) - before, file=sys.stderr))\n"
        f"from sampler_lint.cli import COMMANDS, main\nsys.exit(main({arguments!r}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=cwd, check=False
    )
    assert result.returncode == 0, result.stderr
    return set(result.stderr.split()), result.stdout


def test_version_imports_next_to_nothing(project):
    modules, out = imported_by(["--version"], project)
    assert out == f"sampler-lint {__version__}\n"
    ours = {name for name in modules if name.startswith("sampler_lint")}
    options = ("_adopting", "_common", "_fixing", "_performing", "_settings", "_telling")
    cli = (".cli", *(f".cli.{each}" for each in (*options, "check")))
    assert ours == {f"sampler_lint{each}" for each in ("", *cli)}
    assert not {"libcst", "torch", "ast", "dataclasses", "pathlib", "json"} & modules


def test_a_clean_tree_is_checked_without_libcst_and_torch(project):
    (project / "train.py").write_bytes(FIXED)
    modules, out = imported_by([], project)
    assert out == "All clear: 1 file checked.\n"
    assert "sampler_lint.engine" in modules
    assert not {"libcst", "torch"} & modules


@pytest.mark.parametrize(
    ("program", "lays_out"),
    [("SMP101/torch-batch-sampler", False), ("SMP201/plain-script", True)],
)
def test_only_edits_of_argument_lists_are_made_with_libcst(project, program, lays_out):
    (project / "train.py").write_bytes((FIXTURES / program / "bad/train.py").read_bytes())
    code = program[:6]
    shown = ["--exit-zero", "--select", code]
    modules, out = imported_by(shown, project)
    assert f"{code} [*]" in out
    assert "libcst" not in modules
    modules, out = imported_by([*shown, "--output-format", "json"], project)
    assert ("libcst" in modules) is lays_out
    assert json.loads(out)[0]["fix"]["edits"]
    # What was kept without edits is not taken for a finding with none, nor the other way round.
    assert f"{code} [*]" in imported_by(shown, project)[1]


def test_importing_the_package_is_free(project):
    script = (
        "import sys; before = set(sys.modules); import sampler_lint; print({*sys.modules} - before)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout == "{'sampler_lint'}\n"
