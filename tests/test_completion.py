"""Shell completion: the words that may stand at the cursor, and the shells that ask for them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sampler_lint.cli import COMMANDS, main
from sampler_lint.cli.completion import candidates
from sampler_lint.reporters import FORMATS
from sampler_lint.rules import codes, every_rule


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tr"], ["trace"]),
        ([""], sorted(COMMANDS)),
        (["--output-f"], ["--output-file", "--output-format"]),
        (["src", "--dif"], ["--diff", "--diff-base"]),
        (["--color", ""], ["always", "auto", "never"]),
        (["--color=a"], ["--color=always", "--color=auto"]),
        (["--color", "=", "n"], ["never"]),  # as bash splits it
        (["--output-format", "r"], ["rdjson"]),
        (["--select", "smp50"], [f"SMP50{number}" for number in range(1, 8)]),
        (["--select", "SMP101,SMP402,SMP30"], [
            f"SMP101,SMP402,{code}" for code in codes() if code.startswith("SMP30")
        ]),
        (["rule", "SMP10"], ["SMP101", "SMP102", "SMP103", "SMP104", "SMP105", "SMP106"]),
        (["verify", "--w"], ["--world-size"]),
        (["completion", ""], ["bash", "fish", "zsh"]),
        (["trace", "--plot"], ["--plot"]),
        # Files, for the shell to complete.
        (["src/"], []),
        (["src", "tests"], []),
        (["--baseline", "ba"], []),
        (["explain", "train"], []),
        (["verify", "fixtures/"], []),
        (["trace", "--", "torchr"], []),
        (["--", "--fi"], []),
        (["--nonsense=", ""], []),
    ],
)  # fmt: skip
def test_candidates(words: list[str], expected: list[str]) -> None:
    assert candidates(words) == expected


def test_codes_are_those_of_the_rules() -> None:
    assert codes() == [rule.code for rule in every_rule()]


@pytest.fixture
def terminal(tmp_path: Path):
    """Run a script in a shell that finds this sampler-lint and two files."""
    command = tmp_path / "bin" / "sampler-lint"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sampler_lint "$@"\n')
    command.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.py").touch()
    (work / "test data").mkdir()

    def run(shell: str, *arguments: str) -> list[str]:
        if shutil.which(shell) is None:
            pytest.skip(f"no {shell} on this machine")
        path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [shell, *arguments],
            cwd=work,
            env={**os.environ, "PATH": path, "HOME": str(tmp_path), "TERM": "dumb"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        return done.stdout.splitlines()

    return run


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--statis"], ["--statistics"]),
        (["--output-format", "=", "gi"], ["github", "gitlab"]),
        (["rule", "SMP402"], ["SMP402"]),
        (["t"], ["test data", "trace", "train.py"]),
        (["rule", "x"], []),
    ],
)
def test_bash(terminal, words: list[str], expected: list[str]) -> None:
    listed = " ".join(f"'{word}'" for word in ["sampler-lint", *words])
    script = (
        'eval "$(sampler-lint completion bash)"; complete -p sampler-lint\n'
        f"COMP_WORDS=({listed}); COMP_CWORD={len(words)}; _sampler_lint\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    registered, *found = terminal("bash", "--norc", "-c", script)
    assert registered == "complete -o default -o filenames -F _sampler_lint sampler-lint"
    assert sorted(filter(None, found)) == expected


def test_fish(terminal) -> None:
    script = "sampler-lint completion fish | source; complete --do-complete='sampler-lint {}'"
    assert terminal("fish", "-c", script.format("--statis")) == ["--statistics"]
    assert terminal("fish", "-c", script.format("rule SMP40"))[:2] == ["SMP401", "SMP402"]
    assert {"trace", "train.py"} <= set(terminal("fish", "-c", script.format("tra")))


def test_zsh(terminal) -> None:
    """What zsh would add is asked of the function itself; a real line editor needs a terminal."""
    script = """
compdef() { print -r -- "compdef $*" }
compadd() { print -rl -- "${(@P)2}" }
_files() { print files }
eval "$(sampler-lint completion zsh)"
words=(sampler-lint %s) CURRENT=%d
_sampler_lint
"""
    registered = "compdef _sampler_lint sampler-lint"
    assert terminal("zsh", "-f", "-c", script % ("--statis", 2)) == [
        *(registered, "--statistics", "files")
    ]
    assert terminal("zsh", "-f", "-c", script % ("rule SMP402", 3)) == [registered, "SMP402"]
    assert terminal("zsh", "-f", "-c", script % ("rule x", 3)) == [registered, "files"]


def test_the_guide_shows_what_the_help_shows(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["completion", "--help"])
    shown = re.findall(r"sampler-lint completion \w+", capsys.readouterr().out)
    guide = (Path(__file__).parent.parent / "docs" / "editors.md").read_text(encoding="utf-8")
    assert len(shown) == 3
    assert all(line in guide for line in shown)
    assert set(FORMATS) == {*candidates(["--output-format", ""])}
