"""No safe fix makes a program wrong: told by running awkward programs, not by asking the checker.

Each program of :mod:`awkward` is run as two ranks, before and after its safe fixes, in this
process: what it prints must stay, it must not fail where it did not, and what reached its
samplers must be what a fix promises.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import itertools
import os
import runpy
import sys
import textwrap
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import awkward
from cases import read_tree, working_in, write_tree
from sampler_lint import engine, limits
from sampler_lint.edits import safety
from sampler_lint.edits.safety.names import Assigned
from sampler_lint.engine import Options
from sampler_lint.rules import all_rules
from snippet_files import SNIPPETS, read

RANKS = 2
#: Without the rules that fix nothing.
FIXES = Options(ignore=tuple(rule.code for rule in all_rules() if rule.fixable == "never"))


@dataclass
class Run:
    """What one rank did."""

    said: str = ""
    failed: str = ""
    seeds: list[object] = field(default_factory=list)
    """What each sampler was built with that somebody chose."""
    epochs: list[tuple[int, object]] = field(default_factory=list)
    """Sampler and epoch of each pass."""


class Trainer:
    """Stands for Lightning's, which is not installed."""

    def __init__(self, devices: int) -> None:
        self.devices = devices

    def fit(self, model: object, loader: Any) -> None:
        """Only tell how long an epoch is."""
        print(len(loader))


@contextlib.contextmanager
def as_rank(rank: int, run: Run, folder: Path) -> Iterator[None]:
    """Make this process look like one of several."""
    import torch
    from torch.utils.data import DistributedSampler

    init, iterate = DistributedSampler.__init__, DistributedSampler.__iter__
    signature = ("num_replicas", "rank", "shuffle", "seed", "drop_last")

    def building(self: Any, dataset: Any, *args: Any, **given: Any) -> None:
        chosen = {**dict(zip(signature, args, strict=False)), **given}
        if "seed" in chosen:
            run.seeds.append(chosen["seed"])
        init(self, dataset, *args, **given)

    def iterating(self: Any) -> Any:
        run.epochs.append((id(self), self.epoch))
        return iterate(self)

    lightning = types.ModuleType("lightning")
    lightning.Trainer = Trainer  # type: ignore[attr-defined]
    modules = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
        patch.setattr(torch.distributed, "get_rank", lambda *_: rank)
        patch.setattr(torch.distributed, "get_world_size", lambda *_: RANKS)
        patch.setattr(torch.distributed, "is_initialized", lambda: True)
        patch.setattr(DistributedSampler, "__init__", building)
        patch.setattr(DistributedSampler, "__iter__", iterating)
        patch.setattr(os, "getpid", lambda: 1000 + rank)
        patch.setattr(builtins, "hash", lambda value: 77 + rank)
        patch.syspath_prepend(str(folder))
        patch.setattr(sys, "argv", ["main.py"])
        patch.setitem(sys.modules, "lightning", lightning)
        try:
            yield
        finally:
            run.said = out.getvalue()
            for name in set(sys.modules) - modules:
                if getattr(sys.modules[name], "__file__", None) and str(folder) in str(
                    sys.modules[name].__file__
                ):
                    del sys.modules[name]


def ran(files: Mapping[str, bytes], folder: Path) -> list[Run]:
    """What the program does on each rank."""
    write_tree(folder, files)
    runs = []
    for rank in range(RANKS):
        run = Run()
        runs.append(run)
        with as_rank(rank, run, folder):
            try:
                runpy.run_path(str(folder / "main.py"), run_name="__main__")
            except (Exception, SystemExit) as error:
                run.failed = f"{type(error).__name__}: {error}"
    return runs


#: The rules whose fixes change which epochs, and which seeds, reach the samplers.
EPOCHS, SEEDS = {"SMP101", "SMP102", "SMP103", "SMP104"}, {"SMP201", "SMP202"}


def wrong(
    program: awkward.Program, before: list[Run], after: list[Run], codes: set[str]
) -> str | None:
    """What the fixes of these rules broke, or did not do."""
    for old, new in zip(before, after, strict=True):
        if new.failed and not old.failed:
            return f"fails now: {new.failed}"
        if not old.failed and old.said != new.said:
            return f"printed {old.said!r}, now {new.said!r}"
    if before[0].failed:
        return None
    seeds = [run.seeds for run in after]
    if seeds != [run.seeds for run in before]:
        if any(one != seeds[0] for one in seeds):
            return f"the ranks have different seeds: {seeds}"
        if any(type(seed) is not int for seed in seeds[0]):
            return f"seeds that are no ints: {seeds[0]}"
        if program.as_first and seeds[0] != before[0].seeds:
            return f"seeds {seeds[0]}, which were {before[0].seeds}"
    epochs = [epoch for _, epoch in after[0].epochs]
    if any(type(epoch) is not int for epoch in epochs):
        return f"epochs that are no ints: {epochs}"
    # A fix may only change what another rank than the first is told.
    told, told_before = (
        [[epoch for _, epoch in run.epochs] for run in runs] for runs in (after, before)
    )
    is_set = told != told_before
    if epochs and not is_set and codes & EPOCHS and before[0].said == after[0].said:
        return "the epochs are as before"
    if codes & SEEDS and seeds == [run.seeds for run in before] and any(seeds):
        return "the seeds are as before"
    passes: list[object] = [*after[0].epochs]
    if len({sampler for sampler, _ in after[0].epochs}) == len(passes):
        passes = [*epochs]  # built anew for each pass: each has to be told another epoch
    if is_set and program.epochs and len(set(passes)) != len(passes):
        return f"passes with the same epoch: {epochs}"
    return None


#: The programs are shared out, so that the processes that run the tests share them, too.
PARTS = 16


def test_the_programs_are_many_and_each_has_its_name() -> None:
    names = [program.name for program in awkward.programs()]
    assert len(names) >= 1800
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_safe_fix_makes_an_awkward_program_wrong(
    part: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    whole = request.config.getoption("--whole")
    found: list[str] = []
    fixed = 0
    number = itertools.count()
    for program in awkward.programs()[part :: PARTS if whole else 6 * PARTS]:
        files = {name: text.encode() for name, text in program.files.items()}
        with working_in(write_tree(tmp_path / f"{next(number)}", files)) as _:
            result = engine.fix(["."], FIXES)
            assert [*result.errors, *result.report.errors] == [], program.name
            starred = [f for f in result.fixed if f.fix]
            after = {**files, **read_tree(Path())}
        if after == files:
            continue
        assert starred
        fixed += 1
        runs = [ran(each, tmp_path / f"{next(number)}") for each in (files, after)]
        reason = wrong(program, *runs, codes={finding.code for finding in starred})
        if reason is not None:
            found.append(f"{program.name}: {reason}")
    assert found == []
    assert fixed >= (16 if whole else 4), (
        "most fixes are held back: nothing is shown of those that are made"
    )


# what each question is asked about

TRAINED = """
for epoch in range(3):
    for batch in loader:
        loss(batch).backward()
        optimizer.step()
"""
LOADED = "sampler = DistributedSampler(data)\nloader = DataLoader(data, sampler=sampler)\n"
OPTIONS = (
    "p = argparse.ArgumentParser()\np.add_argument('--seed', type=int, default=3)\n"
    "args = p.parse_args()\ntorch.manual_seed(args.seed)\n"
)


def reasons(folder: Path, code: str, **files: str) -> list[str]:
    """Why each fix for a program is not safe; nothing of one that is."""
    texts = {"main": awkward.HEADER + code, **files}
    write_tree(folder, {f"{name}.py": text.encode() for name, text in texts.items()})
    with working_in(folder):
        quick = engine.check(["."], FIXES, edits=False).findings
        whole = engine.check(["."], FIXES).findings
    said = [finding.fix.unsafe for finding in whole if finding.fix]
    assert [finding.fix.unsafe for finding in quick if finding.fix] == said
    return said


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (LOADED + TRAINED, ""),
        # The name is gone, or another object since; the loader still has the sampler.
        (LOADED + "del sampler" + TRAINED, ""),
        (LOADED + "sampler = None" + TRAINED, ""),
        (
            LOADED + TRAINED.replace("range(3)", "map(str, range(3))"),
            "the epoch `epoch` is not an int",
        ),
        (
            LOADED + TRAINED.replace(":\n", ":\n    epoch = str(epoch)\n", 1),
            "the epoch `epoch` is not an int",
        ),
        # Where it is read, the counter keeps its name.
        (LOADED + TRAINED.replace("epoch", "_") + "print(_)\n", ""),
        (OPTIONS + "sampler = DistributedSampler(data)\n", ""),
        (OPTIONS + "del args\nsampler = DistributedSampler(data)\n", "`args` is gone since line"),
        (
            OPTIONS.replace("3", "os.getpid()") + "sampler = DistributedSampler(data)\n",
            "`os.getpid()` is another on each process",
        ),
        (
            OPTIONS.replace("type=int, default=3", "default='3'")
            + "sampler = DistributedSampler(data)\n",
            "`'3'` is not an int",
        ),
        (
            OPTIONS.replace("args = p", "p.set_defaults(**{'seed': os.getpid()})\nargs = p")
            + LOADED,
            "`seed` may be another, or gone",
        ),
        (
            OPTIONS.replace(
                "p.add_argument", "q = p.add_subparsers().add_parser('a')\nq.add_argument"
            ).replace("torch.manual_seed(args.seed)", "if args:\n    torch.manual_seed(args.seed)")
            + LOADED,
            "only one command has the option `seed`",
        ),
        (
            # Where the program has read it on the way, it is there.
            OPTIONS.replace(
                "p.add_argument", "q = p.add_subparsers().add_parser('a')\nq.add_argument"
            )
            + LOADED,
            "",
        ),
        (
            "class Env:\n    @property\n    def rank(self):\n        print('asked')\n"
            "        return dist.get_rank()\nenv = Env()\n"
            "sampler = DistributedSampler(data, seed=3 + env.rank)\n",
            "`env.rank` does more than give a value",
        ),
    ],
)
def test_what_speaks_against_a_fix(code: str, reason: str, tmp_path: Path) -> None:
    said = reasons(tmp_path, code)
    assert len(said) == 1
    assert reason in said[0] if reason else said == [""]


@pytest.mark.parametrize(
    ("code", "is_known"),
    [
        (LOADED + TRAINED.replace("range(3)", "map(str, range(3))"), True),
        (LOADED + TRAINED.replace("range(3)", "[f'{n}' for n in data]"), True),
        (LOADED + TRAINED.replace("range(3)", "zip(data, data)"), True),
        (LOADED + TRAINED.replace("range(3)", "map(other, range(3))"), False),
        (OPTIONS.replace("type=int, default=3", "default='3'") + LOADED, True),
        (OPTIONS.replace("torch", "args.seed = args.seed or os.getpid()\ntorch") + LOADED, True),
        (OPTIONS.replace("torch", "args.seed = args.seed or other()\ntorch") + LOADED, False),
        (OPTIONS + "args = [1, 2]\n" + LOADED, True),
        (OPTIONS + "if FLAG:\n    args = [1, 2]\n" + LOADED, False),
    ],
)
def test_a_fix_that_is_known_to_break_the_program_is_only_shown(
    code: str, is_known: bool, tmp_path: Path
) -> None:
    text = (awkward.HEADER + code).encode()
    with working_in(write_tree(tmp_path, {"main.py": text})):
        [finding] = engine.check(["."], FIXES).findings
        result = engine.fix(["."], FIXES, unsafe=True)
    assert finding.fix is not None
    assert finding.fix.unsafe
    assert (finding.fix.applicability.value == "display-only") is is_known
    assert (result.changed == {}) is is_known
    if is_known:
        assert [why for _, why in result.left] == [f"display-only: {finding.fix.unsafe}"]


@pytest.mark.parametrize(
    ("more", "other", "reason"),
    [
        ("", "", ""),
        ("", "import parts\nparts.build([1])\n", "other.py:2 does not pass `seed`"),
        (
            "kept = functools.partial(build, data)\n",
            "",
            "`build` is not only called, but handed on",
        ),
        ("build(*[data])\n", "", "does not pass `seed`"),
        ("", "from parts import build as make\nmake([1])\n", "`build` has another name"),
        ("", "import parts\ngetattr(parts, 'build')\n", "`build` is not only called"),
    ],
)
def test_everybody_has_to_pass_a_new_parameter(
    more: str, other: str, reason: str, tmp_path: Path
) -> None:
    parts = (
        "from torch.utils.data import DistributedSampler as D\n"
        "def build(data):\n    return D(data)\n"
    )
    code = "from parts import build\n" + OPTIONS + "build(data)\n" + more
    said = reasons(tmp_path, code, parts=parts, other=other)
    assert len(said) == 1
    assert reason in said[0] if reason else said == [""]


@pytest.mark.parametrize(
    ("code", "assigned"),
    [
        ("if a:\n    x = 1\n", False),
        ("if a:\n    x = 1\nelse:\n    x = 2\n", True),
        ("if a:\n    x = 1\nelse:\n    raise\n", True),
        ("for x in a:\n    pass\n", False),
        ("for _ in a:\n    x = 1\nelse:\n    x = 2\n", True),
        ("for _ in a:\n    if b:\n        break\nelse:\n    x = 2\n", False),
        ("while True:\n    x = 1\n    if b:\n        break\n", True),
        ("while a:\n    x = 1\n", False),
        ("try:\n    x = f()\nexcept E:\n    pass\n", False),
        ("try:\n    x = f()\nexcept E:\n    raise\n", True),
        ("try:\n    pass\nfinally:\n    x = 1\n", True),
        ("try:\n    pass\nexcept E as x:\n    pass\n", False),
        ("with a as x:\n    pass\n", True),
        ("with suppress(E):\n    x = 1\n", False),
        ("with a:\n    x = 1\n", True),
        ("match a:\n    case x:\n        pass\n", True),
        ("match a:\n    case [x]:\n        pass\n", False),
        ("match a:\n    case [x]:\n        pass\n    case _:\n        x = 1\n", True),
        ("y = (x := 1) if a else 2\n", False),
        ("y = a and (x := 1)\n", False),
        ("y = (x := 1) and a\n", True),
        ("y = [x := 1 for _ in a]\n", False),
        ("y = lambda: (x := 1)\n", False),
        ("x = 1\ndel x\n", False),
        ("x = 1\nfor _ in a:\n    del x\n", False),
        ("x: int\n", False),
        ("x: int = 1\n", True),
        ("print(x)\n", True),
        ("def x():\n    pass\n", True),
        ("class x:\n    pass\n", True),
        ("import x.y\n", True),
        ("from a import b as x\n", True),
        ("if TYPE_CHECKING:\n    import x\n", False),
    ],
)
def test_what_is_certainly_assigned(code: str, assigned: bool) -> None:
    end = Assigned(ast.parse(code)).end
    assert end is not None
    assert ("x" in end) is assigned


@pytest.mark.parametrize(
    ("code", "reached"),
    [("return\n", False), ("raise E\n", False), ("if a:\n    return\n", True)],
)
def test_what_is_reached(code: str, reached: bool) -> None:
    tree = ast.parse("def f(a):\n" + textwrap.indent(code + "x\n", "    "))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    assert (Assigned(function).at[function.body[-1]] is not None) is reached


def in_one_statement(path: Path, head: str, each: str) -> str:
    """Programs of a snippet file as one function, or as the methods of one class."""
    lines = [head]
    for at, (snippet, _) in enumerate(read(path)):
        text = next(iter(snippet.files().values())).decode()
        with contextlib.suppress(SyntaxError):
            program = f"{each}{textwrap.indent(text, '        ')}        pass\n".replace(
                "#", str(at)
            )
            ast.parse("\n".join([*lines, program]))
            lines.append(program)
        if len(lines) > 16:
            break
    return "\n".join(lines)


@pytest.mark.parametrize("code", ["SMP102", "SMP103", "SMP201", "SMP305"])
@pytest.mark.parametrize(
    ("head", "each"),
    [("def main():", "    if flags[#]:\n"), ("class All:", "    def run_#(self):\n")],
    ids=["function", "class"],
)
def test_fixes_judged_together_are_judged_as_each_alone(
    code: str, head: str, each: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = in_one_statement(SNIPPETS / f"{code}.txt", head, each).encode()
    options = Options(select=(code,))
    monkeypatch.setattr("sampler_lint.edits.safety.meaning.MOST_LOOKS", 50 * limits.MOST_LOOKS)
    with working_in(write_tree(tmp_path, {"train.py": program})):
        together = engine.check(["."], options, edits=False).findings
        monkeypatch.setattr(safety, "are_safe", lambda model, fixes: False)
        assert together == engine.check(["."], options, edits=False).findings
    assert any(finding.fix for finding in together)
