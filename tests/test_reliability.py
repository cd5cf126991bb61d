"""Any input and any tree: no crash, no hang, and the other files are checked all the same."""

from __future__ import annotations

import contextlib
import ntpath
import os
import random
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath

import pytest

from cases import FIXTURES, all_cases, write_tree
from growing import MOST, calls_of
from sampler_lint import engine
from sampler_lint.cache import Cache
from sampler_lint.cli import main
from sampler_lint.source import LARGEST
from sampler_lint.workspace import first_look
from sampler_lint.workspace import project as model_project

HEAD = b"from torch.utils.data import DataLoader, DistributedSampler, Sampler\n"
BUG = HEAD + b"x = DataLoader(d, sampler=s, shuffle=True)\n"
FIXED = BUG.replace(b"shuffle=True", b"shuffle=s is None")
ALL = engine.Options(select=("ALL",))

unix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a tree that only Unix can hold")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one finding, in ``b.py``; the working directory."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    (folder / "b.py").write_bytes(BUG)
    monkeypatch.chdir(folder)
    return folder


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["--select", "ALL", *arguments])
    return code, *capsys.readouterr()


# -- any input


def nested(depth: int) -> bytes:
    lines = [b" " * level + b"if x:\n" for level in range(depth)]
    return b"".join([*lines, b" " * depth, b"pass\n"])


#: What is written, and how the error about it begins; empty for none.
INPUTS = {
    "brackets": (b"x = " + b"(" * 100_000 + b")" * 100_000, "is not valid Python|.*too"),
    "unary": (b"x = " + b"-" * 100_000 + b"1", ".*"),
    "attributes": (b"x = " + b"a." * 50_000 + b"b\n", ".*"),
    "sum": (b"x = 1" + b"+1" * 100_000, ".*"),
    "calls": (b"x = f" + b"(1)" * 20_000, ".*"),
    "blocks": (nested(99), ".*"),
    "one line": (b"x = [" + b"DataLoader(y), " * 1_500 + b"]\n", ""),
    "one line of a megabyte": (b"x = [" + (b"'%b', " % (b"a" * 200)) * 5_000 + b"]\n", ""),
    "branches": (b"if x:\n  pass\n" + b"elif x:\n  pass\n" * 2000, ".*"),
    "null byte": (b"x = 1\0\n", "is not valid Python|.*null"),
    "surrogates as bytes": (b"x = '\xed\xa0\x80'\n", "cannot be decoded"),
    "surrogates as text": (b"x = '\\ud800'\nDataLoader('\\ud800')\n", ""),
    "utf-16": ("x = 1\n".encode("utf-16"), "cannot be decoded|is not valid Python|.*null"),
    "python 2 print": (b"print 'x'\n", "is not valid Python"),
    "python 2 except": (b"try: pass\nexcept A, e: raise A, e\n", "is not valid Python"),
    "python 2 rest": (b"exec 'x'\nx = 0777L <> `y`\n", "is not valid Python"),
    "python 3.15": (b"lazy unheard of import x\n", "is not valid Python"),
    "itself as base": (b"class A(A, Sampler):\n  def __iter__(self): return self.x\n", ""),
    "bases in a ring": (b"class C(D, Sampler): pass\nclass D(C): pass\nx = D(1)\n", ""),
    "imports itself": (b"from a import *\nfrom . import a\nimport a\nfrom a import Sampler\n", ""),
    "functions in a ring": (
        b"".join(b"def f%d(l):\n return f%d(l)\n" % (i, (i + 1) % 500) for i in range(500))
        + b"f0(DataLoader(x))\n",
        "",
    ),
    "a long chain of names": (
        b"def f(loader):\n" + b"    loader = loader.with_x(loader)\n" * 3000, ""
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INPUTS)
def test_any_input(tree: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    data, said = INPUTS[name]
    (tree / "a.py").write_bytes(HEAD + data)
    code, out, err = told(capsys, "--no-cache")
    assert "SMP501" in out
    assert "b.py" in out
    assert "Traceback" not in err
    assert "SMP000" not in out
    if said == ".*":  # some versions of Python read it
        assert code == (2 if err else 1)
    else:
        assert code == (2 if said else 1)
        assert bool(err) == bool(said)
    if err:
        assert re.match(rf"error: a\.py(:\d+)?: ({said or 'nothing'})", err), err
        assert err.count("\n") == 1
    code, out, err = told(capsys, "--no-cache", "--fix", "--unsafe-fixes")
    assert (tree / "b.py").read_bytes() == FIXED
    assert "Traceback" not in err


@pytest.mark.parametrize("text", [b"x = t'{a}'\n", b"try: pass\nexcept A, B: pass\n"])
def test_syntax_of_a_newer_python_is_said_to_be_one(
    tree: Path, capsys: pytest.CaptureFixture[str], text: bytes
) -> None:
    (tree / "a.py").write_bytes(text)
    code, _, err = told(capsys)
    if sys.version_info >= (3, 14):
        assert (code, err) == (1, "")
    else:
        assert code == 2
        assert err.startswith("error: a.py:")


def test_a_deep_hierarchy(tree: Path) -> None:
    rest = b"".join(b"class C%d(C%d):\n  x = 1\n" % (i, i - 1) for i in range(1, 3_000))
    (tree / "a.py").write_bytes(HEAD + b"class C0(Sampler):\n  pass\n" + rest)
    report = engine.check(["."], ALL)
    assert [finding.path for finding in report.findings if finding.code == "SMP501"] == ["b.py"]
    assert not report.errors


def test_a_wide_hierarchy(tree: Path) -> None:
    def calls(count: int) -> int:
        derived = (b"class C%d(C0):\n  def m(self): return self.x\n" % i for i in range(count))
        (tree / "a.py").write_bytes(HEAD + b"class C0(Sampler):\n  pass\n" + b"".join(derived))
        options = engine.Options(select=("SMP4", "SMP501"))
        reports: list[engine.Report] = []
        counted = calls_of(lambda: reports.append(engine.check(["."], options)))
        assert "SMP501" in {finding.code for finding in reports[0].findings}
        assert not reports[0].errors
        return counted

    calls(1)  # what is made once
    assert calls(400) <= MOST * calls(100)


@pytest.mark.parametrize(
    "form",
    [
        (b"", b"x%d = DataLoader(d, sampler=s, shuffle=True)\n", b""),
        (b"", b"x%d = DataLoader(d, sampler=s, shuffle=True)  # noqa: SMP101\n", b""),
        (b"def f(d, s):\n", b"  s%d = DistributedSampler(d)\n", b""),
        (b"x = [\n", b"  DataLoader(d%d, sampler=s, shuffle=True),\n", b"]\n"),
    ],
    ids=["wrong loaders", "comments", "samplers that are not used", "one list"],
)
def test_work_grows_with_the_number_of_constructions(
    tree: Path, form: tuple[bytes, bytes, bytes]
) -> None:
    first, line, last = form

    def calls(count: int) -> int:
        lines = b"".join(line % number for number in range(count))
        (tree / "a.py").write_bytes(HEAD + first + lines + last)
        reports: list[engine.Report] = []
        counted = calls_of(lambda: reports.append(engine.check(["."], ALL)))
        assert len(reports[0].findings) > count
        return counted

    calls(1)  # what is made once
    assert calls(80) <= MOST * calls(20)


def test_work_grows_with_the_number_of_programs(tree: Path) -> None:
    """Programs that share nothing but names: what one asks for is not looked for in all."""
    program = FIXTURES / "SMP102/factory-tuple/bad"

    def calls(count: int) -> int:
        for number in range(len(list(tree.glob("program*"))), count):
            shutil.copytree(program, tree / f"program{number}")
        reports: list[engine.Report] = []
        counted = calls_of(lambda: reports.append(engine.check(["."], ALL)))
        assert sum(finding.code == "SMP102" for finding in reports[0].findings) == count
        return counted

    calls(1)  # what is made once
    few, many = calls(8), calls(32)
    assert many < 4.2 * few


def test_modules_that_import_each_other(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(30):
        others = f"from ring{(number + 1) % 30} import *\nimport ring{(number + 7) % 30} as r\n"
        bases = f"r.S{(number + 7) % 30}, S{(number + 1) % 30}"
        body = f"class S{number}({bases}, Sampler): pass\nx = DataLoader(S{number}(y))\n"
        (tree / f"ring{number}.py").write_text(others + HEAD.decode() + body)
    code, out, err = told(capsys, "--no-cache")
    assert (code, err) == (1, "")
    assert "SMP501" in out


def test_a_file_of_50_megabytes_is_not_read(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open(tree / "a.py", "wb") as file:
        file.truncate(50_000_000)
    code, out, err = told(capsys)
    assert (code, "b.py" in out) == (2, True)
    assert err == "error: a.py: is too large to be checked (50 MB, more than 4)\n"


def test_a_notebook_of_50_megabytes_is_read_if_its_code_is_small(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = b'{"cell_type": "code", "source": ["x = 1"], "outputs": ["%b"]}' % (b"A" * 6_000_000)
    code = b'{"cell_type": "code", "source": ["%b"]}' % (b"# loader\\n" * 500_000)
    (tree / "pictures.ipynb").write_bytes(b'{"cells": [%b], "nbformat": 4}' % picture)
    (tree / "code.ipynb").write_bytes(b'{"cells": [%b], "nbformat": 4}' % code)
    with open(tree / "whole.ipynb", "wb") as file:
        file.truncate(51_000_000)
    exit_code, out, err = told(capsys)
    assert (exit_code, "b.py" in out) == (2, True)
    assert err == (
        "error: code.ipynb: is too large to be checked (its code has 5 MB, more than 4)\n"
        "error: whole.ipynb: is too large to be checked (51 MB, more than 50)\n"
    )


def test_a_file_as_large_as_may_be_ends(tree: Path) -> None:
    (tree / "a.py").write_bytes(HEAD + b"# " + b"x" * (LARGEST - len(HEAD) - 3) + b"\n")
    started = time.perf_counter()
    assert not engine.check(["."], ALL).errors
    assert time.perf_counter() - started < 20


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"null", b"{", b'{"cells": 1}', b'{"cells": [1]}', b"[" * 200_000, b"\xff\xfe",
     b'{"cells": [{"cell_type": "code", "source": {"a": 1}}]}', b"1" * 10_000],
    ids=lambda data: repr(data[:12]),
)  # fmt: skip
def test_a_bad_notebook_is_one_line(
    tree: Path, capsys: pytest.CaptureFixture[str], data: bytes
) -> None:
    (tree / "a.ipynb").write_bytes(data)
    code, out, err = told(capsys)
    assert (code, "b.py" in out) == (2, True)
    assert err.startswith("error: a.ipynb")
    assert err.count("\n") == 1


def test_a_package_that_is_called_torch(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("torch/__init__.py", "torch/utils/__init__.py", "torch/utils/data.py"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_bytes(b"raise SystemExit('imported')\nclass DataLoader: pass\n")
    code, out, err = told(capsys)
    assert (code, err) == (1, "")
    assert "SMP501" in out


def python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if path.stat().st_size < 200_000)


def installed() -> Iterator[Path]:
    yield Path(os.__file__).parent / "test"
    yield Path(os.__file__).parent / "lib2to3"
    yield Path(pytest.__file__).parent.parent


def check_all(folder: Path, paths: list[Path]) -> None:
    """Fix files as if each spoke of samplers, some at a time; nothing may be raised."""
    for first in range(0, len(paths), 20):
        for number, path in enumerate(paths[first : first + 20]):
            (folder / f"m{number}.py").write_bytes(path.read_bytes())
        result = engine.fix([str(folder)], ALL, unsafe=True, write=False)
        assert "SMP000" not in {finding.code for finding in result.report.findings}
        for error in result.report.errors:
            assert "Python" in error.reason or "decode" in error.reason, error


def test_what_python_tests_itself_with(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample; ``pytest -m slow`` takes more."""
    monkeypatch.setattr(first_look, "is_candidate", lambda data: True)
    paths = [path for folder in installed() for path in python_files(folder)]
    known = [path for path in paths if path.name.startswith(("bad", "test_syntax", "test_grammar"))]
    check_all(tree, [*known[:12], *random.Random(0).sample(paths, min(len(paths), 24))])


@pytest.mark.slow
def test_one_file_in_forty_of_what_is_installed(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_look, "is_candidate", lambda data: True)
    check_all(tree, [path for folder in installed() for path in python_files(folder)][::80])


# -- any tree


@unix
def test_what_is_no_file_is_passed_over(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("pipe.py", ".gitignore", "sub/sampler-lint.toml", "requirements.txt"):
        (tree / name).parent.mkdir(exist_ok=True)
        os.mkfifo(tree / name)
    (tree / "sub" / "c.py").write_bytes(BUG)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.py")
        (tree / "zero.py").symlink_to("/dev/zero")
        with contextlib.suppress(OSError):  # only the superuser may
            os.mknod(tree / "node.py", stat.S_IFCHR | 0o600, os.makedev(1, 5))  # endless zeros
        (tree / "folder.py").mkdir()
        (tree / "self.py").symlink_to("self.py")
        (tree / "up").symlink_to("..")
        (tree / "gone.py").symlink_to("nowhere.py")
        code, _, err = told(capsys)
        assert (code, err) == (2, "error: sub/sampler-lint.toml: is not a regular file\n")
        (tree / "sub" / "sampler-lint.toml").unlink()
        code, out, err = told(capsys)
        assert (code, err) == (1, "")
        assert out.count("SMP501") == 2
        for name in ("pipe.py", "socket.py", "zero.py", "gone.py", "self.py", "node.py"):
            code, _, err = told(capsys, name)
            assert code == 2
            assert err.startswith(f"error: {name}: ")


@unix
def test_hostile_names(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["a\nb.py", "\x1b[31mred.py", "::error::x.py", "-c.py", "B.py", "e\u0301.py"]
    names.append("\u202ex.py")
    for name in [*names, os.fsdecode(b"\xff.py")]:
        (tree / name).write_bytes(BUG)
    for style in ("text", "concise", "grouped", "json", "json-lines", "sarif", "github", "gitlab",
                  "junit", "rdjson"):  # fmt: skip
        code, out, _ = told(capsys, "--output-format", style, "--no-cache")
        assert code == 1, style
        assert "\x1b" not in out, style
        assert out.count("SMP501") >= 9, style
    code, _, err = told(capsys, "--fix", "--no-cache")
    assert (code, err) == (0, "")
    assert {path.read_bytes() for path in tree.glob("*.py")} == {FIXED}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs another user")
def test_as_a_user_who_may_not_read_or_write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        root = Path(folder, "tree")
        (root / "closed").mkdir(parents=True)
        (root / "pyproject.toml").touch()
        for name in ("a.py", "secret.py", "closed/c.py"):
            (root / name).write_bytes(BUG)
        (root / "secret.py").chmod(0)
        (root / "closed").chmod(0)
        program = (
            "import hashlib, os, sys; from sampler_lint.cli import main\n"
            "main(['--fix', '--diff', '--no-cache', sys.argv[1] + '/a.py'])\n"  # imports all
            "os.chdir(sys.argv[1]); os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            "print('--', main(['--cache-dir', 'kept']), flush=True)\n"
            "print('--', main(['--fix', '--no-cache', 'a.py']))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(root)], capture_output=True, text=True, check=False
        )
        assert "-- 2" in done.stdout, done.stderr
        assert "SMP501" in done.stdout
        assert "error: secret.py: cannot be read: Permission denied" in done.stderr
        assert "error: closed: cannot be read: Permission denied" in done.stderr
        assert "Traceback" not in done.stderr
        assert "read-only" in done.stdout.rpartition("-- 2")[2] + done.stderr or (
            "read-only" in done.stdout
        )
        assert (root / "a.py").read_bytes() == BUG
        assert not (root / "kept").exists()


def test_a_file_that_goes_while_it_is_read(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "a.py").write_bytes(BUG)
    read = model_project.read_bytes

    def vanish(path: str) -> bytes:
        if os.path.basename(path) == "a.py" and os.path.exists(path):
            os.unlink(path)
        return read(path)

    monkeypatch.setattr(model_project, "read_bytes", vanish)
    code, out, err = told(capsys)
    assert (code, "b.py" in out) == (2, True)
    assert err == "error: a.py: cannot be read: No such file or directory\n"


# -- any disk


def limited(size: int) -> str:
    """A program that may write files of so many bytes; the system says no to more."""
    return (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))\n"
        "from sampler_lint.cli import main; sys.exit(main(sys.argv[1:]))\n"
    )


@unix
def test_a_full_disk_leaves_the_file_whole(tree: Path) -> None:
    data = BUG + b"# " + b"x" * 20_000
    (tree / "b.py").write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", limited(10_000), "--fix", "--no-cache"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "error: b.py: cannot be written: File too large" in done.stderr
    assert (tree / "b.py").read_bytes() == data
    assert sorted(os.listdir(tree)) == ["b.py", "pyproject.toml"]


@unix
@pytest.mark.parametrize("size", [0, 100, 400])
def test_a_full_disk_costs_the_cache_alone(tree: Path, size: int) -> None:
    command = ["--cache-dir", "kept", "--output-format", "json"]
    done = subprocess.run(
        [sys.executable, "-c", limited(size), *command], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"SMP501" in done.stdout
    assert not [name for name in os.listdir("kept") if name.endswith((".tmp", ".record"))]


def test_many_runs_on_one_cache(tree: Path) -> None:
    command = [sys.executable, "-m", "sampler_lint", "--cache-dir", "kept"]
    runs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)
    ]
    said = {(run.communicate(), run.returncode) for run in runs}
    assert len(said) == 1
    ((out, err), code), *_ = said
    assert (code, err, b"SMP501" in out) == (1, b"", True)
    assert subprocess.run(command, capture_output=True, check=False).stdout == out
    assert len(list((tree / "kept").glob("*.record"))) == 1
    assert not list((tree / "kept").glob("*.tmp"))


def test_the_cache_of_another_version_is_not_read(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(str(tmp_path / "kept"))
    engine.check(["."], cache=cache)
    used: list[bool] = []
    read = Cache.read

    def reading(self: Cache, key: str) -> list[str] | None:
        found = read(self, key)
        used.append(found is not None)
        return found

    monkeypatch.setattr(Cache, "read", reading)
    engine.check(["."], cache=cache)
    monkeypatch.setattr("sampler_lint.cache.__version__", "0.0.0")
    engine.check(["."], cache=cache)
    assert used == [True, False]


# -- any platform

_WITHOUT_UNIX = """
import sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
import os
for name in ("fork", "waitid", "killpg", "mkfifo", "setsid", "chown", "geteuid"):
    if hasattr(os, name):
        delattr(os, name)
import pkgutil, importlib, tempfile, sampler_lint  # tempfile: of the real platform
here, sys.platform = sys.platform, "win32"
import sampler_lint.unfinished  # and fixing: they ask for the platform
sys.platform = here
for module in pkgutil.walk_packages(sampler_lint.__path__, "sampler_lint."):
    if not module.name.startswith(("sampler_lint.harness", "sampler_lint.dev",
                                   "sampler_lint.language_server", "sampler_lint.__main__",
                                   "sampler_lint.integrations", "sampler_lint.pytest_plugin")):
        importlib.import_module(module.name)
from sampler_lint.cli import run
sys.argv = ["sampler-lint", *sys.argv[1:]]
sys.exit(run())
"""


def test_nothing_of_unix_is_needed_to_check_and_fix(tree: Path) -> None:
    run = [sys.executable, "-c", _WITHOUT_UNIX]
    done = subprocess.run([*run, "--jobs", "2"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "SMP501" in done.stdout
    done = subprocess.run([*run, "--fix"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tree / "b.py").read_bytes() == FIXED


def test_spawned_processes_check_as_forked_ones_do(tree: Path) -> None:
    program = (
        "import multiprocessing, sys\n"
        "from sampler_lint import engine\n"
        "def checked(folder): return [f.code for f in engine.check([folder]).findings]\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
        "        print(pool.map(checked, ['.', '.']))\n"
    )
    (tree.parent / "spawning.py").write_text(program)
    done = subprocess.run(
        [sys.executable, str(tree.parent / "spawning.py")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "[['SMP501'], ['SMP501']]\n", done.stderr


class _Windows:
    """What stands for ``os``."""

    path, sep, curdir = ntpath, "\\", "."
    fsencode, fsdecode = os.fsencode, os.fsdecode


def test_windows_paths_become_addresses_and_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed from paths, computed by the path library of Windows."""
    from sampler_lint import fingerprints, options
    from sampler_lint.discovery import _decision
    from sampler_lint.gitignore import Gitignore
    from sampler_lint.reporters import _links

    path = PureWindowsPath("C:/work", "pkg", "data set", "loaders.py")
    monkeypatch.setattr(ntpath, "abspath", ntpath.normpath)  # there is no Windows to ask
    for module in (fingerprints, options, _links):
        monkeypatch.setattr(module, "os", _Windows)
    monkeypatch.setattr("sampler_lint.discovery.os", _Windows)
    assert fingerprints.relative_to(str(path), "C:\\work") == "pkg/data set/loaders.py"
    chosen = options.Options(folder="C:\\work", per_file_ignores=(("pkg/data*/", ("SMP1",)),))
    assert chosen.ignored_in(str(path)) == ("SMP1",)
    ignores = (("C:\\work", Gitignore(["/pkg/data*/*.py"])),)
    assert _decision(ignores, str(path), folder=False) is True


# -- the page

_ROW = re.compile(r"^\|.*\| (?P<tests>`[^|]+`) \|$", re.MULTILINE)


def test_each_fault_of_the_page_has_its_test() -> None:
    tests = Path(__file__).parent
    page = (tests.parent / "docs" / "reliability.md").read_text("utf-8")
    rows = [match["tests"] for match in _ROW.finditer(page)]
    lines = [line for line in page.splitlines() if line.startswith("| ") and "|---" not in line]
    assert len(rows) == len([line for line in lines if not line.startswith("| fault")]) > 40
    for row in rows:
        for file, name in re.findall(r"`(\w+\.py)::(\w+)`", row):
            source = (tests / file).read_text("utf-8")
            assert re.search(rf"^def {name}\(", source, re.MULTILINE), (file, name)
        assert re.fullmatch(r"`\w+\.py::\w+`(?:, `\w+\.py::\w+`)*", row), row


def test_nothing_depends_on_the_order_of_sets(tmp_path: Path) -> None:
    for case in {case.code: case for case in all_cases()}.values():
        write_tree(tmp_path / case.name.replace("-", "_"), case.files("bad"))
    said = set()
    for seed in "01":
        env = {**os.environ, "PYTHONHASHSEED": seed}
        command = ["--no-cache", "--isolated", "--select", "ALL", "--output-format", "json"]
        done = subprocess.run(
            [sys.executable, "-m", "sampler_lint", *command],
            cwd=tmp_path, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        said.add(done.stdout)
    assert len(said) == 1
