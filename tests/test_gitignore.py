"""Our reading of gitignore patterns against git's own."""

import subprocess
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sampler_lint.gitignore import Gitignore

TREE = ["a.py", "b.py", "a/a.py", "a/b.py", "a/b/a.py", "a/b/b/a.py", "b/a/a.py", "b/a b.py"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", root], check=True)
    for name in TREE:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def ignored_by_git(root: Path, patterns: list[str]) -> set[str]:
    (root / ".gitignore").write_text("\n".join(patterns), newline="")
    asked = "\0".join(TREE).encode()
    command = ["git", "-C", str(root), "check-ignore", "--no-index", "-z", "--stdin"]
    answer = subprocess.run(command, input=asked, capture_output=True, check=False)
    assert answer.returncode in {0, 1}, answer.stderr
    return {name for name in answer.stdout.decode().split("\0") if name}


def ignored_by_us(patterns: list[str]) -> set[str]:
    gitignore = Gitignore(line + "\n" for line in patterns)

    def ignored(path: str) -> bool:
        parts = path.split("/")
        parents = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        return any(gitignore.decide(parent, folder=True) for parent in parents) or bool(
            gitignore.decide(path, folder=False)
        )

    return {path for path in TREE if ignored(path)}


@pytest.mark.parametrize(
    "patterns",
    [
        ["*", "!*/", "!b.py"],
        ["a"],
        ["a/"],
        ["/a"],
        ["a/b"],
        ["a/**"],
        ["**/a"],
        ["a/**/b"],
        ["***/b", "a***"],
        ["a/*", "!a/b"],
        ["*.py", "!/a.py"],
        ["*.py", "!a/"],
        ["[ab].py", "[!a]/a"],
        ["[[:alpha:]].py"],
        ["[[:nonsense:]].py"],
        ["[a", "[]-]", "[]a].py"],
        ["a b.py  ", "a\\ b.py"],
        ["#a.py", "\\#", "!", "\\", "/", "//"],
        ["?.py", "\\*.py"],
        ["[\\a].py\r", "[^b].py"],
        ["[a-a].py", "a/[!a-z]*", "b/[a-c][-a]*"],
        ["[b-].py", "b/[ -!]*"],
        ["[", "[\\", "a[!", "[a-"],
        ["a?b", "a[/]b", "a[!x]b"],
        ["/a**", "!a"],
        ["a/b**", "/a**/b.py"],
        ["a*/**", "[a]/b**"],
    ],
    ids=" ".join,
)
def test_reads_patterns_as_git_does(repository: Path, patterns: list[str]) -> None:
    assert ignored_by_us(patterns) == ignored_by_git(repository, patterns)


GLOB = st.lists(
    st.sampled_from(["a", "b", ".py", "/", "/", "*", "**", "**/", "?", "[ab]", "[!a]", " ", "\\"]),
    min_size=1,
    max_size=5,
).map("".join)
PATTERNS = st.lists(st.tuples(st.sampled_from(["", "", "!"]), GLOB).map("".join), max_size=4)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(patterns=PATTERNS)
def test_any_patterns_are_read_as_git_does(repository: Path, patterns: list[str]) -> None:
    said = ignored_by_git(repository, patterns)
    assert ignored_by_us(patterns) == said
    # The way that patterns with many wildcards go is right for all of them.
    with mock.patch("sampler_lint.gitignore._MOST_WILDCARDS", -1):
        assert ignored_by_us(patterns) == said
