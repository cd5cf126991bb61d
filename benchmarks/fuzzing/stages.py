"""What must hold when the linter is shown a program: one function for each stage.

Each is given a folder with the program written out, its files, and a source of luck that is the
same whenever the case is tried again. It says what is wrong, or nothing. What it raises is wrong.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import random
import re
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

from fuzzing import mutants
from fuzzing.programs import Tree
from fuzzing.python_programs import python_program
from sampler_lint import cache as caching
from sampler_lint import cli, engine, flake8_plugin
from sampler_lint.cache import Cache
from sampler_lint.domain.model import Model
from sampler_lint.engine import Options, Report
from sampler_lint.execution.errors import CannotTellError, RaisedError
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.execution.values import UNKNOWN
from sampler_lint.explain import explain
from sampler_lint.findings import FileError, Finding
from sampler_lint.notebook import Notebook, NotebookError
from sampler_lint.source import SourceError, SourceFile
from sampler_lint.workspace.project import Project

ALL = Options(select=("ALL",))

Stage = Callable[[Path, Tree, random.Random], str]


def written(root: Path, tree: Mapping[str, bytes]) -> None:
    for name, data in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def told(report: Report) -> list[tuple[object, ...]]:
    """What a report says, without where it was asked."""
    findings = [
        (each.path, each.code, each.start, each.end, each.message, each.fix, each.why)
        for each in report.findings
    ]
    return [*findings, *((each.path, each.row, each.reason) for each in report.errors)]


def failed(report: Report) -> str:
    """What a rule says of itself."""
    return next((f"{e.reason}\n{e.traceback}" for e in report.errors if "SMP000" in e.reason), "")


# -- fixing


def fix_it(root: Path, tree: Tree, rng: random.Random) -> str:
    """Fixed files still compile, a second fix changes nothing, and none without a finding."""
    return _fixed(str(root))[0]


def _fixed(folder: str) -> tuple[str, dict[str, bytes]]:
    report = engine.check([folder], ALL)
    if reason := failed(report):
        return reason, {}
    first = engine.fix([folder], ALL, unsafe=True, write=False)
    if first.changed and not report.findings:
        return "changed where nothing was found", {}
    after = {path: new for path, (_, new) in first.changed.items()}
    for path, (old, new) in first.changed.items():
        if compiles(path, old) and not compiles(path, new):
            return f"{os.path.basename(path)} no longer compiles", {}
    again = engine.fix([folder], ALL, unsafe=True, write=False, overlay=after)
    if again.changed:
        return "a second fix changes it again", {}
    return "", after


def compiles(path: str, data: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = Notebook(data).source if path.endswith(".ipynb") else data
            compile(code, "mutant", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


# -- explaining


def tell_of_lines(root: Path, tree: Tree, rng: random.Random) -> str:
    """Each line can be asked about."""
    for _ in range(4):
        name = rng.choice(sorted(tree))
        row = rng.randint(0, len(re.split(rb"\r\n|\r|\n", tree[name])) + 1)
        with contextlib.suppress(SourceError):
            if not explain(str(root / name), row, options=ALL):
                return "nothing is told of a line"
    return ""


# -- remembering


def remember(root: Path, tree: Tree, rng: random.Random) -> str:
    """With a cache, and of contents not yet written, the same is told as without, edit by edit."""
    cache = Cache(str(root.parent / f"{root.name}-kept"))
    session = engine.Session()
    racy = rng.choice((0, caching._RACY_NS))
    with mock.patch.object(caching, "_RACY_NS", racy):
        for number in range(4):
            expected = told(engine.check([str(root)], ALL))
            for which in ("new", "kept"):
                if told(engine.check([str(root)], ALL, cache=cache)) != expected:
                    return f"the cache tells otherwise ({which}, after {number} edits)"
            before = dict(tree)
            _edit(root, tree, rng)
            overlay = {str(root / name): data for name, data in tree.items()}
            if before.keys() == tree.keys():
                ahead = told(engine.check([str(root)], ALL, overlay=overlay, session=session))
            if not racy:
                time.sleep(0.012)  # a time stamp is no finer
            for name in before.keys() - tree.keys():
                (root / name).unlink()
            written(root, {name: data for name, data in tree.items() if before.get(name) != data})
            if before.keys() == tree.keys() and ahead != told(engine.check([str(root)], ALL)):
                return f"contents to be written are not judged as written ones (edit {number})"
            if rng.random() < 0.15:
                _poison(cache, rng)
    return ""


_BESIDE = {
    "requirements.txt": (b"torch==1.9\n", b"torch>=2\nlightning\n", b"\xff\n", b""),
    "pyproject.toml": (b"[project]\ndependencies = ['torch<2']\n", b"", b"[project]\n"),
    "setup.py": (b"setup(install_requires=['torch>=2.5', 'mmcv'])\n", b"(\n"),
    "environment.yml": (b"dependencies:\n  - pytorch=1.8\n", b": - \x00"),
}


def _edit(root: Path, tree: Tree, rng: random.Random) -> None:
    what = rng.randrange(10)
    name = rng.choice(sorted(tree))
    if what == 0 and len(tree) > 1:
        del tree[name]
    elif what == 1:
        tree[f"new{rng.randrange(3)}.py"] = tree[name]
    elif what == 2:
        tree[name] += rng.choice(
            (b"# sampler\n", b"\n", b"# noqa\n", b"import other0\n", b"x = 1\n")
        )
    elif what == 3:
        beside = rng.choice(sorted(_BESIDE))
        tree[beside] = rng.choice(_BESIDE[beside])
    elif what == 4:
        tree[f"{rng.choice(('', 'lib/', 'lib/deep/'))}__init__.py"] = rng.choice((b"", tree[name]))
    elif what < 7:
        plain = rng.choice(("plain.py", "seeds.py", "lib/utils.py"))
        tree[plain] = rng.choice((*_PLAIN, tree[name]))
        if rng.random() < 0.5:
            tree[name] = f"from {plain[:-3].replace('/', '.')} import *\n".encode() + tree[name]
    else:
        mutants.change_one(tree, rng, [tree])


#: What a file may hold that is none of a sampler's, and what makes it one.
_PLAIN = (
    *(
        b"x = 1\n",
        b"def shuffle(x):\n    return x\n",
        b"import seeds\n",
        b"# SMP101\n",
        b"def f(:\n",
    ),
    b"import random, torch\nrandom.seed(0)\ntorch.manual_seed(rank)\n",
    b"class Dataset:\n    def __init__(self): random.shuffle(self.x)\n",
    b"def seed_all(seed, rank):\n    torch.manual_seed(seed + rank)\n    torch.randperm(4)\n",
)


def _poison(cache: Cache, rng: random.Random) -> None:
    for path in sorted(Path(cache.folder).glob("*.record")):
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data[: rng.choice((len(data), rng.randrange(len(data))))])


# -- notebooks


def fix_notebook(root: Path, tree: Tree, rng: random.Random) -> str:
    """Whatever is no code of a notebook stays, and all that holds for files holds for its code."""
    name = rng.choice(sorted(tree))
    data = _notebook(tree[name].decode("utf-8", "surrogateescape"), rng)
    if rng.random() < 0.4:
        data = mutants._bytes(data, rng, [tree])
    (root / "book.ipynb").write_bytes(data)
    reason, after = _fixed(str(root))
    if reason:
        return reason
    with contextlib.suppress(NotebookError):
        notebook = Notebook(data)
        if notebook.with_source(notebook.source) != data:
            return "a notebook does not survive being read"
    new = after.get(str(root / "book.ipynb"))
    if new is not None and _without_code(new) != _without_code(data):
        return "a fix changes more of a notebook than its code"
    return ""


def _notebook(text: str, rng: random.Random) -> bytes:
    text = text.encode("utf-8", "replace").decode()
    cells = []
    for part in re.split(rng.choice((r"\n(?=\S)", r"\n\n\n?(?=\S)")), text):
        magic = rng.choice(
            ("", "", "", "%matplotlib inline\n", "%%time\n", "!ls \\\n -l\n", "x?\n")
        )
        lines = (magic + part).splitlines(keepends=True)
        cell = {"cell_type": "code", "source": lines, "outputs": [{"text": ["sampler"]}]}
        if rng.random() < 0.2:
            cell["source"] = "".join(lines)
        if rng.random() < 0.1:
            cell["cell_type"] = rng.choice(("markdown", "raw", "other"))
        if rng.random() < 0.5:
            cell = dict(reversed(cell.items()))
        cells.append(cell)
    content = {"metadata": {}, "cells": cells, "nbformat": 4, "source": ["sampler"]}
    indent = rng.choice((None, 1, 4, "\t"))
    return json.dumps(content, indent=indent, ensure_ascii=rng.random() < 0.5).encode()


def _without_code(data: bytes) -> object:
    content = json.loads(data)
    for cell in content["cells"]:
        if cell.get("cell_type") == "code":
            cell["source"] = None
    return content


# -- comments


def silence(root: Path, tree: Tree, rng: random.Random) -> str:
    """Comments part the findings into two; ``--add-noqa`` leaves none, and code that compiles."""
    for name in list(tree):
        if rng.random() < 0.7:
            tree[name] = _commented(tree[name], rng)
    written(root, tree)
    report = engine.check([str(root)], ALL)
    loud = engine.check([str(root)], Options(select=("ALL",), respect_noqa=False))
    parts = Counter(map(_place, [*report.findings, *report.suppressed]))
    if _counted(parts) != _counted(Counter(map(_place, [*loud.findings, *loud.suppressed]))):
        return "comments make findings come or go"
    before = {name: compiles(name, data) for name, data in tree.items()}
    arguments = ["--no-cache", "--select", "ALL", "--add-noqa", str(root)]
    _run(arguments)
    once = {name: (root / name).read_bytes() for name in tree}
    _run(arguments)
    for name, data in once.items():
        if before[name] and not compiles(name, data):
            return f"{name} no longer compiles with the comments"
        if (root / name).read_bytes() != data:
            return f"comments are added twice to {name}"
    for finding in engine.check([str(root)], ALL).findings:
        name = os.path.relpath(finding.path, root)
        if finding.code != "SMP001" and before[name]:
            return f"findings are left: {finding}"
    return ""


def _place(finding: Finding) -> tuple[object, ...]:
    return finding.path, finding.code, finding.start


def _counted(places: Counter[tuple[object, ...]]) -> dict[tuple[object, ...], int]:
    return {place: count for place, count in places.items() if place[1] != "SMP001"}


_COMMENTS = (
    *("# noqa", "# noqa: SMP101", "#noqa:SMP1,E501", "# sampler-lint: ignore", "# noqa:", "# SMP"),
    *("# sampler-lint: ignore[SMP501]", "# sampler-lint: ignore-file[SMP1]", "# flake8: noqa"),
    *(
        "# sampler-lint: ignore[",
        "# ruff: noqa: SMP",
        "# type: ignore # noqa: SMP2 SMP3",
        "# NOQA:,",
    ),
    *(
        "# noqa: " + "SMP101, " * 50,
        "# sampler-lint: ignore[smp101,]",
        "# \u2028noqa",
        "# noqa\x0c",
    ),
)


def _commented(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines))
        comment = rng.choice(_COMMENTS).encode()
        lines[at] = comment if rng.random() < 0.2 else lines[at].rstrip(b"\r") + b"  " + comment
    return b"\n".join(lines)


# -- the command, its configuration and its formats


def command(root: Path, tree: Tree, rng: random.Random) -> str:
    """With any configuration and options the command ends as it should, and says why it failed."""
    for name in rng.sample(sorted(_SETTINGS), rng.randint(0, 3)):
        text = rng.choice(_SETTINGS[name])
        if rng.random() < 0.3:
            text = mutants._bytes(text, rng, [tree])
        written(root, {rng.choice(("", "lib/")) * (name != "requirements.txt") + name: text})
    arguments = [*rng.choice(_ARGUMENTS).split(), str(root)]
    code, out, err = _run(arguments)
    if code not in (0, 1, 2):
        return f"{arguments[:-1]} ends with {code}"
    if "Traceback" in err or "SMP000" in out + err:
        return err + out
    if code == 2 and "error" not in err:
        return f"{arguments[:-1]} fails and says nothing"
    if "json" in arguments or "sarif" in arguments or "gitlab" in arguments:
        if out:
            json.loads(out)
    elif "junit" in arguments and out:
        ElementTree.fromstring(out)
    elif "--write-baseline" in arguments and code == 0:
        base = arguments[arguments.index("--write-baseline") + 1]
        more = [each for each in arguments if each not in {"--write-baseline", base}]
        if _run([*more, "--baseline", base])[0] != 0:
            return "a baseline leaves findings"
    return ""


def _run(arguments: list[str]) -> tuple[object, str, str]:
    out, err = io.StringIO(), io.StringIO()
    out.buffer = io.BytesIO()  # type: ignore[misc]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: object = cli.main(arguments)
        except SystemExit as exit_:
            code = exit_.code
    return code, out.getvalue(), err.getvalue()


_ARGUMENTS = (
    *(f"--no-cache --select ALL --output-format {name}" for name in
      ("text", "concise", "grouped", "json", "json-lines", "sarif", "github", "gitlab", "junit",
       "rdjson", "azure")),
    *("--no-cache --diff", "--no-cache --fix", "--no-cache --fix --unsafe-fixes --select ALL"),
    *("--no-cache --select ALL --write-baseline /dev/shm/fuzz-baseline", "--no-cache --isolated"),
    *("--no-cache --diff --unsafe-fixes --select ALL", "--no-cache --show-settings"),
    *("--no-cache --select ALL --jobs 2", "--no-cache --timings --select SMP1,SMP5"),
    *("--no-cache --select ALL --add-noqa", "--no-cache --exit-zero --select ALL"),
)  # fmt: skip

_SETTINGS = {
    "sampler-lint.toml": (
        b'select = ["ALL"]\nexclude = ["lib", "!main.py", "[a-", "**"]\n',
        b'ignore = ["SMP1"]\nper-file-ignores = { "*" = ["SMP5"], "!lib/" = [] }\n',
        b'known-samplers = ["a.b", "train.make"]\nknown-loaders = ["data.loader"]\n',
        b'torch-version = ">=1.9,<3"\nframeworks = ["lightning>=2", "mmcv"]\n',
        b'cache-dir = "x/../y"\noutput-format = "json"\nunsafe-fixes = true\n',
        b'fixable = ["SMP1"]\nunfixable = ["ALL"]\nextend-exclude = ["\\\\", "/", "a/**/b"]\n',
        b"select = 1\n", b"[", b"\xff\xfe", b"unknown = {a = 1}\n", b"torch-version = '1.x'\n",
    ),
    "pyproject.toml": (
        b"[tool.sampler-lint]\nselect = ['SMP1']\n", b"[tool]\nsampler-lint = 1\n",
        b"[project]\ndependencies = ['torch>=1.8', 7]\nrequires-python = '>=3.x'\n",
        b"[tool.poetry.dependencies]\ntorch = '^2.1'\nlightning = {version = '*'}\n",
        b"[[project]]\n",
        b"[project]\nname = 3\noptional-dependencies = {a = 'torch'}\n", b"project = []\n",
    ),
    "requirements.txt": (
        b"torch==1.9\n-r other.txt\n", b"-r requirements.txt\n", b"torch @ file:///x\n", b"\x00",
        b"--hash=x\ntorch>=2 ; python_version<'3'\n" * 3, b"-e .\ngit+https://x\n",
        b"-r /etc/passwd\n",
    ),
    "setup.cfg": (b"[options]\ninstall_requires =\n  torch>=2\n", b"[options\n", b"[a]\n[a]\n"),
    "setup.py": (b"setup(install_requires=['torch', *x])\n", b"setup(\n", b"\xff"),
    "environment.yml": (b"dependencies:\n - pytorch=1.8\n - pip:\n   - torch\n", b"\t: [\n"),
    ".gitignore": (b"*.py\n!main.py\n", b"[\n\\\n!!\n/**/\n", b"\xff\xfe*\n", b"lib/\n!lib/x.py\n"),
}  # fmt: skip


# -- the interpreter


def run_classes(root: Path, tree: Tree, rng: random.Random) -> str:
    """Every class can be tried, whatever it is; nothing is raised."""
    shown = {str(root / name): name for name in tree if name.endswith(".py")}
    model = Model(Project(str(root), shown))
    classes = [cls for _, cls in model.classes()]
    for cls in rng.sample(classes, min(6, len(classes))):
        model.trials(cls)
        model.trials(cls, around_shard=True)
        other = rng.choice(classes)
        model.trials_around(cls, rng.choice(("sampler", "dataset", "x")), other)
    return ""


def run_as_python(root: Path, tree: Tree, rng: random.Random) -> str:
    """What the interpreter says a random program computes is what Python computes."""
    path = root / "computed.py"
    for _ in range(20):
        text = python_program(rng)
        path.write_text(text, "utf-8")
        found = _interpreted(path)
        expected = _by_python(text)
        with contextlib.suppress(RecursionError):  # a list that holds itself
            if found is UNKNOWN or (expected is not UNKNOWN and _same(found, expected)):
                continue
            # What a list is asserted to be, the argument that it may stand for is taken to be.
            if expected is UNKNOWN and "assert (isinstance(" in text:
                continue
            return f"computes otherwise: {found!r}, and Python {expected!r}\n{text}"
    return ""


def _interpreted(path: Path) -> object:
    project = Project(str(path.parent), {str(path): path.name})
    module = project.module_at(str(path))
    if module is None:
        return UNKNOWN
    interpreter = Interpreter(project)
    interpreter.restart(4, 1)
    try:
        return interpreter.names_of(module).get("X")
    except (CannotTellError, RaisedError):
        return UNKNOWN
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        return UNKNOWN  # what trials of samplers take for an answer, too


def _by_python(text: str) -> object:
    names: dict[str, object] = {}

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 1, 0.05)  # again, should a destructor swallow it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(text, names)
    except (SyntaxError, NameError, TypeError):
        # A ``continue`` outside a loop, a name of a branch not taken, ``reverse="b"``: no program
        # that runs, and the interpreter may be less strict.
        return object()
    except Exception:
        return UNKNOWN
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return names["X"]


def _same(found: object, expected: object) -> bool:
    if isinstance(expected, (list, tuple)):
        return (
            type(found) is type(expected)
            and len(found) == len(expected)  # type: ignore[arg-type]
            and all(map(_same, found, expected))  # type: ignore[call-overload]
        )
    if isinstance(expected, (int, float, str, bool, type(None))):
        return found is UNKNOWN or (type(found) is type(expected) and repr(found) == repr(expected))
    return True  # no plain value


# -- flake8


def as_flake8(root: Path, tree: Tree, rng: random.Random) -> str:
    """The plugin tells what the library tells."""
    flake8_plugin._told_of_tree.cache_clear()
    flake8_plugin._reached.cache_clear()
    flake8_plugin._session.cache_clear()
    kept = str(root.parent / f"{root.name}-kept")
    report = engine.check([str(root)])
    with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": kept}):
        for name in sorted(tree):
            path = str(root / name)
            try:
                text = SourceFile.read(path).text
                parsed = ast.parse(text)
            except (SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
                continue  # flake8 does not ask about it
            lines = text.replace("\r\n", "\n").replace("\r", "\n").splitlines(keepends=True)
            said = [
                (row, column + 1, text.split()[0])
                for row, column, text, _ in flake8_plugin.Plugin(parsed, path, lines).run()
            ]
            expected = [
                (each.start.row, each.start.column, each.code)
                for each in report.findings
                if each.path == path
            ]
            if Counter(said) != Counter(expected):
                return f"flake8 says {said} of {name}, the library {expected}"
    return ""


# -- line ends


def read_line_ends(root: Path, tree: Tree, rng: random.Random) -> str:
    """Findings do not hang on how lines end, or on a comment at the end."""
    plain = {name: re.sub(rb"\r\n?", b"\n", data) for name, data in tree.items()}
    if plain != tree:
        return ""
    before = _rows(root)
    for end in (b"\r\n", b"\r"):
        written(root, {name: data.replace(b"\n", end) for name, data in plain.items()})
        if (after := _rows(root)) != before:
            return f"with {end!r} at the ends of lines: {before} becomes {after}"
    written(root, {name: data + b"\n# the end\n" for name, data in plain.items()})
    if (after := _rows(root)) != before:
        return f"with a comment at the end: {before} becomes {after}"
    return ""


def _rows(root: Path) -> list[tuple[object, ...]]:
    report = engine.check([str(root)], ALL)
    items: Sequence[Finding | FileError] = [*report.findings, *report.errors]
    return [
        (each.path, each.code, each.start.row, each.end.row)
        if isinstance(each, Finding)
        else (each.path,)
        for each in items
    ]


#: By name, with how often each is tried among the others.
STAGES: dict[str, tuple[Stage, int]] = {
    "fix": (fix_it, 8),
    "explain": (tell_of_lines, 3),
    "remember": (remember, 3),
    "notebook": (fix_notebook, 3),
    "silence": (silence, 3),
    "command": (command, 3),
    "run-classes": (run_classes, 3),
    "run-as-python": (run_as_python, 2),
    "flake8": (as_flake8, 2),
    "line-ends": (read_line_ends, 2),
}
