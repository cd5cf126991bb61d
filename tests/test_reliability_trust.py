"""A tree that is checked or fixed is text: nothing of it runs, nothing around it is read."""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from sampler_lint import engine
from sampler_lint.gitignore import Gitignore
from sampler_lint.source import SourceFile
from sampler_lint.syntax import parse as parsing

PACKAGE = Path(__file__).parent.parent / "src" / "sampler_lint"
BUG = "from torch.utils.data import DataLoader\nx = DataLoader(d, sampler=s, shuffle=True)\n"

#: Runs the command with a hook that hears of all that Python opens, starts and executes.
WATCH = """
import json, os, sys
out, events = sys.argv.pop(1), []
quiet = []
LOUD = ("subprocess.", "socket.", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "ctypes.",
        "os.startfile", "pty.", "urllib.", "ftplib.", "webbrowser.", "pickle.", "marshal.")

def hook(event, args):
    if quiet:
        return
    quiet.append(1)
    try:
        if event in ("open", "os.listdir", "os.scandir"):
            if isinstance(args[0], (str, bytes)):
                events.append(["read", os.path.realpath(os.fsdecode(args[0]))])
        elif event == "exec":
            events.append(["exec", args[0].co_filename])
        elif event == "import":
            events.append(["import", str(args[1])])
        elif event.startswith(LOUD) and event not in ("marshal.loads", "marshal.load"):
            events.append([event, repr(args)])
    finally:
        quiet.pop()

sys.path[:] = [entry for entry in sys.path if entry]  # "" is that of `python -c` alone
sys.addaudithook(hook)
from sampler_lint.cli import main
code = main(sys.argv[1:])
quiet.append(1)
with open(out, "w") as file:
    json.dump([code, events], file)
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository that tries to be run, and to have its neighbours read."""
    (tmp_path / "outside").mkdir()
    secret = BUG + "SECRET = 1\n"
    for name in ("secret.py", "requirements.txt", "pyproject.toml", "ignore"):
        (tmp_path / "outside" / name).write_text(secret)
    root = tmp_path / "tree"
    (root / "package").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "pyproject.toml").write_text(
        "[build-system]\nbuild-backend = 'evil'\nbackend-path = ['.']\n"
        "[tool.sampler-lint]\nselect = ['ALL']\nexclude = ['../../outside']\n"
        "known-samplers = ['evil.make']\nknown-loaders = ['os.system']\n"
        "[project.entry-points.'flake8.extension']\nX = 'evil:Plugin'\n"
    )
    run = f"import os\nopen({str(tmp_path / 'ran')!r}, 'w').close()\nos._exit(77)\n"
    names = ("setup.py", "conftest.py", "evil.py", "sitecustomize.py", "libcst.py", "torch.py")
    for name in (*names, "package/__init__.py"):
        (root / name).write_text(f"{run}{BUG}")
    (root / "package" / "deep.py").write_text(
        "from .... import outside\nfrom ....outside.secret import SECRET\n"
        f"from ...outside import secret\nimport outside.secret, evil\n{BUG}"
        "# type: ignore\nclass S(evil.Base):\n    x = __import__('os').system('true')\n"
    )
    cell = {"cell_type": "code", "metadata": {}, "source": f"!touch {tmp_path}/ran\n{BUG}"}
    (root / "book.ipynb").write_text(json.dumps({"cells": [cell], "nbformat": 4, "metadata": {}}))
    (root / "requirements.txt").symlink_to("../outside/requirements.txt")
    (root / "requirements").symlink_to("../outside")
    (root / ".gitignore").symlink_to("../outside/ignore")
    (root / "package" / "pyproject.toml").symlink_to("../../outside/pyproject.toml")
    (root / "link.py").symlink_to("../outside/secret.py")
    (root / "folder").symlink_to("../outside")
    return root


def trusted() -> list[str]:
    """Where Python, its libraries and this package lie."""
    places = [*sys.path, sys.prefix, sys.base_prefix, str(PACKAGE), os.path.dirname(os.__file__)]
    return [os.path.join(os.path.realpath(place), "") for place in places if place]


@pytest.mark.parametrize("arguments", [[], ["--fix", "--unsafe-fixes"], ["--diff"]], ids=str)
def test_a_hostile_tree_runs_nothing_and_leads_nowhere(
    hostile: Path, tmp_path: Path, arguments: list[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    outside = {path: path.read_bytes() for path in (tmp_path / "outside").iterdir()}
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", WATCH, str(tmp_path / "heard"), str(hostile), *arguments],
        cwd=elsewhere, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (tmp_path / "heard").exists(), done.stderr
    code, events = json.loads((tmp_path / "heard").read_text())
    assert code == (0 if "--fix" in arguments else 1), done.stdout + done.stderr
    assert "SMP501" in done.stdout + done.stderr
    assert "secret.py" not in done.stdout + done.stderr
    assert not (tmp_path / "ran").exists()
    mine = [os.path.join(os.path.realpath(each), "") for each in (hostile, tmp_path / "cache")]
    mine += [str(hostile), str(tmp_path / "cache")]
    for kind, what in events:
        if kind == "read":
            allowed = what.startswith((*mine, *trusted())) or what in trusted()
            # A configuration may stand above the tree; the walk up asks for it by name.
            asked = os.path.basename(what) in {"sampler-lint.toml", "pyproject.toml", ".gitignore"}
            above = str(hostile).startswith(os.path.join(os.path.dirname(what), ""))
            # Python itself looks for the text that a SyntaxError is about.
            null = what in {os.devnull, "/proc/self/status", str(elsewhere / "<unknown>")}
            assert allowed or (asked and above) or null, (kind, what)
        elif kind in {"exec", "import"}:
            assert not what.startswith(str(tmp_path)), (kind, what)
            assert what not in {"<fixed>", "<unknown>"}, (kind, what)
        else:
            raise AssertionError((kind, what))
    heard = {what for kind, what in events if kind == "read"}
    assert str(hostile / "package" / "deep.py") in heard, "the hook hears nothing"
    assert {path: path.read_bytes() for path in (tmp_path / "outside").iterdir()} == outside


def test_m_imports_nothing_from_the_working_directory(hostile: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sampler_lint", "--no-cache", "--fix"],
        cwd=hostile, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Fixed 9 findings" in done.stdout
    assert not (tmp_path / "ran").exists()


def test_a_configuration_that_leads_out_is_refused(
    hostile: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sampler_lint.cli import main

    monkeypatch.chdir(hostile)
    (hostile / "sampler-lint.toml").symlink_to("../outside/pyproject.toml")
    assert main([]) == 2
    assert "sampler-lint.toml: leads out of the repository" in capsys.readouterr().err
    (hostile / "sampler-lint.toml").unlink()
    (hostile / "inner").symlink_to("../outside")
    for folder in ("../outside", str(hostile.parent / "outside"), "inner", "inner/deeper"):
        (hostile / "sampler-lint.toml").write_text(f"cache-dir = {folder!r}\n")
        assert main([]) == 2
        assert "leads out of the repository (use --cache-dir)" in capsys.readouterr().err
        assert main(["--config", f"cache-dir={hostile.parent / 'mine'}"]) == 1
    (hostile / "sampler-lint.toml").write_text("cache-dir = '.cache/x'\n")
    assert main([]) == 1
    assert list((hostile / ".cache" / "x").glob("*.record"))
    assert not list((hostile.parent / "outside").glob("*.record"))


def everything(folder: Path) -> dict[str, bytes | None]:
    """All files below a folder, links and their targets' absence included."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize(
    ("folder", "files"),
    [
        ("kept", {"CACHEDIR.TAG": "link"}),
        ("kept", {"0" * 32 + ".record": "link"}),
        ("kept", {"0" * 32 + ".record": "fifo"}),
        ("kept", {".gitignore": "*.log\n"}),
        ("kept", {"poetry.lock": "", "notes.tmp": ""}),
        (".", {"poetry.lock": "", "notes.tmp": ""}),
        (".git/refs", {}),
        (".git/hooks/pre-commit", {}),
    ],
)
def test_a_trees_cache_dir_holds_nothing_else(
    hostile: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    files: dict[str, str],
) -> None:
    from sampler_lint.cli import main

    monkeypatch.chdir(hostile)
    (hostile / ".git").mkdir(exist_ok=True)
    (hostile / "sampler-lint.toml").write_text(f"cache-dir = {folder!r}\n")
    for name, text in files.items():
        path = hostile / folder / name
        path.parent.mkdir(exist_ok=True)
        if text == "link":
            path.symlink_to("../../outside/made")
        elif text == "fifo":
            os.mkfifo(path)
        else:
            path.write_text(text)
    before = everything(hostile.parent)
    for arguments in ([], ["--clear-cache"]):
        assert main(arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"cache-dir {folder!r} " in line
        assert line.endswith("(use --cache-dir)")
    assert everything(hostile.parent) == before


def test_a_cache_dir_of_the_users_choice_loses_nothing(
    hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sampler_lint.cli import main

    monkeypatch.chdir(hostile)
    (hostile / "src").mkdir()
    (hostile / "src" / "poetry.lock").write_text("")
    (hostile / "src" / "CACHEDIR.TAG").symlink_to("../../outside/made")
    before = everything(hostile.parent)
    found = [main(["--cache-dir", "src"]) for _ in range(2)]
    assert found == [1, 1], "what we write there keeps no file from being checked"
    assert list((hostile / "src").glob("*.record"))
    assert main(["--cache-dir", "src", "--clear-cache"]) == 0
    assert everything(hostile.parent) == before


@pytest.mark.parametrize("folder", ['"a\\u0000b"', f'"{"x" * 10_000}"'])
@pytest.mark.parametrize("told", [False, True])
def test_a_cache_dir_that_is_no_path(
    hostile: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    told: bool,
) -> None:
    from sampler_lint.cli import main

    monkeypatch.chdir(hostile)
    if not told:
        (hostile / "sampler-lint.toml").write_text(f"cache-dir = {folder}\n")
    assert main(["--config", f"cache-dir={folder}"] if told else []) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert "cache-dir" in line
    assert len(line) < 500


# -- what the source promises

#: Part of the package that runs only when asked, and in processes of its own.
HARNESS = ("harness", "dev")


class Module(NamedTuple):
    """What a file of the package calls and imports."""

    name: str
    calls: list[ast.Call]
    called: set[str]
    imports: set[str]

    @property
    def lints(self) -> bool:
        return not self.name.startswith(HARNESS)


@functools.cache
def package_modules() -> list[Module]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        name = path.relative_to(PACKAGE).as_posix()
        found.append(Module(name, calls, {*map(called, calls)}, {*imported(nodes)}))
    return found


def called(call: ast.Call) -> str:
    """What is called, if it is a name with dots or without: of few calls it is anything else."""
    func, names = call.func, []
    while isinstance(func, ast.Attribute):
        names.append(func.attr)
        func = func.value
    names.append(func.id if isinstance(func, ast.Name) else "")
    return ".".join(reversed(names))


def imported(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


def test_nothing_is_evaluated_or_unpickled() -> None:
    for module in package_modules():
        modules = {name.partition(".")[0] for name in module.imports}
        assert not modules & {"pickle", "marshal", "shelve", "dill", "yaml"}, module.name
        assert "eval" not in module.called, module.name
        if not module.lints:
            continue
        runs = {"eval", "exec", "__import__", "os.system", "os.popen"}
        assert not module.called & runs, module.name
        starts = module.imports & {
            "subprocess", "socket", "ctypes", "multiprocessing", "urllib.request"
        }  # fmt: skip
        # git is asked for changed lines, with --diff-base only.
        own = {"subprocess"} if module.name == "changed_lines.py" else set()
        assert starts <= own, module.name


def test_imports_by_name_are_of_this_package_alone() -> None:
    by_name = [
        (module.name, ast.unparse(call.args[0]))
        for module in package_modules()
        if module.lints
        for call in module.calls
        if called(call).endswith("import_module")
    ]
    assert by_name
    for name, text in by_name:
        assert "__name__" in text or "sampler_lint" in text or text == "FORMATS[name]", name


# -- time

A_SECOND = 5.0  # a slow machine's


@pytest.mark.parametrize(
    "text",
    [
        "if x" + ":#" * 300_000,
        "if a:" + "\n" * 500_000,
        "# noqa" + ":" * 300_000,
        "# noqa: " + "S," * 200_000,
        "# sampler-lint: ignore[" + "S," * 200_000,
        "# sampler-lint: " + "ignore" * 100_000,
        " " * 500_000 + "x",
        "x = '" + "a" * 500_000 + "!'",
        "class " + "Batch" * 100_000 + ": pass",
        "\n" * 500_000 + "class X[T]: pass",
        "manual_seed" * 100_000,
        "Distributed" * 100_000,
        "x_per_" + "per_" * 100_000 + "1-",
        "len(" * 100_000,
        "[rank" * 100_000,
        "% a." + "a." * 100_000,
        "def " * 200_000,
        "type " * 200_000,
        "def f" + " " * 500_000,
    ],
    ids=lambda text: text[:12].strip() or "blanks",
)
def test_no_text_keeps_a_regular_expression_busy(tmp_path: Path, text: str) -> None:
    from sampler_lint import parameters
    from sampler_lint.domain import concepts
    from sampler_lint.notebook import Notebook

    started = time.perf_counter()
    source = SourceFile("a.py", f"{text}\n{BUG}".encode())
    assert source.indent
    assert source.quote
    assert source.newline
    parsing._NEWER.search(text)
    concepts.SHARDS.says(text)
    parameters.role_of(text)
    cell = {"cell_type": "code", "metadata": {}, "source": text}
    Notebook(json.dumps({"cells": [cell], "nbformat": 4, "metadata": {}}).encode())
    (tmp_path / "a.py").write_bytes(source.data)
    engine.check([str(tmp_path)], engine.Options(select=("ALL",)))
    assert time.perf_counter() - started < 2 * A_SECOND


@pytest.mark.parametrize(
    "pattern",
    ["*a*a*a*a*a*a*a*a*a*a*b", "a*/" * 200, "**/a/" * 30 + "b", "**/**/**/b", "a/**/a/**/a/**/b",
     "**/*a*a/**/b", "*a*a*b"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["a" * 255, "a/" * 2000 + "a", f"{'a' * 255}/" * 15])
def test_no_pattern_keeps_the_walk_busy(pattern: str, path: str) -> None:
    started = time.perf_counter()
    assert not Gitignore([pattern]).decide(path, folder=False)
    assert time.perf_counter() - started < A_SECOND


def test_no_line_of_patterns_keeps_the_walk_busy() -> None:
    started = time.perf_counter()
    for line in ("a\\" * 500_000, "a" + " " * 1_000_000 + "b", "[" * 4_000, "\\ " * 500_000):
        Gitignore([line]).decide("a", folder=False)
    assert Gitignore(["a\\   "]).decide("a ", folder=False)
    assert Gitignore(["a\\\\   "]).decide("a\\", folder=False)
    assert time.perf_counter() - started < A_SECOND


def test_a_broken_configuration_costs_no_time(tmp_path: Path) -> None:
    from sampler_lint.config import ConfigError, Lookup

    for text, reason in [
        ("x = " + "[" * 100_000, "cannot be read"),
        ("x = " + "1" * 10_000, "cannot be read"),
        (f'select = 1\nx = """\n[{" " * 200_000}\n"""\n', "must be a list"),
        (f'select = 1\nx = """\n{"a." * 100_000}\n"""\n', "must be a list"),
    ]:
        (tmp_path / "sampler-lint.toml").write_text(text)
        started = time.perf_counter()
        with pytest.raises(ConfigError, match=re.escape(reason)):
            Lookup().at(str(tmp_path))
        assert time.perf_counter() - started < A_SECOND
