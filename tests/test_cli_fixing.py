"""``--fix`` over several repositories, ``--patch-dir``, and what is told about it."""

from __future__ import annotations

import io
import itertools
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sampler_lint.cli import main
from sampler_lint.cli._progress import Progress
from sampler_lint.rules import Rule, every_rule

FIXTURE = Path(__file__).parent.parent / "fixtures" / "SMP101" / "torch-batch-sampler"
BAD = (FIXTURE / "bad" / "train.py").read_bytes()
FIXED = (FIXTURE / "fixed" / "train.py").read_bytes()
CALL = "Call `set_epoch` on `train_loader.batch_sampler.sampler`"


def git(*arguments: str | Path, cwd: Path) -> None:
    subprocess.run(["git", "-c", "core.autocrlf=false", *arguments], cwd=cwd, check=True)


@pytest.fixture
def repositories(tmp_path, monkeypatch) -> list[str]:
    """Two with the bug, of the same name, and one without it."""
    monkeypatch.chdir(tmp_path)
    names = ["one/app", "two/app", "clean"]
    for name in names:
        folder = tmp_path / name
        (folder / "tools").mkdir(parents=True)
        git("init", "-q", cwd=folder)
        (folder / "train.py").write_bytes(BAD if name != "clean" else FIXED)
    (tmp_path / "one/app/tools/again.py").write_bytes(BAD.replace(b"\n", b"\r\n"))
    (tmp_path / "one/app/tools/pyproject.toml").touch()
    return names


def test_a_patch_for_each_repository(repositories, tmp_path, capsys):
    assert main(["--patch-dir", "deep/patches", *repositories]) == 1
    out, err = capsys.readouterr()
    assert out == (
        f"one/app/tools/again.py:39:13: SMP101 would be fixed: {CALL}\n"
        f"one/app/train.py:39:13: SMP101 would be fixed: {CALL}\n"
        f"two/app/train.py:39:13: SMP101 would be fixed: {CALL}\n"
        "Would fix 3 findings in 3 files; none left.\n"
    )
    assert err == "2 of 3 repositories: patch in deep/patches\n"
    patches = tmp_path / "deep" / "patches"
    assert sorted(path.name for path in patches.iterdir()) == ["one+app.patch", "two+app.patch"]
    for name in ("one/app", "two/app"):
        assert (tmp_path / name / "train.py").read_bytes() == BAD
        git("apply", "--whitespace=nowarn", patches / f"{name.replace('/', '+')}.patch",
            cwd=tmp_path / name)  # fmt: skip
        assert (tmp_path / name / "train.py").read_bytes() == FIXED
    again = tmp_path / "one/app/tools/again.py"
    assert again.read_bytes() == FIXED.replace(b"\n", b"\r\n")

    assert main(["--fix", "--patch-dir", "deep/patches", *repositories]) == 0
    assert list(patches.iterdir()) == [], "a patch of an earlier run is not left to mislead"


def test_a_repository_in_another_and_a_path_twice_count_once(repositories, tmp_path, capsys):
    inner = tmp_path / "one/app/vendored"
    inner.mkdir()
    git("init", "-q", cwd=inner)
    (inner / "train.py").write_bytes(BAD)
    arguments = ["one/app", "one/app/vendored", "one/app/train.py", "two/app"]
    assert main(["--patch-dir", "out", *arguments]) == 1
    assert "Would fix 4 findings in 4 files; none left." in capsys.readouterr().out
    assert not (tmp_path / "out" / "vendored.patch").exists()


def test_fixing_several_repositories_in_place(repositories, tmp_path, capsys):
    assert main(["--fix", *repositories]) == 0
    assert capsys.readouterr() == (
        f"one/app/tools/again.py:39:13: SMP101 fixed: {CALL}\n"
        f"one/app/train.py:39:13: SMP101 fixed: {CALL}\n"
        f"two/app/train.py:39:13: SMP101 fixed: {CALL}\n"
        "Fixed 3 findings in 3 files; none left.\n",
        "",
    )
    assert (tmp_path / "two/app/train.py").read_bytes() == FIXED


def test_a_patch_of_a_link_is_one_of_the_file(repositories, tmp_path, monkeypatch):
    code = tmp_path / "clean" / "code"
    code.mkdir()
    (code / "link.py").symlink_to("../tools/real.txt")
    real = tmp_path / "clean" / "tools" / "real.txt"
    real.write_bytes(BAD)
    assert main(["--patch-dir", "out", "clean/code"]) == 1
    git("apply", tmp_path / "out" / "clean.patch", cwd=tmp_path / "clean")
    assert real.read_bytes() == FIXED
    assert (code / "link.py").is_symlink()


@pytest.mark.parametrize("arguments", [["--diff", "."], ["-"]])
def test_what_patches_do_not_go_with(repositories, capsys, arguments):
    assert main(["--patch-dir", "out", *arguments]) == 2
    assert "--patch-dir goes neither with" in capsys.readouterr().err


def test_a_patch_that_cannot_be_written(repositories, tmp_path, capsys):
    (tmp_path / "out").touch()
    assert main(["--patch-dir", "out", "two/app"]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_nothing_is_fixed_where_the_report_cannot_be_written(repositories, tmp_path, capsys):
    assert main(["--fix", "-o", str(tmp_path / "none" / "report.txt"), "two/app"]) == 2
    assert "report.txt: cannot be written: No such file" in capsys.readouterr().err
    assert (tmp_path / "two/app/train.py").read_bytes() == BAD


def test_much_that_is_left_is_counted_by_reason(repositories, tmp_path, capsys):
    for number in range(21):
        (tmp_path / "clean" / f"train_{number}.py").write_bytes(BAD)
    assert main(["--fix", "--unfixable", "SMP101", "clean"]) == 1
    assert capsys.readouterr().out.endswith(
        "Fixed 0 findings in 0 files; 21 left:\n  21 display-only: needs a decision (21 SMP101)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        (["--fixable", "SMP101"], True),
        (["--fixable", "SMP2"], False),
        (["--unfixable", "SMP1"], False),
        (["--unfixable", "SMP2"], True),
        (["--config", "unfixable=['ALL']", "--fixable", "SMP1"], True),
        (["--config", "unfixable=['SMP101']", "--unfixable", "SMP2"], False),
    ],
)
def test_which_fixes_may_be_applied(repositories, tmp_path, arguments, changed):
    main(["--fix", *arguments, "two/app"])
    assert ((tmp_path / "two/app/train.py").read_bytes() == FIXED) is changed


def test_an_unknown_code_is_refused(repositories, capsys):
    assert main(["--fix", "--fixable", "SMP999", "two/app"]) == 2
    assert "SMP999" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_is_one_line_and_goes_away(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    progress = Progress(2, terminal)
    progress.step("first")
    progress.step("/a/very/long/\x1bname/" + "x" * 100)
    progress.close()
    written = terminal.getvalue()
    assert "\n" not in written
    lines = [line.removesuffix("\x1b[K") for line in written.split("\r")]
    assert lines[1] == "[....................] 0/2 first"
    assert lines[2].startswith("[##########..........] 1/2 /a/very/lon")
    assert max(map(len, lines)) < 40
    assert lines[-1] == ""
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize(("total", "stream"), [(1, Terminal()), (9, io.StringIO())])
def test_no_progress_for_one_repository_or_without_a_terminal(total, stream):
    progress = Progress(total, stream)
    progress.step("first")
    progress.close()
    assert stream.getvalue() == ""


def on_terminal(monkeypatch: pytest.MonkeyPatch, tick: float = 1.0) -> Terminal:
    """Make standard error a terminal; between two looks at the clock pass ``tick`` seconds."""
    looks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: next(looks) * tick)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "500")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def drawn(terminal: Terminal) -> list[str]:
    """What a terminal showed, one after the other; nothing may stay."""
    *lines, last = terminal.getvalue().split("\x1b[K")
    assert last == ""
    assert lines[-1] == "\r"
    return [line.removeprefix("\r") for line in lines]


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        ([], "Found 2 findings (2 fixable with --fix) in 3 files.\n"),
        (["--fix"], "Fixed 2 findings in 2 files; none left.\n"),
        (["--write-baseline", "known.json"], "Wrote 2 findings to known.json.\n"),
        (["--add-noqa"], "Suppressed 2 of 2 findings in 2 files.\n"),
    ],
)
def test_how_far_a_check_is(repositories, tmp_path, monkeypatch, capsys, arguments, last):
    terminal = on_terminal(monkeypatch)
    monkeypatch.chdir("one/app")
    (tmp_path / "one/app/other.py").write_text("x = 1\n")
    assert main([*arguments, "--jobs", "1"]) == (not arguments)
    assert capsys.readouterr().out.endswith(last)
    lines = drawn(terminal)
    shown = [re.sub(r"^\[[#.]{20}\] ", "", line) for line in lines]
    assert "finding files" in shown
    assert {"0/3 reading", "2/3 reading", "1/2 parsing"} <= {*shown}
    rules = sum(isinstance(rule, Rule) and rule.default for rule in every_rule())
    assert f"{rules - 1}/{rules} rules" in shown
    assert "0/1 syntax of other files" in shown
    if not arguments:
        kinds = [line.lstrip("0123456789/ ") for line in shown if line]
        stages = ["finding files", "reading", "parsing", "rules", "syntax of other files"]
        assert [kind for kind, _ in itertools.groupby(kinds)] == stages


def test_the_bar_is_gone_before_a_note_comes(repositories, tmp_path, monkeypatch):
    terminal = on_terminal(monkeypatch)
    assert main(["--write-baseline", "known.json", "one/app", "two/app"]) == 0
    (tmp_path / "two/app/train.py").write_bytes(FIXED)
    for fixing in ([], ["--fix"]):
        terminal.seek(0)
        terminal.truncate()
        assert main([*fixing, "--baseline", "known.json", "one/app", "two/app"]) == 0
        before, note, after = terminal.getvalue().partition("note: 1 entry is no longer found")
        assert note
        assert "rules" in before
        assert before.endswith("\r\x1b[K")
        assert after.endswith("\r\x1b[K" if fixing and "rules" in after else "what is left\n")


def test_how_far_it_is_with_several_repositories(repositories, monkeypatch):
    terminal = on_terminal(monkeypatch)
    assert main(["--fix", *repositories]) == 0
    shown = [line[len("[] ") + 20 :] for line in drawn(terminal)]
    assert any(re.fullmatch(r"0/3 \d+/\d+ rules in /\S+/one/app", line) for line in shown)
    assert any(re.fullmatch(r"2/3 0/1 parsing in /\S+/clean", line) for line in shown)


def test_no_bar_for_what_is_soon_over(repositories, monkeypatch):
    terminal = on_terminal(monkeypatch, tick=0.0)
    assert main(["one/app"]) == 1
    assert main(["--fix", "one/app"]) == 0
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("arguments", [[], ["--fix"], ["--add-noqa"]])
def test_no_bar_where_nobody_wants_one(repositories, monkeypatch, arguments):
    terminal = on_terminal(monkeypatch)
    main([*arguments, "--quiet", "one/app"])
    assert terminal.getvalue() == ""
    monkeypatch.setenv("TERM", "dumb")
    main([*arguments, "two/app"])
    assert terminal.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setenv("TERM", "xterm")
    main([*arguments, "."])
    assert sys.stderr.getvalue() == ""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with one finding, which is also the working directory."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_bytes(BAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_last_word_about_fixing_holds(project, capsys):
    assert main(["--fix", "--no-fix"]) == 1
    assert (project / "train.py").read_bytes() == BAD
    (project / "sampler-lint.toml").write_text("unsafe-fixes = true\nfixable = []\nlikely = true\n")
    assert main(["--fix", "--no-unsafe-fixes", "--no-likely"]) == 1
    assert (project / "train.py").read_bytes() == BAD
    assert main(["--no-fix", "--fix", "--config", "fixable=['ALL']"]) == 0


@pytest.mark.parametrize("form", ["text", "concise", "json", "grouped"])
@pytest.mark.parametrize("quiet", [False, True])
def test_fixes_are_listed_once_where_asked_for(project, capsys, form, quiet):
    more = ["--quiet"] if quiet else []
    assert main(["--fix", "--show-fixes", "--output-format", form, *more]) == 0
    out, err = capsys.readouterr()
    assert (out + err).count(f"train.py:39:13: SMP101 fixed: {CALL}\n") == 1


def test_a_change_is_checked_while_watching(project, monkeypatch, capsys):
    """Each look at the files without news sleeps; here somebody writes meanwhile."""
    steps = iter(
        [
            lambda: (project / "train.py").write_bytes(FIXED),
            lambda: (project / "sampler-lint.toml").write_text("nonsense = 1"),
            lambda: (project / "sampler-lint.toml").unlink(),
            lambda: (project / "other.py").write_bytes(BAD),
        ]
    )

    def sleep(seconds):
        assert seconds > 0
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr(time, "sleep", sleep)
    assert main(["--watch", "--no-cache", "--output-format", "concise", "-q"]) == 0
    out, err = capsys.readouterr()
    assert re.findall(r"^\w+\.py:39", out, re.MULTILINE) == ["train.py:39", "other.py:39"]
    assert err.startswith("error: sampler-lint.toml:1: has no key 'nonsense'")


@pytest.mark.parametrize("option", ["--fix", "--diff", "--add-noqa", "--show-files", "-"])
def test_watching_only_checks(project, capsys, option):
    assert main(["--watch", option]) == 2
    assert capsys.readouterr().err.startswith("error: --watch only checks files")
