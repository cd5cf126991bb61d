"""The plugin through a real flake8, compared with the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
BAD = (REPOSITORY / "fixtures/SMP101/torch-batch-sampler/bad/train.py").read_bytes()
ROW = 39

_LINE = re.compile(
    r"(?:\./)?(?P<path>.*?):(?P<row>\d+):(?P<column>\d+): (?P<code>\w+) (?P<text>.*)"
)


def flake8(*arguments, cwd, data=None, python=sys.executable):
    """What flake8 reports of ours, as (path, row, column, code, message)."""
    result = subprocess.run(
        [python, "-m", "flake8", "--isolated", "--select", "SMP", *arguments],
        input=data,
        capture_output=True,
        cwd=cwd,
        check=False,
    )
    assert result.stderr == b"", result.stderr.decode()
    matches = [_LINE.fullmatch(line) for line in result.stdout.decode().splitlines()]
    assert None not in matches, result.stdout.decode()
    assert result.returncode == bool(matches)
    return sorted(
        (m["path"], int(m["row"]), int(m["column"]), m["code"], m["text"]) for m in matches
    )


def command_line(*arguments, cwd, data=None):
    """The same of the command line."""
    result = subprocess.run(
        [sys.executable, "-m", "sampler_lint", "--output-format", "json", *arguments],
        input=data,
        capture_output=True,
        cwd=cwd,
        check=False,
    )
    assert result.stderr == b"", result.stderr.decode()
    return sorted(
        (
            Path(found["filename"]).relative_to(cwd).as_posix(),
            found["location"]["row"],
            found["location"]["column"],
            found["code"],
            found["message"],
        )
        for found in json.loads(result.stdout)
    )


def marked(comment):
    """The buggy program with a comment after its finding."""
    lines = BAD.splitlines(keepends=True)
    lines[ROW - 1] = lines[ROW - 1].rstrip() + b"  " + comment + b"\n"
    return b"".join(lines)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    (tmp_path / "train.py").write_bytes(BAD)
    (tmp_path / "clean.py").write_text("x = 1\n")
    return tmp_path


def test_our_configuration_holds(project, monkeypatch, capsys):
    from flake8.main.application import Application

    from sampler_lint import flake8_plugin
    from sampler_lint.cli import main

    def told(*arguments):
        capsys.readouterr()
        flake8_plugin._lookup.cache_clear()
        flake8_plugin._told_of_tree.cache_clear()
        Application().run(["--jobs=1", "--select", "SMP", *arguments])
        out = capsys.readouterr().out
        return out if "There was a critical" in out else out.count("SMP101")

    monkeypatch.chdir(project)
    assert told(".") == 1
    for text in ("baseline = 'known.json'", "exclude = ['train.py']", "ignore = ['SMP1']"):
        (project / "sampler-lint.toml").write_text("")
        main(["--write-baseline", "known.json"])
        (project / "sampler-lint.toml").write_text(text)
        assert (told("."), told("train.py")) == (0, 0)
    (project / "sampler-lint.toml").write_text("nonsense = 1")
    assert "sampler-lint.toml:1: has no key 'nonsense'" in told(".")


def test_same_findings_as_the_command_line(project):
    found = flake8(".", cwd=project)
    assert [(path, row, column, code) for path, row, column, code, _ in found] == [
        ("train.py", ROW, 13, "SMP101")
    ]
    assert found == command_line(cwd=project)


def test_a_project_inside_the_folder_is_part_of_it(tmp_path):
    """As for the command line: the folder that was given is one tree."""
    bad = REPOSITORY / "fixtures/SMP102/factory-tuple/bad"
    inner = tmp_path / "runs"
    inner.mkdir()
    for folder in (tmp_path, inner):
        (folder / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    (tmp_path / "data.py").write_bytes((bad / "data.py").read_bytes())
    (inner / "train.py").write_bytes((bad / "train.py").read_bytes())
    found = flake8(".", cwd=tmp_path)
    assert [each[3] for each in found] == ["SMP102"]
    assert found == command_line(".", cwd=tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"    ", b"\t"),
        lambda data: b"# coding: latin-1\n# \xe9\n" + data,
        lambda data: data.replace(
            b"train_loader.sampler.set", b"'\xc3\xa9'; train_loader.sampler.set"
        ),
    ],
    ids=["crlf", "bom", "tabs", "latin-1", "column after non-ascii"],
)
def test_same_place_whatever_the_bytes(project, change):
    (project / "train.py").write_bytes(change(BAD))
    found = flake8(".", cwd=project)
    assert len(found) == 1
    assert found == command_line(cwd=project)


@pytest.mark.parametrize(
    "comment",
    [
        b"# noqa: SMP101",
        b"# noqa: E501",
        b"# sampler-lint: ignore[SMP2]",
        *(
            pytest.param(comment, marks=pytest.mark.whole)
            for comment in (b"# noqa", b"# sampler-lint: ignore", b"# sampler-lint: ignore[SMP101]")
        ),
    ],
)
def test_the_same_is_suppressed(project, comment):
    (project / "train.py").write_bytes(marked(comment))
    found = flake8(".", cwd=project)
    assert found == command_line(cwd=project)
    codes = {b"# noqa: E501": {"SMP101"}, b"# sampler-lint: ignore[SMP2]": {"SMP001", "SMP101"}}
    assert {each[3] for each in found} == codes.get(comment, set())


def test_disable_noqa(project):
    (project / "train.py").write_bytes(marked(b"# noqa"))
    assert len(flake8(".", "--disable-noqa", cwd=project)) == 1
    assert len(flake8("--disable-noqa", "--jobs", "2", "train.py", "clean.py", cwd=project)) == 1


def test_options_of_ours(project):
    """From flake8's own configuration, and from its command line."""
    (script,) = sorted((REPOSITORY / "fixtures/SMP504").glob("*/bad/*.py"))[:1]
    (project / "train.py").write_bytes(script.read_bytes())
    found = flake8("train.py", cwd=project)
    assert {each[3] for each in found} == {"SMP504"}  # a warning
    assert flake8("train.py", "--sampler-lint-min-severity", "error", cwd=project) == []
    config = project / "tox.ini"
    config.write_text("[flake8]\nselect = SMP\nsampler-lint-min-severity = error\n")
    run = [sys.executable, "-m", "flake8", "--jobs", "2", "train.py", "clean.py"]
    done = subprocess.run(run, capture_output=True, text=True, cwd=project, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_wrong_option_of_ours(project):
    run = [sys.executable, "-m", "flake8", "--isolated", "--sampler-lint-torch-version", "new", "."]
    done = subprocess.run(run, capture_output=True, text=True, cwd=project, check=False)
    assert done.returncode == 1
    assert "sampler-lint-torch-version must be a version" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_stdin(project, newline):
    (project / "train.py").write_bytes(b"x = 1\n")
    data = BAD.replace(b"\n", newline)
    found = flake8("-", "--stdin-display-name", "train.py", cwd=project, data=data)
    assert [each[:4] for each in found] == [("train.py", ROW, 13, "SMP101")]
    arguments = ("-", "--stdin-filename", "train.py")
    assert found == command_line(*arguments, cwd=project, data=data)
    assert [each[0] for each in flake8("-", cwd=project, data=data)] == ["stdin"]


def test_a_file_that_flake8_can_read_and_we_cannot(project):
    """flake8 falls back to latin-1; the command line has an error for it, so must flake8."""
    (project / "train.py").write_bytes(BAD + b"# \xe9\n")
    (found,) = flake8("train.py", cwd=project)
    assert found[3:] == (
        "SMP000",
        "could not be checked: cannot be decoded as utf-8: invalid continuation byte",
    )


def test_an_error_elsewhere_is_not_repeated_for_every_file(project):
    (project / "broken.py").write_text("sampler = (\n")
    assert [each[0] for each in flake8("train.py", cwd=project)] == ["train.py"]


def imported(name, source, cwd):
    """The modules that checking ``source``, as the file ``name``, imports."""
    (cwd / name).write_text(source)
    script = (
        "import ast, sys\n"
        "before = set(sys.modules)\n"
        "from sampler_lint.flake8_plugin import Plugin\n"
        f"text = {source!r}\n"
        f"list(Plugin(ast.parse(text), {name!r}, text.splitlines(True)).run())\n"
        "print(*set(sys.modules) - before)"
    )
    run = [sys.executable, "-c", script]
    result = subprocess.run(run, capture_output=True, text=True, cwd=cwd, check=True)
    return set(result.stdout.split())


def test_a_file_about_something_else_costs_nothing(project):
    idle = imported("other.py", "x = 1\n", project)
    packages = {".".join(name.split(".")[:2]) for name in idle}
    analysis = {f"sampler_lint.{floor}" for floor in ("workspace", "syntax", "analysis", "domain")}
    assert not {"sampler_lint.engine", "libcst", "torch", *analysis} & packages
    assert "sampler_lint.engine" in imported("other.py", "sampler = 1\n", project)


def test_a_helper_of_a_sampler_is_checked_whatever_it_says(project):
    """Named by a file that says the word, directly or through another helper."""
    (project / "train.py").write_bytes(b"import helper\n" + BAD)
    (project / "helper.py").write_text("from pkg import deep\n")
    (project / "pkg").mkdir()
    (project / "pkg" / "__init__.py").write_text("from .implied import y\n")
    for name in ("helper.py", "pkg/__init__.py", "pkg/deep.py", "pkg/implied.py"):
        text = (project / name).read_text() if (project / name).exists() else "y = 1\n"
        assert "sampler_lint.engine" in imported(name, text, project), name
    assert "sampler_lint.engine" not in imported("pkg/other.py", "y = 1\n", project)


@pytest.mark.network
def test_flake8_6(project, tmp_path_factory):
    """The oldest flake8 that is supported finds the same."""
    home = tmp_path_factory.mktemp("flake8-6")
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "flake8==6.0.0", REPOSITORY]
    subprocess.run(pip, check=True)
    version = [python, "-m", "flake8", "--version"]
    told = subprocess.run(version, capture_output=True, text=True, check=True).stdout
    assert told.startswith("6.0.0")
    assert "sampler-lint:" in told
    found = flake8(".", cwd=project, python=python)
    assert len(found) == 1
    assert found == command_line(cwd=project)
    stdin = ("-", "--stdin-display-name", "train.py")
    assert flake8(*stdin, cwd=project, data=BAD, python=python) == found
