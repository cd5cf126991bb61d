"""Imports run downwards only, and starting up is cheap."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cases import all_cases, write_tree
from sampler_lint.syntax import nodes

PACKAGE = Path(__file__).parent.parent / "src" / "sampler_lint"
FILES = sorted(PACKAGE.rglob("*.py"))

#: Each unit (a module, or a whole subpackage) and the units it may import.
MAY_IMPORT: dict[str, set[str]] = {
    "findings": set(),
    "gitignore": set(),
    "roots": set(),
    "notebook": set(),
    "source": {"notebook", "findings"},
    "cache": set(),
    "timings": set(),
    # What ranks read and how that is judged, for the harness and for the interpreter.
    "properties": set(),
    # What the parameters of a sampler want, for the same two.
    "parameters": set(),
    "parallel": set(),
    "memory": {"cache", "roots", "source", "findings"},
    # What programs mean, each floor resting on those above it in this table.
    "limits": set(),
    "remembered": set(),
    "catalog": set(),
    "syntax": {"limits"},
    "workspace": {
        *("syntax", "catalog", "limits", "parallel", "timings", "cache", "roots", "source"),
        "findings",
    },
    "analysis": {"workspace", "syntax", "catalog", "remembered", "limits"},
    "execution": {"properties", "parameters", "workspace", "syntax", "catalog", "limits"},
    "domain": {
        *("execution", "analysis", "workspace", "syntax", "catalog", "remembered", "limits"),
        *("parameters", "source", "findings"),
    },
    "edits": {
        *("domain", "analysis", "workspace", "syntax", "catalog", "remembered", "limits"),
        *("fixing", "source", "findings"),
    },
    "options": {"gitignore", "findings"},
    # It knows which words its values may be: codes, formats, frameworks.
    "config": {
        *("options", "rules", "reporters", "workspace", "catalog", "roots", "source", "findings"),
    },
    "discovery": {"timings", "gitignore", "roots", "findings"},
    "suppressions": {"source", "findings"},
    "fixing": {"syntax", "source", "findings"},
    "unfinished": {"fixing", "cache", "source", "findings"},
    "rounds": {"unfinished", "fixing", "source", "findings"},
    "fingerprints": {"source", "findings"},
    "baseline": {"fingerprints", "source", "findings"},
    "changed_lines": {"findings"},
    "reporters": {"fingerprints", "source", "findings"},
    "failures": {"workspace", "syntax", "findings"},
    "rules": {
        *("edits", "domain", "execution", "analysis", "workspace", "syntax", "catalog", "limits"),
        *("properties", "parameters", "suppressions", "options", "source", "findings"),
        "remembered",
    },
    "trees": {
        *("failures", "timings", "rules", "edits", "domain", "analysis", "workspace", "syntax"),
        *("suppressions", "discovery", "options", "roots", "findings"),
    },
    "engine": {
        *("trees", "memory", "cache", "parallel", "timings", "options", "workspace", "limits"),
        *("rounds", "unfinished", "fixing", "rules", "suppressions", "discovery", "baseline"),
        *("roots", "source", "findings"),
    },
    "asked": {"rules", "domain", "analysis", "syntax", "findings"},
    "explain": {
        *("asked", "engine", "rules", "domain", "analysis", "workspace", "syntax"),
        *("roots", "options", "source", "findings"),
    },
    "language_server": {
        *("explain", "engine", "trees", "config", "options", "rules", "reporters", "suppressions"),
        *("fixing", "source", "findings"),
    },
    # The proof knows invariants, not rules; verify.py looks up which rule names which.
    "harness": {"properties", "parameters"},
    "harness.verify": {"engine", "rules", "findings"},
    "harness.prove": {"rules", "source", "findings"},
    "trace_report": {"harness", "engine", "findings"},
}

#: Where the text of files is asked by questions that are noted (see ``SourceFile.tells``): what is
#: read besides, a comment may change unheard. Fixes and comments are looked at anew, trials are
#: dropped; and lengths tell an order only.
ASKS_TEXTS = ("domain", "analysis", "rules", "workspace")
READS_TEXTS = {
    "workspace/readable.py",
    "workspace/texts.py",
    "rules/smp001_unused_suppression.py",
    "workspace/moving.py",
    "workspace/project.py",
}

#: What runs inside other programs, where it is loaded under another name.
INSIDE = ["harness", "inside"]

#: Thin fronts: they may import anything below, and nobody imports them.
FRONTS = {"cli", "codemods", "flake8_plugin", "integrations", "pytest_plugin", "dev", "__main__"}


def parts_of(path: Path) -> list[str]:
    parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" else parts


def unit_of(parts: Sequence[str]) -> str:
    """The unit that a module, given by its name below the package, belongs to."""
    dotted = ".".join(parts)
    return dotted if dotted in MAY_IMPORT else parts[0] if parts else ""


def is_module(parts: list[str]) -> bool:
    base = PACKAGE.joinpath(*parts)
    return base.is_dir() or base.with_suffix(".py").is_file()


@functools.cache
def imported(path: Path) -> tuple[tuple[str, ...], ...]:
    """Our own modules that a file imports, anywhere in it, by their names below the package."""
    return tuple(map(tuple, _imported(path)))


def _imported(path: Path) -> Iterator[list[str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level <= (parts_of(path)[:2] == INSIDE), f"{path}:{node.lineno}: relative"
            above = [PACKAGE.name, *INSIDE] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            names = [f"{module}.{alias.name}" for alias in node.names]
        for name in names:
            first, *rest = name.split(".")
            if first == "sampler_lint":
                while rest and not is_module(rest):
                    rest.pop()
                yield rest


# Each of these goes through all files in one test: a failure names the files.


def test_imports_run_downwards() -> None:
    assert [wrong for path in FILES for wrong in _upward(path)] == []


def _upward(path: Path) -> Iterator[str]:
    own = unit_of(parts_of(path))
    for target in imported(path):
        unit = unit_of(target)
        if unit in {"", own.split(".")[0], own}:
            continue  # the version, or the same unit
        if own in FRONTS:
            # `dev` writes the page about the command line from its parsers.
            right = unit not in FRONTS or (own, unit) in {("__main__", "cli"), ("dev", "cli")}
        elif own:
            right = unit in MAY_IMPORT[own]
        else:
            right = unit == "harness"  # sampler_lint/__init__.py, when asked for
        if not right:
            yield f"{path.relative_to(PACKAGE)} of {own} imports {unit}"


def test_what_runs_inside_other_programs_stands_alone() -> None:
    assert [
        f"{path.relative_to(PACKAGE)} imports {'.'.join(target)}"
        for path in FILES
        if parts_of(path)[:2] == INSIDE
        for target in imported(path)
        if list(target[:2]) != INSIDE
    ] == []


def test_rules_are_imported_by_nobody() -> None:
    """A rule that is a package may import its own parts."""
    assert [
        f"{path.relative_to(PACKAGE)} imports {'.'.join(target)}"
        for path in FILES
        for target in imported(path)
        if target[:1] == ("rules",) and target[1:] and target[1].startswith("smp")
        if parts_of(path)[:2] != list(target[:2])
    ] == []


def test_helpers_of_rules_are_for_rules() -> None:
    assert [
        f"{path.relative_to(PACKAGE)} imports {target[-1]}"
        for path in FILES
        for target in imported(path)
        if target[:1] == ("rules",) and target[-1].startswith("_")
        if parts_of(path)[:1] != ["rules"]
    ] == []


def test_no_modules_import_one_another() -> None:
    """Neither directly nor over others, nor when something is asked for."""
    below = {
        tuple(parts_of(path)): {target for target in imported(path) if target} for path in FILES
    }
    done: set[tuple[str, ...]] = set()
    while (
        ready := {module for module, targets in below.items() if targets - {module} <= done} - done
    ):
        done |= ready
    assert sorted(below.keys() - done - {()}) == []


def test_every_unit_has_its_place() -> None:
    units = {unit_of(parts_of(path)) for path in FILES} - {""}
    assert units == MAY_IMPORT.keys() | FRONTS


def test_the_table_has_no_cycle() -> None:
    done: set[str] = set()
    while len(done) < len(MAY_IMPORT):
        ready = {unit for unit, below in MAY_IMPORT.items() if below <= done} - done
        assert ready, "the units left import one another"
        done |= ready


def test_no_module_outgrows_a_reader() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert [path for path, count in lines.items() if count > 800] == []


# what is loaded


def loaded_by(code: str, *arguments: str) -> set[str]:
    """The modules that running ``code`` loads, beyond what a bare interpreter has."""
    program = (
        "import sys; before = set(sys.modules)\n"
        f"{code}\n"
        "after = set(sys.modules)\n"
        "import json; print(); print(json.dumps(sorted(after - before)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stdout.splitlines()[-1]))


def heavy(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} & {"libcst", "torch", "numpy", "pathspec"}


def test_importing_the_package_loads_nothing_else() -> None:
    loaded = loaded_by("import sampler_lint")
    assert loaded <= {"sampler_lint", "__future__"}


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["check", "--help"]])
def test_starting_up_parses_nothing(arguments: list[str]) -> None:
    loaded = loaded_by(
        "import contextlib\n"
        "from sampler_lint.cli import main\n"
        f"with contextlib.suppress(SystemExit): main({arguments!r})"
    )
    assert not heavy(loaded)
    assert not {"sampler_lint.syntax.lower", "sampler_lint.rules"} & loaded


def test_importing_the_flake8_plugin_parses_nothing() -> None:
    loaded = loaded_by("import sampler_lint.flake8_plugin")
    assert not heavy(loaded)
    floors = {"workspace", "syntax", "analysis", "execution", "domain", "rules", "edits"}
    assert floors <= MAY_IMPORT.keys()
    assert not any(name.startswith(f"sampler_lint.{floor}") for name in loaded for floor in floors)


CHECK = (
    "from sampler_lint import engine\n"
    "report = engine.check(sys.argv[1:], engine.Options(select=('ALL',)), edits={edits})\n"
    "assert not report.errors and bool(report.findings) is {found}"
)


def test_checking_clean_code_loads_no_libcst(tmp_path: Path) -> None:
    folders = [
        str(write_tree(tmp_path / case.code / case.folder.name, case.files("good")))
        for case in all_cases()
    ]
    assert not heavy(loaded_by(CHECK.format(found=False, edits=True), *folders))


def test_announcing_fixes_loads_no_libcst(tmp_path: Path) -> None:
    """The four that were asked for first; some others look at the layout to tell what to do."""
    folders = [
        str(write_tree(tmp_path / case.code / case.folder.name, case.files("bad")))
        for case in all_cases()
        if case.code in {"SMP101", "SMP201", "SMP301", "SMP401"}
    ]
    assert not heavy(loaded_by(CHECK.format(found=True, edits=False), *folders))


def test_checking_never_loads_the_code_it_reads_nor_torch(tmp_path: Path) -> None:
    case = all_cases()[0]
    tree = write_tree(tmp_path, case.files("bad"))
    loaded = loaded_by(CHECK.format(found=True, edits=True), str(tree))
    assert heavy(loaded) <= {"libcst"}
    assert not {"train", "data", "samplers"} & loaded


def test_whoever_asks_a_text_is_heard() -> None:
    for path in FILES:
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(ASKS_TEXTS) and name not in READS_TEXTS:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            lengths = {
                id(argument)
                for node in ast.walk(tree)
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "len"
                for argument in node.args
            }
            reads = [
                node.lineno
                for node in ast.walk(tree)
                if isinstance(node, ast.Attribute)
                and node.attr in {"text", "data"}
                and ast.unparse(node.value).rpartition(".")[2] == "source"
                and id(node) not in lengths
            ]
            assert not reads, (name, reads)


def test_every_node_has_slots() -> None:
    """There are as many as a tree has words; a class that forgets the decorator adds a dict."""
    kinds = [kind for kind in vars(nodes).values() if isinstance(kind, type)]
    made = [kind for kind in kinds if issubclass(kind, nodes.Node)]
    assert len(made) > 20
    assert [kind for kind in made if hasattr(kind.__new__(kind), "__dict__")] == []
