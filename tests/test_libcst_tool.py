"""The rules' fixes through the real ``libcst.tool codemod``: what ``--fix`` writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from libcst.tool import main

from cases import FIXTURES, Files, read_tree, write_tree
from sampler_lint import engine
from sampler_lint.codemods import rules
from sampler_lint.engine import Options
from sampler_lint.rules import every_rule

BAD = (FIXTURES / "SMP101/torch-batch-sampler/bad/train.py").read_bytes()
FILES: Files = {
    **{f"train{number}.py": BAD for number in range(4)},
    "windows.py": BAD.replace(b"\n", b"\r\n"),
    "marked.py": b"\xef\xbb\xbf" + BAD,
    "clean.py": b"x = 1\n",
}
OPTIONS = ("--no-format", "--hide-progress")


def by_engine(folder: Path, files: Files, code: str, *, unsafe: bool = False) -> Files:
    tree = write_tree(folder, files)
    engine.fix([str(tree)], Options(select=(code,)), unsafe=unsafe)
    return read_tree(tree)


def codemod(tree: Path, code: str, *more: str) -> int:
    command = ["codemod", "-x", f"sampler_lint.codemods.{code}", *OPTIONS, *more]
    return main("libcst.tool", [*command, str(tree)])


def test_workers_write_what_the_command_line_writes(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {**FILES, "wrong.py": b"def (\n"})
    command = (sys.executable, "-m", "libcst.tool", "codemod", "-x", "sampler_lint.codemods.SMP101")
    done = subprocess.run(
        [*command, *OPTIONS, "-j", "2", tree], capture_output=True, text=True, check=False
    )
    assert "Failed to codemod 1 files" in done.stderr
    assert done.returncode == 1
    expected = by_engine(tmp_path / "expected", FILES, "SMP101")
    assert expected["train0.py"] != BAD
    assert expected["windows.py"] != FILES["windows.py"]
    assert read_tree(tree) == {**expected, "wrong.py": b"def (\n"}


def test_one_process_does_the_same_and_leaves_excluded_files(tmp_path, capsys) -> None:
    files = {"train.py": BAD, "clean.py": b"x = 1\n", "kept/train.py": BAD}
    configured = write_tree(tmp_path / "tree", files)
    (configured / "sampler-lint.toml").write_text('exclude = ["kept"]\n')
    assert codemod(configured, "SMP101", "-j", "1") == 0
    assert "Transformed 3 files" in capsys.readouterr().err
    after = read_tree(configured)
    assert after["train.py"] == by_engine(tmp_path / "one", {"train.py": BAD}, "SMP101")["train.py"]
    assert after["kept/train.py"] == BAD


@pytest.mark.parametrize("unsafe", [False, True])
def test_unsafe_fixes_are_asked_for(tmp_path: Path, unsafe: bool, capsys) -> None:
    files = read_tree(FIXTURES / "SMP401/argument-not-kept/bad")
    tree = write_tree(tmp_path / "tree", files)
    assert codemod(tree, "SMP401", "-j", "1", *["--unsafe-fixes"] * unsafe) == 0
    assert ("SMP401 not fixed: unsafe" in capsys.readouterr().err) is not unsafe
    assert (read_tree(tree) != files) is unsafe
    assert read_tree(tree) == by_engine(tmp_path / "expected", files, "SMP401", unsafe=unsafe)


def tabbed(data: bytes) -> bytes:
    """A file of Windows that is indented by tabs."""
    lines = data.replace(b"\r\n", b"\n").split(b"\n")
    depths = [len(line) - len(line.lstrip(b" ")) for line in lines]
    return b"\r\n".join(
        b"\t" * (depth // 4) + line[depth // 4 * 4 :]
        for depth, line in zip(depths, lines, strict=True)
    )


#: Each rule's first fixture that has a fix.
FIXED = {
    path.parts[-3]: path.with_name("bad")
    for path in sorted(FIXTURES.glob("*/*/fixed"), reverse=True)
}


@pytest.mark.parametrize("code", sorted(FIXED))
def test_files_of_windows_with_tabs_come_out_as_from_the_command_line(
    code: str, tmp_path: Path, capsys
) -> None:
    read = read_tree(FIXED[code])
    files = {name: tabbed(data) if name.endswith(".py") else data for name, data in read.items()}
    tree = write_tree(tmp_path / "tree", files)
    assert codemod(tree, code, "-j", "1", "--unsafe-fixes") == 0
    expected = by_engine(tmp_path / "expected", files, code, unsafe=True)
    changed = [name for name, data in expected.items() if data != files[name]]
    assert changed
    if len(changed) > 1:  # a fix of two files, of which a command sees one: none of it is made
        assert "which was not among the paths" in capsys.readouterr().err
        expected = files
    assert read_tree(tree) == expected


def test_each_rule_with_a_fix_has_a_command() -> None:
    fixable = [rule.code for rule in every_rule() if rule.fixable != "never"]
    assert rules.__all__ == fixable
    assert all(getattr(rules, code).__name__ == code for code in fixable)


def test_the_tool_lists_them(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / ".libcst.codemod.yaml").write_text("modules: ['sampler_lint.codemods']\n")
    monkeypatch.chdir(tmp_path)
    assert main("libcst.tool", ["list"]) == 0
    assert "rules.SMP101 - epoch-only-on-sampler: " in capsys.readouterr().out
