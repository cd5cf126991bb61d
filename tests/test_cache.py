"""Findings are the same with and without cache, in one process and in two, cold and warm."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import FIXTURES, all_cases, write_tree
from sampler_lint import engine, memory
from sampler_lint.cache import Cache, default_folder
from sampler_lint.findings import (
    Applicability,
    Cell,
    Edit,
    Finding,
    Fix,
    Grade,
    Place,
    Position,
    Related,
    Severity,
)
from sampler_lint.memory import as_json, from_json
from sampler_lint.workspace import project as model_project

ALL = engine.Options(select=("ALL",))

# --------------------------------------------------------------------------- records


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "kept"))
    assert cache.read("key") is None
    cache.write("key", ["one", "", "three"])
    assert cache.read("key") == ["one", "", "three"]
    assert cache.read("other key") is None
    cache.write("key", ["two"])
    assert cache.read("key") == ["two"]
    assert (tmp_path / "kept" / ".gitignore").read_text() == "*\n"
    assert not list((tmp_path / "kept").glob("*.tmp"))


def the_record(folder: Path) -> Path:
    (record,) = folder.glob("*.record")
    return record


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-1],
        lambda data: data + b" ",
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b"one", b"ONE"),
        lambda data: data.replace(b"cache 1 ", b"cache 2 "),
        lambda data: b"",
        lambda data: b"\xff\xfe" * 10,
    ],
)
def test_a_spoiled_record_is_none(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    cache = Cache(str(tmp_path))
    cache.write("key", ["one", "two"])
    record = the_record(tmp_path)
    record.write_bytes(spoil(record.read_bytes()))
    assert cache.read("key") is None


def test_a_record_under_another_keys_name_is_none(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path))
    cache.write("one", ["1"])
    data = the_record(tmp_path).read_bytes()
    cache.clear()
    cache.write("two", ["2"])
    the_record(tmp_path).write_bytes(data)
    assert cache.read("two") is None


def test_the_folder_stays_below_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sampler_lint.cache._MOST_BYTES", 10_000)
    cache = Cache(str(tmp_path))
    for number in range(12):
        cache.write(str(number), ["x" * 1900])
        os.utime(max(tmp_path.glob("*.record"), key=os.path.getmtime), (number, number))
    assert sum(path.stat().st_size for path in tmp_path.glob("*.record")) <= 10_000
    assert cache.read("11") is not None
    assert cache.read("0") is None
    cache.write("too long", ["x" * 5000])
    assert cache.read("too long") is None


def test_a_folder_that_cannot_be_made_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(str(tmp_path / "file" / "below"))
    cache.write("key", ["one"])
    assert cache.read("key") is None
    assert cache.clear() == 0


def test_clearing_leaves_what_is_not_ours(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "kept"))
    cache.write("key", ["one"])
    (tmp_path / "kept" / "notes.txt").write_text("mine")
    assert cache.clear() == 1
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["notes.txt"]
    cache.write("key", ["one"])
    (tmp_path / "kept" / "notes.txt").unlink()
    assert cache.clear() == 1
    assert not (tmp_path / "kept").exists()


texts = st.text(st.characters(codec=None), max_size=20)
numbers = st.integers(0, 10**6)
fixes = st.builds(
    Fix,
    texts,
    st.sampled_from(Applicability),
    st.lists(st.builds(Edit, texts, numbers, numbers, texts), max_size=3).map(tuple),
)
cells = st.none() | st.builds(Cell, numbers, numbers, numbers)
places = st.builds(Place, texts, st.builds(Position, numbers, numbers), cells)
findings = st.builds(
    Finding,
    *(texts, texts, texts),
    *(st.builds(Position, numbers, numbers), st.builds(Position, numbers, numbers)),
    st.none() | fixes,
    st.lists(st.builds(Related, texts | places, texts), max_size=3).map(tuple),
    cells,
    st.sampled_from(Grade),
    st.sampled_from(Severity),
    st.lists(fixes, max_size=2).map(tuple),
    *(texts, texts, st.booleans()),
)


@given(findings)
def test_a_finding_survives_being_written_down(finding: Finding) -> None:
    text = json.dumps(as_json(finding))
    assert text.isascii()
    assert from_json(Finding, json.loads(text)) == finding
    assert len(fields(Finding)) == 14, "is the new field written down, and made up above?"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=20,
)


@given(json_values)
def test_what_is_no_finding_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        from_json(Finding, value)


@given(st.lists(json_values, min_size=4, max_size=4))
def test_a_record_that_says_nonsense_is_no_record(lines: list[object]) -> None:
    class Poisoned(Cache):
        def read(self, key: str) -> list[str] | None:
            return [json.dumps(line) for line in lines]

    assert memory.Memory(Poisoned(""), ["key"], [__file__]).recall() is None


@pytest.mark.parametrize(
    ("place", "value"), [((0,), 5), ((1,), None), ((3,), "7"), ((3,), True), ((10,), 1)]
)
def test_a_finding_with_one_wrong_type_is_refused(place: tuple[int, ...], value: object) -> None:
    finding = Finding("SMP101", "m", "a.py", Position(1, 2), Position(3, 4))
    row = as_json(finding)
    assert from_json(Finding, row) == finding
    row[place[0]] = value
    with pytest.raises(TypeError):
        from_json(Finding, row)


# --------------------------------------------------------------------------- checks


def told(report: engine.Report) -> tuple[object, ...]:
    """All that a check says."""
    return report.findings, report.suppressed, report.errors, report.files


def check(cache: Cache | None = None, *paths: str, jobs: int = 1) -> tuple[object, ...]:
    return told(engine.check(paths or ["."], ALL, cache=cache, jobs=jobs))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A few fixtures side by side, and files that say nothing, as one project."""
    folder = tmp_path / "project"
    # Any file may set a program's seed, or replace what a fix tells the epoch: those of these rules
    # hang on files that say nothing, too.
    hanging = {"SMP101", "SMP102", "SMP103", "SMP201", "SMP203"}
    cases = [case for case in all_cases() if case.code not in hanging]
    for case in cases[::9]:
        write_tree(
            folder / case.code.lower() / case.folder.name.replace("-", "_"), case.files("bad")
        )
    files = {
        "pyproject.toml": b"",
        "plain.py": b"x = 1\n",
        "package/__init__.py": b"",
        "package/helper.py": b"def pick(x):\n    return x\n",
        "package/broken.py": b"def f(:\n",
        "silent.py": b"from torch.utils.data import DataLoader  # noqa\n",
    }
    write_tree(folder, files)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(str(tmp_path / "kept"))


def never_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, making a model is an error."""

    def refuse(*args: object) -> None:
        raise AssertionError("examined again")

    monkeypatch.setattr(engine, "Tree", refuse)


def noted(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[str]:
    """What a function of one argument is given from here on."""
    given: list[str] = []
    function = getattr(module, name)
    monkeypatch.setattr(module, name, lambda what: given.append(what) or function(what))
    return given


def reads_noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are read from here on to see whether the memory holds."""
    return noted(monkeypatch, memory, "read_bytes")


def is_code(path: str) -> bool:
    """A file that is checked, not one of settings."""
    return path.endswith(".py") and not path.endswith("/setup.py")


def age(folder: Path) -> None:
    """Make the files old enough that a change is sure to show."""
    longest = max(
        max(path.stat().st_ctime_ns, path.stat().st_mtime_ns) for path in folder.rglob("*.py")
    )
    while time.time_ns() <= longest + 1_000_000:
        time.sleep(0.001)


def test_nothing_changed_nothing_is_read(
    project: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sampler_lint.cache._RACY_NS", 0)
    age(project)
    cold = check(cache)
    assert cold == check()
    assert cold[0]
    assert cold[2]
    never_examined(monkeypatch)
    read = reads_noted(monkeypatch)
    monkeypatch.setattr(Cache, "write", None)
    assert check(cache) == cold
    assert [path for path in read if is_code(path)] == []


def test_files_changed_a_moment_ago_are_read_again(
    project: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = check(cache)
    read = reads_noted(monkeypatch)
    never_examined(monkeypatch)
    assert check(cache) == cold
    # Settings that were looked at are read each time.
    python = [path for path in read if is_code(path)]
    assert len(python) == len(cold[3])  # type: ignore[arg-type]


def test_a_change_where_nothing_is_said_costs_no_model(
    project: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(cache)
    (project / "plain.py").write_text("def broken(:\n")
    expected = check()
    never_examined(monkeypatch)
    assert check(cache) == expected
    (project / "plain.py").write_text("y = 2\n")
    (project / "package" / "broken.py").write_text("pass\n")
    assert check(cache)[2] == []


def test_a_part_is_told_from_the_whole(
    project: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [["package"], ["plain.py", "package/broken.py"], [str(project)], ["./package/"]]
    expected = [check(None, *part) for part in parts]
    check(cache)
    check(cache, str(project))
    check(cache, "./package/")
    never_examined(monkeypatch)
    assert [check(cache, *part) for part in parts] == expected


def test_what_is_known_depends_on_the_options(project: Path, cache: Cache) -> None:
    for options in (
        engine.Options(),
        engine.Options(select=("SMP1",)),
        engine.Options(select=("ALL",), ignore=("SMP2",)),
        engine.Options(select=("ALL",), per_file_ignores=(("smp1*", ("SMP1",)),)),
        engine.Options(select=("ALL",), exclude=("package",)),
        engine.Options(select=("ALL",), respect_noqa=False),
        engine.Options(select=("ALL",), unfixable=("ALL",)),
        lambda folder: engine.Options(select=("SMP1",) if "smp1" in folder else ("ALL",)),
        lambda folder: engine.Options(select=("ALL",) if "smp1" in folder else ("SMP1",)),
    ):
        plain = told(engine.check(["."], options))
        for _ in range(2):
            assert told(engine.check(["."], options, cache=cache)) == plain


def test_a_tree_with_a_file_that_cannot_be_read_is_not_kept(project: Path, cache: Cache) -> None:
    (project / "folder.py").symlink_to(project / "nowhere")
    os.mkfifo(project / "pipe.py")
    for _ in range(2):
        assert check(cache, ".", "pipe.py") == check(None, ".", "pipe.py")
    assert not list(Path(cache.folder).glob("*.record"))


def test_other_files_that_were_read_count(project: Path, cache: Cache) -> None:
    said = project / "requirements.txt"

    def checked() -> bool:
        """Whether the findings are still good."""
        kept = memory.Memory(cache, ["key"], [str(project / "plain.py")])
        return kept.recall() is not None

    def learn() -> None:
        new = memory.Memory(cache, ["key"], [str(project / "plain.py")])
        path = str(project / "plain.py")
        held = {path: memory.digest((project / "plain.py").read_bytes())}
        new.learn(held, lambda path: True, {str(said): memory.consult(str(said))}, is_whole=True)
        new.keep(memory.TreeReport())

    learn()
    assert checked()
    said.write_text("torch>=2.0\n")
    assert not checked()
    learn()
    assert checked()
    said.write_text("torch>=2.1\n")
    assert not checked()


# --------------------------------------------------------------------------- random edits


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


def edit(project: Path, dice: random.Random) -> str:
    """Change something; what was done, for the failure message."""
    files = sorted(project.rglob("*.py"))
    path = dice.choice(files)
    kind = dice.choice(
        ["append", "drop a line", "same size and time", "add", "remove", "rename", "touch",
         "break", "ignore", "copy over", "configure", "silence", "require"]
    )  # fmt: skip
    lines = lines_of(path)
    if kind == "append":
        word = dice.choice(["x = 1", "loader.sampler.set_epoch(3)", "import random; random.seed(1)",
                            "from plain import *", "torch.manual_seed(seed)",
                            "x = 1  # noqa: SMP101"])  # fmt: skip
        path.write_text("".join([*lines, f"\n{word}\n"]))
    elif kind == "drop a line" and lines:
        del lines[dice.randrange(len(lines))]
        path.write_text("".join(lines))
    elif kind == "same size and time":
        before = path.stat()
        text = path.read_text()
        for old, new in (("set_epoch", "sat_epoch"), ("seed", "sead"), ("shuffle", "shuffla"),
                         ("x", "y"), ("sat_epoch", "set_epoch")):  # fmt: skip
            if old in text:
                path.write_text(text.replace(old, new))
                break
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_mtime_ns == before.st_mtime_ns
    elif kind == "add":
        path.with_name(f"new_{dice.randrange(9)}.py").write_text(
            dice.choice(["", "z = 3\n", "import loader\n", "def f(:\n", "".join(lines)])
        )
    elif kind == "remove":
        path.unlink()
    elif kind == "rename":
        path.rename(path.with_name(dice.choice(["helper", "train", "data", "renamed"]) + ".py"))
    elif kind == "touch":
        os.utime(path)
    elif kind == "break":
        path.write_text("".join([*lines, "\ndef broken(:\n"]))
    elif kind == "ignore":
        (project / ".gitignore").write_text(dice.choice(["", "package/\n", "train.py\n"]))
    elif kind == "copy over":
        path.write_text(dice.choice(files).read_text())
    elif kind == "configure":
        (project / "pyproject.toml").write_text(
            dice.choice(["", "[tool.sampler-lint]\n", "[project]\nname = 'x'\n"])
        )
    elif kind == "silence":
        path.write_text("".join(["# sampler-lint: ignore-file\n", *lines]))
    elif kind == "require":
        asked = dice.choice(["torch>=2.10", "torch<2", "pytorch-lightning==1.9", "numpy", ""])
        (path.parent / dice.choice(["requirements.txt", "requirements-dev.txt"])).write_text(asked)
    return f"{kind} {path.relative_to(project)}"


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.whole) for seed in (1, 2))]
)
def test_random_edits_leave_nothing_stale(project: Path, cache: Cache, seed: int) -> None:
    dice = random.Random(seed)
    done: list[str] = []
    for _ in range(5):
        plain = check()
        for jobs in (1, 2):
            assert check(cache, jobs=jobs) == plain, done  # cold, or after an edit
            assert check(cache, jobs=jobs) == plain, done  # warm
        for _ in range(dice.choice([1, 1, 1, 3])):
            if not list(project.rglob("*.py")):
                return
            done.append(edit(project, dice))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_second_process_finds_the_same_syntax_errors(
    project: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    monkeypatch.setattr(engine, "_PAYS_FOR_A_PROCESS", 0)
    forked: list[int] = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: forked.append(fork()) or forked[-1])
    (project / "latin.py").write_bytes(b"# coding: latin-1\nx = '\xe9'\n")
    (project / "undecodable.py").write_bytes(b"x = '\xe9'\n")
    report = engine.check(["."], ALL, jobs=jobs)
    errors = {error.path: error.row for error in report.errors}
    assert errors == {"package/broken.py": 1, "undecodable.py": None}
    assert len(forked) == jobs - 1


def test_a_process_that_dies_is_made_up_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_PAYS_FOR_A_PROCESS", 0)
    parent = os.getpid()
    from sampler_lint.workspace import readable

    syntax_error = readable.syntax_error

    def die_elsewhere(*args):  # type: ignore[no-untyped-def]
        if os.getpid() != parent:
            os._exit(3)
        return syntax_error(*args)

    monkeypatch.setattr(readable, "syntax_error", die_elsewhere)
    assert [error.path for error in engine.check(["."], jobs=2).errors] == ["package/broken.py"]


def test_in_a_big_tree_files_that_nothing_leads_to_are_not_parsed(
    project: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = check()
    monkeypatch.setattr(engine, "LARGE_TREE", 1000)
    (project / "loader.py").write_text("def loader(:\n")
    for kept in (None, cache, cache):
        big = check(kept)
        assert big[0] == whole[0]
        assert [error.path for error in big[2]] == ["loader.py"]  # type: ignore[attr-defined]
        assert check(kept, "package/broken.py") == check(None, "package/broken.py")
        assert check(kept, "package/broken.py")[2]
    assert engine.check(["."]).unparsed > 0


def test_a_run_says_what_it_did_not_parse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sampler_lint.cli import main

    (tmp_path / "a.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    assert main(["--isolated", "--no-cache"]) == 0
    assert capsys.readouterr().out == "All clear: 1 file checked.\n"
    monkeypatch.setattr(engine, "LARGE_TREE", 1)
    assert main(["--isolated", "--no-cache"]) == 0
    assert capsys.readouterr().out == (
        "All clear: 1 file checked, 1 of them searched for sampler words only, not parsed.\n"
    )


# --------------------------------------------------------------------------- the command line


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sampler_lint", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_the_command_line_keeps_what_it_found(project: Path, tmp_path: Path) -> None:
    kept = tmp_path / "own"
    first, second = (run("--cache-dir", str(kept), "--timings") for _ in range(2))
    assert (first.stdout, first.returncode) == (second.stdout, second.returncode)
    assert first.stdout
    assert "rules" in first.stderr
    assert "rules" not in second.stderr
    assert "  cache" in second.stderr
    cleared = run("--cache-dir", str(kept), "--clear-cache")
    assert cleared.stdout == f"Deleted 1 records in {kept}.\n"
    assert not kept.exists()
    plain = run("--no-cache", "--cache-dir", str(kept))
    assert plain.stdout == first.stdout
    assert not kept.exists()
    (project / "pyproject.toml").write_text('[tool.sampler-lint]\ncache-dir = ".kept"\n')
    assert run().stdout == first.stdout
    assert the_record(project / ".kept")


def test_where_records_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == str(tmp_path / "sampler-lint")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert default_folder() == "/home/somebody/.cache/sampler-lint"


def test_a_warm_run_loads_neither_model_nor_rules(project: Path) -> None:
    program = (
        "import sys\nfrom sampler_lint.cli import main\nmain(['.'])\n"
        "print(*[name for name in sys.modules if name.startswith('sampler_lint.')])"
    )
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
    loaded = done.stdout.splitlines()[-1].split()
    assert not [name for name in loaded if ".model" in name or ".rules" in name]
    assert "sampler_lint.memory" in loaded


# --------------------------------------------------------------------------- in one process


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are parsed, in their order."""
    return noted(monkeypatch, model_project, "parse")


def a_program(folder: Path) -> Path:
    bad = FIXTURES / "SMP102/factory-tuple/bad"
    for name in ("data.py", "train.py"):
        (folder / name).write_bytes((bad / name).read_bytes())
    (folder / "pyproject.toml").touch()
    return folder / "train.py"


def test_fixing_parses_again_what_it_changed(tmp_path: Path, parsed: list[str]) -> None:
    train = a_program(tmp_path)
    assert len(engine.fix([str(tmp_path)], ALL, unsafe=True).fixed) == 1
    assert parsed.count(train.read_text()) == 1
    assert len(parsed) == len(set(parsed)) == 3  # both files, and one of them fixed


def test_a_session_parses_again_what_changed(tmp_path: Path, parsed: list[str]) -> None:
    train = a_program(tmp_path)
    session = engine.Session()
    before = engine.check([str(tmp_path)], ALL, session=session).findings
    buffer = {str(train): b"# moved\n" + train.read_bytes()}
    after = engine.check([str(tmp_path)], ALL, session=session, overlay=buffer).findings
    assert [one.start.row + 1 for one in before] == [one.start.row for one in after]
    assert len(parsed) == len(set(parsed)) == 3
    # The same content under another name is another file.
    os.rename(train, tmp_path / "run.py")
    found = engine.check([str(tmp_path)], ALL, session=session).findings
    assert [Path(one.path).name for one in found] == ["run.py"]
